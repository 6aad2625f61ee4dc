//! Traces to files: the trait that every written format implements, and what a file's name says of
//! its format and compression.
//!
//! A file is written beside its final name and renamed once it is complete. An error therefore
//! loses nothing that was there before.

pub(crate) mod atomic;
mod csv;
mod oracle_general;
mod parquet;
pub(crate) mod recovered;

use crate::formats::objects::ObjectOptions;
use crate::source::Container;
use crate::{Batch, TraceError};
use atomic::AtomicFile;
use bzip2::write::BzEncoder;
use cachewright_types::declare::Declared;
use cachewright_types::{Key, nearest};
pub use csv::CsvWriter;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;
pub use oracle_general::OracleGeneralWriter;
pub use parquet::{ColumnEncoding, Compression, ParquetOptions, ParquetWriter, TimeColumn};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What became of the requests given to a writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Requests in the file.
    pub requests: u64,
    /// Requests that the format cannot express (trims and flushes in `oracle-general`).
    pub left_out: u64,
    /// Seconds by which all times were moved back, because the format's clock does not reach them.
    pub moved_s: u64,
}

/// A trace being written. Dropped before [`finish`](Self::finish), it leaves no file behind.
pub trait TraceWriter: Send {
    /// Appends `batch`, whose volumes index `volumes`, the reader's list so far.
    /// Errors: the operating system's; a request that the format cannot hold.
    fn write(&mut self, batch: &Batch, volumes: &[String]) -> Result<(), TraceError>;

    /// Brings what was written so far to the device, so that
    /// [`recover_abandoned`](crate::recover_abandoned) finds it if the process is killed. Of
    /// formats other than the native one nothing is found. Errors: the operating system's.
    fn keep(&mut self) -> Result<(), TraceError> {
        Ok(())
    }

    /// Completes the file and puts it in place. Errors: the operating system's; no request to
    /// write, as no reader takes a file without one.
    fn finish(self: Box<Self>) -> Result<WriteSummary, TraceError>;
}

type Create = fn(&Path, &BTreeMap<String, String>) -> Result<Box<dyn TraceWriter>, TraceError>;

/// What is known of one format that can be written.
#[derive(Clone, Copy)]
pub struct WriteEntry {
    /// The name users write; the reader of the result has the same.
    pub name: &'static str,
    /// One sentence: what is kept and what is lost.
    pub doc: &'static str,
    /// How names of its files end.
    pub suffixes: &'static [&'static str],
    /// Whether its files can be compressed as a whole.
    pub compressed: bool,
    /// The keys of its options.
    pub options: fn() -> Vec<Key>,
    create: Create,
}

/// Every format that can be written.
pub static WRITE_FORMATS: &[WriteEntry] = &[
    WriteEntry {
        name: "parquet",
        doc: "the native format: keeps everything (docs/trace-format.md)",
        suffixes: &[".parquet"],
        compressed: false,
        options: ParquetOptions::keys,
        create: |path, options| Ok(Box::new(ParquetWriter::create(path, options)?)),
    },
    WriteEntry {
        name: "alibaba",
        doc: "CSV `volume,R|W|T|F,offset,length,timestamp`, no header; bytes, microseconds \
              (nanoseconds below are cut off)",
        suffixes: &[".csv"],
        compressed: true,
        options: Vec::new,
        create: |path, _| Ok(Box::new(CsvWriter::create(path)?)),
    },
    WriteEntry {
        name: "oracle-general",
        doc: "24 B binary records with the next access of each address; loses reads and writes' \
              difference, trims, flushes, volumes, and time below a second",
        suffixes: &[".oracleGeneral", ".oracleGeneral.bin"],
        compressed: true,
        options: ObjectOptions::keys,
        create: |path, options| Ok(Box::new(OracleGeneralWriter::create(path, options)?)),
    },
];

/// Starts writing `path` in the format called `name` (`csv` stands for `alibaba`), compressed where
/// its suffix asks for that. A file that is already there is replaced when the new one is complete.
///
/// Errors: an unknown format or option, with the nearest known one; a format whose files are not
/// compressed as a whole; the operating system's.
pub fn create_writer(
    name: &str,
    path: &Path,
    options: &BTreeMap<String, String>,
) -> Result<Box<dyn TraceWriter>, TraceError> {
    let wanted = if name == "csv" { "alibaba" } else { name };
    let names: Vec<&str> = WRITE_FORMATS.iter().map(|entry| entry.name).collect();
    let refuse = |key: &str, found: &str, known: &[&str]| TraceError::Option {
        key: key.to_owned(),
        found: found.to_owned(),
        expected: match nearest(found, known.iter().copied()) {
            Some(near) => format!("one that can be written; nearest is `{near}`"),
            None if known.is_empty() => "no option here".to_owned(),
            None => format!("one of {}", known.join(", ")),
        },
    };
    let entry = WRITE_FORMATS
        .iter()
        .find(|entry| entry.name == wanted)
        .ok_or_else(|| refuse("format", name, &names))?;
    let keys: Vec<&str> = (entry.options)().iter().map(|key| key.name).collect();
    if let Some(key) = options.keys().find(|key| !keys.contains(&key.as_str())) {
        return Err(refuse("option", key, &keys));
    }
    match container_of(path) {
        Container::Plain => {}
        container if !entry.compressed => {
            return Err(TraceError::File {
                path: path.to_owned(),
                found: format!("a suffix of {} for the format {}", container.word(), entry.name),
                expected: "a name without it; pages are compressed (option `compression`)".into(),
            });
        }
        _ => {}
    }
    (entry.create)(path, options)
}

/// The refusal to complete a file of which no reader could take anything.
fn nothing_to_write(path: &Path, left_out: u64) -> TraceError {
    let found = match left_out {
        0 => "no request to write".to_owned(),
        count => format!("no request that the format can hold ({count} left out)"),
    };
    TraceError::File { path: path.to_owned(), found, expected: "one or more requests".to_owned() }
}

const ZSTD_LEVEL: i32 = 3;
const XZ_LEVEL: u32 = 6;

/// A file being written.
struct TraceSink {
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
    fn create(target: &Path, container: Container) -> Result<TraceSink, TraceError> {
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
    fn target(&self) -> &Path {
        &self.target
    }

    /// Appends bytes. Errors: the operating system's.
    fn put(&mut self, bytes: &[u8]) -> Result<(), TraceError> {
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
    fn commit(self) -> Result<(), TraceError> {
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
fn failed(path: &Path, source: io::Error) -> TraceError {
    TraceError::Io { path: path.to_owned(), source }
}

/// Suffixes that ask for compression.
pub const COMPRESSIONS: [(&str, Container); 4] = [
    (".gz", Container::Gzip),
    (".zst", Container::Zstd),
    (".xz", Container::Xz),
    (".bz2", Container::Bzip2),
];

/// The format that the suffix of `path` names. Errors: no format has that suffix.
pub fn format_by_suffix(path: &Path) -> Result<&'static str, TraceError> {
    let name = lower_name(path);
    let (name, _) = split(&name);
    let fits =
        |entry: &&WriteEntry| entry.suffixes.iter().any(|suffix| name.ends_with(&lower(suffix)));
    WRITE_FORMATS.iter().find(fits).map(|entry| entry.name).ok_or_else(|| TraceError::File {
        path: path.to_owned(),
        found: "a name whose suffix is that of no format".to_owned(),
        expected: format!("{}, or a format by its name", known()),
    })
}

/// How the suffix of `path` asks for the file to be compressed.
fn container_of(path: &Path) -> Container {
    split(&lower_name(path)).1
}

/// All suffixes in words.
fn known() -> String {
    let compressions = COMPRESSIONS.map(|(suffix, _)| suffix).join(", ");
    let list = |compressed: bool| {
        let entries = WRITE_FORMATS.iter().filter(|entry| entry.compressed == compressed);
        let suffixes: Vec<&str> = entries.flat_map(|entry| entry.suffixes).copied().collect();
        suffixes.join(", ")
    };
    format!("{}, or {} with or without {compressions}", list(false), list(true))
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

fn lower_name(path: &Path) -> String {
    path.file_name().map(|name| lower(&name.to_string_lossy())).unwrap_or_default()
}

/// The name without a suffix of compression, and what that suffix asks for.
fn split(name: &str) -> (&str, Container) {
    let found = COMPRESSIONS
        .iter()
        .find_map(|(suffix, container)| Some((name.strip_suffix(suffix)?, *container)));
    found.unwrap_or((name, Container::Plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::testing::directory;
    use crate::formats::testing::record;
    use crate::{OpenOptions, Record, open};
    use cachewright_types::Op;

    fn batch(records: &[Record]) -> Batch {
        let mut batch = Batch::default();
        records.iter().for_each(|record| batch.push(*record));
        batch
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// What comes back of a trace written in two pieces, and what the writer said.
    fn there_and_back(
        format: &str,
        records: &[Record],
        volumes: &[&str],
    ) -> Result<(Vec<Record>, Vec<String>, WriteSummary), TraceError> {
        let directory = directory();
        let path = directory.path().join("trace");
        std::fs::write(&path, "old").unwrap();
        let mut writer = create_writer(format, &path, &BTreeMap::new())?;
        let (first, second) = records.split_at(records.len() / 2);
        let volumes = names(volumes);
        for part in [first, second] {
            if let Err(error) = writer.write(&batch(part), &volumes) {
                drop(writer);
                assert_eq!(std::fs::read(&path).unwrap(), b"old");
                assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
                return Err(error);
            }
        }
        let written = writer.finish()?;
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file");
        let mut reader = open(&path, &OpenOptions::default())?;
        let mut read = Batch::default();
        while reader.read(&mut read, 2)? > 0 {}
        Ok((read.iter().collect(), reader.volumes().to_vec(), written))
    }

    fn all_kinds() -> Vec<Record> {
        vec![
            record(1_000, Op::Read, 4096, 512, 0),
            record(2_000, Op::Write, 0, 8192, 1),
            record(2_000, Op::Trim, 1 << 40, 1 << 30, 1),
            record(3_000, Op::Flush, 0, 0, 0),
        ]
    }

    #[test]
    fn parquet_and_csv_keep_every_request() {
        for format in ["parquet", "alibaba", "csv"] {
            let (read, volumes, written) =
                there_and_back(format, &all_kinds(), &["7", "300"]).unwrap();
            assert_eq!(read, all_kinds(), "{format}");
            assert_eq!(volumes, ["7", "300"]);
            assert_eq!(written, WriteSummary { requests: 4, left_out: 0, moved_s: 0 });
        }
    }

    #[test]
    fn csv_numbers_volumes_that_have_names() {
        let (_, volumes, _) = there_and_back("csv", &all_kinds(), &["web.3", "hm.0"]).unwrap();
        assert_eq!(volumes, ["0", "1"]);
        let error = there_and_back("csv", &all_kinds(), &["7", "hm.0"]).unwrap_err().to_string();
        assert!(error.contains("`hm.0`") && error.contains("`parquet`"), "{error}");
    }

    #[test]
    fn oracle_general_knows_the_next_access() {
        let directory = directory();
        let path = directory.path().join("trace");
        let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
        let at =
            |time_s: u64, op, sector: u64| record(time_s * 1_000_000_000, op, sector * 512, 512, 0);
        let records =
            [at(5, Op::Read, 7), at(5, Op::Write, 9), at(6, Op::Flush, 0), at(7, Op::Read, 7)];
        writer.write(&batch(&records), &names(&["a"])).unwrap();
        assert_eq!(writer.finish().unwrap(), WriteSummary { requests: 3, left_out: 1, moved_s: 0 });
        let bytes = std::fs::read(&path).unwrap();
        let next: Vec<i64> = bytes
            .chunks_exact(24)
            .map(|record| i64::from_le_bytes(record[16..].try_into().unwrap()))
            .collect();
        assert_eq!(next, [3, -1, -1], "1-based numbers");

        let bad = [
            (
                vec![at(1, Op::Read, 1), record(1, Op::Read, 512, 512, 1)],
                "a second volume in request 2",
            ),
            (vec![record(1, Op::Read, 513, 512, 0)], "offset 513 B"),
            (vec![record(1, Op::Read, 512, 1 << 32, 0)], "length 4294967296 B"),
            (vec![at(1, Op::Read, 1), at(1 << 32, Op::Read, 1)], "time 4294967296 s in request 2"),
        ];
        for (records, expected) in bad {
            let error = there_and_back("oracle-general", &records, &["a", "b"]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        let path = Path::new("unused");
        let error = create_writer("parqet", path, &BTreeMap::new()).err().unwrap().to_string();
        assert!(error.contains("nearest is `parquet`"), "{error}");
        let option = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let error = create_writer("parquet", path, &option("compresion", "lz4")).err().unwrap();
        assert!(error.to_string().contains("nearest is `compression`"), "{error}");
        let error = create_writer("parquet", path, &option("compression", "gzip")).err().unwrap();
        assert!(error.to_string().contains("one of none, lz4, zstd"), "{error}");
        assert!(create_writer("csv", path, &option("x", "1")).is_err());
        let missing = Path::new("/nonexistent-directory/trace");
        assert!(create_writer("csv", missing, &BTreeMap::new()).is_err());
    }

    #[test]
    fn a_suffix_of_compression_compresses() {
        let magics: [(&str, &[u8]); 4] = [
            ("gz", b"\x1f\x8b"),
            ("zst", b"\x28\xb5\x2f\xfd"),
            ("xz", b"\xfd7zXZ"),
            ("bz2", b"BZh"),
        ];
        let records: Vec<Record> =
            (0..5_000).map(|n| record(n * 1_000, Op::Read, n % 97 * 4096, 4096, 0)).collect();
        for format in ["alibaba", "oracle-general"] {
            let directory = directory();
            for (suffix, magic) in magics {
                let path = directory.path().join(format!("t.{suffix}"));
                let mut writer = create_writer(format, &path, &BTreeMap::new()).unwrap();
                writer.write(&batch(&records), &names(&["1"])).unwrap();
                assert_eq!(
                    writer.finish().unwrap(),
                    WriteSummary { requests: 5_000, left_out: 0, moved_s: 0 }
                );
                assert!(std::fs::read(&path).unwrap().starts_with(magic), "{format} {suffix}");
                let mut reader = open(&path, &OpenOptions::default()).unwrap();
                let mut read = Batch::default();
                while reader.read(&mut read, 1_000).unwrap() > 0 {}
                assert_eq!(read.offset_bytes, batch(&records).offset_bytes, "{format} {suffix}");
            }
        }
        let error = create_writer("parquet", Path::new("t.parquet.gz"), &BTreeMap::new()).err();
        let error = error.unwrap().to_string();
        assert!(error.starts_with("t.parquet.gz: found a suffix of gzip"), "{error}");
    }

    #[test]
    fn a_trace_without_a_request_is_not_written() {
        for format in ["parquet", "alibaba", "oracle-general"] {
            let directory = directory();
            let path = directory.path().join("trace");
            let writer = create_writer(format, &path, &BTreeMap::new()).unwrap();
            let error = writer.finish().unwrap_err().to_string();
            assert!(error.contains("no request"), "{format}: {error}");
            let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
            writer.write(&batch(&[record(1, Op::Flush, 0, 0, 0)]), &names(&["1"])).unwrap();
            let error = writer.finish().unwrap_err().to_string();
            assert!(error.contains("no request that the format can hold (1 left out)"), "{error}");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{format}");
        }
    }

    #[test]
    fn suffixes_name_formats_and_compression() {
        for (name, format, container) in [
            ("a.csv", "alibaba", Container::Plain),
            ("x/a.b.CSV.gz", "alibaba", Container::Gzip),
            ("a.parquet", "parquet", Container::Plain),
            ("w106.oracleGeneral", "oracle-general", Container::Plain),
            ("w106.oracleGeneral.bin.zst", "oracle-general", Container::Zstd),
            ("w106.oraclegeneral.xz", "oracle-general", Container::Xz),
            ("a.csv.bz2", "alibaba", Container::Bzip2),
        ] {
            assert_eq!(format_by_suffix(Path::new(name)).unwrap(), format, "{name}");
            assert_eq!(container_of(Path::new(name)), container, "{name}");
        }
        for name in ["a", "a.txt", "a.csv.", "csv", "a.bin", "a.gz", "a.csv.7z", "", "a.csv/x"] {
            let error = format_by_suffix(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(".parquet, or .csv, .oracleGeneral"), "{name}: {error}");
            assert!(error.contains(".gz, .zst, .xz, .bz2"), "{name}: {error}");
        }
    }
}
