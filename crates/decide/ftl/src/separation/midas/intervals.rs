//! MiDAS: the update interval distribution.
//!
//! For: how many overwrites come how long after the write they end. Must never know: superblocks,
//! groups. Units: pages of the host clock, counted in units of a quarter superblock. Every
//! `sample_every`-th page is followed; intervals below one unit, too rare in such a sample, are
//! counted over all pages in ten short stretches. Source: MiDAS (FAST'24), section 4.3, and its
//! simulator. Sampling by page number is biased where the numbers are: its hot traffic on zipf is
//! 0.47 where 0.54 is true.

use std::collections::HashSet;

/// Stretches in which every page is followed.
const STRETCHES: u64 = 10;
/// A window is doubled at most to this many times its first length.
const MAX_DOUBLINGS: u32 = 6;

/// The state of a followed page.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LastWrite {
    Never,
    /// Written once, at this moment of the window.
    Once(u64),
    /// Written before; last at this moment.
    Again(u64),
    /// Trimmed.
    Gone,
}

/// Counts one window.
#[derive(Clone, Debug)]
pub struct Intervals {
    unit: u32,
    sample_every: u32,
    /// Writes before the first window.
    skip: u64,
    /// Units of a window.
    window: u32,
    doublings: u32,
    now_unit: u32,
    now_page: u32,
    /// Whether this unit is one of the ten that follow every page, spread evenly.
    in_stretch: bool,
    seen: Vec<LastWrite>,
    counts: Vec<u64>,
    stretch: HashSet<u32>,
    repeats: u64,
}

impl Intervals {
    /// A window of `window` units of `unit` pages that begins after `skip` writes.
    pub fn new(pages: u32, unit: u32, sample_every: u32, skip: u64, window: u32) -> Intervals {
        let sample_every = sample_every.max(1);
        let window = window.max(STRETCHES as u32 + 1);
        Intervals {
            unit: unit.max(1),
            sample_every,
            skip,
            window,
            doublings: 0,
            now_unit: 0,
            now_page: 0,
            in_stretch: false,
            seen: vec![LastWrite::Never; pages.div_ceil(sample_every) as usize],
            counts: vec![0; window as usize],
            stretch: HashSet::new(),
            repeats: 0,
        }
    }

    /// Pages of one unit.
    pub fn unit(&self) -> u32 {
        self.unit
    }

    /// Bytes kept per page of a drive.
    pub fn bytes_per_page(&self) -> f64 {
        size_of::<LastWrite>() as f64 / f64::from(self.sample_every)
    }

    /// Whether the window has ended.
    #[inline(always)]
    pub fn finished(&self) -> bool {
        self.now_unit == self.window
    }

    /// The host wrote a page.
    #[inline(always)]
    pub fn written(&mut self, page: u32) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if self.finished() {
            return;
        }
        self.now_page += 1;
        if self.now_page == self.unit {
            self.now_page = 0;
            self.now_unit += 1;
            self.stretch.clear();
            if self.finished() {
                return;
            }
            let step = self.window / (STRETCHES as u32 + 1);
            let stretches = 1..=STRETCHES as u32;
            self.in_stretch =
                self.now_unit.is_multiple_of(step) && stretches.contains(&(self.now_unit / step));
        }
        if self.in_stretch && !self.stretch.insert(page) {
            self.repeats += 1;
        }
        if page.is_multiple_of(self.sample_every) {
            self.count(page, false);
        }
    }

    /// The host trimmed a page.
    pub fn trimmed(&mut self, page: u32) {
        if self.skip == 0 && !self.finished() && page.is_multiple_of(self.sample_every) {
            self.count(page, true);
        }
    }

    fn count(&mut self, page: u32, gone: bool) {
        let now = u64::from(self.now_unit) * u64::from(self.unit) + u64::from(self.now_page);
        let Some(seen) = self.seen.get_mut((page / self.sample_every) as usize) else { return };
        let before = *seen;
        *seen = match before {
            LastWrite::Never if gone => LastWrite::Never,
            LastWrite::Gone if gone => LastWrite::Gone,
            _ if gone => LastWrite::Gone,
            LastWrite::Never => LastWrite::Once(now),
            _ => LastWrite::Again(now),
        };
        if let LastWrite::Once(then) | LastWrite::Again(then) = before {
            let unit = ((now - then) / u64::from(self.unit)).min(u64::from(self.window) - 1);
            self.counts[unit as usize] += 1;
        }
    }

    /// The counts of the finished window, corrected. Pages written only once have an interval of at
    /// least the window. A window of `W` units sees intervals of `i` units only where both ends
    /// fall into it. The first unit comes from the short stretches.
    pub fn counts(&self) -> Vec<u64> {
        let mut counts = self.counts.clone();
        let window = u64::from(self.window);
        let once =
            self.seen.iter().filter(|seen| matches!(seen, LastWrite::Once(_))).count() as u64;
        counts[window as usize - 1] += once;
        let every = u64::from(self.sample_every);
        if every > 1 {
            counts[0] = self.repeats * window / STRETCHES / every;
        }
        for (unit, count) in (1..).zip(counts.iter_mut().skip(1)) {
            let edge = (window % unit * 2 + unit) as f64 / 2.0 / unit as f64;
            *count += (edge * *count as f64 / (window as f64 / unit as f64)) as u64;
        }
        counts
    }

    /// Begins a new window at once.
    pub fn restart(&mut self) {
        self.now_unit = 0;
        self.now_page = 0;
        self.in_stretch = false;
        self.repeats = 0;
        self.stretch.clear();
        self.seen.fill(LastWrite::Never);
        self.counts.clear();
        self.counts.resize(self.window as usize, 0);
    }

    /// Begins a new window at once, twice as long as the last (unless it grew six times before).
    pub fn restart_longer(&mut self) {
        if self.doublings < MAX_DOUBLINGS {
            self.doublings += 1;
            self.window = self.window.saturating_mul(2);
        }
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_counted_in_units_between_two_writes() {
        // Units of 2 pages, a window of 11 units; moments are 1, 2, 3, ...
        let mut intervals = Intervals::new(8, 2, 1, 2, 11);
        for page in [7, 7, /* skipped */ 0, 1, 0, 2, 3, 1, 4] {
            intervals.written(page);
        }
        // Page 0: 3 - 1 = 2 pages, 1 unit. Page 1: 6 - 2 = 4 pages, 2 units.
        assert_eq!(intervals.counts[..4], [0, 1, 1, 0]);
        intervals.trimmed(4);
        assert_eq!(intervals.counts[0], 1, "trimmed at once");
        intervals.written(4);
        assert_eq!(intervals.counts[..4], [1, 1, 1, 0], "a page that returns has no interval");
        for _ in 0..30 {
            intervals.written(5);
        }
        assert!(intervals.finished());
        // Written once: 2, 3, 7 never, 4 was trimmed: two pages go to the last unit.
        assert_eq!(intervals.counts()[10] - intervals.counts[10], 2 + /* edge */ 1);
    }

    #[test]
    fn the_first_unit_is_counted_over_all_pages() {
        // 1 in 4 pages followed, not these; 22 units of 4: stretches at units 2, 4, .., 20.
        let mut intervals = Intervals::new(100, 4, 4, 0, 22);
        while !intervals.finished() {
            intervals.written(1 + intervals.now_page % 2);
        }
        // In each stretch two of four writes repeat: 20 in all; x 22 units / 10 / 4 = 11.
        assert_eq!((intervals.repeats, intervals.counts()[0]), (20, 11));
        intervals.restart_longer();
        assert_eq!((intervals.window, intervals.repeats, intervals.now_unit), (44, 0, 0));
    }

    #[test]
    fn the_edge_of_the_window_is_corrected() {
        let mut intervals = Intervals::new(4, 1, 1, 0, 12);
        intervals.counts[5] = 100;
        // 12 mod 5 = 2: (2 x 2 + 5) / 2 / 5 = 0.9; 0.9 x 100 / 2.4 = 37.5.
        assert_eq!(intervals.counts()[5], 137);
    }
}
