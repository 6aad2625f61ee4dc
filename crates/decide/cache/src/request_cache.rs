//! Requests in bytes to plans over blocks.
//!
//! A request is split into blocks; each gets an id from the index of its pool, the engine decides
//! about it, and the moves that follow go to the plan. The id of a block is free again once the
//! policy has forgotten it.

use crate::index::{BlockAddress, MIN_LOADED_IDS, SparseIndex};
use crate::{AccessOutcome, BlockAccess, Cached, Engine, Move, Plan, Quotas, Shrink, WriteMode};
use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{Future, FutureSlice, Policy, Region, RequestInfo, Verdict};
use cachewright_snapshot::Snapshot;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Op, Request, TenantId, block_numbers, whole_block_numbers};
use std::collections::BTreeSet;
use std::ops::Range;

/// A cache over the tenants' sparse address spaces.
#[derive(Clone, Debug, Snapshot)]
pub struct Cache<P> {
    engine: Engine<P>,
    /// One per pool.
    indexes: Vec<SparseIndex>,
    #[snapshot(settings)]
    block_shift: u32,
}

/// Called with each block that leaves: its pool, its id there, whether it was dirty.
pub type Left<'a> = &'a mut dyn FnMut(usize, BlockId, bool);

impl<P: Policy> Cache<P> {
    /// A cache of blocks of `1 << block_shift` bytes around `engine`, which must be empty.
    pub fn new(engine: Engine<P>, block_shift: u32) -> Self {
        let indexes = vec![SparseIndex::default(); engine.pools()];
        Cache { engine, indexes, block_shift }
    }

    /// The engine, for counters and audits.
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// Ids held by all indexes: follows the cache's size, not the volumes'.
    pub fn ids(&self) -> usize {
        self.indexes.iter().map(SparseIndex::ids).sum()
    }

    /// Explains misses from here on; see [`Engine::explain_misses`]. Blocks that are cached by now
    /// are as if they had come in now, in the order of their ids.
    pub fn explain_misses(&mut self, whole_blocks: u32) {
        self.engine.explain_misses(whole_blocks, false, false);
        for (pool, index) in self.indexes.iter().enumerate() {
            self.engine.note_held(pool, index.ids());
        }
    }

    /// Counts causes of misses from here on; see [`Engine::explain_misses`].
    pub fn begin_causes(&mut self) {
        self.engine.begin_causes();
    }

    /// Checks every invariant of the engine, its policies and the indexes, slowly. Errors: the rule
    /// broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.engine.audit()?;
        self.indexes.iter().try_for_each(SparseIndex::audit)
    }

    /// Decides about a request; the moves replace what `plan` held.
    pub fn on(&mut self, request: &Request, plan: &mut Plan) {
        self.on_knowing(request, FutureSlice::None, plan);
    }

    /// The same for policies that need the future: `futures` are those of the accesses to each
    /// block of a read or write, in order.
    pub fn on_knowing(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.on_each(request, futures, plan, &mut |_, _| {});
    }

    /// The same; `each` is given what became of each block of a read or write, by its number.
    pub fn on_each(
        &mut self,
        request: &Request,
        futures: FutureSlice<'_>,
        plan: &mut Plan,
        each: &mut impl FnMut(u64, AccessOutcome),
    ) {
        self.decide::<false>(request, futures, plan, each);
    }

    /// Decides about a request that goes past the cache: what is cached of it is read and written
    /// there, and nothing comes in; see [`Engine::pass`]. `futures` as in [`Cache::on_knowing`].
    pub fn on_cut_off(&mut self, request: &Request, futures: FutureSlice<'_>, plan: &mut Plan) {
        self.decide::<true>(request, futures, plan, &mut |_, _| {});
        if matches!(request.op, Op::Read | Op::Write) {
            self.engine.count_cut_off(request.tenant, request.length.0, true);
        }
    }

    fn decide<const PAST: bool>(
        &mut self,
        request: &Request,
        futures: FutureSlice<'_>,
        plan: &mut Plan,
        each: &mut impl FnMut(u64, AccessOutcome),
    ) {
        plan.clear();
        match request.op {
            Op::Flush => plan.moves.push(Move::Flush),
            Op::Trim => {
                let mut rest = self.begin_trim(request);
                while !self.trim_some(&mut rest, u32::MAX, plan) {}
            }
            Op::Read | Op::Write => {
                self.engine.on_request(request.tenant, &RequestInfo::from(request));
                for (at, part) in BlockPart::all_of(request, self.block_shift).enumerate() {
                    let future = futures.at(at);
                    each(part.number, self.decide_block::<PAST>(request, &part, future, plan));
                }
                self.engine.count_request(request.tenant, plan.all_hit);
            }
        }
    }

    /// Counts hits of a tenant's last request as misses, of whole blocks; see [`Engine::recount`].
    pub fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.engine.recount(tenant, blocks, blocks << self.block_shift, all_hit);
    }

    /// Changes the quotas; write-backs and drops this causes replace what `plan` held.
    pub fn set_quotas(&mut self, quotas: &Quotas, plan: &mut Plan) -> bool {
        let mut kept = false;
        self.control(plan, |engine, left| kept = engine.set_quotas(quotas, left));
        kept
    }

    /// The same at a reload, which may change the size of the cache, and when tenants give up what
    /// they hold beyond their quotas; see [`Engine::divide_otherwise`].
    pub fn divide_otherwise(&mut self, quotas: &Quotas, shrink: Shrink, plan: &mut Plan) -> bool {
        let mut kept = false;
        self.control(plan, |engine, left| kept = engine.divide_otherwise(quotas, shrink, left));
        kept
    }

    /// Lets a control loop change the engine's quotas: it is given the engine and a function
    /// to report each block that leaves; the write-backs and drops replace what `plan` held.
    pub fn control(&mut self, plan: &mut Plan, change: impl FnOnce(&mut Engine<P>, Left<'_>)) {
        plan.clear();
        let indexes = &self.indexes;
        change(&mut self.engine, &mut |pool, block, dirty| {
            plan.leave(name(indexes, pool, block), dirty);
        });
        self.release_all(&plan.moves);
    }

    /// Puts other policies in the place of those of all pools; `make` builds one for the pool of an
    /// index, of its capacity. The blocks stay, but for those that the new policies do not
    /// keep: their write-backs and drops replace what `plan` held. See [`Engine::replace_policy`].
    pub fn replace_policies(&mut self, plan: &mut Plan, mut make: impl FnMut(usize, u32) -> P) {
        let ids: Vec<usize> = self.indexes.iter().map(SparseIndex::ids).collect();
        self.control(plan, |engine, left| {
            for (pool, ids) in ids.into_iter().enumerate() {
                let mut policy = make(pool, engine.policy(pool).capacity());
                policy.reserve_ids(ids);
                engine.replace_policy(pool, policy, left);
            }
        });
        self.reserve();
    }

    /// Decides about one block of a read or write, and adds what follows to the plan.
    fn decide_block<const PAST: bool>(
        &mut self,
        request: &Request,
        part: &BlockPart,
        future: Future,
        plan: &mut Plan,
    ) -> AccessOutcome {
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let cached = self.named(tenant, part.number);
        let access = BlockAccess { block: cached.id, tenant, write, future };
        let outcome = if PAST {
            self.engine.pass(access)
        } else {
            self.make_room(&access, plan);
            self.engine.access(access)
        };
        let hit = outcome.verdict == Verdict::Hit;
        self.engine.count_bytes(tenant, write, part.bytes, if hit { part.bytes } else { 0 });
        plan.all_hit &= hit;
        let cached = self.placed(cached);
        let named = |id| name(&self.indexes, usize::from(cached.pool), id);
        if write {
            let through = self.engine.mode() != WriteMode::WriteBack;
            plan.write(cached, outcome, part.whole, through, named);
        } else {
            plan.read(cached, outcome, named);
        }
        let evicted = match outcome.verdict {
            Verdict::Hit => return outcome,
            Verdict::Admit { evicted } => evicted,
            Verdict::Bypass => Some(cached.id),
        };
        if let Some(id) = evicted {
            self.release(cached.pool.into(), id);
            self.load_next_evicted(cached.pool.into());
        }
        outcome
    }

    /// Makes room for an access; see [`Engine::make_room`].
    #[inline(always)]
    fn make_room(&mut self, access: &BlockAccess, plan: &mut Plan) {
        let (planned, indexes) = (plan.moves.len(), &self.indexes);
        self.engine.make_room(access, &mut |pool, block, dirty| {
            plan.leave(name(indexes, pool, block), dirty);
        });
        self.release_all(&plan.moves[planned..]);
    }

    /// Loads what the decision about a coming request will read first, so that the waits for memory
    /// of several requests overlap. Changes nothing.
    #[inline]
    pub fn prefetch(&self, request: &Request) {
        let number = request.offset.0 >> self.block_shift;
        let pool = self.engine.pool_of(request.tenant);
        let index = &self.indexes[pool];
        if let Some(id) = index.likely_id(BlockAddress { tenant: request.tenant, number }) {
            index.load_id(id);
            self.engine.policy(pool).touch(id);
        }
    }

    /// Loads what evicting the next blocks of a pool will read; called after an eviction. Each
    /// place is known only once the one before it has come: first the id and its state, then the
    /// head of its chain, then the chain.
    #[inline(always)]
    fn load_next_evicted(&self, pool: usize) {
        let (index, policy) = (&self.indexes[pool], self.engine.policy(pool));
        if index.ids() < MIN_LOADED_IDS {
            return;
        }
        if let Some(id) = policy.leaves_after(3) {
            index.load_id(id);
            policy.touch(id);
        }
        let address = |later| index.address_of(policy.leaves_after(later)?);
        if let Some(address) = address(2) {
            index.load_head(address);
        }
        if let Some(address) = address(1) {
            index.load_first(address);
        }
        if let Some(address) = address(0) {
            index.load_second(address);
        }
    }

    /// Gives the id of a block back once its policy has forgotten it.
    #[inline(always)]
    fn release(&mut self, pool: usize, id: BlockId) {
        if !self.engine.tracks(pool, id) {
            self.indexes[pool].release(id);
        }
    }

    /// The same for all blocks that moves take out of the cache.
    fn release_all(&mut self, moves: &[Move]) {
        for cached in moves.iter().filter_map(Move::leaving) {
            self.release(cached.pool.into(), cached.id);
        }
    }

    /// Whether a block is cached.
    pub fn contains(&self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.policy(pool).contains(id))
    }

    /// The full name of a block, if it is cached.
    pub fn find(&self, tenant: TenantId, number: u64) -> Option<Cached> {
        let pool = self.engine.pool_of(tenant);
        let id = self.indexes[pool].get(BlockAddress { tenant, number })?;
        self.engine.policy(pool).contains(id).then(|| self.cached(pool, id))
    }

    /// The id of a block in its pool, if the pool knows it.
    pub fn id_of(&self, tenant: TenantId, number: u64) -> Option<BlockId> {
        self.indexes[self.engine.pool_of(tenant)].get(BlockAddress { tenant, number })
    }

    /// The block of that number under an id of its pool, given one if it has none.
    fn named(&mut self, tenant: TenantId, number: u64) -> Cached {
        let pool = self.engine.pool_of(tenant);
        // The policy's state of a block is loaded while the chain is walked.
        let load = |id| self.engine.policy(pool).touch(id);
        match self.indexes[pool].get_loading(BlockAddress { tenant, number }, load) {
            Some(id) => Cached { pool: pool as u16, id, tenant, number, region: Region::Any },
            None => self.named_anew(tenant, number),
        }
    }

    /// The block of that number, which has no id, under a new one.
    fn named_anew(&mut self, tenant: TenantId, number: u64) -> Cached {
        let pool = self.engine.pool_of(tenant);
        let engine = &self.engine;
        let tracks = |id| engine.tracks(pool, id);
        let before = self.indexes[pool].ids();
        let id = self.indexes[pool].add(BlockAddress { tenant, number }, tracks);
        if self.indexes[pool].ids() > before {
            self.engine.reserve_ids(pool, before + 1);
        }
        self.engine.name(pool, id, tenant, number);
        Cached { pool: pool as u16, id, tenant, number, region: Region::Any }
    }

    /// The background operations of a pool's policy; the moves replace what `plan` held. To be
    /// called after each request of one of its tenants, at `now_ns`.
    pub fn background_ops_at(&mut self, pool: usize, now_ns: u64, plan: &mut Plan) {
        self.engine.clock(pool, now_ns);
        self.background_ops(pool, plan);
    }

    /// The same without a clock.
    pub fn background_ops(&mut self, pool: usize, plan: &mut Plan) {
        plan.moves.clear();
        while let Some((op, dirty)) = self.engine.background_op(pool) {
            plan.operate(op, dirty, |block| self.cached(pool, block));
        }
        if P::has_regions_or_background_ops() {
            self.release_all(&plan.moves);
        }
    }

    /// The full name of a block, with the region that its policy wants for it.
    fn cached(&self, pool: usize, block: BlockId) -> Cached {
        self.placed(name(&self.indexes, pool, block))
    }

    /// The same block with the region that its policy wants for it.
    #[inline(always)]
    fn placed(&self, cached: Cached) -> Cached {
        if !P::has_regions_or_background_ops() {
            return cached;
        }
        let region = self.engine.policy(usize::from(cached.pool)).region(cached.id);
        Cached { region, ..cached }
    }

    /// Brings a block in before it is accessed (read-ahead); its moves are added to `plan`.
    /// Returns whether it was brought in: not if it is cached or the policy keeps it out. Counted
    /// as no access; an eviction it causes is counted.
    pub fn bring_in(&mut self, tenant: TenantId, number: u64, plan: &mut Plan) -> bool {
        if self.contains(tenant, number) {
            return false;
        }
        let cached = self.named(tenant, number);
        let read = BlockAccess { block: cached.id, tenant, write: false, future: Future::None };
        self.make_room(&read, plan);
        let outcome = self.engine.bring_in(tenant, cached.id);
        let Verdict::Admit { evicted } = outcome.verdict else { return false };
        let cached = self.placed(cached);
        plan.evict(evicted, outcome.writeback, |id| {
            name(&self.indexes, usize::from(cached.pool), id)
        });
        plan.fetch(cached);
        if let Some(evicted) = evicted {
            self.release(cached.pool.into(), evicted);
        }
        true
    }

    /// Takes in a block past admission control: one that recovery found, oldest first, or a victim
    /// whose write-back failed. Moves of the eviction it causes replace what `plan` held. A block
    /// that is cached stays, and is dirty from now on if `dirty`. Returns what became of it: with
    /// `None` the policy refuses it, and a dirty block has to be written back.
    pub fn adopt(
        &mut self,
        tenant: TenantId,
        number: u64,
        dirty: bool,
        plan: &mut Plan,
    ) -> Option<Cached> {
        let cached = self.named(tenant, number);
        self.adopt_named(cached, dirty, plan)
    }

    /// The same for a block of which the cache knows nothing, as every block that recovery found:
    /// it is not looked for. [`Cache::prefetch_address`] loads what this reads.
    pub fn adopt_new(
        &mut self,
        tenant: TenantId,
        number: u64,
        dirty: bool,
        plan: &mut Plan,
    ) -> Option<Cached> {
        let cached = self.named_anew(tenant, number);
        self.adopt_named(cached, dirty, plan)
    }

    /// Starts to load what naming a block reads, ahead of its use.
    #[inline]
    pub fn prefetch_address(&self, tenant: TenantId, number: u64) {
        self.indexes[self.engine.pool_of(tenant)].load_head(BlockAddress { tenant, number });
    }

    fn adopt_named(&mut self, cached: Cached, dirty: bool, plan: &mut Plan) -> Option<Cached> {
        plan.moves.clear();
        let pool = usize::from(cached.pool);
        let outcome = self.engine.adopt(cached.tenant, cached.id, dirty);
        let evicted = match outcome.verdict {
            Verdict::Hit => None,
            Verdict::Admit { evicted } => evicted,
            Verdict::Bypass => {
                self.release(pool, cached.id);
                return None;
            }
        };
        plan.evict(evicted, outcome.writeback, |id| name(&self.indexes, pool, id));
        if let Some(evicted) = evicted {
            self.release(pool, evicted);
        }
        Some(self.placed(cached))
    }

    /// A block was found in the log at a start, and is not kept; see
    /// [`Engine::note_dropped_at_restart`].
    pub fn note_dropped_at_restart(&mut self, tenant: TenantId, number: u64) {
        self.engine.note_dropped_at_restart(tenant, number);
    }

    /// Forgets a block whose copy is lost, counted under the reason. Returns it, and whether its
    /// only content is lost.
    pub fn forget(
        &mut self,
        tenant: TenantId,
        number: u64,
        reason: LossReason,
    ) -> Option<(Cached, bool)> {
        let pool = self.engine.pool_of(tenant);
        let id = self.indexes[pool].get(BlockAddress { tenant, number })?;
        let cached = self.cached(pool, id);
        let (was_cached, dirty) = self.engine.lose(tenant, id, reason);
        self.release(pool, id);
        was_cached.then_some((cached, dirty))
    }

    /// One more tenant; see [`Engine::add_tenant`].
    pub fn add_tenant(
        &mut self,
        capacity_blocks: u32,
        make: impl FnOnce(usize, u32) -> P,
    ) -> Option<TenantId> {
        let tenant = self.engine.add_tenant(capacity_blocks, make)?;
        self.indexes.resize(self.engine.pools(), SparseIndex::default());
        Some(tenant)
    }

    /// Changes where writes go; see [`Engine::set_mode`]. Errors: the number of dirty blocks.
    pub fn set_mode(&mut self, mode: WriteMode) -> Result<(), u64> {
        self.engine.set_mode(mode)
    }

    /// Gives a pool's policy other trained models; see [`Engine::load_models`].
    pub fn load_models(&mut self, pool: usize, models: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.engine.load_models(pool, models)
    }

    /// A trim, to be carried out by [`Cache::trim_some`]. Until it is done no other request may
    /// touch its range.
    pub fn begin_trim(&self, request: &Request) -> TrimRest {
        let ids = self.indexes[self.engine.pool_of(request.tenant)].ids();
        let mut rest = TrimRest::new(request, self.block_shift, ids);
        if rest.by_id {
            rest.found = self.engine.looked_at(request.tenant, &rest.blocks);
        }
        rest
    }

    /// Looks at the next `max_blocks` blocks of a trim, or ids if they are fewer: those that lie
    /// wholly inside its range leave the cache; the trim itself goes on at the end. The moves are
    /// added to `plan`. Returns whether that was the end.
    pub fn trim_some(&mut self, rest: &mut TrimRest, max_blocks: u32, plan: &mut Plan) -> bool {
        let tenant = rest.tenant();
        let pool = self.engine.pool_of(tenant);
        for _ in 0..max_blocks {
            let found = match rest.next() {
                None => {
                    plan.moves.push(Move::Trim);
                    return true;
                }
                Some(Target::Number(number)) => {
                    let known = self.indexes[pool].get(BlockAddress { tenant, number });
                    if known.is_none() {
                        self.engine.note_trimmed(tenant, number);
                    }
                    known
                }
                Some(Target::Id(id)) => {
                    if let Some(address) = self.indexes[pool].address_of(id) {
                        rest.note(address);
                    }
                    continue;
                }
            };
            let Some(id) = found else { continue };
            let cached = name(&self.indexes, pool, id);
            let (was_cached, dirty) = self.engine.discard(tenant, id);
            if was_cached {
                plan.moves.push(Move::Discard { cached, dirty });
            }
            self.release(pool, id);
        }
        false
    }
}

/// The full name of a cached block.
fn name(indexes: &[SparseIndex], pool: usize, id: BlockId) -> Cached {
    let BlockAddress { tenant, number } = indexes[pool].address(id);
    Cached { pool: pool as u16, id, tenant: TenantId(tenant.0), number, region: Region::Any }
}

impl<P: Policy> Cache<P> {
    /// Cleans dirty blocks of a pool, at most `max_blocks`, from the id `from` on; the write-backs
    /// replace what `plan` held. Returns where to go on, or nothing at the end.
    pub fn clean_some(
        &mut self,
        pool: usize,
        from: BlockId,
        max_blocks: u32,
        plan: &mut Plan,
    ) -> Option<BlockId> {
        plan.moves.clear();
        let mut next = from;
        for _ in 0..max_blocks {
            let (tenant, block) = self.engine.next_dirty(pool, next)?;
            self.engine.clean(tenant, block);
            plan.moves.push(Move::Clean(self.cached(pool, block)));
            next = BlockId(block.0 + 1);
        }
        Some(next)
    }

    /// Takes blocks of a tenant out of the cache because it is removed: of at most `max_ids` ids
    /// from `from` on. Dirty ones are written back; the moves replace what `plan` held. Returns
    /// where to go on, or nothing at the end.
    pub fn remove_some(
        &mut self,
        tenant: TenantId,
        from: BlockId,
        max_ids: u32,
        plan: &mut Plan,
    ) -> Option<BlockId> {
        plan.moves.clear();
        let pool = self.engine.pool_of(tenant);
        let ids = self.indexes[pool].ids() as u32;
        let end = from.0.saturating_add(max_ids).min(ids);
        for id in (from.0..end).map(BlockId) {
            let address = self.indexes[pool].address_of(id);
            let own = address.is_some_and(|address| address.tenant == tenant);
            if !own || !self.engine.policy(pool).contains(id) {
                continue;
            }
            let cached = self.cached(pool, id);
            let dirty = self.engine.clean(tenant, id);
            self.engine.lose(tenant, id, LossReason::Removal);
            plan.leave(cached, dirty);
            self.release(pool, id);
        }
        (end < ids).then_some(BlockId(end))
    }

    /// Marks a cached block clean because it is being written back while it stays; returns whether
    /// it was dirty. Counted as a write-back.
    pub fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.clean(tenant, id))
    }

    /// Whether a block is cached and dirty.
    pub fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.is_dirty(tenant, id))
    }

    /// Reserves memory for all that the pools will remember at the capacities they have, so that no
    /// decision pauses to move what is there.
    pub fn reserve(&mut self) {
        (0..self.indexes.len()).for_each(|pool| self.reserve_pool(pool));
    }

    fn reserve_pool(&mut self, pool: usize) {
        let ids = self.needed_ids(pool);
        self.indexes[pool].reserve(ids);
        self.engine.reserve_ids(pool, ids);
    }

    /// The most ids that a pool needs at its capacity.
    fn needed_ids(&self, pool: usize) -> usize {
        SparseIndex::max_ids(self.engine.policy(pool).max_tracked())
    }

    /// Gives back the ids and the memory that pools have kept from larger capacities, where their
    /// policy can. Blocks get new ids: `renamed` is told pool, old and new id of each block that is
    /// tracked, in ascending order of both, and what its owner holds by id must follow. Memory for
    /// the present capacities is reserved again. Costs a visit per id of such a pool; to be called
    /// after quotas have changed. Returns how many ids are gone.
    pub fn compact(&mut self, renamed: &mut dyn FnMut(usize, BlockId, BlockId)) -> usize {
        let mut gone = 0;
        for pool in 0..self.indexes.len() {
            let before = self.indexes[pool].ids();
            if before <= self.needed_ids(pool) {
                continue;
            }
            let ids = Renumbering::keeping(before, |id| self.engine.tracks(pool, id));
            if self.engine.renumber(pool, &ids) {
                self.indexes[pool].renumber(&ids);
                self.reserve_pool(pool);
                ids.pairs().for_each(|(old, new)| renamed(pool, old, new));
                gone += before - ids.kept();
            }
        }
        gone
    }
}

/// What to look at next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The block of this number.
    Number(u64),
    /// The block of this id: [`TrimRest::note`] is to be told its address.
    Id(BlockId),
}

/// What is left of a trim that is carried out in pieces. A trim may cover a volume, so it costs the
/// smaller of its blocks and the ids that the pool had when it began. Blocks leave by ascending
/// number either way, as in a replay: to some policies the order matters.
#[derive(Clone, Debug)]
pub struct TrimRest {
    tenant: TenantId,
    /// Numbers of the blocks that lie wholly inside.
    blocks: Range<u64>,
    /// What has not been looked at: numbers, or ids if these are fewer.
    rest: Range<u64>,
    by_id: bool,
    /// Blocks of ids that were looked at, and those without ids whose trim is noted.
    found: BTreeSet<u64>,
}

impl TrimRest {
    fn new(request: &Request, block_shift: u32, ids: usize) -> TrimRest {
        let blocks = whole_block_numbers(request.offset.0, request.length.0, block_shift);
        let by_id = blocks.end - blocks.start > ids as u64;
        let rest = if by_id { 0..ids as u64 } else { blocks.clone() };
        let found = BTreeSet::new();
        TrimRest { tenant: request.tenant, blocks, rest, by_id, found }
    }

    /// The tenant whose volume is trimmed.
    pub fn tenant(&self) -> TenantId {
        self.tenant
    }

    fn next(&mut self) -> Option<Target> {
        match self.rest.next() {
            Some(next) if self.by_id => Some(Target::Id(BlockId(next as u32))),
            Some(next) => Some(Target::Number(next)),
            None => self.found.pop_first().map(Target::Number),
        }
    }

    /// The address of an id that was looked at.
    fn note(&mut self, address: BlockAddress) {
        if address.tenant == self.tenant && self.blocks.contains(&address.number) {
            self.found.insert(address.number);
        }
    }
}

/// One block of a request and how much of it the request covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockPart {
    /// The block's number.
    number: u64,
    /// The request covers all of it.
    whole: bool,
    /// Bytes of it that the request covers.
    bytes: u64,
}

impl BlockPart {
    /// The blocks of a request, each of `1 << shift` bytes, in order.
    #[inline(always)]
    fn all_of(request: &Request, shift: u32) -> impl Iterator<Item = BlockPart> + use<> {
        let start = request.offset.0;
        let end = start.saturating_add(request.length.0);
        let size = 1_u64 << shift;
        block_numbers(start, request.length.0, shift).map(move |number| {
            let first = number << shift;
            let bytes = end.min(first.saturating_add(size)) - start.max(first);
            BlockPart { number, whole: bytes == size, bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::{Bytes, Nanos};

    #[test]
    fn the_first_and_the_last_block_may_be_covered_in_part() {
        let parts = |offset, length| {
            let (offset, length, tenant) = (Bytes(offset), Bytes(length), TenantId(0));
            let request = Request { time: Nanos(0), offset, length, op: Op::Read, tenant };
            BlockPart::all_of(&request, 12)
                .map(|part| (part.number, part.whole, part.bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(4096, 8192), [(1, true, 4096), (2, true, 4096)]);
        assert_eq!(parts(4097, 8191), [(1, false, 4095), (2, true, 4096)]);
        assert_eq!(parts(0, 4097), [(0, true, 4096), (1, false, 1)]);
        assert_eq!(parts(512, 512), [(0, false, 512)]);
    }
}
