//! What another process shares: memory in files, and signals. Neither waits.
//!
//! That process is trusted in two things: not to make its files shorter, since a read of memory
//! beyond the end of its file is killed, and not to fill a signal up while it is raised.

use super::IoError;
use super::system::timespec;
use super::threads::is_readable;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use vm_memory::FileOffset;
use vm_memory::mmap::MmapRegion;

/// Maps a part of a file. Errors: it is empty, or not all there.
pub fn map_file(file: OwnedFd, offset: u64, bytes: u64) -> Result<MmapRegion, IoError> {
    let file = File::from(file);
    let metadata = file.metadata().map_err(|_| IoError::INVALID)?;
    let end = offset.checked_add(bytes).ok_or(IoError::INVALID)?;
    let length = usize::try_from(bytes).map_err(|_| IoError::INVALID)?;
    if !metadata.is_file() || bytes == 0 || end > metadata.len() {
        return Err(IoError::INVALID);
    }
    MmapRegion::from_file(FileOffset::new(file, offset), length).map_err(|_| IoError::INVALID)
}

/// New memory in a file that cannot be made shorter. Errors: the system's.
pub fn new_memory(name: &str, bytes: u64) -> Result<OwnedFd, IoError> {
    let system = |error: rustix::io::Errno| IoError(error.raw_os_error());
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(name, flags).map_err(system)?;
    ftruncate(&file, bytes).map_err(system)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals).map_err(system)?;
    Ok(file)
}

/// A descriptor that another process gave as a signal. Errors: it is none: a wait for it would
/// never end, or never begin. Whether its reads wait is that process's matter, and stays as it is.
pub fn signal(file: OwnedFd) -> Result<OwnedFd, IoError> {
    let named = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match named {
        Ok(name) if name.as_os_str() != "anon_inode:[eventfd]" => Err(IoError::INVALID),
        _ => Ok(file),
    }
}

/// Raises a signal. One that cannot rise any more is up.
pub fn raise(signal: &OwnedFd) {
    let mut polled = [PollFd::new(signal, PollFlags::OUT)];
    let rises = poll(&mut polled, Some(&timespec(0))).is_ok_and(|ready| ready > 0);
    if rises {
        let _raised = rustix::io::write(signal, &1_u64.to_ne_bytes());
    }
}

/// Takes a signal down, if it is up.
pub fn lower(signal: &OwnedFd) {
    // At the place where it is: a signal has none.
    const HERE: u64 = u64::MAX;
    let mut count = [0; 8];
    let mut slices = [IoSliceMut::new(&mut count)];
    let lowered = preadv2(signal, &mut slices, HERE, ReadWriteFlags::NOWAIT);
    // An older kernel does not know such a read of a signal.
    if lowered == Err(Errno::OPNOTSUPP) && is_readable(signal) {
        let _lowered = rustix::io::read(signal, &mut count);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn signals_rise_and_fall_without_waiting() {
        for flags in [EventfdFlags::CLOEXEC, EventfdFlags::NONBLOCK] {
            let file = signal(eventfd(0, flags).unwrap()).unwrap();
            lower(&file);
            assert!(!is_readable(&file));
            (0..3).for_each(|_| raise(&file));
            assert!(is_readable(&file));
            lower(&file);
            assert!(!is_readable(&file));
            let full = u64::MAX - 1;
            rustix::io::write(&file, &full.to_ne_bytes()).unwrap();
            raise(&file);
            assert!(is_readable(&file));
        }
        assert!(signal(new_memory("none", 8).unwrap()).is_err());
    }
}
