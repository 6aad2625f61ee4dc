//! Flash against theory, and against itself: write amplification, waits at one die, and changes
//! that must not make it slower.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashParams, InitialFill, PageOp, Transaction,
};
use cachewright_ftl::theory;
use cachewright_types::{Nanos, Rng, Seed, TenantId};

const READ_4K: f64 = 87_598.0;

fn read(tag: u64, page: u32) -> Transaction {
    let (tenant, op, sectors) = (TenantId(0), PageOp::Read, 0xFF);
    Transaction { tag, tenant, group: 0, op, page, sectors }
}

/// Runs a closed loop and returns the time and the back-end.
fn closed(
    params: &FlashParams,
    depth: u64,
    count: u64,
    mut next: impl FnMut(&mut Rng, u64, u32) -> Transaction,
) -> (u64, Backend) {
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    let pages = backend.logical_pages(0);
    let mut rng = Seed(2).rng();
    let mut done: Vec<DoneTransaction> = Vec::new();
    (0..depth).for_each(|tag| backend.submit(Nanos(0), &[next(&mut rng, tag, pages)]));
    let (mut made, mut end) = (depth, 0);
    while let Some(due) = backend.next_due() {
        backend.advance(due, &mut done);
        for item in done.drain(..) {
            end = item.finished.0;
            if made < count {
                backend.submit(item.finished, &[next(&mut rng, made, pages)]);
                made += 1;
            }
        }
    }
    backend.audit().unwrap();
    (end, backend)
}

/// Greedy under uniform writes, from the steady state on: within 2 % of the theory of blocks of 64
/// pages, for several shares of data.
#[test]
fn write_amplification_is_that_of_the_theory() {
    for occupancy in [0.7, 0.8, 0.9] {
        let mut params = FlashParams::small();
        params.shape.channels = 1;
        params.shape.pages_per_block = 64;
        params.fill = InitialFill::Analytic { occupancy };
        let (_, backend) = closed(&params, 8, 150_000, |rng, tag, pages| {
            let page = rng.below((f64::from(pages) * occupancy) as u64) as u32;
            Transaction { op: PageOp::Write, sectors: 0xFFFF, ..read(tag, page) }
        });
        let found = backend.stats(Nanos(0)).write_amplification();
        let space = (1.0 - 27.0 / 512.0) / (0.93 * occupancy);
        let expected = theory::greedy(space, 64);
        assert!((found / expected - 1.0).abs() < 0.02, "{occupancy}: {found}, {expected}");
    }
}

/// Reads that arrive at random at one plane: the mean wait of a queue with random arrivals and
/// constant service, rho S / (2 (1 - rho)).
#[test]
fn waits_at_one_die_are_those_of_a_queue_with_constant_service() {
    let mut params = FlashParams::small();
    params.shape.channels = 1;
    params.shape.chips_per_channel = 1;
    params.shape.planes_per_die = 1;
    params.fill = InitialFill::Analytic { occupancy: 0.9 };
    for load in [0.3, 0.6, 0.8] {
        let mut backend = Backend::new(&params, Seed(1)).unwrap();
        let (mut rng, mut done) = (Seed(4).rng(), Vec::new());
        let (mut time, mut waited, mut count) = (0.0_f64, 0.0, 0_u32);
        let mut add = |done: &mut Vec<DoneTransaction>| {
            for item in done.drain(..) {
                waited += item.spent.total_ns() as f64 - READ_4K;
                count += 1;
            }
        };
        for tag in 0..200_000 {
            time -= READ_4K / load * (1.0 - rng.unit()).ln();
            backend.advance(Nanos(time as u64), &mut done);
            add(&mut done);
            backend.submit(Nanos(time as u64), &[read(tag, rng.below(50_000) as u32)]);
        }
        while let Some(due) = backend.next_due() {
            backend.advance(due, &mut done);
            add(&mut done);
        }
        let (found, expected) = (waited / f64::from(count), load * READ_4K / (2.0 * (1.0 - load)));
        assert!((found / expected - 1.0).abs() < 0.03, "{load}: {found}, expected {expected}");
    }
}

/// Saturated reads: more of anything never makes a device slower.
#[test]
fn more_dies_never_lower_the_throughput() {
    let time = |channels, chips, dies, planes| {
        let mut params = FlashParams::small();
        params.schedule.die_interleave = true;
        let shape = &mut params.shape;
        shape.channels = channels;
        shape.chips_per_channel = chips;
        shape.dies_per_chip = dies;
        shape.planes_per_die = planes;
        params.fill = InitialFill::Analytic { occupancy: 0.8 };
        let next = |rng: &mut Rng, tag, pages| {
            read(tag, rng.below((f64::from(pages) * 0.8) as u64) as u32)
        };
        closed(&params, 128, 30_000, next).0 as f64
    };
    let grown = [
        [(1, 1, 1, 1), (2, 1, 1, 1), (4, 1, 1, 1), (8, 1, 1, 1)],
        [(2, 1, 1, 2), (2, 2, 1, 2), (2, 4, 1, 2), (2, 8, 1, 2)],
        [(2, 2, 1, 1), (2, 2, 2, 1), (2, 2, 4, 1), (2, 2, 8, 1)],
        [(2, 2, 2, 1), (2, 2, 2, 2), (2, 2, 2, 4), (2, 2, 2, 8)],
    ];
    for shapes in grown {
        let times =
            shapes.map(|(channels, chips, dies, planes)| time(channels, chips, dies, planes));
        for pair in times.windows(2) {
            assert!(pair[1] < pair[0] * 1.01, "{shapes:?}: {times:?}");
        }
    }
}

/// What one group of channels does is nothing to another.
#[test]
fn groups_do_not_meet() {
    let mut params = FlashParams::small();
    params.layout.groups = vec![vec![0, 2], vec![1, 3]];
    let times = |other: bool| {
        let mut backend = Backend::new(&params, Seed(1)).unwrap();
        let mut done = Vec::new();
        for tag in 0..2000_u64 {
            let now = Nanos(tag * 20_000);
            backend.advance(now, &mut done);
            backend.submit(now, &[read(tag, (tag * 7 % 1000) as u32)]);
            if other {
                let write = Transaction { group: 1, op: PageOp::Write, ..read(1 << 40, 3) };
                backend.submit(now, &[write]);
            }
        }
        backend.advance(Nanos(1 << 40), &mut done);
        done.retain(|item| item.tag < 1 << 40);
        done
    };
    assert_eq!(times(false), times(true));
}

/// Halting programs for reads shortens the reads and completes as many writes.
#[test]
fn halting_programs_shortens_reads() {
    let run = |suspend| {
        let mut params = FlashParams::small();
        params.schedule.suspend_program = suspend;
        params.fill = InitialFill::Analytic { occupancy: 0.5 };
        let (mut backend, mut done) = (Backend::new(&params, Seed(1)).unwrap(), Vec::new());
        let mut rng = Seed(3).rng();
        for tag in 0..20_000_u64 {
            let now = Nanos(tag * 60_000);
            backend.advance(now, &mut done);
            let page = rng.below(500_000) as u32;
            let op = if tag % 4 == 0 { PageOp::Write } else { PageOp::Read };
            backend.submit(now, &[Transaction { op, sectors: 0xFFFF, ..read(tag, page) }]);
        }
        backend.advance(Nanos(1 << 41), &mut done);
        assert_eq!(done.len(), 20_000);
        let reads = done.iter().filter(|item| item.tag % 4 != 0);
        reads.map(|item| item.spent.total_ns()).sum::<u64>() / 15_000
    };
    let (waiting, halting) = (run(false), run(true));
    assert!(halting * 5 < waiting * 4, "{halting} ns instead of {waiting} ns");
}
