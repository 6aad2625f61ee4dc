//! Sizes and durations with strict units: `16MiB`, `1.5GB`, `10%wss`, `250us`.
//!
//! A number without a unit is an error: `16` is not sixteen bytes.

use cachewright_snapshot::SnapshotValue;
use std::fmt;
use thiserror::Error;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SnapshotValue)]
pub struct Bytes(pub u64);

/// A time or duration in nanoseconds of simulated or traced time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, SnapshotValue)]
pub struct Nanos(pub u64);

/// A size as users write it: absolute, or relative to the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many bytes.
    Bytes(Bytes),
    /// So many cache blocks.
    Blocks(u64),
    /// A share of the working set (distinct blocks read or written), in percent.
    WorkingSetPercent(f64),
}

/// Why a quantity was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found `{found}`, expected {expected}")]
pub struct UnitError {
    /// The text as found.
    pub found: String,
    /// What would have been accepted.
    pub expected: String,
}

const BYTE_UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];
const TIME_UNITS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const BYTES_EXPECTED: &str =
    "a number with a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB or TB (as in `16MiB`)";
const SIZE_EXPECTED: &str = "a number with a unit: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB, \
     `blocks` or `%wss` (as in `16MiB`, `4096 blocks`, `10%wss`)";
const TIME_EXPECTED: &str = "a number with a unit: ns, us, ms, s, min or h (as in `250us`)";

/// The error for `text`, with the nearest of binary sizes where only the unit's end is missing.
fn refused(text: &str, expected: &str) -> UnitError {
    let scale =
        text.trim().find(|c: char| !c.is_ascii_digit()).map(|end| text.trim().split_at(end));
    let near = match scale {
        Some((number, unit)) if !number.is_empty() && expected != TIME_EXPECTED => {
            let unit = ["KiB", "MiB", "GiB", "TiB"].into_iter().find(|whole| {
                unit.len() < 4 && whole[..1].eq_ignore_ascii_case(unit.get(..1).unwrap_or(""))
            });
            unit.map(|unit| format!("; nearest is `{number}{unit}`"))
        }
        _ => None,
    };
    UnitError {
        found: text.to_owned(),
        expected: format!("{expected}{}", near.unwrap_or_default()),
    }
}

/// Splits `text` into its number and its unit; neither may be empty.
fn split<'a>(text: &'a str, expected: &'static str) -> Result<(f64, &'a str), UnitError> {
    let refuse = || refused(text, expected);
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
    let (number, unit) = trimmed.split_at(end.ok_or_else(refuse)?);
    let number: f64 = number.replace('_', "").parse().map_err(|_| refuse())?;
    Ok((number, unit.trim_start()))
}

fn scaled(text: &str, units: &[(&str, u64)], expected: &'static str) -> Result<u64, UnitError> {
    let refuse = || refused(text, expected);
    let (number, unit) = split(text, expected)?;
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
    let value = number * *scale as f64;
    if value >= u64::MAX as f64 { Err(refuse()) } else { Ok(value.round() as u64) }
}

/// Reads a byte count such as `4KiB`; a missing or unknown unit is refused.
pub fn parse_bytes(text: &str) -> Result<Bytes, UnitError> {
    scaled(text, &BYTE_UNITS, BYTES_EXPECTED).map(Bytes)
}

/// Reads a duration such as `2s` or `250us`; a missing or unknown unit is refused.
pub fn parse_duration(text: &str) -> Result<Nanos, UnitError> {
    scaled(text, &TIME_UNITS, TIME_EXPECTED).map(Nanos)
}

/// Reads a cache size: bytes, `N blocks` or `P%wss`.
pub fn parse_size(text: &str) -> Result<Size, UnitError> {
    let refuse = || refused(text, SIZE_EXPECTED);
    match split(text, SIZE_EXPECTED)? {
        (percent, "%wss") if percent > 0.0 => Ok(Size::WorkingSetPercent(percent)),
        (count, "blocks" | "block") if count.fract() == 0.0 => Ok(Size::Blocks(count as u64)),
        (_, "%wss" | "blocks" | "block") => Err(refuse()),
        _ => scaled(text, &BYTE_UNITS, SIZE_EXPECTED).map(|b| Size::Bytes(Bytes(b))),
    }
}

/// The shortest text of a number in a unit of which it is a whole number.
fn shortest(number: u64, units: &[(&str, u64)]) -> String {
    let whole = units.iter().filter(|(_, scale)| number.is_multiple_of(*scale));
    let texts = whole.map(|(name, scale)| format!("{}{name}", number / scale));
    texts.min_by_key(String::len).unwrap_or_default()
}

impl Bytes {
    /// A text that reads back as itself: in a larger unit where it is a whole number of them.
    pub fn exact(self) -> String {
        let text = self.to_string();
        let whole = !text.contains('.') && parse_bytes(&text) == Ok(self);
        if whole { text } else { shortest(self.0, &BYTE_UNITS) }
    }
}

impl Nanos {
    /// A text that reads back as itself: in a larger unit where it is a whole number of them.
    pub fn exact(self) -> String {
        let text = self.to_string();
        if parse_duration(&text) == Ok(self) { text } else { shortest(self.0, &TIME_UNITS) }
    }
}

impl Size {
    /// A text that reads back as itself.
    pub fn exact(self) -> String {
        match self {
            Size::Bytes(bytes) => bytes.exact(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that keeps three significant digits, as in `1.5GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let unit = units.iter().find(|(_, shift)| self.0 >> shift > 0);
        match unit {
            Some((name, shift)) if self.0 & ((1 << shift) - 1) == 0 => {
                write!(f, "{}{name}", self.0 >> shift)
            }
            Some((name, shift)) => {
                write!(f, "{:.4}{name}", Significant(self.0 as f64 / (1_u64 << shift) as f64))
            }
            None => write!(f, "{}B", self.0),
        }
    }
}

impl fmt::Display for Nanos {
    /// The largest time unit of which there is at least one, as in `1.5ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = TIME_UNITS.iter().rev().find(|(_, scale)| self.0 >= *scale);
        match unit {
            Some((name, scale)) if self.0.is_multiple_of(*scale) => {
                write!(f, "{}{name}", self.0 / scale)
            }
            Some((name, scale)) => {
                write!(f, "{:.4}{name}", Significant(self.0 as f64 / *scale as f64))
            }
            None => f.write_str("0s"),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Size::Bytes(bytes) => bytes.fmt(f),
            Size::Blocks(count) => write!(f, "{count} blocks"),
            Size::WorkingSetPercent(percent) => write!(f, "{percent}%wss"),
        }
    }
}

/// A number written with at most the formatter's precision in significant digits.
struct Significant(f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(4);
        let whole = (self.0.abs().max(1.0).log10().floor() as usize) + 1;
        let text = format!("{:.*}", digits.saturating_sub(whole), self.0);
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        f.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_strict() {
        assert_eq!(parse_bytes("16MiB"), Ok(Bytes(16 << 20)));
        assert_eq!(parse_bytes("1.5GB"), Ok(Bytes(1_500_000_000)));
        assert_eq!(parse_size("10%wss"), Ok(Size::WorkingSetPercent(10.0)));
        assert_eq!(parse_size("4096 blocks"), Ok(Size::Blocks(4096)));
        for bad in ["16", "16Mib", "MiB", "", "-4KiB", "4 parsecs", "1..5GB", "0%wss", "1.5 blocks"]
        {
            assert!(parse_size(bad).is_err(), "`{bad}` must be refused");
        }
    }

    #[test]
    fn durations_are_strict() {
        assert_eq!(parse_duration("250us"), Ok(Nanos(250_000)));
        assert_eq!(parse_duration("3min"), Ok(Nanos(180_000_000_000)));
        assert!(parse_duration("10").is_err());
        assert!(parse_duration("10sec").is_err());
        let said = |text| parse_size(text).map_err(|error| error.expected).unwrap_err();
        for (text, near) in [("16M", "16MiB"), ("4k", "4KiB"), ("2Gib", "2GiB")] {
            assert!(said(text).ends_with(&format!("; nearest is `{near}`")), "{text}");
        }
        assert!(!said("16").contains("nearest") && !said("4 parsecs").contains("nearest"));
    }

    #[test]
    fn written_sizes_read_back() {
        for text in ["16MiB", "1GiB", "4KiB", "512B", "0B"] {
            assert_eq!(parse_bytes(text).map(|b| b.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(Bytes(1_500_000_000).to_string(), "1.397GiB");
        assert_eq!(Nanos(1_500_000).to_string(), "1.5ms");
        for number in [0, 1, 999, 1 << 20, 1_048_577, 1_000_000, 1_000_001, 90_000_000_000] {
            assert_eq!(parse_bytes(&Bytes(number).exact()), Ok(Bytes(number)));
            assert_eq!(parse_duration(&Nanos(number).exact()), Ok(Nanos(number)));
        }
        assert_eq!(Nanos(100_000_010).to_string(), "100ms", "four digits");
        assert_eq!(Nanos(100_000_010).exact(), "100000010ns");
        assert_eq!(Nanos(1_000_000_000_000).exact(), "1000s");
        assert_eq!(
            (Bytes(480_000_000_000).exact(), Bytes(3 << 9).exact()),
            ("480GB".into(), "1536B".into())
        );
        assert_eq!(
            (Bytes(1 << 21).exact(), Nanos(1_500_000).exact()),
            ("2MiB".into(), "1.5ms".into())
        );
    }
}
