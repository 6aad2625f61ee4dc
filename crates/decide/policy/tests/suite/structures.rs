//! The queue and the orders of Belady and of benefits agree with plain containers over long runs
//! with many removals.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;
use crate::ghost_models::smq::Levels;

use cachewright_policy::level_chunks::{
    ChunkLists, Chunked, KINDS, KindTally, LevelChunks, Places,
};
use cachewright_policy::levels::{LEVELS, LevelLook, LevelQueue, LevelStore};
use cachewright_policy::queue::BlockQueue;
use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, Future, Verdict};
use cachewright_testkit::streams::golden_ids;
use cachewright_types::{BlockId, Seed};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Pushes, pops and removals in phases that each favour one of them, so that the ring grows,
/// wraps, fills with stale entries and is compacted.
#[test]
fn the_queue_is_a_deque_with_removal() {
    let mut rng = Seed(1).derive("queue").rng();
    let mut queue = BlockQueue::default();
    let mut model: VecDeque<BlockId> = VecDeque::new();
    for step in 0..60_000_u64 {
        let block = BlockId(rng.below(400) as u32);
        let favoured = step / 1_000 % 3;
        let choice = if rng.below(2) == 0 { favoured } else { rng.below(3) };
        let held = model.contains(&block);
        match choice {
            0 if !held => {
                queue.push(block);
                model.push_back(block);
            }
            1 => assert_eq!(queue.pop(), model.pop_front(), "step {step}"),
            2 if held => {
                queue.remove(block);
                model.retain(|b| *b != block);
            }
            _ => {}
        }
        assert_eq!(queue.len() as usize, model.len(), "step {step}");
        if step % 97 == 0 {
            assert_eq!(queue.audit(), Ok(()), "step {step}");
            assert!(model.iter().eq(queue.blocks().iter()), "step {step}");
        }
    }
}

/// Places of entries whose kind is the rest of the id by four.
struct KindPlaces(Vec<u32>);

impl Places for &mut KindPlaces {
    fn place(&self, entry: u32) -> u32 {
        self.0[entry as usize]
    }
    fn set_place(&mut self, entry: u32, place: u32) {
        self.0[entry as usize] = place;
    }
    fn kind(&self, entry: u32) -> usize {
        entry as usize % KINDS
    }
}

/// Entries of `LISTS` lists in a test of chunks.
const ENTRIES: u32 = 1_500;

/// Puts, removals and splices in phases that fill, thin out and shuffle the lists.
#[test]
fn chunks_are_deques_with_removal_and_splices() {
    const LISTS: usize = 3;
    let mut rng = Seed(3).derive("chunks").rng();
    let mut places = KindPlaces(vec![0; ENTRIES as usize]);
    let mut lists: ChunkLists<KindTally, LISTS> = ChunkLists::default();
    let mut model: [VecDeque<BlockId>; LISTS] = Default::default();
    for step in 0..30_000_u64 {
        let block = BlockId(rng.below(u64::from(ENTRIES)) as u32);
        let list = rng.below(LISTS as u64) as usize;
        let held = model.iter().position(|entries| entries.contains(&block));
        let thinning = step / 3_000 % 3 == 2;
        let mut chunks = Chunked { places: &mut places, lists: &mut lists };
        match (rng.below(20), held) {
            (0, _) => {
                let to = (list + 1 + rng.below(2) as usize) % LISTS;
                let count = rng.below(model[list].len() as u64 + 1) as usize;
                let at = model[list].len() - count;
                let (kinds, moved): (_, Vec<BlockId>) = if step % 2 == 0 {
                    let kinds = chunks.splice_oldest(list, to, count as u32);
                    let moved: Vec<BlockId> = model[list].drain(..count).collect();
                    model[to].extend(&moved);
                    (kinds, moved)
                } else {
                    let kinds = chunks.splice_newest(list, to, count as u32);
                    let moved: Vec<BlockId> = model[list].drain(at..).collect();
                    moved.iter().rev().for_each(|block| model[to].push_front(*block));
                    (kinds, moved)
                };
                let of = |kind| moved.iter().filter(|block| block.0 % 4 == kind).count() as u32;
                assert_eq!(kinds, [0, 1, 2, 3].map(of), "step {step}");
            }
            (1..=4, Some(from)) if from + 1 < LISTS => {
                let climb = chunks.climb(block, 1);
                model[from].retain(|other| *other != block);
                let other = model[from + 1].pop_front();
                model[from].extend(other);
                model[from + 1].push_back(block);
                assert_eq!((climb.from, climb.to), (from, from + 1), "step {step}");
                let kind = |block: BlockId| block.index() % KINDS;
                assert_eq!(climb.kind, kind(block), "step {step}");
                assert_eq!(climb.other, other.map(kind), "step {step}");
            }
            (_, None) if !thinning => {
                chunks.put_newest(list, block);
                model[list].push_back(block);
            }
            (_, Some(held)) if thinning || step % 2 == 0 => {
                chunks.take(block);
                model[held].retain(|other| *other != block);
            }
            _ => {}
        }
        for (list, entries) in model.iter().enumerate() {
            assert_eq!(lists.count(list) as usize, entries.len(), "step {step}");
            assert_eq!(lists.newest_of(list), entries.back().copied(), "step {step}");
            assert_eq!(lists.oldest_of(list), entries.front().copied(), "step {step}");
        }
        if step % 37 == 0 {
            let known = |entry: u32| (places.0[entry as usize], entry as usize % KINDS);
            assert_eq!(lists.audit(known), Ok(()), "step {step}");
            let placed = places.0.iter().filter(|place| **place != 0).count();
            assert_eq!(placed, model.iter().map(VecDeque::len).sum::<usize>(), "step {step}");
            for (list, entries) in model.iter().enumerate() {
                assert!(lists.iter(list).eq(entries.iter().rev().copied()), "step {step}");
            }
        }
    }
}

/// The queue of levels against one that moves entry by entry, with several chunks per level.
#[test]
fn levels_are_evened_out_as_one_by_one() {
    for (top_levels, in_top) in [(0, 0), (8, 64), (8, 4_000)] {
        let mut rng = Seed(in_top).derive("levels").rng();
        let mut chunks: LevelChunks<(), LEVELS> = LevelChunks::default();
        chunks.reserve_ids(3_000);
        let mut queue = LevelQueue::new(0, top_levels, in_top as u32);
        let mut model = Levels::new();
        for step in 0..9_000_u64 {
            let id = rng.below(3_000) as u32;
            let favoured = (step / 700 % 4 * 20) as u8;
            match (chunks.linked(BlockId(id)), rng.below(8)) {
                (false, _) => {
                    let level = favoured.min(rng.below(64) as u8);
                    queue.push(&mut chunks.store(), level, BlockId(id));
                    model.0[usize::from(level)].push_back(id);
                }
                (true, 0) => {
                    queue.unlink(&mut chunks.store(), BlockId(id));
                    model.0.iter_mut().for_each(|level| level.retain(|other| *other != id));
                }
                (true, 1) => {
                    let oldest = queue.oldest(&chunks.lists, 0, LEVELS).unwrap();
                    queue.unlink(&mut chunks.store(), oldest);
                    assert_eq!(model.pop_oldest(0, LEVELS).unwrap().1, oldest.0);
                }
                (true, jump) => {
                    queue.requeue(&mut chunks.store(), BlockId(id), jump as u8 - 2);
                    model.use_entry(id, jump as usize - 2);
                }
            }
            if step % 300 == 299 {
                queue.redistribute(&mut chunks.store());
                model.even_out(top_levels, in_top as usize);
                assert_eq!((queue.audit(&chunks.lists), chunks.audit()), (Ok(()), Ok(())));
                for (level, entries) in model.0.iter().enumerate() {
                    let ours = chunks.lists.iter(level).map(|block| block.0);
                    assert!(ours.eq(entries.iter().rev().copied()), "step {step}: level {level}");
                }
            }
        }
        assert!(queue.len() > 2_000, "several chunks per level");
    }
}

/// Belady in a search tree of (next use, block).
struct Tree {
    capacity: usize,
    bypass: bool,
    order: BTreeSet<(u32, u32)>,
    next_use: HashMap<u32, u32>,
}

impl Tree {
    /// Whether the access hits, given what the policy under test drove out; of several blocks that
    /// are never used again any may go.
    fn access(&mut self, access: Access, verdict: Verdict) -> bool {
        let (block, next_use) = (access.block.0, access.future.next_use());
        if let Some(old) = self.next_use.get(&block).copied() {
            self.order.remove(&(old, block));
            self.put(block, next_use);
            return true;
        }
        if self.order.len() < self.capacity {
            self.put(block, next_use);
            return false;
        }
        let furthest = self.order.last().unwrap().0;
        if self.bypass && next_use >= furthest {
            assert_eq!(verdict, Verdict::Bypass);
            return false;
        }
        let Verdict::Admit { evicted: Some(victim) } = verdict else {
            panic!("a full cache drives a block out, found {verdict:?}");
        };
        assert_eq!(self.next_use[&victim.0], furthest, "the block used last leaves");
        self.remove(victim.0);
        self.put(block, next_use);
        false
    }

    fn put(&mut self, block: u32, next_use: u32) {
        self.next_use.insert(block, next_use);
        self.order.insert((next_use, block));
    }

    fn remove(&mut self, block: u32) -> bool {
        let known = self.next_use.remove(&block);
        known.is_some_and(|next_use| self.order.remove(&(next_use, block)))
    }
}

#[test]
fn belady_is_a_search_tree_by_next_use() {
    let trace = common::Trace::from_raw(golden_ids());
    for (name, bypass) in [("belady", false), ("belady-bypass", true)] {
        for (capacity, removals) in [(100, 0), (1_000, 3), (5_000, 1), (5_000, 0), (20_000, 3)] {
            let mut rng = Seed(2).derive(name).rng();
            let mut policy = boxed(name, &[], capacity, Seed(0)).unwrap();
            policy.reserve_ids(trace.distinct);
            let mut tree = Tree {
                capacity: capacity as usize,
                bypass,
                order: BTreeSet::new(),
                next_use: HashMap::new(),
            };
            for (position, access) in trace.accesses().enumerate() {
                let verdict = policy.access(access);
                let hit = tree.access(access, verdict);
                assert_eq!(verdict == Verdict::Hit, hit, "{name} of {capacity} at {position}");
                for _ in 0..removals {
                    let block = rng.below(trace.distinct as u64) as u32;
                    assert_eq!(policy.remove(BlockId(block)), tree.remove(block));
                }
                if position % 20_011 == 0 {
                    assert_eq!(policy.audit(), Ok(()), "{name} of {capacity} at {position}");
                }
            }
        }
    }
}

/// The oracle with benefit as a list of (block, benefit, last access), searched from end to end.
#[derive(Default)]
struct Worths {
    capacity: usize,
    held: Vec<(u32, f32, usize)>,
}

impl Worths {
    fn access(&mut self, block: u32, benefit: f32, now: usize) -> Verdict {
        if let Some(known) = self.held.iter_mut().find(|held| held.0 == block) {
            *known = (block, benefit, now);
            return Verdict::Hit;
        }
        let older = |a: &&(u32, f32, usize), b: &&(u32, f32, usize)| {
            a.1.total_cmp(&b.1).then(a.2.cmp(&b.2))
        };
        let least = self.held.iter().min_by(older).copied();
        let mut evicted = None;
        if self.held.len() == self.capacity {
            evicted = least.filter(|least| benefit > least.1).map(|least| BlockId(least.0));
            if evicted.is_none() {
                return Verdict::Bypass;
            }
            self.held.retain(|held| Some(BlockId(held.0)) != evicted);
        } else if benefit == 0.0 {
            return Verdict::Bypass;
        }
        self.held.push((block, benefit, now));
        Verdict::Admit { evicted }
    }

    fn remove(&mut self, block: u32) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.0 != block);
        self.held.len() < before
    }
}

#[test]
fn the_oracle_with_benefit_is_a_list_searched_for_the_least() {
    const DISTINCT: u64 = 120;
    for (capacity, removals) in [(0, 0), (1, 0), (2, 1), (9, 0), (40, 2), (100, 0)] {
        let mut rng = Seed(3).derive("worths").rng();
        let mut policy = boxed("benefit-oracle", &[], capacity, Seed(0)).unwrap();
        policy.reserve_ids(DISTINCT as usize);
        let mut model = Worths { capacity: capacity as usize, ..Worths::default() };
        let mut evictions = 0;
        for now in 0..20_000 {
            // Few values, so that many blocks are worth the same, and often nothing.
            let (block, benefit) = (rng.below(DISTINCT) as u32, rng.below(12) as f32 / 2.0);
            let future = Future::Benefit(benefit);
            let access = Access { future, ..Access::read(BlockId(block)) };
            let verdict = policy.access(access);
            let expected = model.access(block, benefit, now);
            assert_eq!(verdict, expected, "{capacity} blocks at {now}");
            evictions += u32::from(matches!(verdict, Verdict::Admit { evicted: Some(_) }));
            if now % 40 < removals {
                let block = rng.below(DISTINCT) as u32;
                assert_eq!(policy.remove(BlockId(block)), model.remove(block));
            }
            if now % 997 == 0 {
                assert_eq!(policy.audit(), Ok(()), "{capacity} blocks at {now}");
            }
        }
        assert!(capacity == 0 || evictions > 100, "{evictions} evictions of {capacity} blocks");
    }
}
