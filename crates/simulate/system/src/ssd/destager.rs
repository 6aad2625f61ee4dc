//! Pages on their way to flash: eviction, watermarks, and what follows when flash has a page.
//!
//! A page that leaves memory is read from it first; what is on its way counts against the limit of
//! its pool from the moment it is chosen, unless its space changes hands
//! ([`division`](super::division)). Invariants (audited): sectors under way are those of the jobs.

use super::contents::{CacheContents, CachedPage, PoolId, Stamp};
use super::params::{DataCacheParams, WriteBack};
use super::traffic::{CacheJob, DestageJob, Traffic};
use cachewright_cache::index::BlockAddress;
use cachewright_device::ssd::flash::PageOp;
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::Policy;
use cachewright_types::{BlockId, Bytes, TenantId};

/// What is on its way to flash.
#[derive(Clone, Debug)]
pub struct Destager {
    /// Sectors of write-backs under way, by pool.
    outgoing: Vec<u64>,
    /// Sectors under way at which writes of a pool wait.
    limit: u64,
    sector_bytes: u64,
    write_back: WriteBack,
    /// Shares of dirty pages at which write-back begins and ends (watermark).
    dirty_marks: (f64, f64),
    /// A page stays in the cache once flash has it.
    keeps: bool,
    destaged_pages: u64,
    max_outgoing: u64,
}

impl Destager {
    /// Nothing is under way; writes wait at a limit of so many bytes.
    pub fn new(
        pools: usize,
        params: &DataCacheParams,
        limit_bytes: u64,
        sector_bytes: u64,
    ) -> Destager {
        Destager {
            outgoing: vec![0; pools],
            limit: (limit_bytes / sector_bytes).max(1),
            sector_bytes,
            write_back: params.write_back,
            dirty_marks: (params.dirty_high, params.dirty_low),
            keeps: params.keep_destaged,
            destaged_pages: 0,
            max_outgoing: 0,
        }
    }

    /// Whether less than the limit of a pool is on its way to flash.
    #[inline]
    pub fn accepts(&self, pool: PoolId) -> bool {
        self.outgoing[pool.index()] < self.limit
    }

    /// Counts a page as on its way.
    fn count(&mut self, job: &DestageJob) {
        self.destaged_pages += 1;
        if !job.given_up {
            let outgoing = &mut self.outgoing[job.pool.index()];
            *outgoing += u64::from(job.sectors.count_ones());
            self.max_outgoing = self.max_outgoing.max(*outgoing);
        }
    }

    /// A page has left the cache; a dirty one goes to flash, and a waiter waits until it is there.
    pub fn evict<P: Policy>(
        &mut self,
        now: u64,
        pool: PoolId,
        id: BlockId,
        dirty: bool,
        waiter: Option<Slot>,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
    ) {
        let page = contents.leave(pool, id);
        if dirty {
            let job = job_of(pool, id, &page, contents, traffic);
            let job = DestageJob { life: Stamp::NONE, waiter, ..job };
            self.count(&job);
            if let Some(slot) = waiter {
                traffic.commands.await_victim(slot);
            }
            traffic.read_out(now, job);
        }
        contents.release(pool, id);
    }

    /// A page that has left the cache goes to flash with the space that its pool gives up.
    pub fn give_up<P: Policy>(
        &mut self,
        now: u64,
        pool: PoolId,
        id: BlockId,
        page: CachedPage,
        contents: &CacheContents<P>,
        traffic: &mut Traffic,
    ) {
        let job = job_of(pool, id, &page, contents, traffic);
        let job = DestageJob { life: Stamp::NONE, given_up: true, ..job };
        self.count(&job);
        traffic.read_out(now, job);
    }

    /// Writes a page to flash while its data comes in: it passes memory once.
    pub fn pass_through<P: Policy>(
        &mut self,
        tenant: TenantId,
        id: BlockId,
        part: &PagePart,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
    ) {
        let pool = contents.pool_of(tenant);
        contents.engine_mut().clean(tenant, id);
        let page = contents.page(pool, id);
        let (life, version, sectors) = (page.life, page.version, page.sectors);
        let (group, page, given_up, waiter) = (part.group, part.page, false, None);
        let job =
            DestageJob { pool, id, life, version, tenant, group, page, sectors, given_up, waiter };
        self.count(&job);
        let whole = PagePart { sectors, ..*part };
        traffic.push_job(CacheJob::Destage(job), tenant, PageOp::Write, &whole);
    }

    /// Flash has a page: it leaves memory if it is still the same. Whether it did.
    pub fn destaged<P: Policy>(
        &mut self,
        job: &DestageJob,
        contents: &mut CacheContents<P>,
    ) -> bool {
        let outgoing = &mut self.outgoing[job.pool.index()];
        let sectors = u64::from(job.sectors.count_ones());
        assert!(*outgoing >= sectors, "what arrives in flash was on its way");
        *outgoing -= sectors;
        let page = contents.page(job.pool, job.id);
        let same = job.life != Stamp::NONE && page.life == job.life && page.version == job.version;
        let leaves = same && !self.keeps;
        if leaves {
            contents.discard(job.tenant, job.id);
        }
        leaves
    }

    /// Writes back the pages longest dirty until few enough are (watermark).
    pub fn level<P: Policy>(
        &mut self,
        now: u64,
        pool: PoolId,
        contents: &mut CacheContents<P>,
        traffic: &mut Traffic,
    ) {
        if self.write_back != WriteBack::Watermark {
            return;
        }
        let (high, low) = self.dirty_marks;
        let capacity = f64::from(contents.size(pool).0);
        let dirty =
            |contents: &CacheContents<P>| f64::from(contents.engine().dirty_in(pool.index()));
        if dirty(contents) <= high * capacity {
            return;
        }
        while dirty(contents) > low * capacity {
            let Some(id) = contents.clean_oldest(pool) else { return };
            let page = *contents.page(pool, id);
            let job = job_of(pool, id, &page, contents, traffic);
            self.count(&job);
            traffic.read_out(now, job);
        }
    }

    /// Pages written to flash so far.
    pub fn destaged_pages(&self) -> u64 {
        self.destaged_pages
    }

    /// Bytes of one pool that were on their way to flash at most.
    pub fn max_outgoing(&self) -> Bytes {
        Bytes(self.max_outgoing * self.sector_bytes)
    }

    /// Sectors under way are those of the jobs.
    pub fn audit(&self, pool: PoolId, traffic: &Traffic) -> Result<(), String> {
        let jobs = traffic.jobs.destages(pool).filter(|job| !job.given_up);
        let sectors: u64 = jobs.map(|job| u64::from(job.sectors.count_ones())).sum();
        match self.outgoing[pool.index()] {
            counted if counted == sectors => Ok(()),
            counted => {
                let pool = pool.0;
                Err(format!("pool {pool}: {sectors} sectors leave, {counted} are counted"))
            }
        }
    }
}

/// The job of writing a page to flash.
fn job_of<P: Policy>(
    pool: PoolId,
    id: BlockId,
    page: &CachedPage,
    contents: &CacheContents<P>,
    traffic: &Traffic,
) -> DestageJob {
    let CachedPage { sectors, life, version, .. } = *page;
    let BlockAddress { tenant, number } = contents.address(pool, id);
    let (group, page) = traffic.layout().locate(number);
    DestageJob {
        pool,
        id,
        life,
        version,
        tenant,
        group,
        page,
        sectors,
        given_up: false,
        waiter: None,
    }
}
