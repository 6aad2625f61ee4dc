//! Front ends: the protocols by which clients reach volumes.
//!
//! A server owns one [`BlockService`] and any number of front ends, all driven over one [`Io`]. A
//! front end turns what its clients send into requests to the service, and answers into what they
//! are sent. All else is the same whatever protocol a client speaks, and stands here: counts and
//! times of requests, caps, losses of answered writes, and which front end an answer is for.

mod clients;
mod losses;
mod memory;
mod meters;
mod timer;

pub use clients::{ClientRequest, Clients};
pub use losses::{LossNews, NotifiedLosses};
pub use memory::ClientMemory;
pub use meters::{Allowance, AnswerMeter, CapQueues, Caps, ExportMeter, LimitMeter, RequestKind};
pub use timer::EarliestTimer;

use crate::blocks::{BlockAnswer, BlockRequest, BlockServer};
use crate::io::token::Submitter;
use crate::io::{Done, Io, IoError};
use cachewright_types::TenantId;

/// A volume as clients find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedExport {
    /// Its name; each export has its own.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Whether writes, trims and zeroes are refused.
    pub read_only: bool,
    /// Names of certificates that may see it; empty: every client may.
    pub clients: Vec<String>,
    /// Connections that it may have at one time; nothing: as many as leave others theirs.
    pub max_connections: Option<usize>,
    /// Whether zeroes are faster than writes.
    pub fast_zero: bool,
}

/// The server of blocks, and what is kept of its clients.
pub struct BlockService {
    /// The cache and its volumes.
    pub blocks: BlockServer,
    /// What clients of each volume asked for, may do, and were told.
    pub clients: Clients,
    /// Times that front ends had their turn; another one is the first each time.
    rounds: usize,
}

impl BlockService {
    /// For clients of so many tenants.
    pub fn new(blocks: BlockServer, tenants: usize) -> BlockService {
        BlockService { blocks, clients: Clients::new(tenants), rounds: 0 }
    }

    /// A front end asks, and knows the request by `number`. The tag is given here.
    pub fn request(
        &mut self,
        io: &mut impl Io,
        front: Submitter,
        number: usize,
        kind: RequestKind,
        mut request: BlockRequest,
    ) {
        let BlockRequest { tenant, op, length: bytes, durable, .. } = request;
        let arrived_ns = io.now_ns();
        let client = ClientRequest { front, number, tenant, op, kind, bytes, durable, arrived_ns };
        request.tag = self.clients.begin(client);
        self.blocks.request(io, request);
    }

    /// A flush that succeeds, or a change that is to be durable, fails once where answered writes
    /// were lost that its client may count on.
    fn report_losses(
        &mut self,
        request: &ClientRequest,
        told: &mut NotifiedLosses,
        answer: &mut BlockAnswer,
    ) {
        if !request.reports_losses(answer.result.is_ok()) {
            return;
        }
        let known = self.blocks.losses(request.tenant);
        if told.notify(known) {
            self.clients.losses.note(request.tenant, known);
            answer.result = answer.result.and(Err(IoError::IO));
        }
    }
}

/// Clients of one protocol. Its own operations are those with tokens of its [`Submitter`].
pub trait FrontEnd<I: Io> {
    /// Whose operations and requests are its own.
    fn submitter(&self) -> Submitter;

    /// Lets clients go on: takes what they sent, sends what they are to get, accepts others. True
    /// if a request has begun.
    fn serve(&mut self, io: &mut I, service: &mut BlockService) -> bool;

    /// An operation of its own is done.
    fn on_done(&mut self, io: &mut I, service: &mut BlockService, done: Done);

    /// What the client of a request was told of lost writes, if it is there still.
    fn losses(&mut self, number: usize) -> Option<&mut NotifiedLosses>;

    /// The answer to a request.
    fn answered(&mut self, service: &mut BlockService, number: usize, answer: BlockAnswer);

    /// A request was dropped when the server stopped: its client gets no answer.
    fn dropped(&mut self, number: usize);

    /// No client is accepted any more. Requests that are decided are answered, then clients are
    /// let go; one that does not take its answers, after a while.
    fn stop(&mut self, io: &mut I);

    /// Whether it was stopped, and all clients are gone.
    fn is_stopped(&self) -> bool;

    /// One more volume, of the next tenant.
    fn add_export(&mut self, export: ServedExport);

    /// Clients find a volume as this says. Those that may not see it any more are let go at once:
    /// requests under way are carried out, and get no answer. Returns how many these are.
    fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize;

    /// A volume is there no more: its clients get the answers to what they have sent, and are let
    /// go.
    fn close_export(&mut self, tenant: TenantId);

    /// Clients that are connected to a tenant's volume.
    fn connections_to(&self, tenant: TenantId) -> usize;

    /// Clients that are connected.
    fn connections(&self) -> usize;

    /// Bytes of requests under way and of answers that are not sent, of all clients.
    fn held_bytes(&self) -> u64;
}

/// Begins what is due. To be called once for as many operations as were done at once.
pub fn advance<I: Io>(io: &mut I, service: &mut BlockService, fronts: &mut [&mut dyn FrontEnd<I>]) {
    // Front ends share the caps of a volume: none is always the first to use them up.
    service.rounds = service.rounds.wrapping_add(1);
    let first = service.rounds % fronts.len().max(1);
    fronts.rotate_left(first);
    serve(io, service, fronts);
    loop {
        service.blocks.advance(io);
        let answers = service.blocks.take_answers();
        let now_ns = if answers.is_empty() { 0 } else { io.now_ns() };
        for answer in answers {
            answered(service, fronts, answer, now_ns);
        }
        if !serve(io, service, fronts) {
            break;
        }
    }
}

/// True if a request has begun.
fn serve<I: Io>(
    io: &mut I,
    service: &mut BlockService,
    fronts: &mut [&mut dyn FrontEnd<I>],
) -> bool {
    fronts.iter_mut().fold(false, |begun, front| front.serve(io, service) | begun)
}

fn answered<I: Io>(
    service: &mut BlockService,
    fronts: &mut [&mut dyn FrontEnd<I>],
    mut answer: BlockAnswer,
    now_ns: u64,
) {
    let Some(request) = service.clients.end(answer.tag) else { return };
    let Some(front) = front_of(fronts, request.front) else { return };
    if let Some(told) = front.losses(request.number) {
        service.report_losses(&request, told, &mut answer);
    }
    let waited_ns = now_ns.saturating_sub(request.arrived_ns);
    service.clients.note(&request, waited_ns, answer.result.is_err());
    service.blocks.client_answered(now_ns, waited_ns);
    front.answered(service, request.number, answer);
}

/// An operation is done, of the service or a front end. [`advance`] is to be called after some.
pub fn on_done<I: Io>(
    io: &mut I,
    service: &mut BlockService,
    fronts: &mut [&mut dyn FrontEnd<I>],
    done: Done,
) {
    if service.blocks.owns(done.token) {
        return service.blocks.on_done(io, done);
    }
    let front = Submitter::of(done.token).and_then(|submitter| front_of(fronts, submitter));
    if let Some(front) = front {
        front.on_done(io, service, done);
    }
}

/// No client is accepted any more: requests that are decided are answered, then clients are let
/// go. Other requests are dropped, and clients send them again when they are connected again.
pub fn stop<I: Io>(io: &mut I, service: &mut BlockService, fronts: &mut [&mut dyn FrontEnd<I>]) {
    for tag in service.blocks.drop_undecided() {
        let Some(request) = service.clients.end(tag) else { continue };
        if let Some(front) = front_of(fronts, request.front) {
            front.dropped(request.number);
        }
    }
    fronts.iter_mut().for_each(|front| front.stop(io));
}

fn front_of<'a, I: Io>(
    fronts: &'a mut [&mut dyn FrontEnd<I>],
    submitter: Submitter,
) -> Option<&'a mut dyn FrontEnd<I>> {
    for front in fronts {
        if front.submitter() == submitter {
            return Some(&mut **front);
        }
    }
    None
}
