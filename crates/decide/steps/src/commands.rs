//! Commands of one plan: what runs of blocks become, and what these wait for.
//!
//! For: blocks next to each other on the same device as one command. Must never know: moves of
//! plans, evictions, changes of places. Units: blocks, bytes. The rules:
//!
//! - a fetched block is served from memory, and put into the cache beside that (`fill`);
//! - a block on its way is waited for, never fetched twice; while it is being put into the cache
//!   reads of it are served from memory, writes wait;
//! - a backing read or write waits for writes and trims under way to the same blocks, a trim for
//!   those in its range; a flush makes durable what was answered before, and waits for none;
//! - a read of a block that has left waits for its write-back; it fails if that does, and so does a
//!   write to a part of the block;
//! - what needs data that a failed step was to bring fails, too.

use crate::ids::{DeviceId, RequestId, ResidentId};
use crate::items::{AccessKind, Item};
use crate::pins::Pins;
use crate::placement::Placement;
use crate::purpose::Purpose;
use crate::rules::{Decision, Fill, Rules};
use crate::state::StepState;
use crate::step::{Action, Step};
use crate::step_graph::StepRef;
use cachewright_types::{Op, block_numbers};
use std::ops::Range;

/// The commands of one plan.
pub struct Commands {
    rules: Rules,
    purpose: Purpose,
    /// The number of the plan.
    plan: u64,
    /// The decision that everything, or the filling, waits for.
    decision: StepRef,
    fill_decision: StepRef,
}

impl Commands {
    /// Begins with the step that stands for the cache's decision, if it takes time.
    pub fn new<P: Placement, N: Copy + Default>(
        state: &mut StepState<P, N>,
        rules: Rules,
        purpose: Purpose,
        plan: u64,
    ) -> Commands {
        let (decision, fill_decision) = (StepRef::DONE, StepRef::DONE);
        let mut commands = Commands { rules, purpose, plan, decision, fill_decision };
        let Some(kind) = rules.decision.filter(|_| commands.purpose.request.is_some()) else {
            return commands;
        };
        let required = kind == Decision::BeforeRequest;
        let request = commands.purpose.request.filter(|_| required);
        let step = commands.add(state, Action::Decide, Pins::NONE, (request, required));
        state.graph.release(step);
        if required {
            commands.decision = step;
        } else {
            commands.fill_decision = step;
        }
        commands
    }

    /// What they are for.
    pub fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    /// Adds a step that touches residents, for a request which may require it.
    fn add<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        action: Action<P::Action>,
        pins: Pins,
        (request, required): (Option<RequestId>, bool),
    ) -> StepRef {
        if let Some(request) = request.filter(|_| required) {
            state.requests.require_step(request);
        }
        let step = Step::new(action, self.purpose.tenant).pinning(pins).of_decision(self.plan);
        state.add(Step { required, ..step }, request)
    }

    /// Adds a step that the request, if there is one, requires.
    fn add_required<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        action: Action<P::Action>,
        pins: Pins,
    ) -> StepRef {
        self.add(state, action, pins, (self.purpose.request, true))
    }

    /// A block that the cache admits waits for a slot.
    pub fn wait_for_slot<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        resident: ResidentId,
    ) {
        // A read is answered meanwhile, unless it waits for the filling.
        let waits = self.purpose.op == Op::Write || self.rules.fill == Fill::BeforeAnswer;
        let request = self.purpose.request.filter(|_| waits);
        let step =
            self.add(state, Action::WaitForSlot, Pins::from(&[resident][..]), (request, false));
        state.residents.steps_mut(resident).slot_granted = step;
    }

    /// A trim or flush goes to a device as it is.
    pub fn pass_on<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        device: DeviceId,
    ) {
        let (op, offset) = (self.purpose.op, self.purpose.bytes.start);
        let length = self.purpose.bytes.end - offset;
        if op == Op::Trim && length == 0 {
            return;
        }
        let action = Action::Device { device, op, offset, length };
        let step = self.add_required(state, action, Pins::NONE);
        state.graph.wait(step, self.decision);
        if op == Op::Trim {
            let blocks = block_numbers(offset, length, self.rules.block_shift);
            state.backings.wait_for_changes(&mut state.graph, step, device, blocks);
            state.backings.note_trim(step, device, offset, length);
        }
        state.graph.release(step);
    }

    /// Reads and writes blocks in the cache; returns how many of them are still being read.
    pub fn in_cache<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        items: &[Item],
    ) -> u64 {
        let (mut rest, mut in_flight_blocks) = (items, 0);
        while let Some(first) = rest.first() {
            let (run, others) = rest.split_at(self.run_length(state, rest));
            match first.kind {
                AccessKind::Miss => self.miss(state, run),
                AccessKind::Hit => in_flight_blocks += self.hit(state, run),
                AccessKind::Write => self.write(state, run),
            }
            rest = others;
        }
        in_flight_blocks
    }

    /// Reads or writes blocks on the backing device alone.
    pub fn around<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        numbers: &[u64],
    ) {
        let mut rest = numbers;
        while let Some(first) = rest.first() {
            let joins = |(number, next): &(u64, &u64)| number == *next;
            let count = 1 + (first + 1..).zip(&rest[1..]).take_while(joins).count();
            self.around_run(state, *first..first + count as u64);
            rest = &rest[count..];
        }
    }

    /// How many blocks from the first on can be one command.
    fn run_length<P: Placement, N: Copy + Default>(
        &self,
        state: &StepState<P, N>,
        items: &[Item],
    ) -> usize {
        let Some((first, rest)) = items.split_first() else { return 0 };
        let next = |(before, item): &(u64, &Item)| {
            item.kind == first.kind && item.number == first.number + 1 + before
        };
        let following = (0..).zip(rest).take_while(next);
        if first.kind == AccessKind::Miss {
            return 1 + following.count();
        }
        // Nothing joins a block without its slot, or one that is being written.
        if rest.is_empty() || !is_free(state, first.resident) {
            return 1;
        }
        let slot = state.placement.slot(first.resident).map(|slot| slot.0);
        let joins = |(before, item): &(u64, &Item)| {
            let here = state.placement.slot(item.resident).map(|slot| slot.0);
            here == slot.map(|slot| slot + 1 + *before as u32) && is_free(state, item.resident)
        };
        1 + following.take_while(joins).count()
    }

    fn miss<P: Placement, N: Copy + Default>(&self, state: &mut StepState<P, N>, run: &[Item]) {
        let fetch = self.fetch(state, run);
        let mut rest = run;
        while let Some(first) = rest.first() {
            let slot = state.placement.slot(first.resident);
            let next = |(index, item): &(usize, &Item)| {
                let here = state.placement.slot(item.resident);
                slot.zip(here).is_some_and(|(slot, here)| here.0 == slot.0 + *index as u32)
            };
            let count = 1 + rest.iter().enumerate().skip(1).take_while(next).count();
            let (together, others) = rest.split_at(count);
            self.fill(state, together, fetch);
            rest = others;
        }
        state.graph.release(fetch);
    }

    /// Reads blocks from the backing device.
    fn fetch<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        run: &[Item],
    ) -> StepRef {
        let device = state.backings.device_of(self.purpose.tenant);
        let shift = self.rules.block_shift;
        let (offset, length) = (run[0].number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Read, offset, length };
        let fetch = self.add_required(state, action, Item::residents(run));
        state.backings.need_changes(&mut state.graph, fetch, device, Item::numbers(run));
        self.fail_if_held(state, fetch, Item::numbers(run));
        state.graph.wait(fetch, self.decision);
        fetch
    }

    /// Fails a read of blocks whose device has older content, because their write-back has failed.
    fn fail_if_held<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        step: StepRef,
        mut numbers: Range<u64>,
    ) {
        let device = state.backings.device_of(self.purpose.tenant);
        if !state.leaving.is_empty() && numbers.any(|number| is_held(state, device, number)) {
            state.graph.fail(step);
        }
    }

    /// Puts fetched blocks with slots in a row into the cache.
    fn fill<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        run: &[Item],
        fetch: StepRef,
    ) {
        let resident = run[0].resident;
        let length = (run.len() as u64) << self.rules.block_shift;
        let waited_for = self.rules.fill == Fill::BeforeAnswer && self.purpose.op == Op::Read;
        let request = self.purpose.request.filter(|_| waited_for);
        let action = Action::Fill { resident, length };
        let fill = self.add(state, action, Item::residents(run), (request, request.is_some()));
        state.graph.need(fill, fetch);
        state.graph.wait(fill, self.fill_decision);
        for item in run {
            let known = state.residents.steps_mut(item.resident);
            (known.fetch, known.fill) = (fetch, fill);
            state.graph.wait(fill, known.slot_granted);
        }
        state.graph.release(fill);
    }

    /// Reads blocks from the cache; returns how many are still being read for another request.
    fn hit<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        run: &[Item],
    ) -> u64 {
        let resident = run[0].resident;
        let known = *state.residents.steps(resident);
        let written = state.graph.is_done(known.writer);
        let action = if written && !state.graph.is_done(known.fill) {
            Action::Pass
        } else {
            let (skip, length) = self.purpose.clip(Item::numbers(run), self.rules.block_shift);
            Action::Cache { op: Op::Read, resident, skip, length }
        };
        let requested = self.purpose.request.is_some();
        let in_flight = requested && written && !state.graph.is_done(known.fetch);
        let step = self.add_required(state, action, Item::residents(run));
        state.graph.need(step, if written { known.fetch } else { known.writer });
        state.graph.wait(step, self.decision);
        // What is being written is there afterwards, or the step fails with the other one.
        if written
            && state.residents.has_lost()
            && run.iter().any(|item| state.residents.is_lost(item.resident))
        {
            state.graph.fail(step);
        }
        state.graph.release(step);
        if in_flight { run.len() as u64 } else { 0 }
    }

    fn write<P: Placement, N: Copy + Default>(&self, state: &mut StepState<P, N>, run: &[Item]) {
        let resident = run[0].resident;
        let (skip, length) = self.purpose.clip(Item::numbers(run), self.rules.block_shift);
        let action = Action::Cache { op: Op::Write, resident, skip, length };
        let step = self.add_required(state, action, Item::residents(run));
        state.graph.wait(step, self.decision);
        for item in run {
            let whole = self.purpose.covers(item.number, self.rules.block_shift);
            if state.residents.has_lost() && state.residents.is_lost(item.resident) {
                let writer = state.residents.steps(item.resident).writer;
                if whole {
                    state.residents.set_lost(item.resident, false);
                } else if state.graph.is_done(writer) {
                    state.graph.fail(step);
                }
            }
            let known = state.residents.steps_mut(item.resident);
            let before = [known.slot_granted, known.fill, known.writer];
            known.writer = step;
            for before in before {
                if whole {
                    state.graph.wait(step, before);
                } else {
                    state.graph.need(step, before);
                }
            }
        }
        state.graph.release(step);
    }

    fn around_run<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        blocks: Range<u64>,
    ) {
        let device = state.backings.device_of(self.purpose.tenant);
        let (skip, length) = self.purpose.clip(blocks.clone(), self.rules.block_shift);
        let offset = (blocks.start << self.rules.block_shift) + skip;
        let op = self.purpose.op;
        let action = Action::Device { device, op, offset, length };
        let step = self.add_required(state, action, Pins::NONE);
        if op == Op::Write {
            state.backings.wait_for_changes(&mut state.graph, step, device, blocks.clone());
            self.need_whole_blocks(state, step, blocks.clone());
        } else {
            state.backings.need_changes(&mut state.graph, step, device, blocks.clone());
            self.fail_if_held(state, step, blocks.clone());
        }
        state.graph.wait(step, self.decision);
        if op == Op::Write {
            state.backings.note_writes(step, device, blocks);
        }
        state.graph.release(step);
    }

    /// A write to a part of a block needs the rest of it on the device.
    fn need_whole_blocks<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        step: StepRef,
        blocks: Range<u64>,
    ) {
        let device = state.backings.device_of(self.purpose.tenant);
        for number in [blocks.start, blocks.end - 1] {
            if state.leaving.find(device, number).is_some()
                && !self.purpose.covers(number, self.rules.block_shift)
            {
                state.backings.need_changes(&mut state.graph, step, device, number..number + 1);
                self.fail_if_held(state, step, number..number + 1);
            }
        }
    }
}

/// Whether the write-back of a block has failed and nothing changes the block since.
fn is_held<P: Placement, N: Copy + Default>(
    state: &StepState<P, N>,
    device: DeviceId,
    number: u64,
) -> bool {
    let known = state.leaving.find(device, number).filter(|block| block.failed);
    known.is_some_and(|block| !state.backings.is_changing(device, number, block.write))
}

/// Whether a resident has its slot and nothing writes to it.
fn is_free<P: Placement, N: Copy + Default>(state: &StepState<P, N>, resident: ResidentId) -> bool {
    let known = state.residents.steps(resident);
    state.placement.slot(resident).is_some()
        && state.graph.is_done(known.fill)
        && state.graph.is_done(known.writer)
}
