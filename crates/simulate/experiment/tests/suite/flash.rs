//! A drive under the cache: policy, partition and separation in one run.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{DriveOptions, RunOptions, WaOptions, check, run, wa};
use cachewright_types::declare::Percent;
use cachewright_types::{Bytes, Seed};
use common::{Folder, pairs, quiet};
use serde_json::Value;
use std::path::Path;

/// Two tenants, caches of 256 blocks of 4 KiB, superblocks of eight pages.
const STACK: &str = r#"
[cache]
capacity = "1MiB"

[flash]
superblock = "32KiB"
over_provisioning = "60%"
reserve = 2

[[tenant]]
name = "a"
trace = "a.csv"

[[tenant]]
name = "b"
trace = "b.csv"
"#;

fn vary(keys: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let own = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    keys.iter().map(|(key, values)| ((*key).to_owned(), own(values))).collect()
}

/// Skewed reads and writes of one or two blocks, and some trims.
fn trace(seed: u64) -> String {
    let mut rng = Seed(seed).rng();
    let line = |time: usize| {
        let u = rng.unit();
        let block = (u * u * u * 900.0) as u64;
        let op = ["R", "W", "W", "T"][rng.below(31) as usize / 10];
        format!("1,{op},{},{},{time}\n", block * 4096, 4096 * (1 + rng.below(2)))
    };
    (0..6000).map(line).collect()
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &trace(1));
    folder.with("b.csv", &trace(2));
    folder
}

fn ran(folder: &Path, options: &RunOptions) -> Result<Value, String> {
    run(STACK, &folder.join("stack.toml"), options, &quiet).map_err(|error| error.to_string())
}

fn cases(result: &Value) -> &Vec<Value> {
    result["cases"].as_array().unwrap()
}

#[test]
fn the_drive_is_written_what_the_cache_writes() {
    let folder = folder("flash-writes");
    for (block, pages) in [("4KiB", 1), ("8KiB", 2)] {
        for replay in ["open", "closed"] {
            let set = pairs(&[("block", block), ("replay.loop", replay)]);
            let modes = ["write-back", "write-through", "write-around", "read-only"];
            let vary = vary(&[("write", &modes), ("partition", &["shared", "hull", "static"])]);
            let result = ran(&folder.path, &RunOptions { set, vary, ..RunOptions::default() });
            for case in cases(&result.unwrap()) {
                let (flash, total) = (&case["flash"], &case["total"]);
                let written = total["cache_writes"].as_u64().unwrap();
                assert!(written > 256, "{written}");
                assert_eq!(flash["user_pages"], pages * written, "{}", case["settings"]);
                assert_eq!(flash["logical_pages"], 256);
                let flash_pages = flash["flash_pages"].as_u64().unwrap();
                let moved = flash["moved_pages"].as_u64().unwrap();
                assert_eq!(flash_pages, pages * written + moved);
                assert_eq!(flash["trimmed_pages"], 0, "nothing is trimmed unless asked");
            }
        }
    }
}

/// One spec, every stage varied: hit ratios know nothing of the drive, threads change no byte, and
/// what the folder holds is not run again.
#[test]
fn stages_compose_and_threads_change_nothing() {
    let folder = folder("flash-compose");
    let keys: [(&str, &[&str]); 4] = [
        ("policy", &["lru", "s3-fifo"]),
        ("partition", &["shared", "hull"]),
        ("separation", &["none", "2r", "sepbit", "shiro"]),
        ("reclaim", &["greedy", "cost-benefit"]),
    ];
    let once = |threads, out: Option<&str>| {
        let out = out.map(|name| folder.path.join(name));
        let options = RunOptions { vary: vary(&keys), threads, out, ..RunOptions::default() };
        ran(&folder.path, &options).unwrap()
    };
    let one = once(1, None);
    let (mut kept, mut again) = (once(2, Some("kept")), once(1, Some("kept")));
    assert_eq!((kept["reused"].take(), again["reused"].take()), (0.into(), 32.into()));
    assert_eq!(kept.to_string(), again.to_string());
    assert_eq!(kept["cases"].to_string(), one["cases"].to_string());
    let ratio = |case: &Value| case["total"]["hit_ratio"].as_f64().unwrap();
    let extra = |case: &Value| case["flash"]["extra_writes"].as_f64().unwrap();
    for group in cases(&one).chunks(8) {
        assert!(group.iter().all(|case| ratio(case) == ratio(&group[0])));
        let settings = group.iter().map(|case| case["settings"]["flash.separation"].clone());
        assert_eq!(settings.collect::<Vec<_>>()[..3], ["none", "none", "2r"]);
        assert!(group.iter().all(|case| extra(case) > 0.0), "the drive is written many times");
        assert!(group.iter().any(|case| extra(case) != extra(&group[0])));
        let learned: Vec<bool> = group.iter().map(|c| c["flash"]["learning"].is_object()).collect();
        assert_eq!(learned, [false, false, false, false, false, false, true, true]);
    }
    assert!(ratio(&cases(&one)[0]) != ratio(&cases(&one)[31]), "policies differ");
}

/// A cache that holds everything, written in the order of addresses, is the drive that `wa` makes
/// of the trace.
#[test]
fn a_cache_that_holds_all_writes_what_the_host_writes() {
    let folder = Folder::new("flash-whole");
    let mut rng = Seed(5).rng();
    let fill = (0..256_u64).collect::<Vec<_>>();
    let random: Vec<u64> = (0..4000).map(|_| rng.below(256)).collect();
    let line = |(time, page): (usize, &u64)| format!("1,W,{},4096,{time}\n", page * 4096);
    let text: String = fill.iter().chain(&random).enumerate().map(line).collect();
    folder.with("a.csv", &text);
    let stack = STACK.split("[[tenant]]\nname = \"b\"").next().unwrap();
    let origin = folder.path.join("stack.toml");
    let cached = run(stack, &origin, &RunOptions::default(), &quiet).unwrap();
    let drive = DriveOptions {
        op: vec![Percent(0.6)],
        separations: vec!["none".to_owned()],
        superblock: Some(Bytes(32_768)),
        reserve: Some(2),
        ..DriveOptions::default()
    };
    let options = WaOptions { drive, ..WaOptions::default() };
    let host = wa(stack, &origin, &options, &quiet).unwrap();
    let (cached, host) = (&cached["cases"][0]["flash"], &host["cases"][0]);
    for key in ["user_pages", "moved_pages", "collections", "erases", "write_amplification"] {
        assert_eq!(cached[key], host[key], "{key}");
    }
    assert!(host["moved_pages"].as_u64().unwrap() > 1000);
}

/// `wa` of a stack is on the drive of its `[flash]` table, but for what it is told otherwise.
#[test]
fn wa_takes_what_it_is_not_told_from_the_stack() {
    let folder = folder("flash-wa");
    let origin = folder.path.join("stack.toml");
    let measured = |options: DriveOptions, stack: &str| {
        let drive = DriveOptions { separations: vec!["none".to_owned()], ..options };
        wa(stack, &origin, &WaOptions { drive, ..WaOptions::default() }, &quiet).unwrap()
    };
    let of = |result: &Value| {
        let keys = ["superblock_bytes", "page_bytes", "reserve_superblocks"];
        let sizes = keys.map(|key| result[key].as_u64().unwrap());
        (sizes, result["cases"][0]["op"].as_f64().unwrap())
    };
    let own = measured(DriveOptions::default(), STACK);
    assert_eq!(of(&own), ([32_768, 4096, 2], 0.6));
    let (op, reserve) = (vec![Percent(0.9)], Some(3));
    let told = DriveOptions { op, reserve, ..DriveOptions::default() };
    assert_eq!(of(&measured(told, STACK)), ([32_768, 4096, 3], 0.9));
}

#[test]
fn places_that_are_trimmed_need_not_be_moved() {
    let folder = folder("flash-trim");
    let set = pairs(&[("write", "read-only"), ("flash.over_provisioning", "20%")]);
    let keys = vary(&[("flash.trim_evicted", &["false", "true"])]);
    let options = RunOptions { set, vary: keys, ..RunOptions::default() };
    let result = ran(&folder.path, &options).unwrap();
    let [kept, trimmed] = [0, 1].map(|case| &result["cases"][case]["flash"]);
    assert_eq!((&kept["trimmed_pages"], &kept["trim_evicted"]), (&0.into(), &false.into()));
    let total = &result["cases"][1]["total"];
    let left = ["evictions", "invalidations"].map(|key| total[key].as_u64().unwrap());
    assert_eq!(trimmed["trimmed_pages"], left[0] + left[1]);
    let moved = |flash: &Value| flash["moved_pages"].as_u64().unwrap();
    assert!(moved(trimmed) < moved(kept), "{} {}", moved(trimmed), moved(kept));
}

#[test]
fn what_cannot_be_is_refused_by_key() {
    let folder = folder("flash-refusals");
    type Words<'a> = &'a [&'a str];
    let cases: [(&[(&str, &str)], Words<'_>); 11] = [
        (&[("separation", "sepbitt")], &["`sepbitt`", "nearest is `sepbit`"]),
        (&[("separation.x", "1"), ("separation.name", "none")], &["separation `none`", "x"]),
        (&[("separation", "fk")], &["`flash.separation`", "needs the future", "`wa`"]),
        (&[("reclaim", "gredy")], &["nearest is `greedy`"]),
        (&[("flash.pages", "4KiB")], &["`flash.pages`", "nearest is `page`"]),
        (&[("flash.page", "8KiB")], &["`flash.page`: found 8KiB", "`cache.block` (4KiB)"]),
        (&[("flash.superblock", "6000B")], &["`flash.superblock`", "2 to 16777216 pages of 4KiB"]),
        (&[("flash.over_provisioning", "0%")], &["`flash.over_provisioning`", "spare pages"]),
        (&[("flash.over_provisioning", "7")], &["`flash.over_provisioning`", "such as `7%`"]),
        (&[("flash.capacity", "64KiB")], &["`flash.capacity`: found 16 pages, expected 256"]),
        (
            &[("flash.over_provisioning", "1%")],
            &["none, cost-benefit, 1%", "raise `flash.over_provisioning`", "`flash.reserve`"],
        ),
    ];
    for (set, expected) in cases {
        let options = RunOptions { set: pairs(set), ..RunOptions::default() };
        let error = ran(&folder.path, &options).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{error}: expected {part}");
        }
    }
}

#[test]
fn a_stack_without_the_table_is_as_it_was_and_resolves_without_it() {
    let folder = folder("flash-absent");
    let origin = folder.path.join("stack.toml");
    let with = check(STACK, &origin, &[]).unwrap();
    assert_eq!(with["flash"]["over_provisioning"], "60%");
    assert_eq!(with["flash"]["separation"]["name"], "none");
    assert_eq!(with["flash"]["capacity"], "auto");
    let start = STACK.find("[flash]").unwrap();
    let end = STACK.find("[[tenant]]").unwrap();
    let plain = STACK.replace(&STACK[start..end], "");
    assert!(check(&plain, &origin, &[]).unwrap().get("flash").is_none());
    let result = run(&plain, &origin, &RunOptions::default(), &quiet).unwrap();
    assert!(result["cases"][0].get("flash").is_none());
    assert!(result["cases"][0]["settings"].get("flash.separation").is_none());
}

#[test]
fn the_example_that_is_shipped_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let origin = root.join("specs/flash-cache.toml");
    let text = std::fs::read_to_string(&origin).unwrap();
    let found = check(&text, &origin, &[]).unwrap();
    assert_eq!(found["flash"]["capacity"], "auto");
    assert_eq!(found["flash"]["reclaim"]["name"], "cost-benefit");
}
