//! One replacement policy per pool, quotas per tenant, dirty state and counters.
//!
//! For: the decision about one block access, at the speed of the policy itself. Must never know:
//! addresses (ids come from an index or an interner), time, devices. Units: blocks. Invariants: a
//! dirty block is resident; occupancy is the number of resident blocks; both are audited.

mod upkeep;

use crate::ledger::Ledger;
use crate::pool::PolicyPool;
use crate::tenant_pools::TenantPools;
use crate::{Quotas, WriteMode};
use cachewright_measure::{Counts, LossReason, Losses};
use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{Access, BackgroundOp, Future, Policy, RegionSizes, RequestInfo, Verdict};
use cachewright_types::{BlockId, TenantId};

/// One access to one block, with the id in the id space of its pool: an id names one block of all
/// tenants in the pool. Pools hold arrays as long as their largest id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockAccess {
    /// The block.
    pub block: BlockId,
    /// The tenant that asks.
    pub tenant: TenantId,
    /// Whether it is written.
    pub write: bool,
    /// What is known of the future, for policies that need it.
    pub future: Future,
}

/// What happened to one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessOutcome {
    /// The policy's verdict; `Bypass` where the write mode kept the policy out of it.
    pub verdict: Verdict,
    /// The evicted block was dirty and must be written back.
    pub writeback: bool,
    /// The cached copy was dropped because the write mode says so.
    pub invalidated: bool,
}

/// The cache: pools of one policy type.
#[derive(Clone, Debug)]
pub struct Engine<P> {
    pools: Vec<PolicyPool<P>>,
    tenants: TenantPools,
    mode: WriteMode,
    ledger: Ledger,
}

impl<P: Policy> Engine<P> {
    /// An empty cache for `tenants` tenants; `make` builds a policy of a given capacity and is
    /// called once per pool with the pool's index.
    pub fn new(
        tenants: usize,
        quotas: &Quotas,
        mode: WriteMode,
        mut make: impl FnMut(usize, u32) -> P,
    ) -> Self {
        let map = TenantPools::new(tenants, quotas);
        let pool = |(index, capacity): (usize, &u32)| {
            let policy = make(index, *capacity);
            PolicyPool::new(policy, map.first_of(index), map.is_common(index))
        };
        let pools = quotas.blocks().iter().enumerate().map(pool).collect();
        Engine { pools, tenants: map, mode, ledger: Ledger::new(tenants) }
    }

    /// One more tenant: in a pool of `capacity_blocks` of its own that `make` builds, or in the
    /// pool that all share. Nothing, and no tenant, where pools have several tenants.
    pub fn add_tenant(
        &mut self,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> P,
    ) -> Option<TenantId> {
        let pool = if self.tenants.is_shared() {
            self.pools[0].share();
            Some(0)
        } else if self.is_shared() {
            return None;
        } else {
            let (index, tenant) = (self.pools.len(), self.tenants.count() as u16);
            self.pools.push(PolicyPool::new(make(index, capacity_blocks), tenant, false));
            None
        };
        self.ledger.add();
        Some(self.tenants.add(pool))
    }

    /// Whether some tenants share a pool, and thereby an id space.
    pub fn is_shared(&self) -> bool {
        let common = |pool| self.tenants.is_common(pool);
        self.tenants.is_shared() || (0..self.pools.len()).any(common)
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub fn mixed_pools(&self) -> Vec<u16> {
        self.tenants.mixed()
    }

    /// Whether a tenant has a quota of its own, and not a place in a pool for all or for several.
    pub fn has_quota(&self, tenant: TenantId) -> bool {
        !self.tenants.is_shared() && !self.shares(tenant)
    }

    /// Whether a tenant shares its pool with others.
    pub fn shares(&self, tenant: TenantId) -> bool {
        self.tenants.is_common(self.pool_of(tenant))
    }

    /// The write mode.
    pub fn mode(&self) -> WriteMode {
        self.mode
    }

    /// The index of the pool a tenant's blocks live in.
    #[inline(always)]
    pub fn pool_of(&self, tenant: TenantId) -> usize {
        self.tenants.pool_of(tenant)
    }

    /// Number of pools.
    pub fn pools(&self) -> usize {
        self.pools.len()
    }

    /// Makes room for ids `0..count` in a pool.
    pub fn reserve_ids(&mut self, pool: usize, count: usize) {
        self.pools[pool].reserve_ids(count);
    }

    /// Gives the blocks that a pool's policy tracks new ids; returns whether the policy can.
    pub fn renumber(&mut self, pool: usize, ids: &Renumbering) -> bool {
        self.pools[pool].renumber(ids)
    }

    /// Decides about one block access and counts it.
    #[inline(always)]
    pub fn access(&mut self, access: BlockAccess) -> AccessOutcome {
        if access.write { self.write(access) } else { self.read(access) }
    }

    #[inline(always)]
    fn read(&mut self, access: BlockAccess) -> AccessOutcome {
        let outcome = self.consult(access);
        let counts = self.ledger.counts_mut(access.tenant);
        counts.reads += 1;
        match outcome.verdict {
            Verdict::Hit => counts.read_hits += 1,
            Verdict::Admit { .. } => counts.read_admissions += 1,
            Verdict::Bypass => {}
        }
        outcome
    }

    #[inline(always)]
    fn write(&mut self, access: BlockAccess) -> AccessOutcome {
        let pool = self.pool_of(access.tenant);
        let kept_out =
            AccessOutcome { verdict: Verdict::Bypass, writeback: false, invalidated: false };
        let outcome = match self.mode {
            WriteMode::WriteBack => {
                let outcome = self.consult(access);
                if outcome.verdict != Verdict::Bypass {
                    self.pools[pool].set_dirty(access.block);
                }
                outcome
            }
            WriteMode::WriteThrough => self.consult(access),
            WriteMode::WriteAround if self.pools[pool].policy.contains(access.block) => {
                self.consult(access)
            }
            WriteMode::WriteAround => kept_out,
            WriteMode::ReadOnly => {
                let reason = LossReason::Invalidation;
                let (invalidated, _) = self.lose(access.tenant, access.block, reason);
                AccessOutcome { invalidated, ..kept_out }
            }
        };
        let counts = self.ledger.counts_mut(access.tenant);
        counts.writes += 1;
        match outcome.verdict {
            Verdict::Hit => counts.write_hits += 1,
            Verdict::Admit { .. } => counts.write_admissions += 1,
            Verdict::Bypass => {}
        }
        outcome
    }

    /// Asks the policy and keeps owners, occupancy and dirty bits in step with its verdict.
    #[inline(always)]
    fn consult(&mut self, access: BlockAccess) -> AccessOutcome {
        let pool_index = self.pool_of(access.tenant);
        let pool = &mut self.pools[pool_index];
        let verdict = pool.policy.access(Access {
            block: access.block,
            write: access.write,
            future: access.future,
        });
        self.admit(access, verdict)
    }

    /// Keeps owners, occupancy and dirty bits in step with a verdict.
    #[inline(always)]
    fn admit(&mut self, access: BlockAccess, verdict: Verdict) -> AccessOutcome {
        let pool = &mut self.pools[self.tenants.pool_of(access.tenant)];
        let mut writeback = false;
        if let Verdict::Admit { evicted } = verdict {
            if let Some(evicted) = evicted {
                writeback = pool.take_dirty(evicted);
                debug_assert!(!pool.policy.contains(evicted), "an evicted block has left");
                self.ledger.evict(pool.owner_of(evicted), writeback);
            }
            debug_assert!(pool.policy.contains(access.block), "an admitted block is resident");
            pool.set_owner(access.block, access.tenant);
            self.ledger.enter(access.tenant);
        }
        AccessOutcome { verdict, writeback, invalidated: false }
    }

    /// Takes in a block past admission control, unless it is cached; counts no access. A `dirty`
    /// one is dirty from now on. See [`Policy::adopt`] for when the policy refuses it.
    pub fn adopt(&mut self, tenant: TenantId, block: BlockId, dirty: bool) -> AccessOutcome {
        let pool = self.pool_of(tenant);
        let policy = &mut self.pools[pool].policy;
        let cached = policy.contains(block);
        let verdict = if cached { Verdict::Hit } else { policy.adopt(block, dirty) };
        let access = BlockAccess { block, tenant, write: dirty, future: Future::None };
        let outcome = self.admit(access, verdict);
        if dirty && outcome.verdict != Verdict::Bypass {
            self.pools[pool].set_dirty(block);
        }
        outcome
    }

    /// Puts a block that is not cached before the policy as if it were read, and counts no access.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockId) -> AccessOutcome {
        self.consult(BlockAccess { block, tenant, write: false, future: Future::None })
    }

    /// Passes the next request on to the policy of its tenant.
    #[inline(always)]
    pub fn on_request(&mut self, tenant: TenantId, request: &RequestInfo) {
        let pool = self.pool_of(tenant);
        self.pools[pool].policy.on_request(request);
    }

    /// Gives a policy new sizes of its regions; blocks that leave for it are reported as by
    /// [`Engine::resize`].
    pub fn divide_regions(
        &mut self,
        pool: usize,
        sizes: RegionSizes,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let mut evicted = Vec::new();
        self.pools[pool].policy.divide_regions(sizes, &mut evicted);
        self.leave(pool, evicted, left);
    }

    /// Passes the time on to the policy of a pool.
    #[inline(always)]
    pub fn clock(&mut self, index: usize, now_ns: u64) {
        if P::has_regions_or_background_ops() {
            self.pools[index].policy.clock(now_ns);
        }
    }

    /// The next background operation of a pool's policy, and whether the block that it names first
    /// is dirty. Blocks that leave or are cleaned are counted.
    #[inline(always)]
    pub fn background_op(&mut self, index: usize) -> Option<(BackgroundOp, bool)> {
        if !P::has_regions_or_background_ops() {
            return None;
        }
        let op = self.pools[index].policy.background_op()?;
        let mut dirty = false;
        match op {
            BackgroundOp::Demote(block) => {
                self.leave(index, [block], &mut |_, _, was_dirty| dirty = was_dirty);
            }
            BackgroundOp::Clean(block) => {
                let pool = &mut self.pools[index];
                assert!(pool.policy.contains(block), "a block that is cleaned stays");
                dirty = pool.take_dirty(block);
                let owner = TenantId(pool.owner_of(block));
                self.ledger.counts_mut(owner).writebacks += u64::from(dirty);
            }
            BackgroundOp::Swap(one, other) => {
                let policy = &self.pools[index].policy;
                assert!(policy.contains(one) && policy.contains(other), "swapped blocks stay");
            }
        }
        Some((op, dirty))
    }

    /// Marks a cached block clean, as being written back while it stays; returns whether it was
    /// dirty. Counted as a write-back.
    pub fn clean(&mut self, tenant: TenantId, block: BlockId) -> bool {
        let pool = self.pool_of(tenant);
        let dirty = self.pools[pool].take_dirty(block);
        self.ledger.counts_mut(tenant).writebacks += u64::from(dirty);
        dirty
    }

    /// Drops a trimmed block; see [`Engine::lose`].
    pub fn discard(&mut self, tenant: TenantId, block: BlockId) -> (bool, bool) {
        self.lose(tenant, block, LossReason::Trim)
    }

    /// Drops a block without writing it back; returns whether it was cached and whether it was
    /// dirty.
    pub fn lose(&mut self, tenant: TenantId, block: BlockId, reason: LossReason) -> (bool, bool) {
        let pool_index = self.pool_of(tenant);
        let pool = &mut self.pools[pool_index];
        let cached = pool.policy.remove(block);
        let dirty = cached && pool.take_dirty(block);
        if cached {
            self.ledger.discard(tenant, reason, dirty);
        }
        (cached, dirty)
    }

    /// Counts a miss that the caller kept from the policy.
    #[inline(always)]
    pub fn count_bypass(&mut self, tenant: TenantId, write: bool) {
        self.ledger.bypass(tenant, write);
    }

    /// Counts one whole request.
    #[inline(always)]
    pub fn count_request(&mut self, tenant: TenantId, all_hit: bool) {
        self.ledger.request(tenant, all_hit);
    }

    /// Counts read hits of a tenant's last request as misses; `all_hit`: all its blocks hit.
    pub fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        let counts = self.ledger.counts_mut(tenant);
        debug_assert!(blocks <= counts.read_hits, "only hits are recounted");
        counts.read_hits = counts.read_hits.saturating_sub(blocks);
        counts.request_hits = counts.request_hits.saturating_sub(u64::from(all_hit));
    }

    /// Changes the quotas while running; tenants that shrink lose blocks at once. Each block that
    /// leaves is given to `left` as (pool, block, was dirty). Who uses which pool stays as it was
    /// built; other quotas are ignored and return false.
    pub fn set_quotas(
        &mut self,
        quotas: &Quotas,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) -> bool {
        if !self.fits(quotas) {
            return false;
        }
        for (index, capacity) in quotas.blocks().iter().enumerate() {
            self.resize(index, *capacity, left);
        }
        true
    }

    /// Whether quotas divide the cache among the same pools of the same tenants.
    pub fn fits(&self, quotas: &Quotas) -> bool {
        self.tenants.fits(quotas)
    }

    /// Changes the blocks of one pool; those it loses leave in the policy's order, each given to
    /// `left` as (pool, block, was dirty). Changing by a block costs what the policy's eviction
    /// does.
    pub fn resize(
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
        self.leave(index, evicted, left);
    }

    /// Blocks that the policy of a pool has given up; the others are within its capacity.
    fn leave(
        &mut self,
        index: usize,
        evicted: impl IntoIterator<Item = BlockId>,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let pool = &mut self.pools[index];
        for block in evicted {
            assert!(!pool.policy.contains(block), "block {} left pool {index}", block.0);
            let dirty = pool.take_dirty(block);
            self.ledger.evict(pool.owner_of(block), dirty);
            left(index, block, dirty);
        }
        let (held, capacity) = (pool.policy.len(), pool.policy.capacity());
        assert!(held <= capacity, "pool {index} holds {held} blocks of {capacity}");
    }

    /// Counters of one tenant so far.
    pub fn counts(&self, tenant: TenantId) -> &Counts {
        self.ledger.counts(tenant)
    }

    /// Blocks of one tenant that were dropped without write-back, by reason.
    pub fn losses(&self, tenant: TenantId) -> &Losses {
        self.ledger.losses(tenant)
    }

    /// Blocks a tenant holds.
    pub fn occupancy(&self, tenant: TenantId) -> u32 {
        self.ledger.occupancy(tenant)
    }

    /// Blocks a tenant may hold: its quota, or the whole pool it shares.
    pub fn quota(&self, tenant: TenantId) -> u32 {
        self.pools[self.pool_of(tenant)].policy.capacity()
    }

    /// Dirty blocks in all pools.
    pub fn dirty_blocks(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.dirty_blocks())).sum()
    }

    /// Dirty blocks in one pool.
    pub fn dirty_in(&self, pool: usize) -> u32 {
        self.pools[pool].dirty_blocks()
    }

    /// Whether a block is cached and dirty.
    pub fn is_dirty(&self, tenant: TenantId, block: BlockId) -> bool {
        self.pools[self.pool_of(tenant)].is_dirty(block)
    }

    /// The policy of a pool, to look at.
    pub fn policy(&self, pool: usize) -> &P {
        &self.pools[pool].policy
    }

    /// Loads what an access to the block will need; see [`Policy::touch`].
    #[inline(always)]
    pub fn touch(&self, tenant: TenantId, block: BlockId) {
        self.pools[self.pool_of(tenant)].policy.touch(block);
    }

    /// Checks every invariant of the engine and its policies, slowly.
    pub fn audit(&self) -> Result<(), String> {
        let mut resident = 0;
        for (index, pool) in self.pools.iter().enumerate() {
            pool.policy.audit().map_err(|error| format!("pool {index}: {error}"))?;
            resident += u64::from(pool.policy.len());
            pool.audit().map_err(|error| format!("pool {index}: {error}"))?;
        }
        let counted = self.ledger.held();
        if counted == resident {
            Ok(())
        } else {
            Err(format!("{resident} blocks are resident, {counted} are counted"))
        }
    }
}
