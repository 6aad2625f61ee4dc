//! Signals that partitioners read besides counts of accesses and hits.
//!
//! For: meters that cost O(1) per access, and the signals of an interval. Must never know: caches,
//! devices, models, when a step or an interval ends. Units are in the names.

pub mod interval;
pub mod prices;
pub mod responses;
pub mod reuse;
pub mod step;
pub mod steps;

pub use interval::{SignalSet, Signals, TenantSignals};
pub use prices::{Price, Prices};
pub use responses::ResponseClasses;
pub use reuse::{BINS, ReuseMeter};
pub use step::{FEATURES, StepCounts};
pub use steps::StepMeter;
