//! The oracle with benefit on devices: how long they take reaches it, it hits no less than a policy
//! that does not look ahead and no more than the bound, and threads do not matter.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, quiet, total, two_traces};

const STACK: &str = "
[cache]
capacity = \"1 blocks\"
policy = \"benefit-oracle\"
[device.cache]
model = \"fixed-latency\"
read = \"100us\"
write = \"100us\"
[device.backing]
model = \"fixed-latency\"
[[tenant]]
name = \"a\"
trace = \"a.csv\"
";

/// A block at every millisecond: 1 is read three times, 2 written six times, and each time another
/// block that never comes back follows.
fn in_turns() -> String {
    let mut turns: Vec<(char, u64)> = Vec::new();
    for at in 0..6 {
        if at < 3 {
            turns.push(('R', 1));
        }
        turns.extend([('W', 2), ('R', 10 + at)]);
    }
    let line = |(at, (op, block)): (usize, &(char, u64))| {
        format!("1,{op},{},4096,{}\n", block * 4096, at * 1000)
    };
    turns.iter().enumerate().map(line).collect()
}

/// Equally slow, the first write of 2 is worth 5 * 1 and the first read of 1 only 2 * 2: 2 drives 1
/// out and hits five times. Where the disk reads ten times as slowly as it writes (and ten times as
/// slowly as the cache), 1 is worth 40 at first and 20 after its first hit, more than the 5 of 2
/// then: it stays and hits twice; worth nothing after that, it goes for the 4th write of 2 (the 3rd
/// comes before it is hit the last time), of which two hits follow.
#[test]
fn a_block_that_the_disk_is_slow_at_stays() {
    let folder = Folder::new("timed-oracle-hand");
    folder.with("a.csv", &in_turns());
    let hits = |policy: &str, read: &str, write: &str| {
        let set = [
            ("cache.policy", policy),
            ("device.backing.read", read),
            ("device.backing.write", write),
        ];
        let found = answer_to(&folder, STACK, &set).unwrap();
        let case = &found["cases"][0];
        assert_eq!(total(case, "accesses"), 15);
        [total(case, "read_hits"), total(case, "write_hits")]
    };
    assert_eq!(hits("benefit-oracle", "1ms", "1ms"), [0, 5]);
    assert_eq!(hits("benefit-oracle", "1ms", "100us"), [2, 3]);
    assert_eq!(hits("lru", "1ms", "100us"), [0, 0]);
}

#[test]
fn it_lies_between_lru_and_the_bound_on_any_number_of_threads() {
    let folder = two_traces("timed-oracle", [(3000, 500), (3000, 400)]);
    let text = STACK.replace("model = \"fixed-latency\"\n[[", "model = \"hdd-10045-9gb\"\n[[");
    let text = format!("{text}[[tenant]]\nname = \"b\"\ntrace = \"b.csv\"\n");
    let policies = ["lru", "benefit-oracle", "belady-bypass"].map(str::to_owned).to_vec();
    let answer = |threads| {
        let set = vec![("cache.capacity".to_owned(), "100 blocks".to_owned())];
        let vary = vec![("policy".to_owned(), policies.clone())];
        let options = RunOptions { threads, set, vary, ..RunOptions::default() };
        run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap()
    };
    let found = answer(1);
    let hits = [0, 1, 2].map(|at| total(&found["cases"][at], "hits"));
    assert!(hits.is_sorted() && hits[0] > 1000, "lru, oracle, bound: {hits:?}");
    for threads in [1, 2] {
        assert_eq!(found.to_string(), answer(threads).to_string(), "{threads} threads");
    }
}
