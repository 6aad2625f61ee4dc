//! One whole-number column of a Parquet row group as `u64`.
//!
//! For: physical types, signs and nulls. Must never know: what a column means.

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use parquet::schema::types::ColumnDescriptor;

/// Values as the file has them.
enum Typed {
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
}

/// A column being read.
pub(super) struct ParquetColumn {
    typed: Typed,
    signed: bool,
    /// Definition levels, read and judged only for nullable columns.
    levels: Vec<i16>,
}

/// Accepts flat columns of whole numbers; else says what the column is.
pub(super) fn check(column: &ColumnDescriptor) -> Result<(), String> {
    let name = column.name();
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return Err(format!("column `{name}` of lists or groups"));
    }
    let whole = match column.logical_type_ref() {
        Some(LogicalType::Integer(_)) => true,
        Some(_) => false,
        None => !matches!(column.converted_type(), ConvertedType::DECIMAL),
    };
    match column.physical_type() {
        Physical::INT32 | Physical::INT64 if whole => Ok(()),
        other => Err(format!("column `{name}` of type {other}, not of whole numbers")),
    }
}

fn signed(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(kind)) => kind.is_signed,
        _ => !matches!(
            column.converted_type(),
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        ),
    }
}

impl ParquetColumn {
    /// Starts reading leaf `leaf`, which [`check`] accepted. Errors: the library's.
    pub(super) fn open(group: &dyn RowGroupReader, leaf: usize) -> Result<ParquetColumn, String> {
        let descriptor = group.metadata().column(leaf).column_descr_ptr();
        let typed = match group.get_column_reader(leaf).map_err(|error| error.to_string())? {
            ColumnReader::Int32ColumnReader(reader) => Typed::Int32(reader, Vec::new()),
            ColumnReader::Int64ColumnReader(reader) => Typed::Int64(reader, Vec::new()),
            _ => return Err("another type than the schema says".to_owned()),
        };
        Ok(ParquetColumn { typed, signed: signed(&descriptor), levels: Vec::new() })
    }

    /// Appends exactly `count` values. Errors: the library's; fewer values; a null; a negative
    /// number.
    pub(super) fn read(&mut self, count: usize, into: &mut Vec<u64>) -> Result<(), String> {
        self.levels.clear();
        let levels = Some(&mut self.levels);
        let (records, values) = match &mut self.typed {
            Typed::Int32(reader, values) => {
                values.clear();
                let read = reader.read_records(count, levels, None, values);
                let (records, present, _) = read.map_err(|error| error.to_string())?;
                let negative = self.signed && values.iter().any(|value| *value < 0);
                refuse_negative(negative)?;
                into.extend(values.iter().map(|value| u64::from(value.cast_unsigned())));
                (records, present)
            }
            Typed::Int64(reader, values) => {
                values.clear();
                let read = reader.read_records(count, levels, None, values);
                let (records, present, _) = read.map_err(|error| error.to_string())?;
                let negative = self.signed && values.iter().any(|value| *value < 0);
                refuse_negative(negative)?;
                into.extend(values.iter().map(|value| value.cast_unsigned()));
                (records, present)
            }
        };
        if values < records {
            return Err(format!("{} nulls, expected none", records - values));
        }
        if records != count || into.len() < count {
            return Err(format!("{records} values where the row group has at least {count}"));
        }
        Ok(())
    }
}

fn refuse_negative(negative: bool) -> Result<(), String> {
    if negative { Err("a negative number, expected one from 0".to_owned()) } else { Ok(()) }
}
