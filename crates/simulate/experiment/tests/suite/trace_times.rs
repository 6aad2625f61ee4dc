//! What a trace's times mean: running backwards, absent, on a common clock; records beyond bounds.
//!
//! For: `trace info` and stack files over small traces. Must never know: readers' insides.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::common;

use cachewright_experiment::{CharacterizeOptions, InfoOptions, TraceChoice, characterize, info};
use common::{Folder, answer_to, quiet};
use serde_json::Value;

fn info_of(folder: &Folder, name: &str) -> Value {
    info(&folder.path.join(name), &InfoOptions::default(), &quiet).unwrap()
}

const BACKWARDS: &str = "3,R,0,4096,500000\n3,R,4096,4096,1499000\n3,R,8192,4096,1000000\n\
                         3,W,0,4096,501000\n";

/// The span was 13 ms where it is 999 ms.
#[test]
fn the_span_of_times_that_run_backwards_is_from_earliest_to_latest() {
    let folder = Folder::new("times-span");
    folder.with("t.csv", BACKWARDS);
    let facts = info_of(&folder, "t.csv");
    assert_eq!(facts["span_ns"], 999_000_000);
    assert_eq!(facts["out_of_order"], 2);
    folder.with("r.csv", "3,R,0,4096,1499000\n3,R,0,4096,500000\n");
    let facts = info_of(&folder, "r.csv");
    assert_eq!((&facts["span_ns"], &facts["out_of_order"]), (&999_000_000.into(), &1.into()));
    let counted: u64 =
        facts["rate"].as_array().unwrap().iter().map(|row| row[1].as_u64().unwrap()).sum();
    assert_eq!(counted, 2);
}

/// A rate of 10^9 requests per second was invented.
#[test]
fn a_trace_without_times_has_neither_span_nor_rate() {
    let folder = Folder::new("times-none");
    folder.with("p.lis", "64 8 0 0\n0 8 0 1\n64 8 0 2\n");
    let facts = info_of(&folder, "p.lis");
    assert_eq!((&facts["format"], &facts["has_times"]), (&"arc".into(), &false.into()));
    assert!(facts["span_ns"].is_null() && facts["rate_per_s"].is_null(), "{facts}");
    assert_eq!(facts["rate"].as_array().unwrap().len(), 0);
    assert_eq!(facts["requests"], 3);

    let character = |every: &str| {
        let choice = TraceChoice::default();
        let options = CharacterizeOptions { choice, every: every.to_owned(), model: None };
        characterize(&folder.path.join("p.lis"), &options, &quiet)
    };
    let error = character("60s").unwrap_err().to_string();
    assert!(error.contains("because the trace has no times"), "{error}");
    assert!(character("2").is_ok());
}

fn run(folder: &Folder, stack: &str) -> Result<Value, String> {
    answer_to(folder, stack, &[])
}

#[test]
fn a_run_says_which_tenants_have_no_times_or_late_requests() {
    let folder = Folder::new("times-run");
    folder.with("p.lis", "64 8 0 0\n0 8 0 1\n64 8 0 2\n");
    folder.with("t.csv", BACKWARDS);
    let stack = "[cache]\ncapacity = \"4 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"p.lis\"\n\
                 [[tenant]]\nname = \"b\"\ntrace = \"t.csv\"\n";
    let result = run(&folder, stack).unwrap();
    let facts = |tenant: usize| {
        let facts = &result["tenants"][tenant];
        (facts["has_times"].as_bool().unwrap(), facts["out_of_order"].as_u64().unwrap())
    };
    assert_eq!((facts(0), facts(1)), ((false, 0), (true, 2)));
    let devices =
        "[device.cache]\nmodel = \"fixed-latency\"\n[device.backing]\nmodel = \"fixed-latency\"\n";
    let error = run(&folder, &format!("{devices}{stack}")).unwrap_err();
    let expected = "`tenant[1].trace`: found no times, expected times in every trace, or \
                    `replay.loop = \"closed\"`";
    assert!(error.ends_with(expected), "{error}");
    let closed = format!("[replay]\nloop = \"closed\"\n{devices}{stack}");
    assert!(run(&folder, &closed).is_ok());
}

#[test]
fn traces_in_separate_files_may_keep_their_common_clock() {
    let folder = Folder::new("times-clock");
    folder.with("late.csv", "1,R,0,4096,3000000\n1,R,4096,4096,4000000\n");
    folder.with("early.csv", "1,R,0,4096,1000000\n1,R,0,4096,2000000\n");
    let stack = |clock: &str| {
        format!(
            "[replay]\nclock = \"{clock}\"\n[cache]\ncapacity = \"4 blocks\"\n\
             [[tenant]]\nname = \"late\"\ntrace = \"late.csv\"\n\
             [[tenant]]\nname = \"early\"\ntrace = \"early.csv\"\n"
        )
    };
    let spans = |clock: &str| {
        let result = run(&folder, &stack(clock)).unwrap();
        [0, 1].map(|tenant| result["tenants"][tenant]["span_ns"].as_u64().unwrap())
    };
    assert_eq!(spans("own"), [1_000_000_000, 1_000_000_000]);
    assert_eq!(spans("common"), [3_000_000_000, 1_000_000_000]);
    let error = run(&folder, &stack("shared")).unwrap_err();
    assert!(error.contains("`replay.clock`: found `shared`, expected one of own, common"));
    folder.with("late.csv", "64 8 0 0\n0 8 0 1\n");
    let error = run(&folder, &stack("common")).unwrap_err();
    assert!(error.contains("found `common, and no times in the trace of `late``"), "{error}");
}

/// One record of 4 EiB made everything run without bound; a trim as long is cheap.
#[test]
fn one_record_cannot_make_a_run_endless() {
    let folder = Folder::new("times-endless");
    let stack = |more: &str| {
        format!(
            "[cache]\ncapacity = \"4 blocks\"\n\
             [[tenant]]\nname = \"a\"\ntrace = \"t.csv\"\n{more}"
        )
    };
    folder.with("t.csv", "3,W,0,4096,1\n3,T,0,4611686018427387904,2\n3,W,0,4096,3\n");
    assert_eq!(info_of(&folder, "t.csv")["trims"], 1);
    assert_eq!(run(&folder, &stack("")).unwrap()["tenants"][0]["trims"], 1);
    folder.with("t.csv", "3,W,0,4096,1\n3,W,0,4611686018427387904,2\n3,W,0,4096,3\n");
    let error = run(&folder, &stack("")).unwrap_err();
    let place =
        "line 2, column 4: found `4611686018427387904`, expected at most 1GiB in one request";
    assert!(error.contains(place), "{error}");
    let result = run(&folder, &stack("on_bad_record = \"skip\"\n")).unwrap();
    assert_eq!(result["tenants"][0]["skipped_bad"], 1);
    let error = run(&folder, &stack("max_request = \"2KiB\"\n")).unwrap_err();
    assert!(error.contains("line 1, column 4: found `4096`, expected at most 2KiB"), "{error}");
    for (key, expected) in [
        ("max_request = \"2TiB\"", "expected a number with a unit (`8KiB`) from 512B to 1TiB"),
        ("time_scale = 1e300", "expected a number from 1e-9 to 1e9"),
    ] {
        let error = run(&folder, &stack(&format!("{key}\n"))).unwrap_err();
        assert!(error.contains("`tenant[1].") && error.contains(expected), "{error}");
    }
}
