//! The server of blocks: what it is made of, and a request's way through it.
//!
//! For: one value, driven by requests and by operations that are done. Must never know: protocols.
//! Units: bytes, blocks, decisions.

use super::answers::BlockAnswers;
use super::background::Background;
use super::bypass::{BYPASS_TOKENS, Bypass};
use super::content::{CLEANER, LogContent};
use super::decisions::Decisions;
use super::losses::LossCounts;
use super::request::{BlockAnswer, BlockOp, BlockRequest, ServeCounts};
use super::response_times::RequestTimes;
use super::revive::{REVIVE_READS, REVIVE_TOKENS, Revivals};
use super::under_way::{OpenId, OpenRequest, UnderWay};
use super::volumes::{Volumes, covered};
use super::waiting::Waiting;
use crate::io::{Buffer, Done, Io, IoError, Output, Token};
use crate::log::{DeviceSet, LogEvent, SegmentUse};
use cachewright_cache::Cache;
use cachewright_policy::Policy;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};
use std::ops::Range;
use std::sync::Arc;

/// Bit of a token from which on it says whose it is.
const NAMESPACE_SHIFT: u32 = 56;
/// Tokens of syncs of backing devices: this and the tenant.
const SYNC_TOKEN: u64 = 1 << 52;
/// Bits of a token that belong to the server.
const OWN_BITS: u64 = (1 << NAMESPACE_SHIFT) - 1;

/// Serves volumes through a cache.
pub struct BlockServer {
    pub(super) decisions: Decisions,
    pub(super) content: LogContent,
    pub(super) volumes: Volumes,
    pub(super) under_way: UnderWay,
    pub(super) waiting: Waiting,
    pub(super) background: Background,
    /// What goes past the cache, once that has failed.
    pub(super) bypass: Bypass,
    /// Content that was lost before a flush.
    pub(super) losses: LossCounts,
    /// Backing devices that have failed and are tried again.
    pub(super) revivals: Revivals,
    pub(super) counts: ServeCounts,
    pub(super) block_shift: u32,
    /// What is written to devices that cannot zero, once it was needed.
    pub(super) zeroes: Option<Arc<Buffer>>,
    pub(super) answers: BlockAnswers,
    pub(super) namespace: u64,
}

impl BlockServer {
    /// What a server consists of; [`BlockServer::open`] makes one.
    pub(super) fn new(
        decisions: Decisions,
        content: LogContent,
        volumes: Volumes,
        block_shift: u32,
        namespace: u8,
    ) -> BlockServer {
        let namespace = u64::from(namespace) << NAMESPACE_SHIFT;
        let bypass = Bypass::new(volumes.list(), block_shift, namespace);
        BlockServer {
            decisions,
            content,
            volumes,
            under_way: UnderWay::default(),
            waiting: Waiting::default(),
            background: Background::default(),
            bypass,
            losses: LossCounts::default(),
            revivals: Revivals::default(),
            counts: ServeCounts::default(),
            block_shift,
            zeroes: None,
            answers: BlockAnswers::default(),
            namespace,
        }
    }

    /// The cache, for counters and audits.
    pub fn cache(&self) -> &Cache<Box<dyn Policy>> {
        &self.decisions.cache
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    /// Whether a block of a tenant is in the cache.
    pub fn is_cached(&self, tenant: TenantId, number: u64) -> bool {
        !self.bypass.is_begun() && self.decisions.cache.contains(tenant, number)
    }

    /// Whether only the cache has the content of a tenant's block. While the cache is bypassed
    /// nothing is, and nothing is in the cache.
    pub fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        let cache = &self.decisions.cache;
        let found = cache.find(tenant, number).filter(|_| !self.bypass.is_begun());
        found.is_some_and(|found| cache.engine().is_dirty(tenant, found.id))
    }

    /// Requests of a tenant that wait for room in the log.
    pub fn waiting_for_space(&self, tenant: TenantId) -> usize {
        self.waiting.queue.iter().filter(|request| request.tenant == tenant).count()
    }

    /// What was counted besides the cache's own counters.
    pub fn counts(&self) -> ServeCounts {
        let (written, moved) = (self.content.streams.written(), self.content.cleaner.moved());
        ServeCounts { written, moved, ..self.counts }
    }

    /// The devices of the log.
    pub fn device_set(&self) -> &DeviceSet {
        self.content.log.set()
    }

    /// Segments of the log, and those of them that hold nothing.
    pub fn log_segments(&self) -> (u64, u64) {
        self.content.log.segments().fold((0, 0), |(all, free), (_, segment)| {
            (all + 1, free + u64::from(segment.usage == SegmentUse::Free))
        })
    }

    /// Whether a tenant's backing device has failed: its requests get errors.
    pub fn volume_has_failed(&self, tenant: TenantId) -> bool {
        self.volumes.backing(tenant).has_failed()
    }

    /// Why the log takes nothing any more: requests go past the cache, as [`BlockServer::passage`]
    /// says.
    pub fn log_failure(&self) -> Option<IoError> {
        self.content.failed
    }

    /// Whether requests, or steps that no request waits for, are under way.
    pub fn is_idle(&self) -> bool {
        let steps = self.decisions.steps.state().graph.open();
        let idle = steps == 0 && self.under_way.is_idle() && self.waiting.queue.is_empty();
        idle && self.bypass.is_idle() && self.revivals.is_empty()
    }

    /// Takes a request. Its answer comes at once, or later: see [`BlockServer::take_answers`].
    pub fn request(&mut self, io: &mut impl Io, mut request: BlockRequest) {
        if request.op == BlockOp::Flush {
            (request.offset, request.length) = (0, 0);
        }
        if let Err(error) = self.check(&request) {
            self.refuse(&request, error);
            return;
        }
        self.waiting.queue.push_back(request);
        if self.content.failed.is_none() {
            self.decide_queued(io);
        }
        self.settle(io);
    }

    /// Whether an operation that is done is one of the server's.
    pub fn owns(&self, token: Token) -> bool {
        self.content.log.owns(token)
            || token.0 >> NAMESPACE_SHIFT << NAMESPACE_SHIFT == self.namespace
    }

    /// An operation of the server is done. [`BlockServer::advance`] is to be called after some.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done) {
        if self.content.log.owns(done.token) {
            let mut events = Vec::new();
            self.content.log.on_done(io, done, &mut events);
            self.take_events(io, events);
        } else {
            let own = done.token.0 & OWN_BITS;
            match own.checked_sub(SYNC_TOKEN) {
                _ if own >= REVIVE_TOKENS => self.revive_done(io, own, done.error),
                _ if own >= BYPASS_TOKENS => self.bypass_done(io, own, done.output, done.error),
                Some(tenant) => self.backing_synced(io, TenantId(tenant as u16), done.error),
                None => self.backing_done(io, own, done.output, done.error),
            }
        }
        self.settle(io);
    }

    /// Begins what is due: groups of the log, syncs, cleaning. To be called after requests and
    /// operations that were done, for as many of them as there are at once.
    pub fn advance(&mut self, io: &mut impl Io) {
        self.begin_due(io);
        // The segment that was cleaned last cannot be: another is, or requests are refused.
        while self.is_stuck_anywhere() {
            self.begin_due(io);
        }
    }

    fn begin_due(&mut self, io: &mut impl Io) {
        if self.content.failed.is_some() {
            self.settle(io);
            self.go_on_bypassing(io);
        }
        if self.bypass.is_begun() && !self.bypass.is_draining() {
            return;
        }
        self.make_space(io);
        if self.content.failed.is_none() {
            self.decide_queued(io);
        }
        self.settle(io);
        self.write_back_ahead(io);
        self.empty_removed_volumes(io);
        self.go_on_reviving(io);
        self.begin_syncs(io);
        self.go_on_closing(io);
        if !self.content.log.is_writing() && self.content.failed.is_none() {
            self.content.log.commit(io);
        }
        let mut events = Vec::new();
        self.content.log.advance(io, &mut events);
        self.take_events(io, events);
        self.settle(io);
    }

    /// Memory of an answer that was sent.
    pub fn give_back(&mut self, data: Buffer) {
        if data.len() as u64 == self.block_bytes() {
            self.content.log.give_back(data);
        }
    }

    /// The answers since the last call.
    pub fn take_answers(&mut self) -> Vec<BlockAnswer> {
        self.answers.take()
    }

    /// The token of a part of a step.
    pub(super) fn part_token(&self, part: u64) -> Token {
        Token(self.namespace | part)
    }

    /// The token of a sync of a tenant's backing device.
    pub(super) fn sync_token(&self, tenant: TenantId) -> Token {
        Token(self.namespace | (SYNC_TOKEN + tenant.index() as u64))
    }

    /// Errors: no such volume, a range that it does not have, data of another length, a volume that
    /// has failed.
    fn check(&self, request: &BlockRequest) -> Result<(), IoError> {
        let volume = self.volumes.get(request.tenant).ok_or(IoError::INVALID)?;
        let end = request.offset.checked_add(request.length);
        let inside = end.is_some_and(|end| end <= volume.bytes);
        let data = if request.op == BlockOp::Write { request.length } else { 0 };
        let sound = match request.op {
            BlockOp::Flush => true,
            _ => inside && request.length > 0 && request.data.len() as u64 == data,
        };
        if !sound {
            return Err(IoError::INVALID);
        }
        match self.volumes.backing(request.tenant).has_failed() {
            true => Err(IoError::IO),
            false => Ok(()),
        }
    }

    pub(super) fn refuse(&mut self, request: &BlockRequest, error: IoError) {
        self.answers.refuse(request, error);
    }

    /// Decides about a request for which there is room; its steps begin.
    pub(super) fn decide(&mut self, io: &mut impl Io, request: BlockRequest, reserved: u64) {
        if let Err(error) = self.check(&request) {
            return self.refuse(&request, error);
        }
        if self.content.failed.is_some() {
            return self.pass(io, request);
        }
        if self.needs_stranded(&request) {
            self.counts.damaged_dirty += 1;
            return self.refuse(&request, IoError::IO);
        }
        self.content.obstacles.note_change();
        let (op, tenant) = (request.op, request.tenant);
        let plans = self.plans(&request);
        let mut open = OpenRequest::new(request, plans.len() as u32, reserved);
        open.times = RequestTimes::new(io.now_ns());
        self.waiting.reserve(self.content.streams.pool(tenant), reserved);
        let open = self.under_way.begin(open);
        for plan in &plans {
            let now_ns = io.now_ns();
            self.divide_before(io, now_ns);
            let departures = self.decisions.request(now_ns, *plan, open);
            self.depart(io, departures, Some(op));
            if plan.op == Op::Trim {
                self.begin_clear(io, op, plan);
            }
            self.overwrite_stranded(op, plan, open);
            self.take_ends(io);
            if matches!(plan.op, Op::Read | Op::Write) {
                let departures = self.decisions.background_ops(tenant);
                self.depart(io, departures, None);
                self.take_ends(io);
            }
        }
    }

    /// What the cache is to decide for a request: zeroes are written at the edges, and whole blocks
    /// are taken away.
    fn plans(&self, request: &BlockRequest) -> Vec<Request> {
        let plan = |op: Op, bytes: Range<u64>| Request {
            time: Nanos(0),
            offset: Bytes(bytes.start),
            length: Bytes(bytes.end - bytes.start),
            op,
            tenant: request.tenant,
        };
        let all = self.covered(request);
        match request.op {
            BlockOp::Read => vec![plan(Op::Read, all)],
            BlockOp::Write => vec![plan(Op::Write, all)],
            BlockOp::Flush => vec![plan(Op::Flush, 0..0)],
            BlockOp::Trim => vec![plan(Op::Trim, all)],
            BlockOp::Zero | BlockOp::Provision => {
                let size = 1 << self.block_shift;
                let (first, last) = (all.start.next_multiple_of(size), all.end / size * size);
                if first >= last {
                    return vec![plan(Op::Write, all)];
                }
                let edges = [(Op::Write, all.start..first), (Op::Trim, first..last)];
                let all = edges.into_iter().chain([(Op::Write, last..all.end)]);
                all.filter(|(_, bytes)| !bytes.is_empty()).map(|(op, all)| plan(op, all)).collect()
            }
        }
    }

    /// The bytes of a request as the cache decides about them: a change to the end of a volume
    /// covers its last block.
    pub(super) fn covered(&self, request: &BlockRequest) -> Range<u64> {
        let bytes = request.offset..request.offset + request.length;
        match request.op {
            BlockOp::Read | BlockOp::Flush => bytes,
            BlockOp::Write | BlockOp::Trim | BlockOp::Zero | BlockOp::Provision => {
                covered(bytes, self.volumes.bytes(request.tenant), self.block_bytes())
            }
        }
    }

    /// Takes what has happened in the log.
    fn take_events(&mut self, io: &mut impl Io, events: Vec<LogEvent>) {
        for event in events {
            match event {
                LogEvent::Written(group) => self.log_written(io, group),
                LogEvent::Durable(group) => {
                    self.content.fresh_gone.settle(group);
                    self.content.stored_blocks.settle(group);
                }
                LogEvent::Synced(caller, result) if caller >= CLEANER => {
                    self.cleaner_settled(io, result);
                }
                LogEvent::Synced(caller, result) => self.log_synced(caller, result),
                LogEvent::Read(caller, data, result) if caller >= CLEANER => {
                    self.cleaner_read(io, caller, data, result);
                }
                LogEvent::Read(caller, data, result) if caller >= REVIVE_READS => {
                    self.revived_read(io, caller, data, result);
                }
                LogEvent::Read(part, data, result) => self.log_read_done(io, part, data, result),
                LogEvent::Records(_, records) => self.cleaner_records(io, records),
                LogEvent::Failed(error) => {
                    self.content.failed.get_or_insert(error);
                }
            }
        }
    }

    /// Goes on with steps until all of them wait for operations.
    pub(super) fn settle(&mut self, io: &mut impl Io) {
        loop {
            self.retry_held(io);
            let mut begun = self.begin_postponed(io);
            while let Some(ready) = self.decisions.steps.next_step() {
                begun = true;
                self.carry_out(io, ready);
                self.take_ends(io);
            }
            self.take_ends(io);
            let answers: Vec<_> = self.decisions.steps.drain_answers().collect();
            for answer in &answers {
                self.plan_answered(io, OpenId(answer.tag as u32), answer.failed);
            }
            if self.content.failed.is_some() {
                self.fail_all();
                self.turn_to_bypass(io);
            }
            self.measure_answers(io);
            if !begun && answers.is_empty() {
                return;
            }
        }
    }

    /// The output of an operation on a backing device, as bytes.
    pub(super) fn bytes_of(output: Output) -> Buffer {
        match output {
            Output::Buffer(buffer, _) => buffer,
            _ => Buffer::default(),
        }
    }
}
