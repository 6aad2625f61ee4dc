//! Small segments under heavy load: the log never runs out of space under a decided request.

use crate::block_world::{Setting, World};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_types::{Rng, Seed};

/// 14 MiB of segments of 256 KiB, a cache of so many blocks, and volumes of 8 MiB.
fn small(policy: &'static str, mode: WriteMode, blocks: u32) -> Setting {
    let mut setting = Setting::of(policy, mode);
    (setting.segment, setting.segments, setting.group_blocks) = (256 << 10, 56, 128);
    (setting.blocks, setting.quotas) = (2048, Quotas::Shared(blocks));
    setting
}

/// Requests of 256 KiB over a whole volume, so many under way at once.
fn copy(world: &mut World, rng: &mut Rng, op: BlockOp, tenant: u16, depth: usize) {
    for first in (0..world.setting.blocks).step_by(64) {
        world.submit(op, tenant, first * 8..(first + 64) * 8, false);
        while world.unanswered() >= depth && world.step() {}
        for _ in 0..rng.below(3) {
            world.step();
        }
    }
    world.drain();
}

#[test]
fn a_volume_twice_as_large_as_the_cache_is_written_and_read_at_once() {
    for seed in 0..6 {
        let policy = ["lru", "fifo", "s3-fifo"][seed as usize % 3];
        let mode = [WriteMode::WriteBack, WriteMode::WriteThrough][seed as usize / 3];
        let mut rng = Seed(seed).derive("small").rng();
        // The larger one filled the log before records were reserved for.
        let blocks = [2200, 1024][seed as usize % 2];
        let mut world = World::new(small(policy, mode, blocks), Seed(seed));
        world.context = format!("{policy}, {mode:?}, seed {seed}");
        for round in 0..3 {
            copy(&mut world, &mut rng, BlockOp::Write, round % 2, 64);
            if round == 1 {
                world.crash(&mut rng, 1);
            }
            copy(&mut world, &mut rng, BlockOp::Read, round % 2, 64);
            copy(&mut world, &mut rng, BlockOp::Read, 1 - round % 2, 64);
        }
        assert!(world.server.counts().cleaned > 10, "{:?}", world.server.counts());
    }
}

/// Scattered dirty blocks, and large reads that drive them out: each leaves one record.
#[test]
fn large_reads_drive_scattered_dirty_blocks_out() {
    for seed in 0..4 {
        let mut rng = Seed(seed).derive("scattered").rng();
        let mut setting = small("lru", WriteMode::WriteBack, 2370);
        setting.blocks = 4096;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        for round in 0..3 {
            for _ in 0..1500 {
                let (tenant, block) = (rng.below(2) as u16, rng.below(4096));
                world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, false);
                if rng.below(4) == 0 {
                    world.step();
                }
            }
            for _ in 0..64 {
                let (tenant, first) = (rng.below(2) as u16, rng.below(4096 - 64));
                let op = [BlockOp::Read, BlockOp::Read, BlockOp::Write][rng.below(3) as usize];
                world.submit(op, tenant, first * 8..(first + 64) * 8, false);
            }
            if round == 1 {
                world.crash(&mut rng, 1);
            }
        }
        world.drain();
    }
}

/// A smaller quota at a restart: what is dropped takes many records, with cleaning between them.
#[test]
fn a_cache_that_shrinks_between_two_starts_fills_no_log() {
    for (seed, mode) in [(0, WriteMode::WriteBack), (1, WriteMode::WriteThrough)] {
        let mut rng = Seed(seed).derive("shrinks").rng();
        let mut world = World::new(small("lru", mode, 2370), Seed(seed));
        world.context = format!("{mode:?}, seed {seed}");
        for _ in 0..8000 {
            let (tenant, block) = (rng.below(2) as u16, rng.below(2048));
            world.submit(BlockOp::Write, tenant, block * 8..block * 8 + 8, false);
            for _ in 0..rng.below(4) {
                world.step();
            }
        }
        world.drain();
        for blocks in [1200, 300, 2370] {
            world.setting.quotas = Quotas::Shared(blocks);
            world.crash(&mut rng, 1);
            world.drain();
        }
        assert!(world.server.counts().without_space == 0, "{}", world.context);
    }
}
