//! What an oracle does with each request of a workload: what models of admission learn from.
//!
//! For: labels of a stack's only tenant, at the stack's capacity. Must never know: models,
//! features. Source: Ebrahimi et al., RC-RNN, section 4.1 and table 2. Units: nanoseconds, bytes,
//! blocks; a duration counts block accesses.
//!
//! The oracle decides by blocks, a model by requests: a request is cached when the oracle holds
//! more than half of its blocks after it, and its duration is the one that most of these have, the
//! shorter of equals. How long a block stays is counted from each access on to its eviction
//! ([`Reading::Remaining`]: models "label eviction time of requests", for each access), or from the
//! access that brought it in ([`Reading::WholeStay`], the literal reading of "between entering a
//! data page to the cache and replacing it"): every access of a stay then has the same. A stay
//! that nothing ends within the horizon is late, however short it was. With `replay.warmup` all
//! requests are labelled all the same. Trims and flushes have no labels. With `[device]` tables
//! benefits weigh how much longer the disk takes for each request; without them all devices are
//! taken to be equally fast.
//!
//! [`Split`]: labels that train see nothing beyond the part that trains, as if the trace ended
//! there. The labels of the rest, by which models are judged, see the whole trace.

mod reading;
mod stays;
pub mod training_set;

pub use reading::{OracleOptions, Reading, Split};
pub use training_set::{TrainingSet, training_set};

use crate::case::{Case, ResolvedCase};
use crate::job::Job;
use crate::progress::{OnProgress, with_threads};
use crate::record::column;
use crate::record::{Kept, record};
use crate::workload::Workload;
use crate::{ExperimentError, Spec};
use cachewright_policy::RequestInfo;
use cachewright_system::recording::TRIM;
use cachewright_system::{FutureKind, Recording};
use cachewright_types::Op;
use cachewright_types::measure::Counts;
use reading::is_labelled;
use stays::Stays;
use std::ops::Range;
use std::path::Path;

/// Cache sizes in accesses from which on a stay is late.
const LATE_SIZES: u64 = 5;

/// What to label, and how.
#[derive(Clone, Debug, Default)]
pub struct LabelOptions {
    /// A policy that knows the future (`benefit-oracle` or `belady-bypass`), and its labels.
    pub oracle: OracleOptions,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// Where the part that trains ends.
    pub split: Split,
}

/// How long a block stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duration {
    /// Fewer accesses than the cache has blocks.
    Soon,
    /// Fewer than five times as many.
    Mean,
    /// As many and more, or to the end of the trace.
    Late,
    /// It does not come in.
    None,
}

/// Every read and write of a workload, in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestColumns {
    /// When each request arrives.
    pub time_ns: Vec<u64>,
    /// Its first byte; several volumes lie one behind the other.
    pub offset: Vec<u64>,
    /// Its bytes.
    pub length: Vec<u64>,
    /// [`Op::Read`] or [`Op::Write`].
    pub op: Vec<Op>,
}

impl RequestColumns {
    fn push(&mut self, info: &RequestInfo) {
        self.time_ns.push(info.time_ns);
        self.offset.push(info.offset);
        self.length.push(info.length);
        self.op.push(if info.write { Op::Write } else { Op::Read });
    }
}

/// Every read and write of a workload, and what the oracle does with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The policy asked.
    pub policy: String,
    /// The cache.
    pub capacity_blocks: u32,
    /// Size of a block.
    pub block_bytes: u64,
    /// The requests.
    pub requests: RequestColumns,
    /// Whether most of the blocks of each are in the cache after it.
    pub cached: Vec<bool>,
    /// How long most of them stay.
    pub duration: Vec<Duration>,
    /// What the oracle counts.
    pub counts: Counts,
    /// Requests, from the first on, whose labels see nothing beyond the last of them.
    pub split: usize,
    /// Requests until the cache of the oracle was full for the first time; all if it never was.
    pub filled: usize,
    /// Block accesses behind the split and the oracle's hits among them.
    pub later: (u64, u64),
}

impl Labels {
    /// Requests with each duration, in order of [`Duration`].
    pub fn durations(&self) -> [u64; 4] {
        let mut counts = [0; 4];
        for duration in &self.duration {
            counts[*duration as usize] += 1;
        }
        counts
    }
}

/// Asks the oracle about every request of a stack's only tenant. Errors: several tenants, a policy
/// that does not know the future, what replays refuse.
pub fn labels(
    text: &str,
    origin: &Path,
    options: &LabelOptions,
    progress: OnProgress<'_>,
) -> Result<Labels, ExperimentError> {
    Ok(labelled(text, origin, options, progress)?.0)
}

/// The labels with the recording whose requests they are of.
fn labelled(
    text: &str,
    origin: &Path,
    options: &LabelOptions,
    progress: OnProgress<'_>,
) -> Result<(Labels, Recording), ExperimentError> {
    let policy = ("cache.policy".to_owned(), options.oracle.oracle.clone());
    let set: Vec<_> = options.set.iter().cloned().chain([policy]).collect();
    let spec = crate::spec::parse(text, origin, &set)?;
    check(&spec).map_err(|message| ExperimentError::spec(origin, message))?;
    with_threads(options.threads, || {
        let case = Case::single(spec);
        case.check_policy()?;
        let foresight = case.needs.future;
        let devices = case.spec.stack.is_some();
        let keys = case.needs.keys();
        let kept = Kept { keys, requests: true, devices, ..Kept::times(true) };
        let mut recorded = record(&case.spec, kept, progress)?;
        let requests = recorded.take_requests();
        let recording = &recorded.recording;
        let case = &case.resolve(recording)?;
        let workload = match case.spec.stack {
            Some(_) => Workload::on_devices(case, &recorded, requests, progress)?,
            None => Workload::new(recording, progress),
        };
        let ratios = workload.ratios(case)?;
        let job = Job::new(&workload, case);
        let futures = column(case, foresight, recording, &ratios)?;
        let cut = options.split.request(recording);
        let end = recording.start_of(cut);
        let whole = (recording.len(), end);
        let (whole, counts) = stays::follow(&job, futures.as_slice(), whole, progress)?;
        let mut labels = Labels::none(case, counts);
        labels.later = whole.later;
        if cut > 0 {
            let before = foresight.column_until(recording, &ratios, end).unwrap_or_default();
            let (part, _) = stays::follow(&job, before.as_slice(), (end, end), progress)?;
            labels.decide(recording, &part, 0..cut, options.oracle.labels);
            labels.split = labels.cached.len();
        }
        labels.decide(recording, &whole, cut..recording.times_ns().len(), options.oracle.labels);
        labels.filled = labels.before(recording, whole.filled);
        Ok((labels, recorded.recording))
    })
}

fn check(spec: &Spec) -> Result<(), String> {
    let (name, tenants) = (&spec.cache.policy.name, spec.tenants.len());
    cachewright_policy::entry(name).map_err(|error| format!("`policy`: {error}"))?;
    if FutureKind::of_policy(name) == FutureKind::Nothing {
        let expected = "expected one that knows the future, such as `benefit-oracle`";
        return Err(format!("`policy`: found `{name}`, {expected}"));
    }
    if tenants != 1 {
        return Err(format!("`tenant`: found {tenants}, expected one: labels are of one workload"));
    }
    Ok(())
}

impl Labels {
    fn none(case: &ResolvedCase<'_>, counts: Counts) -> Labels {
        Labels {
            policy: case.spec.cache.policy.name.clone(),
            capacity_blocks: case.capacity_blocks,
            block_bytes: case.spec.cache.block.0,
            requests: RequestColumns::default(),
            cached: Vec::new(),
            duration: Vec::new(),
            counts,
            split: 0,
            filled: 0,
            later: (0, 0),
        }
    }

    /// The labelled requests before the one of an access of the recording.
    fn before(&self, recording: &Recording, access: Option<usize>) -> usize {
        let Some(access) = access else { return self.cached.len() };
        let before = |request: &usize| recording.accesses_of(*request).end <= access;
        let requests = (0..recording.times_ns().len()).take_while(before);
        requests.filter(|request| is_labelled(recording, *request)).count()
    }

    /// Writes down what the reads and writes among `requests` are, and what becomes of them.
    fn decide(
        &mut self,
        recording: &Recording,
        stays: &Stays,
        requests: Range<usize>,
        reading: Reading,
    ) {
        let first = recording.start_of(requests.start);
        let trims = recording.flags[..first].iter().filter(|flags| **flags & TRIM != 0).count();
        let mut now = (first - trims) as u32;
        for request in requests {
            let accesses = recording.accesses_of(request);
            let info = recording.request_info(request, recording.times_ns()[request]);
            let Some(info) = info else { continue };
            self.requests.push(&info);
            let (mut blocks, mut held) = (0_u32, [0_u32; 3]);
            for index in accesses {
                blocks += 1;
                match stays.lasts(index, reading, now).map(|lasts| self.class(lasts)) {
                    Some(Duration::Soon) => held[0] += 1,
                    Some(Duration::Mean) => held[1] += 1,
                    Some(Duration::Late) => held[2] += 1,
                    Some(Duration::None) | None => {}
                }
                now += 1;
            }
            let cached = 2 * held.iter().sum::<u32>() > blocks;
            let max = held.iter().max();
            self.cached.push(cached);
            self.duration.push(match held.iter().position(|count| Some(count) == max) {
                _ if !cached => Duration::None,
                Some(0) => Duration::Soon,
                Some(1) => Duration::Mean,
                _ => Duration::Late,
            });
        }
    }

    /// The label of a stay of so many accesses.
    fn class(&self, lasted: u64) -> Duration {
        let size = u64::from(self.capacity_blocks);
        match lasted {
            lasted if lasted < size => Duration::Soon,
            lasted if lasted < LATE_SIZES * size => Duration::Mean,
            _ => Duration::Late,
        }
    }
}
