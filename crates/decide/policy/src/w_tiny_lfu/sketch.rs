//! How often keys were asked for lately: a count-min sketch of 4-bit counters and a doorkeeper.
//!
//! For: `w-tinylfu`. Source: Einziger, Friedman, Manes, "TinyLFU", ACM ToS 13(4), 2017: counters
//! that are all halved once so many accesses were counted (the count of accesses with them, section
//! 3.3), 4 bits each (3.4.1), a Bloom filter for first accesses that is cleared then (3.4.2),
//! minimal increment (section 2). From the common implementation (Caffeine): four rows, 16 counters
//! per cached block, all four counters of a key in one line of the processor's cache. Ours: 32 bits
//! of the doorkeeper per cached block, two of them per key; a change of size keeps what was
//! counted.
//!
//! A key is any number: equal keys share counters for sure, others by chance, so that an estimate
//! is never below the count, which stops at 15. Memory: 8 to 16 bytes per cached block, and 4 to 8
//! for the doorkeeper. Halving visits all of it at once: about a byte per access on average.

use cachewright_memory::prefetch;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::seed::mix;

/// Blocks for which the tables are made at once; they grow beyond that.
const AT_ONCE: u64 = 1 << 20;
/// Rows of counters, two words of each line.
const ROWS: usize = 4;
/// The highest count.
const MAX_COUNT: u64 = 15;
/// The counters of a word, each without its highest bit.
const HALVED: u64 = 0x7777_7777_7777_7777;

/// 128 counters of 4 bits: those of row r are in words 2 r and 2 r + 1.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
#[repr(align(64))]
struct CounterLine([u64; 2 * ROWS]);

/// The counts; see the top of the file.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Sketch {
    /// A power of two of lines.
    lines: Vec<CounterLine>,
    /// A power of two of words, or none without a doorkeeper.
    doorkeeper: Vec<u64>,
    has_doorkeeper: bool,
    /// Blocks that the tables are made for, and those of the cache: powers of two.
    blocks: u64,
    capacity: u64,
    /// Accesses counted, halved with all counters.
    additions: u64,
    /// Accesses at which everything is halved.
    sample: u64,
}

impl Sketch {
    /// No counts, for a cache of no blocks.
    pub fn new(has_doorkeeper: bool) -> Sketch {
        let doorkeeper = if has_doorkeeper { vec![0] } else { Vec::new() };
        let lines = vec![CounterLine::default()];
        let (blocks, capacity, additions, sample) = (1, 1, 0, 1);
        Sketch { lines, doorkeeper, has_doorkeeper, blocks, capacity, additions, sample }
    }

    /// Fits the sketch to a cache of so many blocks, and halves after so many accesses. It shrinks
    /// when it is four times too large. That of a large cache grows with the keys that it counts.
    pub fn fit(&mut self, capacity: u32, sample: u64) {
        self.sample = sample.max(2);
        self.capacity = u64::from(capacity).next_power_of_two();
        self.blocks = self.capacity.min(self.blocks.max(AT_ONCE));
        self.fit_tables();
    }

    fn fit_tables(&mut self) {
        let blocks = self.blocks as usize;
        fit(&mut self.lines, blocks / (2 * ROWS), |first, other| first.max(*other));
        if self.has_doorkeeper {
            fit(&mut self.doorkeeper, blocks / 2, |first, other| *first |= *other);
        }
    }

    /// Doubles the sketch until so many keys have their share of it, as far as the cache goes.
    #[cold]
    fn grow(&mut self, keys: u64) {
        self.blocks = keys.next_power_of_two().min(self.capacity);
        self.fit_tables();
    }

    /// Counts an access.
    #[inline(always)]
    pub fn record(&mut self, key: u32) {
        if u64::from(key) >= self.blocks && self.blocks < self.capacity {
            self.grow(u64::from(key) + 1);
        }
        let hash = mix(u64::from(key));
        if !self.has_doorkeeper || !self.enter(hash) {
            self.increment(hash);
        }
        self.additions += 1;
        if self.additions >= self.sample {
            self.halve();
        }
    }

    /// The accesses of a key that are still counted; never too few, up to 15, one more with a
    /// doorkeeper.
    #[inline(always)]
    pub fn estimate(&self, key: u32) -> u32 {
        let hash = mix(u64::from(key));
        let line = &self.lines[self.line(hash)];
        let count = (0..ROWS).map(|row| line.count(hash, row)).min().unwrap_or(0) as u32;
        let seen = self.has_doorkeeper && {
            let (word, bits) = self.door(hash);
            self.doorkeeper[word] & bits == bits
        };
        count + u32::from(seen)
    }

    /// Loads the counters of a key ahead of use.
    #[inline(always)]
    pub fn touch(&self, key: u32) {
        prefetch(&self.lines, self.line(mix(u64::from(key))));
    }

    /// Notes a key at the door; returns whether it was new there.
    #[inline(always)]
    fn enter(&mut self, hash: u64) -> bool {
        let (word, bits) = self.door(hash);
        let before = self.doorkeeper[word];
        self.doorkeeper[word] = before | bits;
        before & bits != bits
    }

    /// Raises those counters of a key that are the lowest.
    #[inline(always)]
    fn increment(&mut self, hash: u64) {
        let number = self.line(hash);
        let line = &mut self.lines[number];
        let counts: [u64; ROWS] = std::array::from_fn(|row| line.count(hash, row));
        let lowest = counts.into_iter().min().unwrap_or(MAX_COUNT);
        if lowest == MAX_COUNT {
            return;
        }
        for (row, count) in counts.into_iter().enumerate() {
            let (word, shift) = place(hash, row);
            line.0[word] += u64::from(count == lowest) << shift;
        }
    }

    #[cold]
    fn halve(&mut self) {
        for word in self.lines.iter_mut().flat_map(|line| &mut line.0) {
            *word = (*word >> 1) & HALVED;
        }
        self.doorkeeper.fill(0);
        self.additions /= 2;
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.lines.len() - 1)
    }

    /// The word of the doorkeeper and the two bits of a key.
    #[inline(always)]
    fn door(&self, hash: u64) -> (usize, u64) {
        let hash = mix(hash);
        let word = (hash >> 32) as usize & (self.doorkeeper.len() - 1);
        (word, 1 << (hash & 63) | 1 << (hash >> 6 & 63))
    }
}

/// The word of a line and the bit at which the counter of a row begins: a byte of the hash per row.
#[inline(always)]
fn place(hash: u64, row: usize) -> (usize, u64) {
    let counter = hash >> (8 * row) & 31;
    (2 * row + (counter >> 4) as usize, 4 * (counter & 15))
}

impl CounterLine {
    #[inline(always)]
    fn count(&self, hash: u64, row: usize) -> u64 {
        let (word, shift) = place(hash, row);
        self.0[word] >> shift & MAX_COUNT
    }

    /// Takes over the counters of another line that are higher.
    fn max(&mut self, other: CounterLine) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            for shift in (0..64).step_by(4) {
                let counter = MAX_COUNT << shift;
                if theirs & counter > *mine & counter {
                    *mine = *mine & !counter | theirs & counter;
                }
            }
        }
    }
}

/// Changes the length of a table, a power of two that the low bits of a hash index: it doubles by
/// repeating itself, and halves by joining its halves.
fn fit<T: Copy>(table: &mut Vec<T>, len: usize, join: impl Fn(&mut T, &T)) {
    let len = len.max(1);
    while table.len() < len {
        table.extend_from_within(..);
    }
    if table.len() < 4 * len {
        return;
    }
    while table.len() > len {
        let upper = table.split_off(table.len() / 2);
        table.iter_mut().zip(&upper).for_each(|(mine, theirs)| join(mine, theirs));
    }
    table.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::HashMap;

    #[test]
    fn an_estimate_is_never_too_low_and_rarely_too_high() {
        for has_doorkeeper in [false, true] {
            let mut sketch = Sketch::new(has_doorkeeper);
            sketch.fit(1000, u64::MAX);
            let mut counts: HashMap<u32, u32> = HashMap::new();
            let mut rng = Seed(3).rng();
            for _ in 0..20_000 {
                let key = (5000.0 * rng.unit().powi(3)) as u32;
                sketch.record(key);
                *counts.entry(key).or_default() += 1;
            }
            let max = if has_doorkeeper { 16 } else { 15 };
            let over = |(key, count): (&u32, &u32)| sketch.estimate(*key) - (*count).min(max);
            let wrong = counts.iter().filter(|pair| over(*pair) > 0).count();
            assert!(wrong * 10 < counts.len(), "{wrong} of {} are too high", counts.len());
        }
    }

    #[test]
    fn the_sketch_of_an_endless_cache_grows_with_its_keys() {
        let mut sketch = Sketch::new(true);
        sketch.fit(u32::MAX, u64::MAX);
        assert_eq!(sketch.lines.len() as u64, AT_ONCE / 8);
        let keys = [0, 1, (AT_ONCE - 1) as u32];
        keys.iter().for_each(|key| (0..3).for_each(|_| sketch.record(*key)));
        sketch.record(3 * AT_ONCE as u32);
        assert_eq!(sketch.lines.len() as u64, 4 * AT_ONCE / 8);
        assert_eq!(keys.map(|key| sketch.estimate(key)), [3; 3], "what was counted stays");
    }

    /// Key 1 five times: 1 at the door and 4 counted, 5. The sixth access is the sample: 4 + 1
    /// counted are halved to 2, the door is cleared, and three accesses later they are again.
    #[test]
    fn counters_are_halved_by_hand() {
        let mut sketch = Sketch::new(true);
        sketch.fit(8, 6);
        (0..5).for_each(|_| sketch.record(1));
        assert_eq!(sketch.estimate(1), 5);
        sketch.record(1);
        assert_eq!((sketch.estimate(1), sketch.additions), (2, 3));
        sketch.record(1);
        assert_eq!(sketch.estimate(1), 3);
        sketch.record(1);
        assert_eq!(sketch.estimate(1), 4);
        sketch.record(1);
        assert_eq!((sketch.estimate(1), sketch.additions), (2, 3));
    }

    #[test]
    fn another_size_forgets_nothing() {
        let mut sketch = Sketch::new(true);
        sketch.fit(100, u64::MAX);
        (0..60).for_each(|key| (0..=key % 12).for_each(|_| sketch.record(key)));
        for capacity in [5000, 20, 0, 300] {
            sketch.fit(capacity, u64::MAX);
            for key in 0..60 {
                assert!(sketch.estimate(key) > key % 12, "key {key} at {capacity}");
            }
        }
        assert_eq!((sketch.lines.len(), sketch.doorkeeper.len()), (64, 256));
    }
}
