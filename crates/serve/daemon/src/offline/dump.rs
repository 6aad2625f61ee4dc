//! A list of what the devices hold.
//!
//! For: operators who look for a block, or for how much is dirty. Must never know: how it is
//! shown. Units: bytes.

use super::format::set_name;
use super::tally::volumes;
use crate::devices::{Devices, device_error};
use crate::error::LiveError;
use crate::plan::LivePlan;
use crate::volumes::name_of;
use cachewright_live::io::open::Access;
use cachewright_live::log::{OpenSet, RecoveredBlock, read_log};
use cachewright_result::live::{CachedBlock, LiveDumpAnswer};
use cachewright_result::written::Written;

/// Lists what the devices of a plan hold; each block only if `blocks`. Errors: they hold no set, or
/// cannot be read.
pub fn dump(plan: &LivePlan, blocks: bool) -> Result<LiveDumpAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, Access::Read)?;
    let open = devices.any_set(plan)?;
    let found = read_log(&mut devices.io, &open).map_err(|error| device_error(plan, &error))?;
    let volumes = volumes(&open.superblock.volumes, &open.set, &found.blocks, None);
    let listed = |block: &RecoveredBlock| cached_block(plan, &devices, &open, block);
    let listed = blocks.then(|| found.blocks.iter().map(listed).collect());
    Ok(LiveDumpAnswer {
        written: Written::here(),
        set: set_name(open.set.id()),
        volumes,
        block_bytes: open.set.block_bytes() as u64,
        blocks: listed,
    })
}

fn cached_block(
    plan: &LivePlan,
    devices: &Devices,
    open: &OpenSet,
    block: &RecoveredBlock,
) -> CachedBlock {
    let (segment, page) = open.set.locate(block.place);
    let start = open.set.page(segment, page);
    let device = devices.cache.iter().position(|file| *file == start.file);
    let path = device.and_then(|device| plan.serve.devices.get(device));
    CachedBlock {
        volume: name_of(&open.superblock.volumes, block.volume),
        offset: block.number.saturating_mul(open.set.block_bytes() as u64),
        dirty: block.dirty,
        decision: block.version.decision(),
        device: path.map(|path| path.display().to_string()).unwrap_or_default(),
        device_offset: start.offset,
    }
}
