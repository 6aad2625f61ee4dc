//! Sweeps: what is done is not done again, whatever happened to the folder meanwhile.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

mod common;

use cachewright_experiment::{ExperimentError, Progress, RunOptions, WaOptions, run, wa};
use common::{Folder, quiet, small_trace};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

const STACK: &str = "
[cache]
capacity = \"200 blocks\"
[device.cache]
model = \"fixed-latency\"
[device.backing]
model = \"fixed-latency\"
read = \"5ms\"
[machine]
alone = true
[replay]
interval = \"100ms\"
windows = 5
loop = \"closed\"
[[tenant]]
name = \"a\"
trace = \"a.csv\"
goal_hit_ratio = 0.3
[[tenant]]
name = \"b\"
trace = \"b.csv\"
";

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(1, 20_000, 2000));
    folder.with("b.csv", &small_trace(2, 5_000, 400));
    folder
}

fn options(folder: &Folder, vary: &[(&str, &[&str])]) -> RunOptions {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    RunOptions {
        vary: vary.iter().map(|(key, values)| ((*key).to_owned(), words(values))).collect(),
        threads: 1,
        out: Some(folder.path.join("out")),
        ..RunOptions::default()
    }
}

fn swept(folder: &Folder, options: &RunOptions) -> Value {
    run(STACK, &folder.path.join("stack.toml"), options, &quiet).unwrap()
}

fn kept(folder: &Folder) -> BTreeSet<std::path::PathBuf> {
    let cases = std::fs::read_dir(folder.path.join("out/cases")).unwrap();
    cases.map(|entry| entry.unwrap().path()).collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_file_in_place_of_the_folder_is_refused() {
    let folder = folder("sweep-file");
    let options = RunOptions { out: Some(folder.path.join("a.csv")), ..RunOptions::default() };
    let stack = folder.path.join("stack.toml");
    let error = run(STACK, &stack, &options, &quiet).unwrap_err().to_string();
    assert!(error.ends_with("a.csv: found a file, expected a folder for results"), "{error}");
}

#[test]
fn an_interrupted_sweep_keeps_what_was_finished() {
    let folder = folder("interrupted");
    let options = options(&folder, &[("capacity", &["100 blocks", "200 blocks", "300 blocks"])]);
    // 25,000 requests per case; told after 16,384 of each: stopped in the second.
    let second = |progress: Progress| progress.total != Some(75_000) || progress.done < 30_000;
    let set = |options: &RunOptions| RunOptions {
        set: vec![("machine.alone".to_owned(), "false".to_owned())],
        ..options.clone()
    };
    let origin = folder.path.join("stack.toml");
    let stopped = run(STACK, &origin, &set(&options), &second);
    assert!(matches!(stopped, Err(ExperimentError::Cancelled)));
    assert_eq!(kept(&folder).len(), 1);
    let resumed = swept(&folder, &set(&options));
    assert_eq!(resumed["reused"], 1);
    let file = read(&folder.path.join("out/result.json"));
    let anew = swept(&folder, &RunOptions { fresh: true, ..set(&options) });
    assert_eq!(anew["reused"], 0);
    assert_eq!(file, read(&folder.path.join("out/result.json")));
}

#[test]
fn damaged_answers_are_computed_anew() {
    let folder = folder("damaged");
    let options = options(&folder, &[("partition", &["shared", "equal", "soft-qos", "hull"])]);
    swept(&folder, &options);
    let result = read(&folder.path.join("out/result.json"));
    let files: Vec<_> = kept(&folder).into_iter().collect();
    assert_eq!(files.len(), 4);
    let whole = read(&files[0]);
    std::fs::write(&files[0], &whole[..whole.len() / 2]).unwrap();
    std::fs::write(&files[1], "[7, []]").unwrap();
    std::fs::write(&files[2], [0xff, 0xfe, 0x00]).unwrap();
    std::fs::write(files[3].with_extension("1-1.part"), "[{").unwrap();
    assert_eq!(swept(&folder, &options)["reused"], 1);
    assert_eq!(result, read(&folder.path.join("out/result.json")));
    assert_eq!(whole, read(&files[0]));
}

#[test]
fn equal_settings_are_one_case_however_they_are_written() {
    let folder = folder("written");
    swept(&folder, &options(&folder, &[("partition", &["equal"])]));
    let vary: [(&str, &[&str]); 2] =
        [("replay.interval", &["0.1s", "0.10000001s"]), ("partition", &["{name = \"equal\"}"])];
    let found = swept(&folder, &options(&folder, &vary));
    assert_eq!(found["reused"], 1, "a tenth of a microsecond more is another interval");
    let settings = |case: usize| &found["cases"][case]["settings"]["replay.interval"];
    assert_eq!((settings(0), settings(1)), (&"0.1s".into(), &"0.10000001s".into()));
    assert_eq!(found["cases"][1]["case"], 1);
}

#[test]
fn tenants_run_alone_once_per_machine() {
    let folder = folder("alone");
    let partitions: &[&str] = &["shared", "equal", "soft-qos"];
    let vary = [("partition", partitions), ("capacity", &["100 blocks", "200 blocks"])];
    let totals = Mutex::new(BTreeSet::new());
    let note = |progress: Progress| {
        if progress.stage == "replaying on devices" {
            totals.lock().unwrap().insert(progress.total);
        }
        true
    };
    let origin = folder.path.join("stack.toml");
    let found = run(STACK, &origin, &options(&folder, &vary), &note).unwrap();
    // Two tenants on two machines, and six cases.
    assert_eq!(*totals.lock().unwrap(), BTreeSet::from([Some(10 * 25_000)]));
    let alone = |case: usize| &found["cases"][case]["timing"]["tenants"][0]["alone_mean_ns"];
    assert_eq!((alone(0), alone(1)), (alone(2), alone(3)));
    assert_ne!(alone(0), alone(1));
    // What a case says is what it says when it is run by itself.
    let one = options(&folder, &[("partition", &["soft-qos"]), ("capacity", &["200 blocks"])]);
    let one = swept(&folder, &RunOptions { fresh: true, ..one });
    assert_eq!(one["cases"][0]["timing"], found["cases"][5]["timing"]);
}

#[test]
fn drives_are_kept_too() {
    let folder = folder("drives");
    let options = WaOptions {
        separations: vec!["none".to_owned(), "sepbit".to_owned()],
        superblock: "64KiB".to_owned(),
        op: vec!["28%".to_owned()],
        out: Some(folder.path.join("out")),
        ..WaOptions::default()
    };
    let measure = |options: &WaOptions| {
        let stack = STACK.split("[device.cache]").next().unwrap().to_owned()
            + "[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
        let found = wa(&stack, &folder.path.join("stack.toml"), options, &quiet).unwrap();
        (found["reused"].as_u64().unwrap(), read(&folder.path.join("out/wa.json")))
    };
    let (none, first) = measure(&options);
    let (both, second) = measure(&options);
    assert_eq!((none, both), (0, 2));
    assert_eq!(first, second);
    let more = WaOptions { op: vec!["28%".to_owned(), "40%".to_owned()], ..options };
    assert_eq!(measure(&more).0, 2, "two of four");
}
