//! Columns of a Parquet file: which holds which part of a request, and their values, row by row as
//! `u64` or as text.
//!
//! A column whose type cannot hold its part is refused by its name and type. Whole numbers in the
//! unit that is asked for are passed on as they stand, which is the fast path.

use super::file::{Fault, MappedColumn, PARTS, Part, value};
use crate::OpenOptions;
use crate::error::TraceError;
use crate::formats::csv::Words;
use crate::formats::csv::columns::{self, NamedColumns, listed};
use crate::native::COLUMNS;
use crate::reader::{bad_option, shown};
use crate::units::{TIME_UNITS, TimeUnit};
use cachewright_types::declare::ValueKind;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit as ParquetUnit, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};

use parquet::file::reader::FileReader;
use parquet::schema::types::ColumnDescriptor;
use std::path::Path;
use std::sync::Arc;

/// The parts of a request, in the order of [`COLUMNS`].
pub(super) const TIME: usize = 0;
pub(super) const OFFSET: usize = 1;
pub(super) const LENGTH: usize = 2;
pub(super) const OP: usize = 3;
pub(super) const VOLUME: usize = 4;

/// Where each part of a request comes from.
pub(super) struct FileColumns {
    pub(super) parts: [Part; PARTS],
    pub(super) keep: Option<MappedColumn>,
    /// Whether a column holds times.
    pub(super) has_times: bool,
    /// Whether operations are told by words.
    pub(super) by_words: bool,
}

impl FileColumns {
    /// The columns of `file`: the native ones where it has them and `options` map none, else those
    /// that the options or the names tell. Errors: a part without a column; a column of a type that
    /// cannot hold its part.
    pub(super) fn new(
        path: &Path,
        file: &dyn FileReader,
        options: &OpenOptions,
    ) -> Result<FileColumns, TraceError> {
        let schema = file.metadata().file_metadata().schema_descr();
        let paths: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
        let names: Vec<&str> = paths.iter().map(String::as_str).collect();
        let durations = value(file, KEY).map(durations);
        let known = Known { path, file, durations: durations.unwrap_or_default() };
        let native = COLUMNS.map(|name| names.iter().position(|known| *known == name));
        let is_native = native[..VOLUME].iter().all(Option::is_some);
        match native {
            [Some(time), Some(offset), Some(length), Some(op), volume]
                if is_native && options.format_options.is_empty() =>
            {
                let number = Meaning::Number { unit: 1 };
                let unit = TimeUnit::NANOSECOND;
                let words = op_words(columns::words(options)?);
                let (op, by_words) = known.operation(op, words, true)?;
                Ok(FileColumns {
                    parts: [
                        known.column(time, Meaning::Time { unit }, IS_TIME, A_TIME)?,
                        known.column(offset, number, IS_NUMBER, A_NUMBER)?,
                        known.column(length, Meaning::Number { unit: 1 }, IS_NUMBER, A_NUMBER)?,
                        op,
                        known.volume(volume)?,
                    ],
                    keep: None,
                    has_times: true,
                    by_words,
                })
            }
            _ => known.mapped(&names, options),
        }
    }
}

/// What a column may be.
type Fits = fn(ColumnType) -> bool;

const A_NUMBER: &str = "whole numbers";
const A_TIME: &str = "whole numbers, or times such as TIMESTAMP, DATE, TIME or INT96";
const IS_NUMBER: Fits =
    |kind| matches!(kind, ColumnType::Whole { .. } | ColumnType::Decimal { .. } | ColumnType::Real);
const IS_TIME: Fits = |kind| IS_NUMBER(kind) || has_unit(kind);
const IS_NAME: Fits = |kind| IS_NUMBER(kind) || kind == ColumnType::Text;
const IS_PLAIN: Fits = |kind| IS_NAME(kind) || kind == ColumnType::Truth;

/// Whether the type of a column of times says their unit.
fn has_unit(kind: ColumnType) -> bool {
    matches!(kind, ColumnType::Moment(_) | ColumnType::Julian)
}

/// The numbers of operations by their words.
fn op_words(words: Arc<Words>) -> WordNumbers {
    Box::new(move |text| words.op(text.trim_ascii()).map(|op| op as u64))
}

/// A file and what is known of its columns.
struct Known<'a> {
    path: &'a Path,
    file: &'a dyn FileReader,
    /// Columns whose bare integers are durations.
    durations: Vec<(String, TimeUnit)>,
}

impl Known<'_> {
    fn mapped(&self, names: &[&str], options: &OpenOptions) -> Result<FileColumns, TraceError> {
        let map =
            NamedColumns::new(names, options).map_err(|error| self.incomplete(error, names))?;
        let Some(offset) = map.offset else {
            return Err(bad_option("columns", "nothing", "a map with `offset`"));
        };
        let unit = map.offset_unit_bytes;
        let offset = self.column(offset, Meaning::Number { unit }, IS_NUMBER, A_NUMBER)?;
        let length = match (map.length, map.default_length_bytes) {
            (Some(length), None) => {
                let unit = map.length_unit_bytes;
                self.column(length, Meaning::Number { unit }, IS_NUMBER, A_NUMBER)?
            }
            (_, default) => Part::Same(default.unwrap_or(0)),
        };
        let (op, by_words) = match (map.op, map.default_op) {
            (Some(op), None) => self.operation(op, op_words(map.words.clone()), false)?,
            (_, default) => (Part::Same(default.map_or(0, |op| op as u64)), true),
        };
        let time = match map.time {
            Some(time) => self.time(time, &map)?,
            None => Part::Same(0),
        };
        let keep = match map.keep_column() {
            None => None,
            Some(leaf) => {
                let map = Arc::new(NamedColumns::new(names, options)?);
                let word = move |text: &[u8]| Some(u64::from(map.keeps(text.trim_ascii())));
                let meaning = Meaning::Words(Box::new(word));
                match self.column(leaf, meaning, IS_PLAIN, "text or numbers")? {
                    Part::Column(column) => Some(column),
                    Part::Same(_) => None,
                }
            }
        };
        let volume = self.volume(map.volume)?;
        Ok(FileColumns {
            parts: [time, offset, length, op, volume],
            keep,
            has_times: map.time.is_some(),
            by_words,
        })
    }

    /// The refusal of a map that lacks something, with the columns that there are.
    fn incomplete(&self, error: TraceError, names: &[&str]) -> TraceError {
        match error {
            TraceError::Option { key, found, expected } if found == "nothing" => {
                let there = listed(names);
                TraceError::Option {
                    key,
                    found: format!("nothing, and columns `{there}` in {}", self.path.display()),
                    expected,
                }
            }
            error => error,
        }
    }

    /// A column of times, in the unit of its type, else of the options or its name.
    fn time(&self, leaf: usize, map: &NamedColumns) -> Result<Part, TraceError> {
        let kind = self.kind(leaf, A_TIME)?;
        let unit = match (has_unit(kind), map.given_time_unit) {
            (true, None) => TimeUnit::NANOSECOND,
            (true, Some(given)) => {
                let given = given.value().map(|value| value.plain()).unwrap_or_default();
                let words = type_words(&self.descriptor(leaf));
                let expected = format!("nothing, because the column is of type {words}");
                return Err(bad_option("time_unit", &given, expected));
            }
            (false, given) => given
                .or(map.named_time_unit)
                .ok_or_else(|| bad_option("time_unit", "nothing", TIME_UNITS))?,
        };
        self.column(leaf, Meaning::Time { unit }, IS_TIME, A_TIME)
    }

    /// A column of operations, and whether it is read by words; native numbers are no words.
    fn operation(
        &self,
        leaf: usize,
        words: WordNumbers,
        is_native: bool,
    ) -> Result<(Part, bool), TraceError> {
        let expected = "words such as read and write, or whole numbers";
        let by_words = !is_native || self.kind(leaf, expected)? == ColumnType::Text;
        let meaning = if by_words { Meaning::Words(words) } else { Meaning::Number { unit: 1 } };
        Ok((self.column(leaf, meaning, IS_NAME, expected)?, by_words))
    }

    fn volume(&self, leaf: Option<usize>) -> Result<Part, TraceError> {
        match leaf {
            Some(leaf) => {
                self.column(leaf, Meaning::Number { unit: 1 }, IS_NAME, "names or whole numbers")
            }
            None => Ok(Part::Same(0)),
        }
    }

    fn descriptor(&self, leaf: usize) -> parquet::schema::types::ColumnDescPtr {
        self.file.metadata().file_metadata().schema_descr().column(leaf)
    }

    /// The type of a column. Errors: one that is never read.
    fn kind(&self, leaf: usize, expected: &str) -> Result<ColumnType, TraceError> {
        let descriptor = self.descriptor(leaf);
        let duration = self.durations.iter().find(|(name, _)| name == descriptor.name());
        ColumnType::new(&descriptor, duration.map(|(_, unit)| *unit))
            .map_err(|words| self.wrong_type(leaf, &words, expected))
    }

    fn column(
        &self,
        leaf: usize,
        meaning: Meaning,
        fits: Fits,
        expected: &str,
    ) -> Result<Part, TraceError> {
        let kind = self.kind(leaf, expected)?;
        let descriptor = self.descriptor(leaf);
        if !fits(kind) {
            return Err(self.wrong_type(leaf, &type_words(&descriptor), expected));
        }
        let name = shown(descriptor.path().string().as_bytes());
        Ok(Part::Column(MappedColumn { leaf, name, kind, meaning }))
    }

    fn wrong_type(&self, leaf: usize, words: &str, expected: &str) -> TraceError {
        let name = shown(self.descriptor(leaf).path().string().as_bytes());
        TraceError::File {
            path: self.path.to_owned(),
            found: format!("column `{name}` of type {words}"),
            expected: expected.to_owned(),
        }
    }
}

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
        Cell::Digits(digits) => crate::reader::shown(digits.as_bytes()),
        Cell::Text(text) => crate::reader::shown(text),
        Cell::Null => "null".to_owned(),
    }
}

/// The key of the schema in the file's metadata: base64 of an encapsulated message.
pub(super) const KEY: &str = "ARROW:schema";
/// Columns looked at.
const FIELDS_LIMIT: usize = 1 << 16;
/// `Type.Duration` of `Schema.fbs`.
const DURATION: u8 = 18;
/// What marks the length of a message that follows.
const CONTINUATION: u32 = u32::MAX;

/// The columns of durations by name, with their units. Parquet has no type for durations; the Arrow
/// schema that writers keep beside it has one (`Schema.fbs` and `Message.fbs`, the FlatBuffers
/// binary format). A schema that cannot be read says nothing.
pub(super) fn durations(text: &str) -> Vec<(String, TimeUnit)> {
    base64(text).and_then(|bytes| of_message(&bytes)).unwrap_or_default()
}

fn of_message(bytes: &[u8]) -> Option<Vec<(String, TimeUnit)>> {
    let start = if u32_at(bytes, 0)? == CONTINUATION { 8 } else { 4 };
    let buffer = bytes.get(start..)?;
    let message = Table { buffer, position: u32_at(buffer, 0)? as usize };
    let schema = message.table(2)?;
    let fields = schema.pointed(1)?;
    let count = u32_at(buffer, fields)? as usize;
    let mut found = Vec::new();
    for index in 0..count.min(FIELDS_LIMIT) {
        let field = Table { buffer, position: pointed(buffer, fields + 4 + 4 * index)? };
        if field.byte(2) == Some(DURATION) {
            // The unit that is left out is the default, milliseconds.
            let unit = field.table(3)?.byte(0).unwrap_or(1);
            let unit = ["s", "ms", "us", "ns"].get(usize::from(unit)).copied()?;
            found.push((field.text(0)?, TimeUnit::parse(unit)?));
        }
    }
    Some(found)
}

/// A table of a FlatBuffer; nothing is there that lies outside the buffer.
struct Table<'a> {
    buffer: &'a [u8],
    position: usize,
}

impl<'a> Table<'a> {
    /// Where field `index` is, if the table has it.
    fn place(&self, index: usize) -> Option<usize> {
        let back = u32_at(self.buffer, self.position)?.cast_signed();
        let fields = usize::try_from(self.position as i64 - i64::from(back)).ok()?;
        let entry = 4 + 2 * index;
        if entry + 2 > usize::from(u16_at(self.buffer, fields)?) {
            return None;
        }
        match u16_at(self.buffer, fields + entry)? {
            0 => None,
            offset => Some(self.position + usize::from(offset)),
        }
    }

    fn byte(&self, index: usize) -> Option<u8> {
        self.buffer.get(self.place(index)?).copied()
    }

    fn pointed(&self, index: usize) -> Option<usize> {
        pointed(self.buffer, self.place(index)?)
    }

    fn table(&self, index: usize) -> Option<Table<'a>> {
        Some(Table { buffer: self.buffer, position: self.pointed(index)? })
    }

    fn text(&self, index: usize) -> Option<String> {
        let position = self.pointed(index)?;
        let end = (position + 4).checked_add(u32_at(self.buffer, position)? as usize)?;
        String::from_utf8(self.buffer.get(position + 4..end)?.to_vec()).ok()
    }
}

/// Where the offset at `place` points to.
fn pointed(buffer: &[u8], place: usize) -> Option<usize> {
    place.checked_add(u32_at(buffer, place)? as usize)
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    bytes.get(position..position.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    bytes.get(position..position.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

/// The bytes of a base64 text (RFC 4648, with or without padding).
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
