//! Plans under way: the component that a machine or a daemon owns.
//!
//! For: plans in, steps out as they may begin, answers when they are done. Must never know: how a
//! step is carried out, how long it takes, policies. Units: bytes, blocks. The owner takes steps
//! with [`Steps::next_step`], carries each out and ends it with [`Steps::finish`]. Invariants: each
//! request is answered once; a slot holds one block; a step begins once, after everything it waits
//! for.

use crate::backings::Backings;
use crate::failure::{Failure, FailureLog};
use crate::ids::{DeviceId, ResidentId, StepId};
use crate::leaving::Leaving;
use crate::open_requests::{OpenRequests, RequestAnswer};
use crate::placement::Placement;
use crate::plan_to_steps::PlanToSteps;
use crate::purpose::Purpose;
use crate::resident_table::{ResidentRef, ResidentTable};
use crate::rules::Rules;
use crate::state::StepState;
use crate::step::{Action, Step};
use crate::step_graph::{Finished, Outcome, StepGraph};
use crate::write_backs::{DirtyResident, WriteBacks};
use cachewright_cache::{Move, Plan};
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
            leaving: Leaving::default(),
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

    /// The next step that may begin. Steps that need a failed one end here; by the rules, so does a
    /// fill of blocks that have left since, unless a step waits for it.
    #[inline]
    pub fn next_step(&mut self) -> Option<Ready<P::Action>> {
        loop {
            let id = self.state.graph.next_ready()?;
            if self.state.graph.has_failed(id) {
                self.finish(id, Outcome::Failed);
                continue;
            }
            if !self.plan_to_steps.rules().fills_late {
                self.leave_out_fill(id);
            }
            let Some(step) = self.state.graph.action(id) else { continue };
            let (action, tenant, decision) = (step.action, step.tenant, step.decision);
            return Some(Ready { id, action, tenant, decision });
        }
    }

    /// A fill of blocks that have all left since does nothing.
    fn leave_out_fill(&mut self, id: StepId) {
        let StepState { graph, residents, .. } = &mut self.state;
        if graph.is_waited_for(id) {
            return;
        }
        let Some(step) = graph.action_mut(id) else { return };
        if matches!(step.action, Action::Fill { .. })
            && step.pins.iter().all(|resident| residents.is_evicted(*resident))
        {
            step.action = Action::Pass;
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
        self.end_leaving(&step, failed, held);
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
    fn end_leaving(&mut self, step: &Step<P::Action>, failed: bool, held: bool) {
        let Action::Device { device, op, offset, length } = step.action else { return };
        if device == DeviceId::CACHE || !matches!(op, Op::Write | Op::Trim) {
            return;
        }
        let StepState { leaving, residents, .. } = &mut self.state;
        if held {
            for resident in step.pins.iter() {
                let number = residents.number(*resident);
                number.into_iter().for_each(|number| leaving.fail(device, number, *resident));
            }
        } else if !failed {
            let shift = self.plan_to_steps.rules().block_shift;
            leaving.end(device, whole_block_numbers(offset, length, shift), step.decision);
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
                self.state.leaving.take(device, number, block.resident);
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
        let changes = self.state.backings.changes() + self.state.leaving.len();
        let cleaning = self.write_backs.cleaning();
        if idle && (requests > 0 || steps > 0 || changes > 0 || cleaning > 0) {
            return Err(format!(
                "{requests} requests, {steps} steps, {changes} writes, {cleaning} cleanings open"
            ));
        }
        Ok(())
    }
}
