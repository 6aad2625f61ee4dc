//! The cache of meta pages in RAM.
//!
//! For: which flash pages of Shiro's metadata are in memory, so that misses can be counted. Must
//! never know: what the metadata says. Units: meta pages. Source: Shiro, section III-D: least
//! recently used, 1 % of the drive's meta pages. The prototype's red-black tree is a table by
//! number here: the same answers in constant time.

/// No slot.
const NONE: u32 = u32::MAX;

/// Slot of a list from the least to the most recently used.
#[derive(Clone, Copy, Debug)]
struct MetaSlot {
    page: u32,
    older: u32,
    newer: u32,
}

/// Least recently used meta pages leave first.
#[derive(Clone, Debug)]
pub struct MetaCache {
    slots: Vec<MetaSlot>,
    free: Vec<u32>,
    /// Slot per meta page.
    slot_of: Vec<u32>,
    oldest: u32,
    newest: u32,
    /// Look-ups that found their page in RAM.
    pub hits: u64,
    /// Look-ups that read flash.
    pub misses: u64,
}

impl MetaCache {
    /// An empty cache of `capacity` (at least one) out of `pages` meta pages.
    pub fn new(capacity: u32, pages: u32) -> MetaCache {
        let capacity = capacity.clamp(1, NONE - 1);
        MetaCache {
            slots: Vec::new(),
            free: (0..capacity).rev().collect(),
            slot_of: vec![NONE; pages as usize],
            oldest: NONE,
            newest: NONE,
            hits: 0,
            misses: 0,
        }
    }

    /// Looks a meta page up, reading it if needed; whether it was in RAM.
    pub fn look_up(&mut self, page: u32) -> bool {
        let index = page as usize;
        if index >= self.slot_of.len() {
            self.slot_of.resize(index + 1, NONE);
        }
        let slot = self.slot_of[index];
        if slot != NONE {
            self.hits += 1;
            self.unlink(slot);
            self.link_newest(slot);
            return true;
        }
        self.misses += 1;
        if self.free.is_empty() {
            let oldest = self.oldest;
            self.release(oldest);
        }
        if let Some(slot) = self.free.pop() {
            let fresh = MetaSlot { page, older: NONE, newer: NONE };
            match self.slots.get_mut(slot as usize) {
                Some(place) => *place = fresh,
                None => self.slots.push(fresh),
            }
            self.slot_of[index] = slot;
            self.link_newest(slot);
        }
        false
    }

    /// Drops a meta page whose superblock was erased.
    pub fn forget(&mut self, page: u32) {
        let slot = self.slot_of.get(page as usize).copied().unwrap_or(NONE);
        if slot != NONE {
            self.release(slot);
        }
    }

    fn release(&mut self, slot: u32) {
        self.unlink(slot);
        self.slot_of[self.slots[slot as usize].page as usize] = NONE;
        self.free.push(slot);
    }

    fn link_newest(&mut self, slot: u32) {
        self.slots[slot as usize].older = self.newest;
        self.slots[slot as usize].newer = NONE;
        match self.slots.get_mut(self.newest as usize) {
            Some(last) => last.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let MetaSlot { older, newer, .. } = self.slots[slot as usize];
        match self.slots.get_mut(older as usize) {
            Some(neighbour) => neighbour.newer = newer,
            None => self.oldest = newer,
        }
        match self.slots.get_mut(newer as usize) {
            Some(neighbour) => neighbour.older = older,
            None => self.newest = older,
        }
    }

    /// Checks that list, table and free slots agree.
    pub fn audit(&self) -> Result<(), String> {
        let (mut slot, mut count) = (self.oldest, 0);
        while slot != NONE && count <= self.slots.len() {
            let page = self.slots[slot as usize].page;
            if self.slot_of[page as usize] != slot {
                return Err(format!("meta page {page} is listed in slot {slot}, not in the table"));
            }
            (slot, count) = (self.slots[slot as usize].newer, count + 1);
        }
        let known = self.slot_of.iter().filter(|slot| **slot != NONE).count();
        if known == count { Ok(()) } else { Err(format!("{known} meta pages, {count} listed")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_page_leaves() {
        let mut cache = MetaCache::new(2, 4);
        assert_eq!(
            [0, 1, 0, 2, 0, 1].map(|page| cache.look_up(page)),
            [false, false, true, false, true, false]
        );
        assert_eq!((cache.hits, cache.misses), (2, 4));
        cache.forget(0);
        cache.forget(3);
        assert!(!cache.look_up(0), "it was erased");
        assert!(cache.look_up(1));
        assert!(!cache.look_up(9), "the drive may grow");
        assert_eq!(cache.audit(), Ok(()));
    }

    #[test]
    fn it_agrees_with_a_plain_list() {
        let (mut cache, mut plain) = (MetaCache::new(7, 40), Vec::new());
        let mut rng = cachewright_types::Seed(4).rng();
        for _ in 0..5000 {
            let page = rng.below(40).min(rng.below(40)) as u32;
            if rng.below(20) == 0 {
                cache.forget(page);
                plain.retain(|known| *known != page);
                continue;
            }
            let found = plain.contains(&page);
            plain.retain(|known| *known != page);
            plain.push(page);
            if plain.len() > 7 {
                plain.remove(0);
            }
            assert_eq!(cache.look_up(page), found);
        }
        assert_eq!(cache.audit(), Ok(()));
    }
}
