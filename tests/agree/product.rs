//! Every policy under every partitioner in every write mode, served and simulated.
//!
//! For: the whole product on the simulated device and on both kinds of real input and output. Must
//! never know: how a case is served or replayed. On real devices a part of it runs, the same each
//! time; `make agree` sets `CACHEWRIGHT_AGREE` and runs all of it.

use crate::recording::{REAL_NS, SIMULATED_NS, Served, check, plan_of, simulated_files};
use crate::served::{BLOCK, Case, DEVICE_BYTES, Facts, VOLUME_BYTES, names};
use cachewright_cache::{Shrink, WriteMode};
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::sim::{Fault, SimFile};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{FileId, IoOp};
use cachewright_partition::Need as PartitionNeed;
use cachewright_policy::Need;
use cachewright_types::Seed;
use cachewright_types::measure::Counts;

/// Policies that need nothing that only a replay has.
pub fn policies() -> Vec<&'static str> {
    let missing = [Need::Future, Need::Benefit, Need::Model, Need::Code];
    let entries = cachewright_policy::entries().into_iter();
    let blind = entries.filter(|entry| !entry.needs.iter().any(|need| missing.contains(need)));
    blind.map(|entry| entry.name).collect()
}

/// Partitioners that need no models, no future and no channels of a drive.
pub fn partitions() -> Vec<&'static str> {
    let missing = [
        PartitionNeed::Model,
        PartitionNeed::JointModel,
        PartitionNeed::Future,
        PartitionNeed::Channels,
    ];
    let entries = cachewright_partition::entries().into_iter();
    let simple = entries.filter(|entry| !entry.needs.iter().any(|need| missing.contains(need)));
    simple.map(|entry| entry.name).collect()
}

fn case(policy: &'static str, partition: &'static str, mode: WriteMode) -> Case {
    Case {
        policy,
        mode,
        partition,
        facts: Facts::default(),
        interval_ns: SIMULATED_NS,
        requests: 1200,
        seed: 0,
    }
}

/// All cases in a fixed order, each with a seed of its own.
fn product() -> Vec<Case> {
    let mut cases = Vec::new();
    for policy in policies() {
        for mode in WriteMode::ALL.iter().copied() {
            for partition in partitions() {
                let seed = cases.len() as u64 + 1;
                cases.push(Case { seed, ..case(policy, partition, mode) });
            }
        }
    }
    cases
}

/// Whether the whole product runs on real devices.
fn is_whole() -> bool {
    std::env::var_os("CACHEWRIGHT_AGREE").is_some_and(|value| value == "all")
}

#[test]
fn a_server_takes_all_that_the_registries_have_but_for_what_only_a_replay_has() {
    let is_served = |policy, partition| plan_of(&case(policy, partition, WriteMode::WriteBack));
    let taken = cachewright_policy::entries().into_iter().map(|entry| entry.name);
    let taken: Vec<&str> = taken.filter(|name| is_served(name, "shared").is_ok()).collect();
    assert_eq!(taken, policies());
    let taken = cachewright_partition::entries().into_iter().map(|entry| entry.name);
    let taken: Vec<&str> = taken.filter(|name| is_served("lru", name).is_ok()).collect();
    assert_eq!(taken, partitions());
}

#[test]
fn a_served_cache_counts_what_a_replay_of_its_recording_counts() {
    let (mut hits, mut evictions, mut moved, mut divided) = (0, 0, 0, 0);
    let cases = product();
    assert_eq!(cases.len(), policies().len() * partitions().len() * WriteMode::ALL.len());
    for case in &cases {
        let (mut sim, device, volumes) = simulated_files(case.seed);
        let served = check(&mut sim, (device, &volumes), case, false);
        hits += served.counts.iter().map(Counts::hits).sum::<u64>();
        evictions += served.counts.iter().map(|counts| counts.evictions).sum::<u64>();
        if served.is_divided {
            divided += 1;
            moved += u64::from([22, 21, 21] != served.quotas[..]);
        }
    }
    let count = cases.len() as u64;
    assert!(hits > 200 * count && evictions > 200 * count, "{hits}, {evictions} in {count} cases");
    assert!(2 * divided >= count, "{divided} of {count} cases divide while they serve");
    assert!(4 * moved > 3 * divided, "{moved} of {divided} ended with other quotas than at first");
}

#[test]
fn what_a_served_cache_loses_is_trimmed_in_its_recording() {
    for mode in [WriteMode::WriteBack, WriteMode::WriteThrough, WriteMode::WriteAround] {
        let mut lost = 0;
        for (seed, policy) in (1000..).zip(["lru", "s3-fifo", "arc", "larc"]) {
            let partition = ["shared", "hull", "icache-x"][seed as usize % 3];
            let case = Case { requests: 1500, seed, ..case(policy, partition, mode) };
            let (mut sim, device, volumes) = simulated_files(seed);
            let mut chance = Seed(seed).derive("faults").rng();
            sim.set_faults(Box::new(move |number, op| {
                let block = matches!(op, IoOp::Read { file, buffer, .. }
                    if *file == device && buffer.len() as u64 == BLOCK);
                (block && number > 500 && chance.below(4) == 0).then_some(Fault::Flipped(100))
            }));
            lost += check(&mut sim, (device, &volumes), &case, true).lost;
        }
        assert!(lost > 40, "{lost} blocks in {mode:?}");
    }
}

/// Under every policy and partitioner.
#[test]
fn what_tenants_give_up_as_needed_agrees() {
    let partitions = partitions();
    for (seed, policy) in (4000..).zip(policies()) {
        for (index, mode) in WriteMode::ALL.iter().copied().enumerate() {
            let partition = partitions[(seed as usize * 4 + index) % partitions.len()];
            let facts = Facts { shrink: Shrink::AsNeeded, ..Facts::default() };
            let case = Case { seed, facts, ..case(policy, partition, mode) };
            let (mut sim, device, volumes) = simulated_files(seed);
            check(&mut sim, (device, &volumes), &case, false);
        }
    }
}

/// A layout changes where content lies, and no count: each tenant has a device of its own.
#[test]
fn what_is_served_under_a_layout_counts_what_a_replay_without_one_counts() {
    for (seed, policy) in (3000..).zip(["lru", "s3-fifo", "arc", "larc", "2q", "fifo"]) {
        for (index, mode) in WriteMode::ALL.iter().copied().enumerate() {
            let partition = ["shared", "static", "hull", "icache-x"][(seed as usize + index) % 4];
            let (mut sim, device, volumes) = simulated_files(seed);
            let others = (1..3).map(|_| sim.add_file(SimFile::new(DEVICE_BYTES))).collect();
            let facts = Facts { others, ..Facts::default() };
            let case = Case { seed, facts, ..case(policy, partition, mode) };
            check(&mut sim, (device, &volumes), &case, false);
        }
    }
}

/// The recordings of some servers are the histories of others.
#[test]
fn what_is_taken_ahead_from_a_history_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("before.parquet");
    let (mut sim, device, volumes) = simulated_files(7);
    let before = Case { seed: 7, ..case("lru", "shared", WriteMode::WriteBack) };
    let before: Served =
        crate::recording::recorded(&mut sim, (device, &volumes), &before, &history);
    assert!(before.recorded.requests > 1200);
    let ahead = [
        "soft-qos",
        "{ name = \"hull\", ahead = true }",
        "{ name = \"hull\", ahead = true, own_policy = true }",
    ];
    for (seed, partition) in (2000..).zip(ahead) {
        for policy in ["lru", "s3-fifo", "oc-smq"] {
            let facts = Facts { history: Some(history.clone()), ..Facts::default() };
            let case = Case { seed, facts, ..case(policy, partition, WriteMode::WriteBack) };
            let (mut sim, device, volumes) = simulated_files(seed);
            let served = check(&mut sim, (device, &volumes), &case, false);
            assert_ne!(served.quotas, [22, 21, 21], "{case:?}");
            let plan = plan_of(&case).unwrap();
            let known = plan.ahead().unwrap();
            let found = known.iter().all(|one| !one.profile.is_empty() || one.curve.is_some());
            assert!(found && known.len() == 3, "{known:?}");
        }
    }
}

/// A replay decides which requests go past the cache as the server did, without devices and on a
/// machine, under every policy and write mode.
#[test]
fn a_replay_cuts_off_what_the_server_cut_off() {
    for (index, policy) in policies().into_iter().enumerate() {
        let partitions = partitions();
        let (partition, modes) = (partitions[index % partitions.len()], WriteMode::ALL);
        let (mode, seed) = (modes[index % modes.len()], 5000 + index as u64);
        let facts = Facts { devices: true, cutoff_bytes: 2 * BLOCK, ..Facts::default() };
        let case = Case { seed, facts, ..case(policy, partition, mode) };
        let (mut sim, device, volumes) = simulated_files(seed);
        let served = check(&mut sim, (device, &volumes), &case, false);
        for counts in &served.counts {
            let (cut_off, all) = (counts.cut_off_requests, counts.requests);
            assert!(10 * cut_off > all && cut_off < all, "{cut_off} of {all} requests");
        }
    }
}

/// Replayed on a machine that writes back what leaves, too.
#[test]
fn a_replay_on_devices_counts_the_same() {
    for (index, policy) in policies().into_iter().enumerate() {
        let partitions = partitions();
        let (partition, modes) = (partitions[index % partitions.len()], WriteMode::ALL);
        let (mode, seed) = (modes[index / 2 % modes.len()], 3000 + index as u64);
        let facts = Facts { devices: true, ..Facts::default() };
        let case = Case { seed, facts, ..case(policy, partition, mode) };
        let (mut sim, device, volumes) = simulated_files(seed);
        check(&mut sim, (device, &volumes), &case, false);
    }
}

/// A part of the product in which each policy stands at least once, each partitioner and mode
/// several times.
fn sample() -> Vec<Case> {
    let (policies, partitions, modes) = (policies(), partitions(), WriteMode::ALL);
    let one = |index: usize| {
        let (policy, partition) =
            (policies[index % policies.len()], partitions[index % partitions.len()]);
        Case { seed: 2000 + index as u64, ..case(policy, partition, modes[index * 3 / 2 % 4]) }
    };
    let cases: Vec<Case> = (0..policies.len().max(2 * partitions.len())).map(one).collect();
    let has = |test: &dyn Fn(&Case) -> bool| cases.iter().filter(|case| test(case)).count();
    assert!(partitions.iter().all(|name| has(&|case| case.partition == *name) > 1));
    assert!(modes.iter().all(|mode| has(&|case| case.mode == *mode) > 2));
    cases
}

fn check_on(engine: EngineChoice) {
    let cases = if is_whole() { product() } else { sample() };
    for case in cases {
        let case = Case { interval_ns: REAL_NS, requests: 800, ..case };
        let folder = tempfile::tempdir().unwrap();
        let mut io = SystemIo::new(engine).unwrap();
        let mut file = |name: &str, bytes| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            io.add_file(open_file(&path, FileAccess::Write).unwrap())
        };
        let device = file("device", DEVICE_BYTES);
        let volumes: Vec<FileId> = names().iter().map(|name| file(name, VOLUME_BYTES)).collect();
        check(&mut io, (device, &volumes), &case, false);
    }
}

#[test]
fn served_by_threads_agrees() {
    check_on(EngineChoice::Threads);
}

#[test]
fn served_by_io_uring_agrees() {
    let refusal = SystemIo::new(EngineChoice::Uring).err();
    match refusal {
        Some(refusal) => eprintln!("skipped: {refusal}"),
        None => check_on(EngineChoice::Uring),
    }
}
