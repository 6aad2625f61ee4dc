//! The layout of a stack on the devices of its cache: a device is a channel.
//!
//! For: the layout of `decide/partition`, as a simulation of the same stack has it, and refusals
//! by key and value. Must never know: how a layout decides, segments. Units: blocks of the cache,
//! devices as the stack lists them. A device holds as many blocks as a log on it alone would, so
//! that several of them hold at least the sum.

use crate::honoured::LiveStack;
use cachewright_cache::Quotas;
use cachewright_control::Control;
use cachewright_live::blocks::{DeviceLayout, max_blocks};
use cachewright_live::io::FileId;
use cachewright_live::log::{DeviceSet, LogSettings};
use cachewright_partition::layout::{ChannelMap, ChannelSizes, LayoutTenant, Wish, boxed};
use cachewright_stack::kinds::ChannelWish;
use cachewright_types::Bytes;

/// The layout in which all devices hold all tenants' blocks.
const STRIPED: &str = "striped";
/// Layouts that a live server carries out: in them a tenant shares its devices with no other, and
/// has them while it is served.
pub const SERVED: [&str; 3] = [STRIPED, "dedicated", "flashblox"];

/// Which devices hold which tenants' blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaidOut {
    /// For the log.
    pub devices: DeviceLayout,
    /// The devices of each tenant, as the stack lists them; empty where all hold all.
    pub of_tenants: Vec<Vec<u32>>,
    /// Most blocks of each tenant; empty where nothing but the capacity bounds them.
    pub limits: Vec<u32>,
}

/// Lays the tenants of a stack out on the devices of a set, which the stack lists as `listed`.
/// `first` is how the cache is divided at first. Errors: the refusal, by key and value.
pub fn laid_out(
    stack: &LiveStack,
    (set, settings, listed): (&DeviceSet, &LogSettings, &[FileId]),
    (control, quotas): &(Control, Quotas),
) -> Result<LaidOut, String> {
    let named = &stack.cache.layout;
    if named.name == STRIPED {
        return Ok(LaidOut::default());
    }
    let pools = quotas.pools_of(stack.tenants.len());
    let each: Vec<u32> = pools.iter().map(|pool| quotas.blocks()[usize::from(*pool)]).collect();
    let views: Vec<LayoutTenant<'_>> =
        (0..each.len()).map(|tenant| view(stack, control, tenant, each[tenant])).collect();
    let device_segments = set.segments() / listed.len().max(1);
    let each_blocks = max_blocks(set, settings, device_segments).min(u32::MAX.into()) as u32;
    let channels = ChannelSizes {
        blocks: vec![each_blocks; listed.len()],
        total_blocks: control.total_blocks(),
    };
    let mut layout = boxed(&named.name, &named.pairs).map_err(|error| error.to_string())?;
    let map = layout.lay_out(&views, &channels).map_err(|refusal| match refusal.tenant {
        Some(tenant) => format!("`tenant[{}].channels`: {refusal}", tenant + 1),
        None => format!("`cache.layout`: {refusal}; a device of the cache is a channel"),
    })?;
    debug_assert_eq!(map.audit(&views, &channels), Ok(()));
    let limits: Vec<u32> = (0..each.len()).map(|tenant| map.limit_blocks(tenant)).collect();
    let may_cut = layout.may_cut() && matches!(quotas, Quotas::PerTenant(_));
    if let Some(tenant) = (0..each.len()).find(|tenant| each[*tenant] > limits[*tenant])
        && !may_cut
    {
        let is_shared = pools.iter().filter(|pool| **pool == pools[tenant]).count() > 1;
        return Err(too_few(stack, tenant, (limits[tenant], each[tenant]), is_shared));
    }
    let of_tenant = |tenant| map.pools.get(pool_of_tenant(&map, tenant)).cloned();
    let of_tenants = (0..each.len()).map(|tenant| of_tenant(tenant).unwrap_or_default()).collect();
    Ok(LaidOut { devices: pools_of_devices(&map, set, listed), of_tenants, limits })
}

/// What a layout may know of a tenant.
fn view<'a>(
    stack: &'a LiveStack,
    control: &Control,
    tenant: usize,
    quota_blocks: u32,
) -> LayoutTenant<'a> {
    let spec = &stack.tenants[tenant];
    let required = control.required().get(tenant);
    LayoutTenant {
        weight: spec.weight,
        quota_blocks,
        need_blocks: required.map_or(quota_blocks, |required| required.blocks),
        miss_ratio: required.map_or(0.0, |required| required.miss_ratio),
        absent: false,
        wish: spec.channels.as_ref().map(|ChannelWish(wish): &ChannelWish| -> &Wish { wish }),
    }
}

/// The pool of a tenant: layouts that are served give it one.
fn pool_of_tenant(map: &ChannelMap, tenant: usize) -> usize {
    map.tenants[tenant].first().map_or(0, |share| share.pool)
}

/// The pools of a map, each with one tenant. Devices of no tenant are a pool of their own.
fn pools_of_devices(map: &ChannelMap, set: &DeviceSet, listed: &[FileId]) -> DeviceLayout {
    let pool_of = |file: &FileId| {
        let channel = listed.iter().position(|other| other == file);
        let channel = channel.unwrap_or_default() as u32;
        let owner = map.pools.iter().position(|pool| pool.contains(&channel));
        owner.unwrap_or(map.pools.len())
    };
    let devices = set.files().iter().map(pool_of).collect();
    let tenants = (0..map.tenants.len()).map(|tenant| pool_of_tenant(map, tenant)).collect();
    DeviceLayout { devices, tenants }
}

fn too_few(
    stack: &LiveStack,
    tenant: usize,
    (limit, quota): (u32, u32),
    is_shared: bool,
) -> String {
    let bytes = |blocks: u32| Bytes(u64::from(blocks) * stack.cache.block.0);
    let why = match is_shared {
        true => " (`cache.partition` lets it have all of a pool it shares)",
        false => "",
    };
    format!(
        "`tenant[{}].channels`: found room for `{}` on the devices of `{}`, expected room for its \
         quota of `{}`{why}",
        tenant + 1,
        bytes(limit),
        stack.tenants[tenant].name,
        bytes(quota)
    )
}
