//! From plans to steps: the moves of a plan in order, the commands that they become, and what these
//! wait for.
//!
//! - Blocks of a plan are noted first and become commands at its end, so that neighbours are one
//!   command; an eviction or a cleaning of a block already noted makes commands before it.
//! - A block leaves its slot when what was begun for it is done and, if dirty, when it is written
//!   back; a new block waits for a slot.
//! - A fetched block is served from memory, and put into the cache beside that (`fill`).
//! - A block on its way is waited for, never fetched twice; while it is being put into the cache
//!   reads of it are served from memory, writes wait.
//! - A backing read or write waits for writes and trims under way to the same blocks, a trim for
//!   those in its range; a flush makes durable what was answered before, and waits for none.
//! - A read of a block that has left waits for its write-back; it fails if that does, and so does a
//!   write to a part of the block.
//! - What needs data that a failed step was to bring fails, too.

use crate::residents::Placement;
use crate::step_graph::{
    Action, DeviceId, RequestId, ResidentId, SlotId, Step, StepRef, TouchedResidents,
};
use crate::steps::StepState;
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::{Op, TenantId, block_numbers, choices};
use std::ops::Range;

choices! {
    /// When a read miss is answered.
    pub enum Fill {
        /// When the block has been read; it is put into the cache afterwards.
        AfterAnswer = "after-answer",
        /// When the block has also been put into the cache.
        BeforeAnswer = "before-answer",
    }
}

choices! {
    /// What waits for the cache's decision.
    pub enum Decision {
        /// The whole request.
        BeforeRequest = "before-request",
        /// Only the filling of the cache: a miss is answered meanwhile.
        BeforeFill = "before-fill",
    }
}

/// What the steps of all plans have in common.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// When a read miss is answered.
    pub fill: Fill,
    /// What waits for a step that stands for the decision; nothing where decisions take no time.
    pub decision: Option<Decision>,
    /// log2 of the block size in bytes.
    pub block_shift: u32,
}

/// What a plan is carried out for.
#[derive(Clone, Debug)]
pub struct Purpose {
    /// The request that is answered by it, if one is.
    pub request: Option<RequestId>,
    /// The tenant of its commands.
    pub tenant: TenantId,
    /// The request's operation; a read where there is no request.
    pub op: Op,
    /// The request's bytes; whole blocks where there is no request.
    pub bytes: Range<u64>,
}

impl Purpose {
    /// The request's bytes of a run of blocks: where they begin in the first, and how many.
    pub fn clip(&self, blocks: Range<u64>, shift: u32) -> (u64, u64) {
        let (start, end) = (first_byte(blocks.start, shift), first_byte(blocks.end, shift));
        let from = self.bytes.start.clamp(start, end);
        (from - start, self.bytes.end.clamp(from, end) - from)
    }

    /// Whether the request covers a whole block.
    pub fn covers(&self, number: u64, shift: u32) -> bool {
        let (start, end) = (first_byte(number, shift), first_byte(number + 1, shift));
        self.bytes.start <= start && end <= self.bytes.end
    }
}

/// The first byte of a block; the last address for blocks beyond it.
fn first_byte(number: u64, shift: u32) -> u64 {
    number.saturating_mul(1 << shift)
}

/// What is to be done with one block in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
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
    pub kind: AccessKind,
    /// The block on the cache device.
    pub resident: ResidentId,
    /// Its number on the backing device.
    pub number: u64,
}

impl Item {
    /// The numbers of a run of blocks, of which there is one at least.
    pub fn numbers(run: &[Item]) -> Range<u64> {
        run[0].number..run[0].number + run.len() as u64
    }

    /// The residents of a run of blocks.
    pub fn residents(run: &[Item]) -> TouchedResidents {
        run.iter().map(|item| item.resident).collect()
    }
}

/// What one plan after another needs.
#[derive(Clone, Debug)]
pub struct PlanToSteps {
    rules: Rules,
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
struct PlanTranslation<'a, P: Placement, N> {
    own: &'a mut PlanToSteps,
    state: &'a mut StepState<P, N>,
    write_backs: &'a mut WriteBacks,
    commands: Commands,
}

impl PlanToSteps {
    /// The translator of plans under some rules.
    pub fn new(rules: Rules) -> PlanToSteps {
        PlanToSteps { rules, plans: 0, in_flight_blocks: 0, items: Vec::new(), around: Vec::new() }
    }

    /// The rules of all plans.
    #[inline]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Blocks that the last request hit while they were still being read.
    pub fn in_flight_blocks(&self) -> u64 {
        self.in_flight_blocks
    }

    /// The number of the last plan.
    pub fn plans(&self) -> u64 {
        self.plans
    }

    /// Makes steps of a plan.
    pub fn translate<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        write_backs: &mut WriteBacks,
        purpose: Purpose,
        plan: &Plan,
    ) {
        self.plans += 1;
        if purpose.request.is_some() {
            self.in_flight_blocks = 0;
        }
        let commands = Commands::new(state, self.rules, purpose, self.plans);
        let mut translation = PlanTranslation { own: self, state, write_backs, commands };
        for step in &plan.moves {
            translation.take(step);
        }
        translation.emit();
    }
}

impl<P: Placement, N: Copy + Default> PlanTranslation<'_, P, N> {
    /// Takes one move into account.
    fn take(&mut self, step: &Move) {
        match step {
            Move::WriteBack(cached) => self.evict(cached, true),
            Move::Drop(cached) | Move::Discard { cached, .. } => self.evict(cached, false),
            Move::Fetch(cached) => {
                let resident = self.admit(cached);
                self.note(AccessKind::Miss, resident, cached.number);
            }
            // Every fetched block is put into the cache.
            Move::Fill(_) => {}
            Move::Serve(cached) => self.serve(cached),
            Move::WriteThrough(Cached { number, .. }) | Move::Bypass { number, .. } => {
                self.own.around.push(*number);
            }
            Move::Clean(cached) => self.clean(cached),
            Move::Swap(pair) => {
                let residents = &self.state.residents;
                let pair = pair.each_ref().map(|cached| (residents.find(cached), cached.region));
                self.state.placement.swap(residents, pair);
            }
            Move::Trim => self.pass_on(&[self.backing()]),
            Move::Flush => self.pass_on(&[DeviceId::CACHE, self.backing()]),
        }
    }

    /// The backing device of the plan's tenant.
    fn backing(&self) -> DeviceId {
        self.state.backings.device_of(self.commands.purpose().tenant)
    }

    /// Notes what is to be done with a block in the cache.
    fn note(&mut self, kind: AccessKind, resident: ResidentId, number: u64) {
        self.state.residents.note_plan(resident, number, self.own.plans);
        self.own.items.push(Item { kind, resident, number });
    }

    /// Makes commands of what this plan has noted so far, if that is about a block.
    fn emit_before(&mut self, resident: ResidentId) {
        if self.state.residents.is_in_plan(resident, self.own.plans) {
            self.emit();
        }
    }

    /// The cache evicts a block; what this plan has noted for it goes before.
    fn evict(&mut self, cached: &Cached, dirty: bool) {
        let Some(resident) = self.state.residents.find(cached) else { return };
        self.emit_before(resident);
        self.state.evict(cached);
        if dirty {
            self.write_backs.note_evicted(self.dirty(cached, resident));
        } else {
            self.state.settle(resident);
        }
    }

    /// The cache cleans a block that stays; what this plan writes to it goes before.
    fn clean(&mut self, cached: &Cached) {
        let Some(resident) = self.state.residents.find(cached) else { return };
        self.emit_before(resident);
        let block = self.dirty(cached, resident);
        self.write_backs.clean(self.state, block, self.own.plans);
    }

    fn dirty(&self, cached: &Cached, resident: ResidentId) -> DirtyResident {
        let (tenant, number) = (cached.tenant, cached.number);
        DirtyResident { device: self.state.backings.device_of(tenant), number, resident, tenant }
    }

    fn serve(&mut self, cached: &Cached) {
        let known = self.state.residents.find(cached);
        if let Some(known) = known {
            self.state.placement.prefer(&self.state.residents, known, cached.region);
        }
        if self.commands.purpose().op == Op::Write {
            let resident = known.unwrap_or_else(|| self.admit(cached));
            self.note(AccessKind::Write, resident, cached.number);
        } else if let Some(known) = known {
            let last = self.own.items.last();
            let fetched =
                last.is_some_and(|item| item.kind == AccessKind::Miss && item.resident == known);
            if !fetched {
                self.note(AccessKind::Hit, known, cached.number);
            }
        }
    }

    /// A resident for a block that the cache admits.
    fn admit(&mut self, cached: &Cached) -> ResidentId {
        let resident = self.state.admit(cached);
        if self.state.placement.slot(resident).is_none() {
            self.commands.wait_for_slot(self.state, resident);
        }
        resident
    }

    /// A trim or flush goes to devices as it is.
    fn pass_on(&mut self, devices: &[DeviceId]) {
        self.write_backs.begin_evicted(self.state, self.own.plans);
        for device in devices {
            self.commands.pass_on(self.state, *device);
        }
    }

    /// Makes commands of the blocks noted so far, after those evicted: one of these may come back.
    fn emit(&mut self) {
        self.write_backs.begin_evicted(self.state, self.own.plans);
        self.own.in_flight_blocks += self.commands.in_cache(self.state, &self.own.items);
        self.commands.around(self.state, &self.own.around);
        self.own.items.clear();
        self.own.around.clear();
    }
}

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
        let mut commands = Commands {
            rules,
            purpose,
            plan,
            decision: StepRef::DONE,
            fill_decision: StepRef::DONE,
        };
        let Some(kind) = rules.decision.filter(|_| commands.purpose.request.is_some()) else {
            return commands;
        };
        let required = kind == Decision::BeforeRequest;
        let request = commands.purpose.request.filter(|_| required);
        let step = commands.add(state, Action::Decide, TouchedResidents::NONE, request, required);
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
        pins: TouchedResidents,
        request: Option<RequestId>,
        required: bool,
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
        pins: TouchedResidents,
    ) -> StepRef {
        self.add(state, action, pins, self.purpose.request, true)
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
        let step = self.add(
            state,
            Action::WaitForSlot,
            TouchedResidents::from(&[resident][..]),
            request,
            false,
        );
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
        let step = self.add_required(state, action, TouchedResidents::NONE);
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
        if !state.evicted.is_empty() && numbers.any(|number| is_held(state, device, number)) {
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
        let fill = self.add(state, action, Item::residents(run), request, request.is_some());
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
        let step = self.add_required(state, action, TouchedResidents::NONE);
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
            if state.evicted.find(device, number).is_some()
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
    let known = state.evicted.find(device, number).filter(|block| block.failed);
    known.is_some_and(|block| !state.backings.is_changing(device, number, block.write))
}

/// Whether a resident has its slot and nothing writes to it.
fn is_free<P: Placement, N: Copy + Default>(state: &StepState<P, N>, resident: ResidentId) -> bool {
    let known = state.residents.steps(resident);
    state.placement.slot(resident).is_some()
        && state.graph.is_done(known.fill)
        && state.graph.is_done(known.writer)
}

/// A dirty block to be written back.
#[derive(Clone, Copy, Debug)]
pub struct DirtyResident {
    /// Its backing device.
    pub device: DeviceId,
    /// Its number there.
    pub number: u64,
    /// The resident.
    pub resident: ResidentId,
    /// The tenant whose block it is.
    pub tenant: TenantId,
}

/// Write-backs to be begun, and those under way of blocks that stay. Of the blocks evicted by one
/// plan neighbours are written by one command, and read by one where they also lie side by side on
/// the cache device: blocks that were written together mostly leave together.
#[derive(Clone, Debug)]
pub struct WriteBacks {
    /// Dirty blocks evicted by the plan at hand.
    evicted: Vec<DirtyResident>,
    /// Reads that a write waits for; kept for its memory.
    reads: Vec<StepRef>,
    cleaning: u32,
    block_shift: u32,
}

impl WriteBacks {
    /// None of blocks of `1 << block_shift` bytes.
    pub fn new(block_shift: u32) -> WriteBacks {
        WriteBacks { evicted: Vec::new(), reads: Vec::new(), cleaning: 0, block_shift }
    }

    /// Write-backs under way of blocks that stay.
    pub fn cleaning(&self) -> u32 {
        self.cleaning
    }

    /// A write-back of a block that stays is done.
    pub fn end_clean(&mut self) {
        self.cleaning -= 1;
    }

    /// Notes a dirty block that the plan at hand evicts.
    pub fn note_evicted(&mut self, block: DirtyResident) {
        self.evicted.push(block);
    }

    /// Begins to write back a block that stays.
    pub fn clean<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        block: DirtyResident,
        decision: u64,
    ) {
        self.cleaning += 1;
        self.write_run(state, &[block], true, decision);
    }

    /// Begins to write back the blocks noted since the last call.
    pub fn begin_evicted<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        decision: u64,
    ) {
        if self.evicted.is_empty() {
            return;
        }
        let mut evicted = std::mem::take(&mut self.evicted);
        evicted.sort_by_key(|block| (block.device, block.number));
        let neighbours = |a: &DirtyResident, b: &DirtyResident| {
            (a.device, a.number + 1, a.tenant) == (b.device, b.number, b.tenant)
        };
        for run in evicted.chunk_by(neighbours) {
            self.write_run(state, run, false, decision);
        }
        evicted.clear();
        self.evicted = evicted;
    }

    /// Writes neighbours back, once all of them are read from the cache device.
    fn write_run<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        run: &[DirtyResident],
        cleaning: bool,
        decision: u64,
    ) {
        let DirtyResident { device, number, tenant, .. } = run[0];
        let shift = self.block_shift;
        let (offset, length) = (number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Write, offset, length };
        run.iter().for_each(|block| state.residents.note_number(block.resident, block.number));
        let pins = run.iter().map(|block| block.resident).collect();
        let write = Step::new(action, tenant).pinning(pins).of_decision(decision);
        let write = state.add(Step { cleaning, ..write }, None);
        let mut rest = run;
        while !rest.is_empty() {
            let (together, others) = rest.split_at(beside_each_other(&state.placement, rest));
            let read = self.read_run(state, together, decision);
            self.reads.push(read);
            rest = others;
        }
        for read in &self.reads {
            state.graph.need(write, *read);
        }
        let numbers = number..number + run.len() as u64;
        state.backings.wait_for_changes(&mut state.graph, write, device, numbers.clone());
        state.backings.note_writes(write, device, numbers);
        if !cleaning {
            run.iter().for_each(|block| state.evicted.begin(block, write, decision));
        }
        for step in self.reads.drain(..).chain([write]) {
            state.graph.release(step);
        }
    }

    /// Reads blocks that lie side by side on the cache device.
    fn read_run<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        run: &[DirtyResident],
        decision: u64,
    ) -> StepRef {
        let DirtyResident { resident, tenant, .. } = run[0];
        let length = (run.len() as u64) << self.block_shift;
        let action = Action::Cache { op: Op::Read, resident, skip: 0, length };
        let pins = run.iter().map(|block| block.resident).collect();
        let read = Step::new(action, tenant).pinning(pins).of_decision(decision);
        let read = state.add(read, None);
        for block in run {
            let known = *state.residents.steps(block.resident);
            for before in [known.slot_granted, known.fill, known.writer] {
                state.graph.need(read, before);
            }
            if state.residents.is_lost(block.resident) {
                state.graph.fail(read);
            }
        }
        read
    }
}

/// How many blocks from the first on lie side by side on the cache device. Blocks that change
/// places may lie in another slot when they are read.
fn beside_each_other<P: Placement>(placement: &P, run: &[DirtyResident]) -> usize {
    let slot = |block: &DirtyResident| {
        let moves = placement.is_moving(block.resident);
        placement.slot(block.resident).filter(|_| !moves)
    };
    let beside = |pair: &&[DirtyResident]| {
        let next = slot(&pair[0]).map(|slot| SlotId(slot.0 + 1));
        next.is_some() && slot(&pair[1]) == next
    };
    1 + run.windows(2).take_while(beside).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_covers_whole_blocks_and_parts_of_its_first_and_last() {
        let purpose = |bytes| Purpose { request: None, tenant: TenantId(0), op: Op::Write, bytes };
        let some = purpose(5000..13000);
        assert_eq!([1, 2, 3].map(|number| some.covers(number, 12)), [false, true, false]);
        assert_eq!(some.clip(1..4, 12), (904, 8000));
        assert_eq!((some.clip(2..3, 12), some.clip(3..4, 12)), ((0, 4096), (0, 712)));
        assert_eq!(some.clip(5..6, 12), (0, 0));
        let all = purpose(0..u64::MAX);
        assert!(all.covers(u64::MAX >> 12, 12), "beyond the last address");
    }
}
