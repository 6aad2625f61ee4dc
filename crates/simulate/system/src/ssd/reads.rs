//! Reads: what is in the cache comes from memory, the rest from flash, and may stay.
//!
//! For: the way of a read. Must never know: writes, the host. A page that is let in is in the cache
//! from the moment of its miss, so that the policy sees accesses in their order; until flash has
//! delivered it, it holds no sector and a read of it goes to flash. A page that was never written
//! is not let in: there is nothing to keep.

use super::destage::{Fill, Job};
use super::{DataCache, JOB, Transfer};
use cachewright_cache::BlockAccess;
use cachewright_device::Command;
use cachewright_device::ssd::flash::{Kind, Transaction};
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::{Future, Policy, Verdict};
use cachewright_types::{BlockId, Bytes, Nanos, TenantId};

impl<P: Policy> DataCache<P> {
    /// A read arrives.
    pub(super) fn read(&mut self, now: Nanos, slot: Slot, command: &Command) {
        let page_bytes = self.layout.page_bytes().0;
        let (mut offset, end) = (command.offset.0, command.offset.0 + command.length.0);
        let (mut from_memory, mut all_hit) = (0_u64, true);
        self.batch.clear();
        while offset < end {
            let Some(part) = self.layout.parts(Bytes(offset), Bytes(end - offset)).next() else {
                break;
            };
            offset = (offset / page_bytes + 1) * page_bytes;
            let (available, fill) = self.read_page(now.0, command.tenant, &part);
            from_memory += self.layout.bytes_of(available);
            let missing = part.sectors & !available;
            all_hit &= missing == 0;
            if missing != 0 {
                self.ask_flash(slot, command.tenant, &part, missing, fill);
            }
        }
        self.engine.count_request(command.tenant, all_hit);
        let parts = self.batch.len() as u32 + u32::from(from_memory > 0);
        self.users.await_parts(slot, parts);
        self.send(now, slot, command.tenant, from_memory);
    }

    /// The sectors of a page that memory has, and where the others will be kept.
    fn read_page(
        &mut self,
        now: u64,
        tenant: TenantId,
        part: &PagePart,
    ) -> (u64, Option<(BlockId, u64)>) {
        let number = self.layout.number(part.group, part.page);
        let pool = self.engine.pool_of(tenant);
        let cached = self.cached_id(tenant, number);
        if cached.is_none() && !(self.axes.read_fill && self.is_written(part, number)) {
            self.engine.count_bypass(tenant, false);
            return (0, None);
        }
        let id = cached.unwrap_or_else(|| self.intern(tenant, number));
        if cached.is_none() && self.elastic.is_some() {
            self.make_room(now, tenant);
        }
        let access = BlockAccess { block: id, tenant, write: false, future: Future::None };
        let outcome = self.engine.access(access);
        match outcome.verdict {
            Verdict::Bypass => {
                self.give_unused(pool);
                return (0, None);
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
        let page = self.pools[pool].get(id);
        let place = self.axes.read_fill.then_some((id, page.life));
        (page.have & part.sectors, place)
    }

    /// Whether flash has data of a page that is not in the cache. One that was read before it was
    /// ever written may have a place in flash by now, but no data.
    fn is_written(&mut self, part: &PagePart, number: u64) -> bool {
        if self.blank.contains(&number) {
            return false;
        }
        let holds = self.flash.holds(part.group, part.page);
        if !holds && self.allocates {
            self.blank.insert(number);
        }
        holds
    }

    /// Asks flash for sectors of a page, which stay if there is a place for them.
    fn ask_flash(
        &mut self,
        slot: Slot,
        tenant: TenantId,
        part: &PagePart,
        sectors: u64,
        place: Option<(BlockId, u64)>,
    ) {
        let tag = match place {
            None => u64::from(slot.0),
            Some((id, life)) => {
                let pool = self.engine.pool_of(tenant) as u16;
                JOB | u64::from(self.jobs.insert(Job::Fill(Fill { slot, pool, id, life, sectors })))
            }
        };
        let (group, kind, page) = (part.group, Kind::Read, part.page);
        self.batch.push(Transaction { tag, tenant, group, kind, page, sectors });
    }

    /// Flash has delivered sectors; they stay if their page is still the same.
    pub(super) fn filled(&mut self, now: u64, fill: &Fill) {
        let pool = usize::from(fill.pool);
        let page = self.pools[pool].get_mut(fill.id);
        if page.life == fill.life {
            page.have |= fill.sectors;
            self.stats.filled_pages += 1;
            let bytes = self.layout.bytes_of(fill.sectors);
            self.dram.submit(now, pool, bytes, Transfer::Fill);
        }
    }
}
