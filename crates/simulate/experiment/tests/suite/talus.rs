//! `shadow = "talus"`: cliffs of curves become slopes, under every partitioner that reads curves.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use common::{Folder, answer_to, number, small_trace, walk};
use serde_json::Value;

const STACK: &str = "[cache]\ncapacity = \"160 blocks\"\npartition = \"hull\"\n\
    [replay]\ninterval = \"10ms\"\n";
const LOOP: &str = "[[tenant]]\nname = \"loop\"\ntrace = \"loop.csv\"\n";
const RANDOM: &str = "[[tenant]]\nname = \"random\"\ntrace = \"random.csv\"\n";
const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\n\
    [device.backing]\nmodel = \"fixed-latency\"\n";
const TALUS: (&str, &str) = ("cache.shadow", "talus");

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("loop.csv", &walk(200, 60, 10));
    folder.with("random.csv", &small_trace(3, 12_000, 400));
    folder
}

fn answer(folder: &Folder, text: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, text, set)
}

fn hit_ratio(folder: &Folder, text: &str, set: &[(&str, &str)]) -> f64 {
    number(&answer(folder, text, set).unwrap()["cases"][0]["total"]["hit_ratio"])
}

/// A loop of 200 blocks in 160: LRU evicts each block before it comes back. Talus keeps 160 blocks
/// for 0.8 / 1.05 of the loop, which is 152 blocks, and gives the others none: 0.76 of accesses
/// hit, but for those of the first intervals.
#[test]
fn a_loop_that_does_not_fit_hits_in_proportion() {
    let (folder, text) = (folder("talus-loop"), format!("{STACK}{LOOP}"));
    assert_eq!(hit_ratio(&folder, &text, &[]), 0.0);
    let talus = hit_ratio(&folder, &text, &[TALUS]);
    assert!((0.6..0.78).contains(&talus), "{talus}");
    let closed = ("replay.loop", "closed");
    assert!(hit_ratio(&folder, &text, &[TALUS, closed]) > 0.5);
    assert_eq!(hit_ratio(&folder, &text, &[closed]), 0.0);
}

/// A loop of 2,000 blocks beside random reads of 4,000, in 1,600. Of fewer blocks a hash takes a
/// part that varies by more than the margin, so that a partition misses its own cliff.
#[test]
fn every_partitioner_with_curves_gains_where_there_is_a_cliff() {
    let folder = Folder::new("talus-two");
    folder.with("loop.csv", &walk(2000, 40, 10));
    folder.with("random.csv", &small_trace(3, 80_000, 4000));
    let text = format!("{STACK}{LOOP}{RANDOM}");
    for partition in ["hull", "dp", "memshare"] {
        let set = [
            ("cache.partition", partition),
            ("cache.capacity", "1600 blocks"),
            ("replay.interval", "20ms"),
        ];
        let whole = hit_ratio(&folder, &text, &set);
        let split = hit_ratio(&folder, &text, &[&set[..], &[TALUS]].concat());
        println!("{partition}: {whole:.3} without, {split:.3} with shadow partitions");
        assert!(split > whole, "{partition}: {split:.3} beside {whole:.3}");
    }
}

#[test]
fn what_cannot_be_split_is_refused_by_name() {
    let folder = folder("talus-refused");
    let text = format!("{STACK}{LOOP}{RANDOM}");
    let timed = format!("{text}{DEVICES}");
    let own = "{ name = \"hull\", own_policy = true }";
    let none: &[(&str, &str)] = &[];
    let cases = [
        (timed.as_str(), none, "found `talus` with devices, expected `none`: ids of blocks"),
        (&text, &[("cache.partition", "equal")][..], "with the partitioner `equal`, expected a"),
        (&text, &[("cache.policy", "arc")][..], "with the policy `arc`, expected `lru`, or"),
        (&text, &[("cache.policy", "belady"), ("cache.partition", own)][..], "the policy `belady`"),
        (&text, &[("cache.partition", "{ name = \"hull\", ahead = true }")][..], "measured ahead"),
    ];
    for (text, set, expected) in cases {
        let set: Vec<(&str, &str)> = set.iter().copied().chain([TALUS]).collect();
        let error = answer(&folder, text, &set).unwrap_err();
        assert!(error.contains("`cache.shadow`") && error.contains(expected), "{error}");
    }
    let arc = [("cache.policy", "arc"), ("cache.partition", own), TALUS];
    assert!(hit_ratio(&folder, &text, &arc) > 0.0);
}
