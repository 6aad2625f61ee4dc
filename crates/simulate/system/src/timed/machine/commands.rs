//! Commands of one plan: what runs of blocks become, and what these wait for.
//!
//! For: blocks next to each other on the same device as one command. Must never know: moves of
//! plans, evictions, changes of places. Units: blocks, bytes, nanoseconds. The rules:
//!
//! - a fetched block is served from memory, and put into the cache beside that (`fill`);
//! - a block on its way is waited for, never fetched twice; while it is being put into the cache
//!   reads of it are served from memory, writes wait;
//! - a backing read or write waits for a write under way to the same block.

use super::super::settings::{Decision, Fill, MachineSettings};
use super::backings::Backings;
use super::ids::{DeviceId, RequestId, ResidentId};
use super::open_requests::OpenRequests;
use super::resident_table::ResidentTable;
use super::step::{Action, Step, Steps};
use super::step_graph::StepRef;
use cachewright_types::{Op, TenantId};
use std::ops::Range;

/// What is to be done with one block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read from the backing device, serve, fill.
    Miss,
    /// Read from the cache.
    Hit,
    /// Write to the cache.
    Write,
}

/// One block of a request in the cache.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// What is to be done.
    pub kind: Kind,
    /// The block on the cache device.
    pub resident: ResidentId,
    /// Its number on the backing device.
    pub number: u64,
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

/// The parts of a machine that commands change.
pub struct CommandParts<'a> {
    /// Steps under way.
    pub steps: &'a mut Steps,
    /// Blocks on the cache device.
    pub residents: &'a mut ResidentTable,
    /// Requests under way.
    pub requests: &'a mut OpenRequests,
    /// Writes to backing devices.
    pub backings: &'a mut Backings,
}

/// What the commands of all plans have in common.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    fill: Fill,
    decision: Decision,
    decision_ns: u64,
    block_shift: u32,
}

/// The commands of one plan.
pub struct Commands {
    rules: Rules,
    purpose: Purpose,
    /// The decision that everything, or the filling, waits for.
    decision: StepRef,
    decision_of_fill: StepRef,
}

impl Rules {
    /// The rules of a machine with blocks of `1 << block_shift` bytes.
    pub fn new(settings: &MachineSettings, block_shift: u32) -> Rules {
        let decision_ns = settings.decision_time.0;
        Rules { fill: settings.fill, decision: settings.decision, decision_ns, block_shift }
    }
}

impl Commands {
    /// Begins with the step that stands for the cache's decision, if it takes time.
    pub fn new(parts: &mut CommandParts<'_>, rules: Rules, purpose: Purpose) -> Commands {
        let (decision, decision_of_fill) = (StepRef::DONE, StepRef::DONE);
        let mut commands = Commands { rules, purpose, decision, decision_of_fill };
        if rules.decision_ns == 0 || commands.purpose.request.is_none() {
            return commands;
        }
        let required = rules.decision == Decision::BeforeRequest;
        let request = commands.purpose.request.filter(|_| required);
        let action = Action::Delay(rules.decision_ns);
        let step = commands.add(parts, action, Vec::new(), (request, required));
        parts.steps.release(step);
        if required {
            commands.decision = step;
        } else {
            commands.decision_of_fill = step;
        }
        commands
    }

    /// What they are for.
    pub fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    /// Adds a step that touches residents, for a request which may require it.
    fn add(
        &self,
        parts: &mut CommandParts<'_>,
        action: Action,
        pins: Vec<ResidentId>,
        (request, required): (Option<RequestId>, bool),
    ) -> StepRef {
        if let Some(request) = request.filter(|_| required) {
            parts.requests.require_step(request);
        }
        let step = Step { required, ..Step::new(action, self.purpose.tenant).pinning(pins) };
        step.add(parts.steps, parts.residents, request)
    }

    /// Adds a step that the request, if there is one, requires.
    fn add_required(
        &self,
        parts: &mut CommandParts<'_>,
        action: Action,
        pins: Vec<ResidentId>,
    ) -> StepRef {
        self.add(parts, action, pins, (self.purpose.request, true))
    }

    /// A block that the cache admits waits for a slot.
    pub fn wait_for_slot(&self, parts: &mut CommandParts<'_>, resident: ResidentId) {
        // A read is answered meanwhile, unless it waits for the filling.
        let waits = self.purpose.op == Op::Write || self.rules.fill == Fill::BeforeAnswer;
        let request = self.purpose.request.filter(|_| waits);
        let step = self.add(parts, Action::WaitForSlot, vec![resident], (request, false));
        parts.residents.steps_mut(resident).slot_granted = step;
    }

    /// A trim or flush goes to a device as it is.
    pub fn pass_on(&self, parts: &mut CommandParts<'_>, device: DeviceId) {
        let (op, offset) = (self.purpose.op, self.purpose.bytes.start);
        let length = self.purpose.bytes.end - offset;
        if op == Op::Trim && length == 0 {
            return;
        }
        let action = Action::Device { device, op, offset, length };
        let step = self.add_required(parts, action, Vec::new());
        parts.steps.wait(step, self.decision);
        parts.steps.release(step);
    }

    /// Reads and writes blocks in the cache; returns how many of them are still being read.
    pub fn in_cache(&self, parts: &mut CommandParts<'_>, items: &[Item]) -> u64 {
        let (mut rest, mut in_flight_blocks) = (items, 0);
        while let Some(first) = rest.first() {
            let (run, others) = rest.split_at(run_length(parts, rest));
            match first.kind {
                Kind::Miss => self.miss(parts, run),
                Kind::Hit => in_flight_blocks += self.hit(parts, run),
                Kind::Write => self.write(parts, run),
            }
            rest = others;
        }
        in_flight_blocks
    }

    /// Reads or writes blocks on the backing device alone.
    pub fn around(&self, parts: &mut CommandParts<'_>, numbers: &[u64]) {
        for run in numbers.chunk_by(|a, b| a + 1 == *b) {
            self.around_run(parts, run[0]..run[0] + run.len() as u64);
        }
    }

    fn miss(&self, parts: &mut CommandParts<'_>, run: &[Item]) {
        let device = parts.backings.of(self.purpose.tenant);
        let shift = self.rules.block_shift;
        let (offset, length) = (run[0].number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Read, offset, length };
        let fetch = self.add_required(parts, action, residents_of(run));
        parts.backings.wait_for_writes(parts.steps, fetch, device, numbers_of(run));
        parts.steps.wait(fetch, self.decision);
        let mut rest = run;
        while let Some(first) = rest.first() {
            let places = parts.residents.places();
            let slot = places.get(first.resident).slot();
            let next = |(at, item): &(usize, &Item)| {
                let here = places.get(item.resident).slot();
                slot.zip(here).is_some_and(|(slot, here)| here.0 == slot.0 + *at as u32)
            };
            let count = 1 + rest.iter().enumerate().skip(1).take_while(next).count();
            let (together, others) = rest.split_at(count);
            self.fill(parts, together, fetch);
            rest = others;
        }
        parts.steps.release(fetch);
    }

    /// Puts fetched blocks with slots in a row into the cache.
    fn fill(&self, parts: &mut CommandParts<'_>, run: &[Item], fetch: StepRef) {
        let resident = run[0].resident;
        let length = (run.len() as u64) << self.rules.block_shift;
        let action = Action::Cache { op: Op::Write, resident, skip: 0, length };
        let waited_for = self.rules.fill == Fill::BeforeAnswer && self.purpose.op == Op::Read;
        let request = self.purpose.request.filter(|_| waited_for);
        let fill = self.add(parts, action, residents_of(run), (request, request.is_some()));
        parts.steps.wait(fill, fetch);
        parts.steps.wait(fill, self.decision_of_fill);
        for item in run {
            let known = parts.residents.steps_mut(item.resident);
            (known.fetch, known.fill) = (fetch, fill);
            parts.steps.wait(fill, known.slot_granted);
        }
        parts.steps.release(fill);
    }

    /// Reads blocks from the cache; returns how many are still being read for another request.
    fn hit(&self, parts: &mut CommandParts<'_>, run: &[Item]) -> u64 {
        let resident = run[0].resident;
        let known = *parts.residents.steps(resident);
        let written = parts.steps.is_done(known.writer);
        let action = if written && !parts.steps.is_done(known.fill) {
            Action::Pass
        } else {
            let (skip, length) = self.clip(numbers_of(run));
            Action::Cache { op: Op::Read, resident, skip, length }
        };
        let requested = self.purpose.request.is_some();
        let in_flight = requested && written && !parts.steps.is_done(known.fetch);
        let step = self.add_required(parts, action, residents_of(run));
        parts.steps.wait(step, if written { known.fetch } else { known.writer });
        parts.steps.wait(step, self.decision);
        parts.steps.release(step);
        if in_flight { run.len() as u64 } else { 0 }
    }

    fn write(&self, parts: &mut CommandParts<'_>, run: &[Item]) {
        let resident = run[0].resident;
        let (skip, length) = self.clip(numbers_of(run));
        let action = Action::Cache { op: Op::Write, resident, skip, length };
        let step = self.add_required(parts, action, residents_of(run));
        parts.steps.wait(step, self.decision);
        for item in run {
            let known = parts.residents.steps_mut(item.resident);
            for before in [known.slot_granted, known.fill, known.writer] {
                parts.steps.wait(step, before);
            }
            known.writer = step;
        }
        parts.steps.release(step);
    }

    fn around_run(&self, parts: &mut CommandParts<'_>, blocks: Range<u64>) {
        let device = parts.backings.of(self.purpose.tenant);
        let (skip, length) = self.clip(blocks.clone());
        let offset = (blocks.start << self.rules.block_shift) + skip;
        let op = self.purpose.op;
        let action = Action::Device { device, op, offset, length };
        let step = self.add_required(parts, action, Vec::new());
        parts.backings.wait_for_writes(parts.steps, step, device, blocks.clone());
        parts.steps.wait(step, self.decision);
        if op == Op::Write {
            parts.backings.note_writes(step, device, blocks);
        }
        parts.steps.release(step);
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

/// How many blocks from the first on can be one command.
fn run_length(parts: &CommandParts<'_>, items: &[Item]) -> usize {
    let first = items[0];
    let places = parts.residents.places();
    let slot = |item: &Item| places.get(item.resident).slot().map(|slot| slot.0);
    let joins = |(at, item): &(usize, &Item)| {
        let next = item.kind == first.kind && item.number == first.number + *at as u64;
        match first.kind {
            Kind::Miss => next,
            Kind::Hit | Kind::Write => {
                next && is_free(parts, first.resident)
                    && is_free(parts, item.resident)
                    && slot(item) == slot(&first).map(|slot| slot + *at as u32)
            }
        }
    };
    1 + items.iter().enumerate().skip(1).take_while(joins).count()
}

/// Whether a resident has its slot and nothing writes to it.
fn is_free(parts: &CommandParts<'_>, resident: ResidentId) -> bool {
    let known = parts.residents.steps(resident);
    parts.residents.places().get(resident).slot().is_some()
        && parts.steps.is_done(known.fill)
        && parts.steps.is_done(known.writer)
}

/// The numbers of a run of blocks.
fn numbers_of(run: &[Item]) -> Range<u64> {
    run[0].number..run[0].number + run.len() as u64
}

fn residents_of(run: &[Item]) -> Vec<ResidentId> {
    run.iter().map(|item| item.resident).collect()
}
