//! Fields of a line: whole numbers, decimal times and words, read without an allocation.
//!
//! Units: columns from 1; times in nanoseconds. A decimal is read digit by digit, never becomes a
//! floating-point number, and is rounded half up to a nanosecond. Numbers may be as other programs
//! print them: `8192.0` and `1e+05` are whole.

use crate::clock::Clock;
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

    /// The next field as a time of `clock`, in nanoseconds. Fast for whole numbers.
    #[inline]
    pub(crate) fn ticks(&mut self, clock: &Clock) -> Result<u64, FieldFault> {
        if let Some(rest) = self.rest {
            let (value, digits) = leading_digits(rest);
            let ends = rest.get(digits).is_none_or(|byte| is_delimiter::<D>(*byte));
            if ends
                && digits.wrapping_sub(1) < SAFE_DIGITS
                && let Some(time_ns) = clock.ticks_ns(value)
            {
                self.rest = rest.get(digits + 1..);
                self.column += 1;
                return Ok(time_ns);
            }
        }
        self.unusual_ticks(clock)
    }

    /// A time that is no whole number.
    #[cold]
    #[inline(never)]
    fn unusual_ticks(&mut self, clock: &Clock) -> Result<u64, FieldFault> {
        self.time(clock)
    }

    /// The same, fast for decimal numbers.
    #[inline]
    pub(crate) fn time(&mut self, clock: &Clock) -> Result<u64, FieldFault> {
        let field = self.word(clock.expected())?;
        clock.ns(field).map_err(|expected| self.fault(expected))
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

/// The words of a line from right to left, for columns behind one that may hold blanks.
#[derive(Clone, Copy)]
pub(crate) struct FromRight<'a> {
    rest: &'a [u8],
    /// Columns of the line before the words.
    before: u32,
}

impl<'a> FromRight<'a> {
    /// The words of `rest`, before which a line has `before` columns.
    #[inline]
    pub(crate) fn new(rest: &'a [u8], before: u32) -> FromRight<'a> {
        FromRight { rest, before }
    }

    /// The last word that is left, empty when there is none.
    #[inline]
    pub(crate) fn word(&mut self) -> &'a [u8] {
        self.rest = self.rest.trim_ascii_end();
        let start =
            self.rest.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
        let (rest, word) = self.rest.split_at(start);
        self.rest = rest;
        word
    }

    /// Passes over words that `fits`; returns how many.
    #[inline]
    pub(crate) fn skip_while(&mut self, fits: impl Fn(&[u8]) -> bool) -> usize {
        let mut count = 0;
        loop {
            let mut ahead = *self;
            let word = ahead.word();
            if word.is_empty() || !fits(word) {
                return count;
            }
            *self = ahead;
            count += 1;
        }
    }

    /// Column of the word read last.
    #[cold]
    pub(crate) fn column(&self) -> u32 {
        let words = self.rest.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        u32::try_from(words.count() + 1).unwrap_or(u32::MAX).saturating_add(self.before)
    }

    /// The refusal of the word read last.
    #[cold]
    pub(crate) fn fault(&self, expected: &'static str) -> FieldFault {
        FieldFault { column: self.column(), expected }
    }

    /// The last word that is left as a whole number from 0 to 2^64 - 1.
    #[inline]
    pub(crate) fn number(&mut self, expected: &'static str) -> Result<u64, FieldFault> {
        whole(self.word()).ok_or_else(|| self.fault(expected))
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

/// How many fields `line` has, at most `max`.
pub(crate) fn count_fields(line: &[u8], delimiter: u8, max: usize) -> usize {
    let is_end = |byte: &u8| *byte == delimiter || (delimiter == BLANKS && *byte == b'\t');
    let is_field = |field: &&[u8]| delimiter != BLANKS || !field.trim_ascii().is_empty();
    line.split(is_end).filter(is_field).take(max).count()
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

/// `field` as a whole number that fits 64 bits. It may be written as a decimal (`8192.0`) or with
/// an exponent (`1e+05`), but has no fraction.
#[inline]
pub(crate) fn whole(field: &[u8]) -> Option<u64> {
    let (value, digits) = leading_digits(field);
    if digits == field.len() && digits.wrapping_sub(1) < SAFE_DIGITS {
        return Some(value);
    }
    unusual_whole(field)
}

/// A whole number, decimal or hexadecimal with `0x`.
#[inline]
pub(crate) fn hexadecimal_or_whole(field: &[u8]) -> Option<u64> {
    let digits = match field {
        [b'0', b'x' | b'X', digits @ ..] => digits,
        _ => return whole(field),
    };
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = all_digits.then(|| std::str::from_utf8(digits).ok())??;
    u64::from_str_radix(digits, 16).ok()
}

/// `major,minor` as one number, of which the lower half is the minor.
#[inline]
pub(crate) fn device_number(word: &[u8]) -> Option<u64> {
    let comma = word.iter().position(|byte| *byte == b',')?;
    let (major, minor) = (whole(&word[..comma])?, whole(&word[comma + 1..])?);
    (major >> 32 == 0 && minor >> 32 == 0).then_some(major << 32 | minor)
}

#[cold]
fn unusual_whole(field: &[u8]) -> Option<u64> {
    Decimal::parse(field)?.whole()
}

/// A decimal number as it is written: `digits` times ten to the power of `exponent`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decimal {
    pub(crate) is_negative: bool,
    digits: u128,
    exponent: i32,
    /// Digits other than 0 lie beyond those kept.
    is_cut: bool,
}

impl Decimal {
    /// Digits kept: more than any boundary between two nanoseconds has.
    const KEPT: u128 = 10_u128.pow(24);

    /// Reads `-12.50e+03`: a sign if negative, digits with a point anywhere, an exponent.
    pub(crate) fn parse(field: &[u8]) -> Option<Decimal> {
        let (is_negative, unsigned) = match field {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, field),
        };
        let end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (mantissa, exponent) = match end {
            Some(end) => (&unsigned[..end], exponent(&unsigned[end + 1..])?),
            None => (unsigned, 0),
        };
        let mut number = Decimal { is_negative, digits: 0, exponent, is_cut: false };
        let (mut seen_digit, mut seen_point) = (false, false);
        for byte in mantissa {
            match byte {
                b'0'..=b'9' => {
                    seen_digit = true;
                    number.push(byte - b'0', seen_point);
                }
                b'.' if !seen_point => seen_point = true,
                _ => return None,
            }
        }
        seen_digit.then_some(number)
    }

    fn push(&mut self, digit: u8, is_fraction: bool) {
        let is_kept = self.digits < Self::KEPT;
        if is_kept {
            self.digits = self.digits * 10 + u128::from(digit);
        } else {
            self.is_cut |= digit != 0;
        }
        // A digit that is not kept makes those before it count ten times as much.
        self.exponent += i32::from(!is_kept) - i32::from(is_fraction);
    }

    /// Whether it has no fraction other than zero.
    pub(crate) fn is_whole(self) -> bool {
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let is_multiple = power.is_some_and(|power| self.digits.is_multiple_of(power));
        !self.is_cut && (self.digits == 0 || self.exponent >= 0 || is_multiple)
    }

    /// The number if it is whole, from 0 on and fits 64 bits.
    fn whole(self) -> Option<u64> {
        if self.is_negative || !self.is_whole() {
            return None;
        }
        if self.digits == 0 {
            return Some(0);
        }
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let value = match self.exponent >= 0 {
            true => self.digits.checked_mul(power?)?,
            false => self.digits / power?,
        };
        u64::try_from(value).ok()
    }

    /// Its size without the sign times `numerator / denominator`, rounded half up; nothing beyond
    /// 2^64.
    pub(crate) fn scaled(self, numerator: u64, denominator: u64) -> Option<u64> {
        let value = self.digits.checked_mul(u128::from(numerator))?;
        let power = 10_u128.checked_pow(self.exponent.unsigned_abs());
        let (value, divisor) = match (self.exponent >= 0, power) {
            (true, Some(power)) => (value.checked_mul(power)?, u128::from(denominator)),
            (true, None) => return (value == 0).then_some(0),
            (false, Some(power)) => match power.checked_mul(u128::from(denominator)) {
                Some(divisor) => (value, divisor),
                None => return Some(0),
            },
            (false, None) => return Some(0),
        };
        u64::try_from(value.checked_add(divisor / 2)? / divisor).ok()
    }
}

/// A whole exponent with or without sign.
fn exponent(field: &[u8]) -> Option<i32> {
    let (sign, digits) = match field {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, field),
    };
    let (value, count) = leading_digits(digits);
    // Four digits are beyond any number that fits 64 bits.
    let is_known = (1..=4).contains(&count) && count == digits.len();
    is_known.then(|| i32::try_from(value).ok()).flatten().map(|value| sign * value)
}

/// `field` times `numerator / denominator`, rounded half up to a whole number. `field` is a decimal
/// number without sign. Nothing if the result does not fit 64 bits. Digits beyond the 18th after
/// the point are not looked at.
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
    let (integer, integer_digits) = leading_digits(&field[..point]);
    let fraction = field.get(point + 1..).unwrap_or_default();
    let (part, digits) = leading_digits(&fraction[..fraction.len().min(18)]);
    if integer_digits != point
        || integer_digits.wrapping_sub(1) >= SAFE_DIGITS
        || (digits < fraction.len() && !fraction[digits..].iter().all(u8::is_ascii_digit))
    {
        return unusual_decimal(field, numerator, denominator);
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

/// A decimal with an exponent, with no digit before the point or with 20 of them.
#[cold]
fn unusual_decimal(field: &[u8], numerator: u64, denominator: u64) -> Option<u64> {
    let number = Decimal::parse(field)?;
    if number.is_negative { None } else { number.scaled(numerator, denominator) }
}

/// Column messages that several formats share.
pub(crate) mod expected {
    pub(crate) const OFFSET_BYTES: &str = "an offset in bytes, a whole number from 0";
    pub(crate) const LENGTH_BYTES: &str = "a length in bytes, a whole number from 0";
    pub(crate) const OFFSET_SECTORS: &str = "an offset in sectors of 512 B, a whole number from 0";
    pub(crate) const LENGTH_SECTORS: &str = "a length in sectors of 512 B, a whole number from 0";
    pub(crate) const SECONDS: &str = "seconds, a decimal number from 0 below 2^64 nanoseconds";
    pub(crate) const MILLISECONDS: &str =
        "milliseconds, a decimal number from 0 below 2^64 nanoseconds";
    pub(crate) const MICROSECONDS: &str =
        "microseconds, a decimal number from 0 below 2^64 nanoseconds";
}

/// Bytes in the unit of most block traces.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Where a format keeps offset and length, and their units.
#[derive(Clone, Copy, Debug)]
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
        for bad in ["", "-1", "+1", "0x10", "18446744073709551616", "１", ".", "e3", "1e", "1.0.0"]
        {
            assert_eq!(whole(bad.as_bytes()), None, "`{bad}`");
        }
        assert_eq!(whole(b"00000000000000000000042"), Some(42), "leading zeros are no overflow");
    }

    #[test]
    fn whole_numbers_may_be_written_as_decimals() {
        for (text, value) in [
            ("8192.0", 8192),
            ("8192.", 8192),
            ("1e3", 1_000),
            ("1e+05", 100_000),
            ("8.192E3", 8192),
            ("81920e-1", 8192),
            ("0e9999", 0),
            ("18446744073709551615.000", u64::MAX),
            ("1.8446744073709551615e19", u64::MAX),
            ("000000000000000000000000000000042.0", 42),
        ] {
            assert_eq!(whole(text.as_bytes()), Some(value), "`{text}`");
        }
        for bad in
            ["8192.5", "1e-1", "1.5e0", "1e20", "1e9999", "-8192.0", "-0", "1e99999", "0.1e0"]
        {
            assert_eq!(whole(bad.as_bytes()), None, "`{bad}`");
        }
        let tiny = format!("1.{}1", "0".repeat(40));
        assert_eq!(whole(tiny.as_bytes()), None, "a fraction beyond the digits that are kept");
    }

    #[test]
    fn exponents_and_signs_are_exact() {
        let seconds = |text: &str| Decimal::parse(text.as_bytes())?.scaled(1_000_000_000, 1);
        assert_eq!(seconds("2.6214e-05"), Some(26_214));
        assert_eq!(seconds("1.5E+1"), Some(15_000_000_000));
        assert_eq!(seconds("1e-9"), Some(1));
        assert_eq!(seconds("4.9e-10"), Some(0));
        assert_eq!(seconds("5e-10"), Some(1), "half up");
        assert_eq!(seconds("1e-9999"), Some(0));
        assert_eq!(seconds("1e9999"), None);
        assert_eq!(seconds("-2.5"), Some(2_500_000_000), "the size");
        assert_eq!(seconds(".5"), Some(500_000_000));
        assert_eq!(seconds("1845e7"), None, "beyond 2^64");
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
        for bad in ["", ".", "-1", "1..2", "1.2.3", "1.x", "nan", "18446744074"] {
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
            let shifted = format!("{integer}{fraction}e-{}", fraction.len());
            let parsed = Decimal::parse(shifted.as_bytes()).expect("is a number");
            proptest::prop_assert_eq!(parsed.scaled(numerator, denominator), expected);
        }
    }
}
