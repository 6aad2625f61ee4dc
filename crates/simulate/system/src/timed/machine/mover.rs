//! Blocks that change places on the cache device, beside requests.
//!
//! For: two blocks that a policy swaps between its regions, and misplaced blocks (their region was
//! full, or its channels were given to other tenants). Must never know: why a policy wants it,
//! which blocks come first. Units: blocks, bytes. At most `swap_depth` changes are under way at
//! once. The rules of one:
//!
//! - its blocks are read from the cache device when they are there and no write to them is under
//!   way; from then on reads of them are served from memory;
//! - when every command begun before for one of them is done, the slots change hands, and the
//!   blocks are written to their new places; writes and write-backs wait for that;
//! - a block evicted meanwhile leaves its slot when the change is done.
//!
//! A swap asked for exchanges both where each then lies in the region it wants, or neither wants
//! any. Where one has left, has no slot yet or lies elsewhere than its policy knows, each moves by
//! itself: to a free slot of its region, or against a block that wants the opposite.

use super::ids::{ChangeId, DeviceId, ResidentId};
use super::move_queue::MoveQueue;
use super::places::Place;
use super::resident_table::ResidentTable;
use super::step::{Action, Step, Steps};
use super::step_graph::StepRef;
use cachewright_policy::Region;
use cachewright_types::{Op, TenantId};

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

/// One or two blocks that change places.
#[derive(Clone, Debug)]
struct Change {
    blocks: Vec<ResidentId>,
    /// Steps created before `serial` that still touch one of its blocks.
    before: u32,
    serial: u64,
    /// The step at which the slots change hands.
    exchange: StepRef,
}

/// Changes under way, and blocks that wait for theirs.
#[derive(Clone, Debug)]
pub struct Mover {
    /// Changes at once.
    depth: u32,
    block_shift: u32,
    /// Blocks that wait for a change.
    queue: MoveQueue,
    changes: Vec<Option<Change>>,
    under_way: u32,
    /// A change has ended since the last look whether another may begin.
    ended: bool,
    migrated: Vec<Migrated>,
}

impl Mover {
    /// Nothing to do; at most `depth` changes at once of blocks of `1 << block_shift` bytes.
    pub fn new(depth: u32, block_shift: u32) -> Mover {
        Mover {
            depth,
            block_shift,
            queue: MoveQueue::default(),
            changes: Vec::new(),
            under_way: 0,
            ended: false,
            migrated: Vec::new(),
        }
    }

    /// Changes under way and swaps that wait.
    pub fn open(&self) -> usize {
        self.under_way as usize + self.queue.swaps()
    }

    /// What changed places, by tenant.
    pub fn migrated(&self) -> &[Migrated] {
        &self.migrated
    }

    /// Two blocks are to change places: their residents, and the regions they want from now on.
    pub fn swap(&mut self, residents: &mut ResidentTable, pair: [(Option<ResidentId>, Region); 2]) {
        self.queue.swap(residents, pair);
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    pub fn note_misplaced(&mut self, residents: &ResidentTable, id: ResidentId) {
        self.queue.note_misplaced(residents, id);
    }

    /// Residents that waited have slots now.
    pub fn slots_granted(
        &mut self,
        steps: &mut Steps,
        residents: &ResidentTable,
        granted: Vec<ResidentId>,
    ) {
        for id in granted {
            let step = residents.steps(id).slot_granted;
            if !steps.is_done(step) {
                steps.release(step);
            }
            self.note_misplaced(residents, id);
        }
    }

    /// Notes all misplaced blocks.
    pub fn note_all_misplaced(&mut self, residents: &ResidentTable) {
        residents.ids().for_each(|id| self.note_misplaced(residents, id));
    }

    /// Begins the changes that may begin; returns whether any did.
    pub fn begin_changes(&mut self, steps: &mut Steps, residents: &mut ResidentTable) -> bool {
        let freed = residents.places_mut().take_freed();
        let ended = std::mem::take(&mut self.ended);
        let due = self.queue.take_changed() || ended || freed;
        if !due || self.queue.is_empty() {
            return false;
        }
        let mut any = false;
        while self.under_way < self.depth {
            let Some(blocks) = self.queue.next(residents) else { return any };
            self.begin_change(steps, residents, blocks);
            any = true;
        }
        any
    }

    /// Begins a change of one block, whose new slot is taken, or of two.
    fn begin_change(
        &mut self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        blocks: Vec<ResidentId>,
    ) {
        let serial = steps.created();
        let before = blocks.iter().map(|id| residents.pins(*id)).sum();
        let free = self.changes.iter().position(Option::is_none);
        let change = ChangeId::new(free.unwrap_or(self.changes.len()));
        let carry = |steps: &mut Steps, residents: &mut ResidentTable, op, id, place: &Place| {
            self.carry(op, id, place).pinning(blocks.clone()).add(steps, residents, None)
        };
        let mut reads = Vec::with_capacity(blocks.len());
        for id in &blocks {
            let place = *residents.places().get(*id);
            let read = carry(steps, residents, Op::Read, place.tenant(), &place);
            reads.push(read);
        }
        for (id, read) in blocks.iter().zip(&reads) {
            let known = residents.steps(*id);
            steps.wait(*read, known.fill);
            steps.wait(*read, known.writer);
        }
        let tenant = residents.places().get(blocks[0]).tenant();
        let mut mark =
            |action| Step::new(action, tenant).pinning(blocks.clone()).add(steps, residents, None);
        let exchange = mark(Action::Exchange(change));
        let end = mark(Action::EndChange(change));
        reads.iter().for_each(|read| steps.wait(exchange, *read));
        let destinations = blocks.iter().rev();
        for ((id, to), read) in blocks.iter().zip(destinations).zip(&reads) {
            let (tenant, place) =
                (residents.places().get(*id).tenant(), *residents.places().get(*to));
            let write = carry(steps, residents, Op::Write, tenant, &place);
            steps.wait(write, exchange);
            steps.wait(end, write);
            residents.places_mut().begin_change(*id, change);
            let known = residents.steps_mut(*id);
            (known.fetch, known.fill, known.writer) = (*read, write, StepRef::DONE);
            steps.release(write);
        }
        reads.into_iter().for_each(|read| steps.release(read));
        steps.release(end);
        let begun = Some(Change { blocks, before, serial, exchange });
        match self.changes.get_mut(change.index()) {
            Some(free) => *free = begun,
            None => self.changes.push(begun),
        }
        self.under_way += 1;
        if before == 0 {
            steps.release(exchange);
        }
    }

    /// A command that reads a block of a tenant from a place, or writes it where that lies or moves
    /// to.
    fn carry(&self, op: Op, tenant: TenantId, place: &Place) -> Step {
        let slot = if op == Op::Read { place.slot() } else { place.destination() };
        debug_assert!(slot.is_some(), "a block that changes places has a slot");
        let slot = slot.map_or(0, |slot| u64::from(slot.0));
        let (offset, length) = (slot << self.block_shift, 1 << self.block_shift);
        Step::new(Action::Device { device: DeviceId::CACHE, op, offset, length }, tenant)
    }

    /// The step created as number `serial` no longer touches a resident.
    pub fn end_step(
        &mut self,
        steps: &mut Steps,
        residents: &ResidentTable,
        id: ResidentId,
        serial: u64,
    ) {
        let Some(change) = residents.places().get(id).change() else { return };
        let Some(Some(change)) = self.changes.get_mut(change.index()) else { return };
        if serial < change.serial {
            change.before -= 1;
            if change.before == 0 {
                steps.release(change.exchange);
            }
        }
    }

    /// Nothing reads from the old places any more: the slots change hands.
    pub fn exchange(&mut self, residents: &mut ResidentTable, change: ChangeId) {
        let Some(Some(change)) = self.changes.get(change.index()) else { return };
        residents.places_mut().finish_move(&change.blocks);
    }

    /// The blocks are in their new places.
    pub fn end_change(
        &mut self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        change: ChangeId,
    ) {
        let Some(change) = self.changes[change.index()].take() else { return };
        self.under_way -= 1;
        self.ended = true;
        self.count(residents, &change.blocks);
        for id in change.blocks {
            let granted = residents.places_mut().end_change(id);
            self.slots_granted(steps, residents, granted);
            self.note_misplaced(residents, id);
        }
    }

    fn count(&mut self, residents: &ResidentTable, blocks: &[ResidentId]) {
        let tenants: Vec<TenantId> =
            blocks.iter().map(|id| residents.places().get(*id).tenant()).collect();
        for (at, tenant) in tenants.iter().enumerate() {
            if self.migrated.len() <= tenant.index() {
                self.migrated.resize(tenant.index() + 1, Migrated::default());
            }
            let sums = &mut self.migrated[tenant.index()];
            sums.bytes += 1 << self.block_shift;
            sums.swaps += u64::from(tenants.len() == 2 && !tenants[..at].contains(tenant));
            sums.moves += u64::from(tenants.len() == 1);
        }
    }

    /// Checks that blocks that wait, and changes under way, are counted. Errors: the rule broken,
    /// in words.
    pub fn audit(&self) -> Result<(), String> {
        self.queue.audit()?;
        let (changes, known) = (self.changes.iter().flatten().count(), self.under_way);
        if changes != known as usize {
            return Err(format!("{changes} changes of places are under way, {known} are known"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
