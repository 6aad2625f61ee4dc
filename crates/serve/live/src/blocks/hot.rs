//! Content of hot blocks in memory: a hit on one reads no device.
//!
//! What a request has read from the log is kept in a ring. A hand goes round it and evicts the
//! first block that no request has read since it last came by (CLOCK; Corbató, "A paging
//! experiment with the Multics system", 1969), so that a long read of cold blocks evicts those that
//! came with it. What a write changes is changed here, too. Decisions of the cache do not depend
//! on any of this. Units: blocks, bytes.

use super::copies::CopyId;
use crate::log::format::Version;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The content of a copy.
struct HotBlock {
    /// Nothing where the place is free.
    copy: CopyId,
    /// Other content of the copy is not this one.
    version: Version,
    /// A request has read it since the hand came by.
    was_read: bool,
    data: Box<[u8]>,
}

/// Content in memory of as many copies as it may take.
#[derive(Default)]
pub struct HotBlocks {
    ring: Vec<HotBlock>,
    places: HashMap<CopyId, u32, FixedState>,
    free: Vec<u32>,
    hand: usize,
    limit: usize,
    reads: u64,
}

impl HotBlocks {
    /// Keeps at most so many blocks from now on.
    pub fn set_limit(&mut self, blocks: usize) {
        self.limit = blocks.min(u32::MAX as usize);
        for gone in self.ring.drain(self.limit.min(self.ring.len())..) {
            self.places.remove(&gone.copy);
        }
        self.free.retain(|place| (*place as usize) < self.limit);
        self.ring.shrink_to_fit();
    }

    /// Blocks that requests have read here.
    pub fn reads(&self) -> u64 {
        self.reads
    }

    /// The content of a copy, if it is here in this version.
    #[inline]
    pub fn content(&self, copy: CopyId, version: Version) -> Option<&[u8]> {
        let block = &self.ring[*self.places.get(&copy)? as usize];
        (block.version == version).then_some(&*block.data)
    }

    /// A request reads the content of a copy, here if it is here.
    #[inline]
    pub fn note_read(&mut self, copy: CopyId) {
        if let Some(place) = self.places.get(&copy) {
            self.ring[*place as usize].was_read = true;
            self.reads += 1;
        }
    }

    /// Keeps the content of a copy, in the place of another one if all are taken.
    pub fn keep(&mut self, copy: CopyId, version: Version, data: &[u8]) {
        if self.limit == 0 || self.overwrite(copy, version, data) {
            return;
        }
        let place = match self.free.pop() {
            Some(place) => place as usize,
            None if self.ring.len() < self.limit => {
                let (copy, data) = (CopyId::NONE, Box::from(data));
                self.ring.push(HotBlock { copy, version, was_read: false, data });
                self.ring.len() - 1
            }
            None => self.evict(),
        };
        let block = &mut self.ring[place];
        (block.copy, block.version, block.was_read) = (copy, version, false);
        block.data.copy_from_slice(data);
        self.places.insert(copy, place as u32);
    }

    /// A copy has newer content: it is here afterwards if the older one was. Returns whether it is.
    pub fn overwrite(&mut self, copy: CopyId, version: Version, data: &[u8]) -> bool {
        let Some(place) = self.places.get(&copy) else { return false };
        let block = &mut self.ring[*place as usize];
        block.version = version;
        block.data.copy_from_slice(data);
        true
    }

    /// The content of a copy is no longer its own.
    pub fn forget(&mut self, copy: CopyId) {
        if let Some(place) = self.places.remove(&copy) {
            self.ring[place as usize].copy = CopyId::NONE;
            self.free.push(place);
        }
    }

    /// Evicts a block of a ring that is full; returns its place.
    fn evict(&mut self) -> usize {
        loop {
            let place = self.hand % self.ring.len();
            self.hand = place + 1;
            let block = &mut self.ring[place];
            if !std::mem::take(&mut block.was_read) {
                self.places.remove(&block.copy);
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::HashMap as Naive;

    fn version(number: u64) -> Version {
        Version::written(number)
    }

    fn ring(hot: &HotBlocks) -> Vec<u32> {
        hot.ring.iter().map(|block| block.copy.0).collect()
    }

    /// Three places. 1, 2 and 3 come; 1 is read. 4: the hand passes 1, which was read, and evicts
    /// 2. 5 evicts 3, and 6 evicts 1, which was not read again.
    #[test]
    fn the_hand_evicts_what_was_not_read_since_it_came_by() {
        let mut hot = HotBlocks::default();
        hot.set_limit(3);
        for copy in 1..=3 {
            hot.keep(CopyId(copy), version(1), &[copy as u8; 8]);
        }
        hot.note_read(CopyId(1));
        hot.note_read(CopyId(9));
        assert_eq!(hot.content(CopyId(1), version(1)), Some(&[1; 8][..]));
        hot.keep(CopyId(4), version(1), &[4; 8]);
        assert_eq!(ring(&hot), [1, 4, 3]);
        hot.keep(CopyId(5), version(1), &[5; 8]);
        hot.keep(CopyId(6), version(1), &[6; 8]);
        assert_eq!((ring(&hot), hot.reads()), (vec![6, 4, 5], 1));
    }

    #[test]
    fn without_memory_nothing_is_kept() {
        let mut hot = HotBlocks::default();
        hot.keep(CopyId(1), version(1), &[1; 8]);
        assert!(hot.content(CopyId(1), version(1)).is_none() && hot.ring.is_empty());
    }

    #[test]
    fn what_is_read_is_what_was_kept_or_written_last() {
        for seed in 0..50 {
            let mut rng = Seed(seed).derive("hot").rng();
            let (mut hot, mut naive) = (HotBlocks::default(), Naive::new());
            let mut limit = 0;
            for step in 0..2000 {
                let copy = CopyId(rng.below(12) as u32);
                let data = [step as u8; 8];
                match rng.below(40) {
                    0 => {
                        limit = rng.below(7) as usize;
                        hot.set_limit(limit);
                    }
                    1..10 => {
                        hot.keep(copy, version(step), &data);
                        naive.insert(copy, (version(step), data));
                    }
                    10..16 => {
                        let was_here = hot.places.contains_key(&copy);
                        assert_eq!(hot.overwrite(copy, version(step), &data), was_here);
                        naive.insert(copy, (version(step), data));
                    }
                    16..20 => {
                        hot.forget(copy);
                        assert!(!hot.places.contains_key(&copy));
                    }
                    _ => {
                        let Some((newest, data)) = naive.get(&copy) else { continue };
                        let older = Version::filled(newest.decision());
                        assert_eq!(hot.content(copy, older), None);
                        hot.note_read(copy);
                        let found = hot.content(copy, *newest);
                        assert!(found.is_none_or(|found| found == data), "seed {seed}");
                    }
                }
                assert!(hot.ring.len() <= limit && hot.places.len() + hot.free.len() <= limit);
            }
        }
    }
}
