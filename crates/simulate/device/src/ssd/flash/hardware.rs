//! Units and channels at work: sensing, programming, erasing, halts, and data on its way over
//! channels.
//!
//! A unit does one thing at a time: it is a chip, or a die where dies overlap. Invariant: a unit is
//! in one [`UnitStage`]; its busy time by kind never exceeds the time that has passed.
//!
//! Times of a channel are those of ONFI 4.0, NV-DDR2, summed up as by MQSim: command cycles of 25
//! ns, chip select 20 ns, busy after a command 100 ns. Address to data takes 70 ns, dummy busy
//! between planes 500 ns. Units: nanoseconds, bytes.

use super::backend::FlashEvent;
use super::geometry::{ChannelId, PlaneId, UnitId, WorkId};
use super::params::{Cell, FlashParams, FlashSchedule};
use super::scheduler::{CLASSES, QueueClass, STAGES, UnitQueues, UnitStage};
use super::stats::FlashStats;
use super::work::{FlashOperations, TransactionTable, WorkPurpose, WorkQueue, WorkStep};
use crate::device::SpentPart;

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
        flight: &mut FlashOperations,
        unit: UnitId,
        class: QueueClass,
        batch: WorkQueue,
    ) {
        if class.reads() {
            return self.begin_read(flight, unit, batch);
        }
        if class == QueueClass::Erase {
            let (crossing, time) = self.timing.erase(batch.len());
            flight.counters.multi_plane.erases += u64::from(batch.len() > 1);
            return self.begin_work(flight, unit, batch, UnitStage::Erasing, true, crossing, time);
        }
        let program = self.timing.program(&flight.work, &batch);
        flight.counters.channel_bytes += program.bytes;
        flight.counters.multi_plane.programs += u64::from(batch.len() > 1);
        let (crossing, time) = program.times;
        let stage = UnitStage::Programming;
        self.begin_work(flight, unit, batch, stage, program.cleans, crossing, time);
    }

    /// A unit may have a command to take.
    #[inline]
    pub fn make_ready(&mut self, unit: UnitId) {
        let (channel, bit) = self.units[unit.index()].channel();
        self.channels[channel].make_ready(bit);
        self.channels.touch(channel);
    }

    #[inline]
    pub fn begin_read(&mut self, flight: &mut FlashOperations, id: UnitId, batch: WorkQueue) {
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
        flight: &mut FlashOperations,
        id: UnitId,
        batch: WorkQueue,
        stage: UnitStage,
        cleans: bool,
        crossing: u64,
        time: u64,
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
        unit.work_until(end, batch, stage, cleans, now);
        flight.calendar.push(end, FlashEvent::Worked(id));
        self.channels[unit.channel().0].take(now, crossing);
    }

    /// Data leaves by a free channel, or is programmed in its plane.
    #[inline]
    pub fn send(&mut self, flight: &mut FlashOperations, channel: ChannelId, id: WorkId) {
        if flight.work[id].copy_back {
            self.copy_back(flight, id);
        } else {
            self.cross(flight, channel, id);
        }
    }

    /// Data of a read begins to cross a free channel.
    #[inline]
    fn cross(&mut self, flight: &mut FlashOperations, channel: ChannelId, id: WorkId) {
        let now = flight.calendar.now();
        let work = &mut flight.work[id];
        let crossing = self.timing.bus.data_ns(work.read_bytes);
        work.time.account(SpentPart::Channel, now);
        work.time.account(SpentPart::Channel, now + crossing);
        flight.counters.channel_bytes += u64::from(work.read_bytes);
        self.channels[channel].begin_crossing(id, now, crossing);
        flight.calendar.push(now + crossing, FlashEvent::Crossed(channel));
    }

    /// Programs a sensed page within its plane.
    fn copy_back(&mut self, flight: &mut FlashOperations, id: WorkId) {
        let now = flight.calendar.now();
        let work = &mut flight.work[id];
        work.time.account(SpentPart::Channel, now);
        work.step = WorkStep::Program;
        let unit = self.sites[work.target.plane.index()].unit;
        let (crossing, time) = self.timing.copy_back(work.target.page);
        let mut batch = WorkQueue::default();
        batch.push(&mut flight.work, id);
        self.begin_work(flight, unit, batch, UnitStage::Programming, true, crossing, time);
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
    pub fn sensed(&mut self, flight: &mut FlashOperations, id: UnitId) {
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
    pub fn crossed(&mut self, flight: &FlashOperations, channel: ChannelId) -> (WorkId, UnitId) {
        let id = self.channels[channel].end_crossing();
        self.channels.touch(channel);
        (id, self.sites[flight.work[id].source.plane.index()].unit)
    }

    /// A page that a unit sensed is in the controller.
    #[inline]
    pub fn page_left(&mut self, flight: &mut FlashOperations, id: UnitId) {
        if self.units[id.index()].page_left() {
            self.rest(flight, id);
        }
    }

    /// What a unit has programmed or erased, unless it was halted meanwhile. The unit must be told
    /// with [`Hardware::rest`] when that was dealt with.
    #[inline]
    pub fn worked(&mut self, flight: &FlashOperations, id: UnitId) -> Option<WorkQueue> {
        self.units[id.index()].worked(flight.calendar.now())
    }

    /// A unit has nothing in hand: it goes on with what was halted, or can take a command.
    #[inline]
    pub fn rest(&mut self, flight: &mut FlashOperations, id: UnitId) {
        let unit = &mut self.units[id.index()];
        unit.rest(flight.calendar.now());
        if unit.has_halted() && !unit.is_pressed() {
            self.resume(flight, id);
        } else if unit.queues.queued() > 0 {
            self.make_ready(id);
        }
    }

    /// Halts what a unit works on.
    pub fn halt(&mut self, flight: &mut FlashOperations, id: UnitId) {
        let now = flight.calendar.now();
        let command = self.timing.bus.suspend_command_ns;
        let unit = &mut self.units[id.index()];
        let cost = unit.halt(&self.timing.cell, now);
        self.channels[unit.channel().0].take(now, command);
        flight.calendar.push(now + command + cost, FlashEvent::Halted(id));
        flight.counters.suspends += 1;
    }

    /// Goes on with what was halted, if something was.
    pub fn resume(&mut self, flight: &mut FlashOperations, id: UnitId) {
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

/// Queues of data that waits for a channel.
const DATA_QUEUES: usize = 4;

/// Whose data waits for a channel; in this order it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataClass {
    /// Pages that are programmed in their plane, which need the command only.
    CopyBack,
    /// The mapping table.
    Map,
    /// The host.
    Host,
    /// Cleaning.
    Clean,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct FlashChannel {
    busy_until: u64,
    /// Whether an event at that time will look at what waits (the end of a crossing does anyway).
    waking: bool,
    /// Data of reads that waits, by [`DataClass`].
    data: [WorkQueue; DATA_QUEUES],
    /// Reads in all of them.
    waiting: u32,
    /// The read whose data crosses, if one does.
    crossing: WorkId,
    /// Units that may have a command to take, a bit each.
    ready: u64,
    /// The bit whose turn is next.
    turn: u32,
    units: u32,
    /// Time it was taken, to the end of what takes it now.
    busy_ns: u64,
    /// Whether it is in the list of those to look at.
    touched: bool,
}

impl FlashChannel {
    /// A free channel of so many units.
    pub fn new(units: u32) -> FlashChannel {
        FlashChannel {
            busy_until: 0,
            waking: false,
            data: [WorkQueue::default(); DATA_QUEUES],
            waiting: 0,
            crossing: WorkId::NONE,
            ready: 0,
            turn: 0,
            units,
            busy_ns: 0,
            touched: false,
        }
    }

    /// Takes it for some time.
    #[inline]
    pub fn take(&mut self, now: u64, time_ns: u64) {
        debug_assert!(self.busy_until <= now);
        self.busy_until = now + time_ns;
        self.busy_ns += time_ns;
    }

    /// Whether data crosses it, whose end will look at what waits.
    #[inline]
    pub fn is_crossed(&self) -> bool {
        self.crossing != WorkId::NONE
    }

    /// Whether it carries a command or data.
    #[inline]
    pub fn is_busy(&self, now: u64) -> bool {
        self.busy_until > now
    }

    /// When to look at what waits for it, unless that is known already or nothing waits.
    #[inline]
    pub fn wake_time(&mut self) -> Option<u64> {
        let waits = self.ready != 0 || self.waiting > 0;
        if !waits || self.waking {
            return None;
        }
        self.waking = true;
        Some(self.busy_until)
    }

    /// The time to look at what waits has come.
    #[inline]
    pub fn wake(&mut self) {
        self.waking = false;
    }

    /// Adds data that waits for it.
    #[inline]
    fn push_data(&mut self, table: &mut TransactionTable, class: DataClass, id: WorkId) {
        self.waiting += 1;
        self.data[class as usize].push(table, id);
    }

    /// Takes the data that goes next.
    #[inline]
    pub fn pop_data(&mut self, table: &mut TransactionTable) -> Option<WorkId> {
        if self.waiting == 0 {
            return None;
        }
        let next = self.data.iter_mut().find(|queue| !queue.is_empty())?.pop(table)?;
        self.waiting -= 1;
        Some(next)
    }

    /// Whether data waits for it.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.waiting > 0
    }

    /// Data begins to cross.
    #[inline]
    fn begin_crossing(&mut self, id: WorkId, now: u64, time_ns: u64) {
        self.take(now, time_ns);
        self.crossing = id;
    }

    /// Data has crossed.
    #[inline]
    fn end_crossing(&mut self) -> WorkId {
        std::mem::replace(&mut self.crossing, WorkId::NONE)
    }

    /// A unit may have a command to take.
    #[inline]
    pub fn make_ready(&mut self, bit: u32) {
        self.ready |= 1 << bit;
    }

    /// Whether some unit may have a command to take.
    #[inline]
    pub fn has_ready(&self) -> bool {
        self.ready != 0
    }

    /// Whether a unit may have a command to take.
    fn is_ready(&self, bit: u32) -> bool {
        self.ready & 1 << bit != 0
    }

    /// Takes the ready unit whose turn comes first.
    #[inline]
    pub fn take_ready(&mut self) -> Option<u32> {
        if self.ready == 0 {
            return None;
        }
        let later = self.ready >> self.turn << self.turn;
        let bits = if later == 0 { self.ready } else { later };
        let bit = bits.trailing_zeros();
        self.ready &= !(1 << bit);
        Some(bit)
    }

    /// The next unit has its turn.
    #[inline]
    pub fn turn_after(&mut self, bit: u32) {
        let last = bit + 1 == self.units;
        self.turn = if last { 0 } else { bit + 1 };
    }

    /// Time it was taken up to now.
    pub fn busy_ns(&self, now: u64) -> u64 {
        self.busy_ns - self.busy_until.saturating_sub(now)
    }

    /// Its time fits, what waits is counted, and something will look at it.
    pub fn audit(&self, now: u64) -> Result<(), String> {
        let busy = self.busy_ns(now);
        if busy > now {
            return Err(format!("it was taken {busy} of {now} ns"));
        }
        let waiting: u32 = self.data.iter().map(WorkQueue::len).sum();
        if waiting != self.waiting {
            return Err(format!("{waiting} reads wait, {} counted", self.waiting));
        }
        let waits = self.ready != 0 || waiting > 0;
        if waits && !self.waking && !self.is_crossed() {
            return Err("work waits for it and nothing will wake it".to_owned());
        }
        Ok(())
    }
}

/// All channels, and those to look at before time goes on.
#[derive(Clone, Debug)]
pub struct FlashChannels {
    channels: Vec<FlashChannel>,
    touched: Vec<ChannelId>,
}

impl FlashChannels {
    /// So many free channels of so many units each.
    pub fn new(count: u32, units: u32) -> FlashChannels {
        FlashChannels {
            channels: vec![FlashChannel::new(units); count as usize],
            touched: Vec::new(),
        }
    }

    /// A channel is to be looked at before time goes on.
    #[inline]
    pub fn touch(&mut self, id: ChannelId) {
        let channel = &mut self.channels[id.index()];
        if !channel.touched {
            channel.touched = true;
            self.touched.push(id);
        }
    }

    /// The channel to look at after so many others; none is left after the last.
    #[inline]
    pub fn next_touched(&mut self, after: usize) -> Option<ChannelId> {
        let id = *self.touched.get(after)?;
        self.channels[id.index()].touched = false;
        Some(id)
    }

    /// All have been looked at.
    #[inline]
    pub fn settle(&mut self) {
        self.touched.clear();
    }

    /// Whether there is one to look at.
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// All channels.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FlashChannel> {
        self.channels.iter()
    }
}

impl std::ops::Index<ChannelId> for FlashChannels {
    type Output = FlashChannel;

    #[inline(always)]
    fn index(&self, id: ChannelId) -> &FlashChannel {
        &self.channels[id.index()]
    }
}

impl std::ops::IndexMut<ChannelId> for FlashChannels {
    #[inline(always)]
    fn index_mut(&mut self, id: ChannelId) -> &mut FlashChannel {
        &mut self.channels[id.index()]
    }
}

/// A program or erase that was halted.
#[derive(Clone, Copy, Debug)]
struct Halted {
    batch: WorkQueue,
    left_ns: u64,
    stage: UnitStage,
    /// How often it was halted.
    times: u32,
    cleans: bool,
}

/// Time of a unit by kind.
#[derive(Clone, Debug, Default)]
struct UnitClock {
    /// Since when it does what it does.
    since: u64,
    worked_ns: u64,
    cleaned_ns: u64,
    stage_ns: [u64; STAGES],
}

/// A chip, or a die where dies overlap.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Work that waits for it.
    pub queues: UnitQueues,
    channel: ChannelId,
    /// Its bit in the channel's mask.
    bit: u32,
    stage: UnitStage,
    /// Whether what it does is cleaning.
    cleans: bool,
    /// The transactions it works on.
    batch: WorkQueue,
    /// When its program or erase ends.
    ends_at: u64,
    /// How often that was halted.
    halts: u32,
    halted: Option<Halted>,
    /// Planes where cleaning goes first, a bit each (numbers modulo 64).
    urgent_planes: u64,
    /// Sensed pages that have not crossed the channel.
    leaving: u32,
    clock: UnitClock,
}

impl Unit {
    /// An idle unit.
    pub fn new(channel: ChannelId, bit: u32) -> Unit {
        Unit {
            queues: UnitQueues::default(),
            channel,
            bit,
            stage: UnitStage::Idle,
            cleans: false,
            batch: WorkQueue::default(),
            ends_at: 0,
            halts: 0,
            halted: None,
            urgent_planes: 0,
            leaving: 0,
            clock: UnitClock::default(),
        }
    }

    /// Its channel, and its bit there.
    #[inline]
    pub fn channel(&self) -> (ChannelId, u32) {
        (self.channel, self.bit)
    }

    /// Whether it does nothing; something may be halted.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.stage == UnitStage::Idle
    }

    /// Whether a program or erase is halted.
    #[inline]
    pub fn has_halted(&self) -> bool {
        self.halted.is_some()
    }

    /// The transactions it works on.
    pub fn batch(&self) -> WorkQueue {
        self.batch
    }

    #[inline]
    fn begin(&mut self, stage: UnitStage, cleans: bool, now: u64) {
        self.settle(now);
        self.stage = stage;
        self.cleans = cleans;
    }

    /// Begins to sense.
    #[inline]
    pub fn sense(&mut self, batch: WorkQueue, cleans: bool, now: u64) {
        self.batch = batch;
        self.begin(UnitStage::Sensing, cleans, now);
    }

    /// Begins to program or erase until `ends_at`.
    fn work_until(
        &mut self,
        ends_at: u64,
        batch: WorkQueue,
        stage: UnitStage,
        cleans: bool,
        now: u64,
    ) {
        self.batch = batch;
        self.halts = 0;
        self.ends_at = ends_at;
        self.begin(stage, cleans, now);
    }

    /// Has sensed: its pages are to leave by the channel.
    #[inline]
    pub fn sensed(&mut self, now: u64) -> WorkQueue {
        let batch = std::mem::take(&mut self.batch);
        self.leaving = batch.len();
        self.begin(UnitStage::DataOut, self.cleans, now);
        batch
    }

    /// A sensed page has crossed the channel; whether it was the last.
    #[inline]
    pub fn page_left(&mut self) -> bool {
        self.leaving -= 1;
        self.leaving == 0
    }

    /// What it has programmed or erased by now; nothing if that was halted meanwhile.
    #[inline]
    pub fn worked(&mut self, now: u64) -> Option<WorkQueue> {
        let works = matches!(self.stage, UnitStage::Programming | UnitStage::Erasing);
        (works && self.ends_at == now).then(|| std::mem::take(&mut self.batch))
    }

    /// Has nothing in hand.
    #[inline]
    pub fn rest(&mut self, now: u64) {
        self.settle(now);
        self.stage = UnitStage::Idle;
    }

    /// Whether it works on what a read may halt, and it is worth it.
    #[inline]
    pub fn can_halt(&self, schedule: &FlashSchedule, cell: &Cell, now: u64) -> bool {
        let (allowed, cost) = match self.stage {
            UnitStage::Programming => (schedule.suspend_program, cell.suspend_program_ns),
            UnitStage::Erasing => (schedule.suspend_erase, cell.suspend_erase_ns),
            _ => return false,
        };
        allowed
            && self.halted.is_none()
            && self.halts < schedule.max_suspends
            && self.ends_at.saturating_sub(now) > cost
    }

    /// Halts what it works on; how long that takes after the command.
    pub fn halt(&mut self, cell: &Cell, now: u64) -> u64 {
        assert!(self.halted.is_none(), "a unit halts one program or erase at a time");
        let (stage, cleans) = (self.stage, self.cleans);
        self.halted = Some(Halted {
            batch: std::mem::take(&mut self.batch),
            left_ns: self.ends_at - now,
            stage,
            times: self.halts + 1,
            cleans,
        });
        self.begin(UnitStage::Halting, cleans, now);
        if stage == UnitStage::Erasing { cell.suspend_erase_ns } else { cell.suspend_program_ns }
    }

    /// Goes on with what was halted, if it is idle and something was; when that ends.
    pub fn resume(&mut self, now: u64) -> Option<u64> {
        if self.stage != UnitStage::Idle {
            return None;
        }
        let halted = self.halted.take()?;
        self.work_until(now + halted.left_ns, halted.batch, halted.stage, halted.cleans, now);
        self.halts = halted.times;
        Some(self.ends_at)
    }

    /// Whether a read that a host waits for is queued.
    #[inline]
    fn is_pressed(&self) -> bool {
        let pressing = [QueueClass::MapRead, QueueClass::HostRead];
        pressing.iter().any(|class| !self.queues.queue(*class).is_empty())
    }

    /// Notes whether cleaning goes first in a plane.
    pub fn set_urgent(&mut self, plane: PlaneId, urgent: bool) {
        let bit = 1_u64 << (plane.0 % 64);
        self.urgent_planes =
            if urgent { self.urgent_planes | bit } else { self.urgent_planes & !bit };
    }

    /// Whether cleaning goes first in one of its planes.
    #[inline]
    pub fn is_urgent(&self) -> bool {
        self.urgent_planes > 0
    }

    /// Accounts the time up to now.
    #[inline]
    fn settle(&mut self, now: u64) {
        let passed = now - self.clock.since;
        self.clock.stage_ns[self.stage as usize] += passed;
        match (self.stage, self.cleans) {
            (UnitStage::Idle, _) => {}
            (_, false) => self.clock.worked_ns += passed,
            (_, true) => self.clock.cleaned_ns += passed,
        }
        self.clock.since = now;
    }

    /// Time it has worked for the host (and its map) up to now.
    #[inline]
    pub fn worked_ns(&self, now: u64) -> u64 {
        let running = self.stage != UnitStage::Idle && !self.cleans;
        self.clock.worked_ns + if running { now - self.clock.since } else { 0 }
    }

    /// Time it has cleaned up to now.
    #[inline]
    pub fn cleaned_ns(&self, now: u64) -> u64 {
        let running = self.stage != UnitStage::Idle && self.cleans;
        self.clock.cleaned_ns + if running { now - self.clock.since } else { 0 }
    }

    /// Time in a stage up to now.
    pub fn stage_ns(&self, stage: UnitStage, now: u64) -> u64 {
        let running = if self.stage == stage { now - self.clock.since } else { 0 };
        self.clock.stage_ns[stage as usize] + running
    }

    /// Its times add up and fit into the time that has passed.
    pub fn audit(&self, now: u64) -> Result<(), String> {
        let busy = self.worked_ns(now) + self.cleaned_ns(now);
        let stages = UnitStage::BUSY.iter().map(|(stage, _)| self.stage_ns(*stage, now));
        if busy > now || busy != stages.sum::<u64>() {
            return Err(format!("it was busy {busy} of {now} ns"));
        }
        Ok(())
    }
}
/// Times on a channel, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Read command of one plane.
    pub read_command_ns: u64,
    /// Each further plane of it.
    pub read_more_planes_ns: u64,
    /// Program command of one plane, without data.
    pub program_command_ns: u64,
    /// Each further plane of it.
    pub program_more_planes_ns: u64,
    /// Erase command of one plane.
    pub erase_command_ns: u64,
    /// Each further plane of it.
    pub erase_more_planes_ns: u64,
    /// Command that halts a program or erase.
    pub suspend_command_ns: u64,
    /// From the end of sensing to the data.
    pub ready_ns: u64,
    /// Bytes that cross in one cycle of the strobe.
    pub unit_bytes: u32,
    /// Picoseconds of that cycle.
    pub unit_ps: u64,
}

impl Bus {
    /// A bus of so many million transfers per second and bytes of width. A transfer is cut to whole
    /// nanoseconds as in MQSim (333 MT/s are 3 ns).
    pub fn mqsim(rate_mts: u32, width_bytes: u32) -> Bus {
        let transfer_ns = u64::from(1000 / rate_mts.clamp(1, 1000)).max(1);
        Bus { unit_ps: 2000 * transfer_ns, ..Bus::exact(rate_mts, width_bytes) }
    }

    /// A bus of so many million transfers per second and bytes of width.
    pub fn exact(rate_mts: u32, width_bytes: u32) -> Bus {
        Bus {
            read_command_ns: 290,
            read_more_planes_ns: 650,
            program_command_ns: 361,
            program_more_planes_ns: 816,
            erase_command_ns: 220,
            erase_more_planes_ns: 700,
            suspend_command_ns: 95,
            ready_ns: 20,
            unit_bytes: 2 * width_bytes.max(1),
            unit_ps: 2_000_000 / u64::from(rate_mts.max(1)),
        }
    }

    /// Data of one page or part.
    #[inline]
    pub fn data_ns(&self, bytes: u32) -> u64 {
        let units = u64::from(bytes.div_ceil(self.unit_bytes));
        // Whole nanoseconds per unit, as in MQSim's timing, need no division.
        if self.unit_ps.is_multiple_of(1000) {
            units * (self.unit_ps / 1000)
        } else {
            (units * self.unit_ps).div_ceil(1000)
        }
    }

    /// A read command of so many planes.
    #[inline]
    pub fn read_ns(&self, planes: u32) -> u64 {
        self.read_command_ns + u64::from(planes - 1) * self.read_more_planes_ns
    }

    /// A program command of so many planes, without their data.
    #[inline]
    pub fn program_ns(&self, planes: u32) -> u64 {
        self.program_command_ns + u64::from(planes - 1) * self.program_more_planes_ns
    }

    /// An erase command of so many planes.
    #[inline]
    pub fn erase_ns(&self, planes: u32) -> u64 {
        self.erase_command_ns + u64::from(planes - 1) * self.erase_more_planes_ns
    }
}

/// Times on the bus and in the cells.
#[derive(Clone, Debug)]
struct FlashTiming {
    /// The channel's times.
    pub bus: Bus,
    /// The dies' times.
    pub cell: Cell,
}

/// A program command.
#[derive(Clone, Copy, Debug)]
struct ProgramCommand {
    /// Nanoseconds on the channel, and then in the die.
    pub times: (u64, u64),
    /// Bytes that cross the channel.
    pub bytes: u64,
    /// Whether all of it is cleaning.
    pub cleans: bool,
}

impl FlashTiming {
    /// A read command: nanoseconds on the channel and of sensing, and whether all of it is
    /// cleaning.
    #[inline]
    pub fn read(&self, table: &TransactionTable, batch: &WorkQueue) -> (u64, u64, bool) {
        let (mut id, mut sense, mut cleans) = (batch.head(), 0, true);
        while id != WorkId::NONE {
            let work = &table[id];
            sense = sense.max(self.cell.read_ns[self.cell.level(work.source.page)]);
            cleans &= work.cleans();
            id = work.next;
        }
        (self.bus.read_ns(batch.len()), sense + self.bus.ready_ns, cleans)
    }

    /// A program command.
    pub fn program(&self, table: &TransactionTable, batch: &WorkQueue) -> ProgramCommand {
        let mut crossing = self.bus.program_ns(batch.len());
        let (mut time, mut bytes, mut cleans) = (0, 0, true);
        for id in batch.iter(table) {
            let work = &table[id];
            crossing += self.bus.data_ns(work.program_bytes);
            bytes += u64::from(work.program_bytes);
            time = time.max(self.cell.program_ns[self.cell.level(work.target.page)]);
            cleans &= work.cleans();
        }
        ProgramCommand { times: (crossing, time), bytes, cleans }
    }

    /// A program of a page that was sensed in its plane: time on the channel and in the die.
    pub fn copy_back(&self, page: u32) -> (u64, u64) {
        (self.bus.program_ns(1), self.cell.program_ns[self.cell.level(page)])
    }

    /// An erase command of so many planes: time on the channel and in the die.
    pub fn erase(&self, planes: u32) -> (u64, u64) {
        (self.bus.erase_ns(planes), self.cell.erase_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let mut channel = FlashChannel::new(4);
        [0, 1, 3].into_iter().for_each(|bit| channel.make_ready(bit));
        channel.turn_after(1);
        assert_eq!(channel.take_ready(), Some(3));
        channel.turn_after(3);
        assert_eq!(channel.take_ready(), Some(0));
        channel.turn_after(2);
        assert_eq!((channel.take_ready(), channel.take_ready()), (Some(1), None));
    }

    #[test]
    fn busy_time_is_split_by_kind() {
        let mut unit = Unit::new(ChannelId(0), 0);
        unit.begin(UnitStage::Sensing, false, 10);
        unit.begin(UnitStage::Erasing, true, 30);
        assert_eq!((unit.worked_ns(40), unit.cleaned_ns(40)), (20, 10));
        unit.rest(50);
        assert_eq!((unit.worked_ns(90), unit.cleaned_ns(90)), (20, 20));
    }

    /// The table of the reference: commands of 1 to 4 planes, 4 KiB and 8 KiB of data.
    #[test]
    fn the_bus_of_the_reference() {
        let bus = Bus::mqsim(333, 1);
        assert_eq!([1, 2, 3, 4].map(|planes| bus.read_ns(planes)), [290, 940, 1590, 2240]);
        assert_eq!([1, 2].map(|planes| bus.program_ns(planes)), [361, 1177]);
        assert_eq!(bus.erase_ns(1), 220);
        assert_eq!([512, 4096, 8192].map(|bytes| bus.data_ns(bytes)), [1536, 12_288, 24_576]);
        assert_eq!(Bus::exact(333, 1).data_ns(8192), 24_601, "8192 transfers of 3.003 ns");
        assert_eq!(Bus::exact(1200, 1).data_ns(4096), 3412);
    }
}
