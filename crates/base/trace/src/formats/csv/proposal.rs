//! What an unknown table could mean: options that would read it, and its first rows read so.
//!
//! Nothing is read by a proposal without the user's word. Columns are taken by the names of a
//! header, else by what they hold. What only the values suggest is a guess and is said to be one.

use super::Words;
use super::columns::{
    ALL_ROLES, ColumnRole, ROLE_NAMES, ROLES, columns_of_map, likely, split_unit,
};

use super::columns::{Beginning, ColumnLayout};
use super::{Csv, CsvOptions, OffsetKind};
use crate::clock::is_date;
use crate::fields::{Decimal, hexadecimal_or_whole as number};
use crate::reader::{declared, shown};
use crate::text::{LineParser, VolumeNames};
use crate::{OpenOptions, Record};
use cachewright_types::{Op, visible};
use std::fmt::{self, Write};

/// Rows that are shown.
const SHOWN_ROWS: usize = 3;
/// Offsets are larger than that somewhere, or they are none.
const MIN_ADDRESS: u64 = 1 << 20;
/// Wider tables are not looked at.
const MAX_COLUMNS: u32 = 64;
/// Length of a request where no column says it.
const ASSUMED_LENGTH: &str = "4KiB";

/// Options that would read a table.
pub(in crate::formats) struct Proposal {
    /// Keys and values, without those that were given.
    options: Vec<(&'static str, String)>,
    /// What was given already.
    given: Vec<(String, String)>,
    /// Which of them are guesses, and why.
    guesses: Vec<String>,
    /// The first rows as requests.
    rows: Vec<String>,
    /// A header names the columns.
    is_named: bool,
}

/// What the values of one column look like.
struct Column<'a> {
    fields: Vec<&'a [u8]>,
}

impl Column<'_> {
    fn all(&self, fits: impl Fn(&[u8]) -> bool) -> bool {
        !self.fields.is_empty() && self.fields.iter().all(|field| fits(field))
    }

    fn is_number(&self) -> bool {
        self.all(|field| Decimal::parse(field).is_some() || number(field).is_some())
    }

    fn wholes(&self) -> Option<Vec<u64>> {
        self.fields.iter().map(|field| number(field)).collect()
    }

    /// Whether the fields are texts of which some differ, and no operations.
    fn is_of_keys(&self, words: &Words) -> bool {
        let is_text =
            |field: &[u8]| !field.is_empty() && number(field).is_none() && !is_date(field);
        self.all(is_text) && !is_of_words(self, words) && self.distinct().len() > 1
    }

    /// Whether most fields are no numbers.
    fn is_of_names(&self) -> bool {
        let names = self.fields.iter().filter(|field| number(field).is_none());
        names.count() * 2 > self.fields.len()
    }

    fn is_multiple_of(&self, unit: u64) -> bool {
        self.wholes().is_some_and(|values| values.iter().all(|value| value.is_multiple_of(unit)))
    }

    fn largest(&self) -> u64 {
        self.wholes().and_then(|values| values.into_iter().max()).unwrap_or(0)
    }

    /// Nanoseconds if a unit were one, for their order only.
    fn rises(&self) -> bool {
        let value = |field: &&[u8]| {
            let size = Decimal::parse(field)?.scaled(1_000_000, 1);
            size.filter(|_| !field.starts_with(b"-"))
        };
        let values: Option<Vec<u64>> = self.fields.iter().map(value).collect();
        values.is_some_and(|values| values.is_sorted() && values.first() != values.last())
    }

    fn has_fraction(&self) -> bool {
        self.fields.iter().any(|field| field.contains(&b'.'))
    }

    /// The distinct texts, in the order of first sight.
    fn distinct(&self) -> Vec<&[u8]> {
        let mut distinct: Vec<&[u8]> = Vec::new();
        for field in &self.fields {
            if !distinct.contains(field) {
                distinct.push(field);
            }
        }
        distinct
    }
}

impl Proposal {
    /// What would read the table that begins with `head`, in addition to the options given; nothing
    /// for content that is no table, or that no options would read.
    pub(in crate::formats) fn new(head: &[u8], options: &OpenOptions) -> Option<Proposal> {
        let own: CsvOptions = declared(&options.format_options).ok()?;
        let beginning = Beginning::new(head, &own);
        let table = columns(&beginning)?;
        let mut proposal = Proposal {
            options: Vec::new(),
            given: options.format_options.clone().into_iter().collect(),
            guesses: Vec::new(),
            rows: Vec::new(),
            is_named: !beginning.names.is_empty(),
        };
        let words = Words::new(&own, options).ok()?;
        let places = match own.columns.as_deref().unwrap_or_default() {
            "" => {
                let places = proposal.places(&beginning, &table, &words)?;
                proposal.options.push(("columns", map(&places, &beginning.names)));
                places
            }
            text => columns_of_map(text, &beginning.names).ok()?,
        };
        let column_of = |role: ColumnRole| {
            let index = (places[role as usize] as usize).checked_sub(1)?;
            let unit = beginning.names.get(index).and_then(|name| split_unit(name));
            Some((table.get(index)?, unit.map(|(_, unit)| unit), beginning.names.get(index)))
        };
        if let Some((column, None, _)) = column_of(ColumnRole::Time)
            && own.time_unit.is_none()
            && !column.all(is_date)
        {
            let (unit, why) = time_unit(column);
            proposal.guess("time_unit", unit, why);
        }
        if own.ids == OffsetKind::Numbers
            && let Some((column, unit, name)) = column_of(ColumnRole::Offset)
        {
            if unit.is_none() && column.is_of_names() {
                proposal.options.push(("ids", "words".to_owned()));
            } else if own.offset_unit.is_none() && unit.is_none() {
                let (unit, why) = address_unit(column, name);
                proposal.guess("offset_unit", unit, why);
            }
        }
        match column_of(ColumnRole::Length) {
            Some((column, None, name)) if own.length_unit.is_none() => {
                let (unit, why) = address_unit(column, name);
                proposal.guess("length_unit", unit, why);
            }
            None if own.default_length.is_none() => {
                proposal.guess("default_length", ASSUMED_LENGTH, "no column holds a length");
            }
            _ => {}
        }
        match column_of(ColumnRole::Op) {
            Some((column, ..)) => {
                let place = place(places[ColumnRole::Op as usize], &beginning.names);
                proposal.words(&own, column, &words, &place);
            }
            None if own.default_op.is_none() => {
                proposal.guess("default_op", "read", "no column holds an operation");
            }
            None => {}
        }
        proposal.read(head, options, &beginning)?;
        Some(proposal)
    }

    /// Whether a header names the columns, so that they are not told by their values.
    pub(in crate::formats) fn is_named(&self) -> bool {
        self.is_named
    }

    fn guess(&mut self, key: &'static str, value: &str, why: &str) {
        self.guesses.push(format!("`{key}={value}` ({why})"));
        self.options.push((key, value.to_owned()));
    }

    /// The columns of the roles: by names, then by what is left.
    fn places(
        &mut self,
        beginning: &Beginning<'_>,
        table: &[Column<'_>],
        words: &Words,
    ) -> Option<[u32; ROLES]> {
        let mut places = likely(&beginning.names);
        let mut guessed = Vec::new();
        for role in [ColumnRole::Time, ColumnRole::Op, ColumnRole::Offset, ColumnRole::Length] {
            // A header that names other columns says that there is none for these; where it names
            // none at all, it is not one of requests.
            let is_left_out = !beginning.names.is_empty()
                && (role != ColumnRole::Offset
                    || places.iter().filter(|place| **place > 0).count() < 2);
            if places[role as usize] > 0 || is_left_out {
                continue;
            }
            let is_free = |index: &usize| !places.contains(&(*index as u32 + 1));
            let free = || (0..table.len()).filter(is_free);
            let index = match role {
                ColumnRole::Time => free().find(|index| table[*index].all(is_date)).or_else(|| {
                    free().find(|index| table[*index].is_number() && table[*index].rises())
                }),
                ColumnRole::Op => free().find(|index| is_of_words(&table[*index], words)),
                ColumnRole::Offset => {
                    let number = free()
                        .filter(|index| table[*index].wholes().is_some())
                        .max_by_key(|index| (table[*index].largest(), std::cmp::Reverse(*index)));
                    let name = free().find(|index| table[*index].is_of_keys(words));
                    // Small numbers beside a column of keys are sizes and ages of objects.
                    let is_address = |index: &usize| table[*index].largest() >= MIN_ADDRESS;
                    number.filter(|index| name.is_none() || is_address(index)).or(name)
                }
                _ => free()
                    .filter(|index| table[*index].wholes().is_some_and(|v| !v.contains(&0)))
                    .max_by_key(|index| (table[*index].is_multiple_of(8), table[*index].largest())),
            };
            if let Some(index) = index {
                places[role as usize] = index as u32 + 1;
                guessed.push(format!(
                    "column {} holds the {}",
                    index + 1,
                    ROLE_NAMES[role as usize]
                ));
            }
        }
        if !guessed.is_empty() {
            self.guesses.push(guessed.join(", "));
        }
        let offset = (places[ColumnRole::Offset as usize] as usize).checked_sub(1)?;
        // Words alone are any text: nothing says that they are requests.
        let is_alone = places.iter().filter(|place| **place > 0).count() == 1;
        let is_any_text = beginning.names.is_empty() && is_alone && table[offset].is_of_names();
        (!is_any_text).then_some(places)
    }

    /// The options that give the words of an operation their meaning.
    fn words(&mut self, own: &CsvOptions, column: &Column<'_>, known: &Words, place: &str) {
        let unknown: Vec<&[u8]> =
            column.distinct().into_iter().filter(|word| known.op(word).is_none()).collect();
        if unknown.is_empty() {
            return;
        }
        let mut lists =
            [(Op::Read, "read_words"), (Op::Write, "write_words"), (Op::Trim, "trim_words")]
                .map(|(op, key)| (op, key, Vec::new()));
        let mut other = false;
        for word in &unknown {
            let meaning = meaning(word);
            match lists.iter_mut().find(|(op, ..)| Some(*op) == meaning) {
                Some((_, _, list)) => list.push(shown(word).to_lowercase()),
                None => other = true,
            }
        }
        for (op, key, list) in lists.iter().filter(|(_, _, list)| !list.is_empty()) {
            self.guess(key, &list.join(","), &format!("such words mostly mean a {}", op.word()));
        }
        if other && own.keep.is_none() {
            let kept = |word: &&[u8]| known.op(word).is_some() || meaning(word).is_some();
            let kept: Vec<String> =
                column.distinct().iter().filter(|w| kept(w)).map(|w| shown(w)).collect();
            if !kept.is_empty() {
                self.guess(
                    "keep",
                    &format!("{place}={}", kept.join("|")),
                    "other rows ask nothing",
                );
            }
        }
    }

    /// Reads the first rows with all options; nothing if that cannot be done.
    fn read(
        &mut self,
        head: &[u8],
        options: &OpenOptions,
        beginning: &Beginning<'_>,
    ) -> Option<()> {
        let mut all = options.clone();
        let proposed = self.options.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        all.format_options.extend(proposed);
        let mut csv = Csv::new(ColumnLayout::new(head, &all).ok()?);
        crate::text::place_clock(&mut csv, head);
        let mut volumes = VolumeNames::default();
        let mut good = 0;
        for row in &beginning.rows {
            let Ok(Some(record)) = csv.line(row, &mut volumes) else { continue };
            good += 1;
            if self.rows.len() < SHOWN_ROWS {
                let volume = volumes.names().get(record.volume as usize);
                let volume = volume.filter(|_| csv.layout.column(ColumnRole::Volume) > 0);
                self.rows.push(sentence(&record, csv.has_times(), volume.map(String::as_str)));
            }
        }
        // A table of which only some rows fit is another one.
        (good > 0 && good * 2 >= beginning.rows.len()).then_some(())
    }
}

/// A request in words.
fn sentence(record: &Record, has_times: bool, volume: Option<&str>) -> String {
    let mut text = record.op.word().to_owned();
    if record.op != Op::Flush {
        let _ = write!(text, " of {} B at byte {}", record.length_bytes, record.offset_bytes);
    }
    if let Some(volume) = volume {
        let _ = write!(text, " of volume `{}`", shown(volume.as_bytes()));
    }
    if has_times {
        let (seconds, part) = (record.time_ns / 1_000_000_000, record.time_ns % 1_000_000_000);
        let exact = format!("{seconds}.{part:09}");
        let _ = write!(text, ", at {} s", exact.trim_end_matches('0').trim_end_matches('.'));
    }
    text
}

/// The columns of the rows; nothing if there are fewer than two, or rows of many widths.
fn columns<'a>(beginning: &Beginning<'a>) -> Option<Vec<Column<'a>>> {
    let is_there = |index: usize, column: u32| beginning.field(index, column).is_some();
    let width = |index: usize| (1..=MAX_COLUMNS + 1).take_while(|c| is_there(index, *c)).count();
    let widths: Vec<usize> = (0..beginning.rows.len()).map(width).collect();
    let usual = *widths.iter().max_by_key(|width| widths.iter().filter(|w| w == width).count())?;
    let whole: Vec<usize> = (0..widths.len()).filter(|index| widths[*index] == usual).collect();
    if !(2..=MAX_COLUMNS as usize).contains(&usual) || whole.len() * 2 < widths.len() {
        return None;
    }
    let is_text = |row: &[u8]| !row.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
    if !beginning.rows.iter().all(|row| is_text(row.trim_ascii_end())) {
        return None;
    }
    let column = |column: u32| Column {
        fields: whole.iter().filter_map(|index| beginning.field(*index, column)).collect(),
    };
    Some((1..=usual as u32).map(column).collect())
}

/// Whether a column holds words of operations: known ones, or few others.
fn is_of_words(column: &Column<'_>, words: &Words) -> bool {
    let distinct = column.distinct();
    let is_word = |word: &[u8]| words.op(word).is_some() || meaning(word).is_some();
    let is_flag = |word: &[u8]| word == b"0" || word == b"1";
    (distinct.iter().all(|word| is_word(word))
        && !distinct.iter().all(|word| number(word).is_some()))
        || distinct.iter().all(|word| is_flag(word))
}

/// What a word of an operation probably asks. Most programs write 1 for a write.
fn meaning(word: &[u8]) -> Option<Op> {
    let word = word.to_ascii_lowercase();
    let begins = |beginnings: &[&str]| beginnings.iter().any(|b| word.starts_with(b.as_bytes()));
    match word.as_slice() {
        b"0" => Some(Op::Read),
        b"1" => Some(Op::Write),
        _ if begins(&["r", "get", "diskread", "load", "fetch", "lookup"]) => Some(Op::Read),
        _ if begins(&["w", "set", "put", "diskwrite", "store", "add", "insert"]) => Some(Op::Write),
        _ if begins(&["trim", "discard", "unmap", "delete", "del"]) => Some(Op::Trim),
        _ => None,
    }
}

/// The unit of times by their size.
fn time_unit(column: &Column<'_>) -> (&'static str, &'static str) {
    match column.largest() {
        1_000_000_000..10_000_000_000 => ("s", "such numbers are seconds since 1970"),
        1_000_000_000_000..10_000_000_000_000 => ("ms", "such numbers are milliseconds since 1970"),
        1_000_000_000_000_000..10_000_000_000_000_000 => {
            ("us", "such numbers are microseconds since 1970")
        }
        100_000_000_000_000_000..200_000_000_000_000_000 => {
            ("100ns", "such numbers are file times")
        }
        1_000_000_000_000_000_000.. => ("ns", "such numbers are nanoseconds since 1970"),
        _ if column.has_fraction() => ("s", "times have a fraction"),
        _ => ("us", "nothing says it"),
    }
}

/// The unit of offsets or lengths by their name and values.
fn address_unit(column: &Column<'_>, name: Option<&String>) -> (&'static str, &'static str) {
    let is_named = |part: &str| name.is_some_and(|name| name.contains(part));
    if is_named("sector") || is_named("lba") || is_named("lbn") || is_named("blk") {
        return ("sector", "by its name");
    }
    if is_named("byte") {
        return ("B", "by its name");
    }
    if is_named("key") || is_named("obj") {
        return ("4KiB", "objects that far apart");
    }
    if column.is_multiple_of(512) {
        return ("B", "all are multiples of 512");
    }
    match column.is_multiple_of(8) && !is_named("size") {
        true => ("sector", "all are multiples of 8, but not of 512"),
        false => ("B", "nothing says it"),
    }
}

/// The map of columns as users write it.
fn map(places: &[u32; ROLES], names: &[String]) -> String {
    let taken = ALL_ROLES.into_iter().filter(|role| places[*role as usize] > 0);
    let part = |role: ColumnRole| {
        format!("{}={}", ROLE_NAMES[role as usize], place(places[role as usize], names))
    };
    taken.map(part).collect::<Vec<String>>().join(",")
}

/// A column by its name where that is a plain word that no other column has, else by its number.
fn place(column: u32, names: &[String]) -> String {
    let name = (column as usize).checked_sub(1).and_then(|index| names.get(index));
    let is_plain = |name: &&String| {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
        plain && begins && names.iter().filter(|other| other == name).count() == 1
    };
    name.filter(is_plain).cloned().unwrap_or_else(|| column.to_string())
}

/// Several lines, each of which can be copied.
impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let proposed = self.options.iter().map(|(key, value)| (*key, value.as_str()));
        let all: Vec<(&str, &str)> = given.chain(proposed).collect();
        f.write_str("\n  to read it as a table: --format csv")?;
        for (key, value) in &all {
            write!(f, " --option {}", quoted(&format!("{key}={value}")))?;
        }
        let keys: Vec<String> =
            all.iter().map(|(key, value)| format!("{key} = \"{}\"", visible(value))).collect();
        write!(f, "\n  in a stack file: format = \"csv\", options = {{ {} }}", keys.join(", "))?;
        if !self.guesses.is_empty() {
            write!(f, "\n  guessed: {}", self.guesses.join("; "))?;
        }
        f.write_str("\n  its first rows are then:")?;
        self.rows.iter().try_for_each(|row| write!(f, "\n    {row}"))
    }
}

/// A word of a command line.
fn quoted(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"=,._:/-".contains(&b);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", visible(word).replace('\'', "'\\''")),
    }
}
