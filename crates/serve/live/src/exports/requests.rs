//! Requests of clients between a connection and the server of blocks.
//!
//! For: whom an answer belongs to, and what was answered. Must never know: bytes on the wire,
//! caches. Units: bytes, nanoseconds.

use super::connection::ConnectionId;
use super::meters::ExportMeter;
use super::status::CONTEXTS;
use crate::blocks::{BlockAnswer, BlockOp};
use crate::io::IoError;
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range};
use cachewright_types::TenantId;
use slab::Slab;

/// A request that the server of blocks works on.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest {
    /// Where its answer goes.
    pub connection: ConnectionId,
    /// As the client sent it.
    pub request: NbdRequest,
    /// Whose volume it is for.
    pub tenant: TenantId,
    /// When it arrived, in nanoseconds.
    pub arrived_ns: u64,
    /// Bytes of memory that it takes.
    pub bytes: u64,
}

/// The requests under way, by tag, and what was answered, by tenant.
pub struct ClientRequests {
    under_way: Slab<ClientRequest>,
    meters: Vec<ExportMeter>,
}

impl ClientRequests {
    /// None yet, of so many tenants.
    pub fn new(tenants: usize) -> ClientRequests {
        let meters = vec![ExportMeter::default(); tenants];
        ClientRequests { under_way: Slab::default(), meters }
    }

    /// One more tenant has an export.
    pub fn add_tenant(&mut self) {
        self.meters.push(ExportMeter::default());
    }

    /// A request begins; returns its tag.
    pub fn begin(&mut self, request: ClientRequest) -> u64 {
        self.under_way.insert(request) as u64
    }

    /// A request that is under way.
    pub fn get(&self, tag: u64) -> Option<&ClientRequest> {
        self.under_way.get(tag as usize)
    }

    /// A request is answered; returns it, and how long that took, if it was under way.
    pub fn end(&mut self, answer: &BlockAnswer, now_ns: u64) -> Option<(ClientRequest, u64)> {
        let client = self.under_way.try_remove(answer.tag as usize)?;
        let waited_ns = now_ns.saturating_sub(client.arrived_ns);
        let meter = &mut self.meters[client.tenant.index()];
        meter.note(client.request.command, waited_ns, answer.result.is_err());
        Some((client, waited_ns))
    }

    /// A request is dropped without an answer; returns it, if it was under way.
    pub fn forget(&mut self, tag: u64) -> Option<ClientRequest> {
        self.under_way.try_remove(tag as usize)
    }

    /// Reads and writes of a tenant's clients are to keep this time from now on, or none.
    pub fn set_limit(&mut self, tenant: TenantId, limit_ns: Option<u64>) {
        self.meters[tenant.index()].set_limit(limit_ns);
    }

    /// What was answered to clients of a tenant's export.
    pub fn meter(&self, tenant: TenantId) -> &ExportMeter {
        &self.meters[tenant.index()]
    }
}

/// What the server of blocks is to do for a command; nothing for one that it has no part in.
pub fn block_op(command: NbdCommand) -> Option<(BlockOp, Range)> {
    let nothing = Range { offset: 0, length: 0 };
    match command {
        NbdCommand::Read { range, .. } | NbdCommand::Cache(range) => Some((BlockOp::Read, range)),
        NbdCommand::Write(range) => Some((BlockOp::Write, range)),
        NbdCommand::Flush => Some((BlockOp::Flush, nothing)),
        NbdCommand::Trim(range) => Some((BlockOp::Trim, range)),
        NbdCommand::Zero { range, keep_space: false, .. } => Some((BlockOp::Zero, range)),
        NbdCommand::Zero { range, keep_space: true, .. } => Some((BlockOp::Provision, range)),
        NbdCommand::BlockStatus { .. } => None,
    }
}

/// Bytes of data that a request or its answer has in memory.
pub fn data_bytes(command: NbdCommand) -> u64 {
    match command {
        NbdCommand::Read { range, .. } | NbdCommand::Write(range) | NbdCommand::Cache(range) => {
            range.length
        }
        _ => 0,
    }
}

/// Bytes in which a request itself is kept.
const KEPT_BYTES: u64 = 1 << 10;
/// Bytes of a run in an answer about status.
const RUN_BYTES: u64 = 16;

/// Bytes of memory that a request takes until its answer is sent, at most: it is carried out in
/// whole blocks. `runs` are those that an answer about status has at most.
pub fn memory_bytes(command: NbdCommand, block_bytes: u64, runs: u64) -> u64 {
    let blocks = |range: Range| {
        let end = range.offset.saturating_add(range.length);
        end.div_ceil(block_bytes) - range.offset / block_bytes
    };
    let needed = match command {
        NbdCommand::Read { range, .. } | NbdCommand::Write(range) | NbdCommand::Cache(range) => {
            blocks(range).saturating_mul(block_bytes)
        }
        // Only blocks at the edges of zeroes are read and written.
        NbdCommand::Zero { range, .. } => {
            let edges = [range.offset, range.offset.saturating_add(range.length)];
            let parts = edges.iter().filter(|edge| !edge.is_multiple_of(block_bytes)).count();
            parts as u64 * block_bytes
        }
        NbdCommand::BlockStatus { range, single_extent } => {
            let runs = if single_extent { 1 } else { blocks(range).min(runs) };
            runs * RUN_BYTES * CONTEXTS.len() as u64
        }
        NbdCommand::Flush | NbdCommand::Trim(_) => 0,
    };
    needed.saturating_add(KEPT_BYTES)
}

/// The protocol's error for one of the system.
pub fn errno_of(error: IoError) -> Errno {
    match error {
        IoError::INVALID => Errno::Inval,
        IoError::NO_SPACE => Errno::NoSpace,
        IoError::NOT_SUPPORTED => Errno::NotSupported,
        _ => Errno::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_take_the_memory_of_whole_blocks() {
        let range = |offset, length| Range { offset, length };
        let read = |range| NbdCommand::Read { range, whole: true };
        let zero = |range| NbdCommand::Zero { range, keep_space: false, fast: false };
        let status = |range, single_extent| NbdCommand::BlockStatus { range, single_extent };
        let cases = [
            (read(range(0, 1)), 4096),
            (read(range(4095, 2)), 8192),
            (NbdCommand::Write(range(4096, 8192)), 8192),
            (NbdCommand::Cache(range(1, 4096)), 8192),
            (zero(range(4096, 1 << 30)), 0),
            (zero(range(4095, 2)), 8192),
            (NbdCommand::Trim(range(0, 5)), 0),
            (NbdCommand::Flush, 0),
            (status(range(0, 10 * 4096), false), 10 * 48),
            (status(range(0, 1 << 40), false), 500 * 48),
            (status(range(0, 1 << 40), true), 48),
        ];
        for (command, expected) in cases {
            assert_eq!(memory_bytes(command, 4096, 500), expected + KEPT_BYTES, "{command:?}");
        }
    }
}
