//! Messages between host and drive.
//!
//! For: what each wire carries. Must never know: times, queues.

use super::port::Slot;

/// The wire towards the drive; on SATA the only one.
pub const DOWN: usize = 0;
/// The wire towards the host.
pub const UP: usize = 1;

/// What arrives at an end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostArrival {
    /// At the drive: a command was announced.
    Doorbell,
    /// At the host: the drive asks for the entry.
    EntryRequest,
    /// At the drive: the entry.
    Entry,
    /// At the host: the drive asks for the data of a write.
    DataRequest,
    /// At the drive: that data.
    Data,
    /// At the host: the command is done.
    Completion,
    /// In the drive: the controller has worked on the command.
    Worked,
}

/// What arrives, and for which command.
pub type Message = (HostArrival, Slot);
