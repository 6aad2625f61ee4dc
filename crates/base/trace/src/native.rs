//! The native format: a Parquet file whose columns are a batch's columns.
//!
//! For: column names, types and metadata keys, stated once for reader and writer. Must never know:
//! how columns are encoded. Units are the last word of each column's name. The full description is
//! docs/trace-format.md.

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

/// File metadata: the names of the volumes as a JSON list of strings.
pub const VOLUMES_KEY: &str = "cachewright.volumes";
/// File metadata: the version of this schema.
pub const VERSION_KEY: &str = "cachewright.version";
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
    Ok(Arc::new(Type::group_type_builder("trace").with_fields(fields).build()?))
}
