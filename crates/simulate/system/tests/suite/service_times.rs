//! Service times are those of a device alone: of its model, without a queue, and of where it was.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::{AnyDevice, model};
use cachewright_system::Recording;
use cachewright_system::futures::{service_ratios, service_times};
use cachewright_system::machines::{Layout, Requests};
use cachewright_testkit::machines::{SHIFT, recorder, workload};
use cachewright_types::Value;

const FIXED: [(&str, &str); 3] = [("read", "100us"), ("write", "50us"), ("parallelism", "1")];

fn placed(text: &str) -> (Recording, Requests) {
    let mut workload = workload(&[text], &[]);
    let (recording, mut requests) = recorder(1).record_requests(&mut workload, |_| true).unwrap();
    let space = 0..1_u64 << 40;
    requests.place(&recording, SHIFT, Layout::AsIs, &[space], &[0]).unwrap();
    (recording, requests)
}

fn device(name: &str, pairs: &[(&str, &str)]) -> AnyDevice {
    let pairs: Vec<_> =
        pairs.iter().map(|(key, text)| ((*key).to_owned(), Value::read(text))).collect();
    model(name).unwrap().build(&pairs).unwrap()
}

fn times(requests: &Requests, device: AnyDevice) -> Vec<u64> {
    service_times(requests, vec![device], &[0], &mut |_| true).unwrap()
}

/// Four requests at one time wait for each other, and the wait is no service. A flush takes none,
/// and is not in the recording; a trim of a known block is, and of an unknown one is not.
#[test]
fn a_queue_is_no_service() {
    let text = "1,R,0,4096,0\n1,W,0,4096,0\n1,F,0,0,0\n1,T,0,4096,0\n1,T,81920,4096,0\n\
                1,R,8192,4096,0\n";
    let (recording, requests) = placed(text);
    let fast = times(&requests, device("fixed-latency", &FIXED));
    assert_eq!(fast, [100_000, 50_000, 0, 0, 0, 100_000]);
    let slow = vec![1_000_000, 100_000, 0, 0, 0, 250_000];
    let found = service_ratios(&requests, &slow, &fast);
    assert_eq!(found, [10.0, 2.0, 1.0, 2.5]);
    assert_eq!(found.len(), recording.times_ns().len());
}

/// A disk that goes on where it was takes less than one that turns back and forth.
#[test]
fn a_disk_knows_where_it_was() {
    let line = |(at, block): (u64, u64)| format!("1,R,{},4096,{at}\n", block * 4096);
    let near: String = (0..200).map(|at| line((at, at))).collect();
    let far: String = (0..200).map(|at| line((at, (at * 7_919_111) % 50_000_000))).collect();
    let sum =
        |text: &str| -> u64 { times(&placed(text).1, device("hdd-7200-2tb", &[])).iter().sum() };
    let (near, far) = (sum(&near), sum(&far));
    assert!(far > 5 * near, "{far} ns far apart, {near} ns one behind the other");
    assert!(far > 200 * 2_000_000, "a seek and half a turn take some milliseconds");
}

/// Addresses beyond a device come round; the device is never asked for what it does not have.
#[test]
fn a_small_device_serves_a_large_volume() {
    let (_, requests) = placed("1,R,900000000000,1048576,0\n1,W,0,4096,5\n");
    let ssd = device("fixed-latency", &[("capacity", "64MiB"), ("read", "100us")]);
    assert_eq!(ssd.capacity().0, 64 << 20);
    assert!(times(&requests, ssd).iter().all(|time| *time > 0));
}
