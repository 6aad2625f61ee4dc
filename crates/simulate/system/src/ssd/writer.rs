//! Writes: into memory while little enough is on the way to flash, otherwise they wait.
//!
//! For: the way of a write, page by page, and eager write-back. Must never know: reads, the host. A
//! write that finds too much on its way to flash waits with what it has not placed; those that wait
//! go on in their order when a write-back is done.

use super::ids::PoolId;
use super::params::{DataCacheParams, WriteBack};
use super::parts::DriveCacheParts;
use cachewright_cache::{BlockAccess, WriteMode};
use cachewright_device::ssd::flash::PageOp;
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_policy::{Future, Policy, Verdict};
use cachewright_types::{BlockId, Nanos, TenantId};
use hashbrown::HashSet;
use std::collections::VecDeque;

/// The way of writes.
#[derive(Clone, Debug)]
pub struct WritePath {
    write_back: WriteBack,
    /// Writes that wait, by pool.
    held: Vec<VecDeque<Slot>>,
    /// Pages written within the current window.
    recent: HashSet<(u16, u64), foldhash::fast::FixedState>,
    next_window_ns: u64,
    window_ns: u64,
    held_writes: u64,
}

impl WritePath {
    /// No write waits.
    pub fn new(pools: usize, params: &DataCacheParams) -> WritePath {
        WritePath {
            write_back: params.write_back,
            held: vec![VecDeque::new(); pools],
            recent: HashSet::default(),
            next_window_ns: 0,
            window_ns: params.hot_window.0,
            held_writes: 0,
        }
    }

    /// Whether writes of a pool wait.
    pub fn holds(&self, pool: PoolId) -> bool {
        !self.held[pool.index()].is_empty()
    }

    /// A write waits behind those of its pool that do.
    pub fn hold(&mut self, pool: PoolId, slot: Slot) {
        self.held[pool.index()].push_back(slot);
        self.held_writes += 1;
    }

    /// The write of a pool that has waited longest.
    pub fn first_held(&self, pool: PoolId) -> Option<Slot> {
        self.held[pool.index()].front().copied()
    }

    /// The write of a pool that has waited longest is placed.
    pub fn release_first(&mut self, pool: PoolId) {
        self.held[pool.index()].pop_front();
    }

    /// Writes that had to wait.
    pub fn held_writes(&self) -> u64 {
        self.held_writes
    }

    /// Places what a write has left while its pool accepts more. What lies beyond the drive is
    /// dropped. Whether all is placed.
    pub fn place<P: Policy>(
        &mut self,
        now: Nanos,
        slot: Slot,
        parts: &mut DriveCacheParts<P>,
    ) -> bool {
        let command = *parts.traffic.commands.get(slot);
        let (tenant, end) = (command.tenant, command.offset + command.length);
        let mut offset = command.offset;
        let pool = parts.contents.pool_of(tenant);
        let (mut to_memory, mut all_hit) = (0_u64, true);
        parts.traffic.begin_batch();
        while offset < end && parts.destager.accepts(pool) {
            let Some((part, next)) = parts.traffic.first_part(offset, end) else {
                offset = end;
                break;
            };
            let (bytes, hit) = self.write_page(now.0, slot, tenant, &part, parts);
            to_memory += bytes;
            all_hit &= hit;
            offset = next.min(end);
        }
        let waits = parts.traffic.batched_for_host() + u32::from(to_memory > 0);
        parts.traffic.commands.placed(slot, offset, end - offset, waits);
        parts.traffic.send(now, slot, pool, to_memory);
        if offset == end {
            parts.contents.engine_mut().count_request(tenant, all_hit);
        }
        if now.0 > self.next_window_ns {
            self.recent.clear();
            self.next_window_ns = now.0 + self.window_ns;
        }
        parts.level(now.0, pool);
        offset == end
    }

    /// One page of a write: the bytes that go to memory, and whether the page was there.
    fn write_page<P: Policy>(
        &mut self,
        now: u64,
        slot: Slot,
        tenant: TenantId,
        part: &PagePart,
        parts: &mut DriveCacheParts<P>,
    ) -> (u64, bool) {
        let number = parts.traffic.layout().number(part.group, part.page);
        let pool = parts.contents.pool_of(tenant);
        parts.traffic.note_written(number);
        let id = parts.contents.intern(tenant, number);
        if parts.division.is_elastic() && lets_in(tenant, id, parts) {
            parts.make_space(now, tenant);
        }
        let was_dirty = parts.contents.engine().is_dirty(tenant, id);
        let access = BlockAccess { block: id, tenant, write: true, future: Future::None };
        let outcome = parts.contents.engine_mut().access(access);
        if outcome.invalidated {
            parts.contents.leave(pool, id);
        }
        match outcome.verdict {
            Verdict::Bypass => {
                parts.contents.release(pool, id);
                parts.give_unused(pool);
                parts.traffic.push_host(slot, tenant, PageOp::Write, part);
                return (0, false);
            }
            Verdict::Admit { evicted } => {
                if let Some(evicted) = evicted {
                    parts.evict(now, pool, evicted, outcome.writeback);
                }
                parts.contents.enter(pool, id);
            }
            Verdict::Hit => {}
        }
        let stamp = parts.contents.stamp();
        let page = parts.contents.page_mut(pool, id);
        page.sectors |= part.sectors;
        page.version = stamp;
        if parts.contents.engine().mode() != WriteMode::WriteBack {
            parts.traffic.push_host(slot, tenant, PageOp::Write, part);
        } else if self.write_back == WriteBack::Eager && self.is_cold(tenant, number) {
            parts.pass_through(tenant, id, part);
        } else if !was_dirty && self.write_back == WriteBack::Watermark {
            parts.contents.mark_dirty(pool, id, stamp);
        }
        (parts.traffic.layout().bytes_of(part.sectors), outcome.verdict == Verdict::Hit)
    }

    /// Whether a page is written for the first time in this window.
    fn is_cold(&mut self, tenant: TenantId, number: u64) -> bool {
        self.recent.insert((tenant.0, number))
    }

    /// Writes of a pool wait only while it accepts no more.
    pub fn audit<P: Policy>(&self, pool: PoolId, parts: &DriveCacheParts<P>) -> Result<(), String> {
        if self.holds(pool) && parts.destager.accepts(pool) {
            return Err(format!("pool {}: writes wait without need", pool.0));
        }
        Ok(())
    }
}

/// Whether a write of a page would let it into the cache.
fn lets_in<P: Policy>(tenant: TenantId, id: BlockId, parts: &DriveCacheParts<P>) -> bool {
    use WriteMode::{WriteBack, WriteThrough};
    let engine = parts.contents.engine();
    let kept = matches!(engine.mode(), WriteBack | WriteThrough);
    kept && !engine.policy(engine.pool_of(tenant)).contains(id)
}
