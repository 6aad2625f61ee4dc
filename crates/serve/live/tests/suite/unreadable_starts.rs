//! Starts that cannot read some pages of the cache: what can be read is served, and nothing older
//! than what was flushed is read in place of what cannot.

use crate::block_world::{BLOCK, Setting, World};
use crate::blocks_crashes::{crashes, go_on, is_chosen};
use crate::blocks_failures::{any_lasting, any_world, overwrite_all};
use crate::blocks_model::{ALL_OPS, submit_any};
use crate::known_bugs::{lose_all, steps};
use cachewright_cache::WriteMode;
use cachewright_live::blocks::BlockOp;
use cachewright_live::io::sim::{Sim, Unreadable};
use cachewright_types::{Rng, Seed};

/// The bytes of a cache device in front of its segments.
const SUPERBLOCKS: u64 = 2 << 20;

/// Some pages cannot be read: often the first and the last of a segment.
fn spoil(world: &World, sim: &mut Sim, rng: &mut Rng) {
    let (devices, segment) = (&world.files.0, u64::from(world.setting.segment));
    for _ in 0..1 + rng.below(3) {
        let device = devices[rng.below(devices.len() as u64) as usize];
        let start = SUPERBLOCKS + rng.below(world.setting.segments) * segment;
        let page = match rng.below(3) {
            0 => 0,
            1 => segment / BLOCK - 1,
            _ => rng.below(segment / BLOCK),
        };
        let lasts = any_lasting(rng);
        sim.make_unreadable(device, start + page * BLOCK, BLOCK as usize, lasts);
    }
}

#[test]
fn a_start_that_cannot_read_pages_of_the_cache_serves_the_rest_and_nothing_older() {
    let rounds = crashes(640) / 32;
    let (mut unread, mut lost) = (0, 0);
    for seed in (0..32).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("unreadable starts").rng();
        let mut world = any_world(seed, &mut rng);
        for round in 0..rounds {
            world.context = format!("{:?}, seed {seed}, round {round}", world.setting);
            go_on(&mut world, &mut rng, &ALL_OPS);
            let mut left = match rng.below(2) {
                0 => world.sim.kill_at_random(Seed(rng.next_u64()), &mut rng),
                _ => world.sim.crash_at_random(Seed(rng.next_u64()), &mut rng),
            };
            spoil(&world, &mut left, &mut rng);
            let Some(sectors) = world.restart_unreadable(left) else {
                lost += 1;
                world = any_world(seed, &mut rng);
                continue;
            };
            unread += sectors;
            go_on(&mut world, &mut rng, &ALL_OPS);
            world.drain();
            // What is an error now is one until it is overwritten whole.
            world.sim.heal();
            overwrite_all(&mut world);
            world.may_fail = false;
            world.read_all();
        }
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || unread > 0, "{unread} sectors, {lost} logs");
}

/// A segment whose header cannot be read may have been emptied: its dirty content is doubtful, and
/// its footer said so from then on. The groups themselves did not: they were believed when the
/// footer could not be read either, and content that had left the log long before was read.
#[test]
fn what_is_doubtful_stays_so_when_the_footer_that_says_so_cannot_be_read() {
    let mut unread = 0;
    for seed in 0..6 {
        for segment in 0..11 {
            let setting = Setting::of("lru", WriteMode::WriteBack);
            let segment_bytes = u64::from(setting.segment);
            let start = SUPERBLOCKS + segment * segment_bytes;
            let mut world = World::new(setting, Seed(seed));
            world.context = format!("seed {seed}, segment {segment}");
            let mut rng = Seed(seed).derive("doubtful").rng();
            for _ in 0..250 {
                submit_any(&mut world, &mut rng, &ALL_OPS);
                steps(&mut world, rng.below(10));
            }
            for tenant in 0..2 {
                world.submit(BlockOp::Flush, tenant, 0..0, false);
            }
            world.drain();
            for page in [start, start + segment_bytes - BLOCK] {
                let (mut left, device) = (lose_all(&world), world.files.0[0]);
                left.heal();
                left.make_unreadable(device, page, BLOCK as usize, Unreadable::UntilWritten);
                unread += world.restart_unreadable(left).unwrap_or_default();
            }
        }
    }
    assert!(unread > 0, "headers that cannot be read make errors");
}
