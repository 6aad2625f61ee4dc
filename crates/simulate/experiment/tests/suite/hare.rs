//! `partition = "hare"` on the bundled volumes: the four tenants of `specs/demo.toml` in 512 MiB.
#![allow(clippy::unwrap_used)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{pairs, quiet, total};
use serde_json::Value;
use std::path::PathBuf;

fn case(partition: &str) -> Value {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../specs/demo.toml"));
    let text = std::fs::read_to_string(&path).unwrap();
    let set = [("cache.capacity", "512MiB"), ("cache.partition", partition)];
    let options = RunOptions { set: pairs(&set), ..RunOptions::default() };
    run(&text, &path, &options, &quiet).unwrap()["cases"][0].clone()
}

/// Shares by weight are 16,384 blocks of oltp, 32,768 of mail, 65,536 of web and 16,384 of lu.
#[test]
fn counts_and_quotas_on_the_bundled_volumes_are_those_that_were_kept() {
    let hare = case("hare");
    assert_eq!((total(&hare, "read_hits"), total(&hare, "write_hits")), (999_935, 537_736));
    let quotas: Vec<u64> = hare["tenants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tenant| tenant["quota_blocks"].as_u64().unwrap())
        .collect();
    assert_eq!(quotas, [6_400, 32_576, 83_584, 8_512]);
    let shares = case("static");
    assert!(total(&hare, "hits") > total(&shares, "hits"), "trades save misses here");
}
