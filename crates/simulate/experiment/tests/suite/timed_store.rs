//! Stack files whose machine keeps a log on flash: what is refused, what is answered, and that it
//! decides exactly as `wa` does.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{
    CurveOptions, DriveOptions, MrcOptions, RunOptions, WaOptions, mrc, run, wa,
};
use cachewright_types::Seed;
use common::{Folder, answer_to, number, quiet, sizes, total, two_traces};
use serde_json::Value;

const STACK: &str = concat!(
    "
[cache]
capacity = \"60 blocks\"
[flash]
separation = \"2r\"
reclaim = \"greedy\"
over_provisioning = \"40%\"
superblock = \"64KiB\"
[device.cache]
model = \"ram\"
[device.backing]
model = \"fixed-latency\"
[machine]
system = \"flash-store\"
",
    two_tenants!()
);

fn folder(name: &str) -> Folder {
    two_traces(name, [(6000, 500), (4000, 400)])
}

fn answer(folder: &Folder, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, STACK, set)
}

#[test]
fn impossible_stores_are_refused_by_key_with_what_was_expected() {
    let folder = folder("store-refusal");
    let cases: [(&[(&str, &str)], &str); 12] = [
        (&[("machine.system", "flash-stor")], "nearest is `flash-store`"),
        (&[("flash.over_provisioning", "0%")], "`flash.over_provisioning`: found `0%`"),
        (&[("flash.over_provisioning", "1%")], "raise `flash.over_provisioning`"),
        (&[("flash.superblock", "2KiB")], "`flash.superblock`: found `2KiB`, expected 2 to"),
        (&[("flash.page", "8KiB")], "expected at most `cache.block` (4KiB)"),
        (&[("flash.separation", "future-knowledge")], "needs the future"),
        (&[("flash.capacity", "1MiB")], "(what its tenants' volumes take) to"),
        (&[("flash.trim_evicted", "true")], "`flash.trim_evicted`: found with `machine.system"),
        (&[("machine.command", "2KiB")], "`machine.command`: found 2KiB, expected at least"),
        (&[("machine.append_depth", "0")], "`machine.append_depth`: found `0`, expected"),
        (&[("machine.system", "tiered")], "found unknown key `machine.append_depth`"),
        (
            &[("device.backing.capacity", "3MiB")],
            "`device.backing`: found a capacity of 3MiB, expected at least",
        ),
    ];
    let text = STACK.replace("flash-store\"\n", "flash-store\"\nappend_depth = 2\n");
    for (set, expected) in cases {
        let error = answer_to(&folder, &text, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
        assert!(error.contains("stack.toml"), "{error}");
    }
    let error = answer(&folder, &[("machine.system", "tiered")]).unwrap_err();
    assert!(error.contains("found `[flash]` and `[device]`"), "{error}");
    let flash = STACK.find("[flash]").unwrap()..STACK.find("[device.cache]").unwrap();
    let mut without = STACK.to_owned();
    without.replace_range(flash, "");
    let error = answer_to(&folder, &without, &[]).unwrap_err();
    assert!(error.contains("`machine.system`: found `flash-store` without a `[flash]`"), "{error}");
}

#[test]
fn every_request_is_answered_once_and_its_parts_add_up() {
    let folder = folder("store-answer");
    let loops: [&[(&str, &str)]; 3] = [
        &[("machine.alone", "true")],
        &[("replay.loop", "closed"), ("machine.reset_time", "50ms"), ("write", "write-through")],
        &[("device.backing.per_tenant", "true"), ("machine.layout", "as-is")],
    ];
    for set in loops {
        let found = answer(&folder, set).unwrap();
        let (case, timing) = (&found["cases"][0], &found["cases"][0]["timing"]);
        let requests = number(&timing["total"]["requests"]);
        assert_eq!(requests as u64, total(case, "requests"), "{set:?}");
        for one in [&timing["total"], &timing["tenants"][0], &timing["tenants"][1]] {
            let parts = one["breakdown_ns"].as_object().unwrap();
            let sum: f64 = parts.values().map(number).sum();
            assert!((sum / number(&one["mean_ns"]) - 1.0).abs() < 1e-9, "{one}");
        }
        let store = &timing["store"];
        let count = |key: &str| number(&store[key]);
        let programmed = count("user_pages") + count("moved_pages");
        assert_eq!(count("write_amplification"), programmed / count("user_pages"));
        assert!(count("collections") > 0.0 && count("moved_pages") > 0.0, "{set:?} {store}");
        assert_eq!(count("resets"), count("collections"), "all of them were carried out");
        let devices = timing["devices"].as_array().unwrap();
        let backing = &devices[1..];
        let sum = |key: &str| backing.iter().map(|device| number(&device[key])).sum::<f64>();
        assert_eq!(sum("write_bytes"), 4096.0 * programmed, "{set:?}");
        assert_eq!(sum("writes"), count("appends"));
        assert_eq!(sum("reads"), count("reads") + count("move_reads") + count("update_reads"));
        assert_eq!(backing.len(), if set.len() == 2 { 2 } else { 1 });
        let layout = if set.len() == 2 { "as-is" } else { "dense" };
        assert_eq!(timing["layout"], layout);
        let waits = timing["total"]["breakdown_ns"].get("backing segment wait").is_some();
        assert_eq!(waits, set.len() == 3, "slow resets make writes wait");
        assert_eq!(count("held_pages") > 0.0, waits);
    }
}

/// Writes and trims of whole pages straight to the store, which begins empty, as a drive of `wa`.
#[test]
fn it_decides_exactly_as_wa_does() {
    let mut rng = Seed(17).rng();
    let mut text = String::new();
    for time in 0..2500 {
        let u = rng.unit();
        let (first, pages) = ((u * u * 600.0) as u64, 1 + rng.below(6));
        let op = if rng.below(25) == 0 { 'T' } else { 'W' };
        text += &format!("1,{op},{},{},{}\n", first * 4096, pages * 4096, time * 10);
    }
    let folder = Folder::new("store-wa");
    folder.with("a.csv", &text);
    // Enough for the streams of `midas`.
    let stack = STACK[..STACK.rfind("[[tenant]]").unwrap()].replace("40%", "60%");
    let stack = stack.as_str();
    let schemes = ["none", "2r", "dac", "sepbit", "midas", "shiro", "shiro-x"];
    for reclaim in ["greedy", "cost-benefit", "d-choices"] {
        let drive = DriveOptions {
            separations: schemes.map(str::to_owned).to_vec(),
            reclaims: vec![reclaim.to_owned()],
            ..DriveOptions::default()
        };
        let options = WaOptions { drive, ..WaOptions::default() };
        let counted = wa(stack, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
        for (separation, drive) in schemes.iter().zip(counted["cases"].as_array().unwrap()) {
            let set = [
                ("flash.separation", *separation),
                ("flash.reclaim", reclaim),
                ("machine.initial", "empty"),
                ("cache.write", "write-around"),
                ("device.backing.model", "null"),
            ];
            let found = answer_to(&folder, stack, &set).unwrap();
            let store = &found["cases"][0]["timing"]["store"];
            for key in ["user_pages", "moved_pages", "collections", "write_amplification"] {
                assert_eq!(store[key], drive[key], "{separation}, {reclaim}: {key}");
            }
            assert!(number(&store["moved_pages"]) > 100.0);
            assert_eq!(store["logical_pages"], counted["logical_pages"]);
        }
    }
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = folder("store-threads");
    let schemes = ["none", "sepbit"].map(str::to_owned).to_vec();
    let vary = vec![("flash.separation".to_owned(), schemes)];
    let origin = folder.path.join("stack.toml");
    let with = |threads| {
        let set = vec![("machine.alone".to_owned(), "true".to_owned())];
        let options = RunOptions { threads, vary: vary.clone(), set, ..RunOptions::default() };
        run(STACK, &origin, &options, &quiet).unwrap()
    };
    let one = with(1);
    assert_eq!(one.to_string(), with(2).to_string());
    let moved = |case: usize| one["cases"][case]["timing"]["store"]["moved_pages"].clone();
    assert_ne!(moved(0), moved(1));
}

#[test]
fn latency_curves_of_a_store_begin_without_a_cache() {
    let folder = folder("store-latency");
    let sizes = sizes(&["50 blocks"]);
    let curve = CurveOptions { latency: true, sizes, ..CurveOptions::default() };
    let options = MrcOptions { curve, ..MrcOptions::default() };
    let text = format!("{STACK}[replay]\ncurves = false\n");
    let found = mrc(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    let points = found["latency"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert!(number(&points[1]["mean_ns"]) < number(&points[0]["mean_ns"]), "{points:?}");
}
