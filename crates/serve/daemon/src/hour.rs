//! The last hour of a server, in samples.
//!
//! For: charts that begin before the page was opened. Must never know: HTTP, how a server counts.
//! Units: bytes, nanoseconds; seconds and microseconds in documents. A sample is taken whenever
//! counts are kept to compare with (each 10 s); the oldest goes when there are 361. So memory is
//! bounded, whatever is served.

use cachewright_result::history::{LiveHistory, TenantHistory};
use cachewright_result::written::Written;
use std::collections::VecDeque;

/// Samples that are kept: those of an hour, with its beginning.
const MAX_SAMPLES: usize = 361;
/// Tenants that are sampled.
pub const MAX_TENANTS: usize = 64;

/// What one tenant did since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantSample {
    /// The tenant's number.
    pub tenant: usize,
    /// Hits over accesses; nothing without accesses.
    pub hit_ratio: Option<f64>,
    /// Bytes that it holds.
    pub cached_bytes: u64,
    /// The 99th percentile of reads; nothing without reads.
    pub read_p99_us: Option<f64>,
    /// The 99th percentile of writes; nothing without writes.
    pub write_p99_us: Option<f64>,
    /// Whether its goal was met; nothing without one.
    pub goal_met: Option<bool>,
}

/// What a server did since the sample before.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Seconds since its start.
    pub uptime_seconds: f64,
    /// Bytes that only the cache has.
    pub dirty_bytes: u64,
    /// Segments of the log that hold nothing.
    pub free_segments: u64,
    /// Its tenants, at most [`MAX_TENANTS`].
    pub tenants: Vec<TenantSample>,
}

/// The samples of the last hour.
#[derive(Clone, Debug, Default)]
pub struct LastHour {
    samples: VecDeque<Sample>,
}

impl LastHour {
    /// One more sample; the oldest may go for it.
    pub fn add(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The hour as a document, of tenants by number and name.
    pub fn document(&self, every_seconds: f64, tenants: &[(usize, &str)]) -> LiveHistory {
        let samples = &self.samples;
        let sampled = |tenant: usize| {
            let own = move |sample: &Sample| {
                sample.tenants.iter().find(|found| found.tenant == tenant).copied()
            };
            samples.iter().map(own).collect::<Vec<_>>()
        };
        let history = |(tenant, name): &(usize, &str)| {
            let own = sampled(*tenant);
            TenantHistory {
                name: (*name).to_owned(),
                hit_ratio: own.iter().map(|found| found.and_then(|own| own.hit_ratio)).collect(),
                cached_bytes: own.iter().map(|found| found.map(|own| own.cached_bytes)).collect(),
                read_p99_us: own
                    .iter()
                    .map(|found| found.and_then(|own| own.read_p99_us))
                    .collect(),
                write_p99_us: own
                    .iter()
                    .map(|found| found.and_then(|own| own.write_p99_us))
                    .collect(),
                goal_met: own.iter().map(|found| found.and_then(|own| own.goal_met)).collect(),
            }
        };
        LiveHistory {
            written: Written::here(),
            every_seconds,
            uptime_seconds: samples.iter().map(|sample| sample.uptime_seconds).collect(),
            dirty_bytes: samples.iter().map(|sample| sample.dirty_bytes).collect(),
            free_segments: samples.iter().map(|sample| sample.free_segments).collect(),
            tenants: tenants.iter().take(MAX_TENANTS).map(history).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(number: usize) -> Sample {
        let own = TenantSample {
            tenant: number % 2,
            hit_ratio: Some(0.5),
            cached_bytes: number as u64,
            read_p99_us: None,
            write_p99_us: Some(7.0),
            goal_met: Some(true),
        };
        Sample {
            uptime_seconds: 10.0 * number as f64,
            dirty_bytes: number as u64,
            free_segments: 3,
            tenants: vec![own],
        }
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let mut hour = LastHour::default();
        (0..1000).for_each(|number| hour.add(sample(number)));
        let found = hour.document(10.0, &[(0, "a"), (1, "b"), (2, "c")]);
        assert_eq!((found.uptime_seconds.len(), found.uptime_seconds[0]), (361, 6390.0));
        assert_eq!(found.uptime_seconds[360] - found.uptime_seconds[0], 3600.0);
        assert_eq!((found.dirty_bytes[360], found.free_segments[0]), (999, 3));
        let [a, b, c] = &found.tenants[..] else { unreachable!() };
        assert_eq!(a.cached_bytes[..3], [None, Some(640), None]);
        assert_eq!(
            (b.hit_ratio[0], b.read_p99_us[0], b.goal_met[0]),
            (Some(0.5), None, Some(true))
        );
        assert_eq!(c.write_p99_us, [None; 361], "it was not served yet");
    }
}
