//! The clients of a rehearsal: recorded requests, sent to the server in virtual time.
//!
//! In an open loop a request arrives at its recorded time, whatever the server does. In a closed
//! loop each tenant has so many clients, of which each sends the tenant's next request when its
//! last one was answered. A request that has arrived waits for the caps of its tenant and for
//! memory of clients, as it does before a real server's front ends; its response time begins when
//! it arrived. After a kill the clients send again what was not answered. Units: bytes,
//! nanoseconds.

use super::recording::{Recording, RequestStream};
use super::versions::{Expected, Versions};
use super::{Pace, RehearsedIo};
use crate::error::LiveError;
use crate::machine::Processor;
use cachewright_live::blocks::{BlockAnswer, BlockOp, BlockRequest};
use cachewright_live::front::{
    BlockService, EarliestTimer, FrontEnd, NotifiedLosses, RequestKind, ServedExport,
};
use cachewright_live::io::token::Submitter;
use cachewright_live::io::{Buffer, Done, Io, IoOp, Token};
use cachewright_types::measure::Responses;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// Requests that have arrived and wait: with more, the server does not keep up.
const MAX_WAITING: usize = 1 << 20;
/// Bytes that one read of a look at all content has at most.
const LOOK_BYTES: u64 = 256 << 10;
/// The timer of the next arrival, or of the caps of a tenant.
const TIMER: Token = Submitter::Rehearsal.token(0, 0);

/// Requests of one kind that were answered.
#[derive(Clone, Debug, Default)]
pub struct KindMeter {
    /// From their arrival to their answer.
    pub responses: Responses,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Those that were answered with an error.
    pub errors: u64,
}

/// A request that has arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Its place among all arrivals.
    order: u64,
    arrived_ns: u64,
    request: Request,
    /// Of a write or a trim; 0 before it is sent to this server.
    version: u64,
    /// It looks at content after the rehearsal, and does not count.
    is_look: bool,
}

/// A request that the server works on.
#[derive(Debug)]
struct Sent {
    arrival: Arrival,
    /// What a read must find.
    expected: Expected,
}

/// Where requests come from.
enum Source {
    /// All tenants' by their times.
    Recorded(Box<RequestStream>),
    /// Each tenant's, and when each of its clients is free.
    Closed(Vec<(RequestStream, BinaryHeap<Reverse<u64>>)>),
}

/// The clients; see the top of the file.
pub struct RecordedClients {
    source: Source,
    processor: Processor,
    /// Bytes of requests under way that clients may have.
    memory: u64,
    volume_bytes: Vec<u64>,
    /// When the recording begins.
    begin_ns: u64,
    arrived: u64,
    /// By tenant, in order.
    waiting: Vec<VecDeque<Arrival>>,
    under_way: Slab<Sent>,
    held_bytes: u64,
    /// Answers that no client has been given yet.
    answered: Vec<(usize, BlockAnswer)>,
    timer: EarliestTimer,
    versions: Versions,
    meters: Vec<[KindMeter; 4]>,
    /// Requests that lie beyond their volume, or have no bytes.
    skipped: u64,
    /// Why the rehearsal cannot go on.
    failed: Option<LiveError>,
}

impl RecordedClients {
    /// Clients that send the requests of a recording, those before `until` if that is given, to
    /// volumes of so many bytes. They may have `memory` bytes of requests under way. Errors: the
    /// recording's.
    pub fn new(
        recording: &Recording,
        pace: Pace,
        until: Option<Nanos>,
        processor: Processor,
        memory: u64,
        volume_bytes: Vec<u64>,
        is_checking: bool,
    ) -> Result<RecordedClients, LiveError> {
        let tenants = volume_bytes.len();
        let source = match pace {
            Pace::Recorded { speed } => Source::Recorded(Box::new(recording.all(speed, until)?)),
            Pace::Closed { clients } => {
                let stream = |tenant| {
                    let free = std::iter::repeat_n(Reverse(0), clients).collect();
                    recording.of(tenant, until).map(|stream| (stream, free))
                };
                Source::Closed((0..tenants).map(stream).collect::<Result<_, _>>()?)
            }
        };
        Ok(RecordedClients {
            source,
            processor,
            memory,
            volume_bytes,
            begin_ns: 0,
            arrived: 0,
            waiting: vec![VecDeque::new(); tenants],
            under_way: Slab::new(),
            held_bytes: 0,
            answered: Vec::new(),
            timer: EarliestTimer::default(),
            versions: Versions::new(is_checking),
            meters: vec![Default::default(); tenants],
            skipped: 0,
            failed: None,
        })
    }

    /// The recording begins now.
    pub fn begin(&mut self, now_ns: u64) {
        self.begin_ns = now_ns;
    }

    /// What has arrived by now may be sent; what arrives later has to wait for the next turn, as
    /// bytes in a socket do until a server looks. Errors: the recording cannot be read, or the
    /// server is too far behind it.
    pub fn turn(&mut self, now_ns: u64) -> Result<(), LiveError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some((arrived_ns, request)) = self.next_arrival(now_ns)? {
            match within(request, self.volume_bytes[request.tenant.index()]) {
                Some(request) => self.arrive(arrived_ns, request, false),
                None => self.skipped += 1,
            }
        }
        let waiting: usize = self.waiting.iter().map(VecDeque::len).sum();
        if waiting > MAX_WAITING && matches!(self.source, Source::Recorded(_)) {
            let passed = Nanos(now_ns.saturating_sub(self.begin_ns));
            return Err(LiveError::Failed(format!(
                "after {passed} more than {MAX_WAITING} requests wait for the rehearsed server, \
                 expected one that keeps up: faster devices, a smaller `--speed`, or `--clients`"
            )));
        }
        Ok(())
    }

    /// Whether all requests were answered. Errors: the recording's.
    pub fn are_done(&mut self) -> Result<bool, LiveError> {
        Ok(self.is_stopped() && self.next_source_ns()?.is_none())
    }

    /// Requests that the server works on.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// The server was killed: what it has not answered is sent again, in the same order.
    pub fn server_killed(&mut self) {
        self.answered.clear();
        self.timer = EarliestTimer::default();
        self.held_bytes = 0;
        let mut again: Vec<Arrival> = self.under_way.drain().map(|sent| sent.arrival).collect();
        again.sort_unstable_by_key(|arrival| Reverse(arrival.order));
        for mut arrival in again {
            // Sent again, it changes what was answered meanwhile: it is another version.
            arrival.version = 0;
            self.waiting[arrival.request.tenant.index()].push_front(arrival);
        }
    }

    /// All sectors that were written are read back; these reads do not count.
    pub fn look_at_all(&mut self, now_ns: u64) {
        for (tenant, Range { start, end }) in self.versions.written(LOOK_BYTES) {
            let (offset, length) = (Bytes(start), Bytes(end - start));
            let request = Request { time: Nanos(now_ns), offset, length, op: Op::Read, tenant };
            self.arrive(now_ns, request, true);
        }
    }

    /// What was answered to a tenant's clients, by kind.
    pub fn meters(&self, tenant: usize) -> &[KindMeter; 4] {
        &self.meters[tenant]
    }

    /// Requests that lie beyond their volume, or have no bytes: they were not sent.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// What reads have found.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    fn arrive(&mut self, arrived_ns: u64, request: Request, is_look: bool) {
        let order = self.arrived;
        self.arrived += 1;
        let arrival = Arrival { order, arrived_ns, request, version: 0, is_look };
        self.waiting[request.tenant.index()].push_back(arrival);
    }

    /// The next request that has arrived by now, and when. Errors: the recording's.
    fn next_arrival(&mut self, now_ns: u64) -> Result<Option<(u64, Request)>, LiveError> {
        match &mut self.source {
            Source::Recorded(stream) => {
                let begin_ns = self.begin_ns;
                let next = stream.peek()?;
                let next = next.map(|request| (begin_ns.saturating_add(request.time.0), request));
                let next = next.filter(|(arrived_ns, _)| *arrived_ns <= now_ns);
                next.iter().for_each(|_| stream.pass());
                Ok(next)
            }
            Source::Closed(tenants) => {
                for (stream, free) in tenants {
                    let Some(free_ns) = free.peek().map(|Reverse(free_ns)| *free_ns) else {
                        continue;
                    };
                    let arrived_ns = free_ns.max(self.begin_ns);
                    if arrived_ns > now_ns {
                        continue;
                    }
                    let Some(request) = stream.peek()? else { continue };
                    stream.pass();
                    // One that is left out takes no client.
                    if within(request, self.volume_bytes[request.tenant.index()]).is_some() {
                        free.pop();
                    }
                    return Ok(Some((arrived_ns, request)));
                }
                Ok(None)
            }
        }
    }

    /// When the next request arrives that has not; nothing if none will, or only after an answer.
    /// Errors: the recording's.
    fn next_source_ns(&mut self) -> Result<Option<u64>, LiveError> {
        let begin_ns = self.begin_ns;
        match &mut self.source {
            Source::Recorded(stream) => {
                Ok(stream.peek()?.map(|request| begin_ns.saturating_add(request.time.0)))
            }
            Source::Closed(tenants) => {
                let mut earliest = None;
                for (stream, free) in tenants {
                    if let Some(Reverse(free_ns)) = free.peek()
                        && stream.peek()?.is_some()
                    {
                        let at_ns = begin_ns.max(*free_ns);
                        earliest = Some(earliest.map_or(at_ns, |so_far: u64| so_far.min(at_ns)));
                    }
                }
                Ok(earliest)
            }
        }
    }

    /// The tenant whose request is sent next, if one is: the first that has arrived, of those whose
    /// caps let them go on. Nothing overtakes one that waits for memory.
    fn next_tenant(&self, service: &BlockService, now_ns: u64) -> Option<usize> {
        let allowances = service.clients.allowances();
        let may_go = |tenant: &usize| allowances[*tenant].due_ns() <= now_ns;
        let firsts = self.waiting.iter().enumerate();
        let firsts = firsts.filter_map(|(tenant, all)| Some((tenant, all.front()?)));
        let firsts = firsts.filter(|(tenant, _)| may_go(tenant));
        let (tenant, arrival) = firsts.min_by_key(|(_, arrival)| arrival.order)?;
        let bytes = held_bytes(&arrival.request);
        let fits = self.held_bytes == 0 || self.held_bytes + bytes <= self.memory;
        fits.then_some(tenant)
    }

    fn send(&mut self, io: &mut RehearsedIo, service: &mut BlockService, tenant: usize) {
        let Some(mut arrival) = self.waiting[tenant].pop_front() else { return };
        let Request { offset, length, op, tenant, .. } = arrival.request;
        let (offset, length) = (offset.0, length.0);
        if arrival.version == 0 && matches!(op, Op::Write | Op::Trim) {
            arrival.version = self.versions.next();
        }
        let mut data = Buffer::default();
        let mut expected = Expected::default();
        let op = match op {
            Op::Read => {
                expected = self.versions.expected(tenant, offset, length);
                BlockOp::Read
            }
            Op::Write => {
                self.versions.write_sent(tenant, offset, length, arrival.version);
                data = Versions::data(arrival.version, offset, length as usize);
                BlockOp::Write
            }
            Op::Trim => {
                self.versions.trim_sent(tenant, offset, length, arrival.version);
                BlockOp::Trim
            }
            Op::Flush => BlockOp::Flush,
        };
        self.held_bytes += held_bytes(&arrival.request);
        let number = self.under_way.insert(Sent { arrival, expected });
        let bytes_ns = match op {
            BlockOp::Write => self.processor.bytes_ns(Op::Write, length),
            _ => 0,
        };
        io.inner().work(self.processor.request.0 + bytes_ns);
        let request = BlockRequest { tag: 0, tenant, op, offset, length, durable: false, data };
        service.request(io, Submitter::Rehearsal, number, RequestKind::of(op), request);
    }

    /// Gives clients their answers.
    fn give_answers(&mut self, io: &mut RehearsedIo, service: &mut BlockService) {
        for (number, answer) in std::mem::take(&mut self.answered) {
            let Some(Sent { arrival, expected }) = self.under_way.try_remove(number) else {
                continue;
            };
            let Request { offset, length, op, tenant, .. } = arrival.request;
            let bytes_ns = match op {
                Op::Read => self.processor.bytes_ns(op, length.0),
                _ => 0,
            };
            io.inner().work(self.processor.answer.0 + bytes_ns);
            self.held_bytes -= held_bytes(&arrival.request);
            if answer.result.is_ok() {
                match op {
                    Op::Read => self.versions.check(tenant, offset.0, &answer.data, &expected),
                    Op::Write => {
                        let version = arrival.version;
                        self.versions.write_answered(tenant, offset.0, length.0, version);
                    }
                    Op::Trim | Op::Flush => {}
                }
            }
            service.blocks.give_back(answer.data);
            if arrival.is_look {
                continue;
            }
            let meter = &mut self.meters[tenant.index()][op as usize];
            meter.responses.record(io.now_ns().saturating_sub(arrival.arrived_ns));
            meter.bytes += length.0;
            meter.errors += u64::from(answer.result.is_err());
            if let Source::Closed(tenants) = &mut self.source {
                tenants[tenant.index()].1.push(Reverse(io.now_ns()));
            }
        }
    }

    /// Begins the timer of what is due next: an arrival, or the turn of a tenant that has caps.
    fn begin_timer(
        &mut self,
        io: &mut RehearsedIo,
        service: &BlockService,
    ) -> Result<(), LiveError> {
        let waiting = self.waiting.iter().zip(service.clients.allowances());
        let capped = waiting.filter(|(waiting, _)| !waiting.is_empty());
        let capped = capped.map(|(_, allowance)| allowance.due_ns());
        let capped = capped.filter(|due_ns| *due_ns > io.now_ns()).min();
        let arrives_ns = self.next_source_ns()?;
        let due_ns = arrives_ns.into_iter().chain(capped).min();
        match due_ns.filter(|at_ns| self.timer.begin(*at_ns)) {
            Some(at_ns) if due_ns == arrives_ns => io.inner().await_arrival(TIMER, at_ns),
            Some(at_ns) => io.submit(TIMER, IoOp::Timer { at_ns }),
            None => {}
        }
        Ok(())
    }
}

/// A request as a volume of so many bytes takes it; nothing if it does not. A recording has trims
/// of the last block of a volume as if that were whole.
fn within(mut request: Request, bytes: u64) -> Option<Request> {
    let left = bytes.saturating_sub(request.offset.0);
    if request.op == Op::Trim {
        request.length = Bytes(request.length.0.min(left));
    }
    let is_inside = (1..=left).contains(&request.length.0);
    (request.op == Op::Flush || is_inside).then_some(request)
}

/// Bytes that a request holds of the memory of clients.
fn held_bytes(request: &Request) -> u64 {
    match request.op {
        Op::Read | Op::Write => request.length.0,
        Op::Trim | Op::Flush => 0,
    }
}

impl FrontEnd<RehearsedIo> for RecordedClients {
    fn submitter(&self) -> Submitter {
        Submitter::Rehearsal
    }

    fn serve(&mut self, io: &mut RehearsedIo, service: &mut BlockService) -> bool {
        self.give_answers(io, service);
        let mut has_begun = false;
        while let Some(tenant) = self.next_tenant(service, io.now_ns()) {
            self.send(io, service, tenant);
            has_begun = true;
        }
        if let Err(error) = self.begin_timer(io, service) {
            self.failed.get_or_insert(error);
        }
        has_begun
    }

    fn on_done(&mut self, io: &mut RehearsedIo, _service: &mut BlockService, _done: Done) {
        self.timer.end(io.now_ns());
    }

    /// What a kill loses is looked for by versions, not by errors of flushes.
    fn losses(&mut self, _number: usize) -> Option<&mut NotifiedLosses> {
        None
    }

    fn answered(&mut self, _service: &mut BlockService, number: usize, answer: BlockAnswer) {
        self.answered.push((number, answer));
    }

    fn dropped(&mut self, number: usize) {
        if let Some(sent) = self.under_way.try_remove(number) {
            self.held_bytes -= held_bytes(&sent.arrival.request);
        }
    }

    /// Clients go when their recording ends.
    fn stop(&mut self, _io: &mut RehearsedIo) {}

    fn is_stopped(&self) -> bool {
        self.under_way.is_empty() && self.waiting.iter().all(VecDeque::is_empty)
    }

    /// A rehearsal has the tenants of its stack from its start to its end.
    fn add_export(&mut self, export: ServedExport) {
        self.volume_bytes.push(export.bytes);
    }

    fn change_export(&mut self, tenant: TenantId, export: ServedExport) -> usize {
        self.volume_bytes[tenant.index()] = export.bytes;
        0
    }

    fn close_export(&mut self, tenant: TenantId) {
        self.waiting[tenant.index()].clear();
    }

    fn connections_to(&self, _tenant: TenantId) -> usize {
        1
    }

    fn connections(&self) -> usize {
        self.volume_bytes.len()
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}
