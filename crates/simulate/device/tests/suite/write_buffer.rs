//! The memory for writes of a drive without a data cache, worked by hand: when a write is done,
//! when it must wait, what a flush waits for, and where a read finds what is held.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::ssd::Ssd;
use cachewright_device::{Command, Completion, Device, SpentPart};
use cachewright_testkit::drives::{Flow, run, small};
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId};

/// Messages of a write and of a read on the link (NVMe), with 8 KiB of data.
const WRITE_LINK: u64 = 8 + 8 + 25 + 8 + 2_496 + 11;
const READ_LINK: u64 = 8 + 8 + 25 + 2_496 + 11;
/// Space for two pages, taken in 5 us each.
const BUFFER: [(&str, &str); 2] = [("write_buffer", "16KiB"), ("write_buffer_time", "5us")];
const PROGRAM: u64 = 361 + 24_576 + 750_000;

/// Submits commands at their times; returns completions by tag.
fn completions(commands: &[(u64, Op, u64, u64)]) -> Vec<Completion> {
    let mut ssd = Ssd::new(&small(&BUFFER), &[], Seed(1)).unwrap();
    let mut done = Vec::new();
    for (tag, (time, op, offset, length)) in commands.iter().enumerate() {
        ssd.advance(Nanos(time.saturating_sub(1)), &mut done);
        let (offset, length) = (Bytes(*offset), Bytes(*length));
        let command = Command { tag: tag as u64, op: *op, offset, length, tenant: TenantId(0) };
        ssd.submit(Nanos(*time), command);
    }
    while let Some(due) = ssd.next_due() {
        ssd.advance(due, &mut done);
        ssd.audit().unwrap();
    }
    assert_eq!(ssd.outstanding(), 0);
    for one in &done {
        assert_eq!(one.spent.total_ns(), one.finished.0 - one.submitted.0, "{one:?}");
    }
    done.sort_by_key(|done| done.tag);
    done
}

#[test]
fn a_write_is_done_once_it_is_in_memory() {
    let [write] = completions(&[(0, Op::Write, 0, 8192)]).try_into().unwrap();
    assert_eq!(write.finished.0, WRITE_LINK + 5_000);
    assert_eq!(write.spent.part_ns(SpentPart::Dram), 5_000);
    assert_eq!(write.spent.part_ns(SpentPart::Flash), 0);
}

/// All three on chips of their own. The third begins to be taken in when the first is programmed.
#[test]
fn a_write_waits_while_the_memory_is_full() {
    let page = 8192;
    let writes = [0, 20_000, 40_000].map(|at| (at, Op::Write, at / 20_000 * page, page));
    let done = completions(&writes);
    let space = WRITE_LINK - 11 + 5_000 + PROGRAM;
    assert_eq!(done[1].finished.0, 20_000 + WRITE_LINK + 5_000);
    assert_eq!(done[2].finished.0, space + 5_000 + 11);
    assert_eq!(done[2].spent.part_ns(SpentPart::Dram), 5_000);
    assert_eq!(done[2].spent.part_ns(SpentPart::Queue), space - (40_000 + WRITE_LINK - 11));
}

#[test]
fn a_write_larger_than_the_memory_is_taken_in_alone() {
    let done = completions(&[(0, Op::Write, 0, 1 << 17), (10, Op::Write, 1 << 20, 8192)]);
    assert!(done[0].finished.0 < 100_000, "{}", done[0].finished);
    assert!(done[1].finished.0 > PROGRAM, "{}", done[1].finished);
}

#[test]
fn a_flush_waits_for_what_was_held_before_it() {
    let flush = (30_000, Op::Flush, 0, 0);
    let later = (40_000, Op::Write, 8192, 8192);
    let done = completions(&[(0, Op::Write, 0, 8192), flush, later]);
    let programmed = WRITE_LINK - 11 + 5_000 + PROGRAM;
    assert_eq!(done[1].finished.0, programmed + 11);
    assert!(done[2].finished.0 < done[1].finished.0, "a later write is not waited for");
    let [flush] = completions(&[(0, Op::Flush, 0, 0)]).try_into().unwrap();
    assert_eq!(flush.finished.0, 8 + 8 + 25 + 11, "nothing is held");
}

#[test]
fn what_is_held_is_read_in_memory() {
    let done = completions(&[(0, Op::Write, 0, 8192), (100_000, Op::Read, 0, 8192)]);
    assert_eq!(done[1].finished.0, 100_000 + READ_LINK);
}

/// Every command completes once, whatever the memory and the mixture.
#[test]
fn mixtures_of_any_size_complete() {
    for (capacity, length) in [("4KiB", 4096), ("64KiB", 8192), ("1MiB", 65_536)] {
        let params = small(&[("write_buffer", capacity), ("write_buffer_time", "1us")]);
        let mut ssd = Ssd::new(&params, &[], Seed(1)).unwrap();
        let flow = Flow::uniform(length, 0.4, 24, 3_000, 1 << 28);
        run(&mut ssd, &[flow], 7);
        ssd.audit().unwrap();
    }
}
