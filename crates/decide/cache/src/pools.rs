//! Pools of blocks, each under one policy: what comes in, what is evicted, what is dirty, and whose
//! it is.
//!
//! [`Pools`] keeps dirty bits, owners and counters in step with what policies decide. A dirty block
//! is resident, and the occupancy of a tenant is the number of its resident blocks; both are
//! audited.

use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{BackgroundOp, Policy, Verdict};
use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotReader, SnapshotValue, SnapshotWriter,
};
use cachewright_types::measure::{Counts, LossReason, Losses};
use cachewright_types::{BlockId, TenantId, choices};
use std::cmp::Reverse;
use std::ops::{Index, IndexMut};

/// How the capacity of a cache is divided among pools, and pools among tenants. Unit: blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quotas {
    /// One pool for all tenants, of so many blocks.
    Shared(u32),
    /// One pool per tenant, of so many blocks each, in tenant order.
    PerTenant(Vec<u32>),
    /// Pools that several tenants may share.
    Pools {
        /// The pool of each tenant; every pool has a tenant.
        of: Vec<u16>,
        /// The blocks of each pool.
        blocks: Vec<u32>,
    },
}

impl Quotas {
    /// The blocks of each pool.
    pub fn blocks(&self) -> &[u32] {
        match self {
            Quotas::Shared(total) => std::slice::from_ref(total),
            Quotas::PerTenant(each) => each,
            Quotas::Pools { blocks, .. } => blocks,
        }
    }

    /// The pool of each of so many tenants.
    pub fn pools_of(&self, tenants: usize) -> Vec<u16> {
        match self {
            Quotas::Shared(_) => vec![0; tenants],
            Quotas::PerTenant(_) => (0..tenants as u16).collect(),
            Quotas::Pools { of, .. } => of.clone(),
        }
    }
}

choices! {
    /// When a pool gives up the blocks that it holds beyond a smaller quota.
    #[derive(Default)]
    pub enum Shrink {
        /// When the quota falls.
        #[default]
        AtOnce = "at-once",
        /// One by one, as pools that are within their quotas miss and need the room.
        AsNeeded = "as-needed",
    }
}

/// Pools by index, who uses them, and what is counted for whom.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct Pools<P> {
    #[snapshot(each)]
    pools: Vec<PolicyPool<P>>,
    tenants: PoolMap,
    counters: TenantCounters,
    quotas: PoolQuotas,
}

/// The quota of each pool, where it is not the capacity of its policy: pools shrink as needed.
#[derive(Clone, Debug)]
enum PoolQuotas {
    AreCapacities,
    Blocks(Vec<u32>),
}

/// Which of them it is follows from the settings. So states of caches that shrink at once are as
/// they were before there was another way.
impl Snapshot for PoolQuotas {
    fn save(&self, out: &mut SnapshotWriter<'_>) {
        if let PoolQuotas::Blocks(blocks) = self {
            blocks.iter().for_each(|quota| quota.save(out));
        }
    }

    fn restore(&mut self, from: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        match self {
            PoolQuotas::AreCapacities => Ok(()),
            // As many as there are pools, of which the snapshot has no others.
            PoolQuotas::Blocks(blocks) => {
                blocks.iter_mut().try_for_each(|quota| quota.restore(from))
            }
        }
    }
}

impl<P> Index<usize> for Pools<P> {
    type Output = PolicyPool<P>;

    #[inline(always)]
    fn index(&self, pool: usize) -> &PolicyPool<P> {
        &self.pools[pool]
    }
}

impl<P> IndexMut<usize> for Pools<P> {
    #[inline(always)]
    fn index_mut(&mut self, pool: usize) -> &mut PolicyPool<P> {
        &mut self.pools[pool]
    }
}

impl<P: Policy> Pools<P> {
    /// Empty pools for `tenants` tenants; `make` builds the policy of each.
    pub(crate) fn new(
        tenants: usize,
        quotas: &Quotas,
        mut make: impl FnMut(usize, u32) -> P,
    ) -> Pools<P> {
        let map = PoolMap::new(tenants, quotas);
        let pool = |(index, capacity): (usize, &u32)| {
            let policy = make(index, *capacity);
            PolicyPool::new(policy, map.first_of(index), map.is_common(index))
        };
        let pools = quotas.blocks().iter().enumerate().map(pool).collect();
        let counters = TenantCounters::new(tenants);
        Pools { pools, tenants: map, counters, quotas: PoolQuotas::AreCapacities }
    }

    /// When pools give up what they hold beyond their quotas.
    pub(crate) fn shrink(&self) -> Shrink {
        match self.quotas {
            PoolQuotas::AreCapacities => Shrink::AtOnce,
            PoolQuotas::Blocks(_) => Shrink::AsNeeded,
        }
    }

    /// The same from the next quotas on, which are to be set at once.
    pub(crate) fn set_shrink(&mut self, shrink: Shrink) {
        self.quotas = match shrink {
            Shrink::AtOnce => PoolQuotas::AreCapacities,
            Shrink::AsNeeded => {
                PoolQuotas::Blocks((0..self.count()).map(|pool| self.quota(pool)).collect())
            }
        };
    }

    /// The blocks that a pool may hold.
    #[inline(always)]
    pub(crate) fn quota(&self, pool: usize) -> u32 {
        match &self.quotas {
            PoolQuotas::AreCapacities => self.pools[pool].policy.capacity(),
            PoolQuotas::Blocks(blocks) => blocks[pool],
        }
    }

    /// Notes other quotas. Returns the capacities that policies are to have now, where they follow.
    pub(crate) fn set_quotas<'q>(&mut self, quotas: &'q [u32]) -> &'q [u32] {
        match &mut self.quotas {
            PoolQuotas::AreCapacities => quotas,
            PoolQuotas::Blocks(blocks) => {
                blocks.clear();
                blocks.extend_from_slice(quotas);
                &[]
            }
        }
    }

    /// The capacities of policies that together have no more blocks than the quotas: pools above
    /// theirs give up what is too much, the first ones first.
    pub(crate) fn fitting(&self) -> Vec<u32> {
        let mut surplus = self.blocks_of_policies().saturating_sub(self.blocks_of_quotas());
        let capacity = |pool: usize| {
            let capacity = self.pools[pool].policy.capacity();
            let given = surplus.min(capacity.saturating_sub(self.quota(pool)).into());
            surplus -= given;
            capacity - given as u32
        };
        (0..self.count()).map(capacity).collect()
    }

    fn blocks_of_policies(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.policy.capacity())).sum()
    }

    fn blocks_of_quotas(&self) -> u64 {
        (0..self.count()).map(|pool| u64::from(self.quota(pool))).sum()
    }

    /// Whether a block that is accessed needs room in a pool that may still grow.
    #[inline(always)]
    pub(crate) fn lacks_room(&self, pool: usize, block: BlockId) -> bool {
        let PoolQuotas::Blocks(quotas) = &self.quotas else { return false };
        let policy = &self.pools[pool].policy;
        let capacity = policy.capacity();
        capacity < quotas[pool] && policy.len() >= capacity && !policy.contains(block)
    }

    /// The pool that gives up a block for one that lacks room: one that does not use all it has,
    /// else the one that is furthest above its quota. Nothing while some blocks of the quotas are
    /// no policy's.
    pub(crate) fn donor(&self) -> Option<usize> {
        if self.blocks_of_policies() < self.blocks_of_quotas() {
            return None;
        }
        let beyond =
            |pool: usize| self.pools[pool].policy.capacity().saturating_sub(self.quota(pool));
        let has_unused = |pool: usize| {
            let policy = &self.pools[pool].policy;
            policy.len() < policy.capacity()
        };
        let donors = (0..self.count()).filter(|pool| beyond(*pool) > 0);
        donors.max_by_key(|pool| (has_unused(*pool), beyond(*pool), Reverse(*pool)))
    }

    /// One more tenant, unless some but not all share a pool; `make` builds the policy of a pool
    /// that it has for itself.
    pub(crate) fn add_tenant(
        &mut self,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> P,
    ) -> Option<TenantId> {
        let pool = if self.tenants.is_shared() {
            self.pools[0].share();
            Some(0)
        } else if self.tenants.some_share() {
            return None;
        } else {
            let (index, tenant) = (self.pools.len(), self.tenants.count() as u16);
            let capacity_blocks = match &mut self.quotas {
                PoolQuotas::AreCapacities => capacity_blocks,
                // Its blocks come from other pools, as it needs them.
                PoolQuotas::Blocks(blocks) => {
                    blocks.push(0);
                    0
                }
            };
            self.pools.push(PolicyPool::new(make(index, capacity_blocks), tenant, false));
            None
        };
        self.counters.add();
        Some(self.tenants.add(pool))
    }

    /// Number of pools.
    pub(crate) fn count(&self) -> usize {
        self.pools.len()
    }

    /// Which tenants use which pools.
    pub(crate) fn tenants(&self) -> &PoolMap {
        &self.tenants
    }

    /// The index of the pool of a tenant.
    #[inline(always)]
    pub(crate) fn pool_of(&self, tenant: TenantId) -> usize {
        self.tenants.pool_of(tenant)
    }

    /// What is counted.
    #[inline(always)]
    pub(crate) fn counters(&self) -> &TenantCounters {
        &self.counters
    }

    /// The same, for accesses and requests to be counted.
    #[inline(always)]
    pub(crate) fn counters_mut(&mut self) -> &mut TenantCounters {
        &mut self.counters
    }

    /// Dirty blocks in all pools.
    pub(crate) fn dirty_blocks(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.dirty_blocks())).sum()
    }

    /// Carries out what the policy has decided about a tenant's block: where it was admitted, a
    /// block may have been evicted for it. Returns whether that block was dirty.
    #[inline(always)]
    pub(crate) fn admit(&mut self, tenant: TenantId, block: BlockId, verdict: Verdict) -> bool {
        let pool = &mut self.pools[self.tenants.pool_of(tenant)];
        let mut writeback = false;
        if let Verdict::Admit { evicted } = verdict {
            if let Some(evicted) = evicted {
                writeback = pool.take_dirty(evicted);
                debug_assert!(!pool.policy.contains(evicted), "an evicted block has left");
                self.counters.evict(pool.owner_of(evicted), writeback);
            }
            debug_assert!(pool.policy.contains(block), "an admitted block is resident");
            pool.set_owner(block, tenant);
            self.counters.enter(tenant);
        }
        writeback
    }

    /// A block is written back while it stays; returns whether it was dirty. Counted for `tenant`.
    pub(crate) fn clean(&mut self, tenant: TenantId, block: BlockId) -> bool {
        let dirty = self.pools[self.tenants.pool_of(tenant)].take_dirty(block);
        self.counters.write_back(tenant, dirty);
        dirty
    }

    /// Drops a block without writing it back; returns whether it was cached and whether it was
    /// dirty.
    pub(crate) fn lose(
        &mut self,
        tenant: TenantId,
        block: BlockId,
        reason: LossReason,
    ) -> (bool, bool) {
        let pool = &mut self.pools[self.tenants.pool_of(tenant)];
        let cached = pool.policy.remove(block);
        let dirty = cached && pool.take_dirty(block);
        if cached {
            self.counters.discard(tenant, reason, dirty);
        }
        (cached, dirty)
    }

    /// Evicts the blocks that the policy of a pool has given up; those that stay are within its
    /// capacity. Each is given to `left` as (pool, block, was dirty).
    pub(crate) fn evict(
        &mut self,
        index: usize,
        evicted: impl IntoIterator<Item = BlockId>,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        for block in evicted {
            assert!(!pool.policy.contains(block), "block {} left pool {index}", block.0);
            let dirty = pool.take_dirty(block);
            self.counters.evict(pool.owner_of(block), dirty);
            left(index, block, dirty);
        }
        let (held, capacity) = (pool.policy.len(), pool.policy.capacity());
        assert!(held <= capacity, "pool {index} holds {held} blocks of {capacity}");
    }

    /// Changes the blocks of one pool; those that leave for it are given to `left`.
    pub(crate) fn resize(
        &mut self,
        index: usize,
        capacity_blocks: u32,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        if pool.policy.capacity() == capacity_blocks {
            return;
        }
        let mut evicted = Vec::new();
        pool.policy.resize(capacity_blocks, &mut evicted);
        assert_eq!(pool.policy.capacity(), capacity_blocks, "a resize sets the capacity");
        self.evict(index, evicted, left);
    }

    /// Puts another policy, empty and of the same capacity, in the place of a pool's. It is given
    /// the cached blocks in the order in which the old one would evict them; those that it does not
    /// keep are given to `left`.
    pub(crate) fn replace_policy(
        &mut self,
        index: usize,
        mut policy: P,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        debug_assert_eq!(policy.capacity(), pool.policy.capacity(), "as many blocks as before");
        let mut cached = Vec::new();
        pool.policy.resize(0, &mut cached);
        let mut gone = Vec::new();
        for block in cached {
            match policy.adopt(block, pool.is_dirty(block)) {
                Verdict::Hit | Verdict::Admit { evicted: None } => {}
                Verdict::Admit { evicted: Some(evicted) } => gone.push(evicted),
                Verdict::Bypass => gone.push(block),
            }
        }
        pool.policy = policy;
        self.evict(index, gone, left);
    }

    /// The next background operation of a pool's policy, and whether the block that it names first
    /// is dirty.
    #[inline(always)]
    pub(crate) fn background_op(&mut self, index: usize) -> Option<(BackgroundOp, bool)> {
        let op = self.pools[index].policy.background_op()?;
        let mut dirty = false;
        match op {
            BackgroundOp::Demote(block) => {
                self.evict(index, [block], &mut |_, _, was_dirty| dirty = was_dirty);
            }
            BackgroundOp::Clean(block) => {
                let pool = &mut self.pools[index];
                assert!(pool.policy.contains(block), "a block that is cleaned stays");
                dirty = pool.take_dirty(block);
                self.counters.write_back(TenantId(pool.owner_of(block)), dirty);
            }
            BackgroundOp::Swap(one, other) => {
                let policy = &self.pools[index].policy;
                assert!(policy.contains(one) && policy.contains(other), "swapped blocks stay");
            }
        }
        Some((op, dirty))
    }

    /// Checks every invariant, slowly. Errors: the rule broken, in words.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut resident = 0;
        for (index, pool) in self.pools.iter().enumerate() {
            pool.policy.audit().map_err(|error| format!("pool {index}: {error}"))?;
            resident += u64::from(pool.policy.len());
            pool.audit().map_err(|error| format!("pool {index}: {error}"))?;
        }
        let counted = self.counters.held();
        if counted == resident {
            Ok(())
        } else {
            Err(format!("{resident} blocks are resident, {counted} are counted"))
        }
    }
}

/// A policy, which of its blocks are dirty, and the tenants that they belong to.
#[derive(Clone, Debug, Snapshot)]
pub(crate) struct PolicyPool<P> {
    pub(crate) policy: P,
    /// One bit per id below the length that the engine reserved.
    dirty: Vec<u64>,
    dirty_blocks: u32,
    /// The tenant of each id; empty in a pool of one tenant.
    owner: Vec<u16>,
    /// Its only tenant, or one of several.
    tenant: u16,
    /// Whether several tenants share it.
    common: bool,
}

impl<P: Policy> PolicyPool<P> {
    /// An empty pool of one tenant, or of several, of which `tenant` is one.
    pub(crate) fn new(policy: P, tenant: u16, common: bool) -> PolicyPool<P> {
        PolicyPool { policy, dirty: Vec::new(), dirty_blocks: 0, owner: Vec::new(), tenant, common }
    }

    /// Makes room for ids `0..count`.
    pub(crate) fn reserve_ids(&mut self, count: usize) {
        self.policy.reserve_ids(count);
        if count.div_ceil(64) > self.dirty.len() {
            self.dirty.resize(count.div_ceil(64), 0);
        }
        if self.common && count > self.owner.len() {
            self.owner.resize(count, self.tenant);
        }
    }

    /// Gives the blocks that are kept, all that the policy tracks among them, new ids; returns
    /// whether the policy can.
    pub(crate) fn renumber(&mut self, ids: &Renumbering) -> bool {
        if !self.policy.renumber(ids) {
            return false;
        }
        for (old, new) in ids.pairs() {
            if self.take_dirty(old) {
                self.dirty[new.index() / 64] |= 1 << (new.index() % 64);
                self.dirty_blocks += 1;
            }
        }
        self.dirty.truncate(ids.kept().div_ceil(64));
        self.dirty.shrink_to_fit();
        if self.common {
            ids.close_up(&mut self.owner, 0);
        }
        true
    }

    /// Tenants share the pool from now on.
    pub(crate) fn share(&mut self) {
        if !self.common {
            self.common = true;
            self.owner = vec![self.tenant; self.dirty.len() * 64];
        }
    }

    /// The tenant of a block in the cache.
    #[inline(always)]
    pub(crate) fn owner_of(&self, block: BlockId) -> u16 {
        self.owner.get(block.index()).copied().unwrap_or(self.tenant)
    }

    /// Notes whose block it is that came in.
    #[inline(always)]
    fn set_owner(&mut self, block: BlockId, tenant: TenantId) {
        if let Some(owner) = self.owner.get_mut(block.index()) {
            *owner = tenant.0;
        }
    }

    /// Dirty blocks.
    pub(crate) fn dirty_blocks(&self) -> u32 {
        self.dirty_blocks
    }

    #[inline(always)]
    pub(crate) fn is_dirty(&self, block: BlockId) -> bool {
        self.dirty[block.index() / 64] >> (block.index() % 64) & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn set_dirty(&mut self, block: BlockId) {
        debug_assert!(self.policy.contains(block), "a dirty block is resident");
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        self.dirty_blocks += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// Clears the dirty bit and returns what it was.
    #[inline(always)]
    fn take_dirty(&mut self, block: BlockId) -> bool {
        if self.dirty_blocks == 0 {
            return false;
        }
        let word = &mut self.dirty[block.index() / 64];
        let bit = 1 << (block.index() % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        self.dirty_blocks -= u32::from(was);
        was
    }

    /// The first dirty block from `from` on.
    pub(crate) fn next_dirty(&self, from: BlockId) -> Option<BlockId> {
        let mut word = from.index() / 64;
        let mut bits = self.dirty.get(word)? & (u64::MAX << (from.index() % 64));
        while bits == 0 {
            word += 1;
            bits = *self.dirty.get(word)?;
        }
        Some(BlockId(word as u32 * 64 + bits.trailing_zeros()))
    }

    /// Checks that dirty blocks are resident and counted. Errors: the rule broken, in words.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let mut dirty = 0;
        for id in (0..self.dirty.len() as u32 * 64).map(BlockId) {
            if self.is_dirty(id) {
                dirty += 1;
                if !self.policy.contains(id) {
                    return Err(format!("block {} is dirty, not cached", id.0));
                }
            }
        }
        if dirty == self.dirty_blocks {
            Ok(())
        } else {
            Err(format!("{dirty} dirty, {} counted", self.dirty_blocks))
        }
    }
}

/// The pool of each tenant. All tenants in one pool is a case of its own, whose look-up loads
/// nothing.
#[derive(Clone, Debug, SnapshotValue)]
pub(crate) struct PoolMap {
    /// All tenants use pool 0.
    shared: bool,
    pool_of: Vec<u16>,
    /// Tenants of each pool.
    users: Vec<u32>,
}

impl PoolMap {
    /// The map of `quotas` for so many tenants.
    pub(crate) fn new(tenants: usize, quotas: &Quotas) -> PoolMap {
        let (pool_of, pools) = (quotas.pools_of(tenants), quotas.blocks().len());
        let exists = |pool: &u16| usize::from(*pool) < pools;
        assert!(pool_of.len() == tenants && pool_of.iter().all(exists), "each tenant has a pool");
        let mut users = vec![0; pools];
        pool_of.iter().for_each(|pool| users[usize::from(*pool)] += 1);
        PoolMap { shared: matches!(quotas, Quotas::Shared(_)), pool_of, users }
    }

    /// The pool of a tenant.
    #[inline(always)]
    pub(crate) fn pool_of(&self, tenant: TenantId) -> usize {
        if self.shared { 0 } else { usize::from(self.pool_of[tenant.index()]) }
    }

    /// Tenants.
    pub(crate) fn count(&self) -> usize {
        self.pool_of.len()
    }

    /// All tenants are in pool 0.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether several tenants share a pool.
    pub(crate) fn is_common(&self, pool: usize) -> bool {
        self.users[pool] > 1
    }

    /// Whether there is a pool that several tenants share.
    pub(crate) fn some_share(&self) -> bool {
        self.users.iter().any(|users| *users > 1)
    }

    /// The first tenant of a pool.
    fn first_of(&self, pool: usize) -> u16 {
        let found = self.pool_of.iter().position(|of| usize::from(*of) == pool);
        found.map_or(0, |tenant| tenant as u16)
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub(crate) fn mixed(&self) -> Vec<u16> {
        if self.users.len() > 1 && self.some_share() { self.pool_of.clone() } else { Vec::new() }
    }

    /// Whether quotas are for the same pools of the same tenants.
    pub(crate) fn fits(&self, quotas: &Quotas) -> bool {
        let kind = matches!(quotas, Quotas::Shared(_)) == self.shared;
        kind && quotas.blocks().len() == self.users.len()
            && match quotas {
                Quotas::Pools { of, .. } => *of == self.pool_of,
                Quotas::PerTenant(each) => {
                    each.len() == self.pool_of.len() && self.users.iter().all(|users| *users < 2)
                }
                Quotas::Shared(_) => true,
            }
    }

    /// One more tenant, in `pool` or, with none, in a pool of its own. Returns the tenant.
    pub(crate) fn add(&mut self, pool: Option<usize>) -> TenantId {
        let pool = pool.unwrap_or_else(|| {
            self.users.push(0);
            self.users.len() - 1
        });
        self.users[pool] += 1;
        self.pool_of.push(pool as u16);
        TenantId(self.pool_of.len() as u16 - 1)
    }
}

/// Counters and occupancy of all tenants.
#[derive(Clone, Debug, SnapshotValue)]
pub(crate) struct TenantCounters {
    counts: Vec<Counts>,
    losses: Vec<Losses>,
    /// Resident blocks of each tenant.
    occupancy: Vec<u32>,
}

impl TenantCounters {
    /// Nothing counted yet.
    pub(crate) fn new(tenants: usize) -> TenantCounters {
        TenantCounters {
            counts: vec![Counts::default(); tenants],
            losses: vec![Losses::default(); tenants],
            occupancy: vec![0; tenants],
        }
    }

    /// One more tenant.
    pub(crate) fn add(&mut self) {
        self.counts.push(Counts::default());
        self.losses.push(Losses::default());
        self.occupancy.push(0);
    }

    /// Counters of a tenant.
    #[inline(always)]
    pub(crate) fn counts(&self, tenant: TenantId) -> &Counts {
        &self.counts[tenant.index()]
    }

    /// Counters of all tenants.
    pub(crate) fn all_counts(&self) -> &[Counts] {
        &self.counts
    }

    /// Blocks of a tenant that were dropped, by reason.
    pub(crate) fn losses(&self, tenant: TenantId) -> &Losses {
        &self.losses[tenant.index()]
    }

    #[inline(always)]
    fn counts_mut(&mut self, tenant: TenantId) -> &mut Counts {
        &mut self.counts[tenant.index()]
    }

    /// A read of a block was decided.
    #[inline(always)]
    pub(crate) fn read(&mut self, tenant: TenantId, verdict: Verdict) {
        let counts = self.counts_mut(tenant);
        counts.reads += 1;
        match verdict {
            Verdict::Hit => counts.read_hits += 1,
            Verdict::Admit { .. } => counts.read_admissions += 1,
            Verdict::Bypass => {}
        }
    }

    /// A write of a block was decided.
    #[inline(always)]
    pub(crate) fn write(&mut self, tenant: TenantId, verdict: Verdict) {
        let counts = self.counts_mut(tenant);
        counts.writes += 1;
        match verdict {
            Verdict::Hit => counts.write_hits += 1,
            Verdict::Admit { .. } => counts.write_admissions += 1,
            Verdict::Bypass => {}
        }
    }

    /// A whole request was decided.
    #[inline(always)]
    pub(crate) fn request(&mut self, tenant: TenantId, all_hit: bool) {
        let counts = self.counts_mut(tenant);
        counts.requests += 1;
        counts.request_hits += u64::from(all_hit);
    }

    /// Read hits of a tenant's last request were misses, of at most so many bytes; `all_hit`: all
    /// its blocks hit.
    pub(crate) fn recount(&mut self, tenant: TenantId, blocks: u64, bytes: u64, all_hit: bool) {
        let counts = self.counts_mut(tenant);
        debug_assert!(blocks <= counts.read_hits, "only hits are recounted");
        counts.read_hits = counts.read_hits.saturating_sub(blocks);
        counts.read_hit_bytes = counts.read_hit_bytes.saturating_sub(bytes);
        counts.request_hits = counts.request_hits.saturating_sub(u64::from(all_hit));
    }

    /// A block of a tenant that stays was written back if it was dirty.
    #[inline(always)]
    fn write_back(&mut self, tenant: TenantId, dirty: bool) {
        self.counts_mut(tenant).writebacks += u64::from(dirty);
    }

    /// A miss was kept from the policy.
    #[inline(always)]
    pub(crate) fn bypass(&mut self, tenant: TenantId, write: bool) {
        let counts = self.counts_mut(tenant);
        counts.reads += u64::from(!write);
        counts.writes += u64::from(write);
    }

    /// Reads or writes of blocks had so many bytes, and those of them that hit.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, tenant: TenantId, write: bool, bytes: u64, hit_bytes: u64) {
        let counts = self.counts_mut(tenant);
        if write {
            counts.write_bytes += bytes;
            counts.write_hit_bytes += hit_bytes;
        } else {
            counts.read_bytes += bytes;
            counts.read_hit_bytes += hit_bytes;
        }
    }

    /// A request, or a part of one, went past the cache: `ends` with its last part.
    pub(crate) fn cut_off(&mut self, tenant: TenantId, bytes: u64, ends: bool) {
        let counts = self.counts_mut(tenant);
        counts.cut_off_requests += u64::from(ends);
        counts.cut_off_bytes += bytes;
    }

    /// Blocks that a tenant holds.
    pub(crate) fn occupancy(&self, tenant: TenantId) -> u32 {
        self.occupancy[tenant.index()]
    }

    /// Blocks that all tenants hold.
    pub(crate) fn held(&self) -> u64 {
        self.occupancy.iter().map(|blocks| u64::from(*blocks)).sum()
    }

    /// A block of a tenant came in.
    #[inline(always)]
    fn enter(&mut self, tenant: TenantId) {
        self.occupancy[tenant.index()] += 1;
    }

    /// A block of a tenant was evicted, to be written back if it was dirty.
    #[inline(always)]
    pub(crate) fn evict(&mut self, tenant: u16, dirty: bool) {
        let tenant = usize::from(tenant);
        debug_assert!(self.occupancy[tenant] > 0, "its tenant held the evicted block");
        self.counts[tenant].evictions += 1;
        self.counts[tenant].writebacks += u64::from(dirty);
        self.occupancy[tenant] -= 1;
    }

    /// A block of a tenant was dropped without write-back.
    pub(crate) fn discard(&mut self, tenant: TenantId, reason: LossReason, dirty: bool) {
        debug_assert!(self.occupancy[tenant.index()] > 0, "the tenant held the block");
        self.counts[tenant.index()].invalidations += 1;
        self.losses[tenant.index()].count(reason, dirty);
        self.occupancy[tenant.index()] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::lru::Lru;
    use cachewright_policy::{Access, Registered};
    use cachewright_types::Seed;
    use cachewright_types::declare::NoSettings;

    /// Blocks in the cache, with room for 200 ids; tenant 3 has them all.
    fn pool(blocks: &[u32], common: bool) -> PolicyPool<Lru> {
        let lru = Lru::new(10, &NoSettings::default(), Seed(0));
        let mut pool = PolicyPool::new(lru, 3, common);
        pool.reserve_ids(200);
        for block in blocks {
            pool.policy.access(Access::read(BlockId(*block)));
        }
        pool
    }

    fn dirty(pool: &PolicyPool<Lru>) -> Vec<u32> {
        let next = |from: u32| pool.next_dirty(BlockId(from)).map(|block| block.0);
        std::iter::successors(next(0), |block| next(block + 1)).take(9).collect()
    }

    /// Ids 5, 63, 64 and 190 lie in the first, first, second and third word of bits.
    #[test]
    fn dirty_blocks_are_counted_once_and_found_in_order() {
        let mut pool = pool(&[190, 64, 5, 63, 70], false);
        for block in [190, 64, 5, 63, 64] {
            pool.set_dirty(BlockId(block));
        }
        assert_eq!((dirty(&pool), pool.dirty_blocks()), (vec![5, 63, 64, 190], 4));
        assert!(pool.is_dirty(BlockId(63)) && !pool.is_dirty(BlockId(70)));
        assert_eq!([64, 64, 70].map(|block| pool.take_dirty(BlockId(block))), [true, false, false]);
        assert_eq!(
            (dirty(&pool), pool.dirty_blocks(), pool.audit()),
            (vec![5, 63, 190], 3, Ok(()))
        );
        let from = |block| pool.next_dirty(BlockId(block)).map(|block| block.0);
        assert_eq!(
            [63, 64, 190, 191, 9999].map(from),
            [Some(63), Some(190), Some(190), None, None]
        );
    }

    #[test]
    fn kept_blocks_stay_dirty_and_their_owners_under_their_new_ids() {
        let mut pool = pool(&[2, 63, 64, 150], true);
        [2, 64, 150].into_iter().for_each(|block| pool.set_dirty(BlockId(block)));
        pool.set_owner(BlockId(64), TenantId(7));
        assert_eq!([63, 64, 199, 200].map(|id| pool.owner_of(BlockId(id))), [3, 7, 3, 3]);
        let kept = [2, 63, 64, 150];
        assert!(pool.renumber(&Renumbering::keeping(200, |id| kept.contains(&id.0))));
        assert_eq!((dirty(&pool), pool.dirty_blocks()), (vec![0, 2, 3], 3));
        assert_eq!([0, 1, 2, 3].map(|id| pool.owner_of(BlockId(id))), [3, 3, 7, 3]);
        assert_eq!((pool.dirty.len(), pool.owner.len(), pool.audit()), (1, 4, Ok(())));
    }

    /// Of 130 ids all are kept but the first: a dirty bit goes over from one word into another.
    #[test]
    fn a_dirty_bit_moves_into_the_word_before() {
        let mut pool = pool(&[64, 65, 129], false);
        [64, 129].into_iter().for_each(|block| pool.set_dirty(BlockId(block)));
        assert!(pool.renumber(&Renumbering::keeping(130, |id| id.0 > 0)));
        assert_eq!((dirty(&pool), pool.dirty.len(), pool.audit()), (vec![63, 128], 3, Ok(())));
    }

    #[test]
    fn blocks_from_before_a_second_tenant_came_are_the_first_ones() {
        let mut pool = pool(&[1, 2], false);
        pool.set_owner(BlockId(1), TenantId(9));
        assert_eq!(pool.owner_of(BlockId(1)), 3, "a pool of one tenant");
        pool.share();
        pool.set_owner(BlockId(2), TenantId(9));
        pool.share();
        assert_eq!([0, 1, 2, 199].map(|id| pool.owner_of(BlockId(id))), [3, 3, 9, 3]);
    }

    #[test]
    fn memory_for_ids_grows_and_never_shrinks() {
        let mut pool = pool(&[], true);
        let lengths = |pool: &PolicyPool<Lru>| (pool.dirty.len(), pool.owner.len());
        assert_eq!(lengths(&pool), (4, 200), "200 bits");
        pool.reserve_ids(10);
        assert_eq!(lengths(&pool), (4, 200));
        pool.reserve_ids(257);
        assert_eq!(lengths(&pool), (5, 257));
    }

    #[test]
    fn the_audit_finds_dirty_blocks_that_are_not_counted() {
        let mut pool = pool(&[1], false);
        pool.set_dirty(BlockId(1));
        pool.dirty_blocks = 2;
        assert_eq!(pool.audit(), Err("1 dirty, 2 counted".to_owned()));
    }

    fn pools(of: &[u16], blocks: &[u32]) -> Quotas {
        Quotas::Pools { of: of.to_vec(), blocks: blocks.to_vec() }
    }

    #[test]
    fn quotas_fit_that_are_for_the_same_pools_of_the_same_tenants() {
        let shared = PoolMap::new(3, &Quotas::Shared(9));
        let apart = PoolMap::new(3, &Quotas::PerTenant(vec![1, 2, 3]));
        let mixed = PoolMap::new(3, &pools(&[1, 0, 1], &[4, 5]));
        let single = PoolMap::new(1, &pools(&[0], &[4]));
        let fit = |quotas: &Quotas| [&shared, &apart, &mixed, &single].map(|map| map.fits(quotas));
        assert_eq!(fit(&Quotas::Shared(0)), [true, false, false, false]);
        assert_eq!(fit(&Quotas::PerTenant(vec![7, 7, 7])), [false, true, false, false]);
        assert_eq!(fit(&Quotas::PerTenant(vec![7, 7])), [false; 4], "two pools, three tenants");
        assert_eq!(fit(&Quotas::PerTenant(vec![7])), [false, false, false, true]);
        assert_eq!(fit(&pools(&[1, 0, 1], &[0, 9])), [false, false, true, false]);
        assert_eq!(fit(&pools(&[0, 1, 1], &[0, 9])), [false; 4]);
        assert_eq!(fit(&pools(&[0, 1, 2], &[1, 1, 1])), [false, true, false, false]);
        let no_user = PoolMap::new(3, &pools(&[0, 0, 2], &[4, 5, 6]));
        assert!(!no_user.fits(&Quotas::PerTenant(vec![4, 5, 6])), "two tenants share a pool");
    }

    #[test]
    fn each_pool_has_a_first_tenant_and_new_tenants_a_pool_of_their_own_or_a_common_one() {
        let mut map = PoolMap::new(4, &pools(&[2, 0, 1, 0], &[4, 5, 6]));
        assert_eq!([0, 1, 2].map(|pool| map.first_of(pool)), [1, 2, 0]);
        assert_eq!([0, 1, 2].map(|pool| map.is_common(pool)), [true, false, false]);
        assert_eq!((map.mixed(), map.is_shared()), (vec![2, 0, 1, 0], false));
        assert!(PoolMap::new(2, &Quotas::PerTenant(vec![4, 5])).mixed().is_empty());
        assert_eq!((map.add(None), map.add(Some(1)), map.count()), (TenantId(4), TenantId(5), 6));
        assert_eq!([4, 5].map(|tenant| map.pool_of(TenantId(tenant))), [3, 1]);
        assert_eq!([1, 3].map(|pool| map.is_common(pool)), [true, false]);
        let mut shared = PoolMap::new(1, &Quotas::Shared(9));
        assert!(shared.is_shared() && !shared.is_common(0) && shared.mixed().is_empty());
        assert_eq!((shared.add(Some(0)), shared.is_common(0)), (TenantId(1), true));
        assert_eq!((shared.pool_of(TenantId(7)), shared.mixed()), (0, vec![]), "all are in it");
    }

    #[test]
    #[should_panic(expected = "each tenant has a pool")]
    fn a_tenant_without_a_pool_is_a_fault_of_the_caller() {
        PoolMap::new(2, &pools(&[0, 2], &[4, 5]));
    }

    #[test]
    #[should_panic(expected = "each tenant has a pool")]
    fn so_is_a_pool_too_few() {
        PoolMap::new(3, &pools(&[0, 1], &[4, 5]));
    }
}
