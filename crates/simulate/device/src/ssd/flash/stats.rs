//! What a back-end has done so far.
//!
//! For: counters, busy times, waits and wear at one moment; the difference of two moments is what
//! happened between them. Must never know: the back-end's state. Units: pages, commands,
//! nanoseconds.

use super::class::{CLASSES, QueueClass, STAGES, UnitStage};
use super::counters::Counters;
use cachewright_ftl::{EraseCounts, FtlError};

/// Waits in one kind of queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Transactions that left it.
    pub left: u64,
    /// Their waiting time.
    pub waited_ns: u64,
    /// Transactions waiting, summed over time (Little's law: over a run that ends empty, the same).
    pub area_ns: u64,
    /// Transactions waiting now.
    pub waiting: u32,
    /// The most that ever were.
    pub max_waiting: u32,
    since_ns: u64,
}

impl Waits {
    /// One more waits.
    #[inline]
    pub fn join(&mut self, now: u64) {
        self.area_ns += u64::from(self.waiting) * (now - self.since_ns);
        self.since_ns = now;
        self.waiting += 1;
        self.max_waiting = self.max_waiting.max(self.waiting);
    }

    /// One that has waited for so long leaves.
    #[inline]
    pub fn leave(&mut self, now: u64, waited_ns: u64) {
        self.area_ns += u64::from(self.waiting) * (now - self.since_ns);
        self.since_ns = now;
        self.waiting -= 1;
        self.left += 1;
        self.waited_ns += waited_ns;
    }
}

/// How long the hardware of a back-end was at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Time each channel was taken.
    pub channel_ns: Vec<u64>,
    /// Time each unit (chip, or die where dies overlap) worked for hosts and the map.
    pub unit_worked_ns: Vec<u64>,
    /// Time each unit cleaned.
    pub unit_cleaned_ns: Vec<u64>,
    /// Time of all units together by [`UnitStage`].
    pub stage_ns: [u64; STAGES],
    /// Time the controller took steps of a model.
    pub controller_ns: u64,
}

/// What a back-end has done up to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlashStats {
    /// Operations.
    pub counters: Counters,
    /// Blocks cleaned.
    pub collections: u64,
    /// Valid pages moved.
    pub moved_pages: u64,
    /// Times at work.
    pub busy: BusyTimes,
    /// Waits by [`QueueClass`].
    pub waits: [Waits; CLASSES],
    /// Erases of blocks.
    pub wear: EraseCounts,
    /// Free blocks.
    pub free_blocks: u64,
    /// Logical pages that hold data.
    pub mapped_pages: u64,
    /// How the device was filled at the start.
    pub preconditioned: &'static str,
    /// Why a write could not be done, if one ever could not (see `Backend::fault`).
    pub fault: Option<FtlError>,
}

impl FlashStats {
    /// Pages programmed per page the host wrote; 1 when it wrote nothing. Pages of the mapping
    /// table count as programmed.
    pub fn write_amplification(&self) -> f64 {
        match self.counters.programs.host {
            0 => 1.0,
            host => self.counters.programs.total() as f64 / host as f64,
        }
    }

    /// Time of all units together in a stage.
    pub fn stage_ns(&self, stage: UnitStage) -> u64 {
        self.busy.stage_ns[stage as usize]
    }

    /// Pages moved per block cleaned; 0 when none was.
    pub fn moved_per_collection(&self) -> f64 {
        if self.collections == 0 { 0.0 } else { self.moved_pages as f64 / self.collections as f64 }
    }

    /// The waits of a class.
    pub fn waits(&self, class: QueueClass) -> &Waits {
        &self.waits[class as usize]
    }
}
