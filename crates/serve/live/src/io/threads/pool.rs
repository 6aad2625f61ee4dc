//! Threads that read and write files.
//!
//! For: [`Threads`](super::Threads), and what the rings of the kernel have no operation for. Must
//! never know: sockets, timers. Units: bytes. Operations begin in the order of their submission; as
//! many are under way as there are threads.

use crate::io::open::{OpenError, OpenFile};
use crate::io::tables::range_error;
use crate::io::{ALIGNMENT, Done, FileExtent, IoError, IoOp, Output, Token};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fdatasync, seek};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

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
