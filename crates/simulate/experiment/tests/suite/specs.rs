//! Stack files: what is refused, in which words, and what the settings do.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::mrc::{CurveOptions, MethodChoice, SmallCaches};
use cachewright_experiment::{InfoOptions, MrcOptions, RunOptions, check, info, mrc, run};
use common::{Folder, answer_to, quiet, sizes, small_trace, total};
use serde_json::Value;

const STACK: &str =
    "[cache]\ncapacity = \"64 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, 4000, 500));
    folder
}

fn refusal(set: &[(&str, &str)]) -> String {
    let folder = folder("refusal");
    answer_to(&folder, STACK, set).unwrap_err()
}

/// A default that is of no use to a run refused traces of more than 231 days.
#[test]
fn a_run_that_does_not_divide_its_cache_takes_any_interval() {
    let folder = folder("any-interval");
    for partition in ["shared", "equal"] {
        let plain = answer_to(&folder, STACK, &[("partition", partition)]).unwrap();
        let set = [("partition", partition), ("replay.interval", "1ns")];
        let short = answer_to(&folder, STACK, &set).unwrap();
        let hits = |answer: &Value| total(&answer["cases"][0], "hits");
        assert_eq!(hits(&short), hits(&plain), "{partition}");
    }
    let error = refusal(&[("partition", "hull"), ("replay.interval", "1ns")]);
    assert!(error.contains("is before request "), "{error}");
    assert!(error.contains("as with `--set replay.interval=1s`"), "{error}");
}

#[test]
fn wrong_settings_are_refused_by_key_with_what_was_expected() {
    let cases = [
        (("cache.capacity", "64"), "`cache.capacity`: found `64`, expected a number with a unit"),
        (("cache.capacity", "1KiB"), "expected at least one block"),
        (("cache.block", "3000B"), "expected a power of two"),
        (("policy", "lruu"), "nearest is `lru`"),
        (("policy.small", "1"), "`cache.policy`"),
        (("partition", "hul"), "nearest is `hull`"),
        (("cache.polcy", "lru"), "nearest is `policy`"),
        (("cache.write", "writeback"), "nearest is `write-back`"),
        (("replay.interval", "2"), "expected a number with a unit: ns, us"),
        (("replay.windows", "-1"), "expected a whole number from 0"),
        (("tenant.b.start", "1s"), "found tenant `b`, expected one of a"),
        (("tenant.a.trace", "none.csv"), "expected a trace"),
        (("tenant.a.time_scale", "0"), "expected a number from 1e-9 to 1e9"),
        (("tenant.a.goal_hit_ratio", "85"), "expected a number from 0 to 1"),
        (("tenant.a.goal_latency", "5ms"), "expected at least 100us (`replay.hit_time`)"),
        (
            ("partition", "soft-qos"),
            "needs a goal per tenant, found none, expected `goal_hit_ratio`",
        ),
    ];
    for ((key, value), expected) in cases {
        let error = refusal(&[(key, value)]);
        assert!(error.contains(expected), "{key}={value}: {error}");
        assert!(error.contains("stack.toml"), "{error}");
    }
    let error = refusal(&[("policy", "belady"), ("replay.loop", "closed")]);
    assert!(error.contains("needs the future"), "{error}");
    let error = refusal(&[("partition", "hull"), ("replay.interval", "1ns")]);
    assert!(error.contains("`replay.interval`: found 1ns, which ends"), "{error}");
    let error = refusal(&[("replay.blocks", "unit"), ("capacity", "64KiB")]);
    assert!(error.contains("unit blocks have no size"), "{error}");
}

#[test]
fn goals_reach_the_partitioner_and_are_judged_over_the_whole_run() {
    let folder = folder("goals");
    folder.with("b.csv", &small_trace(6, 4000, 500));
    let stack = "[cache]\ncapacity = \"400 blocks\"\npartition = \"soft-qos\"\n[replay]\n\
                 interval = \"1ms\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
                 goal_hit_ratio = 0.6\n[[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n\
                 goal_latency = \"4.95ms\"\n";
    let origin = folder.path.join("stack.toml");
    let result = run(stack, &origin, &RunOptions::default(), &quiet).unwrap();
    let tenants = result["cases"][0]["tenants"].as_array().unwrap();
    for tenant in tenants {
        let (goal, ratio) = (&tenant["goal_hit_ratio"], tenant["hit_ratio"].as_f64().unwrap());
        let met = ratio >= goal.as_f64().unwrap();
        assert_eq!(tenant["goal_met"], Value::Bool(met), "{tenant}");
    }
    // 4.95 ms of 0.1 ms and 5 ms: one hit in 98.
    let goal = tenants[1]["goal_hit_ratio"].as_f64().unwrap();
    assert!((goal - 0.05 / 4.9).abs() < 1e-9, "{goal}");
    // Who needs little leaves the rest to who needs more.
    let quota = |at: usize| tenants[at]["quota_blocks"].as_u64().unwrap();
    assert!(quota(0) > 3 * quota(1), "{} {}", quota(0), quota(1));
    assert_eq!(tenants[0]["goal_met"], Value::Bool(true), "{}", tenants[0]);
}

#[test]
fn every_stack_file_that_is_shipped_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../specs");
    let mut found = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let origin = entry.unwrap().path();
        if origin.extension().is_some_and(|kind| kind == "toml") {
            let text = std::fs::read_to_string(&origin).unwrap();
            let resolved = check(&text, &origin, &[]);
            assert!(resolved.is_ok(), "{}: {:?}", origin.display(), resolved.err());
            assert!(text.starts_with("# "), "{}: no header", origin.display());
            found += 1;
        }
    }
    assert!(found >= 6, "{found} files");
}

#[test]
fn a_bad_file_is_refused_where_it_is_bad() {
    let folder = folder("bad-file");
    let origin = folder.path.join("stack.toml");
    let error = check("[cache\n", &origin, &[]).unwrap_err().to_string();
    assert!(error.contains("stack.toml") && error.contains("line 1"), "{error}");
    let error = check("[cache]\ncapacity = \"1MiB\"\n", &origin, &[]).unwrap_err().to_string();
    assert!(error.contains("found no `[[tenant]]`"), "{error}");
}

fn one(folder: &Folder, set: &[(&str, &str)]) -> Value {
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let options = RunOptions { set, ..RunOptions::default() };
    let result = run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    result["cases"][0].clone()
}

#[test]
fn write_modes_move_writes_where_they_say() {
    let folder = folder("modes");
    let back = one(&folder, &[]);
    let through = one(&folder, &[("write", "write-through")]);
    let around = one(&folder, &[("write", "write-around")]);
    let read_only = one(&folder, &[("write", "read-only")]);
    let writes = total(&back, "write_accesses");
    assert!(total(&back, "backing_writes") < writes);
    assert!(total(&back, "dirty_blocks") > 0);
    for case in [&through, &around, &read_only] {
        assert_eq!(total(case, "backing_writes"), writes);
        assert_eq!(total(case, "dirty_blocks"), 0);
    }
    assert_eq!(total(&through, "hits"), total(&back, "hits"), "the policy sees the same accesses");
    assert_eq!(total(&read_only, "write_hits"), 0);
    assert!(total(&around, "admissions") < total(&through, "admissions"));
}

#[test]
fn a_closed_loop_runs_at_the_speed_of_its_hits() {
    let folder = folder("closed");
    let closed = [("replay.loop", "closed"), ("replay.hit_time", "1ms")];
    let all_hits = [&closed[..], &[("replay.miss_time", "1ms"), ("replay.queue_depth", "4")]];
    let case = one(&folder, &all_hits.concat());
    let requests = total(&case, "requests") as f64;
    let rate = case["total"]["throughput_per_s"].as_f64().unwrap();
    let trims = 4000.0 - requests;
    let expected = 4.0 * 1000.0 * requests / (requests + trims);
    assert!((rate / expected - 1.0).abs() < 0.01, "{rate} requests/s, expected {expected}");
    let small = one(&folder, &[&closed[..], &[("replay.miss_time", "10ms")]].concat());
    let large = [&closed[..], &[("replay.miss_time", "10ms"), ("capacity", "100%wss")]].concat();
    let large = one(&folder, &large);
    let rate = |case: &Value| case["total"]["throughput_per_s"].as_f64().unwrap();
    assert!(rate(&large) > 2.0 * rate(&small), "{} and {}", rate(&large), rate(&small));
}

#[test]
fn a_capacity_in_percent_is_of_the_working_set() {
    let folder = folder("percent");
    let case = one(&folder, &[("capacity", "50%wss")]);
    let options = InfoOptions::default();
    let facts = info(&folder.path.join("a.csv"), &options, &quiet).unwrap();
    let distinct = facts["distinct_blocks"].as_u64().unwrap();
    assert_eq!(case["capacity_blocks"].as_u64().unwrap(), (distinct as f64 / 2.0).round() as u64);
    assert_eq!(facts["requests"], 4000);
    assert_eq!(facts["format"], "alibaba");
    let compulsory = facts["reuse"]["compulsory"].as_u64().unwrap();
    assert!(compulsory >= distinct, "a trimmed block is met anew");
}

#[test]
fn curves_of_each_tenant_and_of_all() {
    let folder = folder("curves");
    folder.with("b.csv", &small_trace(6, 4000, 100));
    let text = format!("{STACK}[[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n");
    let origin = folder.path.join("stack.toml");
    let measured = |curve: &CurveOptions| {
        let options = MrcOptions { curve: curve.clone(), ..MrcOptions::default() };
        mrc(&text, &origin, &options, &quiet)
    };
    let options = CurveOptions {
        policies: vec!["lru".into(), "s3-fifo".into()],
        windows: 2,
        ..CurveOptions::default()
    };
    let result = measured(&options).unwrap();
    let curves = result["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 3 * 2 * 2, "all, a and b; two policies; two windows");
    let options = CurveOptions { method: MethodChoice::Shards, ..options };
    let error = measured(&options).unwrap_err();
    assert!(error.to_string().contains("SHARDS measures LRU"), "{error}");
    let sampled = CurveOptions {
        method: MethodChoice::Shards,
        rate: Some(0.1),
        sizes: sizes(&["10 blocks"]),
        ..CurveOptions::default()
    };
    let exactly = measured(&sampled).unwrap();
    assert_eq!(exactly["curves"][0]["method"], "exact", "a size too small for the sample");
    assert!(exactly["notes"][0].as_str().unwrap().contains("measured exactly"));
    let sampled = CurveOptions { small: SmallCaches::Refuse, ..sampled };
    let error = measured(&sampled).unwrap_err();
    assert!(error.to_string().contains("10 blocks"), "{error}");
    let refuse = CurveOptions {
        policies: vec!["fifo".into()],
        method: MethodChoice::Mini,
        small: SmallCaches::Refuse,
        ..CurveOptions::default()
    };
    let error = measured(&refuse).unwrap_err();
    assert!(error.to_string().contains("expected at least"), "{error}");
}
