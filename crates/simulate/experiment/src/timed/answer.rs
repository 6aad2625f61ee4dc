//! What a timed replay found, as answers have it.
//!
//! For: `timing` of a case. Must never know: where it is written. Units are in the names; a
//! breakdown's parts are means per request and add up to the mean response.

use super::Timed;
use super::channels::channels;
use super::drive::cached_drive;
use super::energy::{device_energy, total_energy};
use super::flash::flash;
use super::regions::{migrations, regions};
use super::store::store;
use crate::case::{Case, ResolvedCase};
use crate::spec::{DeviceSpec, Front};
use crate::throughput::throughput;
use cachewright_device::DeviceUse;
use cachewright_partition::ResponseGoal;
use cachewright_result::case::{Case as CaseAnswer, CaseResponses, MeasuredResponses};
use cachewright_result::device::Device;
use cachewright_result::timing::{
    AloneTimes, Fairness, LittlesLaw, ResponseSeries, ResponseTimes, TenantTiming, Timing,
};
use cachewright_system::event_loop::{Experience, Times};
use cachewright_system::machines::InFlight;
use cachewright_types::measure::fairness::{extremes, jain};
use cachewright_types::measure::{Bin, Counts};
use cachewright_types::{Bytes, Op};

/// The `timing` of a case.
pub fn timing(case: &ResolvedCase<'_>, timed: &Timed) -> Timing {
    let times = &timed.times;
    let mut devices = devices(case, times);
    let drive = times.drive.as_ref().and_then(|work| {
        let flash = devices.first_mut()?.flash.take()?;
        Some(cached_drive(work, flash, times.end_ns))
    });
    Timing {
        layout: timed.layout.to_owned(),
        end_ns: times.end_ns,
        read_ahead_blocks: times.blocks.read_ahead,
        cleaned_blocks: times.blocks.cleaned,
        total: response_times(&times.total()),
        tenants: (0..times.tenants.len()).map(|index| tenant(case, timed, index)).collect(),
        devices,
        little: little(times),
        series: series(times),
        throughput: throughput(case, times),
        channels: channels(case, times),
        migrations: migrations(case, times),
        rooms: regions(case, times),
        drive,
        energy: total_energy(times),
        store: store(case, times),
        fairness: (!timed.alone.is_empty()).then(|| fairness(timed)),
    }
}

/// One tenant beside the others, and alone if it was replayed so.
fn tenant(case: &Case, timed: &Timed, index: usize) -> TenantTiming {
    let (times, found) = (&timed.times, &timed.times.tenants[index]);
    TenantTiming {
        name: case.spec.tenants[index].name.clone(),
        responses: response_times(found),
        in_flight_blocks: times.blocks.in_flight[index],
        demand_misses: demand_misses(case, times, index),
        alone: timed.alone.get(index).map(|alone| {
            let responses = alone.tenants[index].responses();
            let alone_ns = responses.mean_ns();
            AloneTimes {
                alone_mean_ns: alone_ns,
                alone_p50_ns: responses.quantile_ns(0.5),
                alone_p90_ns: responses.quantile_ns(0.9),
                alone_p99_ns: responses.quantile_ns(0.99),
                alone_p999_ns: responses.quantile_ns(0.999),
                slowdown: slowdown(found, alone_ns),
            }
        }),
    }
}

/// Block accesses of a tenant that waited for the backing device to read: misses, and blocks that
/// were on their way.
fn demand_misses(case: &Case, times: &Times, index: usize) -> u64 {
    let missed = times.cache.counts.get(index).map_or(0, Counts::misses);
    let stack = case.spec.stack.as_ref();
    match stack.map_or(InFlight::Hit, |stack| stack.machine.in_flight) {
        InFlight::Hit => missed + times.blocks.in_flight[index],
        InFlight::Miss => missed,
    }
}

/// Puts the first figures of a case's `timing` beside its counters; run times only where requests
/// follow the answers.
pub fn add_responses(case: &Case, answer: &mut CaseAnswer, timing: &Timing) {
    let starts = || case.spec.tenants.iter().map(|tenant| tenant.start.0);
    let measured = |found: &ResponseTimes, start_ns: u64| {
        let run_time_ns = found.finished_ns.saturating_sub(start_ns);
        Some(CaseResponses::Measured(MeasuredResponses {
            run_time_ns: case.spec.replay.closed().then_some(run_time_ns),
            mean_response_ns: found.mean_ns,
            p99_response_ns: found.p99_ns,
            throughput_per_s: found.throughput_per_s,
            finished_ns: found.finished_ns,
        }))
    };
    answer.total.responses = measured(&timing.total, starts().min().unwrap_or(0));
    let tenants = answer.tenants.iter_mut().zip(&timing.tenants).zip(starts());
    for ((tenant, found), start_ns) in tenants {
        tenant.responses = measured(&found.responses, start_ns);
    }
    add_response_goals(case, answer, timing);
}

/// Puts goals in response time, and whether the whole run kept them, beside the counters.
fn add_response_goals(case: &Case, answer: &mut CaseAnswer, timing: &Timing) {
    let goals = case.spec.response_goals();
    let given = goals.iter().flatten().count();
    if given == 0 {
        return;
    }
    let mut met = 0;
    for ((tenant, found), goal) in answer.tenants.iter_mut().zip(&timing.tenants).zip(goals) {
        let kept = match goal {
            None => continue,
            Some(ResponseGoal::Mean(limit)) => {
                tenant.goal_response_ns = Some(limit.0);
                found.responses.mean_ns <= limit.0 as f64
            }
            Some(ResponseGoal::P99(limit)) => {
                tenant.goal_p99_ns = Some(limit.0);
                found.responses.p99_ns <= limit.0
            }
        };
        tenant.goal_met = Some(kept);
        met += usize::from(kept);
    }
    let total = &mut answer.total;
    total.goals = Some(total.goals.unwrap_or(0) + given);
    total.goals_met = Some(total.goals_met.unwrap_or(0) + met);
}

/// How many times longer a tenant waits than alone; 1 without requests.
fn slowdown(mixed: &Experience, alone_ns: f64) -> f64 {
    if alone_ns > 0.0 { mixed.responses().mean_ns() / alone_ns } else { 1.0 }
}

fn fairness(timed: &Timed) -> Fairness {
    let pairs = timed.times.tenants.iter().zip(&timed.alone).enumerate();
    let slowdowns: Vec<f64> = pairs
        .filter(|(_, (mixed, _))| mixed.responses().count() > 0)
        .map(|(index, (mixed, alone))| slowdown(mixed, alone.tenants[index].responses().mean_ns()))
        .collect();
    let progress: Vec<f64> = slowdowns.iter().map(|slowdown| 1.0 / slowdown).collect();
    Fairness {
        max_slowdown: slowdowns.iter().copied().fold(0.0, f64::max),
        jain: jain(&progress),
        min_over_max: extremes(&progress),
    }
}

/// The figures of one tenant, or of all.
pub fn response_times(found: &Experience) -> ResponseTimes {
    let all = found.responses();
    let count = all.count().max(1) as f64;
    let parts = found.breakdown.parts().into_iter();
    ResponseTimes {
        requests: all.count(),
        mean_ns: all.mean_ns(),
        p50_ns: all.quantile_ns(0.5),
        p90_ns: all.quantile_ns(0.9),
        p99_ns: all.quantile_ns(0.99),
        p999_ns: all.quantile_ns(0.999),
        max_ns: all.max_ns(),
        reads: found.reads.count(),
        read_mean_ns: found.reads.mean_ns(),
        read_p99_ns: found.reads.quantile_ns(0.99),
        writes: found.writes.count(),
        write_mean_ns: found.writes.mean_ns(),
        write_p99_ns: found.writes.quantile_ns(0.99),
        throughput_per_s: found.throughput_per_s(),
        bytes_per_s: found.bytes_per_s(),
        finished_ns: found.last_ns,
        breakdown_ns: parts.map(|(name, sum)| (name, sum as f64 / count)).collect(),
    }
}

/// One line per device: those of an array each have their own.
fn devices(case: &Case, times: &Times) -> Vec<Device> {
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
        let device = match (device.report.store(), device.report.members.first()) {
            (Some(_), Some(beneath)) => beneath,
            _ => device,
        };
        if device.report.members.is_empty() {
            lines.push(line(&name, spec, device, times.end_ns));
        }
        for (place, member) in device.report.members.iter().enumerate() {
            let name = format!("{name} {}", place + 1);
            lines.push(line(&name, spec, member, times.end_ns));
        }
    }
    lines
}

fn line(name: &str, spec: Option<&DeviceSpec>, device: &DeviceUse, end_ns: u64) -> Device {
    let (used, span_ns) = (&device.used, end_ns.max(1) as f64);
    let params = spec.and_then(|spec| spec.drive().ok());
    let written = Bytes(used.bytes[Op::Write as usize]);
    let of_flash = params.zip(device.report.flash());
    Device {
        name: name.to_owned(),
        model: spec.map(|spec| spec.model.clone()),
        reads: used.commands[Op::Read as usize],
        writes: used.commands[Op::Write as usize],
        read_bytes: used.bytes[Op::Read as usize],
        write_bytes: used.bytes[Op::Write as usize],
        busy: used.population.busy_ns() as f64 / span_ns,
        mean_inside: used.population.inside_ns() as f64 / span_ns,
        max_inside: used.population.max(),
        energy: device_energy(device, end_ns),
        flash: of_flash.map(|(params, found)| flash(&params, found, written, end_ns)),
    }
}

/// Little's law: the mean number inside is the rate of arrivals times the mean response.
fn little(times: &Times) -> LittlesLaw {
    let total = times.total();
    let span_ns = times.end_ns.saturating_sub(times.warmup_ns).max(1) as f64;
    let span_s = span_ns / 1e9;
    let responses = total.responses();
    LittlesLaw {
        mean_inside: total.population.inside_ns() as f64 / span_ns,
        arrivals_per_s: responses.count() as f64 / span_s,
        mean_response_ns: responses.mean_ns(),
        max_inside: total.population.max(),
    }
}

/// Per tenant, per bin: requests, bytes, mean response.
fn series(times: &Times) -> ResponseSeries {
    let row = |bin: &Bin| {
        let mean = bin.response_ns as f64 / bin.requests.max(1) as f64;
        (bin.requests, bin.bytes, mean)
    };
    let bins = |tenant: usize| times.rates.bins(tenant).iter().map(row).collect();
    ResponseSeries {
        width_ns: times.rates.width_ns(),
        tenants: (0..times.tenants.len()).map(bins).collect(),
    }
}
