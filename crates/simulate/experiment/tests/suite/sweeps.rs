//! Sweeps: what is done is not done again, whatever happened to the folder meanwhile.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{
    DriveOptions, ExperimentError, Progress, RunOptions, WaOptions, run, wa,
};
use cachewright_types::Bytes;
use cachewright_types::declare::Percent;
use common::{Folder, pairs, quiet, small_trace, walk};
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
    // 25,000 requests per case: stopped in the second.
    let second = |progress: Progress| progress.total != Some(75_000) || progress.done < 30_000;
    let set = |options: &RunOptions| RunOptions {
        set: vec![("machine.alone".to_owned(), "false".to_owned())],
        ..options.clone()
    };
    let origin = folder.path.join("stack.toml");
    let stopped = run(STACK, &origin, &set(&options), &second);
    let words = stopped.unwrap_err().to_string();
    let expected =
        format!("cancelled; 1 of 3 cases are kept in {}", folder.path.join("out").display());
    assert!(words.starts_with(&expected), "{words}");
    assert_eq!(kept(&folder).len(), 1);
    let resumed = swept(&folder, &set(&options));
    assert_eq!(resumed["reused"], 1);
    let file = read(&folder.path.join("out/result.json"));
    let anew = swept(&folder, &RunOptions { fresh: true, ..set(&options) });
    assert_eq!(anew["reused"], 0);
    assert_eq!(file, read(&folder.path.join("out/result.json")));
}

#[test]
fn an_interrupted_open_loop_keeps_every_case_that_was_finished() {
    let folder = folder("interrupted-open");
    let stack = STACK.replace("loop = \"closed\"", "loop = \"open\"");
    let stack = stack.split("[device.cache]").next().unwrap().to_owned()
        + "[replay]"
        + stack.split("[replay]").nth(1).unwrap();
    let vary: [(&str, &[&str]); 2] =
        [("policy", &["lru", "arc", "belady"]), ("partition", &["shared", "hull"])];
    let options = options(&folder, &vary);
    let origin = folder.path.join("stack.toml");
    // Three exact curves come first; then one case after the other on one thread.
    let share = |progress: Progress| progress.done as f64 / progress.total.unwrap_or(1) as f64;
    let until = |progress: Progress| progress.stage != "replaying" || share(progress) < 0.7;
    let stopped = run(&stack, &origin, &options, &until).unwrap_err();
    assert!(stopped.is_cancelled());
    let done = kept(&folder).len();
    assert!((1..6).contains(&done), "{done} of 6");
    assert!(
        stopped.to_string().contains(&format!("; {done} of 6 cases are kept in ")),
        "{stopped}"
    );
    let resumed = run(&stack, &origin, &options, &quiet).unwrap();
    assert_eq!(resumed["reused"], done);
    let file = read(&folder.path.join("out/result.json"));
    let fresh = RunOptions { fresh: true, threads: 3, ..options };
    run(&stack, &origin, &fresh, &quiet).unwrap();
    assert_eq!(file, read(&folder.path.join("out/result.json")));
}

#[test]
fn the_result_of_another_stack_is_not_replaced_unless_asked() {
    let folder = folder("other");
    let first = options(&folder, &[]);
    swept(&folder, &first);
    let file = read(&folder.path.join("out/result.json"));
    let with = |set: &[(&str, &str)], fresh| RunOptions {
        set: set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        fresh,
        ..first.clone()
    };
    let origin = folder.path.join("stack.toml");
    for set in [("name", "other"), ("tenant.a.name", "c"), ("tenant.b.trace", "a.csv")] {
        let error = run(STACK, &origin, &with(&[set], false), &quiet).unwrap_err().to_string();
        let found =
            "out: found the result of `stack` (a from a.csv, b from b.csv), expected that of";
        assert!(error.contains(found) && error.contains("`--fresh`"), "{set:?}: {error}");
        assert_eq!(file, read(&folder.path.join("out/result.json")));
    }
    // The same traces by another path are the same stack, with whatever settings.
    let path = folder.path.join("b.csv").display().to_string();
    swept(&folder, &with(&[("tenant.b.trace", &path), ("seed", "7")], false));
    // A file of the same name elsewhere is another trace unless it holds the same bytes.
    std::fs::create_dir_all(folder.path.join("copy")).unwrap();
    let copy = folder.path.join("copy/b.csv");
    std::fs::copy(&path, &copy).unwrap();
    let elsewhere = [("tenant.b.trace", "copy/b.csv")];
    swept(&folder, &with(&elsewhere, false));
    swept(&folder, &with(&[], false));
    let mut longer = read(&copy);
    longer.extend_from_slice(b"1,R,0,4096,9000000\n");
    std::fs::write(&copy, longer).unwrap();
    let error = run(STACK, &origin, &with(&elsewhere, false), &quiet).unwrap_err().to_string();
    assert!(error.contains("(a from a.csv, b from copy/b.csv)"), "{error}");
    // Documents of another command count, and do not stay beside the result that replaces them.
    let document = folder.path.join("out/wa.json");
    std::fs::rename(folder.path.join("out/result.json"), &document).unwrap();
    let error = run(STACK, &origin, &with(&elsewhere, false), &quiet).unwrap_err().to_string();
    assert!(error.contains("found the result of `stack`"), "{error}");
    swept(&folder, &with(&elsewhere, true));
    assert!(!document.exists());
    swept(&folder, &with(&[("name", "other")], true));
    std::fs::write(folder.path.join("out/result.json"), "[1, 2]").unwrap();
    let error = run(STACK, &origin, &first, &quiet).unwrap_err().to_string();
    assert!(error.contains("found a `result.json` that is no result"), "{error}");
}

#[test]
fn a_result_that_cannot_be_written_leaves_no_part_of_it() {
    let folder = folder("parts");
    for blocked in ["out/series.parquet/x", "out/result.json/x"] {
        std::fs::create_dir_all(folder.path.join(blocked)).unwrap();
        let origin = folder.path.join("stack.toml");
        let error = run(STACK, &origin, &options(&folder, &[]), &quiet).unwrap_err();
        assert!(matches!(error, ExperimentError::Io { .. }), "{error}");
        let entries = std::fs::read_dir(folder.path.join("out")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.ends_with(".part")).count(), 0);
        std::fs::remove_dir_all(folder.path.join(blocked).parent().unwrap()).unwrap();
    }
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
    let options = DriveOptions {
        separations: vec!["none".to_owned(), "sepbit".to_owned()],
        superblock: Some(Bytes(65_536)),
        op: vec![Percent(0.28)],
        ..DriveOptions::default()
    };
    let measure = |drive: &DriveOptions| {
        let (drive, out) = (drive.clone(), Some(folder.path.join("out")));
        let options = &WaOptions { drive, out, ..WaOptions::default() };
        let stack = STACK.split("[device.cache]").next().unwrap().to_owned()
            + "[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
        let found = wa(&stack, &folder.path.join("stack.toml"), options, &quiet).unwrap();
        (found["reused"].as_u64().unwrap(), read(&folder.path.join("out/wa.json")))
    };
    let (none, first) = measure(&options);
    let (both, second) = measure(&options);
    assert_eq!((none, both), (0, 2));
    assert_eq!(first, second);
    let more = DriveOptions { op: vec![Percent(0.28), Percent(0.4)], ..options };
    assert_eq!(measure(&more).0, 2, "two of four");
}

/// Both cases replayed the recording of the first.
#[test]
fn cases_that_differ_in_the_clock_do_not_share_a_recording() {
    let folder = Folder::new("sweep-clock");
    folder.with("a.csv", &small_trace(1, 2000, 300));
    folder.with("b.csv", &walk(100, 20, 100).replace(",4096,", ",4096,7"));
    let stack = "[cache]\ncapacity = \"200 blocks\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n\
                 [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n";
    let totals = |set: &[(&str, &str)], vary: &[(&str, &[&str])]| -> Vec<Value> {
        let options = RunOptions { set: pairs(set), out: None, ..options(&folder, vary) };
        let found = run(stack, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
        found["cases"].as_array().unwrap().iter().map(|case| case["total"].clone()).collect()
    };
    let apart = ["own", "common"].map(|clock| totals(&[("replay.clock", clock)], &[]).remove(0));
    assert_ne!(apart[0], apart[1]);
    assert_eq!(totals(&[], &[("replay.clock", &["own", "common"])]), apart);
}
