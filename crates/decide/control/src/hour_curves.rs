//! The miss-ratio curves of the last hour, for an operator who asks a live server that records
//! nothing.
//!
//! Curves are those that divisions are made from, or sampled for this alone by SHARDS of a fixed
//! number of blocks (Waldspurger et al., FAST'15). They are summed up at fixed sizes, so that
//! memory does not grow with time or requests. The oldest part of the hour goes when a new one
//! begins. Units: blocks, nanoseconds on the decision clock.

use cachewright_curve::{Curve, Curves, FixedSize, MissesAt, Provenance, ShardsSizeSettings};
use cachewright_types::{Op, Request, Seed, VolumeKeys, block_numbers, whole_block_numbers};
use std::collections::VecDeque;

/// Length of a part: parts are counted apart, and go whole.
const PART_NS: u64 = 600_000_000_000;
/// Parts that are kept beside the one under way.
const PARTS: usize = 6;
/// Sizes by octave at which misses are summed up, and the octaves below and above the capacity.
const SIZES_PER_OCTAVE: i32 = 24;
const OCTAVES_BELOW: i32 = 12;
const OCTAVES_ABOVE: i32 = 3;
/// Points of a curve that is handed out, at most.
const MAX_POINTS: usize = 128;
/// Blocks of each of four samples of a tenant: together those of the paper.
const SAMPLED: ShardsSizeSettings = ShardsSizeSettings { max_blocks: 2048, salts: 4 };

/// Curves of the last hour by tenant.
pub struct HourlyCurves {
    /// Samples of each tenant's requests; none where divisions hand their curves on.
    samples: Vec<FixedSize>,
    block_shift: u32,
    policy: String,
    tenants: usize,
    /// The sizes at which misses are summed up.
    sizes: Vec<u32>,
    /// The oldest part first; the last one is under way.
    parts: VecDeque<HourPart>,
}

/// A part of the hour.
struct HourPart {
    begin_ns: u64,
    /// What is counted of each tenant.
    sums: Vec<MissesAt>,
}

/// A curve of the last hour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptCurve {
    /// Accesses that it counts.
    pub accesses: u64,
    /// Nanoseconds in which they came.
    pub span_ns: u64,
    /// The smallest size at which the sample is large enough.
    pub trusted_from_blocks: u32,
    /// Sizes in ascending order from 0; beyond the last one the curve is flat.
    pub points: Vec<KeptPoint>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptPoint {
    /// The size of the cache.
    pub size_blocks: u32,
    /// Misses in a cache of this size.
    pub misses: f64,
    /// The low end of their 95 % confidence interval.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

impl HourlyCurves {
    /// LRU curves of so many tenants, sampled from requests for blocks of `1 << block_shift` bytes.
    /// Sizes are those around the capacity. The hour begins at time 0.
    pub fn sampled(
        tenants: usize,
        block_shift: u32,
        capacity_blocks: u32,
        seed: Seed,
    ) -> HourlyCurves {
        let seed = seed.derive("kept curves");
        let sample =
            |tenant: usize| FixedSize::new(&SAMPLED, seed.derive(&format!("curve/{tenant}")));
        let samples = (0..tenants).map(sample).collect();
        let kept = HourlyCurves::of_divisions(tenants, "lru", capacity_blocks);
        HourlyCurves { samples, block_shift, ..kept }
    }

    /// The curves of a policy that divisions of a capacity are made from.
    pub fn of_divisions(tenants: usize, policy: &str, capacity_blocks: u32) -> HourlyCurves {
        let sums = vec![NOTHING; tenants];
        HourlyCurves {
            samples: Vec::new(),
            block_shift: 0,
            policy: policy.to_owned(),
            tenants,
            sizes: sizes(capacity_blocks),
            parts: VecDeque::from([HourPart { begin_ns: 0, sums }]),
        }
    }

    /// The hour begins at `now_ns`, if nothing was counted before.
    pub fn begin(&mut self, now_ns: u64) {
        self.parts.iter_mut().for_each(|part| part.begin_ns = now_ns);
    }

    /// The policy whose misses are counted.
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Samples a request, where divisions do not.
    #[inline]
    pub fn request(&mut self, request: &Request) {
        let Some(sample) = self.samples.get_mut(request.tenant.index()) else { return };
        let (offset, length) = (request.offset.0, request.length.0);
        let volume = VolumeKeys::new(request.tenant, 0);
        match request.op {
            Op::Read | Op::Write => {
                for number in block_numbers(offset, length, self.block_shift) {
                    sample.access(volume.key(number), request.op == Op::Write);
                }
            }
            Op::Trim => {
                let numbers = whole_block_numbers(offset, length, self.block_shift);
                if !numbers.is_empty() {
                    sample.remove_range(volume, numbers);
                }
            }
            Op::Flush => {}
        }
    }

    /// Keeps the curves of an interval that a division at `now_ns` was made from.
    pub fn divided(&mut self, curves: &[Curves], now_ns: u64) {
        if self.samples.is_empty() {
            let sizes = self.sizes.clone();
            self.add(curves.iter().map(|curves| misses_at(&curves.all, &sizes)), now_ns);
        }
    }

    /// Begins another part of the hour when it is time for that. To be called some times a minute.
    pub fn tick(&mut self, now_ns: u64) {
        if self.part_is_over(now_ns) {
            self.measure(now_ns);
        }
    }

    /// The curves of the last hour by tenant.
    pub fn curves(&mut self, now_ns: u64) -> Vec<KeptCurve> {
        self.measure(now_ns);
        let begin_ns = self.parts.front().map_or(now_ns, |part| part.begin_ns);
        let span_ns = now_ns.saturating_sub(begin_ns);
        (0..self.tenants).map(|tenant| self.curve(tenant, span_ns)).collect()
    }

    /// Adds what was sampled since the last time.
    fn measure(&mut self, now_ns: u64) {
        let found: Vec<MissesAt> =
            self.samples.iter_mut().map(|sample| sample.take_misses(&self.sizes)).collect();
        self.add(found, now_ns);
    }

    /// Adds the misses of each tenant.
    fn add(&mut self, found: impl IntoIterator<Item = MissesAt>, now_ns: u64) {
        if let Some(part) = self.parts.back_mut() {
            part.sums.iter_mut().zip(found).for_each(|(sum, found)| add(sum, &found));
        }
        self.begin_part(now_ns);
    }

    fn part_is_over(&self, now_ns: u64) -> bool {
        self.parts.back().is_none_or(|part| now_ns.saturating_sub(part.begin_ns) >= PART_NS)
    }

    fn begin_part(&mut self, now_ns: u64) {
        if !self.part_is_over(now_ns) {
            return;
        }
        let sums = vec![NOTHING; self.tenants];
        self.parts.push_back(HourPart { begin_ns: now_ns, sums });
        if self.parts.len() > PARTS + 1 {
            self.parts.pop_front();
        }
    }

    fn curve(&self, tenant: usize, span_ns: u64) -> KeptCurve {
        let mut sum = NOTHING;
        for part in self.parts.iter().filter_map(|part| part.sums.get(tenant)) {
            add(&mut sum, part);
        }
        let MissesAt { accesses, misses, trusted_from_blocks, largest_blocks } = sum;
        let point = |(size_blocks, found): (&u32, &[f64; 3])| {
            let [misses, low, high] = *found;
            KeptPoint { size_blocks: *size_blocks, misses, low, high }
        };
        let mut points: Vec<KeptPoint> = self.sizes.iter().zip(&misses).map(point).collect();
        // All sizes from the largest on are alike.
        let last = points.iter().position(|point| point.size_blocks >= largest_blocks);
        points.truncate(last.map_or(points.len(), |last| last + 1));
        KeptCurve { accesses, span_ns, trusted_from_blocks, points: fewer(points, accesses) }
    }
}

/// No accesses.
const NOTHING: MissesAt =
    MissesAt { accesses: 0, misses: Vec::new(), trusted_from_blocks: 0, largest_blocks: 0 };

/// The misses of a curve at some sizes.
fn misses_at(curve: &Curve, sizes: &[u32]) -> MissesAt {
    let interval = |size: &u32| {
        let (low, high) = curve.interval(*size);
        [curve.misses(*size), low, high]
    };
    MissesAt {
        accesses: curve.accesses(),
        misses: sizes.iter().map(interval).collect(),
        trusted_from_blocks: curve.trusted_from_blocks(),
        largest_blocks: curve.largest_blocks(),
    }
}

fn add(sum: &mut MissesAt, more: &MissesAt) {
    if more.accesses == 0 {
        return;
    }
    sum.accesses += more.accesses;
    sum.misses.resize(more.misses.len(), [0.0; 3]);
    for (sum, more) in sum.misses.iter_mut().zip(&more.misses) {
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    sum.trusted_from_blocks = sum.trusted_from_blocks.max(more.trusted_from_blocks);
    sum.largest_blocks = sum.largest_blocks.max(more.largest_blocks);
}

/// The points that describe a curve best, at most [`MAX_POINTS`].
fn fewer(points: Vec<KeptPoint>, accesses: u64) -> Vec<KeptPoint> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let knots = points.iter().map(|point| (point.size_blocks, point.misses));
    let kept = Curve::from_knots(knots, accesses, Provenance::Exact).resampled(MAX_POINTS);
    let is_kept = |point: &KeptPoint| kept.sizes().binary_search(&point.size_blocks).is_ok();
    points.into_iter().filter(is_kept).collect()
}

/// Sizes at which misses are summed up: 0, then in geometric steps around the capacity.
fn sizes(capacity_blocks: u32) -> Vec<u32> {
    let capacity = f64::from(capacity_blocks.max(1));
    let steps = -OCTAVES_BELOW * SIZES_PER_OCTAVE..=OCTAVES_ABOVE * SIZES_PER_OCTAVE;
    let size = |step: i32| {
        (capacity * (f64::from(step) / f64::from(SIZES_PER_OCTAVE)).exp2()).round() as u32
    };
    let mut sizes: Vec<u32> = std::iter::once(0).chain(steps.map(size)).collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_curve::{BlockName, CurveSet, Method};
    use cachewright_types::{Bytes, Nanos, TenantId};

    const BLOCK_SHIFT: u32 = 12;

    fn request(tenant: u16, block: u64, time: u64) -> Request {
        let (offset, length) = (Bytes(block << BLOCK_SHIFT), Bytes(1 << BLOCK_SHIFT));
        Request { time: Nanos(time), offset, length, op: Op::Read, tenant: TenantId(tenant) }
    }

    fn kept(capacity_blocks: u32) -> HourlyCurves {
        HourlyCurves::sampled(2, BLOCK_SHIFT, capacity_blocks, Seed(1))
    }

    fn misses(curve: &KeptCurve, size: u32) -> f64 {
        let knots = curve.points.iter().map(|point| (point.size_blocks, point.misses));
        Curve::from_knots(knots, curve.accesses, Provenance::Exact).misses(size)
    }

    #[test]
    fn a_loop_misses_below_its_length_and_hits_from_there_on() {
        let mut kept = kept(400);
        for round in 0..10 {
            (0..400).for_each(|block| kept.request(&request(1, block, round * 400 + block)));
        }
        let found = kept.curves(5_000);
        assert_eq!(found[0], KeptCurve { span_ns: 5_000, ..KeptCurve::default() });
        let curve = &found[1];
        assert_eq!((curve.accesses, curve.span_ns, curve.trusted_from_blocks), (4000, 5_000, 0));
        assert_eq!((misses(curve, 0), misses(curve, 400)), (4000.0, 400.0));
        // Between two sizes of the grid the cliff is a slope.
        assert_eq!(misses(curve, 380), 4000.0);
        assert!(curve.points.len() <= MAX_POINTS);
        assert_eq!(kept.curves(6_000)[1].accesses, 4000, "what was looked at is counted once");
    }

    #[test]
    fn samples_of_many_blocks_are_within_their_error_of_the_exact_curve() {
        let (mut kept, mut exact) = (kept(20_000), CurveSet::new(1, &Method::Exact, Seed(2)));
        let mut random = 1_u64;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        for time in 0..400_000 {
            let block = next(100_000).min(next(100_000)).min(next(100_000));
            kept.request(&request(0, block, time));
            let name = BlockName::Keyed(VolumeKeys::new(TenantId(0), 0).key(block));
            exact.access(TenantId(0), name, false);
        }
        let (exact, found) = (&exact.end_window()[0].all, &kept.curves(1)[0]);
        assert!(found.trusted_from_blocks > 0, "it is a sample");
        let trusted = |point: &&KeptPoint| point.size_blocks >= found.trusted_from_blocks;
        let error = |point: &KeptPoint| {
            (point.misses / 400_000.0 - exact.miss_ratio(point.size_blocks)).abs()
        };
        let worst = found.points.iter().filter(trusted).map(error).fold(0.0, f64::max);
        assert!(worst < 0.02, "{worst}");
    }

    #[test]
    fn what_is_older_than_an_hour_goes_with_its_part() {
        let mut kept = kept(100);
        let asked =
            |kept: &mut HourlyCurves, minute: u64| kept.curves(minute * 60_000_000_000)[0].accesses;
        kept.request(&request(0, 1, 1));
        assert_eq!(asked(&mut kept, 1), 1);
        kept.request(&request(0, 1, 2));
        for minute in (10..=60).step_by(10) {
            kept.tick(minute * 60_000_000_000);
            assert_eq!(asked(&mut kept, minute), 2, "minute {minute}");
        }
        kept.tick(70 * 60_000_000_000);
        assert_eq!(asked(&mut kept, 70), 0);
        assert_eq!(kept.parts.len(), PARTS + 1);
        assert_eq!(kept.curves(70 * 60_000_000_000)[0].span_ns, 60 * 60_000_000_000);
    }

    #[test]
    fn curves_of_divisions_are_summed_up_and_requests_left_alone() {
        let mut kept = HourlyCurves::of_divisions(1, "s3-fifo", 100);
        kept.request(&request(0, 1, 1));
        let curve =
            |misses: f64| Curve::from_knots([(50, misses), (100, 0.0)], 10, Provenance::Exact);
        for misses in [8.0, 4.0] {
            let all = curve(misses);
            let curves = Curves { reads: all.clone(), writes: all.clone(), all };
            kept.divided(&[curves], 1_000);
        }
        let found = &kept.curves(2_000)[0];
        assert_eq!((kept.policy(), found.accesses), ("s3-fifo", 20));
        assert_eq!((misses(found, 50), misses(found, 100), misses(found, 9999)), (12.0, 0.0, 0.0));
        assert_eq!(found.points.last().map(|point| point.size_blocks), Some(100));
    }

    #[test]
    fn sizes_ascend_around_the_capacity() {
        for capacity in [0, 1, 7, 256, 1 << 20, u32::MAX / 2] {
            let sizes = sizes(capacity);
            assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]), "{capacity}");
            assert_eq!(sizes[0], 0);
            assert!(sizes.contains(&capacity.max(1)), "{capacity}");
            assert!(
                sizes.len() <= 2 + ((OCTAVES_BELOW + OCTAVES_ABOVE) * SIZES_PER_OCTAVE) as usize
            );
        }
    }
}
