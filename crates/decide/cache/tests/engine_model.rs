//! The engine agrees with a slow, obvious model over every write mode, layout and policy.

use cachewright_cache::{Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_policy::{PolicyVisitor, Registered, entries, visit};
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Step {
    tenant: u16,
    op: Op,
    block: u64,
    blocks: u64,
    resize: Option<u32>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Trim)];
    let resize = prop_oneof![9 => Just(None), 1 => (0..12_u32).prop_map(Some)];
    let step = (0..3_u16, op, 0..24_u64, 1..4_u64, resize)
        .prop_map(|(tenant, op, block, blocks, resize)| Step { tenant, op, block, blocks, resize });
    prop::collection::vec(step, 1..120)
}

/// Replays the steps and checks conservation against maps kept from the moves alone.
struct Replay<'a> {
    steps: &'a [Step],
    mode: WriteMode,
    kind: Kind,
}

/// How three tenants divide a cache.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Shared,
    Apart,
    /// The second on its own, the others together.
    Pools,
}

impl Kind {
    /// A division of 12 blocks with so many for the first pool.
    fn quotas(self, size: u32) -> Quotas {
        match self {
            Kind::Shared => Quotas::Shared(size),
            Kind::Apart => Quotas::PerTenant(vec![size, (12 - size) / 2, (13 - size) / 2]),
            Kind::Pools => Quotas::Pools { of: vec![0, 1, 0], blocks: vec![size, 12 - size] },
        }
    }
}

impl PolicyVisitor for Replay<'_> {
    type Output = ();

    fn visit<P: Registered>(self, settings: P::Settings) {
        let make = |_, capacity| P::new(capacity, &settings, Seed(1));
        let mut cache = Cache::new(Engine::new(3, &self.kind.quotas(6), self.mode, make), 12);
        let mut plan = Plan::default();
        // Address -> dirty, as the moves say.
        let mut held: BTreeMap<(u16, u64), bool> = BTreeMap::new();
        for step in self.steps {
            if let Some(size) = step.resize {
                assert!(cache.set_quotas(&self.kind.quotas(size), &mut plan));
                follow(&plan, Op::Read, self.mode, &mut held);
            }
            let request = Request {
                time: Nanos(0),
                offset: Bytes(step.block << 12),
                length: Bytes(step.blocks << 12),
                op: step.op,
                tenant: TenantId(step.tenant),
            };
            cache.on(&request, &mut plan);
            follow(&plan, step.op, self.mode, &mut held);
            assert_eq!(cache.engine().audit(), Ok(()));
            let dirty = held.values().filter(|dirty| **dirty).count() as u64;
            assert_eq!(cache.engine().dirty_blocks(), dirty);
            for tenant in 0..3 {
                let of_tenant = held.keys().filter(|(owner, _)| *owner == tenant).count();
                assert_eq!(cache.engine().occupancy(TenantId(tenant)), of_tenant as u32);
            }
        }
    }
}

/// Performs a plan on the map: what a daemon would hold after the same moves.
fn follow(plan: &Plan, op: Op, mode: WriteMode, held: &mut BTreeMap<(u16, u64), bool>) {
    use cachewright_cache::Move;
    for step in &plan.moves {
        match step {
            Move::Fill(c) => assert_eq!(held.insert((c.tenant.0, c.number), false), None),
            Move::Serve(c) => {
                let dirty = op == Op::Write && mode == WriteMode::WriteBack;
                let entry = held.entry((c.tenant.0, c.number)).or_insert_with(|| {
                    assert_eq!(op, Op::Write, "only a whole write appears without a fill");
                    false
                });
                *entry |= dirty;
            }
            Move::WriteBack(c) => {
                assert_eq!(held.remove(&(c.tenant.0, c.number)), Some(true), "was dirty");
            }
            Move::Drop(c) => {
                let was = held.remove(&(c.tenant.0, c.number));
                assert!(was == Some(false) || op == Op::Trim, "{was:?} dropped on {op:?}");
            }
            Move::Bypass { tenant, number } => {
                assert!(!held.contains_key(&(tenant.0, *number)), "stale copy left behind");
            }
            Move::Clean(c) => {
                assert_eq!(held.insert((c.tenant.0, c.number), false), Some(true));
            }
            Move::Swap(..) | Move::Fetch(_) | Move::WriteThrough(_) | Move::Trim | Move::Flush => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn moves_account_for_every_block(
        steps in steps(),
        mode in 0..4_usize,
        kind in prop_oneof![Just(Kind::Shared), Just(Kind::Apart), Just(Kind::Pools)],
    ) {
        for entry in entries() {
            let replay = Replay { steps: &steps, mode: WriteMode::ALL[mode], kind };
            visit(entry.name, &[], replay).expect("defaults are valid");
        }
    }
}
