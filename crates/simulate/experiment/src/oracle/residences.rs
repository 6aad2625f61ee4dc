//! Which access falls into which stay of its block in the cache, and how long each stay lasts.
//!
//! For: labels. Must never know: labels, requests. Units: block accesses. Memory: 4 bytes per
//! access and per distinct block, 8 per stay.

use super::Reading;
use crate::ExperimentError;
use crate::lanes::Plan;
use crate::progress::{OnProgress, Progress};
use cachewright_cache::{BlockAccess, Quotas};
use cachewright_measure::Counts;
use cachewright_policy::{FutureSlice, NEVER, Verdict};
use cachewright_system::recording::{LAST, TRIM, WRITE};
use cachewright_types::{BlockId, TenantId};

/// No stay.
const OUT: u32 = u32::MAX;
/// Accesses between two calls of the progress function.
const PROGRESS_EVERY: usize = 1 << 18;

/// The stays of all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Residences {
    /// The stay that each access of the recording falls into, or [`OUT`].
    of_access: Vec<u32>,
    /// The stay of each block at present, or [`OUT`].
    of_block: Vec<u32>,
    /// The number of the access that began each stay, and of the one that ended it; [`NEVER`] for
    /// no end.
    stays: Vec<(u32, u32)>,
    /// The access of the recording at which the cache was full for the first time.
    pub(super) filled: Option<usize>,
    /// Accesses and hits from an access on.
    pub(super) later: (u64, u64),
}

/// Replays the recording of a plan with one tenant through its cache up to its access number `end`,
/// those from `later` on counted apart; `futures` are those of its accesses. Errors: a setting of
/// the policy, cancelled.
pub(super) fn follow(
    plan: &Plan<'_>,
    futures: FutureSlice<'_>,
    (end, later): (usize, usize),
    progress: OnProgress<'_>,
) -> Result<(Residences, Counts), ExperimentError> {
    let (recording, tenant) = (plan.recording, TenantId(0));
    let quotas = Quotas::Shared(plan.capacity_blocks);
    let mut engine = plan.boxed(&quotas)?;
    engine.reserve_ids(0, recording.distinct as usize);
    let mut residences =
        Residences { of_block: vec![OUT; recording.distinct as usize], ..Residences::default() };
    let (mut now, mut all_hit) = (0_u32, true);
    let mut room = plan.capacity_blocks;
    for (at, (id, flags)) in recording.ids.iter().zip(&recording.flags).enumerate().take(end) {
        let block = BlockId(*id);
        if at.is_multiple_of(PROGRESS_EVERY) {
            let (stage, total) = ("asking the oracle", Some(recording.len() as u64));
            if !progress(Progress { stage, done: at as u64, total }) {
                return Err(ExperimentError::Cancelled);
            }
        }
        if flags & TRIM != 0 {
            engine.discard(tenant, block);
            residences.leave(block, now);
            residences.of_access.push(OUT);
            continue;
        }
        let (write, future) = (flags & WRITE != 0, futures.at(at));
        let outcome = engine.access(BlockAccess { block, tenant, write, future });
        match outcome.verdict {
            Verdict::Hit => {}
            Verdict::Admit { evicted } => {
                match evicted {
                    Some(evicted) => residences.leave(evicted, now),
                    None => room = room.saturating_sub(1),
                }
                if room == 0 {
                    residences.filled.get_or_insert(at);
                }
                residences.enter(block, now);
            }
            Verdict::Bypass => residences.leave(block, now),
        }
        residences.of_access.push(residences.of_block[block.index()]);
        let hit = outcome.verdict == Verdict::Hit;
        if at >= later {
            residences.later.0 += 1;
            residences.later.1 += u64::from(hit);
        }
        all_hit &= hit;
        if flags & LAST != 0 {
            engine.count_request(tenant, std::mem::replace(&mut all_hit, true));
        }
        now += 1;
    }
    Ok((residences, *engine.counts(tenant)))
}

impl Residences {
    /// How many accesses the stay lasts into which an access of the recording falls, or what is
    /// left of it after the accesses `now` before that one; [`u64::MAX`] for one without end.
    /// Nothing if the block is out after the access.
    pub(super) fn lasts(&self, at: usize, reading: Reading, now: u32) -> Option<u64> {
        let (began, ended) = *self.stays.get(self.of_access[at] as usize)?;
        let from = if reading == Reading::Remaining { now } else { began };
        Some(if ended == NEVER { u64::MAX } else { u64::from(ended.saturating_sub(from)) })
    }

    fn enter(&mut self, block: BlockId, now: u32) {
        self.of_block[block.index()] = self.stays.len() as u32;
        self.stays.push((now, NEVER));
    }

    /// Ends the stay of a block, if it is in the cache.
    fn leave(&mut self, block: BlockId, now: u32) {
        let stay = std::mem::replace(&mut self.of_block[block.index()], OUT);
        if let Some((_, ended)) = self.stays.get_mut(stay as usize) {
            *ended = now;
        }
    }
}
