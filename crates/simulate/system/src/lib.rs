//! Machines: a cache driven by a workload.
//!
//! For: recording a workload as block accesses, replaying it through many caches at once (open
//! loop), closing the loop measure -> partition -> cache, and serving it in simulated time
//! ([`event_loop`]): with constant times, on devices ([`machines`]), by a drive with a data cache.
//! Must never know: stack files, reports. Units: nanoseconds, blocks.

mod arrivals;
mod block_names;
pub mod curve_lane;
pub mod event_loop;
mod extents;
pub mod futures;
pub mod lane;
pub mod machines;
pub mod observer;
pub mod profile;
mod record_error;
mod recorded_columns;
pub mod recorder;
pub mod recording;
pub mod replay;
mod request_blocks;
pub mod request_info;
pub mod series;
mod signal_feed;
pub mod ssd;
mod time_search;
mod volumes;

pub use cachewright_control::{ChurnTotals, Control, SignalMeter, SignalNeeds, Signals, Standing};
pub use curve_lane::{CurveLane, Whose};
pub use futures::FutureKind;
pub use lane::{EngineLane, Lane, LaneResult};
pub use observer::CacheObserver;
pub use recorder::{BlockKind, Recorder};
pub use recording::{RecordError, Recording, TenantTotals};
pub use replay::{Cut, Cuts, interval_signals, replay};
pub use series::Row;
