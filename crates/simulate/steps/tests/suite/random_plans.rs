//! Random plans, carried out in random order: conflicting commands never overlap.
//!
//! Nothing begins beside a change of the same slot, or of the same block of the backing device. A
//! slot is not written for one block while it is read for another. Write-backs and trims of a block
//! begin in the order in which they were decided.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{SHIFT, TENANT, World, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Action, Outcome, Placement, Ready, ResidentId};
use cachewright_testkit::slots::Never;
use cachewright_types::{Op, Rng, Seed};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

const BLOCKS: u32 = 12;
const SLOTS: u32 = 5;

/// A command under way: the blocks it touches on the backing device, or the slots and the residents
/// in them, and whether it changes them.
struct Begun {
    step: Ready<Never>,
    backing: Range<u64>,
    slots: Vec<(u32, ResidentId)>,
    changes: bool,
}

impl Begun {
    /// Whether it must not begin beside another one that is under way.
    fn conflicts(&self, other: &Begun) -> bool {
        let overlap =
            self.backing.start < other.backing.end && other.backing.start < self.backing.end;
        let slot = |(slot, resident): &(u32, ResidentId)| {
            other.slots.iter().any(|(known, held)| {
                known == slot && (other.changes || (self.changes && held != resident))
            })
        };
        (other.changes && overlap) || self.slots.iter().any(slot)
    }
}

/// The steps and the commands under way.
struct Race {
    world: World,
    /// The blocks that the cache holds, with whether each is dirty.
    cached: BTreeMap<u32, bool>,
    begun: Vec<Begun>,
    /// The order in which changes of the backing device were decided, by block.
    decided: BTreeMap<u64, Vec<Op>>,
    rng: Rng,
}

impl Race {
    fn evict(&mut self, moves: &mut Vec<Move>) {
        while self.cached.len() >= SLOTS as usize {
            let victims: Vec<u32> = self.cached.keys().copied().collect();
            let victim = victims[self.rng.below(victims.len() as u64) as usize];
            let dirty = self.cached.remove(&victim) == Some(true);
            let cached = block(victim);
            moves.push(if dirty { Move::WriteBack(cached) } else { Move::Drop(cached) });
            if dirty {
                self.decided.entry(u64::from(victim)).or_default().push(Op::Write);
            }
        }
    }

    fn decide(&mut self) {
        let id = self.rng.below(u64::from(BLOCKS)) as u32;
        let bytes = u64::from(id) << SHIFT..(u64::from(id) + 1) << SHIFT;
        let mut moves = Vec::new();
        match self.rng.below(10) {
            0..4 => {
                if !self.cached.contains_key(&id) {
                    self.evict(&mut moves);
                    moves.extend(fetches(id..id + 1));
                    self.cached.insert(id, false);
                } else {
                    moves.push(Move::Serve(block(id)));
                }
                self.world.request(Op::Read, bytes, moves);
            }
            4..8 => {
                if !self.cached.contains_key(&id) {
                    self.evict(&mut moves);
                }
                moves.push(Move::Serve(block(id)));
                self.cached.insert(id, true);
                self.world.request(Op::Write, bytes, moves);
            }
            8 => {
                let end = (id + 1 + self.rng.below(4) as u32).min(BLOCKS);
                for id in id..end {
                    if self.cached.remove(&id).is_some() {
                        moves.push(Move::Drop(block(id)));
                    }
                    self.decided.entry(u64::from(id)).or_default().push(Op::Trim);
                }
                moves.push(Move::Trim);
                self.world.request(Op::Trim, bytes.start..u64::from(end) << SHIFT, moves);
            }
            _ => {
                let dirty = self.cached.iter().find(|(_, dirty)| **dirty);
                let Some(id) = dirty.map(|(id, _)| *id) else { return };
                self.cached.insert(id, false);
                self.decided.entry(u64::from(id)).or_default().push(Op::Write);
                let plan = Plan { moves: vec![Move::Clean(block(id))], all_hit: true };
                self.world.steps.background(TENANT, &plan);
            }
        }
    }

    /// Begins every step that may; none conflicts with one under way.
    fn begin(&mut self) -> Result<(), TestCaseError> {
        while let Some(step) = self.world.steps.next_step() {
            let state = self.world.steps.state();
            let pins = state.graph.action(step.id).map_or(&[][..], |step| &step.pins);
            let slots = |first: ResidentId, length: u64| {
                let slot = state.placement.slot(first).unwrap().0;
                let count = length.div_ceil(1 << SHIFT).max(1) as usize;
                (slot..).zip(pins.iter().copied()).take(count).collect::<Vec<_>>()
            };
            let begun = match step.action {
                Action::Cache { op, resident, skip, length } => {
                    let changes = op == Op::Write;
                    let slots = slots(resident, skip + length);
                    Begun { step, backing: 0..0, slots, changes }
                }
                Action::Fill { resident, length } => {
                    let slots = slots(resident, length);
                    Begun { step, backing: 0..0, slots, changes: true }
                }
                Action::Device { op, offset, length, .. } => {
                    let backing = offset >> SHIFT..(offset + length) >> SHIFT;
                    Begun { step, backing, slots: Vec::new(), changes: op != Op::Read }
                }
                _ => {
                    self.world.steps.finish(step.id, Outcome::Done);
                    continue;
                }
            };
            let clash = self.begun.iter().find(|other| begun.conflicts(other));
            prop_assert!(clash.is_none(), "{:?} beside {:?}", step, clash.map(|c| c.step));
            if let Action::Device { op: Op::Write | Op::Trim, .. } = step.action {
                self.check_order(&begun)?;
            }
            self.begun.push(begun);
        }
        Ok(())
    }

    /// Changes of a block of the backing device begin in the order in which they were decided.
    fn check_order(&mut self, begun: &Begun) -> Result<(), TestCaseError> {
        let Action::Device { op, .. } = begun.step.action else { return Ok(()) };
        for number in begun.backing.clone() {
            let first = self.decided.get_mut(&number).map(|decided| decided.remove(0));
            prop_assert_eq!(first, Some(op), "block {}", number);
        }
        Ok(())
    }

    fn end_one(&mut self) {
        if !self.begun.is_empty() {
            let index = self.rng.below(self.begun.len() as u64) as usize;
            let begun = self.begun.swap_remove(index);
            self.world.steps.finish(begun.step.id, Outcome::Done);
        }
    }
}

proptest! {
    #[test]
    fn commands_never_conflict_and_trims_come_in_order(
        seed in any::<u64>(),
        decisions in 1_usize..120,
    ) {
        let mut race = Race {
            world: World::new(rules(), SLOTS),
            cached: BTreeMap::new(),
            begun: Vec::new(),
            decided: BTreeMap::new(),
            rng: Seed(seed).rng(),
        };
        for _ in 0..decisions {
            race.decide();
            race.begin()?;
            for _ in 0..race.rng.below(4) {
                race.end_one();
                race.begin()?;
            }
            race.world.steps.state().placement.audit(SLOTS as usize);
            let held = race.cached.len() as u64;
            prop_assert_eq!(race.world.steps.audit(held, false), Ok(()));
        }
        while !race.begun.is_empty() {
            race.end_one();
            race.begin()?;
        }
        prop_assert_eq!(race.world.steps.audit(race.cached.len() as u64, true), Ok(()));
        prop_assert!(race.decided.values().all(Vec::is_empty), "every change has begun");
    }
}
