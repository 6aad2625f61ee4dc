//! Merlin: a filter for new blocks, a staging queue for those that look promising, a core for those
//! hit often enough, and ghosts; one frequency says what "often enough" is.
//!
//! Source: "Merlin: An Efficient Adaptive Cache Eviction Algorithm via Fine-Grained
//! Characterization", OSDI'26, by its artifact (TELOS-syslab/MerlinOSDI26AE, merlin.cpp for
//! libCacheSim): four FIFO queues, 10 % filter, 5 % staging, the rest core, as many ghosts as the
//! cache has blocks; hits counted up to 7.
//!
//! - A new block enters the filter, or the core while filter and staging are empty.
//! - The oldest block of a full filter goes to the core if it has the hits that the guard asks. It
//!   goes to staging if it was counted more often than staging's oldest, which was not hit and
//!   leaves for it. Else it becomes a ghost.
//! - While the filter is not full, staging's oldest blocks go to the core, less one hit, as long as
//!   they were hit; the next one leaves. The filter's oldest may take its place, as above.
//! - The oldest blocks of a core beyond its share go to staging, with their hits; at the first
//!   eviction all that filled the core before.
//! - A ghost that is asked for goes to the core with its hits if they reach the guard. Else it goes
//!   to staging, and stays a ghost besides.
//!
//! The guard is the lowest number of hits that no more blocks have, ghosts among them, than the
//! core holds. It is looked for at each eviction, from where it was. Counts tell how often a block
//! went through the queues: one each time it leaves the filter, returns to staging as a ghost, or
//! goes from staging to the core. They are halved every 32 times that as many blocks have left as
//! the cache holds.
//!
//! Departures: counts are exact, of the blocks that are tracked, where the artifact has a counting
//! Bloom filter of 14 counters per block that never forgets a key. So a block that has left and is
//! no ghost any more keeps its count while it is among the last `history` times the capacity (2:
//! with the ghosts, four times the cache are tracked), and the artifact's rule for counts that
//! collisions made too high (above 32) is not needed. A ghost that returns while filter and staging
//! are empty is treated as any ghost; the artifact leaves that to the next miss. The hits of a
//! ghost that leaves the ghost queue by the eviction for its own return stay counted; the artifact
//! loses them. With a history of all blocks and a filter without collisions the two have the same
//! misses on the synthetic reference but for that, 22 of 177,324 at one of seven sizes. Unit:
//! blocks. Memory: 10 bytes per id, 4 to 8 per queued block.

use crate::queue::BlockQueue;
use crate::registry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::{Snapshot, SnapshotValue};
use cachewright_types::{BlockId, Seed, declare};

declare! {
    /// The queues of Merlin, and how long it counts.
    pub struct MerlinSettings {
        /// share of the cache in which new blocks start
        filter_share: f64 = 0.1, "ratio", 0.0 ..= 1.0;
        /// share of the cache for blocks that look promising
        staging_share: f64 = 0.05, "ratio", 0.0 ..= 1.0;
        /// blocks whose hits are remembered after the filter or staging, as a share of the cache
        ghost_share: f64 = 1.0, "ratio", 0.0 ..= 10.0;
        /// evictions after which all counts are halved, as a multiple of the capacity
        halve_every: u32 = 32, "capacities", 1 ..= 1000;
        /// blocks neither cached nor ghosts whose counts are kept, as a multiple of the capacity
        history: f64 = 2.0, "ratio", 0.0 ..= 1000.0;
    }
}

/// The most hits that are counted.
const MAX_HITS: u8 = 7;

/// Merlin.
#[derive(Clone, Debug, Snapshot)]
pub struct Merlin {
    queues: MerlinQueues,
    capacity: u32,
    filter_blocks: u32,
    core_blocks: u32,
    ghost_blocks: u32,
    history_blocks: u32,
    /// Hits that admit a block to the core.
    guard: u8,
    /// Evictions since the last one that completed as many as the cache has blocks.
    evictions: u32,
    /// How often they did so since counts were halved.
    epochs: u32,
    #[snapshot(settings)]
    settings: MerlinSettings,
}

impl Merlin {
    /// Counts an eviction and moves the guard.
    #[inline(always)]
    fn begin_eviction(&mut self) {
        self.evictions += 1;
        if self.evictions >= self.queues.resident() {
            self.evictions = 0;
            self.epochs += 1;
            if self.epochs >= self.settings.halve_every {
                self.epochs = 0;
                self.queues.halve_counts();
            }
        }
        let core = self.queues.len(CORE);
        if self.queues.hit_at_least(self.guard) > core {
            while self.queues.hit_at_least(self.guard) > core {
                self.guard += 1;
            }
        } else {
            while self.guard > 1 && self.queues.hit_at_least(self.guard - 1) < core {
                self.guard -= 1;
            }
        }
    }

    /// Promotes the oldest blocks of the filter while they have the hits for it. The next one
    /// leaves the cache, or takes the place of staging's oldest.
    #[inline(always)]
    fn evict_from_filter(&mut self) -> Option<BlockId> {
        while let Some(block) = self.queues.oldest(FILTER) {
            let hits = self.queues.hits(block);
            if hits >= self.guard {
                self.queues.move_oldest(FILTER, CORE, 0);
                self.queues.count(block);
                continue;
            }
            if self.filter_wins() {
                self.stage_oldest(block, hits);
                return self.evict_oldest_staging();
            }
            self.queues.count(block);
            self.queues.pop(FILTER);
            self.remember(block, hits);
            return Some(block);
        }
        None
    }

    /// Brings the core back to its share, promotes staging's oldest blocks while they were hit, and
    /// evicts the next one, for which the filter's oldest may come in.
    #[inline(always)]
    fn evict_from_staging(&mut self) -> Option<BlockId> {
        loop {
            while self.queues.len(CORE) > self.core_blocks {
                let block = self.queues.oldest(CORE)?;
                self.queues.move_oldest(CORE, STAGING, self.queues.hits(block));
            }
            self.queues.oldest(STAGING)?;
            self.promote_hit_staging();
            // If all were promoted, the core gives some back.
            if self.queues.len(STAGING) > 0 {
                break;
            }
        }
        if let Some(block) = self.queues.oldest(FILTER)
            && self.filter_wins()
        {
            self.stage_oldest(block, self.queues.hits(block));
        }
        self.evict_oldest_staging()
    }

    /// Whether the filter's oldest block was counted more often than staging's, which was not hit.
    #[inline(always)]
    fn filter_wins(&mut self) -> bool {
        let (newcomer, staged) = (self.queues.oldest(FILTER), self.queues.oldest(STAGING));
        let (Some(newcomer), Some(staged)) = (newcomer, staged) else { return false };
        self.queues.hits(staged) == 0 && self.queues.counted(newcomer) > self.queues.counted(staged)
    }

    /// Moves the filter's oldest block to staging. Its hits stay with it as a ghost.
    #[inline(always)]
    fn stage_oldest(&mut self, block: BlockId, hits: u8) {
        self.queues.count(block);
        self.queues.move_oldest(FILTER, STAGING, 0);
        self.remember(block, hits);
    }

    /// Promotes staging's oldest blocks while they were hit. A promotion costs a hit, so that
    /// a burst does not protect a block for long.
    #[inline(always)]
    fn promote_hit_staging(&mut self) {
        while let Some(block) = self.queues.oldest(STAGING)
            && self.queues.hits(block) > 0
        {
            self.queues.drop_ghost(block);
            self.queues.count(block);
            self.queues.move_oldest(STAGING, CORE, self.queues.hits(block) - 1);
        }
    }

    #[inline(always)]
    fn evict_oldest_staging(&mut self) -> Option<BlockId> {
        let block = self.queues.pop(STAGING)?;
        self.queues.keep_count(block);
        self.queues.trim(HISTORY, self.history_blocks);
        Some(block)
    }

    /// Makes a block a ghost with so many hits.
    #[inline(always)]
    fn remember(&mut self, block: BlockId, hits: u8) {
        self.queues.push_ghost(block, hits);
        self.trim_ghosts();
    }
}

impl Registered for Merlin {
    type Settings = MerlinSettings;
    const ENTRY: Entry = Entry {
        name: "merlin",
        doc: "a filter, a staging queue, and a core that takes what is hit as often as few blocks \
              are",
        source: "Merlin: An Efficient Adaptive Cache Eviction Algorithm via Fine-Grained \
                 Characterization, OSDI'26; its artifact, merlin.cpp",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &MerlinSettings, _: Seed) -> Self {
        let mut cache = Merlin {
            queues: MerlinQueues::default(),
            capacity: capacity_blocks,
            filter_blocks: 0,
            core_blocks: 0,
            ghost_blocks: 0,
            history_blocks: 0,
            guard: 2,
            evictions: 0,
            epochs: 0,
            settings: settings.clone(),
        };
        cache.on_capacity();
        cache
    }
}

impl PolicyHooks for Merlin {}

impl StoredPolicy for Merlin {
    stored_in!(queues: MerlinQueues);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        let block = access.block;
        if self.queues.contains(block) {
            self.queues.hit(block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        // The guard of before the eviction decides, and the ghost counts for the one of after it.
        let returned = self.queues.hit_ghost(block);
        let is_hot = returned.is_some_and(|hits| hits >= self.guard);
        let evicted = if self.queues.resident() == self.capacity { self.evict() } else { None };
        match returned {
            Some(hits) if is_hot => {
                self.queues.drop_ghost(block);
                self.queues.admit(CORE, block, hits);
            }
            Some(_) => {
                self.queues.admit(STAGING, block, 0);
                self.queues.count(block);
            }
            None if self.queues.len(FILTER) == 0 && self.queues.len(STAGING) == 0 => {
                self.queues.admit(CORE, block, 0);
            }
            None => self.queues.admit(FILTER, block, 0),
        }
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        while self.queues.len(FILTER) >= self.filter_blocks {
            self.begin_eviction();
            let evicted = self.evict_from_filter();
            // All blocks of the filter may have been promoted; it is then empty.
            if evicted.is_some() {
                return evicted;
            }
        }
        self.begin_eviction();
        self.evict_from_staging()
    }

    fn max_ghosts(&self) -> Option<u32> {
        Some(self.ghost_blocks.saturating_add(self.history_blocks))
    }

    fn on_capacity(&mut self) {
        let part = |share: f64| (f64::from(self.capacity) * share) as u32;
        self.filter_blocks = part(self.settings.filter_share).clamp(1, self.capacity.max(1));
        let staging_blocks = part(self.settings.staging_share).max(1);
        self.core_blocks = self.capacity.saturating_sub(self.filter_blocks + staging_blocks);
        self.ghost_blocks = part(self.settings.ghost_share);
        self.history_blocks = part(self.settings.history);
    }

    fn trim_ghosts(&mut self) {
        self.queues.trim(GHOST, self.ghost_blocks);
        self.queues.trim(HISTORY, self.history_blocks);
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.queues.peek(FILTER, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        for (queue, limit) in [(GHOST, self.ghost_blocks), (HISTORY, self.history_blocks)] {
            if self.queues.len(queue) > limit {
                return Err(format!("{} blocks of {limit} in {queue}", self.queues.len(queue)));
            }
        }
        Ok(())
    }
}

/// Resident blocks.
const FILTER: usize = 0;
const STAGING: usize = 1;
const CORE: usize = 2;
/// Blocks of which hits are remembered; those of staging among them.
const GHOST: usize = 3;
/// Blocks that are neither resident nor ghosts, of which the count is kept.
const HISTORY: usize = 4;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
struct MerlinBlock {
    /// Its queue plus one, if it is resident or in the history; else 0.
    place: u8,
    /// Hits since it entered that queue, and those it came with.
    hits: u8,
    /// Its hits as a ghost plus one, or 0 if it is none.
    ghost: u8,
    /// How often it went through the queues, and when that was so: halvings before.
    count: u8,
    halvings: u16,
}

/// The queues of Merlin: a block may be in one of the first three and a ghost besides.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct MerlinQueues {
    queues: [BlockQueue; 5],
    blocks: Vec<MerlinBlock>,
    /// Blocks and ghosts with at least so many hits, a staged ghost counted twice.
    hit_at_least: [u32; MAX_HITS as usize + 1],
    /// Halvings so far, modulo 2^16.
    halvings: u16,
}

impl MerlinQueues {
    #[inline(always)]
    fn len(&self, queue: usize) -> u32 {
        self.queues[queue].len()
    }

    #[inline(always)]
    fn peek(&self, queue: usize, later: u32) -> Option<BlockId> {
        self.queues[queue].peek(later)
    }

    #[inline(always)]
    fn oldest(&mut self, queue: usize) -> Option<BlockId> {
        self.queues[queue].oldest()
    }

    #[inline(always)]
    fn hits(&self, block: BlockId) -> u8 {
        self.blocks[block.index()].hits
    }

    /// Blocks and ghosts that were hit at least so often.
    #[inline(always)]
    fn hit_at_least(&self, hits: u8) -> u32 {
        self.hit_at_least.get(usize::from(hits)).copied().unwrap_or(0)
    }

    /// Blocks or ghosts with `from` hits have `to` hits now.
    #[inline(always)]
    fn recount(&mut self, from: u8, to: u8) {
        for hits in from.min(to) + 1..=from.max(to) {
            let blocks = &mut self.hit_at_least[usize::from(hits)];
            *blocks = if to > from { *blocks + 1 } else { *blocks - 1 };
        }
    }

    /// Counts a hit of a resident block.
    #[inline(always)]
    fn hit(&mut self, block: BlockId) {
        let known = &mut self.blocks[block.index()];
        if known.hits < MAX_HITS {
            known.hits += 1;
            self.hit_at_least[usize::from(known.hits)] += 1;
        }
    }

    /// Counts a request for a ghost; returns its hits, if it is one.
    #[inline(always)]
    fn hit_ghost(&mut self, block: BlockId) -> Option<u8> {
        let known = &mut self.blocks[block.index()];
        let hits = known.ghost.checked_sub(1)?;
        if hits == MAX_HITS {
            return Some(hits);
        }
        known.ghost += 1;
        self.hit_at_least[usize::from(hits) + 1] += 1;
        Some(hits + 1)
    }

    /// Puts a block that is not resident into a queue of resident blocks.
    #[inline(always)]
    fn admit(&mut self, queue: usize, block: BlockId, hits: u8) {
        if self.place(block) == Some(HISTORY) {
            self.queues[HISTORY].remove(block);
        }
        self.recount(0, hits);
        self.queues[queue].push(block);
        let known = &mut self.blocks[block.index()];
        (known.place, known.hits) = (queue as u8 + 1, hits);
    }

    /// The queue of a block that is resident or in the history.
    #[inline(always)]
    fn place(&self, block: BlockId) -> Option<usize> {
        usize::from(self.blocks[block.index()].place).checked_sub(1)
    }

    /// Takes the oldest block of a queue of resident blocks out.
    #[inline(always)]
    fn pop(&mut self, queue: usize) -> Option<BlockId> {
        let block = self.queues[queue].pop()?;
        self.leave(block);
        Some(block)
    }

    /// The block is resident no more.
    #[inline(always)]
    fn leave(&mut self, block: BlockId) {
        self.recount(self.hits(block), 0);
        let known = &mut self.blocks[block.index()];
        (known.place, known.hits) = (0, 0);
    }

    /// Moves the oldest block between queues of resident blocks; it has `hits` there.
    #[inline(always)]
    fn move_oldest(&mut self, from: usize, to: usize, hits: u8) {
        if let Some(block) = self.pop(from) {
            self.admit(to, block, hits);
        }
    }

    /// Makes a block that is no ghost one.
    #[inline(always)]
    fn push_ghost(&mut self, block: BlockId, hits: u8) {
        self.recount(0, hits);
        self.queues[GHOST].push(block);
        self.blocks[block.index()].ghost = hits + 1;
    }

    /// Takes a block out of the ghosts, if it is one.
    #[inline(always)]
    fn drop_ghost(&mut self, block: BlockId) {
        if self.blocks[block.index()].ghost != 0 {
            self.queues[GHOST].remove(block);
            self.end_ghost(block);
        }
    }

    #[inline(always)]
    fn end_ghost(&mut self, block: BlockId) {
        let ghost = std::mem::take(&mut self.blocks[block.index()].ghost);
        self.recount(ghost - 1, 0);
    }

    /// Takes the oldest out of the ghosts or of the history until at most `limit` are left.
    #[inline(always)]
    fn trim(&mut self, queue: usize, limit: u32) {
        while self.len(queue) > limit {
            let Some(block) = self.queues[queue].pop() else { return };
            if queue == GHOST {
                self.end_ghost(block);
                self.keep_count(block);
            } else {
                self.blocks[block.index()] = MerlinBlock::default();
            }
        }
    }

    /// Puts a block into the history, unless it is resident or a ghost.
    #[inline(always)]
    fn keep_count(&mut self, block: BlockId) {
        let known = &mut self.blocks[block.index()];
        if known.place == 0 && known.ghost == 0 {
            known.place = HISTORY as u8 + 1;
            self.queues[HISTORY].push(block);
        }
    }

    /// The count of a block at this time.
    #[inline(always)]
    fn counted(&self, block: BlockId) -> u8 {
        let known = &self.blocks[block.index()];
        let halvings = self.halvings.wrapping_sub(known.halvings);
        known.count.checked_shr(u32::from(halvings)).unwrap_or(0)
    }

    #[inline(always)]
    fn count(&mut self, block: BlockId) {
        let count = self.counted(block).saturating_add(1);
        let known = &mut self.blocks[block.index()];
        (known.count, known.halvings) = (count, self.halvings);
    }

    /// Halves all counts. No block is visited but once in 2^15 halvings, before the number of the
    /// halving repeats itself.
    #[cold]
    fn halve_counts(&mut self) {
        self.halvings = self.halvings.wrapping_add(1);
        if self.halvings & 0x7FFF != 0 {
            return;
        }
        for index in 0..self.blocks.len() {
            self.blocks[index].count = self.counted(BlockId(index as u32));
            self.blocks[index].halvings = self.halvings;
        }
    }
}

impl BlockStore for MerlinQueues {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.place(block).is_some_and(|queue| queue < GHOST)
    }

    #[inline(always)]
    fn tracks(&self, block: BlockId) -> bool {
        let known = &self.blocks[block.index()];
        known.place != 0 || known.ghost != 0
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.len(FILTER) + self.len(STAGING) + self.len(CORE)
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let place = self.place(block);
        if let Some(queue) = place {
            self.queues[queue].remove(block);
            self.leave(block);
        }
        self.drop_ghost(block);
        self.blocks[block.index()] = MerlinBlock::default();
        place.is_some_and(|queue| queue < GHOST)
    }

    fn reserve_ids(&mut self, count: usize, capacity: u32, _: u32) {
        lengthen(&mut self.blocks, count, MerlinBlock::default());
        self.queues[CORE].reserve(count.min(capacity as usize));
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.queues.iter_mut().for_each(|queue| queue.renumber(ids));
        ids.close_up(&mut self.blocks, 0);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.blocks, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        let mut hit_at_least = [0; MAX_HITS as usize + 1];
        let mut queued = [0; 2];
        for (number, queue) in self.queues.iter().enumerate() {
            queue.audit()?;
            for block in queue.blocks() {
                let known = &self.blocks[block.index()];
                let is_here = match number {
                    GHOST => known.ghost != 0,
                    _ => self.place(block) == Some(number),
                };
                if !is_here {
                    return Err(format!("block {} of queue {number} is elsewhere", block.0));
                }
                let hits = if number == GHOST { known.ghost - 1 } else { known.hits };
                (1..=usize::from(hits)).for_each(|hits| hit_at_least[hits] += 1);
                queued[usize::from(number == GHOST)] += 1;
            }
        }
        let places = self.blocks.iter().filter(|known| known.place != 0).count();
        let ghosts = self.blocks.iter().filter(|known| known.ghost != 0).count();
        if [places, ghosts] != queued {
            return Err(format!("{places} blocks and {ghosts} ghosts, {queued:?} are queued"));
        }
        if hit_at_least != self.hit_at_least {
            return Err(format!("hits {:?} are {hit_at_least:?}", self.hit_at_least));
        }
        if self.resident() > capacity {
            return Err(format!("{} blocks in a cache of {capacity}", self.resident()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn queues(cache: &Merlin) -> [Vec<u32>; 4] {
        [FILTER, STAGING, CORE, GHOST]
            .map(|queue| cache.queues.queues[queue].blocks().iter().map(|block| block.0).collect())
    }

    /// The block that each access evicts, or 0.
    fn run(cache: &mut Merlin, ids: &[u32]) -> Vec<u32> {
        let evicted = |id: &u32| match cache.access(Access::read(BlockId(*id))) {
            Verdict::Admit { evicted } => evicted.map_or(0, |block| block.0),
            _ => 0,
        };
        ids.iter().map(evicted).collect()
    }

    /// Capacity 6: filter 2, staging 2, core 2, 3 ghosts. Queues old to new, hits in brackets.
    ///
    /// 1 to 6 fill the core, and two hits make 6(2). Block 7: the guard falls to 1, since one block
    /// was hit and the core has six. The core gives 1 2 3 4 to staging, whose oldest leaves. Block
    /// 8: 2 leaves. F 7 8, S 3 4, C 5 6(2). A hit on 7. Block 9: the filter is full; 7 has the hit
    /// that the guard asks for and goes to the core, 8 becomes a ghost. Block 8 comes back with
    /// one hit, as the guard asks: the core takes it, gives 5 to staging, and 3 leaves. F 9, S 4 5,
    /// C 6(2) 7 8(1).
    #[test]
    fn filter_guard_and_core_by_hand() {
        let mut cache = small();
        run(&mut cache, &[1, 2, 3, 4, 5, 6, 6, 6]);
        assert_eq!(queues(&cache)[CORE], [1, 2, 3, 4, 5, 6]);
        assert_eq!(run(&mut cache, &[7, 8]), [1, 2]);
        assert_eq!(
            (queues(&cache), cache.guard),
            ([vec![7, 8], vec![3, 4], vec![5, 6], vec![]], 1)
        );
        assert_eq!(run(&mut cache, &[7, 9, 8]), [0, 8, 3]);
        assert_eq!(queues(&cache), [vec![9], vec![4, 5], vec![6, 7, 8], vec![]]);
        assert_eq!(cache.audit(), Ok(()));
    }

    /// Goes on. Block 11: the core gives 6(2) to staging, 4 leaves. Blocks 12 to 15: 9 11 12 13
    /// become ghosts in turn; there is room for three, and 9 keeps only its count, 1, of when it
    /// left the filter. It comes back, to the filter: F 15 9, S 5 6(2), C 7 8(1). Block 16: 15
    /// leaves. Block 17: 9, without hits, was counted once, 5, staging's oldest, never: 9 goes to
    /// staging and stays a ghost, 5 leaves. F 16 17, S 6(2) 9, C 7 8(1), G 14 15 9.
    ///
    /// Hits on 7 and 8. Block 14, a ghost, has one hit now, and the guard is still 1: to the core.
    /// For it the guard rises to 2, as four have a hit and the core holds two; 16 becomes a ghost.
    /// Block 15 has one hit, too few: to staging, and it stays a ghost. The core gives 7(1) to
    /// staging, which gives 6 to the core, less a hit, and evicts 9, which was counted twice and
    /// 17 never.
    #[test]
    fn staging_and_ghosts_by_hand() {
        let mut cache = small();
        run(&mut cache, &[1, 2, 3, 4, 5, 6, 6, 6, 7, 8, 7, 9, 8]);
        assert_eq!(run(&mut cache, &[11, 12, 13, 14, 15]), [4, 9, 11, 12, 13]);
        assert_eq!(queues(&cache), [vec![14, 15], vec![5, 6], vec![7, 8], vec![11, 12, 13]]);
        assert_eq!(run(&mut cache, &[9, 16, 17]), [14, 15, 5]);
        assert_eq!(queues(&cache), [vec![16, 17], vec![6, 9], vec![7, 8], vec![14, 15, 9]]);
        assert_eq!(run(&mut cache, &[7, 8, 14, 15]), [0, 0, 16, 9]);
        assert_eq!(queues(&cache), [vec![17], vec![7, 15], vec![8, 14, 6], vec![15, 9, 16]]);
        assert_eq!((cache.guard, cache.queues.hits(BlockId(6))), (2, 1));
        assert_eq!(cache.audit(), Ok(()));
    }

    fn small() -> Merlin {
        let settings = MerlinSettings {
            filter_share: 0.34,
            staging_share: 0.34,
            ghost_share: 0.5,
            ..Default::default()
        };
        let mut cache = Merlin::new(6, &settings, Seed(0));
        cache.reserve_ids(20);
        cache
    }
}
