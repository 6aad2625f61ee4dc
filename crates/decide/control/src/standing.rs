//! Where tenants stand in a cache: what a division is decided from, and engines that follow one.
//!
//! For: one division over one engine, or over several whose standings are summed. Must never know:
//! partitioners, signals. Units: blocks.

use crate::control::Control;
use cachewright_cache::{Engine, Left};
use cachewright_measure::Counts;
use cachewright_policy::Policy;
use cachewright_signal::Signals;
use cachewright_types::TenantId;

/// Where a tenant stands at a division.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Its counters since the cache was opened.
    pub counts: Counts,
    /// Its quota.
    pub quota_blocks: u32,
    /// Blocks that it holds.
    pub held_blocks: u32,
}

impl Standing {
    /// Adds where the tenant stands in another engine.
    pub fn add(&mut self, other: &Standing) {
        self.counts.add(&other.counts);
        self.quota_blocks = self.quota_blocks.saturating_add(other.quota_blocks);
        self.held_blocks = self.held_blocks.saturating_add(other.held_blocks);
    }
}

/// Where each of so many tenants stands in an engine.
pub fn standings<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<Standing> {
    let standing = |tenant: usize| {
        let id = TenantId(tenant as u16);
        let (quota_blocks, held_blocks) = (engine.quota(id), engine.occupancy(id));
        Standing { counts: *engine.counts(id), quota_blocks, held_blocks }
    };
    (0..tenants).map(standing).collect()
}

/// Divides an engine anew at the end of an interval in which `signals` were measured; blocks that
/// leave are reported to `left` as in [`Engine::set_quotas`].
pub fn divide<P: Policy>(
    control: &mut Control,
    engine: &mut Engine<P>,
    signals: &Signals,
    left: Left<'_>,
) {
    let now = standings(engine, control.tenants());
    if let Some(quotas) = control.next(&now, signals) {
        let kept = engine.set_quotas(&quotas, left);
        debug_assert!(kept, "a partitioner keeps to one kind of quotas");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_add_up_to_one_standing() {
        let counts = Counts { reads: 3, read_hits: 1, ..Counts::default() };
        let mut sum = Standing { counts, quota_blocks: 10, held_blocks: 7 };
        sum.add(&Standing { counts, quota_blocks: u32::MAX, held_blocks: 2 });
        assert_eq!((sum.counts.reads, sum.counts.hits()), (6, 2));
        assert_eq!((sum.quota_blocks, sum.held_blocks), (u32::MAX, 9));
    }
}
