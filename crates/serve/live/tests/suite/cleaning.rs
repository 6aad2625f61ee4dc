//! Cleaning by any separation and reclaim policy of the registry keeps the contract, and never
//! fills the log.

use crate::block_setup::{formatted, served};
use crate::block_world::{Setting, World};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_ftl::{CleaningSchemes, reclaim, separation};
use cachewright_live::blocks::{BlockOp, CleaningSettings, RestoreError, needed_segments};
use cachewright_live::log::{open, read_log};
use cachewright_types::declare::Scheme;
use cachewright_types::measure::LossReason;
use cachewright_types::{Rng, Seed, TenantId, Value};
use std::collections::BTreeSet;

/// Separations that a log can follow.
pub fn separations() -> Vec<&'static str> {
    let all = separation::entries().into_iter().map(|entry| entry.name);
    all.filter(|name| cleaning(name, "greedy", false).schemes.streams().is_ok()).collect()
}

pub fn reclaims() -> Vec<&'static str> {
    reclaim::entries().into_iter().map(|entry| entry.name).collect()
}

/// Cleaning by these schemes, of three levels where a separation has levels.
pub fn cleaning(separation: &str, reclaim: &str, drops_cold: bool) -> CleaningSettings {
    let mut named = Scheme::named(separation);
    match separation {
        "dac" | "mida" | "multi-log" => named.pairs.push(("levels".to_owned(), Value::Int(3))),
        "sepbit" | "gw" => named.pairs.push(("classes".to_owned(), Value::Int(4))),
        _ => {}
    }
    let schemes =
        CleaningSchemes { separation: named, reclaim: Scheme::named(reclaim), seed: Seed(3) };
    CleaningSettings { schemes, drops_cold }
}

/// Any cleaning with at most four streams.
pub fn any_cleaning(rng: &mut Rng) -> CleaningSettings {
    let mut any = |names: &[&'static str]| names[rng.below(names.len() as u64) as usize];
    let few = ["none", "2r", "dac", "mida", "multi-log", "sepbit", "uw", "gw"];
    let (separation, reclaim) = (any(&few), any(&reclaims()));
    cleaning(separation, reclaim, rng.below(2) == 0)
}

/// As many segments as such a cleaning needs beside `more`.
pub fn segments(cleaning: &CleaningSettings, more: u64) -> u64 {
    needed_segments(&cleaning.log_settings(4, 3).unwrap()) as u64 + more
}

/// One tenant overwrites blocks, few of them often; a log that is nearly full of them.
fn overwrite(setting: Setting, seed: u64, writes: u64) -> World {
    let blocks = setting.blocks;
    let mut rng = Seed(seed).derive("overwrites").rng();
    let mut world = World::new(setting, Seed(seed));
    for write in 0..writes {
        // Nine of ten writes go to a tenth of the blocks.
        let block = match rng.below(10) {
            0 => rng.below(blocks),
            _ => rng.below((blocks / 10).max(1)),
        };
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, write % 64 == 0);
        while world.unanswered() > 8 {
            let goes_on = world.step() || world.unanswered() <= 8;
            assert!(goes_on, "{:?}, {:?}", world.setting, world.server.counts());
        }
    }
    world
}

/// The most blocks that a cache of these schemes may have in so many segments of 256 KiB.
fn full(cleaning: CleaningSettings, segments: u64) -> Setting {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    (setting.segment, setting.segments, setting.group_blocks) = (256 << 10, segments, 128);
    setting.cleaning = cleaning;
    setting.blocks = 1;
    // What a refusal says is the most.
    setting.quotas = Quotas::Shared(u32::MAX / 2);
    let (mut sim, files) = formatted(&setting, Seed(0));
    let refused = served(&mut sim, &setting, &files).unwrap().err().unwrap();
    let RestoreError::TooSmall { max, .. } = refused else { panic!("{refused}") };
    (setting.blocks, setting.quotas) = (max, Quotas::Shared(max as u32));
    setting
}

/// Every separation with every policy, each log as full as it may be.
#[test]
fn no_scheme_fills_a_log_that_is_as_full_as_it_may_be() {
    for (index, separation) in separations().into_iter().enumerate() {
        for (other, reclaim) in reclaims().into_iter().enumerate() {
            // All policies under two separations, one in turn under each of the others.
            if !["2r", "sepbit"].contains(&separation) && (index + other) % 6 != 0 {
                continue;
            }
            let cleaning = cleaning(separation, reclaim, false);
            let setting = full(cleaning.clone(), segments(&cleaning, 20));
            let writes = 6 * setting.blocks;
            let mut world = overwrite(setting, (index * 16 + other) as u64, writes);
            world.context = format!("{separation}, {reclaim}");
            world.drain();
            let counts = world.server.counts();
            assert!(counts.cleaned > 40, "{}: {counts:?}", world.context);
            assert_eq!(counts.without_space, 0, "{}", world.context);
            assert!(counts.write_amplification() < 9.0, "{}: {counts:?}", world.context);
        }
    }
}

/// Every separation and every policy, with losses of power.
#[test]
fn every_scheme_keeps_what_was_durable() {
    let (separations, reclaims) = (separations(), reclaims());
    let mut dropped = 0;
    for round in 0..separations.len() * 2 {
        let seed = round as u64;
        let mut rng = Seed(seed).derive("schemes").rng();
        let (separation, reclaim) =
            (separations[round % separations.len()], reclaims[round % reclaims.len()]);
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        setting.cleaning = cleaning(separation, reclaim, round >= separations.len());
        if setting.cleaning.drops_cold {
            setting.mode = WriteMode::WriteThrough;
        }
        setting.segments = segments(&setting.cleaning, 4);
        let mut world = World::new(setting, Seed(seed));
        for crash in 0..6 {
            world.context = format!("{separation}, {reclaim}, seed {seed}, crash {crash}");
            for _ in 0..150 {
                submit_any(&mut world, &mut rng, &ALL_OPS);
                (0..rng.below(8)).for_each(|_| {
                    world.step();
                });
            }
            dropped += world.server.counts().dropped;
            world.crash(&mut rng, 1);
        }
        world.drain();
        world.read_all();
    }
    assert!(dropped > 20, "{dropped}");
}

/// Blocks that are read stay, others are dropped when their segment is cleaned; each is counted.
#[test]
fn cold_clean_blocks_are_dropped_and_read_ones_are_moved() {
    let mut setting = Setting::of("lru", WriteMode::WriteThrough);
    setting.cleaning = cleaning("2r", "greedy", true);
    (setting.blocks, setting.quotas) = (40, Quotas::Shared(30));
    let mut world = World::new(setting, Seed(4));
    // The first blocks are read again and again, those behind them are stored once, and the last
    // ones are overwritten until all segments were cleaned.
    for round in 0..600 {
        let written = 20 + round % 8;
        world.submit(BlockOp::Write, 0, written * 8..written * 8 + 8, false);
        if round < 20 {
            world.submit(BlockOp::Read, 0, round * 8..round * 8 + 8, false);
        }
        (0..6).for_each(|block| {
            world.submit(BlockOp::Read, 0, block * 8..block * 8 + 8, false);
        });
        world.drain();
        // What is written is clean in the log when the backing device has it durably.
        world.submit(BlockOp::Flush, 0, 0..0, false);
        world.drain();
    }
    let cached = |block: u64| world.server.is_cached(TenantId(0), block);
    assert!((0..6).all(cached), "they are read");
    assert_eq!((6..20).filter(|block| cached(*block)).count(), 0, "nothing reads them");
    let counts = world.server.counts();
    let losses = *world.server.cache().engine().losses(TenantId(0));
    assert!(counts.dropped >= 14, "{counts:?}");
    assert_eq!(losses.blocks(LossReason::Cleaning), counts.dropped);
    assert_eq!(losses.dirty(LossReason::Cleaning), 0, "only the log has dirty ones");
    world.read_all();
}

/// A separation whose streams leave no segment for blocks is refused before anything is done.
#[test]
fn too_few_segments_for_the_streams_are_refused() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.cleaning = cleaning("shiro-x", "greedy", false);
    let (mut sim, files) = formatted(&setting, Seed(0));
    let refused = served(&mut sim, &setting, &files).unwrap().err().unwrap();
    let sentence = refused.to_string();
    assert!(sentence.starts_with("found 11 segments, expected at least "), "{sentence}");
    assert!(sentence.ends_with(" for 8 streams"), "{sentence}");
}

/// A block that is dropped and was dirty before: an older copy of it must not come back. Power is
/// lost at every operation while its segment is cleaned.
#[test]
fn older_copies_of_dropped_blocks_do_not_come_back() {
    let mut setting = Setting::of("lru", WriteMode::WriteThrough);
    setting.cleaning = cleaning("none", "fifo", true);
    (setting.blocks, setting.quotas) = (24, Quotas::Shared(20));
    let mut rng = Seed(8).rng();
    for seed in 0..4 {
        let mut world = World::new(setting.clone(), Seed(seed));
        for round in 0..400_u64 {
            let block = rng.below(24);
            world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
            world.step();
            if round % 4 == 0 {
                let left = world.sim.crash_at_random(Seed(rng.next_u64()), &mut rng);
                world.check_left(left);
            }
        }
        world.drain();
        assert!(world.server.counts().dropped > 10, "{:?}", world.server.counts());
    }
}

/// Headers of segments say which stream filled them, so that schemes go on with it after a start.
#[test]
fn the_stream_of_a_segment_is_found_again() {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.cleaning = cleaning("dac", "cost-benefit", false);
    setting.segments = segments(&setting.cleaning, 4);
    let mut world = overwrite(setting, 5, 300);
    world.drain();
    let set = open(&mut world.sim, &world.files.0).unwrap();
    let found = read_log(&mut world.sim, &set).unwrap();
    let used = found.segments.iter().filter(|segment| segment.live > 0);
    let streams: BTreeSet<u32> = used.map(|segment| segment.stream).collect();
    assert!(streams.len() > 1 && streams.last() == Some(&2), "{streams:?}");
}
