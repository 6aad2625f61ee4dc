//! The protocol itself, for both sides: its numbers, exports, requests and replies on the wire.
//!
//! Source: proto.md of the NBD project: "Values", "Request types", "Simple reply message" and
//! "Structured reply chunk message". Numbers are in network byte order; a read beyond the end of a
//! message is `None`. Data follows its header, so that a server sends it from where it lies.

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
/// A message that is read from front to back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireReader<'a>(pub(crate) &'a [u8]);

impl<'a> WireReader<'a> {
    /// The next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A string with its length in 32 bits in front; `None` if it is cut short or not UTF-8.
    pub(crate) fn string(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.take(length)?).ok()
    }

    /// Whether everything has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends numbers to a buffer.
pub(crate) trait Put {
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    /// A string with its length in 32 bits in front.
    fn put_string(&mut self, text: &str);
}

impl Put for Vec<u8> {
    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_string(&mut self, text: &str) {
        self.put_u32(text.len() as u32);
        self.extend_from_slice(text.as_bytes());
    }
}

/// Bytes of a message that came in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partial(Vec<u8>);

impl Partial {
    /// Takes bytes from `input` until `size` are there; returns whether they are. At most `size`
    /// bytes are ever held.
    pub(crate) fn fill(&mut self, input: &mut &[u8], size: usize) -> bool {
        let count = size.saturating_sub(self.0.len()).min(input.len());
        let (taken, rest) = input.split_at(count);
        self.0.extend_from_slice(taken);
        *input = rest;
        self.0.len() >= size
    }

    /// The bytes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Drops the bytes; a large buffer is given back.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
        self.0.shrink_to(256);
    }
}
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

/// Block sizes that a server tells its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Offsets and lengths are multiples of it; a power of two, at most 64 KiB.
    pub min: u32,
    /// Fastest unit; a power of two, at least 512.
    pub preferred: u32,
    /// Longest payload of one request.
    pub max_payload: u32,
}

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// A description for people; may be empty.
    pub description: String,
    /// Its size.
    pub size: u64,
    /// Its block sizes.
    pub blocks: BlockSizes,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether flushes and forced unit access of one connection hold for all.
    pub multi_conn: bool,
    /// Whether zeroes are faster than writes; where they are not, zeroes that are to be fast are
    /// refused.
    pub fast_zero: bool,
    /// Contexts of block status, by name; the place in the list is the context's id. At most 32.
    pub contexts: Vec<String>,
}

impl Export {
    /// Its transmission flags; `structured` where replies come in chunks.
    pub fn flags(&self, structured: bool) -> u16 {
        let mut flags = transmission::HAS_FLAGS
            | transmission::SEND_FLUSH
            | transmission::SEND_FUA
            | transmission::SEND_TRIM
            | transmission::SEND_WRITE_ZEROES
            | transmission::SEND_CACHE;
        if self.read_only {
            flags |= transmission::READ_ONLY;
        }
        if self.multi_conn {
            flags |= transmission::CAN_MULTI_CONN;
        }
        if self.fast_zero {
            flags |= transmission::SEND_FAST_ZERO;
        }
        if structured {
            flags |= transmission::SEND_DF;
        }
        flags
    }
}

/// The exports that one connection may see.
pub trait Exports {
    /// Each export in the order of the list; `secure` once TLS is up.
    fn each(&self, secure: bool, visit: &mut dyn FnMut(&Export));

    /// The export of that name, if this connection may see it. The empty name asks for the default.
    fn find(&self, name: &str, secure: bool) -> Option<&Export>;

    /// Whether one more connection may open an export that was found.
    fn has_place(&self, _export: &Export) -> bool {
        true
    }
}

impl Exports for [Export] {
    fn each(&self, _secure: bool, visit: &mut dyn FnMut(&Export)) {
        self.iter().for_each(visit);
    }

    fn find(&self, name: &str, _secure: bool) -> Option<&Export> {
        let default = || if name.is_empty() { self.first() } else { None };
        self.iter().find(|export| export.name == name).or_else(default)
    }
}
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

/// One run of block status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// Bytes of the run.
    pub length: u64,
    /// Its status, as the context defines it.
    pub status: u64,
}

/// How replies are framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// One header per reply; data follows it.
    #[default]
    Simple,
    /// Chunks with lengths of 32 bits.
    Structured,
    /// Chunks with lengths of 64 bits.
    Extended,
}

/// Longest message of an error, so that a chunk stays small.
const MAX_MESSAGE: usize = 256;

/// Writes the replies of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Replies {
    format: Format,
}

impl Replies {
    /// Replies in that format.
    pub fn new(format: Format) -> Replies {
        Replies { format }
    }

    /// Whether a read may be answered in several chunks, holes among them. Otherwise exactly one
    /// [`Replies::data`] or [`Replies::hole`] covers the whole range.
    pub fn in_chunks(self) -> bool {
        self.format != Format::Simple
    }

    /// Success without content; it also ends a reply whose last chunk was not marked so.
    pub fn done(self, request: &NbdRequest, out: &mut Vec<u8>) {
        match self.format {
            Format::Simple => simple(0, request, out),
            _ => self.chunk(request, (chunk::NONE, true), 0, out),
        }
    }

    /// Failure; a message for people goes along where the format has room for it.
    pub fn error(self, request: &NbdRequest, errno: Errno, message: &str, out: &mut Vec<u8>) {
        if self.format == Format::Simple {
            return simple(errno.code(), request, out);
        }
        let mut end = message.len().min(MAX_MESSAGE);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        self.chunk(request, (chunk::ERROR, true), 6 + end as u64, out);
        out.put_u32(errno.code());
        out.put_u16(end as u16);
        out.extend_from_slice(&message.as_bytes()[..end]);
    }

    /// The header of data: the caller sends `length` bytes right after it.
    pub fn data(
        self,
        request: &NbdRequest,
        offset: u64,
        length: u32,
        last: bool,
        out: &mut Vec<u8>,
    ) {
        if self.format == Format::Simple {
            return simple(0, request, out);
        }
        self.chunk(request, (chunk::OFFSET_DATA, last), 8 + u64::from(length), out);
        out.put_u64(offset);
    }

    /// Zeroes; simple replies spell them out.
    pub fn hole(
        self,
        request: &NbdRequest,
        offset: u64,
        length: u32,
        last: bool,
        out: &mut Vec<u8>,
    ) {
        if self.format == Format::Simple {
            simple(0, request, out);
            out.resize(out.len() + length as usize, 0);
            return;
        }
        self.chunk(request, (chunk::OFFSET_HOLE, last), 12, out);
        out.put_u64(offset);
        out.put_u32(length);
    }

    /// The extents of one context, from the start of the request's range. A run longer than the
    /// format can say is cut, and what follows it is left out: the client asks again.
    pub fn extents(
        self,
        request: &NbdRequest,
        context: u32,
        extents: &[StatusExtent],
        last: bool,
        out: &mut Vec<u8>,
    ) {
        if self.format == Format::Extended {
            let size = 8 + 16 * extents.len() as u64;
            self.chunk(request, (chunk::BLOCK_STATUS_EXT, last), size, out);
            out.put_u32(context);
            out.put_u32(extents.len() as u32);
            for extent in extents {
                out.put_u64(extent.length);
                out.put_u64(extent.status);
            }
            return;
        }
        let long = |extent: &StatusExtent| extent.length > u64::from(u32::MAX);
        let count = extents.iter().position(long).map_or(extents.len(), |index| index + 1);
        let size = 4 + 8 * count as u64;
        self.chunk(request, (chunk::BLOCK_STATUS, last), size, out);
        out.put_u32(context);
        for extent in &extents[..count] {
            let aligned = u64::from(u32::MAX) & !0xffff;
            let length = if long(extent) { aligned } else { extent.length };
            out.put_u32(length as u32);
            out.put_u32(extent.status as u32);
        }
    }

    /// The header of a chunk of that type with `length` bytes of content.
    fn chunk(self, request: &NbdRequest, kind: (u16, bool), length: u64, out: &mut Vec<u8>) {
        let extended = self.format == Format::Extended;
        let structured = STRUCTURED_REPLY_MAGIC;
        out.put_u32(if extended { EXTENDED_REPLY_MAGIC } else { structured });
        out.put_u16(if kind.1 { chunk::DONE } else { 0 });
        out.put_u16(kind.0);
        out.put_u64(request.cookie);
        if extended {
            out.put_u64(request.offset);
            out.put_u64(length);
        } else {
            out.put_u32(length as u32);
        }
    }
}

fn simple(error: u32, request: &NbdRequest, out: &mut Vec<u8>) {
    out.put_u32(SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(request.cookie);
}
