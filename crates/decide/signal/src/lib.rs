//! Signals: what partitioners are told of tenants besides counts and curves.
//!
//! For: numbers per step or interval that cost O(1) per access to keep. Must never know: caches,
//! devices, models, who reads them, when a step or an interval ends. Units are in the names.

pub mod prices;
pub mod reuse;
pub mod step;
pub mod steps;

pub use prices::{Price, Prices};
pub use reuse::{BINS, ReuseMeter};
pub use step::{FEATURES, Step};
pub use steps::StepMeter;
