//! The client's side of one connection: what a server sent becomes events.
//!
//! For: tools and tests that use an export. Must never know: sockets. Units: bytes. Invariants:
//! data is handed on as it comes and never held. An answer to no sent request, or with more data
//! than requested, is a [`ReplyFault`].

mod hello;
mod replies;

pub use replies::ReplyFault;

use crate::protocol::{self, command, command_flag, handshake};
use crate::reply::{Format, StatusExtent};
use crate::request::{NbdCommand, NbdRequest};
use crate::wire::{Partial, Put, WireReader};
use crate::{BlockSizes, Errno};
use hello::Hello;
use replies::{Awaited, Incoming};
use std::collections::BTreeMap;

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
        let (kind, mut flags, range) = wire_form(&request.command);
        flags |= if request.fua && kind != command::FLUSH { command_flag::FUA } else { 0 };
        if extended && kind == command::WRITE {
            flags |= command_flag::PAYLOAD_LENGTH;
        }
        let compact = protocol::REQUEST_MAGIC;
        out.put_u32(if extended { protocol::EXTENDED_REQUEST_MAGIC } else { compact });
        out.put_u16(flags);
        out.put_u16(kind);
        out.put_u64(request.cookie);
        out.put_u64(range.0);
        if extended {
            out.put_u64(range.1);
        } else {
            out.put_u32(range.1 as u32);
        }
        self.awaited.insert(request.cookie, Awaited::new(kind, range));
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

    fn after_hello<'a>(&mut self, step: hello::HelloOutcome) -> ClientStep<'a> {
        match step {
            hello::HelloOutcome::Go => ClientStep::Go,
            hello::HelloOutcome::StartTls => {
                self.phase = ClientPhase::AwaitTls;
                ClientStep::Event(ClientEvent::StartTls)
            }
            hello::HelloOutcome::Opened(opened) => {
                self.opened = opened.clone();
                self.phase = ClientPhase::Open(Incoming::default());
                ClientStep::Event(ClientEvent::Opened(opened))
            }
            hello::HelloOutcome::Fault(fault) => ClientStep::Event(ClientEvent::Fault(fault)),
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
