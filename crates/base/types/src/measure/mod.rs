//! What is counted while a cache works, in simulation and in service alike.
//!
//! Units: block accesses unless a name says requests; nanoseconds.

use cachewright_snapshot::SnapshotValue;

pub mod over_time;
pub mod responses;

pub use over_time::{Bin, Population, Rates};
pub use responses::{Latencies, Responses};

/// Counters of one tenant (or of all). Every derived figure is a function of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct Counts {
    /// Block reads.
    pub reads: u64,
    /// Block reads served from the cache.
    pub read_hits: u64,
    /// Block writes.
    pub writes: u64,
    /// Block writes that found their block in the cache.
    pub write_hits: u64,
    /// Blocks that entered the cache on a read.
    pub read_admissions: u64,
    /// Blocks that entered the cache on a write.
    pub write_admissions: u64,
    /// Blocks that left to make room or because the quota shrank.
    pub evictions: u64,
    /// Dirty blocks written to the backing store on leaving.
    pub writebacks: u64,
    /// Blocks dropped without write-back, by a trim or for another of the [`LossReason`]s.
    pub invalidations: u64,
    /// Whole requests (reads and writes).
    pub requests: u64,
    /// Requests all of whose blocks hit.
    pub request_hits: u64,
    /// Bytes of blocks that reads asked for.
    pub read_bytes: u64,
    /// Those of them that were served from the cache.
    pub read_hit_bytes: u64,
    /// Bytes of blocks that writes brought.
    pub write_bytes: u64,
    /// Those of them whose block was in the cache.
    pub write_hit_bytes: u64,
    /// Requests that went past the cache because their sequential stream had become too long.
    pub cut_off_requests: u64,
    /// Bytes of these requests.
    pub cut_off_bytes: u64,
}

/// How the backing store and the cache see writes; decides the derived figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// A write stays in the cache until its block leaves.
    Back,
    /// Every write goes to the backing store, cached blocks are updated.
    Through,
    /// Every write goes to the backing store, cached blocks are dropped.
    Invalidate,
}

impl Counts {
    /// Block accesses.
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    /// Block accesses that hit.
    pub fn hits(&self) -> u64 {
        self.read_hits + self.write_hits
    }

    /// Block accesses that missed.
    pub fn misses(&self) -> u64 {
        self.accesses() - self.hits()
    }

    /// Blocks that entered the cache.
    pub fn admissions(&self) -> u64 {
        self.read_admissions + self.write_admissions
    }

    /// Misses that did not enter the cache.
    pub fn bypasses(&self) -> u64 {
        self.misses() - self.admissions()
    }

    /// Hits over accesses; 0 when there was none.
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits(), self.accesses())
    }

    /// Read hits over reads; 0 when there was none.
    pub fn read_hit_ratio(&self) -> f64 {
        ratio(self.read_hits, self.reads)
    }

    /// Bytes that were asked for or brought; 0 where they are not counted.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.write_bytes
    }

    /// Bytes of blocks that hit.
    pub fn hit_bytes(&self) -> u64 {
        self.read_hit_bytes + self.write_hit_bytes
    }

    /// Hit bytes over bytes; 0 when there was none.
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes(), self.bytes())
    }

    /// Bytes of read hits over bytes of reads; 0 when there was none.
    pub fn read_byte_hit_ratio(&self) -> f64 {
        ratio(self.read_hit_bytes, self.read_bytes)
    }

    /// The same with the bytes of block accesses of which each has `bytes`.
    pub fn with_even_bytes(self, bytes: u64) -> Counts {
        Counts {
            read_bytes: self.reads * bytes,
            read_hit_bytes: self.read_hits * bytes,
            write_bytes: self.writes * bytes,
            write_hit_bytes: self.write_hits * bytes,
            ..self
        }
    }

    /// Block writes the cache's own medium has to take: fills and updates.
    pub fn cache_writes(&self, effect: WriteEffect) -> u64 {
        match effect {
            WriteEffect::Back | WriteEffect::Through => self.admissions() + self.write_hits,
            WriteEffect::Invalidate => self.admissions(),
        }
    }

    /// Blocks read from the backing store to serve reads.
    pub fn backing_reads(&self) -> u64 {
        self.reads - self.read_hits
    }

    /// Blocks written to the backing store.
    pub fn backing_writes(&self, effect: WriteEffect) -> u64 {
        match effect {
            WriteEffect::Back => {
                self.writebacks + (self.writes - self.write_hits - self.write_admissions)
            }
            WriteEffect::Through | WriteEffect::Invalidate => self.writes,
        }
    }

    /// What was counted since `before`, counts of the same tenant at an earlier time.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            reads: self.reads - before.reads,
            read_hits: self.read_hits - before.read_hits,
            writes: self.writes - before.writes,
            write_hits: self.write_hits - before.write_hits,
            read_admissions: self.read_admissions - before.read_admissions,
            write_admissions: self.write_admissions - before.write_admissions,
            evictions: self.evictions - before.evictions,
            writebacks: self.writebacks - before.writebacks,
            invalidations: self.invalidations - before.invalidations,
            requests: self.requests - before.requests,
            request_hits: self.request_hits - before.request_hits,
            read_bytes: self.read_bytes - before.read_bytes,
            read_hit_bytes: self.read_hit_bytes - before.read_hit_bytes,
            write_bytes: self.write_bytes - before.write_bytes,
            write_hit_bytes: self.write_hit_bytes - before.write_hit_bytes,
            cut_off_requests: self.cut_off_requests - before.cut_off_requests,
            cut_off_bytes: self.cut_off_bytes - before.cut_off_bytes,
        }
    }

    /// Adds `other`'s counts.
    pub fn add(&mut self, other: &Counts) {
        self.reads += other.reads;
        self.read_hits += other.read_hits;
        self.writes += other.writes;
        self.write_hits += other.write_hits;
        self.read_admissions += other.read_admissions;
        self.write_admissions += other.write_admissions;
        self.evictions += other.evictions;
        self.writebacks += other.writebacks;
        self.invalidations += other.invalidations;
        self.requests += other.requests;
        self.request_hits += other.request_hits;
        self.read_bytes += other.read_bytes;
        self.read_hit_bytes += other.read_hit_bytes;
        self.write_bytes += other.write_bytes;
        self.write_hit_bytes += other.write_hit_bytes;
        self.cut_off_requests += other.cut_off_requests;
        self.cut_off_bytes += other.cut_off_bytes;
    }
}

/// `part / whole`, 0 for an empty whole.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Why the cached copy of a block is void, otherwise than to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The block was trimmed.
    Trim,
    /// A write that went round the cache made the copy old.
    Invalidation,
    /// Its read from the backing store failed.
    Fetch,
    /// Its write to the cache's medium failed.
    Fill,
    /// Its content differs from its checksum.
    Checksum,
    /// The cache's medium is gone, or the part of it that held the block.
    Device,
    /// Cleaning of the cache's medium did not copy it: it was clean, and not wanted of late.
    Cleaning,
    /// Its tenant was removed; dirty content is written back.
    Removal,
}

impl LossReason {
    /// All reasons, in the order of their counts.
    pub const ALL: [LossReason; 8] = [
        LossReason::Trim,
        LossReason::Invalidation,
        LossReason::Fetch,
        LossReason::Fill,
        LossReason::Checksum,
        LossReason::Device,
        LossReason::Cleaning,
        LossReason::Removal,
    ];

    /// The reason in a word.
    pub fn word(self) -> &'static str {
        match self {
            LossReason::Trim => "trim",
            LossReason::Invalidation => "invalidation",
            LossReason::Fetch => "fetch",
            LossReason::Fill => "fill",
            LossReason::Checksum => "checksum",
            LossReason::Device => "device",
            LossReason::Cleaning => "cleaning",
            LossReason::Removal => "removal",
        }
    }
}

/// Blocks of one tenant (or of all) that were lost, by reason; every block that is dropped counts.
/// Their sum is [`Counts::invalidations`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct Losses {
    blocks: [u64; LossReason::ALL.len()],
    dirty: [u64; LossReason::ALL.len()],
}

impl Losses {
    /// Counts a block, dirty if the backing store has older content.
    pub fn count(&mut self, reason: LossReason, dirty: bool) {
        self.blocks[reason as usize] += 1;
        self.dirty[reason as usize] += u64::from(dirty);
    }

    /// Blocks lost for a reason.
    pub fn blocks(&self, reason: LossReason) -> u64 {
        self.blocks[reason as usize]
    }

    /// Those of them that were dirty.
    pub fn dirty(&self, reason: LossReason) -> u64 {
        self.dirty[reason as usize]
    }

    /// Blocks lost for any reason.
    pub fn total(&self) -> u64 {
        self.blocks.iter().sum()
    }
}

/// Jain's index of some shares: 1 when all are equal, 1/n when one has everything; 1 for none.
/// Source: Jain, Chiu and Hawe, DEC-TR-301, 1984.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// The smallest share over the largest; 1 for none. Source: Li, Sun and Qin (icache).
pub fn extremes(shares: &[f64]) -> f64 {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let smallest = shares.iter().copied().fold(largest, f64::min);
    if largest > 0.0 { smallest / largest } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_figures_follow_the_write_mode() {
        let counts = Counts {
            reads: 10,
            read_hits: 4,
            writes: 6,
            write_hits: 2,
            read_admissions: 5,
            write_admissions: 3,
            evictions: 4,
            writebacks: 2,
            cut_off_requests: 1,
            cut_off_bytes: 4096,
            ..Counts::default()
        };
        assert_eq!((counts.hits(), counts.misses(), counts.bypasses()), (6, 10, 2));
        assert_eq!(counts.backing_writes(WriteEffect::Back), 2 + 1);
        assert_eq!(counts.backing_writes(WriteEffect::Through), 6);
        assert_eq!(counts.cache_writes(WriteEffect::Back), 8 + 2);
        assert_eq!(counts.cache_writes(WriteEffect::Invalidate), 8);
        assert_eq!(Counts::default().hit_ratio(), 0.0);
        let counts = counts.with_even_bytes(512);
        assert_eq!((counts.bytes(), counts.hit_bytes()), (16 * 512, 6 * 512));
        assert_eq!((counts.byte_hit_ratio(), counts.read_byte_hit_ratio()), (0.375, 0.4));
        assert_eq!(Counts::default().byte_hit_ratio(), 0.0);
        let mut both = counts;
        both.add(&counts);
        assert_eq!(both.since(&counts), counts);
    }

    #[test]
    fn each_reason_has_its_count() {
        let mut losses = Losses::default();
        for (times, reason) in (1..).zip(LossReason::ALL) {
            (0..times).for_each(|time| losses.count(reason, time == 0));
        }
        let counts = LossReason::ALL.map(|reason| (losses.blocks(reason), losses.dirty(reason)));
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8].map(|count| (count, 1)));
        assert_eq!(losses.total(), 36);
    }

    #[test]
    fn equal_shares_are_fair_and_one_taking_all_is_not() {
        assert_eq!((jain(&[3.0, 3.0, 3.0]), extremes(&[3.0, 3.0])), (1.0, 1.0));
        assert_eq!((jain(&[1.0, 0.0, 0.0, 0.0]), extremes(&[1.0, 0.0])), (0.25, 0.0));
        assert_eq!((jain(&[]), extremes(&[])), (1.0, 1.0));
        assert!((jain(&[1.0, 2.0]) - 0.9).abs() < 1e-12);
    }
}
