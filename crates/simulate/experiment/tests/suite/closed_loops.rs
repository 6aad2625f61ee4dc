//! Keys of closed loops that once needed devices, in stacks without them, and on a drive: a hit
//! takes 100 us, a miss 5 ms.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, number, quiet, small_trace};
use serde_json::Value;

/// Two blocks, read over and over until 20 ms: two misses until 10 ms, then 100 hits.
const STACK: &str = "
[cache]
capacity = \"4 blocks\"
[replay]
loop = \"closed\"
queue_depth = 1
windows = 10
curves = false
[[tenant]]
name = \"a\"
trace = \"a.csv\"
repeat = true
stop = \"20ms\"
";
const TRACE: &str = "1,R,0,4096,0\n1,R,4096,4096,7\n";

fn answer(name: &str, trace: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let folder = Folder::new(name);
    folder.with("a.csv", trace);
    answer_to(&folder, STACK, set)
}

/// Requests, hits, mean response in us, run time in us.
fn found(answer: &Value) -> [u64; 4] {
    let only = &answer["cases"][0]["tenants"][0];
    let whole = |key: &str| number(&only[key]) as u64;
    let us = |key: &str| (number(&only[key]) / 1000.0).round() as u64;
    [whole("requests"), whole("hits"), us("mean_response_ns"), us("run_time_ns")]
}

fn series(answer: &Value, at: &Value) -> Vec<u64> {
    assert!(!at.is_null(), "{answer}");
    let pairs = at["tenants"][0]["series"].as_array().unwrap().iter();
    pairs.map(|pair| pair[0].as_u64().unwrap()).collect()
}

#[test]
fn a_tenant_repeats_until_it_stops() {
    let whole = answer("closed-repeat", TRACE, &[]).unwrap();
    assert_eq!(found(&whole), [102, 100, 196, 20_000]);
    let rows = whole["series_rows"].as_array().unwrap();
    let ends: Vec<u64> = rows.iter().step_by(2).map(|row| row[2].as_u64().unwrap()).collect();
    assert_eq!(ends, (1..=10).map(|n| n * 2_000_000).collect::<Vec<_>>(), "windows are of time");
    let once = answer("closed-once", TRACE, &[("tenant.a.repeat", "false")]).unwrap();
    assert_eq!(found(&once), [2, 0, 5000, 10_000]);
}

#[test]
fn what_is_sent_in_the_warm_up_does_not_count() {
    let warm = answer("closed-warmup", TRACE, &[("replay.warmup", "10ms")]).unwrap();
    assert_eq!(found(&warm), [100, 100, 100, 20_000]);
    let rate = number(&warm["cases"][0]["tenants"][0]["throughput_per_s"]);
    assert_eq!(rate, 10_000.0, "from the end of the warm-up");
}

#[test]
fn throughput_is_counted_in_windows() {
    let set = [("replay.throughput_window", "5ms")];
    let whole = answer("closed-throughput", TRACE, &set).unwrap();
    let case = &whole["cases"][0];
    assert_eq!(series(&whole, &case["throughput"]), [0, 1, 50, 50, 1]);
    let only = &case["throughput"]["tenants"][0];
    assert_eq!((&only["windows"], number(&only["requests_per_s_mean"])), (&4.into(), 5050.0));
    assert_eq!(number(&only["bytes_per_s_mean"]), 5050.0 * 4096.0);
    assert_eq!(case["timing"], Value::Null);
    let error = answer(
        "open-throughput",
        TRACE,
        &[set[0], ("tenant.a.repeat", "false"), ("replay.loop", "open")],
    );
    let error = error.unwrap_err();
    assert!(error.contains("`replay.throughput_window`: found without"), "{error}");
}

#[test]
fn windows_of_throughput_are_written_beside_the_result() {
    let folder = Folder::new("closed-throughput-file");
    let stack = folder.with("a.csv", TRACE);
    let out = Some(folder.path.join("out"));
    let set = vec![("replay.throughput_window".to_owned(), "5ms".to_owned())];
    let options = RunOptions { set, out, ..RunOptions::default() };
    assert_eq!(run(STACK, &stack, &options, &quiet).unwrap()["throughput"], "throughput.parquet");
    let again = run(STACK, &stack, &options, &quiet).unwrap();
    assert_eq!((&again["reused"], &again["throughput"]), (&1.into(), &"throughput.parquet".into()));
}

/// On from 0 to 1 ms, from 2 to 3 and so on: the miss ends at 5 ms, the hits come from 6, 8 and 10
/// ms on, ten in each period but the last.
#[test]
fn a_noisy_tenant_sends_in_its_on_periods() {
    let text: String = (0..30).map(|time| format!("1,R,0,4096,{time}\n")).collect();
    let noise = "{ on = \"1ms\", off = \"1ms\", lengths = \"fixed\" }";
    let set = [("tenant.a.noise", noise), ("tenant.a.repeat", "false")];
    let noisy = answer("closed-noise", &text, &set).unwrap();
    assert_eq!(found(&noisy), [30, 29, 263, 10_900]);
}

#[test]
fn each_process_pauses_as_it_did() {
    let calls = "0,7,1,0,4096,R,0\n200,8,1,4096,4096,R,0\n300,8,1,4096,4096,R,0\n\
                 1000,7,1,0,4096,R,100\n";
    let set = [("tenant.a.pauses", "recorded"), ("tenant.a.repeat", "false")];
    let syscall = [set[0], set[1], ("tenant.a.format", "syscall")];
    let found_calls = answer("closed-pauses", calls, &syscall).unwrap();
    assert_eq!(found(&found_calls), [4, 2, 2550, 10_400]);
    let error = answer("closed-no-processes", TRACE, &set).unwrap_err();
    assert!(error.contains("`tenant[1].pauses`: found `recorded`, expected a trace"), "{error}");
}

/// The trace ends in the open loop where the first of its own share and the common stop says.
#[test]
fn a_share_and_a_stop_of_all_tenants_go_together() {
    let text: String = (0..100).map(|time| format!("1,R,0,4096,{}\n", time * 1000)).collect();
    let requests = |stop: &str, all: &str, pace: &str| {
        let set = [
            ("tenant.a.repeat", "false"),
            ("tenant.a.stop", stop),
            ("replay.stop", all),
            ("replay.loop", pace),
        ];
        let found = answer("share-and-stop", &text, &set).unwrap();
        number(&found["cases"][0]["tenants"][0]["requests"]) as u64
    };
    assert_eq!(requests("30%", "60ms", "open"), 30);
    assert_eq!(requests("30%", "20ms", "open"), 20);
    // One miss until 5 ms, then a hit per 100 us.
    assert_eq!(requests("30%", "60ms", "closed"), 30);
    assert_eq!(requests("30%", "6ms", "closed"), 11);
}

/// A drive with its data cache: the same keys together. In an off-period what was under way is
/// answered, and nothing else.
#[test]
fn a_drive_takes_every_key_of_closed_loops() {
    let folder = Folder::new("closed-drive");
    folder.with("a.csv", &small_trace(1, 300, 40));
    let drive = [
        ("device.ssd.model", "mqsim-default"),
        ("machine.system", "ssd"),
        ("cache.block", "8KiB"),
        ("device.ssd.fill", "empty"),
    ];
    let keys = [
        ("replay.warmup", "20ms"),
        ("replay.throughput_window", "10ms"),
        ("tenant.a.stop", "100ms"),
        ("tenant.a.noise", "{ on = \"10ms\", off = \"10ms\", lengths = \"fixed\" }"),
    ];
    let whole = answer_to(&folder, STACK, &[drive.as_slice(), &keys].concat()).unwrap();
    let case = &whole["cases"][0];
    let series = series(&whole, &case["timing"]["throughput"]);
    for (window, requests) in series.iter().enumerate() {
        assert_eq!(*requests > 1, window % 2 == 0, "{series:?}");
    }
    let counted: u64 = series.iter().skip(2).sum();
    let requests = case["tenants"][0]["requests"].as_u64().unwrap();
    assert!(requests > 300 && requests.abs_diff(counted) <= 1, "{requests} of {series:?}");
}

/// Every trace is decoded once, whatever replays it.
#[test]
fn a_trace_is_read_once() {
    let folder = Folder::new("read-once");
    let stack = folder.with("a.csv", &small_trace(1, 300, 40));
    let devices = [
        ("device.cache.model", "ram"),
        ("device.backing.model", "fixed-latency"),
        ("replay.stop", "20ms"),
    ];
    let set = devices.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let vary =
        vec![("device.backing.per_tenant".to_owned(), vec!["false".to_owned(), "true".to_owned()])];
    let stages = std::sync::Mutex::new(Vec::new());
    let told = |news: cachewright_experiment::Progress| {
        let mut stages = stages.lock().unwrap();
        if news.done > 0 && stages.last() != Some(&news.stage) {
            stages.push(news.stage);
        }
        true
    };
    let options = RunOptions { set, vary, ..RunOptions::default() };
    run(STACK, &stack, &options, &told).unwrap();
    let stages = stages.into_inner().unwrap();
    let reading =
        stages.iter().filter(|stage| stage.contains("trace") || stage.contains("placing"));
    assert_eq!(reading.collect::<Vec<_>>(), [&"reading traces"], "{stages:?}");
}
