//! A store as a device: what it is made of, and the commands it takes.
//!
//! For: the state that reads, writes, cleaning and the order of things share. Must never know:
//! schemes, caches, stack files. Units: bytes, pages, nanoseconds.

use super::lives::Lives;
use super::settings::{Initial, StoreSettings};
use super::stats::StoreStats;
use super::under_way::{Gathering, OpenCommand, PageWrite, SubCommand};
use crate::layer::{Layer, LayerSteps};
use crate::slab::Slab;
use crate::{AnyDevice, Command, Completion, Device, DeviceUse, DeviceWork, Report, Spent, Use};
use cachewright_ftl::{FtlCounts, FtlError, Geometry, Space};
use cachewright_types::{Bytes, Nanos, Op};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use thiserror::Error;

/// A translation layer and its size: what decides.
pub struct Log {
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
    pub(super) inner: AnyDevice,
    /// How the store used the device beneath.
    pub(super) used: Use,
    pub(super) layer: Box<dyn Layer>,
    pub(super) settings: StoreSettings,
    pub(super) page_bytes: u64,
    pub(super) segment_bytes: u64,
    pub(super) logical_pages: u32,
    /// Pages of one command at most.
    pub(super) max_pages: u32,
    pub(super) lives: Lives,
    /// Lives for which pages can be written.
    pub(super) active: BTreeSet<u32>,
    pub(super) writes: Slab<PageWrite>,
    /// The page on its way to each place.
    pub(super) writing: HashMap<(u32, u32), u32, foldhash::fast::FixedState>,
    /// Pages that moves are to read, the oldest first.
    pub(super) gathering: VecDeque<Gathering>,
    pub(super) commands: Slab<OpenCommand>,
    /// What each command beneath is for; its tag is the number.
    pub(super) sub_commands: Slab<SubCommand>,
    /// Commands of cleaning under way.
    pub(super) moving: u32,
    /// Pages of requests that wait for a segment to be reset.
    pub(super) blocked: u32,
    /// Resets that end: when, and of which life.
    pub(super) resets: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) inner_due_ns: u64,
    pub(super) inner_done: Vec<Completion>,
    pub(super) steps: LayerSteps,
    /// Segments with metadata that the write at hand needs.
    pub(super) meta_segments: Vec<u32>,
    pub(super) now_ns: u64,
    pub(super) done: Vec<Completion>,
    pub(super) stats: StoreStats,
    /// What the layer had done when the store was filled.
    pub(super) before: FtlCounts,
    pub(super) fault: Option<FtlError>,
    /// The page that lies at each place of the device, where it is followed.
    pub(super) stored: Option<Vec<u32>>,
    /// Reads of a place where the page was not.
    pub(super) lost: u64,
}

impl LogStore {
    /// A store on an idle device. Errors: segments that do not fit on it, a layer without a fixed
    /// number of them or without room.
    pub fn new(
        inner: AnyDevice,
        log: Log,
        settings: &StoreSettings,
    ) -> Result<LogStore, StoreError> {
        let Log { mut layer, geometry, page } = log;
        let Space::Fixed { blocks: segments, .. } = geometry.space else {
            return Err(StoreError::Endless);
        };
        let segment_bytes = u64::from(geometry.block_pages) * page.0;
        let needed = Bytes(u64::from(segments) * segment_bytes);
        let capacity = inner.capacity();
        if needed > capacity {
            return Err(StoreError::TooSmall { needed, capacity, segments });
        }
        let logical_pages = geometry.logical_pages;
        if settings.initial == Initial::Written {
            (0..logical_pages).try_for_each(|page| layer.write_untimed(page))?;
        }
        Ok(LogStore {
            before: layer.counts(),
            max_pages: (settings.command.0 / page.0).max(1) as u32,
            page_bytes: page.0,
            segment_bytes,
            logical_pages,
            lives: Lives::new(segments),
            active: BTreeSet::new(),
            writes: Slab::default(),
            writing: HashMap::default(),
            gathering: VecDeque::new(),
            commands: Slab::default(),
            sub_commands: Slab::default(),
            moving: 0,
            blocked: 0,
            resets: BinaryHeap::new(),
            inner_due_ns: inner.next_due().map_or(u64::MAX, |due| due.0),
            inner_done: Vec::new(),
            steps: LayerSteps::default(),
            meta_segments: Vec::new(),
            now_ns: 0,
            done: Vec::new(),
            stats: StoreStats {
                logical_pages: logical_pages.into(),
                segments: segments.into(),
                ..StoreStats::default()
            },
            fault: None,
            stored: None,
            lost: 0,
            settings: settings.clone(),
            used: Use::default(),
            inner,
            layer,
        })
    }

    /// Follows from now on where each page lies on the device. The audit then finds a read of a
    /// place that does not hold its page. For tests: 4 bytes per page.
    pub fn follow(&mut self) {
        let segment_pages = self.segment_bytes / self.page_bytes;
        let mut stored = vec![u32::MAX; (self.stats.segments * segment_pages) as usize];
        for page in 0..self.logical_pages {
            if let Some(address) = self.layer.locate(page) {
                let place = u64::from(address.block) * segment_pages + u64::from(address.offset);
                stored[place as usize] = page;
            }
        }
        self.stored = Some(stored);
    }

    /// A part of a command is done, along a way that took the time since it was submitted.
    pub(super) fn part_done(&mut self, command: u32, spent: Spent) {
        let Some(open) = self.commands.get_mut(command) else { return };
        open.left -= 1;
        if open.left > 0 {
            return;
        }
        if let Some(OpenCommand { tag, submitted_ns, .. }) = self.commands.take(command) {
            let (submitted, finished) = (Nanos(submitted_ns), Nanos(self.now_ns));
            self.done.push(Completion { tag, submitted, finished, spent });
        }
    }

    /// The pages that a range of bytes touches.
    pub(super) fn pages(&self, offset: Bytes, length: Bytes) -> std::ops::Range<u32> {
        let end = offset.0.saturating_add(length.0).div_ceil(self.page_bytes);
        let last = end.min(self.logical_pages.into()) as u32;
        let first = (offset.0 / self.page_bytes).min(last.into()) as u32;
        if length.0 == 0 { first..first } else { first..last }
    }
}

impl Device for LogStore {
    fn capacity(&self) -> Bytes {
        Bytes(u64::from(self.logical_pages) * self.page_bytes)
    }

    fn submit(&mut self, now: Nanos, command: Command) {
        debug_assert!(now.0 >= self.now_ns, "time goes on");
        self.now_ns = self.now_ns.max(now.0);
        let (tag, submitted_ns) = (command.tag, self.now_ns);
        let number = self.commands.insert(OpenCommand { tag, submitted_ns, left: 1 });
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
        if !self.done.is_empty() {
            return Some(Nanos(self.now_ns));
        }
        Some(self.due_ns()).filter(|due| *due != u64::MAX).map(Nanos)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.due_ns() <= now.0 && self.due_ns() != u64::MAX {
            self.step();
        }
        self.now_ns = self.now_ns.max(now.0);
        done.append(&mut self.done);
    }

    fn outstanding(&self) -> usize {
        self.commands.len() + self.done.len()
    }

    fn audit(&self) -> Result<(), String> {
        self.check()
    }

    fn report(&self, now: Nanos) -> Report {
        let counts = self.layer.counts() - self.before;
        let fault = self.fault.as_ref().map(ToString::to_string);
        let stats = StoreStats { counts, fault, ..self.stats.clone() };
        let members = vec![DeviceUse::new(&self.used, self.inner.report(now))];
        Report { work: DeviceWork::Store(Box::new(stats)), members, ..Report::default() }
    }
}
