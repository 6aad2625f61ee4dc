//! Devices that fail, lie or damage what they hold.

use crate::block_world::{BLOCK, Setting, World, answer_of, formatted, parts, served};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{
    BlockOp, BlockRequest, BlockServer, RestoreError, Restored, ServerParts,
};
use cachewright_live::io::sim::Fault;
use cachewright_live::io::{Buffer, FileId, IoError, IoOp};
use cachewright_types::{Seed, TenantId};

fn file_of(op: &IoOp) -> Option<FileId> {
    match op {
        IoOp::Read { file, .. }
        | IoOp::Write { file, .. }
        | IoOp::Sync { file }
        | IoOp::Zero { file, .. }
        | IoOp::Discard { file, .. } => Some(*file),
        _ => None,
    }
}

/// Reads of single blocks of a cache device.
fn is_block_read(op: &IoOp, device: FileId) -> bool {
    matches!(op, IoOp::Read { file, buffer, .. } if *file == device && buffer.len() == 4096)
}

fn busy(world: &mut World, requests: u64, rng: &mut cachewright_types::Rng) {
    for _ in 0..requests {
        submit_any(world, rng, &ALL_OPS);
        for _ in 0..rng.below(10) {
            world.step();
        }
    }
}

#[test]
fn a_backing_device_that_fails_takes_its_volume_only() {
    for seed in 0..300 {
        let mut rng = Seed(seed).derive("backing").rng();
        let mut setting = Setting::of(["lru", "larc"][seed as usize % 2], WriteMode::WriteBack);
        setting.segments = 14;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        busy(&mut world, 100, &mut rng);
        let device = world.files.1[0];
        let reads_too = seed % 3 == 0;
        world.sim.set_faults(Box::new(move |_, op| {
            let hit = file_of(op) == Some(device);
            let read = matches!(op, IoOp::Read { .. });
            (hit && (reads_too || !read)).then_some(Fault::Error(IoError::IO))
        }));
        world.may_fail = true;
        busy(&mut world, 120, &mut rng);
        world.drain();
        assert!(world.errors[0] > 10 && world.errors[1] == 0, "{:?}", world.errors);
        assert_eq!(world.server.counts().failed_volumes, 1);
        world.may_fail = false;
        for block in 0..10 {
            world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, true);
            world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
            world.drain();
        }
        // What only the log had of the volume is there when its device is.
        world.crash(&mut rng, 1);
        world.drain();
    }
}

#[test]
fn a_cache_device_that_takes_no_writes_ends_all_writes_and_loses_nothing_durable() {
    for seed in 0..24 {
        let mut rng = Seed(seed).derive("cache").rng();
        let mode = [WriteMode::WriteBack, WriteMode::WriteThrough][seed as usize % 2];
        let mut world = World::new(Setting::of("lru", mode), Seed(seed));
        world.context = format!("seed {seed}");
        busy(&mut world, 60, &mut rng);
        let device = world.files.0[0];
        world.sim.set_faults(Box::new(move |_, op| {
            let changes = matches!(op, IoOp::Write { .. } | IoOp::Sync { .. });
            (file_of(op) == Some(device) && changes).then_some(Fault::Error(IoError::IO))
        }));
        world.may_fail = true;
        busy(&mut world, 60, &mut rng);
        world.drain();
        let errors = world.errors;
        assert!(errors[0] > 5 && errors[1] > 5, "{errors:?}");
        world.submit(BlockOp::Write, 0, 0..8, false);
        world.drain();
        assert_eq!(world.errors[0], errors[0] + 1, "no device takes a mark");
        world.may_fail = false;
        world.crash(&mut rng, 1);
        world.drain();
    }
}

#[test]
fn a_write_is_not_answered_before_the_log_has_it() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
    let device = world.files.0[0];
    world.sim.set_faults(Box::new(move |_, op| {
        matches!(op, IoOp::Write { file, .. } if *file == device)
            .then_some(Fault::Error(IoError::IO))
    }));
    world.may_fail = true;
    world.submit(BlockOp::Write, 0, 0..8, false);
    world.drain();
    assert_eq!(world.errors, [1, 0]);
}

#[test]
fn damaged_clean_content_is_a_miss() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteThrough), Seed(3));
    for block in 0..4 {
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, true);
    }
    world.drain();
    let device = world.files.0[0];
    world.sim.set_faults(Box::new(move |_, op| {
        is_block_read(op, device).then_some(Fault::Flipped(100))
    }));
    for block in 0..4 {
        world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert_eq!(world.server.counts().damaged_clean, 4);
    assert_eq!(world.server.cache().engine().counts(TenantId(0)).invalidations, 4);
    // A damaged block is written in part: the rest comes from the backing device.
    world.submit(BlockOp::Read, 0, 0..8, false);
    world.drain();
    world.submit(BlockOp::Write, 0, 0..1, true);
    world.drain();
    assert_eq!(world.server.counts().damaged_clean, 5);
    world.read_all();
}

#[test]
fn damaged_dirty_content_is_an_error_until_it_is_written_whole() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(3));
    world.submit(BlockOp::Write, 0, 0..8, true);
    world.submit(BlockOp::Write, 0, 8..16, true);
    world.drain();
    let device = world.files.0[0];
    world.sim.set_faults(Box::new(move |_, op| {
        is_block_read(op, device).then_some(Fault::Flipped(100))
    }));
    world.may_fail = true;
    world.submit(BlockOp::Read, 0, 0..8, false);
    world.submit(BlockOp::Write, 0, 0..1, false);
    world.drain();
    assert_eq!((world.errors, world.server.counts().damaged_dirty), ([2, 0], 2));
    // Other blocks evict both: they cannot be written back, and are not replaced by older content.
    for block in 2..8 {
        world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert_eq!((world.server.counts().stranded, world.errors), (2, [2, 0]));
    world.submit(BlockOp::Read, 0, 8..16, false);
    world.submit(BlockOp::Write, 0, 8..9, false);
    world.drain();
    assert_eq!(world.errors, [4, 0]);
    world.sim.set_faults(Box::new(|_, _| None));
    world.may_fail = false;
    world.submit(BlockOp::Write, 0, 8..16, false);
    world.submit(BlockOp::Read, 0, 8..16, false);
    world.drain();
    // What is stranded is found again after a restart, where nothing is damaged any more.
    let mut rng = Seed(4).rng();
    world.crash(&mut rng, 0);
    world.read_all();
}

#[test]
fn misdirected_writes_are_never_read_as_other_blocks() {
    for seed in 0..16 {
        let mut rng = Seed(seed).derive("misdirected").rng();
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        world.context = format!("seed {seed}");
        let device = world.files.0[0];
        let mut chance = Seed(seed).derive("faults").rng();
        world.sim.set_faults(Box::new(move |_, op| {
            let group = matches!(op, IoOp::Write { file, .. } if *file == device);
            let further = 4096 * (1 + chance.below(40));
            (group && chance.below(6) == 0).then_some(Fault::Misdirected(further))
        }));
        world.may_fail = true;
        busy(&mut world, 150, &mut rng);
        world.drain();
        let counts = world.server.counts();
        assert!(counts.damaged_clean + counts.damaged_dirty > 0, "{counts:?}");
    }
}

#[test]
fn requests_that_a_volume_cannot_serve_change_nothing() {
    let setting = Setting::of("lru", WriteMode::WriteBack);
    let (mut sim, files) = formatted(&setting, Seed(1));
    let (mut server, restored) = served(&mut sim, &setting, &files).unwrap().unwrap();
    assert_eq!(restored, Restored::default());
    let end = setting.blocks * BLOCK;
    let bad = [
        (BlockOp::Read, 0, 0, 0, 0),
        (BlockOp::Write, 0, end - 512, 1024, 1024),
        (BlockOp::Write, 0, 0, 1024, 512),
        (BlockOp::Trim, 0, u64::MAX - 10, 100, 0),
        (BlockOp::Zero, 1, end, 512, 0),
        (BlockOp::Read, 2, 0, 512, 0),
    ];
    for (op, tenant, offset, length, data) in bad {
        let (tag, tenant, data) = (7, TenantId(tenant), Buffer::zeroed(data));
        let request = BlockRequest { tag, tenant, op, offset, length, durable: false, data };
        server.request(&mut sim, request);
        assert_eq!(answer_of(&mut server, &mut sim).result, Err(IoError::INVALID));
    }
    assert!(server.is_idle() && sim.volatile_writes() == 0);
    assert_eq!(server.cache().engine().counts(TenantId(0)).requests, 0);
}

#[test]
fn a_server_says_why_it_cannot_begin() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    let mut world = World::new(setting.clone(), Seed(1));
    world.submit(BlockOp::Write, 1, 0..16, true);
    world.drain();
    let mut sim = world.sim.crash(Seed(2), std::iter::empty());
    let mut alone = setting.clone();
    alone.leave(1);
    let error = served(&mut sim, &alone, &world.files).unwrap().err();
    assert_eq!(error, Some(RestoreError::DirtyUnserved { volume: 2, bytes: 2 * BLOCK }));
    setting.quotas = Quotas::Shared(1000);
    let error = served(&mut sim, &setting, &world.files).unwrap().err().unwrap();
    let expected = "found a cache of 1000 blocks, expected at most 32 on these devices";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn dirty_blocks_are_written_back_before_a_mode_that_keeps_none() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(1));
    world.submit(BlockOp::Write, 0, 0..32, true);
    world.drain();
    let mut rng = Seed(5).rng();
    world.crash(&mut rng, 0);
    assert_eq!((world.restored.dirty, world.restored.written_back), (4, 0));
    world.setting.mode = WriteMode::ReadOnly;
    world.crash(&mut rng, 0);
    assert_eq!((world.restored.dirty, world.restored.written_back), (0, 4));
    world.crash(&mut rng, 2);
    world.read_all();
}

#[test]
fn parts_of_which_no_server_can_be_made_are_refused() {
    let setting = Setting::of("lru", WriteMode::WriteBack);
    let refusal = |change: &dyn Fn(&mut ServerParts)| {
        let (mut sim, files) = formatted(&setting, Seed(1));
        let (mut parts, found) = parts(&mut sim, &setting, &files).unwrap();
        change(&mut parts);
        let error = BlockServer::open(&mut sim, parts, found).err().unwrap();
        assert_eq!(sim.volatile_writes(), 0);
        error.to_string()
    };
    let spare = refusal(&|parts| parts.spare_segments = 2);
    assert_eq!(spare, "found spare_segments = 2, expected at least 3");
    let volumes = refusal(&|parts| parts.volumes = vec![parts.volumes[0]; 1 << 16]);
    assert_eq!(volumes, "found volumes = 65536, expected at most 65535");
}

/// More blocks than one group of the log has records: what is written back, and what the log is
/// told, do not get into each other's way.
#[test]
fn many_dirty_blocks_are_written_back_before_a_mode_that_keeps_none() {
    const MANY: u64 = 300;
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.blocks, setting.quotas, setting.segments) = (MANY, Quotas::Shared(MANY as u32), 60);
    let mut world = World::new(setting, Seed(1));
    for block in 0..MANY {
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, true);
        world.drain();
    }
    let mut rng = Seed(5).rng();
    world.setting.mode = WriteMode::WriteThrough;
    world.crash(&mut rng, 2);
    assert_eq!((world.restored.dirty, world.restored.clean), (0, MANY));
    world.submit(BlockOp::Write, 0, 0..8, false);
    world.submit(BlockOp::Flush, 0, 0..0, false);
    world.drain();
    world.crash(&mut rng, 2);
    assert!(world.restored.written_back <= 1, "the last write may not be noted as clean");
    assert_eq!((world.restored.dirty, world.restored.clean), (0, MANY));
    world.read_all();
}

/// A cache that became smaller: what the policy evicts or refuses is written back.
#[test]
fn a_smaller_cache_writes_back_what_it_does_not_keep() {
    const MANY: u64 = 300;
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.blocks, setting.quotas, setting.segments) = (MANY, Quotas::Shared(MANY as u32), 60);
    let mut world = World::new(setting, Seed(1));
    for block in 0..MANY {
        world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, true);
        world.drain();
    }
    let mut rng = Seed(6).rng();
    for capacity in [100, 0, MANY as u32] {
        world.setting.quotas = Quotas::Shared(capacity);
        world.crash(&mut rng, 2);
        world.drain();
        assert!(world.server.cache().engine().occupancy(TenantId(1)) <= capacity);
        world.submit(BlockOp::Flush, 1, 0..0, false);
        world.drain();
    }
    world.read_all();
}

/// Dirty content that the cleaner finds damaged is copied as such: a group with it is no torn one,
/// and groups behind it that were flushed are found again.
#[test]
fn damaged_content_that_is_moved_voids_nothing_behind_it() {
    let mut failed = 0;
    for seed in 0..12 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.segments = 11;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let device = world.files.0[0];
        world.submit(BlockOp::Write, 1, 0..8, true);
        world.drain();
        world.sim.set_faults(Box::new(move |_, op| {
            let IoOp::Read { offset, .. } = op else { return None };
            let is_footer = offset % (64 << 10) == 60 << 10;
            (is_block_read(op, device) && !is_footer).then_some(Fault::Flipped(100))
        }));
        // One volume is overwritten until segments are cleaned, with the other's block in them.
        for round in 0..400 {
            let block = round % 4;
            world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
            world.drain();
        }
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        world.sim.set_faults(Box::new(|_, _| None));
        let mut rng = Seed(seed).rng();
        world.may_fail = true;
        let left = world.sim.crash_at_random(Seed(seed), &mut rng);
        failed += world.restart_damaged(left, &[(1, 0)]);
    }
    assert!(failed > 0, "the cleaner moved damaged content");
}

/// Syncs of a backing device fail while blocks that were written back are fetched again: what the
/// log has of them twice holds back neither the cleaner nor other volumes.
#[test]
fn syncs_that_fail_behind_write_backs_do_not_stop_cleaning() {
    const OPS: [BlockOp; 4] = [BlockOp::Read, BlockOp::Write, BlockOp::Write, BlockOp::Flush];
    for seed in 0..120 {
        let mut rng = Seed(seed).derive("syncs").rng();
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.segments = 11;
        if seed % 2 == 0 {
            setting.quotas = Quotas::PerTenant(vec![4, 4]);
        }
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let go_on = |world: &mut World, rng: &mut cachewright_types::Rng, requests: u64| {
            for _ in 0..requests {
                submit_any(world, rng, &OPS);
                for _ in 0..rng.below(10) {
                    world.step();
                }
            }
        };
        go_on(&mut world, &mut rng, 80);
        let device = world.files.1[0];
        world.sim.set_faults(Box::new(move |_, op| {
            let is_sync = matches!(op, IoOp::Sync { file } if *file == device);
            is_sync.then_some(Fault::Error(IoError::IO))
        }));
        world.may_fail = true;
        go_on(&mut world, &mut rng, 60);
        // All segments are written again and again, and what they hold of the other is moved.
        let before = world.server.counts().cleaned;
        for round in 0..300 {
            let block = round % 8;
            world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, false);
            world.drain();
        }
        assert_eq!(world.errors[1], 0, "{}", world.context);
        assert!(world.server.counts().cleaned > before + 3, "{}", world.context);
        let left = world.sim.crash_at_random(Seed(seed), &mut rng);
        world.check_left(left);
    }
}

/// Zeroes that fail hold back neither the cleaner nor other volumes.
#[test]
fn zeroes_on_a_failing_device_do_not_stop_cleaning() {
    for seed in 0..8 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.segments = 9;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        for block in 0..3 {
            world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
        }
        world.drain();
        let device = world.files.1[0];
        world.sim.set_faults(Box::new(move |_, op| {
            let changes = matches!(op, IoOp::Write { .. } | IoOp::Zero { .. } | IoOp::Sync { .. });
            (file_of(op) == Some(device) && changes).then_some(Fault::Error(IoError::IO))
        }));
        world.may_fail = true;
        world.submit(BlockOp::Zero, 0, 0..16, false);
        world.submit(BlockOp::Zero, 0, 16..24, true);
        world.drain();
        let before = world.server.counts().cleaned;
        for round in 0..400 {
            let block = round % 8;
            world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, false);
            world.drain();
        }
        assert_eq!(world.errors[1], 0);
        assert!(world.server.counts().cleaned > before + 3, "{:?}", world.server.counts());
    }
}
