//! Which access falls into which stay of its block in the cache, and how long each stay lasts.
//!
//! For: labels. Must never know: labels, requests. Units: block accesses. Memory: 4 bytes per
//! access and per distinct block, 8 per stay.

use super::Reading;
use crate::ExperimentError;
use crate::job::Job;
use crate::progress::{OnProgress, Progress};
use cachewright_cache::{BlockAccess, Quotas};
use cachewright_policy::{FutureSlice, NEVER, Verdict};
use cachewright_system::recording::{CUT_OFF, LAST, TRIM, WRITE};
use cachewright_types::measure::Counts;
use cachewright_types::{BlockId, TenantId};

/// No stay.
const OUT: u32 = u32::MAX;
/// Accesses between two calls of the progress function.
const PROGRESS_EVERY: usize = 1 << 18;

/// The stays of all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Stays {
    /// The stay that each access of the recording falls into, or [`OUT`].
    by_access: Vec<u32>,
    /// The stay of each block at present, or [`OUT`].
    by_block: Vec<u32>,
    /// The number of the access that began each stay, and of the one that ended it; [`NEVER`] for
    /// no end.
    intervals: Vec<(u32, u32)>,
    /// The access of the recording at which the cache was full for the first time.
    pub(super) filled: Option<usize>,
    /// Accesses and hits from an access on.
    pub(super) later: (u64, u64),
}

/// Replays the recording of a job with one tenant through its cache up to its access number `end`,
/// those from `later` on counted apart; `futures` are those of its accesses. Errors: a setting of
/// the policy, cancelled.
pub(super) fn follow(
    job: &Job<'_>,
    futures: FutureSlice<'_>,
    (end, later): (usize, usize),
    progress: OnProgress<'_>,
) -> Result<(Stays, Counts), ExperimentError> {
    let (recording, tenant) = (job.workload.recording, TenantId(0));
    let quotas = Quotas::Shared(job.capacity_blocks);
    let mut engine = job.boxed(&quotas)?;
    engine.reserve_ids(0, recording.distinct as usize);
    let mut stays = Stays { by_block: vec![OUT; recording.distinct as usize], ..Stays::default() };
    let (mut now, mut all_hit) = (0_u32, true);
    let mut free_blocks = job.capacity_blocks;
    for (index, (id, flags)) in recording.ids.iter().zip(&recording.flags).enumerate().take(end) {
        let block = BlockId(*id);
        if index.is_multiple_of(PROGRESS_EVERY) {
            let (stage, total) = ("asking the oracle", Some(recording.len() as u64));
            if !progress(Progress { stage, done: index as u64, total }) {
                return Err(ExperimentError::Cancelled);
            }
        }
        if flags & TRIM != 0 {
            engine.discard(tenant, block);
            stays.leave(block, now);
            stays.by_access.push(OUT);
            continue;
        }
        let (write, future) = (flags & WRITE != 0, futures.at(index));
        let access = BlockAccess { block, tenant, write, future };
        let outcome = match flags & CUT_OFF != 0 {
            true => engine.pass(access),
            false => engine.access(access),
        };
        match outcome.verdict {
            Verdict::Hit => {}
            Verdict::Admit { evicted } => {
                match evicted {
                    Some(evicted) => stays.leave(evicted, now),
                    None => free_blocks = free_blocks.saturating_sub(1),
                }
                if free_blocks == 0 {
                    stays.filled.get_or_insert(index);
                }
                stays.enter(block, now);
            }
            Verdict::Bypass => stays.leave(block, now),
        }
        stays.by_access.push(stays.by_block[block.index()]);
        let hit = outcome.verdict == Verdict::Hit;
        if index >= later {
            stays.later.0 += 1;
            stays.later.1 += u64::from(hit);
        }
        all_hit &= hit;
        if flags & LAST != 0 {
            engine.count_request(tenant, std::mem::replace(&mut all_hit, true));
        }
        now += 1;
    }
    Ok((stays, *engine.counts(tenant)))
}

impl Stays {
    /// How many accesses the stay lasts into which an access of the recording falls, or what is
    /// left of it after the accesses `now` before that one; [`u64::MAX`] for one without end.
    /// Nothing if the block is out after the access.
    pub(super) fn lasts(&self, index: usize, reading: Reading, now: u32) -> Option<u64> {
        let (began, ended) = *self.intervals.get(self.by_access[index] as usize)?;
        let from = if reading == Reading::Remaining { now } else { began };
        Some(if ended == NEVER { u64::MAX } else { u64::from(ended.saturating_sub(from)) })
    }

    fn enter(&mut self, block: BlockId, now: u32) {
        self.by_block[block.index()] = self.intervals.len() as u32;
        self.intervals.push((now, NEVER));
    }

    /// Ends the stay of a block, if it is in the cache.
    fn leave(&mut self, block: BlockId, now: u32) {
        let stay = std::mem::replace(&mut self.by_block[block.index()], OUT);
        if let Some((_, ended)) = self.intervals.get_mut(stay as usize) {
            *ended = now;
        }
    }
}
