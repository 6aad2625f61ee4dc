//! The directory at the end of a Parquet file: its checks, its columns and its metadata.
//!
//! For: opening a file of the native format. Must never know: requests. What is read here is
//! untrusted: nothing of it is used before it is checked.

use super::checked::{CheckedFile, Load};
use super::pages::{PageCodec, UnpackedPages};
use crate::error::TraceError;
use crate::native;
use crate::native::checksum::Checksums;
use crate::options::shown;
use cachewright_types::visible;
use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::serialized_reader::SerializedPageReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

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
