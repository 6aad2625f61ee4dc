//! A node: listeners, connections and the server of blocks behind them.
//!
//! For: one value that a loop over [`Io`] drives. Must never know: how a request is carried out.
//! Units: bytes.

use super::connection::{ClientEvent, Connection, ConnectionId, ConnectionLimits, Ending};
use super::requests::{ClientRequest, ClientRequests, block_op};
use super::status::{CONTEXTS, extents};
use crate::blocks::{BlockAnswer, BlockRequest, BlockServer};
use crate::io::{Buffer, Done, Io, IoError, IoOp, ListenerId, Output, SocketId, Token};
use cachewright_nbd::{BlockSizes, Command, Errno, Export, Limits, NbdRequest, Settings, Tls};
use cachewright_types::TenantId;

/// How a node serves.
#[derive(Clone, Copy, Debug)]
pub struct NodeSettings {
    /// Bounds of a negotiation and of requests.
    pub limits: Limits,
    /// What one client may have under way.
    pub connection: ConnectionLimits,
    /// Connections at one time; more wait to be accepted.
    pub max_connections: usize,
    /// What the eight highest bits of the node's tokens are.
    pub namespace: u8,
}

/// Volumes that are served to clients.
pub struct Node {
    blocks: BlockServer,
    exports: Vec<Export>,
    settings: NodeSettings,
    listeners: Vec<ListenerId>,
    /// Listeners at which an accept is under way.
    accepting: Vec<bool>,
    connections: Vec<Option<Connection>>,
    requests: ClientRequests,
}

/// What a token of the node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Accept,
    Receive,
    Send,
    Close,
}

/// Bytes that are received at once.
const RECEIVE_BYTES: usize = 256 << 10;
const NAMESPACE_SHIFT: u32 = 56;
const PURPOSE_SHIFT: u32 = 48;

impl Node {
    /// Serves the volumes of `blocks` under these names, in the order of tenants, with their sizes
    /// in bytes.
    pub fn new(blocks: BlockServer, names: &[(String, u64)], settings: NodeSettings) -> Node {
        let block_bytes = blocks.block_bytes() as u32;
        let sizes = BlockSizes {
            min: 1,
            preferred: block_bytes.max(4096),
            max_payload: settings.limits.payload_bytes,
        };
        let export = |(name, size): &(String, u64)| Export {
            name: name.clone(),
            description: String::new(),
            size: *size,
            blocks: sizes,
            read_only: false,
            multi_conn: true,
            contexts: CONTEXTS.map(str::to_owned).to_vec(),
        };
        Node {
            blocks,
            exports: names.iter().map(export).collect(),
            settings,
            listeners: Vec::new(),
            accepting: Vec::new(),
            connections: Vec::new(),
            requests: ClientRequests::default(),
        }
    }

    /// Clients may connect here from now on.
    pub fn listen(&mut self, listener: ListenerId) {
        self.listeners.push(listener);
        self.accepting.push(false);
    }

    /// The server of blocks.
    pub fn blocks(&self) -> &BlockServer {
        &self.blocks
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.connections.iter().flatten().count()
    }

    /// An operation is done. [`Node::advance`] is to be called after some.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done) {
        if self.blocks.owns(done.token) {
            return self.blocks.on_done(io, done);
        }
        let Some((purpose, index)) = self.purpose(done.token) else { return };
        match purpose {
            Purpose::Accept => {
                self.accepting[index] = false;
                if let Output::Socket(socket) = done.output {
                    self.connect(socket);
                }
            }
            Purpose::Receive => self.received(io, index, done),
            Purpose::Send => {
                if let Some(connection) = self.connection(index) {
                    connection.sending = false;
                    if done.error.is_some() {
                        connection.end(Ending::Closing);
                    }
                }
            }
            Purpose::Close => self.connections[index] = None,
        }
    }

    /// Begins what is due. To be called once for as many operations as were done at once.
    pub fn advance(&mut self, io: &mut impl Io) {
        self.blocks.advance(io);
        for answer in self.blocks.take_answers() {
            self.answered(answer);
        }
        for index in 0..self.connections.len() {
            self.go_on(io, index);
        }
        let has_place = self.connections() < self.settings.max_connections;
        for index in 0..self.listeners.len() {
            if has_place && !self.accepting[index] {
                self.accepting[index] = true;
                let listener = self.listeners[index];
                io.submit(self.token(Purpose::Accept, index), IoOp::Accept { listener });
            }
        }
    }

    /// Sends, receives or closes, as the connection needs.
    fn go_on(&mut self, io: &mut impl Io, index: usize) {
        let limits = self.settings.connection;
        let [send, receive, close] = [Purpose::Send, Purpose::Receive, Purpose::Close]
            .map(|purpose| self.token(purpose, index));
        let Some(connection) = self.connection(index) else { return };
        let socket = connection.socket;
        let ends = match connection.ending {
            Ending::Open => false,
            Ending::Draining => connection.is_drained(),
            Ending::Closing => connection.under_way.0 == 0,
            Ending::Closed => return,
        };
        if ends {
            connection.ending = Ending::Closed;
            return io.submit(close, IoOp::Close { socket });
        }
        if connection.ending == Ending::Closing {
            return;
        }
        if let Some(buffers) = connection.take_outgoing() {
            io.submit(send, IoOp::Send { socket, buffers });
        }
        if connection.may_receive(limits) {
            connection.receiving = true;
            let buffer = Buffer::zeroed(RECEIVE_BYTES);
            io.submit(receive, IoOp::Receive { socket, buffer });
        }
    }

    fn connect(&mut self, socket: SocketId) {
        let (limits, tls) = (self.settings.limits, Tls::Off);
        let settings = Settings { limits, tls, extended_headers: false };
        let connection = Some(Connection::new(socket, settings));
        match self.connections.iter().position(Option::is_none) {
            Some(index) => self.connections[index] = connection,
            None => self.connections.push(connection),
        }
    }

    fn connection(&mut self, index: usize) -> Option<&mut Connection> {
        self.connections.get_mut(index)?.as_mut()
    }

    fn received(&mut self, io: &mut impl Io, index: usize, done: Done) {
        let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) else {
            return;
        };
        connection.receiving = false;
        let (buffer, count) = match done.output {
            Output::Buffer(buffer, count) if done.error.is_none() && count > 0 => (buffer, count),
            _ => return connection.end(Ending::Closing),
        };
        if connection.ending != Ending::Open {
            return;
        }
        let mut events = Vec::new();
        connection.take(&buffer[..count], &self.exports, &mut events);
        for event in events {
            self.client_event(io, index, event);
        }
    }

    fn client_event(&mut self, io: &mut impl Io, index: usize, event: ClientEvent) {
        let named = |name: &str| self.exports.iter().position(|export| export.name == name);
        let tenant = match &event {
            ClientEvent::Opened(name) => named(name).map(|tenant| TenantId(tenant as u16)),
            _ => None,
        };
        let Some(connection) = self.connection(index) else { return };
        match event {
            ClientEvent::Opened(_) => connection.tenant = tenant.or(Some(TenantId(0))),
            ClientEvent::Request(request, data) => self.request(io, index, (request, data)),
            ClientEvent::Disconnect => connection.end(Ending::Draining),
            ClientEvent::Violation => connection.end(Ending::Closing),
        }
    }

    fn request(&mut self, io: &mut impl Io, index: usize, (request, data): (NbdRequest, Buffer)) {
        let Some(tenant) = self.connection(index).and_then(|connection| connection.tenant) else {
            return;
        };
        let Some((op, range)) = block_op(request.command) else {
            return self.status(index, tenant, &request);
        };
        let Some(connection) = self.connection(index) else { return };
        connection.under_way.0 += 1;
        connection.under_way.1 += range.length;
        let connection = ConnectionId::new(index);
        let tag = self.requests.add(ClientRequest { connection, request });
        let (offset, length, durable) = (range.offset, range.length, request.fua);
        self.blocks.request(io, BlockRequest { tag, tenant, op, offset, length, durable, data });
    }

    fn status(&mut self, index: usize, tenant: TenantId, request: &NbdRequest) {
        let Command::BlockStatus { range, single_extent } = request.command else { return };
        let Some(Some(connection)) = self.connections.get_mut(index) else { return };
        let all = self.settings.limits.extents as usize;
        let max_extents = if single_extent { 1 } else { all };
        let (replies, contexts) = (connection.session().replies(), connection.session().contexts());
        let contexts: Vec<u32> = contexts.collect();
        for (place, context) in contexts.iter().enumerate() {
            let runs = extents(&self.blocks, (tenant, *context), range, max_extents);
            let last = place + 1 == contexts.len();
            replies.extents(request, *context, &runs, last, connection.out());
        }
        if contexts.is_empty() {
            replies.error(request, Errno::Inval, "no context was chosen", connection.out());
        }
    }

    fn answered(&mut self, answer: BlockAnswer) {
        let Some(ClientRequest { connection, request }) = self.requests.take(answer.tag) else {
            return;
        };
        let Some(connection) = self.connection(connection.index()) else { return };
        let length = block_op(request.command).map_or(0, |(_, range)| range.length);
        connection.under_way.0 -= 1;
        connection.under_way.1 -= length;
        if connection.ending >= Ending::Closing {
            return;
        }
        let replies = connection.session().replies();
        match (answer.result, request.command) {
            (Err(error), _) => {
                let text = error.to_string();
                replies.error(&request, errno_of(error), &text, connection.out());
            }
            (Ok(()), Command::Read { range, .. }) => {
                let length = range.length as u32;
                replies.data(&request, range.offset, length, true, connection.out());
                connection.send_data(answer.data);
            }
            (Ok(()), _) => replies.done(&request, connection.out()),
        }
    }

    fn token(&self, purpose: Purpose, index: usize) -> Token {
        let namespace = u64::from(self.settings.namespace) << NAMESPACE_SHIFT;
        let code: u64 = match purpose {
            Purpose::Accept => 0,
            Purpose::Receive => 1,
            Purpose::Send => 2,
            Purpose::Close => 3,
        };
        Token(namespace | code << PURPOSE_SHIFT | index as u64)
    }

    fn purpose(&self, token: Token) -> Option<(Purpose, usize)> {
        if token.0 >> NAMESPACE_SHIFT != u64::from(self.settings.namespace) {
            return None;
        }
        let index = (token.0 & ((1 << PURPOSE_SHIFT) - 1)) as usize;
        let purpose = match token.0 >> PURPOSE_SHIFT & 0xff {
            0 => Purpose::Accept,
            1 => Purpose::Receive,
            2 => Purpose::Send,
            3 => Purpose::Close,
            _ => return None,
        };
        Some((purpose, index))
    }
}

/// The protocol's error for one of the system.
fn errno_of(error: IoError) -> Errno {
    match error {
        IoError::INVALID => Errno::Inval,
        IoError::NO_SPACE => Errno::NoSpace,
        IoError::NOT_SUPPORTED => Errno::NotSupported,
        _ => Errno::Io,
    }
}
