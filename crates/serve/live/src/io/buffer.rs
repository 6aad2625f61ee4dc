//! Memory that input and output without a page cache can use.
//!
//! For: the one owner of bytes under way. Must never know: files, sockets. Units: bytes. Invariant:
//! the first byte lies at a multiple of [`ALIGNMENT`], unless the buffer was made of a vector for a
//! socket, or has no bytes.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// What offsets, lengths and memory of direct input and output are multiples of, in bytes.
pub const ALIGNMENT: usize = 4096;

/// Bytes that lie aligned in memory, or those of a vector.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// `len` bytes, all zero.
    pub fn zeroed(len: usize) -> Buffer {
        if len == 0 {
            return Buffer::default();
        }
        let memory = vec![0_u8; len + ALIGNMENT - 1];
        let start = memory.as_ptr().addr().next_multiple_of(ALIGNMENT) - memory.as_ptr().addr();
        Buffer { memory, start, len }
    }

    /// A copy of `bytes`, with zeroes up to the next multiple of [`ALIGNMENT`].
    pub fn padded(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::zeroed(bytes.len().next_multiple_of(ALIGNMENT));
        buffer[..bytes.len()].copy_from_slice(bytes);
        buffer
    }

    /// A copy of `bytes`, as long as they are: for sockets.
    pub fn copy_of(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::zeroed(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// A buffer of `len` bytes of any content, in this memory if it is large enough.
    pub fn resized(mut self, len: usize) -> Buffer {
        if self.start + len > self.memory.len() {
            return Buffer::zeroed(len);
        }
        self.len = len;
        self
    }

    /// These bytes, and zeroes behind them up to `len` bytes; a longer buffer stays as it is.
    pub fn extended(self, len: usize) -> Buffer {
        let had = self.len;
        if had >= len {
            return self;
        }
        if self.start + len > self.memory.len() {
            let mut longer = Buffer::zeroed(len);
            longer[..had].copy_from_slice(&self);
            return longer;
        }
        let mut longer = self.resized(len);
        longer[had..].fill(0);
        longer
    }

    /// Keeps the first `len` bytes; a buffer that is shorter stays as it is.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl From<Vec<u8>> for Buffer {
    /// The bytes of a vector, where they lie: for sockets.
    fn from(memory: Vec<u8>) -> Buffer {
        let len = memory.len();
        Buffer { memory, start: 0, len }
    }
}

impl Clone for Buffer {
    /// A copy that is aligned, too: it lies elsewhere.
    fn clone(&self) -> Buffer {
        Buffer::copy_of(self)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes", self.len)
    }
}

/// Buffers that are used again.
#[derive(Debug)]
pub struct SpareBuffers {
    buffers: Vec<Buffer>,
    limit: usize,
}

impl SpareBuffers {
    /// Keeps at most `limit` buffers.
    pub fn new(limit: usize) -> SpareBuffers {
        SpareBuffers { buffers: Vec::new(), limit }
    }

    /// A buffer of `len` bytes of any content.
    pub fn take(&mut self, len: usize) -> Buffer {
        self.buffers.pop().unwrap_or_default().resized(len)
    }

    /// A buffer that is not needed any more.
    pub fn give_back(&mut self, buffer: Buffer) {
        if self.buffers.len() < self.limit && !buffer.memory.is_empty() {
            self.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_lie_aligned_whatever_their_length_and_also_when_copied() {
        assert!(Buffer::zeroed(0).memory.is_empty(), "no bytes need no memory");
        for len in [1, 512, 4096, 4097, 1 << 20] {
            let buffer = Buffer::zeroed(len);
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % ALIGNMENT), (len, 0));
            assert_eq!(buffer.clone().as_ptr().addr() % ALIGNMENT, 0);
        }
        let mut padded = Buffer::padded(b"abc");
        assert_eq!((padded.len(), &padded[..4]), (ALIGNMENT, &b"abc\0"[..]));
        padded.truncate(2);
        assert_eq!(&padded[..], b"ab");
        assert_eq!(&Buffer::copy_of(b"abc")[..], b"abc");
        let mut filled = Buffer::copy_of(&[7; 4096]);
        filled.truncate(3);
        assert_eq!(filled.clone().extended(5)[..], [7, 7, 7, 0, 0], "in other memory");
        assert_eq!(filled.extended(5).extended(2)[..], [7, 7, 7, 0, 0], "in its own");
    }

    #[test]
    fn spare_buffers_are_used_again_and_bounded() {
        let mut spare = SpareBuffers::new(1);
        let [first, second] = [8192, 8192].map(|len| spare.take(len));
        let place = first.as_ptr();
        spare.give_back(first);
        spare.give_back(second);
        let again = spare.take(4096);
        assert_eq!((again.as_ptr(), again.len()), (place, 4096));
        assert_eq!((spare.take(512).len(), spare.buffers.len()), (512, 0));
    }
}
