//! Uniform random overwrites: the simulated write amplification is the one that theory gives.
//!
//! For: greedy, FIFO and d-choices at five sizes of over-provisioning, within 0.5 %. Must never
//! know: separations beyond `none`. Units: ratios; over-provisioning is net of the free reserve.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_ftl::reclaim::by_name;
use cachewright_ftl::separation::none::None;
use cachewright_ftl::{Ftl, Geometry, NoSink, Space, theory};
use cachewright_types::{Seed, Value};

const PAGES: u32 = 131_072;
const BLOCK_PAGES: u32 = 128;
const RESERVE: u32 = 2;
const OVER_PROVISIONING: [f64; 5] = [0.07, 0.0737, 0.1765, 0.28, 0.50];

/// Steady write amplification over ten drive writes, and the true ratio of pages.
fn simulate(over_provisioning: f64, reclaim: &str, pairs: &[(String, Value)]) -> (f64, f64) {
    let data_blocks = f64::from(PAGES) * (1.0 + over_provisioning) / f64::from(BLOCK_PAGES);
    let usable = data_blocks.round() as u32;
    let blocks = usable + RESERVE;
    let space = Space::Fixed { blocks, reserve_blocks: RESERVE, idle_blocks: RESERVE };
    let geometry = Geometry { logical_pages: PAGES, block_pages: BLOCK_PAGES, space };
    let policy = by_name(reclaim, pairs, &geometry, Seed(5)).unwrap();
    let mut ftl = Ftl::new(geometry, None, policy).unwrap();
    let fill: Vec<u32> = (0..PAGES).collect();
    ftl.write_each(&fill, &[], &mut NoSink).unwrap();
    let mut rng = Seed(17).derive(reclaim).rng();
    let mut before = ftl.counts();
    for drive_write in 0..16 {
        if drive_write == 6 {
            before = ftl.counts();
        }
        let pages: Vec<u32> = (0..PAGES).map(|_| rng.below(u64::from(PAGES)) as u32).collect();
        ftl.write_each(&pages, &[], &mut NoSink).unwrap();
    }
    ftl.audit().unwrap();
    let a = f64::from(usable) * f64::from(BLOCK_PAGES) / f64::from(PAGES);
    ((ftl.counts() - before).write_amplification(), a)
}

fn agree(what: &str, simulated: f64, expected: f64) {
    let difference = simulated / expected - 1.0;
    println!("{what}: simulated {simulated:.4}, theory {expected:.4} ({difference:+.3e})");
    assert!(difference.abs() < 0.005, "{what}: simulated {simulated}, theory {expected}");
}

#[test]
fn greedy_meets_its_closed_form() {
    for over_provisioning in OVER_PROVISIONING {
        let (simulated, a) = simulate(over_provisioning, "greedy", &[]);
        let expected = theory::greedy(a, BLOCK_PAGES);
        agree(&format!("greedy at {over_provisioning}"), simulated, expected);
    }
}

#[test]
fn fifo_meets_its_closed_form() {
    for over_provisioning in OVER_PROVISIONING {
        let (simulated, a) = simulate(over_provisioning, "fifo", &[]);
        agree(&format!("fifo at {over_provisioning}"), simulated, theory::fifo(a));
    }
}

#[test]
fn d_choices_meet_the_mean_field() {
    for (over_provisioning, d) in [(0.07, 2), (0.07, 10), (0.28, 1), (0.28, 5)] {
        let pairs = [("d".to_owned(), Value::Int(d))];
        let (simulated, a) = simulate(over_provisioning, "d-choices", &pairs);
        let expected = theory::d_choices(a, BLOCK_PAGES, d as u32);
        agree(&format!("d = {d} at {over_provisioning}"), simulated, expected);
    }
}
