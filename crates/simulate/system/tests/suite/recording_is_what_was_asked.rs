//! A recording holds every block of every request, numbered densely, in order of time.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_policy::RequestInfo;
use cachewright_system::machines::Layout;
use cachewright_system::recording::{LAST, TRIM, WRITE};
use cachewright_system::{BlockKind, Cuts, RecordError, Recorder};
use cachewright_testkit::machines::{SHIFT, recorded, recorder, workload};
use proptest::prelude::*;
use std::collections::HashMap;

#[test]
fn two_tenants_worked_by_hand() {
    // a: reads blocks 0 and 1 (half each), writes block 1, trims 0..2 at 30 us (0 and 1 known).
    let a = "1,R,2048,4096,0\n1,W,4096,4096,10\n1,T,0,12288,30\n";
    // b: its block 1 is another block; flushes are counted and leave nothing.
    let b = "1,R,4096,512,0\n1,F,0,0,5\n1,R,4096,512,20\n";
    let recording = recorded(&[a, b]);
    assert_eq!(recording.ids, [0, 1, 2, 1, 2, 0, 1]);
    assert_eq!(recording.locals, [0, 1, 0, 1, 0, 0, 1]);
    assert_eq!(recording.tenants, [0, 0, 1, 0, 1, 0, 0]);
    let flags = [0, LAST, LAST, WRITE | LAST, LAST, TRIM, TRIM | LAST];
    assert_eq!(recording.flags, flags);
    assert_eq!(recording.times_ns(), [0, 0, 10_000, 20_000, 30_000]);
    assert_eq!(recording.accesses_of(0), 0..2);
    assert_eq!(recording.accesses_of(4), 5..7);
    assert_eq!(recording.totals[0].requests, [1, 1, 1, 0]);
    assert_eq!(recording.totals[1].requests, [2, 0, 0, 1]);
    assert_eq!((recording.totals[0].block_accesses, recording.totals[0].distinct_blocks), (3, 2));
    assert_eq!(recording.position_at(10_000), 3, "the write at 10 us");
    // The write of block 1 is followed by its trim: never used again.
    let never = u32::MAX;
    assert_eq!(recording.next_uses().unwrap(), [never, 3, 4, never, never, never, never]);
}

/// Two volumes of one tenant lie one behind the other, the second from a whole MiB on; the other
/// tenant's volume is its own. Trims are not told of.
#[test]
fn requests_are_told_as_devices_would_see_them() {
    let a = "1,R,2048,4096,0\n2,W,512,1024,10\n1,T,0,12288,20\n1,W,4096,1,30\n";
    let b = "1,R,4096,512,40\n";
    let recording = recorder(2).with_requests().record(&mut workload(&[a, b], &[]), |_| true);
    let recording = recording.unwrap();
    assert!(recording.has_requests() && !recorded(&[a, b]).has_requests());
    let told: Vec<_> =
        (0..5).map(|at| recording.request_info(at, recording.times_ns()[at])).collect();
    let asked = |time_us: u64, offset, length, write| {
        Some(RequestInfo { time_ns: time_us * 1000, offset, length, write })
    };
    // The tenant `b` begins with its first request, at 0, which is the second in order.
    let expected = [
        asked(0, 2048, 4096, false),
        asked(0, 4096, 512, false),
        asked(10, (1 << 20) + 512, 1024, true),
        None,
        asked(30, 4096, 1, true),
    ];
    assert_eq!(told, expected);
    assert_ne!(recording.fingerprint(), recorded(&[a, b]).fingerprint());
    // Placed as they are, each tenant on a device of its own, requests say the same.
    let mut workload = workload(&[a, b], &[]);
    let (_, mut placed) = recorder(2).record_requests(&mut workload, |_| true).unwrap();
    let devices = [0..1 << 40, 0..1 << 40];
    placed.place(&recording, 12, Layout::AsIs, &devices, &[0, 1]).unwrap();
    for at in [0, 1, 2, 4] {
        assert_eq!(told[at], Some(RequestInfo::from(&placed.get(at))), "request {at}");
    }
}

#[test]
fn a_bound_on_memory_is_an_error_with_the_bound() {
    let recorder = Recorder::new(1, BlockKind::Split { shift: SHIFT }, true, 10);
    let text = "1,R,0,4096,0\n1,R,0,1073741824,10\n";
    let error = recorder.record(&mut workload(&[text], &[]), |_| true).unwrap_err();
    assert!(matches!(error, RecordError::TooLong { limit: 10 }), "{error}");
    assert!(error.to_string().contains("expected at most"), "{error}");
}

#[test]
fn cuts_fall_between_requests_where_their_time_says() {
    let text = "1,R,0,4096,0\n1,R,0,8192,999\n1,R,0,4096,1000\n1,R,0,4096,2500\n";
    let recording = recorded(&[text]);
    let cuts = Cuts::new(&recording, 1_000_000, 2);
    let found: Vec<_> =
        cuts.cuts.iter().map(|cut| (cut.position, cut.time_ns, cut.interval, cut.window)).collect();
    let half = 1_250_000;
    assert_eq!(
        found,
        [
            (3, 1_000_000, Some(0), None),
            (4, half, None, Some(0)),
            (4, 2_000_000, Some(1), None),
            (5, 2_500_001, None, Some(1)),
        ]
    );
}

proptest! {
    #[test]
    fn agrees_with_splitting_one_request_at_a_time(
        requests in prop::collection::vec(
            (0..3_usize, any::<bool>(), 0..200_000_u64, 1..40_000_u64),
            1..60,
        )
    ) {
        let mut texts = vec![String::new(); 3];
        for (at, (tenant, write, offset, length)) in requests.iter().enumerate() {
            let op = if *write { 'W' } else { 'R' };
            texts[*tenant] += &format!("7,{op},{offset},{length},{at}\n");
        }
        // A tenant's clock starts at its first request: give each one at time 0.
        for text in &mut texts {
            text.insert_str(0, "7,F,0,0,0\n");
        }
        let recording = recorded(&texts);
        let mut numbers = HashMap::new();
        let (mut ids, mut writes) = (Vec::new(), Vec::new());
        for (tenant, write, offset, length) in &requests {
            for block in offset / 4096..=(offset + length - 1) / 4096 {
                let next = numbers.len() as u32;
                ids.push(*numbers.entry((*tenant, block)).or_insert(next));
                writes.push(*write);
            }
        }
        prop_assert_eq!(&recording.ids[..], &ids[..]);
        let recorded_writes: Vec<bool> = recording.flags.iter().map(|f| f & WRITE != 0).collect();
        prop_assert_eq!(recorded_writes, writes);
        let ends = recording.flags.iter().filter(|flags| **flags & LAST != 0).count();
        prop_assert_eq!(ends, requests.len());
    }
}
