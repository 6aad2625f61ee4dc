//! What was served is what is simulated: a replay of the recording of a server gives its counters,
//! for every tenant.
//!
//! The recording has one clock for all volumes. The replay takes it volume by volume, as a user
//! would: `cachewright run` of the same stack, with the recording as the trace of each tenant.

use crate::served::{BLOCK, CAPACITY, Case, DEVICE_BYTES, VOLUME_BYTES, names};
use crate::served::{TENANTS, open_server, serve};
use cachewright_daemon::{LiveError, LivePlan};
use cachewright_experiment::{RunOptions, run};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{FileId, Io};
use cachewright_partition::Need;
use cachewright_trace::divisions_path;
use cachewright_types::{Nanos, Seed};
use serde_json::Value;
use std::path::Path;

pub use crate::served::Served;

/// Time between two divisions, of the simulated clock and of a real one.
pub const SIMULATED_NS: u64 = 2_000_000;
pub const REAL_NS: u64 = 1_000_000;

/// Devices of a replay that take some time; dirty blocks are written back when they leave.
const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\nread = \"100us\"\n\
    write = \"60us\"\nparallelism = 32\n[device.backing]\nmodel = \"fixed-latency\"\n\
    read = \"1ms\"\nwrite = \"1ms\"\nparallelism = 4\nper_tenant = true\n[machine]\n\
    system = \"tiered\"\nwrite_back = \"on-eviction\"\n";

/// The needs of a partitioner, by its name or a table that begins with it.
fn needs(partition: &str) -> &'static [Need] {
    let name = partition.split('"').nth(1).unwrap_or(partition);
    cachewright_partition::entry(name).unwrap().needs
}

/// A stack that is served.
pub fn stack(case: &Case, trace: &Path) -> String {
    let Case { policy, mode, partition, interval_ns, facts, .. } = case;
    let named = format!("\"{partition}\"");
    let partition = if partition.starts_with('{') { *partition } else { &named };
    let layout = if facts.others.is_empty() { "striped" } else { "dedicated" };
    let share = if facts.history.is_some() { "" } else { "profile_share = 0.0\n" };
    let cutoff_bytes = facts.cutoff_bytes;
    let mut text = format!(
        "[cache]\ncapacity = \"{CAPACITY} blocks\"\nblock = \"{BLOCK}B\"\npolicy = \"{policy}\"\n\
         sequential_cutoff = \"{cutoff_bytes}B\"\nshrink = \"{}\"\n\
         layout = \"{layout}\"\npartition = {partition}\nwrite = \"{}\"\n\
         [serve]\ndevices = [\"cache.img\"]\n\
         [replay]\nwindows = 0\ncurves = false\ninterval = \"{interval_ns}ns\"\n{share}",
        facts.shrink.word(),
        mode.word(),
    );
    let all: Vec<u16> = (0..TENANTS).collect();
    for &tenant in if facts.tenants.is_empty() { &all } else { &facts.tenants } {
        let name = &names()[usize::from(tenant)];
        let facts = match (case.partition, tenant) {
            ("static", 0) => "weight = 2\n",
            ("costpi", 0) => "sensitive = true\n",
            ("soft-qos" | "soft-qos-x", 0) => "goal_hit_ratio = 0.5\n",
            ("soft-qos" | "soft-qos-x", 1) => "goal_hit_ratio = 0.2\n",
            _ => "",
        };
        text += &format!(
            "[[tenant]]\nname = \"{name}\"\ntrace = \"{}\"\nvolume = \"{name}\"\n\
             backing = \"{name}.img\"\n{facts}",
            trace.display()
        );
        let history = case.facts.history.iter();
        history.for_each(|path| text += &format!("history = \"{}\"\n", path.display()));
    }
    text
}

/// The plan of a case's server. Errors: it is refused.
pub fn plan_of(case: &Case) -> Result<LivePlan, LiveError> {
    LivePlan::read(&stack(case, Path::new("served.parquet")), Path::new("served.toml"), &[])
}

/// The counters of a replay, by tenant, under the names of its answer. Where the server divided by
/// response times, the recorded divisions are made again.
pub fn replayed(case: &Case, trace: &Path, with_devices: bool) -> Vec<Value> {
    let mut text = stack(case, trace);
    let is_priced = needs(case.partition).contains(&Need::Prices);
    let mut set = vec![("cache.layout".to_owned(), "striped".to_owned())];
    if is_priced {
        let path = divisions_path(trace).display().to_string();
        set.push(("replay.divisions".to_owned(), path));
    }
    if with_devices {
        text += DEVICES;
    }
    let options = RunOptions { threads: 1, set, ..RunOptions::default() };
    let answer = run(&text, Path::new("served.toml"), &options, &|_| true).unwrap();
    assert_eq!(answer["cases"].as_array().unwrap().len(), 1);
    answer["cases"][0]["tenants"].as_array().unwrap().clone()
}

/// Counters of a served tenant beside those of its replay.
pub fn assert_alike(case: &Case, all: &Served, replayed: &[Value]) {
    assert_eq!(all.counts.len(), replayed.len());
    for (tenant, (served, replayed)) in all.counts.iter().zip(replayed).enumerate() {
        let pairs = [
            ("read_accesses", served.reads),
            ("read_hits", served.read_hits),
            ("write_accesses", served.writes),
            ("write_hits", served.write_hits),
            ("requests", served.requests),
            ("request_hits", served.request_hits),
            ("admissions", served.admissions()),
            ("evictions", served.evictions),
            ("invalidations", served.invalidations),
            ("writebacks", served.writebacks),
            ("cut_off_requests", served.cut_off_requests),
            ("cut_off_bytes", served.cut_off_bytes),
            ("quota_blocks", all.quotas[tenant].into()),
        ];
        for (name, served) in pairs {
            // A replay without a cut-off counts none.
            let simulated = replayed.get(name).map_or(0, |count| count.as_u64().unwrap());
            assert_eq!(served, simulated, "{case:?}: {name} of tenant {tenant}, then simulated");
        }
    }
}

/// Serves a case and records it; returns what was served.
pub fn recorded(io: &mut impl Io, files: (FileId, &[FileId]), case: &Case, trace: &Path) -> Served {
    serve_into(io, files, case, trace, false)
}

fn serve_into(
    io: &mut impl Io,
    files: (FileId, &[FileId]),
    case: &Case,
    trace: &Path,
    may_fail: bool,
) -> Served {
    let plan = LivePlan::read(&stack(case, trace), Path::new("served.toml"), &[]).unwrap();
    let (device, volumes) = files;
    let devices: Vec<FileId> =
        [device].into_iter().chain(case.facts.others.iter().copied()).collect();
    let server = open_server(io, &plan, &devices, volumes);
    let served = serve(io, server, case, trace, plan.divisions_head(Nanos(0)), may_fail);
    assert_eq!(served.is_divided, needs(case.partition).contains(&Need::Interval), "{case:?}");
    assert_eq!(served.is_divided, divisions_path(trace).exists(), "{case:?}");
    served
}

/// Serves a case, replays its recording and compares the counters; returns what was served.
pub fn check(io: &mut impl Io, files: (FileId, &[FileId]), case: &Case, may_fail: bool) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("served.parquet");
    let served = serve_into(io, files, case, &trace, may_fail);
    assert_eq!(served.recorded.stopped, None);
    // What is refused is not decided.
    assert!(may_fail || served.recorded.requests > case.requests);
    assert_alike(case, &served, &replayed(case, &trace, false));
    if case.facts.devices {
        assert_alike(case, &served, &replayed(case, &trace, true));
    }
    served
}

/// A simulated device and volumes.
pub fn simulated_files(seed: u64) -> (Sim, FileId, Vec<FileId>) {
    let mut sim = Sim::new(Seed(seed));
    let device = sim.add_file(SimFile::new(DEVICE_BYTES));
    let volume = |_| sim.add_file(SimFile::new(VOLUME_BYTES));
    let volumes = (0..TENANTS).map(volume).collect();
    (sim, device, volumes)
}
