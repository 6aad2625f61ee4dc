//! Requests of clients between a connection and the server of blocks.
//!
//! For: whom an answer belongs to, and what was answered. Must never know: bytes on the wire,
//! caches. Units: bytes, nanoseconds.

use super::connection::ConnectionId;
use super::meters::ExportMeter;
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

    /// A request is answered; returns it, and how long that took, if it was under way.
    pub fn end(&mut self, answer: &BlockAnswer, now_ns: u64) -> Option<(ClientRequest, u64)> {
        let client = self.under_way.try_remove(answer.tag as usize)?;
        let waited_ns = now_ns.saturating_sub(client.arrived_ns);
        let meter = &mut self.meters[client.tenant.index()];
        meter.note(client.request.command, waited_ns, answer.result.is_err());
        Some((client, waited_ns))
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

/// The protocol's error for one of the system.
pub fn errno_of(error: IoError) -> Errno {
    match error {
        IoError::INVALID => Errno::Inval,
        IoError::NO_SPACE => Errno::NoSpace,
        IoError::NOT_SUPPORTED => Errno::NotSupported,
        _ => Errno::Io,
    }
}
