//! Shiro: lifetimes learned inside the drive.
//!
//! For: the separation of user writes by a GRU that sees each page's history, and of moved pages by
//! five levels. Must never know: files, threads, how a model is trained (it hands out a dataset at
//! each window's end and takes a model back). Units: pages; the clock of host page writes. Source:
//! P. Sun et al., "Shiro: Efficient and Accurate In-Storage Data Lifetime Separation for NAND Flash
//! SSDs"; reclaim is `adjusted-greedy`, which asks for `short_lived`.
//!
//! Invariant: nothing looks ahead; a class depends on earlier requests only. Deviations: the fixed
//! hierarchy moves pages unless `learn_moves` is set; the paper's agent did not beat the hierarchy
//! it starts from. Whether a write waits for its prediction (`synchronous`) changes no decision, as
//! a page is classified before it leaves the buffer either way; it is counted and told to the sink,
//! where a device model prices it.

mod backprop;
mod classifier;
mod dataset;
mod features;
mod history;
mod learner;
mod logistic;
mod meta_cache;
mod migration;
mod pages;
mod threshold;
mod trainer;
mod window;

pub use super::learning::{Classification, Confusion, Statistics};
pub use dataset::{Dataset, Label, evaluate};
pub use features::{Encoding, Features};
pub use learner::{Learner, THRESHOLD_NOTE};
pub use pages::Class;
pub use trainer::{NativeTrainer, TrainError, Trainer};

use super::learning::Scores;
use super::{HostRequest, Invalidated, Moved, Registered, Separation, ShortLived, Stream, Write};
use crate::{Block, Entry, Geometry};
use cachewright_infer::StoredModel;
use cachewright_types::{Seed, settings};
use classifier::Classifier;
use features::Tracker;
use history::History;
use meta_cache::MetaCache;
use migration::{Agent, LEVELS, Learning, Situation, USER_TYPES, hierarchical};
use pages::{Pages, STAMP_BYTES, STATE_BYTES};
use threshold::Threshold;
use window::{MOST_ROWS, Sampling, Window};

/// As published.
pub const PAPER: u8 = 0;
/// All moved pages on one stream (the paper's ablation).
pub const NO_LEVELS: u8 = 1;
/// Steps of a dataset that calibrate the int8 model.
const CALIBRATION_STEPS: usize = 2000;

settings! {
    /// The numbers of Shiro.
    pub struct ShiroSettings {
        /// bytes of a page, for meta pages, chunks and sequential runs
        page_bytes: u32 = 16384, "bytes", 512 ..= 1048576;
        /// host writes between two trainings, as a share of the drive
        window_share: f64 = 0.05, "ratio", 0.001 ..= 4.0;
        /// host writes whose lifetimes set the threshold, as a share of the drive; a window or more
        threshold_window: f64 = 0.05, "ratio", 0.001 ..= 4.0;
        /// whether the threshold stays between a quarter superblock and its window
        clamp_threshold: bool = false, "true or false", 0 ..= 1;
        /// whether a write teaches only once as many writes as the threshold have followed it
        final_labels: bool = false, "true or false", 0 ..= 1;
        /// pages handed to the trainer, as a share of those written
        sample_share: f64 = 0.1, "ratio", 0.001 ..= 1.0;
        /// page writes handed to the trainer at least, on small drives
        sample_steps: u32 = 4000, "pages", 0 ..= 1000000000;
        /// most writes of a page in one training series; 1 also forgets states between writes
        series_steps: u32 = 20, "writes", 1 ..= 1000;
        /// whether inputs are logarithms of features rather than their hex digits
        log_inputs: bool = false, "true or false", 0 ..= 1;
        /// whether a write waits for its prediction: the same decisions, another latency
        synchronous: bool = false, "true or false", 0 ..= 1;
        /// whether moved pages follow the Q-learning agent rather than the fixed hierarchy
        learn_moves: bool = false, "true or false", 0 ..= 1;
        /// share of a reward's difference that one update of the agent takes
        learn_rate: f64 = 0.001, "ratio", 0.0 ..= 1.0;
        /// decisions of the agent made at random
        explore_share: f64 = 0.01, "ratio", 0.0 ..= 1.0;
        /// meta pages held in memory, as a share of all
        meta_cache_share: f64 = 0.01, "ratio", 0.0 ..= 1.0;
    }
}

/// Shiro in one of its variants: [`PAPER`], [`NO_LEVELS`].
pub struct Shiro<const VARIANT: u8> {
    settings: ShiroSettings,
    encoding: Encoding,
    /// Entries of metadata in a page.
    entries: u32,
    meta_pages: u32,
    data_pages: u32,
    tracker: Tracker,
    pages: Pages,
    window: Window,
    window_pages: u32,
    threshold: Threshold,
    /// The writes that set the threshold, where they are more than a window's.
    history: Option<History>,
    trainer: Option<Box<dyn Trainer>>,
    deployed: Option<Classifier>,
    scores: Scores,
    agent: Option<Agent>,
    cache: MetaCache,
    /// Meta page of the copy being overwritten, unless it is still in memory.
    wanted: Option<u32>,
    missed: bool,
    /// Whether the last write took a step of the model.
    stepped: bool,
    last: Class,
    statistics: Statistics,
    /// The window and the reason of the trainer's last failure.
    error: Option<(u64, TrainError)>,
}

impl<const VARIANT: u8> Shiro<VARIANT> {
    fn empty(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
        let encoding = if settings.log_inputs { Encoding::Log } else { Encoding::Hex };
        let entries = (settings.page_bytes / entry_bytes(settings) as u32).max(1);
        let meta_pages = meta_pages(geometry.block_pages, entries);
        let data_pages = geometry.block_pages.saturating_sub(meta_pages).max(1);
        let physical = f64::from(geometry.logical_pages) * (1.0 + geometry.over_provisioning());
        let all_meta = physical / f64::from(data_pages) * f64::from(meta_pages);
        let window_pages = f64::from(geometry.logical_pages) * settings.window_share;
        let threshold_pages = f64::from(geometry.logical_pages)
            * settings.threshold_window.max(settings.window_share);
        let mut threshold = Threshold::new(seed.derive("threshold"));
        if settings.clamp_threshold {
            threshold.keep_within(geometry.block_pages / 4, threshold_pages as u32);
        }
        let before = if settings.final_labels { window_pages as u32 } else { 0 };
        let longer = threshold_pages > window_pages || settings.final_labels;
        let learning = Learning { rate: settings.learn_rate, explore: settings.explore_share };
        let learns = VARIANT != NO_LEVELS && settings.learn_moves;
        Shiro {
            encoding,
            entries,
            meta_pages,
            data_pages,
            tracker: Tracker::new(geometry.logical_pages, settings.page_bytes),
            pages: Pages::new(geometry.logical_pages),
            window: Window::default(),
            window_pages: (window_pages as u32).max(1),
            threshold,
            history: longer.then(|| History::new(threshold_pages as u32, before)),
            trainer: Some(Box::new(NativeTrainer::new(seed.derive("trainer")))),
            deployed: None,
            scores: Scores::new((window_pages as u32).max(1)),
            agent: learns.then(|| Agent::new(learning, seed.derive("moves"))),
            cache: MetaCache::new((all_meta * settings.meta_cache_share) as u32, all_meta as u32),
            wanted: None,
            missed: false,
            stepped: false,
            last: Class::Unseen,
            statistics: Statistics::default(),
            error: None,
            settings: settings.clone(),
        }
    }

    /// Takes another trainer, or none: the model in use then stays.
    pub fn set_trainer(&mut self, trainer: Option<Box<dyn Trainer>>) {
        self.trainer = trainer;
    }

    /// Puts a model to use; an f32 model is quantised by `calibration`, rows of inputs one after
    /// another (all inputs at 1 are added, so that no digit saturates). Errors: a model of another
    /// shape than these inputs, 32 bytes of state, 2 outputs (long, short).
    pub fn install(&mut self, stored: &StoredModel, calibration: &[f32]) -> Result<(), TrainError> {
        self.deployed = Some(Classifier::new(stored, self.encoding, calibration)?);
        self.statistics.trainings += 1;
        Ok(())
    }

    /// The class given to the page placed last.
    pub fn last_class(&self) -> Class {
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
    fn predict(&mut self, page: u32, features: &Features) -> Class {
        let Some(classifier) = &mut self.deployed else { return Class::Unseen };
        let Some(state) = self.pages.state(page) else { return Class::Unseen };
        if self.settings.series_steps == 1 {
            *state = [0; STATE_BYTES];
        }
        self.statistics.predictions += 1;
        self.statistics.waited_predictions += u64::from(self.settings.synchronous);
        self.stepped = true;
        classifier.classify(state, features)
    }

    /// Judges the prediction made at the last write of a page, whose copy ends now.
    #[inline]
    fn judge(&mut self, page: u32, clock: u64) {
        let class = self.pages.class(page);
        if let (Some(age), true) = (self.pages.age(page, clock), class != Class::Unseen) {
            self.scores.ended(clock - u64::from(age), class == Class::Short, age);
        }
    }

    /// A window ends: threshold, dataset, model.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self) {
        let number = self.statistics.windows;
        self.statistics.windows += 1;
        self.window.sort();
        let lifetimes = match &self.history {
            Some(history) => history.lifetimes(self.encoding, MOST_ROWS),
            None => self.window.lifetimes(self.encoding),
        };
        self.threshold.adjust(number, &lifetimes.observed());
        if let Some(threshold) = self.threshold.value()
            && let Some(mut trainer) = self.trainer.take()
        {
            if let Err(error) = self.train(trainer.as_mut(), number, threshold) {
                self.statistics.failures += 1;
                self.error = Some((number, error));
            }
            self.trainer = Some(trainer);
        }
        self.window.roll();
        self.tracker.halve();
    }

    /// Hands the window out and puts the model that comes back to use.
    fn train(
        &mut self,
        trainer: &mut dyn Trainer,
        number: u64,
        threshold: u32,
    ) -> Result<(), TrainError> {
        let sampling = Sampling {
            share: self.settings.sample_share,
            least_steps: self.settings.sample_steps,
            series_steps: self.settings.series_steps,
        };
        let encoding = self.encoding;
        let mut dataset = match &self.history {
            Some(history) if self.settings.final_labels => {
                history.dataset(number, threshold, encoding, sampling, self.window_pages)
            }
            _ => self.window.dataset(number, threshold, encoding, sampling),
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
        block.saturating_mul(self.meta_pages).saturating_add(offset / self.entries)
    }
}

/// Bytes of metadata per page in flash: stamp, and state unless each write is judged alone.
fn entry_bytes(settings: &ShiroSettings) -> usize {
    STAMP_BYTES + if settings.series_steps == 1 { 0 } else { STATE_BYTES }
}

/// Meta pages at the end of a superblock so that each data page has its entry.
fn meta_pages(block_pages: u32, entries: u32) -> u32 {
    block_pages.div_ceil(entries + 1)
}

impl<const VARIANT: u8> Separation for Shiro<VARIANT> {
    const WATCHES_INVALIDATION: bool = true;
    const READS_META: bool = true;
    const PREDICTS: bool = true;

    fn streams(&self) -> u32 {
        (USER_TYPES + if VARIANT == NO_LEVELS { 1 } else { LEVELS }) as u32
    }

    fn meta_pages(&self) -> u32 {
        self.meta_pages
    }

    #[inline]
    fn on_request(&mut self, request: &HostRequest, _clock: u64) {
        self.tracker.on_request(request);
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let &Write { page, clock, .. } = write;
        self.missed = self.wanted.take().is_some_and(|meta| !self.cache.look_up(meta));
        self.judge(page, clock);
        let age = self.pages.age(page, clock);
        let features = self.tracker.features(page, age.unwrap_or(0));
        self.window.write(page, age.is_none(), features);
        if let Some(history) = &mut self.history {
            history.write(page, age, features);
        }
        // A first write has no history to judge by, but leaves a state.
        let predicted = self.predict(page, &features);
        let class = if age.is_some() { predicted } else { Class::Unseen };
        self.pages.stamp(page, clock, class);
        self.last = class;
        if let (Some(threshold), true) = (self.threshold.value(), class != Class::Unseen) {
            self.scores.predicted(clock, threshold, class == Class::Short);
        }
        if self.window.writes() >= self.window_pages {
            self.end_window();
        }
        Stream(class.index())
    }

    fn place_moved(&mut self, moved: &Moved<'_>) -> Stream {
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
            self.judge(gone.page, gone.clock);
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
        let first = victim.id.saturating_mul(self.meta_pages);
        (0..self.meta_pages).for_each(|meta| self.cache.forget(first.saturating_add(meta)));
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
        ShortLived { streams: Stream(Class::Short.index()).mask(), threshold }
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        entry_bytes(&self.settings) as f64
    }

    fn learner(&mut self) -> Option<&mut dyn Learner> {
        Some(self)
    }

    #[inline(always)]
    fn touch(&self, page: u32) -> u32 {
        self.pages.touch(page)
    }

    fn audit(&self) -> Result<(), String> {
        if self.window.writes() >= self.window_pages {
            return Err(format!("{} writes in a window", self.window.writes()));
        }
        if self.data_pages.div_ceil(self.entries) > self.meta_pages {
            return Err(format!("{} data pages exceed their meta pages", self.data_pages));
        }
        self.cache.audit()
    }
}

impl Registered for Shiro<PAPER> {
    type Settings = ShiroSettings;
    const ENTRY: Entry = Entry {
        name: "shiro",
        doc: "a GRU sorts user writes by lifetime, moved pages rise through five levels",
        source: "Sun et al., Shiro (extends DAC'23), sections III and IV",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
        Shiro::empty(geometry, settings, seed)
    }
}

impl Registered for Shiro<NO_LEVELS> {
    type Settings = ShiroSettings;
    const ENTRY: Entry = Entry {
        name: "shiro-ng",
        doc: "shiro with all moved pages on one stream",
        source: "Sun et al., Shiro (extends DAC'23), section V-D",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
        Shiro::empty(geometry, settings, seed)
    }
}

#[cfg(test)]
mod tests;
