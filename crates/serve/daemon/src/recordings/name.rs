//! Names of recordings: the times when they began.
//!
//! For: recordings that are found, put in order and removed by their names alone. Must never know:
//! what is in one. Units: milliseconds since 1970 UTC, without leap seconds. A name is
//! `2026-11-25T21-17-15.123Z.parquet`, so that names sort as times do. Days are counted from
//! 1 March, so that a leap day is the last of its year (proleptic Gregorian calendar).

use std::fmt;

const MS_PER_DAY: u64 = 86_400_000;
/// Days of 400 years, and from 1 March of the year 0 to 1 January 1970.
const ERA_DAYS: u64 = 146_097;
const DAYS_BEFORE: u64 = 719_468;
/// The first time that has no such name: the year 10000.
const END_MS: u64 = 253_402_300_800_000;
const SUFFIX: &str = "Z.parquet";

/// When a recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordingName(u64);

impl RecordingName {
    /// The name of a recording that begins then; times after the year 9999 are its last.
    pub fn at_ms(unix_ms: u64) -> RecordingName {
        RecordingName(unix_ms.min(END_MS - 1))
    }

    /// When the recording began.
    pub fn unix_ms(self) -> u64 {
        self.0
    }

    /// The recording of a file of this name, if it is one.
    pub fn parse(name: &str) -> Option<RecordingName> {
        let numbers = name.strip_suffix(SUFFIX)?.split(['-', 'T', '.']);
        let numbers: Vec<u64> = numbers.map(|text| text.parse().ok()).collect::<Option<_>>()?;
        let [year, month, day, hour, minute, second, ms] = numbers[..] else { return None };
        let is_date = year < 10_000 && (1..=12).contains(&month) && (1..=31).contains(&day);
        let days = is_date
            .then(|| days(year, month, day))
            .and_then(|days| days.checked_sub(DAYS_BEFORE))?;
        let is_time = hour < 24 && minute < 60 && second < 60 && ms < 1000;
        let found =
            RecordingName(days * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms);
        // Anything else that reads so: a 31st of February, a number with a sign or without zeroes.
        (is_time && found.to_string() == name).then_some(found)
    }
}

impl fmt::Display for RecordingName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0 / MS_PER_DAY, self.0 % MS_PER_DAY);
        let (year, month, day) = date(days + DAYS_BEFORE);
        let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        let ms = ms % 1000;
        write!(
            out,
            "{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}.{ms:03}{SUFFIX}"
        )
    }
}

/// Days from 1 March of the year 0 to a date; `month` from 1, `day` from 1.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years, and months of 153 days in five, begin in March.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1
}

/// The date so many days after 1 March of the year 0: year, month, day.
fn date(days: u64) -> (u64, u64, u64) {
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    // Of each 4 years, of each 100 and of the 400 the last day is one more.
    let year = (day - day / 1460 + day / 36_524 - day / (ERA_DAYS - 1)) / 365;
    let day = day - (year * 365 + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    (era * 400 + year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_dates_and_times_of_day() {
        let cases = [
            (0, "1970-01-01T00-00-00.000Z.parquet"),
            (951_782_400_000, "2000-02-29T00-00-00.000Z.parquet"),
            (1_764_105_435_123, "2025-11-25T21-17-15.123Z.parquet"),
            (4_107_542_399_999, "2100-02-28T23-59-59.999Z.parquet"),
            (4_107_542_400_000, "2100-03-01T00-00-00.000Z.parquet"),
            (END_MS - 1, "9999-12-31T23-59-59.999Z.parquet"),
        ];
        for (ms, name) in cases {
            assert_eq!(RecordingName::at_ms(ms).to_string(), name);
            assert_eq!(RecordingName::parse(name).map(RecordingName::unix_ms), Some(ms));
        }
        assert_eq!(RecordingName::at_ms(u64::MAX), RecordingName::at_ms(END_MS - 1));
    }

    #[test]
    fn each_day_of_four_centuries_has_a_name_of_its_own_that_is_read_back() {
        let names = (0..ERA_DAYS + 1000).map(|day| RecordingName::at_ms(day * MS_PER_DAY));
        let names: Vec<String> = names.map(|name| name.to_string()).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        for (day, name) in names.iter().enumerate() {
            assert_eq!(RecordingName::parse(name), Some(RecordingName(day as u64 * MS_PER_DAY)));
        }
    }

    #[test]
    fn other_files_are_no_recordings() {
        for name in [
            "served.parquet",
            "2025-02-30T00-00-00.000Z.parquet",
            "2025-2-03T00-00-00.000Z.parquet",
            "2025-02-03T24-00-00.000Z.parquet",
            "2025-02-03T00-00-00.000Z.parquet.divisions",
            "+025-02-03T00-00-00.000Z.parquet",
            "1969-12-31T00-00-00.000Z.parquet",
            "0000-01-01T00-00-00.000Z.parquet",
            "",
        ] {
            assert_eq!(RecordingName::parse(name), None, "{name}");
        }
    }
}
