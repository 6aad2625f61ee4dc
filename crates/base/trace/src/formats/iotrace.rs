//! Traces of Open CAS's iotrace, as `iotrace --parse-trace` prints them.
//!
//! `--format csv`, whose header names columns such as `io.lba` in any order, and the usual form,
//! one JSON object per line. Units: nanoseconds (`header.timestamp`), sectors of 512 B (`io.lba`,
//! `io.len`). Operations are Read, Write, Discard; a request of no sectors is a flush if it says
//! so, and else asks nothing. Rows without an operation (devices, file names, completions) ask
//! nothing either. A volume is a device, by its name where it has one. Fields of JSON that are 0
//! are left out. Source: Open CAS telemetry framework, `trace.proto`, `parsedTrace.proto`; README
//! of the standalone Linux IO tracer.

use super::csv::next_field;
use super::registry::{TraceFormat, Unit};
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, SECTOR_BYTES, expected, whole};
use crate::reader::declared;
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial, whole_lines};
use crate::units::TimeUnit;
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::Op;
use cachewright_types::declare::Declared;
use serde_json::Value;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "iotrace",
    doc: "Open CAS iotrace as CSV (header.timestamp, io.lba, io.len, io.operation) or JSON lines: \
          ns; sectors of 512 B",
    source: "Open CAS telemetry framework, trace.proto",
    time: Unit::Of(1),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "the columns, from the header; CSV or JSON",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| match Iotrace::new(head, &ClockOptions::default()) {
        Some(parser) => trial(parser, head, 100),
        None => 0,
    },
    near_miss: |head| near_miss(Iotrace::new(head, &ClockOptions::default())?, head),
    open,
};

const TIME: &str = "nanoseconds, a whole number below 2^64";
const OPERATION: &str = "Read, Write, Discard or nothing";
const OBJECT: &str = "a JSON object";
const FIRST_LINE: &str =
    "a header with `header.timestamp`, `io.lba`, `io.len` and `io.operation`, or JSON objects";

/// What a row holds that is read.
const NAMES: [&[&str]; FIELDS] = [
    &["header.timestamp"],
    &["io.operation"],
    &["io.lba"],
    &["io.len"],
    &["io.flush", "io.flags.flush"],
    &["device.name"],
    &["device.id", "io.deviceId"],
];

const FIELDS: usize = 7;
const TIMESTAMP: usize = 0;
const OPERATION_FIELD: usize = 1;
const LBA: usize = 2;
const LEN: usize = 3;
const FLUSH: usize = 4;
const DEVICE_NAME: usize = 5;
const DEVICE_ID: usize = 6;

/// How rows are written.
#[derive(Clone)]
enum Rows {
    /// The field of each column.
    Csv(Vec<Option<usize>>),
    Json,
}

#[derive(Clone)]
struct Iotrace {
    clock: Clock,
    rows: Rows,
    /// The column of each field, from 1; 1 for all in JSON.
    columns: [u32; FIELDS],
    was_empty: bool,
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: ClockOptions = declared(&options.format_options)?;
    let Some(parser) = Iotrace::new(source.head(), &own) else {
        let first = whole_lines(source.head()).next().unwrap_or_default();
        return Err(TraceError::File {
            path: source.path().to_owned(),
            found: format!("`{}` in the first line", crate::reader::shown(first)),
            expected: FIRST_LINE.to_owned(),
        });
    };
    Ok(TextReader::boxed(source, parser, options))
}

impl Iotrace {
    /// The reader of a trace with this head; nothing for another content.
    fn new(head: &[u8], own: &ClockOptions) -> Option<Iotrace> {
        let clock = Clock::new(own, TimeUnit::NANOSECOND, TIME);
        let first = whole_lines(head).next()?;
        if first.starts_with(b"{") {
            let is_event = first.windows(8).any(|part| part == b"\"header\"");
            let columns = [1; FIELDS];
            let json = Iotrace { clock, rows: Rows::Json, columns, was_empty: false };
            return is_event.then_some(json);
        }
        let mut columns = [0; FIELDS];
        let mut fields = Vec::new();
        let mut rest = Some(first);
        while let Some(name) = next_field(&mut rest, b',') {
            let field = NAMES.iter().position(|names| names.iter().any(|n| n.as_bytes() == name));
            let field = field.filter(|field| columns[*field] == 0);
            fields.push(field);
            if let Some(field) = field {
                columns[field] = u32::try_from(fields.len()).unwrap_or(u32::MAX);
            }
        }
        let last = fields.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        fields.truncate(last);
        let has_all =
            [TIMESTAMP, OPERATION_FIELD, LBA, LEN].iter().all(|field| columns[*field] > 0);
        has_all.then_some(Iotrace { clock, rows: Rows::Csv(fields), columns, was_empty: false })
    }

    fn fault(&self, field: usize, expected: &'static str) -> FieldFault {
        FieldFault { column: self.columns[field], expected }
    }

    /// The request of a row's fields.
    fn request(
        &mut self,
        fields: &[&[u8]; FIELDS],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        self.was_empty = false;
        let op = match fields[OPERATION_FIELD] {
            b"Read" => Op::Read,
            b"Write" => Op::Write,
            b"Discard" => Op::Trim,
            b"" | b"UnknownIoType" => return Ok(None),
            _ => return Err(self.fault(OPERATION_FIELD, OPERATION)),
        };
        let time_ns =
            self.clock.ns(fields[TIMESTAMP]).map_err(|expected| self.fault(TIMESTAMP, expected))?;
        // JSON leaves out what is 0.
        let number = |field: usize, expected| match (fields[field], &self.rows) {
            (b"", Rows::Json) => Ok(0),
            (digits, _) => whole(digits).ok_or_else(|| self.fault(field, expected)),
        };
        let offset = number(LBA, expected::OFFSET_SECTORS)?;
        let length = number(LEN, expected::LENGTH_SECTORS)?;
        let is_flush = matches!(fields[FLUSH], b"true" | b"1");
        let op = match length {
            0 if is_flush => Op::Flush,
            0 => {
                self.was_empty = true;
                return Ok(None);
            }
            _ => op,
        };
        let extent = Extent {
            offset_column: self.columns[LBA],
            offset_unit: SECTOR_BYTES,
            length_column: self.columns[LEN],
            length_unit: SECTOR_BYTES,
        };
        let (offset_bytes, length_bytes) = extent.bytes(op, offset, length)?;
        let field = if fields[DEVICE_NAME].is_empty() { DEVICE_ID } else { DEVICE_NAME };
        let volume = match fields[field] {
            b"" => volumes.numbered(0, 0)?,
            device => volumes.keyed(device, self.columns[field], str::to_owned)?,
        };
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }
}

impl LineParser for Iotrace {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields: [&[u8]; FIELDS] = [b""; FIELDS];
        let Rows::Csv(roles) = &self.rows else {
            return self.object(line, volumes);
        };
        let mut rest = Some(line);
        for (index, role) in roles.iter().enumerate() {
            let Some(field) = next_field(&mut rest, b',') else {
                let column = u32::try_from(index + 1).unwrap_or(u32::MAX);
                return Err(FieldFault { column, expected: "a field for each name of the header" });
            };
            if let Some(role) = role {
                fields[*role] = field;
            }
        }
        self.request(&fields, volumes)
    }

    fn length_column(&self) -> u32 {
        self.columns[LEN]
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        self.was_empty.then_some("request without data")
    }

    /// An object is one field, as messages show it.
    fn delimiter(&self) -> u8 {
        if matches!(self.rows, Rows::Json) { b'\n' } else { b',' }
    }

    fn header(&self) -> Header {
        if matches!(self.rows, Rows::Json) { Header::Never } else { Header::Always }
    }
}

impl Iotrace {
    /// The request of a JSON object.
    fn object(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let refused = FieldFault { column: 1, expected: OBJECT };
        let value: Value = serde_json::from_slice(line).map_err(|_| refused)?;
        if !value.is_object() {
            return Err(refused);
        }
        let text = |names: &[&str]| {
            let value_of =
                |name: &&str| name.split('.').try_fold(&value, |value, key| value.get(key));
            match names.iter().find_map(value_of) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            }
        };
        let texts = NAMES.map(text);
        let mut fields: [&[u8]; FIELDS] = [b""; FIELDS];
        for (field, text) in fields.iter_mut().zip(&texts) {
            *field = text.as_bytes();
        }
        if fields[TIMESTAMP].is_empty() {
            fields[TIMESTAMP] = b"0";
        }
        self.request(&fields, volumes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, read_with, record};

    const TEXT: &str = "device.id,device.name,device.partition,file.path,header.sid,\
        header.timestamp,io.error,io.flush,io.fua,io.lba,io.len,io.operation,io.qd\n\
        8388608,sda,8388608,,48,5082383915,false,false,false,193227744,8,Write,16\n\
        8388608,,8388608,\"/a, b\",65,5082575353,false,true,false,0,0,Write,1\n\
        8388608,sda,,,66,5082575354,false,false,false,16,8,Read,1\n\
        8388608,sda,,,67,5082575355,false,false,false,0,0,Read,1\n\
        8388608,sda,,,68,5082575356,,,,,,,\n\
        8388608,sda,,,69,5082575357,false,false,false,2048,4096,Discard,1\n";

    #[test]
    fn columns_are_those_that_the_header_names() {
        let expected = [
            record(5_082_383_915, Op::Write, 193_227_744 * 512, 4096, 0),
            record(5_082_575_353, Op::Flush, 0, 0, 1),
            record(5_082_575_354, Op::Read, 8192, 4096, 0),
            record(5_082_575_357, Op::Trim, 1_048_576, 2_097_152, 0),
        ];
        let (records, volumes) = read_with(&OpenOptions::default(), TEXT);
        assert_eq!(records, expected, "recognised");
        assert_eq!(volumes, ["sda", "8388608"]);
        assert_eq!(read_all("iotrace", &TEXT.repeat(2)).0.len(), 8, "the header again");
    }

    #[test]
    fn objects_of_a_line_each() {
        let text = "{\"header\":{\"sid\":\"1\"},\
            \"deviceDescription\":{\"id\":\"7\",\"name\":\"sda\"}}\n\
            {\"header\":{\"sid\":\"2\",\"timestamp\":\"5\"},\
            \"io\":{\"lba\":\"8\",\"len\":8,\"operation\":\"Read\"},\
            \"device\":{\"name\":\"sda\"}}\n\
            {\"header\":{\"sid\":\"3\",\"timestamp\":\"6\"},\
            \"io\":{\"len\":1,\"operation\":\"Write\",\"deviceId\":\"7\"}}\n\
            {\"header\":{\"timestamp\":7},\
            \"io\":{\"operation\":\"Write\",\"flags\":{\"flush\":true}}}\n";
        let expected = [
            record(5, Op::Read, 4096, 4096, 0),
            record(6, Op::Write, 0, 512, 1),
            record(7, Op::Flush, 0, 0, 2),
        ];
        let (records, volumes) = read_with(&OpenOptions::default(), text);
        assert_eq!(
            (records, volumes),
            (expected.to_vec(), vec!["sda".into(), "7".into(), "0".into()])
        );
        let error = bad("iotrace", &format!("{text}{{\"header\":\n"));
        assert!(
            error.contains("line 5, column 1: found `{\"header\":`, expected a JSON"),
            "{error}"
        );
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |rest: &str| {
            bad("iotrace", &format!("header.timestamp,io.operation,io.lba,io.len\n{rest}\n"))
        };
        assert!(
            line("5,Copy,8,8").contains("line 2, column 2: found `Copy`, expected Read, Write")
        );
        assert!(line("5,Read,x,8").contains("column 3: found `x`, expected an offset in sectors"));
        assert!(line("x,Read,8,8").contains("column 1: found `x`, expected nanoseconds"));
        assert!(line("5,Read,8").contains("column 4: found `end of line`"));
        assert!(bad("iotrace", "a,b\n1,2\n").contains("in the first line, expected a header with"));
    }
}
