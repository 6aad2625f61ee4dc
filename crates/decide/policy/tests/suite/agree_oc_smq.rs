//! `oc-smq` answers as its naive model does, whatever happens to its rooms meanwhile.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;
use crate::ghost_models;

use cachewright_policy::oc_smq::{OcSmq, OcSmqSettings};
use cachewright_policy::{
    Access, BackgroundOp, Policy, PolicyHooks, Region, RegionSizes, Registered, Verdict,
};
use cachewright_types::{BlockId, Rng, Seed};
use ghost_models::oc_smq::{TwoRegions, Work};
use ghost_models::{GhostModel, ModelVerdict};

/// Blocks of the traces.
const IDS: u32 = 300;

/// What a run has tested, so that a test can see that it tested something.
#[derive(Debug, Default)]
struct Seen {
    evictions: usize,
    demotions: usize,
    cleanings: usize,
    swaps: usize,
    promote: u8,
}

struct Pair {
    policy: OcSmq,
    model: TwoRegions,
    seen: Seen,
}

impl Pair {
    fn new(capacity: u32, settings: &OcSmqSettings) -> Pair {
        let mut policy = OcSmq::new(capacity, settings, Seed(1));
        policy.reserve_ids(IDS as usize);
        let model = TwoRegions::new(capacity as usize, settings);
        Pair { policy, model, seen: Seen::default() }
    }

    fn access(&mut self, block: BlockId, write: bool) {
        let ours = match self.policy.access(Access { write, ..Access::read(block) }) {
            Verdict::Hit => ModelVerdict::Hit,
            Verdict::Admit { evicted } => ModelVerdict::In(evicted.map(|block| block.0)),
            Verdict::Bypass => ModelVerdict::Out,
        };
        assert_eq!(ours, self.model.access(block.0, write));
        self.seen.evictions += usize::from(matches!(ours, ModelVerdict::In(Some(_))));
        self.seen.promote = self.seen.promote.max(self.policy.promote_level());
    }

    fn background_ops(&mut self) {
        let ours = std::iter::from_fn(|| self.policy.background_op()).map(|op| match op {
            BackgroundOp::Demote(block) => Work::Demote(block.0),
            BackgroundOp::Clean(block) => Work::Clean(block.0),
            BackgroundOp::Swap(one, other) => Work::Swap(one.0, other.0),
        });
        let ours: Vec<Work> = ours.collect();
        assert_eq!(ours, self.model.work());
        for work in ours {
            match work {
                Work::Demote(_) => self.seen.demotions += 1,
                Work::Clean(_) => self.seen.cleanings += 1,
                Work::Swap(..) => self.seen.swaps += 1,
            }
        }
    }

    /// Resizes, divides or removes.
    fn shake(&mut self, rng: &mut Rng) {
        let mut left = Vec::new();
        let [one, other] = [rng.below(80) as u32, rng.below(80) as u32];
        let expected = match rng.below(3) {
            0 => {
                self.policy.resize(one, &mut left);
                self.model.resize(one as usize)
            }
            1 => {
                let rooms = RegionSizes { private_blocks: one, shared_blocks: other };
                self.policy.divide_regions(rooms, &mut left);
                self.model.divide(one as usize, other as usize)
            }
            _ => {
                self.policy.remove(BlockId(one));
                self.model.remove(one);
                Vec::new()
            }
        };
        assert_eq!(left.iter().map(|block| block.0).collect::<Vec<_>>(), expected);
    }

    fn compare(&self) {
        assert_eq!(self.policy.audit(), Ok(()));
        let levels = (self.policy.promote_level(), self.policy.hot_level());
        assert_eq!(levels, (self.model.promote as u8, self.model.hot as u8));
        assert_eq!(self.policy.capacity() as usize, self.model.capacity());
        for id in 0..IDS {
            let (room, level) = self.model.place_of(id);
            let room = room.map_or(Region::Any, |room| [Region::Private, Region::Shared][room]);
            let ours = (self.policy.region(BlockId(id)), self.policy.level(BlockId(id)));
            assert_eq!(ours, (room, level.map(|level| level as u8)), "block {id}");
        }
    }
}

/// Replays two traces at several sizes, divided `own` of 8; background operations are taken after
/// one to three accesses, and every `shaken`th access the rooms are changed at random.
fn agree(settings: &OcSmqSettings, own: u32, shaken: Option<u64>) -> Seen {
    let mut all = Seen::default();
    for distinct in [60, 300] {
        for capacity in [1, 2, 3, 10, 37, 64, 130] {
            let mut rng = Seed(u64::from(capacity)).rng();
            let blocks = common::random_blocks(&mut rng, 2_000, distinct);
            let mut pair = Pair::new(capacity, settings);
            let private_blocks = capacity * own / 8;
            let rooms = RegionSizes { private_blocks, shared_blocks: capacity - private_blocks };
            pair.policy.divide_regions(rooms, &mut Vec::new());
            pair.model.divide(private_blocks as usize, (capacity - private_blocks) as usize);
            for (position, block) in blocks.into_iter().enumerate() {
                pair.access(block, rng.below(3) == 0);
                if rng.below(2) == 0 {
                    pair.background_ops();
                }
                if shaken.is_some_and(|every| rng.below(every) == 0) {
                    pair.shake(&mut rng);
                    pair.compare();
                } else if position.is_multiple_of(50) {
                    pair.compare();
                }
            }
            all.evictions += pair.seen.evictions;
            all.demotions += pair.seen.demotions;
            all.cleanings += pair.seen.cleanings;
            all.swaps += pair.seen.swaps;
            all.promote = all.promote.max(pair.seen.promote);
        }
    }
    all
}

#[test]
fn both_rooms_are_one_order_of_levels() {
    let settings =
        OcSmqSettings { tick: 9, budget: 0.8, free: 0.1, clean: 0.2, ..Default::default() };
    for own in [1, 4, 6] {
        let seen = agree(&settings, own, None);
        assert!(seen.evictions > 1_000 && seen.demotions > 1_000 && seen.swaps > 10, "{seen:?}");
        assert!(seen.cleanings > 500 && seen.promote > 5, "{seen:?}");
    }
}

#[test]
fn one_room_is_a_multiqueue_whose_promote_level_moves() {
    let settings = OcSmqSettings { tick: 16, budget: 0.1, history: 1.5, ..Default::default() };
    for own in [0, 8] {
        let seen = agree(&settings, own, None);
        assert!(seen.evictions > 1_000 && seen.swaps == 0 && seen.promote > 5, "{seen:?}");
    }
}

#[test]
fn rooms_change_while_it_runs() {
    let settings = OcSmqSettings {
        tick: 5,
        budget: 0.3,
        hot_share: 0.0,
        swaps: 3,
        demotions: 2,
        free: 0.05,
        ..Default::default()
    };
    for own in [0, 4, 8] {
        let seen = agree(&settings, own, Some(20));
        assert!(seen.evictions > 500 && seen.demotions > 100 && seen.swaps > 100, "{seen:?}");
    }
}

/// One room, then two: misses, swaps and demotions on a real trace, as first measured.
#[test]
fn counts_on_the_cloudphysics_sample_are_pinned() {
    let Some(records) = common::cloudphysics() else { return };
    let trace = common::Trace::from_raw(common::split_4k(&records));
    let counts = |private_blocks| {
        let mut policy = OcSmq::new(32_768, &OcSmqSettings::default(), Seed(0));
        policy.reserve_ids(trace.distinct);
        let rooms = RegionSizes { private_blocks, shared_blocks: 32_768 - private_blocks };
        policy.divide_regions(rooms, &mut Vec::new());
        let mut misses = 0;
        for access in trace.accesses() {
            misses += u64::from(policy.access(access) != Verdict::Hit);
            while policy.background_op().is_some() {}
        }
        (misses, policy.swaps(), policy.demotions(), policy.hot_level())
    };
    assert_eq!(counts(32_768), (1_063_223, 0, 204_143, 0));
    assert_eq!(counts(24_576), (1_053_254, 44_187, 132_297, 16));
}
