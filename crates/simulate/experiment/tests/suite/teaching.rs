//! Trainers that the caller brings, model files that are not trained, and training off the drive.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::wa::{ClassifierOptions, stored};
use cachewright_experiment::{
    DriveOptions, TrainOptions, Trained, TrainerFactory, WaOptions, train, wa,
};
use cachewright_ftl::separation::shiro::{Dataset, NativeTrainer, TrainError, Trainer};
use cachewright_model::{Architecture, Description, Head, NetworkKind, StoredModel};
use cachewright_types::declare::Percent;
use cachewright_types::{Bytes, Seed};
use common::{Folder, quiet};
use serde_json::Value;
use std::path::Path;

const STACK: &str =
    "[cache]\ncapacity = \"100%wss\"\n[[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";
const PAGES: u64 = 500;
const WRITES: u64 = 8000;
/// Shiro with windows of a hundred pages.
/// Windows of a hundred pages each, with a threshold whatever its lifetimes are.
const SHIRO: &str = "{ name = \"shiro\", window_share = 0.2, longest_window = 0.2, \
                     least_class = 0.0, threshold_floor = 0.0, censored = \"long\" }";

/// Shiro with windows of two thousand pages.
const WIDE: &str = "{ name = \"shiro\", window_share = 4.0 }";

/// Every page once; then three of four writes go round fifteen pages, each every twenty writes, the
/// others to any. From write `turn` on, the others are drawn from `seed`.
fn trace(turn: u64, seed: u64) -> String {
    let (mut early, mut late) = (Seed(5).rng(), Seed(seed).rng());
    let mut pages: Vec<u64> = (0..PAGES).collect();
    for index in 0..WRITES {
        let rng = if index < turn { &mut early } else { &mut late };
        let any = 15 + rng.below(PAGES - 15);
        let round = index - index / 4;
        pages.push(if index % 4 > 0 { round % 15 } else { any });
    }
    pages.iter().enumerate().map(|(i, p)| format!("1,W,{},4096,{i}\n", p * 4096)).collect()
}

fn shiro(separations: &[&str]) -> WaOptions {
    let drive = DriveOptions {
        op: vec![Percent(1.0)],
        separations: separations.iter().map(|name| (*name).to_owned()).collect(),
        superblock: Some(Bytes(131_072)),
        ..DriveOptions::default()
    };
    WaOptions { drive, ..WaOptions::default() }
}

/// The same with a model file, which is not trained any more.
fn given(file: &Path, separations: &[&str]) -> WaOptions {
    let mut options = shiro(separations);
    options.drive.model = Some(file.display().to_string());
    options
}

fn measured(folder: &Folder, options: &WaOptions) -> Result<Value, String> {
    let origin = folder.with("a.csv", &trace(0, 1));
    wa(STACK, &origin, options, &quiet).map_err(|error| error.to_string())
}

/// Trains as the trainer in Rust does, but not on windows 20 to 22.
struct Moody(NativeTrainer);

impl Trainer for Moody {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if (20..23).contains(&dataset.window) {
            return Err(TrainError::Outside("not today".to_owned()));
        }
        self.0.train(dataset)
    }
}

#[test]
fn a_trainer_that_fails_costs_windows_and_not_the_run() {
    let folder = Folder::new("teaching-fails");
    let factory = TrainerFactory::new("moody", |_, seed| Box::new(Moody(NativeTrainer::new(seed))));
    let options = WaOptions { trainer: Some(factory), ..shiro(&[SHIRO, "none"]) };
    let result = measured(&folder, &options).unwrap();
    assert_eq!((&result["trainer"], &result["model"]), (&"moody".into(), &Value::Null));
    let training = &result["cases"][0]["training"];
    assert_eq!((&training["failures"], &training["last"]), (&3.into(), &failure().into()));
    assert!(training["models"].as_u64().unwrap() > 50, "{training}");
    assert_eq!(result["cases"][1]["training"], Value::Null);
    let told: Vec<&str> =
        result["warnings"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
    let told: Vec<&&str> = told.iter().filter(|warning| warning.contains("training")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("failed in 3 of ") && told[0].ends_with(&failure()), "{told:?}");
}

fn failure() -> String {
    "window 22: trainer: not today".to_owned()
}

#[test]
fn a_trainer_brought_by_the_caller_that_is_the_one_in_rust_changes_nothing() {
    let folder = Folder::new("teaching-same");
    let factory = TrainerFactory::new("rust", |_, seed| Box::new(NativeTrainer::new(seed)));
    let options = shiro(&[SHIRO, "shiro-ng"]);
    let native = measured(&folder, &options).unwrap();
    let outside = measured(&folder, &WaOptions { trainer: Some(factory), ..options }).unwrap();
    assert_eq!(native["cases"], outside["cases"]);
    assert_eq!((&native["trainer"], &outside["trainer"]), (&"native".into(), &"rust".into()));
}

fn study(folder: &Folder, name: &str, trace: &str, options: &TrainOptions) -> Trained {
    folder.with("a.csv", trace);
    train(STACK, &folder.path.join(name), options, &quiet).unwrap()
}

fn options() -> TrainOptions {
    let (separation, share) = (WIDE.to_owned(), Percent(0.5));
    let classifier = ClassifierOptions { separation, share, ..ClassifierOptions::default() };
    TrainOptions { classifier, ..TrainOptions::default() }
}

#[test]
fn a_model_trained_on_the_earlier_part_is_judged_by_the_later_and_never_sees_it() {
    let folder = Folder::new("teaching-study");
    let turn = (WRITES - PAGES) / 2;
    let first = study(&folder, "stack", &trace(turn, 1), &options());
    let found = &first.document["held_out"];
    let number = |key: &str| found[key].as_f64().unwrap();
    assert!(number("accuracy") > number("majority") + 0.1, "{found}");
    assert!(number("f1") > 0.9 && number("predictions") > 2_000.0, "{found}");
    assert!(first.document["trained_pages"].as_u64().unwrap() <= 4_250);
    let other = study(&folder, "stack", &trace(turn, 2), &options());
    assert_eq!(first.model, other.model, "what comes after the cut teaches nothing");
    assert_ne!(first.document["held_out"], other.document["held_out"]);
    let notes = stored(&first.model).unwrap().description.notes;
    assert_eq!((notes["page_bytes"].as_str(), notes["trainer"].as_str()), ("4096", "native"));
    let judged =
        TrainOptions { judge: vec![(STACK.to_owned(), folder.path.join("s"))], ..options() };
    let third = study(&folder, "stack", &trace(turn, 1), &judged);
    let measures = &third.document["judged"][0]["measures"];
    assert_eq!(measures["predictions"], WRITES, "every write but the first of each page");
}

#[test]
fn a_given_model_is_used_untrained() {
    let folder = Folder::new("teaching-given");
    let trained = study(&folder, "stack", &trace(0, 1), &options());
    let file = folder.path.join("m.safetensors");
    std::fs::write(&file, &trained.model).unwrap();
    let separations = &[SHIRO, "shiro-ng", "none"];
    let options = given(&file, separations);
    let result = measured(&folder, &options).unwrap();
    assert_eq!(result["trainer"], "none");
    assert_eq!(result["model"]["notes"]["threshold"], trained.document["threshold"].to_string());
    for case in result["cases"].as_array().unwrap().iter().take(2) {
        let training = &case["training"];
        assert_eq!((&training["models"], &training["failures"]), (&1.into(), &0.into()));
    }
    let told = |result: &Value| {
        let warnings = result["warnings"].as_array().unwrap().iter().filter_map(|w| w.as_str());
        let windows = warnings.filter(|warning| warning.contains("windows of 2000 page writes"));
        windows.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(told(&result).len(), 2, "windows of 100 and 25 page writes");
    let same = given(&file, &[WIDE]);
    assert_eq!(told(&measured(&folder, &same).unwrap()), Vec::<String>::new());
    let factory = TrainerFactory::new("rust", |_, seed| Box::new(NativeTrainer::new(seed)));
    let both = WaOptions { trainer: Some(factory), ..options };
    let error = measured(&folder, &both).unwrap_err();
    assert!(
        error.ends_with("found `rust` beside a given model, expected one of the two"),
        "{error}"
    );
}

/// A model of four inputs, or of the right number under other names.
fn odd(inputs: usize) -> Vec<u8> {
    let heads = vec![Head { name: "fc".to_owned(), outputs: 2 }];
    let architecture = Architecture { kind: NetworkKind::Gru, inputs, hidden: vec![32], heads };
    let weights = architecture.tensors().into_iter();
    let weights = weights.map(|(name, shape)| (name, vec![0.1; shape.iter().product()])).collect();
    let description = Description::plain(architecture);
    let model = StoredModel::float(description, weights, vec![vec![0.5; inputs]]).unwrap();
    model.to_bytes().unwrap()
}

#[test]
fn models_that_do_not_fit_are_refused_before_the_run_in_words() {
    let folder = Folder::new("teaching-refusals");
    let refused = |bytes: &[u8], separations: &[&str]| {
        let file = folder.path.join("odd.safetensors");
        std::fs::write(&file, bytes).unwrap();
        // No trace is there: what is refused is refused before one is read.
        let options = given(&file, separations);
        let error = wa(STACK, &folder.path.join("s"), &options, &quiet).unwrap_err().to_string();
        let (_, message) = error.split_once("`model`: ").unwrap();
        message.replace(&format!("{}/", folder.path.display()), "")
    };
    let four = "found 4 inputs, 32 + 0 bytes of state and 2 outputs, \
                expected 24 inputs, 32 + 0 bytes of state and 2 outputs";
    assert_eq!(refused(&odd(4), &["shiro"]), format!("odd.safetensors for `shiro`: {four}"));
    let old = refused(&odd(22), &["shiro"]);
    assert!(old.ends_with("(a model of 22 inputs is of an older form: train it again)"), "{old}");
    let names = "found `x0` as input 0, expected `previous_lifetime.0`";
    assert!(refused(&odd(24), &["none", "shiro-ng"]).ends_with(names));
    let none = refused(&odd(24), &["none", "2r"]);
    let expected = "expected shiro, shiro-levels, shiro-ng";
    assert_eq!(none, format!("found no separation that learns in none, 2r, {expected}"));
    assert!(refused(b"hello", &["shiro"]).starts_with("odd.safetensors: "));
}

#[test]
fn too_little_to_train_on_is_said() {
    let folder = Folder::new("teaching-little");
    let text = trace(0, 1);
    let fill: Vec<&str> = text.lines().take(PAGES as usize).collect();
    folder.with("a.csv", &(fill.join("\n") + "\n"));
    let refused = |options: &TrainOptions| {
        train(STACK, &folder.path.join("s"), options, &quiet).unwrap_err().to_string()
    };
    let error = refused(&options());
    assert!(
        error.contains("windows in 250 page writes, expected at least one that teaches"),
        "{error}"
    );
    let mut whole = options();
    whole.classifier.share = Percent(1.0);
    let error = refused(&whole);
    assert!(error.contains("`share`: found `100%`, expected"), "{error}");
    let mut other = options();
    other.classifier.separation = "sepbit".to_owned();
    let error = refused(&other);
    assert!(error.contains("found no separation that learns in sepbit"), "{error}");
}
