//! The one-pass curve equals the definition, LRU simulations, and published miss counts.

use cachewright_curve::{Curves, StackDistance};
use cachewright_policy::{Access, Future, Verdict, registry};
use cachewright_testkit::streams::{ZipfBlocks, dense, golden_ids};
use cachewright_types::{BlockId, Seed};
use proptest::prelude::*;

/// Misses of libCacheSim's LRU on the golden synthetic stream.
const GOLDEN: [(u32, u64); 7] = [
    (100, 190_485),
    (500, 179_283),
    (1_000, 170_869),
    (2_000, 159_145),
    (5_000, 136_955),
    (10_000, 114_288),
    (20_000, 89_995),
];

/// An LRU stack as in the definition: a list, newest first. `None` is a freed frame.
#[derive(Default)]
struct ListStack(Vec<Option<BlockId>>);

impl ListStack {
    /// The distance of an access, nothing if the block is not in the list.
    fn access(&mut self, block: BlockId) -> Option<usize> {
        let found = self.0.iter().position(|entry| *entry == Some(block));
        let hole = self.0.iter().position(Option::is_none);
        if let Some(index) = found {
            self.0[index] = None;
        }
        // Whatever lies above the first free frame moves down into it.
        match (hole, found) {
            (Some(hole), Some(index)) if hole > index => self.0.remove(index),
            (Some(hole), _) => self.0.remove(hole),
            (None, Some(index)) => self.0.remove(index),
            (None, None) => None,
        };
        self.0.insert(0, Some(block));
        found.map(|index| index + 1)
    }

    /// Frees the block's frame.
    fn remove(&mut self, block: BlockId) {
        if let Some(index) = self.0.iter().position(|entry| *entry == Some(block)) {
            self.0[index] = None;
        }
    }

    /// Takes the block out and closes the gap.
    fn forget(&mut self, block: BlockId) {
        self.0.retain(|entry| *entry != Some(block));
    }
}

#[test]
fn one_pass_gives_the_golden_misses_at_every_size() {
    let mut stack = StackDistance::new();
    for block in dense(golden_ids()) {
        stack.access(block, false);
    }
    let curves = Curves::exact(stack.histogram());
    for (size, misses) in GOLDEN {
        assert_eq!(curves.all.misses(size), misses as f64, "at {size} blocks");
    }
    assert_eq!(stack.distinct(), 34_430);
    assert_eq!(curves.all.misses(u32::MAX), 34_430.0);
    assert!(curves.all.is_monotone());
    assert_eq!(stack.audit(), Ok(()));
}

#[derive(Clone, Debug)]
enum StackOp {
    Access(u32, bool),
    Remove(u32),
    Forget(u32),
}

fn steps(removes: bool, forgets: bool) -> impl Strategy<Value = Vec<StackOp>> {
    let id = 0_u32..60;
    let access = (id.clone(), any::<bool>()).prop_map(|(id, write)| StackOp::Access(id, write));
    let step = prop_oneof![
        20 => access,
        u32::from(removes) => id.clone().prop_map(StackOp::Remove),
        u32::from(forgets) => id.prop_map(StackOp::Forget),
    ];
    prop::collection::vec(step, 1..600)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn distances_are_those_of_a_list(steps in steps(true, true)) {
        let (mut stack, mut list) = (StackDistance::new(), ListStack::default());
        for step in steps {
            match step {
                StackOp::Access(id, write) => {
                    let found = stack.access(BlockId(id), write).map(|d| d as usize);
                    prop_assert_eq!(found, list.access(BlockId(id)));
                }
                StackOp::Remove(id) => {
                    stack.remove(BlockId(id));
                    list.remove(BlockId(id));
                }
                StackOp::Forget(id) => {
                    stack.forget(BlockId(id));
                    list.forget(BlockId(id));
                }
            }
        }
        prop_assert_eq!(stack.audit(), Ok(()));
    }

    #[test]
    fn curves_are_those_of_lru_simulations_with_trims(steps in steps(true, false)) {
        let mut stack = StackDistance::new();
        let sizes = [1_u32, 2, 3, 5, 10, 20, 40, 59, 60];
        let mut caches: Vec<_> = sizes
            .iter()
            .map(|&size| registry::boxed("lru", &[], size, Seed(1)).unwrap())
            .collect();
        caches.iter_mut().for_each(|cache| cache.reserve_ids(60));
        let mut misses = vec![[0_u64; 2]; sizes.len()];
        for step in steps {
            match step {
                StackOp::Access(id, write) => {
                    let access = Access { block: BlockId(id), write, future: Future::None };
                    stack.access(access.block, write);
                    for (cache, misses) in caches.iter_mut().zip(&mut misses) {
                        misses[usize::from(write)] +=
                            u64::from(cache.access(access) != Verdict::Hit);
                    }
                }
                StackOp::Remove(id) | StackOp::Forget(id) => {
                    stack.remove(BlockId(id));
                    caches.iter_mut().for_each(|cache| { cache.remove(BlockId(id)); });
                }
            }
        }
        let curves = Curves::exact(stack.histogram());
        for (&size, misses) in sizes.iter().zip(&misses) {
            prop_assert_eq!(curves.reads.misses(size), misses[0] as f64);
            prop_assert_eq!(curves.writes.misses(size), misses[1] as f64);
            prop_assert_eq!(curves.all.misses(size), (misses[0] + misses[1]) as f64);
        }
    }
}

#[test]
fn long_streams_with_many_compactions_agree_with_lru() {
    let mut zipf = ZipfBlocks::new(20_000, Seed(5));
    let sizes = [1_u32, 7, 100, 1_000, 7_777, 20_000];
    let mut caches: Vec<_> =
        sizes.iter().map(|&size| registry::boxed("lru", &[], size, Seed(1)).unwrap()).collect();
    caches.iter_mut().for_each(|cache| cache.reserve_ids(20_000));
    let mut misses = [0_u64; 6];
    let mut stack = StackDistance::new();
    for _ in 0..400_000 {
        let block = zipf.draw();
        stack.access(block, false);
        for (cache, misses) in caches.iter_mut().zip(&mut misses) {
            *misses += u64::from(cache.access(Access::read(block)) != Verdict::Hit);
        }
    }
    assert_eq!(stack.audit(), Ok(()));
    let curve = Curves::exact(stack.histogram()).all;
    for (size, misses) in sizes.into_iter().zip(misses) {
        assert_eq!(curve.misses(size), misses as f64, "at {size} blocks");
    }
}

#[test]
fn a_window_counts_only_itself_but_remembers_the_stack() {
    let mut stack = StackDistance::new();
    stack.access(BlockId(0), false);
    stack.access(BlockId(1), false);
    assert_eq!(stack.take_histogram().cold(), [2, 0]);
    assert_eq!(stack.access(BlockId(0), true), Some(2));
    let second = stack.take_histogram();
    assert_eq!((second.cold(), second.accesses()), ([0, 0], [0, 1]));
    assert_eq!(second.hits(2), [0, 1]);
}

#[test]
fn a_million_blocks_stay_exact_within_sixteen_bytes_each() {
    const BLOCKS: u32 = 1_000_000;
    let mut rng = Seed(9).rng();
    let draw = |_| BlockId((f64::from(BLOCKS) * rng.unit() * rng.unit()) as u32);
    let first: Vec<BlockId> = (0..BLOCKS).map(BlockId).collect();
    let then: Vec<BlockId> = (0..2_000_000).map(draw).collect();
    let mut stack = StackDistance::new();
    let mut cache = registry::boxed("lru", &[], 123_456, Seed(1)).unwrap();
    cache.reserve_ids(BLOCKS as usize);
    let mut misses = 0_u64;
    for part in [first, then] {
        stack.access_all(&part, false);
        for block in part {
            misses += u64::from(cache.access(Access::read(block)) != Verdict::Hit);
        }
    }
    let bytes = stack.memory_bytes() as f64 / f64::from(stack.distinct());
    assert!(bytes <= 16.0, "{bytes} bytes per block");
    assert_eq!(Curves::exact(stack.histogram()).all.misses(123_456), misses as f64);
    assert_eq!(stack.audit(), Ok(()));
}
