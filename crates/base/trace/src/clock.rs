//! The clock of a text trace: from fields to nanoseconds.
//!
//! Units: nanoseconds; dates count from 1970, and are UTC where they name no zone. A number is
//! rounded half up to a nanosecond.
//!
//! Times before zero: a trace that begins before zero is shifted as a whole, so that the earliest
//! time of its beginning becomes 0. A time before zero further on has no place then; the option
//! `time_shift` makes one.

use crate::dates;
use crate::fields::{Decimal, decimal};
use crate::units::TimeUnit;
use cachewright_types::{Nanos, declare};

declare! {
    /// Options of reading that every format with times has.
    pub struct ClockOptions {
        /// unit of times; default: that of the format
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
    }
}

/// Nanoseconds of the unit that most decimal times have.
const SECOND_NS: u64 = 1_000_000_000;
/// Where a trace's own zero is while its shift is being found: no time lies further back.
const PROBING_NS: u64 = 1 << 63;
const IN_UNIT: &str = "a time in `time_unit`, a decimal number from 0 below 2^64 nanoseconds";
const WHOLE: &str =
    "a whole number of nanoseconds (with a fraction, name the unit: `time_unit=ms`)";
const DATE: &str = "a date such as `2025-03-04 10:00:00.5`, as in the first record";
const BEFORE_ZERO: &str = "a time from 0 on: the trace does not begin before zero, so that it is \
                           not shifted (`time_shift=1h` adds an hour to every time)";

/// How fields become nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Nothing where times are dates.
    unit: Option<TimeUnit>,
    /// Whole nanoseconds of a unit; 0 where a unit is none of them.
    tick_ns: u64,
    shift_ns: u64,
    /// What a field is refused with.
    expected: &'static str,
    /// The shift is the user's.
    is_given: bool,
    /// A fraction would be one of a nanosecond, which no clock ticks: the unit is another.
    is_whole: bool,
}

impl Clock {
    /// A clock in the unit that `given` names, else in `usual`, whose times are refused as
    /// `expected`.
    pub(crate) fn new(given: &ClockOptions, usual: TimeUnit, expected: &'static str) -> Clock {
        let expected = match given.time_unit {
            Some(unit) if unit != usual => IN_UNIT,
            _ => expected,
        };
        let unit = Some(given.time_unit.unwrap_or(usual));
        let tick_ns = unit.and_then(TimeUnit::whole_ns).unwrap_or(0);
        let is_whole = given.time_unit.is_none() && usual == TimeUnit::NANOSECOND;
        Clock { unit, tick_ns, expected, is_whole, ..Clock::dates(given) }
    }

    /// A clock of dates, which refuses numbers.
    pub(crate) fn dates(given: &ClockOptions) -> Clock {
        let shift_ns = given.time_shift.map_or(0, |shift| shift.0);
        let is_given = given.time_shift.is_some();
        Clock { unit: None, tick_ns: 0, shift_ns, expected: DATE, is_given, is_whole: false }
    }

    /// The same clock for durations, which are not shifted.
    pub(crate) fn of_durations(self) -> Clock {
        Clock { shift_ns: 0, ..self }
    }

    /// What a field that is no time is refused with.
    #[inline]
    pub(crate) fn expected(&self) -> &'static str {
        self.expected
    }

    /// A whole number of units; nothing where [`ns`](Self::ns) must look at the field.
    #[inline]
    pub(crate) fn ticks_ns(&self, ticks: u64) -> Option<u64> {
        if self.tick_ns == 0 {
            return None;
        }
        ticks.checked_mul(self.tick_ns)?.checked_add(self.shift_ns)
    }

    /// A field as nanoseconds. Errors: what is no time, or lies beyond 64 bits or before zero.
    #[inline]
    pub(crate) fn ns(&self, field: &[u8]) -> Result<u64, &'static str> {
        // Most decimal times are in seconds; a constant unit is scaled faster than any other.
        let number = match self.tick_ns {
            SECOND_NS => decimal(field, SECOND_NS, 1),
            _ if self.is_whole => None,
            _ => self.unit.and_then(|unit| unit.decimal_ns(field)),
        };
        match number.and_then(|time_ns| time_ns.checked_add(self.shift_ns)) {
            Some(time_ns) => Ok(time_ns),
            None => self.unusual_ns(field),
        }
    }

    /// A time before zero, or a date.
    #[cold]
    fn unusual_ns(&self, field: &[u8]) -> Result<u64, &'static str> {
        if let (Some(unit), Some(number)) = (self.unit, Decimal::parse(field)) {
            if self.is_whole && !number.is_whole() {
                return Err(WHOLE);
            }
            let size_ns = unit.scaled_ns(number).ok_or(self.expected)?;
            return match number.is_negative {
                false => size_ns.checked_add(self.shift_ns).ok_or(self.expected),
                true => self.shift_ns.checked_sub(size_ns).ok_or(BEFORE_ZERO),
            };
        }
        let time_ns = dates::date_ns(field).ok_or(self.expected)? + i128::from(self.shift_ns);
        u64::try_from(time_ns).map_err(|_| if time_ns < 0 { BEFORE_ZERO } else { self.expected })
    }

    /// This clock with its zero far back, to find out where the trace begins.
    pub(crate) fn probing(self) -> Clock {
        Clock { shift_ns: PROBING_NS, ..self }
    }

    /// Whether the user said where zero is.
    pub(crate) fn is_placed(&self) -> bool {
        self.is_given
    }

    /// Shifts the clock so that the earliest of times read by a [`probing`](Self::probing) one
    /// becomes zero, if it lies before zero.
    pub(crate) fn place(&mut self, earliest_ns: u64) {
        self.shift_ns = PROBING_NS.saturating_sub(earliest_ns);
    }

    /// Nanoseconds that [`place`](Self::place) adds to all times.
    pub(crate) fn found_shift_ns(&self) -> u64 {
        if self.is_given { 0 } else { self.shift_ns }
    }
}

/// Whether `field` is a date that is no number.
pub(crate) fn is_date(field: &[u8]) -> bool {
    dates::date_ns(field).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(unit: &str) -> Clock {
        let given = ClockOptions { time_unit: TimeUnit::parse(unit), time_shift: None };
        Clock::new(&given, TimeUnit::MICROSECOND, "a time")
    }

    #[test]
    fn fractions_of_any_unit_are_exact() {
        assert_eq!(clock("ms").ns(b"13.191135"), Ok(13_191_135));
        assert_eq!(clock("us").ns(b"2.6214e-05"), Ok(0));
        assert_eq!(clock("s").ns(b"2.6214e-05"), Ok(26_214));
        assert_eq!(clock("100ns").ns(b"128166465299039421"), Ok(12_816_646_529_903_942_100));
        assert_eq!(clock("100ns").ns(b"0.01"), Ok(1));
        assert_eq!((clock("ps").ticks_ns(2_500), clock("ps").ns(b"2500")), (None, Ok(3)));
        assert_eq!(clock("us").ns(b"x"), Err("a time"));
        assert_eq!(clock("ms").ns(b"x"), Err(IN_UNIT), "not in the usual unit");
    }

    #[test]
    fn dates_and_times_before_zero_have_a_place() {
        assert_eq!(clock("us").ns(b"1970-01-01 00:00:01.5"), Ok(1_500_000_000));
        assert_eq!(clock("us").ns(b"-1"), Err(BEFORE_ZERO));
        assert_eq!(clock("us").ns(b"1969-12-31"), Err(BEFORE_ZERO));
        let dates = Clock::dates(&ClockOptions::default());
        assert_eq!((dates.ns(b"1970-01-02"), dates.ns(b"7")), (Ok(86_400_000_000_000), Err(DATE)));
        let probing = clock("us").probing();
        let mut placed = clock("us");
        placed.place(probing.ns(b"-2000.5").expect("far back"));
        assert_eq!(placed.ns(b"-2000.5"), Ok(0));
        assert_eq!(placed.ns(b"-1e3"), Ok(1_000_500));
        assert_eq!(placed.ns(b"3"), Ok(2_003_500));
        assert_eq!(placed.ticks_ns(3), Some(2_003_500));
        assert_eq!(placed.ns(b"-2001"), Err(BEFORE_ZERO));
        assert_eq!(placed.found_shift_ns(), 2_000_500);
        placed.place(PROBING_NS + 7);
        assert_eq!(
            (placed.ns(b"3"), placed.found_shift_ns()),
            (Ok(3_000), 0),
            "nothing is before zero"
        );
    }

    #[test]
    fn the_user_may_shift_times() {
        let nanoseconds = Clock::new(&ClockOptions::default(), TimeUnit::NANOSECOND, "a time");
        assert_eq!((nanoseconds.ns(b"7.0"), nanoseconds.ns(b"7.5")), (Ok(7), Err(WHOLE)));
        assert_eq!(clock("ns").ns(b"7.5"), Ok(8), "the unit is named");
        let given = ClockOptions { time_unit: None, time_shift: Some(Nanos(5_000)) };
        let clock = Clock::new(&given, TimeUnit::MICROSECOND, "a time");
        assert_eq!((clock.ns(b"-5"), clock.ns(b"1")), (Ok(0), Ok(6_000)));
        assert_eq!((clock.is_placed(), clock.found_shift_ns()), (true, 0));
    }
}
