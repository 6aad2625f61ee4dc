//! Commit groups: records and their data, written by one write.
//!
//! For: durability without a barrier between records and data: the descriptor holds the checksum
//! of each block, so that a group is valid if all of it is there. Must never know: segments, which
//! groups are durable. Units: pages.

use super::record::{RECORD_BYTES, Record};
use super::{CHECKSUM, Fields, Home, PAGE, begin, open, seal};

const MAGIC: &[u8; 8] = b"CWgroup\0";
/// Bytes before the first record.
const HEADER_BYTES: usize = CHECKSUM.end + Home::BYTES + 4 + 4 + 8 + 8 + 4;
/// Records in the first page of a descriptor.
pub const RECORDS_IN_FIRST_PAGE: usize = (PAGE - HEADER_BYTES) / RECORD_BYTES;

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

/// Pages of a descriptor of so many records.
pub fn descriptor_pages(records: usize) -> usize {
    (HEADER_BYTES + records * RECORD_BYTES).div_ceil(PAGE)
}

impl GroupHeader {
    /// Its descriptor, with `records`.
    pub fn encode(&self, records: &[Record]) -> Vec<u8> {
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

    /// The pages of the descriptor that begins with `page`, if one may begin there; whether it is
    /// valid is not known before all of it is read.
    pub fn descriptor_pages_at(page: &[u8]) -> Option<usize> {
        if !page.starts_with(MAGIC) {
            return None;
        }
        let mut fields = Fields(page.get(CHECKSUM.end..)?);
        let header = GroupHeader::take(&mut fields)?;
        Some(descriptor_pages(header.records as usize))
    }

    /// The group of a descriptor of exactly its pages, if it is one.
    pub fn decode(descriptor: &[u8]) -> Option<(GroupHeader, Vec<Record>)> {
        let mut fields = open(descriptor, MAGIC)?;
        let header = GroupHeader::take(&mut fields)?;
        let fits = descriptor_pages(header.records as usize) * PAGE == descriptor.len();
        let records: Option<Vec<Record>> =
            (0..header.records).map(|_| Record::take(&mut fields)).collect();
        records.filter(|_| fits).map(|records| (header, records))
    }

    fn take(fields: &mut Fields<'_>) -> Option<GroupHeader> {
        Some(GroupHeader {
            home: Home::take(fields)?,
            page: fields.u32()?,
            records: fields.u32()?,
            number: fields.u64()?,
            durable: fields.u64()?,
            block_pages: fields.u32()?,
        })
    }
}
