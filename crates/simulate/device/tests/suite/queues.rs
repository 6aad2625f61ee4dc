//! Devices of fixed times against queueing theory, and memory against its bandwidth.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::Device;
use cachewright_types::{Nanos, Op, Seed};
use common::{command, device, saturate};

/// Mean wait of Poisson arrivals at a share of the device's rate.
fn mean_wait_ns(device: &mut dyn Device, load: f64, service_ns: f64, count: u64) -> f64 {
    let mut rng = Seed(11).rng();
    let mut done = Vec::new();
    let mut now = 0.0;
    for tag in 0..count {
        now += -(1.0 - rng.unit()).ln() * service_ns / load;
        device.advance(Nanos(now as u64), &mut done);
        device.submit(Nanos(now as u64), command(tag, Op::Read, 0, 4096));
    }
    device.advance(Nanos(u64::MAX), &mut done);
    assert_eq!(done.len() as u64, count);
    let wait = |one: &cachewright_device::Completion| {
        (one.finished.0 - one.submitted.0) as f64 - service_ns
    };
    done.iter().map(wait).sum::<f64>() / count as f64
}

/// M/D/1: the mean wait is load / (2 (1 - load)) service times.
#[test]
fn one_server_of_fixed_latency_waits_as_theory_says() {
    for (load, error) in [(0.3, 0.01), (0.6, 0.01), (0.8, 0.02)] {
        let pairs = [("parallelism", "1"), ("read", "100us")];
        let mut device = device("fixed-latency", &pairs);
        let found = mean_wait_ns(device.as_mut(), load, 1e5, 1_000_000);
        let theory = 1e5 * load / (2.0 * (1.0 - load));
        assert!((found / theory - 1.0).abs() < error, "load {load}: {found} for {theory}");
    }
}

#[test]
fn servers_in_parallel_share_the_work() {
    let reads = || (0..1000).map(|tag| command(tag, Op::Read, tag * 4096, 4096));
    for (servers, expected_ns) in [("1", 100_000_000), ("4", 25_000_000)] {
        let mut device = device("fixed-latency", &[("parallelism", servers)]);
        let done = saturate(device.as_mut(), 8, reads());
        assert_eq!(done.iter().map(|one| one.finished.0).max(), Some(expected_ns));
    }
}

#[test]
fn memory_is_bound_by_its_channels() {
    for (channels, rate) in [("1", 200.0), ("2", 400.0)] {
        let pairs = [("channels", channels), ("channel_mb_per_s", "200"), ("latency", "0ns")];
        let mut memory = device("ram", &pairs);
        let reads = (0..1000).map(|tag| command(tag, Op::Read, 0, 8192));
        let done = saturate(memory.as_mut(), 16, reads);
        let end_ns = done.iter().map(|one| one.finished.0).max().unwrap();
        let found = 1000.0 * 8192.0 * 1e3 / end_ns as f64;
        assert!((found / rate - 1.0).abs() < 1e-6, "{found} MB/s of {rate}");
    }
}

#[test]
fn the_null_device_takes_no_time() {
    let mut null = device("null", &[]);
    let done = saturate(null.as_mut(), 4, (0..100).map(|tag| command(tag, Op::Write, 0, 1 << 20)));
    assert_eq!(done.len(), 100);
    assert!(done.iter().all(|one| one.finished == Nanos(0) && one.spent.total_ns() == 0));
}
