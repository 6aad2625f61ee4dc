//! The native format: Parquet, and any Parquet file with the same columns.
//!
//! For: opening, checking the schema, handing out requests. Must never know: how files are written.
//! Schema: [`crate::native`] and docs/trace-format.md. Columns may be in any order, signed or
//! unsigned, 32 or 64 bits wide, nullable if nothing is null; others are passed over. Without
//! `volume` all requests are of volume `0`; without the list of names, volumes are called by their
//! numbers. Source: the Apache Parquet format specification.

mod checked;
mod column;

use self::checked::{Checked, CheckedFooter, Load};
use self::column::Column;
use super::entry::TraceFormat;
use crate::binary::ADDRESS_LIMIT_BYTES;
use crate::error::UnreadableRecord;
use crate::native::checksum::{self, Checksums};
use crate::native::{self, COLUMNS, OP, VOLUME};
use crate::options::{harmless, shown};
use crate::reader::RequestBound;
use crate::source::RandomAccess;
use crate::{
    Batch, ByteSource, OnBadRecord, OpenOptions, Record, Skipped, TraceError, TraceReader,
};
use cachewright_types::Op;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
const COMPLETE: &str = "a complete Parquet file as docs/trace-format.md describes";
/// Requests decoded at a time.
const CHUNK: usize = 1 << 13;

/// Decoded values of a chunk, all columns of one length.
#[derive(Default)]
struct Values {
    time_ns: Vec<u64>,
    offset_bytes: Vec<u64>,
    length_bytes: Vec<u64>,
    op: Vec<u64>,
    volume: Vec<u64>,
}

/// How the numbers in the volume column become the reader's volumes.
enum VolumeColumn {
    /// They index the list of names.
    Named,
    /// They are the names; the map leads from number to volume.
    Numbered(HashMap<u64, u32>),
}

struct ParquetReader {
    file: Box<dyn FileReader>,
    load: Load,
    /// Checksums of the row groups, where the file has them.
    checksums: Option<Vec<u32>>,
    has_times: bool,
    path: PathBuf,
    /// Leaf of each of [`COLUMNS`]; nothing for an absent volume.
    leaves: [Option<usize>; 5],
    /// Columns of the row group being read, in the order of [`COLUMNS`].
    columns: Vec<Option<Column>>,
    /// The row group to open next.
    group: usize,
    /// Requests of the open row group still to come.
    left: usize,
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

/// Runs a call into the Parquet library. It reports most damage as errors, but some by a panic. Its
/// decoders panic on a page that refers to an absent dictionary, which shows only when the page is
/// decoded. A trace file is untrusted, so this edge turns a panic into the same error. State
/// touched by the call is not used afterwards: the reader is marked as failed.
fn guarded<T>(
    path: &std::path::Path,
    call: impl FnOnce() -> Result<T, String>,
) -> Result<T, TraceError> {
    let result = catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err("the decoder gave up on a contradiction".to_owned()));
    result.map_err(|reason| TraceError::File {
        path: path.to_owned(),
        found: format!("damaged Parquet ({})", harmless(&reason)),
        expected: COMPLETE.to_owned(),
    })
}

/// A file whose directory has been read, what brings its row groups into memory, its length.
type Parsed = (Box<dyn FileReader>, Load, u64);

/// Reads the directory at the end of the file.
fn parsed<R: ChunkReader + 'static>(
    path: &std::path::Path,
    bytes: R,
) -> Result<Parsed, TraceError> {
    let len = bytes.len();
    let (bytes, load) = Checked::new(bytes);
    guarded(path, || {
        let reader = SerializedFileReader::new(bytes).map_err(|error| error.to_string())?;
        Ok((Box::new(reader) as Box<dyn FileReader>, load, len))
    })
}

/// The checksums of the row groups where the file has them, or what is wrong with the directory.
fn checksums(file: &dyn FileReader) -> Result<Option<Vec<u32>>, String> {
    let metadata = file.metadata().file_metadata().key_value_metadata();
    let metadata = metadata.map_or(&[] as &[KeyValue], Vec::as_slice);
    let Some(pair) = metadata.iter().find(|pair| pair.key == native::CHECKSUM_KEY) else {
        let name = file.metadata().file_metadata().schema().name();
        let are_due = name == native::SCHEMA_NAME;
        return if are_due { Err("a directory without its checksum".to_owned()) } else { Ok(None) };
    };
    let text = pair.value.as_deref().unwrap_or_default();
    let stated = Checksums::parse(text).ok_or_else(|| {
        format!("`{}` = `{}`, no checksums", native::CHECKSUM_KEY, shown(text.as_bytes()))
    })?;
    let groups = file.metadata().row_groups();
    let found = Checksums::compute(groups, stated.groups.clone(), metadata);
    if found == stated && groups.len() == stated.groups.len() {
        return Ok(Some(stated.groups));
    }
    Err("a directory that differs from its checksum".to_owned())
}

/// Refuses a directory that points outside the file, which the library would panic on.
fn sound(file: &dyn FileReader, len: u64) -> Result<(), String> {
    for group in file.metadata().row_groups() {
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(0);
            let place = (start, column.data_page_offset(), column.compressed_size());
            let inside = |value: i64| u64::try_from(value).is_ok_and(|value| value <= len);
            if !(inside(place.0) && inside(place.1) && inside(place.2)) {
                let name = shown(column.column_path().string().as_bytes());
                return Err(format!("column `{name}` at {place:?} in a file of {len} bytes"));
            }
        }
    }
    Ok(())
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
            file,
            load,
            checksums,
            path,
            leaves,
            columns: Vec::new(),
            group: 0,
            left: 0,
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

    /// Opens the next row group that holds requests; false at the end.
    fn next_group(&mut self) -> Result<bool, String> {
        while self.left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.columns.clear();
            self.check_group()?;
            let group = self.file.get_row_group(self.group).map_err(|e| e.to_string())?;
            self.left = usize::try_from(group.metadata().num_rows())
                .map_err(|_| "a negative number of rows".to_owned())?;
            for leaf in self.leaves {
                let column = match leaf {
                    Some(leaf) => Some(Column::open(group.as_ref(), leaf)?),
                    None => None,
                };
                self.columns.push(column);
            }
            self.group += 1;
        }
        Ok(true)
    }

    /// Compares the bytes of the row group to open with their checksum, where there is one.
    fn check_group(&self) -> Result<(), String> {
        let Some(stated) = self.checksums.as_ref().and_then(|all| all.get(self.group)) else {
            return Ok(());
        };
        let place = checksum::range(self.file.metadata().row_group(self.group));
        let found = (self.load)(place.ok_or_else(|| "columns without a place".to_owned())?)?;
        if found == *stated {
            return Ok(());
        }
        let number = self.group + 1;
        Err(format!("row group {number}: checksum {found:08x}, expected {stated:08x}"))
    }

    /// Decodes the next up to `max` requests into `values`; returns how many.
    fn decode(&mut self, max: usize) -> Result<usize, String> {
        if !self.next_group()? {
            return Ok(0);
        }
        let count = max.min(CHUNK).min(self.left);
        let values = &mut self.values;
        let into = [
            &mut values.time_ns,
            &mut values.offset_bytes,
            &mut values.length_bytes,
            &mut values.op,
            &mut values.volume,
        ];
        for ((column, values), name) in self.columns.iter_mut().zip(into).zip(COLUMNS) {
            values.clear();
            match column {
                None => values.resize(count, 0),
                Some(column) => {
                    column.read(count, values).map_err(|error| format!("column {name}: {error}"))?
                }
            }
        }
        self.left -= count;
        Ok(count)
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
            column: self.leaves[column].unwrap_or(0) as u64 + 1,
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
            let decoded = guarded(&path, || self.decode(max - count));
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

/// The leaf of each column, or what is wrong with the schema.
fn leaves(file: &dyn FileReader) -> Result<[Option<usize>; 5], String> {
    let schema = file.metadata().file_metadata().schema_descr();
    let mut leaves = [None; 5];
    for (leaf, name) in leaves.iter_mut().zip(COLUMNS) {
        *leaf = schema.columns().iter().position(|column| column.path().string() == name);
        match leaf {
            Some(leaf) => column::check(&schema.column(*leaf))?,
            None if name == VOLUME => {}
            None => {
                let name_of = |path: String| shown(path.as_bytes());
                let columns = schema.columns().iter().take(20);
                let names: Vec<String> = columns.map(|c| name_of(c.path().string())).collect();
                let hint = if name == OP { " (0 read, 1 write, 2 trim, 3 flush)" } else { "" };
                return Err(format!("no column `{name}`{hint} among `{}`", names.join("`, `")));
            }
        }
    }
    Ok(leaves)
}

/// The value of `key` in the file's metadata.
fn value<'a>(file: &'a dyn FileReader, key: &str) -> Option<&'a str> {
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
    pair.and_then(|pair| pair.value.as_deref())
}

/// The names of the volumes if the file has them, or what is wrong with them.
fn names(file: &dyn FileReader) -> Result<Option<Vec<String>>, String> {
    match value(file, native::VERSION_KEY) {
        None | Some(native::VERSION) => {}
        Some(other) => {
            return Err(format!("`{}` = `{}`", native::VERSION_KEY, other.escape_debug()));
        }
    }
    let Some(list) = value(file, native::VOLUMES_KEY) else { return Ok(None) };
    let names: Vec<String> = serde_json::from_str(list)
        .map_err(|error| format!("`{}` that is no list of names ({error})", native::VOLUMES_KEY))?;
    Ok(Some(names))
}

#[cfg(test)]
mod tests;
