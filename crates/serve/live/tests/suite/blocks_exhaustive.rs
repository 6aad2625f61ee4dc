//! Every short sequence of requests, with a loss of power or a kill at each operation.
//!
//! For: the contract without luck. Behind a kill all is flushed, and what power can lose then is
//! lost. A usual run takes some of the sequences and some of the subsets of writes that power can
//! lose; `CACHEWRIGHT_EXHAUSTIVE=N` takes all of up to N requests, or one
//! in so many with `CACHEWRIGHT_SHARD=FIRST/OF`, counted from 0.

use crate::block_world::{Setting, World};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::Fate;
use cachewright_types::{Rng, Seed};

/// What can be asked: an operation, a volume, a block.
const REQUESTS: u64 = 18;
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
    looked_at + look_behind_kills(world, all, rng)
}

/// Looks at subsets of the writes under way that a kill leaves; returns at how many.
fn look_behind_kills(world: &World, all: bool, rng: &mut Rng) -> u64 {
    let begun = world.sim.writes_under_way();
    assert!(begun <= PENDING, "{begun} writes are under way");
    let subsets = 1 << begun;
    let looked_at = if all { 2 * subsets } else { 1 };
    for at in 0..looked_at {
        let chosen = if all { at } else { rng.below(2 * subsets) };
        let fate = |write: usize| match chosen >> (write + 1) & 1 {
            0 => Fate::Lost,
            _ => Fate::Whole,
        };
        let killed = world.sim.kill(Seed(at), (0..begun).map(fate));
        world.check_killed(killed, chosen & 1 == 1);
    }
    looked_at
}

/// A sequence of requests, and how they follow each other.
#[derive(Clone, Copy)]
struct Sequence {
    /// Which requests, as a number with a digit of base [`REQUESTS`] for each.
    which: u64,
    length: u32,
    mode: WriteMode,
    /// Whether each request waits until all before it are done, or none does.
    waits: bool,
}

impl Sequence {
    /// Serves the sequence and looks at what is left from the last request on: what was there
    /// before is what a shorter sequence leaves.
    fn look_at(self, all: bool, rng: &mut Rng) -> u64 {
        let Sequence { which, length, mode, waits } = self;
        let mut setting = Setting::of("lru", mode);
        (setting.quotas, setting.blocks) = (Quotas::Shared(2), 2);
        setting.short = which % 2 * 5;
        let mut world = World::new(setting, Seed(which));
        world.context = format!("sequence {which} of {length}, {mode:?}, waits: {waits}");
        // What is there before: a durable value in each block.
        for tenant in 0..2 {
            world.submit(BlockOp::Write, tenant, 0..16, true);
            world.drain();
        }
        for place in 0..length {
            if waits {
                world.drain();
            }
            let (op, tenant, sectors, durable) = request(which / REQUESTS.pow(place) % REQUESTS);
            world.submit(op, tenant, sectors, durable);
        }
        let mut looked_at = look(&world, all, rng);
        while world.step() {
            looked_at += look(&world, all, rng);
        }
        world.drain();
        looked_at + look(&world, all, rng)
    }
}

/// All sequences up to a length.
fn all_up_to(longest: u32) -> impl Iterator<Item = Sequence> {
    let modes = [WriteMode::WriteBack, WriteMode::WriteThrough];
    let of_length = |length| (0..REQUESTS.pow(length)).map(move |which| (length, which));
    let ways = move |(length, which)| {
        // One request has none to wait for.
        let ways: &[bool] = if length == 1 { &[true] } else { &[true, false] };
        ways.iter().flat_map(move |waits| {
            modes.map(|mode| Sequence { which, length, mode, waits: *waits })
        })
    };
    (1..=longest).flat_map(of_length).flat_map(ways)
}

/// Looks at every so manieth of the sequences, from the `first` on; returns at how many crashes.
fn look_at_shard(longest: u32, first: usize, step: usize, all: bool) -> u64 {
    let mut rng = Seed(77 + first as u64).rng();
    let shard = all_up_to(longest).skip(first).step_by(step);
    shard.map(|sequence| sequence.look_at(all, &mut rng)).sum()
}

#[test]
fn short_sequences_keep_the_contract_wherever_power_is_lost() {
    let Ok(longest) = std::env::var("CACHEWRIGHT_EXHAUSTIVE") else {
        // Some sequences of three, and some of the subsets.
        let looked_at = look_at_shard(3, 7, 61, false);
        assert!(looked_at > 4_000, "{looked_at}");
        return;
    };
    let longest: u32 = longest.parse().unwrap();
    let shard = std::env::var("CACHEWRIGHT_SHARD").unwrap_or("0/1".to_owned());
    let (first, of) = shard.split_once('/').unwrap();
    let (first, of): (usize, usize) = (first.parse().unwrap(), of.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let looked_at: u64 = std::thread::scope(|scope| {
        let shard = |thread| {
            let (first, step) = (first + thread * of, of * threads);
            scope.spawn(move || look_at_shard(longest, first, step, true))
        };
        let shards: Vec<_> = (0..threads).map(shard).collect();
        shards.into_iter().map(|shard| shard.join().unwrap()).sum()
    });
    println!("{longest} requests at most, part {shard}: {looked_at} losses of power and kills");
}
