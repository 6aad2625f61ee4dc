//! Policies that are replaced while requests are under way, and losses of power around that.

use crate::block_world::{Setting, World};
use crate::blocks_crashes::{crashes, go_on, is_chosen};
use crate::blocks_model::{ALL_OPS, MODES, POLICIES};
use cachewright_policy::Policy;
use cachewright_policy::registry::boxed;
use cachewright_types::{Rng, Seed};
use std::sync::Arc;

/// Another policy decides from now on, here and after the next start.
pub fn replace(world: &mut World, rng: &mut Rng) {
    let policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
    let make = |pool: usize, capacity: u32| -> Box<dyn Policy> {
        boxed(policy, &[], capacity, Seed(0).derive(&format!("pool/{pool}"))).unwrap()
    };
    world.server.replace_policies(&mut world.sim, Arc::new(make));
    world.setting.policy = policy;
    let cache = world.server.cache();
    assert_eq!(cache.audit(), Ok(()), "{}: {policy}", world.context);
}

/// What was acknowledged is read, and what was flushed outlives power, whichever policy decides and
/// whenever another one takes its place.
#[test]
fn no_block_is_lost_when_another_policy_takes_over() {
    let rounds = crashes(480) / 16;
    for seed in (3000..3016).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("replaced").rng();
        let policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
        let mut world = World::new(Setting::of(policy, MODES[seed as usize % 4]), Seed(seed));
        for crash in 0..rounds {
            for _ in 0..1 + rng.below(4) {
                world.context = format!("{policy}, seed {seed}, crash {crash}");
                go_on(&mut world, &mut rng, &ALL_OPS);
                replace(&mut world, &mut rng);
            }
            if rng.below(3) == 0 {
                go_on(&mut world, &mut rng, &ALL_OPS);
            }
            match rng.below(4) {
                0 => world.kill(&mut rng, 0),
                _ => world.crash(&mut rng, 0),
            }
        }
        world.drain();
        world.read_all();
    }
}

/// Many dirty blocks under a policy that keeps them all, and one that takes none by force.
#[test]
fn blocks_that_the_new_policy_does_not_keep_are_written_back() {
    let mut rng = Seed(9).rng();
    let mut world = World::new(Setting::of("lru", MODES[0]), Seed(9));
    for _ in 0..40 {
        go_on(&mut world, &mut rng, &ALL_OPS);
        let before = world.server.dirty_blocks();
        replace(&mut world, &mut rng);
        assert!(world.server.dirty_blocks() <= before);
        world.drain();
        world.read_all();
    }
}
