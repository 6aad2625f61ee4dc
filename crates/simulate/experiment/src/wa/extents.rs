//! The written addresses as one dense row of logical pages.
//!
//! For: a drive as large as what is written, on which neighbours stay neighbours: pages are
//! numbered by space and address, not by first sight. Must never know: requests, drives. Units:
//! pages. Memory: 32 bytes per run of neighbouring pages, twice that while runs are gathered.

use std::ops::Range;

/// Runs gathered before they are merged for the first time.
const FIRST_MERGE: usize = 1 << 16;

/// Neighbouring pages of one space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ExtentRun {
    space: u32,
    first: u64,
    end: u64,
    /// Pages of all runs before this one.
    rank: u64,
}

/// A set of pages; numbers are valid after [`WrittenExtents::number`].
#[derive(Clone, Debug, Default)]
pub struct WrittenExtents {
    runs: Vec<ExtentRun>,
    merged: usize,
}

impl WrittenExtents {
    /// Adds the pages `first..end` of a space.
    pub fn add(&mut self, space: u32, first: u64, end: u64) {
        if first >= end {
            return;
        }
        if let Some(last) = self.runs.last_mut().filter(|last| last.space == space)
            && first >= last.first
            && first <= last.end
        {
            last.end = last.end.max(end);
            return;
        }
        self.runs.push(ExtentRun { space, first, end, rank: 0 });
        if self.runs.len() > 2 * self.merged + FIRST_MERGE {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.runs.sort_unstable();
        let mut merged: Vec<ExtentRun> = Vec::new();
        for run in self.runs.drain(..) {
            match merged.last_mut().filter(|last| last.space == run.space && run.first <= last.end)
            {
                Some(last) => last.end = last.end.max(run.end),
                None => merged.push(run),
            }
        }
        self.merged = merged.len();
        self.runs = merged;
    }

    /// Numbers the pages from 0 and returns how many there are; nothing when they are beyond
    /// counting.
    pub fn number(&mut self) -> Option<u64> {
        self.merge();
        let mut pages = 0_u64;
        for run in &mut self.runs {
            run.rank = pages;
            pages = pages.checked_add(run.end - run.first)?;
        }
        Some(pages)
    }

    /// The numbers of the pages of the set among `first..end` of a space.
    pub fn numbers(&self, space: u32, first: u64, end: u64) -> Range<u64> {
        let start = self.below(space, first);
        start..self.below(space, end).max(start)
    }

    /// Pages of the set before a page.
    fn below(&self, space: u32, page: u64) -> u64 {
        let after = self.runs.partition_point(|run| (run.space, run.first) < (space, page));
        match after.checked_sub(1).map(|index| &self.runs[index]) {
            None => 0,
            Some(run) if run.space == space => run.rank + page.min(run.end) - run.first,
            Some(run) => run.rank + run.end - run.first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn pages_are_numbered_by_space_and_address() {
        let mut extents = WrittenExtents::default();
        extents.add(1, 5, 7);
        extents.add(0, 10, 12);
        extents.add(0, 2, 4);
        extents.add(0, 11, 13);
        assert_eq!(extents.number(), Some(7));
        assert_eq!(extents.numbers(0, 2, 4), 0..2);
        assert_eq!(extents.numbers(0, 0, 100), 0..5);
        assert_eq!(extents.numbers(0, 4, 10), 2..2);
        assert_eq!(extents.numbers(1, 6, 100), 6..7);
        assert_eq!(extents.numbers(7, 0, 9), 7..7);
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(
            adds in prop::collection::vec((0_u32..3, 0_u64..60, 1_u64..9), 0..60),
            ask in (0_u32..4, 0_u64..70, 0_u64..20),
        ) {
            let mut extents = WrittenExtents::default();
            let mut set = BTreeSet::new();
            for (space, first, pages) in adds {
                extents.add(space, first, first + pages);
                set.extend((first..first + pages).map(|page| (space, page)));
            }
            prop_assert_eq!(extents.number(), Some(set.len() as u64));
            let (space, first, pages) = ask;
            let before = set.range(..(space, first)).count() as u64;
            let within = set.range((space, first)..(space, first + pages)).count() as u64;
            prop_assert_eq!(extents.numbers(space, first, first + pages), before..before + within);
        }
    }
}
