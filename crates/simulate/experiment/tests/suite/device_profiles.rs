//! Profiles of whole tenants on the stack's devices, where blocks on their way may count as misses.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common::{Folder, answer_to, small_trace, walk};

/// A walk that is read ahead beside random reads; the first division stays.
const STACK: &str = "
[cache]
capacity = \"150 blocks\"
[machine]
system = \"buffer-cache\"
[device.cache]
model = \"ram\"
[device.backing]
model = \"hdd-10045-9gb\"
[replay]
loop = \"closed\"
queue_depth = 1
interval = \"100000s\"
windows = 0
curves = false
profile_share = 1.0
[[tenant]]
name = \"walks\"
trace = \"a.csv\"
goal_hit_ratio = 0.7
[[tenant]]
name = \"jumps\"
trace = \"b.csv\"
goal_hit_ratio = 0.2
";

const ON_DEVICES: &str = "{ name = \"soft-qos\", profile_on_devices = true }";

fn quotas(name: &str, partition: &str, in_flight: &str) -> Vec<u64> {
    let folder = Folder::new(name);
    folder.with("a.csv", &walk(400, 3, 1000));
    folder.with("b.csv", &small_trace(2, 1200, 100));
    let set = [("partition", partition), ("machine.in_flight", in_flight)];
    let answer = answer_to(&folder, STACK, &set).unwrap();
    let tenants = answer["cases"][0]["tenants"].as_array().unwrap();
    tenants.iter().map(|tenant| tenant["quota_blocks"].as_u64().unwrap()).collect()
}

#[test]
fn a_profile_on_devices_counts_as_the_run_does() {
    // While blocks on their way are hits, a walk that is read ahead hits as often on devices as by
    // its accesses. While they are misses it hits less, so that its goal takes more of the cache.
    let accesses = quotas("profile-accesses", "soft-qos", "miss");
    assert_eq!(quotas("profile-hits", ON_DEVICES, "hit"), accesses);
    let waits = quotas("profile-misses", ON_DEVICES, "miss");
    assert_eq!(waits.iter().sum::<u64>(), 150);
    assert!(waits[0] > accesses[0], "{waits:?} {accesses:?}");
}

#[test]
fn a_profile_on_devices_needs_some() {
    let folder = Folder::new("profile-without-devices");
    folder.with("a.csv", &small_trace(1, 100, 20));
    let stack = "[cache]\ncapacity = \"10 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
                 goal_hit_ratio = 0.5\n";
    let error = answer_to(&folder, stack, &[("partition", ON_DEVICES)]).unwrap_err();
    assert!(error.contains("found no `[device.cache]` table, expected one"), "{error}");
}
