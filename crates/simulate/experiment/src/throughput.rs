//! Throughput over time: what each tenant was answered in windows of one width.
//!
//! For: `throughput` of cases and of their `timing`, and `throughput.parquet`. Must never know:
//! what is made of it. Units: bytes, requests, seconds in rates. A request counts where it was
//! answered. Mean and standard deviation (of all windows, not of a sample) are over the whole
//! windows after the warm-up: from the tenant's start to the time at which it stops, where it
//! repeats its trace, else to its last answer. Mean by deviation takes at least one request per
//! window (of the tenant's mean size) for the deviation: without it the quotient has no bound, and
//! a perfectly steady tenant none at all. Source of mean by deviation: Wang et al. (oc-cache), V-B.
//! Schema of the file: `case`, `window`, `tenant` as UINT_32, `time_ns` (the window's end),
//! `requests`, `bytes` as UINT_64; one row group.

use crate::ExperimentError;
use crate::case::Case;
use crate::series::write_numbers;
use cachewright_result::case::Case as CaseAnswer;
use cachewright_result::timing::{TenantThroughput, Throughput};
use cachewright_system::event_loop::{ConstantRun, Times};
use cachewright_types::measure::{Bin, Rates};
use std::path::Path;

const SCHEMA: &str = "message throughput {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 requests (UINT_64);
    REQUIRED INT64 bytes (UINT_64);
}";

/// Windows of all tenants, if they were asked for.
pub fn throughput(case: &Case, times: &Times) -> Option<Throughput> {
    let last_ns = times.tenants.iter().map(|tenant| tenant.last_ns);
    Some(of_tenants(case, times.throughput.as_ref()?, times.warmup_ns, last_ns))
}

/// The same of a closed loop without devices.
pub fn constant_throughput(case: &Case, found: &ConstantRun) -> Option<Throughput> {
    let last_ns = found.answers.iter().map(|tenant| tenant.finished_ns);
    let warmup_ns = case.spec.replay.warmup.time().unwrap_or_default().0;
    Some(of_tenants(case, found.throughput.as_ref()?, warmup_ns, last_ns))
}

/// The windows of tenants behind the warm-up, of which the last answers came at `last_ns`.
fn of_tenants(
    case: &Case,
    windows: &Rates,
    warmup_ns: u64,
    last_ns: impl Iterator<Item = u64>,
) -> Throughput {
    let tenant = |(index, last_ns)| tenant(case, windows, warmup_ns, index, last_ns);
    Throughput { window_ns: windows.width_ns(), tenants: last_ns.enumerate().map(tenant).collect() }
}

fn tenant(
    case: &Case,
    windows: &Rates,
    warmup_ns: u64,
    index: usize,
    last_ns: u64,
) -> TenantThroughput {
    let (tenant, width_ns) = (&case.spec.tenants[index], windows.width_ns());
    let stop_ns = tenant.until.map_or(u64::MAX, |time| time.0);
    let end_ns = if tenant.repeat { stop_ns } else { last_ns.min(stop_ns) };
    let first = warmup_ns.max(tenant.start.0).div_ceil(width_ns) as usize;
    let last = (end_ns / width_ns) as usize;
    let bins = windows.bins(index);
    let counted = |what: fn(&Bin) -> u64| -> Vec<f64> {
        let empty = Bin::default();
        let window = |number| what(bins.get(number).unwrap_or(&empty)) as f64;
        (first..last).map(|number| window(number) * 1e9 / width_ns as f64).collect()
    };
    let (bytes, requests) = (counted(|bin| bin.bytes), counted(|bin| bin.requests));
    let one_request = 1e9 / width_ns as f64;
    let (sum_bytes, sum_requests) = (bytes.iter().sum::<f64>(), requests.iter().sum::<f64>());
    let mean_size = if sum_requests > 0.0 { sum_bytes / sum_requests } else { 0.0 };
    let (bytes, requests) =
        (spread(&bytes, one_request * mean_size), spread(&requests, one_request));
    TenantThroughput {
        name: tenant.name.clone(),
        windows: last.saturating_sub(first),
        bytes_per_s_mean: bytes.mean,
        bytes_per_s_sd: bytes.deviation,
        bytes_mean_over_sd: bytes.mean_over_sd,
        bytes_sd_over_mean: bytes.sd_over_mean,
        requests_per_s_mean: requests.mean,
        requests_per_s_sd: requests.deviation,
        requests_mean_over_sd: requests.mean_over_sd,
        requests_sd_over_mean: requests.sd_over_mean,
        series: bins.iter().map(|bin| (bin.requests, bin.bytes)).collect(),
    }
}

/// How rates spread; no quotients of rates that are all 0.
struct Spread {
    mean: f64,
    deviation: f64,
    mean_over_sd: Option<f64>,
    sd_over_mean: Option<f64>,
}

/// The spread of rates, the deviation at least `floor` where it divides.
fn spread(rates: &[f64], floor: f64) -> Spread {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    Spread {
        mean,
        deviation,
        mean_over_sd: (mean > 0.0 && floor > 0.0).then(|| mean / deviation.max(floor)),
        sd_over_mean: (mean > 0.0).then(|| deviation / mean),
    }
}

/// Writes the windows of all answers; returns whether there are any.
pub fn write(path: &Path, answers: &[CaseAnswer]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 6]> = Vec::new();
    for answer in answers {
        let timed = answer.timing.as_ref().and_then(|timing| timing.throughput.as_ref());
        let Some(found) = answer.throughput.as_ref().or(timed) else { continue };
        for (tenant, own) in found.tenants.iter().enumerate() {
            for (window, (requests, bytes)) in own.series.iter().enumerate() {
                let (number, tenant) = (window as u64, tenant as u64);
                let end_ns = (number + 1) * found.window_ns;
                rows.push([answer.case as u64, number, end_ns, tenant, *requests, *bytes]);
            }
        }
    }
    write_numbers(path, SCHEMA, &mut rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_all_windows() {
        let rates = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let found = spread(&rates, 1.0);
        assert_eq!((found.mean, found.deviation), (5.0, 2.0));
        assert_eq!((found.mean_over_sd, found.sd_over_mean), (Some(2.5), Some(0.4)));
        assert_eq!(spread(&rates, 4.0).mean_over_sd, Some(1.25), "at least the floor");
        assert_eq!(spread(&[0.0; 2], 1.0).mean_over_sd, None);
        assert_eq!(spread(&[], 0.0).mean, 0.0);
    }

    /// What never changes is the steadiest of all; it counts most, not nothing.
    #[test]
    fn a_perfectly_steady_rate_has_the_highest_quotient() {
        let quotient = |rates: &[f64]| spread(rates, 1.0).mean_over_sd;
        assert_eq!(quotient(&[300.0; 4]), Some(300.0));
        assert!(quotient(&[290.0, 310.0, 290.0, 310.0]) < quotient(&[300.0; 4]));
    }
}
