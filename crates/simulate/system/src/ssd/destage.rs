//! Pages on their way to flash.
//!
//! For: eviction, watermarks, shrinking quotas, and what follows when flash has a page. Must never
//! know: the host. Units: sectors. A page that leaves memory is read from it first; what is on its
//! way counts against the limit of its partition from the moment it is chosen.

use super::{DataCache, JOB, Transfer, WriteBack};
use crate::Control;
use crate::signals::Signals;
use cachewright_cache::Quotas;
use cachewright_cache::index::Address;
use cachewright_device::ssd::flash::{Kind, Transaction};
use cachewright_device::ssd::host::Slot;
use cachewright_policy::Policy;
use cachewright_types::{BlockId, Nanos, TenantId};

/// A page of flash that is to stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fill {
    pub slot: Slot,
    pub pool: u16,
    pub id: BlockId,
    pub life: u64,
    pub sectors: u64,
}

/// A page of memory on its way to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub pool: u16,
    pub id: BlockId,
    /// Which life of the id; 0 when the page has left the cache.
    pub life: u64,
    /// Which write of it.
    pub version: u64,
    pub tenant: TenantId,
    pub group: u16,
    pub page: u32,
    pub sectors: u64,
}

/// A transaction of flash that the cache asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    Fill(Fill),
    Out(Out),
}

impl<P: Policy> DataCache<P> {
    /// The id of a page in its pool, made if it has none.
    pub(super) fn intern(&mut self, tenant: TenantId, number: u64) -> BlockId {
        let pool = self.engine.pool_of(tenant);
        let engine = &self.engine;
        let tracked = |id: BlockId| engine.policy(pool).tracks(id);
        let id = self.indexes[pool].intern(Address { tenant, number }, tracked);
        let ids = self.indexes[pool].ids();
        self.engine.reserve_ids(pool, ids);
        self.pools[pool].reserve(ids);
        id
    }

    /// Counts a page as on its way.
    pub(super) fn count_out(&mut self, out: &Out) {
        let partition = &mut self.partitions[usize::from(out.pool)];
        partition.outgoing += u64::from(out.sectors.count_ones());
        let bytes = partition.outgoing * (self.layout.page_bytes().0 / self.sectors_per_page());
        self.stats.destaged_pages += 1;
        self.stats.most_outgoing.0 = self.stats.most_outgoing.0.max(bytes);
    }

    /// A page has left the cache; a dirty one goes to flash.
    pub(super) fn evict(&mut self, now: u64, pool: usize, id: BlockId, dirty: bool) {
        let page = self.pools[pool].leave(id);
        if dirty {
            self.take_out(now, pool, id, page.have, 0, page.version);
        }
    }

    /// Reads a page from memory on its way to flash.
    fn take_out(
        &mut self,
        now: u64,
        pool: usize,
        id: BlockId,
        sectors: u64,
        life: u64,
        version: u64,
    ) {
        let Address { tenant, number } = self.indexes[pool].address(id);
        let (group, page) = self.layout.locate(number);
        let out = Out { pool: pool as u16, id, life, version, tenant, group, page, sectors };
        self.count_out(&out);
        let job = self.jobs.insert(Job::Out(out));
        self.dram.submit(now, pool, self.layout.bytes_of(sectors), Transfer::Out { job });
    }

    /// A page has been read from memory: it goes to flash.
    pub(super) fn send_out(&mut self, now: u64, job: u32) {
        if let Some(Job::Out(Out { tenant, group, page, sectors, .. })) = self.jobs.get(job) {
            let (tag, kind) = (JOB | u64::from(job), Kind::Write);
            let transaction = Transaction { tag, tenant, group, kind, page, sectors };
            self.flash.submit(Nanos(now), &[transaction]);
        }
    }

    /// Flash has a page: it leaves memory if it is still the same, and writes that wait go on.
    pub(super) fn destaged(&mut self, now: u64, out: &Out) {
        let pool = usize::from(out.pool);
        self.partitions[pool].outgoing -= u64::from(out.sectors.count_ones());
        let page = self.pools[pool].get(out.id);
        let same = out.life != 0 && page.life == out.life && page.version == out.version;
        if same && !self.axes.keep_destaged {
            self.engine.discard(out.tenant, out.id);
            self.pools[pool].leave(out.id);
        }
        while let Some(slot) = self.partitions[pool].held.front().copied() {
            if self.partitions[pool].outgoing >= self.limit {
                return;
            }
            self.place(Nanos(now), slot);
            if self.users.get(slot).length > 0 {
                return;
            }
            self.partitions[pool].held.pop_front();
        }
    }

    /// Writes back the pages longest dirty until few enough are (watermark).
    pub(super) fn level(&mut self, now: u64, pool: usize) {
        if self.axes.write_back != WriteBack::Watermark {
            return;
        }
        let capacity = f64::from(self.engine.policy(pool).capacity());
        if f64::from(self.engine.dirty_in(pool)) <= self.axes.dirty_high * capacity {
            return;
        }
        let low = self.axes.dirty_low * capacity;
        while f64::from(self.engine.dirty_in(pool)) > low {
            let (engine, index) = (&self.engine, &self.indexes[pool]);
            let is_dirty = |id: BlockId| engine.is_dirty(index.address(id).tenant, id);
            let Some(id) = self.pools[pool].oldest_dirty(is_dirty) else { return };
            let tenant = self.indexes[pool].address(id).tenant;
            self.engine.clean(tenant, id);
            let page = *self.pools[pool].get(id);
            self.take_out(now, pool, id, page.have, page.life, page.version);
        }
    }

    /// Changes the division of the cache; dirty pages that must leave go to flash.
    pub(super) fn divide(&mut self, now: u64, quotas: &Quotas) -> bool {
        let mut left = Vec::new();
        let done =
            self.engine.set_quotas(quotas, &mut |pool, id, dirty| left.push((pool, id, dirty)));
        for (pool, id, dirty) in left {
            self.evict(now, pool, id, dirty);
        }
        done
    }

    /// Lets a control loop divide the cache at the end of an interval.
    pub(super) fn controlled(&mut self, now: u64, control: &mut Control, signals: &Signals) {
        let mut left = Vec::new();
        control.divide(&mut self.engine, signals, &mut |pool, id, dirty| {
            left.push((pool, id, dirty));
        });
        for (pool, id, dirty) in left {
            self.evict(now, pool, id, dirty);
        }
    }
}
