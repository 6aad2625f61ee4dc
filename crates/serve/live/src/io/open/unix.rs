//! Sockets in the file system that clients connect to.
//!
//! For: exports to processes of this machine. Must never know: the protocol. The socket's file is
//! of its user only (mode 0600) before a client can connect. A file that stayed behind from a
//! process that ended is removed; the folder is locked meanwhile, so that two processes never
//! remove each other's.

use super::{BACKLOG, Listener, OpenError, SocketFile, tried_again};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::net::{bind, connect, listen, socket_with};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// What a process may do that is not the socket's user: nothing.
const MODE: u32 = 0o600;

/// Listens at `path`.
///
/// Errors: something else is there, another process listens there, or the folder cannot be written.
pub fn unix_listener(path: &Path) -> Result<Listener, OpenError> {
    let expected = "a path in a folder that can be written, of at most 107 bytes";
    let io_error = |error: io::Error| OpenError::at_path(path, error, expected);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _locked = lock_folder(folder.unwrap_or(Path::new("."))).map_err(|error| match error {
        LockError::Held => held(path),
        LockError::Failed(error) => io_error(error),
    })?;
    remove_stale(path)?;
    let (socket, file) = bind_new(path).map_err(io_error)?;
    Ok(Listener { socket, is_tcp: false, address: path.display().to_string(), _file: Some(file) })
}

/// Why a folder is not locked.
enum LockError {
    /// Another process holds the lock.
    Held,
    /// It cannot be opened, or its file system has no locks.
    Failed(io::Error),
}

/// Locks a folder until the value goes. A process that may only read the folder can hold its lock
/// for as long as it likes, so that nothing waits for it beyond a short time.
fn lock_folder(folder: &Path) -> Result<File, LockError> {
    let folder = File::open(folder).map_err(LockError::Failed)?;
    let attempt = || flock(&folder, FlockOperation::NonBlockingLockExclusive);
    match tried_again(attempt, |outcome| *outcome == Err(Errno::WOULDBLOCK)) {
        Ok(()) => Ok(folder),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held),
        Err(error) => Err(LockError::Failed(error.into())),
    }
}

fn held(path: &Path) -> OpenError {
    let found = "its folder locked by another process";
    let expected = "a folder that only processes of this user can open, so that none keeps it \
                    locked";
    OpenError::at_path(path, found, expected)
}

/// Removes the file of a socket that nothing listens at.
fn remove_stale(path: &Path) -> Result<(), OpenError> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        let expected = "no file, or a socket that nothing listens at";
        return Err(OpenError::at_path(path, "a file that is no socket", expected));
    }
    let in_use = || {
        let found = "it in use by a process that listens there";
        OpenError::at_path(path, found, "a path that nothing listens at")
    };
    let stale = "a stale socket that can be removed";
    let is_held = |outcome: &Result<(), Errno>| matches!(outcome, Ok(()) | Err(Errno::AGAIN));
    match tried_again(|| try_connect(path), is_held) {
        Err(Errno::CONNREFUSED) => {
            fs::remove_file(path).map_err(|error| OpenError::at_path(path, error, stale))
        }
        Err(Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN) => Err(in_use()),
        Err(error) => Err(OpenError::at_path(path, io::Error::from(error), stale)),
    }
}

/// Connects without waiting: `EAGAIN` is a process that has many clients to accept.
fn try_connect(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Binds, restricts, then listens: a client that comes earlier is refused.
fn bind_new(path: &Path) -> io::Result<(OwnedFd, SocketFile)> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let found = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), device: found.dev(), inode: found.ino() };
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    listen(&socket, BACKLOG)?;
    Ok((socket, file))
}
