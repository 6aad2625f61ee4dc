//! A machine with its cache as a system of the event loop: each request is carried out as the cache
//! decides, with read-ahead and write-back of blocks that stay.

use super::latency::TimedAnswer;
use super::machine::{InFlight, Machine, WriteBack};
use super::read_ahead::ReadStreams;
use crate::event_loop::times::Measures;
use crate::event_loop::{self, Answered, Boundary, Replay, System, Times, request_of};
use crate::lane::LaneResult;
use crate::recording::RecordError;
use crate::series::{Row, window_rows};
use cachewright_cache::Plan;
use cachewright_control::{CacheDecider, ChannelTenancy, Decider, Presence, SignalNeeds, Signals};
use cachewright_policy::{FutureSlice, Policy};
use cachewright_steps::DirtyBlock;
use cachewright_types::measure::Counts;
use cachewright_types::{Op, Request, TenantId, block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::collections::VecDeque;

/// Entries that the queue of dirty blocks may have beyond two per dirty block.
const SPARE_ENTRIES: usize = 4096;

/// The state of one replay on a machine.
struct MachineReplay<'a> {
    replay: &'a Replay<'a>,
    machine: Machine,
    decider: Box<dyn ReplayDecider>,
    measures: Measures,
    /// What each tenant reads ahead; empty where nothing is.
    streams: Vec<ReadStreams>,
    /// Blocks that writes have made dirty, the oldest first: an entry per write, so that a block
    /// may have several, and be clean or gone by now.
    dirty: VecDeque<DirtyBlock>,
    /// Blocks whose entries are found; kept for its memory.
    found: HashSet<(TenantId, u64), FixedState>,
    /// The watermark is at work.
    draining: bool,
    plan: Plan,
    /// Counters at the end of the warm-up.
    before: Vec<Counts>,
}

/// Replays to the end; `needs` are the signals of the partitioner; `progress` is given the
/// requests sent and stops the replay by returning false.
pub fn run_machine(
    replay: &Replay<'_>,
    mut machine: Machine,
    decider: Box<dyn ReplayDecider>,
    needs: SignalNeeds,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Times, RecordError> {
    let tenants = replay.recording.totals.len();
    let streams = ReadStreams::for_machine(machine.settings(), machine.block_shift());
    let signals = needs.meter(tenants, replay.interval_ns);
    let measures = Measures::new(
        signals,
        machine.block_shift(),
        streams.is_some(),
        replay.extents,
        Times::new(replay),
    );
    machine.set_quotas(&decider.quotas());
    let system = MachineReplay {
        replay,
        streams: streams.map(|streams| vec![streams; tenants]).unwrap_or_default(),
        dirty: VecDeque::new(),
        found: HashSet::default(),
        draining: false,
        measures,
        plan: Plan::default(),
        before: vec![Counts::default(); tenants],
        machine,
        decider,
    };
    event_loop::run(replay, system, progress)
}

impl System for MachineReplay<'_> {
    type Found = Times;

    fn next_due(&self) -> Option<u64> {
        self.machine.next_due_ns()
    }

    fn advance(&mut self, due_ns: u64, _: u64) -> u64 {
        self.machine.advance(due_ns);
        due_ns
    }

    fn submit(&mut self, tag: u64, now_ns: u64) {
        let index = request_of(tag);
        let request = self.replay.requests.get(index);
        let (recording, shift) = (self.replay.recording, self.machine.block_shift());
        let positions = self.replay.requests.accesses(index, recording, shift);
        self.measures.arrived(self.replay, index, &request, now_ns);
        let accesses = positions.len() as u64;
        let cut_off = self.replay.requests.cut_off(index, recording);
        let futures = self.replay.futures.range(positions);
        let sums = self.measures.times.sums.is_some();
        let before = sums.then(|| self.decider.hits(request.tenant));
        match cut_off {
            true => self.decider.on_cut_off(&request, futures, &mut self.plan),
            false => self.decider.on_request(&request, futures, &mut self.plan),
        }
        self.machine.request(index as u64, &request, &self.plan, now_ns);
        self.count_in_flight(request.tenant, now_ns);
        if let Some((sums, before)) = self.measures.times.sums.as_mut().zip(before) {
            sums.on_request(&request, now_ns, accesses);
            sums.hit(now_ns, self.decider.hits(request.tenant).saturating_sub(before));
        }
        match request.op {
            // What goes past the cache is not brought in ahead of its use either.
            Op::Read if cut_off => {}
            Op::Read => self.read_ahead(&request),
            Op::Write => self.note_dirty(),
            Op::Trim | Op::Flush => return,
        }
        self.decider.background_ops(request.tenant, now_ns, &mut self.plan);
        if !self.plan.moves.is_empty() {
            self.machine.background(request.tenant, &self.plan);
        }
    }

    fn prefetch(&mut self, upcoming: &[u32]) {
        for index in upcoming {
            self.decider.prefetch(&self.replay.requests.get(*index as usize));
        }
    }

    fn on_boundary(&mut self, boundary: Boundary, now_ns: u64) {
        self.machine.wait_until(now_ns);
        match boundary {
            Boundary::Warmup => {
                self.before = self.decider.counts();
                self.decider.end_warmup();
            }
            Boundary::Interval => {
                let signals = self.measures.end_interval();
                self.decider.end_interval(&signals, &mut self.plan);
                self.machine.background(TenantId(0), &self.plan);
                self.machine.set_quotas(&self.decider.quotas());
            }
            Boundary::Window { number, time_ns } => {
                self.decider.end_window(number, time_ns);
                self.note_region_blocks(time_ns);
            }
            Boundary::Tenants => self.redivide(now_ns),
        }
    }

    fn end_event(&mut self, answers: &mut Vec<Answered>) {
        for answer in self.machine.drain_answers() {
            let request = self.replay.requests.get(answer.tag as usize);
            self.measures.answered(&request, &answer, answer.latency.behind_cache_ns());
            let TimedAnswer { tag, tenant, finish_ns, .. } = answer;
            answers.push(Answered { request: tag as u32, tenant, finish_ns });
        }
        self.clean();
    }

    fn finish(mut self, now_ns: u64) -> Times {
        self.machine.wait_until(now_ns);
        let mut times = self.measures.times;
        times.end_ns = now_ns;
        let regions = self.machine.region_blocks();
        times.channels.regions.extend(regions.map(|regions| (now_ns, regions)));
        for (sum, found) in times.channels.migrated.iter_mut().zip(self.machine.migrated()) {
            *sum = *found;
        }
        times.devices = self.machine.uses();
        times.channels.groups = self.machine.groups().to_vec();
        if let Some(tenancy) = self.decider.tenancy() {
            times.channels.tenancy = tenancy.take_events();
            times.channels.layout = Some(tenancy.map().clone());
        }
        times.cache = self.decider.finish().since(&self.before);
        debug_assert_eq!(self.decider.audit(), Ok(()));
        debug_assert_eq!(self.machine.audit(self.decider.held_blocks(), true), Ok(()));
        debug_assert_eq!(times.audit(), Ok(()));
        times
    }

    fn presence(&mut self) -> Option<&mut Presence> {
        self.decider.tenancy().map(ChannelTenancy::presence_mut)
    }
}

impl MachineReplay<'_> {
    /// Divides the cache and lays its channels out for those who are there now.
    fn redivide(&mut self, now_ns: u64) {
        self.decider.redivide(now_ns, &mut self.plan);
        self.machine.background(TenantId(0), &self.plan);
        if let Some(tenancy) = self.decider.tenancy() {
            self.machine.apply_layout(tenancy.map());
        }
        self.machine.set_quotas(&self.decider.quotas());
    }

    /// Counts the blocks of the request just sent that were hit while they were being read.
    fn count_in_flight(&mut self, tenant: TenantId, now_ns: u64) {
        let blocks = self.machine.in_flight_blocks();
        if blocks > 0 && self.machine.settings().in_flight == InFlight::Miss {
            self.decider.recount(tenant, blocks, self.plan.all_hit);
        }
        if now_ns >= self.replay.warmup_ns {
            self.measures.times.blocks.in_flight[tenant.index()] += blocks;
        }
    }

    fn read_ahead(&mut self, request: &Request) {
        let tenant = request.tenant;
        let Some(streams) = self.streams.get_mut(tenant.index()) else { return };
        let blocks = block_numbers(request.offset.0, request.length.0, self.machine.block_shift());
        let end = self.replay.extents[tenant.index()].end >> self.machine.block_shift();
        let ahead = streams.read(blocks.start, blocks.end);
        let ahead = ahead.start..ahead.end.min(end);
        self.measures.read_ahead(tenant, ahead.clone());
        self.plan.moves.clear();
        for number in ahead {
            let brought = self.decider.bring_in(tenant, number, &mut self.plan);
            self.measures.times.blocks.read_ahead += u64::from(brought);
        }
        if !self.plan.moves.is_empty() {
            self.machine.background(tenant, &self.plan);
        }
    }

    /// Notes the blocks a write has made dirty, for cleaning.
    fn note_dirty(&mut self) {
        if self.machine.settings().write_back == WriteBack::OnEviction {
            return;
        }
        self.machine.note_served(&self.plan, &mut self.dirty);
        let spare = self.dirty.len().saturating_sub(SPARE_ENTRIES);
        if spare > 0 && spare as u64 > 2 * self.decider.dirty_blocks() {
            self.drop_stale_entries();
        }
    }

    /// Keeps the oldest entry of each dirty block alone. While the dirty share stays below the mark
    /// nothing is cleaned, and the queue would grow with the trace. At least half of it goes.
    fn drop_stale_entries(&mut self) {
        let MachineReplay { machine, decider, dirty, found, .. } = self;
        found.clear();
        dirty.retain(|block| {
            let key = (block.tenant, block.number);
            machine.stays(block) && decider.is_dirty(key.0, key.1) && found.insert(key)
        });
    }

    /// Writes dirty blocks back that stay, as many at once as may be.
    fn clean(&mut self) {
        let settings = self.machine.settings();
        let capacity = f64::from(self.replay.capacity_blocks);
        let (low, high) = (capacity * settings.dirty_low, capacity * settings.dirty_high);
        let (depth, kind) = (settings.clean_depth, settings.write_back);
        if kind == WriteBack::OnEviction {
            return;
        }
        while self.machine.cleaning() < depth && !self.dirty.is_empty() {
            let dirty = self.decider.dirty_blocks() as f64;
            self.draining = dirty > if self.draining { low } else { high };
            if kind == WriteBack::Watermark && !self.draining {
                return;
            }
            let Some(block) = self.dirty.pop_front() else { return };
            if self.machine.stays(&block) && self.decider.clean(block.tenant, block.number) {
                self.measures.times.blocks.cleaned += 1;
                self.machine.clean(&block);
            }
        }
    }

    /// Notes where blocks lie.
    fn note_region_blocks(&mut self, time_ns: u64) {
        let regions = self.machine.region_blocks();
        self.measures.times.channels.regions.extend(regions.map(|regions| (time_ns, regions)));
    }
}

/// A decider whose replay is reported.
pub trait ReplayDecider: Decider {
    /// The warm-up has ended: causes of misses count from here on.
    fn end_warmup(&mut self) {}
    /// A window of the time series has ended.
    fn end_window(&mut self, window: u32, time_ns: u64);
    /// The workload has ended.
    fn finish(&mut self) -> LaneResult;
}

/// A cache under one policy, with its rows.
pub struct ReplayCache<P> {
    decider: CacheDecider<P>,
    window_start: Vec<Counts>,
    rows: Vec<Row>,
}

impl<P: Policy> ReplayCache<P> {
    /// Nothing reported yet.
    pub fn new(decider: CacheDecider<P>) -> ReplayCache<P> {
        let window_start = vec![Counts::default(); decider.tenants()];
        ReplayCache { decider, window_start, rows: Vec::new() }
    }
}

impl<P: Policy> ReplayDecider for ReplayCache<P> {
    fn end_warmup(&mut self) {
        self.decider.begin_causes();
    }

    fn end_window(&mut self, window: u32, time_ns: u64) {
        let rows = window_rows(self.decider.engine(), &mut self.window_start, window, time_ns);
        self.rows.extend(rows);
    }

    fn finish(&mut self) -> LaneResult {
        let rows = std::mem::take(&mut self.rows);
        let (engine, control) = (self.decider.engine(), self.decider.control());
        LaneResult::new(engine, self.decider.tenants(), rows, control)
    }
}

impl<P: Policy> Decider for ReplayCache<P> {
    fn on_request(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.decider.on_request(request, futures, plan);
    }

    fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.decider.on_cut_off(request, futures, plan);
    }

    fn prefetch(&self, request: &Request) {
        self.decider.prefetch(request);
    }

    fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        self.decider.bring_in(tenant, number, plan)
    }

    fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        self.decider.clean(tenant, number)
    }

    fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        self.decider.is_dirty(tenant, number)
    }

    fn background_ops(&mut self, tenant: TenantId, now_ns: u64, plan: &mut Plan) {
        self.decider.background_ops(tenant, now_ns, plan);
    }

    fn end_interval(&mut self, signals: &Signals, plan: &mut Plan) {
        self.decider.end_interval(signals, plan);
    }

    fn tenancy(&mut self) -> Option<&mut ChannelTenancy> {
        self.decider.tenancy()
    }

    fn redivide(&mut self, now_ns: u64, plan: &mut Plan) {
        self.decider.redivide(now_ns, plan);
    }

    fn quotas(&self) -> Vec<u32> {
        self.decider.quotas()
    }

    fn counts(&self) -> Vec<Counts> {
        self.decider.counts()
    }

    fn hits(&self, tenant: TenantId) -> u64 {
        self.decider.hits(tenant)
    }

    fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.decider.recount(tenant, blocks, all_hit);
    }

    fn dirty_blocks(&self) -> u64 {
        self.decider.dirty_blocks()
    }

    fn held_blocks(&self) -> u64 {
        self.decider.held_blocks()
    }

    fn audit(&self) -> Result<(), String> {
        self.decider.audit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::Loop;
    use crate::machines::machine::{MachineParts, MachineSettings};
    use crate::machines::requests::Requests;
    use crate::machines::slots::Slots;
    use crate::recording::{Recording, TenantTotals};
    use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
    use cachewright_device::AnyDevice;
    use cachewright_device::served::{FixedLatency, FixedSettings};
    use cachewright_policy::Registered;
    use cachewright_policy::lru::Lru;
    use cachewright_types::declare::NoSettings;
    use cachewright_types::{Bytes, Nanos, Seed};

    const SHIFT: u32 = 12;

    /// Writes blocks of one tenant, each when the write before it is done, under a cache of so many
    /// blocks; `check` looks at the replay after each write.
    fn write_each(
        blocks: impl Iterator<Item = u64>,
        write_back: WriteBack,
        mode: WriteMode,
        capacity: u32,
        mut check: impl FnMut(&MachineReplay<'_>),
    ) {
        let device = || {
            let settings = FixedSettings { read: Nanos(10), ..FixedSettings::default() };
            Box::new(FixedLatency::new(&settings).unwrap()) as AnyDevice
        };
        let machine = Machine::new(MachineParts {
            settings: MachineSettings { write_back, ..MachineSettings::default() },
            block_shift: SHIFT,
            slots: Slots::plain(capacity + 4),
            devices: vec![device(), device()],
            backing_of: vec![1],
        })
        .unwrap();
        let lru = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(1));
        let engine = Engine::new(1, &Quotas::Shared(capacity), mode, lru);
        let decider = CacheDecider::new(Cache::new(engine, SHIFT), 1, None);
        let recording = Recording { totals: vec![TenantTotals::default()], ..Recording::default() };
        let requests = Requests::default();
        let replay = Replay {
            recording: &recording,
            requests: &requests,
            extents: &[],
            futures: FutureSlice::None,
            pace: Loop::Open,
            only: None,
            interval_ns: 0,
            windows: 0,
            warmup_ns: 0,
            throughput_ns: 0,
            clock: None,
            capacity_blocks: capacity,
        };
        let measures = Measures::new(None, SHIFT, false, &[], Times::new(&replay));
        let mut system = MachineReplay {
            replay: &replay,
            machine,
            decider: Box::new(ReplayCache::new(decider)),
            measures,
            streams: Vec::new(),
            dirty: VecDeque::new(),
            found: HashSet::default(),
            draining: false,
            plan: Plan::default(),
            before: Vec::new(),
        };
        for block in blocks {
            let request = Request {
                time: Nanos(0),
                offset: Bytes(block << SHIFT),
                length: Bytes(1 << SHIFT),
                op: Op::Write,
                tenant: TenantId(0),
            };
            system.decider.on_request(&request, FutureSlice::None, &mut system.plan);
            let now_ns = system.machine.now_ns();
            system.machine.request(0, &request, &system.plan, now_ns);
            system.note_dirty();
            while let Some(due_ns) = system.machine.next_due_ns() {
                system.machine.advance(due_ns);
                system.machine.drain_answers().for_each(drop);
                system.clean();
            }
            check(&system);
        }
    }

    /// The entries of the queue at most, and the most blocks that were dirty.
    fn most(
        blocks: impl Iterator<Item = u64>,
        write_back: WriteBack,
        mode: WriteMode,
        capacity: u32,
    ) -> (usize, u64) {
        let mut most = (0, 0);
        write_each(blocks, write_back, mode, capacity, |system| {
            let dirty = system.decider.dirty_blocks();
            assert!(system.dirty.len() as u64 <= 2 * dirty + SPARE_ENTRIES as u64);
            most = (most.0.max(system.dirty.len()), most.1.max(dirty));
        });
        most
    }

    #[test]
    fn the_queue_of_dirty_blocks_does_not_grow_with_the_trace() {
        let writes = 5 * SPARE_ENTRIES as u64;
        // Eight of 100 blocks are dirty, below the mark of 20.
        let few = || (0..writes).map(|write| write % 8);
        let (entries, dirty) = most(few(), WriteBack::Watermark, WriteMode::WriteBack, 100);
        assert_eq!((entries > SPARE_ENTRIES, dirty), (true, 8));
        // Nothing is dirty where writes go through.
        most(few(), WriteBack::Watermark, WriteMode::WriteThrough, 100);
        // Blocks come and go, and are cleaned.
        most(
            (0..writes).map(|write| write * 7 % 150),
            WriteBack::Watermark,
            WriteMode::WriteBack,
            100,
        );
        most(few(), WriteBack::Eager, WriteMode::WriteBack, 100);
    }

    #[test]
    fn the_oldest_dirty_block_is_cleaned_first_also_when_entries_were_dropped() {
        // Block 9 is dirty first, then 0 to 7 are written again and again.
        let again = (0..2 * SPARE_ENTRIES as u64).map(|write| write % 8);
        let blocks = std::iter::once(9).chain(again);
        let mut oldest = Vec::new();
        write_each(blocks, WriteBack::Watermark, WriteMode::WriteBack, 100, |system| {
            oldest = system.dirty.iter().take(9).map(|block| block.number).collect();
        });
        assert_eq!(oldest, [9, 0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
