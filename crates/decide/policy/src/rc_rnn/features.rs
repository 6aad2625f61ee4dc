//! A request as numbers: the inputs of a caching model, in training and live.
//!
//! For: one source of features for both. Source: Ebrahimi et al., RC-RNN, section 5.2.2: address,
//! size, type and the labels of the request before (`paper`). Addresses of another volume, or of
//! later, say little, so that `reuse` (ours) tells how the request lies to the one before and what
//! its first block's past is. Logarithms are to base 2 and straight between powers of 2, so that
//! they are the same bits on every machine.
//!
//! `paper`: the address is in GiB and normalised by the model file, whose mean and deviation are
//! the first address of the training and the span of it: 0 to 1 there, beyond elsewhere.
//!
//! | feature | is |
//! |---|---|
//! | `address` | first byte of the request, in GiB |
//! | `step` | log of the distance in sectors to the request before, with its sign |
//! | `sequential` | 1 if it begins where the one before ended |
//! | `distance` | log of the accesses since the last to its first block; 32 if none is remembered |
//! | `accesses` | log of 1 + the accesses to its first block so far |
//! | `reads` | share of reads among them; 0.5 if none is remembered |
//! | `size` | log of the request's length in sectors |
//! | `write` | 1 of a write |
//! | `previous_cached` | 1 if the request before was labelled "cached" |
//! | `previous_duration` | 1/3, 2/3 or 1 of its label soon, mean or late; 0 if it was not cached |

use crate::RequestInfo;
use crate::links::Links;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// The distance of a block of which no access is remembered.
const NEVER: f32 = 32.0;
/// Most features of a set.
pub const MAX_FEATURES: usize = 9;

/// For how long an oracle keeps a block, in accesses from admission to eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub enum StayClass {
    /// Fewer than the cache has blocks.
    Soon,
    /// Fewer than five times as many.
    #[default]
    Mean,
    /// More.
    Late,
}

impl StayClass {
    /// All, in the order of a model's outputs.
    pub const ALL: [StayClass; 3] = [StayClass::Soon, StayClass::Mean, StayClass::Late];
}

/// What is decided about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct CachingLabel {
    /// Whether its blocks are let in.
    pub cached: bool,
    /// For how long they stay; of no meaning where they are not let in.
    pub duration: StayClass,
}

/// The features that a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureSet {
    /// Address, size and type.
    Paper,
    /// Distances and counts.
    Reuse,
}

impl FeatureSet {
    /// All.
    pub const ALL: [FeatureSet; 2] = [FeatureSet::Paper, FeatureSet::Reuse];

    /// The name a user gives.
    pub fn name(self) -> &'static str {
        match self {
            FeatureSet::Paper => "paper",
            FeatureSet::Reuse => "reuse",
        }
    }

    /// The names of the features, in the order of a model's inputs; the labels of the request
    /// before are the last two.
    pub fn features(self) -> &'static [&'static str] {
        match self {
            FeatureSet::Paper => {
                &["address", "size", "write", "previous_cached", "previous_duration"]
            }
            FeatureSet::Reuse => &[
                "step",
                "sequential",
                "distance",
                "accesses",
                "reads",
                "size",
                "write",
                "previous_cached",
                "previous_duration",
            ],
        }
    }
}

/// A stream of requests and what is remembered of it.
#[derive(Clone, Debug, SnapshotValue)]
pub struct FeatureStream {
    memory: Memory,
    /// First byte of the request before, and the byte after its last.
    before: Option<(u64, u64)>,
}

impl FeatureStream {
    /// A stream of no request yet, to a cache of `capacity_blocks`.
    pub fn new(capacity_blocks: u32) -> FeatureStream {
        FeatureStream { memory: Memory::new(capacity_blocks), before: None }
    }

    /// What is remembered of blocks.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The same, to change.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// The features of the next request, whose first block is `first`, after one labelled
    /// `previous`; its accesses have not been noted yet. The first places of the array are used, as
    /// many as the set has features.
    pub fn request(
        &mut self,
        set: FeatureSet,
        request: &RequestInfo,
        first: BlockId,
        previous: CachingLabel,
    ) -> [f32; MAX_FEATURES] {
        let size = log2(request.length / SECTOR);
        let write = f32::from(u8::from(request.write));
        let [cached, duration] = encoded(previous);
        let before =
            self.before.replace((request.offset, request.offset.saturating_add(request.length)));
        match set {
            FeatureSet::Paper => {
                let address = (request.offset / SECTOR) as f32 / ((1 << 30) / SECTOR) as f32;
                let mut features = [0.0; MAX_FEATURES];
                features[..5].copy_from_slice(&[address, size, write, cached, duration]);
                features
            }
            FeatureSet::Reuse => {
                let (begin, end) = before.unwrap_or((request.offset, request.offset));
                let step = log2(request.offset.abs_diff(begin) / SECTOR);
                let step = if request.offset < begin { -step } else { step };
                let sequential = before.is_some() && request.offset == end;
                let (mut distance, mut accesses, mut reads) = (NEVER, 0.0, 0.5);
                if let Some((past, ago)) = self.memory.past(first) {
                    distance = log2(u64::from(ago)).min(NEVER - 1.0);
                    accesses = log2(u64::from(past.accesses));
                    reads = f32::from(past.reads) / f32::from(past.accesses.max(1));
                }
                let sequential = f32::from(u8::from(sequential));
                [step, sequential, distance, accesses, reads, size, write, cached, duration]
            }
        }
    }
}

/// A label as the features of the request after.
pub fn encoded(label: CachingLabel) -> [f32; 2] {
    match (label.cached, label.duration) {
        (false, _) => [0.0, 0.0],
        (true, duration) => [1.0, (duration as u8 + 1) as f32 / 3.0],
    }
}

/// log2 of 1 + `number`, straight between powers of 2.
fn log2(number: u64) -> f32 {
    let number = number.saturating_add(1);
    let whole = number.ilog2();
    let power = 1_u64 << whole;
    // 24 bits of the fraction are kept, as many as a float has.
    let fraction = (u128::from(number - power) << 24 >> whole) as f32 / (1 << 24) as f32;
    whole as f32 + fraction
}

/// Blocks remembered per block of the cache.
const REMEMBERED: u32 = 3;

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, SnapshotValue)]
pub struct BlockPast {
    /// When it was used last, in accesses modulo 2^32.
    last: u32,
    /// Accesses so far.
    pub accesses: u16,
    /// Reads among them.
    pub reads: u16,
}

/// The blocks used last.
///
/// The blocks used last are remembered, three times as many as the cache may hold; one that has not
/// been asked for while so many others were is as new. Counts stop at 65,535. 16 bytes per id.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Memory {
    links: Links<BlockPast, 1>,
    limit: u32,
    /// Accesses so far, modulo 2^32.
    now: u32,
}

impl Memory {
    /// Of no block yet, beside a cache of `capacity_blocks`.
    pub fn new(capacity_blocks: u32) -> Memory {
        let limit = capacity_blocks.saturating_mul(REMEMBERED);
        Memory { links: Links::new(), limit, now: 0 }
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
    }

    /// Blocks remembered at most.
    pub fn limit(&self) -> u64 {
        u64::from(self.limit)
    }

    /// Whether the block is remembered.
    #[inline(always)]
    pub fn knows(&self, block: BlockId) -> bool {
        self.links.linked(block)
    }

    /// What is known of a block, and how many accesses ago it was used last (at least 1).
    #[inline(always)]
    pub fn past(&self, block: BlockId) -> Option<(BlockPast, u32)> {
        let past = self.links.tag(block);
        self.knows(block).then(|| (past, self.now.wrapping_sub(past.last)))
    }

    /// Takes an access in.
    #[inline(always)]
    pub fn note(&mut self, block: BlockId, write: bool) {
        let mut past = BlockPast::default();
        if self.knows(block) {
            past = self.links.tag(block);
            self.links.move_to_head(0, block);
        } else {
            self.links.push_head(0, block);
        }
        if past.accesses < u16::MAX {
            past.accesses += 1;
            past.reads += u16::from(!write);
        }
        *self.links.tag_mut(block) = BlockPast { last: self.now, ..past };
        self.now = self.now.wrapping_add(1);
        self.trim();
    }

    /// Forgets a block.
    pub fn forget(&mut self, block: BlockId) {
        if self.knows(block) {
            self.links.unlink(0, block);
        }
    }

    /// Goes with a cache of another size.
    pub fn resize(&mut self, capacity_blocks: u32) {
        self.limit = capacity_blocks.saturating_mul(REMEMBERED);
        self.trim();
    }

    /// Loads a block's state.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    /// Checks the bound and the links.
    pub fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        let len = self.links.len(0);
        if len <= self.limit {
            return Ok(());
        }
        Err(format!("{len} blocks remembered, at most {} expected", self.limit))
    }

    #[inline(always)]
    fn trim(&mut self) {
        while self.links.len(0) > self.limit {
            self.links.pop_tail(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_straight_between_powers() {
        assert_eq!([0, 1, 2, 3, 5, 7].map(log2), [0.0, 1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(log2(u64::MAX), 63.0 + (1.0 - 1.0 / (1 << 24) as f32));
    }

    #[test]
    fn the_hand_worked_requests() {
        let mut stream = FeatureStream::new(10);
        stream.memory_mut().reserve_ids(8);
        let info = |offset, length, write| RequestInfo { time_ns: 0, offset, length, write };
        let set = FeatureSet::Reuse;
        // The first request: nothing before it, nothing remembered; 8 sectors.
        let first =
            stream.request(set, &info(4096, 4096, false), BlockId(1), CachingLabel::default());
        assert_eq!(first, [0.0, 0.0, 32.0, 0.0, 0.5, log2(8), 0.0, 0.0, 0.0]);
        stream.memory_mut().note(BlockId(1), false);
        // A write where it ended: a step of 8 sectors up, and sequential.
        let late = CachingLabel { cached: true, duration: StayClass::Late };
        let next = stream.request(set, &info(8192, 8192, true), BlockId(2), late);
        assert_eq!(next, [log2(8), 1.0, 32.0, 0.0, 0.5, log2(16), 1.0, 1.0, 1.0]);
        for block in [2, 3] {
            stream.memory_mut().note(BlockId(block), true);
        }
        // Back to block 1, used 3 accesses ago, once, by a read.
        let soon = CachingLabel { cached: true, duration: StayClass::Soon };
        let back = stream.request(set, &info(4096, 512, false), BlockId(1), soon);
        assert_eq!(back, [-log2(8), 0.0, log2(3), log2(1), 1.0, 1.0, 0.0, 1.0, 1.0 / 3.0]);
        let paper = stream.request(FeatureSet::Paper, &info(3 << 29, 512, true), BlockId(1), soon);
        assert_eq!(paper[..5], [1.5, 1.0, 1.0, 1.0, 1.0 / 3.0]);
    }

    #[test]
    fn a_set_has_as_many_names_as_features() {
        assert_eq!(FeatureSet::ALL.map(|set| set.features().len()), [5, MAX_FEATURES]);
    }

    #[test]
    fn the_last_three_per_block_of_cache_are_remembered() {
        let mut memory = Memory::new(1);
        memory.reserve_ids(8);
        for (block, write) in [(0, false), (1, true), (0, true), (2, false)] {
            memory.note(BlockId(block), write);
        }
        let known = |memory: &Memory, id| {
            memory.past(BlockId(id)).map(|(past, ago)| (past.accesses, past.reads, ago))
        };
        assert_eq!(known(&memory, 0), Some((2, 1, 2)));
        assert_eq!(known(&memory, 1), Some((1, 0, 3)));
        memory.note(BlockId(3), false);
        assert_eq!(known(&memory, 1), None, "three others were used since");
        memory.note(BlockId(1), false);
        assert_eq!(known(&memory, 1), Some((1, 1, 1)), "as new");
        assert_eq!(memory.audit(), Ok(()));
    }
}
