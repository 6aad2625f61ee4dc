//! Reads bring what was written last, for any policy and write mode.

use crate::block_world::{Setting, World};
use cachewright_cache::WriteMode;
use cachewright_live::blocks::BlockOp;
use cachewright_types::{Rng, Seed};
use std::ops::Range;

pub const POLICIES: [&str; 9] =
    ["lru", "fifo", "clock", "s3-fifo", "larc", "arc", "2q", "access-frequency", "oc-smq"];
pub const MODES: [WriteMode; 4] =
    [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround, WriteMode::ReadOnly];

/// Some sectors of a volume: mostly whole blocks.
pub fn any_sectors(rng: &mut Rng, sectors: u64) -> Range<u64> {
    let blocks = sectors.div_ceil(8);
    let first = rng.below(blocks);
    let count = 1 + rng.below(3).min(blocks - first - 1);
    let some = match rng.below(3) {
        0 => {
            let start = first * 8 + rng.below(8);
            start..start + 1 + rng.below(12)
        }
        _ => first * 8..(first + count) * 8,
    };
    some.start.min(sectors - 1)..some.end.min(sectors)
}

/// Submits one random request.
pub fn submit_any(world: &mut World, rng: &mut Rng, ops: &[BlockOp]) {
    let op = ops[rng.below(ops.len() as u64) as usize];
    let served: Vec<u16> = world.running.iter().flatten().copied().collect();
    let volume = served[rng.below(served.len() as u64) as usize];
    submit_to(world, rng, op, volume);
}

/// A request of a volume.
pub fn submit_to(world: &mut World, rng: &mut Rng, op: BlockOp, volume: u16) {
    let sectors = match op {
        BlockOp::Flush => 0..0,
        _ => any_sectors(rng, world.setting.sectors_of(volume)),
    };
    let op = match op {
        BlockOp::Zero if world.tags.is_multiple_of(2) => BlockOp::Provision,
        op => op,
    };
    world.submit(op, volume, sectors, rng.below(6) == 0);
}

pub const ALL_OPS: [BlockOp; 9] = [
    BlockOp::Read,
    BlockOp::Read,
    BlockOp::Read,
    BlockOp::Write,
    BlockOp::Write,
    BlockOp::Write,
    BlockOp::Flush,
    BlockOp::Trim,
    BlockOp::Zero,
];

#[test]
fn reads_bring_what_was_written_last() {
    let (mut cleaned, mut from_memory, mut seed) = (0, 0, 0);
    for policy in POLICIES {
        for mode in MODES {
            seed += 1;
            let mut rng = Seed(seed).derive("model").rng();
            let (short, memory_blocks) = (seed % 3 * 3, seed % 4);
            let setting = Setting { short, memory_blocks, ..Setting::of(policy, mode) };
            let mut world = World::new(setting, Seed(seed));
            world.context = format!("{policy}, {mode:?}");
            for _ in 0..400 {
                submit_any(&mut world, &mut rng, &ALL_OPS);
                for _ in 0..rng.below(12) {
                    world.step();
                }
            }
            world.drain();
            world.read_all();
            cleaned += world.server.counts().cleaned;
            from_memory += world.server.counts().memory_reads;
        }
    }
    assert!(cleaned > 200, "segments are cleaned meanwhile: {cleaned}");
    assert!(from_memory > 100, "memory answers some: {from_memory}");
}
