//! Throughput over time: what each tenant was answered in windows of one width.
//!
//! For: `timing.throughput` and `throughput.parquet`. Must never know: what is made of it. Units:
//! bytes, requests, seconds in rates. A request counts where it was answered. Mean and standard
//! deviation (of all windows, not of a sample) are over the whole windows after the warm-up: from
//! the tenant's start to the time at which it stops, where it repeats its trace, else to its last
//! answer. Mean by deviation takes at least one request per window (of the tenant's mean size) for
//! the deviation: without it the quotient has no bound, and a perfectly steady tenant none at all.
//! Source of mean by deviation: Wang et al. (oc-cache), V-B. Schema of the file: `case`,
//! `window`, `tenant` as UINT_32, `time_ns` (the window's end), `requests`, `bytes` as UINT_64; one
//! row group.

use crate::ExperimentError;
use crate::case::Case;
use crate::series::{whole, write_numbers};
use cachewright_measure::{Bin, Rates};
use cachewright_system::timed::Times;
use serde_json::{Map, Value, json};
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
pub fn throughput_json(case: &Case, times: &Times) -> Option<Value> {
    let windows = times.throughput.as_ref()?;
    let tenants: Vec<Value> =
        (0..times.tenants.len()).map(|at| tenant_json(case, times, windows, at)).collect();
    Some(json!({"window_ns": windows.width_ns(), "tenants": tenants}))
}

fn tenant_json(case: &Case, times: &Times, windows: &Rates, at: usize) -> Value {
    let (tenant, width_ns) = (&case.spec.tenants[at], windows.width_ns());
    let stop_ns = tenant.until.map_or(u64::MAX, |time| time.0);
    let end_ns = if tenant.repeat { stop_ns } else { times.tenants[at].last_ns.min(stop_ns) };
    let first = times.warmup_ns.max(tenant.start.0).div_ceil(width_ns) as usize;
    let last = (end_ns / width_ns) as usize;
    let bins = windows.bins(at);
    let counted = |what: fn(&Bin) -> u64| -> Vec<f64> {
        let empty = Bin::default();
        let window = |number| what(bins.get(number).unwrap_or(&empty)) as f64;
        (first..last).map(|number| window(number) * 1e9 / width_ns as f64).collect()
    };
    let mut map = Map::new();
    map.insert("name".into(), tenant.name.clone().into());
    map.insert("windows".into(), last.saturating_sub(first).into());
    let (bytes, requests) = (counted(|bin| bin.bytes), counted(|bin| bin.requests));
    let one_request = 1e9 / width_ns as f64;
    let (sum_bytes, sum_requests) = (bytes.iter().sum::<f64>(), requests.iter().sum::<f64>());
    let mean_size = if sum_requests > 0.0 { sum_bytes / sum_requests } else { 0.0 };
    map.append(&mut spread("bytes", &bytes, one_request * mean_size));
    map.append(&mut spread("requests", &requests, one_request));
    let series: Vec<Value> = bins.iter().map(|bin| json!([bin.requests, bin.bytes])).collect();
    map.insert("series".into(), series.into());
    Value::Object(map)
}

/// Mean, standard deviation and both quotients of rates, the deviation at least `floor` in the one
/// that it divides; no quotients of rates that are all 0.
fn spread(what: &str, rates: &[f64], floor: f64) -> Map<String, Value> {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    let steady = (mean > 0.0 && floor > 0.0).then(|| mean / deviation.max(floor));
    let varies = (mean > 0.0).then(|| deviation / mean);
    let mut map = Map::new();
    map.insert(format!("{what}_per_s_mean"), mean.into());
    map.insert(format!("{what}_per_s_sd"), deviation.into());
    map.insert(format!("{what}_mean_over_sd"), steady.into());
    map.insert(format!("{what}_sd_over_mean"), varies.into());
    map
}

/// Writes the windows of all answers; returns whether there are any.
pub fn write(path: &Path, answers: &[Value]) -> Result<bool, ExperimentError> {
    let mut rows: Vec<[u64; 6]> = Vec::new();
    for answer in answers {
        let (case, found) = (whole(&answer["case"]), &answer["timing"]["throughput"]);
        let width_ns = whole(&found["window_ns"]);
        for (tenant, own) in found["tenants"].as_array().into_iter().flatten().enumerate() {
            for (window, pair) in own["series"].as_array().into_iter().flatten().enumerate() {
                let (number, tenant) = (window as u64, tenant as u64);
                let end_ns = (number + 1) * width_ns;
                rows.push([case, number, end_ns, tenant, whole(&pair[0]), whole(&pair[1])]);
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
        let map = spread("bytes", &rates, 1.0);
        assert_eq!(map["bytes_per_s_mean"], 5.0);
        assert_eq!(map["bytes_per_s_sd"], 2.0);
        assert_eq!(
            (&map["bytes_mean_over_sd"], &map["bytes_sd_over_mean"]),
            (&2.5.into(), &0.4.into())
        );
        assert_eq!(spread("bytes", &rates, 4.0)["bytes_mean_over_sd"], 1.25, "at least the floor");
        assert_eq!(spread("x", &[0.0; 2], 1.0)["x_mean_over_sd"], Value::Null);
        assert_eq!(spread("x", &[], 0.0)["x_per_s_mean"], 0.0);
    }

    /// What never changes is the steadiest of all; it counts most, not nothing.
    #[test]
    fn a_perfectly_steady_rate_has_the_highest_quotient() {
        let quotient = |rates: &[f64]| spread("x", rates, 1.0)["x_mean_over_sd"].as_f64();
        assert_eq!(quotient(&[300.0; 4]), Some(300.0));
        assert!(quotient(&[290.0, 310.0, 290.0, 310.0]) < quotient(&[300.0; 4]));
    }
}
