//! What is left of often used blocks behind a scan.

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, Verdict};
use cachewright_types::{BlockId, Seed};

const CAPACITY: u32 = 400;
const OFTEN: u32 = 100;

/// Of blocks that were read five times, those that hit behind a scan of ten times the cache.
fn left(name: &str) -> usize {
    let mut policy = boxed(name, &[], CAPACITY, Seed(1)).unwrap();
    policy.reserve_ids(OFTEN as usize + 10 * CAPACITY as usize);
    let mut read = |block: u32| policy.access(Access::read(BlockId(block))) == Verdict::Hit;
    let hits: usize = (0..5 * OFTEN).map(|place| usize::from(read(place % OFTEN))).sum();
    assert_eq!(hits, 4 * OFTEN as usize, "{name}");
    (OFTEN..OFTEN + 10 * CAPACITY).for_each(|block| assert!(!read(block), "{name}"));
    (0..OFTEN).filter(|block| read(*block)).count()
}

#[test]
fn policies_that_keep_scans_out_keep_what_is_used_often() {
    for name in ["s3-fifo", "arc", "w-tinylfu"] {
        assert!(left(name) >= 95, "{name}: {}", left(name));
    }
    for name in ["lru", "fifo"] {
        assert_eq!(left(name), 0, "{name}");
    }
}
