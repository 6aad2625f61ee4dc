//! Noisy tenants, tenants that repeat, requests of one kind, and throughput in windows of time.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, quiet, small_trace, total};
use serde_json::Value;

/// 300 requests each, on a device that takes 100 us for each of two at a time: a lap of one tenant
/// alone takes 15 ms, the run 200.
const STACK: &str = "
seed = 3
[cache]
capacity = \"50 blocks\"
[device.cache]
model = \"fixed-latency\"
read = \"100us\"
write = \"100us\"
parallelism = 64
[device.backing]
model = \"fixed-latency\"
read = \"100us\"
write = \"100us\"
parallelism = 64
[machine]
system = \"tiered\"
[replay]
loop = \"closed\"
queue_depth = 2
windows = 10
curves = false
stop = \"200ms\"
throughput_window = \"2ms\"
[[tenant]]
name = \"stable\"
trace = \"a.csv\"
repeat = true
[[tenant]]
name = \"noisy\"
trace = \"b.csv\"
repeat = true
noise = { on = \"10ms\", off = \"10ms\" }
";

fn answer(name: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(1, 300, 40));
    folder.with("b.csv", &small_trace(2, 300, 40));
    answer_to(&folder, STACK, set)
}

/// Requests by window of a tenant.
fn series(answer: &Value, tenant: usize) -> Vec<u64> {
    let found = &answer["cases"][0]["timing"]["throughput"]["tenants"][tenant]["series"];
    let count = |pair: &Value| pair[0].as_u64().unwrap();
    found.as_array().unwrap().iter().map(count).collect()
}

fn text<'a>(answer: &'a Value, tenant: usize, key: &str) -> &'a Value {
    &answer["cases"][0]["timing"]["throughput"]["tenants"][tenant][key]
}

#[test]
fn a_noisy_tenant_pauses_and_a_stable_one_does_not() {
    let found = answer("noisy", &[]).unwrap();
    let (stable, noisy) = (series(&found, 0), series(&found, 1));
    // 100 windows, and what was under way at the end.
    assert!((100..=101).contains(&stable.len()));
    assert!(stable.iter().take(100).all(|count| (36..=42).contains(count)), "{stable:?}");
    let idle = noisy.iter().filter(|count| **count == 0).count();
    assert!((15..80).contains(&idle), "{noisy:?}");
    for tenant in 0..2 {
        let windows = text(&found, tenant, "windows");
        assert_eq!(windows, 100, "{tenant}");
    }
    let quotient = |tenant| text(&found, tenant, "requests_mean_over_sd").as_f64().unwrap();
    assert!(quotient(0) > 3.0 * quotient(1), "{} {}", quotient(0), quotient(1));
    let mean = text(&found, 1, "requests_per_s_mean").as_f64().unwrap();
    let counted: u64 = noisy.iter().take(100).sum();
    assert!((mean - counted as f64 / 0.2).abs() < 1e-6);
}

#[test]
fn periods_follow_the_seed_and_the_tenants_name() {
    let whole = |set: &[(&str, &str)]| answer("periods", set).unwrap()["cases"].clone();
    assert_eq!(whole(&[]), whole(&[]), "the same again");
    let idle = |set: &[(&str, &str)]| -> Vec<bool> {
        series(&answer("periods", set).unwrap(), 1).iter().map(|count| *count == 0).collect()
    };
    assert_ne!(idle(&[]), idle(&[("seed", "4")]));
    assert_ne!(idle(&[]), idle(&[("tenant.noisy.name", "other")]));
    assert_eq!(idle(&[]), idle(&[("tenant.stable.name", "other")]), "other tenants change nothing");
    let fixed =
        idle(&[("tenant.noisy.noise", "{ on = \"8ms\", off = \"4ms\", lengths = \"fixed\" }")]);
    let expected: Vec<bool> = (0..100).map(|window| window % 6 >= 4).collect();
    // A window in which the last requests of a period are answered is not idle.
    let differ = fixed.iter().zip(expected).filter(|(found, expected)| **found != *expected);
    assert!(differ.count() <= 34, "{fixed:?}");
}

/// One request in off-periods where others would be silent: of two, half the rate.
#[test]
fn a_noisy_tenant_may_keep_a_few_requests_under_way() {
    let noise = "{ on = \"20ms\", off = \"20ms\", lengths = \"fixed\", off_depth = 1 }";
    let counts = series(&answer("few", &[("tenant.noisy.noise", noise)]).unwrap(), 1);
    // Windows of 2 ms: ten of on-period, ten of off-period; the borders have a bit of both.
    let inner = |from: usize| -> u64 { counts[from + 2..from + 9].iter().sum() };
    for begin in [0, 20, 40, 60] {
        let (on, off) = (inner(begin), inner(begin + 10));
        assert!(off > 0 && off * 10 <= on * 6 && off * 10 >= on * 4, "{on} {off}");
    }
}

/// 300 requests of 4 KiB become 2,400 of 512 bytes, that read and write the same blocks.
#[test]
fn requests_may_be_cut() {
    let facts = |set: &[(&str, &str)]| answer("cut", set).unwrap()["tenants"][0].clone();
    let (whole, cut) = (facts(&[]), facts(&[("tenant.stable.request", "512B")]));
    let bytes = |facts: &Value| (facts["read_bytes"].clone(), facts["write_bytes"].clone());
    assert_eq!((bytes(&whole), &whole["distinct_blocks"]), (bytes(&cut), &cut["distinct_blocks"]));
    let moved =
        |facts: &Value| facts["reads"].as_u64().unwrap() + facts["writes"].as_u64().unwrap();
    let each =
        (whole["read_bytes"].as_u64().unwrap() + whole["write_bytes"].as_u64().unwrap()) / 512;
    assert_eq!((moved(&cut), moved(&cut) > moved(&whole)), (each, true));
}

#[test]
fn a_tenant_that_repeats_goes_on_until_it_stops() {
    let requests = |set: &[(&str, &str)]| {
        let found = answer("repeats", set).unwrap();
        total(&found["cases"][0], "requests")
    };
    let once = [("tenant.stable.repeat", "false"), ("tenant.noisy.repeat", "false")];
    assert!((570..600).contains(&requests(&once)), "all but trims, once");
    assert!(requests(&[]) > 3000, "{}", requests(&[]));
    let found = answer("repeats", &[]).unwrap();
    let rows = found["series_rows"].as_array().unwrap();
    let ends: Vec<u64> = rows.iter().step_by(3).map(|row| row[2].as_u64().unwrap()).collect();
    let tenths: Vec<u64> = (1..=10).map(|window| window * 20_000_000).collect();
    assert_eq!(ends, tenths, "windows are of time");
    let late = answer("repeats", &[("tenant.noisy.start", "300ms")]).unwrap();
    assert_eq!(late["cases"][0]["tenants"][1]["requests"], 0, "who begins after the end is silent");
}

#[test]
fn reads_and_writes_may_all_be_of_one_kind() {
    let set = [("tenant.stable.operation", "read"), ("tenant.noisy.operation", "write")];
    let found = answer("kinds", &set).unwrap();
    let [one, two] = [0, 1].map(|tenant| found["cases"][0]["tenants"][tenant].clone());
    assert_eq!((&one["write_accesses"], &two["read_accesses"]), (&0.into(), &0.into()));
    assert!(one["read_accesses"].as_u64() > Some(0) && two["write_accesses"].as_u64() > Some(0));
    let all = &found["tenants"][1];
    assert_eq!((&all["writes"], &all["reads"]), (&all["requests"], &0.into()));
}

#[test]
fn windows_are_written_beside_the_result() {
    let folder = Folder::new("throughput-file");
    folder.with("a.csv", &small_trace(1, 300, 40));
    let stack = folder.with("b.csv", &small_trace(2, 300, 40));
    let out = folder.path.join("out");
    let options = RunOptions { out: Some(out.clone()), ..RunOptions::default() };
    let first = run(STACK, &stack, &options, &quiet).unwrap();
    assert_eq!(first["throughput"], "throughput.parquet");
    let bytes = std::fs::read(out.join("throughput.parquet")).unwrap();
    assert_eq!(&bytes[..4], b"PAR1");
    run(STACK, &stack, &options, &quiet).unwrap();
    assert_eq!(bytes, std::fs::read(out.join("throughput.parquet")).unwrap(), "kept answers too");
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let refused = |set: &[(&str, &str)]| answer("refused", set).unwrap_err();
    let over = "{ on = \"1ms\", off = \"1ms\", off_depth = 3 }";
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[("replay.loop", "open")], "`tenant[1].repeat`: found"),
        (&[("tenant.noisy.noise", "{ on = \"1ms\" }")], "found no `tenant[2].noise.off`"),
        (&[("tenant.noisy.noise", "{ on = \"1ns\", off = \"1s\" }")], "from 1us to"),
        (&[("tenant.noisy.operation", "trim")], "expected one of as-is, read, write"),
        (&[("tenant.noisy.sample", "0%")], "`tenant[2].sample`: found"),
        (&[("tenant.noisy.noise", over)], "`tenant[2].noise.off_depth`: found `3`"),
        (&[("tenant.noisy.request", "100B")], "`tenant[2].request`: found"),
        (&[("replay.throughput_window", "1us")], "at least 1ms"),
        (&[("replay.stop", "0s")], "expected a time above 0s"),
    ];
    for (set, words) in cases {
        let error = refused(set);
        assert!(error.contains(words), "{error}");
    }
}

/// Blocks on their way into a slow cache are read from memory in no time: laps must still end.
#[test]
fn laps_that_take_no_time_do_not_hold_time_up() {
    let set = [
        ("capacity", "100 blocks"),
        ("device.cache.write", "100ms"),
        ("device.backing", "{ model = \"null\" }"),
        ("tenant.stable.operation", "read"),
        ("tenant.noisy.operation", "read"),
        ("replay.stop", "500us"),
    ];
    let found = answer("no-time", &set).unwrap();
    assert!(total(&found["cases"][0], "requests") > 600, "more than a lap");
}
