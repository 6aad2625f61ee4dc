//! What a disk's published figures promise: random access, sequential rate, order of service.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;

use cachewright_device::disk::{Disk, DiskSettings};
use cachewright_device::{Completion, Device, SpentPart};
use cachewright_types::{Bytes, Nanos, Op, Seed};
use common::{command, device, next, saturate};

const DISKS: [(&str, u64, u64); 2] =
    [("hdd-7200-2tb", 7200, 8_500_000), ("hdd-10045-9gb", 10_045, 5_000_000)];

fn mean(done: &[Completion], part: SpentPart) -> f64 {
    done.iter().map(|one| one.spent.part_ns(part) as f64).sum::<f64>() / done.len() as f64
}

/// Random reads one at a time, with pauses so that the platters' angle is anything.
fn random_reads(disk: &mut dyn Device, count: u64, bytes: u64) -> Vec<Completion> {
    let mut rng = Seed(3).rng();
    let blocks = disk.capacity().0 / bytes;
    let (mut done, mut now) = (Vec::new(), 0);
    for tag in 0..count {
        let offset = rng.below(blocks) * bytes;
        disk.submit(Nanos(now), command(tag, Op::Read, offset, bytes));
        now = next(disk, &mut done).0 + rng.below(20_000_000);
    }
    done
}

#[test]
fn a_random_access_takes_the_average_seek_half_a_revolution_and_the_transfer() {
    for (name, rpm, seek_ns) in DISKS {
        let mut disk = device(name, &[]);
        let done = random_reads(disk.as_mut(), 60_000, 4096);
        let half_turn = 30e9 / rpm as f64;
        let transfer = mean(&done, SpentPart::Transfer);
        let wanted = seek_ns as f64 + half_turn + transfer;
        let found =
            done.iter().map(|one| (one.finished.0 - one.submitted.0) as f64).sum::<f64>() / 6e4;
        assert!((found / wanted - 1.0).abs() < 0.01, "{name}: {found} for {wanted}");
        assert!((mean(&done, SpentPart::Seek) / seek_ns as f64 - 1.0).abs() < 0.01, "{name}");
        assert!((mean(&done, SpentPart::Rotation) / half_turn - 1.0).abs() < 0.01, "{name}");
    }
}

/// Disk-head time charges each request as if it were alone and anywhere, which these are.
#[test]
fn disk_head_time_of_random_reads_one_by_one_is_what_they_take() {
    for (name, _, _) in DISKS {
        let mut disk = device(name, &[("head_interval", "10s")]);
        let done = random_reads(disk.as_mut(), 20_000, 4096);
        let taken = done.iter().map(|one| one.finished.0 - one.submitted.0).sum::<u64>() as f64;
        let report = disk.report(done.last().unwrap().finished);
        let time = *report.head_time().unwrap();
        assert!((time.total_ns() as f64 / taken - 1.0).abs() < 0.01, "{name}: {time:?}");
        assert!(time.peak_disks() < 1.01, "one disk serves them: {time:?}");
    }
}

/// Ten reads of one block in a second, of which the buffer holds nine, a flush and a trim.
#[test]
fn disk_head_time_counts_reads_that_the_buffer_holds_and_no_flush() {
    let settings = DiskSettings { head_interval: Nanos(1_000_000_000), ..DiskSettings::default() };
    let mut disk = Disk::new(&settings).unwrap();
    let (mut done, mut now) = (Vec::new(), Nanos(0));
    for tag in 0..10 {
        disk.submit(now, command(tag, Op::Read, 0, 140_000));
        now = next(&mut disk, &mut done);
    }
    disk.submit(now, command(10, Op::Flush, 0, 0));
    disk.submit(now, command(11, Op::Trim, 0, 4096));
    // 8.5 ms of seek, half of 8 1/3 ms, and 1 ms for 140 kB at 140 MB/s: 13 2/3 ms each.
    let report = disk.report(now);
    let time = report.head_time().unwrap();
    assert!(time.total_ns().abs_diff(136_666_667) <= 10, "{time:?}");
    assert!((time.peak_disks() - 0.136_666_667).abs() < 1e-6, "{time:?}");
}

/// The media rate of the outermost zone, less what switching heads and cylinders takes.
#[test]
fn sequential_reads_run_at_the_media_rate() {
    let settings = DiskSettings::default();
    let plain = Disk::new(&settings).unwrap();
    let total = 512 << 20;
    let media_ns = plain.transfer_ns(Bytes(0), Bytes(total));
    let rate = total as f64 / media_ns as f64 * 1e3;
    assert!(rate > 120.0 && rate < 140.0, "{rate} MB/s");
    for (bytes, depth) in [(4096_u64, 1), (65_536, 1), (65_536, 4), (1 << 20, 2), (8 << 20, 1)] {
        let mut disk = plain.clone();
        let reads = (0..total / bytes).map(|at| command(at, Op::Read, at * bytes, bytes));
        let done = saturate(&mut disk, depth, reads);
        let end_ns = done.iter().map(|one| one.finished.0).max().unwrap();
        let slower = end_ns as f64 / media_ns as f64;
        assert!((0.999..1.01).contains(&slower), "{bytes} bytes, {depth} under way: {slower}");
    }
}

#[test]
fn inner_zones_are_slower() {
    let disk = Disk::new(&DiskSettings::default()).unwrap();
    let time_at = |offset| disk.transfer_ns(Bytes(offset), Bytes(64 << 20)) as f64;
    let ratio = time_at(disk.capacity().0 - (64 << 20)) / time_at(0);
    assert!((1.95..2.05).contains(&ratio), "{ratio}");
}

/// A slow reader of a sequential stream finds its blocks in the buffer.
#[test]
fn reads_behind_the_stream_take_the_link_alone() {
    let mut disk = Disk::new(&DiskSettings::default()).unwrap();
    let (mut done, mut now) = (Vec::new(), 0);
    for at in 0..2000 {
        disk.submit(Nanos(now), command(at, Op::Read, 1_000_000 + at * 4096, 4096));
        now = next(&mut disk, &mut done).0 + 1_000_000;
    }
    let slow = done.iter().filter(|one| {
        one.spent.part_ns(SpentPart::Seek) + one.spent.part_ns(SpentPart::Rotation) > 0
    });
    assert_eq!(slow.count(), 1, "only the first waits for the medium");
    let mut none = device("hdd-7200-2tb", &[("segments", "0")]);
    none.submit(Nanos(0), command(0, Op::Read, 0, 4096));
    let now = next(none.as_mut(), &mut Vec::new());
    none.submit(now, command(1, Op::Read, 0, 4096));
    let mut done = Vec::new();
    next(none.as_mut(), &mut done);
    assert!(
        done[0].spent.part_ns(SpentPart::Rotation) > 8_000_000,
        "without a buffer: a full turn"
    );
}

#[test]
fn written_blocks_are_not_read_stale_and_wait_a_turn() {
    let mut disk = device("hdd-7200-2tb", &[]);
    let mut done = Vec::new();
    let ops = [Op::Read, Op::Write, Op::Read];
    let mut now = Nanos(0);
    for (tag, op) in ops.into_iter().enumerate() {
        disk.submit(now, command(tag as u64, op, 8192, 4096));
        now = next(disk.as_mut(), &mut done);
    }
    for one in &done[1..] {
        assert!(one.spent.part_ns(SpentPart::Rotation) > 8_000_000, "{one:?}");
    }
    disk.submit(now, command(9, Op::Flush, 0, 0));
    assert_eq!(next(disk.as_mut(), &mut done), now, "nothing is volatile");
}

/// Mean time per command with 32 under way, in each order.
#[test]
fn shortest_access_first_is_never_slower_on_saturated_random_commands() {
    for (name, _, _) in DISKS {
        for (seed, writes) in [(1, 0), (2, 50), (3, 100)] {
            let end = |schedule: &str, depth| {
                let mut disk = device(name, &[("schedule", schedule)]);
                let mut rng = Seed(seed).rng();
                let blocks = disk.capacity().0 / 4096;
                let commands: Vec<_> = (0..3000)
                    .map(|tag| {
                        let op = if rng.below(100) < writes { Op::Write } else { Op::Read };
                        command(tag, op, rng.below(blocks) * 4096, 4096)
                    })
                    .collect();
                let done = saturate(disk.as_mut(), depth, commands);
                assert_eq!(done.len(), 3000);
                done.iter().map(|one| one.finished.0).max().unwrap()
            };
            let [fifo, sstf, scan, satf] = ["fifo", "sstf", "scan", "satf"].map(|s| end(s, 32));
            assert!(satf < sstf && satf < scan && sstf < fifo && scan < fifo, "{name} {seed}");
            assert!(2 * satf < fifo, "{name}: {satf} of {fifo}");
            assert_eq!(end("satf", 1), end("fifo", 1), "alone there is no choice");
        }
    }
}

#[test]
fn an_age_limit_bounds_the_wait() {
    let worst = |age: &str| {
        let mut disk = device("hdd-7200-2tb", &[("age_limit", age)]);
        let mut rng = Seed(8).rng();
        // One far command among a crowd at the outer edge.
        let commands = (0..4000).map(|tag| {
            let near = rng.below(1 << 20) * 4096;
            command(tag, Op::Read, if tag == 40 { 1_900_000_000_000 } else { near }, 4096)
        });
        let done = saturate(disk.as_mut(), 24, commands.collect::<Vec<_>>());
        let far = done.iter().find(|one| one.tag == 40).unwrap();
        far.finished.0 - far.submitted.0
    };
    let (free, bound) = (worst("0s"), worst("300ms"));
    assert!(bound < 330_000_000 && free > 3 * bound, "{free} {bound}");
}
