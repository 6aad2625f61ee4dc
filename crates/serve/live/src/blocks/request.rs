//! Requests to volumes: read, write, flush, trim and zero, each from its decision to its answer.
//!
//! A request is decided when the log has room for it (`space`). Its plans become jobs, whose turns
//! are taken at once, so that requests of the same blocks follow each other in the order of their
//! decisions; then the jobs go on side by side. The rules:
//!
//! - a block on its way into the cache is waited for, never fetched twice;
//! - a read of a cached block waits for the writes to it that were decided before, and holds up
//!   none: what it finds moved or overwritten it reads again where it lies now;
//! - what needs content that a failed job was to bring fails, too;
//! - a write is answered when all groups of the log up to its own are written;
//! - what is written round the cache, and what is zeroed, waits until no recovery can find older
//!   content of its blocks: their leaving is durable in the log;
//! - these conditions are about what was decided before, so that they come true whatever is decided
//!   later.

use super::backing::{Backing, Settled};
use super::content::{LogBlock, LogContent};
use super::copies::{ContentOrigin, CopyId, StoredBlock};
use super::decisions::RequestTiming;
use super::evict::Leavings;
use super::server::{Engine, Procedure, State};
use super::turns::Turn;
use super::volumes::covered;
use crate::io::executor::{Begun, Event, Op as Pending, OpId};
use crate::io::{ALIGNMENT, Buffer, IoError, Output};
use crate::log::Place;
use crate::log::format::Version;
use cachewright_cache::{Cached, Move, Plan, WriteMode};
use cachewright_types::measure::LossReason;
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId, block_numbers, whole_block_numbers};
use slab::Slab;
use std::ops::Range;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOp {
    /// The bytes of the range.
    Read,
    /// The range holds the request's data.
    Write,
    /// What was answered before is durable.
    Flush,
    /// The range is not needed any more: whole blocks of it, among them the last one of a volume as
    /// far as it goes, may hold anything they ever held.
    Trim,
    /// The range reads as zeroes; its backing device may have no space for it.
    Zero,
    /// The range reads as zeroes, and its backing device has space for it.
    Provision,
}

impl BlockOp {
    /// Whether the range reads as zeroes afterwards.
    pub fn zeroes(self) -> bool {
        matches!(self, BlockOp::Zero | BlockOp::Provision)
    }
}

/// A request to a volume.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    /// The caller's name for it, which the answer carries: less than 2^63.
    pub tag: u64,
    /// Whose volume it is.
    pub tenant: TenantId,
    /// What is wanted.
    pub op: BlockOp,
    /// The first byte.
    pub offset: u64,
    /// Bytes; ignored for a flush.
    pub length: u64,
    /// Its effect is durable before it is answered.
    pub durable: bool,
    /// Its data, for a write: as many bytes as its length.
    pub data: Buffer,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct BlockAnswer {
    /// The name of the request.
    pub tag: u64,
    /// Errors: input or output failed, a range that the volume does not have, no room in the log.
    pub result: Result<(), IoError>,
    /// The bytes of a read; else nothing.
    pub data: Buffer,
}

/// What a server counts besides what the cache decides. Units: blocks, requests, volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServeCounts {
    /// Clean blocks whose content in the log was damaged: read from the backing device instead.
    pub damaged_clean: u64,
    /// Reads of dirty blocks whose content in the log was damaged: they failed.
    pub damaged_dirty: u64,
    /// Dirty blocks that could not be written back and stay in the log.
    pub stranded: u64,
    /// Volumes whose backing device has failed.
    pub failed_volumes: u64,
    /// Requests that were refused because the log had no room.
    pub without_space: u64,
    /// Segments that were cleaned.
    pub cleaned: u64,
    /// Blocks that requests have written to the log or filled.
    pub written: u64,
    /// Blocks that cleaning has copied.
    pub moved: u64,
    /// Clean blocks that cleaning has dropped instead.
    pub dropped: u64,
    /// Cached blocks that requests have read from memory (`set_memory`).
    pub memory_reads: u64,
}

impl ServeCounts {
    /// Blocks that went to the log for each that requests wrote or filled; 1 if there was none.
    pub fn write_amplification(&self) -> f64 {
        match self.written {
            0 => 1.0,
            written => (written + self.moved) as f64 / written as f64,
        }
    }
}

cachewright_types::index_ids! {
    /// A request under way.
    OpenId,
}

/// A request under way.
#[derive(Debug)]
pub struct OpenRequest {
    /// As it came; its data moves to `data`.
    pub request: BlockRequest,
    /// What is written, or what was read so far: nothing before the first block came.
    data: Buffer,
    /// The last group that holds what it wrote.
    group: u64,
    /// Blocks for which room in the log is kept.
    reserved: u64,
    /// Why it fails, if it does.
    error: Option<IoError>,
    /// It has changed the backing device.
    wrote_through: bool,
    /// It takes content away that the log has: that must become durable, too.
    clears: bool,
    /// Its place in the order in which requests were decided.
    order: u64,
    /// All that it changes is written; what is left is to make that durable.
    is_written: bool,
    times: RequestTimes,
}

impl OpenRequest {
    /// A request that keeps room for so many blocks in the log.
    pub fn new(mut request: BlockRequest, reserved: u64) -> OpenRequest {
        let data = std::mem::take(&mut request.data);
        let clears = request.op == BlockOp::Trim || request.op.zeroes();
        OpenRequest {
            request,
            data,
            group: 0,
            reserved,
            error: None,
            wrote_through: false,
            clears,
            order: 0,
            is_written: false,
            times: RequestTimes::default(),
        }
    }

    /// The bytes of the volume that it is about.
    pub fn range(&self) -> Range<u64> {
        self.request.offset..self.request.offset + self.request.length
    }

    /// Its answer, with an error or without.
    pub fn answer(self, result: Result<(), IoError>) -> BlockAnswer {
        let OpenRequest { request, data, .. } = self;
        let read = request.op == BlockOp::Read && result.is_ok();
        let data = if read { data } else { Buffer::default() };
        BlockAnswer { tag: request.tag, result, data }
    }

    /// It as it came, to be begun again. A change that is written needs a flush of its range and no
    /// more: a later change of the same blocks may have been answered, and must not be overwritten.
    fn again(self) -> BlockRequest {
        let OpenRequest { mut request, data, is_written, .. } = self;
        match request.op {
            _ if is_written => request.op = BlockOp::Flush,
            BlockOp::Write => request.data = data,
            _ => {}
        }
        request
    }

    /// Takes in what a run of bytes from `offset` on holds.
    pub fn take(&mut self, offset: u64, bytes: &[u8]) {
        let range = self.range();
        let from = range.start.max(offset);
        let to = range.end.min(offset + bytes.len() as u64);
        if from < to && self.request.op == BlockOp::Read {
            if self.data.is_empty() {
                self.data = Buffer::zeroed(self.request.length as usize);
            }
            let source = &bytes[(from - offset) as usize..(to - offset) as usize];
            let target = (from - range.start) as usize;
            self.data[target..target + source.len()].copy_from_slice(source);
        }
    }

    /// As [`OpenRequest::take`], for a buffer that is not needed elsewhere: a request for all of it
    /// keeps it. Returns the memory that is left.
    pub fn take_buffer(&mut self, offset: u64, buffer: Buffer) -> Buffer {
        let all = self.range() == (offset..offset + buffer.len() as u64);
        if all && self.request.op == BlockOp::Read {
            return std::mem::replace(&mut self.data, buffer);
        }
        self.take(offset, &buffer);
        buffer
    }

    /// What it writes in a run of bytes, if that is all of the run.
    fn written(&self, bytes: Range<u64>) -> Option<&[u8]> {
        let range = self.range();
        let all = range.start <= bytes.start && bytes.end <= range.end;
        let start = range.start;
        (all && self.request.op == BlockOp::Write)
            .then(|| &self.data[(bytes.start - start) as usize..(bytes.end - start) as usize])
    }

    /// Puts what it writes over a run of bytes from `offset` on.
    pub fn lay_over(&self, offset: u64, bytes: &mut [u8]) {
        let range = self.range();
        let from = range.start.max(offset);
        let to = range.end.min(offset + bytes.len() as u64);
        if from < to {
            let target = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            let source = (from - range.start) as usize..(to - range.start) as usize;
            match self.request.op {
                BlockOp::Zero | BlockOp::Provision => target.fill(0),
                _ => target.copy_from_slice(&self.data[source]),
            }
        }
    }
}

/// How long a request takes, and the part of that behind the cache: the time in which its jobs use
/// its backing device, side by side or one by one. Partitioners weigh hits by it; a request that
/// has no such time is a hit. Units: nanoseconds of the I/O's clock.
#[derive(Clone, Copy, Debug, Default)]
struct RequestTimes {
    decided_ns: u64,
    /// Jobs on the backing device that are under way, and since when there is one.
    jobs: u32,
    since_ns: u64,
    behind_ns: u64,
}

impl RequestTimes {
    fn begin(&mut self, now_ns: u64) {
        if self.jobs == 0 {
            self.since_ns = now_ns;
        }
        self.jobs += 1;
    }

    fn end(&mut self, now_ns: u64) {
        if self.jobs == 1 {
            self.behind_ns += now_ns.saturating_sub(self.since_ns).max(1);
        }
        self.jobs = self.jobs.saturating_sub(1);
    }
}

/// A change of some bytes of a tenant that is written.
#[derive(Debug)]
struct WrittenChange {
    order: u64,
    tenant: TenantId,
    bytes: Range<u64>,
}

/// Changes above which those that overtake nothing any more are forgotten.
const WRITTEN_CHANGES: usize = 256;

/// Requests that were decided and are not answered.
#[derive(Debug, Default)]
pub struct OpenRequests {
    open: Slab<OpenRequest>,
    /// Requests that were begun so far.
    begun: u64,
    /// Changes that are written, while requests that were decided before them may be under way.
    written: Vec<WrittenChange>,
}

impl OpenRequests {
    /// A request that is decided now is under way.
    fn begin(&mut self, request: OpenRequest) -> OpenId {
        self.begun += 1;
        OpenId::new(self.open.insert(OpenRequest { order: self.begun, ..request }))
    }

    /// A request; none after its answer.
    pub fn get(&mut self, id: OpenId) -> Option<&mut OpenRequest> {
        self.open.get_mut(id.index())
    }

    /// A request is under way no more.
    fn end(&mut self, id: OpenId) -> Option<OpenRequest> {
        self.open.try_remove(id.index())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Requests of a tenant.
    pub fn count_of(&self, tenant: TenantId) -> usize {
        self.open.iter().filter(|(_, open)| open.request.tenant == tenant).count()
    }

    /// What a request changes is written. One that was decided before it may still be under way: a
    /// write or trim of the device is overtaken by one of the cache. Once the log has failed, what
    /// is under way ends with errors, and all is kept until that is begun again.
    fn note_written(&mut self, id: OpenId, log_failed: bool) {
        if !log_failed && self.open.len() <= 1 {
            self.written.clear();
            return;
        }
        if !log_failed && self.written.len() >= WRITTEN_CHANGES.max(2 * self.open.len()) {
            let first = self.open.iter().map(|(_, open)| open.order).min().unwrap_or(0);
            self.written.retain(|change| change.order > first);
        }
        let Some(known) = self.open.get(id.index()) else { return };
        let (order, tenant, bytes) = (known.order, known.request.tenant, known.range());
        self.written.push(WrittenChange { order, tenant, bytes });
    }

    /// The bytes of the request that was the `order`th to be decided which later ones have written.
    pub fn overtaken(&self, order: u64, request: &BlockRequest) -> Vec<Range<u64>> {
        let range = request.offset..request.offset + request.length;
        let later = self.written.iter();
        let later = later.filter(|change| change.order > order && change.tenant == request.tenant);
        let common = later
            .map(|change| range.start.max(change.bytes.start)..range.end.min(change.bytes.end));
        common.filter(|bytes| bytes.start < bytes.end).collect()
    }
}

/// A cached block that is read, and what its content waits for.
pub(super) struct CachedRead {
    copy: CopyId,
    after: Option<Event>,
    /// Its content is lost.
    is_lost: bool,
}

/// A cached block that is written.
pub(super) struct CachedWrite {
    copy: CopyId,
    /// What is written to it before.
    after: Vec<Event>,
    /// All of it is written: what was there does not count.
    is_whole: bool,
    /// The rest of it is lost.
    is_lost: bool,
    /// It ends this write.
    done: Event,
}

/// Blocks side by side that are fetched from the backing device into the cache.
pub(super) struct Fetch {
    first: u64,
    copies: Vec<CopyId>,
    turn: Turn,
    /// It ends the fetch.
    done: Event,
}

/// Bytes of the backing device that are changed, by a decision.
pub(super) struct BackingChange {
    bytes: Range<u64>,
    decision: u64,
    turn: Turn,
    /// It ends the change.
    done: Event,
}

/// What is to be done for a request.
pub(super) enum Job {
    /// Cached blocks are read.
    Read(Vec<CachedRead>),
    /// Cached blocks are written, by a decision.
    Write(Vec<CachedWrite>, u64),
    /// Blocks are fetched, by a decision.
    Fetch(Fetch, u64),
    /// Bytes are read from the backing device alone.
    ReadRound(Range<u64>, Turn),
    /// Bytes are written to the backing device.
    WriteRound(BackingChange),
    /// The whole blocks of a range are trimmed or zeroed.
    Clear(BackingChange),
    /// What was written to the log is made durable.
    SyncLog,
    /// What was written to the backing device is made durable.
    SyncBacking,
}

/// What a plan is carried out for.
pub(super) struct Purpose {
    /// What the request wants, if it is for one.
    pub wanted: Option<BlockOp>,
    tenant: TenantId,
    op: Op,
    bytes: Range<u64>,
}

impl Purpose {
    /// None: the plan is the cache's own.
    pub fn none(tenant: TenantId) -> Purpose {
        Purpose { wanted: None, tenant, op: Op::Read, bytes: 0..u64::MAX }
    }

    /// The bytes of a run of blocks that the request is about.
    fn clip(&self, blocks: &Range<u64>, shift: u32) -> Range<u64> {
        let (start, end) = (blocks.start << shift, blocks.end << shift);
        self.bytes.start.clamp(start, end)..self.bytes.end.clamp(start, end)
    }

    /// Whether the request covers a whole block.
    fn covers(&self, number: u64, shift: u32) -> bool {
        self.bytes.start <= number << shift && (number + 1) << shift <= self.bytes.end
    }
}

/// What a plan has been found to want so far, and that is not begun yet: neighbours become one
/// operation.
#[derive(Default)]
pub(super) struct PlanInHand {
    reads: Vec<CopyId>,
    writes: Vec<(CopyId, u64)>,
    fetches: Vec<(CopyId, u64)>,
    round: Vec<u64>,
    /// Dirty blocks that it evicts.
    pub evicted: Vec<CopyId>,
    /// Blocks that have left, by versions: the log is told at the end.
    pub gone: Vec<(TenantId, u64, Version)>,
    /// The blocks that it has come to.
    pub touched: Option<Range<u64>>,
}

impl State {
    /// Decides about a request for which there is room in the log; its jobs begin.
    pub(super) fn decide(&mut self, request: BlockRequest, reserved: u64) {
        if let Err(error) = self.check(&request) {
            return self.answers.refuse(&request, error);
        }
        if self.content.failed.is_some() {
            return self.pass(request);
        }
        if self.needs_stranded(&request) {
            self.counts.damaged_dirty += 1;
            return self.answers.refuse(&request, IoError::IO);
        }
        self.content.cleaner.obstacles.note_change();
        let (op, tenant) = (request.op, request.tenant);
        let plans = self.plans(&request);
        let mut open = OpenRequest::new(request, reserved);
        open.times.decided_ns = self.now_ns;
        self.space.reserve(tenant, reserved);
        let open = self.open.begin(open);
        self.with_jobs += 1;
        let mut jobs = Vec::new();
        for request in plans.iter().flatten() {
            self.divide_before();
            let plan = self.decisions.request(self.now_ns, *request);
            let decision = self.decisions.made();
            if request.op == Op::Trim && op.zeroes() {
                self.leavings.overwriting.insert(decision, Vec::new());
            }
            let bytes = request.offset.0..request.offset.0 + request.length.0;
            let wanted = Some(op);
            let purpose = Purpose { wanted, tenant, op: request.op, bytes: bytes.clone() };
            self.carry(&plan, &purpose, &mut jobs);
            self.decisions.give_back(plan);
            if request.op == Op::Trim && !op.zeroes() {
                // What is trimmed is gone at once.
                let version = Version::left_first(self.decisions.in_log(decision));
                let (blocks, volume) = (self.whole_blocks(&bytes), self.volumes.id(tenant));
                self.content.note_gone(tenant, volume, blocks, version);
            }
            self.overwrite_stranded(op, request, open);
            if matches!(request.op, Op::Read | Op::Write) {
                let plan = self.decisions.background_ops(tenant);
                self.carry_alone(tenant, plan);
            }
        }
        self.begun.push_back(Procedure::Serve(open, jobs));
    }

    /// What the cache is to decide for a request: zeroes are written at the edges, and whole blocks
    /// are taken away.
    fn plans(&self, request: &BlockRequest) -> [Option<Request>; 3] {
        let plan = |op: Op, bytes: Range<u64>| {
            Some(Request {
                time: Nanos(0),
                offset: Bytes(bytes.start),
                length: Bytes(bytes.end - bytes.start),
                op,
                tenant: request.tenant,
            })
        };
        let all = self.covered(request);
        match request.op {
            BlockOp::Read => [plan(Op::Read, all), None, None],
            BlockOp::Write => [plan(Op::Write, all), None, None],
            BlockOp::Flush => [plan(Op::Flush, 0..0), None, None],
            BlockOp::Trim => [plan(Op::Trim, all), None, None],
            BlockOp::Zero | BlockOp::Provision => {
                let size = 1 << self.block_shift;
                let (first, last) = (all.start.next_multiple_of(size), all.end / size * size);
                if first >= last {
                    return [plan(Op::Write, all), None, None];
                }
                let edge = |bytes: Range<u64>| match bytes.is_empty() {
                    true => None,
                    false => plan(Op::Write, bytes),
                };
                [edge(all.start..first), plan(Op::Trim, first..last), edge(last..all.end)]
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
                covered(bytes, self.volumes.bytes(request.tenant), 1 << self.block_shift)
            }
        }
    }

    /// The blocks that lie wholly in a range of bytes.
    pub(super) fn whole_blocks(&self, bytes: &Range<u64>) -> Range<u64> {
        whole_block_numbers(bytes.start, bytes.end.saturating_sub(bytes.start), self.block_shift)
    }

    /// Carries out a plan of the cache's own.
    pub(super) fn carry_alone(&mut self, tenant: TenantId, plan: Plan) {
        if !plan.moves.is_empty() {
            let mut jobs = Vec::new();
            self.carry(&plan, &Purpose::none(tenant), &mut jobs);
            debug_assert!(jobs.is_empty(), "a plan without a request has no jobs");
        }
        self.decisions.give_back(plan);
    }

    /// Carries out a plan of the decision that was made last, move by move. What leaves the cache
    /// leaves; the jobs of the plan's request are appended to `jobs`, with their turns.
    pub(super) fn carry(&mut self, plan: &Plan, purpose: &Purpose, jobs: &mut Vec<Job>) {
        let mut hand = PlanInHand::default();
        let decision = self.decisions.made();
        for step in &plan.moves {
            match step {
                Move::WriteBack(cached) | Move::Drop(cached) | Move::Discard { cached, .. } => {
                    let Some(copy) = self.content.copies.find(cached) else { continue };
                    // What this plan does with the block comes before it leaves.
                    if self.content.copies.is_in_plan(copy, decision) {
                        self.begin_jobs(purpose, &mut hand, jobs);
                    }
                    self.evict(step, purpose, &mut hand);
                }
                Move::Clean(cached) => {
                    let Some(copy) = self.content.copies.find(cached) else { continue };
                    if self.content.copies.is_in_plan(copy, decision) {
                        self.begin_jobs(purpose, &mut hand, jobs);
                    }
                    self.begin_write_back(vec![copy], false);
                }
                Move::Fetch(cached) => {
                    hand.touch(cached.number);
                    let copy = self.admit(cached);
                    hand.fetches.push((copy, cached.number));
                }
                Move::Serve(cached) => {
                    hand.touch(cached.number);
                    self.serve_cached(cached, purpose, &mut hand);
                }
                Move::Bypass { number, .. } => {
                    hand.touch(*number);
                    hand.round.push(*number);
                }
                Move::WriteThrough(cached) => hand.round.push(cached.number),
                // Every block that is fetched is put into the log, where blocks have no places to
                // change.
                Move::Fill(_) | Move::Swap(_) => {}
                Move::Trim => {
                    self.begin_evicted(&mut hand);
                    self.clear_job(purpose, jobs);
                }
                Move::Flush => {
                    self.begin_evicted(&mut hand);
                    jobs.extend([Job::SyncLog, Job::SyncBacking]);
                }
            }
        }
        self.begin_jobs(purpose, &mut hand, jobs);
        self.tell_gone(hand.gone);
    }

    /// A copy of a block that the cache admits, used by the plan in hand.
    fn admit(&mut self, cached: &Cached) -> CopyId {
        let decision = self.decisions.made();
        let copy = self.content.copies.admit(cached, decision);
        self.content.copies.hold_for(copy, decision);
        copy
    }

    fn serve_cached(&mut self, cached: &Cached, purpose: &Purpose, hand: &mut PlanInHand) {
        let (known, decision) = (self.content.copies.find(cached), self.decisions.made());
        if purpose.op == Op::Write {
            let copy = match known {
                Some(copy) => {
                    self.content.copies.hold_for(copy, decision);
                    copy
                }
                None => self.admit(cached),
            };
            hand.writes.push((copy, cached.number));
        } else if let Some(copy) = known
            // What is fetched is served by that.
            && hand.fetches.last().is_none_or(|(fetched, _)| *fetched != copy)
        {
            self.content.copies.hold_for(copy, decision);
            hand.reads.push(copy);
        }
    }

    /// Makes jobs of what a plan wants so far, behind the blocks that it evicts: one of these may
    /// come back.
    fn begin_jobs(&mut self, purpose: &Purpose, hand: &mut PlanInHand, jobs: &mut Vec<Job>) {
        self.begin_evicted(hand);
        let decision = self.decisions.made();
        for run in hand.fetches.chunk_by(|(_, number), (_, next)| number + 1 == *next) {
            let (tenant, first) = (purpose.tenant, run[0].1);
            let turn = self.turns.read(tenant, &(first..first + run.len() as u64));
            let done = self.tasks.event();
            for (copy, _) in run {
                self.content.copies.begin_fill(*copy, done.clone());
            }
            let copies = run.iter().map(|(copy, _)| *copy).collect();
            jobs.push(Job::Fetch(Fetch { first, copies, turn, done }, decision));
        }
        hand.fetches.clear();
        if !hand.reads.is_empty() {
            let copies = &self.content.copies;
            let read = |copy: CopyId| {
                let writing = copies.writing(copy);
                // What is being written is there afterwards, or the read fails with the write.
                let is_lost = writing.is_none() && copies.is_lost(copy);
                CachedRead { copy, after: writing.or_else(|| copies.filling(copy)), is_lost }
            };
            jobs.push(Job::Read(hand.reads.drain(..).map(read).collect()));
        }
        if !hand.writes.is_empty() {
            let writes = std::mem::take(&mut hand.writes);
            let writes = writes.into_iter().map(|(copy, number)| {
                self.write_of(copy, purpose.covers(number, self.block_shift))
            });
            let writes: Vec<CachedWrite> = writes.collect();
            jobs.push(Job::Write(writes, decision));
        }
        for run in hand.round.chunk_by(|number, next| number + 1 == *next) {
            let blocks = run[0]..run[0] + run.len() as u64;
            jobs.push(self.round_job(purpose, &blocks));
        }
        hand.round.clear();
    }

    /// A write to a cached block, behind what is on its way to it.
    fn write_of(&mut self, copy: CopyId, is_whole: bool) -> CachedWrite {
        let copies = &mut self.content.copies;
        let writing = copies.writing(copy);
        let mut is_lost = false;
        if copies.is_lost(copy) {
            match is_whole {
                true => copies.set_lost(copy, false),
                false => is_lost = writing.is_none(),
            }
        }
        copies.need_filled(copy);
        let after = copies.filling(copy).into_iter().chain(writing).collect();
        let done = self.tasks.event();
        copies.begin_write(copy, done.clone());
        CachedWrite { copy, after, is_whole, is_lost, done }
    }

    /// Blocks that are read or written on the backing device alone.
    fn round_job(&mut self, purpose: &Purpose, blocks: &Range<u64>) -> Job {
        let (tenant, shift) = (purpose.tenant, self.block_shift);
        let bytes = purpose.clip(blocks, shift);
        if purpose.op != Op::Write {
            return Job::ReadRound(bytes, self.turns.read(tenant, blocks));
        }
        let parts = [blocks.start, blocks.end - 1].map(|number| !purpose.covers(number, shift));
        let done = self.tasks.event();
        let mut turn = self.turns.write(tenant, blocks, parts, &done);
        // What is on its way to the log is there before: its own content among it, but nothing that
        // is decided later, which may wait for this write.
        for copy in blocks.clone().filter_map(|number| self.cached(tenant, number)) {
            turn.wait_for(self.content.copies.filling(copy));
            turn.wait_for(self.content.copies.writing(copy));
        }
        Job::WriteRound(BackingChange { bytes, decision: self.decisions.made(), turn, done })
    }

    /// The request's range is trimmed or zeroed on the backing device.
    fn clear_job(&mut self, purpose: &Purpose, jobs: &mut Vec<Job>) {
        let Range { start, end } = purpose.bytes;
        if start < end {
            let blocks = block_numbers(start, end - start, self.block_shift);
            let done = self.tasks.event();
            let turn = self.turns.clear(purpose.tenant, &blocks, &done);
            let (bytes, decision) = (start..end, self.decisions.made());
            jobs.push(Job::Clear(BackingChange { bytes, decision, turn, done }));
        }
    }
}

impl PlanInHand {
    fn touch(&mut self, number: u64) {
        let first = self.touched.as_ref().map_or(number, |range| range.start);
        self.touched = Some(first..number + 1);
    }
}

impl Engine {
    /// Carries a request out, from its jobs to its answer.
    pub(super) async fn serve(self, open: OpenId, mut jobs: Vec<Job>) {
        let mut is_well = true;
        if jobs.len() == 1
            && let Some(job) = jobs.pop()
        {
            is_well = self.carry_out(open, job).await;
        } else {
            let begin = |job| {
                let engine = self.clone();
                let procedure = async move { engine.carry_out(open, job).await };
                self.with(|state| state.tasks.begin(procedure))
            };
            let side_by_side: Vec<Begun<bool>> = jobs.into_iter().map(begin).collect();
            for ended in side_by_side {
                is_well &= ended.await;
            }
        }
        self.with(|state| state.end_jobs(open));
        let result = if is_well { self.finish(open).await } else { Err(IoError::IO) };
        self.with(|state| state.answer(open, result));
    }

    /// Carries out a job; returns whether it has ended well.
    async fn carry_out(&self, open: OpenId, job: Job) -> bool {
        match job {
            Job::Read(blocks) => self.read_cached(open, blocks).await,
            Job::Write(blocks, decision) => self.write_cached(open, blocks, decision).await,
            Job::Fetch(fetch, decision) => self.fetch(open, fetch, decision).await,
            Job::ReadRound(bytes, turn) => self.read_round(open, bytes, turn).await,
            Job::WriteRound(change) => self.write_round(open, change).await,
            Job::Clear(change) => self.clear(open, change).await,
            Job::SyncLog => {
                let tenant = self.with(|state| state.tenant_of_request(open));
                self.sync_log(tenant).await.is_ok()
            }
            Job::SyncBacking => self.sync_backing_of(open).await.is_ok(),
        }
    }

    /// All jobs of a request are done: what it wrote becomes written, and durable if it is to be.
    /// Errors: the request fails.
    async fn finish(&self, open: OpenId) -> Result<(), IoError> {
        let group = self.with(|state| match state.open.get(open) {
            Some(OpenRequest { error: Some(error), .. }) => Err(*error),
            Some(request) => Ok(request.group),
            None => Err(IoError::IO),
        })?;
        self.log_written(group).await?;
        let tenant = self.with(|state| state.note_written(open));
        let Some((tenant, wrote_through, clears)) = tenant else { return Ok(()) };
        if wrote_through {
            if self.with(|state| state.volumes.backing(tenant).has_failed()) {
                return Err(IoError::IO);
            }
            self.sync_backing_of(open).await?;
        }
        if clears || self.with(|state| group > state.content.log.durable()) {
            self.sync_log(tenant).await?;
        }
        Ok(())
    }

    /// Reads cached blocks side by side, those that are on their way when they have come.
    async fn read_cached(&self, open: OpenId, blocks: Vec<CachedRead>) -> bool {
        let begun: Vec<Option<BlockRead>> = self.with(|state| {
            let begin = |block: &CachedRead| {
                state.content.note_read(block.copy);
                let waits = block.after.is_some() || block.is_lost;
                (!waits).then(|| state.begin_read(block.copy))
            };
            blocks.iter().map(begin).collect()
        });
        let mut is_well = true;
        for (block, begun) in blocks.iter().zip(begun) {
            let read = match (begun, &block.after) {
                (Some(read), _) => Some(read),
                (None, Some(after)) if after.wait().await && !block.is_lost => {
                    Some(self.with(|state| state.begin_read(block.copy)))
                }
                (None, _) => None,
            };
            let content = match read {
                Some(read) => self.read_block(block.copy, read, ReadFor::Request).await,
                None => None,
            };
            is_well &= content.is_some();
            self.with(|state| {
                if let Some(content) = content {
                    state.deliver(open, block.copy, content.data);
                }
                state.let_go(block.copy);
            });
        }
        is_well
    }

    /// Brings the content of a block that is being read. It may have been moved or overwritten
    /// meanwhile: then it is read where it lies now. It may be damaged: a clean block is read from
    /// the backing device, a dirty one is lost.
    pub(super) async fn read_block(
        &self,
        copy: CopyId,
        mut read: BlockRead,
        purpose: ReadFor,
    ) -> Option<BlockContent> {
        loop {
            let (stored, op) = match read {
                BlockRead::Memory(content) => return Some(content),
                BlockRead::Nothing => return None,
                BlockRead::Log(stored, op) => (stored, op),
            };
            let data = match op.await {
                Ok(Output::Buffer(data, _)) => Some(data),
                _ => None,
            };
            let next = self.with(|state| match data {
                Some(data) if state.is_whole(copy, &data, stored.checksum) => {
                    if purpose == ReadFor::Request {
                        state.content.keep_hot(copy, &stored, &data);
                    }
                    NextRead::Content(BlockContent { data, origin: stored.origin() })
                }
                _ => state.read_otherwise(copy, &stored, purpose),
            });
            match next {
                NextRead::Content(content) => return Some(content),
                NextRead::Read(again) => read = again,
                NextRead::Fails => return None,
                NextRead::Backing => return self.repair(copy).await,
            }
        }
    }

    /// Reads a block from the backing device, whose clean content in the log is damaged.
    async fn repair(&self, copy: CopyId) -> Option<BlockContent> {
        let (tenant, bytes, size) = self.with(|state| {
            let (known, size) = (state.content.copies.get(copy), 1 << state.block_shift);
            let start = known.number << state.block_shift;
            (known.tenant, start..start + size, size)
        });
        match self.read_backing(tenant, bytes).await {
            Ok((_, data)) => {
                let data = data.extended(size as usize);
                Some(BlockContent { data, origin: ContentOrigin::default() })
            }
            Err(error) => {
                if !error.is_of_pages() {
                    self.with(|state| state.fail_volume(tenant));
                }
                None
            }
        }
    }

    /// Reads whole pages around some bytes of a backing device, up to the end of its volume;
    /// returns the first byte that was read as well. Errors: the device's.
    async fn read_backing(
        &self,
        tenant: TenantId,
        bytes: Range<u64>,
    ) -> Result<(u64, Buffer), IoError> {
        let align = ALIGNMENT as u64;
        let (start, end) = (bytes.start / align * align, bytes.end.next_multiple_of(align));
        Ok((start, self.read_device(tenant, start..end).await?))
    }

    /// Fetches blocks from the backing device, serves the request and puts them into the log. They
    /// are dirty there until the backing device has them durably.
    async fn fetch(&self, open: OpenId, fetch: Fetch, decision: u64) -> bool {
        let data = self.fetched(open, &fetch).await;
        let Fetch { copies, done, .. } = fetch;
        self.with(|state| {
            let is_well = data.is_some();
            match data {
                Some(data) => {
                    let size = 1_usize << state.block_shift;
                    // Behind the end of the volume its last block holds zeroes.
                    let length = copies.len() * size;
                    let data = if data.len() < length { data.extended(length) } else { data };
                    for (copy, data) in copies.iter().zip(data.chunks(size)) {
                        state.fill(*copy, data, decision);
                    }
                }
                None => copies.iter().for_each(|copy| state.content.copies.set_lost(*copy, true)),
            }
            done.set(is_well);
            if !is_well {
                copies.iter().for_each(|copy| state.content_failed(*copy, LossReason::Fetch));
            }
            copies.iter().for_each(|copy| state.let_go(*copy));
            state.note_change();
            is_well
        })
    }

    /// The content of blocks that are fetched; the request has taken its bytes of it.
    async fn fetched(&self, open: OpenId, fetch: &Fetch) -> Option<Buffer> {
        if !fetch.turn.come().await {
            return None;
        }
        let (tenant, bytes) = self.with(|state| {
            let tenant = state.tenant_of_request(open);
            let (start, shift) = (fetch.first << state.block_shift, state.block_shift);
            let bytes = start..start + ((fetch.copies.len() as u64) << shift);
            let refused = state.volumes.backing(tenant).has_failed();
            // It has waited for a write-back that left a block of it out.
            let is_stranded = !refused && state.is_stranded(tenant, bytes.clone());
            state.counts.damaged_dirty += u64::from(is_stranded);
            (!refused && !is_stranded).then_some((tenant, bytes))
        })?;
        self.read_for(open, tenant, bytes).await
    }

    /// Reads bytes of a backing device for a request, which takes its own of them.
    async fn read_for(&self, open: OpenId, tenant: TenantId, bytes: Range<u64>) -> Option<Buffer> {
        let read = self.behind_cache(open, self.read_backing(tenant, bytes)).await;
        self.with(|state| match read {
            Ok((start, data)) => {
                if let Some(request) = state.open.get(open) {
                    request.take(start, &data);
                }
                Some(data)
            }
            Err(error) => {
                // A page that cannot be read is one page: the rest of the volume is served on.
                if !error.is_of_pages() {
                    state.fail_volume(tenant);
                }
                None
            }
        })
    }

    /// Does something for a request on its backing device, and notes the time of that.
    async fn behind_cache<T>(&self, open: OpenId, work: impl Future<Output = T>) -> T {
        let times = |state: &mut State, note: fn(&mut RequestTimes, u64)| {
            let now_ns = state.now_ns;
            state.open.get(open).into_iter().for_each(|open| note(&mut open.times, now_ns));
        };
        self.with(|state| times(state, RequestTimes::begin));
        let done = work.await;
        self.with(|state| times(state, RequestTimes::end));
        done
    }

    /// Writes cached blocks, in their order: whole, or over what they hold.
    async fn write_cached(&self, open: OpenId, blocks: Vec<CachedWrite>, decision: u64) -> bool {
        let mut all_well = true;
        for CachedWrite { copy, after, is_whole, is_lost, done } in blocks {
            let mut is_well = !is_lost;
            for before in after {
                is_well &= before.wait().await || is_whole;
            }
            if is_well {
                is_well = self.write_block(open, copy, decision).await;
            }
            self.with(|state| {
                // What it has not written of its block it has found there.
                state.content.copies.set_lost(copy, !is_well);
                done.set(is_well);
                if !is_well {
                    state.content_failed(copy, LossReason::Fill);
                }
                state.let_go(copy);
                state.note_change();
            });
            all_well &= is_well;
        }
        all_well
    }

    /// Writes a request's bytes of a cached block to the log.
    async fn write_block(&self, open: OpenId, copy: CopyId, decision: u64) -> bool {
        let read = self.with(|state| match state.write_whole(open, copy, decision) {
            Some(is_well) => Err(is_well),
            None => Ok(match state.content.copies.stored(copy) {
                Some(_) => state.begin_read(copy),
                None => BlockRead::Nothing,
            }),
        });
        let read = match read {
            Ok(read) => read,
            Err(is_well) => return is_well,
        };
        match self.read_block(copy, read, ReadFor::Write).await {
            Some(BlockContent { data, .. }) => {
                self.with(|state| state.write_over(open, copy, data, decision))
            }
            None => false,
        }
    }

    /// Reads bytes from the backing device alone.
    async fn read_round(&self, open: OpenId, bytes: Range<u64>, turn: Turn) -> bool {
        if !turn.come().await {
            return false;
        }
        let tenant = self.with(|state| {
            let tenant = state.tenant_of_request(open);
            let is_stranded = state.is_stranded(tenant, bytes.clone());
            state.counts.damaged_dirty += u64::from(is_stranded);
            let refused = is_stranded || state.volumes.backing(tenant).has_failed();
            (!refused).then_some(tenant)
        });
        match tenant {
            Some(tenant) => self.read_for(open, tenant, bytes).await.is_some(),
            None => false,
        }
    }

    /// Writes bytes to the backing device, round the cache or beside it.
    async fn write_round(&self, open: OpenId, change: BackingChange) -> bool {
        let tenant = self.with(|state| state.tenant_of_request(open));
        let is_well =
            change.turn.come().await && self.write_round_in_turn(open, tenant, &change).await;
        let BackingChange { bytes, decision, done, .. } = change;
        self.with(|state| {
            let blocks = state.blocks_of(&bytes);
            if is_well {
                state.overwrite_found(BlockOp::Write, tenant, decision, &bytes, open);
                state.written_through(tenant, decision, &blocks);
            } else {
                state.overwrite_failed(tenant, decision, &blocks);
            }
            state.turns.end_write(tenant, &blocks, &done, is_well);
        });
        is_well
    }

    async fn write_round_in_turn(
        &self,
        open: OpenId,
        tenant: TenantId,
        change: &BackingChange,
    ) -> bool {
        let BackingChange { bytes, decision, .. } = change;
        let blocks = self.with(|state| state.blocks_of(bytes));
        // Content of blocks that left before must be out of the log, durably.
        if !self.have_left(tenant, &blocks, *decision).await {
            return false;
        }
        let group = self.with(|state| state.round_group(tenant, *decision, &blocks));
        if !self.log_durable_for(tenant, group).await {
            return false;
        }
        self.behind_cache(open, self.write_round_now(open, tenant, bytes)).await
    }

    /// Writes the request's bytes to the backing device, with what is there of the pages around.
    async fn write_round_now(&self, open: OpenId, tenant: TenantId, bytes: &Range<u64>) -> bool {
        let length = bytes.end - bytes.start;
        let is_aligned = (bytes.start | length).is_multiple_of(ALIGNMENT as u64);
        let zeroes = self.with(|state| {
            let request = state.open.get(open)?;
            request.wrote_through = true;
            Some(request.request.op == BlockOp::Zero)
        });
        let Some(zeroes) = zeroes else { return false };
        if is_aligned && zeroes {
            return self.zero_backing(tenant, bytes.clone()).await;
        }
        let (start, mut buffer) = match is_aligned {
            true => (bytes.start, Buffer::zeroed(length as usize)),
            false => match self.read_backing(tenant, bytes.clone()).await {
                Ok(read) => read,
                Err(error) => {
                    // Where a block is cached, the cache would have what the device will never
                    // have: the volume fails.
                    self.with(|state| {
                        let mut blocks = state.blocks_of(bytes);
                        let is_cached = blocks.any(|number| state.cached(tenant, number).is_some());
                        if !error.is_of_pages() || is_cached {
                            state.fail_volume(tenant);
                        }
                    });
                    return false;
                }
            },
        };
        self.with(|state| {
            if let Some(request) = state.open.get(open) {
                request.lay_over(start, &mut buffer);
            }
        });
        self.write_backing(tenant, start, buffer).await
    }

    /// Writes whole pages to a backing device; false if that fails, and the volume with it.
    pub(super) async fn write_backing(&self, tenant: TenantId, offset: u64, data: Buffer) -> bool {
        let bytes = offset..offset + data.len() as u64;
        self.change_backing(tenant, bytes, self.write_device(tenant, offset, data)).await
    }

    /// Zeroes whole pages of a backing device, by a hole if it can have one; false if that fails,
    /// and the volume with it.
    pub(super) async fn zero_backing(&self, tenant: TenantId, bytes: Range<u64>) -> bool {
        let zeroed = self.zero_device(tenant, bytes.clone(), true);
        self.change_backing(tenant, bytes, zeroed).await
    }

    async fn change_backing(
        &self,
        tenant: TenantId,
        bytes: Range<u64>,
        change: impl Future<Output = Result<(), IoError>>,
    ) -> bool {
        let blocks = self.with(|state| {
            let blocks = state.blocks_of(&bytes);
            state.volumes.backing_mut(tenant).begin_write(blocks.clone());
            blocks
        });
        let changed = change.await;
        self.with(|state| match changed {
            Ok(()) => state.volumes.backing_mut(tenant).end_write(blocks),
            Err(_) => state.fail_volume(tenant),
        });
        changed.is_ok()
    }

    /// Trims or zeroes the whole blocks of a range on the backing device.
    async fn clear(&self, open: OpenId, change: BackingChange) -> bool {
        let tenant = self.with(|state| state.tenant_of_request(open));
        let is_well = change.turn.come().await && self.clear_in_turn(open, tenant, &change).await;
        let BackingChange { bytes, decision, done, .. } = change;
        self.with(|state| {
            let op = state.open.get(open).map_or(BlockOp::Trim, |open| open.request.op);
            if is_well {
                let blocks = state.whole_blocks(&bytes);
                state.overwrite_found(op, tenant, decision, &bytes, open);
                let by = op.zeroes().then_some(decision).filter(|_| !blocks.is_empty());
                state.end_clear(tenant, decision, blocks, by);
            } else {
                state.zeroes_failed(tenant, decision);
            }
            state.turns.end_clear(tenant, &done, is_well);
        });
        is_well
    }

    async fn clear_in_turn(&self, open: OpenId, tenant: TenantId, change: &BackingChange) -> bool {
        let (decision, blocks) =
            (change.decision, self.with(|state| state.whole_blocks(&change.bytes)));
        let zeroes = self.with(|state| state.leavings.overwriting.contains_key(&decision));
        // What leaves by the zeroes themselves does so when they are done.
        if zeroes && !self.have_left(tenant, &blocks, decision - 1).await {
            return false;
        }
        self.with(|state| state.drop_clean_before_zeroes(tenant, decision, &blocks));
        let group = loop {
            let pending = self.with(|state| state.clear_pending(tenant, decision, &blocks));
            match pending {
                Ok(group) => break group,
                Err(changing) => changing.wait().await,
            };
            self.with(|state| state.drop_clean_before_zeroes(tenant, decision, &blocks));
        };
        if !self.log_durable_for(tenant, group).await {
            return false;
        }
        self.behind_cache(open, self.clear_now(open, tenant, blocks)).await
    }

    async fn clear_now(&self, open: OpenId, tenant: TenantId, blocks: Range<u64>) -> bool {
        if blocks.is_empty() {
            return true;
        }
        let begun = self.with(|state| {
            let request = state.open.get(open)?;
            request.wrote_through = true;
            let op = request.request.op;
            let bytes = blocks.start << state.block_shift..blocks.end << state.block_shift;
            state.volumes.backing_mut(tenant).begin_clear(blocks);
            Some((op, bytes))
        });
        let Some((op, bytes)) = begun else { return false };
        let cleared = match op {
            BlockOp::Zero | BlockOp::Provision => {
                self.zero_device(tenant, bytes, op == BlockOp::Zero).await
            }
            _ => self.discard_device(tenant, bytes).await,
        };
        if cleared.is_err() {
            self.with(|state| state.fail_volume(tenant));
        }
        cleared.is_ok()
    }

    /// Waits until the log holds no content of blocks that left by a decision up to `by`; false if
    /// the volume or the log fails.
    async fn have_left(&self, tenant: TenantId, blocks: &Range<u64>, by: u64) -> bool {
        let is_leaving = |backing: &Backing<OpId>| backing.is_leaving(blocks, by);
        self.wait_while(tenant, is_leaving, |leavings| &mut leavings.awaited).await.is_ok()
    }

    /// Waits while something holds of a tenant's backing device, which is in a list of awaited ones
    /// meanwhile. Errors: the log or the volume fails.
    async fn wait_while(
        &self,
        tenant: TenantId,
        holds: impl Fn(&Backing<OpId>) -> bool,
        awaited: fn(&mut Leavings) -> &mut Vec<TenantId>,
    ) -> Result<(), IoError> {
        loop {
            let wait = self.with(|state| {
                let backing = state.volumes.backing(tenant);
                if backing.has_failed() || state.content.failed.is_some() {
                    return Err(IoError::IO);
                }
                if !holds(backing) {
                    return Ok(None);
                }
                awaited(&mut state.leavings).push(tenant);
                Ok(Some(state.changed.clone()))
            })?;
            let Some(changed) = wait else { return Ok(()) };
            changed.wait().await;
            self.with(|state| forget_one(awaited(&mut state.leavings), tenant));
        }
    }

    /// Waits until a group of the log is durable; false if the volume or the log has failed by
    /// then.
    pub(super) async fn log_durable_for(&self, tenant: TenantId, group: u64) -> bool {
        self.log_durable(group).await.is_ok()
            && self.with(|state| {
                !state.volumes.backing(tenant).has_failed() && state.content.failed.is_none()
            })
    }

    /// Waits until what a tenant's answered requests have written to the log is durable; before
    /// that, what was zeroed must be gone from the log. Errors: the log or the volume has failed.
    async fn sync_log(&self, tenant: TenantId) -> Result<(), IoError> {
        self.wait_while(tenant, Backing::holds_zeroed, |leavings| &mut leavings.zeroes_awaited)
            .await?;
        let synced = self.with(|state| state.begin_log_sync());
        synced.await.map(drop).map_err(|_| IoError::IO)
    }

    /// Waits until what was written to the backing device of a request's tenant is durable there.
    async fn sync_backing_of(&self, open: OpenId) -> Result<(), IoError> {
        let durable = self.with(|state| {
            let tenant = state.tenant_of_request(open);
            if state.volumes.backing(tenant).has_failed() {
                return Err(IoError::IO);
            }
            Ok(state.backing_durable(tenant))
        })?;
        durable.await.map(drop)
    }
}

/// Takes one of a tenant's entries out of a list.
fn forget_one(list: &mut Vec<TenantId>, tenant: TenantId) {
    if let Some(place) = list.iter().position(|other| *other == tenant) {
        list.swap_remove(place);
    }
}

/// The content of a block.
pub(super) struct BlockContent {
    pub data: Buffer,
    pub origin: ContentOrigin,
}

/// A block that is read.
pub(super) enum BlockRead {
    /// It is in memory, on its way to the log or from the backing device.
    Memory(BlockContent),
    /// It is read from the log, where it lay when that began.
    Log(StoredBlock, Pending),
    /// It has no content.
    Nothing,
}

/// What a block is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFor {
    /// A request reads it.
    Request,
    /// A part of it is overwritten.
    Write,
    /// It is written back: the content of then, and no newer one.
    WriteBack,
}

/// How a read goes on.
enum NextRead {
    Content(BlockContent),
    Read(BlockRead),
    Backing,
    Fails,
}

impl State {
    /// The tenant of a request under way.
    fn tenant_of_request(&mut self, open: OpenId) -> TenantId {
        self.open.get(open).map_or(TenantId(0), |open| open.request.tenant)
    }

    /// The blocks of which a range has bytes.
    pub(super) fn blocks_of(&self, bytes: &Range<u64>) -> Range<u64> {
        block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift)
    }

    /// A copy's block, for the log.
    pub(super) fn block_of(&self, copy: CopyId) -> LogBlock {
        let known = self.content.copies.get(copy);
        self.volumes.block(known.tenant, known.number)
    }

    fn is_whole(&self, copy: CopyId, data: &[u8], checksum: u32) -> bool {
        LogContent::is_whole(self.block_of(copy), data, checksum)
    }

    /// Begins to read the content of a copy.
    pub(super) fn begin_read(&mut self, copy: CopyId) -> BlockRead {
        let Some(stored) = self.content.copies.stored(copy) else {
            // It was fetched, and had left the cache by then.
            let origin = ContentOrigin::default();
            return match self.content.fetched.get(&copy) {
                Some(data) => BlockRead::Memory(BlockContent { data: data.clone(), origin }),
                None => BlockRead::Nothing,
            };
        };
        match self.content.in_memory(copy, self.block_of(copy), &stored) {
            Some(data) => BlockRead::Memory(BlockContent { data, origin: stored.origin() }),
            None => BlockRead::Log(stored, self.read_log(stored.place)),
        }
    }

    /// Reads a block from the log's device.
    pub(super) fn read_log(&mut self, place: Place) -> Pending {
        let log = &mut self.content.log;
        self.tasks.call(|tasks, id| log.read(tasks, place, u64::from(id.0)))
    }

    /// The content of a copy was not where it was read.
    fn read_otherwise(&mut self, copy: CopyId, read: &StoredBlock, purpose: ReadFor) -> NextRead {
        let Some(now) = self.content.copies.stored(copy) else { return NextRead::Fails };
        let writes_back = purpose == ReadFor::WriteBack;
        if now.place != read.place {
            return match now.checksum == read.checksum || !writes_back {
                true => NextRead::Read(self.begin_read(copy)),
                false => NextRead::Fails,
            };
        }
        let known = *self.content.copies.get(copy);
        if now.dirty || writes_back || self.volumes.backing(known.tenant).has_failed() {
            self.counts.damaged_dirty += 1;
            if now.dirty && now.group > self.content.log.durable() {
                self.losses.note(known.tenant);
            }
            return NextRead::Fails;
        }
        self.counts.damaged_clean += 1;
        let is_cached = self.cached(known.tenant, known.number) == Some(copy);
        if is_cached && purpose == ReadFor::Request && !self.content.copies.is_changing(copy) {
            self.lose(known.tenant, known.number, LossReason::Checksum);
        }
        NextRead::Backing
    }

    /// Content of a block goes to a request.
    fn deliver(&mut self, open: OpenId, copy: CopyId, data: Buffer) {
        let number = self.content.copies.get(copy).number;
        if let Some(request) = self.open.get(open) {
            let rest = request.take_buffer(number << self.block_shift, data);
            self.content.log.give_back(rest);
        }
    }

    /// Puts a fetched block into the log, by a decision.
    fn fill(&mut self, copy: CopyId, data: &[u8], decision: u64) {
        if !self.content.copies.is_filled(copy) {
            self.content.fetched.insert(copy, Buffer::copy_of(data));
            return;
        }
        let version = Version::filled(self.decisions.in_log(decision));
        let block = self.block_of(copy);
        let backing = self.volumes.backing_mut(block.tenant);
        let dirty = backing.is_unsynced(block.number);
        if dirty {
            let number = block.number;
            backing.settle_later(Settled::Clean { number, content: version });
        }
        let stored = self.content.store(copy, block, version, data, dirty);
        if stored.is_err() {
            self.content.copies.set_lost(copy, true);
        }
    }

    /// What was to bring the content of a copy has failed: the cache forgets the block, unless it
    /// has dirty content of it, or newer content is on its way.
    fn content_failed(&mut self, copy: CopyId, reason: LossReason) {
        let known = *self.content.copies.get(copy);
        // Where writes go to both, the device may have what the cache has failed to take: what the
        // cache has must not be called clean later.
        let keeps_dirty = self.decisions.decider.cache.engine().mode() == WriteMode::WriteBack;
        if keeps_dirty && known.stored.is_some_and(|stored| stored.dirty) {
            return self.content.copies.set_lost(copy, false);
        }
        let is_cached = self.cached(known.tenant, known.number) == Some(copy);
        if is_cached && !self.content.copies.is_changing(copy) {
            self.lose(known.tenant, known.number, reason);
        }
    }

    /// Writes all of a block that the request covers; nothing if it covers only a part.
    fn write_whole(&mut self, open: OpenId, copy: CopyId, decision: u64) -> Option<bool> {
        let size = 1_u64 << self.block_shift;
        let block = self.block_of(copy);
        let start = block.number << self.block_shift;
        let end = (start + size).min(self.volumes.bytes(block.tenant));
        let request = self.open.get(open)?;
        let data = request.written(start..end)?;
        let padded = (end - start < size).then(|| Buffer::copy_of(data).extended(size as usize));
        let data = padded.as_deref().unwrap_or(data);
        let version = Version::written(self.decisions.in_log(decision));
        let stored = self.content.store(copy, block, version, data, true);
        if let Ok(group) = stored {
            request.group = request.group.max(group);
        }
        Some(stored.is_ok())
    }

    /// Lays the request's bytes over a block's content, which goes to the log.
    fn write_over(&mut self, open: OpenId, copy: CopyId, mut data: Buffer, decision: u64) -> bool {
        let block = self.block_of(copy);
        let Some(request) = self.open.get(open) else { return false };
        request.lay_over(block.number << self.block_shift, &mut data);
        let makes_holes = request.request.op == BlockOp::Zero;
        let version = Version::written(self.decisions.in_log(decision));
        if makes_holes {
            self.content.note_zeroed(copy, version);
        }
        let stored = self.content.store(copy, block, version, &data, true);
        match (stored, self.open.get(open)) {
            (Ok(group), Some(request)) => {
                request.group = request.group.max(group);
                true
            }
            _ => false,
        }
    }

    /// Blocks were written through: those that are cached with this content become clean.
    fn written_through(&mut self, tenant: TenantId, decision: u64, blocks: &Range<u64>) {
        let content = Version::written(self.decisions.in_log(decision));
        self.end_overwrite(tenant, decision, blocks);
        for number in blocks.clone() {
            let known = self.cached(tenant, number);
            let stored = known.and_then(|copy| self.content.copies.stored(copy));
            let same = stored.is_some_and(|stored| stored.version == content);
            if same && !self.decisions.is_dirty(tenant, number) {
                let settled = Settled::Clean { number, content };
                self.volumes.backing_mut(tenant).settle_later(settled);
            }
        }
    }

    /// The group that must be durable before blocks are written round the cache by a decision.
    fn round_group(&self, tenant: TenantId, by: u64, blocks: &Range<u64>) -> u64 {
        let copies = &self.content.copies;
        let cached = blocks.clone().filter_map(|number| self.cached(tenant, number));
        let known = cached.map(|copy| copies.get(copy)).filter(|copy| copy.admitted <= by);
        let groups = known.filter_map(|copy| copy.stored).map(|stored| stored.group);
        groups.fold(self.content.fresh_gone.last_group(tenant, blocks), u64::max)
    }

    /// The group that must be durable before blocks are trimmed or zeroed by a decision: the log
    /// then has the dirty content that leaves by it, and no recovery finds older content that is
    /// clean. What is trimmed is gone at once. An error is what is on its way to the log.
    fn clear_pending(&self, tenant: TenantId, by: u64, blocks: &Range<u64>) -> Result<u64, Event> {
        let copies = &self.content.copies;
        let mut group = self.content.fresh_gone.last_group(tenant, blocks);
        let Some(ended) = self.leavings.overwriting.get(&by) else { return Ok(group) };
        for settled in ended {
            if let Settled::Gone { group: own, .. } = settled {
                group = group.max(*own);
            }
        }
        for copy in copies.leaving(tenant, blocks.clone()) {
            if copies.get(copy).left > by {
                continue;
            }
            if let Some(changing) = copies.filling(copy).or_else(|| copies.writing(copy)) {
                return Err(changing);
            }
            group = group.max(copies.stored(copy).map_or(0, |stored| stored.group));
        }
        Ok(group)
    }

    /// All jobs of a request have ended: no room is kept for it any more.
    fn end_jobs(&mut self, open: OpenId) {
        self.with_jobs -= 1;
        let Some(request) = self.open.get(open) else { return };
        let (tenant, reserved) = (request.request.tenant, request.reserved);
        self.space.release(tenant, reserved);
    }

    /// What a request has written is written. Returns the tenant, whether it wrote to the backing
    /// device, and whether it took content away, if it is to be durable before its answer.
    fn note_written(&mut self, open: OpenId) -> Option<(TenantId, bool, bool)> {
        let request = self.open.get(open)?;
        let BlockRequest { tenant, op, durable, .. } = request.request;
        let (wrote_through, clears) = (request.wrote_through, request.clears);
        let changes = !matches!(op, BlockOp::Read | BlockOp::Flush);
        request.is_written = durable && changes;
        // What is trimmed may hold anything it ever held, and only whole blocks of it are.
        if changes && op != BlockOp::Trim {
            self.open.note_written(open, self.content.failed.is_some());
        }
        if wrote_through {
            // Only a sync makes that durable.
            self.volumes.backing_mut(tenant).note_unflushed();
        }
        (durable && changes).then_some((tenant, wrote_through, clears))
    }

    /// A request ends, or is begun again past a log that has failed.
    fn answer(&mut self, open: OpenId, result: Result<(), IoError>) {
        let Some(request) = self.open.end(open) else { return };
        let result = request.error.map_or(result, Err);
        if result.is_err() && self.begins_again(request.request.tenant) {
            return self.bypass.begin_again(request.order, request.again());
        }
        self.note_times(&request, result.is_ok());
        self.answers.push(request.answer(result));
    }

    /// Times of an answered request, for divisions that weigh hits by them; errors have no price.
    fn note_times(&mut self, request: &OpenRequest, is_well: bool) {
        let op = match request.request.op {
            BlockOp::Read => Op::Read,
            BlockOp::Write => Op::Write,
            BlockOp::Flush | BlockOp::Trim | BlockOp::Zero | BlockOp::Provision => return,
        };
        if is_well {
            let (tenant, RequestTimes { decided_ns, behind_ns, .. }) =
                (request.request.tenant, request.times);
            let timing = RequestTiming { tenant, op, decided_ns, behind_ns };
            self.decisions.answered(self.now_ns, &timing);
        }
    }

    /// A request fails whatever else becomes of it.
    pub(super) fn fail_request(&mut self, open: OpenId) {
        self.open.get(open).into_iter().for_each(|request| request.error = Some(IoError::IO));
    }

    /// What a request takes away must become durable, too.
    pub(super) fn note_clears(&mut self, open: OpenId) {
        self.open.get(open).into_iter().for_each(|request| request.clears = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_side_by_side_count_once_and_jobs_one_by_one_add_up() {
        let mut times = RequestTimes { decided_ns: 5, ..RequestTimes::default() };
        times.begin(10);
        times.begin(12);
        times.end(15);
        assert_eq!(times.behind_ns, 0);
        times.end(20);
        times.begin(30);
        times.end(30);
        assert_eq!((times.decided_ns, times.behind_ns), (5, 11));
    }

    #[test]
    fn a_request_covers_whole_blocks_and_parts_of_its_first_and_last() {
        let purpose = |bytes| Purpose { wanted: None, tenant: TenantId(0), op: Op::Write, bytes };
        let some = purpose(5000..13000);
        assert_eq!([1, 2, 3].map(|number| some.covers(number, 12)), [false, true, false]);
        assert_eq!(some.clip(&(1..4), 12), 5000..13000);
        assert_eq!((some.clip(&(2..3), 12), some.clip(&(3..4), 12)), (8192..12288, 12288..13000));
        assert!(some.clip(&(5..6), 12).is_empty());
    }
}
