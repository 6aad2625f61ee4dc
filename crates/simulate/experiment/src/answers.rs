//! What cases found, as answers have it, and the result that they make.

use crate::case::{Case, ResolvedCase};
use crate::folder::{AnswerStore, Rows, plain_rows, write_numbers, write_series};
use crate::record::RecordedTenants;
use crate::run::RunOptions;
use crate::spec::{Front, full_key, resolved};
use crate::timed::write_rooms;
use crate::{ExperimentError, Spec};
use cachewright_cache::Causes;
use cachewright_curve::Curve;
use cachewright_partition::Need;
use cachewright_result::Entries;
use cachewright_result::document::Written;
use cachewright_result::run::CacheCounts;
use cachewright_result::run::Case as CaseAnswer;
use cachewright_result::run::CaseResponses;
use cachewright_result::run::CaseTenant;
use cachewright_result::run::CaseTotal;
use cachewright_result::run::ConstantResponses;
use cachewright_result::run::ContinuedDecisions;
use cachewright_result::run::MissCauses;
use cachewright_result::run::QuotaStates;
use cachewright_result::run::{RunAnswer, TenantCurve, Workload};
use cachewright_result::timing::{TenantThroughput, Throughput};
use cachewright_result::trace::TenantFacts;
use cachewright_system::event_loop::{AnswerTotals, ConstantRun, Times};
use cachewright_system::series::QuotaState;
use cachewright_system::{LaneResult, Recording, Row};
use cachewright_types::measure::{Bin, Counts, Rates};
use std::path::Path;

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
        continued: lane.continued.map(|continued| ContinuedDecisions {
            decided: format!("{:016x}", continued.decided),
            decided_by_server: continued.by_server.map(|decided| format!("{decided:016x}")),
        }),
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
        causes: lane.causes.get(index).and_then(|found| causes(case, found, own)),
        states: states(lane, index as u32),
        pool: lane.pools.get(index).copied(),
        required_blocks: required.map(|required| required.blocks),
        required_miss_ratio: required.map(|required| required.miss_ratio),
        turns: churn.and_then(|churn| churn.turns.get(index).copied()),
        responses: answers.map(|own| constant_responses(case, own, spec.start.0)),
    }
}

/// The misses of a tenant by cause, each as long as a constant miss.
fn causes(case: &Case, found: &Causes, counts: &Counts) -> Option<MissCauses> {
    let sampled = found.total();
    let found = found.of_all(counts.misses())?;
    let replay = &case.spec.replay;
    let added_ns = replay.miss_time.0.saturating_sub(replay.hit_time.0) as f64;
    let missed_requests = counts.requests.saturating_sub(counts.request_hits) as f64;
    let causes = MissCauses {
        sampled,
        first_use: found.first_use,
        trimmed: found.trimmed,
        lost: found.lost,
        in_flight: found.in_flight,
        bypassed: found.bypassed,
        policy: found.policy,
        quota: found.quota,
        division: found.division,
        pushed_out: found.pushed_out(),
        capacity: found.capacity,
        beyond: case.needs.bounds.then_some(found.beyond),
        pushed_out_by: found.pushed_out_by.clone(),
        added_ns: 0.0,
        pushed_out_ns: Vec::new(),
    };
    Some(causes.costing(added_ns * missed_requests / counts.misses().max(1) as f64))
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

/// A case's answer and its time series, or why there is none.
pub(crate) type CaseResult = Result<(CaseAnswer, Vec<Row>), ExperimentError>;

/// The answers that a run has so far.
pub(crate) struct RunAnswers {
    answers: Vec<Option<CaseAnswer>>,
    rows: Rows,
    /// Answers that were kept from before.
    reused: usize,
    /// From the first recording.
    head: Option<AnswerHead>,
}

/// What stands before the cases in an answer.
#[derive(Default)]
struct AnswerHead {
    tenants: Vec<TenantFacts>,
    workload: Workload,
    curves: Vec<TenantCurve>,
}

impl RunAnswers {
    /// None yet of so many cases.
    pub(crate) fn new(cases: usize) -> RunAnswers {
        RunAnswers { answers: vec![None; cases], rows: Vec::new(), reused: 0, head: None }
    }

    /// Takes a case's answer into the result.
    pub(crate) fn take(&mut self, case: &Case, answer: CaseAnswer, rows: Vec<Row>) {
        self.answers[case.index] = Some(answer);
        let index = case.index as u32;
        self.rows.extend(rows.into_iter().map(|row| (index, row)));
    }

    /// Takes an answer that was kept from before.
    pub(crate) fn reuse(&mut self, case: &Case, mut answer: CaseAnswer, rows: Vec<Row>) {
        // The same settings may be written, numbered and varied otherwise today.
        answer.case = case.index;
        answer.settings = settings(case);
        self.reused += 1;
        self.take(case, answer, rows);
    }

    /// Whether it is known what stands before the cases.
    pub(crate) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// Notes what stands before the cases, from the first recording.
    pub(crate) fn set_head(
        &mut self,
        recorded: &RecordedTenants,
        first: &Case,
        lru: &[LaneResult],
    ) {
        let names = std::iter::once("all")
            .chain(first.spec.tenants.iter().map(|tenant| tenant.name.as_str()));
        let curves = names.zip(lru).filter_map(|(name, result)| {
            let points = curve_points(&result.curves.first()?.all);
            Some(TenantCurve { tenant: name.to_owned(), points })
        });
        let workload = workload(&recorded.recording, first.spec.cache.block.0);
        let (tenants, curves) = (recorded.tenants.clone(), curves.collect());
        self.head = Some(AnswerHead { tenants, workload, curves });
    }

    /// Puts the result together and writes it.
    pub(crate) fn finish(
        mut self,
        store: &AnswerStore,
        spec: &Spec,
        options: &RunOptions,
    ) -> Result<RunAnswer, ExperimentError> {
        self.rows.sort_by_key(|(case, row)| (*case, row.window, row.tenant));
        let AnswerHead { tenants, workload, curves } = self.head.take().unwrap_or_default();
        let mut answer = RunAnswer {
            written: Written::here(),
            name: spec.name.clone(),
            spec: resolved(spec)?,
            workload,
            tenants,
            varied: options.vary.iter().map(|(key, _)| full_key(key)).collect(),
            cases: self.answers.into_iter().flatten().collect(),
            curves,
            series: None,
            throughput: None,
            rooms: None,
            reused: None,
            series_rows: None,
        };
        let Some(out) = &options.out else {
            answer.series_rows = Some(plain_rows(&self.rows));
            return Ok(answer);
        };
        let file = |name: &str| (name.to_owned(), out.join(name));
        let (name, path) = file("series.parquet");
        write_series(&path, &self.rows)?;
        answer.series = Some(name);
        let (name, path) = file("throughput.parquet");
        answer.throughput = write_throughput(&path, &answer.cases)?.then_some(name);
        let (name, path) = file("rooms.parquet");
        answer.rooms = write_rooms(&path, &answer.cases)?.then_some(name);
        store.write_result(out, &answer)?;
        // Beside the document: what is written does not depend on what was kept.
        answer.reused = Some(self.reused);
        Ok(answer)
    }
}

/// `throughput.parquet`: `time_ns` is the window's end; one row group.
const SCHEMA: &str = "message throughput {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 requests (UINT_64);
    REQUIRED INT64 bytes (UINT_64);
}";

/// Windows of all tenants, if they were asked for.
/// A request counts where it was answered. Mean and standard deviation (of all windows, not of a
/// sample) are over the whole windows after the warm-up: from the tenant's start to the time at
/// which it stops, where it repeats its trace, else to its last answer. Mean by deviation takes at
/// least one request per window (of the tenant's mean size) for the deviation: without it the
/// quotient has no bound, and a perfectly steady tenant none at all. Source of mean by deviation:
/// Wang et al. (oc-cache), V-B.
pub fn throughput(case: &Case, times: &Times) -> Option<Throughput> {
    let last_ns = times.tenants.iter().map(|tenant| tenant.last_ns);
    Some(of_tenants(case, times.throughput.as_ref()?, times.warmup_ns, last_ns))
}

/// The same of a closed loop without devices.
pub fn constant_throughput(case: &Case, found: &ConstantRun) -> Option<Throughput> {
    let last_ns = found.answers.iter().map(|tenant| tenant.finished_ns);
    let warmup_ns = case.spec.replay.warmup.time().unwrap_or_default().0;
    Some(of_tenants(case, found.throughput.as_ref()?, warmup_ns, last_ns))
}

/// The windows of tenants behind the warm-up, of which the last answers came at `last_ns`.
fn of_tenants(
    case: &Case,
    windows: &Rates,
    warmup_ns: u64,
    last_ns: impl Iterator<Item = u64>,
) -> Throughput {
    let tenant = |(index, last_ns)| tenant_throughput(case, windows, warmup_ns, index, last_ns);
    Throughput { window_ns: windows.width_ns(), tenants: last_ns.enumerate().map(tenant).collect() }
}

fn tenant_throughput(
    case: &Case,
    windows: &Rates,
    warmup_ns: u64,
    index: usize,
    last_ns: u64,
) -> TenantThroughput {
    let (tenant, width_ns) = (&case.spec.tenants[index], windows.width_ns());
    let stop_ns = tenant.until.map_or(u64::MAX, |time| time.0);
    let end_ns = if tenant.repeat { stop_ns } else { last_ns.min(stop_ns) };
    let first = warmup_ns.max(tenant.start.0).div_ceil(width_ns) as usize;
    let last = (end_ns / width_ns) as usize;
    let bins = windows.bins(index);
    let counted = |what: fn(&Bin) -> u64| -> Vec<f64> {
        let empty = Bin::default();
        let window = |number| what(bins.get(number).unwrap_or(&empty)) as f64;
        (first..last).map(|number| window(number) * 1e9 / width_ns as f64).collect()
    };
    let (bytes, requests) = (counted(|bin| bin.bytes), counted(|bin| bin.requests));
    let one_request = 1e9 / width_ns as f64;
    let (sum_bytes, sum_requests) = (bytes.iter().sum::<f64>(), requests.iter().sum::<f64>());
    let mean_size = if sum_requests > 0.0 { sum_bytes / sum_requests } else { 0.0 };
    let (bytes, requests) =
        (spread(&bytes, one_request * mean_size), spread(&requests, one_request));
    TenantThroughput {
        name: tenant.name.clone(),
        windows: last.saturating_sub(first),
        bytes_per_s_mean: bytes.mean,
        bytes_per_s_sd: bytes.deviation,
        bytes_mean_over_sd: bytes.mean_over_sd,
        bytes_sd_over_mean: bytes.sd_over_mean,
        requests_per_s_mean: requests.mean,
        requests_per_s_sd: requests.deviation,
        requests_mean_over_sd: requests.mean_over_sd,
        requests_sd_over_mean: requests.sd_over_mean,
        series: bins.iter().map(|bin| (bin.requests, bin.bytes)).collect(),
    }
}

/// How rates spread; no quotients of rates that are all 0.
struct Spread {
    mean: f64,
    deviation: f64,
    mean_over_sd: Option<f64>,
    sd_over_mean: Option<f64>,
}

/// The spread of rates, the deviation at least `floor` where it divides.
fn spread(rates: &[f64], floor: f64) -> Spread {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    Spread {
        mean,
        deviation,
        mean_over_sd: (mean > 0.0 && floor > 0.0).then(|| mean / deviation.max(floor)),
        sd_over_mean: (mean > 0.0).then(|| deviation / mean),
    }
}

/// Writes the windows of all answers; returns whether there are any.
fn write_throughput(path: &Path, answers: &[CaseAnswer]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 6]> = Vec::new();
    for answer in answers {
        let timed = answer.timing.as_ref().and_then(|timing| timing.throughput.as_ref());
        let Some(found) = answer.throughput.as_ref().or(timed) else { continue };
        for (tenant, own) in found.tenants.iter().enumerate() {
            for (window, (requests, bytes)) in own.series.iter().enumerate() {
                let (number, tenant) = (window as u64, tenant as u64);
                let end_ns = (number + 1) * found.window_ns;
                rows.push([answer.case as u64, number, end_ns, tenant, *requests, *bytes]);
            }
        }
    }
    write_numbers(path, SCHEMA, &mut rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_all_windows() {
        let rates = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let found = spread(&rates, 1.0);
        assert_eq!((found.mean, found.deviation), (5.0, 2.0));
        assert_eq!((found.mean_over_sd, found.sd_over_mean), (Some(2.5), Some(0.4)));
        assert_eq!(spread(&rates, 4.0).mean_over_sd, Some(1.25), "at least the floor");
        assert_eq!(spread(&[0.0; 2], 1.0).mean_over_sd, None);
        assert_eq!(spread(&[], 0.0).mean, 0.0);
    }

    /// What never changes is the steadiest of all; it counts most, not nothing.
    #[test]
    fn a_perfectly_steady_rate_has_the_highest_quotient() {
        let quotient = |rates: &[f64]| spread(rates, 1.0).mean_over_sd;
        assert_eq!(quotient(&[300.0; 4]), Some(300.0));
        assert!(quotient(&[290.0, 310.0, 290.0, 310.0]) < quotient(&[300.0; 4]));
    }
}
