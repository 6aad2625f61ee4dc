//! The engine agrees with a slow, obvious model over every write mode, layout and policy.

use cachewright_cache::{Cache, Cached, Engine, Move, Plan, Quotas, Shrink, WriteMode};
use cachewright_policy::{Need, PolicyVisitor, Region, RegionSizes, Registered, entries, visit};
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Step {
    tenant: u16,
    op: Op,
    block: u64,
    blocks: u64,
    resize: Option<u32>,
    /// Eighths of each pool that become its own region.
    divide: Option<u32>,
    upkeep: Upkeep,
}

/// What a daemon asks for beside requests.
#[derive(Clone, Copy, Debug)]
enum Upkeep {
    Nothing,
    /// A block that recovery found, or whose write-back failed.
    Adopt(u64, bool),
    /// A block whose copy is lost.
    Forget(u64),
    /// Write-back of so many blocks that stay.
    Clean(u32),
    /// A request without bytes.
    Empty(u64),
}

fn upkeep() -> impl Strategy<Value = Upkeep> {
    prop_oneof![
        8 => Just(Upkeep::Nothing),
        1 => (0..24_u64, any::<bool>()).prop_map(|(block, dirty)| Upkeep::Adopt(block, dirty)),
        1 => (0..24_u64).prop_map(Upkeep::Forget),
        1 => (1..5_u32).prop_map(Upkeep::Clean),
        1 => (0..24_u64).prop_map(Upkeep::Empty),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Trim)];
    let resize = prop_oneof![9 => Just(None), 1 => (0..12_u32).prop_map(Some)];
    let divide = prop_oneof![9 => Just(None), 1 => (0..9_u32).prop_map(Some)];
    let step = (0..3_u16, op, 0..24_u64, 1..4_u64, resize, divide, upkeep()).prop_map(
        |(tenant, op, block, blocks, resize, divide, upkeep)| Step {
            tenant,
            op,
            block,
            blocks,
            resize,
            divide,
            upkeep,
        },
    );
    prop::collection::vec(step, 1..120)
}

/// Replays the steps and checks conservation against maps kept from the moves alone.
struct Replay<'a> {
    steps: &'a [Step],
    mode: WriteMode,
    kind: Kind,
    shrink: Shrink,
    /// Whether the cause of each miss is found.
    explains: bool,
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
        let engine = Engine::new(3, &self.kind.quotas(6), self.mode, make);
        let mut engine = engine.shrinking(self.shrink);
        if self.explains {
            engine.explain_misses(12, false, false);
        }
        let mut cache = Cache::new(engine, 12);
        let mut plan = Plan::default();
        let mut held = Held::new();
        for step in self.steps {
            if let Some(size) = step.resize {
                let quotas = self.kind.quotas(size);
                assert!(match step.op {
                    Op::Write => cache.divide_otherwise(&quotas, self.shrink, &mut plan),
                    _ => cache.set_quotas(&quotas, &mut plan),
                });
                let set: Vec<u32> = (0..quotas.blocks().len())
                    .map(|pool| cache.engine().quota_of_pool(pool))
                    .collect();
                assert_eq!(set, quotas.blocks());
                follow(&plan, Op::Read, self.mode, &mut held);
            }
            if let Some(eighths) = step.divide {
                divide(&mut cache, eighths, &mut plan);
                follow(&plan, Op::Read, self.mode, &mut held);
            }
            self.keep_up(&mut cache, step, &mut plan, &mut held);
            let request = Request {
                time: Nanos(0),
                offset: Bytes(step.block << 12),
                length: Bytes(step.blocks << 12),
                op: step.op,
                tenant: TenantId(step.tenant),
            };
            cache.on(&request, &mut plan);
            follow(&plan, step.op, self.mode, &mut held);
            let pool = cache.engine().pool_of(TenantId(step.tenant));
            cache.background_ops(pool, &mut plan);
            follow(&plan, Op::Read, self.mode, &mut held);
            assert_eq!(cache.audit(), Ok(()));
            assert!(held.len() <= 12, "no more blocks than the cache ever has");
            let dirty = held.values().filter(|(dirty, _)| *dirty).count() as u64;
            assert_eq!(cache.engine().dirty_blocks(), dirty);
            for tenant in 0..3 {
                let of_tenant = held.keys().filter(|(owner, _)| *owner == tenant).count();
                assert_eq!(cache.engine().occupancy(TenantId(tenant)), of_tenant as u32);
                if let Some(causes) = cache.engine().causes() {
                    let counts = cache.engine().counts(TenantId(tenant));
                    let misses = counts.accesses() - counts.hits();
                    assert_eq!(causes[usize::from(tenant)].total(), misses);
                }
            }
        }
    }
}

impl Replay<'_> {
    /// Carries out what a daemon asks for beside requests.
    fn keep_up<P: Registered>(
        &self,
        cache: &mut Cache<P>,
        step: &Step,
        plan: &mut Plan,
        held: &mut Held,
    ) {
        let tenant = TenantId(step.tenant);
        let knows = |need: &Need| matches!(need, Need::Future | Need::Benefit);
        match step.upkeep {
            Upkeep::Nothing => {}
            Upkeep::Adopt(block, dirty) => {
                let dirty = dirty && self.mode == WriteMode::WriteBack;
                let adopted = cache.adopt(tenant, block, dirty, plan);
                follow(plan, Op::Read, self.mode, held);
                let pool = cache.engine().pool_of(tenant);
                let empty = cache.engine().policy(pool).capacity() == 0;
                let refused = empty || P::ENTRY.needs.iter().any(knows);
                assert!(adopted.is_some() || refused, "{} refuses a block", P::ENTRY.name);
                if let Some(cached) = adopted {
                    assert!(cache.contains(tenant, block));
                    let entry = held.entry((tenant.0, block)).or_insert((false, cached.region));
                    entry.0 |= dirty;
                }
            }
            Upkeep::Forget(block) => {
                let lost =
                    cache.forget(tenant, block, LossReason::Checksum).map(|(_, dirty)| dirty);
                let was = held.remove(&(tenant.0, block)).map(|(dirty, _)| dirty);
                assert_eq!(lost, was, "what is forgotten was held");
                assert!(!cache.contains(tenant, block));
            }
            Upkeep::Clean(max) => {
                let pool = cache.engine().pool_of(tenant);
                let before = cache.engine().dirty_in(pool);
                let next = cache.clean_some(pool, BlockId(0), max, plan);
                assert_eq!(plan.moves.len() as u32, before.min(max));
                assert!(next.is_some() || before < max, "it ends when none is left");
                follow(plan, Op::Read, self.mode, held);
            }
            Upkeep::Empty(block) => {
                for op in [Op::Read, Op::Write, Op::Trim] {
                    let (offset, length) = (Bytes((block << 12) + 512), Bytes(0));
                    let request = Request { time: Nanos(0), offset, length, op, tenant };
                    cache.on(&request, plan);
                    assert!(plan.moves.iter().all(|step| *step == Move::Trim), "{:?}", plan.moves);
                }
            }
        }
    }
}

/// Address -> dirty and region, as the moves say.
type Held = BTreeMap<(u16, u64), (bool, Region)>;

/// Divides each pool.
fn divide<P: Registered>(cache: &mut Cache<P>, eighths: u32, plan: &mut Plan) {
    cache.control(plan, |engine, left| {
        for pool in 0..engine.pools() {
            let capacity = engine.policy(pool).capacity();
            let private_blocks = capacity * eighths / 8;
            let sizes = RegionSizes { private_blocks, shared_blocks: capacity - private_blocks };
            engine.divide_regions(pool, sizes, left);
        }
    });
}

/// Performs a plan on the map: what a daemon would hold after the same moves.
fn follow(plan: &Plan, op: Op, mode: WriteMode, held: &mut Held) {
    let key = |c: &Cached| (c.tenant.0, c.number);
    for step in &plan.moves {
        match step {
            Move::Fill(c) => assert_eq!(held.insert(key(c), (false, c.region)), None),
            Move::Serve(c) => {
                let dirty = op == Op::Write && mode == WriteMode::WriteBack;
                let entry = held.entry(key(c)).or_insert_with(|| {
                    assert_eq!(op, Op::Write, "only a whole write appears without a fill");
                    (false, c.region)
                });
                assert_eq!(entry.1, c.region, "only a swap changes a region");
                entry.0 |= dirty;
            }
            Move::WriteBack(c) => {
                let was = held.remove(&key(c));
                assert!(was.is_some_and(|(dirty, _)| dirty), "{was:?} written back");
            }
            Move::Drop(c) => {
                let was = held.remove(&key(c)).map(|(dirty, _)| dirty);
                assert_eq!(was, Some(false), "a clean block is dropped on {op:?}");
            }
            Move::Discard { cached, dirty } => {
                let was = held.remove(&key(cached)).map(|(dirty, _)| dirty);
                let invalidated = op == Op::Write && mode == WriteMode::ReadOnly;
                assert!(op == Op::Trim || invalidated, "discarded on {op:?}");
                assert_eq!(was, Some(*dirty));
            }
            Move::Bypass { tenant, number } => {
                assert!(!held.contains_key(&(tenant.0, *number)), "stale copy left behind");
            }
            Move::Clean(c) => {
                assert_eq!(held.insert(key(c), (false, c.region)), Some((true, c.region)));
            }
            Move::Swap(pair) => {
                let [one, other] = pair.as_ref();
                let (first, second) = (held[&key(one)], held[&key(other)]);
                assert_eq!(
                    (one.region, other.region),
                    (second.1, first.1),
                    "regions are exchanged"
                );
                held.insert(key(one), (first.0, second.1));
                held.insert(key(other), (second.0, first.1));
            }
            Move::Fetch(_) | Move::WriteThrough(_) | Move::Trim | Move::Flush => {}
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
        explains: bool,
        as_needed: bool,
    ) {
        let (mode, shrink) = (WriteMode::ALL[mode], Shrink::ALL[usize::from(as_needed)]);
        for entry in entries() {
            let replay = || Replay { steps: &steps, mode, kind, shrink, explains };
            visit(entry.name, &[], replay()).expect("defaults are valid");
            // With short periods too, where there are any; and with many background operations.
            let short = [("tick".to_owned(), Value::Int(3))];
            let _ = visit(entry.name, &short, replay());
            let busy = [("free", 0.3), ("clean", 0.5), ("hot_share", 0.1)];
            let busy = busy.map(|(name, value)| (name.to_owned(), Value::Float(value)));
            let _ = visit(entry.name, &[&short[..], &busy].concat(), replay());
        }
    }
}
