//! Units that a trace's own columns may be in, as users name them in format options.
//!
//! For: exact conversion of columns to nanoseconds and bytes. Must never know: which column. A
//! missing or unknown unit is refused.

use crate::fields::{SECTOR_BYTES, decimal};

/// What a unit of time is refused with.
pub(crate) const TIME_UNITS: &str = "one of ps, ns, 100ns, us, ms, s";
/// What a unit of addresses is refused with.
pub(crate) const ADDRESS_UNITS: &str =
    "`B`, `sector` (512 B) or a size with a unit such as `4KiB`, at most 1GiB";
const LARGEST_ADDRESS_UNIT_BYTES: u64 = 1 << 30;

/// A unit of time: `numerator / denominator` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    numerator: u64,
    denominator: u64,
}

impl TimeUnit {
    /// The unit of this room's border.
    pub(crate) const NANOSECOND: TimeUnit = TimeUnit { numerator: 1, denominator: 1 };

    /// The unit called `text`; `100ns` is that of Windows file time.
    pub(crate) fn parse(text: &str) -> Option<TimeUnit> {
        let (numerator, denominator) = match text {
            "ps" => (1, 1_000),
            "ns" => (1, 1),
            "100ns" => (100, 1),
            "us" => (1_000, 1),
            "ms" => (1_000_000, 1),
            "s" => (1_000_000_000, 1),
            _ => return None,
        };
        Some(TimeUnit { numerator, denominator })
    }

    /// `ticks` units in nanoseconds, cut to whole ones; nothing beyond 2^64.
    #[inline]
    pub(crate) fn ticks_ns(self, ticks: u64) -> Option<u64> {
        Some(ticks.checked_mul(self.numerator)? / self.denominator)
    }

    /// A decimal number of units in nanoseconds, cut to whole ones.
    #[inline]
    pub(crate) fn decimal_ns(self, field: &[u8]) -> Option<u64> {
        decimal(field, self.numerator, self.denominator)
    }
}

/// The bytes in the unit of addresses called `text`.
pub(crate) fn address_unit_bytes(text: &str) -> Option<u64> {
    match text {
        "B" => Some(1),
        "sector" => Some(SECTOR_BYTES),
        _ => cachewright_types::parse_bytes(text)
            .ok()
            .map(|bytes| bytes.0)
            .filter(|bytes| (1..=LARGEST_ADDRESS_UNIT_BYTES).contains(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact_and_strict() {
        let ns = |unit: &str, field: &str| TimeUnit::parse(unit)?.decimal_ns(field.as_bytes());
        assert_eq!(ns("100ns", "128166465299039421"), Some(12_816_646_529_903_942_100));
        assert_eq!(ns("ps", "2500.9"), Some(2));
        assert_eq!(ns("ms", "0.000001"), Some(1));
        assert_eq!(ns("s", "18446744073.709551615"), Some(u64::MAX));
        assert_eq!(ns("s", "18446744073.709551616"), None);
        assert_eq!(ns("seconds", "1"), None);
        assert_eq!(TimeUnit::parse("ps").and_then(|unit| unit.ticks_ns(2_999)), Some(2));
        assert_eq!(address_unit_bytes("4KiB"), Some(4096));
        assert_eq!(address_unit_bytes("sector"), Some(512));
        for bad in ["", "1", "512", "0B", "2GiB", "block"] {
            assert_eq!(address_unit_bytes(bad), None, "`{bad}`");
        }
    }
}
