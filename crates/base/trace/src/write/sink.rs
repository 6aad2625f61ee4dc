//! Where a writer's bytes go: a file that appears when it is complete, compressed or not.
//!
//! For: formats that are streams of bytes. Must never know: formats.

use super::atomic::AtomicFile;
use crate::TraceError;
use crate::source::Container;
use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;

/// A file being written.
pub(super) struct TraceSink {
    encoder: Encoder,
    target: PathBuf,
}

enum Encoder {
    Plain(AtomicFile),
    Gzip(GzEncoder<AtomicFile>),
    Zstd(zstd::stream::write::Encoder<'static, AtomicFile>),
    Xz(XzEncoder<AtomicFile>),
    Bzip2(BzEncoder<AtomicFile>),
}

impl TraceSink {
    /// Starts a file that will be called `target`. Errors: the operating system's.
    pub(super) fn create(target: &Path, container: Container) -> Result<TraceSink, TraceError> {
        let file = AtomicFile::create(target)?;
        let encoder = match container {
            Container::Plain => Encoder::Plain(file),
            Container::Gzip => Encoder::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            Container::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(file, ZSTD_LEVEL)
                    .map_err(|source| failed(target, source))?;
                encoder.include_checksum(true).map_err(|source| failed(target, source))?;
                Encoder::Zstd(encoder)
            }
            Container::Xz => Encoder::Xz(XzEncoder::new(file, XZ_LEVEL)),
            Container::Bzip2 => Encoder::Bzip2(BzEncoder::new(file, bzip2::Compression::best())),
        };
        Ok(TraceSink { encoder, target: target.to_owned() })
    }

    /// The name it will have.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Appends bytes. Errors: the operating system's.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
        let written = match &mut self.encoder {
            Encoder::Plain(file) => file.write_all(bytes),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
            Encoder::Xz(encoder) => encoder.write_all(bytes),
            Encoder::Bzip2(encoder) => encoder.write_all(bytes),
        };
        written.map_err(|source| failed(&self.target, source))
    }

    /// Completes the file and puts it in place. Errors: the operating system's; then the target is
    /// as it was.
    pub(super) fn commit(self) -> Result<(), TraceError> {
        let file = match self.encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Xz(encoder) => encoder.finish(),
            Encoder::Bzip2(encoder) => encoder.finish(),
        };
        file.map_err(|source| failed(&self.target, source))?.commit()
    }
}

/// The operating system's refusal as an error of this crate.
pub(super) fn failed(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}
