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
mod lifetime_model;
mod light_model;
mod meta_cache;
mod metadata;
mod migration;
mod pages;
mod settings;
mod threshold;
mod train_error;
mod trainer;
mod variants;
mod window;
mod windows;

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
use cachewright_model::StoredModel;
use cachewright_types::Seed;
use features::Tracker;
use lifetime_model::LifetimeModel;
use metadata::{Metadata, entry_bytes};
use migration::{Agent, LEVELS, LearningRates, Situation, USER_TYPES, hierarchical};
use pages::Pages;
use windows::Windows;

/// As published.
pub const PAPER: u8 = 0;
/// All moved pages on one stream (the paper's ablation).
pub const NO_LEVELS: u8 = 1;
/// Moved pages rise by the rule that the agent starts from.
pub const RISING: u8 = 2;
/// As published, with every class told rather than predicted.
pub const KNOWN: u8 = 3;

/// Shiro in one of its variants: [`PAPER`], [`NO_LEVELS`], [`RISING`], [`KNOWN`].
pub struct Shiro<const VARIANT: u8> {
    settings: ShiroSettings,
    tracker: Tracker,
    pages: Pages,
    windows: Windows,
    model: LifetimeModel,
    scores: Scores,
    agent: Option<Agent>,
    metadata: Metadata,
    last: LifetimeClass,
}

impl<const VARIANT: u8> Shiro<VARIANT> {
    fn empty(geometry: &Geometry, settings: &ShiroSettings, seed: Seed) -> Self {
        let windows = Windows::new(geometry, settings, seed);
        let learning = LearningRates { rate: settings.learn_rate, explore: settings.explore_share };
        let learns = matches!(VARIANT, PAPER | KNOWN);
        let trainer = (VARIANT != KNOWN)
            .then(|| Box::new(NativeTrainer::new(seed.derive("trainer"))) as Box<dyn Trainer>);
        Shiro {
            tracker: Tracker::new(geometry.logical_pages, settings.page_bytes),
            pages: Pages::new(geometry.logical_pages),
            scores: Scores::new(windows.window_pages()),
            windows,
            model: LifetimeModel::new(settings, trainer),
            agent: learns.then(|| Agent::new(learning, seed.derive("moves"))),
            metadata: Metadata::new(geometry, settings),
            last: LifetimeClass::Unseen,
            settings: settings.clone(),
        }
    }

    /// Takes another trainer, or none: the model in use then stays.
    pub fn set_trainer(&mut self, trainer: Option<Box<dyn Trainer>>) {
        self.model.set_trainer(trainer);
    }

    /// Puts a model to use. An f32 model is quantised by `calibration`, rows of inputs one after
    /// another. All inputs at 1 are added, so that no digit saturates. Errors: a model of another
    /// shape than these inputs, 32 bytes of state, 2 outputs (long, short).
    pub fn install(&mut self, stored: &StoredModel, calibration: &[f32]) -> Result<(), TrainError> {
        self.model.install(stored, calibration)
    }

    /// The class given to the page placed last.
    pub fn last_class(&self) -> LifetimeClass {
        self.last
    }

    /// Lifetimes up to this are short, once a window had lifetimes.
    pub fn threshold(&self) -> Option<u32> {
        self.windows.threshold()
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let (meta_hits, meta_misses) = self.metadata.look_ups();
        let windows = self.windows.ended();
        Statistics { windows, meta_hits, meta_misses, ..self.model.statistics() }
    }

    /// Why the trainer gave no model when it last failed.
    pub fn last_error(&self) -> Option<&TrainError> {
        self.model.error().map(|(_, error)| error)
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
        let encoding = self.model.encoding();
        let Some(ordered) = self.windows.end(encoding) else { return };
        if let Some(threshold) = self.windows.threshold().filter(|_| self.model.is_trained()) {
            let dataset = self.windows.dataset(&ordered, threshold, encoding);
            self.model.train(dataset, self.windows.ended() - 1);
        }
        self.windows.begin();
    }
}

impl<const VARIANT: u8> Separation for Shiro<VARIANT> {
    const WATCHES_INVALIDATION: bool = true;
    const READS_META: bool = true;
    const PREDICTS: bool = true;

    fn streams(&self) -> u32 {
        (USER_TYPES + if VARIANT == NO_LEVELS { 1 } else { LEVELS }) as u32
    }

    fn meta_pages(&self) -> u32 {
        self.metadata.block_pages() as u32
    }

    fn meta_part(&self) -> f64 {
        self.metadata.block_pages().fract()
    }

    #[inline]
    fn on_request(&mut self, request: &HostRequest, _clock: u64) {
        self.tracker.on_request(request);
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let &Write { page, clock, .. } = write;
        self.metadata.look_up();
        self.score_prediction(page, clock);
        let age = self.pages.age(page, clock);
        let features = self.tracker.features(page, age.unwrap_or(0));
        self.windows.write(page, age, features);
        // A first write has no history to judge by, but leaves a state.
        let predicted = self.model.predict(|| self.pages.state(page), &features);
        let class = match (age, self.windows.threshold()) {
            (None, _) => LifetimeClass::Unseen,
            (_, Some(threshold)) if VARIANT == KNOWN && write.lifetime <= threshold => {
                LifetimeClass::Short
            }
            (_, Some(_)) if VARIANT == KNOWN => LifetimeClass::Long,
            _ => predicted,
        };
        self.pages.stamp(page, clock, class);
        self.last = class;
        let threshold = self.windows.threshold().filter(|_| class != LifetimeClass::Unseen);
        if let Some(threshold) = threshold {
            self.scores.predicted(clock, threshold, class == LifetimeClass::Short);
        }
        if self.windows.is_full() {
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
            self.pages.forget(gone.page);
            self.windows.trim(gone.page, age);
        } else {
            self.metadata.overwrite(gone.block, gone.offset);
        }
    }

    fn meta_read(&mut self) -> bool {
        self.metadata.take_missed()
    }

    fn on_collect(&mut self, victim: &Block, _clock: u64) {
        if let Some(agent) = &mut self.agent {
            agent.on_victim(victim.invalid_share());
        }
    }

    fn on_erase(&mut self, victim: &Block, _clock: u64) {
        self.metadata.erase(victim.id);
    }

    #[inline]
    fn predicted(&mut self) -> Option<bool> {
        self.model.take_step()
    }

    fn classification(&self) -> Option<Classification> {
        Some(self.scores.classification())
    }

    fn learning(&self) -> Option<Statistics> {
        Some(self.statistics())
    }

    fn short_lived(&self) -> ShortLived {
        let threshold = u64::from(self.windows.threshold().unwrap_or(0));
        ShortLived { streams: Stream(LifetimeClass::Short.index()).mask(), threshold }
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        entry_bytes(&self.settings) as f64
    }

    fn memory_bytes_per_page(&self) -> f64 {
        let in_flash = self.metadata.is_in_flash();
        let held = if in_flash { self.settings.meta_cache_share } else { 1.0 };
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
        self.windows.audit()?;
        self.metadata.audit()
    }
}

#[cfg(test)]
mod tests;
