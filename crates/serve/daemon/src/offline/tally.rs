//! What a log holds, volume by volume, and whether its content is whole.
//!
//! For: checks, lists and repairs. Must never know: how answers are shown. Units: bytes, blocks.

use crate::volumes::name_of;
use cachewright_live::io::{Io, IoError, batch};
use cachewright_live::log::format::{Superblock, VolumeId};
use cachewright_live::log::{DeviceSet, RecoveredBlock, UnreadablePage, chunk_blocks, contents};
use cachewright_result::live::CachedVolume;
use std::collections::BTreeMap;

/// The blocks whose content is damaged, in the order of their places. All content is read.
pub fn damaged(
    io: &mut impl Io,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
) -> Vec<RecoveredBlock> {
    let mut by_place = blocks.to_vec();
    by_place.sort_unstable_by_key(|block| block.place);
    let mut damaged = Vec::new();
    for some in by_place.chunks(chunk_blocks(set)) {
        let found = contents(io, set, some);
        let pairs = some.iter().zip(found);
        damaged.extend(pairs.filter(|(_, data)| data.is_none()).map(|(block, _)| *block));
    }
    damaged
}

/// The pages of damaged blocks that are damaged because they cannot be read.
pub fn unreadable_content(
    io: &mut impl Io,
    set: &DeviceSet,
    damaged: &[RecoveredBlock],
) -> Vec<UnreadablePage> {
    let mut pages = Vec::new();
    for some in damaged.chunks(chunk_blocks(set)) {
        let place = |block: &RecoveredBlock| {
            let (segment, page) = set.locate(block.place);
            let start = set.page(segment, page);
            (start.file, start.offset, set.block_bytes())
        };
        let ranges: Vec<_> = some.iter().map(place).collect();
        let Ok(found) = batch::read_pages(io, &ranges) else { continue };
        for ((block, (_, offset, _)), read) in some.iter().zip(&ranges).zip(found) {
            let device = set.device(set.locate(block.place).0);
            let page = |(start, error): (usize, IoError)| UnreadablePage {
                device,
                offset: offset + start as u64,
                error,
            };
            pages.extend(read.unreadable.into_iter().map(page));
        }
    }
    pages
}

/// Totals of all volumes; `damaged` are the blocks whose content is damaged, if content was read.
pub fn volumes(
    superblock: &Superblock,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
    damaged: Option<&[RecoveredBlock]>,
) -> Vec<CachedVolume> {
    let (table, bypassed) = (&superblock.volumes, superblock.bypassed.as_ref());
    let fresh = |id: VolumeId| CachedVolume {
        name: name_of(table, id),
        bytes: table.iter().find(|volume| volume.id == id).map(|volume| volume.bytes),
        out_of_date: bypassed.is_some_and(|bypassed| bypassed.passed.contains(&id)),
        clean_bytes: 0,
        dirty_bytes: 0,
        damaged_clean_bytes: damaged.map(|_| 0),
        damaged_dirty_bytes: damaged.map(|_| 0),
    };
    let mut all: BTreeMap<VolumeId, CachedVolume> =
        table.iter().map(|volume| (volume.id, fresh(volume.id))).collect();
    let bytes = set.block_bytes() as u64;
    for block in blocks {
        let totals = all.entry(block.volume).or_insert_with(|| fresh(block.volume));
        *if block.dirty { &mut totals.dirty_bytes } else { &mut totals.clean_bytes } += bytes;
    }
    for block in damaged.unwrap_or_default() {
        let totals = all.entry(block.volume).or_insert_with(|| fresh(block.volume));
        let sum = match block.dirty {
            true => &mut totals.damaged_dirty_bytes,
            false => &mut totals.damaged_clean_bytes,
        };
        *sum = sum.map(|sum| sum + bytes);
    }
    all.into_values().collect()
}
