//! Metrics for Prometheus.
//!
//! For: each number of a status under a name, with labels. Must never know: HTTP, how a status is
//! found. Units: the names' last words. Source of the form: the OpenMetrics text format.
//! A counter's name is written here without its suffix `_total`.

use cachewright_result::status::{
    BlockCounts, GoalStatus, LatencyBucket, LiveStatus, LogStatus, RecordingStatus, RequestStatus,
    TenantState, TenantStatus, TenantTrial, TrialStatus,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::fmt::Error;
use std::sync::Arc;

/// What stands before the name of each metric.
pub const PREFIX: &str = "cachewright";

const US_PER_S: f64 = 1e6;

type Labels = Vec<(&'static str, String)>;
type Exemplars = HashMap<usize, Exemplar<Labels, f64>>;
type OfTenant = fn(&TenantStatus) -> f64;
type OfSomeTenants = fn(&TenantStatus) -> Option<f64>;
type OfGoal = fn(&GoalStatus) -> Option<f64>;
type OfBlocks = fn(&BlockCounts) -> u64;
type OfLog = fn(&LogStatus) -> f64;
type OfRequests = fn(&RequestStatus) -> u64;

/// Gauges of a tenant.
const TENANT_GAUGES: [(&str, &str, OfTenant); 4] = [
    ("volume_bytes", "Size of the tenant's volume", |tenant| tenant.volume_bytes as f64),
    ("cached_bytes", "Bytes in the cache", |tenant| tenant.cached_bytes as f64),
    ("up", "Whether the tenant's requests are served", |tenant| {
        let down = [TenantState::Failed, TenantState::Reviving].map(TenantState::word);
        f64::from(u8::from(!down.contains(&tenant.state.as_str())))
    }),
    ("bypassed", "Whether the tenant is served past a cache that has failed", |tenant| {
        let past = [TenantState::Bypassed, TenantState::ReadOnly, TenantState::Waiting];
        f64::from(u8::from(past.map(TenantState::word).contains(&tenant.state.as_str())))
    }),
];

/// Gauges of a tenant that not every tenant has.
const TENANT_OPTIONS: [(&str, &str, OfSomeTenants); 4] = [
    ("quota_bytes", "Bytes that the tenant may hold", |tenant| {
        tenant.quota_bytes.map(|bytes| bytes as f64)
    }),
    ("dirty_bytes", "Bytes that only the cache has, by tenant", |tenant| {
        tenant.dirty_bytes.map(|bytes| bytes as f64)
    }),
    (
        "goal_hit_ratio",
        "Hit ratio that the tenant is to reach, or that stands for its latency",
        |tenant| tenant.goal_hit_ratio,
    ),
    (
        "goal_met",
        "Whether the tenant met its goal, of whatever kind, in the last 10 to 20 s",
        |tenant| tenant.goal_met.map(|met| f64::from(u8::from(met))),
    ),
];

/// Goals in time: what was promised, and what was measured.
const TIMED_GOALS: [(&str, &str, OfGoal); 2] = [
    ("goal_seconds", "Time that the tenant's goal allows", |goal| Some(goal.promised)),
    ("goal_measured_seconds", "The same time as measured in the last 10 to 20 s", |goal| {
        goal.measured
    }),
];

/// Counters of blocks of a tenant.
const BLOCKS: [(&str, &str, OfBlocks); 10] = [
    ("read_blocks", "Blocks read", |blocks| blocks.reads),
    ("read_hit_blocks", "Blocks read from the cache", |blocks| blocks.read_hits),
    ("written_blocks", "Blocks written", |blocks| blocks.writes),
    ("write_hit_blocks", "Blocks written that were in the cache", |blocks| blocks.write_hits),
    ("admitted_blocks", "Blocks that entered the cache", |blocks| blocks.admissions),
    ("bypassed_blocks", "Misses that did not enter the cache", |blocks| blocks.bypasses),
    (
        "cut_off_requests",
        "Requests past the cache, for the length of their sequential stream",
        |blocks| blocks.cut_off_requests,
    ),
    ("cut_off_bytes", "Bytes of these requests", |blocks| blocks.cut_off_bytes),
    ("evicted_blocks", "Blocks that left to make space", |blocks| blocks.evictions),
    ("written_back_blocks", "Dirty blocks written back when they left", |blocks| blocks.writebacks),
];

/// Counters of requests of a tenant, by kind.
const REQUESTS: [(&str, &str, OfRequests); 3] = [
    ("requests", "Requests answered, those with errors included", |requests| requests.count),
    ("request_errors", "Requests answered with an error", |requests| requests.errors),
    ("request_bytes", "Bytes that requests asked for", |requests| requests.bytes),
];

/// Numbers of the log, and whether they only rise.
const LOG: [(&str, &str, bool, OfLog); 13] = [
    ("log_up", "Whether the log takes content", false, |log| {
        f64::from(u8::from(log.failed.is_none()))
    }),
    ("log_segments", "Segments of all devices", false, |log| log.segments as f64),
    ("log_free_segments", "Segments that hold nothing", false, |log| log.free_segments as f64),
    (
        "log_write_amplification",
        "Bytes to the log for each that requests wrote or filled",
        false,
        |log| log.write_amplification,
    ),
    ("log_written_bytes", "Bytes that requests wrote or filled", true, |log| {
        log.written_bytes as f64
    }),
    ("log_moved_bytes", "Bytes that cleaning copied", true, |log| log.moved_bytes as f64),
    ("log_dropped_bytes", "Clean bytes that cleaning dropped", true, |log| {
        log.dropped_bytes as f64
    }),
    ("log_cleaned_segments", "Segments that were cleaned", true, |log| log.cleaned_segments as f64),
    ("log_refused_requests", "Requests refused because the log had no space", true, |log| {
        log.refused_requests as f64
    }),
    ("log_damaged_clean_blocks", "Clean blocks with damaged content", true, |log| {
        log.damaged_clean as f64
    }),
    ("log_stranded_blocks", "Dirty blocks that could not be written back", true, |log| {
        log.stranded as f64
    }),
    ("log_damaged_dirty_reads", "Reads that failed by damaged dirty content", true, |log| {
        log.damaged_dirty as f64
    }),
    ("log_memory_reads", "Cached blocks that requests read from memory", true, |log| {
        log.memory_reads as f64
    }),
];

/// The text of all metrics. Errors: none that a status can bring about.
pub fn text(status: Arc<LiveStatus>) -> Result<String, Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Metrics(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Metrics(Arc<LiveStatus>);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), Error> {
        let status = &*self.0;
        server(status, &mut encoder)?;
        log(&status.log, &mut encoder)?;
        status.recordings.iter().try_for_each(|found| recordings(found, &mut encoder))?;
        status.trial.iter().try_for_each(|found| trial(found, &mut encoder))?;
        tenants(&status.tenants, &mut encoder)?;
        requests(&status.tenants, &mut encoder)
    }
}

fn server(status: &LiveStatus, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    let facts: Labels = [
        ("version", &status.written.cachewright),
        ("policy", &status.policy),
        ("partition", &status.partition),
        ("write", &status.write),
        ("engine", &status.engine),
    ]
    .map(|(name, value)| (name, value.clone()))
    .into();
    let help = "Version, schemes and engine of the server";
    encoder.encode_descriptor("server", help, None, MetricType::Info)?.encode_info(&facts)?;
    let gauges = [
        ("uptime_seconds", "Seconds since the start", status.uptime_seconds),
        ("capacity_bytes", "Bytes of the cache", status.capacity_bytes as f64),
        ("cache_dirty_bytes", "Bytes that only the cache has", status.dirty_bytes as f64),
        ("connections", "Clients that are connected", status.connections as f64),
        ("held_bytes", "Bytes of requests and answers in memory", status.held_bytes as f64),
        (
            "reload_refused",
            "Whether the last change of the stack was refused",
            f64::from(u8::from(status.refused_reload.is_some())),
        ),
    ];
    gauges.into_iter().try_for_each(|(name, help, value)| {
        encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    })?;
    if let Some(rate) = status.background_bytes_per_second {
        let (name, help) =
            ("background_bytes_per_second", "What background work may move at present");
        let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge);
        gauge?.encode_gauge(&(rate as f64))?;
    }
    let counters = [
        ("reloads", "Changed stacks that were looked at", status.reloads),
        ("background_bytes", "Bytes moved or written back ahead of need", status.background_bytes),
    ];
    counters.into_iter().try_for_each(|(name, help, value)| {
        let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter);
        counter?.encode_counter::<Labels, u64, f64>(&value, None)
    })
}

fn log(log: &LogStatus, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    for (name, help, rises, value) in LOG {
        let value = value(log);
        if rises {
            let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter);
            counter?.encode_counter::<Labels, f64, f64>(&value, None)?;
        } else {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge);
            gauge?.encode_gauge(&value)?;
        }
    }
    Ok(())
}

fn recordings(found: &RecordingStatus, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    let counters = [
        ("recording_files", "Recordings that were finished", found.files),
        ("recorded_requests", "Requests in finished recordings", found.requests),
        ("recording_dropped_requests", "Requests that are in no recording", found.dropped_requests),
        ("recording_removed_files", "Old recordings that were removed", found.removed_files),
        (
            "recording_recovered_files",
            "Unfinished recordings of servers that were killed, up to what was kept",
            found.recovered_files,
        ),
        (
            "recording_abandoned_files",
            "Unfinished recordings of which nothing was kept",
            found.abandoned_files,
        ),
        ("recording_errors", "Recordings that could not be written or removed", found.errors),
    ];
    counters.into_iter().try_for_each(|(name, help, value)| {
        let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter);
        counter?.encode_counter::<Labels, u64, f64>(&value, None)
    })
}

fn trial(found: &TrialStatus, encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    let labels = |tenant: &TenantTrial| -> Labels {
        vec![
            ("policy", found.policy.clone()),
            ("partition", found.partition.clone()),
            ("tenant", tenant.name.clone()),
        ]
    };
    type CountOf = fn(&TenantTrial) -> u64;
    let counters: [(&str, &str, CountOf); 3] = [
        ("trial_accesses", "Reads and writes of blocks that a trial looks at", |one| one.accesses),
        ("trial_present_hits", "Those that are hit as the cache decides", |one| one.present_hits),
        ("trial_hits", "Those that are hit by what is on trial", |one| one.trial_hits),
    ];
    for (name, help, value) in counters {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        let mut tenants = found.tenants.iter();
        tenants.try_for_each(|one| count(&mut family, &labels(one), value(one)))?;
    }
    let help = "Cache that a tenant, or the pool that it shares, has by what is on trial";
    let name = "trial_quota_bytes";
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    let mut tenants = found.tenants.iter();
    tenants.try_for_each(|one| {
        let value = one.trial_quota_bytes as f64;
        family.encode_family(&labels(one))?.encode_gauge(&value)
    })
}

fn tenants(tenants: &[TenantStatus], encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    let mut gauge = |name: &str, help: &str, value_of: &dyn Fn(&TenantStatus) -> Option<f64>| {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for tenant in tenants {
            if let Some(value) = value_of(tenant) {
                family.encode_family(&labels(tenant, &[]))?.encode_gauge(&value)?;
            }
        }
        Ok::<(), Error>(())
    };
    for (name, help, value_of) in TENANT_GAUGES {
        gauge(name, help, &|tenant| Some(value_of(tenant)))?;
    }
    for (name, help, value_of) in TENANT_OPTIONS {
        gauge(name, help, &value_of)?;
    }
    for (name, help, value_of) in TIMED_GOALS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for tenant in tenants {
            let goal = tenant.goal.as_ref().filter(|goal| goal.unit == "us");
            let time_us = goal.and_then(|goal| Some((goal, value_of(goal)?)));
            if let Some((goal, time_us)) = time_us {
                let labels = labels(tenant, &[("goal", &goal.key)]);
                family.encode_family(&labels)?.encode_gauge(&(time_us / US_PER_S))?;
            }
        }
    }
    for (name, help, value_of) in BLOCKS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for tenant in tenants {
            count(&mut family, &labels(tenant, &[]), value_of(&tenant.blocks))?;
        }
    }
    let help = "Blocks missed, by cause, estimated from a sample of blocks";
    let mut family = encoder.encode_descriptor("missed_blocks", help, None, MetricType::Counter)?;
    for tenant in tenants {
        for (cause, misses) in tenant.misses.by_cause() {
            count(&mut family, &labels(tenant, &[("cause", cause)]), misses)?;
        }
    }
    let help = "Blocks missed because another tenant had the space";
    let mut family =
        encoder.encode_descriptor("pushed_out_blocks", help, None, MetricType::Counter)?;
    for tenant in tenants {
        for pushed in &tenant.misses.pushed_out_by {
            count(&mut family, &labels(tenant, &[("by", &pushed.by)]), pushed.misses)?;
        }
    }
    let help = "Time that reads and writes waited behind the cache";
    let mut family =
        encoder.encode_descriptor("behind_seconds", help, None, MetricType::Counter)?;
    for tenant in tenants {
        family
            .encode_family(&labels(tenant, &[]))?
            .encode_counter::<Labels, f64, f64>(&tenant.misses.behind_seconds, None)?;
    }
    let help = "How often clients had done all that the tenant's caps allow";
    let mut family =
        encoder.encode_descriptor("caps_exhausted", help, None, MetricType::Counter)?;
    for tenant in tenants {
        count(&mut family, &labels(tenant, &[]), tenant.caps_exhausted)?;
    }
    let help = "Blocks that left otherwise than to make space";
    let mut family = encoder.encode_descriptor("lost_blocks", help, None, MetricType::Counter)?;
    for tenant in tenants {
        for loss in &tenant.losses {
            count(&mut family, &labels(tenant, &[("reason", &loss.reason)]), loss.blocks)?;
        }
    }
    let help = "Dirty blocks that left otherwise than to make space";
    let mut family =
        encoder.encode_descriptor("lost_dirty_blocks", help, None, MetricType::Counter)?;
    for tenant in tenants {
        for loss in &tenant.losses {
            count(&mut family, &labels(tenant, &[("reason", &loss.reason)]), loss.dirty)?;
        }
    }
    Ok(())
}

fn requests(tenants: &[TenantStatus], encoder: &mut DescriptorEncoder) -> Result<(), Error> {
    for (name, help, value_of) in REQUESTS {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for tenant in tenants {
            for requests in &tenant.requests {
                count(
                    &mut family,
                    &labels(tenant, &[("kind", &requests.kind)]),
                    value_of(requests),
                )?;
            }
        }
    }
    let (name, help) = ("request_seconds", "Time from the arrival of a request to its answer");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for tenant in tenants {
        for requests in tenant.requests.iter().filter(|requests| requests.count > 0) {
            let labels = labels(tenant, &[("kind", &requests.kind)]);
            let bound = |bucket: &LatencyBucket| {
                (bucket.below_seconds.unwrap_or(f64::INFINITY), bucket.count)
            };
            let buckets: Vec<(f64, u64)> = requests.buckets.iter().map(bound).collect();
            let none: Option<&Exemplars> = None;
            let mut metric = family.encode_family(&labels)?;
            metric.encode_histogram(requests.seconds, requests.count, &buckets, none)?;
        }
    }
    Ok(())
}

fn count(
    family: &mut prometheus_client::encoding::MetricEncoder<'_>,
    labels: &Labels,
    value: u64,
) -> Result<(), Error> {
    family.encode_family(labels)?.encode_counter::<Labels, u64, f64>(&value, None)
}

/// The labels of a tenant's metric.
fn labels(tenant: &TenantStatus, others: &[(&'static str, &str)]) -> Labels {
    let own = ("tenant", tenant.name.clone());
    [own]
        .into_iter()
        .chain(others.iter().map(|(name, value)| (*name, (*value).to_owned())))
        .collect()
}
