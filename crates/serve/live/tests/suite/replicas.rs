//! A replica of what decides stands where its server does, whatever happens to the server.

use crate::block_world::{Setting, World};
use crate::blocks_crashes::{any_background, crashes, go_on, is_chosen};
use crate::blocks_failures::{SUPERBLOCKS, fail_backings, spoil};
use crate::blocks_model::{ALL_OPS, MODES, POLICIES};
use crate::members::{any_change, setting};
use crate::policies_replaced::replace;
use cachewright_cache::{Quotas, SequentialCutoff};
use cachewright_control::{CachePolicy, Control, Division, SignalNeeds};
use cachewright_live::blocks::LiveDecider;
use cachewright_partition::TenantConstants;
use cachewright_types::Seed;
use std::sync::mpsc::channel;

/// A replica takes the steps of a world's server from now on.
fn replicate(world: &mut World) {
    let empty = LiveDecider::new(world.setting.cache(), None, None);
    world.server.replicate(empty).unwrap();
}

/// The snapshot that the replica takes now, or the reason why there is none.
fn saved(world: &mut World) -> Result<Vec<u8>, String> {
    let (sender, state) = channel();
    let is_taken = world.server.save_decider(move |decider| {
        let saved = decider.map(|decider| cachewright_snapshot::saved(decider).unwrap());
        sender.send(saved).unwrap();
    });
    assert!(is_taken, "{}: the replica is lost", world.context);
    state.recv().unwrap()
}

/// Under every policy and write mode: requests, write-backs between them, cached pages that cannot
/// be read, devices that fail, volumes that come, grow and go, quotas, other policies, and other
/// cutoffs.
#[test]
fn a_replica_stands_where_its_server_does() {
    let rounds = crashes(640) / 32;
    for (number, policy) in POLICIES.into_iter().enumerate() {
        for (mode_number, mode) in MODES.into_iter().enumerate() {
            let seed = 5000 + 10 * number as u64 + mode_number as u64;
            if !is_chosen(seed) {
                continue;
            }
            let mut rng = Seed(seed).derive("replicas").rng();
            let quotas = match rng.below(2) {
                0 => Quotas::Shared(6),
                _ => Quotas::PerTenant(vec![3; 2]),
            };
            let mut setting = setting(policy, mode, quotas);
            setting.background = any_background(&mut rng);
            let mut world = World::new(setting, Seed(seed));
            world.context = format!("{policy}, {mode:?}, seed {seed}");
            go_on(&mut world, &mut rng, &ALL_OPS);
            replicate(&mut world);
            let mut going = Vec::new();
            // Errors are counted of volumes that are served from the start on.
            let is_spoiled = rng.below(2) == 0;
            for _ in 0..rounds {
                match rng.below(6) {
                    0 if !is_spoiled => any_change(&mut world, &mut rng, &mut going),
                    1 => replace(&mut world, &mut rng),
                    2 if is_spoiled => {
                        let bytes = world.setting.segments * u64::from(world.setting.segment);
                        let files = world.files.0.clone();
                        let pages = rng.below(20);
                        for _ in 0..pages {
                            spoil(&mut world, &mut rng, &files, SUPERBLOCKS, bytes);
                        }
                        world.may_fail = true;
                        fail_backings(&mut world, &mut rng);
                    }
                    3 => {
                        let cutoff = SequentialCutoff { bytes: 8 << 10, streams: 2 };
                        world.server.cut_off(Some(cutoff).filter(|_| rng.below(2) == 0));
                    }
                    _ => go_on(&mut world, &mut rng, &ALL_OPS),
                }
                saved(&mut world).unwrap();
            }
            world.drain();
            saved(&mut world).unwrap();
        }
    }
}

/// A policy that lets blocks leave behind requests, so that some are free at all times.
#[test]
fn what_a_policy_does_behind_a_request_is_a_step() {
    let mut rng = Seed(2).derive("replicas").rng();
    let mut setting = Setting::of("rc-x", MODES[0]);
    (setting.quotas, setting.blocks, setting.segments) = (Quotas::Shared(128), 100, 56);
    let mut world = World::new(setting, Seed(2));
    replicate(&mut world);
    for _ in 0..20 {
        go_on(&mut world, &mut rng, &ALL_OPS);
        saved(&mut world).unwrap();
    }
}

/// Divides two tenants' blocks by their curves, after a time that no test reaches.
fn by_curves(blocks: u32) -> Division {
    let partitioner = cachewright_partition::boxed("hull", &[], 2, Seed(1)).unwrap();
    let needs = cachewright_partition::entry("hull").unwrap().needs;
    let of_cache = CachePolicy { name: "lru", pairs: &[], capacity_blocks: blocks, seed: Seed(2) };
    let signals = SignalNeeds::of(&*partitioner, needs, of_cache, 2).unwrap();
    let constants = vec![TenantConstants::default(); 2];
    let mut control = Control::new(partitioner, constants, blocks);
    control.first();
    Division::new(control, signals, 1 << 60, 12)
}

/// A block whose copy is lost leaves by no request, and is measured as a trim of it.
#[test]
fn what_is_measured_of_lost_blocks_is_a_step() {
    let mut rng = Seed(3).derive("replicas").rng();
    let mut setting = Setting::of("lru", MODES[0]);
    (setting.quotas, setting.blocks, setting.segments) = (Quotas::PerTenant(vec![40; 2]), 100, 56);
    let replicate = |world: &mut World| {
        let cache = world.setting.cache();
        world.server.replicate(LiveDecider::new(cache, Some(by_curves(80)), None)).unwrap();
    };
    let mut world = World::new(setting, Seed(3));
    world.server.divide_by(by_curves(80));
    replicate(&mut world);
    for _ in 0..20 {
        go_on(&mut world, &mut rng, &ALL_OPS);
        let bytes = world.setting.segments * u64::from(world.setting.segment);
        let files = world.files.0.clone();
        for _ in 0..20 {
            spoil(&mut world, &mut rng, &files, SUPERBLOCKS, bytes);
        }
        world.may_fail = true;
        let found = saved(&mut world).unwrap();
        // The next one is made from what the server itself has.
        replicate(&mut world);
        assert!(saved(&mut world).unwrap() == found, "of the same decider");
    }
}

/// A snapshot of the replica continues as one of the server would: the next replica begins from it.
#[test]
fn a_replica_can_begin_again_and_ends_when_asked() {
    let mut rng = Seed(1).derive("replicas").rng();
    let mut world = World::new(Setting::of("s3-fifo", MODES[0]), Seed(1));
    let never = world.server.save_decider(|_| panic!("there is no replica"));
    assert!(!never);
    for _ in 0..3 {
        replicate(&mut world);
        go_on(&mut world, &mut rng, &ALL_OPS);
        let first = saved(&mut world).unwrap();
        replicate(&mut world);
        assert_eq!(saved(&mut world).unwrap(), first, "of the same decider");
    }
    world.server.end_replica();
    assert!(!world.server.has_replica());
    world.drain();
    world.read_all();
}
