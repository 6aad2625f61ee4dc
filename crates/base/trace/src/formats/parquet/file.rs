//! A Parquet file: its directory, its row groups decoded a chunk at a time, and their checksums.
//!
//! What is read here is untrusted: nothing of it is used before it is checked. Each byte of a
//! checked row group is read once: for its checksum, and then from memory for its columns.

use super::columns::{BadValue, ColumnType, Meaning, ParquetColumn};
use crate::error::TraceError;
use crate::native::{self, Checksums};
use crate::reader::shown;
use crate::source::{Spool, SpoolReader};
use brotli_decompressor::Decompressor;
use bytes::Bytes;
use cachewright_types::visible;
use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use std::io::{BufReader, Cursor, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Longest row group that is checked; ours have at most 35 MiB.
const GROUP_LIMIT_BYTES: u64 = 256 << 20;

/// The row group in memory: where it begins in the file, and its bytes.
type RowGroupBytes = Arc<Mutex<Option<(u64, Bytes)>>>;
/// Brings a row group into memory and returns its checksum.
pub(super) type Load = Box<dyn Fn(Range<u64>) -> std::result::Result<u32, String> + Send>;

/// A file whose current row group may be in memory.
pub(super) struct CheckedFile<R> {
    file: Arc<R>,
    window: RowGroupBytes,
}

impl<R: ChunkReader + 'static> CheckedFile<R> {
    /// The file, and what brings its row groups into memory.
    pub(super) fn new(file: R) -> (CheckedFile<R>, Load) {
        let (file, window) = (Arc::new(file), RowGroupBytes::default());
        let (from, into) = (file.clone(), window.clone());
        let load = move |range: Range<u64>| {
            let len = range.end - range.start;
            if len > GROUP_LIMIT_BYTES || range.end > from.len() {
                return Err(format!("a row group at bytes {} to {}", range.start, range.end));
            }
            let mut window = into.lock().map_err(|_| "it failed before".to_owned())?;
            // The next row group takes the memory of the last one, whose columns are closed: fresh
            // memory costs as much as decoding.
            let last = window.take().and_then(|(_, bytes)| bytes.try_into_mut().ok());
            let mut bytes = last.unwrap_or_default();
            bytes.resize(len as usize, 0);
            let mut reader = from.get_read(range.start).map_err(|e| e.to_string())?;
            reader.read_exact(&mut bytes).map_err(|e| e.to_string())?;
            let crc = crc32fast::hash(&bytes);
            *window = Some((range.start, bytes.freeze()));
            Ok(crc)
        };
        (CheckedFile { file, window }, Box::new(load))
    }

    /// The same file and row group once more.
    pub(super) fn again(&self) -> CheckedFile<R> {
        CheckedFile { file: self.file.clone(), window: self.window.clone() }
    }

    /// The bytes in memory from `start` on.
    fn held(&self, start: u64) -> Option<Bytes> {
        let window = self.window.lock().ok()?;
        let (from, bytes) = window.as_ref()?;
        let skipped = usize::try_from(start.checked_sub(*from)?).ok()?;
        (skipped < bytes.len()).then(|| bytes.slice(skipped..))
    }
}

impl<R: ChunkReader> Length for CheckedFile<R> {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl<R: ChunkReader + 'static> ChunkReader for CheckedFile<R> {
    type T = Either<R::T>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        match self.held(start) {
            Some(bytes) => Ok(Either::Held(Cursor::new(bytes))),
            None => self.file.get_read(start).map(Either::File),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        match self.held(start) {
            Some(bytes) if length <= bytes.len() => Ok(bytes.slice(..length)),
            _ => self.file.get_bytes(start, length),
        }
    }
}

/// Bytes from memory or from the file.
pub(super) enum Either<T> {
    Held(Cursor<Bytes>),
    File(T),
}

impl<T: Read> Read for Either<T> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Either::Held(bytes) => bytes.read(buffer),
            Either::File(file) => file.read(buffer),
        }
    }
}

/// Content kept in a temporary file, complete.
pub(super) struct CheckedFooter {
    pub(super) spool: Arc<Spool>,
    pub(super) len: u64,
}

impl Length for CheckedFooter {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for CheckedFooter {
    type T = BufReader<SpoolReader>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(SpoolReader::new(&self.spool, start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len);
        if end.is_none() {
            let text = format!("{length} bytes at {start} in a file of {} bytes", self.len);
            return Err(ParquetError::EOF(text));
        }
        let mut bytes = vec![0; length];
        SpoolReader::new(&self.spool, start).read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Longest page of these codecs; writers make them of about 1 MiB.
const PAGE_LIMIT_BYTES: u64 = 256 << 20;
const BROTLI_BUFFER_BYTES: usize = 4096;

/// A codec of which the pages are unpacked here.
#[derive(Clone, Copy)]
pub(super) enum PageCodec {
    Gzip,
    Brotli,
}

impl PageCodec {
    /// The codec if it is one of these.
    pub(super) fn new(compression: Compression) -> Option<PageCodec> {
        match compression {
            Compression::GZIP(_) => Some(PageCodec::Gzip),
            Compression::BROTLI(_) => Some(PageCodec::Brotli),
            _ => None,
        }
    }

    fn unpack(self, packed: &[u8], into: &mut Vec<u8>) -> Result<()> {
        let limit = PAGE_LIMIT_BYTES + 1;
        let count = match self {
            PageCodec::Gzip => MultiGzDecoder::new(packed).take(limit).read_to_end(into),
            PageCodec::Brotli => {
                Decompressor::new(packed, BROTLI_BUFFER_BYTES).take(limit).read_to_end(into)
            }
        };
        match count? as u64 > PAGE_LIMIT_BYTES {
            false => Ok(()),
            true => {
                let text = format!("a page of more than {} MiB", PAGE_LIMIT_BYTES >> 20);
                Err(ParquetError::NYI(text))
            }
        }
    }
}

/// The pages of a column compressed by gzip or brotli, unpacked to a bounded length: their decoders
/// take no bound of their own, and a page of some KiB may hold many GiB.
pub(super) struct UnpackedPages {
    packed: Box<dyn PageReader>,
    codec: PageCodec,
}

impl UnpackedPages {
    /// Unpacks the pages that `packed` gives as they stand in the file.
    pub(super) fn new(packed: Box<dyn PageReader>, codec: PageCodec) -> UnpackedPages {
        UnpackedPages { packed, codec }
    }

    /// `buf` with all bytes behind the first `plain` unpacked.
    fn unpacked(&self, buf: &Bytes, plain: usize) -> Result<Bytes> {
        let (Some(levels), Some(packed)) = (buf.get(..plain), buf.get(plain..)) else {
            return Err(ParquetError::General("a page shorter than its levels".to_owned()));
        };
        let mut bytes = levels.to_vec();
        // A page of nulls alone has no values, and nothing is compressed.
        if !packed.is_empty() {
            self.codec.unpack(packed, &mut bytes)?;
        }
        Ok(bytes.into())
    }
}

impl Iterator for UnpackedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for UnpackedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(mut page) = self.packed.get_next_page()? else { return Ok(None) };
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = self.unpacked(buf, 0)?;
            }
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                if *is_compressed {
                    // Levels are never compressed in pages of version 2.
                    let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                    let levels = usize::try_from(levels).unwrap_or(usize::MAX);
                    *buf = self.unpacked(buf, levels)?;
                    *is_compressed = false;
                }
            }
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.packed.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.packed.skip_next_page()
    }
}

/// What is expected of a file whose parts contradict each other.
pub const COMPLETE: &str = "a complete Parquet file as docs/trace-format.md describes";

/// Why the Parquet library gave up.
#[derive(Debug)]
pub enum Fault {
    /// The file contradicts itself.
    Damaged(String),
    /// The file may be sound, but is of a kind that is not read.
    Unsupported(String),
}

impl Fault {
    /// The same fault of the column called `name`.
    pub fn of_column(self, name: &str) -> Fault {
        match self {
            Fault::Damaged(text) => Fault::Damaged(format!("column {name}: {text}")),
            Fault::Unsupported(text) => Fault::Unsupported(format!("column {name}: {text}")),
        }
    }
}

impl From<ParquetError> for Fault {
    fn from(error: ParquetError) -> Fault {
        match error {
            ParquetError::NYI(text) => Fault::Unsupported(text),
            ParquetError::General(text) if text.contains("encrypt") => Fault::Unsupported(text),
            error => Fault::Damaged(error.to_string()),
        }
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault::Damaged(text)
    }
}

/// Runs a call into the Parquet library. It reports most damage as errors, but some by a panic. Its
/// decoders panic on a page that refers to an absent dictionary, which shows only when the page is
/// decoded. A trace file is untrusted, so this edge turns a panic into the same error. State
/// touched by the call is not used afterwards: the reader is marked as failed.
pub fn guarded<T>(
    path: &std::path::Path,
    call: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, TraceError> {
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(Fault::Damaged("the decoder gave up on a contradiction".to_owned()))
    });
    result.map_err(|fault| match fault {
        Fault::Damaged(reason) => TraceError::File {
            path: path.to_owned(),
            found: format!("damaged Parquet ({})", visible(&reason)),
            expected: COMPLETE.to_owned(),
        },
        Fault::Unsupported(reason) => TraceError::File {
            path: path.to_owned(),
            found: format!("Parquet that cannot be read here ({})", visible(&reason)),
            expected: "no encryption, and pages of at most 256 MiB in an encoding of \
                       the Parquet format that is in use (not BIT_PACKED)"
                .to_owned(),
        },
    })
}

/// Gives the pages of a column chunk, from its metadata and its number of rows.
pub type Pages =
    Box<dyn Fn(&ColumnChunkMetaData, usize) -> Result<Box<dyn PageReader>, ParquetError> + Send>;

/// A file whose directory has been read.
pub struct ParquetFile {
    /// The directory.
    pub reader: Box<dyn FileReader>,
    /// What brings its row groups into memory.
    pub load: Load,
    /// What reads its pages.
    pub pages: Pages,
    /// Its length in bytes.
    pub len: u64,
}

/// Reads the directory at the end of the file.
pub fn parsed<R: ChunkReader + 'static>(
    path: &std::path::Path,
    bytes: R,
) -> Result<ParquetFile, TraceError> {
    let len = bytes.len();
    let (bytes, load) = CheckedFile::new(bytes);
    let again = Arc::new(bytes.again());
    guarded(path, || {
        let reader = Box::new(SerializedFileReader::new(bytes)?);
        let pages: Pages = Box::new(move |chunk, rows| pages_of(&again, chunk, rows));
        Ok(ParquetFile { reader, load, pages, len })
    })
}

fn pages_of<R: ChunkReader + 'static>(
    file: &Arc<CheckedFile<R>>,
    chunk: &ColumnChunkMetaData,
    rows: usize,
) -> Result<Box<dyn PageReader>, ParquetError> {
    let Some(codec) = PageCodec::new(chunk.compression()) else {
        return Ok(Box::new(SerializedPageReader::new(file.clone(), chunk, rows, None)?));
    };
    // Read as if nothing were compressed, its pages come as they stand in the file.
    let builder = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
    let packed = SerializedPageReader::new(file.clone(), &builder.build()?, rows, None)?;
    Ok(Box::new(UnpackedPages::new(Box::new(packed), codec)))
}

/// The checksums of the row groups where the file has them, or what is wrong with the directory.
pub fn checksums(file: &dyn FileReader) -> Result<Option<Vec<u32>>, String> {
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
pub fn sound(file: &dyn FileReader, len: u64) -> Result<(), String> {
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

/// Refuses columns, by their leaves, whose compression is not read.
pub fn readable(file: &dyn FileReader, leaves: &[usize]) -> Result<(), String> {
    let chunks = file.metadata().row_groups().iter();
    let mut chunks = chunks.flat_map(|group| leaves.iter().map(|leaf| group.column(*leaf)));
    match chunks.find(|chunk| chunk.compression() == Compression::LZO) {
        None => Ok(()),
        Some(chunk) => {
            let name = shown(chunk.column_path().string().as_bytes());
            Err(format!("column `{name}` compressed by LZO"))
        }
    }
}

/// The value of `key` in the file's metadata.
pub fn value<'a>(file: &'a dyn FileReader, key: &str) -> Option<&'a str> {
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let pair = pairs.into_iter().flatten().find(|pair| pair.key == key);
    pair.and_then(|pair| pair.value.as_deref())
}

/// The names of the volumes if the file has them, or what is wrong with them.
pub fn names(file: &dyn FileReader) -> Result<Option<Vec<String>>, String> {
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

/// Requests decoded at a time.
const CHUNK: usize = 1 << 13;
/// Number of parts of a request, in the order of [`crate::native::COLUMNS`].
pub(super) const PARTS: usize = 5;

/// Where one part of a request comes from.
pub(super) enum Part {
    /// A column.
    Column(MappedColumn),
    /// Nowhere: it is the same in all requests.
    Same(u64),
}

/// A column of the file and what it is read as.
pub(super) struct MappedColumn {
    /// Its place among the leaves of the schema, from 0.
    pub leaf: usize,
    /// Its name, as shown in messages.
    pub name: String,
    /// What its values are.
    pub kind: ColumnType,
    /// What they become.
    pub meaning: Meaning,
}

impl MappedColumn {
    /// Whether its values are names, not numbers.
    fn is_text(&self) -> bool {
        self.kind == ColumnType::Text && !matches!(self.meaning, Meaning::Words(_))
    }
}

/// Decoded values of a chunk, all columns of one length.
#[derive(Default)]
pub(super) struct Values {
    /// See [`crate::native`], as all columns.
    pub time_ns: Vec<u64>,
    pub offset_bytes: Vec<u64>,
    pub length_bytes: Vec<u64>,
    pub op: Vec<u64>,
    pub volume: Vec<u64>,
    /// The names of volumes where a column of text holds them; then `volume` is empty.
    pub volume_names: Vec<Box<[u8]>>,
    /// Whether each row is a request; empty where all are.
    pub kept: Vec<u64>,
    /// The values that could not be read, by part and in order of their rows.
    pub bad: [Vec<BadValue>; PARTS],
}

impl Values {
    /// What stands instead of a value of `part` in `row`.
    pub fn bad_value(&self, part: usize, row: usize) -> Option<&str> {
        let values = &self.bad[part];
        let place = values.binary_search_by_key(&row, |value| value.row).ok()?;
        Some(&values[place].found)
    }
}

/// The row groups of a file, passed from the first to the last.
pub(super) struct RowGroups {
    file: Box<dyn FileReader>,
    load: Load,
    pages: Pages,
    /// Checksums of the row groups, where the file has them.
    checksums: Option<Vec<u32>>,
    parts: [Part; PARTS],
    /// The column that says which rows are requests.
    keep: Option<MappedColumn>,
    /// Columns of the row group being read, in the order of `parts`.
    columns: Vec<Option<ParquetColumn>>,
    keep_column: Option<ParquetColumn>,
    /// The row group to open next.
    group: usize,
    /// Requests of the open row group still to come.
    left: usize,
}

impl RowGroups {
    /// Before the first row group of a file whose directory is sound.
    pub fn new(
        file: ParquetFile,
        checksums: Option<Vec<u32>>,
        parts: [Part; PARTS],
        keep: Option<MappedColumn>,
    ) -> RowGroups {
        RowGroups {
            file: file.reader,
            load: file.load,
            pages: file.pages,
            checksums,
            parts,
            keep,
            columns: Vec::new(),
            keep_column: None,
            group: 0,
            left: 0,
        }
    }

    /// The number of the column of a part in the file, from one, and its name.
    pub fn column_of(&self, part: usize) -> (u64, &str) {
        match &self.parts[part] {
            Part::Column(column) => (column.leaf as u64 + 1, &column.name),
            Part::Same(_) => (0, crate::native::COLUMNS[part]),
        }
    }

    /// Opens the next row group that holds requests; false at the end.
    fn next_group(&mut self) -> Result<bool, Fault> {
        while self.left == 0 {
            if self.group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.columns.clear();
            self.keep_column = None;
            self.check_group()?;
            for part in &self.parts {
                let column = match part {
                    Part::Column(mapped) => Some(self.opened(mapped)?),
                    Part::Same(_) => None,
                };
                self.columns.push(column);
            }
            self.keep_column = match &self.keep {
                Some(mapped) => Some(self.opened(mapped)?),
                None => None,
            };
            self.left = self.rows()?;
            self.group += 1;
        }
        Ok(true)
    }

    /// Rows of the row group to open.
    fn rows(&self) -> Result<usize, Fault> {
        usize::try_from(self.file.metadata().row_group(self.group).num_rows())
            .map_err(|_| Fault::Damaged("a negative number of rows".to_owned()))
    }

    /// A column of the row group to open.
    fn opened(&self, mapped: &MappedColumn) -> Result<ParquetColumn, Fault> {
        let chunk = self.file.metadata().row_group(self.group).column(mapped.leaf);
        let pages = (self.pages)(chunk, self.rows()?)?;
        Ok(ParquetColumn::open(&chunk.column_descr_ptr(), pages, mapped.kind))
    }

    /// Compares the bytes of the row group to open with their checksum, where there is one.
    fn check_group(&self) -> Result<(), Fault> {
        let Some(stated) = self.checksums.as_ref().and_then(|all| all.get(self.group)) else {
            return Ok(());
        };
        let place = native::range(self.file.metadata().row_group(self.group));
        let found = (self.load)(place.ok_or_else(|| "columns without a place".to_owned())?)?;
        if found == *stated {
            return Ok(());
        }
        let number = self.group + 1;
        let text = format!("row group {number}: checksum {found:08x}, expected {stated:08x}");
        Err(Fault::Damaged(text))
    }

    /// Decodes the next up to `max` requests into `values`; returns how many.
    pub fn decode(&mut self, max: usize, values: &mut Values) -> Result<usize, Fault> {
        if !self.next_group()? {
            return Ok(0);
        }
        let count = max.min(CHUNK).min(self.left);
        let into = [
            &mut values.time_ns,
            &mut values.offset_bytes,
            &mut values.length_bytes,
            &mut values.op,
            &mut values.volume,
        ];
        values.volume_names.clear();
        let columns = self.columns.iter_mut().zip(&self.parts);
        for (((column, part), into), bad) in columns.zip(into).zip(&mut values.bad) {
            into.clear();
            bad.clear();
            match (column, part) {
                (Some(column), Part::Column(mapped)) if mapped.is_text() => {
                    let read = column.read_texts(count, &mut values.volume_names, bad);
                    read.map_err(|fault| fault.of_column(&mapped.name))?;
                }
                (Some(column), Part::Column(mapped)) => {
                    let read = column.read(count, &mapped.meaning, into, bad);
                    read.map_err(|fault| fault.of_column(&mapped.name))?;
                }
                (_, Part::Same(value)) => into.resize(count, *value),
                (None, Part::Column(_)) => {}
            }
        }
        values.kept.clear();
        if let (Some(column), Some(mapped)) = (&mut self.keep_column, &self.keep) {
            let read = column.read(count, &mapped.meaning, &mut values.kept, &mut Vec::new());
            read.map_err(|fault| fault.of_column(&mapped.name))?;
        }
        self.left -= count;
        Ok(count)
    }
}
