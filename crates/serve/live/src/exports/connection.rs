//! One connection: its session, the payload that comes in, and what goes out.
//!
//! At most one receive and one send are under way; what is to be sent meanwhile waits and goes
//! together. A request is known by its header, and taken when there is memory for it: a client that
//! has too much under way, or does not take its answers, is not listened to. Where TLS begins, what
//! was said before is sent first and as it is.

use super::list::ExportList;
use super::nbd::CONTEXTS;
use super::tls::{TlsConfig, TlsFailure, TlsStream};
use crate::blocks::BlockOp;
use crate::front::{NotifiedLosses, RequestKind};
use crate::io::{Buffer, IoError, SocketId};
use cachewright_nbd::{Errno, NbdCommand, NbdRequest, Range, Session, SessionEvent, Settings};
use cachewright_types::TenantId;

/// Bytes that are received at once.
const RECEIVE_BYTES: usize = 256 << 10;
/// Bytes that are sent at once, but for a longer answer: so much, or one answer, a client must take
/// in its time.
const SEND_BYTES: usize = 1 << 20;
/// Bytes of a reply without its data, or a few more: its header is written piece by piece.
const REPLY_BYTES: usize = 64;
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
        let headers = &mut self.output.headers;
        if headers.capacity() == 0 {
            headers.reserve(REPLY_BYTES);
        }
        headers
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

/// TLS of one connection.
#[derive(Debug)]
pub(super) struct SecureChannel {
    stream: TlsStream,
    /// What is to be sent before TLS begins.
    clear: Vec<Buffer>,
    /// Where encrypted bytes come in.
    memory: Buffer,
    /// Names of the client's certificate.
    names: Vec<String>,
    /// The client was told that nothing more comes.
    has_ended: bool,
}

impl SecureChannel {
    /// The handshake begins when `clear` is sent; `memory` is where encrypted bytes will come in.
    /// Errors: see [`TlsFailure`].
    pub(super) fn new(
        config: &TlsConfig,
        clear: Vec<Buffer>,
        memory: Buffer,
    ) -> Result<SecureChannel, TlsFailure> {
        let stream = TlsStream::new(config)?;
        Ok(SecureChannel { stream, clear, memory, names: Vec::new(), has_ended: false })
    }

    /// The memory for a receive.
    pub(super) fn take_memory(&mut self) -> Buffer {
        std::mem::take(&mut self.memory)
    }

    /// The plain bytes of the first `count` that came in. Errors: see [`TlsFailure`].
    pub(super) fn decrypt(&mut self, memory: Buffer, count: usize) -> Result<Buffer, TlsFailure> {
        let was_up = self.stream.is_up();
        let mut plain = Vec::with_capacity(count);
        let decrypted = self.stream.decrypt(&memory[..count], &mut plain);
        self.memory = memory;
        if self.stream.is_up() && !was_up {
            self.names = self.stream.client_names();
        }
        decrypted.map(|()| plain.into())
    }

    /// What is to be sent for these plain bytes; `is_last` if none will follow. Errors: see
    /// [`TlsFailure`].
    pub(super) fn encrypt(
        &mut self,
        plain: &[Buffer],
        is_last: bool,
    ) -> Result<Vec<Buffer>, TlsFailure> {
        let mut wire = Vec::with_capacity(plain.iter().map(|buffer| buffer.len() + 64).sum());
        for buffer in plain {
            self.stream.encrypt(buffer, &mut wire)?;
        }
        if is_last && !self.has_ended {
            self.has_ended = true;
            self.stream.end();
        }
        self.stream.encrypt(&[], &mut wire)?;
        let mut buffers = std::mem::take(&mut self.clear);
        if !wire.is_empty() {
            buffers.push(wire.into());
        }
        Ok(buffers)
    }

    /// Whether the handshake is over.
    pub(super) fn is_up(&self) -> bool {
        self.stream.is_up()
    }

    /// Whether a part of a record has come, and not the rest of it.
    pub(super) fn is_within_record(&self) -> bool {
        self.stream.is_within_record()
    }

    /// Whether the client sends no more.
    pub(super) fn is_ended(&self) -> bool {
        self.stream.is_ended()
    }

    /// Whether the client was sent all, the end included.
    pub(super) fn is_sent(&self) -> bool {
        self.has_ended && self.clear.is_empty() && !self.stream.has_output()
    }

    /// Names of the client's certificate.
    pub(super) fn client_names(&self) -> &[String] {
        &self.names
    }
}

/// As what operators count a command, and its bytes; nothing for a question.
pub fn request_kind(command: NbdCommand) -> Option<(RequestKind, u64)> {
    let (op, range) = block_op(command)?;
    let kind = match command {
        NbdCommand::Cache(_) => RequestKind::Prefetch,
        _ => RequestKind::of(op),
    };
    Some((kind, range.length))
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

/// Bytes in which a request itself is kept.
const KEPT_BYTES: u64 = 1 << 10;
/// Bytes of a run in an answer about status.
const RUN_BYTES: u64 = 16;

/// Bytes of memory that a request takes until its answer is sent, at most: it is carried out in
/// whole blocks. `runs` are those that an answer about status has at most.
pub fn memory_bytes(command: NbdCommand, block_bytes: u64, runs: u64) -> u64 {
    let blocks = |range: Range| {
        let end = range.offset.saturating_add(range.length);
        end.div_ceil(block_bytes) - range.offset / block_bytes
    };
    let needed = match command {
        NbdCommand::Read { range, .. } | NbdCommand::Write(range) | NbdCommand::Cache(range) => {
            blocks(range).saturating_mul(block_bytes)
        }
        // Only blocks at the edges of zeroes are read and written.
        NbdCommand::Zero { range, .. } => {
            let edges = [range.offset, range.offset.saturating_add(range.length)];
            let parts = edges.iter().filter(|edge| !edge.is_multiple_of(block_bytes)).count();
            parts as u64 * block_bytes
        }
        NbdCommand::BlockStatus { range, single_extent } => {
            let runs = if single_extent { 1 } else { blocks(range).min(runs) };
            runs * RUN_BYTES * CONTEXTS.len() as u64
        }
        NbdCommand::Flush | NbdCommand::Trim(_) => 0,
    };
    needed.saturating_add(KEPT_BYTES)
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
/// Whose turn it is; see the top of the file.
#[derive(Clone, Debug, Default)]
pub struct ConnectionRoundRobin {
    /// Each connection at least once.
    due: Vec<usize>,
    /// Those that go on after others had their turn.
    later: Vec<usize>,
    /// A timer is under way, after which they do.
    waking: bool,
}

impl ConnectionRoundRobin {
    /// A connection may have something to do.
    pub fn add(&mut self, connection: usize) {
        self.due.push(connection);
    }

    /// A connection lets others go first.
    pub fn postpone(&mut self, connection: usize) {
        self.later.push(connection);
    }

    /// A connection has nothing to do any more: its number may be another one's from then on.
    pub fn leave(&mut self, connection: usize) {
        self.later.retain(|other| *other != connection);
    }

    /// Whether a connection lets others go first.
    pub fn is_postponed(&self, connection: usize) -> bool {
        self.later.contains(&connection)
    }

    /// The connections that may have something to do, each once, in the order of their numbers.
    pub fn take(&mut self) -> Vec<usize> {
        let mut due = std::mem::take(&mut self.due);
        due.sort_unstable();
        due.dedup();
        due
    }

    /// Whether a timer is to begin, after which postponed connections go on: it counts as begun.
    pub fn begin_wake(&mut self) -> bool {
        let begins = !self.later.is_empty() && !self.waking;
        self.waking |= begins;
        begins
    }

    /// That timer is over.
    pub fn wake(&mut self) {
        self.waking = false;
        self.due.append(&mut self.later);
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_take_the_memory_of_whole_blocks() {
        let range = |offset, length| Range { offset, length };
        let read = |range| NbdCommand::Read { range, whole: true };
        let zero = |range| NbdCommand::Zero { range, keep_space: false, fast: false };
        let status = |range, single_extent| NbdCommand::BlockStatus { range, single_extent };
        let cases = [
            (read(range(0, 1)), 4096),
            (read(range(4095, 2)), 8192),
            (NbdCommand::Write(range(4096, 8192)), 8192),
            (NbdCommand::Cache(range(1, 4096)), 8192),
            (zero(range(4096, 1 << 30)), 0),
            (zero(range(4095, 2)), 8192),
            (NbdCommand::Trim(range(0, 5)), 0),
            (NbdCommand::Flush, 0),
            (status(range(0, 10 * 4096), false), 10 * 48),
            (status(range(0, 1 << 40), false), 500 * 48),
            (status(range(0, 1 << 40), true), 48),
        ];
        for (command, expected) in cases {
            assert_eq!(memory_bytes(command, 4096, 500), expected + KEPT_BYTES, "{command:?}");
        }
    }

    #[test]
    fn a_postponed_connection_goes_on_behind_one_timer() {
        let mut turns = ConnectionRoundRobin::default();
        assert!(!turns.begin_wake());
        [4, 2, 4].into_iter().for_each(|connection| turns.add(connection));
        turns.postpone(3);
        assert_eq!((turns.take(), turns.take()), (vec![2, 4], vec![]));
        assert_eq!((turns.begin_wake(), turns.begin_wake()), (true, false));
        assert!(turns.is_postponed(3));
        turns.wake();
        assert_eq!((turns.is_postponed(3), turns.take()), (false, vec![3]));
        assert!(!turns.begin_wake());
    }
}
