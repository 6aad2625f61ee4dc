//! A division that takes many dirty blocks away: all are written back, few at one time.

use crate::block_world::{Setting, World};
use crate::division_world::counting;
use cachewright_cache::{Quotas, Shrink, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::{Io, IoOp, Token};
use cachewright_types::{Seed, TenantId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCKS: u64 = 800;
const INTERVAL_NS: u64 = (1 << 40) + 3;

#[test]
fn dirty_blocks_that_a_division_takes_are_written_back_few_at_one_time() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.blocks, setting.segments) = (BLOCKS, 400);
    setting.quotas = Quotas::PerTenant(vec![BLOCKS as u32, BLOCKS as u32]);
    setting.divided_ns = INTERVAL_NS;
    let mut world = World::new(setting, Seed(5));
    for tenant in 0..2 {
        // Blocks that leave one after the other do not lie side by side.
        for block in (0..BLOCKS).map(|place| place * 7 % BLOCKS) {
            world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, false);
            world.drain();
        }
    }
    let dirty = |world: &World| world.server.cache().engine().dirty_blocks();
    let before = dirty(&world);
    assert_eq!(before, 2 * BLOCKS);
    let begun = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&begun);
    world.sim.set_faults(Box::new(move |_, op| {
        let moves = matches!(op, IoOp::Read { .. } | IoOp::Write { .. });
        counted.fetch_add(u64::from(moves), Ordering::Relaxed);
        None
    }));
    let at_ns = INTERVAL_NS + INTERVAL_NS / 2;
    world.sim.submit(Token(9 << 56), IoOp::Timer { at_ns });
    world.sim.wait(&mut Vec::new());
    begun.store(0, Ordering::Relaxed);
    world.server.advance(&mut world.sim);
    let left = before - dirty(&world);
    assert!(left > 150, "{left} blocks have left");
    let begun = begun.load(Ordering::Relaxed);
    assert!((60..140).contains(&begun), "{begun} operations were begun at once, {left} left");
    world.drain();
    assert!(world.server.is_idle());
    assert_eq!(dirty(&world), before - left);
    world.read_all();
}

/// The same division where tenants give up blocks as others need them: no operation begins with it,
/// and the tenant that grows takes no more than it misses.
#[test]
fn a_division_takes_nothing_where_tenants_give_up_blocks_as_needed() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.blocks, setting.segments) = (BLOCKS, 400);
    setting.quotas = Quotas::PerTenant(vec![BLOCKS as u32, BLOCKS as u32]);
    (setting.divided_ns, setting.shrink) = (INTERVAL_NS, Shrink::AsNeeded);
    setting.blocks = 2 * BLOCKS;
    let mut world = World::new(setting, Seed(5));
    for tenant in 0..2 {
        for block in 0..BLOCKS {
            world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, false);
            world.drain();
        }
    }
    let at_ns = INTERVAL_NS + INTERVAL_NS / 2;
    world.sim.submit(Token(9 << 56), IoOp::Timer { at_ns });
    world.sim.wait(&mut Vec::new());
    world.server.advance(&mut world.sim);
    let tenants = [0, 1].map(TenantId);
    let quotas = tenants.map(|tenant| world.server.cache().engine().quota(tenant));
    assert_ne!(quotas, [BLOCKS as u32; 2], "it was divided");
    let held = |world: &World| {
        tenants.map(|tenant| u64::from(world.server.cache().engine().occupancy(tenant)))
    };
    assert_eq!(held(&world), [BLOCKS; 2]);
    assert_eq!(world.server.cache().engine().dirty_blocks(), 2 * BLOCKS);
    let grows = usize::from(quotas[1] > quotas[0]);
    let missing = u64::from(quotas[grows]) - BLOCKS;
    assert!(missing > 100, "{quotas:?}");
    for block in BLOCKS..BLOCKS + 100 {
        world.submit(BlockOp::Read, grows as u16, block * 8..block * 8 + 8, false);
        world.drain();
    }
    let now = held(&world);
    assert_eq!(now[grows], BLOCKS + 100);
    assert_eq!(now[1 - grows], BLOCKS - 100);
    assert_eq!(world.server.cache().audit(), Ok(()));
    world.read_all();
}

/// A reload in the middle of the thousandth interval: the cache is divided at its end, and not for
/// all those before.
#[test]
fn a_division_that_begins_late_makes_up_for_no_interval_before() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.quotas = Quotas::PerTenant(vec![4, 4]);
    let mut world = World::new(setting, Seed(6));
    let reach = |world: &mut World, at_ns| {
        world.sim.submit(Token(9 << 56), IoOp::Timer { at_ns });
        world.sim.wait(&mut Vec::new());
        world.submit(BlockOp::Read, 0, 0..8, false);
        world.drain();
    };
    reach(&mut world, 1000 * INTERVAL_NS + INTERVAL_NS / 2);
    let divided = Arc::new(AtomicU64::new(0));
    let division = || Ok::<_, String>(Some(counting(2, 8, INTERVAL_NS, &divided)));
    let quotas = Quotas::PerTenant(vec![4, 4]);
    let shrink = Shrink::AtOnce;
    world.server.divide_otherwise(&mut world.sim, &quotas, shrink, division).unwrap();
    let mut found = Vec::new();
    for intervals in [0, 1, 3] {
        reach(&mut world, (1000 + intervals) * INTERVAL_NS + INTERVAL_NS * 3 / 4);
        found.push(divided.swap(0, Ordering::Relaxed));
    }
    assert_eq!(found, [0, 1, 2]);
}

#[test]
fn pools_that_shrink_give_their_ids_back_while_requests_are_under_way() {
    for policy in ["lru", "s3-fifo", "arc", "2q"] {
        let mut setting = Setting::of(policy, WriteMode::WriteBack);
        (setting.blocks, setting.segments) = (300, 60);
        setting.quotas = Quotas::PerTenant(vec![60, 60]);
        setting.divided_ns = 5_000_000;
        let mut world = World::new(setting, Seed(11));
        let mut rng = Seed(12).rng();
        let (mut largest, mut held) = (0, [0; 2]);
        for turn in 0..12_000 {
            let (tenant, block) = (rng.below(2) as u16, rng.below(300));
            let op = if rng.below(3) == 0 { BlockOp::Write } else { BlockOp::Read };
            world.submit(op, tenant, block * 8..block * 8 + 8, false);
            // Some steps are under way when the cache is divided.
            if turn % 4 == 0 {
                for _ in 0..3 {
                    world.step();
                }
            }
            if turn % 32 == 0 {
                world.drain();
            }
            let cache = world.server.cache();
            let engine = cache.engine();
            let tracked: u64 = (0..2).map(|pool| engine.policy(pool).max_tracked()).sum();
            largest = largest.max(world.server.cache().ids() as u64 * 100 / tracked);
            let now = [0, 1].map(|tenant| engine.occupancy(TenantId(tenant)));
            held = [0, 1].map(|pool| now[pool].max(held[pool]));
        }
        world.drain();
        assert_eq!(world.server.cache().audit(), Ok(()), "{policy}");
        // Ids are given back at divisions, and are in use until the next one.
        // Without that, there would be as many as the largest size of each pool.
        let never = held[0] + held[1];
        let found = format!("{policy}: {largest} % of what is remembered, {held:?} blocks of 120");
        assert!(largest < 165 && never > 180, "{found}");
        world.read_all();
    }
}
