//! Paths whose content comes only once: `-` (standard input) and pipes.
//!
//! For: reading them as files are read, again and again. Must never know: formats, compression. A
//! trace is opened several times: recognised, read, read again by another case. The content of a
//! pipe is therefore kept for the whole process. Invariant: a pipe that nothing writes to is
//! refused, never waited for.

use super::spool::Spool;
use crate::TraceError;
use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The path that stands for standard input.
const STDIN: &str = "-";
/// Longest content of a pipe, in bytes.
const PIPE_LIMIT_BYTES: u64 = 64 << 30;

/// What tells one pipe from another that had its path before: device and inode.
type Identity = (u64, u64);

static KEPT: Mutex<Vec<(PathBuf, Identity, Arc<Spool>)>> = Mutex::new(Vec::new());

/// The kept content of `path`; nothing where the path is that of a file (or of nothing).
///
/// Errors: a terminal, a device, a pipe that nothing writes to; the operating system's.
pub(super) fn kept(path: &Path) -> Result<Option<Arc<Spool>>, TraceError> {
    if path == Path::new(STDIN) {
        return standard_input().map(Some);
    }
    match std::fs::metadata(path) {
        Ok(metadata) if is_pipe(&metadata) => pipe(path, identity(&metadata)).map(Some),
        Ok(metadata) if is_character_device(&metadata) => {
            Err(refused(path, "a device or terminal", "a trace file, or `-` with a pipe"))
        }
        _ => Ok(None),
    }
}

fn standard_input() -> Result<Arc<Spool>, TraceError> {
    let path = Path::new(STDIN);
    let input = duplicate().map_err(|error| failed(path, error))?;
    if input.is_terminal() {
        let expected = "a trace piped into standard input, as in `zcat t.gz | cachewright ... -`";
        return Err(refused(path, "a terminal", expected));
    }
    let metadata = input.metadata().map_err(|error| failed(path, error))?;
    if metadata.is_dir() {
        return Err(refused(path, "a folder", "a trace"));
    }
    let identity = identity(&metadata);
    remembered(path, identity).map_or_else(|| remember(path, identity, Box::new(input)), Ok)
}

fn pipe(path: &Path, identity: Identity) -> Result<Arc<Spool>, TraceError> {
    let known = remembered(path, identity);
    // A pipe with a name may be written to again when the first content has ended.
    if let Some(spool) = known.as_ref().filter(|spool| !spool.is_complete()) {
        return Ok(spool.clone());
    }
    match (written(path).map_err(|error| failed(path, error))?, known) {
        (Some(rest), _) => remember(path, identity, rest),
        (None, Some(spool)) => Ok(spool),
        (None, None) => {
            let expected = "a trace (start the program that writes to the pipe first)";
            Err(refused(path, "a pipe that nothing writes to", expected))
        }
    }
}

fn remembered(path: &Path, identity: Identity) -> Option<Arc<Spool>> {
    let kept = KEPT.lock().ok()?;
    let same = |entry: &&(PathBuf, Identity, Arc<Spool>)| entry.0 == path && entry.1 == identity;
    kept.iter().find(same).map(|(_, _, spool)| spool.clone())
}

fn remember(
    path: &Path,
    identity: Identity,
    rest: Box<dyn Read + Send>,
) -> Result<Arc<Spool>, TraceError> {
    let spool = Spool::new(rest, PIPE_LIMIT_BYTES).map_err(|error| failed(path, error))?;
    if let Ok(mut kept) = KEPT.lock() {
        kept.retain(|(other, _, _)| other != path);
        kept.push((path.to_owned(), identity, spool.clone()));
    }
    Ok(spool)
}

fn refused(path: &Path, found: &str, expected: &str) -> TraceError {
    TraceError::File { path: path.to_owned(), found: found.into(), expected: expected.into() }
}

fn failed(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}

#[cfg(unix)]
fn is_pipe(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type())
}

#[cfg(unix)]
fn is_character_device(metadata: &std::fs::Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&metadata.file_type())
}

#[cfg(unix)]
fn identity(metadata: &std::fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Standard input without the buffer of the standard library, which may hold bytes already.
#[cfg(unix)]
fn duplicate() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// What comes out of the pipe at `path`; nothing when it holds no byte and nothing writes to it.
///
/// It is opened without waiting: a read then gives bytes, or the end when there is no writer, or
/// "would block" when there is one. After that it is read as usual, waiting for bytes.
#[cfg(unix)]
fn written(path: &Path) -> io::Result<Option<Box<dyn Read + Send>>> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::os::unix::fs::OpenOptionsExt;
    let no_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(no_waiting).open(path)?;
    let mut first = vec![0; 4096];
    let count = match file.read(&mut first) {
        Ok(0) => return Ok(None),
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    first.truncate(count);
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Some(Box::new(Cursor::new(first).chain(file))))
}

#[cfg(not(unix))]
fn is_pipe(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_character_device(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn identity(_: &std::fs::Metadata) -> Identity {
    (0, 0)
}

#[cfg(not(unix))]
fn duplicate() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn written(_: &Path) -> io::Result<Option<Box<dyn Read + Send>>> {
    Ok(None)
}
