//! A list of what the devices hold.
//!
//! For: operators who look for a block, or for how much is dirty. Must never know: how it is
//! shown. Units: bytes.

use super::tally::volumes;
use crate::devices::{Devices, set_error};
use crate::error::LiveError;
use crate::plan::LivePlan;
use crate::volumes::{names, unnamed};
use cachewright_live::io::open::FileAccess;
use cachewright_live::log::format::VolumeId;
use cachewright_live::log::{DeviceSet, RecoveredBlock, read_log};
use cachewright_result::live::{CachedBlock, LiveDumpAnswer};
use cachewright_result::written::Written;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Lists what the devices of a plan hold; each block only if `blocks`. Errors: they hold no set, or
/// cannot be read.
pub fn dump(plan: &LivePlan, blocks: bool) -> Result<LiveDumpAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Read)?;
    let open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    let found =
        read_log(&mut devices.io, &open).map_err(|error| set_error(plan, &paths, &error))?;
    let volumes = volumes(&open.superblock, &open.set, &found.blocks, None);
    let names = names(&open.superblock.volumes);
    let listed = |block: &RecoveredBlock| cached_block(&open.set, (&names, &paths), block);
    let listed = blocks.then(|| found.blocks.iter().map(listed).collect());
    Ok(LiveDumpAnswer {
        written: Written::here(),
        set: open.set.id().name(),
        bypassed: open.superblock.bypassed.is_some(),
        volumes,
        block_bytes: open.set.block_bytes() as u64,
        blocks: listed,
    })
}

fn cached_block(
    set: &DeviceSet,
    (names, paths): (&BTreeMap<VolumeId, &str>, &[PathBuf]),
    block: &RecoveredBlock,
) -> CachedBlock {
    let (segment, page) = set.locate(block.place);
    let name = names.get(&block.volume);
    CachedBlock {
        volume: name.map_or_else(|| unnamed(block.volume), |name| (*name).to_owned()),
        offset: block.number.saturating_mul(set.block_bytes() as u64),
        dirty: block.dirty,
        decision: block.version.decision(),
        device: paths[set.device(segment)].display().to_string(),
        device_offset: set.page(segment, page).offset,
    }
}
