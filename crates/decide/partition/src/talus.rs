//! Talus: how each tenant's quota is split in two shadow partitions, so that its misses lie on the
//! convex hull of its curve.
//!
//! For: every partitioner that reads curves, which then divides by hulls. Must never know: caches,
//! policies. Units: blocks. Source: Beckmann and Sanchez, Talus (HPCA 2015), sections 3 and 4.
//!
//! A quota s lies between two corners of the hull, a and b. The first partition gets the share
//! r = (b - s) / (b - a) of the tenant's blocks and r a blocks of cache, the second the others.
//! Each then works as a cache of a or of b blocks on a sample of the stream. The paper lowers the
//! second partition's share of the stream by 5 %, because a size just below a cliff costs far more
//! than one above; so does [`MARGIN`]. Ours: curves are averaged over intervals as in `hull`.
//!
//! Limit: the number of blocks that a hash takes varies by its square root. For a loop of less than
//! about 1,000 blocks that is more than the margin, and a partition may miss its own cliff.

use crate::TenantView;
use crate::history::Averages;
use cachewright_curve::hull::Hull;
use cachewright_curve::{Curve, Curves, Provenance};
use cachewright_snapshot::SnapshotValue;

/// By how much the second partition is larger than its share of the stream asks for.
const MARGIN: f64 = 0.05;
/// Share of earlier intervals in the averaged curves.
const SMOOTHING: f64 = 0.5;

/// The split of a tenant's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
pub struct QuotaSplit {
    /// Share of the tenant's blocks that belong to the first partition, 0 to 1.
    pub share: f64,
    /// Blocks of the first partition.
    pub blocks: u32,
}

/// The splits of all tenants.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Talus {
    averages: Averages,
}

impl Talus {
    /// Learns from the curves of the interval that ended.
    pub fn learn(&mut self, tenants: &[TenantView]) {
        self.averages.learn(tenants, SMOOTHING);
    }

    /// The split of each tenant's quota; nothing before all tenants have curves.
    pub fn splits(&self, quotas: &[u32]) -> Vec<QuotaSplit> {
        let curves = self.averages.all().unwrap_or_default();
        curves
            .iter()
            .zip(quotas)
            .map(|(curve, quota)| split(&Hull::minorant(curve), *quota))
            .collect()
    }
}

/// The split of a quota under a hull.
fn split(hull: &Hull, quota: u32) -> QuotaSplit {
    let sizes = hull.sizes();
    let right = sizes.partition_point(|size| *size < quota);
    let (Some(low), Some(high)) = (right.checked_sub(1).map(|left| sizes[left]), sizes.get(right))
    else {
        return QuotaSplit::default();
    };
    if *high == quota {
        return QuotaSplit::default();
    }
    let width = f64::from(high - low);
    let share = f64::from(high - quota) / width;
    let blocks = ((share * f64::from(low)).round() as u32).min(quota);
    QuotaSplit { share: 1.0 - (1.0 - share) / (1.0 + MARGIN), blocks }
}

/// The curves as a tenant has them under Talus: between corners of the hull of all accesses, reads
/// and writes are those of both corners in proportion.
pub fn convex(curves: &Curves) -> Curves {
    let hull = Hull::minorant(&curves.all);
    let through = |curve: &Curve| {
        let knots = hull.sizes().iter().map(|size| (*size, curve.misses(*size)));
        Curve::from_knots(knots, curve.accesses(), Provenance::clone(curve.provenance()))
    };
    let Curves { all, reads, writes } = curves;
    Curves { all: through(all), reads: through(reads), writes: through(writes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cliff() -> Curve {
        // The paper's kind of curve: a plateau of 60 misses from 20 blocks on, a cliff to 0 at 100.
        let knots = [(20, 60.0), (99, 60.0), (100, 0.0)];
        Curve::from_knots(knots, 100, Provenance::Exact)
    }

    #[test]
    fn a_quota_on_a_plateau_is_split_between_the_ends() {
        let hull = Hull::minorant(&cliff());
        assert_eq!(hull.sizes(), [0, 20, 100]);
        // Half way from 20 to 100: half of the stream has 10 blocks, which works as 20, the other
        // half 50, which works as 100 for 5 % less of the stream.
        let QuotaSplit { share, blocks } = split(&hull, 60);
        assert_eq!(blocks, 10);
        assert!((share - (1.0 - 0.5 / 1.05)).abs() < 1e-12);
        // On a corner and beyond the last there is one partition.
        for quota in [0, 20, 100, 500] {
            assert_eq!(split(&hull, quota), QuotaSplit::default(), "{quota}");
        }
    }

    #[test]
    fn reads_and_writes_follow_the_corners_of_both_together() {
        let reads = Curve::from_knots([(60, 10.0), (100, 0.0)], 50, Provenance::Exact);
        let writes = Curve::from_knots([], 50, Provenance::Exact);
        let convex = convex(&Curves { all: cliff(), reads, writes });
        assert_eq!(convex.all.misses(60), 30.0);
        let expected = (50.0 - 40.0 * 20.0 / 60.0) / 2.0;
        assert!((convex.reads.misses(60) - expected).abs() < 1e-9, "{expected}");
    }

    proptest! {
        /// The misses of both partitions, each on the curve at the size that it works as.
        #[test]
        fn the_parts_miss_as_the_hull(
            knots in prop::collection::btree_map(1_u32..2_000, 0.0_f64..1.0, 1..12),
            quota in 0_u32..2_000,
        ) {
            let falls = knots.iter().scan(1e6, |misses, (size, share)| {
                *misses *= share;
                Some((*size, *misses))
            });
            let curve = Curve::from_knots(falls, 1_000_000, Provenance::Exact);
            let hull = Hull::minorant(&curve);
            let QuotaSplit { share, blocks } = split(&hull, quota);
            prop_assert!((0.0..=1.0).contains(&share) && blocks <= quota);
            // Without the margin: what the second partition would get of the stream.
            let rest = (1.0 - share) * (1.0 + MARGIN);
            let part = |share: f64, size: u32| match share > 1e-9 {
                true => share * hull.misses((f64::from(size) / share).round() as u32),
                false => 0.0,
            };
            if share > 0.0 {
                let misses = part(1.0 - rest, blocks) + part(rest, quota - blocks);
                // Whole blocks: a block more or less in each part, where the hull is steepest.
                let near = 2.0 * (hull.misses(0) - hull.misses(1)) + 1.0;
                prop_assert!((misses - hull.misses(quota)).abs() <= near);
            }
        }
    }
}
