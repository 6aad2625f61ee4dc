//! Drives in small that try ways of dividing placements into streams.
//!
//! For: how many streams the host's and the moved pages should have, and whether they share them.
//! No rule of thumb is right for all workloads, so that each way is tried on a drive of its own.
//! Must never know: how lifetimes are learned (it is told bins of residual lifetimes). Units:
//! pages; the clock of host page writes. Source: miniature simulation (Waldspurger et al., ATC'17),
//! used here on drives; design of Cachewright.
//!
//! A drive in small has as many superblocks as the true one, each of 16 pages. It holds one page of
//! every `share` neighbouring ones, chosen by hash. Over-provisioning, free space and the price of
//! an open superblock are therefore those of the true drive. Reclaim is `death-rate`. Memory: 14
//! bytes for each way and page held.

use super::history::{SPANS, span};
use super::streams::{Side, StreamDivision, StreamPlan};
use crate::separation::{MovedPage, Separation, Stream, Write};
use crate::{Block, Ftl, Geometry, HostRequest, NEVER, NoSink, reclaim};
use cachewright_types::Seed;
use cachewright_types::seed::mix;

/// The ways that are tried; the first is where it starts.
pub const WAYS: [StreamPlan; 4] = [
    StreamPlan::Apart(3, 3),
    StreamPlan::Apart(2, 2),
    StreamPlan::Apart(4, 4),
    StreamPlan::Shared(6),
];
/// Pages of a superblock in small.
const SMALL_PAGES: u32 = 16;
/// Neighbouring pages for each page held, at least: fewer save too little.
const MIN_SHARE: u32 = 8;
/// How much the moves of a window count for, of those of the window after it.
const KEEP: f64 = 0.95;
/// Windows before the first choice.
const WARM_WINDOWS: u64 = 25;
/// Another way is chosen if it moves less than this share of what the present one moves.
const BETTER: f64 = 0.97;
/// Bytes of a drive in small, for each page it holds: mapping both ways, last write, cell.
const BYTES: f64 = 4.0 + 4.0 + 4.0 + 2.0;

/// What places pages on a drive in small: it is told cells and residual lifetimes.
struct Follower {
    division: StreamDivision,
    medians: Vec<[u8; SPANS]>,
    cells: Vec<u16>,
    last: Vec<u32>,
    /// The true clock.
    clock: u64,
    /// The cell of the page written now.
    cell: u16,
}

impl Follower {
    fn residual(&self, cell: u16, age: u32) -> usize {
        self.medians.get(usize::from(cell)).map_or(0, |row| usize::from(row[span(age)]))
    }
}

impl Separation for Follower {
    fn streams(&self) -> u32 {
        u32::from(self.division.way().streams())
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let index = write.page as usize;
        if let (Some(cell), Some(last)) = (self.cells.get_mut(index), self.last.get_mut(index)) {
            (*cell, *last) = (self.cell, self.clock as u32);
        }
        let residual = self.residual(self.cell, 0);
        self.division.place(Side::Host, residual)
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let index = moved.page as usize;
        let cell = self.cells.get(index).copied().unwrap_or(0);
        let age = (self.clock as u32).wrapping_sub(self.last.get(index).copied().unwrap_or(0));
        let residual = self.residual(cell, age);
        self.division.place(Side::Moved, residual)
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        BYTES
    }
}

/// One way on its drive.
struct ShareTrial {
    drive: Ftl<Follower>,
    /// Pages moved until the window before.
    moved: u64,
    /// Pages moved of late.
    score: f64,
    /// Whether the drive refused a write.
    failed: bool,
}

/// All ways on their drives.
pub struct Trials {
    /// Neighbouring pages of which one is held.
    share: u32,
    trials: Vec<ShareTrial>,
    windows: u64,
}

impl Trials {
    /// Empty drives in small; none where superblocks are too small to be made smaller.
    pub fn new(geometry: &Geometry, wanted: bool) -> Trials {
        let share = geometry.block_pages / SMALL_PAGES;
        let mut trials = Trials { share, trials: Vec::new(), windows: 0 };
        if wanted && share >= MIN_SHARE {
            trials.trials = WAYS.iter().filter_map(|way| trial(geometry, share, *way)).collect();
            if trials.trials.len() < WAYS.len() {
                trials.trials.clear();
            }
        }
        trials
    }

    /// The number in small of a page, if it is held.
    #[inline(always)]
    fn number(&self, page: u32) -> Option<u32> {
        if self.trials.is_empty() {
            return None;
        }
        let number = page / self.share;
        let chosen = (mix(u64::from(number)) % u64::from(self.share)) as u32;
        (page - number * self.share == chosen).then_some(number)
    }

    /// The host wrote a page, which then was in a cell.
    #[inline(always)]
    pub fn write(&mut self, page: u32, cell: usize, clock: u64) {
        if let Some(number) = self.number(page) {
            self.trials.iter_mut().for_each(|trial| trial.write(number, cell as u16, clock));
        }
    }

    /// The host trimmed a page.
    pub fn trim(&mut self, page: u32) {
        if let Some(number) = self.number(page) {
            for trial in &mut self.trials {
                trial.failed |= trial.drive.trim(number, 1).is_err();
            }
        }
    }

    /// A window ends; the way to follow from now on.
    pub fn end_window(&mut self, medians: &[[u8; SPANS]], present: StreamPlan) -> StreamPlan {
        self.windows += 1;
        for trial in &mut self.trials {
            trial.end_window(medians);
        }
        let score = |way: StreamPlan| {
            let known = WAYS.iter().zip(&self.trials).find(|(known, _)| **known == way);
            known.map_or(f64::INFINITY, |(_, trial)| trial.worth())
        };
        let best = WAYS.into_iter().min_by(|a, b| score(*a).total_cmp(&score(*b)));
        let enough = self.windows > WARM_WINDOWS && !self.trials.is_empty();
        match best {
            Some(best) if enough && score(best) < BETTER * score(present) => best,
            _ => present,
        }
    }

    /// Bytes for each page of the true drive.
    pub fn bytes_per_page(&self) -> f64 {
        BYTES * self.trials.len() as f64 / f64::from(self.share.max(1))
    }
}

impl ShareTrial {
    fn write(&mut self, number: u32, cell: u16, clock: u64) {
        let follower = self.drive.separation_mut();
        (follower.cell, follower.clock) = (cell, clock);
        self.drive.begin(&HostRequest { first_page: number, pages: 1, write: true });
        self.failed |= self.drive.write(number, NEVER, &mut NoSink).is_err();
        self.drive.end(&mut NoSink);
    }

    fn end_window(&mut self, medians: &[[u8; SPANS]]) {
        let moved = self.drive.counts().moved_pages;
        self.score = KEEP * self.score + (moved - self.moved) as f64;
        self.moved = moved;
        let follower = self.drive.separation_mut();
        follower.medians.clear();
        follower.medians.extend_from_slice(medians);
        follower.division.cut();
    }

    fn worth(&self) -> f64 {
        if self.failed { f64::INFINITY } else { self.score }
    }
}

/// A drive in small, if there can be one.
fn trial(geometry: &Geometry, share: u32, way: StreamPlan) -> Option<ShareTrial> {
    let logical_pages = geometry.logical_pages.div_ceil(share);
    let small = Geometry { logical_pages, block_pages: SMALL_PAGES, space: geometry.space };
    let follower = Follower {
        division: StreamDivision::new(way),
        medians: Vec::new(),
        cells: vec![0; logical_pages as usize],
        last: vec![0; logical_pages as usize],
        clock: 0,
        cell: 0,
    };
    let reclaim = reclaim::by_name("death-rate", &[], &small, Seed(0)).ok()?;
    let drive = Ftl::with_name(small, follower, "a way of dividing", reclaim).ok()?;
    Some(ShareTrial { drive, moved: 0, score: 0.0, failed: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;

    fn geometry(block_pages: u32) -> Geometry {
        let space = Space::Fixed { blocks: 80, reserve_blocks: 2, idle_blocks: 2 };
        Geometry { logical_pages: 64 * block_pages, block_pages, space }
    }

    #[test]
    fn one_page_of_each_share_is_held() {
        let trials = Trials::new(&geometry(256), true);
        assert_eq!((trials.share, trials.trials.len()), (16, WAYS.len()));
        let held: Vec<u32> = (0..64 * 256).filter_map(|page| trials.number(page)).collect();
        assert_eq!(held, (0..1024).collect::<Vec<u32>>());
        assert_eq!(trials.bytes_per_page(), 14.0 * 4.0 / 16.0);
        for none in [Trials::new(&geometry(64), true), Trials::new(&geometry(256), false)] {
            assert_eq!((none.trials.len(), none.number(0), none.bytes_per_page()), (0, None, 0.0));
        }
    }

    /// The way that moves least is chosen, once warm and if it is better by enough.
    #[test]
    fn the_way_that_moves_least_is_followed() {
        let mut trials = Trials::new(&geometry(256), true);
        let medians = vec![[20; SPANS]; super::super::history::CELLS];
        let mut way = WAYS[0];
        for window in 0..WARM_WINDOWS + 5 {
            for write in 0..2048 {
                let page = (mix(window * 2048 + write) % (64 * 256)) as u32;
                trials.write(page, 70, window * 2048 + write);
            }
            let scores = [50.0, 90.0, 49.0, 70.0];
            for (trial, score) in trials.trials.iter_mut().zip(scores) {
                // What the drives moved in this window is added to what is set here.
                trial.score = 1e6 * score;
            }
            way = trials.end_window(&medians, way);
            assert_eq!(way, WAYS[0], "2 per cent are not enough");
        }
        assert!(trials.trials.iter().all(|trial| trial.moved > 0 && !trial.failed));
        trials.trials[3].score = 1e6;
        assert_eq!(trials.end_window(&medians, way), WAYS[3]);
        trials.trials[3].failed = true;
        assert_eq!(trials.end_window(&medians, WAYS[3]), WAYS[2]);
        assert!(trials.trials.iter().all(|trial| trial.drive.audit() == Ok(())));
    }
}
