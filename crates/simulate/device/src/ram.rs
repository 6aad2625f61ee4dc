//! Memory: channels of a bandwidth, each access after a latency.
//!
//! For: a buffer cache's DRAM. Must never know: caches. Units: bytes, nanoseconds. A command uses
//! one channel for latency and transfer; commands queue for the channels.

use crate::parameters;
use crate::seam::{Command, Completion, Device, Part};
use crate::servers::Servers;
use cachewright_types::{Bytes, Nanos, Op, SettingError};

parameters! {
    /// Memory; the defaults are one channel of DDR4-3200.
    pub struct RamSettings {
        "memory" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
            /// time before the first byte of a command
            latency: Nanos = Nanos(100), "time", 0 ..= 1_000_000_000; "typical of DDR4";
            /// rate of one channel
            channel_mb_per_s: f64 = 25_600.0, "MB/s", 0.001 ..= 10_000_000.0;
                "JEDEC JESD79-4: 3,200 MT/s of 8 bytes";
            /// channels
            channels: u32 = 1, "channels", 1 ..= 1024; "one";
        }
    }
}

/// Memory.
#[derive(Clone, Debug)]
pub struct Ram {
    settings: RamSettings,
    servers: Servers,
}

impl Ram {
    /// Idle memory. Errors: none today.
    pub fn new(settings: &RamSettings) -> Result<Ram, SettingError> {
        let servers = Servers::new(settings.channels, Part::Dram);
        Ok(Ram { settings: settings.clone(), servers })
    }
}

impl Device for Ram {
    fn capacity(&self) -> Bytes {
        self.settings.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let transfer_ns = command.length.0 as f64 * 1e3 / self.settings.channel_mb_per_s;
        let service_ns = match command.op {
            Op::Read | Op::Write => self.settings.latency.0 + transfer_ns.round() as u64,
            Op::Trim | Op::Flush => 0,
        };
        self.servers.submit(now, &command, service_ns);
    }

    fn next_due(&self) -> Option<Nanos> {
        self.servers.next_due()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.servers.advance(now, done);
    }

    fn outstanding(&self) -> usize {
        self.servers.outstanding()
    }

    fn audit(&self) -> Result<(), String> {
        self.servers.audit()
    }
}
