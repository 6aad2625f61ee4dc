//! LRU rows of the published miss counts of the CloudPhysics sample, from one pass each.

use cachewright_curve::{Curve, Curves, StackDistance};
use cachewright_testkit::reference_data;
use cachewright_testkit::streams::dense;

const SAMPLE: &str = "traces/public/cloudphysics-libcachesim/cloudPhysicsIO.oracleGeneral.bin.zst";

/// (sector, bytes) of each request, or nothing without the reference data.
fn requests() -> Option<Vec<(u64, u64)>> {
    let file = std::fs::File::open(reference_data(SAMPLE)?).unwrap();
    let bytes = zstd::decode_all(file).unwrap();
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
    let records = bytes.chunks_exact(24);
    Some(records.map(|record| (number(&record[4..12]), number(&record[12..16]))).collect())
}

fn lru_curve(ids: impl Iterator<Item = u64>) -> Curve {
    let mut stack = StackDistance::new();
    dense(ids).into_iter().for_each(|block| {
        stack.access(block, false);
    });
    Curves::exact(stack.histogram()).all
}

#[test]
fn both_views_of_the_sample_have_the_published_misses() {
    let Some(requests) = requests() else { return };
    let unit = lru_curve(requests.iter().map(|(sector, _)| *sector));
    assert_eq!(unit.accesses(), 113_872);
    for (size, misses) in [
        (100, 100_215.0),
        (500, 95_398.0),
        (1_000, 94_823.0),
        (2_000, 94_189.0),
        (5_000, 91_527.0),
        (10_000, 79_438.0),
        (20_000, 72_053.0),
        (40_000, 48_994.0),
    ] {
        assert_eq!(unit.misses(size), misses, "{size} requested sectors");
    }
    let blocks = requests.iter().flat_map(|(sector, bytes)| {
        let first = sector * 512;
        first / 4096..=(first + bytes - 1) / 4096
    });
    let split = lru_curve(blocks);
    assert_eq!(split.accesses(), 1_182_153);
    for (size, misses) in [
        (1_000, 1_054_428.0),
        (4_096, 1_037_394.0),
        (16_384, 1_016_621.0),
        (32_768, 997_636.0),
        (65_536, 871_472.0),
        (131_072, 594_502.0),
        (262_144, 268_289.0),
    ] {
        assert_eq!(split.misses(size), misses, "{size} blocks of 4 KiB");
    }
}
