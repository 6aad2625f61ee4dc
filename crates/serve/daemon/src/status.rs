//! The status of a server that runs.
//!
//! For: the document that a monitor hands out. Must never know: HTTP, how requests are carried out.
//! Units: bytes, blocks, seconds. Recent counts are differences to counts that were kept 10 to 20 s
//! before.

use crate::changes::Member;
use crate::curves::TenantCurves;
use crate::error::LiveError;
use crate::goals::{Counted, Promise};
use crate::hour::{LastHour, MAX_TENANTS, Sample, TenantSample};
use crate::plan::LivePlan;
use crate::recordings::Recordings;
use cachewright_live::blocks::{BlockServer, Passage, ServeCounts};
use cachewright_live::exports::{AnswerMeter, Node, RequestKind};
use cachewright_result::history::LiveHistory;
use cachewright_result::status::{
    BlockCounts, LatencyBucket, LiveStatus, LogStatus, LossCount, RecentRequests, RecordingStatus,
    RequestStatus, SampledCurve, TenantState, TenantStatus,
};
use cachewright_result::written::Written;
use cachewright_types::TenantId;
use cachewright_types::measure::{Counts, Latencies, LossReason};

/// How long counts are kept as those to compare with.
const KEPT_NS: u64 = 10_000_000_000;
const NS_PER_S: f64 = 1e9;
const NS_PER_US: f64 = 1e3;

/// What a tenant had counted at an earlier time.
#[derive(Clone, Debug, Default)]
struct Earlier {
    counted: Counted,
    requests: [Latencies; RequestKind::ALL.len()],
}

impl Earlier {
    /// What a tenant has counted by now.
    fn present(node: &Node, tenant: TenantId) -> Earlier {
        let meter = node.meter(tenant);
        let blocks = *node.blocks().cache().engine().counts(tenant);
        let requests = RequestKind::ALL.map(|kind| meter.kind(kind).latencies.clone());
        Earlier { counted: Counted::all(blocks, meter), requests }
    }
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
pub struct StatusMaker {
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
        (engine, now_ns): (&str, u64),
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
    pub fn tick(&mut self, node: &Node, now_ns: u64) {
        if now_ns.saturating_sub(self.next.at_ns) < KEPT_NS {
            return;
        }
        let tenants =
            (0..self.facts.len()).map(|index| Earlier::present(node, TenantId(index as u16)));
        let kept = EarlierCounts { at_ns: now_ns, tenants: tenants.collect() };
        self.hour.add(self.sample(node, &kept));
        self.before = std::mem::replace(&mut self.next, kept);
    }

    /// What was done since counts were kept the last time.
    fn sample(&self, node: &Node, kept: &EarlierCounts) -> Sample {
        let blocks = node.blocks();
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
        (node, recordings): (&Node, Option<&Recordings>),
        mut curves: TenantCurves,
        now_ns: u64,
    ) -> LiveStatus {
        let blocks = node.blocks();
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
            connections: node.connections() as u64,
            held_bytes: node.held_bytes(),
            background_bytes_per_second,
            background_bytes,
            log: log_status(blocks),
            recordings: recordings.map(recording_status),
            tenants: self
                .here()
                .map(|index| self.tenant(node, index, curves.take(index)))
                .collect(),
        }
    }

    fn tenant(&self, node: &Node, index: usize, curve: Option<SampledCurve>) -> TenantStatus {
        let (facts, before) = (&self.facts[index], &self.before.tenants[index]);
        let (tenant, blocks) = (TenantId(index as u16), node.blocks());
        let engine = blocks.cache().engine();
        let counts = engine.counts(tenant);
        let bytes = |count: u32| u64::from(count) * blocks.block_bytes();
        let has_quota = engine.has_quota(tenant);
        let meter = node.meter(tenant);
        let recent = Counted::all(*counts, meter).since(&before.counted);
        let goal = facts.promise.map(|promise| promise.evaluate(&recent));
        let losses = engine.losses(tenant);
        let loss = |reason: LossReason| LossCount {
            reason: reason.word().to_owned(),
            blocks: losses.blocks(reason),
            dirty: losses.dirty(reason),
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
            caps_exhausted: node.caps_exhausted(tenant),
            blocks: block_counts(counts),
            recent: block_counts(&recent.blocks),
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
