//! Quotas that are split in two shadow partitions each, by the curves of their tenants.
//!
//! For: a control loop whose partitioner divides by hulls. Must never know: which partitioner, who
//! carries a split out. Units: blocks.

use cachewright_curve::Curves;
use cachewright_partition::TenantView;
use cachewright_partition::talus::{QuotaSplit, Talus, convex};

/// What is known of the curves, and the splits of the last division.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowPartitions {
    talus: Talus,
    /// Empty without any.
    splits: Vec<QuotaSplit>,
}

impl ShadowPartitions {
    /// The curves as tenants have them in shadow partitions.
    pub(crate) fn hulls(&self, curves: &[Curves]) -> Vec<Curves> {
        curves.iter().map(convex).collect()
    }

    /// Learns from the curves that tenants had in the interval that ended; then a partitioner sees
    /// them with these hulls.
    pub(crate) fn learn<'a>(&mut self, views: &mut [TenantView<'a>], hulls: &'a [Curves]) {
        self.talus.learn(views);
        for (view, curves) in views.iter_mut().zip(hulls) {
            view.signals.curves = Some(curves);
        }
    }

    /// Splits the quota of each tenant.
    pub(crate) fn split(&mut self, quotas: &[u32]) {
        self.splits = self.talus.splits(quotas);
    }

    /// How the quota of each tenant is split by the last division; empty where it is whole.
    pub(crate) fn splits(&self) -> &[QuotaSplit] {
        &self.splits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::{Curve, Provenance};

    /// A plateau from 2 blocks to 12.
    #[test]
    fn a_quota_on_a_plateau_is_split_and_its_hull_is_seen() {
        let all = Curve::from_knots([(2, 60.0), (11, 60.0), (12, 0.0)], 100, Provenance::Exact);
        let none = || Curve::from_knots([], 0, Provenance::Exact);
        let curves = [Curves { all, reads: none(), writes: none() }];
        let mut shadows = ShadowPartitions::default();
        shadows.split(&[7]);
        assert!(shadows.splits().is_empty(), "nothing is known of the tenant");
        let hulls = shadows.hulls(&curves);
        let mut views = [TenantView::default()];
        views[0].signals.curves = Some(&curves[0]);
        shadows.learn(&mut views, &hulls);
        assert_eq!(views[0].signals.curves.map(|curves| curves.all.misses(7)), Some(30.0));
        shadows.split(&[7]);
        assert_eq!(shadows.splits()[0].blocks, 1, "half of 2");
    }
}
