//! How a client can break the protocol.
//!
//! For: the end of a session, with its reason. Must never know: sockets. Units: bytes.

use thiserror::Error;

/// How a client broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A message does not begin with its magic number.
    #[error("a message begins with {found:#x}, expected {expected:#x}")]
    Magic {
        /// The number found.
        found: u64,
        /// The number that belongs there.
        expected: u64,
    },
    /// The client's flags have bits that the server did not offer.
    #[error("the client's flags are {found:#x}, expected bits of 0x3 only")]
    ClientFlags {
        /// The flags found.
        found: u32,
    },
    /// An option or a payload is longer than the server skips.
    #[error("{what} of {found} bytes, expected at most {limit}")]
    TooLong {
        /// What was too long.
        what: &'static str,
        /// Its length.
        found: u64,
        /// The bound.
        limit: u64,
    },
    /// The negotiation does not end.
    #[error("more than {limit} options in one negotiation")]
    TooManyOptions {
        /// The bound.
        limit: u32,
    },
    /// The old way of choosing an export cannot be answered with an error.
    #[error("the export that was asked for by its name alone is unknown or needs TLS")]
    UnknownExport,
    /// The same where the export takes no more connections.
    #[error("the export that was asked for by its name alone has all the connections it may have")]
    NoPlace,
    /// Bytes came after the request for TLS and before TLS began.
    #[error("bytes came in the clear after TLS was asked for")]
    ClearAfterTls,
}
