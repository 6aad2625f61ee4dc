//! Opening of files, block devices and sockets, for all siblings alike.
//!
//! For: the start of a daemon or of an offline tool. Must never know: operations, what the bytes
//! mean. Units: bytes. What is opened here can be handed to another thread, and there to the
//! sibling that uses it.

mod below;
mod facts;
mod file;
mod passed;
mod tcp;
mod unix;

pub use facts::{DeviceFacts, FileFacts, FileTime};
pub use file::{FileAccess, OpenFile, open_file};
pub use passed::passed_listener;
pub use tcp::tcp_listener;
pub use unix::unix_listener;

use std::fmt;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often something is tried again that another process holds, and the pauses between.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// Clients that may wait to be accepted, at one listener.
const BACKLOG: i32 = 1024;

/// The outcome of an attempt. A process that was just killed, or that forks at this moment, may
/// hold what is wanted a little longer: it is tried for half a second.
fn tried_again<T>(mut attempt: impl FnMut() -> T, is_held: impl Fn(&T) -> bool) -> T {
    for _ in 0..TRIES {
        let outcome = attempt();
        if !is_held(&outcome) {
            return outcome;
        }
        std::thread::sleep(PAUSE);
    }
    attempt()
}

/// Why something could not be opened: one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: found {found}, expected {expected}")]
pub struct OpenError {
    /// The path, the address, or the service of the system.
    pub what: String,
    /// What was found.
    pub found: String,
    /// What was expected instead.
    pub expected: String,
}

impl OpenError {
    pub(crate) fn new(
        what: impl fmt::Display,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> OpenError {
        let (what, found) = (what.to_string(), found.to_string());
        OpenError { what, found, expected: expected.to_string() }
    }

    /// An error about a path.
    fn at_path(path: &Path, found: impl fmt::Display, expected: impl fmt::Display) -> OpenError {
        OpenError::new(path.display(), found, expected)
    }
}

/// The file of a socket, which goes when the listener does.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = |found: fs::Metadata| (found.dev(), found.ino()) == (self.device, self.inode);
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // The file is a convenience: one that stays is removed by the next listener.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// A socket that clients connect to.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    is_tcp: bool,
    address: String,
    _file: Option<SocketFile>,
}

impl Listener {
    /// Where clients connect: a path, or an address with a port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether its connections are of TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        self.is_tcp
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
