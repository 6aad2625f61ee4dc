//! What reads and writes both work with.
//!
//! For: one argument where a part needs the others. Must never know: the way of reads and writes.

use super::contents::CacheContents;
use super::destager::Destager;
use super::division::DriveDivision;
use super::ids::PoolId;
use super::jobs::DestageJob;
use super::traffic::Traffic;
use cachewright_cache::Quotas;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::Policy;
use cachewright_types::{BlockId, TenantId};

/// The pages in the cache, their way to flash, and the division of the space.
pub struct DriveCacheParts<P> {
    /// Pages in the cache.
    pub contents: CacheContents<P>,
    /// Commands, memory and flash.
    pub traffic: Traffic,
    /// Pages on their way to flash.
    pub destager: Destager,
    /// How the space is divided.
    pub division: DriveDivision,
}

impl<P: Policy> DriveCacheParts<P> {
    /// A page has left the cache; a dirty one goes to flash.
    #[inline]
    pub fn evict(&mut self, now: u64, pool: PoolId, id: BlockId, dirty: bool) {
        self.destager.evict(now, pool, id, dirty, &mut self.contents, &mut self.traffic);
    }

    /// A page of a tenant is about to come in.
    #[inline]
    pub fn make_space(&mut self, now: u64, tenant: TenantId) {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.division.make_space(now, tenant, contents, traffic, &mut self.destager);
    }

    /// A pool may use less space than it has.
    #[inline]
    pub fn give_unused(&mut self, pool: PoolId) {
        self.division.give_unused(pool, &mut self.contents);
    }

    /// Writes a page to flash while its data comes in.
    #[inline]
    pub fn pass_through(&mut self, tenant: TenantId, id: BlockId, part: &PagePart) {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.destager.pass_through(tenant, id, part, contents, traffic);
    }

    /// Writes back pages where too many are dirty.
    #[inline]
    pub fn level(&mut self, now: u64, pool: PoolId) {
        self.destager.level(now, pool, &mut self.contents, &mut self.traffic);
    }

    /// Changes the division of the cache; false if it is of another kind.
    pub fn divide(&mut self, now: u64, quotas: &Quotas) -> bool {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.division.divide(now, quotas, contents, traffic, &mut self.destager)
    }

    /// Flash has a page. Whether it counted against the limit of its pool.
    pub fn destaged(&mut self, now: u64, job: &DestageJob) -> bool {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        if job.given_up {
            self.division.page_left(now, job.pool, contents, traffic, &mut self.destager);
            return false;
        }
        if self.destager.destaged(job, contents) {
            self.division.give_unused(job.pool, contents);
        }
        true
    }

    /// Every part holds what it promises.
    pub fn audit(&self) -> Result<(), String> {
        self.contents.audit()?;
        self.traffic.audit()?;
        self.division.audit(&self.contents, &self.traffic)?;
        self.contents.pools().try_for_each(|pool| self.destager.audit(pool, &self.traffic))
    }
}
