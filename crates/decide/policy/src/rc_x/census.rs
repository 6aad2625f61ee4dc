//! The waits under way at the end of a learning period, counted while it lasts.
//!
//! For: `rc-x`, so that no access visits all blocks. Must never know: what is learned. Units:
//! accesses, waits.
//!
//! When a period begins its end is known, and with it the age that a wait will have then. A block
//! that is used is counted at once. All others are visited a few per access: the blocks in the
//! cache from the last place down, then the ghosts from the oldest on. Blocks that move meanwhile
//! move to where the visits come later, or were counted. Memory: 80 KiB of counts.

use super::RcX;
use super::class::CLASSES;
use super::life::{AGES, index_of};
use super::record::{BlockRecord, OUT};
use cachewright_types::BlockId;

/// Visits per access beyond the even share: blocks that become ghosts meanwhile.
const SPARE_VISITS: u32 = 4;

/// Which block is visited next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CensusStage {
    /// The one below this place in the cache.
    Cached(u32),
    /// This ghost.
    Ghosts(BlockId),
    /// Every wait is counted.
    Done,
}

/// Counts of waits by class and by their age at the end of the period.
#[derive(Clone, Debug)]
pub(super) struct Census {
    counts: Vec<u32>,
    /// When the period ends, if each access is one of it.
    end: u32,
    /// What [`BlockRecord::counted`] says of a wait that is counted; turns with each period.
    round: bool,
    stage: CensusStage,
    visits_per_access: u32,
    /// Whether uses were noted outside the period, which then ends at another time.
    is_late: bool,
}

impl Census {
    /// No wait, in a period that ends at an access.
    pub fn new(end: u32) -> Census {
        Census {
            counts: vec![0; CLASSES * AGES],
            end,
            round: true,
            stage: CensusStage::Done,
            visits_per_access: 0,
            is_late: false,
        }
    }

    /// Waits by class and then by age at the end of the period.
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// A use was noted that is no access of the period.
    pub fn note_late(&mut self) {
        self.is_late = true;
    }

    /// What is visited next, if anything is.
    #[cfg(test)]
    pub fn left_to_visit(&self) -> Option<String> {
        (self.stage != CensusStage::Done).then(|| format!("{:?}", self.stage))
    }

    /// The wait of a block ends, if there is one and it was counted.
    #[inline(always)]
    pub fn remove(&mut self, known: &BlockRecord) {
        if known.is_known() && known.counted == self.round {
            let cell = self.cell(known);
            self.counts[cell] -= 1;
        }
    }

    /// Counts the wait of a block, which is not counted.
    #[inline(always)]
    pub fn insert(&mut self, known: &mut BlockRecord) {
        known.counted = self.round;
        let cell = self.cell(known);
        self.counts[cell] += 1;
    }

    #[inline(always)]
    fn cell(&self, known: &BlockRecord) -> usize {
        usize::from(known.class) * AGES + index_of(self.end.wrapping_sub(known.last))
    }
}

impl RcX {
    /// Visits a few blocks.
    #[inline(always)]
    pub(super) fn visit_some(&mut self) {
        if self.census.stage != CensusStage::Done {
            self.visit(self.census.visits_per_access);
        }
    }

    /// Counts every wait that is not counted yet, now that the period has ended.
    pub(super) fn finish_census(&mut self) {
        self.visit(u32::MAX);
        if std::mem::take(&mut self.census.is_late) {
            self.count_again();
        }
    }

    /// Begins to count for a period of so many accesses from the present one on.
    pub(super) fn begin_census(&mut self, accesses: u32) {
        let blocks = self.held.len() + self.links.len(0);
        let census = &mut self.census;
        census.counts.fill(0);
        census.end = self.now.wrapping_add(accesses);
        census.round = !census.round;
        census.stage = CensusStage::Cached(self.held.len());
        census.visits_per_access = blocks / accesses.max(1) + SPARE_VISITS;
    }

    /// A ghost leaves its list.
    #[inline(always)]
    pub(super) fn unlink_ghost(&mut self, block: BlockId) {
        if self.census.stage == CensusStage::Ghosts(block) {
            self.census.stage =
                self.links.newer(block).map_or(CensusStage::Done, CensusStage::Ghosts);
        }
        self.links.unlink(0, block);
    }

    /// Ids have changed; `renamed` gives the new id of a block.
    pub(super) fn rename_visited(&mut self, renamed: impl Fn(BlockId) -> Option<BlockId>) {
        if let CensusStage::Ghosts(block) = self.census.stage {
            self.census.stage = renamed(block).map_or(CensusStage::Done, CensusStage::Ghosts);
        }
    }

    #[inline(never)]
    fn visit(&mut self, count: u32) {
        for _ in 0..count {
            let Some(block) = self.next_visit() else { return };
            let known = self.links.tag_mut(block);
            if known.counted != self.census.round {
                self.census.insert(known);
            }
        }
    }

    fn next_visit(&mut self) -> Option<BlockId> {
        if let CensusStage::Cached(place) = self.census.stage {
            if let Some(below) = place.min(self.held.len()).checked_sub(1) {
                self.census.stage = CensusStage::Cached(below);
                return Some(self.held.at_place(below).block);
            }
            self.census.stage = self.links.tail(0).map_or(CensusStage::Done, CensusStage::Ghosts);
        }
        let CensusStage::Ghosts(block) = self.census.stage else { return None };
        self.census.stage = self.links.newer(block).map_or(CensusStage::Done, CensusStage::Ghosts);
        Some(block)
    }

    /// Counts all waits by their age now.
    fn count_again(&mut self) {
        self.census.counts.fill(0);
        self.census.end = self.now;
        for held in self.held.iter() {
            self.census.insert(self.links.tag_mut(held.block));
        }
        let mut next = self.links.tail(0);
        while let Some(block) = next {
            self.census.insert(self.links.tag_mut(block));
            next = self.links.newer(block);
        }
    }

    /// Checks, slowly, that the counts are those of the blocks that say so.
    pub(super) fn audit_census(&self) -> Result<(), String> {
        let mut counts = vec![0_u32; CLASSES * AGES];
        let held = self.held.iter().map(|held| held.block);
        for block in held.chain(self.links.iter(0)) {
            let known = self.links.tag(block);
            if known.counted == self.census.round {
                counts[self.census.cell(&known)] += 1;
            } else if self.census.stage == CensusStage::Done {
                let place = if known.place == OUT { "a ghost" } else { "in the cache" };
                return Err(format!("the wait of block {}, {place}, is not counted", block.0));
            }
        }
        match counts.iter().zip(&self.census.counts).position(|(found, count)| found != count) {
            Some(cell) => Err(format!(
                "{} waits of class {} and age {} are counted, expected {}",
                self.census.counts[cell],
                cell / AGES,
                cell % AGES,
                counts[cell]
            )),
            None => Ok(()),
        }
    }
}
