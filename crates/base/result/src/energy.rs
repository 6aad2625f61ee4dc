//! Energy that devices spent.
//!
//! For: `energy` of a device and of a whole machine. Must never know: how a device spends it.
//! Units: joules, watts.

use crate::Entries;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Energy as a power, and per unit of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EnergyRates {
    /// Energy of the whole replay, in joules.
    pub joules: f64,
    /// Mean power, in watts; null for a replay of no length.
    pub watts: Option<f64>,
    /// Joules per command of a device, or per request of all tenants; null without any.
    pub joules_per_request: Option<f64>,
    /// Joules per gibibyte read and written; null without any.
    pub joules_per_gib: Option<f64>,
}

/// Energy of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceEnergy {
    /// The sums.
    #[serde(flatten)]
    pub rates: EnergyRates,
    /// Joules by what they were spent on.
    pub parts: Entries<f64>,
}

/// Energy of all devices whose power is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TotalEnergy {
    /// The sums.
    #[serde(flatten)]
    pub rates: EnergyRates,
    /// Devices whose power is not known.
    pub unknown_devices: usize,
}
