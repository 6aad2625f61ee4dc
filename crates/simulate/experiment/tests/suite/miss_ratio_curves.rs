//! Curves of a stack: one grid, exact unless asked otherwise, merged remarks, bounds, kept files.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::mrc::{CurveOptions, MethodChoice, MrcOptions, mrc};
use cachewright_types::Size;
use common::{Folder, number, quiet, sizes, small_trace, two_traces};
use serde_json::{Value, json};

const STACK: &str = "[cache]\ncapacity = \"64 blocks\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n";

fn folder(name: &str) -> Folder {
    two_traces(name, [(4000, 500), (4000, 100)])
}

fn curves(folder: &Folder, options: &CurveOptions) -> Result<Value, String> {
    let origin = folder.path.join("stack.toml");
    mrc(STACK, &origin, &by(options), &quiet).map_err(|error| error.to_string())
}

fn by(curve: &CurveOptions) -> MrcOptions {
    MrcOptions { curve: curve.clone(), ..MrcOptions::default() }
}

fn of_policies(policies: &[&str]) -> CurveOptions {
    let policies = policies.iter().map(|name| (*name).to_owned()).collect();
    CurveOptions { policies, ..CurveOptions::default() }
}

#[test]
fn all_policies_and_tenants_share_one_grid_and_are_exact() {
    let folder = folder("one-grid");
    let found = curves(&folder, &of_policies(&["lru", "sieve", "belady"])).unwrap();
    let sizes = found["sizes_blocks"].as_array().unwrap();
    assert_eq!(sizes.len(), 22, "24 in geometric steps, the small ones rounded to each other");
    for curve in found["curves"].as_array().unwrap() {
        assert_eq!(curve["method"], "exact", "{curve}");
        let points = curve["points"].as_array().unwrap();
        let own: Vec<&Value> = points.iter().map(|point| &point[0]).collect();
        assert_eq!(own, sizes.iter().collect::<Vec<_>>(), "{curve}");
        assert!(points.iter().all(|point| point[2].is_null()), "{curve}");
    }
    assert_eq!(found["notes"], json!([]));
    let alone = curves(&folder, &of_policies(&["sieve"])).unwrap();
    assert_eq!(alone["sizes_blocks"], found["sizes_blocks"]);
    let lru = curves(&folder, &CurveOptions::default()).unwrap();
    assert!(lru["sizes_blocks"].as_array().unwrap().len() > 100, "one stack gives all sizes");
}

/// A simulation cut into parts of a few sizes says what one of all sizes says.
#[test]
fn a_curve_in_parts_is_that_of_runs_at_each_size() {
    let folder = folder("parts");
    let sizes: Vec<Size> = (1..=20).map(|size| Size::Blocks(size * 7)).collect();
    let whole = of_policies(&["s3-fifo"]);
    let together =
        curves(&folder, &CurveOptions { sizes: sizes.clone(), ..whole.clone() }).unwrap();
    for (at, size) in sizes.iter().enumerate() {
        let one = CurveOptions { sizes: vec![*size], ..whole.clone() };
        let one = curves(&folder, &one).unwrap();
        for curve in 0..3 {
            assert_eq!(one["curves"][curve]["points"][0], together["curves"][curve]["points"][at]);
        }
    }
}

#[test]
fn shares_of_the_working_set_are_of_all_tenants() {
    let folder = folder("shares");
    let sizes = sizes(&["50%wss"]);
    let found = curves(&folder, &CurveOptions { sizes, ..of_policies(&["fifo"]) }).unwrap();
    let curves = found["curves"].as_array().unwrap();
    let whole = number(&curves[0]["distinct"]);
    assert_eq!(found["sizes_blocks"], json!([(whole / 2.0).round() as u64]));
    assert!(curves.iter().all(|curve| curve["points"][0][0] == found["sizes_blocks"][0]));
}

#[test]
fn many_curves_have_one_remark() {
    let folder = folder("remarks");
    let options =
        CurveOptions { method: MethodChoice::Mini, ..of_policies(&["fifo", "lru", "arc"]) };
    let found = curves(&folder, &options).unwrap();
    assert_eq!(found["curves"].as_array().unwrap().len(), 9);
    let notes = found["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = notes[0].as_str().unwrap();
    assert!(note.starts_with("9 of 9 curves: sampling at rate 0.01"), "{note}");
    let rate = Some(0.5);
    let sampled = curves(&folder, &CurveOptions { rate, ..of_policies(&["lru"]) }).unwrap();
    assert_eq!(sampled["curves"][0]["method"], "shards, rate 0.5, 8 salts", "a rate asks for it");
}

/// Beyond a million blocks policies are sampled, and the answer says so; LRU is not.
#[test]
fn a_workload_beyond_the_bound_is_sampled_with_a_remark() {
    let folder = Folder::new("beyond-the-bound");
    let mebibytes = (0..4000).map(|at| format!("1,R,{},1048576,{at}\n", (at as u64) << 20));
    folder.with("a.csv", &mebibytes.collect::<String>());
    let stack = "[cache]\ncapacity = \"64 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let origin = folder.path.join("stack.toml");
    let sizes = sizes(&["500000 blocks"]);
    let options = CurveOptions { sizes, ..of_policies(&["lru", "fifo"]) };
    let found = mrc(stack, &origin, &by(&options), &quiet).unwrap();
    let method = |found: &Value, curve: usize| found["curves"][curve]["method"].clone();
    assert_eq!(method(&found, 0), "exact");
    let sampled = method(&found, 1);
    assert!(sampled.as_str().unwrap().starts_with("miniature simulation of fifo"), "{sampled}");
    let note = found["notes"][0].as_str().unwrap();
    let expected = "policies other than lru are sampled: found 1024000 accesses to 1024000 blocks";
    assert!(note.starts_with(expected), "{note}");
    let exactly = CurveOptions { method: MethodChoice::Exact, ..options };
    let found = mrc(stack, &origin, &by(&exactly), &quiet).unwrap();
    assert_eq!(method(&found, 1), "exact");
    assert_eq!(found["notes"], json!([]));
}

#[test]
fn points_windows_and_settings_that_nothing_reads_are_refused_in_words() {
    let folder = folder("bounds");
    let plain = CurveOptions::default;
    let cases = [
        (
            CurveOptions { points: 2_000_000_000, ..plain() },
            "`points`: found `2000000000`, expected a whole number from 0 to 10000",
        ),
        (
            CurveOptions { windows: 100_000, ..plain() },
            "`windows`: found `100000`, expected a whole number from 0 to 1000",
        ),
        (
            CurveOptions { verify: 20_000, ..plain() },
            "`verify`: found `20000`, expected a whole number from 0 to 10000",
        ),
        (
            CurveOptions { windows: 1000, points: 10_000, ..plain() },
            "`points`: found 604 sizes of 3 curves in 1000 windows",
        ),
        (CurveOptions { windows: 2, verify: 3, ..plain() }, "`verify`: found 3 with 2 windows"),
        (CurveOptions { sizes: sizes(&["1KiB"]), ..plain() }, "expected at least one block (4KiB)"),
        (
            CurveOptions { sizes: sizes(&["8TiB"]), ..plain() },
            "found `8TiB`, expected fewer than 2^31",
        ),
        (
            CurveOptions { size: Some(100), ..plain() },
            "`size`: found 100 with method `auto`, expected `shards-size`",
        ),
        (
            CurveOptions { size: Some(3), method: MethodChoice::ShardsSize, ..plain() },
            "`size`: found `3`, expected",
        ),
        (
            CurveOptions { rate: Some(0.1), method: MethodChoice::Exact, ..plain() },
            "`rate`: found 0.1 with method `exact`, expected `shards` or `mini`",
        ),
        (CurveOptions { rate: Some(2.0), ..plain() }, "`rate`: found `2.0`"),
        (CurveOptions { salts: 400, ..plain() }, "`salts`: found `400`"),
    ];
    for (options, expected) in cases {
        let error = curves(&folder, &options).err().unwrap_or_default();
        assert!(error.contains(expected), "found {error}, expected {expected}");
    }
}

#[test]
fn curves_are_kept_and_not_replaced_by_those_of_another_stack() {
    let folder = folder("kept-curves");
    let out = folder.path.join("out");
    let options = MrcOptions { out: Some(out.clone()), ..by(&of_policies(&["lru", "fifo"])) };
    let origin = folder.path.join("stack.toml");
    let measured = |options: &MrcOptions| mrc(STACK, &origin, options, &quiet);
    let found = measured(&options).unwrap();
    let kept = || -> Value {
        serde_json::from_slice(&std::fs::read(out.join("mrc.json")).unwrap()).unwrap()
    };
    assert_eq!(kept(), found);
    assert_eq!(kept()["cachewright"], env!("CARGO_PKG_VERSION"));
    assert!(out.join("mrc.parquet").is_file());
    let parts = std::fs::read_dir(&out).unwrap().count();
    assert_eq!(parts, 2, "nothing half written is left");
    let curve = CurveOptions { points: 5, ..options.curve.clone() };
    measured(&MrcOptions { curve, ..options.clone() }).unwrap();
    assert_eq!(kept()["sizes_blocks"].as_array().unwrap().len(), 5);
    folder.with("c.csv", &small_trace(7, 100, 10));
    let other = STACK.replace("b.csv", "c.csv");
    let error = mrc(&other, &origin, &options, &quiet).unwrap_err().to_string();
    assert!(error.contains("found the result of `stack` ("), "{error}");
    mrc(&other, &origin, &MrcOptions { force: true, ..options.clone() }, &quiet).unwrap();
    std::fs::write(out.join("mrc.json"), "[1, 2").unwrap();
    let error = measured(&options).unwrap_err().to_string();
    assert!(error.contains("found a `mrc.json` that is no result, expected that of"), "{error}");
    let file = MrcOptions { out: Some(folder.path.join("a.csv")), ..options };
    let error = measured(&file).unwrap_err().to_string();
    assert!(error.contains("a.csv: found a file, expected a folder"), "{error}");
}
