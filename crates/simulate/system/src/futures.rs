//! The futures of all accesses of a recording, for policies that need them.
//!
//! For: one backward pass over a recording for all of its cases. Must never know: policies but for
//! what they declare, devices. Units: positions in the recording; a benefit has none. Memory: 4
//! bytes per access, and 8 per distinct block meanwhile. Source of the benefit: Ebrahimi et al.,
//! RC-RNN, equation 3.
//!
//! A trim is the end of a block: what comes behind it counts for no access before it.

use crate::recording::{AHEAD, LAST, Recording, TRIM, WRITE};
use cachewright_policy::{FutureColumn, NEVER, Need, entry};

/// What of the future goes with each access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FutureKind {
    /// Nothing.
    #[default]
    Nothing,
    /// The position of the block's next access.
    NextUse,
    /// What the block is worth from here on.
    Benefit,
}

/// The accesses to one block from a position on.
#[derive(Clone, Copy, Debug, Default)]
struct AccessesAhead {
    accesses: u32,
    reads: u32,
}

impl FutureKind {
    /// What the policy of that name declares; nothing if there is no such policy.
    pub fn of_policy(policy: &str) -> FutureKind {
        let needs = entry(policy).map(|entry| entry.needs).unwrap_or_default();
        if needs.contains(&Need::Benefit) {
            FutureKind::Benefit
        } else if needs.contains(&Need::Future) {
            FutureKind::NextUse
        } else {
            FutureKind::Nothing
        }
    }

    /// What goes with each access of `recording`; `ratios` are as in [`benefits`]. Nothing when
    /// there are too many accesses to number.
    pub fn column(self, recording: &Recording, ratios: &[f32]) -> Option<FutureColumn> {
        match self {
            FutureKind::Nothing => Some(FutureColumn::None),
            FutureKind::NextUse => recording.next_uses().map(FutureColumn::NextUse),
            FutureKind::Benefit => Some(FutureColumn::Benefit(benefits(recording, ratios))),
        }
    }

    /// The same as if the recording ended before its access number `end`, which begins a request:
    /// nothing from there on has any part in it.
    pub fn column_until(
        self,
        recording: &Recording,
        ratios: &[f32],
        end: usize,
    ) -> Option<FutureColumn> {
        match self {
            FutureKind::Nothing => Some(FutureColumn::None),
            FutureKind::NextUse => {
                let mut next = recording.next_uses()?;
                next.truncate(end);
                for next in next.iter_mut().filter(|next| **next as usize >= end) {
                    *next = NEVER;
                }
                Some(FutureColumn::NextUse(next))
            }
            FutureKind::Benefit => {
                Some(FutureColumn::Benefit(benefits_until(recording, ratios, end)))
            }
        }
    }
}

/// For each access the benefit of holding its block from there on. `ratios` say how
/// often longer the backing device takes than the cache device for each request of the recording,
/// trims among them; where it has no more they are taken to be equally fast.
pub fn benefits(recording: &Recording, ratios: &[f32]) -> Vec<f32> {
    benefits_until(recording, ratios, recording.len())
}

/// The same of the accesses before number `end`, as if there were no others.
fn benefits_until(recording: &Recording, ratios: &[f32], end: usize) -> Vec<f32> {
    let mut end = end.min(recording.len());
    let mut ahead = vec![AccessesAhead::default(); recording.distinct as usize];
    let mut benefits = vec![0.0; end];
    let mut request = recording.flags[..end].iter().filter(|flags| **flags & LAST != 0).count();
    while end > 0 {
        let before = recording.flags[..end - 1].iter().rposition(|flags| flags & LAST != 0);
        let start = before.map_or(0, |last| last + 1);
        request = request.saturating_sub(1);
        let ratio = ratios.get(request).copied().unwrap_or(1.0);
        for position in (start..end).rev() {
            let (flags, ahead) =
                (recording.flags[position], &mut ahead[recording.ids[position] as usize]);
            if flags & TRIM != 0 {
                *ahead = AccessesAhead::default();
                continue;
            }
            if flags & AHEAD != 0 {
                continue;
            }
            ahead.accesses += 1;
            ahead.reads += u32::from(flags & WRITE == 0);
            benefits[position] = ahead.benefit(f64::from(ratio), end - start);
        }
        end = start;
    }
    benefits
}

impl AccessesAhead {
    /// Equation 3, the first of the accesses being that of a request of `blocks`.
    fn benefit(self, ratio: f64, blocks: usize) -> f32 {
        let (accesses, reads) = (f64::from(self.accesses), f64::from(self.reads));
        (ratio * (accesses - 1.0) / blocks as f64 * (1.0 + reads / accesses)) as f32
    }
}
