//! One connection of a client that sends a load.
//!
//! For: requests out, answers in, on a socket that blocks. Must never know: traces. Units: bytes,
//! nanoseconds.

use cachewright_live::exports::ExportMeter;
use cachewright_nbd::client::{Client, ClientEvent, ClientSettings};
use cachewright_nbd::{NbdCommand, NbdRequest};
use cachewright_stack::ListenAddress;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes taken from the socket at a time.
const CHUNK: usize = 256 << 10;

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(address: &ListenAddress) -> std::io::Result<Stream> {
        Ok(match address {
            ListenAddress::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            ListenAddress::Tcp(text) => {
                let is_port = text.bytes().all(|byte| byte.is_ascii_digit());
                let place = if is_port { format!("127.0.0.1:{text}") } else { text.clone() };
                let stream = TcpStream::connect(place)?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            ListenAddress::Passed => return Err(ErrorKind::Unsupported.into()),
        })
    }

    fn set_patience(&self, patience: Option<Duration>) -> std::io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_read_timeout(patience),
            Stream::Tcp(stream) => stream.set_read_timeout(patience),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(bytes),
            Stream::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

/// An export that is open.
pub struct LoadConnection {
    client: Client,
    stream: Stream,
    size: u64,
    cookie: u64,
    /// Requests without an answer, and when they were sent.
    open: HashMap<u64, (NbdCommand, Instant)>,
    chunk: Vec<u8>,
    /// What writes send: bytes that do not compress.
    payload: Vec<u8>,
    out: Vec<u8>,
    patience: Option<Duration>,
}

impl LoadConnection {
    /// Errors: nothing listens at the address, or it has no such export.
    pub fn open(address: &ListenAddress, export: &str) -> Result<LoadConnection, String> {
        let words = |error: std::io::Error| error.to_string();
        let settings =
            ClientSettings { export: export.to_owned(), structured: true, ..Default::default() };
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut byte = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let mut connection = LoadConnection {
            client: Client::new(settings),
            stream: Stream::connect(address).map_err(words)?,
            size: 0,
            cookie: 0,
            open: HashMap::new(),
            chunk: vec![0; CHUNK],
            payload: (0..super::PIECE).map(|_| byte()).collect(),
            out: Vec::new(),
            patience: None,
        };
        while connection.size == 0 {
            connection.take(None, &mut ExportMeter::default())?;
        }
        Ok(connection)
    }

    /// Bytes of the export.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Requests without an answer.
    pub fn under_way(&self) -> usize {
        self.open.len()
    }

    /// Sends a request. Errors: the connection ends.
    pub fn send(&mut self, command: NbdCommand, offset: u64) -> Result<(), String> {
        self.cookie += 1;
        let request = NbdRequest { cookie: self.cookie, offset, command, fua: false };
        self.out.clear();
        self.client.send(&request, &mut self.out);
        if let NbdCommand::Write(range) = command {
            self.out.extend_from_slice(&self.payload[..range.length as usize]);
        }
        self.open.insert(self.cookie, (command, Instant::now()));
        self.stream.write(&self.out).map_err(|error| error.to_string())
    }

    /// Takes what the server has sent, waiting for something, but no longer than `patience`.
    /// Answers go to `meter`. Errors: the connection ends, or is none of the protocol.
    pub fn take(
        &mut self,
        patience: Option<Duration>,
        meter: &mut ExportMeter,
    ) -> Result<(), String> {
        if patience != self.patience {
            self.stream.set_patience(patience).map_err(|error| error.to_string())?;
            self.patience = patience;
        }
        let count = match self.stream.read(&mut self.chunk) {
            Ok(0) => return Err("the server has closed the connection".to_owned()),
            Ok(count) => count,
            Err(error) => {
                let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
                return match waits.contains(&error.kind()) {
                    true => Ok(()),
                    false => Err(error.to_string()),
                };
            }
        };
        self.out.clear();
        let mut input = &self.chunk[..count];
        while let Some(event) = self.client.next(&mut input, &mut self.out) {
            match event {
                ClientEvent::Opened(opened) => self.size = opened.size,
                ClientEvent::Data { .. } | ClientEvent::Hole { .. } => {}
                ClientEvent::Done { cookie, result } => {
                    if let Some((command, sent)) = self.open.remove(&cookie) {
                        meter.note(command, sent.elapsed().as_nanos() as u64, result.is_err());
                    }
                }
                event => return Err(format!("found {event:?}, expected answers")),
            }
        }
        self.stream.write(&self.out).map_err(|error| error.to_string())
    }

    /// Ends the connection in order.
    pub fn leave(mut self) {
        self.out.clear();
        self.client.disconnect(&mut self.out);
        let _left = self.stream.write(&self.out);
    }
}
