//! The column map of a CSV, or of another table whose columns have names: from options, or from the
//! names themselves.
//!
//! Units are taken from an option, else from the suffix of a header's name, else refused.

use super::{CsvHeader, CsvOptions, DefaultOp, Keep, NOTHING, OffsetKind, TIME, Words, next_field};
use crate::clock::{Clock, ClockOptions, is_date};
use crate::reader::{bad_option, declared, shown};
use crate::text::{Header, is_comment, is_header, whole_lines};
use crate::units::{ADDRESS_UNITS, AddressUnit, TIME_UNITS, TimeUnit, address_unit_bytes};
use crate::{OpenOptions, TraceError};
use cachewright_types::declare::{Declared, ValueKind};
use cachewright_types::{Key, Op, nearest};
use std::sync::Arc;

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
    let op = default("default_op", own.default_op, columns, ColumnRole::Op)?;
    let op = op.map(|op| match op {
        DefaultOp::Read => Op::Read,
        DefaultOp::Write => Op::Write,
    });
    let length = default("default_length", own.default_length, columns, ColumnRole::Length)?;
    Ok((op, length.map(|bytes| bytes.0)))
}

/// A default of what the column of a role says, 0 for none. Errors: both are there, or neither.
fn default<T: ValueKind>(
    key: &str,
    value: Option<T>,
    columns: &[u32; ROLES],
    role: ColumnRole,
) -> Result<Option<T>, TraceError> {
    match (columns[role as usize], &value) {
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

/// Which column of a table that is no text (a Parquet file of another program) holds what in which
/// unit: by the options and names of the `csv` format. Columns count from 0.
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

/// Number of [`ColumnRole`]s.
pub(super) const ROLES: usize = 6;
/// Columns further right cannot be mapped.
const COLUMNS_LIMIT: usize = 1024;
pub(super) const ROLE_NAMES: [&str; ROLES] = ["time", "op", "offset", "length", "volume", "count"];
/// Header names, without unit, that stand for each role.
const ALIASES: [&[&str]; ROLES] = [
    &["time", "timestamp", "ts", "t", "arrival", "arrival_time"],
    &["op", "opcode", "operation", "type", "io_type", "iotype", "rw"],
    &["offset", "lba", "lbn", "address", "addr", "sector", "start_sector"],
    &["length", "len", "size", "nr_sectors", "sectors", "bytes", "nr_bytes", "nbytes"],
    &["volume", "vol", "volume_id", "device", "device_id", "dev", "disk", "lun", "node", "asu"],
    &["op_count", "count", "repeats"],
];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnRole {
    Time = 0,
    Op = 1,
    Offset = 2,
    Length = 3,
    Volume = 4,
    /// How often the request is made.
    Count = 5,
}

pub(super) const ALL_ROLES: [ColumnRole; ROLES] = [
    ColumnRole::Time,
    ColumnRole::Op,
    ColumnRole::Offset,
    ColumnRole::Length,
    ColumnRole::Volume,
    ColumnRole::Count,
];

/// The names in a header, lower case, words joined by `_`, a unit in parentheses as a suffix.
pub(super) fn names_of(line: &[u8], delimiter: u8) -> Vec<String> {
    let mut rest = Some(line);
    let mut names = Vec::new();
    while let Some(field) = next_field(&mut rest, delimiter) {
        let text = String::from_utf8_lossy(field).to_lowercase();
        let words = text.split(|c: char| c.is_whitespace() || "()-_[]#".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        names.push(words.join("_"));
    }
    names.truncate(COLUMNS_LIMIT);
    names
}

/// A header's name as what it holds and the unit it ends in, if that is a known one. A name that is
/// a unit itself (`sector`, `nr_bytes`) stands for both.
pub(super) fn split_unit(name: &str) -> Option<(&str, &'static str)> {
    match name {
        "sector" | "sectors" => return Some((name, "sector")),
        "bytes" | "nbytes" => return Some((name, "B")),
        _ => {}
    }
    let (base, suffix) = name.rsplit_once('_')?;
    let unit = match suffix {
        "ps" => "ps",
        "ns" | "nanoseconds" => "ns",
        "us" | "microseconds" => "us",
        "ms" | "milliseconds" => "ms",
        "s" | "sec" | "seconds" => "s",
        "b" | "byte" | "bytes" => "B",
        "sector" | "sectors" => "sector",
        "kib" => "1KiB",
        _ => return None,
    };
    Some((base, unit))
}

/// Parts of names that make a column likely to have a role, where no name stands for it.
const LIKELY: [&[&str]; ROLES] = [
    &["time", "date", "clock", "_ts", "ts_", "start"],
    &["op", "type", "rw", "cmd", "command", "action", "read", "write", "kind"],
    &["offset", "lba", "lbn", "sector", "addr", "block", "blk", "key", "obj", "pos"],
    &["len", "size", "byte", "sectors", "count", "nblk", "blocks"],
    &[],
    &[],
];

/// The columns by names that stand for a role or sound like it; 0 for none.
pub(super) fn likely(names: &[String]) -> [u32; ROLES] {
    let mut columns = named(names);
    for (role, parts) in LIKELY.iter().enumerate() {
        if columns[role] > 0 {
            continue;
        }
        let fits = |index: &usize| {
            let is_free = !columns.contains(&(*index as u32 + 1));
            is_free && parts.iter().any(|part| names[*index].contains(part))
        };
        // A row holds more numbers of bytes than that of the request; the first one is likely.
        columns[role] = (0..names.len()).find(fits).map_or(0, |index| index as u32 + 1);
    }
    columns
}

/// The columns by the names of a header; each role takes the first name that stands for it.
fn named(names: &[String]) -> [u32; ROLES] {
    let position = |aliases: &[&str]| {
        let stands = |name: &String| {
            let base = split_unit(name).map_or(name.as_str(), |(base, _)| base);
            aliases.contains(&base) || aliases.contains(&name.as_str())
        };
        names.iter().position(stands).map_or(0, |index| index as u32 + 1)
    };
    ALIASES.map(position)
}

/// The columns by the names of a header. Errors: none of an offset.
pub(super) fn columns_of_names(names: &[String]) -> Result<[u32; ROLES], TraceError> {
    let columns = named(names);
    match columns[ColumnRole::Offset as usize] {
        0 => Err(bad_option(
            "columns",
            "nothing",
            "a map such as `time=1,op=2,offset=3,length=4`, because no header names an offset",
        )),
        _ => Ok(columns),
    }
}

/// The columns by the user's map, whose places are numbers or names of the header.
pub(super) fn columns_of_map(map: &str, names: &[String]) -> Result<[u32; ROLES], TraceError> {
    let mut columns = [0; ROLES];
    for part in map.split(',').map(str::trim) {
        let Some((role, place)) = part.split_once('=') else {
            return Err(bad_option("columns", part, "`role=column`, as in `offset=3`"));
        };
        let (role, place) = (role.trim(), place.trim());
        let Some(role) = ROLE_NAMES.iter().position(|name| *name == role) else {
            let near = nearest(role, ROLE_NAMES).map(|near| format!("; nearest is `{near}`"));
            let expected = format!("one of {}{}", ROLE_NAMES.join(", "), near.unwrap_or_default());
            return Err(bad_option("columns", role, expected));
        };
        let column = column_at("columns", part, place, names)?;
        if columns.contains(&column) {
            let expected = format!("each column once (this is column {column} twice)");
            return Err(bad_option("columns", part, expected));
        }
        columns[role] = column;
    }
    if columns[ColumnRole::Offset as usize] == 0 {
        return Err(bad_option("columns", map, "a map with `offset`"));
    }
    Ok(columns)
}

/// The column called or numbered `place`; `key` and `part` are for messages.
pub(super) fn column_at(
    key: &str,
    part: &str,
    place: &str,
    names: &[String],
) -> Result<u32, TraceError> {
    if let Ok(number) = place.parse::<u32>() {
        return match number as usize {
            1..=COLUMNS_LIMIT => Ok(number),
            _ => Err(bad_option(key, part, "a column from 1 to 1024")),
        };
    }
    let wanted = names_of(place.as_bytes(), 0).concat();
    match names.iter().position(|name| *name == wanted) {
        Some(index) => Ok(index as u32 + 1),
        None => {
            let expected = match nearest(&wanted, names.iter().map(String::as_str)) {
                Some(near) => {
                    format!("a name of the header; nearest is `{}`", shown(near.as_bytes()))
                }
                None if names.is_empty() => "a number, because there is no header".to_owned(),
                None => format!("a name of the header: {}", shown(names.join(", ").as_bytes())),
            };
            Err(bad_option(key, part, expected))
        }
    }
}
