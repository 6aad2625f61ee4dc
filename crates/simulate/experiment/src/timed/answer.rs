//! What a timed replay found, as answers have it: the `timing` of a case.
//!
//! Units are in the names; a breakdown's parts are means per request and add up to the mean
//! response.

use super::Timed;
use super::machine::{cached_drive, store};
use crate::ExperimentError;
use crate::answers::throughput;
use crate::case::{Case, ResolvedCase};
use crate::folder::write_numbers;
use crate::spec::{DeviceSpec, Front, TenantSpec};
use cachewright_device::disk::HeadTime;
use cachewright_device::ssd::flash::{FlashStats, QueueClass, UnitStage};
use cachewright_device::ssd::{Life, SsdParams};
use cachewright_device::{DeviceUse, Use};
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_partition::{Need, ResponseGoal};
use cachewright_result::Entries;
use cachewright_result::devices::BusyShares;
use cachewright_result::devices::Device;
use cachewright_result::devices::DeviceEnergy;
use cachewright_result::devices::Dies;
use cachewright_result::devices::DiskHeadTime;
use cachewright_result::devices::EnergyRates;
use cachewright_result::devices::Flash;
use cachewright_result::devices::Queue;
use cachewright_result::devices::RatedLife;
use cachewright_result::devices::TotalEnergy;
use cachewright_result::devices::Wear;
use cachewright_result::run::Case as CaseAnswer;
use cachewright_result::run::CaseResponses;
use cachewright_result::run::MeasuredResponses;
use cachewright_result::timing::BlockRegions;
use cachewright_result::timing::ChannelGroup;
use cachewright_result::timing::ChannelUse;
use cachewright_result::timing::Channels;
use cachewright_result::timing::Migrations;
use cachewright_result::timing::RegionWindow;
use cachewright_result::timing::Tenancy;
use cachewright_result::timing::TenancyChange;
use cachewright_result::timing::TenantMigrations;
use cachewright_result::timing::TenantRegions;
use cachewright_result::timing::{
    AloneTimes, Fairness, LittlesLaw, ResponseSeries, ResponseTimes, TenantTiming, Timing,
};
use cachewright_system::event_loop::{Experience, Times};
use cachewright_system::machines::tenancy::{Change, Event};
use cachewright_system::machines::{GroupUse, InFlight, Migrated, RegionBlocks, blocks_of};
use cachewright_types::measure::{Bin, Counts};
use cachewright_types::measure::{extremes, jain};
use cachewright_types::{Bytes, Op};
use std::path::Path;

/// The `timing` of a case.
pub fn timing(case: &ResolvedCase<'_>, timed: &Timed) -> Timing {
    let times = &timed.times;
    let mut devices = devices(case, times);
    let drive = times.drive.as_ref().and_then(|work| {
        let flash = devices.first_mut()?.flash.take()?;
        Some(cached_drive(work, flash, times.end_ns))
    });
    Timing {
        layout: timed.layout.to_owned(),
        end_ns: times.end_ns,
        read_ahead_blocks: times.blocks.read_ahead,
        cleaned_blocks: times.blocks.cleaned,
        total: response_times(&times.total()),
        tenants: (0..times.tenants.len()).map(|index| tenant(case, timed, index)).collect(),
        devices,
        little: little(times),
        series: series(times),
        throughput: throughput(case, times),
        channels: channels(case, times),
        migrations: migrations(case, times),
        rooms: regions(case, times),
        drive,
        energy: total_energy(times),
        store: store(case, times),
        fairness: (!timed.alone.is_empty()).then(|| fairness(timed)),
    }
}

/// One tenant beside the others, and alone if it was replayed so.
fn tenant(case: &Case, timed: &Timed, index: usize) -> TenantTiming {
    let (times, found) = (&timed.times, &timed.times.tenants[index]);
    TenantTiming {
        name: case.spec.tenants[index].name.clone(),
        responses: response_times(found),
        in_flight_blocks: times.blocks.in_flight[index],
        demand_misses: demand_misses(case, times, index),
        alone: timed.alone.get(index).map(|alone| {
            let responses = alone.tenants[index].responses();
            let alone_ns = responses.mean_ns();
            AloneTimes {
                alone_mean_ns: alone_ns,
                alone_p50_ns: responses.quantile_ns(0.5),
                alone_p90_ns: responses.quantile_ns(0.9),
                alone_p99_ns: responses.quantile_ns(0.99),
                alone_p999_ns: responses.quantile_ns(0.999),
                slowdown: slowdown(found, alone_ns),
            }
        }),
    }
}

/// Block accesses of a tenant that waited for the backing device to read: misses, and blocks that
/// were on their way.
fn demand_misses(case: &Case, times: &Times, index: usize) -> u64 {
    let missed = times.cache.counts.get(index).map_or(0, Counts::misses);
    let stack = case.spec.stack.as_ref();
    match stack.map_or(InFlight::Hit, |stack| stack.machine.in_flight) {
        InFlight::Hit => missed + times.blocks.in_flight[index],
        InFlight::Miss => missed,
    }
}

/// Puts the first figures of a case's `timing` beside its counters; run times only where requests
/// follow the answers.
pub fn add_responses(case: &Case, answer: &mut CaseAnswer, timing: &Timing) {
    let starts = || case.spec.tenants.iter().map(|tenant| tenant.start.0);
    let measured = |found: &ResponseTimes, start_ns: u64| {
        let run_time_ns = found.finished_ns.saturating_sub(start_ns);
        Some(CaseResponses::Measured(MeasuredResponses {
            run_time_ns: case.spec.replay.closed().then_some(run_time_ns),
            mean_response_ns: found.mean_ns,
            p99_response_ns: found.p99_ns,
            throughput_per_s: found.throughput_per_s,
            finished_ns: found.finished_ns,
        }))
    };
    answer.total.responses = measured(&timing.total, starts().min().unwrap_or(0));
    let tenants = answer.tenants.iter_mut().zip(&timing.tenants).zip(starts());
    for ((tenant, found), start_ns) in tenants {
        tenant.responses = measured(&found.responses, start_ns);
    }
    add_response_goals(case, answer, timing);
}

/// Prices the causes of misses at the time that each tenant's requests spent behind the cache.
pub fn add_costs(answer: &mut CaseAnswer, times: &Times) {
    for (tenant, found) in answer.tenants.iter_mut().zip(&times.tenants) {
        let misses = tenant.counts.misses.max(1) as f64;
        let added_ns = found.breakdown.behind_cache_ns() as f64 / misses;
        tenant.causes = tenant.causes.take().map(|causes| causes.costing(added_ns));
    }
}

/// Puts goals in response time, and whether the whole run kept them, beside the counters.
fn add_response_goals(case: &Case, answer: &mut CaseAnswer, timing: &Timing) {
    let goals = case.spec.response_goals();
    let given = goals.iter().flatten().count();
    if given == 0 {
        return;
    }
    let mut met = 0;
    for ((tenant, found), goal) in answer.tenants.iter_mut().zip(&timing.tenants).zip(goals) {
        let kept = match goal {
            None => continue,
            Some(ResponseGoal::Mean(limit)) => {
                tenant.goal_response_ns = Some(limit.0);
                found.responses.mean_ns <= limit.0 as f64
            }
            Some(ResponseGoal::P99(limit)) => {
                tenant.goal_p99_ns = Some(limit.0);
                found.responses.p99_ns <= limit.0
            }
        };
        tenant.goal_met = Some(kept);
        met += usize::from(kept);
    }
    let total = &mut answer.total;
    total.goals = Some(total.goals.unwrap_or(0) + given);
    total.goals_met = Some(total.goals_met.unwrap_or(0) + met);
}

/// How many times longer a tenant waits than alone; 1 without requests.
fn slowdown(mixed: &Experience, alone_ns: f64) -> f64 {
    if alone_ns > 0.0 { mixed.responses().mean_ns() / alone_ns } else { 1.0 }
}

fn fairness(timed: &Timed) -> Fairness {
    let pairs = timed.times.tenants.iter().zip(&timed.alone).enumerate();
    let slowdowns: Vec<f64> = pairs
        .filter(|(_, (mixed, _))| mixed.responses().count() > 0)
        .map(|(index, (mixed, alone))| slowdown(mixed, alone.tenants[index].responses().mean_ns()))
        .collect();
    let progress: Vec<f64> = slowdowns.iter().map(|slowdown| 1.0 / slowdown).collect();
    Fairness {
        max_slowdown: slowdowns.iter().copied().fold(0.0, f64::max),
        jain: jain(&progress),
        min_over_max: extremes(&progress),
    }
}

/// The figures of one tenant, or of all.
pub fn response_times(found: &Experience) -> ResponseTimes {
    let all = found.responses();
    let count = all.count().max(1) as f64;
    let parts = found.breakdown.parts().into_iter();
    ResponseTimes {
        requests: all.count(),
        mean_ns: all.mean_ns(),
        p50_ns: all.quantile_ns(0.5),
        p90_ns: all.quantile_ns(0.9),
        p99_ns: all.quantile_ns(0.99),
        p999_ns: all.quantile_ns(0.999),
        max_ns: all.max_ns(),
        reads: found.reads.count(),
        read_mean_ns: found.reads.mean_ns(),
        read_p99_ns: found.reads.quantile_ns(0.99),
        writes: found.writes.count(),
        write_mean_ns: found.writes.mean_ns(),
        write_p99_ns: found.writes.quantile_ns(0.99),
        throughput_per_s: found.throughput_per_s(),
        bytes_per_s: found.bytes_per_s(),
        finished_ns: found.last_ns,
        breakdown_ns: parts.map(|(name, sum)| (name, sum as f64 / count)).collect(),
        by_time: Some(all.by_time()),
    }
}

/// One line per device: those of an array each have their own.
fn devices(case: &Case, times: &Times) -> Vec<Device> {
    let stack = case.spec.stack.as_ref();
    let mut lines = Vec::new();
    for (number, device) in times.devices.iter().enumerate() {
        let own = stack.is_some_and(|stack| stack.per_tenant);
        let name = match number {
            0 if times.drive.is_some() => "drive".to_owned(),
            0 => "cache".to_owned(),
            _ if own => format!("backing of {}", case.spec.tenants[number - 1].name),
            _ => "backing".to_owned(),
        };
        let spec = stack.map(|stack| match &stack.front {
            Front::Device(cache) if number == 0 => cache,
            _ => &stack.backing,
        });
        // What a store was asked stands under `store`; here is what it asked of its device.
        let device = match (device.report.store(), device.report.members.first()) {
            (Some(_), Some(beneath)) => beneath,
            _ => device,
        };
        if device.report.members.is_empty() {
            lines.push(line(&name, spec, device, times.end_ns));
        }
        for (place, member) in device.report.members.iter().enumerate() {
            let name = format!("{name} {}", place + 1);
            lines.push(line(&name, spec, member, times.end_ns));
        }
    }
    lines
}

fn line(name: &str, spec: Option<&DeviceSpec>, device: &DeviceUse, end_ns: u64) -> Device {
    let (used, span_ns) = (&device.used, end_ns.max(1) as f64);
    let params = spec.and_then(|spec| spec.drive().ok());
    let written = Bytes(used.bytes[Op::Write as usize]);
    let of_flash = params.zip(device.report.flash());
    Device {
        name: name.to_owned(),
        model: spec.map(|spec| spec.model.clone()),
        reads: used.commands[Op::Read as usize],
        writes: used.commands[Op::Write as usize],
        read_bytes: used.bytes[Op::Read as usize],
        write_bytes: used.bytes[Op::Write as usize],
        busy: used.population.busy_ns() as f64 / span_ns,
        mean_inside: used.population.inside_ns() as f64 / span_ns,
        max_inside: used.population.max(),
        energy: device_energy(device, end_ns),
        head_time: device.report.head_time().map(head_time),
        flash: of_flash.map(|(params, found)| flash(&params, found, written, end_ns)),
    }
}

fn head_time(found: &HeadTime) -> DiskHeadTime {
    DiskHeadTime {
        total_ns: found.total_ns(),
        interval_ns: found.interval_ns(),
        peak_ns: found.peak_ns(),
        peak_disks: found.peak_disks(),
    }
}

/// Little's law: the mean number inside is the rate of arrivals times the mean response.
fn little(times: &Times) -> LittlesLaw {
    let total = times.total();
    let span_ns = times.end_ns.saturating_sub(times.warmup_ns).max(1) as f64;
    let span_s = span_ns / 1e9;
    let responses = total.responses();
    LittlesLaw {
        mean_inside: total.population.inside_ns() as f64 / span_ns,
        arrivals_per_s: responses.count() as f64 / span_s,
        mean_response_ns: responses.mean_ns(),
        max_inside: total.population.max(),
    }
}

/// Per tenant, per bin: requests, bytes, mean response.
fn series(times: &Times) -> ResponseSeries {
    let row = |bin: &Bin| {
        let mean = bin.response_ns as f64 / bin.requests.max(1) as f64;
        (bin.requests, bin.bytes, mean)
    };
    let bins = |tenant: usize| times.rates.bins(tenant).iter().map(row).collect();
    ResponseSeries {
        width_ns: times.rates.width_ns(),
        tenants: (0..times.tenants.len()).map(bins).collect(),
    }
}

/// The map and the use of channels; nothing for a first device that has none.
/// Throughput is what the host asked for; busy times contain the drive's own work.
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

/// Every change; nothing where no layout follows tenants.
pub fn tenancy(case: &Case, times: &Times) -> Option<Tenancy> {
    if times.channels.tenancy.is_empty() {
        return None;
    }
    Some(Tenancy {
        changes: times.channels.tenancy.iter().map(|event| change(case, event)).collect(),
    })
}

fn change(case: &Case, event: &Event) -> TenancyChange {
    let block = case.spec.cache.block.0;
    let bytes = |blocks: u32| u64::from(blocks) * block;
    let mut found = TenancyChange {
        time_ns: event.time_ns,
        tenant: case.spec.tenants[event.tenant].name.clone(),
        required_bytes: bytes(event.required.blocks),
        required_miss_ratio: event.required.miss_ratio,
        requested_bytes: event.requested_blocks * block,
        allocated_bytes: event.allocated_blocks * block,
        change: "left".to_owned(),
        groups: None,
        bucket_bytes: None,
        shared_bytes: None,
        missing_channels: None,
    };
    match &event.change {
        Change::Granted { channels, bucket_blocks, shared_blocks } => {
            found.change = "granted".to_owned();
            found.groups = Some(channels.clone());
            found.bucket_bytes = Some(bytes(*bucket_blocks));
            found.shared_bytes = Some(bytes(*shared_blocks));
        }
        Change::Refused(missing) => {
            found.change = "refused".to_owned();
            found.missing_channels = Some(*missing);
        }
        Change::Left => {}
    }
    found
}

/// Used over allocated; nothing where the division does not say what tenants make use of, nor in a
/// drive that is the machine, whose channels hold more than its cache.
/// Source: Wang et al. (oc-cache), V-B: what tenants make use of, by the word of the division, over
/// what is allocated to them. Left open there: channels are allocated whole; where all are common
/// it is the capacity of the cache; those lent to a pool are no tenant's. Where a layout follows
/// tenants both are summed over time, else they are those of the last division.
pub fn space_utilisation(case: &ResolvedCase<'_>, times: &Times) -> Option<f64> {
    if !times.channels.tenancy.is_empty() {
        return Some(over_time(&times.channels.tenancy, times.end_ns));
    }
    let required = &times.cache.required;
    if required.is_empty() || !case.needs.partitioner_needs(Need::Curve) || times.drive.is_some() {
        return None;
    }
    let used: u64 = required.iter().map(|need| u64::from(need.blocks)).sum();
    let allocated = match &times.channels.layout {
        None => u64::from(case.capacity_blocks),
        Some(map) => {
            let shift = case.spec.cache.block.0.trailing_zeros();
            let held = |group: &u32| {
                let group = times.channels.groups.get(*group as usize);
                group.map_or(0, |group| blocks_of(&group.range, shift).len() as u64)
            };
            let had = map.pools.iter().flatten().filter(|group| !map.lent.contains(group));
            had.map(held).sum()
        }
    };
    (allocated > 0).then(|| used as f64 / allocated as f64)
}

/// Requested over allocated space, both over time; 0 where nothing ever was allocated.
fn over_time(events: &[Event], end_ns: u64) -> f64 {
    let (mut requested, mut allocated) = (0.0, 0.0);
    for (index, event) in events.iter().enumerate() {
        let until = events.get(index + 1).map_or(end_ns, |next| next.time_ns);
        let span = until.saturating_sub(event.time_ns) as f64;
        requested += event.requested_blocks as f64 * span;
        allocated += event.allocated_blocks as f64 * span;
    }
    if allocated > 0.0 { requested / allocated } else { 0.0 }
}

/// `rooms.parquet`: `time_ns` is the window's end; one row group.
const SCHEMA: &str = "message rooms {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 own_blocks (UINT_64);
    REQUIRED INT64 common_blocks (UINT_64);
    REQUIRED INT64 elsewhere_blocks (UINT_64);
}";
/// Blocks that changed places on the cache device; nothing where none did.
pub fn migrations(case: &Case, times: &Times) -> Option<Migrations> {
    let sum = |count: fn(&Migrated) -> u64| times.channels.migrated.iter().map(count).sum::<u64>();
    if sum(|done| done.swaps + done.moves) == 0 {
        return None;
    }
    let named = case.spec.tenants.iter().zip(&times.channels.migrated);
    let tenant = |(tenant, done): (&TenantSpec, &Migrated)| TenantMigrations {
        name: tenant.name.clone(),
        swaps: done.swaps,
        moves: done.moves,
        bytes: done.bytes,
    };
    Some(Migrations { bytes: sum(|done| done.bytes), tenants: named.map(tenant).collect() })
}

/// Where tenants' blocks lay at the end and at the end of each window; nothing where channels are
/// not laid out.
pub fn regions(case: &Case, times: &Times) -> Option<BlockRegions> {
    let ((_, end), windows) = times.channels.regions.split_last()?;
    let blocks = |(tenant, held): (&TenantSpec, &RegionBlocks)| TenantRegions {
        name: tenant.name.clone(),
        own_blocks: held.private_blocks,
        common_blocks: held.shared_blocks,
        elsewhere_blocks: held.elsewhere_blocks,
    };
    let window = |(time_ns, held): &(u64, Vec<RegionBlocks>)| {
        let each = |count: fn(&RegionBlocks) -> u32| held.iter().map(count).collect::<Vec<u32>>();
        RegionWindow {
            time_ns: *time_ns,
            own_blocks: each(|held| held.private_blocks),
            common_blocks: each(|held| held.shared_blocks),
            elsewhere_blocks: each(|held| held.elsewhere_blocks),
        }
    };
    Some(BlockRegions {
        tenants: case.spec.tenants.iter().zip(end).map(blocks).collect(),
        windows: windows.iter().map(window).collect(),
    })
}

/// Writes the windows of all answers; returns whether there are any.
pub fn write_rooms(path: &Path, answers: &[CaseAnswer]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 7]> = Vec::new();
    for answer in answers {
        let regions = answer.timing.as_ref().and_then(|timing| timing.rooms.as_ref());
        let windows = regions.into_iter().flat_map(|regions| &regions.windows);
        for (number, window) in windows.enumerate() {
            let shared = window.common_blocks.iter().zip(&window.elsewhere_blocks);
            for (tenant, (own, (common, elsewhere))) in
                window.own_blocks.iter().zip(shared).enumerate()
            {
                let blocks = [own, common, elsewhere].map(|blocks| u64::from(*blocks));
                let [own, common, elsewhere] = blocks;
                let (case, number, tenant) = (answer.case as u64, number as u64, tenant as u64);
                rows.push([case, number, window.time_ns, tenant, own, common, elsewhere]);
            }
        }
    }
    write_numbers(path, SCHEMA, &mut rows)
}

/// What flash did in a replay of `end_ns` in which the host wrote so much to it.
pub(super) fn flash(params: &SsdParams, flash: &FlashStats, written: Bytes, end_ns: u64) -> Flash {
    let counters = &flash.counters;
    let empty = flash.preconditioned == "empty";
    Flash {
        preconditioned: flash.preconditioned.to_owned(),
        filled_share: if empty { 0.0 } else { params.occupancy },
        write_amplification: flash.write_amplification(),
        collections: flash.collections,
        moved_pages: flash.moved_pages,
        erases: counters.erases,
        host_reads: counters.reads.host,
        update_reads: counters.reads.update,
        map_misses: counters.reads.map,
        map_programs: counters.programs.map,
        host_programs: counters.programs.host,
        meta_programs: counters.programs.meta,
        unwritten_reads: counters.reads.unwritten,
        buffered_reads: counters.reads.buffered,
        multi_plane_reads: counters.multi_plane.reads,
        multi_plane_programs: counters.multi_plane.programs,
        multi_plane_erases: counters.multi_plane.erases,
        copy_backs: counters.copy_backs,
        suspends: counters.suspends,
        predictions: counters.predictions.taken,
        awaited_predictions: counters.predictions.awaited,
        predicting: share(flash.busy.controller_ns, end_ns),
        channels: shares(flash.busy.channel_ns.iter().copied(), end_ns),
        dies: dies(params, flash, end_ns),
        queues: queues(flash, end_ns),
        wear: wear(params, flash, written, end_ns),
    }
}

/// Part of a time, as a ratio.
pub(super) fn share(part_ns: u64, whole_ns: u64) -> f64 {
    part_ns as f64 / whole_ns.max(1) as f64
}

/// Shares of the time, each and together.
fn shares(busy_ns: impl Iterator<Item = u64>, end_ns: u64) -> BusyShares {
    let busy: Vec<f64> = busy_ns.map(|busy_ns| share(busy_ns, end_ns)).collect();
    BusyShares {
        min: busy.iter().copied().fold(1.0, f64::min),
        mean: busy.iter().sum::<f64>() / busy.len().max(1) as f64,
        max: busy.iter().copied().fold(0.0, f64::max),
        busy,
    }
}

/// Dies, or chips where the dies of one do not overlap: `unit` says which.
fn dies(params: &SsdParams, flash: &FlashStats, end_ns: u64) -> Dies {
    let (worked, cleaned) = (&flash.busy.unit_worked_ns, &flash.busy.unit_cleaned_ns);
    let all_ns = end_ns * worked.len() as u64;
    let stages = UnitStage::BUSY.map(|(stage, word)| (word, share(flash.stage_ns(stage), all_ns)));
    Dies {
        shares: shares(worked.iter().zip(cleaned).map(|(a, b)| a + b), end_ns),
        unit: if params.die_interleave { "die" } else { "chip" }.to_owned(),
        cleaning: share(cleaned.iter().sum(), all_ns),
        stages: stages.into_iter().collect(),
    }
}

/// Waits before dies, by what waited.
fn queues(flash: &FlashStats, end_ns: u64) -> Entries<Queue> {
    let queue = |class: QueueClass| {
        let waits = flash.waits(class);
        let queue = Queue {
            served: waits.left,
            mean_waiting: share(waits.area_ns, end_ns),
            max_waiting: waits.max_waiting,
            mean_wait_ns: waits.waited_ns as f64 / waits.left.max(1) as f64,
        };
        (class.word(), queue)
    };
    QueueClass::ALL.into_iter().map(queue).collect()
}

/// Erases of blocks, and what the replay means for the life of the drive.
fn wear(params: &SsdParams, flash: &FlashStats, written: Bytes, end_ns: u64) -> Wear {
    let found = flash.wear;
    let Life { cycles, drive_writes_per_day, rated } = params.life(flash, written, end_ns);
    Wear {
        min: found.min,
        mean: found.mean,
        max: found.max,
        stddev: found.deviation,
        levelling_moves: flash.counters.wear_moves,
        written_bytes: written.0,
        programmed_bytes: flash.counters.programs.total() * params.page.0,
        cycles,
        drive_writes_per_day,
        rated: rated.map(|rated| RatedLife {
            cycles: rated.cycles,
            used_share: rated.used_share,
            max_used_share: rated.max_used_share,
            life_days: rated.days,
            life_bytes: rated.host_bytes,
        }),
    }
}

/// Commands and bytes that a device read and wrote.
fn done(used: &Use) -> (u64, u64) {
    let both = |counts: &[u64; 4]| counts[Op::Read as usize] + counts[Op::Write as usize];
    (both(&used.commands), both(&used.bytes))
}

/// What a device spent by part, if it is known.
fn device_energy(device: &DeviceUse, end_ns: u64) -> Option<DeviceEnergy> {
    let joules = device.report.energy.joules()?;
    let (requests, bytes) = done(&device.used);
    let rates = rates(joules, end_ns, requests, bytes);
    Some(DeviceEnergy { rates, parts: device.report.energy.parts().iter().copied().collect() })
}

/// Joules as a power, and over what they were spent for; nothing where that is nothing.
fn rates(joules: f64, end_ns: u64, requests: u64, bytes: u64) -> EnergyRates {
    let each = |amount: f64| (amount > 0.0).then(|| joules / amount);
    EnergyRates {
        joules,
        watts: each(end_ns as f64 / 1e9),
        joules_per_request: each(requests as f64),
        joules_per_gib: each(bytes as f64 / f64::from(1 << 30)),
    }
}

/// What all devices spent whose power is known, over the requests of all tenants; how many devices
/// are not known is said.
fn total_energy(times: &Times) -> Option<TotalEnergy> {
    let devices: Vec<&DeviceUse> = times.devices.iter().flat_map(DeviceUse::leaves).collect();
    let known: Vec<f64> =
        devices.iter().filter_map(|device| device.report.energy.joules()).collect();
    if known.is_empty() {
        return None;
    }
    let total = times.total();
    let requests = total.responses().count();
    let rates = rates(known.iter().sum(), times.end_ns, requests, total.bytes);
    Some(TotalEnergy { rates, unknown_devices: devices.len() - known.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_partition::Requirement;

    #[test]
    fn space_is_weighed_by_time() {
        let event = |time_ns, requested_blocks, allocated_blocks| Event {
            time_ns,
            tenant: 0,
            required: Requirement::default(),
            change: Change::Left,
            requested_blocks,
            allocated_blocks,
        };
        let events = [event(0, 30, 100), event(0, 50, 100), event(10, 0, 0), event(20, 60, 100)];
        assert_eq!(over_time(&events, 30), (500.0 + 600.0) / 2000.0);
        assert_eq!(over_time(&[], 30), 0.0);
    }
}
