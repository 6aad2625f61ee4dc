//! Random commands on log-structured stores: each completes exactly once, no page is lost or read
//! where it is not, segments are reset as often as they are cleaned, the same on every run.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;
use crate::store_parts;

use cachewright_device::{Command, Completion, Device};
use cachewright_types::{Nanos, Op};
use common::{command, device};
use proptest::prelude::*;
use store_parts::{PAGE, Shape, replay, store};

const LOGICAL: u32 = 96;

/// One command: how long after the one before, what, where in pages and bytes.
#[derive(Clone, Debug)]
struct Step {
    pause_ns: u64,
    op: Op,
    page: u64,
    pages: u64,
    cut: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![Just(0_u64), 0..100_000_u64, 0..3_000_000_u64];
    let op = prop_oneof![6 => Just(Op::Write), 3 => Just(Op::Read), 1 => Just(Op::Trim),
        1 => Just(Op::Flush)];
    let cut = prop_oneof![3 => Just(0_u64), 1 => 0..PAGE];
    (pause, op, 0..u64::from(LOGICAL), 1..20_u64, cut)
        .prop_map(|(pause_ns, op, page, pages, cut)| Step { pause_ns, op, page, pages, cut })
}

fn commands(steps: &[Step]) -> Vec<(u64, Command)> {
    let mut now = 0;
    let command = |(tag, step): (usize, &Step)| {
        now += step.pause_ns;
        let pages = step.pages.min(u64::from(LOGICAL) - step.page);
        let (start, length) = (step.page * PAGE + step.cut / 2, pages * PAGE - step.cut);
        let length = if step.op == Op::Flush { 0 } else { length.max(1) };
        (now, command(tag as u64, step.op, start, length))
    };
    steps.iter().enumerate().map(command).collect()
}

const DEVICES: [(&str, &[(&str, &str)]); 4] = [
    ("null", &[]),
    ("fixed-latency", &[("parallelism", "2")]),
    ("hdd-7200-2tb", &[]),
    (
        "icache-table1",
        &[
            ("channels", "1"),
            ("chips", "1"),
            ("dies", "1"),
            ("blocks", "32"),
            ("block", "64KiB"),
            ("over_provisioning", "0.28"),
            ("occupancy", "0.5"),
        ],
    ),
];

fn answer(
    steps: &[Step],
    which: usize,
    shape: &Shape<'_>,
    pairs: &[(&str, &str)],
) -> Vec<Completion> {
    let (name, parameters) = DEVICES[which];
    let mut store = store(device(name, parameters), shape, pairs).unwrap();
    let done = replay(&mut store, &commands(steps));
    let report = store.report(Nanos(u64::MAX));
    let work = report.store().unwrap();
    let written = work.counts.flash_pages();
    assert_eq!(work.appended_pages, written, "every page written or moved was appended once");
    assert_eq!(work.resets, work.counts.collections);
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_command_completes_once_and_no_page_is_lost(
        steps in prop::collection::vec(step(), 1..150),
        which in 0_usize..DEVICES.len(),
        separation in prop::sample::select(vec!["none", "2r", "sepbit", "dac", "shiro"]),
        reclaim in prop::sample::select(vec!["greedy", "fifo", "cost-benefit"]),
        initial in prop::sample::select(vec!["written", "empty"]),
        depths in prop::sample::select(vec![("1", "1", "0"), ("1", "8", "1"), ("4", "2", "2")]),
        command in prop::sample::select(vec!["4KiB", "16KiB", "1MiB"]),
        reset_time in prop::sample::select(vec!["0ns", "700us"]),
    ) {
        let shape = Shape {
            logical_pages: LOGICAL,
            segment_pages: 8,
            segments: 24,
            page: PAGE,
            separation,
            reclaim,
        };
        let pairs = [
            ("initial", initial), ("append_depth", depths.0), ("move_depth", depths.1),
            ("move_depth_busy", depths.2), ("command", command), ("reset_time", reset_time),
        ];
        let done = answer(&steps, which, &shape, &pairs);
        let mut tags: Vec<u64> = done.iter().map(|one| one.tag).collect();
        prop_assert!(done.is_sorted_by_key(|one| one.finished));
        tags.sort_unstable();
        prop_assert_eq!(tags, (0..steps.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(done, answer(&steps, which, &shape, &pairs));
    }
}
