//! Windows of writes: what is learned from, and the threshold.
//!
//! For: when a window ends, its lifetimes, its dataset. Must never know: models. Units: pages, host
//! page writes.

use super::dataset::Dataset;
use super::features::{Encoding, Features};
use super::history::History;
use super::settings::{Censored, ShiroSettings};
use super::threshold::{Guard, Threshold};
use super::window::{MAX_ROWS, Sampling, Window};
use crate::Geometry;
use cachewright_types::Seed;

/// The window under way, and the writes before it as far as they are needed.
#[derive(Clone, Debug)]
pub struct Windows {
    window: Window,
    window_pages: u32,
    longest_pages: u32,
    threshold_pages: u32,
    threshold: Threshold,
    /// The writes that set the threshold, where they are more than a window's.
    history: Option<History>,
    /// Lifetimes of a dataset are final.
    is_final: bool,
    sampling: Sampling,
    /// Windows that have ended.
    ended: u64,
}

impl Windows {
    /// The first window.
    pub fn new(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Windows {
        let logical = f64::from(geometry.logical_pages);
        let window_pages = logical * settings.window_share;
        let longest = logical * settings.longest_window.max(settings.window_share);
        let threshold_pages = logical * settings.threshold_window.max(settings.window_share);
        let floor = (f64::from(geometry.block_pages) * settings.threshold_floor) as u32;
        let guard = Guard { min_class_share: settings.least_class, floor };
        let is_final = settings.censored == Censored::Final;
        // A window's writes, and before them those that make their lifetimes final.
        let span = longest.max(threshold_pages);
        let kept = if is_final { span + longest } else { span } as usize;
        let longer = threshold_pages > window_pages || is_final;
        Windows {
            window: Window::default(),
            window_pages: (window_pages as u32).max(1),
            longest_pages: (longest as u32).max(1),
            threshold_pages: threshold_pages as u32,
            threshold: Threshold::new(guard, seed.derive("threshold")),
            history: longer.then(|| History::new(kept)),
            is_final,
            sampling: Sampling {
                share: settings.sample_share,
                min_steps: settings.sample_steps,
                series_steps: settings.series_steps,
                drop_censored: settings.censored == Censored::Drop,
            },
            ended: 0,
        }
    }

    /// Page writes of the host per window.
    pub fn window_pages(&self) -> u32 {
        self.window_pages
    }

    /// Windows that have ended.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Lifetimes up to this are short, once a window had lifetimes.
    #[inline]
    pub fn threshold(&self) -> Option<u32> {
        self.threshold.value()
    }

    /// Takes a threshold for good.
    pub fn fix_threshold(&mut self, threshold: u32) {
        self.threshold.fix(threshold);
    }

    /// A page is written whose copy before was written `age` writes ago.
    #[inline]
    pub fn write(&mut self, page: u32, age: Option<u32>, features: Features) {
        self.window.write(page, age.is_none(), features);
        if let Some(history) = &mut self.history {
            history.write(page, age, features);
        }
    }

    /// A page is trimmed that was written `age` writes ago.
    pub fn trim(&mut self, page: u32, age: Option<u32>) {
        if let (Some(history), Some(age)) = (&mut self.history, age) {
            history.trim(age);
        }
        self.window.trim(page);
    }

    /// Whether the window may end with the write at hand.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.window.writes().is_multiple_of(self.window_pages)
    }

    /// Ends the window, unless its lifetimes allow no threshold and it may go on; returns its
    /// writes in order. [`Windows::begin`] is called when they have been learned from.
    pub fn end(&mut self, encoding: Encoding) -> Option<Window> {
        let ordered = self.window.sorted();
        let span = self.threshold_pages.max(self.window.writes());
        let lifetimes = match &self.history {
            Some(history) => history.lifetimes(encoding, MAX_ROWS, span),
            None => ordered.lifetimes(encoding),
        };
        let longer = u64::from(self.window.writes()) + u64::from(self.window_pages);
        let may_go_on = longer <= u64::from(self.longest_pages);
        if !self.threshold.adjust(self.ended, &lifetimes.observed()) && may_go_on {
            return None;
        }
        self.ended += 1;
        Some(ordered)
    }

    /// The next window begins.
    pub fn begin(&mut self) {
        self.window.roll();
    }

    /// What a window that has just ended teaches about a threshold.
    pub fn dataset(&self, window: &Window, threshold: u32, encoding: Encoding) -> Dataset {
        let (number, sampling) = (self.ended - 1, self.sampling);
        match &self.history {
            Some(history) if self.is_final => {
                history.dataset(number, threshold, encoding, sampling, window.writes())
            }
            _ => window.dataset(number, threshold, encoding, sampling),
        }
    }

    /// Checks that the window is not too long. Errors: its length, in words.
    pub fn audit(&self) -> Result<(), String> {
        if self.window.writes() >= self.longest_pages.max(self.window_pages) {
            return Err(format!("{} writes in a window", self.window.writes()));
        }
        Ok(())
    }
}
