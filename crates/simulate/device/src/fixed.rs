//! A device of fixed latency: so long for a read, so long for a write, so many at once.
//!
//! For: measured devices of which no more is known, and queues of theory. Must never know: caches.
//! Units: bytes, nanoseconds.

use crate::parameters;
use crate::seam::{Command, Completion, Device, Part};
use crate::servers::Servers;
use cachewright_types::{Bytes, Nanos, Op, SettingError};

parameters! {
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
    }
}

/// A device of fixed latency.
#[derive(Clone, Debug)]
pub struct FixedLatency {
    settings: FixedSettings,
    servers: Servers,
}

impl FixedLatency {
    /// An idle device. Errors: none today.
    pub fn new(settings: &FixedSettings) -> Result<FixedLatency, SettingError> {
        let servers = Servers::new(settings.parallelism, Part::Transfer);
        Ok(FixedLatency { settings: settings.clone(), servers })
    }
}

impl Device for FixedLatency {
    fn capacity(&self) -> Bytes {
        self.settings.capacity
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        let service_ns = match command.op {
            Op::Read => self.settings.read.0,
            Op::Write => self.settings.write.0,
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
