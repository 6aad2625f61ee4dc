//! An operation in the kernel's words, and what its completion means.
//!
//! For: [`Uring`](super::Uring). Must never know: the ring, other operations. Units: bytes.

use crate::io::tables::{Sending, range_error, socket_error};
use crate::io::{ALIGNMENT, Buffer, FileId, IoError, IoOp, ListenerId, Output, SocketId};
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
pub enum UringTarget {
    File(FileId),
    /// What lies behind the last whole page of a range.
    Tail(FileId),
    Listener(ListenerId),
    Socket(SocketId),
    /// The threads for what the kernel's rings cannot do.
    Pool,
}

/// What becomes of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeMode {
    Discard,
    /// Holes read as zeroes, also those of block devices.
    ZeroByHole,
    /// Zeroes where there can be no holes.
    ZeroInPlace,
    /// Zeroes that have space.
    Provision,
}

/// A send, and the list of its buffers as the kernel takes it.
pub struct SendMessage {
    sending: Sending,
    slices: Vec<libc::iovec>,
    header: libc::msghdr,
}

impl std::fmt::Debug for SendMessage {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.sending.fmt(out)
    }
}

/// An operation, with the memory that the kernel uses for it.
#[derive(Debug)]
pub enum UringOperation {
    Read {
        file: FileId,
        offset: u64,
        buffer: Buffer,
        moved: usize,
    },
    Write {
        file: FileId,
        offset: u64,
        buffer: Arc<Buffer>,
        moved: usize,
    },
    Sync {
        file: FileId,
    },
    Range {
        file: FileId,
        offset: u64,
        length: u64,
        mode: RangeMode,
    },
    Accept {
        listener: ListenerId,
    },
    Receive {
        socket: SocketId,
        buffer: Buffer,
        received: usize,
    },
    Send {
        socket: SocketId,
        message: Box<SendMessage>,
    },
    /// Waits until the threads have done something.
    WaitForPool,
}

/// What follows a completion.
pub enum AfterCompletion {
    /// The kernel gets the rest.
    Again,
    /// The operation is done.
    Done,
}

impl UringOperation {
    /// The work of an operation that the kernel carries out; others come back.
    pub fn new(op: IoOp) -> Result<UringOperation, IoOp> {
        Ok(match op {
            IoOp::Read { file, offset, buffer } => {
                UringOperation::Read { file, offset, buffer, moved: 0 }
            }
            IoOp::Write { file, offset, buffer } => {
                UringOperation::Write { file, offset, buffer, moved: 0 }
            }
            IoOp::Sync { file } => UringOperation::Sync { file },
            IoOp::Discard { file, offset, length } => {
                UringOperation::Range { file, offset, length, mode: RangeMode::Discard }
            }
            IoOp::Zero { file, offset, length } => {
                UringOperation::Range { file, offset, length, mode: RangeMode::ZeroByHole }
            }
            IoOp::Provision { file, offset, length } => {
                UringOperation::Range { file, offset, length, mode: RangeMode::Provision }
            }
            IoOp::Accept { listener } => UringOperation::Accept { listener },
            IoOp::Receive { socket, buffer } => {
                UringOperation::Receive { socket, buffer, received: 0 }
            }
            IoOp::Send { socket, buffers } => UringOperation::Send {
                socket,
                message: Box::new(SendMessage::new(Sending::new(buffers))),
            },
            op @ (IoOp::Extents { .. } | IoOp::Close { .. } | IoOp::Timer { .. }) => {
                return Err(op);
            }
        })
    }

    /// What it is about.
    pub fn target(&self) -> UringTarget {
        match self {
            UringOperation::Read { file, buffer, moved, .. } if is_tail(buffer.len(), *moved) => {
                UringTarget::Tail(*file)
            }
            UringOperation::Write { file, buffer, moved, .. } if is_tail(buffer.len(), *moved) => {
                UringTarget::Tail(*file)
            }
            UringOperation::Read { file, .. }
            | UringOperation::Write { file, .. }
            | UringOperation::Sync { file }
            | UringOperation::Range { file, .. } => UringTarget::File(*file),
            UringOperation::Accept { listener } => UringTarget::Listener(*listener),
            UringOperation::Receive { socket, .. } | UringOperation::Send { socket, .. } => {
                UringTarget::Socket(*socket)
            }
            UringOperation::WaitForPool => UringTarget::Pool,
        }
    }

    /// Whether it is about a file.
    pub fn is_on_file(&self) -> bool {
        matches!(self.target(), UringTarget::File(_) | UringTarget::Tail(_))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        match self {
            UringOperation::Read { buffer, .. } => buffer.is_empty(),
            UringOperation::Write { buffer, .. } => buffer.is_empty(),
            UringOperation::Range { length, .. } => *length == 0,
            _ => false,
        }
    }

    /// What is left of it, for the kernel, at most `max_bytes` of a buffer. The entry names the
    /// buffers of this value.
    #[inline]
    pub fn entry(&mut self, fd: BorrowedFd<'_>, max_bytes: usize) -> Entry {
        let fd = Fd(fd.as_raw_fd());
        match self {
            UringOperation::Read { offset, buffer, moved, .. } => {
                let length = part_bytes(buffer.len(), *moved).min(max_bytes) as u32;
                let rest = &mut buffer[*moved..];
                let read = opcode::Read::new(fd, rest.as_mut_ptr(), length);
                read.offset(*offset + *moved as u64).build()
            }
            UringOperation::Write { offset, buffer, moved, .. } => {
                let length = part_bytes(buffer.len(), *moved).min(max_bytes) as u32;
                let rest = &buffer[*moved..];
                let write = opcode::Write::new(fd, rest.as_ptr(), length);
                write.offset(*offset + *moved as u64).build()
            }
            UringOperation::Sync { .. } => {
                opcode::Fsync::new(fd).flags(FsyncFlags::DATASYNC).build()
            }
            UringOperation::Range { offset, length, mode, .. } => {
                let mode = match mode {
                    RangeMode::Discard | RangeMode::ZeroByHole => libc::FALLOC_FL_PUNCH_HOLE,
                    RangeMode::ZeroInPlace | RangeMode::Provision => libc::FALLOC_FL_ZERO_RANGE,
                };
                let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(fd, *length).offset(*offset).mode(mode).build()
            }
            UringOperation::Accept { .. } => {
                let no_address = std::ptr::null_mut();
                opcode::Accept::new(fd, no_address, std::ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            }
            UringOperation::Receive { buffer, .. } => {
                let length = buffer.len().min(max_bytes) as u32;
                opcode::Recv::new(fd, buffer.as_mut_ptr(), length).build()
            }
            UringOperation::Send { message, .. } => message.entry(fd, max_bytes),
            UringOperation::WaitForPool => opcode::PollAdd::new(fd, libc::POLLIN as u32).build(),
        }
    }

    /// Takes a completion in.
    pub fn take_in(&mut self, result: i32) -> AfterCompletion {
        let Ok(count) = usize::try_from(result) else {
            return self.take_in_error(-result);
        };
        let is_unfinished = match self {
            UringOperation::Read { buffer, moved, .. } => {
                *moved += count;
                count > 0 && *moved < buffer.len()
            }
            UringOperation::Write { buffer, moved, .. } => {
                *moved += count;
                count > 0 && *moved < buffer.len()
            }
            UringOperation::Send { message, .. } => {
                message.sending.advance(count);
                count > 0 && !message.sending.is_done()
            }
            UringOperation::Receive { received, .. } => {
                *received = count;
                false
            }
            UringOperation::Sync { .. }
            | UringOperation::Range { .. }
            | UringOperation::Accept { .. }
            | UringOperation::WaitForPool => false,
        };
        if is_unfinished { AfterCompletion::Again } else { AfterCompletion::Done }
    }

    fn take_in_error(&mut self, number: i32) -> AfterCompletion {
        match self {
            UringOperation::Accept { .. } if number == libc::ECONNABORTED => AfterCompletion::Again,
            UringOperation::Range { mode: mode @ RangeMode::ZeroByHole, .. }
                if range_error(number) == IoError::NOT_SUPPORTED =>
            {
                *mode = RangeMode::ZeroInPlace;
                AfterCompletion::Again
            }
            _ if number == libc::EINTR || number == libc::EAGAIN => AfterCompletion::Again,
            _ => AfterCompletion::Done,
        }
    }

    /// What callers are told for an error number of the system.
    pub fn error_of(&self, number: i32) -> IoError {
        match self {
            UringOperation::Range { .. } => range_error(number),
            UringOperation::Receive { .. } | UringOperation::Send { .. } => socket_error(number),
            _ => IoError(number),
        }
    }

    /// The error of work that ended without one, and without all its bytes: the file has shrunk.
    pub fn missing(&self) -> Option<IoError> {
        match self {
            UringOperation::Read { buffer, moved, .. } => {
                (*moved < buffer.len()).then_some(IoError::BEYOND_END)
            }
            UringOperation::Write { buffer, moved, .. } => {
                (*moved < buffer.len()).then_some(IoError::BEYOND_END)
            }
            UringOperation::Send { message, .. } => {
                (!message.sending.is_done()).then_some(IoError::NOT_CONNECTED)
            }
            _ => None,
        }
    }

    /// What it gives back.
    pub fn into_output(self) -> Output {
        match self {
            UringOperation::Read { buffer, moved, .. } => Output::Buffer(buffer, moved),
            UringOperation::Receive { buffer, received, .. } => Output::Buffer(buffer, received),
            UringOperation::Send { message, .. } => Output::Buffers(message.sending.into_buffers()),
            UringOperation::Write { .. }
            | UringOperation::Sync { .. }
            | UringOperation::Range { .. }
            | UringOperation::Accept { .. }
            | UringOperation::WaitForPool => Output::Nothing,
        }
    }

    /// What is given back while the kernel may still use the memory: empty buffers.
    pub fn output_without_memory(&self) -> Output {
        match self {
            UringOperation::Read { .. } | UringOperation::Receive { .. } => {
                Output::Buffer(Buffer::default(), 0)
            }
            UringOperation::Send { .. } => Output::Buffers(Vec::new()),
            UringOperation::Write { .. }
            | UringOperation::Sync { .. }
            | UringOperation::Range { .. }
            | UringOperation::Accept { .. }
            | UringOperation::WaitForPool => Output::Nothing,
        }
    }
}

/// Whether what is left of a range of `length` bytes lies behind its last whole page.
fn is_tail(length: usize, moved: usize) -> bool {
    !length.is_multiple_of(ALIGNMENT) && moved >= length / ALIGNMENT * ALIGNMENT
}

/// Bytes of a range of `length` bytes that go together from the place `moved` on: whole pages, or
/// what lies behind them.
fn part_bytes(length: usize, moved: usize) -> usize {
    let whole = length / ALIGNMENT * ALIGNMENT;
    if moved < whole { whole - moved } else { length - moved }
}

impl SendMessage {
    fn new(sending: Sending) -> SendMessage {
        // SAFETY: a message header of zeroes is valid: no address, no buffers, no control data.
        let header = unsafe { std::mem::zeroed() };
        SendMessage { sending, slices: Vec::new(), header }
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
