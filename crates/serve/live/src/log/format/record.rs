//! Records: what the log says of one block, or of a range of blocks.
//!
//! For: groups and footers. Must never know: where a record's data lies. Units: blocks. The newest
//! version of a block decides what it is; see [`Version`].

use super::{MAX_BLOCKS, NumberReader};
use std::ops::Range;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 28;

/// A volume, by the number that the superblock gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u32);

/// The order of what happens to a block: the number of the decision, and what the decision did.
/// Within one decision a block leaves, is filled, is written, is moved or leaves again, in this
/// order. A step that is carried out late keeps the version of its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Version(pub u64);

impl Version {
    /// A decision that begins with the block's leaving.
    pub const fn left_first(decision: u64) -> Version {
        Version(decision << 2)
    }

    /// The block is filled.
    pub const fn filled(decision: u64) -> Version {
        Version(decision << 2 | 1)
    }

    /// The block is written.
    pub const fn written(decision: u64) -> Version {
        Version(decision << 2 | 2)
    }

    /// The last thing that a decision can do to a block: a block that it brought in leaves, or one
    /// that stays is copied to another place.
    pub const fn last(decision: u64) -> Version {
        Version(decision << 2 | 3)
    }

    /// The number of the decision.
    pub const fn decision(self) -> u64 {
        self.0 >> 2
    }
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRecordKind {
    /// The block's content follows; the backing device has it, too.
    Clean {
        /// Its checksum.
        checksum: u32,
    },
    /// The block's content follows; the backing device has older content.
    Dirty {
        /// Its checksum.
        checksum: u32,
    },
    /// The block's content follows, but it is damaged: it does not fit the checksum. The backing
    /// device has older content.
    Damaged {
        /// The checksum that it should have.
        checksum: u32,
    },
    /// From this block on so many blocks are not in the cache.
    Gone {
        /// Blocks.
        blocks: u32,
    },
    /// The backing device has the content of so many blocks, up to this version.
    Cleaned {
        /// Blocks.
        blocks: u32,
    },
}

impl LogRecordKind {
    /// The checksum of the content that belongs to the record, if some does.
    pub fn checksum(self) -> Option<u32> {
        match self {
            LogRecordKind::Clean { checksum }
            | LogRecordKind::Dirty { checksum }
            | LogRecordKind::Damaged { checksum } => Some(checksum),
            LogRecordKind::Gone { .. } | LogRecordKind::Cleaned { .. } => None,
        }
    }

    /// Whether the content of a block belongs to the record.
    pub fn has_data(self) -> bool {
        self.checksum().is_some()
    }

    /// Blocks that the record speaks of.
    pub fn blocks(self) -> u32 {
        match self {
            LogRecordKind::Clean { .. }
            | LogRecordKind::Dirty { .. }
            | LogRecordKind::Damaged { .. } => 1,
            LogRecordKind::Gone { blocks } | LogRecordKind::Cleaned { blocks } => blocks,
        }
    }
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The volume.
    pub volume: VolumeId,
    /// The first block's number on it.
    pub number: u64,
    /// When.
    pub version: Version,
    /// What.
    pub kind: LogRecordKind,
}

impl LogRecord {
    /// The numbers of the blocks that it speaks of.
    pub fn blocks(&self) -> Range<u64> {
        self.number..self.number.saturating_add(self.kind.blocks().into())
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let (code, value) = match self.kind {
            LogRecordKind::Clean { checksum } => (1_u32, checksum),
            LogRecordKind::Dirty { checksum } => (2, checksum),
            LogRecordKind::Gone { blocks } => (3, blocks),
            LogRecordKind::Cleaned { blocks } => (4, blocks),
            LogRecordKind::Damaged { checksum } => (5, checksum),
        };
        out.extend_from_slice(&self.volume.0.to_le_bytes());
        out.extend_from_slice(&code.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.version.0.to_le_bytes());
        out.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn take(fields: &mut NumberReader<'_>) -> Option<LogRecord> {
        let (volume, code) = (VolumeId(fields.u32()?), fields.u32()?);
        let (number, version, value) = (fields.u64()?, Version(fields.count()?), fields.u32()?);
        if number >= MAX_BLOCKS {
            return None;
        }
        let kind = match code {
            1 => LogRecordKind::Clean { checksum: value },
            2 => LogRecordKind::Dirty { checksum: value },
            3 => LogRecordKind::Gone { blocks: value },
            4 => LogRecordKind::Cleaned { blocks: value },
            5 => LogRecordKind::Damaged { checksum: value },
            _ => return None,
        };
        Some(LogRecord { volume, number, version, kind })
    }
}

/// The checksum of a block's content. Volume and number go in first, so that content that was
/// written to, or read from, another place is not taken for it.
pub fn data_checksum(volume: VolumeId, number: u64, data: &[u8]) -> u32 {
    let volume = crc32c::crc32c(&volume.0.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(volume, &number.to_le_bytes()), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_decisions_and_what_happens_within_one() {
        let of = |decision| {
            [
                Version::left_first(decision),
                Version::filled(decision),
                Version::written(decision),
                Version::last(decision),
            ]
        };
        let all = [of(6), of(7)].concat();
        assert!(all.is_sorted() && all.iter().all(|version| version.decision() / 2 == 3));
    }

    #[test]
    fn the_checksum_tells_places_apart() {
        let of = |volume, number| data_checksum(VolumeId(volume), number, &[7; 4096]);
        assert_ne!(of(1, 2), of(2, 1));
        assert_ne!(of(1, 2), of(1, 3));
    }
}
