//! Which column of a Parquet file holds which part of a request.
//!
//! For: the native columns by their names, and those of other programs by a column map. Must never
//! know: values. A column whose type cannot hold its part is refused by its name and type.

use super::arrow_schema;
use super::column::{ColumnType, Meaning, WordNumbers, type_words};
use super::directory::value;
use super::row_groups::{MappedColumn, PARTS, Part};
use crate::OpenOptions;
use crate::error::TraceError;
use crate::formats::csv::named::{self, NamedColumns, listed};
use crate::formats::csv::words::Words;
use crate::native::COLUMNS;
use crate::options::{bad_option, shown};
use crate::units::{TIME_UNITS, TimeUnit};
use cachewright_types::declare::ValueKind;
use parquet::file::reader::FileReader;
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
        let durations = value(file, arrow_schema::KEY).map(arrow_schema::durations);
        let known = Known { path, file, durations: durations.unwrap_or_default() };
        let native = COLUMNS.map(|name| names.iter().position(|known| *known == name));
        let is_native = native[..VOLUME].iter().all(Option::is_some);
        match native {
            [Some(time), Some(offset), Some(length), Some(op), volume]
                if is_native && options.format_options.is_empty() =>
            {
                let number = Meaning::Number { unit: 1 };
                let unit = TimeUnit::NANOSECOND;
                let words = op_words(named::words(options)?);
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
