//! Answers on the wire: simple, structured and extended replies.
//!
//! For: servers. Data follows its header, so that a server sends it from where it lies. Must never
//! know: sockets, exports. Units: bytes. Source: proto.md, "Simple reply message" and "Structured
//! reply chunk message".

use crate::protocol::{self, Errno, chunk};
use crate::request::NbdRequest;
use crate::wire::Put;

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
        let structured = protocol::STRUCTURED_REPLY_MAGIC;
        out.put_u32(if extended { protocol::EXTENDED_REPLY_MAGIC } else { structured });
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
    out.put_u32(protocol::SIMPLE_REPLY_MAGIC);
    out.put_u32(error);
    out.put_u64(request.cookie);
}
