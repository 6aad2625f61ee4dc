//! Timed replay: requests go to a cache and a machine at their time, or when the tenant may.
//!
//! For: the loop of events. Must never know: policies, device models, stack files. Units:
//! nanoseconds. At one time devices come before intervals, intervals before windows, windows before
//! requests: so an open loop decides exactly as the replay without devices does.

use super::borders::{Border, Borders};
use super::decide::Decider;
use super::machine::{Answer, Machine};
use super::meter::Meter;
use super::read_ahead::Streams;
use super::requests::Requests;
use super::settings::{InFlight, WriteBack};
use super::source::{Loop, Source, request_of};
use super::sums::StepClock;
use super::tenancy::Tenancy;
use super::times::Times;
use crate::recording::{RecordError, Recording};
use crate::signals::Wanted;
use cachewright_cache::Plan;
use cachewright_measure::Counts;
use cachewright_policy::FutureSlice;
use cachewright_types::{Op, Request, TenantId};
use std::collections::VecDeque;
use std::ops::Range;

/// Requests between two calls of the progress function.
pub(super) const PROGRESS_EVERY: u64 = 1 << 14;

/// What is replayed, and how.
pub struct Replay<'a> {
    /// The workload by blocks.
    pub recording: &'a Recording,
    /// The workload by requests, placed.
    pub requests: &'a Requests,
    /// Bytes of each tenant on its backing device.
    pub extents: &'a [Range<u64>],
    /// The future of each access, for policies that need it.
    pub futures: FutureSlice<'a>,
    /// When requests are sent.
    pub pace: Loop,
    /// Only this tenant's requests.
    pub only: Option<TenantId>,
    /// Partition interval; 0 for none.
    pub interval_ns: u64,
    /// Windows of the cache's time series.
    pub windows: u32,
    /// What arrives before is carried out and counted in time series only.
    pub warmup_ns: u64,
    /// Width of the windows in which answers are counted by tenant; 0 for none.
    pub throughput_ns: u64,
    /// Sums responses and hits by the step in which requests arrive; open loops only.
    pub clock: Option<StepClock>,
    /// Blocks the cache may hold.
    pub capacity_blocks: u32,
}

/// The state of one timed replay.
struct Drive<'a> {
    replay: &'a Replay<'a>,
    machine: Machine,
    decider: Box<dyn Decider>,
    meter: Option<Meter>,
    /// What each tenant reads ahead; empty where nothing is.
    streams: Vec<Streams>,
    /// Dirty blocks that stay, the oldest first: residence, its generation, tenant, number.
    dirty: VecDeque<(u32, u32, TenantId, u64)>,
    /// The watermark is at work.
    draining: bool,
    times: Times,
    plan: Plan,
    sent: u64,
    total: u64,
    borders: Borders,
    /// Counters at the end of the warm-up.
    before: Vec<Counts>,
    /// Whether tenants' coming and going matters.
    follows: bool,
}

/// Replays to the end; `wanted` is what the partitioner is told, `progress` is told the requests
/// sent and stops the replay by returning false.
pub fn run(
    replay: &Replay<'_>,
    mut machine: Machine,
    mut decider: Box<dyn Decider>,
    wanted: Wanted,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Times, RecordError> {
    let tenants = replay.recording.totals.len();
    let settings = &machine.settings;
    let streams = Streams::of(settings, machine.block_shift);
    let signals = wanted.meter(tenants, replay.interval_ns);
    let meter = signals.map(|one| Meter::new(one, machine.block_shift, streams.is_some()));
    let source = Source::new(replay, tenants);
    machine.allow(&decider.quotas());
    let follows = decider.tenancy().is_some();
    if let Some(tenancy) = decider.tenancy().filter(|_| replay.pace == Loop::Open) {
        tenancy.will_send(&replay.requests.by_tenant(tenants));
    }
    let drive = Drive {
        replay,
        streams: streams.map(|one| vec![one; tenants]).unwrap_or_default(),
        dirty: VecDeque::new(),
        draining: false,
        times: Times::new(replay),
        plan: Plan::default(),
        sent: 0,
        total: source.total(),
        borders: Borders::new(replay),
        before: vec![Counts::default(); tenants],
        follows,
        machine,
        decider,
        meter,
    };
    drive.run(source, progress)
}

impl Drive<'_> {
    fn run(
        mut self,
        mut source: Source,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Times, RecordError> {
        let mut answers = Vec::new();
        loop {
            let (due, next) = (self.machine.next_due_ns(), source.next_ns());
            match (due, next) {
                (None, None) => return Ok(self.finish()),
                (Some(due), next) if next.is_none_or(|next| due <= next) => {
                    self.machine.advance(due);
                }
                (_, Some(now)) => {
                    self.machine.wait_until(now);
                    self.end_until(now, progress)?;
                    self.come(now);
                    let next = source.take();
                    self.total = source.total();
                    if let Some(tag) = next {
                        self.send(request_of(tag), now);
                        if self.sent.is_multiple_of(PROGRESS_EVERY) && !progress(self.sent) {
                            return Err(RecordError::Cancelled);
                        }
                    }
                    if self.replay.pace == Loop::Open {
                        source.schedule_open(self.replay.requests);
                    }
                }
                (Some(_), None) => {}
            }
            self.machine.take_answers(&mut answers);
            for answer in &answers {
                self.answer(answer, &mut source);
            }
            self.clean();
            self.go(&source);
        }
    }

    /// Who comes and goes, where that matters.
    fn followed(&mut self) -> Option<&mut Tenancy> {
        if self.follows { self.decider.tenancy() } else { None }
    }

    /// Whoever begins until now comes.
    fn come(&mut self, now_ns: u64) {
        if self.followed().is_some_and(|tenancy| tenancy.come(now_ns)) {
            self.resettle(now_ns);
        }
    }

    /// Whoever is done leaves.
    fn go(&mut self, source: &Source) {
        let now_ns = self.machine.now_ns();
        let done = |tenant: usize| source.is_done(&self.replay.pace, tenant, now_ns);
        if self.follows && self.decider.tenancy().is_some_and(|tenancy| tenancy.go(done)) {
            self.resettle(now_ns);
        }
    }

    /// Divides the cache and lays its channels out for those who are there now.
    fn resettle(&mut self, now_ns: u64) {
        self.decider.resettle(now_ns, &mut self.plan);
        self.machine.background(TenantId(0), &self.plan);
        if let Some(tenancy) = self.decider.tenancy() {
            self.machine.relay(tenancy.map());
        }
        self.machine.allow(&self.decider.quotas());
    }

    /// Sends a request.
    fn send(&mut self, at: usize, now_ns: u64) {
        let request = self.replay.requests.get(at);
        let (recording, shift) = (self.replay.recording, self.machine.block_shift);
        let positions = self.replay.requests.accesses(at, recording, shift);
        if let Some(meter) = &mut self.meter {
            meter.request((recording, self.replay.requests), at, now_ns);
        }
        self.times.arrived(&request, now_ns);
        if let Some(tenancy) = self.followed() {
            tenancy.sent(request.tenant);
        }
        let accesses = positions.len() as u64;
        let futures = self.replay.futures.range(positions);
        let before = self.times.sums.is_some().then(|| self.decider.hits(request.tenant));
        self.decider.on(&request, futures, &mut self.plan);
        self.machine.request(at as u64, &request, &self.plan, now_ns);
        self.count_in_flight(request.tenant, now_ns);
        if let Some((sums, before)) = self.times.sums.as_mut().zip(before) {
            sums.asked(&request, now_ns, accesses);
            sums.hit(now_ns, self.decider.hits(request.tenant).saturating_sub(before));
        }
        self.sent += 1;
        match request.op {
            Op::Read => self.read_ahead(&request),
            Op::Write => self.note_dirty(),
            Op::Trim | Op::Flush => return,
        }
        self.decider.chores(request.tenant, now_ns, &mut self.plan);
        if !self.plan.moves.is_empty() {
            self.machine.background(request.tenant, &self.plan);
        }
    }

    /// Counts the blocks of the request just sent that were hit while they were being read.
    fn count_in_flight(&mut self, tenant: TenantId, now_ns: u64) {
        let blocks = self.machine.in_flight;
        if blocks > 0 && self.machine.settings.in_flight == InFlight::Miss {
            self.decider.recount(tenant, blocks, self.plan.all_hit);
        }
        if now_ns >= self.replay.warmup_ns {
            self.times.in_flight_blocks[tenant.index()] += blocks;
        }
    }

    fn read_ahead(&mut self, request: &Request) {
        let tenant = request.tenant;
        let Some(streams) = self.streams.get_mut(tenant.index()) else { return };
        let blocks =
            super::emit::numbers(request.offset.0, request.length.0, self.machine.block_shift);
        let end = self.replay.extents[tenant.index()].end >> self.machine.block_shift;
        let ahead = streams.read(blocks.start, blocks.end);
        let ahead = ahead.start..ahead.end.min(end);
        if let Some(meter) = &mut self.meter {
            meter.read_ahead(tenant, ahead.clone());
        }
        self.plan.moves.clear();
        for number in ahead {
            let brought = self.decider.bring_in(tenant, number, &mut self.plan);
            self.times.read_ahead_blocks += u64::from(brought);
        }
        if !self.plan.moves.is_empty() {
            self.machine.background(tenant, &self.plan);
        }
    }

    /// Notes the blocks a write has made dirty, for cleaning.
    fn note_dirty(&mut self) {
        if self.machine.settings.write_back != WriteBack::OnEviction {
            self.machine.served(&self.plan, &mut self.dirty);
        }
    }

    /// Writes dirty blocks back that stay, as many at once as may be.
    fn clean(&mut self) {
        let settings = &self.machine.settings;
        let capacity = f64::from(self.replay.capacity_blocks);
        let (low, high) = (capacity * settings.dirty_low, capacity * settings.dirty_high);
        let (depth, kind) = (settings.clean_depth, settings.write_back);
        if kind == WriteBack::OnEviction {
            return;
        }
        while self.machine.cleaning < depth && !self.dirty.is_empty() {
            let dirty = self.decider.dirty_blocks() as f64;
            self.draining = dirty > if self.draining { low } else { high };
            if kind == WriteBack::Watermark && !self.draining {
                return;
            }
            let Some((residence, generation, tenant, number)) = self.dirty.pop_front() else {
                return;
            };
            if self.machine.stays(residence, generation) && self.decider.clean(tenant, number) {
                self.times.cleaned_blocks += 1;
                self.machine.clean(residence, tenant, number);
            }
        }
    }

    fn answer(&mut self, answer: &Answer, source: &mut Source) {
        let request = self.replay.requests.get(answer.tag as usize);
        if let Some(meter) = &mut self.meter {
            meter.answered(request.op, answer, answer.path.behind_cache_ns());
        }
        self.times.answered(&request, answer);
        if let Some(tenancy) = self.followed() {
            tenancy.answered(answer.tenant);
        }
        source.answered(&self.replay.pace, self.replay.requests, answer);
    }

    /// Ends what ends until `now_ns`: the warm-up, intervals and windows. Errors: too many
    /// intervals, stopped.
    fn end_until(
        &mut self,
        now_ns: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), RecordError> {
        let sent = (self.sent, self.total);
        while let Some(border) = self.borders.next(self.replay, sent, now_ns) {
            self.end(border);
            if border == Border::Interval {
                self.borders.check(|| progress(self.sent))?;
            }
        }
        Ok(())
    }

    fn end(&mut self, border: Border) {
        match border {
            Border::Warmup => self.before = self.decider.counts(),
            Border::Interval => {
                let signals = self.meter.as_mut().map(Meter::end_interval);
                self.decider.end_interval(&signals.unwrap_or_default(), &mut self.plan);
                self.machine.background(TenantId(0), &self.plan);
                self.machine.allow(&self.decider.quotas());
            }
            Border::Window { number, time_ns } => {
                self.decider.end_window(number, time_ns);
                self.note_rooms(time_ns);
            }
        }
    }

    /// Notes where blocks lie.
    fn note_rooms(&mut self, time_ns: u64) {
        let rooms = self.machine.rooms();
        self.times.rooms.extend(rooms.map(|rooms| (time_ns, rooms)));
    }

    fn finish(mut self) -> Times {
        let now_ns = self.machine.now_ns();
        while let Some(border) = self.borders.last(self.replay, now_ns) {
            self.end(border);
        }
        self.times.end_ns = self.machine.now_ns();
        self.note_rooms(self.times.end_ns);
        for (sum, found) in self.times.migrated.iter_mut().zip(self.machine.migrated()) {
            *sum = *found;
        }
        self.times.devices = self.machine.uses();
        self.times.groups = self.machine.groups().to_vec();
        if let Some(tenancy) = self.decider.tenancy() {
            self.times.tenancy = tenancy.take_events();
            self.times.layout = Some(tenancy.map().clone());
        }
        self.times.cache = self.decider.finish().since(&self.before);
        debug_assert_eq!(self.decider.audit(), Ok(()));
        debug_assert_eq!(self.machine.audit(self.decider.held_blocks(), true), Ok(()));
        debug_assert_eq!(self.times.audit(), Ok(()));
        self.times
    }
}
