//! What moves inside the drive: commands, accesses to memory, transactions of flash.
//!
//! A command, by the slot of its host interface, waits for all of its parts. A job is a transaction
//! of flash that the cache asked for, by a number that is given out again once it is done. Nothing
//! is allocated per command or job.

use super::contents::{PoolId, Stamp};
use cachewright_device::Command;
use cachewright_device::ssd::dram::Dram;
use cachewright_device::ssd::flash::{Backend, PageOp, Transaction};
use cachewright_device::ssd::host::Slot;
use cachewright_device::ssd::pages::{AddressLayout, PagePart};
use cachewright_types::{BlockId, Bytes, Nanos, TenantId};
use hashbrown::HashSet;

/// Marks the tag of a flash transaction that is a job of the cache's own.
const JOB: u64 = 1 << 63;

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheJobId(u32);

/// What an access to memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A command's own data; since when it was asked for.
    Host { slot: Slot, requested_ns: u64 },
    /// A dirty page on its way to flash.
    Destage(CacheJobId),
    /// A page from flash that stays.
    Fill,
}

/// What a transaction of flash was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashTag {
    /// A page of a command.
    Host(Slot),
    /// A job of the cache.
    Job(CacheJobId),
}

impl FlashTag {
    fn packed(self) -> u64 {
        match self {
            FlashTag::Host(slot) => u64::from(slot.0),
            FlashTag::Job(job) => JOB | u64::from(job.0),
        }
    }

    /// The tag of a packed number.
    pub fn unpacked(tag: u64) -> FlashTag {
        if tag & JOB == 0 {
            FlashTag::Host(Slot(tag as u32))
        } else {
            FlashTag::Job(CacheJobId((tag & !JOB) as u32))
        }
    }
}

/// Commands, memory and flash of a drive.
pub struct Traffic {
    /// Commands inside.
    pub commands: HostCommands,
    /// Transactions of flash that the cache asked for.
    pub jobs: CacheJobs,
    layout: AddressLayout,
    memory: Dram<Transfer>,
    flash: Backend,
    /// Transactions that go to flash together.
    batch: Vec<Transaction>,
    /// Whether a read of a page never written gives it a place in flash, and pages so read.
    allocates: bool,
    blank: HashSet<u64, foldhash::fast::FixedState>,
}

impl Traffic {
    /// Nothing moves.
    pub fn new(
        layout: AddressLayout,
        memory: Dram<Transfer>,
        flash: Backend,
        allocates: bool,
    ) -> Traffic {
        Traffic {
            commands: HostCommands::default(),
            jobs: CacheJobs::default(),
            layout,
            memory,
            flash,
            batch: Vec::new(),
            allocates,
            blank: HashSet::default(),
        }
    }

    /// How addresses are laid out.
    #[inline]
    pub fn layout(&self) -> &AddressLayout {
        &self.layout
    }

    /// The flash, to look at.
    pub fn flash(&self) -> &Backend {
        &self.flash
    }

    /// The flash, to let time pass.
    pub fn flash_mut(&mut self) -> &mut Backend {
        &mut self.flash
    }

    /// The first page of a range of bytes, and where the next begins; nothing beyond the drive.
    #[inline]
    pub fn first_part(&self, offset: u64, end: u64) -> Option<(PagePart, u64)> {
        let page_bytes = self.layout.page_bytes().0;
        let part = self.layout.parts(Bytes(offset), Bytes(end - offset)).next()?;
        Some((part, (offset / page_bytes + 1) * page_bytes))
    }

    /// Begins a batch of transactions.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.batch.clear();
    }

    /// Adds a part of a command to the batch.
    #[inline]
    pub fn push_host(&mut self, slot: Slot, tenant: TenantId, op: PageOp, part: &PagePart) {
        self.push(FlashTag::Host(slot), tenant, op, part);
    }

    /// Adds a job of the cache's own to the batch.
    #[inline]
    pub fn push_job(&mut self, job: CacheJob, tenant: TenantId, op: PageOp, part: &PagePart) {
        let id = self.jobs.insert(job);
        self.push(FlashTag::Job(id), tenant, op, part);
    }

    #[inline]
    fn push(&mut self, tag: FlashTag, tenant: TenantId, op: PageOp, part: &PagePart) {
        let PagePart { group, page, sectors } = *part;
        self.batch.push(Transaction { tag: tag.packed(), tenant, group, op, page, sectors });
    }

    /// Transactions of the batch.
    pub fn batched(&self) -> u32 {
        self.batch.len() as u32
    }

    /// Transactions of the batch that a command waits for.
    pub fn batched_for_host(&self) -> u32 {
        self.batch.iter().filter(|transaction| transaction.tag & JOB == 0).count() as u32
    }

    /// Sends what a command needs on its way: bytes to or from memory, and the batch to flash.
    pub fn send(&mut self, now: Nanos, slot: Slot, pool: PoolId, memory_bytes: u64) {
        if memory_bytes > 0 {
            let transfer = Transfer::Host { slot, requested_ns: now.0 };
            self.memory.submit(now.0, pool.index(), memory_bytes, transfer);
        }
        self.send_batch(now);
    }

    /// Sends the batch to flash.
    pub fn send_batch(&mut self, now: Nanos) {
        if !self.batch.is_empty() {
            self.flash.submit(now, &self.batch);
        }
    }

    /// Sectors that came from flash go to memory.
    pub fn fill(&mut self, now: u64, pool: PoolId, sectors: u64) {
        let bytes = self.layout.bytes_of(sectors);
        self.memory.submit(now, pool.index(), bytes, Transfer::Fill);
    }

    /// Reads a page from memory on its way to flash.
    pub fn read_out(&mut self, now: u64, job: DestageJob) {
        let bytes = self.layout.bytes_of(job.sectors);
        let pool = job.pool.index();
        let id = self.jobs.insert(CacheJob::Destage(job));
        self.memory.submit(now, pool, bytes, Transfer::Destage(id));
    }

    /// A page has been read from memory: it goes to flash.
    pub fn send_out(&mut self, now: u64, id: CacheJobId) {
        if let Some(CacheJob::Destage(job)) = self.jobs.get(id) {
            let DestageJob { tenant, group, page, sectors, .. } = job;
            let (tag, op) = (FlashTag::Job(id).packed(), PageOp::Write);
            let transaction = Transaction { tag, tenant, group, op, page, sectors };
            self.flash.submit(Nanos(now), &[transaction]);
        }
    }

    /// The next access to memory that is done.
    #[inline]
    pub fn receive(&mut self, now: u64) -> Option<Transfer> {
        self.memory.receive(now)
    }

    /// The last time before the next access to memory is done, `until` at most.
    #[inline]
    pub fn before_transfer(&self, until: Nanos) -> Nanos {
        self.memory.next_due().map_or(until, |due| until.min(Nanos(due.saturating_sub(1))))
    }

    /// When something next happens.
    #[inline]
    pub fn next_due(&self) -> Option<Nanos> {
        match (self.memory.next_due(), self.flash.next_due()) {
            (Some(memory), Some(flash)) => Some(flash.min(Nanos(memory))),
            (memory, flash) => flash.or(memory.map(Nanos)),
        }
    }

    /// Whether flash has data of a page that is not in the cache. One that was read before it was
    /// ever written may have a place in flash by now, but no data.
    pub fn is_written(&mut self, part: &PagePart, number: u64) -> bool {
        if self.blank.contains(&number) {
            return false;
        }
        let holds = self.flash.holds(part.group, part.page);
        if !holds && self.allocates {
            self.blank.insert(number);
        }
        holds
    }

    /// A page is written.
    #[inline]
    pub fn note_written(&mut self, number: u64) {
        if !self.blank.is_empty() {
            self.blank.remove(&number);
        }
    }

    /// Memory, flash and commands hold what they promise.
    pub fn audit(&self) -> Result<(), String> {
        self.memory.audit()?;
        self.flash.audit()?;
        self.commands.audit()
    }
}

/// A command inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCommand {
    /// As submitted.
    pub tag: u64,
    pub tenant: TenantId,
    /// First byte that has no place yet (writes).
    pub offset: u64,
    /// Bytes from there.
    pub length: u64,
    /// Accesses to memory and pages of flash that it waits for.
    parts_left: u32,
    arrived_ns: u64,
    open: bool,
}

#[derive(Clone, Debug, Default)]
pub struct HostCommands {
    commands: Vec<HostCommand>,
    open: usize,
}

impl HostCommands {
    /// A command arrives.
    pub fn arrive(&mut self, slot: Slot, now_ns: u64, command: &Command) {
        let index = slot.0 as usize;
        if index >= self.commands.len() {
            self.commands.resize(index + 1, HostCommand::default());
        }
        let Command { tag, tenant, offset: Bytes(offset), length: Bytes(length), .. } = *command;
        let (parts_left, arrived_ns, open) = (0, now_ns, true);
        self.commands[index] =
            HostCommand { tag, tenant, offset, length, parts_left, arrived_ns, open };
        self.open += 1;
    }

    fn get_mut(&mut self, slot: Slot) -> &mut HostCommand {
        &mut self.commands[slot.0 as usize]
    }

    pub fn get(&self, slot: Slot) -> &HostCommand {
        &self.commands[slot.0 as usize]
    }

    /// When a command arrived.
    pub fn arrived(&self, slot: Slot) -> u64 {
        self.get(slot).arrived_ns
    }

    /// A command waits for more parts; one that is no write has nothing to place.
    pub fn await_parts(&mut self, slot: Slot, parts: u32) {
        let command = self.get_mut(slot);
        command.parts_left += parts;
        command.length = 0;
    }

    /// A write has placed what lies before `offset`, waits for more parts, and has `length` left.
    pub fn placed(&mut self, slot: Slot, offset: u64, length: u64, parts: u32) {
        let command = self.get_mut(slot);
        command.parts_left += parts;
        (command.offset, command.length) = (offset, length);
    }

    /// A write waits for a page that it pushed out, too.
    pub fn await_victim(&mut self, slot: Slot) {
        self.get_mut(slot).parts_left += 1;
    }

    /// Whether a command waits for nothing.
    pub fn idle(&self, slot: Slot) -> bool {
        let command = self.get(slot);
        command.parts_left == 0 && command.length == 0
    }

    /// A part is done; whether the whole command is, which is then forgotten.
    pub fn part_done(&mut self, slot: Slot) -> bool {
        let command = self.get_mut(slot);
        assert!(command.parts_left > 0, "a command waits for each of its parts once");
        command.parts_left -= 1;
        let done = self.idle(slot);
        if done {
            self.leave(slot);
        }
        done
    }

    /// Forgets a command.
    pub fn leave(&mut self, slot: Slot) {
        self.get_mut(slot).open = false;
        self.open -= 1;
    }

    /// Commands inside.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Commands inside are counted.
    fn audit(&self) -> Result<(), String> {
        let counted = self.commands.iter().filter(|command| command.open).count();
        if counted == self.open {
            return Ok(());
        }
        Err(format!("{counted} commands are inside, {} are counted", self.open))
    }
}

/// A page of flash that is to stay in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillJob {
    /// The command that reads it.
    pub slot: Slot,
    /// Where it stays.
    pub pool: PoolId,
    /// Its id there.
    pub id: BlockId,
    /// Which life of the id.
    pub life: Stamp,
    /// Sectors that come.
    pub sectors: u64,
}

/// A page of memory on its way to flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DestageJob {
    pub pool: PoolId,
    /// Its id there.
    pub id: BlockId,
    /// Which life of the id; none when the page has left the cache.
    pub life: Stamp,
    /// Which write of it.
    pub version: Stamp,
    pub tenant: TenantId,
    pub group: u16,
    pub page: u32,
    /// Sectors that go.
    pub sectors: u64,
    /// Its pool gives up space with it: it is in memory, not on its way there as others come in.
    pub given_up: bool,
    /// The write that pushed it out and waits for it.
    pub waiter: Option<Slot>,
}

/// A transaction of flash that the cache asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheJob {
    /// A page comes to memory.
    Fill(FillJob),
    /// A page goes to flash.
    Destage(DestageJob),
}

#[derive(Clone, Debug, Default)]
pub struct CacheJobs {
    jobs: Vec<Option<CacheJob>>,
    free: Vec<CacheJobId>,
}

impl CacheJobs {
    fn insert(&mut self, job: CacheJob) -> CacheJobId {
        match self.free.pop() {
            Some(id) => {
                self.jobs[id.0 as usize] = Some(job);
                id
            }
            None => {
                self.jobs.push(Some(job));
                CacheJobId(self.jobs.len() as u32 - 1)
            }
        }
    }

    fn get(&self, id: CacheJobId) -> Option<CacheJob> {
        self.jobs.get(id.0 as usize).copied().flatten()
    }

    /// Takes a job away.
    pub fn remove(&mut self, id: CacheJobId) -> Option<CacheJob> {
        let job = self.jobs.get_mut(id.0 as usize)?.take();
        if job.is_some() {
            self.free.push(id);
        }
        job
    }

    /// Pages of a pool on their way to flash.
    pub fn destages(&self, pool: PoolId) -> impl Iterator<Item = &DestageJob> {
        self.jobs.iter().flatten().filter_map(move |job| match job {
            CacheJob::Destage(job) if job.pool == pool => Some(job),
            _ => None,
        })
    }
}
