//! Operations of devices that fail, having done nothing, a part or all, and pages that cannot be
//! read: what is read is what was written, or an error; all else is as without faults.

use crate::block_world::{BLOCK, Setting, World};
use crate::blocks_crashes::{any_background, crashes, end, go_on, is_chosen};
use crate::blocks_model::{ALL_OPS, MODES, POLICIES};
use crate::device_faults::{any_failure, changes};
use crate::revived::fail_syncs;
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::{Fate, Fault, Share, Unreadable};
use cachewright_live::io::{FileId, IoError};
use cachewright_types::{Rng, Seed, TenantId};
use std::cell::Cell;
use std::rc::Rc;

/// The bytes of a cache device in front of its segments.
pub const SUPERBLOCKS: u64 = 2 << 20;

/// Any world, in which segments have room left where some of them cannot be cleaned.
pub fn any_world(seed: u64, rng: &mut Rng) -> World {
    let policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
    let mut setting = Setting::of(policy, MODES[rng.below(MODES.len() as u64) as usize]);
    setting.segments = 16;
    if rng.below(3) == 0 {
        setting.devices = 2;
    }
    if rng.below(2) == 0 {
        setting.quotas = Quotas::PerTenant(vec![4, 3]);
    }
    if rng.below(2) == 0 {
        setting.background = any_background(rng);
    }
    setting.memory_blocks = seed % 4;
    World::new(setting, Seed(seed))
}

/// Some backing devices fail now and then, and with them their volumes, until the next start.
pub fn fail_backings(world: &mut World, rng: &mut Rng) {
    let devices = world.files.1.clone();
    let failing: Vec<FileId> = devices.into_iter().filter(|_| rng.below(3) > 0).collect();
    let mut chance = Seed(rng.next_u64()).rng();
    let rarely = 1 + rng.below(40);
    world.sim.set_faults(Box::new(move |_, op| {
        let hit = op.file_range().is_some_and(|(file, ..)| failing.contains(&file));
        (hit && changes(op) && chance.below(rarely) == 0).then(|| any_failure(&mut chance))
    }));
}

#[test]
fn a_change_of_a_backing_device_that_fails_leaves_the_old_content_or_the_new() {
    let rounds = crashes(640) / 32;
    let mut errors = 0;
    for seed in (0..32).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("backing failures").rng();
        let mut world = any_world(seed, &mut rng);
        for round in 0..rounds {
            world.context = format!("{:?}, seed {seed}, round {round}", world.setting);
            go_on(&mut world, &mut rng, &ALL_OPS);
            fail_backings(&mut world, &mut rng);
            world.may_fail = true;
            let before = world.errors;
            go_on(&mut world, &mut rng, &ALL_OPS);
            if rng.below(3) == 0 {
                world.drain();
            }
            errors += world.errors.iter().sum::<u64>() - before.iter().sum::<u64>();
            world.may_fail = false;
            end(&mut world, &mut rng);
        }
        world.drain();
        world.read_all();
    }
    assert!(std::env::var("CACHEWRIGHT_SEED").is_ok() || errors > 3 * rounds, "{errors} errors");
}

/// What is asked in a short world: each of these, one after the other or at once.
const SHORT: [(BlockOp, u16, u64, bool); 9] = [
    (BlockOp::Write, 0, 0, false),
    (BlockOp::Write, 1, 1, true),
    (BlockOp::Zero, 0, 0, false),
    (BlockOp::Write, 0, 1, false),
    (BlockOp::Flush, 0, 0, false),
    (BlockOp::Trim, 0, 1, false),
    (BlockOp::Read, 1, 0, false),
    (BlockOp::Write, 0, 0, true),
    (BlockOp::Flush, 1, 0, false),
];

/// A short world in which one change of the first backing device fails. The server is killed or
/// loses power now and then, or both at each step if `often`. Returns whether one has failed.
fn short_world(mode: WriteMode, failure: Fault, from: u64, together: bool, rng: &mut Rng) -> bool {
    let mut setting = Setting::of("lru", mode);
    (setting.quotas, setting.blocks) = (Quotas::Shared(2), 2);
    let mut world = World::new(setting, Seed(from));
    world.context = format!("{mode:?}, {failure:?} from {from}, {together}");
    world.may_fail = true;
    let (device, has_failed) = (world.files.1[0], Rc::new(Cell::new(false)));
    let (hit, mut begun) = (Rc::clone(&has_failed), 0);
    world.sim.set_faults(Box::new(move |_, op| {
        let own = changes(op) && op.file_range().is_some_and(|(file, ..)| file == device);
        begun += u64::from(own);
        hit.set(hit.get() || own && begun > from);
        (own && begun == from + 1).then_some(failure)
    }));
    let often = std::env::var("CACHEWRIGHT_EXHAUSTIVE").is_ok();
    let mut look = |world: &World| {
        let given_up = world.sim.has_given_up();
        if often || rng.below(12) == 0 {
            world.check_left(world.sim.crash_at_random(Seed(rng.next_u64()), rng));
        }
        if !given_up && (often || rng.below(12) == 0) {
            let killed = world.sim.kill_at_random(Seed(rng.next_u64()), rng);
            world.check_killed(killed, rng.below(2) == 0);
        }
    };
    for (op, tenant, block, durable) in SHORT {
        let sectors = if op == BlockOp::Flush { 0..0 } else { block * 8..block * 8 + 8 };
        world.submit(op, tenant, sectors, durable);
        while !together && world.step() {
            look(&world);
        }
    }
    while world.step() {
        look(&world);
    }
    world.drain();
    assert_eq!(world.errors[1], 0, "{}: the other volume is served on", world.context);
    has_failed.get()
}

#[test]
fn a_backing_device_may_fail_at_any_operation() {
    let mut rng = Seed(6).rng();
    let error = IoError::IO;
    let mut worlds = 0;
    for mode in [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround] {
        for together in [false, true] {
            for from in 0.. {
                let some = Share::Some(Seed(from));
                let failures = [
                    Fault::Error(error),
                    Fault::Partly(error, Share::All),
                    Fault::Partly(error, some),
                ];
                let worlds_of =
                    failures.map(|failure| short_world(mode, failure, from, together, &mut rng));
                worlds += worlds_of.len();
                if !worlds_of.contains(&true) {
                    break;
                }
            }
        }
    }
    assert!(worlds > 90, "{worlds}");
}

/// Overwrites all blocks whole.
pub fn overwrite_all(world: &mut World) {
    for volume in world.running.clone().into_iter().flatten() {
        for block in 0..world.setting.blocks_of(volume) {
            world.submit(BlockOp::Write, volume, block * 8..block * 8 + 8, false);
            world.drain();
        }
    }
}

/// How long a page cannot be read.
pub fn any_lasting(rng: &mut Rng) -> Unreadable {
    match rng.below(3) {
        0 => Unreadable::Times(1 + rng.below(3) as u32),
        1 => Unreadable::UntilWritten,
        _ => Unreadable::ForEver,
    }
}

/// Some sectors cannot be read, of the segments of the cache or of backing devices.
pub fn spoil(world: &mut World, rng: &mut Rng, files: &[FileId], first: u64, bytes: u64) {
    let file = files[rng.below(files.len() as u64) as usize];
    let page = first + rng.below(bytes / BLOCK) * BLOCK;
    let sectors = 1 + rng.below(8);
    let start = page + rng.below(9 - sectors) * 512;
    let lasts = any_lasting(rng);
    world.sim.make_unreadable(file, start, sectors as usize * 512, lasts);
}

/// Pages of the cache cannot be read while it serves; at the next start they can.
#[test]
fn pages_of_the_cache_that_cannot_be_read_for_a_while_lose_nothing() {
    let rounds = crashes(640) / 32;
    let mut met = 0;
    for seed in (100..132).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("unreadable").rng();
        let mut world = any_world(seed, &mut rng);
        for round in 0..rounds {
            world.context = format!("{:?}, seed {seed}, round {round}", world.setting);
            go_on(&mut world, &mut rng, &ALL_OPS);
            let bytes = world.setting.segments * u64::from(world.setting.segment);
            let files = world.files.0.clone();
            for _ in 0..rng.below(60) {
                spoil(&mut world, &mut rng, &files, SUPERBLOCKS, bytes);
            }
            world.may_fail = true;
            go_on(&mut world, &mut rng, &ALL_OPS);
            let counts = world.server.counts();
            met += counts.damaged_clean + counts.damaged_dirty;
            world.sim.heal();
            world.may_fail = false;
            end(&mut world, &mut rng);
        }
        world.drain();
        world.read_all();
    }
    assert!(std::env::var("CACHEWRIGHT_SEED").is_ok() || met > rounds, "{met} blocks");
}

/// A page of a backing device that cannot be read fails the requests that need it, and no other of
/// its volume. A write of a part of it may be in the cache alone; its block is an error then until
/// it is overwritten whole, or until the next start.
#[test]
fn a_page_of_a_backing_device_that_cannot_be_read_is_an_error_for_itself() {
    let rounds = crashes(640) / 32;
    let (mut errors, mut taken) = (0, 0);
    for seed in (200..232).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("unreadable").rng();
        let mut world = any_world(seed, &mut rng);
        for round in 0..rounds {
            world.context = format!("{:?}, seed {seed}, round {round}", world.setting);
            go_on(&mut world, &mut rng, &ALL_OPS);
            let (bytes, files) = (world.setting.blocks * BLOCK, world.files.1.clone());
            for _ in 0..rng.below(6) {
                spoil(&mut world, &mut rng, &files, 0, bytes);
            }
            world.may_fail = true;
            let before = world.errors;
            go_on(&mut world, &mut rng, &ALL_OPS);
            errors += world.errors.iter().sum::<u64>() - before.iter().sum::<u64>();
            if rng.below(2) == 0 {
                world.drain();
            }
            // A write over part of such a page takes its volume where the block is cached.
            let failed = world.server.counts().failed_volumes;
            taken += failed;
            if failed == 0 && world.unanswered() == 0 && rng.below(2) == 0 {
                world.drain();
                world.sim.heal();
                if world.server.counts().stranded > 0 {
                    overwrite_all(&mut world);
                }
                world.may_fail = false;
                world.read_all();
                continue;
            }
            world.sim.heal();
            world.may_fail = false;
            end(&mut world, &mut rng);
        }
        world.drain();
        world.read_all();
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || errors > rounds, "{errors} errors");
    assert!(chosen || taken < errors / 4, "{taken} volumes were taken, {errors} errors");
}

/// A block is written back and read again while a sync of its device fails: what the read has
/// brought goes, and the content that only the log has for sure stays.
#[test]
fn content_that_is_being_written_back_when_its_device_fails_stays_in_the_log() {
    let mut failed = 0;
    for seed in 0..200 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.segments = 14;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("written back").rng();
        // The device has older content of each block.
        for _ in 0..2 {
            world.submit(BlockOp::Write, 0, 0..32, true);
            world.drain();
            world.submit(BlockOp::Read, 1, 0..48, false);
            world.drain();
        }
        world.submit(BlockOp::Write, 0, 0..32, true);
        world.drain();
        world.may_fail = true;
        let device = world.files.1[0];
        fail_syncs(&mut world, device);
        world.submit(BlockOp::Read, 1, 0..48, false);
        for _ in 0..20 {
            let (block, blocks) = (rng.below(4), 1 + rng.below(3));
            match rng.below(6) {
                // Only a sync of the device makes that durable.
                0 => world.submit(BlockOp::Zero, 0, 64..72, true),
                1 => world.submit(BlockOp::Read, 1, 0..48, false),
                _ => world.submit(BlockOp::Read, 0, block * 8..(block + blocks) * 8, false),
            };
            for _ in 0..rng.below(20) {
                world.step();
            }
            world.check_left(world.sim.crash(Seed(seed), std::iter::repeat(Fate::Lost)));
        }
        world.drain();
        failed += u64::from(world.server.volume_has_failed(TenantId(0)));
        world.check_left(world.sim.crash(Seed(seed), std::iter::repeat(Fate::Lost)));
    }
    assert!(failed > 100, "{failed} devices have failed");
}
