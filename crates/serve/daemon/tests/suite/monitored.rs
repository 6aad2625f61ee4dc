//! A server that tells its status over HTTP.

use crate::setup::{BLOCK, MIB, STACK, formatted, pattern};
use cachewright_curve::{Curves, StackDistance};
use cachewright_result::status::LiveHistory;
use cachewright_result::status::{LiveStatus, RequestStatus, SampledCurve, TenantStatus};
use cachewright_types::BlockId;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The body of an answer.
pub fn get(line: &str, path: &str) -> String {
    let address = line.strip_prefix("monitor: http://").unwrap().strip_suffix('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn kind<'a>(tenant: &'a TenantStatus, kind: &str) -> &'a RequestStatus {
    tenant.requests.iter().find(|found| found.kind == kind).unwrap()
}

#[test]
fn what_clients_did_is_counted_by_tenant_and_kind() {
    let goal = ("tenant.a.goal_hit_ratio", "0.5");
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0"), goal]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let (mut a, mut b) = (running.connect("a"), running.connect("second"));
    a.write(0, &pattern(1, 4 * BLOCK));
    a.read(0, 2 * BLOCK);
    a.flush();
    a.trim(0, BLOCK);
    assert_eq!(a.failing_read(8 * MIB, BLOCK), cachewright_nbd::Errno::Inval);
    b.read(100, 50);
    let status: LiveStatus = serde_json::from_str(&get(&line, "/status")).unwrap();
    assert_eq!((status.policy.as_str(), status.partition.as_str()), ("s3-fifo", "static"));
    assert_eq!((status.connections, status.block_bytes), (2, BLOCK));
    assert_eq!((status.capacity_bytes, status.dirty_bytes), (4 * MIB, 3 * BLOCK));
    assert_eq!((status.log.failed.as_ref(), status.log.written_bytes), (None, 5 * BLOCK));
    assert!(status.log.free_segments > 0 && status.log.free_segments < status.log.segments);
    let [first, second] = &status.tenants[..] else { panic!("{status:?}") };
    assert_eq!((first.name.as_str(), second.export.as_str()), ("a", "second"));
    assert_eq!((first.state.as_str(), first.volume_bytes), ("cached", 8 * MIB));
    assert_eq!((first.quota_bytes, first.cached_bytes), (Some(2 * MIB), 3 * BLOCK));
    assert_eq!((first.dirty_bytes, second.dirty_bytes), (Some(3 * BLOCK), Some(0)));
    let found = first.blocks;
    assert_eq!((found.writes, found.reads, found.read_hits, found.admissions), (4, 2, 2, 4));
    assert_eq!((first.recent, first.goal_met), (found, Some(false)), "2 of 6 blocks");
    assert_eq!((second.blocks.reads, second.blocks.read_hits, second.goal_met), (1, 0, None));
    let trimmed = first.losses.iter().find(|loss| loss.reason == "trim").unwrap();
    assert_eq!((trimmed.blocks, trimmed.dirty), (1, 1));
    let counts = |kind: &RequestStatus| (kind.count, kind.bytes, kind.errors);
    assert_eq!(counts(kind(first, "write")), (1, 4 * BLOCK, 0));
    assert_eq!(counts(kind(first, "flush")), (1, 0, 0));
    assert_eq!(counts(kind(first, "trim")), (1, BLOCK, 0));
    assert_eq!(counts(kind(second, "read")), (1, 50, 0));
    let read = kind(first, "read");
    assert_eq!(read.count, read.recent.count);
    assert_eq!(read.buckets.iter().map(|bucket| bucket.count).sum::<u64>(), read.count);
    let metrics = get(&line, "/metrics");
    assert!(metrics.contains("cachewright_written_blocks_total{tenant=\"a\"} 4\n"), "{metrics}");
    assert!(get(&line, "/").contains("<title>"));
    running.stop();
    assert!(TcpStream::connect(line[16..].trim_end_matches('/')).is_err(), "it ends with it");
}

fn status(line: &str) -> LiveStatus {
    serde_json::from_str(&get(line, "/status")).unwrap()
}

#[test]
fn goals_of_every_kind_are_judged_and_a_missed_one_shows_as_missed() {
    for (key, missed, met) in [
        ("goal_hit_ratio", "1.0", "0.0"),
        ("goal_latency", "\"200us\"", "\"4900us\""),
        ("goal_response", "\"1ns\"", "\"1h\""),
        ("goal_p99", "\"1ns\"", "\"1h\""),
    ] {
        let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
        let with = |value: &str| {
            let tenant = "name = \"a\"\n";
            assert!(setup.stack.contains(tenant), "{}", setup.stack);
            setup.stack.replace(tenant, &format!("{tenant}{key} = {value}\n"))
        };
        let running = setup.start();
        let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
        assert_eq!(
            (status(&line).tenants[0].goal.clone(), status(&line).tenants[0].goal_met),
            (None, None)
        );
        running.reload(&with(missed));
        let found = status(&line).tenants[0].goal.clone().unwrap();
        assert_eq!((found.key.as_str(), found.measured, found.met), (key, None, None));
        let mut a = running.connect("a");
        a.write(0, &pattern(1, 4 * BLOCK));
        a.read(0, 2 * BLOCK);
        let found = status(&line).tenants[0].clone();
        assert_eq!((found.goal_met, found.goal.unwrap().met), (Some(false), Some(false)), "{key}");
        let metrics = get(&line, "/metrics");
        assert!(metrics.contains("cachewright_goal_met{tenant=\"a\"} 0.0\n"), "{metrics}");
        running.reload(&with(met));
        a.read(0, 2 * BLOCK);
        let found = status(&line).tenants[0].clone();
        let goal = found.goal.unwrap();
        assert_eq!((found.goal_met, goal.met), (Some(true), Some(true)), "{key}");
        assert!(goal.samples > 0 && goal.measured.is_some(), "{goal:?}");
        let metrics = get(&line, "/metrics");
        assert!(metrics.contains("cachewright_goal_met{tenant=\"a\"} 1.0\n"), "{metrics}");
        assert!(status(&line).tenants[1].goal.is_none());
        running.stop();
    }
}

#[test]
fn the_last_hour_names_the_tenants_that_are_served() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let found: LiveHistory = serde_json::from_str(&get(&line, "/history")).unwrap();
    let names: Vec<&str> = found.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    assert_eq!((names, found.every_seconds), (vec!["a", "b"], 10.0));
    let samples = found.uptime_seconds.len();
    assert_eq!((found.dirty_bytes.len(), found.free_segments.len()), (samples, samples));
    assert!(found.tenants.iter().all(|tenant| tenant.hit_ratio.len() == samples));
    running.stop();
}

/// A number below a bound, some much more often than others.
fn skewed(random: &mut u64, bound: u64) -> u64 {
    let mut next = || {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*random >> 33) % bound
    };
    next().min(next()).min(next())
}

#[test]
fn curves_of_a_status_are_those_of_its_requests() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0"), ("serve.curves", "true")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let mut a = running.connect("a");
    let (mut exact, mut seen, mut random) = (StackDistance::new(), Vec::new(), 7);
    for _ in 0..3000 {
        let block = skewed(&mut random, 2000);
        a.read(block * BLOCK, BLOCK);
        let id = seen.iter().position(|known| *known == block).unwrap_or(seen.len());
        if id == seen.len() {
            seen.push(block);
        }
        exact.access(BlockId(id as u32), false);
    }
    let exact = Curves::exact(&exact.take_histogram()).all;
    let status: LiveStatus = serde_json::from_str(&get(&line, "/status")).unwrap();
    let curves: Vec<_> = status.tenants.into_iter().filter_map(|tenant| tenant.curve).collect();
    let [first, second] = &curves[..] else { panic!("{curves:?}") };
    assert_eq!((first.policy.as_str(), first.accesses, first.trusted_bytes), ("lru", 3000, 0));
    assert!(first.points.len() > 50 && first.points.len() <= 128, "{}", first.points.len());
    for point in &first.points {
        let size = (point.bytes / BLOCK) as u32;
        assert!((point.miss_ratio - exact.miss_ratio(size)).abs() < 0.002, "{size}: {point:?}");
        assert_eq!((point.low, point.high), (point.miss_ratio, point.miss_ratio));
    }
    assert!(first.points.last().unwrap().miss_ratio <= seen.len() as f64 / 3000.0 + 0.002);
    assert_eq!((second.accesses, second.points.len()), (0, 0));
    running.stop();
}

#[test]
fn curves_begin_and_end_by_a_reload_and_follow_divisions_without_being_asked_for() {
    let setup = formatted(&[("serve.monitor", "127.0.0.1:0")]);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let asked = || -> Vec<Option<SampledCurve>> {
        let status: LiveStatus = serde_json::from_str(&get(&line, "/status")).unwrap();
        status.tenants.into_iter().map(|tenant| tenant.curve).collect()
    };
    let mut a = running.connect("a");
    assert_eq!(asked(), [None, None]);
    let with = setup.stack.replace("[serve]", "[serve]\ncurves = true");
    assert!(running.reload(&with).contains("curves: of requests from now on"));
    a.read(0, 2 * BLOCK);
    assert_eq!(asked()[0].as_ref().map(|curve| curve.accesses), Some(2));
    assert!(running.reload(&setup.stack).contains("reloaded"));
    assert_eq!(asked(), [None, None]);
    let divided = setup.stack.replace(
        "partition = \"static\"",
        "partition = { name = \"hull\", ahead = false }\n[replay]\ninterval = \"10ms\"",
    );
    running.reload(&divided);
    let mut asked_for = 0;
    while asked_for == 0 {
        a.read(0, BLOCK);
        asked_for = asked()[0].as_ref().map_or(0, |curve| curve.accesses);
    }
    running.stop();
}

#[test]
fn addresses_that_others_reach_or_hold_are_refused_before_anything_is_written() {
    let setup = formatted(&[]);
    let before = setup.content("one.img");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (address, expected) in [
        ("0.0.0.0:9464", "expected a port, or a loopback address"),
        ("example.org:80", "expected a port, or a loopback address"),
        (taken.as_str(), "cannot listen at"),
    ] {
        let plan = setup.plan_with("serve.monitor", address).unwrap();
        let error = cachewright_daemon::Server::start(&plan, None).err().unwrap();
        assert_eq!(error.status(), 2, "{error}");
        assert!(error.to_string().contains("`serve.monitor`"), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(setup.content("one.img"), before);
}

#[test]
fn blocks_that_are_read_often_are_read_from_memory_until_there_is_none() {
    let stack = STACK.replace("[serve]", "[serve]\nmonitor = \"127.0.0.1:0\"\nmemory = \"4MiB\"");
    let setup = formatted(&[]).with_stack(&stack);
    let running = setup.start();
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let memory_reads =
        || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap().log.memory_reads;
    let mut client = running.connect("a");
    let (older, newer) = (pattern(1, 4 * BLOCK), pattern(2, BLOCK));
    client.write(0, &older);
    client.flush();
    for found in [0, 4, 8] {
        assert!(client.read(0, 4 * BLOCK) == older);
        assert_eq!(memory_reads(), found, "the first read brings them there");
    }
    client.write(BLOCK, &newer);
    assert!(client.read(BLOCK, BLOCK) == newer);
    assert_eq!(memory_reads(), 9, "a write changes them there");
    let without = stack.replace("memory = \"4MiB\"", "curves = true");
    assert_eq!(running.reload(&without), "curves: of requests from now on");
    assert!(client.read(BLOCK, BLOCK) == newer);
    assert_eq!(memory_reads(), 9);
    running.stop();
}
