//! A store as a device: what it is made of, and the commands it takes.
//!
//! For: the state that reads, writes, cleaning and the order of things share. Must never know:
//! schemes, caches, stack files. Units: bytes, pages, nanoseconds.

use super::beneath::Beneath;
use super::lives::Lives;
use super::move_queue::PageMoves;
use super::page_writes::PageWrites;
use super::requests::StoreCommands;
use super::settings::{Initial, StoreSettings};
use super::sizes::Sizes;
use super::stats::StoreStats;
use super::stored_pages::StoredPages;
use super::translation::Translation;
use crate::{AnyDevice, Command, Completion, Device, DeviceWork, Report, Spent};
use cachewright_ftl::layer::Layer;
use cachewright_ftl::{FtlError, Geometry, Space};
use cachewright_types::{Bytes, Nanos, Op};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
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
