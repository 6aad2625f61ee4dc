//! What a machine does with a plan, worked by hand on devices of fixed latency: 100 us for the
//! cache, 5 ms for the backing device.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_system::SignalNeeds;
use cachewright_system::event_loop::{Loop, NEVER_NS, Times};
use cachewright_system::machines::{Decision, Fill, Layout, MachineSettings, ReadAhead, WriteBack};
use cachewright_testkit::machines::{Stack, constant, engine_lane, load, random, replay};
use cachewright_types::{Nanos, Op, Seed};

/// Replays requests of one tenant given as "op block time_us".
fn open(stack: &Stack, requests: &[(char, u64, u64)]) -> Times {
    let record =
        |(op, block, time): &(char, u64, u64)| format!("1,{op},{},4096,{time}\n", block * 4096);
    let text: String = requests.iter().map(record).collect();
    let loaded = load(&[text], stack, Layout::AsIs);
    replay(stack, &loaded, Loop::Open, 0)
}

fn parts(times: &Times) -> Vec<(String, u128)> {
    times.tenants[0].breakdown.parts()
}

fn named(parts: &[(&str, u128)]) -> Vec<(String, u128)> {
    parts.iter().map(|(name, time)| ((*name).to_owned(), *time)).collect()
}

#[test]
fn a_miss_takes_the_backing_device_and_a_hit_the_cache() {
    let times = open(&Stack::plain(4), &[('R', 7, 0), ('R', 7, 10_000), ('W', 7, 20_000)]);
    assert_eq!(times.tenants[0].reads.max_ns(), 5_000_000);
    assert_eq!(times.tenants[0].reads.sum_ns(), 5_100_000);
    assert_eq!(times.tenants[0].writes.sum_ns(), 100_000);
    assert_eq!(
        parts(&times),
        named(&[("cache transfer", 200_000), ("backing transfer", 5_000_000)])
    );
    let [cache, backing] = times.devices.as_slice() else { unreachable!() };
    assert_eq!(cache.used.commands[Op::Write as usize], 2, "the fill and the write");
    assert_eq!((backing.used.commands[Op::Read as usize], backing.used.bytes[0]), (1, 4096));
    assert_eq!(times.end_ns, 20_100_000);
}

#[test]
fn a_block_on_its_way_is_waited_for_and_read_once() {
    let times = open(&Stack::plain(4), &[('R', 1, 0), ('R', 1, 2_000), ('R', 1, 5_050)]);
    assert_eq!(times.devices[1].used.commands[Op::Read as usize], 1);
    // The third comes while the block is being put into the cache: from memory, at once.
    assert_eq!(times.tenants[0].reads.sum_ns(), 5_000_000 + 3_000_000);
    assert_eq!(
        parts(&times),
        named(&[("backing transfer", 5_000_000), ("wait for block", 3_000_000)])
    );
}

#[test]
fn a_write_waits_for_the_filling_of_its_block() {
    let times = open(&Stack::plain(4), &[('R', 1, 0), ('W', 1, 1_000)]);
    assert_eq!(times.tenants[0].writes.sum_ns(), 4_000_000 + 100_000 + 100_000);
}

/// A cache of one block without spare ones: the second write takes the place of a dirty block.
#[test]
fn a_dirty_block_is_written_back_before_its_slot_is_taken() {
    let tight = |spare_blocks| {
        let settings = MachineSettings { spare_blocks, ..MachineSettings::default() };
        let stack = Stack { settings, ..Stack::plain(1) };
        open(&stack, &[('W', 1, 0), ('W', 2, 1_000)])
    };
    let times = tight(0);
    let waited = 100_000 + 5_000_000;
    assert_eq!(times.tenants[0].writes.max_ns(), waited + 100_000);
    assert_eq!(
        parts(&times),
        named(&[("cache transfer", 200_000), ("wait for room", u128::from(waited))])
    );
    assert_eq!(tight(1).tenants[0].writes.max_ns(), 100_000, "a spare slot hides it");
}

#[test]
fn a_block_being_written_back_is_not_read_stale() {
    let stack = Stack::plain(1);
    // Block 1 is dirty; reading block 2 sends it out; reading it again waits for that write.
    let times = open(&stack, &[('W', 1, 0), ('R', 2, 1_000), ('R', 1, 1_050)]);
    let [_, backing] = times.devices.as_slice() else { unreachable!() };
    assert_eq!(backing.used.commands[..2], [2, 1]);
    // Written back from 1,000 to 6,100 us, then read: until 11,100 us.
    assert_eq!(times.tenants[0].reads.max_ns(), 11_100_000 - 1_050_000);
}

#[test]
fn the_answer_may_wait_for_the_filling_and_the_decision() {
    let with = |settings: MachineSettings| {
        let stack = Stack { settings, ..Stack::plain(4) };
        open(&stack, &[('R', 1, 0)]).tenants[0].reads.max_ns()
    };
    let decision_time = Nanos(300_000);
    let plain = MachineSettings::default();
    assert_eq!(with(plain.clone()), 5_000_000);
    assert_eq!(with(MachineSettings { fill: Fill::BeforeAnswer, ..plain.clone() }), 5_100_000);
    assert_eq!(with(MachineSettings { decision_time, ..plain.clone() }), 5_300_000);
    let off_path = MachineSettings { decision_time, decision: Decision::BeforeFill, ..plain };
    assert_eq!(with(off_path), 5_000_000);
}

#[test]
fn blocks_next_to_each_other_are_one_command() {
    let stack = Stack::plain(64);
    let text = "1,R,0,65536,0\n1,R,0,65536,20000\n1,R,2048,8192,40000\n".to_owned();
    let loaded = load(&[text], &stack, Layout::AsIs);
    let times = replay(&stack, &loaded, Loop::Open, 0);
    let [cache, backing] = times.devices.as_slice() else { unreachable!() };
    assert_eq!((backing.used.commands[0], backing.used.bytes[0]), (1, 65_536));
    assert_eq!(
        (cache.used.commands[..2].to_vec(), cache.used.bytes[0]),
        (vec![2, 1], 65_536 + 8192)
    );
}

/// Four neighbours written at once leave for four others: one read and one write bring them home,
/// after 100 us and 5 ms; a block that comes back at once waits for that.
#[test]
fn dirty_neighbours_that_leave_together_are_written_by_one_command() {
    let text = "1,W,0,16384,0\n1,R,65536,16384,1000\n1,R,4096,4096,1001\n".to_owned();
    let stack = Stack::plain(4);
    let times = replay(&stack, &load(&[text], &stack, Layout::AsIs), Loop::Open, 0);
    let [cache, backing] = times.devices.as_slice() else { unreachable!() };
    assert_eq!((backing.used.commands[..2].to_vec(), backing.used.bytes[1]), (vec![2, 1], 16_384));
    assert_eq!((cache.used.commands[0], cache.used.bytes[0]), (1, 16_384));
    assert_eq!(times.tenants[0].reads.max_ns(), 99_000 + 5_000_000 + 5_000_000);
}

#[test]
fn dirty_blocks_are_cleaned_eagerly_or_above_the_watermark() {
    let writes: Vec<_> = (0..100).map(|block| ('W', block, block * 10_000)).collect();
    let dirty = |write_back, clean_depth| {
        let settings = MachineSettings { write_back, clean_depth, ..MachineSettings::default() };
        let times = open(&Stack { settings, ..Stack::plain(100) }, &writes);
        (times.cache.dirty_blocks, times.blocks.cleaned, times.devices[1].used.commands[1])
    };
    assert_eq!(dirty(WriteBack::OnEviction, 1), (100, 0, 0));
    assert_eq!(dirty(WriteBack::Eager, 1), (0, 100, 100));
    let (left, cleaned, written) = dirty(WriteBack::Watermark, 1);
    assert!((10..=20).contains(&left) && cleaned == 100 - left && written == cleaned, "{left}");
}

#[test]
fn read_ahead_makes_sequential_reads_hits() {
    let reads: Vec<_> = (0..200).map(|block| ('R', block, block * 3_000)).collect();
    let times = |read_ahead| {
        let settings = MachineSettings { read_ahead, ..MachineSettings::default() };
        open(&Stack { settings, ..Stack::plain(100) }, &reads)
    };
    let (none, linux) = (times(ReadAhead::None), times(ReadAhead::Linux));
    assert_eq!(none.cache.counts[0].read_hits, 0);
    assert_eq!(linux.cache.counts[0].read_hits, 198, "all but the first two");
    assert!((198..256).contains(&linux.blocks.read_ahead), "within the volume's megabyte");
    assert!(linux.devices[1].used.commands[0] < 20 && linux.devices[1].used.bytes[0] >= 200 * 4096);
    assert!(linux.total().responses().mean_ns() < 0.1 * none.total().responses().mean_ns());
}

/// With one request under way, devices of fixed latency are the closed loop of two constants.
#[test]
fn a_closed_loop_on_fixed_latencies_is_the_one_without_devices() {
    let mut rng = Seed(4).rng();
    let mut text = String::new();
    for time in 0..3000 {
        let u = rng.unit();
        let op = if rng.below(4) == 0 { 'W' } else { 'R' };
        text += &format!("1,{op},{},4096,{time}\n", (u * u * 300.0) as u64 * 4096);
    }
    let stack = Stack::plain(40);
    let loaded = load(&[text], &stack, Layout::AsIs);
    let think_ns = 1_000_000;
    let pace = Loop::Closed {
        queue_depth: vec![1],
        think_ns: vec![think_ns],
        recorded: vec![false; 1],
        start_ns: vec![0],
        stop_ns: vec![NEVER_NS],
        noise: vec![None; 1],
        repeat: vec![false; 1],
    };
    let timed = replay(&stack, &loaded, pace.clone(), 10);
    let lane = engine_lane(&stack, &loaded.recording);
    let needs = SignalNeeds::default();
    let found = constant(&stack, &loaded.recording, lane, pace, 10, 0, needs);
    let (plain, experience) = (found.cache, found.answers);
    assert_eq!(timed.cache.counts, plain.counts);
    let reads_miss = plain.counts[0].reads - plain.counts[0].read_hits;
    let writes_miss = plain.counts[0].writes - plain.counts[0].write_hits;
    // Without devices a write miss takes as long as a read miss; on devices the cache takes it.
    let sum = experience[0].busy_ns - writes_miss * 4_900_000;
    assert!(reads_miss > 100 && writes_miss > 100);
    let found = timed.tenants[0].responses().sum_ns();
    assert!((found as f64 / sum as f64 - 1.0).abs() < 0.01, "{found} for {sum}");
    assert_eq!(timed.tenants[0].responses().count(), experience[0].requests);
}

/// Two tenants of 500 reads; the first stops after 0.4 s, the other begins then.
#[test]
fn a_tenant_that_stops_sends_nothing_more_and_the_windows_go_on() {
    let mut rng = Seed(5).rng();
    let texts = [0, 1].map(|_| random(&mut rng, 500, 300, 900).replace('W', "R"));
    let stack = Stack::plain(40);
    let loaded = load(&texts, &stack, Layout::AsIs);
    let border_ns = 400_000_000;
    let pace = Loop::Closed {
        queue_depth: vec![2, 2],
        think_ns: vec![0, 0],
        recorded: vec![false; 2],
        start_ns: vec![0, border_ns],
        stop_ns: vec![border_ns, NEVER_NS],
        noise: vec![None; 2],
        repeat: vec![false; 2],
    };
    let timed = replay(&stack, &loaded, pace.clone(), 10);
    let found = [0, 1].map(|tenant: usize| timed.tenants[tenant].responses().count());
    let all = |tenant: usize| loaded.recording.totals[tenant].requests[Op::Read as usize];
    assert!(found[0] > 100 && found[0] < all(0) && found[1] == all(1), "{found:?}");
    assert!((border_ns..border_ns + 10_000_000).contains(&timed.tenants[0].last_ns));
    assert_eq!(timed.tenants[1].first_ns, Some(border_ns));
    let lane = engine_lane(&stack, &loaded.recording);
    let needs = SignalNeeds::default();
    let found_plain = constant(&stack, &loaded.recording, lane, pace, 10, 0, needs);
    let (plain, experience) = (found_plain.cache, found_plain.answers);
    assert!(experience[0].requests < all(0) && experience[0].finished_ns < border_ns + 10_000_000);
    assert_eq!(experience[1].requests, found[1]);
    for lane in [&plain, &timed.cache] {
        let ends: Vec<u32> = lane.rows.iter().step_by(3).map(|row| row.window).collect();
        assert_eq!(ends, (0..10).collect::<Vec<_>>());
        for tenant in 0..2 {
            let rows = lane.rows.iter().filter(|row| row.tenant == tenant);
            let counted: u64 = rows.map(|row| row.accesses).sum();
            assert_eq!(counted, lane.counts[tenant as usize].accesses());
        }
    }
}

#[test]
fn the_order_of_tenants_does_not_matter() {
    let mut rng = Seed(9).rng();
    // Own milliseconds for each tenant, so that no two requests come at one time.
    let texts: Vec<String> = (0..2)
        .map(|odd| {
            let shift = |line: &str| {
                let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
                let time: u64 = fields[4].parse().unwrap();
                fields[4] = (2 * time + odd).to_string();
                fields.join(",") + "\n"
            };
            let text = random(&mut rng, 400, 90, 900);
            format!("1,R,0,4096,{odd}\n") + &text.lines().map(shift).collect::<String>()
        })
        .collect();
    let stack = Stack::plain(30);
    let swapped = [texts[1].clone(), texts[0].clone()];
    let one = replay(&stack, &load(&texts, &stack, Layout::AsIs), Loop::Open, 0);
    let two = replay(&stack, &load(&swapped, &stack, Layout::AsIs), Loop::Open, 0);
    for tenant in 0..2 {
        let (a, b) = (&one.tenants[tenant], &two.tenants[1 - tenant]);
        assert_eq!(a.responses().sum_ns(), b.responses().sum_ns());
        assert_eq!(a.breakdown, b.breakdown);
        assert_eq!(one.cache.counts[tenant], two.cache.counts[1 - tenant]);
    }
}

#[test]
fn reads_wait_less_the_larger_the_cache_before_a_disk() {
    let mut rng = Seed(12).rng();
    let text = random(&mut rng, 3000, 2000, 12_000).replace('W', "R");
    let mean = |capacity| {
        let backing = ("hdd-7200-2tb", vec![("segments", "0")]);
        let stack = Stack { backing, ..Stack::plain(capacity) };
        let loaded = load(std::slice::from_ref(&text), &stack, Layout::AsIs);
        replay(&stack, &loaded, Loop::Open, 0).total().reads.mean_ns()
    };
    let means = [1, 100, 400, 1600].map(mean);
    assert!(means.is_sorted_by(|a, b| a > b), "{means:?}");
}
