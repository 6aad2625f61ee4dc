//! On devices an open loop decides exactly as it does without them, whatever the policy, the write
//! mode, the partition and the devices; and every invariant of machine and replay holds.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_cache::WriteMode;
use cachewright_policy::FutureSlice;
use cachewright_system::event_loop::{Loop, NEVER_NS};
use cachewright_system::machines::{Decision, Fill, Layout, MachineSettings, WriteBack};
use cachewright_system::replay::ReplayInputs;
use cachewright_system::{Cuts, LaneResult, interval_signals};
use cachewright_testkit::machines::{Loaded, Stack, lane, load, random, replay, signal_needs};
use cachewright_types::{Nanos, Seed};
use proptest::prelude::*;

fn untimed(stack: &Stack, loaded: &Loaded, windows: u32) -> LaneResult {
    let recording = &loaded.recording;
    let cuts = Cuts::new(recording, stack.interval_ns, windows);
    let cuts = cuts.with_warmup(recording, stack.warmup_ns);
    let meter = signal_needs(stack, recording.totals.len());
    let meter = meter.meter(recording.totals.len(), stack.interval_ns);
    let signals = meter.map(|meter| interval_signals(recording, &cuts, meter));
    let next_use = recording.next_uses().unwrap();
    let signals = signals.unwrap_or_default();
    let shared = ReplayInputs {
        recording,
        futures: FutureSlice::NextUse(&next_use),
        cuts: &cuts,
        signals: &signals,
    };
    let mut lanes = vec![lane(stack, recording)];
    cachewright_system::replay(&shared, &mut lanes, |_| true).unwrap().remove(0)
}

const POLICIES: [&str; 6] = ["lru", "arc", "larc", "s3-fifo", "smq", "belady-bypass"];
const DEVICES: [(&str, &[(&str, &str)]); 4] = [
    ("hdd-10045-9gb", &[]),
    ("fixed-latency", &[("parallelism", "1"), ("read", "3ms"), ("write", "2ms")]),
    ("ram", &[("channel_mb_per_s", "200")]),
    ("null", &[]),
];

fn stack() -> impl Strategy<Value = Stack> {
    let named = || prop::sample::select(DEVICES.to_vec()).prop_map(|(n, p)| (n, p.to_vec()));
    let choices = (
        prop::sample::select(POLICIES.to_vec()),
        prop::sample::select(vec!["shared", "equal", "static", "hull"]),
        prop::sample::select(WriteMode::ALL.to_vec()),
        prop_oneof![1..6_u32, 6..80_u32],
    );
    let settings = (
        prop_oneof![Just(0), 1..6_u32],
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0), Just(300_000)],
        1..5_u32,
    );
    let time_ns = || prop_oneof![Just(0), 1..60_000_000_u64];
    (choices, named(), named(), settings, [time_ns(), time_ns()]).prop_map(
        |((policy, partition, write, capacity), cache, backing, settings, times_ns)| {
            let [interval_ns, warmup_ns] = times_ns;
            let (spare_blocks, before, off_path, decision_ns, clean_depth) = settings;
            let settings = MachineSettings {
                spare_blocks,
                fill: if before { Fill::BeforeAnswer } else { Fill::AfterAnswer },
                decision: if off_path { Decision::BeforeFill } else { Decision::BeforeRequest },
                decision_time: Nanos(decision_ns),
                clean_depth,
                ..MachineSettings::default()
            };
            Stack {
                policy,
                partition,
                write,
                capacity,
                cache,
                backing,
                settings,
                interval_ns,
                warmup_ns,
                clock: None,
            }
        },
    )
}

/// One open loop, with devices and without.
fn decides_alike(stack: &Stack, seed: u64, blocks: u64, gap_us: u64) -> Result<(), TestCaseError> {
    let mut rng = Seed(seed).rng();
    let texts = [random(&mut rng, 150, blocks, gap_us), random(&mut rng, 150, blocks, gap_us)];
    let loaded = load(&texts, stack, Layout::Auto);
    let plain = untimed(stack, &loaded, 7);
    let timed = replay(stack, &loaded, Loop::Open, 7);
    prop_assert_eq!(&timed.cache.counts, &plain.counts);
    prop_assert_eq!(&timed.cache.quota_blocks, &plain.quota_blocks);
    prop_assert_eq!(&timed.cache.rows, &plain.rows);
    let requests: u64 = timed.tenants.iter().map(|t| t.responses().count()).sum();
    let counted: u64 = plain.counts.iter().map(|counts| counts.requests).sum();
    prop_assert_eq!(requests, counted);
    Ok(())
}

/// Blocks that a smaller quota drives out were once written back at the time of the event before,
/// so that their disk was done in the past.
#[test]
fn what_a_division_drives_out_is_written_back_when_it_is_driven_out() {
    let ram: [(&str, &str); 1] = [("channel_mb_per_s", "200")];
    let stack = Stack {
        policy: "belady-bypass",
        partition: "hull",
        write: WriteMode::WriteBack,
        capacity: 6,
        cache: ("hdd-10045-9gb", Vec::new()),
        backing: ("ram", ram.to_vec()),
        settings: MachineSettings { spare_blocks: 1, ..MachineSettings::default() },
        interval_ns: 39_000_667,
        warmup_ns: 0,
        clock: None,
    };
    decides_alike(&stack, 770_143_551_208_176_066, 29, 8000).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 160,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_open_loop_decides_as_without_devices(
        stack in stack(),
        seed in any::<u64>(),
        blocks in 2..120_u64,
        gap_us in prop::sample::select(vec![10, 500, 8000]),
    ) {
        decides_alike(&stack, seed, blocks, gap_us)?;
    }

    #[test]
    fn cleaning_changes_no_decision_and_every_layout_and_loop_ends(
        stack in stack(),
        seed in any::<u64>(),
        eager in any::<bool>(),
    ) {
        let stack = Stack { warmup_ns: 0, ..stack };
        let mut rng = Seed(seed).rng();
        let texts = [random(&mut rng, 200, 60, 800)];
        let kind = if eager { WriteBack::Eager } else { WriteBack::Watermark };
        let settings = MachineSettings { write_back: kind, ..stack.settings.clone() };
        let cleaning = Stack { write: WriteMode::WriteBack, settings, ..stack.clone() };
        let lazy = Stack { write: WriteMode::WriteBack, ..stack };
        let loaded = load(&texts, &cleaning, Layout::Compact);
        let (clean, plain) =
            (replay(&cleaning, &loaded, Loop::Open, 0), replay(&lazy, &loaded, Loop::Open, 0));
        prop_assert_eq!(clean.cache.counts[0].hits(), plain.cache.counts[0].hits());
        prop_assert_eq!(clean.cache.counts[0].evictions, plain.cache.counts[0].evictions);
        if eager {
            prop_assert_eq!(clean.cache.dirty_blocks, 0);
        }
        let closed = Loop::Closed {
            queue_depth: vec![3],
            think_ns: vec![0],
            recorded: vec![false; 1],
            start_ns: vec![0],
            stop_ns: vec![NEVER_NS],
            noise: vec![None; 1],
            repeat: vec![false; 1],
        };
        let closed = replay(&cleaning, &loaded, closed, 3);
        prop_assert_eq!(closed.total().responses().count(), plain.total().responses().count());
    }
}
