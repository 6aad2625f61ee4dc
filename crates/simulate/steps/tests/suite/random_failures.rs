//! Random plans, carried out in random order by commands that fail at random: content is followed
//! from place to place.
//!
//! A read that succeeds brings what was written last when it was decided, or something newer.
//! Content that a failure has lost is not looked for: its owner knows of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{SHIFT, TENANT, World, block, fetches, rules};
use cachewright_cache::{Move, Plan};
use cachewright_steps::{Action, Damage, Outcome, Ready, ResidentId};
use cachewright_testkit::slots::Never;
use cachewright_types::{Op, Rng, Seed};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

const BLOCKS: u64 = 10;
const SLOTS: usize = 4;

/// What a block holds: the number of the decision that wrote or trimmed it, or 0.
type Content = u64;

struct Chaos {
    world: World,
    /// The blocks that the cache holds, with whether each is dirty.
    cached: BTreeMap<u32, bool>,
    /// What a read that is decided now has to bring; nothing if that is lost.
    expected: HashMap<u64, Option<Content>>,
    backing: HashMap<u64, Content>,
    slots: HashMap<ResidentId, Content>,
    /// Content in memory: read to be written back, or fetched.
    memory: HashMap<(ResidentId, u64), Content>,
    fetched: HashMap<ResidentId, Content>,
    begun: Vec<Ready<Never>>,
    /// The block and what is expected of it, of each read by its tag; then what it has brought.
    reads: HashMap<u64, (u64, Option<Content>)>,
    brought: HashMap<u64, Content>,
    /// Plans so far, and the tag of each that is a request's.
    plans: u64,
    tags: HashMap<u64, u64>,
    failing: bool,
    compared: u64,
    rng: Rng,
}

impl Chaos {
    fn request(&mut self, op: Op, number: u64, moves: Vec<Move>) {
        let tag = self.world.request(op, number << SHIFT..(number + 1) << SHIFT, moves);
        self.plans += 1;
        self.tags.insert(self.plans, tag);
        match op {
            Op::Read => {
                let expected = *self.expected.entry(number).or_insert(Some(0));
                self.reads.insert(tag, (number, expected));
            }
            _ => {
                self.expected.insert(number, Some(self.plans));
            }
        }
    }

    fn background(&mut self, moves: Vec<Move>) {
        self.plans += 1;
        self.world.steps.background(TENANT, &Plan { moves, all_hit: true });
    }

    fn evict(&mut self, moves: &mut Vec<Move>) {
        while self.cached.len() >= SLOTS {
            let victims: Vec<u32> = self.cached.keys().copied().collect();
            let victim = victims[self.rng.below(victims.len() as u64) as usize];
            let dirty = self.cached.remove(&victim) == Some(true);
            let cached = block(victim);
            moves.push(if dirty { Move::WriteBack(cached) } else { Move::Drop(cached) });
        }
    }

    fn decide(&mut self) {
        let number = self.rng.below(BLOCKS);
        let id = number as u32;
        let (mut moves, held) = (Vec::new(), self.cached.contains_key(&id));
        match self.rng.below(10) {
            0..4 => {
                if held {
                    moves.push(Move::Serve(block(id)));
                } else {
                    self.evict(&mut moves);
                    moves.extend(fetches(id..id + 1));
                    self.cached.insert(id, false);
                }
                self.request(Op::Read, number, moves);
            }
            4..8 => {
                if !held {
                    self.evict(&mut moves);
                }
                moves.push(Move::Serve(block(id)));
                self.cached.insert(id, true);
                self.request(Op::Write, number, moves);
            }
            8 => {
                if let Some(dirty) = self.cached.remove(&id) {
                    moves.push(Move::Discard { cached: block(id), dirty });
                }
                moves.push(Move::Trim);
                self.request(Op::Trim, number, moves);
            }
            _ => {
                let dirty = self.cached.iter().find(|(_, dirty)| **dirty);
                let Some(id) = dirty.map(|(id, _)| *id) else { return };
                self.cached.insert(id, false);
                self.background(vec![Move::Clean(block(id))]);
            }
        }
    }

    /// Begins every step that may, those of what failures lead to among them.
    fn begin(&mut self) {
        loop {
            self.begun.extend(std::iter::from_fn(|| self.world.steps.next_step()));
            if !self.hear() {
                return;
            }
        }
    }

    /// Ends a command: it does what it should, or fails and does nothing.
    fn end_one(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let ready = self.begun.swap_remove(self.rng.below(self.begun.len() as u64) as usize);
        let can_fail = !matches!(ready.action, Action::Pass | Action::WaitForSlot | Action::Decide);
        let fails = can_fail && self.failing && self.rng.below(6) == 0;
        if !fails {
            self.carry_out(&ready);
        }
        let outcome = if fails { Outcome::Failed } else { Outcome::Done };
        self.world.steps.finish(ready.id, outcome);
        self.begin();
    }

    fn carry_out(&mut self, ready: &Ready<Never>) {
        let touched = self.world.steps.touched(ready.id).to_vec();
        let tag = self.tags.get(&ready.decision).copied();
        let read = tag.filter(|tag| self.reads.contains_key(tag));
        let mut bring = |content: Option<Content>| {
            if let Some((tag, content)) = read.zip(content) {
                self.brought.insert(tag, content);
            }
        };
        match ready.action {
            Action::Pass => bring(touched.first().and_then(|id| self.fetched.get(id)).copied()),
            Action::Cache { op: Op::Read, resident, .. } => {
                // One of a write-back is of a plan that may be a read's, too.
                let content = self.slots.get(&resident).copied();
                let own = read.and_then(|tag| self.reads.get(&tag)).map(|(number, _)| *number);
                let number = self.world.steps.state().residents.number(resident);
                if own == number {
                    bring(content);
                }
                self.memory.extend(content.map(|content| ((resident, ready.decision), content)));
            }
            Action::Cache { resident, .. } => {
                self.slots.insert(resident, ready.decision);
            }
            Action::Fill { resident, .. } => {
                let content = self.fetched.get(&resident).copied();
                self.slots.extend(content.map(|content| (resident, content)));
            }
            Action::Device { op: Op::Read, offset, .. } => {
                let content = self.backing.get(&(offset >> SHIFT)).copied().unwrap_or(0);
                bring(Some(content));
                self.fetched.extend(touched.iter().map(|id| (*id, content)));
            }
            Action::Device { op: Op::Write, offset, .. } => {
                for (number, id) in (offset >> SHIFT..).zip(&touched) {
                    let content = self.memory.remove(&(*id, ready.decision));
                    assert!(content.is_some(), "it was read before");
                    self.backing.extend(content.map(|content| (number, content)));
                }
            }
            Action::Device { op: Op::Trim, offset, .. } => {
                self.backing.insert(offset >> SHIFT, ready.decision);
            }
            _ => {}
        }
    }

    /// Content of a block is lost, if it is what is expected of the block.
    fn lose(&mut self, number: u64, content: Option<Content>) {
        let expected = self.expected.entry(number).or_insert(Some(0));
        if expected.is_some_and(|expected| content.is_none_or(|lost| lost == expected)) {
            *expected = None;
        }
    }

    /// Takes failures as an owner does, then answers; returns whether a step has failed.
    fn hear(&mut self) -> bool {
        let failures = self.world.steps.take_failures();
        let any = !failures.is_empty();
        for failure in failures {
            if let Action::Device { op: Op::Trim, offset, .. } = failure.action {
                self.lose(offset >> SHIFT, Some(failure.decision));
            }
            for failed in &failure.blocks {
                let number = failed.number.unwrap();
                let id = number as u32;
                let residents = &self.world.steps.state().residents;
                let is_cached = residents.find(&block(id)) == Some(failed.resident);
                let is_lost = residents.is_lost(failed.resident);
                let content = self.slots.get(&failed.resident).copied();
                match failure.damage {
                    Damage::None => {}
                    Damage::Lost => {
                        if let Action::Cache { op: Op::Write, .. } = failure.action {
                            self.lose(number, Some(failure.decision));
                        }
                        if is_cached && is_lost {
                            let dirty = self.cached.remove(&id).unwrap();
                            if dirty {
                                self.lose(number, None);
                            }
                            self.background(vec![Move::Discard { cached: block(id), dirty }]);
                        }
                    }
                    Damage::StillDirty if is_cached => {
                        self.cached.insert(id, true);
                    }
                    Damage::StillDirty | Damage::Held => self.lose(number, content),
                }
            }
            if failure.damage == Damage::Held {
                self.world.steps.release(failure);
            }
        }
        for (tag, failed) in self.world.answers() {
            let Some((number, expected)) = self.reads.remove(&tag) else { continue };
            let brought = self.brought.remove(&tag);
            if let Some(expected) = expected.filter(|_| !failed) {
                let newer = brought.is_some_and(|brought| brought >= expected);
                assert!(newer, "{brought:?} of block {number} by read {tag}, {expected} expected");
                self.compared += 1;
            }
        }
        any
    }
}

proptest! {
    #[test]
    fn no_read_brings_older_content_whatever_fails(
        seed in any::<u64>(),
        decisions in 1_usize..150,
        failing in any::<bool>(),
    ) {
        let mut chaos = Chaos {
            world: World::new(rules(), SLOTS as u32),
            cached: BTreeMap::new(),
            expected: HashMap::new(),
            backing: HashMap::new(),
            slots: HashMap::new(),
            memory: HashMap::new(),
            fetched: HashMap::new(),
            begun: Vec::new(),
            reads: HashMap::new(),
            brought: HashMap::new(),
            plans: 0,
            tags: HashMap::new(),
            failing,
            compared: 0,
            rng: Seed(seed).rng(),
        };
        for _ in 0..decisions {
            chaos.decide();
            chaos.begin();
            for _ in 0..chaos.rng.below(5) {
                chaos.end_one();
            }
            let held = chaos.cached.len() as u64;
            prop_assert_eq!(chaos.world.steps.audit(held, false), Ok(()));
        }
        while !chaos.begun.is_empty() {
            chaos.end_one();
        }
        prop_assert_eq!(chaos.world.steps.audit(chaos.cached.len() as u64, true), Ok(()));
        prop_assert!(chaos.reads.is_empty(), "every request is answered");
        prop_assert!(failing || decisions < 40 || chaos.compared > 0);
    }
}
