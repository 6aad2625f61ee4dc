//! S3-FIFO: a small queue lets most blocks go early, a main queue keeps those asked for again, a
//! ghost queue remembers what the small one let go.
//!
//! Sources: libCacheSim's S3FIFO.c, the authors' own code, as revised in October 2024
//! (`libcachesim`); Yang et al., "FIFO queues are all you need for cache eviction", SOSP'23,
//! Algorithm 1 (`paper`).
//!
//! | | `libcachesim` | `paper` |
//! |---|---|---|
//! | small queue's share | 0.1 c rounded down, at least 1 | 0.1 c, rounded up |
//! | who evicts first | main when beyond its share | small when it has its share, else main |
//! | new block before the first eviction | main once small has its share | small |
//! | promoted block finds main beyond its share | nothing | main evicts |
//!
//! Both: 2-bit counters, cleared by promotion (section 4.1 of the paper); promotion at 2 hits in
//! the small queue ("freq > 1"); a ghost hit goes to main and its entry is dropped. "M is full" is
//! read as beyond its share, so that main can use all of it. One departure: where Algorithm 1 has
//! main evict for a promoted block and then goes on to evict from the small queue as well, we stop,
//! because one block has left and one place was asked for. (Up to 423 of the evictions of the
//! golden synthetic trace take two blocks if one does not stop; no miss count changes at any of its
//! seven sizes.)

use crate::hit_queues::HitQueues;
use crate::registry::{Entry, Registered, Variant};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed, declare};

/// The queues.
const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

declare! {
    /// The proportions and rules of S3-FIFO.
    pub struct S3FifoSettings {
        /// whose rules: `libcachesim` is the code of the paper's authors, `paper` Algorithm 1
        variant: Variant = Variant::Libcachesim, "name";
        /// share of the cache in which new blocks start
        small_share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// evicted blocks remembered, as a share of the cache
        ghost_share: f64 = 0.9, "ratio", 0.0 ..= 3.0;
        /// hits in the small queue that promote a block to the main queue
        promote_hits: u32 = 2, "hits", 1 ..= 3;
    }
}

/// S3-FIFO, by the rules of its [`Variant`].
#[derive(Clone, Debug, Snapshot)]
pub struct S3Fifo {
    queues: HitQueues<3, 2>,
    capacity: u32,
    small_blocks: u32,
    ghost_blocks: u32,
    has_evicted: bool,
    #[snapshot(settings)]
    settings: S3FifoSettings,
}

impl S3Fifo {
    #[inline(always)]
    fn follows_paper(&self) -> bool {
        self.settings.variant == Variant::Paper
    }

    #[inline(always)]
    fn main_is_beyond_its_share(&self) -> bool {
        self.queues.len(MAIN) > self.capacity.saturating_sub(self.small_blocks)
    }

    /// Algorithm 1, "evictS".
    #[inline(always)]
    fn evict_small(&mut self) -> Option<BlockId> {
        while let Some((block, hits)) = self.queues.pop(SMALL) {
            if u32::from(hits) < self.settings.promote_hits {
                self.remember(block);
                return Some(block);
            }
            self.queues.push(MAIN, block);
            if self.follows_paper() && self.main_is_beyond_its_share() {
                return self.evict_main();
            }
        }
        None
    }

    /// Algorithm 1, "evictM": FIFO with reinsertion, a counter in place of a bit.
    #[inline(always)]
    fn evict_main(&mut self) -> Option<BlockId> {
        self.queues.pop_unhit(MAIN)
    }

    #[inline(always)]
    fn remember(&mut self, block: BlockId) {
        self.trim_ghost_queue(self.ghost_blocks.saturating_sub(1));
        if self.ghost_blocks > 0 {
            self.queues.push(GHOST, block);
        }
    }

    #[inline(always)]
    fn trim_ghost_queue(&mut self, limit: u32) {
        while self.queues.len(GHOST) > limit {
            self.queues.pop(GHOST);
        }
    }
}

impl Registered for S3Fifo {
    type Settings = S3FifoSettings;
    const ENTRY: Entry = Entry {
        name: "s3-fifo",
        doc: "a small queue filters what enters the main queue; evicted blocks are remembered",
        source: "Yang et al., FIFO queues are all you need for cache eviction, SOSP'23; the \
                 authors' code in libCacheSim, S3FIFO.c as revised in October 2024",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &S3FifoSettings, _: Seed) -> Self {
        let mut cache = S3Fifo {
            queues: HitQueues::default(),
            capacity: capacity_blocks,
            small_blocks: 0,
            ghost_blocks: 0,
            has_evicted: false,
            settings: settings.clone(),
        };
        cache.on_capacity();
        cache
    }
}

impl PolicyHooks for S3Fifo {}

impl StoredPolicy for S3Fifo {
    stored_in!(queues: HitQueues<3, 2>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.queues.contains(block) {
            self.queues.count_hit(block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let remembered = self.queues.tracks(block);
        if remembered {
            self.queues.remove(block);
        }
        let evicted = if self.queues.resident() == self.capacity { self.evict() } else { None };
        let overflow = !self.has_evicted
            && !self.follows_paper()
            && self.queues.len(SMALL) >= self.small_blocks;
        self.queues.push(if remembered || overflow { MAIN } else { SMALL }, block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.has_evicted = true;
        let from_small = if self.follows_paper() {
            self.queues.len(SMALL) >= self.small_blocks
        } else {
            !self.main_is_beyond_its_share() && self.queues.len(SMALL) > 0
        };
        if !from_small {
            return self.evict_main();
        }
        // "evictS" may promote everything it looks at; the cache is then still full.
        self.evict_small().or_else(|| self.evict_main())
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks)
    }

    /// Divides the cache among the queues.
    fn on_capacity(&mut self) {
        let part = |share: f64| f64::from(self.capacity) * share;
        let small = part(self.settings.small_share);
        let small = if self.follows_paper() {
            // Forgives the last bits of a product such as 0.1 * 3.
            (small - 1e-6).ceil() as u32
        } else {
            small as u32
        };
        self.small_blocks = small.clamp(1, self.capacity.max(1));
        self.ghost_blocks = part(self.settings.ghost_share) as u32;
    }

    fn trim_ghosts(&mut self) {
        self.trim_ghost_queue(self.ghost_blocks);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.queues.peek(SMALL, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let ghosts = self.queues.len(GHOST);
        if ghosts > self.ghost_blocks {
            return Err(format!("{ghosts} ghosts of {}", self.ghost_blocks));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn run<P: Policy>(policy: &mut P, ids: &[u32]) -> Vec<Verdict> {
        policy.reserve_ids(32);
        ids.iter().map(|id| policy.access(Access::read(BlockId(*id)))).collect()
    }

    fn out(id: u32) -> Verdict {
        Verdict::Admit { evicted: Some(BlockId(id)) }
    }

    const IN: Verdict = Verdict::Admit { evicted: None };

    /// Capacity 4, small 1, ghost 3; queues old to new. 1 2 3 4 fill the small queue; two hits
    /// promote 1 once it reaches the tail. Block 5: small has 4 blocks, so it evicts: 1 goes to
    /// main, 2 to the ghosts. S 3 4 5, M 1, G 2. Block 2 is a ghost: 3 leaves for it, and it goes
    /// to main: S 4 5, M 1 2, G 3. Blocks 6, 7: 4 and 5 leave: S 6 7, M 1 2, G 3 4 5. Block 3, a
    /// ghost: 6 leaves: S 7, M 1 2 3. Hits on 7, twice. Block 8: small has its share, 7 is
    /// promoted, main has 4 blocks, 1 more than its share, and lets go of 1: S 8, M 2 3 7.
    #[test]
    fn the_papers_queues_by_hand() {
        let settings = S3FifoSettings { variant: Variant::Paper, ..Default::default() };
        let mut cache = S3Fifo::new(4, &settings, Seed(0));
        let verdicts = run(&mut cache, &[1, 2, 3, 4, 1, 1, 5, 2, 6, 7, 3, 7, 7, 8]);
        let hit = Verdict::Hit;
        let expected =
            [IN, IN, IN, IN, hit, hit, out(2), out(3), out(4), out(5), out(6), hit, hit, out(1)];
        assert_eq!(verdicts, expected);
        assert_eq!(cache.queues.blocks(MAIN), [2, 3, 7].map(BlockId));
    }

    /// Capacity 4, small 1 (0.4 rounded down, at least 1), ghost 3. 1 goes to small, which then
    /// has its share: 2 3 4 go to main. Block 5: main is not beyond its share of 3, small evicts
    /// 1: S 5, M 2 3 4, G 1. Block 1 is a ghost: 5 leaves, 1 goes to main: S -, M 2 3 4 1. Block
    /// 6: small is empty and main beyond its share: 2 leaves: S 6, M 3 4 1.
    #[test]
    fn the_authors_codes_queues_by_hand() {
        let mut cache = S3Fifo::new(4, &S3FifoSettings::default(), Seed(0));
        let verdicts = run(&mut cache, &[1, 2, 3, 4, 5, 1, 6]);
        assert_eq!(verdicts, [IN, IN, IN, IN, out(1), out(5), out(2)]);
        assert_eq!(cache.queues.blocks(MAIN), [3, 4, 1].map(BlockId));
    }
}
