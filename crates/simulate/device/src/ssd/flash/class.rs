//! Queues of a unit, and what a unit can be doing.
//!
//! For: the names of both, which results show. Must never know: units, queues.

use super::work::{FlashWork, WorkPurpose, WorkStep};

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
