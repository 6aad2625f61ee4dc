//! The client's side of one connection: what a server sent becomes events.
//!
//! Options go out one after the other until the export is open: framing, contexts of block status,
//! the export. A server that refuses framing or contexts is used without them; one that refuses the
//! export or TLS is a [`ReplyFault`]. Data is handed on as it comes. An answer to no sent request,
//! or with more data than requested, is a [`ReplyFault`].

use crate::BlockSizes;
use crate::protocol::{
    self, Errno, Format, NbdCommand, NbdRequest, Partial, Put, StatusExtent, WireReader, chunk,
    command, command_flag, handshake, info, option, option_reply as answer,
};
use std::collections::BTreeMap;
use thiserror::Error;

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientSettings {
    /// Name of the export; empty for the server's default.
    pub export: String,
    /// Whether TLS comes first.
    pub tls: bool,
    /// Whether replies in chunks are asked for.
    pub structured: bool,
    /// Whether 32-byte headers are asked for; without them `structured` counts.
    pub extended_headers: bool,
    /// Contexts of block status that are asked for; they need replies in chunks.
    pub contexts: Vec<String>,
}

/// What was agreed with the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Size of the export.
    pub size: u64,
    /// Its transmission flags.
    pub flags: u16,
    /// Its block sizes, if the server said them.
    pub blocks: Option<BlockSizes>,
    /// The chosen contexts: id and name.
    pub contexts: Vec<(u32, String)>,
    /// How replies are framed.
    pub format: Format,
}

/// What a server sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// TLS begins now; [`Client::secured`] goes on.
    StartTls,
    /// The export is open; requests may be sent.
    Opened(Opened),
    /// Data of a read, in the order in which it came.
    Data {
        /// The request's cookie.
        cookie: u64,
        /// Offset of its first byte on the export.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Zeroes of a read.
    Hole {
        /// The request's cookie.
        cookie: u64,
        /// Offset on the export.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Status of a range in one context.
    Extents {
        /// The request's cookie.
        cookie: u64,
        /// Id of the context.
        context: u32,
        /// The runs, from the start of the request's range.
        extents: Vec<StatusExtent>,
    },
    /// The request is over; nothing more comes for it.
    Done {
        /// The request's cookie.
        cookie: u64,
        /// How it ended.
        result: Result<(), Errno>,
    },
    /// The server broke the protocol, or refused what was asked for: close.
    Fault(ReplyFault),
}

/// Where a connection stands.
#[derive(Clone, Debug)]
enum ClientPhase {
    Greeting,
    Hello(Hello),
    AwaitTls,
    Open(Incoming),
    Closed,
}

/// One connection to a server.
#[derive(Clone, Debug)]
pub struct Client {
    settings: ClientSettings,
    phase: ClientPhase,
    partial: Partial,
    opened: Opened,
    awaited: BTreeMap<u64, Awaited>,
}

impl Client {
    /// A new connection; the server speaks first.
    pub fn new(settings: ClientSettings) -> Client {
        Client {
            settings,
            phase: ClientPhase::Greeting,
            partial: Partial::default(),
            opened: Opened::default(),
            awaited: BTreeMap::new(),
        }
    }

    /// Takes bytes from `input` up to the next event; `None` when more must come first. What the
    /// negotiation says next is appended to `out`.
    pub fn next<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> Option<ClientEvent<'a>> {
        loop {
            let step = match &mut self.phase {
                ClientPhase::Greeting => self.greeting(input, out),
                ClientPhase::Hello(hello) => {
                    let step = hello.next(input, &mut self.partial, &self.settings, out)?;
                    self.after_hello(step)
                }
                ClientPhase::Open(incoming) => {
                    let format = self.opened.format;
                    incoming.next(input, &mut self.partial, format, &mut self.awaited)
                }
                ClientPhase::AwaitTls if !input.is_empty() => {
                    ClientStep::Event(ClientEvent::Fault(ReplyFault::ClearAfterTls))
                }
                ClientPhase::AwaitTls | ClientPhase::Closed => ClientStep::Wait,
            };
            match step {
                ClientStep::Wait => return None,
                ClientStep::Go => {}
                ClientStep::Event(event) => {
                    if matches!(event, ClientEvent::Fault(_)) {
                        self.phase = ClientPhase::Closed;
                    }
                    return Some(event);
                }
            }
        }
    }

    /// TLS is up.
    pub fn secured(&mut self, out: &mut Vec<u8>) {
        if matches!(self.phase, ClientPhase::AwaitTls) {
            self.phase = ClientPhase::Hello(Hello::begin(&self.settings, out));
        }
    }

    /// Appends a request to `out`; the payload of a write is sent right after it. The cookie must
    /// not be that of a request under way.
    pub fn send(&mut self, request: &NbdRequest, out: &mut Vec<u8>) {
        let extended = self.opened.format == Format::Extended;
        let (kind, mut flags, (offset, length)) = wire_form(&request.command);
        flags |= if request.fua && kind != command::FLUSH { command_flag::FUA } else { 0 };
        if extended && kind == command::WRITE {
            flags |= command_flag::PAYLOAD_LENGTH;
        }
        let compact = protocol::REQUEST_MAGIC;
        out.put_u32(if extended { protocol::EXTENDED_REQUEST_MAGIC } else { compact });
        out.put_u16(flags);
        out.put_u16(kind);
        out.put_u64(request.cookie);
        out.put_u64(offset);
        if extended {
            out.put_u64(length);
        } else {
            out.put_u32(length as u32);
        }
        self.awaited.insert(request.cookie, Awaited::new(kind, offset, length));
    }

    /// Appends the end of the connection to `out`.
    pub fn disconnect(&mut self, out: &mut Vec<u8>) {
        let extended = self.opened.format == Format::Extended;
        let compact = protocol::REQUEST_MAGIC;
        out.put_u32(if extended { protocol::EXTENDED_REQUEST_MAGIC } else { compact });
        out.put_u16(0);
        out.put_u16(command::DISCONNECT);
        out.resize(out.len() + if extended { 24 } else { 20 }, 0);
    }

    fn greeting<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> ClientStep<'a> {
        if !self.partial.fill(input, 18) {
            return ClientStep::Wait;
        }
        let mut reader = WireReader(self.partial.bytes());
        let (greeting, style, flags) = (reader.u64(), reader.u64(), reader.u16());
        self.partial.clear();
        for (found, expected) in [(greeting, protocol::GREETING), (style, protocol::OPTION_MAGIC)] {
            let found = found.unwrap_or_default();
            if found != expected {
                return ClientStep::Event(ClientEvent::Fault(ReplyFault::Magic {
                    found,
                    expected,
                }));
            }
        }
        let offered = flags.unwrap_or_default();
        if offered & handshake::FIXED_NEWSTYLE == 0 {
            return ClientStep::Event(ClientEvent::Fault(ReplyFault::NotFixedNewstyle));
        }
        out.put_u32(u32::from(offered & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)));
        self.phase = ClientPhase::Hello(match self.settings.tls {
            true => Hello::begin_tls(out),
            false => Hello::begin(&self.settings, out),
        });
        ClientStep::Go
    }

    fn after_hello<'a>(&mut self, step: HelloOutcome) -> ClientStep<'a> {
        match step {
            HelloOutcome::Go => ClientStep::Go,
            HelloOutcome::StartTls => {
                self.phase = ClientPhase::AwaitTls;
                ClientStep::Event(ClientEvent::StartTls)
            }
            HelloOutcome::Opened(opened) => {
                self.opened = opened.clone();
                self.phase = ClientPhase::Open(Incoming::default());
                ClientStep::Event(ClientEvent::Opened(opened))
            }
            HelloOutcome::Fault(fault) => ClientStep::Event(ClientEvent::Fault(fault)),
        }
    }
}

/// Type, flags, offset and length of a command on the wire.
fn wire_form(command: &NbdCommand) -> (u16, u16, (u64, u64)) {
    let flag = |set: bool, flag: u16| if set { flag } else { 0 };
    let (kind, flags, range) = match *command {
        NbdCommand::Flush => return (command::FLUSH, 0, (0, 0)),
        NbdCommand::Read { range, whole } => (command::READ, flag(whole, command_flag::DF), range),
        NbdCommand::Write(range) => (command::WRITE, 0, range),
        NbdCommand::Trim(range) => (command::TRIM, 0, range),
        NbdCommand::Cache(range) => (command::CACHE, 0, range),
        NbdCommand::Zero { range, keep_space, fast } => {
            let keep = flag(keep_space, command_flag::NO_HOLE);
            (command::WRITE_ZEROES, keep | flag(fast, command_flag::FAST_ZERO), range)
        }
        NbdCommand::BlockStatus { range, single_extent } => {
            (command::BLOCK_STATUS, flag(single_extent, command_flag::REQ_ONE), range)
        }
    };
    (kind, flags, (range.offset, range.length))
}

/// What one step of reading led to.
enum ClientStep<'a> {
    /// More bytes must come.
    Wait,
    /// On to the next step.
    Go,
    /// Something for the caller.
    Event(ClientEvent<'a>),
}

/// Longest answer to an option that a client reads.
const MAX_ANSWER: u32 = 64 << 10;

/// What an answer led to.
enum HelloOutcome {
    Go,
    StartTls,
    Opened(Opened),
    Fault(ReplyFault),
}

/// A negotiation whose answer to `option` is awaited.
#[derive(Clone, Debug)]
struct Hello {
    option: u32,
    /// Type and length of the answer whose header has come.
    header: Option<(u32, u32)>,
    opened: Opened,
}

impl Hello {
    /// Asks for TLS.
    fn begin_tls(out: &mut Vec<u8>) -> Hello {
        ask(option::STARTTLS, &[], out);
        Hello { option: option::STARTTLS, header: None, opened: Opened::default() }
    }

    /// Asks for the first option that the settings want.
    fn begin(settings: &ClientSettings, out: &mut Vec<u8>) -> Hello {
        let mut hello = Hello { option: 0, header: None, opened: Opened::default() };
        hello.ask_after(option::STARTTLS, settings, out);
        hello
    }

    /// Asks for what comes after `option`.
    fn ask_after(&mut self, last: u32, settings: &ClientSettings, out: &mut Vec<u8>) {
        let framed = self.opened.format != Format::Simple;
        let extended = last == option::STARTTLS && settings.extended_headers;
        let structured = settings.structured || settings.extended_headers;
        let before_contexts = last == option::STARTTLS || last == option::EXTENDED_HEADERS;
        self.option = if extended {
            option::EXTENDED_HEADERS
        } else if before_contexts && structured && !framed {
            option::STRUCTURED_REPLY
        } else if last != option::SET_META_CONTEXT && framed && !settings.contexts.is_empty() {
            option::SET_META_CONTEXT
        } else {
            option::GO
        };
        let mut data = Vec::new();
        match self.option {
            option::SET_META_CONTEXT => {
                data.put_string(&settings.export);
                data.put_u32(settings.contexts.len() as u32);
                settings.contexts.iter().for_each(|context| data.put_string(context));
            }
            option::GO => {
                data.put_string(&settings.export);
                data.put_u16(1);
                data.put_u16(info::BLOCK_SIZE);
            }
            _ => {}
        }
        ask(self.option, &data, out);
    }

    /// Reads one answer; `None` when more must come.
    fn next(
        &mut self,
        input: &mut &[u8],
        partial: &mut Partial,
        settings: &ClientSettings,
        out: &mut Vec<u8>,
    ) -> Option<HelloOutcome> {
        let (kind, length) = match self.header {
            Some(header) => header,
            None => {
                if !partial.fill(input, 20) {
                    return None;
                }
                let header = self.read_header(partial.bytes());
                partial.clear();
                match header {
                    Ok(header) => *self.header.insert(header),
                    Err(fault) => return Some(HelloOutcome::Fault(fault)),
                }
            }
        };
        if !partial.fill(input, length as usize) {
            return None;
        }
        self.header = None;
        let outcome = self.answered(kind, partial.bytes(), settings, out);
        partial.clear();
        Some(outcome)
    }

    fn read_header(&self, bytes: &[u8]) -> Result<(u32, u32), ReplyFault> {
        let mut reader = WireReader(bytes);
        let (found, expected) = (reader.u64().unwrap_or_default(), protocol::OPTION_REPLY_MAGIC);
        if found != expected {
            return Err(ReplyFault::Magic { found, expected });
        }
        let option = reader.u32().unwrap_or_default();
        if option != self.option {
            return Err(ReplyFault::Option { found: option, expected: self.option });
        }
        let (kind, length) = (reader.u32(), reader.u32().unwrap_or_default());
        if length > MAX_ANSWER {
            return Err(ReplyFault::TooLong {
                found: u64::from(length),
                limit: u64::from(MAX_ANSWER),
            });
        }
        Ok((kind.unwrap_or_default(), length))
    }

    fn answered(
        &mut self,
        kind: u32,
        data: &[u8],
        settings: &ClientSettings,
        out: &mut Vec<u8>,
    ) -> HelloOutcome {
        let must = matches!(self.option, option::GO | option::STARTTLS);
        if kind & answer::ERROR != 0 && must {
            let message = String::from_utf8_lossy(data).into_owned();
            return HelloOutcome::Fault(ReplyFault::Refused {
                code: kind & !answer::ERROR,
                message,
            });
        }
        match kind {
            answer::INFO => {
                self.note_info(data);
                return HelloOutcome::Go;
            }
            answer::META_CONTEXT => {
                let mut reader = WireReader(data);
                if let (Some(id), Ok(name)) = (reader.u32(), std::str::from_utf8(reader.0)) {
                    self.opened.contexts.push((id, name.to_owned()));
                }
                return HelloOutcome::Go;
            }
            answer::ACK if self.option == option::STARTTLS => return HelloOutcome::StartTls,
            answer::ACK if self.option == option::GO => {
                return HelloOutcome::Opened(std::mem::take(&mut self.opened));
            }
            answer::ACK if self.option == option::STRUCTURED_REPLY => {
                self.opened.format = Format::Structured;
            }
            answer::ACK if self.option == option::EXTENDED_HEADERS => {
                self.opened.format = Format::Extended;
            }
            _ => {}
        }
        self.ask_after(self.option, settings, out);
        HelloOutcome::Go
    }

    fn note_info(&mut self, data: &[u8]) {
        let mut reader = WireReader(data);
        match reader.u16() {
            Some(info::EXPORT) => {
                self.opened.size = reader.u64().unwrap_or_default();
                self.opened.flags = reader.u16().unwrap_or_default();
            }
            Some(info::BLOCK_SIZE) => {
                let sizes = (reader.u32(), reader.u32(), reader.u32());
                if let (Some(min), Some(preferred), Some(max_payload)) = sizes {
                    self.opened.blocks = Some(BlockSizes { min, preferred, max_payload });
                }
            }
            _ => {}
        }
    }
}

fn ask(option: u32, data: &[u8], out: &mut Vec<u8>) {
    out.put_u64(protocol::OPTION_MAGIC);
    out.put_u32(option);
    out.put_u32(data.len() as u32);
    out.extend_from_slice(data);
}

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
struct Awaited {
    kind: u16,
    offset: u64,
    length: u64,
    /// Bytes of content so far.
    come: u64,
    error: Option<Errno>,
}

impl Awaited {
    fn new(kind: u16, offset: u64, length: u64) -> Awaited {
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
enum Incoming {
    /// The header of a reply.
    #[default]
    Header,
    /// The content of a chunk.
    Content(ChunkContent),
    /// Data that is handed on as it comes.
    Data(DataContent),
}

#[derive(Clone, Copy, Debug)]
struct ChunkContent(ReplyChunk);

#[derive(Clone, Copy, Debug)]
struct DataContent {
    cookie: u64,
    offset: u64,
    left: u64,
    last: bool,
}

type Requests = BTreeMap<u64, Awaited>;

impl Incoming {
    fn next<'a>(
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
