//! A server that tells its status over HTTP.

use crate::setup::{BLOCK, MIB, formatted, pattern};
use cachewright_result::status::{LiveStatus, RequestStatus, TenantStatus};
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
