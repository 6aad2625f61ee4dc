//! `cache.shrink`: when a tenant whose quota falls gives up what it holds beyond it.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::check;
use common::{Folder, answer_to, pairs, walk};
use serde_json::Value;

/// Quotas of 75 and 25 blocks, and of 25 and 75, by turns.
const STACK: &str = "[cache]\ncapacity = \"100 blocks\"\npartition = \"scheduled\"\n\
    [replay]\ninterval = \"10ms\"\ncauses = \"all\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\nschedule = [3.0, 1.0]\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\nschedule = [1.0, 3.0]\n";
const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\n\
    [device.backing]\nmodel = \"fixed-latency\"\n";
const DRIVE: &str = "[device.ssd]\nmodel = \"icache-table1\"\nblocks = 32\nblock = \"512KiB\"\n\
    over_provisioning = 0.28\n[machine]\nsystem = \"ssd\"\n";
const AS_NEEDED: (&str, &str) = ("cache.shrink", "as-needed");

/// A loop of 70 blocks, 200 rounds of 0.7 ms, beside a loop of so many. Found are hits, and misses
/// by a division, of both.
fn found(others: u64, set: &[(&str, &str)]) -> [[u64; 2]; 2] {
    let folder = Folder::new(&format!("shrink-{others}-{}", set.len()));
    folder.with("a.csv", &walk(70, 200, 10));
    folder.with("b.csv", &walk(others, 14_000 / others, 10));
    let answer = answer_to(&folder, STACK, set).unwrap();
    [0, 1].map(|tenant| {
        let tenant = &answer["cases"][0]["tenants"][tenant];
        let count = |pointer: &str| tenant.pointer(pointer).and_then(Value::as_u64).unwrap();
        [count("/hits"), count("/causes/division")]
    })
}

/// A loop of 20 blocks needs no more room than those: nothing leaves, and each block misses once.
/// At once, 70 blocks come back each second interval.
#[test]
fn blocks_stay_while_their_room_is_not_needed() {
    assert_eq!(found(20, &[AS_NEEDED]), [[14_000 - 70, 0], [14_000 - 20, 0]]);
    let [[hits, divided], _] = found(20, &[]);
    assert!(hits < 8_000 && divided > 300, "{hits} hits, {divided} misses by divisions");
}

/// Both need 70 of 100 blocks: what one has beyond its quota goes to the other as it misses, so
/// that both hit as they would at once, but for less than one round of the loop.
#[test]
fn what_another_tenant_needs_leaves() {
    let (as_needed, at_once) = (found(70, &[AS_NEEDED]), found(70, &[]));
    for ([hits, _], [hits_at_once, _]) in as_needed.into_iter().zip(at_once) {
        assert!(hits.abs_diff(hits_at_once) < 70, "{hits} hits, {hits_at_once} at once");
    }
}

#[test]
fn devices_see_the_same_decisions() {
    let folder = Folder::new("shrink-devices");
    folder.with("a.csv", &walk(70, 200, 10));
    folder.with("b.csv", &walk(70, 200, 10));
    let case = |text: &str| answer_to(&folder, text, &[AS_NEEDED]).unwrap()["cases"][0].clone();
    let (counted, timed) = (case(STACK), case(&format!("{STACK}{DEVICES}")));
    for tenant in [0, 1] {
        assert_eq!(counted["tenants"][tenant]["hits"], timed["tenants"][tenant]["hits"]);
    }
}

#[test]
fn where_blocks_cannot_stay_beyond_a_quota_it_is_refused() {
    let folder = Folder::new("shrink-refused");
    let (timed, drive) = (format!("{STACK}{DEVICES}"), format!("{STACK}{DRIVE}"));
    let curves = ("cache.partition", "hull");
    for (text, set, found) in [
        (
            timed.as_str(),
            vec![("cache.layout", "dedicated")],
            "with `cache.layout = \"dedicated\"`",
        ),
        (STACK, vec![curves, ("cache.shadow", "talus")], "with `cache.shadow`"),
        (&drive, vec![("cache.block", "8KiB"), ("replay.causes", "none")], "with `machine.system"),
    ] {
        let set = [&set[..], &[AS_NEEDED]].concat();
        let error = check(text, &folder.path.join("stack.toml"), &pairs(&set)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("`cache.shrink`: found `as-needed`"), "{error}");
        assert!(error.contains(found), "{error}");
    }
}
