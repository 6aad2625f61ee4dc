//! Units and channels at work.
//!
//! For: sensing, programming and erasing, the way of data over channels, halting a program for a
//! read, and the time of each. Must never know: whose turn is next, pages of the host. Units:
//! nanoseconds.

use super::calendar::FlashEvent;
use super::channel::{DataClass, FlashChannel, FlashChannels};
use super::class::{CLASSES, QueueClass, UnitStage};
use super::ids::{ChannelId, PlaneId, UnitId, WorkId};
use super::in_flight::FlashInFlight;
use super::params::{FlashParams, FlashSchedule};
use super::stats::FlashStats;
use super::timing::FlashTiming;
use super::unit::Unit;
use super::work::{TransactionTable, WorkPurpose, WorkQueue, WorkStep};
use crate::spent::SpentPart;

/// The unit and the die of a plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneSite {
    /// Its unit.
    pub unit: UnitId,
    /// Its die, counted over the device.
    pub die: u32,
}

/// All units and channels of a drive.
#[derive(Clone, Debug)]
pub struct Hardware {
    units: Vec<Unit>,
    channels: FlashChannels,
    units_per_channel: u32,
    sites: Vec<PlaneSite>,
    timing: FlashTiming,
    schedule: FlashSchedule,
}

impl Hardware {
    /// Idle units and channels.
    pub fn new(params: &FlashParams) -> Hardware {
        let shape = &params.shape;
        let dies_per_unit = if params.schedule.die_interleave { 1 } else { shape.dies_per_chip };
        let per_channel = shape.chips_per_channel * shape.dies_per_chip / dies_per_unit;
        let site = |plane: u32| {
            let die = plane / shape.planes_per_die;
            PlaneSite { unit: UnitId(die / dies_per_unit), die }
        };
        let unit = |index: u32| Unit::new(ChannelId(index / per_channel), index % per_channel);
        Hardware {
            units: (0..shape.channels * per_channel).map(unit).collect(),
            channels: FlashChannels::new(shape.channels, per_channel),
            units_per_channel: per_channel,
            sites: (0..shape.planes()).map(site).collect(),
            timing: FlashTiming { bus: params.bus, cell: params.cell },
            schedule: params.schedule,
        }
    }

    /// Where a plane is.
    #[inline(always)]
    pub fn site(&self, plane: PlaneId) -> PlaneSite {
        self.sites[plane.index()]
    }

    /// A unit.
    #[inline(always)]
    pub fn unit(&self, id: UnitId) -> &Unit {
        &self.units[id.index()]
    }

    /// A unit, to be changed.
    #[inline(always)]
    pub fn unit_mut(&mut self, id: UnitId) -> &mut Unit {
        &mut self.units[id.index()]
    }

    /// A unit by its bit at a channel.
    #[inline]
    pub fn unit_at(&self, channel: ChannelId, bit: u32) -> UnitId {
        UnitId(channel.0 * self.units_per_channel + bit)
    }

    /// The channels.
    #[inline(always)]
    pub fn channels(&self) -> &FlashChannels {
        &self.channels
    }

    /// The channels, to be changed.
    #[inline(always)]
    pub fn channels_mut(&mut self) -> &mut FlashChannels {
        &mut self.channels
    }

    /// Whether a unit works on what a read may halt, and it is worth it.
    #[inline]
    pub fn can_halt(&self, id: UnitId, now: u64) -> bool {
        self.unit(id).can_halt(&self.schedule, &self.timing.cell, now)
    }

    /// Begins a command.
    pub fn begin(
        &mut self,
        flight: &mut FlashInFlight,
        unit: UnitId,
        class: QueueClass,
        batch: WorkQueue,
    ) {
        if class.reads() {
            return self.begin_read(flight, unit, batch);
        }
        if class == QueueClass::Erase {
            let times = self.timing.erase(batch.len());
            flight.counters.multi_plane.erases += u64::from(batch.len() > 1);
            return self.begin_work(flight, unit, batch, (UnitStage::Erasing, true), times);
        }
        let program = self.timing.program(&flight.work, &batch);
        flight.counters.channel_bytes += program.bytes;
        flight.counters.multi_plane.programs += u64::from(batch.len() > 1);
        let kind = (UnitStage::Programming, program.cleans);
        self.begin_work(flight, unit, batch, kind, program.times);
    }

    /// A unit may have a command to take.
    #[inline]
    pub fn make_ready(&mut self, unit: UnitId) {
        let (channel, bit) = self.units[unit.index()].channel();
        self.channels[channel].make_ready(bit);
        self.channels.touch(channel);
    }

    #[inline]
    pub fn begin_read(&mut self, flight: &mut FlashInFlight, id: UnitId, batch: WorkQueue) {
        let now = flight.calendar.now();
        let (command, sense, cleans) = self.timing.read(&flight.work, &batch);
        let mut next = batch.head();
        while next != WorkId::NONE {
            let work = &mut flight.work[next];
            work.time.begin(command, sense, now + command + sense);
            let counters = &mut flight.counters;
            let counter = match work.purpose {
                WorkPurpose::HostRead => &mut counters.reads.host,
                WorkPurpose::HostWrite => &mut counters.reads.update,
                WorkPurpose::MapRead | WorkPurpose::MapWrite => &mut counters.reads.map,
                _ => &mut counters.reads.moves,
            };
            *counter += 1;
            next = work.next;
        }
        flight.counters.multi_plane.reads += u64::from(batch.len() > 1);
        let unit = &mut self.units[id.index()];
        unit.sense(batch, cleans, now);
        self.channels[unit.channel().0].take(now, command);
        flight.calendar.push(now + command + sense, FlashEvent::Sensed(id));
    }

    /// A unit takes a command for some time on the channel and then works for some time.
    fn begin_work(
        &mut self,
        flight: &mut FlashInFlight,
        id: UnitId,
        batch: WorkQueue,
        kind: (UnitStage, bool),
        (crossing, time): (u64, u64),
    ) {
        let now = flight.calendar.now();
        let end = now + crossing + time;
        let mut next = batch.head();
        while next != WorkId::NONE {
            let work = &mut flight.work[next];
            work.time.begin(crossing, time, end);
            next = work.next;
        }
        let unit = &mut self.units[id.index()];
        unit.work_until(end, batch, kind, now);
        flight.calendar.push(end, FlashEvent::Worked(id));
        self.channels[unit.channel().0].take(now, crossing);
    }

    /// Data leaves by a free channel, or is programmed in its plane.
    #[inline]
    pub fn send(&mut self, flight: &mut FlashInFlight, channel: ChannelId, id: WorkId) {
        if flight.work[id].copy_back {
            self.copy_back(flight, id);
        } else {
            self.cross(flight, channel, id);
        }
    }

    /// Data of a read begins to cross a free channel.
    #[inline]
    fn cross(&mut self, flight: &mut FlashInFlight, channel: ChannelId, id: WorkId) {
        let now = flight.calendar.now();
        let work = &mut flight.work[id];
        let crossing = self.timing.bus.data_ns(work.transfer.read_bytes);
        work.time.account(SpentPart::Channel, now);
        work.time.account(SpentPart::Channel, now + crossing);
        flight.counters.channel_bytes += u64::from(work.transfer.read_bytes);
        self.channels[channel].begin_crossing(id, now, crossing);
        flight.calendar.push(now + crossing, FlashEvent::Crossed(channel));
    }

    /// Programs a sensed page within its plane.
    fn copy_back(&mut self, flight: &mut FlashInFlight, id: WorkId) {
        let now = flight.calendar.now();
        let work = &mut flight.work[id];
        work.time.account(SpentPart::Channel, now);
        work.step = WorkStep::Program;
        let unit = self.sites[work.transfer.target.plane.index()].unit;
        let times = self.timing.copy_back(work.transfer.target.page);
        let mut batch = WorkQueue::default();
        batch.push(&mut flight.work, id);
        self.begin_work(flight, unit, batch, (UnitStage::Programming, true), times);
        flight.counters.copy_backs += 1;
    }

    /// A channel is free again.
    #[inline]
    pub fn channel_free(&mut self, id: ChannelId) {
        self.channels[id].wake();
        self.channels.touch(id);
    }

    /// A unit has sensed: its pages wait for the channel.
    #[inline]
    pub fn sensed(&mut self, flight: &mut FlashInFlight, id: UnitId) {
        let now = flight.calendar.now();
        let unit = &mut self.units[id.index()];
        let mut batch = unit.sensed(now);
        let channel_id = unit.channel().0;
        let (channel, first) = (&mut self.channels[channel_id], batch.head());
        let free = !channel.is_crossed() && !channel.has_data() && !channel.is_busy(now);
        if free && batch.len() == 1 && !flight.work[first].copy_back {
            return self.cross(flight, channel_id, first);
        }
        while let Some(id) = batch.pop(&mut flight.work) {
            let work = &flight.work[id];
            let class = match (work.copy_back, work.purpose) {
                (true, _) => DataClass::CopyBack,
                (_, WorkPurpose::MapRead | WorkPurpose::MapWrite) => DataClass::Map,
                (_, WorkPurpose::Move) => DataClass::Clean,
                _ => DataClass::Host,
            };
            channel.push_data(&mut flight.work, class, id);
        }
        self.channels.touch(channel_id);
    }

    /// Data has crossed a channel: the read, and its unit, which must be told with
    /// [`Hardware::page_left`] when the read was dealt with.
    #[inline]
    pub fn crossed(&mut self, flight: &FlashInFlight, channel: ChannelId) -> (WorkId, UnitId) {
        let id = self.channels[channel].end_crossing();
        self.channels.touch(channel);
        (id, self.sites[flight.work[id].transfer.source.plane.index()].unit)
    }

    /// A page that a unit sensed is in the controller.
    #[inline]
    pub fn page_left(&mut self, flight: &mut FlashInFlight, id: UnitId) {
        if self.units[id.index()].page_left() {
            self.rest(flight, id);
        }
    }

    /// What a unit has programmed or erased, unless it was halted meanwhile. The unit must be told
    /// with [`Hardware::rest`] when that was dealt with.
    #[inline]
    pub fn worked(&mut self, flight: &FlashInFlight, id: UnitId) -> Option<WorkQueue> {
        self.units[id.index()].worked(flight.calendar.now())
    }

    /// A unit has nothing in hand: it goes on with what was halted, or can take a command.
    #[inline]
    pub fn rest(&mut self, flight: &mut FlashInFlight, id: UnitId) {
        let unit = &mut self.units[id.index()];
        unit.rest(flight.calendar.now());
        if unit.has_halted() && !unit.is_pressed() {
            self.resume(flight, id);
        } else if unit.queues.queued() > 0 {
            self.make_ready(id);
        }
    }

    /// Halts what a unit works on.
    pub fn halt(&mut self, flight: &mut FlashInFlight, id: UnitId) {
        let now = flight.calendar.now();
        let command = self.timing.bus.suspend_command_ns;
        let unit = &mut self.units[id.index()];
        let cost = unit.halt(&self.timing.cell, now);
        self.channels[unit.channel().0].take(now, command);
        flight.calendar.push(now + command + cost, FlashEvent::Halted(id));
        flight.counters.suspends += 1;
    }

    /// Goes on with what was halted, if something was.
    pub fn resume(&mut self, flight: &mut FlashInFlight, id: UnitId) {
        if let Some(ends_at) = self.units[id.index()].resume(flight.calendar.now()) {
            flight.calendar.push(ends_at, FlashEvent::Worked(id));
        }
    }

    /// Adds the busy times of units and channels.
    pub fn report(&self, now: u64, stats: &mut FlashStats) {
        stats.busy.channel_ns = self.channels.iter().map(|item| item.busy_ns(now)).collect();
        stats.busy.unit_worked_ns = self.units.iter().map(|unit| unit.worked_ns(now)).collect();
        stats.busy.unit_cleaned_ns = self.units.iter().map(|unit| unit.cleaned_ns(now)).collect();
        for (stage, _) in UnitStage::BUSY {
            let units = self.units.iter().map(|unit| unit.stage_ns(stage, now));
            stats.busy.stage_ns[stage as usize] = units.sum();
        }
    }

    /// Times and queues of every unit and channel are counted, and none is forgotten. Adds the
    /// queued work to the load of planes.
    pub fn audit(
        &self,
        table: &TransactionTable,
        now: u64,
        load: &mut [[u32; CLASSES]],
    ) -> Result<(), String> {
        for (index, unit) in self.units.iter().enumerate() {
            let audited = unit.audit(now).and_then(|()| unit.queues.audit(table, load));
            audited.map_err(|error| format!("unit {index}: {error}"))?;
            let (channel, bit) = unit.channel();
            let ready = !unit.queues.spares_all() || self.channels[channel].is_ready(bit);
            let queued = unit.queues.queued();
            if unit.is_idle() && queued > 0 && !ready {
                return Err(format!("unit {index} is idle and {queued} wait for it"));
            }
        }
        for (index, channel) in self.channels.iter().enumerate() {
            channel.audit(now).map_err(|error| format!("channel {index}: {error}"))?;
        }
        Ok(())
    }

    /// Channels that carry a command or data.
    pub fn busy_channels(&self, now: u64) -> u32 {
        let busy = |channel: &&FlashChannel| channel.is_crossed() || channel.is_busy(now);
        self.channels.iter().filter(busy).count() as u32
    }
}
