//! A rehearsal of a recording counts what a replay of it counts, for every tenant.
//!
//! Both take the recording of a server that was served on simulated devices. Where the cache is
//! divided at times of the recording, the rehearsed processor takes no time, so that requests are
//! decided at the times at which they were recorded. Devices are fast: a server that waits for its
//! last answers divides the cache once more, where a replay has ended.

use crate::recording::{SIMULATED_NS, recorded, replayed, simulated_files, stack};
use crate::served::{Case, Facts};
use cachewright_cache::WriteMode;
use cachewright_daemon::LivePlan;
use cachewright_daemon::machine::Processor;
use cachewright_daemon::rehearsal::{DeviceChoice, Pace, RehearsalSettings, rehearse};
use cachewright_result::rehearsal::RehearsedTenant;
use cachewright_types::{Nanos, Seed};
use serde_json::{Value, json};
use std::path::Path;

fn settings(recording: &Path, processor: Processor) -> RehearsalSettings {
    let device = |text: &str| DeviceChoice::read("--drive", text).unwrap();
    RehearsalSettings {
        recording: recording.to_owned(),
        drive: device("fixed-latency:read=2us,write=1us"),
        backing: device("ram"),
        shares_backing: false,
        cache_device: None,
        pace: Pace::Recorded { speed: 1.0 },
        until: None,
        kills: Vec::new(),
        processor,
        seed: Seed(1),
        verify: true,
    }
}

/// The counts that both name.
fn assert_alike(case: &Case, rehearsed: &[RehearsedTenant], replayed: &[Value]) {
    assert_eq!(rehearsed.len(), replayed.len());
    for (rehearsed, replayed) in rehearsed.iter().zip(replayed) {
        let pairs = [
            ("read_accesses", rehearsed.read_accesses),
            ("read_hits", rehearsed.read_hits),
            ("write_accesses", rehearsed.write_accesses),
            ("write_hits", rehearsed.write_hits),
            ("requests", rehearsed.requests),
            ("request_hits", rehearsed.request_hits),
            ("admissions", rehearsed.admissions),
            ("evictions", rehearsed.evictions),
            ("writebacks", rehearsed.writebacks),
            ("invalidations", rehearsed.invalidations),
            ("quota_blocks", rehearsed.quota_blocks),
        ];
        for (name, found) in pairs {
            assert_eq!(json!(found), replayed[name], "{case:?}: {name} of {}", rehearsed.name);
        }
    }
}

#[test]
fn a_rehearsal_counts_what_a_replay_counts() {
    let (back, through) = (WriteMode::WriteBack, WriteMode::WriteThrough);
    let cases = [
        ("lru", "shared", back),
        ("s3-fifo", "static", back),
        ("lru", "hull", back),
        ("arc", "soft-qos-x", back),
        ("s3-fifo", "hull", through),
        ("lru", "static", WriteMode::WriteAround),
    ];
    let [request, operation, answer] = [Nanos(0); 3];
    let idle = Processor { request, operation, answer, ..Processor::default() };
    let mut hits = 0;
    for (seed, (policy, partition, mode)) in (9000..).zip(cases) {
        let (facts, interval_ns) = (Facts::default(), SIMULATED_NS);
        let case = Case { policy, mode, partition, facts, interval_ns, requests: 1200, seed };
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("served.parquet");
        let (mut sim, device, volumes) = simulated_files(seed);
        recorded(&mut sim, (device, &volumes), &case, &trace);
        let plan = LivePlan::read(&stack(&case, &trace), Path::new("served.toml"), &[]).unwrap();
        let found = rehearse(&plan, &settings(&trace, idle.clone()), Vec::new()).unwrap();
        assert_alike(&case, &found.tenants, &replayed(&case, &trace, false));
        assert_eq!(found.verified.map(|verified| verified.violations), Some(0), "{case:?}");
        hits += found.tenants.iter().map(|tenant| tenant.read_hits).sum::<u64>();
        if !partition.contains("hull") && !partition.contains("soft-qos") {
            // Quotas that stay do not depend on times.
            let found = rehearse(&plan, &settings(&trace, Processor::default()), Vec::new());
            assert_alike(&case, &found.unwrap().tenants, &replayed(&case, &trace, false));
        }
    }
    assert!(hits > 1000, "{hits}");
}
