//! What arrives in a warm-up is carried out and not counted: worked by hand, and as a filter over
//! the single answers of a drive would have it.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use cachewright_cache::{Quotas, WriteMode};
use cachewright_device::ssd::host::Port;
use cachewright_device::{Command, Completion};
use cachewright_policy::FutureSlice;
use cachewright_system::event_loop::{Loop, NEVER_NS, Replay, StepClock, Times, run_ssd};
use cachewright_system::machines::Layout;
use cachewright_system::ssd::{AnyCachedDrive, DataCacheParams, DriveDescription, build};
use cachewright_testkit::drives::{small, value};
use cachewright_testkit::machines::{Loaded, SHIFT, Stack, load, random, replay};
use cachewright_types::measure::{Counts, Responses};
use cachewright_types::{Nanos, Op, Seed, TenantId};
use proptest::prelude::*;

/// A miss of 5 ms, then a hit and a write of 100 us each.
fn three(warmup_ns: u64, pace: Loop) -> Times {
    let stack = Stack { warmup_ns, ..Stack::plain(4) };
    let record = |(op, time): (char, u64)| format!("1,{op},28672,4096,{time}\n");
    let text: String = [('R', 0), ('R', 10_000), ('W', 20_000)].map(record).concat();
    replay(&stack, &load(&[text], &stack, Layout::AsIs), pace, 2)
}

#[test]
fn what_arrives_before_is_left_out_and_time_series_are_whole() {
    let whole = three(0, Loop::Open);
    let found = three(10_000_000, Loop::Open);
    let one = &found.tenants[0];
    assert_eq!((one.reads.count(), one.reads.sum_ns(), one.writes.count()), (1, 100_000, 1));
    assert_eq!((one.first_ns, one.last_ns, one.bytes), (Some(10_000_000), 20_100_000, 8192));
    assert_eq!(one.breakdown.total_ns(), 200_000);
    let counts = found.cache.counts[0];
    assert_eq!((counts.reads, counts.read_hits, counts.write_hits, counts.requests), (1, 1, 1, 2));
    assert_eq!(counts.admissions(), 0, "the block came in before");
    assert_eq!(found.cache.rows, whole.cache.rows);
    assert_eq!(found.rates.bins(0), whole.rates.bins(0));
    assert_eq!(found.end_ns, whole.end_ns);
    assert_eq!(three(10_000_001, Loop::Open).tenants[0].responses().count(), 1);
    assert_eq!(three(1, Loop::Open).tenants[0].reads.count(), 1, "the request at 0 is before");
}

/// In a closed loop the second and third are sent at 5 ms: the block is still in memory.
#[test]
fn in_a_closed_loop_requests_arrive_when_they_are_sent() {
    let pace = Loop::Closed {
        queue_depth: vec![1],
        think_ns: vec![0],
        recorded: vec![false; 1],
        start_ns: vec![0],
        stop_ns: vec![NEVER_NS],
        noise: vec![None; 1],
        repeat: vec![false; 1],
    };
    let counted = |warmup_ns| {
        let found = three(warmup_ns, pace.clone());
        (found.tenants[0].responses().count(), found.cache.counts[0].accesses())
    };
    assert_eq!((counted(0), counted(1), counted(5_000_000)), ((3, 3), (2, 2), (2, 2)));
    assert_eq!(counted(5_000_001), (0, 0), "beyond the last one nothing is left");
}

fn drive(mode: WriteMode, shared: bool, axes: &[(&str, &str)]) -> Box<dyn AnyCachedDrive> {
    let params = small(&[
        ("page", "8KiB"),
        ("blocks", "24"),
        ("block", "128KiB"),
        ("over_provisioning", "0.4"),
    ]);
    assert_eq!(params.page.0, 1 << PAGE);
    let pairs: Vec<_> = axes.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect();
    build(&DriveDescription {
        params: &params,
        ports: &[Port { queue_depth: 2, weight: 1 }, Port { queue_depth: 64, weight: 1 }],
        policy: ("lru", &[]),
        code: None,
        quotas: &if shared { Quotas::Shared(24) } else { Quotas::PerTenant(vec![16, 8]) },
        mode,
        axes: &DataCacheParams::checked(&pairs).unwrap(),
        seed: Seed(1),
    })
    .unwrap()
}

/// log2 of the bytes of the drive's pages.
const PAGE: u32 = 13;

/// Every answer of an open loop, by the plainest loop.
fn answers(mut drive: Box<dyn AnyCachedDrive>, loaded: &Loaded) -> Vec<Completion> {
    let mut done = Vec::new();
    for at in 0..loaded.requests.len() {
        let request = loaded.requests.get(at);
        while let Some(due) = drive.next_due().filter(|due| *due <= request.time) {
            drive.advance(due, &mut done);
        }
        let (op, offset, length, tenant) =
            (request.op, request.offset, request.length, request.tenant);
        drive.submit(request.time, Command { tag: at as u64, op, offset, length, tenant });
    }
    while let Some(due) = drive.next_due() {
        drive.advance(due, &mut done);
    }
    done
}

/// Responses to one kind of a tenant's requests that came at `from_ns` or later.
fn filtered(done: &[Completion], loaded: &Loaded, tenant: u16, op: Op, from_ns: u64) -> Responses {
    let mut responses = Responses::default();
    for one in done.iter().filter(|one| one.submitted >= Nanos(from_ns)) {
        let request = loaded.requests.get(one.tag as usize);
        if (request.tenant, request.op) == (TenantId(tenant), op) {
            responses.record(one.finished.0 - one.submitted.0);
        }
    }
    responses
}

/// Reads, writes and requests of a tenant that came at `from_ns` or later, in pages.
fn asked(loaded: &Loaded, tenant: u16, from_ns: u64) -> [u64; 3] {
    let mut asked = [0; 3];
    for at in 0..loaded.requests.len() {
        let request = loaded.requests.get(at);
        let data = matches!(request.op, Op::Read | Op::Write);
        if data && request.tenant == TenantId(tenant) && request.time >= Nanos(from_ns) {
            let (first, end) = (request.offset.0, request.offset.0 + request.length.0);
            asked[request.op as usize] += end.div_ceil(1 << PAGE) - (first >> PAGE);
            asked[2] += 1;
        }
    }
    asked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_drive_counts_what_a_filter_over_its_answers_would(
        seed in any::<u64>(),
        mode in prop::sample::select(WriteMode::ALL.to_vec()),
        shared in any::<bool>(),
        read_fill in prop::sample::select(vec!["true", "false"]),
        write_back in prop::sample::select(vec!["eager", "on-eviction", "watermark"]),
        gap_us in prop::sample::select(vec![5, 100, 2000]),
        share in prop_oneof![Just(0.0), 0.01..1.2],
    ) {
        let mut rng = Seed(seed).rng();
        let texts = [random(&mut rng, 120, 60, gap_us), random(&mut rng, 120, 60, gap_us)];
        let stack = Stack { backing: ("null", Vec::new()), ..Stack::plain(1) };
        prop_assert!(SHIFT < PAGE);
        let loaded = load(&texts, &stack, Layout::Dense);
        let axes =
            [("read_fill", read_fill), ("write_back", write_back), ("back_pressure", "16KiB")];
        let warmup_ns = (loaded.recording.span_ns() as f64 * share) as u64;
        // One step ends where the warm-up does, so that the steps after it are what is counted.
        let border_ns = if warmup_ns > 0 { warmup_ns } else { u64::MAX };
        let clock = StepClock { interval_ns: border_ns, steps: 1 };
        let times = |warmup_ns| {
            let replay = Replay {
                recording: &loaded.recording,
                requests: &loaded.requests,
                extents: &loaded.placed.tenants,
                futures: FutureSlice::None,
                pace: Loop::Open,
                only: None,
                interval_ns: 0,
                windows: 5,
                warmup_ns,
                throughput_ns: 0,
                clock: Some(clock),
                capacity_blocks: 24,
            };
            let (drive, signals) = (drive(mode, shared, &axes), Default::default());
            run_ssd(&replay, drive, PAGE, None, signals, &mut |_| true).unwrap()
        };
        let (whole, found) = (times(0), times(warmup_ns));
        let done = answers(drive(mode, shared, &axes), &loaded);
        for tenant in 0..2_u16 {
            let (one, counts) = (&found.tenants[usize::from(tenant)], &found.cache.counts);
            for (op, here) in [(Op::Read, &one.reads), (Op::Write, &one.writes)] {
                let wanted = filtered(&done, &loaded, tenant, op, warmup_ns);
                prop_assert_eq!((here.count(), here.sum_ns()), (wanted.count(), wanted.sum_ns()));
                prop_assert_eq!(here.max_ns(), wanted.max_ns());
                prop_assert_eq!(here.quantile_ns(0.9), wanted.quantile_ns(0.9));
            }
            let Counts { reads, writes, requests, .. } = counts[usize::from(tenant)];
            prop_assert_eq!([reads, writes, requests], asked(&loaded, tenant, warmup_ns));
            let all = whole.cache.counts[usize::from(tenant)];
            prop_assert!(counts[usize::from(tenant)].hits() <= all.hits());
        }
        let sums = found.sums.as_ref().unwrap();
        prop_assert_eq!(Some(sums), whole.sums.as_ref());
        let skip = usize::from(warmup_ns > 0);
        let after = |steps: &[u32]| steps.iter().skip(skip).map(|n| u64::from(*n)).sum::<u64>();
        let counted = |of: fn(&Counts) -> u64| found.cache.counts.iter().map(of).sum::<u64>();
        prop_assert_eq!(after(&sums.hits), counted(Counts::hits));
        prop_assert_eq!(after(&sums.requests), counted(|counts| counts.requests));
        let all = found.total().responses();
        prop_assert_eq!(u128::from(sums.response_ns.iter().skip(skip).sum::<u64>()), all.sum_ns());
        prop_assert_eq!(&found.cache.rows, &whole.cache.rows);
        prop_assert_eq!(found.end_ns, whole.end_ns);
    }
}
