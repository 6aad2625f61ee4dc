//! Shiro: lifetimes learned inside the drive.
//!
//! For: the separation of user writes by a GRU that sees each page's history, and of moved pages by
//! five levels. Must never know: files, threads, how a model is trained (it hands out a dataset at
//! each window's end and takes a model back). Units: pages; the clock of host page writes. Source:
//! P. Sun et al., "Shiro: Efficient and Accurate In-Storage Data Lifetime Separation for NAND Flash
//! SSDs"; reclaim is `adjusted-greedy`, which asks for `short_lived`.
//!
//! Invariant: nothing looks ahead; a class depends on earlier requests only, but for `shiro-known`,
//! the ceiling, which is told each lifetime. Variants have names of their own: `shiro-levels` keeps
//! to the hierarchy that the agent starts from. Whether a write waits for its prediction
//! (`synchronous`) changes no decision, as a page is classified before it leaves the buffer either
//! way. The wait is counted and reported to the sink, where a device model prices it.

mod classifier;
mod dataset;
mod exchange;
mod features;
mod history;
mod learner;
mod light_model;
mod meta_cache;
mod migration;
mod pages;
mod settings;
mod threshold;
mod train_error;
mod trainer;
mod variants;
mod window;

pub use super::learning::{Classification, Confusion, Statistics};
pub use dataset::{Dataset, LifetimeLabel, evaluate};
pub use features::{Encoding, Features};
pub use learner::Learner;
pub use pages::LifetimeClass;
pub use settings::{Censored, ShiroSettings};
pub use train_error::TrainError;
pub use trainer::{NativeTrainer, THRESHOLD_NOTE, Trainer};

use super::learning::Scores;
use super::{HostRequest, Invalidated, MovedPage, Separation, ShortLived, Stream, Write};
use crate::{Block, Geometry};
use cachewright_infer::StoredModel;
use cachewright_types::Seed;
use classifier::GruClassifier;
use features::Tracker;
use history::History;
use meta_cache::MetaCache;
use migration::{Agent, LEVELS, LearningRates, Situation, USER_TYPES, hierarchical};
use pages::{Pages, STAMP_BYTES, STATE_BYTES};
use threshold::{Guard, Threshold};
use window::{MAX_ROWS, Sampling, Window};

/// As published.
pub const PAPER: u8 = 0;
/// All moved pages on one stream (the paper's ablation).
pub const NO_LEVELS: u8 = 1;
/// Moved pages rise by the rule that the agent starts from.
pub const RISING: u8 = 2;
/// As published, with every class told rather than predicted.
pub const KNOWN: u8 = 3;
/// Steps of a dataset that calibrate the int8 model.
const CALIBRATION_STEPS: usize = 2000;

/// Shiro in one of its variants: [`PAPER`], [`NO_LEVELS`], [`RISING`], [`KNOWN`].
pub struct Shiro<const VARIANT: u8> {
    settings: ShiroSettings,
    encoding: Encoding,
    /// Pages of a superblock that hold metadata, on average.
    meta_share: f64,
    meta_pages: f64,
    /// Data pages whose entries lie together in flash, and such units of a superblock.
    entries: u32,
    meta_units: u32,
    tracker: Tracker,
    pages: Pages,
    window: Window,
    window_pages: u32,
    longest_pages: u32,
    threshold_pages: u32,
    threshold: Threshold,
    /// The writes that set the threshold, where they are more than a window's.
    history: Option<History>,
    trainer: Option<Box<dyn Trainer>>,
    deployed: Option<GruClassifier>,
    scores: Scores,
    agent: Option<Agent>,
    cache: MetaCache,
    /// Meta page of the copy being overwritten, unless it is still in memory.
    wanted: Option<u32>,
    missed: bool,
    /// Whether the last write took a step of the model.
    stepped: bool,
    last: LifetimeClass,
    statistics: Statistics,
    /// The window and the reason of the trainer's last failure.
    error: Option<(u64, TrainError)>,
}

impl<const VARIANT: u8> Shiro<VARIANT> {
    fn empty(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
        let encoding = if settings.log_inputs { Encoding::Log } else { Encoding::Hex };
        let logical = f64::from(geometry.logical_pages);
        let meta_share = settings.meta_share * entry_bytes(settings) as f64 / ENTRY_BYTES as f64;
        let entries = if meta_share > 0.0 { (1.0 / meta_share) as u32 } else { u32::MAX };
        let meta_units = geometry.block_pages.div_ceil(entries);
        let superblocks =
            logical * (1.0 + geometry.over_provisioning()) / f64::from(geometry.block_pages);
        let all_meta = superblocks * f64::from(meta_units);
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
        let learning = LearningRates { rate: settings.learn_rate, explore: settings.explore_share };
        let learns = matches!(VARIANT, PAPER | KNOWN);
        Shiro {
            encoding,
            meta_share,
            meta_pages: meta_share * f64::from(geometry.block_pages),
            entries,
            meta_units,
            tracker: Tracker::new(geometry.logical_pages, settings.page_bytes),
            pages: Pages::new(geometry.logical_pages),
            window: Window::default(),
            window_pages: (window_pages as u32).max(1),
            longest_pages: (longest as u32).max(1),
            threshold_pages: threshold_pages as u32,
            threshold: Threshold::new(guard, seed.derive("threshold")),
            history: longer.then(|| History::new(kept)),
            trainer: (VARIANT != KNOWN)
                .then(|| Box::new(NativeTrainer::new(seed.derive("trainer"))) as Box<dyn Trainer>),
            deployed: None,
            scores: Scores::new((window_pages as u32).max(1)),
            agent: learns.then(|| Agent::new(learning, seed.derive("moves"))),
            cache: MetaCache::new((all_meta * settings.meta_cache_share) as u32, all_meta as u32),
            wanted: None,
            missed: false,
            stepped: false,
            last: LifetimeClass::Unseen,
            statistics: Statistics::default(),
            error: None,
            settings: settings.clone(),
        }
    }

    /// Takes another trainer, or none: the model in use then stays.
    pub fn set_trainer(&mut self, trainer: Option<Box<dyn Trainer>>) {
        self.trainer = trainer;
    }

    /// Puts a model to use. An f32 model is quantised by `calibration`, rows of inputs one after
    /// another. All inputs at 1 are added, so that no digit saturates. Errors: a model of another
    /// shape than these inputs, 32 bytes of state, 2 outputs (long, short).
    pub fn install(&mut self, stored: &StoredModel, calibration: &[f32]) -> Result<(), TrainError> {
        self.deployed = Some(GruClassifier::new(stored, self.encoding, calibration)?);
        self.statistics.trainings += 1;
        Ok(())
    }

    /// The class given to the page placed last.
    pub fn last_class(&self) -> LifetimeClass {
        self.last
    }

    /// Lifetimes up to this are short, once a window had lifetimes.
    pub fn threshold(&self) -> Option<u32> {
        self.threshold.value()
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let (meta_hits, meta_misses) = (self.cache.hits, self.cache.misses);
        Statistics { meta_hits, meta_misses, ..self.statistics }
    }

    /// Why the trainer gave no model when it last failed.
    pub fn last_error(&self) -> Option<&TrainError> {
        self.error.as_ref().map(|(_, error)| error)
    }

    /// One step of the model: the page's state moves on, the class comes out.
    #[inline]
    fn predict(&mut self, page: u32, features: &Features) -> LifetimeClass {
        let Some(classifier) = &mut self.deployed else { return LifetimeClass::Unseen };
        let Some(state) = self.pages.state(page) else { return LifetimeClass::Unseen };
        if self.settings.series_steps == 1 {
            *state = [0; STATE_BYTES];
        }
        self.statistics.predictions += 1;
        self.statistics.waited_predictions += u64::from(self.settings.synchronous);
        self.stepped = true;
        classifier.classify(state, features)
    }

    /// Scores the prediction made at the last write of a page, whose copy ends now.
    #[inline]
    fn score_prediction(&mut self, page: u32, clock: u64) {
        let class = self.pages.class(page);
        if let (Some(age), true) = (self.pages.age(page, clock), class != LifetimeClass::Unseen) {
            self.scores.ended(clock - u64::from(age), class == LifetimeClass::Short, age);
        }
    }

    /// A window ends, unless its lifetimes allow no threshold and it may go on.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self) {
        self.tracker.halve();
        let ordered = self.window.sorted();
        let span = self.threshold_pages.max(self.window.writes());
        let lifetimes = match &self.history {
            Some(history) => history.lifetimes(self.encoding, MAX_ROWS, span),
            None => ordered.lifetimes(self.encoding),
        };
        let longer = u64::from(self.window.writes()) + u64::from(self.window_pages);
        let may_go_on = longer <= u64::from(self.longest_pages);
        let number = self.statistics.windows;
        if !self.threshold.adjust(number, &lifetimes.observed()) && may_go_on {
            return;
        }
        self.statistics.windows += 1;
        if let Some(threshold) = self.threshold.value()
            && let Some(mut trainer) = self.trainer.take()
        {
            if let Err(error) = self.train(trainer.as_mut(), &ordered, number, threshold) {
                self.statistics.failures += 1;
                self.error = Some((number, error));
            }
            self.trainer = Some(trainer);
        }
        self.window.roll();
    }

    /// Hands the window out and puts the model that comes back to use.
    fn train(
        &mut self,
        trainer: &mut dyn Trainer,
        window: &Window,
        number: u64,
        threshold: u32,
    ) -> Result<(), TrainError> {
        let sampling = Sampling {
            share: self.settings.sample_share,
            min_steps: self.settings.sample_steps,
            series_steps: self.settings.series_steps,
            drop_censored: self.settings.censored == Censored::Drop,
        };
        let encoding = self.encoding;
        let mut dataset = match &self.history {
            Some(history) if self.settings.censored == Censored::Final => {
                history.dataset(number, threshold, encoding, sampling, window.writes())
            }
            _ => window.dataset(number, threshold, encoding, sampling),
        };
        dataset.first = self.deployed.is_none();
        if dataset.labelled() == 0 {
            return Ok(());
        }
        let model = trainer.train(&dataset)?;
        let steps = dataset.labels.len().min(CALIBRATION_STEPS);
        let calibration = dataset.rows.get(..steps * self.encoding.inputs());
        self.install(&model, calibration.unwrap_or_default())
    }

    /// The meta page that holds the entry of a data page.
    fn meta_page_of(&self, block: u32, offset: u32) -> u32 {
        block.saturating_mul(self.meta_units).saturating_add(offset / self.entries)
    }
}

/// Bytes of metadata per page with a state, as published.
const ENTRY_BYTES: usize = STAMP_BYTES + STATE_BYTES;

/// Bytes of metadata per page: stamp, and state unless each write is judged alone.
fn entry_bytes(settings: &ShiroSettings) -> usize {
    STAMP_BYTES + if settings.series_steps == 1 { 0 } else { STATE_BYTES }
}

impl<const VARIANT: u8> Separation for Shiro<VARIANT> {
    const WATCHES_INVALIDATION: bool = true;
    const READS_META: bool = true;
    const PREDICTS: bool = true;

    fn streams(&self) -> u32 {
        (USER_TYPES + if VARIANT == NO_LEVELS { 1 } else { LEVELS }) as u32
    }

    fn meta_pages(&self) -> u32 {
        self.meta_pages as u32
    }

    fn meta_part(&self) -> f64 {
        self.meta_pages.fract()
    }

    #[inline]
    fn on_request(&mut self, request: &HostRequest, _clock: u64) {
        self.tracker.on_request(request);
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let &Write { page, clock, .. } = write;
        let wanted = self.wanted.take().filter(|_| self.meta_share > 0.0);
        self.missed = wanted.is_some_and(|meta| !self.cache.look_up(meta));
        self.score_prediction(page, clock);
        let age = self.pages.age(page, clock);
        let features = self.tracker.features(page, age.unwrap_or(0));
        self.window.write(page, age.is_none(), features);
        if let Some(history) = &mut self.history {
            history.write(page, age, features);
        }
        // A first write has no history to judge by, but leaves a state.
        let predicted = self.predict(page, &features);
        let class = match (age, self.threshold.value()) {
            (None, _) => LifetimeClass::Unseen,
            (_, Some(threshold)) if VARIANT == KNOWN && write.lifetime <= threshold => {
                LifetimeClass::Short
            }
            (_, Some(_)) if VARIANT == KNOWN => LifetimeClass::Long,
            _ => predicted,
        };
        self.pages.stamp(page, clock, class);
        self.last = class;
        if let (Some(threshold), true) = (self.threshold.value(), class != LifetimeClass::Unseen) {
            self.scores.predicted(clock, threshold, class == LifetimeClass::Short);
        }
        if self.window.writes().is_multiple_of(self.window_pages) {
            self.end_window();
        }
        Stream(class.index())
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let victim_type = moved.victim.stream.0;
        let level = match &mut self.agent {
            _ if VARIANT == NO_LEVELS => 0,
            Some(agent) => agent.level(&Situation {
                age: self.pages.age(moved.page, moved.clock).unwrap_or(0),
                valid_share: moved.victim.valid_share(),
                victim_type,
                class: self.pages.class(moved.page).index(),
            }),
            None => hierarchical(victim_type),
        };
        Stream((USER_TYPES + level) as u8)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        if gone.trimmed {
            self.score_prediction(gone.page, gone.clock);
            let age = self.pages.age(gone.page, gone.clock);
            if let (Some(history), Some(age)) = (&mut self.history, age) {
                history.trim(age);
            }
            self.pages.forget(gone.page);
            self.window.trim(gone.page);
        } else if gone.block.sealed {
            self.wanted = Some(self.meta_page_of(gone.block.id, gone.offset));
        } else {
            // The entries of an open superblock are in memory until its tail is programmed.
            self.cache.hits += 1;
        }
    }

    fn meta_read(&mut self) -> bool {
        std::mem::take(&mut self.missed)
    }

    fn on_collect(&mut self, victim: &Block, _clock: u64) {
        if let Some(agent) = &mut self.agent {
            agent.on_victim(victim.invalid_share());
        }
    }

    fn on_erase(&mut self, victim: &Block, _clock: u64) {
        let first = victim.id.saturating_mul(self.meta_units);
        (0..self.meta_units).for_each(|meta| self.cache.forget(first.saturating_add(meta)));
    }

    #[inline]
    fn predicted(&mut self) -> Option<bool> {
        std::mem::take(&mut self.stepped).then_some(self.settings.synchronous)
    }

    fn classification(&self) -> Option<Classification> {
        Some(self.scores.classification())
    }

    fn learning(&self) -> Option<Statistics> {
        Some(self.statistics())
    }

    fn short_lived(&self) -> ShortLived {
        let threshold = u64::from(self.threshold.value().unwrap_or(0));
        ShortLived { streams: Stream(LifetimeClass::Short.index()).mask(), threshold }
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        entry_bytes(&self.settings) as f64
    }

    fn memory_bytes_per_page(&self) -> f64 {
        let held = if self.meta_share > 0.0 { self.settings.meta_cache_share } else { 1.0 };
        entry_bytes(&self.settings) as f64 * held
    }

    fn learner(&mut self) -> Option<&mut dyn Learner> {
        if VARIANT == KNOWN { None } else { Some(self) }
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.pages.touch(page)
    }

    fn audit(&self) -> Result<(), String> {
        if self.window.writes() >= self.longest_pages.max(self.window_pages) {
            return Err(format!("{} writes in a window", self.window.writes()));
        }
        self.cache.audit()
    }
}

#[cfg(test)]
mod tests;
