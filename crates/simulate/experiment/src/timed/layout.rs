//! From `cache.layout` to slots of the cache device, and to groups of a drive's channels.
//!
//! For: asking the layout with what the device shows, refusing what does not fit by key and value.
//! Must never know: how a layout decides. Units: channels, blocks of the cache, bytes. Layouts
//! speak of what the drive shows as one, a channel or a group of them; stack files of channels.

use crate::case::Case;
use crate::job::Job;
use crate::spec::{Front, StackSpec};
use cachewright_cache::Quotas;
use cachewright_device::Exposed;
use cachewright_device::ssd::SsdParams;
use cachewright_device::ssd::direct::layout_of;
use cachewright_device::ssd::params::ChannelGroups;
use cachewright_partition::Requirement;
use cachewright_partition::layout::{
    ChannelLayout, ChannelMap, ChannelSizes, LayoutTenant, Wish, boxed, entry,
};
use cachewright_stack::kinds::ChannelWish;
use cachewright_system::Control;
use cachewright_system::machines::{ChannelTenancy, Slots, blocks_of};
use cachewright_types::Bytes;
use std::ops::Range;

/// Whether a case keeps tenants' blocks apart by channel.
pub(super) fn keeps_apart(case: &Case) -> bool {
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
