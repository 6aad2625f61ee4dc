//! Throughput over time: what each tenant was answered in windows of one width.
//!
//! For: `timing.throughput` and `throughput.parquet`. Must never know: what is made of it. Units:
//! bytes, requests, seconds in rates. A request counts where it was answered. Mean and standard
//! deviation (of all windows, not of a sample) are over the whole windows after the warm-up: from
//! the tenant's start to the time at which it stops, where it repeats its trace, else to its last
//! answer. Source of mean by deviation: Wang et al. (oc-cache), V-B. Schema of the file: `case`,
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
    map.append(&mut spread("bytes", &counted(|bin| bin.bytes)));
    map.append(&mut spread("requests", &counted(|bin| bin.requests)));
    let series: Vec<Value> = bins.iter().map(|bin| json!([bin.requests, bin.bytes])).collect();
    map.insert("series".into(), series.into());
    Value::Object(map)
}

/// Mean, standard deviation and their quotient of rates; no quotient where nothing deviates.
fn spread(what: &str, rates: &[f64]) -> Map<String, Value> {
    let count = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let deviation = (squares / count).sqrt();
    let quotient = (deviation > 0.0).then(|| mean / deviation);
    let mut map = Map::new();
    map.insert(format!("{what}_per_s_mean"), mean.into());
    map.insert(format!("{what}_per_s_sd"), deviation.into());
    map.insert(format!("{what}_mean_over_sd"), quotient.into());
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
        let map = spread("bytes", &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(map["bytes_per_s_mean"], 5.0);
        assert_eq!(map["bytes_per_s_sd"], 2.0);
        assert_eq!(map["bytes_mean_over_sd"], 2.5);
        assert_eq!(spread("x", &[3.0, 3.0])["x_mean_over_sd"], Value::Null);
        assert_eq!(spread("x", &[])["x_per_s_mean"], 0.0);
    }
}
