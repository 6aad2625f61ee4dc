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
use super::placement_steps::{MachineAction, MachineStep, MachineStepGraph, PlacementAction};
use super::places::{ResidentPlace, ResidentPlaces};
use cachewright_policy::Region;
use cachewright_steps::{Pins, ResidentTable, StepRef};
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
struct PlaceChange {
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
    changes: Vec<Option<PlaceChange>>,
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

    /// Two blocks are to change places: their residents, and the regions preferred from now on.
    pub fn swap(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
        pair: [(Option<ResidentId>, Region); 2],
    ) {
        self.queue.swap(places, residents, pair);
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    pub fn note_misplaced(
        &mut self,
        places: &ResidentPlaces,
        residents: &ResidentTable,
        id: ResidentId,
    ) {
        self.queue.note_misplaced(places, residents, id);
    }

    /// Begins the changes that may begin; returns whether any did.
    pub fn begin_changes<N: Copy + Default>(
        &mut self,
        graph: &mut MachineStepGraph<N>,
        residents: &mut ResidentTable,
        places: &mut ResidentPlaces,
    ) -> bool {
        let freed = places.take_freed();
        let ended = std::mem::take(&mut self.ended);
        let due = self.queue.take_changed() || ended || freed;
        if !due || self.queue.is_empty() {
            return false;
        }
        let mut any = false;
        while self.under_way < self.depth {
            let Some(blocks) = self.queue.next(places, residents) else { return any };
            self.begin_change(graph, residents, places, blocks);
            any = true;
        }
        any
    }

    /// Begins a change of one block, whose new slot is taken, or of two.
    fn begin_change<N: Copy + Default>(
        &mut self,
        graph: &mut MachineStepGraph<N>,
        residents: &mut ResidentTable,
        places: &mut ResidentPlaces,
        blocks: Vec<ResidentId>,
    ) {
        let serial = graph.created();
        let before = blocks.iter().map(|id| residents.pins(*id)).sum();
        let free = self.changes.iter().position(Option::is_none);
        let change = ChangeId::new(free.unwrap_or(self.changes.len()));
        let add =
            |graph: &mut MachineStepGraph<N>, residents: &mut ResidentTable, step: MachineStep| {
                blocks.iter().for_each(|id| residents.pin(*id));
                graph.add(step.pinning(Pins::from(&blocks[..])), None)
            };
        let mut reads = Vec::with_capacity(blocks.len());
        for id in &blocks {
            let place = *places.get(*id);
            let read = self.carry(Op::Read, place.tenant(), &place);
            reads.push(add(graph, residents, read));
        }
        for (id, read) in blocks.iter().zip(&reads) {
            let known = residents.steps(*id);
            graph.wait(*read, known.fill);
            graph.wait(*read, known.writer);
        }
        let tenant = places.get(blocks[0]).tenant();
        let mut mark = |action| {
            add(graph, residents, MachineStep::new(MachineAction::Placement(action), tenant))
        };
        let exchange = mark(PlacementAction::Exchange(change));
        let end = mark(PlacementAction::EndChange(change));
        reads.iter().for_each(|read| graph.wait(exchange, *read));
        let destinations = blocks.iter().rev();
        for ((id, to), read) in blocks.iter().zip(destinations).zip(&reads) {
            let write = self.carry(Op::Write, places.get(*id).tenant(), places.get(*to));
            let write = add(graph, residents, write);
            graph.wait(write, exchange);
            graph.wait(end, write);
            places.begin_change(*id, change);
            let known = residents.steps_mut(*id);
            (known.fetch, known.fill, known.writer) = (*read, write, StepRef::DONE);
            graph.release(write);
        }
        reads.into_iter().for_each(|read| graph.release(read));
        graph.release(end);
        let begun = Some(PlaceChange { blocks, before, serial, exchange });
        match self.changes.get_mut(change.index()) {
            Some(free) => *free = begun,
            None => self.changes.push(begun),
        }
        self.under_way += 1;
        if before == 0 {
            graph.release(exchange);
        }
    }

    /// A command that reads a block of a tenant from a place, or writes it where that lies or moves
    /// to.
    fn carry(&self, op: Op, tenant: TenantId, place: &ResidentPlace) -> MachineStep {
        let slot = if op == Op::Read { place.slot() } else { place.destination() };
        debug_assert!(slot.is_some(), "a block that changes places has a slot");
        let slot = slot.map_or(0, |slot| u64::from(slot.0));
        let (offset, length) = (slot << self.block_shift, 1 << self.block_shift);
        MachineStep::new(
            MachineAction::Device { device: DeviceId::CACHE, op, offset, length },
            tenant,
        )
    }

    /// The step created as number `serial` no longer touches a resident; returns the exchange that
    /// waited for the last such step.
    pub fn end_step(
        &mut self,
        places: &ResidentPlaces,
        id: ResidentId,
        serial: u64,
    ) -> Option<StepRef> {
        let change = places.get(id).change()?;
        let change = self.changes.get_mut(change.index())?.as_mut()?;
        if serial >= change.serial {
            return None;
        }
        change.before -= 1;
        (change.before == 0).then_some(change.exchange)
    }

    /// Nothing reads from the old places any more: the slots change hands.
    pub fn exchange(&mut self, places: &mut ResidentPlaces, change: ChangeId) {
        let Some(Some(change)) = self.changes.get(change.index()) else { return };
        places.finish_move(&change.blocks);
    }

    /// The blocks of a change are in their new places; returns them.
    pub fn end_change(&mut self, places: &ResidentPlaces, change: ChangeId) -> Vec<ResidentId> {
        let Some(change) = self.changes[change.index()].take() else { return Vec::new() };
        self.under_way -= 1;
        self.ended = true;
        self.count(places, &change.blocks);
        change.blocks
    }

    fn count(&mut self, places: &ResidentPlaces, blocks: &[ResidentId]) {
        let tenants: Vec<TenantId> = blocks.iter().map(|id| places.get(*id).tenant()).collect();
        for (index, tenant) in tenants.iter().enumerate() {
            if self.migrated.len() <= tenant.index() {
                self.migrated.resize(tenant.index() + 1, Migrated::default());
            }
            let sums = &mut self.migrated[tenant.index()];
            sums.bytes += 1 << self.block_shift;
            sums.swaps += u64::from(tenants.len() == 2 && !tenants[..index].contains(tenant));
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
