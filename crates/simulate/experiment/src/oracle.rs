//! What an oracle does with each request of a workload: what models of admission learn from.
//!
//! Labels are of a stack's only tenant, at the stack's capacity. Source: Ebrahimi et al., RC-RNN,
//! section 4.1 and table 2. Units: nanoseconds, bytes, blocks; a duration counts block accesses.
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

use crate::case::{Case, ResolvedCase};
use crate::job::Job;
use crate::progress::{OnProgress, Progress, with_threads};
use crate::record::{Kept, column, record};
use crate::workload::Workload;
use crate::{ExperimentError, Spec};
use cachewright_cache::{BlockAccess, Quotas};
use cachewright_policy::rc_rnn::features::{CachingLabel, FeatureSet, FeatureStream, StayClass};
use cachewright_policy::rc_rnn::replayed;
use cachewright_policy::{FutureSlice, NEVER, RequestInfo, Verdict};
use cachewright_system::recording::{CUT_OFF, LAST, TRIM, WRITE};
use cachewright_system::{FutureKind, Recording};
use cachewright_types::measure::Counts;
use cachewright_types::{BlockId, Op, TenantId, choices, declare};
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
        let (whole, counts) = follow(&job, futures.as_slice(), recording.len(), end, progress)?;
        let mut labels = Labels::none(case, counts);
        labels.later = whole.later;
        if cut > 0 {
            let before = foresight.column_until(recording, &ratios, end).unwrap_or_default();
            let (part, _) = follow(&job, before.as_slice(), end, end, progress)?;
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

choices! {
    /// What a duration counts.
    pub enum Reading {
        /// From the access on to the eviction of its block.
        Remaining = "remaining",
        /// From the access that brought the block in to its eviction.
        WholeStay = "residence",
    }
}

declare! {
    /// Options of `labels`: which oracle is asked, and what its labels count.
    pub struct OracleOptions {
        /// the policy with knowledge of the future that the model imitates
        oracle: String = "benefit-oracle".to_owned(), "name";
        /// what duration labels count: what remains from each access on, or the whole residence
        labels: Reading = Reading::Remaining, "word";
    }
}

/// Where the part of a workload ends whose labels see no further than itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Split {
    /// There is none: all labels see the whole trace.
    #[default]
    None,
    /// After this share of the reads and writes, rounded down.
    Share(f64),
    /// Before the first request at this time in nanoseconds.
    Time(u64),
}

impl Split {
    /// The first request of a recording behind the part; 0 without one.
    fn request(self, recording: &Recording) -> usize {
        match self {
            Split::None => 0,
            Split::Time(ns) => recording.times_ns().partition_point(|time| *time < ns),
            Split::Share(share) => {
                let labelled = |request: &usize| is_labelled(recording, *request);
                let requests = recording.times_ns().len();
                let count = (0..requests).filter(labelled).count();
                let wanted = (count as f64 * share) as usize;
                (0..requests).filter(labelled).nth(wanted).unwrap_or(requests)
            }
        }
    }
}

/// Whether a request is a read or a write.
fn is_labelled(recording: &Recording, request: usize) -> bool {
    recording.request_info(request, recording.times_ns()[request]).is_some()
}

/// No stay.
const OUT: u32 = u32::MAX;
/// Accesses between two calls of the progress function.
const PROGRESS_EVERY: usize = 1 << 18;

/// The stays of all blocks.
#[derive(Clone, Debug, Default)]
struct Stays {
    /// The stay that each access of the recording falls into, or [`OUT`].
    by_access: Vec<u32>,
    /// The stay of each block at present, or [`OUT`].
    by_block: Vec<u32>,
    /// The number of the access that began each stay, and of the one that ended it; [`NEVER`] for
    /// no end.
    intervals: Vec<(u32, u32)>,
    /// The access of the recording at which the cache was full for the first time.
    filled: Option<usize>,
    /// Accesses and hits from an access on.
    later: (u64, u64),
}

/// Replays the recording of a job with one tenant through its cache up to its access number `end`,
/// those from `later` on counted apart; `futures` are those of its accesses. Errors: a setting of
/// the policy, cancelled.
fn follow(
    job: &Job<'_>,
    futures: FutureSlice<'_>,
    end: usize,
    later: usize,
    progress: OnProgress<'_>,
) -> Result<(Stays, Counts), ExperimentError> {
    let (recording, tenant) = (job.workload.recording, TenantId(0));
    let quotas = Quotas::Shared(job.capacity_blocks);
    let mut engine = job.boxed(&quotas)?;
    engine.reserve_ids(0, recording.distinct as usize);
    let mut stays = Stays { by_block: vec![OUT; recording.distinct as usize], ..Stays::default() };
    let (mut now, mut all_hit) = (0_u32, true);
    let mut free_blocks = job.capacity_blocks;
    for (index, (id, flags)) in recording.ids.iter().zip(&recording.flags).enumerate().take(end) {
        let block = BlockId(*id);
        if index.is_multiple_of(PROGRESS_EVERY) {
            let (stage, total) = ("asking the oracle", Some(recording.len() as u64));
            if !progress(Progress { stage, done: index as u64, total }) {
                return Err(ExperimentError::Cancelled);
            }
        }
        if flags & TRIM != 0 {
            engine.discard(tenant, block);
            stays.leave(block, now);
            stays.by_access.push(OUT);
            continue;
        }
        let (write, future) = (flags & WRITE != 0, futures.at(index));
        let access = BlockAccess { block, tenant, write, future };
        let outcome = match flags & CUT_OFF != 0 {
            true => engine.pass(access),
            false => engine.access(access),
        };
        match outcome.verdict {
            Verdict::Hit => {}
            Verdict::Admit { evicted } => {
                match evicted {
                    Some(evicted) => stays.leave(evicted, now),
                    None => free_blocks = free_blocks.saturating_sub(1),
                }
                if free_blocks == 0 {
                    stays.filled.get_or_insert(index);
                }
                stays.enter(block, now);
            }
            Verdict::Bypass => stays.leave(block, now),
        }
        stays.by_access.push(stays.by_block[block.index()]);
        let hit = outcome.verdict == Verdict::Hit;
        if index >= later {
            stays.later.0 += 1;
            stays.later.1 += u64::from(hit);
        }
        all_hit &= hit;
        if flags & LAST != 0 {
            engine.count_request(tenant, std::mem::replace(&mut all_hit, true));
        }
        now += 1;
    }
    Ok((stays, *engine.counts(tenant)))
}

impl Stays {
    /// How many accesses the stay lasts into which an access of the recording falls, or what is
    /// left of it after the accesses `now` before that one; [`u64::MAX`] for one without end.
    /// Nothing if the block is out after the access.
    fn lasts(&self, index: usize, reading: Reading, now: u32) -> Option<u64> {
        let (began, ended) = *self.intervals.get(self.by_access[index] as usize)?;
        let from = if reading == Reading::Remaining { now } else { began };
        Some(if ended == NEVER { u64::MAX } else { u64::from(ended.saturating_sub(from)) })
    }

    fn enter(&mut self, block: BlockId, now: u32) {
        self.by_block[block.index()] = self.intervals.len() as u32;
        self.intervals.push((now, NEVER));
    }

    /// Ends the stay of a block, if it is in the cache.
    fn leave(&mut self, block: BlockId, now: u32) {
        let stay = std::mem::replace(&mut self.by_block[block.index()], OUT);
        if let Some((_, ended)) = self.intervals.get_mut(stay as usize) {
            *ended = now;
        }
    }
}

// Flags go from one to the other as they are.
const _: () = assert!(WRITE == replayed::WRITE && LAST == replayed::LAST && TRIM == replayed::TRIM);

/// Features and labels of each read and write of a workload, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingSet {
    /// What the oracle does.
    pub labels: Labels,
    /// The features.
    pub set: FeatureSet,
    /// Rows of features, one after another.
    pub rows: Vec<f32>,
    /// The blocks asked for, and [`cachewright_system::recording`]'s flags of each: what a replay
    /// of labels needs.
    pub blocks: Vec<u32>,
    /// See `blocks`.
    pub flags: Vec<u8>,
}

/// Asks the oracle about every request of a stack's only tenant and finds its features; `features`
/// is the name of a set. Errors: no such set, and those of [`labels`].
pub fn training_set(
    text: &str,
    origin: &Path,
    options: &LabelOptions,
    features: &str,
    progress: OnProgress<'_>,
) -> Result<TrainingSet, ExperimentError> {
    let set = FeatureSet::ALL.into_iter().find(|set| set.name() == features);
    let set = set.ok_or_else(|| {
        let names = FeatureSet::ALL.map(FeatureSet::name).join(", ");
        let message = format!("`features`: found `{features}`, expected {names}");
        ExperimentError::spec(origin, message)
    })?;
    let (labels, recording) = labelled(text, origin, options, progress)?;
    let rows = rows(&recording, &labels, set);
    Ok(TrainingSet {
        labels,
        set,
        rows,
        blocks: recording.ids.into_vec(),
        flags: recording.flags.into_vec(),
    })
}

impl TrainingSet {
    /// The labels as the policy takes them.
    pub fn caching_labels(&self) -> Vec<CachingLabel> {
        (0..self.labels.cached.len()).map(|index| label(&self.labels, index)).collect()
    }
}

fn rows(recording: &Recording, labels: &Labels, set: FeatureSet) -> Vec<f32> {
    let mut stream = FeatureStream::new(labels.capacity_blocks);
    stream.memory_mut().reserve_ids(recording.distinct as usize);
    let mut rows = Vec::with_capacity(labels.cached.len() * set.features().len());
    let (mut previous, mut labelled) = (CachingLabel::default(), 0);
    for (request, time_ns) in recording.times_ns().iter().enumerate() {
        let accesses = recording.accesses_of(request);
        let block = |index: usize| BlockId(recording.ids[index]);
        let Some(info) = recording.request_info(request, *time_ns) else {
            accesses.for_each(|index| stream.memory_mut().forget(block(index)));
            continue;
        };
        let features = stream.request(set, &info, block(accesses.start), previous);
        rows.extend(&features[..set.features().len()]);
        for index in accesses {
            stream.memory_mut().note(block(index), recording.flags[index] & WRITE != 0);
        }
        previous = label(labels, labelled);
        labelled += 1;
    }
    rows
}

/// The oracle's label of a request.
fn label(labels: &Labels, index: usize) -> CachingLabel {
    let duration = match labels.duration.get(index) {
        Some(Duration::Soon) => StayClass::Soon,
        Some(Duration::Late) => StayClass::Late,
        _ => StayClass::Mean,
    };
    CachingLabel { cached: labels.cached.get(index).copied().unwrap_or(false), duration }
}
