//! Where blocks lie on the cache device while they are swapped, moved, cleaned and laid out anew:
//! by hand at 100 us for the cache and 5 ms behind it, and at random against a model of which slot
//! holds which version of which block.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::places;

use cachewright_cache::{Cached, Move};
use cachewright_policy::Region;
use cachewright_system::machines::{MachineSettings, Migrated, Slots};
use cachewright_types::{BlockId, Op, Rng, Seed};
use places::{Bench, SHIFT, channels, map};
use proptest::prelude::*;

const LATENCIES_NS: [(u64, u64); 2] = [(100_000, 100_000), (5_000_000, 5_000_000)];

fn plain(tenant: u16) -> Cached {
    Bench::named(tenant, Region::Any)
}

/// A machine of `count` slots for all, whose first blocks are written at time 0 and lie there.
fn with_blocks(count: u32, blocks: u16, swap_depth: u32) -> Bench {
    let settings = MachineSettings { swap_depth, ..MachineSettings::default() };
    let mut bench = Bench::new(Slots::plain(count), settings, 8, LATENCIES_NS, 0);
    for tenant in 0..blocks {
        bench.ask(plain(tenant), Op::Write, Vec::new(), false);
    }
    bench.until(1_000_000);
    bench.log();
    bench
}

/// Read both (100 us), write both (100 us).
#[test]
fn swapped_blocks_are_read_and_written_to_each_others_slots() {
    let mut bench = with_blocks(4, 2, 1);
    let swap = bench.swap(plain(0), plain(1));
    bench.beside(vec![swap]);
    bench.finish(2);
    let found = bench.log();
    let expected = [
        (1000, 'c', 'R', 0, 0),
        (1000, 'c', 'R', 1, 1),
        (1100, 'c', 'W', 1, 0),
        (1100, 'c', 'W', 0, 1),
    ];
    assert_eq!(found, expected);
    let done = |swaps| Migrated { swaps, moves: 0, bytes: 4096 };
    assert_eq!(bench.machine.migrated(), [done(1), done(1)]);
}

/// The read at 50 us waits for the swap's read and is served from memory at 100; the write waits
/// until the block is in its new slot at 200; the write-back reads there at 300.
#[test]
fn during_a_swap_reads_come_from_memory_and_writes_wait() {
    let mut bench = with_blocks(4, 2, 1);
    let swap = bench.swap(plain(0), plain(1));
    bench.beside(vec![swap]);
    bench.until(1_050_000);
    bench.ask(plain(0), Op::Read, Vec::new(), false);
    bench.ask(plain(0), Op::Write, Vec::new(), false);
    let answers = bench.answers;
    bench.until(1_100_000);
    assert_eq!(bench.answers, answers + 1, "the read");
    bench.until(1_150_000);
    let leaves = bench.leave(0);
    bench.beside(vec![leaves]);
    bench.ask(plain(1), Op::Read, Vec::new(), false);
    bench.finish(1);
    let found: Vec<_> = bench.log().split_off(4);
    assert_eq!(found, [(1200, 'c', 'W', 1, 0), (1300, 'c', 'R', 1, 0), (1400, 'b', 'W', 0, 0)]);
    assert_eq!(bench.answers, answers + 3);
}

/// A read begun at 1,000 us reads slot 0 until 1,100; the swap's own ends with it, and only then is
/// anything written. Of three swaps two at once: the third waits.
#[test]
fn a_swap_waits_for_reads_under_way_and_for_its_turn() {
    let mut bench = with_blocks(8, 6, 2);
    bench.ask(plain(0), Op::Read, Vec::new(), false);
    bench.until(1_060_000);
    let swaps = [(0, 1), (2, 3), (4, 5)].map(|(a, b)| bench.swap(plain(a), plain(b)));
    bench.beside(swaps.to_vec());
    bench.finish(6);
    let times: Vec<(u64, char, u16)> =
        bench.log().iter().map(|(time, _, kind, _, tenant)| (*time, *kind, *tenant)).collect();
    assert_eq!(times[0], (1000, 'R', 0));
    let reads = |at: u64| times.iter().filter(|one| (one.0, one.1) == (at, 'R')).count();
    assert_eq!((reads(1060), reads(1260)), (4, 2));
    let slots = [1, 0, 3, 2, 5, 4];
    for (tenant, slot) in slots.into_iter().enumerate() {
        assert_eq!(bench.world.lock().unwrap().slot(tenant as u16), Some(slot));
    }
}

/// Block 1 leaves, clean, before the swap has its turn: block 0 stays where it is.
#[test]
fn a_swap_of_which_one_has_left_is_none() {
    let mut bench = with_blocks(4, 4, 1);
    let cleaned = bench.clean(1);
    bench.beside(cleaned.into_iter().collect());
    bench.until(20_000_000);
    bench.log();
    let swaps = [bench.swap(plain(2), plain(3)), bench.swap(plain(0), plain(1))];
    bench.beside(swaps.to_vec());
    let leaves = bench.leave(1);
    bench.beside(vec![leaves]);
    bench.finish(3);
    assert_eq!(bench.log().len(), 4, "only 2 and 3");
}

/// Version 1 is on its way to the backing device when version 2 is written: the block is dirty
/// again, and leaves in version 2 once version 1 is there.
#[test]
fn a_block_overwritten_while_it_is_cleaned_is_written_back_again() {
    let mut bench = with_blocks(2, 1, 1);
    let cleaned = bench.clean(0);
    bench.beside(cleaned.into_iter().collect());
    bench.until(1_050_000);
    bench.ask(plain(0), Op::Write, Vec::new(), false);
    bench.until(2_000_000);
    let leaves = bench.leave(0);
    bench.beside(vec![leaves]);
    bench.finish(0);
    let expected = [
        (1000, 'c', 'R', 0, 0),
        (1050, 'c', 'W', 0, 0),
        (1100, 'b', 'W', 0, 0),
        (2000, 'c', 'R', 0, 0),
        (6100, 'b', 'W', 0, 0),
    ];
    assert_eq!(bench.log(), expected);
}

/// Tenants 0 and 1 have channel 0 and 1 (slots 0 and 1, 2 and 3) each and share channel 2.
fn laid_out(swap_depth: u32) -> Bench {
    let shares = [vec![(0, 2), (2, 1)], vec![(1, 2), (2, 1)]];
    let laid = map(&[vec![0], vec![1], vec![2]], &shares);
    let slots = Slots::laid_out(&laid, &channels(&[2, 2, 2]), SHIFT, 1);
    let settings = MachineSettings { swap_depth, ..MachineSettings::default() };
    let mut bench = Bench::new(slots, settings, 2, LATENCIES_NS, 0);
    bench.machine.set_quotas(&[1, 1]);
    bench
}

/// A block that its policy comes to want elsewhere goes there when a slot is free: it is read at
/// once, written at 1,100 us, and its old slot is free at 1,200.
#[test]
fn a_block_goes_to_the_room_it_is_wanted_in() {
    let mut bench = laid_out(1);
    bench.ask(Bench::named(0, Region::Shared), Op::Write, Vec::new(), false);
    bench.until(1_000_000);
    assert_eq!(bench.world.lock().unwrap().slot(0), Some(4));
    assert_eq!(bench.machine.region_blocks().unwrap()[0].shared_blocks, 1);
    bench.log();
    bench.ask(Bench::named(0, Region::Private), Op::Read, Vec::new(), false);
    bench.finish(1);
    let expected = [(1000, 'c', 'R', 4, 0), (1000, 'c', 'R', 4, 0), (1100, 'c', 'W', 0, 0)];
    let mut found = bench.log();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(bench.machine.region_blocks().unwrap()[0].private_blocks, 1);
    assert_eq!(bench.machine.migrated(), [Migrated { swaps: 0, moves: 1, bytes: 4096 }]);
}

/// Channels 0 and 1 change hands: both blocks follow, one after the other.
#[test]
fn blocks_follow_their_channels_when_these_are_laid_out_anew() {
    let mut bench = laid_out(1);
    for tenant in 0..2 {
        bench.ask(Bench::named(tenant, Region::Private), Op::Write, Vec::new(), false);
    }
    bench.until(1_000_000);
    bench.log();
    let shares = [vec![(1, 2), (2, 1)], vec![(0, 2), (2, 1)]];
    bench.machine.apply_layout(&map(&[vec![0], vec![1], vec![2]], &shares));
    assert_eq!(elsewhere(&bench), [0, 1], "the first is on its way");
    bench.finish(2);
    let expected = [
        (1000, 'c', 'R', 0, 0),
        (1100, 'c', 'W', 3, 0),
        (1200, 'c', 'R', 2, 1),
        (1300, 'c', 'W', 0, 1),
    ];
    assert_eq!(bench.log(), expected);
    assert_eq!(elsewhere(&bench), [0, 0]);
}

/// Blocks of each tenant in channels that are not its own.
fn elsewhere(bench: &Bench) -> Vec<u32> {
    bench.machine.region_blocks().unwrap().iter().map(|rooms| rooms.elsewhere_blocks).collect()
}

/// Neighbours of one tenant in slots 0 and 1 leave while the second changes places with the block
/// in slot 2: they are read by two commands, the second where it has come to lie, and written by
/// one.
#[test]
fn neighbours_that_leave_during_a_swap_are_read_where_they_lie() {
    let mut bench = with_blocks(4, 0, 1);
    bench.world.lock().unwrap().blind = true;
    let blocks = [0, 1, 6].map(|number| Cached { id: BlockId(number), ..plain(0) });
    let blocks = blocks.map(|block| Cached { number: u64::from(block.id.0), ..block });
    for block in blocks {
        bench.ask(block, Op::Write, Vec::new(), false);
    }
    bench.until(2_000_000);
    bench.log();
    bench.beside(vec![Move::Swap(Box::new([blocks[1], blocks[2]]))]);
    bench.beside(vec![Move::WriteBack(blocks[0]), Move::WriteBack(blocks[1])]);
    bench.until(u64::MAX);
    assert_eq!(bench.machine.audit(1, true), Ok(()));
    let places: Vec<(u64, char, char, u64)> = bench
        .log()
        .iter()
        .map(|(time, device, kind, place, _)| (*time, *device, *kind, *place))
        .collect();
    let expected = [
        (2000, 'c', 'R', 1),
        (2000, 'c', 'R', 2),
        (2000, 'c', 'R', 0),
        (2100, 'c', 'W', 2),
        (2100, 'c', 'W', 1),
        (2200, 'c', 'R', 2),
        (2300, 'b', 'W', 0),
    ];
    assert_eq!(places, expected);
}

/// Blocks that a random run may name.
const TENANTS: u16 = 120;
/// Blocks held at most.
const HELD: usize = 9;

/// A random map over five channels: each is one tenant's, all tenants' or free.
fn random_map(rng: &mut Rng, held: &[u16]) -> cachewright_partition::layout::ChannelMap {
    let mut pools = vec![Vec::new()];
    let mut shares = vec![vec![(0, HELD as u32)]; usize::from(TENANTS)];
    for channel in 0..5 {
        match rng.below(4) {
            0 | 1 => pools[0].push(channel),
            2 if !held.is_empty() => {
                let owner = held[rng.below(held.len() as u64) as usize];
                shares[usize::from(owner)].insert(0, (pools.len(), 3));
                pools.push(vec![channel]);
            }
            _ => {}
        }
    }
    if rng.below(3) == 0 && !held.is_empty() {
        shares[usize::from(held[rng.below(held.len() as u64) as usize])].clear();
    }
    map(&pools, &shares)
}

/// Random plans of all moves; after each step every rule of machine and world must hold. Returns
/// how many blocks took part in swaps, and how many moved by themselves.
fn random_run(seed: u64, laid: bool, spare: u32, swap_depth: u32, gap_ns: u64) -> (u64, u64) {
    let mut rng = Seed(seed).rng();
    let slots = if laid {
        Slots::laid_out(&random_map(&mut rng, &[0, 1]), &channels(&[3; 5]), SHIFT, spare)
    } else {
        Slots::plain(HELD as u32 + spare)
    };
    let settings = MachineSettings { swap_depth, ..MachineSettings::default() };
    let latencies_ns = [(20_000, 400_000), (300_000, 6_000_000)];
    let mut bench = Bench::new(slots, settings, usize::from(TENANTS), latencies_ns, seed);
    bench.machine.set_quotas(&vec![1; usize::from(TENANTS)]);
    let (mut held, mut fresh): (Vec<u16>, u16) = (Vec::new(), 0);
    for _ in 0..400 {
        let at = bench.now_ns + rng.below(2 * gap_ns + 1);
        bench.until(at);
        let room =
            |rng: &mut Rng| [Region::Any, Region::Private, Region::Shared][rng.below(3) as usize];
        let pick = |rng: &mut Rng, held: &[u16]| held[rng.below(held.len() as u64) as usize];
        let op = if rng.below(2) == 0 { Op::Read } else { Op::Write };
        match rng.below(20) {
            0..8 if fresh < TENANTS => {
                let mut moves = Vec::new();
                if held.len() == HELD {
                    let loser = held.remove(rng.below(HELD as u64) as usize);
                    moves.push(bench.leave(loser));
                }
                let block = Bench::named(fresh, room(&mut rng));
                bench.ask(block, op, moves, op == Op::Read || rng.below(2) == 0);
                held.push(fresh);
                fresh += 1;
            }
            8..13 if !held.is_empty() => {
                let block = Bench::named(pick(&mut rng, &held), room(&mut rng));
                bench.ask(block, op, Vec::new(), false);
            }
            13 | 14 if !held.is_empty() => {
                let chosen = pick(&mut rng, &held);
                let moves = bench.clean(chosen).into_iter().collect();
                bench.beside(moves);
            }
            15..18 if held.len() > 1 => {
                let mut moves: Vec<Move> = Vec::new();
                for _ in 0..1 + rng.below(3) {
                    let pair = [pick(&mut rng, &held), pick(&mut rng, &held)];
                    let alike = rng.below(2) == 0;
                    let [one, other] = pair.map(|tenant| {
                        Bench::named(tenant, if alike { Region::Any } else { room(&mut rng) })
                    });
                    moves.push(bench.swap(one, other));
                }
                bench.beside(moves);
            }
            18 if !held.is_empty() => {
                let loser = held.remove(rng.below(held.len() as u64) as usize);
                let leaves = bench.leave(loser);
                bench.beside(vec![leaves]);
            }
            19 if laid => bench.machine.apply_layout(&random_map(&mut rng, &held)),
            _ => {}
        }
        assert_eq!(bench.machine.audit(held.len() as u64, false), Ok(()));
    }
    bench.finish(held.len() as u64);
    let done = bench.machine.migrated().iter();
    done.fold((0, 0), |(swaps, moves), one| (swaps + one.swaps, moves + one.moves))
}

/// What the property below is about does happen.
#[test]
fn random_runs_swap_and_move_blocks() {
    let (swaps, _) = random_run(5, false, 2, 2, 2_000_000);
    let (exchanged, moves) = random_run(5, true, 2, 2, 2_000_000);
    assert!(swaps > 20 && exchanged > 10 && moves > 10, "{swaps} {exchanged} {moves}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_whatever_moves_and_wherever_to(
        seed in any::<u64>(),
        laid in any::<bool>(),
        spare in 1..4_u32,
        swap_depth in 1..4_u32,
        gap_ns in prop::sample::select(vec![5_000, 60_000, 1_000_000, 3_000_000]),
    ) {
        random_run(seed >> 1, laid, spare, swap_depth, gap_ns);
    }
}
