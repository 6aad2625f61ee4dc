//! Tenants that start and stop while others run: no tenant starves, nothing swings to and fro, a
//! stopped tenant sends nothing more; in either loop, with and without devices.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::check;
use common::{Folder, answer_to, small_trace};
use serde_json::Value;

/// 10,000 requests each, one every 10 us; all three together need more than the cache for their
/// goals, two of them do not.
const STACK: &str = "
[cache]
capacity = \"150 blocks\"
[replay]
interval = \"2ms\"
windows = 50
profile_share = 1.0
[[tenant]]
name = \"stays\"
trace = \"a.csv\"
time_scale = 0.1
goal_hit_ratio = 0.5
[[tenant]]
name = \"stops\"
trace = \"b.csv\"
time_scale = 0.1
goal_hit_ratio = 0.5
stop = \"40ms\"
[[tenant]]
name = \"starts\"
trace = \"c.csv\"
time_scale = 0.1
goal_hit_ratio = 0.5
start = \"60ms\"
";

fn answer(name: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(1, 10_000, 200));
    folder.with("b.csv", &small_trace(2, 10_000, 100));
    folder.with("c.csv", &small_trace(3, 10_000, 100));
    answer_to(&folder, STACK, set)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

/// Of each window of a tenant: when it ends in ms, accesses, hits, quota.
fn windows(answer: &Value, tenant: u64) -> Vec<[u64; 4]> {
    let rows = answer["series_rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| number(&row[3]) == tenant);
    rows.map(|row| [2, 4, 5, 7].map(|at| number(&row[at])))
        .map(|[time, accesses, hits, quota]| [time.div_ceil(1_000_000), accesses, hits, quota])
        .collect()
}

#[test]
fn partitioners_neither_starve_nor_swing_when_tenants_come_and_go() {
    let lending = "{name = \"soft-qos\", lend_after = 5}";
    for partition in ["equal", "hull", "soft-qos", lending, "soft-qos-x"] {
        let answer = answer("comes-and-goes", &[("partition", partition)]).unwrap();
        let case = &answer["cases"][0];
        let told = |tenant: u64| windows(&answer, tenant);
        // A window lasts 3.2 ms.
        for [end, accesses, ..] in told(1).into_iter().filter(|[end, ..]| !(41..45).contains(end)) {
            assert_eq!(accesses == 0, end >= 45, "{partition} at {end} ms");
        }
        for [end, accesses, ..] in told(2) {
            assert_eq!(accesses == 0, end <= 60, "{partition} at {end} ms");
        }
        assert!((0..3).all(|tenant| told(tenant).iter().all(|[_, _, _, quota]| *quota > 0)));
        let moved = case["total"]["moved_mean"].as_f64().unwrap();
        assert!(moved <= 0.05, "{partition}: {}", case["total"]);
        assert_eq!(number(&case["total"]["divisions"]), 69, "{partition}");
        if partition == "equal" {
            assert_eq!(
                (&case["total"]["turns"], &case["total"]["moved_most"]),
                (&0.into(), &0.0.into())
            );
            continue;
        }
        // Some intervals after the last change everyone who is there hits.
        for (tenant, from, to) in [(0, 20, 40), (1, 20, 40), (0, 75, 99), (2, 75, 159)] {
            let [accesses, hits] = told(tenant)
                .iter()
                .filter(|[end, ..]| (from + 1..=to).contains(end))
                .fold([0, 0], |[a, h], [_, accesses, hits, _]| [a + accesses, h + hits]);
            assert!(4 * hits >= accesses, "{partition}: {tenant}: {hits} of {accesses}");
        }
    }
}

#[test]
fn a_lent_partition_is_given_to_those_who_are_there() {
    let quota = |partition: &str| {
        let answer =
            answer("lent", &[("partition", partition), ("replay.interval", "1ms")]).unwrap();
        let quotas = windows(&answer, 1);
        quotas.iter().find(|[end, ..]| *end >= 55).unwrap()[3]
    };
    assert!(quota("soft-qos") >= 29, "the paper's scheme keeps what the goal needs");
    assert_eq!(quota("{name = \"soft-qos\", lend_after = 5}"), 1);
    assert_eq!(quota("soft-qos-x"), 1);
}

#[test]
fn a_tenant_stops_in_every_loop() {
    let devices = [("device.cache.model", "ram"), ("device.backing.model", "hdd-10045-9gb")];
    let drive = [
        ("device.ssd.model", "mqsim-default"),
        ("machine.system", "ssd"),
        ("cache.block", "8KiB"),
        ("device.ssd.fill", "empty"),
    ];
    let machines: [&[(&str, &str)]; 3] = [&[], &devices, &drive];
    let mut sent = None;
    for machine in machines {
        for (stop, closed) in [("40ms", false), ("40ms", true), ("40%", false), ("40%", true)] {
            let pace = if closed { "closed" } else { "open" };
            let own = [
                ("tenant.stops.stop", stop),
                ("replay.loop", pace),
                ("replay.think_time", "100us"),
            ];
            let set = [machine, &own].concat();
            let answer = answer("stops", &set).unwrap();
            let found = &answer["cases"][0]["tenants"][1];
            let requests = number(&found["requests"]);
            let context = format!("{set:?}: {found}");
            if closed && stop == "40ms" {
                assert!((8..9000).contains(&requests), "{context}");
            } else {
                assert_eq!(requests, *sent.get_or_insert(requests), "{context}");
            }
            if closed {
                let (run, end) = (number(&found["run_time_ns"]), number(&found["finished_ns"]));
                assert_eq!(run, end, "{context}");
                let late = stop == "40ms" && end > 400_000_000;
                assert!(!late, "{context}");
                let other = &answer["cases"][0]["tenants"][2];
                let (run, end) = (number(&other["run_time_ns"]), number(&other["finished_ns"]));
                assert_eq!(run + 60_000_000, end, "{context}");
            }
            let last = answer["series_rows"].as_array().unwrap().last().unwrap();
            assert_eq!(number(&last[1]), 49, "{context}");
        }
    }
}

#[test]
fn a_stop_before_the_start_is_refused() {
    let folder = Folder::new("stop-before-start");
    folder.with("a.csv", &small_trace(1, 10, 10));
    folder.with("b.csv", &small_trace(1, 10, 10));
    folder.with("c.csv", &small_trace(1, 10, 10));
    let origin = folder.path.join("stack.toml");
    let set = |value: &str| [("tenant.starts.stop".to_owned(), value.to_owned())];
    let error = check(STACK, &origin, &set("60ms")).unwrap_err().to_string();
    assert!(error.contains("`tenant[3].stop`: found `60ms`, expected a time after"), "{error}");
    let checked = check(STACK, &origin, &set("12.5%")).unwrap();
    assert_eq!(checked["tenant"][2]["stop"], "12.5%");
    assert_eq!(checked["tenant"][1]["stop"], "40ms");
    assert_eq!(checked["tenant"][0]["stop"], Value::Null);
}
