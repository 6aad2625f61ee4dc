//! A unit of flash, which does one thing at a time: a chip, or a die where dies overlap.
//!
//! For: what it works on, halts and goes on with, and its time by kind. Must never know: why work
//! is queued, which units share its channel. Units: nanoseconds. Invariant: a unit is in one
//! [`UnitStage`]; its busy time by kind never exceeds the time that has passed.

use super::class::{QueueClass, STAGES, UnitStage};
use super::ids::{ChannelId, PlaneId};
use super::params::{Cell, FlashSchedule};
use super::queues::UnitQueues;
use super::work::WorkQueue;

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
    pub fn work_until(
        &mut self,
        ends_at: u64,
        batch: WorkQueue,
        (stage, cleans): (UnitStage, bool),
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
        self.work_until(now + halted.left_ns, halted.batch, (halted.stage, halted.cleans), now);
        self.halts = halted.times;
        Some(self.ends_at)
    }

    /// Whether a read that a host waits for is queued.
    #[inline]
    pub fn is_pressed(&self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_split_by_kind() {
        let mut unit = Unit::new(ChannelId(0), 0);
        unit.begin(UnitStage::Sensing, false, 10);
        unit.begin(UnitStage::Erasing, true, 30);
        assert_eq!((unit.worked_ns(40), unit.cleaned_ns(40)), (20, 10));
        unit.rest(50);
        assert_eq!((unit.worked_ns(90), unit.cleaned_ns(90)), (20, 20));
    }
}
