//! The column map of a CSV: from options, or from the names in its header.
//!
//! For: deciding, before the first record, which column holds what in which unit. Must never know:
//! records. Units are taken from an option, else from the suffix of a header's name, else refused.

use super::names::{
    ALL_ROLES, ColumnRole, ROLE_NAMES, ROLES, columns_of_map, columns_of_names, names_of,
    split_unit,
};
use super::words::{Keep, Words};
use super::{CsvHeader, CsvOptions, DefaultOp};
use crate::options::{bad_option, declared};
use crate::text::{is_header, whole_lines};
use crate::units::{ADDRESS_UNITS, AddressUnit, TIME_UNITS, TimeUnit, address_unit_bytes};
use crate::{OpenOptions, TraceError};
use cachewright_types::Op;
use cachewright_types::declare::ValueKind;

/// What is found where nothing says something.
const NOTHING: &str = "nothing";
/// Which column holds what.
pub(super) struct ColumnLayout {
    /// The role of each column, up to the last that has one.
    pub(super) roles: Vec<Option<ColumnRole>>,
    /// The 1-based column of each role, 0 for none.
    columns: [u32; ROLES],
    pub(super) delimiter: u8,
    /// Whether the first line is a header; nothing: if it holds words only.
    pub(super) has_header: Option<bool>,
    /// Nothing if no column holds the time.
    pub(super) time_unit: Option<TimeUnit>,
    pub(super) offset_unit_bytes: u64,
    pub(super) length_unit_bytes: u64,
    /// What every record asks, if no column says it.
    pub(super) default_op: Option<Op>,
    /// The length of every record, if no column says it.
    pub(super) default_length_bytes: Option<u64>,
    pub(super) words: Words,
    /// Which rows are requests; nothing: all.
    pub(super) keep: Option<Keep>,
}

impl ColumnLayout {
    /// The map that `options` and the first line of `head` give. Errors: a map that is incomplete,
    /// contradictory or names what the header does not have; a missing or unknown unit.
    pub(super) fn new(head: &[u8], options: &OpenOptions) -> Result<ColumnLayout, TraceError> {
        let own: CsvOptions = declared(&options.format_options)?;
        let first_line = whole_lines(head).next().unwrap_or_default();
        let delimiter = own.delimiter.resolve(first_line);
        let has_header = match own.header {
            CsvHeader::Auto => None,
            CsvHeader::Yes => Some(true),
            CsvHeader::No => Some(false),
        };
        let names = match has_header.unwrap_or_else(|| is_header(first_line)) {
            true => names_of(first_line, delimiter),
            false => Vec::new(),
        };
        let columns = match own.columns.as_deref().unwrap_or_default() {
            "" => columns_of_names(&names)?,
            map => columns_of_map(map, &names)?,
        };
        let unit_of = |role: ColumnRole| {
            let index = (columns[role as usize] as usize).checked_sub(1)?;
            names.get(index).and_then(|name| split_unit(name)).map(|(_, unit)| unit)
        };
        let time_unit = match columns[ColumnRole::Time as usize] {
            0 => None,
            _ => Some(time_unit(own.time_unit, unit_of(ColumnRole::Time))?),
        };
        let (default_op, default_length_bytes) = defaults(&own, &columns)?;
        let length_unit_bytes = match default_length_bytes {
            Some(_) => 1,
            None => address_unit("length_unit", own.length_unit, unit_of(ColumnRole::Length))?,
        };
        let keep = Keep::new(own.keep.as_deref().unwrap_or_default(), &names)?;
        let offset_unit = unit_of(ColumnRole::Offset);
        Ok(ColumnLayout {
            roles: roles_of(&columns, keep.as_ref().map_or(0, |keep| keep.column)),
            columns,
            delimiter,
            has_header,
            time_unit,
            offset_unit_bytes: address_unit("offset_unit", own.offset_unit, offset_unit)?,
            length_unit_bytes,
            default_op,
            default_length_bytes,
            words: Words::new(&own, options)?,
            keep,
        })
    }

    /// The 1-based column of `role`, 0 for none.
    #[inline]
    pub(super) fn column(&self, role: ColumnRole) -> u32 {
        self.columns[role as usize]
    }

    /// Whether every part of a record but its volume has a column, so that nothing was assumed.
    pub(super) fn is_self_describing(&self) -> bool {
        self.columns[..ColumnRole::Volume as usize].iter().all(|column| *column > 0)
    }
}

/// What every record asks and how long it is, where no column says it.
pub(super) fn defaults(
    own: &CsvOptions,
    columns: &[u32; ROLES],
) -> Result<(Option<Op>, Option<u64>), TraceError> {
    let column = |role: ColumnRole| columns[role as usize];
    let op = default("default_op", own.default_op, (column(ColumnRole::Op), ColumnRole::Op))?;
    let op = op.map(|op| match op {
        DefaultOp::Read => Op::Read,
        DefaultOp::Write => Op::Write,
    });
    let length = (column(ColumnRole::Length), ColumnRole::Length);
    let length = default("default_length", own.default_length, length)?;
    Ok((op, length.map(|bytes| bytes.0)))
}

/// A default of what the column of a role says, 0 for none. Errors: both are there, or neither.
fn default<T: ValueKind>(
    key: &str,
    value: Option<T>,
    (column, role): (u32, ColumnRole),
) -> Result<Option<T>, TraceError> {
    match (column, &value) {
        (0, None) => {
            let role = ROLE_NAMES[role as usize];
            Err(bad_option(key, NOTHING, format!("a value, or a column for `{role}`")))
        }
        (0, Some(_)) | (_, None) => Ok(value),
        (_, Some(given)) => {
            let text = given.value().map(|value| value.plain()).unwrap_or_default();
            Err(bad_option(key, &text, "nothing, because a column says it"))
        }
    }
}

/// The role of each column up to the last that has one, or up to `until`.
fn roles_of(columns: &[u32; ROLES], until: u32) -> Vec<Option<ColumnRole>> {
    let last = columns.iter().copied().max().unwrap_or(0).max(until);
    let role_at = |column| ALL_ROLES.into_iter().find(|role| columns[*role as usize] == column);
    (1..=last).map(role_at).collect()
}

/// The unit of time by option, else by the suffix of the header's name.
fn time_unit(given: Option<TimeUnit>, suffix: Option<&str>) -> Result<TimeUnit, TraceError> {
    let unit = given.or_else(|| suffix.and_then(TimeUnit::parse));
    unit.ok_or_else(|| bad_option("time_unit", suffix.unwrap_or(NOTHING), TIME_UNITS))
}

/// The same for a unit of addresses.
pub(super) fn address_unit(
    key: &str,
    given: Option<AddressUnit>,
    suffix: Option<&str>,
) -> Result<u64, TraceError> {
    let unit = given.map(|unit| unit.0).or_else(|| suffix.and_then(address_unit_bytes));
    unit.ok_or_else(|| bad_option(key, suffix.unwrap_or(NOTHING), ADDRESS_UNITS))
}
