//! Everything that must hold in a drive with a data cache between calls.
//!
//! For: tests and debug builds. Must never know: time. Slow.

use super::DataCache;
use super::destage::Job;
use cachewright_policy::Policy;

impl<P: Policy> DataCache<P> {
    /// The first rule found broken.
    pub(super) fn check(&self) -> Result<(), String> {
        self.engine.audit()?;
        self.dram.audit()?;
        self.flash.audit()?;
        self.check_division()?;
        self.check_elastic()?;
        let (open, counted) = (self.users.open(), self.users.counted());
        if open != counted {
            return Err(format!("{counted} commands are inside, {open} are counted"));
        }
        for (pool, partition) in self.partitions.iter().enumerate() {
            self.check_pages(pool)?;
            let outs = self.jobs.iter().filter_map(|job| match job {
                Job::Out(out) if usize::from(out.pool) == pool && !out.given_up => {
                    Some(out.sectors.count_ones())
                }
                _ => None,
            });
            let sectors: u64 = outs.map(u64::from).sum();
            if sectors != partition.outgoing {
                let counted = partition.outgoing;
                return Err(format!("pool {pool}: {sectors} sectors leave, {counted} are counted"));
            }
            if !partition.held.is_empty() && sectors < self.limit {
                return Err(format!("pool {pool}: writes wait without need"));
            }
        }
        Ok(())
    }

    /// The pages known here are those of the policy.
    fn check_pages(&self, pool: usize) -> Result<(), String> {
        let policy = self.engine.policy(pool);
        let mut alive = 0;
        for id in self.pools[pool].alive() {
            alive += 1;
            if !policy.contains(id) {
                return Err(format!("pool {pool}: page {} is here, not in the cache", id.0));
            }
        }
        if alive == policy.len() {
            Ok(())
        } else {
            Err(format!("pool {pool}: {alive} pages are here, {} in the cache", policy.len()))
        }
    }
}
