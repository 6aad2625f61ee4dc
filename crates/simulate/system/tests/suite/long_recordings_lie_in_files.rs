//! A recording in scratch files is the same recording, and replays to the same result, however
//! little of it is held in memory.

use cachewright_curve::{CurveSet, Method};
use cachewright_policy::FutureSlice;
use cachewright_system::replay::{ReplayInputs, replay};
use cachewright_system::{CurveLane, Cuts, Lane, LaneResult, Recording, Whose, interval_signals};
use cachewright_testkit::machines::{Stack, lane, recorder, signal_needs, workload};
use cachewright_types::Seed;
use proptest::prelude::*;

/// Bytes of a column in memory.
const HELD_BYTES: usize = 16;

/// Requests of two tenants: a tenant, what is asked, blocks from where and how many.
fn requests() -> impl Strategy<Value = Vec<(usize, u8, u64, u64)>> {
    prop::collection::vec((0..2_usize, 0..6_u8, 0..40_u64, 1..5_u64), 30..300)
}

fn texts(requests: &[(usize, u8, u64, u64)], tenants: usize) -> Vec<String> {
    let mut texts = vec![String::from("7,F,0,0,0\n"); tenants];
    for (at, (tenant, kind, first, blocks)) in requests.iter().enumerate() {
        let op = ['R', 'R', 'R', 'W', 'W', 'T'][usize::from(*kind)];
        let line = format!("7,{op},{},{},{at}\n", first * 4096, blocks * 4096);
        texts[tenant % tenants] += &line;
    }
    texts
}

fn results(stack: &Stack, recording: &Recording) -> Vec<LaneResult> {
    let cuts = Cuts::new(recording, 20_000, 3).with_warmup(recording, 30_000);
    let set = || CurveSet::new(1, &Method::Exact, Seed(5));
    let mut lanes = vec![lane(stack, recording)];
    for whose in [Whose::All, Whose::Tenant(0)] {
        lanes.push(Box::new(CurveLane::new(set(), whose, true)) as Box<dyn Lane>);
    }
    let needs = signal_needs(stack, recording.totals.len());
    let signals = needs.meter(recording.totals.len(), 20_000);
    let signals = signals.map(|meter| interval_signals(recording, &cuts, meter));
    let signals = signals.unwrap_or_default();
    let shared =
        ReplayInputs { recording, futures: FutureSlice::None, cuts: &cuts, signals: &signals };
    replay(&shared, &mut lanes, |_| true).unwrap()
}

proptest! {
    #[test]
    fn a_long_recording_is_the_same_recording(requests in requests(), tenants in 1..3_usize) {
        let texts = texts(&requests, tenants);
        let record = |held_bytes| {
            let recorder = recorder(tenants).with_bytes().holding(held_bytes);
            recorder.record(&mut workload(&texts, &[]), |_| true).unwrap()
        };
        let (held, long) = (record(1 << 20), record(HELD_BYTES));
        prop_assert!(!held.ids.is_mapped());
        prop_assert_eq!(long.ids.is_mapped(), cfg!(target_os = "linux"));
        prop_assert_eq!(&long.ids[..], &held.ids[..]);
        prop_assert_eq!(&long.locals[..], &held.locals[..]);
        prop_assert_eq!(&long.tenants[..], &held.tenants[..]);
        prop_assert_eq!(&long.flags[..], &held.flags[..]);
        prop_assert_eq!(long.times_ns(), held.times_ns());
        prop_assert_eq!(&long.bytes[..], &held.bytes[..]);
        let starts = |recording: &Recording| -> Vec<usize> {
            (0..=recording.times_ns().len()).map(|request| recording.start_of(request)).collect()
        };
        prop_assert_eq!(starts(&long), starts(&held));
        prop_assert_eq!(&long.totals, &held.totals);
        prop_assert_eq!(long.fingerprint(), held.fingerprint());
        for partition in ["shared", "hull"] {
            let stack = Stack { partition, interval_ns: 20_000, ..Stack::plain(16) };
            let (expected, found) = (results(&stack, &held), results(&stack, &long));
            prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}
