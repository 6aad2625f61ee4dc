//! Blocks of a meter are known by tenant and number: where volumes begin, trims, reading ahead.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_control::{AnswerTimes, RequestMeter, SignalNeeds, Signals};
use cachewright_curve::ShardsSizeSettings;
use cachewright_curve::signal::SignalSet;
use cachewright_curve::{BlockName, CurveSet, windows::Method};
use cachewright_types::{BlockId, BlockKey, Bytes, Nanos, Op, Request, Seed, TenantId};

const TENANT: TenantId = TenantId(1);
/// Where the blocks of each tenant begin; the third has no entry.
const FIRST: [u64; 2] = [0, 100];

fn request(op: Op, tenant: TenantId, block: u64, blocks: u64) -> Request {
    let (offset, length) = (Bytes(block << 12), Bytes(blocks << 12));
    Request { time: Nanos(0), offset, length, op, tenant }
}

fn meter(method: &Method) -> RequestMeter {
    let curves = Some(CurveSet::new(3, method, Seed(3)));
    let signals = SignalSet { curves: true, steps: false, reuse: true, prices: true };
    RequestMeter::new(SignalNeeds { curves, steps: 0, signals }.meter(3, 10).unwrap(), 12)
}

/// Misses of all accesses of the tenant with so many blocks.
fn misses(signals: &Signals, blocks: u32) -> f64 {
    signals.curves[TENANT.index()].all.misses(blocks)
}

#[test]
fn volumes_that_begin_elsewhere_are_measured_alike() {
    // Samples depend on the blocks' names: only the same names give the same curve.
    let sampled = Method::ShardsSize(ShardsSizeSettings { max_blocks: 40, ..Default::default() });
    let curve = |first_blocks: Vec<u64>, tenant: TenantId, begin: u64| {
        let mut meter = meter(&sampled).with_first_blocks(first_blocks);
        for round in 0..600_u64 {
            let block = begin + round * round % 397;
            meter.request(&request(Op::Read, tenant, block, 1), 0);
            if round % 50 == 0 {
                meter.request(&request(Op::Trim, tenant, block, 3), 0);
                meter.read_ahead(tenant, block + 5..block + 7);
            }
        }
        let curves = &meter.end_interval().curves[tenant.index()];
        (1..397).map(|blocks| curves.all.misses(blocks)).collect::<Vec<f64>>()
    };
    let plain = curve(Vec::new(), TENANT, 0);
    assert!(plain[0] > 500.0 && plain[395] < plain[0]);
    assert_eq!(curve(FIRST.to_vec(), TENANT, 100), plain);
    assert_ne!(curve(FIRST.to_vec(), TENANT, 0), curve(FIRST.to_vec(), TENANT, 150));
    assert_ne!(curve(Vec::new(), TENANT, 100), plain, "other names, other samples");
    assert_ne!(curve(FIRST.to_vec(), TenantId(2), 100), curve(Vec::new(), TenantId(2), 0));
}

#[test]
fn trims_forget_whole_blocks_and_flushes_touch_none() {
    let mut meter = meter(&Method::Exact).with_first_blocks(FIRST.to_vec());
    let mut on = |op, block, blocks| meter.request(&request(op, TENANT, block, blocks), 0);
    on(Op::Write, 100, 4);
    on(Op::Trim, 101, 2);
    on(Op::Flush, 100, 4);
    on(Op::Trim, 103, 0);
    on(Op::Write, 100, 4);
    let signals = meter.end_interval();
    // Four first uses, two blocks of the second pass and two that were trimmed.
    assert_eq!(misses(&signals, 100), 6.0);
    assert_eq!(signals.curves[TENANT.index()].writes.accesses(), 8);
    assert_eq!(signals.curves[TENANT.index()].reads.accesses(), 0);
    assert_eq!(signals.curves[0].all.accesses(), 0);
    // Only blocks that were written before, and not trimmed since, have a distance.
    let found = &signals.reuse[TENANT.index()];
    let plain = {
        let mut meter = self::meter(&Method::Exact);
        for (op, block, blocks) in [(Op::Write, 0, 4), (Op::Trim, 1, 2), (Op::Write, 0, 4)] {
            meter.request(&request(op, TENANT, block, blocks), 0);
        }
        meter.end_interval().reuse.swap_remove(TENANT.index())
    };
    assert_eq!(found, &plain);
    assert!(found.iter().any(|count| *count > 0));
}

#[test]
fn a_block_read_ahead_is_no_access_and_hits_at_its_use() {
    let mut meter = meter(&Method::Exact).with_first_blocks(FIRST.to_vec());
    meter.read_ahead(TENANT, 105..107);
    meter.request(&request(Op::Read, TENANT, 105, 2), 0);
    let signals = meter.end_interval();
    assert_eq!(signals.curves[TENANT.index()].reads.accesses(), 2);
    assert_eq!(misses(&signals, 10), 0.0);
}

#[test]
fn recorded_blocks_are_accessed_or_trimmed() {
    let keys: Vec<BlockKey> = (0..10).map(BlockKey).collect();
    let name = |id| BlockName::Recorded { id: BlockId(id), keys: &keys, index: id };
    let mut meter = meter(&Method::Exact);
    let mut on = |op, ids: &[u32], is_trimmed| {
        let blocks = ids.iter().map(|id| (name(*id), is_trimmed));
        meter.recorded_request(&request(op, TENANT, 0, ids.len() as u64), blocks, 0);
    };
    on(Op::Write, &[1, 2, 3], false);
    on(Op::Trim, &[2], true);
    on(Op::Read, &[1, 2, 3], false);
    let signals = meter.end_interval();
    assert_eq!(misses(&signals, 10), 4.0);
    let curves = &signals.curves[TENANT.index()];
    assert_eq!((curves.reads.accesses(), curves.writes.accesses()), (3, 3));
}

#[test]
fn answers_reach_the_prices() {
    let mut meter = meter(&Method::Exact);
    let times = AnswerTimes { finish_ns: 9, response_ns: 5, behind_ns: 4 };
    meter.answered(TENANT, Op::Read, times);
    let prices = meter.end_interval().prices[TENANT.index()];
    assert_eq!((prices.read_misses.count, prices.read_misses.sum_ns), (1, 5));
}

#[test]
fn a_meter_without_accesses_counts_prices_alone() {
    let signals = SignalSet { prices: true, ..SignalSet::NONE };
    let needs = SignalNeeds { signals, ..SignalNeeds::default() };
    let mut meter = RequestMeter::new(needs.meter(2, 10).unwrap(), 12);
    meter.request(&request(Op::Write, TENANT, 0, 4), 0);
    let signals = meter.end_interval();
    assert!(signals.curves.is_empty() && signals.reuse.is_empty() && signals.steps.is_empty());
}

#[test]
fn each_signal_alone_is_a_reason_to_count_accesses() {
    let of = |curves: bool, steps: u32, reuse: bool| {
        let curves = curves.then(|| CurveSet::new(1, &Method::Exact, Seed(0)));
        let signals = SignalSet { reuse, ..SignalSet::NONE };
        let meter = SignalNeeds { curves, steps, signals }.meter(1, 10);
        meter.map(|meter| (meter.counts_accesses(), meter.counts_steps()))
    };
    assert_eq!(of(true, 0, false), Some((true, false)));
    assert_eq!(of(false, 2, false), Some((true, true)));
    assert_eq!(of(false, 0, true), Some((true, false)));
    assert_eq!(of(false, 0, false), None);
    // Without intervals there are no steps.
    let steps = SignalNeeds { steps: 2, ..SignalNeeds::default() };
    assert!(steps.meter(1, 0).is_none());
}
