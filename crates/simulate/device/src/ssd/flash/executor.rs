//! What translator and cleaner give work to: reads, programs and erases, until data is where it
//! should be.
//!
//! A page is read in the controller if its data is there, and at its old place if it is still to be
//! moved. A page that waits for the rest of itself is waited for. Units: pages, nanoseconds.

use super::backend::FlashEvent;
use super::geometry::{FlashShape, JobId, PhysicalPage, PlaneId, WorkId};
use super::params::FlashParams;
use super::scheduler::{BusyPredictor, Scheduler};
use super::stats::{Counters, FlashStats};
use super::work::{DoneTransaction, FlashOperations, FlashWork, WorkPurpose, WorkStep};
use crate::device::SpentPart;
use cachewright_types::Nanos;
use hashbrown::HashMap;

/// Where data that is wanted is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataSource {
    /// On flash.
    Flash(PhysicalPage),
    /// In the controller.
    Controller,
    /// Will be in the controller when this transaction goes on.
    After(WorkId),
}

/// Transactions under way, and the parts that carry them out.
#[derive(Clone, Debug)]
pub struct Executor {
    flight: FlashOperations,
    scheduler: Scheduler,
    pending: PendingPrograms,
    predictor: BusyPredictor,
    /// Work of now can begin at once: no other comes with it.
    alone: bool,
    done: Vec<DoneTransaction>,
    /// Transactions of the host that are not done.
    outstanding: usize,
}

impl Executor {
    /// Nothing is under way.
    pub fn new(params: &FlashParams) -> Executor {
        Executor {
            flight: FlashOperations::default(),
            scheduler: Scheduler::new(params),
            pending: PendingPrograms::new(&params.shape),
            predictor: BusyPredictor::new(params.collect.prediction_ns),
            alone: false,
            done: Vec::new(),
            outstanding: 0,
        }
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.flight.calendar.now()
    }

    /// A transaction.
    #[inline(always)]
    pub fn work(&self, id: WorkId) -> &FlashWork {
        &self.flight.work[id]
    }

    /// A transaction, to be changed.
    #[inline(always)]
    pub fn work_mut(&mut self, id: WorkId) -> &mut FlashWork {
        &mut self.flight.work[id]
    }

    /// The counters of operations.
    #[inline]
    pub fn counters(&mut self) -> &mut Counters {
        &mut self.flight.counters
    }

    /// Operations counted so far, without events.
    pub fn counted(&self) -> &Counters {
        &self.flight.counters
    }

    /// Queues, units and channels, to look at.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Queues, units and channels with what they work on.
    #[inline(always)]
    pub fn parts(&mut self) -> (&mut FlashOperations, &mut Scheduler) {
        (&mut self.flight, &mut self.scheduler)
    }

    /// Pages of one request may share commands: they are queued together unless one comes alone.
    #[inline]
    pub fn set_alone(&mut self, alone: bool) {
        self.alone = alone;
    }

    /// Begins what can begin, before time goes on.
    #[inline]
    pub fn dispatch(&mut self) {
        self.scheduler.dispatch(&mut self.flight);
    }

    /// Adds a transaction of the back-end's own, submitted now; `set` says what it is for.
    #[inline(always)]
    pub fn add(&mut self, purpose: WorkPurpose, set: impl FnOnce(&mut FlashWork)) -> WorkId {
        let now = self.now();
        let id = self.flight.work.insert(purpose, now);
        set(&mut self.flight.work[id]);
        id
    }

    /// Adds a transaction of the host, submitted now; `set` says what it is for.
    #[inline(always)]
    pub fn add_host(&mut self, purpose: WorkPurpose, set: impl FnOnce(&mut FlashWork)) -> WorkId {
        self.outstanding += 1;
        self.add(purpose, set)
    }

    /// Forgets a transaction that is done.
    #[inline]
    pub fn remove(&mut self, id: WorkId) {
        self.flight.work.remove(id);
    }

    /// Completes a transaction of the host.
    #[inline]
    pub fn finish(&mut self, id: WorkId) {
        let now = self.now();
        let work = &mut self.flight.work[id];
        work.time.account(SpentPart::Queue, now);
        let done =
            DoneTransaction { tag: work.tag, finished: Nanos(now), spent: work.time.spent() };
        self.outstanding -= 1;
        self.done.push(done);
        self.flight.work.remove(id);
    }

    /// Where the data that belongs at a place is now. Valid until the layer changes again: a block
    /// may get its next life while pages of this one are still on their way.
    #[inline]
    pub fn find(&self, page: PhysicalPage) -> DataSource {
        let Some(writer) = self.pending.writer(page) else { return DataSource::Flash(page) };
        let other = &self.flight.work[writer];
        let unmoved = other.step == WorkStep::Read || other.copy_back;
        match (other.purpose, other.step) {
            (WorkPurpose::Move, _) if unmoved => DataSource::Flash(other.source),
            (_, WorkStep::Program | WorkStep::Deciding) => DataSource::Controller,
            _ => DataSource::After(writer),
        }
    }

    /// The target of a transaction is known: its page is on its way, after the erase of its block
    /// if one is still to come.
    #[inline]
    pub fn aim(&mut self, id: WorkId) {
        let target = self.flight.work[id].target;
        self.pending.insert(target, id);
        let queues = &self.scheduler.unit_of(target.plane).queues;
        if !queues.spares_all() {
            self.flight.work[id].erase_before = queues.erase_before(target);
        }
    }

    /// Reads for a transaction where its data was found; whether the data is in the controller
    /// already.
    #[inline(always)]
    pub fn read(&mut self, id: WorkId, source: DataSource) -> bool {
        match source {
            DataSource::Flash(page) => self.read_flash(id, page),
            DataSource::Controller => {
                self.flight.counters.reads.buffered += 1;
                return true;
            }
            DataSource::After(writer) => self.wait_for(writer, id),
        }
        false
    }

    /// Reads a page of flash for a transaction.
    fn read_flash(&mut self, id: WorkId, page: PhysicalPage) {
        let work = &mut self.flight.work[id];
        work.source = page;
        let at_once = self.alone && !work.copy_back;
        if at_once && self.scheduler.begin_at_once(&mut self.flight, id) {
            return;
        }
        self.flight.work[id].step = WorkStep::Read;
        self.scheduler.enqueue(&mut self.flight, id);
    }

    /// The data of a program is in the controller: it is queued, once it is decided where such
    /// pages belong. Those that wait for it can have the data ([`Executor::take_waiters`]).
    #[inline]
    pub fn program(&mut self, id: WorkId) {
        let now = self.now();
        let work = &mut self.flight.work[id];
        if !work.predicts {
            work.step = WorkStep::Program;
            return self.scheduler.enqueue(&mut self.flight, id);
        }
        work.step = WorkStep::Deciding;
        work.predicts = false;
        self.flight.counters.predictions.awaited += 1;
        let ends_at = self.predictor.take_step_for(id, now);
        self.flight.calendar.push(ends_at, FlashEvent::Decided);
    }

    /// Queues an erase; `set` says of what.
    pub fn erase(&mut self, set: impl FnOnce(&mut FlashWork)) {
        let id = self.add(WorkPurpose::Erase, set);
        self.flight.work[id].step = WorkStep::Erase;
        self.scheduler.enqueue(&mut self.flight, id);
    }

    /// A page has been programmed: its data is on flash.
    pub fn programmed(&mut self, id: WorkId) {
        let work = &self.flight.work[id];
        self.pending.remove(work.target, id);
        let counters = &mut self.flight.counters;
        let counter = match work.purpose {
            WorkPurpose::HostWrite => &mut counters.programs.host,
            WorkPurpose::MapWrite => &mut counters.programs.map,
            WorkPurpose::Move => &mut counters.programs.moves,
            _ => &mut counters.programs.meta,
        };
        *counter += 1;
    }

    /// Puts `id` aside until `other` goes on.
    pub fn wait_for(&mut self, other: WorkId, id: WorkId) {
        let table = &mut self.flight.work;
        table[id].step = WorkStep::Aside;
        table[id].next = table[other].waiters;
        table[other].waiters = id;
    }

    /// Takes those that wait for a transaction, linked, the first to come first.
    #[inline]
    pub fn take_waiters(&mut self, id: WorkId) -> WorkId {
        let table = &mut self.flight.work;
        let mut rest = std::mem::replace(&mut table[id].waiters, WorkId::NONE);
        let mut ordered = WorkId::NONE;
        while rest != WorkId::NONE {
            let next = table[rest].next;
            table[rest].next = ordered;
            ordered = rest;
            rest = next;
        }
        ordered
    }

    /// Makes a job wait for programs that are still to be done in a block; how many.
    pub fn delay(&mut self, job: JobId, plane: PlaneId, block: u32) -> u32 {
        let mut programs = 0;
        for writer in self.pending.writers_of(plane, block) {
            self.flight.work[writer].delayed_job = job;
            programs += 1;
        }
        programs
    }

    /// Notes the step of a model that the last write took, if it took one. If the host waits for
    /// the step, its work `id` takes it once its metadata has been read. Others take it at once.
    #[inline]
    pub fn predict(&mut self, prediction: Option<bool>, id: Option<WorkId>) {
        let Some(waits) = prediction else { return };
        self.flight.counters.predictions.taken += 1;
        if self.predictor.is_free() {
            return;
        }
        match id.filter(|_| waits) {
            Some(id) => self.flight.work[id].predicts = true,
            None => _ = self.predictor.take_step(self.flight.calendar.now()),
        }
    }

    /// The step of the page that has waited longest has been taken: it is queued.
    pub fn decided(&mut self) {
        let Some(id) = self.predictor.decided() else { return };
        let work = &mut self.flight.work[id];
        work.time.account(SpentPart::Queue, self.flight.calendar.now());
        work.step = WorkStep::Program;
        self.scheduler.enqueue(&mut self.flight, id);
    }

    /// When something next happens; nothing when all is done.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        if self.has_done() { Some(self.now()) } else { self.flight.calendar.next_due() }
    }

    /// Whether transactions of the host are done and not handed out.
    #[inline]
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Appends what is done, in the order of completion.
    #[inline]
    pub fn hand_out(&mut self, done: &mut Vec<DoneTransaction>) {
        if done.is_empty() {
            std::mem::swap(done, &mut self.done);
        } else {
            done.append(&mut self.done);
        }
    }

    /// Transactions of the host accepted and not yet handed out.
    pub fn outstanding(&self) -> usize {
        self.outstanding + self.done.len()
    }

    /// Operations, waits and busy times up to `now`.
    pub fn report(&self, now: u64) -> FlashStats {
        let events = self.flight.calendar.made();
        let mut stats = FlashStats {
            counters: Counters { events, ..self.flight.counters },
            ..FlashStats::default()
        };
        stats.busy.controller_ns = self.predictor.busy_ns(now);
        self.scheduler.report(now, &mut stats);
        stats
    }

    /// Everything that must hold between calls. Whether anything is to come.
    pub fn audit(&self) -> Result<bool, String> {
        self.scheduler.audit(&self.flight)?;
        self.pending.audit(|id| self.flight.work[id].target)?;
        self.flight.calendar.audit()
    }

    /// What must hold once nothing is to come.
    pub fn audit_rest(&self) -> Result<(), String> {
        let counts = [
            ("transactions", self.flight.work.len() as usize),
            ("transactions of the host", self.outstanding),
            ("pages to program", self.pending.len()),
            ("pages to decide about", self.predictor.waiting()),
        ];
        if let Some((what, count)) = counts.into_iter().find(|(_, count)| *count > 0) {
            return Err(format!("{count} {what} are left and nothing is to come"));
        }
        self.scheduler.audit_rest()
    }
}

/// Programs that are to come.
#[derive(Clone, Debug)]
struct PendingPrograms {
    /// By the number of the physical page.
    writers: HashMap<u32, WorkId, foldhash::fast::FixedState>,
    blocks_per_plane: u32,
    pages_per_block: u32,
}

impl PendingPrograms {
    /// No program is to come.
    pub fn new(shape: &FlashShape) -> PendingPrograms {
        PendingPrograms {
            writers: HashMap::default(),
            blocks_per_plane: shape.blocks_per_plane,
            pages_per_block: shape.pages_per_block,
        }
    }

    /// The number of a physical page.
    #[inline]
    fn number(&self, page: PhysicalPage) -> u32 {
        (page.plane.0 * self.blocks_per_plane + page.block) * self.pages_per_block + page.page
    }

    /// A page will be programmed.
    #[inline]
    pub fn insert(&mut self, page: PhysicalPage, writer: WorkId) {
        let number = self.number(page);
        self.writers.insert(number, writer);
    }

    /// The transaction that will program a page, if there is one.
    #[inline]
    pub fn writer(&self, page: PhysicalPage) -> Option<WorkId> {
        self.writers.get(&self.number(page)).copied()
    }

    /// A transaction has programmed a page, which another may be about to program again.
    #[inline]
    pub fn remove(&mut self, page: PhysicalPage, writer: WorkId) {
        let number = self.number(page);
        if self.writers.get(&number) == Some(&writer) {
            self.writers.remove(&number);
        }
    }

    /// The transactions that will program pages of a block.
    fn writers_of(&self, plane: PlaneId, block: u32) -> impl Iterator<Item = WorkId> {
        let pages = if self.writers.is_empty() { 0 } else { self.pages_per_block };
        (0..pages).filter_map(move |page| self.writer(PhysicalPage { plane, block, page }))
    }

    /// Pages to program.
    pub fn len(&self) -> usize {
        self.writers.len()
    }

    /// Each page is the target of the transaction that will program it.
    pub fn audit(&self, target: impl Fn(WorkId) -> PhysicalPage) -> Result<(), String> {
        for (number, id) in &self.writers {
            let found = self.number(target(*id));
            if found != *number {
                return Err(format!("physical page {number} is written by work on page {found}"));
            }
        }
        Ok(())
    }
}
