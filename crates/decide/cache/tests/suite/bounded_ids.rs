//! Ids of a live cache stay below what its policies may remember, whatever is asked of it.

use cachewright_cache::index::SparseIndex;
use cachewright_cache::{Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_policy::{Need, PolicyVisitor, Registered, entries, visit};
use cachewright_types::measure::LossReason;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use proptest::prelude::*;

/// Blocks of both pools together.
const BLOCKS: u32 = 40;
/// Blocks of a volume: far more than the cache remembers.
const VOLUME: u64 = 4000;

#[derive(Clone, Debug)]
enum Step {
    Request { tenant: u16, op: Op, block: u64, blocks: u64 },
    Adopt { tenant: u16, block: u64, dirty: bool },
    Forget { tenant: u16, block: u64 },
    Quotas { first: u32 },
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![5 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Trim)];
    let block = || prop_oneof![3 => 0..VOLUME, 2 => 0..60_u64];
    let step = prop_oneof![
        30 => (0..2_u16, op, block(), 1..12_u64)
            .prop_map(|(tenant, op, block, blocks)| Step::Request { tenant, op, block, blocks }),
        2 => (0..2_u16, block(), any::<bool>())
            .prop_map(|(tenant, block, dirty)| Step::Adopt { tenant, block, dirty }),
        2 => (0..2_u16, block()).prop_map(|(tenant, block)| Step::Forget { tenant, block }),
        2 => (0..=BLOCKS).prop_map(|first| Step::Quotas { first }),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..250)
}

struct Bounded<'a> {
    steps: &'a [Step],
}

impl PolicyVisitor for Bounded<'_> {
    type Output = ();

    fn visit<P: Registered>(self, settings: P::Settings) {
        let make = |_, capacity| P::new(capacity, &settings, Seed(1));
        let quotas = |first: u32| Quotas::PerTenant(vec![first, BLOCKS - first]);
        let mode = WriteMode::WriteBack;
        let mut cache = Cache::new(Engine::new(2, &quotas(BLOCKS / 2), mode, make), 12);
        let needed = |cache: &Cache<P>| {
            [0, 1].map(|pool| SparseIndex::max_ids(cache.engine().policy(pool).max_tracked()))
        };
        let (mut plan, mut bound) = (Plan::default(), needed(&cache));
        for step in self.steps {
            match *step {
                Step::Request { tenant, op, block, blocks } => {
                    let (offset, length) = (Bytes(block << 12), Bytes(blocks << 12));
                    let (time, tenant) = (Nanos(0), TenantId(tenant));
                    cache.on(&Request { time, offset, length, op, tenant }, &mut plan);
                    cache.background_ops(cache.engine().pool_of(tenant), &mut plan);
                }
                Step::Adopt { tenant, block, dirty } => {
                    cache.adopt(TenantId(tenant), block, dirty, &mut plan);
                }
                Step::Forget { tenant, block } => {
                    cache.forget(TenantId(tenant), block, LossReason::Device);
                }
                Step::Quotas { first } => {
                    assert!(cache.set_quotas(&quotas(first), &mut plan));
                }
                Step::Compact => {
                    let (before, mut renamed) = (cache.ids(), [0; 2]);
                    let gone = cache.compact(&mut |pool, old, new| {
                        renamed[pool] += 1;
                        assert!(new <= old, "{}: an id grows", P::ENTRY.name);
                    });
                    assert_eq!(cache.ids(), before - gone);
                    assert!(renamed.iter().sum::<usize>() <= cache.ids());
                    // A pool with few enough ids keeps all. Some may be of blocks that left as its
                    // quota shrank and have not been found yet.
                    let now = needed(&cache);
                    for pool in [0, 1].into_iter().filter(|pool| renamed[*pool] > 0) {
                        bound[pool] = now[pool];
                    }
                }
            }
            let now = needed(&cache);
            bound = [0, 1].map(|pool| bound[pool].max(now[pool]));
            let (ids, most) = (cache.ids(), bound.iter().sum::<usize>());
            assert!(ids <= most, "{}: {ids} ids, at most {most} expected", P::ENTRY.name);
        }
        assert_eq!(cache.audit(), Ok(()), "{}", P::ENTRY.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn ids_stay_bounded_whatever_is_asked_of_the_cache(steps in steps()) {
        for entry in entries() {
            if entry.needs.iter().all(|need| *need == Need::Requests) {
                visit(entry.name, &[], Bounded { steps: &steps }).unwrap();
            }
        }
    }
}
