//! The server's side of one connection: what a client sent becomes events.
//!
//! For: servers of any kind of I/O. Must never know: sockets, what an export holds. Units: bytes.
//! Invariants: at most one header or one option's data is held. A payload is handed on as it comes
//! and never held. After [`SessionEvent::Violation`] nothing more is read.

mod header;
mod negotiation;
mod settings;
mod violation;

pub use settings::{Settings, Tls};
pub use violation::Violation;

use crate::export::Exports;
use crate::limits::Limits;
use crate::protocol::{self, handshake};
use crate::reply::Replies;
use crate::request::NbdRequest;
use crate::wire::{Partial, Put, WireReader};
use header::{RequestHeader, RequestRefusal};
use negotiation::{Chosen, Negotiation, OptionOutcome};

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
                    self.skip_payload(left, (refused, refusal), input, out)
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

    /// The export has grown or shrunk.
    pub fn set_size(&mut self, bytes: u64) {
        self.chosen.size = bytes;
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
        match header::check(&header, &self.chosen, limits) {
            Ok(request) => {
                self.after_payload(payload);
                SessionProgress::Event(SessionEvent::Request(request))
            }
            Err(refusal) => {
                self.phase =
                    SessionPhase::SkipPayload { left: payload, refused: header.refused(), refusal };
                let refused = (header.refused(), refusal);
                self.skip_payload(payload, refused, input, out)
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
        (refused, refusal): (NbdRequest, RequestRefusal),
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
