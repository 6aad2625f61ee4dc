//! Damaged dirty content that is not cached: it goes when newer content is durable, and until then
//! nothing older is read, whenever power is lost.

use crate::block_world::{Setting, World, served};
use crate::blocks_crashes::{crashes, is_chosen};
use crate::blocks_model::{ALL_OPS, submit_any};
use crate::bypass::{Failing, fail_device};
use cachewright_cache::WriteMode;
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::IoOp;
use cachewright_live::io::sim::{Fate, Fault};
use cachewright_types::{Seed, TenantId};

/// A world in which block 3 of volume 0 was flushed, evicted, and found damaged on the way.
fn stranded(policy: &'static str, mode: WriteMode, seed: u64) -> World {
    let mut world = World::new(Setting::of(policy, WriteMode::WriteBack), Seed(seed));
    world.context = format!("{policy}, {mode:?}, seed {seed}");
    // Twice, so that a policy with a threshold takes it in.
    for _ in 0..3 {
        world.submit(BlockOp::Write, 0, 24..32, true);
        world.drain();
    }
    assert!(world.server.is_dirty(TenantId(0), 3), "{}", world.context);
    let mut sim = world.sim.crash(Seed(seed), std::iter::repeat(Fate::Whole));
    let device = world.files.0[0];
    sim.set_faults(Box::new(move |_, op| {
        let is_block = matches!(op, IoOp::Read { file, buffer, offset } if *file == device
            && buffer.len() == 4096 && offset % (64 << 10) != 60 << 10 && offset % (64 << 10) != 0);
        is_block.then_some(Fault::Flipped(100))
    }));
    world.setting.mode = mode;
    let (server, _) = served(&mut sim, &world.setting, &world.files).unwrap().unwrap();
    (world.server, world.sim) = (server, sim);
    world.may_fail = true;
    // So often in a row does the policy see a block before it takes it in.
    let row = if policy == "larc" { 2 } else { 1 };
    for read in 0..10 * row {
        let block = read / row;
        world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert_eq!(world.server.counts().stranded, 1, "{}", world.context);
    let errors = world.errors[0];
    world.submit(BlockOp::Read, 0, 24..32, false);
    world.drain();
    assert_eq!(world.errors[0], errors + 1, "{}", world.context);
    world
}

#[test]
fn stranded_content_goes_with_what_overwrites_it_and_not_before() {
    let (mut looked_at, mut lost) = (0, 0);
    for seed in 0..12 {
        for policy in ["lru", "larc"] {
            for mode in [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround] {
                for op in [BlockOp::Write, BlockOp::Zero] {
                    let mut world = stranded(policy, mode, seed);
                    world.context = format!("{} {op:?}", world.context);
                    let errors = world.errors[0];
                    world.submit(op, 0, 24..32, seed % 3 == 0);
                    // The other volume makes the log durable meanwhile.
                    world.submit(BlockOp::Write, 1, 0..8, true);
                    for step in 0..400 {
                        for (number, fates) in [Fate::Lost, Fate::Whole].into_iter().enumerate() {
                            let seed = Seed(step * 2 + number as u64);
                            world.check_left(world.sim.crash(seed, std::iter::repeat(fates)));
                            looked_at += 1;
                        }
                        if !world.step() {
                            break;
                        }
                    }
                    world.drain();
                    assert_eq!(world.errors[0], errors, "{}", world.context);
                    world.submit(BlockOp::Flush, 0, 0..0, false);
                    world.drain();
                    world.check_left(world.sim.crash(Seed(seed), std::iter::repeat(Fate::Lost)));
                    world.sim.set_faults(Box::new(|_, _| None));
                    world.submit(BlockOp::Read, 0, 24..32, false);
                    world.drain();
                    lost += world.errors[0] - errors;
                }
            }
        }
    }
    assert!(looked_at > 1000 && lost == 0, "{looked_at} {lost}");
}

/// Blocks that leave together are written back together. One that cannot be read stays in the log,
/// and the others do not.
#[test]
fn of_blocks_that_are_written_back_together_only_the_damaged_one_is_stranded() {
    for damaged in 0..4 {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(damaged));
        world.context = format!("{damaged}");
        world.submit(BlockOp::Write, 0, 0..32, true);
        world.drain();
        let device = world.files.0[0];
        let mut read = 0;
        world.sim.set_faults(Box::new(move |_, op| {
            let is_block = matches!(op, IoOp::Read { file, buffer, .. }
                if *file == device && buffer.len() == 4096);
            read += u64::from(is_block);
            (is_block && read == damaged + 1).then_some(Fault::Flipped(100))
        }));
        // One read drives all four out; reads of them wait for their write-backs.
        world.may_fail = true;
        world.submit(BlockOp::Read, 1, 0..48, false);
        for block in 0..4 {
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        }
        world.drain();
        assert_eq!((world.server.counts().stranded, world.errors), (1, [1, 0]), "{damaged}");
        for block in 0..4 {
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
            world.drain();
        }
        assert_eq!(world.errors, [2, 0], "it is an error until it is written");
        // What the waiting reads left behind is durable, and takes nothing away.
        world.submit(BlockOp::Write, 1, 0..8, true);
        world.drain();
        let left = world.sim.crash(Seed(damaged), std::iter::repeat(Fate::Lost));
        world.may_fail = false;
        world.check_left(left);
    }
}

/// A zero waits until the leaving of a clean block is durable, while dirty content that leaves with
/// it is still read. The log fails meanwhile: the dirty content is there still, and nothing older.
#[test]
fn content_that_is_read_while_its_zeroes_fail_stays() {
    let mut read = 0;
    for seed in 0..40 {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        world.context = format!("seed {seed}");
        // The backing device has older content of block 3.
        world.submit(BlockOp::Write, 0, 24..32, true);
        world.drain();
        for block in 0..6 {
            world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
            world.drain();
        }
        assert!(!world.server.is_cached(TenantId(0), 3));
        world.submit(BlockOp::Write, 0, 24..32, true);
        world.drain();
        world.submit(BlockOp::Read, 0, 32..40, false);
        world.drain();
        let device = world.files.0[0];
        fail_device(&mut world.sim, device, Failing::Syncs, 0);
        world.may_fail = true;
        world.submit(BlockOp::Read, 0, 24..32, false);
        world.submit(BlockOp::Zero, 0, 24..40, false);
        world.drain();
        assert!(world.server.log_failure().is_some(), "{}", world.context);
        let errors = world.errors[0];
        world.submit(BlockOp::Read, 0, 24..32, false);
        world.drain();
        read += 1 - (world.errors[0] - errors);
    }
    assert_eq!(read, 40, "the device can be read");
}

#[test]
fn what_is_trimmed_is_stranded_no_more() {
    for mode in [WriteMode::WriteBack, WriteMode::WriteAround] {
        let mut world = stranded("lru", mode, 1);
        let errors = world.errors[0];
        world.submit(BlockOp::Trim, 0, 24..32, true);
        world.drain();
        world.submit(BlockOp::Read, 0, 24..32, false);
        world.drain();
        assert_eq!(world.errors[0], errors);
        world.check_left(world.sim.crash(Seed(1), std::iter::repeat(Fate::Lost)));
    }
}

/// Reads of the log give damaged content now and then, while everything goes on: what is read is
/// the newest or an error, and what is found later is nothing older.
#[test]
fn random_damage_never_brings_older_content_back() {
    let worlds = crashes(480) / 10;
    let mut found = 0;
    for seed in (0..worlds).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("damage").rng();
        let policy = ["lru", "s3-fifo", "larc", "arc"][rng.below(4) as usize];
        let modes = [WriteMode::WriteBack, WriteMode::WriteBack, WriteMode::WriteThrough];
        let mut world = World::new(Setting::of(policy, modes[rng.below(3) as usize]), Seed(seed));
        world.context = format!("{policy}, seed {seed}");
        let device = world.files.0[0];
        let mut chance = Seed(seed).derive("faults").rng();
        world.sim.set_faults(Box::new(move |_, op| {
            let IoOp::Read { file, buffer, offset } = op else { return None };
            let is_footer = offset % (64 << 10) == 60 << 10;
            let is_block = *file == device && buffer.len() == 4096 && !is_footer;
            (is_block && chance.below(6) == 0).then_some(Fault::Flipped(100))
        }));
        world.may_fail = true;
        for _ in 0..150 {
            submit_any(&mut world, &mut rng, &ALL_OPS);
            for _ in 0..rng.below(12) {
                world.step();
            }
            if rng.below(12) == 0 {
                let seed = Seed(rng.next_u64());
                world.check_left(world.sim.crash_at_random(seed, &mut rng));
            }
        }
        world.drain();
        found += world.server.counts().stranded;
        world.read_all();
        world.check_left(world.sim.crash(Seed(seed), std::iter::repeat(Fate::Lost)));
    }
    assert!(std::env::var("CACHEWRIGHT_SEED").is_ok() || found > worlds, "{found}");
}
