//! What some cases replay, and their replays: in an open loop, a closed one, or on devices.
//!
//! Every replay is a job with a cache and devices of its own, so that the answers do not depend on
//! the number of threads.

use crate::ExperimentError;
use crate::case::ResolvedCase;
use crate::job::{Job, wanted};
use crate::profiles::Profiles;
use crate::progress::{OnProgress, Sum};
use crate::record::column;
use crate::timed::Timed;
use crate::wa::DriveUnderCache;
use cachewright_policy::FutureSlice;
use cachewright_stack::tables::ExplainedMisses;
use cachewright_system::event_loop::{AnswerTotals, ConstantRun};
use cachewright_system::machines::{PlacedVolumes, Requests};
use cachewright_system::replay::ReplayInputs;
use cachewright_system::{
    Cuts, FutureKind, Lane, LaneResult, RecordError, Recording, SignalNeeds, Signals,
    interval_signals,
};
use rayon::prelude::*;

/// Bytes that the caches of cases replayed at the same time may take together.
const CACHES_BYTES: u64 = 1 << 30;
/// Bytes a cache takes per distinct block of the workload, at most (LIRS takes the most).
const LANE_BYTES_PER_BLOCK: u64 = 24;
/// Bytes that finding the causes of misses takes besides.
const CAUSE_BYTES_PER_BLOCK: u64 = 16;
/// Bytes a drive takes per logical page, at most (Shiro takes the most).
const DRIVE_BYTES_PER_PAGE: u64 = 128;

/// What some cases replay.
pub struct Workload<'a> {
    /// The block accesses.
    pub recording: &'a Recording,
    /// Profiles that the cases have in common.
    pub profiles: Profiles,
    /// The requests themselves, of cases on devices.
    pub(crate) placed: Option<PlacedRequests>,
    pub(crate) progress: OnProgress<'a>,
    /// What counts the progress of all replays, where it is not known how many there will be.
    counted: Option<Sum<'a>>,
}

/// Requests on backing devices.
pub(crate) struct PlacedRequests {
    /// The requests.
    pub requests: Requests,
    /// Where they lie.
    pub volumes: PlacedVolumes,
}

/// What the replay of a case found.
pub struct Found {
    /// What its cache counted, and its times.
    pub replayed: Replayed,
    /// The drive under its cache.
    pub drive: Option<DriveUnderCache>,
}

/// What a cache counted, and times where requests have some.
pub enum Replayed {
    /// Requests came at the times of the trace, and took none.
    Open(LaneResult),
    /// Requests waited for answers, which took constant times.
    Constant(ConstantRun),
    /// Requests were carried out on devices.
    Timed(Box<Timed>),
}

impl Replayed {
    /// What the cache counted.
    pub fn cache(&self) -> &LaneResult {
        match self {
            Replayed::Open(found) => found,
            Replayed::Constant(found) => &found.cache,
            Replayed::Timed(found) => &found.times.cache,
        }
    }

    /// The same as a value.
    pub fn into_cache(self) -> LaneResult {
        match self {
            Replayed::Open(found) => found,
            Replayed::Constant(found) => found.cache,
            Replayed::Timed(found) => found.times.cache,
        }
    }

    /// The answers of a closed loop without devices.
    pub fn constant_answers(&self) -> Option<&[AnswerTotals]> {
        match self {
            Replayed::Constant(found) => Some(&found.answers),
            Replayed::Open(_) | Replayed::Timed(_) => None,
        }
    }
}

/// Runs jobs in parallel; what `run` returns of each in their order, so that the first one at fault
/// is named on any schedule.
pub fn in_parallel<J: Sync, T: Send>(
    jobs: &[J],
    run: impl Fn(usize, &J) -> Result<T, ExperimentError> + Sync,
) -> Result<Vec<T>, ExperimentError> {
    let found = jobs.par_iter().enumerate().map(|(index, job)| run(index, job));
    let found: Vec<Result<T, ExperimentError>> = found.collect();
    found.into_iter().collect()
}

impl<'a> Workload<'a> {
    /// A recording, without devices.
    pub fn new(recording: &'a Recording, progress: OnProgress<'a>) -> Workload<'a> {
        let profiles = Profiles::default();
        Workload { recording, profiles, placed: None, progress, counted: None }
    }

    /// The same, the progress of its replays counted together.
    pub fn counted_by(self, sum: Sum<'a>) -> Workload<'a> {
        Workload { counted: Some(sum), ..self }
    }

    /// What counts replays that are `total` requests or accesses together.
    pub(crate) fn sum(&self, stage: &'static str, total: usize) -> Sum<'a> {
        let own = || Sum::new(stage, Some(total as u64), self.progress);
        self.counted.clone().unwrap_or_else(own)
    }

    /// Replays cases of one kind of replay, in parallel; `then` is given each case's place and what
    /// it found as soon as it is done. Returns what `then` made of them, in order of cases.
    pub fn replay<T: Send>(
        &self,
        cases: &[&ResolvedCase<'_>],
        then: impl Fn(usize, Found) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let Some(first) = cases.first() else { return Ok(Vec::new()) };
        Ok(self.replay_beside(first, cases, Vec::new(), then)?.1)
    }

    /// The same beside lanes that measure curves, whose results come first; cases in an open loop
    /// have the signals of `first`, which is one of them if there are some.
    pub fn replay_beside<T: Send>(
        &self,
        first: &ResolvedCase<'_>,
        cases: &[&ResolvedCase<'_>],
        curves: Vec<Box<dyn Lane>>,
        then: impl Fn(usize, Found) -> Result<T, ExperimentError> + Sync,
    ) -> Result<(Vec<LaneResult>, Vec<T>), ExperimentError> {
        match cases.first() {
            Some(case) if case.spec.stack.is_some() => {
                Ok((Vec::new(), self.replay_timed(cases, then)?))
            }
            Some(case) if case.spec.replay.closed() => {
                Ok((Vec::new(), self.replay_closed(cases, then)?))
            }
            _ => self.replay_open(first, cases, curves, then),
        }
    }

    /// Replays the whole recording through each case, and through each lane of `curves` beside
    /// them. Cases have in common what they know of the future and of intervals.
    fn replay_open<T: Send>(
        &self,
        first: &ResolvedCase<'_>,
        cases: &[&ResolvedCase<'_>],
        curves: Vec<Box<dyn Lane>>,
        then: impl Fn(usize, Found) -> Result<T, ExperimentError> + Sync,
    ) -> Result<(Vec<LaneResult>, Vec<T>), ExperimentError> {
        let recording = self.recording;
        let largest_blocks = cases.iter().map(|case| case.capacity_blocks).max().unwrap_or(0);
        let future =
            cases.iter().map(|case| case.needs.future_of_replay()).max().unwrap_or_default();
        let cuts = Cuts::new(recording, first.interval_ns, first.spec.replay.windows);
        let cuts = first.with_warmup(cuts);
        let futures = column(first, future, recording, &[])?;
        let signals = measured(recording, &cuts, cases, largest_blocks);
        let shared =
            ReplayInputs { recording, futures: FutureSlice::None, cuts: &cuts, signals: &signals };
        let sum = self.sum("replaying", recording.len() * (curves.len() + cases.len()));
        let curve = |mut lane: Box<dyn Lane>| shared.replay_one(lane.as_mut(), sum.part());
        let run = |(index, case): &(usize, &ResolvedCase<'_>)| {
            if let Some(state) = &case.state {
                let found = case.replay_from(state, sum.part())?;
                return then(*index, Found { replayed: Replayed::Open(found), drive: None });
            }
            let (drive, watcher) = DriveUnderCache::new(case)?;
            let knows = case.needs.future_of_replay() != FutureKind::Nothing;
            let futures = if knows { futures.as_slice() } else { FutureSlice::None };
            let shared = ReplayInputs { futures, ..shared };
            let mut lane = Job::new(self, case).lane(watcher)?;
            let found = shared.replay_one(lane.as_mut(), sum.part())?;
            then(*index, Found { replayed: Replayed::Open(found), drive })
        };
        let numbered: Vec<(usize, &ResolvedCase<'_>)> = cases.iter().copied().enumerate().collect();
        let answers = || -> Vec<Result<T, ExperimentError>> {
            let chunks = numbered.chunks(self.at_once(cases));
            chunks.flat_map(|cases| cases.par_iter().map(run).collect::<Vec<_>>()).collect()
        };
        let (curves, answers): (Vec<_>, Vec<_>) =
            rayon::join(|| curves.into_par_iter().map(curve).collect(), answers);
        let curves = curves.into_iter().collect::<Result<Vec<LaneResult>, RecordError>>()?;
        Ok((curves, answers.into_iter().collect::<Result<_, _>>()?))
    }

    /// Cases that are replayed at the same time, within the bound on memory.
    fn at_once(&self, cases: &[&ResolvedCase<'_>]) -> usize {
        let explains = |case: &&ResolvedCase<'_>| case.spec.replay.causes != ExplainedMisses::None;
        let explained = if cases.iter().any(explains) { CAUSE_BYTES_PER_BLOCK } else { 0 };
        let block_bytes = LANE_BYTES_PER_BLOCK + explained;
        let cache_bytes = u64::from(self.recording.distinct).max(1) * block_bytes;
        let drive_bytes = cases.iter().map(|case| drive_bytes(case)).max();
        let within = (CACHES_BYTES / (cache_bytes + drive_bytes.unwrap_or(0))).max(1) as usize;
        // With fewer threads than that, one case per thread stays within the bound by itself.
        if rayon::current_num_threads() <= within { cases.len().max(1) } else { within }
    }

    /// Replays cases in closed loops without devices.
    fn replay_closed<T: Send>(
        &self,
        cases: &[&ResolvedCase<'_>],
        then: impl Fn(usize, Found) -> Result<T, ExperimentError> + Sync,
    ) -> Result<Vec<T>, ExperimentError> {
        let total = self.recording.times_ns().len() * cases.len();
        let sum = self.sum("replaying (closed loop)", total);
        in_parallel(cases, |index, case| {
            let (drive, watcher) = DriveUnderCache::new(case)?;
            let found = Job::new(self, case).run_closed(watcher, &mut sum.begun_part()?)?;
            then(index, Found { replayed: Replayed::Constant(found), drive })
        })
    }
}

/// Bytes that the drive under a case's cache takes, about.
fn drive_bytes(case: &ResolvedCase<'_>) -> u64 {
    let Some(flash) = &case.spec.flash else { return 0 };
    let block_pages = case.spec.cache.block.0 / flash.page.0;
    u64::from(case.capacity_blocks) * block_pages * DRIVE_BYTES_PER_PAGE
}

/// What is measured in each interval of an open loop, for cases that share a pass; `largest_blocks`
/// is the size of the largest of their caches.
fn measured(
    recording: &Recording,
    cuts: &Cuts,
    cases: &[&ResolvedCase<'_>],
    largest_blocks: u32,
) -> Vec<Signals> {
    let Some(first) = cases.first() else { return Vec::new() };
    let mut all = SignalNeeds { steps: first.needs.steps, ..SignalNeeds::default() };
    for case in cases {
        let wanted = wanted(case, largest_blocks, case.spec.tenants.len());
        all.curves = all.curves.or(wanted.curves);
        all.signals.reuse |= wanted.signals.reuse;
    }
    let meter = all.meter(first.spec.tenants.len(), first.interval_ns);
    meter.map(|meter| interval_signals(recording, cuts, meter)).unwrap_or_default()
}
