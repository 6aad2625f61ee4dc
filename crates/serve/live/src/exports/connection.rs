//! One connection: its session, the payload that comes in, and what goes out.
//!
//! For: bytes of one client. Must never know: what requests mean, the server of blocks. Units:
//! bytes. At most one receive and one send are under way; what is to be sent meanwhile waits and
//! goes together.

use crate::io::{Buffer, SocketId};
use cachewright_nbd::{Export, NbdRequest, Session, SessionEvent, Settings};
use cachewright_types::TenantId;

cachewright_types::index_ids! {
    /// A connection.
    ConnectionId,
}

/// What one client may have under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Requests; more are received when some are answered.
    pub requests: usize,
    /// Bytes of requests' data and of answers.
    pub bytes: u64,
}

impl Default for ConnectionLimits {
    fn default() -> ConnectionLimits {
        ConnectionLimits { requests: 256, bytes: 64 << 20 }
    }
}

/// What a client wants.
#[derive(Debug)]
pub enum ClientEvent {
    /// The export of this name.
    Opened(String),
    /// A request, with its data.
    Request(NbdRequest, Buffer),
    /// No more: what is under way is finished first.
    Disconnect,
    /// Something that the protocol does not know: the connection ends now.
    Violation,
}

/// A write whose payload is coming in.
#[derive(Debug)]
struct Incoming {
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

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Its socket.
    pub socket: SocketId,
    /// The tenant whose export is open.
    pub tenant: Option<TenantId>,
    /// How it ends.
    pub ending: Ending,
    /// Requests under way, and their bytes.
    pub under_way: (usize, u64),
    /// A receive is under way.
    pub receiving: bool,
    /// A send is under way.
    pub sending: bool,
    session: Session,
    incoming: Option<Incoming>,
    /// Headers and negotiation that wait to be sent, and data behind them, in order.
    outgoing: Vec<Buffer>,
    out: Vec<u8>,
}

impl Connection {
    /// A client that has connected; the greeting waits to be sent.
    pub fn new(socket: SocketId, settings: Settings) -> Connection {
        let mut out = Vec::new();
        let session = Session::new(settings, &mut out);
        Connection {
            socket,
            tenant: None,
            ending: Ending::Open,
            under_way: (0, 0),
            receiving: false,
            sending: false,
            session,
            incoming: None,
            outgoing: Vec::new(),
            out,
        }
    }

    /// The session, for the form of replies.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Takes bytes that came in; `events` get what the client wants.
    pub fn take(&mut self, mut bytes: &[u8], exports: &[Export], events: &mut Vec<ClientEvent>) {
        while let Some(event) = self.session.next(&mut bytes, exports, &mut self.out) {
            events.push(match event {
                SessionEvent::Opened(name) => ClientEvent::Opened(name),
                SessionEvent::Request(request) => {
                    let length = self.session.payload_left() as usize;
                    if length > 0 {
                        let data = Buffer::zeroed(length);
                        self.incoming = Some(Incoming { request, data, filled: 0 });
                        continue;
                    }
                    ClientEvent::Request(request, Buffer::default())
                }
                SessionEvent::Payload { bytes, last } => {
                    let Some(incoming) = &mut self.incoming else { continue };
                    let end = incoming.filled + bytes.len();
                    incoming.data[incoming.filled..end].copy_from_slice(bytes);
                    incoming.filled = end;
                    if !last {
                        continue;
                    }
                    let Some(Incoming { request, data, .. }) = self.incoming.take() else {
                        continue;
                    };
                    ClientEvent::Request(request, data)
                }
                SessionEvent::Disconnect => ClientEvent::Disconnect,
                SessionEvent::StartTls | SessionEvent::Violation(_) => ClientEvent::Violation,
            });
        }
    }

    /// Headers to be sent, to which a reply is appended.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Data goes behind the headers.
    pub fn send_data(&mut self, data: Buffer) {
        self.flush_headers();
        self.outgoing.push(data);
    }

    fn flush_headers(&mut self) {
        if !self.out.is_empty() {
            self.outgoing.push(Buffer::copy_of(&self.out));
            self.out.clear();
        }
    }

    /// What is to be sent now, if nothing is being sent.
    pub fn take_outgoing(&mut self) -> Option<Vec<Buffer>> {
        self.flush_headers();
        if self.sending || self.outgoing.is_empty() {
            return None;
        }
        self.sending = true;
        Some(std::mem::take(&mut self.outgoing))
    }

    /// It ends, this way or a quicker one.
    pub fn end(&mut self, ending: Ending) {
        self.ending = self.ending.max(ending);
    }

    /// Whether more may be received.
    pub fn may_receive(&self, limits: ConnectionLimits) -> bool {
        let (requests, bytes) = self.under_way;
        let fits = requests < limits.requests && bytes < limits.bytes;
        self.ending == Ending::Open && !self.receiving && fits
    }

    /// Whether all is answered and sent.
    pub fn is_drained(&self) -> bool {
        let sent = !self.sending && self.outgoing.is_empty() && self.out.is_empty();
        self.under_way.0 == 0 && sent
    }
}
