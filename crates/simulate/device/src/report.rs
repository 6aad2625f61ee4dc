//! What a device did: the answer of [`crate::Device::report`], how it was used, and its energy.
//!
//! Units: commands, bytes, nanoseconds, joules, watts. A power of 0 is one that is not given: its
//! part is left out, and a device without any power or energy has none.

use crate::disk::HeadTime;
use crate::ssd::flash::FlashStats;
use crate::store::StoreStats;
use cachewright_types::measure::Population;
use cachewright_types::{Bytes, Nanos, Op};

/// What a device did from time 0 to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Energy of the parts whose rates are given. What is under way counts whole; the energy of
    /// members is theirs.
    pub energy: Energy,
    /// What it did beside serving commands.
    pub work: DeviceWork,
    /// The devices that it passes commands on to; empty for one that serves them itself.
    pub members: Vec<DeviceUse>,
}

/// What a device did beside serving commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum DeviceWork {
    /// Nothing that is counted.
    #[default]
    Nothing,
    /// The time that requests keep the heads of a disk.
    Disk(HeadTime),
    /// Work on flash of its own.
    Flash(Box<FlashStats>),
    /// The work of a log-structured store.
    Store(Box<StoreStats>),
}

impl Report {
    /// The work on flash; nothing for a device without flash of its own.
    pub fn flash(&self) -> Option<&FlashStats> {
        match &self.work {
            DeviceWork::Flash(flash) => Some(flash),
            DeviceWork::Nothing | DeviceWork::Disk(_) | DeviceWork::Store(_) => None,
        }
    }

    /// The work of a log-structured store; nothing for other devices.
    pub fn store(&self) -> Option<&StoreStats> {
        match &self.work {
            DeviceWork::Store(store) => Some(store),
            DeviceWork::Nothing | DeviceWork::Disk(_) | DeviceWork::Flash(_) => None,
        }
    }

    /// Disk-head time; nothing for a device without heads.
    pub fn head_time(&self) -> Option<&HeadTime> {
        match &self.work {
            DeviceWork::Disk(time) => Some(time),
            DeviceWork::Nothing | DeviceWork::Flash(_) | DeviceWork::Store(_) => None,
        }
    }
}

/// A device as the one that sends it commands saw it, and as it saw itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceUse {
    /// Commands to it, as one device.
    pub used: Use,
    /// What it did.
    pub report: Report,
}

impl DeviceUse {
    /// How a device was used, with its own report.
    pub fn new(used: &Use, report: Report) -> DeviceUse {
        DeviceUse { used: *used, report }
    }

    /// It, or the devices behind it that serve commands themselves.
    pub fn leaves(&self) -> Vec<&DeviceUse> {
        if self.report.members.is_empty() {
            return vec![self];
        }
        self.report.members.iter().flat_map(DeviceUse::leaves).collect()
    }

    /// The use of it and of all devices behind it.
    pub fn all(&self) -> Vec<&Use> {
        let behind = self.report.members.iter().flat_map(DeviceUse::all);
        std::iter::once(&self.used).chain(behind).collect()
    }
}

/// How a device was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Commands by kind, indexed by [`Op`].
    pub commands: [u64; 4],
    /// Bytes by kind, indexed by [`Op`].
    pub bytes: [u64; 4],
    /// Commands inside over time.
    pub population: Population,
}

impl Use {
    /// A command enters.
    pub fn submitted(&mut self, now: Nanos, op: Op, length: Bytes) {
        self.commands[op as usize] += 1;
        self.bytes[op as usize] += length.0;
        self.population.enter(now.0);
    }

    /// A command is done.
    pub fn completed(&mut self, now: Nanos) {
        self.population.leave(now.0);
    }
}
/// Joules by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Energy {
    parts: Vec<(&'static str, f64)>,
}

impl Energy {
    /// Adds a part that draws so many watts for so long.
    pub fn draw(&mut self, part: &'static str, watts: f64, time_ns: u64) {
        self.add(part, watts, time_ns as f64 / 1e9);
    }

    /// Adds a part made of operations of so many joules each.
    pub fn spend(&mut self, part: &'static str, joules_each: f64, operations: u64) {
        self.add(part, joules_each, operations as f64);
    }

    fn add(&mut self, part: &'static str, rate: f64, amount: f64) {
        if rate > 0.0 {
            self.parts.push((part, rate * amount));
        }
    }

    /// The parts whose rates are given, in the order they were added.
    pub fn parts(&self) -> &[(&'static str, f64)] {
        &self.parts
    }

    /// The sum of all parts; nothing where no rate is given.
    pub fn joules(&self) -> Option<f64> {
        let sum = self.parts.iter().map(|(_, joules)| joules).sum();
        (!self.parts.is_empty()).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_without_a_rate_are_left_out() {
        let mut energy = Energy::default();
        energy.draw("idle", 0.0, 1_000_000_000);
        assert_eq!((energy.parts(), energy.joules()), (&[][..], None));
        energy.draw("idle", 7.0, 1_500_000_000);
        energy.spend("reads", 50e-6, 0);
        energy.spend("writes", 0.25, 3);
        assert_eq!(energy.parts(), [("idle", 10.5), ("reads", 0.0), ("writes", 0.75)]);
        assert_eq!(energy.joules(), Some(11.25));
    }
}
