//! Commit groups: records and their data, written by one write.
//!
//! For: durability without a barrier between records and data: the descriptor holds the checksum
//! of each block, so that a group is valid if all of it is there. Must never know: segments, which
//! groups are durable. Units: pages. A descriptor is one page.

use super::record::{LogRecord, RECORD_BYTES};
use super::{CHECKSUM, Home, NumberReader, PAGE, begin, open, seal};

const MAGIC: &[u8; 8] = b"CWgroup\0";
/// Bytes before the first record.
const HEADER_BYTES: usize = CHECKSUM.end + Home::BYTES + 4 + 4 + 8 + 8 + 4;
/// Most records of a group: its descriptor is one page.
pub const GROUP_RECORDS: usize = (PAGE - HEADER_BYTES) / RECORD_BYTES;

/// What a descriptor says before its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// The segment in which it stands.
    pub home: Home,
    /// The page of the segment at which it begins.
    pub page: u32,
    /// Records.
    pub records: u32,
    /// Its number: groups of all devices are numbered without a gap, in the order of their writing.
    pub number: u64,
    /// Groups up to this number were durable when it was written.
    pub durable: u64,
    /// Pages of a block.
    pub block_pages: u32,
}

impl GroupHeader {
    /// Its descriptor, with `records`: as many as it says, at most [`GROUP_RECORDS`].
    pub fn encode(&self, records: &[LogRecord]) -> Vec<u8> {
        let mut bytes = begin(MAGIC);
        self.home.put(&mut bytes);
        bytes.extend_from_slice(&self.page.to_le_bytes());
        bytes.extend_from_slice(&(records.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.durable.to_le_bytes());
        bytes.extend_from_slice(&self.block_pages.to_le_bytes());
        records.iter().for_each(|record| record.put(&mut bytes));
        seal(bytes)
    }

    /// The group of a descriptor's page, if it is one.
    pub fn decode(page: &[u8]) -> Option<(GroupHeader, Vec<LogRecord>)> {
        let mut fields = open(page, MAGIC)?;
        let header = GroupHeader::take(&mut fields)?;
        let fits = header.records as usize <= GROUP_RECORDS;
        let records = (0..header.records).map_while(|_| LogRecord::take(&mut fields)).collect();
        Some((header, records)).filter(|(header, records): &(_, Vec<_>)| {
            fits && records.len() == header.records as usize
        })
    }

    /// Pages of the group, with the data of `records`.
    pub fn pages(&self, records: &[LogRecord]) -> u32 {
        let blocks = records.iter().filter(|record| record.kind.has_data()).count() as u32;
        blocks.saturating_mul(self.block_pages).saturating_add(1)
    }

    fn take(fields: &mut NumberReader<'_>) -> Option<GroupHeader> {
        Some(GroupHeader {
            home: Home::take(fields)?,
            page: fields.u32()?,
            records: fields.u32()?,
            number: fields.count()?,
            durable: fields.count()?,
            block_pages: fields.u32()?,
        })
    }
}
