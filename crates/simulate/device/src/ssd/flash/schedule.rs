//! Whose turn it is.
//!
//! For: queues of units, the choice among them, pages that share a command, halting a program for a
//! read. Must never know: pages of the host, the map. Units: nanoseconds. Order: the map's reads,
//! reads, the map's writes, writes, cleaning; cleaning before the host where it is urgent. Nothing
//! waits for the map's writes (their entries stay in the controller meanwhile), so they never go
//! before a read of the host. Skipped while they must be: programs to a block that is still to be
//! erased, erases of a block that is still to be read. Where tenants have classes, the class is
//! chosen first (see `priority`). Source: the out-of-order scheduler of MQSim (FAST'18, section
//! 4.5). Difference: MQSim queues the map's writes and never takes them out of their queue.

use super::Backend;
use super::check::PLANES_MOST;
use super::priority::Priority;
use super::transaction::{Id, NIL, Purpose, Queue, Step};
use super::unit::{Class, Stage};
use crate::spent::Part;
use crate::ssd::flash::events::What;

/// Queues in the order in which they are looked at, each with the queue whose pages may share the
/// command.
type Turns = [(Class, Option<Class>); 7];

const HOST_FIRST: Turns = [
    (Class::MapRead, Some(Class::HostRead)),
    (Class::HostRead, Some(Class::CleanRead)),
    (Class::MapWrite, Some(Class::HostWrite)),
    (Class::HostWrite, Some(Class::CleanWrite)),
    (Class::CleanRead, None),
    (Class::CleanWrite, None),
    (Class::Erase, None),
];

const CLEANING_FIRST: Turns = [
    (Class::MapRead, Some(Class::CleanRead)),
    (Class::CleanRead, Some(Class::HostRead)),
    (Class::CleanWrite, Some(Class::HostWrite)),
    (Class::Erase, None),
    (Class::HostRead, None),
    (Class::MapWrite, Some(Class::HostWrite)),
    (Class::HostWrite, None),
];

impl Backend {
    /// Queues work at its unit.
    #[inline]
    pub(super) fn enqueue(&mut self, id: Id) {
        let now = self.now;
        let work = &mut self.work[id];
        let (class, plane) = (Class::of(work), work.place().plane);
        let index = self.sites[plane as usize].unit;
        let unit = &mut self.units[index as usize];
        work.worked_before = unit.worked_ns(now);
        work.cleaned_before = unit.cleaned_ns(now);
        unit.queues[class as usize].push(&mut self.work, id);
        unit.queued += 1;
        self.plane_load[plane as usize][class as usize] += 1;
        self.waits[class as usize].join(now);
        let idle = unit.stage == Stage::Idle;
        if idle || matches!(class, Class::HostRead | Class::MapRead) && self.can_halt(index) {
            self.make_ready(index);
        }
    }

    /// A unit may have a command to take.
    #[inline]
    pub(super) fn make_ready(&mut self, index: u32) {
        let unit = &self.units[index as usize];
        let channel = unit.channel;
        self.channels[channel as usize].ready |= 1 << unit.bit;
        self.touch(channel);
    }

    /// A channel is to be looked at before time goes on.
    #[inline]
    pub(super) fn touch(&mut self, channel: u32) {
        let item = &mut self.channels[channel as usize];
        if !item.touched {
            item.touched = true;
            self.touched.push(channel);
        }
    }

    /// Looks at every channel on which something may begin.
    #[inline]
    pub(super) fn dispatch(&mut self) {
        if !self.touched.is_empty() {
            self.serve_touched();
        }
    }

    fn serve_touched(&mut self) {
        let mut next = 0;
        while next < self.touched.len() {
            let channel = self.touched[next];
            self.channels[channel as usize].touched = false;
            self.serve(channel);
            next += 1;
        }
        self.touched.clear();
    }

    /// Begins what can begin on a channel: data that waits first, then commands in turn.
    #[inline]
    fn serve(&mut self, index: u32) {
        loop {
            let channel = &mut self.channels[index as usize];
            if channel.crossing != NIL {
                // The end of it will look again.
                return;
            }
            if channel.busy_until > self.now {
                let waits = channel.ready != 0 || channel.waiting > 0;
                if waits && !channel.waking {
                    channel.waking = true;
                    self.events.push(channel.busy_until, What::Channel, index);
                }
                return;
            }
            if self.send_out(index) {
                continue;
            }
            let channel = &mut self.channels[index as usize];
            let Some(bit) = channel.next_ready() else { return };
            let unit = channel.first_unit + bit;
            channel.ready &= !(1 << bit);
            if self.issue(unit) {
                self.turn_after(index, bit);
            }
        }
    }

    /// The next unit of a channel has its turn.
    #[inline]
    fn turn_after(&mut self, channel: u32, bit: u32) {
        let last = bit + 1 == self.units_per_channel;
        self.channels[channel as usize].turn = if last { 0 } else { bit + 1 };
    }

    /// Begins a read at once where nothing else waits for its unit or channel, as its turn would;
    /// false where something does.
    #[inline]
    pub(super) fn begin_at_once(&mut self, id: Id) -> bool {
        let index = self.sites[self.work[id].source.plane as usize].unit;
        let unit = &self.units[index as usize];
        let channel = &self.channels[unit.channel as usize];
        let free = channel.busy_until <= self.now && channel.crossing == NIL && channel.ready == 0;
        let idle = unit.stage == Stage::Idle && unit.queued == 0 && unit.halted.is_none();
        if !free || !idle {
            return false;
        }
        let (number, bit) = (unit.channel, unit.bit);
        self.work[id].step = Step::Read;
        self.waits[Class::of(&self.work[id]) as usize].left += 1;
        let mut batch = Queue::default();
        batch.push(&mut self.work, id);
        self.begin_read(index, batch);
        self.turn_after(number, bit);
        true
    }

    /// Gives a unit the command whose turn it is; false if there is none it can take.
    #[inline]
    fn issue(&mut self, index: u32) -> bool {
        let unit = &self.units[index as usize];
        let reads = unit.queues[Class::HostRead as usize].len();
        let plain = self.params.priorities.is_empty() && unit.halted.is_none();
        if plain && unit.queued == reads && unit.stage == Stage::Idle {
            // Nothing else waits, as is usual while a drive is read.
            if reads > 0 {
                let batch = self.gather(index, Class::HostRead, None, NIL);
                self.begin_read(index, batch);
            }
            return reads > 0;
        }
        let only_reads = unit.halted.is_some() || unit.stage != Stage::Idle;
        if unit.stage != Stage::Idle && !self.can_halt(index) {
            return false;
        }
        let urgent = !self.params.schedule.gc_preemptible || unit.urgent_planes > 0;
        let turns = if urgent { &CLEANING_FIRST } else { &HOST_FIRST };
        for (class, mate) in turns {
            let unit = &self.units[index as usize];
            let pressing = matches!(class, Class::MapRead | Class::HostRead);
            if unit.queues[*class as usize].is_empty() || only_reads && !pressing {
                continue;
            }
            let Some(before) = self.next_able(index, *class) else { continue };
            let unit = &self.units[index as usize];
            if unit.stage != Stage::Idle {
                self.halt(index);
                return true;
            }
            let mate = match (class, mate) {
                // Where nothing waits to be cleaned, reads of the host share the map's command.
                (Class::MapRead, Some(Class::CleanRead))
                    if unit.queues[Class::CleanRead as usize].is_empty() =>
                {
                    Some(Class::HostRead)
                }
                (_, mate) => *mate,
            };
            let batch = self.gather(index, *class, mate, before);
            self.begin(index, *class, batch);
            return true;
        }
        self.resume(index);
        false
    }

    /// The one before the next in a queue that may begin; nothing if none may. Where tenants have
    /// classes, it is the first of the class whose turn it is.
    #[inline]
    fn next_able(&mut self, index: u32, class: Class) -> Option<Id> {
        let rounds = match class {
            Class::HostRead => 0,
            Class::HostWrite => 1,
            _ => return self.first_able(index, class, None),
        };
        if self.params.priorities.is_empty() {
            return self.first_able(index, class, None);
        }
        let queue = self.units[index as usize].queues[class as usize];
        let mut waits = [false; 4];
        for id in queue.iter(&self.work).filter(|id| self.able(index, *id)) {
            waits[self.work[id].priority as usize] = true;
        }
        let chosen = self.units[index as usize].rounds[rounds].next(waits)?;
        self.first_able(index, class, Some(chosen))
    }

    /// The one before the first in a queue, of a class of tenants if one is named, that may begin.
    #[inline]
    fn first_able(&self, index: u32, class: Class, only: Option<Priority>) -> Option<Id> {
        let unit = &self.units[index as usize];
        let (mut before, mut id) = (NIL, unit.queues[class as usize].head());
        while id != NIL {
            let listed = only.is_none_or(|only| self.work[id].priority == only);
            if listed && self.able(index, id) {
                return Some(before);
            }
            (before, id) = (id, self.work[id].next);
        }
        None
    }

    /// Whether queued work may begin.
    #[inline]
    fn able(&self, index: u32, id: Id) -> bool {
        let (unit, work) = (&self.units[index as usize], &self.work[id]);
        match work.step {
            Step::Erase => {
                let (plane, block) = (work.target.plane, work.target.block);
                let reads = unit.queues[..=Class::CleanRead as usize].iter();
                !reads.flat_map(|queue| queue.iter(&self.work)).any(|other| {
                    let place = self.work[other].source;
                    place.plane == plane && place.block == block
                })
            }
            Step::Read if !work.copy_back => true,
            _ if work.needs == 0 => true,
            _ => {
                let (plane, serial) = (work.target.plane, work.needs);
                unit.condemned.iter().all(|item| item.serial != serial || item.plane != plane)
            }
        }
    }

    /// Takes work out of its queues for one command: the one behind `before`, and pages at the same
    /// place in other planes of its die.
    #[inline]
    fn gather(&mut self, index: u32, class: Class, mate: Option<Class>, before: Id) -> Queue {
        let mut batch = Queue::default();
        let id = self.take(index, class, before);
        batch.push(&mut self.work, id);
        let planes = self.params.shape.planes_per_die;
        if !self.params.schedule.multi_plane || planes == 1 || self.work[id].copy_back {
            return batch;
        }
        let place = self.work[id].place();
        let first = self.sites[place.plane as usize].die * planes;
        let mut taken = 1_u32 << (place.plane - first);
        let ranked = matches!(class, Class::HostRead | Class::HostWrite);
        let only =
            Some(self.work[id].priority).filter(|_| ranked && !self.params.priorities.is_empty());
        for (class, only) in [(Some(class), only), (mate, None)] {
            let Some(class) = class else { continue };
            let mut left: u32 = (0..planes)
                .filter(|plane| taken & 1 << plane == 0)
                .map(|plane| self.plane_load[(first + plane) as usize][class as usize])
                .sum();
            let mut before = NIL;
            let mut id = self.units[index as usize].queues[class as usize].head();
            while id != NIL && left > 0 && taken.count_ones() < planes {
                let (other, next) = (self.work[id].place(), self.work[id].next);
                let plane = other.plane.wrapping_sub(first);
                if plane < planes && taken & 1 << plane == 0 {
                    left -= 1;
                    let level = (other.page == place.page || class == Class::Erase)
                        && only.is_none_or(|only| self.work[id].priority == only);
                    if level && !self.work[id].copy_back && self.able(index, id) {
                        self.take(index, class, before);
                        batch.push(&mut self.work, id);
                        taken |= 1 << plane;
                        id = next;
                        continue;
                    }
                }
                (before, id) = (id, next);
            }
        }
        debug_assert!(batch.len() <= PLANES_MOST);
        batch
    }

    /// Takes the one behind `before` out of a queue and accounts for its wait.
    #[inline(always)]
    fn take(&mut self, index: u32, class: Class, before: Id) -> Id {
        let now = self.now;
        let unit = &mut self.units[index as usize];
        let id = unit.queues[class as usize].take_behind(&mut self.work, before);
        unit.queued -= 1;
        let work = &mut self.work[id];
        let worked = unit.worked_ns(now) - work.worked_before;
        let cleaned = unit.cleaned_ns(now) - work.cleaned_before;
        let waited = now - work.mark;
        work.add(Part::DieWait, worked);
        work.add(Part::CleanWait, cleaned);
        work.add(Part::Channel, waited - worked - cleaned);
        work.mark = now;
        self.plane_load[work.place().plane as usize][class as usize] -= 1;
        self.waits[class as usize].leave(now, waited);
        id
    }

    /// Begins a command.
    fn begin(&mut self, index: u32, class: Class, batch: Queue) {
        if class.reads() {
            self.begin_read(index, batch);
        } else if class == Class::Erase {
            self.begin_erase(index, batch);
        } else {
            self.begin_program(index, batch);
        }
    }

    #[inline]
    fn begin_read(&mut self, index: u32, batch: Queue) {
        if self.contents.is_some() {
            let sensed: Vec<Id> = batch.iter(&self.work).collect();
            sensed.into_iter().for_each(|id| self.note_sensed(id));
        }
        let now = self.now;
        let command = self.params.bus.read_ns(batch.len());
        let cell = &self.params.cell;
        let (mut id, mut sense, mut cleans) = (batch.head(), 0, true);
        while id != NIL {
            let work = &self.work[id];
            sense = sense.max(cell.read_ns[cell.level(work.source.page)]);
            cleans &= work.cleans();
            id = work.next;
        }
        sense += self.params.bus.ready_ns;
        id = batch.head();
        while id != NIL {
            let work = &mut self.work[id];
            work.add(Part::Channel, command);
            work.add(Part::Flash, sense);
            work.mark = now + command + sense;
            let counter = match work.purpose {
                Purpose::HostRead => &mut self.counters.host_reads,
                Purpose::HostWrite => &mut self.counters.update_reads,
                Purpose::MapRead | Purpose::MapWrite => &mut self.counters.map_reads,
                _ => &mut self.counters.move_reads,
            };
            *counter += 1;
            id = work.next;
        }
        self.counters.multi_plane_reads += u64::from(batch.len() > 1);
        let unit = &mut self.units[index as usize];
        unit.active = batch;
        unit.begin(Stage::Sensing, cleans, now);
        self.channels[unit.channel as usize].take(now, command);
        self.events.push(now + command + sense, What::Sensed, index);
    }

    fn begin_program(&mut self, index: u32, batch: Queue) {
        let (now, bus, cell) = (self.now, &self.params.bus, &self.params.cell);
        let mut crossing = bus.program_ns(batch.len());
        let (mut time, mut bytes, mut cleans) = (0, 0, true);
        for id in batch.iter(&self.work) {
            let work = &self.work[id];
            crossing += bus.data_ns(work.program_bytes);
            bytes += u64::from(work.program_bytes);
            time = time.max(cell.program_ns[cell.level(work.target.page)]);
            cleans &= work.cleans();
        }
        self.counters.channel_bytes += bytes;
        self.counters.multi_plane_programs += u64::from(batch.len() > 1);
        self.begin_work(index, batch, Stage::Programming, cleans, (crossing, time));
        self.channels[self.units[index as usize].channel as usize].take(now, crossing);
    }

    fn begin_erase(&mut self, index: u32, batch: Queue) {
        let crossing = self.params.bus.erase_ns(batch.len());
        let time = self.params.cell.erase_ns;
        self.counters.multi_plane_erases += u64::from(batch.len() > 1);
        self.begin_work(index, batch, Stage::Erasing, true, (crossing, time));
        self.channels[self.units[index as usize].channel as usize].take(self.now, crossing);
    }

    /// A unit takes a command for some time on the channel and then works for some time.
    pub(super) fn begin_work(
        &mut self,
        index: u32,
        batch: Queue,
        stage: Stage,
        cleans: bool,
        (crossing, time): (u64, u64),
    ) {
        let end = self.now + crossing + time;
        let mut id = batch.head();
        while id != NIL {
            let work = &mut self.work[id];
            work.add(Part::Channel, crossing);
            work.add(Part::Flash, time);
            work.mark = end;
            id = work.next;
        }
        let unit = &mut self.units[index as usize];
        unit.active = batch;
        unit.halts = 0;
        unit.ends_at = end;
        unit.begin(stage, cleans, self.now);
        self.events.push(end, What::Worked, index);
    }
}
