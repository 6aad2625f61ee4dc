//! The controller's time for a separation that learns: charged per prediction, waited for or beside
//! the write, and without any influence on where pages go.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashParams, FlashStats, InitialFill, PageOp, Transaction, Unwritten,
};
use cachewright_types::{Nanos, Seed, TenantId, Value};

const PREDICTION_NS: u64 = 30_000;
const WRITES: u64 = 8_000;

fn device(prediction_ns: u64, synchronous: bool) -> FlashParams {
    let mut params = FlashParams::small();
    params.shape.channels = 1;
    params.shape.chips_per_channel = 2;
    params.shape.blocks_per_plane = 64;
    params.shape.pages_per_block = 32;
    params.layout.superblock = true;
    params.unwritten = Unwritten::Zero;
    params.fill = InitialFill::Analytic { occupancy: 1.0 };
    let collect = &mut params.collect;
    collect.over_provisioning = 0.25;
    collect.separation = "shiro".to_owned();
    collect.separation_settings = vec![
        ("page_bytes".to_owned(), Value::Int(8192)),
        ("synchronous".to_owned(), Value::Bool(synchronous)),
    ];
    collect.prediction_ns = prediction_ns;
    params
}

/// Skewed whole-page writes, each after the one before it; their times and what was done.
fn run(params: &FlashParams) -> (Vec<u64>, FlashStats) {
    let mut backend = Backend::new(params, Seed(1)).unwrap();
    let pages = u64::from(backend.logical_pages(0));
    let (mut rng, mut done): (_, Vec<DoneTransaction>) = (Seed(2).rng(), Vec::new());
    let mut now = Nanos(0);
    for tag in 0..WRITES {
        let hot = rng.below(10) < 8;
        let page = rng.below(if hot { pages / 8 } else { pages }) as u32;
        let (tenant, op, sectors) = (TenantId(0), PageOp::Write, u64::MAX);
        backend.submit(now, &[Transaction { tag, tenant, group: 0, op, page, sectors }]);
        while let Some(due) = backend.next_due() {
            backend.advance(due, &mut done);
            now = due;
        }
        if tag % 1000 == 0 {
            backend.audit().unwrap();
        }
    }
    backend.audit().unwrap();
    assert_eq!(done.len() as u64, WRITES);
    (done.iter().map(|done| done.spent.total_ns()).collect(), backend.stats(now))
}

#[test]
fn a_prediction_that_is_waited_for_costs_its_time() {
    let (free, before) = run(&device(0, true));
    let (slow, after) = run(&device(PREDICTION_NS, true));
    let predictions = before.counters.predictions.taken;
    assert!(predictions > WRITES / 2, "{predictions} predictions");
    assert_eq!((before.busy.controller_ns, before.counters.predictions.awaited), (0, 0));
    assert_eq!(after.counters.predictions.taken, predictions);
    assert_eq!(after.counters.predictions.awaited, predictions);
    assert_eq!(after.busy.controller_ns, predictions * PREDICTION_NS);
    assert_eq!(after.moved_pages, before.moved_pages, "the same decisions");
    let later = free.iter().zip(&slow).filter(|(free, slow)| **slow == **free + PREDICTION_NS);
    let same = free.iter().zip(&slow).filter(|(free, slow)| slow == free);
    assert!(later.count() as u64 > predictions * 9 / 10, "most writes find an idle drive");
    assert!(same.count() as u64 > (WRITES - predictions) * 9 / 10);
}

#[test]
fn a_prediction_beside_the_write_delays_nothing() {
    let (free, _) = run(&device(0, false));
    let (beside, stats) = run(&device(PREDICTION_NS, false));
    assert_eq!(free, beside);
    assert_eq!(stats.counters.predictions.awaited, 0);
    assert_eq!(stats.busy.controller_ns, stats.counters.predictions.taken * PREDICTION_NS);
}

/// Sixteen writes at once: the last waits for sixteen predictions, and a read of a page that is
/// being decided about finds it in the controller.
#[test]
fn predictions_come_one_after_the_other() {
    let params = device(10_000_000, true);
    let mut backend = Backend::new(&params, Seed(1)).unwrap();
    let mut done = Vec::new();
    let mut now = Nanos(0);
    let ask = |tag: u64, op, page| {
        let (tenant, sectors) = (TenantId(0), u64::MAX);
        Transaction { tag, tenant, group: 0, op, page, sectors }
    };
    // Until a model is there, one at a time: half the writes are of pages with short lifetimes.
    let mut rounds = 0;
    while backend.stats(now).counters.predictions.taken == 0 {
        for place in 0..400 {
            let page = if place % 2 == 0 { place / 2 % 20 } else { 20 + place / 2 % 180 };
            backend.submit(now, &[ask(0, PageOp::Write, page)]);
            while let Some(due) = backend.next_due() {
                backend.advance(due, &mut done);
                now = due;
            }
        }
        rounds += 1;
        assert!(rounds < 1_000, "no model after {rounds} rounds");
    }
    done.clear();
    let before = backend.stats(now).counters;
    let writes: Vec<Transaction> =
        (0..16).map(|page| ask(page, PageOp::Write, page as u32)).collect();
    backend.submit(now, &writes);
    backend.submit(now, &[ask(99, PageOp::Read, 15)]);
    let start = now;
    while let Some(due) = backend.next_due() {
        backend.advance(due, &mut done);
        backend.audit().unwrap();
    }
    let after = backend.stats(start).counters;
    assert_eq!(after.predictions.awaited - before.predictions.awaited, 16);
    assert_eq!(after.reads.buffered - before.reads.buffered, 1);
    assert_eq!((done[0].tag, done[0].finished), (99, start));
    for write in &done[1..] {
        let waited = write.finished.0 - start.0;
        let turn = 10_000_000 * (write.tag + 1);
        assert!(waited >= turn + 774_937 && waited < turn + 5_000_000, "{write:?}: {waited}");
    }
}
