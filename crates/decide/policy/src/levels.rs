//! A queue of 64 levels: what is used climbs, and the levels are evened out at times.
//!
//! For: the queues of `smq` and `oc-smq`. Source: struct queue of Linux
//! `drivers/md/dm-cache-policy-smq.c`. Each level is a list in order of use; climbing swaps places
//! with the oldest entry of the level reached, so that levels keep their lengths. The lists are 64
//! neighbours of a [`LevelStore`] that several queues may share.

use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Levels of a queue.
pub const LEVELS: usize = 64;

/// Lists that a queue of levels stands on, to look at: [`LEVELS`] neighbours for each queue.
pub trait LevelLook {
    /// Entries of `list`.
    fn count(&self, list: usize) -> u32;
    /// The newest entry of `list`.
    fn newest_of(&self, list: usize) -> Option<BlockId>;
    /// The oldest entry of `list`.
    fn oldest_of(&self, list: usize) -> Option<BlockId>;
}

/// The same lists, to change.
pub trait LevelStore {
    /// The lists, to look at.
    fn look(&self) -> &impl LevelLook;
    /// Puts an entry of no list at the newest end of `list`.
    fn put_newest(&mut self, list: usize, entry: BlockId);
    /// Moves the `count` oldest entries of `from` to the newest end of `to`.
    fn lower(&mut self, from: usize, to: usize, count: u32);
    /// Moves the `count` newest entries of `from` to the oldest end of `to`.
    fn raise(&mut self, from: usize, to: usize, count: u32);
    /// Makes an entry the newest of a level so many levels up, at most the top, whose oldest
    /// becomes the newest of the level that the entry was at. Returns both levels, the lower first.
    fn climb(&mut self, entry: BlockId, jump: u8) -> (usize, usize);
    /// Takes the oldest entry of `list` out.
    fn pop_oldest_of(&mut self, list: usize) -> Option<BlockId>;
    /// Takes an entry out of its list.
    fn take(&mut self, entry: BlockId);
    /// The level of an entry of some list.
    fn level_of(&self, entry: BlockId) -> u8;
}

/// One queue over lists `first..first + LEVELS` of some [`LevelStore`].
#[derive(Clone, Debug, SnapshotValue)]
pub struct LevelQueue {
    first: usize,
    len: u32,
    /// Bit l is set when level l is not empty.
    occupied: u64,
    /// The highest levels that share `in_top` entries when levels are evened out.
    top_levels: usize,
    /// Entries aimed at in all top levels together.
    pub in_top: u32,
}

impl LevelQueue {
    /// An empty queue over lists `first..first + LEVELS`.
    pub fn new(first: usize, top_levels: usize, in_top: u32) -> Self {
        LevelQueue { first, len: 0, occupied: 0, top_levels, in_top }
    }

    /// Entries in the queue.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an entry as the newest of `level`.
    pub fn push(&mut self, lists: &mut impl LevelStore, level: u8, entry: BlockId) {
        lists.put_newest(self.first + usize::from(level), entry);
        self.occupied |= 1 << level;
        self.len += 1;
    }

    /// Takes an entry out.
    pub fn unlink(&mut self, lists: &mut impl LevelStore, entry: BlockId) {
        let level = lists.level_of(entry);
        let list = self.first + usize::from(level);
        lists.take(entry);
        if lists.look().count(list) == 0 {
            self.occupied &= !(1 << level);
        }
        self.len -= 1;
    }

    /// The oldest entry of the lowest level that has one, looking only at levels `from..below`.
    pub fn oldest(&self, lists: &impl LevelLook, from: usize, below: usize) -> Option<BlockId> {
        let above = self.occupied.checked_shr(from as u32)?;
        let level = from + above.trailing_zeros() as usize;
        if above == 0 || level >= below { None } else { lists.oldest_of(self.first + level) }
    }

    /// Takes out the oldest entry of the lowest level that has one; returns the level, too.
    pub fn pop_oldest(&mut self, lists: &mut impl LevelStore) -> Option<(u8, BlockId)> {
        let level = self.occupied.trailing_zeros() as usize;
        let entry = if level < LEVELS { lists.pop_oldest_of(self.first + level) } else { None }?;
        self.len -= 1;
        if lists.look().count(self.first + level) == 0 {
            self.occupied &= !(1 << level);
        }
        Some((level as u8, entry))
    }

    /// The newest entry of the highest level that has one, looking only at levels from `from` on.
    pub fn newest(&self, lists: &impl LevelLook, from: usize) -> Option<BlockId> {
        let level = self.occupied.checked_ilog2()? as usize;
        if level < from { None } else { lists.newest_of(self.first + level) }
    }

    /// Entries at levels from `from` on.
    pub fn len_from(&self, lists: &impl LevelLook, from: usize) -> u32 {
        (from..LEVELS).map(|level| lists.count(self.first + level)).sum()
    }

    /// An entry was used: it climbs `jump` levels (at most to the top) and becomes the newest
    /// there; the oldest entry of that level takes its place.
    pub fn requeue(&mut self, lists: &mut impl LevelStore, entry: BlockId, jump: u8) {
        let (from, to) = lists.climb(entry, jump);
        self.note_moved(lists, from, to);
    }

    /// The same, but the entry is left out; returns the level reached.
    pub fn take_climbing(&mut self, lists: &mut impl LevelStore, entry: BlockId, jump: u8) -> u8 {
        let level = lists.level_of(entry);
        let reached = (level + jump).min(LEVELS as u8 - 1);
        self.unlink(lists, entry);
        if reached > level {
            let (from, to) = (usize::from(reached), usize::from(level));
            self.lower(lists, from, to, lists.look().count(self.first + from).min(1));
        }
        reached
    }

    /// The length that each level should have. Where there are too few entries the lowest levels
    /// come first; the highest takes the rest.
    fn targets(&self) -> [u32; LEVELS] {
        let low_levels = LEVELS - self.top_levels;
        let in_low = self.len.saturating_sub(self.in_top);
        let mut rest = self.len;
        std::array::from_fn(|level| {
            let wanted = match level.checked_sub(low_levels) {
                _ if level == LEVELS - 1 => rest,
                None => share(in_low, low_levels, level),
                Some(index) => share(self.in_top, self.top_levels, index),
            };
            let target = wanted.min(rest);
            rest -= target;
            target
        })
    }

    /// Evens the levels out: a short one takes the oldest entries from above or the newest from
    /// below. Entries keep their order over all levels, so each goes straight to the level that its
    /// rank falls to: first those that sink, from the lowest level up, then those that rise, from
    /// the highest level down.
    pub fn redistribute(&mut self, lists: &mut impl LevelStore) {
        let targets = self.targets();
        // Entries of the levels so far that will rise beyond them.
        let mut rising = 0;
        for (level, &target) in targets.iter().enumerate().take(LEVELS - 1) {
            let list = self.first + level;
            while rising + lists.look().count(list) < target {
                let above = self.occupied >> (level + 1);
                if above == 0 {
                    break;
                }
                let from = level + 1 + above.trailing_zeros() as usize;
                let missing = target - rising - lists.look().count(list);
                self.lower(lists, from, level, lists.look().count(self.first + from).min(missing));
            }
            rising = (rising + lists.look().count(list)).saturating_sub(target);
        }
        for (level, &target) in targets.iter().enumerate().skip(1).rev() {
            let list = self.first + level;
            while lists.look().count(list) < target
                && let Some(from) = (self.occupied & ((1 << level) - 1)).checked_ilog2()
            {
                let (from, missing) = (from as usize, target - lists.look().count(list));
                self.raise(lists, from, level, lists.look().count(self.first + from).min(missing));
            }
        }
    }

    /// Moves the oldest entries of level `from` to the newest end of the lower level `to`.
    #[inline(always)]
    pub fn lower(&mut self, lists: &mut impl LevelStore, from: usize, to: usize, count: u32) {
        if count > 0 {
            lists.lower(self.first + from, self.first + to, count);
            self.note_moved(lists, from, to);
        }
    }

    /// Moves the newest entries of level `from` to the oldest end of the higher level `to`.
    #[inline(always)]
    pub fn raise(&mut self, lists: &mut impl LevelStore, from: usize, to: usize, count: u32) {
        if count > 0 {
            lists.raise(self.first + from, self.first + to, count);
            self.note_moved(lists, from, to);
        }
    }

    fn note_moved(&mut self, lists: &impl LevelStore, from: usize, to: usize) {
        let emptied = lists.look().count(self.first + from) == 0;
        self.occupied = self.occupied & !(u64::from(emptied) << from) | 1 << to;
    }

    /// Checks the counts.
    pub fn audit(&self, lists: &impl LevelLook) -> Result<(), String> {
        let held = |level| lists.count(self.first + level);
        if let Some(level) =
            (0..LEVELS).find(|level| (self.occupied >> level & 1 == 1) != (held(*level) > 0))
        {
            return Err(format!("level {level}: wrongly noted as empty or not"));
        }
        let len: u32 = (0..LEVELS).map(held).sum();
        if len == self.len { Ok(()) } else { Err(format!("{len} entries, {} counted", self.len)) }
    }
}

/// The part of `total` that falls to the `index`th of `parts`; the first ones take the remainder.
fn share(total: u32, parts: usize, index: usize) -> u32 {
    let parts = parts as u32;
    total / parts + u32::from((index as u32) < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level_chunks::LevelChunks;

    #[test]
    fn climbing_swaps_places_and_redistribution_evens_out() {
        let mut chunks: LevelChunks<(), LEVELS> = LevelChunks::default();
        chunks.reserve_ids(130);
        let mut queue = LevelQueue::new(0, 0, 0);
        for id in 0..130 {
            queue.push(&mut chunks.store(), 0, BlockId(id));
        }
        // 130 = 64 * 2 + 2: the two lowest levels take 3. The oldest stay lowest, in order.
        queue.redistribute(&mut chunks.store());
        let level = |chunks: &LevelChunks<(), LEVELS>, l: usize| -> Vec<u32> {
            chunks.lists.iter(l).map(|entry| entry.0).collect()
        };
        assert_eq!(level(&chunks, 0), [2, 1, 0]);
        assert_eq!(level(&chunks, 1), [5, 4, 3]);
        assert_eq!(level(&chunks, 63), [129, 128]);
        // 0 climbs one level and swaps with 3, the oldest there.
        queue.requeue(&mut chunks.store(), BlockId(0), 1);
        assert_eq!((level(&chunks, 0), level(&chunks, 1)), (vec![3, 2, 1], vec![0, 5, 4]));
        assert_eq!((queue.audit(&chunks.lists), chunks.audit()), (Ok(()), Ok(())));
    }
}
