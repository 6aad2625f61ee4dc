//! Pages on their way to flash.
//!
//! For: eviction, watermarks, and what follows when flash has a page. Must never know: the host,
//! why a page leaves. Units: sectors. A page that leaves memory is read from it first; what is on
//! its way counts against the limit of its partition from the moment it is chosen, unless its room
//! changes hands ([`division`](super::division)).

use super::{DataCache, JOB, Transfer, WriteBack};
use crate::ssd::pages::Page;
use cachewright_cache::index::BlockAddress;
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
    /// Its pool gives up room with it: it is in memory, not on its way there as others come in.
    pub given_up: bool,
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
        let id = self.indexes[pool].intern(BlockAddress { tenant, number }, tracked);
        let ids = self.indexes[pool].ids();
        self.engine.reserve_ids(pool, ids);
        self.pools[pool].reserve(ids);
        id
    }

    /// Counts a page as on its way.
    pub(super) fn count_out(&mut self, out: &Out) {
        self.stats.destaged_pages += 1;
        if out.given_up {
            self.stats.given_up_pages += 1;
            return;
        }
        let partition = &mut self.partitions[usize::from(out.pool)];
        partition.outgoing += u64::from(out.sectors.count_ones());
        let bytes = partition.outgoing * (self.layout.page_bytes().0 / self.sectors_per_page());
        self.stats.most_outgoing.0 = self.stats.most_outgoing.0.max(bytes);
    }

    /// A page has left the cache; a dirty one goes to flash.
    pub(super) fn evict(&mut self, now: u64, pool: usize, id: BlockId, dirty: bool) {
        let page = self.pools[pool].leave(id);
        if dirty {
            self.take_out(now, pool, id, Page { life: 0, ..page }, false);
        }
    }

    /// Reads a page from memory on its way to flash; `life` is 0 when it has left the cache.
    pub(super) fn take_out(
        &mut self,
        now: u64,
        pool: usize,
        id: BlockId,
        page: Page,
        given_up: bool,
    ) {
        let Page { have: sectors, life, version, .. } = page;
        let BlockAddress { tenant, number } = self.indexes[pool].address(id);
        let (group, page) = self.layout.locate(number);
        let pool_id = pool as u16;
        let out = Out { pool: pool_id, id, life, version, tenant, group, page, sectors, given_up };
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
        if out.given_up {
            return self.given_up(now, pool);
        }
        self.partitions[pool].outgoing -= u64::from(out.sectors.count_ones());
        let page = self.pools[pool].get(out.id);
        let same = out.life != 0 && page.life == out.life && page.version == out.version;
        if same && !self.axes.keep_destaged {
            self.engine.discard(out.tenant, out.id);
            self.pools[pool].leave(out.id);
            self.give_unused(pool);
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
            self.take_out(now, pool, id, page, false);
        }
    }
}
