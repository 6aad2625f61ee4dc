//! Bugs that random losses of power, kills and audits found here, each in a world small enough to
//! meet it at once.

use crate::block_world::{BLOCK, Setting, World, formatted, served};
use crate::blocks_model::{ALL_OPS, submit_any};
use crate::bypass::{Failing, fail_device};
use crate::known_bugs::{lose_all, steps, write};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{BlockOp, RestoreError};
use cachewright_live::io::sim::{Fate, Fault, Unreadable};
use cachewright_live::io::{Buffer, IoError, IoOp, batch};
use cachewright_live::log::format::{
    GroupHeader, Home, LogRecord, LogRecordKind, PAGE, SegmentHeader, SegmentState, SetId, Version,
    VolumeId, data_checksum,
};
use cachewright_live::log::{open, read_log};
use cachewright_types::{Rng, Seed, TenantId};

/// Found here by replaying what was served: records of blocks that had left were kept for one
/// segment with old content, crowded the log, and were copied without end.
#[test]
fn cleaning_ends_where_records_of_blocks_that_left_crowd_the_log() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.quotas, setting.blocks, setting.segments) = (Quotas::Shared(64), 120, 40);
    let mut world = World::new(setting, Seed(1));
    let mut rng = Seed(1).derive("crowd").rng();
    for _ in 0..3000 {
        submit_any(&mut world, &mut rng, &ALL_OPS);
        steps(&mut world, rng.below(8));
    }
    world.drain();
    assert!(world.server.counts().cleaned < 3000, "{:?}", world.server.counts());
}

/// Found here by random losses of power: a segment was begun, its header was lost and its groups
/// were not; begun again under the same generation, it held them as its own.
#[test]
fn groups_of_a_segment_whose_header_was_lost_never_count() {
    let mut found = 0;
    for seed in 0..20 {
        let mut rng: Rng = Seed(seed).derive("headers").rng();
        let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(seed));
        for crash in 0..12 {
            world.context = format!("seed {seed}, crash {crash}");
            for _ in 0..rng.below(40) {
                let block = rng.below(10);
                write(&mut world, 0, block, rng.below(6) == 0);
                steps(&mut world, rng.below(6));
            }
            // Of each write the first page is lost: the header, if it has one.
            let pending = world.sim.volatile_writes();
            let torn = Fate::Torn((0..200).map(|sector| sector >= 8).collect());
            found += pending;
            let left = world.sim.crash(Seed(crash), std::iter::repeat(torn));
            world.restart(left);
        }
    }
    assert!(found > 50, "{found}");
}

/// Found here: a volume left, its device was written to by others, and power was lost before
/// the record of its leaving was durable. Its old content came back with it.
#[test]
fn a_volume_that_has_left_and_comes_back_is_read_from_its_device() {
    for mode in WriteMode::ALL.iter().copied() {
        let mut setting = Setting::of("lru", mode);
        // No segment is full, so that nothing else is synced.
        (setting.segment, setting.quotas) = (1 << 20, Quotas::Shared(20));
        let mut world = World::new(setting, Seed(11));
        for block in 0..4 {
            world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
            world.drain();
        }
        world.submit(BlockOp::Flush, 1, 0..0, false);
        world.drain();
        world.setting.leave(1);
        let left = lose_all(&world);
        world.restart(left);
        assert_eq!(world.restored.dropped, 4, "{mode:?}");
        world.write_outside();
        world.setting.serve(1);
        let left = lose_all(&world);
        world.restart(left);
    }
}

/// A block was cleaned ahead of need and left while its content was on its way to the log: the
/// record of its leaving took the content away before the backing device had it.
#[test]
fn what_is_cleaned_ahead_and_leaves_at_once_is_not_lost() {
    for seed in 0..300 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.quotas = Quotas::Shared(2);
        (setting.background.dirty_high, setting.background.dirty_low) = (0.0, 0.0);
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("steps").rng();
        for _ in 0..20 {
            let (block, half) = (rng.below(6), rng.below(3) * 2);
            let sectors = block * 8 + half..block * 8 + 8;
            let op = if rng.below(3) == 0 { BlockOp::Read } else { BlockOp::Write };
            world.submit(op, 0, sectors, rng.below(2) == 0);
            let operations = rng.below(8);
            steps(&mut world, operations);
        }
        let operations = rng.below(30);
        steps(&mut world, operations);
        world.crash(&mut rng, 0);
        world.drain();
        world.read_all();
    }
}

/// Zeroes went to the backing device before the log had the dirty content that left by them. A loss
/// of power then left older, clean content; once that was driven out, the zeroes were read.
#[test]
fn zeroes_wait_until_no_older_clean_content_can_be_found() {
    for seed in 0..400 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.quotas = Quotas::Shared(2);
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("steps").rng();
        write(&mut world, 0, 0, true);
        world.drain();
        // It is written back, is clean when it comes in again, and that is durable.
        for block in 1..4 {
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        }
        world.drain();
        world.submit(BlockOp::Read, 0, 0..8, false);
        world.submit(BlockOp::Flush, 0, 0..0, false);
        write(&mut world, 0, 9, true);
        world.drain();
        write(&mut world, 0, 0, false);
        steps(&mut world, rng.below(6));
        world.submit(BlockOp::Zero, 0, 0..8, false);
        steps(&mut world, rng.below(12));
        world.crash(&mut rng, 0);
        world.drain();
        world.read_all();
        world.read_all();
    }
}

/// A block was read to be written back ahead of need, and a newer write of it was stored before the
/// read was done. What was written back then counted as the newer content: the log called that
/// clean, and a loss of power took it although it had been flushed.
#[test]
fn a_write_back_settles_what_it_read_and_nothing_newer() {
    for seed in 0..300 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        (setting.background.dirty_high, setting.background.dirty_low) = (0.4, 0.1);
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("steps").rng();
        // Two dirty blocks lie in the log and not in memory; a third has the others written back.
        for block in 0..2 {
            write(&mut world, 0, block, true);
            world.drain();
        }
        write(&mut world, 0, 2, false);
        steps(&mut world, rng.below(6));
        write(&mut world, 0, 0, false);
        steps(&mut world, rng.below(12));
        world.submit(BlockOp::Flush, 0, 0..0, false);
        steps(&mut world, rng.below(16));
        write(&mut world, 0, 3, true);
        steps(&mut world, rng.below(16));
        let sim = lose_all(&world);
        world.restart(sim);
        world.drain();
        world.read_all();
    }
}

/// Zeroes went to the backing device while an earlier stay of their block was still leaving: the
/// log had its clean content, and no durable record that it left. After a loss of power that
/// content was read, and once it was driven out, the zeroes.
#[test]
fn zeroes_wait_for_what_left_their_block_before() {
    for seed in 0..1500 {
        let mut setting = Setting::of("lru", WriteMode::WriteThrough);
        setting.quotas = Quotas::Shared(2);
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("steps").rng();
        let ops = [BlockOp::Read, BlockOp::Read, BlockOp::Write, BlockOp::Flush];
        for _ in 0..12 {
            let op = ops[rng.below(4) as usize];
            let block = rng.below(4);
            let sectors = if op == BlockOp::Flush { 0..0 } else { block * 8..block * 8 + 8 };
            world.submit(op, 0, sectors, false);
            steps(&mut world, rng.below(12));
        }
        world.submit(BlockOp::Zero, 0, 0..8, false);
        steps(&mut world, rng.below(12));
        for _ in 0..2 {
            world.crash(&mut rng, 0);
        }
        world.drain();
        world.read_all();
        world.read_all();
    }
}

/// One request took a block away twice, since it came in again and left for the next block. The end
/// of the second stay, which had no content yet, counted as that of the first. Zeroes did not wait
/// for the first then, and a flush of them did not make the record of its leaving durable.
#[test]
fn a_block_that_leaves_twice_by_one_request_is_leaving_until_both_stays_end() {
    for seed in 0..60 {
        let mut setting = Setting::of("arc", WriteMode::ReadOnly);
        setting.quotas = Quotas::Shared(1);
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("steps").rng();
        write(&mut world, 0, 5, false);
        world.drain();
        world.submit(BlockOp::Read, 0, 40..48, false);
        steps(&mut world, rng.below(12));
        world.submit(BlockOp::Read, 0, 32..56, false);
        steps(&mut world, rng.below(16));
        world.submit(BlockOp::Zero, 0, 40..64, false);
        steps(&mut world, rng.below(16));
        world.submit(BlockOp::Flush, 0, 0..0, false);
        steps(&mut world, rng.below(16));
        let sim = lose_all(&world);
        world.restart(sim);
        world.drain();
        world.read_all();
    }
}

/// Found here by kills of the server: a block left while its device was synced, came in clean and
/// was zeroed. A start found its clean content in the log, which was gone once it had left again.
#[test]
fn clean_content_is_gone_from_the_log_before_its_block_is_zeroed() {
    let mut rng = Seed(40).rng();
    for mode in [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround] {
        for (order, flushed) in (0..100).map(|number| (number / 5, 1 + number % 5)) {
            let mut setting = Setting::of("lru", mode);
            (setting.quotas, setting.blocks) = (Quotas::PerTenant(vec![1, 1]), 2);
            let mut world = World::new(setting, Seed(order));
            world.context = format!("{mode:?}, order {order}, {flushed} steps");
            world.submit(BlockOp::Write, 0, 0..8, false);
            world.drain();
            world.submit(BlockOp::Flush, 0, 0..0, false);
            // The sync is under way meanwhile.
            for block in 0..2 {
                world.submit(BlockOp::Read, 1, block * 8..block * 8 + 8, false);
            }
            steps(&mut world, flushed);
            world.submit(BlockOp::Read, 0, 8..16, false);
            world.submit(BlockOp::Read, 0, 0..8, false);
            world.drain();
            for (op, sectors) in [(BlockOp::Provision, 0..8), (BlockOp::Flush, 0..0)] {
                world.submit(op, 0, sectors, false);
                while world.step() {
                    let seed = Seed(rng.next_u64());
                    world.check_read_again(world.sim.kill_at_random(seed, &mut rng));
                    world.check_read_again(world.sim.crash_at_random(seed, &mut rng));
                }
            }
        }
    }
}

/// Settings in which the backing device of a volume is changed before a flush: the request, the
/// policy and the write mode.
const UNSYNCED: [(BlockOp, &str, WriteMode); 6] = [
    (BlockOp::Write, "lru", WriteMode::WriteAround),
    (BlockOp::Zero, "lru", WriteMode::WriteAround),
    (BlockOp::Zero, "lru", WriteMode::WriteThrough),
    (BlockOp::Zero, "lru", WriteMode::WriteBack),
    (BlockOp::Write, "larc", WriteMode::WriteBack),
    (BlockOp::Zero, "larc", WriteMode::WriteBack),
];

/// A server was killed behind writes, or zeroes, that its backing device had and did not have
/// durably. The next one took that device for durable, as it had not written to it itself.
#[test]
fn a_flush_behind_a_restart_makes_durable_what_was_written_before_it() {
    for (op, policy, mode) in UNSYNCED {
        let mut world = World::new(Setting::of(policy, mode), Seed(1));
        world.context = format!("{op:?}, {policy}, {mode:?}");
        write(&mut world, 0, 3, true);
        world.drain();
        world.submit(op, 0, 16..40, false);
        world.drain();
        world.kill(&mut Seed(2).rng(), 0);
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        let left = lose_all(&world);
        world.restart(left);
    }
}

/// As before; what the backing device had was read behind the restart. It was clean in the cache,
/// and durable there, and older content was read when it had left.
#[test]
fn what_is_read_behind_a_restart_is_what_is_read_when_it_has_left_the_cache() {
    for (op, policy, mode) in UNSYNCED {
        let mut world = World::new(Setting::of(policy, mode), Seed(1));
        world.context = format!("{op:?}, {policy}, {mode:?}");
        write(&mut world, 0, 3, true);
        world.drain();
        world.submit(op, 0, 16..40, false);
        world.drain();
        world.kill(&mut Seed(2).rng(), 0);
        for _ in 0..2 {
            world.read_all();
        }
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
        let left = lose_all(&world);
        world.restart(left);
        world.read_all();
        world.read_all();
    }
}

/// A start took its backing devices for durable. One that cannot make them so is refused.
#[test]
fn a_start_is_refused_where_a_backing_device_cannot_be_synced() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteAround), Seed(1));
    write(&mut world, 1, 3, false);
    world.drain();
    let mut sim = world.sim.kill(Seed(2), std::iter::empty());
    let device = world.files.1[1];
    sim.set_faults(Box::new(move |_, op| {
        matches!(op, IoOp::Sync { file } if *file == device).then_some(Fault::Error(IoError::IO))
    }));
    let refused = served(&mut sim, &world.setting, &world.files).unwrap().err();
    assert_eq!(refused, Some(RestoreError::Unsynced { tenant: 1, error: IoError::IO }));
}

/// A world in which a page of a volume's backing device cannot be read.
fn with_unreadable_page(mode: WriteMode, block: u64) -> World {
    let mut world = World::new(Setting::of("lru", mode), Seed(1));
    world.context = format!("{mode:?}");
    let device = world.files.1[0];
    world.sim.make_unreadable(device, block * BLOCK, 512, Unreadable::UntilWritten);
    world.may_fail = true;
    world
}

/// Requests that have failed so far, of the first volume.
fn failed(world: &mut World) -> u64 {
    world.drain();
    world.errors[0]
}

/// One page that could not be read took its whole volume away until the server was restarted.
#[test]
fn a_page_of_a_backing_device_that_cannot_be_read_locks_nothing_else_away() {
    for mode in WriteMode::ALL.iter().copied() {
        let mut world = with_unreadable_page(mode, 3);
        for request in 1..3 {
            world.submit(BlockOp::Read, 0, 24..32, false);
            assert_eq!(failed(&mut world), request, "{mode:?}");
        }
        for block in [0, 2, 4] {
            write(&mut world, 0, block, true);
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        }
        world.submit(BlockOp::Flush, 0, 0..0, false);
        write(&mut world, 0, 3, true);
        world.submit(BlockOp::Read, 0, 24..32, false);
        assert_eq!(failed(&mut world), 2, "{mode:?}");
        assert_eq!(world.server.counts().failed_volumes, 0);
        world.may_fail = false;
        world.crash(&mut Seed(2).rng(), 0);
    }
}

/// The same past a cache that has failed.
#[test]
fn a_page_of_a_bypassed_volume_that_cannot_be_read_locks_nothing_else_away() {
    let mut world = with_unreadable_page(WriteMode::WriteBack, 3);
    let cache = world.files.0[0];
    fail_device(&mut world.sim, cache, Failing::Segments, 0);
    write(&mut world, 1, 0, false);
    world.drain();
    assert!(world.server.log_failure().is_some());
    world.submit(BlockOp::Read, 0, 24..32, false);
    // Changes behind the one that fails go on.
    world.submit(BlockOp::Write, 0, 30..31, false);
    world.submit(BlockOp::Write, 0, 24..40, false);
    assert_eq!(failed(&mut world), 2);
    world.submit(BlockOp::Read, 0, 16..40, false);
    world.submit(BlockOp::Flush, 0, 0..0, false);
    assert_eq!(failed(&mut world), 2);
    assert_eq!(world.server.counts().failed_volumes, 0);
}

/// A block was overwritten whole while a fetch of it was under way. The fetch failed, and its block
/// counted as one without content from then on, although the cache had what was written behind it.
#[test]
fn what_is_written_behind_a_fetch_that_fails_is_read() {
    for mode in [WriteMode::WriteBack, WriteMode::WriteThrough] {
        let mut world = with_unreadable_page(mode, 3);
        world.submit(BlockOp::Read, 0, 24..32, false);
        write(&mut world, 0, 3, false);
        // Planned while both are under way.
        world.submit(BlockOp::Read, 0, 24..32, false);
        assert_eq!(failed(&mut world), 1, "{mode:?}");
        world.submit(BlockOp::Read, 0, 24..32, false);
        assert_eq!(failed(&mut world), 1, "{mode:?}");
    }
}

/// A request for parts of two blocks failed for one that could not be fetched. The other, which
/// only the cache had, counted as one without content.
#[test]
fn dirty_content_beside_a_block_that_cannot_be_fetched_is_read() {
    let mut world = with_unreadable_page(WriteMode::WriteBack, 3);
    write(&mut world, 0, 2, true);
    world.drain();
    world.submit(BlockOp::Read, 0, 24..32, false);
    world.submit(BlockOp::Write, 0, 20..28, false);
    assert_eq!(failed(&mut world), 2);
    assert!(world.server.is_dirty(TenantId(0), 2));
    world.submit(BlockOp::Read, 0, 16..24, false);
    assert_eq!(failed(&mut world), 2);
}

/// Found here by the 11,169th loss of power of one world. The cleaner moved two blocks by group 2,
/// which was written together with group 1, so that it does not say that 1 is durable. Both were
/// made durable, the segments of group 1 and of the old content were emptied, and power was lost:
/// group 2 was taken for one behind a gap, and what it had moved was gone.
#[test]
fn a_group_behind_one_whose_segment_was_emptied_counts() {
    let setting = Setting::of("lru", WriteMode::WriteBack);
    let (mut sim, files) = formatted(&setting, Seed(1));
    let (volume, number, content) = (VolumeId(1), 3, vec![7; BLOCK as usize]);
    let home = |segment| Home { set: SetId(9), device: 0, segment, generation: 1 };
    let header = |segment, state, emptied| {
        SegmentHeader { home: home(segment), state, stream: 0, emptied }.encode()
    };
    let checksum = data_checksum(volume, number, &content);
    let kind = LogRecordKind::Dirty { checksum };
    let record = LogRecord { volume, number, version: Version::written(1), kind };
    let (home, page, block_pages) = (home(1), 1, 1);
    let group = GroupHeader { home, page, records: 1, number: 2, durable: 0, block_pages };
    let pages = [
        (0, 0, header(0, SegmentState::Free, 1)),
        (1, 0, header(1, SegmentState::Begun, 0)),
        (1, 1, group.encode(&[record])),
        (1, 2, content),
    ];
    for (segment, page, bytes) in pages {
        let offset = (2 << 20) + segment * u64::from(setting.segment) + page * PAGE as u64;
        batch::write(&mut sim, [(files.0[0], offset, Buffer::padded(&bytes))]).unwrap();
    }
    let set = open(&mut sim, &files.0).unwrap();
    let found = read_log(&mut sim, &set).unwrap();
    assert_eq!((found.last_group, found.void_groups, found.lost_groups), (2, 0, 0));
    let blocks: Vec<_> = found.blocks.iter().map(|block| (block.volume, block.number)).collect();
    assert_eq!(blocks, [(volume, number)]);
}
