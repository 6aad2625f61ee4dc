//! Stack files with several devices in one place: what is refused, what is answered.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::check;
use common::{Folder, answer_to, two_traces};
use serde_json::Value;

const STACK: &str = concat!(
    "
[cache]
capacity = \"100 blocks\"
[device.cache]
model = \"fixed-latency\"
parallelism = 2
[device.backing]
model = \"hdd-10045-9gb\"
per_tenant = true
[replay]
loop = \"closed\"
queue_depth = 16
",
    two_tenants!()
);

fn folder(name: &str) -> Folder {
    two_traces(name, [(2000, 500), (2000, 400)])
}

fn answer(folder: &Folder, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, STACK, set).map(|mut found| found["cases"][0]["timing"].take())
}

#[test]
fn impossible_arrays_are_refused_by_key_and_value() {
    let folder = folder("array-refusal");
    let cases: [(&[(&str, &str)], &str); 6] = [
        (
            &[("device.cache.count", "0")],
            "`device.cache.count`: found `0`, expected a whole number",
        ),
        (&[("device.backing.count", "65")], "`device.backing.count`: found `65`, expected"),
        (
            &[("device.cache.stripe", "64KiB")],
            "`device.cache.stripe`: found 64KiB for one device, expected `device.cache.count` of 2",
        ),
        (
            &[("device.cache.count", "2"), ("device.cache.stripe", "1000B")],
            "`device.cache.stripe`: found 1000B, expected whole sectors",
        ),
        (
            &[("device.backing.count", "2"), ("device.backing.strip", "1KiB")],
            "`device.backing.strip`: found an unknown key",
        ),
        (
            &[("device.cache.count", "2"), ("device.cache.capacity", "192KiB")],
            "`device.cache`: found a capacity of 384KiB, expected at least",
        ),
    ];
    for (set, expected) in cases {
        let error = answer(&folder, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
    }
    let ssd = STACK
        .replace("[device.cache]\nmodel = \"fixed-latency\"\nparallelism = 2\n", "")
        .replace("[device.backing]\nmodel = \"hdd-10045-9gb\"\nper_tenant = true\n", "");
    let ssd = format!(
        "{ssd}[device.ssd]\nmodel = \"icache-table1\"\ncount = 2\n[machine]\nsystem = \"ssd\"\n"
    );
    let error = check(&ssd, &folder.path.join("stack.toml"), &[]).unwrap_err().to_string();
    assert!(error.contains("`device.ssd.count`: found 2, expected 1"), "{error}");
}

#[test]
fn each_device_has_its_line_and_one_device_changes_nothing() {
    let folder = folder("array-lines");
    let plain = answer(&folder, &[]).unwrap();
    assert_eq!(plain, answer(&folder, &[("device.cache.count", "1")]).unwrap());
    let set = [("device.cache.count", "2"), ("device.backing.count", "3")];
    let found = answer(&folder, &set).unwrap();
    let lines = found["devices"].as_array().unwrap();
    let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    let backing = ["a 1", "a 2", "a 3", "b 1", "b 2", "b 3"].map(|of| format!("backing of {of}"));
    assert_eq!(names[..2], ["cache 1", "cache 2"]);
    assert_eq!(names[2..], backing);
    assert!(lines.iter().all(|line| line["reads"].as_u64() > Some(0)), "{lines:?}");
    let mean = |timing: &Value| timing["total"]["mean_ns"].as_f64().unwrap();
    assert!(mean(&found) < 0.7 * mean(&plain), "{} of {}", mean(&found), mean(&plain));
}

#[test]
fn the_resolved_array_is_read_back() {
    let folder = folder("array-resolved");
    let origin = folder.path.join("stack.toml");
    let device = |set: &[(&str, &str)]| {
        let set: Vec<(String, String)> =
            set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        check(STACK, &origin, &set).unwrap()["device"]["cache"].clone()
    };
    assert_eq!((&device(&[])["count"], device(&[]).get("stripe")), (&1.into(), None));
    let two = device(&[("device.cache.count", "2")]);
    assert_eq!((&two["count"], &two["stripe"]), (&2.into(), &"64KiB".into()));
}
