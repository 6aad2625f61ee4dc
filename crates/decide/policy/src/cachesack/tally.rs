//! What each way to admit would have brought a category, for every retention time at once.
//!
//! For: `cachesack`. Must never know: the cache itself, blocks' ids. Units: accesses, blocks, and
//! blocks times accesses for space. A block that would be in the cache under a long retention time
//! but not under a short one is described by the first time under which it would ([`Retention`]).
//! Counts halve with each plan, so that the past is forgotten; halves of whole numbers are exact.

use super::retention::{NEVER, Retention, TIMES};

const CUTS: usize = TIMES + 1;

/// Ways to admit a missed block. Nothing of a category without a way is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Every missed block.
    Miss,
    /// A block missed before, not longer ago than the retention time.
    SecondMiss,
    /// A block that is written.
    Write,
}

/// All ways, by index.
pub const WAYS: [Way; 3] = [Way::Miss, Way::SecondMiss, Way::Write];

/// One way's waits: arrays by the first retention time that is long enough.
#[derive(Clone, Copy, Debug, Default)]
struct WayTally {
    /// Waits that end in a hit from this time on.
    hits: [f64; CUTS],
    /// The lengths of these waits.
    held: [f64; CUTS],
    /// Change of the waits during which the block leaves, from this time on.
    cut: [f64; CUTS],
    /// Change of the blocks written into the cache, from this time on.
    written: [f64; CUTS],
}

/// All ways of one category.
#[derive(Clone, Copy, Debug, Default)]
pub struct CategoryTally {
    ways: [WayTally; WAYS.len()],
    /// Waits that have ended, by a use or as the block was forgotten.
    ended: f64,
    /// Waits that began.
    pub begun: f64,
}

/// What a way would have brought under one retention time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WayOutcome {
    /// Blocks times accesses.
    pub space: f64,
    /// Blocks read from the backing device, and blocks written into the cache times their price.
    pub cost: f64,
}

impl CategoryTally {
    /// A wait has ended, for whose block each way had `from`, the first time under which it would
    /// have been in the cache.
    #[inline(always)]
    pub fn end_wait(&mut self, from: [u8; WAYS.len()], index: u8, length: u64) {
        self.ended += 1.0;
        for (way, from) in self.ways.iter_mut().zip(from) {
            let hit = from.max(index);
            way.hits[usize::from(hit)] += 1.0;
            way.held[usize::from(hit)] += length as f64;
            if from < index {
                way.cut[usize::from(from)] += 1.0;
                way.cut[usize::from(index)] -= 1.0;
            }
        }
    }

    /// A way would have written a block into the cache under the times `from..to`.
    #[inline(always)]
    pub fn write(&mut self, way: Way, from: u8, to: u8) {
        if from < to {
            let written = &mut self.ways[way as usize].written;
            written[usize::from(from)] += 1.0;
            written[usize::from(to)] -= 1.0;
        }
    }

    /// The outcome of each way under each time, and of no way.
    pub fn outcomes(
        &self,
        retention: &Retention,
        write_price: f64,
    ) -> [[WayOutcome; WAYS.len()]; TIMES] {
        let mut found = [[WayOutcome::default(); WAYS.len()]; TIMES];
        for (number, way) in self.ways.iter().enumerate() {
            let (mut hits, mut held, mut cut, mut written) = (0.0, 0.0, 0.0, 0.0);
            for (index, outcomes) in found.iter_mut().enumerate() {
                hits += way.hits[index];
                held += way.held[index];
                cut += way.cut[index];
                written += way.written[index];
                let space = held + cut * retention.time(index) as f64;
                outcomes[number] =
                    WayOutcome { space, cost: self.ended - hits + write_price * written };
            }
        }
        found
    }

    /// The outcome without admission.
    pub fn without(&self) -> WayOutcome {
        WayOutcome { space: 0.0, cost: self.ended }
    }

    /// Halves all counts.
    pub fn halve(&mut self) {
        for way in &mut self.ways {
            let arrays = [&mut way.hits, &mut way.held, &mut way.cut, &mut way.written];
            arrays.into_iter().flatten().for_each(|count| *count /= 2.0);
        }
        self.ended /= 2.0;
        self.begun /= 2.0;
    }
}

/// What is known of a block between two uses: the first retention time under which each way would
/// have it in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPresence {
    /// On its second miss.
    second: u8,
    /// On its last write.
    written: u8,
}

impl Default for BlockPresence {
    /// Of a block that was never used.
    fn default() -> BlockPresence {
        BlockPresence { second: NEVER, written: NEVER }
    }
}

impl BlockPresence {
    /// By way.
    #[inline(always)]
    pub fn from(self) -> [u8; WAYS.len()] {
        [0, self.second, self.written]
    }

    /// Notes a use after a wait of this index in the tally of the use's category.
    #[inline(always)]
    pub fn note(&mut self, index: u8, write: bool, tally: &mut CategoryTally) {
        tally.begun += 1.0;
        tally.write(Way::Miss, 0, index);
        tally.write(Way::SecondMiss, index, self.second);
        self.second = index;
        let missed = self.written.max(index);
        if write {
            tally.write(Way::Write, 0, missed);
        }
        self.written = if write { 0 } else { missed };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block is read, read again 30 accesses later, written 60 later and read 10 later; times
    /// are 25, 36, 50, 71 and so on.
    #[test]
    fn four_uses_by_hand() {
        let retention = Retention::new(100);
        let (mut tally, mut block) = (CategoryTally::default(), BlockPresence::default());
        block.note(NEVER, false, &mut tally);
        for (wait, write) in [(30, false), (60, true), (10, false)] {
            let index = retention.index(wait);
            tally.end_wait(block.from(), index, wait);
            block.note(index, write, &mut tally);
        }
        let found = tally.outcomes(&retention, 0.0);
        // Under 25: a hit after 10; else each stays for 25. Under 36: two hits. Under 71: all.
        let on_miss = [0, 1, 3].map(|index| (found[index][0].cost, found[index][0].space));
        assert_eq!(on_miss, [(2.0, 60.0), (1.0, 76.0), (0.0, 100.0)]);
        // Under 25 it is never missed twice in time before the last read, which hits nothing.
        assert_eq!((found[0][1].cost, found[0][1].space), (3.0, 0.0));
        // Under 71 it enters at the second use and is hit at the third and fourth.
        assert_eq!((found[3][1].cost, found[3][1].space), (1.0, 70.0));
        // It is written at the third use and hit at the fourth.
        assert_eq!((found[0][2].cost, found[0][2].space), (2.0, 10.0));
        // Blocks written at a price of 1: under 25 three, under 71 one; on second misses one.
        let priced = tally.outcomes(&retention, 1.0);
        assert_eq!(priced[0][0].cost - found[0][0].cost, 3.0);
        assert_eq!(priced[3][0].cost - found[3][0].cost, 1.0);
        assert_eq!(priced[3][1].cost - found[3][1].cost, 1.0);
        assert_eq!(tally.without(), WayOutcome { space: 0.0, cost: 3.0 });
        tally.halve();
        assert_eq!(tally.without().cost, 1.5);
    }
}
