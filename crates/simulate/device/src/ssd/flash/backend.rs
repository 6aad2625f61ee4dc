//! The flash of one drive as a whole: transactions in, completions out, by a calendar of events.
//!
//! An event takes two words of the [`Calendar`], without allocation. A few events stand in a sorted
//! list, which is fastest under a moderate load: a new event is mostly among the last. The others
//! go to a binary heap, so that the cost stays small for any number. Events at the same nanosecond
//! come in the order in which they were made.
//!
//! Tests follow what each physical page holds ([`ContentsWatch`]): each sensed page is compared
//! with the page that its reader expects. Units: pages, nanoseconds.

use super::address_space::AddressSpace;
use super::cleaner::FlashCleaner;
use super::executor::Executor;
use super::geometry::{ChannelId, JobId, LogicalPage, PhysicalPage, PlaneId, UnitId, WorkId};
use super::params::{self, FlashError, FlashParams, Joules};
use super::stats::FlashStats;
use super::translator::Translator;
use super::work::{DoneTransaction, FlashWork, Transaction, WorkPurpose, WorkQueue, WorkStep};
use crate::device::SpentPart;
use crate::report::Energy;
use cachewright_ftl::{EraseCounts, FtlError};
use cachewright_types::{Nanos, Seed, TenantId};
use hashbrown::{HashMap, HashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
        params::check(params)?;
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
        params::check(params)?;
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
            let target = self.executor.work(id).target;
            watch.erased(target.plane, target.block);
        }
        self.cleaner.erased(self.translator.space(), id, &mut self.executor);
    }

    fn programmed(&mut self, id: WorkId) {
        let work = *self.executor.work(id);
        let subject = if self.watch.is_some() { self.subject(&work) } else { None };
        if let (Some(watch), Some(page)) = (&mut self.watch, subject) {
            watch.programmed(work.target, page);
        }
        self.executor.programmed(id);
        for job in [work.job, work.delayed_job] {
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
                let layer = self.cleaner.layer_of(work.job);
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
                watch.sensed(work.source, page);
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

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashEvent {
    /// A channel is free, and transactions wait for it.
    ChannelFree(ChannelId),
    /// Data of a read has crossed a channel.
    Crossed(ChannelId),
    /// A unit has sensed.
    Sensed(UnitId),
    /// A unit has programmed or erased.
    Worked(UnitId),
    /// A unit has halted.
    Halted(UnitId),
    /// The controller has decided about a page.
    Decided,
}

/// Bits of the index of a channel or unit.
const INDEX_BITS: u32 = 20;
/// Bits of the kind.
const KIND_BITS: u32 = 3;

/// Channels or units there may be at most.
pub const MAX_INDEX: u32 = 1 << INDEX_BITS;

/// Events in the sorted list at most, and those taken out before it moves to its front.
const NEAR: usize = 48;

impl FlashEvent {
    /// The kind and the index as one number.
    #[inline]
    fn packed(self) -> u64 {
        let (kind, index) = match self {
            FlashEvent::ChannelFree(channel) => (0, channel.0),
            FlashEvent::Crossed(channel) => (1, channel.0),
            FlashEvent::Sensed(unit) => (2, unit.0),
            FlashEvent::Worked(unit) => (3, unit.0),
            FlashEvent::Halted(unit) => (4, unit.0),
            FlashEvent::Decided => (5, 0),
        };
        kind << INDEX_BITS | u64::from(index)
    }

    /// The event of a packed number; the bits above it are ignored.
    #[inline]
    fn unpacked(packed: u64) -> FlashEvent {
        let index = (packed & u64::from(MAX_INDEX - 1)) as u32;
        match packed >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => FlashEvent::ChannelFree(ChannelId(index)),
            1 => FlashEvent::Crossed(ChannelId(index)),
            2 => FlashEvent::Sensed(UnitId(index)),
            3 => FlashEvent::Worked(UnitId(index)),
            4 => FlashEvent::Halted(UnitId(index)),
            _ => FlashEvent::Decided,
        }
    }
}

/// The time and the events to come, each by its time, and then its age above kind and index.
#[derive(Clone, Debug, Default)]
pub struct Calendar {
    now: u64,
    /// The earliest first, behind those taken out.
    near: Vec<(u64, u64)>,
    /// Events taken out of `near`.
    taken: usize,
    far: BinaryHeap<Reverse<(u64, u64)>>,
    made: u64,
}

impl Calendar {
    /// The time.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Moves time on to `now`, unless it is later already.
    #[inline]
    fn advance_to(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time: u64, event: FlashEvent) {
        let event = (time, self.made << (INDEX_BITS + KIND_BITS) | event.packed());
        self.made += 1;
        if self.near.len() - self.taken == NEAR {
            return self.far.push(Reverse(event));
        }
        let mut position = self.near.len();
        self.near.push(event);
        // Those of the same time are older.
        while position > self.taken && self.near[position - 1].0 > time {
            self.near[position] = self.near[position - 1];
            position -= 1;
        }
        self.near[position] = event;
    }

    /// The next event, and whether it stands in the heap.
    #[inline]
    fn first(&self) -> Option<((u64, u64), bool)> {
        let near = self.near.get(self.taken).copied();
        if self.far.is_empty() {
            return near.map(|event| (event, false));
        }
        let Reverse(far) = *self.far.peek()?;
        Some(near.filter(|near| *near < far).map_or((far, true), |near| (near, false)))
    }

    /// The time of the next event.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        self.first().map(|((time, _), _)| time)
    }

    /// Takes the next event if it is due by `until`; its time is then the present.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<FlashEvent> {
        let ((time, packed), in_heap) = self.first()?;
        if time > until {
            return None;
        }
        if in_heap {
            self.far.pop();
        } else {
            self.taken += 1;
            if self.taken >= NEAR {
                self.near.drain(..self.taken);
                self.taken = 0;
            }
        }
        debug_assert!(time >= self.now, "no event in the past");
        self.now = time;
        Some(FlashEvent::unpacked(packed))
    }

    /// Events made so far.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// No event lies in the past. Whether there are any.
    pub fn audit(&self) -> Result<bool, String> {
        match self.next_due() {
            Some(time) if time < self.now => Err(format!("an event at {time} is in the past")),
            next => Ok(next.is_some()),
        }
    }
}

/// Pages programmed and blocks erased since the start.
#[derive(Clone, Debug, Default)]
struct ContentsWatch {
    pages: HashMap<PhysicalPage, LogicalPage, foldhash::fast::FixedState>,
    erased: HashSet<(PlaneId, u32), foldhash::fast::FixedState>,
    pages_per_block: u32,
    checked: u64,
    wrong: Option<String>,
}

impl ContentsWatch {
    /// Nothing is known yet of blocks of so many pages.
    pub fn new(pages_per_block: u32) -> ContentsWatch {
        ContentsWatch { pages_per_block, ..ContentsWatch::default() }
    }

    /// A page was sensed by a reader that wants a logical page.
    pub fn sensed(&mut self, place: PhysicalPage, wanted: LogicalPage) {
        self.checked += 1;
        let held = self.pages.get(&place);
        let right = match held {
            Some(held) => *held == wanted,
            None => !self.erased.contains(&(place.plane, place.block)),
        };
        if !right {
            let words = format!("{place:?} holds {held:?}, its reader wants {wanted:?}");
            self.wrong.get_or_insert(words);
        }
    }

    /// A page has been programmed; programming one twice between erases is wrong too.
    pub fn programmed(&mut self, place: PhysicalPage, page: LogicalPage) {
        if let Some(held) = self.pages.insert(place, page) {
            let words = format!("{place:?} held {held:?} and was programmed again");
            self.wrong.get_or_insert(words);
        }
    }

    /// A block has been erased.
    pub fn erased(&mut self, plane: PlaneId, block: u32) {
        self.erased.insert((plane, block));
        for page in 0..self.pages_per_block {
            self.pages.remove(&PhysicalPage { plane, block, page });
        }
    }

    /// Pages compared so far.
    pub fn checked(&self) -> u64 {
        self.checked
    }

    /// The first page found wrong.
    pub fn audit(&self) -> Result<(), String> {
        self.wrong.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_by_age() {
        let mut calendar = Calendar::default();
        let last = FlashEvent::ChannelFree(ChannelId(MAX_INDEX - 1));
        calendar.push(20, FlashEvent::Worked(UnitId(7)));
        calendar.push(10, FlashEvent::Crossed(ChannelId(3)));
        calendar.push(20, last);
        assert_eq!(calendar.next_due(), Some(10));
        assert_eq!(calendar.pop(9), None);
        assert_eq!(calendar.pop(30), Some(FlashEvent::Crossed(ChannelId(3))));
        assert_eq!(calendar.now(), 10);
        assert_eq!(calendar.pop(30), Some(FlashEvent::Worked(UnitId(7))));
        assert_eq!(calendar.pop(30), Some(last));
        assert_eq!((calendar.pop(30), calendar.made(), calendar.now()), (None, 3, 20));
    }

    #[test]
    fn events_are_packed_without_loss() {
        let (channel, unit) = (ChannelId(5), UnitId(MAX_INDEX - 1));
        for event in [
            FlashEvent::ChannelFree(channel),
            FlashEvent::Crossed(channel),
            FlashEvent::Sensed(unit),
            FlashEvent::Worked(unit),
            FlashEvent::Halted(unit),
            FlashEvent::Decided,
        ] {
            assert_eq!(FlashEvent::unpacked(event.packed()), event);
        }
    }

    /// More events than the list has room for, at few times: the order is that of times and ages.
    #[test]
    fn many_events_come_in_the_same_order() {
        let mut calendar = Calendar::default();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut popped = 0;
        for index in 0..10 * NEAR as u32 {
            let time = popped + u64::from(index * 7919 % 13);
            calendar.push(time, FlashEvent::Worked(UnitId(index)));
            expected.push((time, index));
            if index % 5 == 4 {
                expected.sort_unstable();
                let (time, index) = expected.remove(0);
                assert_eq!(calendar.pop(u64::MAX), Some(FlashEvent::Worked(UnitId(index))));
                popped = time;
            }
        }
        expected.sort_unstable();
        for (time, index) in expected {
            assert_eq!(calendar.next_due(), Some(time));
            assert_eq!(calendar.pop(time), Some(FlashEvent::Worked(UnitId(index))));
            assert_eq!(calendar.audit(), Ok(calendar.next_due().is_some()));
        }
        assert_eq!(calendar.next_due(), None);
    }
}
