//! Numbers of the protocol: magics, options, flags, commands, chunk types, errors.
//!
//! For: both sides. Must never know: their meaning beyond the name. Source: proto.md of the NBD
//! project, section "Values".

/// First eight bytes that a server sends: `NBDMAGIC`.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// Magic of newstyle negotiation and of each option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Magic of each reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic of a request with a 28-byte header.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic of a request with a 32-byte header.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Magic of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Magic of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Magic of a chunk of an extended reply.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Flags of the server's greeting and of the client's answer.
pub mod handshake {
    /// Fixed newstyle: unknown options are answered.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// No 124 zero bytes after the old way of choosing an export.
    pub const NO_ZEROES: u16 = 2;
}

/// Options of a negotiation.
pub mod option {
    /// Choose an export, the old way.
    pub const EXPORT_NAME: u32 = 1;
    /// End the negotiation.
    pub const ABORT: u32 = 2;
    /// List exports.
    pub const LIST: u32 = 3;
    /// Begin TLS.
    pub const STARTTLS: u32 = 5;
    /// Ask about an export.
    pub const INFO: u32 = 6;
    /// Choose an export.
    pub const GO: u32 = 7;
    /// Answer in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List contexts of block status.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose contexts of block status.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Headers with lengths of 64 bits.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Types of replies to options.
pub mod option_reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export of a list.
    pub const SERVER: u32 = 2;
    /// A fact about an export.
    pub const INFO: u32 = 3;
    /// A context of block status.
    pub const META_CONTEXT: u32 = 4;
    /// The bit that all errors have.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not known.
    pub const UNSUPPORTED: u32 = ERROR + 1;
    /// Forbidden by the server's settings.
    pub const POLICY: u32 = ERROR + 2;
    /// The option's data is malformed or comes at the wrong time.
    pub const INVALID: u32 = ERROR + 3;
    /// TLS must begin first.
    pub const TLS_REQUIRED: u32 = ERROR + 5;
    /// There is no such export.
    pub const UNKNOWN: u32 = ERROR + 6;
    /// The server is going down.
    pub const SHUTDOWN: u32 = ERROR + 7;
    /// The option's data is longer than the server reads.
    pub const TOO_BIG: u32 = ERROR + 9;
    /// Extended headers are chosen already.
    pub const EXTENDED_HEADERS_REQUIRED: u32 = ERROR + 10;
}

/// Types of facts about an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The full name.
    pub const NAME: u16 = 1;
    /// A description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Block sizes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export.
pub mod transmission {
    /// Set in every set of flags.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Flushes are carried out.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Forced unit access is honoured.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Trims are carried out.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Zeroes are written without a payload.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Reads can be answered in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// Flushes hold for all connections of an export.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Prefetch hints are carried out.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// Zeroes can be asked for "only if fast".
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Types of requests.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write; the payload follows.
    pub const WRITE: u16 = 1;
    /// Disconnect; there is no answer.
    pub const DISCONNECT: u16 = 2;
    /// Make answered writes durable.
    pub const FLUSH: u16 = 3;
    /// The range is no longer needed.
    pub const TRIM: u16 = 4;
    /// The range will be read soon.
    pub const CACHE: u16 = 5;
    /// The range shall read as zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Ask for the status of a range.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of requests.
pub mod command_flag {
    /// Durable before it is answered.
    pub const FUA: u16 = 1;
    /// Zeroes keep their space.
    pub const NO_HOLE: u16 = 1 << 1;
    /// One chunk of content at most.
    pub const DF: u16 = 1 << 2;
    /// One extent per context.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes fail rather than be slow.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// The length is that of the payload (extended headers).
    pub const PAYLOAD_LENGTH: u16 = 1 << 5;
}

/// Types of chunks.
pub mod chunk {
    /// The flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
    /// Nothing but the end.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of one context, lengths of 32 bits.
    pub const BLOCK_STATUS: u16 = 5;
    /// Extents of one context, lengths of 64 bits.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// An error of the whole request.
    pub const ERROR: u16 = (1 << 15) + 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = (1 << 15) + 2;
}

/// The context of block status that every server of it has: bit 0 a hole, bit 1 reads as zeroes.
pub const ALLOCATION: &str = "base:allocation";
/// Status of [`ALLOCATION`]: no space is taken.
pub const STATE_HOLE: u64 = 1;
/// Status of [`ALLOCATION`]: reads as zeroes.
pub const STATE_ZERO: u64 = 2;

/// Errors that an answer may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Errno {
    /// The operation is not permitted: a write to a read-only export.
    Perm = 1,
    /// Input or output failed.
    Io = 5,
    /// An argument is invalid.
    Inval = 22,
    /// No space is left, or the write ends beyond the export.
    NoSpace = 28,
    /// The answer would be too large.
    Overflow = 75,
    /// Not supported: zeroes that would be slow.
    NotSupported = 95,
    /// The server is going down.
    Shutdown = 108,
}

impl Errno {
    /// The number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// The error of a number on the wire; a number that the protocol does not name counts as
    /// [`Errno::Inval`], as the protocol asks of clients.
    pub fn from_code(code: u32) -> Errno {
        match code {
            1 => Errno::Perm,
            5 => Errno::Io,
            28 => Errno::NoSpace,
            75 => Errno::Overflow,
            95 => Errno::NotSupported,
            108 => Errno::Shutdown,
            _ => Errno::Inval,
        }
    }
}
