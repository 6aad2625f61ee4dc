//! How long a period is.
//!
//! For: reading what was asked for, and choosing a round duration that cuts a trace into some tens
//! of periods. Must never know: what a period counts. Units: nanoseconds; reads and writes.

use super::{TraceChoice, is_access, scan};
use crate::ExperimentError;
use crate::progress::OnProgress;
use cachewright_types::{Nanos, parse_duration};
use std::path::Path;

/// Chosen by the trace's span.
pub(super) const AUTO: &str = "auto";
/// Periods at most when the duration is chosen; there are at least 16 but in short spans.
const MAX_PERIODS: u64 = 40;
const EXPECTED: &str =
    "expected `auto`, a duration such as `60s` or a number of requests, at least 1";
const SECOND_NS: u64 = 1_000_000_000;
/// Round durations from a second on: one is at most 2.5 times the one before, up to a day.
const ROUND_S: [u64; 17] =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 18_000, 43_200, 86_400];

/// When a period ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Every {
    Time(Nanos),
    Requests(u64),
}

impl Every {
    /// As a user would ask for it.
    pub fn text(self) -> String {
        match self {
            Every::Time(width) => width.exact(),
            Every::Requests(count) => count.to_string(),
        }
    }
}

/// Reads `every`: a whole number is requests, nothing is to be chosen, anything else a duration.
pub(super) fn read(text: &str) -> Result<Option<Every>, String> {
    if text == AUTO {
        return Ok(None);
    }
    let refuse = || format!("`every`: found `{text}`, {EXPECTED}");
    let found = match text.trim().parse::<u64>() {
        Ok(requests) => Every::Requests(requests),
        Err(_) => Every::Time(parse_duration(text).map_err(|_| refuse())?),
    };
    match found {
        Every::Requests(0) | Every::Time(Nanos(0)) => Err(refuse()),
        found => Ok(Some(found)),
    }
}

/// A round duration by the span of a trace, which is read once for that; requests where all arrive
/// at one time. Errors: a trace that cannot be read, or not a second time.
pub(super) fn chosen(
    path: &Path,
    choice: &TraceChoice,
    progress: OnProgress<'_>,
) -> Result<Every, ExperimentError> {
    if path.exists() && !path.is_file() && !path.is_dir() {
        let message = "`every`: found `auto` with a pipe, which is read once; expected a duration \
                       such as `60s` or a number of requests";
        let message = message.to_owned();
        return Err(ExperimentError::spec(path, message));
    }
    let (mut span_ns, mut accesses) = (0, 0);
    scan(path, choice, progress, |record, time_ns| {
        span_ns = span_ns.max(time_ns);
        accesses += u64::from(is_access(record));
        Ok(())
    })?;
    Ok(round(span_ns, accesses))
}

/// The smallest round duration (requests where there is no span) that makes at most
/// [`MAX_PERIODS`].
fn round(span_ns: u64, accesses: u64) -> Every {
    if span_ns == 0 {
        return Every::Requests(one_two_five(accesses.div_ceil(MAX_PERIODS).max(1)));
    }
    // The last request lies in a period of its own where the span is a multiple.
    let min_ns = (span_ns / MAX_PERIODS).saturating_add(1);
    if min_ns <= SECOND_NS {
        return Every::Time(Nanos(one_two_five(min_ns)));
    }
    let seconds = min_ns.div_ceil(SECOND_NS);
    let day = ROUND_S[ROUND_S.len() - 1];
    let found = ROUND_S.iter().copied().find(|round| *round >= seconds);
    let found = found.unwrap_or_else(|| one_two_five(seconds.div_ceil(day)).saturating_mul(day));
    Every::Time(Nanos(found.saturating_mul(SECOND_NS)))
}

/// The smallest of 1, 2, 5, 10, 20, ... that is no less.
fn one_two_five(min: u64) -> u64 {
    let mut ten = 1_u64;
    while ten.saturating_mul(5) < min && ten < u64::MAX / 100 {
        ten *= 10;
    }
    [1, 2, 5].map(|digit| ten * digit).into_iter().find(|round| *round >= min).unwrap_or(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_a_duration_a_number_of_requests_or_chosen() {
        assert_eq!(read("60s"), Ok(Some(Every::Time(Nanos(60 * SECOND_NS)))));
        assert_eq!(read("5000"), Ok(Some(Every::Requests(5000))));
        assert_eq!(read("auto"), Ok(None));
        for wrong in ["0", "0s", "often", "-1s", ""] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(&format!("`every`: found `{wrong}`")), "{error}");
        }
    }

    #[test]
    fn a_chosen_period_is_round_and_cuts_a_span_into_some_tens() {
        for (span_s, expected) in [(90, "5s"), (40, "2s"), (600, "20s"), (86_400, "1h")] {
            let found = round(span_s * SECOND_NS, 1000);
            assert_eq!(found.text(), expected, "{span_s} s");
        }
        assert_eq!(round(3, 1000).text(), "1ns");
        assert_eq!(round(3_000_000, 1000).text(), "100us");
        assert_eq!(round(0, 0).text(), "1");
        assert_eq!(round(0, 100_000).text(), "5000");
        let mut span_ns = 7;
        while span_ns < u64::MAX / 3 {
            let Every::Time(width) = round(span_ns, 1) else { panic!("a span is cut by time") };
            let periods = span_ns / width.0 + 1;
            assert!(periods <= MAX_PERIODS, "{periods} of {width} in {span_ns} ns");
            assert!(periods >= 16 || span_ns < 100, "{periods} of {width} in {span_ns} ns");
            span_ns = span_ns / 2 * 3;
        }
    }
}
