//! Dirty blocks that are written back ahead of need, and clients with caps.

use crate::block_world::{BLOCK, Setting, World};
use crate::guests::{Guest, node};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{BackgroundSettings, BlockOp};
use cachewright_live::front::Caps;
use cachewright_live::io::Io;
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_types::{Seed, TenantId};

const MIB: u64 = 1 << 20;

/// A world of two volumes that share six blocks.
fn world(background: BackgroundSettings) -> World {
    let mut setting = Setting::of("lru", WriteMode::WriteBack);
    setting.background = background;
    World::new(setting, Seed(3))
}

fn between(dirty_high: f64, dirty_low: f64) -> BackgroundSettings {
    BackgroundSettings { dirty_high, dirty_low, ..BackgroundSettings::default() }
}

/// Writes blocks one by one; returns how many were dirty at most when all was quiet.
fn write_each(world: &mut World, blocks: impl Iterator<Item = u64>) -> u64 {
    let mut max_dirty = 0;
    for block in blocks {
        world.submit(BlockOp::Write, (block % 2) as u16, block / 2 * 8..block / 2 * 8 + 8, false);
        world.drain();
        max_dirty = max_dirty.max(world.server.dirty_blocks());
    }
    max_dirty
}

#[test]
fn a_cache_with_too_many_dirty_blocks_cleans_some_between_two_marks() {
    let mut world = world(between(0.5, 0.2));
    assert_eq!(write_each(&mut world, 0..6), 3, "three of six may be dirty");
    assert_eq!(world.server.dirty_blocks(), 3, "the fourth write left one dirty, two followed");
    assert_eq!(world.server.cache().engine().occupancy(TenantId(0)), 3, "what is cleaned stays");
    let (rate, bytes) = world.server.background();
    assert_eq!((rate, bytes), (None, 3 * BLOCK));
    world.read_all();
}

#[test]
fn hits_and_evictions_are_those_without_write_backs_ahead() {
    let counts = |background| {
        let mut world = world(background);
        let blocks = (0..200_u64).map(|place| place * place * 7 % 20);
        write_each(&mut world, blocks);
        let cache = world.server.cache();
        let counts = [0, 1].map(|tenant| *cache.engine().counts(TenantId(tenant)));
        (counts.map(|counts| (counts.write_hits, counts.evictions)), counts)
    };
    let (plain, plain_counts) = counts(BackgroundSettings::default());
    let (ahead, ahead_counts) = counts(between(0.3, 0.1));
    assert_eq!(plain, ahead);
    let written = |counts: [cachewright_types::measure::Counts; 2]| {
        counts[0].writebacks + counts[1].writebacks
    };
    assert!(written(ahead_counts) >= written(plain_counts));
}

#[test]
fn each_pool_has_marks_of_its_own() {
    let mut setting = Setting::of("s3-fifo", WriteMode::WriteBack);
    setting.quotas = Quotas::PerTenant(vec![4, 3]);
    setting.background = between(0.5, 0.25);
    let mut world = World::new(setting, Seed(4));
    for block in 0..4 {
        world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
        world.drain();
    }
    world.submit(BlockOp::Write, 1, 0..8, false);
    world.drain();
    let dirty = [0, 1].map(|pool| world.server.cache().engine().dirty_in(pool));
    assert_eq!(dirty, [2, 1], "one after the third write");
    world.read_all();
}

#[test]
fn a_cap_of_bytes_holds_work_beside_clients_up() {
    let mut settings = between(0.2, 0.1);
    settings.bytes_per_s = Some(1);
    let mut world = world(settings);
    let max_dirty = write_each(&mut world, 0..6);
    assert!(max_dirty > 3, "one block a batch, and then hours of waiting: {max_dirty}");
    assert_eq!(world.server.background(), (Some(1), BLOCK));
    // What must be written back for room is, whatever the cap.
    write_each(&mut world, 6..18);
    world.read_all();
}

#[test]
fn clients_of_a_capped_export_share_its_rate_and_others_do_not_wait() {
    let mut served = node();
    let mut guests: Vec<Guest> = (0..2).map(|_| served.connect("volume-0")).collect();
    let mut free = served.connect("volume-1");
    served.service.clients.cap(TenantId(0), Caps { requests: Some(1000), bytes: Some(64 * MIB) });
    let began_ns = served.sim.now_ns();
    for guest in &mut guests {
        let mut out = Vec::new();
        for cookie in 0..150 {
            let command = NbdCommand::Read { range: Range { offset: 0, length: 512 }, whole: true };
            guest.client.send(&NbdRequest { cookie, offset: 0, command, fua: false }, &mut out);
        }
        served.sim.sockets().client_sends(guest.socket, &out);
    }
    served.request(&mut free, 1, NbdCommand::Flush, &[]);
    assert!(free.done.contains_key(&1));
    let answered = |guests: &[Guest]| guests.iter().map(|guest| guest.done.len()).sum::<usize>();
    while answered(&guests) < 300 {
        served.tick();
        guests.iter_mut().for_each(|guest| served.exchange(guest));
    }
    let passed_ns = served.sim.now_ns() - began_ns;
    assert!((199_000_000..300_000_000).contains(&passed_ns), "{passed_ns}");
    assert!(served.service.clients.caps_exhausted(TenantId(0)) >= 199);
    assert_eq!(served.service.clients.caps_exhausted(TenantId(1)), 0);
}
