//! One device of a machine.
//!
//! For: `timing.devices` of a case. Must never know: any device model. Units: bytes, commands.

use crate::energy::DeviceEnergy;
use crate::flash::Flash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How one device was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Its part in the machine, numbered from 1 within an array.
    pub name: String,
    /// Name of its model; null where the stack has none.
    pub model: Option<String>,
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Share of the time with a command inside, 0 to 1.
    pub busy: f64,
    /// Mean number of commands inside.
    pub mean_inside: f64,
    /// Highest number of commands inside.
    pub max_inside: u64,
    /// Energy; absent where no power is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<DeviceEnergy>,
    /// Its flash; absent for a device without flash, and for a drive that is the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flash: Option<Flash>,
}
