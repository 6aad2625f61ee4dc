//! `policy=all`: what a stack can run, and why the rest is left out.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{Choice, RunOptions, choices, run};
use common::{Folder, pairs, quiet, two_traces};

const STACK: &str = concat!(
    "
[cache]
capacity = \"64 blocks\"
",
    two_tenants!()
);
const SSD: &str = "
[device.ssd]
model = \"icache-table1\"
blocks = 32
block = \"512KiB\"
over_provisioning = 0.28
[machine]
system = \"ssd\"
";

fn folder(name: &str) -> Folder {
    two_traces(name, [(200, 300), (200, 200)])
}

fn of(folder: &Folder, text: &str, set: &[(&str, &str)], key: &str) -> Vec<Choice> {
    let options = RunOptions { set: pairs(set), ..RunOptions::default() };
    choices(text, &folder.path.join("stack.toml"), &options, key).unwrap()
}

fn refused(found: &[Choice]) -> Vec<&str> {
    found.iter().filter(|one| one.refused.is_some()).map(|one| one.name).collect()
}

/// Runs every entry of a registry alone: those that are left out are refused, the others are not.
fn agrees(folder: &Folder, text: &str, set: &[(&str, &str)], key: &str) {
    for one in of(folder, text, set, key) {
        let mut set = pairs(set);
        set.push((key.to_owned(), one.name.to_owned()));
        let options = RunOptions { set, ..RunOptions::default() };
        let ran = run(text, &folder.path.join("stack.toml"), &options, &quiet);
        assert_eq!(ran.is_err(), one.refused.is_some(), "{}: {:?}", one.name, ran.err());
    }
}

#[test]
fn what_is_left_out_is_what_a_run_refuses() {
    let folder = folder("choices-agree");
    let ssd = format!("{STACK}{SSD}");
    let page = [("block", "8KiB")];
    for (text, set) in [(STACK, &[][..]), (STACK, &[("replay.loop", "closed")]), (&ssd, &page)] {
        for key in ["policy", "partition"] {
            agrees(&folder, text, set, key);
        }
    }
}

#[test]
fn the_future_and_models_are_missed_where_there_are_none() {
    let folder = folder("choices-needs");
    assert_eq!(refused(&of(&folder, STACK, &[], "policy")), ["rc-rnn"]);
    let closed = of(&folder, STACK, &[("replay.loop", "closed")], "policy");
    assert_eq!(refused(&closed), ["rc-rnn", "belady", "belady-bypass", "benefit-oracle"]);
    let belady = closed.iter().find(|one| one.name == "belady").unwrap();
    let reason = belady.refused.as_deref().unwrap();
    assert!(reason.contains("needs the future"), "{reason}");
    assert!(!reason.contains("stack.toml"), "{reason}");
    let goal = [("tenant.a.goal_hit_ratio", "0.5")];
    assert!(!refused(&of(&folder, STACK, &goal, "cache.partition")).contains(&"soft-qos"));
}

#[test]
fn an_entry_must_run_with_all_that_is_varied() {
    let folder = folder("choices-vary");
    let vary = vec![("replay.loop".to_owned(), vec!["open".to_owned(), "closed".to_owned()])];
    let options = RunOptions { vary, ..RunOptions::default() };
    let origin = folder.path.join("stack.toml");
    let found = choices(STACK, &origin, &options, "policy").unwrap();
    assert!(refused(&found).contains(&"belady"));
}

#[test]
fn another_key_and_a_wrong_stack_are_refused() {
    let folder = folder("choices-wrong");
    let origin = folder.path.join("stack.toml");
    let wrong = choices(STACK, &origin, &RunOptions::default(), "block").unwrap_err().to_string();
    assert!(wrong.contains("`cache.block`: found `all`"), "{wrong}");
    let set = pairs(&[("capacity", "64")]);
    let options = RunOptions { set, ..RunOptions::default() };
    let wrong = choices(STACK, &origin, &options, "policy").unwrap_err().to_string();
    assert!(wrong.contains("capacity"), "{wrong}");
}
