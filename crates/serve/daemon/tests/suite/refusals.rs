//! What a stack, a device or an address must be like: one sentence each, and nothing written.

use crate::setup::{MIB, STACK, Setup, formatted, set, unformatted};
use cachewright_daemon::{LiveError, LivePlan, Server, offline};
use cachewright_types::{Nanos, TenantId};

/// The sentence with which a server refuses to start.
fn refused(plan: Result<LivePlan, LiveError>) -> String {
    let started = plan.and_then(|plan| Server::start(&plan, None).map(drop));
    let error = started.expect_err("it is refused");
    assert_eq!(error.status(), 2, "{error}");
    error.to_string()
}

fn contents(setup: &Setup) -> Vec<Vec<u8>> {
    ["one.img", "two.img", "a.img", "b.img"].map(|name| setup.content(name)).into()
}

#[test]
fn a_key_that_cannot_be_honoured_is_named() {
    let setup = unformatted(&[]);
    let cases = [
        ("cache.policy", "belady", "does not need the future"),
        ("cache.policy", "python:x.py:X", "a policy of the registry"),
        ("cache.partition", "icache", "a file in `tenant[1].model`"),
        ("cache.partition", "opt", "does not need the future"),
        ("cache.partition", "justitia", "needs no channels of a drive"),
        ("cache.layout", "on-demand", "`striped`, `dedicated` or `flashblox`"),
        ("cache.trim", "ignore", "`drop`"),
        ("cache.block", "2KiB", "at least 4KiB"),
        ("cache.capacity", "10%wss", "the working set is not known"),
        ("replay.blocks", "unit", "`split`"),
        ("flash.separation", "shiro", "a separation that a log can follow"),
    ];
    for (key, value, expected) in cases {
        let sentence = refused(setup.plan_with(key, value));
        let named = sentence.contains(&format!("`{key}`: found `{value}`"));
        assert!(named && sentence.contains(expected), "{sentence}");
    }
    // It divides by response times, which a server measures.
    assert!(setup.plan_with("cache.partition", "icache-x").is_ok());
    let chosen = |plan: Result<LivePlan, LiveError>| {
        plan.unwrap().divisions_head(Nanos(0)).unwrap().partition
    };
    assert_eq!(chosen(setup.plan_with("cache.partition", "auto")), "icache-x");
    let goal = unformatted(&[("tenant.a.goal_hit_ratio", "0.5")]);
    assert_eq!(chosen(goal.plan_with("cache.partition", "auto")), "soft-qos-x");
    let with_goal = |partition: &str| {
        let setup = unformatted(&[("tenant.a.goal_hit_ratio", "0.5")]);
        refused(setup.plan_with("cache.partition", partition))
    };
    let sentence = with_goal("soft-qos");
    assert!(sentence.contains("`replay.profile_share`: found `0.1`, expected `0`"), "{sentence}");
    let sentence = with_goal("{ name = \"hull\", ahead = true }");
    assert!(
        sentence.contains("expected `ahead = false`, or a trace in `tenant[1].his"),
        "{sentence}"
    );
    let sentence = refused(setup.plan_with("cache.partition", "soft-qos-x"));
    assert!(sentence.contains("expected `goal_hit_ratio` or `goal_latency`"), "{sentence}");
    let own = unformatted(&[("cache.policy", "reca")]);
    let sentence =
        refused(own.plan_with("cache.partition", "{ name = \"hull\", own_policy = true }"));
    assert!(sentence.contains("needs more than accesses to decide"), "{sentence}");
    let sentence =
        refused(setup.plan_with("cache.policy", "{ name = \"smq\", region_blocks = 8 }"));
    assert!(sentence.contains("expected `region_blocks = 1`"), "{sentence}");
}

#[test]
fn files_of_tls_are_checked_before_anything_is_written() {
    let setup = formatted(&[]);
    let before = contents(&setup);
    let refused_with = |pairs: &[(&str, &str)]| {
        let more = pairs.iter().map(|(key, value)| set(key, value));
        let settings: Vec<_> = [set("serve.tls", "required")].into_iter().chain(more).collect();
        refused(LivePlan::read(STACK, &setup.path("stack.toml"), &settings))
    };
    std::fs::write(setup.path("some.pem"), "some text").unwrap();
    let sentence = refused_with(&[]);
    assert!(sentence.contains("found no `serve.tls_certificate`"), "{sentence}");
    let sentence = refused_with(&[("serve.tls_certificate", "some.pem")]);
    assert!(sentence.contains("found no `serve.tls_key`"), "{sentence}");
    let both = [("serve.tls_certificate", "some.pem"), ("serve.tls_key", "missing.pem")];
    let sentence = refused_with(&both);
    assert!(sentence.contains("`serve.tls_key`: found that") && sentence.contains("missing.pem"));
    let both = [("serve.tls_certificate", "some.pem"), ("serve.tls_key", "some.pem")];
    let sentence = refused_with(&both);
    assert!(sentence.contains("`serve.tls_certificate`: in `"), "{sentence}");
    assert!(sentence.contains("found no certificate"), "{sentence}");
    let sentence = refused_with(&[("serve.tls", "off"), both[0]]);
    assert!(sentence.contains("expected `serve.tls` to be `available`"), "{sentence}");
    let sentence = refused_with(&[both[0], both[1], ("tenant.b.clients", "[\"x\"]")]);
    assert!(sentence.contains("`tenant[2].clients`: found `x`"), "{sentence}");
    assert_eq!(contents(&setup), before);
}

#[test]
fn simulated_devices_and_traces_are_left_alone() {
    let setup = unformatted(&[]);
    let with = |key: &str, value: &str| setup.plan_with(key, value).map(|plan| plan.volumes.len());
    assert_eq!(with("device", "{ cache = { model = \"whatever\" } }"), Ok(2));
    assert_eq!(with("tenant.a.trace", "missing.csv"), Ok(2));
    assert_eq!(with("flash.over_provisioning", "20%"), Ok(2));
}

#[test]
fn a_separation_that_a_log_can_follow_is_taken() {
    let setup = unformatted(&[]);
    let with = |key: &str, value: &str| setup.plan_with(key, value).map(|plan| plan.cleaning());
    let cleaning = with("flash.separation", "{ name = \"dac\", levels = 3 }").unwrap();
    assert_eq!(cleaning.schemes.streams().map(|streams| streams.all), Ok(3));
    assert_eq!(cleaning.schemes.reclaim.name, "cost-benefit", "the default of the table");
    let cleaning = with("serve.drop_cold", "true").unwrap();
    assert_eq!((cleaning.schemes.separation.name.as_str(), cleaning.drops_cold), ("2r", true));
    let sentence = with("flash.separation", "{ name = \"sepbit\", meta_share = 0.01 }");
    assert!(sentence.unwrap_err().to_string().contains("needs pages of metadata in flash"));
}

#[test]
fn quotas_are_those_of_the_partitioner() {
    let setup = unformatted(&[("cache.capacity", "1024 blocks"), ("tenant.b.weight", "3")]);
    let quotas = |partition: &str| {
        let cache = setup.plan_with("cache.partition", partition).unwrap().cache(&[], &[]).unwrap();
        [0, 1].map(|tenant| cache.engine().quota(TenantId(tenant)))
    };
    assert_eq!(quotas("static"), [256, 768]);
    assert_eq!(quotas("equal"), [512, 512]);
    assert_eq!(quotas("shared"), [1024, 1024]);
}

#[test]
fn what_lacks_is_named() {
    let setup = unformatted(&[]);
    let sentence = refused(setup.plan_with("serve.devices", "[]"));
    assert!(sentence.contains("found no `serve.devices`"), "{sentence}");
    let sentence = refused(setup.plan_with("serve.listen", "[]"));
    assert!(sentence.contains("found no `serve.listen`"), "{sentence}");
    let sentence = refused(setup.plan_with("serve.listen", "[\"live.sock\"]"));
    assert!(sentence.contains("`serve.listen[1]`: found `live.sock`"), "{sentence}");
    let text = "[cache]\ncapacity = \"1MiB\"\n[serve]\ndevices = [\"x\"]\n[[tenant]]\n\
                trace = \"x.csv\"\n";
    let sentence = refused(LivePlan::read(text, &setup.path("stack.toml"), &[]));
    assert!(sentence.contains("found no `tenant[1].backing`"), "{sentence}");
    let sentence = refused(setup.plan_with("tenant.a.export", "second"));
    assert!(sentence.contains("found `second` again"), "{sentence}");
}

#[test]
fn devices_are_compared_with_the_stack_before_anything_is_written() {
    let setup = unformatted(&[]);
    let sentence = refused(setup.plan());
    assert!(sentence.contains("one.img: found no superblock"), "{sentence}");
    assert!(sentence.contains("`cachewright live format`"), "{sentence}");
    let setup = formatted(&[]);
    std::fs::write(setup.path("blank.img"), vec![0; 16 * MIB as usize]).unwrap();
    let before = contents(&setup);
    let cases = [
        ("cache.capacity", "1GiB", "`cache.capacity`: found `1GiB`, expected at most `"),
        ("cache.block", "8KiB", "expected `4KiB`, with which the devices were formatted"),
        ("serve.segment", "1MiB", "expected `256KiB`, with which the devices were formatted"),
        ("serve.devices", "[\"one.img\"]", "expected all 2 devices of the set"),
        ("serve.devices", "[\"one.img\", \"blank.img\"]", "blank.img: found no superblock"),
        ("serve.devices", "[\"one.img\", \"one.img\"]", "found it in use"),
        ("serve.devices", "[\"one.img\", \"none.img\"]", "none.img: found"),
        ("tenant.b.backing", "a.img", "found it in use"),
    ];
    for (key, value, expected) in cases {
        let sentence = refused(setup.plan_with(key, value));
        assert!(sentence.contains(expected), "{sentence}");
    }
    let other = formatted(&[]);
    std::fs::copy(other.path("two.img"), setup.path("other.img")).unwrap();
    let sentence = refused(setup.plan_with("serve.devices", "[\"one.img\", \"other.img\"]"));
    assert!(sentence.contains("other.img: found device 1 of set"), "{sentence}");
    assert_eq!(contents(&setup), before, "nothing was written");
}

#[test]
fn another_version_and_another_size_are_refused() {
    let setup = formatted(&[]);
    for offset in [0, MIB] {
        setup.damage("two.img", offset + 12, &9_u32.to_le_bytes());
    }
    let sentence = refused(setup.plan());
    assert!(sentence.contains("two.img: found format version 9, expected"), "{sentence}");
    let setup = formatted(&[]);
    std::fs::File::options()
        .write(true)
        .open(setup.path("b.img"))
        .unwrap()
        .set_len(4 * MIB)
        .unwrap();
    let sentence = refused(setup.plan());
    assert!(sentence.contains("`tenant[2].backing`: found `4MiB`"), "{sentence}");
    assert!(sentence.contains("expected at least `8MiB`"), "{sentence}");
    std::fs::File::options().write(true).open(setup.path("b.img")).unwrap().set_len(0).unwrap();
    let sentence = refused(setup.plan());
    assert!(sentence.contains("b.img`, expected at least 1"), "{sentence}");
}

#[test]
fn a_device_or_a_socket_in_use_is_refused_and_a_stale_socket_is_not() {
    let setup = formatted(&[]);
    drop(std::os::unix::net::UnixListener::bind(setup.path("live.sock")).unwrap());
    assert!(setup.path("live.sock").exists(), "it is stale");
    let running = setup.start();
    assert!(refused(setup.plan()).contains("one.img: found it in use"));
    let error = offline::check(&setup.plan().unwrap()).unwrap_err().to_string();
    assert!(error.contains("one.img: found it in use"), "{error}");
    running.stop();
    let other = formatted(&[]);
    let socket = setup.path("live.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let listen = format!("[\"unix:{}\"]", socket.display());
    let sentence = refused(other.plan_with("serve.listen", &listen));
    assert!(sentence.contains("found it in use by a process that listens there"), "{sentence}");
    drop(listener);
}
