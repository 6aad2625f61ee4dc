//! The map cache worked by hand: one channel, one chip, one plane, a few entries of memory, several
//! requests under way. What is expected follows from three rules. A page of the table is read once
//! for all that wait for it. An entry that comes in is used in the same moment, so that no other
//! can push it out before. A changed entry that leaves delays no request but by the read that
//! merges its page of the table; the program of that page waits until no read of the host does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

use cachewright_device::SpentPart;
use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashParams, FlashShape, MapCache, PageOp, Priority, QueueClass,
    Transaction,
};
use cachewright_types::{Nanos, Seed, TenantId};

/// A read of 4 KiB: command, sensing, ready, channel.
const R: u64 = 290 + 75_000 + 20 + 12_288;
/// An entry of the table: 512 bytes cross the channel.
const MAP: u64 = 290 + 75_000 + 20 + 1_536;
/// A whole page of the table, to be merged with what has changed.
const MERGE: u64 = 290 + 75_000 + 20 + 24_576;
/// The program of a page.
const PROGRAM: u64 = 361 + 24_576 + 750_000;
/// Entries of a page of the table.
const TABLE: u32 = 1024;

/// One plane, `entries` of memory for the map.
fn tiny(entries: u64) -> FlashParams {
    let base = FlashParams::mqsim();
    let shape = FlashShape {
        channels: 1,
        chips_per_channel: 1,
        dies_per_chip: 1,
        planes_per_die: 1,
        blocks_per_plane: 128,
        ..base.shape
    };
    let (entry_bytes, stored_bytes, tenants) = (8, 8, 1);
    let (bytes, read_bytes) = (8 * entries, 512);
    let map = MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes };
    FlashParams { shape, map, ..base }
}

fn read(page: u32) -> Transaction {
    let (tenant, op, sectors) = (TenantId(0), PageOp::Read, 0xFF);
    Transaction { tag: page.into(), tenant, group: 0, op, page, sectors }
}

/// Submits each request at its time and runs to the end.
fn run(params: &FlashParams, requests: &[(u64, Transaction)]) -> (Vec<DoneTransaction>, Backend) {
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    let mut done = Vec::new();
    for (time, request) in requests {
        backend.advance(Nanos(time.saturating_sub(1)), &mut done);
        backend.submit(Nanos(*time), &[*request]);
    }
    while let Some(next) = backend.next_due() {
        backend.advance(next, &mut done);
        backend.audit().unwrap();
    }
    (done, backend)
}

fn times(done: &[DoneTransaction]) -> Vec<(u64, u64)> {
    done.iter().map(|done| (done.tag, done.finished.0)).collect()
}

/// Three requests for entries of one page of the table. The second and the third find its read
/// under way and wait for it: one read, then three reads of data one after the other.
#[test]
fn a_page_of_the_table_that_is_being_read_is_not_read_again() {
    let (done, backend) = run(&tiny(4), &[(0, read(0)), (10, read(1)), (20, read(2))]);
    assert_eq!(times(&done), [(0, MAP + R), (1, MAP + 2 * R), (2, MAP + 3 * R)]);
    let waited: Vec<u64> = done.iter().map(|done| done.spent.part_ns(SpentPart::Map)).collect();
    assert_eq!(waited, [MAP, MAP - 10, MAP - 20]);
    let counters = backend.stats(Nanos(1 << 30)).counters;
    assert_eq!((counters.map.misses, counters.map.hits, counters.reads.map), (3, 0, 1));
}

/// Memory for one entry and three requests that wait for the same read. Each entry is used as it
/// comes in and then pushed out by the next: nothing is read twice, no request starts anew.
#[test]
fn a_request_that_waited_for_its_entry_does_not_lose_it_before_use() {
    let mut params = tiny(1);
    // The pages hold data: their entries do not change.
    params.fill = cachewright_device::ssd::flash::InitialFill::Analytic { occupancy: 0.5 };
    let (done, backend) = run(&params, &[(0, read(5)), (0, read(6)), (0, read(7))]);
    let mut found: Vec<u64> = done.iter().map(|done| done.finished.0).collect();
    found.sort_unstable();
    assert_eq!(found, [MAP + R, MAP + 2 * R, MAP + 3 * R]);
    let counters = backend.stats(Nanos(1 << 30)).counters;
    assert_eq!((counters.reads.map, counters.map.evictions), (1, 0));
}

/// Memory for two entries; the reads are of pages never written, which are given a place, so each
/// changes its entry. The third pushes the first out: its page of the table is read whole before
/// the reads of data (it is a read of the map), and programmed after them.
#[test]
fn a_read_of_the_host_does_not_wait_for_a_program_of_the_map() {
    let (done, backend) = run(&tiny(2), &[(0, read(0)), (10, read(1)), (20, read(2))]);
    let begin = MAP + MERGE;
    assert_eq!(times(&done), [(0, begin + R), (1, begin + 2 * R), (2, begin + 3 * R)]);
    let programmed = Nanos(begin + 3 * R + PROGRAM);
    assert_eq!(backend.stats(Nanos(programmed.0 - 1)).counters.programs.map, 1);
    let stats = backend.stats(programmed);
    assert_eq!((stats.counters.map.evictions, stats.counters.reads.map), (1, 2));
    assert_eq!(stats.waits(QueueClass::MapWrite).waited_ns, 3 * R);
    assert_eq!(backend.next_due(), None);
}

/// A read that comes while the page of the table is programmed waits for that program, as for any
/// other: reads of a drive that holds nothing have tails of a program time and more.
#[test]
fn a_read_waits_for_a_program_of_the_map_that_has_begun() {
    let begun = MAP + MERGE + 3 * R;
    let late = (begun + 1_000, read(2));
    let requests = [(0, read(0)), (10, read(1)), (20, read(2)), late];
    let (done, _) = run(&tiny(2), &requests);
    assert_eq!(done[3].finished.0, begun + PROGRAM + R);
    assert_eq!(done[3].spent.part_ns(SpentPart::DieWait), PROGRAM - 1_000);
}

/// The page of the table that is on its way to flash is in the controller: an entry of it that was
/// pushed out comes back without a read of the map. While the page is still to be merged, it is
/// waited for.
#[test]
fn an_entry_that_was_pushed_out_is_found_while_its_page_is_on_its_way() {
    let mut requests = vec![(0, read(0)), (10, read(1)), (20, read(2))];
    let back = Transaction { tag: 99, ..read(0) };
    let begun = MAP + MERGE + 3 * R;
    requests.push((begun + 1_000, back));
    let (done, backend) = run(&tiny(2), &requests);
    let last = done.iter().find(|done| done.tag == 99).unwrap();
    assert_eq!(last.spent.part_ns(SpentPart::Map), 0);
    // It pushes out another changed entry of the same page, already part of the program.
    assert_eq!(last.finished.0, begun + PROGRAM + R);
    assert_eq!(backend.stats(Nanos(1 << 30)).counters.reads.map, 2);
    requests[3].0 = MAP + 5_000;
    let (done, _) = run(&tiny(2), &requests);
    let last = done.iter().find(|done| done.tag == 99).unwrap();
    assert_eq!(last.spent.part_ns(SpentPart::Map), MERGE - 5_000);
}

/// A miss that comes while reads of data wait for the die goes before them: what it brings in may
/// keep other dies busy.
#[test]
fn a_read_of_the_map_goes_before_reads_of_data() {
    let far = read(TABLE);
    let requests = [(0, read(0)), (10, read(1)), (20, read(2)), (MAP + 1_000, far)];
    let (done, _) = run(&tiny(8), &requests);
    let expected = [
        (0, MAP + R),
        (1, MAP + R + MAP + R),
        (2, MAP + R + MAP + 2 * R),
        (u64::from(TABLE), MAP + R + MAP + 3 * R),
    ];
    assert_eq!(times(&done), expected);
}

/// One read is under way and one of each class waits, the least urgent first.
#[test]
fn classes_of_tenants_are_served_in_their_order() {
    let mut params = tiny(8);
    params.map = MapCache::Ideal;
    let of = |tenant: u16| Transaction { tenant: TenantId(tenant), ..read(tenant.into()) };
    let requests: Vec<(u64, Transaction)> =
        [4, 3, 2, 1, 0].into_iter().zip(0..).map(|(tenant, at)| (at * 10, of(tenant))).collect();
    let order = |params: &FlashParams| -> Vec<u64> {
        run(params, &requests).0.iter().map(|done| done.tag).collect()
    };
    assert_eq!(order(&params), [4, 3, 2, 1, 0], "without classes the first come is first served");
    params.priorities = vec![Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];
    // Tenant 4 has the last class named; of two alike the first come is first. Rounds begin with
    // `high` alone, then `medium` takes part, then `low`.
    assert_eq!(order(&params), [4, 0, 1, 2, 3]);
}
