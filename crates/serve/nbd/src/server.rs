//! The server's side of one connection: what a client sent becomes events.
//!
//! Source: proto.md, "Option haggling", "Option types", "Request message" and "Request types". At
//! most one header, of 28 or 32 bytes, or one option's data is kept. A payload is handed on as it
//! comes. Answers to options are bounded: an export has at most 32 contexts, and a query adds no
//! answer that another query has already. After [`SessionEvent::Violation`] nothing more is read.

use crate::protocol::{
    self, Errno, Export, Exports, Format, Limits, MAX_STRING, NbdCommand, NbdRequest, Partial, Put,
    Range, Replies, WireReader, command, command_flag, handshake, info, option,
    option_reply as answer,
};
use thiserror::Error;

/// What a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent<'a> {
    /// TLS begins now: the caller sends what was written, shakes hands, and calls
    /// [`Session::secured`].
    StartTls,
    /// The client has chosen the export of this name; requests follow.
    Opened(String),
    /// A valid request. The payload of a write follows.
    Request(NbdRequest),
    /// The next bytes of the last write's payload; `last` when it is complete.
    Payload {
        /// Bytes in the order of the volume.
        bytes: &'a [u8],
        /// Whether none are left.
        last: bool,
    },
    /// The client wants no more: requests under way are finished, then the connection is closed.
    Disconnect,
    /// An option was answered, or a request refused: what was written can be sent before more is
    /// read.
    Answered,
    /// The client broke the protocol: the connection is closed at once.
    Violation(Violation),
}

/// Where a connection stands.
#[derive(Clone, Debug)]
enum SessionPhase {
    ClientFlags,
    OptionHeader,
    OptionData { option: u32, length: u32 },
    SkipOption { option: u32, left: u32 },
    AwaitTls,
    Header,
    Payload { left: u64 },
    SkipPayload { left: u64, refused: NbdRequest, refusal: RequestRefusal },
    Closed,
}

/// One connection to a server.
#[derive(Clone, Debug)]
pub struct Session {
    settings: Settings,
    phase: SessionPhase,
    partial: Partial,
    /// The flags with which the client began, which no option changes.
    client_flags: u32,
    negotiation: Negotiation,
    chosen: Chosen,
    /// Requests that have come whole.
    whole_requests: u64,
}

impl Session {
    /// A new connection; the greeting is appended to `out`.
    pub fn new(settings: Settings, out: &mut Vec<u8>) -> Session {
        out.put_u64(protocol::GREETING);
        out.put_u64(protocol::OPTION_MAGIC);
        out.put_u16(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        Session {
            settings,
            phase: SessionPhase::ClientFlags,
            partial: Partial::default(),
            client_flags: 0,
            negotiation: Negotiation::new(settings, 0),
            chosen: Chosen::default(),
            whole_requests: 0,
        }
    }

    /// Takes bytes from `input` up to the next event; `None` when more must come first. Answers of
    /// the negotiation, and to requests that are refused, are appended to `out`.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Option<SessionEvent<'a>> {
        loop {
            let step = match self.phase {
                SessionPhase::ClientFlags => self.client_flags(input),
                SessionPhase::OptionHeader => self.option_header(input),
                SessionPhase::OptionData { option, length } => {
                    self.option_data(option, length, input, exports, out)
                }
                SessionPhase::SkipOption { option, left } => {
                    self.skip_option(option, left, input, out)
                }
                SessionPhase::AwaitTls if input.is_empty() => SessionProgress::Wait,
                SessionPhase::AwaitTls => self.close(Violation::ClearAfterTls),
                SessionPhase::Header => self.header(input, out),
                SessionPhase::Payload { left } => self.payload(left, input),
                SessionPhase::SkipPayload { left, refused, refusal } => {
                    self.skip_payload(left, refused, refusal, input, out)
                }
                SessionPhase::Closed => SessionProgress::Wait,
            };
            match step {
                SessionProgress::Wait => return None,
                SessionProgress::Go => {}
                SessionProgress::Event(event) => return Some(event),
            }
        }
    }

    /// TLS is up: options of the clear are forgotten. The client's flags are no option: they hold.
    pub fn secured(&mut self) {
        if matches!(self.phase, SessionPhase::AwaitTls) {
            self.negotiation = Negotiation::new(self.settings, self.client_flags);
            self.negotiation.secure = true;
            self.phase = SessionPhase::OptionHeader;
        }
    }

    /// How the replies of this connection are written.
    pub fn replies(&self) -> Replies {
        self.chosen.replies
    }

    /// Ids of the contexts that a request for block status is answered with.
    pub fn contexts(&self) -> impl Iterator<Item = u32> + use<> {
        let chosen = self.chosen.contexts;
        (0..32).filter(move |id| chosen >> id & 1 == 1)
    }

    /// Payload bytes of the last write that are still to come. A caller may receive them straight
    /// into its own buffer and report that by [`Session::received`].
    pub fn payload_left(&self) -> u64 {
        if let SessionPhase::Payload { left } = self.phase { left } else { 0 }
    }

    /// So many bytes of the payload were received without [`Session::next`]; more than
    /// [`Session::payload_left`] are ignored.
    pub fn received(&mut self, bytes: u64) {
        if let SessionPhase::Payload { left } = self.phase {
            self.after_payload(left.saturating_sub(bytes));
        }
    }

    /// Requests that have come whole, with their payloads, refused ones among them.
    pub fn whole_requests(&self) -> u64 {
        self.whole_requests
    }

    /// Whether a part of a message has come: bytes of a header, or a header without all of what
    /// belongs behind it.
    pub fn is_within_message(&self) -> bool {
        match self.phase {
            SessionPhase::ClientFlags | SessionPhase::OptionHeader | SessionPhase::Header => {
                !self.partial.bytes().is_empty()
            }
            SessionPhase::OptionData { .. }
            | SessionPhase::SkipOption { .. }
            | SessionPhase::Payload { .. }
            | SessionPhase::SkipPayload { .. } => true,
            SessionPhase::AwaitTls | SessionPhase::Closed => false,
        }
    }

    fn close<'a>(&mut self, violation: Violation) -> SessionProgress<'a> {
        self.phase = SessionPhase::Closed;
        self.partial.clear();
        SessionProgress::Event(SessionEvent::Violation(violation))
    }

    fn client_flags<'a>(&mut self, input: &mut &'a [u8]) -> SessionProgress<'a> {
        if !self.partial.fill(input, 4) {
            return SessionProgress::Wait;
        }
        let found = WireReader(self.partial.bytes()).u32().unwrap_or_default();
        self.partial.clear();
        let known = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        if found & !known != 0 {
            return self.close(Violation::ClientFlags { found });
        }
        self.client_flags = found;
        self.negotiation = Negotiation::new(self.settings, found);
        self.phase = SessionPhase::OptionHeader;
        SessionProgress::Go
    }

    fn option_header<'a>(&mut self, input: &mut &'a [u8]) -> SessionProgress<'a> {
        if !self.partial.fill(input, 16) {
            return SessionProgress::Wait;
        }
        let mut reader = WireReader(self.partial.bytes());
        let numbers = (reader.u64(), reader.u32(), reader.u32());
        self.partial.clear();
        let (Some(found), Some(option), Some(length)) = numbers else {
            return SessionProgress::Wait;
        };
        let expected = protocol::OPTION_MAGIC;
        if found != expected {
            return self.close(Violation::Magic { found, expected });
        }
        let Limits { option_bytes, skipped_bytes, options, .. } = self.settings.limits;
        self.negotiation.options += 1;
        if self.negotiation.options > options {
            return self.close(Violation::TooManyOptions { limit: options });
        }
        if length > skipped_bytes {
            let (what, limit) = ("an option's data", u64::from(skipped_bytes));
            return self.close(Violation::TooLong { what, found: u64::from(length), limit });
        }
        self.phase = if length > option_bytes {
            SessionPhase::SkipOption { option, left: length }
        } else {
            SessionPhase::OptionData { option, length }
        };
        SessionProgress::Go
    }

    fn skip_option<'a>(
        &mut self,
        option: u32,
        left: u32,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> SessionProgress<'a> {
        let count = (left as usize).min(input.len());
        *input = &input[count..];
        let left = left - count as u32;
        if left > 0 {
            self.phase = SessionPhase::SkipOption { option, left };
            return SessionProgress::Wait;
        }
        self.negotiation.too_big(option, out);
        self.phase = SessionPhase::OptionHeader;
        SessionProgress::Event(SessionEvent::Answered)
    }

    fn option_data<'a>(
        &mut self,
        option: u32,
        length: u32,
        input: &mut &'a [u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> SessionProgress<'a> {
        if !self.partial.fill(input, length as usize) {
            return SessionProgress::Wait;
        }
        let step = self.negotiation.option(option, self.partial.bytes(), exports, out);
        self.partial.clear();
        match step {
            OptionOutcome::Go => {
                self.phase = SessionPhase::OptionHeader;
                SessionProgress::Event(SessionEvent::Answered)
            }
            OptionOutcome::StartTls => {
                self.phase = SessionPhase::AwaitTls;
                SessionProgress::Event(SessionEvent::StartTls)
            }
            OptionOutcome::Open(chosen) => {
                self.phase = SessionPhase::Header;
                let name = chosen.name.clone();
                self.chosen = chosen;
                SessionProgress::Event(SessionEvent::Opened(name))
            }
            OptionOutcome::Abort => {
                self.phase = SessionPhase::Closed;
                SessionProgress::Event(SessionEvent::Disconnect)
            }
            OptionOutcome::Violation(violation) => self.close(violation),
        }
    }

    fn header<'a>(&mut self, input: &mut &'a [u8], out: &mut Vec<u8>) -> SessionProgress<'a> {
        let extended = self.chosen.extended;
        if !self.partial.fill(input, if extended { 32 } else { 28 }) {
            return SessionProgress::Wait;
        }
        let header = RequestHeader::parse(self.partial.bytes(), extended);
        self.partial.clear();
        let header = match header {
            Ok(header) => header,
            Err(violation) => return self.close(violation),
        };
        if header.kind == protocol::command::DISCONNECT {
            self.phase = SessionPhase::Closed;
            return SessionProgress::Event(SessionEvent::Disconnect);
        }
        let payload = header.payload(extended);
        let limit = 2 * u64::from(self.settings.limits.payload_bytes);
        if payload > limit {
            let what = "a payload";
            return self.close(Violation::TooLong { what, found: payload, limit });
        }
        let limits = &self.settings.limits;
        match check(&header, &self.chosen, limits) {
            Ok(request) => {
                self.after_payload(payload);
                SessionProgress::Event(SessionEvent::Request(request))
            }
            Err(refusal) => {
                self.phase =
                    SessionPhase::SkipPayload { left: payload, refused: header.refused(), refusal };
                self.skip_payload(payload, header.refused(), refusal, input, out)
            }
        }
    }

    fn after_payload(&mut self, left: u64) {
        match left {
            0 => self.end_request(),
            left => self.phase = SessionPhase::Payload { left },
        }
    }

    fn end_request(&mut self) {
        self.whole_requests += 1;
        self.phase = SessionPhase::Header;
    }

    fn payload<'a>(&mut self, left: u64, input: &mut &'a [u8]) -> SessionProgress<'a> {
        if input.is_empty() {
            return SessionProgress::Wait;
        }
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        let (bytes, rest) = input.split_at(count);
        *input = rest;
        let left = left - count as u64;
        self.after_payload(left);
        SessionProgress::Event(SessionEvent::Payload { bytes, last: left == 0 })
    }

    /// Skips the payload of a refused request and answers it.
    fn skip_payload<'a>(
        &mut self,
        left: u64,
        refused: NbdRequest,
        refusal: RequestRefusal,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
    ) -> SessionProgress<'a> {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        *input = &input[count..];
        let left = left - count as u64;
        if left > 0 {
            self.phase = SessionPhase::SkipPayload { left, refused, refusal };
            return SessionProgress::Wait;
        }
        self.chosen.replies.error(&refused, refusal.errno, refusal.message, out);
        self.end_request();
        SessionProgress::Event(SessionEvent::Answered)
    }
}

/// What one step of reading led to.
enum SessionProgress<'a> {
    /// More bytes must come.
    Wait,
    /// On to the next step.
    Go,
    /// Something for the caller.
    Event(SessionEvent<'a>),
}

/// Whether a connection must be secure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tls {
    /// There is no TLS here.
    #[default]
    Off,
    /// A client may begin TLS.
    Available,
    /// A client must begin TLS before it sees anything.
    Required,
}

/// How a server negotiates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bounds of a connection.
    pub limits: Limits,
    /// Whether a connection must be secure.
    pub tls: Tls,
    /// Whether 32-byte headers are offered; the protocol's document calls them experimental.
    pub extended_headers: bool,
}

/// What an option led to.
enum OptionOutcome {
    Go,
    StartTls,
    Open(Chosen),
    Abort,
    Violation(Violation),
}

/// What was agreed for an export.
#[derive(Clone, Debug, Default)]
struct Chosen {
    name: String,
    size: u64,
    min_block: u32,
    read_only: bool,
    fast_zero: bool,
    /// A bit per context that was chosen.
    contexts: u32,
    extended: bool,
    replies: Replies,
}

/// The state of a negotiation.
#[derive(Clone, Debug)]
struct Negotiation {
    settings: Settings,
    secure: bool,
    /// The client does without the zeroes behind the old way of choosing an export.
    no_zeroes: bool,
    /// Options so far.
    options: u32,
    format: Format,
    /// The export whose contexts were chosen, and which.
    contexts: Option<(String, u32)>,
}

impl Negotiation {
    /// A negotiation with a client that has these flags.
    fn new(settings: Settings, client_flags: u32) -> Negotiation {
        Negotiation {
            settings,
            secure: false,
            no_zeroes: client_flags & u32::from(handshake::NO_ZEROES) != 0,
            options: 0,
            format: Format::Simple,
            contexts: None,
        }
    }

    /// Answers an option whose data was too long to be read.
    fn too_big(&self, option: u32, out: &mut Vec<u8>) {
        error(option, answer::TOO_BIG, "the option's data is too long", out);
    }

    /// Answers one option.
    fn option(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> OptionOutcome {
        let clear = self.settings.tls == Tls::Required && !self.secure;
        if clear && !matches!(option, option::STARTTLS | option::ABORT | option::EXPORT_NAME) {
            error(option, answer::TLS_REQUIRED, "this server needs TLS", out);
            return OptionOutcome::Go;
        }
        match option {
            option::ABORT => {
                reply(option, answer::ACK, &[], out);
                return OptionOutcome::Abort;
            }
            option::EXPORT_NAME if clear => {
                return OptionOutcome::Violation(Violation::UnknownExport);
            }
            option::EXPORT_NAME => return self.open_by_name(data, exports, out),
            option::STARTTLS => return self.start_tls(data, out),
            option::LIST => list(self.secure, data, exports, out),
            option::STRUCTURED_REPLY => self.frame(option, Format::Structured, data, out),
            option::EXTENDED_HEADERS if self.settings.extended_headers => {
                self.frame(option, Format::Extended, data, out);
            }
            option::INFO | option::GO => return self.info(option, data, exports, out),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                self.meta_context(option, data, exports, out);
            }
            _ => error(option, answer::UNSUPPORTED, "the option is not known here", out),
        }
        OptionOutcome::Go
    }

    fn start_tls(&mut self, data: &[u8], out: &mut Vec<u8>) -> OptionOutcome {
        let option = option::STARTTLS;
        if self.settings.tls == Tls::Off {
            error(option, answer::UNSUPPORTED, "this server has no TLS", out);
        } else if self.secure || !data.is_empty() {
            error(option, answer::INVALID, "TLS is up already, or the option has data", out);
        } else {
            reply(option, answer::ACK, &[], out);
            return OptionOutcome::StartTls;
        }
        OptionOutcome::Go
    }

    /// Chooses how replies and requests are framed.
    fn frame(&mut self, option: u32, format: Format, data: &[u8], out: &mut Vec<u8>) {
        if !data.is_empty() {
            error(option, answer::INVALID, "the option has no data", out);
        } else if self.format == Format::Extended && format == Format::Structured {
            let message = "extended headers are chosen already";
            error(option, answer::EXTENDED_HEADERS_REQUIRED, message, out);
        } else {
            self.format = format;
            reply(option, answer::ACK, &[], out);
        }
    }

    /// The old way: the answer has no room for errors.
    fn open_by_name(
        &mut self,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> OptionOutcome {
        let name = std::str::from_utf8(data).ok().filter(|name| name.len() <= MAX_STRING);
        let Some(export) = name.and_then(|name| exports.find(name, self.secure)) else {
            return OptionOutcome::Violation(Violation::UnknownExport);
        };
        if !exports.has_place(export) {
            return OptionOutcome::Violation(Violation::NoPlace);
        }
        out.put_u64(export.size);
        out.put_u16(export.flags(self.format != Format::Simple));
        if !self.no_zeroes {
            out.resize(out.len() + 124, 0);
        }
        OptionOutcome::Open(self.chosen(export))
    }

    fn chosen(&self, export: &Export) -> Chosen {
        let contexts = self.contexts.as_ref().filter(|(name, _)| *name == export.name);
        Chosen {
            name: export.name.clone(),
            size: export.size,
            min_block: export.blocks.min,
            read_only: export.read_only,
            fast_zero: export.fast_zero,
            contexts: contexts.map_or(0, |(_, contexts)| *contexts),
            extended: self.format == Format::Extended,
            replies: Replies::new(self.format),
        }
    }

    fn info(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> OptionOutcome {
        let Some((name, wanted)) = info_request(data) else {
            error(option, answer::INVALID, "expected a name and a list of facts", out);
            return OptionOutcome::Go;
        };
        let Some(export) = exports.find(name, self.secure) else {
            error(option, answer::UNKNOWN, "there is no such export", out);
            return OptionOutcome::Go;
        };
        if option == option::GO && !exports.has_place(export) {
            error(option, answer::POLICY, "the export has all the connections it may have", out);
            return OptionOutcome::Go;
        }
        let mut fact = Vec::new();
        fact.put_u16(info::EXPORT);
        fact.put_u64(export.size);
        fact.put_u16(export.flags(self.format != Format::Simple));
        reply(option, answer::INFO, &fact, out);
        for kind in [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE] {
            let is_queried = wanted.chunks_exact(2).any(|pair| pair == kind.to_be_bytes());
            let empty = kind == info::DESCRIPTION && export.description.is_empty();
            if !is_queried || empty {
                continue;
            }
            fact.clear();
            fact.put_u16(kind);
            match kind {
                info::NAME => fact.extend_from_slice(export.name.as_bytes()),
                info::DESCRIPTION => fact.extend_from_slice(export.description.as_bytes()),
                _ => {
                    fact.put_u32(export.blocks.min);
                    fact.put_u32(export.blocks.preferred);
                    fact.put_u32(export.blocks.max_payload);
                }
            }
            reply(option, answer::INFO, &fact, out);
        }
        reply(option, answer::ACK, &[], out);
        if option == option::GO {
            OptionOutcome::Open(self.chosen(export))
        } else {
            OptionOutcome::Go
        }
    }

    fn meta_context(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) {
        let set = option == option::SET_META_CONTEXT;
        if set {
            self.contexts = None;
        }
        if self.format == Format::Simple {
            error(option, answer::INVALID, "structured replies must be chosen first", out);
            return;
        }
        let mut reader = WireReader(data);
        let name = reader.string().filter(|name| name.len() <= MAX_STRING);
        let Some((name, count)) = name.zip(reader.u32()) else {
            error(option, answer::INVALID, "expected an export and a list of queries", out);
            return;
        };
        let Some(export) = exports.find(name, self.secure) else {
            error(option, answer::UNKNOWN, "there is no such export", out);
            return;
        };
        let Some(matched) = matching(export, reader, count, set) else {
            error(option, answer::INVALID, "the list of queries is malformed", out);
            return;
        };
        for (id, context) in export.contexts.iter().take(32).enumerate() {
            if matched >> id & 1 == 1 {
                let mut found = Vec::new();
                found.put_u32(id as u32);
                found.extend_from_slice(context.as_bytes());
                reply(option, answer::META_CONTEXT, &found, out);
            }
        }
        reply(option, answer::ACK, &[], out);
        if set {
            self.contexts = Some((export.name.clone(), matched));
        }
    }
}

/// The name and the wanted facts of an information request; `None` if it is malformed.
fn info_request(data: &[u8]) -> Option<(&str, &[u8])> {
    let mut reader = WireReader(data);
    let name = reader.string().filter(|name| name.len() <= MAX_STRING)?;
    let count = usize::from(reader.u16()?);
    let wanted = reader.take(2 * count)?;
    reader.is_empty().then_some((name, wanted))
}

/// A bit per context that a query asks for; without queries a list has all of them. `base:` asks
/// for a whole name space, in lists only. `None` if the data is malformed.
fn matching(export: &Export, mut queries: WireReader<'_>, count: u32, set: bool) -> Option<u32> {
    let names = || export.contexts.iter().take(32).enumerate();
    let mut matched = 0;
    for _ in 0..count {
        let query = queries.string().filter(|query| query.len() <= MAX_STRING)?;
        for (id, name) in names() {
            let space = !set && query.ends_with(':') && name.starts_with(query);
            matched |= u32::from(space || name == query) << id;
        }
    }
    if count == 0 && !set {
        names().for_each(|(id, _)| matched |= 1 << id);
    }
    queries.is_empty().then_some(matched)
}

fn list(secure: bool, data: &[u8], exports: &(impl Exports + ?Sized), out: &mut Vec<u8>) {
    if !data.is_empty() {
        error(option::LIST, answer::INVALID, "the option has no data", out);
        return;
    }
    exports.each(secure, &mut |export| {
        let mut server = Vec::new();
        server.put_string(&export.name);
        server.extend_from_slice(export.description.as_bytes());
        reply(option::LIST, answer::SERVER, &server, out);
    });
    reply(option::LIST, answer::ACK, &[], out);
}

fn reply(option: u32, kind: u32, data: &[u8], out: &mut Vec<u8>) {
    out.put_u64(protocol::OPTION_REPLY_MAGIC);
    out.put_u32(option);
    out.put_u32(kind);
    out.put_u32(data.len() as u32);
    out.extend_from_slice(data);
}

fn error(option: u32, kind: u32, message: &str, out: &mut Vec<u8>) {
    reply(option, kind, message.as_bytes(), out);
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestRefusal {
    errno: Errno,
    message: &'static str,
}

/// A request as it stands on the wire.
#[derive(Clone, Copy, Debug)]
struct RequestHeader {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
}

impl RequestHeader {
    /// Reads a complete header. Errors: another magic number.
    fn parse(bytes: &[u8], extended: bool) -> Result<RequestHeader, Violation> {
        let mut reader = WireReader(bytes);
        let compact = protocol::REQUEST_MAGIC;
        let expected = u64::from(if extended { protocol::EXTENDED_REQUEST_MAGIC } else { compact });
        let found = u64::from(reader.u32().unwrap_or_default());
        if found != expected {
            return Err(Violation::Magic { found, expected });
        }
        Ok(RequestHeader {
            flags: reader.u16().unwrap_or_default(),
            kind: reader.u16().unwrap_or_default(),
            cookie: reader.u64().unwrap_or_default(),
            offset: reader.u64().unwrap_or_default(),
            length: match extended {
                true => reader.u64().unwrap_or_default(),
                false => u64::from(reader.u32().unwrap_or_default()),
            },
        })
    }

    /// Bytes that follow the header.
    fn payload(&self, extended: bool) -> u64 {
        let follows = match extended {
            true => self.flags & command_flag::PAYLOAD_LENGTH != 0,
            false => self.kind == command::WRITE,
        };
        if follows { self.length } else { 0 }
    }

    /// What the answer to a refused request needs of it.
    fn refused(&self) -> NbdRequest {
        let (cookie, offset) = (self.cookie, self.offset);
        NbdRequest { cookie, offset, command: NbdCommand::Flush, fua: false }
    }
}

/// The request of a header, or why it is refused.
fn check(
    header: &RequestHeader,
    chosen: &Chosen,
    limits: &Limits,
) -> Result<NbdRequest, RequestRefusal> {
    let &RequestHeader { flags, kind, cookie, offset, length } = header;
    let has = |flag: u16| flags & flag != 0;
    if flags & !allowed_flags(kind, chosen) != 0 {
        return refuse(Errno::Inval, "a flag that the request does not have");
    }
    if chosen.extended && kind == command::WRITE && !has(command_flag::PAYLOAD_LENGTH) {
        return refuse(Errno::Inval, "a write without the flag for its payload's length");
    }
    if kind == command::FLUSH {
        return Ok(NbdRequest { cookie, offset: 0, command: NbdCommand::Flush, fua: true });
    }
    let range = Range { offset, length };
    let command = match kind {
        command::READ => NbdCommand::Read { range, whole: has(command_flag::DF) },
        command::WRITE => NbdCommand::Write(range),
        command::TRIM => NbdCommand::Trim(range),
        command::CACHE => NbdCommand::Cache(range),
        command::WRITE_ZEROES => NbdCommand::Zero {
            range,
            keep_space: has(command_flag::NO_HOLE),
            fast: has(command_flag::FAST_ZERO),
        },
        command::BLOCK_STATUS if chosen.contexts != 0 => {
            NbdCommand::BlockStatus { range, single_extent: has(command_flag::REQ_ONE) }
        }
        command::BLOCK_STATUS => {
            return refuse(Errno::Inval, "block status without a chosen context");
        }
        _ => return refuse(Errno::Inval, "an unknown command"),
    };
    check_range(&command, range, chosen, limits)?;
    if matches!(command, NbdCommand::Zero { fast: true, .. }) && !chosen.fast_zero {
        return refuse(Errno::NotSupported, "zeroes are no faster than writes here");
    }
    Ok(NbdRequest { cookie, offset, command, fua: has(command_flag::FUA) })
}

/// Flags that a command may have. Forced unit access is accepted, and may be ignored, on all.
fn allowed_flags(kind: u16, chosen: &Chosen) -> u16 {
    let payload = if chosen.extended { command_flag::PAYLOAD_LENGTH } else { 0 };
    let own = match kind {
        command::READ if chosen.replies.in_chunks() => command_flag::DF,
        command::WRITE => payload,
        command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
        command::BLOCK_STATUS => command_flag::REQ_ONE,
        _ => 0,
    };
    own | command_flag::FUA
}

fn check_range(
    command: &NbdCommand,
    range: Range,
    chosen: &Chosen,
    limits: &Limits,
) -> Result<(), RequestRefusal> {
    let changes =
        matches!(command, NbdCommand::Write(_) | NbdCommand::Trim(_) | NbdCommand::Zero { .. });
    if changes && chosen.read_only {
        return refuse(Errno::Perm, "the export is read-only");
    }
    if range.length == 0 {
        return refuse(Errno::Inval, "a range without bytes");
    }
    let beyond = range.offset.checked_add(range.length).is_none_or(|end| end > chosen.size);
    if beyond && matches!(command, NbdCommand::Write(_) | NbdCommand::Zero { .. }) {
        return refuse(Errno::NoSpace, "the range ends beyond the export");
    }
    if beyond {
        return refuse(Errno::Inval, "the range ends beyond the export");
    }
    if (range.offset | range.length) & (u64::from(chosen.min_block.max(1)) - 1) != 0 {
        return refuse(Errno::Inval, "the range is not a multiple of the minimum block size");
    }
    let carries = matches!(command, NbdCommand::Read { .. } | NbdCommand::Write(_));
    if carries && range.length > u64::from(limits.payload_bytes) {
        return refuse(Errno::Inval, "the range is longer than the maximum payload");
    }
    Ok(())
}

fn refuse<T>(errno: Errno, message: &'static str) -> Result<T, RequestRefusal> {
    Err(RequestRefusal { errno, message })
}

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
