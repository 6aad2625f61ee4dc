//! `justitia` in stack files, and how tenants stand to their targets over time.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, number, pairs, quiet, two_traces};
use serde_json::Value;

const STACK: &str = drive_stack!(200, "", "[replay]\ninterval = \"20ms\"\nwindows = 20\n");

fn folder(name: &str) -> Folder {
    two_traces(name, [(3000, 1500), (2000, 400)])
}

fn case(folder: &Folder, set: &[(&str, &str)]) -> Value {
    answer_to(folder, STACK, set).unwrap()["cases"][0].clone()
}

#[test]
fn room_follows_requests_only_inside_a_drive() {
    let folder = folder("elastic-drive");
    let found = case(&folder, &[("partition", "justitia")]);
    let of = |tenant: usize, key: &str| number(&found["tenants"][tenant][key]);
    assert_eq!(of(0, "occupancy_blocks") + of(1, "occupancy_blocks"), 200.0, "all is in use");
    assert_eq!(of(0, "quota_blocks"), of(0, "occupancy_blocks"));
    assert_eq!(found["tenants"][0].get("states"), None, "no tenant has a quota");
    assert_eq!(found["total"].get("turns"), None);
    let shared = case(&folder, &[("partition", "shared")]);
    assert_ne!(found["timing"]["total"], shared["timing"]["total"]);
    let often = "{name = \"justitia\", victim_every = 10}";
    let often = case(&folder, &[("partition", often)]);
    assert_ne!(found["timing"]["total"], often["timing"]["total"], "the victim is chosen anew");
    let plain = "[cache]\ncapacity = \"200 blocks\"\n[[tenant]]\ntrace = \"a.csv\"\n";
    let tiered = "[device.cache]\nmodel = \"ram\"\n[device.backing]\nmodel = \"fixed-latency\"\n";
    for text in [plain, &format!("{plain}{tiered}")] {
        let refused = answer_to(&folder, text, &[("partition", "justitia")]).unwrap_err();
        let expected = "partitioner `justitia` needs the channels of a drive, found none, expected \
                        `machine.system = \"ssd\"`";
        assert!(refused.contains(expected) && refused.contains("stack.toml"), "{refused}");
    }
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = folder("elastic-threads");
    let with = |threads| {
        let schemes = ["justitia", "hull"].map(str::to_owned).to_vec();
        let policies = ["lru", "arc"].map(str::to_owned).to_vec();
        let vary = vec![("partition".to_owned(), schemes), ("policy".to_owned(), policies)];
        let options = RunOptions { threads, vary, ..RunOptions::default() };
        run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap().to_string()
    };
    assert_eq!(with(1), with(2));
}

/// Windows end in one of three states; a shared pool has none. The rows say what the result sums.
#[test]
fn states_are_counted_by_window() {
    let folder = folder("elastic-states");
    let options = |partition: &str, handover: &str| RunOptions {
        set: pairs(&[("partition", partition), ("machine.handover", handover)]),
        ..RunOptions::default()
    };
    let answer = |partition: &str, handover: &str| {
        let options = options(partition, handover);
        run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap()
    };
    let found = answer("hull", "paced");
    let rows = found["series_rows"].as_array().unwrap().clone();
    for tenant in 0..2_usize {
        let states = &found["cases"][0]["tenants"][tenant]["states"];
        let share = |word: &str| number(&states[word]);
        let sum = share("supply") + share("demand") + share("stable");
        assert!((sum - 1.0).abs() < 1e-12, "{states}");
        let own = rows.iter().filter(|row| row[3] == tenant);
        let of = |code: u64| own.clone().filter(|row| row[8] == code).count() as f64 / 20.0;
        assert_eq!([of(1), of(2), of(3)], ["supply", "demand", "stable"].map(share));
    }
    assert!(
        rows.iter()
            .filter(|row| row[3].as_u64() == Some(u64::from(u32::MAX)))
            .all(|row| row[8] == 0)
    );
    for (partition, handover) in [("equal", "paced"), ("hull", "at-once")] {
        let found = answer(partition, handover);
        let supply = &found["cases"][0]["tenants"][0]["states"]["supply"];
        assert_eq!(supply, 0.0, "no tenant is ever above its target: {partition}");
    }
    let shared = answer("shared", "paced");
    assert_eq!(shared["cases"][0]["tenants"][0].get("states"), None);
}
