//! Listeners, connections and exports of the NBD front end.
//!
//! Exports come, change and go while it runs. A question
//! about the status of ranges goes to the backing device, which may take its time, while other
//! requests go on. Where the device does not say, every byte is allocated and may be anything: that
//! is always right.

use super::connection::{
    Connection, ConnectionEvent, ConnectionId, ConnectionLimits, ConnectionRoundRobin, Ending,
    TakenRequest, block_op, errno_of, memory_bytes, request_kind,
};
use super::list::ExportList;
use super::listeners::Listeners;
use super::tls::TlsConfig;
use crate::blocks::{AllocationQuery, BlockAnswer, BlockRequest, BlockServer};
use crate::front::{
    BlockService, CapQueues, ClientMemory, EarliestTimer, FrontEnd, NotifiedLosses, ServedExport,
};
use crate::io::token::{Submitter, purpose};
use crate::io::{Done, FileExtent, Io, IoOp, ListenerId, Output, SocketId, Token};
use cachewright_nbd::protocol::{STATE_HOLE, STATE_ZERO};
use cachewright_nbd::{
    BlockSizes, Errno, Limits, NbdCommand, NbdRequest, Range, Settings, StatusExtent, Tls,
};
use cachewright_types::TenantId;
use slab::Slab;

/// How the NBD front end serves.
#[derive(Clone, Copy, Debug)]
pub struct NbdSettings {
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
}

/// Clients that speak NBD.
pub struct NbdFrontEnd {
    exports: ExportList,
    settings: NbdSettings,
    /// How TLS is done, and whether clients may do without.
    tls: Option<(TlsConfig, Tls)>,
    listeners: Listeners,
    connections: Slab<Connection>,
    turns: ConnectionRoundRobin,
    /// When connections are looked at that may be too slow.
    watch: EarliestTimer,
    /// Requests that the service works on.
    requests: Slab<NbdClientRequest>,
    /// Requests for status that wait for backing devices.
    statuses: StatusRequests,
    /// Connections that wait because of caps.
    capped: CapQueues,
    /// What requests and answers take, and connections that wait for some.
    memory: ClientMemory,
}

/// A request that the service works on.
#[derive(Clone, Copy, Debug)]
struct NbdClientRequest {
    /// Where its answer goes.
    connection: ConnectionId,
    /// As the client sent it.
    request: NbdRequest,
    /// Bytes of memory that it takes.
    bytes: u64,
}

/// The pause after an accept that failed, in nanoseconds: the process may have no descriptor left.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

impl NbdFrontEnd {
    /// Serves these exports, in the order of tenants, of an service with blocks of so many bytes.
    pub fn new(exports: Vec<ServedExport>, block_bytes: u64, settings: NbdSettings) -> NbdFrontEnd {
        let sizes = BlockSizes {
            min: 1,
            preferred: (block_bytes as u32).max(4096),
            max_payload: settings.limits.payload_bytes,
        };
        NbdFrontEnd {
            requests: Slab::default(),
            statuses: StatusRequests::default(),
            capped: CapQueues::default(),
            exports: ExportList::new(exports, sizes, settings.max_connections),
            memory: ClientMemory::new(settings.client_memory, settings.max_connections),
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

    /// No client is accepted any more, and connections end when what is under way is answered.
    fn end_all(&mut self) {
        self.listeners.stop();
        while let Some(socket) = self.listeners.next_client() {
            let index = self.connect(socket);
            self.end(index, Ending::Closing);
        }
        for index in 0..self.connections.capacity() {
            self.end(index, Ending::Draining);
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
            io.submit(NbdPurpose::Watch.token(0), IoOp::Timer { at_ns });
        }
    }

    fn accept(&mut self, io: &mut impl Io) {
        while self.connections.len() < self.settings.max_connections
            && let Some(socket) = self.listeners.next_client()
        {
            let index = self.connect(socket);
            self.go_on(io, index);
        }
        while let Some((index, listener)) = self.listeners.begin_accept() {
            io.submit(NbdPurpose::Accept.token(index), IoOp::Accept { listener });
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
            self.end_all();
        }
    }

    /// A client is served from now on: it is greeted. Returns its connection.
    fn connect(&mut self, socket: SocketId) -> usize {
        let tls = self.tls.as_ref().map_or(Tls::Off, |(_, tls)| *tls);
        let NbdSettings { limits, extended_headers, .. } = self.settings;
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
    fn take_requests(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        index: usize,
    ) -> bool {
        let mut begun = false;
        while let Some(connection) = self.connections.get_mut(index) {
            // One that waits for memory has had its turn.
            let tenant = connection.tenant().filter(|_| !connection.has_announced());
            let waits = tenant.is_some_and(|tenant| {
                let allowance = &service.clients.allowances()[tenant.index()];
                self.capped.waits(tenant, index, allowance)
            });
            let taken = if waits { None } else { self.take_request(io, service, index) };
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
    fn take_request(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        index: usize,
    ) -> Option<bool> {
        loop {
            let connection = self.connections.get_mut(index)?;
            let event = match connection.next_event(&self.exports)? {
                ConnectionEvent::Announced(request) => {
                    match self.admit(&service.blocks, index, &request)? {
                        Some(event) => event,
                        None => continue,
                    }
                }
                event => event,
            };
            let pauses = event.is_status();
            self.client_event(io, service, index, event);
            self.note_memory(index);
            return Some(pauses);
        }
    }

    /// Takes a request whose header has come, if there is memory for it; what follows then, if it
    /// has no payload.
    fn admit(
        &mut self,
        blocks: &BlockServer,
        index: usize,
        request: &NbdRequest,
    ) -> Option<Option<ConnectionEvent>> {
        let runs = u64::from(self.settings.limits.extents);
        let bytes = memory_bytes(self.bounded(request.command), blocks.block_bytes(), runs);
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
        let [send, receive, close] = [NbdPurpose::Send, NbdPurpose::Receive, NbdPurpose::Close]
            .map(|purpose| purpose.token(index));
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

    fn client_event(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        index: usize,
        event: ConnectionEvent,
    ) {
        match event {
            ConnectionEvent::Opened(name) => {
                let tenant = self.exports.tenant(&name);
                let Some(connection) = self.connections.get_mut(index) else { return };
                match tenant {
                    Some(tenant) => {
                        let known = service.blocks.losses(tenant);
                        connection.open(tenant, service.clients.losses.at_opening(tenant, known));
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
            ConnectionEvent::Request(taken) => self.request(io, service, index, taken),
            ConnectionEvent::Disconnect => self.end(index, Ending::Draining),
            ConnectionEvent::Violation => self.end(index, Ending::Closing),
        }
    }

    fn request(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        index: usize,
        taken: TakenRequest,
    ) {
        let TakenRequest { mut request, data, bytes } = taken;
        request.command = self.bounded(request.command);
        let block_bytes = service.blocks.block_bytes();
        let slow = self.would_be_slow(block_bytes, index, request.command);
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Some(tenant) = connection.tenant() else { return };
        if slow {
            connection.release(bytes);
            return self.refuse_slow(index, &request);
        }
        let Some(((op, range), (kind, _))) =
            block_op(request.command).zip(request_kind(request.command))
        else {
            return self.status(io, service, index, request, bytes);
        };
        connection.begin();
        let connection = ConnectionId::new(index);
        let number = self.requests.insert(NbdClientRequest { connection, request, bytes });
        let (offset, length, durable) = (range.offset, range.length, request.fua);
        let request = BlockRequest { tag: 0, tenant, op, offset, length, durable, data };
        service.request(io, Submitter::Nbd, number, kind, request);
    }

    /// Whether a command is to be fast and would not be: zeroes of less than a block are written,
    /// and so are those that keep their space where a device has no other way.
    fn would_be_slow(&self, block_bytes: u64, index: usize, command: NbdCommand) -> bool {
        let NbdCommand::Zero { range, keep_space, fast: true } = command else { return false };
        let tenant = self.connections.get(index).and_then(Connection::tenant);
        let is_fast = tenant.is_some_and(|tenant| self.exports.zeroes_fast(tenant));
        let Range { offset, length } = range;
        let whole = offset.next_multiple_of(block_bytes);
        let has_block = whole + block_bytes <= offset + length;
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
    fn status(
        &mut self,
        io: &mut impl Io,
        service: &mut BlockService,
        index: usize,
        request: NbdRequest,
        bytes: u64,
    ) {
        let NbdCommand::BlockStatus { range, .. } = request.command else { return };
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Some(tenant) = connection.tenant() else { return };
        if !connection.session().contexts().any(|context| context == ALLOCATION) {
            connection.release(bytes);
            return self.answer_status(&service.blocks, index, tenant, &request, &[]);
        }
        connection.begin();
        let number = self.statuses.begin(ConnectionId::new(index), request, tenant, bytes);
        let token = NbdPurpose::Status.token(number);
        let bytes = range.offset..range.offset + range.length;
        let blocks = &mut service.blocks;
        let query = blocks.begin_allocation(io, token, tenant, bytes, MAX_DEVICE_EXTENTS);
        match query {
            Some(query) => self.statuses.ask(number, query),
            None => self.status_known(blocks, number, Output::Nothing),
        }
    }

    /// A backing device has said what is allocated, or is not asked.
    fn status_known(&mut self, blocks: &BlockServer, number: usize, output: Output) {
        let Some((status, found)) = self.statuses.end(number, output) else { return };
        let index = status.connection.index();
        let Some(connection) = self.connections.get_mut(index) else { return };
        self.turns.add(index);
        if connection.answered(status.bytes) {
            self.answer_status(blocks, index, status.tenant, &status.request, &found);
        }
        self.note_memory(index);
    }

    fn answer_status(
        &mut self,
        blocks: &BlockServer,
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
                context => extents(blocks, tenant, context, range, max_extents),
            };
            let last = place + 1 == contexts.len();
            replies.extents(request, *context, &runs, last, connection.headers());
        }
        if contexts.is_empty() {
            replies.error(request, Errno::Inval, "no context was chosen", connection.headers());
        }
    }

    fn reply(&mut self, blocks: &mut BlockServer, client: NbdClientRequest, answer: BlockAnswer) {
        let NbdClientRequest { connection, request, bytes } = client;
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
                blocks.give_back(answer.data); // Of a `Cache` command; others have none.
            }
        }
    }

    /// Connections of exports with caps take their turns; true if one sent something whole.
    fn serve_capped(&mut self, io: &mut impl Io, service: &mut BlockService) -> bool {
        let mut begun = false;
        while let Some(due_ns) = self.capped.next_due_ns(service.clients.allowances()) {
            let now_ns = io.now_ns();
            let turn = self.capped.next_turn(service.clients.allowances(), now_ns);
            let Some(index) = turn else {
                if self.capped.begin_timer(due_ns) {
                    io.submit(NbdPurpose::Turn.token(0), IoOp::Timer { at_ns: due_ns });
                }
                break;
            };
            if self.take_request(io, service, index).is_some() {
                begun = true;
                let tenant = self.connections.get(index).and_then(Connection::tenant);
                if let Some(tenant) = tenant {
                    let allowance = &service.clients.allowances()[tenant.index()];
                    self.capped.waits(tenant, index, allowance);
                }
            }
            self.go_on(io, index);
        }
        begun
    }
}

impl<I: Io> FrontEnd<I> for NbdFrontEnd {
    fn submitter(&self) -> Submitter {
        Submitter::Nbd
    }

    fn serve(&mut self, io: &mut I, service: &mut BlockService) -> bool {
        let mut begun = self.serve_capped(io, service);
        for index in self.turns.take() {
            if !self.turns.is_postponed(index) {
                begun |= self.take_requests(io, service, index);
            }
            self.go_on(io, index);
        }
        while let Some(index) = self.memory.next_turn() {
            begun |= self.take_requests(io, service, index);
            self.go_on(io, index);
        }
        if self.turns.begin_wake() {
            let at_ns = io.now_ns();
            io.submit(NbdPurpose::Wake.token(0), IoOp::Timer { at_ns });
        }
        self.accept(io);
        begun
    }

    fn on_done(&mut self, io: &mut I, service: &mut BlockService, done: Done) {
        let Some((purpose, index)) = NbdPurpose::of(done.token) else { return };
        match purpose {
            NbdPurpose::Accept => self.accepted(io, index, done),
            NbdPurpose::Close => self.closed(index),
            NbdPurpose::Wake => self.turns.wake(),
            NbdPurpose::Watch => self.end_slow(io.now_ns()),
            NbdPurpose::Turn => self.capped.end_timer(io.now_ns()),
            NbdPurpose::Status => self.status_known(&service.blocks, index, done.output),
            NbdPurpose::Receive | NbdPurpose::Send => {
                let Some(connection) = self.connections.get_mut(index) else { return };
                let failed = done.error.is_some();
                match done.output {
                    Output::Buffer(buffer, count) => {
                        connection.received(buffer, if failed { 0 } else { count });
                    }
                    Output::Buffers(buffers) => {
                        connection.sent(failed);
                        buffers.into_iter().for_each(|buffer| service.blocks.give_back(buffer));
                    }
                    _ => connection.sent(failed),
                }
                self.note_memory(index);
                self.turns.add(index);
            }
        }
    }

    fn losses(&mut self, number: usize) -> Option<&mut NotifiedLosses> {
        let request = self.requests.get(number)?;
        self.connections.get_mut(request.connection.index()).map(Connection::losses)
    }

    fn answered(&mut self, service: &mut BlockService, number: usize, answer: BlockAnswer) {
        let Some(request) = self.requests.try_remove(number) else { return };
        let index = request.connection.index();
        self.reply(&mut service.blocks, request, answer);
        self.note_memory(index);
        self.turns.add(index);
    }

    fn dropped(&mut self, number: usize) {
        let Some(request) = self.requests.try_remove(number) else { return };
        if let Some(connection) = self.connections.get_mut(request.connection.index()) {
            connection.answered(request.bytes);
        }
    }

    fn stop(&mut self, _io: &mut I) {
        self.end_all();
    }

    fn is_stopped(&self) -> bool {
        self.listeners.is_stopping() && self.connections.is_empty()
    }

    fn add_export(&mut self, export: ServedExport) {
        self.exports.add(export);
    }

    fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
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

    fn close_export(&mut self, tenant: TenantId) {
        self.exports.hide(tenant);
        for index in 0..self.connections.capacity() {
            let connection = self.connections.get_mut(index);
            if connection.and_then(|found| found.tenant()) == Some(tenant) {
                self.end(index, Ending::Draining);
            }
        }
    }

    fn connections_to(&self, tenant: TenantId) -> usize {
        let own = |found: &Connection| found.tenant() == Some(tenant);
        self.connections.iter().filter(|(_, connection)| own(connection)).count()
    }

    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn held_bytes(&self) -> u64 {
        self.memory.used()
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

/// What an operation of the front end is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NbdPurpose {
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

impl NbdPurpose {
    /// In the order of their codes.
    const ALL: [NbdPurpose; 8] = [
        NbdPurpose::Accept,
        NbdPurpose::Receive,
        NbdPurpose::Send,
        NbdPurpose::Close,
        NbdPurpose::Wake,
        NbdPurpose::Watch,
        NbdPurpose::Turn,
        NbdPurpose::Status,
    ];

    /// The token, of a listener or a connection of this number.
    fn token(self, number: usize) -> Token {
        Submitter::Nbd.token(self as u8, number)
    }

    /// What an operation of the front end is for, and its number.
    fn of(token: Token) -> Option<(NbdPurpose, usize)> {
        let (code, number) = purpose(token);
        Some((*NbdPurpose::ALL.get(usize::from(code))?, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_what_it_is_for() {
        for (code, purpose) in NbdPurpose::ALL.into_iter().enumerate() {
            assert_eq!(NbdPurpose::of(purpose.token(40 + code)), Some((purpose, 40 + code)));
        }
        assert_eq!(NbdPurpose::of(Submitter::Nbd.token(8, 0)), None);
    }
}
