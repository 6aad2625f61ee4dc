//! What a server takes from the histories of its tenants, and which of them it refuses.

use crate::setup::{Setup, set, unformatted};
use cachewright_daemon::{LivePlan, Server};
use cachewright_types::TenantId;

pub const STACK: &str = "
[cache]
capacity = \"128 blocks\"
partition = \"soft-qos\"
[serve]
devices = [\"one.img\"]
listen = [\"unix:live.sock\"]
segment = \"256KiB\"
[[tenant]]
name = \"a\"
backing = \"a.img\"
history = \"before.csv\"
goal_hit_ratio = 0.9
[[tenant]]
name = \"b\"
backing = \"b.img\"
history = \"before.csv\"
volume = \"2\"
";

/// Reads of 20 blocks of volume 1, over and over, and of ever new blocks of volume 2.
pub fn before() -> String {
    let line = |number: u64| {
        let (volume, block) =
            (1 + number % 2, if number.is_multiple_of(2) { number % 40 } else { number });
        format!("{volume},R,{},4096,{number}\n", block * 4096)
    };
    (0..4000).map(line).collect()
}

fn plan(setup: &Setup, settings: &[(&str, &str)]) -> LivePlan {
    let settings: Vec<_> = settings.iter().map(|(key, value)| set(key, value)).collect();
    LivePlan::read(STACK, &setup.path("stack.toml"), &settings).unwrap()
}

fn setup() -> Setup {
    let setup = unformatted(&[]);
    std::fs::write(setup.path("before.csv"), before()).unwrap();
    setup
}

#[test]
fn first_quotas_come_from_histories() {
    let quotas = |settings: &[(&str, &str)]| {
        let setup = setup();
        let plan = plan(&setup, &[&[("tenant.a.volume", "1")], settings].concat());
        let cache = plan.cache(&plan.ahead().unwrap(), &[]).unwrap();
        [0, 1].map(|tenant| cache.engine().quota(TenantId(tenant)))
    };
    // Half of the cache is known to meet the goal of 0.9, and 1 block to miss it; tenant b gains
    // nothing from more. Curves show that 20 blocks save all that can be saved.
    let [a, b] = quotas(&[]);
    assert!(a > 56 && a + b == 128, "{a}, {b}");
    let hull = ("cache.partition", "{ name = \"hull\", ahead = true, floor_blocks = 4 }");
    assert_eq!(quotas(&[hull]), [20 + 52, 4 + 52]);
    let own = "{ name = \"hull\", ahead = true, own_policy = true, floor_blocks = 4 }";
    let [a, b] = quotas(&[("cache.partition", own)]);
    assert!(a > b && a + b == 128, "{a}, {b}");
}

#[test]
fn a_history_that_says_nothing_is_refused_before_anything_is_written() {
    let setup = setup();
    std::fs::write(setup.path("empty.csv"), "").unwrap();
    std::fs::write(setup.path("flush.csv"), "1,F,0,0,1\n").unwrap();
    std::fs::write(setup.path("words.csv"), "what is no trace\nbut some words\n").unwrap();
    let cases = [
        ("missing.csv", "missing.csv`, expected a trace"),
        ("empty.csv", "empty.csv: "),
        ("flush.csv", "found no reads and writes, expected some"),
        ("words.csv", "the format was not recognised"),
        (
            "before.csv",
            "found a trace of several volumes, expected the one of this tenant in `volu",
        ),
    ];
    for (name, expected) in cases {
        let plan = plan(&setup, &[("tenant.a.history", name)]);
        for error in [plan.ahead().err(), Server::start(&plan, None).err()] {
            let error = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("`tenant[1].history`: "), "{name}: {error}");
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
