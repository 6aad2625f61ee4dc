//! What decided when a recording began, in a file beside it, so that a replay continues there.
//!
//! | bytes | what |
//! |---|---|
//! | 20 | `cachewright state 3` and a line feed |
//! | 8 | the time of the decision clock at which the recording begins |
//! | 8 | a hash of what was decided before |
//! | 4 | CRC-32 (IEEE 802.3) of the 16 bytes before it |
//! | 8 | bytes of the content before it was compressed |
//! | 4 | CRC-32 of the content before it was compressed |
//! | all others | the content, a frame of zstd |
//!
//! The content is the settings and the state of [`RecordedState`], as `cachewright-snapshot` writes
//! them. Numbers are little-endian. A file appears under its name when it is complete; that may be
//! after its recording has begun. Versions 1 and 2 are read as well: their content begins with the
//! time and has the length of the state (64 bits) before it; version 1 has no time, hash and
//! checksum before the content's length.

use crate::TraceError;
use crate::write::atomic::{AtomicFile, remove};
use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter,
};
use crc32fast::Hasher;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// How a file begins.
const MAGIC: &[u8; 20] = b"cachewright state 3\n";
/// How those of earlier versions begin.
const MAGIC_2: &[u8; 20] = b"cachewright state 2\n";
const MAGIC_1: &[u8; 20] = b"cachewright state 1\n";
/// Bytes of content that are read at most.
const MAX_BYTES: u64 = 1 << 40;
/// Bytes that are made room for before any was read.
const MAX_RESERVED: u64 = 1 << 20;
/// The fastest that zstd compresses without giving up much.
const LEVEL: i32 = 1;

/// What decided at the beginning of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedState {
    /// The time of the decision clock at which the recording begins, its time 0.
    pub origin_ns: u64,
    /// A hash of what was decided before; files of version 1 have none.
    pub decided: Option<u64>,
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
    remove(&state_path(recording))
}

impl RecordedState {
    /// Reads a file. Errors: the operating system's; a file of something else, of another version,
    /// or that is damaged.
    pub fn read(path: &Path) -> Result<RecordedState, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let (version, begin) = StateBegin::read(&mut file, path)?;
        let numbers: [u8; 12] = head(&mut file, path)?;
        let [length, checksum] = [0..8, 8..12].map(|bytes| little_endian(&numbers[bytes]));
        if length > MAX_BYTES {
            return Err(refused(path, format!("a state of {length} bytes")));
        }
        let mut content = Vec::with_capacity(length.min(MAX_RESERVED) as usize);
        let mut frame = zstd::stream::read::Decoder::new(file).map_err(failed)?;
        let read = frame.by_ref().take(length + 1).read_to_end(&mut content);
        if read.is_err() || content.len() as u64 != length {
            return Err(refused(path, "a file that was cut short or is damaged"));
        }
        if u64::from(crc32fast::hash(&content)) != checksum {
            return Err(refused(path, "a file whose checksum does not fit its content"));
        }
        let state = match begin {
            Some(begin) if version == 3 => RecordedState::of_content(&content, begin),
            _ => RecordedState::of_old_content(&content, begin),
        };
        state.map_err(|error| refused(path, error.to_string()))
    }

    fn of_content(content: &[u8], begin: StateBegin) -> Result<RecordedState, SnapshotError> {
        let StateBegin { origin_ns, decided } = begin;
        let mut from = SnapshotReader::new(content);
        let settings = Vec::load(&mut from)?;
        let state = from.take(from.left())?.to_vec();
        Ok(RecordedState { origin_ns, decided: Some(decided), settings, state })
    }

    /// The content of versions 1 and 2.
    fn of_old_content(
        content: &[u8],
        begin: Option<StateBegin>,
    ) -> Result<RecordedState, SnapshotError> {
        let mut from = SnapshotReader::new(content);
        let origin_ns = u64::load(&mut from)?;
        let (settings, state) = (Vec::load(&mut from)?, Vec::load(&mut from)?);
        from.finish()?;
        let decided = begin.map(|begin| begin.decided);
        Ok(RecordedState { origin_ns, decided, settings, state })
    }
}

/// The content of a file that is not written yet, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedState(Vec<u8>);

impl EncodedState {
    /// Of `decides` as it stands, with `settings` as those of [`RecordedState`]. What is saved is
    /// compressed piece by piece, so that it is never in memory as a whole. Errors, in words: it
    /// cannot be saved; those of the compression.
    pub fn of(
        begin: StateBegin,
        settings: &[(String, String)],
        decides: &(impl Snapshot + ?Sized),
    ) -> Result<EncodedState, String> {
        let numbers = [begin.origin_ns, begin.decided].map(u64::to_le_bytes).concat();
        let checksum = crc32fast::hash(&numbers).to_le_bytes();
        // The content's length and checksum are known behind it.
        let head = [&MAGIC[..], &numbers, &checksum, &[0; 12]].concat();
        let place = head.len() - 12..head.len();
        let frame = zstd::stream::write::Encoder::new(head, LEVEL);
        let frame = frame.map_err(|error| error.to_string())?;
        let mut content = ContentFrame { frame, length: 0, checksum: Hasher::new() };
        let mut out = SnapshotWriter::to(&mut content);
        out.length(settings.len());
        SnapshotValue::save_all(settings, &mut out);
        decides.save(&mut out);
        out.finish().map_err(|error| error.to_string())?;
        let ContentFrame { frame, length, checksum } = content;
        let mut bytes = frame.finish().map_err(|error| error.to_string())?;
        let numbers = [&length.to_le_bytes()[..], &checksum.finalize().to_le_bytes()].concat();
        bytes[place].copy_from_slice(&numbers);
        Ok(EncodedState(bytes))
    }

    /// Writes the file, which outlives a kill from then on; returns its bytes. Errors: the
    /// operating system's.
    pub fn write(&self, path: &Path) -> Result<u64, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let mut file = AtomicFile::create(path)?;
        file.write_all(&self.0).map_err(failed)?;
        file.commit()?;
        Ok(self.0.len() as u64)
    }
}

/// Compresses a content, whose length and checksum it finds.
struct ContentFrame {
    frame: zstd::stream::write::Encoder<'static, Vec<u8>>,
    length: u64,
    checksum: Hasher,
}

impl Write for ContentFrame {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.frame.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.checksum.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.frame.flush()
    }
}

/// When a state was, which its file says before its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateBegin {
    /// See [`RecordedState::origin_ns`].
    pub origin_ns: u64,
    /// See [`RecordedState::decided`].
    pub decided: u64,
}

impl StateBegin {
    /// Reads it alone; nothing in a file of version 1. Errors: as of [`RecordedState::read`].
    pub fn of_file(path: &Path) -> Result<Option<StateBegin>, TraceError> {
        let failed = |source| TraceError::Io { path: path.to_owned(), source };
        let (_, begin) = StateBegin::read(&mut File::open(path).map_err(failed)?, path)?;
        Ok(begin)
    }

    /// The version of a file, and when its state was.
    fn read(file: &mut impl Read, path: &Path) -> Result<(u8, Option<StateBegin>), TraceError> {
        let magic: [u8; 20] = head(file, path)?;
        let version = match &magic {
            MAGIC => 3,
            MAGIC_2 => 2,
            MAGIC_1 => return Ok((1, None)),
            _ => return Err(refused(path, NOT_ONE)),
        };
        let numbers: [u8; 20] = head(file, path)?;
        if u64::from(crc32fast::hash(&numbers[..16])) != little_endian(&numbers[16..]) {
            return Err(refused(path, "a file whose checksum does not fit its head"));
        }
        let [origin_ns, decided] = [0..8, 8..16].map(|bytes| little_endian(&numbers[bytes]));
        Ok((version, Some(StateBegin { origin_ns, decided })))
    }
}

/// What is found where a file is none of these.
const NOT_ONE: &str = "what does not begin as such a file";

/// The next bytes of a file's head. Errors: the operating system's; the file ends before.
fn head<const BYTES: usize>(file: &mut impl Read, path: &Path) -> Result<[u8; BYTES], TraceError> {
    let mut bytes = [0; BYTES];
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(refused(path, NOT_ONE)),
        Err(source) => Err(TraceError::Io { path: path.to_owned(), source }),
    }
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn refused(path: &Path, found: impl Into<String>) -> TraceError {
    TraceError::File {
        path: path.to_owned(),
        found: found.into(),
        expected: "a state that a live server wrote beside a recording, of version 1 to 3"
            .to_owned(),
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
        let settings = settings.map(owned).to_vec();
        RecordedState { origin_ns: 77, decided: Some(1 << 60), settings, state }
    }

    /// The bytes of a state as they are.
    struct Bytes(Vec<u8>);

    impl Snapshot for Bytes {
        fn save(&self, out: &mut SnapshotWriter<'_>) {
            out.put(&self.0);
        }

        fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
            self.0 = from.take(from.left())?.to_vec();
            Ok(())
        }
    }

    fn encoded(state: RecordedState) -> EncodedState {
        let begin = StateBegin { origin_ns: state.origin_ns, decided: state.decided.unwrap() };
        EncodedState::of(begin, &state.settings, &Bytes(state.state)).unwrap()
    }

    /// A file of an earlier version.
    fn old_file(state: &RecordedState, version: u8) -> Vec<u8> {
        let mut out = SnapshotWriter::default();
        state.origin_ns.save(&mut out);
        state.settings.save(&mut out);
        state.state.save(&mut out);
        let content = out.finish().unwrap();
        let numbers = [state.origin_ns, state.decided.unwrap()].map(u64::to_le_bytes).concat();
        let mut bytes = match version {
            1 => MAGIC_1.to_vec(),
            _ => [&MAGIC_2[..], &numbers, &crc32fast::hash(&numbers).to_le_bytes()].concat(),
        };
        bytes.extend((content.len() as u64).to_le_bytes());
        bytes.extend(crc32fast::hash(&content).to_le_bytes());
        zstd::stream::copy_encode(&content[..], &mut bytes, LEVEL).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read_and_small() {
        let folder = directory();
        let path = state_path(&folder.path().join("x.parquet"));
        assert!(path.ends_with("x.parquet.state"));
        let bytes = encoded(state()).write(&path).unwrap();
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
    fn a_file_says_when_it_was_and_those_of_earlier_versions_are_read() {
        let folder = directory();
        let path = folder.path().join("x.state");
        encoded(state()).write(&path).unwrap();
        let begin = StateBegin { origin_ns: 77, decided: 1 << 60 };
        assert_eq!(StateBegin::of_file(&path).unwrap(), Some(begin));
        std::fs::write(&path, old_file(&state(), 2)).unwrap();
        assert_eq!(StateBegin::of_file(&path).unwrap(), Some(begin));
        assert_eq!(RecordedState::read(&path).unwrap(), state());
        std::fs::write(&path, old_file(&state(), 1)).unwrap();
        assert_eq!(StateBegin::of_file(&path).unwrap(), None);
        let expected = RecordedState { decided: None, ..state() };
        assert_eq!(RecordedState::read(&path).unwrap(), expected);
    }

    #[test]
    fn files_of_something_else_are_refused() {
        let folder = directory();
        let path = folder.path().join("x.state");
        for bytes in [&b""[..], b"cachewright state 4\n", b"PAR1", &[0; 400]] {
            std::fs::write(&path, bytes).unwrap();
            let error = RecordedState::read(&path).unwrap_err().to_string();
            assert!(error.contains("found what does not begin as such a file"), "{error}");
        }
        let huge = [&MAGIC_1[..], &u64::MAX.to_le_bytes(), &[0; 4]].concat();
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
            encoded(state()).write(&path).unwrap();
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
