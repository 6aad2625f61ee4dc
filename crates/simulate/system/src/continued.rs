//! Open-loop replay that continues from a snapshot of what decided in a live server.
//!
//! Requests are decided one by one, as the server did: ids of blocks are those of its cache, and
//! times are those of its decision clock, which had come to an origin when the recording began.
//! Windows and the end of a warm-up are on the clock of the recording.

use crate::lane::{Continued, LaneResult};
use crate::recording::RecordError;
use crate::replay::Cuts;
use crate::series::{Row, window_rows};
use cachewright_cache::Plan;
use cachewright_control::{Division, RequestDecider};
use cachewright_policy::Policy;
use cachewright_trace::merge::{MergedRequests, WorkloadBatch};
use cachewright_trace::{DivisionRow, StateBegin};
use cachewright_types::measure::Counts;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};
use std::collections::VecDeque;

/// Requests read at a time.
const BATCH: usize = 1 << 13;

/// A cache that goes on where a snapshot of it was taken.
pub struct ContinuedReplay<P> {
    decider: RequestDecider<P>,
    /// Divisions of the server from then on, on its clock, where the partitioner cannot make them
    /// again.
    divisions: Option<VecDeque<DivisionRow>>,
    /// Where the server stood as its next recording began, if that is known.
    next: Option<StateBegin>,
    origin: Nanos,
    /// The number that the server gave to each tenant.
    numbers: Vec<TenantId>,
    plan: Plan,
    rows: Vec<Row>,
    /// Counters of each number, as those below.
    window_start: Vec<Counts>,
    /// Counters of what is not counted: at the snapshot, or at the end of the warm-up.
    before: Vec<Counts>,
}

impl<P: Policy> ContinuedReplay<P> {
    /// Goes on from `decider`, restored from a snapshot, with tenants that have these `numbers`
    /// there; it may have others, which send nothing. The recording's time 0 is `origin` on the
    /// decision clock.
    pub fn new(
        decider: RequestDecider<P>,
        numbers: Vec<TenantId>,
        origin: Nanos,
    ) -> ContinuedReplay<P> {
        let mut replay = ContinuedReplay {
            decider,
            divisions: None,
            next: None,
            origin,
            numbers,
            plan: Plan::default(),
            rows: Vec::new(),
            window_start: Vec::new(),
            before: Vec::new(),
        };
        replay.before = replay.counts();
        replay.window_start.clone_from(&replay.before);
        replay
    }

    /// Makes these divisions of the server, on its clock, instead of those of the partitioner.
    pub fn with_divisions(mut self, divisions: VecDeque<DivisionRow>) -> ContinuedReplay<P> {
        self.decider.division = None;
        self.divisions = Some(divisions);
        self
    }

    /// Compares what is decided by the end with where the server stood then, as its `next`
    /// recording began; a recording that ended before that is not compared.
    pub fn compared_with(mut self, next: Option<StateBegin>) -> ContinuedReplay<P> {
        self.next = next;
        self
    }

    fn counts(&self) -> Vec<Counts> {
        self.decider.cache.engine().all_counts().to_vec()
    }

    /// Replays a recording, whose windows and warm-up end at `cuts`; `progress` takes the requests
    /// done and stops the replay by returning false. Errors: those of reading; stopped.
    pub fn replay(
        mut self,
        workload: &mut MergedRequests,
        cuts: &Cuts,
        mut progress: impl FnMut(u64) -> bool,
    ) -> Result<LaneResult, RecordError> {
        let (mut batch, mut done, mut next_cut) = (WorkloadBatch::default(), 0, 0);
        let mut last = Nanos(0);
        while workload.read(&mut batch, BATCH)? > 0 {
            for at in 0..batch.len() {
                let time_ns = batch.time_ns[at];
                next_cut = self.end_until(cuts, next_cut, time_ns);
                last = Nanos(time_ns.saturating_add(self.origin.0));
                self.request(&Request {
                    time: last,
                    offset: Bytes(batch.offset_bytes[at]),
                    length: Bytes(batch.length_bytes[at]),
                    op: batch.op[at],
                    tenant: self.numbers[usize::from(batch.tenant[at])],
                });
            }
            done += batch.len() as u64;
            batch.clear();
            if !progress(done) {
                return Err(RecordError::Cancelled);
            }
        }
        // The recording ends with the divisions that are due right behind its last request.
        self.divide_before(Nanos(last.0.saturating_add(1)));
        self.end_until(cuts, next_cut, u64::MAX);
        let engine = self.decider.cache.engine();
        let control = self.decider.division.as_ref().map(Division::control);
        let found = LaneResult::new(engine, self.before.len(), self.rows, control);
        let found = found.since(&self.before).of_tenants(&self.numbers);
        let decided = self.decider.decided().0;
        let next = self.next.filter(|next| next.origin_ns == last.0);
        let by_server = next.map(|next| next.decided);
        Ok(LaneResult { continued: Some(Continued { decided, by_server }), ..found })
    }

    fn request(&mut self, request: &Request) {
        self.divide_before(request.time);
        self.decider.request(request, &mut self.plan);
        if matches!(request.op, Op::Read | Op::Write) {
            self.decider.background_ops(request.tenant, &mut self.plan);
        }
    }

    /// Divides as often as is due before what is decided at `time`.
    fn divide_before(&mut self, time: Nanos) {
        while self.decider.division_is_due(time) {
            self.decider.divide(None, &mut self.plan);
        }
        let Some(divisions) = &mut self.divisions else { return };
        while divisions.front().is_some_and(|row| row.time_ns <= time.0) {
            let row = divisions.pop_front().unwrap_or_default();
            self.decider.divide_to(row.quotas, &mut self.plan);
        }
    }

    /// Ends what ends before requests at `time_ns`; returns the cut after those.
    fn end_until(&mut self, cuts: &Cuts, from: usize, time_ns: u64) -> usize {
        let mut next = from;
        while let Some(cut) = cuts.cuts.get(next).filter(|cut| cut.time_ns <= time_ns) {
            // Intervals that ended before it belong to what came before.
            self.divide_before(Nanos(cut.time_ns.saturating_add(self.origin.0).saturating_sub(1)));
            if cut.warmup {
                self.before = self.counts();
            }
            if let Some(window) = cut.window {
                let engine = self.decider.cache.engine();
                let rows = window_rows(engine, &mut self.window_start, window, cut.time_ns);
                self.rows.extend(rows);
            }
            next += 1;
        }
        next
    }
}
