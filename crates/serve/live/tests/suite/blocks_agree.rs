//! The server's cache decides as the same cache does alone.

use crate::block_world::{Setting, World};
use crate::blocks_model::{ALL_OPS, MODES, POLICIES, any_sectors};
use cachewright_cache::any_cache::{CacheParts, open};
use cachewright_cache::{AnyCache, CacheAnswer, Quotas};
use cachewright_live::blocks::BlockOp;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use std::ops::Range;

fn decide(cache: &mut dyn AnyCache, op: Op, tenant: u16, bytes: Range<u64>) {
    let length = Bytes(bytes.end - bytes.start);
    let (offset, tenant) = (Bytes(bytes.start), TenantId(tenant));
    let request = Request { time: Nanos(0), offset, length, op, tenant };
    cache.decide(&request, &mut CacheAnswer::default());
}

/// The same request for a cache alone: zeroes are written at the edges and trimmed inside. A change
/// to the end of the volume, which has `sectors` sectors, is one of the whole last block.
fn decide_as(cache: &mut dyn AnyCache, op: BlockOp, tenant: u16, found: Range<u64>, sectors: u64) {
    let is_last = op != BlockOp::Read && found.end == sectors;
    let end = if is_last { found.end.next_multiple_of(8) } else { found.end };
    let bytes = found.start * 512..end * 512;
    let (first, last) = (bytes.start.next_multiple_of(4096), bytes.end / 4096 * 4096);
    match op {
        BlockOp::Read => decide(cache, Op::Read, tenant, bytes),
        BlockOp::Write => decide(cache, Op::Write, tenant, bytes),
        BlockOp::Trim => decide(cache, Op::Trim, tenant, bytes),
        BlockOp::Flush => decide(cache, Op::Flush, tenant, 0..0),
        BlockOp::Zero | BlockOp::Provision if first >= last => {
            decide(cache, Op::Write, tenant, bytes);
        }
        BlockOp::Zero | BlockOp::Provision => {
            let parts = [(Op::Write, bytes.start..first), (Op::Trim, first..last)];
            for (op, bytes) in parts.into_iter().chain([(Op::Write, last..bytes.end)]) {
                if !bytes.is_empty() {
                    decide(cache, op, tenant, bytes);
                }
            }
        }
    }
}

#[test]
fn the_server_hits_admits_and_evicts_as_the_cache_alone() {
    let mut hits = 0;
    for (index, policy) in POLICIES.into_iter().enumerate() {
        for (other, mode) in MODES.into_iter().enumerate() {
            let mut setting = Setting::of(policy, mode);
            setting.short = (index + other) as u64 % 3 * 3;
            let all = setting.sectors_of(0);
            if (index + other) % 2 == 1 {
                setting.quotas = Quotas::PerTenant(vec![4, 3]);
            }
            let parts = CacheParts {
                policy: (policy, &[]),
                code: None,
                tenants: 2,
                quotas: setting.quotas.clone(),
                mode,
                block_shift: 12,
                seed: Seed(0),
            };
            let mut alone = open(&parts).unwrap();
            let seed = Seed((index * 4 + other) as u64);
            let mut rng = seed.derive("agree").rng();
            let mut world = World::new(setting, seed);
            world.context = format!("{policy}, {mode:?}");
            for _ in 0..300 {
                let op = ALL_OPS[rng.below(ALL_OPS.len() as u64) as usize];
                let (tenant, sectors) = (rng.below(2) as u16, any_sectors(&mut rng, all));
                decide_as(alone.as_mut(), op, tenant, sectors.clone(), all);
                world.submit(op, tenant, sectors, false);
                for _ in 0..rng.below(10) {
                    world.step();
                }
            }
            world.drain();
            for tenant in [TenantId(0), TenantId(1)] {
                let served = *world.server.cache().engine().counts(tenant);
                assert_eq!(served, alone.counts(tenant), "{}", world.context);
                hits += served.hits();
            }
        }
    }
    assert!(hits > 1_000, "{hits}");
}
