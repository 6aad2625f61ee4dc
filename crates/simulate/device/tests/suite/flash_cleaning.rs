//! Cleaning under load: reads always find their pages, copy-back spares the channel, reads of a
//! preemptible device wait less, and wear stays level.

#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashParams, FlashStats, InitialFill, PageOp, QueueClass,
    Transaction, Unwritten,
};
use cachewright_types::{Nanos, Seed, TenantId};

/// A plane of 64 blocks of 32 pages, one or several, nearly full and in steady state.
fn device(planes: u32) -> FlashParams {
    let mut params = FlashParams::small();
    params.shape.channels = 1;
    params.shape.chips_per_channel = 1;
    params.shape.planes_per_die = planes;
    params.shape.blocks_per_plane = 64;
    params.shape.pages_per_block = 32;
    params.collect.over_provisioning = 0.2;
    params.unwritten = Unwritten::Zero;
    params.fill = InitialFill::Analytic { occupancy: 1.0 };
    params
}

/// One request every `gap` ns, half of them writes, to a share of the pages; and the reads' mean.
fn run(params: &FlashParams, gap: u64, count: u64, hot: f64) -> (FlashStats, f64) {
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    backend.watch_contents();
    let pages = (f64::from(backend.logical_pages(0)) * hot) as u64;
    let (mut rng, mut done): (_, Vec<DoneTransaction>) = (Seed(2).rng(), Vec::new());
    for tag in 0..count {
        let now = Nanos(tag * gap);
        backend.advance(now, &mut done);
        let op = if tag % 2 == 0 { PageOp::Write } else { PageOp::Read };
        let (tenant, page) = (TenantId(0), rng.below(pages) as u32);
        let sectors = if tag % 6 == 0 { 0xFF00 } else { 0xFFFF };
        backend.submit(now, &[Transaction { tag, tenant, group: 0, op, page, sectors }]);
    }
    while let Some(due) = backend.next_due() {
        backend.advance(due, &mut done);
    }
    backend.audit().unwrap();
    assert!(backend.contents_checked() > count / 4, "pages were compared");
    assert_eq!(done.len() as u64, count);
    let reads: Vec<u64> =
        done.iter().filter(|d| d.tag % 2 == 1).map(|d| d.spent.total_ns()).collect();
    let mean = reads.iter().sum::<u64>() as f64 / reads.len() as f64;
    (backend.stats(Nanos(1 << 40)), mean)
}

#[test]
fn moves_within_a_plane_need_not_cross_the_channel() {
    let mut params = device(2);
    let (crossing, _) = run(&params, 4_000_000, 4000, 1.0);
    params.schedule.copy_back = true;
    let (staying, _) = run(&params, 4_000_000, 4000, 1.0);
    assert!(crossing.moved_pages > 1000 && crossing.counters.copy_backs == 0);
    assert_eq!(staying.counters.copy_backs, staying.moved_pages);
    assert_eq!(staying.moved_pages, crossing.moved_pages, "the same blocks are cleaned");
    // A page moved over the channel takes it for 8 KiB out and in.
    let spared = crossing.busy.channel_ns[0] - staying.busy.channel_ns[0];
    let each = spared as f64 / staying.moved_pages as f64;
    assert!((each - 2.0 * 24_576.0).abs() < 1500.0, "{each} ns spared per page");
}

/// Writes pages 0, 1, ... a second apart until one begins cleaning, and reads page 0 so long after
/// it: the time of the read, pages moved and blocks erased.
fn read_after_cleaning_began(params: &FlashParams, delay: u64) -> (u64, u64, u64) {
    let ask = |tag: u64, op, page: u32| {
        let (tenant, group, sectors) = (TenantId(0), 0, 0xFFFF);
        Transaction { tag, tenant, group, op, page, sectors }
    };
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    let mut done: Vec<DoneTransaction> = Vec::new();
    for page in 0..backend.logical_pages(0) {
        let begun = Nanos(u64::from(page) * 1_000_000_000);
        backend.advance(begun, &mut done);
        backend.submit(begun, &[ask(0, PageOp::Write, page)]);
        let stats = backend.stats(begun);
        if stats.collections > 0 {
            backend.advance(Nanos(begun.0 + delay), &mut done);
            backend.submit(Nanos(begun.0 + delay), &[ask(1, PageOp::Read, 0)]);
            backend.advance(Nanos(begun.0 + 1_000_000_000), &mut done);
            let read = done.iter().find(|done| done.tag == 1).unwrap();
            assert_eq!(read.spent.total_ns(), read.finished.0 - begun.0 - delay);
            return (read.spent.total_ns(), stats.moved_pages, stats.collections);
        }
    }
    panic!("no write began cleaning");
}

/// One die. Cleaning that always goes first makes a read wait for every page to be read and
/// programmed and for the erase. Preemptible cleaning lets the write at hand begin, and then a read
/// after whatever the die has in hand: that write, or the page that is being read.
#[test]
fn a_read_goes_between_the_moves_of_preemptible_cleaning() {
    let (read, write, erase) = (290 + 75_020 + 24_576, 361 + 24_576 + 750_000, 220 + 3_800_000);
    let mut params = device(1);
    params.collect.soft_threshold = 0.15;
    params.collect.over_provisioning = 0.3;
    let (time, moved, erased) = read_after_cleaning_began(&params, 1);
    assert!(moved > 1);
    assert_eq!(time, moved * (read + write) + erased * erase + read - 1);
    params.schedule.gc_preemptible = true;
    assert_eq!(read_after_cleaning_began(&params, 1), (write + read - 1, moved, erased));
    assert_eq!(read_after_cleaning_began(&params, write + 1).0, read - 1 + read);
}

#[test]
fn reads_wait_less_for_cleaning_that_lets_them_by() {
    let mut params = device(1);
    params.collect.soft_threshold = 0.15;
    params.collect.over_provisioning = 0.3;
    let (_, behind) = run(&params, 4_000_000, 6000, 1.0);
    params.schedule.gc_preemptible = true;
    let (stats, before) = run(&params, 4_000_000, 6000, 1.0);
    assert!(stats.waits(QueueClass::CleanRead).left > 1000);
    assert!(before < 0.5 * behind, "{before} ns instead of {behind} ns");
}

#[test]
fn halted_erases_and_programs_lose_no_page() {
    let mut params = device(2);
    params.schedule.suspend_erase = true;
    params.schedule.suspend_program = true;
    params.schedule.gc_preemptible = true;
    let (stats, _) = run(&params, 2_500_000, 8000, 1.0);
    assert!(stats.counters.suspends > 1000 && stats.collections > 50);
}

/// Writes to a tenth of the pages: without levelling most blocks are never erased.
#[test]
fn wear_is_levelled_where_set() {
    let mut params = device(1);
    let (uneven, _) = run(&params, 3_000_000, 24_000, 0.1);
    params.collect.static_wear_spread = Some(4);
    let (level, _) = run(&params, 3_000_000, 24_000, 0.1);
    assert_eq!(uneven.wear.min, 0);
    assert!(level.wear.min > 0 && level.counters.wear_moves > 0);
    let spread = |stats: &FlashStats| stats.wear.max - stats.wear.min;
    assert!(2 * spread(&level) < spread(&uneven), "{:?}, {:?}", level.wear, uneven.wear);
    assert!(2.0 * level.wear.deviation < uneven.wear.deviation);
    let erases = 64.0 * level.wear.mean;
    assert!((erases - level.counters.erases as f64).abs() < 1e-6, "every erase wears a block");
}

/// A superblock over all planes: its moves go to other planes, and every read finds its page.
#[test]
fn superblocks_are_cleaned_across_planes() {
    let mut params = device(4);
    params.layout.superblock = true;
    let (stats, _) = run(&params, 3_000_000, 12_000, 1.0);
    assert_eq!(stats.counters.erases, 4 * stats.collections, "a block of each plane");
    assert!(stats.counters.multi_plane.erases > 0 && stats.moved_pages > 1000);
}
