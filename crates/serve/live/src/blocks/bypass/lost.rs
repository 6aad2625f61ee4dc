//! Blocks of one volume whose content is lost.
//!
//! For: reads that fail until a block is overwritten whole. Must never know: why content is lost.
//! Units: blocks.

use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks whose content is lost, as runs that do not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostBlocks {
    /// The ends of runs, by their starts.
    ends: BTreeMap<u64, u64>,
}

impl LostBlocks {
    /// The content of a block is lost.
    pub fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let end = self.ends.remove(&(number + 1)).unwrap_or(number + 1);
        let before = self.ends.range_mut(..number).next_back();
        match before.filter(|(_, before)| **before == number) {
            Some((_, before)) => *before = end,
            None => {
                self.ends.insert(number, end);
            }
        }
    }

    /// Blocks have other content.
    pub fn remove(&mut self, blocks: &Range<u64>) {
        while let Some(run) = self.first_in(blocks) {
            self.ends.remove(&run.start);
            if run.start < blocks.start {
                self.ends.insert(run.start, blocks.start);
            }
            if blocks.end < run.end {
                self.ends.insert(blocks.end, run.end);
            }
        }
    }

    /// Whether the content of a block of a range is lost.
    pub fn meets(&self, blocks: &Range<u64>) -> bool {
        self.first_in(blocks).is_some()
    }

    /// The runs, in order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(start, end)| *start..*end)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Blocks.
    pub fn len(&self) -> u64 {
        self.ends.iter().map(|(start, end)| end - start).sum()
    }

    fn contains(&self, number: u64) -> bool {
        self.meets(&(number..number + 1))
    }

    /// A run that meets a range.
    fn first_in(&self, blocks: &Range<u64>) -> Option<Range<u64>> {
        let (start, end) = self.ends.range(..blocks.end).next_back()?;
        (*end > blocks.start && !blocks.is_empty()).then_some(*start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::Seed;
    use std::collections::BTreeSet;

    #[test]
    fn runs_hold_what_a_set_of_blocks_holds() {
        let (mut lost, mut known) = (LostBlocks::default(), BTreeSet::new());
        let mut rng = Seed(3).rng();
        for _ in 0..4000 {
            let start = rng.below(40);
            let blocks = start..start + rng.below(6);
            if rng.below(3) > 0 {
                lost.insert(start);
                known.insert(start);
            } else {
                lost.remove(&blocks);
                known.retain(|number| !blocks.contains(number));
            }
            assert_eq!((lost.len(), lost.is_empty()), (known.len() as u64, known.is_empty()));
            assert_eq!(lost.meets(&blocks), known.iter().any(|number| blocks.contains(number)));
            let gaps = lost.ends.iter().zip(lost.ends.iter().skip(1));
            assert!(gaps.into_iter().all(|((_, end), (next, _))| end < next), "{lost:?}");
        }
    }
}
