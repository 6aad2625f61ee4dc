//! A folder of recordings of a live server: how its files are named, and which of them covers a
//! moment.
//!
//! A recording is named by when it began, in UTC. Each covers the span of time up to the next one,
//! or to its own end where the server stopped. Units: milliseconds since 1970, nanoseconds of the
//! recording's own clock, which begins at 0.

use crate::TraceError;
use cachewright_types::{Nanos, parse_duration};
use std::fmt;
use std::path::{Path, PathBuf};

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

    /// When the recording began, in milliseconds since 1970 UTC.
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

/// The recordings in a folder; none if it cannot be read.
pub fn recordings_in(folder: &Path) -> Vec<RecordingName> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| RecordingName::parse(entry.file_name().to_str()?)).collect()
}

/// What a moment is written as, for messages.
pub const MOMENTS: &str = "a time since the beginning of a recording, such as `300s`, or a time in \
                           UTC, such as `14:05`, `14:05:30` or `2026-11-25T14:05:30`";
const NS_PER_MS: u64 = 1_000_000;

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// So long after the beginning of the recording.
    After(Nanos),
    /// A time of the day, in milliseconds, on the day on which the last recording began.
    TimeOfDay(u64),
    /// Milliseconds since 1970 UTC.
    Date(u64),
}

impl Moment {
    /// The moment of a text, if it is one; see [`MOMENTS`].
    pub fn parse(text: &str) -> Option<Moment> {
        if let Some((date, time)) = text.split_once('T') {
            let name = format!("{date}T00-00-00.000{SUFFIX}");
            let day_ms = RecordingName::parse(&name)?.unix_ms();
            return Some(Moment::Date(day_ms + time_of_day_ms(time)?));
        }
        match text.contains(':') {
            true => time_of_day_ms(text).map(Moment::TimeOfDay),
            false => parse_duration(text).ok().map(Moment::After),
        }
    }
}

/// `HH:MM`, `HH:MM:SS` or `HH:MM:SS.mmm` in milliseconds.
fn time_of_day_ms(text: &str) -> Option<u64> {
    let two = |part: &str| {
        let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u64>().ok()).flatten()
    };
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (two(parts.next()?)?, two(parts.next()?)?);
    let (second, ms) = match parts.next().map(|rest| rest.split_once('.').unwrap_or((rest, ""))) {
        None => (0, 0),
        Some((second, "")) => (two(second)?, 0),
        Some((second, ms)) if ms.len() == 3 && ms.bytes().all(|byte| byte.is_ascii_digit()) => {
            (two(second)?, ms.parse().ok()?)
        }
        Some(_) => return None,
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some(((hour * 60 + minute) * 60 + second) * 1000 + ms)
}

/// The recording that covers a moment, and how long after its beginning the moment is. `path` is a
/// recording, or a folder of them. Errors: no such file or folder, a moment before the first
/// recording, a time in UTC of a recording whose name does not say when it began. A moment behind
/// the end of the last recording is not known here.
pub fn recording_at(path: &Path, moment: Moment) -> Result<(PathBuf, Nanos), TraceError> {
    let refuse = |found: String, expected: String| {
        Err(TraceError::File { path: path.to_owned(), found, expected })
    };
    let since = |at_ms: u64, begin: RecordingName| {
        Nanos(at_ms.saturating_sub(begin.unix_ms()).saturating_mul(NS_PER_MS))
    };
    if !path.is_dir() {
        let name = path.file_name().and_then(|name| RecordingName::parse(name.to_str()?));
        return match (moment, name) {
            (Moment::After(time), _) => Ok((path.to_owned(), time)),
            (Moment::Date(at_ms), Some(name)) if at_ms >= name.unix_ms() => {
                Ok((path.to_owned(), since(at_ms, name)))
            }
            (Moment::TimeOfDay(ms), Some(name)) => {
                let day_ms = name.unix_ms() / MS_PER_DAY * MS_PER_DAY;
                // A recording over midnight has the early hours of the next day.
                let at_ms = if day_ms + ms < name.unix_ms() { day_ms + MS_PER_DAY } else { day_ms };
                Ok((path.to_owned(), since(at_ms + ms, name)))
            }
            (Moment::Date(_), Some(_)) => {
                refuse("a moment before this recording".into(), "a later one".into())
            }
            (_, None) => refuse(
                "a recording whose name is no time".into(),
                "a time since its beginning, such as `@300s`".into(),
            ),
        };
    }
    let mut names = recordings_in(path);
    names.sort_unstable();
    let (Some(first), Some(last)) = (names.first().copied(), names.last().copied()) else {
        return refuse("a folder without recordings".into(), "those of a live server".into());
    };
    let at_ms = match moment {
        Moment::Date(at_ms) => at_ms,
        Moment::TimeOfDay(ms) => last.unix_ms() / MS_PER_DAY * MS_PER_DAY + ms,
        Moment::After(time) => first.unix_ms().saturating_add(time.0 / NS_PER_MS),
    };
    let before = names.partition_point(|name| name.unix_ms() <= at_ms);
    let Some(name) = before.checked_sub(1).map(|place| names[place]) else {
        let expected = format!("one from {first} on, with the day if it was another one");
        return refuse("a moment before the first recording".into(), expected);
    };
    let within = match moment {
        Moment::After(time) => {
            let before_ms = name.unix_ms() - first.unix_ms();
            Nanos(time.0.saturating_sub(before_ms * NS_PER_MS))
        }
        _ => since(at_ms, name),
    };
    Ok((path.join(name.to_string()), within))
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

    #[test]
    fn moments_are_times_since_the_beginning_or_in_utc() {
        let cases = [
            ("300s", Some(Moment::After(Nanos(300_000_000_000)))),
            ("0s", Some(Moment::After(Nanos(0)))),
            ("1.5min", Some(Moment::After(Nanos(90_000_000_000)))),
            ("14:05", Some(Moment::TimeOfDay(50_700_000))),
            ("00:00:01", Some(Moment::TimeOfDay(1_000))),
            ("23:59:59.999", Some(Moment::TimeOfDay(MS_PER_DAY - 1))),
            ("1970-01-02T00:00:01", Some(Moment::Date(MS_PER_DAY + 1_000))),
            ("2025-11-25T21:17:15.123", Some(Moment::Date(1_764_105_435_123))),
        ];
        for (text, expected) in cases {
            assert_eq!(Moment::parse(text), expected, "{text}");
        }
        for text in [
            "",
            "24:00",
            "14:5",
            "14:05:",
            "1:2:3",
            "14:05:30.1",
            "2025-02-30T14:05",
            "2025-11-25T",
            "soon",
            "+1:02",
            "14:05:61",
            "5",
            "x@y",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_recording_that_begins_before_a_moment_covers_it() {
        let folder = tempfile::tempdir().unwrap();
        let day_ms = 20_000 * MS_PER_DAY;
        let begins = [day_ms - 3_600_000, day_ms + 3_600_000, day_ms + 7_200_000];
        let names = begins.map(RecordingName::at_ms);
        for name in names {
            std::fs::write(folder.path().join(name.to_string()), "").unwrap();
        }
        let at = |text| recording_at(folder.path(), Moment::parse(text).unwrap());
        let second = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let file = |place: usize| folder.path().join(names[place].to_string());
        assert_eq!(at("0s").unwrap(), (file(0), Nanos(0)));
        assert_eq!(at("3600s").unwrap(), (file(0), second(3600)));
        assert_eq!(at("7200.5s").unwrap(), (file(1), Nanos(500_000_000)));
        assert_eq!(at("00:00:10").unwrap(), (file(0), second(3610)), "the day of the last one");
        assert_eq!(at("01:00").unwrap(), (file(1), Nanos(0)));
        assert_eq!(at("23:00").unwrap(), (file(2), second(21 * 3600)));
        assert_eq!(at("2024-10-03T23:30").unwrap(), (file(0), second(1800)));
        let error = at("2024-10-03T22:00").unwrap_err().to_string();
        assert!(error.contains("found a moment before the first recording, expected"), "{error}");
        let of = |place: usize, text| recording_at(&file(place), Moment::parse(text).unwrap());
        assert_eq!(of(0, "00:30").unwrap(), (file(0), second(5400)), "over midnight");
        assert_eq!(of(1, "7s").unwrap(), (file(1), second(7)));
        assert!(of(1, "2024-10-04T00:30").is_err());
        let other = folder.path().join("served.parquet");
        std::fs::write(&other, "").unwrap();
        assert_eq!(
            recording_at(&other, Moment::After(Nanos(5))).unwrap(),
            (other.clone(), Nanos(5))
        );
        let error = recording_at(&other, Moment::TimeOfDay(5)).unwrap_err().to_string();
        assert!(error.contains("expected a time since its beginning, such as `@300s`"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        let error = recording_at(empty.path(), Moment::Date(5)).unwrap_err().to_string();
        assert!(error.contains("found a folder without recordings"), "{error}");
    }
}
