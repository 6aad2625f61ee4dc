//! A drive with a data cache in its memory, between host interface and flash.
//!
//! For: [`CachedSsd`], a device whose cache engine decides and whose memory, flash and
//! back-pressure cost time. Must never know: stack files, partitioners (they change its quotas from
//! outside). Units: pages, sectors (bits of a page), nanoseconds. Source: the data cache of MQSim
//! (Tavakkol et al., FAST'18); choices are settings here, differences in docs/design/devices.md.
//! Invariants (audited): a dirty page is in the cache; bytes on their way to flash are
//! those of the write-backs under way; a write waits only while they are at their limit; while room
//! changes hands memory holds no more than its size.
//!
//! A command's reads ([`reads`]) and writes ([`writes`]) become accesses to memory and pages of
//! flash; pages go back to flash in [`destage`]; room changes hands at divisions ([`division`]) or
//! with requests ([`elastic`]). The memory is protected against loss of power:
//! a flush has nothing to wait for.

mod account;
mod audit;
pub mod build;
mod destage;
mod division;
mod elastic;
pub mod pages;
pub mod params;
mod reads;
mod slots;
mod writes;

pub use build::{BuildError, CachedDrive, Description, build};
pub use params::{DataCacheParams, Handover, WriteBack};

use crate::Control;
use crate::series::State;
use crate::signals::Signals;
use crate::ssd::account::Account;
use crate::ssd::pages::Pages;
use cachewright_cache::index::SparseIndex;
use cachewright_cache::{Engine, Quotas};
use cachewright_device::ssd::direct::{layout, refusal};
use cachewright_device::ssd::dram::{Dram, DramTiming};
use cachewright_device::ssd::drive::{Drive, Finished, Inside};
use cachewright_device::ssd::flash::{Backend, Done, FlashStats, Kind, Transaction};
use cachewright_device::ssd::host::{Host, Port, Slot};
use cachewright_device::ssd::pages::Layout;
use cachewright_device::ssd::params::{Capacity, SsdParams, UnwrittenReads};
use cachewright_device::{Command, Energy, Exposed, Part, Spent};
use cachewright_partition::VictimSelector;
use cachewright_policy::Policy;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Seed, SettingError, TenantId};
use destage::Job;
use division::Division;
use elastic::Elastic;
use hashbrown::HashSet;
use slots::{Jobs, Users};

/// A drive with a data cache.
pub type CachedSsd<P> = Drive<DataCache<P>>;

/// Marks the tag of a flash transaction that is a job of the cache's own.
const JOB: u64 = 1 << 63;

/// What an access to memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transfer {
    /// A command's own data; since when it was asked for.
    User { slot: Slot, asked_ns: u64 },
    /// A dirty page on its way to flash.
    Out { job: u32 },
    /// A page from flash that stays.
    Fill,
}

/// What the cache has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Pages written to flash by the cache.
    pub destaged_pages: u64,
    /// Pages that entered the cache from flash.
    pub filled_pages: u64,
    /// Writes that had to wait for room.
    pub held_writes: u64,
    /// The most bytes that were on their way to flash.
    pub most_outgoing: Bytes,
    /// Dirty pages that left because their pool had to give room.
    pub given_up_pages: u64,
}

/// Writes of one partition that wait, and what is on its way to flash.
#[derive(Clone, Debug, Default)]
struct Partition {
    /// Sectors of write-backs under way.
    outgoing: u64,
    held: std::collections::VecDeque<Slot>,
}

/// The data cache, its memory and the flash behind it.
pub struct DataCache<P> {
    flash: Backend,
    layout: Layout,
    axes: DataCacheParams,
    /// Most sectors on their way to flash, per partition.
    limit: u64,
    engine: Engine<P>,
    division: Division,
    /// Where room follows requests.
    elastic: Option<Box<Elastic>>,
    indexes: Vec<SparseIndex>,
    pools: Vec<Pages>,
    partitions: Vec<Partition>,
    dram: Dram<Transfer>,
    users: Users,
    jobs: Jobs<Job>,
    /// Pages written within the current window, and when the next begins.
    recent: HashSet<(u16, u64), foldhash::fast::FixedState>,
    next_window_ns: u64,
    /// Whether a read of a page never written gives it a place in flash, and pages so read.
    allocates: bool,
    blank: HashSet<u64, foldhash::fast::FixedState>,
    stamp: u64,
    stats: CacheStats,
    account: Account,
    batch: Vec<Transaction>,
    done: Vec<Done>,
}

/// What a drive with a cache is made of.
pub struct CachedParts<'a, P> {
    /// The drive.
    pub params: &'a SsdParams,
    /// The tenants' access to it.
    pub ports: &'a [Port],
    /// The empty cache; one pool for all, or one per tenant.
    pub engine: Engine<P>,
    /// How it treats pages.
    pub axes: DataCacheParams,
    /// For the flash.
    pub seed: Seed,
}

/// Puts a drive with a data cache together. Errors: the drive cannot be.
pub fn cached<P: Policy>(parts: CachedParts<'_, P>) -> Result<CachedSsd<P>, SettingError> {
    let CachedParts { params, ports, engine, axes, seed } = parts;
    params.check()?;
    let tenants = ports.len().max(1) as u32;
    let flash = Backend::new(&params.flash(tenants), seed).map_err(refusal)?;
    let inside = DataCache::new(params, flash, engine, axes);
    Ok(Drive::of(Host::new(params, ports), inside, params.power()))
}

impl<P: Policy> DataCache<P> {
    fn new(
        params: &SsdParams,
        flash: Backend,
        engine: Engine<P>,
        axes: DataCacheParams,
    ) -> DataCache<P> {
        let timing = DramTiming {
            rate_mts: params.dram_rate,
            burst_bytes: params.dram_burst.0,
            row_bytes: params.dram_row.0,
            trcd_ns: params.dram_trcd.0,
            tcl_ns: params.dram_tcl.0,
            trp_ns: params.dram_trp.0,
        };
        let limit = match axes.back_pressure {
            Capacity::Auto => params.plane_count() * params.page.0,
            Capacity::Bytes(bytes) => bytes.0,
        };
        let pools = engine.pools();
        DataCache {
            layout: layout(params, &flash),
            flash,
            limit: (limit / params.sector.0).max(1),
            axes,
            indexes: vec![SparseIndex::default(); pools],
            pools: vec![Pages::default(); pools],
            partitions: vec![Partition::default(); pools],
            division: Division::of(&engine),
            elastic: None,
            engine,
            dram: Dram::new(timing, params.dram_channels as usize, pools),
            users: Users::default(),
            jobs: Jobs::default(),
            recent: HashSet::default(),
            next_window_ns: 0,
            allocates: params.unwritten == UnwrittenReads::Allocate,
            blank: HashSet::default(),
            stamp: 0,
            stats: CacheStats::default(),
            account: Account::default(),
            batch: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The engine, for counters and occupancy.
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// What the cache has done.
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    fn sectors_per_page(&self) -> u64 {
        u64::from(self.layout.whole_page().count_ones())
    }

    /// The next stamp.
    fn stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// Sends what a command needs on its way: bytes to or from memory, and the batch to flash.
    fn send(&mut self, now: Nanos, slot: Slot, tenant: TenantId, memory_bytes: u64) {
        if memory_bytes > 0 {
            let transfer = Transfer::User { slot, asked_ns: now.0 };
            let queue = self.engine.pool_of(tenant);
            self.dram.submit(now.0, queue, memory_bytes, transfer);
        }
        if !self.batch.is_empty() {
            self.flash.submit(now, &self.batch);
        }
    }

    /// One part of a command is done; `spent` is its time since the command arrived.
    fn part_done(&mut self, slot: Slot, spent: Spent, finished: &mut Vec<Finished>) {
        if self.users.part_done(slot) {
            finished.push(Finished { slot, spent });
        }
    }

    /// An access to memory is done.
    fn transferred(&mut self, now: u64, transfer: Transfer, finished: &mut Vec<Finished>) {
        match transfer {
            Transfer::Fill => {}
            Transfer::Out { job } => self.send_out(now, job),
            Transfer::User { slot, asked_ns } => {
                let mut spent = Spent::default();
                spent.add(Part::Queue, asked_ns - self.users.arrived(slot));
                spent.add(Part::Dram, now - asked_ns);
                self.part_done(slot, spent, finished);
            }
        }
    }

    /// A transaction of flash is done.
    fn flashed(&mut self, now: u64, done: Done, finished: &mut Vec<Finished>) {
        if done.tag & JOB == 0 {
            let (slot, mut spent) = (Slot(done.tag as u32), done.spent);
            let waited = now - self.users.arrived(slot) - spent.total_ns();
            spent.add(Part::Queue, waited);
            return self.part_done(slot, spent, finished);
        }
        let index = (done.tag & !JOB) as u32;
        let Some(job) = self.jobs.remove(index) else { return };
        match job {
            Job::Fill(fill) => {
                self.filled(now, &fill);
                self.part_done(fill.slot, done.spent, finished);
            }
            Job::Out(out) => self.destaged(now, &out),
        }
    }

    /// Forgets whole pages and tells flash.
    fn trim(&mut self, now: Nanos, slot: Slot, command: &Command) {
        let tenant = command.tenant;
        let (mut offset, end) = (command.offset.0, command.offset.0 + command.length.0);
        let page_bytes = self.layout.page_bytes().0;
        self.batch.clear();
        while let Some(part) = self.layout.parts(Bytes(offset), Bytes(end - offset)).next() {
            offset = (offset / page_bytes + 1) * page_bytes;
            if part.sectors == self.layout.whole_page() {
                let number = self.layout.number(part.group, part.page);
                if let Some(id) = self.cached_id(tenant, number) {
                    let pool = self.engine.pool_of(tenant);
                    self.engine.discard(tenant, id);
                    self.pools[pool].leave(id);
                    self.give_unused(pool);
                }
                let (group, page, sectors) = (part.group, part.page, part.sectors);
                let (tag, kind) = (u64::from(slot.0), Kind::Trim);
                self.batch.push(Transaction { tag, tenant, group, kind, page, sectors });
            }
            if offset >= end {
                break;
            }
        }
        self.users.await_parts(slot, self.batch.len() as u32);
        if !self.batch.is_empty() {
            self.flash.submit(now, &self.batch);
        }
    }
}

impl<P: Policy> Inside for DataCache<P> {
    fn capacity(&self) -> Bytes {
        self.layout.capacity()
    }

    fn arrive(&mut self, now: Nanos, slot: Slot, command: &Command, finished: &mut Vec<Finished>) {
        self.users.arrive(slot, now.0, command);
        match command.op {
            Op::Read => self.accounted(slot, |cache| cache.read(now, slot, command)),
            Op::Write => self.write(now, slot),
            Op::Trim => self.trim(now, slot, command),
            Op::Flush => {}
        }
        if self.users.idle(slot) {
            self.users.leave(slot);
            finished.push(Finished { slot, spent: Spent::default() });
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        match (self.dram.next_due(), self.flash.next_due()) {
            (Some(dram), Some(flash)) => Some(flash.min(Nanos(dram))),
            (dram, flash) => flash.or(dram.map(Nanos)),
        }
    }

    fn advance(&mut self, now: Nanos, finished: &mut Vec<Finished>) {
        while let Some(transfer) = self.dram.receive(now.0) {
            self.transferred(now.0, transfer, finished);
        }
        if self.flash.next_due().is_none_or(|due| due > now) {
            return;
        }
        let mut done = std::mem::take(&mut self.done);
        self.flash.advance(now, &mut done);
        for item in done.drain(..) {
            self.flashed(now.0, item, finished);
        }
        self.done = done;
    }

    fn outstanding(&self) -> usize {
        self.users.open()
    }

    fn exposed(&self) -> Vec<Exposed> {
        self.layout.exposed()
    }

    fn spend(&self, energy: &mut Energy) {
        self.flash.spend(energy);
    }

    fn flash(&self, now: Nanos) -> Option<FlashStats> {
        Some(self.flash.stats(now))
    }

    fn audit(&self) -> Result<(), String> {
        self.check()
    }
}

/// What a machine may do with a drive whose policy it does not know.
pub trait DataCached {
    /// Changes the division of the cache at `now`; pages that must leave go at background pace. The
    /// kind of division stays (see [`Engine::set_quotas`]).
    fn set_quotas(&mut self, now: Nanos, quotas: &Quotas) -> bool;
    /// Lets a control loop divide the cache at the end of an interval; `signals` are those
    /// of the interval.
    fn control(&mut self, now: Nanos, control: &mut Control, signals: &Signals);
    /// Lets room follow requests from now on. The cache must be empty, with a pool of no pages for
    /// each tenant; all of them share `pages`.
    fn follow(&mut self, pages: u32, selector: Box<dyn VictimSelector>);
    /// How far a tenant is from what the division gives it; none where it has no quota of its own.
    fn state(&self, tenant: TenantId) -> State;
    /// Counters of a tenant, in pages.
    fn counts(&self, tenant: TenantId) -> cachewright_measure::Counts;
    /// Counts from now on only what commands after the last ones of each tenant, given by their
    /// tags, ask of the cache; tags of a tenant ascend.
    fn count_after(&mut self, last: &[Option<u64>]);
    /// Counters of a tenant since [`DataCached::count_after`] was called, if it was.
    fn counted(&self, tenant: TenantId) -> cachewright_measure::Counts;
    /// From now on keeps how many pages each command found in the cache.
    fn tell_hits(&mut self);
    /// Appends the tags of commands that found pages in the cache since the last call, and how
    /// many; a command may appear more than once.
    fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>);
    /// Pages a tenant holds.
    fn occupancy(&self, tenant: TenantId) -> u32;
    /// Pages a tenant may hold, once it has given up or got what the division says.
    fn quota(&self, tenant: TenantId) -> u32;
    /// The pool of each tenant, where some tenants but not all share one; otherwise nothing.
    fn mixed_pools(&self) -> Vec<u16>;
    /// Pages all tenants together may hold.
    fn pages(&self) -> u64;
    /// Pages that are dirty.
    fn dirty_pages(&self) -> u64;
    /// What the cache has done.
    fn cache_stats(&self) -> CacheStats;
    /// Time in which the wires to the drive and to the host carried something.
    fn link_busy(&self) -> [Nanos; 2];
}

impl<P: Policy> DataCached for CachedSsd<P> {
    fn set_quotas(&mut self, now: Nanos, quotas: &Quotas) -> bool {
        self.change(|inside| inside.divide(now.0, quotas))
    }

    fn control(&mut self, now: Nanos, control: &mut Control, signals: &Signals) {
        self.change(|inside| inside.controlled(now.0, control, signals));
    }

    fn follow(&mut self, pages: u32, selector: Box<dyn VictimSelector>) {
        self.change(|inside| inside.follow(pages, selector));
    }

    fn state(&self, tenant: TenantId) -> State {
        self.inside().state(tenant)
    }

    fn counts(&self, tenant: TenantId) -> cachewright_measure::Counts {
        *self.inside().engine.counts(tenant)
    }

    fn count_after(&mut self, last: &[Option<u64>]) {
        self.change(|inside| inside.account.count_after(last, &inside.engine));
    }

    fn counted(&self, tenant: TenantId) -> cachewright_measure::Counts {
        let inside = self.inside();
        inside.account.counted(tenant, &inside.engine)
    }

    fn tell_hits(&mut self) {
        self.change(|inside| inside.account.tell_hits());
    }

    fn take_hits(&mut self, hits: &mut Vec<(u64, u64)>) {
        self.change(|inside| inside.account.take_hits(hits));
    }

    fn occupancy(&self, tenant: TenantId) -> u32 {
        self.inside().engine.occupancy(tenant)
    }

    fn quota(&self, tenant: TenantId) -> u32 {
        self.inside().target(tenant)
    }

    fn mixed_pools(&self) -> Vec<u16> {
        self.inside().engine.mixed_pools()
    }

    fn pages(&self) -> u64 {
        self.inside().whole()
    }

    fn dirty_pages(&self) -> u64 {
        self.inside().engine.dirty_blocks()
    }

    fn cache_stats(&self) -> CacheStats {
        self.inside().stats
    }

    fn link_busy(&self) -> [Nanos; 2] {
        self.host().link_busy()
    }
}

/// The id of a page under which its pool knows it, if it is in the cache.
impl<P: Policy> DataCache<P> {
    fn cached_id(&self, tenant: TenantId, number: u64) -> Option<BlockId> {
        let pool = self.engine.pool_of(tenant);
        let address = cachewright_cache::index::BlockAddress { tenant, number };
        let id = self.indexes[pool].get(address)?;
        (self.pools[pool].get(id).life != 0).then_some(id)
    }
}
