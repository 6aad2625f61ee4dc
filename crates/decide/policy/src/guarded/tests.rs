use super::*;
use crate::lru::Lru;
use crate::miss_budget::tests::Turns;
use cachewright_types::declare::NoSettings;

const CAPACITY: u32 = 200;
const IDS: u32 = 60 * CAPACITY;

fn guarded(capacity: u32, settings: &GuardedSettings, seed: u64) -> Guarded {
    let mut cache = Guarded::new(capacity, settings, Seed(seed));
    cache.reserve_ids(IDS as usize);
    cache
}

/// The bound at the top of the file, whatever is chosen; all blocks are sampled.
#[test]
fn misses_beside_lru_are_bounded_at_any_time() {
    let hasty = GuardedSettings { margin: 0.0, horizon: 0.2, ..GuardedSettings::default() };
    for (seed, settings) in (0..12).flat_map(|seed| {
        [GuardedSettings::default(), hasty.clone()].map(|settings| (seed, settings))
    }) {
        let mut cache = guarded(CAPACITY, &settings, seed);
        let mut lru = Lru::new(CAPACITY, &NoSettings::default(), Seed(seed));
        lru.reserve_ids(IDS as usize);
        let mut turns = Turns::new(seed, CAPACITY);
        let mut misses = [0.0; 2];
        let mut rules = Vec::new();
        for index in 0..60_000 {
            let access = turns.next();
            misses[0] += f64::from(cache.access(access) != Verdict::Hit);
            misses[1] += f64::from(lru.access(access) != Verdict::Hit);
            let bound = misses[1] * 1.02 + f64::from(CAPACITY) * 1.625 + 1.0;
            assert!(misses[0] <= bound, "seed {seed}, access {index}: {misses:?}");
            let rule = cache.cache.rule();
            if rules.last() != Some(&rule) {
                rules.push(rule);
            }
        }
        assert!(rules.len() > 3, "seed {seed}: the rule changes: {rules:?}");
        assert_eq!(cache.audit(), Ok(()));
    }
}

/// A loop of 212 blocks in a cache of 200: `lru` never hits, the best 199 of 211 times.
#[test]
fn a_loop_above_the_cache_is_found_within_two_rounds() {
    let mut cache = guarded(CAPACITY, &GuardedSettings::default(), 1);
    let loop_blocks = CAPACITY + CAPACITY / 16;
    let access = |index: u32| Access::read(BlockId(index % loop_blocks));
    let misses =
        (0..50 * loop_blocks).filter(|index| cache.access(access(*index)) != Verdict::Hit).count();
    assert!(misses < 3 * 212 + 48 * 13, "{misses} of {}", 50 * loop_blocks);
}

/// Where recency is best no other rule costs misses.
#[test]
fn on_a_hand_over_it_misses_as_often_as_lru() {
    let mut cache = guarded(CAPACITY, &GuardedSettings::default(), 1);
    let mut lru = Lru::new(CAPACITY, &NoSettings::default(), Seed(1));
    lru.reserve_ids(IDS as usize);
    let mut rng = Seed(3).rng();
    let mut misses = [0; 2];
    for index in 0..40_000 {
        let set = index / (2 * CAPACITY) % 8;
        let id = set * CAPACITY / 2 + rng.below(u64::from(CAPACITY) / 2) as u32;
        let access = Access::read(BlockId(id));
        misses[0] += u32::from(cache.access(access) != Verdict::Hit);
        misses[1] += u32::from(lru.access(access) != Verdict::Hit);
    }
    assert!(misses[0] * 50 <= misses[1] * 51, "{misses:?}");
}

#[test]
fn a_small_share_of_the_blocks_is_sampled_and_follows_the_capacity() {
    let settings = GuardedSettings { miniature: 16, ..GuardedSettings::default() };
    let mut cache = guarded(CAPACITY, &settings, 7);
    let access = |cache: &mut Guarded, id: u32| cache.access(Access::read(BlockId(id)));
    (0..CAPACITY).for_each(|id| {
        access(&mut cache, id);
    });
    let sampled =
        |cache: &Guarded| (0..IDS).filter(|id| cache.cache.is_sampled(BlockId(*id))).count();
    assert!((6..30).contains(&sampled(&cache)), "{} of 200", sampled(&cache));
    assert_eq!(cache.sample.capacity(), 16);
    let before = sampled(&cache);
    cache.resize(IDS, &mut Vec::new());
    assert!(sampled(&cache) < before / 4 + 3, "{} of 12,000", sampled(&cache));
    cache.resize(12, &mut Vec::new());
    (200..260).for_each(|id| {
        access(&mut cache, id);
    });
    assert_eq!((cache.sample.capacity(), cache.audit()), (12, Ok(())));
    assert!((248..260).all(|id| cache.cache.is_sampled(BlockId(id))), "a miniature is the cache");
}

#[test]
fn memory_is_bounded_where_few_blocks_are_sampled() {
    let settings = GuardedSettings { miniature: 16, ..GuardedSettings::default() };
    let mut cache = guarded(CAPACITY, &settings, 7);
    let mut turns = Turns::new(5, CAPACITY);
    for index in 0..100_000 {
        cache.access(turns.next());
        if index % 10_000 == 0 {
            let tracked = (0..IDS).filter(|id| cache.tracks(BlockId(*id))).count() as u64;
            assert!(tracked <= cache.max_tracked(), "{tracked} of {}", cache.max_tracked());
            assert_eq!((cache.audit(), cache.max_tracked()), (Ok(()), 400 + 48));
        }
    }
}

/// Numbers of the larger cache that are free are no room: one in use is given back.
#[test]
fn a_cache_that_shrank_forgets_sampled_blocks() {
    let mut cache = guarded(16, &GuardedSettings::default(), 3);
    let mut rng = Seed(9).rng();
    for size in [16, 2, 9, 1, 16, 3] {
        cache.resize(size, &mut Vec::new());
        for _ in 0..400 {
            cache.access(Access::read(BlockId(rng.below(48) as u32)));
            assert_eq!(cache.audit(), Ok(()));
        }
        let tracked = (0..IDS).filter(|id| cache.tracks(BlockId(*id))).count() as u64;
        assert!(tracked <= cache.max_tracked(), "{tracked} of {}", cache.max_tracked());
    }
}
