//! The names that commands and tenants have at the host interface.
//!
//! For: slots of commands, ports of tenants. Must never know: queues, messages. Units: commands.

/// Commands that native command queuing can tell apart.
pub const SATA_SLOTS: u32 = 32;
/// A command inside the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// One tenant's access to the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Commands it may have under way.
    pub queue_depth: u32,
    /// Bursts it is served in one round of weighted arbitration; at least 1.
    pub weight: u32,
}
