//! Input and output through io_uring: as a rule, one call of the system submits and waits.
//!
//! For: the production path on Linux. Must never know: what the bytes mean. Units: bytes,
//! nanoseconds. The kernel's submission thread is not used (`SQPOLL`): on small machines it takes
//! the processor from the loop that it serves. While several operations on files are under way, the
//! loop looks for completions for some time before it sleeps: to be woken takes longer.
//!
//! Memory the kernel uses belongs to the table of operations under way until the kernel has said
//! that it is done; so a caller cannot touch or free it. A ring belongs to the thread that made it.

#![allow(unsafe_code)] // each block says why it is sound

mod connections;
mod ring;
mod work;

use super::clock::{Timers, now_ns};
use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::tables::Files;
use super::threads::pool::Pool;
use super::{Done, FileId, Io, IoError, IoOp, ListenerId, Output, Token};
use connections::{Connections, Direction};
use ring::Ring;
use slab::Slab;
use std::marker::PhantomData;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use work::{AfterCompletion, UringOperation};

/// So many operations on files are under way at least when the loop looks for completions before it
/// sleeps, and so long does it look, in nanoseconds (benches/live.md).
const BUSY_FILES: usize = 8;
const LOOK_NS: u64 = 50_000;

/// An operation that the kernel holds, or that waits to be given to it.
#[derive(Debug)]
struct OperationUnderWay {
    token: Token,
    work: UringOperation,
}

/// Carries out operations by io_uring.
pub struct Uring {
    ring: Ring,
    under_way: Slab<OperationUnderWay>,
    /// Those on files.
    on_files: usize,
    files: Files,
    listeners: Vec<Listener>,
    connections: Connections,
    /// Threads for what the kernel's rings cannot do, once there was some.
    pool: Option<Pool>,
    timers: Timers,
    /// What is done without the kernel: refused operations, closes.
    ready: Vec<Done>,
    /// Completions taken from the ring: place in `under_way`, and the result.
    results: Vec<(usize, i32)>,
    /// Bytes of one call at most.
    max_bytes: usize,
    /// The kernel takes operations of the thread that made the ring only.
    _one_thread: PhantomData<*const ()>,
}

impl Uring {
    /// Sets a ring up, for this thread.
    ///
    /// Errors: the kernel has no io_uring, forbids it, or lacks an operation.
    pub fn new() -> Result<Uring, OpenError> {
        Ring::new().map(Uring::with_ring)
    }

    fn with_ring(ring: Ring) -> Uring {
        Uring {
            ring,
            under_way: Slab::default(),
            on_files: 0,
            files: Files::default(),
            listeners: Vec::new(),
            connections: Connections::default(),
            pool: None,
            timers: Timers::default(),
            ready: Vec::new(),
            results: Vec::new(),
            max_bytes: work::MAX_BYTES,
            _one_thread: PhantomData,
        }
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
        self.listeners.push(listener);
        ListenerId::new(self.listeners.len() - 1)
    }

    /// Gives an operation to the kernel, or says why not.
    fn start(&mut self, token: Token, op: IoOp) -> Result<(), (IoError, IoOp)> {
        let work = match op {
            IoOp::Timer { at_ns } => {
                self.timers.add(at_ns, token);
                return Ok(());
            }
            IoOp::Close { socket } => {
                let begun = self.connections.begin_close(socket, token, &mut self.ready);
                return begun.map_err(|error| (error, IoOp::Close { socket }));
            }
            op @ IoOp::Extents { .. } => return self.start_in_pool(token, op),
            op => self.checked(op)?,
        };
        if work.is_empty() {
            self.ready.push(Done { token, output: work.into_output(), error: None });
            return Ok(());
        }
        self.on_files += usize::from(work.is_on_file());
        let place = self.under_way.insert(OperationUnderWay { token, work });
        self.push(place);
        Ok(())
    }

    /// Gives an operation on a file to the threads, whose signal the kernel waits for, or says why
    /// not.
    fn start_in_pool(&mut self, token: Token, op: IoOp) -> Result<(), (IoError, IoOp)> {
        let Some((file, offset, length)) = op.file_range() else {
            return Err((IoError::INVALID, op));
        };
        let file = match self.files.check(file, offset, length) {
            Ok(file) => file.clone(),
            Err(error) => return Err((error, op)),
        };
        if self.pool.is_none() {
            // A process without a descriptor for the signal does without the operation.
            self.pool = Pool::new().ok();
        }
        let Some(pool) = &mut self.pool else { return Err((IoError::NOT_SUPPORTED, op)) };
        let is_awaited = !pool.is_idle();
        pool.start(token, file, op);
        if !is_awaited {
            let work = UringOperation::WaitForPool;
            let place = self.under_way.insert(OperationUnderWay { token, work });
            self.push(place);
        }
        Ok(())
    }

    /// An operation that the kernel may have.
    fn checked(&mut self, op: IoOp) -> Result<UringOperation, (IoError, IoOp)> {
        if let Some((file, offset, length)) = op.file_range() {
            return match self.files.check(file, offset, length) {
                Ok(file) => {
                    let op = with_hole(op, file);
                    UringOperation::new(op).map_err(|op| (IoError::INVALID, op))
                }
                Err(error) => Err((error, op)),
            };
        }
        let found = match &op {
            IoOp::Accept { listener } => {
                let found = self.listeners.get(listener.index());
                found.map(drop).ok_or(IoError::INVALID)
            }
            IoOp::Receive { socket, .. } => self.connections.claim(*socket, Direction::Receive),
            IoOp::Send { socket, .. } => self.connections.claim(*socket, Direction::Send),
            _ => Err(IoError::INVALID),
        };
        match found {
            Ok(()) => UringOperation::new(op).map_err(|op| (IoError::INVALID, op)),
            Err(error) => Err((error, op)),
        }
    }

    /// Gives the operation at `place` to the kernel.
    fn push(&mut self, place: usize) {
        let Some(OperationUnderWay { work, .. }) = self.under_way.get_mut(place) else {
            return;
        };
        let fd = match work.target() {
            work::UringTarget::File(file) => self.files.get(file).map(|file| file.as_fd()),
            work::UringTarget::Tail(file) => self.files.get(file).map(|file| file.tail().as_fd()),
            work::UringTarget::Pool => {
                let signal = self.pool.as_ref().map(|pool| pool.signal().as_fd());
                signal.ok_or(IoError::INVALID)
            }
            work::UringTarget::Listener(listener) => Ok(self.listeners[listener.index()].as_fd()),
            work::UringTarget::Socket(socket) => self.connections.fd(socket),
        };
        let entry = match fd {
            Ok(fd) => work.entry(fd, self.max_bytes).user_data(place as u64),
            Err(IoError(number)) => return self.results.push((place, -number)),
        };
        loop {
            // SAFETY: the entry names memory of `work` only: buffers and boxed lists. What
            // the kernel uses is not touched meanwhile: `work` stays where it is in the table until
            // its completion is collected (`finish`) or it is leaked (`give_up`), and buffers of
            // writes are shared. Moves of the table do not move buffers. Descriptors are closed
            // later: those of connections by `Connections::settle`, others with this value, whose
            // drop waits for the kernel.
            if unsafe { self.ring.push(&entry) } {
                return;
            }
            if let Err(error) = self.ring.submit() {
                return self.give_up(error);
            }
            self.ring.collect(&mut self.results);
        }
    }

    /// Takes in one completion.
    fn finish(&mut self, place: usize, result: i32, done: &mut Vec<Done>) {
        let Some(OperationUnderWay { work, .. }) = self.under_way.get_mut(place) else {
            return;
        };
        if matches!(work, UringOperation::WaitForPool) {
            return self.pool_woken(place, done);
        }
        if let AfterCompletion::Again = work.take_in(result) {
            return self.push(place);
        }
        let Some(OperationUnderWay { token, work }) = self.under_way.try_remove(place) else {
            return;
        };
        self.on_files -= usize::from(work.is_on_file());
        let error = (result < 0).then(|| work.error_of(-result)).or(work.missing());
        let (output, settled) = match work {
            UringOperation::Accept { listener } if error.is_none() => {
                (self.accepted(listener, result), None)
            }
            UringOperation::Receive { socket, .. } => {
                self.connections.release(socket, Direction::Receive);
                (work.into_output(), Some(socket))
            }
            UringOperation::Send { socket, .. } => {
                self.connections.release(socket, Direction::Send);
                (work.into_output(), Some(socket))
            }
            work => (work.into_output(), None),
        };
        done.push(Done { token, output, error });
        if let Some(socket) = settled {
            self.connections.settle(socket, done);
        }
    }

    /// The threads have done something; the kernel waits for more as long as there is some.
    fn pool_woken(&mut self, place: usize, done: &mut Vec<Done>) {
        self.pool.iter_mut().for_each(|pool| pool.collect(done));
        match self.pool.as_ref().is_none_or(Pool::is_idle) {
            true => drop(self.under_way.try_remove(place)),
            false => self.push(place),
        }
    }

    /// A client that the kernel has accepted.
    fn accepted(&mut self, listener: ListenerId, result: i32) -> Output {
        // SAFETY: the result of an accept that succeeded is a new descriptor, which nothing else
        // knows.
        let fd = unsafe { OwnedFd::from_raw_fd(result) };
        if self.listeners[listener.index()].is_tcp() {
            // Without it replies wait for acknowledgements: slower, and correct.
            let _set = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
            // Without it a client whose host is gone is never noticed.
            let _set = rustix::net::sockopt::set_socket_keepalive(&fd, true);
        }
        Output::Socket(self.connections.add(fd))
    }

    /// One call of the system, then all that is done. It waits unless something is done already.
    fn round(&mut self, done: &mut Vec<Done>, may_wait: bool) {
        let may_wait = may_wait && self.results.is_empty();
        let mut sleeps = may_wait;
        if may_wait && self.on_files >= BUSY_FILES {
            let end_ns = now_ns().saturating_add(LOOK_NS);
            while sleeps && now_ns() < end_ns {
                self.call(Some(0));
                sleeps = self.results.is_empty() && self.ready.is_empty();
            }
        }
        if sleeps || !may_wait {
            self.call(if sleeps { self.timers.left_ns() } else { Some(0) });
        }
        let mut results = std::mem::take(&mut self.results);
        for (place, result) in results.drain(..) {
            self.finish(place, result, done);
        }
        // Continued operations that were refused, if there are any, come behind.
        results.append(&mut self.results);
        self.results = results;
    }

    /// One call of the system, and the completions that are there after it.
    fn call(&mut self, wait_ns: Option<u64>) {
        if let Err(error) = self.ring.submit_and_wait(wait_ns) {
            self.give_up(error);
        }
        self.ring.collect(&mut self.results);
    }

    /// The ring works no more: all that is under way fails. What the kernel may still use is never
    /// freed.
    #[cold]
    fn give_up(&mut self, error: IoError) {
        self.ring.set_broken(error);
        self.on_files = 0;
        let places: Vec<usize> = self.under_way.iter().map(|(place, _)| place).collect();
        for OperationUnderWay { token, work } in
            places.into_iter().filter_map(|place| self.under_way.try_remove(place))
        {
            if matches!(work, UringOperation::WaitForPool) {
                self.pool.iter_mut().for_each(|pool| pool.finish_all(&mut self.ready));
                continue;
            }
            let output = work.output_without_memory();
            std::mem::forget(work);
            self.ready.push(Done { token, output, error: Some(error) });
        }
    }
}

impl Io for Uring {
    fn submit(&mut self, token: Token, op: IoOp) {
        let started = match self.ring.broken() {
            Some(error) => Err((error, op)),
            None => self.start(token, op),
        };
        if let Err((error, op)) = started {
            self.ready.push(Done { token, output: op.give_back(), error: Some(error) });
        }
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        let before = done.len();
        done.append(&mut self.ready);
        self.timers.end_due(done);
        loop {
            let is_idle = self.under_way.is_empty() && self.results.is_empty();
            let nothing_left = is_idle && self.timers.next_ns().is_none();
            if nothing_left || is_idle && done.len() > before {
                return;
            }
            self.round(done, done.len() == before);
            done.append(&mut self.ready);
            self.timers.end_due(done);
            if done.len() > before {
                return;
            }
        }
    }

    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.files.bytes(file)
    }
}

impl Uring {
    /// Accepts under way end soon. One that is given to the kernel again later is not meant.
    fn cancel_accepts(&mut self) {
        let waits = |entry: &OperationUnderWay| matches!(entry.work, UringOperation::Accept { .. });
        let accepts = self.under_way.iter().filter(|(_, entry)| waits(entry));
        let places: Vec<usize> = accepts.map(|(place, _)| place).collect();
        for place in places {
            let entry = ring::cancel(place as u64);
            // SAFETY: a cancel names no memory.
            while !unsafe { self.ring.push(&entry) } && self.ring.submit().is_ok() {
                self.ring.collect(&mut self.results);
            }
        }
    }
}

impl Drop for Uring {
    /// Waits until the kernel uses no memory of this value any more.
    fn drop(&mut self) {
        self.connections.shut_down();
        self.timers = Timers::default();
        let mut done = Vec::new();
        while !self.under_way.is_empty() {
            self.cancel_accepts();
            self.round(&mut done, true);
        }
    }
}

/// An operation that makes a hole to the end of a file takes all of its last page.
fn with_hole(op: IoOp, in_file: &OpenFile) -> IoOp {
    match op {
        IoOp::Zero { file, offset, length } => {
            IoOp::Zero { file, offset, length: in_file.hole_bytes(offset, length) }
        }
        IoOp::Discard { file, offset, length } => {
            IoOp::Discard { file, offset, length: in_file.hole_bytes(offset, length) }
        }
        op => op,
    }
}

#[cfg(test)]
mod tests;
