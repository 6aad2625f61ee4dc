//! The column map of a CSV: from options, or from the names in its header.
//!
//! For: deciding, before the first record, which column holds what in which unit. Must never know:
//! records. Units are taken from an option, else from the suffix of a header's name, else refused.

use super::names::{
    ALL_ROLES, ColumnRole, ROLE_NAMES, ROLES, columns_of_map, columns_of_names, names_of,
    split_unit,
};
use super::words::{Keep, Words};
use super::{CsvHeader, CsvOptions, DefaultOp, NOTHING, OffsetKind, TIME, next_field};
use crate::clock::{Clock, ClockOptions, is_date};
use crate::options::{bad_option, declared};
use crate::text::{Header, is_comment, is_header, whole_lines};
use crate::units::{ADDRESS_UNITS, AddressUnit, TIME_UNITS, TimeUnit, address_unit_bytes};
use crate::{OpenOptions, TraceError};
use cachewright_types::Op;
use cachewright_types::declare::ValueKind;

/// Which column holds what.
#[derive(Clone)]
pub(super) struct ColumnLayout {
    /// The role of each column, up to the last that has one.
    pub(super) roles: Vec<Option<ColumnRole>>,
    /// The 1-based column of each role, 0 for none.
    columns: [u32; ROLES],
    pub(super) delimiter: u8,
    /// Whether the first line that is no comment is a header.
    pub(super) header: Header,
    /// Nothing if no column holds the time.
    pub(super) clock: Option<Clock>,
    pub(super) offset_unit_bytes: u64,
    pub(super) length_unit_bytes: u64,
    /// What every record asks, if no column says it.
    pub(super) default_op: Option<Op>,
    /// The length of every record, if no column says it.
    pub(super) default_length_bytes: Option<u64>,
    pub(super) words: Words,
    /// Which rows are requests; nothing: all.
    pub(super) keep: Option<Keep>,
    /// The column of offsets holds names.
    pub(super) has_names: bool,
}

/// How a CSV begins: its comments, its header, its first rows.
pub(super) struct Beginning<'a> {
    pub(super) delimiter: u8,
    pub(super) header: Header,
    /// The names in the header; none without a header.
    pub(super) names: Vec<String>,
    /// The lines behind the header that are no comments.
    pub(super) rows: Vec<&'a [u8]>,
}

/// Rows looked at before reading.
const ROWS: usize = 64;

impl<'a> Beginning<'a> {
    /// The beginning of a file with this `head`.
    ///
    /// The header is the first line that is no comment. A comment is one if it stands right before
    /// a row that is no header and has as many fields (`#time,op,offset`).
    pub(super) fn new(head: &'a [u8], own: &CsvOptions) -> Beginning<'a> {
        let mut comment: Option<&[u8]> = None;
        let mut rows = Vec::new();
        for line in whole_lines(head) {
            match is_comment(line) {
                true if rows.is_empty() => comment = Some(line),
                true => {}
                false => rows.push(line),
            }
            if rows.len() > ROWS {
                break;
            }
        }
        let first = rows.first().copied().or(comment).unwrap_or_default();
        let delimiter = own.delimiter.resolve(first);
        let bare = |line: &'a [u8]| line.trim_ascii_start().strip_prefix(b"#").unwrap_or(line);
        let comment = comment.map(bare).filter(|line| {
            let fields = count_fields(line, delimiter);
            is_header(line) && fields == count_fields(first, delimiter)
        });
        let header = match (own.header, comment) {
            (CsvHeader::No, _) => Header::Never,
            (CsvHeader::Yes, Some(_)) => Header::Never,
            (CsvHeader::Yes, None) => Header::Always,
            (CsvHeader::Auto, Some(_)) if !is_header(first) => Header::Never,
            (CsvHeader::Auto, _) => Header::IfWords,
        };
        let names = match (header, comment) {
            (Header::Never, Some(line)) if own.header != CsvHeader::No => names_of(line, delimiter),
            (Header::Never, _) => Vec::new(),
            (Header::IfWords, _) if !is_header(first) => Vec::new(),
            (Header::IfWords | Header::Always, _) => {
                rows.drain(..rows.len().min(1));
                names_of(first, delimiter)
            }
        };
        Beginning { delimiter, header, names, rows }
    }

    /// The field in column `column` (from 1) of row `index`.
    pub(super) fn field(&self, index: usize, column: u32) -> Option<&'a [u8]> {
        let mut rest = Some(*self.rows.get(index)?);
        let mut field = None;
        for _ in 0..column {
            field = Some(next_field(&mut rest, self.delimiter)?);
        }
        field
    }
}

fn count_fields(line: &[u8], delimiter: u8) -> usize {
    let mut rest = Some(line);
    std::iter::from_fn(|| next_field(&mut rest, delimiter)).count()
}

impl ColumnLayout {
    /// The map that `options` and the beginning of `head` give. Errors: a map that is incomplete,
    /// contradictory or names what the header does not have; a missing or unknown unit.
    pub(super) fn new(head: &[u8], options: &OpenOptions) -> Result<ColumnLayout, TraceError> {
        let own: CsvOptions = declared(&options.format_options)?;
        let beginning = Beginning::new(head, &own);
        let names = &beginning.names;
        let columns = match own.columns.as_deref().unwrap_or_default() {
            "" => columns_of_names(names)?,
            map => columns_of_map(map, names)?,
        };
        let unit_of = |role: ColumnRole| {
            let index = (columns[role as usize] as usize).checked_sub(1)?;
            names.get(index).and_then(|name| split_unit(name)).map(|(_, unit)| unit)
        };
        let clock = match columns[ColumnRole::Time as usize] {
            0 => None,
            column => {
                let first = beginning.field(0, column).unwrap_or_default();
                Some(clock(&own, unit_of(ColumnRole::Time), first)?)
            }
        };
        let (default_op, default_length_bytes) = defaults(&own, &columns)?;
        let length_unit_bytes = match default_length_bytes {
            Some(_) => 1,
            None => address_unit("length_unit", own.length_unit, unit_of(ColumnRole::Length))?,
        };
        let keep = Keep::new(own.keep.as_deref().unwrap_or_default(), names)?;
        let has_names = own.ids == OffsetKind::Words;
        let offset_unit_bytes = match (has_names, own.offset_unit) {
            // Names stand as far apart as the longest request, so that no two share a block.
            (true, None) => default_length_bytes.unwrap_or(options.max_request.0),
            (_, given) => address_unit("offset_unit", given, unit_of(ColumnRole::Offset))?,
        };
        Ok(ColumnLayout {
            roles: roles_of(&columns, keep.as_ref().map_or(0, |keep| keep.column)),
            columns,
            delimiter: beginning.delimiter,
            header: beginning.header,
            clock,
            offset_unit_bytes,
            length_unit_bytes,
            default_op,
            default_length_bytes,
            words: Words::new(&own, options)?,
            keep,
            has_names,
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

/// The clock by option, else by the suffix of the header's name, else of dates if the first row has
/// one.
fn clock(own: &CsvOptions, suffix: Option<&str>, first: &[u8]) -> Result<Clock, TraceError> {
    let time_unit = own.time_unit.or_else(|| suffix.and_then(TimeUnit::parse));
    let given = ClockOptions { time_unit, time_shift: own.time_shift };
    match time_unit {
        Some(unit) => Ok(Clock::new(&given, unit, TIME)),
        None if is_date(first) => Ok(Clock::dates(&given)),
        None => Err(bad_option("time_unit", suffix.unwrap_or(NOTHING), TIME_UNITS)),
    }
}

/// A unit of addresses by option, else by the suffix of the header's name.
pub(super) fn address_unit(
    key: &str,
    given: Option<AddressUnit>,
    suffix: Option<&str>,
) -> Result<u64, TraceError> {
    let unit = given.map(|unit| unit.0).or_else(|| suffix.and_then(address_unit_bytes));
    unit.ok_or_else(|| bad_option(key, suffix.unwrap_or(NOTHING), ADDRESS_UNITS))
}
