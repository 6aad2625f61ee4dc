//! Dates as times: ISO 8601, as blkparse and Windows print them.
//!
//! Units: nanoseconds since 1970, UTC where no zone is named; a time of day alone counts from
//! midnight. Accepted are `2025-03-04`, `2025-03-04 10:00:00.5`, the same with `T`, `/` between
//! year, month and day, a comma before the fraction, and `Z`, ` UTC`, `+02:00`, `+0200` or `+02`
//! behind it; `10:00:00.5` (blkparse's `%z`); and Windows' `3/4/2025 10:00:00.5 PM`, the month
//! first.

const SECOND_NS: i128 = 1_000_000_000;
const DAY_NS: i128 = 86_400 * SECOND_NS;

/// The date in `field`, in nanoseconds since 1970; nothing for anything else.
pub(crate) fn date_ns(field: &[u8]) -> Option<i128> {
    let mut text = Cursor { rest: field };
    let first = text.digits(1..=4)?;
    match text.take_any(b"-/:")? {
        between @ (b'-' | b'/') if first.is_year => {
            let month = text.number(1..=2)?;
            text.skip(between)?;
            let day = text.number(1..=2)?;
            text.moment(days(first.value, month, day)?)
        }
        b'/' => {
            let day = text.number(1..=2)?;
            text.skip(b'/')?;
            let year = text.digits(4..=4)?;
            text.moment(days(year.value, first.value, day)?)
        }
        b':' if !first.is_year => {
            text.rest = field;
            let of_day = text.time_of_day()?;
            text.rest.is_empty().then_some(of_day)
        }
        _ => None,
    }
}

/// A run of digits.
struct Digits {
    value: i128,
    /// Four of them.
    is_year: bool,
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn digits(&mut self, counts: std::ops::RangeInclusive<usize>) -> Option<Digits> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !counts.contains(&count) {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let value = digits.iter().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        Some(Digits { value, is_year: count == 4 })
    }

    fn number(&mut self, counts: std::ops::RangeInclusive<usize>) -> Option<i128> {
        self.digits(counts).map(|digits| digits.value)
    }

    fn take_any(&mut self, choices: &[u8]) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        if !choices.contains(first) {
            return None;
        }
        self.rest = rest;
        Some(*first)
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.take_any(&[byte]).map(|_| ())
    }

    /// What follows a day: nothing, or a time of day with or without a zone.
    fn moment(&mut self, days: i128) -> Option<i128> {
        let midnight = days * DAY_NS;
        if self.rest.is_empty() {
            return Some(midnight);
        }
        // blktrace's own names of folders have a `-` here.
        self.take_any(b" Tt-")?;
        self.rest = self.rest.trim_ascii_start();
        let of_day = self.time_of_day()?;
        let of_day = match self.rest.trim_ascii() {
            b"AM" | b"am" => half_day(of_day, 0)?,
            b"PM" | b"pm" => half_day(of_day, 12)?,
            zone => of_day - zone_ns(zone)?,
        };
        Some(midnight + of_day)
    }

    /// `10:00`, `10:00:00`, `10:00:00.5`.
    fn time_of_day(&mut self) -> Option<i128> {
        let hour = self.number(1..=2).filter(|hour| *hour <= 24)?;
        self.skip(b':')?;
        let minute = self.number(2..=2).filter(|minute| *minute < 60)?;
        if self.take_any(b":").is_none() {
            return Some((hour * 60 + minute) * 60 * SECOND_NS);
        }
        // 60 is a leap second.
        let second = self.number(2..=2).filter(|second| *second <= 60)?;
        let whole = ((hour * 60 + minute) * 60 + second) * SECOND_NS;
        if self.take_any(b".,").is_none() {
            return Some(whole);
        }
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        let (known, beyond) = digits.split_at(count.min(9));
        let part = known.iter().fold(0, |sum, digit| sum * 10 + i128::from(digit - b'0'));
        let part = (known.len()..9).fold(part, |part, _| part * 10);
        let is_half = beyond.first().is_some_and(|digit| *digit >= b'5');
        (count > 0).then_some(whole + part + i128::from(is_half))
    }
}

/// A time of a clock with twelve hours, of which `from` is the first.
fn half_day(of_day: i128, from: i128) -> Option<i128> {
    let hour_ns = 3_600 * SECOND_NS;
    let hour = of_day / hour_ns;
    (1..=12).contains(&hour).then(|| (hour % 12 + from) * hour_ns + of_day % hour_ns)
}

/// What a zone is ahead of UTC.
fn zone_ns(zone: &[u8]) -> Option<i128> {
    let (sign, digits) = match zone {
        b"" | b"Z" | b"z" | b"UTC" | b"GMT" => return Some(0),
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let two = |pair: &[u8]| match pair {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i128::from(tens - b'0') * 10 + i128::from(ones - b'0'))
        }
        _ => None,
    };
    let (hours, minutes) = match digits {
        [hours @ .., b':', tens, ones] => (two(hours)?, two(&[*tens, *ones])?),
        [_, _] => (two(digits)?, 0),
        [_, _, _, _] => (two(&digits[..2])?, two(&digits[2..])?),
        _ => return None,
    };
    let is_zone = hours <= 18 && minutes < 60;
    is_zone.then_some(sign * (hours * 60 + minutes) * 60 * SECOND_NS)
}

/// Days since 1970 of a date of the Gregorian calendar; nothing for one that is none.
fn days(year: i128, month: i128, day: i128) -> Option<i128> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let longest = match month {
        2 => 28 + i128::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=longest).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day is the last of its year.
    let year = year - i128::from(month <= 2);
    let month = (month + 9) % 12;
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: i128 = 1_741_082_400 * SECOND_NS;

    #[test]
    fn dates_are_nanoseconds_since_1970() {
        for (text, expected) in [
            ("2025-03-04 10:00:00.5", TEN + 500_000_000),
            ("2025-03-04T10:00:00,5", TEN + 500_000_000),
            ("2025-03-04T10:00:00.000000001Z", TEN + 1),
            ("2025-03-04 10:00:00.0000000005", TEN + 1),
            ("2025-03-04T12:00:00+02:00", TEN),
            ("2025-03-04T12:00:00 +0200", TEN),
            ("2025-03-04 02:30:00-0730", TEN),
            ("2025/03/04 10:00", TEN),
            ("2025-03-04-10:00:00", TEN),
            ("3/4/2025 10:00:00.000 AM", TEN),
            ("03/04/2025 10:00:00 PM", TEN + 12 * 3_600 * SECOND_NS),
            ("03/04/2025 12:00:00 AM", TEN - 10 * 3_600 * SECOND_NS),
            ("2025-03-04 10:00:00 UTC", TEN),
            ("1970-01-01", 0),
            ("1969-12-31 23:59:59", -SECOND_NS),
            ("2000-02-29", 951_782_400 * SECOND_NS),
            ("10:00:00.25", 36_000 * SECOND_NS + 250_000_000),
            ("0:00:01", SECOND_NS),
        ] {
            assert_eq!(date_ns(text.as_bytes()), Some(expected), "`{text}`");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2025",
            "2025-13-01",
            "2025-02-29",
            "2025-03-04x",
            "2025-03-04 25:00:00",
            "2025-03-04 10:60:00",
            "2025-03-04 10:00:00.",
            "2025-03-04 10:00:00 CET",
            "13/04/2025",
            "4/3/25",
            "10:00:00 AM",
            "1:2:3",
            "99:00",
            "10:00:00+99:00",
            "20250304",
            "1.5",
            "-1",
            "2025-03-04 13:00:00 PM",
            "2025-03-04 0:00:00 AM",
            "2025--03-04",
            "2025-03-04T",
            "2025-03-04T11+01",
        ] {
            assert_eq!(date_ns(text.as_bytes()), None, "`{text}`");
        }
    }

    /// A slow calendar: one day after the other.
    #[test]
    fn days_agree_with_a_calendar_that_counts() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for count in 0..200_000 {
            assert_eq!(days(year, month, day), Some(count), "{year}-{month}-{day}");
            day += 1;
            if days(year, month, day).is_none() {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
