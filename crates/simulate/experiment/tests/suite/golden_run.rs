//! The whole path from a trace file to counts agrees with the reference numbers.
//!
//! Source: exact misses of another simulator on a synthetic trace that needs no file, and the
//! conventions under which they hold (unit blocks, reads only).
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::mrc::{CurveOptions, MethodChoice};
use cachewright_experiment::{MrcOptions, RunOptions, mrc, run};
use common::{Folder, golden_trace, quiet, sizes, total};

/// Misses at 100, 1000 and 10000 blocks.
const GOLDEN: [(&str, [u64; 3]); 9] = [
    ("lru", [190_485, 170_869, 114_288]),
    ("fifo", [191_913, 173_994, 122_897]),
    ("clock", [189_904, 169_441, 111_272]),
    ("sieve", [178_992, 154_723, 99_413]),
    ("s3-fifo", [177_129, 151_458, 97_212]),
    ("arc", [177_934, 152_536, 95_917]),
    ("2q", [179_310, 155_354, 104_837]),
    ("lfu", [180_118, 154_721, 99_413]),
    ("belady", [165_009, 127_835, 73_504]),
];

fn stack(folder: &Folder) -> String {
    let trace = folder.path.join("golden.oracleGeneral.bin");
    std::fs::write(&trace, golden_trace()).unwrap();
    "[cache]\ncapacity = \"1000 blocks\"\n[replay]\nblocks = \"unit\"\n[[tenant]]\n\
     trace = \"golden.oracleGeneral.bin\"\nformat = \"oracle-general\"\n\
     options = { address_unit = \"object\" }\n"
        .to_owned()
}

#[test]
fn every_policy_misses_exactly_as_often_as_the_reference() {
    let folder = Folder::new("golden");
    let text = stack(&folder);
    let policies = GOLDEN.map(|(policy, _)| policy.to_owned()).to_vec();
    let sizes = ["100 blocks", "1000 blocks", "10000 blocks"].map(str::to_owned).to_vec();
    let options = RunOptions {
        vary: vec![("policy".into(), policies), ("capacity".into(), sizes)],
        ..RunOptions::default()
    };
    let result = run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    assert_eq!(result["workload"]["distinct_blocks"], 34_430);
    for (at, (policy, misses)) in GOLDEN.iter().enumerate() {
        for (size, expected) in misses.iter().enumerate() {
            let case = &result["cases"][at * 3 + size];
            assert_eq!(case["settings"]["cache.policy"], *policy);
            assert_eq!(total(case, "misses"), *expected, "{policy} at size {size}");
            assert_eq!(total(case, "accesses"), 200_000);
        }
    }
}

#[test]
fn the_exact_curve_and_its_verification_agree_to_the_last_miss() {
    let folder = Folder::new("golden-curve");
    let text = stack(&folder);
    let curve = CurveOptions {
        policies: vec!["lru".into(), "sieve".into()],
        method: MethodChoice::Exact,
        sizes: sizes(&["100 blocks", "1000 blocks", "10000 blocks"]),
        verify: 3,
        ..CurveOptions::default()
    };
    let options = MrcOptions { curve, ..MrcOptions::default() };
    let result = mrc(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap();
    for (curve, golden) in [(0, &GOLDEN[0]), (1, &GOLDEN[3])] {
        for point in 0..3 {
            let ratio = result["curves"][curve]["points"][point][1].as_f64().unwrap();
            assert_eq!((ratio * 200_000.0).round() as u64, golden.1[point]);
        }
    }
    let verified = result["verify"].as_array().unwrap();
    assert_eq!(verified.len(), 6);
    for row in verified {
        assert!(row["error"].as_f64().unwrap().abs() < 1e-12, "{row}");
    }
}
