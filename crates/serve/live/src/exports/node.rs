//! The NBD front end: listeners, connections, exports, and the server of blocks behind them.
//!
//! A loop over [`Io`] drives one [`Node`]. Exports come, change and go while it runs. A question
//! about the status of ranges goes to the backing device, which may take its time, while other
//! requests go on. Where the device does not say, every byte is allocated and may be anything: that
//! is always right.

use super::connection::{
    ClientRequest, ClientRequests, Connection, ConnectionEvent, ConnectionId, ConnectionLimits,
    ConnectionRoundRobin, EarliestTimer, Ending, TakenRequest, block_op, data_bytes, errno_of,
    memory_bytes,
};
use super::list::{ExportList, LossNews, ServedExport};
use super::listeners::Listeners;
use super::memory::ClientMemory;
use super::meters::{CappedClients, Caps, ExportMeter};
use super::tls::TlsConfig;
use crate::blocks::{AllocationQuery, BlockAnswer, BlockRequest, BlockServer};
use crate::io::{Done, FileExtent, Io, IoError, IoOp, ListenerId, Output, SocketId, Token};
use cachewright_nbd::protocol::{STATE_HOLE, STATE_ZERO};
use cachewright_nbd::{
    BlockSizes, Errno, Limits, NbdCommand, NbdRequest, Range, Settings, StatusExtent, Tls,
};
use cachewright_types::TenantId;
use slab::Slab;

/// How a node serves.
#[derive(Clone, Copy, Debug)]
pub struct NodeSettings {
    /// Bounds of a negotiation and of requests.
    pub limits: Limits,
    /// What one client may have under way.
    pub connection: ConnectionLimits,
    /// Whether clients may use headers with lengths of 64 bits.
    pub extended_headers: bool,
    /// Connections at one time; more clients wait.
    pub max_connections: usize,
    /// Bytes of requests under way and of answers that are not sent, of all clients together.
    pub client_memory: u64,
    /// What the eight highest bits of the node's tokens are.
    pub namespace: u8,
}

/// Volumes that are served to clients.
pub struct Node {
    blocks: BlockServer,
    exports: ExportList,
    settings: NodeSettings,
    /// How TLS is done, and whether clients may do without.
    tls: Option<(TlsConfig, Tls)>,
    listeners: Listeners,
    connections: Slab<Connection>,
    turns: ConnectionRoundRobin,
    /// When connections are looked at that may be too slow.
    watch: EarliestTimer,
    requests: ClientRequests,
    /// Requests for status that wait for backing devices.
    statuses: StatusRequests,
    /// Connections that wait because of caps.
    capped: CappedClients,
    /// What requests and answers take, and connections that wait for some.
    memory: ClientMemory,
    /// Losses of answered writes that clients were told of.
    losses: LossNews,
}

/// The pause after an accept that failed, in nanoseconds: the process may have no descriptor left.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

impl Node {
    /// Serves the volumes of `blocks` as these exports, in the order of tenants.
    pub fn new(blocks: BlockServer, exports: Vec<ServedExport>, settings: NodeSettings) -> Node {
        let sizes = BlockSizes {
            min: 1,
            preferred: (blocks.block_bytes() as u32).max(4096),
            max_payload: settings.limits.payload_bytes,
        };
        Node {
            blocks,
            requests: ClientRequests::new(exports.len()),
            statuses: StatusRequests::default(),
            capped: CappedClients::new(exports.len()),
            exports: ExportList::new(exports, sizes, settings.max_connections),
            memory: ClientMemory::new(settings.client_memory, settings.max_connections),
            losses: LossNews::default(),
            settings,
            tls: None,
            listeners: Listeners::default(),
            connections: Slab::default(),
            turns: ConnectionRoundRobin::default(),
            watch: EarliestTimer::default(),
        }
    }

    /// Clients may connect here from now on.
    pub fn listen(&mut self, listener: ListenerId) {
        self.listeners.add(listener);
    }

    /// Clients may use TLS from now on, or must.
    pub fn offer_tls(&mut self, config: TlsConfig, is_required: bool) {
        let tls = if is_required { Tls::Required } else { Tls::Available };
        self.tls = Some((config, tls));
    }

    /// No client is accepted any more. Requests that are decided are answered, then connections
    /// end; others are dropped, and clients send them again when they are connected again. A client
    /// that does not take its answers is closed after a while, as its limits say.
    pub fn stop(&mut self) {
        self.listeners.stop();
        for tag in self.blocks.drop_undecided() {
            let Some(client) = self.requests.forget(tag) else { continue };
            if let Some(connection) = self.connections.get_mut(client.connection.index()) {
                connection.answered(client.bytes);
            }
        }
        while let Some(socket) = self.listeners.next_client() {
            let index = self.connect(socket);
            self.end(index, Ending::Closing);
        }
        for index in 0..self.connections.capacity() {
            self.end(index, Ending::Draining);
        }
    }

    /// The server of blocks alone, to be driven on when it was stopped.
    pub fn into_blocks(self) -> BlockServer {
        self.blocks
    }

    /// Whether it was stopped, and all connections have ended.
    pub fn is_stopped(&self) -> bool {
        self.listeners.is_stopping() && self.connections.is_empty()
    }

    /// The server of blocks.
    pub fn blocks(&self) -> &BlockServer {
        &self.blocks
    }

    /// What was answered to clients of a tenant's export.
    pub fn meter(&self, tenant: TenantId) -> &ExportMeter {
        self.requests.meter(tenant)
    }

    /// Connections that are open.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Bytes of requests under way and of answers that are not sent, of all clients.
    pub fn held_bytes(&self) -> u64 {
        self.memory.used()
    }

    /// An operation is done. [`Node::advance`] is to be called after some.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done) {
        if self.blocks.owns(done.token) {
            return self.blocks.on_done(io, done);
        }
        let Some((purpose, index)) = NodePurpose::decode(self.settings.namespace, done.token)
        else {
            return;
        };
        match purpose {
            NodePurpose::Accept => self.accepted(io, index, done),
            NodePurpose::Close => self.closed(index),
            NodePurpose::Wake => self.turns.wake(),
            NodePurpose::Watch => self.end_slow(io.now_ns()),
            NodePurpose::Turn => self.capped.end_timer(io.now_ns()),
            NodePurpose::Status => self.status_known(index, done.output),
            NodePurpose::Receive | NodePurpose::Send => {
                let Some(connection) = self.connections.get_mut(index) else { return };
                let failed = done.error.is_some();
                match done.output {
                    Output::Buffer(buffer, count) => {
                        connection.received(buffer, if failed { 0 } else { count });
                    }
                    Output::Buffers(buffers) => {
                        connection.sent(failed);
                        buffers.into_iter().for_each(|buffer| self.blocks.give_back(buffer));
                    }
                    _ => connection.sent(failed),
                }
                self.note_memory(index);
                self.turns.add(index);
            }
        }
    }

    /// A connection is gone: nothing waits for it, and its number may be another one's.
    fn closed(&mut self, index: usize) {
        let Some(connection) = self.connections.try_remove(index) else { return };
        let tenant = connection.tenant();
        tenant.into_iter().for_each(|tenant| self.exports.places().leave(tenant));
        self.memory.note(index, 0);
        self.leave_queues(index);
    }

    /// A connection takes no more requests: it waits for none of what it needs for them.
    fn leave_queues(&mut self, index: usize) {
        self.memory.leave(index);
        self.capped.leave(index);
        self.turns.leave(index);
    }

    /// What a connection holds has changed.
    fn note_memory(&mut self, index: usize) {
        let Some(connection) = self.connections.get(index) else { return };
        self.memory.note(index, connection.held_bytes());
    }

    /// Begins what is due. To be called once for as many operations as were done at once.
    pub fn advance(&mut self, io: &mut impl Io) {
        self.serve_due(io);
        loop {
            self.blocks.advance(io);
            let answers = self.blocks.take_answers();
            let now_ns = if answers.is_empty() { 0 } else { io.now_ns() };
            for answer in answers {
                self.answered(answer, now_ns);
            }
            if !self.serve_due(io) {
                break;
            }
        }
        if self.turns.begin_wake() {
            let at_ns = io.now_ns();
            io.submit(self.token(NodePurpose::Wake, 0), IoOp::Timer { at_ns });
        }
        self.accept(io);
    }

    /// Lets connections go on; true if one of them sent something whole.
    fn serve_due(&mut self, io: &mut impl Io) -> bool {
        let mut begun = self.serve_capped(io);
        for index in self.turns.take() {
            if !self.turns.is_postponed(index) {
                begun |= self.take_requests(io, index);
            }
            self.go_on(io, index);
        }
        while let Some(index) = self.memory.next_turn() {
            begun |= self.take_requests(io, index);
            self.go_on(io, index);
        }
        begun
    }

    /// Closes connections whose time is over.
    fn end_slow(&mut self, now_ns: u64) {
        if !self.watch.end(now_ns) {
            return;
        }
        for index in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(index) else { continue };
            connection.hurry(now_ns);
            self.turns.add(index);
        }
    }

    /// The connection is looked at again when its time is over.
    fn watch(&mut self, io: &mut impl Io, index: usize) {
        let limits = self.settings.connection;
        let Some(connection) = self.connections.get_mut(index) else { return };
        let deadline = connection.deadline_ns(limits, || io.now_ns());
        if let Some(at_ns) = deadline
            && self.watch.begin(at_ns)
        {
            io.submit(self.token(NodePurpose::Watch, 0), IoOp::Timer { at_ns });
        }
    }

    fn accept(&mut self, io: &mut impl Io) {
        while self.connections() < self.settings.max_connections
            && let Some(socket) = self.listeners.next_client()
        {
            let index = self.connect(socket);
            self.go_on(io, index);
        }
        while let Some((index, listener)) = self.listeners.begin_accept() {
            io.submit(self.token(NodePurpose::Accept, index), IoOp::Accept { listener });
        }
    }

    /// An accept, or the pause after one that failed, is done.
    fn accepted(&mut self, io: &mut impl Io, index: usize, done: Done) {
        if done.error.is_some() && !self.listeners.is_stopping() {
            let at_ns = io.now_ns() + ACCEPT_PAUSE_NS;
            return io.submit(done.token, IoOp::Timer { at_ns });
        }
        let Output::Socket(socket) = done.output else {
            return self.listeners.end_accept(index);
        };
        self.listeners.accepted(index, socket);
        if self.listeners.is_stopping() {
            self.stop();
        }
    }

    /// A client is served from now on: it is greeted. Returns its connection.
    fn connect(&mut self, socket: SocketId) -> usize {
        let tls = self.tls.as_ref().map_or(Tls::Off, |(_, tls)| *tls);
        let NodeSettings { limits, extended_headers, .. } = self.settings;
        let settings = Settings { limits, tls, extended_headers };
        let index = self.connections.insert(Connection::new(socket, settings));
        self.note_memory(index);
        index
    }

    fn end(&mut self, index: usize, ending: Ending) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.end(ending);
            self.turns.add(index);
        }
    }

    /// Takes what the client sent, as far as its limits allow. After a request for block status,
    /// which visits many blocks, it is the turn of others. True if the client sent something whole.
    fn take_requests(&mut self, io: &mut impl Io, index: usize) -> bool {
        let mut begun = false;
        while let Some(connection) = self.connections.get_mut(index) {
            // One that waits for memory has had its turn.
            let tenant = connection.tenant().filter(|_| !connection.has_announced());
            let waits = tenant.is_some_and(|tenant| self.capped.waits(tenant, index));
            let taken = if waits { None } else { self.take_request(io, index) };
            let Some(pauses) = taken else { break };
            begun = true;
            if pauses {
                self.turns.postpone(index);
                break;
            }
        }
        begun
    }

    /// Takes one thing that the client sent, if its limits allow; whether it visits many blocks.
    fn take_request(&mut self, io: &mut impl Io, index: usize) -> Option<bool> {
        loop {
            let connection = self.connections.get_mut(index)?;
            let event = match connection.next_event(&self.exports)? {
                ConnectionEvent::Announced(request) => match self.admit(index, &request)? {
                    Some(event) => event,
                    None => continue,
                },
                event => event,
            };
            let pauses = event.is_status();
            self.client_event(io, index, event);
            self.note_memory(index);
            return Some(pauses);
        }
    }

    /// Takes a request whose header has come, if there is memory for it; what follows then, if it
    /// has no payload.
    fn admit(&mut self, index: usize, request: &NbdRequest) -> Option<Option<ConnectionEvent>> {
        let runs = u64::from(self.settings.limits.extents);
        let bytes = memory_bytes(self.bounded(request.command), self.blocks.block_bytes(), runs);
        let connection = self.connections.get_mut(index)?;
        let may_have = connection.may_have(bytes, self.settings.connection);
        if !may_have || !self.memory.admits(index, bytes) {
            return None;
        }
        let event = connection.admit(bytes);
        self.note_memory(index);
        Some(event)
    }

    /// A command as it is carried out: no more is read ahead than one request may read.
    fn bounded(&self, mut command: NbdCommand) -> NbdCommand {
        if let NbdCommand::Cache(range) = &mut command {
            range.length = range.length.min(u64::from(self.settings.limits.payload_bytes));
        }
        command
    }

    /// Sends, receives or closes, as the connection needs.
    fn go_on(&mut self, io: &mut impl Io, index: usize) {
        let [send, receive, close] = [NodePurpose::Send, NodePurpose::Receive, NodePurpose::Close]
            .map(|purpose| self.token(purpose, index));
        let Some(connection) = self.connections.get_mut(index) else { return };
        let socket = connection.socket();
        if let Some(buffers) = connection.begin_send() {
            io.submit(send, IoOp::Send { socket, buffers });
        }
        if let Some(buffer) = connection.begin_receive() {
            io.submit(receive, IoOp::Receive { socket, buffer });
        }
        let (is_open, closes) = (connection.is_open(), connection.begin_close());
        self.note_memory(index);
        if !is_open {
            self.leave_queues(index);
        }
        if closes {
            return io.submit(close, IoOp::Close { socket });
        }
        self.watch(io, index);
    }

    fn client_event(&mut self, io: &mut impl Io, index: usize, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Opened(name) => {
                let tenant = self.exports.tenant(&name);
                let Some(connection) = self.connections.get_mut(index) else { return };
                match tenant {
                    Some(tenant) => {
                        let known = self.blocks.losses(tenant);
                        connection.open(tenant, self.losses.at_opening(tenant, known));
                        self.exports.places().open(tenant);
                    }
                    None => connection.end(Ending::Closing),
                }
            }
            ConnectionEvent::StartTls => {
                let Some(connection) = self.connections.get_mut(index) else { return };
                match &self.tls {
                    Some((config, _)) => connection.start_tls(config),
                    None => connection.end(Ending::Closing),
                }
            }
            // It was not admitted, and comes again.
            ConnectionEvent::Announced(_) => {}
            ConnectionEvent::Request(taken) => self.request(io, index, taken),
            ConnectionEvent::Disconnect => self.end(index, Ending::Draining),
            ConnectionEvent::Violation => self.end(index, Ending::Closing),
        }
    }

    fn request(&mut self, io: &mut impl Io, index: usize, taken: TakenRequest) {
        let TakenRequest { mut request, data, bytes } = taken;
        request.command = self.bounded(request.command);
        let slow = self.would_be_slow(index, request.command);
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Some(tenant) = connection.tenant() else { return };
        let Some((op, range)) = block_op(request.command).filter(|_| !slow) else {
            if !slow {
                return self.status(io, index, request, bytes);
            }
            connection.release(bytes);
            return self.refuse_slow(index, &request);
        };
        connection.begin();
        let connection = ConnectionId::new(index);
        let arrived_ns = io.now_ns();
        self.capped.charge(tenant, data_bytes(request.command), arrived_ns);
        let client = ClientRequest { connection, request, tenant, arrived_ns, bytes };
        let tag = self.requests.begin(client);
        let (offset, length, durable) = (range.offset, range.length, request.fua);
        self.blocks.request(io, BlockRequest { tag, tenant, op, offset, length, durable, data });
    }

    /// Whether a command is to be fast and would not be: zeroes of less than a block are written,
    /// and so are those that keep their space where a device has no other way.
    fn would_be_slow(&self, index: usize, command: NbdCommand) -> bool {
        let NbdCommand::Zero { range, keep_space, fast: true } = command else { return false };
        let tenant = self.connections.get(index).and_then(Connection::tenant);
        let is_fast = tenant.is_some_and(|tenant| self.exports.zeroes_fast(tenant));
        let Range { offset, length } = range;
        let whole = offset.next_multiple_of(self.blocks.block_bytes());
        let has_block = whole + self.blocks.block_bytes() <= offset + length;
        keep_space || !is_fast || !has_block
    }

    /// Answers at once that zeroes would be no faster than a write.
    fn refuse_slow(&mut self, index: usize, request: &NbdRequest) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let (replies, text) = (connection.session().replies(), "zeroes would be slow here");
        replies.error(request, Errno::NotSupported, text, connection.headers());
    }

    /// A request for status begins: its backing device is asked if the client wants to know what is
    /// allocated.
    fn status(&mut self, io: &mut impl Io, index: usize, request: NbdRequest, bytes: u64) {
        let NbdCommand::BlockStatus { range, .. } = request.command else { return };
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Some(tenant) = connection.tenant() else { return };
        if !connection.session().contexts().any(|context| context == ALLOCATION) {
            connection.release(bytes);
            return self.answer_status(index, tenant, &request, &[]);
        }
        connection.begin();
        let number = self.statuses.begin(ConnectionId::new(index), request, tenant, bytes);
        let token = self.token(NodePurpose::Status, number);
        let bytes = range.offset..range.offset + range.length;
        let query = self.blocks.begin_allocation(io, token, tenant, bytes, MAX_DEVICE_EXTENTS);
        match query {
            Some(query) => self.statuses.ask(number, query),
            None => self.status_known(number, Output::Nothing),
        }
    }

    /// A backing device has said what is allocated, or is not asked.
    fn status_known(&mut self, number: usize, output: Output) {
        let Some((status, found)) = self.statuses.end(number, output) else { return };
        let index = status.connection.index();
        let Some(connection) = self.connections.get_mut(index) else { return };
        self.turns.add(index);
        if connection.answered(status.bytes) {
            self.answer_status(index, status.tenant, &status.request, &found);
        }
        self.note_memory(index);
    }

    fn answer_status(
        &mut self,
        index: usize,
        tenant: TenantId,
        request: &NbdRequest,
        found: &[FileExtent],
    ) {
        let NbdCommand::BlockStatus { range, single_extent } = request.command else { return };
        let Some(connection) = self.connections.get_mut(index) else { return };
        let all = self.settings.limits.extents as usize;
        let max_extents = if single_extent { 1 } else { all };
        let (replies, contexts) = (connection.session().replies(), connection.session().contexts());
        let contexts: Vec<u32> = contexts.collect();
        for (place, context) in contexts.iter().enumerate() {
            let runs = match *context {
                ALLOCATION => allocated(found, range.length, max_extents),
                context => extents(&self.blocks, tenant, context, range, max_extents),
            };
            let last = place + 1 == contexts.len();
            replies.extents(request, *context, &runs, last, connection.headers());
        }
        if contexts.is_empty() {
            replies.error(request, Errno::Inval, "no context was chosen", connection.headers());
        }
    }

    fn answered(&mut self, mut answer: BlockAnswer, now_ns: u64) {
        self.report_losses(&mut answer);
        let Some((client, waited_ns)) = self.requests.end(&answer, now_ns) else { return };
        self.blocks.client_answered(now_ns, waited_ns);
        let index = client.connection.index();
        self.reply(client, answer);
        self.note_memory(index);
        self.turns.add(index);
    }

    /// A flush that succeeds, or a change that is to be durable, fails once where answered writes
    /// were lost that its client may count on.
    fn report_losses(&mut self, answer: &mut BlockAnswer) {
        let Some(client) = self.requests.get(answer.tag) else { return };
        let ClientRequest { connection, request, tenant, .. } = *client;
        let reports = match request.command {
            NbdCommand::Flush => true,
            NbdCommand::Write(_) | NbdCommand::Trim(_) | NbdCommand::Zero { .. } => {
                request.fua && answer.result.is_ok()
            }
            _ => false,
        };
        if !reports {
            return;
        }
        let known = self.blocks.losses(tenant);
        let Some(connection) = self.connections.get_mut(connection.index()) else { return };
        if connection.losses().notify(known) {
            self.losses.note(tenant, known);
            answer.result = answer.result.and(Err(IoError::IO));
        }
    }

    fn reply(&mut self, client: ClientRequest, answer: BlockAnswer) {
        let ClientRequest { connection, request, bytes, .. } = client;
        let Some(connection) = self.connections.get_mut(connection.index()) else { return };
        if !connection.answered(bytes) {
            return;
        }
        let replies = connection.session().replies();
        match (answer.result, request.command) {
            (Err(error), _) => {
                let text = error.to_string();
                replies.error(&request, errno_of(error), &text, connection.headers());
            }
            (Ok(()), NbdCommand::Read { range, .. }) => {
                let length = range.length as u32;
                replies.data(&request, range.offset, length, true, connection.headers());
                connection.send_data(answer.data);
            }
            (Ok(()), _) => {
                replies.done(&request, connection.headers());
                self.blocks.give_back(answer.data); // Of a `Cache` command; others have none.
            }
        }
    }

    fn token(&self, purpose: NodePurpose, index: usize) -> Token {
        purpose.token(self.settings.namespace, index)
    }

    /// One more export, of the next tenant of the server of blocks.
    pub fn add_export(&mut self, export: ServedExport) {
        self.exports.add(export);
        self.requests.add_tenant();
    }

    /// Clients that open an export from now on find it as this says. Connections of clients that
    /// may not see it any more end at once: requests under way are carried out, and get no answer.
    /// Returns how many these are.
    pub fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
        self.exports.change(tenant, export);
        let exports = &self.exports;
        let is_barred = |connection: &Connection| {
            connection.tenant() == Some(tenant)
                && connection.is_served()
                && !exports.is_seen(tenant, connection.client_names())
        };
        let barred = self.connections.iter().filter(|(_, connection)| is_barred(connection));
        let barred: Vec<usize> = barred.map(|(index, _)| index).collect();
        barred.iter().for_each(|index| self.end(*index, Ending::Closing));
        barred.len()
    }

    /// An export is there no more: its clients get the answers to what they have sent, and their
    /// connections end.
    pub fn close_export(&mut self, tenant: TenantId) {
        self.exports.hide(tenant);
        for index in 0..self.connections.capacity() {
            let connection = self.connections.get_mut(index);
            if connection.and_then(|found| found.tenant()) == Some(tenant) {
                self.end(index, Ending::Draining);
            }
        }
    }

    /// Connections to a tenant's export.
    pub fn connections_to(&self, tenant: TenantId) -> usize {
        let own = |found: &Connection| found.tenant() == Some(tenant);
        self.connections.iter().filter(|(_, connection)| own(connection)).count()
    }

    /// The server of blocks, to be changed.
    pub fn blocks_mut(&mut self) -> &mut BlockServer {
        &mut self.blocks
    }

    /// Bounds what clients of a tenant's export may do, from now on.
    pub fn cap(&mut self, tenant: TenantId, caps: Caps) {
        self.capped.set(tenant, caps);
    }

    /// Reads and writes of a tenant's clients are to keep this time from now on, or none: its meter
    /// counts those that do not.
    pub fn set_limit(&mut self, tenant: TenantId, limit_ns: Option<u64>) {
        self.requests.set_limit(tenant, limit_ns);
    }

    /// How often clients of a tenant's export had done all that its caps allow.
    pub fn caps_exhausted(&self, tenant: TenantId) -> u64 {
        self.capped.exhausted(tenant)
    }

    /// Connections of exports with caps take their turns; true if one sent something whole.
    fn serve_capped(&mut self, io: &mut impl Io) -> bool {
        let mut begun = false;
        while let Some(due_ns) = self.capped.next_due_ns() {
            let now_ns = io.now_ns();
            let Some(index) = self.capped.next_turn(now_ns) else {
                if self.capped.begin_timer(due_ns) {
                    io.submit(self.token(NodePurpose::Turn, 0), IoOp::Timer { at_ns: due_ns });
                }
                break;
            };
            if self.take_request(io, index).is_some() {
                begun = true;
                let tenant = self.connections.get_mut(index).and_then(|found| found.tenant());
                tenant.map(|tenant| self.capped.waits(tenant, index));
            }
            self.go_on(io, index);
        }
        begun
    }
}

/// The contexts of every export; the place in the list is the context's number. In the second, bit
/// 0 says that the block is in the cache; in the third, that only the cache has its content.
pub const CONTEXTS: [&str; 3] = ["base:allocation", "x-cachewright:cached", "x-cachewright:dirty"];

/// The number of `base:allocation`.
pub const ALLOCATION: u32 = 0;

/// Blocks that one answer looks at: beyond them the client asks again.
const MAX_BLOCKS: u64 = 1 << 15;
/// Extents of a backing device that one answer looks for.
const MAX_DEVICE_EXTENTS: usize = 512;

/// A request for status that waits for its backing device.
#[derive(Debug)]
struct StatusRequest {
    /// Where its answer goes.
    pub connection: ConnectionId,
    /// As the client sent it.
    pub request: NbdRequest,
    /// Whose volume it is for.
    pub tenant: TenantId,
    /// Bytes of memory that it was taken with.
    pub bytes: u64,
    query: Option<AllocationQuery>,
}

/// The requests for status that wait for backing devices.
#[derive(Debug, Default)]
struct StatusRequests {
    waiting: Slab<StatusRequest>,
}

impl StatusRequests {
    /// A request begins that was taken with so many bytes of memory; returns its number.
    pub fn begin(
        &mut self,
        connection: ConnectionId,
        request: NbdRequest,
        tenant: TenantId,
        bytes: u64,
    ) -> usize {
        self.waiting.insert(StatusRequest { connection, request, tenant, bytes, query: None })
    }

    /// The backing device is asked for a request.
    pub fn ask(&mut self, number: usize, query: AllocationQuery) {
        if let Some(waiting) = self.waiting.get_mut(number) {
            waiting.query = Some(query);
        }
    }

    /// The backing device has answered, or is not asked; returns the request, and what is allocated
    /// of its range.
    pub fn end(
        &mut self,
        number: usize,
        output: Output,
    ) -> Option<(StatusRequest, Vec<FileExtent>)> {
        let mut ended = self.waiting.try_remove(number)?;
        let found = ended.query.take().map(|query| query.end(output)).unwrap_or_default();
        Some((ended, found))
    }
}

/// What is allocated of a range of so many bytes as runs, at most `max_extents`.
pub fn allocated(found: &[FileExtent], length: u64, max_extents: usize) -> Vec<StatusExtent> {
    let run = |FileExtent { bytes, is_hole }: &FileExtent| StatusExtent {
        length: *bytes,
        status: if *is_hole { STATE_HOLE | STATE_ZERO } else { 0 },
    };
    let mut runs: Vec<StatusExtent> = found.iter().take(max_extents).map(run).collect();
    if runs.is_empty() {
        runs.push(StatusExtent { length, status: 0 });
    }
    runs
}

/// The runs of a range in a context besides what is allocated, from its start, at most
/// `max_extents`.
pub fn extents(
    server: &BlockServer,
    tenant: TenantId,
    context: u32,
    range: Range,
    max_extents: usize,
) -> Vec<StatusExtent> {
    let block_bytes = server.block_bytes();
    let end = range.offset + range.length;
    let (first, last) = (range.offset / block_bytes, end.div_ceil(block_bytes));
    let mut runs: Vec<StatusExtent> = Vec::new();
    for number in first..last.min(first + MAX_BLOCKS) {
        let status = u64::from(if context == 1 {
            server.is_cached(tenant, number)
        } else {
            server.is_dirty(tenant, number)
        });
        let start = (number * block_bytes).max(range.offset);
        let length = ((number + 1) * block_bytes).min(end) - start;
        let full = runs.len() == max_extents;
        match runs.last_mut() {
            Some(run) if run.status == status => run.length += length,
            _ if full => break,
            _ => runs.push(StatusExtent { length, status }),
        }
    }
    runs
}

/// What a token of a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodePurpose {
    /// A listener accepts, or pauses after an accept that failed.
    Accept,
    /// A connection receives.
    Receive,
    /// A connection sends.
    Send,
    /// A connection is closed.
    Close,
    /// Postponed connections go on.
    Wake,
    /// Connections are looked at that may be too slow.
    Watch,
    /// Connections that wait because of caps are looked at.
    Turn,
    /// A backing device has said what is allocated.
    Status,
}

const NAMESPACE_SHIFT: u32 = 56;
const PURPOSE_SHIFT: u32 = 48;

impl NodePurpose {
    /// In the order of their codes.
    const ALL: [NodePurpose; 8] = [
        NodePurpose::Accept,
        NodePurpose::Receive,
        NodePurpose::Send,
        NodePurpose::Close,
        NodePurpose::Wake,
        NodePurpose::Watch,
        NodePurpose::Turn,
        NodePurpose::Status,
    ];

    /// The token, of a listener or a connection of this number.
    pub fn token(self, namespace: u8, index: usize) -> Token {
        let namespace = u64::from(namespace) << NAMESPACE_SHIFT;
        Token(namespace | (self as u64) << PURPOSE_SHIFT | index as u64)
    }

    /// What a token of a namespace is for, and its number; nothing for one of another.
    pub fn decode(namespace: u8, token: Token) -> Option<(NodePurpose, usize)> {
        if token.0 >> NAMESPACE_SHIFT != u64::from(namespace) {
            return None;
        }
        let index = (token.0 & ((1 << PURPOSE_SHIFT) - 1)) as usize;
        let code = token.0 >> PURPOSE_SHIFT & 0xff;
        let purpose = *NodePurpose::ALL.get(code as usize)?;
        Some((purpose, index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_is_for() {
        for (code, purpose) in NodePurpose::ALL.into_iter().enumerate() {
            let token = purpose.token(3, 40 + code);
            assert_eq!(NodePurpose::decode(3, token), Some((purpose, 40 + code)));
            assert_eq!(NodePurpose::decode(2, token), None);
        }
        assert_eq!(NodePurpose::decode(3, Token(3 << 56 | 8 << 48)), None);
    }
}
