//! Integers, each the number of a block that is read.
//!
//! A file of them has no mark, so that it is read only when named. It has neither times nor sizes:
//! every integer is a read of one block of the option `block`. Units: block numbers, 4 or 8 bytes
//! wide, of either byte order. With `ids = words` an integer is a name, such as a hash over all 64
//! bits, and each distinct one gets the next number at first sight. Source: none; it is the
//! simplest thing that programs write.

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::{Records, extent, le_u32, le_u64};
use crate::intern::Numbered;
use crate::reader::declared;
use crate::units::block_bytes;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "raw",
    doc: "integers of 4 or 8 bytes, block numbers: a read of one block each; no times; to be named",
    source: "no header, no mark",
    time: Unit::Absent,
    offset: Unit::Of(4_096),
    length: Unit::Absent,
    detected: "nothing: `format` is to be said",
    to_say: &["format", "block", "width"],
    options: RawOptions::keys,
    recognise: |_| 0,
    near_miss: NO_LINES,
    open,
};

declare! {
    /// Options of reading.
    pub struct RawOptions {
        /// bytes of the block that an integer stands for
        block: Bytes = Bytes(4096), "bytes", 1 ..= 1_073_741_824;
        /// of an integer; little-endian unless the name ends in `be`
        width: Width = Width::U64, "";
        /// what an integer is; with `words` each distinct one is a block of its own
        ids: IntegerKind = IntegerKind::Numbers, "";
    }
}

choices! {
    /// What an integer is.
    pub enum IntegerKind {
        /// The number of a block.
        Numbers = "numbers",
        /// A name, such as a hash.
        Words = "words",
    }
}

choices! {
    /// The width of an integer.
    pub enum Width {
        /// Four bytes.
        U32 = "u32",
        /// Eight bytes.
        U64 = "u64",
        /// Four bytes, the highest first.
        U32Be = "u32be",
        /// Eight bytes, the highest first.
        U64Be = "u64be",
    }
}

struct RawRequests {
    records: Records,
    width: Width,
    /// The number of each integer met, where integers are names.
    words: Option<Numbered>,
    block_bytes: u64,
    volumes: [String; 1],
    requests: u64,
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: RawOptions = declared(&options.format_options)?;
    Ok(Box::new(RawRequests {
        records: Records::new(source.into_stream(), options),
        width: own.width,
        words: (own.ids == IntegerKind::Words).then(Numbered::default),
        block_bytes: block_bytes(options, own.block)?,
        volumes: ["0".to_owned()],
        requests: 0,
    }))
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Width::U32 | Width::U32Be => 4,
            Width::U64 | Width::U64Be => 8,
        }
    }

    /// The integer that `bytes` begins with.
    fn integer(self, bytes: &[u8]) -> u64 {
        match self {
            Width::U32 => u64::from(le_u32(bytes, 0)),
            Width::U32Be => u64::from(le_u32(bytes, 0).swap_bytes()),
            Width::U64 => le_u64(bytes, 0),
            Width::U64Be => le_u64(bytes, 0).swap_bytes(),
        }
    }
}

const HASHED: &str =
    "a request that ends below 2^63 bytes (or `ids = words`, if integers are names)";

impl TraceReader for RawRequests {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let (width, block) = (self.width.bytes(), self.block_bytes);
        let mut count = 0;
        while count < max {
            let ahead = self.records.ahead(width)?;
            if ahead.len() < width {
                if !ahead.is_empty() {
                    self.records.cut_off(&format!("an integer of {width} bytes"))?;
                }
                break;
            }
            let integer = self.width.integer(ahead);
            let number = match &mut self.words {
                None => Ok(integer),
                Some(words) => words.number(&integer.to_le_bytes()),
            };
            let end = number
                .and_then(|number| extent(Op::Read, number, block, block).map_err(|_| HASHED));
            match end {
                Ok((offset_bytes, length_bytes)) => {
                    let time_ns = self.requests;
                    let op = Op::Read;
                    batch.push(Record { time_ns, offset_bytes, length_bytes, op, volume: 0 });
                    self.requests += 1;
                    count += 1;
                }
                Err(expected) => self.records.bad(0, 0, 0, expected)?,
            }
            self.records.pass(width, 1);
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn skipped(&self) -> &Skipped {
        &self.records.skipped
    }

    fn has_times(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::registry::open_bytes;
    use crate::formats::testing::options;

    fn blocks(pairs: &[(&str, &str)], bytes: &[u8]) -> Vec<u64> {
        let (records, volumes) = read_bytes(&options("raw", pairs), bytes);
        assert_eq!(volumes, ["0"]);
        assert!(records.iter().enumerate().all(|(at, record)| record.time_ns == at as u64));
        records.iter().map(|record| record.offset_bytes / record.length_bytes).collect()
    }

    #[test]
    fn integers_are_blocks_of_either_width() {
        let narrow: Vec<u8> = [7_u32, 0, u32::MAX].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(blocks(&[("width", "u32")], &narrow), [7, 0, u64::from(u32::MAX)]);
        let wide: Vec<u8> = [7_u64, 1 << 40].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(blocks(&[("block", "512B")], &wide), [7, 1 << 40]);
    }

    #[test]
    fn integers_may_be_big_endian_and_names() {
        let bytes = [7_u64, 1 << 40].map(u64::to_be_bytes).concat();
        assert_eq!(blocks(&[("width", "u64be")], &bytes), [7, 1 << 40]);
        let bytes = [7_u32, 1 << 30].map(u32::to_be_bytes).concat();
        assert_eq!(blocks(&[("width", "u32be")], &bytes), [7, 1 << 30]);
        let hashes = [u64::MAX, 3, u64::MAX - 1, 3, u64::MAX].map(u64::to_be_bytes).concat();
        let words = [("width", "u64be"), ("ids", "words"), ("block", "1B")];
        assert_eq!(blocks(&words, &hashes), [0, 1, 2, 1, 0]);
    }

    #[test]
    fn bad_integers_are_named() {
        let bytes = [7_u64, u64::MAX].map(u64::to_le_bytes).concat();
        let error = bad_bytes(&options("raw", &[]), &bytes);
        assert_eq!(
            error,
            "sample: record 2, byte 8: found `0xffffffffffffffff`, expected a request that ends \
             below 2^63 bytes (or `ids = words`, if integers are names)"
        );
        let error = bad_bytes(&options("raw", &[]), &[1, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert!(error.ends_with("record 2, byte 8: found `0x09`, expected an integer of 8 bytes"));
        for (key, value) in [("width", "u16"), ("block", "0B"), ("block", "big")] {
            assert!(open_bytes("sample", &bytes, &options("raw", &[(key, value)])).is_err());
        }
    }
}
