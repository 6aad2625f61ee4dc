//! Units that a trace's own columns may be in, as users name them in format options.
//!
//! A missing or unknown unit is refused.

use crate::fields::{Decimal, SECTOR_BYTES, decimal};
use crate::reader::RequestBound;
use crate::reader::bad_option;
use crate::{OpenOptions, TraceError};
use cachewright_types::declare::{Mismatch, ValueKind};
use cachewright_types::{Bytes, Op, Value};

/// What a unit of time is refused with.
pub(crate) const TIME_UNITS: &str = "one of ps, ns, 100ns, us, ms, s";
/// What a unit of addresses is refused with.
pub(crate) const ADDRESS_UNITS: &str =
    "`B`, `sector` (512 B) or a size with a unit such as `4KiB`, at most 1GiB";
const LARGEST_ADDRESS_UNIT_BYTES: u64 = 1 << 30;

/// The units of time: word, nanoseconds as a ratio. `100ns` is that of Windows file time.
const TIME_WORDS: [(&str, (u64, u64)); 6] = [
    ("ps", (1, 1_000)),
    ("ns", (1, 1)),
    ("100ns", (100, 1)),
    ("us", (1_000, 1)),
    ("ms", (1_000_000, 1)),
    ("s", (1_000_000_000, 1)),
];

/// A unit of time: `numerator / denominator` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnit {
    numerator: u64,
    denominator: u64,
}

impl TimeUnit {
    /// The unit of this room's border.
    pub(crate) const NANOSECOND: TimeUnit = TimeUnit { numerator: 1, denominator: 1 };
    /// A thousandth of a millisecond.
    pub(crate) const MICROSECOND: TimeUnit = TimeUnit { numerator: 1_000, denominator: 1 };
    /// A thousandth of a second.
    pub(crate) const MILLISECOND: TimeUnit = TimeUnit { numerator: 1_000_000, denominator: 1 };
    /// The unit of Windows' file time.
    pub(crate) const FILE_TIME: TimeUnit = TimeUnit { numerator: 100, denominator: 1 };
    /// A thousand milliseconds.
    pub(crate) const SECOND: TimeUnit = TimeUnit { numerator: 1_000_000_000, denominator: 1 };
    /// A day of 86,400 seconds, the unit of typed dates alone.
    pub(crate) const DAY: TimeUnit = TimeUnit { numerator: 86_400_000_000_000, denominator: 1 };

    /// The unit called `text`.
    pub(crate) fn parse(text: &str) -> Option<TimeUnit> {
        let named = TIME_WORDS.iter().find(|(word, _)| *word == text);
        let (_, (numerator, denominator)) = *named?;
        Some(TimeUnit { numerator, denominator })
    }

    /// `ticks` units in nanoseconds, rounded half up to whole ones; nothing beyond 2^64.
    #[inline]
    pub(crate) fn ticks_ns(self, ticks: u64) -> Option<u64> {
        let scaled = ticks.checked_mul(self.numerator)?;
        if self.denominator == 1 {
            return Some(scaled);
        }
        Some(
            scaled / self.denominator
                + u64::from(scaled % self.denominator >= self.denominator / 2),
        )
    }

    /// A number of 32 bits of units in nanoseconds, which always fits.
    #[inline]
    pub(crate) fn short_ns(self, ticks: u32) -> u64 {
        self.ticks_ns(u64::from(ticks)).unwrap_or(u64::MAX)
    }

    /// Nanoseconds of one unit, where it is whole ones.
    pub(crate) fn whole_ns(self) -> Option<u64> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// A decimal number of units in nanoseconds, rounded half up to whole ones.
    #[inline]
    pub(crate) fn decimal_ns(self, field: &[u8]) -> Option<u64> {
        decimal(field, self.numerator, self.denominator)
    }

    /// The size of a number of units without its sign, in nanoseconds.
    pub(crate) fn scaled_ns(self, number: Decimal) -> Option<u64> {
        number.scaled(self.numerator, self.denominator)
    }
}

impl ValueKind for TimeUnit {
    const KIND: &'static str = TIME_UNITS;

    fn read(value: &Value) -> Result<TimeUnit, Mismatch> {
        value.as_text().and_then(TimeUnit::parse).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        let same = |(_, ratio): &&(_, (u64, u64))| *ratio == (self.numerator, self.denominator);
        TIME_WORDS.iter().find(same).map(|(word, _)| Value::Text((*word).to_owned()))
    }

    fn words() -> Vec<&'static str> {
        TIME_WORDS.iter().map(|(word, _)| *word).collect()
    }
}

/// Bytes of a unit of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressUnit(pub u64);

impl ValueKind for AddressUnit {
    const KIND: &'static str = ADDRESS_UNITS;

    fn read(value: &Value) -> Result<AddressUnit, Mismatch> {
        let bytes = value.as_text().and_then(address_unit_bytes);
        bytes.map(AddressUnit).ok_or(Mismatch::Kind)
    }

    fn value(&self) -> Option<Value> {
        Some(Value::Text(Bytes(self.0).exact()))
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

/// The bytes of the option `block` of a format that counts in blocks. Errors: more than the bound
/// on one request.
pub(crate) fn block_bytes(options: &OpenOptions, block: Bytes) -> Result<u64, TraceError> {
    let bound = RequestBound::from_options(options);
    match bound.refuses(Op::Read, block.0) {
        true => Err(bad_option("block", &block.exact(), bound.expected())),
        false => Ok(block.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact_and_strict() {
        let ns = |unit: &str, field: &str| TimeUnit::parse(unit)?.decimal_ns(field.as_bytes());
        assert_eq!(ns("100ns", "128166465299039421"), Some(12_816_646_529_903_942_100));
        assert_eq!(ns("ps", "2499.9"), Some(2));
        assert_eq!(ns("ps", "2500.0"), Some(3));
        assert_eq!(ns("ms", "0.000001"), Some(1));
        assert_eq!(ns("s", "18446744073.709551615"), Some(u64::MAX));
        assert_eq!(ns("s", "18446744073.709551616"), None);
        assert_eq!(ns("seconds", "1"), None);
        assert_eq!(TimeUnit::parse("ps").and_then(|unit| unit.ticks_ns(2_499)), Some(2));
        assert_eq!(TimeUnit::parse("ps").and_then(|unit| unit.ticks_ns(2_500)), Some(3));
        assert_eq!(TimeUnit::parse("us").and_then(|unit| unit.ticks_ns(7)), Some(7_000));
        assert_eq!(address_unit_bytes("4KiB"), Some(4096));
        assert_eq!(address_unit_bytes("sector"), Some(512));
        for bad in ["", "1", "512", "0B", "2GiB", "block"] {
            assert_eq!(address_unit_bytes(bad), None, "`{bad}`");
        }
    }
}
