//! Addresses to dense ids for a cache that lives: ids are given out again when the policy has
//! forgotten their block, so memory follows the cache's size and not the volume's.
//!
//! For: the sparse address space of served volumes. Must never know: what a policy does; it only
//! asks whether an id is still tracked. A hash table of chains that grows by linear hashing
//! (Litwin, VLDB'80): one bucket is split or merged at a time, so that no call rehashes the table.
//! Cost: O(1) expected per look-up and per new id; 14 bytes per id, 16 in a pool of several
//! tenants. Bound: ids stay below 16/15 of the most that the policy tracked at one time, plus one.

use cachewright_policy::renumber::Renumbering;
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, TenantId};

/// Ids looked at, clockwise, before one is given out: what is forgotten is found within a turn.
const SWEEP: usize = 16;
/// The end of a chain.
const END: u32 = u32::MAX;
/// The number of an id that is free.
const FREE: u64 = MAX_NUMBER;
/// Numbers of blocks are below this: 56 bits, so that a volume of blocks of 512 bytes may have
/// every byte that an offset can name.
pub const MAX_NUMBER: u64 = (1 << 56) - 1;
/// The fewest buckets.
const MIN_BUCKETS: usize = 8;

/// A block's address: whose volume and which block of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BlockAddress {
    /// The tenant.
    pub tenant: TenantId,
    /// Number of the block on the tenant's volume; below [`MAX_NUMBER`].
    pub number: u64,
}

impl BlockAddress {
    fn hash(self) -> u64 {
        mix(self.number ^ (u64::from(self.tenant.0) << 48))
    }
}

/// An id: 7 bytes of its block's number and 4 of the next id in its chain.
#[derive(Clone, Copy, Debug)]
struct IdNode([u8; 11]);

impl IdNode {
    fn new(number: u64, next: u32) -> IdNode {
        let mut bytes = [0; 11];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[7..].copy_from_slice(&next.to_le_bytes());
        IdNode(bytes)
    }

    #[inline(always)]
    fn number(self) -> u64 {
        let [a, b, c, d, e, f, g, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, 0])
    }

    #[inline(always)]
    fn next(self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_le_bytes([a, b, c, d])
    }
}

/// The index of one pool.
#[derive(Clone, Debug)]
pub struct SparseIndex {
    /// The first id of each bucket's chain.
    heads: Vec<u32>,
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
    /// An id was released since the last one was given out.
    released: bool,
}

impl Default for SparseIndex {
    fn default() -> Self {
        SparseIndex {
            heads: vec![END; MIN_BUCKETS],
            nodes: Vec::new(),
            tenants: Vec::new(),
            tenant: TenantId(0),
            named: 0,
            min_buckets: MIN_BUCKETS,
            first_free: END,
            hand: 0,
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
        self.nodes.reserve_exact(ids.saturating_sub(self.nodes.len()));
        self.min_buckets = buckets(ids);
        self.heads.reserve_exact(self.min_buckets.saturating_sub(self.heads.len()));
        if self.named == 0 {
            self.heads.resize(self.min_buckets, END);
        }
        while self.heads.len() < self.min_buckets {
            self.split();
        }
        while self.heads.len() > self.min_buckets.max(buckets(self.named)) {
            self.merge();
        }
        self.heads.shrink_to(self.min_buckets);
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
        self.heads.iter_mut().for_each(|head| *head = link(*head));
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
        self.nodes.len() * size_of::<IdNode>() + self.heads.len() * 4 + self.tenants.len() * 2
    }

    /// The id of an address, if it has one.
    #[inline]
    pub fn get(&self, address: BlockAddress) -> Option<BlockId> {
        let mut id = self.heads[self.bucket(address.hash())];
        while id != END {
            let node = self.nodes[id as usize];
            if node.number() == address.number && self.tenant_of(id) == address.tenant {
                return Some(BlockId(id));
            }
            id = node.next();
        }
        None
    }

    /// The first id of an address's chain, which often is its own: to load what belongs to it ahead
    /// of its use.
    #[inline(always)]
    pub fn likely_id(&self, address: BlockAddress) -> Option<BlockId> {
        let id = self.heads[self.bucket(address.hash())];
        (id != END).then_some(BlockId(id))
    }

    /// Loads the head of an address's chain ahead of its use; the value means nothing.
    #[inline(always)]
    pub fn touch_head(&self, address: BlockAddress) -> u32 {
        self.heads[self.bucket(address.hash())]
    }

    /// Loads the first id of an address's chain, whose head should have been loaded before; the
    /// value means nothing.
    #[inline(always)]
    pub fn touch_first(&self, address: BlockAddress) -> u32 {
        self.touch_id(BlockId(self.heads[self.bucket(address.hash())]))
    }

    /// Loads the second id of an address's chain, whose first should have been loaded before; the
    /// value means nothing.
    #[inline(always)]
    pub fn touch_second(&self, address: BlockAddress) -> u32 {
        self.touch_id(BlockId(self.touch_first(address)))
    }

    /// Loads what is known of an id ahead of its use; the value means nothing.
    #[inline(always)]
    pub fn touch_id(&self, id: BlockId) -> u32 {
        self.nodes.get(id.index()).map_or(END, |node| node.next())
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
            self.sweep(tracked);
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
        let bucket = self.bucket(address.hash());
        self.nodes[id as usize] = IdNode::new(address.number, self.heads[bucket]);
        self.heads[bucket] = id;
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
        let bucket = self.bucket(address.hash());
        let next = self.nodes[id.index()].next();
        let mut before = self.heads[bucket];
        if before == id.0 {
            self.heads[bucket] = next;
        } else {
            while self.nodes[before as usize].next() != id.0 {
                before = self.nodes[before as usize].next();
            }
            self.set_next(before, next);
        }
        self.nodes[id.index()] = IdNode::new(FREE, self.first_free);
        self.first_free = id.0;
        self.named -= 1;
        self.shrink();
    }

    /// Releases the ids among the next few, clockwise, that the policy has forgotten.
    fn sweep(&mut self, tracked: impl Fn(BlockId) -> bool) {
        for _ in 0..SWEEP.min(self.nodes.len()) {
            self.hand = if self.hand + 1 >= self.nodes.len() { 0 } else { self.hand + 1 };
            let id = BlockId(self.hand as u32);
            if !tracked(id) {
                self.free(id);
            }
        }
    }

    #[inline(always)]
    fn tenant_of(&self, id: u32) -> TenantId {
        self.tenants.get(id as usize).map_or(self.tenant, |tenant| TenantId(*tenant))
    }

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

    /// The bucket of a hash: those at and above the split point do not use the last bit yet.
    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        let mask = usize::MAX >> (self.heads.len() - 1).leading_zeros();
        let bucket = hash as usize & mask;
        if bucket < self.heads.len() { bucket } else { bucket & (mask >> 1) }
    }

    /// Splits a bucket when chains are long.
    fn grow(&mut self) {
        if self.named * 3 > self.heads.len() * 4 {
            self.split();
        }
    }

    /// Splits the bucket whose turn it is.
    fn split(&mut self) {
        let new = self.heads.len();
        let old = new & (usize::MAX >> new.leading_zeros() >> 1);
        let mut id = std::mem::replace(&mut self.heads[old], END);
        self.heads.push(END);
        while id != END {
            let next = self.nodes[id as usize].next();
            let bucket = self.bucket(self.address(BlockId(id)).hash());
            debug_assert!(bucket == old || bucket == new, "a bucket splits in two");
            self.set_next(id, self.heads[bucket]);
            self.heads[bucket] = id;
            id = next;
        }
    }

    /// Merges two buckets when there are twice as many as are needed.
    fn shrink(&mut self) {
        let last = self.heads.len() - 1;
        if last < self.min_buckets || self.named * 3 > self.heads.len() * 2 {
            return;
        }
        self.merge();
    }

    /// Merges the last bucket with the one it was split from.
    fn merge(&mut self) {
        let last = self.heads.len() - 1;
        let other = last & (usize::MAX >> last.leading_zeros() >> 1);
        let mut id = self.heads.pop().unwrap_or(END);
        while id != END {
            let next = self.nodes[id as usize].next();
            self.set_next(id, self.heads[other]);
            self.heads[other] = id;
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

/// Buckets for so many ids.
fn buckets(ids: usize) -> usize {
    (ids * 3).div_ceil(4).max(MIN_BUCKETS)
}

#[cfg(test)]
mod tests;
