//! LFU: the block hit least often since it came leaves; among equals, the one that has been at
//! that count longest.
//!
//! For: pure frequency, with and without ageing. Must never know: time. Unit: accesses. Counts are
//! forgotten on eviction. Source of `lfu`: textbook; buckets of equal count in a list make it O(1)
//! (Shah, Mitra, Matani, 2010). Source of `lfu-aging`: Robinson and Devarakonda, SIGMETRICS'90,
//! section 3: when the average count exceeds a limit, every count C becomes ceil(C/2). Blocks
//! whose counts become equal keep their order: the lower count leaves first.

use crate::entry::{Entry, Registered};
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_memory::{lengthen, prefetch};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed, declare};

/// The link of nothing.
const NONE: u32 = u32::MAX;

declare! {
    /// When counts are halved.
    pub struct LfuAgingSettings {
        /// average count of the resident blocks above which all counts are halved
        average_limit: u32 = 10, "accesses per block", 2 ..= 1_000_000;
    }
}

/// A resident block, or one with `bucket` [`NONE`].
#[derive(Clone, Copy, Debug)]
struct CountedBlock {
    newer: u32,
    older: u32,
    bucket: u32,
}

/// All blocks of one count, or an unused entry, linked by `higher`. With ageing, buckets whose
/// counts become equal are joined: one of them then only says which, for the blocks that still
/// name it.
#[derive(Clone, Copy, Debug)]
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

/// Least frequently used, with or without ageing.
#[derive(Clone, Debug)]
pub struct Lfu<const AGING: bool> {
    nodes: Vec<CountedBlock>,
    buckets: Vec<Bucket>,
    /// The bucket of the lowest count, and the first unused entry.
    lowest: u32,
    unused: u32,
    len: u32,
    capacity: u32,
    /// Sum of all counts and the average that triggers halving.
    counts: u64,
    average_limit: u32,
}

impl<const AGING: bool> Lfu<AGING> {
    fn empty(capacity: u32, average_limit: u32) -> Self {
        Lfu {
            nodes: Vec::new(),
            buckets: Vec::new(),
            lowest: NONE,
            unused: NONE,
            len: 0,
            capacity,
            counts: 0,
            average_limit,
        }
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
        self.nodes[block as usize] = CountedBlock { newer: NONE, older, bucket };
    }

    /// Takes a block out of its bucket, which may become empty.
    #[inline(always)]
    fn unlink(&mut self, block: u32) -> u32 {
        let CountedBlock { newer, older, bucket: named } = self.nodes[block as usize];
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
    fn raise(&mut self, block: u32) {
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
    fn insert(&mut self, block: u32) {
        let lowest = self.lowest;
        let first = match lowest {
            NONE => self.open_bucket(1, NONE, NONE),
            _ if self.buckets[lowest as usize].count == 1 => lowest,
            _ => self.open_bucket(1, NONE, lowest),
        };
        self.push_newest(first, block);
        self.len += 1;
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

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.buckets.get(self.lowest as usize)?.oldest;
        self.forget(victim);
        Some(BlockId(victim))
    }

    /// Counts one access and halves all counts when the average is beyond the limit. After that
    /// the average is below (limit + 1) / 2, so the next halving is about len * limit / 2 hits off.
    #[inline(always)]
    fn age(&mut self) {
        self.counts += 1;
        if self.counts > u64::from(self.len) * u64::from(self.average_limit) {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
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
    fn each(&self, mut visit: impl FnMut(u32, u32)) {
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

impl Registered for Lfu<false> {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "lfu",
        doc: "the block accessed least often since it came leaves",
        source: "textbook; O(1) form of Shah, Mitra, Matani, 2010",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Self::empty(capacity_blocks, 0)
    }
}

impl Registered for Lfu<true> {
    type Settings = LfuAgingSettings;
    const ENTRY: Entry = Entry {
        name: "lfu-aging",
        doc: "lfu whose counts are halved when their average exceeds a limit",
        source: "Robinson, Devarakonda, SIGMETRICS'90, section 3",
        needs: &[],
    };

    fn new(capacity_blocks: u32, settings: &LfuAgingSettings, _: Seed) -> Self {
        Self::empty(capacity_blocks, settings.average_limit)
    }
}

impl<const AGING: bool> PolicyHooks for Lfu<AGING> {}

impl<const AGING: bool> Policy for Lfu<AGING> {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        let hit = self.contains(access.block);
        let mut evicted = None;
        if hit {
            self.raise(access.block.0);
        } else {
            if self.capacity == 0 {
                return Verdict::Bypass;
            }
            if self.len == self.capacity {
                evicted = self.evict();
            }
            self.insert(access.block.0);
        }
        if AGING {
            self.age();
        }
        if hit { Verdict::Hit } else { Verdict::Admit { evicted } }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.nodes[block.index()].bucket != NONE
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.len > capacity_blocks {
            evicted.extend(self.evict());
        }
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = self.contains(block);
        if resident {
            self.forget(block.0);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        let absent = CountedBlock { newer: NONE, older: NONE, bucket: NONE };
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

    fn audit(&self) -> Result<(), String> {
        if self.len > self.capacity {
            return Err(format!("{} blocks in a cache of {}", self.len, self.capacity));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity 3. After 1 2 3 1 2: counts 1:2, 2:2, 3:1. Block 4 takes 3. Block 5 takes 4. A hit
    /// raises 5 to 2; of 1, 2, 5, all at 2, block 1 has been there longest: 6 takes 1.
    #[test]
    fn ties_go_to_the_block_longest_at_its_count() {
        let mut lfu = Lfu::<false>::new(3, &NoSettings::default(), Seed(0));
        lfu.reserve_ids(7);
        let mut step = |id| lfu.access(Access::read(BlockId(id)));
        for id in [1, 2, 3, 1, 2] {
            step(id);
        }
        assert_eq!(step(4), Verdict::Admit { evicted: Some(BlockId(3)) });
        assert_eq!(step(5), Verdict::Admit { evicted: Some(BlockId(4)) });
        assert_eq!(step(5), Verdict::Hit);
        assert_eq!(step(6), Verdict::Admit { evicted: Some(BlockId(1)) });
    }

    /// Capacity 2, limit 2. 1 is accessed three times: at the third the average 3 exceeds 2 and
    /// the count becomes 2. Block 2 comes in at 1, is hit to 2, and hit to 3: the average 2.5
    /// exceeds 2, so 1 falls to 1 and 2 to 2. Block 3 takes 1.
    #[test]
    fn halving_lets_old_fame_fade() {
        let settings = LfuAgingSettings { average_limit: 2 };
        let mut lfu = Lfu::<true>::new(2, &settings, Seed(0));
        lfu.reserve_ids(4);
        for id in [1, 1, 1, 2, 2, 2] {
            lfu.access(Access::read(BlockId(id)));
        }
        let mut counts = Vec::new();
        lfu.each(|block, count| counts.push((block, count)));
        assert_eq!(counts, [(1, 1), (2, 2)]);
        let verdict = lfu.access(Access::read(BlockId(3)));
        assert_eq!(verdict, Verdict::Admit { evicted: Some(BlockId(1)) });
    }
}
