//! The heads of the index's chains, and marks that say which addresses are in none of them.
//!
//! For: the table of linear hashing. Must never know: ids' addresses. A bucket has eight marks, of
//! which each of its ids has set one (a Bloom filter of one hash). So about five of six look-ups of
//! an address without id end here, in memory that is a fifteenth of the index's, and not at the end
//! of a chain. Unit: buckets; 5 bytes each.

use super::END;
use cachewright_memory::{advise, lengthen, prefetch, reserve_exact};

/// The fewest buckets.
pub(super) const MIN_BUCKETS: usize = 8;

/// Buckets for so many ids.
pub(super) fn buckets(ids: usize) -> usize {
    (ids * 3).div_ceil(4).max(MIN_BUCKETS)
}

/// The mark of a hash in its bucket: by bits that do not choose the bucket.
#[inline(always)]
pub(super) fn mark(hash: u64) -> u8 {
    1 << (hash >> 61)
}

/// Buckets of a table that grows and shrinks by one at a time.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    /// The first id of each bucket's chain.
    heads: Vec<u32>,
    /// The marks of the ids in each chain.
    marks: Vec<u8>,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets { heads: vec![END; MIN_BUCKETS], marks: vec![0; MIN_BUCKETS] }
    }
}

impl Buckets {
    /// Buckets.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Reserves memory for so many buckets; in an empty table they are made.
    pub(super) fn reserve(&mut self, buckets: usize, empty: bool) {
        reserve_exact(&mut self.heads, buckets);
        reserve_exact(&mut self.marks, buckets);
        if empty {
            self.heads.truncate(buckets);
            self.marks.truncate(buckets);
            lengthen(&mut self.heads, buckets, END);
            lengthen(&mut self.marks, buckets, 0);
        }
    }

    /// Gives back memory beyond so many buckets.
    pub(super) fn shrink_to(&mut self, buckets: usize) {
        if self.heads.capacity() > buckets {
            self.heads.shrink_to(buckets);
            self.marks.shrink_to(buckets);
            advise(&mut self.heads);
        }
    }

    /// Gives every first id another number.
    pub(super) fn relink(&mut self, link: impl Fn(u32) -> u32) {
        self.heads.iter_mut().for_each(|head| *head = link(*head));
    }

    /// The bucket of a hash: those at and above the split point do not use the last bit yet.
    #[inline(always)]
    pub(super) fn bucket_of(&self, hash: u64) -> usize {
        let mask = usize::MAX >> (self.heads.len() - 1).leading_zeros();
        let bucket = hash as usize & mask;
        if bucket < self.heads.len() { bucket } else { bucket & (mask >> 1) }
    }

    /// The first id of a bucket.
    #[inline(always)]
    pub(super) fn head(&self, bucket: usize) -> u32 {
        self.heads[bucket]
    }

    /// Another first id of a bucket.
    #[inline(always)]
    pub(super) fn set_head(&mut self, bucket: usize, id: u32) {
        self.heads[bucket] = id;
    }

    /// The marks of the ids that are in a bucket.
    #[inline(always)]
    pub(super) fn set_marks(&mut self, bucket: usize, marks: u8) {
        self.marks[bucket] = marks;
    }

    /// The first id of the chain of a hash; nothing where no id of the chain has its mark.
    #[inline(always)]
    pub(super) fn head_for(&self, hash: u64) -> Option<u32> {
        let bucket = self.bucket_of(hash);
        (self.marks[bucket] & mark(hash) != 0).then(|| self.heads[bucket])
    }

    /// Makes an id the first of the chain of its hash; returns the one that was.
    #[inline(always)]
    pub(super) fn put_first(&mut self, hash: u64, id: u32) -> u32 {
        let bucket = self.bucket_of(hash);
        self.marks[bucket] |= mark(hash);
        std::mem::replace(&mut self.heads[bucket], id)
    }

    /// Starts to load the bucket of a hash.
    #[inline(always)]
    pub(super) fn load(&self, hash: u64) {
        let bucket = self.bucket_of(hash);
        prefetch(&self.marks, bucket);
        prefetch(&self.heads, bucket);
    }

    /// Adds a bucket and empties the one that it is split from, whose first id is returned.
    pub(super) fn begin_split(&mut self) -> u32 {
        let new = self.heads.len();
        let old = new & (usize::MAX >> new.leading_zeros() >> 1);
        self.heads.push(END);
        self.marks.push(0);
        self.marks[old] = 0;
        std::mem::replace(&mut self.heads[old], END)
    }

    /// Takes the last bucket away; its ids, the first of which is returned, go to the one from
    /// which it was split.
    pub(super) fn pop(&mut self) -> u32 {
        self.marks.pop();
        self.heads.pop().unwrap_or(END)
    }

    /// Memory that would move if it were not enough; for tests.
    #[cfg(test)]
    pub(super) fn memory(&self) -> (*const u32, *const u8, usize) {
        (self.heads.as_ptr(), self.marks.as_ptr(), self.heads.capacity())
    }
}
