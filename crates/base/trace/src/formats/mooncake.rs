//! Mooncake's traces of a cache of keys and values of language models.
//!
//! One JSON object per line with `timestamp` and `hash_ids`. Units: milliseconds; an id stands for
//! 512 tokens, a block of `block` bytes here. Each id of a line is read, in their order: a miss is
//! a prefix that is computed and stored. The lengths are not read. Source: Mooncake,
//! `mooncake_trace.jsonl` (Qin et al., FAST'25).

use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, expected};
use crate::reader::declared;
use crate::text::{Header, LineParser, TextReader, VolumeNames, first_row, trial};
use crate::units::{TimeUnit, block_bytes};
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Op, declare};
use serde::Deserialize;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "mooncake",
    doc: "JSON lines with timestamp (ms) and hash_ids: a read of one block for each id",
    source: "Mooncake, mooncake_trace.jsonl; Qin et al., FAST'25",
    time: Unit::Of(1_000_000),
    offset: Unit::Of(4_096),
    length: Unit::Absent,
    detected: "-",
    to_say: &["block"],
    options: MooncakeOptions::keys,
    recognise,
    near_miss: NO_LINES,
    open,
};

declare! {
    /// Options of reading.
    pub struct MooncakeOptions {
        /// bytes of the block that an id stands for
        block: Bytes = Bytes(4096), "bytes", 1 ..= 1_073_741_824;
        /// unit of times; default: milliseconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
    }
}

const LINE: &str = "a JSON object with `timestamp`, a number, and `hash_ids`, whole numbers";

/// What a line holds that is read.
#[derive(Deserialize)]
struct Prompt {
    timestamp: serde_json::Number,
    hash_ids: Vec<u64>,
}

#[derive(Clone)]
struct Mooncake {
    clock: Clock,
    extent: Extent,
    /// Ids of the last line.
    ids: Vec<u64>,
    /// How many of them were handed out.
    given: usize,
}

impl Mooncake {
    fn new(own: &MooncakeOptions, block: u64) -> Mooncake {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let clock = Clock::new(&given, TimeUnit::MILLISECOND, expected::MILLISECONDS);
        let extent =
            Extent { offset_column: 1, offset_unit: block, length_column: 1, length_unit: block };
        Mooncake { clock, extent, ids: Vec::new(), given: 0 }
    }
}

fn recognise(head: &[u8]) -> u8 {
    let is_prompt = |line: &[u8]| line.windows(10).any(|part| part == b"\"hash_ids\"");
    match first_row(head) {
        Some(first) if is_prompt(first) => {
            trial(Mooncake::new(&MooncakeOptions::default(), 4096), head, 100)
        }
        _ => 0,
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: MooncakeOptions = declared(&options.format_options)?;
    let block = block_bytes(options, own.block)?;
    Ok(TextReader::boxed(source, Mooncake::new(&own, block), options))
}

impl LineParser for Mooncake {
    const REPEATS: bool = true;

    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let refuse = |expected| FieldFault { column: 1, expected };
        let prompt: Prompt = serde_json::from_slice(line).map_err(|_| refuse(LINE))?;
        let time_ns = self.clock.ns(prompt.timestamp.to_string().as_bytes()).map_err(refuse)?;
        for id in &prompt.hash_ids {
            self.extent.bytes(Op::Read, *id, 1)?;
        }
        let Some(first) = prompt.hash_ids.first() else { return Ok(None) };
        let (offset_bytes, length_bytes) = self.extent.bytes(Op::Read, *first, 1)?;
        let volume = volumes.numbered(0, 0)?;
        self.ids = prompt.hash_ids;
        self.given = 1;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op: Op::Read, volume }))
    }

    fn repeats(&self) -> u64 {
        self.ids.len() as u64
    }

    fn following(&mut self, record: Record) -> Record {
        let id = self.ids.get(self.given).copied().unwrap_or(0);
        self.given += 1;
        Record { offset_bytes: id * self.extent.offset_unit, ..record }
    }

    fn length_column(&self) -> u32 {
        self.extent.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        Some("prompt without a whole block")
    }

    /// An object is one field, as messages show it.
    fn delimiter(&self) -> u8 {
        b'\n'
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, options, read_all, read_with, record};
    use crate::{Batch, open_bytes, recognise_bytes};

    const TEXT: &str = "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 52, \
                        \"hash_ids\": [46, 47, 3]}\n\
                        {\"timestamp\": 27482, \"input_length\": 9, \"output_length\": 1, \
                        \"hash_ids\": []}\n\
                        {\"timestamp\": 27482.5, \"hash_ids\": [46]}\n";

    #[test]
    fn every_id_of_a_prompt_is_read() {
        let (records, volumes) = read_all("mooncake", TEXT);
        let read = |time_ns, id: u64| record(time_ns, Op::Read, id * 4096, 4096, 0);
        let expected = [read(0, 46), read(0, 47), read(0, 3), read(27_482_500_000, 46)];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["0"]);
        assert_eq!(recognise_bytes(TEXT.as_bytes()).unwrap().name, "mooncake");
        let larger = options("mooncake", &[("block", "1MiB")]);
        assert_eq!(read_with(&larger, TEXT).0[2].offset_bytes, 3 << 20);
    }

    #[test]
    fn ids_come_in_their_order_whatever_a_batch_holds() {
        let whole = read_all("mooncake", TEXT).0;
        for at_once in 1..=4 {
            let mut reader =
                open_bytes("sample", TEXT.as_bytes(), &options("mooncake", &[])).unwrap();
            let mut batch = Batch::default();
            while reader.read(&mut batch, at_once).unwrap() > 0 {}
            assert_eq!(batch.iter().collect::<Vec<_>>(), whole, "{at_once} at a time");
            assert_eq!(reader.notes(), ["passed over: 1 prompt without a whole block"]);
        }
    }

    #[test]
    fn bad_lines_are_named() {
        let id = "{\"timestamp\": 1, \"hash_ids\": [\"a\"]}\n";
        assert!(bad("mooncake", id).contains("line 1, column 1: found `{\"timestamp\""));
        assert!(bad("mooncake", "{\"hash_ids\": [1]}\n").contains("`timestamp`, a number"));
        let far = "{\"timestamp\": 1, \"hash_ids\": [1, 9223372036854775807]}\n";
        assert!(bad("mooncake", far).contains("2^63"));
    }
}
