//! What the host sent to each group of channels that a drive shows.
//!
//! For: throughput by channel. Must never know: what the drive makes of it. Units: bytes, commands.
//! A command counts where it begins.

use cachewright_device::Exposed;
use cachewright_types::Op;

/// Commands and bytes of one group of channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse {
    /// What the drive shows.
    pub range: Exposed,
    /// Commands by kind, indexed by [`Op`].
    pub commands: [u64; 4],
    /// Bytes by kind, indexed by [`Op`].
    pub bytes: [u64; 4],
}

/// All groups of a drive, in the order of addresses.
#[derive(Clone, Debug, Default)]
pub struct GroupUses(Vec<GroupUse>);

impl GroupUses {
    /// Nothing sent yet.
    pub fn new(exposed: Vec<Exposed>) -> GroupUses {
        let fresh = |range| GroupUse { range, commands: [0; 4], bytes: [0; 4] };
        GroupUses(exposed.into_iter().map(fresh).collect())
    }

    /// A command is sent.
    pub fn submitted(&mut self, op: Op, offset: u64, length: u64) {
        let index = self.0.partition_point(|group| group.range.bytes.end <= offset);
        if let Some(group) = self.0.get_mut(index) {
            group.commands[op as usize] += 1;
            group.bytes[op as usize] += length;
        }
    }

    /// What was sent.
    pub fn all(&self) -> &[GroupUse] {
        &self.0
    }
}
