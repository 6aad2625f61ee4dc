//! Transactions of flash that the cache asked for.
//!
//! For: what each is about, by a number that is given out again once it is done. Must never know:
//! memory, flash. Units: sectors. Nothing is allocated per job.

use super::ids::{CacheJobId, PoolId, Stamp};
use cachewright_device::ssd::host::Slot;
use cachewright_types::{BlockId, TenantId};

/// A page of flash that is to stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillJob {
    /// The command that reads it.
    pub slot: Slot,
    /// Where it stays.
    pub pool: PoolId,
    /// Its id there.
    pub id: BlockId,
    /// Which life of the id.
    pub life: Stamp,
    /// Sectors that come.
    pub sectors: u64,
}

/// A page of memory on its way to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestageJob {
    /// Its pool.
    pub pool: PoolId,
    /// Its id there.
    pub id: BlockId,
    /// Which life of the id; none when the page has left the cache.
    pub life: Stamp,
    /// Which write of it.
    pub version: Stamp,
    /// Its tenant.
    pub tenant: TenantId,
    /// Group of channels.
    pub group: u16,
    /// Page of the group.
    pub page: u32,
    /// Sectors that go.
    pub sectors: u64,
    /// Its pool gives up space with it: it is in memory, not on its way there as others come in.
    pub given_up: bool,
}

/// A transaction of flash that the cache asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheJob {
    /// A page comes to memory.
    Fill(FillJob),
    /// A page goes to flash.
    Destage(DestageJob),
}

/// Jobs by number.
#[derive(Clone, Debug, Default)]
pub struct CacheJobs {
    jobs: Vec<Option<CacheJob>>,
    free: Vec<CacheJobId>,
}

impl CacheJobs {
    /// Adds a job.
    pub fn insert(&mut self, job: CacheJob) -> CacheJobId {
        match self.free.pop() {
            Some(id) => {
                self.jobs[id.0 as usize] = Some(job);
                id
            }
            None => {
                self.jobs.push(Some(job));
                CacheJobId(self.jobs.len() as u32 - 1)
            }
        }
    }

    /// A job.
    pub fn get(&self, id: CacheJobId) -> Option<CacheJob> {
        self.jobs.get(id.0 as usize).copied().flatten()
    }

    /// Takes a job away.
    pub fn remove(&mut self, id: CacheJobId) -> Option<CacheJob> {
        let job = self.jobs.get_mut(id.0 as usize)?.take();
        if job.is_some() {
            self.free.push(id);
        }
        job
    }

    /// Pages of a pool on their way to flash.
    pub fn destages(&self, pool: PoolId) -> impl Iterator<Item = &DestageJob> {
        self.jobs.iter().flatten().filter_map(move |job| match job {
            CacheJob::Destage(job) if job.pool == pool => Some(job),
            _ => None,
        })
    }
}
