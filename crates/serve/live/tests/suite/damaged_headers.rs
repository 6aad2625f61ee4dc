//! Header pages of segments that are damaged: nothing older than what was flushed is read, and what
//! is lost is counted.

use crate::answers::read_block;
use crate::block_world::{BLOCK, SECTOR, Setting, TENANTS, World, served};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::WriteMode;
use cachewright_live::io::batch;
use cachewright_live::io::sim::{Fate, Sim};
use cachewright_live::io::{Buffer, FileId, Io};
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

/// Random requests, all done and flushed.
fn flushed(seed: u64) -> World {
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
    world
}

/// Where the segments of a device begin, device by device.
fn segments(world: &World) -> Vec<(FileId, u64)> {
    let starts = (0..world.setting.segments)
        .map(|segment| (2 << 20) + segment * u64::from(world.setting.segment));
    starts.flat_map(|start| world.files.0.iter().map(move |file| (*file, start))).collect()
}

#[test]
fn a_damaged_header_makes_dirty_blocks_errors_and_never_older_content() {
    let (mut found, mut headers, mut failed, mut marked) = (0, 0, 0, 0);
    for seed in 0..24 {
        let world = flushed(seed);
        for (file, start) in segments(&world) {
            let mut left = world.sim.crash(Seed(seed), std::iter::repeat(Fate::Whole));
            damage(&mut left, file, start);
            let set = open(&mut left, &world.files.0).unwrap();
            let log = read_log(&mut left, &set).unwrap();
            assert_eq!((log.damaged_headers, log.lost_groups), (1, 0), "{}", world.context);
            headers += 1;
            marked += usize::from(log.has_lost());
            found += log.blocks.iter().filter(|block| block.damaged).count();
            failed += errors(&world, left);
        }
    }
    assert!(headers > 100 && found > 20 && failed == found, "{headers} {found} {failed}");
    // All groups stand behind the header: volumes go on being written.
    assert!(20 * marked < headers, "{marked} of {headers}");
}

/// Once a device with zeroes in it was served read-write, and blocks were read from the volumes
/// that had older content: where a header was damaged, no group was called lost.
#[test]
fn a_part_of_a_device_that_turned_to_zeroes_is_never_read_as_older_content() {
    let (mut older, mut marked) = (0, 0);
    for seed in 0..24 {
        let world = flushed(seed);
        let segment = u64::from(world.setting.segment);
        let mut rng = Seed(seed).derive("zeroes").rng();
        for (file, start) in segments(&world) {
            let pages = segment / BLOCK;
            // The first pages of a segment, all of it, or on into the next.
            let lengths = [1 + rng.below(pages - 1), pages, pages + 1 + rng.below(pages)];
            for length in lengths.map(|pages| pages * BLOCK) {
                let mut left = world.sim.crash(Seed(seed), std::iter::repeat(Fate::Whole));
                let length = length.min(left.file_bytes(file) - start);
                let zeroes = Buffer::zeroed(length as usize);
                batch::write(&mut left, [(file, start, zeroes)]).unwrap();
                let set = open(&mut left, &world.files.0).unwrap();
                let log = read_log(&mut left, &set).unwrap();
                if log.has_lost() {
                    marked += 1;
                    older += usize::from(reads_older(&world, left));
                } else {
                    errors(&world, left);
                }
            }
        }
    }
    assert!(older > 20, "{older} of {marked} would be read as older content");
}

/// Whether some block is read with content that is not its last.
fn reads_older(world: &World, mut sim: Sim) -> bool {
    let (mut server, _) = served(&mut sim, &world.setting, &world.files).unwrap().unwrap();
    let blocks =
        (0..TENANTS).flat_map(|tenant| (0..world.setting.blocks).map(move |b| (tenant, b)));
    let mut reads_older = false;
    for (tenant, block) in blocks {
        let answer = read_block(&mut server, &mut sim, tenant, block);
        let sectors = answer.data.chunks(SECTOR as usize).enumerate();
        let sectors = sectors.map(|(at, bytes)| (block * 8 + at as u64, bytes));
        reads_older |= answer.result.is_ok() && !world.is_durable(tenant, sectors);
    }
    reads_older
}
