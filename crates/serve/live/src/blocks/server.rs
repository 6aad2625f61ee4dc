//! The server of blocks: what it is made of, and how it is driven.
//!
//! Its owner hands it requests ([`BlockServer::request`]) and operations that are done
//! ([`BlockServer::on_done`]), lets it begin what is due ([`BlockServer::advance`]), and takes its
//! answers. Inside, each request is a procedure (`request`), and so is each write-back (`evict`)
//! and each device that is tried again (`revive`). What they share is the [`State`]: a procedure
//! looks at it and changes it between two waits, never across one.

use super::answers::BlockAnswers;
use super::background::Background;
use super::bypass::{Bypass, PassedRequest};
use super::content::LogContent;
use super::copies::CopyId;
use super::decisions::Decisions;
use super::evict::{Leavings, WriteBack};
use super::request::{BlockAnswer, BlockOp, BlockRequest, Job, OpenId, OpenRequests, ServeCounts};
use super::revive::Revivals;
use super::space::Space;
use super::turns::Turns;
use super::volumes::LossCounts;
use super::volumes::Volumes;
use crate::io::executor::{Event, Executor, Op, OpId, Signal};
use crate::io::token::{Submitter, purpose};
use crate::io::{Buffer, Done, Io, IoError, IoOp, Output, Token};
use crate::log::{DeviceSet, LogEvent, SegmentId, SegmentUse};
use cachewright_cache::Cache;
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use std::cell::{Ref, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// The caller of syncs of the log that no procedure waits for: the number of no operation.
const UNAWAITED: u64 = 1 << 32;
/// What waits for a sync of a backing device before one is begun unasked.
const BACKING_WAITING: usize = 512;
/// Blocks that have left, not durably, before a sync of the log is begun unasked.
const FRESH_LEAVINGS: usize = 4096;

/// Serves volumes through a cache.
pub struct BlockServer {
    engine: Engine,
    /// Holds the procedures.
    tasks: Executor,
}

/// The state of a server, as its procedures share it; a copy is the same one.
#[derive(Clone)]
pub(super) struct Engine(Rc<RefCell<State>>);

impl Engine {
    /// Looks at the state, or changes it.
    pub fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

/// A procedure that is to begin.
pub(super) enum Procedure {
    /// A request was decided, and has these jobs.
    Serve(OpenId, Vec<Job>),
    /// Blocks are written back.
    WriteBack(WriteBack),
    /// A tenant's backing device is synced.
    SyncBacking(TenantId),
    /// A tenant's failed backing device is tried again.
    Revive(TenantId),
    /// A segment of the log is cleaned.
    Clean(SegmentId),
    /// The log has failed: the server goes on past the cache.
    Bypass(IoError),
    /// A request goes past the cache.
    Pass(Box<PassedRequest>),
}

/// What a server consists of.
pub(super) struct State {
    pub decisions: Decisions,
    pub content: LogContent,
    pub volumes: Volumes,
    /// The order of operations on backing devices.
    pub turns: Turns,
    /// Requests that were decided and are not answered.
    pub open: OpenRequests,
    /// Requests that are not decided, and the room in the log.
    pub space: Space,
    /// Content that goes later than its block has left.
    pub leavings: Leavings,
    pub background: Background,
    /// What goes past the cache, once that has failed.
    pub bypass: Bypass,
    /// Content that was lost before a flush.
    pub losses: LossCounts,
    /// Backing devices that have failed and are tried again.
    pub revivals: Revivals,
    pub counts: ServeCounts,
    pub block_shift: u32,
    /// What is written to devices that cannot zero, once it was needed.
    pub zeroes: Option<Arc<Buffer>>,
    pub answers: BlockAnswers,
    /// Begins operations, and holds the procedures.
    pub tasks: Executor,
    /// Procedures that are to begin.
    pub begun: VecDeque<Procedure>,
    /// Requests whose jobs have not ended.
    pub with_jobs: usize,
    /// Content has come or gone, a block has left, a device or the log has failed: what waits for
    /// such a thing looks again.
    pub changed: Signal,
    /// The owner has let the server go on.
    pub advanced: Signal,
    /// What waits until groups of the log are written.
    written: BTreeMap<u64, Event>,
    /// What waits until groups of the log are durable.
    durable: BTreeMap<u64, Event>,
    /// The last group up to which a sync of the log was begun.
    log_synced: u64,
    /// Tenants whose backing devices are to be synced.
    pub sync_wanted: BTreeSet<TenantId>,
    /// The server ends: nothing is cleaned any more.
    pub is_closing: bool,
    /// The time when the owner called.
    pub now_ns: u64,
}

impl BlockServer {
    /// What a server consists of; [`BlockServer::open`] makes one.
    pub(super) fn new(
        decisions: Decisions,
        mut content: LogContent,
        volumes: Volumes,
        block_shift: u32,
        tasks: Executor,
    ) -> BlockServer {
        content.copies.reserve(&decisions.max_ids());
        let (changed, advanced, own) = (tasks.signal(), tasks.signal(), tasks.clone());
        let state = State {
            bypass: Bypass::new(volumes.list().iter().map(|volume| volume.id), tasks.signal()),
            decisions,
            content,
            volumes,
            turns: Turns::default(),
            open: OpenRequests::default(),
            space: Space::default(),
            leavings: Leavings::default(),
            background: Background::default(),
            losses: LossCounts::default(),
            revivals: Revivals::default(),
            counts: ServeCounts::default(),
            block_shift,
            zeroes: None,
            answers: BlockAnswers::default(),
            tasks,
            begun: VecDeque::new(),
            with_jobs: 0,
            changed,
            advanced,
            written: BTreeMap::new(),
            durable: BTreeMap::new(),
            log_synced: 0,
            sync_wanted: BTreeSet::new(),
            is_closing: false,
            now_ns: 0,
        };
        BlockServer { engine: Engine(Rc::new(RefCell::new(state))), tasks: own }
    }

    /// The state, to be changed. No procedure runs meanwhile.
    pub(super) fn state(&self) -> RefMut<'_, State> {
        self.engine.0.borrow_mut()
    }

    /// The state, to be looked at.
    pub(super) fn look(&self) -> Ref<'_, State> {
        self.engine.0.borrow()
    }

    /// The cache, for counters and audits.
    pub fn cache(&self) -> Ref<'_, Cache<Box<dyn Policy>>> {
        Ref::map(self.look(), |state| &state.decisions.decider.cache)
    }

    /// Time that reads and writes of a tenant have waited behind the cache, in nanoseconds.
    pub fn behind_ns(&self, tenant: TenantId) -> u64 {
        self.look().decisions.behind_ns(tenant)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        1 << self.look().block_shift
    }

    /// Whether a block of a tenant is in the cache.
    pub fn is_cached(&self, tenant: TenantId, number: u64) -> bool {
        let state = self.look();
        !state.bypass.is_begun() && state.decisions.decider.cache.contains(tenant, number)
    }

    /// Whether only the cache has the content of a tenant's block. While the cache is bypassed
    /// nothing is, and nothing is in the cache.
    pub fn is_dirty(&self, tenant: TenantId, number: u64) -> bool {
        let state = self.look();
        !state.bypass.is_begun() && state.decisions.is_dirty(tenant, number)
    }

    /// Requests of a tenant that wait for room in the log.
    pub fn waiting_for_space(&self, tenant: TenantId) -> usize {
        self.look().space.queue.iter().filter(|request| request.tenant == tenant).count()
    }

    /// What was counted besides the cache's own counters.
    pub fn counts(&self) -> ServeCounts {
        let state = self.look();
        let (written, moved) = (state.content.streams.written(), state.content.cleaner.moved());
        let memory_reads = state.content.hot.reads();
        ServeCounts { written, moved, memory_reads, ..state.counts }
    }

    /// Keeps so many bytes of content that is read often in memory, too, from now on.
    pub fn set_memory(&mut self, bytes: u64) {
        let mut state = self.state();
        let blocks = bytes >> state.block_shift;
        state.content.hot.set_limit(usize::try_from(blocks).unwrap_or(usize::MAX));
    }

    /// The devices of the log.
    pub fn device_set(&self) -> Ref<'_, DeviceSet> {
        Ref::map(self.look(), |state| state.content.log.set())
    }

    /// Segments of the log, and those of them that hold nothing.
    pub fn log_segments(&self) -> (u64, u64) {
        self.look().content.log.segments().fold((0, 0), |(all, free), (_, segment)| {
            (all + 1, free + u64::from(segment.usage == SegmentUse::Free))
        })
    }

    /// Whether a tenant's backing device has failed: its requests get errors.
    pub fn volume_has_failed(&self, tenant: TenantId) -> bool {
        self.look().volumes.backing(tenant).has_failed()
    }

    /// Why the log takes nothing any more: requests go past the cache, as [`BlockServer::passage`]
    /// says.
    pub fn log_failure(&self) -> Option<IoError> {
        self.look().content.failed
    }

    /// Whether nothing is under way: no request, and nothing that no request waits for.
    pub fn is_idle(&self) -> bool {
        let state = self.look();
        let is_idle = state.open.is_empty() && state.space.queue.is_empty();
        is_idle
            && state.leavings.write_backs() == 0
            && state.bypass.is_idle()
            && state.revivals.is_empty()
    }

    /// Takes a request. Its answer comes at once, or later: see [`BlockServer::take_answers`].
    pub fn request(&mut self, io: &mut impl Io, mut request: BlockRequest) {
        if request.op == BlockOp::Flush {
            (request.offset, request.length) = (0, 0);
        }
        let mut state = self.state();
        state.now_ns = io.now_ns();
        if let Err(error) = state.check(&request) {
            return state.answers.refuse(&request, error);
        }
        state.space.queue.push_back(request);
        if state.content.failed.is_none() {
            state.decide_queued();
        }
        drop(state);
        self.settle();
        self.submit(io);
    }

    /// Whether an operation that is done is one of the server's.
    pub fn owns(&self, token: Token) -> bool {
        matches!(Submitter::of(token), Some(Submitter::Log | Submitter::Blocks))
    }

    /// An operation of the server is done. [`BlockServer::advance`] is to be called after some.
    pub fn on_done(&mut self, io: &mut impl Io, done: Done) {
        let mut state = self.state();
        state.now_ns = io.now_ns();
        if Submitter::of(done.token) == Some(Submitter::Log) {
            state.log_done(done);
        } else {
            let (_, number) = purpose(done.token);
            let result = done.error.map_or(Ok(done.output), Err);
            state.tasks.end_op(OpId::new(number), result);
        }
        drop(state);
        self.settle();
        self.submit(io);
    }

    /// Begins what is due: groups of the log, syncs, cleaning. To be called after requests and
    /// operations that were done, for as many of them as there are at once.
    pub fn advance(&mut self, io: &mut impl Io) {
        self.state().now_ns = io.now_ns();
        self.begin_due();
        // The segment that was cleaned last cannot be: another is, or requests are refused.
        while self.look().is_stuck_anywhere() {
            self.begin_due();
        }
        self.submit(io);
    }

    fn begin_due(&mut self) {
        if self.look().content.failed.is_some() {
            self.settle();
            self.state().advanced.give();
            self.settle();
        }
        if self.look().bypass.is_begun() && !self.look().bypass.is_draining() {
            return;
        }
        let mut state = self.state();
        state.make_space();
        if state.content.failed.is_none() {
            state.decide_queued();
        }
        drop(state);
        self.settle();
        self.write_back_ahead();
        self.empty_removed_volumes();
        self.state().advanced.give();
        self.settle();
        let mut state = self.state();
        state.begin_syncs();
        state.go_on_closing();
        state.write_groups();
        drop(state);
        self.settle();
    }

    /// Lets procedures go on until all of them wait for operations.
    pub(super) fn settle(&mut self) {
        loop {
            let mut state = self.state();
            if state.content.failed.is_some() {
                state.log_has_failed();
            }
            while let Some(procedure) = state.begun.pop_front() {
                let (engine, tasks) = (self.engine.clone(), &self.tasks);
                match procedure {
                    Procedure::Serve(open, jobs) => tasks.spawn(engine.serve(open, jobs)),
                    Procedure::WriteBack(work) => tasks.spawn(engine.write_back(work)),
                    Procedure::SyncBacking(tenant) => tasks.spawn(engine.sync_backing(tenant)),
                    Procedure::Revive(tenant) => tasks.spawn(engine.revive(tenant)),
                    Procedure::Clean(victim) => tasks.spawn(engine.clean(victim)),
                    Procedure::Bypass(cause) => tasks.spawn(engine.bypass(cause)),
                    Procedure::Pass(passed) => tasks.spawn(engine.pass(*passed)),
                }
            }
            drop(state);
            if !self.tasks.run() {
                return;
            }
        }
    }

    /// Hands what was begun to `io`.
    pub(super) fn submit(&mut self, io: &mut impl Io) {
        self.tasks.take_ops(io);
    }

    /// Ends all segments of the log, so that the next start reads little, and damage is told from a
    /// loss of power. To be called when no request is under way; [`BlockServer::advance`] is to be
    /// called until that is done. No segment is cleaned any more.
    pub fn close(&mut self, io: &mut impl Io) {
        let mut state = self.state();
        state.is_closing = true;
        state.go_on_closing();
        drop(state);
        self.submit(io);
    }

    /// Whether segments of the log are being ended. A log that has failed ends none.
    pub fn is_closing(&self) -> bool {
        let state = self.look();
        let log = &state.content.log;
        let is_ended = !log.is_closing() && !log.has_begun() && !state.is_syncing();
        state.content.failed.is_none() && !is_ended
    }

    /// Memory of an answer that was sent.
    pub fn give_back(&mut self, data: Buffer) {
        let mut state = self.state();
        if data.len() as u64 == 1 << state.block_shift {
            state.content.log.give_back(data);
        }
    }

    /// The answers since the last call.
    pub fn take_answers(&mut self) -> Vec<BlockAnswer> {
        self.state().answers.take()
    }
}

/// The procedures hold the state, which holds them.
impl Drop for BlockServer {
    fn drop(&mut self) {
        self.tasks.clear();
    }
}

impl State {
    /// Errors: no such volume, a range that it does not have, data of another length, a volume that
    /// has failed.
    pub fn check(&self, request: &BlockRequest) -> Result<(), IoError> {
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

    /// The copy of a block that is cached.
    pub fn cached(&self, tenant: TenantId, number: u64) -> Option<CopyId> {
        self.content.copies.find(&self.decisions.decider.cache.find(tenant, number)?)
    }

    /// Begins an operation on a backing device.
    pub fn submit(&mut self, op: IoOp) -> Op {
        self.tasks.begin_op(op)
    }

    /// What waits for content, for a block to leave or for a failure looks again.
    pub fn note_change(&mut self) {
        self.changed.give();
    }

    /// An operation of the log is done.
    fn log_done(&mut self, done: Done) {
        let mut events = Vec::new();
        self.content.log.on_done(&mut self.tasks, done, &mut events);
        self.take_events(events);
    }

    /// Takes what has happened in the log.
    fn take_events(&mut self, events: Vec<LogEvent>) {
        for event in events {
            match event {
                LogEvent::Written(group) => reach(&mut self.written, group),
                LogEvent::Durable(group) => {
                    self.content.fresh_gone.settle(group);
                    self.content.copies.settle(group);
                    reach(&mut self.durable, group);
                }
                LogEvent::Synced(UNAWAITED, _) => {}
                LogEvent::Synced(caller, result) => {
                    let result = result.map(|()| Output::Nothing).map_err(|_| IoError::IO);
                    self.tasks.end_op(OpId(caller as u32), result);
                }
                LogEvent::Read(caller, data, result) => {
                    let length = data.len();
                    let result = result.map(|()| Output::Buffer(data, length));
                    self.tasks.end_op(OpId(caller as u32), result);
                }
                LogEvent::Failed(error) => {
                    self.content.failed.get_or_insert(error);
                }
            }
        }
    }

    /// Begins a sync of the log: it ends when all that was appended so far is durable.
    pub fn begin_log_sync(&mut self) -> Op {
        let log = &mut self.content.log;
        self.tasks.call(|tasks, id| log.sync(tasks, u64::from(id.0)))
    }

    /// Makes durable what was appended to the log; no procedure waits for it.
    pub fn sync_log_unasked(&mut self) {
        self.content.log.sync(&mut self.tasks, UNAWAITED);
        self.log_synced = self.content.log.last_group();
    }

    /// What ends when all that was written to a backing device is durable.
    pub fn backing_durable(&mut self, tenant: TenantId) -> Op {
        let backing = self.volumes.backing_mut(tenant);
        self.tasks.call(|tasks, id| {
            if let Some(id) = backing.wait(id) {
                tasks.end_op(id, Ok(Output::Nothing));
            }
        })
    }

    /// Begins syncs that something waits for.
    fn begin_syncs(&mut self) {
        let last = self.content.log.last_group();
        let wanted = self.durable.last_key_value().map_or(0, |(group, _)| *group);
        let is_crowded = self.content.fresh_gone.len() > FRESH_LEAVINGS;
        if wanted > self.log_synced || (is_crowded && self.log_synced < last) {
            self.sync_log_unasked();
        }
        let wanted = std::mem::take(&mut self.sync_wanted);
        for tenant in self.volumes.tenants() {
            let backing = self.volumes.backing(tenant);
            if backing.has_failed() || backing.is_syncing() || !backing.needs_sync() {
                continue;
            }
            // The segment with the oldest content may be another pool's.
            let is_short = !self.space.short_pools.is_empty();
            let zeroes_awaited = || self.leavings.zeroes_awaited.contains(&tenant);
            let due = backing.is_awaited()
                || backing.waiting() >= BACKING_WAITING
                || wanted.contains(&tenant)
                || self.leavings.awaited.contains(&tenant)
                || (backing.holds_zeroed() && zeroes_awaited())
                || (is_short && backing.leaving() > 0);
            if due {
                self.volumes.backing_mut(tenant).begin_sync();
                self.begun.push_back(Procedure::SyncBacking(tenant));
            }
        }
    }

    /// Hands the open groups of the log to their devices, unless some are on their way, and lets
    /// the log go on.
    fn write_groups(&mut self) {
        if !self.content.log.is_writing() && self.content.failed.is_none() {
            self.content.log.commit(&mut self.tasks);
        }
        let mut events = Vec::new();
        self.content.log.advance(&mut self.tasks, &mut events);
        self.take_events(events);
    }

    /// Ends segments again that took what backing devices have settled meanwhile.
    pub(super) fn go_on_closing(&mut self) {
        if self.is_closing && self.content.log.has_begun() && !self.is_syncing() {
            self.content.log.close(&mut self.tasks);
        }
    }

    fn is_syncing(&self) -> bool {
        self.volumes.tenants().any(|tenant| self.volumes.backing(tenant).is_syncing())
    }

    /// The log takes nothing any more: what waits for it waits in vain.
    fn log_has_failed(&mut self) {
        for waiting in [&mut self.written, &mut self.durable] {
            std::mem::take(waiting).into_values().for_each(|event| event.set(false));
        }
        self.note_change();
        self.turn_to_bypass();
    }
}

/// The log has reached a group: what waits for it or for one before goes on.
fn reach(waiting: &mut BTreeMap<u64, Event>, group: u64) {
    while let Some(first) = waiting.first_entry()
        && *first.key() <= group
    {
        first.remove().set(true);
    }
}

impl Engine {
    /// Waits until the log is written up to a group. Errors: it has failed.
    pub async fn log_written(&self, group: u64) -> Result<(), IoError> {
        let event = self.with(|state| {
            if group <= state.content.log.written() {
                return Ok(None);
            }
            if state.content.failed.is_some() {
                return Err(IoError::IO);
            }
            let event = state.written.entry(group).or_insert_with(|| state.tasks.event());
            Ok(Some(event.clone()))
        })?;
        match event {
            Some(event) if !event.wait().await => Err(IoError::IO),
            _ => Ok(()),
        }
    }

    /// Waits until the log is durable up to a group. Errors: it has failed.
    pub async fn log_durable(&self, group: u64) -> Result<(), IoError> {
        let event = self.with(|state| {
            if group <= state.content.log.durable() {
                return Ok(None);
            }
            if state.content.failed.is_some() {
                return Err(IoError::IO);
            }
            let event = state.durable.entry(group).or_insert_with(|| state.tasks.event());
            Ok(Some(event.clone()))
        })?;
        match event {
            Some(event) if !event.wait().await => Err(IoError::IO),
            _ => Ok(()),
        }
    }
}
