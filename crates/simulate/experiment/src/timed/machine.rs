//! The machine of a job: the slots of its cache device by `cache.layout`, the drive that is the
//! whole machine, the log on its backing devices.
//!
//! Units: channels, blocks of the cache, bytes; pages and segments of a log. Layouts speak of what
//! the drive shows as one, a channel or a group of them; stack files of channels.

use super::answer::share;
use crate::ExperimentError;
use crate::case::Case;
use crate::job::Job;
use crate::spec::{Front, StackSpec};
use crate::wa::{label, log};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::drive::layout_of;
use cachewright_device::ssd::host::Port;
use cachewright_device::ssd::params::ChannelGroups;
use cachewright_device::store::{LogStore, StoreError, StoreStats};
use cachewright_device::{AnyDevice, Exposed};
use cachewright_partition::Requirement;
use cachewright_partition::layout::{
    ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, Wish, boxed, entry,
};
use cachewright_result::devices::CachedDrive;
use cachewright_result::devices::Flash;
use cachewright_result::devices::LinkBusy;
use cachewright_result::devices::Store;
use cachewright_stack::kinds::ChannelWish;
use cachewright_system::Control;
use cachewright_system::event_loop::{DriveTotals, Times};
use cachewright_system::machines::{ChannelTenancy, Slots, blocks_of};
use cachewright_system::ssd::{AnyCachedDrive, DataCacheParams, DriveDescription, build};
use cachewright_types::Bytes;
use std::ops::Range;

/// Whether a case keeps tenants' blocks apart by channel.
fn keeps_apart(case: &Case) -> bool {
    let found = entry(&case.spec.cache.layout.name);
    found.is_ok_and(|entry| !entry.needs.is_empty())
}

/// The slots of a job on a cache device that shows `exposed`, with the map they follow; quotas are
/// bounded by what the map has room for. Errors: the refusal, by key and value.
pub(super) fn slots(
    job: &Job<'_>,
    stack: &StackSpec,
    exposed: &[Exposed],
    divided: Option<(&mut Control, &mut Quotas)>,
) -> Result<BlockLayout, String> {
    let (case, spare) = (job.case, stack.machine.spare_blocks);
    let (shift, total) = (case.spec.cache.block.0.trailing_zeros(), job.capacity_blocks);
    let Some((control, quotas)) = divided.filter(|_| keeps_apart(case)) else {
        let wanted = total.saturating_add(spare);
        let slots = match exposed {
            [] | [_] => Slots::plain(wanted),
            channels => Slots::striped(channels, shift, wanted),
        };
        if slots.count() < wanted {
            let found = Bytes(u64::from(slots.count()) << shift);
            return Err(super::small_cache(found, Bytes(u64::from(wanted) << shift)));
        }
        return Ok(BlockLayout { slots, map: None, tenancy: None });
    };
    if exposed.len() < 2 {
        return Err(format!(
            "`cache.layout`: found `{}`, expected `striped` on a cache device that shows no \
             channels (`device.cache.channel_groups = \"each\"` of a drive shows them)",
            case.spec.cache.layout.name
        ));
    }
    let pools = quotas.pools_of(case.spec.tenants.len());
    let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
    let blocks = exposed.iter().map(|range| blocks_of(range, shift).len() as u32).collect();
    let channels = ChannelSizes { blocks, total_blocks: total };
    let groups: Vec<&[u32]> = exposed.iter().map(|range| range.channels.as_slice()).collect();
    let needs = needs(control.required(), &each, spare, &absent(case));
    let (layout, map) = decide(case, &groups, &channels, &needs)?;
    if layout.follows_tenants() && !matches!(quotas, Quotas::PerTenant(_)) {
        return Err(format!(
            "`cache.partition`: found `{}`, expected one that gives each tenant a quota, such as \
             `hull`, with `cache.layout = \"{}\"`",
            case.spec.cache.partition.name, case.spec.cache.layout.name
        ));
    }
    if let Some((index, missing)) = layout.refused().first() {
        return Err(too_small(case, *index, needs[*index].need_blocks, *missing));
    }
    let follows = layout.follows_tenants();
    let limits: Vec<u32> =
        (0..each.len()).map(|index| map.limit_blocks(index).saturating_sub(spare)).collect();
    let may_cut = layout.may_cut() && matches!(quotas, Quotas::PerTenant(_));
    if let Some(index) = (0..each.len()).find(|index| each[*index] > limits[*index] && !may_cut) {
        let whole = pools.iter().filter(|pool| **pool == pools[index]).count() > 1;
        return Err(too_few(index, limits[index], each[index], whole));
    }
    control.bound(limits);
    *quotas = control.within(quotas.clone());
    let slots = Slots::laid_out(&map, exposed, shift, spare);
    let tenancy = follows.then(|| {
        let tenants = case.spec.tenants.iter();
        let stays: Vec<(u64, bool)> =
            tenants.map(|tenant| (tenant.start.0, tenant.stop.is_some())).collect();
        ChannelTenancy::new(layout, map.clone(), channels, spare, &stays, control.required())
    });
    Ok(BlockLayout { slots, map: Some(map), tenancy })
}

/// Where cached blocks lie.
pub(super) struct BlockLayout {
    /// The slots of the cache device.
    pub slots: Slots,
    /// The map they follow at the start.
    pub map: Option<ChannelMap>,
    /// Who comes and goes, where the layout follows that.
    pub tenancy: Option<ChannelTenancy>,
}

/// Who is not there at the start, where the layout of a case follows tenants.
pub(super) fn absent(case: &Case) -> Vec<bool> {
    let named = &case.spec.cache.layout;
    let follows = boxed(&named.name, &named.pairs).is_ok_and(|layout| layout.follows_tenants());
    let tenants = case.spec.tenants.iter().filter(|_| follows);
    tenants.map(|tenant| tenant.start.0 > 0).collect()
}

/// What a layout is told that a tenant needs.
#[derive(Clone, Copy, Debug, Default)]
struct TenantNeed {
    absent: bool,
    quota_blocks: u32,
    need_blocks: u32,
    miss_ratio: f64,
}

/// Each tenant's quota, what it makes use of and the blocks beside it; all of its quota where no
/// division says more.
fn needs(required: &[Requirement], quotas: &[u32], spare: u32, absent: &[bool]) -> Vec<TenantNeed> {
    let need = |(index, quota_blocks): (usize, &u32)| {
        let all = Requirement { blocks: *quota_blocks, miss_ratio: 0.0 };
        let Requirement { blocks, miss_ratio } = required.get(index).copied().unwrap_or(all);
        let need_blocks = blocks.saturating_add(spare);
        let absent = absent.get(index).copied().unwrap_or(false);
        TenantNeed { absent, quota_blocks: *quota_blocks, need_blocks, miss_ratio }
    };
    quotas.iter().enumerate().map(need).collect()
}

fn too_small(case: &Case, tenant: usize, need_blocks: u32, missing: u32) -> String {
    format!(
        "`tenant[{}]`: found no channels for the {need_blocks} blocks that `{}` needs with \
         `machine.spare_blocks`, expected {missing} more channels (or fewer blocks: \
         `cache.capacity`, or `least_slope` of `hull`)",
        tenant + 1,
        case.spec.tenants[tenant].name
    )
}

fn too_few(tenant: usize, limit: u32, quota: u32, whole: bool) -> String {
    let why = if whole { " (`cache.partition` lets it have all of a pool it shares)" } else { "" };
    format!(
        "`tenant[{}].channels`: found room for {limit} blocks beside `machine.spare_blocks`, \
         expected room for its quota of {quota}{why}",
        tenant + 1
    )
}

/// Asks the layout about groups of channels.
fn decide(
    case: &Case,
    groups: &[&[u32]],
    channels: &ChannelSizes,
    needs: &[TenantNeed],
) -> Result<(Box<dyn ChannelLayout>, ChannelMap), String> {
    let (named, tenants) = (&case.spec.cache.layout, &case.spec.tenants);
    let mut wishes = Vec::new();
    for (index, tenant) in tenants.iter().enumerate() {
        let wish = tenant.channels.as_ref().map(|ChannelWish(wish)| in_groups(wish, groups));
        let refuse = |words| format!("`tenant[{}].channels`: {words}", index + 1);
        wishes.push(wish.transpose().map_err(refuse)?);
    }
    let view =
        |((tenant, wish), need): ((&crate::spec::TenantSpec, _), &TenantNeed)| LayoutTenant {
            weight: tenant.weight,
            quota_blocks: need.quota_blocks,
            need_blocks: need.need_blocks,
            miss_ratio: need.miss_ratio,
            absent: need.absent,
            wish: Option::as_ref(wish),
        };
    let views: Vec<LayoutTenant> = tenants.iter().zip(&wishes).zip(needs).map(view).collect();
    let mut layout =
        boxed(&named.name, &named.pairs).map_err(|error| format!("`cache.layout`: {error}"))?;
    let map = layout.lay_out(&views, channels).map_err(|refusal| match refusal.tenant {
        Some(tenant) => format!("`tenant[{}].channels`: {refusal}", tenant + 1),
        None => format!("`cache.layout`: {refusal}"),
    })?;
    debug_assert_eq!(map.audit(&views, channels), Ok(()));
    Ok((layout, map))
}

/// A wish for channels as one for groups of them.
fn in_groups(wish: &Wish, groups: &[&[u32]]) -> Result<Wish, String> {
    match wish {
        Wish::Count(count) => {
            let width = groups.first().map_or(1, |group| group.len()).max(1) as u32;
            let alike = groups.iter().all(|group| group.len() as u32 == width);
            if alike && count.is_multiple_of(width) {
                Ok(Wish::Count(count / width))
            } else {
                Err(format!("found {count}, expected whole groups of the drive's channels"))
            }
        }
        Wish::Channels(wanted) => {
            let mut chosen = Vec::new();
            for channel in wanted {
                let found = groups.iter().position(|group| group.contains(channel));
                let Some(index) =
                    found.filter(|index| groups[*index].iter().all(|c| wanted.contains(c)))
                else {
                    return Err(format!(
                        "found {wanted:?}, expected whole groups of the drive's channels"
                    ));
                };
                if groups[index].first() == Some(channel) {
                    chosen.push(index as u32);
                }
            }
            Ok(Wish::Channels(chosen))
        }
    }
}

/// What a drive that is the whole machine becomes under a layout.
pub(super) struct Grouped {
    /// The drive, with a group of channels for each tenant.
    pub params: SsdParams,
    /// Each tenant's group.
    pub map: ChannelMap,
    /// Each tenant's bytes of the drive.
    pub ranges: Vec<Range<u64>>,
}

/// The drive of a case whose layout keeps tenants apart on it; nothing for other cases.
pub(super) fn grouped(case: &Case, stack: &StackSpec) -> Result<Option<Grouped>, String> {
    if !matches!(stack.front, Front::DataCache(_)) || !keeps_apart(case) {
        return Ok(None);
    }
    let mut params = stack.backing.drive()?;
    let every: Vec<u32> = (0..params.channels).collect();
    let groups: Vec<&[u32]> = every.iter().map(std::slice::from_ref).collect();
    // What tenants hold in flash is no quota of the data cache.
    let channels = ChannelSizes { blocks: vec![1; every.len()], total_blocks: 0 };
    let (_, map) =
        decide(case, &groups, &channels, &vec![TenantNeed::default(); case.spec.tenants.len()])?;
    let mut lists = map.pools.clone();
    let used = |channel: &u32| map.pools.iter().any(|pool| pool.contains(channel));
    let rest: Vec<u32> = every.iter().copied().filter(|channel| !used(channel)).collect();
    lists.extend(Some(rest).filter(|rest| !rest.is_empty()));
    params.channel_groups = ChannelGroups::Lists(lists);
    let laid_out = layout_of(&params).map_err(|error| format!("`device.ssd`: {error}"))?;
    let exposed = laid_out.exposed();
    let pool_of = |tenant: usize| map.tenants[tenant].first().map_or(0, |share| share.pool);
    let ranges =
        (0..map.tenants.len()).map(|tenant| exposed[pool_of(tenant)].bytes.clone()).collect();
    let pools = (0..map.pools.len() as u32).map(|pool| vec![pool]).collect();
    Ok(Some(Grouped { params, ranges, map: ChannelMap { pools, ..map } }))
}

/// A drive, the control loop of its cache, and the map of its channels.
type Controlled = (Box<dyn AnyCachedDrive>, Option<Control>, Option<ChannelMap>);

impl Job<'_> {
    /// The idle drive of the self. A job without a cache reads and writes flash only.
    pub(super) fn drive(
        &self,
        stack: &StackSpec,
        axes: &DataCacheParams,
    ) -> Result<Controlled, ExperimentError> {
        let spec = &self.case.spec;
        let refuse = |message| self.case.refuse(message);
        let (params, map) = match grouped(self.case, stack).map_err(refuse)? {
            Some(grouped) => (grouped.params, Some(grouped.map)),
            None => (stack.backing.drive().map_err(refuse)?, None),
        };
        let tenants = spec.tenants.iter();
        let ports: Vec<Port> = tenants
            .map(|tenant| Port {
                queue_depth: params.queue_depth,
                weight: tenant.weight.round().clamp(1.0, 255.0) as u32,
            })
            .collect();
        let (control, quotas) = match self.only {
            Some(_) => (None, Quotas::Shared(self.capacity_blocks)),
            None => {
                let mut control = self.control()?;
                let quotas = control.first();
                (Some(control), quotas)
            }
        };
        let off = self.capacity_blocks == 0;
        let mode = if off { WriteMode::WriteAround } else { spec.cache.write };
        let axes = DataCacheParams { read_fill: axes.read_fill && !off, ..axes.clone() };
        let policy = &spec.cache.policy;
        let drive = build(&DriveDescription {
            params: &params,
            ports: &ports,
            policy: (&policy.name, &policy.pairs),
            code: self.case.caching.foreign.as_ref(),
            quotas: &quotas,
            mode,
            axes: &axes,
            seed: spec.seed.derive("ssd"),
        });
        let drive = drive.map_err(|error| match error {
            cachewright_system::ssd::BuildError::Policy(error) => {
                self.case.refuse(format!("`cache.policy`: {error}"))
            }
            cachewright_system::ssd::BuildError::Drive(error) => {
                self.case.refuse(format!("`device.ssd`: {error}"))
            }
        })?;
        let mut drive = drive;
        if let Some((control, selector)) =
            control.as_ref().and_then(|control| Some((control, control.victim_selector()?)))
        {
            drive.follow(control.total_blocks(), selector);
        }
        Ok((drive, control, map))
    }
}

/// What a drive that is the whole machine did.
pub(super) fn cached_drive(work: &DriveTotals, flash: Flash, end_ns: u64) -> CachedDrive {
    let cache = &work.cache;
    let [to_drive, to_host] = work.link_busy_ns.map(|busy_ns| share(busy_ns, end_ns));
    CachedDrive {
        flash,
        destaged_pages: cache.destaged_pages,
        read_filled_pages: cache.filled_pages,
        held_writes: cache.held_writes,
        given_up_pages: cache.given_up_pages,
        most_outgoing_bytes: cache.max_outgoing.0,
        link_busy: LinkBusy { to_drive, to_host },
    }
}

impl Job<'_> {
    /// The device with that number as the job's machine has it: under a store, if that keeps one.
    pub(super) fn stored(
        &self,
        stack: &StackSpec,
        number: usize,
        backing_of: &[usize],
        device: AnyDevice,
    ) -> Result<AnyDevice, ExperimentError> {
        let spec = &self.case.spec;
        let (Some(settings), Some(flash)) = (&stack.store, &spec.flash) else {
            return Ok(device);
        };
        let on_it = self.workload.placed()?.volumes.tenants.iter().zip(backing_of);
        let ends = on_it.filter(|(_, own)| **own == number).map(|(extent, _)| extent.end);
        let blocks = ends.max().unwrap_or(0) / spec.cache.block.0;
        if blocks == 0 {
            return Ok(device);
        }
        let refuse = |message| self.case.refuse(message);
        let block_pages = (spec.cache.block.0 / flash.page.0) as u32;
        let what = "what its tenants' volumes take";
        let pages = flash.logical_pages(blocks, block_pages, what).map_err(refuse)?;
        let log = log(self.case, flash, pages)?;
        let store = LogStore::new(device, log, settings).map_err(|error| match error {
            StoreError::TooSmall { .. } => refuse(format!(
                "`device.backing`: {error} of {pages} logical pages and {} over-provisioning",
                flash.over_provisioning.text()
            )),
            error => refuse(format!("`flash`: {error}")),
        })?;
        Ok(Box::new(store))
    }
}

/// Refuses times of a store that could not go on.
pub(super) fn check(times: Times) -> Result<Times, ExperimentError> {
    let stores = times.devices.iter().filter_map(|device| device.report.store());
    match stores.filter_map(|store| store.fault.as_ref()).next() {
        Some(fault) => {
            Err(ExperimentError::Flash(format!("the store of a backing device: {fault}")))
        }
        None => Ok(times),
    }
}

/// What the stores did, all together; nothing without one.
pub(super) fn store(case: &Case, times: &Times) -> Option<Store> {
    let flash = case.spec.flash.as_ref()?;
    let mut all = StoreStats::default();
    let stores: Vec<&StoreStats> =
        times.devices.iter().filter_map(|device| device.report.store()).collect();
    stores.iter().for_each(|store| all.add(store));
    let counts = &all.counts;
    let appended_bytes = (all.appended_pages * flash.page.0) as f64;
    (!stores.is_empty()).then(|| Store {
        separation: label(&flash.separation),
        reclaim: label(&flash.reclaim),
        op: flash.over_provisioning.0,
        page_bytes: flash.page.0,
        superblock_bytes: flash.superblock.0,
        logical_pages: all.logical_pages,
        segments: all.segments,
        write_amplification: counts.write_amplification(),
        drive_writes: counts.user_pages as f64 / all.logical_pages.max(1) as f64,
        user_pages: counts.user_pages,
        moved_pages: counts.moved_pages,
        meta_pages: counts.meta_pages,
        collections: counts.collections,
        resets: all.resets,
        held_pages: all.held_pages,
        appends: all.appends,
        mean_append_bytes: appended_bytes / all.appends.max(1) as f64,
        reads: all.reads.requests,
        move_reads: all.reads.moves,
        update_reads: all.reads.update,
        meta_reads: all.reads.meta,
        memory_reads: all.reads.memory,
        unwritten_reads: all.reads.unwritten,
    })
}
