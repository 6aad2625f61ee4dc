//! Any CSV by a map of columns.
//!
//! For: traces in columns that no other format here has. Must never know: those formats. Units:
//! stated by options or by the header's names (`ts_us`, `offset_bytes`, `lba_sectors`); a missing
//! unit is refused, never guessed. Without `columns`, the header must name them all; only such
//! self-describing files are recognised from content. Fields may be quoted, numbers hexadecimal
//! (`0x1f`). Lines that begin with `#` or `//` and are no rows are comments. With `ids = words`
//! offsets are names, each `offset_unit` (the longest request) from the next. Source: RFC 4180, but
//! a quoted field may hold no line end.

mod delimiter;
mod layout;
pub(in crate::formats) mod named;
mod names;
pub(in crate::formats) mod proposal;
pub(in crate::formats) mod words;

use self::delimiter::Delimiter;
use self::layout::ColumnLayout;
use self::names::{ColumnRole, ROLES};
use self::proposal::Proposal;
use super::entry::{TraceFormat, Unit};
use crate::clock::Clock;
use crate::fields::{BLANKS, Extent, FieldFault, hexadecimal_or_whole};
use crate::numbered::Numbered;
use crate::options::bad_option;
use crate::reader::RequestBound;
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::{AddressUnit, TimeUnit};
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Op, choices, declare};

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

#[cfg(test)]
mod tests;
