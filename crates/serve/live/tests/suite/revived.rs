//! Backing devices that fail, work again, and are tried again while other volumes are served.

use crate::block_world::{BLOCK, Setting, World};
use crate::blocks_crashes::{crashes, is_chosen};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{BlockOp, Revived};
use cachewright_live::io::sim::{Fate, Fault};
use cachewright_live::io::{FileId, IoError, IoOp};
use cachewright_types::{Rng, Seed, TenantId};

/// Requests whose answered writes are in the log, whatever becomes of the backing device.
const THROUGH_THE_LOG: [BlockOp; 4] =
    [BlockOp::Read, BlockOp::Write, BlockOp::Write, BlockOp::Flush];
/// What a device may refuse.
const CHANGES: [bool; 3] = [false, true, true];

fn is_on(op: &IoOp, device: FileId) -> bool {
    match op {
        IoOp::Read { file, .. }
        | IoOp::Write { file, .. }
        | IoOp::Sync { file }
        | IoOp::Zero { file, .. }
        | IoOp::Discard { file, .. } => *file == device,
        _ => false,
    }
}

/// A device takes no writes and no syncs from now on; it gives nothing either, if `reads`.
fn fail(world: &mut World, device: FileId, reads: bool, error: IoError) {
    world.sim.set_faults(Box::new(move |_, op| {
        let is_read = matches!(op, IoOp::Read { .. });
        (is_on(op, device) && (reads || !is_read)).then_some(Fault::Error(error))
    }));
}

/// Only syncs of a device fail: its writes are answered.
pub fn fail_syncs(world: &mut World, device: FileId) {
    world.sim.set_faults(Box::new(move |_, op| {
        let is_sync = matches!(op, IoOp::Sync { file } if *file == device);
        is_sync.then_some(Fault::Error(IoError::IO))
    }));
}

fn mend(world: &mut World) {
    world.sim.set_faults(Box::new(|_, _| None));
}

/// Tries the device of the first volume again; what has come of it when nothing is under way.
fn revive(world: &mut World) -> Revived {
    assert!(world.server.revive_volume(TenantId(0)), "{}", world.context);
    assert!(!world.server.revive_volume(TenantId(0)), "it is being tried");
    world.drain();
    let [revived] = world.server.take_revived()[..] else { panic!("{}", world.context) };
    revived
}

#[test]
fn a_volume_is_served_again_with_all_that_only_the_log_had() {
    for error in [IoError::IO, IoError::NO_SPACE] {
        for reads in [false, true] {
            let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
            world.submit(BlockOp::Write, 0, 0..32, true);
            world.drain();
            let device = world.files.1[0];
            fail(&mut world, device, reads, error);
            world.may_fail = true;
            // Another volume drives the blocks out: they cannot be written back.
            for block in 0..6 {
                world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
                world.drain();
            }
            assert!(world.server.volume_has_failed(TenantId(0)));
            world.submit(BlockOp::Read, 0, 0..8, false);
            world.submit(BlockOp::Flush, 0, 0..0, false);
            world.drain();
            assert_eq!(world.errors, [2, 0]);
            let failed = revive(&mut world);
            assert_eq!(failed.error, Some(error), "it fails still");
            assert!(world.server.volume_has_failed(TenantId(0)));
            mend(&mut world);
            let revived = revive(&mut world);
            assert!(revived.error.is_none() && revived.written_back >= 2, "{revived:?}");
            assert!(!world.server.volume_has_failed(TenantId(0)));
            assert_eq!(world.server.losses(TenantId(0)).count, 0, "all of it is in the log");
            world.may_fail = false;
            world.read_all();
            // It is on the device, durably: the log may lose what it has of it.
            world.check_left(world.sim.crash(Seed(2), std::iter::repeat(Fate::Lost)));
            assert_eq!(world.errors, [2, 0]);
        }
    }
}

#[test]
fn only_a_failed_volume_is_tried_again() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
    assert!(!world.server.revive_volume(TenantId(0)));
    let device = world.files.0[0];
    world.may_fail = true;
    fail(&mut world, device, false, IoError::IO);
    world.submit(BlockOp::Write, 0, 0..8, false);
    world.drain();
    assert!(world.server.log_failure().is_some());
    assert!(!world.server.revive_volume(TenantId(0)), "a start is needed");
}

/// A volume is removed while its device fails: it stays until the device has what only the log has.
#[test]
fn a_removed_volume_goes_when_its_device_works_again() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(7));
    world.submit(BlockOp::Write, 0, 0..32, true);
    world.drain();
    let device = world.files.1[0];
    world.may_fail = true;
    fail(&mut world, device, false, IoError::IO);
    world.running[0] = None;
    world.server.remove_volume(TenantId(0));
    world.drain();
    assert!(world.server.volume_has_failed(TenantId(0)));
    assert!(!world.server.has_gone(TenantId(0)), "the log alone has some of it");
    mend(&mut world);
    let revived = revive(&mut world);
    assert_eq!((revived.error, revived.written_back), (None, 4));
    assert!(world.server.has_gone(TenantId(0)));
    world.check_left(world.sim.crash(Seed(8), std::iter::repeat(Fate::Lost)));
}

/// A sync fails behind a write round the cache that was answered: it may be lost, and that is told
/// until it is.
#[test]
fn a_loss_of_unflushed_writes_is_counted_once() {
    for (mode, losses) in [(WriteMode::WriteAround, 1), (WriteMode::WriteBack, 0)] {
        let mut world = World::new(Setting::of("lru", mode), Seed(3));
        world.submit(BlockOp::Write, 0, 0..8, false);
        world.drain();
        let device = world.files.1[0];
        world.may_fail = true;
        fail_syncs(&mut world, device);
        for block in 0..6 {
            world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
        }
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        if mode == WriteMode::WriteBack {
            // A flush needs no device whose content is in the log.
            world.submit(BlockOp::Zero, 1, 0..8, true);
            world.drain();
        }
        assert_eq!(world.server.losses(TenantId(0)).count, losses, "{mode:?}");
        if !world.server.volume_has_failed(TenantId(0)) {
            continue;
        }
        mend(&mut world);
        assert_eq!(revive(&mut world).error, None);
        world.submit(BlockOp::Write, 0, 0..8, false);
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        assert_eq!(world.server.losses(TenantId(0)).count, losses, "{mode:?}");
    }
}

/// Content of the log that is damaged is not written over anything: it stays an error.
#[test]
fn damaged_content_stays_an_error_behind_a_revival() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(5));
    world.submit(BlockOp::Write, 0, 0..16, true);
    world.drain();
    let device = world.files.1[0];
    world.may_fail = true;
    fail(&mut world, device, false, IoError::IO);
    for block in 0..6 {
        world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
        world.drain();
    }
    let (log, mut read) = (world.files.0[0], 0);
    world.sim.set_faults(Box::new(move |_, op| {
        let is_block = matches!(op, IoOp::Read { file, buffer, .. }
            if *file == log && buffer.len() as u64 == BLOCK);
        read += u64::from(is_block);
        (is_block && read == 1).then_some(Fault::Flipped(100))
    }));
    let revived = revive(&mut world);
    assert_eq!((revived.error, revived.written_back, revived.damaged), (None, 1, 1));
    let before = world.errors[0];
    for block in 0..2 {
        world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert_eq!(world.errors[0], before + 1);
    mend(&mut world);
    world.may_fail = false;
    world.submit(BlockOp::Write, 0, 0..16, true);
    world.drain();
    world.read_all();
}

/// Some requests, with what may be left of a loss of power looked at now and then.
fn busy(world: &mut World, rng: &mut Rng, ops: &[BlockOp]) {
    for _ in 0..30 + rng.below(40) {
        submit_any(world, rng, ops);
        for _ in 0..rng.below(12) {
            world.step();
        }
        if rng.below(25) == 0 {
            let seed = Seed(rng.next_u64());
            world.check_left(world.sim.crash_at_random(seed, rng));
        }
    }
}

/// Devices fail and are tried again at any time, beside requests of all volumes, with losses of
/// power: nothing durable is lost, and nothing older comes back. Where all that is answered is in
/// the log, no answered write is lost either, flushed or not.
#[test]
fn devices_that_fail_and_are_tried_again_at_any_time_lose_nothing() {
    let worlds = crashes(600) / 4;
    let (mut revived, mut tried, mut written) = (0, 0, 0);
    for seed in (0..worlds).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("revived").rng();
        let in_log = rng.below(3) == 0;
        let (policy, mode) = match in_log {
            true => ("lru", WriteMode::WriteBack),
            false => (
                ["lru", "s3-fifo", "larc", "arc"][rng.below(4) as usize],
                [
                    WriteMode::WriteBack,
                    WriteMode::WriteBack,
                    WriteMode::WriteThrough,
                    WriteMode::WriteAround,
                ][rng.below(4) as usize],
            ),
        };
        let ops: &[BlockOp] = if in_log { &THROUGH_THE_LOG } else { &ALL_OPS };
        let mut setting = Setting::of(policy, mode);
        setting.segments = 14;
        if rng.below(3) == 0 {
            setting.quotas = Quotas::PerTenant(vec![4, 4]);
        }
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("{policy}, {mode:?}, in log: {in_log}, seed {seed}");
        world.may_fail = true;
        for _ in 0..3 {
            busy(&mut world, &mut rng, ops);
            let device = world.files.1[0];
            match rng.below(3) {
                0 => fail_syncs(&mut world, device),
                kind => fail(&mut world, device, CHANGES[kind as usize], IoError::IO),
            }
            busy(&mut world, &mut rng, ops);
            if rng.below(3) == 0 {
                world.server.revive_volume(TenantId(0));
                busy(&mut world, &mut rng, ops);
            }
            mend(&mut world);
            if rng.below(4) == 0 {
                busy(&mut world, &mut rng, ops);
            }
            if !in_log {
                world.may_have_lost(0);
            }
            tried += u64::from(world.server.revive_volume(TenantId(0)));
            busy(&mut world, &mut rng, ops);
            world.drain();
            if world.server.volume_has_failed(TenantId(0)) {
                if !in_log {
                    world.may_have_lost(0);
                }
                world.server.revive_volume(TenantId(0));
                world.drain();
            }
            assert!(!world.server.volume_has_failed(TenantId(0)), "{}", world.context);
            for found in world.server.take_revived() {
                revived += u64::from(found.error.is_none());
                written += found.written_back;
                assert_eq!(found.damaged, 0, "{}", world.context);
            }
            world.may_fail = false;
            if in_log {
                world.read_all();
            } else {
                let given_up = world.sim.has_given_up().then_some(0);
                world.settle_on_what_is_read(given_up);
            }
            world.may_fail = true;
            if rng.below(3) == 0 {
                world.crash(&mut rng, 1);
            }
        }
        world.drain();
        assert_eq!(world.errors[1], 0, "{}: the other volume is served", world.context);
        world.check_left(world.sim.crash(Seed(seed), std::iter::repeat(Fate::Lost)));
    }
    let is_all = std::env::var("CACHEWRIGHT_SEED").is_err();
    assert!(
        !is_all || (revived > worlds && tried > worlds && written > worlds * 4),
        "{revived} {tried} {written}"
    );
}
