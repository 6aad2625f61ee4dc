//! Curves per tenant and window: each tenant alone, each window its own accesses, stacks kept.

use crate::{key, keyed};
use cachewright_curve::{
    BlockName, CurveSet, Curves, Method, MiniSettings, PolicyCurves, ShardsRateSettings,
    ShardsSizeSettings, StackDistance,
};
use cachewright_testkit::streams::{ZipfBlocks, dense};
use cachewright_types::{BlockId, BlockKey, Seed, TenantId};

const WINDOW: usize = 30_000;

/// (tenant, block) of two tenants that take turns unevenly and use the same ids.
fn stream(windows: usize) -> Vec<(TenantId, BlockId)> {
    let (mut first, mut second) =
        (ZipfBlocks::new(4_000, Seed(1)), ZipfBlocks::new(9_000, Seed(2)));
    let draw = |i: usize| {
        if i.is_multiple_of(3) { (TenantId(0), first.draw()) } else { (TenantId(1), second.draw()) }
    };
    (0..windows * WINDOW).map(draw).collect()
}

/// Each window's exact curves of one tenant, measured alone.
fn alone(stream: &[(TenantId, BlockId)], tenant: TenantId) -> Vec<Curves> {
    let mut stack = StackDistance::new();
    let windows = stream.chunks(WINDOW).map(|window| {
        for (_, block) in window.iter().filter(|(owner, _)| *owner == tenant) {
            stack.access(*block, false);
        }
        Curves::exact(&stack.take_histogram())
    });
    windows.collect()
}

fn together(stream: &[(TenantId, BlockId)], mut set: CurveSet) -> Vec<Vec<Curves>> {
    let windows = stream.chunks(WINDOW).map(|window| {
        window.iter().for_each(|(tenant, block)| set.access(*tenant, keyed(*block), false));
        set.end_window()
    });
    windows.collect()
}

#[test]
fn exact_windows_are_those_of_each_tenant_alone() {
    let stream = stream(3);
    let set = CurveSet::new(2, &Method::Exact, Seed(1));
    let windows = together(&stream, set);
    for tenant in [TenantId(0), TenantId(1)] {
        for (window, alone) in windows.iter().zip(alone(&stream, tenant)) {
            assert_eq!(window[tenant.index()], alone);
        }
    }
    assert!(windows[1][0].all.misses(4_000) < 1_000.0, "the second window does not begin cold");
}

#[test]
fn sampled_windows_are_near_the_exact_ones() {
    let stream = stream(3);
    let truth = [alone(&stream, TenantId(0)), alone(&stream, TenantId(1))];
    let rate = Method::ShardsRate(ShardsRateSettings { rate: 0.2, salts: 4 });
    let size = Method::ShardsSize(ShardsSizeSettings { max_blocks: 500, salts: 4 });
    for method in [rate, size] {
        let windows = together(&stream, CurveSet::new(2, &method, Seed(1)));
        for (number, window) in windows.iter().enumerate() {
            for (curves, truth) in window.iter().zip(&truth) {
                let truth = &truth[number].all;
                assert_eq!(curves.all.accesses(), truth.accesses());
                for size in [1_000, 2_000, 3_500] {
                    let error = (curves.all.miss_ratio(size) - truth.miss_ratio(size)).abs();
                    assert!(error < 0.05, "{method:?}, window {number}, {size}: {error}");
                }
            }
        }
    }
}

#[test]
fn simulated_windows_add_up_to_one_long_one() {
    let stream = stream(2);
    let simulation = PolicyCurves {
        policy: "lru",
        pairs: &[],
        sizes_blocks: &[100, 1_000],
        settings: MiniSettings { rate: 1.0, ..MiniSettings::default() },
    };
    let make = || CurveSet::of_policy(&simulation, &[4_000, 9_000], Seed(1)).unwrap();
    let parts = together(&stream, make());
    let mut whole = make();
    stream.iter().for_each(|(tenant, block)| whole.access(*tenant, keyed(*block), false));
    for (tenant, whole) in whole.end_window().iter().enumerate() {
        for size in [100, 1_000] {
            let sum: f64 = parts.iter().map(|window| window[tenant].all.misses(size)).sum();
            assert_eq!(sum, whole.all.misses(size), "tenant {tenant} at {size}");
        }
    }
}

#[test]
fn trims_and_unknown_tenants_do_no_harm() {
    for method in [
        Method::Exact,
        Method::ShardsRate(ShardsRateSettings { rate: 1.0, salts: 1 }),
        Method::ShardsSize(ShardsSizeSettings { max_blocks: 100, salts: 1 }),
    ] {
        let mut set = CurveSet::new(1, &method, Seed(1));
        for id in [0, 1, 0] {
            set.access(TenantId(0), keyed(BlockId(id)), false);
        }
        set.remove(TenantId(0), keyed(BlockId(0)));
        set.remove(TenantId(0), keyed(BlockId(77)));
        set.remove(TenantId(9), keyed(BlockId(0)));
        set.access(TenantId(9), keyed(BlockId(0)), false);
        set.access(TenantId(0), keyed(BlockId(0)), true);
        let curves = set.end_window().remove(0);
        assert_eq!(curves.all.accesses(), 4, "{method:?}");
        assert_eq!(curves.reads.misses(10), 2.0, "{method:?}");
        assert_eq!(curves.writes.misses(10), 1.0, "a trimmed block is gone: {method:?}");
    }
}

/// Curves of windows over blocks named as `stream` has them by id; one access of a hundred is a
/// trim.
fn curves_of<'a>(stream: impl Iterator<Item = BlockName<'a>>, mut set: CurveSet) -> Vec<Curves> {
    let (mut rng, mut curves) = (Seed(6).rng(), Vec::new());
    for (index, name) in (1..).zip(stream) {
        match rng.below(100) {
            0 => set.remove(TenantId(0), name),
            kind => set.access(TenantId(0), name, kind < 30),
        }
        if index % WINDOW == 0 {
            curves.extend(set.end_window());
        }
    }
    curves
}

/// Asserts that blocks of a recording measure as their keys do. Ids come in the order of first
/// uses, as in a recording, or at random.
fn assert_same(make: impl Fn() -> CurveSet, name: &str) {
    let mut draws = ZipfBlocks::new(4_000, Seed(5));
    let raw: Vec<BlockId> = (0..2 * WINDOW).map(|_| draws.draw()).collect();
    let ordered = dense(raw.iter().map(|block| u64::from(block.0)));
    let keys: Vec<BlockKey> = (0..4_000).map(|id| key(BlockId(id))).collect();
    for stream in [ordered, raw] {
        let recorded = |id: &BlockId| BlockName::Recorded { id: *id, keys: &keys, index: id.0 };
        let recorded = curves_of(stream.iter().map(recorded), make());
        let by_key = curves_of(stream.iter().map(|id| keyed(*id)), make());
        assert_eq!(recorded, by_key, "{name}");
        assert_eq!(recorded.len(), 2);
    }
}

#[test]
fn recorded_blocks_and_keys_measure_the_same() {
    let rate = |rate, salts| Method::ShardsRate(ShardsRateSettings { rate, salts });
    let size = Method::ShardsSize(ShardsSizeSettings { max_blocks: 300, salts: 4 });
    for method in [rate(0.1, 8), rate(0.4, 4), rate(1.0, 1), size] {
        assert_same(|| CurveSet::new(1, &method, Seed(1)), &format!("{method:?}"));
    }
    let sizes: Vec<u32> = vec![20, 100, 1_000, 2_000];
    for min_cache_blocks in [1, 4, 300] {
        let settings = MiniSettings {
            rate: 0.1,
            min_cache_blocks,
            min_sampled_blocks: 0,
            ..Default::default()
        };
        let curves = PolicyCurves { policy: "s3-fifo", pairs: &[], sizes_blocks: &sizes, settings };
        let make = || CurveSet::of_policy(&curves, &[4_000], Seed(1)).expect("registered");
        assert_same(make, &format!("{min_cache_blocks}"));
    }
}
