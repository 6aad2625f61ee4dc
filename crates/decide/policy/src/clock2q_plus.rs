//! Clock2Q+: S3-FIFO's queues with reference bits, and a window of the small queue in which a
//! repeated reference says nothing.
//!
//! For: caches whose blocks are asked for several times in a row, such as metadata. Sources: Zhai
//! et al., "Clock2Q+: A Simple and Efficient Replacement Algorithm for Metadata Cache in VMware
//! vSAN", arXiv 2511.21958; libCacheSim 0.3.5, Clock2QPlus.c, whose shares and rules are taken.
//!
//! A new block enters the small queue. A hit there sets its bit only once as many blocks have
//! entered after it as the window has. The oldest block of the small queue goes to main if its bit
//! is set, else it becomes a ghost; a ghost that is asked for enters main. Main is a clock. It
//! evicts when it is beyond its share, else the small queue does. Until the first eviction blocks
//! enter main once the small queue has its share. Shares are rounded down, the small one to at
//! least one block.

use crate::registry::{Entry, Registered};
use crate::stamped_queues::StampedQueues;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::{BlockId, Seed, declare};

/// The queues.
const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

declare! {
    /// The proportions of Clock2Q+.
    pub struct Clock2QPlusSettings {
        /// share of the cache in which new blocks start
        small_share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// evicted blocks remembered, as a share of the cache
        ghost_share: f64 = 0.9, "ratio", 0.0 ..= 3.0;
        /// newest share of the small queue in which hits do not count
        window_share: f64 = 0.5, "ratio", 0.0 ..= 1.0;
    }
}

/// Clock2Q+.
#[derive(Clone, Debug, Snapshot)]
pub struct Clock2QPlus {
    queues: StampedQueues<3, 2>,
    capacity: u32,
    small_blocks: u32,
    window_blocks: u32,
    ghost_blocks: u32,
    has_evicted: bool,
    #[snapshot(settings)]
    settings: Clock2QPlusSettings,
}

impl Clock2QPlus {
    #[inline(always)]
    fn evict_small(&mut self) -> Option<BlockId> {
        while let Some((block, hits)) = self.queues.pop(SMALL) {
            if hits > 0 {
                self.queues.push(MAIN, block);
                continue;
            }
            self.queues.push(GHOST, block);
            self.trim_ghosts();
            return Some(block);
        }
        None
    }
}

impl Registered for Clock2QPlus {
    type Settings = Clock2QPlusSettings;
    const ENTRY: Entry = Entry {
        name: "clock2q-plus",
        doc: "a small queue before a clock; repeated hits soon after a block came in do not count",
        source: "Zhai et al., Clock2Q+, arXiv 2511.21958; libCacheSim 0.3.5, Clock2QPlus.c",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &Clock2QPlusSettings, _: Seed) -> Self {
        let mut cache = Clock2QPlus {
            queues: StampedQueues::default(),
            capacity: capacity_blocks,
            small_blocks: 0,
            window_blocks: 0,
            ghost_blocks: 0,
            has_evicted: false,
            settings: settings.clone(),
        };
        cache.on_capacity();
        cache
    }
}

impl PolicyHooks for Clock2QPlus {}

impl StoredPolicy for Clock2QPlus {
    stored_in!(queues: StampedQueues<3, 2>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        let queue = match self.queues.queue_of(block) {
            Some(SMALL) => {
                if self.queues.later_entries(SMALL, block) >= self.window_blocks {
                    self.queues.mark(block);
                }
                return Verdict::Hit;
            }
            Some(MAIN) => {
                self.queues.mark(block);
                return Verdict::Hit;
            }
            _ if self.capacity == 0 => return Verdict::Bypass,
            Some(_) => {
                self.queues.remove(block);
                MAIN
            }
            None => SMALL,
        };
        let evicted = if self.queues.resident() == self.capacity { self.evict() } else { None };
        let overflow = !self.has_evicted && self.queues.len(SMALL) >= self.small_blocks;
        self.queues.push(if overflow { MAIN } else { queue }, block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        self.has_evicted = true;
        if self.queues.len(MAIN) <= self.capacity.saturating_sub(self.small_blocks) {
            // All that the small queue has may be promoted; the cache is then still full.
            let evicted = self.evict_small();
            if evicted.is_some() {
                return evicted;
            }
        }
        self.queues.pop_unhit(MAIN)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks)
    }

    fn on_capacity(&mut self) {
        let part = |share: f64, blocks: u32| (f64::from(blocks) * share) as u32;
        let small = part(self.settings.small_share, self.capacity);
        self.small_blocks = small.clamp(1, self.capacity.max(1));
        let window = f64::from(self.small_blocks) * self.settings.window_share;
        self.window_blocks = window.ceil() as u32;
        self.ghost_blocks = part(self.settings.ghost_share, self.capacity);
    }

    fn trim_ghosts(&mut self) {
        while self.queues.len(GHOST) > self.ghost_blocks {
            self.queues.pop(GHOST);
        }
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

    fn queues(cache: &Clock2QPlus) -> [Vec<u32>; 3] {
        [SMALL, MAIN, GHOST]
            .map(|queue| cache.queues.blocks(queue).iter().map(|block| block.0).collect())
    }

    /// The block that each access evicts, or 0.
    fn run(cache: &mut Clock2QPlus, ids: &[u32]) -> Vec<u32> {
        let evicted = |id: &u32| match cache.access(Access::read(BlockId(*id))) {
            Verdict::Admit { evicted } => evicted.map_or(0, |block| block.0),
            _ => 0,
        };
        ids.iter().map(evicted).collect()
    }

    /// Capacity 8: small 4, of which the newest 2 are the window, main 4, 4 ghosts. Queues old to
    /// new.
    ///
    /// 1 to 4 fill the small queue, 5 to 8 main. Hits on 4, 3 and 2: 4 and 3 are in the window,
    /// with none and one after them; only 2 is marked. Block 9: 1 becomes a ghost. Block 10: 2 goes
    /// to main, 3 becomes a ghost, for all its hit: S 4 9 10, M 5 6 7 8 2, G 1 3. Main is beyond
    /// its share now. A hit on 5. Block 1, a ghost: main passes 5 over and evicts 6: S 4 9 10, M 7
    /// 8 2 5 1, G 3.
    #[test]
    fn the_window_by_hand() {
        let settings =
            Clock2QPlusSettings { small_share: 0.5, ghost_share: 0.5, ..Default::default() };
        let mut cache = Clock2QPlus::new(8, &settings, Seed(0));
        cache.reserve_ids(16);
        run(&mut cache, &[1, 2, 3, 4, 5, 6, 7, 8, 4, 3, 2]);
        assert_eq!(queues(&cache), [vec![1, 2, 3, 4], vec![5, 6, 7, 8], vec![]]);
        assert_eq!(run(&mut cache, &[9, 10]), [1, 3]);
        assert_eq!(queues(&cache), [vec![4, 9, 10], vec![5, 6, 7, 8, 2], vec![1, 3]]);
        assert_eq!(run(&mut cache, &[5, 1]), [0, 6]);
        assert_eq!(queues(&cache), [vec![4, 9, 10], vec![7, 8, 2, 5, 1], vec![3]]);
        assert_eq!(cache.audit(), Ok(()));
    }
}
