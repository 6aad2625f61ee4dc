//! The times of a trace on the workload's clock.
//!
//! For: shifting, scaling and ordering. Must never know: records, volumes. Units: nanoseconds. A
//! time before that of a record that came before it is moved up.

use crate::{Batch, TraceError};
use cachewright_types::Nanos;
use std::ops::RangeInclusive;

/// Factors on a trace's times that are accepted.
pub const TIME_SCALES: RangeInclusive<f64> = 1e-9..=1e9;
/// No request is later on the workload's clock: some 292 years.
const LATEST_NS: u64 = 1 << 63;

/// The clock of one tenant's trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct TenantClock {
    time_scale: f64,
    start_ns: u64,
    /// Time in the trace that is the tenant's start: that of its first record, unless set.
    origin_ns: Option<u64>,
    latest_ns: u64,
    out_of_order: u64,
}

impl TenantClock {
    /// A trace whose times are multiplied by `time_scale`, from `start` on. Errors: a factor that
    /// is not accepted.
    pub fn new(time_scale: f64, start: Nanos) -> Result<TenantClock, TraceError> {
        if !TIME_SCALES.contains(&time_scale) {
            return Err(refused(time_scale, "a number from 1e-9 to 1e9 (2.0 lasts twice as long)"));
        }
        let (start_ns, origin_ns) = (start.0, None);
        Ok(TenantClock { time_scale, start_ns, origin_ns, latest_ns: 0, out_of_order: 0 })
    }

    /// Moves the tenant's start to so much later. Errors: a start beyond [`LATEST_NS`].
    pub fn begin(&mut self, begin_ns: u64) -> Result<(), TraceError> {
        self.start_ns = self.start_ns.saturating_add(begin_ns);
        if begin_ns > 0 && self.start_ns > LATEST_NS {
            return Err(TraceError::Option {
                key: "warmup".to_owned(),
                found: format!("a history after which a trace begins at {} ns", self.start_ns),
                expected: "a trace that begins within 292 years".to_owned(),
            });
        }
        Ok(())
    }

    /// Time in the trace that is the tenant's start.
    pub fn origin_ns(&self) -> Option<u64> {
        self.origin_ns
    }

    /// Makes another time of the trace the tenant's start.
    pub fn set_origin(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
    }

    /// The earliest of the times is the tenant's start, unless an earlier one is.
    pub fn include(&mut self, times: &[u64]) {
        let earliest = times.iter().min().copied();
        self.origin_ns = match (self.origin_ns, earliest) {
            (Some(so_far), Some(earliest)) => Some(so_far.min(earliest)),
            (so_far, earliest) => so_far.or(earliest),
        };
    }

    /// Times that ran backwards.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Counts the times that run backwards, of a trace that will be sorted.
    pub fn count_late(&mut self, times: &[u64]) {
        let (mut latest_ns, mut late) = (0, 0);
        for time_ns in times {
            late += u64::from(*time_ns < latest_ns);
            latest_ns = latest_ns.max(*time_ns);
        }
        self.out_of_order = late;
    }

    /// Puts a batch's times on the workload's clock, moving up those that run backwards. Errors:
    /// a scale that puts a request beyond [`LATEST_NS`].
    pub fn order_times(&mut self, batch: &mut Batch) -> Result<(), TraceError> {
        let origin_ns = self.origin_ns.unwrap_or(0);
        let times = &mut batch.time_ns;
        // The common case, in loops without dependencies: in order, at the trace's own speed.
        let first = times.first().copied().unwrap_or(self.latest_ns);
        if self.time_scale == 1.0 && first >= self.latest_ns && times.is_sorted() {
            self.latest_ns = times.last().copied().unwrap_or(self.latest_ns);
            for time_ns in times {
                *time_ns = self.start_ns.saturating_add(time_ns.saturating_sub(origin_ns));
            }
            return Ok(());
        }
        for call in &mut batch.calls {
            call.pause_ns = (call.pause_ns as f64 * self.time_scale).round() as u64;
        }
        for time_ns in &mut *times {
            self.out_of_order += u64::from(*time_ns < self.latest_ns);
            self.latest_ns = self.latest_ns.max(*time_ns);
            let since = self.latest_ns.saturating_sub(origin_ns);
            let scaled = if self.time_scale == 1.0 {
                since
            } else {
                (since as f64 * self.time_scale).round() as u64
            };
            *time_ns = self.start_ns.saturating_add(scaled);
        }
        match times.last() {
            Some(last_ns) if self.time_scale != 1.0 && *last_ns > LATEST_NS => {
                Err(refused(self.time_scale, "a factor that puts every request within 292 years"))
            }
            _ => Ok(()),
        }
    }
}

fn refused(time_scale: f64, expected: &str) -> TraceError {
    TraceError::Option {
        key: "time_scale".to_owned(),
        found: format!("{time_scale:e}"),
        expected: expected.to_owned(),
    }
}
