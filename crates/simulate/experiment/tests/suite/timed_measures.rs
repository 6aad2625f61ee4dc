//! Measures of devices in results: how busy their parts were, energy where powers are given, wear.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{number, quiet, two_traces};
use serde_json::Value;

const TENANTS: &str = two_tenants!();

const DRIVE: &str = "
[cache]
capacity = \"100 blocks\"
block = \"8KiB\"
[device.ssd]
model = \"icache-table1\"
blocks = 32
over_provisioning = 0.28
block = \"512KiB\"
[machine]
system = \"ssd\"
write_back = \"on-eviction\"
";

const TIERED: &str = "
[cache]
capacity = \"100 blocks\"
[device.cache]
model = \"sata-850pro\"
[device.backing]
model = \"hdd-7200-2tb\"
per_tenant = true
";

fn timing(name: &str, stack: &str, set: &[(&str, &str)]) -> Value {
    let folder = two_traces(name, [(3000, 500), (2000, 400)]);
    let set = set.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let options = RunOptions { set, ..RunOptions::default() };
    let text = format!("{stack}{TENANTS}");
    let found = run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    found["cases"][0]["timing"].clone()
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-9 * wanted.abs()
}

/// Every part is busy for at most all of the time, and what its stages say adds up.
#[test]
fn channels_and_dies_are_busy_for_at_most_the_time() {
    for (loops, unit, units) in [("open", "chip", 32), ("closed", "die", 64)] {
        let interleave = if unit == "die" { "true" } else { "false" };
        let set = [("replay.loop", loops), ("device.ssd.die_interleave", interleave)];
        let found = timing(&format!("measures-busy-{unit}"), DRIVE, &set);
        let drive = &found["drive"];
        assert_eq!(drive["dies"]["unit"], unit);
        for (part, count) in [("channels", 8), ("dies", units)] {
            let one = &drive[part];
            let busy: Vec<f64> = one["busy"].as_array().unwrap().iter().map(number).collect();
            assert_eq!(busy.len(), count, "{part}");
            assert!(busy.iter().all(|share| (0.0..=1.0).contains(share)), "{part}: {busy:?}");
            let mean = busy.iter().sum::<f64>() / count as f64;
            assert!(mean > 0.0 && near(number(&one["mean"]), mean), "{part}");
            let order = ["min", "mean", "max"].map(|key| number(&one[key]));
            assert!(order.is_sorted() && busy.contains(&order[0]) && busy.contains(&order[2]));
        }
        let stages = drive["dies"]["stages"].as_object().unwrap();
        assert!(near(stages.values().map(number).sum(), number(&drive["dies"]["mean"])));
        assert!(number(&stages["sensing"]) > 0.0 && number(&stages["programming"]) > 0.0);
        let queues = drive["queues"].as_object().unwrap();
        let reads: f64 = ["read", "map read", "cleaning read"]
            .map(|class| number(&queues[class]["served"]))
            .iter()
            .sum();
        let sensed: f64 = ["host_reads", "update_reads", "map_misses"]
            .map(|key| number(&drive[key]))
            .iter()
            .sum();
        assert!(sensed > 0.0 && reads >= sensed, "{reads} served, {sensed} sensed");
        for queue in queues.values() {
            let (served, wait) = (number(&queue["served"]), number(&queue["mean_wait_ns"]));
            let law = served * wait / number(&found["end_ns"]);
            assert!((number(&queue["mean_waiting"]) - law).abs() < 1e-9, "Little: {queue}");
        }
        for wire in ["to_drive", "to_host"] {
            let busy = number(&drive["link_busy"][wire]);
            assert!(busy > 0.0 && busy < 1.0, "{wire}: {busy}");
        }
    }
}

#[test]
fn wear_counts_what_the_host_wrote_and_what_was_programmed() {
    let found = timing("measures-wear", DRIVE, &[("device.ssd.endurance", "2000")]);
    let (drive, wear) = (&found["drive"], &found["drive"]["wear"]);
    assert_eq!(wear["written_bytes"], found["devices"][0]["write_bytes"]);
    let programs: f64 = ["host_programs", "map_programs", "meta_programs", "moved_pages"]
        .map(|key| number(&drive[key]))
        .iter()
        .sum();
    assert_eq!(number(&wear["programmed_bytes"]), 8192.0 * programs);
    let raw_pages = 128.0 * 32.0 * 64.0;
    assert!(near(number(&wear["cycles"]), programs / raw_pages));
    let days = number(&found["end_ns"]) / 86_400e9;
    let rated = &wear["rated"];
    assert!(near(number(&rated["life_days"]), 2000.0 / (programs / raw_pages) * days));
    let lives = number(&rated["life_bytes"]) / number(&wear["written_bytes"]);
    assert!(near(lives * days, number(&rated["life_days"])), "as long as it takes to write them");
    assert!(near(number(&rated["used_share"]), number(&wear["mean"]) / 2000.0));
    let unrated = timing("measures-unrated", DRIVE, &[("device.ssd.endurance", "0")]);
    assert_eq!(unrated["drive"]["wear"]["rated"], Value::Null);
    assert_eq!(unrated["drive"]["wear"]["cycles"], wear["cycles"]);
}

#[test]
fn energy_is_shown_where_it_is_given_and_only_there() {
    let silent = timing("measures-silent", DRIVE, &[]);
    assert!(silent.get("energy").is_none() && silent["devices"][0].get("energy").is_none());
    let set = [("device.ssd.idle_power", "2"), ("device.ssd.program_energy", "300")];
    let given = timing("measures-given", DRIVE, &set);
    assert_eq!(given["total"], silent["total"], "it takes no time");
    let (energy, end_s) = (&given["devices"][0]["energy"], number(&given["end_ns"]) / 1e9);
    let programs = number(&given["drive"]["wear"]["programmed_bytes"]) / 8192.0;
    let wanted = [("idle", 2.0 * end_s), ("flash programs", 300e-6 * programs)];
    let parts = energy["parts"].as_object().unwrap();
    assert_eq!(parts.len(), wanted.len());
    assert!(wanted.iter().all(|(part, joules)| near(number(&parts[*part]), *joules)), "{energy}");
    let joules = wanted.iter().map(|(_, joules)| joules).sum();
    assert!(near(number(&energy["joules"]), joules));
    assert!(near(number(&energy["watts"]), joules / end_s));
    let total = &given["energy"];
    assert_eq!((&total["joules"], &total["unknown_devices"]), (&energy["joules"], &0.into()));
    let requests = number(&given["total"]["requests"]);
    assert!(near(number(&total["joules_per_request"]), joules / requests));
}

/// A flash cache over two disks: each device by itself, the drive's flash too.
#[test]
fn every_device_of_a_stack_is_measured() {
    let found = timing("measures-tiered", TIERED, &[]);
    let devices = found["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 3);
    assert!(found.get("drive").is_none());
    let flash = &devices[0]["flash"];
    assert_eq!(flash["wear"]["written_bytes"], devices[0]["write_bytes"]);
    assert_eq!(flash["wear"]["rated"]["cycles"], 6000);
    assert!(devices[1].get("flash").is_none());
    let watts = |device: &Value| number(&device["energy"]["watts"]);
    assert!(watts(&devices[0]) > 0.4 && watts(&devices[0]) <= 3.0);
    for disk in &devices[1..] {
        assert!(watts(disk) > 7.0 && watts(disk) < 12.7, "{disk}");
    }
    let sum: f64 = devices.iter().map(|device| number(&device["energy"]["joules"])).sum();
    assert!(near(number(&found["energy"]["joules"]), sum));
    let unknown = [("device.cache.model", "fixed-latency"), ("device.cache.read", "80us")];
    let found = timing("measures-unknown", TIERED, &unknown);
    assert_eq!(found["energy"]["unknown_devices"], 1);
    assert!(found["devices"][0].get("energy").is_none());
}
