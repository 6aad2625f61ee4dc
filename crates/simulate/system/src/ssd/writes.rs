//! Writes: into memory while there is room on the way to flash, otherwise they wait.
//!
//! For: the way of a write, page by page, and eager write-back. Must never know: reads, the host. A
//! write that finds too much on its way to flash waits with what it has not placed; those that wait
//! go on in their order when a write-back is done.

use super::destage::{Job, Out};
use super::{DataCache, JOB, WriteBack};
use cachewright_cache::{BlockAccess, WriteMode};
use cachewright_device::ssd::flash::{Kind, Transaction};
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::{Future, Policy, Verdict};
use cachewright_types::{BlockId, Bytes, Nanos, TenantId};

impl<P: Policy> DataCache<P> {
    /// A write arrives: it is placed, or waits behind those that do.
    pub(super) fn write(&mut self, now: Nanos, slot: Slot) {
        let tenant = self.users.get(slot).tenant;
        let partition = self.engine.pool_of(tenant);
        if self.elastic.is_some() {
            self.ask_round(now, slot);
        }
        if self.partitions[partition].held.is_empty() {
            self.place(now, slot);
        }
        if self.users.get(slot).length > 0 {
            self.partitions[partition].held.push_back(slot);
            self.stats.held_writes += 1;
        }
    }

    /// Places what a write has left while there is room, for the account of its command.
    pub(super) fn place(&mut self, now: Nanos, slot: Slot) {
        self.accounted(slot, |cache| cache.place_pages(now, slot));
    }

    /// Places what a write has left while there is room. What lies beyond the drive is dropped.
    fn place_pages(&mut self, now: Nanos, slot: Slot) {
        let user = *self.users.get(slot);
        let (tenant, page_bytes) = (user.tenant, self.layout.page_bytes().0);
        let (mut offset, end) = (user.offset, user.offset + user.length);
        let partition = self.engine.pool_of(tenant);
        let (mut to_memory, mut all_hit) = (0_u64, true);
        self.batch.clear();
        while offset < end && self.partitions[partition].outgoing < self.limit {
            let part = self.layout.parts(Bytes(offset), Bytes(end - offset)).next();
            let Some(part) = part else {
                offset = end;
                break;
            };
            let (bytes, hit) = self.write_page(now.0, slot, tenant, &part);
            to_memory += bytes;
            all_hit &= hit;
            offset = ((offset / page_bytes + 1) * page_bytes).min(end);
        }
        let user = self.users.get_mut(slot);
        (user.offset, user.length) = (offset, end - offset);
        self.finish_placing(now, slot, to_memory);
        if offset == end {
            self.engine.count_request(tenant, all_hit);
        }
        if now.0 > self.next_window_ns {
            self.recent.clear();
            self.next_window_ns = now.0 + self.axes.hot_window.0;
        }
        self.level(now.0, partition);
    }

    /// Sends what was placed on its way: to memory, and to flash what does not wait there.
    fn finish_placing(&mut self, now: Nanos, slot: Slot, to_memory: u64) {
        let own = |transaction: &&Transaction| transaction.tag & JOB == 0;
        let direct = self.batch.iter().filter(own).count() as u32;
        self.users.await_more(slot, direct + u32::from(to_memory > 0));
        let tenant = self.users.get(slot).tenant;
        self.send(now, slot, tenant, to_memory);
    }

    /// One page of a write: the bytes that go to memory, and whether the page was there.
    fn write_page(
        &mut self,
        now: u64,
        slot: Slot,
        tenant: TenantId,
        part: &PagePart,
    ) -> (u64, bool) {
        let number = self.layout.number(part.group, part.page);
        let pool = self.engine.pool_of(tenant);
        if !self.blank.is_empty() {
            self.blank.remove(&number);
        }
        let id = self.intern(tenant, number);
        if self.elastic.is_some() && self.lets_in(tenant, id) {
            self.make_room(now, tenant);
        }
        let was_dirty = self.engine.is_dirty(tenant, id);
        let access = BlockAccess { block: id, tenant, write: true, future: Future::None };
        let outcome = self.engine.access(access);
        if outcome.invalidated {
            self.pools[pool].leave(id);
        }
        if outcome.verdict == Verdict::Bypass {
            self.give_unused(pool);
        }
        let back = self.engine.mode() == WriteMode::WriteBack;
        let hit = outcome.verdict == Verdict::Hit;
        match outcome.verdict {
            Verdict::Bypass => {
                self.write_flash(slot, tenant, part);
                return (0, false);
            }
            Verdict::Admit { evicted } => {
                if let Some(evicted) = evicted {
                    self.evict(now, pool, evicted, outcome.writeback);
                }
                let stamp = self.stamp();
                self.pools[pool].enter(id, stamp);
            }
            Verdict::Hit => {}
        }
        let stamp = self.stamp();
        let page = self.pools[pool].get_mut(id);
        page.have |= part.sectors;
        page.version = stamp;
        if !back {
            self.write_flash(slot, tenant, part);
        } else if self.axes.write_back == WriteBack::Eager && self.is_cold(tenant, number) {
            self.destage_now(tenant, id, part);
        } else if !was_dirty && self.axes.write_back == WriteBack::Watermark {
            self.pools[pool].soil(id, stamp);
        }
        (self.layout.bytes_of(part.sectors), hit)
    }

    /// Whether a page is written for the first time in this window.
    fn is_cold(&mut self, tenant: TenantId, number: u64) -> bool {
        self.recent.insert((tenant.0, number))
    }

    /// A part of a write that must be in flash before the write is done.
    fn write_flash(&mut self, slot: Slot, tenant: TenantId, part: &PagePart) {
        let (tag, kind) = (u64::from(slot.0), Kind::Write);
        let (group, page, sectors) = (part.group, part.page, part.sectors);
        self.batch.push(Transaction { tag, tenant, group, kind, page, sectors });
    }

    /// Writes a page to flash while its data comes in: it passes memory once.
    fn destage_now(&mut self, tenant: TenantId, id: BlockId, part: &PagePart) {
        let pool = self.engine.pool_of(tenant);
        self.engine.clean(tenant, id);
        let page = self.pools[pool].get(id);
        let (life, version, sectors) = (page.life, page.version, page.have);
        let (group, page) = (part.group, part.page);
        let pool = pool as u16;
        let given_up = false;
        let out = Out { pool, id, life, version, tenant, group, page, sectors, given_up };
        self.count_out(&out);
        let tag = JOB | u64::from(self.jobs.insert(Job::Out(out)));
        let kind = Kind::Write;
        self.batch.push(Transaction { tag, tenant, group, kind, page, sectors });
    }
}
