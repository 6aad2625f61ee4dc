//! The smallest cache that meets goals, where it can be worked out by hand.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{PlanOptions, SizeOptions, plan};
use common::{Folder, pairs, quiet, walk};
use serde_json::{Value, json};

const STACK: &str = "[cache]\ncapacity = \"1MiB\"\n[replay]\ninterval = \"2ms\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\ngoal_hit_ratio = 0.8\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\ngoal_hit_ratio = 0.5\n";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &walk(40, 50, 10));
    folder.with("b.csv", &walk(100, 20, 10));
    folder
}

fn by(size: SizeOptions) -> PlanOptions {
    PlanOptions { size, ..PlanOptions::default() }
}

fn planned(name: &str, set: &[(&str, &str)], partitions: &[&str]) -> Result<Value, String> {
    let folder = folder(name);
    let partitions = partitions.iter().map(|name| (*name).to_owned()).collect();
    let size = SizeOptions { partitions: Some(partitions), precision: 1e-6 };
    let options = PlanOptions { size, set: pairs(set), threads: 1, ..PlanOptions::default() };
    let origin = folder.path.join("stack.toml");
    plan(STACK, &origin, &options, &quiet).map_err(|error| error.to_string())
}

/// Ratios of intervals: one that counts since the start keeps the first laps' misses.
const BY_INTERVALS: &str = "{ name = \"soft-qos\", cumulative = false }";

#[test]
fn two_loops_need_what_they_walk_around() {
    let answer = planned("loops", &[], &["equal", "shared", BY_INTERVALS]).unwrap();
    assert_eq!(answer["tenants"][0]["alone_blocks"], json!(40));
    assert_eq!(answer["tenants"][1]["alone_blocks"], json!(100));
    assert_eq!(answer["smallest_blocks"], json!(140));
    let smallest = |at: usize| answer["partitions"][at]["smallest_blocks"].as_u64().unwrap();
    assert_eq!(smallest(0), 200, "the second of two halves holds 100 from 200 blocks on");
    assert_eq!(smallest(1), 140, "between two reads of a block of b come 100 of b and 40 of a");
    // It learns while it runs, so it needs no less than the perfect split, and far less than equal.
    assert!((140..=160).contains(&smallest(2)), "{}", smallest(2));
}

#[test]
fn a_goal_beyond_reach_is_said_with_the_best_there_is() {
    let answer = planned("beyond", &[("tenant.b.goal_hit_ratio", "0.99")], &["equal"]).unwrap();
    assert_eq!(answer["tenants"][1]["alone_blocks"], Value::Null);
    assert_eq!(answer["tenants"][1]["best_hit_ratio"], json!(0.95));
    assert_eq!(answer["smallest_blocks"], Value::Null);
    assert_eq!(answer["partitions"][0]["smallest_blocks"], Value::Null);
    assert_eq!(answer["partitions"][0]["hit_ratios"][1], json!(0.95));
}

#[test]
fn what_cannot_be_planned_is_refused_in_words() {
    let error = planned("names", &[], &["equl"]).unwrap_err();
    assert!(error.contains("nearest is `equal`"), "{error}");
    let folder = folder("no-goal");
    let origin = folder.path.join("stack.toml");
    let stack = STACK.replace("goal_hit_ratio = 0.5\n", "").replace("goal_hit_ratio = 0.8\n", "");
    let error = plan(&stack, &origin, &PlanOptions::default(), &quiet).unwrap_err().to_string();
    let expected = "found no goal, expected `goal_hit_ratio` or `goal_latency` in at least one";
    assert!(error.contains(expected), "{error}");
    let options = by(SizeOptions { precision: 0.0, ..SizeOptions::default() });
    let error = plan(STACK, &origin, &options, &quiet).unwrap_err().to_string();
    assert!(
        error.contains("`precision`: found `0.0`, expected a number from 1e-9 to 1"),
        "{error}"
    );
}

#[test]
fn one_thread_and_two_give_the_same_plan() {
    let folder = folder("threads");
    let origin = folder.path.join("stack.toml");
    let answer = |threads| {
        let options = PlanOptions { threads, ..PlanOptions::default() };
        plan(STACK, &origin, &options, &quiet).unwrap().to_string()
    };
    assert_eq!(answer(1), answer(2));
}

#[test]
fn tenants_without_a_goal_get_what_is_left() {
    let folder = folder("best-effort");
    let origin = folder.path.join("stack.toml");
    let stack = STACK.replace("goal_hit_ratio = 0.5\n", "");
    let partitions = Some(["equal", "soft-qos-x"].map(str::to_owned).to_vec());
    let options = by(SizeOptions { partitions, precision: 1e-6 });
    let answer = plan(&stack, &origin, &options, &quiet).unwrap();
    assert_eq!(answer["tenants"][0]["alone_blocks"], json!(40));
    assert_eq!(answer["tenants"][1]["goal_hit_ratio"], Value::Null);
    assert_eq!(answer["tenants"][1]["alone_blocks"], Value::Null);
    assert_eq!(answer["tenants"][1]["best_hit_ratio"], json!(0.95));
    assert_eq!(answer["smallest_blocks"], json!(40), "b adds nothing to the perfect split");
    let note = answer["notes"][0].as_str().unwrap();
    assert!(note.starts_with("best effort, without a goal: b;"), "{note}");
    let equal = &answer["partitions"][0];
    assert_eq!(equal["smallest_blocks"], json!(79), "the first and larger of two halves holds 40");
    assert_eq!(equal["hit_ratios"].as_array().unwrap().len(), 2, "what b gets is said");
    let goals = &answer["partitions"][1];
    assert!(goals["smallest_blocks"].as_u64().unwrap() < 79, "{goals}");
    assert_eq!(answer["best"], "soft-qos-x");
}

#[test]
fn every_partitioner_that_keeps_goals_is_tried_unless_some_are_named() {
    let folder = folder("default-partitioners");
    let origin = folder.path.join("stack.toml");
    let answer = plan(STACK, &origin, &PlanOptions::default(), &quiet).unwrap();
    let named = answer["partitions"].as_array().unwrap().iter();
    let named: Vec<&str> = named.map(|one| one["partition"].as_str().unwrap()).collect();
    let entries = cachewright_partition::registry::entries();
    let keeps = |entry: &&&cachewright_partition::Entry| {
        entry.needs.contains(&cachewright_partition::Need::Goal)
    };
    for keeper in entries.iter().filter(keeps) {
        assert!(named.contains(&keeper.name), "{} is not in {named:?}", keeper.name);
    }
    assert_eq!(named, ["soft-qos", "soft-qos-x", "hull", "equal", "shared"]);
    let smallest = |one: &Value| one["smallest_blocks"].as_u64().unwrap();
    let least = answer["partitions"].as_array().unwrap().iter().map(smallest).min().unwrap();
    let best = named.iter().position(|name| answer["best"] == *name).unwrap();
    assert_eq!(smallest(&answer["partitions"][best]), least);
    let none = by(SizeOptions { partitions: Some(Vec::new()), ..SizeOptions::default() });
    let answer = plan(STACK, &origin, &none, &quiet).unwrap();
    assert_eq!(answer["partitions"], json!([]), "none named: what each needs alone");
    assert_eq!(answer["best"], Value::Null);
}

#[test]
fn a_plan_is_kept_and_not_replaced_by_that_of_another_stack() {
    let folder = folder("kept-plan");
    let origin = folder.path.join("stack.toml");
    let out = folder.path.join("out");
    let partitions = Some(vec!["equal".to_owned()]);
    let size = SizeOptions { partitions, ..SizeOptions::default() };
    let options = PlanOptions { out: Some(out.clone()), ..by(size) };
    let answer = plan(STACK, &origin, &options, &quiet).unwrap();
    let kept = || -> Value {
        serde_json::from_slice(&std::fs::read(out.join("plan.json")).unwrap()).unwrap()
    };
    assert_eq!(kept(), answer);
    plan(STACK, &origin, &options, &quiet).unwrap();
    let other = format!("name = \"other\"\n{STACK}");
    let error = plan(&other, &origin, &options, &quiet).unwrap_err().to_string();
    assert!(error.contains("found the result of `stack` ("), "{error}");
    assert_eq!(kept(), answer);
    plan(&other, &origin, &PlanOptions { force: true, ..options }, &quiet).unwrap();
    assert_eq!(kept()["name"], "other");
}

#[test]
fn auto_is_planned_as_the_scheme_that_it_chooses() {
    let answer = planned("auto", &[], &["auto", "soft-qos-x"]).unwrap();
    let sizes = |index: usize| answer["partitions"][index]["smallest_blocks"].as_u64();
    assert!(sizes(0).is_some() && sizes(0) == sizes(1), "{answer}");
    assert_eq!(answer["partitions"][0]["partition"], json!("auto"));
    let note = json!("`auto` is `soft-qos-x` for this stack");
    assert!(answer["notes"].as_array().unwrap().contains(&note), "{}", answer["notes"]);
}
