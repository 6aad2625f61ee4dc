//! The client's negotiation: options one after the other until the export is open.
//!
//! For: [`super::Client`]. Must never know: requests. Units: bytes. The order is: framing, contexts
//! of block status, the export. A server that refuses framing or contexts is used without them; one
//! that refuses the export or TLS is a [`ReplyFault`].

use super::replies::ReplyFault;
use super::{ClientSettings, Opened};
use crate::BlockSizes;
use crate::protocol::{self, info, option, option_reply as answer};
use crate::reply::Format;
use crate::wire::{Partial, Put, WireReader};

/// Longest answer to an option that a client reads.
const MAX_ANSWER: u32 = 64 << 10;

/// What an answer led to.
pub(super) enum HelloOutcome {
    Go,
    StartTls,
    Opened(Opened),
    Fault(ReplyFault),
}

/// A negotiation whose answer to `option` is awaited.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    option: u32,
    /// Type and length of the answer whose header has come.
    header: Option<(u32, u32)>,
    opened: Opened,
}

impl Hello {
    /// Asks for TLS.
    pub(super) fn begin_tls(out: &mut Vec<u8>) -> Hello {
        ask(option::STARTTLS, &[], out);
        Hello { option: option::STARTTLS, header: None, opened: Opened::default() }
    }

    /// Asks for the first option that the settings want.
    pub(super) fn begin(settings: &ClientSettings, out: &mut Vec<u8>) -> Hello {
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
    pub(super) fn next(
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
