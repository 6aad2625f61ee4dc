//! The native format: Parquet, and any Parquet file whose columns can be mapped to requests.
//!
//! Schema: [`crate::native`] and docs/trace-format.md. Columns may be in any order, of any type
//! that holds whole numbers, times, words or names, and nullable: a null is a bad record. Columns
//! of other names are told by the options that `csv` has. Without `volume` all requests are of
//! volume `0`; without the list of names, volumes are called by their numbers or texts. Source: the
//! Apache Parquet format specification.

mod columns;
mod file;

use self::columns::{FileColumns, LENGTH, OFFSET, OP, TIME, VOLUME};
use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::ADDRESS_LIMIT_BYTES;
use crate::error::UnreadableRecord;
use crate::native;
use crate::reader::RequestBound;
use crate::source::RandomAccess;
use crate::text::VolumeNames;
use crate::{
    Batch, ByteSource, OnBadRecord, OpenOptions, Record, Skipped, TraceError, TraceReader,
};

use cachewright_types::Op;
use file::{
    COMPLETE, CheckedFooter, Part, RowGroups, Values, checksums, guarded, names, parsed, readable,
    sound, value,
};

use std::path::PathBuf;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "parquet",
    doc: "the native format: columns time_ns, offset_bytes, length_bytes, op, volume; others by a \
          column map",
    source: "docs/trace-format.md",
    time: Unit::Of(1),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "names of columns as in `csv`; types of times",
    to_say: &["columns", "time_unit", "offset_unit", "length_unit"],
    options: super::csv::columns::keys,
    recognise: |head| if head.starts_with(MAGIC) { 99 } else { 0 },
    near_miss: NO_LINES,
    open: |source, options| Ok(Box::new(ParquetReader::open(source, options)?)),
};

const MAGIC: &[u8] = b"PAR1";

const TIME_EXPECTED: &str =
    "a time from 0 (1970) below 2^64 nanoseconds, without a fraction of one";
const NUMBER_EXPECTED: &str = "a whole number from 0";
const OP_EXPECTED: &str = "0 read, 1 write, 2 trim or 3 flush";
const WORD_EXPECTED: &str =
    "one of the words of `read_words`, `write_words`, `trim_words`, `flush_words`";
const VOLUME_EXPECTED: &str = "the name of a volume, or a whole number from 0";

/// How the values in the volume column become the reader's volumes.
enum VolumeColumn {
    /// They index the list of names.
    Named(Vec<String>),
    /// They are the names.
    Found(VolumeNames),
}

/// Why a row is no request: what part holds instead of what.
struct Refusal {
    part: usize,
    found: String,
    expected: String,
}

struct ParquetReader {
    groups: RowGroups,
    has_times: bool,
    /// Whether a column holds times.
    has_time_column: bool,
    /// Whether operations are told by words.
    by_words: bool,
    path: PathBuf,
    /// Rows passed so far.
    passed: u64,
    /// Requests handed over so far: the time in nanoseconds where no column holds one.
    sequence: u64,
    requests: u64,
    volumes: VolumeColumn,
    values: Values,
    bound: RequestBound,
    on_bad_record: OnBadRecord,
    skipped: Skipped,
    failed: bool,
}

impl ParquetReader {
    fn open(source: ByteSource, options: &OpenOptions) -> Result<ParquetReader, TraceError> {
        let path = source.path().to_owned();
        let file = match source.into_random_access()? {
            RandomAccess::File(file) => parsed(&path, file)?,
            RandomAccess::Memory(bytes) => parsed(&path, bytes::Bytes::from(bytes))?,
            RandomAccess::Kept(spool) => {
                let len = spool.complete();
                let len = len.map_err(|source| TraceError::Io { path: path.clone(), source })?;
                parsed(&path, CheckedFooter { spool, len })?
            }
        };
        let directory = file.reader.as_ref();
        let refuse = |found: String, expected: &str| TraceError::File {
            path: path.clone(),
            found,
            expected: expected.to_owned(),
        };
        sound(directory, file.len).map_err(|found| refuse(found, COMPLETE))?;
        let checksums = checksums(directory)
            .map_err(|found| refuse(format!("damaged Parquet ({found})"), COMPLETE))?;
        let columns = FileColumns::new(&path, directory, options)?;
        let mapped = columns.parts.iter().filter_map(|part| match part {
            Part::Column(column) => Some(column.leaf),
            Part::Same(_) => None,
        });
        let leaves: Vec<usize> =
            mapped.chain(columns.keep.as_ref().map(|column| column.leaf)).collect();
        readable(directory, &leaves).map_err(|found| {
            refuse(found, "no compression, or snappy, gzip, brotli, lz4 or zstd")
        })?;
        let names = names(directory)
            .map_err(|found| refuse(found, "the metadata of docs/trace-format.md"))?;
        let volumes = match (names, &columns.parts[VOLUME]) {
            (_, Part::Column(column)) if column.kind == columns::ColumnType::Text => {
                VolumeColumn::Found(VolumeNames::default())
            }
            (Some(names), _) => VolumeColumn::Named(names),
            (None, Part::Same(_)) => VolumeColumn::Named(vec!["0".to_owned()]),
            (None, Part::Column(_)) => VolumeColumn::Found(VolumeNames::default()),
        };
        let requests = u64::try_from(directory.metadata().file_metadata().num_rows()).unwrap_or(0);
        let no_times = value(directory, native::TIMES_KEY) == Some(native::NO_TIMES);
        Ok(ParquetReader {
            has_times: columns.has_times && !no_times,
            has_time_column: columns.has_times,
            by_words: columns.by_words,
            groups: RowGroups::new(file, checksums, columns.parts, columns.keep),
            path,
            passed: 0,
            sequence: 0,
            requests,
            volumes,
            values: Values::default(),
            bound: RequestBound::from_options(options),
            on_bad_record: options.on_bad_record,
            skipped: Skipped::default(),
            failed: false,
        })
    }

    /// Appends the decoded requests, all at once when none is bad.
    fn hand_over(&mut self, batch: &mut Batch, count: usize) -> Result<usize, TraceError> {
        let before = batch.len();
        let values = &self.values;
        let is_plain = self.has_time_column && values.kept.is_empty();
        if let VolumeColumn::Named(names) = &self.volumes
            && is_plain
            && values.all_good(names.len() as u64, self.bound)
        {
            batch.time_ns.extend_from_slice(&values.time_ns);
            batch.offset_bytes.extend_from_slice(&values.offset_bytes);
            batch.length_bytes.extend_from_slice(&values.length_bytes);
            batch.op.extend(values.op.iter().map(|op| Op::ALL[(*op & 3) as usize]));
            batch.volume.extend(values.volume.iter().map(|volume| *volume as u32));
            self.passed += count as u64;
            self.sequence += count as u64;
            return Ok(count);
        }
        for index in 0..count {
            self.passed += 1;
            if self.values.kept.get(index) == Some(&0) {
                self.skipped.irrelevant += 1;
                continue;
            }
            match self.record_at(index) {
                Ok(record) => {
                    self.sequence += 1;
                    batch.push(record);
                }
                Err(refusal) => self.bad(refusal)?,
            }
        }
        Ok(batch.len() - before)
    }

    /// The decoded request at `index`, or which part has what instead of what.
    fn record_at(&mut self, index: usize) -> Result<Record, Refusal> {
        let values = &self.values;
        let refuse = |part: usize, found: u64, expected: &str| Refusal {
            part,
            found: found.to_string(),
            expected: expected.to_owned(),
        };
        let op_expected = if self.by_words { WORD_EXPECTED } else { OP_EXPECTED };
        unless_bad(values, OP, index, op_expected)?;
        let op = values.op[index];
        let Some(op) = u8::try_from(op).ok().and_then(Op::from_number) else {
            return Err(refuse(OP, op, OP_EXPECTED));
        };
        // A flush has no place, so that whatever stands there is no fault.
        if op != Op::Flush {
            unless_bad(values, LENGTH, index, NUMBER_EXPECTED)?;
            unless_bad(values, OFFSET, index, NUMBER_EXPECTED)?;
        }
        unless_bad(values, TIME, index, TIME_EXPECTED)?;
        unless_bad(values, VOLUME, index, VOLUME_EXPECTED)?;
        let (offset_bytes, length_bytes) = match op {
            Op::Flush if self.by_words => (0, 0),
            _ => (values.offset_bytes[index], values.length_bytes[index]),
        };
        if op != Op::Flush && length_bytes == 0 {
            let expected = format!("a length above 0 of a {}", op.word());
            return Err(refuse(LENGTH, length_bytes, &expected));
        }
        if !fits(offset_bytes, length_bytes) {
            return Err(refuse(OFFSET, offset_bytes, "a request that ends below 2^63 bytes"));
        }
        if self.bound.refuses(op, length_bytes) {
            return Err(refuse(LENGTH, length_bytes, &self.bound.expected()));
        }
        let time_ns = if self.has_time_column { values.time_ns[index] } else { self.sequence };
        let volume = match &mut self.volumes {
            VolumeColumn::Named(names) => {
                let number = values.volume[index];
                let volume = u32::try_from(number).ok().filter(|v| (*v as usize) < names.len());
                let expected = format!("an index into the {} names", names.len());
                volume.ok_or_else(|| refuse(VOLUME, number, &expected))?
            }
            VolumeColumn::Found(known) => match values.volume_names.get(index) {
                Some(name) => known.keyed(name, 0, str::to_owned).map_err(|fault| Refusal {
                    part: VOLUME,
                    found: crate::reader::shown(name),
                    expected: fault.expected.to_owned(),
                })?,
                None => {
                    let number = values.volume[index];
                    known
                        .numbered(number, 0)
                        .map_err(|fault| refuse(VOLUME, number, fault.expected))?
                }
            },
        };
        Ok(Record { time_ns, offset_bytes, length_bytes, op, volume })
    }

    fn bad(&mut self, refusal: Refusal) -> Result<(), TraceError> {
        let (column, name) = self.groups.column_of(refusal.part);
        let record = UnreadableRecord {
            position: self.passed,
            is_line: true,
            column,
            found: format!("{name} {}", refusal.found),
            expected: refusal.expected,
        };
        match self.on_bad_record {
            OnBadRecord::Skip => {
                self.skipped.count_bad(record);
                Ok(())
            }
            OnBadRecord::Fail => Err(TraceError::Record { path: self.path.clone(), record }),
        }
    }
}

/// Nothing, or the refusal of the value of `part` in `row`, which could not be read.
fn unless_bad(values: &Values, part: usize, row: usize, expected: &str) -> Result<(), Refusal> {
    match values.bad_value(part, row) {
        None => Ok(()),
        Some(found) => {
            Err(Refusal { part, found: found.to_owned(), expected: expected.to_owned() })
        }
    }
}

#[inline]
fn fits(offset_bytes: u64, length_bytes: u64) -> bool {
    offset_bytes <= ADDRESS_LIMIT_BYTES
        && length_bytes <= ADDRESS_LIMIT_BYTES
        && offset_bytes + length_bytes <= ADDRESS_LIMIT_BYTES
}

impl Values {
    /// Whether no request is bad, without a branch per request.
    fn all_good(&self, volumes: u64, bound: RequestBound) -> bool {
        if self.bad.iter().any(|bad| !bad.is_empty()) {
            return false;
        }
        let extents = self.offset_bytes.iter().zip(&self.length_bytes).zip(&self.op);
        let extents_good = extents.fold(true, |good, ((offset, length), op)| {
            good & fits(*offset, *length)
                & ((*length > 0) | (*op == Op::Flush as u64))
                & ((*length <= bound.bytes) | (*op == Op::Trim as u64))
        });
        extents_good
            && self.op.iter().fold(true, |good, op| good & (*op < 4))
            && self.volume.iter().fold(true, |good, volume| good & (*volume < volumes))
    }
}

impl TraceReader for ParquetReader {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max && !self.failed {
            let path = self.path.clone();
            let decoded = guarded(&path, || self.groups.decode(max - count, &mut self.values));
            self.failed = decoded.is_err();
            match decoded? {
                0 => break,
                decoded => count += self.hand_over(batch, decoded)?,
            }
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        match &self.volumes {
            VolumeColumn::Named(names) => names,
            VolumeColumn::Found(known) => known.names(),
        }
    }

    fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn has_times(&self) -> bool {
        self.has_times
    }

    fn requests_hint(&self) -> Option<u64> {
        Some(self.requests)
    }
}

#[cfg(test)]
mod tests;
