//! One cache in a replay: an engine, its control loop, its counters over time. Or a measurement of
//! miss-ratio curves in its place.
//!
//! Lanes share only the recording, so they run on any number of threads with the same result. The
//! loops over accesses here are the hot ones of hit-ratio studies.

use crate::recording::{CUT_OFF, LAST, Recording, TRIM, WRITE};
use crate::series::{ALL_TENANTS, Row, window_rows};
use cachewright_cache::{AccessOutcome, BlockAccess, Causes, Engine};
use cachewright_control::{ChurnTotals, Control, Signals, divide};
use cachewright_curve::{BlockName, CurveSet, Curves};
use cachewright_partition::Requirement;
use cachewright_policy::{BackgroundOp, Future, FutureSlice, Policy, Verdict};
use cachewright_types::measure::Counts;
use cachewright_types::{BlockId, TenantId};
use std::ops::Range;

/// Accesses whose state is loaded ahead of use, so that cache misses of the processor overlap.
const STRIDE: usize = 32;
/// The one measurement of the set.
const ONLY: TenantId = TenantId(0);

/// Anything that is fed a recording.
pub trait Lane: Send {
    /// Replays a range of the recording; `futures` are those of its accesses.
    fn replay(&mut self, recording: &Recording, range: Range<usize>, futures: FutureSlice<'_>);
    /// An interval has ended, in which `signals` were measured.
    fn end_interval(&mut self, signals: &Signals);
    /// A window of the time series has ended.
    fn end_window(&mut self, window: u32, time_ns: u64);
    /// The warm-up has ended: only what follows is counted in the result.
    fn end_warmup(&mut self) {}
    /// The recording has ended.
    fn finish(&mut self) -> LaneResult;
}

/// What a lane found.
#[derive(Clone, Debug, Default)]
pub struct LaneResult {
    /// Counters per tenant, of what came after the warm-up.
    pub counts: Vec<Counts>,
    /// Blocks each tenant holds at the end.
    pub occupancy_blocks: Vec<u32>,
    /// Blocks each tenant may hold at the end.
    pub quota_blocks: Vec<u32>,
    /// The pool of each tenant, where some but not all tenants share one; otherwise empty.
    pub pools: Vec<u16>,
    /// Dirty blocks at the end.
    pub dirty_blocks: u64,
    /// The time series.
    pub rows: Vec<Row>,
    /// What divisions moved, where the cache is divided.
    pub churn: Option<ChurnTotals>,
    /// What each tenant makes use of, by the last division; empty without one.
    pub required: Vec<Requirement>,
    /// Blocks that keep each tenant's goal, by the last division; empty where that is not known.
    pub goal_blocks: Vec<Option<u32>>,
    /// The misses of each tenant by cause; empty unless they are explained.
    pub causes: Vec<Causes>,
    /// Curves, from lanes that measure them: of the whole recording, or one per window.
    pub curves: Vec<Curves>,
    /// What was decided, in replays that continue from a server's state.
    pub continued: Option<Continued>,
}

/// Where a replay that continues from a server's state has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continued {
    /// A hash of what was decided since the server began.
    pub decided: u64,
    /// The server's own at that moment, where it is known.
    pub by_server: Option<u64>,
}

impl LaneResult {
    /// The same with counters of what came after `before`, the tenants' counters at a time.
    pub fn since(mut self, before: &[Counts]) -> LaneResult {
        for (counts, before) in self.counts.iter_mut().zip(before) {
            *counts = counts.since(before);
        }
        self
    }

    /// The same of the tenants that have these `numbers`, in their order.
    pub fn of_tenants(self, numbers: &[TenantId]) -> LaneResult {
        fn own<T: Clone>(each: &[T], numbers: &[TenantId]) -> Vec<T> {
            numbers.iter().filter_map(|number| each.get(number.index()).cloned()).collect()
        }
        let row = |row: Row| {
            let place = numbers.iter().position(|number| u32::from(number.0) == row.tenant);
            let of_all = (row.tenant == ALL_TENANTS).then_some(ALL_TENANTS);
            let tenant = of_all.or(place.map(|place| place as u32))?;
            Some(Row { tenant, ..row })
        };
        let mut rows: Vec<Row> = self.rows.into_iter().filter_map(row).collect();
        rows.sort_by_key(|row| (row.window, row.tenant));
        LaneResult {
            counts: own(&self.counts, numbers),
            occupancy_blocks: own(&self.occupancy_blocks, numbers),
            quota_blocks: own(&self.quota_blocks, numbers),
            pools: own(&self.pools, numbers),
            rows,
            required: own(&self.required, numbers),
            goal_blocks: own(&self.goal_blocks, numbers),
            causes: own(&self.causes, numbers),
            ..self
        }
    }

    /// What an engine of so many tenants found, with the rows kept beside it, under `control`.
    pub fn new<P: Policy>(
        engine: &Engine<P>,
        tenants: usize,
        rows: Vec<Row>,
        control: Option<&Control>,
    ) -> LaneResult {
        let tenants = || (0..tenants).map(|tenant| TenantId(tenant as u16));
        LaneResult {
            counts: tenants().map(|tenant| *engine.counts(tenant)).collect(),
            occupancy_blocks: tenants().map(|tenant| engine.occupancy(tenant)).collect(),
            quota_blocks: tenants().map(|tenant| engine.quota(tenant)).collect(),
            pools: engine.mixed_pools(),
            dirty_blocks: engine.dirty_blocks(),
            rows,
            churn: control.and_then(Control::churn),
            required: control.map_or_else(Vec::new, |control| control.required().to_vec()),
            goal_blocks: control.map_or_else(Vec::new, |control| control.goal_blocks().to_vec()),
            causes: engine.causes().map_or_else(Vec::new, <[Causes]>::to_vec),
            curves: Vec::new(),
            continued: None,
        }
    }
}

/// A lane around an engine.
pub struct EngineLane<P> {
    engine: Engine<P>,
    control: Option<Control>,
    observer: Option<Box<dyn CacheObserver>>,
    rows: Vec<Row>,
    window_start: Vec<Counts>,
    /// Counters at the end of the warm-up.
    before: Vec<Counts>,
    /// Whether every block of the current request has hit so far.
    all_hit: bool,
    /// Bytes of each access where the recording has no column of them.
    even_bytes: u64,
    /// Whether the policy is told of whole requests.
    observes_requests: bool,
}

impl<P: Policy> EngineLane<P> {
    /// A lane over an engine built for `recording`'s tenants, whose quotas stay as they are.
    pub fn new(mut engine: Engine<P>, recording: &Recording) -> Self {
        for pool in 0..engine.pools() {
            let ids = if engine.is_shared() {
                recording.distinct
            } else {
                recording.totals[pool].distinct_blocks
            };
            engine.reserve_ids(pool, ids as usize);
        }
        let window_start = vec![Counts::default(); recording.totals.len()];
        let before = window_start.clone();
        EngineLane {
            engine,
            control: None,
            observer: None,
            rows: Vec::new(),
            window_start,
            before,
            all_hit: true,
            even_bytes: u64::from(recording.even_bytes),
            observes_requests: false,
        }
    }

    /// The same lane with quotas divided anew at every interval.
    pub fn with_control(self, control: Control) -> Self {
        EngineLane { control: Some(control), ..self }
    }

    /// The same lane, reporting what happens to cached blocks.
    pub fn with_observer(self, observer: Option<Box<dyn CacheObserver>>) -> Self {
        EngineLane { observer, ..self }
    }

    /// The same lane, reporting requests to the policy, which the recording must hold
    /// ([`Recording::has_requests`]).
    pub fn observing_requests(self) -> Self {
        EngineLane { observes_requests: true, ..self }
    }

    /// The engine, to look at.
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// Replays one request that comes at `time_ns` and returns whether every block of it hit (a
    /// trim always does).
    pub(crate) fn request(&mut self, recording: &Recording, request: usize, time_ns: u64) -> bool {
        let ids = recording.ids_for(self.engine.is_shared());
        let mut all_hit = true;
        if self.observes_requests {
            self.report_request(recording, request, time_ns);
        }
        for position in recording.accesses_of(request) {
            let tenant = recording.tenant_at(position);
            let flags = recording.flags[position] & !LAST;
            let bytes = recording.bytes.get(position).copied().unwrap_or_default();
            self.step::<true>(BlockId(ids[position]), tenant, flags, Future::None, bytes);
            if flags & CUT_OFF != 0 {
                self.count_cut_off(recording, position);
            }
            all_hit = self.all_hit;
            if recording.flags[position] & (LAST | TRIM) == LAST {
                self.engine.count_request(tenant, self.all_hit);
                self.background_ops(tenant);
            }
        }
        self.all_hit = true;
        all_hit
    }

    /// Reports a request that is no trim to the policy.
    fn report_request(&mut self, recording: &Recording, request: usize, time_ns: u64) {
        if let Some(info) = recording.request_info(request, time_ns) {
            let tenant = recording.tenant_at(recording.start_of(request));
            self.engine.on_request(tenant, &info);
        }
    }

    /// The loop for any recording; with `OBSERVES` the policy observes each request before the
    /// first of its accesses. With `BYTES` the bytes of accesses are counted, and requests may go
    /// past the cache: only recordings with bytes have such.
    fn replay_any<const OBSERVES: bool, const BYTES: bool>(
        &mut self,
        recording: &Recording,
        range: Range<usize>,
        futures: FutureSlice<'_>,
    ) {
        let mut request = if OBSERVES { recording.arrivals.request_from(range.start) } else { 0 };
        // Slices first: a column looks up where it lies at each use.
        let ids = recording.ids_for(self.engine.is_shared());
        let (flags, tenants): (&[u8], &[u16]) = (&recording.flags, &recording.tenants);
        let bytes: &[u32] = &recording.bytes;
        let tenant_at = |position: usize| TenantId(tenants.get(position).copied().unwrap_or(0));
        let at_of = |position: usize| (tenant_at(position), BlockId(ids[position]));
        for start in range.clone().step_by(STRIDE) {
            let end = (start + STRIDE).min(range.end);
            for position in end..(end + STRIDE).min(range.end) {
                let (tenant, block) = at_of(position);
                self.engine.prefetch(tenant, block);
            }
            for (position, &access_flags) in (start..).zip(&flags[start..end]) {
                if OBSERVES && position == recording.start_of(request) {
                    self.report_request(recording, request, recording.times_ns()[request]);
                    request += 1;
                }
                let (tenant, block) = at_of(position);
                let bytes = if BYTES { bytes[position] } else { 0 };
                self.step::<BYTES>(block, tenant, access_flags, futures.at(position), bytes);
                if BYTES && access_flags & CUT_OFF != 0 {
                    self.count_cut_off(recording, position);
                }
            }
        }
    }

    /// Counts an access of a request that goes past the cache.
    #[cold]
    fn count_cut_off(&mut self, recording: &Recording, position: usize) {
        let bytes = recording.bytes.get(position).copied().unwrap_or_default();
        let ends = recording.flags[position] & LAST != 0;
        self.engine.count_cut_off(recording.tenant_at(position), u64::from(bytes), ends);
    }

    /// One access or trim of the loop for any recording.
    #[inline(always)]
    fn step<const BYTES: bool>(
        &mut self,
        block: BlockId,
        tenant: TenantId,
        flags: u8,
        future: Future,
        bytes: u32,
    ) {
        if flags & TRIM != 0 {
            let (cached, _) = self.engine.discard(tenant, block);
            if let Some(observer) = self.observer.as_mut().filter(|_| cached) {
                observer.left(self.engine.pool_of(tenant), block);
            }
            return;
        }
        let write = flags & WRITE != 0;
        let access = BlockAccess { block, tenant, write, future };
        let outcome = match BYTES && flags & CUT_OFF != 0 {
            true => self.engine.pass(access),
            false => {
                let observer = &mut self.observer;
                self.engine.make_room(&access, &mut |pool, block, _| {
                    observer.iter_mut().for_each(|observer| observer.left(pool, block));
                });
                self.engine.access(access)
            }
        };
        if let Some(observer) = &mut self.observer {
            report_outcome(observer.as_mut(), self.engine.pool_of(tenant), block, write, outcome);
        }
        let hit = outcome.verdict == Verdict::Hit;
        if BYTES {
            let bytes = u64::from(bytes);
            self.engine.count_bytes(tenant, write, bytes, if hit { bytes } else { 0 });
        }
        self.all_hit &= hit;
        if flags & LAST != 0 {
            self.engine.count_request(tenant, self.all_hit);
            self.all_hit = true;
            self.background_ops(tenant);
        }
    }

    /// Carries out the background operations of a tenant's policy.
    #[inline(always)]
    fn background_ops(&mut self, tenant: TenantId) {
        if !P::has_regions_or_background_ops() {
            return;
        }
        let pool = self.engine.pool_of(tenant);
        while let Some((op, _)) = self.engine.background_op(pool) {
            if let (BackgroundOp::Demote(block), Some(observer)) = (op, &mut self.observer) {
                observer.left(pool, block);
            }
        }
    }

    /// The loop for one tenant whose every request reads one block.
    fn replay_plain<const BYTES: bool>(
        &mut self,
        recording: &Recording,
        range: Range<usize>,
        futures: FutureSlice<'_>,
    ) {
        let (tenant, futures) = (TenantId(0), futures.range(range.clone()));
        let ids = &recording.ids[range.clone()];
        let bytes: &[u32] = if BYTES { &recording.bytes[range] } else { &[] };
        let (mut all_bytes, mut hit_bytes) = (0, 0);
        for (chunk, start) in ids.chunks(STRIDE).zip((0..).step_by(STRIDE)) {
            let ahead = (start + STRIDE).min(ids.len())..(start + 2 * STRIDE).min(ids.len());
            for id in &ids[ahead] {
                self.engine.prefetch(tenant, BlockId(*id));
            }
            for (offset, id) in chunk.iter().enumerate() {
                let future = futures.at(start + offset);
                let access = BlockAccess { block: BlockId(*id), tenant, write: false, future };
                let hit = self.engine.access(access).verdict == Verdict::Hit;
                if BYTES {
                    let bytes = u64::from(bytes[start + offset]);
                    all_bytes += bytes;
                    hit_bytes += if hit { bytes } else { 0 };
                }
                self.engine.count_request(tenant, hit);
                self.background_ops(tenant);
            }
        }
        if BYTES {
            self.engine.count_bytes(tenant, false, all_bytes, hit_bytes);
        }
    }
}

impl<P: Policy> Lane for EngineLane<P> {
    fn replay(&mut self, recording: &Recording, range: Range<usize>, futures: FutureSlice<'_>) {
        let plain = recording.plain && recording.tenants.is_empty() && self.observer.is_none();
        let observes = self.observes_requests && recording.has_requests();
        match (observes, plain, !recording.bytes.is_empty()) {
            (true, _, true) => self.replay_any::<true, true>(recording, range, futures),
            (true, _, false) => self.replay_any::<true, false>(recording, range, futures),
            (false, true, true) => self.replay_plain::<true>(recording, range, futures),
            (false, true, false) => self.replay_plain::<false>(recording, range, futures),
            (false, false, true) => self.replay_any::<false, true>(recording, range, futures),
            (false, false, false) => self.replay_any::<false, false>(recording, range, futures),
        }
    }

    fn end_interval(&mut self, signals: &Signals) {
        if let Some(control) = &mut self.control {
            let observer = &mut self.observer;
            divide(control, &mut self.engine, signals, &mut |pool, block, _| {
                if let Some(observer) = observer {
                    observer.left(pool, block);
                }
            });
        }
    }

    fn end_window(&mut self, window: u32, time_ns: u64) {
        let rows = window_rows(&self.engine, &mut self.window_start, window, time_ns);
        self.rows.extend(rows);
    }

    fn end_warmup(&mut self) {
        let tenants = (0..self.before.len()).map(|tenant| TenantId(tenant as u16));
        self.before = tenants.map(|tenant| *self.engine.counts(tenant)).collect();
        self.engine.begin_causes();
    }

    fn finish(&mut self) -> LaneResult {
        if let Some(observer) = &mut self.observer {
            observer.finish();
        }
        let rows = std::mem::take(&mut self.rows);
        let (tenants, control) = (self.before.len(), self.control.as_ref());
        let mut found = LaneResult::new(&self.engine, tenants, rows, control).since(&self.before);
        if self.even_bytes > 0 {
            let even = |counts: &mut Counts| *counts = counts.with_even_bytes(self.even_bytes);
            found.counts.iter_mut().for_each(even);
        }
        found
    }
}

/// Whose accesses a lane counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of all tenants, as one stream.
    All,
    /// One tenant's.
    Tenant(u16),
}

impl Whose {
    #[inline(always)]
    fn counts(self, recording: &Recording, position: usize) -> bool {
        match self {
            Whose::All => true,
            Whose::Tenant(tenant) => recording.tenants.get(position).is_none_or(|t| *t == tenant),
        }
    }

    /// Distinct blocks of the stream.
    pub fn distinct_blocks(self, recording: &Recording) -> u32 {
        match self {
            Whose::All => recording.distinct,
            Whose::Tenant(tenant) => recording.totals[usize::from(tenant)].distinct_blocks,
        }
    }
}

/// A measurement fed by a replay.
pub struct CurveLane {
    set: CurveSet,
    whose: Whose,
    by_window: bool,
    curves: Vec<Curves>,
}

impl CurveLane {
    /// A lane around `set`, which measures one stream (one announced tenant); with `by_window` it
    /// yields the curves of each window, else those of the whole recording.
    pub fn new(set: CurveSet, whose: Whose, by_window: bool) -> CurveLane {
        CurveLane { set, whose, by_window, curves: Vec::new() }
    }
}

impl Lane for CurveLane {
    fn replay(&mut self, recording: &Recording, range: Range<usize>, _: FutureSlice<'_>) {
        let whose = self.whose;
        // Slices first: a column looks up where it lies at each use.
        let ids = recording.ids_for(whose == Whose::All);
        let (dense, all_flags): (&[u32], &[u8]) = (&recording.ids, &recording.flags);
        let block_at = |position: usize| BlockName::Recorded {
            id: BlockId(ids[position]),
            keys: &recording.keys,
            index: dense[position],
        };
        let mut warm = 0;
        for start in range.clone().step_by(STRIDE) {
            let end = (start + STRIDE).min(range.end);
            for (position, id) in (end..).zip(&ids[end..(end + STRIDE).min(range.end)]) {
                if whose.counts(recording, position) {
                    warm ^= self.set.prefetch(ONLY, BlockId(*id));
                }
            }
            for position in (start..end).filter(|position| whose.counts(recording, *position)) {
                let (block, flags) = (block_at(position), all_flags[position]);
                if flags & TRIM != 0 {
                    self.set.remove(ONLY, block);
                } else {
                    self.set.access(ONLY, block, flags & WRITE != 0);
                }
            }
        }
        std::hint::black_box(warm);
    }

    fn end_interval(&mut self, _: &Signals) {}

    fn end_window(&mut self, _: u32, _: u64) {
        if self.by_window {
            self.curves.extend(self.set.end_window());
        }
    }

    fn finish(&mut self) -> LaneResult {
        if !self.by_window {
            self.curves.extend(self.set.end_window());
        }
        LaneResult { curves: std::mem::take(&mut self.curves), ..LaneResult::default() }
    }
}

/// The receiver. Ids are those of the pool: dense over all tenants when it is shared.
pub trait CacheObserver: Send {
    /// A cached block is read.
    fn read(&mut self, pool: usize, block: BlockId);
    /// A block is written into the cache: filled after a read, brought in by a write or updated.
    fn write(&mut self, pool: usize, block: BlockId);
    /// A block is not cached any more: evicted, invalidated or trimmed.
    fn left(&mut self, pool: usize, block: BlockId);
    /// The replay has ended.
    fn finish(&mut self);
}

/// Reports what an access did to the cache; out of line, so that loops without an observer stay
/// small.
#[inline(never)]
fn report_outcome(
    observer: &mut dyn CacheObserver,
    pool: usize,
    block: BlockId,
    write: bool,
    outcome: AccessOutcome,
) {
    match outcome.verdict {
        Verdict::Hit if write => observer.write(pool, block),
        Verdict::Hit => observer.read(pool, block),
        Verdict::Admit { evicted } => {
            if let Some(evicted) = evicted {
                observer.left(pool, evicted);
            }
            observer.write(pool, block);
        }
        Verdict::Bypass if outcome.invalidated => observer.left(pool, block),
        Verdict::Bypass => {}
    }
}
