//! The native format: Parquet, and any Parquet file with the same columns.
//!
//! For: opening, checking the schema, handing out requests. Must never know: how files are written.
//! Schema: [`crate::native`] and docs/trace-format.md. Columns may be in any order, signed or
//! unsigned, 32 or 64 bits wide, nullable if nothing is null; others are passed over. Without
//! `volume` all requests are of volume `0`; without the list of names, volumes are called by their
//! numbers. Source: the Apache Parquet format specification.

mod checked;
mod column;
mod directory;
mod row_groups;

use self::checked::CheckedFooter;
use self::directory::{COMPLETE, checksums, guarded, leaves, names, parsed, sound, value};
use self::row_groups::{RowGroups, Values};
use super::entry::TraceFormat;
use crate::binary::ADDRESS_LIMIT_BYTES;
use crate::error::UnreadableRecord;
use crate::native::{self, COLUMNS};
use crate::reader::RequestBound;
use crate::source::RandomAccess;
use crate::{
    Batch, ByteSource, OnBadRecord, OpenOptions, Record, Skipped, TraceError, TraceReader,
};
use cachewright_types::Op;
use std::collections::HashMap;
use std::path::PathBuf;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "parquet",
    doc: "the native format: columns time_ns, offset_bytes, length_bytes, op, volume",
    source: "docs/trace-format.md",
    options: Vec::new,
    recognise: |head| if head.starts_with(MAGIC) { 99 } else { 0 },
    open: |source, options| Ok(Box::new(ParquetReader::open(source, options)?)),
};

const MAGIC: &[u8] = b"PAR1";

/// How the numbers in the volume column become the reader's volumes.
enum VolumeColumn {
    /// They index the list of names.
    Named,
    /// They are the names; the map leads from number to volume.
    Numbered(HashMap<u64, u32>),
}

struct ParquetReader {
    groups: RowGroups,
    has_times: bool,
    path: PathBuf,
    /// Requests passed so far.
    passed: u64,
    requests: u64,
    numbering: VolumeColumn,
    volumes: Vec<String>,
    values: Values,
    bound: RequestBound,
    on_bad_record: OnBadRecord,
    skipped: Skipped,
    failed: bool,
}

impl ParquetReader {
    fn open(source: ByteSource, options: &OpenOptions) -> Result<ParquetReader, TraceError> {
        let path = source.path().to_owned();
        let (file, load, len) = match source.into_random_access()? {
            RandomAccess::File(file) => parsed(&path, file)?,
            RandomAccess::Memory(bytes) => parsed(&path, bytes::Bytes::from(bytes))?,
            RandomAccess::Kept(spool) => {
                let len = spool.complete();
                let len = len.map_err(|source| TraceError::Io { path: path.clone(), source })?;
                parsed(&path, CheckedFooter { spool, len })?
            }
        };
        let refuse = |found: String, expected: &str| TraceError::File {
            path: path.clone(),
            found,
            expected: expected.to_owned(),
        };
        sound(file.as_ref(), len).map_err(|found| refuse(found, COMPLETE))?;
        let checksums = checksums(file.as_ref())
            .map_err(|found| refuse(format!("damaged Parquet ({found})"), COMPLETE))?;
        let leaves = leaves(file.as_ref())
            .map_err(|found| refuse(found, "the columns of docs/trace-format.md"))?;
        let names = names(file.as_ref())
            .map_err(|found| refuse(found, "the metadata of docs/trace-format.md"))?;
        let (numbering, volumes) = match (names, leaves[4]) {
            (Some(names), _) => (VolumeColumn::Named, names),
            (None, None) => (VolumeColumn::Named, vec!["0".to_owned()]),
            (None, Some(_)) => (VolumeColumn::Numbered(HashMap::new()), Vec::new()),
        };
        let requests = u64::try_from(file.metadata().file_metadata().num_rows()).unwrap_or(0);
        Ok(ParquetReader {
            has_times: value(file.as_ref(), native::TIMES_KEY) != Some(native::NO_TIMES),
            groups: RowGroups::new(file, load, checksums, leaves),
            path,
            passed: 0,
            requests,
            numbering,
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
        let named = matches!(self.numbering, VolumeColumn::Named);
        if named && values.all_good(self.volumes.len() as u64, self.bound) {
            batch.time_ns.extend_from_slice(&values.time_ns);
            batch.offset_bytes.extend_from_slice(&values.offset_bytes);
            batch.length_bytes.extend_from_slice(&values.length_bytes);
            batch.op.extend(values.op.iter().map(|op| Op::ALL[(*op & 3) as usize]));
            batch.volume.extend(values.volume.iter().map(|volume| *volume as u32));
            self.passed += count as u64;
            return Ok(count);
        }
        for index in 0..count {
            self.passed += 1;
            match self.record_at(index) {
                Ok(record) => batch.push(record),
                Err((column, found, expected)) => {
                    self.bad(column, found, expected)?;
                }
            }
        }
        Ok(batch.len() - before)
    }

    /// The decoded request at `index`, or which column has what instead of what.
    fn record_at(&mut self, index: usize) -> Result<Record, (usize, u64, String)> {
        let values = &self.values;
        let op = values.op[index];
        let Some(op) = u8::try_from(op).ok().and_then(Op::from_number) else {
            return Err((3, op, "0 read, 1 write, 2 trim or 3 flush".to_owned()));
        };
        let (offset_bytes, length_bytes) = (values.offset_bytes[index], values.length_bytes[index]);
        if op != Op::Flush && length_bytes == 0 {
            return Err((2, length_bytes, format!("a length above 0 of a {}", op.word())));
        }
        if !fits(offset_bytes, length_bytes) {
            return Err((1, offset_bytes, "a request that ends below 2^63 bytes".to_owned()));
        }
        if self.bound.refuses(op, length_bytes) {
            return Err((2, length_bytes, self.bound.expected()));
        }
        let number = values.volume[index];
        let volume = match &mut self.numbering {
            VolumeColumn::Named => {
                u32::try_from(number).ok().filter(|v| (*v as usize) < self.volumes.len())
            }
            VolumeColumn::Numbered(known) => match known.get(&number) {
                Some(volume) => Some(*volume),
                None => u32::try_from(self.volumes.len()).ok().inspect(|volume| {
                    known.insert(number, *volume);
                    self.volumes.push(number.to_string());
                }),
            },
        };
        let Some(volume) = volume else {
            return Err((4, number, format!("an index into the {} names", self.volumes.len())));
        };
        Ok(Record { time_ns: values.time_ns[index], offset_bytes, length_bytes, op, volume })
    }

    fn bad(&mut self, column: usize, found: u64, expected: String) -> Result<(), TraceError> {
        let record = UnreadableRecord {
            position: self.passed,
            is_line: false,
            column: self.groups.column_number(column),
            found: format!("{} {found}", COLUMNS[column]),
            expected,
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

#[inline]
fn fits(offset_bytes: u64, length_bytes: u64) -> bool {
    offset_bytes <= ADDRESS_LIMIT_BYTES
        && length_bytes <= ADDRESS_LIMIT_BYTES
        && offset_bytes + length_bytes <= ADDRESS_LIMIT_BYTES
}

impl Values {
    /// Whether no request is bad, without a branch per request.
    fn all_good(&self, volumes: u64, bound: RequestBound) -> bool {
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
        &self.volumes
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
