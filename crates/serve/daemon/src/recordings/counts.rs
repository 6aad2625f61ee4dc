//! What became of recordings.
//!
//! For: operators that see each request that is not recorded. Must never know: files. Units:
//! requests, files.

/// Counts since the start of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingCounts {
    /// Recordings that were finished.
    pub files: u64,
    /// Requests in them, with the flushes at which they begin and end.
    pub requests: u64,
    /// Requests that are in none.
    pub dropped: u64,
    /// Old recordings that were removed.
    pub removed: u64,
    /// Requests of the recording under way that outlive a kill.
    pub kept: u64,
    /// Unfinished recordings of servers that were killed: what was kept of them is in place.
    pub recovered: u64,
    /// Those of which nothing was kept, which were removed.
    pub abandoned: u64,
    /// Recordings that could not be written, and files that could not be removed.
    pub errors: u64,
    /// The last of these errors.
    pub last_error: Option<String>,
}
