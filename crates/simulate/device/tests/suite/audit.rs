//! Random commands on every device but SSDs (see `ssd_properties`): each completes exactly once, in
//! order of time, with its time accounted for, the same on every run, and the device's own audit
//! passes throughout.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::{Completion, Device};
use cachewright_types::{Nanos, Op};
use common::{command, device};
use proptest::prelude::*;

/// One step: wait, then submit.
#[derive(Clone, Debug)]
struct Step {
    pause_ns: u64,
    op: Op,
    near: bool,
    block: u64,
    blocks: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let pause = prop_oneof![Just(0), 0..2_000_000_u64, 0..60_000_000_u64];
    let op = prop_oneof![6 => Just(Op::Read), 3 => Just(Op::Write), 1 => Just(Op::Flush),
        1 => Just(Op::Trim)];
    (pause, op, any::<bool>(), any::<u64>(), 1..600_u64)
        .prop_map(|(pause_ns, op, near, block, blocks)| Step { pause_ns, op, near, block, blocks })
}

fn drive(device: &mut dyn Device, steps: &[Step]) -> Vec<Completion> {
    let blocks = device.capacity().0 / 4096;
    let (mut done, mut now) = (Vec::new(), 0);
    for (tag, step) in steps.iter().enumerate() {
        now += step.pause_ns;
        device.advance(Nanos(now), &mut done);
        let range = if step.near { 300 } else { blocks };
        let first = step.block % range.min(blocks);
        let length = if step.op == Op::Flush { 0 } else { step.blocks.min(blocks - first) * 4096 };
        device.submit(Nanos(now), command(tag as u64, step.op, first * 4096, length));
        assert_eq!(device.outstanding(), tag + 1 - done.len());
        assert_eq!(device.audit(), Ok(()));
    }
    while let Some(due) = device.next_due() {
        assert!(due >= Nanos(now), "an event in the past");
        now = due.0;
        device.advance(due, &mut done);
        assert_eq!(device.audit(), Ok(()));
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_command_completes_exactly_once(
        steps in prop::collection::vec(step(), 1..120),
        schedule in prop::sample::select(vec!["fifo", "sstf", "scan", "satf"]),
        segments in prop::sample::select(vec!["0", "1", "3", "16"]),
    ) {
        for name in ["hdd-7200-2tb", "hdd-10045-9gb", "ram", "fixed-latency", "null"] {
            let pairs = [("schedule", schedule), ("segments", segments)];
            let pairs = if name.starts_with("hdd") { &pairs[..] } else { &[] };
            let done = drive(device(name, pairs).as_mut(), &steps);
            let again = drive(device(name, pairs).as_mut(), &steps);
            prop_assert_eq!(&done, &again);
            prop_assert!(done.is_sorted_by_key(|one| one.finished));
            for one in &done {
                prop_assert_eq!(one.spent.total_ns(), one.finished.0 - one.submitted.0);
            }
            let mut tags: Vec<u64> = done.iter().map(|one| one.tag).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..steps.len() as u64).collect::<Vec<_>>());
        }
    }
}
