//! The flash of one drive as a whole.
//!
//! For: transactions in, completions out, under simulated time; which part goes on with what has
//! ended. Must never know: the host's protocol, caches, files; how a part does its work. Units:
//! pages, nanoseconds.

use super::address_space::AddressSpace;
use super::calendar::FlashEvent;
use super::check;
use super::cleaner::FlashCleaner;
use super::error::FlashError;
use super::executor::Executor;
use super::ids::{JobId, LogicalPage, UnitId, WorkId};
use super::params::{FlashParams, Joules};
use super::request::{DoneTransaction, Transaction};
use super::stats::FlashStats;
use super::translator::Translator;
use super::watch::ContentsWatch;
use super::work::{FlashWork, WorkPurpose, WorkQueue, WorkStep};
use crate::energy::Energy;
use crate::spent::SpentPart;
use cachewright_ftl::{EraseCounts, FtlError};
use cachewright_types::{Nanos, Seed, TenantId};

/// The flash of one drive.
pub struct Backend {
    translator: Translator,
    cleaner: FlashCleaner,
    executor: Executor,
    watch: Option<Box<ContentsWatch>>,
    joules: Joules,
    pages_per_block: u32,
    /// How it was filled at the start, as results say it.
    preconditioned: &'static str,
}

impl Backend {
    /// The flash of a drive, filled as its parameters say. Errors: impossible devices by parameter
    /// and value; unknown schemes; a translation layer without free blocks.
    pub fn new(params: &FlashParams, seed: Seed) -> Result<Backend, FlashError> {
        check::check(params)?;
        let mut backend = Backend {
            translator: Translator::new(params, seed)?,
            cleaner: FlashCleaner::new(params),
            executor: Executor::new(params),
            watch: None,
            joules: params.joules,
            pages_per_block: params.shape.pages_per_block,
            preconditioned: params.fill.word(),
        };
        let space = backend.translator.space();
        backend.cleaner.note_urgency_everywhere(space, &mut backend.executor);
        Ok(backend)
    }

    /// Pages of each group of channels that the host would see. Errors: as [`Backend::new`], but
    /// those of filling.
    pub fn host_pages(params: &FlashParams, seed: Seed) -> Result<Vec<u32>, FlashError> {
        check::check(params)?;
        AddressSpace::host_pages(params, seed)
    }

    /// Accepts the transactions of one host request at `now`; each completes exactly once. `now`
    /// is not before any time named earlier. A page beyond the end of its group is the caller's
    /// fault, and completes at once.
    pub fn submit(&mut self, now: Nanos, batch: &[Transaction]) {
        let (flight, _) = self.executor.parts();
        debug_assert!(now.0 >= flight.calendar.now(), "time goes on");
        flight.calendar.advance_to(now.0);
        self.translator.announce(batch);
        self.executor.set_alone(batch.len() == 1);
        for transaction in batch {
            self.translator.accept(transaction, &mut self.cleaner, &mut self.executor);
        }
        self.executor.set_alone(false);
        self.executor.dispatch();
    }

    /// Starts to load what a transaction to come will read.
    pub fn prefetch(&self, tenant: TenantId, group: u16, page: u32) {
        self.translator.prefetch(tenant.0, group, page);
    }

    /// Starts to load what evictions of map entries will read, one for a transaction of each of
    /// some tenants.
    pub fn prefetch_evictions(&self, tenants: impl Iterator<Item = TenantId>) {
        self.translator.map().prefetch_evictions(tenants.map(|tenant| tenant.0));
    }

    /// When something next happens inside; nothing when all is done.
    pub fn next_due(&self) -> Option<Nanos> {
        self.executor.next_due().map(Nanos)
    }

    /// Lets what is due happen, in order of time, up to the first time at which a transaction
    /// completes, or to `until` if none does; appends what completed, in the order of completion.
    /// Returns the time of the last that happened; something must be due.
    pub fn advance_to_done(&mut self, until: Nanos, done: &mut Vec<DoneTransaction>) -> Nanos {
        let until = if self.executor.has_done() { self.executor.now() } else { until.0 };
        self.go_on(until, true);
        self.executor.hand_out(done);
        Nanos(self.executor.now())
    }

    /// Events due by a time take place, with `to_done` no later than a transaction completes.
    #[inline]
    fn go_on(&mut self, mut until: u64, to_done: bool) {
        while let Some(event) = self.executor.parts().0.calendar.pop(until) {
            self.happen(event);
            self.executor.dispatch();
            if to_done && self.executor.has_done() {
                until = self.executor.now();
            }
        }
    }

    /// Lets everything due at or before `now` happen, in order of time, and appends what completed,
    /// in the order of completion.
    pub fn advance(&mut self, now: Nanos, done: &mut Vec<DoneTransaction>) {
        self.go_on(now.0, false);
        self.executor.parts().0.calendar.advance_to(now.0);
        self.executor.hand_out(done);
    }

    /// One event takes place.
    #[inline]
    fn happen(&mut self, event: FlashEvent) {
        let (flight, scheduler) = self.executor.parts();
        let hardware = scheduler.hardware_mut();
        match event {
            FlashEvent::ChannelFree(channel) => hardware.channel_free(channel),
            FlashEvent::Crossed(channel) => {
                let (id, unit) = hardware.crossed(flight, channel);
                self.translator.read_done(id, &mut self.cleaner, &mut self.executor);
                let (flight, scheduler) = self.executor.parts();
                scheduler.hardware_mut().page_left(flight, unit);
            }
            FlashEvent::Sensed(unit) => {
                if self.watch.is_some() {
                    self.compare(unit);
                }
                let (flight, scheduler) = self.executor.parts();
                scheduler.hardware_mut().sensed(flight, unit);
            }
            FlashEvent::Worked(unit) => {
                if let Some(batch) = hardware.worked(flight, unit) {
                    self.worked(unit, batch);
                }
            }
            FlashEvent::Halted(unit) => hardware.rest(flight, unit),
            FlashEvent::Decided => self.executor.decided(),
        }
    }

    /// A unit has programmed or erased.
    fn worked(&mut self, unit: UnitId, mut batch: WorkQueue) {
        loop {
            let (flight, _) = self.executor.parts();
            let Some(id) = batch.pop(&mut flight.work) else { break };
            // Time for which it was halted for others.
            flight.work[id].time.account(SpentPart::DieWait, flight.calendar.now());
            match flight.work[id].step {
                WorkStep::Erase => self.erased(id),
                _ => self.programmed(id),
            }
        }
        let (flight, scheduler) = self.executor.parts();
        scheduler.hardware_mut().rest(flight, unit);
    }

    fn erased(&mut self, id: WorkId) {
        if let Some(watch) = &mut self.watch {
            let target = self.executor.work(id).transfer.target;
            watch.erased(target.plane, target.block);
        }
        self.cleaner.erased(self.translator.space(), id, &mut self.executor);
    }

    fn programmed(&mut self, id: WorkId) {
        let work = *self.executor.work(id);
        let subject = if self.watch.is_some() { self.subject(&work) } else { None };
        if let (Some(watch), Some(page)) = (&mut self.watch, subject) {
            watch.programmed(work.transfer.target, page);
        }
        self.executor.programmed(id);
        for job in [work.erases.job, work.erases.delays] {
            if job != JobId::NONE {
                self.cleaner.program_done(self.translator.space(), job, &mut self.executor);
            }
        }
        match work.purpose {
            WorkPurpose::HostWrite => self.executor.finish(id),
            _ => self.executor.remove(id),
        }
    }

    /// From now on, checks that each page sensed holds what its reader wants; [`Backend::audit`]
    /// tells the first that did not. Pages that reads of unwritten ones were given hold nothing, so
    /// this is for devices that answer such reads with zeroes. To be called before any work.
    pub fn watch_contents(&mut self) {
        self.watch = Some(Box::new(ContentsWatch::new(self.pages_per_block)));
    }

    /// Pages compared so far.
    pub fn contents_checked(&self) -> u64 {
        self.watch.as_ref().map_or(0, |watch| watch.checked())
    }

    /// The logical page that a transaction is about; nothing for metadata and erases.
    fn subject(&self, work: &FlashWork) -> Option<LogicalPage> {
        let space = self.translator.space();
        match work.purpose {
            WorkPurpose::HostRead | WorkPurpose::HostWrite => {
                Some(space.host_page(work.group, work.page))
            }
            WorkPurpose::MapRead | WorkPurpose::MapWrite => {
                Some(space.map_page(work.group, work.page))
            }
            WorkPurpose::Move => {
                let layer = self.cleaner.layer_of(work.erases.job);
                Some(LogicalPage { layer, page: work.page })
            }
            WorkPurpose::Meta | WorkPurpose::Erase => None,
        }
    }

    /// Compares the pages that a unit has sensed with what their readers want.
    fn compare(&mut self, unit: UnitId) {
        let batch = self.executor.scheduler().hardware().unit(unit).batch();
        let mut next = batch.head();
        while next != WorkId::NONE {
            let work = *self.executor.work(next);
            let subject = self.subject(&work);
            if let (Some(watch), Some(page)) = (&mut self.watch, subject) {
                watch.sensed(work.transfer.source, page);
            }
            next = work.next;
        }
    }

    /// Transactions of the host accepted and not yet handed back.
    pub fn outstanding(&self) -> usize {
        self.executor.outstanding()
    }

    /// Groups of channels.
    pub fn groups(&self) -> u16 {
        self.translator.space().groups()
    }

    /// Pages of a group that the host sees.
    pub fn logical_pages(&self, group: u16) -> u32 {
        self.translator.space().pages(group)
    }

    /// Channels.
    pub fn channels(&self) -> u32 {
        self.executor.scheduler().hardware().channels().iter().len() as u32
    }

    /// Channels that carry a command or data at `now`.
    pub fn busy_channels(&self, now: Nanos) -> u32 {
        self.executor.scheduler().hardware().busy_channels(now.0)
    }

    /// Whether a page of a group has a place in flash.
    pub fn holds(&self, group: u16, page: u32) -> bool {
        let space = self.translator.space();
        space.locate(space.host_page(group, page)).is_some()
    }

    /// The mask of all sectors of a page.
    pub fn whole_page(&self) -> u64 {
        self.translator.space().sectors().whole()
    }

    /// Why a write could not be done, if one ever could not: the drive is full, and reclaim frees
    /// nothing. Such writes complete without flash.
    pub fn fault(&self) -> Option<&FtlError> {
        self.translator.fault()
    }

    /// Adds the energy of the operations begun so far.
    pub fn spend(&self, energy: &mut Energy) {
        let counters = self.executor.counted();
        energy.spend("flash reads", self.joules.read, counters.reads.from_flash());
        energy.spend("flash programs", self.joules.program, counters.programs.total());
        energy.spend("flash erases", self.joules.erase, counters.erases);
        energy.spend("channels", self.joules.channel_byte, counters.channel_bytes);
    }

    /// What was done up to `now`, or to the time named last if that is later, filling it apart (but
    /// its erases count as wear).
    pub fn stats(&self, now: Nanos) -> FlashStats {
        let now = now.0.max(self.executor.now());
        let space = self.translator.space();
        let layers = || space.layers().map(|(_, layer)| layer);
        let counts = space.counts();
        FlashStats {
            collections: counts.collections,
            moved_pages: counts.moved_pages,
            wear: EraseCounts::from_erases(
                layers().flat_map(|layer| layer.blocks().iter().map(|b| b.erases)),
            ),
            free_blocks: layers().map(|layer| u64::from(layer.free_blocks())).sum(),
            mapped_pages: layers().map(|layer| u64::from(layer.mapped_pages())).sum(),
            preconditioned: self.preconditioned,
            fault: self.translator.fault().cloned(),
            ..self.executor.report(now)
        }
    }

    /// Checks every invariant; slow. The error says which one is broken and how.
    pub fn audit(&self) -> Result<(), String> {
        self.translator.audit()?;
        if let Some(watch) = &self.watch {
            watch.audit()?;
        }
        if self.executor.audit()? {
            return Ok(());
        }
        self.executor.audit_rest()?;
        self.translator.audit_rest()?;
        self.cleaner.audit_rest()
    }
}
