//! One block or object per line: libCacheSim's `txt` and lists of block numbers.
//!
//! Lines that hold a number, or a word. A line is a read of one block; a file without times or
//! sizes has no more to say. The number is the block's, and the option `block` its size. With `ids
//! = words` each distinct line gets the next number at first sight, as the paths or keys of an
//! object cache need. The LIRS traces have lines `*`, which their README says to ignore. Source:
//! libCacheSim `txt.c`; README of the LIRS traces.

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::fields::{BLANKS, Extent, FieldFault, whole};
use crate::intern::Numbered;
use crate::reader::declared;
use crate::text::{Header, LineParser, TextReader, VolumeNames, trial};
use crate::units::block_bytes;
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "ids",
    doc: "one block number (or word) per line: a read of one block; no times",
    source: "libCacheSim txt.c",
    time: Unit::Absent,
    offset: Unit::Of(4_096),
    length: Unit::Absent,
    detected: "-",
    to_say: &["block", "ids"],
    options: IdsOptions::keys,
    recognise: |head| trial(Ids::new(4096, false), head, 60),
    near_miss: NO_LINES,
    open,
};

declare! {
    /// Options of reading.
    pub struct IdsOptions {
        /// bytes of the block that an id stands for
        block: Bytes = Bytes(4096), "bytes", 1 ..= 1_073_741_824;
        /// what a line holds; with `words` each distinct line is a block of its own
        ids: LineKind = LineKind::Numbers, "";
    }
}

choices! {
    /// What a line holds.
    pub enum LineKind {
        /// The number of a block.
        Numbers = "numbers",
        /// Anything.
        Words = "words",
    }
}

const NUMBER: &str = "a block number, a whole number from 0 (or set `ids = words`)";
/// The line that LIRS traces say to ignore.
const IGNORED: &[u8] = b"*";

#[derive(Clone)]
struct Ids {
    block_bytes: u64,
    /// The number of each word met, where ids are words.
    words: Option<Numbered>,
    requests: u64,
}

impl Ids {
    fn new(block_bytes: u64, words: bool) -> Ids {
        Ids { block_bytes, words: words.then(Numbered::default), requests: 0 }
    }

    #[inline]
    fn number(&mut self, id: &[u8]) -> Result<u64, FieldFault> {
        let refuse = |expected| FieldFault { column: 1, expected };
        match &mut self.words {
            None => whole(id).ok_or_else(|| refuse(NUMBER)),
            Some(words) => words.number(id).map_err(refuse),
        }
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: IdsOptions = declared(&options.format_options)?;
    let ids = Ids::new(block_bytes(options, own.block)?, own.ids == LineKind::Words);
    Ok(TextReader::boxed(source, ids, options))
}

impl LineParser for Ids {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let line = line.trim_ascii();
        let number = match self.number(line) {
            Ok(number) => number,
            Err(_) if line == IGNORED => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let block = self.block_bytes;
        let extent =
            Extent { offset_column: 1, offset_unit: block, length_column: 1, length_unit: block };
        let (offset_bytes, length_bytes) = extent.bytes(Op::Read, number, 1)?;
        let volume = volumes.numbered(0, 0)?;
        let time_ns = self.requests;
        self.requests += 1;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op: Op::Read, volume }))
    }

    fn length_column(&self) -> u32 {
        1
    }

    fn has_times(&self) -> bool {
        false
    }

    fn delimiter(&self) -> u8 {
        // A word is the whole line, blanks included.
        if self.words.is_some() { b'\n' } else { BLANKS }
    }

    fn passed_over(&self) -> Option<&'static str> {
        Some("line `*`")
    }

    fn header(&self) -> Header {
        Header::Never
    }

    fn has_comments(&self) -> bool {
        self.words.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, bad_with, options, read_all, read_with, record};
    use crate::recognise_bytes;

    #[test]
    fn numbers_are_blocks() {
        let (records, volumes) = read_all("ids", "7\n 0 \r\n7\n");
        let at = |time, block: u64| record(time, Op::Read, block * 4096, 4096, 0);
        assert_eq!(records, [at(0, 7), at(1, 0), at(2, 7)]);
        assert_eq!(volumes, ["0"]);
        let (records, _) = read_with(&options("ids", &[("block", "1B")]), "7\n");
        assert_eq!((records[0].offset_bytes, records[0].length_bytes), (7, 1));
        assert_eq!(recognise_bytes(b"7\n0\n7\n").unwrap().name, "ids");
    }

    #[test]
    fn lines_that_lirs_traces_ignore_are_passed_over() {
        let (records, _) = read_all("ids", "7\n*\n7\n # note\n");
        assert_eq!(records.len(), 2);
        assert_eq!(recognise_bytes(b"7\n*\n7\n").unwrap().name, "ids");
        let (records, _) = read_with(&options("ids", &[("ids", "words")]), "7\n*\n7\n# note\n");
        assert_eq!(records.len(), 4, "a word may be any line");
    }

    #[test]
    fn words_are_numbered_at_first_sight() {
        let words = options("ids", &[("ids", "words"), ("block", "512B")]);
        let (records, _) = read_with(&words, "/a b\n17\n\n/c\n/a b\n");
        let offsets: Vec<u64> = records.iter().map(|record| record.offset_bytes / 512).collect();
        assert_eq!(offsets, [0, 1, 2, 0], "blank lines are no ids");
        let long = format!("{}\n", "x".repeat(4097));
        assert!(bad_with(&words, &long).contains("column 1: found `xxx"));
        let wrong = bad_with(&options("ids", &[("ids", "hash")]), "1\n");
        assert_eq!(wrong, "`ids`: found `hash`, expected one of numbers, words");
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("ids", "1\nx\n").contains("line 2, column 1: found `x`, expected a block"));
        assert!(bad("ids", "1 2\n").contains("column 1: found `1`, expected a block number"));
        assert!(bad("ids", "18446744073709551615\n").contains("expected less than 2^63 bytes"));
    }
}
