//! The native Parquet format, written.
//!
//! Schema: [`crate::native`].
//!
//! Requests are gathered into row groups of 2^20. The default encoding of each column, and the
//! compression of pages, follow from measurements of size and reading speed (docs/trace-format.md).
//! Both can be chosen. A file that is to outlive a kill has a directory behind each part that was
//! kept; the last one counts, and those before are bytes that no reader looks at.

use super::atomic::AtomicFile;
use super::{TraceWriter, WriteSummary, nothing_to_write};
use crate::native::{self, COLUMNS, Checksums};
use crate::reader::declared;
use crate::{Batch, TraceError};
use cachewright_types::{choices, declare};
use parquet::basic::{Compression as PageCompression, Encoding as PageEncoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
};

use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests per row group; a reader that skips needs no finer grain, a writer no more memory.
const ROW_GROUP: usize = 1 << 20;
const PAGE_BYTES: usize = 256 << 10;
const CREATED_BY: &str = concat!("cachewright ", env!("CARGO_PKG_VERSION"));

declare! {
    /// Options of writing.
    pub struct ParquetOptions {
        /// of pages: `zstd` is smaller and slower than `lz4`
        compression: Compression = Compression::Lz4, "";
        /// of times: `delta` is smaller, `plain` is faster
        encoding: ColumnEncoding = ColumnEncoding::Delta, "";
        /// `none` where the trace has no times: readers of the file then say so
        times: TimeColumn = TimeColumn::Recorded, "";
    }
}

choices! {
    /// How pages are compressed.
    pub enum Compression {
        /// Not at all.
        None = "none",
        /// LZ4 (the format's LZ4_RAW).
        Lz4 = "lz4",
        /// Zstandard level 3.
        Zstd = "zstd",
    }
}

choices! {
    /// How the column of times is encoded.
    pub enum ColumnEncoding {
        /// DELTA_BINARY_PACKED.
        Delta = "delta",
        /// PLAIN.
        Plain = "plain",
    }
}

choices! {
    /// Whether the trace has times.
    pub enum TimeColumn {
        /// It has.
        Recorded = "recorded",
        /// It has none.
        None = "none",
    }
}

/// Writes the native format.
pub struct ParquetWriter {
    writer: SerializedFileWriter<HashedWriter>,
    path: PathBuf,
    gathered: Batch,
    volumes: Vec<String>,
    requests: u64,
    /// Checksum of each row group's bytes.
    groups: Vec<u32>,
    /// Row groups of the last directory.
    kept_groups: usize,
    has_times: bool,
}

/// A file and the checksum of what was written to it since that was last taken.
struct HashedWriter {
    file: AtomicFile,
    crc: crc32fast::Hasher,
}

impl Write for HashedWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.crc.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl ParquetWriter {
    /// Starts a file that will be called `path`. Errors: the operating system's; a value of an
    /// option that is refused.
    pub fn create(
        path: &Path,
        options: &BTreeMap<String, String>,
    ) -> Result<ParquetWriter, TraceError> {
        let own: ParquetOptions = declared(options)?;
        let writer = ParquetWriter::with(path, own.compression, own.encoding)?;
        Ok(ParquetWriter { has_times: own.times == TimeColumn::Recorded, ..writer })
    }

    /// The same with the choices as types. Errors: the operating system's.
    pub fn with(
        path: &Path,
        compression: Compression,
        encoding: ColumnEncoding,
    ) -> Result<ParquetWriter, TraceError> {
        let file = HashedWriter { file: AtomicFile::create(path)?, crc: crc32fast::Hasher::new() };
        let writer = native::schema()
            .and_then(|schema| {
                let properties = Arc::new(properties(compression, encoding)?);
                SerializedFileWriter::new(file, schema, properties)
            })
            .map_err(|error| failed(path, error))?;
        Ok(ParquetWriter {
            writer,
            path: path.to_owned(),
            gathered: Batch::default(),
            volumes: Vec::new(),
            requests: 0,
            groups: Vec::new(),
            kept_groups: 0,
            has_times: true,
        })
    }

    /// The checksum of the bytes written since the last call.
    fn taken(&mut self) -> ParquetResult<u32> {
        self.writer.flush()?;
        Ok(std::mem::take(&mut self.writer.inner_mut().crc).finalize())
    }

    fn write_row_group(&mut self) -> ParquetResult<()> {
        self.taken()?;
        let start = self.writer.bytes_written() as u64;
        let batch = &self.gathered;
        let mut group = self.writer.next_row_group()?;
        let mut wide: Vec<i64> = Vec::with_capacity(batch.len());
        let mut narrow: Vec<i32> = Vec::with_capacity(batch.len());
        for name in COLUMNS {
            let Some(mut column) = group.next_column()? else {
                return Err(ParquetError::General(format!("no column {name} in the schema")));
            };
            wide.clear();
            narrow.clear();
            // The bits are kept: the logical type says that they are unsigned.
            match name {
                native::TIME => wide.extend(batch.time_ns.iter().map(|x| x.cast_signed())),
                native::OFFSET => wide.extend(batch.offset_bytes.iter().map(|x| x.cast_signed())),
                native::LENGTH => wide.extend(batch.length_bytes.iter().map(|x| x.cast_signed())),
                native::OP => narrow.extend(batch.op.iter().map(|op| i32::from(*op as u8))),
                _ => narrow.extend(batch.volume.iter().map(|x| x.cast_signed())),
            }
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(typed) => typed.write_batch(&wide, None, None)?,
                ColumnWriter::Int32ColumnWriter(typed) => typed.write_batch(&narrow, None, None)?,
                _ => return Err(ParquetError::General(format!("column {name} of another type"))),
            };
            column.close()?;
        }
        let place = native::range(group.close()?.as_ref());
        if place != Some(start..self.writer.bytes_written() as u64) {
            return Err(ParquetError::General("a row group with bytes of no column".to_owned()));
        }
        let crc = self.taken()?;
        self.groups.push(crc);
        self.gathered.clear();
        Ok(())
    }

    /// The metadata of a file that has all row groups written so far.
    fn metadata(&self) -> ParquetResult<Vec<KeyValue>> {
        let names = serde_json::to_string(&self.volumes)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        let mut metadata = vec![
            KeyValue::new(native::VERSION_KEY.to_owned(), native::VERSION.to_owned()),
            KeyValue::new(native::VOLUMES_KEY.to_owned(), names),
        ];
        if !self.has_times {
            let (key, value) = (native::TIMES_KEY.to_owned(), native::NO_TIMES.to_owned());
            metadata.push(KeyValue::new(key, value));
        }
        let groups = self.groups.clone();
        let checksums = Checksums::compute(self.writer.flushed_row_groups(), groups, &metadata);
        // It comes first: damage to the length of this list cuts off its end.
        metadata.insert(0, KeyValue::new(native::CHECKSUM_KEY.to_owned(), checksums.text()));
        Ok(metadata)
    }

    /// Writes the directory of all row groups so far, behind which the file goes on.
    fn write_directory(&mut self) -> ParquetResult<()> {
        if !self.gathered.is_empty() {
            self.write_row_group()?;
        }
        if self.kept_groups == self.groups.len() {
            return Ok(());
        }
        let row_groups = self.writer.flushed_row_groups().to_vec();
        let requests = row_groups.iter().map(RowGroupMetaData::num_rows).sum();
        let schema = Arc::new(self.writer.schema_descr().clone());
        let (version, by) = (self.writer.properties().writer_version().as_num(), CREATED_BY);
        let pairs = Some(self.metadata()?);
        let file = FileMetaData::new(version, requests, Some(by.to_owned()), pairs, schema, None);
        let directory = ParquetMetaDataBuilder::new(file).set_row_groups(row_groups).build();
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &directory).finish()?;
        self.writer.write_all(&bytes)?;
        self.writer.flush()?;
        self.writer.inner_mut().file.sync()?;
        self.kept_groups = self.groups.len();
        Ok(())
    }

    fn complete(mut self) -> ParquetResult<(AtomicFile, WriteSummary)> {
        if !self.gathered.is_empty() {
            self.write_row_group()?;
        }
        let metadata = self.metadata()?;
        metadata.into_iter().for_each(|pair| self.writer.append_key_value_metadata(pair));
        let written = WriteSummary { requests: self.requests, left_out: 0, moved_s: 0 };
        Ok((self.writer.into_inner()?.file, written))
    }
}

impl TraceWriter for ParquetWriter {
    fn write(&mut self, batch: &Batch, volumes: &[String]) -> Result<(), TraceError> {
        if volumes.len() != self.volumes.len() {
            self.volumes = volumes.to_vec();
        }
        let mut start = 0;
        while start < batch.len() {
            let end = batch.len().min(start + ROW_GROUP - self.gathered.len());
            let to = &mut self.gathered;
            to.time_ns.extend_from_slice(&batch.time_ns[start..end]);
            to.offset_bytes.extend_from_slice(&batch.offset_bytes[start..end]);
            to.length_bytes.extend_from_slice(&batch.length_bytes[start..end]);
            to.op.extend_from_slice(&batch.op[start..end]);
            to.volume.extend_from_slice(&batch.volume[start..end]);
            if self.gathered.len() == ROW_GROUP {
                self.write_row_group().map_err(|error| failed(&self.path, error))?;
            }
            start = end;
        }
        self.requests += batch.len() as u64;
        Ok(())
    }

    fn keep(&mut self) -> Result<(), TraceError> {
        self.write_directory().map_err(|error| failed(&self.path, error))
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, TraceError> {
        let path = self.path.clone();
        if self.requests == 0 {
            return Err(nothing_to_write(&path, 0));
        }
        let (file, written) = self.complete().map_err(|error| failed(&path, error))?;
        file.commit()?;
        Ok(written)
    }
}

fn properties(
    compression: Compression,
    encoding: ColumnEncoding,
) -> ParquetResult<WriterProperties> {
    let mut builder = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_data_page_size_limit(PAGE_BYTES)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_compression(match compression {
            Compression::None => PageCompression::UNCOMPRESSED,
            Compression::Lz4 => PageCompression::LZ4_RAW,
            Compression::Zstd => PageCompression::ZSTD(ZstdLevel::try_new(3)?),
        });
    let time = ColumnPath::from(native::TIME);
    builder = builder.set_column_dictionary_enabled(time.clone(), false).set_column_encoding(
        time,
        match encoding {
            ColumnEncoding::Delta => PageEncoding::DELTA_BINARY_PACKED,
            ColumnEncoding::Plain => PageEncoding::PLAIN,
        },
    );
    let offset = ColumnPath::from(native::OFFSET);
    builder = builder
        .set_column_dictionary_enabled(offset.clone(), false)
        .set_column_encoding(offset, PageEncoding::PLAIN);
    Ok(builder.build())
}

fn failed(path: &Path, error: ParquetError) -> TraceError {
    let source = std::io::Error::other(error);
    TraceError::Io { path: path.to_owned(), source }
}
