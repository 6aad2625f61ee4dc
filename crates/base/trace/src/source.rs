//! A trace file as a stream of decompressed bytes whose beginning can be looked at first.
//!
//! Their compression (gzip, zstd, xz, bzip2, lz4, lzma) and their archive of one file (tar, zip)
//! are recognised by their magic and undone, one inside the other; the format receives the bytes.
//! Units: bytes. Invariant: [`ByteSource::head`] is the beginning of what
//! [`ByteSource::into_stream`] yields, and the whole of it when shorter than [`HEAD_BYTES`].

mod archive;

use crate::TraceError;
use archive::{Lz4Frames, Members, NotRead, Packed, TarFile, ZipFile};
use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// How much of the decompressed content can be looked at before reading, in bytes.
pub const HEAD_BYTES: usize = 64 << 10;
/// Longest content that is decompressed ahead when a format needs random access, in bytes.
const RANDOM_ACCESS_LIMIT_BYTES: u64 = 4 << 30;
/// Memory that an xz stream may ask for, in bytes: the largest dictionary of `xz -9` needs 65 MiB.
const XZ_MEMORY_LIMIT_BYTES: u64 = 1 << 30;
/// Largest window of a zstd stream, as a power of two of bytes: what `zstd --long=30` makes.
const ZSTD_WINDOW_LOG: u32 = 30;
/// The way out for larger ones.
const ZSTD_WAY_OUT: &str =
    "a window of at most 1 GiB, or `zstd -dc --long=31 FILE | cachewright ... -`";
/// Enough to tell every wrapping: the first header of a tar.
const MAGIC_BYTES: usize = 512;
/// Wrappings inside each other: a compressed file in a compressed archive has three.
const DEPTH_LIMIT: usize = 4;

/// How a file to be written is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Not compressed.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
}

impl Container {
    /// The word used in messages.
    pub fn word(self) -> &'static str {
        match self {
            Container::Plain => "plain",
            Container::Gzip => "gzip",
            Container::Zstd => "zstd",
            Container::Xz => "xz",
            Container::Bzip2 => "bzip2",
        }
    }
}

/// How the bytes of a file that is read are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrapping {
    /// Not at all.
    Plain,
    /// gzip, one or more members (RFC 1952).
    Gzip,
    /// Zstandard, one or more frames, leading skippable frames included (RFC 8878).
    Zstd,
    /// xz, one or more streams.
    Xz,
    /// bzip2, one or more streams.
    Bzip2,
    /// LZ4, one or more frames.
    Lz4,
    /// The format of `lzma`, which xz followed.
    Lzma,
    /// A tar archive of one file.
    Tar,
    /// A zip archive of one file.
    Zip,
}

impl Wrapping {
    /// The wrapping that begins with `head`.
    fn detect(head: &[u8]) -> Wrapping {
        match head {
            [0x1f, 0x8b, 8, ..] => Wrapping::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Wrapping::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Wrapping::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Wrapping::Bzip2,
            [0x04, 0x22, 0x4d, 0x18, ..] => Wrapping::Lz4,
            [b'P', b'K', 3, 4, ..] => Wrapping::Zip,
            _ if is_lzma(head) => Wrapping::Lzma,
            _ if archive::is_tar(head) => Wrapping::Tar,
            _ => Wrapping::Plain,
        }
    }

    /// The word used in messages.
    pub fn word(self) -> &'static str {
        match self {
            Wrapping::Plain => "plain",
            Wrapping::Gzip => "gzip",
            Wrapping::Zstd => "zstd",
            Wrapping::Xz => "xz",
            Wrapping::Bzip2 => "bzip2",
            Wrapping::Lz4 => "lz4",
            Wrapping::Lzma => "lzma",
            Wrapping::Tar => "tar",
            Wrapping::Zip => "zip",
        }
    }
}

/// Whether `head` is that of `lzma`, which has no magic: the usual properties, a dictionary of
/// whole 64 KiB, a length that is unknown or below 256 GiB, and the zero that coders begin with.
fn is_lzma(head: &[u8]) -> bool {
    let [0x5d, 0, 0, dictionary, _, length @ .., 0] = head.get(..14).unwrap_or_default() else {
        return false;
    };
    *dictionary > 0
        && (length == [0xff; 8] || (length[5..] == [0; 3] && length != [0; 8] && length[4] < 64))
}

/// Where the bytes come from, before decompression.
enum Origin {
    File,
    Memory(Vec<u8>),
    /// A pipe whose bytes are kept.
    Kept(Arc<Spool>),
}

/// An opened trace of which only the beginning has been read.
pub struct ByteSource {
    path: PathBuf,
    container: Wrapping,
    origin: Origin,
    head: Vec<u8>,
    body: Box<dyn Read + Send>,
}

/// Bytes that can be read at any place, for formats with a directory at the end.
pub enum RandomAccess {
    /// The file itself, when it is not compressed.
    File(File),
    /// Content in memory.
    Memory(Vec<u8>),
    /// Content of a pipe, or decompressed, in a temporary file.
    Kept(Arc<Spool>),
}

impl ByteSource {
    /// Opens the file at `path` and reads its head. The path `-` is standard input. Standard input
    /// and pipes are kept in a temporary file as they are read, for later openings in this process.
    ///
    /// Errors: the operating system's; a terminal, a device, a pipe that nothing writes to; a
    /// compressed stream that is damaged within the head.
    pub fn open(path: &Path) -> Result<ByteSource, TraceError> {
        if let Some(spool) = kept(path)? {
            let reader = SpoolReader::new(&spool, 0);
            return ByteSource::new(path, Origin::Kept(spool), reader);
        }
        let file = File::open(path).map_err(|source| open_error(path, source))?;
        ByteSource::new(path, Origin::File, file)
    }

    /// The same for bytes in memory; `name` stands for the path in messages.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<ByteSource, TraceError> {
        let origin = Origin::Memory(bytes.to_vec());
        ByteSource::new(Path::new(name), origin, Cursor::new(bytes.to_vec()))
    }

    fn new<R: Read + Send + 'static>(
        path: &Path,
        origin: Origin,
        raw: R,
    ) -> Result<ByteSource, TraceError> {
        let mut body: Packed = Box::new(raw);
        let mut container = Wrapping::Plain;
        for _ in 0..DEPTH_LIMIT {
            let mut magic = [0_u8; MAGIC_BYTES];
            let count = fill(&mut body, &mut magic).map_err(|source| match container {
                Wrapping::Plain => open_error(path, source),
                _ => read_error(path, container, source),
            })?;
            let magic = magic[..count].to_vec();
            let wrapping = Wrapping::detect(&magic);
            let packed: Packed = Box::new(Cursor::new(magic).chain(body));
            if container == Wrapping::Plain {
                container = wrapping;
            }
            if wrapping == Wrapping::Plain {
                body = packed;
                break;
            }
            body = unwrapped(wrapping, packed)
                .map_err(|source| stream_error(path, container, &source))?;
        }
        let mut head = vec![0_u8; HEAD_BYTES];
        let count =
            fill(&mut body, &mut head).map_err(|source| read_error(path, container, source))?;
        head.truncate(count);
        Ok(ByteSource { path: path.to_owned(), container, origin, head, body })
    }

    /// The path as given, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the file is wrapped; the outermost of several wrappings.
    pub fn container(&self) -> Wrapping {
        self.container
    }

    /// The first decompressed bytes: all there are, or [`HEAD_BYTES`].
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// All decompressed bytes from the first on.
    pub fn into_stream(self) -> ByteStream {
        ByteStream {
            path: self.path,
            container: self.container,
            head: Cursor::new(self.head),
            body: self.body,
        }
    }

    /// The content for reading at any place. A compressed file is decompressed into a temporary
    /// file, up to 4 GiB. Errors: the operating system's, a damaged stream, a longer content.
    pub fn into_random_access(self) -> Result<RandomAccess, TraceError> {
        match (self.container, self.origin) {
            (Wrapping::Plain, Origin::Memory(bytes)) => Ok(RandomAccess::Memory(bytes)),
            (Wrapping::Plain, Origin::File) => File::open(&self.path)
                .map(RandomAccess::File)
                .map_err(|source| io_error(&self.path, source)),
            (Wrapping::Plain, Origin::Kept(spool)) => {
                spool.complete().map_err(|source| io_error(&self.path, source))?;
                Ok(RandomAccess::Kept(spool))
            }
            (container, _) => {
                let rest = Box::new(Cursor::new(self.head).chain(self.body));
                let spool = Spool::new(rest, RANDOM_ACCESS_LIMIT_BYTES)
                    .map_err(|source| io_error(&self.path, source))?;
                match spool.complete() {
                    Ok(_) => Ok(RandomAccess::Kept(spool)),
                    Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                        Err(TraceError::File {
                            path: self.path,
                            found: format!("more than 4 GiB inside a {} file", container.word()),
                            expected: "a file of this format to be decompressed first".to_owned(),
                        })
                    }
                    Err(source) => Err(read_error(&self.path, container, source)),
                }
            }
        }
    }
}

/// Decompressed bytes in order.
pub struct ByteStream {
    path: PathBuf,
    container: Wrapping,
    head: Cursor<Vec<u8>>,
    body: Box<dyn Read + Send>,
}

impl ByteStream {
    /// The path as given, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `buffer` as far as there are bytes and returns how many; fewer than asked means the
    /// end. Errors: the operating system's, and a damaged or truncated compressed stream.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, TraceError> {
        let mut count = fill(&mut self.head, buffer).unwrap_or(0);
        if count < buffer.len() {
            count += fill(&mut self.body, &mut buffer[count..])
                .map_err(|source| read_error(&self.path, self.container, source))?;
        }
        Ok(count)
    }
}

/// The content of `packed`, which is wrapped.
fn unwrapped(wrapping: Wrapping, packed: Packed) -> io::Result<Packed> {
    use liblzma::stream::{CONCATENATED, Stream};
    Ok(match wrapping {
        Wrapping::Plain => packed,
        Wrapping::Gzip => Box::new(Members::<flate2::bufread::GzDecoder<_>>::new(packed)),
        Wrapping::Bzip2 => Box::new(Members::<bzip2::bufread::BzDecoder<_>>::new(packed)),
        Wrapping::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(packed)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Wrapping::Xz => {
            let stream = Stream::new_stream_decoder(XZ_MEMORY_LIMIT_BYTES, CONCATENATED)?;
            Box::new(liblzma::read::XzDecoder::new_stream(packed, stream))
        }
        Wrapping::Lzma => {
            let stream = Stream::new_lzma_decoder(XZ_MEMORY_LIMIT_BYTES)?;
            Box::new(liblzma::read::XzDecoder::new_stream(packed, stream))
        }
        Wrapping::Lz4 => Box::new(Lz4Frames::new(packed)),
        Wrapping::Tar => Box::new(TarFile::new(packed)),
        Wrapping::Zip => Box::new(ZipFile::new(packed)),
    })
}

/// Reads until `buffer` is full or the end; returns how many bytes.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match reader.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

fn io_error(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}

/// What cannot be opened, or read from the start: what is there instead, where that is known.
fn open_error(path: &Path, source: io::Error) -> TraceError {
    let found = match source.kind() {
        io::ErrorKind::NotFound => "no such file",
        io::ErrorKind::IsADirectory => "a folder",
        _ => return io_error(path, source),
    };
    TraceError::File { path: path.to_owned(), found: found.to_owned(), expected: "a trace".into() }
}

/// Plain files fail as the operating system says; compressed ones mostly because they are damaged.
fn read_error(path: &Path, container: Wrapping, source: io::Error) -> TraceError {
    let is_of_spool =
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge);
    if container == Wrapping::Plain || source.raw_os_error().is_some() || is_of_spool {
        return io_error(path, source);
    }
    stream_error(path, container, &source)
}

fn stream_error(path: &Path, container: Wrapping, source: &io::Error) -> TraceError {
    let inner = source.get_ref().and_then(|error| error.downcast_ref::<NotRead>());
    if let Some(NotRead { found, expected }) = inner {
        let (found, expected) = (found.clone(), expected.clone());
        return TraceError::File { path: path.to_owned(), found, expected };
    }
    // The library's words for a window above the limit.
    if source.to_string().contains("requires too much memory") {
        return TraceError::File {
            path: path.to_owned(),
            found: "a zstd stream whose window is larger than 1 GiB".to_owned(),
            expected: ZSTD_WAY_OUT.to_owned(),
        };
    }
    TraceError::File {
        path: path.to_owned(),
        found: format!("a truncated or damaged {} stream ({source})", container.word()),
        expected: format!("a complete {} file", container.word()),
    }
}

/// The path that stands for standard input.
const STDIN: &str = "-";
/// Longest content of a pipe, in bytes.
const PIPE_LIMIT_BYTES: u64 = 64 << 30;

/// What tells one pipe from another that had its path before: device and inode.
type Identity = (u64, u64);

static KEPT: Mutex<Vec<(PathBuf, Identity, Arc<Spool>)>> = Mutex::new(Vec::new());

/// The kept content of `path`; nothing where the path is that of a file (or of nothing). A trace is
/// opened several times: recognised, read, read again by another case. The content of a pipe is
/// therefore kept for the whole process. A pipe that nothing writes to is refused, never waited
/// for.
///
/// Errors: a terminal, a device, a pipe that nothing writes to; the operating system's.
fn kept(path: &Path) -> Result<Option<Arc<Spool>>, TraceError> {
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

const STEP_BYTES: usize = 256 << 10;

/// Content that can be read only once, in a temporary file so that it can be read again: the first
/// bytes are kept, the rest are still to be read, so that a refusal of the first record ends the
/// reading. The file has no name, so that nothing stays behind.
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
