//! Models named in a stack file: they reach partitioners, and are refused by key before anything is
//! replayed.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_curve::signal::FEATURES;
use cachewright_experiment::{RunOptions, check, run};
use cachewright_model::NetworkKind;
use cachewright_testkit::models::constant_model;
use common::{Folder, answer_to, pairs, quiet, small_trace};
use serde_json::{Value, json};

const STACK: &str = "[cache]\ncapacity = \"200 blocks\"\n\
    partition = { name = \"icache\", steps_per_interval = 6, window_steps = 6 }\n\
    [replay]\ninterval = \"1ms\"\nwindows = 8\n\
    [[tenant]]\nname = \"a\"\ntrace = \"a.csv\"\nmodel = \"a.safetensors\"\nsensitive = true\n\
    [[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\nmodel = \"b.safetensors\"\n";

/// A model that always predicts these shares of the cache, trained on so many granules.
fn says(shares: [f32; 2], granules: &str) -> Vec<u8> {
    let notes = [("granules", granules), ("window_steps", "6")];
    let names = FEATURES.map(str::to_owned);
    constant_model(NetworkKind::Lstm, &names, &shares, &notes).to_bytes().unwrap()
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    for (at, tenant) in [(5, "a"), (6, "b")] {
        folder.with(&format!("{tenant}.csv"), &small_trace(at, 4000, 500));
    }
    std::fs::write(folder.path.join("a.safetensors"), says([0.1, 0.2], "10")).unwrap();
    std::fs::write(folder.path.join("b.safetensors"), says([0.3, 0.8], "10")).unwrap();
    folder
}

fn quotas(result: &Value) -> Vec<u64> {
    let tenants = result["cases"][0]["tenants"].as_array().unwrap();
    tenants.iter().map(|tenant| tenant["quota_blocks"].as_u64().unwrap()).collect()
}

#[test]
fn models_decide_in_open_and_closed_loops() {
    let folder = folder("models");
    for pace in ["open", "closed"] {
        let result = answer_to(&folder, STACK, &[("replay.loop", pace)]).unwrap();
        // 2 and 8 granules of 20 blocks, all of them.
        assert_eq!(quotas(&result), [40, 160], "{pace}");
    }
}

#[test]
fn an_answer_is_not_kept_for_another_model() {
    let folder = folder("retrained");
    let origin = folder.path.join("stack.toml");
    let out = Some(folder.path.join("out"));
    let options = RunOptions { out, ..RunOptions::default() };
    let again = || {
        let result = run(STACK, &origin, &options, &quiet).unwrap();
        (quotas(&result), result["reused"].clone())
    };
    assert_eq!(again(), (vec![40, 160], json!(0)));
    assert_eq!(again(), (vec![40, 160], json!(1)));
    std::fs::write(folder.path.join("b.safetensors"), says([0.3, 0.5], "10")).unwrap();
    // 2 and 5 granules; the 3 that remain go to the first, as no tenant's demand grows.
    assert_eq!(again(), (vec![100, 100], json!(0)));
}

#[test]
fn what_cannot_be_used_is_refused_by_key() {
    let folder = folder("refused");
    std::fs::write(folder.path.join("other.safetensors"), says([0.1, 0.2], "20")).unwrap();
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[("tenant.b.model", "7")], "`tenant[2].model`: found `7`, expected text in quotes"),
        (&[("tenant.b.model", "none.safetensors")], "`tenant[2].model`: found no file `"),
        (&[("tenant.b.model", "a.csv")], "`tenant[2].model`: found no model in `"),
        (
            &[("tenant.b.model", "other.safetensors")],
            "`tenant.model`: found a file that `icache` cannot use: model 2 of 2: ",
        ),
        (&[("tenant.a.sensitive", "7")], "`tenant[1].sensitive`: found `7`, expected true or"),
        (&[("partition", "mlcache")], "needs a trained model of all tenants, found none, expected"),
        (
            &[("partition", "mlcache"), ("cache.model", "a.safetensors")],
            "`cache.model`: found a file that `mlcache` cannot use: ",
        ),
        (
            &[("partition", "icache-x")],
            "`cache.partition`: partitioner `icache-x` needs response times, found none, expected \
             `[device]` tables",
        ),
    ];
    for (set, expected) in cases {
        let error = answer_to(&folder, STACK, set).unwrap_err();
        assert!(error.contains(expected) && error.contains("stack.toml"), "{set:?}: {error}");
    }
    let without = STACK.replace("model = \"b.safetensors\"\n", "");
    let error = answer_to(&folder, &without, &[]).unwrap_err();
    let expected = "`cache.partition`: partitioner `icache` needs a trained model per tenant, \
                    found none, expected a file in `tenant[2].model`";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_partitioner_that_asks_no_model_does_not_hear_of_it() {
    let folder = folder("unheard");
    let set = [("partition", "equal"), ("tenant.a.model", "none"), ("cache.model", "none either")];
    assert_eq!(quotas(&answer_to(&folder, STACK, &set).unwrap()), [100, 100]);
    let resolved = check(STACK, &folder.path.join("stack.toml"), &pairs(&set)).unwrap();
    assert_eq!(resolved["cache"]["model"], json!("none either"));
    let tenants = &resolved["tenant"];
    assert_eq!(
        [&tenants[0]["model"], &tenants[1]["model"]],
        [&json!("none"), &json!("b.safetensors")]
    );
    assert_eq!([&tenants[0]["sensitive"], &tenants[1]["sensitive"]], [&json!(true), &json!(false)]);
}
