//! A trace file as a stream of decompressed bytes whose beginning can be looked at first.
//!
//! For: opening a path, a pipe or bytes in memory. Their compression (gzip, zstd, xz, bzip2, lz4,
//! lzma) and their archive of one file (tar, zip) are recognised by their magic and undone, one
//! inside the other; the format receives the bytes. Must never know: formats, or
//! what a path's name suggests: the content decides. Units: bytes. Invariant: [`ByteSource::head`]
//! is the beginning of what [`ByteSource::into_stream`] yields, and the whole of it when shorter
//! than [`HEAD_BYTES`].

mod archive;
mod members;
mod once;
mod spool;

pub use spool::{Spool, SpoolReader};

use self::archive::{NotRead, TarFile, ZipFile};
use self::members::{Lz4Frames, Members, Packed};
use crate::TraceError;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        if let Some(spool) = once::kept(path)? {
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
