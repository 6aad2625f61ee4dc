//! Access frequency: a missed block enters only if it is asked for more often than one held.
//!
//! For: the frequency-counting flash caches that later papers call "Access Frequency". Must never
//! know: engines, tenants, time. Sources: Klonatos et al., "Azor", NAS'11 (a running estimate of
//! each block's accesses decides whether it may replace a cached one) and Chen, Koufaty, Zhang,
//! "Hystor", ICS'11 (a block table of access counts with bounded size and regular ageing).
//!
//! The reading chosen, where the papers describe systems rather than one algorithm: every access
//! adds one to the block's count; the resident block with the lowest count, and among those the one
//! longest at that count, is the one to replace; a missed block replaces it only if its own count
//! is higher (ties stay out), and enters freely while there is room. Counts of blocks not resident
//! are kept for the most recently missed or evicted ones only. All counts are halved at regular
//! intervals; a count of 0 outside the cache is forgotten. Not taken over: Azor's priority of file
//! system metadata and Hystor's weighting by request size, which a policy of unit blocks cannot
//! see. Unit: blocks and accesses. Counts stop at 255.
//!
//! Halving visits no block: lists of resident blocks are joined whole, and a count says how many
//! halvings it has seen. Blocks of the history whose count has become 0 stay in its list until a
//! sweep of a few blocks per access takes them out; they count as forgotten meanwhile.

use crate::entry::{Entry, Registered};
use crate::links::Links;
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
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

/// Where a block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BlockPlace {
    #[default]
    Nowhere,
    Resident,
    History,
}

#[derive(Clone, Copy, Debug, Default)]
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

/// Admission and replacement by access counts.
#[derive(Clone, Debug)]
pub struct AccessFrequency {
    links: Links<FrequencyTag, 257>,
    /// Bit f is set when list f of the resident blocks is not empty.
    occupied: [u64; 4],
    resident: u32,
    capacity: u32,
    settings: AccessFrequencySettings,
    history_blocks: u32,
    accesses_to_halving: u64,
    /// Halvings so far, modulo 256.
    halvings: u8,
    /// Blocks of the history that are not forgotten, in all and by count.
    remembered: u32,
    remembered_by_count: [u32; 256],
    /// The next block of the history to look at, from the oldest on, after a halving, and how many
    /// per access, so that all are before the next.
    swept: Option<BlockId>,
    swept_per_access: u32,
    /// The next id whose count is brought up to date, and the ids that there are.
    refreshed: u32,
    ids: u32,
}

impl Registered for AccessFrequency {
    type Settings = AccessFrequencySettings;
    const ENTRY: Entry = Entry {
        name: "access-frequency",
        doc: "a block enters if it was asked for more often than the least asked-for one held",
        source: "Klonatos et al. (Azor), NAS'11; Chen et al. (Hystor), ICS'11",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &AccessFrequencySettings, _: Seed) -> Self {
        let mut policy = AccessFrequency {
            links: Links::new(),
            occupied: [0; 4],
            resident: 0,
            capacity: 0,
            settings: settings.clone(),
            history_blocks: 0,
            accesses_to_halving: 0,
            halvings: 0,
            remembered: 0,
            remembered_by_count: [0; 256],
            swept: None,
            swept_per_access: MIN_SWEPT,
            refreshed: 0,
            ids: 0,
        };
        policy.set_capacity(capacity_blocks);
        policy.accesses_to_halving = policy.halving_interval();
        policy
    }
}

impl AccessFrequency {
    fn set_capacity(&mut self, capacity_blocks: u32) {
        self.capacity = capacity_blocks;
        self.history_blocks = (self.settings.history * f64::from(capacity_blocks)) as u32;
    }

    fn halving_interval(&self) -> u64 {
        ((self.settings.halve_every * f64::from(self.capacity)) as u64).max(1)
    }

    /// The count of a block now.
    #[inline(always)]
    fn count(&self, tag: FrequencyTag) -> u8 {
        let missed = u32::from(self.halvings.wrapping_sub(tag.halvings));
        tag.count.checked_shr(missed).unwrap_or(0)
    }

    #[inline(always)]
    fn keep(&mut self, block: BlockId, count: u8) {
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

    fn remember(&mut self, block: BlockId, count: u8) {
        if count > 0 {
            let (halvings, place) = (self.halvings, BlockPlace::History);
            self.links.push_head(HISTORY, block);
            *self.links.tag_mut(block) = FrequencyTag { count, halvings, place };
            self.remembered += 1;
            self.remembered_by_count[usize::from(count)] += 1;
            self.trim_history();
        }
    }

    /// Takes a block out of the history, be it forgotten or not.
    fn forget(&mut self, block: BlockId) {
        let count = self.count(self.links.tag(block));
        if count > 0 {
            self.remembered -= 1;
            self.remembered_by_count[usize::from(count)] -= 1;
        }
        if self.swept == Some(block) {
            self.swept = self.links.newer(block);
        }
        self.links.unlink(HISTORY, block);
        *self.links.tag_mut(block) = FrequencyTag::default();
    }

    fn trim_history(&mut self) {
        while self.remembered > self.history_blocks
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

    fn evict(&mut self, victim: BlockId, count: u8) {
        self.release(victim, count);
        self.remember(victim, count);
    }

    /// Halves all counts; blocks that meet at one count keep the order of their old counts first
    /// and of their time there second.
    fn halve(&mut self) {
        for count in 1..HISTORY {
            self.links.append(count, count / 2);
        }
        self.occupied = [0; 4];
        for list in (0..HISTORY).filter(|list| self.links.len(*list) > 0) {
            self.occupied[list / 64] |= 1 << (list % 64);
        }
        let old = std::mem::replace(&mut self.remembered_by_count, [0; 256]);
        for (count, blocks) in old.into_iter().enumerate().skip(2) {
            self.remembered_by_count[count / 2] += blocks;
        }
        self.remembered = self.remembered_by_count.iter().sum();
        self.halvings = self.halvings.wrapping_add(1);
        self.swept = self.links.tail(HISTORY);
        let share = u64::from(self.links.len(HISTORY)) / self.halving_interval() + 1;
        self.swept_per_access = MIN_SWEPT.max(share as u32);
    }

    /// Takes out the next few blocks of the history that a halving has made forgotten.
    fn sweep(&mut self) {
        for _ in 0..self.swept_per_access {
            let Some(block) = self.swept else { return };
            let tag = self.links.tag(block);
            let (count, halvings) = (self.count(tag), self.halvings);
            // What came after the last halving is at the newer end, and was not halved.
            self.swept = self.links.newer(block).filter(|_| tag.halvings != halvings);
            if count == 0 {
                self.forget(block);
            } else {
                *self.links.tag_mut(block) = FrequencyTag { count, halvings, ..tag };
            }
        }
    }

    /// Brings counts of some resident blocks up to date, of all within a hundred halvings.
    #[cold]
    fn refresh(&mut self) {
        let share = u64::from(self.ids) * REFRESH / (100 * self.halving_interval());
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

    #[inline(always)]
    fn age(&mut self) {
        self.accesses_to_halving -= 1;
        if self.swept.is_some() {
            self.sweep();
        }
        if self.accesses_to_halving.is_multiple_of(REFRESH) {
            self.refresh();
        }
        if self.accesses_to_halving == 0 {
            self.halve();
            self.accesses_to_halving = self.halving_interval();
        }
    }

    #[inline(always)]
    fn on_miss(&mut self, block: BlockId, tag: FrequencyTag) -> Verdict {
        if tag.place == BlockPlace::History {
            self.forget(block);
        }
        let count = self.count(tag).saturating_add(1);
        let mut evicted = None;
        if self.resident >= self.capacity {
            match self.rarest() {
                Some((victim, least)) if count > least => {
                    self.evict(victim, least);
                    evicted = Some(victim);
                }
                _ => {
                    self.remember(block, count);
                    return Verdict::Bypass;
                }
            }
        }
        self.keep(block, count);
        Verdict::Admit { evicted }
    }
}

impl PolicyHooks for AccessFrequency {}

impl Policy for AccessFrequency {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        self.age();
        let tag = self.links.tag(access.block);
        if tag.place != BlockPlace::Resident {
            return self.on_miss(access.block, tag);
        }
        let count = self.count(tag);
        if count == u8::MAX {
            self.links.move_to_head(usize::from(count), access.block);
        } else {
            self.release(access.block, count);
            self.keep(access.block, count + 1);
        }
        Verdict::Hit
    }

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

    fn max_tracked(&self) -> u64 {
        u64::from(self.capacity) + u64::from(self.history_blocks) + 1
    }

    fn adopt(&mut self, block: BlockId, _: bool) -> Verdict {
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let tag = self.links.tag(block);
        if tag.place == BlockPlace::History {
            self.forget(block);
        }
        let mut evicted = None;
        if self.resident >= self.capacity
            && let Some((victim, count)) = self.rarest()
        {
            self.evict(victim, count);
            evicted = Some(victim);
        }
        self.keep(block, self.count(tag).saturating_add(1));
        Verdict::Admit { evicted }
    }

    fn len(&self) -> u32 {
        self.resident
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.set_capacity(capacity_blocks);
        while self.resident > capacity_blocks {
            let Some((victim, count)) = self.rarest() else { break };
            self.evict(victim, count);
            evicted.push(victim);
        }
        self.trim_history();
        self.accesses_to_halving = self.accesses_to_halving.min(self.halving_interval());
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

    fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
        self.ids = self.ids.max(count as u32);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        let forgotten = |block: &BlockId| self.count(self.links.tag(*block)) == 0;
        let forgotten: Vec<BlockId> = self.links.iter(HISTORY).filter(forgotten).collect();
        forgotten.into_iter().for_each(|block| self.forget(block));
        self.links.renumber(ids);
        self.swept = self.swept.and_then(|block| ids.get(block));
        (self.refreshed, self.ids) = (0, ids.kept() as u32);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    fn audit(&self) -> Result<(), String> {
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
        if resident != self.resident || resident > self.capacity {
            let counted = self.resident;
            return Err(format!("{resident} blocks, {counted} counted, of {}", self.capacity));
        }
        let mut by_count = [0_u32; 256];
        for block in self.links.iter(HISTORY) {
            let tag = self.links.tag(block);
            let count = self.count(tag);
            by_count[usize::from(count)] += u32::from(count > 0);
            if tag.place != BlockPlace::History || (count == 0 && self.swept.is_none()) {
                return Err(format!("block {} is in the history", block.0));
            }
        }
        let remembered: u32 = by_count.iter().sum();
        if by_count != self.remembered_by_count || remembered != self.remembered {
            return Err(format!("{remembered} blocks of history, {} counted", self.remembered));
        }
        if remembered > self.history_blocks {
            return Err(format!("{remembered} blocks of history"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(policy: &mut AccessFrequency, ids: &[u32]) -> Vec<Verdict> {
        ids.iter().map(|id| policy.access(Access::read(BlockId(*id)))).collect()
    }

    fn count(policy: &AccessFrequency, id: u32) -> u8 {
        policy.count(policy.links.tag(BlockId(id)))
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
