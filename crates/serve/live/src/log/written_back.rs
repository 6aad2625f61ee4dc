//! The content of blocks that recovery found: read, checked, and written back.
//!
//! For: starts and offline tools, where nothing else is under way. Must never know: policies,
//! clients, who records what was written. Units: bytes, blocks.

use super::format::{VolumeId, data_checksum};
use super::index::RecoveredBlock;
use super::set::DeviceSet;
use crate::io::{Buffer, FileId, Io, IoError, batch};
use std::ops::Range;

/// Bytes of content that are read at once.
const CHUNK_BYTES: usize = 16 << 20;

/// Blocks of a volume that lie one behind the other.
pub type BlockRun = (VolumeId, Range<u64>);

/// Where a volume lies, outside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackingFile {
    /// Its backing device.
    pub file: FileId,
    /// Its size: of a block that goes beyond, only what lies before it is written.
    pub bytes: u64,
}

/// What became of dirty blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenBack {
    /// In each run every dirty block was written back; at most 2^32 - 1 blocks each. One record
    /// per run says so: a log that is full has space for few.
    pub runs: Vec<BlockRun>,
    /// Blocks that were not: their content is damaged, or their volume has no backing device.
    pub damaged: Vec<RecoveredBlock>,
}

impl WrittenBack {
    /// Takes the next block, in the order of volumes and numbers.
    fn note(&mut self, block: &RecoveredBlock, written: bool, joins: bool) {
        if !written {
            return self.damaged.push(*block);
        }
        let end = block.number + 1;
        match self.runs.last_mut() {
            Some((volume, run))
                if joins && *volume == block.volume && end - run.start <= u64::from(u32::MAX) =>
            {
                run.end = end;
            }
            _ => self.runs.push((block.volume, block.number..end)),
        }
    }
}

/// Blocks whose content is read at once.
pub fn chunk_blocks(set: &DeviceSet) -> usize {
    (CHUNK_BYTES / set.block_bytes()).max(1)
}

/// The content of some blocks, in their order; none where it is damaged or cannot be read.
pub fn contents(
    io: &mut impl Io,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
) -> Vec<Option<Buffer>> {
    let range = |block: &RecoveredBlock| {
        let (segment, page) = set.locate(block.place);
        let start = set.page(segment, page);
        (start.file, start.offset, set.block_bytes())
    };
    let read = batch::read(io, blocks.iter().map(range));
    let whole = |(block, read): (&RecoveredBlock, Result<Buffer, _>)| {
        let sum = |data: &Buffer| data_checksum(block.volume, block.number, data);
        read.ok().filter(|data| !block.damaged && sum(data) == block.checksum)
    };
    blocks.iter().zip(read).map(whole).collect()
}

/// Writes dirty blocks to the backing devices of their volumes and makes that durable, in the order
/// of volumes and numbers. Errors: a backing device's.
pub fn write_back(
    io: &mut impl Io,
    set: &DeviceSet,
    mut blocks: Vec<RecoveredBlock>,
    backing: impl Fn(VolumeId) -> Option<BackingFile>,
) -> Result<WrittenBack, IoError> {
    blocks.sort_unstable_by_key(|block| (block.volume, block.number));
    let (mut written_back, mut joins) = (WrittenBack::default(), false);
    for some in blocks.chunks(chunk_blocks(set)) {
        let mut pieces = Vec::new();
        for (block, data) in some.iter().zip(contents(io, set, some)) {
            let piece = data.zip(backing(block.volume));
            written_back.note(block, piece.is_some(), joins);
            joins = piece.is_some();
            let offset = block.number.saturating_mul(set.block_bytes() as u64);
            if let Some((mut data, BackingFile { file, bytes })) = piece {
                data.truncate(bytes.saturating_sub(offset) as usize);
                pieces.push((file, offset, data));
            }
        }
        batch::write(io, pieces)?;
    }
    Ok(written_back)
}

#[cfg(test)]
mod tests {
    use super::super::format::Version;
    use super::super::set::Place;
    use super::*;

    fn block(volume: u32, number: u64) -> RecoveredBlock {
        let (volume, version, place) = (VolumeId(volume), Version(0), Place(0));
        RecoveredBlock { volume, number, version, place, checksum: 0, dirty: true, damaged: false }
    }

    #[test]
    fn runs_end_at_damaged_blocks_at_volumes_and_at_what_a_record_can_count() {
        let far = 40 + u64::from(u32::MAX);
        let all = [
            (block(1, 3), true),
            (block(1, 9), true),
            (block(1, 10), false),
            (block(1, 11), true),
            (block(2, 12), true),
            (block(2, 40), true),
            (block(3, 40), true),
            (block(3, far - 1), true),
            (block(3, far), true),
        ];
        let (mut found, mut joins) = (WrittenBack::default(), false);
        for (block, written) in &all {
            found.note(block, *written, joins);
            joins = *written;
        }
        let run = |volume: u32, blocks: Range<u64>| (VolumeId(volume), blocks);
        let runs =
            [run(1, 3..10), run(1, 11..12), run(2, 12..41), run(3, 40..far), run(3, far..far + 1)];
        assert_eq!((&found.runs[..], &found.damaged[..]), (&runs[..], &[block(1, 10)][..]));
    }
}
