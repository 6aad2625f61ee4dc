//! The description of synthetic tenants: TOML to checked numbers.
//!
//! Unknown keys, missing units and values out of range are refused with what was expected. Keys:
//! docs/synth.md.

use super::address::{
    AddressRegion, AddressShape, Length, PartSpec, PatternSpec, PhaseSpec, PhasesSpec,
};
use super::trap::TrapSpec;
use super::{ArrivalSpec, Bursts};
use cachewright_types::{Seed, parse_bytes, parse_duration};
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
    pub(super) seed: Seed,
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
    trap: Option<Trap>,
    tenant: Option<Vec<Tenant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with `seed`")]
struct Head {
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `kind`, `cache` and `count`")]
struct Trap {
    kind: String,
    cache: String,
    count: u64,
    period: Option<u64>,
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
    /// Reads and checks a description; `seed` takes the place of its own.
    pub(super) fn parse(text: &str, seed: Option<u64>) -> Checked<SynthSpec> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let place = line.map_or(String::new(), |line| format!(" (line {line})"));
            let message = error.message().replace('\n', "; ");
            Mistake::new(format!("{message}{place}"), "a description as in docs/synth.md")
        })?;
        let seed = Seed(seed.unwrap_or(file.synth.seed));
        let tenants = match (file.trap, file.tenant) {
            (Some(trap), None) => return Ok(SynthSpec { seed, tenants: trap.tenants(seed)? }),
            (None, Some(tenants)) => tenants,
            (found, _) => {
                let found = if found.is_some() { "`trap` beside `tenant`" } else { "no `tenant`" };
                return Err(Mistake::new(found, "tables of tenants, or `trap` in their place"));
            }
        };
        if tenants.is_empty() || tenants.len() > TENANTS_LIMIT {
            let found = format!("{} tenants", tenants.len());
            return Err(Mistake::new(found, "1 to 65535 tenants"));
        }
        let tenants = tenants.into_iter().map(Tenant::check).collect::<Checked<Vec<_>>>()?;
        let mut names: Vec<&str> = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Mistake::new(
                format!("two tenants `{}`", pair[0]),
                "a name of its own for each",
            )),
            None => Ok(SynthSpec { seed, tenants }),
        }
    }
}

impl Trap {
    fn tenants(self, seed: Seed) -> Checked<Vec<SynthTenantSpec>> {
        let cache_bytes = bytes("cache", &self.cache)?;
        Ok(TrapSpec::new(&self.kind, cache_bytes, self.count, self.period)?.tenants(seed))
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

/// Addresses end below this, as in every trace.
const ADDRESS_LIMIT_BYTES: u64 = 1 << 63;
const ALPHA_LIMIT: f64 = 20.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `kind` and its keys")]
struct Pattern {
    kind: Kind,
    span: Option<String>,
    offset: Option<String>,
    align: Option<String>,
    scattered: Option<bool>,
    alpha: Option<f64>,
    hot_space: Option<f64>,
    hot_access: Option<f64>,
    run: Option<String>,
    part: Option<Vec<Part>>,
    phase: Option<Vec<Phase>>,
    repeat: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Uniform,
    Zipf,
    HotCold,
    Sequential,
    Loop,
    Mix,
    Phases,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `weight` and `pattern`")]
struct Part {
    weight: u64,
    read_share: Option<f64>,
    pattern: Pattern,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `pattern` and `count` or `duration`")]
struct Phase {
    count: Option<u64>,
    duration: Option<String>,
    read_share: Option<f64>,
    pattern: Pattern,
}

impl Pattern {
    /// The keys present, for refusing those that the kind does not have.
    fn present(&self) -> impl Iterator<Item = &'static str> {
        let keys = [
            ("span", self.span.is_some()),
            ("offset", self.offset.is_some()),
            ("align", self.align.is_some()),
            ("scattered", self.scattered.is_some()),
            ("alpha", self.alpha.is_some()),
            ("hot_space", self.hot_space.is_some()),
            ("hot_access", self.hot_access.is_some()),
            ("run", self.run.is_some()),
            ("part", self.part.is_some()),
            ("phase", self.phase.is_some()),
            ("repeat", self.repeat.is_some()),
        ];
        keys.into_iter().filter(|(_, present)| *present).map(|(key, _)| key)
    }

    /// The pattern for requests of at most `largest` bytes.
    fn check(self, largest: u64) -> Checked<PatternSpec> {
        let (name, own): (&str, &[&str]) = match self.kind {
            Kind::Uniform => ("uniform", &[]),
            Kind::Zipf => ("zipf", &["alpha", "scattered"]),
            Kind::HotCold => ("hot-cold", &["hot_space", "hot_access", "scattered"]),
            Kind::Sequential => ("sequential", &["run"]),
            Kind::Loop => ("loop", &["scattered"]),
            Kind::Mix => ("mix", &["part"]),
            Kind::Phases => ("phases", &["phase", "repeat"]),
        };
        let places: &[&str] = match self.kind {
            Kind::Mix | Kind::Phases => &[],
            _ => &["span", "offset", "align"],
        };
        if let Some(key) = self.present().find(|key| !own.contains(key) && !places.contains(key)) {
            let known = [places, own].concat().join("`, `");
            let found = format!("`{key}` of a pattern of kind `{name}`");
            return Err(Mistake::new(found, format!("only `{known}`")));
        }
        match self.kind {
            Kind::Mix => self.mix(largest),
            Kind::Phases => self.phases(largest),
            _ => {
                let (region, shape) = (self.region(largest)?, self.shape()?);
                Ok(PatternSpec::Region(region, shape))
            }
        }
    }

    fn mix(self, largest: u64) -> Checked<PatternSpec> {
        let parts = self.part.unwrap_or_default();
        weights(parts.iter().map(|part| part.weight))?;
        let parts = parts.into_iter().map(|part| {
            part.read_share.map_or(Ok(()), |value| share("read_share", value))?;
            Ok(PartSpec {
                weight: part.weight,
                read_share: part.read_share,
                pattern: part.pattern.check(largest)?,
            })
        });
        Ok(PatternSpec::Mix(parts.collect::<Checked<Vec<_>>>()?))
    }

    fn phases(self, largest: u64) -> Checked<PatternSpec> {
        let phases = self.phase.unwrap_or_default().into_iter().map(|phase| {
            let length = match (phase.count, phase.duration) {
                (Some(count), None) if count > 0 => Length::Requests(count),
                (None, Some(text)) => Length::Nanos(duration("duration", &text)?),
                _ => {
                    let expected = "one of `count` (above 0) and `duration`";
                    return Err(Mistake::new("a phase without one length", expected));
                }
            };
            phase.read_share.map_or(Ok(()), |value| share("read_share", value))?;
            Ok(PhaseSpec {
                length,
                read_share: phase.read_share,
                pattern: phase.pattern.check(largest)?,
            })
        });
        let phases = phases.collect::<Checked<Vec<_>>>()?;
        if phases.is_empty() {
            return Err(Mistake::new("no `phase`", "at least one"));
        }
        let repeat = self.repeat.unwrap_or(true);
        Ok(PatternSpec::Phases(PhasesSpec { phases, repeat, begun: 0 }))
    }

    fn region(&self, largest: u64) -> Checked<AddressRegion> {
        let Some(span) = &self.span else {
            return Err(Mistake::new(
                "no `span`",
                "the size of the region, as in `span = \"1GiB\"`",
            ));
        };
        let region = AddressRegion {
            span: bytes("span", span)?,
            offset: self.offset.as_deref().map_or(Ok(0), |text| bytes_or_zero("offset", text))?,
            align: self.align.as_deref().map_or(Ok(4096), |text| bytes("align", text))?,
            scattered: self.scattered.unwrap_or(matches!(self.kind, Kind::Zipf | Kind::HotCold)),
        };
        if region.span < largest || region.span < region.align {
            let found = format!("`span` of {} B", region.span);
            return Err(Mistake::new(found, "room for the largest request and for one `align`"));
        }
        if region.offset >= ADDRESS_LIMIT_BYTES || region.span > ADDRESS_LIMIT_BYTES - region.offset
        {
            let found = format!("`offset` {} B and `span` {} B", region.offset, region.span);
            return Err(Mistake::new(found, "an end below 2^63 B"));
        }
        Ok(region)
    }

    fn shape(&self) -> Checked<AddressShape> {
        match self.kind {
            Kind::Zipf => match self.alpha {
                Some(alpha) if (0.0..=ALPHA_LIMIT).contains(&alpha) => {
                    Ok(AddressShape::Zipf { alpha })
                }
                Some(alpha) => Err(Mistake::new(format!("`alpha` of {alpha}"), "0 to 20")),
                None => Err(Mistake::new("no `alpha`", "the exponent, as in `alpha = 1.0`")),
            },
            Kind::HotCold => {
                let (hot_space, hot_access) = match (self.hot_space, self.hot_access) {
                    (Some(space), Some(access)) => (space, access),
                    _ => {
                        let expected = "both, as in `hot_space = 0.2`, `hot_access = 0.8`";
                        return Err(Mistake::new("not both hot shares", expected));
                    }
                };
                share("hot_space", hot_space)?;
                share("hot_access", hot_access)?;
                Ok(AddressShape::HotCold { hot_space, hot_access })
            }
            Kind::Sequential => {
                let run = self.run.as_deref().map(|text| bytes("run", text)).transpose()?;
                Ok(AddressShape::Sequential { run })
            }
            Kind::Loop => Ok(AddressShape::Loop),
            Kind::Uniform | Kind::Mix | Kind::Phases => Ok(AddressShape::Uniform),
        }
    }
}

const WEIGHT_LIMIT: u64 = 1 << 40;

fn share(key: &str, value: f64) -> Checked<()> {
    match value {
        0.0..=1.0 => Ok(()),
        _ => Err(Mistake::new(format!("`{key}` of {value}"), "a share from 0.0 to 1.0")),
    }
}

fn weights(weights: impl Iterator<Item = u64>) -> Checked<()> {
    let mut sum: u64 = 0;
    for weight in weights {
        sum = sum.saturating_add(weight);
        if weight == 0 || sum > WEIGHT_LIMIT {
            return Err(Mistake::new(format!("a weight of {weight}"), "weights from 1 to 2^40"));
        }
    }
    if sum > 0 { Ok(()) } else { Err(Mistake::new("an empty list", "at least one entry")) }
}

fn bytes_or_zero(key: &str, text: &str) -> Checked<u64> {
    parse_bytes(text)
        .map(|bytes| bytes.0)
        .map_err(|error| Mistake::new(format!("`{key}` = `{text}`"), error.expected))
}

fn bytes(key: &str, text: &str) -> Checked<u64> {
    match bytes_or_zero(key, text)? {
        0 => Err(Mistake::new(format!("`{key}` = `{text}`"), "more than 0 B")),
        bytes => Ok(bytes),
    }
}

fn duration_or_zero(key: &str, text: &str) -> Checked<u64> {
    parse_duration(text)
        .map(|nanos| nanos.0)
        .map_err(|error| Mistake::new(format!("`{key}` = `{text}`"), error.expected))
}

fn duration(key: &str, text: &str) -> Checked<u64> {
    match duration_or_zero(key, text)? {
        0 => Err(Mistake::new(format!("`{key}` = `{text}`"), "more than 0 ns")),
        nanos => Ok(nanos),
    }
}

/// Requests per nanosecond of a rate such as `2000/s`.
fn rate(key: &str, text: &str) -> Checked<f64> {
    const UNITS: [(&str, f64); 5] =
        [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)];
    let (number, unit) = text.split_once('/').unwrap_or((text, ""));
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let number: Option<f64> = number.trim().replace('_', "").parse().ok();
    match (number, unit) {
        // At most one request per nanosecond on average: times are whole nanoseconds.
        (Some(number), Some((_, ns))) if number >= 0.0 && number <= *ns => Ok(number / ns),
        _ => Err(Mistake::new(
            format!("`{key}` = `{text}`"),
            "requests per us, ms, s, min or h (as in `2000/s`), at most one per nanosecond",
        )),
    }
}
