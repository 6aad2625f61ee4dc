//! A log whose server is killed, or loses power, at any point holds a prefix of what was done.

use crate::blocks_crashes::{crashes, is_chosen};
use crate::log_world::{World, any_block, formatted, recovered, state_of};
use cachewright_live::io::FileId;
use cachewright_live::io::sim::{Fate, Sim};
use cachewright_live::log::format::VolumeId;
use cachewright_types::{Rng, Seed};

/// The process is killed, or power is lost.
fn ended(sim: &Sim, rng: &mut Rng) -> Sim {
    match rng.below(2) {
        0 => sim.kill_at_random(Seed(rng.next_u64()), rng),
        _ => sim.crash_at_random(Seed(rng.next_u64()), rng),
    }
}

/// Opens what is left, with recovery itself cut short some times.
fn reopened(mut sim: Sim, files: &[FileId], rng: &mut Rng) -> World {
    for _ in 0..rng.below(3) {
        sim.stop_after(rng.below(60));
        let _ = recovered(&mut sim, files);
        sim = ended(&sim, rng);
    }
    let (set, found) = recovered(&mut sim, files).unwrap();
    let state = state_of(&mut sim, &set, &found);
    World::new(sim, &set, found, state)
}

/// One random operation.
fn act(world: &mut World, rng: &mut Rng, value: u64) {
    let block = any_block(rng, 24);
    match rng.below(20) {
        0..=9 => {
            let dirty = rng.below(3) > 0;
            world.write(block, value, dirty);
        }
        10 => {
            world.note_range(block.0, block.1, 1, true);
        }
        11 => {
            world.note_range(block.0, block.1, rng.below(6) as u32 + 1, rng.below(2) == 0);
        }
        12 => world.sync(),
        13 => world.commit(),
        14 => world.read(block),
        _ => {
            for _ in 0..rng.below(12) {
                world.step();
            }
        }
    }
    world.clean();
}

fn crash_often(seed: u64, crashes: u64, devices: usize) -> u64 {
    let mut rng = Seed(seed).derive("crashes").rng();
    let (sim, files) = formatted(Seed(seed), devices, 32 / devices as u64);
    let mut world = reopened(sim, &files, &mut rng);
    let mut value = 0;
    let mut cleaned = 0;
    for crash in 0..crashes {
        for _ in 0..rng.below(300) {
            value += 1;
            act(&mut world, &mut rng, value);
        }
        world.audit();
        cleaned += world.cleaned();
        let left = ended(&world.sim, &mut rng);
        let next = reopened(left, &files, &mut rng);
        let context = || format!("seed {seed}, {devices} devices, crash {crash}");
        world.check(next.state(), &context);
        world = next;
        world.audit();
    }
    cleaned
}

#[test]
fn what_is_found_is_a_prefix_of_what_was_done() {
    let each = crashes(400) / 40;
    let seeds = (0..40).filter(|seed| is_chosen(*seed));
    let cleaned: u64 = seeds.map(|seed| crash_often(seed, each, 1 + seed as usize % 2)).sum();
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || cleaned > 10 * each, "segments are cleaned meanwhile: {cleaned}");
}

/// Every subset of writes under way, at every step of a short run.
#[test]
fn every_subset_of_pending_writes_is_a_prefix() {
    let mut checked = 0;
    for script in 0..3_u64.pow(4) {
        let (mut sim, files) = formatted(Seed(1), 2, 4);
        let (set, found) = recovered(&mut sim, &files).unwrap();
        let state = state_of(&mut sim, &set, &found);
        let mut world = World::new(sim, &set, found, state);
        for place in 0..4_u32 {
            let block = (VolumeId(place % 2), u64::from(place / 3));
            match script / 3_u64.pow(place) % 3 {
                0 => assert!(world.write(block, u64::from(place) + 1, true)),
                1 => assert!(world.note_range(block.0, 0, 2, true)),
                _ => world.sync(),
            }
            world.commit();
            loop {
                let pending = world.sim.volatile_writes();
                assert!(pending <= 10);
                for subset in 0..1_u32 << pending {
                    let fate = |at: usize| match subset >> at & 1 {
                        0 => Fate::Lost,
                        _ => Fate::Whole,
                    };
                    let mut left = world.sim.crash(Seed(2), (0..pending).map(fate));
                    let (set, found) = recovered(&mut left, &files).unwrap();
                    let state = state_of(&mut left, &set, &found);
                    world.check(&state, &|| format!("script {script}, subset {subset:b}"));
                    checked += 1;
                }
                // A kill, and a loss of power behind the next start: that has made all durable.
                let begun = world.sim.writes_under_way();
                for subset in 0..1_u32 << begun {
                    let fate = |at: usize| match subset >> at & 1 {
                        0 => Fate::Lost,
                        _ => Fate::Whole,
                    };
                    let mut killed = world.sim.kill(Seed(2), (0..begun).map(fate));
                    let context = || format!("script {script}, killed, subset {subset:b}");
                    let (set, found) = recovered(&mut killed, &files).unwrap();
                    let state = state_of(&mut killed, &set, &found);
                    world.check(&state, &context);
                    let mut left = killed.crash(Seed(3), std::iter::repeat(Fate::Lost));
                    let (set, found) = recovered(&mut left, &files).unwrap();
                    assert_eq!(state_of(&mut left, &set, &found), state, "{}", context());
                    checked += 1;
                }
                if place == 1 || !world.step() {
                    break;
                }
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}
