//! Every short sequence of requests, with a loss of power at each operation.
//!
//! For: the contract without luck. A usual run takes some of the sequences and some of the subsets
//! of writes that power can lose; `CACHEWRIGHT_EXHAUSTIVE=1` takes all.

use crate::block_world::{Setting, World};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::Fate;
use cachewright_types::{Rng, Seed};

/// What can be asked: an operation, a volume, a block.
const REQUESTS: u64 = 18;
/// Requests of a sequence.
const LENGTH: u32 = 3;
/// Most pending writes of which all subsets are looked at.
const PENDING: usize = 10;

fn request(which: u64) -> (BlockOp, u16, std::ops::Range<u64>, bool) {
    let (tenant, block) = ((which % 2) as u16, which / 2 % 2);
    let sectors = block * 8..block * 8 + 8;
    match which {
        16.. => (BlockOp::Flush, tenant, 0..0, false),
        12.. => (BlockOp::Zero, tenant, sectors, false),
        8.. => (BlockOp::Trim, tenant, sectors, false),
        4.. => (BlockOp::Write, tenant, sectors, true),
        _ => (BlockOp::Write, tenant, sectors, false),
    }
}

/// Looks at subsets of the writes that power can lose now; returns at how many.
fn look(world: &World, all: bool, rng: &mut Rng) -> u64 {
    let pending = world.sim.volatile_writes();
    let subsets = if pending <= PENDING { 1 << pending } else { 1 << PENDING };
    let looked_at = if all { subsets } else { subsets.min(2) };
    for at in 0..looked_at {
        let every = all && pending <= PENDING;
        let chosen = if every { at } else { rng.next_u64() };
        let fate = |write: usize| match chosen >> (write % 64) & 1 {
            0 => Fate::Lost,
            _ => Fate::Whole,
        };
        world.check_left(world.sim.crash(Seed(at), (0..pending).map(fate)));
    }
    looked_at
}

fn run(sequence: u64, mode: WriteMode, all: bool, rng: &mut Rng) -> u64 {
    let mut setting = Setting::of("lru", mode);
    (setting.quotas, setting.blocks) = (Quotas::Shared(2), 2);
    let mut world = World::new(setting, Seed(sequence));
    world.context = format!("sequence {sequence}, {mode:?}");
    let mut looked_at = 0;
    // What is there before: a durable value in each block.
    for tenant in 0..2 {
        world.submit(BlockOp::Write, tenant, 0..16, true);
        world.drain();
    }
    for place in 0..LENGTH {
        let (op, tenant, sectors, durable) = request(sequence / REQUESTS.pow(place) % REQUESTS);
        world.submit(op, tenant, sectors, durable);
        // Some sequences wait for each answer, others do not.
        if sequence.is_multiple_of(3) && place + 1 < LENGTH {
            continue;
        }
        looked_at += look(&world, all, rng);
        while world.step() {
            looked_at += look(&world, all, rng);
        }
    }
    world.drain();
    looked_at + look(&world, all, rng)
}

#[test]
fn short_sequences_keep_the_contract_wherever_power_is_lost() {
    let all = std::env::var("CACHEWRIGHT_EXHAUSTIVE").is_ok();
    let mut rng = Seed(77).rng();
    let (mut looked_at, mut sequence) = (0, 0);
    while sequence < REQUESTS.pow(LENGTH) {
        for mode in [WriteMode::WriteBack, WriteMode::WriteThrough] {
            looked_at += run(sequence, mode, all, &mut rng);
        }
        sequence += if all { 1 } else { 1 + rng.below(80) };
    }
    assert!(looked_at > 5_000, "{looked_at}");
}
