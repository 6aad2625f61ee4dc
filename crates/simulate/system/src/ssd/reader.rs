//! Reads: what is in the cache comes from memory, the rest from flash, and may stay.
//!
//! For: the way of a read. Must never know: writes, the host. A page that is let in is in the cache
//! from the moment of its miss, so that the policy sees accesses in their order; until flash has
//! delivered it, it holds no sector and a read of it goes to flash. A page that was never written
//! is not let in: there is nothing to keep.

use super::ids::{PoolId, Stamp};
use super::jobs::{CacheJob, FillJob};
use super::parts::DriveCacheParts;
use cachewright_cache::BlockAccess;
use cachewright_device::Command;
use cachewright_device::ssd::flash::PageOp;
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::{Future, Policy, Verdict};
use cachewright_types::{BlockId, Nanos, TenantId};

/// The way of reads.
#[derive(Clone, Debug)]
pub struct ReadPath {
    /// Pages read from flash enter the cache.
    fills: bool,
    filled_pages: u64,
}

/// Where sectors that flash delivers stay: a page, and which life of its id.
type FillPlace = (PoolId, BlockId, Stamp);

impl ReadPath {
    /// With or without filling.
    pub fn new(fills: bool) -> ReadPath {
        ReadPath { fills, filled_pages: 0 }
    }

    /// A read arrives.
    pub fn read<P: Policy>(
        &mut self,
        now: Nanos,
        slot: Slot,
        command: &Command,
        parts: &mut DriveCacheParts<P>,
    ) {
        let tenant = command.tenant;
        let (mut offset, end) = (command.offset.0, command.offset.0 + command.length.0);
        let (mut from_memory, mut all_hit) = (0_u64, true);
        parts.traffic.begin_batch();
        while offset < end {
            let Some((part, next)) = parts.traffic.first_part(offset, end) else { break };
            offset = next;
            let (available, place) = self.read_page(now.0, tenant, &part, parts);
            from_memory += parts.traffic.layout().bytes_of(available);
            let missing = part.sectors & !available;
            all_hit &= missing == 0;
            if missing != 0 {
                let part = PagePart { sectors: missing, ..part };
                ask_flash(slot, tenant, &part, place, parts);
            }
        }
        parts.contents.engine_mut().count_request(tenant, all_hit);
        let waits = parts.traffic.batched() + u32::from(from_memory > 0);
        parts.traffic.commands.await_parts(slot, waits);
        let pool = parts.contents.pool_of(tenant);
        parts.traffic.send(now, slot, pool, from_memory);
    }

    /// The sectors of a page that memory has, and where the others will be kept.
    fn read_page<P: Policy>(
        &mut self,
        now: u64,
        tenant: TenantId,
        part: &PagePart,
        parts: &mut DriveCacheParts<P>,
    ) -> (u64, Option<FillPlace>) {
        let number = parts.traffic.layout().number(part.group, part.page);
        let pool = parts.contents.pool_of(tenant);
        let cached = parts.contents.cached_id(tenant, number);
        if cached.is_none() && !(self.fills && parts.traffic.is_written(part, number)) {
            parts.contents.engine_mut().count_bypass(tenant, false);
            return (0, None);
        }
        let id = cached.unwrap_or_else(|| parts.contents.intern(tenant, number));
        if cached.is_none() {
            parts.make_space(now, tenant);
        }
        let access = BlockAccess { block: id, tenant, write: false, future: Future::None };
        let outcome = parts.contents.engine_mut().access(access);
        match outcome.verdict {
            Verdict::Bypass => {
                parts.contents.release(pool, id);
                parts.give_unused(pool);
                return (0, None);
            }
            Verdict::Admit { evicted } => {
                if let Some(evicted) = evicted {
                    parts.evict(now, pool, evicted, outcome.writeback);
                }
                parts.contents.enter(pool, id);
            }
            Verdict::Hit => {}
        }
        let page = parts.contents.page(pool, id);
        let place = self.fills.then_some((pool, id, page.life));
        (page.sectors & part.sectors, place)
    }

    /// Flash has delivered sectors; they stay if their page is still the same.
    pub fn filled<P: Policy>(&mut self, now: u64, job: &FillJob, parts: &mut DriveCacheParts<P>) {
        let page = parts.contents.page_mut(job.pool, job.id);
        if page.life == job.life {
            page.sectors |= job.sectors;
            self.filled_pages += 1;
            parts.traffic.fill(now, job.pool, job.sectors);
        }
    }

    /// Pages that entered the cache from flash.
    pub fn filled_pages(&self) -> u64 {
        self.filled_pages
    }
}

/// Asks flash for sectors of a page, which stay if there is a place for them.
fn ask_flash<P: Policy>(
    slot: Slot,
    tenant: TenantId,
    part: &PagePart,
    place: Option<FillPlace>,
    parts: &mut DriveCacheParts<P>,
) {
    match place {
        None => parts.traffic.push_host(slot, tenant, PageOp::Read, part),
        Some((pool, id, life)) => {
            let job = FillJob { slot, pool, id, life, sectors: part.sectors };
            parts.traffic.push_job(CacheJob::Fill(job), tenant, PageOp::Read, part);
        }
    }
}
