//! `auto` of a partition and of a policy runs as the scheme that it chooses, which the stack names.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, check, run};
use common::{Folder, answer_to, pairs, quiet, small_trace};
use serde_json::Value;

const STACK: &str = "[cache]\ncapacity = \"300 blocks\"\npartition = \"auto\"\n\
    [replay]\ninterval = \"100us\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n";
const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\n\
    [device.backing]\nmodel = \"fixed-latency\"\n";
const PATIENT: &str = "{ name = \"icache-x\", half_life = 64.0, norm = 2.0 }";
const STEADY: &str = "{ name = \"hull\", min_gain = 0.02, max_moved = 0.25, floor_share = 0.1 }";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, 3000, 500));
    folder.with("b.csv", &small_trace(6, 2000, 500));
    folder
}

#[test]
fn a_run_is_that_of_the_scheme_chosen() {
    let timed = format!("{STACK}{DEVICES}");
    let goal = ("tenant.a.goal_hit_ratio", "0.3");
    let none: &[(&str, &str)] = &[];
    let cases = [
        (STACK, none, STEADY, "hull"),
        (STACK, &[goal][..], "soft-qos-x", "soft-qos-x"),
        (&timed, none, PATIENT, "icache-x"),
    ];
    for (index, (text, set, scheme, name)) in cases.into_iter().enumerate() {
        let folder = folder(&format!("auto-{index}"));
        let case = |partition: &str| {
            let set: Vec<(&str, &str)> =
                set.iter().copied().chain([("cache.partition", partition)]).collect();
            answer_to(&folder, text, &set).unwrap()["cases"][0].clone()
        };
        let (chosen, named) = (case("auto"), case(scheme));
        assert_eq!(chosen["tenants"], named["tenants"], "{name}");
        assert_eq!(chosen["settings"]["cache.partition"], Value::from(name));
        assert!(chosen["tenants"][0]["quota_blocks"].as_u64().unwrap() > 0);
    }
}

#[test]
fn the_resolved_stack_names_the_scheme_and_its_settings() {
    let folder = folder("auto-resolved");
    let origin = folder.path.join("stack.toml");
    let checked = check(STACK, &origin, &pairs(&[])).unwrap();
    let partition = checked.pointer("/cache/partition").unwrap();
    assert_eq!(partition["name"], Value::from("hull"), "{partition}");
    assert_eq!(partition["floor_share"], Value::from(0.1));
}

#[test]
fn a_comparison_has_auto_beside_the_others() {
    let folder = folder("auto-compared");
    let values = ["auto", "shared"].map(str::to_owned).to_vec();
    let vary = vec![("partition".to_owned(), values)];
    let options = RunOptions { vary, threads: 1, ..RunOptions::default() };
    let answer = run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    let name = |index: usize| answer["cases"][index]["settings"]["cache.partition"].as_str();
    assert_eq!([name(0), name(1)], [Some("auto"), Some("shared")]);
}

#[test]
fn a_policy_is_chosen_for_misses_or_for_response_times() {
    let timed = format!("{STACK}{DEVICES}");
    for (text, name) in [(STACK, "duel-x"), (&timed, "access-frequency")] {
        let folder = folder(&format!("auto-policy-{name}"));
        let case = |policy: &str| {
            let set = [("cache.policy", policy), ("cache.partition", "shared")];
            answer_to(&folder, text, &set).unwrap()["cases"][0].clone()
        };
        let (chosen, named) = (case("auto"), case(name));
        assert_eq!(chosen["tenants"], named["tenants"], "{name}");
        assert_eq!(chosen["settings"]["cache.policy"], Value::from(name));
        let set = pairs(&[("cache.policy", "auto")]);
        let checked = check(text, &folder.path.join("stack.toml"), &set).unwrap();
        assert_eq!(checked.pointer("/cache/policy/name").unwrap(), &Value::from(name));
    }
}

#[test]
fn a_setting_of_auto_is_refused() {
    let folder = folder("auto-policy-set");
    let set = [("cache.policy", "{ name = \"auto\", sample = 3 }")];
    let error = answer_to(&folder, STACK, &set).unwrap_err().to_string();
    assert!(error.contains("`cache.policy`: found the setting `sample` of `auto`"), "{error}");
}
