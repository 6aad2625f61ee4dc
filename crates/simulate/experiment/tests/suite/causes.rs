//! `replay.causes`: causes sum to misses under every policy and partitioner, lru misses for others
//! exactly what sharing costs it, and for other policies what is predicted stands beside what is
//! found.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, choices, run};
use common::{answer_to, number, pairs, quiet, two_traces};
use serde_json::Value;
use std::path::PathBuf;

/// The parts of a tenant's causes that together are its misses.
const PARTS: [&str; 11] = [
    "first_use",
    "trimmed",
    "lost",
    "in_flight",
    "bypassed",
    "policy",
    "quota",
    "division",
    "pushed_out",
    "capacity",
    "beyond",
];

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Checks every tenant of a case.
fn check(case: &Value) {
    for (place, tenant) in case["tenants"].as_array().unwrap().iter().enumerate() {
        let causes = &tenant["causes"];
        let sum: u64 = PARTS.iter().filter_map(|part| causes[part].as_u64()).sum();
        assert_eq!(sum, count(&tenant["misses"]), "{causes} of {case}");
        let by: Vec<u64> = causes["pushed_out_by"].as_array().unwrap().iter().map(count).collect();
        assert_eq!((by.iter().sum::<u64>(), by[place]), (count(&causes["pushed_out"]), 0));
    }
}

const STACK: &str = concat!(
    "[cache]\ncapacity = \"64 blocks\"\n[replay]\ncauses = \"all\"\ninterval = \"20ms\"\n\
     curves = false\n",
    two_tenants!()
);

/// Every combination of the registries that runs on a small mix. Schemes that need what it lacks
/// are left out by name of the need.
#[test]
fn causes_sum_to_misses_under_every_policy_and_partitioner() {
    let folder = two_traces("causes-all", [(3_000, 150); 2]);
    let origin = folder.path.join("stack.toml");
    let goals = "goal_hit_ratio = 0.4\n";
    let text = STACK.replace("trace = \"a.csv\"\n", &format!("trace = \"a.csv\"\n{goals}"));
    let names = |key: &str| -> Vec<String> {
        let all = choices(&text, &origin, &RunOptions::default(), key).unwrap();
        let fit = all.into_iter().filter(|choice| choice.refused.is_none());
        fit.map(|choice| choice.name.to_owned()).collect()
    };
    let (policies, partitioners) = (names("policy"), names("partition"));
    assert!(policies.len() > 25 && partitioners.len() > 8, "{policies:?} {partitioners:?}");
    let divided = |vary: Vec<(String, Vec<String>)>| {
        let options = RunOptions { vary, ..RunOptions::default() };
        let found = run(&text, &origin, &options, &quiet).unwrap();
        found["cases"].as_array().unwrap().iter().for_each(check);
    };
    divided(vec![("policy".into(), policies), ("partition".into(), partitioners)]);
}

fn misses(case: &Value, tenant: usize) -> u64 {
    count(&case["tenants"][tenant]["misses"])
}

/// A tenant of the bundled volumes alone in a cache of the same size, or all of them.
fn bundled(policy: &str, tenants: &[&str]) -> Value {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../");
    let mut text =
        "[cache]\ncapacity = \"64MiB\"\n[replay]\ncauses = \"all\"\ncurves = false\n".to_owned();
    for tenant in tenants {
        text += &format!("[[tenant]]\nname = \"{tenant}\"\ntrace = \"data/{tenant}.csv.zst\"\n");
    }
    let options = RunOptions { set: pairs(&[("policy", policy)]), ..RunOptions::default() };
    let origin = PathBuf::from(root).join("stack.toml");
    run(&text, &origin, &options, &quiet).unwrap()["cases"][0].clone()
}

/// Misses of each of two bundled tenants for the other: predicted by causes, and found by a replay
/// without the other.
fn predicted_and_found(policy: &str) -> [(u64, i64); 2] {
    let pair = ["oltp", "web"];
    let shared = bundled(policy, &pair);
    check(&shared);
    [0, 1].map(|place| {
        let alone = bundled(policy, &pair[place..=place]);
        check(&alone);
        let predicted = count(&shared["tenants"][place]["causes"]["pushed_out"]);
        let found = misses(&shared, place) as i64 - misses(&alone, 0) as i64;
        println!("{policy} {}: predicted {predicted}, found {found}", pair[place]);
        (predicted, found)
    })
}

#[test]
fn lru_misses_for_the_other_volume_exactly_what_it_misses_less_without_it() {
    for (predicted, found) in predicted_and_found("lru") {
        assert_eq!(predicted as i64, found);
        assert!(predicted > 0);
    }
}

/// Under other policies causes are a prediction, here off by up to two times each way: alone the
/// tenant would have their hits, and not those of lru.
#[test]
fn what_other_policies_are_predicted_to_miss_for_the_other_volume_stands_beside_what_is_found() {
    let found = ["arc", "s3-fifo"].map(predicted_and_found);
    let arc = [(31_029, 26_097), (17_126, 33_633)];
    assert_eq!(found, [arc, [(30_397, 15_816), (9_323, 18_154)]]);
}

/// Misses by reason on devices of fixed latency and in a closed loop with constant times.
#[test]
fn causes_are_counted_and_priced_on_devices_and_in_closed_loops() {
    let folder = two_traces("causes-timed", [(2_000, 150); 2]);
    let devices = STACK.to_owned() + fixed_devices!();
    let timed = answer_to(&folder, &devices, &[("replay.warmup", "50ms")]).unwrap();
    check(&timed["cases"][0]);
    let closed = answer_to(&folder, STACK, &[("replay.loop", "closed")]).unwrap();
    check(&closed["cases"][0]);
    let open = answer_to(&folder, STACK, &[]).unwrap();
    check(&open["cases"][0]);
    for (answer, most_ns) in [(&timed, f64::MAX), (&closed, 4.9e6), (&open, 4.9e6)] {
        for tenant in answer["cases"][0]["tenants"].as_array().unwrap() {
            let causes = &tenant["causes"];
            let added_ns = number(&causes["added_ns"]);
            assert!((1e5..=most_ns).contains(&added_ns), "{causes}");
            let list = |key: &str| causes[key].as_array().unwrap().clone();
            for (misses, cost) in list("pushed_out_by").iter().zip(&list("pushed_out_ns")) {
                assert_eq!((number(misses) * added_ns).round(), number(cost));
            }
        }
    }
    let known = |answer: &Value| answer["cases"][0]["tenants"][0]["causes"].get("beyond").is_some();
    assert_eq!([&timed, &closed, &open].map(known), [false, false, true]);
}

/// Without the key nothing is counted, and no count of the replay changes with it.
#[test]
fn the_key_adds_causes_and_changes_nothing_else() {
    let folder = two_traces("causes-key", [(1_000, 150); 2]);
    let mut with = answer_to(&folder, STACK, &[]).unwrap();
    let without = answer_to(&folder, STACK, &[("replay.causes", "none")]).unwrap();
    for tenant in with["cases"][0]["tenants"].as_array_mut().unwrap() {
        assert!(tenant.as_object_mut().unwrap().remove("causes").is_some());
    }
    assert_eq!(with["cases"], without["cases"]);
}

/// A cache of 4,096 blocks looks at one block of four: shares are near those of all blocks, and sum
/// to all misses.
#[test]
fn a_sample_stands_for_all_misses() {
    let folder = two_traces("causes-sampled", [(40_000, 12_000); 2]);
    let set = |causes| [("replay.causes", causes), ("cache.capacity", "4096 blocks")];
    let [all, sampled] = ["all", "sampled"].map(|causes| {
        let found = answer_to(&folder, STACK, &set(causes)).unwrap();
        check(&found["cases"][0]);
        found["cases"][0]["tenants"][0].clone()
    });
    let (misses, looked_at) = (number(&all["misses"]), number(&sampled["causes"]["sampled"]));
    assert!((0.15..0.35).contains(&(looked_at / misses)), "{looked_at} of {misses}");
    for part in PARTS {
        let [exact, found] = [&all, &sampled].map(|tenant| number(&tenant["causes"][part]));
        assert!((exact - found).abs() < 0.05 * misses, "{part}: {found}, of all {exact}");
    }
}

#[test]
fn the_data_cache_of_a_drive_is_refused_by_name() {
    let folder = two_traces("causes-ssd", [(100, 20); 2]);
    let stack = drive_stack!("100", "", "[replay]\ncauses = \"sampled\"\n");
    let error = answer_to(&folder, stack, &[]).unwrap_err();
    assert!(error.contains("`replay.causes`: found `sampled`, expected `none` with"), "{error}");
}
