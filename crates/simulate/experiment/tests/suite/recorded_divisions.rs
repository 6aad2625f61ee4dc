//! Recorded divisions are made again, at their times, and those of another stack are refused.

use crate::common::{Folder, answer_to, small_trace};
use serde_json::Value;

const STACK: &str = "
[cache]
capacity = \"150 blocks\"
partition = \"icache-x\"
[replay]
interval = \"2ms\"
windows = 10
divisions = \"a.divisions\"
[[tenant]]
name = \"one\"
trace = \"a.csv\"
[[tenant]]
name = \"two\"
trace = \"b.csv\"
";

/// 2,000 requests of 100 us: windows of 20 ms.
const DIVISIONS: &str = "cachewright divisions 1\npartition icache-x\ninterval_ns 2000000\n\
    block_bytes 4096\ncapacity_blocks 150\ntenant one\ntenant two\n0 75 75\n38000000 10 140\n\
    90000000 90 50\n4000000000 1 1\nend 4\n";

fn answer(name: &str, divisions: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(1, 2000, 200));
    folder.with("b.csv", &small_trace(2, 2000, 100));
    folder.with("a.divisions", divisions);
    answer_to(&folder, STACK, set)
}

fn quotas(answer: &Value) -> Vec<[u64; 2]> {
    let rows = answer["series_rows"].as_array().unwrap();
    let rows: Vec<[u64; 2]> =
        rows.iter().map(|row| [row[3].as_u64().unwrap(), row[7].as_u64().unwrap()]).collect();
    let of = |tenant| rows.iter().filter(move |row| row[0] == tenant).map(|row| row[1]);
    of(0).zip(of(1)).map(|(one, two)| [one, two]).collect()
}

#[test]
fn divisions_hold_from_their_times_on() {
    let answer = answer("recorded-times", DIVISIONS, &[]).unwrap();
    let [before, between, after] = [[75, 75], [10, 140], [90, 50]];
    let expected: Vec<[u64; 2]> = (1..=10_u64)
        .map(|window| match window * 20 {
            0..38 => before,
            38..90 => between,
            _ => after,
        })
        .collect();
    let found = quotas(&answer);
    // What ends together with a window holds in it.
    assert_eq!(found, expected, "{found:?}");
}

#[test]
fn divisions_of_another_stack_are_refused_by_the_value_that_differs() {
    let cases = [
        (
            "partition=hull",
            "",
            "found divisions by `icache-x`, expected those of `cache.partition`",
        ),
        ("replay.interval=3ms", "", "found an interval of 2ms, expected that of `replay.interval`"),
        ("cache.block=8KiB", "", "found blocks of 4KiB, expected those of `cache.block`, 8KiB"),
        ("capacity=140 blocks", "", "found divisions of 150 blocks, expected those of `cache.cap"),
        (
            "tenant.one.name=three",
            "",
            "found the tenants one, two, expected those of the stack: th",
        ),
        ("replay.loop=closed", "", "found `replay.loop = \"closed\"`, expected `open`"),
        ("replay.divisions=b.divisions", "", "expected the file `TRACE.divisions`"),
        ("seed=1", "capacity_blocks 150", "line 5, column 1: found `capacity_blocks x`"),
        ("seed=1", "38000000 10 140", "line 9, column 1: found `x`, expected a time in nano"),
    ];
    for (set, changed, expected) in cases {
        let pair = set.split_once('=').unwrap();
        let text = match changed.strip_suffix(" 150") {
            Some(key) => DIVISIONS.replace(changed, &format!("{key} x")),
            None if changed.is_empty() => DIVISIONS.to_owned(),
            None => DIVISIONS.replace(changed, "x"),
        };
        let error = answer("recorded-refused", &text, &[pair]).unwrap_err();
        assert!(error.contains(expected), "{set}: {error}");
    }
    let error = answer("recorded-empty", "", &[]).unwrap_err();
    assert!(error.contains("found an empty file, expected divisions that a live"), "{error}");
}
