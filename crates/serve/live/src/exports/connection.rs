//! One connection: its session, the payload that comes in, and what goes out.
//!
//! For: bytes of one client. Must never know: what requests mean, the server of blocks. Units:
//! bytes. At most one receive and one send are under way; what is to be sent meanwhile waits and
//! goes together. A client that has too much under way, or does not take its answers, is not
//! listened to: what it costs is bounded by its limits and one request.

use super::channel::SecureChannel;
use super::list::ExportList;
use super::tls::TlsConfig;
use crate::io::{Buffer, SocketId};
use cachewright_nbd::{NbdCommand, NbdRequest, Session, SessionEvent, Settings};

use cachewright_types::TenantId;

/// Bytes that are received at once.
const RECEIVE_BYTES: usize = 256 << 10;

cachewright_types::index_ids! {
    /// A connection.
    ConnectionId,
}

/// What one client may have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Requests; more are received when some are answered.
    pub requests: usize,
    /// Bytes of requests' data and of answers that are not sent.
    pub bytes: u64,
    /// Nanoseconds in which it must open an export, and, when it ends, take its last answers.
    pub patience_ns: u64,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { requests: 256, bytes: 64 << 20, patience_ns: 10_000_000_000 }
    }
}

/// What a client wants.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// The export of this name.
    Opened(String),
    /// TLS, which begins now.
    StartTls,
    /// A request, with its data.
    Request(NbdRequest, Buffer),
    /// No more: what is under way is finished first.
    Disconnect,
    /// Something that the protocol does not know: the connection ends now.
    Violation,
}

impl ConnectionEvent {
    /// Whether it is a request for block status.
    pub fn is_status(&self) -> bool {
        let ConnectionEvent::Request(request, _) = self else { return false };
        matches!(request.command, NbdCommand::BlockStatus { .. })
    }
}

/// A write whose payload is coming in.
#[derive(Debug)]
struct IncomingWrite {
    request: NbdRequest,
    data: Buffer,
    filled: usize,
}

/// How a connection goes on; it only goes further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// It does not end.
    Open,
    /// It ends when what is under way is answered and sent.
    Draining,
    /// It ends as soon as no request is under way; nothing more is sent.
    Closing,
    /// Its close is under way.
    Closed,
}

/// Plain bytes that came in and wait for their turn.
#[derive(Debug, Default)]
struct IncomingBytes {
    buffer: Buffer,
    next: usize,
    end: usize,
}

impl IncomingBytes {
    fn is_empty(&self) -> bool {
        self.next == self.end
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    socket: SocketId,
    /// The tenant whose export is open.
    tenant: Option<TenantId>,
    ending: Ending,
    /// When it is closed if it goes no further.
    deadline_ns: Option<u64>,
    /// Requests under way, and bytes of their data.
    requests: usize,
    request_bytes: u64,
    receiving: bool,
    input: IncomingBytes,
    session: Session,
    incoming: Option<IncomingWrite>,
    output: OutgoingBytes,
    /// TLS, once the client asked for it.
    secure: Option<SecureChannel>,
    /// Losses of unflushed writes that the client knows of, or that were before its time.
    known_losses: u64,
}

/// What waits to be sent: negotiation, headers, and data behind them, in order.
#[derive(Debug, Default)]
struct OutgoingBytes {
    /// Bytes that are being sent; `None`: no send is under way.
    sending: Option<usize>,
    buffers: Vec<Buffer>,
    buffer_bytes: usize,
    headers: Vec<u8>,
}

impl OutgoingBytes {
    fn push(&mut self, data: Buffer) {
        self.buffer_bytes += data.len();
        self.buffers.push(data);
    }

    fn flush_headers(&mut self) {
        if !self.headers.is_empty() {
            let headers = std::mem::take(&mut self.headers);
            self.push(headers.into());
        }
    }

    fn bytes(&self) -> usize {
        self.sending.unwrap_or_default() + self.buffer_bytes + self.headers.len()
    }
}

impl Connection {
    /// A client that has connected; the greeting waits to be sent.
    pub fn new(socket: SocketId, settings: Settings) -> Connection {
        let mut output = OutgoingBytes::default();
        let session = Session::new(settings, &mut output.headers);
        Connection {
            socket,
            tenant: None,
            ending: Ending::Open,
            deadline_ns: None,
            requests: 0,
            request_bytes: 0,
            receiving: false,
            input: IncomingBytes { buffer: Buffer::zeroed(RECEIVE_BYTES), next: 0, end: 0 },
            session,
            incoming: None,
            output,
            secure: None,
            known_losses: 0,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> SocketId {
        self.socket
    }

    /// The session, for the form of replies.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The tenant whose export is open.
    pub fn tenant(&self) -> Option<TenantId> {
        self.tenant
    }

    /// An export is open.
    pub fn open(&mut self, tenant: TenantId) {
        self.tenant = Some(tenant);
        self.deadline_ns = None;
    }

    /// The client knows of so many losses of unflushed writes, or they were before its time.
    pub fn know_losses(&mut self, losses: u64) {
        self.known_losses = losses;
    }

    /// Whether there were losses of unflushed writes that the client does not know of.
    pub fn has_unknown_loss(&self, losses: u64) -> bool {
        self.known_losses < losses
    }

    /// When it is closed: a client that opens no export, or does not take its last answers, has
    /// until `patience_ns` from `now_ns` on, which is asked for once.
    pub fn deadline_ns(&mut self, patience_ns: u64, now_ns: impl Fn() -> u64) -> Option<u64> {
        let hurried = self.tenant.is_none() || self.ending == Ending::Draining;
        if hurried && self.ending < Ending::Closing {
            self.deadline_ns.get_or_insert_with(|| now_ns().saturating_add(patience_ns));
        }
        self.deadline_ns
    }

    /// It is closed if its time is over.
    pub fn hurry(&mut self, now_ns: u64) {
        if self.deadline_ns.is_some_and(|deadline| deadline <= now_ns) {
            self.end(Ending::Closing);
        }
    }

    /// What comes next of the bytes that came in. Nothing while the client has as much under way
    /// as `limits` allow: the other bytes wait.
    pub fn next_event(
        &mut self,
        exports: &ExportList,
        limits: ConnectionLimits,
    ) -> Option<ConnectionEvent> {
        while self.ending == Ending::Open && !self.is_full(limits) {
            let Connection { session, incoming, input, output, secure, .. } = self;
            let names = secure.as_ref().map_or(&[][..], SecureChannel::client_names);
            let mut bytes = &input.buffer[input.next..input.end];
            let event = session.next(&mut bytes, &exports.seen_by(names), &mut output.headers);
            input.next = input.end - bytes.len();
            match event? {
                SessionEvent::Opened(name) => return Some(ConnectionEvent::Opened(name)),
                SessionEvent::Request(request) => {
                    let length = session.payload_left() as usize;
                    if length == 0 {
                        return Some(ConnectionEvent::Request(request, Buffer::default()));
                    }
                    *incoming =
                        Some(IncomingWrite { request, data: Buffer::zeroed(length), filled: 0 });
                }
                SessionEvent::Payload { bytes, last } => {
                    let Some(IncomingWrite { data, filled, .. }) = incoming else { continue };
                    data[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                    *filled += bytes.len();
                    if last && let Some(IncomingWrite { request, data, .. }) = incoming.take() {
                        return Some(ConnectionEvent::Request(request, data));
                    }
                }
                SessionEvent::Disconnect => return Some(ConnectionEvent::Disconnect),
                SessionEvent::StartTls => return Some(ConnectionEvent::StartTls),
                SessionEvent::Violation(_) => return Some(ConnectionEvent::Violation),
            }
        }
        None
    }

    /// What was written so far is sent as it is; all that follows is encrypted.
    pub fn start_tls(&mut self, config: &TlsConfig) {
        self.output.flush_headers();
        let clear = std::mem::take(&mut self.output.buffers);
        self.output.buffer_bytes = 0;
        match SecureChannel::new(config, clear, Buffer::zeroed(RECEIVE_BYTES)) {
            Ok(channel) => self.secure = Some(channel),
            Err(_) => self.end(Ending::Closing),
        }
    }

    /// Headers to be sent, to which a reply is appended.
    pub fn headers(&mut self) -> &mut Vec<u8> {
        &mut self.output.headers
    }

    /// Data goes behind the headers.
    pub fn send_data(&mut self, data: Buffer) {
        self.output.flush_headers();
        self.output.push(data);
    }

    /// A request with so many bytes of data is under way.
    pub fn begin(&mut self, bytes: u64) {
        self.requests += 1;
        self.request_bytes += bytes;
    }

    /// A request with so many bytes of data is answered; true if the client is to be told.
    pub fn answered(&mut self, bytes: u64) -> bool {
        self.requests -= 1;
        self.request_bytes -= bytes;
        self.ending < Ending::Closing
    }

    /// What is to be sent now; a send is under way then.
    pub fn begin_send(&mut self) -> Option<Vec<Buffer>> {
        if self.output.sending.is_some() || self.ending >= Ending::Closing {
            return None;
        }
        self.output.flush_headers();
        let mut buffers = std::mem::take(&mut self.output.buffers);
        self.output.buffer_bytes = 0;
        if let Some(secure) = &mut self.secure {
            let is_last = self.ending == Ending::Draining && self.requests == 0;
            match secure.encrypt(&buffers, is_last) {
                Ok(encrypted) => buffers = encrypted,
                Err(_) => return self.fail(),
            }
        }
        if buffers.is_empty() {
            return None;
        }
        self.output.sending = Some(buffers.iter().map(|buffer| buffer.len()).sum());
        Some(buffers)
    }

    fn fail<T>(&mut self) -> Option<T> {
        self.end(Ending::Closing);
        None
    }

    /// The send is done.
    pub fn sent(&mut self, failed: bool) {
        self.output.sending = None;
        if failed {
            self.end(Ending::Closing);
        }
    }

    /// Where more is to be received now; a receive is under way then.
    pub fn begin_receive(&mut self, limits: ConnectionLimits) -> Option<Buffer> {
        let may = self.ending == Ending::Open && !self.receiving && self.input.is_empty();
        if !may || self.is_full(limits) {
            return None;
        }
        if self.secure.as_ref().is_some_and(SecureChannel::is_ended) {
            return self.fail();
        }
        self.receiving = true;
        Some(match &mut self.secure {
            Some(secure) => secure.take_memory(),
            None => std::mem::take(&mut self.input).buffer,
        })
    }

    /// The receive is done: the first `count` bytes of the buffer came in; none if there will be no
    /// more.
    pub fn received(&mut self, buffer: Buffer, count: usize) {
        self.receiving = false;
        if count == 0 {
            self.end(Ending::Closing);
        }
        let Some(secure) = &mut self.secure else {
            self.input = IncomingBytes { buffer, next: 0, end: count };
            return;
        };
        let was_up = secure.is_up();
        let decrypted = secure.decrypt(buffer, count);
        if secure.is_up() && !was_up {
            self.session.secured();
        }
        match decrypted {
            Ok(plain) => self.input = IncomingBytes { next: 0, end: plain.len(), buffer: plain },
            // An alert says why, to a client that was never let in.
            Err(_) if !was_up => self.end(Ending::Draining),
            Err(_) => self.end(Ending::Closing),
        }
    }

    /// It ends, this way or a quicker one.
    pub fn end(&mut self, ending: Ending) {
        self.ending = self.ending.max(ending);
    }

    /// Whether it is to be closed now; its close is under way then.
    pub fn begin_close(&mut self) -> bool {
        let ends = match self.ending {
            Ending::Open | Ending::Closed => false,
            Ending::Draining => {
                let is_sent = self.secure.as_ref().is_none_or(SecureChannel::is_sent);
                self.requests == 0 && self.output.bytes() == 0 && is_sent
            }
            Ending::Closing => self.requests == 0,
        };
        if ends {
            self.ending = Ending::Closed;
        }
        ends
    }

    /// Bytes of requests under way and of answers that are not sent.
    pub fn held_bytes(&self) -> u64 {
        self.request_bytes + self.output.bytes() as u64
    }

    fn is_full(&self, limits: ConnectionLimits) -> bool {
        self.requests >= limits.requests || self.held_bytes() >= limits.bytes
    }
}
