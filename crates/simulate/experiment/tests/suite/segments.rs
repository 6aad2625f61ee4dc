//! Responses by cache size and interval: worked by hand, against latency curves and the recording,
//! and the same on any number of threads.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_curve::signal::StepCounts;
use cachewright_experiment::segments::StepOptions;
use cachewright_experiment::{
    CurveOptions, MrcOptions, SegmentOptions, StackSegments, mrc, segments,
};
use common::{Folder, number, pairs, quiet, sizes, two_traces};

/// One tenant walks over three blocks twice, another writes one block in each walk.
const TIERED: &str = concat!(
    "[cache]
capacity = \"4 blocks\"
",
    fixed_devices!(),
    "per_tenant = true
[replay]
interval = \"30ms\"
warmup = \"1ms\"
[[tenant]]
name = \"walks\"
trace = \"walks.csv\"
[[tenant]]
name = \"writes\"
trace = \"writes.csv\"
"
);

const DRIVE: &str = drive_stack!(100, "", "[replay]\ninterval = \"70ms\"\ncurves = false\n");

fn tiered() -> Folder {
    let folder = Folder::new("segments-tiered");
    let line = |(at, op, block): &(u64, char, u64)| format!("1,{op},{},4096,{at}\n", block * 4096);
    let walk: String =
        (0..6).map(|at| line(&(at * 10_000, 'R', at % 3))).collect::<Vec<_>>().concat();
    folder.with("walks.csv", &walk);
    let writes = [(5_000, 'W', 9), (35_000, 'W', 9), (36_000, 'T', 9)];
    folder.with("writes.csv", &writes.iter().map(line).collect::<String>());
    folder
}

fn drive(name: &str) -> Folder {
    two_traces(name, [(3000, 500), (2000, 400)])
}

fn found(
    folder: &Folder,
    stack: &str,
    granules: u32,
    steps: u32,
    threads: usize,
    set: &[(&str, &str)],
) -> Result<StackSegments, String> {
    let step = StepOptions { granules, steps };
    let options = SegmentOptions { step, set: pairs(set), threads };
    segments(stack, &folder.path.join("stack.toml"), &options, &quiet).map_err(|e| e.to_string())
}

#[test]
fn steps_sizes_and_tenants_by_hand() {
    let folder = tiered();
    let found = found(&folder, TIERED, 2, 3, 1, &[]).unwrap();
    assert_eq!(
        (found.interval_ns, found.step_ns, found.capacity_blocks),
        (30_000_000, 10_000_000, 4)
    );
    let [walks, writes] = found.tenants.as_slice() else { panic!("two tenants") };
    assert_eq!((walks.name.as_str(), writes.name.as_str()), ("walks", "writes"));
    let read = StepCounts { requests: 1, writes: 0, bytes: 4096, unique: 1 };
    assert_eq!(walks.steps, vec![read; 6]);
    let write = StepCounts { writes: 1, ..read };
    let idle = StepCounts::default();
    assert_eq!(writes.steps, [write, idle, idle, write, idle, idle]);
    // Off, two blocks, four: a walk over three blocks hits where all fit.
    let miss = 5_000_000;
    let of = |size: usize| (walks.alone[size].response_ns.clone(), walks.alone[size].hits.clone());
    assert_eq!(of(0), (vec![miss; 6], vec![0; 6]));
    assert_eq!(of(1), (vec![miss; 6], vec![0; 6]));
    let hit = 100_000;
    assert_eq!(of(2), (vec![miss, miss, miss, hit, hit, hit], vec![0, 0, 0, 1, 1, 1]));
    for one in &walks.alone {
        assert_eq!((&one.requests, &one.accesses), (&vec![1; 6], &vec![1; 6]));
    }
    assert_eq!(writes.alone[0].response_ns, [miss, 0, 0, miss, 0, 0]);
    assert_eq!(writes.alone[1].response_ns, [hit, 0, 0, hit, 0, 0]);
    assert_eq!(writes.alone[1].hits, [0, 0, 0, 1, 0, 0]);
    assert_eq!(writes.alone[1].requests, [1, 0, 0, 1, 0, 0], "a trim is no request");
    assert_eq!(walks.reuse, [[0; 10]; 2]);
    let [first, second] = writes.reuse.as_slice() else { panic!("two intervals") };
    assert_eq!((first[9], first.iter().sum::<u32>()), (1, 1), "a first write");
    assert_eq!((second[0], second.iter().sum::<u32>()), (1, 1), "written last, and again");
}

/// The sums of all steps are what a replay of the whole trace at that size says.
#[test]
fn sums_are_those_of_latency_curves() {
    let folder = drive("segments-drive");
    let found = found(&folder, DRIVE, 4, 7, 2, &[]).unwrap();
    let curve = CurveOptions {
        latency: true,
        sizes: sizes(&["25 blocks", "50 blocks", "75 blocks", "100 blocks"]),
        ..CurveOptions::default()
    };
    let options = MrcOptions { curve, ..MrcOptions::default() };
    let curves = mrc(DRIVE, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    for (tenant, curve) in found.tenants.iter().zip(curves["latency"].as_array().unwrap()) {
        assert_eq!(curve["tenant"], tenant.name);
        assert_eq!(tenant.steps.len(), 7 * 5, "300 ms are five intervals, the last cut short");
        for (sums, point) in tenant.alone.iter().zip(curve["points"].as_array().unwrap()) {
            let requests: u32 = sums.requests.iter().sum();
            assert_eq!(f64::from(requests), number(&point["requests"]));
            let mean = sums.response_ns.iter().sum::<u64>() as f64 / f64::from(requests);
            assert!((mean / number(&point["mean_ns"]) - 1.0).abs() < 1e-9, "{point}");
            let (hits, accesses) =
                (sums.hits.iter().sum::<u32>(), sums.accesses.iter().sum::<u32>());
            let ratio = f64::from(hits) / f64::from(accesses);
            assert!((ratio - number(&point["hit_ratio"])).abs() < 1e-12, "{point}");
        }
        for (at, step) in tenant.steps.iter().enumerate() {
            let whole = &tenant.alone[4];
            assert_eq!(step.requests, whole.accesses[at], "the pages that requests touch");
            assert!(step.unique <= step.requests && step.writes <= step.requests);
            assert!(tenant.alone.iter().all(|sums| sums.requests[at] == whole.requests[at]));
            assert!(tenant.alone.iter().all(|sums| sums.accesses[at] == whole.accesses[at]));
        }
        assert_eq!(tenant.reuse.len(), 5);
    }
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = drive("segments-threads");
    let with = |threads| found(&folder, DRIVE, 3, 4, threads, &[]).unwrap();
    assert_eq!(with(1), with(2));
}

#[test]
fn what_has_no_times_or_another_future_is_refused() {
    let folder = drive("segments-refused");
    let error = |stack: &str, granules: u32, steps: u32, set: &[(&str, &str)]| {
        found(&folder, stack, granules, steps, 1, set).unwrap_err()
    };
    let untimed = "[cache]\ncapacity = \"9 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
    assert!(error(untimed, 2, 2, &[]).contains("found no `[device]` tables"));
    let closed = error(DRIVE, 2, 2, &[("replay.loop", "closed")]);
    assert!(closed.contains("`replay.loop`: found `closed`, expected `open`"), "{closed}");
    let never = error(DRIVE, 2, 2, &[("replay.interval", "0s")]);
    assert!(never.contains("`replay.interval`: found 0"), "{never}");
    assert!(error(DRIVE, 0, 2, &[]).contains("`granules`: found `0`, expected"));
    assert!(error(DRIVE, 2, 0, &[]).contains("`steps`: found `0`, expected"));
    let many = error(DRIVE, 1000, 70_000_000, &[]);
    assert!(many.contains("`steps`: found 70000000 in each of 5 intervals"), "{many}");
}
