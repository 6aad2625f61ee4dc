//! Device models: what a request costs in simulated time.
//!
//! For: the seam [`Device`] and the models behind it. Must never know: caches, policies, tenants'
//! goals, files, clocks. Units: bytes, nanoseconds of simulated time (integers; no wall clock).

pub mod disk;
pub mod energy;
pub mod fixed;
pub mod models;
pub mod null;
pub mod ram;
pub mod report;
pub mod seam;
pub mod servers;
pub mod spent;
pub mod ssd;
pub mod store;
pub mod striped;
pub mod usage;

pub use energy::Energy;
pub use models::{DeviceModel, DeviceModelError, MODELS, model};
pub use report::{DeviceUse, DeviceWork, Report};
pub use seam::{AnyDevice, Command, Completion, Device, Exposed, Spent, SpentPart};
pub use striped::{ArraySettings, Striped};
pub use usage::Use;
