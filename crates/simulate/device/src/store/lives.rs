//! Lives of segments: each from one reset to the next.
//!
//! For: which pages are on their way to a segment, which of them can be written, which reads of it
//! are under way, and when it may be reset. Must never know: devices, requests. Units: pages,
//! nanoseconds. A segment that is emptied begins a new life at once, to which pages are already
//! given. None of them is written before the old life has ended. The old life ends when its moved
//! pages lie elsewhere, pages under way to it have arrived, and no read of it is left.

use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};

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
        (depth, max_pages): (u32, u32),
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
    pub fn begin_reset(&mut self, life: u32) -> bool {
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
