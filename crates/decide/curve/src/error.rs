//! Refusals of curves.
//!
//! For: errors that name the size, what was found and what was needed. Must never know: files.
//! Sizes are in blocks.

use cachewright_types::RegistryError;
use thiserror::Error;

/// A curve, or a point of a curve, that is refused.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CurveError {
    /// The sampled cache is too small to represent the real one.
    #[error(
        "a cache of {size_blocks} blocks sampled at rate {rate} has {scaled_blocks:.1} blocks, \
         expected at least {minimum_blocks}; raise the rate to {needed_rate} or let it escalate"
    )]
    TooSmall {
        /// Size of the real cache.
        size_blocks: u32,
        /// Sampling rate.
        rate: f64,
        /// Size of the sampled cache.
        scaled_blocks: f64,
        /// The fewest blocks the settings accept.
        minimum_blocks: u32,
        /// The lowest rate at which the size would be accepted.
        needed_rate: f64,
    },
    /// The sample of the working set would be too small.
    #[error(
        "{distinct_blocks} distinct blocks sampled at rate {rate} leave {sampled_blocks:.0}, \
         expected at least {minimum_blocks}; raise the rate to {needed_rate} or let it escalate"
    )]
    FewBlocks {
        /// Distinct blocks of the whole stream.
        distinct_blocks: u64,
        /// Sampling rate.
        rate: f64,
        /// Distinct blocks expected in the sample.
        sampled_blocks: f64,
        /// The fewest blocks the settings accept.
        minimum_blocks: u32,
        /// The lowest rate at which the stream would be accepted.
        needed_rate: f64,
    },
    /// A list of sizes that describes no curve.
    #[error("sizes: found {found}, expected one or more sizes in ascending order, each above 0")]
    Sizes {
        /// What was found.
        found: String,
    },
    /// The policy needs more than a stream of accesses.
    #[error("policy `{policy}` needs {need}, which samples of block accesses do not have")]
    Lacking {
        /// The policy.
        policy: &'static str,
        /// What it needs.
        need: &'static str,
    },
    /// The policy or one of its settings was refused.
    #[error(transparent)]
    Policy(#[from] RegistryError),
}
