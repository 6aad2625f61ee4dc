//! The ring itself: set up with what the kernel takes, filled, and emptied.
//!
//! For: [`Uring`](super::Uring). Must never know: what an operation is for. Units: nanoseconds.
//! Source: io_uring_setup(2) and io_uring_enter(2).

use crate::io::IoError;
use crate::io::open::OpenError;
use io_uring::squeue::Entry;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, opcode};
use std::io;

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
pub struct Ring {
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
    pub fn of_mode(mode: Mode) -> Result<Ring, OpenError> {
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
    pub fn collect(&mut self, results: &mut Vec<(usize, i32)>) {
        let completions = self.ring.completion().filter(|entry| entry.user_data() != CANCELS);
        results.extend(completions.map(|entry| (entry.user_data() as usize, entry.result())));
    }

    /// Why the ring cannot be used any more.
    #[inline]
    pub fn broken(&self) -> Option<IoError> {
        self.broken
    }

    /// From now on it cannot be used.
    pub fn set_broken(&mut self, error: IoError) {
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
            builder.setup_single_issuer().setup_defer_taskrun().setup_submit_all();
        }
        Mode::Cooperative => {
            builder.setup_coop_taskrun().setup_submit_all();
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
