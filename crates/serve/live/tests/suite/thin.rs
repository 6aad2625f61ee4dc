//! Holes of volumes: what clients are told of them, and zeroes that are written back as holes.

use crate::block_world::{Setting, World};
use crate::blocks_model::{ALL_OPS, MODES, any_sectors, submit_any};
use cachewright_cache::WriteMode;
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::Fault;
use cachewright_live::io::{FileId, IoError, IoOp};
use cachewright_types::Seed;
use std::cell::RefCell;
use std::rc::Rc;

/// A hole that a look finds reads as zeroes for a read that began with the look.
#[test]
fn nothing_that_was_answered_is_in_a_hole_while_writes_are_under_way() {
    let mut holes = 0;
    for (other, mode) in MODES.into_iter().enumerate() {
        for (index, policy) in ["lru", "s3-fifo", "larc"].into_iter().enumerate() {
            let seed = (index * 4 + other) as u64;
            let mut rng = Seed(seed).derive("holes").rng();
            let setting = Setting { short: seed % 3 * 2, ..Setting::of(policy, mode) };
            let mut world = World::new(setting, Seed(seed));
            world.context = format!("{policy}, {mode:?}");
            for _ in 0..400 {
                submit_any(&mut world, &mut rng, &ALL_OPS);
                for _ in 0..rng.below(3) {
                    let sectors = any_sectors(&mut rng, world.setting.sectors_of(0));
                    world.look_at_holes(rng.below(2) as u16, sectors);
                    for _ in 0..rng.below(8) {
                        world.step();
                    }
                }
            }
            world.drain();
            world.read_all();
            holes += world.holes;
        }
    }
    assert!(holes > 5_000, "{holes}");
}

/// How often backing devices are to zero, to provision and to write, of 16 blocks whose edges are
/// zeroed, where a device may be unable to zero.
fn zeroed(op: BlockOp, is_able: bool) -> [u64; 3] {
    let setting = Setting { blocks: 16, short: 3, ..Setting::of("lru", WriteMode::WriteBack) };
    let mut world = World::new(setting, Seed(5));
    let backing: Vec<FileId> = world.files.1.clone();
    let counts = Rc::new(RefCell::new([0; 3]));
    let counted = Rc::clone(&counts);
    world.sim.set_faults(Box::new(move |_, op| {
        let (file, ..) = op.file_range()?;
        let place = match op {
            _ if !backing.contains(&file) => return None,
            IoOp::Zero { .. } => 0,
            IoOp::Provision { .. } => 1,
            IoOp::Write { .. } => 2,
            _ => return None,
        };
        counted.borrow_mut()[place] += 1;
        (place < 2 && !is_able).then_some(Fault::Error(IoError::NOT_SUPPORTED))
    }));
    for block in 0..16 {
        world.submit(op, 0, block * 8 + 1..block * 8 + 4, false);
        world.drain();
    }
    world.read_all();
    *counts.borrow()
}

#[test]
fn zeroed_parts_of_blocks_of_zeroes_are_written_back_as_holes_unless_space_is_kept() {
    let [zeroed_holes, provisioned, written] = zeroed(BlockOp::Zero, true);
    assert!(zeroed_holes > 5 && provisioned == 0 && written == 0, "{zeroed_holes}, {written}");
    let [zeroed_holes, provisioned, written] = zeroed(BlockOp::Provision, true);
    assert!(zeroed_holes == 0 && provisioned == 0 && written > 5, "{zeroed_holes}, {written}");
    let [zeroed_holes, _, written] = zeroed(BlockOp::Zero, false);
    assert!(zeroed_holes > 5 && written == zeroed_holes, "{zeroed_holes}, {written}");
}

#[test]
fn whole_blocks_that_keep_their_space_are_provisioned_and_never_made_holes() {
    for is_able in [true, false] {
        let setting = Setting { short: 3, ..Setting::of("lru", WriteMode::WriteBack) };
        let mut world = World::new(setting, Seed(5));
        let seen = Rc::new(RefCell::new((0, 0)));
        let counted = Rc::clone(&seen);
        let backing = world.files.1[0];
        world.sim.set_faults(Box::new(move |_, op| {
            let (file, ..) = op.file_range().filter(|(file, ..)| *file == backing)?;
            assert_eq!(file, backing);
            let mut seen = counted.borrow_mut();
            seen.0 += u64::from(matches!(op, IoOp::Provision { .. }));
            seen.1 += u64::from(matches!(op, IoOp::Zero { .. } | IoOp::Discard { .. }));
            let fails = matches!(op, IoOp::Provision { .. }) && !is_able;
            fails.then_some(Fault::Error(IoError::NOT_SUPPORTED))
        }));
        world.submit(BlockOp::Write, 0, 0..77, false);
        world.drain();
        world.submit(BlockOp::Provision, 0, 8..77, true);
        world.drain();
        world.read_all();
        assert_eq!(*seen.borrow(), (1, 0));
    }
}
