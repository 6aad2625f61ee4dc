//! Requests of clients between a connection and the server of blocks.
//!
//! For: whom an answer belongs to. Must never know: bytes on the wire, caches. Units: counts.

use super::connection::ConnectionId;
use crate::blocks::BlockOp;
use cachewright_nbd::{Command, NbdRequest, Range};

/// A request that the server of blocks works on.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest {
    /// Where its answer goes.
    pub connection: ConnectionId,
    /// As the client sent it.
    pub request: NbdRequest,
}

/// Requests under way, by tag.
#[derive(Clone, Debug, Default)]
pub struct ClientRequests {
    all: Vec<Option<ClientRequest>>,
    free: Vec<usize>,
}

impl ClientRequests {
    /// Adds a request; returns its tag.
    pub fn add(&mut self, request: ClientRequest) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        self.all[index] = Some(request);
        index as u64
    }

    /// Takes the request of a tag out.
    pub fn take(&mut self, tag: u64) -> Option<ClientRequest> {
        let request = self.all.get_mut(tag as usize)?.take()?;
        self.free.push(tag as usize);
        Some(request)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_used_again_when_their_request_is_answered() {
        let request = NbdRequest { cookie: 7, offset: 0, command: Command::Flush, fua: false };
        let of = |index| ClientRequest { connection: ConnectionId::new(index), request };
        let mut requests = ClientRequests::default();
        assert_eq!([requests.add(of(0)), requests.add(of(1))], [0, 1]);
        assert_eq!(requests.take(0).map(|found| found.connection), Some(ConnectionId::new(0)));
        assert!(requests.take(0).is_none() && requests.take(9).is_none());
        assert_eq!(requests.add(of(2)), 0);
    }
}
