//! `replay.warmup` in stack files: what it changes in results, where it is refused, and that
//! replays alone and kept answers know of it.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, number, quiet, small_trace, total, two_traces, walk};
use serde_json::Value;

const STACK: &str = drive_stack!(100, "alone = true\n", "");

/// Two tenants with a request per 100 us: 3,000 and 2,000 requests.
fn folder(name: &str) -> Folder {
    two_traces(name, [(3000, 500), (2000, 400)])
}

/// Reads and writes from a place in a small trace on.
fn data(seed: u64, requests: u64, blocks: u64, from: usize) -> u64 {
    let text = small_trace(seed, requests, blocks);
    text.lines().skip(from).filter(|line| !line.contains(",T,")).count() as u64
}

#[test]
fn counts_are_of_what_arrives_after_it() {
    let folder = folder("warmup-counts");
    let found = answer_to(&folder, STACK, &[("replay.warmup", "150ms")]).unwrap();
    let whole = answer_to(&folder, STACK, &[]).unwrap();
    let (case, timing) = (&found["cases"][0], &found["cases"][0]["timing"]);
    let wanted = [data(5, 3000, 500, 1500), data(6, 2000, 400, 1500)];
    assert_eq!(number(&timing["total"]["requests"]) as u64, wanted[0] + wanted[1]);
    assert_eq!(total(case, "requests"), wanted[0] + wanted[1]);
    for (tenant, wanted) in wanted.iter().enumerate() {
        let (one, before) = (&timing["tenants"][tenant], &whole["cases"][0]["timing"]["tenants"]);
        assert_eq!(number(&one["requests"]) as u64, *wanted);
        assert_eq!(&case["tenants"][tenant]["requests"], &one["requests"]);
        assert_eq!(case["tenants"][tenant]["mean_response_ns"], one["mean_ns"]);
        assert_ne!(one["alone_mean_ns"], before[tenant]["alone_mean_ns"], "cut as well");
        let parts = one["breakdown_ns"].as_object().unwrap();
        let sum: f64 = parts.values().map(number).sum();
        assert!((sum / number(&one["mean_ns"]) - 1.0).abs() < 1e-9, "{one}");
        let rate = number(&one["throughput_per_s"]);
        assert!((rate / number(&before[tenant]["throughput_per_s"]) - 1.0).abs() < 0.05);
    }
    let little = &timing["little"];
    let law = number(&little["arrivals_per_s"]) * number(&little["mean_response_ns"]) / 1e9;
    assert!((number(&little["mean_inside"]) / law - 1.0).abs() < 1e-9, "{little}");
    assert_eq!(found["series_rows"], whole["series_rows"]);
    assert_eq!(timing["series"], whole["cases"][0]["timing"]["series"]);
    assert_eq!(timing["devices"], whole["cases"][0]["timing"]["devices"]);
}

/// A walk over 10 blocks, thrice: the first lap misses and is left out.
#[test]
fn an_open_loop_without_devices_counts_hits_after_it() {
    let folder = Folder::new("warmup-untimed");
    folder.with("a.csv", &walk(10, 3, 1000));
    let stack = "[cache]\ncapacity = \"10 blocks\"\n[replay]\nwindows = 3\n\
                 [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let counts = |warmup: &str| {
        let found = answer_to(&folder, stack, &[("replay.warmup", warmup)]).unwrap();
        let case = &found["cases"][0];
        (total(case, "accesses"), total(case, "hits"), found["series_rows"].clone())
    };
    let whole = counts("0s");
    assert_eq!((whole.0, whole.1), (30, 20));
    assert_eq!(counts("10ms"), (20, 20, whole.2.clone()));
    assert_eq!(counts("9ms"), (21, 20, whole.2));
}

/// The same walk, by share and by number; all requests of a lap have one time, so that no time
/// would leave out a part of one.
#[test]
fn a_share_or_a_number_of_requests_is_left_out_exactly() {
    let folder = Folder::new("warmup-requests");
    let lines = (0..30_u64).map(|request| {
        let (block, lap) = (request % 10, request / 10);
        format!("1,R,{},4096,{}\n", block * 4096, lap * 1_000_000)
    });
    folder.with("a.csv", &lines.collect::<String>());
    let stack = "[cache]\ncapacity = \"10 blocks\"\n[replay]\nwindows = 3\n\
                 [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let counts = |warmup: &str| {
        let found = answer_to(&folder, stack, &[("replay.warmup", warmup)]).unwrap();
        let case = &found["cases"][0];
        [total(case, "requests"), total(case, "accesses"), total(case, "hits")]
    };
    assert_eq!(counts("10 requests"), [20, 20, 20]);
    assert_eq!(counts("4 requests"), [26, 26, 20]);
    assert_eq!(counts("1 request"), [29, 29, 20]);
    assert_eq!(counts("15requests"), [15, 15, 15]);
    assert_eq!(counts("29 requests"), [1, 1, 1]);
    assert_eq!(counts("0 requests"), counts("0s"));
    assert_eq!(counts("0%"), counts("0s"));
    assert_eq!(counts("50%"), counts("15 requests"));
    assert_eq!(counts("99%"), counts("29 requests"), "a share is rounded down");
    assert_eq!(counts("10%"), [27, 27, 20]);
    let refused = |set: &[(&str, &str)]| answer_to(&folder, stack, set).unwrap_err();
    let error = refused(&[("replay.warmup", "30 requests")]);
    let expected = "`replay.warmup`: found 30 requests for traces of 30 reads and writes, expected";
    assert!(error.contains(expected), "{error}");
    for wrong in ["100%", "-1%", "8000 request s", "many requests", "8000", "-5 requests"] {
        let error = refused(&[("replay.warmup", wrong)]);
        assert!(error.contains("a number such as `8000 requests`"), "{wrong}: {error}");
    }
    let error = refused(&[("replay.warmup", "10%"), ("replay.loop", "closed")]);
    assert!(error.contains("`replay.warmup`: found `10%`, expected a time in a closed"), "{error}");
}

/// Reads and writes are counted, over all tenants in the order in which they arrive; trims are not.
#[test]
fn requests_of_a_warmup_are_reads_and_writes_of_all_tenants() {
    let folder = folder("warmup-data");
    let stack = "[cache]\ncapacity = \"100 blocks\"\n[replay]\nwindows = 7\n[[tenant]]\n\
                 name = \"a\"\ntrace = \"a.csv\"\n[[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n";
    let whole = answer_to(&folder, stack, &[]).unwrap();
    let all = total(&whole["cases"][0], "requests");
    assert_eq!(all, data(5, 3000, 500, 0) + data(6, 2000, 400, 0));
    for part in [1, 100, all / 2, all - 1] {
        let warmup = format!("{part} requests");
        let found = answer_to(&folder, stack, &[("replay.warmup", &warmup)]).unwrap();
        assert_eq!(total(&found["cases"][0], "requests"), all - part, "{warmup}");
        assert_eq!(found["series_rows"], whole["series_rows"]);
    }
}

/// On devices a warm-up by requests ends as the first counted one arrives.
#[test]
fn on_devices_a_number_of_requests_is_the_time_at_which_the_next_one_arrives() {
    let folder = Folder::new("warmup-devices");
    folder.with("a.csv", &walk(10, 3, 1000));
    let stack = "[cache]\ncapacity = \"10 blocks\"\n[device.cache]\nmodel = \"fixed-latency\"\n\
                 read = \"100us\"\nwrite = \"60us\"\n[device.backing]\nmodel = \"fixed-latency\"\n\
                 read = \"1ms\"\nwrite = \"1ms\"\n[machine]\nsystem = \"tiered\"\n\
                 [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let answer = |warmup: &str| {
        let found = answer_to(&folder, stack, &[("replay.warmup", warmup)]).unwrap();
        found["cases"][0].clone()
    };
    let (requests, time) = (answer("12 requests"), answer("12ms"));
    assert_eq!(total(&requests, "requests"), 18);
    assert_eq!(requests["total"], time["total"]);
    assert_eq!(requests["timing"], time["timing"]);
    assert_eq!(answer("40%")["total"], requests["total"]);
}

#[test]
fn it_is_refused_where_nothing_of_an_open_loop_would_be_left() {
    let folder = folder("warmup-refused");
    let error = answer_to(&folder, STACK, &[("replay.warmup", "1s")]).unwrap_err();
    assert!(error.contains("`replay.warmup`: found 1s for traces that span 299.9ms"), "{error}");
    let closed = [("replay.loop", "closed"), ("replay.warmup", "10s")];
    let found = answer_to(&folder, STACK, &closed).unwrap();
    assert_eq!(found["cases"][0]["timing"]["total"]["requests"], 0, "it ended before");
    assert_eq!(total(&found["cases"][0], "accesses"), 0);
    let untimed = "[cache]\ncapacity = \"9 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let long = [closed[0], ("replay.warmup", "1000s")];
    let found = answer_to(&folder, untimed, &long).unwrap();
    assert_eq!(total(&found["cases"][0], "accesses"), 0, "nor without devices");
}

/// Cases that differ in the warm-up share neither replays alone nor kept answers.
#[test]
fn cases_of_other_warmups_are_other_cases() {
    let folder = folder("warmup-shared");
    let with = |warmups: &[&str]| {
        let values = warmups.iter().map(|value| (*value).to_owned()).collect();
        let vary = vec![("replay.warmup".to_owned(), values)];
        let out = Some(folder.path.join("out"));
        let options = RunOptions { vary, out, threads: 2, ..RunOptions::default() };
        run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap()
    };
    let both = with(&["0s", "200ms"]);
    let alone = |found: &Value, case: usize| {
        found["cases"][case]["timing"]["tenants"][0]["alone_mean_ns"].clone()
    };
    assert_ne!(alone(&both, 0), alone(&both, 1));
    let one = answer_to(&folder, STACK, &[("replay.warmup", "200ms")]).unwrap();
    assert_eq!(alone(&both, 1), alone(&one, 0));
    assert_eq!(with(&["200ms"])["reused"], 1);
    assert_eq!(with(&["100ms"])["reused"], 0);
}

/// Another trace leaves the cache as its requests at the head of the same trace would.
#[test]
fn the_history_of_a_tenant_is_replayed_first_and_not_counted() {
    let folder = folder("warmup-history");
    let whole = std::fs::read_to_string(folder.path.join("a.csv")).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    folder.with("before.csv", &lines[..1200].join("\n"));
    folder.with("rest.csv", &lines[1200..].join("\n"));
    let stack = |trace: &str| {
        format!(
            "[cache]\ncapacity = \"100 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"{trace}\"\n"
        )
    };
    let history = [("replay.warmup", "history"), ("tenant.a.history", "before.csv")];
    let after = answer_to(&folder, &stack("rest.csv"), &history).unwrap();
    let data = whole.lines().take(1200).filter(|line| !line.contains(",T,")).count();
    let head = format!("{data} requests");
    let one = answer_to(&folder, &stack("a.csv"), &[("replay.warmup", &head)]).unwrap();
    for key in ["requests", "accesses", "hits", "write_backs"] {
        assert_eq!(after["cases"][0]["total"][key], one["cases"][0]["total"][key], "{key}");
    }
    let note = "the first 1200 requests are those of its history, which are not counted";
    assert_eq!(after["tenants"][0]["notes"][0], note);
    folder.with("torn.csv", &format!("{}\nnonsense,R,x\n", lines[..1200].join("\n")));
    let torn = ("tenant.a.history", "torn.csv");
    let skip = ("tenant.a.on_bad_record", "skip");
    let torn = answer_to(&folder, &stack("rest.csv"), &[history[0], torn, skip]).unwrap();
    assert_eq!(torn["cases"][0]["total"]["hits"], after["cases"][0]["total"]["hits"]);
    let notes = &torn["tenants"][0]["notes"];
    let said = notes[1].as_str().unwrap_or_default();
    assert!(
        said.starts_with("of its history 1 malformed record skipped, the first in line 1201, ")
    );
    let cold = answer_to(&folder, &stack("rest.csv"), &[]).unwrap();
    assert!(total(&cold["cases"][0], "hits") < total(&after["cases"][0], "hits"));
    for (key, values, set) in [
        ("tenant.a.history", ["before.csv", "rest.csv"], history[0]),
        ("replay.warmup", ["history", "0s"], history[1]),
    ] {
        let vary = vec![(key.to_owned(), values.map(str::to_owned).to_vec())];
        let options = RunOptions { vary, set: common::pairs(&[set]), ..RunOptions::default() };
        let origin = folder.path.join("stack.toml");
        let found = run(&stack("rest.csv"), &origin, &options, &quiet).unwrap();
        let hits = [0, 1].map(|case| total(&found["cases"][case], "hits"));
        assert_eq!(hits[0], total(&after["cases"][0], "hits"), "{key}");
        assert_ne!(hits[0], hits[1], "{key}: cases of other histories share no recording");
    }
    let error = answer_to(&folder, &stack("rest.csv"), &history[..1]).unwrap_err();
    assert!(error.contains("`replay.warmup`: found history, expected a tenant with a `history`"));
    let closed = [history[0], history[1], ("replay.loop", "closed")];
    let error = answer_to(&folder, &stack("rest.csv"), &closed).unwrap_err();
    assert!(error.contains("`replay.warmup`: found `history`, expected a time in a closed loop"));
}
