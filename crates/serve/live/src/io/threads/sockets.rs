//! Sockets without waiting in a call: `poll` says which of them are ready.
//!
//! For: [`Threads`](super::Threads). Must never know: files. Units: bytes, nanoseconds.

use super::ended;
use crate::io::clock::timespec;
use crate::io::open::Listener;
use crate::io::tables::{Sending, socket_error};
use crate::io::{Buffer, Done, IoError, IoOp, ListenerId, Output, SocketId, Token};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags};
use rustix::net::{accept_with, recv, sendmsg, shutdown};
use slab::Slab;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

/// How long a thread rests when `poll` fails, before it looks at all sockets.
const REST: Duration = Duration::from_millis(1);

struct Waiting {
    listener: Listener,
    accepts: VecDeque<Token>,
}

struct Connection {
    fd: OwnedFd,
    receive: Option<(Token, Buffer)>,
    send: Option<(Token, Sending)>,
}

/// Something that may be able to go on.
#[derive(Clone, Copy)]
enum SocketPlace {
    Listener(usize),
    Connection(usize),
}

/// All sockets.
#[derive(Default)]
pub struct ThreadSockets {
    listeners: Vec<Waiting>,
    connections: Slab<Connection>,
    /// What is tried before the next wait: new operations, and what `poll` has found.
    ready: Vec<SocketPlace>,
    under_way: usize,
}

impl ThreadSockets {
    pub fn add_listener(&mut self, listener: Listener) -> ListenerId {
        // A client can go between `poll` and `accept`, which then would wait for the next one.
        let _set = rustix::io::ioctl_fionbio(&listener, true);
        self.listeners.push(Waiting { listener, accepts: VecDeque::new() });
        ListenerId::new(self.listeners.len() - 1)
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    /// Begins an operation on a socket, or says why not.
    pub fn start(
        &mut self,
        token: Token,
        op: IoOp,
        done: &mut Vec<Done>,
    ) -> Result<(), (IoError, IoOp)> {
        match op {
            IoOp::Accept { listener } => match self.listeners.get_mut(listener.index()) {
                Some(found) => {
                    found.accepts.push_back(token);
                    self.ready.push(SocketPlace::Listener(listener.index()));
                }
                None => return Err((IoError::INVALID, op)),
            },
            IoOp::Receive { socket, buffer } => match self.connections.get_mut(socket.index()) {
                Some(Connection { receive: receive @ None, .. }) => {
                    *receive = Some((token, buffer));
                    self.ready.push(SocketPlace::Connection(socket.index()));
                }
                found => return Err((refusal(found), IoOp::Receive { socket, buffer })),
            },
            IoOp::Send { socket, buffers } => match self.connections.get_mut(socket.index()) {
                Some(Connection { send: send @ None, .. }) => {
                    *send = Some((token, Sending::new(buffers)));
                    self.ready.push(SocketPlace::Connection(socket.index()));
                }
                found => return Err((refusal(found), IoOp::Send { socket, buffers })),
            },
            IoOp::Close { socket } => match self.connections.try_remove(socket.index()) {
                Some(connection) => {
                    self.close(connection, done);
                    done.push(ended(token, None));
                    return Ok(());
                }
                None => return Err((IoError::NOT_CONNECTED, op)),
            },
            op => return Err((IoError::INVALID, op)),
        }
        self.under_way += 1;
        Ok(())
    }

    /// Ends what is under way on a connection.
    fn close(&mut self, connection: Connection, done: &mut Vec<Done>) {
        // It fails if the client is gone; the descriptor is closed in any case.
        let _shut = shutdown(&connection.fd, Shutdown::Both);
        if let Some((token, buffer)) = connection.receive {
            self.under_way -= 1;
            done.push(Done { token, output: Output::Buffer(buffer, 0), error: None });
        }
        if let Some((token, sending)) = connection.send {
            self.under_way -= 1;
            let output = Output::Buffers(sending.into_buffers());
            done.push(Done { token, output, error: Some(IoError::NOT_CONNECTED) });
        }
    }

    /// Tries what may be able to go on.
    pub fn carry_out(&mut self, done: &mut Vec<Done>) {
        let mut ready = std::mem::take(&mut self.ready);
        let before = done.len();
        for place in ready.drain(..) {
            match place {
                SocketPlace::Listener(number) => self.try_accept(number, done),
                SocketPlace::Connection(number) => self.try_connection(number, done),
            }
        }
        self.ready = ready;
        self.under_way -= done.len() - before;
    }

    fn try_accept(&mut self, number: usize, done: &mut Vec<Done>) {
        let Some(found) = self.listeners.get_mut(number) else {
            return;
        };
        while let Some(token) = found.accepts.pop_front() {
            match accept_with(&found.listener, SocketFlags::CLOEXEC) {
                Ok(fd) => {
                    if found.listener.is_tcp() {
                        // Without it replies wait for acknowledgements: slower, and correct.
                        let _set = rustix::net::sockopt::set_tcp_nodelay(&fd, true);
                        // Without it a client whose host is gone is never noticed.
                        let _set = rustix::net::sockopt::set_socket_keepalive(&fd, true);
                    }
                    let connection = Connection { fd, receive: None, send: None };
                    let socket = SocketId::new(self.connections.insert(connection));
                    done.push(Done { token, output: Output::Socket(socket), error: None });
                }
                Err(Errno::AGAIN) => return found.accepts.push_front(token),
                Err(Errno::INTR | Errno::CONNABORTED) => found.accepts.push_front(token),
                Err(error) => done.push(ended(token, Some(IoError(error.raw_os_error())))),
            }
        }
    }

    fn try_connection(&mut self, number: usize, done: &mut Vec<Done>) {
        let Some(connection) = self.connections.get_mut(number) else {
            return;
        };
        if let Some((token, mut buffer)) = connection.receive.take() {
            match retry(|| recv(&connection.fd, &mut buffer[..], RecvFlags::DONTWAIT)) {
                Err(Errno::AGAIN) => connection.receive = Some((token, buffer)),
                Ok((count, _)) => {
                    done.push(Done { token, output: Output::Buffer(buffer, count), error: None });
                }
                Err(error) => {
                    let error = Some(socket_error(error.raw_os_error()));
                    done.push(Done { token, output: Output::Buffer(buffer, 0), error });
                }
            }
        }
        if let Some((token, mut sending)) = connection.send.take() {
            match send_some(&connection.fd, &mut sending) {
                Err(Errno::AGAIN) => connection.send = Some((token, sending)),
                sent => {
                    let error = sent.err().map(|error| socket_error(error.raw_os_error()));
                    let output = Output::Buffers(sending.into_buffers());
                    done.push(Done { token, output, error });
                }
            }
        }
    }

    /// Waits until a socket is ready or `signal` is readable, at most `limit_ns`.
    pub fn wait(&mut self, signal: &OwnedFd, limit_ns: Option<u64>) {
        let mut places = Vec::new();
        let mut polled = vec![PollFd::new(signal, PollFlags::IN)];
        for (number, found) in self.listeners.iter().enumerate() {
            if !found.accepts.is_empty() {
                polled.push(PollFd::new(&found.listener, PollFlags::IN));
                places.push(SocketPlace::Listener(number));
            }
        }
        for (number, connection) in self.connections.iter() {
            let receives = connection.receive.as_ref().map(|_| PollFlags::IN);
            let sends = connection.send.as_ref().map(|_| PollFlags::OUT);
            let events =
                receives.unwrap_or(PollFlags::empty()) | sends.unwrap_or(PollFlags::empty());
            if !events.is_empty() {
                polled.push(PollFd::new(&connection.fd, events));
                places.push(SocketPlace::Connection(number));
            }
        }
        match poll(&mut polled, limit_ns.map(timespec).as_ref()) {
            Ok(_) => {
                let found = places.into_iter().zip(&polled[1..]);
                let ready = found.filter(|(_, polled)| !polled.revents().is_empty());
                self.ready.extend(ready.map(|(place, _)| place));
            }
            Err(Errno::INTR) => {}
            // More sockets than the process may have: all are tried, at a bounded rate.
            Err(_) => {
                thread::sleep(REST);
                self.ready.extend(places);
            }
        }
    }
}

fn refusal(found: Option<&mut Connection>) -> IoError {
    if found.is_some() { IoError::BUSY } else { IoError::NOT_CONNECTED }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Sends until all is sent, or the socket takes no more (`AGAIN`).
fn send_some(fd: &OwnedFd, sending: &mut Sending) -> Result<(), Errno> {
    while !sending.is_done() {
        let slices: Vec<IoSlice<'_>> = sending.slices().collect();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let mut control = SendAncillaryBuffer::default();
        let count = retry(|| sendmsg(fd, &slices, &mut control, flags))?;
        drop(slices);
        sending.advance(count);
    }
    Ok(())
}
