//! The bytes of a Parquet file, a row group at a time where that is to be checked.
//!
//! For: reading each byte of a checked row group once: for its checksum, and then from memory for
//! its columns. Must never know: columns. Units: bytes.

use crate::source::{Spool, SpoolReader};
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::io::{BufReader, Cursor, Read};
use std::ops::Range;
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
