//! What was served is what is simulated: a replay of the recording of a server gives its counters,
//! for every tenant.
//!
//! The recording has one clock for all volumes. The replay takes it volume by volume, as a user
//! would: `cachewright run` of the same stack, with the recording as the trace of each tenant.

use crate::served::{BLOCK, CAPACITY, Case, DEVICE_BYTES, Served, VOLUME_BLOCKS, names};
use crate::served::{TENANTS, open_server, serve};
use cachewright_cache::WriteMode;
use cachewright_daemon::LivePlan;
use cachewright_experiment::{RunOptions, run};
use cachewright_live::io::open::{Access, open_file};
use cachewright_live::io::sim::{Fault, Sim, SimFile};
use cachewright_live::io::system::{Engine, SystemIo};
use cachewright_live::io::{FileId, Io, IoOp};
use cachewright_measure::Counts;
use cachewright_partition::Need as PartitionNeed;
use cachewright_policy::{Need, entries};
use cachewright_trace::divisions_path;
use cachewright_types::Seed;
use serde_json::Value;
use std::path::Path;

/// Whether a replay needs the recorded divisions: response times are those of the server.
fn is_recorded(partition: &str) -> bool {
    cachewright_partition::entry(partition).unwrap().needs.contains(&PartitionNeed::Prices)
}

/// A stack that is served, and simulated from its recording.
fn stack(case: &Case, trace: &Path) -> String {
    let Case { policy, mode, partition, interval_ns, .. } = case;
    let divisions = match is_recorded(partition) {
        true => format!("divisions = \"{}\"\n", divisions_path(trace).display()),
        false => String::new(),
    };
    let mut text = format!(
        "[cache]\ncapacity = \"{CAPACITY} blocks\"\nblock = \"{BLOCK}B\"\npolicy = \"{policy}\"\n\
         partition = \"{partition}\"\nwrite = \"{}\"\n[serve]\ndevices = [\"cache.img\"]\n\
         [replay]\nwindows = 0\ncurves = false\ninterval = \"{interval_ns}ns\"\n\
         profile_share = 0.0\n{divisions}",
        mode.word(),
    );
    for (tenant, name) in names().iter().enumerate() {
        let facts = match (*partition, tenant) {
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
    }
    text
}

/// The counters of a replay, by tenant, under the names of its answer.
fn replayed(case: &Case, trace: &Path) -> Vec<Value> {
    let (text, options) = (stack(case, trace), RunOptions { threads: 1, ..RunOptions::default() });
    let answer = run(&text, Path::new("served.toml"), &options, &|_| true).unwrap();
    assert_eq!(answer["cases"].as_array().unwrap().len(), 1);
    answer["cases"][0]["tenants"].as_array().unwrap().clone()
}

/// Counters of a served tenant beside those of its replay.
fn assert_alike(case: &Case, all: &Served, replayed: &[Value]) {
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
            ("quota_blocks", all.quotas[tenant].into()),
        ];
        for (name, served) in pairs {
            let simulated = replayed[name].as_u64().unwrap();
            assert_eq!(served, simulated, "{case:?}: {name} of tenant {tenant}, then simulated");
        }
    }
}

/// Serves a case, replays its recording and compares the counters; returns what was served.
fn check(io: &mut impl Io, files: (FileId, &[FileId]), case: &Case, may_fail: bool) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("served.parquet");
    let plan = LivePlan::read(&stack(case, &trace), Path::new("served.toml"), &[]).unwrap();
    let server = open_server(io, &plan, files);
    let served = serve(io, server, case, (&trace, plan.divisions_head()), may_fail);
    assert_eq!(served.recorded.stopped, None);
    // What is refused is not decided.
    assert!(may_fail || served.recorded.requests > case.requests);
    assert_alike(case, &served, &replayed(case, &trace));
    served
}

fn simulated_files(seed: u64) -> (Sim, FileId, Vec<FileId>) {
    let mut sim = Sim::new(Seed(seed));
    let device = sim.add_file(SimFile::new(DEVICE_BYTES));
    let volume = |_| sim.add_file(SimFile::new(VOLUME_BLOCKS * BLOCK));
    let volumes = (0..TENANTS).map(volume).collect();
    (sim, device, volumes)
}

/// Every partitioner that a server honours, but for those that are like one of these.
const PARTITIONS: [&str; 6] = ["shared", "static", "hull", "soft-qos", "soft-qos-x", "icache-x"];
/// Time between two divisions, of the simulated clock and of a real one.
const SIMULATED_NS: u64 = 2_000_000;
const REAL_NS: u64 = 1_000_000;

/// Policies that need nothing that only a replay has.
fn policies() -> Vec<&'static str> {
    let missing = [Need::Future, Need::Benefit, Need::Model, Need::Code];
    let blind = entries()
        .into_iter()
        .filter(|entry| !entry.needs.iter().any(|need| missing.contains(need)));
    blind.map(|entry| entry.name).collect()
}

#[test]
fn a_served_cache_counts_what_a_replay_of_its_recording_counts() {
    let (mut seed, mut hits, mut evictions, mut moved) = (0, 0, 0, 0);
    assert!(policies().len() > 10, "{:?}", policies());
    for policy in policies() {
        for mode in WriteMode::ALL.iter().copied() {
            for partition in PARTITIONS {
                seed += 1;
                let interval_ns = SIMULATED_NS;
                let case = Case { policy, mode, partition, interval_ns, requests: 1200, seed };
                let (mut sim, device, volumes) = simulated_files(seed);
                let served = check(&mut sim, (device, &volumes), &case, false);
                hits += served.counts.iter().map(Counts::hits).sum::<u64>();
                evictions += served.counts.iter().map(|counts| counts.evictions).sum::<u64>();
                let others = [22, 21, 21] != served.quotas[..];
                moved += u64::from(!matches!(partition, "shared" | "static") && others);
            }
        }
    }
    assert!(hits > 200 * seed && evictions > 200 * seed, "{hits}, {evictions} in {seed} cases");
    assert!(moved > seed / 2, "{moved} of {seed} cases ended with other quotas than at first");
}

#[test]
fn what_a_served_cache_loses_is_trimmed_in_its_recording() {
    let mut lost = 0;
    for (seed, policy) in (1000..).zip(["lru", "s3-fifo", "arc", "larc"]) {
        let partition = if seed % 2 == 0 { "shared" } else { "hull" };
        let (mode, interval_ns) = (WriteMode::WriteThrough, SIMULATED_NS);
        let case = Case { policy, mode, partition, interval_ns, requests: 1500, seed };
        let (mut sim, device, volumes) = simulated_files(seed);
        let mut chance = Seed(seed).derive("faults").rng();
        sim.set_faults(Box::new(move |number, op| {
            let block = matches!(op, IoOp::Read { file, buffer, .. }
                if *file == device && buffer.len() as u64 == BLOCK);
            (block && number > 500 && chance.below(4) == 0).then_some(Fault::Flipped(100))
        }));
        lost += check(&mut sim, (device, &volumes), &case, true).lost;
    }
    assert!(lost > 100, "{lost}");
}

fn check_on(engine: Engine) {
    for (index, policy) in ["lru", "s3-fifo", "oc-smq"].into_iter().enumerate() {
        for (other, mode) in WriteMode::ALL.iter().copied().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let mut io = SystemIo::new(engine).unwrap();
            let mut file = |name: &str, bytes| {
                let path = folder.path().join(name);
                std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
                io.add_file(open_file(&path, Access::Write).unwrap())
            };
            let device = file("device", DEVICE_BYTES);
            let volumes: Vec<FileId> =
                names().iter().map(|name| file(name, VOLUME_BLOCKS * BLOCK)).collect();
            let partition = PARTITIONS[(index + other) % PARTITIONS.len()];
            let seed = (2000 + 10 * index + other) as u64;
            let case = Case { policy, mode, partition, interval_ns: REAL_NS, requests: 800, seed };
            check(&mut io, (device, &volumes), &case, false);
        }
    }
}

#[test]
fn served_by_threads_agrees() {
    check_on(Engine::Threads);
}

#[test]
fn served_by_io_uring_agrees() {
    let refusal = SystemIo::new(Engine::Uring).err();
    match refusal {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => check_on(Engine::Uring),
    }
}
