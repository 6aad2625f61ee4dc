//! How well a scheme's predictions of lifetimes came true, and what its learning cost.
//!
//! A device model prices the counts. No scheme reads any of this when it decides. A prediction is
//! scored once its page is written again or trimmed. If the page never is, the lifetime was long.
//! Units: host page writes. Memory: 56 bytes per part of the run.
//!
//! Lifetimes of pages, between two writes. Units are page writes of the host.
//!
//! What may be asked of a separation that learns, whatever its scheme. Units are lifetimes in host
//! page writes.

use super::shiro::{TrainError, Trainer};
use cachewright_model::StoredModel;
use std::ops::AddAssign;

/// What a learning scheme did beside placing pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Steps of the model.
    pub predictions: u64,
    /// Those among them that the host's write waited for.
    pub waited_predictions: u64,
    /// Windows that ended.
    pub windows: u64,
    /// Models that came into use.
    pub trainings: u64,
    /// Calls of the trainer that gave no usable model.
    pub failures: u64,
    /// Look-ups of metadata that found its page in memory.
    pub meta_hits: u64,
    /// Look-ups that read a page of metadata from flash.
    pub meta_misses: u64,
}

impl Statistics {
    /// Share of look-ups of metadata that read flash; 0 of none.
    pub fn meta_miss_share(&self) -> f64 {
        ratio(self.meta_misses, self.meta_misses + self.meta_hits)
    }
}

/// Predictions against what came; short is the positive class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confusion {
    /// Predicted short, was short.
    pub short_right: u64,
    /// Predicted short, was long.
    pub short_wrong: u64,
    /// Predicted long, was long.
    pub long_right: u64,
    /// Predicted long, was short.
    pub long_wrong: u64,
}

impl Confusion {
    /// Counts one prediction.
    #[inline]
    pub fn add(&mut self, predicted_short: bool, was_short: bool) {
        let counter = match (predicted_short, was_short) {
            (true, true) => &mut self.short_right,
            (true, false) => &mut self.short_wrong,
            (false, false) => &mut self.long_right,
            (false, true) => &mut self.long_wrong,
        };
        *counter += 1;
    }

    /// Predictions.
    pub fn total(&self) -> u64 {
        self.short_right + self.short_wrong + self.long_right + self.long_wrong
    }

    /// Share of right predictions; 0 of none.
    pub fn accuracy(&self) -> f64 {
        ratio(self.short_right + self.long_right, self.total())
    }

    /// Share of those predicted short that were; 0 of none.
    pub fn precision(&self) -> f64 {
        ratio(self.short_right, self.short_right + self.short_wrong)
    }

    /// Share of the short that were predicted so; 0 of none.
    pub fn recall(&self) -> f64 {
        ratio(self.short_right, self.short_right + self.long_wrong)
    }

    /// Harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        let twice = 2 * self.short_right;
        ratio(twice, twice + self.short_wrong + self.long_wrong)
    }

    /// Share of the more frequent true class: what always answering with it would score.
    pub fn majority(&self) -> f64 {
        let short = self.short_right + self.long_wrong;
        ratio(short.max(self.total() - short), self.total())
    }

    /// Share of those predicted short; 0 of none.
    pub fn called_short(&self) -> f64 {
        ratio(self.short_right + self.short_wrong, self.total())
    }

    /// Share of those that were short, the base rate; 0 of none.
    pub fn were_short(&self) -> f64 {
        ratio(self.short_right + self.long_wrong, self.total())
    }
}

impl AddAssign for Confusion {
    fn add_assign(&mut self, other: Confusion) {
        self.short_right += other.short_right;
        self.short_wrong += other.short_wrong;
        self.long_right += other.long_right;
        self.long_wrong += other.long_wrong;
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The predictions made in one part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictionPart {
    /// The clock at its first prediction.
    pub from: u64,
    /// Lifetimes up to this counted as short.
    pub threshold: u32,
    /// Its predictions against what came.
    pub confusion: Confusion,
}

/// The predictions of a run, in the order of time; a part has one threshold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classification {
    /// The parts, each not empty.
    pub parts: Vec<PredictionPart>,
}

impl Classification {
    /// All predictions.
    pub fn total(&self) -> Confusion {
        self.since(0)
    }

    /// The predictions of all parts that begin at `clock` or later.
    pub fn since(&self, clock: u64) -> Confusion {
        let mut total = Confusion::default();
        let late = self.parts.iter().filter(|part| part.from >= clock);
        late.for_each(|part| total += part.confusion);
        total
    }
}

/// Predictions of one part that are not judged yet, and those that are.
#[derive(Clone, Copy, Debug)]
struct Score {
    from: u64,
    threshold: u32,
    short: u64,
    long: u64,
    confusion: Confusion,
}

/// Keeps the score while a scheme runs.
#[derive(Clone, Debug)]
pub struct Scores {
    part_pages: u64,
    parts: Vec<Score>,
}

impl Scores {
    /// Nothing predicted yet; a part spans at most `part_pages` of the clock.
    pub fn new(part_pages: u32) -> Scores {
        Scores { part_pages: u64::from(part_pages.max(1)), parts: Vec::new() }
    }

    /// A page write was predicted. The clock never goes back.
    #[inline]
    pub fn predicted(&mut self, clock: u64, threshold: u32, short: bool) {
        let going = self.parts.last_mut();
        match going.filter(|p| p.threshold == threshold && clock < p.from + self.part_pages) {
            Some(part) => {
                part.short += u64::from(short);
                part.long += u64::from(!short);
            }
            None => self.parts.push(Score {
                from: clock,
                threshold,
                short: u64::from(short),
                long: u64::from(!short),
                confusion: Confusion::default(),
            }),
        }
    }

    /// The copy that was written and predicted at `written` has ended after `lifetime`.
    #[inline]
    pub fn ended(&mut self, written: u64, short: bool, lifetime: u32) {
        let index = match self.parts.last() {
            Some(last) if written >= last.from => self.parts.len(),
            _ => self.parts.partition_point(|part| part.from <= written),
        };
        if let Some(part) = index.checked_sub(1).and_then(|index| self.parts.get_mut(index)) {
            part.confusion.add(short, lifetime <= part.threshold);
        }
    }

    /// What came of all predictions so far; a lifetime that goes on counts as long.
    pub fn classification(&self) -> Classification {
        let part = |score: &Score| {
            let Score { from, threshold, short, long, mut confusion } = *score;
            confusion.short_wrong = short.saturating_sub(confusion.short_right);
            confusion.long_right = long.saturating_sub(confusion.long_wrong);
            PredictionPart { from, threshold, confusion }
        };
        Classification { parts: self.parts.iter().map(part).collect() }
    }
}
/// A lifetime when the page is never written again, or when that is not known.
pub const NEVER: u32 = u32::MAX;

/// A separation that learns.
pub trait Learner {
    /// Takes another trainer for the windows to come.
    fn set_trainer(&mut self, trainer: Box<dyn Trainer>);

    /// Takes a finished model, f32 or int8: nothing is trained any more, and if the model's notes
    /// name a threshold, that stays too. An f32 model is quantised by its test vector. Errors: a
    /// model of another shape or of other features, in which case nothing changes.
    fn give(&mut self, model: &StoredModel) -> Result<(), TrainError>;

    /// When and why the trainer last gave no model.
    fn last_failure(&self) -> Option<String>;

    /// Lifetimes up to this are short, once that is known.
    fn threshold(&self) -> Option<u32>;

    /// Takes a threshold for good.
    fn fix_threshold(&mut self, threshold: u32);

    /// Page writes of the host per window: the time that counters of recent requests span.
    fn window_pages(&self) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_follow_their_definitions() {
        let mut confusion = Confusion::default();
        for (count, predicted, was) in [(6, true, true), (2, true, false), (4, false, true)] {
            (0..count).for_each(|_| confusion.add(predicted, was));
        }
        (0..8).for_each(|_| confusion.add(false, false));
        assert_eq!((confusion.total(), confusion.accuracy()), (20, 0.7));
        assert_eq!((confusion.precision(), confusion.recall()), (0.75, 0.6));
        assert!((confusion.f1() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(confusion.majority(), 0.5);
        assert_eq!((confusion.called_short(), confusion.were_short()), (0.4, 0.5));
        assert_eq!(Confusion::default().accuracy(), 0.0);
    }

    /// Parts of 10; threshold 5 up to clock 14, then 3. Four predictions: at 1 (short, ends after
    /// 5: right), at 2 (long, ends after 4: wrong), at 12 (short, goes on: wrong), at 15 (short,
    /// ends after 4, above its own threshold: wrong), at 16 (long, goes on: right).
    #[test]
    fn each_prediction_is_judged_by_the_threshold_it_was_made_with() {
        let mut scores = Scores::new(10);
        let made = [(1, 5, true), (2, 5, false), (12, 5, true), (15, 3, true), (16, 3, false)];
        made.into_iter().for_each(|(clock, threshold, short)| {
            scores.predicted(clock, threshold, short);
        });
        scores.ended(1, true, 5);
        scores.ended(2, false, 4);
        scores.ended(15, true, 4);
        let found = scores.classification();
        let parts: Vec<(u64, u32)> = found.parts.iter().map(|p| (p.from, p.threshold)).collect();
        assert_eq!(parts, [(1, 5), (12, 5), (15, 3)]);
        let expected = Confusion { short_right: 1, short_wrong: 2, long_right: 1, long_wrong: 1 };
        assert_eq!(found.total(), expected);
        assert_eq!(found.since(12).total(), 3);
        assert_eq!(found.since(2).total(), 3, "a part counts whole or not at all");
    }
}
