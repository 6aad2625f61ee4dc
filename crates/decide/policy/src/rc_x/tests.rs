use super::*;
use crate::Future;
use cachewright_types::declare::Declared;

fn rc_x(capacity: u32, ids: usize) -> RcX {
    let settings = RcXSettings::from_pairs(&[]).unwrap();
    let mut cache = RcX::new(capacity, &settings, Seed(1));
    cache.reserve_ids(ids);
    cache
}

fn read(cache: &mut RcX, id: u32) -> Verdict {
    cache.access(Access::read(BlockId(id)))
}

/// Eight blocks in a circle. Nothing is known until the 64th access: all stay out. By then 56 waits
/// have ended at age 8 (the 55 of accesses 9 to 63, and the one that the 64th ends after learning),
/// so a block is worth its write the next time it comes.
#[test]
fn a_circle_by_hand() {
    let mut cache = rc_x(8, 8);
    for at in 0..63 {
        assert_eq!(read(&mut cache, at % 8), Verdict::Bypass, "access {at}");
    }
    for at in 63..71 {
        assert_eq!(read(&mut cache, at % 8), Verdict::Admit { evicted: None }, "access {at}");
    }
    for at in 71..200 {
        assert_eq!(read(&mut cache, at % 8), Verdict::Hit, "access {at}");
        assert_eq!(cache.audit(), Ok(()));
    }
}

/// A circle larger than the cache: every wait is as long, so the blocks that have waited longest
/// are nearest to their use, and newcomers stay out.
#[test]
fn of_a_circle_too_large_a_part_stays() {
    let mut cache = rc_x(8, 20);
    for at in 0..2_000 {
        read(&mut cache, at % 20);
    }
    let hits = (2_000..4_000).filter(|at| read(&mut cache, at % 20) == Verdict::Hit).count();
    assert!(hits > 600, "{hits} of 800 that are possible");
}

/// A million blocks that never come back, in requests of all shapes: no write into the cache.
#[test]
fn a_stream_that_never_repeats_writes_nothing() {
    for capacity in [1, 100, 10_000] {
        let mut cache = rc_x(capacity, 1_000_000);
        let mut rng = Seed(3).rng();
        let mut id = 0;
        while id < 1_000_000 - 64 {
            let length = 4096 << rng.below(6);
            let offset = u64::from(id) * 4096 + (rng.below(2) << 40);
            let write = rng.below(3) == 0;
            cache.on_request(&RequestInfo { time_ns: 0, offset, length, write });
            for _ in 0..length / 4096 {
                let access = Access { write, ..Access::read(BlockId(id)) };
                assert_eq!(cache.access(access), Verdict::Bypass, "block {id}");
                id += 1;
            }
        }
    }
}

/// Blocks read over and over, then a long scan among them: few of the scan get in, and what was
/// there stays.
#[test]
fn a_scan_passes_by() {
    let mut cache = rc_x(1_000, 300_000);
    let mut rng = Seed(4).rng();
    for _ in 0..100_000 {
        read(&mut cache, rng.below(900) as u32);
    }
    let (mut written, mut hits) = (0, 0);
    for id in 1_000..201_000 {
        written += u32::from(read(&mut cache, id) != Verdict::Bypass);
        hits += u32::from(read(&mut cache, rng.below(900) as u32) == Verdict::Hit);
    }
    assert!(written < 2_000, "{written} of 200,000 written");
    assert!(hits > 190_000, "{hits} of 200,000 hit");
}

/// The position of the next use, which every access may carry, changes nothing.
#[test]
fn the_future_is_not_read() {
    let (mut blind, mut informed) = (rc_x(50, 500), rc_x(50, 500));
    let mut rng = Seed(5).rng();
    for _ in 0..20_000 {
        let block = BlockId((rng.unit().powi(3) * 500.0) as u32);
        let future = Future::NextUse(rng.below(20_000) as u32);
        let access = Access { future, ..Access::read(block) };
        assert_eq!(blind.access(Access::read(block)), informed.access(access));
    }
}

/// Asks for blocks in a row by one request of 4 KiB per block.
fn request(cache: &mut RcX, first: u32, blocks: u32) -> Vec<Verdict> {
    let (offset, length) = (u64::from(first) << 12, u64::from(blocks) << 12);
    cache.on_request(&RequestInfo { offset, length, ..RequestInfo::default() });
    (first..first + blocks).map(|id| read(cache, id)).collect()
}

/// Requests of one block and of 32 over and over, each block as often: those of one come in, and
/// of the others, whose blocks save a thirty-second of a request each, none pays for its write.
/// Where hits count alike all do.
#[test]
fn a_block_of_a_long_request_is_worth_its_share() {
    for by_request in [true, false] {
        let settings = RcXSettings { by_request, ..RcXSettings::default() };
        let mut cache = RcX::new(64, &settings, Seed(1));
        cache.reserve_ids(2_000);
        for round in 0..500 {
            request(&mut cache, 1_000, 32);
            (0..8).for_each(|id| drop(request(&mut cache, (id + round) % 8 * 8, 1)));
        }
        assert!((0..8).all(|id| cache.contains(BlockId(id * 8))));
        let long = (1_000..1_032).filter(|id| cache.contains(BlockId(*id))).count();
        assert_eq!(long, if by_request { 0 } else { 32 });
    }
}

/// Whatever its blocks are worth by themselves, those of a request that miss come in or stay out
/// together; and what leaves ahead of need leaves in runs, the last of each first.
#[test]
fn requests_come_in_and_leave_as_a_whole() {
    let settings = RcXSettings { by_request: false, ..RcXSettings::default() };
    let mut cache = RcX::new(800, &settings, Seed(2));
    cache.reserve_ids(4_000);
    let mut rng = Seed(6).rng();
    let (mut runs, mut left) = (0, 0);
    for _ in 0..20_000 {
        let first = (rng.unit().powi(2) * 400.0) as u32 * 8;
        let verdicts = request(&mut cache, first, 8);
        let out = |verdict: &Verdict| *verdict == Verdict::Bypass;
        let missed: Vec<_> = verdicts.iter().filter(|verdict| **verdict != Verdict::Hit).collect();
        assert!(missed.iter().all(|verdict| out(verdict)) || !missed.iter().any(|one| out(one)));
        let mut before = None;
        while let Some(BackgroundOp::Demote(block)) = cache.background_op() {
            runs += u32::from(before != Some(block.0 + 1));
            (left, before) = (left + 1, Some(block.0));
        }
        assert!(cache.len() <= 792, "one of a hundred blocks is kept free");
        assert_eq!(cache.audit(), Ok(()));
    }
    assert!(left > 2_000 && left > 6 * runs, "{left} blocks in {runs} runs");
}

/// What a visit of all blocks would count: waits by class and age.
fn counted_by_a_visit(cache: &RcX) -> Vec<u32> {
    let mut counts = vec![0; life::CLASSES * life::AGES];
    let held = cache.held.iter().map(|held| held.block);
    for block in held.chain(cache.links.iter(0)) {
        let known = cache.links.tag(block);
        let age = life::index_of(cache.now.wrapping_sub(known.last));
        counts[usize::from(known.class) * life::AGES + age] += 1;
    }
    counts
}

/// Blocks are used, removed and taken in, and the capacity changes, while waits are counted. Where
/// a period ends, and nowhere else, the counts are those of a visit of all blocks.
#[test]
fn waits_are_counted_when_each_period_ends() {
    let mut cache = rc_x(300, 4_000);
    let (mut rng, mut evicted, mut ends) = (Seed(3).rng(), Vec::new(), 0);
    for access in 0..200_000 {
        let block =
            BlockId(if rng.below(2) == 0 { rng.below(400) } else { rng.below(4_000) } as u32);
        let late = access > 120_000;
        match rng.below(1_000) {
            0 => drop(cache.remove(block)),
            1 => cache.resize(200 + rng.below(200) as u32, &mut evicted),
            2 if late && !cache.contains(block) => drop(cache.adopt(block, true)),
            kind => {
                cache.on_request(&RequestInfo { length: 4_096, ..RequestInfo::default() });
                cache.access(Access { write: kind < 300, ..Access::read(block) });
                while cache.background_op().is_some() {}
            }
        }
        if access % 997 == 0 {
            cache.audit().unwrap();
        }
        if cache.period.left() == 1 {
            let mut ended = cache.clone();
            ended.now += 1;
            ended.finish_census();
            assert_eq!(ended.under_way.counts(), counted_by_a_visit(&ended), "access {access}");
            ends += 1;
        }
    }
    assert!(ends > 15, "{ends}");
}

/// Of 30,000 waits no access visits more than a few, the one that ends a period included.
#[test]
fn no_access_visits_many_blocks() {
    let mut cache = rc_x(10_000, 40_000);
    let mut rng = Seed(4).rng();
    for access in 0..200_000 {
        cache.access(Access::read(BlockId(rng.below(40_000) as u32)));
        while cache.background_op().is_some() {}
        if cache.period.left() == 1 {
            let mut left = cache.clone();
            left.visit_some();
            assert_eq!(left.under_way.left_to_visit(), None, "access {access}");
        }
    }
}

#[test]
fn a_threshold_that_has_decayed_asks_for_another_draw() {
    let mut admission = Admission::default();
    admission.set(1.0);
    assert_eq!(admission.weigh(1.1), Weighed::Above);
    assert_eq!(admission.weigh(1.0), Weighed::Below);
    assert_eq!(admission.weigh(0.99), Weighed::AboveDecayed, "0.98 after one rejected miss");
    admission.set(2.0);
    assert_eq!(admission.weigh(1.5), Weighed::Below);
}

#[test]
fn the_first_missed_block_decides_where_requests_are_observed() {
    let mut admission = Admission::default();
    admission.decide(true);
    assert_eq!(admission.decided(), None, "each block decides for itself");
    admission.on_request();
    admission.decide(false);
    assert_eq!(admission.decided(), Some(false));
    admission.on_request();
    assert_eq!(admission.decided(), None);
}

/// Blocks 10, 11 and so on, by their last accesses.
fn held(accesses: &[u32]) -> ResidentBlocks {
    let mut held = ResidentBlocks::default();
    for (last, block) in accesses.iter().zip(10..) {
        held.push(DrawnBlock { block: BlockId(block), last: *last, class: 0 });
    }
    held
}

#[test]
fn the_last_block_takes_the_place_of_one_that_goes() {
    let mut held = held(&[1, 2, 3]);
    assert_eq!(held.take_out(0), (BlockId(10), Some(BlockId(12))));
    assert_eq!(held.take_out(1), (BlockId(11), None));
    assert_eq!((held.len(), held.at_place(0).block), (1, BlockId(12)));
}

#[test]
fn a_row_is_used_in_the_order_of_its_places_and_access_numbers_wrap() {
    let held = held(&[7, 8, 8, u32::MAX, 0]);
    assert_eq!(
        [1, 2, 3, 4, 5].map(|place| held.is_in_row(place)),
        [true, false, false, true, false]
    );
}

#[test]
fn a_trail_is_lost_where_its_block_was_used_or_has_gone() {
    let mut held = held(&[7, 8]);
    let run = EvictionRun { place: 1, last: 8, left: 1 };
    assert!(held.has(&run));
    held.put(1, DrawnBlock { last: 9, ..held.at_place(1) });
    assert!(!held.has(&run));
    held.take_out(0);
    assert!(!held.has(&run));
}

#[test]
fn a_block_is_kept_for_one_draw_unless_it_is_forgotten() {
    let mut draws = Draws::new(Seed(1));
    draws.keep(Some(BlockId(3)));
    draws.forget(BlockId(4));
    assert_eq!((draws.take_kept(), draws.take_kept()), (Some(BlockId(3)), None));
    draws.keep(Some(BlockId(3)));
    draws.forget(BlockId(3));
    assert_eq!(draws.take_kept(), None);
    draws.keep(Some(BlockId(3)));
    draws.renumber(&Renumbering::keeping(5, |block| block.0 != 1));
    assert_eq!(draws.take_kept(), Some(BlockId(2)));
}
