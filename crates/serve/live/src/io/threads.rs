//! Input and output by threads and `poll`: for containers and kernels that refuse io_uring.
//!
//! Files are read and written by a small pool, because a file can make a thread wait: operations
//! begin in the order of their submission, and as many are under way as there are threads. Sockets
//! are the business of the thread that waits, which learns by `poll` which of them are ready.

use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::system::{Files, Sending, Timers, now_ns, range_error, socket_error, timespec};
use super::{
    ALIGNMENT, Buffer, Done, FileExtent, FileId, Io, IoError, IoOp, ListenerId, Output, SocketId,
    Token,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fdatasync, seek};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags, accept_with, recv, sendmsg,
    shutdown,
};
use slab::Slab;
use std::collections::VecDeque;
use std::fs::File;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

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

/// Threads at most: what a flash device answers at once from a daemon of this kind.
const MAX_THREADS: usize = 16;

struct Job {
    token: Token,
    file: Arc<OpenFile>,
    op: IoOp,
}

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    waiting: usize,
    closed: bool,
}

/// What the threads share with the pool.
struct ThreadPoolState {
    queue: Mutex<JobQueue>,
    filled: Condvar,
    done: Mutex<Vec<Done>>,
    /// Readable when something was added to `done`.
    signal: OwnedFd,
}

/// The pool.
pub struct Pool {
    shared: Arc<ThreadPoolState>,
    threads: Vec<JoinHandle<()>>,
    under_way: usize,
}

impl Pool {
    /// A pool without threads.
    ///
    /// Errors: the process has no descriptor left.
    pub fn new() -> Result<Pool, OpenError> {
        let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let signal = signal.map_err(|error| {
            let expected = "a descriptor for the signals of threads";
            OpenError::new("eventfd", io::Error::from(error), expected)
        })?;
        let shared = ThreadPoolState {
            queue: Mutex::default(),
            filled: Condvar::new(),
            done: Mutex::default(),
            signal,
        };
        Ok(Pool { shared: Arc::new(shared), threads: Vec::new(), under_way: 0 })
    }

    /// Begins an operation on a file.
    pub fn start(&mut self, token: Token, file: Arc<OpenFile>, op: IoOp) {
        self.under_way += 1;
        let mut queue = lock(&self.shared.queue);
        queue.jobs.push_back(Job { token, file, op });
        if queue.waiting >= queue.jobs.len() || self.threads.len() == MAX_THREADS {
            drop(queue);
            self.shared.filled.notify_one();
            return;
        }
        drop(queue);
        let shared = self.shared.clone();
        let spawned = thread::Builder::new().name("io".to_owned()).spawn(move || work(&shared));
        match spawned {
            Ok(thread) => self.threads.push(thread),
            // A smaller pool does it; without any thread, this one does it.
            Err(_) if !self.threads.is_empty() => self.shared.filled.notify_one(),
            Err(_) => {
                let job = lock(&self.shared.queue).jobs.pop_front();
                if let Some(job) = job {
                    finish(&self.shared, job);
                }
            }
        }
    }

    /// Appends what is done.
    pub fn collect(&mut self, done: &mut Vec<Done>) {
        if self.under_way == 0 {
            return;
        }
        let mut found = lock(&self.shared.done);
        if !found.is_empty() {
            self.under_way -= found.len();
            done.append(&mut found);
            // The counter goes back to zero; it was not zero, since something was done.
            let _read = rustix::io::read(&self.shared.signal, &mut [0_u8; 8]);
        }
    }

    /// Waits until nothing is under way, and appends what is done.
    pub fn finish_all(&mut self, done: &mut Vec<Done>) {
        while !self.is_idle() {
            let mut signal = [PollFd::new(&self.shared.signal, PollFlags::IN)];
            // A wait that fails is begun again: what is under way ends.
            let _polled = poll(&mut signal, None);
            self.collect(done);
        }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Readable when something is done.
    pub fn signal(&self) -> &OwnedFd {
        &self.shared.signal
    }
}

impl Drop for Pool {
    /// Operations under way end first.
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.filled.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why.
            let _ended = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread does until the pool is closed and empty.
fn work(shared: &ThreadPoolState) {
    while let Some(job) = next_job(shared) {
        finish(shared, job);
    }
}

fn next_job(shared: &ThreadPoolState) -> Option<Job> {
    let mut queue = lock(&shared.queue);
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.closed {
            return None;
        }
        queue.waiting += 1;
        queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        queue.waiting -= 1;
    }
}

fn finish(shared: &ThreadPoolState, job: Job) {
    let (output, error) = carry_out(&job.file, job.op);
    let mut done = lock(&shared.done);
    done.push(Done { token: job.token, output, error });
    if done.len() == 1 {
        // It fails only if the counter is full: then the signal stands already.
        let _written = rustix::io::write(&shared.signal, &1_u64.to_ne_bytes());
    }
}

fn carry_out(file: &OpenFile, op: IoOp) -> (Output, Option<IoError>) {
    let number = |error: Errno| error.raw_os_error();
    match op {
        IoOp::Read { offset, mut buffer, .. } => {
            let (moved, error) = move_all(buffer.len(), |moved| {
                let (part, length) = part_of(file, buffer.len(), moved);
                part.read_at(&mut buffer[moved..moved + length], offset + moved as u64)
            });
            (Output::Buffer(buffer, moved), error)
        }
        IoOp::Write { offset, buffer, .. } => {
            let (_, error) = move_all(buffer.len(), |moved| {
                let (part, length) = part_of(file, buffer.len(), moved);
                part.write_at(&buffer[moved..moved + length], offset + moved as u64)
            });
            (Output::Nothing, error)
        }
        IoOp::Sync { .. } => {
            let synced = rustix::io::retry_on_intr(|| fdatasync(file));
            (Output::Nothing, synced.err().map(|error| IoError(number(error))))
        }
        IoOp::Discard { offset, length, .. } => {
            let length = file.hole_bytes(offset, length);
            let discarded = change(file, FallocateFlags::PUNCH_HOLE, offset, length);
            (Output::Nothing, discarded.err())
        }
        IoOp::Zero { offset, length, .. } => {
            // Holes read as zeroes, also those of block devices.
            let hole = file.hole_bytes(offset, length);
            let zeroed = match change(file, FallocateFlags::PUNCH_HOLE, offset, hole) {
                Err(IoError::NOT_SUPPORTED) => {
                    change(file, FallocateFlags::ZERO_RANGE, offset, length)
                }
                zeroed => zeroed,
            };
            (Output::Nothing, zeroed.err())
        }
        IoOp::Provision { offset, length, .. } => {
            let zeroed = change(file, FallocateFlags::ZERO_RANGE, offset, length);
            (Output::Nothing, zeroed.err())
        }
        IoOp::Extents { offset, length, max_extents, .. } => {
            (Output::Extents(extents(file, offset, length, max_extents)), None)
        }
        op => (op.give_back(), Some(IoError::INVALID)),
    }
}

/// What takes the bytes of a range of `length` bytes from the place `moved` on, and how many.
fn part_of(file: &OpenFile, length: usize, moved: usize) -> (&File, usize) {
    let whole = length / ALIGNMENT * ALIGNMENT;
    match moved < whole {
        true => (file.file(), whole - moved),
        false => (file.tail(), length - moved),
    }
}

/// The extents of a range, from its start on. Where the file cannot say, all of it counts as data.
fn extents(file: &OpenFile, offset: u64, length: u64, max_extents: usize) -> Vec<FileExtent> {
    let end = offset.saturating_add(length);
    let (mut found, mut position, mut is_hole) = (Vec::new(), offset, true);
    while position < end && found.len() < max_extents {
        let to = if is_hole { SeekFrom::Data(position) } else { SeekFrom::Hole(position) };
        let next = match rustix::io::retry_on_intr(|| seek(file, to)) {
            Ok(next) => next.clamp(position, end),
            // No data follows.
            Err(Errno::NXIO) if is_hole => end,
            Err(_) => {
                found.push(FileExtent { bytes: end - position, is_hole: false });
                break;
            }
        };
        if next > position {
            found.push(FileExtent { bytes: next - position, is_hole });
        }
        (position, is_hole) = (next, !is_hole);
    }
    found
}

/// Repeats a call until all bytes are moved; 0 bytes are the end of a file that has shrunk.
fn move_all(
    length: usize,
    mut call: impl FnMut(usize) -> io::Result<usize>,
) -> (usize, Option<IoError>) {
    let mut moved = 0;
    while moved < length {
        match call(moved) {
            Ok(0) => return (moved, Some(IoError::BEYOND_END)),
            Ok(count) => moved += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (moved, Some(IoError(error.raw_os_error().unwrap_or(libc::EIO)))),
        }
    }
    (moved, None)
}

fn change(file: &OpenFile, mode: FallocateFlags, offset: u64, length: u64) -> Result<(), IoError> {
    if length == 0 {
        return Ok(());
    }
    let mode = mode | FallocateFlags::KEEP_SIZE;
    let changed = rustix::io::retry_on_intr(|| fallocate(file, mode, offset, length));
    changed.map_err(|error| range_error(error.raw_os_error()))
}

/// How long a thread rests when `poll` fails, before it looks at all sockets.
const REST: Duration = Duration::from_millis(1);

struct Waiting {
    listener: Listener,
    accepts: VecDeque<Token>,
}

struct Connection {
    fd: OwnedFd,
    receive: Option<(Token, Buffer)>,
    send: Option<(Token, Sending)>,
}

/// Something that may be able to go on.
#[derive(Clone, Copy)]
enum SocketPlace {
    Listener(usize),
    Connection(usize),
    Awaited(usize),
}

/// All sockets.
#[derive(Default)]
struct ThreadSockets {
    listeners: Vec<Waiting>,
    connections: Slab<Connection>,
    /// Descriptors of others that are waited for.
    awaited: Slab<(Token, Arc<OwnedFd>)>,
    /// What is tried before the next wait: new operations, and what `poll` has found.
    ready: Vec<SocketPlace>,
    under_way: usize,
}

impl ThreadSockets {
    pub fn add_listener(&mut self, listener: Listener) -> ListenerId {
        // A client can go between `poll` and `accept`, which then would wait for the next one.
        let _set = rustix::io::ioctl_fionbio(&listener, true);
        self.listeners.push(Waiting { listener, accepts: VecDeque::new() });
        ListenerId::new(self.listeners.len() - 1)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Begins an operation on a socket, or says why not.
    pub fn start(
        &mut self,
        token: Token,
        op: IoOp,
        done: &mut Vec<Done>,
    ) -> Result<(), (IoError, IoOp)> {
        match op {
            IoOp::Accept { listener } => match self.listeners.get_mut(listener.index()) {
                Some(found) => {
                    found.accepts.push_back(token);
                    self.ready.push(SocketPlace::Listener(listener.index()));
                }
                None => return Err((IoError::INVALID, op)),
            },
            IoOp::Receive { socket, buffer } => match self.connections.get_mut(socket.index()) {
                Some(Connection { receive: receive @ None, .. }) => {
                    *receive = Some((token, buffer));
                    self.ready.push(SocketPlace::Connection(socket.index()));
                }
                found => return Err((refusal(found), IoOp::Receive { socket, buffer })),
            },
            IoOp::Send { socket, buffers } => match self.connections.get_mut(socket.index()) {
                Some(Connection { send: send @ None, .. }) => {
                    *send = Some((token, Sending::new(buffers)));
                    self.ready.push(SocketPlace::Connection(socket.index()));
                }
                found => return Err((refusal(found), IoOp::Send { socket, buffers })),
            },
            IoOp::Close { socket } => match self.connections.try_remove(socket.index()) {
                Some(connection) => {
                    self.close(connection, done);
                    done.push(ended(token, None));
                    return Ok(());
                }
                None => return Err((IoError::NOT_CONNECTED, op)),
            },
            IoOp::Await { source } => {
                let place = self.awaited.insert((token, source));
                self.ready.push(SocketPlace::Awaited(place));
            }
            op => return Err((IoError::INVALID, op)),
        }
        self.under_way += 1;
        Ok(())
    }

    /// Ends what is under way on a connection.
    fn close(&mut self, connection: Connection, done: &mut Vec<Done>) {
        // It fails if the client is gone; the descriptor is closed in any case.
        let _shut = shutdown(&connection.fd, Shutdown::Both);
        if let Some((token, buffer)) = connection.receive {
            self.under_way -= 1;
            done.push(Done { token, output: Output::Buffer(buffer, 0), error: None });
        }
        if let Some((token, sending)) = connection.send {
            self.under_way -= 1;
            let output = Output::Buffers(sending.into_buffers());
            done.push(Done { token, output, error: Some(IoError::NOT_CONNECTED) });
        }
    }

    /// Tries what may be able to go on.
    pub fn carry_out(&mut self, done: &mut Vec<Done>) {
        let mut ready = std::mem::take(&mut self.ready);
        let before = done.len();
        for place in ready.drain(..) {
            match place {
                SocketPlace::Listener(number) => self.try_accept(number, done),
                SocketPlace::Connection(number) => self.try_connection(number, done),
                SocketPlace::Awaited(place) => self.try_awaited(place, done),
            }
        }
        self.ready = ready;
        self.under_way -= done.len() - before;
    }

    fn try_awaited(&mut self, place: usize, done: &mut Vec<Done>) {
        let Some((token, source)) = self.awaited.get(place) else { return };
        if is_readable(source) {
            done.push(ended(*token, None));
            self.awaited.remove(place);
        }
    }

    fn try_accept(&mut self, number: usize, done: &mut Vec<Done>) {
        let Some(found) = self.listeners.get_mut(number) else {
            return;
        };
        while let Some(token) = found.accepts.pop_front() {
            match accept_with(&found.listener, SocketFlags::CLOEXEC) {
                Ok(fd) => {
                    if found.listener.is_tcp() {
                        // Without it replies wait for acknowledgements: slower, and correct.
                        let _set = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
                        // Without it a client whose host is gone is never noticed.
                        let _set = rustix::net::sockopt::set_socket_keepalive(&fd, true);
                    }
                    let connection = Connection { fd, receive: None, send: None };
                    let socket = SocketId::new(self.connections.insert(connection));
                    done.push(Done { token, output: Output::Socket(socket), error: None });
                }
                Err(Errno::AGAIN) => return found.accepts.push_front(token),
                Err(Errno::INTR | Errno::CONNABORTED) => found.accepts.push_front(token),
                Err(error) => done.push(ended(token, Some(IoError(error.raw_os_error())))),
            }
        }
    }

    fn try_connection(&mut self, number: usize, done: &mut Vec<Done>) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        if let Some((token, mut buffer)) = connection.receive.take() {
            match retry(|| recv(&connection.fd, &mut buffer[..], RecvFlags::DONTWAIT)) {
                Err(Errno::AGAIN) => connection.receive = Some((token, buffer)),
                Ok((count, _)) => {
                    done.push(Done { token, output: Output::Buffer(buffer, count), error: None });
                }
                Err(error) => {
                    let error = Some(socket_error(error.raw_os_error()));
                    done.push(Done { token, output: Output::Buffer(buffer, 0), error });
                }
            }
        }
        if let Some((token, mut sending)) = connection.send.take() {
            match send_some(&connection.fd, &mut sending) {
                Err(Errno::AGAIN) => connection.send = Some((token, sending)),
                sent => {
                    let error = sent.err().map(|error| socket_error(error.raw_os_error()));
                    let output = Output::Buffers(sending.into_buffers());
                    done.push(Done { token, output, error });
                }
            }
        }
    }

    /// Waits until a socket is ready or `signal` is readable, at most `limit_ns`.
    pub fn wait(&mut self, signal: &OwnedFd, limit_ns: Option<u64>) {
        let mut places = Vec::new();
        let mut polled = vec![PollFd::new(signal, PollFlags::IN)];
        for (number, found) in self.listeners.iter().enumerate() {
            if !found.accepts.is_empty() {
                polled.push(PollFd::new(&found.listener, PollFlags::IN));
                places.push(SocketPlace::Listener(number));
            }
        }
        for (number, connection) in self.connections.iter() {
            let receives = connection.receive.as_ref().map(|_| PollFlags::IN);
            let sends = connection.send.as_ref().map(|_| PollFlags::OUT);
            let events =
                receives.unwrap_or(PollFlags::empty()) | sends.unwrap_or(PollFlags::empty());
            if !events.is_empty() {
                polled.push(PollFd::new(&connection.fd, events));
                places.push(SocketPlace::Connection(number));
            }
        }
        for (place, (_, source)) in &self.awaited {
            polled.push(PollFd::new(source, PollFlags::IN));
            places.push(SocketPlace::Awaited(place));
        }
        match poll(&mut polled, limit_ns.map(timespec).as_ref()) {
            Ok(_) => {
                let found = places.into_iter().zip(&polled[1..]);
                let ready = found.filter(|(_, polled)| !polled.revents().is_empty());
                self.ready.extend(ready.map(|(place, _)| place));
            }
            Err(Errno::INTR) => {}
            // More sockets than the process may have: all are tried, at a bounded rate.
            Err(_) => {
                thread::sleep(REST);
                self.ready.extend(places);
            }
        }
    }
}

/// Whether a descriptor can be read now, or has ended.
pub fn is_readable(source: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(source, PollFlags::IN)];
    poll(&mut polled, Some(&timespec(0))).is_ok_and(|ready| ready > 0)
}

fn refusal(found: Option<&mut Connection>) -> IoError {
    if found.is_some() { IoError::BUSY } else { IoError::NOT_CONNECTED }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Sends until all is sent, or the socket takes no more (`AGAIN`).
fn send_some(fd: &OwnedFd, sending: &mut Sending) -> Result<(), Errno> {
    while !sending.is_done() {
        let slices: Vec<IoSlice<'_>> = sending.slices().collect();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut control = SendAncillaryBuffer::default();
        let count = retry(|| sendmsg(fd, &slices, &mut control, flags))?;
        drop(slices);
        sending.advance(count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_calls_are_continued_and_the_end_of_a_file_is_an_error() {
        let (mut calls, mut sizes) = (Vec::new(), [3, 0].into_iter());
        let moved = move_all(5, |moved| {
            calls.push(moved);
            Ok(sizes.next().unwrap_or_default())
        });
        assert_eq!((moved, calls), ((3, Some(IoError::BEYOND_END)), vec![0, 3]));
        let mut interrupted = true;
        let moved = move_all(5, |_| {
            let error = Err(io::ErrorKind::Interrupted.into());
            if std::mem::take(&mut interrupted) { error } else { Ok(5) }
        });
        assert_eq!(moved, (5, None));
        let full = move_all(5, |_| Err(io::Error::from_raw_os_error(libc::ENOSPC)));
        assert_eq!(full, (0, Some(IoError::NO_SPACE)));
    }
}
