//! What a run takes from the histories of tenants, where there are some, and not from its traces.

use crate::common::{Folder, answer_to, small_trace};
use serde_json::Value;

const STACK: &str = "
[cache]
capacity = \"150 blocks\"
partition = \"soft-qos\"
[replay]
interval = \"10s\"
windows = 0
curves = false
profile_share = 0.25
[[tenant]]
name = \"one\"
trace = \"a.csv\"
goal_hit_ratio = 0.3
[[tenant]]
name = \"two\"
trace = \"b.csv\"
goal_hit_ratio = 0.3
";

/// The first `requests` of a trace.
fn head(text: &str, requests: usize) -> String {
    text.lines().take(requests).map(|line| format!("{line}\n")).collect()
}

fn answer(name: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    let folder = Folder::new(name);
    let (one, two) = (small_trace(1, 2000, 200), small_trace(2, 2000, 100));
    folder.with("a.csv", &one);
    folder.with("b.csv", &two);
    folder.with("a-before.csv", &head(&one, 500));
    folder.with("b-before.csv", &head(&two, 500));
    folder.with("empty.csv", "");
    folder.with("flush.csv", "1,F,0,0,1\n");
    answer_to(&folder, STACK, set)
}

fn quotas(name: &str, set: &[(&str, &str)]) -> Vec<u64> {
    let answer = answer(name, set).unwrap();
    let tenants = answer["cases"][0]["tenants"].as_array().unwrap();
    tenants.iter().map(|tenant| tenant["quota_blocks"].as_u64().unwrap()).collect()
}

const BEFORE: [(&str, &str); 2] =
    [("tenant.one.history", "a-before.csv"), ("tenant.two.history", "b-before.csv")];
const OTHERS: [(&str, &str); 2] =
    [("tenant.one.history", "b-before.csv"), ("tenant.two.history", "a-before.csv")];

#[test]
fn a_history_stands_for_the_head_of_the_trace() {
    let none = quotas("history-none", &[("replay.profile_share", "0")]);
    for partition in ["soft-qos", "{ name = \"hull\", ahead = true }"] {
        let with = |name: &str, history: &[(&str, &str)]| {
            let share = [("partition", partition), ("replay.profile_share", "1")];
            quotas(name, &[&share, history].concat())
        };
        let (own, others) = (with("history-own", &BEFORE), with("history-others", &OTHERS));
        assert_ne!(own, others, "{partition}");
        assert_ne!(own, none, "{partition}");
        // No share of the trace is profiled where all have histories.
        let zero = [("partition", partition), ("replay.profile_share", "0")];
        assert_eq!(quotas("history-zero", &[&zero, &BEFORE[..]].concat()), own);
    }
}

#[test]
fn a_history_that_says_nothing_is_refused_by_its_key() {
    let cases = [
        ("missing.csv", "tenant `one`: found no file"),
        ("empty.csv", "`tenant[1].history`: "),
        ("flush.csv", "`tenant[1].history`: found no reads and writes, expected some"),
    ];
    for (file, expected) in cases {
        let error = answer("history-refused", &[("tenant.one.history", file)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    // A partitioner that takes nothing ahead does not read it.
    let set = [("tenant.one.history", "empty.csv"), ("partition", "equal")];
    assert!(answer("history-unread", &set).is_ok());
}
