//! Blocks that change places on the cache device, beside requests: two that a policy swaps between
//! its regions, and misplaced ones, whose region was full or whose channels were given to other
//! tenants.
//!
//! At most `swap_depth` changes are under way at once. The rules of one:
//!
//! - its blocks are read from the cache device when they are there and no write to them is under
//!   way; from then on reads of them are served from memory;
//! - when every command begun before for one of them is done, the slots change hands, and the
//!   blocks are written to their new places; writes and write-backs wait for that;
//! - a block evicted meanwhile leaves its slot when the change is done.
//!
//! A swap asked for exchanges both where each then lies in the region it wants, or neither wants
//! any. Where one has left, has no slot yet or lies elsewhere than its policy knows, each moves by
//! itself: to a free slot of its region, or against a block that wants the opposite. Swaps come
//! first, in the order in which they were asked for; then each tenant's misplaced blocks.

use super::places::{ChangeId, ResidentPlace, ResidentPlaces};
use super::slots::Slots;
use cachewright_cache::Cached;
use cachewright_policy::Region;
use cachewright_steps::{
    Action, DeviceId, Placement, ResidentId, ResidentRef, ResidentTable, SlotId, Step, StepGraph,
    StepRef, StepState, TouchedResidents,
};
use cachewright_types::{Op, TenantId};
use std::collections::VecDeque;

/// Swaps that wait at most; the blocks of further ones move by themselves.
const MAX_SWAPS: usize = 1 << 16;

/// What the slots do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementAction {
    /// The slots of a change of places change hands.
    Exchange(ChangeId),
    /// The blocks of a change are in their new places.
    EndChange(ChangeId),
}

/// A step of a machine.
type MachineStep = Step<PlacementAction>;
/// What a step of a machine does.
pub type MachineAction = Action<PlacementAction>;
/// The steps of a machine, with a note along those of a request.
type MachineStepGraph<N> = StepGraph<MachineStep, N>;

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
    fn new(depth: u32, block_shift: u32) -> Mover {
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

    /// Begins the changes that may begin; returns whether any did.
    fn begin_changes<N: Copy + Default>(
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
                graph.add(step.pinning(TouchedResidents::from(&blocks[..])), None)
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
            // Requests that read the block from now on wait for these steps, thus for its new slot.
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
    fn end_step(
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
    fn exchange(&mut self, places: &mut ResidentPlaces, change: ChangeId) {
        let Some(Some(change)) = self.changes.get(change.index()) else { return };
        places.finish_move(&change.blocks);
    }

    /// The blocks of a change are in their new places; returns them.
    fn end_change(&mut self, places: &ResidentPlaces, change: ChangeId) -> Vec<ResidentId> {
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
    fn audit(&self) -> Result<(), String> {
        self.queue.audit()?;
        let (changes, known) = (self.changes.iter().flatten().count(), self.under_way);
        if changes != known as usize {
            return Err(format!("{changes} changes of places are under way, {known} are known"));
        }
        Ok(())
    }
}

/// Blocks that wait to change places.
#[derive(Clone, Debug, Default)]
struct MoveQueue {
    swaps: VecDeque<[ResidentRef; 2]>,
    /// Misplaced blocks of each tenant, by the region they want.
    misplaced: Vec<[VecDeque<ResidentRef>; 3]>,
    /// The misplaced block of each number that is among these.
    noted: Vec<Option<ResidentRef>>,
    /// Swaps and misplaced blocks that wait.
    waiting: usize,
    /// Blocks were added since the last look.
    changed: bool,
}

impl MoveQueue {
    /// Swaps that wait.
    fn swaps(&self) -> usize {
        self.swaps.len()
    }

    fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether blocks were added since the last call.
    fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Two blocks are to change places: their residents, and the regions they want from now on.
    fn swap(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
        pair: [(Option<ResidentId>, Region); 2],
    ) {
        for (id, preferred) in pair {
            if let Some(id) = id {
                places.set_preferred(id, preferred);
            }
        }
        match pair.map(|(id, _)| id) {
            [Some(first), Some(second)] if self.swaps.len() < MAX_SWAPS => {
                self.swaps.push_back([first, second].map(|id| residents.reference(id)));
                self.waiting += 1;
                self.changed = true;
            }
            ids => {
                for id in ids.into_iter().flatten() {
                    self.note_misplaced(places, residents, id);
                }
            }
        }
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    fn note_misplaced(
        &mut self,
        places: &ResidentPlaces,
        residents: &ResidentTable,
        id: ResidentId,
    ) {
        if !places.is_misplaced(id) {
            return;
        }
        if self.noted.len() <= id.index() {
            self.noted.resize(id.index() + 1, None);
        }
        let resident = Some(residents.reference(id));
        if std::mem::replace(&mut self.noted[id.index()], resident) == resident {
            return;
        }
        let place = places.get(id);
        let (tenant, preferred) = (place.tenant().index(), place.preferred());
        if self.misplaced.len() <= tenant {
            self.misplaced.resize(tenant + 1, Default::default());
        }
        self.misplaced[tenant][preferred as usize].extend(resident);
        self.waiting += 1;
        self.changed = true;
    }

    /// The blocks of the next change: two that change slots, or one whose new slot is taken.
    fn next(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
    ) -> Option<Vec<ResidentId>> {
        while let Some(pair) = self.swaps.front().copied() {
            let there = pair.map(|resident| residents.stays(resident));
            let [first, second] = pair.map(ResidentRef::id);
            let moves = |id| places.get(id).change().is_some();
            if there == [true, true] && (moves(first) || moves(second)) {
                break;
            }
            self.swaps.pop_front();
            self.waiting -= 1;
            if there == [true, true] && places.may_swap(first, second) {
                return Some(vec![first, second]);
            }
            for (id, there) in [first, second].into_iter().zip(there) {
                if there {
                    self.note_misplaced(places, residents, id);
                }
            }
        }
        (0..self.misplaced.len()).find_map(|tenant| self.next_of_tenant(places, residents, tenant))
    }

    /// The blocks of the next change of a tenant's misplaced blocks.
    fn next_of_tenant(
        &mut self,
        places: &mut ResidentPlaces,
        residents: &ResidentTable,
        tenant: usize,
    ) -> Option<Vec<ResidentId>> {
        let regions = [Region::Private, Region::Shared, Region::Any];
        let heads =
            regions.map(|preferred| self.next_misplaced(places, residents, tenant, preferred));
        if let [Some(first), Some(second), _] = heads
            && first != second
            && places.may_swap(first, second)
        {
            self.unnote(tenant, Region::Private);
            self.unnote(tenant, Region::Shared);
            return Some(vec![first, second]);
        }
        for (head, preferred) in heads.into_iter().zip(regions) {
            if let Some(id) = head.filter(|id| places.begin_move(*id)) {
                self.unnote(tenant, preferred);
                return Some(vec![id]);
            }
        }
        None
    }

    /// The first block of a tenant that wants a region and is not there; blocks that are there, or
    /// on their way, are no longer noted.
    fn next_misplaced(
        &mut self,
        places: &ResidentPlaces,
        residents: &ResidentTable,
        tenant: usize,
        preferred: Region,
    ) -> Option<ResidentId> {
        while let Some(resident) = self.misplaced[tenant][preferred as usize].front().copied() {
            let id = resident.id();
            let there = residents.stays(resident);
            let wants = places.get(id).preferred() == preferred;
            if there && wants && places.is_misplaced(id) {
                return Some(id);
            }
            self.unnote(tenant, preferred);
            if there {
                self.note_misplaced(places, residents, id);
            }
        }
        None
    }

    fn unnote(&mut self, tenant: usize, preferred: Region) {
        let first = self.misplaced[tenant][preferred as usize].pop_front();
        let Some(resident) = first else { return };
        self.waiting -= 1;
        let noted = &mut self.noted[resident.id().index()];
        if *noted == Some(resident) {
            *noted = None;
        }
    }

    /// Checks that blocks that wait are counted. Errors: the rule broken, in words.
    fn audit(&self) -> Result<(), String> {
        let misplaced: usize = self.misplaced.iter().flatten().map(VecDeque::len).sum();
        let (swaps, waiting) = (self.swaps.len(), self.waiting);
        if misplaced + swaps != waiting {
            return Err(format!("{misplaced} misplaced blocks and {swaps} swaps of {waiting}"));
        }
        Ok(())
    }
}

/// Slots, and the blocks that change places among them.
#[derive(Clone, Debug)]
pub struct SlotPlacement {
    places: ResidentPlaces,
    mover: Mover,
}

impl SlotPlacement {
    /// Empty slots; at most `swap_depth` changes of places at once of blocks of `1 << block_shift`
    /// bytes.
    pub fn new(slots: Slots, swap_depth: u32, block_shift: u32) -> SlotPlacement {
        SlotPlacement {
            places: ResidentPlaces::new(slots),
            mover: Mover::new(swap_depth, block_shift),
        }
    }

    pub fn places(&self) -> &ResidentPlaces {
        &self.places
    }

    pub fn places_mut(&mut self) -> &mut ResidentPlaces {
        &mut self.places
    }

    /// Blocks that change places.
    pub fn mover(&self) -> &Mover {
        &self.mover
    }

    /// Begins the changes of places that may begin; returns whether any did.
    pub fn begin_changes<N: Copy + Default>(
        &mut self,
        graph: &mut MachineStepGraph<N>,
        residents: &mut ResidentTable,
    ) -> bool {
        self.mover.begin_changes(graph, residents, &mut self.places)
    }

    /// Notes a block if it is misplaced, to be moved when it may.
    fn note_misplaced(&mut self, residents: &ResidentTable, id: ResidentId) {
        self.mover.queue.note_misplaced(&self.places, residents, id);
    }

    /// Notes all misplaced blocks.
    pub fn note_all_misplaced(&mut self, residents: &ResidentTable) {
        residents.ids().for_each(|id| self.note_misplaced(residents, id));
    }

    /// Checks slots and changes. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.places.audit()?;
        self.mover.audit()
    }
}

/// Carries out a step of the placement.
pub fn perform<N: Copy + Default>(
    state: &mut StepState<SlotPlacement, N>,
    action: PlacementAction,
) {
    let SlotPlacement { places, mover } = &mut state.placement;
    match action {
        PlacementAction::Exchange(change) => mover.exchange(places, change),
        PlacementAction::EndChange(change) => {
            let mut granted = Vec::new();
            for id in mover.end_change(places, change) {
                granted.clear();
                state.placement.places.end_change(id, &mut granted);
                state.on_granted(&granted);
                state.placement.note_misplaced(&state.residents, id);
            }
        }
    }
}

impl Placement for SlotPlacement {
    type Action = PlacementAction;

    fn admit(&mut self, residents: &ResidentTable, id: ResidentId, cached: &Cached) {
        self.places.admit(id, cached.tenant, cached.region);
        self.note_misplaced(residents, id);
    }

    #[inline]
    fn slot(&self, id: ResidentId) -> Option<SlotId> {
        self.places.get(id).slot()
    }

    fn is_moving(&self, id: ResidentId) -> bool {
        self.places.get(id).change().is_some()
    }

    fn leave(&mut self, id: ResidentId) {
        self.places.leave(id);
    }

    fn end(&mut self, id: ResidentId, granted: &mut Vec<ResidentId>) {
        self.places.end(id, granted);
    }

    fn on_granted(&mut self, residents: &ResidentTable, id: ResidentId) {
        self.note_misplaced(residents, id);
    }

    fn prefer(&mut self, residents: &ResidentTable, id: ResidentId, preferred: Region) {
        if self.places.set_preferred(id, preferred) {
            self.note_misplaced(residents, id);
        }
    }

    fn swap(&mut self, residents: &ResidentTable, pair: [(Option<ResidentId>, Region); 2]) {
        self.mover.queue.swap(&mut self.places, residents, pair);
    }

    fn end_step(&mut self, id: ResidentId, serial: u64) -> Option<StepRef> {
        self.mover.end_step(&self.places, id, serial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_cache::{Move, Plan};
    use cachewright_device::Exposed;
    use cachewright_partition::layout::{ChannelMap, PoolShare};
    use cachewright_steps::{Fill, Outcome, Rules, Steps};
    use cachewright_types::{BlockId, Bytes};

    const SHIFT: u32 = 12;

    /// Steps, and the slots among which blocks change places.
    struct World {
        steps: Steps<SlotPlacement, ()>,
        /// Commands to the cache device: what is done, in which slot.
        log: Vec<(Op, u64)>,
    }

    fn block(id: u32, region: Region) -> Cached {
        Cached { pool: 0, id: BlockId(id), tenant: TenantId(0), number: u64::from(id), region }
    }

    impl World {
        /// One tenant with two channels of two slots: 0 and 1 are its alone, 2 and 3 shared.
        fn new(depth: u32) -> World {
            let exposed = |index: u64| Exposed {
                channels: vec![index as u32],
                bytes: index << (SHIFT + 1)..(index + 1) << (SHIFT + 1),
                page: Bytes(1 << SHIFT),
            };
            let share = |pool| PoolShare { pool, blocks: 2 };
            let tenants = vec![vec![share(0), share(1)], vec![share(1)]];
            let map = ChannelMap { pools: vec![vec![0], vec![1]], tenants, lent: Vec::new() };
            let mut slots = Slots::laid_out(&map, &[exposed(0), exposed(1)], SHIFT, 0);
            slots.set_quotas(&[4, 0]);
            let rules = Rules { fill: Fill::AfterAnswer, decision: None, block_shift: SHIFT };
            let placement = SlotPlacement::new(slots, depth, SHIFT);
            World { steps: Steps::new(placement, &[1, 1], rules), log: Vec::new() }
        }

        fn mover(&self) -> &Mover {
            self.steps.state().placement.mover()
        }

        fn places(&self) -> &ResidentPlaces {
            self.steps.state().placement.places()
        }

        /// Admits blocks 0, 1 and so on, each preferred in a region.
        fn admit(&mut self, preferred: &[Region]) -> Vec<ResidentId> {
            let ids = 0..preferred.len() as u32;
            let admit =
                |(id, region): (u32, &Region)| self.steps.state_mut().admit(&block(id, *region));
            ids.zip(preferred).map(admit).collect()
        }

        fn slots(&self, ids: &[ResidentId]) -> Vec<Option<u32>> {
            let slot = |id: &ResidentId| self.places().get(*id).slot();
            ids.iter().map(|id| slot(id).map(|slot| slot.0)).collect()
        }

        /// Carries out every step that may begin, and the changes that may begin then.
        fn run(&mut self) {
            loop {
                while let Some(ready) = self.steps.next_step() {
                    match ready.action {
                        MachineAction::Placement(action) => perform(self.steps.state_mut(), action),
                        MachineAction::Device { op, offset, .. } => {
                            self.log.push((op, offset >> SHIFT))
                        }
                        _ => {}
                    }
                    self.steps.finish(ready.id, Outcome::Done);
                }
                let state = self.steps.state_mut();
                assert_eq!((state.placement.audit(), state.graph.audit()), (Ok(()), Ok(())));
                if !state.placement.begin_changes(&mut state.graph, &mut state.residents) {
                    return;
                }
            }
        }

        fn swap(&mut self, first: u32, second: u32) {
            let region = |world: &World, id: u32| {
                let cached = block(id, Region::Any);
                let resident = world.steps.state().residents.find(&cached).unwrap();
                world.places().get(resident).preferred()
            };
            let pair = [block(first, region(self, second)), block(second, region(self, first))];
            let plan =
                Plan { moves: vec![Move::Swap(Box::new([pair[0], pair[1]]))], all_hit: true };
            self.steps.background(TenantId(0), &plan);
        }
    }

    #[test]
    fn swapped_blocks_are_both_read_before_either_is_written() {
        let mut world = World::new(4);
        let ids = world.admit(&[Region::Private, Region::Shared]);
        assert_eq!(world.slots(&ids), [Some(0), Some(2)]);
        world.swap(0, 1);
        world.run();
        assert_eq!(world.log, [(Op::Read, 0), (Op::Read, 2), (Op::Write, 2), (Op::Write, 0)]);
        assert_eq!(world.slots(&ids), [Some(2), Some(0)]);
        let migrated = Migrated { swaps: 1, moves: 0, bytes: 2 << SHIFT };
        assert_eq!((world.mover().migrated(), world.mover().open()), (&[migrated][..], 0));
        assert_eq!(world.steps.audit(2, true), Ok(()));
    }

    #[test]
    fn slots_change_hands_when_the_commands_begun_before_are_done() {
        let mut world = World::new(4);
        let ids = world.admit(&[Region::Private, Region::Shared]);
        let step = MachineStep::new(MachineAction::Pass, TenantId(0))
            .pinning(TouchedResidents::from(&ids[..1]));
        let earlier = world.steps.state_mut().add(step, None);
        world.swap(0, 1);
        world.run();
        assert_eq!(world.log, [(Op::Read, 0), (Op::Read, 2)], "the writes wait");
        assert_eq!(world.slots(&ids), [Some(0), Some(2)]);
        let step = MachineStep::new(MachineAction::Pass, TenantId(0))
            .pinning(TouchedResidents::from(&ids[..1]));
        let later = world.steps.state_mut().add(step, None);
        world.steps.state_mut().graph.release(earlier);
        world.run();
        assert_eq!(world.slots(&ids), [Some(2), Some(0)], "whatever was begun after");
        world.steps.state_mut().graph.release(later);
        world.run();
        assert_eq!(world.steps.audit(2, true), Ok(()));
    }

    #[test]
    fn a_misplaced_block_moves_to_the_first_free_slot_of_its_region() {
        let mut world = World::new(4);
        let ids = world.admit(&[Region::Private, Region::Private, Region::Private]);
        assert_eq!(world.slots(&ids), [Some(0), Some(1), Some(2)]);
        world.run();
        assert!(world.log.is_empty(), "no slot is free");
        let state = world.steps.state_mut();
        state.evict(&block(1, Region::Any));
        state.settle(ids[1]);
        world.run();
        assert_eq!(world.log, [(Op::Read, 2), (Op::Write, 1)]);
        assert_eq!(world.slots(&ids), [Some(0), None, Some(1)]);
        assert_eq!(world.mover().migrated(), [Migrated { swaps: 0, moves: 1, bytes: 1 << SHIFT }]);
        assert_eq!(world.places().get(ids[2]).destination(), Some(SlotId(1)));
    }

    #[test]
    fn changes_begin_one_after_the_other_where_only_one_may_be_under_way() {
        let mut world = World::new(1);
        let ids = world.admit(&[Region::Private, Region::Private, Region::Shared, Region::Shared]);
        assert_eq!(world.slots(&ids), [Some(0), Some(1), Some(2), Some(3)]);
        world.swap(0, 2);
        world.swap(1, 3);
        assert_eq!(world.mover().open(), 2);
        world.run();
        let change = |one, other| [(Op::Read, one), (Op::Read, other), (Op::Write, other)];
        assert_eq!(world.log[..3], change(0, 2));
        assert_eq!(world.log[4..7], change(1, 3), "after the whole of the first");
        assert_eq!(world.slots(&ids), [Some(2), Some(3), Some(0), Some(1)]);
    }

    /// A table with two blocks, which any slot suits, and a block that it does not hold.
    fn table() -> (ResidentPlaces, ResidentTable, Vec<ResidentId>) {
        let (mut places, mut residents) =
            (ResidentPlaces::new(Slots::plain(4)), ResidentTable::default());
        let block = |id: u32| {
            let (tenant, number) = (TenantId(0), u64::from(id));
            Cached { pool: 0, id: BlockId(id), tenant, number, region: Region::Any }
        };
        let mut admit = |id| {
            let resident = residents.admit(&block(id));
            places.admit(resident, TenantId(0), Region::Any);
            resident
        };
        let ids = [0, 1, 2].map(&mut admit);
        residents.evict(&block(2));
        places.leave(ids[2]);
        (places, residents, ids.to_vec())
    }

    #[test]
    fn swaps_come_in_order_unless_one_block_has_left() {
        let (mut places, residents, ids) = table();
        let mut queue = MoveQueue::default();
        let any = |id| (Some(id), Region::Any);
        queue.swap(&mut places, &residents, [any(ids[2]), any(ids[0])]);
        queue.swap(&mut places, &residents, [any(ids[0]), any(ids[1])]);
        queue.swap(&mut places, &residents, [(None, Region::Any), any(ids[1])]);
        assert_eq!((queue.swaps(), queue.take_changed(), queue.take_changed()), (2, true, false));
        assert_eq!(queue.audit(), Ok(()));
        assert_eq!(queue.next(&mut places, &residents), Some(vec![ids[0], ids[1]]));
        assert_eq!((queue.next(&mut places, &residents), queue.is_empty()), (None, true));
        queue.note_misplaced(&places, &residents, ids[0]);
        assert!(queue.is_empty(), "it lies where it belongs");
    }
}
