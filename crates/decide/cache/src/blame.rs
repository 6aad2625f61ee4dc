//! The cause of each miss.
//!
//! A miss is explained by two lru caches that hold nothing but the tenant's own blocks. One is as
//! large as the whole cache: what the tenant would have alone. The other has at every moment as
//! many blocks as the tenant holds, whatever the policy does with them. What the second one would
//! have hit, the policy missed. What only the first one would have hit, the tenant lacked space
//! for, and the space has gone to another tenant, to its quota or to a division. What neither
//! would have hit is no fault of the sharing.
//!
//! Both are prefixes of one order of last uses, so that they are two lists: blocks of the second,
//! and behind them those that only the first has (its ghosts). A block that drops from one list to
//! the other notes why. Invariants: the first list is never longer than what the tenant holds, nor
//! both together than the cache; each miss is counted once. Source: the three causes of Hill and
//! Smith (IEEE Trans. Computers 38(12), 1989), where sharing and division take the place of
//! associativity. O(1) per access; where a tenant displaces its own blocks, one look at each tenant
//! of its pool.
//!
//! A sample of the blocks, in lists that are shorter in proportion, finds shares of causes at a
//! fraction of the cost (Waldspurger et al., USENIX ATC 2017): [`Causes::of_all`] makes counts of
//! them.

use cachewright_memory::{lengthen, prefetch};
use cachewright_policy::belady::Belady;
use cachewright_policy::{Access, Future, Policy, Registered, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Seed, TenantId};

/// The end of a list.
const END: u32 = u32::MAX;
/// Ids that a bound makes room for at first.
const FIRST_IDS: usize = 1024;
/// Blocks of the whole cache at least that a sample has, and the log2 of how many stand for one at
/// most. Fewer sampled misses than 1,000 or so say little.
const LEAST_SAMPLED_BLOCKS: u32 = 1024;
const MOST_SAMPLE_BITS: u32 = 6;
/// Spreads ids over all numbers (Knuth, The Art of Computer Programming 3, 6.4).
const SPREAD: u32 = 2_654_435_769;

/// The misses of one tenant by cause. Unit: block accesses. Each miss has one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The tenant has not used the block before.
    pub first_use: u64,
    /// A trim dropped it after its last use.
    pub trimmed: u64,
    /// The cache lost its copy: an error of a device, or the cleaning of a log.
    pub lost: u64,
    /// It was still on its way into the cache, where that counts as a miss.
    pub in_flight: u64,
    /// Its last use was kept out of the cache: by the policy's admission, the write mode or a
    /// sequential cut-off. An lru of the blocks that the tenant holds would have it.
    pub bypassed: u64,
    /// An lru of the blocks that the tenant holds would have it, and the policy has not; or it fell
    /// out of that lru while the policy left space unused.
    pub policy: u64,
    /// An lru of the whole cache would have it, and it was displaced within the tenant's quota.
    pub quota: u64,
    /// The same, and it was displaced when a division took blocks from the tenant.
    pub division: u64,
    /// The same, and it was displaced for another tenant, by tenant; the tenant's own place is 0.
    pub pushed_out_by: Vec<u64>,
    /// Not even an lru of the whole cache would have it; the optimum would, where that is known.
    pub capacity: u64,
    /// Neither would have it: an optimum of the whole cache for the tenant alone (`belady-bypass`)
    /// misses it as well. 0 where the future is not known.
    pub beyond: u64,
}

impl Causes {
    fn of(tenants: usize) -> Causes {
        Causes { pushed_out_by: vec![0; tenants], ..Causes::default() }
    }

    /// Misses displaced for any other tenant.
    pub fn pushed_out(&self) -> u64 {
        self.pushed_out_by.iter().sum()
    }

    /// All misses.
    pub fn total(&self) -> u64 {
        self.first_use
            + self.trimmed
            + self.lost
            + self.in_flight
            + self.bypassed
            + self.policy
            + self.quota
            + self.division
            + self.pushed_out()
            + self.capacity
            + self.beyond
    }

    /// The causes of `misses` misses, of which these are a sample: whole numbers in the same
    /// proportion, which sum to `misses`. Blocks in flight are known of all. Nothing where the
    /// sample has none.
    pub fn of_all(&self, misses: u64) -> Option<Causes> {
        let sampled = self.total() - self.in_flight;
        let misses = misses.saturating_sub(self.in_flight);
        if sampled == misses {
            return Some(self.clone());
        }
        let mut all = self.clone();
        let mut parts: Vec<(&mut u64, u64)> = Vec::new();
        let counts = [
            &mut all.first_use,
            &mut all.trimmed,
            &mut all.lost,
            &mut all.bypassed,
            &mut all.policy,
            &mut all.quota,
            &mut all.division,
            &mut all.capacity,
            &mut all.beyond,
        ];
        for count in counts.into_iter().chain(&mut all.pushed_out_by) {
            let share = u128::from(*count) * u128::from(misses);
            let whole = share.checked_div(u128::from(sampled))?;
            *count = whole as u64;
            parts.push((count, (share % u128::from(sampled)) as u64));
        }
        // What rounding down leaves goes to the largest remainders, the first of equal ones.
        let given: u64 = parts.iter().map(|(count, _)| **count).sum();
        parts.sort_by_key(|(_, rest)| std::cmp::Reverse(*rest));
        let rest = (misses - given) as usize;
        parts.into_iter().take(rest).for_each(|(count, _)| *count += 1);
        Some(all)
    }

    fn count(&mut self, reason: Reason) {
        let count = match reason {
            Reason::Tenant(tenant) => &mut self.pushed_out_by[usize::from(tenant)],
            Reason::Quota => &mut self.quota,
            Reason::Division => &mut self.division,
            Reason::Policy => &mut self.policy,
            Reason::Bypassed => &mut self.bypassed,
        };
        *count += 1;
    }
}

/// Why a block fell out of the lru of what its tenant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// For blocks of this tenant.
    Tenant(u16),
    /// Its own tenant displaced it, at its quota.
    Quota,
    /// A division took the tenant's blocks.
    Division,
    /// Its policy left space unused, or gave a block up without need.
    Policy,
    /// The same, and the block had been kept out.
    Bypassed,
}

/// What is known of a block. 4 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Never used.
    #[default]
    Unseen,
    /// In the lru of what its tenant holds.
    Kept,
    /// The same, and its last use was kept out of the cache.
    KeptOut,
    /// In the lru of the whole cache alone.
    Ghost(Reason),
    /// Used before, in neither.
    Gone,
    /// Trimmed since its last use.
    Trimmed,
    /// Lost since its last use.
    Lost,
}

/// A block in the order of its tenant.
#[derive(Clone, Copy, Debug)]
struct Node {
    newer: u32,
    older: u32,
    state: State,
}

impl Default for Node {
    fn default() -> Self {
        Node { newer: END, older: END, state: State::Unseen }
    }
}

/// A list of nodes.
#[derive(Clone, Copy, Debug)]
struct Ends {
    newest: u32,
    oldest: u32,
    len: u32,
}

impl Ends {
    const EMPTY: Ends = Ends { newest: END, oldest: END, len: 0 };

    #[inline(always)]
    fn push(&mut self, nodes: &mut [Node], id: u32) {
        let next = std::mem::replace(&mut self.newest, id);
        (nodes[id as usize].newer, nodes[id as usize].older) = (END, next);
        match nodes.get_mut(next as usize) {
            Some(next) => next.newer = id,
            None => self.oldest = id,
        }
        self.len += 1;
    }

    #[inline(always)]
    fn unlink(&mut self, nodes: &mut [Node], id: u32) {
        let Node { newer, older, .. } = nodes[id as usize];
        match nodes.get_mut(newer as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
        match nodes.get_mut(older as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
        self.len -= 1;
    }

    fn pop_oldest(&mut self, nodes: &mut [Node]) -> Option<u32> {
        let id = self.oldest;
        (id != END).then(|| {
            self.unlink(nodes, id);
            id
        })
    }
}

/// The blocks of a pool, and who fills it.
#[derive(Clone, Debug)]
struct PoolBlocks {
    nodes: Vec<Node>,
    capacity_blocks: u32,
    held_blocks: u32,
    tenants: Vec<u16>,
    /// The number of each block in the bound of its tenant; empty without bounds.
    numbers: Vec<u32>,
}

impl PoolBlocks {
    fn empty(capacity_blocks: u32) -> PoolBlocks {
        let (nodes, tenants, numbers) = (Vec::new(), Vec::new(), Vec::new());
        PoolBlocks { nodes, capacity_blocks, held_blocks: 0, tenants, numbers }
    }
}

/// The order of one tenant's blocks.
#[derive(Clone, Debug)]
struct TenantBlocks {
    pool: usize,
    /// Blocks that it holds.
    held_blocks: u32,
    /// The lru of so many blocks.
    kept: Ends,
    /// What the lru of the whole cache has besides.
    ghosts: Ends,
    bound: Option<Box<Bound>>,
}

/// The optimum of the whole cache for one tenant alone.
#[derive(Clone, Debug)]
struct Bound {
    belady: Belady<true>,
    /// Blocks numbered so far, and those there is room for.
    numbered: usize,
    reserved: usize,
}

/// What finds the cause of each miss. It is told of all that an engine does.
#[derive(Clone, Debug)]
pub struct Blame {
    whole_blocks: u32,
    /// One block of `1 << sample_bits` is looked at: those whose spread ids begin with so many 0.
    sample_bits: u32,
    /// Whether each tenant has a bound.
    bounds: bool,
    pools: Vec<PoolBlocks>,
    tenants: Vec<TenantBlocks>,
    causes: Vec<Causes>,
}

impl Blame {
    /// Nothing explained yet, for an empty cache of `whole_blocks` blocks divided in pools of
    /// `capacities`; `pool_of` says where each tenant's blocks are. With `sampled` a large cache is
    /// looked at in a sample of its blocks; with `bounds` every access brings its next use.
    pub(crate) fn new(
        whole_blocks: u32,
        capacities: &[u32],
        pool_of: &[usize],
        sampled: bool,
        bounds: bool,
    ) -> Blame {
        let samples = whole_blocks / LEAST_SAMPLED_BLOCKS;
        let sample_bits = samples.checked_ilog2().unwrap_or(0).min(MOST_SAMPLE_BITS);
        let mut blame = Blame {
            whole_blocks,
            sample_bits: if sampled { sample_bits } else { 0 },
            bounds,
            pools: capacities.iter().map(|blocks| PoolBlocks::empty(*blocks)).collect(),
            tenants: Vec::new(),
            causes: Vec::new(),
        };
        pool_of.iter().for_each(|pool| blame.add_tenant(*pool, 0));
        blame
    }

    /// One more tenant, in `pool`; in a new one of `capacity_blocks` if there is none of that
    /// number.
    pub(crate) fn add_tenant(&mut self, pool: usize, capacity_blocks: u32) {
        if pool == self.pools.len() {
            self.pools.push(PoolBlocks::empty(capacity_blocks));
        }
        let tenant = self.tenants.len();
        self.pools[pool].tenants.push(tenant as u16);
        let bound = self.bounds.then(|| {
            let sampled_blocks = self.whole_blocks >> self.sample_bits;
            let belady = Belady::new(sampled_blocks, &NoSettings::default(), Seed(0));
            Box::new(Bound { belady, numbered: 0, reserved: 0 })
        });
        let (kept, ghosts) = (Ends::EMPTY, Ends::EMPTY);
        self.tenants.push(TenantBlocks { pool, held_blocks: 0, kept, ghosts, bound });
        self.causes.push(Causes::of(tenant));
        self.causes.iter_mut().for_each(|causes| causes.pushed_out_by.push(0));
    }

    /// Causes so far, by tenant.
    pub fn causes(&self) -> &[Causes] {
        &self.causes
    }

    /// Counts from here on; what is known of blocks stays.
    pub(crate) fn begin_counts(&mut self) {
        let tenants = self.causes.len();
        self.causes.fill(Causes::of(tenants));
    }

    /// Makes room for ids `0..count` of a pool.
    pub(crate) fn reserve_ids(&mut self, pool: usize, count: usize) {
        let pool = &mut self.pools[pool];
        lengthen(&mut pool.nodes, count, Node::default());
        if self.bounds {
            lengthen(&mut pool.numbers, count, END);
        }
    }

    /// Whether a block is looked at.
    #[inline(always)]
    pub(crate) fn samples(&self, block: BlockId) -> bool {
        u64::from(block.0.wrapping_mul(SPREAD)) >> (u32::BITS - self.sample_bits) == 0
    }

    /// Loads what an access to the block will need.
    #[inline(always)]
    pub(crate) fn touch(&self, pool: usize, block: BlockId) {
        if self.samples(block) {
            prefetch(&self.pools[pool].nodes, block.index());
        }
    }

    /// A pool may hold so many blocks from now on.
    pub(crate) fn set_capacity(&mut self, pool: usize, capacity_blocks: u32) {
        self.pools[pool].capacity_blocks = capacity_blocks;
    }

    /// An access to a block that is looked at has hit.
    pub(crate) fn hit(&mut self, tenant: TenantId, block: BlockId, future: Future) {
        self.bound_hits(tenant, block, future);
        self.used(tenant, block, State::Kept);
    }

    /// An access has missed. Where its block was `admitted`, one of the tenant `evicted_of` was
    /// evicted for it, or none.
    pub(crate) fn missed(
        &mut self,
        tenant: TenantId,
        block: BlockId,
        future: Future,
        admitted: bool,
        evicted_of: Option<TenantId>,
    ) {
        if self.samples(block) {
            let in_bound = self.bound_hits(tenant, block, future);
            let state = self.state(tenant, block);
            let causes = &mut self.causes[tenant.index()];
            match state {
                State::Unseen => causes.first_use += 1,
                State::Trimmed => causes.trimmed += 1,
                State::Lost => causes.lost += 1,
                State::Kept => causes.policy += 1,
                State::KeptOut => causes.bypassed += 1,
                State::Ghost(reason) => causes.count(reason),
                State::Gone if in_bound == Some(false) => causes.beyond += 1,
                State::Gone => causes.capacity += 1,
            }
        }
        if admitted {
            self.came_in(tenant, block, evicted_of);
        } else {
            self.used(tenant, block, State::KeptOut);
        }
    }

    /// A block has come in, as by [`Blame::missed`], without an access that counts.
    pub(crate) fn came_in(
        &mut self,
        tenant: TenantId,
        block: BlockId,
        evicted_of: Option<TenantId>,
    ) {
        self.moved(tenant, evicted_of);
        self.used(tenant, block, State::Kept);
    }

    /// The part of this that concerns blocks that are not looked at: a tenant holds a block more,
    /// and the tenant whose block was evicted one less.
    #[inline(always)]
    pub(crate) fn moved(&mut self, tenant: TenantId, evicted_of: Option<TenantId>) {
        match evicted_of {
            Some(owner) if owner == tenant => {}
            Some(owner) => {
                // Both are in one pool, which holds as much as before.
                self.tenants[tenant.index()].held_blocks += 1;
                let held_blocks = &mut self.tenants[owner.index()].held_blocks;
                debug_assert!(*held_blocks > 0, "the owner held the block that was evicted");
                *held_blocks -= 1;
                self.fit(owner, Some(Reason::Tenant(tenant.0)));
            }
            None => {
                let own = &mut self.tenants[tenant.index()];
                own.held_blocks += 1;
                self.pools[own.pool].held_blocks += 1;
            }
        }
    }

    /// A write has dropped its block from the cache, and counts as a miss.
    pub(crate) fn written_past(&mut self, tenant: TenantId, block: BlockId, future: Future) {
        if self.samples(block) {
            self.bound_hits(tenant, block, future);
            self.causes[tenant.index()].bypassed += 1;
        }
        self.hold_less(tenant);
        self.used(tenant, block, State::KeptOut);
    }

    /// So many hits of a tenant count as misses, because their blocks were on their way.
    pub(crate) fn recount(&mut self, tenant: TenantId, blocks: u64) {
        self.causes[tenant.index()].in_flight += blocks;
    }

    /// A block of a tenant has left the cache, for this reason.
    pub(crate) fn taken(&mut self, owner: TenantId, reason: Reason) {
        self.hold_less(owner);
        self.fit(owner, Some(reason));
    }

    /// A block was dropped without an eviction, and was in the cache before if `was_cached`.
    pub(crate) fn dropped(
        &mut self,
        tenant: TenantId,
        block: BlockId,
        reason: LossReason,
        was_cached: bool,
    ) {
        if was_cached {
            self.hold_less(tenant);
        }
        if !self.samples(block) {
            return self.fit(tenant, None);
        }
        self.unlink(tenant, block);
        let own = &mut self.tenants[tenant.index()];
        let pool = &mut self.pools[own.pool];
        let number = pool.numbers.get(block.index()).filter(|number| **number != END);
        if let Some((bound, number)) = own.bound.as_mut().zip(number) {
            bound.belady.remove(BlockId(*number));
        }
        let state = &mut pool.nodes[block.index()].state;
        *state = match (*state, reason) {
            (State::Unseen, _) | (_, LossReason::Removal) => State::Unseen,
            (_, LossReason::Trim) => State::Trimmed,
            _ => State::Lost,
        };
        self.fit(tenant, None);
    }

    /// Checks every invariant, slowly; `occupancy` are the blocks that each tenant holds. Errors:
    /// the rule broken, in words.
    pub(crate) fn audit(&self, occupancy: impl Fn(TenantId) -> u32) -> Result<(), String> {
        for (index, own) in self.tenants.iter().enumerate() {
            let held = occupancy(TenantId(index as u16));
            if own.held_blocks != held {
                let counted = own.held_blocks;
                return Err(format!("tenant {index} holds {held} blocks, {counted} are counted"));
            }
            let (kept, ghosts) = (own.kept.len, own.ghosts.len);
            let (most, whole) = (self.sampled(held), self.whole_blocks >> self.sample_bits);
            if kept > most || kept + ghosts > whole {
                return Err(format!("tenant {index}: {kept} blocks are kept, {ghosts} are ghosts"));
            }
            let nodes = &self.pools[own.pool].nodes;
            for (ends, is_ghost) in [(own.kept, false), (own.ghosts, true)] {
                let linked = |id: u32| (id != END).then_some(id);
                let older = |id: &u32| linked(nodes[*id as usize].older);
                let ids: Vec<u32> = std::iter::successors(linked(ends.newest), older).collect();
                let fits = |id: &u32| match nodes[*id as usize].state {
                    State::Kept | State::KeptOut => !is_ghost,
                    State::Ghost(_) => is_ghost,
                    _ => false,
                };
                if ids.len() != ends.len as usize || !ids.iter().all(fits) {
                    return Err(format!("tenant {index}: found {ids:?} in a list of {ends:?}"));
                }
            }
        }
        for (index, pool) in self.pools.iter().enumerate() {
            let held = |tenant: &u16| self.tenants[usize::from(*tenant)].held_blocks;
            let sum: u32 = pool.tenants.iter().map(held).sum();
            if sum != pool.held_blocks {
                return Err(format!("pool {index} holds {sum} blocks of {}", pool.held_blocks));
            }
        }
        Ok(())
    }

    /// How many of so many blocks a sample has.
    #[inline(always)]
    fn sampled(&self, blocks: u32) -> u32 {
        let half = (1 << self.sample_bits) / 2;
        blocks.saturating_add(half) >> self.sample_bits
    }

    fn state(&self, tenant: TenantId, block: BlockId) -> State {
        self.pools[self.tenants[tenant.index()].pool].nodes[block.index()].state
    }

    fn hold_less(&mut self, tenant: TenantId) {
        let own = &mut self.tenants[tenant.index()];
        debug_assert!(own.held_blocks > 0, "the tenant held the block that left");
        own.held_blocks -= 1;
        self.pools[own.pool].held_blocks -= 1;
    }

    /// Takes a block out of the list that it is in.
    #[inline(always)]
    fn unlink(&mut self, tenant: TenantId, block: BlockId) {
        let own = &mut self.tenants[tenant.index()];
        let nodes = &mut self.pools[own.pool].nodes;
        match nodes[block.index()].state {
            State::Kept | State::KeptOut => own.kept.unlink(nodes, block.0),
            State::Ghost(_) => own.ghosts.unlink(nodes, block.0),
            State::Unseen | State::Gone | State::Trimmed | State::Lost => {}
        }
    }

    /// A block was used: it is the newest of both lru caches.
    #[inline(always)]
    fn used(&mut self, tenant: TenantId, block: BlockId, state: State) {
        if self.samples(block) {
            self.unlink(tenant, block);
            let own = &mut self.tenants[tenant.index()];
            let nodes = &mut self.pools[own.pool].nodes;
            nodes[block.index()].state = state;
            own.kept.push(nodes, block.0);
        }
        self.fit(tenant, None);
    }

    /// Drops what is too old for either lru: for `reason`, or because the tenant itself displaced
    /// it.
    #[inline(always)]
    fn fit(&mut self, tenant: TenantId, reason: Option<Reason>) {
        let own = &self.tenants[tenant.index()];
        let over = own.kept.len > self.sampled(own.held_blocks);
        if over || own.kept.len + own.ghosts.len > self.whole_blocks >> self.sample_bits {
            self.drop_oldest(tenant, reason);
        }
    }

    #[inline(never)]
    fn drop_oldest(&mut self, tenant: TenantId, reason: Option<Reason>) {
        let reason = reason.unwrap_or_else(|| self.displaced_by(tenant));
        let most = self.sampled(self.tenants[tenant.index()].held_blocks);
        let whole = self.whole_blocks >> self.sample_bits;
        let own = &mut self.tenants[tenant.index()];
        let nodes = &mut self.pools[own.pool].nodes;
        while own.kept.len > most {
            let Some(id) = own.kept.pop_oldest(nodes) else { break };
            let state = &mut nodes[id as usize].state;
            *state = State::Ghost(match (reason, *state) {
                (Reason::Policy, State::KeptOut) => Reason::Bypassed,
                _ => reason,
            });
            own.ghosts.push(nodes, id);
        }
        while own.kept.len + own.ghosts.len > whole {
            let oldest = own.ghosts.pop_oldest(nodes).or_else(|| own.kept.pop_oldest(nodes));
            let Some(id) = oldest else { break };
            nodes[id as usize].state = State::Gone;
        }
    }

    /// Who has the space that a tenant lacks when it displaces a block of its own: the tenant that
    /// holds most of its pool, or the other pools where they are larger. The policy, where there
    /// is space, or where the tenant has it all.
    fn displaced_by(&self, tenant: TenantId) -> Reason {
        let pool = &self.pools[self.tenants[tenant.index()].pool];
        if pool.held_blocks < pool.capacity_blocks {
            return Reason::Policy;
        }
        let (mut most, mut reason) = (0, Reason::Policy);
        for other in pool.tenants.iter().filter(|other| **other != tenant.0) {
            let held = self.tenants[usize::from(*other)].held_blocks;
            if held > most {
                (most, reason) = (held, Reason::Tenant(*other));
            }
        }
        let elsewhere = self.whole_blocks.saturating_sub(pool.capacity_blocks);
        if elsewhere > most { Reason::Quota } else { reason }
    }

    /// Whether the bound of a tenant hits this access; nothing without bounds.
    #[inline(always)]
    fn bound_hits(&mut self, tenant: TenantId, block: BlockId, future: Future) -> Option<bool> {
        let own = &mut self.tenants[tenant.index()];
        let (bound, pool) = (own.bound.as_mut()?, &mut self.pools[own.pool]);
        let number = &mut pool.numbers[block.index()];
        if *number == END {
            *number = bound.numbered as u32;
            bound.numbered += 1;
            if bound.numbered > bound.reserved {
                bound.reserved = (bound.reserved * 2).max(FIRST_IDS);
                bound.belady.reserve_ids(bound.reserved);
            }
        }
        let access = Access { block: BlockId(*number), write: false, future };
        Some(bound.belady.access(access) == Verdict::Hit)
    }
}
