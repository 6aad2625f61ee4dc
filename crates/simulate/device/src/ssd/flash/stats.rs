//! What a back-end has done so far: counts, busy times, waits and wear at one moment.
//!
//! The difference of two moments is what happened between them. Units: pages, commands,
//! nanoseconds, unless a name says bytes.

use super::scheduler::{CLASSES, QueueClass, STAGES, UnitStage};
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
/// Counts of flash operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages read.
    pub reads: ReadCounts,
    /// Pages programmed.
    pub programs: ProgramCounts,
    /// Commands of more than one plane.
    pub multi_plane: MultiPlaneCounts,
    /// Entries of the map.
    pub map: MapCounts,
    /// Steps of a model that the separation took.
    pub predictions: PredictionCounts,
    /// Blocks erased.
    pub erases: u64,
    /// Moves that stayed in their plane.
    pub copy_backs: u64,
    /// Programs and erases halted.
    pub suspends: u64,
    /// Bytes of pages that crossed a channel.
    pub channel_bytes: u64,
    /// Blocks emptied to level wear.
    pub wear_moves: u64,
    /// Pages trimmed.
    pub trims: u64,
    /// Events that took place.
    pub events: u64,
}

/// Pages read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// For the host.
    pub host: u64,
    /// Because the host wrote a part of them.
    pub update: u64,
    /// Of the mapping table.
    pub map: u64,
    /// To be moved.
    pub moves: u64,
    /// Never written before; if they were given a place then, `host` counts them as well.
    pub unwritten: u64,
    /// Still in the controller on their way to flash, and not read from it.
    pub buffered: u64,
}

impl ReadCounts {
    /// Pages that flash read.
    pub fn from_flash(&self) -> u64 {
        self.host + self.update + self.map + self.moves
    }
}

/// Pages programmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramCounts {
    /// For the host.
    pub host: u64,
    /// Of the mapping table.
    pub map: u64,
    /// That were moved.
    pub moves: u64,
    /// Of the separation's own.
    pub meta: u64,
}

impl ProgramCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.host + self.map + self.moves + self.meta
    }
}

/// Commands of more than one plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultiPlaneCounts {
    /// That read.
    pub reads: u64,
    /// That program.
    pub programs: u64,
    /// That erase.
    pub erases: u64,
}

/// Entries of the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounts {
    /// Found in memory.
    pub hits: u64,
    /// Not found there.
    pub misses: u64,
    /// Pages of the table written because a changed entry had to leave.
    pub evictions: u64,
}

/// Steps of a model that the separation took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictionCounts {
    /// All of them.
    pub taken: u64,
    /// Those that the host's page waited for.
    pub awaited: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_answered_by_the_controller_are_not_read_from_flash() {
        let reads =
            ReadCounts { host: 1, update: 2, map: 4, moves: 8, unwritten: 16, buffered: 32 };
        assert_eq!(reads.from_flash(), 15);
        assert_eq!(ProgramCounts { host: 1, map: 2, moves: 4, meta: 8 }.total(), 15);
    }
}
