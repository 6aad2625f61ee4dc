//! Stacks that ask for too much, or are called what nothing may be called: one sentence each.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::mrc::{CurveOptions, MethodChoice};
use cachewright_experiment::spec::{self, MAX_BYTES};
use cachewright_experiment::{ExperimentError, MrcOptions, RunOptions, check, mrc, run};
use common::{Folder, answer_to, quiet, small_trace};
use std::path::Path;

const STACK: &str =
    "[cache]\ncapacity = \"64 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, 400, 50));
    folder
}

fn refusal(key: &str, value: &str) -> String {
    answer_to(&folder("hostile"), STACK, &[(key, value)]).unwrap_err()
}

#[test]
fn names_that_are_no_file_names_or_labels_are_refused() {
    for (key, value, expected) in [
        ("name", "../../etc/x", "`name`: found `../../etc/x`, expected a name without `/`"),
        ("name", "a\\b", "expected a name without `/`"),
        ("name", "..", "expected a name that is not a folder of its own"),
        ("name", " ", "expected a name that is not empty"),
        ("name", "a\nb", "`name`: found `a\\nb` with the character \\n"),
        ("tenant.a.name", "all", "`tenant[1].name`: found `all`, expected another name"),
        ("tenant.a.name", "\"\\u0000\"", "with the character \\u{0}"),
        ("tenant.a.name", "x\u{1b}[2J", "`tenant[1].name`: found `x\\u{1b}[2J`"),
        ("tenant.a.name", "\u{202e}x", "expected text without control characters"),
        ("cache.models", "{\"a\\nb\" = \"x\"}", "found the key `a\\nb` in `cache.models`"),
        ("policy", "lru\r", "`cache.policy`: found `lru\\r`"),
    ] {
        let error = refusal(key, value);
        assert!(error.contains(expected), "{key}={value:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error:?}");
    }
    let long = "x".repeat(300);
    assert!(refusal("name", &long).contains("found a name of 300 bytes, expected at most 200"));
    let stem = check(STACK, Path::new("/tmp/...toml"), &[]).unwrap_err().to_string();
    assert!(stem.contains("`name`: found `..`"), "{stem}");
}

#[test]
fn numbers_without_a_bound_have_one() {
    for (key, value, expected) in [
        ("tenant.a.time_scale", "1e300", "expected a number from 1e-9 to 1e9"),
        ("tenant.a.time_scale", "nan", "expected a number from 1e-9 to 1e9"),
        ("tenant.a.weight", "1e308", "expected a number from 1e-300 to 1e9"),
        ("tenant.a.start", "5000000h", "expected at most 876000h"),
        ("replay.miss_time", "5000000h", "expected at most 876000h"),
        ("replay.windows", "100000", "expected a whole number from 0 to 10000"),
    ] {
        let error = refusal(key, value);
        assert!(error.contains(expected), "{key}={value}: {error}");
        assert!(error.contains(&format!("found `{value}`")) || error.contains(value), "{error}");
    }
    let error = refusal("tenant.a.schedule", "[1.0, 0.0]");
    let expected = "`tenant[1].schedule`: found `0`, expected numbers from 1e-300 to 1e9";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_closed_loop_of_endless_pauses_ends() {
    let folder = folder("pauses");
    let set = [("replay.loop", "closed"), ("replay.miss_time", "876000h"), ("replay.windows", "0")];
    let answer = answer_to(&folder, STACK, &[&set[..], &[("replay.interval", "0s")]].concat());
    assert_eq!(answer.unwrap()["cases"][0]["total"]["finished_ns"], u64::MAX, "time ends there");
    let error = answer_to(&folder, STACK, &[&set[..], &[("replay.interval", "1us")]].concat());
    let error = error.unwrap_err();
    assert!(error.contains("found more than 10000000 ends of `replay.interval`"), "{error}");
    let devices = "[device.cache]\nmodel = \"fixed-latency\"\n[device.backing]\n\
                   model = \"fixed-latency\"\n";
    let pause = "{ on = \"1us\", off = \"876000h\", lengths = \"fixed\" }";
    let set = [("replay.loop", "closed"), ("tenant.a.noise", pause)];
    let error = answer_to(&folder, &format!("{devices}{STACK}"), &set).unwrap_err();
    assert!(error.contains("found more than 10000000 ends of `replay.interval`"), "{error}");
}

#[test]
fn keys_and_values_of_any_length_get_a_short_sentence() {
    let deep = vec!["a"; 5000].join(".");
    assert!(refusal(&deep, "1").contains("found a key of 5000 names, expected at most 16"));
    let long = "9".repeat(100_000);
    for key in ["capacity", "replay.windows", "replay.interval"] {
        let error = refusal(key, &long);
        assert!(error.len() < 500 && error.contains("..."), "{error}");
    }
    let error = refusal("replay.windows", "1e300");
    assert!(error.contains("`replay.windows`: found `1e300`, expected"), "{error}");
}

fn ran(options: &RunOptions) -> Result<serde_json::Value, ExperimentError> {
    let folder = folder("bounds");
    run(STACK, &folder.path.join("stack.toml"), options, &quiet)
}

#[test]
fn threads_combinations_and_time_series_are_bounded() {
    let error = ran(&RunOptions { threads: 100_000, ..RunOptions::default() }).unwrap_err();
    let expected = "`threads`: found 100000, expected 1 to 1024, or 0 for one per processor";
    assert_eq!(error.to_string(), expected);
    let seeds: Vec<String> = (0..1000).map(|seed| seed.to_string()).collect();
    let vary = |keys: &[&str]| RunOptions {
        vary: keys.iter().map(|key| ((*key).to_owned(), seeds.clone())).collect(),
        ..RunOptions::default()
    };
    let error = ran(&vary(&["seed", "replay.windows"])).unwrap_err().to_string();
    assert_eq!(error, "`vary`: found 1000 x 1000 combinations, expected at most 100000");
    let many = ["seed"; 30];
    assert!(ran(&vary(&many)).is_err(), "a product beyond what is counted");
    let windows = vec![("replay.windows".to_owned(), "10000".to_owned())];
    let wide = RunOptions { set: windows, ..vary(&["seed"]) };
    let wide = RunOptions {
        vary: [wide.vary.clone(), vec![("policy".to_owned(), vec!["lru".to_owned(); 2])]].concat(),
        ..wide
    };
    let error = ran(&wide).unwrap_err().to_string();
    assert!(error.contains("`replay.windows`: found 10000 with 2000 cases"), "{error}");
    assert!(error.contains("expected at most 5000:"), "{error}");
}

#[test]
fn curves_are_bounded_by_the_names_of_their_options() {
    let folder = folder("curves");
    let refused = |curve: CurveOptions| {
        let options = MrcOptions { curve, ..MrcOptions::default() };
        let error = mrc(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap_err();
        error.to_string()
    };
    let with = CurveOptions::default;
    for (options, expected) in [
        (
            CurveOptions { points: 2_000_000_000, ..with() },
            "`points`: found `2000000000`, expected",
        ),
        (
            CurveOptions { windows: 100_000, ..with() },
            "`windows`: found `100000`, expected a whole number from 0 to 1000",
        ),
        (CurveOptions { verify: 1 << 30, ..with() }, "`verify`: found"),
        (
            CurveOptions { method: MethodChoice::ShardsSize, size: Some(0), ..with() },
            "`size`: found `0`, expected",
        ),
        (
            CurveOptions { method: MethodChoice::Shards, rate: Some(f64::NAN), ..with() },
            "`rate`: found `NaN`, expected a number from",
        ),
    ] {
        let error = refused(options);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn stacks_of_too_many_tenants_or_bytes_are_refused_at_once() {
    let tenant = |n: u32| format!("[[tenant]]\nname = \"t{n}\"\ntrace = \"a.csv\"\n");
    let many: String = (0..10_000).map(tenant).collect();
    let stack = format!("[cache]\ncapacity = \"1MiB\"\n{many}");
    let error = spec::parse(&stack, Path::new("s.toml"), &[]).unwrap_err().to_string();
    assert_eq!(error, "s.toml: `tenant`: found 10000 tables, expected at most 4096");
    let large = format!("{STACK}#{}", "x".repeat(MAX_BYTES));
    let error = spec::parse(&large, Path::new("s.toml"), &[]).unwrap_err().to_string();
    assert!(error.contains("found a stack of 4") && error.contains("at most 4MiB"), "{error}");
}

#[test]
fn every_policy_runs_in_the_largest_cache_there_is() {
    let folder = folder("largest");
    let alone = |name: &str| {
        let entry = cachewright_policy::entry(name).unwrap();
        !entry.needs.contains(&cachewright_policy::Need::Model)
    };
    let names = cachewright_policy::entries().into_iter().map(|entry| entry.name);
    for name in names.filter(|name| alone(name)) {
        let set = [("capacity", "4294967278 blocks"), ("policy", name)];
        let answer = answer_to(&folder, STACK, &set).unwrap_or_else(|e| panic!("{name}: {e}"));
        let total = &answer["cases"][0]["total"];
        assert_eq!(total["evictions"], 0, "{name}");
    }
}

#[test]
fn a_text_that_is_no_toml_is_refused_in_one_line() {
    let depth = 100_000;
    let deep = format!("a = {}{}\n", "[".repeat(depth), "]".repeat(depth));
    let dotted = format!("{} = 1\n", vec!["a"; depth].join("."));
    for text in [deep.as_str(), &dotted, "[cache]\nx = \u{0}", "[cache", "= 1"] {
        let error = check(text, Path::new("s.toml"), &[]).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.len() < 500 && error.starts_with("s.toml: "), "{error}");
    }
    let error = check("[cache]\ncapacity = 4 KiB\n", Path::new("s.toml"), &[]).unwrap_err();
    assert!(error.to_string().starts_with("s.toml: line 2, column 1"), "{error}");
}
