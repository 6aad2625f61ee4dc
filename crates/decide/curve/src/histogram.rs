//! Counts of reuse distances, reads and writes apart.
//!
//! For: the result of a stack-distance pass. Must never know: how distances were computed. A
//! distance is a position in the LRU stack: 1 is the block used last. An access of distance d hits
//! in every LRU cache of at least d blocks. Memory: 8 bytes per distance; counts above 2^32 carry
//! into a list that is nearly always empty. Source: Mattson et al., IBM Systems Journal 1970.

/// Accesses by reuse distance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// `counts[d]`: reads and writes at distance d, modulo 2^32; index 0 stays zero.
    counts: Vec<[u32; 2]>,
    /// One entry per wrap of a count: its distance and kind.
    carries: Vec<(u32, u8)>,
    /// Accesses to blocks never seen before, reads and writes.
    cold: [u64; 2],
    /// All accesses, reads and writes.
    accesses: [u64; 2],
}

impl Histogram {
    /// No access counted, no memory held.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Provides counts for distances up to `distance`.
    pub(crate) fn reserve(&mut self, distance: u32) {
        let count = distance as usize + 1;
        if self.counts.len() < count {
            if self.counts.capacity() < count {
                // A quarter, not double: histograms are most of a stack's memory.
                self.counts.reserve_exact(count / 4 + 16);
            }
            self.counts.resize(count, [0; 2]);
        }
    }

    /// Counts a reuse; `reserve` was called for `distance`.
    #[inline(always)]
    pub(crate) fn count(&mut self, distance: u32, write: bool) {
        let kind = usize::from(write);
        self.accesses[kind] += 1;
        let cell = &mut self.counts[distance as usize][kind];
        *cell = cell.wrapping_add(1);
        if *cell == 0 {
            self.carry(distance, write);
        }
    }

    #[cold]
    fn carry(&mut self, distance: u32, write: bool) {
        self.carries.push((distance, u8::from(write)));
    }

    /// Counts a first use.
    #[inline(always)]
    pub(crate) fn count_cold(&mut self, write: bool) {
        let kind = usize::from(write);
        self.accesses[kind] += 1;
        self.cold[kind] += 1;
    }

    /// The largest distance with a count.
    pub fn longest(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// Reads and writes at `distance`.
    pub fn count_at(&self, distance: u32) -> [u64; 2] {
        let low = self.counts.get(distance as usize).copied().unwrap_or_default();
        let mut both = low.map(u64::from);
        for (_, kind) in self.carries.iter().filter(|(carried, _)| *carried == distance) {
            both[usize::from(*kind)] += 1 << 32;
        }
        both
    }

    /// First uses, reads and writes: the misses of an unlimited cache.
    pub fn cold(&self) -> [u64; 2] {
        self.cold
    }

    /// All accesses, reads and writes.
    pub fn accesses(&self) -> [u64; 2] {
        self.accesses
    }

    /// `(distance, reads and writes)` for every distance with a count, ascending from 1.
    pub fn iter(&self) -> impl Iterator<Item = (u32, [u64; 2])> + '_ {
        let plain = self.carries.is_empty();
        (1..self.counts.len() as u32).map(move |distance| {
            let low = self.counts[distance as usize];
            (distance, if plain { low.map(u64::from) } else { self.count_at(distance) })
        })
    }

    /// Hits of an LRU cache of `size_blocks`, reads and writes. O(size).
    pub fn hits(&self, size_blocks: u32) -> [u64; 2] {
        self.iter()
            .take(size_blocks as usize)
            .fold([0; 2], |sum, (_, both)| [sum[0] + both[0], sum[1] + both[1]])
    }

    /// Bytes held.
    pub fn memory_bytes(&self) -> usize {
        self.counts.capacity() * 8 + self.carries.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_wraps_keeps_its_value() {
        let mut histogram = Histogram::new();
        histogram.reserve(3);
        histogram.counts[3] = [u32::MAX, 7];
        histogram.count(3, false);
        histogram.count(3, true);
        assert_eq!(histogram.count_at(3), [1 << 32, 8]);
        assert_eq!(histogram.hits(3), [1 << 32, 8]);
        assert_eq!(histogram.hits(2), [0, 0]);
    }
}
