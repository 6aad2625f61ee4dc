//! Traps: seeded traces on which schemes that adapt fall behind simple ones.
//!
//! A trap is aimed at a cache, or a drive, of so many blocks of 4 KiB. It is made of what every
//! description may have: loops, uniform sets, mixes and phases. The seed fixes the order of blocks,
//! and how much of the first phase is over at the start, so that phases do not keep step with a
//! scheme's memory. A tenant sends a request of one block per millisecond. Kinds, and the schemes
//! they are aimed at: docs/synth.md and lab/traps.md. The idea is that of the traces which
//! Caffeine's adaptive window must pass ("climber gate", repository ben-manes/caffeine); the kinds
//! are our own.

use super::address::{
    AddressRegion, AddressShape, Length, PartSpec, PatternSpec, PhaseSpec, PhasesSpec,
};
use super::spec::{Mistake, SynthTenantSpec};
use super::{ArrivalSpec, Bursts};
use cachewright_types::Seed;
use std::ops::RangeInclusive;

const BLOCK_BYTES: u64 = 4096;
const REQUEST_NS: u64 = 1_000_000;
/// Blocks that come once lie from here on, beyond all others.
const ONCE_FROM_BLOCK: u64 = 1 << 40;
/// Sets that take turns in `hand-over`.
const SETS: u64 = 8;
/// Parts of a drive that take turns in `reader-as-writer`.
const PARTS: u64 = 32;
const CACHE_BLOCKS: RangeInclusive<u64> = PARTS..=1 << 36;
const REQUESTS: RangeInclusive<u64> = 1..=1 << 36;

/// A kind of trap.
struct TrapKind {
    name: &'static str,
    /// Requests of a period where none is given, by the blocks of the cache; nothing where the kind
    /// has no period.
    period: Option<fn(u64) -> u64>,
    tenants: fn(&TrapSpec, Seed) -> Vec<SynthTenantSpec>,
}

const KINDS: [TrapKind; 10] = [
    TrapKind { name: "loop-above", period: None, tenants: loop_above },
    TrapKind { name: "scan-between-bursts", period: None, tenants: scan_between_bursts },
    TrapKind { name: "hand-over", period: None, tenants: hand_over },
    TrapKind { name: "one-hit-flood", period: None, tenants: one_hit_flood },
    TrapKind { name: "alternation", period: Some(|cache| cache), tenants: alternation },
    TrapKind { name: "see-saw", period: Some(|cache| 100 * cache), tenants: see_saw },
    TrapKind { name: "swap", period: Some(|_| 2000), tenants: swap },
    TrapKind { name: "idle-return", period: Some(|_| 2000), tenants: idle_return },
    TrapKind {
        name: "writer-as-reader",
        period: Some(|cache| 4 * cache),
        tenants: writer_as_reader,
    },
    TrapKind { name: "reader-as-writer", period: None, tenants: reader_as_writer },
];

/// A checked trap.
pub(super) struct TrapSpec {
    kind: &'static TrapKind,
    cache: u64,
    /// Requests of each tenant that is never idle.
    count: u64,
    /// Requests of a period, 0 where the kind has none.
    period: u64,
}

impl TrapSpec {
    /// The trap of this name, aimed at a cache of so many bytes.
    pub(super) fn new(
        name: &str,
        cache_bytes: u64,
        count: u64,
        given: Option<u64>,
    ) -> Result<TrapSpec, Mistake> {
        let Some(kind) = KINDS.iter().find(|kind| kind.name == name) else {
            let known = KINDS.map(|kind| kind.name).join("`, `");
            return Err(Mistake::new(format!("trap `{name}`"), format!("one of `{known}`")));
        };
        let cache = cache_bytes / BLOCK_BYTES;
        if !CACHE_BLOCKS.contains(&cache) {
            return Err(Mistake::new(format!("`cache` of {cache_bytes} B"), "128KiB to 256TiB"));
        }
        let period = match (given, kind.period) {
            (Some(_), None) => {
                let found = format!("`period` of trap `{name}`");
                return Err(Mistake::new(found, "only `kind`, `cache` and `count`"));
            }
            (_, usual) => given.or(usual.map(|usual| usual(cache))),
        };
        for (key, requests) in [("count", count), ("period", given.unwrap_or(1))] {
            if !REQUESTS.contains(&requests) {
                return Err(Mistake::new(format!("`{key}` of {requests}"), "1 to 2^36 requests"));
            }
        }
        Ok(TrapSpec { kind, cache, count, period: period.unwrap_or(0) })
    }

    pub(super) fn tenants(&self, seed: Seed) -> Vec<SynthTenantSpec> {
        (self.kind.tenants)(self, seed.derive("trap"))
    }

    /// A tenant that reads, unless a part or a phase of its pattern says otherwise.
    fn tenant(&self, name: &str, pattern: PatternSpec) -> SynthTenantSpec {
        SynthTenantSpec {
            name: name.to_owned(),
            count: Some(self.count),
            duration_ns: None,
            start_ns: 0,
            arrival: ArrivalSpec { poisson: false, rate: 1.0 / REQUEST_NS as f64, bursts: None },
            read_share: 1.0,
            sizes: vec![(BLOCK_BYTES, 1)],
            pattern,
        }
    }

    /// A volume's only tenant.
    fn alone(&self, pattern: PatternSpec) -> Vec<SynthTenantSpec> {
        vec![self.tenant("trap", pattern)]
    }

    /// Blocks that come once each: a block for every request that there may be.
    fn once(&self) -> PatternSpec {
        looped(ONCE_FROM_BLOCK, self.count)
    }

    /// A loop that is a sixteenth longer than the cache.
    fn loop_above(&self, first: u64) -> PatternSpec {
        looped(first, self.cache + self.cache / 16)
    }

    /// Re-use of half a cache in a flood three times as heavy.
    fn flood_over(&self, first: u64) -> PatternSpec {
        mix([(1, uniform(first, self.cache / 2)), (3, self.once())])
    }

    /// Each of eight sets of half a cache turns hot as the one before it cools, in four steps of as
    /// many requests as the cache has blocks.
    fn handed_over(&self) -> PatternSpec {
        let half = self.cache / 2;
        let set = |index: u64| uniform(index % SETS * half, half);
        let steps = (0..SETS).flat_map(|index| {
            let both = |old, new| mix([(old, set(index)), (new, set(index + 1))]);
            [set(index), both(3, 1), both(1, 1), both(1, 3)]
        });
        phases(steps.map(|pattern| phase(self.cache, pattern)).collect(), 0)
    }
}

fn loop_above(trap: &TrapSpec, _: Seed) -> Vec<SynthTenantSpec> {
    trap.alone(trap.loop_above(0))
}

/// Half a cache of blocks, four requests for each; then as many blocks as the cache has, once.
fn scan_between_bursts(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let burst = phase(2 * trap.cache, uniform(0, trap.cache / 2));
    let scan = phase(trap.cache, trap.once());
    trap.alone(phases(vec![burst, scan], seed.rng().below(2 * trap.cache)))
}

fn hand_over(trap: &TrapSpec, _: Seed) -> Vec<SynthTenantSpec> {
    trap.alone(trap.handed_over())
}

fn one_hit_flood(trap: &TrapSpec, _: Seed) -> Vec<SynthTenantSpec> {
    trap.alone(trap.flood_over(0))
}

/// A period of `hand-over`, which rewards what was used last; then one of `one-hit-flood`, which
/// rewards what was used often.
fn alternation(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let recent = phase(trap.period, trap.handed_over());
    let often = phase(trap.period, trap.flood_over(SETS * trap.cache));
    trap.alone(phases(vec![recent, often], seed.rng().below(trap.period)))
}

/// A period of `loop-above`, in which schemes that count gain a little with each request; then a
/// tenth of a period of `hand-over`, in which they lose as much. What gained most is wrong next.
fn see_saw(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let slow = phase(trap.period, trap.loop_above(SETS * trap.cache));
    let fast = phase(trap.period.div_ceil(10), trap.handed_over());
    trap.alone(phases(vec![slow, fast], seed.rng().below(trap.period)))
}

/// Of two tenants one re-uses three quarters of the cache, and the other asks for each block once;
/// after a period they change places.
fn swap(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let begun = seed.rng().below(trap.period);
    let reuse = || phase(trap.period, uniform(0, trap.cache / 4 * 3));
    let once = || phase(trap.period, trap.once());
    vec![
        trap.tenant("first", phases(vec![reuse(), once()], begun)),
        trap.tenant("second", phases(vec![once(), reuse()], begun)),
    ]
}

/// A tenant re-uses half the cache for a period and is idle for four; another one would use all of
/// the cache at any time.
fn idle_return(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let steady = trap.tenant("steady", uniform(0, trap.cache));
    let mut returning = trap.tenant("returning", uniform(0, trap.cache / 2));
    let on_ns = (trap.period * REQUEST_NS) as f64;
    returning.arrival.bursts = Some(Bursts { on_ns, off_ns: 4.0 * on_ns, off_rate: 0.0 });
    returning.start_ns = seed.rng().below(trap.period) * REQUEST_NS;
    returning.count = Some(trap.count.div_ceil(5));
    vec![steady, returning]
}

/// A quarter of the drive is only read for a period, while half of the requests overwrite the rest;
/// then all of it is overwritten once, in one go.
fn writer_as_reader(trap: &TrapSpec, seed: Seed) -> Vec<SynthTenantSpec> {
    let quarter = trap.cache / 4;
    let part = |read_share, pattern| PartSpec { weight: 1, read_share: Some(read_share), pattern };
    let quiet = PatternSpec::Mix(vec![
        part(0.0, uniform(quarter, trap.cache - quarter)),
        part(1.0, uniform(0, quarter)),
    ]);
    let burst = PhaseSpec { read_share: Some(0.0), ..phase(quarter, looped(0, quarter)) };
    let begun = seed.rng().below(trap.period);
    trap.alone(phases(vec![phase(trap.period, quiet), burst], begun))
}

/// Each of 32 parts of the drive in turn gets two writes per block, drawn at random; then a part
/// that was written before is read as often. A block that was just overwritten may be so again
/// soon, or last for a round: its past does not tell.
fn reader_as_writer(trap: &TrapSpec, _: Seed) -> Vec<SynthTenantSpec> {
    let part = trap.cache / PARTS;
    let turns = (0..PARTS).flat_map(|index| {
        let written = uniform(index * part, part);
        let read = uniform((index + PARTS / 2) % PARTS * part, part);
        [PhaseSpec { read_share: Some(0.0), ..phase(2 * part, written) }, phase(2 * part, read)]
    });
    trap.alone(phases(turns.collect(), 0))
}

fn region(first_block: u64, blocks: u64) -> AddressRegion {
    AddressRegion {
        offset: first_block * BLOCK_BYTES,
        span: blocks * BLOCK_BYTES,
        align: BLOCK_BYTES,
        scattered: true,
    }
}

fn uniform(first_block: u64, blocks: u64) -> PatternSpec {
    PatternSpec::Region(region(first_block, blocks), AddressShape::Uniform)
}

fn looped(first_block: u64, blocks: u64) -> PatternSpec {
    PatternSpec::Region(region(first_block, blocks), AddressShape::Loop)
}

fn mix(parts: [(u64, PatternSpec); 2]) -> PatternSpec {
    let parts = parts.map(|(weight, pattern)| PartSpec { weight, read_share: None, pattern });
    PatternSpec::Mix(parts.into())
}

fn phase(requests: u64, pattern: PatternSpec) -> PhaseSpec {
    PhaseSpec { length: Length::Requests(requests), read_share: None, pattern }
}

fn phases(phases: Vec<PhaseSpec>, begun: u64) -> PatternSpec {
    PatternSpec::Phases(PhasesSpec { phases, repeat: true, begun })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::testing::options;
    use cachewright_types::Op;
    use std::collections::BTreeSet;

    const COUNT: usize = 640;

    fn text(kind: &str, cache: &str, rest: &str) -> String {
        format!(
            "[synth]\nseed = 3\n[trap]\nkind = \"{kind}\"\ncache = \"{cache}\"\n\
             count = {COUNT}\n{rest}\n"
        )
    }

    fn seeded(text: &str, seed: u64) -> Vec<Record> {
        read_bytes(&options("synth", &[("seed", &seed.to_string())]), text.as_bytes()).0
    }

    /// Requests aimed at a cache of 32 blocks.
    fn requests(kind: &str, rest: &str) -> Vec<Record> {
        read_bytes(&options("synth", &[]), text(kind, "128KiB", rest).as_bytes()).0
    }

    fn blocks(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.offset_bytes / BLOCK_BYTES).collect()
    }

    /// Requests until the first one that is not below this block.
    fn below(blocks: &[u64], end: u64) -> usize {
        blocks.iter().take_while(|block| **block < end).count()
    }

    fn distinct(blocks: &[u64]) -> BTreeSet<u64> {
        blocks.iter().copied().collect()
    }

    #[test]
    fn a_loop_above_the_cache_asks_for_34_blocks_in_one_order() {
        let records = requests("loop-above", "");
        assert_eq!(records.len(), COUNT);
        let times: Vec<u64> = records.iter().map(|record| record.time_ns / REQUEST_NS).collect();
        assert_eq!(times[..3], [1, 2, 3]);
        assert!(records.iter().all(|one| one.op == Op::Read && one.length_bytes == BLOCK_BYTES));
        let blocks = blocks(&records);
        assert_eq!(distinct(&blocks[..34]), (0..34).collect());
        assert!(blocks.iter().zip(&blocks[34..]).all(|(one, next)| one == next));
    }

    #[test]
    fn a_scan_of_32_blocks_follows_64_requests_for_16() {
        let blocks = blocks(&requests("scan-between-bursts", ""));
        let first = below(&blocks, 16);
        assert!((1..=64).contains(&first), "the seed cuts the first burst: {first}");
        let scanned = |at: usize| distinct(&blocks[at..at + 32]);
        let (one, two) = (scanned(first), scanned(first + 96));
        assert!(one.len() == 32 && two.len() == 32 && one.is_disjoint(&two));
        assert!(one.iter().chain(&two).all(|block| *block >= ONCE_FROM_BLOCK));
        assert_eq!(below(&blocks[first + 32..], 16), 64);
    }

    #[test]
    fn a_set_of_16_blocks_hands_over_to_the_next_in_four_steps() {
        let blocks = blocks(&requests("hand-over", ""));
        let of_second = |step: usize| {
            let step = &blocks[32 * step..32 * (step + 1)];
            assert!(step.iter().all(|block| *block < 32));
            step.iter().filter(|block| **block >= 16).count()
        };
        assert_eq!((of_second(0), of_second(4)), (0, 32));
        assert!(of_second(1) < 16 && of_second(3) > 16);
        assert!(blocks[128..].iter().take(32).all(|block| (16..32).contains(block)));
        assert!(blocks.iter().all(|block| *block < 8 * 16));
    }

    #[test]
    fn no_block_of_a_flood_comes_twice() {
        let blocks = blocks(&requests("one-hit-flood", ""));
        let (flood, reused): (Vec<u64>, Vec<u64>) =
            blocks.into_iter().partition(|block| *block >= ONCE_FROM_BLOCK);
        assert_eq!(distinct(&flood).len(), flood.len());
        assert_eq!(distinct(&reused), (0..16).collect());
        assert!((430..530).contains(&flood.len()), "three of four: {}", flood.len());
    }

    #[test]
    fn recency_and_frequency_alternate() {
        let blocks = blocks(&requests("alternation", "period = 10"));
        // The first set of the hand-over has 16 blocks; the flood is over blocks from 256 on.
        let first = below(&blocks, 16);
        assert!((1..=10).contains(&first), "{first}");
        let (often, recent) = (&blocks[first..first + 10], &blocks[first + 10..first + 20]);
        let reused = 256..256 + 16;
        assert!(often.iter().all(|one| reused.contains(one) || *one >= ONCE_FROM_BLOCK));
        assert!(recent.iter().all(|one| *one < 16));
        let usual = requests("alternation", "");
        assert_eq!(usual, requests("alternation", "period = 32"), "the cache's size");
    }

    #[test]
    fn a_see_saw_loops_ten_times_as_long_as_it_hands_over() {
        let blocks = blocks(&requests("see-saw", "period = 70"));
        // The loop of 34 blocks begins at 256; the first set of the hand-over has 16.
        let loops = 256_u64..256 + 34;
        let first = blocks.iter().take_while(|block| loops.contains(*block)).count();
        assert!((1..=70).contains(&first), "{first}");
        assert_eq!(below(&blocks[first..], 16), 7);
        assert!(blocks[first + 7..first + 77].iter().all(|block| loops.contains(block)));
        assert_eq!(below(&blocks[first + 77..], 16), 7);
    }

    #[test]
    fn two_tenants_change_places() {
        let records = requests("swap", "period = 10");
        assert_eq!(records.len(), 2 * COUNT);
        assert!(records.chunks(2).all(|pair| {
            let reuse = [pair[0], pair[1]].map(|one| one.offset_bytes < 24 * BLOCK_BYTES);
            pair[0].time_ns == pair[1].time_ns
                && (pair[0].volume, pair[1].volume) == (0, 1)
                && reuse[0] != reuse[1]
        }));
        let of_first: Vec<Record> = records.into_iter().filter(|one| one.volume == 0).collect();
        let blocks = blocks(&of_first);
        let first = below(&blocks, 24);
        assert!((1..=10).contains(&first), "{first}");
        assert!(blocks[first..first + 10].iter().all(|block| *block >= ONCE_FROM_BLOCK));
        assert_eq!(below(&blocks[first + 10..], 24), 10);
    }

    #[test]
    fn an_idle_tenant_returns_after_four_periods() {
        let records = requests("idle-return", "period = 5");
        let of = |volume: u32| records.iter().filter(move |record| record.volume == volume);
        assert_eq!((of(0).count(), of(1).count()), (COUNT, COUNT / 5));
        let times: Vec<u64> = of(1).map(|record| record.time_ns / REQUEST_NS).collect();
        let since = times[0] - 1;
        assert!(since < 5, "the seed delays the tenant: {since}");
        // Five requests in 5 ms of 25.
        let expected: Vec<u64> = [1, 2, 3, 4, 5, 26, 27].map(|time| since + time).into();
        assert_eq!(times[..7], expected);
        assert!(of(0).all(|record| record.offset_bytes < 32 * BLOCK_BYTES));
        assert!(of(1).all(|record| record.offset_bytes < 16 * BLOCK_BYTES));
    }

    #[test]
    fn what_was_only_read_is_overwritten_at_once() {
        let records = requests("writer-as-reader", "period = 12");
        let quiet =
            |record: &&Record| (record.op == Op::Read) == (record.offset_bytes < 8 * BLOCK_BYTES);
        let first = records.iter().take_while(quiet).count();
        assert!((1..=12).contains(&first), "{first}");
        for burst in [first, first + 8 + 12] {
            let burst = &records[burst..burst + 8];
            assert!(burst.iter().all(|record| record.op == Op::Write));
            assert_eq!(distinct(&blocks(burst)), (0..8).collect());
        }
        assert_eq!(records[first + 8..].iter().take_while(quiet).count(), 12);
    }

    #[test]
    fn a_part_is_written_for_a_while_and_then_stays() {
        let records = requests("reader-as-writer", "");
        let found: Vec<(Op, u64)> =
            records.iter().map(|one| (one.op, one.offset_bytes / BLOCK_BYTES)).collect();
        let (read, write) = (Op::Read, Op::Write);
        let first = [(write, 0), (write, 0), (read, 16), (read, 16), (write, 1), (write, 1)];
        assert_eq!(found[..6], first);
        // Parts of 8 blocks: 16 writes within one, 16 reads within another, and so on.
        let text = text("reader-as-writer", "1MiB", "");
        let records = read_bytes(&options("synth", &[]), text.as_bytes()).0;
        for (index, turn) in records.chunks(32).enumerate() {
            let part = |index: usize| (index * 8) as u64..(index * 8 + 8) as u64;
            assert!(turn[..16].iter().all(|one| one.op == Op::Write));
            assert!(turn[16..].iter().all(|one| one.op == Op::Read));
            let (written, reads) = (blocks(&turn[..16]), blocks(&turn[16..]));
            assert!(written.iter().all(|block| part(index).contains(block)));
            assert!(reads.iter().all(|block| part((index + 16) % 32).contains(block)));
        }
    }

    #[test]
    fn one_seed_gives_one_trace_and_another_seed_another() {
        for kind in &KINDS {
            let text = text(kind.name, "1MiB", "");
            let records = seeded(&text, 3);
            assert_eq!(records, seeded(&text, 3), "{}", kind.name);
            assert_eq!(records, read_bytes(&options("synth", &[]), text.as_bytes()).0);
            assert_ne!(records, seeded(&text, 4), "{}", kind.name);
            assert!(records.is_sorted_by_key(|record| record.time_ns), "{}", kind.name);
        }
    }

    #[test]
    fn mistakes_name_the_key() {
        let cases = [
            (text("loop", "1MiB", ""), "trap `loop`, expected one of `loop-above`"),
            (text("swap", "64KiB", ""), "`cache` of 65536 B, expected 128KiB to 256TiB"),
            (text("swap", "1", ""), "`cache` = `1`"),
            (text("swap", "1MiB", "period = 0"), "`period` of 0, expected 1 to 2^36 requests"),
            (text("hand-over", "1MiB", "period = 5"), "`period` of trap `hand-over`"),
            (text("swap", "1MiB", "perod = 5"), "unknown field `perod`"),
            (text("swap", "1MiB", "").replace("640", "0"), "`count` of 0"),
            (text("swap", "1MiB", "[[tenant]]"), "missing field `name`"),
        ];
        for (text, expected) in cases {
            let error = bad_bytes(&options("synth", &[]), text.as_bytes());
            assert!(error.contains(expected), "`{expected}` not in: {error}");
        }
        // No trap, however large, ends beyond the addresses of a trace.
        for kind in &KINDS {
            let largest = text(kind.name, "256TiB", "").replace("640", "68_719_476_736");
            let mut reader =
                crate::formats::open_bytes("largest", largest.as_bytes(), &options("synth", &[]))
                    .unwrap();
            let mut batch = crate::Batch::default();
            reader.read(&mut batch, 1000).unwrap();
            assert!(batch.offset_bytes.iter().all(|offset| *offset < 1 << 62), "{}", kind.name);
        }
    }
}
