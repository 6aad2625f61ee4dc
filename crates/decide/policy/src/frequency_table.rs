//! Access counts of blocks: resident ones in a list per count, others in a history.
//!
//! For: `access-frequency`. Unit: blocks and accesses. Counts stop at 255. Halving visits no block:
//! lists of resident blocks are joined whole, and a count says how many halvings it has seen.
//! Blocks of the history whose count has become 0 stay in its list until a sweep of a few blocks
//! per access takes them out; they count as forgotten meanwhile. Memory: 12 bytes per id.

use crate::links::Links;
use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Where a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
enum BlockPlace {
    #[default]
    Nowhere,
    Resident,
    History,
}

#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct FrequencyTag {
    /// The count after so many halvings, modulo 256.
    count: u8,
    halvings: u8,
    place: BlockPlace,
}

/// Lists `0..=255` hold the resident blocks by count; this one holds the history.
const HISTORY: usize = 256;

/// The fewest blocks of the history that are looked at per access after a halving.
const MIN_SWEPT: u32 = 8;
/// Every so many accesses some counts are brought up to date: none may miss 256 halvings.
const REFRESH: u64 = 64;

/// Blocks outside the cache whose counts are kept, by their counts.
#[derive(Clone, Debug, SnapshotValue)]
struct CountHistory {
    /// The most blocks remembered.
    limit: u32,
    /// Blocks that are not forgotten, in all and by count.
    remembered: u32,
    by_count: [u32; 256],
    /// The next block to look at, from the oldest on, after a halving, and how many per access, so
    /// that all are before the next.
    swept: Option<BlockId>,
    swept_per_access: u32,
}

/// The counts; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct FrequencyTable {
    links: Links<FrequencyTag, 257>,
    /// Bit f is set when list f of the resident blocks is not empty.
    occupied: [u64; 4],
    resident: u32,
    history: CountHistory,
    /// Halvings so far, modulo 256.
    halvings: u8,
    /// The next id whose count is brought up to date, and the ids that there are.
    refreshed: u32,
    ids: u32,
}

impl Default for FrequencyTable {
    fn default() -> Self {
        let (by_count, swept, swept_per_access) = ([0; 256], None, MIN_SWEPT);
        FrequencyTable {
            links: Links::new(),
            occupied: [0; 4],
            resident: 0,
            history: CountHistory { limit: 0, remembered: 0, by_count, swept, swept_per_access },
            halvings: 0,
            refreshed: 0,
            ids: 0,
        }
    }
}

impl FrequencyTable {
    /// Counts a hit, if the block is resident.
    #[inline(always)]
    pub fn hit(&mut self, block: BlockId) -> bool {
        let tag = self.links.tag(block);
        if tag.place != BlockPlace::Resident {
            return false;
        }
        let count = self.count(tag);
        if count == u8::MAX {
            self.links.move_to_head(usize::from(count), block);
        } else {
            self.release(block, count);
            self.keep(block, count + 1);
        }
        true
    }

    /// Takes a block that is not resident out of the history, if it is there; returns its count
    /// with this access.
    #[inline(always)]
    pub fn count_miss(&mut self, block: BlockId) -> u8 {
        let tag = self.links.tag(block);
        if tag.place == BlockPlace::History {
            self.forget(block);
        }
        self.count(tag).saturating_add(1)
    }

    /// The resident block with the lowest count leaves for the history.
    #[inline(always)]
    pub fn evict_rarest(&mut self) -> Option<BlockId> {
        let (victim, count) = self.rarest()?;
        self.release(victim, count);
        self.remember(victim, count);
        Some(victim)
    }

    /// The lowest count of a resident block.
    #[inline(always)]
    pub fn lowest_count(&self) -> Option<u8> {
        self.rarest().map(|(_, count)| count)
    }

    /// Changes the most blocks that the history remembers.
    pub fn limit_history(&mut self, blocks: u32) {
        self.history.limit = blocks;
    }

    /// Blocks that the history remembers at most.
    pub fn history_limit(&self) -> u32 {
        self.history.limit
    }

    /// Passes one access; all counts are halved after `left` more of `interval`.
    #[inline(always)]
    pub fn age(&mut self, left: u64, interval: u64) {
        if self.history.swept.is_some() {
            self.sweep();
        }
        if left.is_multiple_of(REFRESH) {
            self.refresh(interval);
        }
        if left == 0 {
            self.halve(interval);
        }
    }

    /// The count of a block now.
    #[inline(always)]
    pub fn count_of(&self, block: BlockId) -> u8 {
        self.count(self.links.tag(block))
    }

    #[inline(always)]
    fn count(&self, tag: FrequencyTag) -> u8 {
        let missed = u32::from(self.halvings.wrapping_sub(tag.halvings));
        tag.count.checked_shr(missed).unwrap_or(0)
    }

    /// Takes in a block that is not tracked.
    #[inline(always)]
    pub fn keep(&mut self, block: BlockId, count: u8) {
        let list = usize::from(count);
        let (halvings, place) = (self.halvings, BlockPlace::Resident);
        self.links.push_head(list, block);
        *self.links.tag_mut(block) = FrequencyTag { count, halvings, place };
        self.occupied[list / 64] |= 1 << (list % 64);
        self.resident += 1;
    }

    #[inline(always)]
    fn release(&mut self, block: BlockId, count: u8) {
        let list = usize::from(count);
        self.links.unlink(list, block);
        *self.links.tag_mut(block) = FrequencyTag::default();
        if self.links.len(list) == 0 {
            self.occupied[list / 64] &= !(1 << (list % 64));
        }
        self.resident -= 1;
    }

    /// Adds a block that is not tracked to the history; a count of 0 is forgotten.
    pub fn remember(&mut self, block: BlockId, count: u8) {
        if count > 0 {
            let (halvings, place) = (self.halvings, BlockPlace::History);
            self.links.push_head(HISTORY, block);
            *self.links.tag_mut(block) = FrequencyTag { count, halvings, place };
            self.history.remembered += 1;
            self.history.by_count[usize::from(count)] += 1;
            self.trim_history();
        }
    }

    /// Takes a block out of the history, be it forgotten or not.
    fn forget(&mut self, block: BlockId) {
        let count = self.count(self.links.tag(block));
        if count > 0 {
            self.history.remembered -= 1;
            self.history.by_count[usize::from(count)] -= 1;
        }
        if self.history.swept == Some(block) {
            self.history.swept = self.links.newer(block);
        }
        self.links.unlink(HISTORY, block);
        *self.links.tag_mut(block) = FrequencyTag::default();
    }

    /// Forgets the oldest blocks of the history beyond its limit.
    pub fn trim_history(&mut self) {
        while self.history.remembered > self.history.limit
            && let Some(oldest) = self.links.tail(HISTORY)
        {
            self.forget(oldest);
        }
    }

    /// The resident block to replace and its count.
    #[inline(always)]
    fn rarest(&self) -> Option<(BlockId, u8)> {
        let word = self.occupied.iter().position(|word| *word != 0)?;
        let count = word * 64 + self.occupied[word].trailing_zeros() as usize;
        self.links.tail(count).map(|block| (block, count as u8))
    }

    /// Halves all counts; blocks that meet at one count keep the order of their old counts first
    /// and of their time there second.
    fn halve(&mut self, interval: u64) {
        for count in 1..HISTORY {
            self.links.append(count, count / 2);
        }
        self.occupied = [0; 4];
        for list in (0..HISTORY).filter(|list| self.links.len(*list) > 0) {
            self.occupied[list / 64] |= 1 << (list % 64);
        }
        let old = std::mem::replace(&mut self.history.by_count, [0; 256]);
        for (count, blocks) in old.into_iter().enumerate().skip(2) {
            self.history.by_count[count / 2] += blocks;
        }
        self.history.remembered = self.history.by_count.iter().sum();
        self.halvings = self.halvings.wrapping_add(1);
        self.history.swept = self.links.tail(HISTORY);
        let share = u64::from(self.links.len(HISTORY)) / interval + 1;
        self.history.swept_per_access = MIN_SWEPT.max(share as u32);
    }

    /// Takes out the next few blocks of the history that a halving has made forgotten.
    fn sweep(&mut self) {
        for _ in 0..self.history.swept_per_access {
            let Some(block) = self.history.swept else { return };
            let tag = self.links.tag(block);
            let (count, halvings) = (self.count(tag), self.halvings);
            // What came after the last halving is at the newer end, and was not halved.
            self.history.swept = self.links.newer(block).filter(|_| tag.halvings != halvings);
            if count == 0 {
                self.forget(block);
            } else {
                *self.links.tag_mut(block) = FrequencyTag { count, halvings, ..tag };
            }
        }
    }

    /// Brings counts of some resident blocks up to date, of all within a hundred halvings.
    #[cold]
    fn refresh(&mut self, interval: u64) {
        let share = u64::from(self.ids) * REFRESH / (100 * interval);
        for _ in 0..=share.min(u64::from(self.ids)) {
            let block = BlockId(self.refreshed);
            if block.0 < self.ids {
                let tag = self.links.tag(block);
                let (count, halvings) = (self.count(tag), self.halvings);
                if tag.place == BlockPlace::Resident {
                    *self.links.tag_mut(block) = FrequencyTag { count, halvings, ..tag };
                }
            }
            self.refreshed = if block.0 + 1 < self.ids { block.0 + 1 } else { 0 };
        }
    }
}

impl BlockStore for FrequencyTable {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block).place == BlockPlace::Resident
    }

    fn tracks(&self, block: BlockId) -> bool {
        let tag = self.links.tag(block);
        match tag.place {
            BlockPlace::Nowhere => false,
            BlockPlace::Resident => true,
            BlockPlace::History => self.count(tag) > 0,
        }
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.resident
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let tag = self.links.tag(block);
        match tag.place {
            BlockPlace::Nowhere => {}
            BlockPlace::Resident => self.release(block, self.count(tag)),
            BlockPlace::History => self.forget(block),
        }
        tag.place == BlockPlace::Resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        self.links.reserve_ids(count);
        self.ids = self.ids.max(count as u32);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        let forgotten = |block: &BlockId| self.count(self.links.tag(*block)) == 0;
        let forgotten: Vec<BlockId> = self.links.iter(HISTORY).filter(forgotten).collect();
        forgotten.into_iter().for_each(|block| self.forget(block));
        self.links.renumber(ids);
        self.history.swept = self.history.swept.and_then(|block| ids.get(block));
        (self.refreshed, self.ids) = (0, ids.kept() as u32);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        self.links.audit()?;
        let mut resident = 0;
        for list in 0..HISTORY {
            resident += self.links.len(list);
            let bit = self.occupied[list / 64] >> (list % 64) & 1 == 1;
            if bit != (self.links.len(list) > 0) {
                return Err(format!("count {list}: occupied is {bit}"));
            }
            let stray = |block: &BlockId| {
                let tag = self.links.tag(*block);
                tag.place != BlockPlace::Resident || usize::from(self.count(tag)) != list
            };
            if let Some(block) = self.links.iter(list).find(stray) {
                return Err(format!("block {} is in the list of count {list}", block.0));
            }
        }
        if resident != self.resident || resident > capacity {
            return Err(format!("{resident} blocks, {} counted, of {capacity}", self.resident));
        }
        let mut by_count = [0_u32; 256];
        for block in self.links.iter(HISTORY) {
            let tag = self.links.tag(block);
            let count = self.count(tag);
            by_count[usize::from(count)] += u32::from(count > 0);
            if tag.place != BlockPlace::History || (count == 0 && self.history.swept.is_none()) {
                return Err(format!("block {} is in the history", block.0));
            }
        }
        let remembered: u32 = by_count.iter().sum();
        if by_count != self.history.by_count || remembered != self.history.remembered {
            return Err(format!(
                "{remembered} blocks of history, {} counted",
                self.history.remembered
            ));
        }
        if remembered > self.history.limit {
            return Err(format!("{remembered} blocks of history"));
        }
        Ok(())
    }
}
