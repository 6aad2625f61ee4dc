//! Requests of a client: what they want, of which bytes.
//!
//! For: servers and their replies. Must never know: how a request stands on the wire. Units: bytes.
//! Source: proto.md, "Request types".

/// Bytes of the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first byte.
    pub offset: u64,
    /// How many; at least one.
    pub length: u64,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NbdCommand {
    /// The bytes of a range.
    Read {
        /// Where.
        range: Range,
        /// Whether the answer has one chunk of content at most.
        whole: bool,
    },
    /// To hold the payload that follows.
    Write(Range),
    /// To make all answered writes durable.
    Flush,
    /// The range is not needed any more; it may be rounded inwards.
    Trim(Range),
    /// The range reads as zeroes from now on.
    Zero {
        /// Where.
        range: Range,
        /// Whether its space is kept.
        keep_space: bool,
        /// Whether it fails rather than be slow.
        fast: bool,
    },
    /// The range will be read soon.
    Cache(Range),
    /// The status of a range in each chosen context.
    BlockStatus {
        /// Where.
        range: Range,
        /// Whether one extent per context is enough.
        single_extent: bool,
    },
}

/// A valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdRequest {
    /// The client's name for it, which the answer carries.
    pub cookie: u64,
    /// First byte of its range, as the client sent it; 0 for a flush.
    pub offset: u64,
    /// What it wants.
    pub command: NbdCommand,
    /// Whether its effect is durable before it is answered.
    pub fua: bool,
}
