//! Requests of clients between a connection and the server of blocks.
//!
//! For: whom an answer belongs to. Must never know: bytes on the wire, caches. Units: bytes,
//! nanoseconds.

use super::connection::ConnectionId;
use crate::blocks::BlockOp;
use cachewright_nbd::{NbdCommand, NbdRequest, Range};
use cachewright_types::TenantId;

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

/// What the server of blocks is to do for a command; nothing for one that it has no part in.
pub fn block_op(command: NbdCommand) -> Option<(BlockOp, Range)> {
    let nothing = Range { offset: 0, length: 0 };
    match command {
        NbdCommand::Read { range, .. } | NbdCommand::Cache(range) => Some((BlockOp::Read, range)),
        NbdCommand::Write(range) => Some((BlockOp::Write, range)),
        NbdCommand::Flush => Some((BlockOp::Flush, nothing)),
        NbdCommand::Trim(range) => Some((BlockOp::Trim, range)),
        NbdCommand::Zero { range, .. } => Some((BlockOp::Zero, range)),
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
