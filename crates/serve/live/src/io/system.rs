//! The choice between the production siblings.
//!
//! For: the start of a daemon. Must never know: what operations are for. Units: bytes, nanoseconds.

use super::open::{DeviceFacts, Listener, OpenError, OpenFile};
use super::threads::Threads;
use super::uring::Uring;
use super::{Done, FileId, Io, IoOp, ListenerId, Token};

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
}
