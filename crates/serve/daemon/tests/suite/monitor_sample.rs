//! A status with numbers that tell each other apart.

use cachewright_daemon::monitor::{ConnectionBounds, Monitor};
use cachewright_result::document::Written;
use cachewright_result::status::{
    BlockCounts, GoalStatus, LatencyBucket, LiveStatus, LogStatus, LossCount, MissedBlocks,
    PushedOut, RecentRequests, RecordingStatus, RequestStatus, TenantState, TenantStatus,
    TenantTrial, TrialStatus,
};
use cachewright_result::status::{LiveHistory, TenantHistory};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// One tenant of each state; the names hold what must be escaped.
pub fn status(uptime_seconds: f64) -> LiveStatus {
    let states = [TenantState::Cached, TenantState::Bypassed, TenantState::Failed];
    let tenants = states.into_iter().enumerate().map(|(index, state)| tenant(index as u64, state));
    LiveStatus {
        written: Written::here(),
        stack: "stack.toml".to_owned(),
        process: 4242,
        reloads: 6,
        refused_reload: None,
        uptime_seconds,
        recent_seconds: 12.5,
        policy: "s3-fifo".to_owned(),
        partition: "soft-qos-x".to_owned(),
        write: "write-back".to_owned(),
        engine: "io_uring".to_owned(),
        block_bytes: 4096,
        capacity_bytes: 1 << 30,
        dirty_bytes: 8192,
        connections: 3,
        held_bytes: 4100,
        background_bytes_per_second: Some(1 << 26),
        background_bytes: 77_824,
        recordings: Some(RecordingStatus {
            folder: "recordings".to_owned(),
            under_way: None,
            files: 31,
            requests: 70_001,
            dropped_requests: 17,
            removed_files: 7,
            kept_requests: 4100,
            recovered_files: 3,
            abandoned_files: 1,
            errors: 2,
            last_error: None,
        }),
        trial: Some(TrialStatus {
            policy: "sieve".to_owned(),
            partition: "hull".to_owned(),
            was_replaced: false,
            seconds: 9.5,
            sampled_of: 64,
            accesses: 900,
            present_hits: 400,
            trial_hits: 420,
            tenants: vec![TenantTrial {
                name: "a".to_owned(),
                accesses: 900,
                present_hits: 400,
                trial_hits: 420,
                present_quota_bytes: 1 << 29,
                trial_quota_bytes: 1 << 28,
            }],
        }),
        log: LogStatus {
            failed: None,
            segments: 64,
            free_segments: 9,
            written_bytes: 40_960,
            moved_bytes: 4_096,
            dropped_bytes: 12_288,
            cleaned_segments: 5,
            write_amplification: 1.1,
            refused_requests: 2,
            damaged_clean: 4,
            damaged_dirty: 1,
            stranded: 0,
            memory_reads: 6,
        },
        tenants: tenants.collect(),
    }
}

fn tenant(index: u64, state: TenantState) -> TenantStatus {
    let blocks = BlockCounts {
        reads: 100 + index,
        read_hits: 80,
        writes: 50,
        write_hits: 20,
        admissions: 30,
        bypasses: 20 + index,
        cut_off_requests: 4,
        cut_off_bytes: 65_536 + index,
        evictions: 7,
        writebacks: 3,
    };
    let buckets = [(Some(0.000_001_024), 1), (Some(0.000_002_048), 2), (None, 1)];
    let bucket = |(below_seconds, count)| LatencyBucket { below_seconds, count };
    TenantStatus {
        name: format!("tenant \"{index}\"\n"),
        export: format!("export {index}"),
        volume_bytes: 1 << 33,
        state: state.word().to_owned(),
        quota_bytes: (index > 0).then_some(1 << 29),
        cached_bytes: 1 << 28,
        dirty_bytes: (index > 0).then_some(4096),
        goal_hit_ratio: (index == 1).then_some(0.75),
        goal_met: [None, Some(true), Some(false)][index as usize],
        goal: [None, Some(goal("goal_hit_ratio", 0.75)), Some(goal("goal_p99", 20_000.0))]
            [index as usize]
            .clone(),
        caps_exhausted: 11 + index,
        blocks,
        recent: blocks,
        misses: MissedBlocks {
            first_use: 40,
            quota: 8 + index,
            pushed_out: 3,
            pushed_out_by: vec![PushedOut { by: "other".to_owned(), misses: 3, seconds: 0.25 }],
            behind_seconds: 1.5,
            ..MissedBlocks::default()
        },
        recent_misses: MissedBlocks::default(),
        losses: vec![LossCount { reason: "trim".to_owned(), blocks: 6, dirty: 5 }],
        requests: vec![RequestStatus {
            kind: "read".to_owned(),
            count: 4,
            bytes: 16_384,
            errors: 1,
            seconds: 0.25,
            buckets: buckets.map(bucket).into(),
            recent: RecentRequests { count: 4, mean_us: 1.5, ..RecentRequests::default() },
        }],
        curve: None,
    }
}

fn goal(key: &str, promised: f64) -> GoalStatus {
    let is_time = key == "goal_p99";
    GoalStatus {
        key: key.to_owned(),
        unit: if is_time { "us" } else { "ratio" }.to_owned(),
        promised,
        measured: Some(if is_time { 23_000.0 } else { 0.8 }),
        samples: 150,
        met: Some(!is_time),
        bound_by: is_time.then(|| "devices".to_owned()),
        needs_bytes: None,
    }
}

/// A history of one sample.
pub fn history(uptime_seconds: f64) -> LiveHistory {
    let tenant = TenantHistory {
        name: "a".to_owned(),
        hit_ratio: vec![Some(0.5)],
        cached_bytes: vec![Some(4096)],
        read_p99_us: vec![None],
        write_p99_us: vec![Some(23_000.0)],
        goal_met: vec![Some(false)],
    };
    LiveHistory {
        written: Written::here(),
        every_seconds: 10.0,
        uptime_seconds: vec![uptime_seconds],
        dirty_bytes: vec![8192],
        free_segments: vec![9],
        tenants: vec![tenant],
    }
}

/// A monitor and a server that gives statuses until it is told to stop.
pub struct Watched {
    pub address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Watched {
    /// The n-th status says that n seconds have passed.
    pub fn start() -> Watched {
        Watched::start_within(ConnectionBounds::default())
    }

    /// The same with other bounds on connections.
    pub fn start_within(bounds: ConnectionBounds) -> Watched {
        let any = "127.0.0.1:0".parse().unwrap();
        let monitor = Monitor::start_within(any, bounds).unwrap();
        let address = monitor.address().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut given = 0;
            while !stopping.load(Ordering::Relaxed) {
                if monitor.wants_history() {
                    monitor.publish_history(history(10.0));
                }
                if monitor.is_wanted() {
                    given += 1;
                    monitor.publish(status(given as f64));
                }
                std::thread::yield_now();
            }
            given
        });
        Watched { address, stop, thread: Some(thread) }
    }

    /// Stops the monitor; returns how many statuses were asked for.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }

    /// The status line, the headers and the body of an answer.
    pub fn get(&self, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}
