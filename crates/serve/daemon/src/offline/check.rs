//! A check of everything that the devices hold.
//!
//! For: knowing that a cache is whole. Must never know: how damage is repaired. Units: bytes,
//! segments. Superblocks, headers, footers, groups and the content of all blocks are read, and
//! backing devices are compared with what a start compares them with.

use super::tally::{damaged, unreadable_content, volumes};
use crate::devices::{Devices, set_error};
use crate::error::LiveError;
use crate::holding::is_held_elsewhere;
use crate::identity::changed_device;
use crate::plan::LivePlan;
use cachewright_live::blocks::ServedVolume;
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::{FileId, Io, batch};
use cachewright_live::log::format::{SUPERBLOCK_BYTES, Superblock};
use cachewright_live::log::{
    DeviceSet, FoundLog, OpenSet, SegmentId, SegmentUse, UnreadablePage, read_log,
};
use cachewright_result::live::{
    LiveChangedBacking, LiveCheckAnswer, LiveDevice, LiveUnreadablePage,
};
use cachewright_result::written::Written;
use std::path::Path;

/// Checks the devices of a plan. Errors: they hold no set, or cannot be read.
pub fn check(plan: &LivePlan) -> Result<LiveCheckAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Read)?;
    let open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    let found =
        read_log(&mut devices.io, &open).map_err(|error| set_error(plan, &paths, &error))?;
    let held_elsewhere = is_held_elsewhere(plan, &mut devices.io, &open);
    let changed_backings = changed_backings(plan, &mut devices, &open, &found);
    let set = &open.set;
    let damaged = damaged(&mut devices.io, set, &found.blocks);
    let mut unreadable = found.unreadable.clone();
    unreadable.extend(unreadable_content(&mut devices.io, set, &damaged));
    let volumes = volumes(&open.superblock, set, &found.blocks, Some(&damaged));
    let mut checked = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        checked.push(device(&mut devices.io, (set, index), path, &found));
    }
    let superblocks_whole = checked.iter().all(|device| device.superblocks == 2);
    let structures = found.damaged_footers + found.damaged_headers;
    let read_only = open.superblock.has_lost || found.has_lost();
    let readable = unreadable.is_empty();
    let whole = damaged.is_empty() && superblocks_whole && structures == 0 && readable;
    let page = |page: &UnreadablePage| LiveUnreadablePage {
        path: paths[page.device].display().to_string(),
        offset: page.offset,
        error: page.error.to_string(),
    };
    Ok(LiveCheckAnswer {
        written: Written::here(),
        set: set.id().name(),
        sound: whole && !read_only,
        bypassed: open.superblock.bypassed.is_some(),
        devices: checked,
        volumes,
        void_groups: found.void_groups,
        torn_footers: found.torn_footers,
        damaged_footers: found.damaged_footers,
        damaged_headers: found.damaged_headers,
        lost_groups: found.lost_groups,
        hides_groups: found.hides_groups,
        unreadable_pages: unreadable.iter().map(page).collect(),
        read_only,
        held_elsewhere,
        changed_backings,
    })
}

/// The volumes in the cache whose backing devices are not those that it knows, or cannot be looked
/// at.
fn changed_backings(
    plan: &LivePlan,
    devices: &mut Devices,
    open: &OpenSet,
    found: &FoundLog,
) -> Vec<LiveChangedBacking> {
    let mut changed = Vec::new();
    for planned in &plan.volumes {
        let known = open.superblock.volumes.iter().find(|volume| volume.name == planned.name);
        let Some(known) = known else { continue };
        let compared = open_file(&planned.backing, FileAccess::Read).map_err(LiveError::from);
        let compared = compared.and_then(|file| {
            let backing = devices.io.add_file(file);
            let bytes = devices.io.file_bytes(backing);
            let served = ServedVolume { id: known.id, bytes, backing };
            changed_device(&plan.of_one(planned), devices, open, served, found)
        });
        let why = compared.unwrap_or_else(|error| Some(error.to_string()));
        changed.extend(why.map(|why| LiveChangedBacking {
            name: planned.name.clone(),
            path: planned.backing.display().to_string(),
            why,
        }));
    }
    changed
}

fn device(
    io: &mut impl Io,
    (set, index): (&DeviceSet, usize),
    path: &Path,
    found: &FoundLog,
) -> LiveDevice {
    let own = (0..set.segments()).map(SegmentId::new).filter(|id| set.device(*id) == index);
    let mut counts = [0_u64; 3];
    for id in own {
        counts[match found.segments[id.index()].usage {
            SegmentUse::Free | SegmentUse::Emptied => 0,
            SegmentUse::Sealed => 1,
            SegmentUse::Begun | SegmentUse::Full => 2,
        }] += 1;
    }
    let [free_segments, sealed_segments, open_segments] = counts;
    let file = set.files()[index];
    LiveDevice {
        path: path.display().to_string(),
        bytes: io.file_bytes(file),
        superblocks: valid_superblocks(io, file),
        free_segments,
        sealed_segments,
        open_segments,
    }
}

/// Copies of a device's superblock that are valid.
pub fn valid_superblocks(io: &mut impl Io, file: FileId) -> u64 {
    let ranges = [0, 1].map(|copy| (file, Superblock::offset(copy), SUPERBLOCK_BYTES));
    let copies = batch::read_pages(io, &ranges).unwrap_or_default();
    copies.iter().filter(|copy| Superblock::decode(&copy.data).is_ok()).count() as u64
}
