//! Machines: a cache driven by a workload.
//!
//! A workload is recorded as block accesses and replayed through many caches at once (open loop),
//! with the loop measure -> partition -> cache closed. Or it is served in simulated time
//! ([`event_loop`]): with constant times, on devices ([`machines`]), by a drive with a data cache
//! ([`ssd`]). Times are nanoseconds.

pub mod continued;
pub mod event_loop;
pub mod futures;
pub mod lane;
pub mod machines;
pub mod profile;
pub mod recorder;
pub mod recording;
pub mod replay;
pub mod series;
pub mod ssd;

pub use cachewright_control::{
    ChurnTotals, Control, SignalMeter, SignalNeeds, Signals, TenantUsage,
};
pub use futures::FutureKind;
pub use lane::{CacheObserver, CurveLane, EngineLane, Lane, LaneResult, Whose};
pub use recorder::{BlockKind, Recorder};
pub use recording::{RecordError, Recording, TenantTotals};
pub use replay::{Cut, Cuts, interval_signals, replay};
pub use series::Row;
