//! The native format: a Parquet file whose columns are a batch's columns.
//!
//! For: column names, types and metadata keys, stated once for reader and writer. Must never know:
//! how columns are encoded. Units are the last word of each column's name. The full description is
//! docs/trace-format.md.

pub(crate) mod checksum;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Nanoseconds in the trace's own epoch, unsigned 64 bits.
pub const TIME: &str = "time_ns";
/// First byte, unsigned 64 bits.
pub const OFFSET: &str = "offset_bytes";
/// Length in bytes, unsigned 64 bits; 0 for a flush.
pub const LENGTH: &str = "length_bytes";
/// 0 read, 1 write, 2 trim, 3 flush; unsigned 8 bits.
pub const OP: &str = "op";
/// Index into the list of [`VOLUMES_KEY`], unsigned 32 bits.
pub const VOLUME: &str = "volume";
/// All columns, in the order written.
pub const COLUMNS: [&str; 5] = [TIME, OFFSET, LENGTH, OP, VOLUME];

/// The name of the schema of files with checksums: such a file without them is damaged.
pub const SCHEMA_NAME: &str = "cachewright";
/// File metadata: the names of the volumes as a JSON list of strings.
pub const VOLUMES_KEY: &str = "cachewright.volumes";
/// File metadata: the version of this schema.
pub const VERSION_KEY: &str = "cachewright.version";
/// File metadata: checksums of the row groups and of the directory, see [`checksum`].
pub const CHECKSUM_KEY: &str = "cachewright.crc32";
/// File metadata: `none` where the trace has no times, so that `time_ns` is the request's number.
pub const TIMES_KEY: &str = "cachewright.times";
/// The value of [`TIMES_KEY`] that says so.
pub const NO_TIMES: &str = "none";
/// The version written, and the only one read.
pub const VERSION: &str = "1";

/// The schema as written: five required columns.
pub(crate) fn schema() -> Result<TypePtr> {
    let column = |name: &str, physical: Physical, bit_width: i8| -> Result<TypePtr> {
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(Some(LogicalType::integer(bit_width, false)))
            .build()?;
        Ok(Arc::new(column))
    };
    let fields = vec![
        column(TIME, Physical::INT64, 64)?,
        column(OFFSET, Physical::INT64, 64)?,
        column(LENGTH, Physical::INT64, 64)?,
        column(OP, Physical::INT32, 8)?,
        column(VOLUME, Physical::INT32, 32)?,
    ];
    Ok(Arc::new(Type::group_type_builder(SCHEMA_NAME).with_fields(fields).build()?))
}
