//! Whatever is asked of a drive with a data cache, under whatever axes, modes, policies and
//! changing quotas: each command completes exactly once with parts that add up, every invariant
//! holds after every step, and the same again gives the same.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::ssd::host::Port;
use cachewright_device::{Command, Completion, Device};
use cachewright_policy::Registered;
use cachewright_system::ssd::{CachedParts, CachedSsd, DataCacheParams, DataCached, cached};
use cachewright_testkit::drives::{small, value};
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId, Value};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Ask {
    op: Op,
    offset: u64,
    length: u64,
    tenant: u16,
    pause: u64,
    /// A new division of the cache before it.
    divide: Option<(u32, u32)>,
}

#[derive(Clone, Debug)]
struct Setting {
    pairs: Vec<(&'static str, &'static str)>,
    mode: WriteMode,
    kind: Kind,
    axes: Vec<(&'static str, &'static str)>,
}

/// How three tenants divide the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Shared,
    Apart,
    /// The second on its own, the others together.
    Pools,
    /// Lists whose lengths follow requests.
    Elastic,
}

impl Kind {
    fn quotas(self, one: u32, two: u32) -> Quotas {
        match self {
            Kind::Shared => Quotas::Shared(one + two),
            Kind::Apart => Quotas::PerTenant(vec![one, two / 2, two - two / 2]),
            Kind::Pools => Quotas::Pools { of: vec![0, 1, 0], blocks: vec![one, two] },
            Kind::Elastic => Quotas::PerTenant(vec![0; 3]),
        }
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let op = prop_oneof![
        5 => Just(Op::Read),
        5 => Just(Op::Write),
        1 => Just(Op::Trim),
        1 => Just(Op::Flush),
    ];
    let length = prop_oneof![Just(0_u64), 1..40_000_u64, (1..5_u64).prop_map(|n| n * 4096)];
    let pause = prop_oneof![Just(0_u64), 0..300_000_u64, Just(5_000_000)];
    let divide = proptest::option::weighted(0.05, (0..40_u32, 0..40_u32));
    (op, 0..400_u64, length, 0..3_u16, pause, divide).prop_map(
        |(op, offset, length, tenant, pause, divide)| Ask {
            op,
            offset: offset * 4096,
            length,
            tenant,
            pause,
            divide,
        },
    )
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    proptest::collection::vec(ask(), 1..150)
}

fn setting() -> impl Strategy<Value = Setting> {
    let pick = |key: &'static str, words: &'static [&'static str]| {
        proptest::sample::select(words).prop_map(move |word| (key, word))
    };
    let drive = (
        pick("unwritten", &["zero", "allocate"]),
        pick("fill", &["empty", "analytic"]),
        pick("dram_rate", &["100", "1600"]),
        pick("dram_channels", &["1", "3"]),
    );
    let axes = (
        pick("read_fill", &["true", "false"]),
        pick("write_back", &["eager", "on-eviction", "watermark"]),
        pick("keep_destaged", &["true", "false"]),
        pick("back_pressure", &["auto", "8KiB"]),
        pick("hot_window", &["0ns", "2ms", "1s"]),
        pick("handover", &["paced", "at-once"]),
        pick("shrink_depth", &["1", "3", "100"]),
        pick("write_waits", &["never", "victim"]),
    );
    let kinds = vec![Kind::Shared, Kind::Apart, Kind::Pools, Kind::Elastic];
    let mode = proptest::sample::select(WriteMode::ALL.to_vec());
    let kind = proptest::sample::select(kinds);
    (drive, axes, mode, kind).prop_map(|(drive, axes, mode, kind)| {
        let mut pairs = vec![
            ("channels", "2"),
            ("chips", "1"),
            ("blocks", "24"),
            ("block", "128KiB"),
            ("over_provisioning", "0.4"),
        ];
        pairs.extend([drive.0, drive.1, drive.2, drive.3]);
        let axes = vec![axes.0, axes.1, axes.2, axes.3, axes.4, axes.5, axes.6, axes.7];
        Setting { pairs, mode, kind, axes }
    })
}

fn drive<P: Registered>(setting: &Setting) -> CachedSsd<P> {
    let params = small(&setting.pairs);
    let make = |_: usize, capacity: u32| P::new(capacity, &P::Settings::default(), Seed(5));
    let engine = Engine::new(3, &setting.kind.quotas(16, 8), setting.mode, make);
    let pairs: Vec<(String, Value)> =
        setting.axes.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect();
    let axes = DataCacheParams::checked(&pairs).unwrap();
    let port = |queue_depth, weight| Port { queue_depth, weight };
    let ports = [port(8, 1), port(64, 2), port(16, 1)];
    let parts = CachedParts { params: &params, ports: &ports, engine, axes, seed: Seed(1) };
    let mut drive = cached(parts).unwrap();
    if setting.kind == Kind::Elastic {
        let pairs = [("victim_every".to_owned(), Value::Int(7))];
        let justitia = cachewright_partition::boxed("justitia", &pairs, 3, Seed(1)).unwrap();
        drive.follow(24, justitia.victim_selector().unwrap());
    }
    drive
}

fn run<P: Registered>(setting: &Setting, asks: &[Ask], audit: bool) -> Vec<Completion> {
    let mut ssd = drive::<P>(setting);
    let (mut now, mut done) = (Nanos(0), Vec::new());
    let capacity = ssd.capacity().0;
    let step = |ssd: &mut CachedSsd<P>, due, done: &mut Vec<Completion>| {
        ssd.advance(due, done);
        assert!(!audit || ssd.audit() == Ok(()), "{:?}", ssd.audit());
    };
    for (tag, ask) in asks.iter().enumerate() {
        now.0 += ask.pause;
        while let Some(due) = ssd.next_due().filter(|due| *due <= now) {
            step(&mut ssd, due, &mut done);
        }
        if let Some((first, second)) = ask.divide {
            let quotas = setting.kind.quotas(first, second);
            let kept = ssd.set_quotas(now, &quotas);
            assert_eq!(kept, setting.kind != Kind::Elastic, "no tenant has a quota there");
            if kept {
                assert_eq!(ssd.quota(TenantId(0)), quotas.blocks()[0]);
                assert_eq!(ssd.pages(), u64::from(first + second));
            }
        }
        let offset = ask.offset % (capacity - 40_000);
        let length = if ask.op == Op::Flush { 0 } else { ask.length };
        let (tenant, tag) = (TenantId(ask.tenant), tag as u64);
        let (offset, length) = (Bytes(offset), Bytes(length));
        ssd.submit(now, Command { tag, op: ask.op, offset, length, tenant });
    }
    while let Some(due) = ssd.next_due() {
        step(&mut ssd, due, &mut done);
    }
    assert_eq!((ssd.outstanding(), ssd.audit()), (0, Ok(())));
    done
}

fn check<P: Registered>(setting: &Setting, asks: &[Ask]) -> Result<(), TestCaseError> {
    let done = run::<P>(setting, asks, true);
    let mut tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
    tags.sort_unstable();
    prop_assert_eq!(tags, (0..asks.len() as u64).collect::<Vec<u64>>());
    for done in &done {
        prop_assert_eq!(done.spent.total_ns(), done.finished.0 - done.submitted.0);
    }
    prop_assert_eq!(done, run::<P>(setting, asks, false), "the same again");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn least_recently_used(setting in setting(), asks in asks()) {
        check::<cachewright_policy::lru::Lru>(&setting, &asks)?;
    }

    /// A policy with memories of pages that left, and one that lets some pages not in.
    #[test]
    fn policies_with_ghosts(setting in setting(), asks in asks()) {
        check::<cachewright_policy::arc::Arc>(&setting, &asks)?;
        check::<cachewright_policy::larc::Larc>(&setting, &asks)?;
    }
}
