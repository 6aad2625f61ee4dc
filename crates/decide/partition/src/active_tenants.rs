//! A division among some of the tenants of a cache: others were removed while it served.

use crate::{CacheDivision, CurveKind, Models, Partitioner, Requirement, TenantView};
use cachewright_snapshot::Snapshot;

/// A partitioner that knows none of the tenants that were removed.
#[derive(Snapshot)]
pub struct ActiveTenants {
    inner: Box<dyn Partitioner>,
    #[snapshot(settings)]
    absent: Vec<bool>,
}

impl ActiveTenants {
    /// A partitioner `inner` of the tenants that are not `absent`.
    pub fn among(inner: Box<dyn Partitioner>, absent: &[bool]) -> ActiveTenants {
        ActiveTenants { inner, absent: absent.to_vec() }
    }

    /// Those of the tenants that are served.
    fn served<T: Copy>(&self, each: &[T]) -> Vec<T> {
        let pairs = each.iter().zip(&self.absent);
        pairs.filter(|(_, absent)| !**absent).map(|(own, _)| *own).collect()
    }

    /// Those of all tenants: `removed` of each that was removed.
    fn spread<T: Copy>(&self, served: Vec<T>, removed: T) -> Vec<T> {
        let mut served = served.into_iter();
        let own = |absent: &bool| if *absent { Some(removed) } else { served.next() };
        self.absent.iter().map_while(own).collect()
    }
}

impl Partitioner for ActiveTenants {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        match self.inner.divide(&self.served(tenants), total_blocks) {
            CacheDivision::PerTenant(quotas) => CacheDivision::PerTenant(self.spread(quotas, 0)),
            CacheDivision::Pools { pool_of, blocks } => {
                CacheDivision::Pools { pool_of: self.spread(pool_of, 0), blocks }
            }
            whole @ (CacheDivision::Shared | CacheDivision::Elastic) => whole,
        }
    }

    fn floor_blocks(&self, _tenants: usize, _total_blocks: u32) -> u32 {
        0
    }

    fn learn(&mut self, models: &Models) -> Result<(), String> {
        self.inner.learn(models)
    }

    fn steps(&self) -> u32 {
        self.inner.steps()
    }

    fn curves(&self) -> CurveKind {
        self.inner.curves()
    }

    fn reads_profiles(&self) -> bool {
        self.inner.reads_profiles()
    }

    fn profiles_on_devices(&self) -> bool {
        self.inner.profiles_on_devices()
    }

    fn requirements(&self, tenants: &[TenantView], quotas: &[u32]) -> Vec<Requirement> {
        let served = self.inner.requirements(&self.served(tenants), &self.served(quotas));
        self.spread(served, Requirement::default())
    }

    fn goal_blocks(&self, tenants: &[TenantView]) -> Vec<Option<u32>> {
        match self.inner.goal_blocks(&self.served(tenants)) {
            unknown if unknown.is_empty() => unknown,
            served => self.spread(served, None),
        }
    }

    fn granules(&self) -> u32 {
        self.inner.granules()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{boxed, entries};
    use cachewright_types::Seed;

    const TOTAL: u32 = 120;
    const ABSENT: [bool; 4] = [true, false, true, false];

    fn made(name: &str, tenants: usize) -> Box<dyn Partitioner> {
        boxed(name, &[], tenants, Seed(1)).unwrap()
    }

    #[test]
    fn quotas_are_those_of_the_tenants_that_are_served_alone() {
        let mut divided = 0;
        for entry in entries() {
            let (mut alone, inner) = (made(entry.name, 2), made(entry.name, 2));
            let mut among = ActiveTenants::among(inner, &ABSENT);
            for interval in 0..4 {
                let view = |accesses: u64| TenantView {
                    interval,
                    accesses,
                    hits: accesses / 2,
                    quota_blocks: TOTAL / 2,
                    ..TenantView::default()
                };
                let [gone, first, second] = [900, 100, 10].map(view);
                let expected = alone.divide(&[first, second], TOTAL);
                let found = among.divide(&[gone, first, gone, second], TOTAL);
                match (expected, found) {
                    (CacheDivision::PerTenant(served), CacheDivision::PerTenant(all)) => {
                        divided += 1;
                        assert_eq!(all, [0, served[0], 0, served[1]], "{}", entry.name);
                    }
                    (CacheDivision::Pools { pool_of, blocks }, found) => {
                        let all = vec![0, pool_of[0], 0, pool_of[1]];
                        assert_eq!(found, CacheDivision::Pools { pool_of: all, blocks });
                    }
                    (expected, found) => assert_eq!(expected, found, "{}", entry.name),
                }
                // It goes on from what was saved.
                let saved = cachewright_snapshot::saved(&among).unwrap();
                among = ActiveTenants::among(made(entry.name, 2), &ABSENT);
                cachewright_snapshot::restore(&mut among, &saved).unwrap();
            }
        }
        assert!(divided > 20);
    }
}
