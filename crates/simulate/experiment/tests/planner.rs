//! The smallest cache that meets goals, where it can be worked out by hand.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

mod common;

use cachewright_experiment::{PlanOptions, plan};
use common::{Folder, quiet, walk};
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

fn planned(name: &str, set: &[(&str, &str)], partitions: &[&str]) -> Result<Value, String> {
    let folder = folder(name);
    let options = PlanOptions {
        partitions: partitions.iter().map(|name| (*name).to_owned()).collect(),
        set: set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        precision: 1e-6,
        threads: 1,
    };
    let origin = folder.path.join("stack.toml");
    plan(STACK, &origin, &options, &quiet).map_err(|error| error.to_string())
}

#[test]
fn two_loops_need_what_they_walk_around() {
    let answer = planned("loops", &[], &["equal", "shared", "soft-qos"]).unwrap();
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
    let stack = STACK.replace("goal_hit_ratio = 0.5\n", "");
    let error = plan(&stack, &origin, &PlanOptions::default(), &quiet).unwrap_err().to_string();
    assert!(error.contains("tenant `b`: found no goal"), "{error}");
    let options = PlanOptions { precision: 0.0, ..PlanOptions::default() };
    let error = plan(STACK, &origin, &options, &quiet).unwrap_err().to_string();
    assert!(error.contains("`precision`: found 0"), "{error}");
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
