//! The directory at the end of a Parquet file: its checks, its columns and its metadata.
//!
//! For: opening a file of the native format. Must never know: requests. What is read here is
//! untrusted: nothing of it is used before it is checked.

use super::checked::{CheckedFile, Load};
use super::column;
use crate::error::TraceError;
use crate::native::checksum::Checksums;
use crate::native::{self, COLUMNS, OP, VOLUME};
use crate::options::shown;
use cachewright_types::visible;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is expected of a file whose parts contradict each other.
pub const COMPLETE: &str = "a complete Parquet file as docs/trace-format.md describes";

/// Runs a call into the Parquet library. It reports most damage as errors, but some by a panic. Its
/// decoders panic on a page that refers to an absent dictionary, which shows only when the page is
/// decoded. A trace file is untrusted, so this edge turns a panic into the same error. State
/// touched by the call is not used afterwards: the reader is marked as failed.
pub fn guarded<T>(
    path: &std::path::Path,
    call: impl FnOnce() -> Result<T, String>,
) -> Result<T, TraceError> {
    let result = catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err("the decoder gave up on a contradiction".to_owned()));
    result.map_err(|reason| TraceError::File {
        path: path.to_owned(),
        found: format!("damaged Parquet ({})", visible(&reason)),
        expected: COMPLETE.to_owned(),
    })
}

/// A file whose directory has been read, what brings its row groups into memory, its length.
pub type ParquetFile = (Box<dyn FileReader>, Load, u64);

/// Reads the directory at the end of the file.
pub fn parsed<R: ChunkReader + 'static>(
    path: &std::path::Path,
    bytes: R,
) -> Result<ParquetFile, TraceError> {
    let len = bytes.len();
    let (bytes, load) = CheckedFile::new(bytes);
    guarded(path, || {
        let reader = SerializedFileReader::new(bytes).map_err(|error| error.to_string())?;
        Ok((Box::new(reader) as Box<dyn FileReader>, load, len))
    })
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

/// The leaf of each column, or what is wrong with the schema.
pub fn leaves(file: &dyn FileReader) -> Result<[Option<usize>; 5], String> {
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
