//! Opening of files, block devices and sockets, for all siblings alike.
//!
//! Files and block devices are opened without the page cache where the file system takes it. A file
//! may end within a page, which direct writes cannot write without making the file longer: it is
//! open through the page cache as well, for what lies behind the last whole page of a range.
//!
//! A file that is open is locked (`flock`), and a block device is claimed (`O_EXCL`), so that two
//! processes, or two entries of one stack, never write to the same one. So are the files that a
//! loop device keeps its content in, also below partitions and mapped devices: a lock of a loop
//! device is none of its file (source: the kernel's `/sys/dev/block`: `loop/backing_file`,
//! `slaves`).
//!
//! A TCP port alone means the loopback address: what is served to other machines is asked for by
//! naming an address. A Unix socket's file is of its user only (mode 0600) before a client can
//! connect. A file that a process left behind is removed; the folder is locked meanwhile, so that
//! two processes never remove each other's. Sockets that a service manager has opened are taken
//! over by number.

use super::{ALIGNMENT, Buffer};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstatfs, major, minor};
use rustix::io::Errno;
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen,
    socket_with,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, FileType, OpenOptions, Permissions};
use std::io::{Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

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

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAccess {
    /// Only reads: other readers may have it open, too.
    Read,
    /// Reads and writes: nothing else may have it open.
    Write,
}

/// A file or block device that is open.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    /// The same file through the page cache, if `file` goes past it. A block device needs none: its
    /// length is a multiple of what direct input and output take.
    cached: Option<File>,
    bytes: AtomicU64,
    notices: Vec<String>,
    /// Whether zeroes are faster than writes, once that was looked for.
    zeroes_fast: OnceLock<bool>,
    /// Files that it keeps its content in, locked as well.
    _below: Vec<File>,
}

impl OpenFile {
    /// Bytes when it was opened, or measured since.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Looks how large it is now. Errors: the system's.
    pub fn measure(&self) -> io::Result<u64> {
        let bytes = (&self.file).seek(SeekFrom::End(0))?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Whether a path leads to this file, or to this block device. Errors: the system's; nothing
    /// may be there.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (own, found) = (self.file.metadata()?, std::fs::metadata(path)?);
        Ok(match own.file_type().is_block_device() {
            true => found.file_type().is_block_device() && own.rdev() == found.rdev(),
            false => (own.dev(), own.ino()) == (found.dev(), found.ino()),
        })
    }

    /// Sentences for operators: reads and writes go through the page cache; a file below it could
    /// not be locked.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Whether zeroes of a range are faster than writing them: the file system makes holes, or the
    /// device zeroes by itself. False where that cannot be known.
    pub fn zeroes_fast(&self) -> bool {
        *self.zeroes_fast.get_or_init(|| self.finds_zeroes_fast().unwrap_or_default())
    }

    fn finds_zeroes_fast(&self) -> io::Result<bool> {
        let found = self.file.metadata()?;
        if found.file_type().is_block_device() {
            let (major, minor) = (rustix::fs::major(found.rdev()), rustix::fs::minor(found.rdev()));
            let device = format!("/sys/dev/block/{major}:{minor}");
            // A partition has the queue of its disk.
            let queues = ["queue", "../queue"].map(|queue| {
                std::fs::read_to_string(format!("{device}/{queue}/write_zeroes_max_bytes"))
            });
            let [own, of_disk] = queues;
            return Ok(own.or(of_disk)?.trim() != "0");
        }
        // A hole behind the end changes nothing, and is refused where there can be none.
        let behind = self.bytes().next_multiple_of(ALIGNMENT as u64);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(fallocate(&self.file, hole, behind, ALIGNMENT as u64).is_ok())
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Takes what lies behind the last whole page of a range.
    pub(crate) fn tail(&self) -> &File {
        self.cached.as_ref().unwrap_or(&self.file)
    }

    /// Bytes of the hole that takes a range of `length` bytes from `offset` on: with the last byte
    /// of the file goes all of its last page, which has space as a whole.
    pub(crate) fn hole_bytes(&self, offset: u64, length: u64) -> u64 {
        match offset.checked_add(length) {
            Some(end) if end == self.bytes() && length > 0 => {
                end.next_multiple_of(ALIGNMENT as u64) - offset
            }
            _ => length,
        }
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a file or block device that is there.
///
/// Errors: it is not there, is something else, may not be opened, or is in use.
pub fn open_file(path: &Path, access: FileAccess) -> Result<OpenFile, OpenError> {
    let io_error = |error: io::Error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::BUSY) => in_use(path),
        _ => OpenError::at_path(path, error, expected(access)),
    };
    let kind = std::fs::metadata(path).map_err(io_error)?.file_type();
    check_kind(path, kind, access)?;
    let is_device = kind.is_block_device();
    let (mut file, refused) = open_direct(path, access, is_device).map_err(io_error)?;
    let opened = file.metadata().map_err(io_error)?;
    check_kind(path, opened.file_type(), access)?;
    locked(&file, access == FileAccess::Write).map_err(|error| match error {
        Errno::WOULDBLOCK => in_use(path),
        error => OpenError::at_path(path, io::Error::from(error), "a file that can be locked"),
    })?;
    let bytes = file.seek(SeekFrom::End(0)).map_err(io_error)?;
    let mut notices = Vec::new();
    if refused {
        notices.push(format!(
            "{}: the file system refuses direct input and output, so that reads and writes go \
             through the page cache",
            path.display()
        ));
    }
    let mut below = Vec::new();
    for own in if is_device { files_below(opened.rdev()) } else { Vec::new() } {
        match lock_below(&own, access) {
            Ok(file) => below.push(file),
            Err(Errno::WOULDBLOCK) => return Err(in_use_below(path, &own)),
            Err(error) => notices.push(format!(
                "{}: its content lies in `{}`, which cannot be locked ({error}): a server of that \
                 file would not be noticed",
                path.display(),
                own.path.display()
            )),
        }
    }
    let through_cache = !is_device && !refused;
    let cached = through_cache.then(|| open_cached(path, access, &file)).transpose();
    let cached = cached.map_err(io_error)?;
    let (bytes, zeroes_fast) = (AtomicU64::new(bytes), OnceLock::new());
    Ok(OpenFile { file, cached, bytes, notices, zeroes_fast, _below: below })
}

/// Opens a file once more, through the page cache. Errors: the system's; the path leads to another
/// file now.
fn open_cached(path: &Path, access: FileAccess, file: &File) -> io::Result<File> {
    let again = OpenOptions::new().read(true).write(access == FileAccess::Write).open(path)?;
    let place = |file: &File| file.metadata().map(|found| (found.dev(), found.ino()));
    match place(&again)? == place(file)? {
        true => Ok(again),
        false => Err(io::Error::other("another file than a moment ago")),
    }
}

/// Locks a file that a block device keeps content in. Others may keep theirs in other parts of it,
/// but none may have the whole.
fn lock_below(own: &UnderlyingFile, access: FileAccess) -> Result<File, Errno> {
    if is_deleted(&own.path) {
        return Err(Errno::NOENT);
    }
    let failed = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let file = File::open(&own.path).map_err(failed)?;
    locked(&file, own.is_whole && access == FileAccess::Write)?;
    Ok(file)
}

fn in_use_below(path: &Path, own: &UnderlyingFile) -> OpenError {
    let found = format!("its file `{}` in use (locked)", own.path.display());
    OpenError::at_path(path, found, "it free")
}

/// Locks a file, alone or beside others that only read.
fn locked(file: &File, alone: bool) -> Result<(), Errno> {
    let lock = match alone {
        true => FlockOperation::NonBlockingLockExclusive,
        false => FlockOperation::NonBlockingLockShared,
    };
    tried_again(|| flock(file, lock), |outcome| *outcome == Err(Errno::WOULDBLOCK))
}

fn expected(access: FileAccess) -> &'static str {
    match access {
        FileAccess::Read => "a file or block device that can be read",
        FileAccess::Write => "a file or block device that can be read and written",
    }
}

fn in_use(path: &Path) -> OpenError {
    OpenError::at_path(path, "it in use (locked, claimed or mounted)", "it free")
}

fn check_kind(path: &Path, kind: FileType, access: FileAccess) -> Result<(), OpenError> {
    if kind.is_file() || kind.is_block_device() {
        return Ok(());
    }
    let found = if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a pipe"
    };
    Err(OpenError::at_path(path, found, expected(access)))
}

/// Opens with `O_DIRECT`, else without; the second value says that it is without. Some file systems
/// refuse direct reads only when they are tried, so the first page is read.
fn open_direct(path: &Path, access: FileAccess, is_device: bool) -> io::Result<(File, bool)> {
    let exclusive = if is_device { libc::O_EXCL } else { 0 };
    let mut options = OpenOptions::new();
    options.read(true).write(access == FileAccess::Write);
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
    match options.custom_flags(libc::O_DIRECT | exclusive).open(path) {
        Ok(file) => match file.read_at(&mut Buffer::zeroed(ALIGNMENT), 0) {
            Err(error) if refused(&error) => drop(file),
            // Any other failure of this read is the business of the first read that needs it.
            _ => return Ok((file, false)),
        },
        Err(error) if refused(&error) => {}
        Err(error) => return Err(error),
    }
    options.custom_flags(exclusive).open(path).map(|file| (file, true))
}

/// The magic number of file systems in user space (source: `FUSE_SUPER_MAGIC` of Linux). Numbers
/// and times of their files may be made anew at each mount.
const FUSE: u64 = 0x6573_5546;

/// A time of a file, as the file system keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTime {
    /// Seconds since 1970.
    pub s: i64,
    /// Nanoseconds of the second.
    pub ns: u32,
}

/// What a regular file is known by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Its number in the file system; none where numbers do not outlast a mount.
    pub inode: Option<u64>,
    /// When it was made, where the file system keeps that.
    pub born: Option<FileTime>,
    /// When its content last changed; none where times do not outlast a mount.
    pub modified: Option<FileTime>,
    /// When its content or its attributes last changed; none where times do not outlast a mount.
    pub changed: Option<FileTime>,
}

/// What an open file or block device is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceFacts {
    /// A regular file.
    File(FileFacts),
    /// A block device, by the numbers under which `/sys/dev/block` lists it.
    Block {
        /// Its major number.
        major: u32,
        /// Its minor number.
        minor: u32,
    },
}

impl OpenFile {
    /// What it is known by now. Times are made durable before: a sync of content alone leaves them
    /// to be written later, and a loss of power would bring older ones back. Errors: the system's.
    pub fn facts(&self) -> io::Result<DeviceFacts> {
        let file = self.file();
        if file.metadata()?.file_type().is_block_device() {
            let number = file.metadata()?.rdev();
            return Ok(DeviceFacts::Block { major: major(number), minor: minor(number) });
        }
        file.sync_all()?;
        let found = file.metadata()?;
        if fstatfs(file)?.f_type as u64 == FUSE {
            return Ok(DeviceFacts::File(FileFacts::default()));
        }
        let time = |s: i64, ns: i64| Some(FileTime { s, ns: ns as u32 });
        Ok(DeviceFacts::File(FileFacts {
            inode: Some(found.ino()),
            born: found.created().ok().and_then(system_time),
            modified: time(found.mtime(), found.mtime_nsec()),
            changed: time(found.ctime(), found.ctime_nsec()),
        }))
    }
}

/// A time of the system; none before 1970.
fn system_time(time: SystemTime) -> Option<FileTime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(FileTime { s: i64::try_from(since.as_secs()).ok()?, ns: since.subsec_nanos() })
}

/// Devices below each other at most: what lies deeper is not looked for.
const MAX_DEPTH: u32 = 16;

/// A file that a block device keeps content in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnderlyingFile {
    /// Its path, as the kernel tells it.
    pub path: PathBuf,
    /// Whether the device is all of it: others may keep theirs in another part of it.
    pub is_whole: bool,
}

/// The files below a block device of this number.
fn files_below(device: u64) -> Vec<UnderlyingFile> {
    let mut found = BTreeSet::new();
    let link = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    if let Ok(folder) = fs::canonicalize(link) {
        collect(&folder, true, MAX_DEPTH, &mut found);
    }
    found.into_iter().collect()
}

/// Adds the files below the device of a folder of the kernel's.
fn collect(folder: &Path, is_whole: bool, depth: u32, found: &mut BTreeSet<UnderlyingFile>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let text = |name: &str| fs::read(folder.join(name)).ok();
    if let Some(path) = text("loop/backing_file") {
        let path = path.strip_suffix(b"\n").unwrap_or(&path).to_vec();
        // A part of a file has a first byte that is not the file's, or an end that is set.
        let is_zero = |name: &str| text(name).is_none_or(|text| text.trim_ascii() == b"0");
        let is_whole = is_whole && is_zero("loop/offset") && is_zero("loop/sizelimit");
        let path = PathBuf::from(std::ffi::OsString::from_vec(path));
        found.insert(UnderlyingFile { path, is_whole });
    }
    if text("partition").is_some()
        && let Some(disk) = folder.parent()
    {
        collect(disk, false, depth, found);
    }
    let below = fs::read_dir(folder.join("slaves"));
    for slave in below.into_iter().flatten().flatten() {
        if let Ok(slave) = fs::canonicalize(slave.path()) {
            collect(&slave, false, depth, found);
        }
    }
}

/// Whether the kernel tells a path that is not there any more.
fn is_deleted(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(OsStr::new(" (deleted)").as_bytes())
}

/// Listens at `address`: `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`. Port 0 takes a free one.
///
/// Errors: it is no such address, or it is in use or not of this machine.
pub fn tcp_listener(address: &str) -> Result<Listener, OpenError> {
    let expected = "`PORT`, or `ADDRESS:PORT` with an IP address";
    let parsed = match address.parse::<u16>() {
        Ok(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        Err(_) => address.parse::<SocketAddr>().map_err(|error| {
            OpenError::new("TCP address", format!("`{address}` ({error})"), expected)
        })?,
    };
    let free = "a free address of this machine";
    let is_held = |outcome: &io::Result<TcpListener>| {
        outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    };
    let listener = tried_again(|| TcpListener::bind(parsed), is_held)
        .map_err(|error| OpenError::new(parsed, error, free))?;
    let bound = listener.local_addr().map_err(|error| OpenError::new(parsed, error, free))?;
    Ok(Listener { socket: listener.into(), is_tcp: true, address: bound.to_string(), _file: None })
}

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

/// The socket with this number in the process. It is taken as a copy, so that the number itself
/// stays open until the process ends.
///
/// Errors: there is no such descriptor, or it is no stream socket that listens.
pub fn passed_listener(number: i32) -> Result<Listener, OpenError> {
    let what = || format!("descriptor {number}");
    let expected = "a stream socket that listens, passed by a service manager";
    let failed = |error: rustix::io::Errno| OpenError::new(what(), error, expected);
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(failed)?;
    let socket = pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).map_err(failed)?;
    let is_stream = socket_type(&socket).map_err(failed)? == SocketType::STREAM;
    if !is_stream || !socket_acceptconn(&socket).map_err(failed)? {
        return Err(OpenError::new(what(), "a socket that does not", expected));
    }
    let is_tcp = match socket_domain(&socket).map_err(failed)? {
        AddressFamily::UNIX => false,
        AddressFamily::INET | AddressFamily::INET6 => true,
        other => return Err(OpenError::new(what(), format!("{other:?}"), expected)),
    };
    let address = address_of(&socket).map_err(failed)?;
    Ok(Listener { socket, is_tcp, address, _file: None })
}

/// Where clients connect: a path, or an address with a port.
fn address_of(socket: &OwnedFd) -> rustix::io::Result<String> {
    let found = getsockname(socket)?;
    if let Ok(unix) = rustix::net::SocketAddrUnix::try_from(found.clone()) {
        let path = unix.path().map(|path| path.to_string_lossy().into_owned());
        return Ok(path.unwrap_or_else(|| "a socket without a path".to_owned()));
    }
    Ok(std::net::SocketAddr::try_from(found)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    fn facts(path: &Path) -> FileFacts {
        match open_file(path, FileAccess::Write).unwrap().facts().unwrap() {
            DeviceFacts::File(facts) => facts,
            DeviceFacts::Block { .. } => panic!("it is a file"),
        }
    }

    #[test]
    fn a_file_is_known_by_its_number_and_one_that_was_written_by_its_times() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        paths.iter().for_each(|path| std::fs::write(path, [1; 8192]).unwrap());
        let [first, second] = [&paths[0], &paths[1]].map(|path| facts(path));
        assert!(first.inode.is_some() && first.inode != second.inode);
        assert_eq!(facts(&paths[0]), first, "to open it and to look at it change nothing");
        let later = SystemTime::now() + std::time::Duration::from_secs(9);
        let file = std::fs::File::options().write(true).open(&paths[0]).unwrap();
        file.set_modified(later).unwrap();
        let touched = facts(&paths[0]);
        assert!(touched.modified != first.modified && touched.inode == first.inode);
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn of(folder: &Path) -> Vec<(String, bool)> {
        let mut found = BTreeSet::new();
        collect(folder, true, MAX_DEPTH, &mut found);
        found.into_iter().map(|one| (one.path.display().to_string(), one.is_whole)).collect()
    }

    #[test]
    fn the_files_of_loop_devices_are_found_through_partitions_and_mapped_devices() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("loop0");
        write(&disk.join("loop/backing_file"), "/var/cache.img\n");
        write(&disk.join("loop/offset"), "0\n");
        write(&disk.join("loop/sizelimit"), "0\n");
        assert_eq!(of(&disk), [("/var/cache.img".to_owned(), true)]);
        let part = disk.join("loop0p1");
        write(&part.join("partition"), "1\n");
        assert_eq!(of(&part), [("/var/cache.img".to_owned(), false)]);
        let other = root.path().join("loop1");
        write(&other.join("loop/backing_file"), "/var/a b.img\n");
        write(&other.join("loop/offset"), "4096\n");
        assert_eq!(of(&other), [("/var/a b.img".to_owned(), false)]);
        let mapped = root.path().join("dm-0");
        fs::create_dir_all(mapped.join("slaves")).unwrap();
        symlink(&part, mapped.join("slaves/loop0p1")).unwrap();
        symlink(&other, mapped.join("slaves/loop1")).unwrap();
        let both = [("/var/a b.img".to_owned(), false), ("/var/cache.img".to_owned(), false)];
        assert_eq!(of(&mapped), both);
    }

    #[test]
    fn devices_that_lie_on_each_other_in_a_circle_end() {
        let root = tempfile::tempdir().unwrap();
        let mapped = root.path().join("dm-0");
        fs::create_dir_all(mapped.join("slaves")).unwrap();
        symlink(&mapped, mapped.join("slaves/dm-0")).unwrap();
        assert_eq!(of(&mapped), []);
        assert_eq!(files_below(0), []);
    }

    #[test]
    fn sockets_that_listen_are_taken_with_their_address() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = passed_listener(tcp.as_raw_fd()).unwrap();
        assert!(taken.is_tcp());
        assert_eq!(taken.address(), tcp.local_addr().unwrap().to_string());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let unix = UnixListener::bind(&path).unwrap();
        let taken = passed_listener(unix.as_raw_fd()).unwrap();
        assert!(!taken.is_tcp());
        assert_eq!(taken.address(), path.display().to_string());
        drop((unix, taken));
        assert!(path.exists(), "the file is the manager's");
    }

    #[test]
    fn other_descriptors_are_refused() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let file = tempfile::tempfile().unwrap();
        for number in [client.as_raw_fd(), file.as_raw_fd(), 1 << 20] {
            let error = passed_listener(number).unwrap_err();
            assert_eq!(error.what, format!("descriptor {number}"));
        }
    }
}
