//! What a call of `mrc` asks for, and what it may not ask for.
//!
//! For: the options, their checks, and the settings of each way to measure. Must never know:
//! traces.

use crate::Spec;
use cachewright_curve::{Method, MiniSettings, ShardsRateSettings, ShardsSizeSettings};
use cachewright_types::settings::Settings;
use cachewright_types::{SettingError, Value as Setting, nearest};

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
    /// Measure response times at the sizes too; the stack needs devices.
    pub latency: bool,
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
            latency: false,
            set: Vec::new(),
            threads: 0,
        }
    }
}

/// Refuses words that mean nothing and methods that do not measure a policy.
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

/// The policies asked for, or the stack file's own.
pub(super) fn policies(spec: &Spec, options: &MrcOptions) -> Vec<String> {
    if options.policies.is_empty() {
        vec![spec.cache.policy.name.clone()]
    } else {
        options.policies.clone()
    }
}

impl MrcOptions {
    /// How LRU stacks are measured. Errors: a setting out of range.
    pub(super) fn stack_method(&self) -> Result<Method, String> {
        let pairs = self.pairs(&[("rate", self.rate.map(Setting::Float))]);
        let size = self.size.map(|size| Setting::Int(size as i64));
        let blocks = self.pairs(&[("max_blocks", size)]);
        let settings = |error: SettingError| error.to_string();
        Ok(match self.method.as_str() {
            "shards" => {
                Method::ShardsRate(ShardsRateSettings::from_pairs(&pairs).map_err(settings)?)
            }
            "shards-size" => {
                Method::ShardsSize(ShardsSizeSettings::from_pairs(&blocks).map_err(settings)?)
            }
            _ => Method::Exact,
        })
    }

    /// How policies are simulated in miniature. Errors: a setting out of range.
    pub(super) fn mini_settings(&self) -> Result<MiniSettings, String> {
        let exact = self.method == "exact";
        let rate = if exact { Some(1.0) } else { self.rate };
        let escalate = self.small == "escalate";
        let pairs = self.pairs(&[
            ("rate", rate.map(Setting::Float)),
            ("escalate", Some(Setting::Bool(escalate))),
        ]);
        MiniSettings::from_pairs(&pairs).map_err(|error: SettingError| error.to_string())
    }

    /// The pairs given, with the number of samples if that is given.
    fn pairs(&self, pairs: &[(&str, Option<Setting>)]) -> Vec<(String, Setting)> {
        let salts = self.salts;
        let salts = (salts > 0).then_some(("salts", Some(Setting::Int(salts as i64))));
        let given = pairs.iter().cloned().chain(salts);
        given.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}
