//! One replacement policy per pool, quotas per tenant, dirty state and counters.
//!
//! For: the decision about one block access, at the speed of the policy itself. Must never know:
//! addresses (ids come from an index or an interner), time, devices. Units: blocks. Invariants: a
//! dirty block is resident; occupancy is the number of resident blocks; both are audited.

use crate::pool::PolicyPool;
use crate::{Quotas, WriteMode};
use cachewright_measure::Counts;
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
    /// All tenants use pool 0.
    shared: bool,
    /// The pool of each tenant.
    of: Vec<u16>,
    mode: WriteMode,
    counts: Vec<Counts>,
    /// Resident blocks per tenant.
    occupancy: Vec<u32>,
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
        let of = quotas.pools_of(tenants);
        let exists = |pool: &u16| usize::from(*pool) < quotas.blocks().len();
        assert!(of.len() == tenants && of.iter().all(exists), "each tenant has a pool");
        let pool = |(index, capacity): (usize, &u32)| {
            let users = || of.iter().enumerate().filter(move |(_, pool)| **pool as usize == index);
            PolicyPool {
                policy: make(index, *capacity),
                dirty: Vec::new(),
                dirty_blocks: 0,
                owner: Vec::new(),
                tenant: users().next().map_or(0, |(tenant, _)| tenant as u16),
                common: users().count() > 1,
            }
        };
        Engine {
            pools: quotas.blocks().iter().enumerate().map(pool).collect(),
            shared: matches!(quotas, Quotas::Shared(_)),
            of,
            mode,
            counts: vec![Counts::default(); tenants],
            occupancy: vec![0; tenants],
        }
    }

    /// Whether some tenants share a pool, and thereby an id space.
    pub fn is_shared(&self) -> bool {
        self.shared || self.pools.iter().any(|pool| pool.common)
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub fn mixed_pools(&self) -> Vec<u16> {
        if self.pools.len() > 1 && self.is_shared() { self.of.clone() } else { Vec::new() }
    }

    /// Whether a tenant has a quota of its own, and not a place in a pool for all or for several.
    pub fn has_quota(&self, tenant: TenantId) -> bool {
        !self.shared && !self.shares(tenant)
    }

    /// Whether a tenant shares its pool with others.
    pub fn shares(&self, tenant: TenantId) -> bool {
        self.pools[self.pool_of(tenant)].common
    }

    /// The write mode.
    pub fn mode(&self) -> WriteMode {
        self.mode
    }

    /// The index of the pool a tenant's blocks live in.
    #[inline(always)]
    pub fn pool_of(&self, tenant: TenantId) -> usize {
        if self.shared { 0 } else { usize::from(self.of[tenant.index()]) }
    }

    /// Number of pools.
    pub fn pools(&self) -> usize {
        self.pools.len()
    }

    /// Makes room for ids `0..count` in a pool.
    pub fn reserve_ids(&mut self, pool: usize, count: usize) {
        let pool = &mut self.pools[pool];
        pool.policy.reserve_ids(count);
        if count.div_ceil(64) > pool.dirty.len() {
            pool.dirty.resize(count.div_ceil(64), 0);
        }
        if pool.common && count > pool.owner.len() {
            pool.owner.resize(count, 0);
        }
    }

    /// Decides about one block access and counts it.
    #[inline(always)]
    pub fn access(&mut self, access: BlockAccess) -> AccessOutcome {
        if access.write { self.write(access) } else { self.read(access) }
    }

    #[inline(always)]
    fn read(&mut self, access: BlockAccess) -> AccessOutcome {
        let outcome = self.consult(access);
        let counts = &mut self.counts[access.tenant.index()];
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
                let (invalidated, _) = self.discard(access.tenant, access.block);
                AccessOutcome { invalidated, ..kept_out }
            }
        };
        let counts = &mut self.counts[access.tenant.index()];
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
        let mut writeback = false;
        if let Verdict::Admit { evicted } = verdict {
            let mut loser = access.tenant.index();
            if let Some(evicted) = evicted {
                writeback = pool.take_dirty(evicted);
                if let Some(owner) = pool.owner.get(evicted.index()) {
                    loser = usize::from(*owner);
                }
                debug_assert!(!pool.policy.contains(evicted), "an evicted block has left");
                debug_assert!(self.occupancy[loser] > 0, "its tenant held the evicted block");
                self.counts[loser].evictions += 1;
                self.counts[loser].writebacks += u64::from(writeback);
                self.occupancy[loser] -= 1;
            }
            debug_assert!(pool.policy.contains(access.block), "an admitted block is resident");
            if let Some(owner) = pool.owner.get_mut(access.block.index()) {
                *owner = access.tenant.0;
            }
            self.occupancy[access.tenant.index()] += 1;
        }
        AccessOutcome { verdict, writeback, invalidated: false }
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
        self.assert_fits(pool);
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
                let owner = pool.owner.get(block.index()).copied().unwrap_or(pool.tenant);
                self.counts[usize::from(owner)].writebacks += u64::from(dirty);
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
        self.counts[tenant.index()].writebacks += u64::from(dirty);
        dirty
    }

    /// Drops a block without writing it back (trim, invalidation); returns whether it was cached
    /// and whether it was dirty.
    pub fn discard(&mut self, tenant: TenantId, block: BlockId) -> (bool, bool) {
        let pool_index = self.pool_of(tenant);
        let pool = &mut self.pools[pool_index];
        let cached = pool.policy.remove(block);
        let dirty = cached && pool.take_dirty(block);
        if cached {
            debug_assert!(self.occupancy[tenant.index()] > 0, "the tenant held the block");
            self.counts[tenant.index()].invalidations += 1;
            self.occupancy[tenant.index()] -= 1;
        }
        (cached, dirty)
    }

    /// Counts a miss that the caller kept from the policy.
    #[inline(always)]
    pub fn count_bypass(&mut self, tenant: TenantId, write: bool) {
        let counts = &mut self.counts[tenant.index()];
        counts.reads += u64::from(!write);
        counts.writes += u64::from(write);
    }

    /// Counts one whole request.
    #[inline(always)]
    pub fn count_request(&mut self, tenant: TenantId, all_hit: bool) {
        let counts = &mut self.counts[tenant.index()];
        counts.requests += 1;
        counts.request_hits += u64::from(all_hit);
    }

    /// Counts read hits of a tenant's last request as misses; `all_hit`: all its blocks hit.
    pub fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        let counts = &mut self.counts[tenant.index()];
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
        let kind = matches!(quotas, Quotas::Shared(_)) == self.shared;
        let pools = quotas.blocks().len() == self.pools.len();
        kind && pools
            && match quotas {
                Quotas::Pools { of, .. } => *of == self.of,
                Quotas::PerTenant(each) => each.len() == self.of.len() && !self.is_shared(),
                Quotas::Shared(_) => true,
            }
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
        self.assert_fits(index);
    }

    /// A pool holds at most its capacity.
    fn assert_fits(&self, index: usize) {
        let policy = &self.pools[index].policy;
        let (held, capacity) = (policy.len(), policy.capacity());
        assert!(held <= capacity, "pool {index} holds {held} blocks of {capacity}");
    }

    /// Blocks that the policy of a pool has given up.
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
            let owner = pool.owner.get(block.index()).copied().unwrap_or(pool.tenant);
            let owner = usize::from(owner);
            assert!(self.occupancy[owner] > 0, "tenant {owner} held block {}", block.0);
            self.counts[owner].evictions += 1;
            self.counts[owner].writebacks += u64::from(dirty);
            self.occupancy[owner] -= 1;
            left(index, block, dirty);
        }
    }

    /// Takes blocks of one pool's quota and gives them to another's, at most what it has; those
    /// that leave are reported as by [`Engine::resize`]. Returns how many changed hands.
    pub fn transfer(
        &mut self,
        from: usize,
        to: usize,
        blocks: u32,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) -> u32 {
        let had = self.pools[from].policy.capacity();
        let has = self.pools[to].policy.capacity();
        let moved = if from == to { 0 } else { blocks.min(had).min(u32::MAX - has) };
        self.resize(from, had - moved, left);
        self.resize(to, has + moved, left);
        moved
    }

    /// Counters of one tenant so far.
    pub fn counts(&self, tenant: TenantId) -> &Counts {
        &self.counts[tenant.index()]
    }

    /// Blocks a tenant holds.
    pub fn occupancy(&self, tenant: TenantId) -> u32 {
        self.occupancy[tenant.index()]
    }

    /// Blocks a tenant may hold: its quota, or the whole pool it shares.
    pub fn quota(&self, tenant: TenantId) -> u32 {
        self.pools[self.pool_of(tenant)].policy.capacity()
    }

    /// Dirty blocks in all pools.
    pub fn dirty_blocks(&self) -> u64 {
        self.pools.iter().map(|pool| u64::from(pool.dirty_blocks)).sum()
    }

    /// Dirty blocks in one pool.
    pub fn dirty_in(&self, pool: usize) -> u32 {
        self.pools[pool].dirty_blocks
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
    pub fn touch(&self, tenant: TenantId, block: BlockId) -> u32 {
        self.pools[self.pool_of(tenant)].policy.touch(block)
    }

    /// Checks every invariant of the engine and its policies, slowly.
    pub fn audit(&self) -> Result<(), String> {
        let mut resident = 0;
        for (index, pool) in self.pools.iter().enumerate() {
            pool.policy.audit().map_err(|error| format!("pool {index}: {error}"))?;
            resident += u64::from(pool.policy.len());
            let mut dirty = 0;
            for id in (0..pool.dirty.len() as u32 * 64).map(BlockId) {
                if pool.is_dirty(id) {
                    dirty += 1;
                    if !pool.policy.contains(id) {
                        return Err(format!("pool {index}: block {} is dirty, not cached", id.0));
                    }
                }
            }
            if dirty != pool.dirty_blocks {
                return Err(format!("pool {index}: {dirty} dirty, {} counted", pool.dirty_blocks));
            }
        }
        let counted: u64 = self.occupancy.iter().map(|blocks| u64::from(*blocks)).sum();
        if counted == resident {
            Ok(())
        } else {
            Err(format!("{resident} blocks are resident, {counted} are counted"))
        }
    }
}
