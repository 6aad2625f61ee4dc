//! Decisions about one block: write mode, policy, quotas.
//!
//! Blocks are known by ids, which come from an index or an interner. What comes in and leaves is
//! counted, and known to be dirty or clean, by [`Pools`].

use crate::blame::{Blame, Causes, MissCause, Reason};
use crate::pools::{Pools, Quotas, Shrink};
use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{
    Access, BackgroundOp, Future, Policy, RegionSizes, RequestInfo, ShadowSplit, Verdict,
};
use cachewright_snapshot::Snapshot;
use cachewright_types::measure::{Counts, LossReason, Losses, WriteEffect};
use cachewright_types::{BlockId, TenantId, choices};
use std::collections::BTreeSet;
use std::ops::Range;

/// The cache: pools of one policy type.
#[derive(Clone, Debug, Snapshot)]
pub struct Engine<P> {
    pools: Pools<P>,
    #[snapshot(settings)]
    mode: WriteMode,
    /// What finds the cause of each miss, where that is asked for.
    #[snapshot(settings)]
    blame: Option<Box<Blame>>,
}

impl<P: Policy> Engine<P> {
    /// An empty cache for `tenants` tenants; `make` builds a policy of a given capacity and is
    /// called once per pool with the pool's index.
    pub fn new(
        tenants: usize,
        quotas: &Quotas,
        mode: WriteMode,
        make: impl FnMut(usize, u32) -> P,
    ) -> Self {
        Engine { pools: Pools::new(tenants, quotas, make), mode, blame: None }
    }

    /// The same with pools that give up what they hold beyond smaller quotas so.
    pub fn shrinking(mut self, shrink: Shrink) -> Self {
        self.pools.set_shrink(shrink);
        self
    }

    /// When pools give up what they hold beyond smaller quotas.
    pub fn shrink(&self) -> Shrink {
        self.pools.shrink()
    }

    /// Finds the cause of each miss from now on; nothing may be cached yet, and no id reserved. The
    /// whole cache has `whole_blocks` blocks, whatever is divided among the pools. With `sampled` a
    /// large cache looks at a sample of blocks only, so that causes are to be scaled
    /// ([`Causes::of_all`]). With `bounds` every access must bring its next use. No id may be given
    /// to another block from now on.
    pub fn explain_misses(&mut self, whole_blocks: u32, sampled: bool, bounds: bool) {
        let (capacities, pool_of) = (self.capacities(), self.pools_of_tenants());
        self.blame =
            Some(Box::new(Blame::new(whole_blocks, &capacities, &pool_of, sampled, bounds)));
    }

    /// Explanations begin with the blocks that a pool holds, whose ids are below `ids`.
    pub(crate) fn note_held(&mut self, pool: usize, ids: usize) {
        let Some(blame) = &mut self.blame else { return };
        blame.reserve_ids(pool, ids);
        let held = &self.pools[pool];
        let cached = (0..ids as u32).map(BlockId).filter(|block| held.policy.contains(*block));
        cached.for_each(|block| blame.came_in(TenantId(held.owner_of(block)), block, None));
    }

    /// The same for a server: a bounded sample of addresses is looked at, ids may be given to other
    /// blocks if [`Engine::name`] is told, and counts need no scaling.
    pub fn explain_misses_by_address(&mut self, whole_blocks: u32) {
        let (capacities, pool_of) = (self.capacities(), self.pools_of_tenants());
        self.blame = Some(Box::new(Blame::by_address(whole_blocks, &capacities, &pool_of)));
    }

    fn capacities(&self) -> Vec<u32> {
        (0..self.pools.count()).map(|pool| self.pools[pool].policy.capacity()).collect()
    }

    fn pools_of_tenants(&self) -> Vec<usize> {
        let tenants = (0..self.pools.tenants().count()).map(|tenant| TenantId(tenant as u16));
        tenants.map(|tenant| self.pool_of(tenant)).collect()
    }

    /// An id of a pool stands for this block of a tenant from now on.
    #[inline(always)]
    pub fn name(&mut self, pool: usize, block: BlockId, tenant: TenantId, number: u64) {
        if let Some(blame) = &mut self.blame {
            blame.name(pool, block, tenant, number);
        }
    }

    /// A block of a tenant without an id was trimmed; see [`Engine::discard`] of others.
    pub fn note_trimmed(&mut self, tenant: TenantId, number: u64) {
        if let Some(blame) = &mut self.blame {
            blame.trimmed(tenant, number);
        }
    }

    /// The blocks of a tenant among `numbers` whose trims are to be noted, with an id or without.
    pub fn looked_at(&self, tenant: TenantId, numbers: &Range<u64>) -> BTreeSet<u64> {
        let blame = self.blame.iter();
        blame.flat_map(|blame| blame.named(tenant, numbers)).collect()
    }

    /// A server that starts has found this block in its log and does not keep it.
    pub fn note_dropped_at_restart(&mut self, tenant: TenantId, number: u64) {
        if let Some(blame) = &mut self.blame {
            blame.dropped_at_restart(tenant, number);
        }
    }

    /// Misses of a tenant that [`Engine::causes`] do not count yet; see [`Blame::unexplained`].
    pub fn unexplained_misses(&self, tenant: TenantId) -> u64 {
        self.blame.as_ref().map_or(0, |blame| blame.unexplained(tenant))
    }

    /// The causes of the misses, by tenant; nothing unless [`Engine::explain_misses`] asked for
    /// them.
    pub fn causes(&self) -> Option<&[Causes]> {
        self.blame.as_ref().map(|blame| blame.causes())
    }

    /// Why a block of a pool would miss, were it accessed now and missed, as far as the past says.
    /// Nothing without causes, and where the block is not looked at.
    pub fn cause_of_miss(&self, pool: usize, block: BlockId) -> Option<MissCause> {
        self.blame.as_ref()?.cause_of_miss(pool, block)
    }

    /// Counts causes from here on.
    pub fn begin_causes(&mut self) {
        if let Some(blame) = &mut self.blame {
            blame.begin_counts();
        }
    }

    /// One more tenant: in a pool of `capacity_blocks` of its own that `make` builds, or in the
    /// pool that all share. Nothing, and no tenant, where pools have several tenants.
    pub fn add_tenant(
        &mut self,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> P,
    ) -> Option<TenantId> {
        let tenant = self.pools.add_tenant(capacity_blocks, make)?;
        let pool = self.pool_of(tenant);
        if let Some(blame) = &mut self.blame {
            blame.add_tenant(pool, capacity_blocks);
        }
        Some(tenant)
    }

    /// Whether some tenants share a pool, and thereby an id space.
    pub fn is_shared(&self) -> bool {
        self.pools.tenants().is_shared() || self.pools.tenants().some_share()
    }

    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    pub fn mixed_pools(&self) -> Vec<u16> {
        self.pools.tenants().mixed()
    }

    /// Whether a tenant has a quota of its own, and not a place in a pool for all or for several.
    pub fn has_quota(&self, tenant: TenantId) -> bool {
        !self.pools.tenants().is_shared() && !self.shares(tenant)
    }

    /// Whether a tenant shares its pool with others.
    pub fn shares(&self, tenant: TenantId) -> bool {
        self.pools.tenants().is_common(self.pool_of(tenant))
    }

    /// The write mode.
    pub fn mode(&self) -> WriteMode {
        self.mode
    }

    /// The index of the pool a tenant's blocks live in.
    #[inline(always)]
    pub fn pool_of(&self, tenant: TenantId) -> usize {
        self.pools.pool_of(tenant)
    }

    /// Number of pools.
    pub fn pools(&self) -> usize {
        self.pools.count()
    }

    /// Makes room for ids `0..count` in a pool.
    pub fn reserve_ids(&mut self, pool: usize, count: usize) {
        self.pools[pool].reserve_ids(count);
        if let Some(blame) = &mut self.blame {
            blame.reserve_ids(pool, count);
        }
    }

    /// Whether a block must keep its id: the policy remembers it, or causes of misses are found.
    #[inline(always)]
    pub fn tracks(&self, pool: usize, block: BlockId) -> bool {
        let is_known_by_id = || self.blame.as_ref().is_some_and(|blame| !blame.is_named());
        self.pools[pool].policy.tracks(block) || is_known_by_id()
    }

    /// Gives the blocks that a pool's policy tracks new ids; returns whether the policy can. It
    /// cannot where causes of misses are found by id.
    pub fn renumber(&mut self, pool: usize, ids: &Renumbering) -> bool {
        match &mut self.blame {
            Some(blame) if !blame.is_named() => false,
            Some(blame) => {
                let is_done = self.pools[pool].renumber(ids);
                if is_done {
                    blame.renumber(pool, ids);
                }
                is_done
            }
            None => self.pools[pool].renumber(ids),
        }
    }

    /// Decides about one block access and counts it.
    #[inline(always)]
    pub fn access(&mut self, access: BlockAccess) -> AccessOutcome {
        let outcome = if access.write { self.write(access) } else { self.read(access) };
        match &self.blame {
            Some(blame) if blame.place(self.pool_of(access.tenant), access.block).is_some() => {
                self.explain(access, outcome);
            }
            Some(_) if outcome.verdict != Verdict::Hit => self.note_moved(access.tenant, outcome),
            _ => {}
        }
        outcome
    }

    /// Notes what an access did, and why it missed.
    #[inline(never)]
    fn explain(&mut self, access: BlockAccess, outcome: AccessOutcome) {
        let BlockAccess { block, tenant, future, .. } = access;
        let evicted_of = self.owner_of_evicted(tenant, outcome.verdict);
        let Some(blame) = &mut self.blame else { return };
        if outcome.verdict != Verdict::Hit {
            blame.count_miss(tenant);
        }
        match outcome.verdict {
            Verdict::Hit => blame.hit(tenant, block, future),
            Verdict::Admit { .. } => blame.missed(tenant, block, future, true, evicted_of),
            Verdict::Bypass if outcome.invalidated => blame.written_past(tenant, block, future),
            Verdict::Bypass => blame.missed(tenant, block, future, false, None),
        }
    }

    /// Notes what a miss that is not explained did to the blocks that tenants hold.
    #[inline(never)]
    fn note_moved(&mut self, tenant: TenantId, outcome: AccessOutcome) {
        let evicted_of = self.owner_of_evicted(tenant, outcome.verdict);
        let Some(blame) = &mut self.blame else { return };
        blame.count_miss(tenant);
        match outcome.verdict {
            Verdict::Admit { .. } => blame.moved(tenant, evicted_of),
            Verdict::Bypass if outcome.invalidated => blame.taken(tenant, Reason::Bypassed),
            Verdict::Hit | Verdict::Bypass => {}
        }
    }

    /// Whose block was evicted in the pool of `tenant`, by a verdict.
    fn owner_of_evicted(&self, tenant: TenantId, verdict: Verdict) -> Option<TenantId> {
        let Verdict::Admit { evicted: Some(evicted) } = verdict else { return None };
        Some(TenantId(self.pools[self.pool_of(tenant)].owner_of(evicted)))
    }

    /// Notes a block that has come in without an access that counts.
    fn note_came_in(&mut self, tenant: TenantId, block: BlockId, verdict: Verdict) {
        if self.blame.is_none() || !matches!(verdict, Verdict::Admit { .. }) {
            return;
        }
        let evicted_of = self.owner_of_evicted(tenant, verdict);
        if let Some(blame) = &mut self.blame {
            blame.came_in(tenant, block, evicted_of);
        }
    }

    /// Lets `divide` evict blocks of a pool, which are given to `left` and noted as taken by a
    /// division.
    fn dividing(
        &mut self,
        pool: usize,
        left: &mut dyn FnMut(usize, BlockId, bool),
        divide: impl FnOnce(&mut Pools<P>, &mut dyn FnMut(usize, BlockId, bool)),
    ) {
        let Some(blame) = &mut self.blame else { return divide(&mut self.pools, left) };
        let mut evicted = Vec::new();
        divide(&mut self.pools, &mut |pool, block, dirty| {
            evicted.push(block);
            left(pool, block, dirty);
        });
        for block in evicted {
            blame.taken(TenantId(self.pools[pool].owner_of(block)), Reason::Division);
        }
        blame.set_capacity(pool, self.pools[pool].policy.capacity());
    }

    /// Decides about one block access of a request that goes past the cache, and counts it: a block
    /// that is cached is accessed as by [`Engine::access`], so that a read is served and a write
    /// leaves nothing old behind. Any other stays out, and no policy learns of it.
    #[inline(never)]
    pub fn pass(&mut self, access: BlockAccess) -> AccessOutcome {
        if self.pools[self.pool_of(access.tenant)].policy.contains(access.block) {
            return self.access(access);
        }
        self.pools.counters_mut().bypass(access.tenant, access.write);
        let outcome =
            AccessOutcome { verdict: Verdict::Bypass, writeback: false, invalidated: false };
        self.explain(access, outcome);
        outcome
    }

    /// Counts the bytes of accesses that were decided, of reads or of writes, and those that hit.
    #[inline(always)]
    pub fn count_bytes(&mut self, tenant: TenantId, write: bool, bytes: u64, hit_bytes: u64) {
        self.pools.counters_mut().bytes(tenant, write, bytes, hit_bytes);
    }

    /// Counts a request that goes past the cache, or `bytes` of it; `ends` is set with the last of
    /// them.
    pub fn count_cut_off(&mut self, tenant: TenantId, bytes: u64, ends: bool) {
        self.pools.counters_mut().cut_off(tenant, bytes, ends);
    }

    #[inline(always)]
    fn read(&mut self, access: BlockAccess) -> AccessOutcome {
        let outcome = self.consult(access);
        self.pools.counters_mut().read(access.tenant, outcome.verdict);
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
                let (invalidated, _) = self.pools.lose(access.tenant, access.block, reason);
                AccessOutcome { invalidated, ..kept_out }
            }
        };
        self.pools.counters_mut().write(access.tenant, outcome.verdict);
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
        let writeback = self.pools.admit(access.tenant, access.block, verdict);
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
        self.note_came_in(tenant, block, verdict);
        if dirty && outcome.verdict != Verdict::Bypass {
            self.pools[pool].set_dirty(block);
        }
        outcome
    }

    /// Puts a block that is not cached before the policy as if it were read, and counts no access.
    pub fn bring_in(&mut self, tenant: TenantId, block: BlockId) -> AccessOutcome {
        let outcome =
            self.consult(BlockAccess { block, tenant, write: false, future: Future::None });
        self.note_came_in(tenant, block, outcome.verdict);
        outcome
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
        self.dividing(pool, left, |pools, left| pools.evict(pool, evicted, left));
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
        let (op, dirty) = self.pools.background_op(index)?;
        if let (BackgroundOp::Demote(block), Some(blame)) = (op, &mut self.blame) {
            blame.taken(TenantId(self.pools[index].owner_of(block)), Reason::Policy);
        }
        Some((op, dirty))
    }

    /// Marks a cached block clean, as being written back while it stays; returns whether it was
    /// dirty. Counted as a write-back.
    pub fn clean(&mut self, tenant: TenantId, block: BlockId) -> bool {
        self.pools.clean(tenant, block)
    }

    /// Drops a trimmed block; see [`Engine::lose`].
    pub fn discard(&mut self, tenant: TenantId, block: BlockId) -> (bool, bool) {
        self.lose(tenant, block, LossReason::Trim)
    }

    /// Drops a block without writing it back; returns whether it was cached and whether it was
    /// dirty.
    pub fn lose(&mut self, tenant: TenantId, block: BlockId, reason: LossReason) -> (bool, bool) {
        let (cached, dirty) = self.pools.lose(tenant, block, reason);
        if let Some(blame) = &mut self.blame {
            blame.dropped(tenant, block, reason, cached);
        }
        (cached, dirty)
    }

    /// Counts a miss that the caller kept from the policy.
    #[inline(always)]
    pub fn count_bypass(&mut self, tenant: TenantId, write: bool) {
        self.pools.counters_mut().bypass(tenant, write);
    }

    /// Counts one whole request.
    #[inline(always)]
    pub fn count_request(&mut self, tenant: TenantId, all_hit: bool) {
        self.pools.counters_mut().request(tenant, all_hit);
    }

    /// Counts read hits of a tenant's last request as misses, of at most so many bytes; `all_hit`:
    /// all its blocks hit.
    pub fn recount(&mut self, tenant: TenantId, blocks: u64, bytes: u64, all_hit: bool) {
        self.pools.counters_mut().recount(tenant, blocks, bytes, all_hit);
        if let Some(blame) = &mut self.blame {
            blame.recount(tenant, blocks);
        }
    }

    /// Changes the quotas while running. Pools that shrink lose blocks at once, each given to
    /// `left` as (pool, block, was dirty), or as others need them ([`Engine::make_room`]). Who uses
    /// which pool stays as it was built; other quotas are ignored and return false.
    pub fn set_quotas(
        &mut self,
        quotas: &Quotas,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) -> bool {
        if !self.fits(quotas) {
            return false;
        }
        for (index, capacity) in self.pools.set_quotas(quotas.blocks()).iter().enumerate() {
            self.resize(index, *capacity, left);
        }
        true
    }

    /// The same where the size of the cache changes, or when pools give up blocks: what all pools
    /// hold beyond all quotas leaves at once.
    pub fn divide_otherwise(
        &mut self,
        quotas: &Quotas,
        shrink: Shrink,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) -> bool {
        if !self.fits(quotas) {
            return false;
        }
        self.pools.set_shrink(shrink);
        self.set_quotas(quotas, left);
        for (index, capacity) in self.pools.fitting().into_iter().enumerate() {
            self.resize(index, capacity, left);
        }
        true
    }

    /// Makes room for a block that is to be accessed, where its pool is full and below its quota: a
    /// pool above its own gives up a block, which is given to `left` as (pool, block, was dirty).
    /// To be called before the access, which then evicts none: one block leaves for one that comes,
    /// as ever. O(pools) where room is made, and what the policies' evictions cost.
    #[inline(always)]
    pub fn make_room(&mut self, access: &BlockAccess, left: &mut dyn FnMut(usize, BlockId, bool)) {
        let pool = self.pool_of(access.tenant);
        let comes_in = !access.write || self.mode.admits_writes();
        if comes_in && self.pools.lacks_room(pool, access.block) {
            self.take_room(pool, left);
        }
    }

    #[inline(never)]
    fn take_room(&mut self, pool: usize, left: &mut dyn FnMut(usize, BlockId, bool)) {
        if let Some(donor) = self.pools.donor() {
            let blocks = self.pools[donor].policy.capacity() - 1;
            self.resize(donor, blocks, left);
        }
        let blocks = self.pools[pool].policy.capacity() + 1;
        self.resize(pool, blocks, left);
    }

    /// Whether quotas divide the cache among the same pools of the same tenants.
    pub fn fits(&self, quotas: &Quotas) -> bool {
        self.pools.tenants().fits(quotas)
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
        self.dividing(index, left, |pools, left| pools.resize(index, capacity_blocks, left));
    }

    /// Puts another policy in the place of a pool's: an empty one of the same capacity, with room
    /// for the ids of the pool. It is given the cached blocks in the order in which the old one
    /// would evict them; those that it does not keep are given to `left` as by [`Engine::resize`].
    pub fn replace_policy(
        &mut self,
        pool: usize,
        policy: P,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let mut gone = Vec::new();
        self.pools.replace_policy(pool, policy, &mut |pool, block, dirty| {
            gone.push(block);
            left(pool, block, dirty);
        });
        if let Some(blame) = &mut self.blame {
            for block in gone {
                blame.taken(TenantId(self.pools[pool].owner_of(block)), Reason::Policy);
            }
        }
    }

    /// Counters of one tenant so far.
    pub fn counts(&self, tenant: TenantId) -> &Counts {
        self.pools.counters().counts(tenant)
    }

    /// Counters of all tenants so far, in their order.
    pub fn all_counts(&self) -> &[Counts] {
        self.pools.counters().all_counts()
    }

    /// Blocks of one tenant that were dropped without write-back, by reason.
    pub fn losses(&self, tenant: TenantId) -> &Losses {
        self.pools.counters().losses(tenant)
    }

    /// Blocks a tenant holds.
    pub fn occupancy(&self, tenant: TenantId) -> u32 {
        self.pools.counters().occupancy(tenant)
    }

    /// Blocks a tenant may hold: its quota, or the whole pool it shares.
    pub fn quota(&self, tenant: TenantId) -> u32 {
        self.pools.quota(self.pool_of(tenant))
    }

    /// Blocks a pool may hold.
    pub fn quota_of_pool(&self, pool: usize) -> u32 {
        self.pools.quota(pool)
    }

    /// Dirty blocks in all pools.
    pub fn dirty_blocks(&self) -> u64 {
        self.pools.dirty_blocks()
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

    /// Loads what an access to the block will need into the processor's cache; see
    /// [`Policy::touch`].
    #[inline(always)]
    pub fn prefetch(&self, tenant: TenantId, block: BlockId) {
        let pool = self.pool_of(tenant);
        self.pools[pool].policy.touch(block);
        if let Some(blame) = &self.blame {
            blame.touch(pool, block);
        }
    }

    /// Checks every invariant of the engine and its policies, slowly.
    pub fn audit(&self) -> Result<(), String> {
        self.pools.audit()?;
        let occupancy = |tenant| self.occupancy(tenant);
        self.blame.as_ref().map_or(Ok(()), |blame| blame.audit(occupancy))
    }

    /// Splits the shadow partitions of a pool's policy anew; blocks that leave for it are given to
    /// `left` as by [`Engine::resize`].
    pub fn split(
        &mut self,
        pool: usize,
        split: ShadowSplit,
        left: &mut dyn FnMut(usize, BlockId, bool),
    ) {
        let mut evicted = Vec::new();
        self.pools[pool].policy.split(split, &mut evicted);
        self.dividing(pool, left, |pools, left| pools.evict(pool, evicted, left));
    }

    /// Changes where writes go from now on. A block that is dirty stays so until it is cleaned or
    /// leaves. Errors: the number of dirty blocks, for modes in which a write does not reach them:
    /// write-through first, then [`Engine::next_dirty`] and [`Engine::clean`] until none is left.
    pub fn set_mode(&mut self, mode: WriteMode) -> Result<(), u64> {
        let dirty = self.dirty_blocks();
        if dirty > 0 && !matches!(mode, WriteMode::WriteBack | WriteMode::WriteThrough) {
            return Err(dirty);
        }
        self.mode = mode;
        Ok(())
    }

    /// Gives a pool's policy other trained models, each with its name. Blocks stay in the cache.
    /// Errors: those of [`PolicyHooks::load_models`](cachewright_policy::PolicyHooks::load_models);
    /// the models before stay in use.
    pub fn load_models(&mut self, pool: usize, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.pools[pool].policy.load_models(models)
    }

    /// The first dirty block of a pool from `from` on, and its tenant.
    pub fn next_dirty(&self, pool: usize, from: BlockId) -> Option<(TenantId, BlockId)> {
        let pool = &self.pools[pool];
        let block = pool.next_dirty(from)?;
        Some((TenantId(pool.owner_of(block)), block))
    }
}

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

choices! {
    /// Where a write goes, and what it does to the cached copy. Sources: Open CAS's cache modes for
    /// the first three; EnhanceIO's for `read-only`.
    #[derive(Default)]
    pub enum WriteMode {
        /// Into the cache only; the block is dirty until it is written back on leaving.
        #[default]
        WriteBack = "write-back",
        /// Into the cache and the backing store; nothing is ever dirty.
        WriteThrough = "write-through",
        /// Into the backing store; a cached copy is updated, a missing one is not brought in.
        WriteAround = "write-around",
        /// Into the backing store; a cached copy is dropped.
        ReadOnly = "read-only",
    }
}

impl WriteMode {
    /// Whether a block can come into the cache because it is written.
    fn admits_writes(self) -> bool {
        matches!(self, WriteMode::WriteBack | WriteMode::WriteThrough)
    }

    /// How derived figures count a write.
    pub fn effect(self) -> WriteEffect {
        match self {
            WriteMode::WriteBack => WriteEffect::Back,
            WriteMode::WriteThrough | WriteMode::WriteAround => WriteEffect::Through,
            WriteMode::ReadOnly => WriteEffect::Invalidate,
        }
    }
}
