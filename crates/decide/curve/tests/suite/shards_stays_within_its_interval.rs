//! Sampled curves: close to the exact one, honest about how close, exact where they see all.

use crate::key;
use cachewright_curve::{
    Curves, FixedRate, FixedSize, ShardsRateSettings, ShardsSizeSettings, StackDistance,
};
use cachewright_testkit::streams::{ZipfBlocks, dense, golden_ids};
use cachewright_types::{BlockId, Seed};

fn zipf_stream() -> Vec<BlockId> {
    let mut zipf = ZipfBlocks::new(50_000, Seed(11));
    (0..600_000).map(|_| zipf.draw()).collect()
}

/// Every fourth access writes.
fn is_write(position: usize) -> bool {
    position % 4 == 3
}

fn exact(stream: &[BlockId]) -> Curves {
    let mut stack = StackDistance::new();
    for (position, &block) in stream.iter().enumerate() {
        stack.access(block, is_write(position));
    }
    Curves::exact(stack.histogram())
}

fn fixed_rate(stream: &[BlockId], settings: &ShardsRateSettings, seed: u64) -> Curves {
    let mut shards = FixedRate::new(settings, Seed(seed));
    for (position, &block) in stream.iter().enumerate() {
        shards.access(key(block), is_write(position));
    }
    shards.take_curves()
}

fn fixed_size(stream: &[BlockId], settings: &ShardsSizeSettings, seed: u64) -> Curves {
    let mut shards = FixedSize::new(settings, Seed(seed));
    for (position, &block) in stream.iter().enumerate() {
        shards.access(key(block), is_write(position));
    }
    shards.take_curves()
}

#[test]
fn misses_at_sizes_are_those_of_the_curve() {
    let stream = &zipf_stream()[..300_000];
    for max_blocks in [1024, 65_536] {
        let settings = ShardsSizeSettings { max_blocks, salts: 4 };
        let mut shards = FixedSize::new(&settings, Seed(5));
        stream.iter().for_each(|&block| _ = shards.access(key(block), false));
        let found = shards.take_misses(&[0, 700, 5_000, 40_000, 90_000]);
        let curve = fixed_size(stream, &settings, 5).all;
        assert_eq!((found.accesses, found.misses[0]), (300_000, [300_000.0; 3]));
        assert_eq!(found.trusted_from_blocks, curve.trusted_from_blocks());
        for (size, [misses, low, high]) in
            [700, 5_000, 40_000, 90_000].iter().zip(&found.misses[1..])
        {
            // The curve keeps 512 knots of each sample, so that it is a little off between them.
            let near = |value: f64| (value - misses).abs() < 0.002 * 300_000.0;
            assert!(near(curve.misses(*size)), "{size}: {misses}, {}", curve.misses(*size));
            assert!(low <= misses && misses <= high, "{size}");
        }
        assert_eq!(shards.take_misses(&[1]).accesses, 0);
    }
}

const SIZES: [u32; 5] = [5_000, 10_000, 20_000, 30_000, 40_000];

/// Over `runs` seeds: largest error of the miss ratio, mean signed error, share covered.
fn judge(truth: &Curves, runs: impl Iterator<Item = Curves>) -> (f64, f64, f64) {
    let (mut largest, mut signed, mut covered, mut count) = (0.0_f64, 0.0, 0, 0);
    for curves in runs {
        for (found, truth) in [
            (&curves.all, &truth.all),
            (&curves.reads, &truth.reads),
            (&curves.writes, &truth.writes),
        ] {
            for size in SIZES {
                let error = found.miss_ratio(size) - truth.miss_ratio(size);
                let (low, high) = found.interval(size);
                largest = largest.max(error.abs());
                signed += error;
                covered += i32::from((low..=high).contains(&truth.misses(size)));
                count += 1;
            }
        }
    }
    (largest, signed / f64::from(count), f64::from(covered) / f64::from(count))
}

#[test]
fn fixed_rate_is_close_unbiased_and_its_interval_covers() {
    let stream = zipf_stream();
    let settings = ShardsRateSettings { rate: 0.02, salts: 8 };
    let runs = (0..20).map(|seed| fixed_rate(&stream, &settings, seed));
    let (largest, bias, covered) = judge(&exact(&stream), runs);
    assert!(largest < 0.03, "largest error {largest}");
    assert!(bias.abs() < 0.003, "bias {bias}");
    assert!(covered > 0.85, "covered {covered}");
}

#[test]
fn fixed_size_is_close_unbiased_and_its_interval_covers() {
    let stream = zipf_stream();
    let settings = ShardsSizeSettings { max_blocks: 1_000, salts: 8 };
    let runs = (0..20).map(|seed| fixed_size(&stream, &settings, seed));
    let (largest, bias, covered) = judge(&exact(&stream), runs);
    assert!(largest < 0.03, "largest error {largest}");
    assert!(bias.abs() < 0.003, "bias {bias}");
    assert!(covered > 0.85, "covered {covered}");
}

#[test]
fn overlapping_samples_cover_too() {
    let stream = zipf_stream();
    let settings = ShardsRateSettings { rate: 0.3, salts: 8 };
    let runs = (0..10).map(|seed| fixed_rate(&stream, &settings, seed));
    let (largest, _, covered) = judge(&exact(&stream), runs);
    assert!(largest < 0.01, "largest error {largest}");
    assert!(covered > 0.85, "covered {covered}");
}

#[test]
fn what_sees_every_block_is_exact() {
    let stream = dense(golden_ids());
    let truth = exact(&stream);
    let rate = fixed_rate(&stream, &ShardsRateSettings { rate: 1.0, salts: 8 }, 1);
    let size = fixed_size(&stream, &ShardsSizeSettings { max_blocks: 40_000, salts: 3 }, 1);
    for blocks in (0..40_000).step_by(97) {
        assert_eq!(rate.all.misses(blocks), truth.all.misses(blocks), "rate 1 at {blocks}");
    }
    // Buckets are as narrow as a block while the working set fits four times the sample.
    for blocks in (0..34_000).step_by(97) {
        let gap = size.writes.misses(blocks) - truth.writes.misses(blocks);
        assert!(gap.abs() < 1e-6, "all blocks sampled, at {blocks}: {gap}");
    }
    assert_eq!(size.all.trusted_from_blocks(), 0);
}

#[test]
fn a_sample_never_holds_more_than_asked_and_says_what_it_cannot_tell() {
    let settings = ShardsSizeSettings { max_blocks: 64, salts: 2 };
    let curves = fixed_size(&zipf_stream(), &settings, 3);
    let trusted = curves.all.trusted_from_blocks();
    assert!(trusted > 10_000, "64 of 50,000 blocks cannot tell of {trusted}");
    let error = curves.all.trusted_miss_ratio(100).unwrap_err().to_string();
    assert!(error.contains("a cache of 100 blocks") && error.contains("at least 100"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_curve() {
    let stream = dense(golden_ids());
    let settings = ShardsRateSettings { rate: 0.1, salts: 4 };
    let first = fixed_rate(&stream, &settings, 5);
    assert_eq!(first, fixed_rate(&stream, &settings, 5));
    assert_ne!(first, fixed_rate(&stream, &settings, 6));
}
