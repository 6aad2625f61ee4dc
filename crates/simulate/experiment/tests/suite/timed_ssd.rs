//! Stack files whose machine is one drive: what is refused, what is answered, and what must not
//! change the answer.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{CurveOptions, MrcOptions, RunOptions, check, mrc, run};
use common::{Folder, answer_to, number, pairs, quiet, sizes, total, two_traces};
use serde_json::Value;

const STACK: &str = drive_stack!(100, "", "");

fn folder(name: &str) -> Folder {
    two_traces(name, [(3000, 500), (2000, 400)])
}

fn answer(folder: &Folder, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, STACK, set)
}

#[test]
fn wrong_combinations_are_refused_by_key_with_what_was_expected() {
    let folder = folder("ssd-refusal");
    let cases: [(&[(&str, &str)], &str); 13] = [
        (&[("device.ssd.model", "hdd-7200-2tb")], "`device.ssd.model`: found `hdd-7200-2tb`"),
        (&[("device.ssd.model", "icache-table2")], "nearest is `icache-table1`"),
        (&[("device.ssd.channels", "0")], "`device.ssd.channels`: found `0`, expected"),
        (&[("device.ssd.chanels", "8")], "nearest is `channels`"),
        (&[("cache.block", "4KiB")], "found `4KiB`, expected `8KiB`, the page of `device.ssd`"),
        (&[("device.cache.model", "ram")], "found `[device.cache]` with `machine.system"),
        (&[("device.backing.model", "ram")], "found `[device.backing]` with `machine.system"),
        (&[("machine.spare_blocks", "4")], "found unknown key `machine.spare_blocks`"),
        (&[("machine.dirty_low", "0.9")], "`machine.dirty_low`: found 0.9, expected at most"),
        (&[("machine.write_back", "eagre")], "nearest is `eager`"),
        (&[("policy", "belady")], "needs the future, found none, expected another policy"),
        (&[("flash.separation", "none")], "found `[flash]` and `[device]`"),
        (&[("device.ssd.capacity", "1PB")], "`device.ssd.capacity`: found"),
    ];
    for (set, expected) in cases {
        let error = answer(&folder, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
        assert!(error.contains("stack.toml"), "{error}");
    }
    let tiered = STACK
        .replace("system = \"ssd\"\n", "")
        .replace("read_fill = true\nwrite_back = \"on-eviction\"\n", "");
    let error = check(&tiered, &folder.path.join("stack.toml"), &[]).unwrap_err().to_string();
    assert!(error.contains("found `[device.ssd]`, expected `machine.system = \"ssd\"`"), "{error}");
}

#[test]
fn every_request_is_answered_once_and_its_parts_add_up() {
    let folder = folder("ssd-answer");
    let loops: [&[(&str, &str)]; 2] = [
        &[("machine.alone", "true")],
        &[("machine.alone", "true"), ("replay.loop", "closed"), ("replay.queue_depth", "4")],
    ];
    for set in loops {
        let found = answer(&folder, set).unwrap();
        let (case, timing) = (&found["cases"][0], &found["cases"][0]["timing"]);
        let (requests, expected) = (number(&timing["total"]["requests"]), total(case, "requests"));
        assert_eq!(requests as u64, expected, "{set:?}");
        let accesses = total(&found["cases"][0], "accesses");
        assert!(accesses >= expected && total(case, "hits") > 0);
        for one in [&timing["total"], &timing["tenants"][0], &timing["tenants"][1]] {
            let parts = one["breakdown_ns"].as_object().unwrap();
            let sum: f64 = parts.values().map(number).sum();
            assert!((sum / number(&one["mean_ns"]) - 1.0).abs() < 1e-9, "{one}");
            assert!(parts.contains_key("flash") && parts.contains_key("dram"), "{one}");
            let order = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"];
            assert!(order.map(|k| number(&one[k])).is_sorted(), "{one}");
        }
        let little = &timing["little"];
        let law = number(&little["arrivals_per_s"]) * number(&little["mean_response_ns"]) / 1e9;
        assert!((number(&little["mean_inside"]) / law - 1.0).abs() < 1e-9, "{little}");
        let devices = timing["devices"].as_array().unwrap();
        assert_eq!(devices.len(), 1);
        assert_eq!(
            (&devices[0]["name"], &devices[0]["model"]),
            (&"drive".into(), &"icache-table1".into())
        );
        assert!((0.0..=1.0).contains(&number(&devices[0]["busy"])));
        let drive = &timing["drive"];
        assert_eq!(drive["preconditioned"], "analytic fill", "said in the result");
        assert_eq!(drive["filled_share"], 0.7);
        assert!(number(&drive["write_amplification"]) >= 1.0, "{drive}");
        assert!(number(&drive["host_reads"]) > 0.0 && number(&drive["map_misses"]) > 0.0);
        assert!(number(&drive["unwritten_reads"]) > 0.0, "pages trimmed are read again");
        for tenant in timing["tenants"].as_array().unwrap() {
            assert!(number(&tenant["slowdown"]) > 0.9, "{tenant}");
        }
        assert!(number(&timing["fairness"]["jain"]) <= 1.0);
    }
    let found = answer(&folder, &[("cache.trim", "ignore")]).unwrap();
    let unwritten = &found["cases"][0]["timing"]["drive"]["unwritten_reads"];
    assert_eq!(unwritten, 0, "tenants lie where the drive was filled");
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = folder("ssd-threads");
    let vary = vec![
        ("policy".to_owned(), vec!["lru".to_owned(), "arc".to_owned()]),
        ("partition".to_owned(), vec!["shared".to_owned(), "hull".to_owned()]),
    ];
    let origin = folder.path.join("stack.toml");
    let with = |threads| {
        let set = pairs(&[
            ("machine.alone", "true"),
            ("replay.interval", "50ms"),
            ("replay.windows", "4"),
        ]);
        let options = RunOptions { threads, vary: vary.clone(), set, ..RunOptions::default() };
        run(STACK, &origin, &options, &quiet).unwrap()
    };
    let one = with(1);
    assert_eq!(one["cases"].as_array().unwrap().len(), 4);
    assert_eq!(one.to_string(), with(2).to_string());
    let quota = |case: usize| one["cases"][case]["tenants"][0]["quota_blocks"].clone();
    assert_ne!(quota(0), quota(1), "the control loop divides the data cache");
}

#[test]
fn one_tenant_is_as_without_partition_and_labels_mean_nothing() {
    let folder = folder("ssd-labels");
    let last = STACK.rfind("[[tenant]]").unwrap();
    let alone = &STACK[..last];
    let timing = |text: &str, set: &[(&str, &str)]| {
        answer_to(&folder, text, set).unwrap()["cases"][0]["timing"].clone()
    };
    let shared = timing(alone, &[]);
    assert_eq!(shared, timing(alone, &[("partition", "equal")]));
    assert_eq!(shared, timing(alone, &[("partition", "hull"), ("replay.interval", "50ms")]));
    let both = timing(STACK, &[("partition", "equal")]);
    let named =
        STACK.replace("name = \"a\"", "name = \"x\"").replace("name = \"b\"", "name = \"a\"");
    let named = timing(&named, &[("partition", "equal")]);
    assert_eq!(both["total"], named["total"]);
    let swapped = STACK.replace("\"a", "\"?").replace("\"b", "\"a").replace("\"?", "\"b");
    let swapped = timing(&swapped, &[("partition", "equal")]);
    for (one, other) in [(0, 1), (1, 0)] {
        let (here, there) = (&both["tenants"][one], &swapped["tenants"][other]);
        assert_eq!((&here["name"], &here["requests"]), (&there["name"], &there["requests"]));
        let ratio = number(&here["mean_ns"]) / number(&there["mean_ns"]);
        assert!((ratio - 1.0).abs() < 0.05, "{one}: {ratio}, pages at other places only");
    }
}

#[test]
fn latency_curves_of_a_drive_begin_without_its_cache() {
    let folder = folder("ssd-latency");
    let sizes = sizes(&["50 blocks", "400 blocks"]);
    let curve = CurveOptions { latency: true, sizes, ..CurveOptions::default() };
    let options = MrcOptions { curve, ..MrcOptions::default() };
    let text = format!("{STACK}[replay]\ncurves = false\n");
    let found = mrc(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    let curves = found["latency"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    for curve in curves {
        let points = curve["points"].as_array().unwrap();
        let of = |key: &str| points.iter().map(|point| number(&point[key])).collect::<Vec<_>>();
        assert_eq!(of("size_blocks"), [0.0, 50.0, 400.0]);
        assert_eq!(of("hit_ratio")[0], 0.0);
        assert!(of("hit_ratio").is_sorted(), "{curve}");
        assert!(of("mean_ns")[2] < of("mean_ns")[0], "{curve}");
    }
}
