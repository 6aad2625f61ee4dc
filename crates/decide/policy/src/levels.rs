//! A queue of 64 levels: what is used climbs, and the levels are evened out at times.
//!
//! For: the queues of `smq` and `oc-smq`. Must never know: caches, regions, periods. Source: struct
//! queue of Linux `drivers/md/dm-cache-policy-smq.c`. Each level is a list in order of use;
//! climbing swaps places with the oldest entry of the level reached, so that levels keep their
//! lengths. The lists are 64 neighbours of a [`Links`] that several queues may share, or of
//! anything else that keeps [`LevelStore`].

use crate::links::Links;
use cachewright_types::BlockId;

/// Levels of a queue.
pub const LEVELS: usize = 64;

/// A tag that says at which level its entry is.
pub trait Levelled: Copy + Default {
    /// The level.
    fn level(&self) -> u8;
    /// Notes another level.
    fn set_level(&mut self, level: u8);
}

impl Levelled for u8 {
    fn level(&self) -> u8 {
        *self
    }
    fn set_level(&mut self, level: u8) {
        *self = level;
    }
}

/// Lists that a queue of levels stands on; each entry knows its level.
pub trait LevelStore {
    /// Puts an entry of no list at the newest end of `list` and notes its level.
    fn put_newest(&mut self, list: usize, level: u8, entry: BlockId);
    /// Moves the `count` oldest entries of `from` to the newest end of `to`, which is of `level`.
    fn lower(&mut self, from: usize, to: usize, level: u8, count: u32);
    /// Moves the `count` newest entries of `from` to the oldest end of `to`, which is of `level`.
    fn raise(&mut self, from: usize, to: usize, level: u8, count: u32);
    /// Takes an entry out of `list`, in which it must be.
    fn take(&mut self, list: usize, entry: BlockId);
    /// The level of an entry.
    fn level_of(&self, entry: BlockId) -> u8;
    /// Entries of `list`.
    fn count(&self, list: usize) -> u32;
    /// The newest entry of `list`.
    fn newest_of(&self, list: usize) -> Option<BlockId>;
    /// The oldest entry of `list`.
    fn oldest_of(&self, list: usize) -> Option<BlockId>;
}

impl<T: Levelled, const L: usize> LevelStore for Links<T, L> {
    #[inline(always)]
    fn put_newest(&mut self, list: usize, level: u8, entry: BlockId) {
        self.push_head(list, entry);
        self.tag_mut(entry).set_level(level);
    }
    fn lower(&mut self, from: usize, to: usize, level: u8, count: u32) {
        self.splice_oldest(from, to, count, |tag| tag.set_level(level));
    }
    fn raise(&mut self, from: usize, to: usize, level: u8, count: u32) {
        self.splice_newest(from, to, count, |tag| tag.set_level(level));
    }
    #[inline(always)]
    fn take(&mut self, list: usize, entry: BlockId) {
        self.unlink(list, entry);
    }
    #[inline(always)]
    fn level_of(&self, entry: BlockId) -> u8 {
        self.tag(entry).level()
    }
    #[inline(always)]
    fn count(&self, list: usize) -> u32 {
        self.len(list)
    }
    #[inline(always)]
    fn newest_of(&self, list: usize) -> Option<BlockId> {
        self.head(list)
    }
    #[inline(always)]
    fn oldest_of(&self, list: usize) -> Option<BlockId> {
        self.tail(list)
    }
}

/// One queue over lists `first..first + LEVELS` of some [`LevelStore`].
#[derive(Clone, Debug)]
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
        lists.put_newest(self.first + usize::from(level), level, entry);
        self.note(level);
    }

    fn note(&mut self, level: u8) {
        self.occupied |= 1 << level;
        self.len += 1;
    }

    /// Takes an entry out.
    pub fn unlink(&mut self, lists: &mut impl LevelStore, entry: BlockId) {
        let level = lists.level_of(entry);
        let list = self.first + usize::from(level);
        lists.take(list, entry);
        if lists.count(list) == 0 {
            self.occupied &= !(1 << level);
        }
        self.len -= 1;
    }

    /// The oldest entry of the lowest level that has one, looking only at levels `from..below`.
    pub fn oldest(&self, lists: &impl LevelStore, from: usize, below: usize) -> Option<BlockId> {
        let above = self.occupied.checked_shr(from as u32)?;
        let level = from + above.trailing_zeros() as usize;
        if above == 0 || level >= below { None } else { lists.oldest_of(self.first + level) }
    }

    /// The newest entry of the highest level that has one, looking only at levels from `from` on.
    pub fn newest(&self, lists: &impl LevelStore, from: usize) -> Option<BlockId> {
        let level = self.occupied.checked_ilog2()? as usize;
        if level < from { None } else { lists.newest_of(self.first + level) }
    }

    /// Entries at levels from `from` on.
    pub fn len_from(&self, lists: &impl LevelStore, from: usize) -> u32 {
        (from..LEVELS).map(|level| lists.count(self.first + level)).sum()
    }

    /// An entry was used: it climbs `jump` levels (at most to the top) and becomes the newest
    /// there; the oldest entry of that level takes its place.
    pub fn requeue(&mut self, lists: &mut impl LevelStore, entry: BlockId, jump: u8) {
        let level = lists.level_of(entry);
        let reached = (level + jump).min(LEVELS as u8 - 1);
        self.unlink(lists, entry);
        if reached > level {
            let other = self.oldest(lists, reached.into(), usize::from(reached) + 1);
            if let Some(other) = other {
                self.unlink(lists, other);
                self.push(lists, level, other);
            }
        }
        self.push(lists, reached, entry);
    }

    /// The length that `level` should have.
    fn target(&self, level: usize) -> u32 {
        let low_levels = LEVELS - self.top_levels;
        if level >= low_levels {
            share(self.in_top, self.top_levels, level - low_levels)
        } else {
            share(self.len.saturating_sub(self.in_top), low_levels, level)
        }
    }

    /// Evens the levels out from the lowest up: a short one takes the oldest entries from above, a
    /// long one gives its newest.
    pub fn redistribute(&mut self, lists: &mut impl LevelStore) {
        let targets: [u32; LEVELS] = std::array::from_fn(|level| self.target(level));
        for (level, &target) in targets.iter().enumerate().take(LEVELS - 1) {
            let list = self.first + level;
            while lists.count(list) < target {
                let above = self.occupied >> (level + 1);
                if above == 0 {
                    break;
                }
                let from = level + 1 + above.trailing_zeros() as usize;
                let missing = target - lists.count(list);
                self.lower(lists, from, level, lists.count(self.first + from).min(missing));
            }
            self.raise(lists, level, level + 1, lists.count(list).saturating_sub(target));
        }
    }

    /// Moves the oldest entries of level `from` to the newest end of the lower level `to`.
    pub fn lower(&mut self, lists: &mut impl LevelStore, from: usize, to: usize, count: u32) {
        if count > 0 {
            lists.lower(self.first + from, self.first + to, to as u8, count);
            self.note_moved(lists, from, to);
        }
    }

    /// Moves the newest entries of level `from` to the oldest end of the higher level `to`.
    pub fn raise(&mut self, lists: &mut impl LevelStore, from: usize, to: usize, count: u32) {
        if count > 0 {
            lists.raise(self.first + from, self.first + to, to as u8, count);
            self.note_moved(lists, from, to);
        }
    }

    fn note_moved(&mut self, lists: &impl LevelStore, from: usize, to: usize) {
        self.occupied |= 1 << to;
        if lists.count(self.first + from) == 0 {
            self.occupied &= !(1 << from);
        }
    }

    /// Checks the counts and that every entry knows its level.
    pub fn audit<T: Levelled, const L: usize>(&self, links: &Links<T, L>) -> Result<(), String> {
        let mut len = 0;
        for level in 0..LEVELS {
            let list = self.first + level;
            len += links.len(list);
            if (self.occupied >> level & 1 == 1) != (links.len(list) > 0) {
                return Err(format!("level {level}: wrongly noted as empty or not"));
            }
            let stray = |entry: &BlockId| usize::from(links.tag(*entry).level()) != level;
            if let Some(entry) = links.iter(list).find(stray) {
                return Err(format!("level {level}: entry {} thinks otherwise", entry.0));
            }
        }
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

    #[test]
    fn climbing_swaps_places_and_redistribution_evens_out() {
        let mut links: Links<u8, LEVELS> = Links::new();
        links.reserve_ids(130);
        let mut queue = LevelQueue::new(0, 0, 0);
        for id in 0..130 {
            queue.push(&mut links, 0, BlockId(id));
        }
        // 130 = 64 * 2 + 2: the two lowest levels take 3. The oldest stay lowest, in order.
        queue.redistribute(&mut links);
        let level = |links: &Links<u8, LEVELS>, l: usize| -> Vec<u32> {
            links.iter(l).map(|entry| entry.0).collect()
        };
        assert_eq!(level(&links, 0), [2, 1, 0]);
        assert_eq!(level(&links, 1), [5, 4, 3]);
        assert_eq!(level(&links, 63), [129, 128]);
        // 0 climbs one level and swaps with 3, the oldest there.
        queue.requeue(&mut links, BlockId(0), 1);
        assert_eq!((level(&links, 0), level(&links, 1)), (vec![3, 2, 1], vec![0, 5, 4]));
        assert_eq!(queue.audit(&links), Ok(()));
    }
}
