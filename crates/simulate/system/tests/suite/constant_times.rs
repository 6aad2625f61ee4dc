//! A closed loop with constant times, worked by hand: a hit takes 100 us, a miss 5 ms.
//! Times of traces are in microseconds.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_system::SignalNeeds;
use cachewright_system::event_loop::{ConstantRun, Loop, NEVER_NS, Noise};
use cachewright_system::machines::Layout;
use cachewright_testkit::machines::{Stack, constant, engine_lane, load};
use cachewright_types::Seed;

/// What a test changes of a closed loop of one tenant with one request under way.
#[derive(Clone, Copy, Default)]
struct Change {
    recorded: bool,
    repeat: bool,
    stop_ns: Option<u64>,
    noise: Option<Noise>,
    warmup_ns: u64,
    windows: u32,
    throughput_ns: u64,
}

fn run(text: &str, change: Change) -> ConstantRun {
    let stack = Stack { warmup_ns: change.warmup_ns, ..Stack::plain(4) };
    let loaded = load(&[text.to_owned()], &stack, Layout::AsIs);
    let pace = Loop::Closed {
        queue_depth: vec![1],
        think_ns: vec![0],
        recorded: vec![change.recorded],
        start_ns: vec![0],
        stop_ns: vec![change.stop_ns.unwrap_or(NEVER_NS)],
        noise: vec![change.noise],
        repeat: vec![change.repeat],
    };
    let lane = engine_lane(&stack, &loaded.recording);
    let Change { windows, throughput_ns, .. } = change;
    let needs = SignalNeeds::default();
    constant(&stack, &loaded.recording, lane, pace, windows, throughput_ns, needs)
}

/// Requests, the sum of their times and the last answer, in microseconds.
fn answers(found: &ConstantRun) -> [u64; 3] {
    let only = found.answers[0];
    [only.requests, only.busy_ns / 1000, only.finished_ns / 1000]
}

/// Two blocks are read over and over until 20 ms: two misses until 10 ms, then 100 hits.
fn laps() -> (&'static str, Change) {
    let change =
        Change { repeat: true, stop_ns: Some(20_000_000), windows: 10, ..Change::default() };
    ("1,R,0,4096,0\n1,R,4096,4096,7\n", change)
}

fn accesses_by_window(found: &ConstantRun) -> Vec<(u64, u64)> {
    let rows = found.cache.rows.iter().filter(|row| row.tenant == 0);
    rows.map(|row| (row.time_ns / 1000, row.accesses)).collect()
}

#[test]
fn a_tenant_repeats_until_it_stops() {
    let (text, change) = laps();
    let found = run(text, change);
    assert_eq!(answers(&found), [102, 20_000, 20_000]);
    assert_eq!((found.cache.counts[0].reads, found.cache.counts[0].read_hits), (102, 100));
    let expected = [1, 0, 1, 0, 0, 20, 20, 20, 20, 20];
    let expected: Vec<_> = (1..=10).map(|n| 2000 * n).zip(expected).collect();
    assert_eq!(accesses_by_window(&found), expected, "windows are of time");
    let once = run(text, Change { repeat: false, ..change });
    assert_eq!(answers(&once), [2, 10_000, 10_000]);
}

#[test]
fn what_is_sent_in_the_warm_up_does_not_count() {
    let (text, change) = laps();
    let (whole, warm) = (run(text, change), run(text, Change { warmup_ns: 10_000_000, ..change }));
    assert_eq!(answers(&warm), [100, 10_000, 20_000]);
    assert_eq!((warm.cache.counts[0].reads, warm.cache.counts[0].read_hits), (100, 100));
    assert_eq!(accesses_by_window(&warm), accesses_by_window(&whole));
    let late = run(text, Change { warmup_ns: 1_000_000_000, ..change });
    assert_eq!((answers(&late), late.cache.counts[0].reads), ([0, 0, 20_000], 0));
}

#[test]
fn answers_count_in_the_window_in_which_they_come() {
    let (text, change) = laps();
    let found = run(text, Change { throughput_ns: 5_000_000, ..change });
    let bins = found.throughput.as_ref().unwrap().bins(0);
    let counted: Vec<_> = bins.iter().map(|bin| (bin.requests, bin.bytes)).collect();
    // The misses end at 5 and 10 ms, the hits from 10.1 to 20 ms.
    assert_eq!(counted, [0, 1, 50, 50, 1].map(|requests| (requests, requests * 4096)));
    assert!(run(text, change).throughput.is_none());
}

/// On from 0 to 1 ms, from 2 to 3 and so on. A miss ends at 5 ms; 29 hits follow from 6, 8 and 10
/// ms on, ten in each period but the last.
#[test]
fn a_noisy_tenant_sends_in_its_on_periods() {
    let text: String = (0..30).map(|time| format!("1,R,0,4096,{time}\n")).collect();
    let (on_ns, off_ns, seed) = (1_000_000, 1_000_000, Seed(1));
    let noise = Some(Noise { on_ns, off_ns, off_depth: 0, exponential: false, seed });
    let found = run(&text, Change { noise, ..Change::default() });
    assert_eq!(answers(&found), [30, 7_900, 10_900]);
    assert_eq!(answers(&run(&text, Change::default())), [30, 7_900, 7_900]);
}

/// Process 7 reads a block twice, 1 ms apart; process 8 another one, 100 us apart, from 200 us
/// after the first call on.
#[test]
fn each_process_pauses_as_it_did() {
    let calls = "0,7,1,0,4096,R,0\n200,8,1,4096,4096,R,0\n300,8,1,4096,4096,R,0\n\
                 1000,7,1,0,4096,R,100\n";
    // 7 misses until 5 ms and hits from 6 to 6.1 ms; 8 misses from 5.2 to 10.2 ms and hits from
    // 10.3 to 10.4 ms.
    let found = run(calls, Change { recorded: true, ..Change::default() });
    assert_eq!(answers(&found), [4, 10_200, 10_400]);
    assert_eq!(answers(&run(calls, Change::default())), [4, 10_200, 10_200]);
}

/// All stop after 0.4 of 2 tenants' requests: windows that no request completes end with the run.
#[test]
fn every_window_ends_where_all_tenants_stop() {
    let text: String = (0..10).map(|block| format!("1,R,{},4096,{block}\n", block << 12)).collect();
    let change = Change { stop_ns: Some(20_000_000), windows: 5, ..Change::default() };
    let found = run(&text, change);
    assert_eq!(answers(&found), [4, 20_000, 20_000]);
    // Two of ten requests make a window; after the stop there are no more of them.
    let expected = [(5000, 2), (15_000, 2), (20_000, 0), (20_000, 0), (20_000, 0)];
    assert_eq!(accesses_by_window(&found), expected);
}
