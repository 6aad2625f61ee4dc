//! Counts of flash operations, grouped by what they count.
//!
//! For: what a back-end has done, and its energy. Must never know: the back-end's state. Units:
//! pages and commands, unless a name says bytes.

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
