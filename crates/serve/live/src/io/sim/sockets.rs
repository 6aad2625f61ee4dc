//! Connections as pipes in memory.
//!
//! For: protocols in a simulation. Must never know: files, what is sent. Units: bytes.

use crate::io::{ListenerId, SocketId};
use std::collections::VecDeque;

/// One connection, with both ends.
#[derive(Clone, Debug, Default)]
struct Pipe {
    to_server: VecDeque<u8>,
    to_client: Vec<u8>,
    client_open: bool,
    server_open: bool,
    /// The client takes nothing.
    stalled: bool,
}

/// All connections.
#[derive(Clone, Debug, Default)]
pub struct SimulatedSockets {
    pipes: Vec<Pipe>,
    /// Clients that were not accepted yet.
    waiting: VecDeque<(ListenerId, SocketId)>,
}

impl SimulatedSockets {
    /// A client connects.
    pub fn connect(&mut self, listener: ListenerId) -> SocketId {
        let socket = SocketId::new(self.pipes.len());
        self.pipes.push(Pipe { client_open: true, server_open: true, ..Pipe::default() });
        self.waiting.push_back((listener, socket));
        socket
    }

    /// The next client that waits at a listener.
    pub fn accept(&mut self, listener: ListenerId) -> Option<SocketId> {
        let place = self.waiting.iter().position(|(waited, _)| *waited == listener)?;
        self.waiting.remove(place).map(|(_, socket)| socket)
    }

    /// Whether a client waits at a listener.
    pub fn is_awaited(&self, listener: ListenerId) -> bool {
        self.waiting.iter().any(|(waited, _)| *waited == listener)
    }

    /// The client sends bytes.
    pub fn client_sends(&mut self, socket: SocketId, bytes: &[u8]) {
        self.pipes[socket.index()].to_server.extend(bytes);
    }

    /// What the client was sent since the last call.
    pub fn client_receives(&mut self, socket: SocketId) -> Vec<u8> {
        std::mem::take(&mut self.pipes[socket.index()].to_client)
    }

    /// From now on the client takes what it is sent, or takes nothing.
    pub fn client_stalls(&mut self, socket: SocketId, stalled: bool) {
        self.pipes[socket.index()].stalled = stalled;
    }

    /// Whether a send of the server cannot end.
    pub fn is_stalled(&self, socket: SocketId) -> bool {
        self.pipes.get(socket.index()).is_some_and(|pipe| pipe.stalled)
    }

    /// The client ends the connection.
    pub fn client_closes(&mut self, socket: SocketId) {
        self.pipes[socket.index()].client_open = false;
    }

    /// Whether the server still holds the connection.
    pub fn is_open(&self, socket: SocketId) -> bool {
        self.pipes.get(socket.index()).is_some_and(|pipe| pipe.server_open)
    }

    /// Whether a receive of the server would end now: there are bytes, or there never will be.
    pub fn is_readable(&self, socket: SocketId) -> bool {
        let pipe = &self.pipes[socket.index()];
        !pipe.to_server.is_empty() || !pipe.client_open || !pipe.server_open
    }

    /// The server receives; 0 at the end of the connection.
    pub fn receive(&mut self, socket: SocketId, into: &mut [u8]) -> usize {
        let pipe = &mut self.pipes[socket.index()];
        let count = into.len().min(pipe.to_server.len());
        for (place, byte) in into.iter_mut().zip(pipe.to_server.drain(..count)) {
            *place = byte;
        }
        count
    }

    /// The server sends; false when the connection is gone.
    pub fn send(&mut self, socket: SocketId, bytes: &[u8]) -> bool {
        let pipe = &mut self.pipes[socket.index()];
        let open = pipe.client_open && pipe.server_open;
        if open {
            pipe.to_client.extend_from_slice(bytes);
        }
        open
    }

    /// The server ends the connection.
    pub fn close(&mut self, socket: SocketId) {
        self.pipes[socket.index()].server_open = false;
    }
}
