//! An operation in the kernel's words, and what its completion means.
//!
//! For: [`Uring`](super::Uring). Must never know: the ring, other operations. Units: bytes.

use crate::io::tables::{Sending, range_error, socket_error};
use crate::io::{Buffer, FileId, IoError, IoOp, ListenerId, Output, SocketId};
use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;

/// Bytes of one call at most; more take more calls (Linux moves a little less than 2 GiB).
pub const MAX_BYTES: usize = 1 << 30;
/// No signal for a connection that is gone; the kernel continues short sends where it can.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// What an operation is about.
pub enum Target {
    File(FileId),
    Listener(ListenerId),
    Socket(SocketId),
}

/// What becomes of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeMode {
    Discard,
    Zero,
    /// Zeroes where the file system has no such operation, and holes read as zeroes.
    ZeroByHole,
}

/// A send, and the list of its buffers as the kernel takes it.
pub struct Message {
    sending: Sending,
    slices: Vec<libc::iovec>,
    header: libc::msghdr,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sending.fmt(out)
    }
}

/// An operation, with the memory that the kernel uses for it.
#[derive(Debug)]
pub enum Work {
    Read { file: FileId, offset: u64, buffer: Buffer, moved: usize },
    Write { file: FileId, offset: u64, buffer: Arc<Buffer>, moved: usize },
    Sync { file: FileId },
    Range { file: FileId, offset: u64, length: u64, mode: RangeMode },
    Accept { listener: ListenerId },
    Receive { socket: SocketId, buffer: Buffer, received: usize },
    Send { socket: SocketId, message: Box<Message> },
}

/// What follows a completion.
pub enum Next {
    /// The kernel gets the rest.
    Again,
    /// The operation is done.
    Done,
}

impl Work {
    /// The work of an operation that the kernel carries out; others come back.
    pub fn new(op: IoOp) -> Result<Work, IoOp> {
        Ok(match op {
            IoOp::Read { file, offset, buffer } => Work::Read { file, offset, buffer, moved: 0 },
            IoOp::Write { file, offset, buffer } => Work::Write { file, offset, buffer, moved: 0 },
            IoOp::Sync { file } => Work::Sync { file },
            IoOp::Discard { file, offset, length } => {
                Work::Range { file, offset, length, mode: RangeMode::Discard }
            }
            IoOp::Zero { file, offset, length } => {
                Work::Range { file, offset, length, mode: RangeMode::Zero }
            }
            IoOp::Accept { listener } => Work::Accept { listener },
            IoOp::Receive { socket, buffer } => Work::Receive { socket, buffer, received: 0 },
            IoOp::Send { socket, buffers } => {
                Work::Send { socket, message: Box::new(Message::new(Sending::new(buffers))) }
            }
            op @ (IoOp::Close { .. } | IoOp::Timer { .. }) => return Err(op),
        })
    }

    /// What it is about.
    pub fn target(&self) -> Target {
        match self {
            Work::Read { file, .. }
            | Work::Write { file, .. }
            | Work::Sync { file }
            | Work::Range { file, .. } => Target::File(*file),
            Work::Accept { listener } => Target::Listener(*listener),
            Work::Receive { socket, .. } | Work::Send { socket, .. } => Target::Socket(*socket),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        match self {
            Work::Read { buffer, .. } => buffer.is_empty(),
            Work::Write { buffer, .. } => buffer.is_empty(),
            Work::Range { length, .. } => *length == 0,
            _ => false,
        }
    }

    /// What is left of it, for the kernel, at most `max_bytes` of a buffer. The entry names the
    /// buffers of this value.
    #[inline]
    pub fn entry(&mut self, fd: BorrowedFd<'_>, max_bytes: usize) -> Entry {
        let fd = Fd(fd.as_raw_fd());
        match self {
            Work::Read { offset, buffer, moved, .. } => {
                let rest = &mut buffer[*moved..];
                let length = rest.len().min(max_bytes) as u32;
                let read = opcode::Read::new(fd, rest.as_mut_ptr(), length);
                read.offset(*offset + *moved as u64).build()
            }
            Work::Write { offset, buffer, moved, .. } => {
                let rest = &buffer[*moved..];
                let length = rest.len().min(max_bytes) as u32;
                let write = opcode::Write::new(fd, rest.as_ptr(), length);
                write.offset(*offset + *moved as u64).build()
            }
            Work::Sync { .. } => opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build(),
            Work::Range { offset, length, mode, .. } => {
                let mode = match mode {
                    RangeMode::Zero => libc::FALLOC_FL_ZERO_RANGE,
                    RangeMode::Discard | RangeMode::ZeroByHole => libc::FALLOC_FL_PUNCH_HOLE,
                };
                let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(fd, *length).offset(*offset).mode(mode).build()
            }
            Work::Accept { .. } => {
                let no_address = std::ptr::null_mut();
                opcode::Accept::new(fd, no_address, std::ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            }
            Work::Receive { buffer, .. } => {
                let length = buffer.len().min(max_bytes) as u32;
                opcode::Recv::new(fd, buffer.as_mut_ptr(), length).build()
            }
            Work::Send { message, .. } => message.entry(fd, max_bytes),
        }
    }

    /// Takes a completion in.
    pub fn take_in(&mut self, result: i32) -> Next {
        let Ok(count) = usize::try_from(result) else {
            return self.take_in_error(-result);
        };
        let is_unfinished = match self {
            Work::Read { buffer, moved, .. } => {
                *moved += count;
                count > 0 && *moved < buffer.len()
            }
            Work::Write { buffer, moved, .. } => {
                *moved += count;
                count > 0 && *moved < buffer.len()
            }
            Work::Send { message, .. } => {
                message.sending.advance(count);
                count > 0 && !message.sending.is_done()
            }
            Work::Receive { received, .. } => {
                *received = count;
                false
            }
            Work::Sync { .. } | Work::Range { .. } | Work::Accept { .. } => false,
        };
        if is_unfinished { Next::Again } else { Next::Done }
    }

    fn take_in_error(&mut self, number: i32) -> Next {
        match self {
            Work::Accept { .. } if number == libc::ECONNABORTED => Next::Again,
            Work::Range { mode: mode @ RangeMode::Zero, .. }
                if range_error(number) == IoError::NOT_SUPPORTED =>
            {
                *mode = RangeMode::ZeroByHole;
                Next::Again
            }
            _ if number == libc::EINTR || number == libc::EAGAIN => Next::Again,
            _ => Next::Done,
        }
    }

    /// What callers are told for an error number of the system.
    pub fn error_of(&self, number: i32) -> IoError {
        match self {
            Work::Range { .. } => range_error(number),
            Work::Receive { .. } | Work::Send { .. } => socket_error(number),
            _ => IoError(number),
        }
    }

    /// The error of work that ended without one, and without all its bytes: the file has shrunk.
    pub fn missing(&self) -> Option<IoError> {
        match self {
            Work::Read { buffer, moved, .. } => (*moved < buffer.len()).then_some(IoError::IO),
            Work::Write { buffer, moved, .. } => (*moved < buffer.len()).then_some(IoError::IO),
            Work::Send { message, .. } => {
                (!message.sending.is_done()).then_some(IoError::NOT_CONNECTED)
            }
            _ => None,
        }
    }

    /// What it gives back.
    pub fn into_output(self) -> Output {
        match self {
            Work::Read { buffer, moved, .. } => Output::Buffer(buffer, moved),
            Work::Receive { buffer, received, .. } => Output::Buffer(buffer, received),
            Work::Send { message, .. } => Output::Buffers(message.sending.into_buffers()),
            Work::Write { .. } | Work::Sync { .. } | Work::Range { .. } | Work::Accept { .. } => {
                Output::Nothing
            }
        }
    }

    /// What is given back while the kernel may still use the memory: empty buffers.
    pub fn output_without_memory(&self) -> Output {
        match self {
            Work::Read { .. } | Work::Receive { .. } => Output::Buffer(Buffer::default(), 0),
            Work::Send { .. } => Output::Buffers(Vec::new()),
            Work::Write { .. } | Work::Sync { .. } | Work::Range { .. } | Work::Accept { .. } => {
                Output::Nothing
            }
        }
    }
}

impl Message {
    fn new(sending: Sending) -> Message {
        // SAFETY: a message header of zeroes is valid: no address, no buffers, no control data.
        let header = unsafe { std::mem::zeroed() };
        Message { sending, slices: Vec::new(), header }
    }

    /// What is left to send. A single buffer needs no list; one that is too long goes alone.
    fn entry(&mut self, fd: Fd, max_bytes: usize) -> Entry {
        self.slices.clear();
        for slice in self.sending.slices() {
            let iov_len = slice.len().min(max_bytes);
            self.slices.push(libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len });
            if iov_len < slice.len() {
                break;
            }
        }
        if let [only] = self.slices[..] {
            let length = only.iov_len as u32;
            let entry = opcode::Send::new(fd, only.iov_base.cast(), length);
            return entry.flags(SEND_FLAGS).build();
        }
        self.header.msg_iov = self.slices.as_mut_ptr();
        self.header.msg_iovlen = self.slices.len() as _;
        opcode::SendMsg::new(fd, &raw const self.header).flags(SEND_FLAGS as u32).build()
    }
}
