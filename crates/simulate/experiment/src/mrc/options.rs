//! What a call of `mrc` asks for, and what it may not ask for.
//!
//! For: the options, declared once for Rust, Python and the command line; what they mean together;
//! the settings of each way to measure. Must never know: traces.

use crate::Spec;
use cachewright_curve::{Method, MiniSettings, ShardsRateSettings, ShardsSizeSettings};
use cachewright_types::{Size, choices, declare};
use std::path::PathBuf;

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
pub(super) fn check(spec: &Spec, options: &CurveOptions) -> Result<(), String> {
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
pub(super) fn policies(spec: &Spec, options: &CurveOptions) -> Vec<String> {
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
    pub(super) fn asks_for_sample(&self) -> bool {
        self.rate.is_some() || self.salts > 0
    }

    /// How LRU stacks are measured.
    pub(super) fn stack_method(&self) -> Method {
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
    pub(super) fn mini_settings(&self, sampled: bool) -> MiniSettings {
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

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::declare::Declared;

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
}
