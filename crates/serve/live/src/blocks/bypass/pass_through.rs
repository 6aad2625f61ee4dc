//! Requests that go to backing devices, past the cache.
//!
//! For: volumes whose cache has failed. Must never know: the cache, the log. Units: bytes, blocks,
//! pages. Changes of the same pages are carried out in the order in which they came; a read brings
//! what was answered before it. Content that is lost is an error until it is overwritten whole.

use super::super::request::{BlockAnswer, BlockOp, BlockRequest, OpenRequest};
use super::super::volumes::{ServedVolume, covered};
use super::lost::LostBlocks;
use super::pieces::{Pieces, around, pages_of};
use super::tokens::BypassToken;
use crate::io::{Buffer, IoError, IoOp, Output, Submit};
use cachewright_types::{TenantId, block_numbers, whole_block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use slab::Slab;
use std::ops::Range;
use std::sync::Arc;

/// A request under way.
struct Passed {
    open: OpenRequest,
    pieces: Pieces,
    /// Bytes that it leaves as they are.
    spared: Vec<Range<u64>>,
    /// Earlier changes of the same pages that are not done. At 0 it has begun.
    behind: usize,
}

impl Passed {
    /// The whole pages around its range.
    fn pages(&self) -> Range<u64> {
        pages_of(&self.open.range())
    }
}

/// What is under way for one volume.
struct PassedVolume {
    volume: ServedVolume,
    /// It serves nothing any more.
    failed: bool,
    lost: LostBlocks,
    /// Those of them whose content no flush had made durable.
    unflushed: LostBlocks,
    /// Changes, in the order in which they came.
    changes: Vec<usize>,
    /// What waits for the sync under way, and for the next.
    syncing: Option<Vec<usize>>,
    unsynced: Vec<usize>,
}

/// Requests under way, of all volumes.
pub struct PassThrough {
    volumes: Vec<PassedVolume>,
    requests: Slab<Passed>,
    block_shift: u32,
    namespace: u64,
    /// What requests that are yet to come leave as it is, by their tags.
    spared: HashMap<u64, Vec<Range<u64>>, FixedState>,
    answers: Vec<BlockAnswer>,
    /// Memory for devices that cannot zero.
    zeroes: Option<Arc<Buffer>>,
}

impl PassedVolume {
    fn new(volume: ServedVolume) -> PassedVolume {
        PassedVolume {
            volume,
            failed: false,
            lost: LostBlocks::default(),
            unflushed: LostBlocks::default(),
            changes: Vec::new(),
            syncing: None,
            unsynced: Vec::new(),
        }
    }
}

impl PassThrough {
    /// No requests, for the volumes of tenants 0, 1 and so on.
    pub fn new(volumes: &[ServedVolume], block_shift: u32, namespace: u64) -> PassThrough {
        let volumes = volumes.iter().copied().map(PassedVolume::new).collect();
        let (requests, answers) = (Slab::default(), Vec::new());
        let spared = HashMap::default();
        PassThrough { volumes, requests, block_shift, namespace, spared, answers, zeroes: None }
    }

    /// One more tenant, with this volume.
    pub fn add_volume(&mut self, volume: ServedVolume) {
        self.volumes.push(PassedVolume::new(volume));
    }

    /// A tenant's volume has this size from now on.
    pub fn resize_volume(&mut self, tenant: TenantId, bytes: u64) {
        self.volumes[tenant.index()].volume.bytes = bytes;
    }

    /// The content of a tenant's block is lost; `unflushed` if no flush had made it durable.
    pub fn lose(&mut self, tenant: TenantId, number: u64, unflushed: bool) {
        let volume = &mut self.volumes[tenant.index()];
        volume.lost.insert(number);
        if unflushed {
            volume.unflushed.insert(number);
        }
    }

    /// Whether content of a tenant is lost that no flush had made durable, and that was not
    /// overwritten.
    pub fn has_unflushed(&self, tenant: TenantId) -> bool {
        self.volumes.get(tenant.index()).is_some_and(|volume| !volume.unflushed.is_empty())
    }

    /// Blocks of a tenant whose content is lost.
    pub fn lost(&self, tenant: TenantId) -> Option<&LostBlocks> {
        self.volumes.get(tenant.index()).map(|volume| &volume.lost)
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// The answers since the last call.
    pub fn take_answers(&mut self) -> Vec<BlockAnswer> {
        std::mem::take(&mut self.answers)
    }

    /// The request with this tag, which comes later, leaves these bytes as they are.
    pub fn spare(&mut self, tag: u64, bytes: Vec<Range<u64>>) {
        if !bytes.is_empty() {
            self.spared.insert(tag, bytes);
        }
    }

    /// Answers a request at once.
    pub fn answer(&mut self, request: BlockRequest, result: Result<(), IoError>) {
        self.spared.remove(&request.tag);
        self.end(OpenRequest::new(request, 0), result);
    }

    /// Begins a request, which was checked.
    pub fn begin(&mut self, io: &mut impl Submit, mut request: BlockRequest) {
        let (op, tenant) = (request.op, request.tenant.index());
        let blocks = block_numbers(request.offset, request.length, self.block_shift);
        let volume = &mut self.volumes[tenant];
        let refused = match op {
            // The flush of a range is the rest of a change that was to be durable.
            BlockOp::Read | BlockOp::Flush => volume.lost.meets(&blocks),
            BlockOp::Write | BlockOp::Trim | BlockOp::Zero | BlockOp::Provision => volume.failed,
        };
        if refused {
            return self.answer(request, Err(IoError::IO));
        }
        let spared = self.spared.remove(&request.tag).unwrap_or_default();
        let pieces = Pieces::new(&mut request, self.block_shift, volume.volume.bytes, &spared);
        let changes_nothing = pieces.is_empty();
        // A trim without a whole block changes nothing, and waits for no other change.
        if changes_nothing && op == BlockOp::Trim && !request.durable {
            return self.answer(request, Ok(()));
        }
        let open = OpenRequest::new(request, 0);
        let number = self.requests.insert(Passed { open, pieces, spared, behind: 0 });
        match op {
            BlockOp::Read => self.go_on(io, number),
            _ if changes_nothing => self.sync(io, tenant, number),
            _ => self.begin_change(io, tenant, number),
        }
    }

    /// Begins a change, or lets it wait for earlier ones of the same pages.
    fn begin_change(&mut self, io: &mut impl Submit, tenant: usize, number: usize) {
        let Some(pages) = self.requests.get(number).map(Passed::pages) else { return };
        let earlier = self.volumes[tenant].changes.iter();
        let earlier = earlier.filter_map(|other| self.requests.get(*other));
        let behind = earlier.filter(|other| meet(&other.pages(), &pages)).count();
        if behind == 0 && self.is_partly_lost(number) {
            return self.end_request(number, Err(IoError::IO));
        }
        self.volumes[tenant].changes.push(number);
        match self.requests.get_mut(number) {
            Some(waiting) if behind > 0 => waiting.behind = behind,
            _ => self.go_on(io, number),
        }
    }

    /// Whether a change overwrites only a part of lost content.
    fn is_partly_lost(&self, number: usize) -> bool {
        let Some(Passed { open, .. }) = self.requests.get(number) else { return false };
        let BlockRequest { op, offset, length, tenant, .. } = open.request;
        let touched = block_numbers(offset, length, self.block_shift);
        let whole = self.whole_blocks(&open.request);
        let edges = match whole.is_empty() {
            true => [touched, 0..0],
            false => [touched.start..whole.start, whole.end..touched.end],
        };
        let lost = &self.volumes[tenant.index()].lost;
        op != BlockOp::Trim && edges.iter().any(|edge| lost.meets(edge))
    }

    /// The blocks that a change overwrites whole.
    fn whole_blocks(&self, request: &BlockRequest) -> Range<u64> {
        let volume = self.volumes[request.tenant.index()].volume;
        let bytes = request.offset..request.offset + request.length;
        let bytes = covered(bytes, volume.bytes, 1 << self.block_shift);
        whole_block_numbers(bytes.start, bytes.end - bytes.start, self.block_shift)
    }

    /// Begins the next operation of a request, or ends it.
    fn go_on(&mut self, io: &mut impl Submit, number: usize) {
        let Some(passed) = self.requests.get_mut(number) else { return };
        let file = self.volumes[passed.open.request.tenant.index()].volume.backing;
        match passed.pieces.next_op(file, &mut self.zeroes) {
            Some(op) => io.submit(BypassToken::Request(number).token(self.namespace), op),
            None => self.pieces_done(io, number),
        }
    }

    /// An operation of a request is done; returns the tenant if its device has failed.
    pub fn on_done(
        &mut self,
        io: &mut impl Submit,
        number: usize,
        output: Output,
        error: Option<IoError>,
    ) -> Option<TenantId> {
        let passed = self.requests.get_mut(number).filter(|passed| !passed.pieces.is_empty())?;
        let tenant = passed.open.request.tenant;
        let data = match output {
            Output::Buffer(buffer, _) => buffer,
            _ => Buffer::default(),
        };
        let is_reading = passed.pieces.is_reading();
        match passed.pieces.end_op(&mut passed.open, data, error) {
            Ok(()) => self.go_on(io, number),
            // A page that cannot be read is one page: the rest of the volume is served on.
            Err(error) if is_reading && error.is_of_pages() => {
                self.end_changes(io, number, Some(error))
            }
            Err(error) => {
                self.end_request(number, Err(error));
                self.fail(tenant);
                return Some(tenant);
            }
        }
        None
    }

    /// All of a request is done: it is answered, or made durable before.
    fn pieces_done(&mut self, io: &mut impl Submit, number: usize) {
        let Some(passed) = self.requests.get(number) else { return };
        match passed.open.request.op {
            BlockOp::Read | BlockOp::Flush => self.end_request(number, Ok(())),
            _ => self.end_changes(io, number, None),
        }
    }

    /// A request is done, or has failed: later changes of its pages may begin. Those that are
    /// refused end at once, and so may free others.
    fn end_changes(&mut self, io: &mut impl Submit, number: usize, error: Option<IoError>) {
        let mut ended = vec![(number, error)];
        while let Some((number, error)) = ended.pop() {
            for freed in self.end_change(io, number, error) {
                match self.is_partly_lost(freed) {
                    true => ended.push((freed, Some(IoError::IO))),
                    false => self.go_on(io, freed),
                }
            }
        }
    }

    /// A change is done, or refused. Returns the later ones that nothing holds back any more.
    fn end_change(
        &mut self,
        io: &mut impl Submit,
        number: usize,
        error: Option<IoError>,
    ) -> Vec<usize> {
        let Some(passed) = self.requests.get(number) else { return Vec::new() };
        let BlockRequest { tenant, durable, .. } = passed.open.request;
        let whole = self.whole_blocks(&passed.open.request);
        let (spared, shift) = (passed.spared.clone(), self.block_shift);
        let freed = self.freed(tenant.index(), number, &passed.pages());
        let volume = &mut self.volumes[tenant.index()];
        match error.or(volume.failed.then_some(IoError::IO)) {
            Some(error) => self.end_request(number, Err(error)),
            None => {
                for blocks in without(whole, &spared, shift) {
                    volume.lost.remove(&blocks);
                    volume.unflushed.remove(&blocks);
                }
                match durable {
                    true => self.sync(io, tenant.index(), number),
                    false => self.end_request(number, Ok(())),
                }
            }
        }
        freed
    }

    /// A change of some pages is no longer under way: the later ones that waited for it alone.
    fn freed(&mut self, tenant: usize, number: usize, pages: &Range<u64>) -> Vec<usize> {
        let changes = &mut self.volumes[tenant].changes;
        let Some(place) = changes.iter().position(|other| *other == number) else {
            return Vec::new(); // The volume has failed, and with it all that waited.
        };
        changes.remove(place);
        let mut freed = Vec::new();
        for later in &changes[place..] {
            let Some(waiting) = self.requests.get_mut(*later) else { continue };
            if meet(&waiting.pages(), pages) {
                waiting.behind -= 1;
                if waiting.behind == 0 {
                    freed.push(*later);
                }
            }
        }
        freed
    }

    /// A request waits until all that was done is durable.
    fn sync(&mut self, io: &mut impl Submit, tenant: usize, number: usize) {
        self.volumes[tenant].unsynced.push(number);
        self.begin_sync(io, tenant);
    }

    fn begin_sync(&mut self, io: &mut impl Submit, tenant: usize) {
        let volume = &mut self.volumes[tenant];
        if volume.syncing.is_none() && !volume.unsynced.is_empty() {
            volume.syncing = Some(std::mem::take(&mut volume.unsynced));
            let token = BypassToken::Sync(tenant).token(self.namespace);
            io.submit(token, IoOp::Sync { file: volume.volume.backing });
        }
    }

    /// A sync of a tenant's device is done; returns the tenant if the device has failed.
    pub fn synced(
        &mut self,
        io: &mut impl Submit,
        tenant: TenantId,
        error: Option<IoError>,
    ) -> Option<TenantId> {
        let served = self.volumes.get_mut(tenant.index()).and_then(|volume| volume.syncing.take());
        for number in served.into_iter().flatten() {
            self.end_request(number, error.map_or(Ok(()), Err));
        }
        match error {
            None => self.begin_sync(io, tenant.index()),
            Some(_) => self.fail(tenant),
        }
        error.map(|_| tenant)
    }

    /// A tenant's device has failed: what has not begun fails, and what is under way when it ends.
    pub fn fail(&mut self, tenant: TenantId) {
        let Some(volume) = self.volumes.get_mut(tenant.index()) else { return };
        volume.failed = true;
        let changes = std::mem::take(&mut volume.changes);
        let mut ended = std::mem::take(&mut volume.unsynced);
        let requests = &self.requests;
        let waits = |number: &usize| requests.get(*number).is_some_and(|passed| passed.behind > 0);
        ended.extend(changes.into_iter().filter(waits));
        ended.into_iter().for_each(|number| self.end_request(number, Err(IoError::IO)));
    }

    fn end_request(&mut self, number: usize, result: Result<(), IoError>) {
        if let Some(passed) = self.requests.try_remove(number) {
            self.end(passed.open, result);
        }
    }

    fn end(&mut self, open: OpenRequest, result: Result<(), IoError>) {
        self.answers.push(open.answer(result));
    }
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

fn meet(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}
