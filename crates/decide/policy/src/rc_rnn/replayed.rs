//! What labels are worth: a whole stream of requests through the cache, each labelled beforehand.
//!
//! For: training that stops by hits, and ceilings. A label does not depend on what the cache holds,
//! so that labels can be found first. Units: blocks, accesses, requests.

use super::features::CachingLabel;
use super::{RcRnn, RcRnnSettings};
use crate::registry::Registered;
use crate::{Access, Policy, Verdict};
use cachewright_types::{BlockId, Seed};

/// An access of a stream: a write, the last of its request, a trim.
pub const WRITE: u8 = 1;
/// See [`WRITE`].
pub const LAST: u8 = 2;
/// See [`WRITE`].
pub const TRIM: u8 = 4;

/// What a part of a stream hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelTally {
    /// Block accesses.
    pub accesses: u64,
    /// Those that hit.
    pub hits: u64,
    /// Blocks that came in.
    pub admissions: u64,
}

/// Replays blocks with their flags ([`WRITE`], [`LAST`], [`TRIM`]) through a cache of
/// `capacity_blocks` and counts the requests of `counted`. Errors: another number of requests than
/// labels, other numbers of blocks and flags.
pub fn replay(
    blocks: &[u32],
    flags: &[u8],
    labels: &[CachingLabel],
    capacity_blocks: u32,
    settings: &RcRnnSettings,
    counted: std::ops::Range<usize>,
) -> Result<LabelTally, String> {
    if blocks.len() != flags.len() {
        return Err(format!("found {} blocks and {} flags", blocks.len(), flags.len()));
    }
    let mut cache = RcRnn::new(capacity_blocks, settings, Seed(0));
    cache.reserve_ids(blocks.iter().max().map_or(0, |most| *most as usize + 1));
    let (mut tally, mut requests, mut begins) = (LabelTally::default(), 0, true);
    for (block, flags) in blocks.iter().map(|block| BlockId(*block)).zip(flags) {
        if flags & TRIM != 0 {
            cache.remove(block);
            continue;
        }
        if begins {
            let label = labels.get(requests).ok_or_else(|| {
                format!("found {} labels, expected one for every request", labels.len())
            })?;
            cache.label = *label;
            requests += 1;
        }
        begins = flags & LAST != 0;
        let verdict = cache.access(Access { write: flags & WRITE != 0, ..Access::read(block) });
        if counted.contains(&(requests - 1)) {
            tally.accesses += 1;
            tally.hits += u64::from(verdict == Verdict::Hit);
            tally.admissions += u64::from(matches!(verdict, Verdict::Admit { .. }));
        }
    }
    match requests == labels.len() {
        true => Ok(tally),
        false => Err(format!("found {} labels, expected {requests}, one a request", labels.len())),
    }
}
