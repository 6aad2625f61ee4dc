//! Processes of a trace that send for themselves, and blocks that are still on their way.
//!
//! Closed loops with recorded pauses, worked by hand: a miss takes 5 ms, a hit 100 us. Times of
//! traces are in microseconds.

use cachewright_system::event_loop::{Loop, NEVER_NS, Times};
use cachewright_system::machines::{InFlight, Layout};
use cachewright_testkit::machines::{Stack, load, replay};

fn closed(recorded: bool) -> Loop {
    Loop::Closed {
        queue_depth: vec![1],
        think_ns: vec![0],
        recorded: vec![recorded],
        start_ns: vec![0],
        stop_ns: vec![NEVER_NS],
        noise: vec![None],
        repeat: vec![false],
    }
}

/// Process 7 reads a block twice, 900 us apart; process 8 another one, 100 us apart.
const CALLS: [&str; 4] = [
    "0,7,1,0,4096,R,0\n",
    "200,8,1,4096,4096,R,0\n",
    "300,8,1,4096,4096,R,0\n",
    "1000,7,1,0,4096,R,100\n",
];

fn calls(recorded: bool) -> Times {
    let stack = Stack::plain(4);
    replay(&stack, &load(&[CALLS.concat()], &stack, Layout::AsIs), closed(recorded), 2)
}

#[test]
fn each_process_pauses_as_it_did() {
    // 7 misses until 5 ms and hits from 6 to 6.1 ms. 8 begins 200 us after the first call, misses
    // until 10.2 ms and hits from 10.3 ms on.
    let found = calls(true);
    assert_eq!(found.end_ns, 10_400_000);
    assert_eq!(found.tenants[0].reads.sum_ns(), 10_200_000);
    assert_eq!(found.cache.counts[0].read_hits, 2);
    // One after the other without pauses: two misses, a hit in the memory that fills the cache, and
    // one in the cache.
    assert_eq!(calls(false).end_ns, 10_100_000);
}

#[test]
fn a_block_on_its_way_is_a_hit_or_a_miss() {
    let text = "1,R,28672,4096,0\n1,R,28672,4096,1000\n1,R,28672,4096,9000\n".to_owned();
    let found = |in_flight| {
        let mut stack = Stack::plain(4);
        stack.settings.in_flight = in_flight;
        replay(&stack, &load(std::slice::from_ref(&text), &stack, Layout::AsIs), Loop::Open, 2)
    };
    let (hit, miss) = (found(InFlight::Hit), found(InFlight::Miss));
    let counted = |times: &Times| {
        let counts = times.cache.counts[0];
        (counts.read_hits, counts.request_hits, counts.reads, times.blocks.in_flight[0])
    };
    assert_eq!((counted(&hit), counted(&miss)), ((2, 2, 3, 1), (1, 1, 3, 1)));
    // It waits for the same read either way: 5, 4 and 0.1 ms.
    for times in [&hit, &miss] {
        assert_eq!(times.tenants[0].reads.sum_ns(), 9_100_000);
    }
}
