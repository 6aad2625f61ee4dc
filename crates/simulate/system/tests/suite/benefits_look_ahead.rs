//! What an access is worth is counted over all that comes after it, and over nothing else.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, FutureColumn, NEVER, Verdict};
use cachewright_system::Recording;
use cachewright_system::futures::{FutureKind, benefits};
use cachewright_system::recording::{LAST, TRIM, WRITE};
use cachewright_testkit::machines::recorded;
use cachewright_types::{BlockId, Seed};
use proptest::prelude::*;

/// Blocks 0 and 1 are read, another tenant's block once, 0 is written, both trimmed, 1 read twice.
/// Before the trim block 0 has one read and one write: 4 times as long on the backing device, one
/// more access, half a request, 1 of 2 a read make 4 * 1 / 2 * 1.5. What comes behind the trim is
/// worth something only to those behind it: two reads, so 3 * 1 * 2.
#[test]
fn two_tenants_worked_by_hand() {
    let a = "1,R,0,8192,0\n1,W,0,4096,10\n1,T,0,8192,20\n1,R,4096,4096,30\n1,R,4096,4096,50\n";
    let b = "1,R,4096,4096,40\n";
    let recording = recorded(&[a.to_owned(), b.to_owned()]);
    assert_eq!(recording.ids, [0, 1, 2, 0, 0, 1, 1, 1]);
    let ratios = [4.0, 9.0, 9.0, 9.0, 3.0, 9.0];
    assert_eq!(benefits(&recording, &ratios), [3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0, 0.0]);
    assert_eq!(benefits(&recording, &[])[..1], [0.75], "all devices equally fast");
}

#[test]
fn a_policy_is_told_what_it_declares() {
    let recording = recorded(&["1,R,0,4096,0\n1,R,0,4096,9\n".to_owned()]);
    let told = |policy| FutureKind::of_policy(policy).column(&recording, &[]).unwrap();
    assert_eq!(told("belady-bypass"), FutureColumn::NextUse(vec![1, NEVER]));
    assert_eq!(told("benefit-oracle"), FutureColumn::Benefit(vec![2.0, 0.0]));
    assert!([told("lru"), told("no such")].iter().all(|told| *told == FutureColumn::None));
}

/// By looking at all that follows, for each access anew.
fn slowly(recording: &Recording, ratios: &[f32]) -> Vec<f32> {
    let mut requests = Vec::new();
    let mut start = 0;
    for at in 0..recording.len() {
        if recording.flags[at] & LAST != 0 {
            requests.push(start..at + 1);
            start = at + 1;
        }
    }
    let worth = |at: usize| {
        if recording.flags[at] & TRIM != 0 {
            return 0.0;
        }
        let (mut accesses, mut reads) = (0.0, 0.0);
        for later in (at..recording.len()).filter(|l| recording.ids[*l] == recording.ids[at]) {
            if recording.flags[later] & TRIM != 0 {
                break;
            }
            accesses += 1.0;
            reads += if recording.flags[later] & WRITE == 0 { 1.0 } else { 0.0 };
        }
        let request = requests.iter().position(|range| range.contains(&at)).unwrap();
        let (ratio, blocks) = (f64::from(ratios[request]), requests[request].len() as f64);
        (ratio * (accesses - 1.0) / blocks * (1.0 + reads / accesses)) as f32
    };
    (0..recording.len()).map(worth).collect()
}

/// One request: operation, first block, blocks, time in steps.
fn requests() -> impl Strategy<Value = Vec<(u8, u64, u64, u64)>> {
    proptest::collection::vec((0_u8..9, 0_u64..12, 1_u64..5, 0_u64..3), 1..60)
}

fn text(requests: &[(u8, u64, u64, u64)]) -> String {
    let mut time = 0;
    let line = |&(op, block, blocks, step): &(u8, u64, u64, u64)| {
        time += step;
        let op = if op == 8 {
            'T'
        } else if op % 3 == 0 {
            'W'
        } else {
            'R'
        };
        format!("1,{op},{},{},{time}\n", block * 4096, blocks * 4096)
    };
    requests.iter().map(line).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn one_pass_backwards_counts_what_follows(a in requests(), b in requests(), seed: u64) {
        let recording = recorded(&[text(&a), text(&b)]);
        let count = recording.flags.iter().filter(|flags| **flags & LAST != 0).count();
        let mut rng = Seed(seed).rng();
        let ratios: Vec<f32> = (0..count).map(|_| (1.0 + 99.0 * rng.unit()) as f32).collect();
        prop_assert_eq!(benefits(&recording, &ratios), slowly(&recording, &ratios));
    }

    /// Requests of one block, devices equally fast: what is used more often from here on is worth
    /// more, and of what is used as often that which is read more.
    #[test]
    fn more_uses_are_worth_more_and_reads_more_than_writes(a in requests()) {
        let of_one: Vec<_> = a.iter().map(|&(op, block, _, step)| (op, block, 1, step)).collect();
        let recording = recorded(&[text(&of_one)]);
        let worth = benefits(&recording, &[]);
        let ahead = |at: usize| {
            let uses = (at..recording.len()).filter(|l| recording.ids[*l] == recording.ids[at]);
            let uses: Vec<usize> =
                uses.take_while(|later| recording.flags[*later] & TRIM == 0).collect();
            let reads = uses.iter().filter(|at| recording.flags[**at] & WRITE == 0).count();
            (uses.len(), reads)
        };
        for one in 0..recording.len() {
            for other in 0..recording.len() {
                let ((uses, reads), (others, other_reads)) = (ahead(one), ahead(other));
                if uses > 1 && uses == others && reads > other_reads {
                    prop_assert!(worth[one] > worth[other]);
                }
                // A read counts twice a write at most.
                if others > 1 && uses > 2 * others - 1 {
                    prop_assert!(worth[one] > worth[other]);
                }
            }
        }
    }

    /// The oracle of any size: nothing of a stream without repeats comes in; otherwise it hits no
    /// more than the bound, and takes in nothing that it never serves.
    #[test]
    fn the_oracle_takes_in_what_it_serves(a in requests(), capacity in 1_u32..20) {
        let recording = recorded(&[text(&a)]);
        let replay = |policy: &str| {
            let told = FutureKind::of_policy(policy).column(&recording, &[]).unwrap();
            let mut cache = boxed(policy, &[], capacity, Seed(1)).unwrap();
            cache.reserve_ids(recording.distinct as usize);
            let (mut hits, mut admissions) = (0, 0);
            for at in 0..recording.len() {
                let (block, flags) = (BlockId(recording.ids[at]), recording.flags[at]);
                if flags & TRIM != 0 {
                    cache.remove(block);
                    continue;
                }
                let (write, future) = (flags & WRITE != 0, told.as_slice().at(at));
                match cache.access(Access { block, write, future }) {
                    Verdict::Hit => hits += 1,
                    Verdict::Admit { .. } => admissions += 1,
                    Verdict::Bypass => {}
                }
            }
            (hits, admissions)
        };
        let ((hits, admissions), (most, _)) = (replay("benefit-oracle"), replay("belady-bypass"));
        prop_assert!(hits <= most, "{hits} hits, the bound has {most}");
        let mut uses = vec![0; recording.distinct as usize];
        recording.ids.iter().for_each(|id| uses[*id as usize] += 1);
        prop_assert!(admissions == 0 || uses.iter().any(|uses| *uses > 1));
    }
}
