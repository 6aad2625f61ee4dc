//! Input and output through io_uring: as a rule, one call of the system submits and waits.
//!
//! The kernel's submission thread is not used (`SQPOLL`): on small machines it takes the processor
//! from the loop that it serves. Before the loop sleeps it looks for completions for some time,
//! where that was worth it lately: to be woken takes longer ([`Lookout`]). Operations on files are
//! handed over, and completions are passed on, a few at a time: the device, the loop and its
//! clients then work side by side and not in turn (benches/live.md). A connection has one receive
//! and one send at a time, and a close waits for both.
//!
//! Memory the kernel uses belongs to the table of operations under way until the kernel has said
//! that it is done; so a caller cannot touch or free it. A ring belongs to the thread that made it.
//! Source: io_uring_setup(2) and io_uring_enter(2).

#![allow(unsafe_code)]

use super::lookout::{LOOK_NS, Lookout};
use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::system::{Files, Sending, Timers, now_ns, range_error, socket_error};
use super::threads::Pool;
use super::{
    ALIGNMENT, Buffer, Done, FileId, Io, IoError, IoOp, ListenerId, Output, SocketId, Token,
};
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, opcode};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread;

/// Looks between two glances at the clock.
const LOOKS: usize = 32;
/// Operations on files that are handed over together at most.
const HANDED_OVER: usize = 4;
/// Completions that one wait passes on at most.
const PASSED_ON: usize = 8;

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
    /// Those of them that are syncs, which threads of the kernel do: they take long, and need a
    /// processor. No look is worth it meanwhile.
    syncs: usize,
    /// Those on files that the kernel has not been given yet.
    queued_files: usize,
    /// For waits without and with operations on files under way. None where there is one processor:
    /// others could not do meanwhile what is looked for.
    lookouts: Option<[Lookout; 2]>,
    files: Files,
    listeners: Vec<Listener>,
    connections: Connections,
    /// Threads for what the kernel's rings cannot do, once there was some.
    pool: Option<Pool>,
    timers: Timers,
    /// What is done without the kernel: refused operations, closes.
    ready: Vec<Done>,
    /// Completions taken from the ring: place in `under_way`, and the result.
    results: VecDeque<(usize, i32)>,
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
        let is_parallel = thread::available_parallelism().is_ok_and(|count| count.get() > 1);
        Uring {
            ring,
            under_way: Slab::default(),
            on_files: 0,
            syncs: 0,
            queued_files: 0,
            lookouts: is_parallel.then(<[Lookout; 2]>::default),
            files: Files::default(),
            listeners: Vec::new(),
            connections: Connections::default(),
            pool: None,
            timers: Timers::default(),
            ready: Vec::new(),
            results: VecDeque::new(),
            max_bytes: MAX_BYTES,
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
        let is_on_file = work.is_on_file();
        self.syncs += usize::from(work.is_sync());
        let place = self.under_way.insert(OperationUnderWay { token, work });
        self.push(place);
        if is_on_file {
            self.on_files += 1;
            self.queued_files += 1;
            if self.queued_files >= HANDED_OVER {
                self.hand_over();
            }
        }
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
            IoOp::Await { .. } => Ok(()),
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
        let target = work.target();
        let fd = match target {
            UringTarget::Own(ref source) => Ok(source.as_fd()),
            UringTarget::File(file) => self.files.get(file).map(|file| file.as_fd()),
            UringTarget::Tail(file) => self.files.get(file).map(|file| file.tail().as_fd()),
            UringTarget::Pool => {
                let signal = self.pool.as_ref().map(|pool| pool.signal().as_fd());
                signal.ok_or(IoError::INVALID)
            }
            UringTarget::Listener(listener) => Ok(self.listeners[listener.index()].as_fd()),
            UringTarget::Socket(socket) => self.connections.fd(socket),
        };
        let entry = match fd {
            Ok(fd) => work.entry(fd, self.max_bytes).user_data(place as u64),
            Err(IoError(number)) => return self.results.push_back((place, -number)),
        };
        loop {
            // SAFETY: the entry names memory of `work` only: buffers and boxed lists. What
            // the kernel uses is not touched meanwhile: `work` stays where it is in the table until
            // its completion is collected (`finish`) or it is leaked (`give_up`), and buffers of
            // writes are shared. Moves of the table do not move buffers. Descriptors are closed
            // later: those of connections by `Connections::settle`, those that are awaited with
            // `work`, others with this value, whose drop waits for the kernel.
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
        self.syncs -= usize::from(work.is_sync());
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

    /// What is queued is handed over, and some of what is done taken in. It waits unless something
    /// is done already.
    fn round(&mut self, done: &mut Vec<Done>, may_wait: bool) {
        if !may_wait || !self.results.is_empty() {
            self.hand_over();
        } else if !self.look() {
            self.sleep();
        }
        for _ in 0..PASSED_ON {
            let Some((place, result)) = self.results.pop_front() else { break };
            self.finish(place, result, done);
        }
    }

    /// Gives the kernel what is queued, and takes the completions that are there.
    fn hand_over(&mut self) {
        self.queued_files = 0;
        if self.ring.is_due()
            && let Err(error) = self.ring.submit()
        {
            return self.give_up(error);
        }
        self.ring.collect(&mut self.results);
    }

    /// Hands over what is queued, and looks for completions for a while, but not beyond the next
    /// timer, where that is worth it; whether there are some.
    fn look(&mut self) -> bool {
        let kind = usize::from(self.on_files > 0);
        if self.syncs > 0 || !self.lookouts.as_mut().is_some_and(|lookouts| lookouts[kind].begins())
        {
            return false;
        }
        self.hand_over();
        if !self.results.is_empty() {
            return true;
        }
        let timer_ns = self.timers.next_ns().unwrap_or(u64::MAX);
        let end_ns = now_ns().saturating_add(LOOK_NS).min(timer_ns);
        while self.results.is_empty() && self.ring.broken().is_none() {
            if (0..LOOKS).any(|_| self.ring.has_news()) {
                self.hand_over();
            } else if now_ns() >= end_ns {
                break;
            }
        }
        let found = !self.results.is_empty();
        self.lookouts.iter_mut().for_each(|lookouts| lookouts[kind].end(found));
        found
    }

    /// One call of the system, which waits for a completion or the next timer, and the completions
    /// that are there after it.
    fn sleep(&mut self) {
        self.queued_files = 0;
        if let Err(error) = self.ring.submit_and_wait(self.timers.left_ns()) {
            self.give_up(error);
        }
        self.ring.collect(&mut self.results);
    }

    /// The ring works no more: all that is under way fails. What the kernel may still use is never
    /// freed.
    #[cold]
    fn give_up(&mut self, error: IoError) {
        self.ring.set_broken(error);
        (self.on_files, self.syncs, self.queued_files) = (0, 0, 0);
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
    /// What waits for others ends soon. An accept that is given to the kernel again later is not
    /// meant.
    fn cancel_waits(&mut self) {
        let waits = |entry: &OperationUnderWay| {
            matches!(entry.work, UringOperation::Accept { .. } | UringOperation::Await { .. })
        };
        let accepts = self.under_way.iter().filter(|(_, entry)| waits(entry));
        let places: Vec<usize> = accepts.map(|(place, _)| place).collect();
        for place in places {
            let entry = cancel(place as u64);
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
            self.cancel_waits();
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

/// Operations that are handed over in one call at most; more take more calls.
const SUBMISSIONS: u32 = 256;
/// Completions that the ring holds; the kernel keeps more in memory of its own.
const COMPLETIONS: u32 = 4096;
/// What a completion of a cancel is for: no operation.
const CANCELS: u64 = u64::MAX;
/// What is said to be expected where the kernel refuses.
const EXPECTED: &str = "io_uring of Linux 5.11 or later, allowed to this process";

/// When the kernel does its part of a completion in the thread of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When the thread waits (`DEFER_TASKRUN`; Linux 6.1).
    Deferred,
    /// In any call of the system (`COOP_TASKRUN`; Linux 5.19).
    Cooperative,
    /// At any time: the thread is interrupted.
    Plain,
}

/// All modes, the best first.
pub const MODES: [Mode; 3] = [Mode::Deferred, Mode::Cooperative, Mode::Plain];

/// The operations that are used, with their names.
const NEEDED: [(u8, &str); 10] = [
    (opcode::Read::CODE, "read"),
    (opcode::Write::CODE, "write"),
    (opcode::Fsync::CODE, "fsync"),
    (opcode::Fallocate::CODE, "fallocate"),
    (opcode::Accept::CODE, "accept"),
    (opcode::Recv::CODE, "recv"),
    (opcode::Send::CODE, "send"),
    (opcode::SendMsg::CODE, "sendmsg"),
    (opcode::PollAdd::CODE, "poll"),
    (opcode::AsyncCancel::CODE, "cancel"),
];

/// A ring of one thread.
struct Ring {
    ring: IoUring,
    broken: Option<IoError>,
}

impl Ring {
    /// Sets a ring up, of the first mode that the kernel takes.
    ///
    /// Errors: the kernel has no io_uring, forbids it, or lacks something.
    pub fn new() -> Result<Ring, OpenError> {
        let [best, others @ ..] = MODES;
        others
            .into_iter()
            .fold(Ring::of_mode(best), |ring, mode| ring.or_else(|_| Ring::of_mode(mode)))
    }

    /// Sets a ring up.
    ///
    /// Errors: as [`Ring::new`], or the kernel does not know the mode.
    fn of_mode(mode: Mode) -> Result<Ring, OpenError> {
        let refused = |found: String| OpenError::new("io_uring", found, EXPECTED);
        let ring = build(mode).map_err(|error| refused(format!("`{error}`")))?;
        let params = ring.params();
        if !params.is_feature_nodrop() || !params.is_feature_ext_arg() {
            return Err(refused("a kernel that loses completions, or waits without limit".into()));
        }
        let mut probe = Probe::new();
        let probed = ring.submitter().register_probe(&mut probe);
        probed.map_err(|error| refused(format!("`{error}`")))?;
        match NEEDED.iter().find(|(code, _)| !probe.is_supported(*code)) {
            Some((_, name)) => Err(refused(format!("no operation `{name}`"))),
            None => Ok(Ring { ring, broken: None }),
        }
    }

    /// Queues an entry; false if the queue is full.
    ///
    /// # Safety
    ///
    /// The memory and the descriptor that the entry names stay as they are until its completion is
    /// collected.
    // SAFETY: see above: the caller keeps memory and descriptor.
    #[inline]
    pub unsafe fn push(&mut self, entry: &Entry) -> bool {
        // SAFETY: the caller's promise is the one that `push` asks for.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Hands over what is queued.
    ///
    /// Errors: the ring cannot be used any more. A kernel short of memory is not an error: what is
    /// queued stays.
    pub fn submit(&mut self) -> Result<(), IoError> {
        usable(self.ring.submit())
    }

    /// Whether a call has something to do: entries are queued, or the kernel has work left that it
    /// does in a call.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        let queue = self.ring.submission();
        !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
    }

    /// Whether a completion is there, or comes by a call; a short pause if not.
    #[inline]
    pub fn has_news(&mut self) -> bool {
        let queue = self.ring.submission();
        let is_near = queue.taskrun() || queue.cq_overflow();
        drop(queue);
        let found = is_near || !self.ring.completion().is_empty();
        if !found {
            std::hint::spin_loop();
        }
        found
    }

    /// Hands over what is queued, and waits for a completion, at most `limit_ns`.
    ///
    /// Errors: as [`Ring::submit`].
    #[inline]
    pub fn submit_and_wait(&mut self, limit_ns: Option<u64>) -> Result<(), IoError> {
        let Some(limit_ns) = limit_ns else {
            return usable(self.ring.submit_and_wait(1));
        };
        let (seconds, rest) = (limit_ns / 1_000_000_000, limit_ns % 1_000_000_000);
        let span = Timespec::new().sec(seconds).nsec(rest as u32);
        usable(self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&span)))
    }

    /// Appends completions: the number of the entry, and the result.
    #[inline]
    pub fn collect(&mut self, results: &mut VecDeque<(usize, i32)>) {
        let completions = self.ring.completion().filter(|entry| entry.user_data() != CANCELS);
        results.extend(completions.map(|entry| (entry.user_data() as usize, entry.result())));
    }

    /// Why the ring cannot be used any more.
    #[inline]
    pub fn broken(&self) -> Option<IoError> {
        self.broken
    }

    /// From now on it cannot be used.
    fn set_broken(&mut self, error: IoError) {
        self.broken = Some(error);
    }
}

/// The entry that cancels another one.
pub fn cancel(user_data: u64) -> Entry {
    opcode::AsyncCancel::new(user_data).build().user_data(CANCELS)
}

fn build(mode: Mode) -> io::Result<IoUring> {
    let mut builder: Builder = IoUring::builder();
    builder.setup_clamp().setup_cqsize(COMPLETIONS);
    match mode {
        Mode::Deferred => {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            builder.setup_submit_all();
        }
        Mode::Cooperative => {
            builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
        }
        Mode::Plain => {}
    }
    builder.build(SUBMISSIONS)
}

/// Errors that pass are no errors: a signal, a time limit, completions to collect first, a kernel
/// short of memory.
fn usable(result: io::Result<usize>) -> Result<(), IoError> {
    match result.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)) {
        Ok(_) | Err(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
        Err(number) => Err(IoError(number)),
    }
}

/// Bytes of one call at most; more take more calls (Linux moves a little less than 2 GiB).
pub const MAX_BYTES: usize = 1 << 30;
/// No signal for a connection that is gone; the kernel continues short sends where it can.
const SEND_FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;

/// What an operation is about.
enum UringTarget {
    File(FileId),
    /// What lies behind the last whole page of a range.
    Tail(FileId),
    Listener(ListenerId),
    Socket(SocketId),
    /// The threads for what the kernel's rings cannot do.
    Pool,
    /// A descriptor that it keeps open itself.
    Own(Arc<OwnedFd>),
}

/// What becomes of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RangeMode {
    Discard,
    /// Holes read as zeroes, also those of block devices.
    ZeroByHole,
    /// Zeroes where there can be no holes.
    ZeroInPlace,
    /// Zeroes that have space.
    Provision,
}

/// A send, and the list of its buffers as the kernel takes it.
struct SendMessage {
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
enum UringOperation {
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
    Await {
        source: Arc<OwnedFd>,
    },
    /// Waits until the threads have done something.
    WaitForPool,
}

/// What follows a completion.
enum AfterCompletion {
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
            IoOp::Await { source } => UringOperation::Await { source },
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
            UringOperation::Await { source } => UringTarget::Own(source.clone()),
            UringOperation::WaitForPool => UringTarget::Pool,
        }
    }

    /// Whether it is about a file.
    fn is_on_file(&self) -> bool {
        matches!(self.target(), UringTarget::File(_) | UringTarget::Tail(_))
    }

    /// Whether it makes writes durable.
    fn is_sync(&self) -> bool {
        matches!(self, UringOperation::Sync { .. })
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
            UringOperation::Await { .. } | UringOperation::WaitForPool => {
                opcode::PollAdd::new(fd, libc::POLLIN as u32).build()
            }
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
            | UringOperation::Await { .. }
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
    fn into_output(self) -> Output {
        match self {
            UringOperation::Read { buffer, moved, .. } => Output::Buffer(buffer, moved),
            UringOperation::Receive { buffer, received, .. } => Output::Buffer(buffer, received),
            UringOperation::Send { message, .. } => Output::Buffers(message.sending.into_buffers()),
            UringOperation::Write { .. }
            | UringOperation::Sync { .. }
            | UringOperation::Range { .. }
            | UringOperation::Accept { .. }
            | UringOperation::Await { .. }
            | UringOperation::WaitForPool => Output::Nothing,
        }
    }

    /// What is given back while the kernel may still use the memory: empty buffers.
    fn output_without_memory(&self) -> Output {
        match self {
            UringOperation::Read { .. } | UringOperation::Receive { .. } => {
                Output::Buffer(Buffer::default(), 0)
            }
            UringOperation::Send { .. } => Output::Buffers(Vec::new()),
            UringOperation::Write { .. }
            | UringOperation::Sync { .. }
            | UringOperation::Range { .. }
            | UringOperation::Accept { .. }
            | UringOperation::Await { .. }
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

/// A connection.
#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    /// Whether a receive is under way.
    receives: bool,
    /// Whether a send is under way.
    sends: bool,
    /// The close that ends it when nothing is under way on it.
    closing: Option<Token>,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the peer.
    Receive,
    /// To the peer.
    Send,
}

impl Connection {
    /// Whether an operation is under way in a direction.
    fn under_way(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Receive => &mut self.receives,
            Direction::Send => &mut self.sends,
        }
    }
}

/// All connections, by number.
#[derive(Debug, Default)]
pub struct Connections {
    connections: Slab<Connection>,
}

impl Connections {
    /// Adds a client.
    pub fn add(&mut self, fd: OwnedFd) -> SocketId {
        let connection = Connection { fd, receives: false, sends: false, closing: None };
        SocketId::new(self.connections.insert(connection))
    }

    /// The descriptor of a connection. Errors: there is none of this number.
    #[inline]
    pub fn fd(&self, socket: SocketId) -> Result<BorrowedFd<'_>, IoError> {
        let found = self.connections.get(socket.index()).ok_or(IoError::NOT_CONNECTED);
        found.map(|connection| connection.fd.as_fd())
    }

    /// Marks one direction of a connection as taken. Errors: it is taken, or the connection ends.
    #[inline]
    pub fn claim(&mut self, socket: SocketId, direction: Direction) -> Result<(), IoError> {
        let taken = self.open(socket).ok_or(IoError::NOT_CONNECTED)?.under_way(direction);
        if *taken {
            return Err(IoError::BUSY);
        }
        *taken = true;
        Ok(())
    }

    /// Marks one direction of a connection as free.
    #[inline]
    pub fn release(&mut self, socket: SocketId, direction: Direction) {
        if let Some(found) = self.connections.get_mut(socket.index()) {
            *found.under_way(direction) = false;
        }
    }

    /// Begins to end a connection: what is under way ends by the shutdown, and the close of `token`
    /// after it. Errors: there is none of this number, or it ends already.
    pub fn begin_close(
        &mut self,
        socket: SocketId,
        token: Token,
        done: &mut Vec<Done>,
    ) -> Result<(), IoError> {
        let found = self.open(socket).ok_or(IoError::NOT_CONNECTED)?;
        found.closing = Some(token);
        // It fails if the client is gone; then all that is under way has ended by itself.
        let _shut = rustix::net::shutdown(&found.fd, rustix::net::Shutdown::Both);
        self.settle(socket, done);
        Ok(())
    }

    /// Ends a close whose connection has nothing under way.
    pub fn settle(&mut self, socket: SocketId, done: &mut Vec<Done>) {
        let number = socket.index();
        let idle = self.connections.get(number).filter(|found| !found.receives && !found.sends);
        if let Some(token) = idle.and_then(|connection| connection.closing) {
            drop(self.connections.try_remove(number));
            done.push(Done { token, output: Output::Nothing, error: None });
        }
    }

    /// Shuts all connections down, so that what is under way on them ends.
    fn shut_down(&self) {
        for (_, connection) in self.connections.iter() {
            let _shut = rustix::net::shutdown(&connection.fd, rustix::net::Shutdown::Both);
        }
    }

    /// A connection that no close ends.
    fn open(&mut self, socket: SocketId) -> Option<&mut Connection> {
        self.connections.get_mut(socket.index()).filter(|found| found.closing.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::open::{FileAccess, open_file, unix_listener};
    use crate::io::{Buffer, SocketId};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    /// The value under test in a folder of its own, unless the kernel refuses it.
    fn set_up() -> Option<(Uring, tempfile::TempDir)> {
        match Uring::new() {
            Ok(uring) => Some((uring, tempfile::tempdir().unwrap())),
            Err(error) => {
                println!("skipped: {error}");
                None
            }
        }
    }

    fn run(io: &mut Uring, op: IoOp) -> Done {
        let mut done = Vec::new();
        io.submit(Token(0), op);
        io.wait(&mut done);
        done.remove(0)
    }

    fn connected(io: &mut Uring, folder: &tempfile::TempDir) -> (SocketId, UnixStream) {
        let path = folder.path().join("socket");
        let listener = io.add_listener(unix_listener(&path).unwrap());
        let client = UnixStream::connect(&path).unwrap();
        match run(io, IoOp::Accept { listener }).output {
            Output::Socket(socket) => (socket, client),
            output => panic!("found {output:?}"),
        }
    }

    #[test]
    fn short_calls_are_continued() {
        let Some((mut io, folder)) = set_up() else {
            return;
        };
        io.max_bytes = 8192;
        let path = folder.path().join("file");
        std::fs::write(&path, vec![0; 5 * 4096]).unwrap();
        let file = io.add_file(open_file(&path, FileAccess::Write).unwrap());
        let mut buffer = Buffer::zeroed(5 * 4096);
        buffer.chunks_mut(4096).zip(1..).for_each(|(block, value)| block.fill(value));
        let written = buffer.clone();
        let buffer = Arc::new(buffer);
        assert_eq!(run(&mut io, IoOp::Write { file, offset: 0, buffer }).error, None);
        assert_eq!(std::fs::read(&path).unwrap(), written[..]);
        let done = run(&mut io, IoOp::Read { file, offset: 0, buffer: Buffer::zeroed(5 * 4096) });
        let Output::Buffer(buffer, count) = done.output else {
            panic!("found {:?}", done.output);
        };
        assert_eq!((count, done.error), (5 * 4096, None));
        assert_eq!(buffer[..], written[..]);
        let (socket, mut client) = connected(&mut io, &folder);
        let buffers = vec![Buffer::copy_of(b"ab"), written.clone(), Buffer::copy_of(b"yz")];
        assert_eq!(run(&mut io, IoOp::Send { socket, buffers }).error, None);
        assert_eq!(run(&mut io, IoOp::Close { socket }).error, None);
        let mut taken = Vec::new();
        client.read_to_end(&mut taken).unwrap();
        assert_eq!(taken, [b"ab", &written[..], b"yz"].concat());
    }

    #[test]
    fn with_looks_and_without_all_is_passed_on_in_time() {
        let Some((mut io, folder)) = set_up() else {
            return;
        };
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 4096]).unwrap();
        let file = io.add_file(open_file(&path, FileAccess::Write).unwrap());
        let (socket, mut client) = connected(&mut io, &folder);
        for lookouts in [None, Some(<[Lookout; 2]>::default())] {
            io.lookouts = lookouts;
            for round in 0..50_u64 {
                io.submit(Token(0), IoOp::Receive { socket, buffer: Buffer::zeroed(8) });
                for number in 1..=2 * PASSED_ON as u64 {
                    let buffer = Buffer::zeroed(4096);
                    io.submit(Token(number), IoOp::Read { file, offset: 0, buffer });
                }
                let mut done = Vec::new();
                while done.len() < 2 * PASSED_ON {
                    let before = done.len();
                    io.wait(&mut done);
                    assert!((1..=PASSED_ON).contains(&(done.len() - before)));
                }
                client.write_all(&round.to_le_bytes()).unwrap();
                let at_ns = io.now_ns() + 20_000;
                io.submit(Token(u64::MAX), IoOp::Timer { at_ns });
                while done.len() < 2 * PASSED_ON + 2 {
                    io.wait(&mut done);
                }
                assert!(io.now_ns() >= at_ns, "a timer does not end early");
                assert!(done.iter().all(|done| done.error.is_none()));
            }
        }
        // Looks end with the timer also where nothing comes.
        io.submit(Token(0), IoOp::Receive { socket, buffer: Buffer::zeroed(8) });
        for _ in 0..20 {
            let at_ns = io.now_ns() + 30_000;
            let done = run(&mut io, IoOp::Timer { at_ns });
            assert_eq!((done.token, done.error), (Token(0), None));
        }
    }

    #[test]
    fn every_mode_of_the_ring_does_the_same() {
        for mode in MODES {
            let mut io = match Ring::of_mode(mode) {
                Ok(ring) => Uring::with_ring(ring),
                Err(error) => {
                    println!("skipped: {mode:?}: {error}");
                    continue;
                }
            };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            std::fs::write(&path, vec![7; 16 * 4096]).unwrap();
            let file = io.add_file(open_file(&path, FileAccess::Write).unwrap());
            // More than the queues hold, beside a receive that takes longer than all of them.
            let (socket, mut client) = connected(&mut io, &folder);
            let buffer = Buffer::zeroed(8);
            io.submit(Token(u64::MAX), IoOp::Receive { socket, buffer });
            for number in 0..5_000 {
                let (offset, buffer) = (number % 16 * 4096, Buffer::zeroed(4096));
                io.submit(Token(number), IoOp::Read { file, offset, buffer });
            }
            let mut done = Vec::new();
            while done.len() < 5_000 {
                io.wait(&mut done);
            }
            let is_read = |done: &Done| match &done.output {
                Output::Buffer(buffer, 4096) => buffer.iter().all(|byte| *byte == 7),
                _ => false,
            };
            assert!(done.drain(..).all(|done| is_read(&done)), "{mode:?}");
            let at_ns = io.now_ns() + 1_000_000;
            assert_eq!(run(&mut io, IoOp::Timer { at_ns }).error, None);
            assert!(io.now_ns() >= at_ns);
            assert_eq!(run(&mut io, IoOp::Sync { file }).error, None);
            client.write_all(b"x").unwrap();
            io.wait(&mut done);
            assert!(matches!(done[0].output, Output::Buffer(ref buffer, 1) if buffer[0] == b'x'));
        }
    }

    #[test]
    fn a_ring_that_breaks_ends_everything_with_its_error() {
        let Some((mut io, folder)) = set_up() else {
            return;
        };
        let (socket, _client) = connected(&mut io, &folder);
        let receive = |number| (Token(number), IoOp::Receive { socket, buffer: Buffer::zeroed(8) });
        let (token, op) = receive(1);
        io.submit(token, op);
        io.submit(Token(2), IoOp::Send { socket, buffers: vec![Buffer::zeroed(8 << 20)] });
        io.round(&mut Vec::new(), false);
        io.give_up(IoError::IO);
        let (token, op) = receive(3);
        io.submit(token, op);
        let mut done = Vec::new();
        io.wait(&mut done);
        done.sort_by_key(|done| done.token);
        let ended: Vec<_> = done.iter().map(|done| (done.token.0, done.error)).collect();
        assert_eq!(ended, [1, 2, 3].map(|token| (token, Some(IoError::IO))));
        io.wait(&mut done);
        assert_eq!(done.len(), 3, "nothing is under way");
    }

    /// A connection whose other end is kept open.
    fn connected_pair() -> (Connections, SocketId, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        let mut connections = Connections::default();
        let socket = connections.add(here.into());
        (connections, socket, there)
    }

    #[test]
    fn each_direction_is_taken_once() {
        let (mut connections, socket, _there) = connected_pair();
        assert_eq!(connections.claim(socket, Direction::Receive), Ok(()));
        assert_eq!(connections.claim(socket, Direction::Send), Ok(()));
        assert_eq!(connections.claim(socket, Direction::Receive), Err(IoError::BUSY));
        connections.release(socket, Direction::Receive);
        assert_eq!(connections.claim(socket, Direction::Receive), Ok(()));
        assert_eq!(
            connections.claim(SocketId::new(7), Direction::Send),
            Err(IoError::NOT_CONNECTED)
        );
    }

    #[test]
    fn a_close_ends_once_nothing_is_under_way() {
        let (mut connections, socket, _there) = connected_pair();
        let mut done = Vec::new();
        assert_eq!(connections.claim(socket, Direction::Send), Ok(()));
        assert_eq!(connections.begin_close(socket, Token(5), &mut done), Ok(()));
        let again = connections.begin_close(socket, Token(6), &mut done);
        assert_eq!((again, done.len()), (Err(IoError::NOT_CONNECTED), 0));
        assert_eq!(connections.claim(socket, Direction::Receive), Err(IoError::NOT_CONNECTED));
        connections.release(socket, Direction::Send);
        connections.settle(socket, &mut done);
        assert!(matches!(done[..], [Done { token: Token(5), error: None, .. }]));
        assert!(connections.fd(socket).is_err());
    }
}
