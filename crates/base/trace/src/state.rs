//! What decided when a recording began, in a file beside it, so that a replay continues there.
//!
//! | bytes | what |
//! |---|---|
//! | 20 | `cachewright state 1` and a line feed |
//! | 8 | bytes of the content before it was compressed |
//! | 4 | CRC-32 (IEEE 802.3) of the content before it was compressed |
//! | all others | the content, a frame of zstd |
//!
//! The content is that of [`RecordedState`], as `cachewright-snapshot` writes it. Numbers are
//! little-endian. A file appears under its name when it is complete, and before its recording does.

use crate::TraceError;
use crate::write::atomic::{AtomicFile, remove_abandoned};
use cachewright_snapshot::{SnapshotValue, restore, saved};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// How a file begins.
const MAGIC: &[u8; 20] = b"cachewright state 1\n";
/// Bytes of content that are read at most.
const MAX_BYTES: u64 = 1 << 40;
/// Bytes that are made room for before any was read.
const MAX_RESERVED: u64 = 1 << 20;
/// The fastest that zstd compresses without giving up much.
const LEVEL: i32 = 1;

/// What decided at the beginning of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct RecordedState {
    /// The time of the decision clock at which the recording begins, its time 0.
    pub origin_ns: u64,
    /// What decisions depend on and the state has not: keys of the stack with their values.
    pub settings: Vec<(String, String)>,
    /// A snapshot of what decides.
    pub state: Vec<u8>,
}

/// The file of the state beside a recording.
pub fn state_path(recording: &Path) -> PathBuf {
    let mut path = OsString::from(recording);
    path.push(".state");
    PathBuf::from(path)
}

/// Removes the state beside a recording, and what killed writers left of it; returns whether there
/// was one. Errors: the operating system's.
pub fn remove_state(recording: &Path) -> Result<bool, TraceError> {
    let path = state_path(recording);
    remove_abandoned(&path);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(TraceError::Io { path, source }),
    }
}

impl RecordedState {
    /// Writes a file, which outlives a kill from then on; returns its bytes. Errors: the operating
    /// system's.
    pub fn write(&self, path: &Path) -> Result<u64, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let content = saved(self).map_err(|error| refused(path, error.to_string()))?;
        let frame = zstd::encode_all(&content[..], LEVEL).map_err(failed)?;
        let (length, checksum) = (content.len() as u64, crc32fast::hash(&content));
        let mut file = AtomicFile::create(path)?;
        let parts = [&MAGIC[..], &length.to_le_bytes(), &checksum.to_le_bytes(), &frame];
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(failed)?;
        file.commit()?;
        Ok(parts.iter().map(|part| part.len() as u64).sum())
    }

    /// Reads a file. Errors: the operating system's; a file of something else, of another version,
    /// or that is damaged.
    pub fn read(path: &Path) -> Result<RecordedState, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut head = Vec::new();
        let head_bytes = MAGIC.len() as u64 + 12;
        file.by_ref().take(head_bytes).read_to_end(&mut head).map_err(failed)?;
        let Some((length, checksum)) = head_of(&head) else {
            return Err(refused(path, "what does not begin as such a file"));
        };
        if length > MAX_BYTES {
            return Err(refused(path, format!("a state of {length} bytes")));
        }
        let mut content = Vec::with_capacity(length.min(MAX_RESERVED) as usize);
        let mut frame = zstd::stream::read::Decoder::new(file).map_err(failed)?;
        let read = frame.by_ref().take(length + 1).read_to_end(&mut content);
        if read.is_err() || content.len() as u64 != length {
            return Err(refused(path, "a file that was cut short or is damaged"));
        }
        if crc32fast::hash(&content) != checksum {
            return Err(refused(path, "a file whose checksum does not fit its content"));
        }
        let mut state = RecordedState::default();
        restore(&mut state, &content).map_err(|error| refused(path, error.to_string()))?;
        Ok(state)
    }
}

/// The length and the checksum of the content.
fn head_of(head: &[u8]) -> Option<(u64, u32)> {
    let rest = head.strip_prefix(&MAGIC[..])?;
    let (length, checksum) = rest.split_at_checked(8)?;
    let checksum = u32::from_le_bytes(checksum.try_into().ok()?);
    Some((u64::from_le_bytes(length.try_into().ok()?), checksum))
}

fn refused(path: &Path, found: impl Into<String>) -> TraceError {
    TraceError::File {
        path: path.to_owned(),
        found: found.into(),
        expected: "a state that a live server wrote beside a recording, of version 1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::directory;
    use proptest::prelude::*;

    fn state() -> RecordedState {
        let settings = [("cache.policy", "arc"), ("tenant", "a, b")];
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let state = (0..4000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        RecordedState { origin_ns: 77, settings: settings.map(owned).to_vec(), state }
    }

    #[test]
    fn what_is_written_is_read_and_small() {
        let folder = directory();
        let path = state_path(&folder.path().join("x.parquet"));
        assert!(path.ends_with("x.parquet.state"));
        let bytes = state().write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
        assert!(bytes < 8_000, "{bytes} bytes");
        assert_eq!(RecordedState::read(&path).unwrap(), state());
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files(), 1, "nothing hidden is left");
        let recording = folder.path().join("x.parquet");
        std::fs::write(folder.path().join(".x.parquet.state.4000000000.0.tmp"), "half").unwrap();
        assert!(remove_state(&recording).unwrap());
        assert_eq!(files(), 0, "nor what a killed writer left");
        assert!(!remove_state(&recording).unwrap());
    }

    #[test]
    fn files_of_something_else_are_refused() {
        let folder = directory();
        let path = folder.path().join("x.state");
        for bytes in [&b""[..], b"cachewright state 2\n", b"PAR1", &[0; 400]] {
            std::fs::write(&path, bytes).unwrap();
            let error = RecordedState::read(&path).unwrap_err().to_string();
            assert!(error.contains("found what does not begin as such a file"), "{error}");
        }
        let huge = [&MAGIC[..], &u64::MAX.to_le_bytes(), &[0; 4]].concat();
        std::fs::write(&path, huge).unwrap();
        let error = RecordedState::read(&path).unwrap_err().to_string();
        assert!(error.contains("18446744073709551615 bytes"), "{error}");
        let missing = RecordedState::read(&folder.path().join("y")).unwrap_err();
        assert!(matches!(missing, TraceError::Io { .. }), "{missing}");
    }

    proptest! {
        #[test]
        fn damage_is_found(at in any::<prop::sample::Index>(), flip in 1_u8.., cut: bool) {
            let folder = directory();
            let path = folder.path().join("x.state");
            state().write(&path).unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            match cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= flip,
            }
            std::fs::write(&path, &bytes).unwrap();
            // A bit of the frame's head may mean nothing.
            if let Ok(read) = RecordedState::read(&path) {
                prop_assert!(!cut);
                prop_assert_eq!(read, state());
            }
        }
    }
}
