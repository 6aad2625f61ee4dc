//! The status of a server that runs, and its last hour.
//!
//! Recent counts are differences to counts that were kept 10 to 20 s before. Each goal is judged by
//! what it is about. A sample of the hour is taken whenever counts are kept (each 10 s), and the
//! oldest goes when there are 361, so memory is bounded whatever is served.

use crate::changes::Member;
use crate::error::LiveError;
use crate::history::TenantCurves;
use crate::monitor::{Monitor, local_address};
use crate::plan::LivePlan;
use crate::recordings::Recordings;
use crate::trial::RunningTrial;
use cachewright_cache::Causes;
use cachewright_live::blocks::{BlockServer, Passage, ServeCounts, ServedVolume};
use cachewright_live::front::{AnswerMeter, BlockService, ExportMeter, LimitMeter, RequestKind};
use cachewright_live::io::Io;
use cachewright_live::io::system::SystemIo;
use cachewright_partition::ResponseGoal;
use cachewright_result::document::Written;
use cachewright_result::status::{
    BlockCounts, GoalStatus, LatencyBucket, LiveStatus, LogStatus, LossCount, MissedBlocks,
    PushedOut, RecentRequests, RecordingStatus, RequestStatus, SampledCurve, TenantState,
    TenantStatus, TrialStatus,
};
use cachewright_result::status::{LiveHistory, TenantHistory};
use cachewright_stack::Goal;
use cachewright_types::measure::{Counts, Latencies, LossReason};
use cachewright_types::{Nanos, TenantId};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long counts are kept as those to compare with.
const KEPT_NS: u64 = 10_000_000_000;
const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// What a tenant had counted at an earlier time.
#[derive(Clone, Debug, Default)]
struct Earlier {
    counted: Counted,
    requests: [Latencies; RequestKind::ALL.len()],
    missed: Missed,
}

/// Misses of a tenant.
#[derive(Clone, Debug, Default)]
struct Missed {
    causes: Causes,
    unexplained: u64,
    behind_ns: u64,
}

impl Missed {
    /// All since the start.
    fn all(blocks: &BlockServer, tenant: TenantId) -> Missed {
        let cache = blocks.cache();
        let engine = cache.engine();
        let causes = engine.causes().and_then(|causes| causes.get(tenant.index())).cloned();
        Missed {
            causes: causes.unwrap_or_default(),
            unexplained: engine.unexplained_misses(tenant),
            behind_ns: blocks.behind_ns(tenant),
        }
    }

    fn since(&self, before: &Missed) -> Missed {
        Missed {
            causes: self.causes.since(&before.causes),
            unexplained: self.unexplained,
            behind_ns: self.behind_ns - before.behind_ns,
        }
    }

    /// The misses as a document, where tenants have these names.
    fn document(&self, tenants: &[DescribedTenant]) -> MissedBlocks {
        let Missed { causes, unexplained, behind_ns } = self;
        let behind_seconds = *behind_ns as f64 / NS_PER_S;
        let all = causes.total() + unexplained;
        let pushed = tenants.iter().zip(&causes.pushed_out_by).filter(|(_, misses)| **misses > 0);
        let pushed = pushed.map(|(tenant, misses)| PushedOut {
            by: tenant.name.clone(),
            misses: *misses,
            seconds: behind_seconds * *misses as f64 / all as f64,
        });
        let mut pushed_out_by: Vec<PushedOut> = pushed.collect();
        pushed_out_by.sort_by_key(|found| std::cmp::Reverse(found.misses));
        MissedBlocks {
            first_use: causes.first_use,
            trimmed: causes.trimmed,
            lost: causes.lost,
            restart: causes.restart,
            bypassed: causes.bypassed,
            policy: causes.policy,
            quota: causes.quota,
            division: causes.division,
            pushed_out: causes.pushed_out(),
            capacity: causes.capacity,
            unexplained: *unexplained,
            pushed_out_by,
            behind_seconds,
        }
    }
}

impl Earlier {
    /// What a tenant has counted by now.
    fn present(service: &BlockService, tenant: TenantId) -> Earlier {
        let meter = service.clients.meter(tenant);
        let blocks = *service.blocks.cache().engine().counts(tenant);
        let requests = RequestKind::ALL.map(|kind| meter.kind(kind).latencies.clone());
        let missed = Missed::all(&service.blocks, tenant);
        Earlier { counted: Counted::all(blocks, meter), requests, missed }
    }
}

/// What clients have of a server at one time, by all front ends.
#[derive(Clone, Copy, Debug)]
pub struct ClientLoad {
    /// Clients that are connected.
    pub connections: usize,
    /// Bytes of requests under way and of answers that are not sent.
    pub held_bytes: u64,
}

/// Counts at an earlier time, by tenant.
#[derive(Clone, Debug, Default)]
struct EarlierCounts {
    at_ns: u64,
    tenants: Vec<Earlier>,
}

/// A tenant as the stack describes it.
#[derive(Clone, Debug)]
struct DescribedTenant {
    name: String,
    export: String,
    volume_bytes: u64,
    promise: Option<Promise>,
    member: Member,
}

/// The facts of all tenants of a plan. Errors: a goal that no hit ratio meets.
fn facts_of(
    plan: &LivePlan,
    volume_bytes: &[u64],
    members: &[Member],
) -> Result<Vec<DescribedTenant>, LiveError> {
    let promises = Promise::all(plan)?;
    let facts = plan.volumes.iter().zip(volume_bytes).zip(promises).zip(members);
    let facts = facts.map(|(((volume, bytes), promise), member)| {
        let (name, export) = (volume.name.clone(), volume.export.clone());
        DescribedTenant { name, export, volume_bytes: *bytes, promise, member: *member }
    });
    Ok(facts.collect())
}

/// Makes statuses of one server.
#[derive(Clone, Debug)]
struct StatusMaker {
    stack: String,
    schemes: [String; 3],
    engine: String,
    capacity_bytes: u64,
    facts: Vec<DescribedTenant>,
    started_ns: u64,
    /// Stacks that were looked at, and why the last one was not taken over.
    reloads: u64,
    refused_reload: Option<String>,
    /// The counts to compare with, and those that will be next.
    before: EarlierCounts,
    next: EarlierCounts,
    hour: LastHour,
}

impl StatusMaker {
    /// For a server that starts now; `volume_bytes` are the sizes of its volumes. Errors: a goal
    /// that no hit ratio meets.
    pub fn new(
        plan: &LivePlan,
        volume_bytes: &[u64],
        engine: &str,
        now_ns: u64,
    ) -> Result<StatusMaker, LiveError> {
        let facts = facts_of(plan, volume_bytes, &vec![Member::Served; volume_bytes.len()])?;
        let kept = EarlierCounts { at_ns: now_ns, tenants: vec![Earlier::default(); facts.len()] };
        Ok(StatusMaker {
            stack: plan.origin().display().to_string(),
            schemes: plan.schemes().map(str::to_owned),
            engine: engine.to_owned(),
            capacity_bytes: plan.capacity_bytes(),
            facts,
            started_ns: now_ns,
            reloads: 0,
            refused_reload: None,
            before: kept.clone(),
            next: kept,
            hour: LastHour::default(),
        })
    }

    /// The server goes on by another stack, with volumes of these sizes.
    pub fn follow(&mut self, plan: &LivePlan, volume_bytes: &[u64], members: &[Member]) {
        // Goals were checked with the rest of the stack.
        self.facts = facts_of(plan, volume_bytes, members).unwrap_or_default();
        self.schemes = plan.schemes().map(str::to_owned);
        self.capacity_bytes = plan.capacity_bytes();
        for kept in [&mut self.before, &mut self.next] {
            kept.tenants.resize(self.facts.len(), Earlier::default());
        }
    }

    /// Another stack was taken over, or refused with this sentence.
    pub fn reloaded(&mut self, error: Option<String>) {
        self.reloads += 1;
        self.refused_reload = error;
    }

    /// A tenant of this number is served otherwise.
    pub fn set_member(&mut self, tenant: usize, member: Member) {
        if let Some(facts) = self.facts.get_mut(tenant) {
            facts.member = member;
        }
    }

    /// Keeps counts to compare with, when it is time for that: they are a sample of the hour, too.
    pub fn tick(&mut self, service: &BlockService, now_ns: u64) {
        if now_ns.saturating_sub(self.next.at_ns) < KEPT_NS {
            return;
        }
        let tenants =
            (0..self.facts.len()).map(|index| Earlier::present(service, TenantId(index as u16)));
        let kept = EarlierCounts { at_ns: now_ns, tenants: tenants.collect() };
        self.hour.add(self.sample(service, &kept));
        self.before = std::mem::replace(&mut self.next, kept);
    }

    /// What was done since counts were kept the last time.
    fn sample(&self, service: &BlockService, kept: &EarlierCounts) -> Sample {
        let blocks = &service.blocks;
        let sampled = |index: usize| {
            let (now, before) = (&kept.tenants[index], &self.next.tenants[index]);
            let recent = now.counted.since(&before.counted);
            let p99_us = |kind: RequestKind| {
                let recent = now.requests[kind as usize].since(&before.requests[kind as usize]);
                (recent.count() > 0).then(|| recent.quantile_ns(0.99) as f64 / NS_PER_US)
            };
            let cached = blocks.cache().engine().occupancy(TenantId(index as u16));
            TenantSample {
                tenant: index,
                hit_ratio: block_counts(&recent.blocks).hit_ratio(),
                cached_bytes: u64::from(cached) * blocks.block_bytes(),
                read_p99_us: p99_us(RequestKind::Read),
                write_p99_us: p99_us(RequestKind::Write),
                goal_met: self.facts[index].promise.and_then(|goal| goal.evaluate(&recent).met),
            }
        };
        Sample {
            uptime_seconds: kept.at_ns.saturating_sub(self.started_ns) as f64 / NS_PER_S,
            dirty_bytes: blocks.dirty_blocks() * blocks.block_bytes(),
            free_segments: blocks.log_segments().1,
            tenants: self.here().take(MAX_TENANTS).map(sampled).collect(),
        }
    }

    /// The numbers of tenants that have not gone.
    fn here(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.facts.len()).filter(|tenant| self.facts[*tenant].member != Member::Gone)
    }

    /// The last hour.
    pub fn history(&self) -> LiveHistory {
        let named = |tenant: usize| (tenant, self.facts[tenant].name.as_str());
        let tenants: Vec<(usize, &str)> = self.here().map(named).collect();
        self.hour.document(KEPT_NS as f64 / NS_PER_S, &tenants)
    }

    /// The times that 99 of 100 requests of each tenant are to keep, in nanoseconds.
    pub fn limits(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.facts.iter().map(|facts| facts.promise.and_then(|promise| promise.limit_ns()))
    }

    /// The status, with the curves of tenants.
    pub fn status(
        &self,
        service: &BlockService,
        load: ClientLoad,
        recordings: Option<&Recordings>,
        trial: Option<TrialStatus>,
        mut curves: TenantCurves,
        now_ns: u64,
    ) -> LiveStatus {
        let blocks = &service.blocks;
        let seconds = |since_ns: u64| now_ns.saturating_sub(since_ns) as f64 / NS_PER_S;
        let [policy, partition, write] = self.schemes.clone();
        let (background_bytes_per_second, background_bytes) = blocks.background();
        LiveStatus {
            written: Written::here(),
            stack: self.stack.clone(),
            process: std::process::id(),
            reloads: self.reloads,
            refused_reload: self.refused_reload.clone(),
            uptime_seconds: seconds(self.started_ns),
            recent_seconds: seconds(self.before.at_ns),
            policy,
            partition,
            write,
            engine: self.engine.clone(),
            block_bytes: blocks.block_bytes(),
            capacity_bytes: self.capacity_bytes,
            dirty_bytes: blocks.dirty_blocks() * blocks.block_bytes(),
            connections: load.connections as u64,
            held_bytes: load.held_bytes,
            background_bytes_per_second,
            background_bytes,
            log: log_status(blocks),
            recordings: recordings.map(recording_status),
            trial,
            tenants: self
                .here()
                .map(|index| self.tenant(service, index, curves.take(index)))
                .collect(),
        }
    }

    fn tenant(
        &self,
        service: &BlockService,
        index: usize,
        curve: Option<SampledCurve>,
    ) -> TenantStatus {
        let (facts, before) = (&self.facts[index], &self.before.tenants[index]);
        let tenant = TenantId(index as u16);
        let BlockService { blocks, clients, .. } = service;
        let cache = blocks.cache();
        let engine = cache.engine();
        let counts = engine.counts(tenant);
        let bytes = |count: u32| u64::from(count) * blocks.block_bytes();
        let has_quota = engine.has_quota(tenant);
        let meter = clients.meter(tenant);
        let recent = Counted::all(*counts, meter).since(&before.counted);
        let missed = Missed::all(blocks, tenant);
        let recent_missed = missed.since(&before.missed);
        let recent_misses = recent_missed.document(&self.facts);
        let goal = facts.promise.map(|promise| {
            let found = promise.evaluate(&recent);
            promise.explain(found, &recent, &recent_misses, curve.as_ref())
        });
        let losses = engine.losses(tenant);
        let loss = |reason: LossReason| {
            // The engine decides no more when the log has failed.
            let with_log = match reason {
                LossReason::Device => blocks.lost_with_log(tenant),
                _ => 0,
            };
            LossCount {
                reason: reason.word().to_owned(),
                blocks: losses.blocks(reason) + with_log,
                dirty: losses.dirty(reason) + with_log,
            }
        };
        let requests = |(kind, before): (RequestKind, &Latencies)| {
            request_status(kind, meter.kind(kind), before)
        };
        TenantStatus {
            name: facts.name.clone(),
            export: facts.export.clone(),
            volume_bytes: facts.volume_bytes,
            state: match facts.member {
                Member::Served => state(blocks, tenant),
                _ => TenantState::Leaving,
            }
            .word()
            .to_owned(),
            quota_bytes: has_quota.then(|| bytes(engine.quota(tenant))),
            cached_bytes: bytes(engine.occupancy(tenant)),
            dirty_bytes: has_quota.then(|| bytes(engine.dirty_in(engine.pool_of(tenant)))),
            goal_hit_ratio: facts.promise.and_then(|promise| promise.hit_ratio()),
            goal_met: goal.as_ref().and_then(|goal| goal.met),
            goal,
            caps_exhausted: clients.caps_exhausted(tenant),
            blocks: block_counts(counts),
            recent: block_counts(&recent.blocks),
            misses: missed.document(&self.facts),
            recent_misses,
            losses: LossReason::ALL.map(loss).into(),
            requests: RequestKind::ALL.into_iter().zip(&before.requests).map(requests).collect(),
            curve,
        }
    }
}

fn log_status(blocks: &BlockServer) -> LogStatus {
    let counts = blocks.counts();
    let ServeCounts { written, moved, dropped, cleaned, .. } = counts;
    let bytes = |count: u64| count * blocks.block_bytes();
    let (segments, free_segments) = blocks.log_segments();
    LogStatus {
        failed: blocks.log_failure().map(|error| error.to_string()),
        segments,
        free_segments,
        written_bytes: bytes(written),
        moved_bytes: bytes(moved),
        dropped_bytes: bytes(dropped),
        cleaned_segments: cleaned,
        write_amplification: counts.write_amplification(),
        refused_requests: counts.without_space,
        damaged_clean: counts.damaged_clean,
        damaged_dirty: counts.damaged_dirty,
        stranded: counts.stranded,
        memory_reads: counts.memory_reads,
    }
}

fn recording_status(recordings: &Recordings) -> RecordingStatus {
    let (folder, under_way) = recordings.places();
    let counts = recordings.counts();
    RecordingStatus {
        folder: folder.display().to_string(),
        under_way,
        files: counts.files,
        requests: counts.requests,
        dropped_requests: counts.dropped,
        removed_files: counts.removed,
        kept_requests: counts.kept,
        recovered_files: counts.recovered,
        abandoned_files: counts.abandoned,
        errors: counts.errors,
        last_error: counts.last_error,
    }
}

fn state(blocks: &BlockServer, tenant: TenantId) -> TenantState {
    if blocks.is_reviving(tenant) {
        return TenantState::Reviving;
    }
    if blocks.volume_has_failed(tenant) {
        return TenantState::Failed;
    }
    match blocks.passage(tenant).map(|found| found.passage) {
        None => TenantState::Cached,
        Some(Passage::Passes) => TenantState::Bypassed,
        Some(Passage::ReadsOnly) => TenantState::ReadOnly,
        Some(Passage::Waits) => TenantState::Waiting,
        Some(Passage::Fails) => TenantState::Failed,
    }
}

fn block_counts(counts: &Counts) -> BlockCounts {
    BlockCounts {
        reads: counts.reads,
        read_hits: counts.read_hits,
        writes: counts.writes,
        write_hits: counts.write_hits,
        admissions: counts.admissions(),
        bypasses: counts.bypasses(),
        cut_off_requests: counts.cut_off_requests,
        cut_off_bytes: counts.cut_off_bytes,
        evictions: counts.evictions,
        writebacks: counts.writebacks,
    }
}

fn request_status(kind: RequestKind, meter: &AnswerMeter, before: &Latencies) -> RequestStatus {
    let all = &meter.latencies;
    let bucket = |(below_ns, count): (Option<u64>, u64)| LatencyBucket {
        below_seconds: below_ns.map(|below_ns| below_ns as f64 / NS_PER_S),
        count,
    };
    let recent = all.since(before);
    let quantile = |share: f64| recent.quantile_ns(share) as f64 / NS_PER_US;
    RequestStatus {
        kind: kind.word().to_owned(),
        count: all.count(),
        bytes: meter.bytes,
        errors: meter.errors,
        seconds: all.sum_ns() as f64 / NS_PER_S,
        buckets: all.by_power().into_iter().map(bucket).collect(),
        recent: RecentRequests {
            count: recent.count(),
            mean_us: recent.mean_ns() / NS_PER_US,
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
        },
    }
}

/// One request in so many may be later than a 99th percentile.
const LATE_OF: u64 = 100;

/// A tenant's goal, and what it needs to be judged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Promise {
    goal: Goal,
    /// The hit ratio that it is, or stands for it.
    hit_ratio: Option<f64>,
    /// The times of a hit and of a miss.
    hit: Nanos,
    miss: Nanos,
}

/// What was counted of a tenant in some time.
#[derive(Clone, Debug, Default)]
struct Counted {
    /// Accesses to blocks.
    pub blocks: Counts,
    /// Times of reads and writes to their answers.
    pub responses: Latencies,
    /// The same beside the goal's time, if there is one.
    pub limit: Option<LimitMeter>,
}

impl Counted {
    /// All that was counted since the start.
    pub fn all(blocks: Counts, meter: &ExportMeter) -> Counted {
        let mut responses = meter.kind(RequestKind::Read).latencies.clone();
        responses.add(&meter.kind(RequestKind::Write).latencies);
        Counted { blocks, responses, limit: meter.limit() }
    }

    /// What was counted since `before`.
    pub fn since(&self, before: &Counted) -> Counted {
        Counted {
            blocks: self.blocks.since(&before.blocks),
            responses: self.responses.since(&before.responses),
            limit: self.limit.map(|limit| limit.since(before.limit)),
        }
    }
}

impl Promise {
    /// What each tenant of a plan was promised. Errors: a latency that no hit ratio gives.
    pub fn all(plan: &LivePlan) -> Result<Vec<Option<Promise>>, LiveError> {
        let (hit, miss) = (plan.stack.replay.hit_time, plan.stack.replay.miss_time);
        let ratios = plan.goals()?;
        let promise = |(goal, hit_ratio): (Option<Goal>, Option<f64>)| {
            goal.map(|goal| Promise { goal, hit_ratio, hit, miss })
        };
        let goals = plan.stack.tenants.iter().map(|tenant| tenant.goal);
        Ok(goals.zip(ratios).map(promise).collect())
    }

    /// The hit ratio that it is, or stands for it.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.hit_ratio
    }

    /// The time that 99 of 100 requests are to keep.
    pub fn limit_ns(&self) -> Option<u64> {
        match self.goal {
            Goal::Response(ResponseGoal::P99(limit)) => Some(limit.0),
            _ => None,
        }
    }

    /// The goal beside what was counted.
    fn evaluate(&self, counted: &Counted) -> GoalStatus {
        let Counted { blocks, responses, limit } = counted;
        let accesses = blocks.reads + blocks.writes;
        let hits = blocks.read_hits + blocks.write_hits;
        let ratio = (accesses > 0).then(|| hits as f64 / accesses as f64);
        let us = |time: Nanos| time.0 as f64 / NS_PER_US;
        let (unit, promised, measured, samples, met) = match self.goal {
            Goal::HitRatio(wanted) => {
                ("ratio", wanted, ratio, accesses, ratio.map(|ratio| ratio >= wanted))
            }
            Goal::Latency(wanted) => {
                let mean = |ratio: f64| ratio * us(self.hit) + (1.0 - ratio) * us(self.miss);
                let is_met = self.hit_ratio.zip(ratio).map(|(wanted, ratio)| ratio >= wanted);
                ("us", us(wanted), ratio.map(mean), accesses, is_met)
            }
            Goal::Response(ResponseGoal::Mean(wanted)) => {
                let count = responses.count();
                let mean = (count > 0).then(|| responses.mean_ns());
                let is_met = mean.map(|mean| mean <= wanted.0 as f64);
                ("us", us(wanted), mean.map(|mean| mean / NS_PER_US), count, is_met)
            }
            Goal::Response(ResponseGoal::P99(wanted)) => {
                let (count, late) = limit.map_or((0, 0), |limit| (limit.answers(), limit.late()));
                let is_met = (count > 0).then(|| late * LATE_OF <= count);
                let bound = responses.quantile_ns(0.99);
                // The bound of a bucket may be later than the goal, and the percentile not.
                let bound = if is_met == Some(true) { bound.min(wanted.0) } else { bound };
                let measured = is_met.map(|_| bound as f64 / NS_PER_US);
                ("us", us(wanted), measured, count, is_met)
            }
        };
        let (key, unit) = (self.goal.key().to_owned(), unit.to_owned());
        let (bound_by, needs_bytes) = (None, None);
        GoalStatus { key, unit, promised, measured, samples, met, bound_by, needs_bytes }
    }

    /// A goal that was judged, with what keeps the tenant from it if it is missed.
    fn explain(
        &self,
        judged: GoalStatus,
        counted: &Counted,
        misses: &MissedBlocks,
        curve: Option<&SampledCurve>,
    ) -> GoalStatus {
        if judged.met != Some(false) {
            return judged;
        }
        let Some(wanted) = self.hit_ratio else {
            let waited_s = counted.responses.sum_ns() as f64 / NS_PER_S;
            let is_behind = misses.behind_seconds * 2.0 > waited_s;
            let bound_by =
                if is_behind { binding_cause(misses) } else { Some("devices".to_owned()) };
            return GoalStatus { bound_by, ..judged };
        };
        let accesses = counted.blocks.reads + counted.blocks.writes;
        let unavoidable = misses.first_use + misses.trimmed + misses.lost;
        let allowed = (1.0 - wanted) * accesses as f64;
        if unavoidable as f64 > allowed {
            return GoalStatus { bound_by: Some("first use".to_owned()), ..judged };
        }
        let needs_bytes = curve.and_then(|curve| least_bytes(curve, 1.0 - wanted));
        GoalStatus { bound_by: binding_cause(misses), needs_bytes, ..judged }
    }
}

/// The cause of most misses that space, another division or another policy could mend.
fn binding_cause(misses: &MissedBlocks) -> Option<String> {
    let whole = [
        ("restart", misses.restart),
        ("bypassed", misses.bypassed),
        ("policy", misses.policy),
        ("quota", misses.quota),
        ("division", misses.division),
        ("capacity", misses.capacity),
    ];
    let whole = whole.into_iter().map(|(cause, count)| (cause.to_owned(), count));
    let pushed = misses.pushed_out_by.iter();
    let pushed = pushed.map(|found| (format!("pushed out by {}", found.by), found.misses));
    let causes = pushed.chain(whole).filter(|(_, count)| *count > 0);
    // Of equal ones the first.
    let most = causes.reduce(|most, next| if next.1 > most.1 { next } else { most });
    most.map(|(cause, _)| cause)
}

/// The least bytes with which a tenant misses at most so often, by its curve: a line between two
/// points.
fn least_bytes(curve: &SampledCurve, miss_ratio: f64) -> Option<u64> {
    let reached = curve.points.iter().position(|point| point.miss_ratio <= miss_ratio)?;
    let after = curve.points[reached];
    let Some(before) = reached.checked_sub(1).map(|place| curve.points[place]) else {
        return Some(after.bytes);
    };
    let part = (before.miss_ratio - miss_ratio) / (before.miss_ratio - after.miss_ratio);
    let more = (after.bytes - before.bytes) as f64 * part;
    Some(before.bytes + more.ceil() as u64)
}

/// Samples that are kept: those of an hour, with its beginning.
const MAX_SAMPLES: usize = 361;
/// Tenants that are sampled.
const MAX_TENANTS: usize = 64;

/// What one tenant did since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TenantSample {
    /// The tenant's number.
    pub tenant: usize,
    /// Hits over accesses; nothing without accesses.
    pub hit_ratio: Option<f64>,
    /// Bytes that it holds.
    pub cached_bytes: u64,
    /// The 99th percentile of reads; nothing without reads.
    pub read_p99_us: Option<f64>,
    /// The 99th percentile of writes; nothing without writes.
    pub write_p99_us: Option<f64>,
    /// Whether its goal was met; nothing without one.
    pub goal_met: Option<bool>,
}

/// What a server did since the sample before.
#[derive(Clone, Debug, PartialEq)]
struct Sample {
    /// Seconds since its start.
    pub uptime_seconds: f64,
    /// Bytes that only the cache has.
    pub dirty_bytes: u64,
    /// Segments of the log that hold nothing.
    pub free_segments: u64,
    /// Its tenants, at most [`MAX_TENANTS`].
    pub tenants: Vec<TenantSample>,
}

/// The samples of the last hour.
#[derive(Clone, Debug, Default)]
struct LastHour {
    samples: VecDeque<Sample>,
}

impl LastHour {
    /// One more sample; the oldest may go for it.
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The hour as a document, of tenants by number and name.
    pub fn document(&self, every_seconds: f64, tenants: &[(usize, &str)]) -> LiveHistory {
        let samples = &self.samples;
        let sampled = |tenant: usize| {
            let own = move |sample: &Sample| {
                sample.tenants.iter().find(|found| found.tenant == tenant).copied()
            };
            samples.iter().map(own).collect::<Vec<_>>()
        };
        let history = |(tenant, name): &(usize, &str)| {
            let own = sampled(*tenant);
            TenantHistory {
                name: (*name).to_owned(),
                hit_ratio: own.iter().map(|found| found.and_then(|own| own.hit_ratio)).collect(),
                cached_bytes: own.iter().map(|found| found.map(|own| own.cached_bytes)).collect(),
                read_p99_us: own
                    .iter()
                    .map(|found| found.and_then(|own| own.read_p99_us))
                    .collect(),
                write_p99_us: own
                    .iter()
                    .map(|found| found.and_then(|own| own.write_p99_us))
                    .collect(),
                goal_met: own.iter().map(|found| found.and_then(|own| own.goal_met)).collect(),
            }
        };
        LiveHistory {
            written: Written::here(),
            every_seconds,
            uptime_seconds: samples.iter().map(|sample| sample.uptime_seconds).collect(),
            dirty_bytes: samples.iter().map(|sample| sample.dirty_bytes).collect(),
            free_segments: samples.iter().map(|sample| sample.free_segments).collect(),
            tenants: tenants.iter().take(MAX_TENANTS).map(history).collect(),
        }
    }
}

/// A monitor, and what makes statuses for it.
pub struct StatusPublisher {
    monitor: Monitor,
    maker: StatusMaker,
}

/// Where the stack wants a monitor, if it does. Errors: others reach the address.
pub fn monitor_address(plan: &LivePlan) -> Result<Option<SocketAddr>, LiveError> {
    let text = plan.serve.monitor.as_ref();
    let address = text.map(|text| local_address(text)).transpose();
    address.map_err(|error| plan.refuse(format!("`serve.monitor`: {error}")))
}

impl StatusPublisher {
    /// The publisher that the stack asks for, if it does.
    /// Errors: an address that others reach or that is taken; a goal that no hit ratio meets.
    pub fn start(
        plan: &LivePlan,
        served: &[ServedVolume],
        io: &SystemIo,
    ) -> Result<Option<StatusPublisher>, LiveError> {
        let Some(address) = monitor_address(plan)? else { return Ok(None) };
        let refuse = |error| plan.refuse(format!("`serve.monitor`: {error}"));
        let sizes: Vec<u64> = served.iter().map(|volume| volume.bytes).collect();
        let maker = StatusMaker::new(plan, &sizes, io.name(), io.now_ns())?;
        let monitor = Monitor::start(address).map_err(|error| refuse(error.to_string()))?;
        Ok(Some(StatusPublisher { monitor, maker }))
    }

    /// A line that says where the page is.
    pub fn described(&self) -> String {
        format!("monitor: http://{}/", self.address())
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.monitor.address()
    }

    /// The server goes on by another stack, with volumes of these sizes.
    pub fn follow(&mut self, plan: &LivePlan, sizes: &[u64], members: &[Member]) {
        self.maker.follow(plan, sizes, members);
    }

    /// A tenant of this number is served otherwise.
    pub fn set_member(&mut self, tenant: usize, member: Member) {
        self.maker.set_member(tenant, member);
    }

    /// Another stack was taken over, or refused with this sentence.
    pub fn reloaded(&mut self, error: Option<String>) {
        self.maker.reloaded(error);
    }

    /// The times that 99 of 100 requests of each tenant are to keep, in nanoseconds.
    pub fn limits(&self) -> Vec<Option<u64>> {
        self.maker.limits().collect()
    }

    /// Hands over what is asked for: a status, the last hour. To be called some times a second.
    pub fn tick(
        &mut self,
        service: &mut BlockService,
        load: ClientLoad,
        recordings: Option<&Recordings>,
        trial: Option<&RunningTrial>,
        plan: &LivePlan,
        now_ns: u64,
    ) {
        self.maker.tick(service, now_ns);
        if self.monitor.wants_history() {
            self.monitor.publish_history(self.maker.history());
        }
        if self.monitor.is_wanted() {
            let curves = TenantCurves::last_hour(&mut service.blocks, now_ns);
            let trial = trial.and_then(|trial| trial.status(&service.blocks, plan, now_ns));
            let status = self.maker.status(service, load, recordings, trial, curves, now_ns);
            self.monitor.publish(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_result::status::CurvePoint;

    const US: u64 = 1000;

    fn promise(goal: Goal) -> Promise {
        let (hit, miss) = (Nanos(100 * US), Nanos(5000 * US));
        Promise { goal, hit_ratio: goal.hit_ratio(hit, miss).unwrap(), hit, miss }
    }

    /// A meter of writes that took so long.
    fn meter(promise: &Promise, times_us: &[u64]) -> ExportMeter {
        let mut meter = ExportMeter::default();
        meter.set_limit(promise.limit_ns());
        let write = |time_us: &u64| meter.note(RequestKind::Write, 512, time_us * US, false);
        times_us.iter().for_each(write);
        meter
    }

    fn evaluated(goal: Goal, times_us: &[u64]) -> (Option<f64>, u64, Option<bool>) {
        let promise = promise(goal);
        let blocks = Counts { reads: 100, read_hits: 60, ..Counts::default() };
        let found = promise.evaluate(&Counted::all(blocks, &meter(&promise, times_us)));
        assert_eq!(found.key, goal.key());
        (found.measured, found.samples, found.met)
    }

    #[test]
    fn each_goal_is_judged_by_what_it_is_about() {
        assert_eq!(evaluated(Goal::HitRatio(0.6), &[]), (Some(0.6), 100, Some(true)));
        assert_eq!(evaluated(Goal::HitRatio(0.61), &[]), (Some(0.6), 100, Some(false)));
        let (mean, samples, met) = evaluated(Goal::Latency(Nanos(2061 * US)), &[]);
        assert!((mean.unwrap() - 2060.0).abs() < 1e-6, "{mean:?}");
        assert_eq!((samples, met), (100, Some(true)));
        assert_eq!(evaluated(Goal::Latency(Nanos(2059 * US)), &[]).2, Some(false));
        let mean = |limit_us| Goal::Response(ResponseGoal::Mean(Nanos(limit_us * US)));
        assert_eq!(evaluated(mean(200), &[100, 300]), (Some(200.0), 2, Some(true)));
        assert_eq!(evaluated(mean(199), &[100, 300]), (Some(200.0), 2, Some(false)));
        assert_eq!(evaluated(mean(199), &[]), (None, 0, None), "nothing was asked");
    }

    #[test]
    fn of_a_99th_percentile_one_request_in_a_hundred_may_be_late() {
        let limit = Goal::Response(ResponseGoal::P99(Nanos(20_000 * US)));
        let mut times = vec![20_000; 99];
        times.push(90_000);
        assert_eq!(evaluated(limit, &times), (Some(20_000.0), 100, Some(true)));
        times.push(20_001);
        let (measured, samples, met) = evaluated(limit, &times);
        assert!(measured.unwrap() > 20_000.0, "{measured:?}");
        assert_eq!((samples, met), (101, Some(false)));
        assert_eq!(evaluated(limit, &[]), (None, 0, None));
    }

    #[test]
    fn only_what_was_counted_of_late_is_judged() {
        let promise = promise(Goal::Response(ResponseGoal::P99(Nanos(200 * US))));
        let mut meter = meter(&promise, &[900; 50]);
        let before = Counted::all(Counts::default(), &meter);
        meter.note(RequestKind::Write, 512, 100 * US, false);
        let now = Counted::all(Counts::default(), &meter);
        assert_eq!(promise.evaluate(&now).met, Some(false));
        let recent = promise.evaluate(&now.since(&before));
        assert_eq!((recent.samples, recent.met), (1, Some(true)));
    }

    fn sample(number: usize) -> Sample {
        let own = TenantSample {
            tenant: number % 2,
            hit_ratio: Some(0.5),
            cached_bytes: number as u64,
            read_p99_us: None,
            write_p99_us: Some(7.0),
            goal_met: Some(true),
        };
        Sample {
            uptime_seconds: 10.0 * number as f64,
            dirty_bytes: number as u64,
            free_segments: 3,
            tenants: vec![own],
        }
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut hour = LastHour::default();
        (0..1000).for_each(|number| hour.add(sample(number)));
        let found = hour.document(10.0, &[(0, "a"), (1, "b"), (2, "c")]);
        assert_eq!((found.uptime_seconds.len(), found.uptime_seconds[0]), (361, 6390.0));
        assert_eq!(found.uptime_seconds[360] - found.uptime_seconds[0], 3600.0);
        assert_eq!((found.dirty_bytes[360], found.free_segments[0]), (999, 3));
        let [a, b, c] = &found.tenants[..] else { unreachable!() };
        assert_eq!(a.cached_bytes[..3], [None, Some(640), None]);
        assert_eq!(
            (b.hit_ratio[0], b.read_p99_us[0], b.goal_met[0]),
            (Some(0.5), None, Some(true))
        );
        assert_eq!(c.write_p99_us, [None; 361], "it was not served yet");
    }

    fn curve(points: &[(u64, f64)]) -> SampledCurve {
        let point = |(bytes, miss_ratio): &(u64, f64)| CurvePoint {
            bytes: *bytes,
            miss_ratio: *miss_ratio,
            low: *miss_ratio,
            high: *miss_ratio,
        };
        let (policy, points) = ("lru".to_owned(), points.iter().map(point).collect());
        SampledCurve { policy, seconds: 1.0, accesses: 100, trusted_bytes: 0, points }
    }

    /// 100 accesses of which 60 hit, beside a goal; 40 misses by these causes.
    fn bound(goal: Goal, misses: &MissedBlocks) -> (Option<String>, Option<u64>) {
        let promise = promise(goal);
        let blocks = Counts { reads: 100, read_hits: 60, ..Counts::default() };
        let counted = Counted::all(blocks, &meter(&promise, &[300, 300]));
        let curve = curve(&[(0, 1.0), (1000, 0.4), (3000, 0.2)]);
        let judged = promise.evaluate(&counted);
        let found = promise.explain(judged, &counted, misses, Some(&curve));
        (found.bound_by, found.needs_bytes)
    }

    #[test]
    fn a_missed_goal_names_what_binds_it_and_what_would_meet_it() {
        let by = |by: &str, misses: u64| PushedOut { by: by.to_owned(), misses, seconds: 0.0 };
        let misses = MissedBlocks {
            first_use: 10,
            quota: 9,
            pushed_out: 21,
            pushed_out_by: vec![by("mail", 20), by("web", 1)],
            ..MissedBlocks::default()
        };
        let mail = Some("pushed out by mail".to_owned());
        assert_eq!(bound(Goal::HitRatio(0.7), &misses), (mail.clone(), Some(2000)));
        assert_eq!(bound(Goal::HitRatio(0.6), &misses), (None, None), "it is met");
        // 10 of 100 are first uses.
        let first = Some("first use".to_owned());
        assert_eq!(bound(Goal::HitRatio(0.91), &misses), (first, None));
        assert_eq!(bound(Goal::HitRatio(0.85), &misses), (mail.clone(), None), "no size does");
        let mean = Goal::Response(ResponseGoal::Mean(Nanos(100 * US)));
        assert_eq!(bound(mean, &misses), (Some("devices".to_owned()), None));
        let slow = MissedBlocks { behind_seconds: 0.0005, ..misses };
        assert_eq!(bound(mean, &slow), (mail, None), "500 of 600 us behind the cache");
        let unmeasured = bound(Goal::HitRatio(0.7), &MissedBlocks::default());
        assert_eq!(unmeasured, (None, Some(2000)));
    }
}
