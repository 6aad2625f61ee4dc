//! The same spec gives the same bytes: twice, on one and two threads, and from kept answers.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, quiet, small_trace};
use std::path::Path;

const STACK: &str = concat!(
    r#"name = "determinism"
[cache]
capacity = "200 blocks"
[replay]
interval = "100ms"
windows = 10
"#,
    two_tenants!()
);

fn outcome(folder: &Folder, out: &Path, threads: usize, looped: &str) -> (Vec<u8>, Vec<u8>) {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let options = RunOptions {
        vary: vec![
            ("policy".into(), list(&["lru", "arc", "smq", "s3-fifo", "access-frequency"])),
            ("partition".into(), list(&["shared", "equal", "hull"])),
        ],
        set: vec![("replay.loop".into(), looped.into())],
        threads,
        out: Some(out.to_owned()),
        fresh: false,
        ..RunOptions::default()
    };
    run(STACK, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    let read = |name: &str| std::fs::read(out.join(name)).unwrap();
    (read("result.json"), read("series.parquet"))
}

#[test]
fn bytes_do_not_depend_on_threads_or_on_when_they_were_made() {
    let folder = Folder::new("determinism");
    folder.with("a.csv", &small_trace(1, 6000, 2000));
    folder.with("b.csv", &small_trace(2, 6000, 400));
    for looped in ["open", "closed"] {
        let one = outcome(&folder, &folder.path.join(format!("{looped}-1")), 1, looped);
        let two = outcome(&folder, &folder.path.join(format!("{looped}-2")), 2, looped);
        assert!(one == two, "{looped}: one and two threads differ");
        let again = outcome(&folder, &folder.path.join(format!("{looped}-2")), 1, looped);
        assert!(one == again, "{looped}: answers kept and answers computed differ");
    }
}

#[test]
fn a_varied_seed_answers_as_it_does_alone() {
    let folder = Folder::new("seeds");
    folder.with("a.csv", &small_trace(1, 40_000, 20_000));
    folder.with("b.csv", &small_trace(2, 40_000, 9_000));
    let hits = |seeds: &[&str]| -> Vec<u64> {
        let seeds = seeds.iter().map(|seed| (*seed).to_owned()).collect();
        let options = RunOptions {
            vary: vec![("seed".into(), seeds)],
            set: vec![("partition".into(), "hull".into())],
            ..RunOptions::default()
        };
        let stack = folder.path.join("stack.toml");
        let result = run(STACK, &stack, &options, &quiet).unwrap();
        let cases = result["cases"].as_array().unwrap().iter();
        cases.map(|case| case["total"]["hits"].as_u64().unwrap()).collect()
    };
    let together = hits(&["1", "2", "3"]);
    let alone: Vec<u64> = ["1", "2", "3"].iter().flat_map(|seed| hits(&[seed])).collect();
    assert_eq!(together, alone);
    assert!(together.windows(2).any(|pair| pair[0] != pair[1]), "the seed matters: {together:?}");
}

#[test]
fn a_changed_trace_is_not_answered_from_the_past() {
    let folder = Folder::new("stale");
    folder.with("a.csv", &small_trace(1, 3000, 2000));
    folder.with("b.csv", &small_trace(2, 3000, 400));
    let out = folder.path.join("out");
    let before = outcome(&folder, &out, 1, "open");
    folder.with("b.csv", &small_trace(3, 3000, 400));
    let after = outcome(&folder, &out, 1, "open");
    assert!(before.0 != after.0, "the second run must see the new trace");
}
