//! What happens when something that was begun ends.
//!
//! For: sensed pages and their way over the channel, ends of programs and erases, halting and going
//! on. Must never know: whose turn is next (it makes units ready and touches channels). Units:
//! nanoseconds.

use super::Backend;
use super::events::What;
use super::transaction::{Id, NIL, Purpose, Queue, Step};
use super::unit::{Class, Halted, Stage};
use crate::spent::Part;

impl Backend {
    /// One event takes place.
    #[inline]
    pub(super) fn happen(&mut self, what: What, index: u32) {
        match what {
            What::Channel => {
                self.channels[index as usize].waking = false;
                self.touch(index);
            }
            What::Out => self.crossed(index),
            What::Sensed => self.sensed(index),
            What::Worked => self.worked(index),
            What::Halted => self.go_idle(index),
            What::Decided => self.decided(),
        }
    }

    /// A unit has sensed: its pages wait for the channel.
    #[inline]
    fn sensed(&mut self, index: u32) {
        let unit = &mut self.units[index as usize];
        let mut batch = std::mem::take(&mut unit.active);
        let (channel, cleans) = (unit.channel, unit.cleans());
        unit.leaving = batch.len();
        unit.begin(Stage::DataOut, cleans, self.now);
        let (lane, id) = (&self.channels[channel as usize], batch.head());
        let free = lane.crossing == NIL && lane.waiting == 0 && lane.busy_until <= self.now;
        if free && batch.len() == 1 && !self.work[id].copy_back {
            return self.cross(channel, id);
        }
        self.channels[channel as usize].waiting += batch.len();
        while let Some(id) = batch.pop(&mut self.work) {
            let work = &self.work[id];
            let out = match (work.copy_back, work.purpose) {
                (true, _) => 0,
                (_, Purpose::MapRead | Purpose::MapWrite) => 1,
                (_, Purpose::Move) => 3,
                _ => 2,
            };
            self.channels[channel as usize].outs[out].push(&mut self.work, id);
        }
        self.touch(channel);
    }

    /// Begins to move data that waits for a free channel; false if none does.
    #[inline]
    pub(super) fn send_out(&mut self, index: u32) -> bool {
        let channel = &mut self.channels[index as usize];
        if channel.waiting == 0 {
            return false;
        }
        let Some(out) = channel.outs.iter().position(|out| !out.is_empty()) else { return false };
        let Some(id) = channel.outs[out].pop(&mut self.work) else { return false };
        channel.waiting -= 1;
        if self.work[id].copy_back {
            self.copy_back(index, id);
        } else {
            self.cross(index, id);
        }
        true
    }

    /// Data of a read begins to cross a free channel.
    #[inline]
    fn cross(&mut self, index: u32, id: Id) {
        let now = self.now;
        let work = &mut self.work[id];
        let crossing = self.params.bus.data_ns(work.read_bytes);
        work.account(Part::Channel, now);
        work.account(Part::Channel, now + crossing);
        self.counters.channel_bytes += u64::from(work.read_bytes);
        let channel = &mut self.channels[index as usize];
        channel.take(now, crossing);
        channel.crossing = id;
        self.events.push(now + crossing, What::Out, index);
    }

    /// Programs a sensed page within its plane.
    fn copy_back(&mut self, channel: u32, id: Id) {
        let work = &mut self.work[id];
        work.account(Part::Channel, self.now);
        work.step = Step::Program;
        let crossing = self.params.bus.program_ns(1);
        let cell = &self.params.cell;
        let time = cell.program_ns[cell.level(work.target.page)];
        let index = self.sites[work.target.plane as usize].unit;
        let mut batch = Queue::default();
        batch.push(&mut self.work, id);
        self.begin_work(index, batch, Stage::Programming, true, (crossing, time));
        self.channels[channel as usize].take(self.now, crossing);
        self.counters.copy_backs += 1;
    }

    /// Data has crossed a channel.
    #[inline]
    fn crossed(&mut self, index: u32) {
        let channel = &mut self.channels[index as usize];
        let id = std::mem::replace(&mut channel.crossing, NIL);
        self.touch(index);
        let unit = self.sites[self.work[id].source.plane as usize].unit;
        self.read_done(id);
        let item = &mut self.units[unit as usize];
        item.leaving -= 1;
        if item.leaving == 0 {
            self.go_idle(unit);
        }
    }

    /// A unit has programmed or erased, unless it was halted meanwhile.
    fn worked(&mut self, index: u32) {
        let unit = &mut self.units[index as usize];
        let works = matches!(unit.stage, Stage::Programming | Stage::Erasing);
        if !works || unit.ends_at != self.now {
            return;
        }
        let mut batch = std::mem::take(&mut unit.active);
        while let Some(id) = batch.pop(&mut self.work) {
            // Time for which it was halted for others.
            self.work[id].account(Part::DieWait, self.now);
            match self.work[id].step {
                Step::Erase => self.erased(id),
                _ => self.programmed(id),
            }
        }
        self.go_idle(index);
    }

    fn programmed(&mut self, id: Id) {
        if self.contents.is_some() {
            self.note_programmed(id);
        }
        let work = self.work[id];
        let key = self.key(work.target);
        if self.writing.get(&key) == Some(&id) {
            self.writing.remove(&key);
        }
        let counter = match work.purpose {
            Purpose::HostWrite => &mut self.counters.host_programs,
            Purpose::MapWrite => &mut self.counters.map_programs,
            Purpose::Move => &mut self.counters.move_programs,
            _ => &mut self.counters.meta_programs,
        };
        *counter += 1;
        for job in [work.job, work.holds] {
            if job != NIL {
                self.release(job);
            }
        }
        match work.purpose {
            Purpose::HostWrite => self.finish(id),
            _ => self.work.remove(id),
        }
    }

    /// A unit has nothing in hand: it goes on with what was halted, or can take a command.
    #[inline]
    pub(super) fn go_idle(&mut self, index: u32) {
        let unit = &mut self.units[index as usize];
        unit.rest(self.now);
        let pressing = [Class::MapRead, Class::HostRead];
        if unit.halted.is_some() && pressing.iter().all(|c| unit.queues[*c as usize].is_empty()) {
            self.resume(index);
        } else if unit.queued > 0 {
            self.make_ready(index);
        }
    }

    /// Whether a unit works on what a read may halt, and it is worth it.
    #[inline]
    pub(super) fn can_halt(&self, index: u32) -> bool {
        let unit = &self.units[index as usize];
        let (schedule, cell) = (&self.params.schedule, &self.params.cell);
        let (allowed, cost) = match unit.stage {
            Stage::Programming => (schedule.suspend_program, cell.suspend_program_ns),
            Stage::Erasing => (schedule.suspend_erase, cell.suspend_erase_ns),
            _ => return false,
        };
        allowed
            && unit.halted.is_none()
            && unit.halts < schedule.suspends_most
            && unit.ends_at.saturating_sub(self.now) > cost
    }

    /// Halts what a unit works on.
    pub(super) fn halt(&mut self, index: u32) {
        let now = self.now;
        let command = self.params.bus.suspend_command_ns;
        let unit = &mut self.units[index as usize];
        let (stage, cleans) = (unit.stage, unit.cleans());
        let cost = match stage {
            Stage::Erasing => self.params.cell.suspend_erase_ns,
            _ => self.params.cell.suspend_program_ns,
        };
        unit.halted = Some(Halted {
            active: std::mem::take(&mut unit.active),
            left_ns: unit.ends_at - now,
            stage,
            times: unit.halts + 1,
            cleans,
        });
        unit.begin(Stage::Halting, cleans, now);
        self.channels[unit.channel as usize].take(now, command);
        self.events.push(now + command + cost, What::Halted, index);
        self.counters.suspends += 1;
    }

    /// Goes on with what was halted, if something was.
    pub(super) fn resume(&mut self, index: u32) {
        let unit = &mut self.units[index as usize];
        if unit.stage != Stage::Idle {
            return;
        }
        let Some(halted) = unit.halted.take() else { return };
        unit.active = halted.active;
        unit.halts = halted.times;
        unit.ends_at = self.now + halted.left_ns;
        unit.begin(halted.stage, halted.cleans, self.now);
        self.events.push(unit.ends_at, What::Worked, index);
    }
}
