//! The reference rows of a drive with a data cache hold: response times within 5 % of MQSim's, to
//! the nanosecond where nothing waits; whatever the axes, a larger LRU never misses more.

#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_testkit::cached_drives::{Row, rows, run};
use cachewright_testkit::{cached_drives, drives};
use cachewright_types::TenantId;

fn hold(ids: &[&str]) {
    let mut held = 0;
    for row in rows().iter().filter(|row| ids.contains(&row.id)) {
        let found = run(row);
        for ((name, reference, tolerance), here) in row.expected.iter().zip(&found.values) {
            let off = (here / reference - 1.0).abs();
            let Row { id, cache_mib, .. } = row;
            assert!(off <= *tolerance, "{id}, {cache_mib} MiB, {name}: {here}, not {reference}");
            held += 1;
        }
    }
    assert!(held > 0, "no row called {ids:?}");
}

#[test]
fn writes_into_the_cache_and_back_pressure() {
    hold(&["B3", "I1"]);
}

#[test]
fn cleaning_behind_a_write_cache() {
    hold(&["B6", "B7"]);
}

#[test]
fn eager_write_back() {
    hold(&["G1", "G2", "G3"]);
}

#[test]
fn write_back_on_eviction() {
    hold(&["G4", "G5"]);
}

#[test]
fn a_cache_shared_or_in_equal_parts() {
    hold(&["H", "H'"]);
}

/// Little's law, the closed forms and the exact times of a write that waits for nothing.
#[test]
fn a_write_into_the_cache_takes_the_closed_form() {
    let all = rows();
    let b3 = all.iter().find(|row| row.id == "B3").unwrap();
    let few = |drive: &[(&'static str, &'static str)], count: u64| {
        let flow = drives::Flow { count, ..b3.flows[0] };
        let expected = vec![("p50", 1.0, 0.0), ("min", 1.0, 0.0)];
        let row = Row { drive: drive.to_vec(), flows: vec![flow], expected, ..b3.clone() };
        run(&row).values
    };
    assert_eq!(few(&[], 1), [21.814, 21.814]);
    assert_eq!(few(&[], 9), [21.822, 21.814]);
    let fast = [("dram_rate", "1600"), ("dram_burst", "8B")];
    assert_eq!(few(&fast, 1), [1.494, 1.494]);
}

#[test]
fn a_larger_lru_never_misses_more() {
    let all = rows();
    let g5: Vec<&Row> = all.iter().filter(|row| row.id == "G5").collect();
    let mut last = 0.0;
    for mib in [1, 4, 16, 64, 256] {
        let flow = drives::Flow { count: 20_000, depth: 1, ..g5[0].flows[0] };
        let row = Row { cache_mib: mib, flows: vec![flow], expected: Vec::new(), ..g5[0].clone() };
        let mut drive = cached_drives::drive(&row);
        drives::run(&mut drive, &row.flows, 7);
        let ratio = drive.inside().engine().counts(TenantId(0)).hit_ratio();
        assert!(ratio >= last, "{mib} MiB: {ratio}, less than {last}");
        last = ratio;
    }
    assert!(last > 0.3, "the cache is of use: {last}");
}

/// Every policy drives the cache of a drive, and what cannot be is refused in words.
#[test]
fn drives_are_built_by_the_names_of_their_policies() {
    use cachewright_cache::{Quotas, WriteMode};
    use cachewright_device::ssd::host::Port;
    use cachewright_system::ssd::{DataCacheParams, DriveDescription, build};
    let params = drives::small(&[]);
    let ports = [Port { queue_depth: 8, weight: 1 }];
    let describe = |params, policy| {
        let (quotas, axes) = (Quotas::Shared(64), DataCacheParams::default());
        let (mode, seed) = (WriteMode::WriteBack, cachewright_types::Seed(1));
        let policy: (&str, &[_]) = (policy, &[]);
        build(&DriveDescription {
            params,
            ports: &ports,
            policy,
            code: None,
            quotas: &quotas,
            mode,
            axes: &axes,
            seed,
        })
    };
    for entry in cachewright_policy::entries() {
        let mut drive = describe(&params, entry.name).unwrap();
        let flow = drives::Flow::uniform(8192, 0.5, 8, 500, 1 << 20);
        drives::run(&mut *drive, &[flow], 3);
        assert_eq!(drive.audit(), Ok(()), "{}", entry.name);
        assert_eq!(drive.counts(TenantId(0)).requests, 500, "{}", entry.name);
    }
    let words = describe(&params, "lruu").err().unwrap().to_string();
    assert!(words.ends_with("nearest is `lru`"), "{words}");
    let broken = cachewright_device::ssd::SsdParams { channels: 0, ..params.clone() };
    assert!(describe(&broken, "lru").is_err());
}

/// Two tenants, the first with most of the cache: a control loop that divides by weight gives the
/// second its share, and the dirty pages that must leave are in flash when all is done.
#[test]
fn a_control_loop_divides_the_cache_of_a_drive() {
    use cachewright_cache::{Quotas, WriteMode};
    use cachewright_device::ssd::host::Port;
    use cachewright_partition::TenantConstants;
    use cachewright_system::Control;
    use cachewright_system::Signals;
    use cachewright_system::ssd::{DataCacheParams, DriveDescription, build};
    use cachewright_types::{Nanos, Seed, Value};
    let pairs = [("write_back", "on-eviction"), ("handover", "at-once")]
        .map(|(key, word)| (key.to_owned(), Value::Text(word.to_owned())));
    let mut drive = build(&DriveDescription {
        params: &drives::small(&[]),
        ports: &[Port { queue_depth: 8, weight: 1 }; 2],
        policy: ("lru", &[]),
        code: None,
        quotas: &Quotas::PerTenant(vec![56, 8]),
        mode: WriteMode::WriteBack,
        axes: &DataCacheParams::checked(&pairs).unwrap(),
        seed: Seed(1),
    })
    .unwrap();
    let flow = drives::Flow::uniform(8192, 0.0, 4, 500, 1 << 20);
    let end = drives::run(&mut *drive, &[flow], 3)[0].end;
    let (first, second) = (TenantId(0), TenantId(1));
    assert_eq!((drive.occupancy(first), drive.quota(second)), (56, 8));
    let before = drive.cache_stats().destaged_pages;
    let tenant = |weight| TenantConstants { weight, ..TenantConstants::default() };
    let tenants = vec![tenant(1.0), tenant(3.0)];
    let partitioner = cachewright_partition::boxed("static", &[], 2, Seed(1)).unwrap();
    let mut control = Control::new(partitioner, tenants, 64);
    let later = Nanos(end + 1_000_000_000); // its last write-backs are in flash
    drive.control(later, &mut control, &Signals::default());
    assert_eq!((drive.quota(first), drive.quota(second), drive.occupancy(first)), (16, 48, 16));
    assert_eq!(drive.cache_stats().destaged_pages - before, 40, "all of them are dirty");
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut Vec::new());
    }
    assert_eq!(drive.audit(), Ok(()));
}

/// 56 dirty pages of the first, which is to have 16: eight are on their way to flash at a time,
/// and the second gets their room one by one, as flash has them.
#[test]
fn room_changes_hands_as_flash_takes_pages() {
    use cachewright_cache::{Engine, Quotas, WriteMode};
    use cachewright_device::ssd::host::Port;
    use cachewright_device::{Command, Device};
    use cachewright_policy::{Registered, lru::Lru};
    use cachewright_system::series::QuotaState;
    use cachewright_system::ssd::{CachedParts, DataCacheParams, DataCached, cached};
    use cachewright_types::{Bytes, Nanos, Op, Seed, Value};
    let pairs = [("write_back".to_owned(), Value::Text("on-eviction".to_owned()))];
    let make = |_: usize, capacity| Lru::new(capacity, &Default::default(), Seed(1));
    let mut drive = cached(CachedParts {
        params: &drives::small(&[]),
        ports: &[Port { queue_depth: 64, weight: 1 }; 2],
        engine: Engine::new(2, &Quotas::PerTenant(vec![56, 8]), WriteMode::WriteBack, make),
        axes: DataCacheParams::checked(&pairs).unwrap(),
        seed: Seed(1),
    })
    .unwrap();
    let flow = drives::Flow::uniform(8192, 0.0, 4, 500, 1 << 20);
    let later = Nanos(drives::run(&mut drive, &[flow], 3)[0].end + 1_000_000_000);
    let (first, second) = (TenantId(0), TenantId(1));
    assert_eq!((drive.state(first), drive.state(second)), (QuotaState::Stable, QuotaState::Demand));
    assert!(drive.set_quotas(later, &Quotas::PerTenant(vec![16, 48])));
    assert_eq!((drive.quota(first), drive.occupancy(first)), (16, 48), "eight have left");
    assert_eq!((drive.state(first), drive.state(second)), (QuotaState::Supply, QuotaState::Demand));
    assert_eq!((drive.pages(), drive.cache_stats().given_up_pages), (64, 8));
    // The second asks for all of its room at once.
    for page in 0..48 {
        let (offset, length) = (Bytes((1 << 24) + page * 8192), Bytes(8192));
        let (tag, op) = (page, Op::Write);
        drive.submit(later, Command { tag, op, offset, length, tenant: second });
    }
    let mut grown = Vec::new();
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut Vec::new());
        assert_eq!(drive.audit(), Ok(()));
        let room = drive.inside().engine().quota(second);
        if grown.last() != Some(&room) {
            grown.push(room);
        }
    }
    assert_eq!(grown.first(), Some(&8), "nothing is free before flash has a page");
    assert!(grown.is_sorted() && grown.len() > 20, "page by page, or a few together: {grown:?}");
    assert_eq!((drive.occupancy(first), drive.inside().engine().quota(second)), (16, 48));
    assert_eq!(drive.cache_stats().given_up_pages, 40);
    assert_eq!(drive.state(first), QuotaState::Stable);
    assert!(drive.set_quotas(Nanos(later.0 * 2), &Quotas::PerTenant(vec![40, 24])));
    assert!(!drive.set_quotas(Nanos(later.0 * 2), &Quotas::Shared(64)), "the kind is fixed");
}

/// A cache of four pages and single writes of whole pages, one at a time: four find space, the
/// fifth pushes out a dirty page, which is read from memory before the write's own data come in.
/// The write is done then, or with `write_waits = "victim"` when that page is sent to its die and
/// programmed: 750 us and a transfer later, less the 43 us in which its own data come in meanwhile.
#[test]
fn a_write_that_waits_is_done_when_flash_has_the_page_that_it_pushed_out() {
    use cachewright_cache::{Engine, Quotas, WriteMode};
    use cachewright_device::ssd::host::Port;
    use cachewright_device::{Command, Device};
    use cachewright_policy::{Registered, lru::Lru};
    use cachewright_system::ssd::{CachedParts, DataCacheParams, cached};
    use cachewright_types::{Bytes, Nanos, Op, Seed, Value};
    let took = |waits: &str| -> Vec<u64> {
        let pairs = [("write_back", "on-eviction"), ("write_waits", waits)]
            .map(|(key, word)| (key.to_owned(), Value::Text(word.to_owned())));
        let mut drive = cached(CachedParts {
            params: &drives::small(&[("program_time", "750us"), ("program_time_msb", "750us")]),
            ports: &[Port { queue_depth: 8, weight: 1 }],
            engine: Engine::new(1, &Quotas::Shared(4), WriteMode::WriteBack, |_, capacity| {
                Lru::new(capacity, &Default::default(), Seed(1))
            }),
            axes: DataCacheParams::checked(&pairs).unwrap(),
            seed: Seed(1),
        })
        .unwrap();
        let write = |tag: u64| {
            let (offset, length) = (Bytes(tag * 8192), Bytes(8192));
            let at = Nanos((tag + 1) * 10_000_000);
            drive.submit(at, Command { tag, op: Op::Write, offset, length, tenant: TenantId(0) });
            let mut done = Vec::new();
            while let Some(due) = drive.next_due() {
                drive.advance(due, &mut done);
            }
            assert_eq!((done.len(), drive.audit()), (1, Ok(())));
            done[0].finished.0 - done[0].submitted.0
        };
        (0..6).map(write).collect()
    };
    let (never, victim) = (took("never"), took("victim"));
    assert_eq!(never[..4], victim[..4], "nothing is pushed out");
    for (short, long) in never.iter().zip(&victim).skip(4) {
        let more_us = (long - short) / 1000;
        assert!((725..745).contains(&more_us), "{more_us} us more");
    }
}
