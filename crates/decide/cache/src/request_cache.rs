//! Requests in bytes to plans over blocks: the engine behind an index of addresses.
//!
//! For: the decision path of a served volume (and of a simulated one with devices): split into
//! blocks, look them up, consult the engine, write down the moves. Must never know: how moves
//! are performed. Units: bytes at the border, blocks inside.

use crate::index::{BlockAddress, SparseIndex};
use crate::{AccessOutcome, BlockAccess, Cached, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::{BackgroundOp, Future, FutureSlice, Policy, Region, RequestInfo, Verdict};
use cachewright_types::{BlockId, Op, Request, TenantId};

/// A cache over the tenants' sparse address spaces.
#[derive(Clone, Debug)]
pub struct Cache<P> {
    engine: Engine<P>,
    indexes: Vec<SparseIndex>,
    block_shift: u32,
}

/// Called with each block that leaves: its pool, its id there, whether it was dirty.
pub type Left<'a> = &'a mut dyn FnMut(usize, BlockId, bool);

/// One block of a request and how much of it the request covers.
struct BlockPart {
    number: u64,
    whole: bool,
}

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
        plan.moves.clear();
        plan.all_hit = true;
        match request.op {
            Op::Flush => plan.moves.push(Move::Flush),
            Op::Trim => self.trim(request, plan),
            Op::Read | Op::Write => {
                self.engine.on_request(request.tenant, &RequestInfo::from(request));
                for (at, part) in self.parts(request).enumerate() {
                    let future = futures.at(at);
                    each(part.number, self.touch_block(request, &part, future, plan));
                }
                self.engine.count_request(request.tenant, plan.all_hit);
            }
        }
    }

    /// Counts hits of a tenant's last request as misses; see [`Engine::recount`].
    pub fn recount(&mut self, tenant: TenantId, blocks: u64, all_hit: bool) {
        self.engine.recount(tenant, blocks, all_hit);
    }

    /// Changes the quotas; write-backs and drops this causes replace what `plan` held.
    pub fn set_quotas(&mut self, quotas: &Quotas, plan: &mut Plan) -> bool {
        let mut kept = false;
        self.control(plan, |engine, left| kept = engine.set_quotas(quotas, left));
        kept
    }

    /// Lets a control loop change the engine's quotas: it is given the engine and a function
    /// to report each block that leaves; the write-backs and drops replace what `plan` held.
    pub fn control(&mut self, plan: &mut Plan, change: impl FnOnce(&mut Engine<P>, Left<'_>)) {
        plan.moves.clear();
        plan.all_hit = true;
        let indexes = &self.indexes;
        let moves = &mut plan.moves;
        change(&mut self.engine, &mut |pool, block, dirty| {
            let cached = name(indexes, pool, block);
            moves.push(if dirty { Move::WriteBack(cached) } else { Move::Drop(cached) });
        });
    }

    fn parts(&self, request: &Request) -> impl Iterator<Item = BlockPart> + use<P> {
        let (start, shift) = (request.offset.0, self.block_shift);
        let end = start.saturating_add(request.length.0);
        let size = 1_u64 << shift;
        (start >> shift..end.div_ceil(size)).map(move |number| {
            let first = number << shift;
            let whole = first >= start && end >= first.saturating_add(size);
            BlockPart { number, whole }
        })
    }

    fn touch_block(
        &mut self,
        request: &Request,
        part: &BlockPart,
        future: Future,
        plan: &mut Plan,
    ) -> AccessOutcome {
        let (tenant, write) = (request.tenant, request.op == Op::Write);
        let cached = self.named(tenant, part.number);
        let outcome = self.engine.access(BlockAccess { block: cached.id, tenant, write, future });
        plan.all_hit &= outcome.verdict == Verdict::Hit;
        let cached = self.placed(cached);
        if write {
            self.plan_write(cached, part.whole, outcome, plan);
        } else {
            self.plan_read(cached, outcome, plan);
        }
        outcome
    }

    /// Whether a block is cached.
    pub fn contains(&self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.policy(pool).contains(id))
    }

    /// The block of that number under an id of its pool, given one if it has none.
    fn named(&mut self, tenant: TenantId, number: u64) -> Cached {
        let pool = self.engine.pool_of(tenant);
        let engine = &self.engine;
        let tracks = |id| engine.policy(pool).tracks(id);
        let id = self.indexes[pool].intern(BlockAddress { tenant, number }, tracks);
        self.engine.reserve_ids(pool, self.indexes[pool].ids());
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
            let named = |block| self.cached(pool, block);
            plan.moves.extend(match op {
                BackgroundOp::Demote(block) if dirty => Some(Move::WriteBack(named(block))),
                BackgroundOp::Demote(block) => Some(Move::Drop(named(block))),
                BackgroundOp::Clean(block) => dirty.then(|| Move::Clean(named(block))),
                BackgroundOp::Swap(one, other) => Some(Move::Swap(named(one), named(other))),
            });
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
        let outcome = self.engine.bring_in(tenant, cached.id);
        let Verdict::Admit { evicted } = outcome.verdict else { return false };
        let cached = self.placed(cached);
        self.plan_eviction(cached.pool, evicted, outcome.writeback, plan);
        plan.moves.extend([Move::Fetch(cached), Move::Fill(cached)]);
        true
    }

    /// Marks a cached block clean because it is being written back while it stays; returns whether
    /// it was dirty. Counted as a write-back.
    pub fn clean(&mut self, tenant: TenantId, number: u64) -> bool {
        let pool = self.engine.pool_of(tenant);
        let known = self.indexes[pool].get(BlockAddress { tenant, number });
        known.is_some_and(|id| self.engine.clean(tenant, id))
    }

    fn plan_read(&self, cached: Cached, outcome: AccessOutcome, plan: &mut Plan) {
        match outcome.verdict {
            Verdict::Hit => plan.moves.push(Move::Serve(cached)),
            Verdict::Admit { evicted } => {
                self.plan_eviction(cached.pool, evicted, outcome.writeback, plan);
                plan.moves.extend([Move::Fetch(cached), Move::Fill(cached), Move::Serve(cached)]);
            }
            Verdict::Bypass => {
                plan.moves.push(Move::Bypass { tenant: cached.tenant, number: cached.number })
            }
        }
    }

    fn plan_write(&self, cached: Cached, whole: bool, outcome: AccessOutcome, plan: &mut Plan) {
        let through = self.engine.mode() != WriteMode::WriteBack;
        match outcome.verdict {
            Verdict::Hit => plan.moves.push(Move::Serve(cached)),
            Verdict::Admit { evicted } => {
                self.plan_eviction(cached.pool, evicted, outcome.writeback, plan);
                if !whole {
                    plan.moves.extend([Move::Fetch(cached), Move::Fill(cached)]);
                }
                plan.moves.push(Move::Serve(cached));
            }
            Verdict::Bypass => {
                if outcome.invalidated {
                    plan.moves.push(Move::Drop(cached));
                }
                let Cached { tenant, number, .. } = cached;
                plan.moves.push(Move::Bypass { tenant, number });
                return;
            }
        }
        if through {
            plan.moves.push(Move::WriteThrough(cached));
        }
    }

    fn plan_eviction(&self, pool: u16, evicted: Option<BlockId>, dirty: bool, plan: &mut Plan) {
        if let Some(evicted) = evicted {
            let loser = name(&self.indexes, usize::from(pool), evicted);
            plan.moves.push(if dirty { Move::WriteBack(loser) } else { Move::Drop(loser) });
        }
    }

    /// Blocks that lie wholly inside the trimmed range leave the cache; the trim itself goes on.
    /// Costs the smaller of the range's blocks and the index's ids: a trim may cover a volume.
    fn trim(&mut self, request: &Request, plan: &mut Plan) {
        let tenant = request.tenant;
        let pool = self.engine.pool_of(tenant);
        let size = 1_u64 << self.block_shift;
        let first = request.offset.0.div_ceil(size);
        let end = request.offset.0.saturating_add(request.length.0) >> self.block_shift;
        let ids = self.indexes[pool].ids() as u64;
        if end.saturating_sub(first) <= ids {
            for number in first..end {
                if let Some(id) = self.indexes[pool].get(BlockAddress { tenant, number }) {
                    self.drop_block(pool, id, plan);
                }
            }
        } else {
            for id in (0..ids as u32).map(BlockId) {
                let address = self.indexes[pool].address(id);
                if address.tenant == tenant && (first..end).contains(&address.number) {
                    self.drop_block(pool, id, plan);
                }
            }
        }
        plan.moves.push(Move::Trim);
    }

    fn drop_block(&mut self, pool: usize, id: BlockId, plan: &mut Plan) {
        let cached = name(&self.indexes, pool, id);
        if self.engine.discard(cached.tenant, id).0 {
            plan.moves.push(Move::Drop(cached));
        }
    }
}

/// The full name of a cached block.
fn name(indexes: &[SparseIndex], pool: usize, id: BlockId) -> Cached {
    let BlockAddress { tenant, number } = indexes[pool].address(id);
    Cached { pool: pool as u16, id, tenant: TenantId(tenant.0), number, region: Region::Any }
}
