//! Goals in measured response time: kept where they fit, refused where nothing measures.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use common::{Folder, answer_to, two_traces};
use serde_json::Value;

const STACK: &str = "[cache]\ncapacity = \"500 blocks\"\npartition = \"soft-qos-x\"\n\
    [replay]\ninterval = \"20ms\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n";
const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\nread = \"5us\"\nwrite = \"5us\"\n\
    [device.backing]\nmodel = \"fixed-latency\"\nread = \"100us\"\nwrite = \"100us\"\n";

fn folder(name: &str) -> Folder {
    two_traces(name, [(20_000, 600), (20_000, 6000)])
}

/// The tenants of a run with devices and these keys.
fn tenants(folder: &Folder, set: &[(&str, &str)]) -> Value {
    let text = format!("{STACK}{DEVICES}");
    answer_to(folder, &text, set).unwrap()["cases"][0].clone()
}

/// Checks that a goal is kept, and missed under `equal`.
fn check_kept(folder: &Folder, goal: (&str, &str), capacity: &str, result: &str) {
    let set = [goal, ("capacity", capacity)];
    let kept = tenants(folder, &set);
    let own = &kept["tenants"][0];
    assert!(own[result].as_u64().unwrap() > 0, "{own}");
    assert_eq!(own["goal_met"], Value::from(true), "{goal:?}: {own}");
    assert_eq!(kept["total"]["goals_met"], Value::from(1));
    assert!(kept["tenants"][1].get("goal_met").is_none());
    let equal = tenants(folder, &[goal, ("capacity", capacity), ("cache.partition", "equal")]);
    assert_eq!(equal["tenants"][0]["goal_met"], Value::from(false), "{goal:?}: {equal}");
    assert!(equal["tenants"][0].get("goal_blocks").is_none(), "equal knows no curves");
}

#[test]
fn a_mean_that_fits_is_kept_where_an_equal_division_misses_it() {
    let folder = folder("response-goal-kept");
    check_kept(&folder, ("tenant.a.goal_response", "25us"), "500 blocks", "goal_response_ns");
}

#[test]
fn a_percentile_that_fits_is_kept_where_an_equal_division_misses_it() {
    // A loop over 200 blocks hits always, or, with fewer, never.
    let folder = folder("response-goal-percentile");
    let row = |index: u64| format!("1,R,{},4096,{}\n", index % 200 * 4096, index * 100);
    folder.with("a.csv", &(0..60_000).map(row).collect::<String>());
    check_kept(&folder, ("tenant.a.goal_p99", "50us"), "300 blocks", "goal_p99_ns");
}

#[test]
fn a_goal_that_does_not_fit_says_what_it_needs() {
    let folder = folder("response-goal-needs");
    let found = tenants(&folder, &[("tenant.a.goal_response", "18us"), ("capacity", "150 blocks")]);
    let own = &found["tenants"][0];
    assert_eq!(own["goal_met"], Value::from(false), "{own}");
    let needed = own["goal_blocks"].as_u64().unwrap();
    assert!(needed > own["quota_blocks"].as_u64().unwrap(), "{own}");
    // By the curve of hit ratios as well, without devices.
    let set = [("tenant.a.goal_hit_ratio", "0.7"), ("capacity", "100 blocks")];
    let found = answer_to(&folder, STACK, &set).unwrap()["cases"][0].clone();
    let own = &found["tenants"][0];
    let needed = own["goal_blocks"].as_u64().unwrap();
    assert!(needed > 100, "{own}");
    // With so many blocks and some for the other it is kept.
    let capacity = format!("{} blocks", needed + 60);
    let set = [("tenant.a.goal_hit_ratio", "0.7"), ("capacity", capacity.as_str())];
    let found = answer_to(&folder, STACK, &set).unwrap()["cases"][0].clone();
    let ratio = found["tenants"][0]["hit_ratio"].as_f64().unwrap();
    assert!((0.7..0.8).contains(&ratio), "{needed} blocks: {ratio}");
}

#[test]
fn what_cannot_be_measured_or_kept_is_refused() {
    let folder = folder("response-goal-refused");
    let goal = ("tenant.a.goal_p99", "1ms");
    let error = answer_to(&folder, STACK, &[goal]).unwrap_err().to_string();
    assert!(error.contains("`tenant[1].goal_p99`: found without devices or live"), "{error}");
    let text = format!("{STACK}{DEVICES}");
    let other = ("cache.partition", "soft-qos");
    let error = answer_to(&folder, &text, &[goal, other]).unwrap_err().to_string();
    let expected = "`tenant[1].goal_p99`: found a goal in response time with the partitioner \
                    `soft-qos`, which keeps hit ratios; expected `soft-qos-x`, or another goal";
    assert!(error.contains(expected), "{error}");
    let error = answer_to(&folder, &text, &[goal, ("tenant.a.goal_hit_ratio", "0.5")]);
    assert!(error.unwrap_err().to_string().contains("expected one of them"));
}
