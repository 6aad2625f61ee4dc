//! Decisions of the cache: requests in, plans out.
//!
//! A plan is carried out by its caller (`request`, `evict`), and its memory given back.
//! Units: bytes at the border, blocks inside, decisions counted from the start of the server.

use super::copies::Copies;
use super::replica::{DeciderReplica, DeciderStep, LiveDecider, PolicySource, SavesDecider};
use crate::record::{DecisionClock, RecordedRequests, RequestRecorder};
use cachewright_cache::{
    Cache, Cached, Move, Plan, Quotas, SequentialCutoff, SequentialStreams, Shrink,
};
use cachewright_control::{
    AnswerTimes, DecisionHash, Division, HourlyCurves, KeptCurve, Models, QuotaChange,
    RequestDecider, SchemeTrial,
};
use cachewright_policy::Policy;
use cachewright_trace::DivisionRow;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, TenantId};

/// Ids beyond the bound for which nothing is done.
const MIN_EXCESS_IDS: u64 = 4;

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTiming {
    /// Whose it was.
    pub tenant: TenantId,
    /// A read or a write.
    pub op: Op,
    /// When it was decided.
    pub decided_ns: u64,
    /// Time behind the cache: at least 1 if it went there.
    pub behind_ns: u64,
}

/// The cache, and what is measured and recorded of its decisions.
pub struct Decisions {
    /// The cache, and what divides it.
    pub decider: LiveDecider,
    /// Takes the same steps, where snapshots of the decider are wanted.
    replica: Option<DeciderReplica>,
    /// Memory of plans.
    plan: Plan,
    /// The last decision that the log speaks of, from before this server.
    before: u64,
    made: u64,
    block_shift: u32,
    clock: DecisionClock,
    /// Takes what is decided.
    pub recorder: Option<RequestRecorder>,
    /// Keeps curves of the last hour, where that is wanted.
    pub(super) curves: Option<HourlyCurves>,
    /// Tries another policy on a sample, where that is wanted.
    pub(super) trial: Option<SchemeTrial>,
    /// Ids of all pools when some were last given back.
    kept_ids: u64,
    /// Time behind the cache of reads and writes that were answered, by tenant.
    behind_ns: Vec<u64>,
}

impl Decisions {
    /// Decisions behind number `before`, on a clock of their own. Memory for all that the cache
    /// will remember is reserved, so that none of them pauses for growth.
    pub fn new(
        mut cache: Cache<Box<dyn Policy>>,
        block_shift: u32,
        before: u64,
        clock: DecisionClock,
    ) -> Decisions {
        cache.reserve();
        Decisions {
            decider: RequestDecider::new(cache, None, None),
            replica: None,
            plan: Plan::default(),
            before,
            made: 0,
            block_shift,
            clock,
            recorder: None,
            curves: None,
            trial: None,
            kept_ids: 0,
            behind_ns: Vec::new(),
        }
    }

    /// Ids that the cache may give the blocks of each pool.
    pub fn max_ids(&self) -> Vec<usize> {
        let engine = self.decider.cache.engine();
        (0..engine.pools()).map(|pool| engine.policy(pool).max_tracked() as usize).collect()
    }

    /// A plan was carried out: its memory is used again.
    pub fn give_back(&mut self, plan: Plan) {
        self.plan = plan;
    }

    fn take_plan(&mut self) -> Plan {
        std::mem::take(&mut self.plan)
    }

    /// The number of a decision in the log.
    pub fn in_log(&self, decision: u64) -> u64 {
        self.before + decision
    }

    /// The number of the last decision.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Decides at `now_ns` about a request, whose time is that of the decision clock then.
    pub fn request(&mut self, now_ns: u64, mut request: Request) -> Plan {
        request.time = self.clock.tick(now_ns);
        self.note(&request);
        self.step(|| DeciderStep::Request(request));
        let mut plan = self.take_plan();
        self.decider.request(&request, &mut plan);
        self.begin();
        plan
    }

    /// What was decided is recorded, and measured for operators.
    fn note(&mut self, request: &Request) {
        self.curves.iter_mut().for_each(|curves| curves.request(request));
        self.trial.iter_mut().for_each(|trial| trial.request(request));
        self.recorder.iter_mut().for_each(|recorder| recorder.note(request));
    }

    /// The same of a block that left otherwise than by a request: a trim of it.
    fn note_trim(&mut self, trim: &Request) {
        self.note(trim);
        self.step(|| DeciderStep::Measure(*trim));
        self.decider.measure(trim);
    }

    /// The decider takes a step, and so does its replica.
    fn step(&mut self, step: impl FnOnce() -> DeciderStep) {
        self.replica.take_if(|replica| !replica.step(step()));
    }

    /// Whether a replica takes all steps of the decider.
    pub fn has_replica(&self) -> bool {
        self.replica.is_some()
    }

    /// A replica takes all steps from now on, restored into an `empty` decider of the same
    /// settings. Nothing is decided meanwhile. Errors: something cannot be saved.
    pub fn replicate(&mut self, empty: LiveDecider) -> Result<(), String> {
        self.replica = None;
        self.replica = Some(DeciderReplica::begin(&self.decider, empty)?);
        Ok(())
    }

    /// Has `saves` save the replica where the decider stands, without a pause; false without a
    /// replica that could be.
    pub fn save_replica(&mut self, saves: SavesDecider) -> bool {
        let Some(replica) = &mut self.replica else { return false };
        let is_taken = replica.save(&self.decider, saves);
        self.replica.take_if(|_| !is_taken);
        is_taken
    }

    /// Takes no snapshots from now on; those that are being taken are handed on later.
    pub fn drop_replica(&mut self) {
        self.replica = None;
    }

    /// Takes no snapshots from now on; waits for those that are being taken.
    pub fn end_replica(&mut self) {
        if let Some(replica) = self.replica.take() {
            replica.finish();
        }
    }

    /// What was decided so far, in short.
    pub fn decided(&self) -> DecisionHash {
        self.decider.decided()
    }

    /// Divides the cache anew from now on, from the first quotas of a division.
    pub fn divide_by(&mut self, division: Division) {
        // What began before its cache was divided does not follow it.
        self.replica = None;
        self.decider.division = Some(division);
    }

    /// The log has failed, and nothing is decided any more.
    pub fn end(&mut self) {
        self.recorder.take().map(RequestRecorder::finish);
        (self.replica, self.decider.division, self.curves) = (None, None, None);
    }

    /// Gives the policies of all pools, and the partitioner, other trained models. Errors: a model
    /// is refused, in words; those before it count.
    pub fn load_models(
        &mut self,
        policy: &[(String, Vec<u8>)],
        partition: &Models,
    ) -> Result<(), String> {
        self.step(|| DeciderStep::LoadModels {
            policy: policy.to_vec(),
            partition: Box::new(partition.clone()),
        });
        self.decider.load_models(policy, partition)
    }

    /// Lets requests of long sequential streams go past the cache from now on, or none. No stream
    /// has begun yet.
    pub fn cut_off(&mut self, cutoff: Option<SequentialCutoff>) {
        self.step(|| DeciderStep::CutOff(cutoff));
        self.decider.streams = cutoff.map(SequentialStreams::new);
    }

    /// Whether the cache is to be divided before what is decided at `now_ns`.
    pub fn division_is_due(&self, now_ns: u64) -> bool {
        self.decider.division_is_due(self.clock.next(now_ns))
    }

    /// Keeps curves from `now_ns` on, or none.
    pub fn keep_curves(&mut self, now_ns: u64, mut curves: Option<HourlyCurves>) {
        curves.iter_mut().for_each(|curves| curves.begin(self.clock.passed(now_ns)));
        self.curves = curves;
    }

    /// Goes on with the hour of curves.
    pub fn tick_curves(&mut self, now_ns: u64) {
        let passed_ns = self.clock.passed(now_ns);
        self.curves.iter_mut().for_each(|curves| curves.tick(passed_ns));
    }

    /// The policy and the curves of the last hour by tenant, at `now_ns`.
    pub fn curves(&mut self, now_ns: u64) -> Option<(&str, Vec<KeptCurve>)> {
        let passed_ns = self.clock.passed(now_ns);
        let curves = self.curves.as_mut()?;
        let found = curves.curves(passed_ns);
        Some((curves.policy(), found))
    }

    /// Divides the cache anew; what leaves is to be carried out in pieces.
    pub fn divide(&mut self) -> Plan {
        let mut plan = self.take_plan();
        self.step(|| DeciderStep::Divide);
        let divided = self.decider.divide(self.curves.as_mut(), &mut plan);
        let engine = self.decider.cache.engine();
        self.trial.iter_mut().for_each(|trial| trial.follow(engine));
        if let (Some(QuotaChange { time_ns, quotas }), Some(recorder)) =
            (divided, &mut self.recorder)
        {
            recorder.divided(DivisionRow { time_ns, quotas });
        }
        plan
    }

    /// Gives back ids and memory of pools that have shrunk, where that is much: a quarter beyond
    /// what all pools need. Blocks must have moved for it, so that its cost is in proportion.
    pub fn give_ids_back(&mut self, copies: &mut Copies) {
        let engine = self.decider.cache.engine();
        let needed: u64 = (0..engine.pools()).map(|pool| engine.policy(pool).max_tracked()).sum();
        let ids = self.decider.cache.ids() as u64;
        // What could not be given back the last time is not tried again at once.
        if ids <= needed.max(self.kept_ids) / 4 * 5 + MIN_EXCESS_IDS {
            return;
        }
        let mut renamed = vec![Vec::new(); engine.pools()];
        self.step(|| DeciderStep::Compact);
        self.decider.cache.compact(&mut |pool, old, new| renamed[pool].push((old, new)));
        let changed = renamed.iter().enumerate().filter(|(_, pairs)| !pairs.is_empty());
        changed.for_each(|(pool, pairs)| copies.rename(pool, pairs));
        self.kept_ids = self.decider.cache.ids() as u64;
    }

    /// Time behind the cache of all reads and writes of a tenant, in nanoseconds.
    pub fn behind_ns(&self, tenant: TenantId) -> u64 {
        self.behind_ns.get(tenant.index()).copied().unwrap_or_default()
    }

    /// Measures an answer that came at `now_ns`.
    pub fn answered(&mut self, now_ns: u64, answer: &RequestTiming) {
        let tenants = self.behind_ns.len().max(answer.tenant.index() + 1);
        self.behind_ns.resize(tenants, 0);
        self.behind_ns[answer.tenant.index()] += answer.behind_ns;
        let RequestTiming { tenant, op, decided_ns, behind_ns } = *answer;
        let (finish_ns, response_ns) =
            (self.clock.passed(now_ns), now_ns.saturating_sub(decided_ns));
        let times = AnswerTimes { finish_ns, response_ns, behind_ns };
        let trial = self.trial.iter_mut().filter(|trial| trial.is_priced());
        trial.for_each(|trial| trial.answered(tenant, op, times));
        let division = self.decider.division.as_mut();
        if let Some(division) = division.filter(|division| division.is_priced()) {
            division.answered(tenant, op, times);
            self.step(|| DeciderStep::Answered(tenant, op, times));
        }
    }

    /// The time of the last decision on the decision clock; 0 before the first.
    pub fn last_time(&self) -> Nanos {
        self.clock.last()
    }

    /// The time that a decision made at `now_ns` would have.
    pub fn next_time(&self, now_ns: u64) -> Nanos {
        self.clock.next(now_ns)
    }

    /// Has what is recorded by `now_ns` kept, at most so often.
    pub fn keep_recording(&mut self, now_ns: u64, every_ns: u64) {
        let now = Nanos(self.clock.passed(now_ns));
        self.recorder.iter_mut().for_each(|recorder| recorder.keep(now, every_ns));
    }

    /// Ends a recording at `now_ns`: a flush of `tenant` says when, so that a replay divides as
    /// often.
    pub fn end_recording(&mut self, now_ns: u64, tenant: TenantId) -> Option<RecordedRequests> {
        let mut recorder = self.recorder.take()?;
        let (offset, length) = (Bytes(0), Bytes(0));
        let time = self.clock.tick(now_ns);
        recorder.note(&Request { time, offset, length, op: Op::Flush, tenant });
        Some(recorder.finish())
    }

    /// What the policy of a tenant does after a read or a write.
    pub fn background_ops(&mut self, tenant: TenantId) -> Plan {
        let mut plan = self.take_plan();
        self.step(|| DeciderStep::BackgroundOps(tenant));
        self.decider.background_ops(tenant, &mut plan);
        self.begin_some(plan)
    }

    /// Writes back dirty blocks of a pool that stay, at most `max_blocks` from the id `from` on, in
    /// the order of their numbers; where to go on is nothing at the end.
    pub fn clean_some(
        &mut self,
        pool: usize,
        from: BlockId,
        max_blocks: u32,
    ) -> (Plan, Option<BlockId>) {
        let mut plan = self.take_plan();
        self.step(|| DeciderStep::Clean { pool, from, max_blocks });
        let next = self.decider.cache.clean_some(pool, from, max_blocks, &mut plan);
        let number = |step: &Move| match step {
            Move::Clean(cached) => (cached.tenant, cached.number),
            _ => (TenantId(0), 0),
        };
        plan.moves.sort_by_key(number);
        (self.begin_some(plan), next)
    }

    /// Takes blocks of a tenant out because it is removed, of at most `max_ids` ids from `from` on;
    /// where to go on is nothing at the end.
    pub fn remove_some(
        &mut self,
        now_ns: u64,
        tenant: TenantId,
        from: BlockId,
        max_ids: u32,
    ) -> (Plan, Option<BlockId>) {
        let mut plan = self.take_plan();
        self.step(|| DeciderStep::Remove { tenant, from, max_ids });
        let next = self.decider.cache.remove_some(tenant, from, max_ids, &mut plan);
        for step in &plan.moves {
            let (Move::WriteBack(cached) | Move::Drop(cached)) = step else { continue };
            let time = self.clock.tick(now_ns);
            let number = cached.number;
            let (offset, length) =
                (Bytes(number << self.block_shift), Bytes(1 << self.block_shift));
            self.note_trim(&Request { time, offset, length, op: Op::Trim, tenant });
        }
        (self.begin_some(plan), next)
    }

    /// One more tenant, with a pool of its own where each has one. Nothing where some share one.
    pub fn add_tenant(&mut self, capacity_blocks: u32, make: PolicySource) -> Option<TenantId> {
        let cache = &mut self.decider.cache;
        let tenant = cache.add_tenant(capacity_blocks, |pool, blocks| make(pool, blocks))?;
        self.step(|| DeciderStep::AddTenant { capacity_blocks, make });
        self.decider.cache.reserve();
        Some(tenant)
    }

    /// Other quotas from now on, and another division, which `of_replica` equals; what leaves is to
    /// be carried out in pieces.
    pub fn set_quotas(
        &mut self,
        now_ns: u64,
        quotas: &Quotas,
        shrink: Shrink,
        division: Option<Division>,
        of_replica: Option<Division>,
    ) -> Plan {
        let mut plan = self.take_plan();
        let now = self.clock.next(now_ns);
        let [division, of_replica] =
            [division, of_replica].map(|division| division.map(|one| one.begun_at(now)));
        self.step(|| DeciderStep::SetQuotas {
            quotas: Box::new(quotas.clone()),
            shrink,
            division: of_replica.map(Box::new),
        });
        self.decider.cache.divide_otherwise(quotas, shrink, &mut plan);
        self.decider.division = division;
        let engine = self.decider.cache.engine();
        self.trial.iter_mut().for_each(|trial| trial.follow(engine));
        plan
    }

    /// Puts other policies in the place of those of all pools; what leaves is to be carried out in
    /// pieces.
    pub fn replace_policies(&mut self, make: PolicySource) -> Plan {
        let mut plan = self.take_plan();
        self.decider.cache.replace_policies(&mut plan, |pool, blocks| make(pool, blocks));
        self.step(|| DeciderStep::ReplacePolicies(make));
        plan
    }

    /// Forgets at `now_ns` a cached block whose copy is lost, for a reason; nothing if it is not
    /// cached.
    pub fn forget(
        &mut self,
        now_ns: u64,
        tenant: TenantId,
        number: u64,
        reason: LossReason,
    ) -> Option<Plan> {
        let (cached, dirty) = self.decider.cache.forget(tenant, number, reason)?;
        self.step(|| DeciderStep::Forget { tenant, number, reason });
        let time = self.clock.tick(now_ns);
        let (offset, length) = (Bytes(number << self.block_shift), Bytes(1 << self.block_shift));
        let trim = Request { time, offset, length, op: Op::Trim, tenant };
        self.note_trim(&trim);
        let mut plan = self.take_plan();
        plan.moves.clear();
        plan.moves.push(Move::Discard { cached, dirty });
        Some(self.begin_some(plan))
    }

    /// Takes a block in that recovery found; returns its name, if the policy takes it, and what
    /// leaves for it. Nothing of that is written back: its owner does that before it drops it.
    pub fn adopt(&mut self, tenant: TenantId, number: u64, dirty: bool) -> (Option<Cached>, Plan) {
        let mut plan = self.take_plan();
        let cached = self.decider.cache.adopt_new(tenant, number, dirty, &mut plan);
        for step in &mut plan.moves {
            if let Move::WriteBack(left) = *step {
                *step = Move::Drop(left);
            }
        }
        (cached, self.begin_some(plan))
    }

    /// A block that was being cleaned is dirty again, if it is still cached.
    pub fn still_dirty(&mut self, tenant: TenantId, number: u64) {
        if self.decider.cache.contains(tenant, number) {
            let mut plan = self.take_plan();
            self.step(|| DeciderStep::StillDirty { tenant, number });
            self.decider.cache.adopt(tenant, number, true, &mut plan);
            debug_assert!(plan.moves.is_empty(), "a cached block takes no room");
            self.plan = plan;
        }
    }

    /// Whether the cache holds content of a block that its backing device has not.
    pub fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        let cached = self.decider.cache.find(tenant, number);
        cached.is_some_and(|cached| self.decider.cache.engine().is_dirty(tenant, cached.id))
    }

    /// A decision is made: the number of what is carried out from now on.
    pub fn begin(&mut self) {
        self.made += 1;
    }

    /// A plan that no request waits for is a decision if it has moves.
    fn begin_some(&mut self, plan: Plan) -> Plan {
        if !plan.moves.is_empty() {
            self.begin();
        }
        plan
    }
}
