//! A policy or a partitioner on trial: what it would hit of a sample of the blocks, beside what
//! decides.
//!
//! Two caches in miniature decide about the same sampled blocks (Waldspurger et al., USENIX ATC
//! 2017): one as the cache does, the other by a policy of its own, a division of its own, or both.
//! Pools and write mode are those of the cache, and so are the quotas, in proportion, where a
//! division is not on trial. Nothing that they decide is carried out. Units: blocks, accesses to
//! sampled blocks.

use crate::division::{Division, RequestDecider};
use crate::meters::AnswerTimes;
use cachewright_cache::index::BlockAddress;
use cachewright_cache::{Cache, Engine, Plan, Quotas};
use cachewright_policy::Policy;
use cachewright_types::{Bytes, Op, Request, TenantId, block_numbers};
use std::iter::Sum;

/// Blocks of a cache in miniature, at least, unless the cache has fewer.
const LEAST_BLOCKS: u32 = 1024;
/// The log2 of how many blocks stand for one at most: a sample of about 1 %.
const MOST_SAMPLE_BITS: u32 = 7;

/// Accesses to the sampled blocks, and what each cache in miniature has hit of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrialCounts {
    /// Reads and writes of sampled blocks.
    pub accesses: u64,
    /// Those that are hit as the cache decides, in miniature.
    pub present_hits: u64,
    /// Those that are hit by what is on trial.
    pub trial_hits: u64,
}

impl Sum for TrialCounts {
    fn sum<I: Iterator<Item = TrialCounts>>(counts: I) -> TrialCounts {
        counts.fold(TrialCounts::default(), |sum, one| TrialCounts {
            accesses: sum.accesses + one.accesses,
            present_hits: sum.present_hits + one.present_hits,
            trial_hits: sum.trial_hits + one.trial_hits,
        })
    }
}

/// What a trial has found of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriedTenant {
    /// Since the beginning.
    pub counts: TrialCounts,
    /// Blocks that it has now, or the pool that it shares, of the whole cache.
    pub present_quota: u64,
    /// Those that it would have.
    pub trial_quota: u64,
}

/// A division on trial.
pub struct TrialDivision {
    /// The quotas at first, in blocks of the miniature.
    pub quotas: Quotas,
    /// What divides it while it decides, if anything does.
    pub division: Option<Division>,
}

/// Two caches in miniature.
pub struct SchemeTrial {
    /// As the cache decides, and by what is on trial.
    deciders: [RequestDecider<Box<dyn Policy>>; 2],
    /// The quotas of the second one are on trial as well.
    divides: bool,
    tenants: usize,
    sample_bits: u32,
    block_shift: u32,
    /// Answers that were not measured since one was.
    unmeasured: u64,
    plan: Plan,
}

/// Makes a policy for a pool of so many blocks.
pub type MakePolicy<'a> = &'a mut dyn FnMut(usize, u32) -> Box<dyn Policy>;

impl SchemeTrial {
    /// A trial beside a cache of `tenants` tenants in blocks of `1 << block_shift` bytes; `present`
    /// and `other` make policies of both kinds. Where a division is on trial, it is of so many
    /// blocks as [`SchemeTrial::blocks`] says.
    pub fn new<'a>(
        engine: &Engine<Box<dyn Policy>>,
        tenants: usize,
        block_shift: u32,
        present: MakePolicy<'a>,
        other: MakePolicy<'a>,
        divided: Option<TrialDivision>,
    ) -> SchemeTrial {
        let sample_bits = sample_bits(engine);
        let (quotas, shrink) = (in_miniature(engine, sample_bits), engine.shrink());
        let decider = |make: MakePolicy<'a>, quotas: &Quotas, division| {
            let engine = Engine::new(tenants, quotas, engine.mode(), make).shrinking(shrink);
            RequestDecider::new(Cache::new(engine, block_shift), division, None)
        };
        let divides = divided.is_some();
        let other_quotas = divided.as_ref().map_or(&quotas, |divided| &divided.quotas).clone();
        let division = divided.and_then(|divided| divided.division);
        SchemeTrial {
            deciders: [decider(present, &quotas, None), decider(other, &other_quotas, division)],
            divides,
            tenants,
            sample_bits,
            block_shift,
            unmeasured: 0,
            plan: Plan::default(),
        }
    }

    /// Blocks of each miniature of a cache, about.
    pub fn blocks(engine: &Engine<Box<dyn Policy>>) -> u32 {
        whole_blocks(engine) >> sample_bits(engine)
    }

    /// A request is decided: so are the sampled blocks of it.
    pub fn request(&mut self, request: &Request) {
        if request.tenant.index() >= self.tenants {
            return;
        }
        let other = &mut self.deciders[1];
        while other.division_is_due(request.time) {
            other.divide(None, &mut self.plan);
        }
        match request.op {
            Op::Flush => {}
            Op::Trim => {
                let plan = &mut self.plan;
                self.deciders.iter_mut().for_each(|decider| decider.request(request, plan));
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
        for decider in &mut self.deciders {
            decider.request(&block, &mut self.plan);
            decider.background_ops(request.tenant, &mut self.plan);
        }
    }

    /// Whether response times are measured.
    pub fn is_priced(&self) -> bool {
        self.deciders[1].division.as_ref().is_some_and(Division::is_priced)
    }

    /// Measures one of as many answers as blocks of which one is looked at.
    pub fn answered(&mut self, tenant: TenantId, op: Op, times: AnswerTimes) {
        self.unmeasured += 1;
        if self.unmeasured < self.sampled_of() {
            return;
        }
        self.unmeasured = 0;
        let division = self.deciders[1].division.iter_mut();
        division.for_each(|division| division.answered(tenant, op, times));
    }

    /// The cache is divided otherwise.
    pub fn follow(&mut self, engine: &Engine<Box<dyn Policy>>) {
        let (quotas, shrink) = (in_miniature(engine, self.sample_bits), engine.shrink());
        let following = if self.divides { 1 } else { 2 };
        for decider in &mut self.deciders[..following] {
            decider.cache.divide_otherwise(&quotas, shrink, &mut self.plan);
        }
    }

    /// What was counted since the beginning.
    pub fn counts(&self) -> TrialCounts {
        self.of_tenants().map(|tenant| tenant.counts).sum()
    }

    /// What was found of each tenant, in their order.
    pub fn of_tenants(&self) -> impl Iterator<Item = TriedTenant> + '_ {
        let [present, other] = self.deciders.each_ref().map(|decider| decider.cache.engine());
        (0..self.tenants).map(move |tenant| {
            let tenant = TenantId(tenant as u16);
            let quota = |engine: &Engine<_>| u64::from(engine.quota(tenant)) << self.sample_bits;
            let counts = TrialCounts {
                accesses: present.counts(tenant).accesses(),
                present_hits: present.counts(tenant).hits(),
                trial_hits: other.counts(tenant).hits(),
            };
            let (present_quota, trial_quota) = (quota(present), quota(other));
            TriedTenant { counts, present_quota, trial_quota }
        })
    }

    /// One block of so many is looked at.
    pub fn sampled_of(&self) -> u64 {
        1 << self.sample_bits
    }
}

fn whole_blocks(engine: &Engine<Box<dyn Policy>>) -> u32 {
    (0..engine.pools()).map(|pool| engine.quota_of_pool(pool)).sum()
}

fn sample_bits(engine: &Engine<Box<dyn Policy>>) -> u32 {
    (whole_blocks(engine) / LEAST_BLOCKS).checked_ilog2().unwrap_or(0).min(MOST_SAMPLE_BITS)
}

/// The quotas of an engine in proportion, of the same pools; each pool has a block at least, if it
/// has any.
fn in_miniature(engine: &Engine<Box<dyn Policy>>, sample_bits: u32) -> Quotas {
    let blocks = |pool: usize| {
        let capacity = engine.quota_of_pool(pool);
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
    use crate::{CachePolicy, Control, SignalNeeds};
    use cachewright_cache::WriteMode;
    use cachewright_partition::TenantConstants;
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

    /// `hull` in place of equal quotas.
    fn by_curves(blocks: u32, interval_ns: u64) -> TrialDivision {
        let partitioner = cachewright_partition::boxed("hull", &[], 2, Seed(1)).unwrap();
        let needs = cachewright_partition::entry("hull").unwrap().needs;
        let of_cache =
            CachePolicy { name: "lru", pairs: &[], capacity_blocks: blocks, seed: Seed(2) };
        let signals = SignalNeeds::of(&*partitioner, needs, of_cache, 2).unwrap();
        let mut control = Control::new(partitioner, vec![TenantConstants::default(); 2], blocks);
        let quotas = control.first();
        let division = Some(Division::new(control, signals, interval_ns, 12));
        TrialDivision { quotas, division }
    }

    /// One tenant reads 30,000 blocks at random, the other one scans: all of the cache belongs to
    /// the first one. The miniature finds that, and says the quotas of the whole cache.
    #[test]
    fn a_division_is_tried_beside_the_quotas_that_stay() {
        let blocks = 32_768;
        let quotas = Quotas::PerTenant(vec![blocks / 2; 2]);
        let present = cache("lru", &quotas);
        let miniature = SchemeTrial::blocks(present.engine());
        assert_eq!(miniature, 1024);
        let (mut lru, mut other) = (make("lru"), make("lru"));
        let divided = Some(by_curves(miniature, 200_000));
        let engine = present.engine();
        let mut trial = SchemeTrial::new(engine, 2, 12, &mut lru, &mut other, divided);
        let mut rng = Seed(7).rng();
        for turn in 0..1_000_000 {
            let tenant = TenantId((turn % 2) as u16);
            let number = if turn % 2 == 0 { rng.below(30_000) } else { turn };
            trial.request(&Request {
                time: Nanos(turn + 1),
                offset: Bytes(number << 12),
                length: Bytes(4096),
                op: Op::Read,
                tenant,
            });
            // Another division of the cache is not that of the trial.
            if turn == 500_000 {
                trial.follow(engine);
            }
        }
        let [first, second] = trial.of_tenants().collect::<Vec<_>>()[..] else {
            panic!("two tenants")
        };
        assert_eq!((first.present_quota, second.present_quota), (16_384, 16_384));
        assert!(first.trial_quota > 28_000, "{first:?}");
        assert!(first.trial_quota + second.trial_quota <= u64::from(blocks));
        assert!(first.counts.present_hits < first.counts.accesses * 6 / 10, "{first:?}");
        assert!(first.counts.trial_hits > first.counts.accesses * 7 / 10, "{first:?}");
        assert_eq!((second.counts.present_hits, second.counts.trial_hits), (0, 0));
    }

    /// A cache that is as small as its miniature: both count what whole caches do.
    #[test]
    fn small_caches_are_tried_whole() {
        for quotas in [Quotas::Shared(600), Quotas::PerTenant(vec![400, 200])] {
            let [mut lru, mut s3] = ["lru", "s3-fifo"].map(|name| cache(name, &quotas));
            let (mut present, mut other) = (make("lru"), make("s3-fifo"));
            let mut trial = SchemeTrial::new(lru.engine(), 2, 12, &mut present, &mut other, None);
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
        let mut trial = SchemeTrial::new(lru.engine(), 2, 12, &mut present, &mut other, None);
        let mut plan = Plan::default();
        for request in requests(600_000, 100_000) {
            trial.request(&request);
            [&mut lru, &mut s3].into_iter().for_each(|cache| cache.on(&request, &mut plan));
        }
        let TrialCounts { accesses, present_hits, trial_hits } = trial.counts();
        for (cache, tried) in [&lru, &s3].into_iter().zip([present_hits, trial_hits]) {
            let both = [0, 1].map(|tenant| cache.engine().counts(TenantId(tenant)).hits());
            let whole = both.iter().sum::<u64>() as f64 / 600_000.0;
            let tried = tried as f64 / accesses as f64;
            assert!((whole - tried).abs() < 0.02, "{tried} of {whole}");
        }
        assert_eq!(trial.sampled_of(), 32);
        trial.follow(cache("lru", &Quotas::Shared(20_000)).engine());
        assert_eq!(trial.deciders[1].cache.engine().policy(0).capacity(), 625);
    }
}
