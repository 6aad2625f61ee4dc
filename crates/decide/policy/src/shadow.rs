//! Two shadow partitions of one policy, which share the blocks by a hash.
//!
//! For: Talus (Beckmann and Sanchez, HPCA 2015), section 4: of a policy with a cliff in its curve,
//! two parts of other sizes behave as a cache on the chord over the cliff. Units: blocks.
//!
//! A block belongs to the first partition if the hash of its id is below a threshold; so ids must
//! stay those of their blocks. After a change of the split, a block that lies in the other
//! partition hits there, and is no copy: it moves when it comes back after it has left.

use crate::{Access, BackgroundOp, Policy, PolicyHooks, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::BlockId;

/// How a policy of two shadow partitions is split.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShadowSplit {
    /// Share of the blocks that belong to the first partition, 0 to 1.
    pub share: f64,
    /// Blocks of the first partition; the second has the others.
    pub blocks: u32,
}

/// Two partitions under the same policy; at first the second has all blocks.
#[derive(Clone, Debug, Snapshot)]
pub struct Shadowed<P> {
    parts: [P; 2],
    /// Hashes below it belong to the first partition.
    threshold: u64,
    ids: usize,
}

/// Hashes are below this.
const HASHES: f64 = (1_u64 << 32) as f64;

/// A hash of an id (the finalizer of MurmurHash3), below 2^32.
fn hash(block: BlockId) -> u64 {
    let mut hash = block.0;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    u64::from(hash ^ (hash >> 16))
}

impl<P: Policy> Shadowed<P> {
    /// A cache of the blocks of `second`; `first` is a policy of no blocks.
    pub fn new(first: P, second: P) -> Shadowed<P> {
        debug_assert_eq!(first.capacity(), 0, "the first partition has no blocks at first");
        Shadowed { parts: [first, second], threshold: 0, ids: 0 }
    }

    /// The partition that a block belongs to.
    fn home(&self, block: BlockId) -> usize {
        usize::from(hash(block) >= self.threshold)
    }

    /// The partition that decides about a block: the one that holds it, otherwise its own.
    fn place(&self, block: BlockId) -> usize {
        let home = self.home(block);
        if self.parts[1 - home].contains(block) { 1 - home } else { home }
    }

    fn resize_parts(&mut self, sizes: [u32; 2], evicted: &mut Vec<BlockId>) {
        for (part, size) in self.parts.iter_mut().zip(sizes) {
            if part.capacity() != size {
                part.resize(size, evicted);
            }
        }
    }
}

impl<P: Policy> PolicyHooks for Shadowed<P> {
    fn split(&mut self, split: ShadowSplit, evicted: &mut Vec<BlockId>) {
        self.threshold = (split.share.clamp(0.0, 1.0) * HASHES) as u64;
        let capacity = self.capacity();
        let first = split.blocks.min(capacity);
        self.resize_parts([first, capacity - first], evicted);
    }

    fn clock(&mut self, now_ns: u64) {
        self.parts.iter_mut().for_each(|part| part.clock(now_ns));
    }

    fn background_op(&mut self) -> Option<BackgroundOp> {
        let [first, second] = &mut self.parts;
        first.background_op().or_else(|| second.background_op())
    }
}

impl<P: Policy> Policy for Shadowed<P> {
    fn access(&mut self, access: Access) -> Verdict {
        let place = self.place(access.block);
        self.parts[place].access(access)
    }

    fn contains(&self, block: BlockId) -> bool {
        self.parts.iter().any(|part| part.contains(block))
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.parts.iter().any(|part| part.tracks(block))
    }

    fn max_tracked(&self) -> u64 {
        self.parts.iter().map(Policy::max_tracked).sum()
    }

    fn adopt(&mut self, block: BlockId, dirty: bool) -> Verdict {
        let home = self.home(block);
        self.parts[home].adopt(block, dirty)
    }

    fn len(&self) -> u32 {
        self.parts.iter().map(Policy::len).sum()
    }

    fn capacity(&self) -> u32 {
        self.parts.iter().map(Policy::capacity).sum()
    }

    /// Both partitions keep their part of the capacity.
    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        let [first, all] = [self.parts[0].capacity(), self.capacity()].map(u64::from);
        let scaled = (first * u64::from(capacity_blocks)).checked_div(all).unwrap_or(0) as u32;
        self.resize_parts([scaled, capacity_blocks - scaled], evicted);
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let [first, second] = &mut self.parts;
        // Both: a ghost may be remembered by the one that does not hold the block.
        first.remove(block) | second.remove(block)
    }

    fn reserve_ids(&mut self, count: usize) {
        self.ids = self.ids.max(count);
        self.parts.iter_mut().for_each(|part| part.reserve_ids(count));
    }

    fn touch(&self, block: BlockId) {
        self.parts[self.home(block)].touch(block);
    }

    fn audit(&self) -> Result<(), String> {
        for (index, part) in self.parts.iter().enumerate() {
            part.audit().map_err(|error| format!("shadow partition {index}: {error}"))?;
        }
        let both = |id: &u32| self.parts.iter().all(|part| part.contains(BlockId(*id)));
        match (0..self.ids as u32).find(both) {
            Some(id) => Err(format!("block {id} is in both shadow partitions")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lru::Lru;
    use crate::{Future, Registered};
    use cachewright_types::Seed;
    use cachewright_types::declare::NoSettings;
    use proptest::prelude::*;

    const IDS: u32 = 64;

    fn lru(capacity: u32) -> Lru {
        Lru::new(capacity, &NoSettings::default(), Seed(1))
    }

    fn shadowed(capacity: u32) -> Shadowed<Lru> {
        let mut policy = Shadowed::new(lru(0), lru(capacity));
        policy.reserve_ids(IDS as usize);
        policy
    }

    fn access(policy: &mut Shadowed<Lru>, block: u32) -> Verdict {
        let future = Future::None;
        policy.access(Access { block: BlockId(block), write: false, future })
    }

    #[test]
    fn blocks_keep_to_their_partition_and_hit_where_they_lie() {
        let mut policy = shadowed(4);
        assert_eq!((policy.home(BlockId(3)), policy.home(BlockId(5))), (1, 1));
        (0..4).for_each(|block| {
            access(&mut policy, block);
        });
        let mut evicted = Vec::new();
        policy.split(ShadowSplit { share: 1.0, blocks: 2 }, &mut evicted);
        assert_eq!(evicted, [BlockId(0), BlockId(1)], "the second partition shrinks to 2");
        assert_eq!(access(&mut policy, 2), Verdict::Hit, "in the partition that was its own");
        assert_eq!(access(&mut policy, 0), Verdict::Admit { evicted: None });
        assert_eq!(access(&mut policy, 1), Verdict::Admit { evicted: None });
        let full = Verdict::Admit { evicted: Some(BlockId(0)) };
        assert_eq!(access(&mut policy, 5), full, "the first partition is full");
        assert_eq!((policy.len(), policy.audit()), (4, Ok(())));
        assert!(policy.remove(BlockId(2)) && !policy.contains(BlockId(2)));
    }

    #[test]
    fn hashes_divide_ids_by_the_share() {
        let mut policy = Shadowed::new(lru(0), lru(8));
        policy.split(ShadowSplit { share: 0.3, blocks: 0 }, &mut Vec::new());
        let first = (0..100_000).filter(|id| policy.home(BlockId(*id)) == 0).count();
        assert!((29_500..30_500).contains(&first), "{first} of 100,000");
    }

    /// Two lists, the least recent block first.
    #[derive(Default)]
    struct Slow {
        lists: [Vec<u32>; 2],
        sizes: [usize; 2],
    }

    impl Slow {
        fn cut(&mut self) {
            for (list, size) in self.lists.iter_mut().zip(self.sizes) {
                list.drain(..list.len().saturating_sub(size));
            }
        }

        fn access(&mut self, block: u32, home: usize) -> bool {
            let held = self.lists.iter().position(|list| list.contains(&block));
            let place = held.unwrap_or(home);
            self.lists[place].retain(|other| *other != block);
            self.lists[place].push(block);
            self.cut();
            held.is_some()
        }
    }

    proptest! {
        #[test]
        fn it_is_two_lists(
            steps in prop::collection::vec((0..IDS, 0..20_u32, 0..12_u32, 0.0..1.0_f64), 1..300),
        ) {
            let mut policy = shadowed(10);
            let mut slow = Slow { sizes: [0, 10], ..Slow::default() };
            for (block, turn, blocks, share) in steps {
                if turn == 0 {
                    let blocks = blocks.min(10);
                    policy.split(ShadowSplit { share, blocks }, &mut Vec::new());
                    slow.sizes = [blocks as usize, 10 - blocks as usize];
                    slow.cut();
                }
                let home = policy.home(BlockId(block));
                let hit = access(&mut policy, block) == Verdict::Hit;
                prop_assert_eq!(hit, slow.access(block, home));
                prop_assert_eq!(policy.audit(), Ok(()));
                for id in 0..IDS {
                    let held = slow.lists.iter().any(|list| list.contains(&id));
                    prop_assert_eq!(policy.contains(BlockId(id)), held);
                }
            }
        }
    }
}
