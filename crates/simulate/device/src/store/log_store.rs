//! A store as a device: its settings and state, the commands it takes, and what goes next beneath.
//!
//! A command is done when all its parts are. The audit of every invariant between calls looks at
//! every page; it is for tests and for simulation in debug builds. Units: bytes, pages,
//! nanoseconds.

use super::reads::Beneath;
use super::segments::{ComingPages, Lives, PageMoves, Translation};
use super::stats::StoreStats;
use super::writes::{PageWrites, StoredPages};
use crate::{AnyDevice, Command, Completion, Device, DeviceWork, Report, Spent};
use cachewright_ftl::layer::Layer;
use cachewright_ftl::{FtlError, Geometry, Space};
use cachewright_types::{Bytes, Nanos, Op, TenantId, choices, declare};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;
use thiserror::Error;

/// A translation layer and its size: what decides.
pub struct StoreLayer {
    /// The layer, empty.
    pub layer: Box<dyn Layer>,
    /// Its geometry, of a fixed number of segments.
    pub geometry: Geometry,
    /// Bytes of a page.
    pub page: Bytes,
}

/// Why there can be no store.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StoreError {
    /// The segments do not fit on the device.
    #[error("found a capacity of {capacity}, expected at least {needed} for {segments} segments")]
    TooSmall {
        /// Bytes of the segments.
        needed: Bytes,
        /// Bytes of the device.
        capacity: Bytes,
        /// Segments.
        segments: u32,
    },
    /// The layer has no fixed number of segments.
    #[error("found a log without end, expected a fixed number of segments")]
    Endless,
    /// The layer refused to be filled.
    #[error(transparent)]
    Layer(#[from] FtlError),
}

/// A store.
pub struct LogStore {
    pub(super) beneath: Beneath,
    pub(super) translation: Translation,
    pub(super) settings: StoreSettings,
    pub(super) sizes: Sizes,
    pub(super) lives: Lives,
    pub(super) writes: PageWrites,
    pub(super) moves: PageMoves,
    pub(super) requests: StoreCommands,
    /// Resets that end: when, and of which life.
    pub(super) resets: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) stored: StoredPages,
    pub(super) stats: StoreStats,
    pub(super) now_ns: u64,
}

impl LogStore {
    /// A store on an idle device. Errors: segments that do not fit on it, a layer without a fixed
    /// number of them or without room.
    pub fn new(
        inner: AnyDevice,
        log: StoreLayer,
        settings: &StoreSettings,
    ) -> Result<LogStore, StoreError> {
        let StoreLayer { mut layer, geometry, page } = log;
        let Space::Fixed { blocks: segments, .. } = geometry.space else {
            return Err(StoreError::Endless);
        };
        let Geometry { logical_pages, block_pages, .. } = geometry;
        let needed = Bytes(u64::from(segments) * u64::from(block_pages) * page.0);
        let capacity = inner.capacity();
        if needed > capacity {
            return Err(StoreError::TooSmall { needed, capacity, segments });
        }
        if settings.initial == Initial::Written {
            (0..logical_pages).try_for_each(|page| layer.write_untimed(page))?;
        }
        let (logical, all) = (u64::from(logical_pages), u64::from(segments));
        Ok(LogStore {
            beneath: Beneath::new(inner),
            translation: Translation::new(layer),
            settings: settings.clone(),
            sizes: Sizes::new(page, block_pages, logical_pages, settings.command),
            lives: Lives::new(segments),
            writes: PageWrites::default(),
            moves: PageMoves::default(),
            requests: StoreCommands::default(),
            resets: BinaryHeap::new(),
            stored: StoredPages::default(),
            stats: StoreStats { logical_pages: logical, segments: all, ..StoreStats::default() },
            now_ns: 0,
        })
    }

    /// Follows from now on where each page lies on the device. The audit then finds a read of a
    /// place that does not hold its page. For tests: 4 bytes per page.
    pub fn follow(&mut self) {
        let (sizes, translation) = (self.sizes, &self.translation);
        let pages = (0..sizes.logical_pages()).filter_map(|page| {
            let address = translation.locate(page)?;
            Some((sizes.cell(address.block, address.offset), page))
        });
        self.stored.follow(sizes.cell(self.stats.segments as u32, 0) as usize, pages);
    }

    /// A part of a command is done, along a way that took the time since it was submitted.
    pub(super) fn part_done(&mut self, command: u32, spent: Spent) {
        self.requests.end_part(command, spent, self.now_ns);
    }

    /// Sends a command of bytes `(first, length)` to the device beneath.
    pub(super) fn send_down(
        &mut self,
        command: SubCommand,
        op: Op,
        range: (u64, u64),
        tenant: TenantId,
    ) {
        self.beneath.send(self.now_ns, command, op, range, tenant);
    }

    /// When something next happens; never if nothing does.
    pub(super) fn due_ns(&self) -> u64 {
        let reset = self.resets.peek().map_or(u64::MAX, |Reverse(reset)| reset.0);
        self.beneath.due_ns().min(reset)
    }

    /// Lets happen what is due next.
    pub(super) fn step(&mut self) {
        self.now_ns = self.now_ns.max(self.due_ns());
        if self.beneath.due_ns() <= self.now_ns {
            let done = self.beneath.advance(self.now_ns);
            done.iter().for_each(|completion| self.answered(completion));
            self.beneath.keep(done);
        }
        while let Some(Reverse((due_ns, life))) = self.resets.peek().copied()
            && due_ns <= self.now_ns
        {
            self.resets.pop();
            self.reset(life);
        }
        self.dispatch();
    }

    /// A command beneath is done.
    fn answered(&mut self, done: &Completion) {
        match self.beneath.end(done) {
            None => {}
            Some(SubCommand::Read { command, life }) => {
                self.part_done(command, done.spent);
                self.unpin(life);
            }
            Some(SubCommand::Flush { command }) => self.part_done(command, done.spent),
            Some(SubCommand::Before { write, life }) => {
                if let Some(found) = self.writes.get_mut(write) {
                    found.waits -= 1;
                    found.spent = done.spent;
                }
                self.ready_if_complete(write);
                self.unpin(life);
            }
            Some(SubCommand::Append { life, first, pages, of_requests }) => {
                if !of_requests {
                    self.moves.end();
                }
                self.appended(life, first..first + pages, done.submitted.0, &done.spent);
            }
            Some(SubCommand::Gather { life, writes }) => {
                self.moves.end();
                self.gathered(life, &writes);
            }
            Some(SubCommand::Reset { life }) => self.trimmed(life),
        }
    }

    /// Sends what can go: appends of requests, then as much of cleaning as may be.
    pub(super) fn dispatch(&mut self) {
        let mut next_life = 0;
        while let Some(life) = self.lives.next_ready(next_life) {
            while self.append(life, true) {}
            next_life = life + 1;
        }
        let waited_for = self.lives.blocked() > 0 || self.requests.all_done();
        let settings = &self.settings;
        let max_moves = if waited_for { settings.move_depth } else { settings.move_depth_busy };
        next_life = 0;
        while let Some(life) = self.lives.next_ready(next_life) {
            while self.moves.under_way() < max_moves && self.append(life, false) {}
            next_life = life + 1;
        }
        while self.moves.under_way() < max_moves && self.gather() {}
    }

    /// Checks every invariant. Errors: the first one broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        self.translation.audit()?;
        self.stored.audit()?;
        self.beneath.audit()?;
        self.lives.audit()?;
        self.writes.audit()?;
        if self.due_ns() < self.now_ns {
            return Err(format!("an event at {} is in the past", self.due_ns()));
        }
        self.check_pages()?;
        if self.requests.all_done() && self.due_ns() == u64::MAX {
            self.check_rest()
        } else {
            Ok(())
        }
    }

    /// Pages on their way are those that lives expect.
    fn check_pages(&self) -> Result<(), String> {
        let mut counted: BTreeMap<u32, ComingPages> = BTreeMap::new();
        for OpenPageWrite { life, owner, .. } in self.writes.iter() {
            let comes = counted.entry(*life).or_default();
            comes.pending += 1;
            comes.host_pending += u32::from(owner.is_request());
            if let PageOwner::Move(victim) = owner {
                counted.entry(*victim).or_default().leaving += 1;
            }
        }
        for (number, known) in self.lives.coming() {
            let counted = counted.remove(&number).unwrap_or_default();
            if counted != known {
                return Err(format!("life {number}: {counted:?}, known are {known:?}"));
            }
        }
        match counted.keys().next() {
            Some(life) => Err(format!("pages come to life {life}, which has ended")),
            None => Ok(()),
        }
    }

    /// What must hold when nothing is under way.
    fn check_rest(&self) -> Result<(), String> {
        let left = self.writes.len() + self.moves.waiting() + self.beneath.open();
        let moving = self.moves.under_way();
        if left > 0 || moving > 0 || self.lives.next_ready(0).is_some() {
            return Err(format!("{left} things are left and {moving} move"));
        }
        let (resets, collections) = (self.stats.resets, self.translation.counts().collections);
        if resets != collections {
            return Err(format!("{resets} segments were reset of {collections} cleaned"));
        }
        for page in 0..self.sizes.logical_pages() {
            let Some(address) = self.translation.locate(page) else { continue };
            if !self.stored.holds(self.sizes.cell(address.block, address.offset), page) {
                return Err(format!("page {page} is not where it should be"));
            }
        }
        Ok(())
    }
}

impl Device for LogStore {
    fn capacity(&self) -> Bytes {
        self.sizes.capacity()
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        debug_assert!(now.0 >= self.now_ns, "time goes on");
        self.now_ns = self.now_ns.max(now.0);
        let number = self.requests.begin(command.tag, self.now_ns);
        match command.op {
            Op::Read => self.read(number, &command),
            Op::Write => self.write(number, &command),
            Op::Trim => self.trim(&command),
            Op::Flush => self.flush(number, &command),
        }
        self.part_done(number, Spent::default());
        self.dispatch();
    }

    fn next_due(&self) -> Option<Nanos> {
        if self.requests.has_answers() {
            return Some(Nanos(self.now_ns));
        }
        Some(self.due_ns()).filter(|due| *due != u64::MAX).map(Nanos)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.due_ns() <= now.0 && self.due_ns() != u64::MAX {
            self.step();
        }
        self.now_ns = self.now_ns.max(now.0);
        self.requests.take_answers(done);
    }

    fn outstanding(&self) -> usize {
        self.requests.outstanding()
    }

    fn audit(&self) -> Result<(), String> {
        self.check()
    }

    fn report(&self, now: Nanos) -> Report {
        let counts = self.translation.counts();
        let fault = self.translation.fault().map(ToString::to_string);
        let stats = StoreStats { counts, fault, ..self.stats.clone() };
        let members = vec![self.beneath.report(now)];
        Report { work: DeviceWork::Store(Box::new(stats)), members, ..Report::default() }
    }
}

/// Commands under way, and answers not yet taken.
#[derive(Clone, Debug, Default)]
pub struct StoreCommands {
    open: Slab<OpenCommand>,
    answers: Vec<Completion>,
}

impl StoreCommands {
    /// A command comes; it has one part until all are known.
    pub fn begin(&mut self, tag: u64, submitted_ns: u64) -> u32 {
        self.open.insert(OpenCommand { tag, submitted_ns, left: 1 }) as u32
    }

    /// One more part of a command begins.
    pub fn add_part(&mut self, number: u32) {
        if let Some(open) = self.open.get_mut(number as usize) {
            open.left += 1;
        }
    }

    /// A part of a command is done, along a way that took the time since it was submitted.
    pub fn end_part(&mut self, number: u32, spent: Spent, now_ns: u64) {
        let Some(open) = self.open.get_mut(number as usize) else { return };
        open.left -= 1;
        if open.left > 0 {
            return;
        }
        if let Some(OpenCommand { tag, submitted_ns, .. }) = self.open.try_remove(number as usize) {
            let (submitted, finished) = (Nanos(submitted_ns), Nanos(now_ns));
            self.answers.push(Completion { tag, submitted, finished, spent });
        }
    }

    /// Whether every command is done.
    fn all_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether answers can be taken.
    fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Moves the answers since the last call to `answers`.
    pub fn take_answers(&mut self, answers: &mut Vec<Completion>) {
        answers.append(&mut self.answers);
    }

    /// Commands that are not answered yet.
    pub fn outstanding(&self) -> usize {
        self.open.len() + self.answers.len()
    }
}

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct OpenCommand {
    /// As submitted.
    pub tag: u64,
    /// When it was submitted.
    pub submitted_ns: u64,
    /// Parts not done, and one more until all are known.
    pub left: u32,
}

/// What a command beneath is for.
#[derive(Clone, Debug)]
pub enum SubCommand {
    /// Pages that a request reads.
    Read {
        /// The request's command.
        command: u32,
        /// Where they lie.
        life: u32,
    },
    /// A page that a write needs before it can go.
    Before {
        /// The write.
        write: u32,
        /// Where the page lies.
        life: u32,
    },
    /// Pages that are written.
    Append {
        /// Where they go.
        life: u32,
        /// The first of them.
        first: u32,
        /// How many.
        pages: u32,
        /// Requests wait for them.
        of_requests: bool,
    },
    /// Pages that are read to be moved.
    Gather {
        /// Where they lie.
        life: u32,
        /// Their writes.
        writes: Vec<u32>,
    },
    /// A segment is reset.
    Reset {
        /// Whose life ends.
        life: u32,
    },
    /// A flush.
    Flush {
        /// The request's command.
        command: u32,
    },
}

/// Where a page can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlace {
    /// Nowhere: it holds nothing.
    Nowhere,
    /// In memory, on its way to the device.
    Memory,
    /// At a place of a life.
    At {
        /// The life.
        life: u32,
        /// The page within its segment.
        offset: u32,
    },
}

/// Whose a page on its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOwner {
    /// A request's, by the number of its command.
    Request(u32),
    /// Cleaning's: it leaves this life.
    Move(u32),
    /// The separation's own.
    Meta,
}

impl PageOwner {
    /// Whether a request waits for the page.
    pub fn is_request(self) -> bool {
        matches!(self, PageOwner::Request(_))
    }
}

/// A page on its way to the device.
#[derive(Clone, Copy, Debug)]
pub struct OpenPageWrite {
    /// The logical page; the highest number for metadata.
    pub page: u32,
    /// Whose it is.
    pub owner: PageOwner,
    /// Whose command will write it.
    pub tenant: TenantId,
    /// Where it goes.
    pub life: u32,
    /// See [`OpenPageWrite::life`].
    pub offset: u32,
    /// Where it can be read until it is in memory.
    pub from: Option<(u32, u32)>,
    /// Reads it waits for.
    pub waits: u32,
    /// When it was asked for.
    pub arrived_ns: u64,
    /// Where the time of those reads went.
    pub spent: Spent,
}

choices! {
    /// What the store holds at the start.
    pub enum Initial {
        /// Every page, written in order of address.
        Written = "written",
        /// Nothing: pages that were never written are read at no cost.
        Empty = "empty",
    }
}

declare! {
    /// How a log-structured store uses the device beneath it.
    pub struct StoreSettings {
        "log" {
            /// what the store holds at the start; either way it is not counted
            initial: Initial = Initial::Written, "name"; "a volume that was filled once";
            /// most bytes of one command to the device
            command: Bytes = Bytes(1_048_576), "bytes", 512 ..= 1_073_741_824;
                "Linux: max_sectors_kb, 1280";
            /// appends under way per segment; pages that come meanwhile go together with the next
            append_depth: u32 = 1, "commands", 1 ..= 65_536;
                "Linux: one write per zone (zone write plugging)";
            /// commands of cleaning under way while no request is, or a write waits for a segment
            move_depth: u32 = 8, "commands", 1 ..= 65_536; "typical";
            /// commands of cleaning under way beside requests that do not wait for it
            move_depth_busy: u32 = 1, "commands", 0 ..= 65_536; "typical";
            /// what a reset takes beside the device's own trim
            reset_time: Nanos = Nanos(0), "time", 0 ..= 1e12; "a device without zones";
        }
    }
}

/// The sizes of a store, which do not change.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    page_bytes: u64,
    segment_pages: u32,
    logical_pages: u32,
    /// Pages of one command at most.
    max_pages: u32,
}

impl Sizes {
    /// Pages of `page`, segments of so many, so many pages in all; commands of at most `command`.
    pub fn new(page: Bytes, segment_pages: u32, logical_pages: u32, command: Bytes) -> Sizes {
        let max_pages = (command.0 / page.0).max(1) as u32;
        Sizes { page_bytes: page.0, segment_pages, logical_pages, max_pages }
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.segment_pages) * self.page_bytes
    }

    /// Pages of a segment.
    pub fn segment_pages(&self) -> u32 {
        self.segment_pages
    }

    /// Pages that the store shows.
    pub fn logical_pages(&self) -> u32 {
        self.logical_pages
    }

    /// Bytes that the store shows.
    pub fn capacity(&self) -> Bytes {
        Bytes(u64::from(self.logical_pages) * self.page_bytes)
    }

    /// Pages of one command at most.
    pub fn max_pages(&self) -> u32 {
        self.max_pages
    }

    /// The pages that a range of bytes touches.
    pub fn pages(&self, offset: Bytes, length: Bytes) -> Range<u32> {
        let end = offset.0.saturating_add(length.0).div_ceil(self.page_bytes);
        let last = end.min(self.logical_pages.into()) as u32;
        let first = (offset.0 / self.page_bytes).min(last.into()) as u32;
        if length.0 == 0 { first..first } else { first..last }
    }

    /// The pages that a range of bytes covers whole.
    pub fn whole_pages(&self, offset: Bytes, length: Bytes) -> Range<u32> {
        let end = offset.0.saturating_add(length.0) / self.page_bytes;
        let end = end.min(self.logical_pages.into()) as u32;
        let first = offset.0.div_ceil(self.page_bytes).min(end.into()) as u32;
        first..end
    }

    /// The first byte of a page.
    pub fn first_byte(&self, page: u32) -> u64 {
        u64::from(page) * self.page_bytes
    }

    /// The number of a place among all of the device.
    pub fn cell(&self, segment: u32, offset: u32) -> u64 {
        u64::from(segment) * u64::from(self.segment_pages) + u64::from(offset)
    }

    /// The first byte of a place on the device.
    pub fn address(&self, segment: u32, offset: u32) -> u64 {
        self.cell(segment, offset) * self.page_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_those_of_the_store_that_a_range_touches_or_covers() {
        let sizes = Sizes::new(Bytes(512), 8, 20, Bytes(1024));
        let range = |offset, length| {
            let (offset, length) = (Bytes(offset), Bytes(length));
            (sizes.pages(offset, length), sizes.whole_pages(offset, length))
        };
        assert_eq!(range(512, 1024), (1..3, 1..3));
        assert_eq!(range(513, 1024), (1..4, 2..3));
        assert_eq!(range(513, 0), (1..1, 1..1));
        assert_eq!(range(9_728, u64::MAX), (19..20, 19..20));
        assert_eq!(range(u64::MAX, 512), (20..20, 20..20));
        assert_eq!((sizes.max_pages(), sizes.capacity()), (2, Bytes(10_240)));
        assert_eq!((sizes.cell(2, 3), sizes.address(2, 3)), (19, 19 * 512));
    }
}
