//! Pages of a cache device that cannot be read: one locks nothing else away, what may have stood
//! there is an error, and nothing older than what was flushed is read.

use crate::answers::read_block;
use crate::block_world::{SECTOR, Setting, TENANTS, World, served};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::WriteMode;
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::{Fate, Fault, Sim};
use cachewright_live::io::{FileId, IoError, IoOp, batch};
use cachewright_live::log::{OpenSetError, open, read_log};
use cachewright_types::Seed;
use std::cell::Cell;
use std::rc::Rc;

const PAGE: u64 = 4096;
const SUPERBLOCKS: u64 = 2 << 20;

/// Reads of some bytes of a file fail until they are written again.
fn make_unreadable(sim: &mut Sim, file: FileId, offset: u64, length: u64, error: IoError) {
    let left = Rc::new(Cell::new(true));
    sim.set_faults(Box::new(move |_, op| {
        let (other, first, bytes) = op.file_range()?;
        let meets = other == file && first < offset + length && offset < first + bytes;
        if !meets || !left.get() {
            return None;
        }
        match op {
            IoOp::Read { .. } => Some(Fault::Error(error)),
            IoOp::Write { .. } => {
                left.set(false);
                None
            }
            _ => None,
        }
    }));
}

/// A world in which all is flushed; its segments have ended if `is_stopped`.
fn flushed(seed: u64, is_stopped: bool) -> World {
    let mode = [WriteMode::WriteBack, WriteMode::WriteBack, WriteMode::WriteThrough];
    let mut setting = Setting::of("lru", mode[seed as usize % 3]);
    (setting.devices, setting.segments) = [(1, 11), (2, 6)][seed as usize % 2];
    let mut world = World::new(setting, Seed(seed));
    world.context = format!("seed {seed}");
    let mut rng = Seed(seed).derive("unreadable").rng();
    for _ in 0..120 {
        submit_any(&mut world, &mut rng, &ALL_OPS);
        for _ in 0..rng.below(10) {
            world.step();
        }
    }
    for tenant in 0..TENANTS {
        world.submit(BlockOp::Flush, tenant, 0..0, false);
    }
    world.drain();
    if is_stopped {
        world.server.close(&mut world.sim);
        while world.server.is_closing() {
            world.step();
        }
        world.drain();
    }
    world
}

/// What a start makes of a page: blocks whose reads fail; nothing where content that was durable
/// may be gone, and is said to be.
fn start(world: &World, mut sim: Sim) -> Option<usize> {
    let set = open(&mut sim, &world.files.0).unwrap();
    let found = read_log(&mut sim, &set).unwrap();
    assert!(found.failing_device().is_none(), "{}: one page is no device", world.context);
    let has_lost = found.has_lost();
    let (mut server, _) = served(&mut sim, &world.setting, &world.files).unwrap().unwrap();
    let mut errors = 0;
    for tenant in 0..TENANTS {
        for block in 0..world.setting.blocks {
            let answer = read_block(&mut server, &mut sim, tenant, block);
            if answer.result.is_err() {
                errors += 1;
            } else if !has_lost {
                let sectors = answer.data.chunks(SECTOR as usize).enumerate();
                let sectors = sectors.map(|(at, bytes)| (block * 8 + at as u64, bytes));
                world.check_sectors(tenant, sectors);
            }
        }
    }
    (!has_lost).then_some(errors)
}

#[test]
fn a_page_that_cannot_be_read_makes_errors_and_never_older_content() {
    let (mut starts, mut failed, mut said) = (0, 0, 0);
    for seed in 0..6 {
        for is_stopped in [false, true] {
            let mut world = flushed(seed, is_stopped);
            let segments = SUPERBLOCKS / PAGE
                ..(SUPERBLOCKS + world.setting.segments * u64::from(world.setting.segment)) / PAGE;
            for page in [0, 3, 256, 511].into_iter().chain(segments) {
                let file = world.files.0[(page % world.files.0.len() as u64) as usize];
                world.context = format!("seed {seed}, stopped {is_stopped}, page {page}");
                let mut left = world.sim.crash(Seed(seed), std::iter::repeat(Fate::Whole));
                make_unreadable(&mut left, file, page * PAGE, PAGE, IoError::IO);
                starts += 1;
                match start(&world, left) {
                    Some(errors) => failed += errors,
                    None => {
                        assert!(!is_stopped, "{}: footers name all groups", world.context);
                        said += 1;
                    }
                }
            }
        }
    }
    assert!(failed > 30, "dirty blocks that could not be read are errors: {failed}");
    assert!(said > 5 && said * 10 < starts, "{said} of {starts} starts say that content is gone");
}

/// A page of a segment that was being filled, where a group begins or the next would have: what was
/// written may have stood there, and nothing else would prove it. Groups behind it were durable as
/// well, and count.
#[test]
fn a_group_that_cannot_be_read_takes_along_no_other_and_is_said() {
    let mut world = World::new(Setting::of("lru", WriteMode::WriteBack), Seed(3));
    for block in 0..4 {
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, true);
        world.drain();
    }
    let mut left = world.sim.crash(Seed(1), std::iter::repeat(Fate::Whole));
    let (file, whole) = (world.files.0[0], left.file(world.files.0[0]).bytes());
    let set = open(&mut left, &world.files.0).unwrap();
    let sound = read_log(&mut left, &set).unwrap();
    assert!(!sound.has_lost() && sound.unreadable.is_empty() && sound.blocks.len() == 4);
    let mut hidden = Vec::new();
    for page in SUPERBLOCKS / PAGE..whole / PAGE {
        let mut sim = left.crash(Seed(1), std::iter::repeat(Fate::Whole));
        make_unreadable(&mut sim, file, page * PAGE, PAGE, IoError::IO);
        let found = read_log(&mut sim, &set).unwrap();
        if found.has_lost() {
            let page_of_segment = page - SUPERBLOCKS / PAGE;
            hidden.push(page_of_segment);
            let there = if page_of_segment < 9 { 3 } else { 4 };
            assert_eq!(found.blocks.len(), there, "page {page}");
            assert_eq!(found.void_groups, 0, "page {page}");
            assert_eq!(found.unreadable.len(), 1);
            assert_eq!((found.unreadable[0].device, found.unreadable[0].offset), (0, page * PAGE));
        } else {
            assert_eq!(found.blocks.len(), 4, "page {page}");
        }
    }
    // Four groups of a descriptor and a block each; the page behind them could have been the next.
    assert_eq!(hidden, [1, 3, 5, 7, 9]);
}

#[test]
fn a_device_of_which_most_cannot_be_read_is_not_written_to() {
    let world = flushed(0, true);
    let mut left = world.sim.crash(Seed(1), std::iter::repeat(Fate::Whole));
    let file = world.files.0[0];
    let length = left.file(file).bytes() - SUPERBLOCKS;
    make_unreadable(&mut left, file, SUPERBLOCKS, length, IoError::IO);
    let set = open(&mut left, &world.files.0).unwrap();
    let found = read_log(&mut left, &set).unwrap();
    let page = found.failing_device().unwrap();
    assert_eq!((page.device, page.offset, page.error), (0, SUPERBLOCKS, IoError::IO));
    assert_eq!(found.unreadable.len() as u64, length / PAGE);
}

/// Memory that is short, or a device that was pulled, is no damage: a start that wrote headers
/// again because of it would destroy what is there.
#[test]
fn an_error_that_may_pass_ends_recovery_with_its_place() {
    let world = flushed(0, true);
    for error in [IoError(12), IoError(19), IoError(110)] {
        let mut left = world.sim.crash(Seed(1), std::iter::repeat(Fate::Whole));
        let set = open(&mut left, &world.files.0).unwrap();
        make_unreadable(&mut left, world.files.0[0], SUPERBLOCKS + (64 << 10), PAGE, error);
        match read_log(&mut left, &set) {
            Err(OpenSetError::Unreadable(page)) => {
                assert_eq!((page.device, page.offset), (0, SUPERBLOCKS + (64 << 10)));
                assert_eq!(page.error, error);
            }
            other => panic!("{error}: {:?}", other.map(|found| found.blocks.len())),
        }
    }
}

#[test]
fn a_range_is_read_but_for_the_pages_that_cannot_be() {
    let mut sim = Sim::new(Seed(4));
    let file = sim.add_file(cachewright_live::io::sim::SimFile::new(64 * PAGE));
    let pages: Vec<u8> = (0..64).flat_map(|page: u8| vec![page + 1; PAGE as usize]).collect();
    batch::write(&mut sim, [(file, 0, cachewright_live::io::Buffer::copy_of(&pages))]).unwrap();
    make_unreadable(&mut sim, file, 9 * PAGE, 2 * PAGE, IoError::IO);
    let ranges = [(file, 0, 7 * PAGE as usize), (file, 7 * PAGE, 23 * PAGE as usize)];
    let found = batch::read_pages(&mut sim, &ranges).unwrap();
    assert!(found[0].unreadable.is_empty());
    let lost: Vec<usize> = found[1].unreadable.iter().map(|(start, _)| *start).collect();
    assert_eq!(lost, [2 * PAGE as usize, 3 * PAGE as usize]);
    for (page, bytes) in (7..30).zip(found[1].data.chunks(PAGE as usize)) {
        let expected = if (9..11).contains(&page) { 0 } else { page as u8 + 1 };
        assert!(bytes.iter().all(|byte| *byte == expected), "page {page}");
    }
}
