//! Counters as answers have them.
//!
//! For: what a case found, from the counters of its replay. Must never know: where it is written.

use crate::case::{Case, ResolvedCase};
use crate::spec::Front;
use cachewright_curve::Curve;
use cachewright_partition::Need;
use cachewright_result::Entries;
use cachewright_result::case::{
    CacheCounts, Case as CaseAnswer, CaseResponses, CaseTenant, CaseTotal, ConstantResponses,
    QuotaStates,
};
use cachewright_result::run::Workload;
use cachewright_system::event_loop::AnswerTotals;
use cachewright_system::series::QuotaState;
use cachewright_system::{LaneResult, Recording};
use cachewright_types::measure::Counts;

/// Points kept of a curve in a result.
pub const CURVE_POINTS: usize = 200;

/// What one case found; `answers` are those of a closed loop without devices.
pub fn answer(
    case: &ResolvedCase<'_>,
    lane: &LaneResult,
    answers: Option<&[AnswerTotals]>,
) -> CaseAnswer {
    let tenants = 0..lane.counts.len();
    CaseAnswer {
        case: case.index,
        settings: settings(case),
        capacity_blocks: case.capacity_blocks,
        block_bytes: case.spec.cache.block.0,
        total: total(case, lane, answers),
        tenants: tenants.map(|index| tenant(case, lane, answers, index)).collect(),
        flash: None,
        throughput: None,
        timing: None,
    }
}

/// All tenants together.
fn total(
    case: &ResolvedCase<'_>,
    lane: &LaneResult,
    answers: Option<&[AnswerTotals]>,
) -> CaseTotal {
    let mut sum = Counts::default();
    lane.counts.iter().for_each(|counts| sum.add(counts));
    let goals = &case.goals;
    let set = goals.iter().flatten().count();
    let churn = lane.churn.as_ref();
    CaseTotal {
        counts: counts(case, &sum),
        dirty_blocks: lane.dirty_blocks,
        goals: (set > 0).then_some(set),
        goals_met: (set > 0).then(|| goals_met(lane, goals)),
        divisions: churn.map(|churn| churn.divisions),
        moved_mean: churn.map(|churn| churn.mean),
        moved_most: churn.map(|churn| churn.max),
        turns: churn.map(|churn| churn.turns.iter().sum()),
        responses: answers.map(|answers| {
            let starts = case.spec.tenants.iter().map(|tenant| tenant.start.0);
            let whole = answers.iter().fold(AnswerTotals::default(), |sum, own| AnswerTotals {
                requests: sum.requests + own.requests,
                busy_ns: sum.busy_ns.saturating_add(own.busy_ns),
                finished_ns: sum.finished_ns.max(own.finished_ns),
            });
            constant_responses(case, &whole, starts.min().unwrap_or(0))
        }),
    }
}

/// One tenant: what it may hold and holds, how the two compared, and the pool it shares.
fn tenant(
    case: &ResolvedCase<'_>,
    lane: &LaneResult,
    answers: Option<&[AnswerTotals]>,
    index: usize,
) -> CaseTenant {
    let (spec, own) = (&case.spec.tenants[index], &lane.counts[index]);
    let goal = case.goals.get(index).copied().flatten();
    let required = lane.required.get(index).filter(|_| case.needs.partitioner_needs(Need::Curve));
    let churn = lane.churn.as_ref();
    let answers = answers.and_then(|answers| answers.get(index));
    CaseTenant {
        name: spec.name.clone(),
        counts: counts(case, own),
        goal_hit_ratio: goal,
        goal_response_ns: None,
        goal_p99_ns: None,
        goal_met: goal.map(|goal| own.hit_ratio() >= goal),
        goal_blocks: lane.goal_blocks.get(index).copied().flatten(),
        quota_blocks: lane.quota_blocks[index],
        occupancy_blocks: lane.occupancy_blocks[index],
        states: states(lane, index as u32),
        pool: lane.pools.get(index).copied(),
        required_blocks: required.map(|required| required.blocks),
        required_miss_ratio: required.map(|required| required.miss_ratio),
        turns: churn.and_then(|churn| churn.turns.get(index).copied()),
        responses: answers.map(|own| constant_responses(case, own, spec.start.0)),
    }
}

/// Shares of the windows that ended in each state; nothing without a quota of its own.
fn states(lane: &LaneResult, tenant: u32) -> Option<QuotaStates> {
    let own = lane.rows.iter().filter(|row| row.tenant == tenant && row.state != QuotaState::None);
    let states: Vec<QuotaState> = own.map(|row| row.state).collect();
    let share = |state: QuotaState| {
        let count = states.iter().filter(|found| **found == state).count();
        count as f64 / states.len() as f64
    };
    (!states.is_empty()).then(|| QuotaStates {
        supply: share(QuotaState::Supply),
        demand: share(QuotaState::Demand),
        stable: share(QuotaState::Stable),
    })
}

/// Goals met over the whole run.
fn goals_met(lane: &LaneResult, goals: &[Option<f64>]) -> usize {
    let met = |(counts, goal): (&Counts, &Option<f64>)| {
        goal.is_some_and(|goal| counts.hit_ratio() >= goal)
    };
    lane.counts.iter().zip(goals).filter(|pair| met(*pair)).count()
}

/// The stages' values and what was varied.
pub fn settings(case: &Case) -> Entries<String> {
    let cache = &case.spec.cache;
    let mut entries = Entries::default();
    entries.insert("cache.policy", cache.policy.name.clone());
    entries.insert("cache.partition", cache.partition.name.clone());
    entries.insert("cache.capacity", cache.capacity.to_string());
    entries.insert("cache.write", cache.write.word().to_owned());
    if let Some(flash) = &case.spec.flash {
        entries.insert("flash.separation", flash.separation.name.clone());
        entries.insert("flash.reclaim", flash.reclaim.name.clone());
    }
    if let Some(stack) = &case.spec.stack {
        let backing = match &stack.front {
            Front::Device(cache) => {
                entries.insert("device.cache.model", cache.model.clone());
                "device.backing.model"
            }
            Front::DataCache(_) => "device.ssd.model",
        };
        entries.insert(backing, stack.backing.model.clone());
        entries.insert("machine.system", stack.system.word().to_owned());
    }
    for (key, value) in &case.varied {
        entries.insert(key.clone(), value.clone());
    }
    entries
}

/// Counters of a tenant, or of all together.
fn counts(case: &Case, counts: &Counts) -> CacheCounts {
    let cache = &case.spec.cache;
    let (effect, cuts_off) = (cache.write.effect(), cache.cutoff().is_some());
    let by_bytes = counts.bytes() > 0;
    CacheCounts {
        accesses: counts.accesses(),
        hits: counts.hits(),
        misses: counts.misses(),
        hit_ratio: counts.hit_ratio(),
        read_accesses: counts.reads,
        read_hits: counts.read_hits,
        read_hit_ratio: counts.read_hit_ratio(),
        write_accesses: counts.writes,
        write_hits: counts.write_hits,
        accessed_bytes: by_bytes.then(|| counts.bytes()),
        hit_bytes: by_bytes.then(|| counts.hit_bytes()),
        byte_hit_ratio: by_bytes.then(|| counts.byte_hit_ratio()),
        read_byte_hit_ratio: by_bytes.then(|| counts.read_byte_hit_ratio()),
        requests: counts.requests,
        request_hits: counts.request_hits,
        cut_off_requests: cuts_off.then_some(counts.cut_off_requests),
        cut_off_bytes: cuts_off.then_some(counts.cut_off_bytes),
        admissions: counts.admissions(),
        bypasses: counts.bypasses(),
        evictions: counts.evictions,
        writebacks: counts.writebacks,
        invalidations: counts.invalidations,
        cache_writes: counts.cache_writes(effect),
        backing_reads: counts.backing_reads(),
        backing_writes: counts.backing_writes(effect),
    }
}

/// Requests count from the end of the warm-up on, the run time from the start.
fn constant_responses(case: &Case, answers: &AnswerTotals, start_ns: u64) -> CaseResponses {
    let counted_ns = start_ns.max(case.spec.replay.warmup.time().unwrap_or_default().0);
    CaseResponses::Constant(ConstantResponses {
        mean_response_ns: answers.mean_response_ns(),
        throughput_per_s: answers.throughput_per_s(counted_ns),
        finished_ns: answers.finished_ns,
        run_time_ns: answers.finished_ns.saturating_sub(start_ns),
    })
}

/// A workload's totals.
pub fn workload(recording: &Recording, block_bytes: u64) -> Workload {
    Workload {
        requests: recording.totals.iter().flat_map(|totals| totals.requests).sum(),
        block_accesses: recording.block_accesses(),
        distinct_blocks: recording.distinct,
        span_ns: recording.span_ns(),
        working_set_bytes: u64::from(recording.distinct) * block_bytes,
    }
}

/// A curve's knots, thinned: size in blocks and miss ratio.
pub fn curve_points(curve: &Curve) -> Vec<(u32, f64)> {
    let thin = curve.resampled(CURVE_POINTS);
    thin.sizes().iter().map(|size| (*size, thin.miss_ratio(*size))).collect()
}
