//! Devices whose times were measured.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::model;
use cachewright_device::served::{MEASURED_SHARES, MeasuredSettings};
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, Value};
use common::{command, saturate};

fn times(key: &str, us: &[u64]) -> (String, Value) {
    let values = us.iter().map(|us| Value::Text(format!("{us}us"))).collect();
    (key.to_owned(), Value::List(values))
}

const READS: [u64; 10] = [40, 44, 46, 50, 56, 60, 70, 90, 300, 1000];

/// Times in service of reads of so many bytes, one by one, sorted.
fn served(pairs: &[(String, Value)], count: u64, op: Op, bytes: u64) -> Vec<u64> {
    let mut device = model("measured-latency").unwrap().build(pairs).unwrap();
    let commands = (0..count).map(|tag| command(tag, op, 0, bytes));
    let done = saturate(device.as_mut(), 1, commands);
    let mut found: Vec<u64> = done.iter().map(|one| one.finished.0 - one.submitted.0).collect();
    found.sort_unstable();
    found
}

#[test]
fn drawn_times_have_the_shares_and_the_mean_that_were_measured() {
    let pairs = [times("read", &READS)];
    let found = served(&pairs, 100_000, Op::Read, 4096);
    for (share, us) in MEASURED_SHARES.into_iter().zip(READS) {
        let at = (share / 100.0 * (found.len() - 1) as f64) as usize;
        // Few commands take the longest times.
        let error = if share >= 99.0 { 0.2 } else { 0.02 };
        let (found, expected) = (found[at] as f64, us as f64 * 1e3);
        assert!((found / expected - 1.0).abs() < error, "{share} of 100: {found}, {expected}");
    }
    let settings = MeasuredSettings::from_pairs(&pairs).unwrap();
    let mean = found.iter().sum::<u64>() as f64 / found.len() as f64;
    assert!((mean / settings.mean_read_ns() - 1.0).abs() < 0.01, "{mean}");
    let above = |time: u64| found.iter().filter(|ns| **ns > time).count() as f64 / 1e5;
    for us in [30, 45, 53, 80, 2000] {
        let share = settings.read_share_above(Nanos(us * 1000));
        assert!((share - above(us * 1000)).abs() < 0.01, "{us} us: {share}");
    }
    assert_eq!(served(&pairs, 1000, Op::Read, 4096), served(&pairs, 1000, Op::Read, 4096));
}

/// By hand: a read of 4 KiB takes 50 us; 64 KiB have 61,440 bytes more, at 100 MB/s 614.4 us.
#[test]
fn one_time_is_that_of_all_and_more_bytes_take_longer() {
    let rate = ("read_mb_per_s".to_owned(), Value::Int(100));
    let pairs = [times("read", &[50]), times("flush", &[700]), rate];
    assert_eq!(served(&pairs, 2, Op::Read, 4096), [50_000, 50_000]);
    assert_eq!(served(&pairs, 1, Op::Read, 65_536), [664_400]);
    assert_eq!(served(&pairs, 1, Op::Flush, 0), [700_000]);
    let settings = MeasuredSettings::from_pairs(&pairs).unwrap();
    let above = [49_999, 50_000].map(|ns| settings.read_share_above(Nanos(ns)));
    assert_eq!((settings.mean_read_ns(), above), (50_000.0, [1.0, 0.0]));
}

#[test]
fn lists_of_another_length_or_order_are_refused() {
    for us in [&[][..], &[1, 2], &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]] {
        let built = model("measured-latency").unwrap().build(&[times("write", us)]);
        let error = built.err().unwrap().to_string();
        let expected =
            "expected one time, or 10 times none of which is shorter than the one before";
        assert!(error.contains("`write`: found") && error.contains(expected), "{error}");
    }
}
