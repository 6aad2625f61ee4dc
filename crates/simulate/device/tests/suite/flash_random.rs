//! Random workloads on random small devices: everything completes once, and the audit finds nothing
//! wrong at any time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashParams, InitialFill, MapCache, PageOp, PlaneOrder, Transaction,
    Unwritten,
};
use cachewright_types::{Nanos, Rng, Seed, TenantId};
use proptest::prelude::*;
use std::collections::HashMap;

/// A device of some random shape with every switch in a random position.
fn device(rng: &mut Rng) -> FlashParams {
    let mut params = FlashParams::small();
    let coin = |rng: &mut Rng| rng.below(2) == 1;
    let shape = &mut params.shape;
    shape.channels = 1 + rng.below(3) as u32;
    shape.chips_per_channel = 1 + rng.below(3) as u32;
    shape.dies_per_chip = 1 + rng.below(2) as u32;
    shape.planes_per_die = 1 + rng.below(4) as u32;
    shape.blocks_per_plane = 24 + rng.below(30) as u32;
    shape.pages_per_block = 4 + rng.below(12) as u32;
    shape.page_bytes = 4096;
    let schedule = &mut params.schedule;
    schedule.die_interleave = coin(rng);
    schedule.multi_plane = coin(rng);
    schedule.suspend_program = coin(rng);
    schedule.suspend_erase = coin(rng);
    schedule.max_suspends = 1 + rng.below(4) as u32;
    schedule.copy_back = coin(rng);
    schedule.gc_preemptible = coin(rng);
    let orders = ["cwdp", "pdwc", "dpcw", "wcpd"];
    params.layout.order = PlaneOrder::parse(orders[rng.below(4) as usize]).unwrap();
    params.layout.superblock = coin(rng);
    if coin(rng) && params.shape.channels > 1 {
        params.layout.groups = vec![vec![0], (1..params.shape.channels).collect()];
    }
    params.collect.over_provisioning = 0.4 + 0.2 * rng.unit();
    params.collect.soft_threshold = 0.12;
    params.collect.hard_threshold = 0.06;
    params.collect.separation =
        ["none", "2r", "sepbit", "by-tenant"][rng.below(4) as usize].to_owned();
    params.collect.reclaim = ["greedy", "cost-benefit"][rng.below(2) as usize].to_owned();
    params.collect.static_wear_spread = if coin(rng) { Some(3) } else { None };
    params.unwritten = if coin(rng) { Unwritten::Zero } else { Unwritten::Allocate };
    params.fill = match rng.below(3) {
        0 => InitialFill::Empty,
        1 => InitialFill::Analytic { occupancy: rng.unit() },
        _ => InitialFill::Replay { occupancy: rng.unit(), overwrites: rng.unit() },
    };
    if coin(rng) {
        let tenants = 1 + rng.below(2) as u32;
        let (entry_bytes, stored_bytes) = (8, 8);
        let (bytes, read_bytes) = (8 * 40, 512);
        params.map = MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes };
    }
    params
}

fn transaction(rng: &mut Rng, backend: &Backend, tag: u64) -> Transaction {
    let group = rng.below(u64::from(backend.groups())) as u16;
    let op = match rng.below(20) {
        0 => PageOp::Trim,
        1..=9 => PageOp::Read,
        _ => PageOp::Write,
    };
    // Half of the accesses go to few pages, so that they meet.
    let pages = u64::from(backend.logical_pages(group));
    let reach = if rng.below(2) == 0 { pages } else { pages.min(12) };
    let page = rng.below(reach) as u32;
    let sectors = [0xFF, 0x0F, 0xF0, 0x18][rng.below(4) as usize];
    let tenant = TenantId(rng.below(2) as u16);
    Transaction { tag, tenant, group, op, page, sectors }
}

fn check(seed: u64) {
    let mut rng = Seed(seed).rng();
    let params = device(&mut rng);
    let mut backend = match Backend::new(&params, Seed(seed)) {
        Ok(backend) => backend,
        Err(error) => panic!("{error}: {params:?}"),
    };
    backend.audit().unwrap();
    if params.unwritten == Unwritten::Zero {
        backend.watch_contents();
    }
    let depth = 1 + rng.below(24) as usize;
    let total = 1500;
    let (mut open, mut tag, mut now) = (HashMap::new(), 0_u64, 0_u64);
    let mut done: Vec<DoneTransaction> = Vec::new();
    let mut busy = 0;
    while tag < total || !open.is_empty() {
        while tag < total && open.len() < depth {
            let batch: Vec<Transaction> = (0..1 + rng.below(4))
                .map(|index| transaction(&mut rng, &backend, tag + index))
                .collect();
            batch.iter().for_each(|one| assert!(open.insert(one.tag, now).is_none()));
            tag += batch.len() as u64;
            backend.submit(Nanos(now), &batch);
        }
        let next = backend.next_due();
        let due = next.unwrap_or_else(|| panic!("{} never complete: {params:?}", open.len()));
        assert!(due.0 >= now, "an event in the past");
        now = due.0;
        backend.advance(due, &mut done);
        for item in done.drain(..) {
            let since = open.remove(&item.tag).expect("it completes once");
            assert_eq!(item.finished, due);
            assert_eq!(item.spent.total_ns(), now - since, "the parts add up");
        }
        assert_eq!(backend.outstanding(), open.len());
        busy += 1;
        if busy % 64 == 0 {
            backend.audit().unwrap_or_else(|error| panic!("{error}: {params:?}"));
        }
    }
    while let Some(due) = backend.next_due() {
        backend.advance(due, &mut done);
        now = due.0;
    }
    backend.audit().unwrap_or_else(|error| panic!("at the end: {error}: {params:?}"));
    assert_eq!((backend.fault(), done.len()), (None, 0));
    let stats = backend.stats(Nanos(now));
    let counters = stats.counters;
    assert_eq!(counters.programs.moves, stats.moved_pages, "each page moved is programmed once");
    let erases: u64 = match params.layout.superblock {
        false => stats.collections,
        true => counters.erases,
    };
    assert_eq!(counters.erases, erases);
    assert!(stats.busy.channel_ns.iter().all(|busy| *busy <= now));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn random_devices_under_random_work_keep_every_invariant(seed in any::<u64>()) {
        check(seed);
    }
}

/// The same device and work give the same completions and counters, to the bit.
#[test]
fn a_run_repeats_itself() {
    let run = || {
        let mut rng = Seed(11).rng();
        let params =
            FlashParams { fill: InitialFill::Analytic { occupancy: 0.9 }, ..FlashParams::small() };
        let mut backend = Backend::new(&params, Seed(3)).unwrap();
        let (mut done, mut all) = (Vec::new(), Vec::new());
        for tag in 0..3000_u64 {
            let transaction = transaction(&mut rng, &backend, tag);
            backend.submit(Nanos(tag * 50_000), &[transaction]);
            backend.advance(Nanos(tag * 50_000 + 49_999), &mut done);
            all.append(&mut done);
        }
        (all, backend.stats(Nanos(3000 * 50_000)))
    };
    assert_eq!(run(), run());
}
