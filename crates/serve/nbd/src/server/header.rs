//! Headers of requests, of 28 or 32 bytes, and the checks that each must pass.
//!
//! For: the session of a server. Must never know: negotiation, payloads. Units: bytes. Source:
//! proto.md, "Request message" and "Request types".

use super::negotiation::Chosen;
use super::violation::Violation;
use crate::limits::Limits;
use crate::protocol::{self, Errno, command, command_flag};
use crate::request::{NbdCommand, NbdRequest, Range};
use crate::wire::WireReader;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestRefusal {
    pub(super) errno: Errno,
    pub(super) message: &'static str,
}

/// A request as it stands on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHeader {
    flags: u16,
    pub(super) kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
}

impl RequestHeader {
    /// Reads a complete header. Errors: another magic number.
    pub(super) fn parse(bytes: &[u8], extended: bool) -> Result<RequestHeader, Violation> {
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
    pub(super) fn payload(&self, extended: bool) -> u64 {
        let follows = match extended {
            true => self.flags & command_flag::PAYLOAD_LENGTH != 0,
            false => self.kind == command::WRITE,
        };
        if follows { self.length } else { 0 }
    }

    /// What the answer to a refused request needs of it.
    pub(super) fn refused(&self) -> NbdRequest {
        let (cookie, offset) = (self.cookie, self.offset);
        NbdRequest { cookie, offset, command: NbdCommand::Flush, fua: false }
    }
}

/// The request of a header, or why it is refused.
pub(super) fn check(
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
