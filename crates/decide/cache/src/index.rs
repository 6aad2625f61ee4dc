//! Addresses to dense ids for a cache that lives: ids are given out again when the policy has
//! forgotten their block, so memory follows the cache's size and not the volume's.
//!
//! A hash table of chains that grows by linear hashing (Litwin, VLDB'80): one bucket is split or
//! merged at a time, so that no call rehashes the table. Cost: O(1) expected per look-up and per
//! new id; 14.75 bytes per id, 16.75 in a pool of several tenants. Bound: ids stay below 16/15 of
//! the most that the policy tracked at one time, plus one.

use cachewright_memory::{advise, lengthen, prefetch, reserve_exact};
use cachewright_policy::renumber::Renumbering;
use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter,
};
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, TenantId};

/// Ids looked at, clockwise, before one is given out: what is forgotten is found within a turn.
const SWEEP: usize = 16;
/// Pools of fewer ids lie in the processor's caches: loading what leaves ahead would cost more than
/// it gains.
pub const MIN_LOADED_IDS: usize = 1 << 15;
/// The end of a chain.
const END: u32 = u32::MAX;
/// The number of an id that is free.
const FREE: u64 = MAX_NUMBER;
/// Numbers of blocks are below this: 56 bits, so that a volume of blocks of 512 bytes may have
/// every byte that an offset can name.
pub const MAX_NUMBER: u64 = (1 << 56) - 1;

/// A block's address: whose volume and which block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, SnapshotValue)]
pub struct BlockAddress {
    /// The tenant.
    pub tenant: TenantId,
    /// Number of the block on the tenant's volume; below [`MAX_NUMBER`].
    pub number: u64,
}

impl BlockAddress {
    #[inline(always)]
    fn hash(self) -> u64 {
        mix(self.number ^ (u64::from(self.tenant.0) << 48))
    }

    /// Whether a sample of one address of `1 << sample_bits` has it: a smaller sample is a part of
    /// a larger one.
    #[inline(always)]
    pub fn is_sampled(self, sample_bits: u32) -> bool {
        self.hash().checked_shr(u64::BITS - sample_bits).unwrap_or(0) == 0
    }
}

/// The index of one pool.
#[derive(Clone, Debug, SnapshotValue)]
pub struct SparseIndex {
    buckets: Buckets,
    nodes: Vec<IdNode>,
    /// The tenant of each id; empty until a second tenant has a block.
    tenants: Vec<u16>,
    /// The tenant of every id while there is only one.
    tenant: TenantId,
    /// Ids that have an address.
    named: usize,
    /// Buckets are never fewer.
    min_buckets: usize,
    /// The first free id; free ids are a chain.
    first_free: u32,
    hand: usize,
    /// Addresses of ids that the next sweep will free.
    next_free: NextFree,
    /// An id was released since the last one was given out.
    released: bool,
}

impl Default for SparseIndex {
    fn default() -> Self {
        SparseIndex {
            buckets: Buckets::default(),
            nodes: Vec::new(),
            tenants: Vec::new(),
            tenant: TenantId(0),
            named: 0,
            min_buckets: MIN_BUCKETS,
            first_free: END,
            hand: 0,
            next_free: NextFree::default(),
            released: false,
        }
    }
}

impl SparseIndex {
    /// The most ids of a pool whose policy remembers at most so many blocks at one time.
    pub fn max_ids(tracked: u64) -> usize {
        let ids = (tracked + 1) * SWEEP as u64 / (SWEEP as u64 - 1) + 1;
        ids.min(u64::from(BlockId::LIMIT)) as usize
    }

    /// Reserves memory for `ids` ids, so that no later call moves what is there, and makes their
    /// buckets: until ids are reserved anew, none is split or merged below that number.
    pub fn reserve(&mut self, ids: usize) {
        reserve_exact(&mut self.nodes, ids);
        self.min_buckets = buckets(ids);
        self.buckets.reserve(self.min_buckets, self.named == 0);
        while self.buckets.len() < self.min_buckets {
            self.split();
        }
        while self.buckets.len() > self.min_buckets.max(buckets(self.named)) {
            self.merge();
        }
        self.buckets.shrink_to(self.min_buckets);
    }

    /// Gives the ids that are kept new numbers without gaps; the others lose their addresses.
    pub fn renumber(&mut self, ids: &Renumbering) {
        for id in (0..self.nodes.len() as u32).map(BlockId) {
            if ids.get(id).is_none() {
                self.free(id);
            }
        }
        let link = |id: u32| ids.get(BlockId(id)).map_or(END, |new| new.0);
        for node in &mut self.nodes {
            *node = IdNode::new(node.number(), link(node.next()));
        }
        self.buckets.relink(link);
        ids.close_up(&mut self.nodes, 0);
        if !self.tenants.is_empty() {
            ids.close_up(&mut self.tenants, 0);
        }
        (self.first_free, self.hand) = (END, 0);
    }

    /// Ids in use or waiting to be reused: the bound for `reserve_ids`.
    pub fn ids(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of memory in use.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.nodes.len() * size_of::<IdNode>() + self.buckets.len() * 5 + self.tenants.len() * 2
    }

    /// The id of an address, if it has one.
    #[inline]
    pub fn get(&self, address: BlockAddress) -> Option<BlockId> {
        self.get_loading(address, |_| {})
    }

    /// The same; `load` is given the ids of the chain, up to the one that is found, before each is
    /// compared: to start loading what belongs to them.
    #[inline(always)]
    pub fn get_loading(&self, address: BlockAddress, load: impl Fn(BlockId)) -> Option<BlockId> {
        let mut id = self.buckets.head_for(address.hash())?;
        while id != END {
            load(BlockId(id));
            let node = self.nodes[id as usize];
            if node.number() == address.number && self.tenant_of(id) == address.tenant {
                return Some(BlockId(id));
            }
            id = node.next();
        }
        None
    }

    /// The first id of an address's chain, if the address may have an id; often it is its own.
    #[inline(always)]
    pub fn likely_id(&self, address: BlockAddress) -> Option<BlockId> {
        self.buckets.head_for(address.hash()).filter(|id| *id != END).map(BlockId)
    }

    /// Starts to load the head of an address's chain.
    #[inline(always)]
    pub fn load_head(&self, address: BlockAddress) {
        self.buckets.load(address.hash());
    }

    /// Starts to load the first id of the chain of an address that may have an id. The head should
    /// have been loaded before.
    #[inline(always)]
    pub fn load_first(&self, address: BlockAddress) {
        if let Some(id) = self.likely_id(address) {
            self.load_id(id);
        }
    }

    /// Starts to load the second id of the same chain. The first should have been loaded before.
    #[inline(always)]
    pub fn load_second(&self, address: BlockAddress) {
        if let Some(id) = self.likely_id(address) {
            self.load_id(BlockId(self.nodes[id.index()].next()));
        }
    }

    /// Starts to load what is known of an id.
    #[inline(always)]
    pub fn load_id(&self, id: BlockId) {
        prefetch(&self.nodes, id.index());
    }

    /// The address of an id, unless it is free.
    pub fn address_of(&self, id: BlockId) -> Option<BlockAddress> {
        let number = self.nodes.get(id.index())?.number();
        (number != FREE).then(|| BlockAddress { tenant: self.tenant_of(id.0), number })
    }

    /// The address of an id given out by [`SparseIndex::intern`] and not released since.
    pub fn address(&self, id: BlockId) -> BlockAddress {
        BlockAddress { tenant: self.tenant_of(id.0), number: self.nodes[id.index()].number() }
    }

    /// The id of an address, made if it has none. `tracked` says whether the policy still
    /// remembers an id; one that it does not is taken from its old address.
    pub fn intern(&mut self, address: BlockAddress, tracked: impl Fn(BlockId) -> bool) -> BlockId {
        self.get(address).unwrap_or_else(|| self.add(address, tracked))
    }

    /// Makes an id for an address that has none.
    pub fn add(&mut self, address: BlockAddress, tracked: impl Fn(BlockId) -> bool) -> BlockId {
        debug_assert_eq!(self.get(address), None, "an address has one id");
        assert!(address.number < MAX_NUMBER, "block numbers have 56 bits");
        if !std::mem::take(&mut self.released) {
            self.sweep(&tracked);
            if self.nodes.len() >= MIN_LOADED_IDS {
                self.load_next_free(&tracked);
            }
        }
        let id = match self.first_free {
            END => {
                let id = self.nodes.len() as u32;
                assert!(id < BlockId::LIMIT, "a pool has at most {} ids", BlockId::LIMIT);
                self.nodes.push(IdNode::new(FREE, END));
                if !self.tenants.is_empty() {
                    self.tenants.push(self.tenant.0);
                }
                id
            }
            id => {
                self.first_free = self.nodes[id as usize].next();
                id
            }
        };
        self.set_tenant(id, address.tenant);
        let next = self.buckets.put_first(address.hash(), id);
        self.nodes[id as usize] = IdNode::new(address.number, next);
        self.named += 1;
        self.grow();
        BlockId(id)
    }

    /// Takes an id that the policy has forgotten from its address, to be given out again. Where
    /// every id is released as it is forgotten, none has to be looked for.
    pub fn release(&mut self, id: BlockId) {
        self.released = true;
        self.free(id);
    }

    fn free(&mut self, id: BlockId) {
        let Some(address) = self.address_of(id) else { return };
        let bucket = self.buckets.bucket_of(address.hash());
        let (mut before, mut marks) = (END, 0);
        let mut other = self.buckets.head(bucket);
        // To the end of the chain, although the id may come early: marks are those of the others.
        while other != END {
            let next = self.nodes[other as usize].next();
            if other != id.0 {
                marks |= mark(self.address(BlockId(other)).hash());
                before = other;
            } else if before == END {
                self.buckets.set_head(bucket, next);
            } else {
                self.set_next(before, next);
            }
            other = next;
        }
        self.buckets.set_marks(bucket, marks);
        self.nodes[id.index()] = IdNode::new(FREE, self.first_free);
        self.first_free = id.0;
        self.named -= 1;
        self.shrink();
    }

    /// Releases the ids among the next few, clockwise, that the policy has forgotten.
    fn sweep(&mut self, tracked: &impl Fn(BlockId) -> bool) {
        for _ in 0..SWEEP.min(self.nodes.len()) {
            self.hand = if self.hand + 1 >= self.nodes.len() { 0 } else { self.hand + 1 };
            let id = BlockId(self.hand as u32);
            if !tracked(id) {
                self.free(id);
            }
        }
    }

    /// Loads what the next sweep will need for the ids that it finds forgotten: the first ids of
    /// their chains, and the heads of those after them.
    fn load_next_free(&mut self, tracked: &impl Fn(BlockId) -> bool) {
        let found = std::mem::take(&mut self.next_free);
        found.addresses().for_each(|address| self.load_first(address));
        let from = self.hand + 1 + SWEEP;
        for id in (from..(from + SWEEP).min(self.nodes.len())).map(|id| BlockId(id as u32)) {
            if !tracked(id)
                && let Some(address) = self.address_of(id)
            {
                self.load_head(address);
                self.next_free.note(address);
            }
        }
    }

    #[inline(always)]
    fn tenant_of(&self, id: u32) -> TenantId {
        self.tenants.get(id as usize).map_or(self.tenant, |tenant| TenantId(*tenant))
    }

    #[inline]
    fn set_tenant(&mut self, id: u32, tenant: TenantId) {
        if self.tenants.is_empty() {
            if self.named == 0 {
                self.tenant = tenant;
            }
            if self.tenant == tenant {
                return;
            }
            self.tenants = vec![self.tenant.0; self.nodes.len()];
        }
        self.tenants[id as usize] = tenant.0;
    }

    fn set_next(&mut self, id: u32, next: u32) {
        let node = &mut self.nodes[id as usize];
        *node = IdNode::new(node.number(), next);
    }

    /// Splits a bucket when chains are long.
    fn grow(&mut self) {
        if self.named * 3 > self.buckets.len() * 4 {
            self.split();
        }
    }

    /// Splits the bucket whose turn it is.
    fn split(&mut self) {
        let mut id = self.buckets.begin_split();
        while id != END {
            let next = self.nodes[id as usize].next();
            let first = self.buckets.put_first(self.address(BlockId(id)).hash(), id);
            self.set_next(id, first);
            id = next;
        }
    }

    /// Merges two buckets when there are twice as many as are needed.
    fn shrink(&mut self) {
        let smallest = self.buckets.len() <= self.min_buckets;
        if !smallest && self.named * 3 <= self.buckets.len() * 2 {
            self.merge();
        }
    }

    /// Merges the last bucket with the one it was split from.
    fn merge(&mut self) {
        let mut id = self.buckets.pop();
        while id != END {
            let next = self.nodes[id as usize].next();
            let first = self.buckets.put_first(self.address(BlockId(id)).hash(), id);
            self.set_next(id, first);
            id = next;
        }
    }

    /// Checks that every id is free or found under its address. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut named = 0;
        for id in (0..self.nodes.len() as u32).map(BlockId) {
            let Some(address) = self.address_of(id) else { continue };
            named += 1;
            if self.get(address) != Some(id) {
                return Err(format!("id {} is not found under its address", id.0));
            }
        }
        let some = |id: u32| (id != END).then_some(id);
        let next = |id: &u32| some(self.nodes[*id as usize].next());
        let free = std::iter::successors(some(self.first_free), next).count();
        if named == self.named && named + free == self.nodes.len() {
            Ok(())
        } else {
            let ids = self.nodes.len();
            Err(format!(
                "{named} ids are named of {} counted, {free} are free of {ids}",
                self.named
            ))
        }
    }
}

/// The fewest buckets.
const MIN_BUCKETS: usize = 8;

/// Buckets for so many ids.
fn buckets(ids: usize) -> usize {
    (ids * 3).div_ceil(4).max(MIN_BUCKETS)
}

/// The mark of a hash in its bucket: by bits that do not choose the bucket.
#[inline(always)]
fn mark(hash: u64) -> u8 {
    1 << (hash >> 61)
}

/// Buckets of a table that grows and shrinks by one at a time; 5 bytes each. A bucket has eight
/// marks, of which each of its ids has set one (a Bloom filter of one hash). So about five of six
/// look-ups of an address without id end here, in memory that is a fifteenth of the index's, and
/// not at the end of a chain.
#[derive(Clone, Debug, SnapshotValue)]
struct Buckets {
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
    fn len(&self) -> usize {
        self.heads.len()
    }

    /// Reserves memory for so many buckets; in an empty table they are made.
    fn reserve(&mut self, buckets: usize, empty: bool) {
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
    fn shrink_to(&mut self, buckets: usize) {
        if self.heads.capacity() > buckets {
            self.heads.shrink_to(buckets);
            self.marks.shrink_to(buckets);
            advise(&mut self.heads);
        }
    }

    /// Gives every first id another number.
    fn relink(&mut self, link: impl Fn(u32) -> u32) {
        self.heads.iter_mut().for_each(|head| *head = link(*head));
    }

    /// The bucket of a hash: those at and above the split point do not use the last bit yet.
    #[inline(always)]
    fn bucket_of(&self, hash: u64) -> usize {
        let mask = usize::MAX >> (self.heads.len() - 1).leading_zeros();
        let bucket = hash as usize & mask;
        if bucket < self.heads.len() { bucket } else { bucket & (mask >> 1) }
    }

    /// The first id of a bucket.
    #[inline(always)]
    fn head(&self, bucket: usize) -> u32 {
        self.heads[bucket]
    }

    /// Another first id of a bucket.
    #[inline(always)]
    fn set_head(&mut self, bucket: usize, id: u32) {
        self.heads[bucket] = id;
    }

    /// The marks of the ids that are in a bucket.
    #[inline(always)]
    fn set_marks(&mut self, bucket: usize, marks: u8) {
        self.marks[bucket] = marks;
    }

    /// The first id of the chain of a hash; nothing where no id of the chain has its mark.
    #[inline(always)]
    fn head_for(&self, hash: u64) -> Option<u32> {
        let bucket = self.bucket_of(hash);
        (self.marks[bucket] & mark(hash) != 0).then(|| self.heads[bucket])
    }

    /// Makes an id the first of the chain of its hash; returns the one that was.
    #[inline(always)]
    fn put_first(&mut self, hash: u64, id: u32) -> u32 {
        let bucket = self.bucket_of(hash);
        self.marks[bucket] |= mark(hash);
        std::mem::replace(&mut self.heads[bucket], id)
    }

    /// Starts to load the bucket of a hash.
    #[inline(always)]
    fn load(&self, hash: u64) {
        let bucket = self.bucket_of(hash);
        prefetch(&self.marks, bucket);
        prefetch(&self.heads, bucket);
    }

    /// Adds a bucket and empties the one that it is split from, whose first id is returned.
    fn begin_split(&mut self) -> u32 {
        let new = self.heads.len();
        let old = new & (usize::MAX >> new.leading_zeros() >> 1);
        self.heads.push(END);
        self.marks.push(0);
        self.marks[old] = 0;
        std::mem::replace(&mut self.heads[old], END)
    }

    /// Takes the last bucket away; its ids, the first of which is returned, go to the one from
    /// which it was split.
    fn pop(&mut self) -> u32 {
        self.marks.pop();
        self.heads.pop().unwrap_or(END)
    }

    /// Memory that would move if it were not enough; for tests.
    #[cfg(test)]
    fn memory(&self) -> (*const u32, *const u8, usize) {
        (self.heads.as_ptr(), self.marks.as_ptr(), self.heads.capacity())
    }
}

/// An id: 7 bytes of its block's number and 4 of the next id in its chain.
#[derive(Clone, Copy, Debug)]
struct IdNode([u8; 11]);

impl Snapshot for IdNode {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        out.put(&self.0);
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        *self = IdNode::load(from)?;
        Ok(())
    }
}

impl SnapshotValue for IdNode {
    fn load(from: &mut SnapshotReader<'_>) -> Result<IdNode, SnapshotError> {
        from.array().map(IdNode)
    }
}

impl IdNode {
    /// An id of the block of this number, with the next id in its chain.
    #[inline(always)]
    fn new(number: u64, next: u32) -> IdNode {
        let mut bytes = [0; 11];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[7..].copy_from_slice(&next.to_le_bytes());
        IdNode(bytes)
    }

    /// The block's number.
    #[inline(always)]
    fn number(self) -> u64 {
        // One load of eight bytes, of which the last belongs to the next id.
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h]) & MAX_NUMBER
    }

    /// The next id in its chain.
    #[inline(always)]
    fn next(self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Addresses of a few of the ids that the next sweep will free: their chains are loaded ahead.
#[derive(Clone, Debug, Default, SnapshotValue)]
struct NextFree {
    addresses: [BlockAddress; 4],
    count: usize,
}

impl NextFree {
    /// Notes an address; one too many takes the place of the last.
    #[inline(always)]
    fn note(&mut self, address: BlockAddress) {
        let last = self.addresses.len() - 1;
        self.addresses[self.count.min(last)] = address;
        self.count = (self.count + 1).min(last + 1);
    }

    /// The addresses noted.
    #[inline(always)]
    fn addresses(&self) -> impl Iterator<Item = BlockAddress> + '_ {
        self.addresses.iter().take(self.count).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::{BTreeMap, HashSet, VecDeque};

    fn address(tenant: u16, number: u64) -> BlockAddress {
        BlockAddress { tenant: TenantId(tenant), number }
    }

    #[test]
    fn chains_and_free_ids_by_hand() {
        let mut index = SparseIndex::default();
        let ids: Vec<u32> =
            (0..3).map(|number| index.intern(address(4, number), |_| true).0).collect();
        assert_eq!((ids, index.ids()), (vec![0, 1, 2], 3));
        assert_eq!(index.intern(address(4, 1), |_| true), BlockId(1), "it has an id");
        index.release(BlockId(1));
        assert_eq!((index.get(address(4, 1)), index.address_of(BlockId(1))), (None, None));
        index.release(BlockId(1));
        assert_eq!(index.audit(), Ok(()), "a free id is released once");
        assert_eq!(index.intern(address(4, 70), |_| true), BlockId(1), "the free id comes first");
        // The policy remembers only id 2: ids 0 and 1 are taken from their addresses.
        assert_eq!(index.intern(address(4, 71), |id| id == BlockId(2)), BlockId(0));
        assert_eq!(index.get(address(4, 70)), None);
        assert_eq!(index.ids(), 3);
    }

    #[test]
    fn a_number_has_56_bits_and_a_second_tenant_has_its_own() {
        let mut index = SparseIndex::default();
        let large = MAX_NUMBER - 1;
        let first = index.intern(address(0, large), |_| true);
        assert_eq!(index.bytes(), 11 + 5 * MIN_BUCKETS, "one tenant costs nothing");
        let second = index.intern(address(9, large), |_| true);
        assert_ne!(first, second);
        assert_eq!(index.address(first), address(0, large));
        assert_eq!(index.address(second), address(9, large));
        assert_eq!(index.get(address(3, large)), None);
        assert_eq!(index.audit(), Ok(()));
    }

    /// Against a map of what is tracked: random blocks come, are forgotten, are released or not.
    #[test]
    fn it_is_a_map() {
        let mut rng = Seed(11).derive("sparse index").rng();
        for tenants in [1, 3] {
            let mut index = SparseIndex::default();
            let mut known: BTreeMap<(u16, u64), u32> = BTreeMap::new();
            let mut tracked: HashSet<u32> = HashSet::new();
            for step in 0..60_000_u64 {
                // Phases with many blocks and with few: the table grows and shrinks.
                let (span, keep) = if step / 10_000 % 2 == 0 { (4_000, 4) } else { (60, 1) };
                let block = (rng.below(tenants) as u16, rng.below(span) * 977);
                let known_id = known.get(&block).copied();
                if rng.below(5) < keep {
                    let id =
                        index.intern(address(block.0, block.1), |id| tracked.contains(&id.0)).0;
                    match known_id {
                        Some(known) => assert_eq!(id, known, "step {step}"),
                        None => assert!(!tracked.contains(&id), "step {step}: {id} is in use"),
                    }
                    known.insert(block, id);
                    tracked.insert(id);
                    assert_eq!(index.address(BlockId(id)), address(block.0, block.1));
                } else if let Some((block, id)) =
                    known.iter().next().map(|(block, id)| (*block, *id))
                {
                    known.remove(&block);
                    tracked.remove(&id);
                    if rng.below(2) == 0 {
                        index.release(BlockId(id));
                        assert_eq!(index.get(address(block.0, block.1)), None);
                    }
                }
                if step % 500 == 0 {
                    assert_eq!(index.audit(), Ok(()), "step {step}");
                }
            }
            for (block, id) in &known {
                assert_eq!(index.get(address(block.0, block.1)), Some(BlockId(*id)));
            }
        }
    }

    /// No pattern of forgetting makes more ids than the bound: blocks that leave in the order in
    /// which they came, in the reverse order, at random and in runs.
    #[test]
    fn ids_stay_below_sixteen_fifteenths_of_what_is_tracked() {
        const LIVE: usize = 3_000;
        for pattern in 0..5 {
            let mut rng = Seed(pattern).derive("forgetting").rng();
            let mut index = SparseIndex::default();
            let mut live: VecDeque<BlockId> = VecDeque::new();
            let mut tracked = vec![false; 4 * LIVE];
            for number in 0..60_000_u64 {
                let id = index.intern(address(1, number * 977), |id| tracked[id.index()]);
                tracked[id.index()] = true;
                live.push_back(id);
                let over = match pattern {
                    3 | 4 if number % 700 != 0 => 0,
                    3 | 4 => live.len().saturating_sub(LIVE - 700),
                    _ => live.len().saturating_sub(LIVE),
                };
                for _ in 0..over {
                    let gone = match pattern {
                        0 | 3 => live.pop_front(),
                        1 => live.remove(live.len().saturating_sub(2)),
                        _ => live.swap_remove_back(rng.below(live.len() as u64) as usize),
                    };
                    gone.into_iter().for_each(|id| tracked[id.index()] = false);
                }
            }
            let bound = SparseIndex::max_ids(LIVE as u64);
            assert!(index.ids() <= bound, "pattern {pattern}: {} ids, bound {bound}", index.ids());
            assert_eq!(index.audit(), Ok(()));
        }
    }

    #[test]
    fn reserved_buckets_are_made_at_once_and_stay() {
        let mut index = SparseIndex::default();
        for number in 0..100 {
            index.intern(address(0, number), |_| true);
        }
        index.reserve(1_000);
        let before = index.buckets.len();
        assert_eq!((before, index.audit()), (buckets(1_000), Ok(())));
        let ids: Vec<BlockId> =
            (100..1_000).map(|number| index.add(address(0, number), |_| true)).collect();
        assert_eq!(index.buckets.len(), before);
        ids.into_iter().for_each(|id| index.release(id));
        assert_eq!((index.buckets.len(), index.audit()), (before, Ok(())));
        index.reserve(200);
        assert!(index.buckets.len() == buckets(200) && index.buckets.memory().2 < before);
        assert_eq!(index.audit(), Ok(()));
    }

    #[test]
    fn reserved_memory_is_enough() {
        let mut index = SparseIndex::default();
        index.reserve(1_000);
        let before = (index.nodes.as_ptr(), index.buckets.memory());
        for number in 0..1_000 {
            index.intern(address(0, number), |_| true);
        }
        assert_eq!((index.nodes.as_ptr(), index.buckets.memory()), before, "nothing moved");
        assert_eq!(index.bytes(), 1_000 * 11 + index.buckets.len() * 5);
        assert!(index.bytes() <= 14_750 + 5 * MIN_BUCKETS);
    }

    /// A number may have bits where the tenant's are.
    #[test]
    fn tenants_have_hashes_of_their_own_for_the_same_number() {
        for number in [5, 1 << 48 | 5] {
            let hashes: HashSet<u64> =
                (0..999).map(|tenant| address(tenant, number).hash()).collect();
            assert_eq!(hashes.len(), 999, "block {number}");
        }
    }

    /// Four ids in three buckets of eight marks: 1 - exp(-4 / 3 / 8) of the look-ups, 15 %, find a
    /// mark that is not theirs.
    #[test]
    fn five_of_six_addresses_without_an_id_have_no_mark() {
        let mut index = SparseIndex::default();
        for number in 0..3_000 {
            index.intern(address(0, number), |_| true);
        }
        let absent =
            (3_000..13_000).filter(|number| index.likely_id(address(0, *number)).is_some());
        let share = absent.count() as f64 / 10_000.0;
        assert!((0.10..0.20).contains(&share), "{share}");
    }

    /// Three buckets for four ids as ids come. As they go, a bucket is merged at each release from
    /// the one on that leaves half as many ids again as buckets.
    #[test]
    fn buckets_follow_the_ids_one_at_a_time() {
        let mut index = SparseIndex::default();
        let mut ids = Vec::new();
        for number in 1..=200_usize {
            ids.push(index.add(address(0, number as u64), |_| true));
            assert_eq!(
                index.buckets.len(),
                MIN_BUCKETS.max((3 * number).div_ceil(4)),
                "{number} ids"
            );
        }
        for named in (0..200).rev() {
            index.release(ids[named]);
            let expected = if named > 100 { 150 } else { 49 + named };
            assert_eq!(index.buckets.len(), expected, "{named} ids");
        }
        assert_eq!(index.audit(), Ok(()));
        for number in 0..49 {
            let id = index.add(address(0, number), |_| true);
            index.release(id);
        }
        assert_eq!((index.buckets.len(), index.audit()), (MIN_BUCKETS, Ok(())), "never fewer");
    }

    /// The first of all tenants costs nothing; once all its blocks have gone, neither does another.
    #[test]
    fn tenants_stand_by_id_from_the_second_one_on() {
        let mut index = SparseIndex::default();
        let first = index.add(address(3, 1), |_| true);
        index.release(first);
        let second = index.add(address(5, 1), |_| true);
        assert_eq!((index.address(second), index.tenants.len()), (address(5, 1), 0));
        let third = index.add(address(3, 1), |_| true);
        assert_eq!((index.address(second), index.address(third)), (address(5, 1), address(3, 1)));
        assert_eq!(index.tenants, [5, 3]);
        let fourth = index.add(address(5, 2), |_| true);
        assert_eq!((index.address(fourth), index.audit()), (address(5, 2), Ok(())));
    }

    #[test]
    fn an_audit_names_the_rule_that_is_broken() {
        let mut index = SparseIndex::default();
        let ids: Vec<BlockId> =
            (0..4).map(|number| index.add(address(0, number), |_| true)).collect();
        index.release(ids[1]);
        assert_eq!(index.audit(), Ok(()));
        let broken = |change: fn(&mut SparseIndex)| {
            let mut index = index.clone();
            change(&mut index);
            index.audit().unwrap_err()
        };
        let renamed = broken(|index| index.nodes[2] = IdNode::new(77, index.nodes[2].next()));
        assert_eq!(renamed, "id 2 is not found under its address");
        let counted = broken(|index| index.named += 1);
        assert_eq!(counted, "3 ids are named of 4 counted, 1 are free of 4");
        let lost = broken(|index| index.first_free = END);
        assert_eq!(lost, "3 ids are named of 3 counted, 0 are free of 4");
    }

    #[test]
    fn an_id_keeps_both_numbers() {
        for number in [0, 1, MAX_NUMBER - 1, MAX_NUMBER] {
            for next in [0, 0x0102_0304, u32::MAX] {
                let node = IdNode::new(number, next);
                assert_eq!((node.number(), node.next()), (number, next));
            }
        }
        assert_eq!(size_of::<IdNode>(), 11);
    }

    #[test]
    fn four_addresses_are_noted_and_then_the_last_gives_way() {
        let noted = |count: u64| {
            let mut next_free = NextFree::default();
            for number in 1..=count {
                next_free.note(BlockAddress { tenant: TenantId(2), number });
            }
            next_free.addresses().map(|address| address.number).collect::<Vec<u64>>()
        };
        assert!(noted(0).is_empty());
        assert_eq!(noted(2), [1, 2]);
        assert_eq!(noted(4), [1, 2, 3, 4]);
        assert_eq!(noted(6), [1, 2, 3, 6]);
    }
}
