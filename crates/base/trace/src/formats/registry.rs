//! The table of formats.
//!
//! Recognition: every entry says from 0 to 100 how well the first 64 KiB of decompressed content
//! fit it; below [`CONFIDENT`] is a no. The highest wins; when another comes within
//! [`TIE_MARGIN`], the content does not decide and the user is asked to name the format. So the
//! answer depends neither on the order of the table nor on the path. SSDsim's five columns mean
//! what MQSim's mean, so that one entry (`mqsim`) reads both and no tie arises.

use super::csv::proposal::Proposal;
use super::{
    alibaba, arc, biosnoop, biotracer, blkparse, blktrace, csv, disksim, etw, fio_iolog, fiu,
    ftrace, ids, iotrace, k5cloud, lcs, mooncake, mqsim, msr, named_objects, oracle_general,
    parquet, raw, spc, syscall, systor17, tencent, vscsi,
};

use crate::parts::{self, Recording};
use crate::reader::{MAX_REQUEST, bad_option, declared, shown};
use crate::source::ByteSource;
use crate::units::AddressUnit;
use crate::{Batch, OpenOptions, Skipped, TraceError, TraceReader, UnreadableRecord};
use cachewright_types::declare;
use cachewright_types::declare::{Declared, ValueKind};
use cachewright_types::{Bytes, Key, Nanos, nearest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Confidence below which content is not taken for a format.
pub const CONFIDENT: u8 = 40;
/// Two formats whose confidences differ by no more than this are not told apart.
pub const TIE_MARGIN: u8 = 5;

/// Every format that can be read. Adding one is a file and a line.
pub static FORMATS: &[TraceFormat] = &[
    alibaba::ENTRY,
    tencent::ENTRY,
    msr::ENTRY,
    systor17::ENTRY,
    spc::ENTRY,
    fiu::ENTRY,
    blkparse::ENTRY,
    fio_iolog::ENTRY,
    mqsim::ENTRY,
    disksim::ENTRY,
    biosnoop::ENTRY,
    ftrace::ENTRY,
    etw::ENTRY,
    iotrace::ENTRY,
    k5cloud::ENTRY,
    biotracer::ENTRY,
    named_objects::TECTONIC_ENTRY,
    named_objects::THESIOS_ENTRY,
    mooncake::ENTRY,
    syscall::ENTRY,
    arc::ENTRY,
    ids::ENTRY,
    csv::ENTRY,
    blktrace::ENTRY,
    vscsi::ENTRY,
    oracle_general::ENTRY,
    oracle_general::OP_NS_ENTRY,
    lcs::ENTRY,
    raw::ENTRY,
    parquet::ENTRY,
    crate::synth::ENTRY,
];

/// Opens the trace at `path` in the format named by `options`, or recognised from its content. A
/// pattern (`*`, `?`, `[...]`), and the parts that `options` name, are files of one recording:
/// their requests come by time, and volumes of one name are one. All have the format of the first
/// that is recognised; files without a request are passed over.
///
/// Errors: the operating system's; an empty file; a format that is unknown, not recognised or
/// ambiguous; an option that the format does not have; a pattern that fits no file.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    if options.parts.is_empty() && !parts::is_pattern(path) {
        return open_source(ByteSource::open(path)?, options);
    }
    let files = files_of(path, options)?;
    if let [only] = files.as_slice() {
        return open_source(ByteSource::open(only)?, options);
    }
    let mut own = OpenOptions { parts: Vec::new(), ..options.clone() };
    if own.format.is_none() {
        own.format = Some(recognise_any(&files)?.name.to_owned());
    }
    let (entry, own) = (chosen(&own)?, with_common(&own)?);
    let format = described(entry, &own);
    let open = move |part: &Path| (entry.open)(ByteSource::open(part)?, &own);
    let inner = Box::new(Recording::open(files, Box::new(open))?);
    let units = UnitDoubt::new(entry, options);
    Ok(Box::new(NotVacuous { inner, path: path.to_owned(), format, requests: 0, units }))
}

/// The files of one recording. Errors: a pattern that fits no file.
pub fn files_of(path: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = parts::named(path)?;
    for part in &options.parts {
        files.extend(parts::named(part)?);
    }
    Ok(files)
}

/// The format of the first file that is recognised. Errors: none is; then that of the first.
fn recognise_any(files: &[PathBuf]) -> Result<&'static TraceFormat, TraceError> {
    let mut error = None;
    for file in files {
        match ByteSource::open(file).and_then(|source| recognise_source(&source)) {
            Ok(entry) => return Ok(entry),
            Err(other) => error = error.or(Some(other)),
        }
    }
    Err(error.unwrap_or_else(|| bad_option("trace", "no file", "a trace")))
}

/// The format that options name, with their keys checked.
fn chosen(options: &OpenOptions) -> Result<&'static TraceFormat, TraceError> {
    let entry = find(options.format.as_deref().unwrap_or_default())?;
    for (key, value) in &options.format_options {
        check_key(entry, key, value)?;
    }
    Ok(entry)
}

/// The same for bytes in memory; `name` stands for the path in messages.
pub fn open_bytes(
    name: &str,
    bytes: &[u8],
    options: &OpenOptions,
) -> Result<Box<dyn TraceReader>, TraceError> {
    open_source(ByteSource::from_bytes(name, bytes)?, options)
}

/// The format that the content of `path` fits best; of a pattern, that of the first file that is
/// recognised. Errors as [`open`].
pub fn recognise(path: &Path) -> Result<&'static TraceFormat, TraceError> {
    recognise_any(&parts::named(path)?)
}

/// The format in which [`open`] reads a trace. Errors as there.
pub fn format_of(path: &Path, options: &OpenOptions) -> Result<&'static TraceFormat, TraceError> {
    match &options.format {
        Some(name) => find(name),
        None => recognise_any(&files_of(path, options)?),
    }
}

/// The same for bytes in memory.
pub fn recognise_bytes(bytes: &[u8]) -> Result<&'static TraceFormat, TraceError> {
    recognise_source(&ByteSource::from_bytes("memory", bytes)?)
}

/// The format called `name`. Errors: unknown, with the nearest known name.
pub fn find(name: &str) -> Result<&'static TraceFormat, TraceError> {
    FORMATS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let expected = match nearest(name, FORMATS.iter().map(|entry| entry.name)) {
            Some(near) => format!("one of {}; nearest is `{near}`", known()),
            None => format!("one of {}", known()),
        };
        bad_option("format", name, expected)
    })
}

/// Whether offsets of a trace number objects instead of addressing bytes. Errors: as [`open`].
pub fn counts_objects(path: &Path, options: &OpenOptions) -> Result<bool, TraceError> {
    let keys = (format_of(path, options)?.options)();
    if !keys.iter().any(|key| key.name == "address_unit") {
        return Ok(false);
    }
    Ok(open(path, options)?.counts_objects())
}

fn open_source(
    source: ByteSource,
    options: &OpenOptions,
) -> Result<Box<dyn TraceReader>, TraceError> {
    let named = options.format.as_deref().map(find).transpose()?;
    let entry = match named {
        Some(entry) => refuse_empty(&source).map(|()| entry)?,
        None => recognise_source(&source)?,
    };
    for (key, value) in &options.format_options {
        check_key(entry, key, value)?;
    }
    let options = &with_common(options)?;
    let path = source.path().to_owned();
    let format = described(entry, options);
    let inner = (entry.open)(source, options)?;
    let units = UnitDoubt::new(entry, options);
    Ok(Box::new(NotVacuous { inner, path, format, requests: 0, units }))
}

/// The options with those of [`CommonOptions`] taken from the format's own. Errors: a value out of
/// range.
fn with_common(options: &OpenOptions) -> Result<OpenOptions, TraceError> {
    let mut options = options.clone();
    let unset = CommonOptions { max_request: options.max_request }.values();
    let mut given = BTreeMap::new();
    for (key, value) in unset {
        let text = options.format_options.remove(key);
        let text = text.or_else(|| Some(value?.plain()));
        given.extend(text.map(|text| (key.to_owned(), text)));
    }
    options.max_request = declared::<CommonOptions>(&given)?.max_request;
    Ok(options)
}

/// The format with the options it is read with, as in `blkparse with event=Q`.
fn described(entry: &TraceFormat, options: &OpenOptions) -> String {
    let value = |key: Key| {
        let given = options.format_options.get(key.name).cloned();
        let value = given.or_else(|| Some(key.default?.plain()))?;
        (!value.is_empty()).then(|| format!("{}={}", key.name, shown(value.as_bytes())))
    };
    let values: Vec<String> = (entry.options)().into_iter().filter_map(value).collect();
    if values.is_empty() {
        return entry.name.to_owned();
    }
    format!("{} with {}", entry.name, values.join(", "))
}

fn refuse_empty(source: &ByteSource) -> Result<(), TraceError> {
    if !source.head().is_empty() {
        return Ok(());
    }
    Err(TraceError::File {
        path: source.path().to_owned(),
        found: "an empty file".to_owned(),
        expected: "a trace".to_owned(),
    })
}

fn recognise_source(source: &ByteSource) -> Result<&'static TraceFormat, TraceError> {
    refuse_empty(source)?;
    let mut fits: Vec<(u8, &TraceFormat)> = FORMATS
        .iter()
        .map(|entry| ((entry.recognise)(source.head()), entry))
        .filter(|(confidence, _)| *confidence >= CONFIDENT)
        .collect();
    fits.sort_by_key(|(confidence, entry)| (std::cmp::Reverse(*confidence), entry.name));
    let unrecognised = |detail: String| TraceError::Unrecognised {
        path: source.path().to_owned(),
        detail,
        known: known(),
        advice: String::new(),
    };
    match fits.as_slice() {
        [] => Err(unknown(source)),
        [(best, first), (next, second), ..] if *best <= next.saturating_add(TIE_MARGIN) => {
            Err(unrecognised(format!(" (it fits both `{}` and `{}`)", first.name, second.name)))
        }
        [(_, entry), ..] => Ok(entry),
    }
}

/// Thousandths of columns below which a format is not called the nearest.
const NEAR: u32 = 400;
/// Thousandths of columns from which on it is that format with bad lines.
const VERY_NEAR: u32 = 750;
/// Thousandths of lines above which content is taken for a format with some bad lines.
const MOSTLY: u32 = 500;

/// The refusal of content that fits no format: the nearest one with its reason, or how it would be
/// read as a table.
fn unknown(source: &ByteSource) -> TraceError {
    let head = source.head();
    let misses = FORMATS.iter().filter_map(|entry| Some((entry, (entry.near_miss)(head)?)));
    let near = misses
        .filter(|(_, miss)| miss.accepted >= NEAR)
        .max_by_key(|(_, miss)| (miss.accepted, miss.whole_lines));
    let is_damaged = near
        .as_ref()
        .is_some_and(|(_, miss)| miss.whole_lines > MOSTLY || miss.accepted >= VERY_NEAR);
    let proposal = Proposal::new(head, &OpenOptions::default());
    let proposal = proposal.filter(|found| found.is_named() || !is_damaged);
    let begins = format!("it begins with `{}`", shown(first_line(source)));
    let detail = match near {
        Some((entry, miss)) if proposal.as_ref().is_none_or(|found| !found.is_named()) => {
            format!(" ({begins}; nearest is `{}`, but {})", entry.name, miss.refused)
        }
        _ => format!(" ({begins})"),
    };
    TraceError::Unrecognised {
        path: source.path().to_owned(),
        detail,
        known: known(),
        advice: proposal.map(|found| found.to_string()).unwrap_or_default(),
    }
}

fn first_line(source: &ByteSource) -> &[u8] {
    source.head().split(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn known() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|entry| entry.name).collect();
    names.join(", ")
}

fn check_key(entry: &TraceFormat, key: &str, value: &str) -> Result<(), TraceError> {
    let own = (entry.options)().into_iter().chain(CommonOptions::keys());
    let all: Vec<&str> = own.map(|own| own.name).collect();
    if all.contains(&key) {
        return Ok(());
    }
    let expected = match nearest(key, all.iter().copied()) {
        Some(near) => format!("an option of format `{}`; nearest is `{near}`", entry.name),
        None => format!("an option of format `{}`: {}", entry.name, all.join(", ")),
    };
    Err(bad_option(key, value, expected))
}

/// Refuses a trace that ends without one request: then the file is not what it was taken for,
/// even where bad records are skipped.
struct NotVacuous {
    inner: Box<dyn TraceReader>,
    path: PathBuf,
    /// The format with its options, as in `blkparse with event=Q`.
    format: String,
    requests: u64,
    /// What its units are doubted for.
    units: UnitDoubt,
}

impl TraceReader for NotVacuous {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let start = batch.len();
        let count = self.inner.read(batch, max)?;
        self.requests += count as u64;
        self.units.look(batch, start);
        if count > 0 || max == 0 || self.requests > 0 {
            return Ok(count);
        }
        let skipped = self.inner.skipped();
        let first = match skipped.examples.first() {
            Some(record) => format!("; the first: {record}"),
            None => String::new(),
        };
        Err(TraceError::File {
            path: self.path.clone(),
            found: format!(
                "no request ({} bad and {} irrelevant records{first})",
                skipped.bad, skipped.irrelevant
            ),
            expected: format!("requests in format {}", self.format),
        })
    }

    fn volumes(&self) -> &[String] {
        self.inner.volumes()
    }

    fn has_times(&self) -> bool {
        self.inner.has_times()
    }

    fn skipped(&self) -> &Skipped {
        self.inner.skipped()
    }

    fn requests_hint(&self) -> Option<u64> {
        self.inner.requests_hint()
    }

    fn notes(&self) -> Vec<String> {
        let shift_ns = self.inner.shift_ns();
        let shifted = (shift_ns > 0).then(|| {
            let shift = Nanos(shift_ns);
            format!("times begin {shift} before zero: the trace is shifted to begin at zero")
        });
        let passed_over = self.inner.skipped().sentence().into_iter().chain(shifted);
        passed_over.chain(self.inner.notes()).chain(self.units.note()).collect()
    }

    fn shift_ns(&self) -> u64 {
        self.inner.shift_ns()
    }

    fn counts_objects(&self) -> bool {
        self.inner.counts_objects()
    }
}

declare! {
    /// Options that every format has beside its own.
    pub struct CommonOptions {
        /// longest read or write; a longer one is a malformed record
        max_request: Bytes = MAX_REQUEST, "bytes", 512 ..= 1_099_511_627_776;
    }
}

/// For formats that do not consist of lines with columns.
pub(crate) const NO_LINES: fn(&[u8]) -> Option<NearMiss> = |_| None;

/// A format's own beginning of reading.
pub type Open = fn(ByteSource, &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError>;

/// How near content comes to a format that it does not fit.
#[derive(Clone, Debug)]
pub struct NearMiss {
    /// Thousandths of the columns of its first lines that were accepted.
    pub accepted: u32,
    /// Thousandths of its first lines that were accepted as a whole.
    pub whole_lines: u32,
    /// The first line that was not accepted.
    pub refused: UnreadableRecord,
}

/// The unit of a column of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many nanoseconds or bytes, unless an option says another.
    Of(u64),
    /// There is no such column.
    Absent,
    /// What the file's own words or an option say.
    Stated,
}

/// What is known of one format; everything that lists formats reads this.
#[derive(Clone, Copy)]
pub struct TraceFormat {
    /// The name users write.
    pub name: &'static str,
    /// One sentence: what records and units look like.
    pub doc: &'static str,
    /// Where the format is defined.
    pub source: &'static str,
    /// The unit of times, in nanoseconds.
    pub time: Unit,
    /// The unit of offsets, in bytes.
    pub offset: Unit,
    /// The unit of lengths, in bytes.
    pub length: Unit,
    /// What is found out from the content, beside the format.
    pub detected: &'static str,
    /// Options that say what the content does not.
    pub to_say: &'static [&'static str],
    /// The keys of its own options.
    pub options: fn() -> Vec<Key>,
    /// How well the beginning of the decompressed content fits, 0 to 100.
    pub recognise: fn(&[u8]) -> u8,
    /// How near content that fits no format comes to this one, where that can be told by lines.
    pub near_miss: fn(&[u8]) -> Option<NearMiss>,
    /// Starts reading. The options' keys have been checked, their values not.
    pub open: Open,
}

/// Numbers of sectors that all are multiples of this are bytes, if both columns are so.
const SECTOR: u64 = 512;
/// The same of one column alone.
const PAGE: u64 = 4096;
/// Requests that do not begin at 0 below which nothing is concluded.
const FEWEST: u64 = 4;

/// What speaks against the units of offsets and lengths that no option states: some sets have a
/// format in sectors and others in bytes, without a word in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnitDoubt {
    /// Bytes of the unit taken for granted; nothing where it was stated, or is none of a format.
    offset_unit: Option<u64>,
    length_unit: Option<u64>,
    /// All bits that are set in any offset, or length.
    offset_bits: u64,
    length_bits: u64,
    /// Requests that do not begin at 0.
    requests: u64,
}

impl UnitDoubt {
    /// Of a trace that is read as `options` say.
    pub(super) fn new(entry: &TraceFormat, options: &OpenOptions) -> UnitDoubt {
        let keys = (entry.options)();
        let taken = |name: &str| {
            let key = keys.iter().find(|key| key.name == name)?;
            let is_stated = options.format_options.contains_key(name);
            let unit = AddressUnit::read(key.default.as_ref().filter(|_| !is_stated)?).ok()?;
            (unit.0 > 1).then_some(unit.0)
        };
        UnitDoubt {
            offset_unit: taken("offset_unit"),
            length_unit: taken("length_unit"),
            ..UnitDoubt::default()
        }
    }

    /// Looks at the requests of a batch from `start` on.
    pub(super) fn look(&mut self, batch: &Batch, start: usize) {
        if self.offset_unit.is_none() && self.length_unit.is_none() {
            return;
        }
        for offset in &batch.offset_bytes[start..] {
            self.offset_bits |= offset;
            self.requests += u64::from(*offset != 0);
        }
        self.length_bits |=
            batch.length_bytes[start..].iter().fold(0, |bits, length| bits | length);
    }

    /// What has been found, as a sentence.
    pub(super) fn note(&self) -> Option<String> {
        let all_multiples = |bits: u64, unit: Option<u64>, factor: u64| {
            unit.is_some_and(|unit| bits != 0 && bits & (unit * factor - 1) == 0)
        };
        let offset = |factor| all_multiples(self.offset_bits, self.offset_unit, factor);
        let length = |factor| all_multiples(self.length_bits, self.length_unit, factor);
        let (what, options) = if self.requests < FEWEST {
            return None;
        } else if offset(SECTOR) && length(SECTOR) {
            ("offset and length is a multiple of 512", "`offset_unit=B` and `length_unit=B` say")
        } else if offset(PAGE) {
            ("offset is a multiple of 4096", "`offset_unit=B` says")
        } else if length(PAGE) {
            ("length is a multiple of 4096", "`length_unit=B` says")
        } else {
            return None;
        };
        Some(format!("every {what}: bytes may be meant, not sectors of 512 B; {options} so"))
    }
}
