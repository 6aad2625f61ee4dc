//! The closed forms of an idle drive, to the nanosecond, through the whole drive. They are those of
//! MQSim (Tavakkol et al., FAST'18), worked out by hand from its timing model and met by it.

#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::ssd::Ssd;
use cachewright_device::{Command, Completion, Device, SpentPart};
use cachewright_testkit::drives::small;
use cachewright_types::{Bytes, Nanos, Op, Seed, TenantId};

/// Messages of a read and of a write on the link, without data, and the time of data.
const READ_MESSAGES: u64 = 8 + 8 + 25 + 11;
const WRITE_MESSAGES: u64 = 8 + 8 + 25 + 8 + 11;
const HEAD: u64 = 8;

struct Host {
    ssd: Ssd,
    now: Nanos,
    tag: u64,
}

impl Host {
    fn of(pairs: &[(&str, &str)]) -> Host {
        Host { ssd: Ssd::new(&small(pairs), &[], Seed(1)).unwrap(), now: Nanos(0), tag: 0 }
    }

    /// One command alone, submitted when the one before has completed.
    fn one(&mut self, op: Op, offset: u64, length: u64) -> Completion {
        let (tag, tenant) = (self.tag, TenantId(0));
        self.tag += 1;
        let (offset, length) = (Bytes(offset), Bytes(length));
        self.ssd.submit(self.now, Command { tag, op, offset, length, tenant });
        let mut done = Vec::new();
        while let Some(due) = self.ssd.next_due() {
            self.ssd.advance(due, &mut done);
        }
        assert_eq!(self.ssd.audit(), Ok(()));
        let [completion] = done.try_into().unwrap();
        assert_eq!(completion.tag, tag);
        assert_eq!(completion.spent.total_ns(), completion.finished.0 - self.now.0);
        self.now = completion.finished;
        completion
    }

    fn time(&mut self, op: Op, offset: u64, length: u64) -> u64 {
        let completion = self.one(op, offset, length);
        completion.finished.0 - completion.submitted.0
    }
}

#[test]
fn reads_of_pages_never_written_that_are_allocated() {
    let mut host = Host::of(&[("unwritten", "allocate")]);
    assert_eq!(READ_MESSAGES + 1_248 + 290 + 75_000 + 20 + 12_288, 88_898);
    assert_eq!(host.time(Op::Read, 0, 4096), 88_898);
    assert_eq!(host.time(Op::Read, 1 << 20, 4096), 88_898 + HEAD);
    assert_eq!(host.time(Op::Read, 2 << 20, 8192), 102_434 + HEAD);
}

#[test]
fn a_zero_of_a_page_never_written_costs_no_flash() {
    let mut host = Host::of(&[]);
    assert_eq!(host.time(Op::Read, 0, 4096), READ_MESSAGES + 1_248);
}

#[test]
fn writes_and_reads_of_what_was_written() {
    let mut host = Host::of(&[]);
    assert_eq!(WRITE_MESSAGES + 2_496 + 361 + 24_576 + 750_000, 777_493);
    assert_eq!(host.time(Op::Write, 0, 8192), 777_493);
    assert_eq!(host.time(Op::Write, 1 << 20, 8192), 777_501);
    assert_eq!(host.time(Op::Write, 2 << 20, 4096), 763_965);
    assert_eq!(host.time(Op::Read, 0, 4096), 88_906);
    assert_eq!(host.time(Op::Read, 1 << 20, 8192), 102_442);
}

#[test]
fn the_first_writes_of_the_table() {
    assert_eq!(Host::of(&[]).time(Op::Write, 0, 8192), 777_493);
    assert_eq!(Host::of(&[]).time(Op::Write, 0, 4096), 763_957);
}

/// The second half of a page that holds the first: the old half is read before both are written.
#[test]
fn a_partial_rewrite_reads_what_it_keeps() {
    let mut host = Host::of(&[]);
    host.one(Op::Write, 0, 4096);
    let update = host.one(Op::Write, 4096, 4096);
    let read = 290 + 75_000 + 20 + 12_288;
    let program = 361 + 24_576 + 750_000;
    let expected = WRITE_MESSAGES + 1_248 + HEAD + read + program;
    assert_eq!(update.finished.0 - update.submitted.0, expected);
    assert_eq!(update.spent.part_ns(SpentPart::Flash), 75_020 + 750_000);
}

#[test]
fn the_breakdown_names_where_the_time_went() {
    let mut host = Host::of(&[("unwritten", "allocate")]);
    let spent = host.one(Op::Read, 0, 4096).spent;
    assert_eq!(spent.part_ns(SpentPart::Link), READ_MESSAGES + 1_248);
    assert_eq!(spent.part_ns(SpentPart::Flash), 75_020);
    assert_eq!(spent.part_ns(SpentPart::Channel), 290 + 12_288);
    assert_eq!(
        spent.part_ns(SpentPart::Queue)
            + spent.part_ns(SpentPart::DieWait)
            + spent.part_ns(SpentPart::Map),
        0
    );
}
