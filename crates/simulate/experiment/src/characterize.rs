//! What runs on a trace's volumes, over time, and what a characterizer sees of it as numbers.
//!
//! Units are in the names of the JSON keys; times are since the trace's first request. Source:
//! RC-RNN (Ebrahimi et al.), section 4.2: the last 1,000 requests are judged once a minute. Each
//! volume has classes and a characterizer of its own.

use crate::ExperimentError;
pub use crate::info::TraceChoice;
use crate::info::scan;
use crate::json::document;
use crate::progress::OnProgress;
use cachewright_model::StoredModel;
use cachewright_policy::characterize::{
    Characterizer, RequestClass, RequestClassifier, RequestFeatures, boxed, features,
};
use cachewright_result::document::Written;
use cachewright_result::trace::CharacterizeAnswer;
use cachewright_result::trace::ClassShares;
use cachewright_result::trace::JudgedPeriod;
use cachewright_result::trace::KindJudgement;
use cachewright_result::trace::PeriodCounts;
use cachewright_trace::Record;
use cachewright_trace::intern::Interner;
use cachewright_types::measure::ratio;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, parse_duration};
use serde_json::Value;
use std::path::Path;

/// How to characterize a trace.
#[derive(Clone, Debug)]
pub struct CharacterizeOptions {
    /// Which requests.
    pub choice: TraceChoice,
    /// How long a period is: a duration with unit, a number of reads and writes, or `auto`: as
    /// long as gives some tens of periods.
    pub every: String,
    /// A model file; its notes say of which characterizer. Without one no kind is said.
    pub model: Option<Vec<u8>>,
}

/// What is kept per volume.
struct VolumeState {
    classes: RequestClassifier,
    characterizer: Option<Box<dyn Characterizer>>,
    /// Whether it asked for anything in the period under way.
    busy: bool,
}

/// Reads a whole trace and says what ran in each period.
pub fn characterize(
    path: &Path,
    options: &CharacterizeOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(path, message);
    let every = match read(&options.every).map_err(refuse)? {
        Some(every) => every,
        None => chosen(path, &options.choice, progress)?,
    };
    let by = options.model.as_deref().map(by).transpose().map_err(refuse)?;
    let model = by.as_deref().zip(options.model.as_deref());
    let kinds = match model {
        Some((by, model)) => with_model(by, model).map_err(refuse)?.kinds().to_vec(),
        None => Vec::new(),
    };
    let mut study = Study { every, model, volumes: Vec::new(), period: None, done: Vec::new() };
    let mut whole = Period::beginning(0);
    let found = scan(path, &options.choice, progress, |record, time_ns| {
        study.add(record, time_ns, &mut whole).map_err(refuse)
    })?;
    if !found.has_times && matches!(every, Every::Time(_)) {
        let expected = "expected a number of requests, because the trace has no times";
        return Err(refuse(format!("`every`: found `{}`, {expected}", options.every)));
    }
    study.close();
    document(&CharacterizeAnswer {
        written: Written::here(),
        volumes: found.volumes,
        path: path.display().to_string(),
        kinds,
        every: every.text(),
        every_chosen: options.every == AUTO,
        total: whole.counts(),
        periods: study.done,
        characterizer: by,
    })
}

/// The characterizer that a model file is of.
fn by(model: &[u8]) -> Result<String, String> {
    let stored = StoredModel::from_bytes(model).map_err(|error| format!("model: {error}"))?;
    let noted = stored.description.notes.get("characterizer").cloned();
    noted.ok_or_else(|| {
        "model: found no note `characterizer`, expected a model of `train kinds`".to_owned()
    })
}

/// A characterizer with its model.
fn with_model(by: &str, model: &[u8]) -> Result<Box<dyn Characterizer>, String> {
    let mut characterizer = boxed(by, &[]).map_err(|error| format!("model: {error}"))?;
    characterizer.learn(model).map_err(|error| format!("model: {error}"))?;
    Ok(characterizer)
}

/// Periods being gathered.
struct Study<'a> {
    every: Every,
    model: Option<(&'a str, &'a [u8])>,
    volumes: Vec<VolumeState>,
    period: Option<Period>,
    done: Vec<JudgedPeriod>,
}

impl Study<'_> {
    fn add(&mut self, record: &Record, time_ns: u64, whole: &mut Period) -> Result<(), String> {
        let index = record.volume as usize;
        while self.volumes.len() <= index {
            let characterizer = self.model.map(|(by, model)| with_model(by, model)).transpose()?;
            let classes = RequestClassifier::default();
            self.volumes.push(VolumeState { classes, characterizer, busy: false });
        }
        if self.period.as_ref().is_some_and(|period| self.is_over(period, time_ns)) {
            self.close();
        }
        let every = self.every;
        let period = self.period.get_or_insert_with(|| match every {
            Every::Time(Nanos(width)) => Period::beginning(time_ns / width * width),
            Every::Requests(_) => Period::beginning(time_ns),
        });
        let request = request(record, time_ns);
        let volume = &mut self.volumes[index];
        volume.busy = true;
        if let Some(characterizer) = &mut volume.characterizer {
            characterizer.observe(&request);
        }
        let classified = Classified { record, time_ns, class: volume.classes.class(&request) };
        period.add(&classified)?;
        whole.add(&classified)
    }

    fn is_over(&self, period: &Period, time_ns: u64) -> bool {
        match self.every {
            Every::Time(Nanos(width)) => time_ns >= period.start_ns.saturating_add(width),
            Every::Requests(count) => period.accesses() >= count,
        }
    }

    /// Ends the period under way, if there is one, and judges the volumes that were busy in it.
    fn close(&mut self) {
        let Some(period) = self.period.take() else { return };
        let mut judged = Vec::new();
        for (index, volume) in self.volumes.iter_mut().enumerate() {
            let Some(characterizer) = &mut volume.characterizer else { continue };
            if !std::mem::take(&mut volume.busy) {
                continue;
            }
            if let Some(found) = characterizer.classify() {
                judged.push(KindJudgement {
                    volume: index,
                    kind: characterizer.kinds()[found.kind].to_owned(),
                    confidence: found.confidence,
                    scores: found.scores,
                });
            }
        }
        self.done.push(JudgedPeriod { counts: period.counts(), judged });
    }
}

fn request(record: &Record, time_ns: u64) -> Request {
    Request {
        time: Nanos(time_ns),
        offset: Bytes(record.offset_bytes),
        length: Bytes(record.length_bytes),
        op: record.op,
        tenant: TenantId(0),
    }
}

/// Whether a record reads or writes.
fn is_access(record: &Record) -> bool {
    matches!(record.op, Op::Read | Op::Write)
}

/// Chosen by the trace's span.
const AUTO: &str = "auto";
/// Periods at most when the duration is chosen; there are at least 16 but in short spans.
const MAX_PERIODS: u64 = 40;
const EXPECTED: &str =
    "expected `auto`, a duration such as `60s` or a number of requests, at least 1";
const SECOND_NS: u64 = 1_000_000_000;
/// Round durations from a second on: one is at most 2.5 times the one before, up to a day.
const ROUND_S: [u64; 17] =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 43_200, 86_400];

/// When a period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Every {
    Time(Nanos),
    Requests(u64),
}

impl Every {
    /// As a user would ask for it.
    pub fn text(self) -> String {
        match self {
            Every::Time(width) => width.exact(),
            Every::Requests(count) => count.to_string(),
        }
    }
}

/// Reads `every`: a whole number is requests, nothing is to be chosen, anything else a duration.
fn read(text: &str) -> Result<Option<Every>, String> {
    if text == AUTO {
        return Ok(None);
    }
    let refuse = || format!("`every`: found `{text}`, {EXPECTED}");
    let found = match text.trim().parse::<u64>() {
        Ok(requests) => Every::Requests(requests),
        Err(_) => Every::Time(parse_duration(text).map_err(|_| refuse())?),
    };
    match found {
        Every::Requests(0) | Every::Time(Nanos(0)) => Err(refuse()),
        found => Ok(Some(found)),
    }
}

/// A round duration by the span of a trace, which is read once for that; requests where all arrive
/// at one time. Errors: a trace that cannot be read, or not a second time.
fn chosen(
    path: &Path,
    choice: &TraceChoice,
    progress: OnProgress<'_>,
) -> Result<Every, ExperimentError> {
    if path.exists() && !path.is_file() && !path.is_dir() {
        let message = "`every`: found `auto` with a pipe, which is read once; expected a duration \
                       such as `60s` or a number of requests";
        let message = message.to_owned();
        return Err(ExperimentError::spec(path, message));
    }
    let (mut span_ns, mut accesses) = (0, 0);
    scan(path, choice, progress, |record, time_ns| {
        span_ns = span_ns.max(time_ns);
        accesses += u64::from(is_access(record));
        Ok(())
    })?;
    Ok(round(span_ns, accesses))
}

/// The smallest round duration (requests where there is no span) that makes at most
/// [`MAX_PERIODS`].
fn round(span_ns: u64, accesses: u64) -> Every {
    if span_ns == 0 {
        return Every::Requests(one_two_five(accesses.div_ceil(MAX_PERIODS).max(1)));
    }
    // The last request lies in a period of its own where the span is a multiple.
    let min_ns = (span_ns / MAX_PERIODS).saturating_add(1);
    if min_ns <= SECOND_NS {
        return Every::Time(Nanos(one_two_five(min_ns)));
    }
    let seconds = min_ns.div_ceil(SECOND_NS);
    let day = ROUND_S[ROUND_S.len() - 1];
    let found = ROUND_S.iter().copied().find(|round| *round >= seconds);
    let found = found.unwrap_or_else(|| one_two_five(seconds.div_ceil(day)).saturating_mul(day));
    Every::Time(Nanos(found.saturating_mul(SECOND_NS)))
}

/// The smallest of 1, 2, 5, 10, 20, ... that is no less.
fn one_two_five(min: u64) -> u64 {
    let mut ten = 1_u64;
    while ten.saturating_mul(5) < min && ten < u64::MAX / 100 {
        ten *= 10;
    }
    [1, 2, 5].map(|digit| ten * digit).into_iter().find(|round| *round >= min).unwrap_or(min)
}

const PAGE_BITS: u32 = 12;

/// One record as a period hears it.
pub struct Classified<'a> {
    /// The record.
    pub record: &'a Record,
    /// Since the trace's first request.
    pub time_ns: u64,
    /// Its class, if it reads or writes.
    pub class: Option<RequestClass>,
}

/// Counts of one stretch of a trace.
pub struct Period {
    /// Where it begins.
    pub start_ns: u64,
    latest_ns: u64,
    requests: [u64; 4],
    bytes: [u64; 4],
    classes: [u64; 4],
    class_bytes: [u64; 4],
    pages: Interner,
    ids: Vec<u32>,
}

impl Period {
    /// One in which nothing was asked for yet.
    pub fn beginning(start_ns: u64) -> Period {
        Period {
            start_ns,
            latest_ns: start_ns,
            requests: [0; 4],
            bytes: [0; 4],
            classes: [0; 4],
            class_bytes: [0; 4],
            pages: Interner::new(),
            ids: Vec::new(),
        }
    }

    /// Reads and writes.
    pub fn accesses(&self) -> u64 {
        self.requests[Op::Read as usize] + self.requests[Op::Write as usize]
    }

    /// Counts a record. Errors: more pages than can be numbered.
    pub fn add(&mut self, classified: &Classified) -> Result<(), String> {
        let Classified { record, time_ns, class } = classified;
        self.latest_ns = self.latest_ns.max(*time_ns);
        let add = |sum: &mut u64| *sum = sum.saturating_add(record.length_bytes);
        self.requests[record.op as usize] += 1;
        add(&mut self.bytes[record.op as usize]);
        let Some(class) = class else { return Ok(()) };
        self.classes[*class as usize] += 1;
        add(&mut self.class_bytes[*class as usize]);
        let first = record.offset_bytes >> PAGE_BITS;
        let last = record.offset_bytes.saturating_add(record.length_bytes.max(1)) - 1;
        let count = (last >> PAGE_BITS) - first + 1;
        self.ids.clear();
        let interned = self.pages.intern_range(record.volume, first, count, &mut self.ids);
        interned.map_err(|error| error.to_string())
    }

    /// The counts and shares by their names.
    pub fn counts(&self) -> PeriodCounts {
        let count = |op: Op| self.requests[op as usize];
        let bytes = |op: Op| self.bytes[op as usize];
        let span_s = (self.latest_ns - self.start_ns) as f64 / 1e9;
        let accesses = self.accesses();
        PeriodCounts {
            start_ns: self.start_ns,
            end_ns: self.latest_ns,
            reads: count(Op::Read),
            writes: count(Op::Write),
            trims: count(Op::Trim),
            flushes: count(Op::Flush),
            rate_per_s: if span_s > 0.0 { accesses as f64 / span_s } else { 0.0 },
            read_share: ratio(count(Op::Read), accesses),
            read_bytes: bytes(Op::Read),
            write_bytes: bytes(Op::Write),
            mean_bytes: ratio(bytes(Op::Read).saturating_add(bytes(Op::Write)), accesses),
            classes: shares(&self.classes),
            class_bytes: shares(&self.class_bytes),
            working_set_bytes: u64::from(self.pages.distinct()) << PAGE_BITS,
        }
    }
}

fn shares(counts: &[u64; 4]) -> ClassShares {
    let total: u64 = counts.iter().sum();
    let share = |class: RequestClass| ratio(counts[class as usize], total);
    ClassShares {
        sequential: share(RequestClass::Sequential),
        overlapped: share(RequestClass::Overlapped),
        strided: share(RequestClass::Strided),
        random: share(RequestClass::Random),
    }
}

/// The rows of one volume, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeRows {
    /// The volume's name.
    pub name: String,
    /// When each read and write came, since the trace's first request.
    pub time_ns: Vec<u64>,
    /// The numbers of each, one request after another.
    pub rows: Vec<f32>,
}

/// The rows of every volume of a trace, and how many numbers a row has.
pub fn rows(
    path: &Path,
    choice: &TraceChoice,
    by: &str,
    progress: OnProgress<'_>,
) -> Result<(Vec<VolumeRows>, usize), ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(path, message);
    let fresh = || features(by, &[]).map_err(|error| refuse(error.to_string()));
    let width = fresh()?.names().len();
    let mut volumes: Vec<(Box<dyn RequestFeatures>, VolumeRows)> = Vec::new();
    let names = scan(path, choice, progress, |record, time_ns| {
        let index = record.volume as usize;
        while volumes.len() <= index {
            volumes.push((fresh()?, VolumeRows::default()));
        }
        if is_access(record) {
            let (sees, found) = &mut volumes[index];
            sees.row(&request(record, time_ns), &mut found.rows);
            found.time_ns.push(time_ns);
        }
        Ok(())
    })?
    .volumes;
    let named = volumes.into_iter().zip(names);
    let found = named.map(|((_, rows), name)| VolumeRows { name, ..rows });
    Ok((found.filter(|volume| !volume.time_ns.is_empty()).collect(), width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_duration_a_number_of_requests_or_chosen() {
        assert_eq!(read("60s"), Ok(Some(Every::Time(Nanos(60 * SECOND_NS)))));
        assert_eq!(read("5000"), Ok(Some(Every::Requests(5000))));
        assert_eq!(read("auto"), Ok(None));
        for wrong in ["0", "0s", "often", "-1s", ""] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(&format!("`every`: found `{wrong}`")), "{error}");
        }
    }

    #[test]
    fn a_chosen_period_is_round_and_cuts_a_span_into_some_tens() {
        for (span_s, expected) in [(90, "5s"), (40, "2s"), (600, "20s"), (86_400, "1h")] {
            let found = round(span_s * SECOND_NS, 1000);
            assert_eq!(found.text(), expected, "{span_s} s");
        }
        assert_eq!(round(3, 1000).text(), "1ns");
        assert_eq!(round(3_000_000, 1000).text(), "100us");
        assert_eq!(round(0, 0).text(), "1");
        assert_eq!(round(0, 100_000).text(), "5000");
        let mut span_ns = 7;
        while span_ns < u64::MAX / 3 {
            let Every::Time(width) = round(span_ns, 1) else { panic!("a span is cut by time") };
            let periods = span_ns / width.0 + 1;
            assert!(periods <= MAX_PERIODS, "{periods} of {width} in {span_ns} ns");
            assert!(periods >= 16 || span_ns < 100, "{periods} of {width} in {span_ns} ns");
            span_ns = span_ns / 2 * 3;
        }
    }

    #[test]
    fn counts_shares_and_pages_by_hand() {
        let mut period = Period::beginning(0);
        let record = |op, offset_bytes, length_bytes| Record {
            time_ns: 0,
            offset_bytes,
            length_bytes,
            op,
            volume: 0,
        };
        let requests = [
            (record(Op::Read, 0, 8192), Some(RequestClass::Random)),
            (record(Op::Write, 8192, 4096), Some(RequestClass::Sequential)),
            (record(Op::Read, 6000, 4096), Some(RequestClass::Overlapped)),
            (record(Op::Flush, 0, 0), None),
        ];
        for (time, (record, class)) in requests.iter().enumerate() {
            let time_ns = time as u64 * 1_000_000_000;
            period.add(&Classified { record, time_ns, class: *class }).unwrap();
        }
        let found = period.counts();
        assert_eq!(found.rate_per_s, 1.0);
        assert_eq!(found.read_share, 2.0 / 3.0);
        assert_eq!(found.mean_bytes, 16384.0 / 3.0);
        assert_eq!(found.class_bytes.random, 0.5);
        assert_eq!(found.classes.strided, 0.0);
        assert_eq!(found.working_set_bytes, 3 * 4096);
        assert_eq!(found.flushes, 1);
    }
}
