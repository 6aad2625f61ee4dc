//! Access frequency: a missed block enters only if it is asked for more often than one held.
//!
//! For: the frequency-counting flash caches that later papers call "Access Frequency". Sources:
//! Klonatos et al., "Azor", NAS'11 (a running estimate of each block's accesses decides whether it
//! may replace a cached one) and Chen, Koufaty, Zhang, "Hystor", ICS'11 (a block table of access
//! counts with bounded size and regular ageing).
//!
//! The reading chosen, where the papers describe systems rather than one algorithm: every access
//! adds one to the block's count; the resident block with the lowest count, and among those the one
//! longest at that count, is the one to replace; a missed block replaces it only if its own count
//! is higher (ties stay out), and enters freely while there is room. Counts of blocks not resident
//! are kept for the most recently missed or evicted ones only. All counts are halved at regular
//! intervals; a count of 0 outside the cache is forgotten. Not taken over: Azor's priority of file
//! system metadata and Hystor's weighting by request size, which a policy of unit blocks cannot
//! see. Unit: blocks and accesses. Counts stop at 255.

use crate::frequency_table::FrequencyTable;
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed};

cachewright_types::declare! {
    /// How much is remembered, and for how long.
    pub struct AccessFrequencySettings {
        /// blocks outside the cache whose counts are kept, as a multiple of the capacity
        history: f64 = 3.0, "ratio", 0.0 ..= 100.0;
        /// accesses between two halvings of all counts, as a multiple of the capacity
        halve_every: f64 = 16.0, "ratio", 0.1 ..= 1e9;
    }
}

/// Admission and replacement by access counts.
#[derive(Clone, Debug, Snapshot)]
pub struct AccessFrequency {
    table: FrequencyTable,
    capacity: u32,
    #[snapshot(settings)]
    settings: AccessFrequencySettings,
    halving_interval: u64,
    accesses_to_halving: u64,
}

impl Registered for AccessFrequency {
    type Settings = AccessFrequencySettings;
    const ENTRY: Entry = Entry {
        name: "access-frequency",
        doc: "admits a block that was requested more often than the least requested cached one",
        source: "Klonatos et al. (Azor), NAS'11; Chen et al. (Hystor), ICS'11",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &AccessFrequencySettings, _: Seed) -> Self {
        let mut policy = AccessFrequency {
            table: FrequencyTable::default(),
            capacity: capacity_blocks,
            settings: settings.clone(),
            halving_interval: 0,
            accesses_to_halving: 0,
        };
        policy.on_capacity();
        policy.accesses_to_halving = policy.halving_interval;
        policy
    }
}

impl AccessFrequency {
    #[inline(always)]
    fn age(&mut self) {
        self.accesses_to_halving -= 1;
        self.table.age(self.accesses_to_halving, self.halving_interval);
        if self.accesses_to_halving == 0 {
            self.accesses_to_halving = self.halving_interval;
        }
    }
}

impl PolicyHooks for AccessFrequency {}

impl StoredPolicy for AccessFrequency {
    stored_in!(table: FrequencyTable);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.age();
        if self.table.hit(block) {
            return Verdict::Hit;
        }
        let count = self.table.count_miss(block);
        let full = self.table.resident() >= self.capacity;
        if full && self.table.lowest_count().is_none_or(|lowest| count <= lowest) {
            self.table.remember(block, count);
            return Verdict::Bypass;
        }
        let evicted = if full { self.evict() } else { None };
        self.table.keep(block, count);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.table.evict_rarest()
    }

    fn adopt_block(&mut self, block: BlockId, _: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let count = self.table.count_miss(block);
        let full = self.table.resident() >= self.capacity;
        let evicted = if full { self.evict() } else { None };
        self.table.keep(block, count);
        Verdict::Admit { evicted }
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.table.history_limit())
    }

    fn on_capacity(&mut self) {
        let capacity = f64::from(self.capacity);
        self.table.limit_history((self.settings.history * capacity) as u32);
        self.halving_interval = ((self.settings.halve_every * capacity) as u64).max(1);
    }

    fn trim_ghosts(&mut self) {
        self.table.trim_history();
        self.accesses_to_halving = self.accesses_to_halving.min(self.halving_interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn feed(policy: &mut AccessFrequency, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| policy.access(Access::read(BlockId(*id)))).collect()
    }

    fn count(policy: &AccessFrequency, id: u32) -> u8 {
        policy.table.count_of(BlockId(id))
    }

    /// Capacity 2, history of 4, halving every 10 accesses.
    #[test]
    fn the_hand_worked_case() {
        let settings = AccessFrequencySettings { history: 2.0, halve_every: 5.0 };
        let mut policy = AccessFrequency::new(2, &settings, Seed(0));
        policy.reserve_ids(8);
        // Room for two; 0 reaches 3, 1 reaches 1. (4 accesses)
        feed(&mut policy, &[0, 0, 0, 1]);
        // 2 has 1: not more than 1 has, so it stays out; then 2 > 1 and it takes the place of 1.
        let verdicts = feed(&mut policy, &[2, 2]);
        assert_eq!(verdicts, [Verdict::Bypass, Verdict::Admit { evicted: Some(BlockId(1)) }]);
        // 1 comes back with its count of 1 + 1 = 2, a tie with 2, and stays out; then 3 > 2. (8)
        let verdicts = feed(&mut policy, &[1, 1]);
        assert_eq!(verdicts, [Verdict::Bypass, Verdict::Admit { evicted: Some(BlockId(2)) }]);
        assert_eq!([0, 1, 2].map(|id| count(&policy, id)), [3, 3, 2]);
        // 3 stays out with 1 (9 accesses). The tenth halves first: 1, 1, 1, and 3 is forgotten;
        // then 2 has 1 + 1 = 2 and replaces 0, which has been at its count longest.
        assert_eq!(feed(&mut policy, &[3]), [Verdict::Bypass]);
        assert!(policy.tracks(BlockId(3)));
        assert_eq!(feed(&mut policy, &[2]), [Verdict::Admit { evicted: Some(BlockId(0)) }]);
        assert_eq!([0, 1, 2].map(|id| count(&policy, id)), [1, 1, 2]);
        assert!(!policy.tracks(BlockId(3)));
        assert_eq!(policy.audit(), Ok(()));
    }
}
