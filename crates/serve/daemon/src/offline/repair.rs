//! Repair: what is damaged is written again from what is whole, or dropped.
//!
//! For: devices that a check found damaged. Must never know: backing devices. Units: bytes, blocks.
//! Damaged clean blocks are dropped: the backing device has them. Damaged dirty blocks stay, and
//! reads of them fail, until they are overwritten or their loss is accepted. Where content that was
//! durable is gone, exports are read-only until a repair.

use super::check::valid_superblocks;
use super::notes::{NoteLog, runs};
use super::tally::damaged;
use super::writeback::VolumeChanges;
use crate::devices::{Devices, set_error};
use crate::error::LiveError;
use crate::holding::Holding;
use crate::plan::LivePlan;
use crate::volumes::name_of;
use cachewright_live::io::open::FileAccess;
use cachewright_live::log::format::LogRecordKind;
use cachewright_live::log::{read_log, rewrite_both};
use cachewright_result::live::LiveChangeAnswer;

/// Repairs the devices of a plan; damaged dirty blocks are dropped only if `discard_dirty`. Errors:
/// they hold no set, or a device fails.
pub fn repair(plan: &LivePlan, discard_dirty: bool) -> Result<LiveChangeAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Write)?;
    let mut open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    Holding::begin(plan, &mut devices.io, &open)?;
    let failed = |error| set_error(plan, &paths, &error);
    let found = read_log(&mut devices.io, &open).map_err(failed)?;
    let files = open.set.files().to_vec();
    let valid: u64 = files.iter().map(|file| valid_superblocks(&mut devices.io, *file)).sum();
    let missing = 2 * files.len() as u64 - valid;
    if missing > 0 {
        rewrite_both(&mut devices.io, &mut open).map_err(failed)?;
    }
    let footers = found.damaged_footers + found.torn_footers;
    let rewritten = missing + footers + found.damaged_headers;
    let accepted_loss = open.superblock.has_lost || found.has_lost();
    let damaged = damaged(&mut devices.io, &open.set, &found.blocks);
    let found = found.settle(&mut devices.io).map_err(failed)?;
    if open.superblock.has_lost {
        open.superblock.has_lost = false;
        rewrite_both(&mut devices.io, &mut open).map_err(failed)?;
    }
    let mut changes = VolumeChanges::default();
    let bytes = open.set.block_bytes() as u64;
    let mut dropped = Vec::new();
    for block in damaged {
        if block.dirty && !discard_dirty {
            changes.volume(block.volume).damaged_bytes += bytes;
        } else {
            changes.volume(block.volume).dropped_bytes += bytes;
            dropped.push(block);
        }
    }
    if !dropped.is_empty() {
        let notes = NoteLog::new(&open.set, &found);
        notes.note(&mut devices.io, &runs(dropped), |blocks| LogRecordKind::Gone { blocks })?;
    }
    let name = |id| name_of(&open.superblock.volumes, id);
    Ok(changes.answer(open.set.id().name(), name, rewritten, accepted_loss))
}
