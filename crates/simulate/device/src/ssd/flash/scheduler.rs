//! Whose turn it is.
//!
//! For: queues of units, the choice among them, pages that share a command. Must never know: pages
//! of the host, the map, what a command does. Units: nanoseconds. Order: the map's reads, reads,
//! the map's writes, writes, cleaning; cleaning before the host where it is urgent. Nothing waits
//! for the map's writes (their entries stay in the controller meanwhile), so they never go before a
//! read of the host.
//! Source: the out-of-order scheduler of MQSim (FAST'18, section 4.5). Difference: MQSim queues the
//! map's writes and never takes them out of their queue.

use super::calendar::FlashEvent;
use super::class::{CLASSES, QueueClass};
use super::hardware::Hardware;
use super::ids::{ChannelId, PlaneId, UnitId, WorkId};
use super::in_flight::FlashInFlight;
use super::load::QueueLoad;
use super::params::{FlashParams, FlashSchedule};
use super::shape::MAX_PLANES;
use super::stats::FlashStats;
use super::unit::Unit;
use super::work::{WorkQueue, WorkStep};

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
    pub fn enqueue(&mut self, flight: &mut FlashInFlight, id: WorkId) {
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
    pub fn dispatch(&mut self, flight: &mut FlashInFlight) {
        if self.hardware.channels().has_touched() {
            self.serve_touched(flight);
        }
    }

    fn serve_touched(&mut self, flight: &mut FlashInFlight) {
        let mut served = 0;
        while let Some(channel) = self.hardware.channels_mut().next_touched(served) {
            self.serve(flight, channel);
            served += 1;
        }
        self.hardware.channels_mut().settle();
    }

    /// Begins what can begin on a channel: data that waits first, then commands in turn.
    #[inline]
    fn serve(&mut self, flight: &mut FlashInFlight, id: ChannelId) {
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
    pub fn begin_at_once(&mut self, flight: &mut FlashInFlight, id: WorkId) -> bool {
        let now = flight.calendar.now();
        let unit_id = self.hardware.site(flight.work[id].transfer.source.plane).unit;
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
    fn issue(&mut self, flight: &mut FlashInFlight, id: UnitId) -> bool {
        let now = flight.calendar.now();
        let unit = self.hardware.unit(id);
        let reads = unit.queues.queue(QueueClass::HostRead).len();
        let (idle, halted) = (unit.is_idle(), unit.has_halted());
        if !self.ranked && !halted && unit.queues.queued() == reads && idle {
            // Nothing else waits, as is usual while a drive is read.
            if reads > 0 {
                let batch = self.gather(flight, id, (QueueClass::HostRead, None), WorkId::NONE);
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
            let batch = self.gather(flight, id, (*class, mate), before);
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
        flight: &mut FlashInFlight,
        unit: UnitId,
        (class, mate): (QueueClass, Option<QueueClass>),
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
        let only = Some(flight.work[id].host.priority).filter(|_| ranked);
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
                        && only.is_none_or(|only| flight.work[id].host.priority == only);
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
        flight: &mut FlashInFlight,
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
    pub fn audit(&self, flight: &FlashInFlight) -> Result<(), String> {
        let mut load = self.load.none();
        self.hardware.audit(&flight.work, flight.calendar.now(), &mut load)?;
        self.load.audit(&load)
    }

    /// What must hold once nothing is to come.
    pub fn audit_rest(&self) -> Result<(), String> {
        self.load.audit_rest()
    }
}
