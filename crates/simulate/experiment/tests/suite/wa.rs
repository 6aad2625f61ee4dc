//! Write amplification: a case worked by hand, trims, determinism, refusals in words.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{DriveOptions, WaOptions, wa};
use cachewright_types::declare::{Declared, Percent, Value as Setting, ValueKind};
use cachewright_types::{Bytes, Seed};
use common::{Folder, quiet};
use serde_json::Value;

const STACK: &str =
    "[cache]\ncapacity = \"100%wss\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn percents(texts: &[&str]) -> Vec<Percent> {
    let percent = |text: &&str| Percent::read(&Setting::Text((*text).to_owned())).unwrap();
    texts.iter().map(percent).collect()
}

/// Superblocks of four pages, greedy, one separation.
fn small() -> DriveOptions {
    DriveOptions {
        op: percents(&["100%"]),
        separations: strings(&["none"]),
        reclaims: strings(&["greedy"]),
        superblock: Some(Bytes(16_384)),
        reserve: Some(2),
        ..DriveOptions::default()
    }
}

fn measured(trace: &str, options: &DriveOptions) -> Result<Value, String> {
    measured_on(0, trace, options)
}

fn measured_on(threads: usize, trace: &str, options: &DriveOptions) -> Result<Value, String> {
    let folder = Folder::new(&format!("wa-{:x}", Seed(1).derive(&format!("{trace}{options:?}")).0));
    folder.with("a.csv", trace);
    let origin = folder.with("load.csv", &writes(&[0, 1, 2, 3, 4, 5, 6, 7]));
    let mut drive = options.clone();
    for load in &mut drive.load {
        *load = folder.path.join(&load).display().to_string();
    }
    let options = WaOptions { drive, threads, ..WaOptions::default() };
    wa(STACK, &origin, &options, &quiet).map_err(|error| error.to_string())
}

/// One write of one page per number.
fn writes(pages: &[u64]) -> String {
    pages.iter().enumerate().map(|(i, p)| format!("1,W,{},4096,{i}\n", p * 4096)).collect()
}

/// Each page of `blocks` once, then `count` random ones of them, skewed.
fn random(blocks: u64, count: usize) -> String {
    let mut rng = Seed(9).rng();
    let mut pages: Vec<u64> = (0..blocks).collect();
    pages.extend((0..count).map(|_| {
        let u = rng.unit();
        (u * u * u * blocks as f64) as u64
    }));
    writes(&pages)
}

/// Eight pages, superblocks A to E of four, two kept free. A holds 0 1 2 3, B 4 5 6 7, C 0 1 2 0,
/// and 4 opens D: one is free. So before 5 is written, A, with three invalid pages, is cleaned: 3
/// moves to D. Lifetimes are 8 for 0 1 2 4 5, 3 for the second 0; eight pages and 3 are left.
#[test]
fn the_hand_worked_case() {
    let trace = writes(&[0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 0, 4, 5]);
    let options = DriveOptions { op: percents(&["150%"]), ..small() };
    let result = measured(&trace, &options).unwrap();
    assert_eq!([&result["logical_pages"], &result["working_pages"]], [8, 8]);
    let case = &result["cases"][0];
    assert_eq!(case["superblocks"], 5);
    assert_eq!([&case["user_pages"], &case["moved_pages"], &case["flash_pages"]], [14, 1, 15]);
    assert_eq!(case["collections"], 1);
    assert_eq!(case["extra_writes"].as_f64().unwrap(), 15.0 / 14.0 - 1.0);
    assert_eq!(case["victim_invalid_share"], 0.75);
    assert_eq!([&case["erases"]["max"], &case["erases"]["mean"]], [1.0, 0.2]);
    let stream = &case["streams"][0];
    let bins = serde_json::json!([[4, 1, 0], [8, 5, 0], [null, 8, 1]]);
    assert_eq!(stream["lifetimes"], bins);
    assert_eq!([&stream["user_pages"], &stream["moved_pages"]], [14, 1]);
}

#[test]
fn the_series_adds_up() {
    let result = measured(&random(64, 2000), &small()).unwrap();
    let case = &result["cases"][0];
    let sum = |column: usize| -> u64 {
        let rows = case["series"].as_array().unwrap();
        rows.iter().map(|row| row[column].as_u64().unwrap()).sum()
    };
    assert_eq!(sum(1), 2064);
    assert_eq!(sum(2), case["flash_pages"].as_u64().unwrap());
    let last = case["series"].as_array().unwrap().last().unwrap()[0].as_f64().unwrap();
    assert_eq!(last, result["drive_writes"].as_f64().unwrap());
    assert!(case["series"].as_array().unwrap().len() > 100);
}

/// The upper half is overwritten at random; the lower half is moved about unless it was trimmed.
#[test]
fn trimmed_pages_are_not_moved() {
    let mut rng = Seed(4).rng();
    let fill: Vec<u64> = (0..64).collect();
    let trims: String = (0..32).map(|page| format!("1,T,{},4096,0\n", page * 4096)).collect();
    let rest: Vec<u64> = (0..2000).map(|_| 32 + rng.below(32)).collect();
    let options = DriveOptions { op: percents(&["30%"]), ..small() };
    let moved = |trace: &str| {
        let result = measured(trace, &options).unwrap();
        let case = &result["cases"][0];
        ["moved_pages", "trimmed_pages"].map(|key| case[key].as_u64().unwrap())
    };
    let kept = moved(&(writes(&fill) + &writes(&rest)));
    let trimmed = moved(&(writes(&fill) + &trims + &writes(&rest)));
    assert_eq!((kept[1], trimmed[1]), (0, 32));
    assert!(2 * trimmed[0] < kept[0], "{trimmed:?} {kept:?}");
    let part = writes(&fill) + "1,T,100,4096,5\n" + &writes(&[0]);
    assert_eq!(moved(&part)[1], 0, "a trim that covers no whole page drops none");
}

/// Every separation with one reclaim, and every reclaim with two separations.
#[test]
fn the_result_does_not_depend_on_threads() {
    let trace = random(256, 3000);
    for (separations, reclaims, op, least) in [
        (&["all"][..], &["cost-benefit"][..], "100%", 8),
        (&["none", "sepbit"], &["all"], "60%", 8),
    ] {
        let run = |threads| {
            let options = DriveOptions {
                separations: strings(separations),
                reclaims: strings(reclaims),
                op: percents(&[op]),
                ..small()
            };
            measured_on(threads, &trace, &options).unwrap()
        };
        let one = run(1);
        assert_eq!(one.to_string(), run(2).to_string());
        let cases = one["cases"].as_array().unwrap();
        assert!(cases.len() >= least && cases.iter().all(|case| case["user_pages"] == 3256));
        for case in cases {
            let streams = case["streams"].as_array().unwrap();
            let sum = |key: &str| streams.iter().map(|s| s[key].as_u64().unwrap()).sum::<u64>();
            assert_eq!(sum("user_pages"), 3256);
            assert_eq!(sum("moved_pages"), case["moved_pages"].as_u64().unwrap());
        }
    }
}

#[test]
fn a_load_is_replayed_first_and_not_counted() {
    let options = DriveOptions { op: percents(&["150%"]), load: strings(&["load.csv"]), ..small() };
    let result = measured(&writes(&[0, 1, 2, 0, 4, 5]), &options).unwrap();
    assert_eq!([&result["load_pages"], &result["user_pages"]], [8, 6]);
    let case = &result["cases"][0];
    assert_eq!([&case["moved_pages"], &case["mapped_pages"]], [1, 8]);
    assert_eq!(case["streams"][0]["user_pages"], 6);
    let options = DriveOptions { op: percents(&["200%"]), ..options };
    let other = measured(&writes(&[0]).replace("1,W", "2,W"), &options).unwrap();
    assert!(other["warnings"].to_string().contains("not in the load"), "{}", other["warnings"]);
}

#[test]
fn a_loop_runs_only_when_asked_and_says_so() {
    let trace = random(64, 300);
    let once = measured(&trace, &small()).unwrap();
    assert_eq!(once["looped"], false);
    assert!(once["warnings"].to_string().contains("found 5.7 drive writes, expected at least 10"));
    let cut = measured(&trace, &DriveOptions { drive_writes: Some(2.0), ..small() }).unwrap();
    assert_eq!((&cut["user_pages"], &cut["looped"]), (&128.into(), &false.into()));
    let options = DriveOptions { r#loop: true, drive_writes: Some(20.0), ..small() };
    let looped = measured(&trace, &options).unwrap();
    assert_eq!((&looped["user_pages"], &looped["looped"]), (&1280.into(), &true.into()));
    assert!(looped["warnings"].to_string().contains("replayed 3.5 times as asked"));
}

#[test]
fn a_capacity_makes_the_drive_larger_than_what_is_written() {
    let trace = random(64, 2000);
    let wide = measured(&trace, &DriveOptions { capacity: "1MiB".to_owned(), ..small() }).unwrap();
    assert_eq!((&wide["logical_pages"], &wide["scaled"]), (&256.into(), &false.into()));
    let scaled = measured(&trace, &small()).unwrap();
    assert_eq!(scaled["scaled"], true);
    let moved = |result: &Value| result["cases"][0]["moved_pages"].as_u64().unwrap();
    assert!(moved(&wide) < moved(&scaled));
}

fn live(options: DriveOptions) -> DriveOptions {
    DriveOptions { capacity: "live".to_owned(), ..options }
}

#[test]
fn numbers_that_recycle_change_nothing_where_nothing_is_trimmed() {
    let trace = random(256, 6000);
    let options = || DriveOptions {
        separations: strings(&["all"]),
        op: percents(&["60%"]),
        r#loop: true,
        drive_writes: Some(12.0),
        ..small()
    };
    let (old, new) = (measured(&trace, &options()).unwrap(), measured(&trace, &live(options())));
    let new = new.unwrap();
    for key in ["logical_pages", "working_pages", "live_pages", "user_pages", "rounds"] {
        assert_eq!(old[key], new[key], "{key}");
    }
    let pairs = old["cases"].as_array().unwrap().iter().zip(new["cases"].as_array().unwrap());
    for (old, new) in pairs.filter(|(old, _)| old["bound"] == false) {
        let mut old = old.clone();
        // What follows the last repetition is known to the old numbering alone.
        old["streams"] = new["streams"].clone();
        assert_eq!(&old, new);
    }
}

/// Files of 16 pages on 64 places, each trimmed before the next is written: 4 live at once.
#[test]
fn a_drive_of_live_pages_is_as_large_as_its_peak() {
    let mut trace = String::new();
    let at = |file: u64| (file * 7 % 64) * 16 * 4096;
    for file in 0..403_u64 {
        if file < 400 {
            trace += &format!("1,W,{},{},{file}\n", at(file), 16 * 4096);
        }
        if file >= 3 {
            trace += &format!("1,T,{},{},{file}\n", at(file - 3), 16 * 4096);
        }
    }
    let options = || DriveOptions { op: percents(&["60%"]), ..small() };
    let old = measured(&trace, &options()).unwrap();
    let new = measured(&trace, &live(options())).unwrap();
    assert_eq!((&old["logical_pages"], &new["logical_pages"]), (&1024.into(), &64.into()));
    assert_eq!((&new["live_pages"], &new["working_pages"]), (&64.into(), &1024.into()));
    assert_eq!((&new["scaled"], &new["capacity"]), (&true.into(), &"live".into()));
    assert_eq!([&new["drive_writes"], &old["drive_writes"]], [100.0, 6.25]);
    assert_eq!(new["cases"][0]["trimmed_pages"], 396 * 16, "the run ends with its last write");
    assert!(!new["warnings"].to_string().contains("drive writes"), "{}", new["warnings"]);
    let looped = DriveOptions { r#loop: true, drive_writes: Some(250.0), ..live(options()) };
    let looped = measured(&trace, &looped).unwrap();
    assert_eq!((&looped["user_pages"], &looped["rounds"]), (&16_000.into(), &2.5.into()));
    assert!(looped["warnings"].to_string().contains("replayed 2.5 times as asked"));
}

#[test]
fn metadata_is_charged_as_a_share_of_the_drive() {
    let meta = |separation: &str| {
        let options = DriveOptions {
            page: Some(Bytes(4096)),
            superblock: Some(Bytes(131_072)),
            separations: strings(&[separation]),
            op: percents(&["300%"]),
            ..small()
        };
        let result = measured(&random(4096, 12_000), &options).unwrap();
        let case = &result["cases"][0];
        let number = |key: &str| case[key].as_f64().unwrap();
        let bytes = (number("metadata_bytes_per_page"), number("memory_bytes_per_page"));
        (number("meta_pages") / number("flash_pages"), bytes)
    };
    let close = |found: f64, expected: f64| (found - expected).abs() < 0.0005;
    // 36 bytes of 16 KiB: a page of metadata in every fourteenth superblock of 32 pages.
    let (paper, bytes) = meta("{ name = \"shiro\", window_share = 4.0 }");
    assert!(close(paper, 36.0 / 16384.0) && bytes == (36.0, 0.36), "{paper}, {bytes:?}");
    let (memory, bytes) = meta("{ name = \"shiro\", window_share = 4.0, meta_share = 0.0 }");
    assert!(memory == 0.0 && bytes == (36.0, 36.0), "{bytes:?}");
    let (eighth, _) = meta("{ name = \"shiro\", window_share = 4.0, meta_share = 0.125 }");
    assert!(close(eighth, 0.125), "whole pages: 4 of 32: {eighth}");
    let (control, bytes) = meta("{ name = \"sepbit\", meta_share = 0.002197265625 }");
    assert!(close(control, 36.0 / 16384.0) && bytes == (4.0, 4.0), "{control}");
    assert_eq!(meta("sepbit").0, 0.0);
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let words = |list: &str| strings(&[list]);
    let base = small;
    let cases: Vec<(DriveOptions, &[&str])> = vec![
        (
            DriveOptions { op: vec![Percent(-0.07)], ..base() },
            &["`op`: found `-7%`, expected a percentage"],
        ),
        (DriveOptions { op: percents(&["0%"]), ..base() }, &["`op`: found `0%`", "spare pages"]),
        (
            DriveOptions { op: percents(&["1.5%"]), ..base() },
            &["none, greedy, 1.5% over-provisioning", "raise `op`, or lower `superblock`"],
        ),
        (DriveOptions { separations: words("nonee"), ..base() }, &["`nonee`", "nearest is `none`"]),
        (DriveOptions { reclaims: words("gredy"), ..base() }, &["`gredy`", "nearest is `greedy`"]),
        (
            DriveOptions { separations: words("{name = \"none\", x = 1}"), ..base() },
            &["separation `none`", "x"],
        ),
        (DriveOptions { superblock: Some(Bytes(6000)), ..base() }, &["`superblock`", "`6kB`"]),
        (
            DriveOptions { superblock: Some(Bytes(1 << 20)), ..base() },
            &["`superblock`: found 1MiB, of which a drive of 64 pages has 0, expected more than"],
        ),
        (DriveOptions { page: Some(Bytes(4000)), ..base() }, &["`page`", "power of two"]),
        (DriveOptions { capacity: "64KiB".to_owned(), ..base() }, &["found 16 pages, expected 64"]),
        (DriveOptions { capacity: "64".to_owned(), ..base() }, &["`capacity`", "unit", "`live`"]),
        (
            DriveOptions { drive_writes: Some(0.0), ..base() },
            &["`drive_writes`: found `0.0`, expected a number from"],
        ),
        (DriveOptions { separations: Vec::new(), ..base() }, &["`separations`", "at least one"]),
        (DriveOptions { load: words("none.csv"), ..base() }, &["none.csv"]),
    ];
    for (options, expected) in cases {
        let error = measured(&random(64, 100), &options).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{error}: expected {part}");
        }
    }
    let op = Setting::List(vec![Setting::Text("7".to_owned())]);
    let error = DriveOptions::from_pairs(&[("op".to_owned(), op)]).unwrap_err().to_string();
    assert!(error.starts_with("`op`: found `\"7\"`") && error.ends_with("such as `7%`"), "{error}");
    let error = measured("1,R,0,4096,0\n", &small()).unwrap_err();
    assert!(error.contains("found no write"), "{error}");
}
