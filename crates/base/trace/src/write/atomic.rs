//! A file that appears only when it is complete.
//!
//! The bytes go to a hidden file in the same directory, which is synced and renamed at the end and
//! removed when that never comes.
//!
//! A writer holds a lock on its hidden file. A killed process loses its locks: so the next writer
//! of the same target recognises the hidden file that was left behind, and removes it.

use crate::TraceError;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;
/// Names tried before giving up, should other writers of the same target be at work.
const NAMES_TRIED: u32 = 100;
/// How the name of a hidden file ends; it begins with a dot and the target's name.
const SUFFIX: &str = ".tmp";

/// See the head of this file.
pub(crate) struct AtomicFile {
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`. Errors: the operating system's.
    pub(crate) fn create(target: &Path) -> Result<AtomicFile, TraceError> {
        let fail = |source| TraceError::Io { path: target.to_owned(), source };
        let refuse = |found: &str| TraceError::File {
            path: target.to_owned(),
            found: found.to_owned(),
            expected: "a file to write".to_owned(),
        };
        let name = target.file_name().ok_or_else(|| refuse("a folder"))?;
        match fs::metadata(target) {
            Ok(there) if there.is_dir() => return Err(refuse("a folder")),
            Ok(there) if !there.is_file() => return Err(refuse("a device, pipe or socket")),
            _ => {}
        }
        remove_abandoned(target);
        for attempt in 0..NAMES_TRIED {
            let mut hidden = prefix(name);
            hidden.push(format!("{}.{attempt}{SUFFIX}", std::process::id()));
            let temporary = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    if !locked(&file, &temporary) {
                        continue;
                    }
                    let file = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
                    return Ok(AtomicFile { file, temporary, target: target.to_owned() });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(fail(source)),
            }
        }
        Err(fail(io::ErrorKind::AlreadyExists.into()))
    }

    /// Brings what was written to the device, so that it outlives a kill and a loss of power.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        let Some(buffer) = &mut self.file else { return Ok(()) };
        buffer.flush()?;
        buffer.get_ref().sync_data()
    }

    /// Syncs and renames. Errors: the operating system's; then the target is as it was.
    pub(crate) fn commit(mut self) -> Result<(), TraceError> {
        let renamed = match self.file.take() {
            None => Ok(()),
            Some(buffer) => buffer
                .into_inner()
                .map_err(io::IntoInnerError::into_error)
                .and_then(|file| file.sync_all())
                .and_then(|()| fs::rename(&self.temporary, &self.target)),
        };
        renamed.map_err(|source| {
            // The first error is the one to report; a file that stays behind is hidden and small.
            let _ = fs::remove_file(&self.temporary);
            TraceError::Io { path: self.target.clone(), source }
        })
    }
}

fn prefix(name: &OsStr) -> OsString {
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".");
    hidden
}

/// Marks a hidden file as one whose writer lives. False when another writer has taken it for an
/// abandoned one meanwhile. Where files cannot be locked, none is ever taken for abandoned.
fn locked(file: &File, temporary: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => temporary.exists(),
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => true,
    }
}

/// Removes a file, and what killed writers of it left behind; returns whether it was there. Errors:
/// the operating system's.
pub(crate) fn remove(target: &Path) -> Result<bool, TraceError> {
    remove_abandoned(target);
    match fs::remove_file(target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(TraceError::Io { path: target.to_owned(), source }),
    }
}

/// Removes what killed writers of `target` left behind; what cannot be removed stays.
fn remove_abandoned(target: &Path) {
    abandoned(target).iter().for_each(|(path, _)| drop(fs::remove_file(path)));
}

/// Makes a hidden file of one target that of another one in the same folder. Errors: the operating
/// system's.
pub(super) fn retarget(hidden: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let names = (hidden.file_name(), from.file_name(), to.file_name());
    let (Some(hidden_name), Some(from), Some(to)) = names else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let length = prefix(from).len();
    let numbers = hidden_name.as_encoded_bytes().get(length..).unwrap_or_default();
    let mut name = prefix(to);
    name.push(String::from_utf8_lossy(numbers).as_ref());
    fs::rename(hidden, hidden.with_file_name(name))
}

/// The hidden files of `target` whose writers were killed, each with its lock.
pub(super) fn abandoned(target: &Path) -> Vec<(PathBuf, File)> {
    let Some(name) = target.file_name() else { return Vec::new() };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
    let hidden = entries.flatten().filter(|entry| is_hidden_file_of(&entry.file_name(), name));
    let taken = |path: PathBuf| {
        let file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        file.try_lock().is_ok().then_some((path, file))
    };
    hidden.filter_map(|entry| taken(entry.path())).collect()
}

/// Whether `found` is `.NAME.PROCESS.ATTEMPT.tmp`.
fn is_hidden_file_of(found: &OsStr, name: &OsStr) -> bool {
    let rest = found.as_encoded_bytes().strip_prefix(prefix(name).as_encoded_bytes());
    let Some(numbers) = rest.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes())) else {
        return false;
    };
    let mut parts = numbers.split(|byte| *byte == b'.');
    let number = |part: Option<&[u8]>| {
        part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
    };
    number(parts.next()) && number(parts.next()) && parts.next().is_none()
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(buffer) = self.file.take() {
            // The bytes are not wanted: take the file out without flushing, then remove it.
            drop(buffer.into_parts());
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::directory;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_next_writer_removes_what_a_killed_one_left() {
        let directory = directory();
        let target = directory.path().join("t.csv");
        // A killed process: its file is there, its lock is not.
        fs::write(directory.path().join(".t.csv.4000000000.0.tmp"), "half").unwrap();
        for other in [".t.csv.0.tmp", ".t.csv.1.x.tmp", ".u.csv.1.0.tmp", "t.csv.1.0.tmp"] {
            fs::write(directory.path().join(other), "not ours").unwrap();
        }
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        let expected = [".t.csv.0.tmp", ".t.csv.1.x.tmp", ".u.csv.1.0.tmp", "t.csv"];
        assert_eq!(names(directory.path()), [&expected[..], &["t.csv.1.0.tmp"]].concat());
    }

    #[test]
    fn two_writers_of_one_target_leave_each_other_alone() {
        let directory = directory();
        let target = directory.path().join("t.csv");
        let mut first = AtomicFile::create(&target).unwrap();
        first.write_all(b"first").unwrap();
        let mut second = AtomicFile::create(&target).unwrap();
        assert_eq!(names(directory.path()).len(), 2);
        second.write_all(b"second").unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"first");
        second.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"second");
        assert_eq!(names(directory.path()), ["t.csv"]);
    }

    #[test]
    fn a_writer_dropped_before_its_end_leaves_nothing() {
        let directory = directory();
        let target = directory.path().join("t.csv");
        let mut file = AtomicFile::create(&target).unwrap();
        file.write_all(&[7; 3 * BUFFER_BYTES]).unwrap();
        drop(file);
        assert_eq!(names(directory.path()), [""; 0]);
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        for path in ["/dev/null", "/"] {
            let error = AtomicFile::create(Path::new(path)).err().unwrap().to_string();
            assert!(error.contains("expected a file to write"), "{error}");
        }
    }
}
