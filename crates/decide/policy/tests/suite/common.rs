//! What the tests of policies share: traces that know each block's next use, and their replay.

use cachewright_policy::{Access, Future, NEVER, Need, Policy, Verdict, entry};
use cachewright_testkit::reference_data;
use cachewright_testkit::streams::dense;
use cachewright_types::{BlockId, Rng};

/// A trace as dense ids with the position of each block's next access.
pub struct Trace {
    pub blocks: Vec<BlockId>,
    pub next_use: Vec<u32>,
    pub distinct: usize,
}

impl Trace {
    /// Numbers blocks in order of first appearance and makes the next-use pre-pass.
    pub fn from_raw(raw: impl IntoIterator<Item = u64>) -> Trace {
        let blocks = dense(raw);
        let distinct = blocks.iter().map(|block| block.index() + 1).max().unwrap_or(0);
        let next_use = next_use(&blocks, distinct);
        Trace { blocks, next_use, distinct }
    }

    pub fn accesses(&self) -> impl Iterator<Item = Access> + '_ {
        let pairs = self.blocks.iter().zip(&self.next_use);
        pairs.map(|(&block, &next_use)| Access {
            future: Future::NextUse(next_use),
            ..Access::read(block)
        })
    }

    /// The misses of an empty `policy` over the whole trace.
    pub fn misses(&self, policy: &mut dyn Policy) -> u64 {
        self.misses_knowing(policy, Future::NextUse)
    }

    /// The same; `future` makes what is told of each access from the position of its next use.
    pub fn misses_knowing(&self, policy: &mut dyn Policy, future: impl Fn(u32) -> Future) -> u64 {
        policy.reserve_ids(self.distinct);
        let pairs = self.blocks.iter().zip(&self.next_use);
        let missed = |(block, next_use): (&BlockId, &u32)| {
            let access = Access { future: future(*next_use), ..Access::read(*block) };
            policy.access(access) != Verdict::Hit
        };
        pairs.map(missed).filter(|missed| *missed).count() as u64
    }
}

/// What a policy that needs the future is told of an access whose block is used next at
/// `next_use`: a benefit is the larger the nearer that is.
pub fn future(policy: &str, next_use: u32) -> Future {
    if !entry(policy).unwrap().needs.contains(&Need::Benefit) {
        return Future::NextUse(next_use);
    }
    let used = next_use != NEVER;
    Future::Benefit(if used { 1.0 / (1.0 + next_use as f32) } else { 0.0 })
}

/// Position of the next access to the same block, from the end backwards.
pub fn next_use(blocks: &[BlockId], distinct: usize) -> Vec<u32> {
    let mut seen = vec![NEVER; distinct];
    let mut next = vec![NEVER; blocks.len()];
    for (position, block) in blocks.iter().enumerate().rev() {
        next[position] = std::mem::replace(&mut seen[block.index()], position as u32);
    }
    next
}

/// A small skewed trace with a loop in it, different for every seed.
pub fn random_blocks(rng: &mut Rng, count: usize, distinct: u64) -> Vec<BlockId> {
    let skewed = |rng: &mut Rng| (rng.unit().powi(2) * distinct as f64) as u32;
    let pick = |i: usize, rng: &mut Rng| match i % 5 {
        4 => (i as u64 / 5 % distinct) as u32,
        _ => skewed(rng),
    };
    (0..count).map(|i| BlockId(pick(i, rng))).collect()
}

/// One record of an oracleGeneral file: sector and length in bytes.
pub struct Record {
    pub sector: u64,
    pub bytes: u32,
}

/// The records of the CloudPhysics sample of the reference data, where it is at hand: 24 bytes
/// each, u32 seconds, u64 sector, u32 bytes, i64 next.
pub fn cloudphysics() -> Option<Vec<Record>> {
    let sample = "traces/public/cloudphysics-libcachesim/cloudPhysicsIO.oracleGeneral.bin.zst";
    let file = std::fs::File::open(reference_data(sample)?).unwrap();
    let raw = zstd::decode_all(file).unwrap();
    assert_eq!(raw.len() % 24, 0, "oracleGeneral records are 24 bytes");
    let record = |record: &[u8]| Record {
        sector: u64::from_le_bytes(record[4..12].try_into().unwrap()),
        bytes: u32::from_le_bytes(record[12..16].try_into().unwrap()),
    };
    Some(raw.chunks_exact(24).map(record).collect())
}

/// Each record's aligned 4 KiB blocks, in order.
pub fn split_4k(records: &[Record]) -> Vec<u64> {
    let blocks = |record: &Record| {
        let first = record.sector * 512;
        (first / 4096)..=((first + u64::from(record.bytes) - 1) / 4096)
    };
    records.iter().flat_map(blocks).collect()
}
