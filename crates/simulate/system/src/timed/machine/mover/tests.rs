//! Changes of places by hand, without devices: every command ends when it begins.
//!
//! For: the order of the steps of a change. Must never know: plans, time.

use super::super::ids::SlotId;
use super::super::slots::Slots;
use super::*;
use cachewright_cache::Cached;
use cachewright_device::Exposed;
use cachewright_layout::{ChannelMap, PoolShare};
use cachewright_types::{BlockId, Bytes};

const SHIFT: u32 = 12;

/// Steps, residents and what moves them.
struct World {
    steps: Steps,
    residents: ResidentTable,
    mover: Mover,
    /// Commands to the cache device: what is done, in which slot.
    log: Vec<(Op, u64)>,
}

fn block(id: u32, region: Region) -> Cached {
    Cached { pool: 0, id: BlockId(id), tenant: TenantId(0), number: u64::from(id), region }
}

impl World {
    /// One tenant with two channels of two slots: 0 and 1 are its alone, 2 and 3 shared.
    fn new(depth: u32) -> World {
        let exposed = |at: u64| Exposed {
            channels: vec![at as u32],
            bytes: at << (SHIFT + 1)..(at + 1) << (SHIFT + 1),
            page: Bytes(1 << SHIFT),
        };
        let share = |pool| PoolShare { pool, blocks: 2 };
        let tenants = vec![vec![share(0), share(1)], vec![share(1)]];
        let map = ChannelMap { pools: vec![vec![0], vec![1]], tenants, lent: Vec::new() };
        let mut slots = Slots::laid_out(&map, &[exposed(0), exposed(1)], SHIFT, 0);
        slots.set_quotas(&[4, 0]);
        let residents = ResidentTable::new(slots);
        let (steps, mover) = (Steps::default(), Mover::new(depth, SHIFT));
        World { steps, residents, mover, log: Vec::new() }
    }

    /// Admits blocks 0, 1 and so on, each wanted in a region.
    fn admit(&mut self, wanted: &[Region]) -> Vec<ResidentId> {
        let ids = 0..wanted.len() as u32;
        ids.zip(wanted).map(|(id, region)| self.residents.admit(&block(id, *region))).collect()
    }

    fn slots(&self, ids: &[ResidentId]) -> Vec<Option<u32>> {
        let slot = |id: &ResidentId| self.residents.places().get(*id).slot();
        ids.iter().map(|id| slot(id).map(|slot| slot.0)).collect()
    }

    /// Carries out every step that may begin, and the changes that may begin then.
    fn run(&mut self) {
        loop {
            while let Some(id) = self.steps.next_ready() {
                match self.steps.action(id).unwrap().action {
                    Action::Exchange(change) => self.mover.exchange(&mut self.residents, change),
                    Action::EndChange(change) => {
                        self.mover.end_change(&mut self.steps, &mut self.residents, change);
                    }
                    Action::Device { op, offset, .. } => self.log.push((op, offset >> SHIFT)),
                    _ => {}
                }
                let finished = self.steps.finish(id).unwrap();
                for id in finished.action.pins {
                    self.mover.end_step(&mut self.steps, &self.residents, id, finished.serial);
                    let granted = self.residents.unpin(id);
                    self.mover.slots_granted(&mut self.steps, &self.residents, granted);
                }
            }
            assert_eq!((self.mover.audit(), self.steps.audit()), (Ok(()), Ok(())));
            if !self.mover.begin_changes(&mut self.steps, &mut self.residents) {
                return;
            }
        }
    }

    fn swap(&mut self, one: ResidentId, other: ResidentId) {
        let wanted = |world: &World, id| world.residents.places().get(id).wanted();
        let pair = [(one, wanted(self, other)), (other, wanted(self, one))];
        self.mover.swap(&mut self.residents, pair.map(|(id, wanted)| (Some(id), wanted)));
    }
}

#[test]
fn swapped_blocks_are_both_read_before_either_is_written() {
    let mut world = World::new(4);
    let ids = world.admit(&[Region::Private, Region::Shared]);
    assert_eq!(world.slots(&ids), [Some(0), Some(2)]);
    world.swap(ids[0], ids[1]);
    world.run();
    assert_eq!(world.log, [(Op::Read, 0), (Op::Read, 2), (Op::Write, 2), (Op::Write, 0)]);
    assert_eq!(world.slots(&ids), [Some(2), Some(0)]);
    let migrated = Migrated { swaps: 1, moves: 0, bytes: 2 << SHIFT };
    assert_eq!((world.mover.migrated(), world.mover.open()), (&[migrated][..], 0));
    assert_eq!((world.residents.audit(2), world.steps.open()), (Ok(()), 0));
}

#[test]
fn slots_change_hands_when_the_commands_begun_before_are_done() {
    let mut world = World::new(4);
    let ids = world.admit(&[Region::Private, Region::Shared]);
    let step = Step::new(Action::Pass, TenantId(0)).pinning(vec![ids[0]]);
    let earlier = step.add(&mut world.steps, &mut world.residents, None);
    world.swap(ids[0], ids[1]);
    world.run();
    assert_eq!(world.log, [(Op::Read, 0), (Op::Read, 2)], "the writes wait");
    assert_eq!(world.slots(&ids), [Some(0), Some(2)]);
    let step = Step::new(Action::Pass, TenantId(0)).pinning(vec![ids[0]]);
    let later = step.add(&mut world.steps, &mut world.residents, None);
    world.steps.release(earlier);
    world.run();
    assert_eq!(world.slots(&ids), [Some(2), Some(0)], "whatever was begun after");
    world.steps.release(later);
    world.run();
    assert_eq!((world.residents.audit(2), world.steps.open()), (Ok(()), 0));
}

#[test]
fn a_misplaced_block_moves_to_the_first_free_slot_of_its_region() {
    let mut world = World::new(4);
    let ids = world.admit(&[Region::Private, Region::Private, Region::Private]);
    assert_eq!(world.slots(&ids), [Some(0), Some(1), Some(2)]);
    world.mover.note_all_misplaced(&world.residents);
    world.run();
    assert!(world.log.is_empty(), "no slot is free");
    world.residents.evict(&block(1, Region::Any));
    let granted = world.residents.settle(ids[1]);
    world.mover.slots_granted(&mut world.steps, &world.residents, granted);
    world.run();
    assert_eq!(world.log, [(Op::Read, 2), (Op::Write, 1)]);
    assert_eq!(world.slots(&ids), [Some(0), None, Some(1)]);
    assert_eq!(world.mover.migrated(), [Migrated { swaps: 0, moves: 1, bytes: 1 << SHIFT }]);
    assert_eq!(world.residents.places().get(ids[2]).destination(), Some(SlotId(1)));
}

#[test]
fn changes_begin_one_after_the_other_where_only_one_may_be_under_way() {
    let mut world = World::new(1);
    let ids = world.admit(&[Region::Private, Region::Private, Region::Shared, Region::Shared]);
    assert_eq!(world.slots(&ids), [Some(0), Some(1), Some(2), Some(3)]);
    world.swap(ids[0], ids[2]);
    world.swap(ids[1], ids[3]);
    assert_eq!(world.mover.open(), 2);
    world.run();
    let change = |one, other| [(Op::Read, one), (Op::Read, other), (Op::Write, other)];
    assert_eq!(world.log[..3], change(0, 2));
    assert_eq!(world.log[4..7], change(1, 3), "after the whole of the first");
    assert_eq!(world.slots(&ids), [Some(2), Some(3), Some(0), Some(1)]);
}
