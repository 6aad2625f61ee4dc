//! Whose turn it is: the queues of units, the choice among them, pages that share a command.
//!
//! Order: the map's reads, reads, the map's writes, writes, cleaning; cleaning before the host
//! where it is urgent. Nothing waits for the map's writes (their entries stay in the controller
//! meanwhile), so they never go before a read of the host. Source: the out-of-order scheduler of
//! MQSim (FAST'18, section 4.5). Difference: MQSim queues the map's writes and never takes them out
//! of their queue.
//!
//! Skipped while they must be: programs to a block that is still to be erased, erases of a block
//! that is still to be read. Where tenants have classes, the class is chosen first. A separation
//! that predicts takes the controller's time step by step; a step that no page waits for delays the
//! steps after it all the same. Units: nanoseconds, transactions.

use super::backend::FlashEvent;
use super::geometry::{ChannelId, EraseSerial, MAX_PLANES, PhysicalPage, PlaneId, UnitId, WorkId};
use super::hardware::{Hardware, Unit};
use super::params::{FlashParams, FlashSchedule, Priority, Turns};
use super::stats::{FlashStats, Waits};
use super::work::{FlashOperations, FlashWork, TransactionTable, WorkPurpose, WorkQueue, WorkStep};
use std::collections::VecDeque;

/// Queues in the order in which they are looked at, each with the queue whose pages may share the
/// command.
type QueueOrder = [(QueueClass, Option<QueueClass>); CLASSES];

const HOST_FIRST: QueueOrder = [
    (QueueClass::MapRead, Some(QueueClass::HostRead)),
    (QueueClass::HostRead, Some(QueueClass::CleanRead)),
    (QueueClass::MapWrite, Some(QueueClass::HostWrite)),
    (QueueClass::HostWrite, Some(QueueClass::CleanWrite)),
    (QueueClass::CleanRead, None),
    (QueueClass::CleanWrite, None),
    (QueueClass::Erase, None),
];

const CLEANING_FIRST: QueueOrder = [
    (QueueClass::MapRead, Some(QueueClass::CleanRead)),
    (QueueClass::CleanRead, Some(QueueClass::HostRead)),
    (QueueClass::CleanWrite, Some(QueueClass::HostWrite)),
    (QueueClass::Erase, None),
    (QueueClass::HostRead, None),
    (QueueClass::MapWrite, Some(QueueClass::HostWrite)),
    (QueueClass::HostWrite, None),
];

/// The choice of what units do next.
#[derive(Clone, Debug)]
pub struct Scheduler {
    hardware: Hardware,
    load: QueueLoad,
    schedule: FlashSchedule,
    planes_per_die: u32,
    /// Whether tenants have classes.
    ranked: bool,
}

impl Scheduler {
    /// Nothing is queued, and units are idle.
    pub fn new(params: &FlashParams) -> Scheduler {
        Scheduler {
            hardware: Hardware::new(params),
            load: QueueLoad::new(params.shape.planes()),
            schedule: params.schedule,
            planes_per_die: params.shape.planes_per_die,
            ranked: !params.priorities.is_empty(),
        }
    }

    /// Units and channels.
    #[inline(always)]
    pub fn hardware(&self) -> &Hardware {
        &self.hardware
    }

    /// Units and channels, to be changed.
    #[inline(always)]
    pub fn hardware_mut(&mut self) -> &mut Hardware {
        &mut self.hardware
    }

    /// The unit of a plane.
    #[inline]
    pub fn unit_of(&mut self, plane: PlaneId) -> &mut Unit {
        let unit = self.hardware.site(plane).unit;
        self.hardware.unit_mut(unit)
    }

    /// Queues a transaction at its unit.
    #[inline]
    pub fn enqueue(&mut self, flight: &mut FlashOperations, id: WorkId) {
        let now = flight.calendar.now();
        let work = &mut flight.work[id];
        let (class, plane) = (QueueClass::of_work(work), work.place().plane);
        let unit_id = self.hardware.site(plane).unit;
        let unit = self.hardware.unit_mut(unit_id);
        work.time.join_queue(unit.worked_ns(now), unit.cleaned_ns(now));
        unit.queues.push(&mut flight.work, class, id);
        let idle = unit.is_idle();
        self.load.join(plane, class, now);
        if idle || class.presses() && self.hardware.can_halt(unit_id, now) {
            self.hardware.make_ready(unit_id);
        }
    }

    /// Begins what can begin on every channel that changed.
    #[inline]
    pub fn dispatch(&mut self, flight: &mut FlashOperations) {
        if self.hardware.channels().has_touched() {
            self.serve_touched(flight);
        }
    }

    fn serve_touched(&mut self, flight: &mut FlashOperations) {
        let mut served = 0;
        while let Some(channel) = self.hardware.channels_mut().next_touched(served) {
            self.serve(flight, channel);
            served += 1;
        }
        self.hardware.channels_mut().settle();
    }

    /// Begins what can begin on a channel: data that waits first, then commands in turn.
    #[inline]
    fn serve(&mut self, flight: &mut FlashOperations, id: ChannelId) {
        let now = flight.calendar.now();
        loop {
            let channel = &mut self.hardware.channels_mut()[id];
            if channel.is_crossed() {
                return;
            }
            if channel.is_busy(now) {
                if let Some(time) = channel.wake_time() {
                    flight.calendar.push(time, FlashEvent::ChannelFree(id));
                }
                return;
            }
            if let Some(next) = channel.pop_data(&mut flight.work) {
                self.hardware.send(flight, id, next);
                continue;
            }
            let Some(bit) = channel.take_ready() else { return };
            let unit = self.hardware.unit_at(id, bit);
            if self.issue(flight, unit) {
                self.hardware.channels_mut()[id].turn_after(bit);
            }
        }
    }

    /// Begins a read at once where nothing else waits for its unit or channel, as its turn would;
    /// false where something does.
    #[inline]
    pub fn begin_at_once(&mut self, flight: &mut FlashOperations, id: WorkId) -> bool {
        let now = flight.calendar.now();
        let unit_id = self.hardware.site(flight.work[id].source.plane).unit;
        let unit = self.hardware.unit(unit_id);
        let (channel_id, bit) = unit.channel();
        let channel = &self.hardware.channels()[channel_id];
        let free = !channel.is_busy(now) && !channel.is_crossed() && !channel.has_ready();
        let idle = unit.is_idle() && unit.queues.queued() == 0 && !unit.has_halted();
        if !free || !idle {
            return false;
        }
        flight.work[id].step = WorkStep::Read;
        self.load.pass(QueueClass::of_work(&flight.work[id]));
        let mut batch = WorkQueue::default();
        batch.push(&mut flight.work, id);
        self.hardware.begin_read(flight, unit_id, batch);
        self.hardware.channels_mut()[channel_id].turn_after(bit);
        true
    }

    /// Gives a unit the command whose turn it is; false if there is none it can take.
    #[inline]
    fn issue(&mut self, flight: &mut FlashOperations, id: UnitId) -> bool {
        let now = flight.calendar.now();
        let unit = self.hardware.unit(id);
        let reads = unit.queues.queue(QueueClass::HostRead).len();
        let (idle, halted) = (unit.is_idle(), unit.has_halted());
        if !self.ranked && !halted && unit.queues.queued() == reads && idle {
            // Nothing else waits, as is usual while a drive is read.
            if reads > 0 {
                let batch = self.gather(flight, id, QueueClass::HostRead, None, WorkId::NONE);
                self.hardware.begin_read(flight, id, batch);
            }
            return reads > 0;
        }
        if !idle && !self.hardware.can_halt(id, now) {
            return false;
        }
        let only_reads = halted || !idle;
        let urgent = !self.schedule.gc_preemptible || unit.is_urgent();
        let order = if urgent { &CLEANING_FIRST } else { &HOST_FIRST };
        for (class, mate) in order {
            let unit = self.hardware.unit_mut(id);
            if unit.queues.queue(*class).is_empty() || only_reads && !class.presses() {
                continue;
            }
            let next = unit.queues.next_able(&flight.work, *class, self.ranked);
            let Some(before) = next else { continue };
            if !idle {
                self.hardware.halt(flight, id);
                return true;
            }
            // Where nothing waits to be cleaned, reads of the host share the map's command.
            let cleans = !unit.queues.queue(QueueClass::CleanRead).is_empty();
            let mate = match (class, mate) {
                (QueueClass::MapRead, Some(QueueClass::CleanRead)) if !cleans => {
                    Some(QueueClass::HostRead)
                }
                (_, mate) => *mate,
            };
            let batch = self.gather(flight, id, *class, mate, before);
            self.hardware.begin(flight, id, *class, batch);
            return true;
        }
        self.hardware.resume(flight, id);
        false
    }

    /// Takes work out of its queues for one command: the one behind `before`, and pages at the same
    /// place in other planes of its die. They come from its queue, then from its mate's.
    #[inline]
    fn gather(
        &mut self,
        flight: &mut FlashOperations,
        unit: UnitId,
        class: QueueClass,
        mate: Option<QueueClass>,
        before: WorkId,
    ) -> WorkQueue {
        let mut batch = WorkQueue::default();
        let id = self.take(flight, unit, class, before);
        batch.push(&mut flight.work, id);
        let planes = self.planes_per_die;
        let alone = planes == 1 || self.hardware.unit(unit).queues.queued() == 0;
        if alone || !self.schedule.multi_plane || flight.work[id].copy_back {
            return batch;
        }
        let place = flight.work[id].place();
        let first = self.hardware.site(place.plane).die * planes;
        let mut taken = 1_u32 << (place.plane.0 - first);
        let ranked = self.ranked && matches!(class, QueueClass::HostRead | QueueClass::HostWrite);
        let only = Some(flight.work[id].priority).filter(|_| ranked);
        for (class, only) in [(Some(class), only), (mate, None)] {
            let Some(class) = class else { continue };
            let free = (0..planes).filter(|plane| taken & 1 << plane == 0);
            let mut unseen: u32 =
                free.map(|plane| self.load.waiting(PlaneId(first + plane), class)).sum();
            let mut before = WorkId::NONE;
            let mut id = self.hardware.unit(unit).queues.queue(class).head();
            while id != WorkId::NONE && unseen > 0 && taken.count_ones() < planes {
                let (other, next) = (flight.work[id].place(), flight.work[id].next);
                let plane = other.plane.0.wrapping_sub(first);
                if plane < planes && taken & 1 << plane == 0 {
                    unseen -= 1;
                    let level = (other.page == place.page || class == QueueClass::Erase)
                        && only.is_none_or(|only| flight.work[id].priority == only);
                    let queues = &self.hardware.unit(unit).queues;
                    if level && !flight.work[id].copy_back && queues.may_begin(&flight.work, id) {
                        self.take(flight, unit, class, before);
                        batch.push(&mut flight.work, id);
                        taken |= 1 << plane;
                        id = next;
                        continue;
                    }
                }
                (before, id) = (id, next);
            }
        }
        debug_assert!(batch.len() <= MAX_PLANES);
        batch
    }

    /// Takes the one behind `before` out of a queue and accounts for its wait.
    #[inline(always)]
    fn take(
        &mut self,
        flight: &mut FlashOperations,
        unit: UnitId,
        class: QueueClass,
        before: WorkId,
    ) -> WorkId {
        let now = flight.calendar.now();
        let unit = self.hardware.unit_mut(unit);
        let id = unit.queues.take(&mut flight.work, class, before);
        let work = &mut flight.work[id];
        let waited = work.time.leave_queue(now, unit.worked_ns(now), unit.cleaned_ns(now));
        self.load.leave(work.place().plane, class, now, waited);
        id
    }

    /// Adds the waits, and the busy times of units and channels.
    pub fn report(&self, now: u64, stats: &mut FlashStats) {
        stats.waits = *self.load.waits();
        self.hardware.report(now, stats);
    }

    /// Everything that must hold of queues, units and channels.
    pub fn audit(&self, flight: &FlashOperations) -> Result<(), String> {
        let mut load = self.load.none();
        self.hardware.audit(&flight.work, flight.calendar.now(), &mut load)?;
        self.load.audit(&load)
    }

    /// What must hold once nothing is to come.
    pub fn audit_rest(&self) -> Result<(), String> {
        self.load.audit_rest()
    }
}

/// A block that will be erased; what belongs to its next life is not programmed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CondemnedBlock {
    plane: PlaneId,
    block: u32,
    serial: EraseSerial,
}

/// Work that waits for one unit, and the erases that come before some of it.
#[derive(Clone, Debug, Default)]
pub struct UnitQueues {
    queues: [WorkQueue; CLASSES],
    /// Work in all of them.
    queued: u32,
    /// Whose turn it is among classes of tenants: reads, writes.
    turns: [Turns; 2],
    condemned: Vec<CondemnedBlock>,
}

impl UnitQueues {
    /// Adds work at the end of a queue.
    #[inline]
    pub fn push(&mut self, table: &mut TransactionTable, class: QueueClass, id: WorkId) {
        self.queues[class as usize].push(table, id);
        self.queued += 1;
    }

    /// Takes the work behind `before` out of a queue (the first if `before` is none).
    #[inline(always)]
    pub fn take(
        &mut self,
        table: &mut TransactionTable,
        class: QueueClass,
        before: WorkId,
    ) -> WorkId {
        self.queued -= 1;
        self.queues[class as usize].take_behind(table, before)
    }

    /// A queue.
    #[inline]
    pub fn queue(&self, class: QueueClass) -> &WorkQueue {
        &self.queues[class as usize]
    }

    /// Work in all queues.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// The work before the next in a queue that may begin; nothing if none may. With `ranked`, it
    /// is the first of the class of tenants whose turn it is.
    #[inline]
    fn next_able(
        &mut self,
        table: &TransactionTable,
        class: QueueClass,
        ranked: bool,
    ) -> Option<WorkId> {
        let kind = match class {
            QueueClass::HostRead => 0,
            QueueClass::HostWrite => 1,
            _ => return self.first_able(table, class, None),
        };
        if !ranked {
            return self.first_able(table, class, None);
        }
        let mut waits = [false; 4];
        for id in self.queue(class).iter(table).filter(|id| self.may_begin(table, *id)) {
            waits[table[id].priority as usize] = true;
        }
        let chosen = self.turns[kind].next(waits)?;
        self.first_able(table, class, Some(chosen))
    }

    /// The work before the first in a queue, of a class of tenants if one is named, that may begin.
    #[inline]
    fn first_able(
        &self,
        table: &TransactionTable,
        class: QueueClass,
        only: Option<Priority>,
    ) -> Option<WorkId> {
        let (mut before, mut id) = (WorkId::NONE, self.queue(class).head());
        while id != WorkId::NONE {
            let listed = only.is_none_or(|only| table[id].priority == only);
            if listed && self.may_begin(table, id) {
                return Some(before);
            }
            (before, id) = (id, table[id].next);
        }
        None
    }

    /// Whether queued work may begin.
    #[inline]
    pub fn may_begin(&self, table: &TransactionTable, id: WorkId) -> bool {
        let work = &table[id];
        match work.step {
            WorkStep::Erase => {
                let (plane, block) = (work.target.plane, work.target.block);
                let reads = self.queues[..=QueueClass::CleanRead as usize].iter();
                !reads.flat_map(|queue| queue.iter(table)).any(|other| {
                    let source = table[other].source;
                    source.plane == plane && source.block == block
                })
            }
            WorkStep::Read if !work.copy_back => true,
            _ if work.erase_before == EraseSerial::NONE => true,
            _ => {
                let (plane, serial) = (work.target.plane, work.erase_before);
                self.condemned.iter().all(|item| item.serial != serial || item.plane != plane)
            }
        }
    }

    /// A block will be erased.
    pub fn condemn(&mut self, plane: PlaneId, block: u32, serial: EraseSerial) {
        self.condemned.push(CondemnedBlock { plane, block, serial });
    }

    /// A block has been erased.
    pub fn absolve(&mut self, plane: PlaneId, serial: EraseSerial) {
        let before = self.condemned.len();
        self.condemned.retain(|item| item.serial != serial || item.plane != plane);
        assert!(self.condemned.len() + 1 == before, "a block is erased once for each erase");
    }

    /// The erase that comes before a program of a page.
    #[inline]
    pub fn erase_before(&self, page: PhysicalPage) -> EraseSerial {
        let mut latest = self.condemned.iter().rev();
        let same = |item: &&CondemnedBlock| item.plane == page.plane && item.block == page.block;
        latest.find(same).map_or(EraseSerial::NONE, |item| item.serial)
    }

    /// Whether no block is to be erased.
    #[inline]
    pub fn spares_all(&self) -> bool {
        self.condemned.is_empty()
    }

    /// Each transaction stands in the queue of its class, and all are counted. Adds them to the
    /// load of their planes.
    pub fn audit(
        &self,
        table: &TransactionTable,
        load: &mut [[u32; CLASSES]],
    ) -> Result<(), String> {
        let mut queued = 0;
        for class in QueueClass::ALL {
            for id in self.queue(class).iter(table) {
                let work = &table[id];
                queued += 1;
                load[work.place().plane.index()][class as usize] += 1;
                if work.step == WorkStep::Aside || QueueClass::of_work(work) != class {
                    return Err(format!("work {} is in the wrong queue", id.0));
                }
            }
        }
        if queued == self.queued {
            return Ok(());
        }
        Err(format!("{queued} queued, {} counted", self.queued))
    }
}

/// Queues of a unit.
pub const CLASSES: usize = 7;

/// Which queue work waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueClass {
    /// Reads for the mapping table.
    MapRead,
    /// Reads of the host, and reads that its writes of part of a page need.
    HostRead,
    /// Reads of pages to move.
    CleanRead,
    /// Writes of the mapping table.
    MapWrite,
    /// Writes of the host.
    HostWrite,
    /// Writes of moved pages.
    CleanWrite,
    /// Erases.
    Erase,
}

impl QueueClass {
    /// All, in the order of their numbers.
    pub const ALL: [QueueClass; CLASSES] = [
        QueueClass::MapRead,
        QueueClass::HostRead,
        QueueClass::CleanRead,
        QueueClass::MapWrite,
        QueueClass::HostWrite,
        QueueClass::CleanWrite,
        QueueClass::Erase,
    ];

    /// The queue of a transaction in its present step.
    #[inline]
    pub(super) fn of_work(work: &FlashWork) -> QueueClass {
        match (work.step, work.purpose) {
            (WorkStep::Read, WorkPurpose::MapRead | WorkPurpose::MapWrite) => QueueClass::MapRead,
            (WorkStep::Read, WorkPurpose::Move) => QueueClass::CleanRead,
            (WorkStep::Read, _) => QueueClass::HostRead,
            (WorkStep::Erase, _) => QueueClass::Erase,
            (_, WorkPurpose::MapWrite) => QueueClass::MapWrite,
            (_, WorkPurpose::Move | WorkPurpose::Meta) => QueueClass::CleanWrite,
            _ => QueueClass::HostWrite,
        }
    }

    /// Whether it reads.
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, QueueClass::MapRead | QueueClass::HostRead | QueueClass::CleanRead)
    }

    /// Whether it may halt a program or erase: reads that a host waits for.
    #[inline]
    pub(super) fn presses(self) -> bool {
        matches!(self, QueueClass::MapRead | QueueClass::HostRead)
    }

    /// The word used in tables.
    pub fn word(self) -> &'static str {
        match self {
            QueueClass::MapRead => "map read",
            QueueClass::HostRead => "read",
            QueueClass::CleanRead => "cleaning read",
            QueueClass::MapWrite => "map write",
            QueueClass::HostWrite => "write",
            QueueClass::CleanWrite => "cleaning write",
            QueueClass::Erase => "erase",
        }
    }
}

/// Kinds of [`UnitStage`].
pub const STAGES: usize = 6;

/// What a unit is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitStage {
    /// Nothing; perhaps something is halted.
    Idle,
    /// Takes a read command or senses.
    Sensing,
    /// Has sensed; data waits for the channel or crosses it.
    DataOut,
    /// Takes a program command with its data, or programs.
    Programming,
    /// Takes an erase command or erases.
    Erasing,
    /// Halts a program or erase.
    Halting,
}

impl UnitStage {
    /// All but idleness, with the words used in tables.
    pub const BUSY: [(UnitStage, &str); STAGES - 1] = [
        (UnitStage::Sensing, "sensing"),
        (UnitStage::DataOut, "data out"),
        (UnitStage::Programming, "programming"),
        (UnitStage::Erasing, "erasing"),
        (UnitStage::Halting, "halting"),
    ];
}

/// Work that waits.
#[derive(Clone, Debug)]
struct QueueLoad {
    by_plane: Vec<[u32; CLASSES]>,
    waits: [Waits; CLASSES],
}

impl QueueLoad {
    /// Nothing waits for any of so many planes.
    pub fn new(planes: u32) -> QueueLoad {
        let by_plane = vec![[0; CLASSES]; planes as usize];
        QueueLoad { by_plane, waits: [Waits::default(); CLASSES] }
    }

    /// One more waits.
    #[inline]
    pub fn join(&mut self, plane: PlaneId, class: QueueClass, now: u64) {
        self.by_plane[plane.index()][class as usize] += 1;
        self.waits[class as usize].join(now);
    }

    /// One that has waited for so long leaves.
    #[inline]
    pub fn leave(&mut self, plane: PlaneId, class: QueueClass, now: u64, waited_ns: u64) {
        self.by_plane[plane.index()][class as usize] -= 1;
        self.waits[class as usize].leave(now, waited_ns);
    }

    /// One begins without waiting.
    #[inline]
    pub fn pass(&mut self, class: QueueClass) {
        self.waits[class as usize].left += 1;
    }

    /// No load of as many planes.
    pub fn none(&self) -> Vec<[u32; CLASSES]> {
        vec![[0; CLASSES]; self.by_plane.len()]
    }

    /// Work of a class that waits for a plane.
    #[inline]
    pub fn waiting(&self, plane: PlaneId, class: QueueClass) -> u32 {
        self.by_plane[plane.index()][class as usize]
    }

    /// Waits by class.
    pub fn waits(&self) -> &[Waits; CLASSES] {
        &self.waits
    }

    /// What waits is counted.
    pub fn audit(&self, counted: &[[u32; CLASSES]]) -> Result<(), String> {
        if counted == self.by_plane.as_slice() {
            return Ok(());
        }
        Err("work per plane is miscounted".to_owned())
    }

    /// Nothing waits, and Little's law holds.
    pub fn audit_rest(&self) -> Result<(), String> {
        for (class, waits) in QueueClass::ALL.iter().zip(&self.waits) {
            if waits.area_ns != waits.waited_ns || waits.waiting != 0 {
                let (area, waited) = (waits.area_ns, waits.waited_ns);
                return Err(format!("{}: {area} ns queued, {waited} ns waited", class.word()));
            }
        }
        Ok(())
    }
}

/// The part of the controller that runs models, for one page after the other.
#[derive(Clone, Debug)]
pub struct BusyPredictor {
    /// Time of one step; 0 where steps cost nothing.
    step_ns: u64,
    /// When it has taken all steps asked for so far.
    free_at: u64,
    /// Time of all steps asked for.
    busy_ns: u64,
    /// Pages that wait for a step, in the order of its end.
    waiting: VecDeque<WorkId>,
}

impl BusyPredictor {
    /// A controller whose steps take so long.
    pub fn new(step_ns: u64) -> BusyPredictor {
        BusyPredictor { step_ns, free_at: 0, busy_ns: 0, waiting: VecDeque::new() }
    }

    /// Whether steps cost nothing.
    pub fn is_free(&self) -> bool {
        self.step_ns == 0
    }

    /// Takes one step more; when it ends.
    pub fn take_step(&mut self, now: u64) -> u64 {
        self.free_at = self.free_at.max(now) + self.step_ns;
        self.busy_ns += self.step_ns;
        self.free_at
    }

    /// Takes a step that a page waits for; when it ends.
    pub fn take_step_for(&mut self, page: WorkId, now: u64) -> u64 {
        self.waiting.push_back(page);
        self.take_step(now)
    }

    /// The page whose step ends now: the one that has waited longest.
    pub fn decided(&mut self) -> Option<WorkId> {
        self.waiting.pop_front()
    }

    /// Pages that wait for a step.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Time it has worked up to `now`.
    pub fn busy_ns(&self, now: u64) -> u64 {
        // From now on it works without a pause until it is free.
        self.busy_ns - self.free_at.saturating_sub(now)
    }
}
