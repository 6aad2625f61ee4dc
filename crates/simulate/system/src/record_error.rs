//! Why a workload could not be recorded or replayed.
//!
//! For: errors that name the key which bounds what was found. Must never know: exit codes.

use cachewright_trace::TraceError;
use cachewright_trace::intern::InternError;
use thiserror::Error;

/// Why a workload could not be recorded.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A trace could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Too many distinct blocks.
    #[error("{tenant}: {source}; a larger `cache.block` makes fewer")]
    Intern {
        /// The tenant.
        tenant: String,
        /// The reason.
        source: InternError,
    },
    /// What is too long for memory could not be kept in a file.
    #[error("found no place for a scratch file in the temporary folder, TMPDIR ({0})")]
    Scratch(#[from] std::io::Error),
    /// Too many block accesses for the given bound.
    #[error(
        "`replay.max_accesses`: found more than {limit} block accesses, expected at most so many \
         in memory; a larger `cache.block` makes fewer"
    )]
    TooLong {
        /// The bound.
        limit: u64,
    },
    /// More intervals than a run may have, in a loop whose time the trace does not give.
    #[error(
        "found more than {limit} ends of `replay.interval` in the closed loop, expected fewer; a \
         longer interval makes fewer"
    )]
    Intervals {
        /// The bound.
        limit: u64,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}
