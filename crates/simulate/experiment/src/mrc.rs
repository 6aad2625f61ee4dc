//! Miss-ratio curves of a stack file's tenants.
//!
//! For: `mrc`: choosing how each curve is measured, one pass for all of them, and verification by
//! exact simulation at a few sizes. Must never know: how curves are drawn. Sizes are in blocks.

use crate::progress::{OnProgress, Progress, with_threads};
use crate::record::{Recorded, record};
use crate::{ExperimentError, Spec};
use cachewright_curve::{
    Curve, CurveSet, Method, MiniSettings, PolicyCurves, ShardsRateSettings, ShardsSizeSettings,
};
use cachewright_system::replay::{Shared, replay};
use cachewright_system::{CurveLane, Cuts, Lane, LaneResult, Recording, Whose};
use cachewright_types::settings::Settings;
use cachewright_types::{Size, Value as Setting, nearest, parse_size};
use serde_json::{Value, json};
use std::path::Path;

/// Points of a curve measured at given sizes when none are given.
const MINI_POINTS: usize = 24;
/// Points kept of a curve measured at all sizes when no number is given.
const STACK_POINTS: usize = 200;
const METHODS: [&str; 5] = ["auto", "exact", "shards", "shards-size", "mini"];

/// What to measure.
#[derive(Clone, Debug)]
pub struct MrcOptions {
    /// Policies; empty for the stack file's own.
    pub policies: Vec<String>,
    /// `auto` (LRU exactly, other policies by miniature simulation), `exact`, `shards`,
    /// `shards-size` or `mini`.
    pub method: String,
    /// Sampling rate of `shards` and `mini`.
    pub rate: Option<f64>,
    /// Blocks per sample of `shards-size`.
    pub size: Option<usize>,
    /// Cache sizes as in a stack file; empty for sizes spread over the working set.
    pub sizes: Vec<String>,
    /// Points per curve; 0 for the default.
    pub points: usize,
    /// Samples averaged; 0 for the default.
    pub salts: usize,
    /// Time windows with a curve each; 0 for one curve of the whole trace.
    pub windows: usize,
    /// Sizes verified by exact simulation, per curve.
    pub verify: usize,
    /// What to do when a scaled cache is too small: `escalate` or `refuse`.
    pub small: String,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
}

impl Default for MrcOptions {
    fn default() -> Self {
        MrcOptions {
            policies: Vec::new(),
            method: "auto".to_owned(),
            rate: None,
            size: None,
            sizes: Vec::new(),
            points: 0,
            salts: 0,
            windows: 0,
            verify: 0,
            small: "escalate".to_owned(),
            set: Vec::new(),
            threads: 0,
        }
    }
}

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
        let recorded = record(&spec, options.windows > 0, progress)?;
        let job = Job { spec: &spec, options, recorded: &recorded, origin, progress };
        job.run()
    })
}

fn check(spec: &Spec, options: &MrcOptions) -> Result<(), String> {
    let one_of = |key: &str, found: &str, words: &[&str]| {
        let hint = nearest(found, words.iter().copied());
        let hint = hint.map_or(String::new(), |near| format!("; nearest is `{near}`"));
        let expected = words.join(", ");
        let message = format!("`{key}`: found `{found}`, expected one of {expected}{hint}");
        if words.contains(&found) { Ok(()) } else { Err(message) }
    };
    one_of("method", &options.method, &METHODS)?;
    one_of("small", &options.small, &["escalate", "refuse"])?;
    for policy in &policies(spec, options) {
        cachewright_policy::entry(policy).map_err(|error| error.to_string())?;
        if policy != "lru" && options.method.starts_with("shards") {
            return Err(format!(
                "`method`: found `{}` for policy `{policy}`, expected `mini` or `exact` (SHARDS \
                 measures LRU)",
                options.method
            ));
        }
    }
    Ok(())
}

fn policies(spec: &Spec, options: &MrcOptions) -> Vec<String> {
    if options.policies.is_empty() {
        vec![spec.cache.policy.name.clone()]
    } else {
        options.policies.clone()
    }
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
        let results = self.replay("measuring curves", &cuts, &mut lanes)?;
        let verify = self.verify(&wanted, &results)?;
        let curves: Vec<Value> = wanted
            .iter()
            .zip(&results)
            .flat_map(|(one, result)| self.curves_json(one, result))
            .collect();
        Ok(json!({
            "name": self.spec.name,
            "block_bytes": self.spec.cache.block.0,
            "method": self.options.method,
            "tenants": self.recorded.tenants,
            "curves": curves,
            "verify": verify,
        }))
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
            CurveSet::new(1, &self.stack_method()?, seed)
        } else {
            let settings = self.mini_settings()?;
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

    fn stack_method(&self) -> Result<Method, ExperimentError> {
        let pairs = self.pairs(&[("rate", self.options.rate.map(Setting::Float))]);
        let size = self.options.size.map(|size| Setting::Int(size as i64));
        let blocks = self.pairs(&[("max_blocks", size)]);
        let settings = |error| self.refuse(format!("{error}"));
        Ok(match self.options.method.as_str() {
            "shards" => {
                Method::ShardsRate(ShardsRateSettings::from_pairs(&pairs).map_err(settings)?)
            }
            "shards-size" => {
                Method::ShardsSize(ShardsSizeSettings::from_pairs(&blocks).map_err(settings)?)
            }
            _ => Method::Exact,
        })
    }

    fn mini_settings(&self) -> Result<MiniSettings, ExperimentError> {
        let exact = self.options.method == "exact";
        let rate = if exact { Some(1.0) } else { self.options.rate };
        let escalate = self.options.small == "escalate";
        let pairs = self.pairs(&[
            ("rate", rate.map(Setting::Float)),
            ("escalate", Some(Setting::Bool(escalate))),
        ]);
        MiniSettings::from_pairs(&pairs).map_err(|error| self.refuse(format!("{error}")))
    }

    /// The pairs given, with the number of samples if that is given.
    fn pairs(&self, pairs: &[(&str, Option<Setting>)]) -> Vec<(String, Setting)> {
        let salts = self.options.salts;
        let salts = (salts > 0).then_some(("salts", Some(Setting::Int(salts as i64))));
        let given = pairs.iter().cloned().chain(salts);
        given.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }

    fn replay(
        &self,
        stage: &'static str,
        cuts: &Cuts,
        lanes: &mut [Box<dyn Lane>],
    ) -> Result<Vec<LaneResult>, ExperimentError> {
        let recording = self.recording();
        let shared = Shared { recording, next_use: &[], cuts, curves: &[] };
        let total = Some(recording.len() as u64 * lanes.len() as u64);
        let tell = |done| (self.progress)(Progress { stage, done, total });
        Ok(replay(&shared, lanes, tell)?)
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
            curve.resampled(knots).sizes().to_vec()
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
