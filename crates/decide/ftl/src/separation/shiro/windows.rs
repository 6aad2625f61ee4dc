//! Windows of writes: what is learned from, and the threshold.
//!
//! Units are pages, host page writes.
//!
//! The writes of the window at hand, and what they teach once it is over. Units are host page
//! writes. Source: Shiro, section III-B and V-E. Settled here: a write without another before the
//! window ended has no label or is long, as the setting `censored` says. A series is cut into
//! pieces of at most `series_steps`. A trim ends a lifetime as a write does. Memory: 28 bytes per
//! write of a window (the host's, not the drive's).
//!
//! The writes of a stretch longer than one window. Their labels are final when they are learned.
//! Units: host page writes. A ring of the last writes. A written or trimmed page finds the write
//! that began its lifetime by its age, so that only learned writes are sorted. Memory: 28 bytes per
//! write of the stretch (the host's, not the drive's).
//!
//! The lifetime up to which a page counts as short-living. Units are lifetimes in host page writes;
//! percentiles in 0..=100. Source: Shiro, section III-B; where the printed step rules lost their
//! signs, the sentences beside them decide (rules 2 and 3 decrement). A lifetime equal to the
//! threshold is short. The inflection point is the last lifetime before the tail; writers with one
//! fixed period would otherwise never be short. Settled here: a candidate cannot win if its
//! percentile is not within (0, 100). Nor can one that leaves less than a share of the lifetimes on
//! one side. Taken as the nearest lifetime, as it once was, it ran away to the shortest or longest
//! there is. Where none of the three can win, the window begins anew at its inflection point among
//! the values that can. No value is below the floor.
//!
//! What one window teaches: series of inputs with labels, and how well a model does on them. Units
//! are steps; shares in `[0, 1]`. Source: Shiro, section III-B and table V.

use super::model::{self, Observed};
use super::pages::{Encoding, Features};
use super::{Censored, ShiroSettings};
use crate::Geometry;
use crate::separation::learning::Confusion;
use cachewright_model::{FloatModel, Int8Model, ModelError, StoredModel, argmax};
use cachewright_types::Seed;
use cachewright_types::seed::mix;
use std::collections::VecDeque;
use std::ops::Range;

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

/// A write whose lifetime has not ended.
const GOING_ON: u32 = 0;

/// One write.
#[derive(Clone, Copy, Debug)]
struct PastWrite {
    page: u32,
    /// How long its copy lived, or [`GOING_ON`].
    lifetime: u32,
    /// Whether the page held nothing before.
    first: bool,
    features: Features,
}

/// The last writes of the host, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    max_writes: usize,
    writes: VecDeque<PastWrite>,
}

impl History {
    /// Remembers so many writes.
    pub fn new(max_writes: usize) -> History {
        History { max_writes: max_writes.max(1), writes: VecDeque::new() }
    }

    /// A page is written; `age` is the lifetime of its old copy, if it had one.
    #[inline]
    pub fn write(&mut self, page: u32, age: Option<u32>, features: Features) {
        if self.writes.len() == self.max_writes {
            self.writes.pop_front();
        }
        self.writes.push_back(PastWrite {
            page,
            lifetime: GOING_ON,
            first: age.is_none(),
            features,
        });
        if let Some(age) = age {
            self.end(self.writes.len().checked_sub(1 + age as usize), age);
        }
    }

    /// A page is trimmed, so many writes after its own.
    pub fn trim(&mut self, age: u32) {
        self.end(self.writes.len().checked_sub(1 + age as usize), age);
    }

    fn end(&mut self, write: Option<usize>, age: u32) {
        if let Some(past) = write.and_then(|write| self.writes.get_mut(write)) {
            // A page trimmed before the next write lived as short as can be.
            past.lifetime = age.max(1);
        }
    }

    /// The lifetimes that began and ended within the last `span` writes, with rows for at most so
    /// many.
    pub fn lifetimes(&self, encoding: Encoding, max_rows: usize, span: u32) -> Lifetimes {
        let mut found = Lifetimes::new(encoding);
        let from = self.writes.len().saturating_sub(span.max(1) as usize);
        let ended = || self.writes.range(from..).filter(|past| past.lifetime != GOING_ON);
        let stride = ended().count() / max_rows.max(1) + 1;
        for (index, PastWrite { lifetime, features, .. }) in ended().enumerate() {
            found.add(*lifetime, index.is_multiple_of(stride).then_some((encoding, features)));
        }
        found
    }

    /// The labelled series of a window's worth of writes, the last ones whose labels are final: as
    /// many writes as the threshold have followed each. None until there are as many.
    pub fn dataset(
        &self,
        number: u64,
        threshold: u32,
        encoding: Encoding,
        sampling: Sampling,
        window_pages: u32,
    ) -> Dataset {
        let end = self.writes.len().saturating_sub(threshold as usize);
        let mut series = Series::new(number, threshold, encoding, sampling.series_steps);
        let Some(start) = end.checked_sub(window_pages as usize) else { return series.finish() };
        let picks = sampling.picks(number, end - start);
        let mut own: Vec<(usize, &PastWrite)> = self.writes.range(start..end).enumerate().collect();
        own.retain(|(_, past)| picks(past.page));
        own.sort_unstable_by_key(|(index, past)| (past.page, *index));
        for (_, past) in own {
            if past.first {
                series.cut();
            }
            let label = match past.lifetime {
                _ if past.first => LifetimeLabel::Context,
                GOING_ON => LifetimeLabel::Long,
                lifetime if lifetime <= threshold => LifetimeLabel::Short,
                _ => LifetimeLabel::Long,
            };
            series.add(past.page, &past.features, label);
        }
        series.finish()
    }
}

/// Fewest lifetimes that say anything about a distribution.
const MIN_LIFETIMES: usize = 32;
/// The step at the start, in percentiles.
const FIRST_STEP: i32 = 5;
/// The longest step, in percentiles.
const LONGEST_STEP: i32 = 10;

/// The threshold and the memory of its last adjustment.
#[derive(Clone, Debug)]
pub struct Threshold {
    value: Option<u32>,
    step: i32,
    direction: i32,
    fixed: bool,
    guard: Guard,
    seed: Seed,
}

/// What no threshold may do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guard {
    /// Leave fewer lifetimes on one side, as a share of all.
    pub min_class_share: f64,
    /// Lie below this.
    pub floor: u32,
}

/// Values that a threshold may take in a window: from the first on, below the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allowed(u32, u32);

impl Allowed {
    fn has(self, value: u32) -> bool {
        (self.0..self.1).contains(&value)
    }
}

impl Guard {
    /// The values that split sorted lifetimes; none if there are no such values.
    fn allowed(self, sorted: &[u32]) -> Option<Allowed> {
        let part = |share: f64| share * sorted.len() as f64;
        let lowest = (part(self.min_class_share).ceil() as usize).saturating_sub(1);
        let first = (*sorted.get(lowest)?).max(self.floor);
        let above = sorted.get(part(1.0 - self.min_class_share).floor() as usize);
        let found = Allowed(first, above.map_or(u32::MAX, |value| *value));
        found.has(first).then_some(found)
    }
}

impl Threshold {
    /// No threshold yet; `seed` draws the samples of the light models. Fixed thresholds are taken
    /// as they come, others under guard.
    pub fn new(guard: Guard, seed: Seed) -> Threshold {
        Threshold { value: None, step: FIRST_STEP, direction: 0, fixed: false, guard, seed }
    }

    /// The threshold, once a window had lifetimes.
    pub fn value(&self) -> Option<u32> {
        self.value
    }

    /// Takes a threshold for good: that of a model which is not trained any more.
    fn fix(&mut self, value: u32) {
        (self.value, self.fixed) = (Some(value), true);
    }

    /// A window ended. Returns whether its lifetimes could be split, or need not be. One with fewer
    /// than 32, or whose lifetimes cannot be split, changes nothing.
    pub fn adjust(&mut self, window: u64, observed: &Observed<'_>) -> bool {
        if self.fixed || observed.all.len() < MIN_LIFETIMES {
            return self.fixed;
        }
        let mut sorted = observed.all.to_vec();
        sorted.sort_unstable();
        let Some(allowed) = self.guard.allowed(&sorted) else { return false };
        let Some(previous) = self.value else {
            self.value = Some(inflection(&sorted, allowed));
            return true;
        };
        let p = percentile_of(&sorted, previous);
        let accuracy = |value: u32| {
            let seed = self.seed.derive(&format!("window {window}"));
            model::accuracy(observed, value, seed)
        };
        let mut best: Option<(f64, u32, i32)> = None;
        // The old threshold first, so that it stays when nothing is better.
        for direction in [0, -1, 1] {
            let Some(value) = value_at(&sorted, p + f64::from(direction * self.step)) else {
                continue;
            };
            let value = value.max(self.guard.floor);
            if !allowed.has(value) {
                continue;
            }
            let found = accuracy(value);
            if best.is_none_or(|(best_accuracy, _, _)| found > best_accuracy) {
                best = Some((found, value, direction));
            }
        }
        let Some((_, value, direction)) = best else {
            self.value = Some(inflection(&sorted, allowed));
            (self.step, self.direction) = (FIRST_STEP, 0);
            return true;
        };
        self.value = Some(value);
        self.step = next_step(self.step, self.direction, direction);
        self.direction = direction;
        true
    }
}

/// The step after a window (Algorithm 1, "adjust step"), from the directions taken in the previous
/// and in this window.
fn next_step(step: i32, previous: i32, current: i32) -> i32 {
    let change = match (previous, current) {
        (0, 0) => 1,
        (0, _) => 0,
        (_, 0) => -1,
        (previous, current) if previous != current => -1,
        _ => 1,
    };
    (step + change).abs().clamp(1, LONGEST_STEP)
}

/// The lifetime at which the sorted curve is farthest below the line from its first to its last
/// point. Both axes are scaled to `[0, 1]`; the first among equals of those allowed wins.
fn inflection(sorted: &[u32], allowed: Allowed) -> u32 {
    let (Some(&first), Some(&last)) = (sorted.first(), sorted.last()) else { return allowed.0 };
    let width = (sorted.len() - 1).max(1) as f64;
    let height = f64::from(last - first).max(1.0);
    let (mut best, mut farthest) = (allowed.0, f64::NEG_INFINITY);
    for (i, lifetime) in sorted.iter().enumerate() {
        let distance = i as f64 / width - f64::from(lifetime - first) / height;
        if distance > farthest && allowed.has(*lifetime) {
            (best, farthest) = (*lifetime, distance);
        }
    }
    best
}

/// The percentile at which a value stands or would stand; the inverse of [`value_at`].
fn percentile_of(sorted: &[u32], value: u32) -> f64 {
    let index = sorted.partition_point(|lifetime| *lifetime <= value).saturating_sub(1);
    100.0 * index as f64 / sorted.len().saturating_sub(1).max(1) as f64
}

/// The value at a percentile; none outside (0, 100).
fn value_at(sorted: &[u32], percentile: f64) -> Option<u32> {
    if percentile <= 0.0 || percentile >= 100.0 {
        return None;
    }
    let last = sorted.len().saturating_sub(1);
    sorted.get((percentile / 100.0 * last as f64).round() as usize).copied()
}

/// What is known of a page write once its window is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeLabel {
    /// Not written again within the threshold, as far as the window shows.
    Long,
    /// Written again within the threshold.
    Short,
    /// A first write, never predicted, or one whose lifetime is not known: a step of a series only.
    Context,
}

impl LifetimeLabel {
    /// The output of the model that stands for it.
    pub fn class(self) -> Option<u8> {
        match self {
            LifetimeLabel::Long => Some(0),
            LifetimeLabel::Short => Some(1),
            LifetimeLabel::Context => None,
        }
    }
}

/// One window's series.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The window, from 0.
    pub window: u64,
    /// Whether no model is in use yet: train to convergence, later one epoch per window.
    pub first: bool,
    /// Lifetimes up to this, in host page writes, are short.
    pub threshold: u32,
    /// What the inputs are.
    pub encoding: Encoding,
    /// Steps per series, each at least 1.
    pub lengths: Vec<u32>,
    /// Inputs, step after step, series after series.
    pub rows: Vec<f32>,
    /// A label per step.
    pub labels: Vec<LifetimeLabel>,
}

impl Dataset {
    /// Where the numbers and the steps of each series lie.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let inputs = self.encoding.inputs();
        let mut end = 0;
        self.lengths.iter().map(move |length| {
            let start = end;
            end += *length as usize;
            (start * inputs..end * inputs, start..end)
        })
    }

    /// The series, each as its rows and its labels.
    pub fn series(&self) -> Vec<(&[f32], &[LifetimeLabel])> {
        let parts = |(rows, steps): (Range<usize>, Range<usize>)| {
            Some((self.rows.get(rows)?, self.labels.get(steps)?))
        };
        self.ranges().map_while(parts).collect()
    }

    /// The output of the model that stands for each step's label.
    pub fn classes(&self) -> Vec<Option<u8>> {
        self.labels.iter().map(|label| label.class()).collect()
    }

    /// Steps with a class.
    pub fn labelled(&self) -> usize {
        self.labels.iter().filter(|label| label.class().is_some()).count()
    }
}

/// A model, f32 or int8, on the labelled steps of a dataset; each series begins with a zero state.
/// Errors: a model that computes on other inputs.
pub fn evaluate(stored: &StoredModel, dataset: &Dataset) -> Result<Confusion, ModelError> {
    let inputs = dataset.encoding.inputs();
    let mut confusion = Confusion::default();
    let mut count = |class: usize, label: &LifetimeLabel| {
        if let Some(truth) = label.class() {
            confusion.add(class == 1, truth == 1);
        }
    };
    if stored.is_int8() {
        let model = Int8Model::new(stored)?;
        let mut scratch = model.scratch();
        for (rows, labels) in dataset.series() {
            let mut state = model.zero_state();
            for (row, label) in rows.chunks_exact(inputs).zip(labels) {
                let (hidden, cell) = (&mut state.hidden, &mut state.cell);
                count(argmax(model.step(&mut scratch, hidden, cell, row)?), label);
            }
        }
    } else {
        let model = FloatModel::new(stored)?;
        let mut scratch = model.scratch();
        for (rows, labels) in dataset.series() {
            let mut state = model.zero_state();
            for (row, label) in rows.chunks_exact(inputs).zip(labels) {
                let (hidden, cell) = (&mut state.hidden, &mut state.cell);
                count(argmax(model.step(&mut scratch, hidden, cell, row)?), label);
            }
        }
    }
    Ok(confusion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

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

    #[test]
    fn lifetimes_are_those_of_a_search_among_the_last_writes() {
        let (mut history, mut rng) = (History::new(70), cachewright_types::Seed(3).rng());
        let (mut all, mut last) = (Vec::new(), HashMap::<u32, u32>::new());
        for clock in 0..400_u32 {
            let page = rng.below(10 + u64::from(clock) / 20) as u32;
            if clock % 7 == 3
                && let Some(before) = last.remove(&page)
            {
                // Page `page` was written at `before`; the last write happened at clock - 1.
                history.trim(clock - 1 - before);
                all.push((before, (clock - 1 - before).max(1)));
            }
            let before = last.insert(page, clock);
            history.write(page, before.map(|before| clock - before), Features::default());
            all.extend(before.map(|before| (before, clock - before)));
        }
        let mut expected: Vec<u32> =
            all.iter().filter(|(began, _)| *began >= 350).map(|(_, lifetime)| *lifetime).collect();
        let found = history.lifetimes(Encoding::Log, 5, 50);
        let observed = found.observed();
        let mut lifetimes = observed.all.to_vec();
        assert_eq!(observed.rows.len(), 6 * observed.lifetimes.len());
        assert!((1..=5).contains(&observed.lifetimes.len()));
        lifetimes.sort_unstable();
        expected.sort_unstable();
        assert!(lifetimes.len() > 10);
        assert_eq!(lifetimes, expected);
    }

    #[test]
    fn only_final_labels_teach() {
        use LifetimeLabel::{Context, Long, Short};
        let mut history = History::new(16);
        // Page 1 is written at 1, 3, 7 and 9; page 2 at 2 and 8; 3 to 5 once.
        for (page, age) in [(1, 0), (2, 0), (1, 2), (3, 0), (4, 0), (5, 0), (1, 4), (2, 6), (1, 2)]
        {
            history.write(page, (age > 0).then_some(age), Features::default());
        }
        let all = Sampling { share: 1.0, min_steps: 0, series_steps: 20, drop_censored: false };
        let found = |threshold, window| {
            let dataset = history.dataset(0, threshold, Encoding::Log, all, window);
            (dataset.lengths, dataset.labels)
        };
        // Threshold 3: writes 1 to 6 are final; page 1 at 3 lived for 4.
        assert_eq!(
            found(3, 6),
            (vec![2, 1, 1, 1, 1], [vec![Context, Long], vec![Context; 4]].concat())
        );
        assert_eq!(found(4, 3), (vec![1, 1, 1], vec![Short, Context, Context]), "writes 3 to 5");
        assert_eq!(found(9, 1).0, [0; 0], "none has been waited for long enough");
    }

    const ANY: Allowed = Allowed(0, u32::MAX);
    const GUARD: Guard = Guard { min_class_share: 0.05, floor: 0 };

    #[test]
    fn the_inflection_point_of_a_long_tail() {
        // Scaled: (0, 0), (1/5, 1/99), (2/5, 2/99), (3/5, 3/99), (4/5, 49/99), (1, 1);
        // distances 0, .190, .380, .570, .305, 0.
        let sorted = [1, 2, 3, 4, 50, 100];
        assert_eq!(inflection(&sorted, ANY), 4);
        assert_eq!(inflection(&sorted, Allowed(5, 100)), 50, "the farthest of those allowed");
        assert_eq!(inflection(&sorted, Allowed(7, 40)), 7, "none of them");
        assert_eq!(inflection(&[5, 5, 5], ANY), 5);
        assert_eq!(inflection(&[], ANY), 0);
    }

    #[test]
    fn percentiles_and_values_are_inverse() {
        let sorted = [10, 20, 30, 40, 50];
        assert_eq!(percentile_of(&sorted, 30), 50.0);
        assert_eq!(
            [50.0, 56.0, 63.0].map(|p| value_at(&sorted, p)),
            [Some(30), Some(30), Some(40)]
        );
        assert_eq!([-4.0, 0.0, 100.0, 104.0].map(|p| value_at(&sorted, p)), [None; 4]);
        assert_eq!([5, 45, 1000].map(|value| percentile_of(&sorted, value)), [0.0, 75.0, 100.0]);
    }

    #[test]
    fn the_four_step_rules() {
        assert_eq!(next_step(5, 0, 0), 6, "no adjustment twice: look farther");
        assert_eq!(next_step(5, 1, 0), 4, "adjusted before, not now: finer");
        assert_eq!(next_step(5, 1, -1), 4, "back again: finer");
        assert_eq!(next_step(5, -1, -1), 6, "the same way: faster");
        assert_eq!(next_step(5, 0, 1), 5, "a first adjustment keeps the step");
        assert_eq!((next_step(10, 1, 1), next_step(1, 1, 0)), (10, 1), "within 1..=10");
    }

    /// 400 writes: half live for about 100 writes, half for about 1000, and the row says which.
    fn clear_cut() -> (Vec<u32>, Vec<f32>) {
        let mut rng = Seed(3).rng();
        let (mut lifetimes, mut rows) = (Vec::new(), Vec::new());
        for i in 0..400 {
            let long = i % 2 == 1;
            lifetimes.push(if long { 1000 } else { 100 } + rng.below(60) as u32);
            rows.extend([f32::from(u8::from(long)), rng.unit() as f32]);
        }
        (lifetimes, rows)
    }

    #[test]
    fn the_threshold_moves_to_where_a_light_model_separates_best() {
        let (lifetimes, rows) = clear_cut();
        let observed = Observed { all: &lifetimes, lifetimes: &lifetimes, inputs: 2, rows: &rows };
        let mut threshold = Threshold::new(GUARD, Seed(1));
        threshold.adjust(0, &observed);
        let first = threshold.value().unwrap();
        assert!((100..160).contains(&first), "the last of the short: {first}");
        threshold.value = Some(130);
        for window in 1..12 {
            threshold.adjust(window, &observed);
        }
        let value = threshold.value().unwrap();
        assert!((150..1010).contains(&value), "between the classes: {value}");
    }

    #[test]
    fn the_floor_holds_from_the_first_window_on() {
        let (lifetimes, rows) = clear_cut();
        let observed = Observed { all: &lifetimes, lifetimes: &lifetimes, inputs: 2, rows: &rows };
        let mut threshold = Threshold::new(Guard { floor: 200, ..GUARD }, Seed(1));
        threshold.adjust(0, &observed);
        assert!(threshold.value().unwrap() >= 200, "the inflection point lies below");
        for window in 1..9 {
            threshold.adjust(window, &observed);
            assert!(threshold.value().unwrap() >= 200);
        }
        let mut threshold = Threshold::new(Guard { floor: 2000, ..GUARD }, Seed(1));
        assert!(!threshold.adjust(0, &observed), "all are shorter");
        assert_eq!(threshold.value(), None);
    }

    /// Random lifetimes of many forms, and rows that say nothing or all: no window leaves less than
    /// a twentieth on either side, where the values allow it.
    #[test]
    fn no_window_collapses() {
        let mut rng = Seed(12).rng();
        for trial in 0..40 {
            let guard = Guard { min_class_share: 0.05, floor: rng.below(40) as u32 };
            let mut threshold = Threshold::new(guard, Seed(trial));
            for window in 0..30 {
                let bits = 3 + rng.below(12);
                let most = 1 + rng.below(1 << bits);
                let ones = rng.below(100);
                let lifetimes: Vec<u32> = (0..500)
                    .map(|_| if rng.below(100) < ones { 1 } else { 1 + rng.below(most) as u32 })
                    .collect();
                let rows: Vec<f32> = match trial % 2 {
                    0 => lifetimes.iter().map(|l| *l as f32 / most as f32).collect(),
                    _ => lifetimes.iter().map(|_| rng.unit() as f32).collect(),
                };
                let (all, inputs) = (&lifetimes[..], 1);
                let observed = Observed { all, lifetimes: all, inputs, rows: &rows };
                let before = threshold.value();
                let possible = threshold.adjust(window, &observed);
                let Some(value) = threshold.value().filter(|_| possible) else {
                    assert_eq!(threshold.value(), before, "nothing to split changes nothing");
                    continue;
                };
                assert!(value >= guard.floor);
                let short = lifetimes.iter().filter(|l| **l <= value).count();
                assert!((25..=475).contains(&short), "{short} of 500 up to {value}");
            }
        }
    }

    #[test]
    fn few_lifetimes_change_nothing() {
        let mut threshold = Threshold::new(GUARD, Seed(1));
        let lifetimes = &[1; 31];
        threshold.adjust(0, &Observed { all: lifetimes, lifetimes, inputs: 1, rows: &[0.0; 31] });
        assert_eq!((threshold.value(), threshold.step), (None, 5));
    }

    #[test]
    fn series_follow_one_another() {
        let dataset = Dataset {
            window: 0,
            first: true,
            threshold: 3,
            encoding: Encoding::Log,
            lengths: vec![1, 2],
            rows: (0..18).map(|x| x as f32).collect(),
            labels: vec![LifetimeLabel::Context, LifetimeLabel::Short, LifetimeLabel::Long],
        };
        let series = dataset.series();
        assert_eq!(series[0], (&dataset.rows[..6], &[LifetimeLabel::Context][..]));
        assert_eq!(series[1].0[0], 6.0);
        assert_eq!((series[1].1.len(), dataset.labelled()), (2, 2));
    }
}
