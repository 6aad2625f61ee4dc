//! A policy takes the place of another: blocks stay, and so do dirty bits and owners.

use cachewright_cache::{Cache, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::registry::boxed;
use cachewright_policy::{Need, Policy, entries};
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use std::collections::BTreeSet;

const SHIFT: u32 = 12;

/// The policies that need nothing but requests, and take in any block.
fn policies() -> Vec<&'static str> {
    let simple = entries()
        .into_iter()
        .filter(|entry| entry.needs.iter().all(|need| *need == Need::Requests));
    simple.map(|entry| entry.name).collect()
}

fn policy(name: &str, capacity: u32) -> Box<dyn Policy> {
    boxed(name, &[], capacity, Seed(1)).unwrap()
}

fn cache(name: &str, quotas: &Quotas) -> Cache<Box<dyn Policy>> {
    let make = |_, capacity| policy(name, capacity);
    Cache::new(Engine::new(2, quotas, WriteMode::WriteBack, make), SHIFT)
}

/// Skewed requests of two tenants, a third of them writes.
fn request(rng: &mut cachewright_types::Rng, blocks: u64) -> Request {
    let number = (rng.unit().powi(3) * blocks as f64) as u64;
    let (offset, length) = (Bytes(number << SHIFT), Bytes(1 << SHIFT));
    let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
    Request { time: Nanos(0), offset, length, op, tenant: TenantId(rng.below(2) as u16) }
}

/// The blocks of both tenants that are cached, and those of them that are dirty.
fn held(cache: &Cache<Box<dyn Policy>>, blocks: u64) -> [BTreeSet<(TenantId, u64)>; 2] {
    let all = (0..2).flat_map(|tenant| (0..blocks).map(move |block| (TenantId(tenant), block)));
    let cached: BTreeSet<_> =
        all.filter(|(tenant, block)| cache.contains(*tenant, *block)).collect();
    let dirty = cached.iter().filter(|(tenant, block)| cache.is_dirty(*tenant, *block));
    let dirty = dirty.copied().collect();
    [cached, dirty]
}

#[test]
fn every_policy_hands_its_blocks_over_to_every_other() {
    let names = policies();
    assert!(names.len() > 20, "{names:?}");
    for (place, from) in names.iter().enumerate() {
        for shared in [true, false] {
            let quotas = if shared { Quotas::Shared(60) } else { Quotas::PerTenant(vec![37, 23]) };
            let mut cache = cache(from, &quotas);
            let (mut rng, mut plan) = (Seed(place as u64).rng(), Plan::default());
            for to in &names {
                for _ in 0..300 {
                    cache.on(&request(&mut rng, 200), &mut plan);
                }
                let [cached, dirty] = held(&cache, 200);
                cache.replace_policies(&mut plan, |_, capacity| policy(to, capacity));
                let said = format!("{from} and others, then {to}, shared: {shared}");
                assert_eq!(cache.audit(), Ok(()), "{said}");
                let [still, still_dirty] = held(&cache, 200);
                let left = plan.moves.iter().map(|step| match step {
                    Move::WriteBack(left) => ((left.tenant, left.number), true),
                    Move::Drop(left) => ((left.tenant, left.number), false),
                    other => panic!("{said}: {other:?}"),
                });
                let left: BTreeSet<_> = left.collect();
                let gone: BTreeSet<_> = cached
                    .difference(&still)
                    .map(|block| (*block, dirty.contains(block)))
                    .collect();
                assert_eq!(left, gone, "{said}");
                assert!(still.is_subset(&cached), "{said}");
                assert!(still_dirty == &dirty & &still, "{said}");
            }
        }
    }
}

/// `lru` hands its blocks over in its own order: they leave in that order.
#[test]
fn the_order_of_lru_goes_over() {
    let mut cache = cache("lru", &Quotas::Shared(4));
    let mut plan = Plan::default();
    let read = |number: u64| {
        let (offset, length, tenant) = (Bytes(number << SHIFT), Bytes(1 << SHIFT), TenantId(0));
        Request { time: Nanos(0), offset, length, op: Op::Read, tenant }
    };
    [3, 1, 0, 2, 1].into_iter().for_each(|block| cache.on(&read(block), &mut plan));
    cache.replace_policies(&mut plan, |_, capacity| policy("fifo", capacity));
    assert_eq!(plan.moves, []);
    let mut left = Vec::new();
    for block in 10..14 {
        cache.on(&read(block), &mut plan);
        left.extend(plan.moves.iter().filter_map(|step| match step {
            Move::Drop(left) => Some(left.number),
            _ => None,
        }));
    }
    assert_eq!(left, [3, 0, 2, 1]);
}

/// After a cache-full of misses the hit ratio is within two points of that of a cache which
/// had the new policy from the beginning: 2q 1.7, s3-fifo 1.4, sieve 1.3, arc 1.0, lirs 0.8.
#[test]
fn a_cache_whose_policy_was_replaced_soon_hits_like_one_that_had_it_always() {
    for to in ["s3-fifo", "arc", "sieve", "lirs", "w-tinylfu", "2q", "fifo"] {
        let quotas = Quotas::Shared(1000);
        let [mut replaced, mut always] = ["lru", to].map(|name| cache(name, &quotas));
        let (mut rng, mut plan) = (Seed(3).rng(), Plan::default());
        let misses = |cache: &Cache<Box<dyn Policy>>| {
            let both = [0, 1].map(|tenant| *cache.engine().counts(TenantId(tenant)));
            both.iter().map(|counts| counts.accesses() - counts.hits()).sum::<u64>()
        };
        let mut run = |replaced: &mut Cache<_>, always: &mut Cache<_>, requests: u64| {
            for _ in 0..requests {
                let next = request(&mut rng, 8000);
                [&mut *replaced, always].into_iter().for_each(|cache| cache.on(&next, &mut plan));
            }
        };
        run(&mut replaced, &mut always, 20_000);
        replaced.replace_policies(&mut Plan::default(), |_, capacity| policy(to, capacity));
        let begun = misses(&replaced);
        while misses(&replaced) < begun + 1000 {
            run(&mut replaced, &mut always, 100);
        }
        let before = [misses(&replaced), misses(&always)];
        run(&mut replaced, &mut always, 40_000);
        let [replaced, always] = [misses(&replaced) - before[0], misses(&always) - before[1]];
        let points = (replaced as f64 - always as f64) / 40_000.0 * 100.0;
        println!("{to}: {points:.1} points more misses than with it always");
        assert!(points < 2.0, "{to}: {points} points more misses");
    }
}
