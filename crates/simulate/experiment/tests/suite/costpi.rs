//! Tenants with slots of their own beside a pool that others share, in every machine.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, number, pairs, quiet, small_trace};
use serde_json::Value;

const CACHE: &str = "
[cache]
capacity = \"300 blocks\"
partition = \"costpi\"
";
const A: &str = "
[[tenant]]
name = \"a\"
trace = \"a.csv\"
sensitive = true
";
const OTHERS: &str = "
[[tenant]]
name = \"b\"
trace = \"b.csv\"
[[tenant]]
name = \"c\"
trace = \"c.csv\"
";
const TIERED: &str = "
[device.cache]
model = \"fixed-latency\"
[device.backing]
model = \"fixed-latency\"
";
const DRIVE: &str = "
[device.ssd]
model = \"icache-table1\"
page = \"4KiB\"
blocks = 32
over_provisioning = 0.28
block = \"256KiB\"
[machine]
system = \"ssd\"
read_fill = true
write_back = \"on-eviction\"
";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (file, seed, requests) in [("a.csv", 5, 3000), ("b.csv", 6, 2000), ("c.csv", 7, 2500)] {
        folder.with(file, &small_trace(seed, requests, 500));
    }
    folder
}

fn case(folder: &Folder, text: &str, set: &[(&str, &str)]) -> Value {
    answer_to(folder, text, set).unwrap()["cases"][0].clone()
}

/// Counters of a tenant without what says how the cache is divided.
fn counters(case: &Value, tenant: usize) -> Value {
    let mut found = case["tenants"][tenant].clone();
    for key in ["pool", "turns", "states", "mean_response_ns", "p99_response_ns"] {
        found.as_object_mut().map(|map| map.remove(key));
    }
    found
}

/// A pool is as if no other tenant were there: slots hold 100 blocks, the pool of two tenants 200.
#[test]
fn a_slot_and_a_pool_are_caches_of_their_own() {
    let folder = folder("costpi-apart");
    let text = |tenants: &str| format!("{CACHE}{tenants}");
    let (own, together) = (text(A), text(OTHERS));
    let shared = [("capacity", "200 blocks"), ("partition", "shared")];
    for policy in ["lru", "arc", "s3-fifo", "lirs"] {
        let set = [("policy", policy)];
        let all = case(&folder, &text(&format!("{A}{OTHERS}")), &set);
        let quotas: Vec<f64> =
            (0..3).map(|tenant| number(&all["tenants"][tenant]["quota_blocks"])).collect();
        assert_eq!(quotas, [100.0, 200.0, 200.0], "who shares may have all of the pool");
        let pools: Vec<&Value> = (0..3).map(|tenant| &all["tenants"][tenant]["pool"]).collect();
        assert_eq!(pools, [0, 1, 1]);
        let alone = case(&folder, &own, &[("policy", policy), ("capacity", "100 blocks")]);
        assert_eq!(counters(&all, 0), counters(&alone, 0), "{policy}");
        let others = case(&folder, &together, &[&shared[..], &set[..]].concat());
        for tenant in [0, 1] {
            assert_eq!(counters(&all, tenant + 1), counters(&others, tenant), "{policy}");
        }
    }
}

/// The same decisions on devices and inside a drive as without.
#[test]
fn machines_decide_about_pools_as_lanes_do() {
    let folder = folder("costpi-machines");
    let tenants = format!("{A}{OTHERS}");
    let trims = ("cache.trim", "ignore");
    let untimed = case(&folder, &format!("{CACHE}{tenants}"), &[trims]);
    let tiered = case(&folder, &format!("{CACHE}{TIERED}{tenants}"), &[trims]);
    for tenant in 0..3 {
        for key in ["hits", "evictions", "writebacks", "occupancy_blocks", "quota_blocks"] {
            let found = &tiered["tenants"][tenant][key];
            assert_eq!(found, &untimed["tenants"][tenant][key], "{key} of {tenant}");
        }
    }
    let drive = case(&folder, &format!("{CACHE}{DRIVE}{tenants}"), &[]);
    let held = |tenant: usize| number(&drive["tenants"][tenant]["occupancy_blocks"]);
    assert_eq!(drive["tenants"][0]["quota_blocks"], 100);
    assert_eq!(drive["tenants"][2]["quota_blocks"], 200);
    assert!(held(0) <= 100.0 && held(1) + held(2) <= 200.0);
    assert!(held(1) + held(2) > 150.0, "they use what they share");
}

#[test]
fn all_or_none_sensitive_and_threads() {
    let folder = folder("costpi-all");
    let tenants = format!("{A}{OTHERS}");
    let text = format!("{CACHE}{DRIVE}{tenants}");
    let total = |set: &[(&str, &str)]| case(&folder, &text, set)["timing"]["total"].clone();
    let all = [("tenant.b.sensitive", "true"), ("tenant.c.sensitive", "true")];
    assert_eq!(total(&all), total(&[("partition", "equal")]));
    let none = [("tenant.a.sensitive", "false")];
    assert_eq!(total(&none), total(&[("partition", "shared")]));
    assert_ne!(total(&[]), total(&none));
    let with = |threads| {
        let vary = vec![("policy".to_owned(), vec!["lru".to_owned(), "arc".to_owned()])];
        let set = pairs(&[("machine.alone", "true"), ("replay.windows", "4")]);
        let options = RunOptions { threads, vary, set, ..RunOptions::default() };
        run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap().to_string()
    };
    assert_eq!(with(1), with(2));
}

/// Channels of their own for all three; who shares a pool may fill it.
#[test]
fn a_layout_must_have_room_for_all_of_a_pool() {
    let folder = folder("costpi-layout");
    let cache =
        concat!(four_channels!("device.cache"), "[device.backing]\nmodel = \"fixed-latency\"\n");
    let text = format!("{CACHE}\n{cache}{A}{OTHERS}");
    let layout = [("layout", "dedicated"), ("tenant.a.channels", "2")];
    let found = case(&folder, &text, &layout);
    assert_eq!(found["tenants"][1]["quota_blocks"], 200);
    let large = [&layout[..], &[("capacity", "1800 blocks")]].concat();
    let error = answer_to(&folder, &text, &large).unwrap_err();
    assert!(error.contains("expected room for its quota of 1200"), "{error}");
    assert!(error.contains("have all of a pool it shares"), "{error}");
}
