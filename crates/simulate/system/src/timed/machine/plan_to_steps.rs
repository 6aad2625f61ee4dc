//! From plans to steps.
//!
//! For: what each move of a plan becomes, and what it waits for. Must never know: when anything
//! happens. Units: blocks, bytes, nanoseconds. The rules:
//!
//! - blocks next to each other on the same device are one command;
//! - a fetched block is served from memory, and put into the cache beside that (`fill`);
//! - a block on its way is waited for, never fetched twice; while it is being put into the cache
//!   reads of it are served from memory, writes wait;
//! - a block leaves its slot when what was begun for it is done and, if dirty, when it is written
//!   back; a new block waits for a slot;
//! - a backing read or write waits for a write under way to the same block.

use super::super::settings::{Decision, Fill, MachineSettings};
use super::backings::Backings;
use super::ids::{DeviceId, RequestId, ResidentId};
use super::mover::Mover;
use super::open_requests::OpenRequests;
use super::resident_table::ResidentTable;
use super::step::{Action, Step, Steps};
use super::step_graph::StepRef;
use super::write_backs::{DirtyResident, WriteBacks};
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::{Op, TenantId};
use std::ops::Range;

/// What is to be done with one block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Read from the backing device, serve, fill.
    Miss,
    /// Read from the cache.
    Hit,
    /// Write to the cache.
    Write,
}

/// One block of a request in the cache.
#[derive(Clone, Copy, Debug)]
struct Item {
    kind: Kind,
    resident: ResidentId,
    number: u64,
}

/// What a plan is carried out for.
#[derive(Clone, Debug)]
pub struct Purpose {
    /// The request that is answered by it, if one is.
    pub request: Option<RequestId>,
    /// The tenant of its commands.
    pub tenant: TenantId,
    /// What the request asks for; a read where none does.
    pub op: Op,
    /// The bytes asked for; whole blocks where no request asks.
    pub bytes: Range<u64>,
}

/// The parts of a machine that a plan changes.
pub struct PlanParts<'a> {
    /// Steps under way.
    pub steps: &'a mut Steps,
    /// Blocks on the cache device.
    pub residents: &'a mut ResidentTable,
    /// Requests under way.
    pub requests: &'a mut OpenRequests,
    /// Changes of places.
    pub mover: &'a mut Mover,
    /// Writes to backing devices.
    pub backings: &'a mut Backings,
    /// Blocks to be written back.
    pub write_backs: &'a mut WriteBacks,
}

/// What one plan after another needs.
#[derive(Clone, Debug)]
pub struct PlanToSteps {
    fill: Fill,
    decision: Decision,
    decision_ns: u64,
    block_shift: u32,
    /// Plans carried out.
    plans: u64,
    /// Blocks that the last request hit while they were still being read.
    in_flight_blocks: u64,
    /// What is to be done in the cache; kept for its memory.
    items: Vec<Item>,
    /// Numbers of blocks read or written on the backing device alone; kept for its memory.
    around: Vec<u64>,
}

/// One plan that becomes steps.
struct Translation<'a> {
    rules: &'a mut PlanToSteps,
    parts: PlanParts<'a>,
    purpose: Purpose,
    /// The decision that everything, or the filling, waits for.
    decision: StepRef,
    decision_of_fill: StepRef,
}

impl PlanToSteps {
    /// The rules of a machine with blocks of `1 << block_shift` bytes.
    pub fn new(settings: &MachineSettings, block_shift: u32) -> PlanToSteps {
        PlanToSteps {
            fill: settings.fill,
            decision: settings.decision,
            decision_ns: settings.decision_time.0,
            block_shift,
            plans: 0,
            in_flight_blocks: 0,
            items: Vec::new(),
            around: Vec::new(),
        }
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.in_flight_blocks
    }

    /// Makes steps of a plan.
    pub fn translate(&mut self, parts: PlanParts<'_>, purpose: Purpose, plan: &Plan) {
        self.plans += 1;
        if purpose.request.is_some() {
            self.in_flight_blocks = 0;
        }
        let (decision, decision_of_fill) = (StepRef::DONE, StepRef::DONE);
        let mut translation =
            Translation { rules: self, parts, purpose, decision, decision_of_fill };
        translation.decide();
        for step in &plan.moves {
            translation.take(step);
        }
        translation.emit();
    }
}

impl Translation<'_> {
    /// Adds a step on behalf of the request, if it has one.
    fn add(&mut self, step: Step, request: Option<RequestId>) -> StepRef {
        if let Some(request) = request.filter(|_| step.required) {
            self.parts.requests.require_step(request);
        }
        step.add(self.parts.steps, self.parts.residents, request)
    }

    /// Adds a step that touches residents and that the request, if there is one, requires.
    fn add_required(&mut self, action: Action, pins: Vec<ResidentId>) -> StepRef {
        let step = Step { required: true, ..Step::new(action, self.purpose.tenant).pinning(pins) };
        self.add(step, self.purpose.request)
    }

    /// The step that stands for the cache's decision, for everything or for filling.
    fn decide(&mut self) {
        let time_ns = self.rules.decision_ns;
        if time_ns == 0 || self.purpose.request.is_none() {
            return;
        }
        let required = self.rules.decision == Decision::BeforeRequest;
        let step = Step { required, ..Step::new(Action::Delay(time_ns), self.purpose.tenant) };
        let step = self.add(step, self.purpose.request.filter(|_| required));
        self.parts.steps.release(step);
        if required {
            self.decision = step;
        } else {
            self.decision_of_fill = step;
        }
    }

    /// Takes one move into account.
    fn take(&mut self, step: &Move) {
        match step {
            Move::WriteBack(cached) => self.evict(cached, true),
            Move::Drop(cached) => self.evict(cached, false),
            Move::Fetch(cached) => {
                let resident = self.admit(cached);
                self.note(Kind::Miss, resident, cached.number);
            }
            // Every fetched block is put into the cache.
            Move::Fill(_) => {}
            Move::Serve(cached) => self.serve(cached),
            Move::WriteThrough(Cached { number, .. }) | Move::Bypass { number, .. } => {
                self.rules.around.push(*number);
            }
            Move::Clean(cached) => self.clean(cached),
            Move::Swap(one, other) => {
                let residents = &mut *self.parts.residents;
                let pair = [one, other].map(|cached| (residents.find(cached), cached.room));
                self.parts.mover.swap(residents, pair);
            }
            Move::Trim => self.pass_on(self.parts.backings.of(self.purpose.tenant)),
            Move::Flush => {
                self.pass_on(DeviceId::CACHE);
                self.pass_on(self.parts.backings.of(self.purpose.tenant));
            }
        }
    }

    /// Notes what is to be done with a block in the cache.
    fn note(&mut self, kind: Kind, resident: ResidentId, number: u64) {
        self.parts.residents.note_plan(resident, self.rules.plans);
        self.rules.items.push(Item { kind, resident, number });
    }

    /// Makes steps of what this plan has noted so far, if that is about a block.
    fn emit_before(&mut self, resident: ResidentId) {
        if self.parts.residents.is_in_plan(resident, self.rules.plans) {
            self.emit();
        }
    }

    /// The cache evicts a block; what this plan has noted for it goes before.
    fn evict(&mut self, cached: &Cached, dirty: bool) {
        let Some(resident) = self.parts.residents.find(cached) else { return };
        self.emit_before(resident);
        let PlanParts { steps, residents, mover, backings, write_backs, .. } = &mut self.parts;
        residents.evict(cached);
        if dirty {
            let (tenant, number) = (cached.tenant, cached.number);
            let device = backings.of(tenant);
            write_backs.note_evicted(DirtyResident { device, number, resident, tenant });
        } else {
            let granted = residents.settle(resident);
            mover.slots_granted(steps, residents, granted);
        }
    }

    /// The cache cleans a block that stays; what this plan writes to it goes before.
    fn clean(&mut self, cached: &Cached) {
        let Some(resident) = self.parts.residents.find(cached) else { return };
        self.emit_before(resident);
        let PlanParts { steps, residents, backings, write_backs, .. } = &mut self.parts;
        let (tenant, number) = (cached.tenant, cached.number);
        let device = backings.of(tenant);
        let block = DirtyResident { device, number, resident, tenant };
        write_backs.clean(steps, residents, backings, block);
    }

    fn serve(&mut self, cached: &Cached) {
        let known = self.parts.residents.find(cached);
        if let Some(known) = known
            && self.parts.residents.places_mut().set_wanted(known, cached.room)
        {
            self.parts.mover.note_misplaced(self.parts.residents, known);
        }
        if self.purpose.op == Op::Write {
            let resident = known.unwrap_or_else(|| self.admit(cached));
            self.note(Kind::Write, resident, cached.number);
        } else if let Some(known) = known {
            let last = self.rules.items.last();
            let fetched =
                last.is_some_and(|item| item.kind == Kind::Miss && item.resident == known);
            if !fetched {
                self.note(Kind::Hit, known, cached.number);
            }
        }
    }

    /// A resident for a block that the cache admits.
    fn admit(&mut self, cached: &Cached) -> ResidentId {
        let resident = self.parts.residents.admit(cached);
        self.parts.mover.note_misplaced(self.parts.residents, resident);
        if self.parts.residents.places().get(resident).slot().is_none() {
            let step = Step::new(Action::WaitForSlot, cached.tenant).pinning(vec![resident]);
            // A read is answered meanwhile, unless it waits for the filling.
            let waits = self.purpose.op == Op::Write || self.rules.fill == Fill::BeforeAnswer;
            let step = self.add(step, self.purpose.request.filter(|_| waits));
            self.parts.residents.steps_mut(resident).slot_granted = step;
        }
        resident
    }

    /// A trim or flush goes to a device as it is.
    fn pass_on(&mut self, device: DeviceId) {
        self.begin_write_backs();
        let (op, offset) = (self.purpose.op, self.purpose.bytes.start);
        let length = self.purpose.bytes.end - offset;
        if op == Op::Trim && length == 0 {
            return;
        }
        let step = self.add_required(Action::Device { device, op, offset, length }, Vec::new());
        self.parts.steps.wait(step, self.decision);
        self.parts.steps.release(step);
    }

    fn begin_write_backs(&mut self) {
        let PlanParts { steps, residents, backings, write_backs, .. } = &mut self.parts;
        write_backs.begin_evicted(steps, residents, backings);
    }

    /// Makes steps of the blocks noted so far, after those evicted: one of these may come back.
    fn emit(&mut self) {
        self.begin_write_backs();
        let mut items = std::mem::take(&mut self.rules.items);
        let mut rest = items.as_slice();
        while let Some(first) = rest.first() {
            let (run, others) = rest.split_at(self.run_length(rest));
            match first.kind {
                Kind::Miss => self.miss(run),
                Kind::Hit => self.hit(run),
                Kind::Write => self.write(run),
            }
            rest = others;
        }
        items.clear();
        self.rules.items = items;
        let mut around = std::mem::take(&mut self.rules.around);
        for run in around.chunk_by(|a, b| a + 1 == *b) {
            self.around(run[0]..run[0] + run.len() as u64);
        }
        around.clear();
        self.rules.around = around;
    }

    /// How many blocks from the first on can be one command.
    fn run_length(&self, items: &[Item]) -> usize {
        let first = items[0];
        let places = self.parts.residents.places();
        let slot = |item: &Item| places.get(item.resident).slot().map(|slot| slot.0);
        let joins = |(at, item): &(usize, &Item)| {
            let next = item.kind == first.kind && item.number == first.number + *at as u64;
            match first.kind {
                Kind::Miss => next,
                Kind::Hit | Kind::Write => {
                    next && self.is_free(first.resident)
                        && self.is_free(item.resident)
                        && slot(item) == slot(&first).map(|slot| slot + *at as u32)
                }
            }
        };
        1 + items.iter().enumerate().skip(1).take_while(joins).count()
    }

    /// Whether a resident has its slot and nothing writes to it.
    fn is_free(&self, resident: ResidentId) -> bool {
        let known = self.parts.residents.steps(resident);
        self.parts.residents.places().get(resident).slot().is_some()
            && self.parts.steps.is_done(known.fill)
            && self.parts.steps.is_done(known.writer)
    }

    fn miss(&mut self, run: &[Item]) {
        let device = self.parts.backings.of(self.purpose.tenant);
        let shift = self.rules.block_shift;
        let (offset, length) = (run[0].number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Read, offset, length };
        let required = self.purpose.request.is_some();
        let step = Step::new(action, self.purpose.tenant).pinning(residents_of(run));
        let fetch = self.add(Step { required, ..step }, self.purpose.request);
        let PlanParts { steps, backings, .. } = &mut self.parts;
        backings.wait_for_writes(steps, fetch, device, numbers_of(run));
        steps.wait(fetch, self.decision);
        let mut rest = run;
        while let Some(first) = rest.first() {
            let places = self.parts.residents.places();
            let slot = places.get(first.resident).slot();
            let next = |(at, item): &(usize, &Item)| {
                let here = places.get(item.resident).slot();
                slot.zip(here).is_some_and(|(slot, here)| here.0 == slot.0 + *at as u32)
            };
            let count = 1 + rest.iter().enumerate().skip(1).take_while(next).count();
            let (together, others) = rest.split_at(count);
            self.fill(together, fetch);
            rest = others;
        }
        self.parts.steps.release(fetch);
    }

    /// Puts fetched blocks with slots in a row into the cache.
    fn fill(&mut self, run: &[Item], fetch: StepRef) {
        let resident = run[0].resident;
        let length = (run.len() as u64) << self.rules.block_shift;
        let action = Action::Cache { op: Op::Write, resident, skip: 0, length };
        let waited_for = self.rules.fill == Fill::BeforeAnswer && self.purpose.op == Op::Read;
        let request = self.purpose.request.filter(|_| waited_for);
        let step = Step::new(action, self.purpose.tenant).pinning(residents_of(run));
        let fill = self.add(Step { required: request.is_some(), ..step }, request);
        let PlanParts { steps, residents, .. } = &mut self.parts;
        steps.wait(fill, fetch);
        steps.wait(fill, self.decision_of_fill);
        for item in run {
            let known = residents.steps_mut(item.resident);
            (known.fetch, known.fill) = (fetch, fill);
            steps.wait(fill, known.slot_granted);
        }
        steps.release(fill);
    }

    fn hit(&mut self, run: &[Item]) {
        let resident = run[0].resident;
        let known = *self.parts.residents.steps(resident);
        let written = self.parts.steps.is_done(known.writer);
        let action = if written && !self.parts.steps.is_done(known.fill) {
            Action::Pass
        } else {
            let (skip, length) = self.clip(numbers_of(run));
            Action::Cache { op: Op::Read, resident, skip, length }
        };
        let requested = self.purpose.request.is_some();
        if requested && written && !self.parts.steps.is_done(known.fetch) {
            self.rules.in_flight_blocks += run.len() as u64;
        }
        let step = self.add_required(action, residents_of(run));
        let steps = &mut *self.parts.steps;
        steps.wait(step, if written { known.fetch } else { known.writer });
        steps.wait(step, self.decision);
        steps.release(step);
    }

    fn write(&mut self, run: &[Item]) {
        let resident = run[0].resident;
        let (skip, length) = self.clip(numbers_of(run));
        let action = Action::Cache { op: Op::Write, resident, skip, length };
        let step = self.add_required(action, residents_of(run));
        let PlanParts { steps, residents, .. } = &mut self.parts;
        steps.wait(step, self.decision);
        for item in run {
            let known = residents.steps_mut(item.resident);
            for before in [known.slot_granted, known.fill, known.writer] {
                steps.wait(step, before);
            }
            known.writer = step;
        }
        steps.release(step);
    }

    /// Reads or writes blocks on the backing device alone.
    fn around(&mut self, blocks: Range<u64>) {
        let device = self.parts.backings.of(self.purpose.tenant);
        let (skip, length) = self.clip(blocks.clone());
        let offset = (blocks.start << self.rules.block_shift) + skip;
        let op = self.purpose.op;
        let step = self.add_required(Action::Device { device, op, offset, length }, Vec::new());
        let PlanParts { steps, backings, .. } = &mut self.parts;
        backings.wait_for_writes(steps, step, device, blocks.clone());
        steps.wait(step, self.decision);
        if op == Op::Write {
            backings.note_writes(step, device, blocks);
        }
        steps.release(step);
    }

    /// The request's bytes of a run of blocks: where they begin in the first, and how many.
    fn clip(&self, blocks: Range<u64>) -> (u64, u64) {
        let shift = self.rules.block_shift;
        let (start, end) = (blocks.start << shift, blocks.end << shift);
        let bytes = &self.purpose.bytes;
        let from = bytes.start.clamp(start, end);
        (from - start, bytes.end.clamp(from, end) - from)
    }
}

/// The numbers of a run of blocks.
fn numbers_of(run: &[Item]) -> Range<u64> {
    run[0].number..run[0].number + run.len() as u64
}

fn residents_of(run: &[Item]) -> Vec<ResidentId> {
    run.iter().map(|item| item.resident).collect()
}

#[cfg(test)]
mod tests;
