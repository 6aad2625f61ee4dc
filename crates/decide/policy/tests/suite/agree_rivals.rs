//! The published rivals answer each access of random traces as their naive models do.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::agree_ghosts::agree;
use crate::rival_models::cachesack::Sack;
use crate::rival_models::cacheus::Experts;
use crate::rival_models::clock2q_plus::WindowedClock;
use crate::rival_models::gl_cache::GroupLevel;
use crate::rival_models::lhd::Density;
use crate::rival_models::lrb::Relaxed;
use crate::rival_models::merlin::FilterStagingCore;
use crate::rival_models::mq::Queues;
use crate::rival_models::s4_fifo::{FourQueues, Thresholds};
use crate::rival_models::slru::SegmentLists;
use crate::rival_models::three_l_cache::{Rates, Rounds};
use crate::rival_models::w_tiny_lfu::Window;

use cachewright_types::Value;

#[test]
fn slru_is_a_list_per_segment() {
    assert!(agree("slru", &[], |c| SegmentLists::new(c, 2, 4 * c / 5, false)) > 10_000);
    let three = [("segments", Value::Int(3)), ("protected_share", Value::Float(0.5))];
    assert!(agree("slru", &three, |c| SegmentLists::new(c, 3, c / 4, false)) > 10_000);
    let fill = [("segments", Value::Int(5)), ("fill_upper", Value::Bool(true))];
    assert!(agree("slru", &fill, |c| SegmentLists::new(c, 5, c / 5, true)) > 10_000);
}

#[test]
fn w_tinylfu_is_a_window_before_a_contest() {
    assert!(agree("w-tinylfu", &[], |c| Window::new(c, (c / 100).max(1), true)) > 10_000);
    let open = [("window", Value::Float(0.2)), ("doorkeeper", Value::Bool(false))];
    assert!(agree("w-tinylfu", &open, |c| Window::new(c, (c / 5).max(1), false)) > 10_000);
}

#[test]
fn lhd_is_a_table_of_densities() {
    let often = [("interval", Value::Int(400)), ("explorers", Value::Float(0.1))];
    assert!(agree("lhd", &often, |c| Density::new(c, 32, 400, 0.1)) > 10_000);
    let few = [("interval", Value::Int(1000)), ("candidates", Value::Int(3))];
    assert!(agree("lhd", &few, |c| Density::new(c, 3, 1000, 0.01)) > 10_000);
}

#[test]
fn cacheus_is_two_experts_with_regrets() {
    assert!(agree("cacheus", &[], Experts::new) > 10_000);
}

#[test]
fn lrb_is_relaxed_belady_by_trees() {
    let small = [("candidates", 8), ("batch", 300), ("trees", 4)];
    let small = small.map(|(key, value)| (key, Value::Int(value)));
    assert!(agree("lrb", &small, |c| Relaxed::new(c, 8, 300, 4)) > 10_000);
}

#[test]
fn three_l_cache_is_rounds_of_predictions() {
    let three_l = |drawn_per_victim, batch, trees, widen_after| {
        let settings = [
            ("drawn_per_victim", Value::Int(drawn_per_victim)),
            ("batch", Value::Int(batch)),
            ("trees", Value::Int(trees)),
            ("widen_after", Value::Int(widen_after)),
        ];
        let rates = Rates {
            drawn_per_victim: drawn_per_victim as usize,
            batch: batch as usize,
            trees: trees as usize,
            widen_after: widen_after as u64,
        };
        agree("3l-cache", &settings, |capacity| Rounds::new(capacity, rates))
    };
    assert!(three_l(2, 300, 4, 1_000_000) > 10_000);
    assert!(three_l(4, 100, 2, 50) > 10_000);
}

#[test]
fn gl_cache_is_a_list_of_groups() {
    let small = [("group", Value::Int(3)), ("trees", Value::Int(4))];
    assert!(agree("gl-cache", &small, |c| GroupLevel::new(c, 3, 8, 4)) > 10_000);
}

#[test]
fn cachesack_is_a_knapsack_of_categories() {
    assert!(agree("cachesack", &[], |c| Sack::new(c, 2.0, 2.0, 0.1)) > 5_000);
    let dear = [("write_price", Value::Float(1.5)), ("every", Value::Float(5.0))];
    assert!(agree("cachesack", &dear, |c| Sack::new(c, 2.0, 5.0, 1.5)) > 100);
    let forgetful = [("ghosts", Value::Float(0.5)), ("write_price", Value::Float(0.25))];
    assert!(agree("cachesack", &forgetful, |c| Sack::new(c, 0.5, 2.0, 0.25)) > 1_000);
}

#[test]
fn clock2q_plus_is_a_clock_behind_a_window() {
    assert!(
        agree("clock2q-plus", &[], |c| WindowedClock::new(c, c / 10, 0.5, 9 * c / 10)) > 10_000
    );
    let wide = [("small_share", Value::Float(0.5)), ("window_share", Value::Float(0.3))];
    assert!(
        agree("clock2q-plus", &wide, |c| WindowedClock::new(c, c / 2, 0.3, 9 * c / 10)) > 10_000
    );
}

#[test]
fn merlin_is_four_lists_with_a_guard() {
    assert!(agree("merlin", &[], |c| FilterStagingCore::new(c, c, 2 * c, 32)) > 10_000);
    let short = [
        ("ghost_share", Value::Float(0.5)),
        ("history", Value::Float(1.0)),
        ("halve_every", Value::Int(2)),
    ];
    assert!(agree("merlin", &short, |c| FilterStagingCore::new(c, c / 2, c, 2)) > 10_000);
    let none = [("ghost_share", Value::Float(0.0)), ("history", Value::Float(0.0))];
    assert!(agree("merlin", &none, |c| FilterStagingCore::new(c, 0, 0, 32)) > 10_000);
}

#[test]
fn mq_is_a_list_per_power_of_two() {
    assert!(agree("mq", &[], |c| Queues::new(c, 8, 10_000, 4 * c)) > 10_000);
    let short =
        [("lists", Value::Int(4)), ("lifetime", Value::Int(30)), ("history", Value::Float(0.5))];
    assert!(agree("mq", &short, |c| Queues::new(c, 4, 30, c / 2)) > 10_000);
}

#[test]
fn s4_fifo_is_three_lists_with_thresholds() {
    let s4 = |small: f64, skip: f64, ghosts: f64, promote_hits, ghost_hits| {
        let settings = [
            ("choose", Value::Bool(false)),
            ("small_share", Value::Float(small)),
            ("skip_share", Value::Float(skip)),
            ("ghost_share", Value::Float(ghosts)),
            ("promote_hits", Value::Int(promote_hits)),
            ("ghost_hits", Value::Int(ghost_hits)),
        ];
        let part = |share: f64, blocks: usize| (share * blocks as f64) as usize;
        agree("s4-fifo", &settings, |capacity| {
            let small = part(small, capacity).max(1);
            let (skip, ghosts) = (part(skip, small), part(ghosts, capacity));
            let (promote_hits, ghost_hits) = (promote_hits as u32, ghost_hits as u32);
            FourQueues::new(Thresholds { capacity, small, skip, ghosts, promote_hits, ghost_hits })
        })
    };
    assert!(s4(0.1, 0.0, 0.9, 2, 0) > 10_000);
    assert!(s4(0.5, 0.25, 0.9, 1, 1) > 10_000);
    assert!(s4(0.3, 0.5, 3.0, 2, 2) > 10_000);
}
