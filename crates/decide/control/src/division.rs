//! A cache divided anew while it decides, request by request.
//!
//! Intervals end at multiples of their length. A division comes before the first decision at its
//! time or later, so that a live server and a replay of what it recorded divide between the same
//! requests. Units: nanoseconds of the decision clock, blocks.

use crate::control::Control;
use crate::decider::divide;
use crate::hour_curves::HourlyCurves;
use crate::meters::{AnswerTimes, RequestMeter, SignalNeeds};
use cachewright_cache::{Cache, Engine, Left, Move, Plan, Quotas, SequentialStreams};
use cachewright_partition::Models;
use cachewright_policy::{FutureSlice, Policy};
use cachewright_snapshot::{Snapshot, restore};
use cachewright_types::{Nanos, Op, Request, TenantId};

/// A division that changed a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaChange {
    /// The end of the interval behind which it holds.
    pub time_ns: u64,
    /// The blocks of each tenant.
    pub quotas: Vec<u32>,
}

/// A control loop, and when it divides.
#[derive(Snapshot)]
pub struct Division {
    control: Control,
    #[snapshot(each)]
    meter: Option<RequestMeter>,
    /// Response times are measured.
    #[snapshot(settings)]
    is_priced: bool,
    #[snapshot(settings)]
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

    /// Divides from `time` on: the first interval is that of it, and no other ends before.
    pub fn begun_at(mut self, time: Nanos) -> Division {
        if let Some(interval) = time.0.checked_div(self.interval_ns) {
            self.due_ns = interval.saturating_add(1).saturating_mul(self.interval_ns);
            self.meter.iter_mut().for_each(|meter| meter.begin_at(interval));
        }
        self
    }

    /// Whether response times are measured.
    pub fn is_priced(&self) -> bool {
        self.is_priced
    }

    /// Measures an answer.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        if let Some(meter) = &mut self.meter {
            meter.answered(tenant, op, times);
        }
    }

    /// The quota of each tenant, where it divides while the cache serves.
    pub fn quotas<P: Policy>(&self, engine: &Engine<P>) -> Option<Vec<u32>> {
        let tenants = (0..self.control.tenants()).map(|tenant| TenantId(tenant as u16));
        (self.interval_ns > 0).then(|| tenants.map(|tenant| engine.quota(tenant)).collect())
    }

    /// Gives the partitioner other models, which count from the next division on. Errors: a model
    /// is refused, in words; the models before stay in use.
    pub fn load_models(&mut self, models: &Models) -> Result<(), String> {
        self.control.load_models(models)
    }

    /// The control loop.
    pub fn control(&self) -> &Control {
        &self.control
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

    /// Ends the interval that is due, whose curves are `kept`; returns the division if it changed a
    /// quota.
    pub fn end_interval<P: Policy>(
        &mut self,
        engine: &mut Engine<P>,
        left: Left<'_>,
        kept: Option<&mut HourlyCurves>,
    ) -> Option<QuotaChange> {
        let (time_ns, before) = (self.due_ns, self.quotas(engine));
        self.due_ns = self.due_ns.saturating_add(self.interval_ns);
        let signals = self.meter.as_mut().map(RequestMeter::end_interval).unwrap_or_default();
        kept.into_iter().for_each(|kept| kept.divided(&signals.curves, time_ns));
        divide(&mut self.control, engine, &signals, left);
        let quotas = self.quotas(engine).filter(|quotas| Some(quotas) != before.as_ref());
        quotas.map(|quotas| QuotaChange { time_ns, quotas })
    }
}

/// A hash of decisions in their order: which blocks reads and writes found, brought and evicted,
/// and the quotas of divisions. Whether an evicted block was dirty depends on what was written back
/// between requests, which a replay does not know, and is no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionHash(pub u64);

impl DecisionHash {
    fn add(&mut self, value: u64) {
        // Rotate, combine and multiply by an odd constant, as FxHash does.
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn add_quotas(&mut self, quotas: &[u32]) {
        quotas.iter().for_each(|quota| self.add((*quota).into()));
    }

    fn add_move(&mut self, step: &Move) {
        let (kind, tenant, number) = match step {
            Move::Serve(block) => (1, block.tenant, block.number),
            Move::Fetch(block) => (2, block.tenant, block.number),
            Move::Fill(block) => (3, block.tenant, block.number),
            Move::WriteBack(block) | Move::Drop(block) => (4, block.tenant, block.number),
            Move::WriteThrough(block) => (5, block.tenant, block.number),
            Move::Discard { cached, .. } => (6, cached.tenant, cached.number),
            Move::Bypass { tenant, number } => (7, *tenant, *number),
            Move::Swap(blocks) => (8, blocks[0].tenant, blocks[0].number),
            Move::Clean(_) | Move::Trim | Move::Flush => return,
        };
        self.add(number);
        self.add(kind << 16 | u64::from(tenant.0));
    }
}

/// What decides in a live server: the cache, what divides it, and what lets long sequential streams
/// go past it. A snapshot of it is all that later decisions depend on, but settings and models.
#[derive(Snapshot)]
pub struct RequestDecider<P> {
    /// The cache.
    pub cache: Cache<P>,
    /// Divides the cache anew, where that is wanted.
    #[snapshot(each)]
    pub division: Option<Division>,
    /// The streams by which requests go past the cache, where some do.
    #[snapshot(each)]
    pub streams: Option<SequentialStreams>,
    /// Stands beside a snapshot, so that older ones continue.
    #[snapshot(settings)]
    decided: DecisionHash,
}

impl<P: Policy> RequestDecider<P> {
    /// A cache that is divided anew, and that streams go past, where that is wanted.
    pub fn new(
        cache: Cache<P>,
        division: Option<Division>,
        streams: Option<SequentialStreams>,
    ) -> RequestDecider<P> {
        RequestDecider { cache, division, streams, decided: DecisionHash::default() }
    }

    /// Decides about a request, as a division that is due has been made. The moves replace what
    /// `plan` held.
    pub fn request(&mut self, request: &Request, plan: &mut Plan) {
        self.measure(request);
        match self.streams.as_mut().is_some_and(|streams| streams.cuts_off_next(request)) {
            true => self.cache.on_cut_off(request, FutureSlice::None, plan),
            false => self.cache.on(request, plan),
        }
        if matches!(request.op, Op::Read | Op::Write) {
            plan.moves.iter().for_each(|step| self.decided.add_move(step));
        }
    }

    /// What was decided so far, in short.
    pub fn decided(&self) -> DecisionHash {
        self.decided
    }

    /// Goes on from a snapshot of another one of the same settings, which had `decided` this.
    /// Errors: the bytes are of no such snapshot, in words; this is then in no state to be used.
    pub fn go_on_from(&mut self, snapshot: &[u8], decided: DecisionHash) -> Result<(), String> {
        restore(self, snapshot).map_err(|error| error.to_string())?;
        self.decided = decided;
        self.cache.audit()
    }

    /// Gives the policies of all pools, and the partitioner, other trained models; none of a kind
    /// change nothing. Errors: a model is refused, in words; those before it count.
    pub fn load_models(
        &mut self,
        policy: &[(String, Vec<u8>)],
        partition: &Models,
    ) -> Result<(), String> {
        if let Some(division) = &mut self.division {
            division.load_models(partition)?;
        }
        if policy.is_empty() {
            return Ok(());
        }
        let mut pools = 0..self.cache.engine().pools();
        pools.try_for_each(|pool| self.cache.load_models(pool, policy))
    }

    /// Measures a request for divisions.
    pub fn measure(&mut self, request: &Request) {
        self.division.iter_mut().for_each(|division| division.request(request));
    }

    /// Whether the cache is to be divided before what is decided at `time`.
    pub fn division_is_due(&self, time: Nanos) -> bool {
        self.division.as_ref().is_some_and(|division| division.is_due(time))
    }

    /// Ends the interval that is due; what leaves replaces what `plan` held. Curves of the interval
    /// are `kept`. Returns the division if it changed a quota.
    pub fn divide(
        &mut self,
        kept: Option<&mut HourlyCurves>,
        plan: &mut Plan,
    ) -> Option<QuotaChange> {
        plan.moves.clear();
        let division = self.division.as_mut()?;
        let mut divided = None;
        self.cache.control(plan, |engine, left| {
            divided = division.end_interval(engine, left, kept);
        });
        if let Some(QuotaChange { quotas, .. }) = &divided {
            self.decided.add_quotas(quotas);
        }
        divided
    }

    /// Divides the cache as a server is known to have done; what leaves replaces what `plan` held.
    pub fn divide_to(&mut self, quotas: Vec<u32>, plan: &mut Plan) {
        plan.moves.clear();
        let engine = self.cache.engine();
        let is_present =
            |(tenant, quota): (usize, &u32)| engine.quota(TenantId(tenant as u16)) == *quota;
        if quotas.iter().enumerate().all(is_present) {
            return;
        }
        self.decided.add_quotas(&quotas);
        self.cache.set_quotas(&Quotas::PerTenant(quotas), plan);
    }

    /// What the policy of a tenant does after a read or a write of it.
    pub fn background_ops(&mut self, tenant: TenantId, plan: &mut Plan) {
        self.cache.background_ops(self.cache.engine().pool_of(tenant), plan);
    }
}
