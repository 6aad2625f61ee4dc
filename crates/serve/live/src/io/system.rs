//! The choice between the production siblings, and what both keep: open files, sends, the clock and
//! timers.
//!
//! Times are of the system's monotonic clock, so that all threads share them.

use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::threads::Threads;
use super::uring::Uring;
use super::{Buffer, Done, FileId, Io, IoError, IoOp, ListenerId, Output, Token, check_range};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// Which sibling carries operations out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineChoice {
    /// io_uring; where the kernel refuses it, threads.
    #[default]
    Auto,
    /// io_uring only.
    Uring,
    /// Threads only.
    Threads,
}

/// Carries out operations by the system it runs on. It belongs to the thread that made it.
pub enum SystemIo {
    /// By io_uring.
    Uring(Box<Uring>),
    /// By threads, and why not by io_uring.
    Threads(Box<Threads>, Option<OpenError>),
}

impl SystemIo {
    /// Begins with nothing open.
    ///
    /// Errors: io_uring is demanded and refused, or the process has no descriptor left.
    pub fn new(engine: EngineChoice) -> Result<SystemIo, OpenError> {
        SystemIo::choose(engine, Uring::new)
    }

    fn choose(
        engine: EngineChoice,
        uring: impl FnOnce() -> Result<Uring, OpenError>,
    ) -> Result<SystemIo, OpenError> {
        let refusal = match engine {
            EngineChoice::Threads => None,
            EngineChoice::Uring => return Ok(SystemIo::Uring(Box::new(uring()?))),
            EngineChoice::Auto => match uring() {
                Ok(uring) => return Ok(SystemIo::Uring(Box::new(uring))),
                Err(error) => Some(error),
            },
        };
        Ok(SystemIo::Threads(Box::new(Threads::new()?), refusal))
    }

    /// A sentence for operators where io_uring was wanted and refused.
    pub fn notice(&self) -> Option<String> {
        match self {
            SystemIo::Threads(_, Some(refusal)) => Some(format!("{refusal}: threads are used")),
            _ => None,
        }
    }

    /// The sibling, as configurations name it.
    pub fn name(&self) -> &'static str {
        match self {
            SystemIo::Uring(_) => "uring",
            SystemIo::Threads(..) => "threads",
        }
    }

    /// Adds a file.
    pub fn add_file(&mut self, file: OpenFile) -> FileId {
        match self {
            SystemIo::Uring(io) => io.add_file(file),
            SystemIo::Threads(io, _) => io.add_file(file),
        }
    }

    /// Closes a file on which nothing is under way.
    pub fn remove_file(&mut self, file: FileId) {
        match self {
            SystemIo::Uring(io) => io.remove_file(file),
            SystemIo::Threads(io, _) => io.remove_file(file),
        }
    }

    /// Looks how large a file is now, which may have grown. Errors: the system's.
    pub fn measure_file(&mut self, file: FileId) -> std::io::Result<u64> {
        match self {
            SystemIo::Uring(io) => io.measure_file(file),
            SystemIo::Threads(io, _) => io.measure_file(file),
        }
    }

    /// Whether zeroes of a range of a file are faster than writing them.
    pub fn zeroes_fast(&self, file: FileId) -> bool {
        match self {
            SystemIo::Uring(io) => io.zeroes_fast(file),
            SystemIo::Threads(io, _) => io.zeroes_fast(file),
        }
    }

    /// Whether a path leads to a file. Errors: the system's; nothing may be there.
    pub fn is_file_at(&self, file: FileId, path: &std::path::Path) -> std::io::Result<bool> {
        match self {
            SystemIo::Uring(io) => io.is_file_at(file, path),
            SystemIo::Threads(io, _) => io.is_file_at(file, path),
        }
    }

    /// What a file is known by now; see [`OpenFile::facts`]. Errors: the system's.
    pub fn file_facts(&self, file: FileId) -> std::io::Result<DeviceFacts> {
        match self {
            SystemIo::Uring(io) => io.file_facts(file),
            SystemIo::Threads(io, _) => io.file_facts(file),
        }
    }

    /// Adds a place to connect to.
    pub fn add_listener(&mut self, listener: Listener) -> ListenerId {
        match self {
            SystemIo::Uring(io) => io.add_listener(listener),
            SystemIo::Threads(io, _) => io.add_listener(listener),
        }
    }
}

impl Io for SystemIo {
    #[inline]
    fn submit(&mut self, token: Token, op: IoOp) {
        match self {
            SystemIo::Uring(io) => io.submit(token, op),
            SystemIo::Threads(io, _) => io.submit(token, op),
        }
    }

    #[inline]
    fn wait(&mut self, done: &mut Vec<Done>) {
        match self {
            SystemIo::Uring(io) => io.wait(done),
            SystemIo::Threads(io, _) => io.wait(done),
        }
    }

    fn now_ns(&self) -> u64 {
        match self {
            SystemIo::Uring(io) => io.now_ns(),
            SystemIo::Threads(io, _) => io.now_ns(),
        }
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        match self {
            SystemIo::Uring(io) => io.file_bytes(file),
            SystemIo::Threads(io, _) => io.file_bytes(file),
        }
    }
}

/// Buffers that one call of the system takes (source: `UIO_MAXIOV` of Linux).
const MAX_SLICES: usize = 1024;

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

/// The time.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A span of time as the system takes it.
pub fn timespec(span_ns: u64) -> Timespec {
    let (seconds, rest) = (span_ns / 1_000_000_000, span_ns % 1_000_000_000);
    Timespec { tv_sec: seconds as i64, tv_nsec: rest as i64 }
}

/// Timers under way, the earliest first; of equal times the one that was begun first.
#[derive(Debug, Default)]
pub struct Timers {
    waiting: BinaryHeap<Reverse<(u64, u64, Token)>>,
    begun: u64,
}

impl Timers {
    /// Begins a timer.
    pub fn add(&mut self, at_ns: u64, token: Token) {
        self.waiting.push(Reverse((at_ns, self.begun, token)));
        self.begun += 1;
    }

    /// When the earliest ends.
    pub fn next_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((at_ns, _, _))| *at_ns)
    }

    /// How long the earliest still takes.
    pub fn left_ns(&self) -> Option<u64> {
        self.next_ns().map(|at_ns| at_ns.saturating_sub(now_ns()))
    }

    /// Ends those that are due; the clock is read only if there are timers.
    pub fn end_due(&mut self, done: &mut Vec<Done>) {
        if !self.waiting.is_empty() {
            self.end_until(now_ns(), done);
        }
    }

    fn end_until(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        while self.next_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            if let Some(Reverse((_, _, token))) = self.waiting.pop() {
                done.push(Done { token, output: Output::Nothing, error: None });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Result<Uring, OpenError> {
        Err(OpenError::new("io_uring", "`Operation not permitted`", "it allowed"))
    }

    #[test]
    fn threads_are_taken_and_the_reason_said_where_io_uring_is_refused() {
        let chosen = SystemIo::choose(EngineChoice::Auto, refused).unwrap();
        let notice = "io_uring: found `Operation not permitted`, expected it allowed: threads are \
                      used";
        assert_eq!((chosen.name(), chosen.notice().as_deref()), ("threads", Some(notice)));
        assert!(SystemIo::choose(EngineChoice::Uring, refused).is_err(), "it is demanded");
        let demanded = SystemIo::choose(EngineChoice::Threads, refused).unwrap();
        assert_eq!((demanded.name(), demanded.notice()), ("threads", None));
    }

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

    #[test]
    fn timers_end_by_time_then_by_age() {
        let mut timers = Timers::default();
        for (token, at_ns) in [(0, 30), (1, 10), (2, 30), (3, 20), (4, 31)] {
            timers.add(at_ns, Token(token));
        }
        let mut done = Vec::new();
        timers.end_until(9, &mut done);
        assert!(done.is_empty());
        timers.end_until(30, &mut done);
        let tokens: Vec<u64> = done.iter().map(|done| done.token.0).collect();
        assert_eq!((tokens, timers.next_ns()), (vec![1, 3, 0, 2], Some(31)));
    }

    #[test]
    fn spans_are_split_into_seconds_and_the_rest() {
        let span = timespec(3_000_000_007);
        assert_eq!((span.tv_sec, span.tv_nsec), (3, 7));
        assert!(now_ns() <= now_ns());
    }
}
