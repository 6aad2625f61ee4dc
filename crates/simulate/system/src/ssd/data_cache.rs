//! The data cache of a drive, its memory and the flash behind it, as the inside of a drive.
//!
//! Reads: what is in the cache comes from memory, the rest from flash, and may stay. A page that is
//! let in is in the cache from the moment of its miss, so that the policy sees accesses in their
//! order; until flash has delivered it, it holds no sector and a read of it goes to flash. A page
//! that was never written is not let in: there is nothing to keep.
//!
//! Writes go into memory while little enough is on the way to flash, otherwise they wait. A write
//! that finds too much on its way to flash waits with what it has not placed; those that wait go on
//! in their order when a write-back is done. With `write_waits = "victim"` a write is done only
//! when flash has the dirty pages that it pushed out, too.
//!
//! The drive queues commands at its host interface, and writes may wait, so that the cache sees a
//! request later than it arrives: [`Account`] counts by the arrival of requests. It costs nothing
//! until it is asked for.

use super::contents::{CacheContents, PoolId, Stamp};
use super::destager::Destager;
use super::division::DriveDivision;
use super::params::{DataCacheParams, WriteBack, WriteWaits};
use super::traffic::{CacheJob, DestageJob, FillJob, FlashTag, HostCommand, Traffic, Transfer};
use crate::series::QuotaState;
use cachewright_cache::{BlockAccess, Engine, Quotas, WriteMode};
use cachewright_control::{Control, Signals, standings};
use cachewright_device::ssd::dram::{Dram, DramTiming};
use cachewright_device::ssd::drive::{FinishedCommand, Inside, layout};
use cachewright_device::ssd::flash::{Backend, DoneTransaction, FlashStats, PageOp};
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::PagePart;
use cachewright_device::ssd::params::{AddressableBytes, SsdParams, UnwrittenReads};
use cachewright_device::{Command, Energy, Exposed, Spent, SpentPart};
use cachewright_partition::VictimSelector;
use cachewright_policy::{Future, Policy, Verdict};
use cachewright_types::measure::Counts;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, TenantId};
use hashbrown::HashSet;
use std::collections::VecDeque;

/// The data cache, its memory and the flash behind it.
pub struct DataCache<P> {
    parts: DriveCacheParts<P>,
    reader: ReadPath,
    writer: WritePath,
    account: Account,
    done: Vec<DoneTransaction>,
}

impl<P: Policy> DataCache<P> {
    /// An empty cache before a drive's flash; writes wait while so much is on its way to flash.
    pub(super) fn new(
        params: &SsdParams,
        flash: Backend,
        engine: Engine<P>,
        axes: &DataCacheParams,
    ) -> DataCache<P> {
        let timing = DramTiming {
            rate_mts: params.dram_rate,
            burst_bytes: params.dram_burst.0,
            row_bytes: params.dram_row.0,
            trcd_ns: params.dram_trcd.0,
            tcl_ns: params.dram_tcl.0,
            trp_ns: params.dram_trp.0,
        };
        let limit_bytes = match axes.back_pressure {
            AddressableBytes::Auto => params.plane_count() * params.page.0,
            AddressableBytes::Bytes(bytes) => bytes.0,
        };
        let pools = engine.pools();
        let memory = Dram::new(timing, params.dram_channels as usize, pools);
        let allocates = params.unwritten == UnwrittenReads::Allocate;
        let traffic = Traffic::new(layout(params, &flash), memory, flash, allocates);
        let destager = Destager::new(pools, axes, limit_bytes, params.sector.0);
        let division = DriveDivision::new(&engine, axes);
        let contents = CacheContents::new(engine);
        DataCache {
            parts: DriveCacheParts { contents, traffic, destager, division },
            reader: ReadPath::new(axes.read_fill),
            writer: WritePath::new(pools, axes),
            account: Account::default(),
            done: Vec::new(),
        }
    }

    /// The engine, for counters and occupancy.
    pub fn engine(&self) -> &Engine<P> {
        self.parts.contents.engine()
    }

    /// What the cache has done.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            destaged_pages: self.parts.destager.destaged_pages(),
            filled_pages: self.reader.filled_pages(),
            held_writes: self.writer.held_writes(),
            max_outgoing: self.parts.destager.max_outgoing(),
            given_up_pages: self.parts.division.given_up_pages(),
        }
    }

    /// Starts to load what requests to come will read of their first pages.
    pub(super) fn prefetch(&self, requests: &[Request]) {
        let traffic = &self.parts.traffic;
        traffic.flash().prefetch_evictions(requests.iter().map(|request| request.tenant));
        for Request { offset, length, tenant, .. } in requests {
            if let Some((part, _)) = traffic.first_part(offset.0, offset.0 + length.0) {
                traffic.flash().prefetch(*tenant, part.group, part.page);
            }
        }
    }

    /// A read arrives.
    fn read(&mut self, now: Nanos, slot: Slot, command: &Command) {
        let host = *self.parts.traffic.commands.get(slot);
        let mark = self.account.begin(&host, self.parts.contents.engine());
        self.reader.read(now, slot, command, &mut self.parts);
        self.account.end(mark, &host, self.parts.contents.engine());
    }

    /// A write arrives: it is placed, or waits behind those that do.
    fn write(&mut self, now: Nanos, slot: Slot) {
        let command = self.parts.traffic.commands.get(slot);
        let length = command.length;
        let pool = self.parts.contents.pool_of(command.tenant);
        let DriveCacheParts { contents, traffic, division, .. } = &mut self.parts;
        division.choose_victim(now, slot, contents, traffic);
        let placed = if self.writer.holds(pool) { length == 0 } else { self.place(now, slot) };
        if !placed {
            self.writer.hold(pool, slot);
        }
    }

    /// Places what a write has left while its pool accepts more; whether all is placed.
    fn place(&mut self, now: Nanos, slot: Slot) -> bool {
        let host = *self.parts.traffic.commands.get(slot);
        let mark = self.account.begin(&host, self.parts.contents.engine());
        let placed = self.writer.place(now, slot, &mut self.parts);
        self.account.end(mark, &host, self.parts.contents.engine());
        placed
    }

    /// Forgets whole pages and tells flash.
    fn trim(&mut self, now: Nanos, slot: Slot, command: &Command) {
        let tenant = command.tenant;
        let (mut offset, end) = (command.offset.0, command.offset.0 + command.length.0);
        let DriveCacheParts { contents, traffic, division, .. } = &mut self.parts;
        let pool = contents.pool_of(tenant);
        let whole = traffic.layout().whole_page();
        traffic.begin_batch();
        while offset < end {
            let Some((part, next)) = traffic.first_part(offset, end) else { break };
            offset = next;
            if part.sectors != whole {
                continue;
            }
            let number = traffic.layout().number(part.group, part.page);
            if let Some(id) = contents.cached_id(tenant, number) {
                contents.discard(tenant, id);
                division.give_unused(pool, contents);
            }
            traffic.push_host(slot, tenant, PageOp::Trim, &part);
        }
        let waits = traffic.batched();
        traffic.commands.await_parts(slot, waits);
        traffic.send_batch(now);
    }

    /// One part of a command is done; `spent` is its time since the command arrived.
    fn part_done(&mut self, slot: Slot, spent: Spent, finished: &mut Vec<FinishedCommand>) {
        if self.parts.traffic.commands.part_done(slot) {
            finished.push(FinishedCommand { slot, spent });
        }
    }

    /// An access to memory is done.
    fn transferred(&mut self, now: u64, transfer: Transfer, finished: &mut Vec<FinishedCommand>) {
        match transfer {
            Transfer::Fill => {}
            Transfer::Destage(job) => self.parts.traffic.send_out(now, job),
            Transfer::Host { slot, requested_ns } => {
                let mut spent = Spent::default();
                spent.add(
                    SpentPart::Queue,
                    requested_ns - self.parts.traffic.commands.arrived(slot),
                );
                spent.add(SpentPart::Dram, now - requested_ns);
                self.part_done(slot, spent, finished);
            }
        }
    }

    /// A transaction of flash is done.
    fn flashed(&mut self, now: u64, done: DoneTransaction, finished: &mut Vec<FinishedCommand>) {
        let job = match FlashTag::unpacked(done.tag) {
            FlashTag::Host(slot) => {
                let mut spent = done.spent;
                let inside_ns = now - self.parts.traffic.commands.arrived(slot);
                spent.add(SpentPart::Queue, inside_ns - spent.total_ns());
                return self.part_done(slot, spent, finished);
            }
            FlashTag::Job(id) => self.parts.traffic.jobs.remove(id),
        };
        match job {
            Some(CacheJob::Fill(job)) => {
                self.reader.filled(now, &job, &mut self.parts);
                self.part_done(job.slot, done.spent, finished);
            }
            Some(CacheJob::Destage(job)) => {
                if let Some(slot) = job.waiter {
                    let mut spent = done.spent;
                    let inside_ns = now - self.parts.traffic.commands.arrived(slot);
                    spent.add(SpentPart::Queue, inside_ns - spent.total_ns());
                    self.part_done(slot, spent, finished);
                }
                self.destaged(now, &job);
            }
            None => {}
        }
    }

    /// Flash has a page: writes that wait go on.
    fn destaged(&mut self, now: u64, job: &DestageJob) {
        if !self.parts.destaged(now, job) {
            return;
        }
        let pool: PoolId = job.pool;
        while let Some(slot) = self.writer.first_held(pool) {
            if !self.parts.destager.accepts(pool) || !self.place(Nanos(now), slot) {
                return;
            }
            self.writer.release_first(pool);
        }
    }

    /// Changes the division of the cache; false if it is of another kind.
    pub(super) fn divide(&mut self, now: u64, quotas: &Quotas) -> bool {
        let DriveCacheParts { contents, traffic, destager, division } = &mut self.parts;
        division.divide(now, quotas, contents, traffic, destager)
    }

    /// Lets a control loop divide the cache at the end of an interval.
    pub(super) fn divide_by(&mut self, now: u64, control: &mut Control, signals: &Signals) {
        let now_standings = standings(self.parts.contents.engine(), control.tenants());
        if let Some(quotas) = control.next(&now_standings, signals) {
            let kept = self.divide(now, &quotas);
            debug_assert!(kept, "a partitioner keeps to one kind of quotas");
        }
    }

    /// Lets space follow requests.
    pub(super) fn follow(&mut self, pages: u32, selector: Box<dyn VictimSelector>) {
        self.parts.division.follow(pages, selector);
    }

    /// How far a tenant is from what the division gives it.
    pub(super) fn state(&self, tenant: TenantId) -> QuotaState {
        self.parts.division.state(tenant, &self.parts.contents)
    }

    /// Pages that a tenant is to have, or its pool.
    pub(super) fn target(&self, tenant: TenantId) -> u32 {
        self.parts.division.target(tenant, &self.parts.contents)
    }

    /// Pages of the whole cache.
    pub(super) fn total(&self) -> u64 {
        self.parts.division.total()
    }

    /// Counts from now on only what commands after these ask.
    pub(super) fn count_after(&mut self, last: &[Option<u64>]) {
        self.account.count_after(last, self.parts.contents.engine());
    }

    /// Counters of a tenant without what is left out.
    pub(super) fn counted(&self, tenant: TenantId) -> Counts {
        self.account.counted(tenant, self.engine())
    }

    /// Which commands hit, if that is wanted.
    pub(super) fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }
}

impl<P: Policy> Inside for DataCache<P> {
    fn capacity(&self) -> Bytes {
        self.parts.traffic.layout().capacity()
    }

    fn arrive(
        &mut self,
        now: Nanos,
        slot: Slot,
        command: &Command,
        finished: &mut Vec<FinishedCommand>,
    ) {
        self.parts.traffic.commands.arrive(slot, now.0, command);
        match command.op {
            Op::Read => self.read(now, slot, command),
            Op::Write => self.write(now, slot),
            Op::Trim => self.trim(now, slot, command),
            Op::Flush => {}
        }
        let commands = &mut self.parts.traffic.commands;
        if commands.idle(slot) {
            commands.leave(slot);
            finished.push(FinishedCommand { slot, spent: Spent::default() });
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        self.parts.traffic.next_due()
    }

    fn advance(&mut self, until: Nanos, finished: &mut Vec<FinishedCommand>) -> Nanos {
        let now = self.next_due().map_or(until, |due| due.min(until));
        while let Some(transfer) = self.parts.traffic.receive(now.0) {
            self.transferred(now.0, transfer, finished);
        }
        // Flash goes on alone while no transfer ends; one at the same time ends before it.
        let alone_until = self.parts.traffic.before_transfer(until);
        let limit = if finished.is_empty() { alone_until } else { now };
        let flash = self.parts.traffic.flash_mut();
        if flash.next_due().is_none_or(|due| due > now) {
            return now;
        }
        let mut done = std::mem::take(&mut self.done);
        let now = flash.advance_to_done(limit, &mut done);
        for item in done.drain(..) {
            self.flashed(now.0, item, finished);
        }
        self.done = done;
        now
    }

    fn outstanding(&self) -> usize {
        self.parts.traffic.commands.open()
    }

    fn exposed(&self) -> Vec<Exposed> {
        self.parts.traffic.layout().exposed()
    }

    fn spend(&self, energy: &mut Energy) {
        self.parts.traffic.flash().spend(energy);
    }

    fn flash(&self, now: Nanos) -> Option<FlashStats> {
        Some(self.parts.traffic.flash().stats(now))
    }

    fn audit(&self) -> Result<(), String> {
        self.parts.audit()?;
        let mut pools = self.parts.contents.pools();
        pools.try_for_each(|pool| self.writer.audit(pool, &self.parts))
    }
}

/// The pages in the cache, their way to flash, and the division of the space.
struct DriveCacheParts<P> {
    /// Pages in the cache.
    contents: CacheContents<P>,
    /// Commands, memory and flash.
    traffic: Traffic,
    /// Pages on their way to flash.
    destager: Destager,
    /// How the space is divided.
    division: DriveDivision,
}

impl<P: Policy> DriveCacheParts<P> {
    /// A page has left the cache; a dirty one goes to flash.
    #[inline]
    fn evict(&mut self, now: u64, pool: PoolId, id: BlockId, dirty: bool, waiter: Option<Slot>) {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.destager.evict(now, pool, id, dirty, waiter, contents, traffic);
    }

    /// A page of a tenant is about to come in.
    #[inline]
    fn make_space(&mut self, now: u64, tenant: TenantId, waiter: Option<Slot>) {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.division.make_space(now, tenant, waiter, contents, traffic, &mut self.destager);
    }

    /// A pool may use less space than it has.
    #[inline]
    fn give_unused(&mut self, pool: PoolId) {
        self.division.give_unused(pool, &mut self.contents);
    }

    /// Writes a page to flash while its data comes in.
    #[inline]
    fn pass_through(&mut self, tenant: TenantId, id: BlockId, part: &PagePart) {
        let (contents, traffic) = (&mut self.contents, &mut self.traffic);
        self.destager.pass_through(tenant, id, part, contents, traffic);
    }

    /// Writes back pages where too many are dirty.
    #[inline]
    fn level(&mut self, now: u64, pool: PoolId) {
        self.destager.level(now, pool, &mut self.contents, &mut self.traffic);
    }

    /// Flash has a page. Whether it counted against the limit of its pool.
    fn destaged(&mut self, now: u64, job: &DestageJob) -> bool {
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
    fn audit(&self) -> Result<(), String> {
        self.contents.audit()?;
        self.traffic.audit()?;
        self.division.audit(&self.contents, &self.traffic)?;
        self.contents.pools().try_for_each(|pool| self.destager.audit(pool, &self.traffic))
    }
}

/// The way of reads.
#[derive(Clone, Debug)]
struct ReadPath {
    /// Pages read from flash enter the cache.
    fills: bool,
    filled_pages: u64,
}

/// Where sectors that flash delivers stay: a page, and which life of its id.
type FillPlace = (PoolId, BlockId, Stamp);

impl ReadPath {
    /// With or without filling.
    fn new(fills: bool) -> ReadPath {
        ReadPath { fills, filled_pages: 0 }
    }

    /// A read arrives.
    fn read<P: Policy>(
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
            parts.make_space(now, tenant, None);
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
                    parts.evict(now, pool, evicted, outcome.writeback, None);
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
    fn filled<P: Policy>(&mut self, now: u64, job: &FillJob, parts: &mut DriveCacheParts<P>) {
        let page = parts.contents.page_mut(job.pool, job.id);
        if page.life == job.life {
            page.sectors |= job.sectors;
            self.filled_pages += 1;
            parts.traffic.fill(now, job.pool, job.sectors);
        }
    }

    /// Pages that entered the cache from flash.
    fn filled_pages(&self) -> u64 {
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

/// The way of writes.
#[derive(Clone, Debug)]
struct WritePath {
    write_back: WriteBack,
    waits: WriteWaits,
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
    fn new(pools: usize, params: &DataCacheParams) -> WritePath {
        WritePath {
            write_back: params.write_back,
            waits: params.write_waits,
            held: vec![VecDeque::new(); pools],
            recent: HashSet::default(),
            next_window_ns: 0,
            window_ns: params.hot_window.0,
            held_writes: 0,
        }
    }

    /// Whether writes of a pool wait.
    fn holds(&self, pool: PoolId) -> bool {
        !self.held[pool.index()].is_empty()
    }

    /// A write waits behind those of its pool that do.
    fn hold(&mut self, pool: PoolId, slot: Slot) {
        self.held[pool.index()].push_back(slot);
        self.held_writes += 1;
    }

    /// The write of a pool that has waited longest.
    fn first_held(&self, pool: PoolId) -> Option<Slot> {
        self.held[pool.index()].front().copied()
    }

    /// The write of a pool that has waited longest is placed.
    fn release_first(&mut self, pool: PoolId) {
        self.held[pool.index()].pop_front();
    }

    /// Writes that had to wait.
    fn held_writes(&self) -> u64 {
        self.held_writes
    }

    /// Places what a write has left while its pool accepts more. What lies beyond the drive is
    /// dropped. Whether all is placed.
    fn place<P: Policy>(&mut self, now: Nanos, slot: Slot, parts: &mut DriveCacheParts<P>) -> bool {
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
        let waiter = (self.waits == WriteWaits::Victim).then_some(slot);
        if parts.division.is_elastic() && lets_in(tenant, id, parts) {
            parts.make_space(now, tenant, waiter);
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
                    parts.evict(now, pool, evicted, outcome.writeback, waiter);
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
    fn audit<P: Policy>(&self, pool: PoolId, parts: &DriveCacheParts<P>) -> Result<(), String> {
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

/// What is left out of the counters, and which commands hit.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// By tenant: the last command that is left out, if any.
    last: Vec<Option<u64>>,
    /// By tenant: what those commands were counted for. Empty: nothing is left out.
    before: Vec<Counts>,
    /// Pages that commands, by their tags, have found in the cache, if that is wanted.
    hits: Option<Vec<(u64, u64)>>,
}

/// The counters before a part of a command is done.
#[derive(Clone, Debug, Default)]
struct CountsBefore {
    hits: u64,
    /// Every tenant's counters, where the command is left out.
    counts: Option<Vec<Counts>>,
}

impl Account {
    /// Leaves out all that has been counted, and what the commands up to `last` still ask.
    fn count_after<P: Policy>(&mut self, last: &[Option<u64>], engine: &Engine<P>) {
        self.last = last.to_vec();
        self.before = all_counts(engine, last.len());
    }

    /// A tenant's counters without what is left out.
    fn counted<P: Policy>(&self, tenant: TenantId, engine: &Engine<P>) -> Counts {
        let counts = engine.counts(tenant);
        self.before.get(tenant.index()).map_or(*counts, |before| counts.since(before))
    }

    /// From now on keeps which commands hit.
    pub fn keep_hits(&mut self) {
        self.hits.get_or_insert_default();
    }

    /// Hands out which commands hit since the last call.
    pub fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>) {
        hits.append(self.hits.as_mut().unwrap_or(&mut Vec::new()));
    }

    /// Whether a command of which the cache has something to do now is left out.
    fn leaves_out(&self, tenant: TenantId, tag: u64) -> bool {
        let last = self.last.get(tenant.index()).copied().flatten();
        last.is_some_and(|last| tag <= last)
    }

    /// A part of a command is about to be done.
    #[inline]
    fn begin<P: Policy>(&self, command: &HostCommand, engine: &Engine<P>) -> CountsBefore {
        let mut mark = CountsBefore::default();
        if self.hits.is_some() {
            mark.hits = engine.counts(command.tenant).hits();
        }
        if self.leaves_out(command.tenant, command.tag) {
            mark.counts = Some(all_counts(engine, self.before.len()));
        }
        mark
    }

    /// The part is done: notes its hits, and leaves out what it is counted for if that is due.
    #[inline]
    fn end<P: Policy>(&mut self, mark: CountsBefore, command: &HostCommand, engine: &Engine<P>) {
        if let Some(begun) = mark.counts {
            let ended = all_counts(engine, self.before.len());
            for (before, (begun, ended)) in self.before.iter_mut().zip(begun.iter().zip(&ended)) {
                before.add(&ended.since(begun));
            }
        }
        if let Some(kept) = &mut self.hits {
            let hits = engine.counts(command.tenant).hits() - mark.hits;
            if hits > 0 {
                kept.push((command.tag, hits));
            }
        }
    }
}

/// Every tenant's counters.
fn all_counts<P: Policy>(engine: &Engine<P>, tenants: usize) -> Vec<Counts> {
    let tenants = (0..tenants).map(|tenant| TenantId(tenant as u16));
    tenants.map(|tenant| *engine.counts(tenant)).collect()
}

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Pages written to flash by the cache.
    pub destaged_pages: u64,
    /// Pages that entered the cache from flash.
    pub filled_pages: u64,
    /// Writes that had to wait while too much was on its way to flash.
    pub held_writes: u64,
    /// Bytes of one pool that were on their way to flash at most.
    pub max_outgoing: Bytes,
    /// Dirty pages that left because their pool had to give up space.
    pub given_up_pages: u64,
}
