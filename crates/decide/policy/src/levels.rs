//! A queue of 64 levels: what is used climbs, and the levels are evened out at times.
//!
//! For: the three queues of `smq`. Must never know: caches, regions, periods. Source: struct queue
//! of Linux `drivers/md/dm-cache-policy-smq.c`. Each level is a list in order of use; climbing
//! swaps places with the oldest entry of the level reached, so that levels keep their lengths. The
//! lists are 64 neighbours of a [`Links`] that several queues may share.

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

/// One queue over lists `first..first + LEVELS` of a [`Links`].
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
    pub fn push<T: Levelled, const L: usize>(
        &mut self,
        links: &mut Links<T, L>,
        level: u8,
        entry: BlockId,
    ) {
        links.push_head(self.first + usize::from(level), entry);
        self.note(links, level, entry);
    }

    fn push_oldest<T: Levelled, const L: usize>(
        &mut self,
        links: &mut Links<T, L>,
        level: u8,
        entry: BlockId,
    ) {
        links.push_tail(self.first + usize::from(level), entry);
        self.note(links, level, entry);
    }

    fn note<T: Levelled, const L: usize>(
        &mut self,
        links: &mut Links<T, L>,
        level: u8,
        entry: BlockId,
    ) {
        links.tag_mut(entry).set_level(level);
        self.occupied |= 1 << level;
        self.len += 1;
    }

    /// Takes an entry out.
    pub fn unlink<T: Levelled, const L: usize>(&mut self, links: &mut Links<T, L>, entry: BlockId) {
        let level = links.tag(entry).level();
        let list = self.first + usize::from(level);
        links.unlink(list, entry);
        if links.len(list) == 0 {
            self.occupied &= !(1 << level);
        }
        self.len -= 1;
    }

    /// The oldest entry of the lowest level that has one, looking only at levels `from..below`.
    pub fn oldest<T: Levelled, const L: usize>(
        &self,
        links: &Links<T, L>,
        from: usize,
        below: usize,
    ) -> Option<BlockId> {
        let above = self.occupied.checked_shr(from as u32)?;
        let level = from + above.trailing_zeros() as usize;
        if above == 0 || level >= below { None } else { links.tail(self.first + level) }
    }

    /// An entry was used: it climbs `jump` levels (at most to the top) and becomes the newest
    /// there; the oldest entry of that level takes its place.
    pub fn requeue<T: Levelled, const L: usize>(
        &mut self,
        links: &mut Links<T, L>,
        entry: BlockId,
        jump: u8,
    ) {
        let level = links.tag(entry).level();
        let reached = (level + jump).min(LEVELS as u8 - 1);
        self.unlink(links, entry);
        if reached > level {
            let other = self.oldest(links, reached.into(), usize::from(reached) + 1);
            if let Some(other) = other {
                self.unlink(links, other);
                self.push(links, level, other);
            }
        }
        self.push(links, reached, entry);
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
    pub fn redistribute<T: Levelled, const L: usize>(&mut self, links: &mut Links<T, L>) {
        let targets: [u32; LEVELS] = std::array::from_fn(|level| self.target(level));
        for (level, &target) in targets.iter().enumerate().take(LEVELS - 1) {
            let list = self.first + level;
            while links.len(list) < target {
                let Some(entry) = self.oldest(links, level + 1, LEVELS) else { break };
                self.unlink(links, entry);
                self.push(links, level as u8, entry);
            }
            while links.len(list) > target {
                let Some(entry) = links.head(list) else { break };
                self.unlink(links, entry);
                self.push_oldest(links, level as u8 + 1, entry);
            }
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

    impl Levelled for u8 {
        fn level(&self) -> u8 {
            *self
        }
        fn set_level(&mut self, level: u8) {
            *self = level;
        }
    }

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
