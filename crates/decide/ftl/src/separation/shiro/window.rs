//! The writes of the window at hand, and what they teach once it is over.
//!
//! For: lifetimes for the threshold, labelled series for the trainer. Must never know: models, what
//! comes after the window. Units: host page writes. Source: Shiro, section III-B and V-E. Settled
//! here: a write without another before the window ended has no label or is long, as the setting
//! `censored` says. A series is cut into pieces of at most `series_steps`. A trim ends a lifetime
//! as a write does. Memory: 28 bytes per write of a window (the host's, not the drive's).

use super::dataset::{Dataset, LifetimeLabel};
use super::features::{Encoding, Features};
use super::light_model::Observed;
use cachewright_types::seed::mix;

/// Most rows handed to the light models.
pub const MAX_ROWS: usize = 20_000;

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordKind {
    FirstWrite,
    Write,
    Trim,
}

#[derive(Clone, Copy, Debug)]
struct WindowRecord {
    page: u32,
    /// Clock, counted from the start of the records.
    clock: u32,
    event: RecordKind,
    features: Features,
}

/// Which part of a window is handed to the trainer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Pages, as a share of all, chosen by hash.
    pub share: f64,
    /// Steps to be expected at least, if the window has them.
    pub min_steps: u32,
    /// Most steps of a series.
    pub series_steps: u32,
    /// Whether a write without another after it within the window is not learned.
    pub drop_censored: bool,
}

impl Sampling {
    /// Which pages teach in a window, out of so many writes.
    pub fn picks(self, window: u64, writes: usize) -> impl Fn(u32) -> bool {
        let enough = f64::from(self.min_steps) / writes.max(1) as f64;
        let limit = (self.share.max(enough).min(1.0) * 4_294_967_296.0) as u64;
        let salt = mix(window);
        move |page| mix(u64::from(page) ^ salt) >> 32 < limit
    }
}

/// Puts the steps of pages, one page after another, together to series.
#[derive(Clone, Debug)]
pub struct Series {
    dataset: Dataset,
    page: Option<u32>,
    max_steps: u32,
}

impl Series {
    /// None yet.
    pub fn new(window: u64, threshold: u32, encoding: Encoding, max_steps: u32) -> Series {
        let (lengths, rows, labels) = (Vec::new(), Vec::new(), Vec::new());
        let dataset = Dataset { window, first: false, threshold, encoding, lengths, rows, labels };
        Series { dataset, page: None, max_steps }
    }

    /// The page at hand begins a new series with its next step.
    pub fn cut(&mut self) {
        self.page = None;
    }

    /// Adds a step of a page.
    pub fn add(&mut self, page: u32, features: &Features, label: LifetimeLabel) {
        let Dataset { lengths, rows, labels, encoding, .. } = &mut self.dataset;
        match lengths.last_mut() {
            Some(length) if self.page == Some(page) && *length < self.max_steps => *length += 1,
            _ => lengths.push(1),
        }
        self.page = Some(page);
        encoding.append(features, rows);
        labels.push(label);
    }

    /// All series.
    pub fn finish(self) -> Dataset {
        self.dataset
    }
}

/// Records one window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    records: Vec<WindowRecord>,
    /// Writes recorded.
    writes: u32,
}

/// Lifetimes within one window and rows for some of them.
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    all: Vec<u32>,
    of_rows: Vec<u32>,
    rows: Vec<f32>,
    inputs: usize,
}

impl Lifetimes {
    /// None yet; rows will be in this form.
    pub fn new(encoding: Encoding) -> Lifetimes {
        Lifetimes { inputs: encoding.inputs(), ..Lifetimes::default() }
    }

    /// Adds a lifetime, with a row of the features at its beginning.
    pub fn add(&mut self, lifetime: u32, row: Option<(Encoding, &Features)>) {
        self.all.push(lifetime);
        if let Some((encoding, features)) = row {
            encoding.append(features, &mut self.rows);
            self.of_rows.push(lifetime);
        }
    }

    /// As the threshold takes them.
    pub fn observed(&self) -> Observed<'_> {
        let Lifetimes { all, of_rows, rows, inputs } = self;
        Observed { all, lifetimes: of_rows, inputs: *inputs, rows }
    }
}

impl Window {
    /// A page is written; `first` if it held nothing before.
    #[inline]
    pub fn write(&mut self, page: u32, first: bool, features: Features) {
        self.writes += 1;
        let event = if first { RecordKind::FirstWrite } else { RecordKind::Write };
        self.records.push(WindowRecord { page, clock: self.writes, event, features });
    }

    /// A page is trimmed.
    pub fn trim(&mut self, page: u32) {
        let (clock, features) = (self.writes, Features::default());
        self.records.push(WindowRecord { page, clock, event: RecordKind::Trim, features });
    }

    /// Writes of the window at hand.
    pub fn writes(&self) -> u32 {
        self.writes
    }

    /// Begins the next window.
    pub fn roll(&mut self) {
        self.records.clear();
        self.writes = 0;
    }

    /// The same window with the records of each page together, in their order.
    pub fn sorted(&self) -> Window {
        let mut sorted = self.clone();
        sorted.records.sort_by_key(|record| record.page);
        sorted
    }

    /// Each record with the lifetime of the copy it wrote, if that is known to have
    /// ended; of [`Window::sorted`].
    fn lives(&self) -> impl Iterator<Item = (&WindowRecord, Option<u32>)> {
        let next = self.records.iter().skip(1).map(Some).chain([None]);
        self.records.iter().zip(next).map(|(record, next)| {
            let next = next.filter(|next| next.page == record.page);
            (record, next.map(|next| next.clock - record.clock))
        })
    }

    /// The lifetimes that began within the window that teaches and have ended.
    pub fn lifetimes(&self, encoding: Encoding) -> Lifetimes {
        let mut found = Lifetimes::new(encoding);
        let stride = self.records.len() / MAX_ROWS + 1;
        for (record, lifetime) in self.lives() {
            let Some(lifetime) = lifetime.filter(|_| record.event != RecordKind::Trim) else {
                continue;
            };
            let wanted = found.all.len().is_multiple_of(stride);
            found.add(lifetime, wanted.then_some((encoding, &record.features)));
        }
        found
    }

    /// The labelled series of sampled pages. `number` is the window's.
    pub fn dataset(
        &self,
        number: u64,
        threshold: u32,
        encoding: Encoding,
        sampling: Sampling,
    ) -> Dataset {
        let picks = sampling.picks(number, self.writes as usize);
        let mut series = Series::new(number, threshold, encoding, sampling.series_steps);
        for (record, lifetime) in self.lives().filter(|(record, _)| picks(record.page)) {
            if record.event == RecordKind::Trim {
                series.cut();
                continue;
            }
            let label = match lifetime {
                _ if record.event == RecordKind::FirstWrite => LifetimeLabel::Context,
                Some(lifetime) if lifetime <= threshold => LifetimeLabel::Short,
                None if sampling.drop_censored => LifetimeLabel::Context,
                _ => LifetimeLabel::Long,
            };
            series.add(record.page, &record.features, label);
        }
        series.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Sampling =
        Sampling { share: 1.0, min_steps: 0, series_steps: 20, drop_censored: false };

    /// Writes, in the order of the clock; a page above 100 stands for a trim of the page - 100.
    fn window(pages: &[u32]) -> Window {
        let mut window = Window::default();
        let mut known = [false; 100];
        for page in pages {
            if *page > 100 {
                window.trim(page - 100);
                known[*page as usize - 100] = false;
            } else {
                window.write(*page, !known[*page as usize], Features::default());
                known[*page as usize] = true;
            }
        }
        window.sorted()
    }

    #[test]
    fn lifetimes_and_labels_of_a_worked_window() {
        use LifetimeLabel::{Context, Long, Short};
        // Page 1 is written at 1, 3, 4 and 8; page 2 at 2 and 7; page 3 at 5 and 6.
        let window = window(&[1, 2, 1, 1, 3, 3, 2, 1]);
        let lifetimes = window.lifetimes(Encoding::Log);
        assert_eq!(lifetimes.all, [2, 1, 4, 5, 1]);
        assert_eq!(lifetimes.observed().rows.len(), 5 * 6);
        let dataset = window.dataset(0, 3, Encoding::Log, ALL);
        assert_eq!(dataset.lengths, [4, 2, 2]);
        let expected = [Context, Short, Long, Long, Context, Long, Context, Long];
        assert_eq!(dataset.labels, expected, "the last write of each page is long");
        let dropped = window.dataset(0, 3, Encoding::Log, Sampling { drop_censored: true, ..ALL });
        let expected = [Context, Short, Long, Context, Context, Context, Context, Context];
        assert_eq!(dropped.labels, expected, "or has no label");
        assert_eq!((&dropped.lengths, &dropped.rows), (&dataset.lengths, &dataset.rows));
    }

    #[test]
    fn a_trim_ends_a_life_and_a_series() {
        let window = window(&[1, 1, 2, 2, 101, 1, 1]);
        assert_eq!(window.lifetimes(Encoding::Log).all, [1, 2, 1, 1]);
        let dataset = window.dataset(0, 3, Encoding::Log, ALL);
        assert_eq!(dataset.lengths, [2, 2, 2]);
        use LifetimeLabel::{Context, Long, Short};
        let expected = [Context, Short, Context, Long, Context, Long];
        assert_eq!(dataset.labels, expected, "after a trim a page is new");
    }

    #[test]
    fn series_are_capped_and_pages_sampled() {
        let pages: Vec<u32> = (0..2000).map(|i| i % 50).collect();
        let window = window(&pages);
        let capped = window.dataset(0, 60, Encoding::Hex, Sampling { series_steps: 15, ..ALL });
        assert_eq!(capped.lengths[..4], [15, 15, 10, 15]);
        let tenth = Sampling { share: 0.1, ..ALL };
        let steps = |sampling| window.dataset(3, 60, Encoding::Hex, sampling).labels.len();
        assert!((40..500).contains(&steps(tenth)), "{}", steps(tenth));
        assert_eq!(steps(Sampling { min_steps: 4000, ..tenth }), 2000);
        assert_eq!(steps(tenth) % 40, 0, "a page is taken whole or not at all");
    }
}
