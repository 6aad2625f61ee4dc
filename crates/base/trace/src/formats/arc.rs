//! The traces of the ARC paper (`P1.lis`, `OLTP.lis`, ...).
//!
//! Lines `start count ignored id`, separated by blanks. Units: blocks of 512 B unless the option
//! `block` says another size. A line asks `count` blocks from `start` on; the third column means
//! nothing and the fourth numbers the requests. The traces have neither times nor writes: every
//! request is a read. Source: the README beside the traces of Megiddo and Modha, FAST'03.

use super::registry::{TraceFormat, Unit};
use crate::fields::{BLANKS, Extent, FieldFault, Fields};
use crate::reader::declared;
use crate::text::{
    Header, LineParser, TextReader, VolumeNames, is_comment, near_miss, trial, whole_lines,
};

use crate::units::block_bytes;
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Op, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "arc",
    doc: "start count ignored id (`.lis`): blocks of 512 B; no times, all are reads",
    source: "README of the ARC traces; Megiddo and Modha, FAST'03",
    time: Unit::Absent,
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "-",
    to_say: &["block"],
    options: ArcOptions::keys,
    recognise,
    near_miss: |head| near_miss(ArcTrace::new(512), head),
    open,
};

declare! {
    /// Options of reading.
    pub struct ArcOptions {
        /// bytes per block of the first two columns
        block: Bytes = Bytes(512), "bytes", 1 ..= 1_073_741_824;
    }
}

const START: &str = "the number of the first block, a whole number from 0";
const COUNT: &str = "a number of blocks";
const IGNORED: &str = "a whole number, which means nothing";
const ID: &str = "the number of the request";
/// Columns of the first block and of the number of blocks.
const COLUMNS: (u32, u32) = (1, 2);

#[derive(Clone)]
struct ArcTrace {
    block_bytes: u64,
    requests: u64,
}

impl ArcTrace {
    fn new(block_bytes: u64) -> ArcTrace {
        ArcTrace { block_bytes, requests: 0 }
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: ArcOptions = declared(&options.format_options)?;
    let block_bytes = block_bytes(options, own.block)?;
    Ok(TextReader::boxed(source, ArcTrace::new(block_bytes), options))
}

/// Four numbers per line are not rare: the last must count up by one from line to line.
fn recognise(head: &[u8]) -> u8 {
    let id = |line| {
        let mut fields = Fields::<BLANKS>::new(line);
        (0..4).try_fold(0, |_, _| fields.number(ID).ok())
    };
    let mut before = None;
    for line in whole_lines(head).filter(|line| !is_comment(line)).take(64) {
        let Some(id) = id(line) else { return 0 };
        if before.is_some_and(|before: u64| before.checked_add(1) != Some(id)) {
            return 0;
        }
        before = Some(id);
    }
    trial(ArcTrace::new(512), head, 80)
}

impl LineParser for ArcTrace {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<BLANKS>::new(line);
        let first = fields.number(START)?;
        let count = fields.number(COUNT)?;
        fields.number(IGNORED)?;
        fields.number(ID)?;
        fields.end()?;
        let extent = Extent {
            offset_column: COLUMNS.0,
            offset_unit: self.block_bytes,
            length_column: COLUMNS.1,
            length_unit: self.block_bytes,
        };
        let (offset_bytes, length_bytes) = extent.bytes(Op::Read, first, count)?;
        let volume = volumes.numbered(0, 0)?;
        let time_ns = self.requests;
        self.requests += 1;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op: Op::Read, volume }))
    }

    fn length_column(&self) -> u32 {
        COLUMNS.1
    }

    fn has_times(&self) -> bool {
        false
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, bad_with, options, read_all, read_with, record};
    use crate::recognise_bytes;

    const TEXT: &str = "110765 64 0 0\n42 1 0 1\r\n110829 8 0 2\n";

    #[test]
    fn blocks_are_sectors_unless_said_otherwise() {
        let (records, volumes) = read_all("arc", TEXT);
        let expected = [
            record(0, Op::Read, 110_765 * 512, 32_768, 0),
            record(1, Op::Read, 42 * 512, 512, 0),
            record(2, Op::Read, 110_829 * 512, 4096, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["0"]);
        let (records, _) = read_with(&options("arc", &[("block", "4KiB")]), TEXT);
        assert_eq!((records[1].offset_bytes, records[1].length_bytes), (42 * 4096, 4096));
        let refused = bad_with(&options("arc", &[("block", "4")]), TEXT);
        assert!(
            refused.starts_with("`block`: found `4`, expected a number with a unit"),
            "{refused}"
        );
    }

    #[test]
    fn only_lines_that_count_up_are_recognised() {
        assert_eq!(recognise_bytes(TEXT.as_bytes()).unwrap().name, "arc");
        for other in ["1 2 0 5\n1 2 0 7\n", "1 2 3\n", "1 2 0 x\n", "1 0 0 0\n2 0 0 1\n"] {
            assert_eq!(recognise(other.as_bytes()), 0, "`{other}`");
        }
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("arc", "1 0 0 0\n").contains("column 2: found `0`, expected a length above 0"));
        assert!(bad("arc", "x 1 0 0\n").contains("column 1: found `x`, expected the number of"));
        assert!(bad("arc", "1 1 0\n").contains("column 4: found `end of line`"));
        assert!(bad("arc", "1 1 0 0 9\n").contains("column 5: found `9`, expected the end"));
        let long = bad("arc", "1 4194304 0 0\n");
        assert!(
            long.ends_with(
                "column 2: found `4194304`, expected at most 1GiB in one request \
                            (`max_request`)"
            ),
            "{long}"
        );
    }
}
