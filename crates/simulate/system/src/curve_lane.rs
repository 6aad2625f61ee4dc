//! A lane that measures curves instead of running a cache.
//!
//! For: the miss-ratio curves of one tenant, or of all together, from the same pass as any caches.
//! Must never know: how a curve is measured. A trimmed block leaves the measurement.

use crate::lane::{Lane, LaneResult};
use crate::recording::{Recording, TRIM, WRITE};
use cachewright_control::Signals;
use cachewright_curve::{BlockName, CurveSet, Curves};
use cachewright_policy::FutureSlice;
use cachewright_types::{BlockId, TenantId};
use std::ops::Range;

/// Accesses whose state is loaded ahead of use.
const STRIDE: usize = 32;
/// The one measurement of the set.
const ONLY: TenantId = TenantId(0);

/// Whose accesses a lane counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of all tenants, as one stream.
    All,
    /// One tenant's.
    Tenant(u16),
}

impl Whose {
    #[inline(always)]
    fn counts(self, recording: &Recording, position: usize) -> bool {
        match self {
            Whose::All => true,
            Whose::Tenant(tenant) => recording.tenants.get(position).is_none_or(|t| *t == tenant),
        }
    }

    /// Distinct blocks of the stream.
    pub fn distinct_blocks(self, recording: &Recording) -> u32 {
        match self {
            Whose::All => recording.distinct,
            Whose::Tenant(tenant) => recording.totals[usize::from(tenant)].distinct_blocks,
        }
    }
}

/// A measurement fed by a replay.
pub struct CurveLane {
    set: CurveSet,
    whose: Whose,
    by_window: bool,
    curves: Vec<Curves>,
}

impl CurveLane {
    /// A lane around `set`, which measures one stream (one announced tenant); with `by_window` it
    /// yields the curves of each window, else those of the whole recording.
    pub fn new(set: CurveSet, whose: Whose, by_window: bool) -> CurveLane {
        CurveLane { set, whose, by_window, curves: Vec::new() }
    }
}

impl Lane for CurveLane {
    fn replay(&mut self, recording: &Recording, range: Range<usize>, _: FutureSlice<'_>) {
        let whose = self.whose;
        // Slices first: a column looks up where it lies at each use.
        let ids = recording.ids_for(whose == Whose::All);
        let (dense, all_flags): (&[u32], &[u8]) = (&recording.ids, &recording.flags);
        let block_at = |position: usize| BlockName::Recorded {
            id: BlockId(ids[position]),
            keys: &recording.keys,
            index: dense[position],
        };
        let mut warm = 0;
        for start in range.clone().step_by(STRIDE) {
            let end = (start + STRIDE).min(range.end);
            for (position, id) in (end..).zip(&ids[end..(end + STRIDE).min(range.end)]) {
                if whose.counts(recording, position) {
                    warm ^= self.set.touch(ONLY, BlockId(*id));
                }
            }
            for position in (start..end).filter(|position| whose.counts(recording, *position)) {
                let (block, flags) = (block_at(position), all_flags[position]);
                if flags & TRIM != 0 {
                    self.set.remove(ONLY, block);
                } else {
                    self.set.access(ONLY, block, flags & WRITE != 0);
                }
            }
        }
        std::hint::black_box(warm);
    }

    fn end_interval(&mut self, _: &Signals) {}

    fn end_window(&mut self, _: u32, _: u64) {
        if self.by_window {
            self.curves.extend(self.set.end_window());
        }
    }

    fn finish(&mut self) -> LaneResult {
        if !self.by_window {
            self.curves.extend(self.set.end_window());
        }
        LaneResult { curves: std::mem::take(&mut self.curves), ..LaneResult::default() }
    }
}
