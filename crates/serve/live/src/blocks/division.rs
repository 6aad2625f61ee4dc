//! The cache divided anew while it serves.
//!
//! For: quotas that follow the requests, as in a replay of them. Must never know: which partitioner
//! divides, where its settings come from. Units: nanoseconds of the decision clock, blocks.
//! Intervals end at multiples of their length. A division comes before the first decision at its
//! time or later, so that a replay of the recording divides between the same requests.
//!
//! What a division takes away leaves at once. The steps are carried out like those of any other
//! decision: clean blocks are dropped, dirty ones are written back first.

use super::server::{BlockServer, State};
use crate::log::format::GROUP_RECORDS;
use cachewright_cache::{Engine, Left, Plan, SequentialCutoff};
use cachewright_control::{
    AnswerTimes, Control, HourlyCurves, KeptCurve, Models, RequestMeter, SignalNeeds, divide,
};
use cachewright_policy::Policy;
use cachewright_trace::DivisionRow;
use cachewright_types::{Nanos, Op, Request, TenantId};

/// A control loop, and when it divides.
pub struct Division {
    control: Control,
    meter: Option<RequestMeter>,
    /// Response times are measured.
    is_priced: bool,
    interval_ns: u64,
    due_ns: u64,
}

impl Division {
    /// Divides by `control`, which has given the first quotas, every `interval_ns` (0: never) from
    /// what `needs` measures of blocks of `1 << block_shift` bytes.
    pub fn new(
        control: Control,
        needs: SignalNeeds,
        interval_ns: u64,
        block_shift: u32,
    ) -> Division {
        let is_priced = needs.signals.prices;
        let meter = needs.meter(control.tenants(), interval_ns);
        let meter = meter.map(|meter| RequestMeter::new(meter, block_shift));
        Division { control, meter, is_priced, interval_ns, due_ns: interval_ns }
    }

    /// Whether response times are measured.
    pub fn is_priced(&self) -> bool {
        self.is_priced
    }

    /// Measures an answer.
    pub(super) fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        if let Some(meter) = &mut self.meter {
            meter.answered(tenant, op, times);
        }
    }

    /// The quota of each tenant, where it divides while the cache serves.
    pub(super) fn quotas<P: Policy>(&self, engine: &Engine<P>) -> Option<Vec<u32>> {
        let tenants = (0..self.control.tenants()).map(|tenant| TenantId(tenant as u16));
        (self.interval_ns > 0).then(|| tenants.map(|tenant| engine.quota(tenant)).collect())
    }

    /// Measures a request that was decided at its time.
    pub fn request(&mut self, request: &Request) {
        if let Some(meter) = &mut self.meter {
            meter.request(request, request.time.0);
        }
    }

    /// Whether an interval ends before what is decided at `time`.
    pub fn is_due(&self, time: Nanos) -> bool {
        self.interval_ns > 0 && time.0 >= self.due_ns
    }

    /// When the next interval ends.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Ends the interval that is due, whose curves are `kept`; returns the division if it changed a
    /// quota.
    pub fn end_interval<P: Policy>(
        &mut self,
        engine: &mut Engine<P>,
        left: Left<'_>,
        kept: Option<&mut HourlyCurves>,
    ) -> Option<DivisionRow> {
        let (time_ns, before) = (self.due_ns, self.quotas(engine));
        self.due_ns = self.due_ns.saturating_add(self.interval_ns);
        let signals = self.meter.as_mut().map(RequestMeter::end_interval).unwrap_or_default();
        kept.into_iter().for_each(|kept| kept.divided(&signals.curves, time_ns));
        divide(&mut self.control, engine, &signals, left);
        let quotas = self.quotas(engine).filter(|quotas| Some(quotas) != before.as_ref());
        quotas.map(|quotas| DivisionRow { time_ns, quotas })
    }
}

/// Most blocks that a division writes back together.
const PIECE_BLOCKS: usize = 16;

impl BlockServer {
    /// Divides the cache anew from now on. The cache has the first quotas of the division.
    pub fn divide_by(&mut self, division: Division) {
        self.state().decisions.division = Some(division);
    }

    /// Lets requests of long sequential streams go past the cache from now on, or none.
    pub fn cut_off(&mut self, cutoff: Option<SequentialCutoff>) {
        self.state().decisions.cut_off(cutoff);
    }

    /// Keeps curves of the last hour from `now_ns` on, or none.
    pub fn keep_curves(&mut self, now_ns: u64, curves: Option<HourlyCurves>) {
        self.state().decisions.keep_curves(now_ns, curves);
    }

    /// Goes on with the hour of curves. To be called some times a minute.
    pub fn tick_curves(&mut self, now_ns: u64) {
        self.state().decisions.tick_curves(now_ns);
    }

    /// The policy and the curves of the last hour by tenant, where they are kept. Those that
    /// divisions are made from end with the last division.
    pub fn curves(&mut self, now_ns: u64) -> Option<(String, Vec<KeptCurve>)> {
        let mut state = self.state();
        let (policy, curves) = state.decisions.curves(now_ns)?;
        Some((policy.to_owned(), curves))
    }

    /// Gives the policies of all pools, and the partitioner, other trained models, which count from
    /// the next decision on, and the next division. None of a kind change nothing. Errors: a model
    /// is refused, in words; policies and partitioner go on by those before.
    pub fn load_models(
        &mut self,
        policy: &[(String, Vec<u8>)],
        partition: &Models,
    ) -> Result<(), String> {
        let decisions = &mut self.state().decisions;
        if let Some(division) = &mut decisions.division {
            division.control.load_models(partition)?;
        }
        if policy.is_empty() {
            return Ok(());
        }
        let cache = &mut decisions.cache;
        (0..cache.engine().pools()).try_for_each(|pool| cache.load_models(pool, policy))
    }
}

impl State {
    /// Divides as often as is due, where the log has space for the records of what leaves. False if
    /// it has not: no request is to be decided before.
    pub(super) fn divide_due(&mut self) -> bool {
        while self.decisions.division_is_due(self.now_ns) {
            let mut pools = 0..self.content.log.set().pools();
            // What leaves makes space, so that it leaves where nothing else can.
            let lacks_space =
                |pool| !self.has_space(pool, self.groups_of(pool)) && !self.is_stuck(pool);
            self.space.division_waits = pools.any(lacks_space);
            if self.space.division_waits {
                return false;
            }
            self.divide();
        }
        true
    }

    /// Groups that take a record of each block that the tenants of a pool of devices hold.
    fn groups_of(&self, pool: usize) -> u64 {
        let (engine, tenants) = (self.decisions.cache.engine(), self.volumes.tenants().count());
        let blocks = self.content.streams.layout().quota(engine, tenants, pool);
        blocks / GROUP_RECORDS as u64 + 1
    }

    /// Divides as often as is due before what is decided now.
    pub(super) fn divide_before(&mut self) {
        while self.decisions.division_is_due(self.now_ns) {
            self.divide();
        }
    }

    /// Ends an interval.
    fn divide(&mut self) {
        self.content.cleaner.obstacles.note_change();
        let plan = self.decisions.divide();
        self.carry_in_pieces(plan);
    }

    /// Carries out a plan that takes many blocks away, as some decisions.
    pub(super) fn carry_in_pieces(&mut self, plan: Plan) {
        for moves in plan.moves.chunks(PIECE_BLOCKS) {
            self.decisions.begin();
            let piece = Plan { moves: moves.to_vec(), all_hit: false };
            self.carry_alone(TenantId(0), piece);
        }
        self.decisions.give_back(plan);
        self.decisions.give_ids_back(&mut self.content.copies);
    }
}
