//! What keeps the cleaner from going on, and from cleaning some segments at all.
//!
//! For: conditions on what is cleaned next. Must never know: how a segment is cleaned. Units:
//! segments.

use crate::log::{CleaningError, SegmentId};
use std::collections::{BTreeMap, BTreeSet};

/// The obstacles; see the top of the file.
#[derive(Debug, Default)]
pub struct CleaningObstacles {
    /// The cleaner has found no room for what it copies.
    is_blocked: bool,
    /// Segments that cannot be cleaned, because their records cannot be read.
    damaged: BTreeSet<SegmentId>,
    /// How far the cleaning of each pool is since the last decision.
    rounds: BTreeMap<usize, CleaningRound>,
}

/// So many segments cleaned one after the other that at least one more should be free, while
/// nothing else changes.
#[derive(Clone, Copy, Debug, Default)]
struct CleaningRound {
    /// Segments that were cleaned in it.
    cleaned: usize,
    /// Free segments at its start.
    free: usize,
    /// A round has freed nothing: the pool is not cleaned before something else changes.
    is_fruitless: bool,
}

impl CleaningObstacles {
    /// Another segment is cleaned.
    pub fn begin(&mut self) {
        self.is_blocked = false;
    }

    /// The cleaner has worked on a segment.
    pub fn note(&mut self, segment: SegmentId, result: Result<(), CleaningError>) {
        if result == Err(CleaningError::Unreadable) {
            self.damaged.insert(segment);
        }
        self.is_blocked = matches!(result, Err(CleaningError::Log(_)));
    }

    /// Whether the cleaner cannot go on by itself.
    pub fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// A segment of a pool was cleaned while no request was under way; so many are free or on their
    /// way to be. After `enough` of them one more should be.
    pub fn note_cleaned(&mut self, pool: usize, enough: usize, free: usize) {
        let start = CleaningRound { cleaned: 0, free, is_fruitless: false };
        let round = self.rounds.entry(pool).or_insert(start);
        round.cleaned += 1;
        if round.cleaned > enough {
            *round = CleaningRound { is_fruitless: free <= round.free, ..start };
        }
    }

    /// Something has changed besides cleaning: more may be won now.
    pub fn note_change(&mut self) {
        self.rounds.clear();
    }

    /// Whether cleaning a pool has freed nothing for as long as it should take to free a segment.
    pub fn is_fruitless(&self, pool: usize) -> bool {
        self.rounds.get(&pool).is_some_and(|round| round.is_fruitless)
    }

    /// Whether a segment cannot be cleaned.
    pub fn is_damaged(&self, segment: SegmentId) -> bool {
        self.damaged.contains(&segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LogError;

    #[test]
    fn a_round_that_frees_nothing_ends_cleaning_until_something_changes() {
        let mut obstacles = CleaningObstacles::default();
        for cleaned in 0..10 {
            obstacles.note_cleaned(1, 4, 3 + cleaned / 3);
            assert!(!obstacles.is_fruitless(1), "segments are won");
        }
        (0..10).for_each(|_| obstacles.note_cleaned(1, 4, 5));
        assert!(obstacles.is_fruitless(1) && !obstacles.is_fruitless(0));
        obstacles.note_change();
        assert!(!obstacles.is_fruitless(1));
    }

    #[test]
    fn a_full_log_blocks_and_damage_stays() {
        let mut obstacles = CleaningObstacles::default();
        obstacles.note(SegmentId(3), Err(CleaningError::Log(LogError::Full)));
        assert!(obstacles.is_blocked() && !obstacles.is_damaged(SegmentId(3)));
        obstacles.note(SegmentId(4), Err(CleaningError::Unreadable));
        obstacles.begin();
        obstacles.note(SegmentId(5), Ok(()));
        assert!(!obstacles.is_blocked() && obstacles.is_damaged(SegmentId(4)));
    }
}
