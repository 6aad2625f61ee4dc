//! Bugs that users of other caches have reported, as tests that this server passes. Each name and
//! comment cites the report. `found_bugs` has those that random losses of power found here.

use crate::block_world::{BLOCK, Setting, World, answer_of, formatted, served};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{BlockOp, BlockRequest};
use cachewright_live::io::sim::{Fate, Fault, Sim};
use cachewright_live::io::{Buffer, IoError, IoOp};
use cachewright_live::log::format::{Volume, VolumeId};
use cachewright_live::log::{open, rewrite};
use cachewright_types::{Seed, TenantId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn world(mode: WriteMode) -> World {
    World::new(Setting::of("lru", mode), Seed(11))
}

pub fn write(world: &mut World, tenant: u16, block: u64, durable: bool) -> u64 {
    world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, durable)
}

/// Some operations are done.
pub fn steps(world: &mut World, operations: u64) {
    for _ in 0..operations {
        world.step();
    }
}

/// Power is lost and takes all that it can.
pub fn lose_all(world: &World) -> Sim {
    world.sim.crash(Seed(5), std::iter::repeat(Fate::Lost))
}

/// The numbers in the sectors of a block.
fn sectors_of(world: &mut World, tenant: u16, block: u64) -> Vec<u64> {
    let (offset, data) = (block * BLOCK, Buffer::default());
    let (op, tenant, durable) = (BlockOp::Read, TenantId(tenant), false);
    let request = BlockRequest { tag: 1, tenant, op, offset, length: BLOCK, durable, data };
    world.server.request(&mut world.sim, request);
    let data = answer_of(&mut world.server, &mut world.sim).data;
    let first = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().unwrap());
    data.chunks(512).map(first).collect()
}

/// Open-CAS/ocf#519: records said that a block was valid and dirty before its data was written, and
/// a loss of power in between left garbage. Here the records of a write are there without its data.
#[test]
fn ocf_519_records_without_their_data_do_not_count() {
    let mut world = world(WriteMode::WriteBack);
    for block in 0..4 {
        write(&mut world, 0, block, true);
    }
    world.drain();
    let mut looked_at = 0;
    for block in 0..4 {
        write(&mut world, 0, block, block % 2 == 0);
        while world.step() {
            // A descriptor is one page; a segment's header may stand before it.
            for kept in [8, 16] {
                let torn = Fate::Torn((0..200).map(|sector| sector < kept).collect());
                world.check_left(world.sim.crash(Seed(kept), std::iter::repeat(torn)));
                looked_at += usize::from(world.sim.volatile_writes() > 0);
            }
        }
    }
    assert!(looked_at >= 8, "{looked_at}");
}

/// Open-CAS/ocf#393: no flush was sent to the cache device after its records were written, so that
/// a device with a volatile buffer lost them.
#[test]
fn ocf_393_what_is_durable_needs_nothing_of_the_devices_buffers() {
    let (sim, files) = formatted(&Setting::of("lru", WriteMode::WriteBack), Seed(1));
    let mut left = sim.crash(Seed(1), std::iter::repeat(Fate::Lost));
    assert!(open(&mut left, &files.0).is_ok(), "a set that was formatted is there");
    for mode in [WriteMode::WriteBack, WriteMode::WriteThrough] {
        let mut world = world(mode);
        write(&mut world, 0, 0, true);
        world.drain();
        world.check_left(lose_all(&world));
        write(&mut world, 0, 0, false);
        write(&mut world, 0, 1, false);
        world.drain();
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        world.check_left(lose_all(&world));
    }
}

/// Open-CAS/ocf#390, #391, #601: a loss of power while volumes were added or the cache was stopped
/// left checksums of another generation, and the cache refused to load. Here a volume is added and
/// another one grows, and each operation of that is the last one.
#[test]
fn ocf_390_391_601_a_change_of_the_set_that_is_cut_short_leaves_the_old_set_or_the_new_one() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.devices, setting.segments) = (2, 6);
    let (mut rng, mut seen) = (Seed(7).rng(), [0; 2]);
    for cut in 0..8 {
        for round in 0..8 {
            let (mut sim, files) = formatted(&setting, Seed(round));
            let mut found = open(&mut sim, &files.0).unwrap();
            let (id, bytes) = (VolumeId(9), BLOCK);
            let before = found.superblock.volumes[0].bytes;
            found.superblock.volumes[0].bytes += BLOCK;
            found.superblock.volumes.push(Volume { id, name: "new".to_owned(), bytes });
            sim.stop_after(cut);
            let _ = rewrite(&mut sim, &mut found);
            let mut left = sim.crash_at_random(Seed(cut), &mut rng);
            let found = open(&mut left, &files.0).unwrap();
            let added = found.superblock.volumes.iter().any(|volume| volume.id == id);
            let grown = found.superblock.volumes[0].bytes == before + BLOCK;
            assert_eq!(added, grown, "both changes are there, or none");
            seen[usize::from(added)] += 1;
            assert!(served(&mut left, &setting, &files).unwrap().is_ok());
        }
    }
    assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
}

/// Open-CAS/ocf#578: after a dirty shutdown all clean blocks were dropped. foyer-rs/foyer#1018:
/// nothing was recovered after a restart.
#[test]
fn ocf_578_foyer_1018_clean_blocks_are_hits_after_a_loss_of_power() {
    let mut world = world(WriteMode::WriteThrough);
    for block in 0..6 {
        write(&mut world, 0, block, true);
    }
    world.submit(BlockOp::Flush, 0, 0..0, false);
    world.drain();
    let left = lose_all(&world);
    world.restart(left);
    assert_eq!((world.restored.clean, world.restored.dropped), (6, 0));
    let mut left = lose_all(&world);
    let (server, restored) = served(&mut left, &world.setting, &world.files).unwrap().unwrap();
    let cached = |tenant| (0..10).filter(|block| server.is_cached(tenant, *block)).count() as u64;
    assert_eq!(cached(TenantId(0)) + cached(TenantId(1)), restored.clean);
    assert!(restored.clean > 3, "{restored:?}");
}

/// Open-CAS/open-cas-linux#253: data that a program had made durable was lost after a sudden reset.
/// The program of the report: it writes a block, flushes, and notes the number elsewhere.
#[test]
fn open_cas_253_what_a_program_has_flushed_is_there_after_a_reset() {
    for seed in 0..30 {
        let mut rng = Seed(seed).derive("reset").rng();
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        let mut noted = 0;
        for _ in 0..rng.below(40) {
            let number = write(&mut world, 0, 3, false);
            world.drain();
            world.submit(BlockOp::Flush, 0, 0..0, false);
            world.drain();
            noted = number;
            // Others crowd the cache, so that the block is written back at times.
            for _ in 0..rng.below(9) {
                let block = rng.below(10);
                write(&mut world, 1, block, false);
            }
        }
        steps(&mut world, rng.below(5));
        world.crash(&mut rng, 0);
        let found = sectors_of(&mut world, 0, 3);
        assert!(found.iter().all(|value| *value >= noted), "seed {seed}: {found:?}, {noted}");
    }
}

/// Open-CAS/open-cas-linux#1650: of two areas that were written in turn neither was whole after a
/// loss of power.
#[test]
fn open_cas_1650_of_two_areas_written_in_turn_one_is_whole() {
    for seed in 0..40 {
        let mut rng = Seed(seed).derive("areas").rng();
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        let last = 2 + rng.below(12);
        for turn in 0..last {
            let first = turn % 2 * 4;
            world.submit(BlockOp::Write, 0, first * 8..first * 8 + 32, true);
            if turn + 1 < last {
                world.drain();
            }
        }
        steps(&mut world, rng.below(6));
        world.crash(&mut rng, 1);
        let mut area = |first: u64| {
            let sectors: Vec<u64> =
                (first..first + 4).flat_map(|block| sectors_of(&mut world, 0, block)).collect();
            sectors.iter().all(|value| *value == sectors[0])
        };
        assert!(area(0) || area(4), "seed {seed}");
    }
}

/// Open-CAS/open-cas-linux#1439: cleaning starved requests. Here a request waits for a bounded
/// number of operations, however short of space the log is.
#[test]
fn open_cas_1439_a_request_waits_for_few_operations_while_the_log_is_cleaned() {
    let mut world = world(WriteMode::WriteBack);
    let (mut rng, mut slowest) = (Seed(3).rng(), 0);
    for _ in 0..1500 {
        write(&mut world, rng.below(2) as u16, rng.below(10), false);
        let mut operations = 0;
        while world.unanswered() > 0 && world.step() {
            operations += 1;
        }
        slowest = slowest.max(operations);
    }
    assert!(world.server.counts().cleaned > 100, "{:?}", world.server.counts());
    assert!(slowest <= 120, "{slowest} operations between a write and its answer");
}

/// Open-CAS/ocf#420: how much a cleaner does at one time was not bounded, so that requests waited
/// for it. Here a turn copies at most a batch, whatever is to be cleaned.
#[test]
fn ocf_420_a_turn_of_the_cleaner_begins_few_operations() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.segment, setting.segments, setting.group_blocks) = (1 << 20, 14, 16);
    (setting.blocks, setting.quotas) = (900, Quotas::Shared(900));
    let mut world = World::new(setting, Seed(4));
    let begun = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&begun);
    world.sim.set_faults(Box::new(move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        None
    }));
    let (mut rng, mut most) = (Seed(4).rng(), 0);
    for _ in 0..6000 {
        write(&mut world, 0, rng.below(900), false);
        begun.store(0, Ordering::Relaxed);
        while world.unanswered() > 0 && world.step() {
            most = most.max(begun.swap(0, Ordering::Relaxed));
        }
    }
    let counts = world.server.counts();
    assert!(counts.cleaned > 15 && counts.moved > 1000, "{counts:?}");
    assert!(most <= 40, "{most} operations were begun at once");
}

/// Open-CAS/open-cas-linux#860: a class that was to stay in the cache was driven out by others.
#[test]
fn open_cas_860_a_tenant_keeps_its_blocks_and_no_more_than_its_quota() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.quotas = Quotas::PerTenant(vec![4, 2]);
    let mut world = World::new(setting, Seed(2));
    for block in 0..4 {
        write(&mut world, 0, block, false);
    }
    let mut rng = Seed(2).rng();
    for _ in 0..300 {
        let op = [BlockOp::Read, BlockOp::Write][rng.below(2) as usize];
        let block = rng.below(10);
        world.submit(op, 1, block * 8..block * 8 + 8, false);
        steps(&mut world, rng.below(9));
        assert!(world.server.cache().engine().occupancy(TenantId(1)) <= 2);
    }
    world.drain();
    assert!((0..4).all(|block| world.server.is_cached(TenantId(0), block)));
}

/// Open-CAS/open-cas-linux#993: a cache device failed under dirty data. Requests fail then, no
/// older content is served, and what was durable is there when the device is.
#[test]
fn open_cas_993_a_cache_device_that_is_gone_gives_errors_and_never_older_data() {
    let mut world = world(WriteMode::WriteBack);
    for block in 0..4 {
        write(&mut world, 0, block, true);
    }
    world.drain();
    let device = world.files.0[0];
    world.sim.set_faults(Box::new(move |_, op| {
        let file = match op {
            IoOp::Read { file, .. } | IoOp::Write { file, .. } | IoOp::Sync { file } => *file,
            _ => return None,
        };
        (file == device).then_some(Fault::Error(IoError::IO))
    }));
    world.may_fail = true;
    for block in 0..4 {
        world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert_eq!(world.errors, [4, 0], "the content is on no other device");
    world.may_fail = false;
    let left = lose_all(&world);
    world.restart(left);
    world.read_all();
}

/// foyer-rs/foyer#1334: an entry that did not fit into the rest of the buffer was dropped, and the
/// insertion had succeeded. Here requests of three blocks meet groups of four.
#[test]
fn foyer_1334_what_does_not_fit_into_a_group_goes_into_the_next() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.quotas, setting.segments) = (Quotas::Shared(20), 20);
    let mut world = World::new(setting, Seed(4));
    for tenant in 0..2 {
        for first in [0, 3, 6] {
            world.submit(BlockOp::Write, tenant, first * 8..first * 8 + 24, false);
        }
        world.submit(BlockOp::Flush, tenant, 0..0, false);
    }
    world.drain();
    for tenant in [TenantId(0), TenantId(1)] {
        assert!((0..9).all(|block| world.server.is_dirty(tenant, block)));
    }
    let left = lose_all(&world);
    world.restart(left);
    assert_eq!((world.restored.dirty, world.restored.dropped), (18, 0));
}

/// writeboost/dm-writeboost#110: a discard went to the backing device at once and overtook writes
/// of the range. Here writes, trims and zeroes of one range are under way together.
#[test]
fn dm_writeboost_110_trims_and_zeroes_keep_their_order_among_writes() {
    for seed in 0..60 {
        let mode = WriteMode::ALL[seed as usize % WriteMode::ALL.len()];
        let mut rng = Seed(seed).derive("order").rng();
        let mut world = World::new(Setting::of("lru", mode), Seed(seed));
        world.context = format!("{mode:?}, seed {seed}");
        let mut last = (BlockOp::Trim, 0);
        for _ in 0..12 {
            let op = [BlockOp::Write, BlockOp::Trim, BlockOp::Zero][rng.below(3) as usize];
            last = (op, world.submit(op, 0, 0..24, false));
            steps(&mut world, rng.below(6));
        }
        world.drain();
        let found = sectors_of(&mut world, 0, 1);
        match last {
            (BlockOp::Write, number) => assert_eq!(found, [number; 8], "{}", world.context),
            (BlockOp::Zero, _) => assert_eq!(found, [0; 8], "{}", world.context),
            _ => {}
        }
        world.read_all();
    }
}
