//! The columns of a CSV by the names of its header, or by the user's map.
//!
//! For: the column map. Must never know: records, defaults.

use super::next_field;
use crate::TraceError;
use crate::options::{bad_option, shown};
use cachewright_types::nearest;

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
