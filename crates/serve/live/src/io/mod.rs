//! Input and output: operations that are submitted, and later are done.
//!
//! For: everything outside this folder, which touches files, sockets and clocks through [`Io`]
//! only. Must never know: what the bytes mean. Units: bytes, nanoseconds. Siblings carry the
//! operations out: [`uring`] by the kernel's rings, [`threads`] by threads and `poll`, [`sim`] in
//! memory, with power that can fail. [`system`] chooses between the first two; what they use is
//! opened by [`open`].
//!
//! The rules that callers rely on: operations under way may be done in any order. A write is
//! durable when a sync of its file, submitted after the write was done, is done without an error.
//! Writes without such a sync may survive a loss of power wholly, in part, or not. Every operation
//! is done once, with the buffers it was given. At most one receive and one send of a connection
//! are under way; another fails with [`IoError::BUSY`]. A close ends them, and is done after them:
//! the send fails, the receive gives no bytes or fails. What is submitted on a connection after its
//! close fails with [`IoError::NOT_CONNECTED`]. When the close is done, a new client may get the
//! number. A range of a file begins at a multiple of [`ALIGNMENT`] and may end at any byte of it:
//! what lies behind the last whole page goes through the page cache where direct input and output
//! cannot reach it.

pub mod batch;
mod buffer;
pub mod delayed;
pub mod executor;
pub mod lookout;
pub mod open;
pub mod shared;
pub mod sim;
pub mod system;
pub mod threads;
pub mod token;
pub mod uring;
pub mod worker;

pub use buffer::{ALIGNMENT, Buffer, SpareBuffers};

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Names an operation to its submitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

cachewright_types::index_ids! {
    /// A file or block device that is open.
    FileId,
    /// A socket that clients connect to.
    ListenerId,
    /// A connection.
    SocketId,
}

/// An operation.
#[derive(Debug)]
pub enum IoOp {
    /// Fills the buffer from a byte of a file on.
    Read {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// What is filled.
        buffer: Buffer,
    },
    /// Writes the buffer from a byte of a file on.
    Write {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// What is written. The submitter may read it meanwhile.
        buffer: Arc<Buffer>,
    },
    /// Makes all writes that are done durable.
    Sync {
        /// The file.
        file: FileId,
    },
    /// The range is not needed any more; later reads of it may give anything.
    Discard {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// The range reads as zeroes from now on. It becomes a hole where the file can have one.
    Zero {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// The range reads as zeroes from now on, and has space: it never becomes a hole.
    Provision {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Finds out which bytes of a range are holes, from its start on.
    Extents {
        /// The file.
        file: FileId,
        /// The first byte; a multiple of [`ALIGNMENT`].
        offset: u64,
        /// Bytes.
        length: u64,
        /// Extents that are looked for at most; at least 1.
        max_extents: usize,
    },
    /// Waits for a client.
    Accept {
        /// Where it connects.
        listener: ListenerId,
    },
    /// Waits for bytes: at least one, at most the buffer's length. None: the client sends no more.
    Receive {
        /// From where.
        socket: SocketId,
        /// Where they go.
        buffer: Buffer,
    },
    /// Sends all bytes of all buffers.
    Send {
        /// Whereto.
        socket: SocketId,
        /// What, in order.
        buffers: Vec<Buffer>,
    },
    /// Ends a connection. What is under way on it ends, too.
    Close {
        /// The connection.
        socket: SocketId,
    },
    /// Waits until a descriptor that is no file can be read, or has ended: a signal of a guest, a
    /// socket whose messages carry descriptors. It is then read without waiting.
    Await {
        /// What is waited for.
        source: Arc<OwnedFd>,
    },
    /// Waits until a time.
    Timer {
        /// On the clock of [`Io::now_ns`].
        at_ns: u64,
    },
}

impl IoOp {
    /// The file of an operation on a range of it, the first byte, and bytes.
    pub fn file_range(&self) -> Option<(FileId, u64, u64)> {
        match self {
            IoOp::Read { file, offset, buffer } => Some((*file, *offset, buffer.len() as u64)),
            IoOp::Write { file, offset, buffer } => Some((*file, *offset, buffer.len() as u64)),
            IoOp::Discard { file, offset, length }
            | IoOp::Zero { file, offset, length }
            | IoOp::Provision { file, offset, length }
            | IoOp::Extents { file, offset, length, .. } => Some((*file, *offset, *length)),
            IoOp::Sync { file } => Some((*file, 0, 0)),
            _ => None,
        }
    }

    /// The buffers of an operation that did nothing.
    pub fn give_back(self) -> Output {
        match self {
            IoOp::Read { buffer, .. } | IoOp::Receive { buffer, .. } => Output::Buffer(buffer, 0),
            IoOp::Send { buffers, .. } => Output::Buffers(buffers),
            _ => Output::Nothing,
        }
    }
}

/// Bytes of a file that are all a hole, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// How many.
    pub bytes: u64,
    /// The file has no space for them; they read as zeroes. What is none may be anything.
    pub is_hole: bool,
}

/// What an operation gives back.
#[derive(Debug)]
pub enum Output {
    /// Nothing: a write, a sync, a discard, zeroes, a timer, a close, an end of waiting.
    Nothing,
    /// The buffer of a read or a receive, and the bytes that were moved.
    Buffer(Buffer, usize),
    /// The buffers of a send.
    Buffers(Vec<Buffer>),
    /// A client that has connected.
    Socket(SocketId),
    /// Extents from the start of a range on. They may end before it does: the rest is to be asked
    /// for again.
    Extents(Vec<FileExtent>),
}

/// Why an operation failed: the error number of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoError(pub i32);

impl IoError {
    /// Input or output failed.
    pub const IO: IoError = IoError(5);
    /// There is no space left.
    pub const NO_SPACE: IoError = IoError(28);
    /// The file has become shorter than it was.
    pub const BEYOND_END: IoError = IoError(6);
    /// The device is gone.
    pub const NO_DEVICE: IoError = IoError(19);
    /// A receive, or a send, of the connection is under way already.
    pub const BUSY: IoError = IoError(16);
    /// The connection is gone.
    pub const NOT_CONNECTED: IoError = IoError(107);
    /// An argument is invalid: a range that begins unaligned, or ends beyond the end.
    pub const INVALID: IoError = IoError(22);
    /// The file cannot do this: a discard, zeroes.
    pub const NOT_SUPPORTED: IoError = IoError(95);

    /// Whether a read that failed with it says that the device has lost what it was to read, and
    /// nothing about other pages: `EIO`, and the errors that Linux has for media (`ENODATA`),
    /// protection information (`EILSEQ`), damage that a layer below has found (`EBADMSG`,
    /// `EUCLEAN`) and the target (`EREMOTEIO`). Others may pass: memory, a path that is down, a
    /// device that was pulled.
    pub fn is_of_pages(self) -> bool {
        matches!(self.0, 5 | 61 | 74 | 84 | 117 | 121)
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(out)
    }
}

impl std::error::Error for IoError {}

/// Errors: a range of a file that begins unaligned, or ends beyond its `bytes` bytes.
fn check_range(offset: u64, length: u64, bytes: u64) -> Result<(), IoError> {
    let is_aligned = offset.is_multiple_of(ALIGNMENT as u64);
    let is_inside = offset.checked_add(length).is_some_and(|end| end <= bytes);
    if is_aligned && is_inside { Ok(()) } else { Err(IoError::INVALID) }
}

/// An operation that is done.
#[derive(Debug)]
pub struct Done {
    /// The name it was submitted under.
    pub token: Token,
    /// What it gives back. Buffers come back also when it failed.
    pub output: Output,
    /// Why it failed, if it did.
    pub error: Option<IoError>,
}

/// Takes operations that are to be carried out.
pub trait Submit {
    /// Begins an operation.
    fn submit(&mut self, token: Token, op: IoOp);
}

impl<T: Io> Submit for T {
    fn submit(&mut self, token: Token, op: IoOp) {
        Io::submit(self, token, op);
    }
}

/// Carries out operations.
pub trait Io {
    /// Begins an operation.
    fn submit(&mut self, token: Token, op: IoOp);

    /// Waits until operations are done and appends them to `done`. Returns at once if some are, or
    /// if none is under way.
    fn wait(&mut self, done: &mut Vec<Done>);

    /// The time: nanoseconds since some start, which all clocks of a process share. It never goes
    /// back.
    fn now_ns(&self) -> u64;

    /// Bytes of a file.
    fn file_bytes(&self, file: FileId) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_begin_aligned_and_end_inside() {
        for (offset, length) in [(4096, 4096), (0, 512), (8192, 100), (4096, 4196)] {
            assert_eq!(check_range(offset, length, 8292), Ok(()));
        }
        for (offset, length) in [(512, 4096), (8192, 101), (12288, 1), (u64::MAX - 4095, 8192)] {
            assert_eq!(check_range(offset, length, 8292), Err(IoError::INVALID));
        }
    }
}
