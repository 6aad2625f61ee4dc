//! `opt` in runs: no other division is better by its own measure on the true times of each
//! interval, cases share the replays it is told of, and it is refused where there is no future.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::segments::StepOptions;
use cachewright_experiment::{Progress, RunOptions, SegmentOptions, TenantSegments, run, segments};
use common::{Folder, answer_to, quiet, small_trace};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const DRIVE: &str = "
[device.ssd]
model = \"icache-table1\"
blocks = 64
over_provisioning = 0.12
[machine]
system = \"ssd\"
read_fill = true
write_back = \"on-eviction\"
";

/// The first seconds of three of the bundled traces, eight times as fast, in eight intervals.
fn bundled() -> (String, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let tenant = |name: &str| {
        format!(
            "[[tenant]]\nname = \"{name}\"\ntrace = \"data/{name}.csv.zst\"\n\
             time_scale = 0.125\nstop = \"1s\"\n"
        )
    };
    let text = format!(
        "[cache]\ncapacity = \"16MiB\"\nblock = \"8KiB\"\n{DRIVE}\
         [replay]\ninterval = \"125ms\"\nwindows = 80\ncurves = false\n{}",
        ["oltp", "mail", "web"].map(tenant).concat()
    );
    (text, root.join("stack.toml"))
}

/// A small mix in a folder: 1.7 s of one tenant and 200 ms of another, 19,000 requests.
fn small(folder: &Folder) -> String {
    folder.with("a.csv", &small_trace(5, 17_000, 500));
    folder.with("b.csv", &small_trace(6, 2000, 400));
    let tenant = |name: &str| format!("[[tenant]]\nname = \"{name}\"\ntrace = \"{name}.csv\"\n");
    format!(
        "[cache]\ncapacity = \"100 blocks\"\nblock = \"8KiB\"\npartition = \"opt\"\n{DRIVE}\
         [replay]\ninterval = \"400ms\"\nwindows = 5\ncurves = false\n{}{}",
        tenant("a"),
        tenant("b")
    )
}

/// Mean latency of an interval by granules; nothing without requests.
fn latency(tenant: &TenantSegments, interval: usize) -> Option<Vec<f64>> {
    let requests = tenant.alone[0].requests[interval];
    let mean = |sums: &u64| *sums as f64 / f64::from(requests);
    let sizes = tenant.alone.iter().map(|sums| mean(&sums.response_ns[interval]));
    (requests > 0).then(|| sizes.collect())
}

/// The mean slowdown of a division; between granules a line.
fn objective(tenants: &[TenantSegments], interval: usize, quotas: &[f64], blocks: f64) -> f64 {
    let mut slowdowns = Vec::new();
    for (tenant, quota) in tenants.iter().zip(quotas) {
        let Some(latency) = latency(tenant, interval) else { continue };
        let granules = latency.len() - 1;
        let place = (quota / blocks * granules as f64).min(granules as f64);
        let (low, high) = (latency[place as usize], latency[place.ceil() as usize]);
        slowdowns.push((low + (high - low) * place.fract()) / latency[granules]);
    }
    slowdowns.iter().sum::<f64>() / slowdowns.len().max(1) as f64
}

/// Quotas by case and interval, from the last window that lies in it.
fn quotas(found: &Value, interval_ns: u64) -> BTreeMap<(u64, usize), Vec<f64>> {
    let mut quotas: BTreeMap<(u64, usize), BTreeMap<u64, f64>> = BTreeMap::new();
    for row in found["series_rows"].as_array().unwrap() {
        let [case, time_ns, tenant, quota] =
            [0, 2, 3, 7].map(|column: usize| row[column].as_u64().unwrap());
        if tenant < 100 {
            let interval = ((time_ns - 1) / interval_ns) as usize;
            quotas.entry((case, interval)).or_default().insert(tenant, quota as f64);
        }
    }
    quotas.into_iter().map(|(key, each)| (key, each.into_values().collect())).collect()
}

#[test]
fn no_other_division_is_better_on_the_true_times_of_an_interval() {
    let (text, origin) = bundled();
    let step = StepOptions { granules: 10, steps: 1 };
    let options = SegmentOptions { step, ..SegmentOptions::default() };
    let truth = segments(&text, &origin, &options, &quiet).unwrap();
    let names = ["opt", "equal", "static", "hull", "icache-x"];
    let values = names.iter().map(|name| (*name).to_owned()).collect();
    let vary = vec![("partition".to_owned(), values)];
    let found = run(&text, &origin, &RunOptions { vary, ..RunOptions::default() }, &quiet).unwrap();
    let all = quotas(&found, truth.interval_ns);
    let blocks = f64::from(truth.capacity_blocks);
    let (mut compared, mut better) = (0, 0);
    for ((case, interval), quotas) in all.iter().filter(|((case, _), _)| *case > 0) {
        let best = objective(&truth.tenants, *interval, &all[&(0, *interval)], blocks);
        let other = objective(&truth.tenants, *interval, quotas, blocks);
        let name = names[*case as usize];
        // A block of a floor or of rounding is no granule.
        assert!(best <= other * 1.005, "{name}, interval {interval}: {other} for {best}");
        compared += 1;
        better += usize::from(best < other * 0.99);
    }
    assert!(compared >= 4 * 8 && better > compared / 4, "{better} of {compared}");
}

#[test]
fn cases_that_differ_elsewhere_share_what_it_is_told() {
    let folder = Folder::new("opt-shared");
    let text = small(&folder);
    let replays = |key: &str, values: &[&str]| {
        let total = AtomicU64::new(0);
        let note = |progress: Progress| {
            if progress.stage == "replaying on devices" {
                total.fetch_max(progress.total.unwrap_or(0), Ordering::Relaxed);
            }
            true
        };
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let vary = vec![(key.to_owned(), values)];
        let options = RunOptions { vary, threads: 2, ..RunOptions::default() };
        let found = run(&text, &folder.path.join("stack.toml"), &options, &note).unwrap();
        (total.load(Ordering::Relaxed) / 19_000, found)
    };
    // Two tenants at eleven sizes, once, and a replay per case.
    let (shared, both) = replays("replay.warmup", &["0s", "100ms"]);
    assert_eq!(shared, 22 + 2);
    assert_eq!(replays("replay.interval", &["400ms", "500ms"]).0, 44 + 2);
    assert_eq!(replays("partition", &["opt", "{name = \"opt\", granules = 4}"]).0, 22 + 10 + 2);
    let alone = answer_to(&folder, &text, &[("replay.warmup", "100ms")]).unwrap();
    assert_eq!(both["cases"][1]["timing"], alone["cases"][0]["timing"]);
    let one = answer_to(&folder, &text, &[]).unwrap();
    assert_eq!(both["cases"][0]["timing"], one["cases"][0]["timing"]);
    let quota = one["cases"][0]["tenants"][0]["quota_blocks"].as_u64().unwrap();
    assert!(quota > 90, "{quota}: the other one has nothing more to ask");
}

#[test]
fn a_future_is_needed() {
    let folder = Folder::new("opt-refused");
    let text = small(&folder);
    let closed = answer_to(&folder, &text, &[("replay.loop", "closed")]).unwrap_err();
    assert!(closed.contains("`cache.partition`") && closed.contains("`opt`"), "{closed}");
    assert!(closed.contains("`replay.loop = \"open\"`"), "{closed}");
    let untimed = "[cache]\ncapacity = \"9 blocks\"\npartition = \"opt\"\n\
                   [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    let untimed = answer_to(&folder, untimed, &[]).unwrap_err();
    assert!(untimed.contains("expected `[device]` tables"), "{untimed}");
}
