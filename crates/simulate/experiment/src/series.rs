//! Time series to Parquet.
//!
//! For: `series.parquet` of a result directory. Must never know: what the numbers mean. Schema:
//! `case`, `window`, `tenant` as UINT_32 (tenant 4294967295 = all), `time_ns`, `accesses`, `hits`,
//! `occupancy_blocks`, `quota_blocks` as UINT_64, `state` as UINT_32 (0 none, 1 supply, 2 demand,
//! 3 stable); one row group.

use crate::ExperimentError;
use crate::part::PartialFile;
use cachewright_result::series::SeriesRow;
use cachewright_system::Row;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = "message series {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 accesses (UINT_64);
    REQUIRED INT64 hits (UINT_64);
    REQUIRED INT64 occupancy_blocks (UINT_64);
    REQUIRED INT64 quota_blocks (UINT_64);
    REQUIRED INT32 state (UINT_32);
}";

/// Rows of several cases: (case, row).
pub type Rows = Vec<(u32, Row)>;
/// The columns of a file that are being written.
pub(crate) type RowGroupWriter<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes the rows; the file appears whole or not at all.
pub fn write(path: &Path, rows: &Rows) -> Result<(), ExperimentError> {
    write_file(path, SCHEMA, |group| columns(group, rows))
}

/// Writes a file of one row group, whose columns `fill` writes in the order of `schema`; it appears
/// whole or not at all.
pub(crate) fn write_file(
    path: &Path,
    schema: &str,
    fill: impl FnOnce(&mut RowGroupWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), ExperimentError> {
    let part = PartialFile::new(path);
    let file = File::create(part.path()).map_err(|error| part.failure(&error))?;
    write_to(file, schema, fill).map_err(|error| part.failure(&error))?;
    part.finish()
}

fn write_to(
    file: File,
    schema: &str,
    fill: impl FnOnce(&mut RowGroupWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(schema)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_created_by(format!("cachewright {}", crate::VERSION))
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    fill(&mut group)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn columns(group: &mut RowGroupWriter<'_>, rows: &Rows) -> Result<(), ParquetError> {
    column::<Int32Type, _, _>(group, rows, |(case, _)| *case as i32)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.window as i32)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.time_ns as i64)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.tenant as i32)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.accesses as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.hits as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.occupancy_blocks as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.quota_blocks as i64)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.state as i32)
}

/// Writes rows of numbers in order, as wide as `schema` says; returns whether there are any, since
/// without them there is no file.
pub(crate) fn write_numbers<const N: usize>(
    path: &Path,
    schema: &str,
    rows: &mut [[u64; N]],
) -> Result<bool, ExperimentError> {
    rows.sort_unstable();
    if rows.is_empty() {
        return Ok(false);
    }
    write_file(path, schema, |group| {
        for place in 0..N {
            let Some(mut column) = group.next_column()? else { break };
            let values = rows.iter().map(|row| row[place]);
            if let ColumnWriter::Int32ColumnWriter(narrow) = column.untyped() {
                let values: Vec<i32> = values.map(|value| value as i32).collect();
                narrow.write_batch(&values, None, None)?;
            } else {
                let values: Vec<i64> = values.map(|value| value as i64).collect();
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            column.close()?;
        }
        Ok(())
    })?;
    Ok(true)
}

/// Writes the next column of a group.
pub(crate) fn column<D: DataType, R, F: Fn(&R) -> D::T>(
    group: &mut RowGroupWriter<'_>,
    rows: &[R],
    value: F,
) -> Result<(), ParquetError> {
    let values: Vec<D::T> = rows.iter().map(value).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<D>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

/// The rows as a result without a directory has them.
pub fn plain_rows(rows: &Rows) -> Vec<SeriesRow> {
    let plain = |(case, row): &(u32, Row)| {
        let (held, quota, state) = (row.occupancy_blocks, row.quota_blocks, row.state as u8);
        let (accesses, hits) = (row.accesses, row.hits);
        (*case, row.window, row.time_ns, row.tenant, accesses, hits, held, quota, state)
    };
    rows.iter().map(plain).collect()
}
