//! Options: how a client finds and opens an export.
//!
//! For: the session of a server. Must never know: framing, requests. Units: bytes. Source:
//! proto.md, "Option haggling" and "Option types". Answers are bounded: an export's contexts are
//! at most 32, and a query adds no answer that another query has already.

use super::settings::{Settings, Tls};
use super::violation::Violation;
use crate::export::{Export, Exports};
use crate::limits::MAX_STRING;
use crate::protocol::{self, handshake, info, option, option_reply as answer};
use crate::reply::{Format, Replies};
use crate::wire::{Put, WireReader};

/// What an option led to.
pub(super) enum OptionOutcome {
    Go,
    StartTls,
    Open(Chosen),
    Abort,
    Violation(Violation),
}

/// What was agreed for an export.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) min_block: u32,
    pub(super) read_only: bool,
    pub(super) fast_zero: bool,
    /// A bit per context that was chosen.
    pub(super) contexts: u32,
    pub(super) extended: bool,
    pub(super) replies: Replies,
}

/// The state of a negotiation.
#[derive(Clone, Debug)]
pub(super) struct Negotiation {
    settings: Settings,
    pub(super) secure: bool,
    /// The client does without the zeroes behind the old way of choosing an export.
    no_zeroes: bool,
    /// Options so far.
    pub(super) options: u32,
    format: Format,
    /// The export whose contexts were chosen, and which.
    contexts: Option<(String, u32)>,
}

impl Negotiation {
    /// A negotiation with a client that has these flags.
    pub(super) fn new(settings: Settings, client_flags: u32) -> Negotiation {
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
    pub(super) fn too_big(&self, option: u32, out: &mut Vec<u8>) {
        error(option, answer::TOO_BIG, "the option's data is too long", out);
    }

    /// Answers one option.
    pub(super) fn option(
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
