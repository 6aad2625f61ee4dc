//! Connections, and what is under way on each.
//!
//! For: [`Uring`](super::Uring): one receive and one send at a time, and a close that waits for
//! both. Must never know: the ring, listeners, what is sent.

use crate::io::{Done, IoError, Output, SocketId, Token};
use slab::Slab;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connection.
#[derive(Debug)]
struct Connection {
    fd: OwnedFd,
    /// Whether a receive is under way.
    receives: bool,
    /// Whether a send is under way.
    sends: bool,
    /// The close that ends it when nothing is under way on it.
    closing: Option<Token>,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Receive,
    Send,
}

impl Connection {
    /// Whether an operation is under way in a direction.
    fn under_way(&mut self, direction: Direction) -> &mut bool {
        match direction {
            Direction::Receive => &mut self.receives,
            Direction::Send => &mut self.sends,
        }
    }
}

/// All connections, by number.
#[derive(Debug, Default)]
pub struct Connections {
    connections: Slab<Connection>,
}

impl Connections {
    /// Adds a client.
    pub fn add(&mut self, fd: OwnedFd) -> SocketId {
        let connection = Connection { fd, receives: false, sends: false, closing: None };
        SocketId::new(self.connections.insert(connection))
    }

    /// The descriptor of a connection. Errors: there is none of this number.
    #[inline]
    pub fn fd(&self, socket: SocketId) -> Result<BorrowedFd<'_>, IoError> {
        let found = self.connections.get(socket.index()).ok_or(IoError::NOT_CONNECTED);
        found.map(|connection| connection.fd.as_fd())
    }

    /// Marks one direction of a connection as taken. Errors: it is taken, or the connection ends.
    #[inline]
    pub fn claim(&mut self, socket: SocketId, direction: Direction) -> Result<(), IoError> {
        let taken = self.open(socket).ok_or(IoError::NOT_CONNECTED)?.under_way(direction);
        if *taken {
            return Err(IoError::BUSY);
        }
        *taken = true;
        Ok(())
    }

    /// Marks one direction of a connection as free.
    #[inline]
    pub fn release(&mut self, socket: SocketId, direction: Direction) {
        if let Some(found) = self.connections.get_mut(socket.index()) {
            *found.under_way(direction) = false;
        }
    }

    /// Begins to end a connection: what is under way ends by the shutdown, and the close of `token`
    /// after it. Errors: there is none of this number, or it ends already.
    pub fn begin_close(
        &mut self,
        socket: SocketId,
        token: Token,
        done: &mut Vec<Done>,
    ) -> Result<(), IoError> {
        let found = self.open(socket).ok_or(IoError::NOT_CONNECTED)?;
        found.closing = Some(token);
        // It fails if the client is gone; then all that is under way has ended by itself.
        let _shut = rustix::net::shutdown(&found.fd, rustix::net::Shutdown::Both);
        self.settle(socket, done);
        Ok(())
    }

    /// Ends a close whose connection has nothing under way.
    pub fn settle(&mut self, socket: SocketId, done: &mut Vec<Done>) {
        let number = socket.index();
        let idle = self.connections.get(number).filter(|found| !found.receives && !found.sends);
        if let Some(token) = idle.and_then(|connection| connection.closing) {
            drop(self.connections.try_remove(number));
            done.push(Done { token, output: Output::Nothing, error: None });
        }
    }

    /// Shuts all connections down, so that what is under way on them ends.
    pub fn shut_down(&self) {
        for (_, connection) in self.connections.iter() {
            let _shut = rustix::net::shutdown(&connection.fd, rustix::net::Shutdown::Both);
        }
    }

    /// A connection that no close ends.
    fn open(&mut self, socket: SocketId) -> Option<&mut Connection> {
        self.connections.get_mut(socket.index()).filter(|found| found.closing.is_none())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed test may panic

    use super::*;
    use std::os::unix::net::UnixStream;

    /// A connection whose other end is kept open.
    fn connected() -> (Connections, SocketId, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        let mut connections = Connections::default();
        let socket = connections.add(here.into());
        (connections, socket, there)
    }

    #[test]
    fn each_direction_is_taken_once() {
        let (mut connections, socket, _there) = connected();
        assert_eq!(connections.claim(socket, Direction::Receive), Ok(()));
        assert_eq!(connections.claim(socket, Direction::Send), Ok(()));
        assert_eq!(connections.claim(socket, Direction::Receive), Err(IoError::BUSY));
        connections.release(socket, Direction::Receive);
        assert_eq!(connections.claim(socket, Direction::Receive), Ok(()));
        assert_eq!(
            connections.claim(SocketId::new(7), Direction::Send),
            Err(IoError::NOT_CONNECTED)
        );
    }

    #[test]
    fn a_close_ends_once_nothing_is_under_way() {
        let (mut connections, socket, _there) = connected();
        let mut done = Vec::new();
        assert_eq!(connections.claim(socket, Direction::Send), Ok(()));
        assert_eq!(connections.begin_close(socket, Token(5), &mut done), Ok(()));
        let again = connections.begin_close(socket, Token(6), &mut done);
        assert_eq!((again, done.len()), (Err(IoError::NOT_CONNECTED), 0));
        assert_eq!(connections.claim(socket, Direction::Receive), Err(IoError::NOT_CONNECTED));
        connections.release(socket, Direction::Send);
        connections.settle(socket, &mut done);
        assert!(matches!(done[..], [Done { token: Token(5), error: None, .. }]));
        assert!(connections.fd(socket).is_err());
    }
}
