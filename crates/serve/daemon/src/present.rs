//! A partitioner among the tenants that are served, where others were removed.
//!
//! For: servers whose tenants keep their numbers when others go. Must never know: what divides.
//! Units: blocks. The partitioner knows the tenants that are served and no others, as at a start of
//! the same stack. Those that were removed have no block.

use cachewright_partition::{
    CacheDivision, CurveKind, Models, Partitioner, Requirement, TenantView,
};

/// Divides among some of the tenants.
pub struct Present {
    inner: Box<dyn Partitioner>,
    absent: Vec<bool>,
}

impl Present {
    /// A partitioner `inner` of the tenants that are not `absent`.
    pub fn among(inner: Box<dyn Partitioner>, absent: &[bool]) -> Present {
        Present { inner, absent: absent.to_vec() }
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

impl Partitioner for Present {
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
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use cachewright_partition::{boxed, entries};
    use cachewright_types::Seed;

    const TOTAL: u32 = 120;

    fn made(name: &str, tenants: usize) -> Box<dyn Partitioner> {
        boxed(name, &[], tenants, Seed(1)).unwrap()
    }

    #[test]
    fn quotas_are_those_of_the_tenants_that_are_served_alone() {
        let mut divided = 0;
        for entry in entries() {
            let (mut alone, inner) = (made(entry.name, 2), made(entry.name, 2));
            let mut among = Present::among(inner, &[true, false, true, false]);
            for interval in 0..3 {
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
            }
        }
        assert!(divided > 20);
    }
}
