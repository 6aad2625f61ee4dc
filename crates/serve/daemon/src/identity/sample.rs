//! Clean blocks of the cache beside the content of backing devices.
//!
//! For: finding out that a backing device was written to by others, also where its server had no
//! end in order. Must never know: what follows from it. Units: blocks, bytes.
//!
//! Why other content proves a write of others, whatever stopped the server: content reaches a
//! backing device only when the log has it durably as dirty (write-back and write-through), and a
//! write round the cache waits until no recovery finds older content of its blocks. A block counts
//! as clean only after a sync of the device that has it. So what recovery finds clean is what the
//! device holds, with one exception: a trim or zeroes may be carried out while the log has not been
//! told durably. The device then has zeroes there, or the old content, sector by sector. A set that
//! has lost durable groups, or that was bypassed, proves nothing: its records may be too old.
//! A device that gave up writes when a sync failed, and was served again, has older content than
//! was read of it: it counts as written to, which drops the clean blocks that it does not have.

use super::device::end_ranges;
use cachewright_live::io::{FileId, Io, batch};
use cachewright_live::log::format::{VolumeId, data_checksum};
use cachewright_live::log::{OpenSet, RecoveredBlock, contents};
use std::collections::BTreeMap;

/// Blocks of a volume that are looked at beside those at the ends of its device: at most so many,
/// at least so many, and in between as many as have so many bytes.
const MAX_BLOCKS: u64 = 64;
const MIN_BLOCKS: u64 = 8;
const SAMPLE_BYTES: u64 = 8 << 20;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 << 20;
/// Bytes that a device writes whole or not at all.
const SECTOR: usize = 512;

/// What a look at some clean blocks of a volume has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleOutcome {
    /// Blocks that were looked at.
    pub looked_at: u64,
    /// Blocks of which the backing device has content that no server of the cache wrote.
    pub foreign: u64,
}

/// Looks at some clean blocks of each volume, whose backing devices these are: all at the ends of
/// its device, which file systems change, and some between them, other ones at each start. Blocks
/// that cannot be read prove nothing.
pub fn look(
    io: &mut impl Io,
    open: &OpenSet,
    blocks: &[RecoveredBlock],
    backings: &BTreeMap<VolumeId, FileId>,
) -> BTreeMap<VolumeId, SampleOutcome> {
    let block_bytes = open.set.block_bytes();
    let bytes = backings.iter().map(|(id, file)| (*id, io.file_bytes(*file))).collect();
    let chosen = sample(blocks, block_bytes as u64, &bytes, open.superblock.edition);
    let mut outcomes: BTreeMap<VolumeId, SampleOutcome> = BTreeMap::new();
    for some in chosen.chunks((CHUNK_BYTES / block_bytes).max(1)) {
        let range = |block: &RecoveredBlock| {
            (backings[&block.volume], block.number * block_bytes as u64, block_bytes)
        };
        let read = batch::read(io, some.iter().map(range));
        for (block, found) in some.iter().zip(read) {
            let Ok(found) = found else { continue };
            let differs = data_checksum(block.volume, block.number, &found) != block.checksum;
            let is_foreign = differs && is_foreign(io, open, block, &found);
            let outcome = outcomes.entry(block.volume).or_default();
            outcome.looked_at += 1;
            outcome.foreign += u64::from(is_foreign);
        }
    }
    outcomes
}

/// Whether content of a block cannot be what a trim or zeroes of it have left.
fn is_foreign(io: &mut impl Io, open: &OpenSet, block: &RecoveredBlock, found: &[u8]) -> bool {
    let Some(Some(cached)) = contents(io, &open.set, &[*block]).pop() else {
        return false;
    };
    let explained =
        |(found, cached): (&[u8], &[u8])| found == cached || found.iter().all(|byte| *byte == 0);
    !found.chunks(SECTOR).zip(cached.chunks(SECTOR)).all(explained)
}

/// The clean blocks to be looked at of volumes whose devices have so many bytes. Volumes take
/// turns, so that their devices read side by side.
fn sample(
    blocks: &[RecoveredBlock],
    block_bytes: u64,
    bytes: &BTreeMap<VolumeId, u64>,
    edition: u64,
) -> Vec<RecoveredBlock> {
    let mut between: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let clean = || blocks.iter().filter(|block| !block.dirty);
    for block in clean() {
        if place_of(block, block_bytes, bytes) == Some(BlockPlace::Between) {
            *between.entry(block.volume).or_default() += 1;
        }
    }
    let wanted = (SAMPLE_BYTES / block_bytes).clamp(MIN_BLOCKS, MAX_BLOCKS);
    let mut seen: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let mut ranks: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let mut chosen: Vec<(u64, RecoveredBlock)> = Vec::new();
    for block in clean() {
        match place_of(block, block_bytes, bytes) {
            None => continue,
            Some(BlockPlace::AtEnd) => {}
            Some(BlockPlace::Between) => {
                let step = between[&block.volume].div_ceil(wanted).max(1);
                let seen = seen.entry(block.volume).or_default();
                *seen += 1;
                if (*seen - 1) % step != edition % step {
                    continue;
                }
            }
        }
        let rank = ranks.entry(block.volume).or_default();
        chosen.push((*rank, *block));
        *rank += 1;
    }
    chosen.sort_unstable_by_key(|(rank, block)| (*rank, block.volume));
    chosen.into_iter().map(|(_, block)| block).collect()
}

/// Where on its device a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockPlace {
    AtEnd,
    Between,
}

/// Where a block lies; nothing if it does not lie whole on a device that is known.
fn place_of(
    block: &RecoveredBlock,
    block_bytes: u64,
    bytes: &BTreeMap<VolumeId, u64>,
) -> Option<BlockPlace> {
    let device_bytes = *bytes.get(&block.volume)?;
    let start = block.number.checked_mul(block_bytes)?;
    let end = start.checked_add(block_bytes).filter(|end| *end <= device_bytes)?;
    let meets = |range: &std::ops::Range<u64>| start < range.end && range.start < end;
    let meets_end = end_ranges(device_bytes).iter().any(meets);
    Some(if meets_end { BlockPlace::AtEnd } else { BlockPlace::Between })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::log::Place;
    use cachewright_live::log::format::Version;

    fn block(volume: u32, number: u64) -> RecoveredBlock {
        let (volume, version, place) = (VolumeId(volume), Version(0), Place(0));
        RecoveredBlock { volume, number, version, place, checksum: 0, dirty: false, damaged: false }
    }

    #[test]
    fn all_blocks_at_the_ends_are_looked_at_and_others_in_turn() {
        let known = |bytes| BTreeMap::from([(VolumeId(1), bytes)]);
        let mut all: Vec<RecoveredBlock> = (0..4096).map(|number| block(1, number)).collect();
        let bytes = known(4096 * 4096);
        let numbers = |edition: u64| -> Vec<u64> {
            sample(&all, 4096, &bytes, edition).iter().map(|block| block.number).collect()
        };
        let found = numbers(0);
        assert_eq!(found.len(), 256 + 256 + 64);
        assert!((0..256).chain(3840..4096).all(|number| found.contains(&number)));
        let mut seen: Vec<u64> = (0..56).flat_map(numbers).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4096, "each block comes to its turn");
        assert_eq!(sample(&all, 4096, &known(4096 * 10), 0).len(), 10, "none behind the end");
        assert_eq!(sample(&all, 4096, &BTreeMap::new(), 0), [], "its device is not known");
        all.iter_mut().for_each(|block| block.dirty = true);
        assert_eq!(sample(&all, 4096, &bytes, 0), []);
    }

    #[test]
    fn volumes_take_turns() {
        let all = [block(1, 0), block(1, 1), block(2, 5), block(2, 6)];
        let bytes = [1, 2].map(|id| (VolumeId(id), 8 << 20)).into();
        let turns: Vec<u32> =
            sample(&all, 4096, &bytes, 7).iter().map(|block| block.volume.0).collect();
        assert_eq!(turns, [1, 2, 1, 2]);
    }
}
