//! The engine with pools of several tenants, sizes that change agrees with lists in
//! order of use, access by access.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::{BlockAccess, Engine, Quotas, WriteMode};
use cachewright_policy::lru::Lru;
use cachewright_policy::{Future, Registered, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::{Counts, LossReason};
use cachewright_types::{BlockId, Seed, TenantId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Access { tenant: u16, block: u32, write: bool },
    Discard { tenant: u16, block: u32 },
    Resize { pool: usize, blocks: u32 },
}

/// One block held: whose, which, dirty.
type Held = (u16, u32, bool);

/// Pools as lists, the block used last at the end.
struct Model {
    of: Vec<u16>,
    pools: Vec<(u32, Vec<Held>)>,
}

impl Model {
    fn access(&mut self, tenant: u16, block: u32, write: bool) -> (Verdict, Option<Held>) {
        let (capacity, held) = &mut self.pools[usize::from(self.of[usize::from(tenant)])];
        if let Some(at) = held.iter().position(|(_, id, _)| *id == block) {
            let (owner, id, dirty) = held.remove(at);
            held.push((owner, id, dirty || write));
            return (Verdict::Hit, None);
        }
        if *capacity == 0 {
            return (Verdict::Bypass, None);
        }
        let full = held.len() == *capacity as usize;
        let gone = full.then(|| held.remove(0));
        held.push((tenant, block, write));
        (Verdict::Admit { evicted: gone.map(|(_, id, _)| BlockId(id)) }, gone)
    }

    fn resize(&mut self, pool: usize, blocks: u32) -> Vec<(usize, BlockId, bool)> {
        let (capacity, held) = &mut self.pools[pool];
        *capacity = blocks;
        let over = held.len().saturating_sub(blocks as usize);
        held.drain(..over).map(|(_, id, dirty)| (pool, BlockId(id), dirty)).collect()
    }

    fn of_tenant(&self, tenant: u16) -> u32 {
        let held = self.pools.iter().flat_map(|(_, held)| held);
        held.filter(|(owner, _, _)| *owner == tenant).count() as u32
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let access = (0..4_u16, 0..12_u32, any::<bool>())
        .prop_map(|(tenant, block, write)| Step::Access { tenant, block, write });
    let discard = (0..4_u16, 0..12_u32).prop_map(|(tenant, block)| Step::Discard { tenant, block });
    let resize = (0..4_usize, 0..8_u32).prop_map(|(pool, blocks)| Step::Resize { pool, blocks });
    prop::collection::vec(prop_oneof![8 => access, 1 => discard, 3 => resize], 1..200)
}

/// An id of a block in its pool: tenants of one pool have blocks of their own.
fn id(tenant: u16, block: u32) -> u32 {
    u32::from(tenant) * 12 + block
}

fn divisions() -> impl Strategy<Value = Quotas> {
    prop_oneof![
        (0..9_u32).prop_map(Quotas::Shared),
        prop::collection::vec(0..5_u32, 4).prop_map(Quotas::PerTenant),
        (0..6_u32, 0..6_u32)
            .prop_map(|(one, two)| Quotas::Pools { of: vec![1, 0, 1, 1], blocks: vec![one, two] }),
        prop::collection::vec(0..4_u32, 3)
            .prop_map(|blocks| Quotas::Pools { of: vec![2, 0, 1, 0], blocks }),
    ]
}

proptest! {
    #[test]
    fn pools_are_lists_in_order_of_use(quotas in divisions(), steps in steps()) {
        let make = |_, capacity| Lru::new(capacity, &Default::default(), Seed(1));
        let mut engine = Engine::new(4, &quotas, WriteMode::WriteBack, make);
        let pools = quotas.blocks().len();
        (0..pools).for_each(|pool| engine.reserve_ids(pool, 48));
        let held = quotas.blocks().iter().map(|blocks| (*blocks, Vec::new())).collect();
        let mut model = Model { of: quotas.pools_of(4), pools: held };
        for step in steps {
            let mut left = Vec::new();
            let tell = &mut |pool, block, dirty| left.push((pool, block, dirty));
            match step {
                Step::Access { tenant, block, write } => {
                    let (verdict, gone) = model.access(tenant, id(tenant, block), write);
                    let block = BlockId(id(tenant, block));
                    let tenant = TenantId(tenant);
                    let access = BlockAccess { block, tenant, write, future: Future::None };
                    let outcome = engine.access(access);
                    prop_assert_eq!(outcome.verdict, verdict);
                    prop_assert_eq!(outcome.writeback, gone.is_some_and(|(_, _, dirty)| dirty));
                }
                Step::Discard { tenant, block } => {
                    let (pool, block) = (model.of[usize::from(tenant)], id(tenant, block));
                    let held = &mut model.pools[usize::from(pool)].1;
                    let at = held.iter().position(|(_, id, _)| *id == block);
                    let gone = at.map(|at| held.remove(at));
                    let dirty = gone.is_some_and(|(_, _, dirty)| dirty);
                    let found = engine.discard(TenantId(tenant), BlockId(block));
                    prop_assert_eq!(found, (gone.is_some(), dirty));
                }
                Step::Resize { pool, blocks } => {
                    engine.resize(pool % pools, blocks, tell);
                    prop_assert_eq!(left, model.resize(pool % pools, blocks));
                }
            }
            prop_assert_eq!(engine.audit(), Ok(()));
            for tenant in 0..4 {
                prop_assert_eq!(engine.occupancy(TenantId(tenant)), model.of_tenant(tenant));
                let pool = usize::from(model.of[usize::from(tenant)]);
                prop_assert_eq!(engine.quota(TenantId(tenant)), model.pools[pool].0);
            }
        }
    }
}

/// Three blocks for tenants 0 and 2 together, two for tenant 1.
#[test]
fn tenants_of_a_pool_take_from_each_other_and_from_no_other_tenant() {
    let quotas = Quotas::Pools { of: vec![1, 0, 1], blocks: vec![2, 3] };
    let make = |_, capacity| Lru::new(capacity, &Default::default(), Seed(1));
    let mut engine = Engine::new(3, &quotas, WriteMode::WriteBack, make);
    (0..2).for_each(|pool| engine.reserve_ids(pool, 100));
    let mut access = |tenant, block, write| {
        let (block, tenant) = (BlockId(block), TenantId(tenant));
        engine.access(BlockAccess { block, tenant, write, future: Future::None }).verdict
    };
    let admit = |evicted: Option<u32>| Verdict::Admit { evicted: evicted.map(BlockId) };
    for (block, expected) in [(0, None), (1, None), (2, None)] {
        assert_eq!(access(0, block, true), admit(expected));
    }
    assert_eq!(access(2, 50, false), admit(Some(0)), "of the other tenant of the pool");
    assert_eq!((access(1, 90, false), access(1, 91, true)), (admit(None), admit(None)));
    let held = [0, 1, 2].map(|tenant| engine.occupancy(TenantId(tenant)));
    assert_eq!(held, [2, 2, 1]);
    assert_eq!(engine.counts(TenantId(0)).writebacks, 1, "counted with whose it was");
    assert!([0, 2].iter().all(|tenant| engine.shares(TenantId(*tenant))));
    assert!(engine.is_shared() && !engine.shares(TenantId(1)));
    let mut left = Vec::new();
    let quotas = Quotas::Pools { of: vec![1, 0, 1], blocks: vec![4, 1] };
    assert!(engine.set_quotas(&quotas, &mut |_, block, dirty| left.push((block.0, dirty))));
    assert_eq!(left, [(1, true), (2, true)]);
    let others = Quotas::Pools { of: vec![0, 0, 1], blocks: vec![2, 3] };
    assert!(!engine.set_quotas(&others, &mut |_, _, _| {}), "who shares with whom is fixed");
    assert!(!engine.set_quotas(&Quotas::PerTenant(vec![2, 3, 4]), &mut |_, _, _| {}));
}

fn engine(tenants: usize, quotas: &Quotas, mode: WriteMode) -> Engine<Lru> {
    let mut engine = Engine::new(tenants, quotas, mode, |_, capacity| {
        Lru::new(capacity, &NoSettings {}, Seed(0))
    });
    (0..engine.pools()).for_each(|pool| engine.reserve_ids(pool, 20));
    engine
}

#[test]
fn a_tenant_has_a_quota_if_its_pool_is_its_own() {
    let of = |quotas: Quotas| {
        let engine = engine(3, &quotas, WriteMode::WriteBack);
        [0, 1, 2]
            .map(|tenant| (engine.has_quota(TenantId(tenant)), engine.shares(TenantId(tenant))))
    };
    assert_eq!(of(Quotas::PerTenant(vec![1, 0, 2])), [(true, false); 3]);
    assert!(of(Quotas::Shared(9)).iter().all(|(own, _)| !own));
    let pools = Quotas::Pools { of: vec![1, 0, 1], blocks: vec![2, 4] };
    assert_eq!(of(pools), [(false, true), (true, false), (false, true)]);
}

#[test]
fn pools_are_mixed_where_some_tenants_but_not_all_share_one() {
    let of = |quotas: Quotas| {
        let engine = engine(3, &quotas, WriteMode::WriteBack);
        (engine.mixed_pools(), engine.is_shared())
    };
    assert_eq!(of(Quotas::Shared(9)), (vec![], true));
    assert_eq!(of(Quotas::PerTenant(vec![1, 0, 2])), (vec![], false));
    let pools = |of: [u16; 3], blocks| Quotas::Pools { of: of.to_vec(), blocks };
    assert_eq!(of(pools([1, 0, 1], vec![2, 4])), (vec![1, 0, 1], true));
    assert_eq!(of(pools([0, 0, 0], vec![9])), (vec![], true));
    assert_eq!(of(pools([2, 0, 1], vec![2, 4, 3])), (vec![], false));
}

#[test]
fn every_counter_counts_what_it_says() {
    let access = |block, write| BlockAccess {
        block: BlockId(block),
        tenant: TenantId(1),
        write,
        future: Future::None,
    };
    let counted = |mode, accesses: &[(u32, bool)]| {
        let mut engine = engine(2, &Quotas::PerTenant(vec![4, 2]), mode);
        for (block, write) in accesses {
            let outcome = engine.access(access(*block, *write));
            engine.count_request(TenantId(1), outcome.verdict == Verdict::Hit);
        }
        assert_eq!(*engine.counts(TenantId(0)), Counts::default(), "the other tenant did nothing");
        engine
    };
    // Two reads come in, one hits; a write comes in for the oldest block, one hits.
    let accesses = [(0, false), (1, false), (1, false), (2, true), (2, true), (3, false)];
    let mut engine = counted(WriteMode::WriteBack, &accesses);
    let expected = Counts {
        reads: 4,
        read_hits: 1,
        writes: 2,
        write_hits: 1,
        read_admissions: 3,
        write_admissions: 1,
        evictions: 2,
        requests: 6,
        request_hits: 2,
        ..Counts::default()
    };
    assert_eq!(*engine.counts(TenantId(1)), expected);
    assert_eq!((engine.dirty_blocks(), engine.occupancy(TenantId(1))), (1, 2));
    engine.count_bypass(TenantId(1), true);
    (0..2).for_each(|_| engine.count_bypass(TenantId(1), false));
    engine.recount(TenantId(1), 1, 4096, true);
    engine.access(access(4, false));
    engine.lose(TenantId(1), BlockId(4), LossReason::Fill);
    engine.lose(TenantId(1), BlockId(4), LossReason::Fill);
    let expected = Counts {
        reads: 7,
        read_hits: 0,
        writes: 3,
        read_admissions: 4,
        evictions: 3,
        writebacks: 1,
        invalidations: 1,
        request_hits: 1,
        ..expected
    };
    assert_eq!(*engine.counts(TenantId(1)), expected, "the dirty block was evicted for block 4");
    assert_eq!(engine.losses(TenantId(1)).blocks(LossReason::Fill), 1);
    let around = [(0, true), (1, false), (1, true)];
    let engine = counted(WriteMode::WriteAround, &around);
    let counts = engine.counts(TenantId(1));
    assert_eq!((counts.writes, counts.write_hits, counts.write_admissions), (2, 1, 0));
    let engine = counted(WriteMode::ReadOnly, &around);
    let (counts, losses) = (engine.counts(TenantId(1)), engine.losses(TenantId(1)));
    assert_eq!((counts.write_hits, counts.invalidations, engine.dirty_blocks()), (0, 1, 0));
    assert_eq!(losses.blocks(LossReason::Invalidation), 1);
}
