//! What was served is what is simulated: a replay of the recording of a server gives its counters,
//! for every tenant.
//!
//! The recording has one clock for all volumes. The replay takes it volume by volume, as a user
//! would: `cachewright run` of the same stack, with the recording as the trace of each tenant.

use crate::served::{BLOCK, CAPACITY, Case, DEVICE_BYTES, Served, VOLUME_BLOCKS, names};
use crate::served::{TENANTS, open_server, serve};
use cachewright_cache::{Quotas, WriteMode};
use cachewright_experiment::{RunOptions, run};
use cachewright_live::io::open::{Access, open_file};
use cachewright_live::io::sim::{Fault, Sim, SimFile};
use cachewright_live::io::system::{Engine, SystemIo};
use cachewright_live::io::{FileId, Io, IoOp};
use cachewright_measure::Counts;
use cachewright_policy::{Need, entries};
use cachewright_types::Seed;
use serde_json::Value;
use std::path::Path;

fn is_shared(case: &Case) -> bool {
    matches!(case.quotas, Quotas::Shared(_))
}

/// The stack that was served, as a simulation of its recording.
fn stack(case: &Case, trace: &Path) -> String {
    let partition = if is_shared(case) { "shared" } else { "static" };
    let mut text = format!(
        "[cache]\ncapacity = \"{CAPACITY} blocks\"\nblock = \"{BLOCK}B\"\npolicy = \"{}\"\n\
         partition = \"{partition}\"\nwrite = \"{}\"\n[replay]\nwindows = 0\ncurves = false\n",
        case.policy,
        case.mode.word(),
    );
    for (tenant, name) in names().iter().enumerate() {
        let weight = if tenant == 0 { "weight = 2\n" } else { "" };
        let weight = if is_shared(case) { "" } else { weight };
        text += &format!(
            "[[tenant]]\nname = \"{name}\"\ntrace = \"{}\"\nvolume = \"{name}\"\n{weight}",
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
fn assert_alike(case: &Case, served: &[Counts], replayed: &[Value]) {
    assert_eq!(served.len(), replayed.len());
    for (tenant, (served, replayed)) in served.iter().zip(replayed).enumerate() {
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
    let server = open_server(io, case, files);
    let served = serve(io, server, case, &trace, may_fail);
    assert_eq!(served.recorded.stopped, None);
    // What is refused is not decided.
    assert!(may_fail || served.recorded.requests > case.requests);
    assert_alike(case, &served.counts, &replayed(case, &trace));
    served
}

fn simulated_files(seed: u64) -> (Sim, FileId, Vec<FileId>) {
    let mut sim = Sim::new(Seed(seed));
    let device = sim.add_file(SimFile::new(DEVICE_BYTES));
    let volume = |_| sim.add_file(SimFile::new(VOLUME_BLOCKS * BLOCK));
    let volumes = (0..TENANTS).map(volume).collect();
    (sim, device, volumes)
}

fn all_quotas() -> [Quotas; 2] {
    [Quotas::Shared(CAPACITY), Quotas::PerTenant(vec![32, 16, 16])]
}

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
    let (mut seed, mut hits, mut evictions) = (0, 0, 0);
    assert!(policies().len() > 10, "{:?}", policies());
    for policy in policies() {
        for mode in WriteMode::ALL.iter().copied() {
            for quotas in all_quotas() {
                seed += 1;
                let case = Case { policy, mode, quotas, requests: 1200, seed };
                let (mut sim, device, volumes) = simulated_files(seed);
                let served = check(&mut sim, (device, &volumes), &case, false);
                hits += served.counts.iter().map(Counts::hits).sum::<u64>();
                evictions += served.counts.iter().map(|counts| counts.evictions).sum::<u64>();
            }
        }
    }
    assert!(hits > 200 * seed && evictions > 200 * seed, "{hits}, {evictions} in {seed} cases");
}

#[test]
fn what_a_served_cache_loses_is_trimmed_in_its_recording() {
    let mut lost = 0;
    for (seed, policy) in (1000..).zip(["lru", "s3-fifo", "arc", "larc"]) {
        let quotas = Quotas::Shared(CAPACITY);
        let case = Case { policy, mode: WriteMode::WriteThrough, quotas, requests: 1500, seed };
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
            let quotas = all_quotas()[(index + other) % 2].clone();
            let seed = (2000 + 10 * index + other) as u64;
            let case = Case { policy, mode, quotas, requests: 800, seed };
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
