//! Stack files with devices: what is refused, what is answered, and that threads do not matter.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{CurveOptions, MrcOptions, RunOptions, check, mrc, run};
use common::{Folder, answer_to, number, pairs, quiet, sizes, small_trace, total, two_traces};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};

const STACK: &str = "
[cache]
capacity = \"100 blocks\"
[device.cache]
model = \"fixed-latency\"
[device.backing]
model = \"hdd-10045-9gb\"
[replay]
windows = 10
[[tenant]]
name = \"a\"
trace = \"a.csv\"
time_scale = 50
[[tenant]]
name = \"b\"
trace = \"b.csv\"
time_scale = 50
";

fn folder(name: &str) -> Folder {
    two_traces(name, [(3000, 500), (3000, 400)])
}

fn answer(folder: &Folder, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, STACK, set)
}

#[test]
fn impossible_devices_are_refused_by_key_and_value() {
    let folder = folder("timed-refusal");
    let cases: [(&[(&str, &str)], &str); 15] = [
        (&[("device.cache.model", "fixd-latency")], "`device.cache.model`: found `fixd-latency`"),
        (&[("device.cache.read", "1")], "`device.cache.read`: found `1`, expected a number with a"),
        (&[("device.cache.parallelism", "0")], "`device.cache.parallelism`: found `0`, expected"),
        (&[("device.backing.rpms", "7200")], "`device.backing.rpms`: found an unknown key"),
        (&[("device.backing.average_seek", "40ms")], "`device.backing.average_seek`: found `40ms`"),
        (&[("device.backing.schedule", "elevator")], "expected one of fifo, sstf, scan, satf"),
        (&[("device.backing.per_tenant", "3")], "`device.backing.per_tenant`: found `3`"),
        (&[("device.backing.capacity", "1MB")], "`device.backing`: found a capacity of"),
        (&[("device.cache.capacity", "64KiB")], "`device.cache`: found a capacity of 64KiB"),
        (&[("device.front.model", "ram")], "found unknown key `device.front`"),
        (&[("machine.fil", "x")], "nearest is `fill`"),
        (&[("machine.system", "tierd")], "nearest is `tiered`"),
        (&[("machine.dirty_low", "0.9")], "`machine.dirty_low`: found 0.9, expected at most"),
        (&[("replay.blocks", "unit"), ("capacity", "9 blocks")], "devices need sizes"),
        (&[("flash.separation", "none")], "found `[flash]` and `[device]`"),
    ];
    for (set, expected) in cases {
        let error = answer(&folder, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
        assert!(error.contains("stack.toml"), "{error}");
    }
    let text = STACK.replace("[device.backing]\nmodel = \"hdd-10045-9gb\"\n", "");
    let error = check(&text, &folder.path.join("stack.toml"), &[]).unwrap_err().to_string();
    assert!(error.contains("found no `[device.backing]` table"), "{error}");
}

#[test]
fn response_times_add_up_and_the_cache_decides_as_without_devices() {
    let folder = folder("timed-answer");
    let found = answer(&folder, &[("machine.alone", "true")]).unwrap();
    let (case, timing) = (&found["cases"][0], &found["cases"][0]["timing"]);
    let plain = STACK
        .replace("[device.cache]\nmodel = \"fixed-latency\"\n", "")
        .replace("[device.backing]\nmodel = \"hdd-10045-9gb\"\n", "");
    let origin = folder.path.join("stack.toml");
    let plain = run(&plain, &origin, &RunOptions::default(), &quiet).unwrap();
    for (key, value) in plain["cases"][0]["total"].as_object().unwrap() {
        assert_eq!(&case["total"][key], value, "{key}");
    }
    assert_eq!(case["total"]["mean_response_ns"], timing["total"]["mean_ns"]);
    assert_eq!(found["series_rows"], plain["series_rows"]);
    assert_eq!(timing["total"]["requests"].as_u64(), Some(total(case, "requests")));
    for one in [&timing["total"], &timing["tenants"][0], &timing["tenants"][1]] {
        let parts = one["breakdown_ns"].as_object().unwrap().values();
        let sum: f64 = parts.map(number).sum();
        assert!((sum / number(&one["mean_ns"]) - 1.0).abs() < 1e-9, "{one}");
        let order = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(|k| number(&one[k]));
        assert!(order.is_sorted(), "{order:?}");
    }
    let little = &timing["little"];
    let law = number(&little["arrivals_per_s"]) * number(&little["mean_response_ns"]) / 1e9;
    assert!((number(&little["mean_inside"]) / law - 1.0).abs() < 1e-9, "{little}");
    for device in timing["devices"].as_array().unwrap() {
        assert!((0.0..=1.0).contains(&number(&device["busy"])), "{device}");
    }
    for tenant in timing["tenants"].as_array().unwrap() {
        assert!(number(&tenant["slowdown"]) > 1.0, "a shared disk and cache: {tenant}");
    }
    assert!(number(&timing["fairness"]["jain"]) <= 1.0);
    let series = timing["series"]["tenants"][0].as_array().unwrap();
    let requests: u64 = series.iter().map(|bin| bin[0].as_u64().unwrap()).sum();
    assert_eq!(Some(requests), timing["tenants"][0]["requests"].as_u64());
}

#[test]
fn each_machine_differs_where_it_should() {
    let folder = folder("timed-machines");
    let mean = |set: &[(&str, &str)]| {
        let found = answer(&folder, set).unwrap();
        number(&found["cases"][0]["timing"]["total"]["mean_ns"])
    };
    let shared = mean(&[]);
    assert!(mean(&[("device.backing.per_tenant", "true")]) < shared);
    assert!(mean(&[("device.backing.schedule", "fifo")]) >= shared);
    assert!(mean(&[("device.cache.read", "20ms")]) > shared);
    assert!(mean(&[("capacity", "600 blocks")]) < shared);
    let ram = [("machine.system", "buffer-cache"), ("device.cache.model", "ram")];
    let found = answer(&folder, &ram).unwrap();
    assert_eq!(found["spec"]["machine"]["read_ahead"], "linux");
    assert!(found["cases"][0]["timing"]["read_ahead_blocks"].as_u64() > Some(0));
    let closed =
        answer(&folder, &[("replay.loop", "closed"), ("replay.queue_depth", "1")]).unwrap();
    let little = &closed["cases"][0]["timing"]["little"];
    assert!(number(&little["mean_inside"]) <= 2.0 && little["max_inside"] == 2, "{little}");
}

#[test]
fn the_answer_does_not_depend_on_threads_and_is_kept() {
    let folder = folder("timed-threads");
    let vary = vec![
        ("policy".to_owned(), vec!["lru".to_owned(), "arc".to_owned()]),
        ("partition".to_owned(), vec!["shared".to_owned(), "hull".to_owned()]),
        ("device.backing.model".to_owned(), vec!["hdd-7200-2tb".into(), "hdd-10045-9gb".into()]),
    ];
    let origin = folder.path.join("stack.toml");
    let with = |threads, out: &str| {
        let out = Some(folder.path.join(out));
        let set = pairs(&[("machine.alone", "true"), ("replay.interval", "100ms")]);
        let options = RunOptions { threads, vary: vary.clone(), set, out, ..RunOptions::default() };
        run(STACK, &origin, &options, &quiet).unwrap()
    };
    let mut one = with(1, "one");
    assert_eq!(one["cases"].as_array().unwrap().len(), 8);
    assert_eq!(one.to_string(), with(2, "two").to_string());
    let mut kept = with(2, "one");
    assert_eq!((one["reused"].take(), kept["reused"].take()), (0.into(), 8.into()));
    assert_eq!(one.to_string(), kept.to_string(), "read back");
}

/// Long enough for progress to be told several times by each of three replays.
#[test]
fn progress_counts_the_requests_of_all_replays_and_can_stop_them() {
    let folder = folder("timed-progress");
    folder.with("a.csv", &small_trace(5, 60_000, 500));
    let (origin, most) = (folder.path.join("stack.toml"), AtomicU64::new(0));
    let set = pairs(&[("machine.alone", "true"), ("device.backing.model", "null")]);
    let options = RunOptions { set, threads: 1, ..RunOptions::default() };
    let replaying = |stage: &str| stage == "replaying on devices";
    run(STACK, &origin, &options, &|note| {
        if replaying(note.stage) {
            assert!(note.done <= note.total.unwrap(), "{note:?}");
            most.fetch_max(note.done, Ordering::Relaxed);
        }
        true
    })
    .unwrap();
    assert!(most.into_inner() > 60_000, "more than one replay is counted");
    let error = run(STACK, &origin, &options, &|note| !replaying(note.stage)).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

#[test]
fn a_stack_without_devices_has_no_word_of_them() {
    let folder = folder("timed-without");
    let text = "[cache]\ncapacity = \"9 blocks\"\n[[tenant]]\ntrace = \"a.csv\"\n";
    let resolved = check(text, &folder.path.join("stack.toml"), &[]).unwrap();
    assert!(resolved.get("device").is_none() && resolved.get("machine").is_none());
    let error = check(&(text.to_owned() + "[machine]\n"), &folder.path.join("s.toml"), &[]);
    assert!(error.unwrap_err().to_string().contains("found `[machine]`, expected"));
}

#[test]
fn latency_curves_begin_without_a_cache_and_need_devices() {
    let folder = folder("timed-latency");
    let origin = folder.path.join("stack.toml");
    let curve = CurveOptions {
        latency: true,
        sizes: sizes(&["50 blocks", "200 blocks", "500 blocks"]),
        policies: vec!["lru".into(), "arc".into()],
        ..CurveOptions::default()
    };
    let options = MrcOptions { curve, ..MrcOptions::default() };
    let text = STACK.replace("[replay]", "[replay]\ncurves = false");
    let found = mrc(&text, &origin, &options, &quiet).unwrap();
    let again = mrc(&text, &origin, &MrcOptions { threads: 1, ..options.clone() }, &quiet);
    assert_eq!(found.to_string(), again.unwrap().to_string());
    let curves = found["latency"].as_array().unwrap();
    assert_eq!(curves.len(), 4, "two tenants under two policies");
    for curve in curves {
        let points = curve["points"].as_array().unwrap();
        let sizes: Vec<u64> = points.iter().map(|p| p["size_blocks"].as_u64().unwrap()).collect();
        assert_eq!(sizes, [0, 50, 200, 500]);
        let means: Vec<f64> = points.iter().map(|point| number(&point["mean_ns"])).collect();
        assert_eq!(points[0]["hit_ratio"], 0.0);
        assert!(means[3] < means[0], "{means:?}");
    }
    let bare = "[cache]\ncapacity = \"9 blocks\"\n[[tenant]]\ntrace = \"a.csv\"\n";
    let error = mrc(bare, &origin, &options, &quiet).unwrap_err().to_string();
    assert!(error.contains("`latency`: found a stack without devices"), "{error}");
}
