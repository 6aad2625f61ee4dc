//! What the system knows a file or block device by.
//!
//! For: telling one device from another, and one that was written from what it was, without reading
//! it. Must never know: what it holds. Units: seconds and nanoseconds since 1970. The number of the
//! device that a file lies on is left out: it may be another one after each boot.

use super::OpenFile;
use rustix::fs::{fstatfs, major, minor};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{SystemTime, UNIX_EPOCH};

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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::super::{FileAccess, open_file};
    use super::*;
    use std::path::Path;

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
}
