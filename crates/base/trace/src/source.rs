//! A trace file as a stream of decompressed bytes whose beginning can be looked at first.
//!
//! For: opening a path, a pipe or bytes in memory. Their compression (gzip, zstd, xz, bzip2) is
//! recognised by its magic and undone; the format receives the bytes. Must never know: formats, or
//! what a path's name suggests: the content decides. Units: bytes. Invariant: [`ByteSource::head`]
//! is the beginning of what [`ByteSource::into_stream`] yields, and the whole of it when shorter
//! than [`HEAD_BYTES`].

mod once;
mod spool;

pub use spool::{Spool, SpoolReader};

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
const MAGIC_BYTES: usize = 6;

/// How the file's bytes are wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Not compressed.
    Plain,
    /// gzip, one or more members (RFC 1952).
    Gzip,
    /// Zstandard, one or more frames, leading skippable frames included (RFC 8878).
    Zstd,
    /// xz, one or more streams.
    Xz,
    /// bzip2, one or more streams.
    Bzip2,
}

impl Container {
    /// The container that begins with `head`.
    fn detect(head: &[u8]) -> Container {
        match head {
            [0x1f, 0x8b, 8, ..] => Container::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Container::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Container::Xz,
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Container::Bzip2,
            _ => Container::Plain,
        }
    }

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
    container: Container,
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
        mut raw: R,
    ) -> Result<ByteSource, TraceError> {
        let mut magic = [0_u8; MAGIC_BYTES];
        let count = fill(&mut raw, &mut magic).map_err(|source| open_error(path, source))?;
        let magic = magic[..count].to_vec();
        let container = Container::detect(&magic);
        let mut body = unwrapped(container, Cursor::new(magic).chain(raw))
            .map_err(|source| stream_error(path, container, &source))?;
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

    /// How the file is compressed.
    pub fn container(&self) -> Container {
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
            (Container::Plain, Origin::Memory(bytes)) => Ok(RandomAccess::Memory(bytes)),
            (Container::Plain, Origin::File) => File::open(&self.path)
                .map(RandomAccess::File)
                .map_err(|source| io_error(&self.path, source)),
            (Container::Plain, Origin::Kept(spool)) => {
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
    container: Container,
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

fn unwrapped<R: Read + Send + 'static>(
    container: Container,
    raw: R,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match container {
        Container::Plain => Box::new(raw),
        Container::Gzip => Box::new(flate2::read::MultiGzDecoder::new(raw)),
        Container::Zstd => Box::new(zstd::stream::read::Decoder::new(raw)?),
        Container::Xz => {
            let flags = liblzma::stream::CONCATENATED;
            let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_LIMIT_BYTES, flags)?;
            Box::new(liblzma::read::XzDecoder::new_stream(raw, stream))
        }
        Container::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(raw)),
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
fn read_error(path: &Path, container: Container, source: io::Error) -> TraceError {
    let is_of_spool =
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge);
    if container == Container::Plain || source.raw_os_error().is_some() || is_of_spool {
        return io_error(path, source);
    }
    stream_error(path, container, &source)
}

fn stream_error(path: &Path, container: Container, source: &io::Error) -> TraceError {
    TraceError::File {
        path: path.to_owned(),
        found: format!("a truncated or damaged {} stream ({source})", container.word()),
        expected: format!("a complete {} file", container.word()),
    }
}
