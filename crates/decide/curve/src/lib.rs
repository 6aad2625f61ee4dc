//! Miss-ratio curves: misses by cache size.
//!
//! For: exact LRU curves in one pass, SHARDS samples, miniature simulation of any registered
//! policy, curves per tenant and window, and the convex minorants that partitioners divide by. Must
//! never know: files, clocks, threads, the cache engine. Sizes are in blocks, misses are counted
//! accesses. An approximate curve carries a confidence interval and its smallest trusted size; it
//! refuses sizes below.

mod block_index;
pub mod block_name;
pub mod curve;
pub mod error;
pub mod histogram;
pub mod hull;
pub mod mini;
mod mini_sample;
mod resample;
mod sample;
pub mod shards;
pub mod signal;
mod slots;
pub mod stack_distance;
pub mod windows;

pub use block_name::BlockName;
pub use curve::{Curve, Curves, Provenance};
pub use error::CurveError;
pub use histogram::Histogram;
pub use hull::Hull;
pub use mini::{MiniSettings, MiniSim};
pub use shards::{FixedRate, FixedSize, MissesAt, ShardsRateSettings, ShardsSizeSettings};
pub use stack_distance::StackDistance;
pub use windows::{CurveSet, Method, PolicyCurves};
