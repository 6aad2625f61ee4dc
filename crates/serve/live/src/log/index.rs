//! The newest version of each block, from records in any order.
//!
//! For: recovery and offline tools. Must never know: devices, groups. Units: blocks. Content counts
//! if no newer record takes it away. It is clean if it was written as such, or if the backing
//! device has that version.

use super::format::{LogRecord, LogRecordKind, Version, VolumeId};
use super::set::Place;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The newest content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveredBlock {
    /// The volume.
    pub volume: VolumeId,
    /// Its number on it.
    pub number: u64,
    /// The version of the content.
    pub version: Version,
    /// Where it lies.
    pub place: Place,
    /// Its checksum.
    pub checksum: u32,
    /// The backing device has older content.
    pub dirty: bool,
    /// The log says that the content is damaged, or may be too old: it must not be read. Only dirty
    /// content is.
    pub damaged: bool,
}

/// A record about a range of blocks.
#[derive(Clone, Copy, Debug)]
struct RangeNote {
    volume: VolumeId,
    start: u64,
    end: u64,
    version: Version,
    gone: bool,
}

/// Records that were noted.
#[derive(Clone, Debug, Default)]
pub struct RecordIndex {
    contents: Vec<RecoveredBlock>,
    ranges: Vec<RangeNote>,
    last_decision: u64,
}

impl RecordIndex {
    /// Notes a record, whose content lies at `place`.
    pub fn note(&mut self, record: LogRecord, place: Place) {
        let LogRecord { volume, number, version, kind } = record;
        self.last_decision = self.last_decision.max(version.decision());
        let Some(checksum) = kind.checksum() else {
            let Range { start, end } = record.blocks();
            let gone = matches!(kind, LogRecordKind::Gone { .. });
            self.ranges.push(RangeNote { volume, start, end, version, gone });
            return;
        };
        let dirty = !matches!(kind, LogRecordKind::Clean { .. });
        let damaged = matches!(kind, LogRecordKind::Damaged { .. });
        let found = RecoveredBlock { volume, number, version, place, checksum, dirty, damaged };
        self.contents.push(found);
    }

    /// The number of the last decision that a record speaks of.
    pub fn last_decision(&self) -> u64 {
        self.last_decision
    }

    /// The blocks whose content counts, oldest version first.
    pub fn into_blocks(self) -> Vec<RecoveredBlock> {
        let RecordIndex { contents: mut blocks, mut ranges, .. } = self;
        // The newest of each block first, of equal ones one that is not damaged. Sorting once is
        // faster than a table with a line of the processor's cache per block.
        blocks.sort_unstable_by_key(|block| {
            (block.volume, block.number, Reverse(block.version), block.damaged, block.place)
        });
        blocks.dedup_by_key(|block| (block.volume, block.number));
        ranges.sort_unstable_by_key(|range| (range.volume, range.start));
        let mut ranges = ranges.into_iter().peekable();
        // Ranges that began at or before the block at hand: the newest of each kind on top.
        let mut open = [BinaryHeap::new(), BinaryHeap::new()];
        blocks.retain_mut(|block| {
            let here = (block.volume, block.number);
            while let Some(range) = ranges.next_if(|range| (range.volume, range.start) <= here) {
                let end = (range.volume, range.end);
                open[usize::from(range.gone)].push((range.version, end));
            }
            let newest = open.each_mut().map(|heap| {
                while heap.peek().is_some_and(|(_, end)| *end <= here) {
                    heap.pop();
                }
                heap.peek().map(|(version, _)| *version)
            });
            let [cleaned, gone] = newest.map(|newest| newest >= Some(block.version));
            block.dirty &= !cleaned;
            !gone && (block.dirty || !block.damaged)
        });
        blocks.sort_unstable_by_key(|block| (block.version, block.volume, block.number));
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;

    /// What a slow reading gives: each block looks at all records.
    fn slow(records: &[LogRecord]) -> Vec<RecoveredBlock> {
        let mut index: Vec<RecoveredBlock> = Vec::new();
        for (place, record) in records.iter().enumerate() {
            let Some(checksum) = record.kind.checksum() else { continue };
            let of_block = |other: &&LogRecord| {
                let end = other.number + u64::from(other.kind.blocks());
                other.volume == record.volume && (other.number..end).contains(&record.number)
            };
            let mut later = records.iter().filter(of_block);
            let superseded = later.any(|other| match other.kind {
                LogRecordKind::Cleaned { .. } => false,
                LogRecordKind::Gone { .. } => other.version >= record.version,
                _ => other.version > record.version,
            });
            let mut cleaned = records.iter().filter(of_block);
            let cleaned = cleaned.any(|other| {
                matches!(other.kind, LogRecordKind::Cleaned { .. })
                    && other.version >= record.version
            });
            if !superseded {
                let LogRecord { volume, number, version, kind } = *record;
                let dirty = matches!(kind, LogRecordKind::Dirty { .. }) && !cleaned;
                let place = Place(place as u32);
                let damaged = matches!(kind, LogRecordKind::Damaged { .. });
                if damaged && cleaned {
                    continue;
                }
                let dirty = dirty || damaged;
                let block =
                    RecoveredBlock { volume, number, version, place, checksum, dirty, damaged };
                index.push(block);
            }
        }
        index.sort_by_key(|block| (block.version, block.volume, block.number));
        index
    }

    #[test]
    fn the_newest_content_is_found_as_by_a_slow_reading() {
        let mut rng = Seed(5).rng();
        for _ in 0..300 {
            let records: Vec<LogRecord> = (0..rng.below(40) + 1)
                .map(|place| {
                    let blocks = rng.below(5) as u32 + 1;
                    let kind = match rng.below(6) {
                        0 => LogRecordKind::Gone { blocks },
                        1 => LogRecordKind::Cleaned { blocks },
                        2 => LogRecordKind::Clean { checksum: place as u32 },
                        3 => LogRecordKind::Damaged { checksum: place as u32 },
                        _ => LogRecordKind::Dirty { checksum: place as u32 },
                    };
                    let version = Version(rng.below(1000) * 64 + place);
                    let (volume, number) = (VolumeId(rng.below(2) as u32), rng.below(8));
                    LogRecord { volume, number, version, kind }
                })
                .collect();
            let mut index = RecordIndex::default();
            let noted = records.iter().enumerate();
            noted.for_each(|(place, record)| index.note(*record, Place(place as u32)));
            assert_eq!(index.into_blocks(), slow(&records), "{records:?}");
        }
    }
}
