//! Any CSV by a map of columns.
//!
//! Units: stated by options or by the header's names (`ts_us`, `offset_bytes`, `lba_sectors`); a
//! missing unit is refused, never guessed. Without `columns`, the header must name them all; only
//! such self-describing files are recognised from content. Fields may be quoted, numbers
//! hexadecimal (`0x1f`). Lines that begin with `#` or `//` and are no rows are comments. With `ids
//! = words` offsets are names, each `offset_unit` (the longest request) from the next. Source: RFC
//! 4180, but a quoted field may hold no line end.

pub(super) mod columns;
pub(super) mod proposal;

use super::registry::{TraceFormat, Unit};
use crate::clock::Clock;
use crate::fields::{BLANKS, Extent, FieldFault, hexadecimal_or_whole};
use crate::intern::Numbered;
use crate::reader::{RequestBound, bad_option};
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::{AddressUnit, TimeUnit};
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader, rwbs};
use cachewright_types::declare;
use cachewright_types::declare::{Declared, Mismatch, ValueKind};
use cachewright_types::{Bytes, Nanos, Op, Value, choices};
use columns::{ColumnLayout, ColumnRole, ROLES, column_at};
use proposal::Proposal;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "csv",
    doc: "any CSV by a column map, or by a header that names columns with units",
    source: "RFC 4180",
    time: Unit::Stated,
    offset: Unit::Stated,
    length: Unit::Stated,
    detected: "the delimiter, the header, names of columns and units in them; a table without \
               these is refused with the options that would read it",
    to_say: &["columns", "time_unit", "offset_unit", "length_unit"],
    options: CsvOptions::keys,
    recognise,
    near_miss: |head| {
        let layout = ColumnLayout::new(head, &OpenOptions::default()).ok()?;
        let layout = Some(layout).filter(ColumnLayout::is_self_describing)?;
        near_miss(Csv::new(layout), head)
    },
    open,
};

declare! {
    /// Options of reading.
    pub struct CsvOptions {
        /// where each part is, by number from 1 or by header name: time, op, offset, length,
        /// volume, count (`time=1,op=2,offset=3,length=4,volume=5`); only offset is required,
        /// `count` is how often a request is made; default: by the header's names
        columns: Option<String> = None, "";
        /// unit of time; default: the suffix of the header's name; dates need none
        time_unit: Option<TimeUnit> = None, "";
        /// unit of offset; default: the header's suffix
        offset_unit: Option<AddressUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
        /// unit of length; default: the header's suffix
        length_unit: Option<AddressUnit> = None, "";
        /// what separates columns; `blanks` are runs of them, `auto` is by the first line
        delimiter: Delimiter = Delimiter::Auto, "";
        /// whether the first line is a header; `auto`: it is one if it holds words only
        header: CsvHeader = CsvHeader::Auto, "";
        /// what offsets are; with `words` each distinct one is an object of its own
        ids: OffsetKind = OffsetKind::Numbers, "";
        /// words that mean a read, in any case (numbers are words too: `read_words=0`)
        read_words: String = "r,read,rs".to_owned(), "";
        /// words that mean a write
        write_words: String = "w,write,ws".to_owned(), "";
        /// words that mean a trim
        trim_words: String = "t,d,trim,discard,unmap".to_owned(), "";
        /// words that mean a flush
        flush_words: String = "f,s,flush,sync,fsync".to_owned(), "";
        /// rows that are requests, by a column's text: `column=value|value`, the column by number
        /// from 1 or by header name; others are passed over
        keep: Option<String> = None, "";
        /// what every record asks if no column says it
        default_op: Option<DefaultOp> = None, "";
        /// length of every record if no column says it
        default_length: Option<Bytes> = None, "bytes", 1 ..= 1_099_511_627_776;
    }
}

choices! {
    /// Whether the first line is a header.
    pub enum CsvHeader {
        /// If it holds words only.
        Auto = "auto",
        /// It is.
        Yes = "yes",
        /// It is not.
        No = "no",
    }
}

choices! {
    /// What the column of offsets holds.
    pub enum OffsetKind {
        /// Numbers of a unit.
        Numbers = "numbers",
        /// Names: keys, paths, hashes.
        Words = "words",
    }
}

choices! {
    /// What every record asks.
    pub enum DefaultOp {
        /// To be read.
        Read = "read",
        /// To be written.
        Write = "write",
    }
}

/// What is found where nothing says something.
const NOTHING: &str = "nothing";
const FIELD: &str = "a field for each mapped column";
const TIME: &str = "a time, a decimal number from 0 below 2^64 nanoseconds, or a date";
const OFFSET: &str = "an offset, a whole number from 0 (`ids=words` if it holds names)";
const COUNT: &str = "how often the request is made, a whole number up to 16777216";
const COUNT_LIMIT: u64 = 1 << 24;
const APART: &str = "at most `offset_unit`, which is how far apart names stand";
const LENGTH: &str = "a length, a whole number from 0";
const OP: &str = "one of the words of `read_words`, `write_words`, `trim_words`, `flush_words`";

#[derive(Clone)]
struct Csv {
    layout: ColumnLayout,
    /// The number of each name met, where offsets are names.
    numbered: Numbered,
    /// Requests so far: the time in nanoseconds where no column holds one.
    sequence: u64,
    /// How often the last row's request is made.
    count: u64,
}

fn recognise(head: &[u8]) -> u8 {
    let options = OpenOptions::default();
    match ColumnLayout::new(head, &options) {
        Ok(layout) if layout.is_self_describing() => trial(Csv::new(layout), head, 98),
        _ => 0,
    }
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let layout = ColumnLayout::new(source.head(), options)
        .map_err(|error| with_proposal(error, &source, options))?;
    let bound = RequestBound::from_options(options);
    if let Some(bytes) = layout.default_length_bytes.filter(|bytes| *bytes > bound.bytes) {
        return Err(bad_option("default_length", &format!("{bytes}B"), bound.expected()));
    }
    Ok(TextReader::boxed(source, Csv::new(layout), options))
}

/// The refusal of an incomplete map, with what would complete it. A value that was given and is
/// wrong is named alone.
fn with_proposal(error: TraceError, source: &ByteSource, options: &OpenOptions) -> TraceError {
    let TraceError::Option { found, .. } = &error else { return error };
    let proposal = match found.as_str() {
        NOTHING => Proposal::new(source.head(), options),
        _ => None,
    };
    match proposal {
        Some(proposal) => TraceError::Unmapped {
            path: source.path().to_owned(),
            reason: error.to_string(),
            advice: proposal.to_string(),
        },
        None => error,
    }
}

impl Csv {
    fn new(layout: ColumnLayout) -> Csv {
        Csv { layout, numbered: Numbered::default(), sequence: 0, count: 1 }
    }

    /// The fields of `line` by role; nothing for a row that is not kept, however short it is.
    #[inline]
    fn fields<'a>(&self, line: &'a [u8]) -> Result<Option<[&'a [u8]; ROLES]>, FieldFault> {
        let mut by_role: [&[u8]; ROLES] = [b""; ROLES];
        let keep = self.layout.keep.as_ref();
        let keep_index = keep.map(|keep| keep.column as usize - 1);
        let mut rest = Some(line);
        for (index, role) in self.layout.roles.iter().enumerate() {
            let Some(field) = next_field(&mut rest, self.layout.delimiter) else {
                // A row that ends before the column which decides is none of those that are kept.
                if keep_index.is_some_and(|keep| keep >= index) {
                    return Ok(None);
                }
                let column = u32::try_from(index + 1).unwrap_or(u32::MAX);
                return Err(FieldFault { column, expected: FIELD });
            };
            if keep_index == Some(index) && keep.is_some_and(|keep| !keep.has(field)) {
                return Ok(None);
            }
            if let Some(role) = role {
                by_role[*role as usize] = field;
            }
        }
        Ok(Some(by_role))
    }

    #[inline]
    fn fault(&self, role: ColumnRole, expected: &'static str) -> FieldFault {
        FieldFault { column: self.layout.column(role), expected }
    }
}

impl LineParser for Csv {
    const REPEATS: bool = true;

    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let Some(fields) = self.fields(line)? else {
            return Ok(None);
        };
        let layout = &self.layout;
        let op = match layout.default_op {
            Some(op) => op,
            None => layout
                .words
                .op(fields[ColumnRole::Op as usize])
                .ok_or_else(|| self.fault(ColumnRole::Op, OP))?,
        };
        let time_ns = match &layout.clock {
            Some(clock) => clock
                .ns(fields[ColumnRole::Time as usize])
                .map_err(|expected| self.fault(ColumnRole::Time, expected))?,
            None => self.sequence,
        };
        let count = match layout.column(ColumnRole::Count) {
            0 => 1,
            column => match hexadecimal_or_whole(fields[ColumnRole::Count as usize]) {
                Some(0) => return Ok(None),
                Some(count) if count <= COUNT_LIMIT => count,
                _ => return Err(FieldFault { column, expected: COUNT }),
            },
        };
        let (mut offset, mut length) = (0, 0);
        if op != Op::Flush {
            length = match layout.default_length_bytes {
                Some(bytes) => bytes,
                None => hexadecimal_or_whole(fields[ColumnRole::Length as usize])
                    .ok_or_else(|| self.fault(ColumnRole::Length, LENGTH))?,
            };
            let field = fields[ColumnRole::Offset as usize];
            offset = match layout.has_names {
                true => self.numbered.number(field),
                false => hexadecimal_or_whole(field).ok_or(OFFSET),
            }
            .map_err(|expected| FieldFault {
                column: layout.column(ColumnRole::Offset),
                expected,
            })?;
        }
        let extent = Extent {
            offset_column: layout.column(ColumnRole::Offset),
            offset_unit: layout.offset_unit_bytes,
            length_column: layout.column(ColumnRole::Length),
            length_unit: layout.length_unit_bytes,
        };
        let (offset_bytes, length_bytes) = extent.bytes(op, offset, length)?;
        if layout.has_names && length_bytes > layout.offset_unit_bytes {
            return Err(self.fault(ColumnRole::Length, APART));
        }
        let volume = match layout.column(ColumnRole::Volume) {
            0 => volumes.numbered(0, 0)?,
            column => volumes.keyed(fields[ColumnRole::Volume as usize], column, str::to_owned)?,
        };
        self.count = count;
        self.sequence += count;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        self.layout.column(ColumnRole::Length)
    }

    fn has_times(&self) -> bool {
        self.layout.clock.is_some()
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        self.layout.clock.as_mut()
    }

    #[inline]
    fn repeats(&self) -> u64 {
        self.count
    }

    fn delimiter(&self) -> u8 {
        self.layout.delimiter
    }

    fn header(&self) -> Header {
        self.layout.header
    }
}

/// Cuts the next field off `rest`; white space and quotes around it are removed.
#[inline]
pub(crate) fn next_field<'a>(rest: &mut Option<&'a [u8]>, delimiter: u8) -> Option<&'a [u8]> {
    let mut line = (*rest)?;
    if delimiter == BLANKS {
        line = line.trim_ascii_start();
        if line.is_empty() {
            *rest = None;
            return None;
        }
    }
    let is_end = |byte: &u8| *byte == delimiter || (delimiter == BLANKS && *byte == b'\t');
    let closing = match line.strip_prefix(b"\"") {
        Some(quoted) => quoted.iter().position(|byte| *byte == b'"').map(|index| index + 1),
        None => None,
    };
    let from = closing.unwrap_or(0);
    let end = line[from..].iter().position(is_end).map(|index| index + from);
    *rest = end.map(|end| &line[end + 1..]);
    let field = line[..end.unwrap_or(line.len())].trim_ascii();
    match (closing, field) {
        (Some(_), [b'"', inside @ .., b'"']) => Some(inside.trim_ascii()),
        _ => Some(field),
    }
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
    /// The separator of a file with this first line.
    fn resolve(self, first_line: &[u8]) -> u8 {
        if let Delimiter::Byte(byte) = self {
            return byte;
        }
        let count = |byte: u8| first_line.iter().filter(|other| **other == byte).count();
        let commonest = [b',', b';', b'\t', b'|'].into_iter().rev().max_by_key(|b| count(*b));
        commonest.filter(|byte| count(*byte) > 0).unwrap_or(BLANKS)
    }
}

impl ValueKind for Delimiter {
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

/// The rows that are requests, by what one column says.
#[derive(Clone)]
struct Keep {
    /// From 1.
    column: u32,
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
    fn has(&self, field: &[u8]) -> bool {
        self.values.iter().any(|value| value == field)
    }
}

/// What the kernel writes of a request; see [`rwbs`].
const KERNEL_LETTERS: &[u8] = b"RWDFNZASMUE";

/// The words of the operation column.
#[derive(Clone)]
pub(super) struct Words {
    /// By the word's only byte.
    letters: [Option<Op>; 256],
    longer: Vec<(String, Op)>,
}

impl Words {
    /// The words that the options list. Errors: a word that means two things.
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

    /// What `word` asks, in any case. Of several words (`write|sync`, `READ - DIRECT`) the first
    /// one counts; the kernel's letters (`WS`, `RAM`) are known.
    #[inline]
    pub(super) fn op(&self, word: &[u8]) -> Option<Op> {
        if let [letter] = word {
            return self.letters[usize::from(*letter)];
        }
        self.listed(word).or_else(|| self.composed(word))
    }

    fn listed(&self, word: &[u8]) -> Option<Op> {
        let same = |(known, _): &&(String, Op)| known.as_bytes().eq_ignore_ascii_case(word);
        self.longer.iter().find(same).map(|(_, op)| *op)
    }

    #[cold]
    fn composed(&self, word: &[u8]) -> Option<Op> {
        let end = word.iter().position(|byte| !byte.is_ascii_alphanumeric());
        match end.map(|end| &word[..end]) {
            Some([letter]) => self.letters[usize::from(*letter)],
            Some(first) => self.listed(first),
            None if word.iter().all(|byte| KERNEL_LETTERS.contains(byte)) => {
                let request = rwbs::request(word)?;
                request.data.or_else(|| request.flush.then_some(Op::Flush))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad_with, options, read_all, read_with, record};

    const MAP: (&str, &str) = ("columns", "time=1,op=2,offset=3,length=4,volume=5");

    #[test]
    fn columns_by_number() {
        let options = options(
            "csv",
            &[MAP, ("time_unit", "ms"), ("offset_unit", "4KiB"), ("length_unit", "sector")],
        );
        let text = "t,o,a,b,v\n1.5,READ,3,8,a\n2,ws,0x10,1,\"b, c\"\n3,unmap,1,8,a\n4,S,,,a\n";
        let (records, volumes) = read_with(&options, text);
        let expected = [
            record(1_500_000, Op::Read, 12_288, 4096, 0),
            record(2_000_000, Op::Write, 65_536, 512, 1),
            record(3_000_000, Op::Trim, 4096, 4096, 0),
            record(4_000_000, Op::Flush, 0, 0, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["a", "b, c"]);
    }

    #[test]
    fn a_header_with_units_describes_itself() {
        let text = "ts_us,vol,op,offset_bytes,size_bytes\n0.000,0,W,845975552,131072\n\
                35.081,1,r,0,4096\n";
        let (records, volumes) = read_with(&OpenOptions::default(), text);
        let expected =
            [record(0, Op::Write, 845_975_552, 131_072, 0), record(35_081, Op::Read, 0, 4096, 1)];
        assert_eq!(records, expected, "recognised, with no option at all");
        assert_eq!(volumes, ["0", "1"]);
        let semicolons = "size (KiB); type ;LBA sectors;time_ns\n4;w;16;7\n";
        let (records, volumes) = read_all("csv", semicolons);
        assert_eq!(records, [record(7, Op::Write, 8192, 4096, 0)]);
        assert_eq!(volumes, ["0"]);
    }

    #[test]
    fn page_numbers_need_defaults() {
        let pairs = [
            ("columns", "offset=1"),
            ("offset_unit", "4KiB"),
            ("default_op", "read"),
            ("default_length", "4KiB"),
        ];
        let (records, _) = read_with(&options("csv", &pairs), "7\n0\n7\n");
        let expected = [(0, 28_672), (1, 0), (2, 28_672)]
            .map(|(time, offset)| record(time, Op::Read, offset, 4096, 0));
        assert_eq!(records, expected);
        let pairs = [
            ("columns", "offset=1,length=2"),
            ("offset_unit", "sector"),
            ("length_unit", "sector"),
            ("default_op", "write"),
        ];
        let (records, _) = read_with(&options("csv", &pairs), "8  16 0 1\n");
        assert_eq!(records, [record(0, Op::Write, 4096, 8192, 0)], "runs of blanks");
    }

    #[test]
    fn words_and_header_are_options() {
        let pairs = [
            ("columns", "op=kind, offset=where, length=2"),
            ("offset_unit", "B"),
            ("length_unit", "B"),
            ("delimiter", "|"),
            ("header", "yes"),
            ("read_words", "0"),
            ("write_words", "1,write"),
        ];
        let (records, _) = read_with(&options("csv", &pairs), "where|n|kind|3\n5|1|0\n6|2|WRITE\n");
        assert_eq!(records, [record(0, Op::Read, 5, 1, 0), record(1, Op::Write, 6, 2, 0)]);
        let refused = bad_with(&options("csv", &pairs), "where|n|kind|3\n5|1|r\n");
        assert!(refused.contains("line 2, column 3: found `r`, expected one of the words"));
    }

    #[test]
    fn rows_may_be_kept_by_a_column() {
        let text = "t,event,op,a,n\n1,Q,R,0,512\n2,D,R,0,512\n3,C,R,0,512\n4,D,x,8,512\n";
        let map = ("columns", "time=1,op=3,offset=4,length=5");
        let units = [("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
        let with = |keep| options("csv", &[&[map, ("keep", keep)], &units[..]].concat());
        let (records, _) = read_with(&with("event=Q|C"), text);
        assert_eq!(records.iter().map(|r| r.time_ns).collect::<Vec<_>>(), [1_000, 3_000]);
        assert_eq!(read_with(&with("2=C"), text).0.len(), 1);
        assert_eq!(read_with(&with("op = R"), text).0.len(), 3, "a column with a role");
        assert!(bad_with(&with("2=D"), text).contains("line 5, column 3: found `x`"));
        let error = bad_with(&with("evnt=D"), text);
        assert!(error.starts_with("`keep`: found `evnt=D`"), "{error}");
        assert!(error.ends_with("nearest is `event`"), "{error}");
        for wrong in ["event", "event=", "0=D", "=D"] {
            assert!(bad_with(&with(wrong), text).starts_with("`keep`: found"), "{wrong}");
        }
        let beyond = bad_with(&with("7=D"), text);
        assert!(beyond.contains("no request (0 bad and 5 irrelevant"), "{beyond}");
        assert!(bad_with(&with("event=X"), text).contains("no request (0 bad and 5 irrelevant"));
    }

    #[test]
    fn a_default_length_is_bounded_as_a_length_is() {
        let pairs = [
            ("columns", "offset=1"),
            ("offset_unit", "4KiB"),
            ("default_op", "read"),
            ("default_length", "2GiB"),
        ];
        let error = bad_with(&options("csv", &pairs), "7\n");
        let expected = "at most 1GiB in one request (`max_request`)";
        assert_eq!(error, format!("`default_length`: found `2147483648B`, expected {expected}"));
    }

    #[test]
    fn incomplete_maps_are_refused() {
        let units = [("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
        let refused = |pairs: &[(&str, &str)], text: &str| bad_with(&options("csv", pairs), text);
        let line = "1,r,0,512,v\n";
        let error = refused(&[MAP], line);
        assert!(
            error.starts_with("sample: `time_unit`: found `nothing`, expected one of ps"),
            "{error}"
        );
        let error = refused(&[], line);
        assert!(error.starts_with("sample: `columns`: found `nothing`, expected"), "{error}");
        let with = |columns| refused(&[&[("columns", columns)], &units[..]].concat(), line);
        assert!(with("tme=1,op=2,offset=3,length=4").contains("nearest is `time`"));
        assert!(with("time=1,op=2,length=4").contains("offset"), "{}", with("time=1,op=2"));
        assert!(with("time=0,op=2,offset=3,length=4").contains("found `time=0`"));
        assert!(with("time=1,op=1,offset=3,length=4").contains("column 1 twice"));
        assert!(with("time=1,offset=3,length=4").contains("`default_op`: found `nothing`"));
        assert!(with("time=1,op=2,offset=3").contains("`default_length`: found `nothing`"));
        let error = refused(&[("columns", "offset=ofset")], "offset,length\n1,2\n");
        assert!(error.contains("nearest is `offset`"), "{error}");
    }

    #[test]
    fn bad_lines_are_named() {
        let pairs = [MAP, ("time_unit", "us"), ("offset_unit", "B"), ("length_unit", "B")];
        let line = |line: &str| bad_with(&options("csv", &pairs), line);
        assert!(line("x,r,0,512,v\n").contains("line 1, column 1: found `x`, expected a time"));
        assert!(line("1,r,-5,512,v\n").contains("column 3: found `-5`, expected an offset"));
        assert!(line("1,r,0,0,v\n").contains("column 4: found `0`, expected a length above 0"));
        assert!(line("1,r,0,512\n").contains("column 5: found `end of line`, expected a field"));
        assert!(line("1,r,0,512,\n").contains("column 5: found ``, expected the name of a volume"));
        assert!(line("1,r,0x,512,v\n").contains("column 3: found `0x`"));
    }

    #[test]
    fn rows_that_are_not_kept_need_no_further_columns() {
        let text = "event,time_us,op,offset_bytes,length_bytes\ninit,1\nio,2,R,0,4096\n\nend\n\
                io,3,W,4096,4096\nio,4\n";
        let keep = options("csv", &[("keep", "event=io")]);
        let error = bad_with(&keep, text);
        assert!(
            error.contains("line 7, column 3: found `end of line`, expected a field"),
            "{error}"
        );
        let (records, _) = read_with(&keep, &text[..text.len() - 5]);
        assert_eq!(records.len(), 2);
        let at_the_end = options("csv", &[("keep", "kind=io"), ("default_op", "read")]);
        let (records, _) =
            read_with(&at_the_end, "offset_bytes,length_bytes,kind\n1,2\n0,512,io\n");
        assert_eq!(records, [record(0, Op::Read, 0, 512, 0)], "short of the column that decides");
    }

    #[test]
    fn dates_need_no_unit_and_the_first_word_of_an_operation_counts() {
        let text = "timestamp,command,sector,operation,size_bytes\n\
                2025-03-04 10:00:00.000001,app,2048,write|sync,4096\n\
                2025-03-04T12:00:00.500001+02:00,\"my, app\",4096,read|ahead,8192\n\
                2025-03-04 10:00:01,app,0,FWS,512\n";
        let start_ns = 1_741_082_400_000_000_000;
        let expected = [
            record(start_ns + 1_000, Op::Write, 1_048_576, 4096, 0),
            record(start_ns + 500_001_000, Op::Read, 2_097_152, 8192, 0),
            record(start_ns + 1_000_000_000, Op::Write, 0, 512, 0),
        ];
        assert_eq!(read_with(&OpenOptions::default(), text).0, expected, "recognised");
        let error = bad_with(&options("csv", &[]), &text.replace("2025-03-04 10:00:01", "17"));
        assert!(error.contains("line 4, column 1: found `17`, expected a date such as"), "{error}");
    }

    #[test]
    fn comments_may_stand_before_a_header_or_hold_it() {
        let body = "1000,R,0,4096\n// half\n2000,W,4096,4096\n";
        let expected =
            [record(1_000_000, Op::Read, 0, 4096, 0), record(2_000_000, Op::Write, 4096, 4096, 0)];
        let header = "time_us,op,offset_bytes,length_bytes\n";
        for before in ["# made by my script\n# units: us, bytes\n\n", "", "//\n"] {
            let text = format!("{before}{header}{body}{header}");
            assert_eq!(read_with(&OpenOptions::default(), &text).0, expected, "`{before}`");
            let yes = options("csv", &[("header", "yes")]);
            assert_eq!(read_with(&yes, &text).0, expected, "`{before}`, said");
        }
        let text = format!("# one, two\n# {header}{body}");
        assert_eq!(
            read_with(&OpenOptions::default(), &text).0,
            expected,
            "the header is a comment"
        );
        assert_eq!(read_with(&options("csv", &[("header", "yes")]), &text).0, expected);
    }

    #[test]
    fn names_are_objects_and_a_row_may_stand_for_many_requests() {
        let text = "0,q:q:1:aaa,17,213,4,get,0\n0,y:3q:bbb,27,2700000,5,set,86400\n\
                1,q:q:1:aaa,17,213,4,get,0\n";
        let pairs = [
            ("columns", "time=1,offset=2,length=4,op=6"),
            ("time_unit", "s"),
            ("length_unit", "B"),
            ("ids", "words"),
            ("read_words", "get"),
            ("write_words", "set"),
        ];
        let (records, _) = read_with(&options("csv", &pairs), text);
        let gib = 1 << 30;
        let expected = [
            record(0, Op::Read, 0, 213, 0),
            record(0, Op::Write, gib, 2_700_000, 0),
            record(1_000_000_000, Op::Read, 0, 213, 0),
        ];
        assert_eq!(records, expected);
        let near = [&pairs[..], &[("offset_unit", "1MiB")]].concat();
        let error = bad_with(&options("csv", &near), text);
        assert!(
            error.contains("line 2, column 4: found `2700000`, expected at most `offset_unit`")
        );

        let text = "key,op,size,op_count,key_size\n7,SET,82,1,40\n7,GET,82,3,40\n\
                    8,GET_LEASE,208,2,63\n\
                    9,GET,1,0,1\n";
        let map = [
            ("columns", "offset=key,op=op,length=size,count=op_count"),
            ("offset_unit", "4KiB"),
            ("length_unit", "B"),
            ("read_words", "get,get_lease"),
            ("write_words", "set"),
        ];
        let (records, _) = read_with(&options("csv", &map), text);
        let at = |time, op, key: u64, length| record(time, op, key * 4096, length, 0);
        let expected = [
            at(0, Op::Write, 7, 82),
            at(1, Op::Read, 7, 82),
            at(2, Op::Read, 7, 82),
            at(3, Op::Read, 7, 82),
            at(4, Op::Read, 8, 208),
            at(5, Op::Read, 8, 208),
        ];
        assert_eq!(records, expected, "in batches of three");
        let error = bad_with(&options("csv", &map), &text.replace(",3,40", ",16777217,40"));
        assert!(
            error.contains("line 3, column 4: found `16777217`, expected how often"),
            "{error}"
        );
    }

    #[test]
    fn numbers_may_be_floats_and_times_before_zero() {
        let text = "timestamp_us,op,offset_bytes,length_bytes\n-2e3,R,0.0,4096.0\n\
                    -1000,W,8192.0,4096\n\
                    0,R,1e+04,4096.\n";
        let (records, _) = read_all("csv", text);
        let expected = [
            record(0, Op::Read, 0, 4096, 0),
            record(1_000_000, Op::Write, 8192, 4096, 0),
            record(2_000_000, Op::Read, 10_000, 4096, 0),
        ];
        assert_eq!(records, expected);
        let error = bad_with(&options("csv", &[]), &text.replace("8192.0", "8192.5"));
        assert!(error.contains("line 3, column 3: found `8192.5`, expected an offset"), "{error}");
    }

    /// The options that a message proposes.
    fn proposed(message: &str) -> Vec<(&str, &str)> {
        let line =
            message.lines().find(|line| line.contains("--format csv")).expect("has a proposal");
        line.split(" --option ")
            .skip(1)
            .filter_map(|part| part.trim_matches('\'').split_once('='))
            .collect()
    }

    #[test]
    fn an_unknown_table_is_read_with_the_one_line_that_its_message_proposes() {
        for (text, expected, rows) in [
            (
                "timestamp,op,sector,nr_sectors\n1000,R,2048,8\n2000,W,4096,16\n",
                "columns=time=timestamp,op=op,offset=sector,length=nr_sectors time_unit=us",
                "read of 4096 B at byte 1048576, at 0.001 s",
            ),
            (
                "timestamp,pid,command,sector,operation,size,dev\n\
             2025-03-04 10:00:00.000001,100,app,2048,write|sync,4096,8:0\n",
                "columns=time=timestamp,op=operation,offset=sector,length=size,volume=dev \
             length_unit=B",
                "write of 4096 B at byte 1048576 of volume `8:0`, at 1741082400.000001 s",
            ),
            (
                "key,op,size,op_count,key_size\n7,SET,82,1,40\n7,GET,82,3,40\n\
                 8,GET_LEASE,208,2,63\n",
                "columns=op=op,offset=key,length=size,count=op_count offset_unit=4KiB \
             length_unit=B read_words=get,get_lease write_words=set",
                "write of 82 B at byte 28672",
            ),
            (
                "1700000000.25;0;81920;4096\n1700000001.5;1;0;8192\n",
                "columns=time=1,op=2,offset=3,length=4 time_unit=s offset_unit=B length_unit=B \
             read_words=0 write_words=1",
                "read of 4096 B at byte 81920, at 1700000000.25 s",
            ),
            (
                "0,q:q:1:aaa,17,213,4,get,0\n0,y:3q:bbb,27,27,5,set,86400\n\
             1,q:q:1:aaa,17,213,4,get,0\n",
                "columns=time=1,op=6,offset=2,length=4 time_unit=us ids=words length_unit=B \
             read_words=get write_words=set",
                "read of 213 B at byte 0, at 0.000001 s",
            ),
            ("when,who,what,where\n5,a,load,k:1\n6,b,store,k:2\n", "", ""),
        ] {
            let message = bad_with(&OpenOptions::default(), text);
            if expected.is_empty() {
                assert!(!message.contains("--format csv"), "no offset to be seen: {message}");
                continue;
            }
            let pairs = proposed(&message);
            let found: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
            assert_eq!(found.join(" "), expected, "{message}");
            assert!(message.contains(rows), "{message}");
            let (records, _) = read_with(&options("csv", &pairs), text);
            assert!(records.len() >= 2 || text.lines().count() == 2, "{message}");
            let named = bad_with(&options("csv", &[]), text);
            assert!(named.contains(rows), "the same where the format is named: {named}");
        }
    }

    #[test]
    fn what_was_given_is_kept_in_a_proposal() {
        let text = "when,kind,where,much\n5,R,8,16\n";
        let given =
            [("columns", "time=when,op=kind,offset=where,length=much"), ("offset_unit", "4KiB")];
        let message = bad_with(&options("csv", &given), text);
        assert!(message.starts_with("sample: `time_unit`: found `nothing`"), "{message}");
        let pairs = proposed(&message);
        assert!(given.iter().all(|pair| pairs.contains(pair)), "{message}");
        let (records, _) = read_with(&options("csv", &pairs), text);
        assert_eq!((records[0].offset_bytes, records.len()), (32_768, 1));
        let wrong = bad_with(&options("csv", &[("columns", "time=wen,offset=where")]), text);
        assert!(wrong.contains("nearest is `when`") && !wrong.contains("--format csv"), "{wrong}");
    }

    #[test]
    fn a_bad_line_names_the_nearest_format_and_its_reason() {
        let message = bad_with(&OpenOptions::default(), "1,R,nan,4096,5\n");
        assert!(
            message.contains(
                "nearest is `alibaba`, but line 1, column 3: found `nan`, expected an offset"
            ),
            "{message}"
        );
        let message =
            bad_with(&OpenOptions::default(), "time_us,op,offset_bytes,size_bytes\n1,R,x,1\n");
        assert!(message.contains("nearest is `csv`, but line 2, column 3: found `x`"), "{message}");
        let mut text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n".repeat(3);
        text.push_str("128166372003061629,usr,0,Flush,0,0,41286\n128166372003061629,usr,x,,,,\n");
        let message = bad_with(&OpenOptions::default(), &text);
        assert!(
            message.contains("nearest is `msr`, but line 4, column 4: found `Flush`"),
            "{message}"
        );
    }
}
