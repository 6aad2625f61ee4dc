//! Fields of a line: whole numbers, decimal times and words, read without an allocation.
//!
//! For: cutting a line at its delimiter and refusing what is no number, with the column. Must never
//! know: which column means what. Units: columns from 1; times in nanoseconds. A decimal is read
//! digit by digit, never becomes a floating-point number, and is rounded half up to a nanosecond.

use cachewright_types::Op;

/// Fields are separated by runs of blanks and tabs, not by one character.
pub(crate) const BLANKS: u8 = b' ';
/// Most digits of which every number fits 64 bits.
const SAFE_DIGITS: usize = 19;
/// One past the highest byte that a request may touch.
pub(crate) const ADDRESS_LIMIT_BYTES: u64 = 1 << 63;

/// Why a field was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldFault {
    /// 1-based column.
    pub(crate) column: u32,
    /// What would have been accepted.
    pub(crate) expected: &'static str,
}

/// The fields of one line from left to right, cut at `D` ([`BLANKS`]: at runs of blanks).
pub(crate) struct Fields<'a, const D: u8> {
    /// What follows the last field read; nothing after the last field of the line.
    rest: Option<&'a [u8]>,
    /// Column of the last field read.
    column: u32,
}

impl<'a, const D: u8> Fields<'a, D> {
    /// The fields of `line`.
    #[inline]
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Fields { rest: Some(line), column: 0 }
    }

    /// Column of the last field read.
    #[inline]
    pub(crate) fn column(&self) -> u32 {
        self.column
    }

    /// The refusal of the last field read.
    #[inline]
    pub(crate) fn fault(&self, expected: &'static str) -> FieldFault {
        FieldFault { column: self.column, expected }
    }

    /// Everything after the last field read.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.unwrap_or_default()
    }

    /// Whether another field follows.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        match self.rest {
            Some(rest) if D == BLANKS => !rest.trim_ascii_start().is_empty(),
            rest => rest.is_some(),
        }
    }

    /// The next field as it stands (white space around it removed), or nothing.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.rest?;
        if D == BLANKS {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                self.rest = None;
                return None;
            }
        }
        self.column += 1;
        match rest.iter().position(|byte| is_delimiter::<D>(*byte)) {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                Some(rest[..end].trim_ascii())
            }
            None => {
                self.rest = None;
                Some(rest.trim_ascii())
            }
        }
    }

    /// The next field, which must be there.
    #[inline]
    pub(crate) fn word(&mut self, expected: &'static str) -> Result<&'a [u8], FieldFault> {
        match self.next() {
            Some(field) => Ok(field),
            None => Err(FieldFault { column: self.column + 1, expected }),
        }
    }

    /// The next field as a whole number from 0 to 2^64 - 1.
    #[inline]
    pub(crate) fn number(&mut self, expected: &'static str) -> Result<u64, FieldFault> {
        if let Some(rest) = self.rest {
            let (value, digits) = leading_digits(rest);
            if digits.wrapping_sub(1) < SAFE_DIGITS {
                if digits == rest.len() {
                    self.rest = None;
                    self.column += 1;
                    return Ok(value);
                }
                if is_delimiter::<D>(rest[digits]) {
                    self.rest = Some(&rest[digits + 1..]);
                    self.column += 1;
                    return Ok(value);
                }
            }
        }
        self.unusual_number(expected)
    }

    /// A number with white space around it, with 20 digits, or none at all.
    #[cold]
    fn unusual_number(&mut self, expected: &'static str) -> Result<u64, FieldFault> {
        let field = self.word(expected)?;
        whole(field).ok_or_else(|| self.fault(expected))
    }

    /// The next field as a whole number of units of `unit_ns`, in nanoseconds.
    #[inline]
    pub(crate) fn ticks_ns(
        &mut self,
        unit_ns: u64,
        expected: &'static str,
    ) -> Result<u64, FieldFault> {
        let ticks = self.number(expected)?;
        ticks.checked_mul(unit_ns).ok_or_else(|| self.fault(expected))
    }

    /// The next field as a decimal number of units of `unit_ns`, rounded to whole nanoseconds.
    #[inline]
    pub(crate) fn time_ns(
        &mut self,
        unit_ns: u64,
        expected: &'static str,
    ) -> Result<u64, FieldFault> {
        let field = self.word(expected)?;
        decimal(field, unit_ns, 1).ok_or_else(|| self.fault(expected))
    }

    /// Refuses further fields.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), FieldFault> {
        if self.has_more() {
            return Err(FieldFault { column: self.column + 1, expected: "the end of the line" });
        }
        Ok(())
    }

    /// The next field as a kind of request.
    #[inline]
    pub(crate) fn op(
        &mut self,
        meaning: impl Fn(&[u8]) -> Option<Op>,
        expected: &'static str,
    ) -> Result<Op, FieldFault> {
        let field = self.word(expected)?;
        meaning(field).ok_or_else(|| self.fault(expected))
    }
}

/// Field `column` of `line`, cut at `delimiter` as [`Fields`] does; for messages.
pub(crate) fn nth_field(line: &[u8], delimiter: u8, column: u32) -> Option<&[u8]> {
    let index = column.checked_sub(1)? as usize;
    let is_end = |byte: &u8| *byte == delimiter || (delimiter == BLANKS && *byte == b'\t');
    let mut fields = line.split(is_end).map(<[u8]>::trim_ascii);
    match delimiter {
        BLANKS => fields.filter(|field| !field.is_empty()).nth(index),
        _ => fields.nth(index),
    }
}

#[inline]
fn is_delimiter<const D: u8>(byte: u8) -> bool {
    byte == D || (D == BLANKS && byte == b'\t')
}

/// The number that `bytes` begins with, and how many digits it has; meaningful up to 19 digits.
#[inline]
fn leading_digits(bytes: &[u8]) -> (u64, usize) {
    let mut value = 0_u64;
    let mut count = 0;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        count += 1;
    }
    (value, count)
}

/// `field` as a whole number that fits 64 bits.
#[inline]
pub(crate) fn whole(field: &[u8]) -> Option<u64> {
    let (value, digits) = leading_digits(field);
    if digits == field.len() && digits.wrapping_sub(1) < SAFE_DIGITS {
        return Some(value);
    }
    let all_digits = !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let digits = all_digits.then(|| std::str::from_utf8(field).ok())??;
    digits.parse().ok()
}

/// `field` times `numerator / denominator`, rounded half up to a whole number. `field` is a decimal
/// number without sign or exponent. Nothing if the result does not fit 64 bits. Digits beyond the
/// 18th after the point are not looked at.
#[inline]
pub(crate) fn decimal(field: &[u8], numerator: u64, denominator: u64) -> Option<u64> {
    const POWERS: [u64; 19] = {
        let mut powers = [1_u64; 19];
        let mut index = 1;
        while index < powers.len() {
            powers[index] = powers[index - 1] * 10;
            index += 1;
        }
        powers
    };
    let point = field.iter().position(|byte| *byte == b'.').unwrap_or(field.len());
    let integer = whole(&field[..point])?;
    let fraction = field.get(point + 1..).unwrap_or_default();
    let (part, digits) = leading_digits(&fraction[..fraction.len().min(18)]);
    if digits < fraction.len() && !fraction[digits..].iter().all(u8::is_ascii_digit) {
        return None;
    }
    if denominator == 1 && numerator <= 1_000_000_000 && digits <= 9 {
        let rounded = (part * numerator + POWERS[digits] / 2) / POWERS[digits];
        return integer.checked_mul(numerator)?.checked_add(rounded);
    }
    let scale = u128::from(POWERS[digits]);
    let digits_value = u128::from(integer) * scale + u128::from(part);
    let value = digits_value.checked_mul(u128::from(numerator))?;
    let divisor = scale * u128::from(denominator);
    u64::try_from(value.checked_add(divisor / 2)? / divisor).ok()
}

/// Column messages that several formats share.
pub(crate) mod expected {
    pub(crate) const OFFSET_BYTES: &str = "an offset in bytes, a whole number from 0";
    pub(crate) const LENGTH_BYTES: &str = "a length in bytes, a whole number from 0";
    pub(crate) const OFFSET_SECTORS: &str = "an offset in sectors of 512 B, a whole number from 0";
    pub(crate) const LENGTH_SECTORS: &str = "a length in sectors of 512 B, a whole number from 0";
    pub(crate) const SECONDS: &str = "seconds, a decimal number from 0 below 2^64 nanoseconds";
    pub(crate) const MICROSECONDS: &str = "microseconds, a whole number below 2^64 nanoseconds";
}

/// Bytes in the unit of most block traces.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a microsecond.
pub(crate) const MICROSECOND_NS: u64 = 1_000;

/// Where a format keeps offset and length, and their units.
pub(crate) struct Extent {
    /// Column of the offset.
    pub(crate) offset_column: u32,
    /// Bytes per unit of the offset.
    pub(crate) offset_unit: u64,
    /// Column of the length.
    pub(crate) length_column: u32,
    /// Bytes per unit of the length.
    pub(crate) length_unit: u64,
}

impl Extent {
    /// Offset and length in bytes, checked: below 2^63, and not empty unless a flush, which has
    /// neither.
    #[inline]
    pub(crate) fn bytes(&self, op: Op, offset: u64, length: u64) -> Result<(u64, u64), FieldFault> {
        if op == Op::Flush {
            return Ok((0, 0));
        }
        let offset = offset.checked_mul(self.offset_unit);
        let length = length.checked_mul(self.length_unit);
        let (Some(offset), Some(length)) = (offset, length) else {
            let column = if offset.is_none() { self.offset_column } else { self.length_column };
            return Err(FieldFault { column, expected: "less than 2^63 bytes" });
        };
        if length == 0 {
            return Err(FieldFault { column: self.length_column, expected: above_zero(op) });
        }
        if offset >= ADDRESS_LIMIT_BYTES || length > ADDRESS_LIMIT_BYTES - offset {
            let expected = "a request that ends below 2^63 bytes";
            return Err(FieldFault { column: self.offset_column, expected });
        }
        Ok((offset, length))
    }
}

fn above_zero(op: Op) -> &'static str {
    match op {
        Op::Write => "a length above 0 (this is a zero-length write)",
        Op::Trim => "a length above 0 (this is a zero-length trim)",
        Op::Read | Op::Flush => "a length above 0 (this is a zero-length read)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_whole_and_fit_64_bits() {
        for (text, value) in [("0", Some(0)), ("18446744073709551615", Some(u64::MAX))] {
            assert_eq!(whole(text.as_bytes()), value);
        }
        for bad in ["", "-1", "+1", "1.0", "0x10", "18446744073709551616", "1e3", "１"] {
            assert_eq!(whole(bad.as_bytes()), None, "`{bad}`");
        }
        assert_eq!(whole(b"00000000000000000000042"), Some(42), "leading zeros are no overflow");
    }

    #[test]
    fn decimal_times_are_exact() {
        let seconds = |text: &str| decimal(text.as_bytes(), 1_000_000_000, 1);
        assert_eq!(seconds("1456095145.133076001"), Some(1_456_095_145_133_076_001));
        assert_eq!(seconds("0.026214"), Some(26_214_000));
        assert_eq!(seconds("7"), Some(7_000_000_000));
        assert_eq!(seconds("7."), Some(7_000_000_000));
        assert_eq!(seconds("0.9999999999999999999999"), Some(1_000_000_000), "rounded");
        assert_eq!(seconds("0.0000000014999999999999"), Some(1));
        assert_eq!(seconds("0.0000000015"), Some(2), "half up");
        assert_eq!(seconds("18446744073.7095516154"), Some(u64::MAX));
        assert_eq!(seconds("18446744073.7095516155"), None, "rounds to 2^64");
        assert_eq!(decimal(b"1.5", 1, 1), Some(2), "nanoseconds");
        assert_eq!(decimal(b"35.081", 1_000, 1), Some(35_081), "microseconds");
        assert_eq!(decimal(b"1499", 1, 1_000), Some(1), "picoseconds");
        assert_eq!(decimal(b"1500", 1, 1_000), Some(2));
        assert_eq!(decimal(b"1.5", 3_600_000_000_000, 1), Some(5_400_000_000_000), "hours");
        for bad in ["", ".", ".5", "-1", "1..2", "1.2.3", "1.x", "nan", "18446744074", "1e9"] {
            assert_eq!(seconds(bad), None, "`{bad}`");
        }
    }

    #[test]
    fn missing_fields_are_counted_where_they_should_be() {
        let mut fields = Fields::<b','>::new(b"1, 2 ");
        assert_eq!(fields.number("a"), Ok(1));
        assert_eq!(fields.number("b"), Ok(2));
        assert!(!fields.has_more());
        assert_eq!(fields.number("c"), Err(FieldFault { column: 3, expected: "c" }));
        let mut fields = Fields::<BLANKS>::new(b"  1 \t 2 ");
        assert_eq!(fields.number("a"), Ok(1));
        assert_eq!(fields.number("b"), Ok(2));
        assert!(!fields.has_more());
        assert_eq!(fields.number("c"), Err(FieldFault { column: 3, expected: "c" }));
    }

    #[test]
    fn requests_end_below_two_to_the_63() {
        let sectors =
            Extent { offset_column: 2, offset_unit: 512, length_column: 3, length_unit: 512 };
        assert_eq!(sectors.bytes(Op::Read, 8, 1), Ok((4096, 512)));
        assert_eq!(sectors.bytes(Op::Flush, 8, 1), Ok((0, 0)));
        let column = |op, offset, length| sectors.bytes(op, offset, length).map_err(|f| f.column);
        assert_eq!(column(Op::Read, 1 << 55, 1), Err(2), "offset overflows");
        assert_eq!(column(Op::Read, 0, 1 << 55), Err(3), "length overflows");
        assert_eq!(column(Op::Write, (1 << 54) - 1, 1), Ok(((1 << 63) - 512, 512)));
        assert_eq!(column(Op::Write, (1 << 54) - 1, 2), Err(2), "the end does not fit");
        assert_eq!(column(Op::Trim, 0, 0), Err(3), "zero length");
    }

    proptest::proptest! {
        /// A slow model: the digits without the point as one integer, scaled by 128-bit integers.
        #[test]
        fn decimals_agree_with_big_integers(
            integer in 0_u64..10_000_000_000, fraction in "[0-9]{0,15}", unit in 0_usize..5
        ) {
            let (numerator, denominator) =
                [(1_u64, 1_000_u64), (1, 1), (100, 1), (1_000, 1), (1_000_000_000, 1)][unit];
            let digits: u128 = format!("{integer}{fraction}").parse().expect("digits");
            let scale = 10_u128.pow(fraction.len() as u32) * u128::from(denominator);
            let doubled = 2 * digits * u128::from(numerator) + scale;
            let expected = u64::try_from(doubled / (2 * scale)).ok();
            let field = format!("{integer}.{fraction}");
            proptest::prop_assert_eq!(decimal(field.as_bytes(), numerator, denominator), expected);
        }
    }
}
