//! Memory: channels of a bandwidth, each access after a latency.
//!
//! For: a buffer cache's DRAM. Must never know: caches. Units: bytes, nanoseconds. A command uses
//! one channel for latency and transfer; commands queue for the channels.

use crate::energy::Energy;
use crate::seam::{Command, SpentPart};
use crate::servers::{Served, ServedWork, Service};
use cachewright_types::{Bytes, Nanos, declare};

declare! {
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
        "energy" {
            /// power drawn all the time; 0 is not given
            idle_power: f64 = 0.0, "W", 0.0 ..= 100_000.0; "not given";
            /// energy of moving data, beside that; 0 is not given
            transfer_energy: f64 = 0.0, "pJ/bit", 0.0 ..= 100_000.0; "not given";
        }
    }
}

/// Memory.
pub type Ram = Served<RamSettings>;

impl Service for RamSettings {
    const PART: SpentPart = SpentPart::Dram;

    fn servers(&self) -> u32 {
        self.channels
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn service_ns(&self, command: &Command) -> u64 {
        let transfer_ns = command.length.0 as f64 * 1e3 / self.channel_mb_per_s;
        self.latency.0 + transfer_ns.round() as u64
    }

    fn energy(&self, done: &ServedWork, elapsed_ns: u64) -> Energy {
        let mut energy = Energy::default();
        energy.draw("idle", self.idle_power, elapsed_ns);
        energy.spend("transfer", self.transfer_energy * 1e-12, done.bytes * 8);
        energy
    }
}
