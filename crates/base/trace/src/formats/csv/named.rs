//! The column map of a table whose columns have names but are no text.
//!
//! For: Parquet files of other programs. Must never know: types of columns. The options and the
//! names are those of the `csv` format; a missing unit is refused, never guessed.

use super::layout::{address_unit, defaults};
use super::names::{ColumnRole, columns_of_map, columns_of_names, names_of, split_unit};
use super::words::{Keep, Words};
use super::{CsvOptions, ROLES};
use crate::options::{bad_option, declared, shown};
use crate::units::TimeUnit;
use crate::{OpenOptions, TraceError};
use cachewright_types::declare::Declared;
use cachewright_types::{Key, Op};
use std::sync::Arc;

/// The options of `csv` that make sense without lines of text.
const OPTIONS: [&str; 11] = [
    "columns",
    "time_unit",
    "offset_unit",
    "length_unit",
    "read_words",
    "write_words",
    "trim_words",
    "flush_words",
    "keep",
    "default_op",
    "default_length",
];

/// The keys of the options of a column map.
pub(in crate::formats) fn keys() -> Vec<Key> {
    CsvOptions::keys().into_iter().filter(|key| OPTIONS.contains(&key.name)).collect()
}

/// The words of operations that `options` give, or the usual ones.
pub(in crate::formats) fn words(options: &OpenOptions) -> Result<Arc<Words>, TraceError> {
    let own: CsvOptions = declared(&options.format_options)?;
    Words::new(&own, options).map(Arc::new)
}

/// Which column holds what in which unit. Columns count from 0.
pub(in crate::formats) struct NamedColumns {
    pub(in crate::formats) time: Option<usize>,
    pub(in crate::formats) op: Option<usize>,
    pub(in crate::formats) offset: Option<usize>,
    pub(in crate::formats) length: Option<usize>,
    pub(in crate::formats) volume: Option<usize>,
    /// The unit of time that the user gave.
    pub(in crate::formats) given_time_unit: Option<TimeUnit>,
    /// The unit that the name of the column of times ends in.
    pub(in crate::formats) named_time_unit: Option<TimeUnit>,
    pub(in crate::formats) offset_unit_bytes: u64,
    pub(in crate::formats) length_unit_bytes: u64,
    /// What every request asks, if no column says it.
    pub(in crate::formats) default_op: Option<Op>,
    /// The length of every request, if no column says it.
    pub(in crate::formats) default_length_bytes: Option<u64>,
    pub(in crate::formats) words: Arc<Words>,
    keep: Option<Keep>,
}

impl NamedColumns {
    /// The map that `options` and the names give. Errors: a map that is incomplete, contradictory
    /// or names what is not there; a missing or unknown unit of addresses.
    pub(in crate::formats) fn new(
        names: &[&str],
        options: &OpenOptions,
    ) -> Result<NamedColumns, TraceError> {
        let own: CsvOptions = declared(&options.format_options)?;
        let simple: Vec<String> =
            names.iter().map(|name| names_of(name.as_bytes(), 0).concat()).collect();
        let columns: [u32; ROLES] = match own.columns.as_deref().unwrap_or_default() {
            "" => columns_of_names(&simple).map_err(|_| {
                let found = format!("nothing, and columns `{}`", listed(names));
                let expected = "a map such as `time=start,op=kind,offset=pos,length=len`, because \
                                no column's name is one of an offset";
                TraceError::Option { key: "columns".into(), found, expected: expected.into() }
            })?,
            map => columns_of_map(map, &simple)?,
        };
        if columns[ColumnRole::Count as usize] > 0 && own.columns.is_some() {
            let expected = "a map without `count`, which only text has";
            return Err(bad_option("columns", "count", expected));
        }
        let keep = Keep::new(own.keep.as_deref().unwrap_or_default(), &simple)?;
        let last = columns.iter().copied().chain(keep.as_ref().map(|keep| keep.column)).max();
        if let Some(column) = last.filter(|column| *column as usize > names.len()) {
            let expected = format!("a column from 1 to {}", names.len());
            return Err(bad_option("columns", &column.to_string(), expected));
        }
        let index = |role: ColumnRole| (columns[role as usize] as usize).checked_sub(1);
        let suffix = |role: ColumnRole| {
            let name = simple.get(index(role)?)?;
            split_unit(name).map(|(_, unit)| unit)
        };
        let (default_op, default_length_bytes) = defaults(&own, &columns)?;
        let length_unit_bytes = match default_length_bytes {
            Some(_) => 1,
            None => address_unit("length_unit", own.length_unit, suffix(ColumnRole::Length))?,
        };
        Ok(NamedColumns {
            time: index(ColumnRole::Time),
            op: index(ColumnRole::Op),
            offset: index(ColumnRole::Offset),
            length: index(ColumnRole::Length),
            volume: index(ColumnRole::Volume),
            given_time_unit: own.time_unit,
            named_time_unit: suffix(ColumnRole::Time).and_then(TimeUnit::parse),
            offset_unit_bytes: address_unit(
                "offset_unit",
                own.offset_unit,
                suffix(ColumnRole::Offset),
            )?,
            length_unit_bytes,
            default_op,
            default_length_bytes,
            words: Arc::new(Words::new(&own, options)?),
            keep,
        })
    }

    /// The column that says which rows are requests.
    pub(in crate::formats) fn keep_column(&self) -> Option<usize> {
        self.keep.as_ref().map(|keep| keep.column as usize - 1)
    }

    /// Whether a row whose deciding column holds `text` is a request.
    pub(in crate::formats) fn keeps(&self, text: &[u8]) -> bool {
        self.keep.as_ref().is_none_or(|keep| keep.has(text))
    }
}

/// At most 20 names, as shown in messages.
pub(in crate::formats) fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().take(20).map(|name| shown(name.as_bytes())).collect();
    names.join("`, `")
}
