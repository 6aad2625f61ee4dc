//! Device models: what a request costs in simulated time.
//!
//! Every model stands behind [`Device`]: commands in, completions out, time moved from outside.
//! Units: bytes, nanoseconds of simulated time (integers; no wall clock).

pub mod device;
pub mod disk;
pub mod models;
pub mod report;
pub mod served;
pub mod ssd;
pub mod store;
pub mod striped;

pub use device::{AnyDevice, Command, Completion, Device, Exposed, Spent, SpentPart};
pub use models::{DeviceModel, DeviceModelError, MODELS, model};
pub use report::{DeviceUse, DeviceWork, Energy, Report, Use};
pub use striped::{ArraySettings, Striped};
