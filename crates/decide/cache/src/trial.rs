//! A policy on trial: what it would hit of a sample of the blocks, beside the one that decides.
//!
//! Two caches in miniature decide about the same sampled blocks, one under each policy (Waldspurger
//! et al., USENIX ATC 2017): pools, quotas and write mode are those of the cache, in proportion.
//! Nothing that they decide is carried out. Units: blocks, accesses to sampled blocks.

use crate::index::BlockAddress;
use crate::{Cache, Engine, Plan, Quotas};
use cachewright_policy::Policy;
use cachewright_types::{Bytes, Op, Request, TenantId, block_numbers};

/// Blocks of a cache in miniature, at least, unless the cache has fewer.
const LEAST_BLOCKS: u32 = 1024;
/// The log2 of how many blocks stand for one at most: a sample of about 1 %.
const MOST_SAMPLE_BITS: u32 = 7;

/// Accesses to the sampled blocks, and what each policy has hit of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCounts {
    /// Reads and writes of sampled blocks.
    pub accesses: u64,
    /// Those that the policy which decides has hit, in miniature.
    pub present_hits: u64,
    /// Those that the policy on trial has hit.
    pub trial_hits: u64,
}

/// Two caches in miniature.
pub struct PolicyTrial {
    /// Under the policy that decides, and under the other.
    caches: [Cache<Box<dyn Policy>>; 2],
    tenants: usize,
    sample_bits: u32,
    block_shift: u32,
    plan: Plan,
}

/// Makes a policy for a pool of so many blocks.
pub type MakePolicy<'a> = &'a mut dyn FnMut(usize, u32) -> Box<dyn Policy>;

impl PolicyTrial {
    /// A trial beside a cache of `tenants` tenants in blocks of `1 << block_shift` bytes; `present`
    /// and `other` make policies of both kinds.
    pub fn new<'a>(
        engine: &Engine<Box<dyn Policy>>,
        tenants: usize,
        block_shift: u32,
        present: MakePolicy<'a>,
        other: MakePolicy<'a>,
    ) -> PolicyTrial {
        let whole: u32 = (0..engine.pools()).map(|pool| engine.policy(pool).capacity()).sum();
        let sample_bits = (whole / LEAST_BLOCKS).checked_ilog2().unwrap_or(0).min(MOST_SAMPLE_BITS);
        let quotas = in_miniature(engine, sample_bits);
        let caches = [present, other].map(|make| {
            let engine = Engine::new(tenants, &quotas, engine.mode(), make);
            Cache::new(engine, block_shift)
        });
        PolicyTrial { caches, tenants, sample_bits, block_shift, plan: Plan::default() }
    }

    /// A request is decided: so are the sampled blocks of it.
    pub fn request(&mut self, request: &Request) {
        if request.tenant.index() >= self.tenants {
            return;
        }
        match request.op {
            Op::Flush => {}
            Op::Trim => {
                let plan = &mut self.plan;
                self.caches.iter_mut().for_each(|cache| cache.on(request, plan));
            }
            Op::Read | Op::Write => {
                let numbers = block_numbers(request.offset.0, request.length.0, self.block_shift);
                for number in numbers {
                    let address = BlockAddress { tenant: request.tenant, number };
                    if address.is_sampled(self.sample_bits) {
                        self.access(request, number);
                    }
                }
            }
        }
    }

    fn access(&mut self, request: &Request, number: u64) {
        let offset = Bytes(number << self.block_shift);
        let block = Request { offset, length: Bytes(1 << self.block_shift), ..*request };
        for cache in &mut self.caches {
            cache.on(&block, &mut self.plan);
            cache.background_ops(cache.engine().pool_of(request.tenant), &mut self.plan);
        }
    }

    /// The cache is divided otherwise.
    pub fn follow(&mut self, engine: &Engine<Box<dyn Policy>>) {
        let quotas = in_miniature(engine, self.sample_bits);
        for cache in &mut self.caches {
            cache.set_quotas(&quotas, &mut self.plan);
        }
    }

    /// What was counted since the beginning.
    pub fn counts(&self) -> TrialCounts {
        let hits = |cache: &Cache<Box<dyn Policy>>| {
            let tenants = (0..self.tenants).map(|tenant| TenantId(tenant as u16));
            tenants.map(|tenant| cache.engine().counts(tenant).hits()).sum()
        };
        let [present, other] = &self.caches;
        let tenants = (0..self.tenants).map(|tenant| TenantId(tenant as u16));
        TrialCounts {
            accesses: tenants.map(|tenant| present.engine().counts(tenant).accesses()).sum(),
            present_hits: hits(present),
            trial_hits: hits(other),
        }
    }

    /// One block of so many is looked at.
    pub fn sampled_of(&self) -> u64 {
        1 << self.sample_bits
    }
}

/// The quotas of an engine in proportion, of the same pools; each pool has a block at least, if it
/// has any.
fn in_miniature(engine: &Engine<Box<dyn Policy>>, sample_bits: u32) -> Quotas {
    let blocks = |pool: usize| {
        let capacity = engine.policy(pool).capacity();
        (capacity >> sample_bits).max(capacity.min(1))
    };
    let of = engine.mixed_pools();
    if of.is_empty() && engine.is_shared() {
        return Quotas::Shared(blocks(0));
    }
    let blocks: Vec<u32> = (0..engine.pools()).map(blocks).collect();
    if of.is_empty() { Quotas::PerTenant(blocks) } else { Quotas::Pools { of, blocks } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WriteMode;
    use cachewright_policy::registry::boxed;
    use cachewright_types::{Nanos, Seed};

    fn make(name: &'static str) -> impl FnMut(usize, u32) -> Box<dyn Policy> {
        move |_, capacity| boxed(name, &[], capacity, Seed(1)).unwrap()
    }

    fn cache(name: &'static str, quotas: &Quotas) -> Cache<Box<dyn Policy>> {
        Cache::new(Engine::new(2, quotas, WriteMode::WriteBack, make(name)), 12)
    }

    fn requests(count: u64, blocks: u64) -> Vec<Request> {
        let mut rng = Seed(5).rng();
        let request = |turn: u64| {
            // A scan that is never used again, between blocks that are.
            let number = if turn.is_multiple_of(4) {
                blocks + turn
            } else {
                (rng.unit().powi(2) * blocks as f64) as u64
            };
            Request {
                time: Nanos(turn),
                offset: Bytes(number << 12),
                length: Bytes(4096),
                op: if turn.is_multiple_of(3) { Op::Write } else { Op::Read },
                tenant: TenantId((number % 2) as u16),
            }
        };
        (0..count).map(request).collect()
    }

    /// A cache that is as small as its miniature: both count what whole caches do.
    #[test]
    fn small_caches_are_tried_whole() {
        for quotas in [Quotas::Shared(600), Quotas::PerTenant(vec![400, 200])] {
            let [mut lru, mut s3] = ["lru", "s3-fifo"].map(|name| cache(name, &quotas));
            let (mut present, mut other) = (make("lru"), make("s3-fifo"));
            let mut trial = PolicyTrial::new(lru.engine(), 2, 12, &mut present, &mut other);
            let mut plan = Plan::default();
            for request in requests(20_000, 1500) {
                trial.request(&request);
                [&mut lru, &mut s3].into_iter().for_each(|cache| cache.on(&request, &mut plan));
            }
            let hits = |cache: &Cache<Box<dyn Policy>>| {
                [0, 1].map(|tenant| cache.engine().counts(TenantId(tenant)).hits()).iter().sum()
            };
            let expected =
                TrialCounts { accesses: 20_000, present_hits: hits(&lru), trial_hits: hits(&s3) };
            assert_eq!((trial.counts(), trial.sampled_of()), (expected, 1));
        }
    }

    /// Of a large cache a sample says within two points what the policies hit.
    #[test]
    fn a_sample_says_what_both_policies_would_hit() {
        let quotas = Quotas::Shared(40_000);
        let [mut lru, mut s3] = ["lru", "s3-fifo"].map(|name| cache(name, &quotas));
        let (mut present, mut other) = (make("lru"), make("s3-fifo"));
        let mut trial = PolicyTrial::new(lru.engine(), 2, 12, &mut present, &mut other);
        let mut plan = Plan::default();
        for request in requests(600_000, 100_000) {
            trial.request(&request);
            [&mut lru, &mut s3].into_iter().for_each(|cache| cache.on(&request, &mut plan));
        }
        let counts = trial.counts();
        let tried = [counts.present_hits, counts.trial_hits];
        for (cache, tried) in [&lru, &s3].into_iter().zip(tried) {
            let both = [0, 1].map(|tenant| cache.engine().counts(TenantId(tenant)).hits());
            let whole = both.iter().sum::<u64>() as f64 / 600_000.0;
            let tried = tried as f64 / counts.accesses as f64;
            assert!((whole - tried).abs() < 0.02, "{tried} of {whole}");
        }
        assert_eq!(trial.sampled_of(), 32);
        trial.follow(cache("lru", &Quotas::Shared(20_000)).engine());
        assert_eq!(trial.caches[1].engine().policy(0).capacity(), 625);
    }
}
