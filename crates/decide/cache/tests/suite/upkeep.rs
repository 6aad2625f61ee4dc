//! What a daemon asks of a live cache beside requests: divisions as needed, trims in pieces,
//! recovery, new tenants, other write modes, memory.
//!
//! For: `request_cache`, `engine`. Must never know: policies' code.

use cachewright_cache::{Cache, Cached, Engine, Move, Plan, Quotas, Shrink, WriteMode};
use cachewright_policy::lru::Lru;
use cachewright_policy::{Entry, Need, PolicyVisitor, Registered, entries, visit};
use cachewright_types::declare::NoSettings;
use cachewright_types::measure::LossReason;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Rng, Seed, TenantId};

const BLOCK: u64 = 4096;

fn request(op: Op, tenant: u16, block: u64, blocks: u64) -> Request {
    let (time, tenant) = (Nanos(0), TenantId(tenant));
    Request { time, offset: Bytes(block * BLOCK), length: Bytes(blocks * BLOCK), op, tenant }
}

fn lru(tenants: usize, quotas: &Quotas, mode: WriteMode) -> Cache<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    Cache::new(Engine::new(tenants, quotas, mode, make), 12)
}

/// Policies that need nothing that a live cache has not.
fn blind() -> impl Iterator<Item = &'static Entry> {
    let has = |need: &Need| *need == Need::Requests;
    entries().into_iter().filter(move |entry| entry.needs.iter().all(has))
}

/// Random reads and writes of two tenants, some blocks far more often than others.
fn feed<P: Registered>(cache: &mut Cache<P>, rng: &mut Rng, count: u32, plan: &mut Plan) {
    for _ in 0..count {
        let op = if rng.below(3) == 0 { Op::Write } else { Op::Read };
        let unit = rng.unit();
        let block = (unit * unit * unit * 900.0) as u64;
        cache.on(&request(op, rng.below(2) as u16, block * 977, 1 + rng.below(3)), plan);
    }
}

/// Policies that choose victims by shares of the capacity, which each loss of blocks changes.
const BY_SHARES: [&str; 7] = ["2q", "reca", "s3-fifo", "s4-fifo", "merlin", "clock2q-plus", "lhd"];

/// One cache gives up blocks at once, and one as the other tenant needs them; both have seen the
/// same.
struct AsNeeded;

impl PolicyVisitor for AsNeeded {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let name = P::ENTRY.name;
        let caches = [Shrink::AtOnce, Shrink::AsNeeded].map(|shrink| {
            let make = |_, capacity| P::new(capacity, &settings, Seed(3));
            let quotas = Quotas::PerTenant(vec![150, 50]);
            let engine = Engine::new(2, &quotas, WriteMode::WriteBack, make).shrinking(shrink);
            let mut cache = Cache::new(engine, 12);
            feed(&mut cache, &mut Seed(8).rng(), 4_000, &mut Plan::default());
            cache
        });
        let [mut at_once, mut as_needed] = caches;
        let target = Quotas::PerTenant(vec![60, 140]);
        let mut plan = Plan::default();
        assert!(at_once.set_quotas(&target, &mut plan));
        let expected = std::mem::take(&mut plan.moves);
        assert!(as_needed.set_quotas(&target, &mut plan));
        assert_eq!(plan.moves, [], "{name}: nothing leaves before room is needed");
        let mut moves = Vec::new();
        for block in 0..400 {
            // Twice: some policies admit a block at its second use.
            for _ in 0..2 {
                as_needed.on(&request(Op::Read, 1, (1 << 40) + block, 1), &mut plan);
                let of_first = |step: &Move| match step {
                    Move::WriteBack(cached) | Move::Drop(cached) => cached.tenant == TenantId(0),
                    _ => false,
                };
                let from = moves.len();
                moves.extend(plan.moves.iter().filter(|step| of_first(step)).cloned());
                assert!(moves.len() - from <= 1, "{name}: {} at once", moves.len() - from);
            }
        }
        if !BY_SHARES.contains(&name) {
            assert!(moves == expected[..moves.len()], "{name}: the same blocks in the same order");
        }
        // Where it did not grow to its quota it has room that it does not use: its policy admits
        // few of these blocks.
        let engine = as_needed.engine();
        let (held, quota) = (engine.policy(1).len(), engine.quota(TenantId(1)));
        let is_done = moves.len() == expected.len();
        assert!(is_done || held < engine.policy(1).capacity(), "{name}: {held} of {quota}");
        assert_eq!(engine.audit(), Ok(()), "{name}");
    }
}

#[test]
fn as_another_tenant_needs_room_the_same_blocks_leave_as_at_once() {
    for entry in blind() {
        visit(entry.name, &[], AsNeeded).unwrap();
    }
}

/// `rc-x` draws by the places of what is left: a replay drops the blocks by ascending number.
#[test]
fn blocks_of_a_wide_trim_leave_by_ascending_number() {
    let mut cache = lru(1, &Quotas::Shared(100), WriteMode::WriteBack);
    let mut plan = Plan::default();
    for block in [70, 4, 91, 33, 5, 88] {
        cache.on(&request(Op::Write, 0, block, 1), &mut plan);
    }
    for (blocks, left) in [(90, vec![4, 5, 33, 70, 88]), (1 << 40, vec![91])] {
        cache.on(&request(Op::Trim, 0, 0, blocks), &mut plan);
        let number = |step: &Move| match step {
            Move::Discard { cached, .. } => Some(cached.number),
            _ => None,
        };
        assert_eq!(plan.moves.iter().filter_map(number).collect::<Vec<u64>>(), left);
    }
}

#[test]
fn a_trim_of_a_volume_goes_in_pieces_and_is_passed_on_at_the_end() {
    let mut cache = lru(2, &Quotas::Shared(100), WriteMode::WriteBack);
    let mut plan = Plan::default();
    cache.on(&request(Op::Write, 0, 0, 40), &mut plan);
    cache.on(&request(Op::Read, 1, 0, 40), &mut plan);
    for whole in [request(Op::Trim, 0, 10, 20), request(Op::Trim, 0, 0, 1 << 40)] {
        let mut rest = cache.begin_trim(&whole);
        let (mut pieces, mut discarded) = (0, 0);
        loop {
            plan.moves.clear();
            let ended = cache.trim_some(&mut rest, 8, &mut plan);
            let is_discard = |step: &&Move| matches!(step, Move::Discard { dirty: true, .. });
            let found = plan.moves.iter().filter(is_discard).count();
            assert_eq!(found + usize::from(ended), plan.moves.len());
            assert!(found <= 8);
            discarded += found;
            pieces += 1;
            if ended {
                break;
            }
        }
        assert_eq!(plan.moves.last(), Some(&Move::Trim));
        assert_eq!((discarded, pieces), if whole.length.0 < 1 << 40 { (20, 3) } else { (20, 13) });
    }
    assert_eq!(cache.engine().occupancy(TenantId(0)), 0);
    assert_eq!(cache.engine().occupancy(TenantId(1)), 40, "the other tenant's blocks stay");
}

/// Blocks that a log holds come back in its order: the oldest leaves first, dirty ones are dirty,
/// and what does not fit any more is evicted like any block.
struct Recovery;

impl PolicyVisitor for Recovery {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let name = P::ENTRY.name;
        let make = |_, capacity| P::new(capacity, &settings, Seed(3));
        let mut cache =
            Cache::new(Engine::new(1, &Quotas::Shared(200), WriteMode::WriteBack, make), 12);
        let (tenant, mut plan) = (TenantId(0), Plan::default());
        for number in 0..200 {
            let adopted = cache.adopt_new(tenant, number * 31, number % 4 == 0, &mut plan);
            assert!(adopted.is_some() && plan.moves.is_empty(), "{name}: block {number}");
        }
        assert_eq!(cache.engine().occupancy(tenant), 200, "{name}");
        assert_eq!(cache.engine().dirty_blocks(), 50, "{name}");
        assert_eq!(cache.engine().counts(tenant).accesses(), 0, "{name}: counted as no access");
        let adopted = cache.adopt(tenant, 1 << 40, true, &mut plan).is_some();
        assert!(adopted && plan.moves.len() == 1, "{name}: {:?}", plan.moves);
        // A block that is cached stays where it is, and is dirty from now on.
        let [Move::Drop(gone) | Move::WriteBack(gone)] = plan.moves[..] else { panic!("{name}") };
        let stays = (0..200).map(|at| at * 31).find(|number| *number != gone.number).unwrap();
        let before = cache.engine().dirty_blocks();
        let again = cache.adopt(tenant, stays, true, &mut plan).map(|cached| cached.number);
        assert_eq!(again, Some(stays), "{name}");
        assert!(plan.moves.is_empty() && cache.engine().dirty_blocks() <= before + 1, "{name}");
        assert_eq!(cache.engine().audit(), Ok(()), "{name}");
    }
}

#[test]
fn recovery_puts_every_block_back_under_every_policy() {
    for entry in blind() {
        visit(entry.name, &[], Recovery).unwrap();
    }
}

/// A dirty victim whose write-back failed comes back; the block that came for it leaves or not, but
/// the content is never lost.
#[test]
fn a_victim_whose_write_back_failed_is_taken_back() {
    let mut cache = lru(1, &Quotas::Shared(2), WriteMode::WriteBack);
    let mut plan = Plan::default();
    cache.on(&request(Op::Write, 0, 1, 2), &mut plan);
    cache.on(&request(Op::Read, 0, 9, 1), &mut plan);
    let Move::WriteBack(Cached { number, tenant, .. }) = plan.moves[0] else { panic!() };
    assert_eq!(number, 1);
    assert!(cache.adopt(tenant, number, true, &mut plan).is_some());
    let [Move::WriteBack(other)] = plan.moves[..] else { panic!("{:?}", plan.moves) };
    assert_eq!(other.number, 2, "the least recently used leaves for it");
    let forget = |cache: &mut Cache<Lru>, reason| cache.forget(tenant, 1, reason);
    let lost = forget(&mut cache, LossReason::Device);
    assert_eq!(lost.map(|(_, dirty)| dirty), Some(true));
    assert_eq!(forget(&mut cache, LossReason::Device), None);
    let losses = *cache.engine().losses(tenant);
    assert_eq!((losses.dirty(LossReason::Device), losses.total()), (1, 1));
    assert_eq!(cache.engine().counts(tenant).invalidations, 1);
}

#[test]
fn tenants_are_added_while_it_runs() {
    let make = |_, capacity| Lru::new(capacity, &NoSettings::default(), Seed(0));
    let mut apart = lru(2, &Quotas::PerTenant(vec![4, 4]), WriteMode::WriteBack);
    let mut plan = Plan::default();
    apart.on(&request(Op::Write, 1, 0, 4), &mut plan);
    assert_eq!(apart.add_tenant(3, make), Some(TenantId(2)));
    apart.on(&request(Op::Write, 2, 0, 4), &mut plan);
    let held = [0, 1, 2].map(|tenant| apart.engine().occupancy(TenantId(tenant)));
    assert_eq!(held, [0, 4, 3]);
    assert!(apart.set_quotas(&Quotas::PerTenant(vec![1, 1, 9]), &mut plan));
    assert_eq!(apart.engine().audit(), Ok(()));
    // A pool of one tenant becomes one of several: whose block is whose is known from before.
    let mut shared = lru(1, &Quotas::Shared(4), WriteMode::WriteBack);
    shared.on(&request(Op::Write, 0, 0, 4), &mut plan);
    assert_eq!(shared.add_tenant(0, make), Some(TenantId(1)));
    shared.on(&request(Op::Read, 1, 0, 1), &mut plan);
    let held = [0, 1].map(|tenant| shared.engine().occupancy(TenantId(tenant)));
    assert_eq!((held, shared.engine().counts(TenantId(0)).evictions), ([3, 1], 1));
    let pools = Quotas::Pools { of: vec![0, 0, 1], blocks: vec![4, 4] };
    assert_eq!(lru(3, &pools, WriteMode::WriteBack).add_tenant(2, make), None);
}

#[test]
fn a_write_mode_that_does_not_reach_dirty_blocks_waits_until_they_are_clean() {
    let mut cache = lru(1, &Quotas::Shared(200), WriteMode::WriteBack);
    let mut plan = Plan::default();
    cache.on(&request(Op::Write, 0, 0, 150), &mut plan);
    assert_eq!(cache.set_mode(WriteMode::ReadOnly), Err(150));
    assert_eq!(cache.engine().mode(), WriteMode::WriteBack);
    assert_eq!(cache.set_mode(WriteMode::WriteThrough), Ok(()));
    cache.on(&request(Op::Write, 0, 170, 5), &mut plan);
    assert_eq!(cache.engine().dirty_blocks(), 150, "no block becomes dirty any more");
    let (mut next, mut cleaned) = (Some(BlockId(0)), 0);
    while let Some(from) = next {
        next = cache.clean_some(0, from, 40, &mut plan);
        assert!(plan.moves.len() <= 40);
        assert!(plan.moves.iter().all(|step| matches!(step, Move::Clean(_))));
        cleaned += plan.moves.len();
    }
    assert_eq!((cleaned, cache.engine().dirty_blocks()), (150, 0));
    assert_eq!(cache.set_mode(WriteMode::ReadOnly), Ok(()));
    assert_eq!(cache.engine().counts(TenantId(0)).writebacks, 150);
}

/// Ids follow what the policy remembers, whatever its order of forgetting is; and what is reserved
/// for the capacity is enough.
struct Ids;

impl PolicyVisitor for Ids {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let make = |_, capacity| P::new(capacity, &settings, Seed(3));
        let mut cache =
            Cache::new(Engine::new(1, &Quotas::Shared(500), WriteMode::WriteBack, make), 12);
        cache.reserve();
        let (mut rng, mut plan) = (Seed(5).rng(), Plan::default());
        let mut max_ids = 0;
        for step in 0..60_000_u64 {
            let hot = rng.below(3) == 0;
            let block = if hot { rng.below(700) } else { step * 7 };
            let op = if rng.below(4) == 0 { Op::Write } else { Op::Read };
            cache.on(&request(op, 0, block, 1), &mut plan);
            cache.background_ops(0, &mut plan);
            max_ids = max_ids.max(cache.ids());
        }
        let tracked = cache.engine().policy(0).max_tracked();
        let bound = (tracked + 1) * 16 / 15 + 1;
        assert!(max_ids as u64 <= bound, "{}: {max_ids} ids, bound {bound}", P::ENTRY.name);
        assert_eq!(cache.audit(), Ok(()));
    }
}

#[test]
fn ids_are_bounded_by_what_the_policy_remembers() {
    for entry in blind() {
        visit(entry.name, &[], Ids).unwrap();
    }
}
