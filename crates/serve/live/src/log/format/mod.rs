//! What stands on a cache device, byte by byte: one encoding for the writer, for recovery and for
//! offline tools. `docs/design/cache-device.md` draws every structure with its offsets; the test
//! `device_page` keeps that page and this code equal.
//!
//! ```text
//! device:  [superblock A][superblock B][segment 0][segment 1] ...
//! segment: [header page][group][group] ... [unused][footer]
//! group:   [descriptor page: header, records][data of the records]
//! ```
//!
//! Numbers are little-endian; the unit of every structure is a page of 4096 bytes. A structure
//! carries the id of its device set, its own place and a CRC-32C over all of it, so that one that
//! was written elsewhere, or by another set, is not taken for valid.

mod footer;
mod group;
mod holder;
mod record;
mod segment;
mod superblock;

pub use footer::{Footer, FooterRecord};
pub use group::{GROUP_RECORDS, GroupHeader};
pub use holder::{HOLDER_OFFSET, Holder};
pub use record::{LogRecord, LogRecordKind, RECORD_BYTES, Version, VolumeId, data_checksum};
pub use segment::{SegmentHeader, SegmentState};
pub use superblock::{
    Bypassed, MAX_NAME, SUPERBLOCK_BYTES, SetGeometry, Superblock, SuperblockError, Volume,
};

/// Bytes of a page: the unit of every structure.
pub const PAGE: usize = 4096;
/// The version of this format.
pub const FORMAT_VERSION: u32 = 2;

/// Numbers of blocks are smaller: with blocks of a page they then lie within 2^64 bytes.
pub const MAX_BLOCKS: u64 = 1 << 52;
/// Generations, numbers of groups and versions are smaller, so that none of them overflows.
const MAX_COUNT: u64 = 1 << 62;
/// From larger generations and numbers of groups no log goes on, and from larger numbers of
/// decisions, of which a version takes four.
pub const LAST_COUNTS: [u64; 3] = [MAX_COUNT / 2, MAX_COUNT / 2, MAX_COUNT / 8];

/// The id of a device set: a random number, made when it is formatted. Structures name the whole of
/// it, and its second half is shown to none: content of clients lies between structures, and where
/// one of those is damaged, no client can have written what is taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SetId(pub u128);

impl SetId {
    /// Its first half, by which people know the set: 16 hexadecimal digits.
    pub fn name(self) -> String {
        format!("{:016x}", self.0 >> 64)
    }
}

/// Where a structure stands, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The device set.
    pub set: SetId,
    /// The device in the set, from 0.
    pub device: u32,
    /// The segment of the device.
    pub segment: u32,
    /// How often the segment was begun.
    pub generation: u64,
}

impl Home {
    /// Bytes of a home.
    const BYTES: usize = 32;

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.set.0.to_le_bytes());
        out.extend_from_slice(&self.device.to_le_bytes());
        out.extend_from_slice(&self.segment.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
    }

    fn take(fields: &mut NumberReader<'_>) -> Option<Home> {
        let set = SetId(u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64);
        let (device, segment) = (fields.u32()?, fields.u32()?);
        Some(Home { set, device, segment, generation: fields.count()? })
    }
}

/// Reads numbers from the front of some bytes.
struct NumberReader<'a>(&'a [u8]);

impl<'a> NumberReader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// A count that is no larger than any that is written.
    fn count(&mut self) -> Option<u64> {
        self.u64().filter(|count| *count < MAX_COUNT)
    }
}

/// Where the checksum of a structure stands: behind its magic of eight bytes.
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// The checksum of a structure: of all its bytes but the checksum itself.
fn checksum(bytes: &[u8]) -> u32 {
    let front = crc32c::crc32c(&bytes[..CHECKSUM.start]);
    crc32c::crc32c_append(front, &bytes[CHECKSUM.end..])
}

/// Pads a structure to whole pages and puts its checksum in.
fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    let sum = checksum(&bytes);
    bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The bytes behind magic and checksum, if both are right.
fn open<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Option<NumberReader<'a>> {
    let stored = bytes.get(CHECKSUM)?;
    let right = bytes.starts_with(magic) && checksum(bytes).to_le_bytes() == *stored;
    right.then(|| NumberReader(&bytes[CHECKSUM.end..]))
}

/// Magic and room for the checksum.
fn begin(magic: &[u8; 8]) -> Vec<u8> {
    let mut bytes = magic.to_vec();
    bytes.extend_from_slice(&[0; 4]);
    bytes
}
