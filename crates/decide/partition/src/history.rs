//! What partitioners remember from interval to interval: averaged curves, idle tenants, and the
//! last division, from which the next one departs.

use crate::{TenantView, share};
use cachewright_curve::Curve;
use cachewright_snapshot::SnapshotValue;

/// Knots kept of each interval's curve when it is averaged.
pub const KNOTS: usize = 512;

/// The miss-ratio curves of the tenants, averaged so that partitioners do not follow noise: one per
/// tenant, nothing before its first.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Averages {
    curves: Vec<Option<Curve>>,
}

impl Averages {
    /// Adds the curves of the last interval to the averages. Earlier intervals count for
    /// `share_of_past` (0 to 1), except those before a tenant's first access. The average of an
    /// idle tenant fades. If all tenants are idle, nothing changes.
    pub fn learn(&mut self, tenants: &[TenantView], share_of_past: f64) {
        self.curves.resize(tenants.len(), None);
        if tenants.iter().all(|tenant| tenant.accesses == 0) && self.all().is_some() {
            return;
        }
        for (average, tenant) in self.curves.iter_mut().zip(tenants) {
            let Some(curve) = tenant.signals.curves.map(|curves| &curves.all) else { continue };
            *average = Some(match average {
                Some(past) if past.accesses() > 0 => curve.blended(past, share_of_past, KNOTS),
                _ => curve.resampled(KNOTS),
            });
        }
    }

    /// All curves, once every tenant has one.
    pub fn all(&self) -> Option<Vec<&Curve>> {
        self.curves.iter().map(Option::as_ref).collect()
    }
}

/// Latest intervals without an access, by tenant.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Idle {
    intervals: Vec<u32>,
    begun: bool,
}

impl Idle {
    /// Counts the interval that ended; the first call is the start of the run, before any interval.
    pub fn learn(&mut self, tenants: &[TenantView]) {
        self.intervals.resize(tenants.len(), 0);
        for (idle, tenant) in self.intervals.iter_mut().zip(tenants).filter(|_| self.begun) {
            *idle = if tenant.accesses > 0 { 0 } else { idle.saturating_add(1) };
        }
        self.begun = true;
    }

    /// Whether the tenant has been idle for `limit` intervals or more; a limit of 0 is none.
    pub fn beyond(&self, tenant: usize, limit: u32) -> bool {
        limit > 0 && self.intervals.get(tenant).is_some_and(|idle| *idle >= limit)
    }
}

/// When a division changes, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeLimits {
    /// Largest share of the cache that one division moves, 0 to 1; 1 is no limit.
    pub moved: f64,
    /// Smallest fall of the cost, as a part of it, that changes the division; 0 is no limit.
    pub gain: f64,
}

/// Divisions that change only where the change is worth it, and by a bounded part at a time: moved
/// blocks lose their contents, which no curve shows.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Steady {
    last: Vec<u32>,
    absent: Vec<bool>,
}

impl Steady {
    /// The division between the last one and `next` within the limits. Where tenants come or go,
    /// or the cache changes its size, it is `next`. `cost` is that of a division.
    pub fn follow(
        &mut self,
        tenants: &[TenantView],
        next: Vec<u32>,
        limits: ChangeLimits,
        cost: impl Fn(&[u32]) -> f64,
    ) -> Vec<u32> {
        let sum = |quotas: &[u32]| quotas.iter().copied().map(u64::from).sum::<u64>();
        let same = self.last.len() == next.len()
            && sum(&self.last) == sum(&next)
            && self.absent.iter().copied().eq(tenants.iter().map(|tenant| tenant.absent));
        if !same {
            self.absent = tenants.iter().map(|tenant| tenant.absent).collect();
            self.last = next;
        } else if limits.gain <= 0.0 || is_worth(cost(&self.last), cost(&next), limits.gain) {
            self.last = share::towards(&self.last, &next, limits.moved);
        }
        self.last.clone()
    }
}

/// Whether the cost falls by the part `gain` of what it is now.
fn is_worth(now: f64, next: f64, gain: f64) -> bool {
    now - next >= gain * now && next < now
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cost of a division: the first tenant's blocks are free, the second's cost 1 each.
    fn cost(quotas: &[u32]) -> f64 {
        f64::from(quotas[1])
    }

    fn follow(steady: &mut Steady, next: [u32; 2], limits: ChangeLimits) -> Vec<u32> {
        steady.follow(&[TenantView::default(); 2], next.to_vec(), limits, cost)
    }

    #[test]
    fn a_division_moves_a_bounded_part_where_the_gain_is_large_enough() {
        let limits = ChangeLimits { moved: 0.1, gain: 0.5 };
        let mut steady = Steady::default();
        assert_eq!(follow(&mut steady, [20, 80], limits), [20, 80], "the first");
        assert_eq!(follow(&mut steady, [59, 41], limits), [20, 80], "from 80 to 41: 49 %");
        assert_eq!(follow(&mut steady, [60, 40], limits), [30, 70], "half, a tenth at a time");
        assert_eq!(follow(&mut steady, [70, 40], limits), [70, 40], "another cache");
    }

    #[test]
    fn without_limits_every_division_is_taken_even_a_worse_one() {
        let limits = ChangeLimits { moved: 1.0, gain: 0.0 };
        let mut steady = Steady::default();
        for next in [[50, 50], [0, 100], [100, 0], [1, 99]] {
            assert_eq!(follow(&mut steady, next, limits), next);
        }
    }

    #[test]
    fn tenants_that_leave_lose_their_blocks_at_once() {
        let limits = ChangeLimits { moved: 0.01, gain: 0.9 };
        let mut steady = Steady::default();
        follow(&mut steady, [50, 50], limits);
        let gone = TenantView { absent: true, ..TenantView::default() };
        let views = [TenantView::default(), gone];
        assert_eq!(steady.follow(&views, vec![100, 0], limits, cost), [100, 0]);
    }
}
