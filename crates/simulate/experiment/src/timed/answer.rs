//! What a timed replay found, as the result file has it.
//!
//! For: the shape of `timing` in `result.json`. Must never know: where it is written. Units are in
//! the names; a breakdown's parts are means per request and add up to the mean response.

use super::Timed;
use super::channels::channels_json;
use super::drive::drive_json;
use super::energy::{energy_json, whole_energy};
use super::flash::flash_json;
use super::rooms::{migrations_json, rooms_json};
use super::store::store_json;
use super::throughput::throughput_json;
use crate::case::Case;
use crate::spec::{DeviceSpec, Front};
use cachewright_measure::Counts;
use cachewright_measure::fairness::{extremes, jain};
use cachewright_system::timed::{DeviceUse, Experience, InFlight, Times};
use cachewright_types::{Bytes, Op};
use serde_json::{Map, Value, json};

/// The quantiles told of responses.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// The `timing` of a case with a cache of so many blocks.
pub fn timing_json(case: &Case, timed: &Timed, capacity_blocks: u32) -> Value {
    let times = &timed.times;
    let tenants: Vec<Value> = times
        .tenants
        .iter()
        .enumerate()
        .map(|(index, found)| {
            let mut map = Map::new();
            map.insert("name".into(), case.spec.tenants[index].name.clone().into());
            map.append(&mut experience_json(found));
            map.insert("in_flight_blocks".into(), times.in_flight_blocks[index].into());
            map.insert("demand_misses".into(), demand_misses(case, times, index).into());
            if let Some(alone) = timed.alone.get(index) {
                let responses = alone.tenants[index].responses();
                let alone_ns = responses.mean_ns();
                map.insert("alone_mean_ns".into(), alone_ns.into());
                for (part, share) in QUANTILES {
                    map.insert(format!("alone_{part}_ns"), responses.quantile_ns(share).into());
                }
                map.insert("slowdown".into(), slowdown(found, alone_ns).into());
            }
            Value::Object(map)
        })
        .collect();
    let mut timing = json!({
        "layout": timed.placed.layout.word(),
        "end_ns": times.end_ns,
        "read_ahead_blocks": times.read_ahead_blocks,
        "cleaned_blocks": times.cleaned_blocks,
        "total": experience_json(&times.total()),
        "tenants": tenants,
        "devices": devices_json(case, times),
        "little": little_json(times),
        "series": series_json(times),
    });
    if let Some(throughput) = throughput_json(case, times) {
        timing["throughput"] = throughput;
    }
    if let Some(channels) = channels_json(case, times, capacity_blocks) {
        timing["channels"] = channels;
    }
    if let Some(migrations) = migrations_json(case, times) {
        timing["migrations"] = migrations;
    }
    if let Some(rooms) = rooms_json(case, times) {
        timing["rooms"] = rooms;
    }
    if let Some(work) = &times.drive {
        let flash = timing["devices"][0]["flash"].take();
        timing["drive"] = drive_json(work, flash, times.end_ns);
        timing["devices"][0].as_object_mut().map(|device| device.remove("flash"));
    }
    if let Some(energy) = whole_energy(times) {
        timing["energy"] = energy;
    }
    if let Some(store) = store_json(case, times) {
        timing["store"] = store;
    }
    if !timed.alone.is_empty() {
        timing["fairness"] = fairness_json(timed);
    }
    timing
}

/// Block accesses of a tenant that waited for the backing device to read: misses, and blocks that
/// were on their way.
fn demand_misses(case: &Case, times: &Times, index: usize) -> u64 {
    let missed = times.cache.counts.get(index).map_or(0, Counts::misses);
    let stack = case.spec.stack.as_ref();
    match stack.map_or(InFlight::Hit, |stack| stack.machine.in_flight) {
        InFlight::Hit => missed + times.in_flight_blocks[index],
        InFlight::Miss => missed,
    }
}

/// Puts the first figures of an answer's `timing` beside its counters, under the names that a
/// closed loop without devices gives them; run times only where they follow the answers.
pub fn add_responses(case: &Case, answer: &mut Value) {
    let named = [
        ("mean_response_ns", "mean_ns"),
        ("p99_response_ns", "p99_ns"),
        ("throughput_per_s", "throughput_per_s"),
        ("finished_ns", "finished_ns"),
    ];
    let timing = answer["timing"].clone();
    if case.spec.replay.closed() {
        let since = |found: &Value, start_ns: u64| {
            found["finished_ns"].as_u64().unwrap_or(0).saturating_sub(start_ns)
        };
        let starts = case.spec.tenants.iter().map(|tenant| tenant.start.0);
        let first_ns = starts.clone().min().unwrap_or(0);
        answer["total"]["run_time_ns"] = since(&timing["total"], first_ns).into();
        for (tenant, start_ns) in starts.enumerate() {
            let run_time_ns = since(&timing["tenants"][tenant], start_ns);
            answer["tenants"][tenant]["run_time_ns"] = run_time_ns.into();
        }
    }
    for (name, from) in named {
        answer["total"][name] = timing["total"][from].clone();
        for (tenant, found) in timing["tenants"].as_array().into_iter().flatten().enumerate() {
            answer["tenants"][tenant][name] = found[from].clone();
        }
    }
}

/// How many times longer a tenant waits than alone; 1 without requests.
fn slowdown(mixed: &Experience, alone_ns: f64) -> f64 {
    if alone_ns > 0.0 { mixed.responses().mean_ns() / alone_ns } else { 1.0 }
}

fn fairness_json(timed: &Timed) -> Value {
    let pairs = timed.times.tenants.iter().zip(&timed.alone).enumerate();
    let slowdowns: Vec<f64> = pairs
        .filter(|(_, (mixed, _))| mixed.responses().count() > 0)
        .map(|(index, (mixed, alone))| slowdown(mixed, alone.tenants[index].responses().mean_ns()))
        .collect();
    let progress: Vec<f64> = slowdowns.iter().map(|slowdown| 1.0 / slowdown).collect();
    json!({
        "max_slowdown": slowdowns.iter().copied().fold(0.0, f64::max),
        "jain": jain(&progress),
        "min_over_max": extremes(&progress),
    })
}

/// The figures of one tenant, or of all.
pub fn experience_json(found: &Experience) -> Map<String, Value> {
    let all = found.responses();
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
    put("requests", all.count().into());
    put("mean_ns", all.mean_ns().into());
    for (part, share) in QUANTILES {
        put(&format!("{part}_ns"), all.quantile_ns(share).into());
    }
    put("max_ns", all.max_ns().into());
    for (op, own) in [("read", &found.reads), ("write", &found.writes)] {
        put(&format!("{op}s"), own.count().into());
        put(&format!("{op}_mean_ns"), own.mean_ns().into());
        put(&format!("{op}_p99_ns"), own.quantile_ns(0.99).into());
    }
    put("throughput_per_s", found.throughput_per_s().into());
    put("bytes_per_s", found.bytes_per_s().into());
    put("finished_ns", found.last_ns.into());
    let count = all.count().max(1) as f64;
    let parts = found.breakdown.parts().into_iter();
    let breakdown: Map<String, Value> =
        parts.map(|(name, sum)| (name, (sum as f64 / count).into())).collect();
    put("breakdown_ns", breakdown.into());
    map
}

/// One line per device: those of an array each have their own.
fn devices_json(case: &Case, times: &Times) -> Vec<Value> {
    let stack = case.spec.stack.as_ref();
    let mut lines = Vec::new();
    for (number, device) in times.devices.iter().enumerate() {
        let own = stack.is_some_and(|stack| stack.per_tenant);
        let name = match number {
            0 if times.drive.is_some() => "drive".to_owned(),
            0 => "cache".to_owned(),
            _ if own => format!("backing of {}", case.spec.tenants[number - 1].name),
            _ => "backing".to_owned(),
        };
        let spec = stack.map(|stack| match &stack.front {
            Front::Device(cache) if number == 0 => cache,
            _ => &stack.backing,
        });
        // What a store was asked stands under `store`; here is what it asked of its device.
        let device = match (&device.store, device.members.first()) {
            (Some(_), Some(beneath)) => beneath,
            _ => device,
        };
        if device.members.is_empty() {
            lines.push(device_json(&name, spec, device, times.end_ns));
        }
        for (place, member) in device.members.iter().enumerate() {
            let name = format!("{name} {}", place + 1);
            lines.push(device_json(&name, spec, member, times.end_ns));
        }
    }
    lines
}

fn device_json(name: &str, spec: Option<&DeviceSpec>, device: &DeviceUse, end_ns: u64) -> Value {
    let (used, span_ns) = (&device.used, end_ns.max(1) as f64);
    let mut found = json!({
        "name": name,
        "model": spec.map(|spec| spec.model.as_str()),
        "reads": used.commands[Op::Read as usize],
        "writes": used.commands[Op::Write as usize],
        "read_bytes": used.bytes[Op::Read as usize],
        "write_bytes": used.bytes[Op::Write as usize],
        "busy": used.population.busy_ns() as f64 / span_ns,
        "mean_inside": used.population.inside_ns() as f64 / span_ns,
        "max_inside": used.population.most(),
    });
    if let Some(energy) = energy_json(device, end_ns) {
        found["energy"] = energy;
    }
    let params = spec.and_then(|spec| spec.drive().ok());
    if let Some((params, flash)) = params.zip(device.flash.as_ref()) {
        let written = Bytes(used.bytes[Op::Write as usize]);
        found["flash"] = flash_json(&params, flash, written, end_ns);
    }
    found
}

/// Little's law: the mean number inside is the rate of arrivals times the mean response.
fn little_json(times: &Times) -> Value {
    let total = times.total();
    let span_ns = times.end_ns.saturating_sub(times.warmup_ns).max(1) as f64;
    let span_s = span_ns / 1e9;
    let responses = total.responses();
    json!({
        "mean_inside": total.population.inside_ns() as f64 / span_ns,
        "arrivals_per_s": responses.count() as f64 / span_s,
        "mean_response_ns": responses.mean_ns(),
        "max_inside": total.population.most(),
    })
}

/// Per tenant, per bin: requests, bytes, mean response.
fn series_json(times: &Times) -> Value {
    let bins = |tenant: usize| -> Vec<Value> {
        let bins = times.rates.bins(tenant).iter();
        bins.map(|bin| {
            let mean = bin.response_ns as f64 / bin.requests.max(1) as f64;
            json!([bin.requests, bin.bytes, mean])
        })
        .collect()
    };
    json!({
        "width_ns": times.rates.width_ns(),
        "tenants": (0..times.tenants.len()).map(bins).collect::<Vec<_>>(),
    })
}
