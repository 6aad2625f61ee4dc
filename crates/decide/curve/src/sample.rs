//! Samples of blocks, for SHARDS and miniature simulation: which blocks they hold, by which names,
//! and the mean of several samples.
//!
//! A block is in a sample if its hash is low (spatial hashing: all accesses of a block or none;
//! Waldspurger et al., FAST'15 section 3.1). The `salts` samples use one salted hash, rotated by
//! equal steps of the circle. Each alone is a uniform sample. At rates up to 1/salts they are
//! disjoint, so that one hash and one comparison decide for all. Disjoint samples differ slightly
//! more than independent ones, so that the interval from their spread is on the safe side.

use crate::{Curve, Provenance};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::seed::mix;
use cachewright_types::{BlockId, BlockKey, Seed, VolumeKeys};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// 2^64: hashes are fractions of it.
const CIRCLE: f64 = 18_446_744_073_709_551_616.0;
/// Knots each sample contributes to the common grid.
const GRID: usize = 512;
/// 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131,
];

/// The highest hash of a sample of `rate`.
pub(crate) fn threshold(rate: f64) -> u64 {
    (rate * CIRCLE) as u64
}

/// The rate of a sample whose highest hash is `threshold`.
pub(crate) fn rate(threshold: u64) -> f64 {
    (threshold as f64 + 1.0) / CIRCLE
}

/// The places of blocks on the circle, as each sample sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circle {
    salt: u64,
    salts: u64,
    step: u64,
}

impl Circle {
    /// `salts` (at least 1) views of one salted hash.
    pub fn new(salts: u32, seed: Seed) -> Circle {
        let salts = u64::from(salts.max(1));
        let step = if salts == 1 { 0 } else { u64::MAX / salts };
        Circle { salt: seed.derive("sample").0, salts, step }
    }

    /// The block's hash.
    #[inline(always)]
    pub fn place(&self, block: BlockKey) -> u64 {
        mix(block.0 ^ self.salt)
    }

    /// The highest threshold at which samples are disjoint.
    pub fn disjoint_below(&self) -> u64 {
        if self.salts == 1 { u64::MAX } else { self.step - 1 }
    }

    /// The one sample that may hold `place` while thresholds are below `disjoint_below`, and the
    /// place as that sample sees it.
    #[inline(always)]
    pub fn only(&self, place: u64) -> (usize, u64) {
        let sample = ((u128::from(place) * u128::from(self.salts)) >> 64) as u64;
        (sample as usize, place - sample * self.step)
    }

    /// The place as `sample` sees it.
    #[inline(always)]
    pub fn seen(&self, place: u64, sample: usize) -> u64 {
        place.wrapping_sub(sample as u64 * self.step)
    }
}

/// The mean of several samples' curves with a 95 % interval: mean +- t * s / sqrt(n), Student's t
/// with n - 1 degrees of freedom, s the standard deviation between samples. One sample has no
/// interval. Errors common to all samples (bias at sizes below the trusted one) are not in it.
pub(crate) fn together(curves: &[Curve], accesses: u64, provenance: Provenance) -> Curve {
    let Some((first, rest)) = curves.split_first() else {
        return Curve::from_knots([], accesses, provenance);
    };
    if rest.is_empty() {
        let knots = first.sizes().iter().copied().zip(first.knot_misses().iter().copied());
        return Curve::from_knots(knots, accesses, provenance);
    }
    let mut sizes: Vec<u32> = Vec::new();
    for curve in curves {
        let kept = crate::curve::knots_to_keep(curve.sizes(), curve.knot_misses(), GRID);
        sizes.extend(kept.iter().map(|&index| curve.sizes()[index]));
    }
    sizes.sort_unstable();
    sizes.dedup();
    let (mut misses, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
    for &size in &sizes {
        let values: Vec<f64> = curves.iter().map(|curve| curve.misses(size)).collect();
        let (mean, half) = mean_and_half_width(&values);
        misses.push(mean);
        low.push((mean - half).max(0.0));
        high.push((mean + half).min(accesses as f64));
    }
    Curve::from_knots(sizes.into_iter().zip(misses), accesses, provenance).with_band(low, high)
}

/// Mean of `values` and half the width of its 95 % interval.
pub(crate) fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
    (mean, t * (variance / n).sqrt())
}

/// A block as a meter is told of it: one meter is told in one of the two ways, by recordings, which
/// have dense ids, or by requests, which have not. A sample knows a block by its key alone, so that
/// both ways measure the same.
#[derive(Clone, Copy, Debug)]
pub enum BlockName<'a> {
    /// A block of a recording.
    Recorded {
        /// Dense in the stream.
        id: BlockId,
        /// The keys of the recording, read only for blocks that may be in a sample.
        keys: &'a [BlockKey],
        /// Where the key stands.
        index: u32,
    },
    /// A block by its key.
    Keyed(BlockKey),
}

impl BlockName<'_> {
    /// The block's key.
    #[inline(always)]
    pub fn key(&self) -> BlockKey {
        match self {
            BlockName::Recorded { keys, index, .. } => {
                debug_assert!((*index as usize) < keys.len(), "the recording keeps keys");
                keys.get(*index as usize).copied().unwrap_or_default()
            }
            BlockName::Keyed(key) => *key,
        }
    }

    /// The block's id in the recording.
    #[inline(always)]
    pub fn id(&self) -> Option<BlockId> {
        match self {
            BlockName::Recorded { id, .. } => Some(*id),
            BlockName::Keyed(_) => None,
        }
    }
}

/// Ids of recorded blocks that no sample holds from now on: thresholds only fall. Most accesses
/// then cost one bit of a small table, and neither the key nor its hash. Memory: one bit per
/// recorded block.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub(crate) struct Outside {
    words: Vec<u64>,
}

impl Outside {
    /// Whether the block is known to be in no sample.
    #[inline(always)]
    pub fn holds(&self, block: &BlockName<'_>) -> bool {
        let Some(id) = block.id() else { return false };
        self.words.get(id.index() / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    /// Notes that a block is in no sample.
    #[inline]
    pub fn insert(&mut self, block: &BlockName<'_>) {
        let Some(id) = block.id() else { return };
        if id.index() / 64 >= self.words.len() {
            self.words.resize(id.index() / 64 + 1, 0);
        }
        self.words[id.index() / 64] |= 1 << (id.0 % 64);
    }
}

/// Numbers of recorded blocks that samples hold for good, so that neither the key nor a table of
/// keys is read again. Recordings give ids in the order of first uses. Members therefore come by
/// ascending id, and a number is the count of members before; a block that comes later gets none.
/// Memory: 16 bytes per 64 recorded blocks.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub(crate) struct Members {
    pages: Vec<MemberPage>,
    /// Members so far.
    count: u32,
}

/// 64 recorded blocks.
#[derive(Clone, Copy, Debug, Default, SnapshotValue)]
struct MemberPage {
    /// Which of them are members.
    mask: u64,
    /// Members of the pages before.
    before: u32,
}

impl Members {
    /// The number of a member.
    #[inline(always)]
    pub fn number(&self, block: &BlockName<'_>) -> Option<u32> {
        let id = block.id()?;
        let page = self.pages.get(id.index() / 64)?;
        let bit = 1_u64 << (id.0 % 64);
        (page.mask & bit != 0).then(|| page.before + (page.mask & (bit - 1)).count_ones())
    }

    /// Whether the block can become a member: it is recorded, and its id is above all others.
    pub fn takes(&self, block: &BlockName<'_>) -> bool {
        let Some(id) = block.id() else { return false };
        let last = self.pages.len().saturating_sub(1);
        let above = self.pages.last().map_or(0, |page| page.mask >> (id.0 % 64));
        id.index() / 64 > last || (id.index() / 64 == last && above == 0)
    }

    /// Takes in a block that [`Members::takes`] allows; its number is the count of members before.
    pub fn insert(&mut self, block: &BlockName<'_>) {
        let Some(id) = block.id() else { return };
        let next = MemberPage { mask: 0, before: self.count };
        if id.index() / 64 >= self.pages.len() {
            self.pages.resize(id.index() / 64 + 1, next);
        }
        self.pages[id.index() / 64].mask |= 1 << (id.0 % 64);
        self.count += 1;
    }
}

/// The blocks of a sample, each with a dense id of its own. Memory: that of the blocks held.
#[derive(Clone, Debug, Default, SnapshotValue)]
pub(crate) struct BlockIndex {
    ids: HashMap<BlockKey, u32, FixedState>,
}

impl BlockIndex {
    /// The id of a block that is held.
    #[inline]
    pub fn get(&self, key: BlockKey) -> Option<u32> {
        self.ids.get(&key).copied()
    }

    /// The id of a block; a new one gets the number of blocks held.
    #[inline]
    pub fn enter(&mut self, key: BlockKey) -> u32 {
        let next = self.ids.len() as u32;
        *self.ids.entry(key).or_insert(next)
    }

    /// Holds a block under an id that is free.
    pub fn insert(&mut self, key: BlockKey, id: u32) {
        self.ids.insert(key, id);
    }

    /// Holds a block no more.
    pub fn remove(&mut self, key: BlockKey) {
        self.ids.remove(&key);
    }

    /// The ids of the blocks held of a range of a volume, by ascending number. Costs the smaller of
    /// the range and the blocks held.
    pub fn within(&self, volume: VolumeKeys, numbers: Range<u64>) -> Vec<u32> {
        if numbers.end.saturating_sub(numbers.start) <= self.ids.len() as u64 {
            return numbers.filter_map(|number| self.get(volume.key(number))).collect();
        }
        let held = self.ids.iter().map(|(key, id)| (volume.number(*key), *id));
        let mut found: Vec<(u64, u32)> =
            held.filter(|(number, _)| numbers.contains(number)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    #[test]
    fn every_view_holds_its_share_and_low_rates_never_overlap() {
        let circle = Circle::new(5, Seed(3));
        let (mut held, limit) = ([0_u32; 5], threshold(0.1));
        assert!(limit <= circle.disjoint_below());
        for id in 0..50_000 {
            let place = circle.place(BlockKey(id));
            let (only, seen) = circle.only(place);
            for (sample, count) in held.iter_mut().enumerate() {
                let inside = circle.seen(place, sample) <= limit;
                assert_eq!(inside, sample == only && seen <= limit);
                *count += u32::from(inside);
            }
        }
        assert!(held.iter().all(|&count| (4_700..5_300).contains(&count)), "{held:?}");
    }

    #[test]
    fn a_rate_of_one_takes_every_block() {
        assert_eq!(threshold(1.0), u64::MAX);
        assert_eq!(rate(u64::MAX), 1.0);
    }

    #[test]
    fn the_interval_is_students() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(mean, 2.5);
        assert!((half - 3.182 * (5.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn blocks_outside_are_those_noted() {
        let (keys, mut outside) = (vec![BlockKey(7); 200], Outside::default());
        let name = |id| BlockName::Recorded { id: BlockId(id), keys: &keys, index: id };
        [0, 63, 64, 130].iter().for_each(|id| outside.insert(&name(*id)));
        outside.insert(&BlockName::Keyed(BlockKey(1)));
        let held: Vec<u32> = (0..200).filter(|id| outside.holds(&name(*id))).collect();
        assert_eq!(held, [0, 63, 64, 130]);
        assert!(!outside.holds(&BlockName::Keyed(BlockKey(1))), "a key alone is always looked at");
    }

    #[test]
    fn members_are_numbered_by_ascending_id_and_late_ones_get_no_number() {
        let (keys, mut members) = (vec![BlockKey(7); 500], Members::default());
        let name = |id| BlockName::Recorded { id: BlockId(id), keys: &keys, index: id };
        let mut numbered = Vec::new();
        for id in [3, 5, 4, 63, 64, 62, 200, 199, 263, 320] {
            if members.takes(&name(id)) {
                members.insert(&name(id));
                numbered.push(id);
            }
        }
        assert_eq!(numbered, [3, 5, 63, 64, 200, 263, 320]);
        for id in 0..500 {
            let place = numbered.iter().position(|member| *member == id);
            assert_eq!(members.number(&name(id)), place.map(|place| place as u32), "{id}");
        }
        assert!(!members.takes(&name(320)) && members.takes(&name(321)));
        assert!(!members.takes(&BlockName::Keyed(BlockKey(1))), "a key alone has no number");
    }

    #[test]
    fn a_range_is_found_from_either_side_by_ascending_number() {
        let (volume, other) = (VolumeKeys::new(TenantId(1), 0), VolumeKeys::new(TenantId(1), 1));
        let mut index = BlockIndex::default();
        for number in [9, 2, 5, 1 << 40] {
            index.enter(volume.key(number));
        }
        index.enter(other.key(5));
        assert_eq!(index.within(volume, 2..6), [1, 2]);
        assert_eq!(index.within(volume, 2..1 << 41), [1, 2, 0, 3]);
        assert_eq!(index.within(other, 0..1 << 41), [4]);
        index.remove(volume.key(5));
        assert_eq!(index.within(volume, 0..1 << 41), [1, 0, 3]);
        assert_eq!((index.ids.len(), index.get(volume.key(5))), (4, None));
        assert!(index.within(volume, Range { start: 7, end: 3 }).is_empty());
    }
}
