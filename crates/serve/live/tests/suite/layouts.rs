//! A device is a channel: a layout says which devices hold which tenant's blocks.

use crate::block_setup::{Laid, formatted, id_of, parts};
use crate::block_world::{Setting, World};
use crate::blocks_model::{ALL_OPS, submit_any};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_live::blocks::{BlockOp, BlockServer, DeviceLayout, RestoreError};
use cachewright_live::log::{open, read_log};
use cachewright_types::{Rng, Seed, TenantId};
use std::collections::BTreeMap;

fn apart(mode: WriteMode) -> Setting {
    let mut setting = Setting::of("lru", mode);
    (setting.devices, setting.segments) = (2, 16);
    (setting.blocks, setting.quotas) = (40, Quotas::PerTenant(vec![24, 30]));
    setting.layout = Laid::Apart(0);
    setting
}

fn overwrite(world: &mut World, rng: &mut Rng, requests: u64) {
    for _ in 0..requests {
        submit_any(world, rng, &ALL_OPS);
        for _ in 0..rng.below(8) {
            world.step();
        }
    }
    world.drain();
}

/// Blocks that the log has, by volume and device.
fn lying(world: &mut World) -> BTreeMap<(u16, usize), usize> {
    let set = open(&mut world.sim, &world.files.0).unwrap();
    let found = read_log(&mut world.sim, &set).unwrap();
    let mut lying = BTreeMap::new();
    for block in &found.blocks {
        let device = set.set.device(set.set.locate(block.place).0);
        let volume = (0..2).find(|volume| id_of(*volume) == block.volume).unwrap();
        *lying.entry((volume, device)).or_default() += 1;
    }
    lying
}

/// What requests append and what the cleaner moves stays on the devices of its tenant.
#[test]
fn content_lies_on_the_devices_of_its_tenant() {
    for (seed, mode) in [(0, WriteMode::WriteBack), (1, WriteMode::WriteThrough)] {
        let mut world = World::new(apart(mode), Seed(seed));
        let mut rng = Seed(seed).derive("apart").rng();
        overwrite(&mut world, &mut rng, 2000);
        let counts = world.server.counts();
        assert!(counts.cleaned > 20 && counts.moved > 20, "{counts:?}");
        let lying = lying(&mut world);
        assert_eq!(lying.keys().copied().collect::<Vec<_>>(), [(0, 0), (1, 1)], "{lying:?}");
        assert!(lying[&(0, 0)] > 12 && lying[&(1, 1)] > 15, "{lying:?}");
        world.read_all();
    }
}

/// A device that is full of one tenant's dirty blocks keeps no other tenant waiting: those of its
/// requests that fit are decided before earlier ones of the first.
#[test]
fn a_tenant_whose_devices_are_short_of_space_holds_no_other_up() {
    let mut world = World::new(apart(WriteMode::WriteBack), Seed(3));
    let mut waited = 0;
    for round in 0..40_u64 {
        for block in 0..40 {
            world.submit(BlockOp::Write, 0, block * 8..block * 8 + 8, false);
        }
        let before = world.unanswered();
        let block = round % 40;
        world.submit(BlockOp::Write, 1, block * 8..block * 8 + 8, false);
        waited += usize::from(world.server.waiting_for_space(TenantId(0)) > 0 && before > 0);
        assert_eq!(world.server.waiting_for_space(TenantId(1)), 0, "round {round}");
        world.drain();
    }
    assert!(waited > 10, "{waited} rounds in which the first tenant waits");
    world.read_all();
}

/// Another layout than before: the cache begins empty, and what only it had is on the volumes.
#[test]
fn a_start_under_another_layout_writes_back_and_begins_empty() {
    let mut rng = Seed(9).rng();
    for (from, to) in [
        (Laid::Striped, Laid::Apart(0)),
        (Laid::Apart(0), Laid::Apart(1)),
        (Laid::Apart(1), Laid::Striped),
    ] {
        let mut setting = apart(WriteMode::WriteBack);
        setting.layout = from;
        let mut world = World::new(setting, Seed(5));
        overwrite(&mut world, &mut rng, 600);
        let dirty = world.server.dirty_blocks();
        world.setting.layout = to;
        world.crash(&mut rng, 2);
        let restored = world.restored;
        if to == Laid::Striped {
            assert!(restored.dropped == 0 && restored.clean + restored.dirty > 40, "{restored:?}");
        } else {
            assert_eq!((restored.clean, restored.dirty), (0, 0), "{restored:?}");
            assert!(dirty > 10 && restored.dropped >= dirty, "{dirty} dirty, {restored:?}");
        }
        world.drain();
        overwrite(&mut world, &mut rng, 600);
        world.crash(&mut rng, 1);
        assert!(world.restored.clean + world.restored.dirty > 40, "{:?}", world.restored);
        world.read_all();
    }
}

#[test]
fn layouts_that_a_set_cannot_follow_are_refused() {
    let setting = apart(WriteMode::WriteBack);
    let refused = |quotas: [u32; 2], layout: DeviceLayout| {
        let setting = Setting { quotas: Quotas::PerTenant(quotas.to_vec()), ..setting.clone() };
        let (mut sim, files) = formatted(&setting, Seed(1));
        let (mut parts, found) = parts(&mut sim, &setting, &files).unwrap();
        parts.layout = layout;
        BlockServer::open(&mut sim, parts, found).err()
    };
    let layout = |devices: &[usize], tenants: &[usize]| DeviceLayout {
        devices: devices.to_vec(),
        tenants: tenants.to_vec(),
    };
    assert_eq!(refused([24, 30], layout(&[0, 1], &[1, 0])), None);
    let too_small = refused([24, 200], layout(&[0, 1], &[0, 1]));
    assert!(matches!(too_small, Some(RestoreError::TooSmall { quota: 200, .. })), "{too_small:?}");
    for (devices, tenants, words) in [
        (&[0, 1, 1][..], &[0, 1][..], "found layout.devices = 3"),
        (&[0, 1], &[0], "found layout.tenants = 1"),
        (&[0, 0], &[0, 1], "found layout.tenants = 1, expected a pool that has devices"),
        (&[0, 7], &[0, 7], "found layout.devices = 2, expected at most as many pools"),
    ] {
        let sentence = refused([24, 30], layout(devices, tenants)).unwrap().to_string();
        assert!(sentence.starts_with(words), "{sentence}");
    }
}
