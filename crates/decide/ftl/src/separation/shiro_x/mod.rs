//! Shiro-x: lifetimes learned inside the drive as a life table.
//!
//! For: what Shiro does with a recurrent network and two classes, done by survival analysis. A
//! page's past picks a cell. Overwrites and time at risk are counted per cell and age. Pages
//! written by the host and moved pages are placed by the median of their residual lifetime. Must
//! never know: files, threads. Units: pages; the clock of host page writes.
//!
//! From Shiro (Sun et al., section III) come learning at the borders of windows, the virtual clock
//! and moved pages apart from the host's. Everything else is Cachewright's, and answers what Shiro
//! was seen to lose by. A page not overwritten within its window is time at risk, not a false
//! label. There is no hidden state to drift. A moved page is placed by its age. Lifetimes have 64
//! bins, not two classes. The bounds of streams follow from how many pages are placed where. How
//! many streams there are, and whether host and moved pages share them, is tried on drives in small
//! (`trials`; without, three streams for each). State is 6 bytes per page, in memory like that of
//! the rule-based schemes (Shiro's 36 lie in flash). The drives in small add the pages and
//! superblocks they hold (3.6 at 256 pages per superblock, 0.1 at 8192). `compact` holds 3 bytes
//! per page, by moments in ticks, and has drives in small only where all stays below 4. The life
//! table of 272 KiB comes on top. Invariant: nothing looks ahead; a decision depends on earlier
//! requests only.

mod compact;
mod history;
mod life;
mod record;
mod streams;
mod trials;

use super::learning::Statistics;
use super::{HostRequest, Invalidated, MovedPage, Registered, Separation, Stream, Write};
use crate::reclaim::Named;
use crate::{Block, Entry, Geometry};
use cachewright_types::{Seed, declare};
use history::{FirstWrite, Histories, span};
use life::LifeTable;
use streams::{STREAMS, Side, StreamDivision};
use trials::{Trials, WAYS};

declare! {
    /// The numbers of shiro-x.
    pub struct ShiroXSettings {
        /// whether a page takes at most 4 bytes, by moments in ticks
        compact: bool = false, "true or false";
        /// whether ways of dividing pages into streams are tried on drives in small
        trials: bool = true, "true or false";
        /// by how much another way must be better in the trials
        certainty: f64 = 0.0, "standard errors", 0.0 ..= 100.0;
        /// host writes between two lessons, as a share of the drive
        window_share: f64 = 0.1, "ratio", 0.001 ..= 4.0;
        /// how much a window counts for, of the window after it
        keep: f64 = 0.9, "ratio", 0.0 ..= 1.0;
        /// pages of a neighbourhood, whose recent requests tell first writes apart
        neighbourhood_pages: u32 = 256, "pages", 1 ..= 65536;
    }
}

/// Bytes per page that empty drives in small may take in the compact form. In use they take up to
/// 0.9, beside 3 for histories.
const COMPACT_TRIALS: f64 = 0.75;

/// What is known of pages.
#[derive(Clone, Debug, Default)]
struct Past {
    histories: Histories,
    life: LifeTable,
}

impl Past {
    /// The bin of the residual lifetime of a page that holds data.
    #[inline(always)]
    fn residual(&self, page: u32, clock: u64) -> Option<usize> {
        let (cell, age) = self.histories.look(page, clock)?;
        Some(self.life.median_residual(cell, span(age)))
    }
}

/// The scheme.
pub struct ShiroX {
    settings: ShiroXSettings,
    geometry: Geometry,
    past: Past,
    division: StreamDivision,
    trials: Trials,
    window_start: u64,
    window_pages: u64,
    request_pages: u32,
    /// Recent write requests per neighbourhood.
    heat: Vec<u16>,
    windows: u64,
}

/// The age of a page so many page writes ago, if it was written before that, else 0.
#[inline(always)]
fn age_before(age: u32, writes: u64) -> u32 {
    u64::from(age).saturating_sub(writes) as u32
}

impl ShiroX {
    /// Windows that ended.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// Bytes of everything: histories, neighbourhoods, life table, drives in small.
    pub fn held_bytes(&self) -> usize {
        let Past { histories, life } = &self.past;
        let heat = size_of_val(self.heat.as_slice());
        let learned = histories.held_bytes() + life.held_bytes() + heat;
        size_of::<ShiroX>() + learned + self.trials.held_bytes()
    }

    /// The copy of a page, if it has one, came to its end.
    #[inline(always)]
    fn end_life(&mut self, page: u32, clock: u64) {
        let Past { histories, life } = &mut self.past;
        if let Some((cell, age)) = histories.look(page, clock) {
            let from = age_before(age, clock - self.window_start);
            life.survived(cell, from, age);
            life.died(cell, age);
        }
    }

    /// A window ends: pages that outlived it are counted, then hazards and streams follow.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self, clock: u64) {
        let Past { histories, life } = &mut self.past;
        let gone = clock - self.window_start;
        histories.each(clock, |cell, age| life.survived(cell, age_before(age, gone), age));
        life.end_window();
        let way = self.trials.end_window(self.division.way(), self.settings.certainty);
        self.division.follow(way);
        self.division.cut();
        self.heat.iter_mut().for_each(|requests| *requests /= 2);
        self.window_start = clock;
        self.windows += 1;
    }

    fn neighbourhood(&self, page: u32) -> usize {
        (page / self.settings.neighbourhood_pages) as usize
    }
}

impl Registered for ShiroX {
    type Settings = ShiroXSettings;
    const ENTRY: Entry = Entry {
        name: "shiro-x",
        doc: "a life table learned from each page's past sorts written and moved pages",
        source: "design of Cachewright after Sun et al., Shiro",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &ShiroXSettings, _: Seed) -> Self {
        let pages = geometry.logical_pages;
        let window_pages = f64::from(pages) * settings.window_share;
        ShiroX {
            settings: settings.clone(),
            geometry: *geometry,
            past: Past {
                histories: Histories::new(pages, settings.compact),
                life: LifeTable::new(pages, settings.keep),
            },
            division: StreamDivision::new(WAYS[0]),
            trials: Trials::default(),
            window_start: 0,
            window_pages: (window_pages as u64).max(1),
            request_pages: 1,
            heat: vec![0; pages.div_ceil(settings.neighbourhood_pages) as usize],
            windows: 0,
        }
    }
}

impl Separation for ShiroX {
    const WATCHES_INVALIDATION: bool = true;

    fn streams(&self) -> u32 {
        u32::from(STREAMS)
    }

    fn on_reclaim(&mut self, reclaim: &Named) {
        if self.settings.trials {
            let limit = if self.settings.compact { COMPACT_TRIALS } else { f64::INFINITY };
            self.trials = Trials::new(&self.geometry, limit, reclaim);
        }
    }

    #[inline]
    fn on_request(&mut self, request: &HostRequest, _clock: u64) {
        if request.write {
            self.request_pages = request.pages;
            let index = self.neighbourhood(request.first_page);
            if let Some(requests) = self.heat.get_mut(index) {
                *requests = requests.saturating_add(1);
            }
        }
    }

    #[inline]
    fn place_user(&mut self, write: &Write) -> Stream {
        let &Write { page, clock, .. } = write;
        self.end_life(page, clock);
        let neighbours = self.heat.get(self.neighbourhood(page)).copied().unwrap_or(0);
        let first = FirstWrite { request_pages: self.request_pages, neighbours };
        let new = self.past.histories.next(page, clock, first);
        let cell = new.cell();
        self.trials.write(page, cell, clock, &mut self.past);
        self.past.histories.set(page, clock, new);
        if clock - self.window_start >= self.window_pages {
            self.end_window(clock);
        }
        self.division.place(Side::Host, self.past.life.median_residual(cell, 0))
    }

    #[inline]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let residual = self.past.residual(moved.page, moved.clock).unwrap_or(0);
        self.division.place(Side::Moved, residual)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.end_life(gone.page, gone.clock);
            self.past.histories.forget(gone.page);
            self.trials.trim(gone.page);
        }
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        let held = self.past.histories.held_bytes() + self.trials.held_bytes();
        held as f64 / f64::from(self.geometry.logical_pages.max(1))
    }

    fn learning(&self) -> Option<Statistics> {
        Some(Statistics { windows: self.windows, ..Statistics::default() })
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.past.histories.touch(page)
    }

    fn audit(&self) -> Result<(), String> {
        self.past.life.audit()
    }
}

#[cfg(test)]
mod tests;
