//! A replay that continues from the state of a warm server decides as the server did: counts and
//! quotas are those that the server had from any moment of the recording on.

use crate::product::{partitions, policies};
use crate::recording::{SIMULATED_NS, Served, assert_alike, plan_of, simulated_files, stack};
use crate::served::{Case, Clients, Facts, TENANTS, counts, names, open_server, quotas};
use cachewright_cache::{Shrink, WriteMode};
use cachewright_daemon::{Ahead, LivePlan};
use cachewright_experiment::{ExperimentError, RunOptions, run};
use cachewright_live::blocks::BlockServer;
use cachewright_live::io::Io;
use cachewright_live::record::{RecordFile, RecordedRequests};
use cachewright_stack::ServerTenants;
use cachewright_trace::{EncodedState, state_path};
use cachewright_types::measure::Counts;
use cachewright_types::{Nanos, Seed, TenantId};
use serde_json::Value;
use std::path::Path;
use std::sync::mpsc::channel;

/// Requests before the recording begins.
const BEFORE: u64 = 500;
/// Moments of each recording from which on replays count, the first of them its beginning: 1,110 of
/// all policies, partitioners and modes.
const MOMENTS: u64 = 10;
/// Requests between two moments, at random: at least and at most.
const BETWEEN: [u64; 2] = [20, 150];

/// A recording, and the one behind it.
const NAMES: [&str; 2] = ["2026-11-25T14-00-00.000Z.parquet", "2026-11-25T15-00-00.000Z.parquet"];

/// Writes what decides in a server, as its replica has it, beside a recording of this name.
fn write_state(server: &mut BlockServer, plan: &LivePlan, trace: &Path) {
    let (sender, saved) = channel();
    let begin = server.state_begin();
    let settings = plan.deciding().unwrap();
    assert!(server.save_decider(move |decider| {
        sender.send(EncodedState::of(begin, &settings, decider.unwrap()).unwrap()).unwrap();
    }));
    saved.recv().unwrap().write(&state_path(trace)).unwrap();
}

/// What a server had counted of some tenants in a part of its recording, and their quotas in the
/// end.
fn served(order: &[u16], since: &[Counts], until: &[Counts], quotas: &[u32]) -> Served {
    let each = || order.iter().map(|number| usize::from(*number));
    let counts = each().map(|number| until[number].since(&since[number])).collect();
    let (recorded, quotas) = (RecordedRequests::default(), each().map(|one| quotas[one]).collect());
    Served { counts, recorded, lost: 0, quotas, is_divided: false }
}

/// The tenants of a case in the order of its stack, and those that it does not have.
fn order_of(case: &Case) -> (Vec<u16>, Vec<TenantId>) {
    let order = match &case.facts.tenants[..] {
        [] => (0..TENANTS).collect(),
        some => some.to_vec(),
    };
    let removed = (0..TENANTS).filter(|tenant| !order.contains(tenant)).map(TenantId).collect();
    (order, removed)
}

/// Runs the stack of a case from a moment of a recording, with settings over it.
fn replayed(
    case: &Case,
    trace: &Path,
    moment: &str,
    set: &[(&str, &str)],
) -> Result<Vec<Value>, ExperimentError> {
    let text = stack(case, Path::new(&format!("{}@{moment}", trace.display())));
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let set = set.iter().map(owned).collect();
    let options = RunOptions { threads: 1, set, ..RunOptions::default() };
    let answer = run(&text, Path::new("served.toml"), &options, &|_| true)?;
    let case = &answer["cases"][0];
    if let Some(continued) = case["continued"].as_object() {
        let decided = continued["decided"].as_str();
        assert!(decided.is_some() && decided == continued["decided_by_server"].as_str());
    }
    Ok(case["tenants"].as_array().unwrap().clone())
}

/// Serves a case whose recording begins when the cache is warm, and replays it from its beginning
/// and from other moments of it.
fn check(case: &Case, folder: &Path) {
    check_behind(case, case, folder);
}

/// The same of a case that the server was reloaded with, after another one had divided its cache.
/// Tenants that the case does not have are removed then.
fn check_behind(before: &Case, case: &Case, folder: &Path) {
    let [trace, next] = NAMES.map(|name| folder.join(name));
    let (mut sim, device, volumes) = simulated_files(case.seed);
    let mut server = open_server(&mut sim, &plan_of(before).unwrap(), &[device], &volumes);
    server.replicate(plan_of(before).unwrap().decider().unwrap()).unwrap();
    let mut clients = Clients::new(case, false);
    clients.send(&mut sim, &mut server, case, BEFORE);
    let (order, removed) = order_of(case);
    let place = |number| order.iter().position(|served| *served == number);
    let numbered = names().into_iter().zip(0..).map(|(name, number)| (name, place(number)));
    let plan = plan_of(case).unwrap().numbered(&ServerTenants::new(numbered));
    removed.iter().for_each(|tenant| clients.leave(*tenant));
    if before.partition != case.partition || !removed.is_empty() {
        let ahead = vec![Ahead::default(); names().len()];
        let quotas = plan.quotas(&ahead, &[]).unwrap();
        let division = || plan.division(&ahead, &[]);
        server.divide_otherwise(&mut sim, &quotas, case.facts.shrink, division).unwrap();
    }
    for tenant in removed {
        server.remove_volume(tenant);
        while !server.has_gone(tenant) {
            clients.send(&mut sim, &mut server, case, 1);
        }
    }

    let origin_ns = server.last_decision().0;
    write_state(&mut server, &plan, &trace);
    let divisions = plan.divisions_head(Nanos(origin_ns));
    let file = RecordFile::create(&trace, names(), divisions.as_ref()).unwrap();
    server.record(file.sink());
    let mut moments = vec![(0, counts(&server))];
    let (mut rng, [least, most]) = (Seed(case.seed).derive("moments").rng(), BETWEEN);
    for _ in 0..MOMENTS {
        clients.send(&mut sim, &mut server, case, least + rng.below(most - least + 1));
        // Divisions that are due by now are made.
        server.advance(&mut sim);
        moments.push((server.next_decision(sim.now_ns()).0 - origin_ns, counts(&server)));
    }
    // Nothing comes behind the last one.
    moments.pop();
    server.end_recording(&mut sim).unwrap();
    file.finish().unwrap();
    write_state(&mut server, &plan, &next);
    std::fs::write(&next, "").unwrap();

    let (ended, quotas) = (counts(&server), quotas(&server));
    for (moment, begun) in moments {
        let rest = served(&order, &begun, &ended, &quotas);
        assert_alike(case, &rest, &replayed(case, &trace, &format!("{moment}ns"), &[]).unwrap());
    }
}

fn case(policy: &'static str, partition: &'static str, seed: u64) -> Case {
    Case {
        policy,
        mode: WriteMode::WriteBack,
        partition,
        facts: Facts::default(),
        interval_ns: SIMULATED_NS,
        requests: BEFORE + MOMENTS * BETWEEN[1],
        seed,
    }
}

/// The same with tenants that give up blocks as needed.
fn as_needed(case: Case) -> Case {
    let facts = Facts { shrink: Shrink::AsNeeded, ..case.facts };
    Case { facts, ..case }
}

#[test]
fn every_policy_continues_where_the_server_was() {
    for (seed, policy) in (1..).zip(policies()) {
        for partition in ["shared", "hull"] {
            let folder = tempfile::tempdir().unwrap();
            check(&case(policy, partition, seed), folder.path());
        }
    }
}

#[test]
fn every_partitioner_continues_where_the_server_was() {
    for (seed, partition) in (100..).zip(partitions()) {
        for policy in ["lru", "arc", "duel-x"] {
            let folder = tempfile::tempdir().unwrap();
            check(&case(policy, partition, seed), folder.path());
        }
        let folder = tempfile::tempdir().unwrap();
        check(&as_needed(case("s3-fifo", partition, seed)), folder.path());
    }
    let own = "{ name = \"hull\", own_policy = true }";
    for mode in WriteMode::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let facts = Facts { cutoff_bytes: 12 << 10, ..Facts::default() };
        let case = Case { mode, facts, ..case("s3-fifo", own, 7) };
        check(&case, folder.path());
    }
}

#[test]
fn a_recording_behind_a_reload_continues_by_the_new_division() {
    for (seed, after) in (200..).zip(["dp", "memshare", "static", "soft-qos"]) {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (case("s3-fifo", "hull", seed), case("s3-fifo", after, seed));
        check_behind(&before, &after, folder.path());
        // From at once to as needed, and back.
        check_behind(&before, &as_needed(after.clone()), folder.path());
        check_behind(&as_needed(before), &after, folder.path());
    }
}

#[test]
fn a_recording_behind_a_reload_that_removed_a_tenant_continues() {
    // A reload does not remove tenants that share a pool with some others.
    let partitions = partitions().into_iter().filter(|partition| *partition != "costpi");
    for (seed, partition) in (300..).zip(partitions) {
        for policy in ["lru", "s3-fifo"] {
            let folder = tempfile::tempdir().unwrap();
            let before = case(policy, partition, seed);
            // Those that stay are in another order in the new stack.
            let facts = Facts { tenants: vec![2, 0], ..Facts::default() };
            let after = Case { facts, ..before.clone() };
            check_behind(&before, &after, folder.path());
            let trace = folder.path().join(NAMES[0]);
            let whole = replayed(&before, &trace, "0s", &[]).unwrap_err().to_string();
            let expected = "expected `volume-0`, `volume-2`, which the server served";
            assert!(whole.contains(expected), "{whole}");
        }
    }
    // A tenant that goes as its blocks are needed, and one tenant that has all.
    for (seed, tenants) in (400..).zip([vec![2, 0], vec![1], vec![1, 0, 2]]) {
        let folder = tempfile::tempdir().unwrap();
        let before = as_needed(case("arc", "hull", seed));
        let facts = Facts { tenants, ..before.facts.clone() };
        check_behind(&before, &Case { facts, ..before.clone() }, folder.path());
    }
}

#[test]
fn what_cannot_continue_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let case = case("lru", "hull", 3);
    check(&case, folder.path());
    // Of another name, which says no time of the day.
    let (named, trace) = (folder.path().join(NAMES[0]), folder.path().join("served.parquet"));
    std::fs::rename(&named, &trace).unwrap();
    std::fs::rename(state_path(&named), state_path(&trace)).unwrap();
    let refusal = |moment: &str, set: &[(&str, &str)]| {
        replayed(&case, &trace, moment, set).unwrap_err().to_string()
    };
    type Settings = [(&'static str, &'static str)];
    let cases: [(&str, &Settings, &str); 9] = [
        (
            "0s",
            &[("cache.policy", "arc")],
            "`cache.policy`: found `{ name = \"arc\" }`, expected `{",
        ),
        ("0s", &[("cache.capacity", "65 blocks")], "`cache.capacity`: found `65 blocks`, expected"),
        ("0s", &[("seed", "7")], "`seed`: found `7`, expected `1`, with which the server decided"),
        ("0s", &[("replay.causes", "all")], "and `replay.causes`, expected none"),
        ("0s", &[("replay.warmup", "1s")], "`replay.warmup`: found `1s` with a moment in"),
        ("0s", &[("replay.loop", "closed")], "`replay.loop`: found `closed` with a moment in"),
        ("3h", &[], "found 3h for traces that span"),
        ("soon", &[], "found `soon` behind `@`, expected a time since the beginning of a"),
        ("14:05", &[], "expected a time since its beginning, such as `@300s`"),
    ];
    for (moment, set, expected) in cases {
        let error = refusal(moment, set);
        assert!(error.contains(expected), "{error}\nnot\n{expected}");
    }
    // What is damaged is not continued from; without it the cache is empty at first.
    let path = state_path(&trace);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 9;
    bytes[last] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    assert!(refusal("0s", &[]).contains("served.parquet.state: found a file"));
    std::fs::remove_file(&path).unwrap();
    let empty = replayed(&case, &trace, "0s", &[]).unwrap();
    let whole = replayed(&case, &trace, "0s", &[("cache.policy", "arc")]).unwrap();
    assert_eq!(empty.len(), whole.len());
}
