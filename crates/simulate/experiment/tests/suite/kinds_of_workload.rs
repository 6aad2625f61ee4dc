//! Models of a caching policy, named in a stack file by kind of workload: they reach the policy,
//! are refused by key before anything is replayed, and decide on a captured trace as counted.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::check;
use cachewright_model::{Architecture, Description, Head, NetworkKind, StoredModel, quantise};
use cachewright_policy::rc_rnn::features::FeatureSet;
use cachewright_testkit::reference_data;
use cachewright_types::Seed;
use common::{Folder, answer_to, pairs, small_trace};
use serde_json::Value;

const STACK: &str = "[cache]\ncapacity = \"200 blocks\"\npolicy = \"rc-rnn\"\n\
    models = { mail = \"yes.safetensors\", web = \"no.safetensors\" }\nworkload = \"mail\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\n";

/// A model of so many units, whose numbers are `fill` of a tensor's name and their count.
fn model(
    features: FeatureSet,
    units: usize,
    fill: impl Fn(&str, usize) -> Vec<f32>,
    steps: Vec<Vec<f32>>,
) -> StoredModel {
    let head = |name: &str, outputs| Head { name: name.to_owned(), outputs };
    let names = features.features();
    let mut description = Description::plain(Architecture {
        kind: NetworkKind::Lstm,
        inputs: names.len(),
        hidden: vec![units],
        heads: vec![head("cached", 2), head("duration", 3)],
    });
    description.features = names.iter().map(|name| (*name).to_owned()).collect();
    let filled = |(name, shape): (String, Vec<usize>)| {
        let numbers = fill(&name, shape.iter().product());
        (name, numbers)
    };
    let tensors = description.architecture.tensors().into_iter().map(filled).collect();
    StoredModel::float(description, tensors, steps).unwrap()
}

/// A model that labels every request so.
fn always(cached: bool, features: FeatureSet) -> Vec<u8> {
    let bias = |name: &str, count| {
        let mut numbers = vec![0.0; count];
        if name == "cached.bias" {
            numbers[usize::from(cached)] = 1.0;
        }
        numbers
    };
    let still = vec![vec![0.0; features.features().len()]];
    model(features, 1, bias, still).to_bytes().unwrap()
}

/// An untrained model: its numbers are drawn by the names of its tensors, and so are 64
/// steps of features from 0 to 32.
fn drawn(features: FeatureSet) -> StoredModel {
    let drawn = |name: &str, count, from: f64, to: f64| -> Vec<f32> {
        let mut rng = Seed(23).derive(name).rng();
        (0..count).map(|_| (from + (to - from) * rng.unit()) as f32).collect()
    };
    let width = features.features().len();
    let steps = drawn("steps", 64 * width, 0.0, 32.0);
    let steps = steps.chunks(width).map(<[f32]>::to_vec).collect();
    model(features, 8, |name, count| drawn(name, count, -1.0, 1.0), steps)
}

/// A model of a characterizer that always names the second of these kinds.
fn second_of(kinds: &str) -> Vec<u8> {
    let sees = cachewright_policy::characterize::features("io-size", &[]).unwrap();
    let names = sees.names();
    let mut description = Description::plain(Architecture {
        kind: NetworkKind::Logistic,
        inputs: names.len(),
        hidden: Vec::new(),
        heads: vec![Head { name: "kind".to_owned(), outputs: 2 }],
    });
    description.features = names.iter().map(|name| (*name).to_owned()).collect();
    for (note, text) in [("characterizer", "io-size"), ("kinds", kinds), ("window", "10")] {
        description.notes.insert(note.to_owned(), text.to_owned());
    }
    let weights = ("kind.weight".to_owned(), vec![0.0; 2 * names.len()]);
    let tensors = [weights, ("kind.bias".to_owned(), vec![0.0, 1.0])].into();
    let model = StoredModel::float(description, tensors, vec![vec![0.0; names.len()]]).unwrap();
    model.to_bytes().unwrap()
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, 4000, 500));
    for (file, cached) in [("yes", true), ("no", false)] {
        let model = always(cached, FeatureSet::Reuse);
        std::fs::write(folder.path.join(format!("{file}.safetensors")), model).unwrap();
    }
    folder
}

fn admissions(result: &Value) -> u64 {
    result["cases"][0]["tenants"][0]["admissions"].as_u64().unwrap()
}

#[test]
fn the_model_of_the_kind_decides() {
    let folder = folder("kinds");
    let run = |set: &[(&str, &str)]| answer_to(&folder, STACK, set).unwrap();
    for pace in ["open", "closed"] {
        let of = |kind| admissions(&run(&[("replay.loop", pace), ("cache.workload", kind)]));
        assert!(of("mail") > 500, "{pace}");
        assert_eq!(of("web"), 0, "{pace}");
    }
    let resolved = check(STACK, &folder.path.join("stack.toml"), &[]).unwrap();
    assert_eq!(resolved["cache"]["workload"], "mail", "{resolved}");
}

#[test]
fn a_characterizer_switches_to_the_model_of_the_kind_it_names() {
    let folder = folder("judged");
    let write = |kinds| {
        std::fs::write(folder.path.join("kinds.safetensors"), second_of(kinds)).unwrap();
    };
    let judge = |every: &str| {
        format!("{{ name = \"io-size\", model = \"kinds.safetensors\", every = \"{every}\" }}")
    };
    let run = |every: &str| answer_to(&folder, STACK, &[("cache.characterize", &judge(every))]);
    write("mail, web");
    // 4,000 requests, 100 us apart: asked at the 2,000th, or never.
    let (half, whole) = (run("200ms").unwrap(), run("10s").unwrap());
    assert!(admissions(&half) > 100);
    assert!(10 * admissions(&half) < 7 * admissions(&whole));
    let set = pairs(&[("cache.characterize", &judge("200ms"))]);
    let resolved = check(STACK, &folder.path.join("stack.toml"), &set).unwrap();
    assert_eq!(resolved["cache"]["characterize"]["every"], "200ms", "{resolved}");
    write("video, build");
    let error = run("200ms").unwrap_err();
    assert!(error.contains("it tells video, build apart, expected some of mail, web"), "{error}");
    let error = run("0s").unwrap_err();
    assert!(error.contains("`cache.characterize.every`: found none, expected a time"), "{error}");
    // A policy without models does not hear of it, so that one file compares both.
    let lru = [("cache.characterize", &*judge("1s")), ("cache.policy", "lru")];
    assert!(admissions(&answer_to(&folder, STACK, &lru).unwrap()) > 500);
}

#[test]
fn what_is_missing_or_does_not_fit_is_refused_by_key() {
    let folder = folder("misfits");
    let refused = |set: &[(&str, &str)]| answer_to(&folder, STACK, set).unwrap_err();
    let error = refused(&[("cache.workload", "web-server")]);
    assert!(error.contains("`cache.workload`: found `web-server`, expected one of mail, web"));
    let error = refused(&[("cache.models", "{ mail = \"none.safetensors\" }")]);
    assert!(error.contains("`cache.models.mail`: found no file"), "{error}");
    let error = refused(&[("cache.models", "{ mail = \".\" }")]);
    assert!(error.contains("`cache.models.mail`: found the folder"), "{error}");
    let error = refused(&[("cache.models", "{ mail = 3 }")]);
    assert!(error.contains("`cache.models.mail`: found `3`, expected text"), "{error}");
    folder.with("text.safetensors", "no model");
    let error = refused(&[("cache.models", "{ mail = \"text.safetensors\" }")]);
    assert!(error.contains("`cache.models.mail`: found no model in"), "{error}");
    let plain = STACK.replace("models", "#").replace("workload", "#");
    let error = answer_to(&folder, &plain, &[]).unwrap_err();
    let expected = "`cache.policy`: policy `rc-rnn` needs trained models, found none, expected \
                    files by kind of workload in `cache.models`";
    assert!(error.contains(expected), "{error}");
    let several = STACK.replace("workload", "#");
    let error = answer_to(&folder, &several, &[]).unwrap_err();
    assert!(error.contains("expected the kind to begin with: one of mail, web"), "{error}");
    let mut other = StoredModel::from_bytes(&always(true, FeatureSet::Paper)).unwrap();
    other.description.features[0] = "place".to_owned();
    std::fs::write(folder.path.join("yes.safetensors"), other.to_bytes().unwrap()).unwrap();
    let error = refused(&[]);
    let expected = "`cache.models`: found a file that `rc-rnn` cannot use: `mail`: found features \
                    place, size";
    assert!(error.contains(expected), "{error}");
}

/// Hits, admissions, bypasses and evictions on `build` under [`drawn`], in f32 and in int8.
#[test]
fn counts_on_a_captured_trace_are_pinned() {
    let Some(captured) = reference_data("traces/captured") else { return };
    let folder = Folder::new("rc-rnn-captured");
    let trace = captured.join("build.csv.zst");
    let text = STACK.replace("a.csv", trace.to_str().unwrap()).replace("200 blocks", "20%wss");
    let counts = |model: &StoredModel| {
        std::fs::write(folder.path.join("yes.safetensors"), model.to_bytes().unwrap()).unwrap();
        let models = [("cache.models", "{ mail = \"yes.safetensors\" }")];
        let found = answer_to(&folder, &text, &models).unwrap();
        let total = |key| common::total(&found["cases"][0], key);
        [total("hits"), total("admissions"), total("bypasses"), total("evictions")]
    };
    let float = drawn(FeatureSet::Reuse);
    assert_eq!(counts(&float), [386_951, 148_974, 379_173, 118_919]);
    let steps = float.test_vector.inputs.concat();
    let int8 = quantise(&float, &[&steps]).unwrap();
    assert_eq!(counts(&int8), [392_633, 143_542, 378_923, 113_475]);
}
