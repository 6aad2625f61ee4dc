//! Blocks that change places on the cache device, beside requests.
//!
//! For: two blocks that a policy swaps between its rooms, and blocks that lie where they do not
//! belong (their room was full, or its channels were given to others). Must never know: why a
//! policy wants it. Units: blocks, bytes. At most `swap_depth` changes are under way at once;
//! others wait in order. The rules of one:
//!
//! - its blocks are read from the cache device when they are there and no write to them is under
//!   way; from then on reads of them are served from memory;
//! - when every command begun before for one of them is done, the slots change hands, and the
//!   blocks are written to their new places; writes and write-backs wait for that;
//! - a block given up meanwhile leaves its slot when the change is done.
//!
//! A swap asked for is a change of both where each then lies in the room it wants, or neither wants
//! any. Where one has left, has no slot yet or lies elsewhere than its policy knows, each moves by
//! itself: to a free slot of its room, or against a block that wants the opposite.

use super::emit::work;
use super::graph::StepRef;
use super::machine::{Action, CACHE, Machine, Work};
use super::residences::NONE;
use cachewright_cache::Cached;
use cachewright_policy::Region;
use cachewright_types::{Op, TenantId};
use std::collections::VecDeque;

/// Swaps that wait at most; the blocks of further ones move by themselves.
const WAITING: usize = 1 << 16;

/// What changed places on behalf of one tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Pairs of blocks that changed places, one of them the tenant's.
    pub swaps: u64,
    /// Its blocks that went to a free slot.
    pub moves: u64,
    /// Bytes of its blocks, each read and written once.
    pub bytes: u64,
}

/// A residence as it was named: another one may have its number later.
#[derive(Clone, Copy, Debug)]
struct Named {
    residence: u32,
    generation: u32,
}

/// One or two blocks that change places.
#[derive(Clone, Debug)]
struct Change {
    blocks: Vec<u32>,
    /// Steps begun before it that still touch one of them, and what tells them apart.
    before: u32,
    born: u64,
    /// The step at which the slots change hands.
    exchange: StepRef,
}

/// Changes under way, and blocks that wait for theirs.
#[derive(Clone, Debug, Default)]
pub(super) struct Migrations {
    asked: VecDeque<[Named; 2]>,
    /// Of each tenant, blocks that are not where they belong, by the room they want.
    astray: Vec<[VecDeque<Named>; 3]>,
    /// In both.
    waiting: usize,
    all: Vec<Option<Change>>,
    under_way: u32,
    /// Something has changed since it was last looked whether a change may begin.
    due: bool,
    done: Vec<Migrated>,
}

impl Migrations {
    /// Changes under way and swaps that wait.
    pub fn open(&self) -> usize {
        self.under_way as usize + self.asked.len()
    }
}

impl Machine {
    /// What changed places, by tenant.
    pub fn migrated(&self) -> &[Migrated] {
        &self.migrations.done
    }

    /// Two blocks are to change places.
    pub(super) fn swap(&mut self, one: &Cached, other: &Cached) {
        let found = [one, other].map(|cached| (self.residences.find(cached), cached.region));
        for (residence, room) in found {
            if residence != NONE {
                self.residences.get_mut(residence).wanted = room;
            }
        }
        let there = found.iter().all(|(residence, _)| *residence != NONE);
        if there && self.migrations.asked.len() < WAITING {
            let pair = found.map(|(residence, _)| self.named(residence));
            self.migrations.asked.push_back(pair);
            self.migrations.waiting += 1;
            self.migrations.due = true;
        } else {
            found.into_iter().for_each(|(residence, _)| self.note_astray(residence));
        }
    }

    fn named(&self, residence: u32) -> Named {
        Named { residence, generation: self.residences.get(residence).generation }
    }

    /// Notes a block that is not where it belongs, to be moved when it may.
    pub(super) fn note_astray(&mut self, number: u32) {
        if number == NONE || !self.residences.is_astray(number) {
            return;
        }
        let named = self.named(number);
        let residence = self.residences.get_mut(number);
        if std::mem::replace(&mut residence.queued, true) {
            return;
        }
        let (tenant, room) = (residence.tenant.index(), residence.wanted);
        if self.migrations.astray.len() <= tenant {
            self.migrations.astray.resize(tenant + 1, Default::default());
        }
        self.migrations.astray[tenant][room as usize].push_back(named);
        self.migrations.waiting += 1;
        self.migrations.due = true;
    }

    /// Notes all blocks that are not where they belong.
    pub(super) fn note_all_astray(&mut self) {
        (0..self.residences.numbers()).for_each(|number| self.note_astray(number));
    }

    /// Begins what changes may begin; returns whether any did.
    pub(super) fn migrate(&mut self) -> bool {
        let freed = self.residences.take_freed();
        let due = std::mem::take(&mut self.migrations.due) || freed;
        if !due || self.migrations.waiting == 0 {
            return false;
        }
        let mut any = false;
        while self.migrations.under_way < self.settings.swap_depth {
            let Some(blocks) = self.next_change() else { return any };
            self.begin_change(blocks);
            any = true;
        }
        any
    }

    /// The blocks of the next change.
    fn next_change(&mut self) -> Option<Vec<u32>> {
        while let Some(pair) = self.migrations.asked.front().copied() {
            let there = pair.map(|named| self.stays(named.residence, named.generation));
            let [one, other] = pair.map(|named| named.residence);
            let moves = |number| self.residences.get(number).moving != NONE;
            if there == [true, true] && (moves(one) || moves(other)) {
                break;
            }
            self.migrations.asked.pop_front();
            self.migrations.waiting -= 1;
            if there == [true, true] && self.residences.may_swap(one, other) {
                return Some(vec![one, other]);
            }
            for (number, there) in [one, other].into_iter().zip(there) {
                if there {
                    self.note_astray(number);
                }
            }
        }
        (0..self.migrations.astray.len()).find_map(|tenant| self.next_home(tenant))
    }

    /// The blocks of a tenant's next change of those that are not where they belong.
    fn next_home(&mut self, tenant: usize) -> Option<Vec<u32>> {
        let rooms = [Region::Private, Region::Shared, Region::Any];
        let heads = rooms.map(|room| self.next_astray(tenant, room));
        if let [Some(one), Some(other), _] = heads
            && one != other
            && self.residences.may_swap(one, other)
        {
            self.unnote(tenant, Region::Private);
            self.unnote(tenant, Region::Shared);
            return Some(vec![one, other]);
        }
        for (head, room) in heads.into_iter().zip(rooms) {
            if let Some(number) = head.filter(|number| self.residences.set_out(*number)) {
                self.unnote(tenant, room);
                return Some(vec![number]);
            }
        }
        None
    }

    /// The first block of a tenant that wants a room and is not there; those that are, or are on
    /// their way, are no longer noted.
    fn next_astray(&mut self, tenant: usize, room: Region) -> Option<u32> {
        while let Some(named) = self.migrations.astray[tenant][room as usize].front().copied() {
            let there = self.stays(named.residence, named.generation);
            let wanted = self.residences.get(named.residence).wanted;
            if there && wanted == room && self.residences.is_astray(named.residence) {
                return Some(named.residence);
            }
            self.unnote(tenant, room);
            if there {
                self.note_astray(named.residence);
            }
        }
        None
    }

    fn unnote(&mut self, tenant: usize, room: Region) {
        let Some(named) = self.migrations.astray[tenant][room as usize].pop_front() else { return };
        self.migrations.waiting -= 1;
        let residence = self.residences.get_mut(named.residence);
        if residence.generation == named.generation {
            residence.queued = false;
        }
    }

    /// Begins a change of one block, whose new slot is taken, or of two.
    fn begin_change(&mut self, blocks: Vec<u32>) {
        let born = self.steps;
        let before = blocks.iter().map(|number| self.residences.get(*number).pins).sum();
        let all = &mut self.migrations.all;
        let at = all.iter().position(Option::is_none).unwrap_or(all.len());
        let reads: Vec<StepRef> =
            blocks.iter().map(|number| self.carry(Op::Read, *number, *number, &blocks)).collect();
        for (number, read) in blocks.iter().zip(&reads) {
            let found = *self.residences.get(*number);
            self.graph.wait(*read, found.fill);
            self.graph.wait(*read, found.writer);
        }
        let tenant = self.residences.get(blocks[0]).tenant;
        let done =
            |action, pins: &[u32]| Work { pins: pins.to_vec(), ..work(action, tenant, false) };
        let exchange = self.step(done(Action::Exchange(at as u32), &blocks), None);
        let end = self.step(done(Action::EndChange(at as u32), &blocks), None);
        reads.iter().for_each(|read| self.graph.wait(exchange, *read));
        let from = blocks.iter().rev();
        for ((number, to), read) in blocks.iter().zip(from).zip(&reads) {
            let write = self.carry(Op::Write, *number, *to, &blocks);
            self.graph.wait(write, exchange);
            self.graph.wait(end, write);
            let residence = self.residences.get_mut(*number);
            (residence.moving, residence.fetch, residence.fill) = (at as u32, *read, write);
            residence.writer = StepRef::DONE;
            self.release(write);
        }
        reads.into_iter().for_each(|read| self.release(read));
        self.release(end);
        let change = Some(Change { blocks, before, born, exchange });
        match self.migrations.all.get_mut(at) {
            Some(place) => *place = change,
            None => self.migrations.all.push(change),
        }
        self.migrations.under_way += 1;
        if before == 0 {
            self.release(exchange);
        }
    }

    /// A step that reads a block where `place` lies, or writes it where `place` does or goes to.
    fn carry(&mut self, op: Op, number: u32, place: u32, pins: &[u32]) -> StepRef {
        let place = self.residences.get(place);
        let slot = if op == Op::Read { place.slot } else { place.goes_to() };
        let (offset, length) = (u64::from(slot) << self.block_shift, 1 << self.block_shift);
        let action = Action::Device { device: CACHE, op, offset, length };
        let tenant = self.residences.get(number).tenant;
        self.step(Work { pins: pins.to_vec(), ..work(action, tenant, false) }, None)
    }

    /// A step that was begun at `born` no longer touches a residence.
    pub(super) fn untouch(&mut self, number: u32, born: u64) {
        let at = self.residences.get(number).moving as usize;
        let Some(Some(change)) = self.migrations.all.get_mut(at) else { return };
        if born < change.born {
            change.before -= 1;
            if change.before == 0 {
                let exchange = change.exchange;
                self.release(exchange);
            }
        }
    }

    /// Nothing reads from the old places any more: the slots change hands.
    pub(super) fn exchange(&mut self, at: u32) {
        let Some(Some(change)) = self.migrations.all.get(at as usize) else { return };
        match change.blocks.as_slice() {
            [one, other] => self.residences.exchange(*one, *other),
            alone => alone.iter().for_each(|number| self.residences.arrive(*number)),
        }
    }

    /// The blocks are in their new places.
    pub(super) fn end_change(&mut self, at: u32) {
        let Some(change) = self.migrations.all[at as usize].take() else { return };
        self.migrations.under_way -= 1;
        self.migrations.due = true;
        self.count_change(&change.blocks);
        for number in change.blocks {
            self.residences.get_mut(number).moving = NONE;
            let next = self.residences.moved(number);
            self.give_slots(next);
            self.note_astray(number);
        }
    }

    fn count_change(&mut self, blocks: &[u32]) {
        let tenants: Vec<TenantId> =
            blocks.iter().map(|number| self.residences.get(*number).tenant).collect();
        let done = &mut self.migrations.done;
        for (at, tenant) in tenants.iter().enumerate() {
            if done.len() <= tenant.index() {
                done.resize(tenant.index() + 1, Migrated::default());
            }
            let done = &mut done[tenant.index()];
            done.bytes += 1 << self.block_shift;
            done.swaps += u64::from(tenants.len() == 2 && !tenants[..at].contains(tenant));
            done.moves += u64::from(tenants.len() == 1);
        }
    }
}
