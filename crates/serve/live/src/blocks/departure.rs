//! Blocks that a plan takes out of the cache, and by which version.
//!
//! For: what the log is told of blocks that leave. Must never know: data, devices, the log. Units:
//! blocks, decisions.

use super::placement::{Gone, Stay};
use crate::log::format::Version;
use cachewright_cache::{Cached, Move};
use cachewright_steps::ResidentId;
use std::ops::Range;

/// Why a block leaves the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its clean content is not wanted any more.
    Dropped,
    /// Its dirty content is written back.
    WrittenBack,
    /// Its content is void.
    Discarded {
        /// The backing device has older content.
        dirty: bool,
    },
}

/// A block that leaves the cache by a decision.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Its resident, which ends when no step touches it.
    pub resident: ResidentId,
    /// Its stay.
    pub stay: Stay,
    /// Why it leaves.
    pub reason: Reason,
    /// The version of its leaving.
    pub version: Version,
}

impl Departure {
    /// The blocks that a plan has taken out of the cache by a decision of this number in the log;
    /// `left` are their stays in the order of its moves. A block that leaves before the plan comes
    /// to it may come in again. One that leaves later does not, and takes along what the plan did.
    pub fn of_plan(moves: &[Move], left: Vec<Gone>, decision: u64) -> Vec<Departure> {
        let mut left = left.into_iter();
        let mut touched: Option<Range<u64>> = None;
        let departure = |step: &Move| {
            let (cached, reason) = match step {
                Move::WriteBack(cached) => (cached, Reason::WrittenBack),
                Move::Drop(cached) => (cached, Reason::Dropped),
                Move::Discard { cached, dirty } => (cached, Reason::Discarded { dirty: *dirty }),
                Move::Serve(Cached { number, .. })
                | Move::Fetch(Cached { number, .. })
                | Move::Bypass { number, .. } => {
                    let first = touched.as_ref().map_or(*number, |range| range.start);
                    touched = Some(first..number + 1);
                    return None;
                }
                _ => return None,
            };
            let (resident, stay) = left.next()?;
            debug_assert_eq!((stay.tenant, stay.number), (cached.tenant, cached.number));
            let late = stay.admitted == stay.left
                || touched.as_ref().is_some_and(|range| range.contains(&stay.number));
            let version = match late {
                true => Version::last(decision),
                false => Version::left_first(decision),
            };
            Some(Departure { resident, stay, reason, version })
        };
        moves.iter().filter_map(departure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_policy::Region;
    use cachewright_types::{BlockId, TenantId};

    #[test]
    fn a_block_that_leaves_behind_its_turn_leaves_last() {
        let tenant = TenantId(0);
        let cached = |number: u64| {
            let id = BlockId(number as u32);
            Cached { pool: 0, id, tenant, number, region: Region::Any }
        };
        let stay = |number: u64, admitted: u64| {
            (
                ResidentId::new(number as usize),
                Stay { tenant, number, admitted, left: 9, serial: 0 },
            )
        };
        let moves = [
            Move::Drop(cached(5)),
            Move::Serve(cached(3)),
            Move::WriteBack(cached(3)),
            Move::Discard { cached: cached(7), dirty: true },
        ];
        let found = Departure::of_plan(&moves, vec![stay(5, 1), stay(3, 1), stay(7, 9)], 40);
        let (first, last) = (Version::left_first(40), Version::last(40));
        let versions: Vec<Version> = found.iter().map(|departure| departure.version).collect();
        assert_eq!(versions, [first, last, last], "the third came in by the same decision");
        let reasons: Vec<Reason> = found.iter().map(|departure| departure.reason).collect();
        let expected = [Reason::Dropped, Reason::WrittenBack, Reason::Discarded { dirty: true }];
        assert_eq!(reasons, expected);
    }
}
