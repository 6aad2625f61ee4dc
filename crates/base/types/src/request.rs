//! One block-layer request as every room sees it.
//!
//! For: the request noun. Must never know: where it came from. Units: nanoseconds, bytes.

use crate::{Bytes, Nanos, TenantId};

/// What a request asks of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Op {
    /// Read bytes.
    #[default]
    Read = 0,
    /// Write bytes.
    Write = 1,
    /// Discard or write-zeroes: the bytes are no longer needed.
    Trim = 2,
    /// Make earlier writes durable; carries no bytes.
    Flush = 3,
}

impl Op {
    /// All kinds, in the order of their stored numbers.
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

    /// The kind stored as `number`, or nothing for an unknown one.
    pub fn from_number(number: u8) -> Option<Op> {
        Op::ALL.get(usize::from(number)).copied()
    }

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::Flush => "flush",
        }
    }
}

/// One request of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Arrival since the start of the workload.
    pub time: Nanos,
    /// First byte on the tenant's volume.
    pub offset: Bytes,
    /// Length; 0 for a flush.
    pub length: Bytes,
    /// What is asked.
    pub op: Op,
    /// The tenant that sends it.
    pub tenant: TenantId,
}
