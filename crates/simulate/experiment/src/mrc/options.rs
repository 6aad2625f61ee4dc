//! What a call of `mrc` asks for, and what it may not ask for.
//!
//! For: the options, their checks and bounds, and the settings of each way to measure. Must never
//! know: traces.

use crate::Spec;
use cachewright_curve::{Method, MiniSettings, ShardsRateSettings, ShardsSizeSettings};
use cachewright_types::declare::Declared;
use cachewright_types::{SettingError, Value as Setting, nearest};
use std::path::PathBuf;

const METHODS: [&str; 5] = ["auto", "exact", "shards", "shards-size", "mini"];
/// Sizes per curve at most, and sizes to verify at most.
pub(super) const MAX_POINTS: usize = 10_000;
/// Windows of time at most.
pub(super) const MAX_WINDOWS: usize = 1_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct MrcOptions {
    /// Policies; empty for the stack file's own.
    pub policies: Vec<String>,
    /// `auto` (exact, but for policies on workloads beyond a bound, and where a rate or salts are
    /// given), `exact`, `shards`, `shards-size` or `mini`.
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
    /// Measure response times at the sizes too; the stack needs devices.
    pub latency: bool,
    /// Keys set over the stack file.
    pub set: Vec<(String, String)>,
    /// Threads; 0 for one per processor.
    pub threads: usize,
    /// Folder for `mrc.json` and `mrc.parquet`; nothing is written without one.
    pub out: Option<PathBuf>,
    /// Replace the curves of another stack in that folder.
    pub force: bool,
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
            latency: false,
            set: Vec::new(),
            threads: 0,
            out: None,
            force: false,
        }
    }
}

/// Refuses unknown words, numbers beyond their bounds and methods that do not measure a policy.
pub(super) fn check(spec: &Spec, options: &MrcOptions) -> Result<(), String> {
    let one_of = |key: &str, found: &str, words: &[&str]| {
        let hint = nearest(found, words.iter().copied());
        let hint = hint.map_or(String::new(), |near| format!("; nearest is `{near}`"));
        let expected = words.join(", ");
        let message = format!("`{key}`: found `{found}`, expected one of {expected}{hint}");
        if words.contains(&found) { Ok(()) } else { Err(message) }
    };
    one_of("method", &options.method, &METHODS)?;
    one_of("small", &options.small, &["escalate", "refuse"])?;
    options.check_bounds()?;
    options.check_sampling()?;
    if options.latency && spec.stack.is_none() {
        return Err("`latency`: found a stack without devices, expected `[device.cache]` and \
                    `[device.backing]`, or `[device.ssd]`"
            .to_owned());
    }
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

/// The policies asked for, each once, or the stack file's own.
pub(super) fn policies(spec: &Spec, options: &MrcOptions) -> Vec<String> {
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

impl MrcOptions {
    fn check_bounds(&self) -> Result<(), String> {
        let bounded = [
            ("points", self.points, MAX_POINTS),
            ("windows", self.windows, MAX_WINDOWS),
            ("verify", self.verify, MAX_POINTS),
        ];
        for (key, found, most) in bounded {
            if found > most {
                return Err(format!("`{key}`: found {found}, expected 0 to {most}"));
            }
        }
        if self.sizes.len() > MAX_POINTS {
            let found = self.sizes.len();
            return Err(format!("`sizes`: found {found} sizes, expected at most {MAX_POINTS}"));
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

    /// Refuses settings of sampling with methods that do not read them, and values out of range.
    fn check_sampling(&self) -> Result<(), String> {
        let method = self.method.as_str();
        let unread = |key: &str, found: &dyn std::fmt::Display, expected: &str| {
            Err(format!("`{key}`: found {found} with method `{method}`, expected {expected}"))
        };
        if let Some(rate) = self.rate
            && matches!(method, "exact" | "shards-size")
        {
            return unread("rate", &rate, "`shards` or `mini`");
        }
        if let Some(size) = self.size
            && method != "shards-size"
        {
            return unread("size", &size, "`shards-size`");
        }
        if self.salts > 0 && method == "exact" {
            return unread("salts", &self.salts, "`shards`, `shards-size` or `mini`");
        }
        self.stack_method()?;
        self.mini_settings(true).map(|_| ())
    }

    /// Whether a sample was asked for by a setting that only samples have.
    pub(super) fn asks_for_sample(&self) -> bool {
        self.rate.is_some() || self.salts > 0
    }

    /// How LRU stacks are measured. Errors: a setting out of range.
    pub(super) fn stack_method(&self) -> Result<Method, String> {
        let pairs = self.pairs(&[("rate", self.rate.map(Setting::Float))]);
        let size = self.size.map(|size| Setting::Int(i64::try_from(size).unwrap_or(i64::MAX)));
        let blocks = self.pairs(&[("max_blocks", size)]);
        // The option has another name than the setting.
        let settings = |error: SettingError| error.to_string().replace("`max_blocks`", "`size`");
        Ok(match self.method.as_str() {
            "shards" => {
                Method::ShardsRate(ShardsRateSettings::from_pairs(&pairs).map_err(settings)?)
            }
            "auto" if self.asks_for_sample() => {
                Method::ShardsRate(ShardsRateSettings::from_pairs(&pairs).map_err(settings)?)
            }
            "shards-size" => {
                Method::ShardsSize(ShardsSizeSettings::from_pairs(&blocks).map_err(settings)?)
            }
            _ => Method::Exact,
        })
    }

    /// How policies are simulated: on samples, or exactly. Errors: a setting out of range.
    pub(super) fn mini_settings(&self, sampled: bool) -> Result<MiniSettings, String> {
        if !sampled {
            return Ok(MiniSettings { rate: 1.0, salts: 1, ..MiniSettings::default() });
        }
        let escalate = self.small == "escalate";
        let pairs = self.pairs(&[
            ("rate", self.rate.map(Setting::Float)),
            ("escalate", Some(Setting::Bool(escalate))),
        ]);
        MiniSettings::from_pairs(&pairs).map_err(|error: SettingError| error.to_string())
    }

    /// The pairs given, with the number of samples if that is given.
    fn pairs(&self, pairs: &[(&str, Option<Setting>)]) -> Vec<(String, Setting)> {
        let salts = i64::try_from(self.salts).unwrap_or(i64::MAX);
        let salts = (salts > 0).then_some(("salts", Some(Setting::Int(salts))));
        let given = pairs.iter().cloned().chain(salts);
        given.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
