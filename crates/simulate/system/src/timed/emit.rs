//! From plans to steps.
//!
//! For: what each move of a plan becomes, and what it waits for. Must never know: when anything
//! happens. Units: blocks, bytes. The rules:
//!
//! - blocks next to each other on the same device are one command;
//! - a fetched block is served from memory, and put into the cache beside (`fill`);
//! - a block on its way is waited for, never fetched twice; while it is being put into the cache
//!   reads of it are served from memory, writes wait;
//! - a block leaves its slot when what was begun for it is done and, if dirty, when it is written
//!   back; a new block waits for a slot;
//! - a backing read or write waits for a write under way to the same block.

use super::graph::StepRef;
use super::machine::{Action, CACHE, Machine, Work};
use super::residences::NONE;
use super::settings::{Decision, Fill};
use super::write_back::Outgoing;
use cachewright_cache::{Cached, Move, Plan};
use cachewright_types::{Op, Request, TenantId};
use std::collections::VecDeque;
use std::ops::Range;

/// What is to be done with one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Read from the backing device, serve, fill.
    Miss,
    /// Read from the cache.
    Hit,
    /// Write to the cache.
    Write,
    /// Read or write on the backing device alone.
    Around,
}

/// One block of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    kind: Kind,
    /// Its residence; [`NONE`] for [`Kind::Around`].
    residence: u32,
    number: u64,
}

/// What the steps of one plan have in common.
struct Context {
    request: Option<u32>,
    tenant: TenantId,
    /// The bytes asked for; whole blocks where nobody asked.
    bytes: Range<u64>,
    op: Op,
    /// The decision that everything, or the filling, waits for.
    decision: StepRef,
    decision_of_fill: StepRef,
    /// What is to be done in the cache, and beside it.
    items: Vec<Item>,
    around: Vec<Item>,
}

/// The blocks of `1 << shift` bytes that a range touches.
pub(crate) fn numbers(offset: u64, length: u64, shift: u32) -> Range<u64> {
    offset >> shift..(offset + length).div_ceil(1 << shift)
}

impl Machine {
    /// Begins what a plan says about a request that arrives now.
    pub fn request(&mut self, tag: u64, request: &Request, plan: &Plan, now_ns: u64) {
        let open = self.open(tag, request.tenant, now_ns);
        let start = request.offset.0;
        let bytes = start..start + request.length.0;
        self.in_flight = 0;
        self.plan(Some(open), request.tenant, request.op, bytes, plan);
        self.opened(open);
    }

    /// Begins what a plan says that nobody waits for: a tenant's read-ahead, changed quotas.
    pub fn background(&mut self, tenant: TenantId, plan: &Plan) {
        self.plan(None, tenant, Op::Read, 0..u64::MAX, plan);
        self.run();
    }

    /// Notes the blocks of the cache that a plan writes.
    pub fn served(&self, plan: &Plan, dirty: &mut VecDeque<(u32, u32, TenantId, u64)>) {
        for step in &plan.moves {
            let Move::Serve(cached) = step else { continue };
            let residence = self.residences.find(cached);
            if residence != NONE {
                let generation = self.residences.get(residence).generation;
                dirty.push_back((residence, generation, cached.tenant, cached.number));
            }
        }
    }

    /// Whether a residence is still that of the same block.
    pub fn stays(&self, residence: u32, generation: u32) -> bool {
        let found = self.residences.get(residence);
        found.generation == generation && !found.leaving
    }

    fn plan(
        &mut self,
        request: Option<u32>,
        tenant: TenantId,
        op: Op,
        bytes: Range<u64>,
        plan: &Plan,
    ) {
        let (decision, decision_of_fill) = self.decide(request, tenant);
        let (items, around) = std::mem::take(&mut self.buffers);
        let mut context =
            Context { request, tenant, bytes, op, decision, decision_of_fill, items, around };
        self.plans += 1;
        for step in &plan.moves {
            self.take(step, &mut context);
        }
        self.emit(&mut context);
        self.buffers = (context.items, context.around);
    }

    /// The step that stands for the cache's decision, for everything and for filling.
    fn decide(&mut self, request: Option<u32>, tenant: TenantId) -> (StepRef, StepRef) {
        let time_ns = self.settings.decision_time.0;
        if time_ns == 0 || request.is_none() {
            return (StepRef::DONE, StepRef::DONE);
        }
        let whole = self.settings.decision == Decision::BeforeRequest;
        let work = work(Action::Delay(time_ns), tenant, whole);
        let step = self.step(work, request.filter(|_| whole));
        self.release(step);
        if whole { (step, StepRef::DONE) } else { (StepRef::DONE, step) }
    }

    /// Takes one move into account.
    fn take(&mut self, step: &Move, context: &mut Context) {
        match step {
            Move::WriteBack(cached) => self.give_up(cached, true, context),
            Move::Drop(cached) => self.give_up(cached, false, context),
            Move::Fetch(cached) => {
                let residence = self.admit(cached, context);
                self.note(Kind::Miss, residence, cached.number, context);
            }
            // Every fetched block is put into the cache.
            Move::Fill(_) => {}
            Move::Serve(cached) => self.serve(cached, context),
            Move::WriteThrough(Cached { number, .. }) | Move::Bypass { number, .. } => {
                let (kind, residence) = (Kind::Around, NONE);
                context.around.push(Item { kind, residence, number: *number });
            }
            Move::Clean(cached) => {
                let residence = self.residences.find(cached);
                if residence != NONE {
                    // What this plan writes to it goes before.
                    if self.residences.get(residence).noted == self.plans {
                        self.emit(context);
                    }
                    self.begin_clean(residence, cached.tenant, cached.number);
                }
            }
            Move::Swap(one, other) => self.swap(one, other),
            Move::Trim => self.whole(self.backing_of[context.tenant.index()], context),
            Move::Flush => {
                self.whole(CACHE, context);
                self.whole(self.backing_of[context.tenant.index()], context);
            }
        }
    }

    /// Notes what is to be done with a block in the cache.
    fn note(&mut self, kind: Kind, residence: u32, number: u64, context: &mut Context) {
        self.residences.get_mut(residence).noted = self.plans;
        context.items.push(Item { kind, residence, number });
    }

    /// The cache gives a block up; what this plan has noted for it goes before.
    fn give_up(&mut self, cached: &Cached, dirty: bool, context: &mut Context) {
        let residence = self.residences.find(cached);
        if residence == NONE {
            return;
        }
        if self.residences.get(residence).noted == self.plans {
            self.emit(context);
        }
        self.residences.give_up(cached);
        if dirty {
            let device = self.backing_of[cached.tenant.index()];
            let (tenant, number) = (cached.tenant, cached.number);
            self.outgoing.push(Outgoing { device, number, residence, tenant });
        } else {
            let next = self.residences.settle(residence);
            self.give_slots(next);
        }
    }

    fn serve(&mut self, cached: &Cached, context: &mut Context) {
        let known = self.residences.find(cached);
        if known != NONE && self.residences.get(known).wanted != cached.region {
            self.residences.get_mut(known).wanted = cached.region;
            self.note_astray(known);
        }
        let fetched = context.items.last().is_some_and(|item| {
            item.kind == Kind::Miss && item.residence == known && known != NONE
        });
        if context.op == Op::Write {
            let residence = if known == NONE { self.admit(cached, context) } else { known };
            self.note(Kind::Write, residence, cached.number, context);
        } else if !fetched && known != NONE {
            self.note(Kind::Hit, known, cached.number, context);
        }
    }

    /// A residence for a block that the cache admits.
    fn admit(&mut self, cached: &Cached, context: &Context) -> u32 {
        let residence = self.residences.admit(cached);
        self.note_astray(residence);
        if self.residences.get(residence).slot == NONE {
            let room = Work { pins: vec![residence], ..work(Action::Room, cached.tenant, false) };
            // A read is answered meanwhile, unless it waits for the filling.
            let waits = context.op == Op::Write || self.settings.fill == Fill::BeforeAnswer;
            let request = context.request.filter(|_| waits);
            self.residences.get_mut(residence).room = self.step(room, request);
        }
        residence
    }

    /// A trim or flush as it is.
    fn whole(&mut self, device: usize, context: &Context) {
        self.write_back();
        let (op, offset) = (context.op, context.bytes.start);
        let length = context.bytes.end - offset;
        if op == Op::Trim && length == 0 {
            return;
        }
        let work = work(Action::Device { device, op, offset, length }, context.tenant, true);
        let step = self.step(work, context.request);
        self.graph.wait(step, context.decision);
        self.release(step);
    }

    /// Makes steps of the blocks noted so far, after those that leave: one of these may come back.
    fn emit(&mut self, context: &mut Context) {
        self.write_back();
        let mut items = std::mem::take(&mut context.items);
        let mut around = std::mem::take(&mut context.around);
        for noted in [&items, &around] {
            let mut rest = noted.as_slice();
            while let Some(first) = rest.first() {
                let length = self.run_length(rest);
                let (run, others) = rest.split_at(length);
                match first.kind {
                    Kind::Miss => self.miss(run, context),
                    Kind::Hit => self.hit(run, context),
                    Kind::Write => self.write(run, context),
                    Kind::Around => self.around(run, context),
                }
                rest = others;
            }
        }
        items.clear();
        around.clear();
        (context.items, context.around) = (items, around);
    }

    /// How many blocks from the first on can be one command.
    fn run_length(&self, items: &[Item]) -> usize {
        let first = items[0];
        let joins = |(at, item): &(usize, &Item)| {
            let next = item.kind == first.kind && item.number == first.number + *at as u64;
            match first.kind {
                Kind::Miss | Kind::Around => next,
                Kind::Hit | Kind::Write => {
                    let slot = |residence| self.residences.get(residence).slot;
                    next && self.is_free(first.residence)
                        && self.is_free(item.residence)
                        && slot(item.residence) == slot(first.residence) + *at as u32
                }
            }
        };
        1 + items.iter().enumerate().skip(1).take_while(joins).count()
    }

    /// Whether a residence has its slot and nothing writes to it.
    fn is_free(&self, residence: u32) -> bool {
        let found = self.residences.get(residence);
        found.slot != NONE && self.graph.is_done(found.fill) && self.graph.is_done(found.writer)
    }

    fn miss(&mut self, run: &[Item], context: &Context) {
        let tenant = context.tenant;
        let device = self.backing_of[tenant.index()];
        let shift = self.block_shift;
        let (offset, length) = (run[0].number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Read, offset, length };
        let pins = run.iter().map(|item| item.residence).collect();
        let required = context.request.is_some();
        let fetch = self.step(Work { pins, ..work(action, tenant, required) }, context.request);
        self.wait_for_writes(fetch, device, numbers_of(run));
        self.graph.wait(fetch, context.decision);
        let mut rest = run;
        while let Some(first) = rest.first() {
            let slot = self.residences.get(first.residence).slot;
            let next = |(at, item): &(usize, &Item)| {
                let here = self.residences.get(item.residence).slot;
                slot != NONE && here != NONE && here == slot + *at as u32
            };
            let count = 1 + rest.iter().enumerate().skip(1).take_while(next).count();
            let (together, others) = rest.split_at(count);
            self.fill(together, fetch, context);
            rest = others;
        }
        self.release(fetch);
    }

    /// Puts fetched blocks with slots in a row into the cache.
    fn fill(&mut self, run: &[Item], fetch: StepRef, context: &Context) {
        let tenant = context.tenant;
        let residence = run[0].residence;
        let length = (run.len() as u64) << self.block_shift;
        let action = Action::Cache { op: Op::Write, residence, skip: 0, length };
        let pins = run.iter().map(|item| item.residence).collect();
        let waited_for = self.settings.fill == Fill::BeforeAnswer && context.op == Op::Read;
        let request = context.request.filter(|_| waited_for);
        let fill = self.step(Work { pins, ..work(action, tenant, request.is_some()) }, request);
        self.graph.wait(fill, fetch);
        self.graph.wait(fill, context.decision_of_fill);
        for item in run {
            let residence = self.residences.get_mut(item.residence);
            (residence.fetch, residence.fill) = (fetch, fill);
            let room = residence.room;
            self.graph.wait(fill, room);
        }
        self.release(fill);
    }

    fn hit(&mut self, run: &[Item], context: &Context) {
        let residence = run[0].residence;
        let found = *self.residences.get(residence);
        let pins: Vec<u32> = run.iter().map(|item| item.residence).collect();
        let written = self.graph.is_done(found.writer);
        let action = if written && !self.graph.is_done(found.fill) {
            Action::Pass
        } else {
            let (skip, length) = context.clip(run, self.block_shift);
            Action::Cache { op: Op::Read, residence, skip, length }
        };
        let work = Work { pins, ..work(action, context.tenant, true) };
        if context.request.is_some() && written && !self.graph.is_done(found.fetch) {
            self.in_flight += run.len() as u64;
        }
        let step = self.step(work, context.request);
        self.graph.wait(step, if written { found.fetch } else { found.writer });
        self.graph.wait(step, context.decision);
        self.release(step);
    }

    fn write(&mut self, run: &[Item], context: &Context) {
        let residence = run[0].residence;
        let (skip, length) = context.clip(run, self.block_shift);
        let action = Action::Cache { op: Op::Write, residence, skip, length };
        let pins = run.iter().map(|item| item.residence).collect();
        let step = self.step(Work { pins, ..work(action, context.tenant, true) }, context.request);
        self.graph.wait(step, context.decision);
        for item in run {
            let found = *self.residences.get(item.residence);
            for before in [found.room, found.fill, found.writer] {
                self.graph.wait(step, before);
            }
            self.residences.get_mut(item.residence).writer = step;
        }
        self.release(step);
    }

    /// Reads or writes on the backing device alone.
    fn around(&mut self, run: &[Item], context: &Context) {
        let device = self.backing_of[context.tenant.index()];
        let (skip, length) = context.clip(run, self.block_shift);
        let offset = (run[0].number << self.block_shift) + skip;
        let action = Action::Device { device, op: context.op, offset, length };
        let step = self.step(work(action, context.tenant, true), context.request);
        self.wait_for_writes(step, device, numbers_of(run));
        self.graph.wait(step, context.decision);
        if context.op == Op::Write {
            self.note_writes(step, device, numbers_of(run));
        }
        self.release(step);
    }

    pub(super) fn wait_for_writes(&mut self, step: StepRef, device: usize, numbers: Range<u64>) {
        if self.writing.is_empty() {
            return;
        }
        for number in numbers {
            if let Some(write) = self.writing.get(&Machine::write_key(device, number)) {
                self.graph.wait(step, *write);
            }
        }
    }

    pub(super) fn note_writes(&mut self, step: StepRef, device: usize, numbers: Range<u64>) {
        for number in numbers {
            self.writing.insert(Machine::write_key(device, number), step);
        }
    }
}

impl Context {
    /// The request's bytes of a run of blocks: where they begin in the first, and how many.
    fn clip(&self, run: &[Item], shift: u32) -> (u64, u64) {
        let start = run[0].number << shift;
        let end = start + ((run.len() as u64) << shift);
        let from = self.bytes.start.clamp(start, end);
        (from - start, self.bytes.end.clamp(from, end) - from)
    }
}

/// The numbers of a run of blocks.
fn numbers_of(run: &[Item]) -> Range<u64> {
    run[0].number..run[0].number + run.len() as u64
}

pub(super) fn work(action: Action, tenant: TenantId, required: bool) -> Work {
    Work { action, tenant, required, cleaning: false, pins: Vec::new(), born: 0 }
}
