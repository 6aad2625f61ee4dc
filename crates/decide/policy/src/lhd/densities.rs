//! Hit densities by class and age, from the hits and evictions of the last intervals.
//!
//! For: `lhd`. Must never know: blocks, candidates. Source: Beckmann, Chen, Cidon, NSDI'18, section
//! 3: the density of a class at an age is the hits expected from there on over the time that they
//! and the evictions take. Ages are coarse: a bucket is a power of two of accesses, such that all
//! buckets together reach [`REACH`] accesses per cached block. Unit: accesses; densities are per
//! bucket. Memory: 768 KiB.

use cachewright_memory::prefetch;

/// Classes of blocks.
pub const CLASSES: usize = 16;
/// Buckets of ages; the last one takes all that is older.
pub const AGES: usize = 1 << AGES_LOG2;
const AGES_LOG2: u32 = 12;
/// Accesses per cached block that the buckets reach at least.
const REACH: u64 = 64;
/// What is left of the counts of an interval after the next one.
const DECAY: f32 = 0.9;
/// Events below which a density is 0.
const FEWEST_EVENTS: f64 = 1e-5;

/// The counts of one class and age.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    hits: f32,
    evictions: f32,
}

/// The densities; see the top of the file.
#[derive(Clone, Debug)]
pub struct Densities {
    /// By class, then age.
    events: Vec<Events>,
    densities: Vec<f32>,
    /// log2 of the accesses of a bucket.
    shift: u32,
}

impl Densities {
    /// No events: the densities fall with age and rise with class.
    pub fn new() -> Densities {
        let density = |index: usize| (1 + index / AGES) as f32 / (1 + index % AGES) as f32;
        Densities {
            events: vec![Events::default(); CLASSES * AGES],
            densities: (0..CLASSES * AGES).map(density).collect(),
            shift: 0,
        }
    }

    /// The bucket of an age.
    #[inline(always)]
    pub fn bucket(&self, age: u32) -> usize {
        ((age >> self.shift) as usize).min(AGES - 1)
    }

    /// The class of a block by the sum of its ages at its last two hits: 0 for the longest, one
    /// more for each halving.
    #[inline(always)]
    pub fn class(&self, ages: u64) -> usize {
        match (ages >> self.shift).checked_ilog2() {
            None => CLASSES - 1,
            Some(log) => (AGES_LOG2.saturating_sub(log) as usize).min(CLASSES - 1),
        }
    }

    /// Where the density of a class in a bucket stands; it starts to be loaded.
    #[inline(always)]
    pub fn cell(&self, class: usize, bucket: usize) -> u32 {
        let cell = class * AGES + bucket;
        prefetch(&self.densities, cell);
        cell as u32
    }

    /// The density in a cell; nothing at the greatest age.
    #[inline(always)]
    pub fn density(&self, cell: u32) -> Option<f32> {
        let cell = cell as usize;
        (cell % AGES < AGES - 1).then(|| self.densities[cell])
    }

    /// Counts a hit.
    #[inline(always)]
    pub fn count_hit(&mut self, class: usize, bucket: usize) {
        self.events[class * AGES + bucket].hits += 1.0;
    }

    /// Counts an eviction.
    #[inline(always)]
    pub fn count_eviction(&mut self, class: usize, bucket: usize) {
        self.events[class * AGES + bucket].evictions += 1.0;
    }

    /// Ends an interval: older counts fade, and densities are made anew. O(classes x ages).
    #[cold]
    pub fn reconfigure(&mut self) {
        for events in &mut self.events {
            events.hits *= DECAY;
            events.evictions *= DECAY;
        }
        self.model();
    }

    /// Makes the buckets fit a cache of so many blocks; counts move to the buckets of their ages.
    /// Buckets become smaller only when they are four times too large.
    pub fn fit(&mut self, capacity: u32) {
        let per_bucket = (REACH * u64::from(capacity)).div_ceil(AGES as u64).max(1);
        let wanted = per_bucket.next_power_of_two().ilog2();
        if wanted <= self.shift && wanted + 2 > self.shift {
            return;
        }
        let has_events = self.events.iter().any(|events| events.hits + events.evictions > 0.0);
        for ages in self.events.chunks_exact_mut(AGES) {
            (self.shift..wanted).for_each(|_| merge_pairs(ages));
            (wanted..self.shift).for_each(|_| split_in_pairs(ages));
        }
        self.shift = wanted;
        if has_events {
            self.model();
        }
    }

    /// Densities from the oldest bucket down: each adds its events to those that come later, and
    /// all of these wait one bucket more.
    fn model(&mut self) {
        let classes = self.events.chunks_exact(AGES).zip(self.densities.chunks_exact_mut(AGES));
        for (events, densities) in classes {
            let (mut hits, mut later, mut waits) = (0.0_f64, 0.0_f64, 0.0_f64);
            for (here, density) in events.iter().zip(densities).rev() {
                hits += f64::from(here.hits);
                later += f64::from(here.hits + here.evictions);
                waits += later;
                *density = if later > FEWEST_EVENTS { (hits / waits) as f32 } else { 0.0 };
            }
        }
    }
}

/// Buckets become twice as large.
fn merge_pairs(ages: &mut [Events]) {
    for bucket in 0..AGES {
        let mut sum = Events::default();
        for half in ages.iter().skip(2 * bucket).take(2) {
            sum.hits += half.hits;
            sum.evictions += half.evictions;
        }
        ages[bucket] = sum;
    }
}

/// Buckets become half as large; what is beyond the last one joins it.
fn split_in_pairs(ages: &mut [Events]) {
    let mut beyond = Events::default();
    for events in &ages[AGES / 2..] {
        beyond.hits += events.hits;
        beyond.evictions += events.evictions;
    }
    for bucket in (0..AGES).rev() {
        let Events { hits, evictions } = ages[bucket / 2];
        ages[bucket] = Events { hits: hits / 2.0, evictions: evictions / 2.0 };
    }
    let last = &mut ages[AGES - 1];
    last.hits += beyond.hits;
    last.evictions += beyond.evictions;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class 3: 6 hits at bucket 0, 2 at bucket 2, 2 evictions at bucket 4. From bucket 4 on, no
    /// hit: 0. Bucket 3: 0 of 2 events that wait 2 buckets: 0. Bucket 2: 2 hits; 4 + 2 + 2 waits:
    /// 1/4. Bucket 1: 4 more: 2/12. Bucket 0: 8 hits, 10 more: 8/22.
    #[test]
    fn densities_by_hand() {
        let mut table = Densities::new();
        (0..6).for_each(|_| table.count_hit(3, 0));
        (0..2).for_each(|_| table.count_hit(3, 2));
        (0..2).for_each(|_| table.count_eviction(3, 4));
        table.model();
        let density = |class, bucket| table.density(table.cell(class, bucket));
        let densities: Vec<f32> = (0..6).filter_map(|bucket| density(3, bucket)).collect();
        assert_eq!(densities, [8.0 / 22.0, 2.0 / 12.0, 0.25, 0.0, 0.0, 0.0]);
        assert_eq!(density(2, 0), Some(0.0), "a class without events");
        assert_eq!([density(3, AGES - 2), density(3, AGES - 1)], [Some(0.0), None]);
    }

    #[test]
    fn classes_halve_the_ages() {
        let table = Densities::new();
        let classes = [u64::MAX / 2, 4096, 4095, 2048, 1024, 3, 1, 0].map(|ages| table.class(ages));
        assert_eq!(classes, [0, 0, 1, 1, 2, 11, 12, 15]);
    }

    #[test]
    fn counts_follow_their_ages_to_other_buckets() {
        let mut table = Densities::new();
        table.fit(64);
        assert_eq!((table.shift, table.bucket(7), table.bucket(1 << 20)), (0, 7, AGES - 1));
        table.count_hit(0, table.bucket(40));
        table.count_eviction(0, table.bucket(1 << 20));
        table.fit(256);
        assert_eq!((table.shift, table.bucket(40), table.bucket(9000)), (2, 10, 2250));
        assert_eq!(table.events[10].hits, 1.0);
        assert_eq!(table.events[AGES / 4 - 1].evictions, 1.0, "its true age is not known");
        table.fit(129);
        assert_eq!(table.shift, 2, "twice too large is not too large");
        table.fit(60);
        assert_eq!((table.shift, table.events[40].hits), (0, 0.25));
    }
}
