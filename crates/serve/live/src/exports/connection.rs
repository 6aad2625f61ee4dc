//! One connection: its session, the payload that comes in, and what goes out.
//!
//! For: bytes of one client. Must never know: what requests mean, the server of blocks. Units:
//! bytes. At most one receive and one send are under way; what is to be sent meanwhile waits and
//! goes together. A request is known by its header, and taken when there is memory for it: a client
//! that has too much under way, or does not take its answers, is not listened to.

use super::channel::SecureChannel;
use super::list::ExportList;
use super::losses::NotifiedLosses;
use super::tls::TlsConfig;
use crate::io::{Buffer, SocketId};
use cachewright_nbd::{NbdCommand, NbdRequest, Session, SessionEvent, Settings};
use cachewright_types::TenantId;

/// Bytes that are received at once.
const RECEIVE_BYTES: usize = 256 << 10;
/// Bytes that are sent at once, but for a longer answer: so much, or one answer, a client must take
/// in its time.
const SEND_BYTES: usize = 1 << 20;
/// Bytes of answers without data that may wait before more is read.
const HEADER_BYTES: usize = 256 << 10;

cachewright_types::index_ids! {
    /// A connection.
    ConnectionId,
}

/// What one client may have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Requests; more are received when some are answered.
    pub requests: usize,
    /// Bytes of requests' data and of answers that are not sent; a single request may be larger.
    pub bytes: u64,
    /// Nanoseconds in which it must open an export.
    pub negotiation_ns: u64,
    /// Nanoseconds in which a request of which a part has come must come whole, and in which an
    /// answer must be taken.
    pub stall_ns: u64,
    /// Nanoseconds in which it must take its last answers, when it ends.
    pub ending_ns: u64,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits {
            requests: 256,
            bytes: 64 << 20,
            negotiation_ns: 10_000_000_000,
            stall_ns: 60_000_000_000,
            ending_ns: 10_000_000_000,
        }
    }
}

/// What a client wants.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// The export of this name.
    Opened(String),
    /// TLS, which begins now.
    StartTls,
    /// A request whose header has come; it comes again until [`Connection::admit`] takes it.
    Announced(NbdRequest),
    /// A request that is taken, with its data.
    Request(TakenRequest),
    /// No more: what is under way is finished first.
    Disconnect,
    /// Something that the protocol does not know: the connection ends now.
    Violation,
}

impl ConnectionEvent {
    /// Whether it is a request for block status.
    pub fn is_status(&self) -> bool {
        let ConnectionEvent::Request(taken) = self else { return false };
        matches!(taken.request.command, NbdCommand::BlockStatus { .. })
    }
}

/// A request that is taken.
#[derive(Debug)]
pub struct TakenRequest {
    /// As the client sent it.
    pub request: NbdRequest,
    /// Its payload.
    pub data: Buffer,
    /// Bytes of memory that it takes until it is answered.
    pub bytes: u64,
}

/// A write whose payload is coming in.
#[derive(Debug)]
struct IncomingWrite {
    taken: TakenRequest,
    filled: usize,
}

/// When a connection is closed if it goes no further.
#[derive(Clone, Copy, Debug, Default)]
struct Deadlines {
    opening_ns: Option<u64>,
    ending_ns: Option<u64>,
    /// Of the send under way.
    sending_ns: Option<u64>,
    /// Of the request of which a part has come.
    receiving: Option<ReceivingDeadline>,
}

/// A deadline of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReceivingDeadline {
    /// Requests that had come whole before it.
    request: u64,
    at_ns: u64,
}

impl Deadlines {
    fn earliest_ns(&self) -> Option<u64> {
        let receiving_ns = self.receiving.map(|receiving| receiving.at_ns);
        let all = [self.opening_ns, self.ending_ns, self.sending_ns, receiving_ns];
        all.into_iter().flatten().min()
    }
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
    deadlines: Deadlines,
    /// Losses of answered writes that its client knows of.
    losses: NotifiedLosses,
    /// Requests under way.
    requests: usize,
    /// Bytes of requests under way and of those whose data is coming in.
    request_bytes: u64,
    /// A request that waits for memory.
    announced: Option<NbdRequest>,
    receiving: bool,
    input: IncomingBytes,
    session: Session,
    incoming: Option<IncomingWrite>,
    output: OutgoingBytes,
    /// TLS, once the client asked for it.
    secure: Option<SecureChannel>,
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

    /// The first buffers, of `bytes` bytes or a little more.
    fn take(&mut self, bytes: usize) -> Vec<Buffer> {
        self.flush_headers();
        let (mut count, mut taken) = (0, 0);
        for buffer in &self.buffers {
            if taken >= bytes {
                break;
            }
            (count, taken) = (count + 1, taken + buffer.len());
        }
        self.buffer_bytes -= taken;
        match count == self.buffers.len() {
            true => std::mem::take(&mut self.buffers),
            false => self.buffers.drain(..count).collect(),
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
            deadlines: Deadlines::default(),
            losses: NotifiedLosses::default(),
            requests: 0,
            request_bytes: 0,
            announced: None,
            receiving: false,
            input: IncomingBytes { buffer: Buffer::zeroed(RECEIVE_BYTES), next: 0, end: 0 },
            session,
            incoming: None,
            output,
            secure: None,
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

    /// An export is open; of losses its client knows these.
    pub fn open(&mut self, tenant: TenantId, losses: NotifiedLosses) {
        self.tenant = Some(tenant);
        self.losses = losses;
        self.deadlines.opening_ns = None;
    }

    /// What its client knows of losses of answered writes.
    pub fn losses(&mut self) -> &mut NotifiedLosses {
        &mut self.losses
    }

    /// The names of its client's certificate.
    pub fn client_names(&self) -> &[String] {
        self.secure.as_ref().map_or(&[], SecureChannel::client_names)
    }

    /// When it is closed: a client must open an export, send the rest of what it has begun, take
    /// what is being sent, and take its last answers, each in the time that `limits` give from now
    /// on. The clock is read where such a time begins.
    pub fn deadline_ns(
        &mut self,
        limits: ConnectionLimits,
        now_ns: impl Fn() -> u64,
    ) -> Option<u64> {
        if self.ending >= Ending::Closing {
            return None;
        }
        let after = |span_ns: u64| now_ns().saturating_add(span_ns);
        let request = self.half_request();
        let deadlines = &mut self.deadlines;
        if self.tenant.is_none() {
            deadlines.opening_ns.get_or_insert_with(|| after(limits.negotiation_ns));
        }
        if self.ending == Ending::Draining {
            deadlines.ending_ns.get_or_insert_with(|| after(limits.ending_ns));
        }
        if self.output.sending.is_some() {
            deadlines.sending_ns.get_or_insert_with(|| after(limits.stall_ns));
        }
        let known = deadlines.receiving.map(|receiving| receiving.request);
        if known != request {
            let at_ns = |request| ReceivingDeadline { request, at_ns: after(limits.stall_ns) };
            deadlines.receiving = request.map(at_ns);
        }
        deadlines.earliest_ns()
    }

    /// Requests that came whole before one of which a part has come, if the rest is waited for.
    fn half_request(&self) -> Option<u64> {
        let is_within = self.session.is_within_message()
            || self.secure.as_ref().is_some_and(SecureChannel::is_within_record);
        let waits = self.receiving && self.tenant.is_some() && self.ending == Ending::Open;
        (waits && is_within).then(|| self.session.whole_requests())
    }

    /// It is closed if its time is over.
    pub fn hurry(&mut self, now_ns: u64) {
        if self.deadlines.earliest_ns().is_some_and(|deadline| deadline <= now_ns) {
            self.end(Ending::Closing);
        }
    }

    /// Whether it goes on to take requests.
    pub fn is_open(&self) -> bool {
        self.ending == Ending::Open
    }

    /// Whether its client still gets answers.
    pub fn is_served(&self) -> bool {
        self.ending < Ending::Closing
    }

    /// Whether a request waits for memory.
    pub fn has_announced(&self) -> bool {
        self.announced.is_some()
    }

    /// Whether the client may have a request of so many bytes under way beside the others.
    pub fn may_have(&self, bytes: u64, limits: ConnectionLimits) -> bool {
        let held = self.held_bytes();
        let fits = held == 0 || held.saturating_add(bytes) <= limits.bytes;
        fits && self.requests < limits.requests
    }

    /// There is memory for the request that was announced: so many bytes. Returns it if it has no
    /// payload, which comes in else.
    pub fn admit(&mut self, bytes: u64) -> Option<ConnectionEvent> {
        let request = self.announced.take()?;
        self.request_bytes += bytes;
        let length = self.session.payload_left() as usize;
        let taken = TakenRequest { request, data: Buffer::zeroed(length), bytes };
        if length == 0 {
            return Some(ConnectionEvent::Request(taken));
        }
        self.incoming = Some(IncomingWrite { taken, filled: 0 });
        None
    }

    /// What comes next of the bytes that came in. Nothing while many answers wait to be sent: the
    /// other bytes wait, too.
    pub fn next_event(&mut self, exports: &ExportList) -> Option<ConnectionEvent> {
        while self.ending == Ending::Open && self.output.headers.len() < HEADER_BYTES {
            if let Some(request) = self.announced {
                return Some(ConnectionEvent::Announced(request));
            }
            let Connection { session, incoming, input, output, secure, .. } = self;
            let names = secure.as_ref().map_or(&[][..], SecureChannel::client_names);
            let mut bytes = &input.buffer[input.next..input.end];
            let event = session.next(&mut bytes, &exports.seen_by(names), &mut output.headers);
            input.next = input.end - bytes.len();
            match event? {
                SessionEvent::Opened(name) => return Some(ConnectionEvent::Opened(name)),
                SessionEvent::Request(request) => self.announced = Some(request),
                SessionEvent::Payload { bytes, last } => {
                    let Some(IncomingWrite { taken, filled }) = incoming else { continue };
                    taken.data[*filled..*filled + bytes.len()].copy_from_slice(bytes);
                    *filled += bytes.len();
                    if last && let Some(IncomingWrite { taken, .. }) = incoming.take() {
                        return Some(ConnectionEvent::Request(taken));
                    }
                }
                SessionEvent::Answered => {}
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

    /// A request that was taken is under way.
    pub fn begin(&mut self) {
        self.requests += 1;
    }

    /// A request that was taken with so many bytes has its answer without having been under way.
    pub fn release(&mut self, bytes: u64) {
        self.request_bytes -= bytes;
    }

    /// A request that was taken with so many bytes is answered; true if the client is to be told.
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
        let mut buffers = self.output.take(SEND_BYTES);
        if let Some(secure) = &mut self.secure {
            let is_all = self.output.buffers.is_empty();
            let is_last = is_all && self.ending == Ending::Draining && self.requests == 0;
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
        self.deadlines.sending_ns = None;
        if failed {
            self.end(Ending::Closing);
        }
    }

    /// Where more is to be received now; a receive is under way then.
    pub fn begin_receive(&mut self) -> Option<Buffer> {
        let may = self.ending == Ending::Open && !self.receiving && self.input.is_empty();
        if !may || self.announced.is_some() || self.output.headers.len() >= HEADER_BYTES {
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

    /// Bytes of requests that are taken and of answers that are not sent.
    pub fn held_bytes(&self) -> u64 {
        self.request_bytes + self.output.bytes() as u64
    }
}
