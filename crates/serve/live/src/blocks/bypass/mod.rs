//! Serving past a cache that has failed: volumes go on when a device of the log fails.
//!
//! The order, by which nothing older is ever read:
//!
//! 1. what was begun ends, so that the newest content of each block is known; requests that needed
//!    the log wait to be begun again, and new ones behind them;
//! 2. a mark on the log's devices says that clean content of the log does not count any more;
//! 3. dirty content is read from wherever it stands, checked, written to its backing device, and
//!    made durable there; what cannot be read is lost: reads of it fail until it is overwritten;
//! 4. a second mark says of a volume that nothing in the log counts for it; then its writes pass.
//!
//! Where no device takes a mark, nothing may be written that the log does not have durably: volumes
//! can be read only. Where a backing device fails as well, what only the log has of it stays there.
//!
//! Changes of the same pages are carried out in the order in which they came; a read brings what
//! was answered before it. Units: bytes, blocks.

mod lost;
mod pieces;

use super::content::LogContent;
use super::copies::BlockCopy;
use super::request::{BlockOp, BlockRequest, OpenRequest};
use super::server::{BlockServer, Engine, Procedure, State};
use super::turns::Turn;
use super::volumes::{KnownLosses, covered};
use crate::io::executor::{Begun, Event, Signal};
use crate::io::{Buffer, IoError, IoOp, Output};
use crate::log::format::{Bypassed, VolumeId, data_checksum};
use crate::log::{DevicePage, Marker, OpenSet, Place};
use cachewright_types::{TenantId, block_numbers, whole_block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use lost::LostBlocks;
use pieces::{Piece, around, pages_of, pieces_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Blocks of one volume that are rescued side by side.
const UNDER_WAY: usize = 16;

/// What becomes of the requests of a volume whose cache has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Reads pass; changes wait until what only the log has is rescued.
    Waits,
    /// All pass.
    Passes,
    /// Reads pass, all others get errors: no device takes the mark.
    ReadsOnly,
    /// All get errors: the backing device has failed. What only the log has stays there.
    Fails,
}

/// What operators are told of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumePassage {
    /// What becomes of its requests.
    pub passage: Passage,
    /// Blocks that only the log had and that its backing device has now.
    pub rescued: u64,
    /// Blocks whose content is lost: reads of them fail until they are overwritten.
    pub lost: u64,
}

/// How far the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BypassPhase {
    /// The cache works.
    Off,
    /// What was begun ends.
    Draining,
    /// Clean content is marked as void.
    Announcing,
    /// Content is rescued; requests pass.
    Serving,
}

/// Dirty content of a block, and where it may be read.
#[derive(Clone, Debug, Default)]
struct DirtyContent {
    checksum: u32,
    /// A flush, or a sync of the log, has made it durable.
    durable: bool,
    /// It is on its way to the log.
    memory: Option<Buffer>,
    /// Where it may be read, in this order.
    places: Vec<DevicePage>,
}

/// A volume whose cache has failed.
struct BypassedVolume {
    id: VolumeId,
    passage: Passage,
    /// Content that only the log has, and that is not being rescued.
    unrescued: BTreeMap<u64, DirtyContent>,
    /// Blocks that are being rescued.
    under_way: BTreeSet<u64>,
    /// Blocks that were rescued.
    rescued: u64,
    /// Blocks whose content was lost, overwritten since or not.
    lost_blocks: u64,
    lost: LostBlocks,
    /// Those of them whose content no flush had made durable.
    unflushed: LostBlocks,
    /// Changes of pages that are not done. One that covers another waits for it: only the later one
    /// is known.
    changes: Vec<(Range<u64>, Event)>,
    /// What waits for the next sync.
    next_sync: Option<Event>,
    is_syncing: bool,
}

impl BypassedVolume {
    fn new(id: VolumeId) -> BypassedVolume {
        BypassedVolume {
            id,
            passage: Passage::Waits,
            unrescued: BTreeMap::new(),
            under_way: BTreeSet::new(),
            rescued: 0,
            lost_blocks: 0,
            lost: LostBlocks::default(),
            unflushed: LostBlocks::default(),
            changes: Vec::new(),
            next_sync: None,
            is_syncing: false,
        }
    }

    /// Whether content of a block of a range is not rescued yet.
    fn holds(&self, blocks: &Range<u64>) -> bool {
        !blocks.is_empty()
            && (self.unrescued.range(blocks.clone()).next().is_some()
                || self.under_way.range(blocks.clone()).next().is_some())
    }

    /// The turn of a change of some pages, which `done` ends.
    fn turn(&mut self, pages: &Range<u64>, done: &Event) -> Turn {
        let mut turn = Turn::default();
        let meets = |other: &Range<u64>| other.start < pages.end && pages.start < other.end;
        for (_, event) in self.changes.iter().filter(|(other, _)| meets(other)) {
            turn.wait_for(Some(event.clone()));
        }
        self.changes.retain(|(other, event)| {
            let is_covered = pages.start <= other.start && other.end <= pages.end;
            !is_covered && !event.is_set()
        });
        self.changes.push((pages.clone(), done.clone()));
        turn
    }
}

/// A request that goes past the cache.
pub(super) struct PassedRequest {
    request: BlockRequest,
    pieces: Vec<Piece>,
    /// Bytes that stay as they are: later requests have written them.
    spared: Vec<Range<u64>>,
    turn: Turn,
    /// It ends the turn of those that wait for this one.
    done: Event,
}

/// Serves volumes past the cache, once that has failed.
pub(super) struct Bypass {
    phase: BypassPhase,
    /// Writes marks to the cache's devices.
    marker: Option<Marker>,
    volumes: Vec<BypassedVolume>,
    /// Volumes for which nothing in the log counts, as soon as the mark stands.
    passed: BTreeSet<VolumeId>,
    /// Volumes that are rescued; a mark is to say so.
    to_mark: Vec<TenantId>,
    /// Volumes that are being rescued.
    rescuing: usize,
    /// Requests that pass, or wait to.
    passing: usize,
    /// Requests that came before anything passes.
    early: VecDeque<BlockRequest>,
    /// Requests that were decided before, by the order in which they were: they go first.
    again: BTreeMap<u64, BlockRequest>,
    /// What those leave as it is, by their tags: later requests have written it.
    spared: HashMap<u64, Vec<Range<u64>>, FixedState>,
    /// A block is rescued or lost, or it is known what becomes of a volume.
    progress: Signal,
}

impl Bypass {
    /// For these volumes of tenants 0, 1 and so on. It can begin when it has the set.
    pub fn new(volumes: impl Iterator<Item = VolumeId>, progress: Signal) -> Bypass {
        Bypass {
            phase: BypassPhase::Off,
            marker: None,
            volumes: volumes.map(BypassedVolume::new).collect(),
            passed: BTreeSet::new(),
            to_mark: Vec::new(),
            rescuing: 0,
            passing: 0,
            early: VecDeque::new(),
            again: BTreeMap::new(),
            spared: HashMap::default(),
            progress,
        }
    }

    /// From now on the cache can be bypassed; its devices are these.
    pub fn arm(&mut self, open: OpenSet) {
        self.marker = Some(Marker::new(open));
    }

    /// One more tenant's volume. The cache must not be bypassed yet.
    pub fn add_volume(&mut self, id: VolumeId) {
        debug_assert!(!self.is_begun(), "volumes come while the cache works");
        self.volumes.push(BypassedVolume::new(id));
    }

    /// What marks the cache's devices, once it is armed.
    pub fn marker(&mut self) -> Option<&mut Marker> {
        self.marker.as_mut()
    }

    /// Whether the cache is bypassed.
    pub fn is_begun(&self) -> bool {
        self.phase != BypassPhase::Off
    }

    /// Whether what was begun before has not ended.
    pub fn is_draining(&self) -> bool {
        self.phase == BypassPhase::Draining
    }

    /// Whether no request waits or is under way, and nothing is left to be rescued.
    pub fn is_idle(&self) -> bool {
        match self.phase {
            BypassPhase::Off => self.early.is_empty() && self.again.is_empty(),
            BypassPhase::Draining | BypassPhase::Announcing => false,
            BypassPhase::Serving => {
                let is_settled = |volume: &BypassedVolume| volume.passage != Passage::Waits;
                let is_settled = self.volumes.iter().all(is_settled);
                is_settled && self.rescuing == 0 && self.passing == 0
            }
        }
    }

    /// How a volume stands, while the cache is bypassed.
    pub fn volume(&self, tenant: TenantId) -> Option<VolumePassage> {
        let volume = self.volumes.get(tenant.index()).filter(|_| self.is_begun())?;
        let BypassedVolume { passage, rescued, .. } = *volume;
        Some(VolumePassage { passage, rescued, lost: volume.lost.len() })
    }

    /// A request that was the `order`th to be decided could not be carried out by the log: it is
    /// begun again before all that were decided later, or not at all.
    pub fn begin_again(&mut self, order: u64, request: BlockRequest) {
        debug_assert!(
            matches!(self.phase, BypassPhase::Off | BypassPhase::Draining),
            "nothing passes before all that was begun has ended"
        );
        self.again.insert(order, request);
    }

    /// A volume's backing device has failed.
    pub fn fail(&mut self, tenant: TenantId) {
        if self.phase == BypassPhase::Serving {
            self.settle(tenant, Passage::Fails);
        }
    }

    /// It is known what becomes of a volume's requests. One whose device has failed stays so.
    fn settle(&mut self, tenant: TenantId, passage: Passage) {
        let volume = &mut self.volumes[tenant.index()];
        if volume.passage != Passage::Fails {
            volume.passage = passage;
        }
        self.progress.give();
    }
}

impl BlockServer {
    /// How a tenant's volume is served while the cache is bypassed; nothing while it is not.
    pub fn passage(&self, tenant: TenantId) -> Option<VolumePassage> {
        self.look().bypass.volume(tenant)
    }

    /// Runs of a tenant's blocks whose content is lost: reads of them fail until they are
    /// overwritten whole, trimmed or zeroed.
    pub fn lost_runs(&self, tenant: TenantId) -> Vec<Range<u64>> {
        let state = self.look();
        let volume = state.bypass.volumes.get(tenant.index());
        volume.into_iter().flat_map(|volume| volume.lost.runs()).collect()
    }

    /// Dirty blocks of a tenant that were lost with the log: the count only rises.
    pub fn lost_with_log(&self, tenant: TenantId) -> u64 {
        let state = self.look();
        state.bypass.volumes.get(tenant.index()).map_or(0, |volume| volume.lost_blocks)
    }

    /// Losses of a tenant's content that was answered and that no flush had made durable. A flush
    /// does not fail because of them: which clients are to be told is the caller's to know.
    pub fn losses(&self, tenant: TenantId) -> KnownLosses {
        let state = self.look();
        let volume = state.bypass.volumes.get(tenant.index());
        let is_open = volume.is_some_and(|volume| !volume.unflushed.is_empty());
        KnownLosses { count: state.losses.count(tenant), is_open }
    }

    /// The device of the log that has failed, in the order of the set.
    pub fn failed_device(&self) -> Option<usize> {
        self.look().content.log.failed_device()
    }

    /// Blocks that only the cache has.
    pub fn dirty_blocks(&self) -> u64 {
        let state = self.look();
        if !state.bypass.is_begun() {
            return state.decisions.decider.cache.engine().dirty_blocks();
        }
        let left = |volume: &BypassedVolume| volume.unrescued.len() + volume.under_way.len();
        state.bypass.volumes.iter().map(left).sum::<usize>() as u64
    }

    /// Whether the backing device of a tenant has all that the cache has of it. Tenants that share
    /// a pool share the answer.
    pub fn is_written_back(&self, tenant: TenantId) -> bool {
        let state = self.look();
        let engine = state.decisions.decider.cache.engine();
        let volume = state.volumes.id(tenant);
        let is_own = |block: &(VolumeId, u64)| block.0 == volume;
        !state.bypass.is_begun()
            && engine.dirty_in(engine.pool_of(tenant)) == 0
            && !state.content.stranded.keys().any(is_own)
    }
}

impl State {
    /// The log has failed: nothing is decided any more, and requests wait to pass the cache. Where
    /// it cannot be bypassed, at a start and behind the last flush, they fail.
    pub(super) fn turn_to_bypass(&mut self) {
        let Some(cause) = self.content.failed else { return };
        if self.can_bypass() && !self.bypass.is_begun() {
            self.decisions.end();
            self.bypass.phase = BypassPhase::Draining;
            self.begun.push_back(Procedure::Bypass(cause));
        }
        for request in std::mem::take(&mut self.space.queue) {
            match self.bypass.is_begun() {
                true => self.pass(request),
                false => self.answers.refuse(&request, IoError::IO),
            }
        }
    }

    fn can_bypass(&self) -> bool {
        self.bypass.marker.is_some() && !self.is_closing
    }

    /// Whether a tenant's request that was under way is not to fail, because the log alone has: it
    /// is begun again past the cache, in which it finds what its volume's device has by then.
    pub(super) fn begins_again(&self, tenant: TenantId) -> bool {
        let log_failed = self.content.failed.is_some();
        log_failed && self.can_bypass() && !self.volumes.backing(tenant).has_failed()
    }

    /// A request that was not decided goes past the cache. It was checked.
    pub(super) fn pass(&mut self, request: BlockRequest) {
        if self.bypass.phase != BypassPhase::Serving {
            return self.bypass.early.push_back(request);
        }
        let spared = self.bypass.spared.remove(&request.tag).unwrap_or_default();
        let done = self.tasks.event();
        let bytes = request.offset..request.offset + request.length;
        let volume_bytes = self.volumes.bytes(request.tenant);
        let pieces = pieces_of(&request, self.block_shift, volume_bytes, &spared);
        let turn = match request.op {
            BlockOp::Read | BlockOp::Flush => Turn::default(),
            // One that changes nothing waits for nothing.
            _ if pieces.is_empty() => Turn::default(),
            _ => {
                let volume = &mut self.bypass.volumes[request.tenant.index()];
                volume.turn(&pages_of(&bytes), &done)
            }
        };
        self.bypass.passing += 1;
        let passed = PassedRequest { request, pieces, spared, turn, done };
        self.begun.push_back(Procedure::Pass(Box::new(passed)));
    }

    /// Whether nothing is under way that was begun through the cache.
    fn has_drained(&self) -> bool {
        let mut backings = self.volumes.tenants().map(|tenant| self.volumes.backing(tenant));
        self.leavings.write_backs() == 0
            && self.open.is_empty()
            && self.space.queue.is_empty()
            && !backings.any(|backing| backing.is_syncing())
    }

    /// All that was begun has ended: what only the log has is to be rescued, and requests that are
    /// begun again leave out what later ones have written.
    fn begin_rescue(&mut self) {
        for (tenant, number, content) in self.dirty_content() {
            self.bypass.volumes[tenant.index()].unrescued.insert(number, content);
        }
        for tenant in self.volumes.tenants() {
            if self.volumes.backing(tenant).has_failed() {
                self.bypass.settle(tenant, Passage::Fails);
            }
        }
        for (order, request) in &self.bypass.again {
            let spared = self.open.overtaken(*order, request);
            if !spared.is_empty() {
                self.bypass.spared.insert(request.tag, spared);
            }
        }
        let again = std::mem::take(&mut self.bypass.again).into_values();
        self.bypass.early = again.chain(std::mem::take(&mut self.bypass.early)).collect();
        self.bypass.phase = BypassPhase::Announcing;
    }

    /// Content that no backing device has, where it is the newest of its block. Nothing is under
    /// way, so that each block is cached, or its content is stranded, or its device has all of it.
    /// What is stranded is older than what is cached.
    fn dirty_content(&self) -> Vec<(TenantId, u64, DirtyContent)> {
        let (mut dirty, content) = (Vec::new(), &self.content);
        for (copy, known, stored) in content.copies.iter().filter(|(.., stored)| stored.dirty) {
            let BlockCopy { tenant, number, .. } = *known;
            debug_assert!(self.cached(tenant, number) == Some(copy), "what has left has ended");
            let checksum = Some(stored.checksum);
            let found = self.located(tenant, number, stored.place, checksum, stored.group);
            dirty.push((tenant, number, found));
        }
        for ((volume, number), found) in content.stranded.iter().filter(|(_, found)| found.dirty) {
            let Some(tenant) = self.volumes.tenant(*volume) else { continue };
            let cached = self.cached(tenant, *number);
            if cached.and_then(|copy| content.copies.stored(copy)).is_none() {
                let found = self.located(tenant, *number, found.place, found.checksum, found.group);
                dirty.push((tenant, *number, found));
            }
        }
        dirty
    }

    /// Where content may be read: in memory, at its place, which is read twice before it counts as
    /// damaged, and where the cleaner has copied it from. Without a checksum it must not be read.
    fn located(
        &self,
        tenant: TenantId,
        number: u64,
        place: Place,
        checksum: Option<u32>,
        group: u64,
    ) -> DirtyContent {
        let block = self.volumes.block(tenant, number);
        let durable = group <= self.content.log.durable();
        let Some(checksum) = checksum else {
            return DirtyContent { durable, ..DirtyContent::default() };
        };
        let memory = self.content.log.content(place);
        let memory = memory.filter(|data| LogContent::is_whole(block, data, checksum));
        let memory = memory.map(Buffer::copy_of);
        let set = self.content.log.set();
        let page = |place: Place| {
            let (segment, page) = set.locate(place);
            set.page(segment, page)
        };
        let moved_from = self.content.copies.moved_from(place);
        let places = [place, place].into_iter().chain(moved_from).map(page).collect();
        DirtyContent { checksum, durable, memory, places }
    }

    /// The blocks that a change overwrites whole.
    fn overwritten_whole(&self, request: &BlockRequest) -> Range<u64> {
        let bytes = request.offset..request.offset + request.length;
        let bytes = covered(bytes, self.volumes.bytes(request.tenant), 1 << self.block_shift);
        whole_block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift)
    }

    /// Whether a change overwrites only a part of lost content.
    fn is_partly_lost(&self, request: &BlockRequest) -> bool {
        let touched = block_numbers(request.offset, request.length, self.block_shift);
        let whole = self.overwritten_whole(request);
        let edges = match whole.is_empty() {
            true => [touched, 0..0],
            false => [touched.start..whole.start, whole.end..touched.end],
        };
        let lost = &self.bypass.volumes[request.tenant.index()].lost;
        request.op != BlockOp::Trim && edges.iter().any(|edge| lost.meets(edge))
    }

    /// A change is done: what it has overwritten whole is lost no more.
    fn end_loss(&mut self, request: &BlockRequest, spared: &[Range<u64>]) {
        let (whole, shift) = (self.overwritten_whole(request), self.block_shift);
        let volume = &mut self.bypass.volumes[request.tenant.index()];
        for blocks in without(whole, spared, shift) {
            volume.lost.remove(&blocks);
            volume.unflushed.remove(&blocks);
        }
    }
}

impl Engine {
    /// Goes from serving through the cache to serving past it.
    pub(super) async fn bypass(self, cause: IoError) {
        while !self.with(|state| state.has_drained()) {
            self.with(|state| state.advanced.clone()).wait().await;
        }
        self.with(|state| state.begin_rescue());
        let stands = self.mark(cause).await;
        self.with(|state| {
            state.bypass.phase = BypassPhase::Serving;
            for volume in state.bypass.volumes.iter_mut().filter(|_| !stands) {
                // A recovery of the log finds the same.
                for content in volume.unrescued.values_mut().filter(|content| !content.durable) {
                    (content.memory, content.places) = (None, Vec::new());
                }
            }
            for request in std::mem::take(&mut state.bypass.early) {
                state.pass(request);
            }
            for tenant in state.volumes.tenants() {
                if state.bypass.volumes[tenant.index()].passage == Passage::Waits {
                    state.bypass.rescuing += 1;
                    let procedure = self.clone().rescue(tenant);
                    state.tasks.spawn(procedure);
                }
            }
        });
        loop {
            let (due, is_over, progress) = self.with(|state| {
                let due = std::mem::take(&mut state.bypass.to_mark);
                for tenant in &due {
                    let id = state.bypass.volumes[tenant.index()].id;
                    state.bypass.passed.insert(id);
                }
                (due, state.bypass.rescuing == 0, state.bypass.progress.clone())
            });
            if due.is_empty() {
                if is_over {
                    return;
                }
                progress.wait().await;
                continue;
            }
            // A mark names all volumes that pass: none that passed is left out later.
            let passes = stands && self.mark(cause).await;
            let passage = if passes { Passage::Passes } else { Passage::ReadsOnly };
            self.with(|state| due.iter().for_each(|tenant| state.bypass.settle(*tenant, passage)));
        }
    }

    /// Writes a mark that names all volumes that pass or are to pass; returns whether it stands on
    /// a device. The copies on one device are written one after the other, so that one is valid at
    /// any time.
    async fn mark(&self, cause: IoError) -> bool {
        let devices = self.with(|state| {
            let passed = state.bypass.passed.clone();
            let error = u16::try_from(cause.0).unwrap_or_default();
            let marker = state.bypass.marker.as_mut();
            marker.map_or(0, |marker| marker.begin(Bypassed { error, passed }))
        });
        let begin = |device| {
            let engine = self.clone();
            self.with(|state| state.tasks.begin(async move { engine.mark_device(device).await }))
        };
        let begun: Vec<Begun<bool>> = (0..devices).map(begin).collect();
        let mut stands = false;
        for marked in begun {
            stands |= marked.await;
        }
        self.with(|state| state.bypass.marker.iter_mut().for_each(Marker::end));
        stands
    }

    async fn mark_device(&self, device: usize) -> bool {
        for _copy in 0..2 {
            let write = self.with(|state| {
                let op = state.bypass.marker.as_ref().and_then(|marker| marker.copy(device))?;
                Some((state.submit(op.0), op.1))
            });
            let Some((written, file)) = write else { return false };
            if written.await.is_err() {
                return false;
            }
            let synced = self.with(|state| state.submit(IoOp::Sync { file }));
            if synced.await.is_err() {
                return false;
            }
            let marker = |state: &mut State| {
                state.bypass.marker.iter_mut().for_each(|marker| marker.note_copied(device));
            };
            self.with(marker);
        }
        true
    }

    /// Brings all that only the log has of a volume to its backing device, durably.
    async fn rescue(self, tenant: TenantId) {
        let left = self.with(|state| state.bypass.volumes[tenant.index()].unrescued.len());
        let begin = |_| {
            let procedure = self.clone().rescue_blocks(tenant);
            self.with(|state| state.tasks.begin(procedure))
        };
        let side_by_side: Vec<Begun<()>> = (0..left.min(UNDER_WAY)).map(begin).collect();
        for ended in side_by_side {
            ended.await;
        }
        let waits =
            |state: &mut State| state.bypass.volumes[tenant.index()].passage == Passage::Waits;
        if self.with(waits) {
            let is_synced = self.sync_device(tenant).await.is_ok();
            self.with(|state| match is_synced {
                true => state.bypass.to_mark.push(tenant),
                false => state.fail_volume(tenant),
            });
        }
        self.with(|state| {
            state.bypass.rescuing -= 1;
            state.bypass.progress.give();
        });
    }

    /// Rescues blocks of a volume one after the other, until none is left or its device fails.
    async fn rescue_blocks(self, tenant: TenantId) {
        loop {
            let next = self.with(|state| {
                let volume = &mut state.bypass.volumes[tenant.index()];
                let waits = volume.passage == Passage::Waits;
                let (number, content) = waits.then(|| volume.unrescued.pop_first()).flatten()?;
                volume.under_way.insert(number);
                Some((number, content))
            });
            let Some((number, content)) = next else { return };
            let data = self.dirty_data(tenant, number, &content).await;
            let is_written = match data {
                Some(data) => self.write_rescued(tenant, number, data).await,
                None => true,
            };
            self.with(|state| {
                let volume = &mut state.bypass.volumes[tenant.index()];
                volume.under_way.remove(&number);
                if !is_written {
                    volume.unrescued.insert(number, content); // It stays in the log.
                }
                state.bypass.progress.give();
            });
        }
    }

    /// The content of a block, from memory or from where it may be read; else it is lost.
    async fn dirty_data(
        &self,
        tenant: TenantId,
        number: u64,
        content: &DirtyContent,
    ) -> Option<Buffer> {
        let volume = self.with(|state| state.volumes.id(tenant));
        if content.memory.is_some() {
            return content.memory.clone();
        }
        for DevicePage { file, offset } in content.places.iter().copied() {
            let read = self.with(|state| {
                let buffer = Buffer::zeroed(1 << state.block_shift);
                state.submit(IoOp::Read { file, offset, buffer })
            });
            if let Ok(Output::Buffer(data, _)) = read.await
                && data_checksum(volume, number, &data) == content.checksum
            {
                return Some(data);
            }
        }
        self.with(|state| {
            let volume = &mut state.bypass.volumes[tenant.index()];
            volume.lost.insert(number);
            volume.lost_blocks += 1;
            if !content.durable {
                volume.unflushed.insert(number);
                state.losses.note(tenant);
            }
        });
        None
    }

    /// Writes a block to its backing device; false if the volume has failed, or fails by that.
    async fn write_rescued(&self, tenant: TenantId, number: u64, data: Buffer) -> bool {
        let offset = self.with(|state| {
            let has_failed = state.volumes.backing(tenant).has_failed();
            (!has_failed).then_some(number << state.block_shift)
        });
        let Some(offset) = offset else { return false };
        let is_written = self.write_device(tenant, offset, data).await.is_ok();
        self.with(|state| match is_written {
            true => state.bypass.volumes[tenant.index()].rescued += 1,
            false => state.fail_volume(tenant),
        });
        is_written
    }

    /// Carries a request out past the cache, from its turn to its answer.
    pub(super) async fn pass(self, passed: PassedRequest) {
        let PassedRequest { request, pieces, spared, turn, done } = passed;
        let mut open = OpenRequest::new(request, 0);
        let result = match open.request.op {
            BlockOp::Read => self.pass_read(&mut open, pieces).await,
            BlockOp::Flush => self.pass_flush(&open.request).await,
            _ => {
                let changed = self.pass_change(&mut open, pieces, &spared, turn).await;
                done.set(true);
                match changed {
                    Ok(()) if open.request.durable => self.sync_passed(open.request.tenant).await,
                    other => other,
                }
            }
        };
        self.with(|state| {
            state.bypass.passing -= 1;
            state.answers.push(open.answer(result));
        });
    }

    /// Reads, as soon as all that only the log had of the range is rescued.
    async fn pass_read(&self, open: &mut OpenRequest, pieces: Vec<Piece>) -> Result<(), IoError> {
        let tenant = open.request.tenant;
        loop {
            let waits = self.with(|state| {
                let blocks = state.blocks_of(&open.range());
                let volume = &state.bypass.volumes[tenant.index()];
                match volume.passage {
                    Passage::Fails => Err(IoError::IO),
                    Passage::Waits if volume.holds(&blocks) => {
                        Ok(Some(state.bypass.progress.clone()))
                    }
                    _ if volume.lost.meets(&blocks) => Err(IoError::IO),
                    _ => Ok(None),
                }
            })?;
            match waits {
                Some(progress) => progress.wait().await,
                None => break,
            }
        }
        self.carry_pieces(open, pieces, &[]).await
    }

    /// Makes durable what was done. The flush of a range is the rest of a change that was to be
    /// durable.
    async fn pass_flush(&self, request: &BlockRequest) -> Result<(), IoError> {
        self.until_changes_pass(request.tenant).await?;
        let is_lost = self.with(|state| {
            let blocks = block_numbers(request.offset, request.length, state.block_shift);
            state.bypass.volumes[request.tenant.index()].lost.meets(&blocks)
        });
        match is_lost {
            true => Err(IoError::IO),
            false => self.sync_passed(request.tenant).await,
        }
    }

    /// Carries out a change, in its turn.
    async fn pass_change(
        &self,
        open: &mut OpenRequest,
        pieces: Vec<Piece>,
        spared: &[Range<u64>],
        turn: Turn,
    ) -> Result<(), IoError> {
        let tenant = open.request.tenant;
        self.until_changes_pass(tenant).await?;
        if pieces.is_empty() {
            return Ok(());
        }
        turn.come().await;
        self.with(|state| {
            let has_failed = state.volumes.backing(tenant).has_failed();
            match has_failed || state.is_partly_lost(&open.request) {
                true => Err(IoError::IO),
                false => Ok(()),
            }
        })?;
        self.carry_pieces(open, pieces, spared).await?;
        self.with(|state| {
            if state.volumes.backing(tenant).has_failed() {
                return Err(IoError::IO);
            }
            state.end_loss(&open.request, spared);
            Ok(())
        })
    }

    /// Waits until it is known what becomes of a volume's changes. Errors: they fail.
    async fn until_changes_pass(&self, tenant: TenantId) -> Result<(), IoError> {
        loop {
            let (passage, progress) = self.with(|state| {
                let passage = state.bypass.volumes[tenant.index()].passage;
                (passage, state.bypass.progress.clone())
            });
            match passage {
                Passage::Passes => return Ok(()),
                Passage::ReadsOnly | Passage::Fails => return Err(IoError::IO),
                Passage::Waits => progress.wait().await,
            }
        }
    }

    /// Carries out what a request does on its backing device, one operation behind the other.
    /// Errors: the device's; unless a page cannot be read, the volume fails.
    async fn carry_pieces(
        &self,
        open: &mut OpenRequest,
        pieces: Vec<Piece>,
        spared: &[Range<u64>],
    ) -> Result<(), IoError> {
        let tenant = open.request.tenant;
        for piece in pieces {
            let (reads, result) = match piece {
                Piece::Read(bytes) => {
                    let read = self.read_device(tenant, bytes.clone()).await;
                    (true, read.map(|data| drop(open.take_buffer(bytes.start, data))))
                }
                Piece::Merge(bytes) => match self.read_device(tenant, bytes.clone()).await {
                    Ok(data) => {
                        let data = merged(open, &bytes, data, spared);
                        (false, self.write_device(tenant, bytes.start, data).await)
                    }
                    Err(error) => (true, Err(error)),
                },
                Piece::Write(bytes) => {
                    let mut data = Buffer::zeroed((bytes.end - bytes.start) as usize);
                    open.lay_over(bytes.start, &mut data);
                    (false, self.write_device(tenant, bytes.start, data).await)
                }
                Piece::Zero(bytes) => (false, self.zero_device(tenant, bytes, true).await),
                Piece::Provision(bytes) => (false, self.zero_device(tenant, bytes, false).await),
                Piece::Discard(bytes) => (false, self.discard_device(tenant, bytes).await),
            };
            if let Err(error) = result {
                // A page that cannot be read is one page: the rest of the volume is served on.
                if !(reads && error.is_of_pages()) {
                    self.with(|state| state.fail_volume(tenant));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits until all that was done on a volume's backing device is durable. One sync is under way
    /// at a time; what comes meanwhile waits for the next. Errors: it fails, and the volume.
    async fn sync_passed(&self, tenant: TenantId) -> Result<(), IoError> {
        let synced = self.with(|state| {
            let event = state.tasks.event();
            let volume = &mut state.bypass.volumes[tenant.index()];
            let synced = volume.next_sync.get_or_insert(event).clone();
            if !std::mem::replace(&mut volume.is_syncing, true) {
                state.tasks.spawn(self.clone().sync_on(tenant));
            }
            synced
        });
        match synced.wait().await {
            true => Ok(()),
            false => Err(IoError::IO),
        }
    }

    /// Syncs a backing device for as long as something waits for that.
    async fn sync_on(self, tenant: TenantId) {
        loop {
            let next = self.with(|state| {
                let volume = &mut state.bypass.volumes[tenant.index()];
                let event = volume.next_sync.take();
                volume.is_syncing = event.is_some();
                event
            });
            let Some(event) = next else { return };
            let is_synced = self.sync_device(tenant).await.is_ok();
            if !is_synced {
                self.with(|state| state.fail_volume(tenant));
            }
            event.set(is_synced);
        }
    }
}

/// Pages with the request's bytes over them, but for those that are spared.
fn merged(
    open: &OpenRequest,
    bytes: &Range<u64>,
    mut data: Buffer,
    spared: &[Range<u64>],
) -> Buffer {
    let kept = (!spared.is_empty()).then(|| Buffer::copy_of(&data));
    open.lay_over(bytes.start, &mut data);
    if let Some(kept) = kept {
        for spared in spared {
            let from = spared.start.max(bytes.start);
            let to = spared.end.min(bytes.start + data.len() as u64);
            if from < to {
                let place = (from - bytes.start) as usize..(to - bytes.start) as usize;
                data[place.clone()].copy_from_slice(&kept[place]);
            }
        }
    }
    data
}

/// Runs of blocks without those of which bytes are spared.
fn without(blocks: Range<u64>, spared: &[Range<u64>], shift: u32) -> Vec<Range<u64>> {
    let mut left = vec![blocks];
    for bytes in spared {
        let spared = bytes.start >> shift..bytes.end.div_ceil(1 << shift);
        left = left.into_iter().flat_map(|run| around(&run, &spared)).collect();
    }
    left
}
