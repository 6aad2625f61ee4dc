//! W-TinyLFU: a small window before a main area that admits only what is asked for more often than
//! what would leave for it.
//!
//! For: frequency without a count per block that was ever seen. Source: Einziger, Friedman, Manes,
//! "TinyLFU: a highly efficient cache admission policy", ACM ToS 13(4), 2017, section 4: an LRU
//! window of 1 % of the cache, a main area that is an SLRU with 80 % protected, and a contest when
//! both are full: the oldest block of the window against the oldest on probation. The one with the
//! higher estimate stays, in the main area.
//!
//! From the common implementation (Caffeine): the window's block leaves when both are equal, a
//! sample of ten accesses per cached block; see `sketch.rs` for the layout. Not taken over from
//! there: the window's size follows hits (a later paper), and a chance for blocks that lose.
//!
//! Ours: blocks that have left keep their counts while they are among the last `history` times the
//! capacity to leave. The paper's sketch counts keys without end. Here an id may stand for another
//! block when it is forgotten (see [`Areas`]), and a returning block starts with no count. Unit:
//! blocks. Memory: 16 bytes per id, with the sketch 12 to 24 per cached block.

mod sketch;

use crate::ghost_lists::{GhostLists, OUT};
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::segmented::Segmented;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed, declare};
use sketch::Sketch;

declare! {
    /// The areas of W-TinyLFU, and how long it counts.
    pub struct WTinyLfuSettings {
        /// share of the cache in which new blocks start
        window: f64 = 0.01, "ratio", 0.0 ..= 1.0;
        /// share of the main area that blocks hit there may hold
        protected_share: f64 = 0.8, "ratio", 0.0 ..= 1.0;
        /// counted accesses after which all counts are halved, as a multiple of the capacity
        sample: f64 = 10.0, "ratio", 1.0 ..= 1000.0;
        /// blocks that have left whose counts are kept, as a multiple of the capacity
        history: f64 = 3.0, "ratio", 0.0 ..= 100.0;
        /// a Bloom filter takes the first access of each block in a sample
        doorkeeper: bool = true, "true or false";
    }
}

/// Window TinyLFU.
#[derive(Clone, Debug, Snapshot)]
pub struct WTinyLfu {
    areas: Areas,
    capacity: u32,
    sketch: Sketch,
    main: Segmented,
    window_blocks: u32,
    ghost_blocks: u32,
    #[snapshot(settings)]
    settings: WTinyLfuSettings,
}

impl WTinyLfu {
    /// Whether the window's oldest block is estimated above the main area's oldest.
    #[inline(always)]
    fn candidate_wins(&self, candidate: BlockId, victim: BlockId) -> bool {
        let [candidate, victim] = [candidate, victim].map(|block| self.areas.key(block));
        self.sketch.estimate(candidate) > self.sketch.estimate(victim)
    }

    /// Takes out the loser of the contest, be it of the window or of the main area.
    #[inline(always)]
    fn pop_loser(&mut self) -> Option<BlockId> {
        let lists = &mut self.areas.lists;
        let candidate = lists.near_tail(WINDOW, 0);
        let victim = [PROBATION, PROTECTED].into_iter().find_map(|list| lists.near_tail(list, 0));
        match (candidate, victim) {
            (Some(candidate), Some(victim)) if self.candidate_wins(candidate, victim) => {
                self.areas.lists.demote(WINDOW, PROBATION);
                let list = self.areas.lists.list_of(victim);
                self.areas.lists.take(list, victim);
                Some(victim)
            }
            (Some(_), _) => self.areas.lists.pop(WINDOW),
            (None, _) => self.main.pop(&mut self.areas.lists),
        }
    }

    /// Moves blocks of the window into the main area until there is room for `more`.
    #[inline(always)]
    fn drain_window(&mut self, more: u32) {
        while self.areas.lists.len(WINDOW) + more > self.window_blocks.max(1) {
            self.areas.lists.demote(WINDOW, PROBATION);
        }
    }
}

impl Registered for WTinyLfu {
    type Settings = WTinyLfuSettings;
    const ENTRY: Entry = Entry {
        name: "w-tinylfu",
        doc: "a window, then an slru that takes what a sketch counts more often than its victim",
        source: "Einziger, Friedman, Manes, TinyLFU, ACM ToS 13(4), 2017",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &WTinyLfuSettings, _: Seed) -> Self {
        let mut policy = WTinyLfu {
            areas: Areas::default(),
            capacity: capacity_blocks,
            sketch: Sketch::new(settings.doorkeeper),
            main: Segmented::new(PROBATION, PROTECTED),
            window_blocks: 0,
            ghost_blocks: 0,
            settings: settings.clone(),
        };
        policy.on_capacity();
        policy
    }
}

impl PolicyHooks for WTinyLfu {}

impl StoredPolicy for WTinyLfu {
    stored_in!(areas: Areas);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let list = self.areas.lists.list_of(block);
        if list == OUT {
            self.areas.give_key(block);
        }
        self.sketch.record(self.areas.key(block));
        match list {
            WINDOW => {
                self.areas.lists.refresh(WINDOW, block);
                return Verdict::Hit;
            }
            PROBATION | PROTECTED => {
                self.main.hit(&mut self.areas.lists, list, block);
                return Verdict::Hit;
            }
            GHOST => self.areas.lists.take(GHOST, block),
            _ => {}
        }
        let evicted = if self.areas.resident() == self.capacity { self.evict() } else { None };
        self.drain_window(1);
        self.areas.lists.push(WINDOW, block);
        Verdict::Admit { evicted }
    }

    /// The main area lets go of a block without a contest while the window is below its share.
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let in_main = self.areas.resident() - self.areas.lists.len(WINDOW);
        let below = self.areas.lists.len(WINDOW) < self.window_blocks && in_main > 0;
        let block = if below { self.main.pop(&mut self.areas.lists) } else { self.pop_loser() }?;
        self.areas.lists.push(GHOST, block);
        self.areas.lists.trim(GHOST, self.ghost_blocks);
        Some(block)
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks)
    }

    fn on_capacity(&mut self) {
        // Forgives the last bits of a product such as 0.8 * 10.
        let part = |share: f64, blocks: u32| (share * f64::from(blocks) + 1e-6) as u32;
        self.window_blocks = part(self.settings.window, self.capacity).max(1).min(self.capacity);
        self.ghost_blocks = part(self.settings.history, self.capacity);
        let main_blocks = self.capacity - self.window_blocks;
        self.main.limit_upper(part(self.settings.protected_share, main_blocks));
        self.main.sink_all(&mut self.areas.lists);
        let sample = self.settings.sample * f64::from(self.capacity);
        self.sketch.fit(self.capacity, sample as u64);
    }

    fn trim_ghosts(&mut self) {
        self.drain_window(0);
        self.areas.lists.trim(GHOST, self.ghost_blocks);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        let candidate = self.areas.lists.near_tail(WINDOW, later)?;
        self.sketch.touch(self.areas.key(candidate));
        Some(candidate)
    }

    fn audit_limits(&self) -> Result<(), String> {
        let (ghosts, window) = (self.areas.lists.len(GHOST), self.areas.lists.len(WINDOW));
        if ghosts > self.ghost_blocks || window > self.window_blocks {
            return Err(format!(
                "{ghosts} ghosts of {}, {window} blocks in a window of {}",
                self.ghost_blocks, self.window_blocks
            ));
        }
        self.main.audit(&self.areas.lists)
    }
}

/// New blocks, in order of use.
const WINDOW: u8 = 1;
/// The lower segment of the main area.
const PROBATION: u8 = 2;
/// The upper segment of the main area.
const PROTECTED: u8 = 3;
/// Blocks that have left and keep their key.
const GHOST: u8 = 4;

/// The lists of the areas.
type AreaLists = GhostLists<5, 3>;

/// Blocks by area, with their keys.
///
/// An id may stand for another block once it is not tracked any more, so a sketch must not count
/// ids: a block gets the next number as its key when it is first tracked, and keeps it until it is
/// forgotten. 16 bytes per id.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Areas {
    /// The areas; a block that enters one must have its key.
    pub lists: AreaLists,
    keys: Vec<u32>,
    next_key: u32,
}

impl Areas {
    /// Gives a block that was not tracked a key.
    #[inline(always)]
    pub fn give_key(&mut self, block: BlockId) {
        self.keys[block.index()] = self.next_key;
        self.next_key = self.next_key.wrapping_add(1);
    }

    /// The key of a block that is tracked.
    #[inline(always)]
    pub fn key(&self, block: BlockId) -> u32 {
        self.keys[block.index()]
    }
}

impl BlockStore for Areas {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.lists.contains(block)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        self.lists.list_of(block) != OUT
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.lists.resident()
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.lists.remove(block)
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, ghosts: u32) {
        self.lists.reserve_ids(count, capacity, ghosts);
        lengthen(&mut self.keys, count, 0);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        ids.close_up(&mut self.keys, 0);
        self.lists.renumber(ids)
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.keys, block.index());
        self.lists.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.lists.audit(capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn areas(cache: &WTinyLfu) -> [Vec<u32>; 3] {
        [WINDOW, PROBATION, PROTECTED]
            .map(|list| cache.areas.lists.iter(list).map(|block| block.0).collect())
    }

    fn run(cache: &mut WTinyLfu, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| cache.access(Access::read(BlockId(*id)))).collect()
    }

    fn out(id: u32) -> Verdict {
        Verdict::Admit { evicted: Some(BlockId(id)) }
    }

    /// Capacity 4: a window of 1, 3 in the main area, 2 of them protected; newest first. 1 to 4
    /// come in, each counted once; the window holds 4. A hit on 1 protects it. 5: the window's 4
    /// and 2, the oldest on probation, are both at 1, so 4 leaves. Two hits raise 5 to 3. 6: 5 is
    /// above 2, which leaves; 5 enters the main area. 4 returns, now at 2: 6 and 3 are at 1, and 6
    /// leaves. 7: 4, at 2, is above 3.
    #[test]
    fn the_contest_by_hand() {
        let mut cache = WTinyLfu::new(4, &WTinyLfuSettings::default(), Seed(0));
        cache.reserve_ids(8);
        run(&mut cache, &[1, 2, 3, 4, 1]);
        assert_eq!(areas(&cache), [vec![4], vec![3, 2], vec![1]]);
        assert_eq!(run(&mut cache, &[5, 5, 5]), [out(4), Verdict::Hit, Verdict::Hit]);
        assert_eq!(run(&mut cache, &[6]), [out(2)]);
        assert_eq!(areas(&cache), [vec![6], vec![5, 3], vec![1]]);
        assert_eq!(run(&mut cache, &[4, 7]), [out(6), out(3)]);
        assert_eq!(areas(&cache), [vec![7], vec![4, 5], vec![1]]);
        assert_eq!(cache.audit(), Ok(()));
    }
}
