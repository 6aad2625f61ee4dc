//! Cases of `oc-smq` worked by hand; the comments say why each answer is right.

use super::*;

#[test]
fn the_promote_level_keeps_to_the_budget_and_else_follows_hits() {
    let mut levels = Thresholds::default();
    let mut tick = |promotions, hits| {
        (0..promotions).for_each(|_| levels.promoted());
        (0..hits).for_each(|_| levels.hit());
        levels.end_tick(5);
        levels.promote
    };
    // Within the budget, over it twice (hits fall, but the budget comes first), then falling
    // and rising hits.
    let seen = [(5, 9), (6, 9), (7, 3), (5, 2), (0, 8), (0, 8), (0, 7), (0, 6)];
    assert_eq!(seen.map(|(promotions, hits)| tick(promotions, hits)), [0, 1, 2, 1, 1, 1, 0, 0]);
    for _ in 0..100 {
        tick(6, 0);
    }
    assert_eq!(tick(6, 0), 63);
}

#[test]
fn a_resize_keeps_proportions_where_what_is_held_allows() {
    let mut sizes = RegionDivision::new(10);
    sizes.divide(RegionSizes { private_blocks: 6, shared_blocks: 2 });
    assert_eq!(sizes.capacity(), 8);
    sizes.resize(20, 6, 2);
    assert_eq!((sizes.of(false), sizes.of(true)), (15, 5));
    // Four blocks of the shared region stay; only one in three of the wanted would be there.
    sizes.resize(6, 1, 4);
    assert_eq!((sizes.of(false), sizes.of(true)), (2, 4));
    sizes.resize(8, 1, 2);
    assert_eq!((sizes.of(false), sizes.of(true)), (6, 2));
    sizes.resize(0, 0, 0);
    assert!(!sizes.both());
    sizes.resize(4, 0, 0);
    assert_eq!((sizes.of(false), sizes.of(true)), (3, 1));
}

#[test]
fn new_blocks_wait_until_the_pool_may_be_written_again() {
    let mut pool = PoolWrites::new(2.0);
    (0..9).for_each(|_| pool.written());
    assert!(pool.allows(), "without a clock there is no limit");
    pool.clock(5_000_000_000);
    assert!(!pool.allows(), "two are owed");
    pool.clock(6_499_999_000);
    assert!(!pool.allows());
    pool.clock(6_500_001_000);
    assert!(pool.allows());
    pool.written();
    assert!(!pool.allows());
    pool.clock(60_000_000_000);
    (0..2).for_each(|_| pool.written());
    assert!(!pool.allows(), "no more is saved up than comes in a second");
    let mut free = PoolWrites::new(0.0);
    free.clock(1);
    (0..9).for_each(|_| free.written());
    assert!(free.allows());
}

fn feed(policy: &mut OcSmq, ids: impl IntoIterator<Item = u32>, write: bool) -> Vec<Verdict> {
    let access = |id| Access { write, ..Access::read(BlockId(id)) };
    ids.into_iter().map(|id| policy.access(access(id))).collect()
}

fn level(policy: &OcSmq, id: u32) -> u8 {
    policy.level_lists.level(BlockId(id))
}

/// Four blocks, two of each region; a tick of 8 accesses, a period of 80.
fn four() -> OcSmq {
    let settings = OcSmqSettings { tick: 8, free: 0.0, budget: 1.0, ..Default::default() };
    let mut policy = OcSmq::new(4, &settings, Seed(0));
    policy.reserve_ids(200);
    policy.divide_regions(RegionSizes { private_blocks: 2, shared_blocks: 2 }, &mut Vec::new());
    policy
}

const IN: Verdict = Verdict::Admit { evicted: None };

#[test]
fn the_hand_worked_case() {
    let mut policy = four();
    // While the private region holds all, all are hot and enter at the top; then it spills.
    assert_eq!(policy.hot_level(), 0);
    assert_eq!(feed(&mut policy, [0, 1, 2], false), [IN; 3]);
    assert_eq!(feed(&mut policy, [3], true), [IN]);
    assert_eq!([0, 1, 2, 3].map(|id| level(&policy, id)), [63; 4]);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|id| policy.region(BlockId(id))),
        [Region::Private, Region::Private, Region::Shared, Region::Shared, Region::Any]
    );
    // 75 hits, then the 80th access ends the tenth tick, and with it the period: each of the
    // four lowest levels gets a block, the oldest the lowest, and two levels are hot. Both
    // blocks of the shared region are, so one of them is to be swapped.
    assert!(feed(&mut policy, [0; 75], false).iter().all(|verdict| *verdict == Verdict::Hit));
    assert_eq!(feed(&mut policy, [0], false), [Verdict::Hit]);
    assert_eq!([1, 2, 3, 0].map(|id| level(&policy, id)), [0, 1, 2, 4]);
    assert_eq!(policy.hot_level(), 2);
    // The hottest of the shared region and the coldest of the private one change places; then
    // nothing hot is left there.
    assert_eq!(policy.background_op(), Some(BackgroundOp::Swap(BlockId(3), BlockId(1))));
    assert_eq!([policy.background_op(), policy.background_op()], [None; 2]);
    assert_eq!(policy.region(BlockId(3)), Region::Private);
    assert_eq!((policy.swaps(), policy.len_in(Region::Shared)), (1, 2));
    // A new block is below the hot level: it carries the shared bit, takes the place of the
    // coldest and stands just below the hot level. So does the next.
    let admit = |victim| vec![Verdict::Admit { evicted: Some(BlockId(victim)) }];
    assert_eq!(feed(&mut policy, [4], false), admit(1));
    assert_eq!((policy.region(BlockId(4)), level(&policy, 4)), (Region::Shared, 1));
    assert_eq!(feed(&mut policy, [5], false), admit(2));
    // Now 1 and 2 are remembered where they stood, and 6 has climbed high while it was missed. It
    // is hot; both blocks of the private region are so too, hence a cold one of the other leaves.
    assert_eq!([1, 2].map(|id| level(&policy, id)), [0, 1]);
    policy.remember(BlockId(6), 5);
    assert_eq!(feed(&mut policy, [6], true), admit(4));
    assert_eq!((policy.region(BlockId(6)), level(&policy, 6)), (Region::Shared, 63));
    assert_eq!(policy.audit(), Ok(()));
}

#[test]
fn a_hot_newcomer_displaces_a_cold_block_of_its_own_room_and_spares_the_reserve() {
    let settings = OcSmqSettings { free: 0.25, demotions: 1, ..Default::default() };
    let mut policy = OcSmq::new(4, &settings, Seed(0));
    policy.reserve_ids(200);
    policy.divide_regions(RegionSizes { private_blocks: 2, shared_blocks: 2 }, &mut Vec::new());
    policy.thresholds.hot = 40;
    // All are cold, and go to the shared region first.
    assert_eq!(feed(&mut policy, [0, 1, 2, 3], true), [IN; 4]);
    assert_eq!(policy.len_in(Region::Shared), 2);
    assert_eq!((policy.free(), policy.reserve), (0, 1));
    // All stand at level 39, too high to be demoted; evened out they are low, and the coldest
    // leaves, dirty as it is.
    assert_eq!(policy.background_op(), None);
    policy.level_lists.even_out();
    assert_eq!(policy.background_op(), Some(BackgroundOp::Demote(BlockId(0))));
    assert_eq!(policy.background_op(), None);
    policy.remember(BlockId(9), 50);
    assert_eq!(feed(&mut policy, [9], false), [Verdict::Admit { evicted: Some(BlockId(2)) }]);
    assert_eq!(policy.region(BlockId(9)), Region::Private);
    // One with the shared bit takes the free place.
    assert_eq!(feed(&mut policy, [10], false), [IN]);
    assert_eq!(policy.region(BlockId(10)), Region::Shared);
    assert_eq!(policy.demotions(), 1);
    assert_eq!(policy.audit(), Ok(()));
}

#[test]
fn dirty_blocks_of_low_levels_are_cleaned_at_the_pace_that_is_set() {
    let settings = OcSmqSettings { tick: 7, clean: 0.5, demotions: 2, ..Default::default() };
    let mut policy = OcSmq::new(6, &settings, Seed(0));
    policy.reserve_ids(10);
    feed(&mut policy, 0..6, true);
    policy.level_lists.even_out();
    assert_eq!(feed(&mut policy, [5], true), [Verdict::Hit]);
    let mut round = || std::iter::from_fn(|| policy.background_op()).collect::<Vec<_>>();
    let clean = |id| BackgroundOp::Clean(BlockId(id));
    assert_eq!([round(), round(), round()], [vec![clean(0), clean(1)], vec![clean(2)], vec![]]);
    assert_eq!((policy.cleanings(), policy.audit()), (3, Ok(())));
}

#[test]
fn rooms_shrink_by_their_coldest_and_in_either_order_of_resize_and_division() {
    let divided = |resize_first: bool| {
        let mut policy = four();
        feed(&mut policy, 0..4, false);
        let mut left = Vec::new();
        if resize_first {
            policy.resize(2, &mut left);
        }
        policy.divide_regions(RegionSizes { private_blocks: 1, shared_blocks: 1 }, &mut left);
        policy.resize(2, &mut left);
        assert_eq!(policy.audit(), Ok(()));
        left.sort();
        (left, policy.len_in(Region::Private), policy.len_in(Region::Shared), policy.capacity())
    };
    assert_eq!(divided(true), divided(false));
    assert_eq!(divided(true), (vec![BlockId(0), BlockId(2)], 1, 1, 2));
}
