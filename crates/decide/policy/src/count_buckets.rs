//! Resident blocks in buckets of equal count, lowest count first; in a bucket, the block that has
//! been there longest first.
//!
//! For: LFU, with and without ageing. Source: Shah, Mitra, Matani, 2010 (buckets in a list make
//! every change O(1)). Unit: accesses. With ageing the sum of all counts is kept, and all counts
//! can be halved: every count C becomes ceil(C/2), and blocks whose counts become equal keep their
//! order.

use crate::renumber::Renumbering;
use crate::stored::BlockStore;
use cachewright_memory::{lengthen, prefetch};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// The link of nothing.
const NONE: u32 = u32::MAX;

/// A resident block, or one with `bucket` [`NONE`].
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct BucketedBlock {
    newer: u32,
    older: u32,
    bucket: u32,
}

/// All blocks of one count, or an unused entry, linked by `higher`. With ageing, buckets whose
/// counts become equal are joined: one of them then only says which, for the blocks that still
/// name it.
#[derive(Clone, Copy, Debug, SnapshotValue)]
struct Bucket {
    count: u32,
    newest: u32,
    oldest: u32,
    higher: u32,
    lower: u32,
    /// The bucket that its blocks have joined, or [`NONE`].
    joined: u32,
    /// Blocks in it, and blocks and buckets that name it.
    blocks: u32,
    names: u32,
}

/// The buckets; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct CountBuckets<const AGING: bool> {
    nodes: Vec<BucketedBlock>,
    buckets: Vec<Bucket>,
    /// The bucket of the lowest count, and the first unused entry.
    lowest: u32,
    unused: u32,
    len: u32,
    /// Sum of all counts; kept with ageing only.
    counts: u64,
}

impl<const AGING: bool> Default for CountBuckets<AGING> {
    fn default() -> Self {
        let (nodes, buckets) = (Vec::new(), Vec::new());
        CountBuckets { nodes, buckets, lowest: NONE, unused: NONE, len: 0, counts: 0 }
    }
}

impl<const AGING: bool> CountBuckets<AGING> {
    /// The sum of all counts, with ageing.
    #[inline(always)]
    pub fn counts(&self) -> u64 {
        self.counts
    }

    /// A bucket for `count`, linked between two neighbours (or [`NONE`]).
    #[inline(always)]
    fn open_bucket(&mut self, count: u32, lower: u32, higher: u32) -> u32 {
        let (newest, oldest, joined) = (NONE, NONE, NONE);
        let bucket = Bucket { count, newest, oldest, higher, lower, joined, blocks: 0, names: 0 };
        let index = if self.unused == NONE {
            self.buckets.push(bucket);
            self.buckets.len() as u32 - 1
        } else {
            let index = self.unused;
            self.unused = self.buckets[index as usize].higher;
            self.buckets[index as usize] = bucket;
            index
        };
        match lower {
            NONE => self.lowest = index,
            _ => self.buckets[lower as usize].higher = index,
        }
        if higher != NONE {
            self.buckets[higher as usize].lower = index;
        }
        index
    }

    #[inline(always)]
    fn close_bucket(&mut self, index: u32) {
        self.cut_out(index);
        self.set_unused(index);
    }

    #[inline(always)]
    fn set_unused(&mut self, index: u32) {
        self.buckets[index as usize].higher = self.unused;
        self.unused = index;
    }

    /// Takes a bucket out of the order of counts.
    #[inline(always)]
    fn cut_out(&mut self, index: u32) {
        let Bucket { lower, higher, .. } = self.buckets[index as usize];
        match lower {
            NONE => self.lowest = higher,
            _ => self.buckets[lower as usize].higher = higher,
        }
        if higher != NONE {
            self.buckets[higher as usize].lower = lower;
        }
    }

    /// The bucket that a block is in.
    #[inline(always)]
    fn bucket_of(&self, block: u32) -> u32 {
        let mut bucket = self.nodes[block as usize].bucket;
        while AGING && self.buckets[bucket as usize].joined != NONE {
            bucket = self.buckets[bucket as usize].joined;
        }
        bucket
    }

    /// A block or a bucket names a bucket no more; one that was joined and has no name left goes.
    fn unname(&mut self, mut index: u32) {
        loop {
            let bucket = &mut self.buckets[index as usize];
            bucket.names -= 1;
            if bucket.names > 0 || bucket.joined == NONE {
                return;
            }
            let joined = bucket.joined;
            self.set_unused(index);
            index = joined;
        }
    }

    /// Joins a bucket and the next higher one, whose blocks become the newer ones; returns the
    /// bucket that both now are.
    fn join(&mut self, lower: u32, higher: u32) -> u32 {
        let [below, above] = [lower, higher].map(|index| self.buckets[index as usize]);
        self.nodes[below.newest as usize].newer = above.oldest;
        self.nodes[above.oldest as usize].older = below.newest;
        // The one with more names stays, so that the way to it stays short.
        let (stays, goes) =
            if below.names < above.names { (higher, lower) } else { (lower, higher) };
        self.cut_out(goes);
        self.buckets[goes as usize].joined = stays;
        let bucket = &mut self.buckets[stays as usize];
        (bucket.oldest, bucket.newest) = (below.oldest, above.newest);
        bucket.blocks = below.blocks + above.blocks;
        bucket.names += 1;
        stays
    }

    #[inline(always)]
    fn push_newest(&mut self, bucket: u32, block: u32) {
        let entry = &mut self.buckets[bucket as usize];
        if AGING {
            entry.blocks += 1;
            entry.names += 1;
        }
        let older = std::mem::replace(&mut entry.newest, block);
        match older {
            NONE => entry.oldest = block,
            _ => self.nodes[older as usize].newer = block,
        }
        self.nodes[block as usize] = BucketedBlock { newer: NONE, older, bucket };
    }

    /// Takes a block out of its bucket, which may become empty.
    #[inline(always)]
    fn unlink(&mut self, block: u32) -> u32 {
        let BucketedBlock { newer, older, bucket: named } = self.nodes[block as usize];
        let bucket = self.bucket_of(block);
        if AGING {
            self.buckets[bucket as usize].blocks -= 1;
            self.unname(named);
        }
        let entry = &mut self.buckets[bucket as usize];
        match newer {
            NONE => entry.newest = older,
            _ => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => entry.oldest = newer,
            _ => self.nodes[older as usize].newer = newer,
        }
        bucket
    }

    /// Raises the count of a resident block by one.
    #[inline(always)]
    pub fn raise(&mut self, block: BlockId) {
        let block = block.0;
        if AGING {
            self.counts += 1;
        }
        let bucket = self.bucket_of(block);
        let Bucket { count, higher, newest, oldest, .. } = self.buckets[bucket as usize];
        let raised = count.saturating_add(1);
        let next = match higher {
            NONE => None,
            _ if self.buckets[higher as usize].count == raised => Some(higher),
            _ => None,
        };
        let alone = newest == oldest;
        if alone && next.is_none() {
            self.buckets[bucket as usize].count = raised;
            return;
        }
        self.unlink(block);
        let next = next.unwrap_or_else(|| self.open_bucket(raised, bucket, higher));
        self.push_newest(next, block);
        if alone {
            self.close_bucket(bucket);
        }
    }

    /// Adds a block with the count of its first access.
    #[inline(always)]
    pub fn insert(&mut self, block: BlockId) {
        let lowest = self.lowest;
        let first = match lowest {
            NONE => self.open_bucket(1, NONE, NONE),
            _ if self.buckets[lowest as usize].count == 1 => lowest,
            _ => self.open_bucket(1, NONE, lowest),
        };
        self.push_newest(first, block.0);
        self.len += 1;
        if AGING {
            self.counts += 1;
        }
    }

    /// Takes a resident block out of everything.
    #[inline(always)]
    fn forget(&mut self, block: u32) {
        let bucket = self.unlink(block);
        self.nodes[block as usize].bucket = NONE;
        let Bucket { count, newest, .. } = self.buckets[bucket as usize];
        if newest == NONE {
            self.close_bucket(bucket);
        }
        if AGING {
            self.counts -= u64::from(count);
        }
        self.len -= 1;
    }

    /// Takes out the block of the lowest count that has been at it longest.
    #[inline(always)]
    pub fn pop_lowest(&mut self) -> Option<BlockId> {
        let victim = self.buckets.get(self.lowest as usize)?.oldest;
        self.forget(victim);
        Some(BlockId(victim))
    }

    /// Halves all counts, rounding up.
    #[cold]
    pub fn halve(&mut self) {
        self.counts = 0;
        let mut index = self.lowest;
        while index != NONE {
            let bucket = &mut self.buckets[index as usize];
            let count = bucket.count.div_ceil(2);
            (bucket.count, index) = (count, bucket.higher);
            self.counts += u64::from(count) * u64::from(bucket.blocks);
        }
        let mut index = self.lowest;
        while index != NONE {
            let Bucket { count, higher, .. } = self.buckets[index as usize];
            index = match self.buckets.get(higher as usize) {
                Some(next) if next.count == count => self.join(index, higher),
                _ => higher,
            };
        }
    }

    /// Every resident block with its count, in the order in which they would leave.
    pub fn each(&self, mut visit: impl FnMut(u32, u32)) {
        let mut index = self.lowest;
        while let Some(bucket) = self.buckets.get(index as usize) {
            let mut block = bucket.oldest;
            while let Some(node) = self.nodes.get(block as usize) {
                visit(block, bucket.count);
                block = node.newer;
            }
            index = bucket.higher;
        }
    }
}

impl<const AGING: bool> BlockStore for CountBuckets<AGING> {
    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.nodes[block.index()].bucket != NONE
    }

    #[inline(always)]
    fn resident(&self) -> u32 {
        self.len
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        if resident {
            self.forget(block.0);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize, _: u32, _: u32) {
        let absent = BucketedBlock { newer: NONE, older: NONE, bucket: NONE };
        lengthen(&mut self.nodes, count, absent);
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        let link = |block: u32| ids.get(BlockId(block)).map_or(NONE, |id| id.0);
        for node in &mut self.nodes {
            (node.newer, node.older) = (link(node.newer), link(node.older));
        }
        for bucket in &mut self.buckets {
            (bucket.newest, bucket.oldest) = (link(bucket.newest), link(bucket.oldest));
        }
        ids.close_up(&mut self.nodes, 0);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        prefetch(&self.nodes, block.index());
    }

    fn audit(&self, capacity: u32) -> Result<(), String> {
        if self.len > capacity {
            return Err(format!("{} blocks in a cache of {}", self.len, capacity));
        }
        let (mut len, mut counts, mut last, mut wrong) = (0, 0, 0, None);
        self.each(|block, count| {
            let node = self.nodes[block as usize];
            let named = self.buckets.get(node.bucket as usize);
            let linked = named.map(|_| self.buckets[self.bucket_of(block) as usize]);
            if count < last || linked.is_none_or(|bucket| bucket.count != count) {
                wrong = Some(block);
            }
            (len, counts, last) = (len + 1, counts + u64::from(count), count);
        });
        let mut index = self.lowest;
        while let Some(bucket) = self.buckets.get(index as usize) {
            let here = |node: &u32| self.nodes.get(*node as usize).map(|node| node.newer);
            let linked = std::iter::successors(Some(bucket.oldest), here);
            let blocks = linked.take_while(|block| *block != NONE).count() as u32;
            if AGING && (bucket.blocks != blocks || bucket.names == 0) {
                return Err(format!("{blocks} blocks of {} counted", bucket.blocks));
            }
            index = bucket.higher;
        }
        if let Some(block) = wrong {
            return Err(format!("block {block} is not in the bucket of its count"));
        }
        let resident = self.nodes.iter().filter(|node| node.bucket != NONE).count() as u32;
        if len != self.len || resident != self.len || (AGING && counts != self.counts) {
            return Err(format!("{len} blocks linked, {resident} resident, {} counted", self.len));
        }
        Ok(())
    }
}
