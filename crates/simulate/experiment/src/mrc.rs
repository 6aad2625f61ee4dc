//! Miss-ratio curves of a stack file's tenants, all of them on one grid of sizes.
//!
//! Sizes are in blocks. `auto` measures exactly up to [`EXACT_ACCESSES`] and [`EXACT_BLOCKS`];
//! beyond, policies other than LRU are simulated on samples. An exact simulation is cut into parts
//! of a few sizes, which run in parallel; all that a pass over the recording holds fits in
//! [`PASS_BYTES`], or is one part. docs/results.md has the measurement.

use crate::case::Case;
use crate::folder::{CURVES, DocumentPlace, RowGroupWriter, column, write_file};
use crate::json::document;
use crate::progress::{OnProgress, Progress, with_threads};
use crate::record::{Kept, RecordedTenants, record};
use crate::spec::resolved;
use crate::timed::latency_curves;
use crate::{ExperimentError, Spec};
use cachewright_curve::{
    Curve, CurveSet, Method, MiniSettings, PolicyCurves, ShardsRateSettings, ShardsSizeSettings,
    mini,
};
use cachewright_policy::{FutureSlice, Need};
use cachewright_result::curves::{CurveCheck, CurvesAnswer, LatencyCurve, MissRatioCurve};
use cachewright_result::document::Written;
use cachewright_system::machines::Requests;
use cachewright_system::replay::{ReplayInputs, replay};
use cachewright_system::{CurveLane, Cuts, Lane, Recording, Whose};
use cachewright_types::declare::Declared;
use cachewright_types::{Seed, Size, choices, declare};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use serde_json::Value;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Block accesses up to which `auto` simulates policies exactly.
const EXACT_ACCESSES: u64 = 20_000_000;
/// Distinct blocks up to which `auto` simulates policies exactly.
const EXACT_BLOCKS: u32 = 1_000_000;

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
    let place = DocumentPlace { folder: options.out.as_deref(), file: CURVES };
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
            write_points(folder, &found)?;
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
            0 if simulated => SIMULATED_POINTS,
            0 => STACK_POINTS,
            points => points as usize,
        };
        let sizes = sizes(options, spec, recorded.recording.distinct, points);
        job.sizes = sizes.map_err(|message| job.refuse(message))?;
        check_values(job.sizes.len(), wanted.len(), options.windows as usize)
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

/// Sizes asked for at most.
const MAX_SIZES: usize = 10_000;

choices! {
    /// How curves are measured.
    pub enum MethodChoice {
        /// Exactly, but for policies on workloads beyond a bound, and where samples are asked for.
        Auto = "auto",
        /// Without samples.
        Exact = "exact",
        /// LRU on a share of the blocks.
        Shards = "shards",
        /// LRU on a number of blocks.
        ShardsSize = "shards-size",
        /// Any policy on a share of the blocks, in caches scaled down.
        Mini = "mini",
    }
}

choices! {
    /// What is done when a scaled cache is too small.
    pub enum SmallCaches {
        /// Sample more.
        Escalate = "escalate",
        /// Refuse the size.
        Refuse = "refuse",
    }
}

declare! {
    /// Options of `mrc`: how curves are made.
    pub struct CurveOptions {
        /// policies to measure (`lru,s3-fifo`); by default the stack's own
        policies: Vec<String> = Vec::new(), "names";
        /// how curves are measured; `auto` is exact, unless sampling is requested or the workload
        /// is too large
        method: MethodChoice = MethodChoice::Auto, "word";
        /// share of blocks sampled by `shards` and `mini`
        rate: Option<f64> = None, "ratio", 0.000001 ..= 1.0;
        /// maximum number of blocks sampled by `shards-size`
        size: Option<u32> = None, "blocks", 16 ..= 16777216;
        /// cache sizes for all curves (`16MiB,1%wss`); chosen by default
        sizes: Vec<Size> = Vec::new(), "sizes";
        /// how many sizes to choose; 0 leaves it to the method
        points: u32 = 0, "sizes", 0 ..= 10_000;
        /// independent samples for the confidence interval; 0 leaves it to the method
        salts: u32 = 0, "samples", 0 ..= 16;
        /// curves for this many windows of time instead of one for the whole trace
        windows: u32 = 0, "windows", 0 ..= 1000;
        /// compare with exact simulations at this many sizes; 3 is usual
        verify: u32 = 0, "sizes", 0 ..= 10_000;
        /// when the scaled cache is too small: sample more, or refuse
        small: SmallCaches = SmallCaches::Escalate, "word";
        /// also measure response times by cache size; the stack needs devices
        latency: bool = false, "";
    }
}

/// What to measure.
#[derive(Clone, Debug, Default)]
pub struct MrcOptions {
    /// How curves are made.
    pub curve: CurveOptions,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// Folder for `mrc.json` and `mrc.parquet`; nothing is written without one.
    pub out: Option<PathBuf>,
    /// Replace the curves of another stack in that folder.
    pub force: bool,
}

/// Refuses options that mean nothing together, and methods that do not measure a policy.
fn check(spec: &Spec, options: &CurveOptions) -> Result<(), String> {
    options.check_together()?;
    options.check_sampling()?;
    if options.latency && spec.stack.is_none() {
        return Err("`latency`: found a stack without devices, expected `[device.cache]` and \
                    `[device.backing]`, or `[device.ssd]`"
            .to_owned());
    }
    for policy in &policies(spec, options) {
        cachewright_policy::entry(policy).map_err(|error| error.to_string())?;
        let shards = matches!(options.method, MethodChoice::Shards | MethodChoice::ShardsSize);
        if policy != "lru" && shards {
            return Err(format!(
                "`method`: found `{}` for policy `{policy}`, expected `mini` or `exact` (SHARDS \
                 measures LRU)",
                options.method.word()
            ));
        }
    }
    Ok(())
}

/// The policies asked for, each once, or the stack file's own.
fn policies(spec: &Spec, options: &CurveOptions) -> Vec<String> {
    if options.policies.is_empty() {
        return vec![spec.cache.policy.name.clone()];
    }
    let mut found: Vec<String> = Vec::new();
    for policy in &options.policies {
        if !found.contains(policy) {
            found.push(policy.clone());
        }
    }
    found
}

impl CurveOptions {
    fn check_together(&self) -> Result<(), String> {
        if self.sizes.len() > MAX_SIZES {
            let found = self.sizes.len();
            return Err(format!("`sizes`: found {found} sizes, expected at most {MAX_SIZES}"));
        }
        if self.verify > 0 && self.windows > 0 {
            let (verify, windows) = (self.verify, self.windows);
            return Err(format!(
                "`verify`: found {verify} with {windows} windows, expected one of the two: whole \
                 traces are verified"
            ));
        }
        Ok(())
    }

    /// Refuses settings of sampling with methods that do not read them.
    fn check_sampling(&self) -> Result<(), String> {
        use MethodChoice::{Exact, ShardsSize};
        let method = self.method;
        let unread = |key: &str, found: &dyn std::fmt::Display, expected: &str| {
            let method = method.word();
            Err(format!("`{key}`: found {found} with method `{method}`, expected {expected}"))
        };
        if let Some(rate) = self.rate
            && matches!(method, Exact | ShardsSize)
        {
            return unread("rate", &rate, "`shards` or `mini`");
        }
        if let Some(size) = self.size
            && method != ShardsSize
        {
            return unread("size", &size, "`shards-size`");
        }
        if self.salts > 0 && method == Exact {
            return unread("salts", &self.salts, "`shards`, `shards-size` or `mini`");
        }
        Ok(())
    }

    /// Whether a sample was asked for by a setting that only samples have.
    fn asks_for_sample(&self) -> bool {
        self.rate.is_some() || self.salts > 0
    }

    /// How LRU stacks are measured.
    fn stack_method(&self) -> Method {
        match self.method {
            MethodChoice::Auto if !self.asks_for_sample() => Method::Exact,
            MethodChoice::Auto | MethodChoice::Shards => {
                let own = ShardsRateSettings::default();
                let (rate, salts) = (self.rate.unwrap_or(own.rate), self.salts_or(own.salts));
                Method::ShardsRate(ShardsRateSettings { rate, salts })
            }
            MethodChoice::ShardsSize => {
                let own = ShardsSizeSettings::default();
                let max_blocks = self.size.unwrap_or(own.max_blocks);
                let salts = self.salts_or(own.salts);
                Method::ShardsSize(ShardsSizeSettings { max_blocks, salts })
            }
            MethodChoice::Exact | MethodChoice::Mini => Method::Exact,
        }
    }

    /// How policies are simulated: on samples, or exactly.
    fn mini_settings(&self, sampled: bool) -> MiniSettings {
        let own = MiniSettings::default();
        if !sampled {
            return MiniSettings { rate: 1.0, salts: 1, ..own };
        }
        let escalate = self.small == SmallCaches::Escalate;
        let (rate, salts) = (self.rate.unwrap_or(own.rate), self.salts_or(own.salts));
        MiniSettings { rate, salts, escalate, ..own }
    }

    fn salts_or(&self, own: u32) -> u32 {
        if self.salts > 0 { self.salts } else { own }
    }
}

/// Sizes when none are given and each is a simulation of its own.
const SIMULATED_POINTS: usize = 24;
/// Sizes when none are given and all curves are read off one LRU stack.
const STACK_POINTS: usize = 200;
/// The smallest size when none are given, as a share of the working set.
const SMALLEST_SHARE: f64 = 0.001;
/// Sizes are below this: policies count twice as many blocks, cached and remembered, in 32 bits.
const LIMIT_BLOCKS: u64 = 1 << 31;
/// Points of all curves and windows together at most.
const MAX_VALUES: u64 = 1_000_000;

/// The sizes asked for, or `points` sizes in geometric steps up to the working set of `distinct`
/// blocks; ascending, each once. Errors: a size below a block, or too large.
fn sizes(
    options: &CurveOptions,
    spec: &Spec,
    distinct: u32,
    points: usize,
) -> Result<Vec<u32>, String> {
    let mut sizes = if options.sizes.is_empty() {
        spread(distinct, points)
    } else {
        let requested = options.sizes.iter().map(|requested| size(requested, spec, distinct));
        requested.collect::<Result<Vec<u32>, String>>()?
    };
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// Refuses more points than a result can hold.
fn check_values(sizes: usize, curves: usize, windows: usize) -> Result<(), String> {
    let windows = windows.max(1);
    let values = sizes as u64 * curves as u64 * windows as u64;
    if values <= MAX_VALUES {
        return Ok(());
    }
    Err(format!(
        "`points`: found {sizes} sizes of {curves} curves in {windows} windows, which are {values} \
         points; expected at most {MAX_VALUES}"
    ))
}

fn size(requested: &Size, spec: &Spec, distinct: u32) -> Result<u32, String> {
    let blocks = match requested {
        Size::Blocks(blocks) => *blocks,
        Size::Bytes(bytes) => bytes.0 / spec.cache.block.0,
        Size::WorkingSetPercent(percent) => {
            ((f64::from(distinct) * percent / 100.0).round() as u64).max(1)
        }
    };
    let expected = match blocks {
        0 => format!("at least one block ({})", spec.cache.block),
        _ if blocks >= LIMIT_BLOCKS => "fewer than 2^31 blocks".to_owned(),
        _ => return Ok(blocks as u32),
    };
    Err(format!("`sizes`: found `{}`, expected {expected}", requested.exact()))
}

fn spread(distinct: u32, points: usize) -> Vec<u32> {
    let high = f64::from(distinct.max(1));
    let low = (high * SMALLEST_SHARE).max(1.0);
    let at_point = |point: usize| {
        let share = if points == 1 { 1.0 } else { point as f64 / (points - 1) as f64 };
        (low * (high / low).powf(share)).round() as u32
    };
    (0..points).map(at_point).collect()
}

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
enum How {
    /// One LRU stack for all sizes, or samples of it.
    Stack,
    /// One simulation per size.
    Exact,
    /// Miniature simulations.
    Sampled,
}

/// One curve to be measured.
#[derive(Clone, Debug)]
struct WantedCurve {
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
    fn measure(
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

/// What was noted while curves were measured.
#[derive(Clone, Debug, Default)]
struct Remarks {
    /// Curves of the call.
    pub curves: usize,
    /// Why policies are sampled without being asked for.
    pub sampled: Option<String>,
    /// Of each curve with sizes simulated at a higher rate than asked for: the highest rate and
    /// the largest of those sizes.
    pub raised: Vec<(f64, u32)>,
    /// Of each curve measured exactly instead of by samples: the size from which samples serve.
    pub exact_instead: Vec<u32>,
    /// Of each curve without points at small sizes: the size from which it has some.
    pub cut_below: Vec<u32>,
}

impl Remarks {
    /// The sentences, each once.
    pub fn sentences(&self, options: &CurveOptions, rate: f64) -> Vec<String> {
        let largest = |sizes: &[u32]| sizes.iter().copied().max().unwrap_or(0);
        let mut found: Vec<String> = self.sampled.iter().cloned().collect();
        if !self.raised.is_empty() {
            let (prefix, high) = (self.prefix(self.raised.len()), self.raised.iter());
            let highest = high.clone().map(|(rate, _)| *rate).fold(0.0, f64::max);
            let sizes = high.map(|(_, size)| *size).max().unwrap_or(0);
            found.push(format!(
                "{prefix}sampling at rate {rate} leaves too few blocks for sizes up to {sizes} \
                 blocks; they are simulated at rates up to {highest}"
            ));
        }
        if !self.exact_instead.is_empty() {
            let (prefix, from) =
                (self.prefix(self.exact_instead.len()), largest(&self.exact_instead));
            let method = options.method.word();
            found.push(format!(
                "{prefix}measured exactly: samples of method `{method}` serve for {from} blocks \
                 and more"
            ));
        }
        if !self.cut_below.is_empty() {
            let (prefix, from) = (self.prefix(self.cut_below.len()), largest(&self.cut_below));
            found.push(format!(
                "{prefix}no points below {from} blocks, for which samples are too small"
            ));
        }
        found
    }

    fn prefix(&self, count: usize) -> String {
        if self.curves == 1 {
            String::new()
        } else {
            format!("{count} of {} curves: ", self.curves)
        }
    }
}

/// The table in the result folder.
const TABLE: &str = "mrc.parquet";
const SCHEMA: &str = "message mrc {
    REQUIRED BYTE_ARRAY tenant (UTF8);
    REQUIRED BYTE_ARRAY policy (UTF8);
    OPTIONAL INT32 window (UINT_32);
    REQUIRED BYTE_ARRAY method (UTF8);
    REQUIRED INT64 size_blocks (UINT_64);
    REQUIRED INT64 size_bytes (UINT_64);
    REQUIRED DOUBLE miss_ratio;
    OPTIONAL DOUBLE low;
    OPTIONAL DOUBLE high;
}";

impl CurveJob<'_> {
    /// Everything but verification and response times.
    fn answer(
        &self,
        wanted: &[WantedCurve],
        curves: &[Vec<Curve>],
        remarks: &Remarks,
    ) -> Result<CurvesAnswer, ExperimentError> {
        let each = wanted.iter().zip(curves);
        let rate = self.options.rate.unwrap_or(MiniSettings::default().rate);
        Ok(CurvesAnswer {
            written: Written::here(),
            name: self.spec.name.clone(),
            spec: resolved(self.spec)?,
            block_bytes: self.spec.cache.block.0,
            method: self.options.method.word().to_owned(),
            sizes_blocks: self.sizes.clone(),
            tenants: self.recorded.tenants.clone(),
            curves: each.flat_map(|(wanted, found)| self.windows(wanted, found)).collect(),
            notes: remarks.sentences(self.options, rate),
            verify: Vec::new(),
            latency: None,
        })
    }

    fn windows(&self, wanted: &WantedCurve, curves: &[Curve]) -> Vec<MissRatioCurve> {
        let by_window = self.options.windows > 0;
        let windowed = |(window, curve): (usize, &Curve)| MissRatioCurve {
            tenant: wanted.tenant.clone(),
            policy: wanted.policy.clone(),
            window: by_window.then_some(window),
            method: curve.provenance().to_string(),
            accesses: curve.accesses(),
            distinct: wanted.whose.distinct_blocks(self.recording()),
            trusted_from_blocks: curve.trusted_from_blocks(),
            points: self.points(wanted, curve),
        };
        curves.iter().enumerate().map(windowed).collect()
    }

    /// The curve on the grid, without the sizes that a sample does not serve for.
    fn points(&self, wanted: &WantedCurve, curve: &Curve) -> Vec<Point> {
        let banded = curve.band().is_some();
        let accesses = curve.accesses().max(1) as f64;
        let from = if wanted.how == How::Stack { curve.trusted_from_blocks() } else { 0 };
        let point = |&size: &u32| {
            let (low, high) = curve.interval(size);
            let band = |misses: f64| banded.then_some((misses / accesses).clamp(0.0, 1.0));
            (size, curve.miss_ratio(size), band(low), band(high))
        };
        self.sizes.iter().filter(|size| **size >= from).map(point).collect()
    }
}

/// Size in blocks, miss ratio, low and high end of its band.
type Point = (u32, f64, Option<f64>, Option<f64>);

/// One row of the table.
struct CurveRow<'a> {
    curve: &'a MissRatioCurve,
    block_bytes: u64,
    point: Point,
}

/// Writes the points of all curves as a table.
fn write_points(folder: &Path, answer: &CurvesAnswer) -> Result<(), ExperimentError> {
    let block_bytes = answer.block_bytes;
    let points = answer.curves.iter().flat_map(|curve| {
        curve.points.iter().map(move |point| CurveRow { curve, block_bytes, point: *point })
    });
    let rows: Vec<CurveRow<'_>> = points.collect();
    write_file(&folder.join(TABLE), SCHEMA, |group| columns(group, &rows))
}

fn columns(group: &mut RowGroupWriter<'_>, rows: &[CurveRow<'_>]) -> Result<(), ParquetError> {
    let text = |text: &String| ByteArray::from(text.as_str());
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.tenant))?;
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.policy))?;
    optional::<Int32Type, _>(group, rows, |row| row.curve.window.map(|window| window as i32))?;
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.method))?;
    column::<Int64Type, _, _>(group, rows, |row| i64::from(row.point.0))?;
    let bytes = |row: &CurveRow<'_>| u64::from(row.point.0).saturating_mul(row.block_bytes) as i64;
    column::<Int64Type, _, _>(group, rows, bytes)?;
    column::<DoubleType, _, _>(group, rows, |row| row.point.1)?;
    optional::<DoubleType, _>(group, rows, |row| row.point.2)?;
    optional::<DoubleType, _>(group, rows, |row| row.point.3)
}

/// Writes the next column of a group, which may lack values.
fn optional<D: DataType, F: Fn(&CurveRow<'_>) -> Option<D::T>>(
    group: &mut RowGroupWriter<'_>,
    rows: &[CurveRow<'_>],
    value: F,
) -> Result<(), ParquetError> {
    let found: Vec<Option<D::T>> = rows.iter().map(value).collect();
    let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<D::T> = found.into_iter().flatten().collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<D>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::Provenance;

    #[test]
    fn options_of_sampling_have_the_ranges_of_the_settings_that_they_become() {
        let range = |keys: Vec<cachewright_types::Key>, name: &str| {
            keys.into_iter().find(|key| key.name == name).and_then(|key| key.range).unwrap()
        };
        let own = |name| range(CurveOptions::keys(), name);
        for keys in [MiniSettings::keys(), ShardsRateSettings::keys()] {
            assert_eq!(own("rate"), range(keys.clone(), "rate"));
            assert_eq!(own("salts"), (0.0, range(keys, "salts").1));
        }
        assert_eq!(own("size"), range(ShardsSizeSettings::keys(), "max_blocks"));
        assert_eq!(own("salts").1, range(ShardsSizeSettings::keys(), "salts").1);
    }

    #[test]
    fn sizes_spread_from_a_thousandth_to_the_working_set() {
        let found = spread(1_000_000, 4);
        assert_eq!(found, [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!(spread(50, 1), [50]);
        assert_eq!(spread(0, 3), [1, 1, 1]);
    }

    #[test]
    fn points_are_bounded_over_curves_and_windows() {
        assert!(check_values(24, 48, 0).is_ok());
        let error = check_values(10_000, 3, 10_000).unwrap_err();
        assert!(error.contains("found 10000 sizes of 3 curves in 10000 windows"), "{error}");
        assert!(error.contains("expected at most 1000000"), "{error}");
    }

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

    #[test]
    fn many_curves_share_one_sentence() {
        let raised = vec![(0.02, 5000), (1.0, 40_000), (0.08, 300)];
        let remarks = Remarks { curves: 48, raised, cut_below: vec![7, 9], ..Remarks::default() };
        let found = remarks.sentences(&CurveOptions::default(), 0.01);
        assert_eq!(
            found,
            [
                "3 of 48 curves: sampling at rate 0.01 leaves too few blocks for sizes up to 40000 \
                 blocks; they are simulated at rates up to 1",
                "2 of 48 curves: no points below 9 blocks, for which samples are too small",
            ]
        );
        let alone = Remarks { curves: 1, exact_instead: vec![1000], ..Remarks::default() };
        let found = alone.sentences(&CurveOptions::default(), 0.01);
        assert_eq!(
            found,
            ["measured exactly: samples of method `auto` serve for 1000 blocks and more"]
        );
    }
}
