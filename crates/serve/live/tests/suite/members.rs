//! Volumes that come, grow and go while others are served, and losses of power in between.

use crate::block_world::{Setting, World};
use crate::blocks_crashes::{crashes, is_chosen};
use crate::blocks_model::{ALL_OPS, POLICIES, submit_any};
use cachewright_cache::{Quotas, Shrink, WriteMode};
use cachewright_live::blocks::BlockOp;
use cachewright_policy::Policy;
use cachewright_types::{Rng, Seed, TenantId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Blocks of each tenant, where each has a quota.
const QUOTA: u32 = 2;

impl World {
    /// Some operations are done.
    fn steps(&mut self, operations: u64) {
        for _ in 0..operations {
            self.step();
        }
    }

    /// The quotas of a server with these tenants.
    fn quotas_now(&self) -> Quotas {
        match &self.setting.quotas {
            Quotas::Shared(blocks) => Quotas::Shared(*blocks),
            _ => {
                let quota = |running: &Option<u16>| if running.is_some() { QUOTA } else { 0 };
                Quotas::PerTenant(self.running.iter().map(quota).collect())
            }
        }
    }

    /// The quotas of the next start follow the volumes that are served then.
    fn follow_quotas(&mut self) {
        if let Quotas::PerTenant(quotas) = &mut self.setting.quotas {
            *quotas = vec![QUOTA; self.setting.served.len()];
        }
    }

    fn set_table(&mut self) {
        let table = self.setting.table(&self.server.table());
        let (result, others) = self.server.set_table(&mut self.sim, table, Vec::new());
        result.unwrap();
        others.into_iter().for_each(|done| self.server.on_done(&mut self.sim, done));
    }

    fn divide_now(&mut self) {
        let quotas = self.quotas_now();
        let (shrink, undivided) = (self.setting.shrink, || Ok::<_, ()>(None));
        self.server.divide_otherwise(&mut self.sim, &quotas, shrink, undivided).unwrap();
    }

    /// A volume is served from now on.
    fn add_now(&mut self, volume: u16) {
        self.setting.serve(volume);
        self.follow_quotas();
        self.set_table();
        let name = self.setting.policy;
        let make = |pool: usize, capacity: u32| -> Box<dyn Policy> {
            let seed = Seed(0).derive(&format!("pool/{pool}"));
            cachewright_policy::registry::boxed(name, &[], capacity, seed).unwrap()
        };
        let served = self.setting.volume(volume, &self.files);
        let tenant = self.server.add_volume(served, QUOTA, Arc::new(make)).unwrap();
        assert_eq!(tenant.index(), self.running.len());
        self.running.push(Some(volume));
        self.divide_now();
    }

    /// A volume has a block more from now on, if its device can hold it.
    fn grow_now(&mut self, volume: u16) {
        let max_more = self.setting.backings.1;
        let tenant = self.setting.tenant(volume).unwrap();
        let (_, more) = &mut self.setting.served[usize::from(tenant)];
        *more = (*more + 1).min(max_more);
        self.set_table();
        let (tenant, served) =
            (self.tenant_of(volume).unwrap(), self.setting.volume(volume, &self.files));
        self.server.grow_volume(tenant, served.bytes);
    }

    /// A volume goes; returns its tenant. It is known at the next start until it has gone.
    fn remove_now(&mut self, volume: u16) -> TenantId {
        let tenant = self.tenant_of(volume).unwrap();
        while self.server.requests_of(tenant) > 0 && self.step() {}
        assert_eq!(self.server.requests_of(tenant), 0, "{}: all end", self.context);
        self.running[tenant.index()] = None;
        self.server.remove_volume(tenant);
        tenant
    }
}

/// A server to whose volumes a third one may come, and that may grow.
pub fn setting(policy: &'static str, mode: WriteMode, quotas: Quotas) -> Setting {
    let mut setting = Setting::of(policy, mode);
    (setting.backings, setting.quotas) = ((3, 4), quotas);
    setting.segments = 14;
    setting
}

fn world(policy: &'static str, quotas: Quotas, seed: u64) -> World {
    World::new(setting(policy, WriteMode::WriteBack, quotas), Seed(seed))
}

fn write_all(world: &mut World, volume: u16) {
    for block in 0..world.setting.blocks_of(volume) {
        world.submit(BlockOp::Write, volume, block * 8..block * 8 + 8, false);
    }
    world.drain();
}

#[test]
fn a_volume_comes_grows_and_goes_and_another_server_can_have_it() {
    for quotas in [Quotas::Shared(6), Quotas::PerTenant(vec![QUOTA; 2])] {
        let mut world = world("lru", quotas, 5);
        [0, 1].into_iter().for_each(|volume| write_all(&mut world, volume));
        world.add_now(2);
        write_all(&mut world, 2);
        world.grow_now(2);
        let last = world.setting.blocks_of(2) - 1;
        assert_eq!(last, 10);
        world.submit(BlockOp::Write, 2, last * 8..last * 8 + 8, true);
        world.drain();
        world.read_all();
        world.submit(BlockOp::Write, 2, 0..8, false);
        world.drain();
        assert!(world.server.dirty_blocks() > 0);
        let gone = world.remove_now(2);
        world.divide_now();
        world.drain();
        assert!(world.server.has_gone(gone));
        assert_eq!(world.server.cache().engine().occupancy(gone), 0);
        world.setting.leave(2);
        world.follow_quotas();
        world.write_outside();
        world.add_now(2);
        assert_ne!(world.tenant_of(2), Some(gone), "a tenant's number is not given again");
        world.read_all();
        world.crash(&mut Seed(1).derive("crash").rng(), 0);
        world.drain();
        world.read_all();
    }
}

/// Whatever is free of the log: more than makes it short of room, less than all blocks of a volume
/// need that leave together.
#[test]
fn a_volume_goes_while_nothing_else_asks_for_room_in_the_log() {
    for mode in [WriteMode::WriteBack, WriteMode::WriteAround] {
        for segments in 36..56 {
            let mut setting = Setting::of("lru", mode);
            (setting.quotas, setting.blocks, setting.segments) =
                (Quotas::Shared(200), 100, segments);
            let mut world = World::new(setting, Seed(3));
            world.context = format!("{mode:?}, {segments} segments");
            for volume in [0, 1] {
                write_all(&mut world, volume);
                world.read_all();
            }
            let gone = world.remove_now(1);
            world.drain();
            assert!(world.server.has_gone(gone), "{}", world.context);
        }
    }
}

/// One change of the volumes that are served; those that go are kept in `going`.
pub fn any_change(world: &mut World, rng: &mut Rng, going: &mut Vec<(u16, TenantId)>) {
    let volume = rng.below(3) as u16;
    let running = world.running.iter().flatten().count();
    match world.tenant_of(volume) {
        None if going.iter().any(|(other, _)| *other == volume) => {}
        None => world.add_now(volume),
        Some(_) if running > 1 && rng.below(2) == 0 => {
            let tenant = world.remove_now(volume);
            going.push((volume, tenant));
            world.divide_now();
        }
        Some(_) => world.grow_now(volume),
    }
}

/// Random requests, changes of the volumes, and losses of power between them and in the middle of
/// them. What a volume that has gone holds is what its device holds, also when others write to it.
#[test]
fn volumes_come_and_go_between_losses_of_power() {
    let rounds = crashes(640) / 16;
    let (mut gone, mut outside) = (0, 0);
    for seed in (2000..2016).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("members").rng();
        let quotas = match seed % 2 {
            0 => Quotas::Shared(6),
            _ => Quotas::PerTenant(vec![QUOTA; 2]),
        };
        let policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
        let mut world = world(policy, quotas, seed);
        // From the first change on, and after each start.
        world.setting.shrink = Shrink::ALL[(seed / 2 % 2) as usize];
        let mut away = BTreeSet::from([2]);
        for crash in 0..rounds {
            world.context = format!("{policy}, seed {seed}, crash {crash}");
            let mut going = Vec::new();
            for _ in 0..1 + rng.below(6) {
                for _ in 0..rng.below(20) {
                    submit_any(&mut world, &mut rng, &ALL_OPS);
                    world.steps(rng.below(14));
                }
                any_change(&mut world, &mut rng, &mut going);
                world.steps(rng.below(40));
                let server = &world.server;
                let ended = going.extract_if(.., |(_, tenant)| server.has_gone(*tenant));
                for (volume, _) in ended.collect::<Vec<_>>() {
                    world.setting.leave(volume);
                    world.follow_quotas();
                    gone += 1;
                }
                let served = &world.setting.served;
                away =
                    (0..3).filter(|volume| served.iter().all(|(own, _)| own != volume)).collect();
                if rng.below(3) == 0 && going.is_empty() && !away.is_empty() {
                    world.write_outside();
                    outside += 1;
                }
            }
            world.crash(&mut rng, 0);
            let came_back = world.running.iter().flatten().any(|volume| away.contains(volume));
            assert!(!came_back, "{}: what has gone left nothing behind", world.context);
        }
        world.drain();
        world.read_all();
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || gone > rounds && outside > rounds, "{gone} gone, {outside} outside");
}
