//! Serving past a cache that has failed.
//!
//! For: volumes that go on when a device of the log fails. Must never know: the cache, policies,
//! steps. Units: bytes, blocks. The order, by which nothing older is ever read:
//!
//! 1. what was begun ends; requests that needed the log wait to be begun again, and new ones behind
//!    them;
//! 2. a mark on the log's devices says that clean content of the log does not count any more;
//! 3. dirty content is read from wherever it stands, checked, written to its backing device, and
//!    made durable there; what cannot be read is lost: reads of it fail until it is overwritten;
//! 4. a second mark says of a volume that nothing in the log counts for it; then its writes pass.
//!
//! Where no device takes a mark, nothing may be written that the log does not have durably: volumes
//! can be read only.

mod lost;
mod pass_through;
mod pieces;
mod rescue;
mod tokens;
mod volume;

pub use rescue::DirtyContent;
pub use tokens::BYPASS_TOKENS;
pub use volume::Passage;

use super::request::{BlockAnswer, BlockOp, BlockRequest};
use super::volumes::ServedVolume;
use crate::io::{IoError, Output, Submit};
use crate::log::format::{Bypassed, VolumeId};
use crate::log::{Marker, OpenSet};
use cachewright_types::{TenantId, block_numbers};
use lost::LostBlocks;
use pass_through::PassThrough;
use rescue::{Rescue, RescueEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use tokens::BypassToken;
use volume::BypassedVolume;

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
    Serving {
        /// Whether the mark stands.
        marked: bool,
    },
}

/// What a bypass has brought about since it was last looked at.
#[derive(Debug, Default)]
pub struct BypassNews {
    /// Requests that ended.
    pub answers: Vec<BlockAnswer>,
    /// Volumes whose backing devices have failed.
    pub failed: Vec<TenantId>,
    /// Volumes of which content is lost that no flush had made durable, once for each block.
    pub lost: Vec<TenantId>,
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

/// Serves volumes past the cache, once that has failed.
pub struct Bypass {
    phase: BypassPhase,
    cause: Option<IoError>,
    marker: Option<Marker>,
    volumes: Vec<BypassedVolume>,
    /// Volumes for which nothing in the log counts, as soon as the mark stands.
    passed: BTreeSet<VolumeId>,
    rescue: Rescue,
    passing: PassThrough,
    /// Requests that came before anything passes.
    early: VecDeque<BlockRequest>,
    /// Requests that were decided before, by the order in which they were: they go first.
    again: BTreeMap<u64, BlockRequest>,
    failed: Vec<TenantId>,
    lost: Vec<TenantId>,
    block_shift: u32,
    namespace: u64,
}

impl Bypass {
    /// For volumes of tenants 0, 1 and so on. It can begin when it has the set.
    pub fn new(volumes: &[ServedVolume], block_shift: u32, namespace: u64) -> Bypass {
        let passing = PassThrough::new(volumes, block_shift, namespace);
        let rescue = Rescue::new(volumes, 1 << block_shift, namespace);
        let volumes = volumes.iter().map(|volume| BypassedVolume::new(volume.id)).collect();
        Bypass {
            phase: BypassPhase::Off,
            cause: None,
            marker: None,
            volumes,
            passed: BTreeSet::new(),
            rescue,
            passing,
            early: VecDeque::new(),
            again: BTreeMap::new(),
            failed: Vec::new(),
            lost: Vec::new(),
            block_shift,
            namespace,
        }
    }

    /// From now on the cache can be bypassed; its devices are these.
    pub fn arm(&mut self, open: OpenSet) {
        self.marker = Some(Marker::new(open));
    }

    /// One more tenant's volume. The cache must not be bypassed yet.
    pub fn add_volume(&mut self, volume: ServedVolume) {
        debug_assert!(!self.is_begun(), "volumes come while the cache works");
        self.volumes.push(BypassedVolume::new(volume.id));
        self.rescue.add_volume(volume);
        self.passing.add_volume(volume);
    }

    /// A tenant's volume has this size from now on.
    pub fn resize_volume(&mut self, tenant: TenantId, bytes: u64) {
        self.rescue.resize_volume(tenant, bytes);
        self.passing.resize_volume(tenant, bytes);
    }

    /// What marks the cache's devices, once it is armed.
    pub fn marker(&mut self) -> Option<&mut Marker> {
        self.marker.as_mut()
    }

    /// Whether the cache can be bypassed.
    pub fn is_armed(&self) -> bool {
        self.marker.is_some()
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
            BypassPhase::Serving { .. } => {
                let settled = self.volumes.iter().all(BypassedVolume::is_settled);
                settled && self.rescue.is_idle() && self.passing.is_idle()
            }
        }
    }

    /// How a volume stands, while the cache is bypassed.
    pub fn volume(&self, tenant: TenantId) -> Option<VolumePassage> {
        let volume = self.volumes.get(tenant.index()).filter(|_| self.is_begun())?;
        let passage = volume.passage();
        let (rescued, lost) = (self.rescue.written(tenant), self.passing.lost(tenant)?.len());
        Some(VolumePassage { passage, rescued, lost })
    }

    /// Dirty blocks of a tenant that were lost with the log, overwritten since or not.
    pub fn lost_blocks(&self, tenant: TenantId) -> u64 {
        self.volumes.get(tenant.index()).map_or(0, BypassedVolume::lost)
    }

    /// Runs of a tenant's blocks whose content is lost.
    pub fn lost_runs(&self, tenant: TenantId) -> Vec<Range<u64>> {
        self.passing.lost(tenant).into_iter().flat_map(LostBlocks::runs).collect()
    }

    /// Whether content of a tenant is lost that no flush had made durable, and that was not
    /// overwritten.
    pub fn has_unflushed_losses(&self, tenant: TenantId) -> bool {
        self.passing.has_unflushed(tenant)
    }

    /// Blocks that only the log has, of all volumes.
    pub fn left_in_log(&self) -> u64 {
        let tenants = (0..self.volumes.len()).map(|index| TenantId(index as u16));
        tenants.map(|tenant| self.rescue.left_in_log(tenant)).sum()
    }

    /// The log takes nothing any more.
    pub fn begin(&mut self, cause: IoError) {
        if self.phase == BypassPhase::Off && self.is_armed() {
            (self.phase, self.cause) = (BypassPhase::Draining, Some(cause));
        }
    }

    /// A request comes that was not decided. It was checked.
    pub fn take(&mut self, io: &mut impl Submit, request: BlockRequest) {
        match self.phase {
            BypassPhase::Serving { .. } => self.serve(io, request),
            BypassPhase::Off | BypassPhase::Draining | BypassPhase::Announcing => {
                self.early.push_back(request)
            }
        }
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

    /// Requests that are begun again leave out what later ones have written, which `overtaken`
    /// says of each by its place in the order.
    pub fn leave_out(&mut self, overtaken: impl Fn(u64, &BlockRequest) -> Vec<Range<u64>>) {
        for (order, request) in &self.again {
            self.passing.spare(request.tag, overtaken(*order, request));
        }
    }

    /// What was begun has ended: this content only the log has, and these volumes' backing devices
    /// have failed.
    pub fn drained(
        &mut self,
        io: &mut impl Submit,
        dirty: Vec<(TenantId, u64, DirtyContent)>,
        failed: &[TenantId],
    ) {
        for (tenant, number, content) in dirty {
            self.rescue.add(tenant, number, content);
        }
        for tenant in failed {
            self.rescue.leave(*tenant);
            let waiting = self.volumes[tenant.index()].settle(Passage::Fails);
            debug_assert!(waiting.is_empty(), "nothing waits before anything passes");
        }
        let again = std::mem::take(&mut self.again).into_values();
        self.early = again.chain(std::mem::take(&mut self.early)).collect();
        self.phase = BypassPhase::Announcing;
        self.mark(io);
    }

    /// Writes a mark that names all volumes that pass or are to pass. None that passed is left out
    /// later, whatever becomes of it.
    fn mark(&mut self, io: &mut impl Submit) {
        let passed = self.passed.clone();
        let error = self.cause.and_then(|error| u16::try_from(error.0).ok()).unwrap_or_default();
        let namespace = self.namespace;
        let token = |device| BypassToken::Mark(device).token(namespace);
        let Some(marker) = &mut self.marker else { return };
        marker.begin(io, Bypassed { error, passed }, token);
        if !marker.is_busy() {
            self.marked(io, false);
        }
    }

    /// A mark stands, or no device has taken it.
    fn marked(&mut self, io: &mut impl Submit, stands: bool) {
        if self.phase == BypassPhase::Announcing {
            self.phase = BypassPhase::Serving { marked: stands };
            if !stands {
                self.rescue.keep_durable_only();
            }
            for request in std::mem::take(&mut self.early) {
                self.serve(io, request);
            }
            return;
        }
        let passage = if stands { Passage::Passes } else { Passage::ReadsOnly };
        for index in 0..self.volumes.len() {
            if self.volumes[index].is_marking() {
                self.settle(io, index, passage);
            }
        }
    }

    /// It is known what becomes of a volume's requests.
    fn settle(&mut self, io: &mut impl Submit, index: usize, passage: Passage) {
        for request in self.volumes[index].settle(passage) {
            self.serve(io, request);
        }
    }

    /// Begins a request, refuses it, or lets it wait.
    fn serve(&mut self, io: &mut impl Submit, request: BlockRequest) {
        let (tenant, op) = (request.tenant, request.op);
        let passage = self.volumes[tenant.index()].passage();
        let blocks = block_numbers(request.offset, request.length, self.block_shift);
        match (passage, op) {
            (Passage::Passes, _) | (Passage::ReadsOnly, BlockOp::Read) => {
                self.passing.begin(io, request)
            }
            (Passage::ReadsOnly | Passage::Fails, _) => {
                self.passing.answer(request, Err(IoError::IO))
            }
            (Passage::Waits, BlockOp::Read) if !self.rescue.holds(tenant, &blocks) => {
                self.passing.begin(io, request);
            }
            (Passage::Waits, _) => self.volumes[tenant.index()].wait(request),
        }
    }

    /// Begins what is due.
    pub fn advance(&mut self, io: &mut impl Submit) {
        let BypassPhase::Serving { marked } = self.phase else { return };
        self.rescue.advance(io);
        self.take_rescued(io);
        if !marked {
            for index in 0..self.volumes.len() {
                if self.volumes[index].is_rescued() {
                    self.settle(io, index, Passage::ReadsOnly);
                }
            }
            return;
        }
        let is_busy = self.marker.as_ref().is_some_and(Marker::is_busy);
        if !is_busy && self.volumes.iter().any(BypassedVolume::is_rescued) {
            let due = self.volumes.iter_mut().filter(|volume| volume.is_rescued());
            self.passed.extend(due.map(BypassedVolume::begin_mark));
            self.mark(io);
        }
    }

    /// An operation is done, whose token is this without its namespace.
    pub fn on_done(
        &mut self,
        io: &mut impl Submit,
        own: u64,
        output: Output,
        error: Option<IoError>,
    ) {
        let tenant = |index: usize| TenantId(index as u16);
        match BypassToken::decode(own) {
            BypassToken::Mark(device) => {
                let token = BypassToken::Mark(device).token(self.namespace);
                let marker = self.marker.as_mut();
                let stands = marker.and_then(|known| known.on_done(io, device, token, error));
                if let Some(stands) = stands {
                    self.marked(io, stands);
                }
            }
            BypassToken::Rescue(block) => self.rescue.on_done(io, block, output, error),
            BypassToken::RescueSync(index) => self.rescue.synced(tenant(index), error),
            BypassToken::Request(number) => {
                let failed = self.passing.on_done(io, number, output, error);
                failed.into_iter().for_each(|tenant| self.fail(io, tenant));
            }
            BypassToken::Sync(index) => {
                let failed = self.passing.synced(io, tenant(index), error);
                failed.into_iter().for_each(|tenant| self.fail(io, tenant));
            }
        }
        self.take_rescued(io);
    }

    fn take_rescued(&mut self, io: &mut impl Submit) {
        for event in self.rescue.take_events() {
            match event {
                RescueEvent::Lost { tenant, number, durable } => {
                    self.passing.lose(tenant, number, !durable);
                    self.volumes[tenant.index()].note_lost();
                    self.lost.extend((!durable).then_some(tenant));
                }
                RescueEvent::BlockEnded { tenant, number } => {
                    self.release_reads(io, tenant, number);
                }
                RescueEvent::Ended(tenant) => {
                    self.volumes[tenant.index()].end_rescue();
                }
                RescueEvent::Failed(tenant) => self.fail(io, tenant),
            }
        }
    }

    /// A block is rescued, or lost: reads that waited for it alone begin.
    fn release_reads(&mut self, io: &mut impl Submit, tenant: TenantId, number: u64) {
        let (rescue, shift) = (&self.rescue, self.block_shift);
        let is_free = |request: &BlockRequest| {
            let blocks = block_numbers(request.offset, request.length, shift);
            let waited = request.op == BlockOp::Read && blocks.contains(&number);
            waited && !rescue.holds(tenant, &blocks)
        };
        let free = self.volumes[tenant.index()].release(is_free);
        free.into_iter().for_each(|request| self.passing.begin(io, request));
    }

    /// A volume's backing device has failed.
    fn fail(&mut self, io: &mut impl Submit, tenant: TenantId) {
        if self.volumes[tenant.index()].passage() == Passage::Fails {
            return;
        }
        self.failed.push(tenant);
        self.rescue.fail(tenant);
        self.passing.fail(tenant);
        self.settle(io, tenant.index(), Passage::Fails);
    }

    /// What has come about since the last call.
    pub fn take_news(&mut self) -> BypassNews {
        let (answers, failed) = (self.passing.take_answers(), std::mem::take(&mut self.failed));
        BypassNews { answers, failed, lost: std::mem::take(&mut self.lost) }
    }
}
