//! A live cache by name: what became of each block, worked by hand and against the counters.
//!
//! For: `live`. Must never know: policies' code.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::any_cache::{AnyCache, CacheAnswer, CacheParts, MAX_POOL_BLOCKS, open};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_policy::{Need, entries};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId, Value};

fn cache(policy: &str, quotas: Quotas, mode: WriteMode) -> Box<dyn AnyCache> {
    let (tenants, seed) = (2, Seed(1));
    let policy = (policy, &[][..]);
    open(&CacheParts { policy, code: None, tenants, quotas, mode, block_shift: 12, seed }).unwrap()
}

fn request(op: Op, tenant: u16, offset: u64, length: u64) -> Request {
    let (time, tenant) = (Nanos(0), TenantId(tenant));
    Request { time, offset: Bytes(offset), length: Bytes(length), op, tenant }
}

/// LRU of three blocks. Tenant 0 writes blocks 0 and 1, the second in part; tenant 1 reads its
/// blocks 7 and 8: block 0, the oldest and dirty, leaves for the second; a hit; a trim.
#[test]
fn answers_name_what_became_of_every_block() {
    let mut cache = cache("lru", Quotas::Shared(3), WriteMode::WriteBack);
    let mut answer = CacheAnswer::default();
    cache.decide(&request(Op::Write, 0, 0, 6144), &mut answer);
    let whole = CacheAnswer { admitted: vec![0, 1], fetched: vec![1], ..CacheAnswer::default() };
    assert_eq!(answer, whole);
    cache.decide(&request(Op::Read, 1, 7 * 4096, 8192), &mut answer);
    let evicted = vec![(TenantId(0), 0)];
    let written_back = evicted.clone();
    let (admitted, fetched) = (vec![7, 8], vec![7, 8]);
    assert_eq!(
        answer,
        CacheAnswer { admitted, fetched, evicted, written_back, ..CacheAnswer::default() }
    );
    cache.decide(&request(Op::Read, 0, 4096, 1), &mut answer);
    assert_eq!(answer, CacheAnswer { hits: vec![1], ..CacheAnswer::default() });
    cache.decide(&request(Op::Trim, 1, 0, 1 << 40), &mut answer);
    assert_eq!(answer, CacheAnswer { discarded: vec![7, 8], ..CacheAnswer::default() });
    assert!(cache.contains(TenantId(0), 1) && !cache.contains(TenantId(1), 7));
    assert_eq!((cache.occupancy(TenantId(0)), cache.dirty_blocks()), (1, 1));
    assert!(cache.set_quotas(&Quotas::Shared(0), &mut answer));
    let left = vec![(TenantId(0), 1)];
    assert_eq!(
        answer,
        CacheAnswer { evicted: left.clone(), written_back: left, ..CacheAnswer::default() }
    );
    assert!(!cache.set_quotas(&Quotas::PerTenant(vec![1, 1]), &mut answer));
}

/// Tenant 0 writes four blocks of its five, tenant 1 reads two of its three.
#[test]
fn a_cache_answers_for_each_tenant() {
    let mut cache = cache("lru", Quotas::PerTenant(vec![5, 3]), WriteMode::WriteBack);
    let mut answer = CacheAnswer::default();
    cache.decide(&request(Op::Write, 0, 0, 4 * 4096), &mut answer);
    cache.decide(&request(Op::Read, 1, 4096, 2 * 4096), &mut answer);
    let tenants = [TenantId(0), TenantId(1)];
    assert_eq!(tenants.map(|tenant| cache.occupancy(tenant)), [4, 2]);
    assert_eq!(tenants.map(|tenant| cache.quota(tenant)), [5, 3]);
    assert_eq!(tenants.map(|tenant| cache.counts(tenant).misses()), [4, 2]);
    assert_eq!(cache.dirty_blocks(), 4);
    assert!(cache.contains(tenants[0], 3) && !cache.contains(tenants[0], 4));
}

/// One more than the pool holds comes in before one leaves.
#[test]
fn the_largest_pool_leaves_one_id_for_the_block_that_comes_in() {
    assert_eq!(MAX_POOL_BLOCKS + 1, BlockId::LIMIT);
}

#[test]
fn a_policy_of_adjacent_ids_is_refused() {
    let pairs = [("region_blocks".to_owned(), Value::Int(16))];
    let (policy, quotas, seed) = (("smq", &pairs[..]), Quotas::Shared(4), Seed(1));
    let (code, mode) = (None, WriteMode::WriteBack);
    let parts = CacheParts { policy, code, tenants: 1, quotas, mode, block_shift: 12, seed };
    let error = open(&parts).err().map(|error| error.to_string());
    let expected = "policy `smq` needs ids in the order of blocks, found none, expected \
                    `region_blocks = 1` in a live cache";
    assert_eq!(error.as_deref(), Some(expected));
}

#[test]
fn a_write_that_invalidates_discards() {
    let mut cache = cache("fifo", Quotas::PerTenant(vec![4, 4]), WriteMode::ReadOnly);
    let mut answer = CacheAnswer::default();
    cache.decide(&request(Op::Read, 0, 0, 8192), &mut answer);
    cache.decide(&request(Op::Write, 0, 4096, 8192), &mut answer);
    let (bypassed, discarded) = (vec![1, 2], vec![1]);
    assert_eq!(answer, CacheAnswer { bypassed, discarded, ..CacheAnswer::default() });
}

#[test]
fn answers_add_up_to_the_counters_under_every_policy() {
    let has = |need: &Need| *need == Need::Requests;
    for entry in entries().into_iter().filter(|entry| entry.needs.iter().all(has)) {
        let mut cache = cache(entry.name, Quotas::PerTenant(vec![16, 24]), WriteMode::WriteBack);
        let (mut answer, mut rng) = (CacheAnswer::default(), Seed(7).rng());
        let mut sums = [0_u64; 5];
        for _ in 0..4000 {
            let op = [Op::Read, Op::Read, Op::Write, Op::Trim][rng.below(4) as usize];
            let (tenant, block) = (rng.below(2) as u16, rng.below(60));
            cache.decide(&request(op, tenant, block * 4096, 8192), &mut answer);
            let lists = [
                answer.hits.len(),
                answer.admitted.len(),
                answer.evicted.len(),
                answer.written_back.len(),
                answer.discarded.len(),
            ];
            for (sum, count) in sums.iter_mut().zip(lists) {
                *sum += count as u64;
            }
        }
        let counts = [0, 1].map(|tenant| cache.counts(TenantId(tenant)));
        let both =
            |of: fn(&cachewright_types::measure::Counts) -> u64| counts.iter().map(of).sum::<u64>();
        let expected = [
            both(|counts| counts.hits()),
            both(|counts| counts.admissions()),
            both(|counts| counts.evictions),
            both(|counts| counts.writebacks),
            both(|counts| counts.invalidations),
        ];
        assert_eq!(sums, expected, "{}", entry.name);
        assert_eq!(cache.audit(), Ok(()), "{}", entry.name);
    }
}

#[test]
fn a_policy_that_needs_what_only_a_replay_has_is_refused() {
    let needs =
        [("belady", "the future"), ("rc-rnn", "trained models"), ("python:x", "code of its own")];
    for (policy, need) in needs {
        let (quotas, mode) = (Quotas::Shared(8), WriteMode::WriteBack);
        let policy = (policy, &[][..]);
        let (tenants, block_shift, seed) = (1, 12, Seed(1));
        let found =
            open(&CacheParts { policy, code: None, tenants, quotas, mode, block_shift, seed });
        let said = found.err().unwrap().to_string();
        assert!(said.contains(&format!("needs {need}, found none")), "{said}");
    }
}
