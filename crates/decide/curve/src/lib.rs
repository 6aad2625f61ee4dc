//! Miss-ratio curves: misses by cache size, and the other signals that partitioners divide by.
//!
//! LRU curves are exact in one pass ([`StackDistance`]) or sampled ([`FixedRate`], [`FixedSize`]);
//! those of any other policy are simulated in miniature ([`MiniSim`]). Sizes are in blocks, misses
//! are counted accesses. An approximate curve carries a confidence interval and its smallest
//! trusted size; it refuses sizes below.

pub mod curve;
pub mod hull;
pub mod mini;
mod sample;
mod shards;
pub mod signal;
pub mod stack_distance;
pub mod windows;

pub use curve::{Curve, CurveError, Curves, Provenance};
pub use hull::Hull;
pub use mini::{MiniSettings, MiniSim};
pub use sample::BlockName;
pub use shards::{FixedRate, FixedSize, MissesAt, ShardsRateSettings, ShardsSizeSettings};
pub use stack_distance::{Histogram, StackDistance};
pub use windows::{CurveSet, Method, PolicyCurves};
