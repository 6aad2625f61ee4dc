//! A server that goes on by other stacks.

use crate::monitored::get;
use crate::setup::{BLOCK, Guest, MIB, STACK, engines, formatted, pattern};
use cachewright_daemon::LivePlan;
use cachewright_result::status::LiveStatus;
use cachewright_types::{Bytes, Seed};
use std::fs::File;
use std::path::Path;

/// The stack with a third tenant.
fn with_third() -> String {
    format!("{STACK}\n[[tenant]]\nname = \"c\"\nbacking = \"c.img\"\n")
}

/// The stack without its second tenant.
fn without_second() -> String {
    STACK.split("[[tenant]]\nname = \"b\"").next().unwrap().to_owned()
}

fn make(path: &Path, mib: u64) {
    File::create_new(path).unwrap().set_len(mib * MIB).unwrap();
}

#[test]
fn a_tenant_comes_and_goes_and_its_device_is_free() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        make(&setup.path("c.img"), 8);
        let running = setup.start();
        let mut first = running.connect("a");
        first.write(0, &pattern(1, MIB));
        assert!(running.reload(&with_third()).starts_with("export `c`: 8MiB"));
        assert_eq!(running.next_line(), "cache: 4MiB, divided anew by static");
        let mut third = running.connect("c");
        let content = pattern(3, 2 * MIB);
        third.write(MIB, &content);
        assert_eq!(third.read(MIB, 2 * MIB), content);
        assert!(running.reload(STACK).starts_with("export `c`: closed"));
        assert_eq!(running.next_line(), "cache: 4MiB, divided anew by static");
        assert!(running.next_line().starts_with("export `c`: removed"));
        assert!(third.is_closed(), "its clients are");
        assert_eq!(&setup.content("c.img")[MIB as usize..3 * MIB as usize], &content);
        let plan = LivePlan::read(&with_third(), &setup.path("stack.toml"), &[]).unwrap();
        assert_eq!(plan.volumes.len(), 3);
        File::options().write(true).open(setup.path("c.img")).unwrap().lock().unwrap();
        assert_eq!(first.read(0, MIB), pattern(1, MIB));
        assert!(running.reload(&with_third()).starts_with("export `c`: 8MiB"), "it comes again");
        running.next_line();
        let mut again = running.connect("c");
        assert_eq!(again.read(MIB, 2 * MIB), content);
        again.write(MIB, &pattern(9, BLOCK));
        running.stop();
        let setup = setup.with_stack(&with_third());
        let running = setup.start();
        assert_eq!(running.connect("c").read(MIB, BLOCK), pattern(9, BLOCK));
        assert_eq!(running.connect("a").read(0, MIB), pattern(1, MIB));
        running.stop();
    }
}

#[test]
fn a_volume_grows_and_stays_so_for_clients_that_connect_again() {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut before = running.connect("a");
    File::options().write(true).open(setup.path("a.img")).unwrap().set_len(12 * MIB).unwrap();
    let line = running.reload(STACK);
    assert!(line.starts_with("export `a`: grown from 8MiB to 12MiB"), "{line}");
    let mut after = running.connect("a");
    assert_eq!((before.size, after.size), (8 * MIB, 12 * MIB));
    after.write(11 * MIB, &pattern(2, MIB));
    assert_eq!(before.read(0, BLOCK), vec![0; BLOCK as usize]);
    running.stop();
    let running = setup.start();
    let mut again = running.connect("a");
    assert_eq!((again.size, again.read(11 * MIB, MIB)), (12 * MIB, pattern(2, MIB)));
    running.stop();
}

#[test]
fn caps_and_bounds_change_and_a_stack_without_changes_changes_nothing() {
    let setup = formatted(&[]);
    let running = setup.start();
    assert_eq!(running.reload(STACK), "reloaded; nothing to be told");
    let capped = STACK.replace("name = \"a\"", "name = \"a\"\nmax_iops = 50");
    let bounded = capped.replace("[serve]", "[serve]\ndirty_high = 0.25\nlatency_target = \"5ms\"");
    assert_eq!(running.reload(&bounded), "reloaded; nothing to be told");
    let mut guest = running.connect("a");
    for block in 0..30 {
        guest.write(block * BLOCK, &pattern(4, BLOCK));
    }
    let line = running.reload(&STACK.replace("capacity = \"4MiB\"", "capacity = \"2MiB\""));
    assert_eq!(line, "cache: 2MiB, divided anew by static");
    assert_eq!(guest.read(0, BLOCK), pattern(4, BLOCK));
    running.stop();
}

#[test]
fn a_sequential_cutoff_counts_from_a_reload_on() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let mut guest = running.connect("a");
    // The first stream is in the cache, and the cut-off finds it there.
    guest.write(0, &pattern(1, 16 * BLOCK));
    let cut = STACK.replace("[cache]", "[cache]\nsequential_cutoff = \"32KiB\"");
    assert_eq!(running.reload(&cut), "cache: streams of 32KiB and more go past it from now on");
    assert_eq!(running.reload(&cut), "reloaded; nothing to be told");
    let written: Vec<u8> = (0..16).flat_map(|block| pattern(20 + block, BLOCK)).collect();
    let blocks = written.chunks(BLOCK as usize).enumerate();
    blocks.for_each(|(block, content)| guest.write(block as u64 * BLOCK, content));
    assert_eq!(guest.read(0, 4 * BLOCK), written[..4 * BLOCK as usize]);
    // A stream of 24 blocks that are not cached: what is cut off of it stays out.
    for block in 0..24 {
        guest.write((64 + block) * BLOCK, &pattern(50 + block as u8, BLOCK));
    }
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap();
    let status: LiveStatus = serde_json::from_str(&get(line, "/status")).unwrap();
    let blocks = status.tenants[0].blocks;
    // 16 + 16 + 4 + 24 blocks, of which 9 of the second stream and 17 of the last are cut off.
    assert_eq!((blocks.cut_off_requests, blocks.cut_off_bytes), (26, 26 * BLOCK));
    assert_eq!((blocks.writes, blocks.bypasses), (56, 17));
    assert!(get(line, "/metrics").contains("cachewright_cut_off_requests_total{"));
    let end = running.reload(STACK);
    assert_eq!(end, "cache: no request goes past it for its stream any more");
    assert!(guest.read(0, 16 * BLOCK) == written, "what was cached is as it was written");
    for block in 0..24 {
        let found = guest.read((64 + block) * BLOCK, BLOCK);
        assert!(found == pattern(50 + block as u8, BLOCK), "block {block} of the last stream");
    }
    running.stop();
    let running = setup.start();
    assert!(running.connect("a").read(0, 16 * BLOCK) == written, "it is there after a restart");
    running.stop();
}

/// The stack with another line of `[serve]`.
fn with_serve(line: &str) -> String {
    STACK.replace("[serve]", &format!("[serve]\n{line}"))
}

#[test]
fn another_policy_takes_over_without_a_restart_and_all_content_stays() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let status = || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap();
    let mut guest = running.connect("a");
    let written = pattern(3, 32 * BLOCK);
    guest.write(0, &written);
    let policies = ["lru", "arc", "oc-smq", "s3-fifo"];
    for policy in policies {
        let said = running.reload(&STACK.replace("\"s3-fifo\"", &format!("\"{policy}\"")));
        let size = Bytes(32 * BLOCK);
        assert_eq!(
            said,
            format!("cache: {policy} decides from now on; {size} of {size} stay in the cache")
        );
        assert_eq!(status().policy, policy);
        assert!(guest.read(0, 32 * BLOCK) == written, "{policy}");
        guest.write(5 * BLOCK, &written[5 * BLOCK as usize..6 * BLOCK as usize]);
    }
    let tried = status().trial.unwrap();
    assert_eq!((tried.policy.as_str(), tried.was_replaced), ("oc-smq", true));
    let hits = status().tenants[0].blocks.read_hits;
    assert_eq!(hits, policies.len() as u64 * 32, "no read went behind the cache");
    running.stop();
    let running = setup.start();
    assert!(running.connect("a").read(0, 32 * BLOCK) == written, "it is there after a restart");
    running.stop();
}

/// A hot set and a scan that never hits, of a tenant with a quota of 512 blocks: s3-fifo keeps what
/// is hot, lru half of it.
#[test]
fn the_policy_before_decides_again_if_it_would_hit_more() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let status = || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap();
    assert!(running.reload(&STACK.replace("\"s3-fifo\"", "\"lru\"")).contains("lru decides"));
    // A trial that is asked for meanwhile has to wait.
    let with_trial = with_serve("trial = \"arc\"").replace("\"s3-fifo\"", "\"lru\"");
    running.reload(&with_trial);
    assert!(status().trial.unwrap().was_replaced);
    let mut guest = running.connect("a");
    let mut rng = Seed(4).rng();
    for turn in 0..12_000 {
        let block = if turn % 2 == 0 { rng.below(300) } else { 300 + turn / 2 % 1700 };
        guest.read(block * BLOCK, BLOCK);
    }
    let said = running.next_line();
    assert!(said.starts_with("policy: of ") && said.contains("s3-fifo decides again"), "{said}");
    assert!(running.next_line().starts_with("cache: s3-fifo decides from now on"));
    let found = status();
    assert_eq!(found.policy, "s3-fifo");
    let trial = found.trial.unwrap();
    assert_eq!((trial.policy.as_str(), trial.was_replaced), ("arc", false), "its turn now");
    running.stop();
}

#[test]
fn a_policy_is_tried_beside_the_one_that_decides() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let status = || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap();
    assert_eq!(status().trial, None);
    let said = running.reload(&with_serve("trial = \"lru\""));
    assert_eq!(said, "trial: lru, on a sample of the blocks");
    let mut guest = running.connect("a");
    (0..2).for_each(|_| drop(guest.read(0, 16 * BLOCK)));
    let found = status().trial.unwrap();
    assert_eq!((found.policy.as_str(), found.was_replaced, found.sampled_of), ("lru", false, 1));
    assert_eq!((found.accesses, found.present_hits, found.trial_hits), (32, 16, 16));
    running.reload(STACK);
    assert_eq!(status().trial, None);
    running.stop();
}

/// A tenant reads a set that is larger than its quota and smaller than the cache: quotas stay, and
/// a pool for all is tried beside them.
#[test]
fn a_partitioner_is_tried_beside_the_quotas_that_stay() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let status = || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap();
    let tried = with_serve("trial = \"lru\"\ntrial_partition = \"shared\"");
    let said = running.reload(&tried);
    assert_eq!(said, "trial: lru and shared, on a sample of the blocks");
    let mut guest = running.connect("a");
    for _ in 0..3 {
        (0..800).for_each(|block| drop(guest.read(block * BLOCK, BLOCK)));
    }
    let trial = status().trial.unwrap();
    assert_eq!((trial.policy.as_str(), trial.partition.as_str()), ("lru", "shared"));
    assert_eq!((trial.sampled_of, trial.trial_hits), (1, 1600));
    let [a, b] = &trial.tenants[..] else { panic!("two tenants") };
    assert_eq!((a.name.as_str(), a.accesses, a.trial_hits), ("a", 2400, 1600));
    assert!(a.present_hits < 1600 && a.present_hits == trial.present_hits, "{a:?}");
    assert_eq!((b.accesses, b.present_hits, b.trial_hits), (0, 0, 0));
    for tenant in [a, b] {
        let quotas = (tenant.present_quota_bytes, tenant.trial_quota_bytes);
        assert_eq!(quotas, (2 * MIB, 4 * MIB), "the pool is for both");
    }
    // One that divides anew, under the cache's own policy.
    let said = running.reload(&with_serve("trial_partition = \"auto\""));
    assert_eq!(said, "trial: auto, on a sample of the blocks");
    (0..16).for_each(|block| drop(guest.read(block * BLOCK, BLOCK)));
    let trial = status().trial.unwrap();
    assert_eq!((trial.policy.as_str(), trial.partition.as_str()), ("s3-fifo", "icache-x"));
    assert_eq!(trial.accesses, 16, "of the new one alone");
    running.reload(STACK);
    assert_eq!(status().trial, None);
    running.stop();
}

#[test]
fn what_only_a_restart_can_change_is_refused_by_key_and_nothing_changes() {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut guest = running.connect("second");
    let refusals = [
        (
            STACK.replace("\"s3-fifo\"", "\"none\""),
            "`cache.policy`: found policy `none`, expected one of",
        ),
        (with_serve("trial = \"belady\""), "`serve.trial`: policy `belady` needs"),
        (
            with_serve("trial_partition = \"icache\""),
            "`serve.trial_partition`: found `icache`, expected one that needs no trained models",
        ),
        (
            with_serve("trial_partition = \"hulls\""),
            "`serve.trial_partition`: found partitioner `hulls`",
        ),
        (
            with_serve("trial_partition = \"soft-qos-x\""),
            "`serve.trial_partition`: found `soft-qos-x` without a goal",
        ),
        (STACK.replace("\"static\"", "\"shared\""), "`cache.partition`: found `shared`"),
        (STACK.replace("\"256KiB\"", "\"512KiB\""), "`serve.segment`: found `512KiB`"),
        (STACK.replace("\"a.img\"", "\"b.img\""), "`tenant[1].backing`: found `b.img`"),
        (STACK.replace("\"4MiB\"", "\"1GiB\""), "`cache.capacity`: found `1GiB`"),
        (with_third(), "c.img: "),
        ("[cache".to_owned(), "stack.toml"),
    ];
    for (text, expected) in refusals {
        let line = running.reload(&text);
        let prefix = "not reloaded, and nothing has changed: ";
        assert!(line.starts_with(prefix) && line.contains(expected), "{line}");
    }
    guest.write(0, &pattern(5, BLOCK));
    assert!(running.reload(&without_second()).contains("`second`: closed"));
    let again = STACK.replace("capacity = \"4MiB\"", "capacity = \"3MiB\"");
    assert_eq!(running.next_line(), "cache: 4MiB, divided anew by static");
    assert!(running.next_line().contains("`second`: removed"));
    assert!(running.reload(&again).starts_with("export `second`: 8MiB"));
    assert_eq!(running.next_line(), "cache: 3MiB, divided anew by static");
    assert_eq!(
        Guest::connect(&setup.path("live.sock"), "second").read(0, BLOCK),
        pattern(5, BLOCK)
    );
    running.stop();
}
