//! Flash timing worked by hand on the 16 GiB reference device: closed forms of an idle device to
//! the nanosecond, and two transactions that get in each other's way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failed test may panic

use cachewright_device::SpentPart;
use cachewright_device::device::Spent;
use cachewright_device::ssd::flash::{
    Backend, CellKind, DoneTransaction, FlashParams, InitialFill, MapCache, PageOp, Transaction,
    Unwritten,
};
use cachewright_types::{Nanos, Seed, TenantId, Value};

const WHOLE: u64 = 0xFFFF;
const HALF: u64 = 0xFF;
const READ_4K: u64 = 290 + 75_000 + 20 + 12_288;
const READ_8K: u64 = 290 + 75_000 + 20 + 24_576;
const WRITE_8K: u64 = 361 + 24_576 + 750_000;

fn ask(op: PageOp, page: u32, sectors: u64) -> Transaction {
    Transaction { tag: page.into(), tenant: TenantId(0), group: 0, op, page, sectors }
}

/// A map cache of so many bytes, eight for an entry.
fn map_of(bytes: u64) -> MapCache {
    let (entry_bytes, stored_bytes) = (8, 8);
    MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants: 1, read_bytes: 512 }
}

fn read(page: u32) -> Transaction {
    ask(PageOp::Read, page, HALF)
}

fn write(page: u32) -> Transaction {
    ask(PageOp::Write, page, WHOLE)
}

/// Submits each batch at its time, runs to the end and returns times by tag with their parts.
fn run(
    params: &FlashParams,
    batches: &[(u64, Vec<Transaction>)],
) -> (Vec<DoneTransaction>, Backend) {
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    let mut done = Vec::new();
    for (time, batch) in batches {
        backend.advance(Nanos(time.saturating_sub(1)), &mut done);
        backend.submit(Nanos(*time), batch);
    }
    while let Some(next) = backend.next_due() {
        backend.advance(next, &mut done);
        backend.audit().unwrap();
    }
    assert_eq!(backend.outstanding(), 0);
    (done, backend)
}

fn times(params: &FlashParams, batches: &[(u64, Vec<Transaction>)]) -> Vec<(u64, u64)> {
    run(params, batches).0.iter().map(|done| (done.tag, done.finished.0)).collect()
}

fn parts(spent: &Spent) -> [u64; 6] {
    let parts = [
        SpentPart::Queue,
        SpentPart::Map,
        SpentPart::Channel,
        SpentPart::DieWait,
        SpentPart::CleanWait,
        SpentPart::Flash,
    ];
    parts.map(|part| spent.part_ns(part))
}

#[test]
fn an_idle_device_takes_the_closed_forms() {
    let small = FlashParams::small();
    for (transaction, expected) in [
        (read(5), 87_598),
        (ask(PageOp::Read, 5, WHOLE), 99_886),
        (write(5), 774_937),
        (ask(PageOp::Write, 5, HALF), 361 + 12_288 + 750_000),
    ] {
        let (done, _) = run(&small, &[(7, vec![transaction])]);
        assert_eq!(done[0].finished.0 - 7, expected, "{transaction:?}");
        assert_eq!(done[0].spent.total_ns(), expected);
    }
    assert_eq!((READ_4K, READ_8K, WRITE_8K), (87_598, 99_886, 774_937));
}

/// The second half of a page: the first half is read (it stays), then all of it is programmed.
#[test]
fn a_write_of_the_rest_of_a_page_reads_what_stays() {
    let first = ask(PageOp::Write, 3, HALF);
    let rest = Transaction { tag: 99, ..ask(PageOp::Write, 3, WHOLE ^ HALF) };
    let (done, backend) = run(&FlashParams::small(), &[(0, vec![first]), (1_000_000, vec![rest])]);
    assert_eq!(done[1].finished.0, 1_000_000 + READ_4K + WRITE_8K);
    let stats = backend.stats(done[1].finished);
    assert_eq!((stats.counters.reads.update, stats.counters.programs.host), (1, 2));
    let again = Transaction { tag: 98, ..write(3) };
    let (done, _) = run(&FlashParams::small(), &[(0, vec![first]), (1_000_000, vec![again])]);
    assert_eq!(done[1].finished.0, 1_000_000 + WRITE_8K, "nothing of the old page stays");
}

/// Pages 0 and 16 share a plane.
#[test]
fn two_reads_of_one_die_follow_each_other() {
    let (done, _) = run(&FlashParams::small(), &[(0, vec![read(0)]), (10, vec![read(16)])]);
    assert_eq!(done[0].finished.0, READ_4K);
    assert_eq!(done[1].finished.0, 2 * READ_4K);
    assert_eq!(parts(&done[1].spent), [0, 0, 290 + 12_288, READ_4K - 10, 0, 75_020]);
}

/// Pages 0 and 4 share a channel: commands and data take turns, sensing overlaps.
#[test]
fn two_reads_of_one_channel_overlap_but_for_the_bus() {
    let (done, _) = run(&FlashParams::small(), &[(0, vec![read(0), read(4)])]);
    assert_eq!(done[0].finished.0, READ_4K);
    assert_eq!(done[1].finished.0, READ_4K + 12_288);
    let bus = READ_4K + 12_288 - 75_020;
    assert_eq!(parts(&done[1].spent), [0, 0, bus, 0, 0, 75_020]);
}

/// Pages 0 and 8 are two planes of one die, both at page 0 of their blocks.
#[test]
fn two_planes_share_a_command() {
    let small = FlashParams::small();
    let both = [(0, vec![read(0), read(8)])];
    let sensed = 940 + 75_000 + 20;
    assert_eq!(times(&small, &both), [(0, sensed + 12_288), (8, sensed + 2 * 12_288)]);
    let (_, backend) = run(&small, &both);
    assert_eq!(backend.stats(Nanos(1 << 20)).counters.multi_plane.reads, 1);
    let programmed = 1177 + 2 * 24_576 + 750_000;
    let both = [(0, vec![write(0), write(8)])];
    assert_eq!(times(&small, &both), [(0, programmed), (8, programmed)]);
    let mut single = small.clone();
    single.schedule.multi_plane = false;
    assert_eq!(times(&single, &both), [(0, WRITE_8K), (8, 2 * WRITE_8K)]);
}

#[test]
fn pages_at_different_places_do_not_share_a_command() {
    let batches = [(0, vec![write(0)]), (900_000, vec![read(8), read(16)])];
    let found = times(&FlashParams::small(), &batches);
    // Page 8 is at page 0 of its plane, page 16 at page 1 of the other.
    assert_eq!(found[1..], [(8, 900_000 + READ_4K), (16, 900_000 + 2 * READ_4K)]);
}

#[test]
fn a_read_waits_for_a_program_of_its_chip() {
    let batches = [(0, vec![write(0)]), (100_000, vec![read(24)])];
    let (done, _) = run(&FlashParams::small(), &batches);
    assert_eq!(done[1].finished.0, WRITE_8K + READ_4K);
    assert_eq!(done[1].spent.part_ns(SpentPart::DieWait), WRITE_8K - 100_000);
}

/// Two reads and a write that wait for one chip: reads first.
#[test]
fn reads_go_before_writes() {
    let waiting = vec![write(16), read(32), read(8)];
    let found = times(&FlashParams::small(), &[(0, vec![read(0)]), (10, waiting)]);
    let order: Vec<u64> = found.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(order, [0, 32, 8, 16]);
}

/// A program is halted at 100 us for 95 ns of command and 100 us, and goes on after the read.
#[test]
fn a_read_halts_a_program() {
    let mut params = FlashParams::small();
    params.schedule.suspend_program = true;
    let batches = [(0, vec![write(0)]), (100_000, vec![read(24)])];
    let (done, backend) = run(&params, &batches);
    let read_end = 100_000 + 95 + 100_000 + READ_4K;
    assert_eq!((done[0].tag, done[0].finished.0), (24, read_end));
    assert_eq!((done[1].tag, done[1].finished.0), (0, read_end + WRITE_8K - 100_000));
    assert_eq!(done[1].spent.part_ns(SpentPart::DieWait), 95 + 100_000 + READ_4K);
    assert_eq!(backend.stats(done[1].finished).counters.suspends, 1);
    // Less than the time to halt is left: the read waits.
    let late = WRITE_8K - 90_000;
    let found = times(&params, &[(0, vec![write(0)]), (late, vec![read(24)])]);
    assert_eq!(found, [(0, WRITE_8K), (24, WRITE_8K + READ_4K)]);
}

/// Pages 0 and 32 of the large device are two dies of one chip.
#[test]
fn dies_of_a_chip_overlap_only_where_set() {
    let mut params = FlashParams::mqsim();
    let batches = [(0, vec![read(0), read(32)])];
    assert_eq!(times(&params, &batches), [(0, READ_4K), (32, 2 * READ_4K)]);
    params.schedule.die_interleave = true;
    assert_eq!(times(&params, &batches), [(0, READ_4K), (32, READ_4K + 12_288)]);
}

#[test]
fn pages_never_written_cost_nothing_where_set() {
    let mut params = FlashParams::small();
    params.unwritten = Unwritten::Zero;
    let half = [(0, vec![ask(PageOp::Write, 1, HALF)]), (900_000, vec![read(2)])];
    assert_eq!(times(&params, &half)[1], (2, 900_000));
    let other = Transaction { tag: 7, ..ask(PageOp::Read, 1, WHOLE ^ HALF) };
    let found = times(&params, &[(0, vec![ask(PageOp::Write, 1, HALF)]), (900_000, vec![other])]);
    assert_eq!(found[1], (7, 900_000), "the other half was never written");
}

/// A page on its way to flash is read in the controller.
#[test]
fn a_page_on_its_way_is_read_in_the_controller() {
    let (done, backend) = run(
        &FlashParams::small(),
        &[(0, vec![write(0)]), (5_000, vec![ask(PageOp::Read, 0, HALF)])],
    );
    assert_eq!(done[0].finished.0, 5_000);
    assert_eq!(backend.stats(Nanos(1 << 30)).counters.reads.buffered, 1);
}

/// The map's page is read first, its 512 bytes crossing the channel: 76,846 ns.
#[test]
fn an_entry_that_is_not_in_memory_is_read() {
    let mut params = FlashParams::small();
    let memory = map_of(64);
    params.map = memory;
    // Entries of 1024 pages lie in one page of the table: table page 1 is not on page 0's chip.
    let (done, _) = run(&params, &[(0, vec![read(1024)]), (1_000_000, vec![read(1024)])]);
    assert_eq!(done[0].finished.0, 76_846 + READ_4K);
    assert_eq!(done[0].spent.part_ns(SpentPart::Map), 76_846);
    assert_eq!(done[1].finished.0, 1_000_000 + READ_4K, "the entry is there now");
    // Two that need the same page of the table wait for one read of it.
    let (done, backend) = run(&params, &[(0, vec![read(1025), read(1026)])]);
    assert!(done.iter().all(|done| done.spent.part_ns(SpentPart::Map) == 76_846));
    let stats = backend.stats(Nanos(1 << 30));
    assert_eq!((stats.counters.map.misses, stats.counters.reads.map), (2, 1));
}

/// Nine changed entries in room for eight: the oldest leaves, and its page of the table is read
/// and programmed.
#[test]
fn a_changed_entry_that_leaves_is_written() {
    let mut params = FlashParams::small();
    params.map = map_of(64);
    let batches: Vec<(u64, Vec<Transaction>)> =
        (0..9).map(|index| (u64::from(index) * 10_000_000, vec![write(index * 1024)])).collect();
    let (_, backend) = run(&params, &batches);
    let counters = backend.stats(Nanos(1 << 40)).counters;
    assert_eq!((counters.map.evictions, counters.programs.map), (1, 1));
    assert_eq!((counters.reads.map, counters.map.misses), (9 + 1, 9));
}

/// Sixteen pages in a row fill a stripe of a superblock: one program of two planes on each chip,
/// two chips to a channel.
#[test]
fn a_superblock_is_written_in_stripes() {
    let mut params = FlashParams::small();
    params.layout.superblock = true;
    let crossing = 1177 + 2 * 24_576;
    let (done, backend) = run(&params, &[(0, (100..116).map(write).collect())]);
    let at = |chip: u64| done.iter().filter(move |d| d.finished.0 == chip * crossing + 750_000);
    assert_eq!((at(1).count(), at(2).count()), (8, 8));
    assert_eq!(backend.stats(Nanos(1 << 30)).counters.multi_plane.programs, 8);
    // Read in another order, each where it was put: pages 100 and 108 share a die and a stripe.
    let reads = vec![read(108), read(100)];
    let (done, _) = run(&params, &[(0, (100..116).map(write).collect()), (1 << 30, reads)]);
    let sensed = (1 << 30) + 940 + 75_000 + 20;
    assert_eq!(done[16].finished.0, sensed + 12_288);
    assert_eq!(done[17].finished.0, sensed + 2 * 12_288);
}

/// Page 0 of tenant 0 and page 16 of tenant 1 lie on one plane, each at the start of its own block;
/// page 8 is the first of the other plane.
#[test]
fn tenants_write_to_blocks_of_their_own() {
    let mut params = FlashParams::small();
    let of = |tenant, page| Transaction { tenant: TenantId(tenant), ..write(page) };
    let batches: Vec<(u64, Vec<Transaction>)> = vec![
        (0, vec![of(0, 0)]),
        (1 << 20, vec![of(1, 16)]),
        (2 << 20, vec![of(0, 8)]),
        (4 << 20, vec![read(16), read(8)]),
    ];
    let shared = |params: &FlashParams| {
        run(params, &batches).1.stats(Nanos(1 << 30)).counters.multi_plane.reads
    };
    assert_eq!(shared(&params), 0, "page 16 is the second of a shared block");
    params.collect.separation = "by-tenant".to_owned();
    assert_eq!(shared(&params), 1);
    params.collect.separation_settings = vec![("tenants".to_owned(), Value::Int(0))];
    let error = Backend::new(&params, Seed(1)).err().map(|error| error.to_string());
    assert!(error.is_some_and(|words| words.contains("tenants")));
}

#[test]
fn pages_of_a_triple_cell_take_their_own_time() {
    let mut params = FlashParams::small();
    params.cell.kind = CellKind::Tlc;
    params.cell.program_ns = [500_000, 1_000_000, 2_000_000];
    let batches: Vec<(u64, Vec<Transaction>)> =
        (0..13).map(|index| (u64::from(index) * 10_000_000, vec![write(16 * index)])).collect();
    let (done, _) = run(&params, &batches);
    let levels: Vec<u64> =
        done.iter().map(|done| done.spent.part_ns(SpentPart::Flash) / 500_000).collect();
    assert_eq!(levels, [1, 1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 2, 4]);
}

#[test]
fn trimmed_pages_are_gone() {
    let mut params = FlashParams::small();
    params.unwritten = Unwritten::Zero;
    params.fill = InitialFill::Analytic { occupancy: 0.5 };
    let trim = Transaction { tag: 77, ..ask(PageOp::Trim, 9, WHOLE) };
    let (done, backend) = run(&params, &[(0, vec![read(9)]), (200_000, vec![trim, read(9)])]);
    assert_eq!(done[0].finished.0, READ_4K);
    assert_eq!(done[2].finished.0, 200_000);
    assert_eq!(backend.stats(Nanos(200_000)).counters.trims, 1);
}
