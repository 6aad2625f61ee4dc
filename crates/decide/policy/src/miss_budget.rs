//! The misses that a cache may have more than `lru`.
//!
//! For: `duel-x` and `guarded`, which follow what did best of late and may be wrong. Ours. Unit:
//! misses. Each miss of an `lru` of the same accesses adds to the budget, with an allowance; each
//! miss of the cache spends one. While nothing is left the cache must follow `lru`, until half of
//! the first budget is there again.

use crate::Verdict;
use cachewright_snapshot::SnapshotValue;

/// The budget at first, and the most that it can be, in capacities of the `lru`.
const FIRST: f64 = 0.5;
const MOST: f64 = 4.0;

/// What is left to spend.
#[derive(Clone, Debug, SnapshotValue)]
pub struct MissBudget {
    /// Misses; below 0 where the change to `lru` costs more than was left.
    left: f64,
    first: f64,
    most: f64,
    allowance: f64,
}

impl MissBudget {
    /// The first budget of a cache whose `lru` has so many blocks. `allowance` is a share of the
    /// misses of `lru`.
    pub fn new(capacity: u32, allowance: f64) -> MissBudget {
        let mut budget = MissBudget { left: 0.0, first: 0.0, most: 0.0, allowance };
        budget.scale(capacity);
        budget
    }

    /// Takes another capacity; what is left scales with it.
    pub fn scale(&mut self, capacity: u32) {
        let first = FIRST * f64::from(capacity);
        // A cache that had no blocks has spent nothing.
        let left = if self.first > 0.0 { self.left / self.first } else { 1.0 };
        self.left = left * first;
        (self.first, self.most) = (first, MOST * f64::from(capacity));
    }

    /// Notes what `lru` and the cache decided about the same access.
    #[inline(always)]
    pub fn note(&mut self, lru: Verdict, cache: Verdict) {
        let added = f64::from(lru != Verdict::Hit) * (1.0 + self.allowance);
        let spent = f64::from(cache != Verdict::Hit);
        self.left = (self.left + added - spent).min(self.most);
    }

    /// Whether the cache must follow `lru`: nothing is left, or too little to leave it.
    #[inline(always)]
    pub fn demands_lru(&self, follows_lru: bool) -> bool {
        self.left <= if follows_lru { self.first / 2.0 } else { 0.0 }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::Access;
    use cachewright_types::{BlockId, Rng, Seed};

    /// Turns of a loop above the cache, of sets of half a cache that become hot one after another,
    /// and of re-use in a flood; their lengths are drawn.
    pub struct Turns {
        capacity: u32,
        rng: Rng,
        kind: u64,
        left: u64,
        index: u32,
    }

    impl Turns {
        /// For a cache of so many blocks; ids are below 60 times that.
        pub fn new(seed: u64, capacity: u32) -> Turns {
            Turns { capacity, rng: Seed(seed).rng(), kind: 0, left: 0, index: 0 }
        }

        /// The next access.
        pub fn next(&mut self) -> Access {
            let capacity = self.capacity;
            if self.left == 0 {
                self.kind = self.rng.below(3);
                self.left = 1 + self.rng.below(u64::from(capacity) * 12);
            }
            (self.left, self.index) = (self.left - 1, self.index + 1);
            let half = u64::from(capacity) / 2;
            let id = match self.kind {
                0 => self.index % (capacity + capacity / 16),
                1 => {
                    2 * capacity
                        + self.index / (4 * capacity) % 8 * half as u32
                        + self.rng.below(half) as u32
                }
                _ if self.index.is_multiple_of(4) => 8 * capacity + self.rng.below(half) as u32,
                _ => 10 * capacity + self.index % (50 * capacity),
            };
            Access { write: self.index.is_multiple_of(3), ..Access::read(BlockId(id)) }
        }
    }

    const MISS: Verdict = Verdict::Admit { evicted: None };

    /// Capacity 100: the budget of 50 is spent by 50 misses where `lru` hits; 25 are there again
    /// after 1,250 misses of both, at 0.02 each.
    #[test]
    fn a_spent_budget_demands_lru_until_half_of_the_first_one_is_there_again() {
        let mut budget = MissBudget::new(100, 0.02);
        for _ in 0..50 {
            assert!(!budget.demands_lru(false));
            budget.note(Verdict::Hit, MISS);
        }
        assert!(budget.demands_lru(false));
        for _ in 0..1_240 {
            budget.note(MISS, MISS);
            assert!(budget.demands_lru(true) && !budget.demands_lru(false));
        }
        (0..20).for_each(|_| budget.note(MISS, MISS));
        assert!(!budget.demands_lru(true), "{} are left", budget.left);
    }

    /// What was gained counts up to 4 capacities, and scales with the cache.
    #[test]
    fn gains_are_kept_up_to_a_bound_and_scale_with_the_capacity() {
        let mut budget = MissBudget::new(100, 0.02);
        (0..1_000).for_each(|_| budget.note(MISS, Verdict::Hit));
        assert_eq!(budget.left, 400.0);
        budget.scale(50);
        assert_eq!(budget.left, 200.0);
        (0..200).for_each(|_| budget.note(Verdict::Hit, Verdict::Bypass));
        assert!(budget.demands_lru(false));
        let mut none = MissBudget::new(0, 0.02);
        none.scale(100);
        assert_eq!(none.left, 50.0, "a cache without blocks has spent nothing");
    }
}
