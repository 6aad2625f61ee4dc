//! Segments of a store: the lives of each from one reset to the next, and cleaning.
//!
//! What the translation layer decided becomes reads, appends and resets. The layer counts a page as
//! moved at once; here it is read at its old place, which lasts until the page has arrived.
//!
//! A segment that is emptied begins a new life at once, to which pages are already given. None of
//! them is written before the old life has ended. The old life ends when its moved pages lie
//! elsewhere, pages under way to it have arrived, and no read of it is left. Units: pages,
//! segments, nanoseconds.

use super::log_store::{LogStore, PageOwner, PagePlace, SubCommand};
use cachewright_ftl::layer::{Layer, LayerStep, LayerSteps};
use cachewright_ftl::{Address, FtlCounts, FtlError, HostRequest};
use cachewright_types::{Op, TenantId};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The life after one that is not emptied yet.
const NO_LIFE: u32 = u32::MAX;

/// A moment that has not come.
const NOT_YET_NS: u64 = u64::MAX;

/// One life of a segment.
#[derive(Clone, Debug, Default)]
struct SegmentLife {
    segment: u32,
    /// When it could first be written to.
    opened_ns: u64,
    /// Pages that can be written, of requests and others, by their place.
    ready: [BTreeMap<u32, u32>; 2],
    coming: ComingPages,
    /// Appends under way.
    appends: u32,
    /// Reads under way or queued.
    readers: u32,
    /// The life that follows; [`NO_LIFE`] while it is not emptied.
    next: u32,
    /// The reset has begun.
    resetting: bool,
}

/// Pages that come to a life, or that left it and have not arrived elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComingPages {
    /// Pages that are still to arrive.
    pub pending: u32,
    /// Those of them that requests write.
    pub host_pending: u32,
    /// Pages moved out of it that have not arrived elsewhere.
    pub leaving: u32,
}

/// Pages side by side that one command appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyRun {
    /// The place of the first of them.
    pub first: u32,
    /// How many.
    pub pages: u32,
    /// The number of the first of them.
    pub write: u32,
}

/// All lives under way.
#[derive(Clone, Debug)]
pub struct Lives {
    all: Slab<SegmentLife>,
    /// The life of each segment to which pages are given.
    current: Vec<u32>,
    /// Lives with pages that can be written once they are open.
    ready: BTreeSet<u32>,
    /// Pages of requests that wait for a segment to be reset.
    blocked: u32,
}

impl SegmentLife {
    fn new(segment: u32, opened_ns: u64) -> SegmentLife {
        SegmentLife { segment, opened_ns, next: NO_LIFE, ..SegmentLife::default() }
    }

    /// Whether the segment can be written to.
    fn is_open(&self) -> bool {
        self.opened_ns != NOT_YET_NS
    }

    /// Whether nothing of an emptied segment is needed any more.
    fn is_over(&self) -> bool {
        let left = self.coming.pending + self.readers + self.coming.leaving;
        self.next != NO_LIFE && !self.resetting && left == 0 && self.is_open()
    }

    /// Takes the page of a place that can be written.
    fn take_ready(&mut self, offset: u32) -> Option<u32> {
        self.ready.iter_mut().find_map(|ready| ready.remove(&offset))
    }
}

impl Lives {
    /// The first lives of so many segments, open.
    pub fn new(segments: u32) -> Lives {
        let mut all = Slab::default();
        let current =
            (0..segments).map(|segment| all.insert(SegmentLife::new(segment, 0)) as u32).collect();
        Lives { all, current, ready: BTreeSet::new(), blocked: 0 }
    }

    /// The life to which pages of a segment are given.
    pub fn life_of(&self, segment: u32) -> u32 {
        self.current[segment as usize]
    }

    /// The segment of a life; the first for one that has ended.
    pub fn segment_of(&self, life: u32) -> u32 {
        self.all.get(life as usize).map_or(0, |life| life.segment)
    }

    /// When a life could first be written to.
    pub fn opened_ns(&self, life: u32) -> u64 {
        self.all.get(life as usize).map_or(0, |life| life.opened_ns)
    }

    fn change(&mut self, life: u32, change: impl FnOnce(&mut SegmentLife)) {
        if let Some(life) = self.all.get_mut(life as usize) {
            change(life);
        }
    }

    /// A page is on its way to a life. Returns whether it is a request's and waits for a reset.
    pub fn await_page(&mut self, life: u32, of_request: bool) -> bool {
        let Some(life) = self.all.get_mut(life as usize) else { return false };
        life.coming.pending += 1;
        life.coming.host_pending += u32::from(of_request);
        let held = of_request && !life.is_open();
        self.blocked += u32::from(held);
        held
    }

    /// A page can be written to its place once the life is open.
    pub fn make_ready(&mut self, life: u32, offset: u32, write: u32, of_request: bool) {
        if let Some(found) = self.all.get_mut(life as usize) {
            found.ready[usize::from(!of_request)].insert(offset, write);
            self.ready.insert(life);
        }
    }

    /// The first life from `from` on with pages that can be written once it is open.
    pub fn next_ready(&self, from: u32) -> Option<u32> {
        self.ready.range(from..).next().copied()
    }

    /// Begins an append to an open life: from its first ready page of requests on, or of others, as
    /// far as ready pages lie side by side, at most `max_pages`. Nothing where none is ready, or
    /// `depth` appends are under way.
    pub fn begin_append(
        &mut self,
        life: u32,
        of_requests: bool,
        depth: u32,
        max_pages: u32,
    ) -> Option<ReadyRun> {
        let found = self.all.get_mut(life as usize)?;
        if !found.is_open() || found.appends >= depth {
            return None;
        }
        let (first, write) = found.ready[usize::from(!of_requests)].first_key_value()?;
        let (first, write, mut pages) = (*first, *write, 0);
        while pages < max_pages && found.take_ready(first + pages).is_some() {
            pages += 1;
        }
        found.appends += 1;
        if found.ready.iter().all(BTreeMap::is_empty) {
            self.ready.remove(&life);
        }
        Some(ReadyRun { first, pages, write })
    }

    /// An append is done.
    pub fn end_append(&mut self, life: u32) {
        self.change(life, |life| life.appends -= 1);
    }

    /// A page has arrived.
    pub fn arrive(&mut self, life: u32, of_request: bool) {
        self.change(life, |life| {
            life.coming.pending -= 1;
            life.coming.host_pending -= u32::from(of_request);
        });
    }

    /// A page begins to leave a life.
    pub fn begin_move(&mut self, life: u32) {
        self.change(life, |life| life.coming.leaving += 1);
    }

    /// A page that left a life has arrived elsewhere.
    pub fn end_move(&mut self, life: u32) {
        self.change(life, |life| life.coming.leaving -= 1);
    }

    /// A read of a life begins.
    pub fn pin(&mut self, life: u32) {
        self.change(life, |life| life.readers += 1);
    }

    /// A read of a life ends.
    pub fn unpin(&mut self, life: u32) {
        self.change(life, |life| life.readers -= 1);
    }

    /// A segment was emptied: its next life begins. Returns the one that is to end.
    pub fn condemn(&mut self, segment: u32) -> u32 {
        let ending = self.life_of(segment);
        let next = self.all.insert(SegmentLife::new(segment, NOT_YET_NS)) as u32;
        self.current[segment as usize] = next;
        self.change(ending, |life| life.next = next);
        ending
    }

    /// Whether a segment is to be reset now, because nothing of its life is needed any more; true
    /// once.
    fn begin_reset(&mut self, life: u32) -> bool {
        let over = self.all.get_mut(life as usize).filter(|life| life.is_over());
        over.map(|life| life.resetting = true).is_some()
    }

    /// A life has ended: the one after it is open from now on. Returns that one.
    pub fn end(&mut self, life: u32, now_ns: u64) -> Option<u32> {
        let next = self.all.try_remove(life as usize)?.next;
        let opened = self.all.get_mut(next as usize)?;
        opened.opened_ns = now_ns;
        self.blocked -= opened.coming.host_pending;
        Some(next)
    }

    /// Pages of requests that wait for a segment to be reset.
    pub fn blocked(&self) -> u32 {
        self.blocked
    }

    /// Every life, with the pages that come to it and leave it.
    pub fn coming(&self) -> impl Iterator<Item = (u32, ComingPages)> {
        self.all.iter().map(|(number, life)| (number as u32, life.coming))
    }

    /// Checks that every segment has one life to which pages are given, and that pages that can be
    /// written are among those to arrive. Errors: the rule broken.
    pub fn audit(&self) -> Result<(), String> {
        for (segment, life) in self.current.iter().enumerate() {
            match self.all.get(*life as usize) {
                Some(found) if found.segment as usize == segment && found.next == NO_LIFE => {}
                _ => return Err(format!("segment {segment} has no life of its own")),
            }
        }
        let mut blocked = 0;
        for (number, life) in &self.all {
            let number = number as u32;
            let ready: usize = life.ready.iter().map(BTreeMap::len).sum();
            let ComingPages { pending, host_pending, .. } = life.coming;
            if ready > pending as usize || host_pending > pending {
                return Err(format!("life {number}: {ready} of {pending} pages ready"));
            }
            if self.ready.contains(&number) != (ready > 0) {
                return Err(format!("life {number}: {ready} pages ready, which is not known"));
            }
            if life.is_over() {
                return Err(format!("life {number} is over and its segment is not reset"));
            }
            blocked += if life.is_open() { 0 } else { host_pending };
        }
        if blocked == self.blocked {
            Ok(())
        } else {
            Err(format!("{blocked} pages wait for a segment, {} are counted", self.blocked))
        }
    }
}

/// The name of a page of a separation's own.
const META: u32 = u32::MAX;

impl LogStore {
    /// Makes work of what the layer has ordered.
    pub(super) fn carry_out(&mut self) {
        if !self.translation.has_ordered() {
            return;
        }
        let ordered = self.translation.take_ordered();
        for step in &ordered {
            match *step {
                LayerStep::Move { page, from, to } => self.relocate(page, from, to),
                LayerStep::Erase { block } => {
                    let ending = self.lives.condemn(block);
                    self.end_if_over(ending);
                }
                LayerStep::Meta { to } => {
                    let write = self.aim(META, to, PageOwner::Meta, None);
                    self.ready_if_complete(write);
                }
                LayerStep::MetaRead { owner } => self.translation.need_metadata(owner.block),
            }
        }
        self.translation.keep(ordered);
    }

    /// A live page goes from its segment to another.
    fn relocate(&mut self, page: u32, from: Address, to: Address) {
        let victim = self.lives.life_of(from.block);
        let place = self.writes.source_of(victim, from.offset);
        self.lives.begin_move(victim);
        let PagePlace::At { life, offset } = place else {
            let write = self.aim(page, to, PageOwner::Move(victim), None);
            return self.ready_if_complete(write);
        };
        let write = self.aim(page, to, PageOwner::Move(victim), Some((life, offset)));
        if let Some(found) = self.writes.get_mut(write) {
            found.waits = 1;
        }
        if self.moves.note(life, offset, write, self.sizes.max_pages()) {
            self.lives.pin(life);
        }
    }

    /// Reads the oldest pages that are to move. False when there are none.
    pub(super) fn gather(&mut self) -> bool {
        let Some(Gathering { life, first, writes }) = self.moves.begin_next() else {
            return false;
        };
        for (write, offset) in writes.iter().zip(first..) {
            let page = self.writes.get(*write).map_or(META, |write| write.page);
            self.check_read(life, offset, page);
        }
        self.stats.reads.moves += 1;
        let range = (self.address(life, first), writes.len() as u64 * self.sizes.page_bytes());
        self.send_down(SubCommand::Gather { life, writes }, Op::Read, range, TenantId(0));
        true
    }

    /// Pages to be moved are in memory.
    pub(super) fn gathered(&mut self, life: u32, writes: &[u32]) {
        for write in writes {
            if let Some(found) = self.writes.get_mut(*write) {
                (found.from, found.waits) = (None, 0);
            }
            self.ready_if_complete(*write);
        }
        self.unpin(life);
    }

    /// Reads the metadata that the layer wanted for a write, where it lies on the device.
    pub(super) fn read_metadata(&mut self, write: u32) {
        let last = self.sizes.segment_pages() - 1;
        for segment in self.translation.take_sealed_metadata() {
            let life = self.lives.life_of(segment);
            if self.writes.source_of(life, last) != PagePlace::Memory {
                self.stats.reads.meta += 1;
                self.lives.pin(life);
                self.read_for(write, life, last);
            }
        }
    }

    /// Resets the segment of a life of which nothing is needed any more.
    pub(super) fn end_if_over(&mut self, life: u32) {
        if self.lives.begin_reset(life) {
            let range = (self.address(life, 0), self.sizes.segment_bytes());
            self.send_down(SubCommand::Reset { life }, Op::Trim, range, TenantId(0));
        }
    }

    /// The device has forgotten a segment, which may take some time more.
    pub(super) fn trimmed(&mut self, life: u32) {
        let after_ns = self.settings.reset_time.0;
        if after_ns == 0 {
            self.reset(life);
        } else {
            self.resets.push(Reverse((self.now_ns + after_ns, life)));
        }
    }

    /// A segment is reset: pages given to it can be written.
    pub(super) fn reset(&mut self, life: u32) {
        self.stored.reset(self.cell(life, 0), self.sizes.segment_pages());
        if let Some(opened) = self.lives.end(life, self.now_ns) {
            self.end_if_over(opened);
        }
        self.stats.resets += 1;
    }
}

/// Pages side by side that one command will read to move them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gathering {
    /// Where they lie.
    pub life: u32,
    /// The first of them.
    pub first: u32,
    /// The writes that wait for them, one per page.
    pub writes: Vec<u32>,
}

/// Reads of pages to be moved, and commands of cleaning under way.
#[derive(Clone, Debug, Default)]
pub struct PageMoves {
    waiting: VecDeque<Gathering>,
    under_way: u32,
}

impl PageMoves {
    /// A page of a life is to be read for a write, with the last one noted if it lies behind that
    /// and the command has at most `max_pages`. Returns whether it begins a new command.
    pub fn note(&mut self, life: u32, offset: u32, write: u32, max_pages: u32) -> bool {
        if let Some(last) = self.waiting.back_mut()
            && last.life == life
            && last.first + last.writes.len() as u32 == offset
            && last.writes.len() < max_pages as usize
        {
            last.writes.push(write);
            return false;
        }
        self.waiting.push_back(Gathering { life, first: offset, writes: vec![write] });
        true
    }

    /// The oldest pages that are to be read, which begins a command of cleaning.
    pub fn begin_next(&mut self) -> Option<Gathering> {
        let next = self.waiting.pop_front()?;
        self.under_way += 1;
        Some(next)
    }

    /// Another command of cleaning begins.
    pub fn begin(&mut self) {
        self.under_way += 1;
    }

    /// A command of cleaning is done.
    pub fn end(&mut self) {
        self.under_way -= 1;
    }

    /// Commands of cleaning under way.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }

    /// Commands that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// The layer that decides.
pub struct Translation {
    layer: Box<dyn Layer>,
    /// What it had done when the store was filled.
    before: FtlCounts,
    steps: LayerSteps,
    /// Segments with metadata that the write at hand needs.
    metadata: Vec<u32>,
    /// Why a write was refused, if one was.
    fault: Option<FtlError>,
}

impl Translation {
    /// A layer that is filled; what it did so far is not counted.
    pub fn new(layer: Box<dyn Layer>) -> Translation {
        let (before, steps) = (layer.counts(), LayerSteps::default());
        Translation { layer, before, steps, metadata: Vec::new(), fault: None }
    }

    /// Announces a request of a tenant.
    pub fn begin(&mut self, tenant: u16, request: &HostRequest) {
        self.layer.begin(tenant, request);
    }

    /// Ends the request.
    pub fn end(&mut self) {
        self.layer.end(&mut self.steps);
    }

    /// Decides where a page is written; nothing where the layer refuses it, which is a fault.
    pub fn write(&mut self, page: u32) -> Option<Address> {
        match self.layer.write(page, &mut self.steps) {
            Ok(()) => Some(self.steps.program),
            Err(error) => {
                self.fault.get_or_insert(error);
                None
            }
        }
    }

    /// Forgets a page.
    pub fn trim(&mut self, page: u32) {
        if let Err(error) = self.layer.trim(page) {
            self.fault.get_or_insert(error);
        }
    }

    /// Where a page lies, or will when it has arrived.
    pub fn locate(&self, page: u32) -> Option<Address> {
        self.layer.locate(page)
    }

    /// Whether the layer has ordered anything.
    fn has_ordered(&self) -> bool {
        !self.steps.ordered.is_empty()
    }

    /// Takes what the layer has ordered, to be handed back with [`Translation::keep`].
    fn take_ordered(&mut self) -> Vec<LayerStep> {
        std::mem::take(&mut self.steps.ordered)
    }

    /// Keeps the memory of orders that have been carried out.
    pub fn keep(&mut self, mut ordered: Vec<LayerStep>) {
        ordered.clear();
        self.steps.ordered = ordered;
    }

    /// The write at hand needs the metadata of a segment.
    fn need_metadata(&mut self, segment: u32) {
        self.metadata.push(segment);
    }

    /// Segments with metadata that the write at hand needs and that no page is appended to.
    fn take_sealed_metadata(&mut self) -> Vec<u32> {
        let mut segments = std::mem::take(&mut self.metadata);
        segments.retain(|segment| self.layer.blocks().is_sealed(*segment));
        segments
    }

    /// What the layer has done since the store was filled.
    pub fn counts(&self) -> FtlCounts {
        self.layer.counts() - self.before
    }

    /// Why a write was refused, if one was.
    pub fn fault(&self) -> Option<&FtlError> {
        self.fault.as_ref()
    }

    /// Checks the layer, and that it refused nothing. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.layer.audit()?;
        self.fault().map_or(Ok(()), |fault| Err(format!("a write was refused: {fault}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_side_by_side_are_one_read_up_to_the_longest_command() {
        let mut queue = PageMoves::default();
        let pages = [(1, 4), (1, 5), (1, 6), (1, 8), (2, 9)];
        let begun = [true, false, true, true, true];
        for ((write, (life, offset)), begins) in (0..).zip(pages).zip(begun) {
            assert_eq!(queue.note(life, offset, write, 2), begins, "page {offset}");
        }
        let first = Gathering { life: 1, first: 4, writes: vec![0, 1] };
        assert_eq!((queue.begin_next(), queue.under_way(), queue.waiting()), (Some(first), 1, 3));
        queue.begin();
        queue.end();
        queue.end();
        assert_eq!(queue.under_way(), 0);
    }
}
