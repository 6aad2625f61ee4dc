//! When `rc-x` learns.
//!
//! For: accesses between two lessons, twice as many each time up to a bound. Must never know: what
//! is learned. Unit: accesses.

/// Accesses before tables are learned for the first time; from there on it takes twice as many
/// each time,
const FIRST: u32 = 64;
/// up to the capacity, but at least to so many.
const MIN_PERIOD: u32 = 16_384;

/// Accesses until tables are learned.
#[derive(Clone, Copy, Debug)]
pub(super) struct LearningPeriod {
    left: u32,
    /// How many there were the last time.
    length: u32,
}

impl Default for LearningPeriod {
    fn default() -> Self {
        LearningPeriod { left: FIRST, length: FIRST }
    }
}

impl LearningPeriod {
    /// An access; returns whether it ends the period.
    #[inline(always)]
    pub fn ends(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }

    /// The next period begins, in a cache of so many blocks.
    pub fn begin_next(&mut self, capacity_blocks: u32) {
        self.length = self.length.saturating_mul(2).min(capacity_blocks.max(MIN_PERIOD));
        self.left = self.length;
    }

    /// Accesses that are left of the period.
    pub fn left(&self) -> u32 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_double_up_to_the_bound() {
        let mut period = LearningPeriod::default();
        let mut lengths = Vec::new();
        for _ in 0..11 {
            lengths.push((1..).find(|_| period.ends()).unwrap_or(0));
            period.begin_next(100);
        }
        let doubling = (0..11).map(|power| (FIRST << power).min(MIN_PERIOD));
        assert_eq!(lengths, doubling.collect::<Vec<u32>>());
    }
}
