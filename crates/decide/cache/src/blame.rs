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
//!
//! A replay knows each block by an id of its own. A server does not: its cache gives the ids of
//! blocks that it has forgotten to others. There the sample is one of addresses ([`Names`]), of a
//! bounded number of blocks: when more have been used, half of them are dropped from the sample and
//! the lists become half as long (as the threshold of Waldspurger et al., FAST 2015, is lowered).
//! Each miss of the sample then stands for those of its tenant since the one before, so that counts
//! only rise, and sum at every moment to the misses but for the last few
//! ([`Blame::unexplained`]).

use crate::index::BlockAddress;
use cachewright_memory::{lengthen, prefetch};
use cachewright_policy::belady::Belady;
use cachewright_policy::renumber::Renumbering;
use cachewright_policy::{Access, Future, Policy, Registered, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Seed, TenantId};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

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
/// Blocks that a sample of addresses knows at most, used or not. To drop half of them takes less
/// than a millisecond.
const MOST_NAMED: usize = 16_384;
/// The log2 of how many addresses stand for one at most.
const MOST_NAME_BITS: u32 = 30;
/// Blocks of the whole cache that a sample of addresses has at first, at least.
const FIRST_NAMED_BLOCKS: u32 = 2048;

/// The misses of one tenant by cause. Unit: block accesses. Each miss has one cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The tenant has not used the block before.
    pub first_use: u64,
    /// A trim dropped it after its last use.
    pub trimmed: u64,
    /// The cache lost its copy: an error of a device, or the cleaning of a log.
    pub lost: u64,
    /// A server found it in its log when it started, and did not keep it.
    pub restart: u64,
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
            + self.restart
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
            &mut all.restart,
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

    /// What was counted since `before`, which may be of fewer tenants.
    pub fn since(&self, before: &Causes) -> Causes {
        let pushed = self.pushed_out_by.iter().enumerate();
        let earlier = |tenant: usize| before.pushed_out_by.get(tenant).copied().unwrap_or_default();
        Causes {
            first_use: self.first_use - before.first_use,
            trimmed: self.trimmed - before.trimmed,
            lost: self.lost - before.lost,
            restart: self.restart - before.restart,
            in_flight: self.in_flight - before.in_flight,
            bypassed: self.bypassed - before.bypassed,
            policy: self.policy - before.policy,
            quota: self.quota - before.quota,
            division: self.division - before.division,
            pushed_out_by: pushed.map(|(tenant, count)| count - earlier(tenant)).collect(),
            capacity: self.capacity - before.capacity,
            beyond: self.beyond - before.beyond,
        }
    }

    /// The misses of one cause.
    fn of_cause(&mut self, cause: MissCause) -> &mut u64 {
        match cause {
            MissCause::FirstUse => &mut self.first_use,
            MissCause::Trimmed => &mut self.trimmed,
            MissCause::Lost => &mut self.lost,
            MissCause::Restart => &mut self.restart,
            MissCause::Bypassed => &mut self.bypassed,
            MissCause::Policy => &mut self.policy,
            MissCause::Quota => &mut self.quota,
            MissCause::Division => &mut self.division,
            MissCause::PushedOutBy(tenant) => &mut self.pushed_out_by[tenant.index()],
            MissCause::Capacity => &mut self.capacity,
            MissCause::Beyond => &mut self.beyond,
        }
    }
}

/// The cause of one miss; see [`Causes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissCause {
    /// See [`Causes::first_use`].
    FirstUse,
    /// See [`Causes::trimmed`].
    Trimmed,
    /// See [`Causes::lost`].
    Lost,
    /// See [`Causes::restart`].
    Restart,
    /// See [`Causes::bypassed`].
    Bypassed,
    /// See [`Causes::policy`].
    Policy,
    /// See [`Causes::quota`].
    Quota,
    /// See [`Causes::division`].
    Division,
    /// See [`Causes::pushed_out_by`].
    PushedOutBy(TenantId),
    /// See [`Causes::capacity`].
    Capacity,
    /// See [`Causes::beyond`].
    Beyond,
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
    /// Found by a server that started, and not kept.
    Dropped,
}

impl State {
    /// Why a block in this state misses, as far as the past says.
    #[inline(always)]
    fn cause_of_miss(self) -> MissCause {
        match self {
            State::Unseen => MissCause::FirstUse,
            State::Trimmed => MissCause::Trimmed,
            State::Lost => MissCause::Lost,
            State::Dropped => MissCause::Restart,
            State::Kept | State::Ghost(Reason::Policy) => MissCause::Policy,
            State::KeptOut | State::Ghost(Reason::Bypassed) => MissCause::Bypassed,
            State::Ghost(Reason::Quota) => MissCause::Quota,
            State::Ghost(Reason::Division) => MissCause::Division,
            State::Ghost(Reason::Tenant(tenant)) => MissCause::PushedOutBy(TenantId(tenant)),
            State::Gone => MissCause::Capacity,
        }
    }
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

/// The blocks of a pool that are looked at by their addresses. Each has a place in the pool's order
/// of its own, whatever id the cache gives it, and has it still when the cache has forgotten it.
#[derive(Clone, Debug, Default)]
struct Names {
    places: HashMap<BlockAddress, u32, FixedState>,
    /// By place; those of `free` are of blocks that are looked at no more.
    addresses: Vec<BlockAddress>,
    free: Vec<u32>,
    /// The places of the ids that stand for blocks which are looked at, and a bit for each of these
    /// ids.
    by_id: HashMap<u32, u32, FixedState>,
    has_place: Vec<u64>,
}

impl Names {
    /// The place of a block that the cache knows by this id; nothing if it is not looked at.
    #[inline(always)]
    fn place(&self, block: BlockId) -> Option<u32> {
        let word = self.has_place.get(block.index() / u64::BITS as usize)?;
        let is_looked_at = word >> (block.0 % u64::BITS) & 1 == 1;
        if is_looked_at { self.by_id.get(&block.0).copied() } else { None }
    }

    /// The id stands for another block from now on, or for none that is looked at.
    fn forget_id(&mut self, block: BlockId) {
        if self.place(block).is_some() {
            self.by_id.remove(&block.0);
            self.has_place[block.index() / u64::BITS as usize] &= !(1 << (block.0 % u64::BITS));
        }
    }

    /// The id stands for the block of this place.
    fn set_id(&mut self, block: BlockId, place: u32) {
        let word = block.index() / u64::BITS as usize;
        lengthen(&mut self.has_place, word + 1, 0);
        self.has_place[word] |= 1 << (block.0 % u64::BITS);
        self.by_id.insert(block.0, place);
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
    names: Names,
}

impl PoolBlocks {
    fn empty(capacity_blocks: u32) -> PoolBlocks {
        let (nodes, tenants, numbers) = (Vec::new(), Vec::new(), Vec::new());
        let names = Names::default();
        PoolBlocks { nodes, capacity_blocks, held_blocks: 0, tenants, numbers, names }
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
    /// One block of `1 << sample_bits` is looked at: those whose spread ids begin with so many 0,
    /// or the hashes of their addresses.
    sample_bits: u32,
    /// Blocks are known by address.
    is_named: bool,
    /// Whether each tenant has a bound.
    bounds: bool,
    pools: Vec<PoolBlocks>,
    tenants: Vec<TenantBlocks>,
    causes: Vec<Causes>,
    /// Misses of each tenant since the last one that was looked at; 0 with ids.
    unexplained: Vec<u64>,
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
            is_named: false,
            bounds,
            pools: capacities.iter().map(|blocks| PoolBlocks::empty(*blocks)).collect(),
            tenants: Vec::new(),
            causes: Vec::new(),
            unexplained: Vec::new(),
        };
        pool_of.iter().for_each(|pool| blame.add_tenant(*pool, 0));
        blame
    }

    /// The same for a cache that gives ids to other blocks again, and says which
    /// ([`Blame::name`]).
    pub(crate) fn by_address(whole_blocks: u32, capacities: &[u32], pool_of: &[usize]) -> Blame {
        let sample_bits = (whole_blocks / FIRST_NAMED_BLOCKS).checked_ilog2().unwrap_or(0);
        let blame = Blame::new(whole_blocks, capacities, pool_of, false, false);
        Blame { sample_bits, is_named: true, ..blame }
    }

    /// Whether the cache may give an id to another block.
    pub(crate) fn is_named(&self) -> bool {
        self.is_named
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
        self.unexplained.push(0);
    }

    /// Causes so far, by tenant.
    pub fn causes(&self) -> &[Causes] {
        &self.causes
    }

    /// Misses of a tenant that the causes do not count yet: those since the last one of a sample of
    /// addresses.
    pub fn unexplained(&self, tenant: TenantId) -> u64 {
        self.unexplained[tenant.index()]
    }

    /// Why a block of a pool would miss, as far as the past says; nothing if it is not looked at.
    pub(crate) fn cause_of_miss(&self, pool: usize, block: BlockId) -> Option<MissCause> {
        let place = self.place(pool, block)?;
        self.pools[pool].nodes.get(place as usize).map(|node| node.state.cause_of_miss())
    }

    /// Counts from here on; what is known of blocks stays.
    pub(crate) fn begin_counts(&mut self) {
        let tenants = self.causes.len();
        self.causes.fill(Causes::of(tenants));
        self.unexplained.fill(0);
    }

    /// An id of a pool stands for this block from now on.
    pub(crate) fn name(&mut self, pool: usize, block: BlockId, tenant: TenantId, number: u64) {
        if !self.is_named {
            return;
        }
        let PoolBlocks { nodes, names, .. } = &mut self.pools[pool];
        names.forget_id(block);
        let address = BlockAddress { tenant, number };
        if !address.is_sampled(self.sample_bits) {
            return;
        }
        let before = names.places.len();
        let place = *names.places.entry(address).or_insert_with(|| {
            names.free.pop().unwrap_or_else(|| {
                nodes.push(Node::default());
                names.addresses.push(address);
                nodes.len() as u32 - 1
            })
        });
        names.addresses[place as usize] = address;
        names.set_id(block, place);
        if names.places.len() == before {
            return;
        }
        let named: usize = self.pools.iter().map(|pool| pool.names.places.len()).sum();
        if named > MOST_NAMED && self.sample_bits < MOST_NAME_BITS {
            self.halve();
        }
    }

    /// The ids of a pool have changed.
    pub(crate) fn renumber(&mut self, pool: usize, ids: &Renumbering) {
        let names = &mut self.pools[pool].names;
        let places = std::mem::take(&mut names.by_id);
        names.has_place = Vec::new();
        for (old, place) in places {
            if let Some(new) = ids.get(BlockId(old)) {
                names.set_id(new, place);
            }
        }
    }

    /// Drops half of the sample of addresses: what is left stands for twice as many blocks.
    fn halve(&mut self) {
        self.sample_bits += 1;
        let sample_bits = self.sample_bits;
        for pool in 0..self.pools.len() {
            let names = &mut self.pools[pool].names;
            let is_out = |address: &BlockAddress| !address.is_sampled(sample_bits);
            let gone: Vec<(BlockAddress, u32)> =
                names.places.extract_if(|address, _| is_out(address)).collect();
            let addresses = &names.addresses;
            let is_gone = |place: &u32| is_out(&addresses[*place as usize]);
            let ids = names.by_id.iter().filter(|(_, place)| is_gone(place));
            let ids: Vec<BlockId> = ids.map(|(id, _)| BlockId(*id)).collect();
            ids.into_iter().for_each(|id| names.forget_id(id));
            for (address, place) in gone {
                self.unlink(address.tenant, place);
                let PoolBlocks { nodes, names, .. } = &mut self.pools[pool];
                nodes[place as usize] = Node::default();
                names.free.push(place);
            }
        }
        (0..self.tenants.len()).for_each(|tenant| self.fit(TenantId(tenant as u16), None));
    }

    /// Makes room for ids `0..count` of a pool.
    pub(crate) fn reserve_ids(&mut self, pool: usize, count: usize) {
        let pool = &mut self.pools[pool];
        if self.is_named {
            return lengthen(&mut pool.names.has_place, count.div_ceil(u64::BITS as usize), 0);
        }
        lengthen(&mut pool.nodes, count, Node::default());
        if self.bounds {
            lengthen(&mut pool.numbers, count, END);
        }
    }

    /// The place in its pool's order of a block that is looked at.
    #[inline(always)]
    pub(crate) fn place(&self, pool: usize, block: BlockId) -> Option<u32> {
        if self.is_named {
            return self.pools[pool].names.place(block);
        }
        let spread = u64::from(block.0.wrapping_mul(SPREAD));
        (spread >> (u32::BITS - self.sample_bits) == 0).then_some(block.0)
    }

    fn place_of(&self, tenant: TenantId, block: BlockId) -> Option<u32> {
        self.place(self.tenants[tenant.index()].pool, block)
    }

    /// Loads what an access to the block will need.
    #[inline(always)]
    pub(crate) fn touch(&self, pool: usize, block: BlockId) {
        if let Some(place) = self.place(pool, block) {
            prefetch(&self.pools[pool].nodes, place as usize);
        }
    }

    /// A block of a tenant has missed, whether it is looked at or not.
    #[inline(always)]
    pub(crate) fn count_miss(&mut self, tenant: TenantId) {
        if self.is_named {
            self.unexplained[tenant.index()] += 1;
        }
    }

    /// The misses for which one stands that is looked at.
    fn stands_for(&mut self, tenant: TenantId) -> u64 {
        if self.is_named { std::mem::take(&mut self.unexplained[tenant.index()]) } else { 1 }
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
        if let Some(place) = self.place_of(tenant, block) {
            let in_bound = self.bound_hits(tenant, block, future);
            let state = self.pools[self.tenants[tenant.index()].pool].nodes[place as usize].state;
            let misses = self.stands_for(tenant);
            let causes = &mut self.causes[tenant.index()];
            let cause = match state.cause_of_miss() {
                MissCause::Capacity if in_bound == Some(false) => MissCause::Beyond,
                cause => cause,
            };
            *causes.of_cause(cause) += misses;
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
        if self.place_of(tenant, block).is_some() {
            self.bound_hits(tenant, block, future);
            self.causes[tenant.index()].bypassed += self.stands_for(tenant);
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
        let Some(place) = self.place_of(tenant, block) else {
            return self.fit(tenant, None);
        };
        let own = &mut self.tenants[tenant.index()];
        let pool = &mut self.pools[own.pool];
        let number = pool.numbers.get(block.index()).filter(|number| **number != END);
        if let Some((bound, number)) = own.bound.as_mut().zip(number) {
            bound.belady.remove(BlockId(*number));
        }
        let state = match reason {
            LossReason::Removal => State::Unseen,
            LossReason::Trim => State::Trimmed,
            _ => State::Lost,
        };
        self.take_out(tenant, place, state);
    }

    /// A block of a tenant was trimmed that the cache does not know.
    pub(crate) fn trimmed(&mut self, tenant: TenantId, number: u64) {
        self.take_out_named(tenant, number, State::Trimmed);
    }

    /// The blocks of a tenant among `numbers` that are looked at by their addresses.
    pub(crate) fn named(
        &self,
        tenant: TenantId,
        numbers: &Range<u64>,
    ) -> impl Iterator<Item = u64> {
        let names = &self.pools[self.tenants[tenant.index()].pool].names;
        let is_own = move |address: &&BlockAddress| {
            address.tenant == tenant && numbers.contains(&address.number)
        };
        names.places.keys().filter(is_own).map(|address| address.number)
    }

    /// A server that starts has found a block in its log and does not keep it.
    pub(crate) fn dropped_at_restart(&mut self, tenant: TenantId, number: u64) {
        self.take_out_named(tenant, number, State::Dropped);
    }

    /// A block is in neither lru any more, if it is looked at by its address.
    fn take_out_named(&mut self, tenant: TenantId, number: u64, state: State) {
        let names = &self.pools[self.tenants[tenant.index()].pool].names;
        if let Some(place) = names.places.get(&BlockAddress { tenant, number }).copied() {
            self.take_out(tenant, place, state);
        }
    }

    /// A block is in neither lru any more.
    fn take_out(&mut self, tenant: TenantId, place: u32, state: State) {
        self.unlink(tenant, place);
        let found = &mut self.pools[self.tenants[tenant.index()].pool].nodes[place as usize].state;
        *found = if *found == State::Unseen { State::Unseen } else { state };
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
            let Names { places, addresses, free, by_id, has_place } = &pool.names;
            let bits: u32 = has_place.iter().map(|word| word.count_ones()).sum();
            let is_sound = places.len() + free.len() == addresses.len()
                && places.iter().all(|(address, place)| addresses[*place as usize] == *address)
                && by_id.values().all(|place| places.contains_key(&addresses[*place as usize]))
                && bits as usize == by_id.len();
            if !is_sound {
                return Err(format!("pool {index}: addresses, places and ids differ"));
            }
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

    fn hold_less(&mut self, tenant: TenantId) {
        let own = &mut self.tenants[tenant.index()];
        debug_assert!(own.held_blocks > 0, "the tenant held the block that left");
        own.held_blocks -= 1;
        self.pools[own.pool].held_blocks -= 1;
    }

    /// Takes a block out of the list that it is in.
    #[inline(always)]
    fn unlink(&mut self, tenant: TenantId, place: u32) {
        let own = &mut self.tenants[tenant.index()];
        let nodes = &mut self.pools[own.pool].nodes;
        match nodes[place as usize].state {
            State::Kept | State::KeptOut => own.kept.unlink(nodes, place),
            State::Ghost(_) => own.ghosts.unlink(nodes, place),
            State::Unseen | State::Gone | State::Trimmed | State::Lost | State::Dropped => {}
        }
    }

    /// A block was used: it is the newest of both lru caches.
    #[inline(always)]
    fn used(&mut self, tenant: TenantId, block: BlockId, state: State) {
        if let Some(place) = self.place_of(tenant, block) {
            self.unlink(tenant, place);
            let own = &mut self.tenants[tenant.index()];
            let nodes = &mut self.pools[own.pool].nodes;
            nodes[place as usize].state = state;
            own.kept.push(nodes, place);
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
