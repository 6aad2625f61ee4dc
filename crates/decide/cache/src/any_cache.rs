//! A live cache whose policy is chosen by name: requests in, the fate of each block out.

use crate::{AccessOutcome, Cache, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::{
    ForeignCode, FutureSlice, Need, Policy, PolicyVisitor, Registered, Verdict,
};
use cachewright_types::measure::Counts;
use cachewright_types::registry::check_needs;
use cachewright_types::{BlockId, Op, RegistryError, Request, Seed, TenantId, Value};

/// A block of a tenant's volume.
pub type VolumeBlock = (TenantId, u64);

/// What became of the blocks of one request, or of a change of quotas. Blocks of the request stand
/// by number, in its order; those that leave by tenant and number, in the order in which they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheAnswer {
    /// Blocks of the request found in the cache.
    pub hits: Vec<u64>,
    /// Blocks that were missing and came in.
    pub admitted: Vec<u64>,
    /// Blocks that were missing and stay out.
    pub bypassed: Vec<u64>,
    /// Blocks to be read from the backing store into the cache.
    pub fetched: Vec<u64>,
    /// Blocks whose new content goes to the backing store as well.
    pub written_through: Vec<u64>,
    /// Blocks that left to make room.
    pub evicted: Vec<VolumeBlock>,
    /// Dirty blocks to be written to the backing store.
    pub written_back: Vec<VolumeBlock>,
    /// Blocks dropped by a trim or invalidated by a write.
    pub discarded: Vec<u64>,
}

/// A live cache of any policy.
pub trait AnyCache: Send {
    /// Decides about a request; `answer` is replaced.
    fn decide(&mut self, request: &Request, answer: &mut CacheAnswer);
    /// Changes the quotas; `answer` is replaced. Returns false for other pools than there are.
    fn set_quotas(&mut self, quotas: &Quotas, answer: &mut CacheAnswer) -> bool;
    /// Whether a block is cached.
    fn contains(&self, tenant: TenantId, number: u64) -> bool;
    /// Counters of a tenant.
    fn counts(&self, tenant: TenantId) -> Counts;
    /// Blocks that a tenant holds.
    fn occupancy(&self, tenant: TenantId) -> u32;
    /// Blocks that a tenant may hold: its quota, or the whole cache that it shares.
    fn quota(&self, tenant: TenantId) -> u32;
    /// Dirty blocks.
    fn dirty_blocks(&self) -> u64;
    /// Checks every invariant, slowly.
    fn audit(&self) -> Result<(), String>;
}

/// What a live cache is made of.
pub struct CacheParts<'a> {
    /// The policy's name and settings.
    pub policy: (&'a str, &'a [(String, Value)]),
    /// The policy's code, where it stands outside.
    pub code: Option<&'a ForeignCode>,
    /// Number of tenants.
    pub tenants: usize,
    /// Blocks of all, or of each tenant.
    pub quotas: Quotas,
    /// Where writes go.
    pub mode: WriteMode,
    /// Log2 of the bytes of a block.
    pub block_shift: u32,
    /// Root of the policy's randomness.
    pub seed: Seed,
}

/// An empty cache. Errors: an unknown policy or setting; a policy that needs what only a replay
/// has.
pub fn open(parts: &CacheParts<'_>) -> Result<Box<dyn AnyCache>, RegistryError> {
    let (name, pairs) = parts.policy;
    let entry = cachewright_policy::entry(name)?;
    check_needs("policy", entry, |need| {
        let provided = match need {
            Need::Requests => true,
            Need::Code => parts.code.is_some(),
            Need::Future | Need::Benefit | Need::Model => false,
        };
        (!provided).then(|| "another policy for a live cache".to_owned())
    })?;
    cachewright_policy::visit(name, pairs, OpenCache(parts))?
}

struct OpenCache<'a>(&'a CacheParts<'a>);

impl PolicyVisitor for OpenCache<'_> {
    type Output = Result<Box<dyn AnyCache>, RegistryError>;

    fn visit<P: Registered>(self, settings: P::Settings) -> Self::Output {
        let CacheParts { tenants, quotas, mode, block_shift, seed, .. } = self.0;
        let make = |pool: usize, capacity: u32| {
            let mut policy = P::new(capacity, &settings, seed.derive(&format!("pool/{pool}")));
            self.0.code.iter().for_each(|code| policy.attach_code(code));
            policy
        };
        let cache = Cache::new(Engine::new(*tenants, quotas, *mode, make), *block_shift);
        let engine = cache.engine();
        if (0..engine.pools()).any(|pool| engine.policy(pool).has_adjacent_ids()) {
            return Err(RegistryError::Needs {
                stage: "policy",
                name: P::ENTRY.name,
                need: "ids in the order of blocks",
                remedy: "`region_blocks = 1` in a live cache".to_owned(),
            });
        }
        Ok(Box::new(Live { cache, plan: Plan::default() }))
    }
}

struct Live<P> {
    cache: Cache<P>,
    plan: Plan,
}

impl CacheAnswer {
    fn clear(&mut self) {
        *self = CacheAnswer::default();
    }

    /// What became of one block of the request.
    fn note(&mut self, number: u64, outcome: AccessOutcome) {
        let list = match outcome.verdict {
            Verdict::Hit => &mut self.hits,
            Verdict::Admit { .. } => &mut self.admitted,
            Verdict::Bypass => &mut self.bypassed,
        };
        list.push(number);
    }

    /// What must be done.
    fn add(&mut self, plan: &Plan) {
        for step in &plan.moves {
            match step {
                Move::Fetch(cached) => self.fetched.push(cached.number),
                Move::WriteThrough(cached) => self.written_through.push(cached.number),
                Move::Discard { cached, .. } => self.discarded.push(cached.number),
                Move::Drop(cached) => self.evicted.push((cached.tenant, cached.number)),
                Move::WriteBack(cached) => {
                    self.evicted.push((cached.tenant, cached.number));
                    self.written_back.push((cached.tenant, cached.number));
                }
                Move::Clean(cached) => self.written_back.push((cached.tenant, cached.number)),
                Move::Serve(_)
                | Move::Fill(_)
                | Move::Swap(_)
                | Move::Bypass { .. }
                | Move::Trim
                | Move::Flush => {}
            }
        }
    }
}

impl<P: Policy> AnyCache for Live<P> {
    fn decide(&mut self, request: &Request, answer: &mut CacheAnswer) {
        answer.clear();
        let (cache, plan) = (&mut self.cache, &mut self.plan);
        cache.on_each(request, FutureSlice::None, plan, &mut |number, outcome| {
            answer.note(number, outcome)
        });
        answer.add(plan);
        if matches!(request.op, Op::Read | Op::Write) {
            cache.background_ops(cache.engine().pool_of(request.tenant), plan);
            answer.add(plan);
        }
    }

    fn set_quotas(&mut self, quotas: &Quotas, answer: &mut CacheAnswer) -> bool {
        answer.clear();
        let fits = self.cache.set_quotas(quotas, &mut self.plan);
        answer.add(&self.plan);
        fits
    }

    fn contains(&self, tenant: TenantId, number: u64) -> bool {
        self.cache.contains(tenant, number)
    }

    fn counts(&self, tenant: TenantId) -> Counts {
        *self.cache.engine().counts(tenant)
    }

    fn occupancy(&self, tenant: TenantId) -> u32 {
        self.cache.engine().occupancy(tenant)
    }

    fn quota(&self, tenant: TenantId) -> u32 {
        self.cache.engine().quota(tenant)
    }

    fn dirty_blocks(&self) -> u64 {
        self.cache.engine().dirty_blocks()
    }

    fn audit(&self) -> Result<(), String> {
        self.cache.audit()
    }
}

/// The largest pool that a live cache can have, in blocks.
pub const MAX_POOL_BLOCKS: u32 = BlockId::LIMIT - 1;
