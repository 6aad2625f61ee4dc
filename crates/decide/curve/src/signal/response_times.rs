//! Response times of a tenant's hits and misses, as measured. Units: nanoseconds.

use cachewright_snapshot::SnapshotValue;

/// Responses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct Price {
    /// Requests answered.
    pub count: u64,
    /// Sum of their response times.
    pub sum_ns: u64,
    /// The part of it behind memory: at a backing device, or in flash.
    pub behind_ns: u64,
}

/// Responses of an interval, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct Prices {
    /// Reads that memory answered.
    pub read_hits: Price,
    /// Reads that waited behind memory.
    pub read_misses: Price,
    /// Writes that memory accepted at once.
    pub write_hits: Price,
    /// Writes that waited behind memory.
    pub write_misses: Price,
    /// All of them by their response time.
    pub responses: ResponseClasses,
}

impl Price {
    /// Counts one response, with `behind_ns` behind memory.
    pub fn add(&mut self, response_ns: u64, behind_ns: u64) {
        self.count += 1;
        self.sum_ns += response_ns;
        self.behind_ns += behind_ns;
    }
}
/// Parts of each power of two, as a power of two.
const PART_BITS: u32 = 3;
/// Classes of all times that 64 bits hold.
pub const CLASSES: usize = (64 - PART_BITS as usize + 1) << PART_BITS;

/// Requests by class of response time, the shortest first: 8 classes to each power of two, so that
/// a class spans an eighth of its start. Cost: O(1) per answer, 4 bytes per class.
#[derive(Clone, Copy, PartialEq, Eq, SnapshotValue)]
pub struct ResponseClasses {
    counts: [u32; CLASSES],
}

impl Default for ResponseClasses {
    fn default() -> ResponseClasses {
        ResponseClasses { counts: [0; CLASSES] }
    }
}

impl std::fmt::Debug for ResponseClasses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let some = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        f.debug_map().entries(some).finish()
    }
}

/// The class of a response time.
fn class(response_ns: u64) -> usize {
    let bits = u64::BITS - response_ns.leading_zeros();
    let shift = bits.saturating_sub(PART_BITS + 1);
    ((shift as usize) << PART_BITS) + (response_ns >> shift) as usize
}

impl ResponseClasses {
    /// Counts one response.
    pub fn add(&mut self, response_ns: u64) {
        let count = &mut self.counts[class(response_ns)];
        *count = count.saturating_add(1);
    }

    /// Requests that may have taken longer than `limit_ns`: those of its class count.
    pub fn beyond(&self, limit_ns: u64) -> u64 {
        self.counts[class(limit_ns)..].iter().copied().map(u64::from).sum()
    }

    /// Requests of each class, the shortest first.
    pub fn counts(&self) -> &[u32; CLASSES] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_ascend_without_gaps_and_an_eighth_apart() {
        // 0 to 15 have a class each, then two values share one.
        let classes: Vec<usize> = (0..20).map(class).collect();
        assert_eq!(classes[..16], (0..16).collect::<Vec<usize>>());
        assert_eq!(classes[16..], [16, 16, 17, 17]);
        assert_eq!((class(1 << 20), class((1 << 20) * 9 / 8)), (144, 145));
        assert_eq!(class(u64::MAX), CLASSES - 1);
        let edges = (4..63).flat_map(|power| [(1_u64 << power) - 1, 1 << power]);
        let all: Vec<usize> = edges.map(class).collect();
        assert!(all.chunks(2).all(|pair| pair[1] == pair[0] + 1), "{all:?}");
    }

    #[test]
    fn answers_are_counted_by_class() {
        let mut responses = ResponseClasses::default();
        [5, 5, 1 << 20].into_iter().for_each(|response_ns| responses.add(response_ns));
        assert_eq!((responses.counts()[5], responses.counts()[144]), (2, 1));
        assert_eq!(format!("{responses:?}"), "{5: 2, 144: 1}");
        let beyond = [0, 5, 6, 1 << 20, 1 << 21].map(|limit_ns| responses.beyond(limit_ns));
        assert_eq!(beyond, [3, 3, 1, 1, 0]);
    }
}
