//! Records of a binary trace, from a decompressed stream.
//!
//! Units: bytes. Invariant: memory is one buffer, whatever the input.

use crate::error::UnreadableRecord;
use crate::reader::RequestBound;
use crate::source::ByteStream;
use crate::{Batch, OnBadRecord, OpenOptions, Record, Skipped, TraceError};
use cachewright_types::Op;

const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of a bad record that are shown.
const SHOWN_BYTES: usize = 24;
/// Requests end below this address, as in text formats, so that sums cannot overflow.
pub(crate) const ADDRESS_LIMIT_BYTES: u64 = 1 << 63;

/// The request of a record, nothing for one that carries none, or where in it is what instead of
/// what was expected.
pub(crate) type Parsed = Result<Option<Record>, (usize, &'static str)>;

/// Bytes of a stream from which records are cut.
pub(crate) struct Records {
    stream: ByteStream,
    buffer: Vec<u8>,
    /// The unread part of `buffer` is `start..end`.
    start: usize,
    end: usize,
    ended: bool,
    /// Byte offset of `start` in the decompressed content.
    offset: u64,
    /// Records passed so far, bad and irrelevant ones included.
    passed: u64,
    on_bad_record: OnBadRecord,
    pub(crate) bound: RequestBound,
    pub(crate) skipped: Skipped,
}

impl Records {
    /// Cuts records from the beginning of `stream`.
    pub(crate) fn new(stream: ByteStream, options: &OpenOptions) -> Records {
        Records {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            ended: false,
            offset: 0,
            passed: 0,
            on_bad_record: options.on_bad_record,
            bound: RequestBound::from_options(options),
            skipped: Skipped::default(),
        }
    }

    /// The unread bytes in memory: at least `wanted` unless the content ends before. Errors: those
    /// of the stream.
    pub(crate) fn ahead(&mut self, wanted: usize) -> Result<&[u8], TraceError> {
        if self.end - self.start < wanted && !self.ended {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() < wanted {
                self.buffer.resize(wanted, 0);
            }
            let count = self.stream.fill(&mut self.buffer[self.end..])?;
            self.ended = count < self.buffer.len() - self.end;
            self.end += count;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// The next record of `size` bytes, at most `N`; nothing at the end. A record that the end cuts
    /// off is dealt with.
    #[inline]
    pub(crate) fn whole<const N: usize>(
        &mut self,
        size: usize,
    ) -> Result<Option<[u8; N]>, TraceError> {
        let ahead = self.ahead(size)?;
        if ahead.len() < size {
            if !ahead.is_empty() {
                self.cut_off(&format!("a record of {size} bytes"))?;
            }
            return Ok(None);
        }
        let mut bytes = [0; N];
        bytes[..size].copy_from_slice(&ahead[..size]);
        Ok(Some(bytes))
    }

    /// Adds the request of the next record to `batch` and passes over its `size` bytes; returns the
    /// requests added. `length` is where in the record the length of the request is.
    #[inline]
    pub(crate) fn take(
        &mut self,
        parsed: Parsed,
        size: usize,
        length: usize,
        batch: &mut Batch,
    ) -> Result<usize, TraceError> {
        let mut added = 0;
        match parsed {
            Ok(Some(record)) if self.bound.refuses(record.op, record.length_bytes) => {
                self.too_long(length, record.length_bytes)?;
            }
            Ok(Some(record)) => {
                batch.push(record);
                added = 1;
            }
            Ok(None) => self.skipped.irrelevant += 1,
            Err((field, expected)) => self.bad(0, 0, field, expected)?,
        }
        self.pass(size, 1);
        Ok(added)
    }

    /// Marks `bytes` of what is ahead as read, as `records` records.
    pub(crate) fn pass(&mut self, bytes: usize, records: u64) {
        let bytes = bytes.min(self.end - self.start);
        self.start += bytes;
        self.offset += bytes as u64;
        self.passed += records;
    }

    /// Deals with the record that is `records` further on and `bytes` ahead: an error, or counted.
    /// `field` is where in the record the fault lies. Passing over it is the caller's task.
    pub(crate) fn bad(
        &mut self,
        bytes: usize,
        records: u64,
        field: usize,
        expected: &str,
    ) -> Result<(), TraceError> {
        let from = self.start.saturating_add(bytes).saturating_add(field).min(self.end);
        let shown = &self.buffer[from..self.end.min(from + SHOWN_BYTES)];
        let found = if shown.is_empty() { "the end".to_owned() } else { hex(shown) };
        self.refuse(UnreadableRecord {
            position: self.passed + records + 1,
            is_line: false,
            column: self.offset + (bytes + field) as u64,
            found,
            expected: expected.to_owned(),
        })
    }

    /// Deals with the next record, whose request is longer than the bound, as [`bad`](Self::bad)
    /// does. `field` is where in the record the length is.
    #[cold]
    pub(crate) fn too_long(&mut self, field: usize, length_bytes: u64) -> Result<(), TraceError> {
        self.refuse(UnreadableRecord {
            position: self.passed + 1,
            is_line: false,
            column: self.offset + field as u64,
            found: format!("{length_bytes} B"),
            expected: self.bound.expected(),
        })
    }

    fn refuse(&mut self, record: UnreadableRecord) -> Result<(), TraceError> {
        match self.on_bad_record {
            OnBadRecord::Skip => {
                self.skipped.count_bad(record);
                Ok(())
            }
            OnBadRecord::Fail => {
                Err(TraceError::Record { path: self.stream.path().to_owned(), record })
            }
        }
    }

    /// Deals with a record cut off at the end of the content and passes over it.
    pub(crate) fn cut_off(&mut self, expected: &str) -> Result<(), TraceError> {
        let left = self.end - self.start;
        self.bad(0, 0, 0, expected)?;
        self.pass(left, 1);
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::from("0x");
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Offset and length in bytes of a request, or what was expected instead. The end must lie below
/// 2^63 bytes. The length must not be 0, except for a flush, which has neither.
#[inline]
pub(crate) fn extent(
    op: Op,
    address: u64,
    unit_bytes: u64,
    length_bytes: u64,
) -> Result<(u64, u64), &'static str> {
    if op == Op::Flush {
        return Ok((0, 0));
    }
    let end = address.checked_mul(unit_bytes).and_then(|start| start.checked_add(length_bytes));
    match end {
        Some(end) if end <= ADDRESS_LIMIT_BYTES && length_bytes > 0 => {
            Ok((end - length_bytes, length_bytes))
        }
        Some(_) if length_bytes == 0 => Err("a length above 0"),
        _ => Err("a request that ends below 2^63 bytes"),
    }
}

/// The `N` bytes of `record` from `offset` on, zeros where it is too short.
#[inline(always)]
pub(crate) fn field<const N: usize>(record: &[u8], offset: usize) -> [u8; N] {
    record.get(offset..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
}

/// Little-endian `u16` at byte `offset`.
#[inline(always)]
pub(crate) fn le_u16(record: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(field(record, offset))
}

/// Little-endian `u32` at byte `offset`.
#[inline(always)]
pub(crate) fn le_u32(record: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(field(record, offset))
}

/// Little-endian `u64` at byte `offset`.
#[inline(always)]
pub(crate) fn le_u64(record: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(field(record, offset))
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of binary formats and writers use.

    use crate::formats::registry::open_bytes;
    use crate::{Batch, OpenOptions, Record};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// All requests and volumes of `bytes`, which must be valid.
    pub(crate) fn read_bytes(options: &OpenOptions, bytes: &[u8]) -> (Vec<Record>, Vec<String>) {
        let mut reader = open_bytes("sample", bytes, options).expect("must open");
        let mut batch = Batch::default();
        while reader.read(&mut batch, 3).expect("must be valid") > 0 {}
        (batch.iter().collect(), reader.volumes().to_vec())
    }

    /// The message that `bytes` are refused with.
    pub(crate) fn bad_bytes(options: &OpenOptions, bytes: &[u8]) -> String {
        let mut reader = match open_bytes("sample", bytes, options) {
            Ok(reader) => reader,
            Err(error) => return error.to_string(),
        };
        let mut batch = Batch::default();
        loop {
            match reader.read(&mut batch, 3) {
                Ok(0) => panic!("must be refused"),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }

    /// A directory that is removed when dropped.
    pub(crate) struct Directory(PathBuf);

    impl Directory {
        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A new empty directory.
    pub(crate) fn directory() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cachewright-trace-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }
}
