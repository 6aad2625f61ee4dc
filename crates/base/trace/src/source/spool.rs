//! Content that can be read only once, kept in a temporary file so that it can be read again.
//!
//! For: standard input, pipes and decompressed content. Must never know: where the bytes come from,
//! formats. Units: bytes. Invariants: the temporary file has no name, so that nothing stays behind.
//! Bytes are kept on demand, so that a refusal of the first record ends the reading.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard};

const STEP_BYTES: usize = 256 << 10;

/// Bytes of which the first are kept and the rest are still to be read.
pub struct Spool(Mutex<State>);

struct State {
    kept: File,
    kept_bytes: u64,
    limit_bytes: u64,
    /// Nothing once the end was met.
    rest: Option<Box<dyn Read + Send>>,
}

impl Spool {
    /// Keeps what `rest` gives, up to `limit_bytes`. Errors: no temporary file.
    pub(crate) fn new(rest: Box<dyn Read + Send>, limit_bytes: u64) -> io::Result<Arc<Spool>> {
        let kept = tempfile::tempfile().map_err(|error| no_place(&error))?;
        let state = State { kept, kept_bytes: 0, limit_bytes, rest: Some(rest) };
        Ok(Arc::new(Spool(Mutex::new(state))))
    }

    /// Whether all bytes are kept.
    pub(crate) fn is_complete(&self) -> bool {
        self.state().is_ok_and(|state| state.rest.is_none())
    }

    /// Keeps all bytes and returns how many. Errors: those of reading and keeping.
    pub(crate) fn complete(&self) -> io::Result<u64> {
        let mut state = self.state()?;
        let mut buffer = vec![0; STEP_BYTES];
        while state.rest.is_some() {
            match state.pull(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                pulled => drop(pulled?),
            }
        }
        Ok(state.kept_bytes)
    }

    /// Bytes from `offset` on, which is at most one past the last that was read before.
    pub(crate) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state()?;
        if offset < state.kept_bytes {
            state.kept.seek(SeekFrom::Start(offset))?;
            return state.kept.read(buffer);
        }
        if state.rest.is_some() && offset == state.kept_bytes {
            return state.pull(buffer);
        }
        Ok(0)
    }

    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        self.0.lock().map_err(|_| io::Error::other("reading it failed before"))
    }
}

impl State {
    /// Reads the next bytes and keeps them.
    fn pull(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(rest) = &mut self.rest else { return Ok(0) };
        let count = rest.read(buffer)?;
        if count == 0 && !buffer.is_empty() {
            self.rest = None;
            return Ok(0);
        }
        if count as u64 > self.limit_bytes - self.kept_bytes {
            let text = format!("more than {} GiB to be kept", self.limit_bytes >> 30);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        self.kept
            .seek(SeekFrom::Start(self.kept_bytes))
            .and_then(|_| self.kept.write_all(&buffer[..count]))
            .map_err(|error| no_place(&error))?;
        self.kept_bytes += count as u64;
        Ok(count)
    }
}

fn no_place(error: &io::Error) -> io::Error {
    let text = format!("its content cannot be kept in the temporary folder, TMPDIR ({error})");
    io::Error::new(io::ErrorKind::StorageFull, text)
}

/// A reader from some byte of a [`Spool`] on.
pub struct SpoolReader {
    spool: Arc<Spool>,
    offset: u64,
}

impl SpoolReader {
    /// Reads from `offset` on.
    pub(crate) fn new(spool: &Arc<Spool>, offset: u64) -> SpoolReader {
        SpoolReader { spool: spool.clone(), offset }
    }
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.spool.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: u32) -> Vec<u8> {
        (0..count).flat_map(|n| n.to_le_bytes()).collect()
    }

    #[test]
    fn what_was_read_once_can_be_read_again_from_anywhere() {
        let all = bytes(200_000);
        let spool = Spool::new(Box::new(io::Cursor::new(all.clone())), 1 << 30).unwrap();
        let (mut first, mut second) = (SpoolReader::new(&spool, 0), SpoolReader::new(&spool, 0));
        let mut head = vec![0; 1000];
        first.read_exact(&mut head).unwrap();
        assert_eq!(head, all[..1000]);
        assert!(!spool.is_complete(), "no more is read than was asked for");
        let mut whole = Vec::new();
        second.read_to_end(&mut whole).unwrap();
        assert!(whole == all && spool.is_complete());
        let mut rest = Vec::new();
        first.read_to_end(&mut rest).unwrap();
        assert!(rest == all[1000..]);
        assert_eq!(spool.complete().unwrap(), all.len() as u64);
    }

    #[test]
    fn endless_content_is_bounded() {
        let spool = Spool::new(Box::new(io::repeat(7)), 1 << 20).unwrap();
        let error = spool.complete().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
