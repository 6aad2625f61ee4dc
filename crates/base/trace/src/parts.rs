//! One recording in several files: a file per CPU, hour or day, read as one trace.
//!
//! Units: nanoseconds. Files without times follow each other in the order given. A file is opened
//! when its first request is due and closed at its end, so that a month in hours needs few files at
//! one time. Invariant: requests of one file keep their order; of several files, the one whose next
//! request is the earliest gives it, at equal times the one named first.

use crate::error::Skipped;
use crate::{Batch, Call, TraceError, TraceReader};
use hashbrown::HashMap;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// Requests read from a file at a time.
const CHUNK: usize = 1 << 13;
/// Files of one recording at most.
const MAX_PARTS: usize = 1 << 16;

/// Opens one of the files.
pub(crate) type OpenPart = Box<dyn Fn(&Path) -> Result<Box<dyn TraceReader>, TraceError> + Send>;

/// A recording being read.
pub(crate) struct Recording {
    open: OpenPart,
    parts: Vec<Part>,
    /// The time of the next request and the number of each file that has one; the time is 0 where
    /// there are none.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    volumes: Vec<String>,
    volume_of: HashMap<String, u32, foldhash::fast::FixedState>,
    /// Whether requests carry times.
    has_times: bool,
    counts_objects: bool,
    requests_hint: Option<u64>,
    /// Requests given.
    given: u64,
    /// Records left out of files that are closed.
    closed: Skipped,
    skipped: Skipped,
    notes: Vec<String>,
    /// The largest shift of a file's reader, which all files are given.
    shift_ns: u64,
}

struct Part {
    path: PathBuf,
    /// Nanoseconds that the file's reader adds to its times, since they begin before zero.
    shift_ns: u64,
    reading: Option<Reading>,
}

/// A file while it is open.
struct Reading {
    reader: Box<dyn TraceReader>,
    buffer: Batch,
    next: usize,
    /// The recording's volume of each of the file's volumes.
    volumes: Vec<u32>,
}

impl Recording {
    /// The recording in `files`, each opened by `open`. Errors: those of opening and of the first
    /// request; a file named twice, too many files, times in some files and none in others.
    pub(crate) fn open(files: Vec<PathBuf>, open: OpenPart) -> Result<Recording, TraceError> {
        check_names(&files)?;
        let mut whole = Recording {
            open,
            parts: Vec::with_capacity(files.len()),
            heads: BinaryHeap::with_capacity(files.len()),
            volumes: Vec::new(),
            volume_of: HashMap::default(),
            has_times: true,
            counts_objects: false,
            requests_hint: Some(0),
            given: 0,
            closed: Skipped::default(),
            skipped: Skipped::default(),
            notes: Vec::new(),
            shift_ns: 0,
        };
        let total = files.len();
        let mut first_ns = Vec::with_capacity(total);
        for path in files {
            first_ns.extend(whole.add(path)?);
        }
        // Files whose times begin before zero were shifted by as much as each needs.
        whole.shift_ns = whole.parts.iter().map(|part| part.shift_ns).max().unwrap_or(0);
        for (index, time_ns) in first_ns.into_iter().enumerate() {
            let part = &whole.parts[index];
            let due_ns = time_ns.checked_add(whole.shift_ns - part.shift_ns);
            let due_ns = due_ns.ok_or_else(|| too_late(&part.path))?;
            whole.heads.push(Reverse((if whole.has_times { due_ns } else { 0 }, index)));
        }
        let empty = total - whole.parts.len();
        if empty > 0 {
            whole.notes.push(format!("{empty} of {total} files hold no request"));
        }
        Ok(whole)
    }

    /// Takes a file that has a request; returns when the first one comes, on the file's own clock.
    fn add(&mut self, path: PathBuf) -> Result<Option<u64>, TraceError> {
        if std::fs::metadata(&path).is_ok_and(|facts| facts.is_file() && facts.len() == 0) {
            return Ok(None);
        }
        let mut reader = (self.open)(&path)?;
        let hint = reader.requests_hint();
        let mut first = Batch::default();
        reader.read(&mut first, 1)?;
        let Some(time_ns) = first.time_ns.first().copied() else {
            add_skipped(&mut self.closed, reader.skipped(), &path);
            self.skipped = self.closed.clone();
            return Ok(None);
        };
        let has_times = reader.has_times();
        if self.parts.is_empty() {
            self.has_times = has_times;
        } else if self.has_times != has_times {
            let found = |has: bool| if has { "times" } else { "no times" }.to_owned();
            return Err(TraceError::File {
                path,
                found: found(has_times),
                expected: format!("{}, as in the files before it", found(self.has_times)),
            });
        }
        self.counts_objects |= reader.counts_objects();
        self.requests_hint = self.requests_hint.zip(hint).map(|(sum, more)| sum + more);
        self.parts.push(Part { path, shift_ns: reader.shift_ns(), reading: None });
        Ok(Some(time_ns))
    }

    /// Gives requests of file `index` that come before those of the `next` file; returns how many.
    fn give(
        &mut self,
        index: usize,
        next: Option<(u64, usize)>,
        max: usize,
        batch: &mut Batch,
    ) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(time_ns) = self.head(index)? else { return Ok(count) };
            if next.is_some_and(|next| (time_ns, index) > next) {
                break;
            }
            let Some(reading) = &self.parts[index].reading else { break };
            let times = &reading.buffer.time_ns[reading.next..];
            let due = match next {
                Some(next) if self.has_times => {
                    times.iter().position(|time_ns| (*time_ns, index) > next)
                }
                _ => None,
            };
            let taken = due.unwrap_or(times.len()).min(max - count);
            let range = reading.next..reading.next + taken;
            self.take(index, range, batch);
            count += taken;
        }
        if let Some(time_ns) = self.head(index)? {
            self.heads.push(Reverse((time_ns, index)));
        }
        Ok(count)
    }

    /// When the next request of a file is due; nothing at its end, where it is closed.
    fn head(&mut self, index: usize) -> Result<Option<u64>, TraceError> {
        let part = &mut self.parts[index];
        let reading = match &mut part.reading {
            Some(reading) => reading,
            closed => closed.insert(Reading {
                reader: (self.open)(&part.path)?,
                buffer: Batch::default(),
                next: 0,
                volumes: Vec::new(),
            }),
        };
        if reading.next == reading.buffer.len() {
            reading.buffer.clear();
            reading.next = 0;
            reading.reader.read(&mut reading.buffer, CHUNK)?;
            let shift_ns = self.shift_ns - part.shift_ns;
            if self.has_times && shift_ns > 0 {
                for time_ns in &mut reading.buffer.time_ns {
                    *time_ns = time_ns.checked_add(shift_ns).ok_or_else(|| too_late(&part.path))?;
                }
            }
        }
        let Some(time_ns) = reading.buffer.time_ns.get(reading.next).copied() else {
            let notes = reading.reader.notes();
            add_skipped(&mut self.closed, reading.reader.skipped(), &part.path);
            part.reading = None;
            self.note(index, notes);
            return Ok(None);
        };
        Ok(Some(if self.has_times { time_ns } else { 0 }))
    }

    /// Keeps what a file's content has shown, unless another file has shown it, too.
    fn note(&mut self, index: usize, notes: Vec<String>) {
        let name = self.parts[index].path.file_name().unwrap_or_default().to_string_lossy();
        for note in notes {
            if !self.notes.iter().any(|known| known.ends_with(&note)) {
                self.notes.push(format!("{name}: {note}"));
            }
        }
    }

    /// Moves requests of an open file to `batch`.
    fn take(&mut self, index: usize, range: Range<usize>, batch: &mut Batch) {
        let Some(reading) = &mut self.parts[index].reading else { return };
        for name in &reading.reader.volumes()[reading.volumes.len()..] {
            let next = self.volumes.len() as u32;
            let volume = *self.volume_of.entry_ref(name).or_insert(next);
            if volume == next {
                self.volumes.push(name.clone());
            }
            reading.volumes.push(volume);
        }
        let buffer = &reading.buffer;
        let (before, count) = (batch.len(), range.len() as u64);
        if self.has_times {
            batch.time_ns.extend_from_slice(&buffer.time_ns[range.clone()]);
        } else {
            batch.time_ns.extend(self.given..self.given + count);
        }
        batch.offset_bytes.extend_from_slice(&buffer.offset_bytes[range.clone()]);
        batch.length_bytes.extend_from_slice(&buffer.length_bytes[range.clone()]);
        batch.op.extend_from_slice(&buffer.op[range.clone()]);
        let volumes = buffer.volume[range.clone()].iter();
        batch.volume.extend(volumes.map(|volume| reading.volumes[*volume as usize]));
        let calls = buffer.calls.get(range.clone()).unwrap_or_default();
        if !(calls.is_empty() && batch.calls.is_empty()) {
            batch.calls.resize(before, Call::default());
            batch.calls.extend_from_slice(calls);
            batch.calls.resize(batch.len(), Call::default());
        }
        reading.next = range.end;
        self.given += count;
    }
}

impl TraceReader for Recording {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let mut count = 0;
        while count < max {
            let Some(Reverse((_, index))) = self.heads.pop() else { break };
            let next = self.heads.peek().map(|Reverse(head)| *head);
            count += self.give(index, next, max - count, batch)?;
        }
        self.skipped = self.closed.clone();
        for part in &self.parts {
            if let Some(reading) = &part.reading {
                add_skipped(&mut self.skipped, reading.reader.skipped(), &part.path);
            }
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn has_times(&self) -> bool {
        self.has_times
    }

    fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    fn requests_hint(&self) -> Option<u64> {
        self.requests_hint
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn counts_objects(&self) -> bool {
        self.counts_objects
    }

    fn shift_ns(&self) -> u64 {
        self.shift_ns
    }
}

/// The refusal of a time that no clock of 64 bits can hold beside times before zero.
fn too_late(path: &Path) -> TraceError {
    TraceError::File {
        path: path.to_owned(),
        found: "a time close to 2^64 nanoseconds beside times before zero".to_owned(),
        expected: "times of one recording within 2^64 nanoseconds".to_owned(),
    }
}

/// Adds the records left out of one file; examples say which.
fn add_skipped(sum: &mut Skipped, more: &Skipped, path: &Path) {
    sum.bad += more.bad;
    sum.irrelevant += more.irrelevant;
    sum.add_reasons(&more.reasons);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for example in more.examples.iter().take(Skipped::EXAMPLES - sum.examples.len()) {
        let mut example = example.clone();
        example.expected = format!("{} (in {name})", example.expected);
        sum.examples.push(example);
    }
}

fn check_names(files: &[PathBuf]) -> Result<(), TraceError> {
    let mut sorted: Vec<&PathBuf> = files.iter().collect();
    sorted.sort_unstable();
    let refuse = |path: &Path, found: String, expected: &str| {
        Err(TraceError::File { path: path.to_owned(), found, expected: expected.to_owned() })
    };
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return refuse(pair[0], "the same file twice".to_owned(), "each part once");
    }
    match files.first() {
        Some(first) if files.len() > MAX_PARTS => {
            refuse(first, format!("{} files of one recording", files.len()), "at most 65536")
        }
        _ => Ok(()),
    }
}

/// Whether a path is a pattern, and no file of that name is there. A pattern has `*` (any
/// characters), `?` (one character) or `[...]` (one of some characters, `!` for all others) in any
/// part of a path; a name that begins with a dot is matched by a pattern that does.
pub(crate) fn is_pattern(path: &Path) -> bool {
    has_magic(&path.to_string_lossy()) && !path.exists()
}

/// The files that a path stands for: itself, or those that it is a pattern of, in the order of
/// their names with numbers by value (`x.2` before `x.10`). Errors: a pattern that fits no file.
pub(crate) fn named(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    if !is_pattern(path) {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        found = match component {
            Component::Normal(name) if has_magic(&name.to_string_lossy()) => {
                let pattern: Vec<char> = name.to_string_lossy().chars().collect();
                found.iter().flat_map(|folder| matching(folder, &pattern)).collect()
            }
            _ => found.into_iter().map(|folder| folder.join(component)).collect(),
        };
    }
    found.retain(|file| file.exists() && !file.is_dir());
    found.sort_by(|a, b| by_number(&a.to_string_lossy(), &b.to_string_lossy()));
    if found.is_empty() {
        let found = "no file of this pattern".to_owned();
        return Err(TraceError::File { path: path.to_owned(), found, expected: "traces".into() });
    }
    Ok(found)
}

fn has_magic(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// What lies in a folder under names of a pattern; nothing for a folder that cannot be read.
fn matching(folder: &Path, pattern: &[char]) -> Vec<PathBuf> {
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = fs::read_dir(listed) else { return Vec::new() };
    let fits = |name: &str| {
        let name: Vec<char> = name.chars().collect();
        (name[0] != '.' || pattern[0] == '.') && is_match(pattern, &name)
    };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names.filter(|name| fits(&name.to_string_lossy())).map(|name| folder.join(name)).collect()
}

/// Whether a name fits a pattern. A star takes as little as it can and more when the rest does not
/// fit: only the last star needs to be taken up again.
fn is_match(pattern: &[char], name: &[char]) -> bool {
    let (mut place, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        let after = match pattern.get(place) {
            Some('*') => {
                star = Some((place + 1, read));
                place += 1;
                continue;
            }
            Some('[') => class(&pattern[place..], name[read]).map(|length| place + length),
            Some('?') => Some(place + 1),
            Some(other) => (*other == name[read]).then_some(place + 1),
            None => None,
        };
        match (after, star) {
            (Some(after), _) => (place, read) = (after, read + 1),
            (None, Some((behind, taken))) => {
                star = Some((behind, taken + 1));
                (place, read) = (behind, taken + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[place..].iter().all(|rest| *rest == '*')
}

/// The length of the class `[...]` that a pattern begins with, if `letter` is in it. One that does
/// not end is a bracket.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    // The first letter belongs to the class even if it is a bracket.
    let first = if pattern.get(1) == Some(&'!') { 2 } else { 1 };
    let Some(length) = pattern.iter().skip(first + 1).position(|end| *end == ']') else {
        return (letter == '[').then_some(1);
    };
    let letters = &pattern[first..=first + length];
    let ranges = letters.windows(3).filter(|range| range[1] == '-');
    let is_in = letters.contains(&letter)
        || ranges.into_iter().any(|range| (range[0]..=range[2]).contains(&letter));
    (is_in == (first == 1)).then_some(first + length + 2)
}

/// The order of names, with runs of digits as numbers.
fn by_number(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (first, second) = (digits(left), digits(right));
        if !first.is_empty() && !second.is_empty() {
            let value = |text: &str| text.trim_start_matches('0').to_owned();
            let (smaller, larger) = (value(first), value(second));
            match smaller.len().cmp(&larger.len()).then(smaller.cmp(&larger)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
            (left, right) = (&left[first.len()..], &right[second.len()..]);
            continue;
        }
        let (Some(letter), Some(other)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then(a.cmp(b));
        };
        if letter != other {
            return letter.cmp(&other);
        }
        (left, right) = (&left[letter.len_utf8()..], &right[other.len_utf8()..]);
    }
}

fn digits(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        is_match(&letters(pattern), &letters(name))
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name) in [
            ("*", "x"),
            ("x.*", "x.blktrace.0"),
            ("*.blktrace.?", "x.blktrace.0"),
            ("h[0-9][0-9].csv", "h07.csv"),
            ("a*b*c", "abbbcbc"),
            ("[!a]x", "bx"),
            ("[]]", "]"),
            ("[x", "[x"),
            ("x**", "x"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("x", "xy"),
            ("?", ""),
            ("h[0-3].csv", "h7.csv"),
            ("a*b", "abc"),
            ("[!a]x", "ax"),
            ("[x", "x"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn files_of_a_pattern_come_by_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["x.10", "x.2", "x.a", ".x.1", "y.1", "x.02"] {
            fs::write(folder.path().join(name), "1").unwrap();
        }
        fs::create_dir(folder.path().join("x.5")).unwrap();
        let names = |pattern: &str| {
            let found = named(&folder.path().join(pattern)).unwrap();
            let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            found.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names("x.*"), ["x.02", "x.2", "x.10", "x.a"]);
        assert_eq!(names("x.2"), ["x.2"]);
        let error = named(&folder.path().join("z*")).unwrap_err().to_string();
        assert!(error.ends_with("z*: found no file of this pattern, expected traces"), "{error}");
        fs::write(folder.path().join("z*"), "1").unwrap();
        assert_eq!(names("z*"), ["z*"], "a file of that name is meant as it is");
    }
}
