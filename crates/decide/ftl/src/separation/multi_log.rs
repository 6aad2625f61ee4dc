//! Multi-log: levels that pages sink through when they are moved and rise from by chance when the
//! host rewrites them sooner than their level expects.
//!
//! For: a peer of the other rules. Must never know: ages of superblocks. Source: Stoica and
//! Ailamaki, VLDB'13, as SepBIT's simulator has it. A new level is opened once the highest holds a
//! superblock's worth of valid pages. A page at a level above 0 rises with probability (E - d) / E,
//! where d is the distance to its last write. E is V (1 - G) / 2. V counts the level's valid pages;
//! G is the share of invalid pages in the superblocks collected from it. The paper's own victim
//! selection is not part of it. Units: pages. Memory: 5 bytes per page.

use super::{Invalidated, MovedPage, Registered, Separation, Stream, Write};
use crate::{Block, Entry, Geometry};
use cachewright_types::{Rng, Seed};

cachewright_types::declare! {
    /// The number of levels.
    pub struct MultiLogSettings {
        /// levels, the hottest first
        levels: u32 = 6, "levels", 2 ..= 64;
    }
}

/// What is known of one level.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    valid: u64,
    collected: u64,
    collected_invalid: u64,
}

/// Levels with chance promotion.
#[derive(Clone, Debug)]
pub struct MultiLog {
    levels: Vec<Level>,
    highest: u8,
    block_pages: u64,
    /// Level of each page.
    level: Vec<u8>,
    /// The clock at each page's last write, modulo 2^32.
    last: Vec<u32>,
    rng: Rng,
}

impl Registered for MultiLog {
    type Settings = MultiLogSettings;
    const ENTRY: Entry = Entry {
        name: "multi-log",
        doc: "pages sink a level when moved and rise by chance when rewritten sooner than expected",
        source: "Stoica and Ailamaki, VLDB'13; MultiLog of SepBIT, FAST'22",
        needs: &[],
    };

    fn new(geometry: &Geometry, settings: &MultiLogSettings, seed: Seed) -> Self {
        let pages = geometry.logical_pages as usize;
        MultiLog {
            levels: vec![Level::default(); settings.levels as usize],
            highest: 0,
            block_pages: u64::from(geometry.block_pages),
            level: vec![0; pages],
            last: vec![0; pages],
            rng: seed.derive("multi-log").rng(),
        }
    }
}

impl MultiLog {
    fn put(&mut self, page: u32, level: u8) -> Stream {
        self.level[page as usize] = level;
        self.levels[usize::from(level)].valid += 1;
        Stream(level)
    }
}

impl Separation for MultiLog {
    const WATCHES_INVALIDATION: bool = true;

    fn streams(&self) -> u32 {
        self.levels.len() as u32
    }

    fn place_user(&mut self, write: &Write) -> Stream {
        let page = write.page as usize;
        let distance = (write.clock as u32).wrapping_sub(self.last[page]);
        self.last[page] = write.clock as u32;
        let mut level = self.level[page];
        let Level { valid, collected, collected_invalid } = self.levels[usize::from(level)];
        if level > 0 && collected > 0 {
            let kept = 1.0 - collected_invalid as f64 / collected as f64;
            let expected = valid as f64 * kept / 2.0;
            let chance = (expected - f64::from(distance)) / expected;
            if chance > 0.0 && self.rng.unit() < chance {
                level -= 1;
            }
        }
        self.put(write.page, level)
    }

    fn place_moved(&mut self, moved: &MovedPage<'_>) -> Stream {
        let mut level = self.level[moved.page as usize];
        if level < self.highest {
            level += 1;
        } else if usize::from(level) + 1 < self.levels.len()
            && self.levels[usize::from(level)].valid >= self.block_pages
        {
            level += 1;
            self.highest = level;
        }
        self.put(moved.page, level)
    }

    fn on_invalidate(&mut self, gone: &Invalidated<'_>) {
        let level = &mut self.levels[gone.block.stream.index()];
        level.valid = level.valid.saturating_sub(1);
    }

    fn on_collect(&mut self, victim: &Block, _: u64) {
        let level = &mut self.levels[victim.stream.index()];
        level.valid = level.valid.saturating_sub(u64::from(victim.pages - victim.invalid));
        level.collected += u64::from(victim.pages);
        level.collected_invalid += u64::from(victim.invalid);
    }

    fn metadata_bytes_per_page(&self) -> f64 {
        5.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{geometry, moved, write};
    use super::*;

    /// 64 pages fill a superblock; with 64 valid pages at level 0 a moved page opens level 1, with
    /// fewer it stays.
    #[test]
    fn a_level_opens_when_the_last_holds_a_superblock() {
        let settings = MultiLogSettings::default();
        let mut log = MultiLog::new(&geometry(), &settings, Seed(0));
        (0..63).for_each(|page| {
            log.place_user(&write(page, 1 + u64::from(page)));
        });
        let victim = Block::default();
        assert_eq!(log.place_moved(&moved(0, &victim, 70)), Stream(0));
        assert_eq!(log.place_moved(&moved(0, &victim, 70)), Stream(1));
        assert_eq!(log.place_user(&write(0, 71)), Stream(1), "nothing was collected there yet");
    }
}
