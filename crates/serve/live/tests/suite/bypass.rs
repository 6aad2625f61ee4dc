//! A device of the log fails while requests are served: other volumes go on, nothing older is ever
//! read, and every request is answered.

use crate::block_world::{BLOCK, SECTOR, Setting, TENANTS, World};
use crate::blocks_crashes::{crashes, is_chosen};
use crate::blocks_model::{ALL_OPS, submit_any};
use crate::device_faults::{any_failure, changes};
use cachewright_cache::{Quotas, Shrink, WriteMode};
use cachewright_live::blocks::{BlockOp, Passage};
use cachewright_live::io::sim::{Fault, Sim};
use cachewright_live::io::{FileId, IoError, IoOp, batch};
use cachewright_live::log::format::VolumeId;
use cachewright_live::log::{BackingFile, open, recover, write_back};
use cachewright_types::{Rng, Seed, TenantId};
use std::collections::BTreeSet;

/// The bytes of a device in front of its segments.
const SUPERBLOCKS: u64 = 2 << 20;

/// How a device fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// It is gone.
    Gone,
    /// It can be read only.
    Writes,
    /// Writes are taken, and nothing is made durable.
    Syncs,
    /// Its segments can be read only; superblocks are written.
    Segments,
    /// Its segments are gone; superblocks are read and written.
    SegmentsGone,
    /// One operation fails.
    Once,
}

pub const KINDS: [Failing; 6] = [
    Failing::Gone,
    Failing::Writes,
    Failing::Syncs,
    Failing::Segments,
    Failing::SegmentsGone,
    Failing::Once,
];

impl Failing {
    fn fails(self, op: &IoOp) -> bool {
        let changes = matches!(op, IoOp::Write { .. });
        let sync = matches!(op, IoOp::Sync { .. });
        let segments = op.file_range().is_some_and(|(_, offset, _)| offset >= SUPERBLOCKS);
        match self {
            Failing::Gone => true,
            Failing::Writes => changes || sync,
            Failing::Syncs => sync,
            Failing::Segments => changes && segments,
            Failing::SegmentsGone => segments,
            Failing::Once => changes || sync,
        }
    }
}

/// A device fails from its operation of this number on. Of an operation that changes it nothing is
/// done, all, or any part.
pub fn fail_device(sim: &mut Sim, device: FileId, kind: Failing, from: u64) {
    let (mut begun, mut failed) = (0, false);
    let mut rng = Seed(from).derive("failures").rng();
    sim.set_faults(Box::new(move |_, op| {
        if op.file_range().map(|(file, ..)| file) != Some(device) {
            return None;
        }
        begun += 1;
        let hit = begun > from && kind.fails(op) && !(kind == Failing::Once && failed);
        failed |= hit;
        match changes(op) {
            true => hit.then(|| any_failure(&mut rng)),
            false => hit.then_some(Fault::Error(IoError::IO)),
        }
    }));
}

/// Power is lost, or the server is killed, and all devices are there again. What a start, or the
/// tools, find is the last durable version of each sector or a later one; behind a kill the last
/// write that was answered, or a later one. Returns whether the set is marked.
fn check_after_end(world: &mut World, lost: &Lost, rng: &mut Rng) -> bool {
    let killed = rng.below(2) == 0;
    let mut sim = match killed {
        true => world.sim.kill_at_random(Seed(rng.next_u64()), rng),
        false => world.sim.crash_at_random(Seed(rng.next_u64()), rng),
    };
    let keeps_all = killed && !world.sim.has_given_up();
    let found = open(&mut sim, &world.files.0).unwrap();
    let Some(marked) = found.superblock.bypassed.clone() else {
        let may_fail = std::mem::take(&mut world.may_fail);
        match keeps_all {
            true => world.check_killed(sim, rng.below(2) == 0),
            false => world.check_left(sim),
        }
        world.may_fail = may_fail;
        return false;
    };
    // As `live writeback` does.
    let recovered = recover(&mut sim, &found).unwrap();
    let backing = |id: VolumeId| {
        let file = world.files.1[id.0 as usize - 1];
        let bytes = world.setting.sectors_of(id.0 as u16 - 1) * SECTOR;
        (!marked.passed.contains(&id)).then_some(BackingFile { file, bytes })
    };
    let wanted = recovered.blocks.iter().filter(|block| block.dirty);
    let wanted = wanted.filter(|block| backing(block.volume).is_some()).copied().collect();
    let written = write_back(&mut sim, &found.set, wanted, backing).unwrap();
    assert!(written.damaged.is_empty(), "{}", world.context);
    for tenant in 0..TENANTS {
        let passed = marked.passed.contains(&VolumeId(u32::from(tenant) + 1));
        for block in 0..world.setting.blocks {
            if passed && lost.contains(&(tenant, block)) {
                continue;
            }
            let end = ((block + 1) * BLOCK).min(world.setting.sectors_of(tenant) * SECTOR);
            let length = (end - block * BLOCK) as usize;
            let range = (world.files.1[usize::from(tenant)], block * BLOCK, length);
            let data = batch::read(&mut sim, [range]).pop().unwrap().unwrap();
            let sectors = data.chunks(SECTOR as usize).enumerate();
            let sectors = sectors.map(|(at, bytes)| (block * 8 + at as u64, bytes));
            match keeps_all {
                true => world.check_kept_sectors(tenant, sectors),
                false => world.check_sectors(tenant, sectors),
            }
        }
    }
    true
}

/// Blocks whose content was lost at some time. What overwrites them may be lost with power.
type Lost = BTreeSet<(u16, u64)>;

/// As [`World::step`]; notes what is lost.
fn step(world: &mut World, lost: &mut Lost) -> bool {
    let stepped = world.step();
    for tenant in 0..TENANTS {
        let runs = world.server.lost_runs(TenantId(tenant));
        lost.extend(runs.into_iter().flatten().map(|block| (tenant, block)));
    }
    stepped
}

fn busy(world: &mut World, lost: &mut Lost, requests: u64, rng: &mut Rng) {
    for _ in 0..requests {
        submit_any(world, rng, &ALL_OPS);
        for _ in 0..rng.below(10) {
            step(world, lost);
        }
    }
}

fn passage(world: &World, tenant: u16) -> Passage {
    world.server.passage(TenantId(tenant)).unwrap().passage
}

fn write(world: &mut World, tenant: u16, block: u64, durable: bool) {
    world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, durable);
    world.drain();
}

/// A read of a block; returns whether it failed.
fn read_fails(world: &mut World, tenant: u16, block: u64) -> bool {
    let before = world.errors[usize::from(tenant)];
    world.submit(BlockOp::Read, tenant, block * 8..block * 8 + 8, false);
    world.drain();
    world.errors[usize::from(tenant)] > before
}

fn flush_fails(world: &mut World, tenant: u16) -> bool {
    let before = world.errors[usize::from(tenant)];
    world.submit(BlockOp::Flush, tenant, 0..0, false);
    world.drain();
    world.errors[usize::from(tenant)] > before
}

#[test]
fn without_any_device_volumes_are_read_only_and_dirty_content_is_lost() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
    write(&mut world, 0, 3, true);
    world.submit(BlockOp::Read, 1, 0..8, false);
    world.drain();
    let device = world.files.0[0];
    fail_device(&mut world.sim, device, Failing::Gone, 0);
    world.may_fail = true;
    write(&mut world, 1, 0, false);
    assert_eq!((passage(&world, 0), passage(&world, 1)), (Passage::ReadsOnly, Passage::ReadsOnly));
    assert_eq!(world.server.lost_runs(TenantId(0)), vec![3..4]);
    assert!(read_fails(&mut world, 0, 3) && !read_fails(&mut world, 0, 4));
    assert!(read_fails(&mut world, 1, 0), "what was there before the failed write is not known");
    assert!(!read_fails(&mut world, 1, 1) && flush_fails(&mut world, 1));
    let before = world.errors;
    write(&mut world, 0, 4, false);
    write(&mut world, 1, 4, false);
    assert_eq!(world.errors, before.map(|errors| errors + 1));
    // The device comes back: nothing is lost.
    world.may_fail = false;
    world.crash(&mut Seed(3).rng(), 0);
    world.read_all();
}

#[test]
fn a_device_that_takes_the_mark_lets_all_volumes_go_on() {
    for kind in [Failing::Segments, Failing::SegmentsGone, Failing::Once] {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
        world.context = format!("{kind:?}");
        write(&mut world, 0, 3, true);
        write(&mut world, 0, 4, false);
        let device = world.files.0[0];
        fail_device(&mut world.sim, device, kind, 0);
        world.may_fail = true;
        write(&mut world, 1, 0, false);
        assert_eq!(world.errors, [0, 0], "the write that was under way passes");
        assert_eq!((passage(&world, 0), passage(&world, 1)), (Passage::Passes, Passage::Passes));
        let gone = kind == Failing::SegmentsGone;
        let lost = world.server.passage(TenantId(0)).unwrap();
        assert_eq!((lost.lost, lost.rescued), if gone { (2, 0) } else { (0, 2) });
        assert_eq!(read_fails(&mut world, 0, 3), gone);
        if gone {
            let losses = world.server.losses(TenantId(0));
            assert_eq!((losses.count, losses.is_open), (1, true), "block 4 was never durable");
        }
        let before = world.errors;
        // Part of what is lost cannot be written; all of it can, or be trimmed or zeroed.
        world.submit(BlockOp::Write, 0, 24..25, false);
        world.drain();
        assert_eq!(world.errors[0] - before[0], u64::from(gone), "{}", world.context);
        world.submit(BlockOp::Zero, 0, 30..40, false);
        world.drain();
        assert_eq!(world.errors[0] - before[0], 2 * u64::from(gone), "{}", world.context);
        world.submit(BlockOp::Write, 0, 24..32, true);
        world.submit(BlockOp::Zero, 0, 32..40, false);
        world.drain();
        world.may_fail = false;
        world.read_all();
        write(&mut world, 1, 0, false);
        assert!(!flush_fails(&mut world, 0) && !flush_fails(&mut world, 1));
        let mut rng = Seed(8).rng();
        assert!(check_after_end(&mut world, &Lost::new(), &mut rng), "a start would be refused");
    }
}

/// Requests that were under way got EIO, and a file system above turned read-only, though nothing
/// was wrong with the volumes' devices.
#[test]
fn requests_under_way_when_the_device_fails_are_carried_out_past_the_cache() {
    for error in [IoError::IO, IoError::NO_SPACE] {
        for durable in [false, true] {
            for failing_syncs in [false, true] {
                let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(4));
                world.context = format!("{error:?}, durable {durable}, syncs {failing_syncs}");
                write(&mut world, 0, 3, true);
                let device = world.files.0[0];
                let mut failed = false;
                world.sim.set_faults(Box::new(move |_, op| {
                    let fails = match op {
                        IoOp::Write { file, offset, .. } => {
                            !failing_syncs && *file == device && *offset >= SUPERBLOCKS
                        }
                        IoOp::Sync { file } => failing_syncs && *file == device && !failed,
                        _ => false,
                    };
                    failed |= fails;
                    fails.then_some(Fault::Error(error))
                }));
                for block in [0, 3, 5] {
                    world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, durable);
                }
                world.submit(BlockOp::Write, 0, 49..52, durable);
                world.submit(BlockOp::Zero, 1, 4..30, durable);
                world.submit(BlockOp::Read, 0, 0..64, false);
                world.submit(BlockOp::Flush, 0, 0..0, false);
                world.submit(BlockOp::Flush, 1, 0..0, false);
                world.drain();
                assert!(world.server.log_failure().is_some(), "{}", world.context);
                assert_eq!(world.errors, [0, 0], "{}", world.context);
                assert_eq!(passage(&world, 0), Passage::Passes, "{}", world.context);
                world.read_all();
                assert!(!flush_fails(&mut world, 0) && !flush_fails(&mut world, 1));
                let mut rng = Seed(8).rng();
                assert!(check_after_end(&mut world, &Lost::new(), &mut rng));
            }
        }
    }
}

/// What was read of a block by one client after another must not turn back: a write that was
/// written, and only was to be durable, is not carried out twice over one that was answered since.
#[test]
fn changes_of_one_block_keep_their_order_when_they_are_begun_again() {
    for from in 0..14 {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(from));
        world.context = format!("from {from}");
        let device = world.files.0[0];
        fail_device(&mut world.sim, device, Failing::Segments, from);
        let mut tags = Vec::new();
        for round in 0..6 {
            tags.push(world.submit(BlockOp::Write, 0, 16..24, round % 2 == 0));
            for _ in 0..from {
                world.step();
            }
        }
        world.drain();
        assert_eq!(world.errors, [0, 0], "{}", world.context);
        let (file, last) = (world.files.1[0], *tags.last().unwrap());
        if world.server.log_failure().is_some() {
            let data = batch::read(&mut world.sim, [(file, 2 * BLOCK, BLOCK as usize)]);
            let data = data[0].as_ref().unwrap();
            world.check_sectors(0, (16..24).zip(data.chunks(SECTOR as usize)));
            assert_eq!(u64::from_le_bytes(data[..8].try_into().unwrap()), last, "from {from}");
        }
        world.read_all();
    }
}

/// A device of the log fails, and nothing else does. Returns whether the log has failed by that.
fn log_fails_alone(seed: u64) -> bool {
    let mut rng = Seed(seed).derive("log alone").rng();
    let modes = [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround];
    let policy = ["lru", "larc", "s3-fifo", "arc"][rng.below(4) as usize];
    let mut setting = Setting::of(policy, modes[rng.below(3) as usize]);
    if rng.below(2) == 1 {
        (setting.devices, setting.segments) = (2, 6);
    }
    setting.short = seed % 4 * 2;
    let mut world = World::new(setting, Seed(seed));
    let kind = [Failing::Segments, Failing::Once][rng.below(2) as usize];
    world.context = format!("{:?}, {kind:?}, seed {seed}", world.setting);
    let mut lost = Lost::new();
    busy(&mut world, &mut lost, rng.below(60), &mut rng);
    let device = world.files.0[0];
    fail_device(&mut world.sim, device, kind, rng.below(40));
    // A read may come before a change that waits to be begun again.
    world.may_fail = true;
    for _ in 0..4 {
        for _ in 0..rng.below(25) {
            submit_any(&mut world, &mut rng, &ALL_OPS);
        }
        busy(&mut world, &mut lost, 15, &mut rng);
    }
    world.drain();
    assert!(world.errors == [0, 0] && lost.is_empty(), "{}", world.context);
    let has_failed = world.server.log_failure().is_some();
    world.may_fail = false;
    world.read_all();
    check_after_end(&mut world, &lost, &mut rng);
    has_failed
}

/// A write or trim round the cache was under way when a later write of the same block was answered
/// out of the cache. Begun again past the cache, it went over the later one.
#[test]
fn a_change_that_is_begun_again_leaves_later_ones_as_they_are() {
    for seed in [831, 4310] {
        assert!(log_fails_alone(seed));
    }
    for seed in [1346, 1496] {
        random_world(seed);
    }
}

/// Whatever is under way: where the content of the failed device can be read, and the volumes'
/// devices are well, clients get no error, and what they read keeps all promises.
#[test]
fn no_request_fails_when_only_the_log_has_failed() {
    let mut failed = 0;
    for seed in (0..crashes(600) / 5).filter(|seed| is_chosen(*seed)) {
        failed += u64::from(log_fails_alone(seed));
    }
    assert!(std::env::var("CACHEWRIGHT_SEED").is_ok() || failed > 60, "{failed}");
}

/// Each of them ended within the end of the one before it: the stack held no more than some
/// hundreds.
#[test]
fn thousands_of_changes_of_one_page_end_one_after_another() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
    write(&mut world, 0, 3, true);
    let device = world.files.0[0];
    fail_device(&mut world.sim, device, Failing::SegmentsGone, 0);
    world.may_fail = true;
    write(&mut world, 1, 0, false);
    assert_eq!(world.server.lost_runs(TenantId(0)), vec![3..4]);
    // Behind a trim of the same page, writes of a part of what is lost are refused.
    world.submit(BlockOp::Trim, 0, 16..28, false);
    for _ in 0..3000 {
        world.submit(BlockOp::Write, 0, 24..25, false);
    }
    // Trims without a whole block have nothing to wait for.
    world.submit(BlockOp::Write, 0, 40..48, false);
    let waiting = world.unanswered();
    for number in 0..3000 {
        world.submit(BlockOp::Trim, 0, 40..41, number % 2 == 0);
    }
    assert_eq!(world.unanswered(), waiting + 1500, "half of them are to be durable");
    world.drain();
    assert_eq!(world.errors[0], 3000);
    write(&mut world, 0, 3, false);
    assert_eq!(world.server.lost_runs(TenantId(0)), vec![]);
    assert_eq!(world.server.lost_with_log(TenantId(0)), 1, "it is overwritten, and counted");
    world.may_fail = false;
    world.read_all();
}

#[test]
fn a_read_waits_until_its_block_is_rescued_and_not_until_all_are() {
    let mut answered = 0;
    for seed in 0..8 {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        world.context = format!("seed {seed}");
        (0..5).for_each(|block| write(&mut world, 0, block, true));
        let device = world.files.0[0];
        fail_device(&mut world.sim, device, Failing::Segments, 0);
        world.may_fail = true;
        world.submit(BlockOp::Write, 1, 0..8, false);
        while world.server.passage(TenantId(0)).is_none() {
            assert!(world.step());
        }
        for block in 0..5 {
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        }
        while passage(&world, 0) == Passage::Waits {
            assert!(world.step());
        }
        answered += 5 - world.unanswered();
        world.drain();
        assert_eq!((passage(&world, 0), world.errors), (Passage::Passes, [0, 0]));
    }
    assert!(answered > 20, "{answered}");
}

#[test]
fn of_two_devices_that_left_takes_the_mark() {
    for kind in KINDS {
        for failing in 0..2 {
            let mut setting = Setting::of("lru", WriteMode::WriteBack);
            (setting.devices, setting.segments) = (2, 6);
            let mut world = World::new(setting, Seed(1));
            world.context = format!("{kind:?} {failing}");
            for block in 0..5 {
                write(&mut world, 0, block, true);
            }
            let device = world.files.0[failing];
            fail_device(&mut world.sim, device, kind, 0);
            world.may_fail = true;
            // Until the device is written to.
            for block in 0..120 {
                write(&mut world, 1, block % 6, true);
            }
            assert_eq!(passage(&world, 0), Passage::Passes, "{}", world.context);
            assert_eq!(passage(&world, 1), Passage::Passes, "{}", world.context);
            let lost = world.server.lost_runs(TenantId(0));
            for block in 0..10 {
                let is_lost = lost.iter().any(|run| run.contains(&block));
                assert_eq!(read_fails(&mut world, 0, block), is_lost, "{}", world.context);
            }
            write(&mut world, 0, 9, true);
            let lost = lost.into_iter().flatten().map(|block| (0, block)).collect();
            assert!(check_after_end(&mut world, &lost, &mut Seed(2).rng()));
        }
    }
}

#[test]
fn content_of_a_volume_whose_device_fails_as_well_stays_in_the_log() {
    for seed in 0..8 {
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        world.context = format!("seed {seed}");
        write(&mut world, 0, 3, true);
        write(&mut world, 1, 3, true);
        let (device, backing) = (world.files.0[0], world.files.1[0]);
        world.sim.set_faults(Box::new(move |_, op| {
            let (file, ..) = op.file_range()?;
            let changes = matches!(op, IoOp::Write { .. } | IoOp::Sync { .. });
            let hit = file == device && Failing::Segments.fails(op) || file == backing && changes;
            hit.then_some(Fault::Error(IoError::IO))
        }));
        world.may_fail = true;
        write(&mut world, 1, 0, false);
        assert_eq!((passage(&world, 0), passage(&world, 1)), (Passage::Fails, Passage::Passes));
        assert!(read_fails(&mut world, 0, 3) && !read_fails(&mut world, 1, 3));
        assert_eq!((world.server.dirty_blocks(), world.server.counts().failed_volumes), (1, 1));
        write(&mut world, 1, 0, true);
        assert!(check_after_end(&mut world, &Lost::new(), &mut Seed(seed).rng()));
    }
}

/// Exactly what is lost cannot be read, and nothing is lost where it can be read and written back.
fn check_reads(world: &mut World, kind: Failing) {
    if world.server.log_failure().is_none() {
        return; // No write to the device has failed.
    }
    for tenant in 0..TENANTS {
        let lost = world.server.lost_runs(TenantId(tenant));
        let is_lost = |block: u64| lost.iter().any(|run| run.contains(&block));
        let readable = !matches!(kind, Failing::Gone | Failing::SegmentsGone);
        let passes = world.server.passage(TenantId(tenant));
        let passes = passes.is_some_and(|found| found.passage == Passage::Passes);
        assert!(!(passes && readable) || lost.is_empty(), "{}: {lost:?}", world.context);
        for block in 0..world.setting.blocks {
            let fails = read_fails(world, tenant, block);
            assert_eq!(fails, is_lost(block), "{}: {block} of {tenant}", world.context);
        }
    }
}

/// Serves at random while devices fail at random, and loses power now and then. Returns how often
/// a mark was found.
fn random_world(seed: u64) -> u64 {
    let mut rng = Seed(seed).derive("bypass").rng();
    let modes = [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround];
    let policy = ["lru", "larc", "s3-fifo", "arc"][rng.below(4) as usize];
    let mut setting = Setting::of(policy, modes[rng.below(3) as usize]);
    if rng.below(2) == 1 {
        (setting.devices, setting.segments) = (2, 6);
    }
    if rng.below(3) == 0 {
        setting.divided_ns = 300_000;
        setting.quotas = Quotas::PerTenant(vec![3, 3]);
        setting.shrink = Shrink::ALL[(seed % 2) as usize];
    }
    let devices = setting.devices as u64;
    setting.short = seed % 4 * 2;
    let mut world = World::new(setting, Seed(seed));
    let kind = KINDS[rng.below(KINDS.len() as u64) as usize];
    world.context = format!("{:?}, {kind:?}, seed {seed}", world.setting);
    let mut lost = Lost::new();
    busy(&mut world, &mut lost, rng.below(80), &mut rng);
    let device = world.files.0[rng.below(devices) as usize];
    fail_device(&mut world.sim, device, kind, rng.below(60));
    world.may_fail = true;
    let mut marked = 0;
    for _ in 0..4 {
        busy(&mut world, &mut lost, 25, &mut rng);
        marked += u64::from(check_after_end(&mut world, &lost, &mut rng));
    }
    while step(&mut world, &mut lost) {}
    world.drain();
    check_reads(&mut world, kind);
    marked + u64::from(check_after_end(&mut world, &lost, &mut rng))
}

#[test]
fn random_worlds_keep_their_contract_when_a_device_fails() {
    let worlds = crashes(600) / 5;
    let seeds = (0..worlds).filter(|seed| is_chosen(*seed));
    let marked: u64 = seeds.map(random_world).sum();
    assert!(std::env::var("CACHEWRIGHT_SEED").is_ok() || marked > worlds, "{marked}");
}

/// What is asked in a short world: each of these, one after the other or at once.
const SHORT: [(BlockOp, u16, u64, bool); 9] = [
    (BlockOp::Write, 0, 0, true),
    (BlockOp::Write, 0, 1, false),
    (BlockOp::Read, 1, 0, false),
    (BlockOp::Write, 1, 1, false),
    (BlockOp::Flush, 0, 0, false),
    (BlockOp::Zero, 0, 0, false),
    (BlockOp::Write, 1, 0, true),
    (BlockOp::Trim, 1, 1, false),
    (BlockOp::Write, 0, 1, true),
];

/// A short world in which a device fails from one of its operations on; power is lost now and then
/// behind, or at each step if `often`. Returns whether it failed, and how often a mark was found.
fn short_world(
    kind: Failing,
    from: u64,
    devices: usize,
    failing: usize,
    together: bool,
    rng: &mut Rng,
) -> (bool, u64) {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.quotas, setting.blocks) = (Quotas::Shared(2), 2);
    (setting.devices, setting.segments) = (devices, 12 / devices as u64);
    let mut world = World::new(setting, Seed(from));
    world.context = format!("{kind:?}, {failing} of {devices}, from {from}, {together}");
    world.may_fail = true;
    let device = world.files.0[failing];
    fail_device(&mut world.sim, device, kind, from);
    let (mut marked, mut lost) = (0, Lost::new());
    let often = std::env::var("CACHEWRIGHT_EXHAUSTIVE").is_ok();
    let mut look = |world: &mut World, lost: &Lost| {
        if often || rng.below(12) == 0 {
            marked += u64::from(check_after_end(world, lost, rng));
        }
    };
    for (op, tenant, block, durable) in SHORT {
        world.submit(op, tenant, block * 8..block * 8 + 8, durable);
        while !together && step(&mut world, &mut lost) {
            look(&mut world, &lost);
        }
    }
    while step(&mut world, &mut lost) {
        look(&mut world, &lost);
    }
    world.drain();
    check_reads(&mut world, kind);
    marked += u64::from(check_after_end(&mut world, &lost, rng));
    (world.server.log_failure().is_some(), marked)
}

#[test]
fn a_device_may_fail_at_any_operation() {
    let mut rng = Seed(5).rng();
    let (mut worlds, mut marked) = (0, 0);
    for kind in KINDS {
        for (devices, failing) in [(1, 0), (2, 0), (2, 1)] {
            for together in [false, true] {
                for from in 0.. {
                    let found = short_world(kind, from, devices, failing, together, &mut rng);
                    (worlds, marked) = (worlds + 1, marked + found.1);
                    if !found.0 {
                        break;
                    }
                }
            }
        }
    }
    assert!(worlds > 250 && marked > 300, "{worlds} {marked}");
}
