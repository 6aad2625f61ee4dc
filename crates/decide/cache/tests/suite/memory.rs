//! Pools that grow in turn give their ids back.

use cachewright_cache::{Cache, Engine, Move, Plan, Quotas, WriteMode};
use cachewright_policy::{Need, PolicyVisitor, Registered, entries, visit};
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, Seed, TenantId};
use std::collections::BTreeMap;

const TENANTS: usize = 8;
/// Blocks of all tenants together.
const CAPACITY: u32 = 2_000;

fn request(rng: &mut Rng, tenant: u16, blocks: u64) -> Request {
    let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
    let unit = rng.unit();
    let number = (unit * unit * blocks as f64) as u64 * 977;
    let (offset, length) = (Bytes(number << 12), Bytes((1 + rng.below(2)) << 12));
    Request { time: Nanos(0), offset, length, op, tenant: TenantId(tenant) }
}

/// One tenant holds 93 of 100 blocks, the others one each.
fn quotas(holder: usize) -> Quotas {
    let share = |tenant| if tenant == holder { CAPACITY * 93 / 100 } else { CAPACITY / 100 };
    Quotas::PerTenant((0..TENANTS).map(share).collect())
}

/// Two caches see the same: every tenant holds most of the cache in turn, while all send requests.
/// One gives memory back after each turn; blocks that both caches name must be the same.
struct InTurn;

impl PolicyVisitor for InTurn {
    /// The ids of the cache that gives back, and of the other.
    type Output = [usize; 2];
    fn visit<P: Registered>(self, settings: P::Settings) -> [usize; 2] {
        let name = P::ENTRY.name;
        let [mut kept, mut compact] = [(), ()].map(|()| {
            let make = |_, capacity| P::new(capacity, &settings, Seed(1));
            Cache::new(Engine::new(TENANTS, &quotas(0), WriteMode::WriteBack, make), 12)
        });
        let [mut plan, mut other] = [Plan::default(), Plan::default()];
        let mut rng = Seed(2).derive(name).rng();
        // The id of each block of a plan, by pool and number.
        let mut ids: BTreeMap<(usize, u64), BlockId> = BTreeMap::new();
        for turn in 0..TENANTS {
            let batch: Vec<Request> = (0..9_000)
                .map(|step| {
                    let any = rng.below(TENANTS as u64) as u16;
                    let tenant = if step % 4 == 0 { any } else { turn as u16 };
                    request(&mut rng, tenant, u64::from(CAPACITY) * 2)
                })
                .collect();
            for request in &batch {
                kept.on(request, &mut other);
                compact.on(request, &mut plan);
                assert_eq!(names(&plan), names(&other), "{name}: turn {turn}");
                for step in &plan.moves {
                    match step {
                        Move::Serve(block) => {
                            let at = (usize::from(block.pool), block.number);
                            let before = ids.insert(at, block.id);
                            assert!(before.is_none_or(|id| id == block.id), "{name}: {block:?}");
                        }
                        Move::WriteBack(block) | Move::Drop(block) => {
                            let id = ids.remove(&(usize::from(block.pool), block.number));
                            assert!(id.is_none_or(|id| id == block.id), "{name}: {block:?}");
                        }
                        _ => {}
                    }
                }
                let pool = request.tenant.index();
                kept.background_ops(pool, &mut other);
                compact.background_ops(pool, &mut plan);
                assert_eq!(names(&plan), names(&other), "{name}: turn {turn}");
                remove_left(&mut ids, &plan);
            }
            let next = quotas((turn + 1) % TENANTS);
            kept.set_quotas(&next, &mut other);
            compact.set_quotas(&next, &mut plan);
            assert_eq!(names(&plan), names(&other), "{name}: turn {turn}");
            remove_left(&mut ids, &plan);
            let mut renamed = BTreeMap::new();
            compact.compact(&mut |pool, old, new| {
                renamed.insert((pool, old), new);
            });
            for (&(pool, _), id) in &mut ids {
                *id = renamed.get(&(pool, *id)).copied().unwrap_or(*id);
            }
            assert_eq!(compact.audit(), Ok(()), "{name}: turn {turn}");
        }
        for tenant in 0..TENANTS as u16 {
            let counts = |cache: &Cache<P>| *cache.engine().counts(TenantId(tenant));
            assert_eq!(counts(&compact), counts(&kept), "{name}");
        }
        [compact.ids(), kept.ids()]
    }
}

fn remove_left(ids: &mut BTreeMap<(usize, u64), BlockId>, plan: &Plan) {
    for step in &plan.moves {
        if let Move::WriteBack(block) | Move::Drop(block) = step {
            ids.remove(&(usize::from(block.pool), block.number));
        }
    }
}

/// The moves of a plan without ids.
fn names(plan: &Plan) -> Vec<Move> {
    let mut moves = plan.moves.clone();
    for step in &mut moves {
        match step {
            Move::Swap(pair) => pair.iter_mut().for_each(|cached| cached.id = BlockId(0)),
            Move::Serve(block)
            | Move::Fetch(block)
            | Move::Fill(block)
            | Move::WriteBack(block)
            | Move::WriteThrough(block)
            | Move::Clean(block)
            | Move::Drop(block)
            | Move::Discard { cached: block, .. } => block.id = BlockId(0),
            Move::Bypass { .. } | Move::Trim | Move::Flush => {}
        }
    }
    moves
}

#[test]
fn pools_that_grow_in_turn_keep_the_ids_of_one_capacity() {
    let has = |need: &Need| *need == Need::Requests;
    let mut checked = 0;
    for entry in entries().into_iter().filter(|entry| entry.needs.iter().all(has)) {
        let [compact, kept] = visit(entry.name, &[], InTurn).unwrap();
        // The ghosts of a policy are in proportion to the capacity: as one pool of all blocks has.
        let of_one = visit(entry.name, &[], OnePool).unwrap();
        let bound = of_one * 12 / 10;
        assert!(compact <= bound, "{}: {compact} ids of {bound}, {kept} kept", entry.name);
        assert!(kept > bound, "{}: the test tests nothing: {kept} ids of {bound}", entry.name);
        checked += 1;
    }
    assert!(checked > 15, "{checked} policies");
}

/// The most blocks that a policy of the whole capacity remembers.
struct OnePool;

impl PolicyVisitor for OnePool {
    type Output = usize;
    fn visit<P: Registered>(self, settings: P::Settings) -> usize {
        P::new(CAPACITY, &settings, Seed(1)).max_tracked() as usize
    }
}
