//! What both production siblings keep: open files, and sends that go on.
//!
//! For: `uring` and `threads`. Must never know: how an operation is carried out. Units: bytes.

use crate::io::open::{DeviceFacts, OpenFile};
use crate::io::{Buffer, FileId, IoError, check_range};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// Buffers that one call of the system takes (source: `UIO_MAXIOV` of Linux).
pub const MAX_SLICES: usize = 1024;

/// Files by number, which is not given again.
#[derive(Debug, Default)]
pub struct Files {
    files: Vec<Option<Arc<OpenFile>>>,
}

impl Files {
    /// Adds a file.
    pub fn add(&mut self, file: OpenFile) -> FileId {
        self.files.push(Some(Arc::new(file)));
        FileId::new(self.files.len() - 1)
    }

    /// A file, or an error if there is none of this number.
    #[inline]
    pub fn get(&self, file: FileId) -> Result<&Arc<OpenFile>, IoError> {
        self.files.get(file.index()).and_then(Option::as_ref).ok_or(IoError::INVALID)
    }

    /// Closes a file when the operations on it have ended.
    pub fn remove(&mut self, file: FileId) {
        self.files.get_mut(file.index()).map(Option::take);
    }

    /// Looks how large a file is now. Errors: the system's.
    pub fn measure(&mut self, file: FileId) -> std::io::Result<u64> {
        match self.get(file) {
            Ok(file) => file.measure(),
            Err(error) => Err(std::io::Error::from_raw_os_error(error.0)),
        }
    }

    /// Whether zeroes of a range of a file are faster than writing them.
    pub fn zeroes_fast(&self, file: FileId) -> bool {
        self.get(file).is_ok_and(|file| file.zeroes_fast())
    }

    /// Whether a path leads to a file. Errors: the system's.
    pub fn is_at(&self, file: FileId, path: &Path) -> std::io::Result<bool> {
        match self.get(file) {
            Ok(file) => file.is_at(path),
            Err(error) => Err(std::io::Error::from_raw_os_error(error.0)),
        }
    }

    /// What a file is known by. Errors: the system's.
    pub fn facts(&self, file: FileId) -> std::io::Result<DeviceFacts> {
        match self.get(file) {
            Ok(file) => file.facts(),
            Err(error) => Err(std::io::Error::from_raw_os_error(error.0)),
        }
    }

    /// Bytes of a file; of none, no bytes.
    pub fn bytes(&self, file: FileId) -> u64 {
        self.get(file).map_or(0, |file| file.bytes())
    }

    /// A file, if the range is aligned and ends inside.
    #[inline]
    pub fn check(&self, file: FileId, offset: u64, length: u64) -> Result<&Arc<OpenFile>, IoError> {
        let found = self.get(file)?;
        check_range(offset, length, found.bytes())?;
        Ok(found)
    }
}

/// A send that may take several calls.
#[derive(Debug)]
pub struct Sending {
    buffers: Vec<Buffer>,
    /// The first buffer that is not wholly sent, and its bytes that are.
    next: usize,
    sent: usize,
}

impl Sending {
    /// Nothing is sent yet.
    pub fn new(buffers: Vec<Buffer>) -> Sending {
        let mut sending = Sending { buffers, next: 0, sent: 0 };
        sending.advance(0);
        sending
    }

    /// What is left, as far as one call takes it.
    pub fn slices(&self) -> impl Iterator<Item = IoSlice<'_>> {
        let rest = self.buffers.get(self.next..).unwrap_or_default().iter().enumerate();
        let unsent = rest
            .map(|(place, buffer)| IoSlice::new(&buffer[if place == 0 { self.sent } else { 0 }..]));
        unsent.filter(|slice| !slice.is_empty()).take(MAX_SLICES)
    }

    /// `bytes` more are sent.
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        while let Some(length) = self.buffers.get(self.next).map(|buffer| buffer.len())
            && length <= self.sent
        {
            self.sent -= length;
            self.next += 1;
        }
    }

    /// Whether all is sent.
    pub fn is_done(&self) -> bool {
        self.next == self.buffers.len()
    }

    /// The buffers.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }
}

/// What callers are given for the error numbers of a connection that is gone.
pub fn socket_error(number: i32) -> IoError {
    match number {
        libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN | libc::ESHUTDOWN | libc::ECONNABORTED => {
            IoError::NOT_CONNECTED
        }
        number => IoError(number),
    }
}

/// What callers are given for the error numbers of a file that cannot do an operation.
pub fn range_error(number: i32) -> IoError {
    match number {
        libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV => IoError::NOT_SUPPORTED,
        number => IoError(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_goes_on_at_the_first_byte_that_is_left() {
        let parts: [&[u8]; 5] = [b"", b"ab", b"", b"cde", b""];
        let whole: Vec<u8> = parts.concat();
        for step in 1..=whole.len() {
            let mut sending = Sending::new(parts.map(Buffer::copy_of).into());
            let mut sent = Vec::new();
            while !sending.is_done() {
                let left: Vec<u8> = sending.slices().flat_map(|slice| slice.to_vec()).collect();
                assert_eq!(left, whole[sent.len()..]);
                let count = step.min(left.len());
                sent.extend(&left[..count]);
                sending.advance(count);
            }
            assert_eq!((sent, sending.into_buffers().len()), (whole.clone(), parts.len()));
        }
        assert!(Sending::new(Vec::new()).is_done());
        assert!(Sending::new(vec![Buffer::default()]).is_done());
    }

    #[test]
    fn one_call_takes_a_bounded_number_of_buffers() {
        let sending = Sending::new(vec![Buffer::copy_of(b"x"); 3 * MAX_SLICES]);
        assert_eq!(sending.slices().count(), MAX_SLICES);
    }
}
