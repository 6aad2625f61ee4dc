//! What a device did: the answer of [`crate::Device::report`].
//!
//! For: results that show a device and the devices behind it. Must never know: how a result is
//! written. Units: see [`Use`], [`Energy`] and the statistics of each kind of work.

use crate::energy::Energy;
use crate::ssd::flash::FlashStats;
use crate::store::StoreStats;
use crate::usage::Use;

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
            DeviceWork::Nothing | DeviceWork::Store(_) => None,
        }
    }

    /// The work of a log-structured store; nothing for other devices.
    pub fn store(&self) -> Option<&StoreStats> {
        match &self.work {
            DeviceWork::Store(store) => Some(store),
            DeviceWork::Nothing | DeviceWork::Flash(_) => None,
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
