//! The preset `sata-850pro` behaves like the product: rates of its data sheet while it is new, and
//! published steady states when it is full. All runs are simulated, so they come out the same
//! everywhere. Sources are those of the preset.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::ssd::{Ssd, preset};
use cachewright_device::{Command, Device};
use cachewright_testkit::drives::{Flow, Times, run};
use cachewright_types::Value;
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId};

/// Six of the 48 dies with their share of capacity and memory, full of data.
const PART: [(&str, &str); 5] = [
    ("channels", "2"),
    ("chips", "3"),
    ("capacity", "64013773824B"),
    ("write_buffer", "2MiB"),
    ("occupancy", "1.0"),
];
/// The span of the data sheet's random rates.
const SPAN: u64 = 8 << 30;

fn drive(over: &[(&str, &str)]) -> Ssd {
    let pairs: Vec<_> =
        over.iter().map(|(key, text)| ((*key).to_owned(), Value::read(text))).collect();
    let params = preset("sata-850pro").unwrap().params(&pairs).unwrap();
    Ssd::new(&params, &[], Seed(1)).unwrap()
}

/// Requests per second of one flow.
fn rate(drive: &mut Ssd, flow: Flow) -> f64 {
    let times = run(drive, &[flow], 5);
    times[0].all.len() as f64 / (times[0].end as f64 / 1e9)
}

fn assert_within(found: f64, rated: f64, percent: f64) {
    let off = 100.0 * (found / rated - 1.0);
    assert!(off.abs() <= percent, "found {found:.0}, rated {rated:.0}: {off:+.1} %");
}

#[test]
fn random_reads_reach_their_rated_rates() {
    for (depth, rated) in [(1, 10_000.0), (32, 100_000.0)] {
        let mut drive = drive(&[("occupancy", "1.0")]);
        let bytes = drive.capacity().0 / 16_384 * 16_384;
        let found = rate(&mut drive, Flow::uniform(4096, 1.0, depth, 20_000, bytes));
        assert_within(found, rated, 5.0);
    }
}

#[test]
fn random_writes_of_a_new_drive_reach_their_rated_rates() {
    for (depth, rated) in [(1, 36_000.0), (32, 90_000.0)] {
        let mut drive = drive(&[("fill", "empty")]);
        let found = rate(&mut drive, Flow::uniform(4096, 0.0, depth, 40_000, SPAN));
        assert_within(found, rated, 5.0);
    }
}

#[test]
fn streams_reach_their_rated_bandwidths() {
    for (reads, rated) in [(1.0, 550.0), (0.0, 520.0)] {
        let fill = if reads > 0.0 { "analytic" } else { "empty" };
        let mut drive = drive(&[("fill", fill)]);
        let mut flow = Flow::uniform(1 << 17, reads, 32, 8_000, 64 << 30);
        flow.streaming = true;
        let found = rate(&mut drive, flow) * f64::from(1 << 17) / 1e6;
        assert_within(found, rated, 7.0);
    }
}

/// The second half of a run, when the blocks kept free at the start are used up.
#[test]
fn random_writes_of_a_full_drive_settle_at_published_rates() {
    let end_ns = |count: u64| {
        let mut drive = drive(&PART);
        let bytes = drive.capacity().0 / 16_384 * 16_384;
        let times = run(&mut drive, &[Flow::uniform(4096, 0.0, 4, count, bytes)], 5);
        times[0].end
    };
    let (half, whole) = (30_000_u64, 60_000_u64);
    let seconds = (end_ns(whole) - end_ns(half)) as f64 / 1e9;
    let found = 8.0 * (whole - half) as f64 / seconds;
    assert!((5_000.0..=10_000.0).contains(&found), "found {found:.0} requests per second");
}

/// The 99th percentile of response under a request of 8 KiB every 4 ms (2,000 per second for the
/// whole drive), half of them writes, and the blocks cleaned meanwhile.
fn paced(over: &[(&str, &str)]) -> (Nanos, u64) {
    let mut drive = drive(&[PART.as_slice(), over].concat());
    let pages = drive.capacity().0 / 8192;
    let mut rng = Seed(9).rng();
    let mut done = Vec::new();
    for tag in 0..40_000 {
        let now = Nanos(tag * 4_000_000);
        while let Some(due) = drive.next_due().filter(|due| *due <= now) {
            drive.advance(due, &mut done);
        }
        let op = if rng.unit() < 0.5 { Op::Read } else { Op::Write };
        let (offset, length) = (Bytes(rng.below(pages) * 8192), Bytes(8192));
        drive.submit(now, Command { tag, op, offset, length, tenant: TenantId(0) });
    }
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut done);
    }
    let times: Vec<u64> = done.iter().map(|one| one.finished.0 - one.submitted.0).collect();
    let cleaned = drive.inside().stats(Nanos(160_000_000_000)).collections;
    (Nanos(Times::quantile(&times, 0.99)), cleaned)
}

/// A drive that cleans early and before the host lets a request wait for a whole block.
#[test]
fn a_light_load_does_not_wait_for_blocks_to_be_cleaned() {
    let (p99, cleaned) = paced(&[]);
    assert!(cleaned > 10 && p99 < Nanos(2_000_000), "p99 {p99}, {cleaned} blocks cleaned");
    let early = [
        ("clean_below", "0.05"),
        ("clean_hard_below", "0.005"),
        ("preemptible_cleaning", "false"),
        ("write_buffer", "0B"),
    ];
    let (p99, cleaned) = paced(&early);
    assert!(cleaned > 10 && p99 > Nanos(100_000_000), "p99 {p99}, {cleaned} blocks cleaned");
}
