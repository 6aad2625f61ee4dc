//! Whatever is asked of whatever drive: each command completes exactly once, in order of time, with
//! parts that add up; every invariant holds after every step; the same again gives the same.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::ssd::host::Port;
use cachewright_device::ssd::{PRESETS, Ssd};
use cachewright_device::{Command, Completion, Device};
use cachewright_testkit::drives;
use cachewright_testkit::drives::small;
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId};
use proptest::prelude::*;

/// A command in units that fit every drive of the test, and the pause before it.
#[derive(Clone, Debug)]
struct Ask {
    op: Op,
    offset: u64,
    length: u64,
    tenant: u16,
    pause: u64,
}

fn ask() -> impl Strategy<Value = Ask> {
    let op = prop_oneof![
        4 => Just(Op::Read),
        5 => Just(Op::Write),
        1 => Just(Op::Trim),
        1 => Just(Op::Flush),
    ];
    let length = prop_oneof![Just(0_u64), 1..70_000_u64, (0..9_u64).prop_map(|n| n * 4096)];
    (op, 0..1000_u64, length, 0..4_u16, prop_oneof![Just(0_u64), 0..200_000_u64])
        .prop_map(|(op, offset, length, tenant, pause)| Ask { op, offset, length, tenant, pause })
}

/// A tiny drive: two planes per channel of 24 blocks of 16 pages, so that cleaning happens.
fn settings() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let pick = |key: &'static str, words: &'static [&'static str]| {
        proptest::sample::select(words).prop_map(move |word| (key, word))
    };
    (
        pick("interface", &["nvme", "sata"]),
        pick("arbitration", &["arrival", "round-robin", "weighted"]),
        pick("command_slots", &["1", "3", "65536"]),
        pick("command_time", &["0ns", "700ns"]),
        pick("mapping", &["ideal", "cached"]),
        pick("unwritten", &["zero", "allocate"]),
        pick("channel_groups", &["all", "each"]),
        pick("suspend", &["none", "both"]),
        pick("fill", &["empty", "analytic"]),
        pick("die_interleave", &["true", "false"]),
    )
        .prop_map(|all| {
            let mut pairs = vec![
                ("channels", "2"),
                ("chips", "1"),
                ("dies", "2"),
                ("blocks", "24"),
                ("block", "128KiB"),
                ("over_provisioning", "0.4"),
                ("map_cache", "256B"),
            ];
            pairs.extend([all.0, all.1, all.2, all.3, all.4, all.5, all.6, all.7, all.8, all.9]);
            pairs
        })
}

/// How a drive is brought to a time, and whether it is checked on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Steps {
    /// From one time at which something happens to the next.
    Each { audit: bool },
    /// From one answer to the next.
    Answers,
}

impl Steps {
    /// Lets what is due next happen, by `until`.
    fn take(self, ssd: &mut Ssd, until: Nanos, done: &mut Vec<Completion>) {
        let (before, due) = (done.len(), ssd.next_due().unwrap());
        match self {
            Steps::Each { .. } => ssd.advance(due, done),
            Steps::Answers => {
                let now = ssd.advance_to_answer(until, done);
                assert!(due <= now && now <= until);
                assert!(done[before..].iter().all(|done| done.finished == now));
                assert!(done.len() > before || ssd.next_due().is_none_or(|due| due > until));
            }
        }
        if self != (Steps::Each { audit: false }) {
            assert_eq!(ssd.audit(), Ok(()));
        }
    }
}

fn run(pairs: &[(&str, &str)], ports: &[Port], asks: &[Ask], steps: Steps) -> Vec<Completion> {
    let mut ssd = Ssd::new(&small(pairs), ports, Seed(3)).unwrap();
    let capacity = ssd.capacity().0;
    let (mut now, mut done) = (Nanos(0), Vec::new());
    for (tag, ask) in asks.iter().enumerate() {
        now.0 += ask.pause;
        while ssd.next_due().is_some_and(|due| due <= now) {
            steps.take(&mut ssd, now, &mut done);
        }
        let offset = ask.offset * (capacity / 1000);
        let length = if ask.op == Op::Flush { 0 } else { ask.length.min(capacity - offset) };
        let (offset, length) = (Bytes(offset), Bytes(length));
        let tenant = TenantId(ask.tenant);
        ssd.submit(now, Command { tag: tag as u64, op: ask.op, offset, length, tenant });
        assert_eq!(ssd.audit(), Ok(()));
    }
    while ssd.next_due().is_some() {
        steps.take(&mut ssd, Nanos(u64::MAX), &mut done);
    }
    assert_eq!((ssd.outstanding(), ssd.audit()), (0, Ok(())));
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn each_command_completes_once_and_its_parts_add_up(
        pairs in settings(),
        asks in proptest::collection::vec(ask(), 1..120),
        depth in 1..9_u32,
    ) {
        let ports = [(depth, 1), (64, 3)].map(|(queue_depth, weight)| Port { queue_depth, weight });
        let done = run(&pairs, &ports, &asks, Steps::Each { audit: true });
        let mut tags: Vec<u64> = done.iter().map(|done| done.tag).collect();
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..asks.len() as u64).collect::<Vec<u64>>());
        for pair in done.windows(2) {
            prop_assert!(pair[0].finished <= pair[1].finished, "in the order of time");
        }
        for done in &done {
            prop_assert_eq!(done.spent.total_ns(), done.finished.0 - done.submitted.0);
        }
        for steps in [Steps::Each { audit: false }, Steps::Answers] {
            prop_assert_eq!(&done, &run(&pairs, &ports, &asks, steps), "the same again");
        }
    }
}

/// A drive of any preset, cut down to a few blocks, serves what it is asked.
#[test]
fn every_preset_works() {
    for preset in &PRESETS {
        println!("{}", preset.name);
        let few = [("blocks", "64"), ("capacity", "auto"), ("over_provisioning", "0.3")];
        let pairs = few.map(|(key, text)| (key.to_owned(), drives::value(text)));
        let params = preset.params(&pairs).unwrap();
        let mut ssd = Ssd::new(&params, &[], Seed(1)).unwrap();
        let flow = drives::Flow::uniform(4096, 0.5, 16, 2_000, ssd.capacity().0);
        let times = drives::run(&mut ssd, &[flow], 5);
        assert_eq!(ssd.audit(), Ok(()), "{}", preset.name);
        assert!(drives::Times::mean(&times[0].all) > 1_000.0, "{}", preset.name);
    }
}
