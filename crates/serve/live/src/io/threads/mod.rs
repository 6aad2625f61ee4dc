//! Input and output by threads and `poll`: for kernels that refuse io_uring.
//!
//! For: containers and systems without io_uring. Must never know: what the bytes mean. Units:
//! bytes, nanoseconds. Files are read and written by a small pool, because a file can make a thread
//! wait; sockets by the thread that waits, which learns by `poll` which of them are ready.

pub(super) mod pool;
mod sockets;

use super::clock::{Timers, now_ns};
use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::tables::Files;
use super::{Done, FileId, Io, IoError, IoOp, ListenerId, Output, Token};
use pool::Pool;
use sockets::ThreadSockets;

/// Carries out operations by threads.
pub struct Threads {
    pool: Pool,
    files: Files,
    sockets: ThreadSockets,
    timers: Timers,
    /// What is done already: refused operations, closes.
    ready: Vec<Done>,
}

impl Threads {
    /// Begins with no thread; the pool grows with the operations under way.
    ///
    /// Errors: the process has no descriptor left.
    pub fn new() -> Result<Threads, OpenError> {
        Ok(Threads {
            pool: Pool::new()?,
            files: Files::default(),
            sockets: ThreadSockets::default(),
            timers: Timers::default(),
            ready: Vec::new(),
        })
    }

    /// Adds a file.
    pub fn add_file(&mut self, file: OpenFile) -> FileId {
        self.files.add(file)
    }

    /// Closes a file on which nothing is under way.
    pub fn remove_file(&mut self, file: FileId) {
        self.files.remove(file);
    }

    /// Looks how large a file is now. Errors: the system's.
    pub fn measure_file(&mut self, file: FileId) -> std::io::Result<u64> {
        self.files.measure(file)
    }

    /// Whether zeroes of a range of a file are faster than writing them.
    pub fn zeroes_fast(&self, file: FileId) -> bool {
        self.files.zeroes_fast(file)
    }

    /// Whether a path leads to a file. Errors: the system's; nothing may be there.
    pub fn is_file_at(&self, file: FileId, path: &std::path::Path) -> std::io::Result<bool> {
        self.files.is_at(file, path)
    }

    /// What a file is known by now; see [`OpenFile::facts`]. Errors: the system's.
    pub fn file_facts(&self, file: FileId) -> std::io::Result<DeviceFacts> {
        self.files.facts(file)
    }

    /// Adds a place to connect to.
    pub fn add_listener(&mut self, listener: Listener) -> ListenerId {
        self.sockets.add_listener(listener)
    }

    /// Begins an operation, or says why not.
    fn start(&mut self, token: Token, op: IoOp) -> Result<(), (IoError, IoOp)> {
        if let IoOp::Timer { at_ns } = op {
            self.timers.add(at_ns, token);
            return Ok(());
        }
        let Some((file, offset, length)) = op.file_range() else {
            return self.sockets.start(token, op, &mut self.ready);
        };
        let file = self.files.check(file, offset, length);
        match file {
            Ok(file) => {
                let file = file.clone();
                self.pool.start(token, file, op);
                Ok(())
            }
            Err(error) => Err((error, op)),
        }
    }

    fn is_idle(&self) -> bool {
        self.pool.is_idle() && self.sockets.is_idle() && self.timers.next_ns().is_none()
    }
}

impl Io for Threads {
    fn submit(&mut self, token: Token, op: IoOp) {
        if let Err((error, op)) = self.start(token, op) {
            self.ready.push(Done { token, output: op.give_back(), error: Some(error) });
        }
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        let before = done.len();
        loop {
            done.append(&mut self.ready);
            self.timers.end_due(done);
            self.sockets.carry_out(done);
            self.pool.collect(done);
            if done.len() > before || self.is_idle() {
                return;
            }
            self.sockets.wait(self.pool.signal(), self.timers.left_ns());
        }
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.files.bytes(file)
    }
}

/// Something that is done without a result.
fn ended(token: Token, error: Option<IoError>) -> Done {
    Done { token, output: Output::Nothing, error }
}
