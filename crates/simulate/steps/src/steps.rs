//! Plans under way: plans in, steps out as they may begin, answers when they are done.
//!
//! The owner takes steps with [`Steps::next_step`], carries each out and ends it with
//! [`Steps::finish`]. Invariants: each request is answered once; a slot holds one block; a step
//! begins once, after everything it waits for.

use crate::backings::{Backings, EvictionWriteBacks};
use crate::plan_to_steps::{DirtyResident, PlanToSteps, Purpose, Rules, WriteBacks};
use crate::residents::{Placement, ResidentRef, ResidentTable};
use crate::step_graph::{
    Action, DeviceId, Finished, Outcome, RequestId, ResidentId, Step, StepGraph, StepId, StepRef,
};
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::{Op, Request, TenantId, whole_block_numbers};
use std::collections::VecDeque;

/// Plans under way; `N` goes along the steps of a request.
pub struct Steps<P: Placement, N> {
    state: StepState<P, N>,
    write_backs: WriteBacks,
    plan_to_steps: PlanToSteps,
    failures: FailureLog<P::Action>,
}

/// A step that may begin.
#[derive(Clone, Copy, Debug)]
pub struct Ready<X> {
    /// Its number, to end it by.
    pub id: StepId,
    /// What it does.
    pub action: Action<X>,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// The number of its plan: a log tells by it which record of a block is the last.
    pub decision: u64,
}

/// A block that a plan has made dirty, as it was then.
#[derive(Clone, Copy, Debug)]
pub struct DirtyBlock {
    resident: ResidentRef,
    /// The tenant whose block it is.
    pub tenant: TenantId,
    /// Its number on the tenant's volume.
    pub number: u64,
}

impl<P: Placement, N: Copy + Default> Steps<P, N> {
    /// Nothing under way; `backing_of` is each tenant's backing device.
    pub fn new(placement: P, backing_of: &[usize], rules: Rules) -> Steps<P, N> {
        let shift = rules.block_shift;
        assert!(shift < u64::BITS, "a block has at most 2^63 bytes");
        let state = StepState {
            graph: StepGraph::default(),
            residents: ResidentTable::default(),
            placement,
            requests: OpenRequests::default(),
            backings: Backings::new(backing_of, shift),
            granted: Vec::new(),
            evicted: EvictionWriteBacks::default(),
        };
        let (write_backs, plan_to_steps) = (WriteBacks::new(shift), PlanToSteps::new(rules));
        Steps { state, write_backs, plan_to_steps, failures: FailureLog::default() }
    }

    /// What is under way.
    #[inline]
    pub fn state(&self) -> &StepState<P, N> {
        &self.state
    }

    /// What is under way, for what the placement does by itself.
    #[inline]
    pub fn state_mut(&mut self) -> &mut StepState<P, N> {
        &mut self.state
    }

    /// Begins what a plan decides about a request; `note` is that of its first steps.
    pub fn request(&mut self, tag: u64, request: &Request, plan: &Plan, note: N) {
        let id = self.state.requests.open(tag, request.tenant, note);
        let (tenant, op, start) = (request.tenant, request.op, request.offset.0);
        let bytes = start..start.saturating_add(request.length.0);
        self.translate(Purpose { request: Some(id), tenant, op, bytes }, plan);
        self.state.requests.close(id);
    }

    /// Begins a plan that no request waits for: a tenant's read-ahead, changed quotas.
    pub fn background(&mut self, tenant: TenantId, plan: &Plan) {
        let purpose = Purpose { request: None, tenant, op: Op::Read, bytes: 0..u64::MAX };
        self.translate(purpose, plan);
    }

    fn translate(&mut self, purpose: Purpose, plan: &Plan) {
        self.plan_to_steps.translate(&mut self.state, &mut self.write_backs, purpose, plan);
    }

    /// The next step that may begin. Steps that need a failed one end here.
    #[inline]
    pub fn next_step(&mut self) -> Option<Ready<P::Action>> {
        loop {
            let id = self.state.graph.next_ready()?;
            if self.state.graph.has_failed(id) {
                self.finish(id, Outcome::Failed);
                continue;
            }
            let Some(step) = self.state.graph.action(id) else { continue };
            let (action, tenant, decision) = (step.action, step.tenant, step.decision);
            return Some(Ready { id, action, tenant, decision });
        }
    }

    /// The residents that a step touches, in the order of its bytes; none of a step that has ended.
    pub fn touched(&self, id: StepId) -> &[ResidentId] {
        self.state.graph.action(id).map_or(&[], |step| &step.pins)
    }

    /// The note of a step that belongs to a request, to be added to.
    #[inline]
    pub fn note_mut(&mut self, id: StepId) -> Option<&mut N> {
        self.state.graph.note_mut(id)
    }

    /// A step is done: what waits for it may begin.
    pub fn finish(&mut self, id: StepId, outcome: Outcome) {
        let Some(finished) = self.state.graph.finish(id, outcome) else { return };
        let Finished { action: step, request, failed, serial } = finished;
        let held = failed && self.failures.note(&mut self.state.residents, &step, serial);
        if !failed && matches!(step.action, Action::Cache { op: Op::Write, .. }) {
            // What it has not written of its blocks it has found there.
            step.pins.iter().for_each(|resident| self.keep(*resident));
        }
        self.end_eviction_write_backs(&step, failed, held);
        if !held {
            for resident in step.pins.iter().copied() {
                self.let_go(resident, serial);
            }
        }
        match step.action {
            Action::Device { device, op: Op::Write, offset, length } => {
                self.state.backings.end_write(&self.state.graph, device, offset, length);
            }
            Action::Device { op: Op::Trim, .. } => self.state.backings.end_trims(&self.state.graph),
            _ => {}
        }
        if step.cleaning {
            self.write_backs.end_clean();
        }
        if let Some(request) = request.filter(|_| step.required) {
            let note = self.state.graph.last_note(id);
            self.state.requests.end_step(request, note, failed);
        }
    }

    /// What a step that has ended means for blocks that leave.
    fn end_eviction_write_backs(&mut self, step: &Step<P::Action>, failed: bool, held: bool) {
        let Action::Device { device, op, offset, length } = step.action else { return };
        if device == DeviceId::CACHE || !matches!(op, Op::Write | Op::Trim) {
            return;
        }
        let StepState { evicted, residents, .. } = &mut self.state;
        if held {
            for resident in step.pins.iter() {
                let number = residents.number(*resident);
                number.into_iter().for_each(|number| evicted.fail(device, number, *resident));
            }
        } else if !failed {
            let shift = self.plan_to_steps.rules().block_shift;
            evicted.end(device, whole_block_numbers(offset, length, shift), step.decision);
        }
    }

    /// The answers since the last call, in the order in which they were given.
    pub fn drain_answers(&mut self) -> impl Iterator<Item = RequestAnswer<N>> + use<'_, P, N> {
        self.state.requests.drain_answers()
    }

    /// Steps that failed since the last call, and steps that needed them. A failed write-back of an
    /// evicted block holds the block's slot until [`Steps::release`].
    pub fn take_failures(&mut self) -> Vec<Failure<P::Action>> {
        self.failures.take()
    }

    /// The content of a resident is there although a step of it has failed: later steps may use it.
    pub fn keep(&mut self, resident: ResidentId) {
        let residents = &mut self.state.residents;
        if residents.has_lost() && residents.is_lost(resident) {
            residents.set_lost(resident, false);
            residents.settle(resident);
        }
    }

    /// A failed step no longer holds a resident.
    fn let_go(&mut self, resident: ResidentId, serial: u64) {
        if let Some(released) = self.state.placement.end_step(resident, serial) {
            self.state.graph.release(released);
        }
        self.state.unpin(resident);
    }

    /// Gives up the evicted blocks of a failed write-back, once their data is safe elsewhere.
    pub fn release(&mut self, failure: Failure<P::Action>) {
        let Some(serial) = self.failures.release(&failure) else { return };
        let Action::Device { device, .. } = failure.action else { return };
        for block in failure.blocks {
            if let Some(number) = block.number {
                self.state.evicted.take(device, number, block.resident);
            }
            self.let_go(block.resident, serial);
        }
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.plan_to_steps.in_flight_blocks()
    }

    /// Notes the blocks of the cache that a plan writes.
    pub fn note_served(&self, plan: &Plan, dirty: &mut VecDeque<DirtyBlock>) {
        let residents = &self.state.residents;
        for step in &plan.moves {
            let Move::Serve(cached) = step else { continue };
            if let Some(resident) = residents.find(cached) {
                let resident = residents.reference(resident);
                let (tenant, number) = (cached.tenant, cached.number);
                dirty.push_back(DirtyBlock { resident, tenant, number });
            }
        }
    }

    /// Whether a block is still in the cache since it was noted.
    pub fn stays(&self, block: &DirtyBlock) -> bool {
        self.state.residents.stays(block.resident)
    }

    /// Begins to write back a block that stays.
    pub fn clean(&mut self, block: &DirtyBlock) {
        let (tenant, number) = (block.tenant, block.number);
        let (device, resident) = (self.state.backings.device_of(tenant), block.resident.id());
        let block = DirtyResident { device, number, resident, tenant };
        self.write_backs.clean(&mut self.state, block, self.plan_to_steps.plans());
    }

    /// Write-backs under way of blocks that stay.
    pub fn cleaning(&self) -> u32 {
        self.write_backs.cleaning()
    }

    /// Checks what must hold between calls; `held` is the number of blocks the cache holds, `idle`
    /// reports that everything should be done. Errors: the rule broken, in words.
    pub fn audit(&self, held: u64, idle: bool) -> Result<(), String> {
        self.state.residents.audit(held)?;
        self.state.graph.audit()?;
        let (requests, steps) = (self.state.requests.count(), self.state.graph.open());
        let changes = self.state.backings.changes() + self.state.evicted.len();
        let cleaning = self.write_backs.cleaning();
        if idle && (requests > 0 || steps > 0 || changes > 0 || cleaning > 0) {
            return Err(format!(
                "{requests} requests, {steps} steps, {changes} writes, {cleaning} cleanings open"
            ));
        }
        Ok(())
    }
}

/// Steps of a placement's kind.
pub type Graph<P, N> = StepGraph<Step<<P as Placement>::Action>, N>;

/// All that is under way.
pub struct StepState<P: Placement, N> {
    /// Steps under way.
    pub graph: Graph<P, N>,
    /// Blocks on the cache device.
    pub residents: ResidentTable,
    /// Where they lie.
    pub placement: P,
    /// Requests under way.
    pub requests: OpenRequests<N>,
    /// Writes and trims of backing devices.
    pub backings: Backings,
    /// Residents that an end gives slots; kept for its memory.
    pub(crate) granted: Vec<ResidentId>,
    /// Blocks that have left and are not yet on their backing devices.
    pub evicted: EvictionWriteBacks,
}

impl<P: Placement, N: Copy + Default> StepState<P, N> {
    /// Adds a step and pins its residents; the step of a request begins with the request's note.
    pub fn add(&mut self, step: Step<P::Action>, request: Option<RequestId>) -> StepRef {
        step.pins.iter().for_each(|resident| self.residents.pin(*resident));
        self.graph.add(step, request.map(|id| (id, self.requests.note(id))))
    }

    /// A resident for a block that the cache admits.
    pub fn admit(&mut self, cached: &Cached) -> ResidentId {
        let id = self.residents.admit(cached);
        self.placement.admit(&self.residents, id, cached);
        id
    }

    /// The cache has evicted a block; returns its resident, which leaves.
    pub fn evict(&mut self, cached: &Cached) -> Option<ResidentId> {
        let id = self.residents.evict(cached)?;
        self.placement.leave(id);
        Some(id)
    }

    /// A step no longer touches a resident.
    pub fn unpin(&mut self, id: ResidentId) {
        if self.residents.unpin(id) {
            self.end(id);
        }
    }

    /// Ends a resident if it was evicted and no step touches it.
    pub fn settle(&mut self, id: ResidentId) {
        if self.residents.settle(id) {
            self.end(id);
        }
    }

    fn end(&mut self, id: ResidentId) {
        let StepState { graph, residents, placement, granted, .. } = self;
        placement.end(id, granted);
        for id in granted.drain(..) {
            grant(graph, residents, placement, id);
        }
    }

    /// Residents that waited have slots now.
    pub fn on_granted(&mut self, granted: &[ResidentId]) {
        let StepState { graph, residents, placement, .. } = self;
        granted.iter().for_each(|id| grant(graph, residents, placement, *id));
    }
}

/// A resident that waited has a slot now.
fn grant<P: Placement, N: Copy + Default>(
    graph: &mut Graph<P, N>,
    residents: &ResidentTable,
    placement: &mut P,
    id: ResidentId,
) {
    let step = residents.steps(id).slot_granted;
    if !graph.is_done(step) {
        graph.release(step);
    }
    placement.on_granted(residents, id);
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct UnansweredRequest<N> {
    tag: u64,
    tenant: TenantId,
    /// Required steps not done, and one more until all are known.
    missing: u32,
    failed: bool,
    /// All steps are known.
    closed: bool,
    note: N,
}

/// A request answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestAnswer<N> {
    /// As submitted.
    pub tag: u64,
    /// The tenant that sent it.
    pub tenant: TenantId,
    /// Whether a step that it required has failed.
    pub failed: bool,
    /// The note of the required step that ended last.
    pub note: N,
}

/// Requests under way, and answers not yet taken. A request is answered when the steps that it
/// requires are done and all of them are known.
#[derive(Clone, Debug)]
pub struct OpenRequests<N> {
    open: Vec<UnansweredRequest<N>>,
    free: Vec<RequestId>,
    answers: Vec<RequestAnswer<N>>,
}

impl<N> Default for OpenRequests<N> {
    fn default() -> Self {
        OpenRequests { open: Vec::new(), free: Vec::new(), answers: Vec::new() }
    }
}

impl<N: Copy> OpenRequests<N> {
    /// A request arrives.
    pub fn open(&mut self, tag: u64, tenant: TenantId, note: N) -> RequestId {
        let open =
            UnansweredRequest { tag, tenant, missing: 1, failed: false, closed: false, note };
        match self.free.pop() {
            Some(id) => {
                self.open[id.index()] = open;
                id
            }
            None => {
                self.open.push(open);
                RequestId::new(self.open.len() - 1)
            }
        }
    }

    /// The note of a request not all of whose steps are known: that of the required step that
    /// ended last, at first the one it came with.
    pub fn note(&self, id: RequestId) -> &N {
        let open = &self.open[id.index()];
        debug_assert!(!open.closed, "the note of a closed request lies in its steps");
        &open.note
    }

    /// A request requires one more step.
    pub fn require_step(&mut self, id: RequestId) {
        self.open[id.index()].missing += 1;
    }

    /// A required step is done.
    pub fn end_step(&mut self, id: RequestId, note: &N, failed: bool) {
        let open = &mut self.open[id.index()];
        open.failed |= failed;
        open.missing -= 1;
        if open.missing == 0 {
            self.answer(id, *note);
        } else if !open.closed {
            // Once all steps are known, another one ends behind this one.
            open.note = *note;
        }
    }

    /// All steps of a request are known.
    pub fn close(&mut self, id: RequestId) {
        let open = &mut self.open[id.index()];
        open.closed = true;
        open.missing -= 1;
        if open.missing == 0 {
            let note = open.note;
            self.answer(id, note);
        }
    }

    fn answer(&mut self, id: RequestId, note: N) {
        let UnansweredRequest { tag, tenant, failed, .. } = self.open[id.index()];
        self.answers.push(RequestAnswer { tag, tenant, failed, note });
        self.free.push(id);
    }

    /// The answers since the last call, in order.
    pub fn drain_answers(&mut self) -> impl Iterator<Item = RequestAnswer<N>> + use<'_, N> {
        self.answers.drain(..)
    }

    /// Requests under way.
    pub fn count(&self) -> usize {
        self.open.len() - self.free.len()
    }
}

/// A block that a failed step touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedBlock {
    /// Its resident.
    pub resident: ResidentId,
    /// Its number on the tenant's volume; nothing if only steps of the placement touch it.
    pub number: Option<u64>,
}

/// What a failed step means for its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The backing device or a request has less than it should; cached blocks are whole.
    None,
    /// The cache holds blocks without their content; it must forget them.
    Lost,
    /// Dirty blocks that stay were not written back; they are still dirty.
    StillDirty,
    /// Dirty blocks that were evicted were not written back; their slots are held until
    /// [`Steps::release`](crate::Steps::release).
    Held,
}

/// A step that failed.
#[derive(Clone, Debug)]
pub struct Failure<X> {
    /// What it was to do.
    pub action: Action<X>,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// The number of the decision it belongs to.
    pub decision: u64,
    /// The blocks that it touched.
    pub blocks: Vec<FailedBlock>,
    /// What it means for them.
    pub damage: Damage,
    serial: u64,
}

/// Steps that failed and were not yet reported: their owner lets the cache forget blocks whose
/// content is lost, and takes victims back whose write-back failed.
#[derive(Clone, Debug)]
pub struct FailureLog<X> {
    failures: Vec<Failure<X>>,
}

impl<X> Default for FailureLog<X> {
    fn default() -> Self {
        FailureLog { failures: Vec::new() }
    }
}

impl<X: Copy> FailureLog<X> {
    /// Notes a failed step; returns whether its blocks keep their slots.
    pub fn note(&mut self, residents: &mut ResidentTable, step: &Step<X>, serial: u64) -> bool {
        let damage = damage_of(residents, step);
        let block = |resident: &ResidentId| FailedBlock {
            resident: *resident,
            number: residents.number(*resident),
        };
        let blocks: Vec<FailedBlock> = step.pins.iter().map(block).collect();
        if damage == Damage::Lost {
            blocks.iter().for_each(|block| residents.set_lost(block.resident, true));
        }
        let (action, tenant, decision) = (step.action, step.tenant, step.decision);
        self.failures.push(Failure { action, tenant, decision, blocks, damage, serial });
        damage == Damage::Held
    }

    /// The failures since the last call.
    pub fn take(&mut self) -> Vec<Failure<X>> {
        std::mem::take(&mut self.failures)
    }

    /// The serial number of a failed step that holds slots.
    pub fn release(&self, failure: &Failure<X>) -> Option<u64> {
        (failure.damage == Damage::Held).then_some(failure.serial)
    }
}

fn damage_of<X>(residents: &ResidentTable, step: &Step<X>) -> Damage {
    let evicted = step.pins.iter().any(|resident| residents.is_evicted(*resident));
    match step.action {
        Action::Fill { .. }
        | Action::Cache { op: Op::Write, .. }
        | Action::Device { device: DeviceId::CACHE, op: Op::Write, .. } => Damage::Lost,
        // A fetch whose fill comes behind it.
        Action::Device { op: Op::Read, .. } if !step.pins.is_empty() => Damage::Lost,
        Action::Device { op: Op::Write, .. } if step.cleaning => Damage::StillDirty,
        Action::Device { op: Op::Write, .. } if evicted => Damage::Held,
        _ => Damage::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_graph::TouchedResidents;
    use cachewright_policy::Region;
    use cachewright_types::BlockId;

    fn tags(requests: &mut OpenRequests<u64>) -> Vec<(u64, u64, bool)> {
        let answer = |answer: RequestAnswer<u64>| (answer.tag, answer.note, answer.failed);
        requests.drain_answers().map(answer).collect()
    }

    #[test]
    fn a_request_is_answered_when_all_its_steps_are_known_and_done() {
        let mut requests = OpenRequests::default();
        let [a, b] = [7, 8].map(|tag| requests.open(tag, TenantId(1), 100));
        requests.require_step(a);
        requests.require_step(b);
        assert_eq!(*requests.note(a), 100);
        requests.end_step(a, &150, false);
        assert_eq!((*requests.note(a), *requests.note(b)), (150, 100));
        assert_eq!(tags(&mut requests), [], "more steps may come");
        requests.close(b);
        requests.close(a);
        assert_eq!((tags(&mut requests), requests.count()), (vec![(7, 150, false)], 1));
        assert_eq!(requests.open(9, TenantId(0), 160), a, "the number is free again");
        requests.end_step(b, &170, true);
        assert_eq!((tags(&mut requests), requests.count()), (vec![(8, 170, true)], 1));
    }

    /// Block 3 was evicted and its write-back fails; then the fill of block 4.
    #[test]
    fn only_a_step_that_holds_slots_is_released_by_its_serial_number() {
        let cached = |id| {
            let (id, number, tenant) = (BlockId(id), u64::from(id) + 100, TenantId(2));
            Cached { pool: 0, id, tenant, number, region: Region::Any }
        };
        let mut residents = ResidentTable::default();
        let ids = [3, 4].map(|id| residents.admit(&cached(id)));
        residents.note_plan(ids[0], 103, 1);
        residents.evict(&cached(3));
        let device = DeviceId::new(1);
        let write = Action::Device { device, op: Op::Write, offset: 103 << 12, length: 4096 };
        let fill = Action::Fill { resident: ids[1], length: 4096 };
        let step = |action: Action<()>, resident: ResidentId| {
            Step::new(action, TenantId(2))
                .pinning(TouchedResidents::from(&[resident][..]))
                .of_decision(8)
        };
        let mut log = FailureLog::default();
        assert!(log.note(&mut residents, &step(write, ids[0]), 5));
        assert!(!log.note(&mut residents, &step(fill, ids[1]), 6));
        let failures = log.take();
        let found = failures.iter().map(|found| (found.damage, found.decision, log.release(found)));
        let expected = [(Damage::Held, 8, Some(5)), (Damage::Lost, 8, None)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(failures[0].blocks, [FailedBlock { resident: ids[0], number: Some(103) }]);
        assert!(residents.is_lost(ids[1]) && !residents.is_lost(ids[0]) && log.take().is_empty());
    }
}
