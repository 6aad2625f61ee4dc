//! Sequential cut-off: a hand-worked series, a slow obvious model beside the streams, and what a
//! request that goes past the cache does to cached blocks in every write mode.

use cachewright_cache::{
    Cache, Engine, Move, Plan, Quotas, SequentialCutoff, SequentialStreams, WriteMode,
};
use cachewright_policy::lru::Lru;
use cachewright_policy::{FutureSlice, Registered};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Bytes, Nanos, Op, Request, Seed, TenantId};
use proptest::prelude::*;

const BLOCK: u64 = 4096;
const TENANT: TenantId = TenantId(0);

fn streams(bytes: u64, streams: u32) -> SequentialStreams {
    SequentialStreams::new(SequentialCutoff { bytes, streams })
}

#[test]
fn a_stream_is_cut_off_from_the_request_on_with_which_it_is_long_enough() {
    let mut two = streams(12, 2);
    let mut cuts_off = |write, offset, length| two.cuts_off(0, write, offset, length);
    // Stream a: 0..4, 4..8, 8..12, which makes 12 bytes.
    assert!(!cuts_off(false, 0, 4));
    assert!(!cuts_off(false, 4, 4));
    // Stream b: reads elsewhere; and a write where stream a goes on is none of its reads.
    assert!(!cuts_off(false, 100, 8));
    assert!(cuts_off(false, 8, 4), "12 bytes of a");
    assert!(cuts_off(false, 12, 1), "13 bytes of a");
    assert!(cuts_off(false, 108, 4), "12 bytes of b");
    assert!(!cuts_off(false, 14, 1), "a gap of a byte: stream c, and a is forgotten");
    assert!(!cuts_off(false, 13, 1), "stream d ends where c begins, and b is forgotten");
    assert!(!cuts_off(false, 112, 11), "b again, of 11 bytes");
    assert!(cuts_off(false, 200, 12), "a request that is long enough alone");
    assert!(!cuts_off(true, 212, 4), "a write goes on no stream of reads");
    assert!(cuts_off(true, 216, 8), "12 bytes of writes");
    assert!(!two.cuts_off(1, false, 212, 4), "another volume");
    assert!(cuts_off_again(&mut two), "the volume goes on where it was");
}

fn cuts_off_again(streams: &mut SequentialStreams) -> bool {
    streams.cuts_off(0, false, 212, 1)
}

/// All streams of a volume in a list, the one continued last at the end.
#[derive(Default)]
struct SlowStreams {
    /// Whether it writes, where it ends, its bytes.
    list: Vec<(bool, u64, u64)>,
}

impl SlowStreams {
    fn cuts_off(
        &mut self,
        cutoff: SequentialCutoff,
        write: bool,
        offset: u64,
        length: u64,
    ) -> bool {
        let found = self.list.iter().position(|stream| (stream.0, stream.1) == (write, offset));
        let bytes = found.map_or(0, |found| self.list.remove(found).2) + length;
        self.list.retain(|stream| (stream.0, stream.1) != (write, offset + length));
        self.list.push((write, offset + length, bytes));
        if self.list.len() > cutoff.streams as usize {
            self.list.remove(0);
        }
        bytes >= cutoff.bytes
    }
}

proptest! {
    #[test]
    fn streams_agree_with_a_list_of_all_of_them(
        requests in prop::collection::vec((0..2_usize, any::<bool>(), 0..40_u64, 0..9_u64), 1..300),
        bytes in 1..40_u64,
        kept in 1..9_u32,
    ) {
        let cutoff = SequentialCutoff { bytes, streams: kept };
        let mut fast = SequentialStreams::new(cutoff);
        let mut slow = [(); 2].map(|()| SlowStreams::default());
        for (volume, write, offset, length) in requests {
            let expected = slow[volume].cuts_off(cutoff, write, offset, length);
            prop_assert_eq!(fast.cuts_off(volume, write, offset, length), expected);
        }
    }
}

fn request(op: Op, block: u64, blocks: u64) -> Request {
    let (offset, length) = (Bytes(block * BLOCK), Bytes(blocks * BLOCK));
    Request { time: Nanos(0), offset, length, op, tenant: TENANT }
}

fn lru(mode: WriteMode) -> Cache<Lru> {
    let make = |_, capacity| Lru::new(capacity, &NoSettings {}, Seed(0));
    Cache::new(Engine::new(1, &Quotas::Shared(4), mode, make), 12)
}

#[test]
fn a_request_that_goes_past_serves_hits_and_brings_nothing_in() {
    let (mut cache, mut plan) = (lru(WriteMode::WriteBack), Plan::default());
    cache.on(&request(Op::Read, 1, 1), &mut plan);
    cache.on_cut_off(&request(Op::Read, 0, 3), FutureSlice::None, &mut plan);
    let serves = |step: &&Move| matches!(step, Move::Serve(cached) if cached.number == 1);
    assert_eq!(plan.moves.iter().filter(serves).count(), 1, "{:?}", plan.moves);
    let comes_in = |step: &Move| matches!(step, Move::Fetch(_) | Move::Fill(_));
    assert!(!plan.moves.iter().any(comes_in), "{:?}", plan.moves);
    assert_eq!([0, 1, 2].map(|number| cache.contains(TENANT, number)), [false, true, false]);
    let counts = *cache.engine().counts(TENANT);
    assert_eq!((counts.reads, counts.read_hits, counts.bypasses()), (4, 1, 2));
    assert_eq!((counts.requests, counts.request_hits), (2, 0));
    assert_eq!((counts.cut_off_requests, counts.cut_off_bytes), (1, 3 * BLOCK));
    cache.audit().unwrap();
}

#[test]
fn a_write_that_goes_past_leaves_nothing_old_in_the_cache() {
    for mode in WriteMode::ALL.iter().copied() {
        let (mut cache, mut plan) = (lru(mode), Plan::default());
        cache.on(&request(Op::Read, 1, 1), &mut plan);
        cache.on_cut_off(&request(Op::Write, 0, 2), FutureSlice::None, &mut plan);
        let dirty = cache.find(TENANT, 1).map(|found| cache.engine().is_dirty(TENANT, found.id));
        let (expected, through) = match mode {
            WriteMode::WriteBack => (Some(true), false),
            WriteMode::WriteThrough | WriteMode::WriteAround => (Some(false), true),
            WriteMode::ReadOnly => (None, false),
        };
        assert_eq!(dirty, expected, "{mode:?}: {:?}", plan.moves);
        let writes_through =
            |step: &Move| matches!(step, Move::WriteThrough(cached) if cached.number == 1);
        assert_eq!(plan.moves.iter().any(writes_through), through, "{mode:?}: {:?}", plan.moves);
        assert!(!cache.contains(TENANT, 0), "{mode:?}: what was not there stays out");
        let bypasses = |step: &Move| matches!(step, Move::Bypass { .. });
        assert!(plan.moves.iter().any(bypasses), "{mode:?}: {:?}", plan.moves);
        cache.audit().unwrap();
    }
}

#[test]
fn a_flush_and_a_trim_are_those_of_any_request_and_belong_to_no_stream() {
    let mut streams = streams(3 * BLOCK, 128);
    assert!(!streams.cuts_off_next(&request(Op::Read, 0, 2)));
    assert!(!streams.cuts_off_next(&request(Op::Trim, 2, 9)));
    assert!(!streams.cuts_off_next(&request(Op::Flush, 0, 0)));
    assert!(streams.cuts_off_next(&request(Op::Read, 2, 1)));
    let (mut cache, mut plan) = (lru(WriteMode::WriteBack), Plan::default());
    cache.on(&request(Op::Write, 0, 1), &mut plan);
    cache.on_cut_off(&request(Op::Trim, 0, 1), FutureSlice::None, &mut plan);
    assert!(!cache.contains(TENANT, 0));
    assert_eq!(cache.engine().counts(TENANT).cut_off_requests, 0);
}
