//! What keeps the cleaner from going on, and from cleaning some segments at all.
//!
//! For: conditions on what is cleaned next. Must never know: how a segment is cleaned. Units:
//! segments.

use crate::log::{CleaningError, SegmentId};
use std::collections::BTreeSet;

/// The obstacles; see the top of the file.
#[derive(Debug, Default)]
pub struct CleaningObstacles {
    /// The cleaner has found no room for what it copies.
    is_blocked: bool,
    /// Segments that cannot be cleaned, because their records cannot be read.
    damaged: BTreeSet<SegmentId>,
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
