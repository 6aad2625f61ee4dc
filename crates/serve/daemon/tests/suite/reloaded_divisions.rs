//! How a server divides its cache when tenants, goals and histories change while it runs.

use crate::histories::{STACK, before};
use crate::monitored::get;
use crate::setup::{self, BLOCK, MIB, Running, Setup, formatted, pattern, unformatted};
use cachewright_daemon::LivePlan;
use cachewright_daemon::offline::{self, Overwrite};
use cachewright_result::status::LiveStatus;
use cachewright_types::TenantId;
use std::fs::File;

fn status(running: &Running) -> LiveStatus {
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap();
    serde_json::from_str(&get(line, "/status")).unwrap()
}

/// The quotas of the tenants that are served, by name, in blocks.
fn quotas(running: &Running) -> Vec<(String, u64)> {
    let quota = |bytes: Option<u64>| bytes.unwrap() / BLOCK;
    let tenants = status(running).tenants.into_iter();
    tenants.map(|tenant| (tenant.name, quota(tenant.quota_bytes))).collect()
}

/// The quotas with which a server of a stack begins.
fn at_start(setup: &Setup, stack: &str) -> Vec<(String, u64)> {
    let plan = LivePlan::read(stack, &setup.path("stack.toml"), &setup.settings).unwrap();
    let cache = plan.cache(&plan.ahead().unwrap(), &[]).unwrap();
    let quota = |tenant: usize| u64::from(cache.engine().quota(TenantId(tenant as u16)));
    let names = plan.volumes.iter().enumerate();
    names.map(|(tenant, volume)| (volume.name.clone(), quota(tenant))).collect()
}

/// Takes a stack over, and waits until no tenant is on its way out.
fn take_over(running: &Running, stack: &str) {
    let reloads = status(running).reloads;
    running.reload(stack);
    while status(running).reloads == reloads {}
    let tenants = stack.matches("[[tenant]]").count();
    while status(running).tenants.len() > tenants {}
}

#[test]
fn tenants_that_were_removed_take_no_part_in_divisions() {
    let one = setup::STACK.split("[[tenant]]\nname = \"b\"").next().unwrap();
    for partition in ["static", "equal", "hull", "soft-qos-x"] {
        let goal = ("tenant.a.goal_hit_ratio", "0.5");
        let interval = ("replay.interval", "1h");
        let monitor = ("serve.monitor", "127.0.0.1:0");
        let setup = formatted(&[monitor, interval, ("cache.partition", partition), goal]);
        let running = setup.start();
        running.connect("a").write(0, &pattern(1, MIB));
        running.connect("second").write(0, &pattern(2, MIB));
        for _ in 0..3 {
            take_over(&running, one);
            assert_eq!(quotas(&running), [("a".to_owned(), 4 * MIB / BLOCK)], "{partition}");
            take_over(&running, setup::STACK);
            assert_eq!(quotas(&running), at_start(&setup, setup::STACK), "{partition}");
        }
        assert_eq!(running.connect("a").read(0, MIB), pattern(1, MIB));
        assert_eq!(running.connect("second").read(0, MIB), pattern(2, MIB));
        running.stop();
    }
}

/// Each record that a block has left takes room of the log, and a reload takes away more blocks at
/// once than the log has room for.
#[test]
fn a_tenant_with_more_dirty_blocks_than_the_log_has_room_for_records_of_is_removed() {
    let monitor = ("serve.monitor", "127.0.0.1:0");
    let setup = formatted(&[monitor, ("cache.capacity", "14MiB"), ("serve.dirty_high", "1.0")]);
    let running = setup.start();
    let blocks = 8 * MIB / BLOCK;
    let write = |export: &str, seed: u8| {
        let mut guest = running.connect(export);
        (0..blocks).for_each(|block| guest.write(block * BLOCK, &pattern(seed, BLOCK)));
    };
    (1..4).for_each(|seed| write("a", seed));
    write("second", 9);
    running.begin_reload(setup::STACK.split("[[tenant]]\nname = \"b\"").next().unwrap());
    while {
        let found = status(&running).tenants;
        assert_eq!(found[0].state, "cached");
        found.len() > 1
    } {}
    write("a", 4);
    assert_eq!(status(&running).tenants[0].state, "cached");
    assert_eq!(running.connect("a").read(0, BLOCK), pattern(4, BLOCK));
    running.stop();
    let image = std::fs::read(setup.path("b.img")).unwrap();
    assert!(image.chunks(BLOCK as usize).all(|block| block == pattern(9, BLOCK)));
}

/// A server of tenants with histories, by a partitioner.
fn with_histories(partition: &str) -> Setup {
    let interval = ("replay.interval", "1h");
    let monitor = ("serve.monitor", "127.0.0.1:0");
    let of_tenant = [("cache.partition", partition), ("tenant.a.volume", "1")];
    let settings = [&[monitor, interval][..], &of_tenant].concat();
    let setup = unformatted(&settings).with_stack(STACK);
    std::fs::write(setup.path("before.csv"), before()).unwrap();
    offline::format(&setup.plan().unwrap(), Overwrite::default()).unwrap();
    File::create_new(setup.path("c.img")).unwrap().set_len(8 * MIB).unwrap();
    setup
}

/// The stack with a third tenant, which has a history.
fn with_third() -> String {
    let keys = "backing = \"c.img\"\nhistory = \"before.csv\"\nvolume = \"1\"";
    format!("{STACK}\n[[tenant]]\nname = \"c\"\n{keys}\ngoal_hit_ratio = 0.4\n")
}

#[test]
fn histories_and_goals_count_from_a_reload_on() {
    for partition in ["soft-qos", "{ name = \"hull\", ahead = true, floor_blocks = 4 }"] {
        let setup = with_histories(partition);
        let running = setup.start();
        assert_eq!(quotas(&running), at_start(&setup, STACK));
        running.connect("a").write(0, &pattern(1, MIB));
        // One comes: what is known of it counts at once.
        take_over(&running, &with_third());
        assert_eq!(quotas(&running), at_start(&setup, &with_third()));
        assert_ne!(quotas(&running)[..2], at_start(&setup, STACK)[..]);
        // One has another history, which says something else.
        let other = with_third().replace("volume = \"2\"", "volume = \"1\"");
        take_over(&running, &other);
        assert_eq!(quotas(&running), at_start(&setup, &other), "{partition}");
        assert_ne!(quotas(&running), at_start(&setup, &with_third()), "{partition}");
        // One has another goal, by which soft-qos divides, and hull does not.
        let goal = other.replacen("goal_hit_ratio = 0.9", "goal_hit_ratio = 0.2", 1);
        take_over(&running, &goal);
        assert_eq!(quotas(&running), at_start(&setup, &goal), "{partition}");
        let is_as_before = at_start(&setup, &goal) == at_start(&setup, &other);
        assert_eq!(is_as_before, partition != "soft-qos");
        // One goes: the others divide as if it had never been there.
        take_over(&running, STACK);
        assert_eq!(quotas(&running), at_start(&setup, STACK));
        assert_eq!(running.connect("a").read(0, MIB), pattern(1, MIB));
        running.stop();
    }
}

#[test]
fn a_history_that_says_nothing_is_refused_by_a_reload_and_nothing_changes() {
    let setup = with_histories("{ name = \"hull\", ahead = true, floor_blocks = 4 }");
    let running = setup.start();
    let before = quotas(&running);
    let third = with_third();
    let cases = [
        (third.replacen("history = \"before.csv\"\nvolume = \"1\"", "", 1), "`tenant[3].history`"),
        (
            third.replace("\nvolume = \"1\"", ""),
            "`tenant[3].history`: found a trace of several vol",
        ),
        (STACK.replacen("before.csv", "missing.csv", 1), "`tenant[1].history`: found no file"),
    ];
    for (text, expected) in cases {
        let line = running.reload(&text);
        assert!(line.starts_with("not reloaded, and nothing has changed: "), "{line}");
        assert!(line.contains(expected), "{line}");
        assert_eq!(quotas(&running), before);
    }
    // A stack that divides as before needs no history anew.
    std::fs::remove_file(setup.path("before.csv")).unwrap();
    let capped = STACK.replacen("name = \"a\"", "name = \"a\"\nmax_iops = 5000", 1);
    assert_eq!(running.reload(&capped), "reloaded; nothing to be told");
    running.stop();
}

#[test]
fn weights_count_from_a_reload_on() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let weighted = setup::STACK.replacen("name = \"a\"", "name = \"a\"\nweight = 3", 1);
    take_over(&running, &weighted);
    assert_eq!(quotas(&running), [("a".to_owned(), 768), ("b".to_owned(), 256)]);
    running.stop();
}

#[test]
fn of_reloads_that_wait_for_histories_the_last_one_counts() {
    let setup = with_histories("soft-qos");
    // Long enough to be read for some turns of the server.
    std::fs::write(setup.path("before.csv"), before().repeat(50)).unwrap();
    let running = setup.start();
    let last = STACK.replace("volume = \"2\"", "volume = \"1\"");
    let expected = at_start(&setup, &last);
    assert_ne!(expected, at_start(&setup, STACK));
    let reloads = status(&running).reloads;
    running.begin_reload(&with_third());
    running.begin_reload(&last);
    while quotas(&running) != expected {}
    assert!((1..=2).contains(&(status(&running).reloads - reloads)));
    running.begin_reload(&with_third());
    running.stop();
}
