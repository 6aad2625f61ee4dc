//! Addresses to dense ids for a cache that lives: ids are given out again when the policy has
//! forgotten their block, so memory follows the cache's size and not the volume's.
//!
//! For: the sparse address space of served volumes. Must never know: what a policy does; it only
//! asks whether an id is still tracked. A hash table of chains that grows by linear hashing
//! (Litwin, VLDB'80): one bucket is split or merged at a time, so that no call rehashes the table.
//! Cost: O(1) expected per look-up and per new id; 14.75 bytes per id, 16.75 in a pool of several
//! tenants. Bound: ids stay below 16/15 of the most that the policy tracked at one time, plus one.

mod buckets;
mod forgotten;
mod id_node;

use buckets::{Buckets, MIN_BUCKETS, buckets, mark};
use cachewright_memory::{prefetch, reserve_exact};
use cachewright_policy::renumber::Renumbering;
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, TenantId};
use forgotten::Forgotten;
use id_node::IdNode;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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
}

/// The index of one pool.
#[derive(Clone, Debug)]
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
    /// Ids that the next sweep will find forgotten.
    forgotten: Forgotten,
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
            forgotten: Forgotten::default(),
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
                self.load_forgotten(&tracked);
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
    fn load_forgotten(&mut self, tracked: &impl Fn(BlockId) -> bool) {
        let found = std::mem::take(&mut self.forgotten);
        found.addresses().for_each(|address| self.load_first(address));
        let from = self.hand + 1 + SWEEP;
        for id in (from..(from + SWEEP).min(self.nodes.len())).map(|id| BlockId(id as u32)) {
            if !tracked(id)
                && let Some(address) = self.address_of(id)
            {
                self.load_head(address);
                self.forgotten.note(address);
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

#[cfg(test)]
mod tests;
