//! A log-structured store worked by hand over devices of fixed times, to the nanosecond.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a failed test may panic

use crate::common;
use crate::store_parts;

use cachewright_device::{Command, Completion, Device, SpentPart};
use cachewright_types::{Nanos, Op};
use common::{command, device};
use store_parts::{PAGE, Shape, replay, store};

/// The time of a report, on which a store does not depend.
const END: Nanos = Nanos(u64::MAX);

/// Two pages in segments of two, and three more of these, the oldest of which is cleaned.
const TINY: Shape<'_> = Shape {
    logical_pages: 2,
    segment_pages: 2,
    segments: 4,
    page: PAGE,
    separation: "none",
    reclaim: "fifo",
};
/// Sixteen pages in segments of eight.
const WIDE: Shape<'_> =
    Shape { logical_pages: 16, segment_pages: 8, segments: 5, reclaim: "greedy", ..TINY };

const US: u64 = 1_000;

fn at(us: u64, tag: u64, op: Op, offset: u64, length: u64) -> (u64, Command) {
    (us * US, command(tag, op, offset, length))
}

fn page(us: u64, tag: u64, op: Op, page: u64) -> (u64, Command) {
    at(us, tag, op, page * PAGE, PAGE)
}

/// A tag, when it was done in microseconds, and the parts of its time that are not zero.
type Found = (u64, u64, Vec<(&'static str, u64)>);

fn found(done: &[Completion]) -> Vec<Found> {
    let mut found: Vec<_> = done
        .iter()
        .map(|one| {
            let parts =
                SpentPart::ALL.iter().map(|part| (part.word(), one.spent.part_ns(*part) / US));
            (one.tag, one.finished.0 / US, parts.filter(|(_, time)| *time > 0).collect())
        })
        .collect();
    found.sort();
    found
}

/// Reads take 100 us, writes 60 us, resets 500 us. Page 1 lies at 0:1 and page 0 is written six
/// times at once: to 1:0, 1:1, 2:0; segment 0 is cleaned, so page 1 goes to 2:1; to 3:0; segment 1
/// is cleaned; to 3:1; and to 0:0. Appends go one at a time per segment: the second to 1 and 3 wait
/// for the first. Page 1 is read until 100 us and written until 160 us, then segment 0 is reset
/// until 660 us: the sixth write has waited for it.
#[test]
fn a_write_waits_until_the_last_segment_is_cleaned_and_reset() {
    let inner = device("fixed-latency", &[("read", "100us"), ("write", "60us")]);
    let mut store = store(inner, &TINY, &[("reset_time", "500us")]).unwrap();
    let mut commands: Vec<_> = (0..6).map(|tag| page(0, tag, Op::Write, 0)).collect();
    commands.extend([
        page(50, 6, Op::Read, 0),
        page(50, 7, Op::Read, 1),
        page(130, 8, Op::Read, 1),
        page(200, 9, Op::Read, 1),
        page(700, 10, Op::Read, 0),
        page(800, 11, Op::Read, 0),
    ]);
    let done = replay(&mut store, &commands);
    let device = ("transfer", 60);
    let read = ("transfer", 100);
    let expected = vec![
        (0, 60, vec![device]),
        (1, 120, vec![("queue", 60), device]),
        (2, 60, vec![device]),
        (3, 60, vec![device]),
        (4, 120, vec![("queue", 60), device]),
        (5, 720, vec![device, ("segment wait", 660)]),
        (6, 50, vec![]),
        (7, 150, vec![read]),
        (8, 130, vec![]),
        (9, 300, vec![read]),
        (10, 700, vec![]),
        (11, 900, vec![read]),
    ];
    assert_eq!(found(&done), expected);
    let report = store.report(END);
    let work = report.store().unwrap();
    let counts = work.counts;
    assert_eq!((counts.user_pages, counts.moved_pages, counts.collections), (6, 1, 2));
    assert_eq!((work.resets, work.held_pages, work.reads.memory), (2, 1, 3));
    assert_eq!(
        (work.appends, work.appended_pages, work.reads.moves, work.reads.requests),
        (7, 7, 1, 3)
    );
}

/// The read of a page that moves holds up the reset of its old segment: it ends at 159 us, but the
/// append of the page at 160 us, so a later one of 70 us until 165 us is what counts.
#[test]
fn a_segment_is_not_reset_while_it_is_read() {
    let inner = device("fixed-latency", &[("read", "100us"), ("write", "60us")]);
    let mut store = store(inner, &TINY, &[]).unwrap();
    let mut commands: Vec<_> = (0..6).map(|tag| page(0, tag, Op::Write, 0)).collect();
    commands.push(page(65, 6, Op::Read, 1));
    let done = found(&replay(&mut store, &commands));
    assert_eq!(done[6], (6, 165, vec![("transfer", 100)]));
    assert_eq!(done[5], (5, 225, vec![("transfer", 60), ("segment wait", 165)]));
}

#[test]
fn pages_that_come_while_one_is_written_go_together() {
    let inner = device("fixed-latency", &[("read", "100us"), ("write", "60us")]);
    let with = |pairs: &[(&str, &str)]| {
        let inner = device("fixed-latency", &[("read", "100us"), ("write", "60us")]);
        let mut store = store(inner, &WIDE, pairs).unwrap();
        let writes =
            [(0, 3), (10, 9), (20, 5), (30, 7)].map(|(us, at)| page(us, us, Op::Write, at));
        let done = found(&replay(&mut store, &writes));
        let ends: Vec<u64> = done.iter().map(|(_, end, _)| *end).collect();
        (ends, store.report(END).store().unwrap().appends)
    };
    assert_eq!(with(&[]), (vec![60, 120, 120, 120], 2));
    assert_eq!(with(&[("append_depth", "2")]), (vec![60, 70, 120, 120], 3));
    assert_eq!(with(&[("command", "8KiB")]), (vec![60, 120, 120, 180], 3));
    // Pages of one command, and of one read, are one command as far as they lie side by side.
    let mut store = store(inner, &WIDE, &[]).unwrap();
    let commands = [at(0, 0, Op::Write, 0, 8 * PAGE), at(100, 1, Op::Read, 0, 16 * PAGE)];
    replay(&mut store, &commands);
    let report = store.report(END);
    let work = report.store().unwrap();
    assert_eq!((work.appends, work.reads.requests), (1, 2));
}

/// The first write covers page 1 whole, which is appended until 60 us, and parts of pages 0 and 2,
/// which are read until 100 us. The second finds page 0 in memory and is appended after page 1,
/// until 120 us; then pages 0 and 2, which do not lie side by side, one after the other.
#[test]
fn pages_written_in_part_are_read_before_and_trims_forget_whole_ones() {
    let inner = device("fixed-latency", &[("read", "100us"), ("write", "60us")]);
    let mut store = store(inner, &WIDE, &[]).unwrap();
    let commands = [
        at(0, 0, Op::Write, 100, 2 * PAGE),
        at(10, 1, Op::Write, 10, 20),
        at(1000, 2, Op::Trim, PAGE - 1, PAGE + 1),
        page(1001, 3, Op::Read, 1),
        page(1001, 4, Op::Read, 0),
        at(2000, 5, Op::Write, PAGE + 1, 1),
        at(3000, 6, Op::Flush, 0, 0),
        at(4000, 7, Op::Read, 15 * PAGE + 1, 100),
    ];
    let done = found(&replay(&mut store, &commands));
    let ends: Vec<u64> = done.iter().map(|(_, end, _)| *end).collect();
    assert_eq!(ends, [240, 120, 1000, 1001, 1101, 2060, 3000, 4100]);
    let report = store.report(END);
    let work = report.store().unwrap();
    assert_eq!((work.reads.update, work.reads.unwritten, work.counts.trimmed_pages), (2, 1, 1));
    assert_eq!(report.members[0].used.population.inside(), 0);
}

#[test]
fn a_store_that_does_not_fit_is_refused() {
    let small = device("fixed-latency", &[("capacity", "100KiB")]);
    let error = store(small, &WIDE, &[]).err().unwrap().to_string();
    assert_eq!(error, "found a capacity of 100KiB, expected at least 160KiB for 5 segments");
    let tight = Shape { segments: 4, ..WIDE };
    let error = store(device("null", &[]), &tight, &[]).err().unwrap().to_string();
    assert!(error.starts_with("found 4 superblocks of 8 pages for 16 logical pages"), "{error}");
}
