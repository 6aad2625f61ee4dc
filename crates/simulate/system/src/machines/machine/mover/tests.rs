//! Changes of places by hand, without devices: every command ends when it begins.
//!
//! For: the order of the steps of a change. Must never know: plans, time.

use super::super::slot_placement::{SlotPlacement, perform};
use super::super::slots::Slots;
use super::*;
use cachewright_cache::{Cached, Move, Plan};
use cachewright_device::Exposed;
use cachewright_partition::layout::{ChannelMap, PoolShare};
use cachewright_steps::Fill;
use cachewright_steps::{Outcome, Rules, SlotId, Steps};
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
        let rules =
            Rules { fill: Fill::AfterAnswer, decision: None, fills_late: true, block_shift: SHIFT };
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
        let plan = Plan { moves: vec![Move::Swap(Box::new([pair[0], pair[1]]))], all_hit: true };
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
    let step = MachineStep::new(MachineAction::Pass, TenantId(0)).pinning(Pins::from(&ids[..1]));
    let earlier = world.steps.state_mut().add(step, None);
    world.swap(0, 1);
    world.run();
    assert_eq!(world.log, [(Op::Read, 0), (Op::Read, 2)], "the writes wait");
    assert_eq!(world.slots(&ids), [Some(0), Some(2)]);
    let step = MachineStep::new(MachineAction::Pass, TenantId(0)).pinning(Pins::from(&ids[..1]));
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
