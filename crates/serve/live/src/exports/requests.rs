//! Requests of clients between a connection and the server of blocks.
//!
//! For: whom an answer belongs to. Must never know: bytes on the wire, caches. Units: bytes,
//! nanoseconds.

use super::connection::ConnectionId;
use crate::blocks::BlockOp;
use cachewright_nbd::{Command, NbdRequest, Range};
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
pub fn block_op(command: Command) -> Option<(BlockOp, Range)> {
    let nothing = Range { offset: 0, length: 0 };
    match command {
        Command::Read { range, .. } | Command::Cache(range) => Some((BlockOp::Read, range)),
        Command::Write(range) => Some((BlockOp::Write, range)),
        Command::Flush => Some((BlockOp::Flush, nothing)),
        Command::Trim(range) => Some((BlockOp::Trim, range)),
        Command::Zero { range, .. } => Some((BlockOp::Zero, range)),
        Command::BlockStatus { .. } => None,
    }
}

/// Bytes of data that a request or its answer has in memory.
pub fn data_bytes(command: Command) -> u64 {
    match command {
        Command::Read { range, .. } | Command::Write(range) | Command::Cache(range) => range.length,
        _ => 0,
    }
}
