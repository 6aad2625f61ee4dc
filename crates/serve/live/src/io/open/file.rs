//! Files and block devices, opened without the page cache where the file system takes it.
//!
//! For: devices of the cache, and what lies behind it. Must never know: their format. Units: bytes.
//! A file may end within a page, which direct writes cannot write without making the file longer:
//! it is open through the page cache as well, for what lies behind the last whole page of a range.
//! A file that is open is locked (`flock`), and a block device is claimed (`O_EXCL`), so that two
//! processes, or two entries of one stack, never write to the same one. So are the files that a
//! loop device keeps its content in, also below partitions and mapped devices.

use super::below::{FileBelow, files_below, is_deleted};
use super::{OpenError, tried_again};
use crate::io::{ALIGNMENT, Buffer};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
fn lock_below(own: &FileBelow, access: FileAccess) -> Result<File, Errno> {
    if is_deleted(&own.path) {
        return Err(Errno::NOENT);
    }
    let failed = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let file = File::open(&own.path).map_err(failed)?;
    locked(&file, own.is_whole && access == FileAccess::Write)?;
    Ok(file)
}

fn in_use_below(path: &Path, own: &FileBelow) -> OpenError {
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
