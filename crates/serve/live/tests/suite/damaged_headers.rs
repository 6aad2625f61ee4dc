//! Header pages of segments that are damaged: nothing older than what was flushed is read, and what
//! is lost is counted.

use crate::answers::read_block;
use crate::block_world::{BLOCK, SECTOR, Setting, TENANTS, World, served};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::WriteMode;
use cachewright_live::io::batch;
use cachewright_live::io::sim::{Fate, Sim};
use cachewright_live::io::{Buffer, FileId};
use cachewright_live::log::{open, read_log};
use cachewright_types::Seed;

/// Damages a page of a device for good.
fn damage(sim: &mut Sim, file: FileId, offset: u64) {
    let page = batch::read(sim, [(file, offset, BLOCK as usize)]).pop().unwrap().unwrap();
    let flipped: Vec<u8> = page.iter().map(|byte| !byte).collect();
    batch::write(sim, [(file, offset, Buffer::copy_of(&flipped))]).unwrap();
}

/// Reads all, twice, with a loss of power between: errors are counted, and values are checked.
fn errors(world: &World, mut sim: Sim) -> usize {
    let mut failed = Vec::new();
    for _ in 0..2 {
        let (mut server, restored) =
            served(&mut sim, &world.setting, &world.files).unwrap().unwrap();
        let mut errors = 0;
        for tenant in 0..TENANTS {
            for block in 0..world.setting.blocks {
                let answer = read_block(&mut server, &mut sim, tenant, block);
                if answer.result.is_err() {
                    errors += 1;
                    continue;
                }
                let sectors = answer.data.chunks(SECTOR as usize).enumerate();
                world.check_sectors(
                    tenant,
                    sectors.map(|(at, bytes)| (block * 8 + at as u64, bytes)),
                );
            }
        }
        assert_eq!(errors as u64, restored.damaged, "{}", world.context);
        failed.push(errors);
        sim = sim.crash(Seed(1), std::iter::repeat(Fate::Lost));
    }
    assert_eq!(failed[0], failed[1], "{}: what is damaged stays so", world.context);
    failed[0]
}

#[test]
fn a_damaged_header_makes_dirty_blocks_errors_and_never_older_content() {
    let (mut found, mut headers, mut failed) = (0, 0, 0);
    for seed in 0..24 {
        let mode = [WriteMode::WriteBack, WriteMode::WriteBack, WriteMode::WriteThrough];
        let mut setting = Setting::of("lru", mode[seed as usize % 3]);
        (setting.devices, setting.segments) = [(1, 11), (2, 6)][seed as usize % 2];
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let mut rng = Seed(seed).derive("headers").rng();
        for _ in 0..150 {
            submit_any(&mut world, &mut rng, &ALL_OPS);
            for _ in 0..rng.below(10) {
                world.step();
            }
        }
        for tenant in 0..TENANTS {
            world.submit(cachewright_live::blocks::BlockOp::Flush, tenant, 0..0, false);
        }
        world.drain();
        for segment in 0..world.setting.segments {
            for file in world.files.0.clone() {
                let mut left = world.sim.crash(Seed(seed), std::iter::repeat(Fate::Whole));
                damage(&mut left, file, (2 << 20) + segment * u64::from(world.setting.segment));
                let set = open(&mut left, &world.files.0).unwrap();
                let log = read_log(&mut left, &set).unwrap();
                assert!(log.damaged_headers <= 1);
                headers += log.damaged_headers;
                found += log.blocks.iter().filter(|block| block.damaged).count();
                failed += errors(&world, left);
            }
        }
    }
    assert!(headers > 100 && found > 20 && failed == found, "{headers} {found} {failed}");
}
