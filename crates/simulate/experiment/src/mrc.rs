//! Miss-ratio curves of a stack file's tenants.
//!
//! For: `mrc`: choosing how each curve is measured, all of them on one grid of sizes, and
//! verification by exact simulation at a few sizes. Must never know: how curves are drawn. Sizes
//! are in blocks. `auto` measures exactly up to [`EXACT_ACCESSES`] and [`EXACT_BLOCKS`]; beyond,
//! policies other than LRU are simulated on samples. docs/results.md has the measurement.

mod answer;
mod grid;
mod measure;
mod options;
mod remarks;

pub use options::{CurveOptions, MethodChoice, MrcOptions, SmallCaches};

use crate::case::Case;
use crate::folder::DocumentPlace;
use crate::json::document;
use crate::progress::{OnProgress, with_threads};
use crate::record::{Kept, RecordedTenants, record};
use crate::timed::latency_curves;
use crate::{ExperimentError, Spec};
use cachewright_curve::{Curve, mini};
use cachewright_policy::Need;
use cachewright_result::curves::{CurveCheck, CurvesAnswer, LatencyCurve};
use cachewright_system::machines::Requests;
use cachewright_system::{Cuts, Recording, Whose};
use cachewright_types::declare::Declared;
use measure::{How, WantedCurve};
use options::{check, policies};
use remarks::Remarks;
use serde_json::Value;
use std::path::Path;

/// Block accesses up to which `auto` simulates policies exactly.
const EXACT_ACCESSES: u64 = 20_000_000;
/// Distinct blocks up to which `auto` simulates policies exactly.
const EXACT_BLOCKS: u32 = 1_000_000;
/// The document in the result folder.
const DOCUMENT: &str = "mrc.json";

/// Measures the curves; the JSON is described in docs/results.md.
pub fn mrc(
    text: &str,
    origin: &Path,
    options: &MrcOptions,
    progress: OnProgress<'_>,
) -> Result<Value, ExperimentError> {
    options.curve.check_ranges()?;
    let spec = crate::spec::parse(text, origin, &options.set)?;
    let refuse = |message| ExperimentError::spec(origin, message);
    let curve = &options.curve;
    check(&spec, curve).map_err(refuse)?;
    let place = DocumentPlace { folder: options.out.as_deref(), file: DOCUMENT };
    place.claim(&spec, options.force)?;
    with_threads(options.threads, || {
        let requests =
            curve.latency && policies(&spec, curve).iter().any(|name| reads_requests(name));
        let times = curve.windows > 0 || curve.latency;
        let keys = curve.method != MethodChoice::Exact;
        let kept = Kept { keys, requests, devices: curve.latency, ..Kept::times(times) };
        let mut recorded = record(&spec, kept, progress)?;
        let requests = recorded.take_requests();
        let found = CurveJob::new(&spec, curve, &recorded, progress)?.run(requests)?;
        place.write(&found)?;
        if let Some(folder) = place.folder {
            answer::write_points(folder, &found)?;
        }
        document(&found)
    })
}

/// Whether a policy reads whole requests.
fn reads_requests(policy: &str) -> bool {
    cachewright_policy::entry(policy).is_ok_and(|entry| entry.needs.contains(&Need::Requests))
}

/// One call's inputs.
struct CurveJob<'a> {
    spec: &'a Spec,
    options: &'a CurveOptions,
    recorded: &'a RecordedTenants,
    progress: OnProgress<'a>,
    /// The sizes of all curves, ascending.
    sizes: Vec<u32>,
}

impl<'a> CurveJob<'a> {
    /// Errors: sizes that cannot be read, more points than a result can hold.
    fn new(
        spec: &'a Spec,
        options: &'a CurveOptions,
        recorded: &'a RecordedTenants,
        progress: OnProgress<'a>,
    ) -> Result<CurveJob<'a>, ExperimentError> {
        let mut job = CurveJob { spec, options, recorded, progress, sizes: Vec::new() };
        let wanted = job.wanted();
        let simulated = options.latency || wanted.iter().any(|curve| curve.how != How::Stack);
        let points = match options.points {
            0 if simulated => grid::SIMULATED_POINTS,
            0 => grid::STACK_POINTS,
            points => points as usize,
        };
        let sizes = grid::sizes(options, spec, recorded.recording.distinct, points);
        job.sizes = sizes.map_err(|message| job.refuse(message))?;
        grid::check_values(job.sizes.len(), wanted.len(), options.windows as usize)
            .map_err(|message| job.refuse(message))?;
        Ok(job)
    }

    /// All curves; `requests` are placed on devices for response times.
    fn run(&self, requests: Requests) -> Result<CurvesAnswer, ExperimentError> {
        let wanted = self.wanted();
        let cuts = Cuts::new(self.recording(), 0, self.options.windows);
        let mut remarks = Remarks { curves: wanted.len(), ..Remarks::default() };
        self.remark_samples(&wanted, &mut remarks)?;
        let mut curves = self.measure("measuring curves", &wanted, &self.sizes, &cuts)?;
        self.settle(&wanted, &mut curves, &cuts, &mut remarks)?;
        let verify = self.verify(&wanted, &curves)?;
        let mut found = self.answer(&wanted, &curves, &remarks)?;
        found.verify = verify;
        found.latency = self.options.latency.then(|| self.latency(requests)).transpose()?;
        Ok(found)
    }

    /// Response times at each size, and with the cache switched off.
    fn latency(&self, requests: Requests) -> Result<Vec<LatencyCurve>, ExperimentError> {
        let case = Case::single(self.spec.clone());
        let sizes = vec![[vec![0], self.sizes.clone()].concat(); self.spec.tenants.len()];
        let policies = policies(self.spec, self.options);
        latency_curves(&case, self.recorded, requests, &policies, &sizes, self.progress)
    }

    fn recording(&self) -> &Recording {
        &self.recorded.recording
    }

    fn refuse(&self, message: String) -> ExperimentError {
        ExperimentError::spec(&self.spec.origin, message)
    }

    /// Whether policies are simulated on samples: asked for, or the workload is too large.
    fn samples(&self) -> bool {
        match self.options.method {
            MethodChoice::Auto => self.options.asks_for_sample() || self.is_large(),
            method => method != MethodChoice::Exact,
        }
    }

    fn is_large(&self) -> bool {
        let recording = self.recording();
        recording.block_accesses() > EXACT_ACCESSES || recording.distinct > EXACT_BLOCKS
    }

    /// Every tenant (and all together when there are several) under every policy.
    fn wanted(&self) -> Vec<WantedCurve> {
        let mut streams = Vec::new();
        if self.spec.tenants.len() > 1 {
            streams.push(("all".to_owned(), Whose::All));
        }
        for (index, tenant) in self.spec.tenants.iter().enumerate() {
            streams.push((tenant.name.clone(), Whose::Tenant(index as u16)));
        }
        let mut wanted = Vec::new();
        for policy in policies(self.spec, self.options) {
            let how = match self.options.method {
                method if policy == "lru" && method != MethodChoice::Mini => How::Stack,
                _ if self.samples() => How::Sampled,
                _ => How::Exact,
            };
            for (tenant, whose) in &streams {
                let seed = self.spec.seed.derive(&format!("mrc/{tenant}"));
                let (tenant, policy) = (tenant.clone(), policy.clone());
                wanted.push(WantedCurve { tenant, whose: *whose, policy, how, seed });
            }
        }
        wanted
    }

    /// Notes what sampling was not asked for, or not possible at the rate asked for.
    fn remark_samples(
        &self,
        wanted: &[WantedCurve],
        remarks: &mut Remarks,
    ) -> Result<(), ExperimentError> {
        let sampled = || wanted.iter().filter(|curve| curve.how == How::Sampled);
        let unasked = self.options.method == MethodChoice::Auto && !self.options.asks_for_sample();
        if unasked && sampled().next().is_some() {
            let (accesses, blocks) = (self.recording().block_accesses(), self.recording().distinct);
            remarks.sampled = Some(format!(
                "policies other than lru are sampled: found {accesses} accesses to {blocks} \
                 blocks, and `auto` measures exactly up to {EXACT_ACCESSES} accesses and \
                 {EXACT_BLOCKS} blocks; method `exact` measures all exactly"
            ));
        }
        let settings = self.options.mini_settings(true);
        for curve in sampled() {
            let distinct = u64::from(curve.whose.distinct_blocks(self.recording()));
            let mut raised: Option<(f64, u32)> = None;
            for &size in &self.sizes {
                let rate = mini::rate_for(size, distinct, &settings)?;
                if rate > settings.rate {
                    let highest = raised.map_or(rate, |(highest, _)| highest.max(rate));
                    raised = Some((highest, size));
                }
            }
            remarks.raised.extend(raised);
        }
        Ok(())
    }

    /// Deals with sampled LRU curves that do not serve for small sizes: asked for by size, they are
    /// refused or measured exactly instead; else the small sizes are left out, with a remark.
    fn settle(
        &self,
        wanted: &[WantedCurve],
        curves: &mut [Vec<Curve>],
        cuts: &Cuts,
        remarks: &mut Remarks,
    ) -> Result<(), ExperimentError> {
        let Some(smallest) = self.sizes.first().copied() else { return Ok(()) };
        let requested = !self.options.sizes.is_empty();
        let mut again = Vec::new();
        for (index, (curve, windows)) in wanted.iter().zip(curves.iter()).enumerate() {
            let Some(worst) = windows.iter().max_by_key(|curve| curve.trusted_from_blocks()) else {
                continue;
            };
            let from = worst.trusted_from_blocks();
            if curve.how != How::Stack || smallest >= from {
                continue;
            }
            if requested && self.options.small == SmallCaches::Refuse {
                worst.trusted_miss_ratio(smallest)?;
            } else if requested {
                remarks.exact_instead.push(from);
                again.push(index);
            } else {
                remarks.cut_below.push(from);
            }
        }
        let exactly: Vec<WantedCurve> = again
            .iter()
            .map(|index| WantedCurve { how: How::Exact, ..wanted[*index].clone() })
            .collect();
        let found = self.measure("measuring exactly", &exactly, &self.sizes, cuts)?;
        for (index, exact) in again.into_iter().zip(found) {
            curves[index] = exact;
        }
        Ok(())
    }

    /// Simulates each curve's policy exactly at a few of the sizes.
    fn verify(
        &self,
        wanted: &[WantedCurve],
        curves: &[Vec<Curve>],
    ) -> Result<Vec<CurveCheck>, ExperimentError> {
        if self.options.verify == 0 {
            return Ok(Vec::new());
        }
        let sizes = pick(&self.sizes, self.options.verify as usize);
        let seed = self.spec.seed.derive("verify");
        let exactly: Vec<WantedCurve> = wanted
            .iter()
            .map(|curve| WantedCurve { how: How::Exact, seed, ..curve.clone() })
            .collect();
        let exacts = self.measure("verifying", &exactly, &sizes, &Cuts::default())?;
        let mut rows = Vec::new();
        for ((measured, found), exact) in wanted.iter().zip(curves).zip(&exacts) {
            let (Some(curve), Some(exact)) = (found.first(), exact.first()) else { continue };
            for &size in &sizes {
                let (found, truth) = (curve.miss_ratio(size), exact.miss_ratio(size));
                rows.push(CurveCheck {
                    tenant: measured.tenant.clone(),
                    policy: measured.policy.clone(),
                    size_blocks: size,
                    curve: found,
                    exact: truth,
                    error: found - truth,
                });
            }
        }
        Ok(rows)
    }
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
