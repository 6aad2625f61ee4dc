//! What one connection may cost before it is closed.
//!
//! For: sessions that face hostile peers. Must never know: time (deadlines are the caller's).
//! Units: bytes, counts.

/// The bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an option's data that are read; a longer option is skipped and refused.
    pub option_bytes: u32,
    /// Bytes of an option's data that are skipped; a longer option closes the connection.
    pub skipped_bytes: u32,
    /// Options of one negotiation; one more closes the connection.
    pub options: u32,
    /// Bytes that one read or write may carry; at least 1 MiB by the protocol's rules.
    pub payload_bytes: u32,
    /// Extents per context in one answer to a request for block status.
    pub extents: u32,
}

/// Longest string of the protocol: names of exports and contexts.
pub const MAX_STRING: usize = 4096;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            option_bytes: 64 << 10,
            skipped_bytes: 1 << 20,
            options: 1024,
            payload_bytes: 32 << 20,
            extents: 1 << 16,
        }
    }
}
