//! A partitioner whose quotas wander, for worlds whose cache is divided while it serves.
//!
//! For: blocks that leave and come back all the time. Must never know: requests. Units: blocks.

use cachewright_control::{Control, SignalNeeds};
use cachewright_live::blocks::Division;
use cachewright_partition::{CacheDivision, Partitioner, TenantConstants, TenantView};
use cachewright_types::{Rng, Seed};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Divides at random; each tenant keeps at least one block.
struct Wandering(Rng);

cachewright_snapshot::refused!(Wandering: "a partitioner of this test");

impl Partitioner for Wandering {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let (mut quotas, mut rest) = (Vec::new(), total_blocks);
        for others in (1..tenants.len() as u32).rev() {
            let quota = 1 + self.0.below(u64::from(rest - others)) as u32;
            quotas.push(quota);
            rest -= quota;
        }
        quotas.push(rest);
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, _tenants: usize, _total_blocks: u32) -> u32 {
        1
    }
}

/// Divides in equal parts, and counts how often.
struct Counting(Arc<AtomicU64>);

cachewright_snapshot::refused!(Counting: "a partitioner of this test");

impl Partitioner for Counting {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        self.0.fetch_add(1, Ordering::Relaxed);
        CacheDivision::PerTenant(vec![total_blocks / tenants.len() as u32; tenants.len()])
    }

    fn floor_blocks(&self, _tenants: usize, _total_blocks: u32) -> u32 {
        1
    }
}

/// Divides so many blocks in equal parts every `interval_ns`; `divided` is how often.
pub fn counting(
    tenants: usize,
    total_blocks: u32,
    interval_ns: u64,
    divided: &Arc<AtomicU64>,
) -> Division {
    let partitioner = Box::new(Counting(Arc::clone(divided)));
    let control =
        Control::new(partitioner, vec![TenantConstants::default(); tenants], total_blocks);
    Division::new(control, SignalNeeds::default(), interval_ns, 12)
}

/// Divides so many blocks among so many tenants every `interval_ns`.
pub fn wandering(tenants: usize, total_blocks: u32, interval_ns: u64) -> Division {
    let partitioner = Box::new(Wandering(Seed(interval_ns).derive("quotas").rng()));
    let control =
        Control::new(partitioner, vec![TenantConstants::default(); tenants], total_blocks);
    Division::new(control, SignalNeeds::default(), interval_ns, 12)
}
