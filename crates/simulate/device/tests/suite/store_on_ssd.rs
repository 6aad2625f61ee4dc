//! A log on a log: a store whose segments are whole superblocks of the drive beneath it leaves that
//! drive next to nothing to clean, the less the more superblocks a segment has.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;
use crate::store_parts;

use cachewright_device::{AnyDevice, Command, Device};
use cachewright_types::{Nanos, Op, Seed};
use common::{command, device};
use store_parts::{Shape, store};

const PAGE: u64 = 16 << 10;
/// Pages of a superblock of the drive: four planes of four pages.
const SUPERBLOCK: u32 = 16;

/// A drive of 128 superblocks of 256 KiB, 112 of which can be addressed, empty.
fn drive() -> AnyDevice {
    let pairs = [
        ("channels", "2"),
        ("chips", "2"),
        ("dies", "1"),
        ("planes", "1"),
        ("blocks", "128"),
        ("block", "64KiB"),
        ("capacity", "28MiB"),
        ("fill", "empty"),
        ("clean_below", "0.04"),
    ];
    device("shiro-40gib", &pairs)
}

/// A store of 80 superblocks' worth of pages on all of the drive.
fn shape(segment_pages: u32, separation: &str) -> Shape<'_> {
    Shape {
        logical_pages: 80 * SUPERBLOCK,
        segment_pages,
        segments: 112 * SUPERBLOCK / segment_pages,
        page: PAGE,
        separation,
        reclaim: "greedy",
    }
}

/// Random page writes, four under way.
fn overwrite(device: &mut dyn Device, pages: u32, writes: u64) {
    let mut rng = Seed(3).rng();
    let mut write =
        |tag| -> Command { command(tag, Op::Write, rng.below(u64::from(pages)) * PAGE, PAGE) };
    let mut done = Vec::new();
    (0..4).for_each(|tag| device.submit(Nanos(0), write(tag)));
    let mut sent = 4;
    while let Some(due) = device.next_due() {
        device.advance(due, &mut done);
        for _ in done.drain(..) {
            if sent < writes {
                device.submit(due, write(sent));
                sent += 1;
            }
        }
    }
    assert_eq!(device.audit(), Ok(()));
}

/// Write amplification of the store and of the drive beneath it.
fn amplification(segment_pages: u32, separation: &str) -> (f64, f64) {
    let mut store = store(drive(), &shape(segment_pages, separation), &[]).unwrap();
    overwrite(&mut store, 80 * SUPERBLOCK, 20_000);
    let report = store.report(Nanos(u64::MAX));
    let (work, flash) = (report.store().unwrap(), report.members[0].report.flash().unwrap());
    (work.counts.write_amplification(), flash.write_amplification())
}

/// Pages of several open segments reach the drive in turn, so that its superblocks hold pages of
/// two segments where one ends and the next begins, and die in parts: a share that shrinks as
/// segments grow.
#[test]
fn segments_of_whole_superblocks_leave_the_drive_next_to_nothing_to_clean() {
    let mut bare = drive();
    overwrite(bare.as_mut(), 80 * SUPERBLOCK, 20_000);
    let bare = bare.report(Nanos(u64::MAX)).flash().unwrap().write_amplification();
    let cases = [
        (1, "none", 1.2, 1.3),
        (2, "none", 1.0, 1.05),
        (4, "none", 1.0, 1.005),
        (4, "2r", 1.0, 1.01),
        (4, "sepbit", 1.0, 1.01),
    ];
    for (superblocks, separation, low, high) in cases {
        let (store, drive) = amplification(superblocks * SUPERBLOCK, separation);
        let case = format!("{superblocks} superblocks, {separation}: drive {drive}, {bare} alone");
        assert!((low..high).contains(&drive) && drive < bare, "{case}");
        assert!(store > 1.5, "the store cleans instead: {store}, {case}");
    }
}
