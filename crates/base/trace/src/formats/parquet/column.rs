//! One column of a Parquet row group, row by row as `u64` or as text.
//!
//! For: physical and logical types, units, signs, nulls. Must never know: which requests are good.
//! Whole numbers in the unit that is asked for are passed on as they stand, which is the fast path.

use super::directory::Fault;
use crate::units::TimeUnit;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit as ParquetUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use parquet::schema::types::ColumnDescriptor;

/// Days from the beginning of the Julian count to 1970, the epoch of INT96.
const JULIAN_DAYS: i128 = 2_440_588;
const DAY_NS: i128 = 86_400_000_000_000;

/// What the values of a column are, whatever holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    /// Whole numbers.
    Whole {
        /// Whether they may be below zero.
        signed: bool,
    },
    /// Whole numbers of which the last `scale` digits stand behind the point.
    Decimal {
        /// Digits behind the point.
        scale: u32,
    },
    /// Binary floating point.
    Real,
    /// Text of any kind.
    Text,
    /// True or false.
    Truth,
    /// Times or durations in a unit.
    Moment(TimeUnit),
    /// INT96: nanoseconds of a Julian day.
    Julian,
}

impl ColumnType {
    /// The type of a column; `duration` is its unit if it is known to hold durations. Errors: what
    /// the column is instead.
    pub(super) fn new(
        column: &ColumnDescriptor,
        duration: Option<TimeUnit>,
    ) -> Result<ColumnType, String> {
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err("lists or groups".to_owned());
        }
        let physical = column.physical_type();
        let other = || Err(type_words(column));
        let decimal = |scale: i32| match u32::try_from(scale) {
            Ok(scale) if scale <= 38 => Ok(ColumnType::Decimal { scale }),
            _ => other(),
        };
        let is_integer = matches!(physical, Physical::INT32 | Physical::INT64);
        let moment = |unit: TimeUnit| match is_integer {
            true => Ok(ColumnType::Moment(unit)),
            false => other(),
        };
        match column.logical_type_ref() {
            Some(LogicalType::Timestamp(kind) | LogicalType::Time(kind)) => {
                return moment(match kind.unit {
                    ParquetUnit::MILLIS => TimeUnit::MILLISECOND,
                    ParquetUnit::MICROS => TimeUnit::MICROSECOND,
                    ParquetUnit::NANOS => TimeUnit::NANOSECOND,
                });
            }
            Some(LogicalType::Date) => return moment(TimeUnit::DAY),
            Some(LogicalType::Decimal(kind)) => return decimal(kind.scale),
            Some(LogicalType::Integer(kind)) if is_integer => {
                return Ok(ColumnType::Whole { signed: kind.is_signed });
            }
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)
                if physical == Physical::BYTE_ARRAY =>
            {
                return Ok(ColumnType::Text);
            }
            // A column of nulls alone may have any type.
            None | Some(LogicalType::Unknown) => {}
            Some(_) => return other(),
        }
        match (column.converted_type(), physical) {
            (ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIME_MILLIS, _) => {
                moment(TimeUnit::MILLISECOND)
            }
            (ConvertedType::TIMESTAMP_MICROS | ConvertedType::TIME_MICROS, _) => {
                moment(TimeUnit::MICROSECOND)
            }
            (ConvertedType::DATE, _) => moment(TimeUnit::DAY),
            (ConvertedType::DECIMAL, _) => decimal(column.type_scale()),
            (converted, Physical::INT32 | Physical::INT64) => match duration {
                Some(unit) => Ok(ColumnType::Moment(unit)),
                None => Ok(ColumnType::Whole { signed: !is_unsigned(converted) }),
            },
            (_, Physical::FLOAT | Physical::DOUBLE) => Ok(ColumnType::Real),
            (_, Physical::BYTE_ARRAY) => Ok(ColumnType::Text),
            (_, Physical::INT96) => Ok(ColumnType::Julian),
            (_, Physical::BOOLEAN) => Ok(ColumnType::Truth),
            (_, Physical::FIXED_LEN_BYTE_ARRAY) => other(),
        }
    }
}

fn is_unsigned(converted: ConvertedType) -> bool {
    matches!(
        converted,
        ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64
    )
}

/// The type of a column as Parquet calls it.
pub(super) fn type_words(column: &ColumnDescriptor) -> String {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(kind)), _) => format!("TIMESTAMP({:?})", kind.unit),
        (Some(LogicalType::Time(kind)), _) => format!("TIME({:?})", kind.unit),
        (Some(logical), _) => {
            let words = format!("{logical:?}");
            words.split(['(', ' ', '{']).next().unwrap_or_default().to_uppercase()
        }
        (None, ConvertedType::NONE) => column.physical_type().to_string(),
        (None, converted) => converted.to_string(),
    }
}

/// The number that a text stands for.
pub(super) type WordNumbers = Box<dyn Fn(&[u8]) -> Option<u64> + Send>;

/// What the values of a column become.
pub(super) enum Meaning {
    /// Numbers of a unit.
    Number {
        /// The unit.
        unit: u64,
    },
    /// Times in nanoseconds; the unit is that of bare numbers.
    Time {
        /// The unit.
        unit: TimeUnit,
    },
    /// Numbers by their texts; nothing for a text that means none.
    Words(WordNumbers),
}

/// A value that became no number.
pub(super) struct BadValue {
    /// Its row in the chunk.
    pub(super) row: usize,
    /// What it is.
    pub(super) found: String,
}

/// Values as the file has them.
enum Typed {
    Int32(ColumnReaderImpl<Int32Type>, Vec<i32>),
    Int64(ColumnReaderImpl<Int64Type>, Vec<i64>),
    Int96(ColumnReaderImpl<Int96Type>, Vec<Int96>),
    Float(ColumnReaderImpl<FloatType>, Vec<f32>),
    Double(ColumnReaderImpl<DoubleType>, Vec<f64>),
    Bool(ColumnReaderImpl<BoolType>, Vec<bool>),
    Bytes(ColumnReaderImpl<ByteArrayType>, Vec<ByteArray>),
    Fixed(ColumnReaderImpl<FixedLenByteArrayType>, Vec<parquet::data_type::FixedLenByteArray>),
}

/// One value.
enum Cell<'a> {
    Whole(i128),
    Digits(&'a str),
    Text(&'a [u8]),
    Null,
}

/// A column being read.
pub(super) struct ParquetColumn {
    typed: Typed,
    kind: ColumnType,
    /// Definition levels, read and judged only for nullable columns.
    levels: Vec<i16>,
    /// Whether the chunk read last has levels.
    has_levels: bool,
    /// The digits of a value.
    digits: String,
}

impl ParquetColumn {
    /// Starts reading the pages of a column of type `kind`. Errors: another physical type.
    pub(super) fn open(
        descriptor: &parquet::schema::types::ColumnDescPtr,
        pages: Box<dyn parquet::column::page::PageReader>,
        kind: ColumnType,
    ) -> ParquetColumn {
        let typed = match get_column_reader(descriptor.clone(), pages) {
            ColumnReader::Int32ColumnReader(reader) => Typed::Int32(reader, Vec::new()),
            ColumnReader::Int64ColumnReader(reader) => Typed::Int64(reader, Vec::new()),
            ColumnReader::Int96ColumnReader(reader) => Typed::Int96(reader, Vec::new()),
            ColumnReader::FloatColumnReader(reader) => Typed::Float(reader, Vec::new()),
            ColumnReader::DoubleColumnReader(reader) => Typed::Double(reader, Vec::new()),
            ColumnReader::BoolColumnReader(reader) => Typed::Bool(reader, Vec::new()),
            ColumnReader::ByteArrayColumnReader(reader) => Typed::Bytes(reader, Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Typed::Fixed(reader, Vec::new()),
        };
        let has_levels = descriptor.max_def_level() > 0;
        ParquetColumn { typed, kind, levels: Vec::new(), has_levels, digits: String::new() }
    }

    /// Appends exactly `count` values as `meaning` says; bad ones as 0 and to `bad`. Errors: the
    /// library's; fewer values.
    pub(super) fn read(
        &mut self,
        count: usize,
        meaning: &Meaning,
        into: &mut Vec<u64>,
        bad: &mut Vec<BadValue>,
    ) -> Result<(), Fault> {
        let is_full = self.decode(count)?;
        let as_it_stands = match meaning {
            Meaning::Number { unit } => *unit == 1,
            Meaning::Time { unit } => *unit == TimeUnit::NANOSECOND,
            Meaning::Words(_) => false,
        };
        if let (true, true, ColumnType::Whole { signed }) = (is_full, as_it_stands, self.kind) {
            match &self.typed {
                Typed::Int32(_, values) if !signed || values.iter().all(|value| *value >= 0) => {
                    into.extend(values.iter().map(|value| u64::from(value.cast_unsigned())));
                    return Ok(());
                }
                Typed::Int64(_, values) if !signed || values.iter().all(|value| *value >= 0) => {
                    into.extend(values.iter().map(|value| value.cast_unsigned()));
                    return Ok(());
                }
                _ => {}
            }
        }
        let kind = self.kind;
        self.each(count, |row, cell| {
            let value = match meaning {
                Meaning::Number { unit } => {
                    number(&cell).and_then(|value| value.checked_mul(*unit))
                }
                Meaning::Time { unit } => match kind {
                    ColumnType::Moment(unit) => time_ns(&cell, unit),
                    ColumnType::Julian => time_ns(&cell, TimeUnit::NANOSECOND),
                    _ => time_ns(&cell, *unit),
                },
                Meaning::Words(word) => match &cell {
                    Cell::Null => None,
                    Cell::Text(text) => word(text),
                    Cell::Digits(digits) => word(without_zeros(digits).as_bytes()),
                    Cell::Whole(value) => word(value.to_string().as_bytes()),
                },
            };
            if value.is_none() {
                bad.push(BadValue { row, found: shown_cell(&cell) });
            }
            into.push(value.unwrap_or(0));
        });
        Ok(())
    }

    /// Appends exactly `count` values as texts; nulls as empty ones and to `bad`.
    pub(super) fn read_texts(
        &mut self,
        count: usize,
        into: &mut Vec<Box<[u8]>>,
        bad: &mut Vec<BadValue>,
    ) -> Result<(), Fault> {
        self.decode(count)?;
        self.each(count, |row, cell| match cell {
            Cell::Text(text) => into.push(text.into()),
            Cell::Whole(value) => into.push(value.to_string().into_bytes().into()),
            Cell::Digits(digits) => into.push(without_zeros(digits).as_bytes().into()),
            Cell::Null => {
                bad.push(BadValue { row, found: shown_cell(&cell) });
                into.push(Box::default());
            }
        });
        Ok(())
    }

    /// Decodes exactly `count` rows; whether none of them is null.
    fn decode(&mut self, count: usize) -> Result<bool, Fault> {
        let levels = &mut self.levels;
        let (records, values) = match &mut self.typed {
            Typed::Int32(reader, values) => decode(reader, values, levels, count)?,
            Typed::Int64(reader, values) => decode(reader, values, levels, count)?,
            Typed::Int96(reader, values) => decode(reader, values, levels, count)?,
            Typed::Float(reader, values) => decode(reader, values, levels, count)?,
            Typed::Double(reader, values) => decode(reader, values, levels, count)?,
            Typed::Bool(reader, values) => decode(reader, values, levels, count)?,
            Typed::Bytes(reader, values) => decode(reader, values, levels, count)?,
            Typed::Fixed(reader, values) => decode(reader, values, levels, count)?,
        };
        let present = match self.has_levels {
            true => self.levels.iter().filter(|level| **level > 0).count(),
            false => count,
        };
        if records != count || values != present {
            let text = format!("{records} values where the row group has at least {count}");
            return Err(Fault::Damaged(text));
        }
        Ok(values == count)
    }

    /// Calls `take` with each row decoded and its value.
    fn each(&mut self, count: usize, mut take: impl FnMut(usize, Cell<'_>)) {
        let mut next = 0;
        for row in 0..count {
            let is_null = self.has_levels && self.levels.get(row).is_none_or(|level| *level == 0);
            if is_null {
                take(row, Cell::Null);
                continue;
            }
            take(row, cell(&self.typed, self.kind, next, &mut self.digits));
            next += 1;
        }
    }
}

/// Decodes up to `count` rows and returns how many rows and values that are.
fn decode<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    values: &mut Vec<T::T>,
    levels: &mut Vec<i16>,
    count: usize,
) -> Result<(usize, usize), Fault> {
    values.clear();
    levels.clear();
    let (records, present, _) = reader.read_records(count, Some(levels), None, values)?;
    Ok((records, present))
}

/// The value at `index`; `digits` is where those of a fraction are written.
fn cell<'a>(typed: &'a Typed, kind: ColumnType, index: usize, digits: &'a mut String) -> Cell<'a> {
    let whole = match typed {
        Typed::Int32(_, values) => match kind {
            ColumnType::Whole { signed: false } => i128::from(values[index].cast_unsigned()),
            _ => i128::from(values[index]),
        },
        Typed::Int64(_, values) => match kind {
            ColumnType::Whole { signed: false } => i128::from(values[index].cast_unsigned()),
            _ => i128::from(values[index]),
        },
        Typed::Int96(_, values) => match values[index].data() {
            [low, high, day] => {
                let of_day = i128::from(*high) << 32 | i128::from(*low);
                (i128::from(*day) - JULIAN_DAYS) * DAY_NS + of_day
            }
            _ => return Cell::Null,
        },
        // Adding zero makes a negative zero one without a sign.
        Typed::Float(_, values) => return written(digits, values[index] + 0.0),
        Typed::Double(_, values) => return written(digits, values[index] + 0.0),
        Typed::Bool(_, values) => {
            let text: &[u8] = if values[index] { b"true" } else { b"false" };
            return Cell::Text(text);
        }
        Typed::Bytes(_, values) => match kind {
            ColumnType::Decimal { .. } => match big_endian(values[index].data()) {
                Some(whole) => whole,
                None => return Cell::Text(b"a decimal of more than 38 digits"),
            },
            _ => return Cell::Text(values[index].data()),
        },
        Typed::Fixed(_, values) => match big_endian(values[index].data()) {
            Some(whole) => whole,
            None => return Cell::Text(b"a decimal of more than 38 digits"),
        },
    };
    match kind {
        ColumnType::Decimal { scale } if scale > 0 => {
            let scale_width = scale as usize;
            let text = format!("{:0>1$}", whole.unsigned_abs(), scale_width + 1);
            let (integer, fraction) = text.split_at(text.len() - scale_width);
            let sign = if whole < 0 { "-" } else { "" };
            written(digits, format_args!("{sign}{integer}.{fraction}"))
        }
        _ => Cell::Whole(whole),
    }
}

fn written(digits: &mut String, value: impl std::fmt::Display) -> Cell<'_> {
    use std::fmt::Write as _;
    digits.clear();
    // Writing into a string cannot fail.
    let _ = write!(digits, "{value}");
    Cell::Digits(digits)
}

/// A two's complement number of up to 16 bytes, the most significant first.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [fill; 16];
    let from = wide.len().checked_sub(bytes.len())?;
    wide[from..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

/// `digits` without a fraction of zeros alone.
fn without_zeros(digits: &str) -> &str {
    match digits.split_once('.') {
        Some((integer, fraction)) if fraction.bytes().all(|digit| digit == b'0') => integer,
        _ => digits,
    }
}

/// A whole number from 0.
fn number(cell: &Cell<'_>) -> Option<u64> {
    match cell {
        Cell::Whole(value) => u64::try_from(*value).ok(),
        Cell::Digits(digits) => without_zeros(digits).parse().ok(),
        Cell::Text(_) | Cell::Null => None,
    }
}

/// A time in units, in nanoseconds; a fraction of a nanosecond is no time.
fn time_ns(cell: &Cell<'_>, unit: TimeUnit) -> Option<u64> {
    match cell {
        Cell::Whole(value) => unit.ticks_ns(u64::try_from(*value).ok()?),
        Cell::Digits(digits) if unit == TimeUnit::NANOSECOND => without_zeros(digits).parse().ok(),
        Cell::Digits(digits) => unit.decimal_ns(digits.as_bytes()),
        Cell::Text(_) | Cell::Null => None,
    }
}

fn shown_cell(cell: &Cell<'_>) -> String {
    match cell {
        Cell::Whole(value) => value.to_string(),
        Cell::Digits(digits) => crate::options::shown(digits.as_bytes()),
        Cell::Text(text) => crate::options::shown(text),
        Cell::Null => "null".to_owned(),
    }
}
