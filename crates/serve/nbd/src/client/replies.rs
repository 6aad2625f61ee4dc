//! Replies as a client reads them: simple, structured and extended.
//!
//! For: [`super::Client`]. Must never know: negotiation. Units: bytes. Source: proto.md, "Simple
//! reply message" and "Structured reply chunk message".

use super::{ClientEvent, ClientStep};
use crate::protocol::{self, Errno, chunk, command};
use crate::reply::{Format, StatusExtent};
use crate::wire::{Partial, WireReader};
use std::collections::BTreeMap;
use thiserror::Error;

/// Longest content of a chunk that a client holds: errors and extents; data is not held.
const MAX_HELD: u64 = 32 << 20;

/// How a server broke the protocol, or what it refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReplyFault {
    /// A message does not begin with its magic number.
    #[error("a message begins with {found:#x}, expected {expected:#x}")]
    Magic {
        /// The number found.
        found: u64,
        /// The number that belongs there.
        expected: u64,
    },
    /// The server does not speak the fixed newstyle.
    #[error("the server does not offer the fixed newstyle negotiation")]
    NotFixedNewstyle,
    /// Bytes came after the answer to the request for TLS and before TLS began.
    #[error("bytes came in the clear after TLS was agreed")]
    ClearAfterTls,
    /// An answer to another option.
    #[error("an answer to option {found}, expected one to option {expected}")]
    Option {
        /// The option found.
        found: u32,
        /// The option that was asked for.
        expected: u32,
    },
    /// The server refused TLS or the export.
    #[error("the server refused with error {code}: {message}")]
    Refused {
        /// The error, without the bit that all errors have.
        code: u32,
        /// What the server said.
        message: String,
    },
    /// A message is longer than a client reads.
    #[error("a message of {found} bytes, expected at most {limit}")]
    TooLong {
        /// Its length.
        found: u64,
        /// The bound.
        limit: u64,
    },
    /// An answer to a request that is not under way.
    #[error("an answer to request {cookie}, which is not under way")]
    Cookie {
        /// The cookie found.
        cookie: u64,
    },
    /// An answer that the request cannot have.
    #[error("an answer to request {cookie} that it cannot have: {what}")]
    Content {
        /// The request's cookie.
        cookie: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Awaited {
    kind: u16,
    offset: u64,
    length: u64,
    /// Bytes of content so far.
    come: u64,
    error: Option<Errno>,
}

impl Awaited {
    pub(super) fn new(kind: u16, (offset, length): (u64, u64)) -> Awaited {
        Awaited { kind, offset, length, come: 0, error: None }
    }

    /// How the request ended. Errors: success of a read without all of its data.
    fn end(self, cookie: u64) -> Result<Result<(), Errno>, ReplyFault> {
        match self.error {
            Some(errno) => Ok(Err(errno)),
            None if self.kind == command::READ && self.come != self.length => {
                Err(ReplyFault::Content { cookie, what: "a read without all of its data" })
            }
            None => Ok(Ok(())),
        }
    }
}

/// A chunk whose header has come.
#[derive(Clone, Copy, Debug)]
struct ReplyChunk {
    cookie: u64,
    kind: u16,
    last: bool,
    length: u64,
}

/// What is being read.
#[derive(Clone, Debug, Default)]
pub(super) enum Incoming {
    /// The header of a reply.
    #[default]
    Header,
    /// The content of a chunk.
    Content(ChunkContent),
    /// Data that is handed on as it comes.
    Data(DataContent),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkContent(ReplyChunk);

#[derive(Clone, Copy, Debug)]
pub(super) struct DataContent {
    cookie: u64,
    offset: u64,
    left: u64,
    last: bool,
}

type Requests = BTreeMap<u64, Awaited>;

impl Incoming {
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        partial: &mut Partial,
        format: Format,
        requests: &mut Requests,
    ) -> ClientStep<'a> {
        let step = match self {
            Incoming::Header => self.header(input, partial, format, requests),
            Incoming::Content(ChunkContent(chunk)) => {
                let chunk = *chunk;
                self.content(chunk, input, partial, requests)
            }
            Incoming::Data(data) => {
                let data = *data;
                Ok(self.data(data, input, requests))
            }
        };
        step.unwrap_or_else(|fault| ClientStep::Event(ClientEvent::Fault(fault)))
    }

    fn header<'a>(
        &mut self,
        input: &mut &'a [u8],
        partial: &mut Partial,
        format: Format,
        requests: &mut Requests,
    ) -> Result<ClientStep<'a>, ReplyFault> {
        // The magic tells simple replies and chunks apart: a server may mix them.
        if !partial.fill(input, 4) {
            return Ok(ClientStep::Wait);
        }
        let magic = WireReader(partial.bytes()).u32().unwrap_or_default();
        let (expected, size) = match format {
            _ if magic == protocol::SIMPLE_REPLY_MAGIC && format != Format::Extended => {
                (protocol::SIMPLE_REPLY_MAGIC, 16)
            }
            Format::Simple => (protocol::SIMPLE_REPLY_MAGIC, 16),
            Format::Structured => (protocol::STRUCTURED_REPLY_MAGIC, 20),
            Format::Extended => (protocol::EXTENDED_REPLY_MAGIC, 32),
        };
        if magic != expected {
            let (found, expected) = (u64::from(magic), u64::from(expected));
            return Err(ReplyFault::Magic { found, expected });
        }
        if !partial.fill(input, size) {
            return Ok(ClientStep::Wait);
        }
        let mut reader = WireReader(partial.bytes());
        reader.take(4);
        let step = if size == 16 {
            let (error, cookie) = (reader.u32().unwrap_or_default(), reader.u64());
            self.simple(error, cookie.unwrap_or_default(), requests)
        } else {
            let (flags, kind) = (reader.u16().unwrap_or_default(), reader.u16());
            let cookie = reader.u64().unwrap_or_default();
            let length = match format {
                Format::Extended => reader.u64().and_then(|_offset| reader.u64()),
                _ => reader.u32().map(u64::from),
            };
            let (kind, length) = (kind.unwrap_or_default(), length.unwrap_or_default());
            let chunk = ReplyChunk { cookie, kind, last: flags & chunk::DONE != 0, length };
            self.begin_chunk(chunk, requests)
        };
        partial.clear();
        step
    }

    fn simple<'a>(
        &mut self,
        error: u32,
        cookie: u64,
        requests: &mut Requests,
    ) -> Result<ClientStep<'a>, ReplyFault> {
        let awaited = requests.get_mut(&cookie).ok_or(ReplyFault::Cookie { cookie })?;
        if error != 0 {
            awaited.error = Some(Errno::from_code(error));
        } else if awaited.kind == command::READ {
            let (offset, left) = (awaited.offset, awaited.length);
            awaited.come = left;
            *self = Incoming::Data(DataContent { cookie, offset, left, last: true });
            return Ok(ClientStep::Go);
        }
        finish(cookie, requests)
    }

    fn begin_chunk<'a>(
        &mut self,
        found: ReplyChunk,
        requests: &mut Requests,
    ) -> Result<ClientStep<'a>, ReplyFault> {
        let ReplyChunk { cookie, kind, length, .. } = found;
        let awaited = requests.get(&cookie).ok_or(ReplyFault::Cookie { cookie })?;
        let reads = matches!(kind, chunk::OFFSET_DATA | chunk::OFFSET_HOLE);
        if reads && awaited.kind != command::READ {
            return Err(ReplyFault::Content { cookie, what: "data for what is no read" });
        }
        if kind == chunk::OFFSET_DATA && length.saturating_sub(8) > awaited.length {
            return Err(ReplyFault::Content { cookie, what: "more data than was asked for" });
        }
        if kind != chunk::OFFSET_DATA && length > MAX_HELD {
            return Err(ReplyFault::TooLong { found: length, limit: MAX_HELD });
        }
        *self = Incoming::Content(ChunkContent(found));
        Ok(ClientStep::Go)
    }

    fn content<'a>(
        &mut self,
        found: ReplyChunk,
        input: &mut &'a [u8],
        partial: &mut Partial,
        requests: &mut Requests,
    ) -> Result<ClientStep<'a>, ReplyFault> {
        let ReplyChunk { cookie, kind, last, length } = found;
        let held = if kind == chunk::OFFSET_DATA { 8 } else { length };
        if !partial.fill(input, held as usize) {
            return Ok(ClientStep::Wait);
        }
        let mut reader = WireReader(partial.bytes());
        *self = Incoming::Header;
        let event = match kind {
            chunk::OFFSET_DATA => {
                let offset = reader.u64().unwrap_or_default();
                let left = length.saturating_sub(8);
                *self = Incoming::Data(DataContent { cookie, offset, left, last });
                note_content(cookie, offset, left, requests).map(|()| None)
            }
            chunk::OFFSET_HOLE => {
                let (offset, length) = (reader.u64(), reader.u32());
                let (offset, length) = (offset.unwrap_or_default(), length.unwrap_or_default());
                let length = u64::from(length);
                note_content(cookie, offset, length, requests)
                    .map(|()| Some(ClientEvent::Hole { cookie, offset, length }))
            }
            chunk::BLOCK_STATUS | chunk::BLOCK_STATUS_EXT => {
                read_extents(cookie, kind, reader).map(Some)
            }
            chunk::NONE => Ok(None),
            _ => {
                let errno = Errno::from_code(reader.u32().unwrap_or_default());
                if let Some(awaited) = requests.get_mut(&cookie) {
                    awaited.error.get_or_insert(errno);
                }
                Ok(None)
            }
        };
        partial.clear();
        match event? {
            _ if matches!(self, Incoming::Data(_)) => Ok(ClientStep::Go),
            None if last => finish(cookie, requests),
            None => Ok(ClientStep::Go),
            Some(event) => {
                if last {
                    let left = DataContent { cookie, offset: 0, left: 0, last };
                    *self = Incoming::Data(left);
                }
                Ok(ClientStep::Event(event))
            }
        }
    }

    /// Hands data on; after the last of it the request may be over.
    fn data<'a>(
        &mut self,
        data: DataContent,
        input: &mut &'a [u8],
        requests: &mut Requests,
    ) -> ClientStep<'a> {
        let DataContent { cookie, offset, left, last } = data;
        if left == 0 {
            *self = Incoming::Header;
            let finished = if last { finish(cookie, requests) } else { Ok(ClientStep::Go) };
            return finished.unwrap_or_else(|fault| ClientStep::Event(ClientEvent::Fault(fault)));
        }
        if input.is_empty() {
            return ClientStep::Wait;
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let (bytes, rest) = input.split_at(count);
        *input = rest;
        let read = count as u64;
        let left = DataContent { cookie, offset: offset + read, left: left - read, last };
        *self = Incoming::Data(left);
        ClientStep::Event(ClientEvent::Data { cookie, offset, bytes })
    }
}

/// Counts content of a read. Errors: content outside its range, or twice.
fn note_content(
    cookie: u64,
    offset: u64,
    length: u64,
    requests: &mut Requests,
) -> Result<(), ReplyFault> {
    let awaited = requests.get_mut(&cookie).ok_or(ReplyFault::Cookie { cookie })?;
    let end = offset.checked_add(length);
    let inside = offset >= awaited.offset
        && end.is_some_and(|end| end <= awaited.offset.saturating_add(awaited.length));
    awaited.come = awaited.come.saturating_add(length);
    if inside && awaited.come <= awaited.length {
        Ok(())
    } else {
        Err(ReplyFault::Content { cookie, what: "data outside the range, or twice" })
    }
}

fn read_extents<'a>(
    cookie: u64,
    kind: u16,
    mut reader: WireReader<'_>,
) -> Result<ClientEvent<'a>, ReplyFault> {
    let malformed = || ReplyFault::Content { cookie, what: "malformed extents" };
    let context = reader.u32().ok_or_else(malformed)?;
    let wide = kind == chunk::BLOCK_STATUS_EXT;
    if wide {
        reader.u32().ok_or_else(malformed)?;
    }
    let mut extents = Vec::new();
    while !reader.is_empty() {
        let pair = match wide {
            true => reader.u64().zip(reader.u64()),
            false => reader.u32().map(u64::from).zip(reader.u32().map(u64::from)),
        };
        let (length, status) = pair.ok_or_else(malformed)?;
        extents.push(StatusExtent { length, status });
    }
    Ok(ClientEvent::Extents { cookie, context, extents })
}

/// The request is over.
fn finish<'a>(cookie: u64, requests: &mut Requests) -> Result<ClientStep<'a>, ReplyFault> {
    let awaited = requests.remove(&cookie).ok_or(ReplyFault::Cookie { cookie })?;
    let result = awaited.end(cookie)?;
    Ok(ClientStep::Event(ClientEvent::Done { cookie, result }))
}
