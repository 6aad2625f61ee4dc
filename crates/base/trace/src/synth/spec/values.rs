//! Shares, weights, sizes and times of a description.
//!
//! For: values that stand in several tables. Must never know: what they are of. Units: bytes,
//! nanoseconds.

use super::{Checked, Mistake};
use cachewright_types::{parse_bytes, parse_duration};

const WEIGHT_LIMIT: u64 = 1 << 40;

pub(super) fn share(key: &str, value: f64) -> Checked<()> {
    match value {
        0.0..=1.0 => Ok(()),
        _ => Err(Mistake::new(format!("`{key}` of {value}"), "a share from 0.0 to 1.0")),
    }
}

pub(super) fn weights(weights: impl Iterator<Item = u64>) -> Checked<()> {
    let mut sum: u64 = 0;
    for weight in weights {
        sum = sum.saturating_add(weight);
        if weight == 0 || sum > WEIGHT_LIMIT {
            return Err(Mistake::new(format!("a weight of {weight}"), "weights from 1 to 2^40"));
        }
    }
    if sum > 0 { Ok(()) } else { Err(Mistake::new("an empty list", "at least one entry")) }
}

pub(super) fn bytes_or_zero(key: &str, text: &str) -> Checked<u64> {
    parse_bytes(text)
        .map(|bytes| bytes.0)
        .map_err(|error| Mistake::new(format!("`{key}` = `{text}`"), error.expected))
}

pub(super) fn bytes(key: &str, text: &str) -> Checked<u64> {
    match bytes_or_zero(key, text)? {
        0 => Err(Mistake::new(format!("`{key}` = `{text}`"), "more than 0 B")),
        bytes => Ok(bytes),
    }
}

pub(super) fn duration_or_zero(key: &str, text: &str) -> Checked<u64> {
    parse_duration(text)
        .map(|nanos| nanos.0)
        .map_err(|error| Mistake::new(format!("`{key}` = `{text}`"), error.expected))
}

pub(super) fn duration(key: &str, text: &str) -> Checked<u64> {
    match duration_or_zero(key, text)? {
        0 => Err(Mistake::new(format!("`{key}` = `{text}`"), "more than 0 ns")),
        nanos => Ok(nanos),
    }
}

/// Requests per nanosecond of a rate such as `2000/s`.
pub(super) fn rate(key: &str, text: &str) -> Checked<f64> {
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
