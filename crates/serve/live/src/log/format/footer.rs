//! The footer of a segment: all its records in one place.
//!
//! For: recovery of a sealed segment by one read. Must never know: groups beyond their numbers.
//! Units: pages. A footer is written when all groups of its segment are durable, so that nothing
//! behind it has to be read again.

use super::record::{LogRecord, RECORD_BYTES};
use super::{CHECKSUM, Home, PAGE, begin, open, seal};

const MAGIC: &[u8; 8] = b"CWfooter";
const HEADER_BYTES: usize = CHECKSUM.end + Home::BYTES + 4 + 4;
const GROUP_BYTES: usize = 8;

/// A record and where its data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FooterRecord {
    /// The record.
    pub record: LogRecord,
    /// The page of the segment at which its data begins; 0 without data.
    pub page: u32,
}

/// All records of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// The segment.
    pub home: Home,
    /// The numbers of its groups, which rise; at least one.
    pub groups: Vec<u64>,
    /// Its records, in the order of the log.
    pub records: Vec<FooterRecord>,
}

impl Footer {
    /// Pages of a footer of so many groups and records.
    pub fn pages(groups: usize, records: usize) -> usize {
        (HEADER_BYTES + groups * GROUP_BYTES + records * (RECORD_BYTES + 4)).div_ceil(PAGE)
    }

    /// Most records of one of so many pages, with so many groups.
    pub fn max_records(groups: usize, pages: usize) -> usize {
        let left = (pages * PAGE).saturating_sub(HEADER_BYTES + groups * GROUP_BYTES);
        left / (RECORD_BYTES + 4)
    }

    /// The number of its last group.
    pub fn last_group(&self) -> u64 {
        self.groups.last().copied().unwrap_or_default()
    }

    /// Its pages.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(MAGIC);
        self.home.put(&mut bytes);
        bytes.extend_from_slice(&(self.records.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.groups.len() as u32).to_le_bytes());
        self.groups.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        for placed in &self.records {
            placed.record.put(&mut bytes);
            bytes.extend_from_slice(&placed.page.to_le_bytes());
        }
        seal(bytes)
    }

    /// The pages of the footer that begins with `page`, if one may begin there; whether it is valid
    /// is not known before all of it is read.
    pub fn pages_at(page: &[u8]) -> Option<usize> {
        if !page.starts_with(MAGIC) {
            return None;
        }
        let mut fields = super::NumberReader(page.get(CHECKSUM.end..)?);
        Home::take(&mut fields)?;
        let (records, groups) = (fields.u32()?, fields.u32()?);
        Some(Footer::pages(groups as usize, records as usize))
    }

    /// The footer at the front of some pages, if there is one.
    pub fn decode(pages: &[u8]) -> Option<Footer> {
        let length = Footer::pages_at(pages)?.checked_mul(PAGE)?;
        let mut fields = open(pages.get(..length)?, MAGIC)?;
        let home = Home::take(&mut fields)?;
        let (count, groups) = (fields.u32()?, fields.u32()?);
        let groups: Vec<u64> = (0..groups).map(|_| fields.count()).collect::<Option<_>>()?;
        if groups.is_empty() || !groups.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let placed = |_| {
            let record = LogRecord::take(&mut fields)?;
            Some(FooterRecord { record, page: fields.u32()? })
        };
        let records: Option<Vec<FooterRecord>> = (0..count).map(placed).collect();
        records.map(|records| Footer { home, groups, records })
    }
}
