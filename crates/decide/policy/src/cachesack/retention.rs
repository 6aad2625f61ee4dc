//! How long a block would stay in the cache: the times that are tried, and waits among them.
//!
//! For: `cachesack`. Must never know: categories, policies of admission. Units: accesses. A cache
//! that keeps a block for a time after each use is near to LRU of some size (Che's approximation);
//! the times tried lie half an octave apart, from a quarter of the capacity to 16 times that.

/// Times that are tried.
pub const TIMES: usize = 13;
/// The index of a wait that is longer than all times.
pub const NEVER: u8 = TIMES as u8;

/// The times that are tried in a cache of one size, in accesses, rising.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    times: [u64; TIMES],
}

impl Retention {
    /// The times of a cache of so many blocks.
    pub fn new(capacity_blocks: u32) -> Retention {
        let time = |index| {
            let octaves = index as f64 / 2.0 - 2.0;
            (f64::from(capacity_blocks) * octaves.exp2()).ceil().max(1.0) as u64
        };
        Retention { times: std::array::from_fn(time) }
    }

    /// The first of the times in which a block would stay for so long; [`NEVER`] if none.
    #[inline(always)]
    pub fn index(&self, wait: u64) -> u8 {
        self.times.partition_point(|time| *time < wait) as u8
    }

    /// A time by its index.
    pub fn time(&self, index: usize) -> u64 {
        self.times[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_by_hand() {
        let retention = Retention::new(100);
        assert_eq!([0, 2, 4, 6, 12].map(|index| retention.time(index)), [25, 50, 100, 200, 1600]);
        assert_eq!(
            [1, 25, 26, 36, 37, 1600].map(|wait| retention.index(wait)),
            [0, 0, 1, 1, 2, 12]
        );
        assert_eq!(retention.index(1601), NEVER);
        assert_eq!(Retention::new(1).time(0), 1);
    }
}
