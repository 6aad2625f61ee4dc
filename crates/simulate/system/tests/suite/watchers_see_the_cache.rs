//! A watcher that keeps its own list of cached blocks agrees with the cache, in every write mode,
//! with trims and with quotas that move.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_partition::{Partitioner, TenantConstants, TenantView};
use cachewright_policy::lru::Lru;
use cachewright_policy::{FutureSlice, Registered};
use cachewright_system::Control;
use cachewright_system::recording::{LAST, TRIM, WRITE};
use cachewright_system::{
    CacheObserver, EngineLane, Lane, LaneResult, Recording, Signals, TenantTotals,
};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const BLOCKS: u32 = 40;
const TOTAL: u32 = 20;

#[derive(Default)]
struct Seen {
    cached: BTreeSet<(usize, u32)>,
    reads: u64,
    writes: u64,
    most: usize,
    finished: bool,
}

struct Keeper(Arc<Mutex<Seen>>);

impl CacheObserver for Keeper {
    fn read(&mut self, pool: usize, block: BlockId) {
        let mut seen = self.0.lock().unwrap();
        assert!(seen.cached.contains(&(pool, block.0)));
        seen.reads += 1;
    }

    fn write(&mut self, pool: usize, block: BlockId) {
        let mut seen = self.0.lock().unwrap();
        seen.cached.insert((pool, block.0));
        seen.most = seen.most.max(seen.cached.len());
        seen.writes += 1;
    }

    fn left(&mut self, pool: usize, block: BlockId) {
        assert!(self.0.lock().unwrap().cached.remove(&(pool, block.0)));
    }

    fn finish(&mut self) {
        self.0.lock().unwrap().finished = true;
    }
}

/// Gives the first tenant more, then less.
struct Swing(u32);

cachewright_snapshot::refused!(Swing: "a partitioner of this test");

impl Partitioner for Swing {
    fn divide(&mut self, _: &[TenantView<'_>], total: u32) -> cachewright_partition::CacheDivision {
        self.0 = (self.0 * 5 + 3) % (total - 1);
        cachewright_partition::CacheDivision::PerTenant(vec![self.0 + 1, total - self.0 - 1])
    }

    fn floor_blocks(&self, _: usize, _: u32) -> u32 {
        1
    }
}

/// Two tenants, one block per request: reads, writes and a few trims.
fn recording() -> Recording {
    let mut rng = Seed(3).rng();
    let (mut tenants, mut locals) = (Vec::new(), Vec::new());
    let (mut ids, mut flags) = (Vec::new(), Vec::new());
    for _ in 0..5000 {
        let (tenant, local) = (rng.below(2) as u16, rng.below(u64::from(BLOCKS)) as u32);
        tenants.push(tenant);
        locals.push(local);
        ids.push(u32::from(tenant) * BLOCKS + local);
        let kind = [0, 0, WRITE, WRITE, TRIM][rng.below(5) as usize];
        flags.push(kind | LAST);
    }
    Recording {
        ids: ids.into(),
        locals: locals.into(),
        tenants: tenants.into(),
        flags: flags.into(),
        totals: vec![TenantTotals { distinct_blocks: BLOCKS, ..Default::default() }; 2],
        distinct: 2 * BLOCKS,
        begin_ns: 0,
        ..Recording::default()
    }
}

fn watched(mode: WriteMode, swing: bool) -> (LaneResult, Arc<Mutex<Seen>>) {
    let recording = recording();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let tenants = vec![TenantConstants::default(); 2];
    let mut control = Control::new(Box::new(Swing(7)), tenants, TOTAL);
    let quotas = if swing { control.first() } else { Quotas::Shared(TOTAL) };
    let make = |_, capacity| Lru::new(capacity, &NoSettings {}, Seed(1));
    let lane = EngineLane::new(Engine::new(2, &quotas, mode, make), &recording);
    let mut lane = lane.with_observer(Some(Box::new(Keeper(seen.clone()))));
    if swing {
        lane = lane.with_control(control);
    }
    for start in (0..recording.len()).step_by(500) {
        lane.replay(&recording, start..start + 500, FutureSlice::None);
        lane.end_interval(&Signals::default());
    }
    (lane.finish(), seen)
}

#[test]
fn the_watcher_knows_what_is_cached_and_what_was_written() {
    for mode in WriteMode::ALL.iter().copied() {
        for swing in [false, true] {
            let (result, seen) = watched(mode, swing);
            let seen = seen.lock().unwrap();
            let held: u32 = result.occupancy_blocks.iter().sum();
            assert_eq!(seen.cached.len() as u32, held, "{mode:?} {swing}");
            let sum = |count: fn(&cachewright_types::measure::Counts) -> u64| {
                result.counts.iter().map(count).sum::<u64>()
            };
            let effect = mode.effect();
            let written: u64 = result.counts.iter().map(|c| c.cache_writes(effect)).sum();
            assert_eq!((seen.writes, seen.reads), (written, sum(|c| c.read_hits)), "{mode:?}");
            assert!(written > 100 && sum(|c| c.invalidations) > 0 && seen.finished);
            assert!(seen.most <= TOTAL as usize, "never more blocks than the cache has");
        }
    }
}
