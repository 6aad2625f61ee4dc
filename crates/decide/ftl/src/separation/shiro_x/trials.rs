//! Drives in small that try ways of dividing placements into streams.
//!
//! For: how many streams the host's and the moved pages should have, and whether they share them.
//! No rule of thumb is right for all workloads, so that each way is tried on a drive of its own.
//! Must never know: how lifetimes are learned. Units:
//! pages; the clock of host page writes. Source: miniature simulation (Waldspurger et al., ATC'17),
//! used here on drives; design of Cachewright.
//!
//! A drive in small has as many superblocks as the true one, each of 16 pages. It holds one page of
//! every `share` neighbouring ones, chosen by hash. Over-provisioning, free space and the price of
//! an open superblock are therefore those of the true drive, and so is the reclaim policy. What is
//! known of a page is lent by the true drive. Memory: for each way 8 bytes per page held, and about
//! 90 per superblock.

use super::Past;
use super::record::{COMPARED, WindowSums};
use super::streams::{Side, StreamDivision, StreamPlan};
use crate::reclaim::Named;
use crate::separation::{MovedPage, Separation, Stream, Write};
use crate::{Block, Ftl, Geometry, HostRequest, NEVER, NoSink, reclaim};
use cachewright_types::Seed;
use cachewright_types::seed::mix;

/// The ways that are tried; the first is where it starts.
pub const WAYS: [StreamPlan; COMPARED] = [
    StreamPlan::Apart(3, 3),
    StreamPlan::Apart(2, 2),
    StreamPlan::Apart(4, 4),
    StreamPlan::Shared(6),
];
/// Pages of a superblock in small.
const SMALL_PAGES: u32 = 16;
/// Neighbouring pages for each page held, at least: fewer save too little.
const MIN_SHARE: u32 = 8;
/// The reclaim policy of drives in small where the true one has a policy outside the registry.
const OTHER_RECLAIM: &str = "death-rate";

/// What places pages on a drive in small by the pasts of the true drive's pages.
struct Follower {
    division: StreamDivision,
    /// Lent while the drive in small works.
    past: Past,
    /// Neighbouring pages of which one is held.
    share: u32,
    /// The true clock.
    clock: u64,
    /// The cell of the page written now.
    cell: usize,
}

impl Separation for Follower {
    fn streams(&self) -> u32 {
        u32::from(self.division.way().streams())
    }

    fn place_user(&mut self, _: &Write) -> Stream {
        let residual = self.past.life.median_residual(self.cell, 0);
        self.division.place(Side::Host, residual)
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let residual = self.past.residual(held(moved.page, self.share), self.clock);
        self.division.place(Side::Moved, residual.unwrap_or(0))
    }

    fn on_seal(&mut self, block: &Block) {
        self.division.sealed(block.stream);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        0.0
    }
}

/// The page that is held of the neighbouring ones with this number.
#[inline(always)]
fn held(number: u32, share: u32) -> u32 {
    number * share + (mix(u64::from(number)) % u64::from(share)) as u32
}

/// One way on its drive.
struct WayTrial {
    drive: Ftl<Follower>,
    /// Pages moved until the window before.
    moved: u64,
    /// Whether the drive refused a write.
    failed: bool,
}

/// All ways on their drives.
#[derive(Default)]
pub struct Trials {
    /// Neighbouring pages of which one is held.
    share: u32,
    trials: Vec<WayTrial>,
    record: WindowSums,
}

impl Trials {
    /// Empty drives in small; none where superblocks are too small to be made smaller, or where
    /// the drives take more than `limit` bytes per page of the true drive.
    pub fn new(geometry: &Geometry, limit: f64, reclaim: &Named) -> Trials {
        let share = geometry.block_pages / SMALL_PAGES;
        let mut trials = Trials { share, trials: Vec::new(), record: WindowSums::default() };
        if share >= MIN_SHARE {
            let new = |way: &StreamPlan| trial(geometry, share, *way, reclaim);
            trials.trials = WAYS.iter().filter_map(new).collect();
            let bytes = trials.held_bytes() as f64 / f64::from(geometry.logical_pages.max(1));
            if trials.trials.len() < WAYS.len() || bytes > limit {
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
        (page == held(number, self.share)).then_some(number)
    }

    /// The host wrote a page, which then was in a cell.
    #[inline(always)]
    pub fn write(&mut self, page: u32, cell: usize, clock: u64, past: &mut Past) {
        if let Some(number) = self.number(page) {
            self.trials.iter_mut().for_each(|trial| trial.write(number, cell, clock, past));
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

    /// A window ends; the way to follow from now on. Another one is to be better by so many
    /// standard errors.
    pub fn end_window(&mut self, present: StreamPlan, certainty: f64) -> StreamPlan {
        if self.trials.len() < WAYS.len() {
            return present;
        }
        let mut moved = [f64::INFINITY; WAYS.len()];
        for (moved, trial) in moved.iter_mut().zip(&mut self.trials) {
            *moved = trial.end_window().unwrap_or(f64::INFINITY);
        }
        self.record.add(&moved);
        let index = WAYS.iter().position(|way| *way == present).unwrap_or(0);
        WAYS[self.record.choose(index, certainty)]
    }

    /// Bytes that the drives hold, those of their superblocks as well.
    pub fn held_bytes(&self) -> usize {
        self.trials.iter().map(|trial| trial.drive.held_bytes()).sum()
    }
}

impl WayTrial {
    fn write(&mut self, number: u32, cell: usize, clock: u64, past: &mut Past) {
        let follower = self.drive.separation_mut();
        (follower.cell, follower.clock) = (cell, clock);
        std::mem::swap(&mut follower.past, past);
        self.drive.begin(&HostRequest { first_page: number, pages: 1, write: true });
        self.failed |= self.drive.write(number, NEVER, &mut NoSink).is_err();
        self.drive.end(&mut NoSink);
        std::mem::swap(&mut self.drive.separation_mut().past, past);
    }

    /// Pages moved in the window that ends, if the drive did not fail.
    fn end_window(&mut self) -> Option<f64> {
        let moved = self.drive.counts().moved_pages;
        let new = moved - std::mem::replace(&mut self.moved, moved);
        self.drive.separation_mut().division.cut();
        (!self.failed).then_some(new as f64)
    }
}

/// A drive in small, if there can be one.
fn trial(geometry: &Geometry, share: u32, way: StreamPlan, reclaim: &Named) -> Option<WayTrial> {
    let logical_pages = geometry.logical_pages.div_ceil(share);
    let small = Geometry { logical_pages, block_pages: SMALL_PAGES, space: geometry.space };
    let division = StreamDivision::new(way);
    let follower = Follower { division, past: Past::default(), share, clock: 0, cell: 0 };
    let own = reclaim::by_name(reclaim.name, &reclaim.pairs, &small, Seed(0));
    let reclaim = own.or_else(|_| reclaim::by_name(OTHER_RECLAIM, &[], &small, Seed(0))).ok()?;
    let drive = Ftl::with_name(small, follower, "a way of dividing", reclaim).ok()?;
    Some(WayTrial { drive, moved: 0, failed: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Space;

    fn geometry(block_pages: u32) -> Geometry {
        let space = Space::Fixed { blocks: 80, reserve_blocks: 2, idle_blocks: 2 };
        Geometry { logical_pages: 64 * block_pages, block_pages, space }
    }

    fn own(geometry: &Geometry) -> Named {
        reclaim::by_name("cost-benefit", &[], geometry, Seed(0)).unwrap()
    }

    #[test]
    fn one_page_of_each_share_is_held() {
        let reclaim = own(&geometry(256));
        let trials = Trials::new(&geometry(256), f64::INFINITY, &reclaim);
        assert_eq!((trials.share, trials.trials.len()), (16, WAYS.len()));
        let held: Vec<u32> = (0..64 * 256).filter_map(|page| trials.number(page)).collect();
        assert_eq!(held, (0..1024).collect::<Vec<u32>>());
        assert!(
            trials.trials.iter().all(|trial| trial.drive.held_bytes() > 4 * 1024 + 4 * 80 * 16)
        );
        for (pages, limit) in [(64, f64::INFINITY), (1024, 0.75)] {
            let none = Trials::new(&geometry(pages), limit, &reclaim);
            assert_eq!((none.trials.len(), none.number(0), none.held_bytes()), (0, None, 0));
        }
        assert_eq!(Trials::new(&geometry(2048), 0.75, &reclaim).trials.len(), WAYS.len());
    }

    /// What drives in small move under the reclaim policy of the drive, and what ways are followed.
    #[test]
    fn the_way_that_moves_least_is_followed() {
        let geometry = geometry(256);
        let moved = |reclaim: &Named| {
            let mut trials = Trials::new(&geometry, f64::INFINITY, reclaim);
            let mut past = Past::default();
            let mut way = WAYS[0];
            let mut window_moves = Vec::new();
            for window in 0..40 {
                for write in 0..2048 {
                    let page = (mix(window * 2048 + write) % (64 * 256)) as u32;
                    trials.write(page, 70, window * 2048 + write, &mut past);
                }
                let before: Vec<u64> = trials.trials.iter().map(|trial| trial.moved).collect();
                way = trials.end_window(way, 0.0);
                let new = trials.trials.iter().zip(before).map(|(trial, old)| trial.moved - old);
                window_moves.push(new.collect::<Vec<u64>>());
            }
            assert!(trials.trials.iter().all(|trial| trial.drive.audit() == Ok(())));
            assert!(trials.trials.iter().all(|trial| trial.moved > 0 && !trial.failed));
            let present = WAYS.iter().position(|known| *known == way).unwrap();
            trials.trials[present].failed = true;
            assert_ne!(trials.end_window(way, 2.0), way, "a drive that fails is not followed");
            window_moves
        };
        let by_age = moved(&own(&geometry));
        assert_ne!(by_age, moved(&reclaim::by_name("fifo", &[], &geometry, Seed(0)).unwrap()));
        let (name, policy) = ("outside", own(&geometry).policy);
        let outside = moved(&Named { name, pairs: Vec::new(), policy });
        let rate = reclaim::by_name(OTHER_RECLAIM, &[], &geometry, Seed(0)).unwrap();
        assert_eq!(outside, moved(&rate));
    }
}
