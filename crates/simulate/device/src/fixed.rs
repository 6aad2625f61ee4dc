//! A device of fixed latency: so long for a read, so long for a write, so many at once.
//!
//! For: measured devices of which no more is known, and queues of theory. Must never know: caches.
//! Units: bytes, nanoseconds.

use crate::energy::Energy;
use crate::seam::{Command, SpentPart};
use crate::servers::{Served, ServedWork, Service};
use cachewright_types::{Bytes, Nanos, Op, declare};

declare! {
    /// A device of fixed latency; the defaults are an SSD on SATA with one queue of 32.
    pub struct FixedSettings {
        "device" {
            /// bytes that can be addressed
            capacity: Bytes = Bytes(1_099_511_627_776), "bytes", 1 ..= 1e15;
                "as large as wanted";
            /// time of a read
            read: Nanos = Nanos(100_000), "time", 0 ..= 1e12; "typical of flash";
            /// time of a write
            write: Nanos = Nanos(60_000), "time", 0 ..= 1e12;
                "typical of flash behind a buffer";
            /// commands served at once
            parallelism: u32 = 32, "commands", 1 ..= 65_536; "native command queueing of SATA";
        }
        "energy" {
            /// power drawn all the time; 0 is not given
            idle_power: f64 = 0.0, "W", 0.0 ..= 100_000.0; "not given";
            /// energy of a read, beside that; 0 is not given
            read_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000_000.0; "not given";
            /// energy of a write, beside that; 0 is not given
            write_energy: f64 = 0.0, "uJ", 0.0 ..= 1_000_000_000.0; "not given";
        }
    }
}

/// A device of fixed latency.
pub type FixedLatency = Served<FixedSettings>;

impl Service for FixedSettings {
    const PART: SpentPart = SpentPart::Transfer;

    fn servers(&self) -> u32 {
        self.parallelism
    }

    fn capacity(&self) -> Bytes {
        self.capacity
    }

    fn service_ns(&self, command: &Command) -> u64 {
        if command.op == Op::Read { self.read.0 } else { self.write.0 }
    }

    fn energy(&self, done: &ServedWork, elapsed_ns: u64) -> Energy {
        let mut energy = Energy::default();
        energy.draw("idle", self.idle_power, elapsed_ns);
        energy.spend("reads", self.read_energy * 1e-6, done.reads);
        energy.spend("writes", self.write_energy * 1e-6, done.writes);
        energy
    }
}
