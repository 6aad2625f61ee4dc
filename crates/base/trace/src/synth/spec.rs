//! The description of synthetic tenants: TOML to checked numbers.
//!
//! For: keys, units and ranges. Must never know: how anything is drawn. Unknown keys, missing units
//! and values out of range are refused with what was expected. Keys: docs/synth.md.

mod pattern;
mod values;

use self::pattern::Pattern;
use self::values::{bytes, duration, duration_or_zero, rate, share, weights};
use super::address::PatternSpec;
use super::arrival::{ArrivalSpec, Bursts};
use serde::Deserialize;

/// Why a description was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) found: String,
    pub(super) expected: String,
}

impl Mistake {
    pub(super) fn new(found: impl Into<String>, expected: impl Into<String>) -> Mistake {
        Mistake { found: found.into(), expected: expected.into() }
    }
}

/// A checked description.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SynthSpec {
    pub(super) seed: u64,
    pub(super) tenants: Vec<SynthTenantSpec>,
}

/// A checked tenant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SynthTenantSpec {
    pub(super) name: String,
    pub(super) count: Option<u64>,
    pub(super) duration_ns: Option<u64>,
    pub(super) start_ns: u64,
    pub(super) arrival: ArrivalSpec,
    pub(super) read_share: f64,
    /// Bytes and weight.
    pub(super) sizes: Vec<(u64, u64)>,
    pub(super) pattern: PatternSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    synth: Head,
    tenant: Vec<Tenant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `seed`")]
struct Head {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table per tenant")]
struct Tenant {
    name: String,
    count: Option<u64>,
    duration: Option<String>,
    start: Option<String>,
    arrival: Arrival,
    read_share: f64,
    size: Option<String>,
    sizes: Option<Vec<WeightedSize>>,
    pattern: Pattern,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `size` and `weight`")]
struct WeightedSize {
    size: String,
    weight: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `kind` and `rate`")]
struct Arrival {
    kind: ArrivalKind,
    rate: String,
    on: Option<String>,
    off: Option<String>,
    off_rate: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ArrivalKind {
    Constant,
    Poisson,
}

const TENANTS_LIMIT: usize = 65_535;

/// What a part of a description is, or why it was refused.
type Checked<T> = Result<T, Mistake>;

impl SynthSpec {
    /// Reads and checks a description.
    pub(super) fn parse(text: &str) -> Checked<SynthSpec> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let place = line.map_or(String::new(), |line| format!(" (line {line})"));
            let message = error.message().replace('\n', "; ");
            Mistake::new(format!("{message}{place}"), "a description as in docs/synth.md")
        })?;
        if file.tenant.is_empty() || file.tenant.len() > TENANTS_LIMIT {
            let found = format!("{} tenants", file.tenant.len());
            return Err(Mistake::new(found, "1 to 65535 tenants"));
        }
        let tenants = file.tenant.into_iter().map(Tenant::check).collect::<Checked<Vec<_>>>()?;
        let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Mistake::new(
                format!("two tenants `{}`", pair[0]),
                "a name of its own for each",
            )),
            None => Ok(SynthSpec { seed: file.synth.seed, tenants }),
        }
    }
}

impl Tenant {
    fn check(self) -> Checked<SynthTenantSpec> {
        let name = self.name.clone();
        self.checked().map_err(|mistake| Mistake {
            found: format!("{} in tenant `{}`", mistake.found, name.escape_debug()),
            ..mistake
        })
    }

    fn checked(self) -> Checked<SynthTenantSpec> {
        let duration_ns = self.duration.as_deref().map(|t| duration("duration", t)).transpose()?;
        if self.name.is_empty() {
            return Err(Mistake::new("an empty name", "a name"));
        }
        if self.count.is_none() && duration_ns.is_none() {
            return Err(Mistake::new("neither `count` nor `duration`", "one of them or both"));
        }
        share("read_share", self.read_share)?;
        let sizes = match (self.size, self.sizes) {
            (Some(size), None) => vec![(bytes("size", &size)?, 1)],
            (None, Some(sizes)) => sizes
                .iter()
                .map(|entry| Ok((bytes("size", &entry.size)?, entry.weight)))
                .collect::<Checked<Vec<_>>>()?,
            _ => return Err(Mistake::new("not just one of `size` and `sizes`", "one of them")),
        };
        weights(sizes.iter().map(|(_, weight)| *weight))?;
        let largest = sizes.iter().map(|(size, _)| *size).max().unwrap_or(0);
        Ok(SynthTenantSpec {
            name: self.name,
            count: self.count,
            duration_ns,
            start_ns: self
                .start
                .as_deref()
                .map_or(Ok(0), |text| duration_or_zero("start", text))?,
            arrival: self.arrival.check()?,
            read_share: self.read_share,
            sizes,
            pattern: self.pattern.check(largest)?,
        })
    }
}

impl Arrival {
    fn check(self) -> Checked<ArrivalSpec> {
        let per_ns = rate("rate", &self.rate)?;
        if per_ns == 0.0 {
            return Err(Mistake::new("`rate` of 0", "a rate above 0"));
        }
        let bursts = match (self.on, self.off, self.off_rate) {
            (None, None, None) => None,
            (Some(on), Some(off), off_rate) => Some(Bursts {
                on_ns: duration("on", &on)? as f64,
                off_ns: duration("off", &off)? as f64,
                off_rate: off_rate.map_or(Ok(0.0), |text| rate("off_rate", &text))?,
            }),
            _ => return Err(Mistake::new("half a burst", "both `on` and `off`")),
        };
        let poisson = matches!(self.kind, ArrivalKind::Poisson);
        Ok(ArrivalSpec { poisson, rate: per_ns, bursts })
    }
}
