//! Reads of the cache device that fail once, or look damaged once: nothing is given up for them.

use crate::block_world::{Setting, World};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::IoOp;
use cachewright_live::io::sim::Fault;
use cachewright_live::io::{FileId, IoError};
use cachewright_types::{Seed, TenantId};
use std::cell::Cell;
use std::rc::Rc;

/// Segments of the test's log, in bytes.
const SEGMENT: u64 = 64 << 10;

fn is_footer(offset: u64) -> bool {
    offset % SEGMENT == SEGMENT - 4096
}

/// A read of one page of a cache device, at this offset.
fn page_read(op: &IoOp, device: FileId) -> Option<u64> {
    match op {
        IoOp::Read { file, buffer, offset } if *file == device && buffer.len() == 4096 => {
            Some(*offset)
        }
        _ => None,
    }
}

/// A world with one durable dirty block of volume 1 among blocks of volume 0 that die, until
/// segments were cleaned; `fault` is what a read of a block meets.
fn cleaned(seed: u64, mut fault: impl FnMut() -> Option<Fault> + 'static) -> World {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.segments = 11;
    let mut world = World::new(setting, Seed(seed));
    world.context = format!("seed {seed}");
    world.submit(BlockOp::Write, 1, 0..8, true);
    world.drain();
    let device = world.files.0[0];
    world.sim.set_faults(Box::new(move |_, op| {
        let offset = page_read(op, device)?;
        if is_footer(offset) { None } else { fault() }
    }));
    let mut rng = Seed(seed).rng();
    for _ in 0..400 {
        let block = rng.below(4);
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
        world.drain();
    }
    assert!(world.server.counts().cleaned > 5, "{:?}", world.server.counts());
    world.sim.set_faults(Box::new(|_, _| None));
    world
}

/// A read that fails is no reason to give up the only copy of a block.
#[test]
fn dirty_content_that_could_not_be_read_once_is_kept() {
    let mut met = 0;
    for seed in 0..8 {
        for fault in [Fault::Error(IoError::IO), Fault::Flipped(77)] {
            let left = Rc::new(Cell::new(1));
            let faults = Rc::clone(&left);
            let mut world = cleaned(seed, move || {
                let some = faults.get() > 0;
                faults.set(0);
                some.then_some(fault)
            });
            met += 1 - left.get();
            assert!(world.server.is_dirty(TenantId(1), 0));
            world.read_all();
            assert_eq!(world.errors, [0, 0], "{}", world.context);
            let mut rng = Seed(seed).rng();
            world.crash(&mut rng, 1);
            world.read_all();
            assert_eq!(world.errors, [0, 0], "{}", world.context);
        }
    }
    assert!(met >= 8, "the cleaner met {met} faults");
}

/// A footer that cannot be read takes one segment out of cleaning, and refuses no request.
#[test]
fn a_footer_that_cannot_be_read_refuses_no_request() {
    for seed in 0..8 {
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.segments = 16;
        let mut world = World::new(setting, Seed(seed));
        world.context = format!("seed {seed}");
        let device = world.files.0[0];
        let left = Rc::new(Cell::new(2));
        let faults = Rc::clone(&left);
        world.sim.set_faults(Box::new(move |_, op| {
            let is_hit = page_read(op, device).is_some_and(is_footer) && faults.get() > 0;
            faults.set(faults.get() - u32::from(is_hit));
            is_hit.then_some(Fault::Error(IoError::IO))
        }));
        let mut rng = Seed(seed).rng();
        for _ in 0..600 {
            let block = rng.below(4);
            world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
            world.step();
        }
        world.drain();
        assert_eq!((left.get(), world.errors), (0, [0, 0]), "{}", world.context);
        let counts = world.server.counts();
        assert!(counts.without_space == 0 && counts.cleaned > 5, "{counts:?}");
    }
}

/// A write round the cache, or zeroes, decided before the write-back of the block has failed: what
/// was acknowledged is never replaced by what the cache had.
#[test]
fn what_is_written_round_a_failing_write_back_stays() {
    let mut stranded = 0;
    for seed in 0..24 {
        for op in [BlockOp::Write, BlockOp::Zero] {
            let mut setting = Setting::of("lru", WriteMode::WriteBack);
            setting.quotas = Quotas::Shared(2);
            let mut world = World::new(setting, Seed(seed));
            world.context = format!("seed {seed}, {op:?}");
            world.submit(BlockOp::Write, 0, 24..32, true);
            world.drain();
            let device = world.files.0[0];
            world.sim.set_faults(Box::new(move |_, found| {
                let offset = page_read(found, device)?;
                (!is_footer(offset)).then_some(Fault::Flipped(100))
            }));
            world.may_fail = true;
            // Two more blocks evict it; its write-back is under way when it is overwritten.
            world.submit(BlockOp::Write, 1, 0..8, false);
            world.submit(BlockOp::Write, 1, 8..16, false);
            for _ in 0..seed % 12 {
                world.step();
            }
            world.submit(op, 0, 24..32, seed % 2 == 0);
            world.drain();
            stranded += world.server.counts().stranded;
            world.sim.set_faults(Box::new(|_, _| None));
            world.may_fail = false;
            let errors = world.errors;
            world.submit(BlockOp::Flush, 0, 0..0, false);
            world.submit(BlockOp::Read, 0, 24..32, false);
            world.drain();
            assert_eq!(world.errors, errors, "{}", world.context);
            let mut rng = Seed(seed).rng();
            world.crash(&mut rng, 1);
            world.submit(BlockOp::Read, 0, 24..32, false);
            world.drain();
            assert_eq!(world.errors, errors, "{}", world.context);
        }
    }
    assert!(stranded > 4, "{stranded} write-backs failed");
}
