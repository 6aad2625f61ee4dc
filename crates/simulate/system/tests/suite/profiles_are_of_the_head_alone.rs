//! A profile is what a tenant's head alone would have hit, and nothing of the others.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::WriteMode;
use cachewright_policy::Registered;
use cachewright_policy::lru::Lru;
use cachewright_system::profile::{FirstAccesses, PolicyInputs};
use cachewright_system::{FutureKind, Recording};
use cachewright_testkit::machines::recorded;
use cachewright_types::declare::NoSettings;
use cachewright_types::{Seed, TenantId};

fn reads(blocks: impl Iterator<Item = u64>) -> String {
    let line = |(time, block): (usize, u64)| format!("1,R,{},4096,{time}\n", block * 4096);
    blocks.enumerate().map(line).collect()
}

fn profile(recording: &Recording, tenant: u16, share: f64, blocks: u32) -> f64 {
    let make = |capacity| Lru::new(capacity, &NoSettings {}, Seed(1));
    let wants = |future| PolicyInputs { future, requests: false };
    let head = |future| FirstAccesses::recorded(recording, TenantId(tenant), share, wants(future));
    let ratio = |future| head(future).hit_ratio(blocks, WriteMode::WriteBack, make, |_| true);
    let ratio = |future| ratio(future).unwrap();
    let blind = ratio(FutureKind::Nothing);
    for future in [FutureKind::NextUse, FutureKind::Benefit] {
        assert_eq!(blind, ratio(future), "lru does not look ahead");
    }
    blind
}

#[test]
fn a_loop_of_four_blocks_hits_from_four_blocks_on() {
    // The first half walks around four blocks, the second never comes back.
    let a = reads((0..40).map(|at| at % 4).chain(100..140));
    let b = reads((0..80).map(|at| at * 7));
    let recording = recorded(&[a, b]);
    assert_eq!(profile(&recording, 0, 0.5, 3), 0.0);
    assert_eq!(profile(&recording, 0, 0.5, 4), 36.0 / 40.0);
    assert_eq!(profile(&recording, 0, 1.0, 4), 36.0 / 80.0);
    assert_eq!(profile(&recording, 1, 1.0, 100), 0.0);
    assert_eq!(
        FirstAccesses::recorded(&recording, TenantId(1), 0.1, PolicyInputs::default()).len(),
        8
    );
    assert_eq!(profile(&recording, 0, 0.0, 4), 0.0);
    let all = PolicyInputs { future: FutureKind::NextUse, requests: true };
    assert!(FirstAccesses::recorded(&recording, TenantId(9), 1.0, all).is_empty());
}
