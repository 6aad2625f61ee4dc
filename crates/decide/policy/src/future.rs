//! What is known of the future of an access.
//!
//! For: policies that declare [`Need::Future`](crate::Need::Future) or
//! [`Need::Benefit`](crate::Need::Benefit), and the replays that feed them. Units: positions in the
//! stream of accesses; a benefit has none. All other policies never read it: their replay loops do
//! not even load it.

use cachewright_snapshot::SnapshotValue;
use std::ops::Range;

/// The position of a block's next access when there is none.
pub const NEVER: u32 = u32::MAX;

/// What is known of the future of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
pub enum Future {
    /// Nothing.
    #[default]
    None,
    /// Position in the stream of the next access to the same block, [`NEVER`] if there is none.
    NextUse(u32),
    /// What holding the block from this access on is worth.
    Benefit(f32),
}

impl Future {
    /// The position of the next access; [`NEVER`] if it is not known.
    #[inline(always)]
    pub fn next_use(self) -> u32 {
        match self {
            Future::NextUse(position) => position,
            Future::None | Future::Benefit(_) => NEVER,
        }
    }

    /// The benefit; 0 if it is not known. Never negative, never not a number.
    #[inline(always)]
    pub fn benefit(self) -> f32 {
        match self {
            Future::Benefit(benefit) if benefit > 0.0 => benefit,
            _ => 0.0,
        }
    }
}

/// The futures of all accesses of a stream, in one column: 4 bytes per access.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FutureColumn {
    /// Nothing is known of any.
    #[default]
    None,
    /// See [`Future::NextUse`].
    NextUse(Vec<u32>),
    /// See [`Future::Benefit`].
    Benefit(Vec<f32>),
}

impl FutureColumn {
    /// The column, to read.
    pub fn as_slice(&self) -> FutureSlice<'_> {
        match self {
            FutureColumn::None => FutureSlice::None,
            FutureColumn::NextUse(positions) => FutureSlice::NextUse(positions),
            FutureColumn::Benefit(benefits) => FutureSlice::Benefit(benefits),
        }
    }
}

/// The futures of some accesses in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum FutureSlice<'a> {
    /// Nothing is known of any.
    #[default]
    None,
    /// See [`Future::NextUse`].
    NextUse(&'a [u32]),
    /// See [`Future::Benefit`].
    Benefit(&'a [f32]),
}

impl FutureSlice<'_> {
    /// The future of the access at `index`. Beyond the end there is no next use and no benefit.
    #[inline(always)]
    pub fn at(self, index: usize) -> Future {
        match self {
            FutureSlice::None => Future::None,
            FutureSlice::NextUse(positions) => {
                Future::NextUse(positions.get(index).copied().unwrap_or(NEVER))
            }
            FutureSlice::Benefit(benefits) => {
                Future::Benefit(benefits.get(index).copied().unwrap_or_default())
            }
        }
    }

    /// The futures of the accesses in `range`; empty if the range goes beyond the end.
    pub fn range(self, range: Range<usize>) -> Self {
        match self {
            FutureSlice::None => FutureSlice::None,
            FutureSlice::NextUse(positions) => {
                FutureSlice::NextUse(positions.get(range).unwrap_or_default())
            }
            FutureSlice::Benefit(benefits) => {
                FutureSlice::Benefit(benefits.get(range).unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_tells_of_each_access_what_its_column_holds() {
        let next = FutureColumn::NextUse(vec![2, NEVER, NEVER]);
        assert_eq!(next.as_slice().at(0), Future::NextUse(2));
        assert_eq!(next.as_slice().range(1..3).at(0).next_use(), NEVER);
        assert_eq!(next.as_slice().at(3), Future::NextUse(NEVER));
        assert_eq!(next.as_slice().range(0..9).at(0).next_use(), NEVER, "not in the column");
        let worth = FutureColumn::Benefit(vec![0.5, 2.0]);
        assert_eq!(worth.as_slice().range(1..2).at(0).benefit(), 2.0);
        assert_eq!(FutureColumn::None.as_slice().at(0), Future::None);
    }

    #[test]
    fn one_kind_of_future_says_nothing_about_the_other() {
        assert_eq!(Future::NextUse(1).benefit(), 0.0);
        assert_eq!(Future::Benefit(1.0).next_use(), NEVER);
        assert!(size_of::<crate::Access>() <= 16);
    }
}
