//! What S4-FIFO observes of a workload, and the 73 features of it.
//!
//! Source: the artifact's feature table (doc/REPRODUCTION.md) and S4FIFO_features.h of libCacheSim.
//!
//! | features | what |
//! |---|---|
//! | 0 to 59 | hits of small, main and ghosts by position: 20 bins each, as shares of the queue's |
//! | 60 to 62 | small's, main's and the ghosts' shares of all hits, those of ghosts among them |
//! | 63 | decimal logarithm of the capacity in blocks |
//! | 64 | utility gap: between small's and main's share of the hits |
//! | 65 | filtering efficiency: small's hits per hit of main |
//! | 66 | ghost pressure: ghosts' hits per hit, ghosts counted twice |
//! | 67 | tail heaviness: share of main's hits in its older half |
//! | 68 | decay: by how much small's second bin is below its first |
//! | 69 | share of small's evictions without a hit |
//! | 70 | share of requests for blocks that are not known |
//! | 71 | scan intensity: 69 times what the cache lacks of the new blocks |
//! | 72 | thrashing risk: 70 beside the cache's share of the new blocks, in percent |

use super::{GHOST, MAIN, SMALL};
use cachewright_snapshot::SnapshotValue;

/// Features of a workload.
pub const FEATURES: usize = 73;
/// Bins of positions of each queue.
const BINS: usize = 20;
/// Hits below which nothing is chosen.
const LEAST_HITS: u32 = 100;

/// Counts of requests, hits and evictions.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub struct Observation {
    /// Requests, and those among them for blocks that were not known, ghosts neither.
    pub requests: u64,
    /// See above.
    pub new_blocks: u64,
    /// Evictions from the small queue, and those among them of blocks without a hit that counts.
    pub small_evictions: u64,
    /// See above.
    pub unhit_evictions: u64,
    /// By queue and position, and together.
    hits: [[u32; BINS]; 3],
    all_hits: u32,
    /// Blocks of a bin of each queue.
    bin_blocks: [u32; 3],
}

impl Observation {
    /// Takes the blocks that each queue may have, of which bins are shares.
    pub fn fit(&mut self, queue_blocks: [u32; 3]) {
        self.bin_blocks = queue_blocks.map(|blocks| blocks.div_ceil(BINS as u32).max(1));
    }

    /// Counts a hit of a block after which so many have entered its queue.
    #[inline(always)]
    pub fn hit(&mut self, queue: usize, later_entries: u32) {
        let bin = (later_entries / self.bin_blocks[queue].max(1)) as usize;
        self.hits[queue][bin.min(BINS - 1)] += 1;
        self.all_hits += 1;
    }

    fn hits_of(&self, queue: usize) -> u32 {
        self.hits[queue].iter().sum()
    }

    /// Whether there were hits enough to choose by.
    #[inline(always)]
    pub fn has_enough_hits(&self) -> bool {
        self.all_hits >= LEAST_HITS
    }

    /// The features, in the order of the table; see the top of the file.
    pub fn features(&self, capacity: u32) -> [f32; FEATURES] {
        let mut features = [0.0; FEATURES];
        let hits = [SMALL, MAIN, GHOST].map(|queue| f64::from(self.hits_of(queue)));
        let all = f64::from(self.all_hits);
        for queue in SMALL..=GHOST {
            for (bin, count) in self.hits[queue].iter().enumerate() {
                features[queue * BINS + bin] = share(f64::from(*count), hits[queue]) as f32;
            }
        }
        let tail: f32 = features[MAIN * BINS + BINS / 2..][..BINS / 2].iter().sum();
        let decay = features[0] - features[1];
        let unhit = share(self.unhit_evictions as f64, self.small_evictions as f64);
        let new = share(self.new_blocks as f64, self.requests as f64);
        let cached = share(f64::from(capacity), self.new_blocks as f64).clamp(1e-4, 1.0);
        let composite = [
            share(hits[SMALL], all),
            share(hits[MAIN], all),
            share(hits[GHOST], all),
            f64::from(capacity.max(1)).log10(),
            share((hits[MAIN] - hits[SMALL]).abs(), all),
            hits[SMALL] / hits[MAIN].max(1.0),
            share(hits[GHOST], hits[GHOST] + all),
            f64::from(tail),
            f64::from(decay),
            unhit,
            new,
            unhit * (1.0 - cached),
            new / (100.0 * cached),
        ];
        for (feature, value) in features[3 * BINS..].iter_mut().zip(composite) {
            *feature = value as f32;
        }
        features
    }
}

/// A part of a whole, 0 of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 blocks, small 10 (bins of 1), main 90 (bins of 5), ghosts 90. Small: two hits at once,
    /// one after 3 entries. Main: one after 12 (bin 2), four after 60 (bin 12). A ghost after 200,
    /// in the last bin. 40 requests, 20 of them new; 8 of 10 evictions unhit. The cache could hold
    /// all new blocks.
    #[test]
    fn features_by_hand() {
        let mut seen = Observation::default();
        seen.fit([10, 90, 90]);
        for later in [0, 0, 3] {
            seen.hit(SMALL, later);
        }
        for later in [12, 60, 60, 60, 60] {
            seen.hit(MAIN, later);
        }
        seen.hit(GHOST, 200);
        (seen.requests, seen.new_blocks) = (40, 20);
        (seen.small_evictions, seen.unhit_evictions) = (10, 8);
        assert!(!seen.has_enough_hits());
        let features = seen.features(100);
        let close = |at: usize, value: f32| (features[at] - value).abs() < 1e-6;
        assert!(close(0, 2.0 / 3.0) && close(3, 1.0 / 3.0) && close(22, 0.2) && close(32, 0.8));
        assert!(close(59, 1.0) && close(60, 3.0 / 9.0) && close(61, 5.0 / 9.0));
        assert!(close(62, 1.0 / 9.0) && close(63, 2.0) && close(64, 2.0 / 9.0) && close(65, 0.6));
        assert!(close(66, 0.1) && close(67, 0.8) && close(68, 2.0 / 3.0) && close(69, 0.8));
        assert!(close(70, 0.5) && close(71, 0.0) && close(72, 0.005));
        assert!(features.iter().all(|feature| feature.is_finite()));
    }

    #[test]
    fn nothing_observed_has_finite_features() {
        let features = Observation::default().features(0);
        assert!(features.iter().all(|feature| feature.is_finite()));
    }
}
