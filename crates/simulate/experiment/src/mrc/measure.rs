//! Measuring curves: LRU stacks, simulations of a policy at all sizes, and samples of both.
//!
//! For: feeding every measurement of a call from one recording. Must never know: what is asked of
//! curves. Sizes are in blocks. An exact simulation is cut into parts of a few sizes, which run in
//! parallel; all that a pass over the recording holds fits in [`PASS_BYTES`], or is one part.

use super::CurveJob;
use crate::ExperimentError;
use crate::progress::Progress;
use cachewright_curve::{Curve, CurveSet, MiniSettings, PolicyCurves, mini};
use cachewright_policy::{FutureSlice, Need};
use cachewright_system::replay::{ReplayInputs, replay};
use cachewright_system::{CurveLane, Cuts, Lane, Whose};
use cachewright_types::Seed;
use std::ops::Range;

/// Sizes of a part of an exact simulation.
const PART_SIZES: usize = 8;
/// Bytes that the measurements of one pass may take together.
const PASS_BYTES: u64 = 1 << 30;
/// Bytes of one simulated cache per distinct block, at most.
const CACHE_BYTES: u64 = 24;
/// Bytes of an LRU stack per distinct block, at most.
const STACK_BYTES: u64 = 20;
/// Bytes kept per access for a policy that needs the future.
const FUTURE_BYTES: u64 = 12;

/// How a curve is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// One LRU stack for all sizes, or samples of it.
    Stack,
    /// One simulation per size.
    Exact,
    /// Miniature simulations.
    Sampled,
}

/// One curve to be measured.
#[derive(Clone, Debug)]
pub(super) struct WantedCurve {
    pub tenant: String,
    pub whose: Whose,
    pub policy: String,
    pub how: How,
    pub seed: Seed,
}

/// Some sizes of a wanted curve: what one lane measures.
struct CurvePart {
    wanted: usize,
    sizes: Range<usize>,
    bytes: u64,
}

impl CurveJob<'_> {
    /// The curves of every one wanted, one per window, with a knot at each of `sizes` or more.
    pub(super) fn measure(
        &self,
        stage: &'static str,
        wanted: &[WantedCurve],
        sizes: &[u32],
        cuts: &Cuts,
    ) -> Result<Vec<Vec<Curve>>, ExperimentError> {
        let mut parts = Vec::new();
        for (index, curve) in wanted.iter().enumerate() {
            parts.extend(self.parts(index, curve, sizes)?);
        }
        let accesses = self.recording().len() as u64;
        let total = Some(accesses * parts.len() as u64);
        let mut curves: Vec<Vec<Curve>> = vec![Vec::new(); wanted.len()];
        let mut before = 0;
        for pass in passes(&parts) {
            let lane =
                |part: &CurvePart| self.lane(&wanted[part.wanted], &sizes[part.sizes.clone()]);
            let mut lanes = pass.iter().map(lane).collect::<Result<Vec<_>, _>>()?;
            let recording = self.recording();
            let shared = ReplayInputs { recording, futures: FutureSlice::None, cuts, signals: &[] };
            let tell = |done| (self.progress)(Progress { stage, done: before + done, total });
            let results = replay(&shared, &mut lanes, tell)?;
            for (part, result) in pass.iter().zip(results) {
                join(&mut curves[part.wanted], result.curves.into_iter().map(|both| both.all));
            }
            before += accesses * pass.len() as u64;
        }
        Ok(curves)
    }

    /// A curve's parts and what each takes.
    fn parts(
        &self,
        index: usize,
        wanted: &WantedCurve,
        sizes: &[u32],
    ) -> Result<Vec<CurvePart>, ExperimentError> {
        let distinct = u64::from(wanted.whose.distinct_blocks(self.recording()));
        let entry = cachewright_policy::entry(&wanted.policy);
        let future = entry.is_ok_and(|entry| entry.needs.contains(&Need::Future));
        let accesses = self.recording().len() as u64;
        let kept = if future { FUTURE_BYTES * accesses } else { 0 };
        let whole = |bytes| vec![CurvePart { wanted: index, sizes: 0..sizes.len(), bytes }];
        Ok(match wanted.how {
            How::Stack => whole(STACK_BYTES * distinct),
            How::Exact if future => whole(kept + CACHE_BYTES * distinct * sizes.len() as u64),
            How::Exact => (0..sizes.len())
                .step_by(PART_SIZES)
                .map(|from| {
                    let sizes = from..(from + PART_SIZES).min(sizes.len());
                    let bytes = CACHE_BYTES * distinct * sizes.len() as u64;
                    CurvePart { wanted: index, sizes, bytes }
                })
                .collect(),
            How::Sampled => {
                let settings = self.settings(wanted);
                let mut sampled = 0.0;
                for &size in sizes {
                    let rate = mini::rate_for(size, distinct, &settings)?;
                    sampled += if rate < 1.0 { rate * f64::from(settings.salts) } else { 1.0 };
                }
                let blocks = (sampled * distinct as f64) as u64;
                whole(kept + CACHE_BYTES * blocks)
            }
        })
    }

    fn settings(&self, wanted: &WantedCurve) -> MiniSettings {
        self.options.mini_settings(wanted.how == How::Sampled)
    }

    fn lane(&self, wanted: &WantedCurve, sizes: &[u32]) -> Result<Box<dyn Lane>, ExperimentError> {
        let set = match wanted.how {
            How::Stack => CurveSet::new(1, &self.options.stack_method(), wanted.seed),
            How::Exact | How::Sampled => {
                let own = &self.spec.cache.policy;
                let pairs = if own.name == wanted.policy { own.pairs.as_slice() } else { &[] };
                let (policy, settings) = (wanted.policy.as_str(), self.settings(wanted));
                let curves = PolicyCurves { policy, pairs, sizes_blocks: sizes, settings };
                let distinct = u64::from(wanted.whose.distinct_blocks(self.recording()));
                CurveSet::of_policy(&curves, &[distinct], wanted.seed)?
            }
        };
        Ok(Box::new(CurveLane::new(set, wanted.whose, self.options.windows > 0)))
    }
}

/// The parts in order, as many together as fit in [`PASS_BYTES`].
fn passes(parts: &[CurvePart]) -> Vec<&[CurvePart]> {
    let (mut found, mut from, mut bytes) = (Vec::new(), 0, 0_u64);
    for (index, part) in parts.iter().enumerate() {
        bytes += part.bytes;
        if bytes > PASS_BYTES && index > from {
            found.push(&parts[from..index]);
            (from, bytes) = (index, part.bytes);
        }
    }
    if from < parts.len() {
        found.push(&parts[from..]);
    }
    found
}

/// Adds a part's larger sizes to a curve, window by window.
fn join(curves: &mut Vec<Curve>, part: impl Iterator<Item = Curve>) {
    for (window, next) in part.enumerate() {
        let Some(first) = curves.get_mut(window) else {
            curves.push(next);
            continue;
        };
        let knots = |curve: &Curve| -> Vec<(u32, f64)> {
            curve.sizes().iter().copied().zip(curve.knot_misses().iter().copied()).collect()
        };
        let both = knots(first).into_iter().chain(knots(&next).into_iter().skip(1));
        *first = Curve::from_knots(both, first.accesses(), first.provenance().clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::Provenance;

    #[test]
    fn passes_hold_what_fits_and_one_part_at_least() {
        let part = |bytes| CurvePart { wanted: 0, sizes: 0..1, bytes };
        let sizes = [PASS_BYTES / 2, PASS_BYTES / 2, 1, 3 * PASS_BYTES, 1, 1];
        let parts: Vec<CurvePart> = sizes.into_iter().map(part).collect();
        let found: Vec<usize> = passes(&parts).iter().map(|pass| pass.len()).collect();
        assert_eq!(found, [2, 1, 1, 2]);
        assert!(passes(&[]).is_empty());
    }

    #[test]
    fn parts_of_a_curve_make_one() {
        let curve =
            |knots: &[(u32, f64)]| Curve::from_knots(knots.iter().copied(), 100, Provenance::Exact);
        let mut curves = Vec::new();
        join(&mut curves, [curve(&[(1, 90.0), (2, 80.0)])].into_iter());
        join(&mut curves, [curve(&[(4, 50.0)])].into_iter());
        assert_eq!(curves, [curve(&[(1, 90.0), (2, 80.0), (4, 50.0)])]);
    }
}
