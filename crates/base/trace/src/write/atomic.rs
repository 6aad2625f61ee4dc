//! A file that appears only when it is complete.
//!
//! For: every writer of this room. Must never know: formats. The bytes go to a hidden file in the
//! same directory, which is synced and renamed at the end and removed when that never comes.

use crate::TraceError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;
/// Names tried before giving up, should files of crashed writers lie about.
const NAMES_TRIED: u32 = 100;

/// See the head of this file.
pub(super) struct AtomicFile {
    file: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts a file that will be called `target`. Errors: the operating system's.
    pub(super) fn create(target: &Path) -> Result<AtomicFile, TraceError> {
        let fail = |source| TraceError::Io { path: target.to_owned(), source };
        let name = target.file_name().filter(|_| !target.is_dir());
        let name = name.ok_or_else(|| TraceError::File {
            path: target.to_owned(),
            found: "a folder".to_owned(),
            expected: "a file to write".to_owned(),
        })?;
        for attempt in 0..NAMES_TRIED {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}.{attempt}.tmp", std::process::id()));
            let temporary = target.with_file_name(hidden);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    let file = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
                    return Ok(AtomicFile { file, temporary, target: target.to_owned() });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(fail(source)),
            }
        }
        Err(fail(io::ErrorKind::AlreadyExists.into()))
    }

    /// The name it will have.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// The operating system's refusal as an error of this room.
    pub(super) fn fail(&self, source: io::Error) -> TraceError {
        TraceError::Io { path: self.target.clone(), source }
    }

    /// Appends bytes. Errors: the operating system's.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        self.write_all(bytes).map_err(|source| self.fail(source))
    }

    /// Syncs and renames. Errors: the operating system's; then the target is as it was.
    pub(super) fn commit(mut self) -> Result<(), TraceError> {
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
            self.fail(source)
        })
    }
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
