//! Where requests lie, as a description says it.
//!
//! For: one `pattern` table, checked. Must never know: arrivals, tenants. Units: bytes.

use super::values::{bytes, bytes_or_zero, duration, share, weights};
use super::{Checked, Mistake};
use crate::synth::address::{AddressRegion, AddressShape, Length, PatternSpec};
use serde::Deserialize;

/// Addresses end below this, as in every trace.
const ADDRESS_LIMIT_BYTES: u64 = 1 << 63;
const ALPHA_LIMIT: f64 = 20.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `kind` and its keys")]
pub(super) struct Pattern {
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
    pattern: Pattern,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `pattern` and `count` or `duration`")]
struct Phase {
    count: Option<u64>,
    duration: Option<String>,
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
    pub(super) fn check(self, largest: u64) -> Checked<PatternSpec> {
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
        let parts = parts.into_iter().map(|part| Ok((part.weight, part.pattern.check(largest)?)));
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
            Ok((length, phase.pattern.check(largest)?))
        });
        let phases = phases.collect::<Checked<Vec<_>>>()?;
        if phases.is_empty() {
            return Err(Mistake::new("no `phase`", "at least one"));
        }
        Ok(PatternSpec::Phases(phases, self.repeat.unwrap_or(true)))
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
