//! The column map of a CSV: from options, or from the names in its header.
//!
//! For: deciding, before the first record, which column holds what in which unit. Must never know:
//! records. Units are taken from an option, else from the suffix of a header's name, else refused.

use super::{CsvHeader, CsvOptions, DefaultOp, next_field};
use crate::fields::BLANKS;
use crate::options::{bad_option, declared, shown};
use crate::text::{is_header, whole_lines};
use crate::units::{ADDRESS_UNITS, AddressUnit, TIME_UNITS, TimeUnit, address_unit_bytes};
use crate::{OpenOptions, TraceError};
use cachewright_types::declare::{Kind, Mismatch};
use cachewright_types::{Op, Value, nearest};

/// Number of [`ColumnRole`]s.
pub(super) const ROLES: usize = 5;
/// Columns further right cannot be mapped.
const COLUMNS_LIMIT: usize = 1024;
/// What is found where nothing says something.
const NOTHING: &str = "nothing";
const ROLE_NAMES: [&str; ROLES] = ["time", "op", "offset", "length", "volume"];
/// Header names, without unit, that stand for each role.
const ALIASES: [&[&str]; ROLES] = [
    &["time", "timestamp", "ts", "t", "arrival", "arrival_time"],
    &["op", "opcode", "operation", "type", "io_type", "iotype", "rw"],
    &["offset", "lba", "lbn", "address", "addr"],
    &["length", "len", "size"],
    &["volume", "vol", "volume_id", "device", "device_id", "dev", "disk", "lun", "node", "asu"],
];

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnRole {
    Time = 0,
    Op = 1,
    Offset = 2,
    Length = 3,
    Volume = 4,
}

const ALL_ROLES: [ColumnRole; ROLES] =
    [ColumnRole::Time, ColumnRole::Op, ColumnRole::Offset, ColumnRole::Length, ColumnRole::Volume];

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

/// The rows that are requests, by what one column says.
pub(super) struct Keep {
    /// From 1.
    pub(super) column: u32,
    values: Vec<Vec<u8>>,
}

impl Keep {
    /// The rows that `text`, `column=value|value`, means; all where it is empty.
    fn new(text: &str, names: &[String]) -> Result<Option<Keep>, TraceError> {
        if text.is_empty() {
            return Ok(None);
        }
        let parts = text.split_once('=').map(|(place, values)| (place.trim(), values.trim()));
        let Some((place, values)) = parts.filter(|(_, values)| !values.is_empty()) else {
            return Err(bad_option("keep", text, "`column=value|value`, as in `event=D`"));
        };
        let column = column_at("keep", text, place, names)?;
        let values = values.split('|').map(|value| value.trim().as_bytes().to_vec()).collect();
        Ok(Some(Keep { column, values }))
    }

    /// Whether a row with this field is a request.
    #[inline]
    pub(super) fn has(&self, field: &[u8]) -> bool {
        self.values.iter().any(|value| value == field)
    }
}

/// The words of the operation column.
pub(super) struct Words {
    /// By the word's only byte.
    letters: [Option<Op>; 256],
    longer: Vec<(String, Op)>,
}

impl Words {
    fn new(own: &CsvOptions, options: &OpenOptions) -> Result<Words, TraceError> {
        let lists = [
            ("read_words", &own.read_words, Op::Read),
            ("write_words", &own.write_words, Op::Write),
            ("trim_words", &own.trim_words, Op::Trim),
            ("flush_words", &own.flush_words, Op::Flush),
        ];
        let mut words = Words { letters: [None; 256], longer: Vec::new() };
        // Lists that the user gave come first: they may take a word from another's default.
        for given in [true, false] {
            for (key, list, op) in lists {
                if options.format_options.contains_key(key) == given {
                    words.add(key, list, op, given)?;
                }
            }
        }
        Ok(words)
    }

    fn add(&mut self, key: &str, list: &str, op: Op, given: bool) -> Result<(), TraceError> {
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match self.op(word.as_bytes()) {
                Some(other) if given && other != op => {
                    let expected = format!("a word that does not mean a {} already", other.word());
                    return Err(bad_option(key, word, expected));
                }
                Some(_) => {}
                None => match word.as_bytes() {
                    [letter] => {
                        self.letters[usize::from(letter.to_ascii_lowercase())] = Some(op);
                        self.letters[usize::from(letter.to_ascii_uppercase())] = Some(op);
                    }
                    _ => self.longer.push((word.to_owned(), op)),
                },
            }
        }
        Ok(())
    }

    /// What `word` asks, in any case.
    #[inline]
    pub(super) fn op(&self, word: &[u8]) -> Option<Op> {
        if let [letter] = word {
            return self.letters[usize::from(*letter)];
        }
        let same = |(known, _): &&(String, Op)| known.as_bytes().eq_ignore_ascii_case(word);
        self.longer.iter().find(same).map(|(_, op)| *op)
    }
}

/// What every record asks and how long it is, where no column says it.
fn defaults(
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
fn default<T: Kind>(
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

/// What separates columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// The commonest of the usual ones in the first line.
    Auto,
    /// This character; [`BLANKS`] are runs of blanks.
    Byte(u8),
}

const DELIMITERS: [(&str, Delimiter); 5] = [
    ("auto", Delimiter::Auto),
    ("comma", Delimiter::Byte(b',')),
    ("semicolon", Delimiter::Byte(b';')),
    ("tab", Delimiter::Byte(b'\t')),
    ("blanks", Delimiter::Byte(BLANKS)),
];

impl Delimiter {
    fn resolve(self, first_line: &[u8]) -> u8 {
        if let Delimiter::Byte(byte) = self {
            return byte;
        }
        let count = |byte: u8| first_line.iter().filter(|other| **other == byte).count();
        let commonest = [b',', b';', b'\t', b'|'].into_iter().rev().max_by_key(|b| count(*b));
        commonest.filter(|byte| count(*byte) > 0).unwrap_or(BLANKS)
    }
}

impl Kind for Delimiter {
    const KIND: &'static str = "auto, comma, semicolon, tab, blanks or one punctuation character";

    fn read(value: &Value) -> Result<Delimiter, Mismatch> {
        let text = value.as_text().ok_or(Mismatch::Kind)?;
        let named = DELIMITERS.iter().find(|(word, _)| *word == text);
        match (named, text.as_bytes()) {
            (Some((_, delimiter)), _) => Ok(*delimiter),
            (None, [byte]) if byte.is_ascii_punctuation() && !b"\"._-".contains(byte) => {
                Ok(Delimiter::Byte(*byte))
            }
            _ => Err(Mismatch::Kind),
        }
    }

    fn value(&self) -> Option<Value> {
        let named = DELIMITERS.iter().find(|(_, known)| known == self);
        let text = match (named, self) {
            (Some((word, _)), _) => (*word).to_owned(),
            (None, Delimiter::Byte(byte)) => char::from(*byte).to_string(),
            (None, Delimiter::Auto) => return None,
        };
        Some(Value::Text(text))
    }
}

/// The names in a header, lower case, words joined by `_`, a unit in parentheses as a suffix.
fn names_of(line: &[u8], delimiter: u8) -> Vec<String> {
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

/// A header's name as what it holds and the unit it ends in, if that is a known one.
fn split_unit(name: &str) -> Option<(&str, &'static str)> {
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

/// The columns by the names of a header; each role takes the first name that stands for it.
fn columns_of_names(names: &[String]) -> Result<[u32; ROLES], TraceError> {
    let position = |aliases: &[&str]| {
        let stands = |name: &String| {
            let base = split_unit(name).map_or(name.as_str(), |(base, _)| base);
            aliases.contains(&base) || aliases.contains(&name.as_str())
        };
        names.iter().position(stands).map_or(0, |index| index as u32 + 1)
    };
    let columns = ALIASES.map(position);
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
fn columns_of_map(map: &str, names: &[String]) -> Result<[u32; ROLES], TraceError> {
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
fn column_at(key: &str, part: &str, place: &str, names: &[String]) -> Result<u32, TraceError> {
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

/// The unit of time by option, else by the suffix of the header's name.
fn time_unit(given: Option<TimeUnit>, suffix: Option<&str>) -> Result<TimeUnit, TraceError> {
    let unit = given.or_else(|| suffix.and_then(TimeUnit::parse));
    unit.ok_or_else(|| bad_option("time_unit", suffix.unwrap_or(NOTHING), TIME_UNITS))
}

/// The same for a unit of addresses.
fn address_unit(
    key: &str,
    given: Option<AddressUnit>,
    suffix: Option<&str>,
) -> Result<u64, TraceError> {
    let unit = given.map(|unit| unit.0).or_else(|| suffix.and_then(address_unit_bytes));
    unit.ok_or_else(|| bad_option(key, suffix.unwrap_or(NOTHING), ADDRESS_UNITS))
}
