//! What all text formats share: lines in, requests out, bad lines reported or counted.
//!
//! For: the loop over lines, headers, messages, volume names and recognition by trial. Must never
//! know: columns of any format; those are a [`LineParser`] each. Units: those of [`Record`].

use crate::fields::{FieldFault, nth_field};
use crate::lines::{LONGEST_LINE_BYTES, Line, LineScanner};
use crate::options::shown;
use crate::reader::RequestBound;
use crate::source::{ByteSource, HEAD_BYTES};
use crate::{
    Batch, Call, OnBadRecord, OpenOptions, Record, Skipped, TraceError, TraceReader,
    UnreadableRecord,
};
use hashbrown::HashMap;

/// Most volumes that one trace may name.
pub(crate) const VOLUMES_LIMIT: usize = 1 << 20;
/// Longest name of a volume, in bytes.
const NAME_LIMIT_BYTES: usize = 255;
/// Lines looked at to recognise a format.
const TRIAL_LINES: usize = 64;
const TOO_LONG: &str = "a line of at most 64 KiB";

/// The columns of one text format.
pub(crate) trait LineParser: Send {
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

    /// Whether the first line may hold names instead of a record.
    fn may_have_header(&self) -> bool {
        true
    }
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
}

/// What to do with lines that are not requests, and what was done.
struct Refusals {
    on_bad_record: OnBadRecord,
    skipped: Skipped,
    /// No line with content was met yet, so that a header may come.
    at_beginning: bool,
}

impl<P: LineParser> TextReader<P> {
    /// Reads `source` by `parser`.
    pub(crate) fn new(source: ByteSource, parser: P, options: &OpenOptions) -> TextReader<P> {
        TextReader {
            lines: LineScanner::new(source.into_stream()),
            parser,
            volumes: VolumeNames::default(),
            bound: RequestBound::from_options(options),
            refusals: Refusals {
                on_bad_record: options.on_bad_record,
                skipped: Skipped::default(),
                at_beginning: true,
            },
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
}

impl<P: LineParser> TraceReader for TextReader<P> {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let refused = match self.lines.next()? {
                None => break,
                Some(Line::Whole(line)) => match self.parser.line(line, &mut self.volumes) {
                    Ok(Some(record)) => {
                        if !self.bound.refuses(record.op, record.length_bytes) {
                            batch.push(record);
                            batch.calls.extend(self.parser.call());
                            count += 1;
                            continue;
                        }
                        Some(too_long(&self.parser, line, self.bound))
                    }
                    Ok(None) => {
                        self.refusals.skipped.irrelevant += u64::from(!line.is_empty());
                        continue;
                    }
                    Err(fault) => {
                        self.refusals.at_beginning &= count == 0;
                        self.refusals.refuse(&self.parser, line, fault)
                    }
                },
                Some(Line::TooLong(beginning)) => Some(bad_line(1, shown(beginning), TOO_LONG)),
            };
            let Some(record) = refused else { continue };
            let record = UnreadableRecord { position: self.lines.number(), ..record };
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

    fn has_times(&self) -> bool {
        self.parser.has_times()
    }
}

impl Refusals {
    /// The bad record that `line` is, without its position; nothing for a blank line or a header.
    #[cold]
    fn refuse<P: LineParser>(
        &mut self,
        parser: &P,
        line: &[u8],
        fault: FieldFault,
    ) -> Option<UnreadableRecord> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        if self.at_beginning && parser.may_have_header() && is_header(line) {
            self.at_beginning = false;
            self.skipped.irrelevant += 1;
            return None;
        }
        let found = nth_field(line, parser.delimiter(), fault.column);
        let found = found.map_or("end of line".to_owned(), shown);
        Some(bad_line(u64::from(fault.column), found, fault.expected))
    }
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
        let quoted = word.strip_prefix(b"\"").unwrap_or(word);
        quoted.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'#')
            && word.iter().all(u8::is_ascii_graphic)
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
    let mut volumes = VolumeNames::default();
    let (mut good, mut all) = (0_u32, 0_u32);
    for (index, line) in whole_lines(head).take(TRIAL_LINES).enumerate() {
        let fits = parser.line(line, &mut volumes).is_ok();
        if fits || index > 0 || !parser.may_have_header() || !is_header(line) {
            all += 1;
            good += u32::from(fits);
        }
    }
    if good == 0 || good * 3 < all * 2 {
        return 0;
    }
    u8::try_from(u32::from(ceiling) * good / all).unwrap_or(0)
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
