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
//! the rule-based schemes (Shiro's 36 lie in flash). The drives in small add the pages they hold
//! (3.5 at 256 pages per superblock, 0.1 at 8192). Invariant: nothing looks ahead; a decision
//! depends on earlier requests only.

mod history;
mod life;
mod streams;
mod trials;

use super::learning::Statistics;
use super::{HostRequest, Invalidated, MovedPage, Registered, Separation, Stream, Write};
use crate::{Block, Entry, Geometry};
use cachewright_types::{Seed, declare};
use history::{FirstWrite, Histories, span};
use life::LifeTable;
use streams::{STREAMS, Side, StreamDivision};
use trials::{Trials, WAYS};

declare! {
    /// The numbers of shiro-x.
    pub struct ShiroXSettings {
        /// whether ways of dividing pages into streams are tried on drives in small
        trials: bool = true, "true or false";
        /// host writes between two lessons, as a share of the drive
        window_share: f64 = 0.1, "ratio", 0.001 ..= 4.0;
        /// how much a window counts for, of the window after it
        keep: f64 = 0.9, "ratio", 0.0 ..= 1.0;
        /// pages of a neighbourhood, whose recent requests tell first writes apart
        neighbourhood_pages: u32 = 256, "pages", 1 ..= 65536;
    }
}

/// The scheme.
pub struct ShiroX {
    settings: ShiroXSettings,
    histories: Histories,
    life: LifeTable,
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

    /// The stream of a page by its cell and age.
    #[inline(always)]
    fn place(&mut self, side: Side, cell: usize, age: u32) -> Stream {
        self.division.place(side, self.life.median_residual(cell, span(age)))
    }

    /// The copy of a page, if it has one, came to its end.
    #[inline(always)]
    fn end_life(&mut self, page: u32, clock: u64) {
        if let Some((cell, age)) = self.histories.look(page, clock) {
            let from = age_before(age, clock - self.window_start);
            self.life.survived(cell, from, age);
            self.life.died(cell, age);
        }
    }

    /// A window ends: pages that outlived it are counted, then hazards and streams follow.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self, clock: u64) {
        for (cell, age) in self.histories.iter(clock) {
            let from = age_before(age, clock - self.window_start);
            self.life.survived(cell, from, age);
        }
        self.life.end_window();
        let way = self.trials.end_window(self.life.medians(), self.division.way());
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
            histories: Histories::new(pages),
            life: LifeTable::new(pages, settings.keep),
            division: StreamDivision::new(WAYS[0]),
            trials: Trials::new(geometry, settings.trials),
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
        let cell = self.histories.write(page, clock, first);
        self.trials.write(page, cell, clock);
        if clock - self.window_start >= self.window_pages {
            self.end_window(clock);
        }
        self.place(Side::Host, cell, 0)
    }

    #[inline]
    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        match self.histories.look(moved.page, moved.clock) {
            Some((cell, age)) => self.place(Side::Moved, cell, age),
            None => self.division.place(Side::Moved, 0),
        }
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.end_life(gone.page, gone.clock);
            self.histories.forget(gone.page);
            self.trials.trim(gone.page);
        }
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        history::BYTES as f64 + self.trials.bytes_per_page()
    }

    fn learning(&self) -> Option<Statistics> {
        Some(Statistics { windows: self.windows, ..Statistics::default() })
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.histories.touch(page)
    }

    fn audit(&self) -> Result<(), String> {
        self.life.audit()
    }
}

#[cfg(test)]
mod tests;
