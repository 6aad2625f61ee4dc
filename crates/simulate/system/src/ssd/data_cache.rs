//! The data cache of a drive, its memory and the flash behind it, as the inside of a drive.
//!
//! For: which part goes on with a command, with an access to memory and with a transaction of flash
//! that is done. Must never know: stack files, partitioners, how a part does its work. Units:
//! pages, bytes, nanoseconds.

use super::account::Account;
use super::contents::CacheContents;
use super::destager::Destager;
use super::division::DriveDivision;
use super::ids::PoolId;
use super::jobs::{CacheJob, DestageJob};
use super::params::DataCacheParams;
use super::parts::DriveCacheParts;
use super::reader::ReadPath;
use super::stats::CacheStats;
use super::traffic::{FlashTag, Traffic, Transfer};
use super::writer::WritePath;
use crate::series::QuotaState;
use cachewright_cache::{Engine, Quotas};
use cachewright_control::{Control, Signals, standings};
use cachewright_device::ssd::dram::{Dram, DramTiming};
use cachewright_device::ssd::drive::layout;
use cachewright_device::ssd::drive::{FinishedCommand, Inside};
use cachewright_device::ssd::flash::{Backend, DoneTransaction, FlashStats, PageOp};
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::params::{AddressableBytes, SsdParams, UnwrittenReads};
use cachewright_device::{Command, Energy, Exposed, Spent, SpentPart};
use cachewright_partition::VictimSelector;
use cachewright_policy::Policy;
use cachewright_types::measure::Counts;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};

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
            Some(CacheJob::Destage(job)) => self.destaged(now, &job),
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
        self.parts.divide(now, quotas)
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
