//! A server that loses power, or is killed, at any point keeps its contract: each block reads its
//! last durable value or a later one, and goes on reading it; a kill loses no write that was
//! answered; volumes that nothing bypasses hold a prefix of what was acknowledged.

use crate::block_setup::Laid;
use crate::block_world::{Setting, World};
use crate::blocks_model::{ALL_OPS, MODES, POLICIES, submit_any, submit_to};
use crate::cleaning::{any_cleaning, segments};
use cachewright_cache::{Quotas, Shrink, WriteMode};
use cachewright_live::blocks::{BackgroundSettings, BlockOp};
use cachewright_types::{Rng, Seed, TenantId};

/// Random crashes of each test: more with `CACHEWRIGHT_CRASHES`.
pub fn crashes(usual: u64) -> u64 {
    std::env::var("CACHEWRIGHT_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Whether the world of a seed is to be run: all, or the one that `CACHEWRIGHT_SEED` names.
pub fn is_chosen(seed: u64) -> bool {
    std::env::var("CACHEWRIGHT_SEED").map_or(true, |text| text.parse() == Ok(seed))
}

/// Requests until somewhere in the middle of things.
pub fn go_on(world: &mut World, rng: &mut Rng, ops: &[BlockOp]) {
    for _ in 0..rng.below(60) {
        submit_any(world, rng, ops);
        for _ in 0..rng.below(14) {
            world.step();
        }
    }
    for _ in 0..rng.below(4) * rng.below(30) {
        world.step();
    }
}

fn crash_often(setting: Setting, seed: u64, crashes: u64) -> u64 {
    let mut rng = Seed(seed).derive("crashes").rng();
    let name = format!("{setting:?}, seed {seed}");
    let mut world = World::new(setting, Seed(seed));
    let mut cleaned = 0;
    for crash in 0..crashes {
        world.context = format!("{name}, crash {crash}");
        go_on(&mut world, &mut rng, &ALL_OPS);
        cleaned += world.server.counts().cleaned;
        end(&mut world, &mut rng);
    }
    world.drain();
    world.read_all();
    cleaned
}

/// The server is killed or loses power, in its next start, too.
pub fn end(world: &mut World, rng: &mut Rng) {
    let cut_short = rng.below(3);
    match rng.below(2) {
        0 => world.kill(rng, cut_short),
        _ => world.crash(rng, cut_short),
    }
}

#[test]
fn each_block_reads_its_last_durable_value_or_a_later_one() {
    let rounds = crashes(1280) / 128;
    let mut cleaned = 0;
    for (index, policy) in POLICIES.into_iter().enumerate() {
        for (other, mode) in MODES.into_iter().enumerate() {
            let seed = (index * 16 + other) as u64;
            if !is_chosen(seed) {
                continue;
            }
            let mut setting = Setting::of(policy, mode);
            setting.short = [0, 7, 1, 4, 0][(seed % 5) as usize];
            if seed % 2 == 1 {
                setting.quotas = Quotas::PerTenant(vec![4, 3]);
                setting.divided_ns = 400_000 * (seed % 4 / 2);
            }
            if !seed.is_multiple_of(3) {
                setting.cleaning = any_cleaning(&mut Seed(seed).derive("cleaning").rng());
                setting.segments = segments(&setting.cleaning, 4);
            }
            if seed.is_multiple_of(2) {
                setting.background = any_background(&mut Seed(seed).derive("background").rng());
            }
            setting.memory_blocks = seed % 4;
            if seed % 3 == 1 {
                setting.devices = 2;
                match seed % 4 {
                    0 | 1 => setting.segments = setting.segments.div_ceil(2),
                    shift => setting.layout = Laid::Apart(shift as u16),
                }
            }
            if setting.layout == Laid::Striped && seed % 8 > 3 {
                setting.shrink = Shrink::AsNeeded;
            }
            cleaned += crash_often(setting, seed, 4 * rounds);
        }
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || cleaned > 30 * rounds, "segments are cleaned meanwhile: {cleaned}");
}

/// Write-backs ahead of need, with or without bounds.
pub fn any_background(rng: &mut Rng) -> BackgroundSettings {
    let bytes_per_s = (rng.below(2) == 0).then(|| 1 << (10 + rng.below(20)));
    BackgroundSettings { dirty_high: 0.4, dirty_low: 0.1, bytes_per_s, latency_ns: None }
}

/// The policy, the write mode, the quotas and the schemes of the next start.
fn any_setting(world: &mut World, rng: &mut Rng) {
    let setting = &mut world.setting;
    let cleaning = any_cleaning(rng);
    if segments(&cleaning, 4) <= setting.segments * setting.devices as u64 {
        setting.cleaning = cleaning;
    }
    setting.layout = match rng.below(3) as u16 {
        // Each device holds what is cached of its volumes, beside the segments that are needed.
        shift @ 0..2 if segments(&setting.cleaning, 2) <= setting.segments => Laid::Apart(shift),
        _ => Laid::Striped,
    };
    any_volumes(world, rng);
    world.setting.background = any_background(rng);
    world.setting.memory_blocks = rng.below(4);
    world.setting.policy = POLICIES[rng.below(POLICIES.len() as u64) as usize];
    world.setting.mode = MODES[rng.below(MODES.len() as u64) as usize];
    let mut blocks = |max: u64| 1 + rng.below(max) as u32;
    (world.setting.divided_ns, world.setting.shrink) = (0, Shrink::AtOnce);
    world.setting.quotas = match blocks(2) {
        1 => Quotas::Shared(blocks(6)),
        _ => {
            world.setting.divided_ns = 300_000;
            if world.setting.layout == Laid::Striped && blocks(2) == 2 {
                world.setting.shrink = Shrink::AsNeeded;
            }
            let tenants = world.setting.served.len();
            Quotas::PerTenant((0..tenants).map(|_| blocks(7 / tenants as u64)).collect())
        }
    };
}

/// The volumes of the next start: some leave, come back, are added, grow, or change their places.
fn any_volumes(world: &mut World, rng: &mut Rng) {
    let setting = &mut world.setting;
    let (volumes, max_more) = setting.backings;
    let volume = rng.below(volumes.into()) as u16;
    match setting.tenant(volume) {
        None => setting.serve(volume),
        Some(_) if setting.served.len() > 1 && rng.below(2) == 0 => setting.leave(volume),
        Some(tenant) => {
            let (_, more) = &mut setting.served[usize::from(tenant)];
            *more = (*more + rng.below(2)).min(max_more);
            setting.served.swap(0, usize::from(tenant));
        }
    }
}

/// Clean stops, kills, losses of power, and other settings after some of them: a smaller cache
/// drops what it found, another write mode writes it back, a policy may refuse it. Volumes leave
/// and come back, and what is not served is written to by others.
#[test]
fn no_change_of_settings_between_two_starts_brings_older_content_back() {
    let rounds = crashes(640) / 16;
    let (mut dropped, mut written_back) = (0, 0);
    let (mut away, mut apart) = (0, 0);
    for seed in (1000..1016).filter(|seed| is_chosen(*seed)) {
        let mut rng = Seed(seed).derive("settings").rng();
        let mut setting = Setting::of("lru", WriteMode::WriteBack);
        if !seed.is_multiple_of(3) {
            (setting.devices, setting.segments) = (1 + seed as usize % 3, 12);
        }
        setting.backings = (3, 4);
        setting.short = seed % 3 * 3;
        let mut world = World::new(setting, Seed(seed));
        for crash in 0..rounds {
            world.context = format!("{:?}, seed {seed}, crash {crash}", world.setting);
            go_on(&mut world, &mut rng, &ALL_OPS);
            if rng.below(4) == 0 {
                world.drain();
            }
            if rng.below(2) == 0 {
                any_setting(&mut world, &mut rng);
            }
            end(&mut world, &mut rng);
            dropped += world.restored.dropped;
            written_back += world.restored.written_back;
            away += 3 - world.setting.served.len() as u64;
            apart += u64::from(world.setting.layout != Laid::Striped);
            if rng.below(2) == 0 {
                world.write_outside();
            }
            if world.setting.short > 0 {
                world.write_behind();
            }
        }
        world.drain();
        world.read_all();
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || written_back > rounds, "{written_back} written back, {dropped} dropped");
    let found = format!("{away} starts without a volume, {apart} with devices of their own");
    assert!(chosen || away > 4 * rounds && apart > rounds, "{found}");
}

#[test]
fn what_is_left_of_a_volume_is_a_prefix_of_what_was_acknowledged() {
    let ops = [BlockOp::Read, BlockOp::Write, BlockOp::Write, BlockOp::Write, BlockOp::Flush];
    let rounds = crashes(960) / 32;
    for (seed, policy) in ["lru", "fifo", "s3-fifo", "arc"].into_iter().enumerate() {
        for seed in [seed as u64, seed as u64 + 100].into_iter().filter(|seed| is_chosen(*seed)) {
            let mut rng = Seed(seed).derive("prefix").rng();
            let setting = Setting::of(policy, WriteMode::WriteBack);
            let mut world = World::new(Setting { short: seed % 4, ..setting }, Seed(seed));
            for crash in 0..4 * rounds {
                world.context = format!("{policy}, seed {seed}, crash {crash}");
                go_on(&mut world, &mut rng, &ops);
                match rng.below(2) {
                    0 => world.kill(&mut rng, 1),
                    _ => world.crash_checking_prefix(&mut rng),
                }
            }
        }
    }
}

/// Segments that are large enough for room of each tenant's own in the log: a tenant that has used
/// its room waits, and requests of the other one are decided before its.
#[test]
fn tenants_with_room_of_their_own_in_the_log_keep_the_contract() {
    let (rounds, mut passed) = (crashes(64) / 8, 0);
    for seed in (0..8).filter(|seed| is_chosen(*seed)) {
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let mut setting = Setting::of(policy, WriteMode::WriteBack);
        (setting.segment, setting.segments, setting.blocks) = (256 << 10, 12, 400);
        setting.quotas = match seed % 2 {
            0 => Quotas::Shared(100),
            _ => Quotas::PerTenant(vec![60, 40]),
        };
        let mut rng = Seed(seed).derive("own room").rng();
        let name = format!("{setting:?}, seed {seed}");
        let mut world = World::new(setting, Seed(seed));
        for round in 0..rounds {
            world.context = format!("{name}, round {round}");
            for _ in 0..rng.below(150) {
                let volume = rng.below(2) as u16;
                let waiting =
                    |world: &World, tenant: u16| world.server.waiting_for_space(TenantId(tenant));
                let before = [volume, 1 - volume].map(|tenant| waiting(&world, tenant));
                let op = ALL_OPS[rng.below(ALL_OPS.len() as u64) as usize];
                submit_to(&mut world, &mut rng, op, volume);
                world.server.advance(&mut world.sim);
                let after = [volume, 1 - volume].map(|tenant| waiting(&world, tenant));
                // It was decided, and what the other one had asked for before waits still.
                passed += u64::from(before[0] == 0 && before[1] > 0 && before == after);
                for _ in 0..rng.below(6) {
                    world.step();
                }
            }
            end(&mut world, &mut rng);
        }
        world.drain();
        world.read_all();
    }
    let chosen = std::env::var("CACHEWRIGHT_SEED").is_ok();
    assert!(chosen || passed > 2 * rounds, "requests pass those of the other tenant: {passed}");
}
