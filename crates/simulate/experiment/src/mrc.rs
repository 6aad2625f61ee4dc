//! Miss-ratio curves of a stack file's tenants.
//!
//! For: `mrc`: choosing how each curve is measured, one pass for all of them, and verification by
//! exact simulation at a few sizes. Must never know: how curves are drawn. Sizes are in blocks.

mod options;

pub use options::MrcOptions;

use crate::case::{Case, hears_requests};
use crate::progress::{OnProgress, Progress, with_threads};
use crate::record::{Kept, Recorded, record};
use crate::timed::latency_curves;
use crate::{ExperimentError, Spec};
use cachewright_curve::{Curve, CurveSet, Curves, Method, MiniSettings, PolicyCurves};
use cachewright_system::replay::{Shared, replay};
use cachewright_system::{CurveLane, Cuts, Lane, LaneResult, Recording, Whose};
use cachewright_types::{Size, parse_size};
use options::{check, policies};
use serde_json::{Value, json};
use std::path::Path;

/// Points of a curve measured at given sizes when none are given.
const MINI_POINTS: usize = 24;
/// Points kept of a curve measured at all sizes when no number is given.
const STACK_POINTS: usize = 200;

/// One curve to be measured.
struct Wanted {
    tenant: String,
    whose: Whose,
    policy: String,
    sizes: Vec<u32>,
    stack: bool,
    notes: Vec<String>,
}

/// Measures the curves; the JSON is described in the package's documentation.
pub fn mrc(
    text: &str,
    origin: &Path,
    options: &MrcOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    let spec = Spec::parse(text, origin, &options.set)?;
    let refuse = |message| ExperimentError::Spec { origin: origin.to_owned(), message };
    check(&spec, options).map_err(refuse)?;
    with_threads(options.threads, || {
        let requests = options.latency && policies(&spec, options).iter().any(hears_requests);
        let kept = Kept { requests, ..Kept::times(options.windows > 0 || options.latency) };
        let recorded = record(&spec, kept, progress)?;
        let job = Job { spec: &spec, options, recorded: &recorded, origin, progress };
        job.run()
    })
}

/// One call's inputs.
struct Job<'a> {
    spec: &'a Spec,
    options: &'a MrcOptions,
    recorded: &'a Recorded,
    origin: &'a Path,
    progress: OnProgress<'a>,
}

impl Job<'_> {
    fn run(&self) -> Result<Value, ExperimentError> {
        let mut wanted = self.wanted()?;
        let mut lanes = Vec::with_capacity(wanted.len());
        for one in &mut wanted {
            lanes.push(self.lane(one)?);
        }
        let windows = self.options.windows as u32;
        let cuts = Cuts::new(&self.recorded.recording, 0, windows);
        let mut results = self.replay("measuring curves", &cuts, &mut lanes)?;
        self.settle(&mut wanted, &mut results, &cuts)?;
        let verify = self.verify(&wanted, &results)?;
        let curves: Vec<Value> = wanted
            .iter()
            .zip(&results)
            .flat_map(|(one, result)| self.curves_json(one, result))
            .collect();
        let mut found = json!({
            "name": self.spec.name,
            "block_bytes": self.spec.cache.block.0,
            "method": self.options.method,
            "tenants": self.recorded.tenants,
            "curves": curves,
            "verify": verify,
        });
        if self.options.latency {
            found["latency"] = self.latency()?.into();
        }
        Ok(found)
    }

    /// Response times at each tenant's sizes, and with the cache switched off.
    fn latency(&self) -> Result<Vec<Value>, ExperimentError> {
        let (spec, varied) = (self.spec.clone(), Vec::new());
        let (models, caching) = Default::default();
        let case = Case { index: 0, spec, varied, models, caching };
        let sizes = |tenant: usize| {
            let distinct = self.recording().totals[tenant].distinct_blocks;
            Ok([vec![0], self.sizes(distinct)?].concat())
        };
        let sizes: Result<Vec<_>, ExperimentError> =
            (0..self.spec.tenants.len()).map(sizes).collect();
        let policies = policies(self.spec, self.options);
        latency_curves(&case, self.recorded, &policies, &sizes?, self.origin, self.progress)
    }

    fn recording(&self) -> &Recording {
        &self.recorded.recording
    }

    fn refuse(&self, message: String) -> ExperimentError {
        ExperimentError::Spec { origin: self.origin.to_owned(), message }
    }

    /// Every tenant (and all together when there are several) under every policy.
    fn wanted(&self) -> Result<Vec<Wanted>, ExperimentError> {
        let mut streams = Vec::new();
        if self.spec.tenants.len() > 1 {
            streams.push(("all".to_owned(), Whose::All));
        }
        for (index, tenant) in self.spec.tenants.iter().enumerate() {
            streams.push((tenant.name.clone(), Whose::Tenant(index as u16)));
        }
        let mut wanted = Vec::new();
        for policy in policies(self.spec, self.options) {
            let method = self.options.method.as_str();
            let stack = policy == "lru" && method != "mini";
            for (tenant, whose) in &streams {
                wanted.push(Wanted {
                    tenant: tenant.clone(),
                    whose: *whose,
                    policy: policy.clone(),
                    sizes: self.sizes(whose.distinct_blocks(self.recording()))?,
                    stack,
                    notes: Vec::new(),
                });
            }
        }
        Ok(wanted)
    }

    /// The sizes asked for, or sizes in geometric steps up to the working set.
    fn sizes(&self, distinct: u32) -> Result<Vec<u32>, ExperimentError> {
        let mut sizes = Vec::new();
        for text in &self.options.sizes {
            let size =
                parse_size(text).map_err(|error| self.refuse(format!("`sizes`: {error}")))?;
            let blocks = match size {
                Size::Blocks(blocks) => blocks,
                Size::Bytes(bytes) => bytes.0 / self.spec.cache.block.0,
                Size::WorkingSetPercent(percent) => {
                    (f64::from(distinct) * percent / 100.0).round() as u64
                }
            };
            sizes.push(blocks.clamp(1, u64::from(u32::MAX - 1)) as u32);
        }
        if sizes.is_empty() {
            let points = if self.options.points == 0 { MINI_POINTS } else { self.options.points };
            let (low, high) = ((f64::from(distinct) / 1000.0).max(1.0), f64::from(distinct.max(1)));
            for point in 0..points {
                let share = if points == 1 { 1.0 } else { point as f64 / (points - 1) as f64 };
                sizes.push((low * (high / low).powf(share)).round() as u32);
            }
        }
        sizes.sort_unstable();
        sizes.dedup();
        Ok(sizes)
    }

    fn lane(&self, wanted: &mut Wanted) -> Result<Box<dyn Lane>, ExperimentError> {
        let by_window = self.options.windows > 0;
        let seed = self.spec.seed.derive(&format!("mrc/{}", wanted.tenant));
        let set = if wanted.stack {
            CurveSet::new(
                1,
                &self.options.stack_method().map_err(|message| self.refuse(message))?,
                seed,
            )
        } else {
            let settings = self.options.mini_settings().map_err(|message| self.refuse(message))?;
            let distinct = u64::from(wanted.whose.distinct_blocks(self.recording()));
            note_escalation(wanted, distinct, &settings)?;
            self.mini(&wanted.policy, &wanted.sizes, settings, distinct, seed)?
        };
        Ok(Box::new(CurveLane::new(set, wanted.whose, by_window)))
    }

    fn mini(
        &self,
        policy: &str,
        sizes: &[u32],
        settings: MiniSettings,
        distinct: u64,
        seed: cachewright_types::Seed,
    ) -> Result<CurveSet, ExperimentError> {
        let own = &self.spec.cache.policy;
        let pairs = if own.name == policy { own.pairs.as_slice() } else { &[] };
        let wanted = PolicyCurves { policy, pairs, sizes_blocks: sizes, settings };
        Ok(CurveSet::of_policy(&wanted, &[distinct], seed)?)
    }

    fn replay(
        &self,
        stage: &'static str,
        cuts: &Cuts,
        lanes: &mut [Box<dyn Lane>],
    ) -> Result<Vec<LaneResult>, ExperimentError> {
        let recording = self.recording();
        let shared = Shared { recording, next_use: &[], cuts, signals: &[] };
        let total = Some(recording.len() as u64 * lanes.len() as u64);
        let tell = |done| (self.progress)(Progress { stage, done, total });
        Ok(replay(&shared, lanes, tell)?)
    }

    /// Deals with sampled LRU curves that do not speak for small sizes: asked for by size, they are
    /// refused or measured exactly instead; else the small sizes are left out, with a note.
    fn settle(
        &self,
        wanted: &mut [Wanted],
        results: &mut [LaneResult],
        cuts: &Cuts,
    ) -> Result<(), ExperimentError> {
        let mut again = Vec::new();
        for (at, (one, result)) in wanted.iter_mut().zip(results.iter()).enumerate() {
            let trusted = |curves: &&Curves| curves.all.trusted_from_blocks();
            let Some(worst) = result.curves.iter().max_by_key(trusted) else { continue };
            let (from, asked) = (trusted(&worst), !self.options.sizes.is_empty());
            match one.sizes.first().filter(|size| one.stack && asked && **size < from) {
                Some(size) if self.options.small == "refuse" => {
                    worst.all.trusted_miss_ratio(*size)?;
                }
                Some(_) => {
                    let note = "measured exactly: the sample speaks for no cache below";
                    one.notes.push(format!("{note} {from} blocks"));
                    again.push(at);
                }
                None if one.stack && !asked && from > 0 => {
                    let note = "sizes below are left out, the sample does not speak for them:";
                    one.notes.push(format!("{note} {from} blocks"));
                }
                None => {}
            }
        }
        let by_window = self.options.windows > 0;
        let exact = |at: &usize| {
            let set = CurveSet::new(1, &Method::Exact, self.spec.seed);
            Box::new(CurveLane::new(set, wanted[*at].whose, by_window)) as Box<dyn Lane>
        };
        let mut lanes: Vec<Box<dyn Lane>> = again.iter().map(exact).collect();
        if !lanes.is_empty() {
            let exact = self.replay("measuring exactly", cuts, &mut lanes)?;
            for (at, result) in again.into_iter().zip(exact) {
                results[at] = result;
            }
        }
        Ok(())
    }

    /// Simulates each curve's policy exactly at a few of its sizes.
    fn verify(
        &self,
        wanted: &[Wanted],
        results: &[LaneResult],
    ) -> Result<Vec<Value>, ExperimentError> {
        if self.options.verify == 0 || self.options.windows > 0 {
            return Ok(Vec::new());
        }
        let exact = MiniSettings { rate: 1.0, salts: 1, ..MiniSettings::default() };
        let mut lanes: Vec<Box<dyn Lane>> = Vec::new();
        let mut picked = Vec::new();
        for one in wanted {
            let sizes = pick(&one.sizes, self.options.verify);
            let distinct = u64::from(one.whose.distinct_blocks(self.recording()));
            let seed = self.spec.seed.derive("verify");
            let set = self.mini(&one.policy, &sizes, exact.clone(), distinct, seed)?;
            lanes.push(Box::new(CurveLane::new(set, one.whose, false)));
            picked.push(sizes);
        }
        let exacts = self.replay("verifying", &Cuts::default(), &mut lanes)?;
        let mut rows = Vec::new();
        for (((one, sizes), result), exact) in wanted.iter().zip(picked).zip(results).zip(&exacts) {
            let (Some(curve), Some(exact)) = (result.curves.first(), exact.curves.first()) else {
                continue;
            };
            for size in sizes {
                let (found, truth) = (curve.all.miss_ratio(size), exact.all.miss_ratio(size));
                rows.push(json!({
                    "tenant": one.tenant, "policy": one.policy, "size_blocks": size,
                    "curve": found, "exact": truth, "error": found - truth,
                }));
            }
        }
        Ok(rows)
    }

    fn curves_json(&self, wanted: &Wanted, result: &LaneResult) -> Vec<Value> {
        let by_window = self.options.windows > 0;
        let curves = result.curves.iter().enumerate();
        curves
            .map(|(window, curves)| {
                let curve = &curves.all;
                json!({
                    "tenant": wanted.tenant,
                    "policy": wanted.policy,
                    "window": by_window.then_some(window),
                    "method": curve.provenance().to_string(),
                    "accesses": curve.accesses(),
                    "distinct": wanted.whose.distinct_blocks(self.recording()),
                    "trusted_from_blocks": curve.trusted_from_blocks(),
                    "points": self.points(wanted, curve),
                    "notes": wanted.notes,
                })
            })
            .collect()
    }

    fn points(&self, wanted: &Wanted, curve: &Curve) -> Vec<Value> {
        let knots = if self.options.points == 0 { STACK_POINTS } else { self.options.points };
        let sizes = if !wanted.stack || !self.options.sizes.is_empty() {
            wanted.sizes.clone()
        } else {
            let thin = curve.resampled(knots);
            let trusted = |size: &u32| *size >= curve.trusted_from_blocks();
            thin.sizes().iter().copied().filter(trusted).collect()
        };
        let banded = curve.band().is_some();
        let accesses = curve.accesses().max(1) as f64;
        sizes
            .into_iter()
            .map(|size| {
                let (low, high) = curve.interval(size);
                let ratio = |misses: f64| (misses / accesses).clamp(0.0, 1.0);
                let band = |end| if banded { Some(ratio(end)) } else { None };
                json!([size, curve.miss_ratio(size), band(low), band(high)])
            })
            .collect()
    }
}

/// Says which sizes are simulated at a higher rate than asked for.
fn note_escalation(
    wanted: &mut Wanted,
    distinct: u64,
    settings: &MiniSettings,
) -> Result<(), ExperimentError> {
    let mut raised: Vec<(f64, u32, u32)> = Vec::new();
    for size in &wanted.sizes {
        let rate = cachewright_curve::mini::rate_for(*size, distinct, settings)?;
        if rate > settings.rate {
            match raised.last_mut().filter(|(last, _, _)| *last == rate) {
                Some((_, _, high)) => *high = *size,
                None => raised.push((rate, *size, *size)),
            }
        }
    }
    for (rate, low, high) in raised {
        let asked = settings.rate;
        let note = format!("sizes {low} to {high} blocks: rate raised from {asked} to {rate}");
        wanted.notes.push(note);
    }
    Ok(())
}

/// `count` of `sizes`, evenly spread, the ends included.
fn pick(sizes: &[u32], count: usize) -> Vec<u32> {
    let last = sizes.len().saturating_sub(1);
    let steps = count.saturating_sub(1).max(1);
    let mut picked: Vec<u32> =
        (0..count).filter_map(|step| sizes.get(last * step / steps).copied()).collect();
    picked.dedup();
    picked
}
