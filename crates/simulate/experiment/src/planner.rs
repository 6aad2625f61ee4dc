//! The capacity planner: the smallest cache that meets the tenants' goals, and its split.
//!
//! What each tenant needs alone, and what each partitioner needs for all of them, are found by
//! replaying the whole workload at sizes that close in on the answer. Units: blocks; hit ratios
//! from 0 to 1. The question is the one Patrick et al. answer in section V ("the smallest cache
//! size that is able to satisfy the QoS").
//!
//! A size counts when every goal is met there over the whole run; the search takes goals to stay
//! met at larger sizes, which holds for LRU in partitions of fixed size. Where a measured size says
//! otherwise, the answer carries a warning. Tenants without a goal take part in every replay and
//! get what the partitioner leaves them.

use crate::case::{Case, ResolvedCase, expand, single};
use crate::folder::{DocumentPlace, PLAN};
use crate::job::Job;
use crate::json::document;
use crate::models::Caching;
use crate::progress::{OnProgress, Sum, with_threads};
use crate::record::{Kept, record};
use crate::spec::{Goal, replayed, resolved};
use crate::workload::Workload;
use crate::{ExperimentError, Spec};
use cachewright_partition::{Need, registry};
use cachewright_policy::{PolicyVisitor, Registered};
use cachewright_result::document::Written;
use cachewright_result::plan::{PlanAnswer, PlanPartition, PlanTenant};
use cachewright_stack::StackFile;
use cachewright_stack::cache::AUTO;
use cachewright_system::LaneResult;
use cachewright_system::profile::FirstAccesses;
use cachewright_types::declare::Declared;
use cachewright_types::measure::Counts;
use cachewright_types::{TenantId, declare};
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

declare! {
    /// Options of `plan`: which partitioners, and how precisely.
    pub struct SizeOptions {
        /// partitioners to size the cache for; by default all for goals, and hull, equal and shared
        partitions: Option<Vec<String>> = None, "names";
        /// how much too large an answer may be, as a share
        precision: f64 = 0.01, "ratio", 1e-9 ..= 1.0;
    }
}

/// What to plan.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    /// Which partitioners, and how precisely.
    pub size: SizeOptions,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// Folder for `plan.json`; nothing is written without one.
    pub out: Option<PathBuf>,
    /// Replace the plan of another stack in that folder.
    pub force: bool,
}

/// Plans the cache of a stack file; the JSON is described in docs/planning.md. Errors: no tenant
/// with a goal, and anything wrong with the stack.
pub fn plan(
    text: &str,
    origin: &Path,
    options: &PlanOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let refuse = |message| ExperimentError::spec(origin, message);
    options.size.check_ranges()?;
    let file = crate::spec::read(text, origin, &options.set)?;
    let spec = replayed(&file)?;
    let first = single(&file)?;
    let goals = first.goals()?;
    if goals.iter().all(Option::is_none) {
        return Err(refuse(
            "found no goal, expected `goal_hit_ratio` or `goal_latency` in at least one \
             `[[tenant]]`"
                .to_owned(),
        ));
    }
    first.check_policy()?;
    let mut notes = notes(&spec);
    let partitions = match &options.size.partitions {
        Some(named) => named.clone(),
        None => by_default(&file, &mut notes)?,
    };
    let mut kept = Kept { times: true, ..first.kept() };
    for name in &partitions {
        let case = single(&with(&file, name)?)?;
        resolved(&case.spec)?;
        if name == AUTO {
            notes.push(format!("`{AUTO}` is `{}` for this stack", case.spec.cache.partition.name));
        }
        case.check_partitioner()?;
        kept = kept.and(case.kept());
    }
    // Goals are not by bytes.
    kept.uneven_bytes = false;
    let place = DocumentPlace { folder: options.out.as_deref(), file: PLAN };
    place.claim(&spec, options.force)?;
    with_threads(options.threads, || {
        let mut recorded = record(&spec, kept, progress)?;
        let requests = recorded.take_requests();
        let first = first.resolve(&recorded.recording)?;
        first.check_replay()?;
        let workload = match first.spec.stack {
            Some(_) => Workload::on_devices(&first, &recorded, requests, progress)?,
            None => Workload::new(&recorded.recording, progress),
        };
        // How many sizes are tried is known at the end.
        let workload = workload.counted_by(Sum::new("trying sizes", None, progress));
        let planner =
            Planner { file: &file, options, workload: &workload, goals: &goals, progress };
        let mut found = planner.answer(&spec, &first, &partitions)?;
        found.notes = notes;
        place.write(&found)?;
        document(&found)
    })
}

/// What a user should know of a plan: tenants without a goal, and what of the stack it leaves out.
fn notes(spec: &Spec) -> Vec<String> {
    let latency = spec.tenants.iter().any(|tenant| matches!(tenant.goal, Some(Goal::Latency(_))));
    let response = spec.response_goals().iter().any(Option::is_some);
    let measured = "goals in measured response times are left out: a plan is for hit ratios";
    let device = "a latency goal stands for a hit ratio by `replay.hit_time` and \
                  `replay.miss_time`, whatever the devices take";
    let flash = "`[flash]` is left out: sizes are tried without the drive under the cache";
    let free = spec.tenants.iter().filter(|tenant| tenant.goal.is_none());
    let free: Vec<&str> = free.map(|tenant| tenant.name.as_str()).collect();
    let best_effort = format!(
        "best effort, without a goal: {}; the partitioner gives what goals leave",
        free.join(", ")
    );
    let notes = [
        (!free.is_empty(), best_effort.as_str()),
        (latency && spec.stack.is_some(), device),
        (response, measured),
        (spec.flash.is_some(), flash),
    ];
    notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note.to_owned()).collect()
}

/// The file with another partitioner. Errors: the key cannot be set.
fn with(file: &StackFile, partition: &str) -> Result<StackFile, ExperimentError> {
    let set = [("cache.partition".to_owned(), partition.to_owned())];
    file.with(&set).map_err(|message| ExperimentError::spec(file.origin(), message))
}

/// One call's inputs.
struct Planner<'a> {
    file: &'a StackFile,
    options: &'a PlanOptions,
    workload: &'a Workload<'a>,
    goals: &'a [Option<f64>],
    progress: OnProgress<'a>,
}

/// What a size gave.
#[derive(Clone, Debug, PartialEq)]
struct Tried {
    met: bool,
    hit_ratios: Vec<f64>,
    quota_blocks: Vec<u32>,
}

impl Planner<'_> {
    /// The plan but for its notes.
    fn answer(
        &self,
        spec: &Spec,
        first: &ResolvedCase<'_>,
        partitions: &[String],
    ) -> Result<PlanAnswer, ExperimentError> {
        let alone = self.alone(first)?;
        let with_goal = alone.iter().zip(self.goals).filter(|(_, goal)| goal.is_some());
        let smallest_blocks = with_goal.map(|(need, _)| need.0.map(u64::from)).sum();
        let tenants = spec.tenants.iter().zip(self.goals).zip(&alone);
        let tenants = tenants.map(|((tenant, goal), (need, best))| PlanTenant {
            name: tenant.name.clone(),
            goal_hit_ratio: *goal,
            alone_blocks: *need,
            best_hit_ratio: *best,
        });
        let tenants = tenants.collect();
        let sized: Result<Vec<PlanPartition>, _> =
            partitions.iter().map(|name| self.size(name)).collect();
        let sized = sized?;
        Ok(PlanAnswer {
            written: Written::here(),
            name: spec.name.clone(),
            spec: resolved(spec)?,
            block_bytes: spec.cache.block.0,
            precision: self.options.size.precision,
            tenants,
            smallest_blocks,
            best: best(&sized),
            partitions: sized,
            notes: Vec::new(),
        })
    }

    /// The smallest cache under one partitioner.
    fn size(&self, partition: &str) -> Result<PlanPartition, ExperimentError> {
        let mut tried: BTreeMap<u32, Tried> = BTreeMap::new();
        let max_blocks = self.max_blocks();
        // Below `low` some goal is not met; at `high` all are.
        let (mut low, mut high) = (0, max_blocks);
        tried.insert(max_blocks, self.tried(partition, &[max_blocks])?.swap_remove(0));
        let reached = tried.get(&max_blocks).is_some_and(|end| end.met);
        while reached && !self.settled(low, high) {
            let sizes = between(low, high);
            for (size, answer) in sizes.iter().zip(self.tried(partition, &sizes)?) {
                tried.insert(*size, answer);
            }
            (low, high) = bracket(&tried, max_blocks);
        }
        let found = tried.get(&high).filter(|_| reached);
        let broken = tried.range(high..).find(|(_, answer)| reached && !answer.met);
        let warning = broken.map(|(size, _)| format!("goals are not met at {size} blocks"));
        let points = tried.iter();
        Ok(PlanPartition {
            partition: partition.to_owned(),
            smallest_blocks: found.map(|_| high),
            quota_blocks: found.map(|answer| answer.quota_blocks.clone()),
            hit_ratios: found.or(tried.get(&max_blocks)).map(|answer| answer.hit_ratios.clone()),
            warning,
            tried: points
                .map(|(size, answer)| (*size, answer.met, answer.hit_ratios.clone()))
                .collect(),
        })
    }

    /// A size beyond which no tenant gains: equal shares of it hold all that is touched.
    fn max_blocks(&self) -> u32 {
        let totals = &self.workload.recording.totals;
        let touched: u64 = totals.iter().map(|totals| u64::from(totals.distinct_blocks)).sum();
        (touched * totals.len() as u64).clamp(1, u64::from(u32::MAX >> 1)) as u32
    }

    /// Whether the answer between two sizes is as precise as asked for.
    fn settled(&self, low: u32, high: u32) -> bool {
        high - low <= 1 || f64::from(high - low) <= self.options.size.precision * f64::from(high)
    }

    /// Replays the workload at several sizes at once.
    fn tried(&self, partition: &str, sizes: &[u32]) -> Result<Vec<Tried>, ExperimentError> {
        let values = sizes.iter().map(|size| format!("{size} blocks")).collect();
        let vary = [("cache.capacity".to_owned(), values)];
        let cases = expand(&with(self.file, partition)?, &vary)?;
        let cases: Vec<Case> = cases.into_iter().map(with_hits_only).collect();
        let resolved = cases.iter().map(|case| case.resolve(self.workload.recording));
        let resolved = resolved.collect::<Result<Vec<ResolvedCase<'_>>, ExperimentError>>()?;
        let resolved: Vec<&ResolvedCase<'_>> = resolved.iter().collect();
        self.workload.replay(&resolved, |_, found| Ok(self.evaluate(found.replayed.cache())))
    }

    fn evaluate(&self, result: &LaneResult) -> Tried {
        let hit_ratios: Vec<f64> = result.counts.iter().map(Counts::hit_ratio).collect();
        let meets = |(ratio, goal): (&f64, &Option<f64>)| goal.is_none_or(|goal| *ratio >= goal);
        let met = hit_ratios.iter().zip(self.goals).all(meets);
        Tried { met, hit_ratios, quota_blocks: result.quota_blocks.clone() }
    }
}

/// The case without what a plan does not look at: tenants alone, time series, the drive under the
/// cache.
fn with_hits_only(mut case: Case) -> Case {
    case.spec.replay.windows = 0;
    match &mut case.spec.stack {
        Some(stack) => stack.alone = false,
        None => case.spec.flash = None,
    }
    case
}

/// The partitioner that needs the smallest cache, of several the first.
fn best(sized: &[PlanPartition]) -> Option<String> {
    let met = sized.iter().filter(|answer| answer.smallest_blocks.is_some());
    met.min_by_key(|answer| answer.smallest_blocks).map(|answer| answer.partition.clone())
}

/// Divisions that ignore goals: what keeping goals is worth.
const BLIND: [&str; 3] = ["hull", "equal", "shared"];

/// Every partitioner that needs goals, in the order of the registry, then those that ignore them.
/// One that the stack lacks something for is left out; `notes` says so of those that keep goals.
fn by_default(file: &StackFile, notes: &mut Vec<String>) -> Result<Vec<String>, ExperimentError> {
    let entries = registry::entries();
    let keepers = entries.iter().filter(|entry| entry.needs.contains(&Need::Goal));
    let keepers: Vec<&str> = keepers.map(|entry| entry.name).collect();
    let mut found = Vec::new();
    for name in keepers.iter().chain(&BLIND) {
        let case = single(&with(file, name)?)?;
        match case.check_schemes() {
            Ok(_) => found.push((*name).to_owned()),
            Err(error) if keepers.contains(name) => {
                notes.push(format!("`{name}` is left out: {error}"));
            }
            Err(_) => {}
        }
    }
    Ok(found)
}

impl Planner<'_> {
    /// Each tenant's smallest cache of its own, if it has a goal and any size meets it, and the hit
    /// ratio of one that holds all it touches.
    fn alone(&self, case: &ResolvedCase<'_>) -> Result<Vec<(Option<u32>, f64)>, ExperimentError> {
        let sum = Sum::new("sizing each tenant alone", None, self.progress);
        let need = |(place, &goal): (usize, &Option<f64>)| {
            let head = Job::new(self.workload, case).head(
                TenantId(place as u16),
                1.0,
                case.needs.inputs(),
            );
            let spec = &case.spec;
            let caching = &case.caching;
            let visitor = AloneSearch { head: &head, spec, caching, goal, sum: &sum };
            let policy = &spec.cache.policy;
            let found = cachewright_policy::visit(&policy.name, &policy.pairs, visitor)
                .map_err(|error| case.refuse(format!("`cache.policy`: {error}")))?;
            found.ok_or(ExperimentError::Cancelled)
        };
        self.goals.par_iter().enumerate().map(need).collect()
    }
}

/// The search for one tenant's own cache, by halving.
struct AloneSearch<'a> {
    head: &'a FirstAccesses,
    spec: &'a Spec,
    caching: &'a Caching,
    /// Nothing for a tenant without a goal, of which only the best is found.
    goal: Option<f64>,
    sum: &'a Sum<'a>,
}

impl PolicyVisitor for AloneSearch<'_> {
    /// Nothing where it was stopped.
    type Output = Option<(Option<u32>, f64)>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let (seed, mode) = (self.spec.seed.derive("policy"), self.spec.cache.write);
        let make = |capacity| self.caching.with_models(P::new(capacity, &settings, seed));
        let ratio = |size: u32| self.head.hit_ratio(size, mode, make, self.sum.part());
        let max_blocks = self.head.distinct_blocks().max(1);
        let best = ratio(max_blocks)?;
        let Some(goal) = self.goal.filter(|goal| best >= *goal) else {
            return Some((None, best));
        };
        let (mut low, mut high) = (0, max_blocks);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if ratio(middle)? >= goal { high = middle } else { low = middle }
        }
        Some((Some(high), best))
    }
}

/// Sizes tried between two replays of the workload.
const SIZES: u32 = 8;

/// The largest size known not to meet the goals below the smallest that does.
fn bracket(tried: &BTreeMap<u32, Tried>, max_blocks: u32) -> (u32, u32) {
    let high = tried.iter().find(|(_, answer)| answer.met).map_or(max_blocks, |(size, _)| *size);
    let low = tried.range(..high).next_back().map_or(0, |(size, _)| *size);
    (low, high)
}

/// Up to [`SIZES`] sizes strictly between two, in equal ratios while they are far apart.
fn between(low: u32, high: u32) -> Vec<u32> {
    let (from, to) = (f64::from(low.max(1)), f64::from(high));
    let step = |part: u32| {
        let share = f64::from(part) / f64::from(SIZES + 1);
        if to > 2.0 * from { from * (to / from).powf(share) } else { from + (to - from) * share }
    };
    let mut sizes: Vec<u32> = (1..=SIZES).map(|part| step(part).round() as u32).collect();
    if low == 0 {
        sizes.push(1);
    }
    sizes.retain(|size| *size > low && *size < high);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_close_in_from_both_ends() {
        assert_eq!(between(0, 2), [1]);
        assert_eq!(between(10, 11), [0; 0]);
        let wide = between(0, 100_000);
        assert!(wide.len() == 9 && wide[0] == 1 && wide.windows(2).all(|w| w[0] < w[1]));
        let near = between(1000, 1090);
        assert_eq!(near, [1010, 1020, 1030, 1040, 1050, 1060, 1070, 1080]);
    }

    #[test]
    fn the_bracket_is_the_first_size_that_meets_all() {
        let tried = |met| Tried { met, hit_ratios: Vec::new(), quota_blocks: Vec::new() };
        let sizes = [(1, false), (5, false), (9, true), (20, false), (30, true)];
        let tried: BTreeMap<u32, Tried> = sizes.map(|(size, met)| (size, tried(met))).into();
        assert_eq!(bracket(&tried, 30), (5, 9));
    }
}
