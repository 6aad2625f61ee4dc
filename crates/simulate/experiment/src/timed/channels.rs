//! The channels of a drive in the result: who has which, and what each did.
//!
//! For: `timing.channels`, of the cache device or of the drive that is the machine. Must never
//! know: how it is drawn, where single blocks lie. Units: bytes, shares of the replay. Throughput
//! is what the host asked for; busy times contain the drive's own work.

use super::space::space_utilisation;
use super::tenancy::tenancy;
use crate::case::{Case, ResolvedCase};
use cachewright_device::ssd::flash::FlashStats;
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_result::channels::{ChannelGroup, ChannelUse, Channels};
use cachewright_system::event_loop::Times;
use cachewright_system::machines::GroupUse;
use cachewright_types::Op;

/// The map and the use of channels; nothing for a first device that has none.
pub fn channels(case: &ResolvedCase<'_>, times: &Times) -> Option<Channels> {
    let device = times.devices.first()?;
    let flash = device.report.flash()?;
    let (map, span_ns) = (times.channels.layout.as_ref(), times.end_ns.max(1) as f64);
    let group = |(index, group): (usize, &GroupUse)| {
        let (read, written) = (group.bytes[Op::Read as usize], group.bytes[Op::Write as usize]);
        ChannelGroup {
            channels: group.range.channels.clone(),
            tenants: owners(case, map, index),
            lent: map.is_some_and(|map| map.lent.contains(&(index as u32))),
            capacity_bytes: group.range.bytes.end - group.range.bytes.start,
            reads: group.commands[Op::Read as usize],
            writes: group.commands[Op::Write as usize],
            read_bytes: read,
            write_bytes: written,
            bytes_per_s: (read + written) as f64 * 1e9 / span_ns,
        }
    };
    Some(Channels {
        layout: case.spec.cache.layout.name.clone(),
        groups: times.channels.groups.iter().enumerate().map(group).collect(),
        each: each(flash, span_ns),
        space_utilisation: space_utilisation(case, times),
        tenancy: tenancy(case, times),
    })
}

/// The tenants whose blocks a group of channels holds.
fn owners(case: &Case, map: Option<&ChannelMap>, group: usize) -> Vec<String> {
    let tenants = case.spec.tenants.iter().enumerate();
    let holds = |tenant: usize| {
        map.is_none_or(|map| {
            let mut shares = map.tenants[tenant].iter();
            let here = |share: &PoolShare| map.pools[share.pool].contains(&(group as u32));
            shares.any(|share| share.blocks > 0 && here(share))
        })
    };
    tenants.filter(|(index, _)| holds(*index)).map(|(_, tenant)| tenant.name.clone()).collect()
}

/// Of each channel: how long it was taken, and how long its dies worked and cleaned on average.
fn each(flash: &FlashStats, span_ns: f64) -> Vec<ChannelUse> {
    let channels = flash.busy.channel_ns.len().max(1);
    let units = (flash.busy.unit_worked_ns.len() / channels).max(1);
    let mean = |times: &[u64], channel: usize| {
        let own = times.iter().skip(channel * units).take(units);
        own.sum::<u64>() as f64 / units as f64 / span_ns
    };
    let channel = |(channel, busy): (usize, &u64)| ChannelUse {
        channel,
        busy: *busy as f64 / span_ns,
        dies_working: mean(&flash.busy.unit_worked_ns, channel),
        dies_cleaning: mean(&flash.busy.unit_cleaned_ns, channel),
    };
    flash.busy.channel_ns.iter().enumerate().map(channel).collect()
}
