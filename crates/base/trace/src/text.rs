//! What all text formats share: lines in, requests out, bad lines reported or counted.
//!
//! Units: those of [`Record`].

use crate::clock::Clock;
use crate::fields::{BLANKS, FieldFault, count_fields, nth_field};
use crate::formats::registry::NearMiss;
use crate::lines::{LONGEST_LINE_BYTES, Line, LineScanner};
use crate::reader::RequestBound;
use crate::reader::{declared, shown};
use crate::source::{ByteSource, HEAD_BYTES};
use crate::{
    Batch, Call, OnBadRecord, OpenOptions, Record, Skipped, TraceError, TraceReader,
    UnreadableRecord,
};

use cachewright_types::declare::Declared;
use hashbrown::HashMap;

/// Most volumes that one trace may name.
pub(crate) const VOLUMES_LIMIT: usize = 1 << 20;
/// Longest name of a volume, in bytes.
const NAME_LIMIT_BYTES: usize = 255;
/// Columns counted of a line that fits no format.
const MAX_COLUMNS: usize = 32;
/// Lines looked at to recognise a format.
const TRIAL_LINES: usize = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const TOO_LONG: &str = "a line of at most 64 KiB";

/// The columns of one text format. A parser that refuses a line is as it was before.
pub(crate) trait LineParser: Clone + Send {
    /// Whether a line may stand for several requests, as [`repeats`](Self::repeats) says.
    const REPEATS: bool = false;

    /// The request of one line, or nothing if the line is well formed but asks nothing.
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault>;

    /// What separates fields; [`BLANKS`](crate::fields::BLANKS) stands for runs of blanks.
    fn delimiter(&self) -> u8 {
        b','
    }

    /// The process of the last line's request, where the format names one for every request.
    fn call(&self) -> Option<Call> {
        None
    }

    /// The 1-based column of the length; 0 where no column holds it.
    fn length_column(&self) -> u32;

    /// Whether lines carry times.
    fn has_times(&self) -> bool {
        true
    }

    /// The clock of the lines' times.
    fn clock(&mut self) -> Option<&mut Clock> {
        None
    }

    /// What the last line is, which asked nothing, where that is worth a word.
    fn passed_over(&self) -> Option<&'static str> {
        None
    }

    /// How many requests the last line stands for, 1 or more.
    fn repeats(&self) -> u64 {
        1
    }

    /// The request after `record` among those that the last line stands for: the same again, where
    /// the format has no others.
    fn following(&mut self, record: Record) -> Record {
        // Without times a request's time is its number.
        Record { time_ns: record.time_ns + u64::from(!self.has_times()), ..record }
    }

    /// Whether the first line holds names instead of a record.
    fn header(&self) -> Header {
        Header::IfWords
    }

    /// Whether a line that begins with `#` or `//` and is no record is a comment.
    fn has_comments(&self) -> bool {
        true
    }
}

/// Whether the first line holds the names of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// If it is no record and holds words only.
    IfWords,
    /// Whatever it holds.
    Always,
    /// Never.
    Never,
}

/// Names of volumes in the order of first sight, found again fast.
#[derive(Default)]
pub(crate) struct VolumeNames {
    names: Vec<String>,
    numbers: HashMap<u64, u32, foldhash::fast::FixedState>,
    keys: HashMap<Box<[u8]>, u32, foldhash::fast::FixedState>,
    /// The last number and the last key, because requests of one volume come in runs.
    last_number: Option<(u64, u32)>,
    last_key: Option<(Box<[u8]>, u32)>,
}

impl VolumeNames {
    /// The index of the volume whose name is the number in `column`. Refused when there are too
    /// many volumes.
    #[inline]
    pub(crate) fn numbered(&mut self, number: u64, column: u32) -> Result<u32, FieldFault> {
        self.numbered_as(number, column, |number| number.to_string())
    }

    /// The index of the volume known by `number`, named by `name` at first sight. Refused when
    /// there are too many volumes.
    #[inline]
    pub(crate) fn numbered_as(
        &mut self,
        number: u64,
        column: u32,
        name: impl FnOnce(u64) -> String,
    ) -> Result<u32, FieldFault> {
        match self.last_number {
            Some((last, index)) if last == number => Ok(index),
            _ => self.another_number(number, name).ok_or_else(|| refusal(column)),
        }
    }

    fn another_number(&mut self, number: u64, name: impl FnOnce(u64) -> String) -> Option<u32> {
        let index = match self.numbers.get(&number) {
            Some(index) => *index,
            None => {
                let index = self.add(name(number))?;
                self.numbers.insert(number, index);
                index
            }
        };
        self.last_number = Some((number, index));
        Some(index)
    }

    /// The index of the volume known by `key`, named by `name` at first sight. Refused when there
    /// are too many volumes or the key is too long or empty.
    #[inline]
    pub(crate) fn keyed(
        &mut self,
        key: &[u8],
        column: u32,
        name: impl FnOnce(&str) -> String,
    ) -> Result<u32, FieldFault> {
        match &self.last_key {
            Some((last, index)) if **last == *key => Ok(*index),
            _ => self.another_key(key, name).ok_or_else(|| refusal(column)),
        }
    }

    fn another_key(&mut self, key: &[u8], name: impl FnOnce(&str) -> String) -> Option<u32> {
        if key.is_empty() || key.len() > NAME_LIMIT_BYTES {
            return None;
        }
        let index = match self.keys.get(key) {
            Some(index) => *index,
            None => {
                let index = self.add(name(&String::from_utf8_lossy(key)))?;
                self.keys.insert(key.into(), index);
                index
            }
        };
        self.last_key = Some((key.into(), index));
        Some(index)
    }

    /// The names in the order of first sight.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn add(&mut self, name: String) -> Option<u32> {
        if self.names.len() >= VOLUMES_LIMIT {
            return None;
        }
        self.names.push(name);
        u32::try_from(self.names.len() - 1).ok()
    }
}

#[cold]
fn refusal(column: u32) -> FieldFault {
    let expected = "the name of a volume (1 to 255 bytes; at most 1048576 volumes in a trace)";
    FieldFault { column, expected }
}

/// A text trace being read.
pub(crate) struct TextReader<P> {
    lines: LineScanner,
    parser: P,
    volumes: VolumeNames,
    bound: RequestBound,
    refusals: Refusals,
    /// The last request and how often it is still to be handed out.
    repeated: Option<(Record, u64)>,
    shift_ns: u64,
}

/// What to do with lines that are not requests, and what was done.
struct Refusals {
    on_bad_record: OnBadRecord,
    skipped: Skipped,
    /// No line with content was met yet, so that a header may come.
    at_beginning: bool,
    /// The header, which comes again where files were put together.
    header: Option<Box<[u8]>>,
    /// A line without its quotes.
    unquoted: Vec<u8>,
}

/// What a line is that was refused as it stands.
enum SecondLook {
    Request(Record),
    /// Nothing, without a word or with it.
    PassedOver,
    /// Its position is not yet known.
    Bad(UnreadableRecord),
}

impl<P: LineParser> TextReader<P> {
    /// Reads `source` by `parser`.
    pub(crate) fn new(source: ByteSource, mut parser: P, options: &OpenOptions) -> TextReader<P> {
        place_clock(&mut parser, source.head());
        let shift_ns = parser.clock().map_or(0, |clock| clock.found_shift_ns());
        TextReader {
            lines: LineScanner::new(source.into_stream()),
            parser,
            volumes: VolumeNames::default(),
            bound: RequestBound::from_options(options),
            refusals: Refusals {
                on_bad_record: options.on_bad_record,
                skipped: Skipped::default(),
                at_beginning: true,
                header: None,
                unquoted: Vec::new(),
            },
            repeated: None,
            shift_ns,
        }
    }

    /// The same as a trait object.
    pub(crate) fn boxed(
        source: ByteSource,
        parser: P,
        options: &OpenOptions,
    ) -> Box<dyn TraceReader>
    where
        P: 'static,
    {
        Box::new(TextReader::new(source, parser, options))
    }

    /// Opens a format whose parser is made of the format's own options alone. Errors: an option
    /// that the format does not have, or a value that is none of its values.
    pub(crate) fn opened<O: Declared>(
        source: ByteSource,
        options: &OpenOptions,
        new: impl FnOnce(&O) -> P,
    ) -> Result<Box<dyn TraceReader>, TraceError>
    where
        P: 'static,
    {
        let own: O = declared(&options.format_options)?;
        Ok(TextReader::boxed(source, new(&own), options))
    }

    /// Passes over the line with the names of columns, and what stands before it.
    fn pass_header(&mut self) -> Result<(), TraceError> {
        while let Some(Line::Whole(line)) = self.lines.next()? {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if self.parser.has_comments() && is_comment(line) {
                self.refusals.skipped.pass_over("comment");
                continue;
            }
            self.refusals.name_columns(line);
            break;
        }
        Ok(())
    }

    /// Hands out the request that is to come `repeated` times; returns how often there was room.
    fn repeat(&mut self, batch: &mut Batch, max: usize) -> usize {
        let Some((mut record, left)) = self.repeated.take() else { return 0 };
        let count = left.min(max as u64);
        for _ in 0..count {
            batch.push(record);
            record = self.parser.following(record);
        }
        if left > count {
            self.repeated = Some((record, left - count));
        }
        usize::try_from(count).unwrap_or(max)
    }
}

/// Shifts the parser's clock if the trace begins before zero.
pub(crate) fn place_clock<P: LineParser>(parser: &mut P, head: &[u8]) {
    let mut probe = parser.clone();
    let Some(clock) = probe.clock().filter(|clock| !clock.is_placed()) else { return };
    let placed = *clock;
    *clock = placed.probing();
    let zero_ns = clock.ns(b"0").unwrap_or(u64::MAX);
    let mut volumes = VolumeNames::default();
    let mut unquoted = Vec::new();
    let mut earliest_ns: Option<u64> = None;
    for line in whole_lines(head) {
        let Some(record) = parsed(&mut probe, line, &mut volumes, &mut unquoted) else { continue };
        if earliest_ns.is_none() && record.time_ns >= zero_ns {
            return;
        }
        earliest_ns = earliest_ns.min(Some(record.time_ns)).or(Some(record.time_ns));
    }
    if let (Some(clock), Some(earliest_ns)) = (parser.clock(), earliest_ns) {
        clock.place(earliest_ns);
    }
}

/// The request of a line, with or without its quotes.
fn parsed<P: LineParser>(
    parser: &mut P,
    line: &[u8],
    volumes: &mut VolumeNames,
    unquoted: &mut Vec<u8>,
) -> Option<Record> {
    match parser.line(line, volumes) {
        Ok(record) => record,
        Err(_) if unquote(line, parser.delimiter(), unquoted) => {
            parser.line(unquoted, volumes).ok().flatten()
        }
        Err(_) => None,
    }
}

impl<P: LineParser> TraceReader for TextReader<P> {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        if self.refusals.at_beginning && self.parser.header() == Header::Always {
            self.pass_header()?;
        }
        let mut count = if P::REPEATS { self.repeat(batch, max) } else { 0 };
        while count < max {
            let looked = match self.lines.next()? {
                None => break,
                Some(Line::Whole(line)) => match self.parser.line(line, &mut self.volumes) {
                    Ok(Some(record)) => {
                        if !self.bound.refuses(record.op, record.length_bytes) {
                            batch.push(record);
                            batch.calls.extend(self.parser.call());
                            count += 1;
                            if P::REPEATS && self.parser.repeats() > 1 {
                                let next = self.parser.following(record);
                                self.repeated = Some((next, self.parser.repeats() - 1));
                                count += self.repeat(batch, max - count);
                            }
                            continue;
                        }
                        SecondLook::Bad(too_long(&self.parser, line, self.bound))
                    }
                    Ok(None) => {
                        match self.parser.passed_over() {
                            Some(what) => self.refusals.skipped.pass_over(what),
                            None => self.refusals.skipped.irrelevant += u64::from(!line.is_empty()),
                        }
                        continue;
                    }
                    Err(fault) => {
                        self.refusals.at_beginning &= count == 0;
                        self.refusals.look(&mut self.parser, &mut self.volumes, line, fault)
                    }
                },
                Some(Line::TooLong(beginning)) => {
                    SecondLook::Bad(bad_line(1, shown(beginning), TOO_LONG))
                }
            };
            let bad = match looked {
                SecondLook::PassedOver => continue,
                SecondLook::Request(record) => {
                    if !self.bound.refuses(record.op, record.length_bytes) {
                        self.repeated = Some((record, self.parser.repeats()));
                        batch.calls.extend(self.parser.call());
                        count += self.repeat(batch, max - count);
                        continue;
                    }
                    too_long(&self.parser, &self.refusals.unquoted, self.bound)
                }
                SecondLook::Bad(record) => record,
            };
            let record = UnreadableRecord { position: self.lines.number(), ..bad };
            self.refusals.at_beginning = false;
            match self.refusals.on_bad_record {
                OnBadRecord::Skip => self.refusals.skipped.count_bad(record),
                OnBadRecord::Fail => {
                    let path = self.lines.stream().path().to_owned();
                    return Err(TraceError::Record { path, record });
                }
            }
        }
        self.refusals.at_beginning &= count == 0;
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes.names
    }

    fn skipped(&self) -> &Skipped {
        &self.refusals.skipped
    }

    fn shift_ns(&self) -> u64 {
        self.shift_ns
    }

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }
}

impl Refusals {
    /// Takes `line` for the header.
    fn name_columns(&mut self, line: &[u8]) {
        self.at_beginning = false;
        self.header = Some(line.trim_ascii().into());
        self.skipped.irrelevant += 1;
    }

    /// What `line` is, which was refused by `fault`.
    #[cold]
    fn look<P: LineParser>(
        &mut self,
        parser: &mut P,
        volumes: &mut VolumeNames,
        line: &[u8],
        mut fault: FieldFault,
    ) -> SecondLook {
        // Files that were put together have the mark in the middle, too.
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return SecondLook::PassedOver;
        }
        if parser.has_comments() && is_comment(line) {
            self.skipped.pass_over("comment");
            return SecondLook::PassedOver;
        }
        if self.at_beginning && parser.header() == Header::IfWords && is_header(line) {
            self.name_columns(line);
            return SecondLook::PassedOver;
        }
        if self.header.as_deref() == Some(line.trim_ascii()) {
            self.skipped.pass_over("repeated header");
            return SecondLook::PassedOver;
        }
        let mut shown_line = line;
        if unquote(line, parser.delimiter(), &mut self.unquoted) {
            shown_line = &self.unquoted;
            match parser.line(&self.unquoted, volumes) {
                Ok(Some(record)) => return SecondLook::Request(record),
                Ok(None) => {
                    self.skipped.irrelevant += 1;
                    return SecondLook::PassedOver;
                }
                Err(inside) => fault = inside,
            }
        } else if let Ok(found) = parser.line(line, volumes) {
            // Without the mark it is a record.
            self.unquoted = line.to_vec();
            return found.map_or(SecondLook::PassedOver, SecondLook::Request);
        }
        let found = nth_field(shown_line, parser.delimiter(), fault.column);
        let found = found.map_or("end of line".to_owned(), shown);
        SecondLook::Bad(bad_line(u64::from(fault.column), found, fault.expected))
    }
}

/// The first line of a trace's head that holds words or numbers of its own.
pub(crate) fn first_row(head: &[u8]) -> Option<&[u8]> {
    whole_lines(head).find(|line| !line.trim_ascii().is_empty() && !is_comment(line))
}

/// Whether `line` is a comment of a script or a tool.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.starts_with(b"#") || line.starts_with(b"//")
}

/// Puts `line` without the quotes around its fields into `into`; false if it has none. A delimiter
/// within quotes becomes `_`, two quotes become one.
fn unquote(line: &[u8], delimiter: u8, into: &mut Vec<u8>) -> bool {
    if memchr::memchr(b'"', line).is_none() {
        return false;
    }
    into.clear();
    let is_end = |byte: u8| byte == delimiter || (delimiter == BLANKS && byte == b'\t');
    let mut rest = line.iter().copied().peekable();
    let (mut at_start, mut inside, mut had_quotes) = (true, false, false);
    while let Some(byte) = rest.next() {
        match byte {
            b'"' if inside && rest.peek() == Some(&b'"') => into.extend(rest.next()),
            b'"' if inside || at_start => {
                (inside, at_start, had_quotes) = (!inside, false, true);
            }
            byte if inside && is_end(byte) => into.push(b'_'),
            byte => {
                at_start = is_end(byte) || (at_start && byte == b' ');
                into.push(byte);
            }
        }
    }
    had_quotes && !inside
}

/// The bad record that a line with a longer request than the bound is, without its position.
#[cold]
fn too_long<P: LineParser>(parser: &P, line: &[u8], bound: RequestBound) -> UnreadableRecord {
    let column = parser.length_column();
    let found = nth_field(line, parser.delimiter(), column);
    bad_line(u64::from(column), found.map_or_else(String::new, shown), &bound.expected())
}

/// A bad line whose number is not yet known.
fn bad_line(column: u64, found: String, expected: &str) -> UnreadableRecord {
    UnreadableRecord { position: 0, is_line: true, column, found, expected: expected.to_owned() }
}

/// Whether `line` names columns: several printable words, none of them a number.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let separators = |byte: &u8| b",;|\t ()".contains(byte);
    let words = || line.split(separators).map(<[u8]>::trim_ascii).filter(|word| !word.is_empty());
    let is_name = |word: &[u8]| {
        let bare = word.strip_prefix(b"\"").unwrap_or(word);
        // The index that R and pandas write has no name.
        word == b"\"\""
            || (bare.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'#')
                && word.iter().all(u8::is_ascii_graphic))
    };
    words().count() > 1 && words().all(is_name)
}

/// The lines of `head` that are complete: without the last one where the content goes on.
pub(crate) fn whole_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let cut = head.len() >= HEAD_BYTES - 3;
    let end = if cut { head.iter().rposition(|b| *b == b'\n').unwrap_or(0) } else { head.len() };
    head[..end]
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii_end)
        .filter(|line| !line.is_empty() && line.len() <= LONGEST_LINE_BYTES)
}

/// How well `head` fits `parser`: `ceiling` if each of the first 64 lines (after a header) does, in
/// proportion if most do, otherwise 0.
pub(crate) fn trial<P: LineParser>(mut parser: P, head: &[u8], ceiling: u8) -> u8 {
    place_clock(&mut parser, head);
    let mut volumes = VolumeNames::default();
    let mut unquoted = Vec::new();
    let (mut good, mut all) = (0_u32, 0_u32);
    let mut first: Option<&[u8]> = None;
    for line in whole_lines(head).take(TRIAL_LINES) {
        let is_first = *first.get_or_insert(line) == line;
        let fits = parser.line(line, &mut volumes).is_ok()
            || (unquote(line, parser.delimiter(), &mut unquoted)
                && parser.line(&unquoted, &mut volumes).is_ok());
        if !fits && parser.has_comments() && is_comment(line) {
            // A header behind comments is still one.
            first = first.filter(|_| !is_first);
            continue;
        }
        let is_named = is_first && parser.header() == Header::IfWords && is_header(line);
        let is_named = is_named || (is_first && parser.header() == Header::Always);
        if fits || !is_named {
            all += 1;
            good += u32::from(fits);
        }
    }
    if good == 0 || good * 3 < all * 2 {
        return 0;
    }
    u8::try_from(u32::from(ceiling) * good / all).unwrap_or(0)
}

/// How near `head` comes to `parser`; nothing if all lines fit or there are none.
pub(crate) fn near_miss<P: LineParser>(mut parser: P, head: &[u8]) -> Option<NearMiss> {
    place_clock(&mut parser, head);
    let mut volumes = VolumeNames::default();
    let (mut lines, mut good, mut accepted, mut all) = (0_u32, 0_u32, 0_u32, 0_u32);
    let mut refused = None;
    for (index, line) in head.split(|byte| *byte == b'\n').enumerate().take(TRIAL_LINES) {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii_end();
        let is_named = lines == 0 && parser.header() != Header::Never && is_header(line);
        if line.is_empty() || line.len() > LONGEST_LINE_BYTES || is_named || is_comment(line) {
            continue;
        }
        lines += 1;
        let fields = count_fields(line, parser.delimiter(), MAX_COLUMNS) as u32;
        match parser.line(line, &mut volumes) {
            Ok(_) => {
                good += 1;
                accepted += fields;
                all += fields;
            }
            Err(fault) => {
                let next = refused_if_repaired(&mut parser, line, fault, &mut volumes);
                let beyond = next.map_or(fields.saturating_sub(1), |next| next.saturating_sub(2));
                accepted += beyond.max(fault.column.saturating_sub(1)).min(fields);
                all += fields.max(next.unwrap_or(0)).max(fault.column);
                let found = nth_field(line, parser.delimiter(), fault.column);
                let found = found.map_or("end of line".to_owned(), shown);
                let record = bad_line(u64::from(fault.column), found, fault.expected);
                refused.get_or_insert(UnreadableRecord { position: index as u64 + 1, ..record });
            }
        }
    }
    let per_mille = |part: u32, whole: u32| part * 1_000 / whole.max(1);
    let refused = refused?;
    Some(NearMiss {
        accepted: per_mille(accepted, all),
        whole_lines: per_mille(good, lines),
        refused,
    })
}

/// The column that is refused next if the one refused were another word; nothing if all others are
/// accepted.
fn refused_if_repaired<P: LineParser>(
    parser: &mut P,
    line: &[u8],
    fault: FieldFault,
    volumes: &mut VolumeNames,
) -> Option<u32> {
    const WORDS: [&str; 4] = ["1", "8", "R", "Read"];
    let Some(field) = nth_field(line, parser.delimiter(), fault.column) else {
        return Some(fault.column);
    };
    let start = field.as_ptr().addr() - line.as_ptr().addr();
    let (before, after) = (&line[..start], &line[start + field.len()..]);
    let next = |word: &str| {
        let repaired = [before, word.as_bytes(), after].concat();
        parser.line(&repaired, volumes).err().map(|fault| fault.column)
    };
    let columns: Vec<Option<u32>> = WORDS.into_iter().map(next).collect();
    if columns.contains(&None) { None } else { columns.into_iter().flatten().max() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_keep_the_order_of_first_sight() {
        let mut volumes = VolumeNames::default();
        assert_eq!(volumes.numbered(7, 1), Ok(0));
        assert_eq!(volumes.keyed(b"web,3", 2, |key| key.replace(',', "_")), Ok(1));
        assert_eq!(volumes.numbered(3, 1), Ok(2));
        assert_eq!(volumes.numbered(7, 1), Ok(0));
        assert_eq!(volumes.keyed(b"web,3", 2, str::to_owned), Ok(1));
        assert_eq!(volumes.names, ["7", "web_3", "3"]);
        assert_eq!(volumes.keyed(b"", 2, str::to_owned).map_err(|fault| fault.column), Err(2));
        assert_eq!(volumes.keyed(&[b'x'; 256], 2, str::to_owned), Err(refusal(2)));
    }

    #[test]
    fn headers_are_words() {
        assert!(is_header(b"Timestamp,Response,IOType,LUN,Offset,Size"));
        assert!(is_header(b"#time op \"offset\""));
        for line in ["3,R,0,4096,1", "R", "", "\u{1}\u{2},\u{3}", "0 0 1 2 3"] {
            assert!(!is_header(line.as_bytes()), "`{line}`");
        }
    }
}
