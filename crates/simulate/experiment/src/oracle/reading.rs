//! What a label of an oracle counts, and which part of a workload it may know.
//!
//! For: labels that train. Must never know: oracles, models. Source: Ebrahimi et al., RC-RNN,
//! section 4.1, whose sentences on `duration` can be read either way. Unit: nanoseconds.

use cachewright_system::Recording;
use cachewright_types::{choices, declare};

choices! {
    /// What a duration counts.
    pub enum Reading {
        /// From the access on to the eviction of its block.
        Remaining = "remaining",
        /// From the access that brought the block in to its eviction.
        WholeStay = "residence",
    }
}

declare! {
    /// Options of `labels`: which oracle is asked, and what its labels count.
    pub struct OracleOptions {
        /// the policy with knowledge of the future that the model imitates
        oracle: String = "benefit-oracle".to_owned(), "name";
        /// what duration labels count: what remains from each access on, or the whole residence
        labels: Reading = Reading::Remaining, "word";
    }
}

/// Where the part of a workload ends whose labels see no further than itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Split {
    /// There is none: all labels see the whole trace.
    #[default]
    None,
    /// After this share of the reads and writes, rounded down.
    Share(f64),
    /// Before the first request at this time in nanoseconds.
    Time(u64),
}

impl Split {
    /// The first request of a recording behind the part; 0 without one.
    pub(super) fn request(self, recording: &Recording) -> usize {
        match self {
            Split::None => 0,
            Split::Time(ns) => recording.times_ns().partition_point(|time| *time < ns),
            Split::Share(share) => {
                let labelled = |request: &usize| is_labelled(recording, *request);
                let requests = recording.times_ns().len();
                let count = (0..requests).filter(labelled).count();
                let wanted = (count as f64 * share) as usize;
                (0..requests).filter(labelled).nth(wanted).unwrap_or(requests)
            }
        }
    }
}

/// Whether a request is a read or a write.
pub(super) fn is_labelled(recording: &Recording, request: usize) -> bool {
    recording.request_info(request, recording.times_ns()[request]).is_some()
}
