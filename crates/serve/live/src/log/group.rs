//! A group that is being filled.
//!
//! For: records and data in the form in which they are written. Must never know: when it is
//! written. Units: blocks, pages. The place of each block is known when it is appended, because a
//! descriptor is one page.

use super::format::{
    FooterRecord, GROUP_RECORDS, GroupHeader, Home, LogRecord, LogRecordKind, PAGE, SegmentHeader,
    SegmentState, Version, VolumeId, data_checksum,
};
use crate::io::Buffer;

/// A block's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// As long as a block.
    pub data: &'a [u8],
    /// The backing device has older content.
    pub dirty: bool,
    /// It does not fit its checksum.
    pub damaged: bool,
    /// Its checksum, if it is known: content that is moved keeps what it should have.
    pub checksum: Option<u32>,
}

/// What is to be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntry<'a> {
    /// A block's content.
    Content(Content<'a>),
    /// A record without content.
    Note(LogRecordKind),
}

/// A group that is being filled.
#[derive(Debug)]
pub struct OpenGroup {
    number: u64,
    home: Home,
    /// The page of the segment at which its memory begins.
    first_page: u32,
    /// A segment's header goes before it.
    with_header: bool,
    records: Vec<FooterRecord>,
    max_records: usize,
    memory: Buffer,
    pages: u32,
    block_pages: u32,
}

impl OpenGroup {
    /// Group `number` at a page of a segment; at page 0 the segment's header goes first. It may
    /// have `max_records` records; `memory` has room for all that it may hold.
    pub fn new(
        number: u64,
        (home, page): (Home, u32),
        (block_pages, max_records): (u32, usize),
        memory: Buffer,
    ) -> OpenGroup {
        let with_header = page == 0;
        let pages = 1 + u32::from(with_header);
        let (first_page, records) = (page, Vec::new());
        let max_records = max_records.min(GROUP_RECORDS);
        OpenGroup {
            number,
            home,
            first_page,
            with_header,
            records,
            max_records,
            memory,
            pages,
            block_pages,
        }
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The page behind it.
    pub fn end_page(&self) -> u32 {
        self.first_page + self.pages
    }

    /// Whether an entry fits: records, and memory for its data.
    pub fn fits(&self, entry: &LogEntry<'_>) -> bool {
        let pages = match entry {
            LogEntry::Content(_) => self.pages + self.block_pages,
            LogEntry::Note(_) => self.pages,
        };
        self.records.len() < self.max_records && pages as usize * PAGE <= self.memory.len()
    }

    /// Appends an entry, for which there must be room; returns its record, and the page of its data
    /// (0 without data).
    pub fn append(
        &mut self,
        (volume, number): (VolumeId, u64),
        version: Version,
        entry: LogEntry<'_>,
    ) -> FooterRecord {
        let (kind, page) = match entry {
            LogEntry::Content(Content { data, dirty, damaged, checksum }) => {
                let start = self.pages as usize * PAGE;
                self.memory[start..start + data.len()].copy_from_slice(data);
                let page = self.end_page();
                self.pages += self.block_pages;
                let checksum = checksum.unwrap_or_else(|| data_checksum(volume, number, data));
                let kind = match (damaged, dirty) {
                    (true, _) => LogRecordKind::Damaged { checksum },
                    (false, true) => LogRecordKind::Dirty { checksum },
                    (false, false) => LogRecordKind::Clean { checksum },
                };
                (kind, page)
            }
            LogEntry::Note(kind) => (kind, 0),
        };
        let placed = FooterRecord { record: LogRecord { volume, number, version, kind }, page };
        self.records.push(placed);
        placed
    }

    /// The content of a block at a page of the segment, if it lies here.
    pub fn content(&self, page: u32) -> Option<&[u8]> {
        let start = page.checked_sub(self.first_page)?;
        let length = self.block_pages as usize * PAGE;
        let inside = start > 0 && page + self.block_pages <= self.end_page();
        let start = start as usize * PAGE;
        inside.then(|| &self.memory[start..start + length])
    }

    /// Ends it: what is written at its first page, and its records. Groups up to `durable` are
    /// durable; groups up to `emptied` may have stood in segments that were emptied.
    pub fn finish(
        mut self,
        durable: u64,
        (stream, emptied): (u32, u64),
    ) -> (Buffer, Vec<FooterRecord>) {
        let header_pages = u32::from(self.with_header);
        let header = GroupHeader {
            home: self.home,
            page: self.first_page + header_pages,
            records: self.records.len() as u32,
            number: self.number,
            durable,
            block_pages: self.block_pages,
        };
        let records: Vec<LogRecord> = self.records.iter().map(|placed| placed.record).collect();
        if self.with_header {
            let (home, state) = (self.home, SegmentState::Begun);
            let segment = SegmentHeader { home, state, stream, emptied };
            self.memory[..PAGE].copy_from_slice(&segment.encode());
        }
        let start = header_pages as usize * PAGE;
        self.memory[start..start + PAGE].copy_from_slice(&header.encode(&records));
        self.memory.truncate(self.pages as usize * PAGE);
        (self.memory, self.records)
    }
}
