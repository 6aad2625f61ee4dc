//! How long curves take: 20 M Zipf(1.0) accesses over 1 M blocks, CPU seconds of one thread.
//!
//! For: `cargo run --release -p cachewright-curve --example curve_speed [accesses] [blocks]`.
//! Must never know: traces. Peak memory is the process's own, so pass the name of one method as a
//! third argument to see it alone.

use cachewright_curve::{
    BlockName, Curve, CurveSet, Curves, Method, MiniSettings, MiniSim, PolicyCurves,
    ShardsRateSettings, ShardsSizeSettings, StackDistance,
};
use cachewright_policy::{Access, Verdict, registry};
use cachewright_testkit::streams::{ZipfBlocks, dense, keys_of};
use cachewright_types::{BlockId, BlockKey, Seed, TenantId, VolumeKeys};

/// CPU seconds this thread has used (Linux), or 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    nanos / 1e9
}

fn peak_mib() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("");
    line.trim().to_owned()
}

fn timed(name: &str, exact: Option<&Curve>, run: impl FnOnce() -> Curve) -> Curve {
    let start = cpu_seconds();
    let curve = run();
    let seconds = cpu_seconds() - start;
    let rate = curve.accesses() as f64 / seconds / 1e6;
    print!("{name:24} {seconds:7.3} s  {rate:7.1} M/s  {:>8} knots", curve.sizes().len());
    if let Some(exact) = exact {
        let sizes: Vec<u32> = (0..200).map(|i| (1.072_f64.powi(i)) as u32).collect();
        let error = |from: u32| {
            let gap = |&size: &u32| (curve.miss_ratio(size) - exact.miss_ratio(size)).abs();
            sizes.iter().filter(|&&size| size >= from).map(gap).fold(0.0, f64::max)
        };
        let from = curve.trusted_from_blocks();
        print!("  error {:.4}, from {from} blocks {:.4}", error(1), error(from));
    }
    println!("  peak {}", peak_mib());
    curve
}

/// The curve of a stream as a lane of a replay measures it: by ids, with keys beside them.
fn recorded(mut set: CurveSet, stream: &[BlockId], keys: &[BlockKey]) -> Curve {
    for &id in stream {
        set.access(TenantId(0), BlockName::Recorded { id, keys, index: id.0 }, false);
    }
    set.end_window().remove(0).all
}

/// The same as a live cache measures it: by keys alone.
fn keyed(mut set: CurveSet, stream: &[BlockId], keys: &[BlockKey]) -> Curve {
    for id in stream {
        set.access(TenantId(0), BlockName::Keyed(keys[id.index()]), false);
    }
    set.end_window().remove(0).all
}

/// Misses of the full simulation.
fn simulated(policy: &str, size: u32, blocks: u32, stream: &[BlockId]) -> u64 {
    let Ok(mut cache) = registry::boxed(policy, &[], size, Seed(1)) else { return 0 };
    cache.reserve_ids(blocks as usize);
    stream.iter().map(|&b| u64::from(cache.access(Access::read(b)) != Verdict::Hit)).sum()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let accesses: usize = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(20_000_000);
    let blocks: u32 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1_000_000);
    let only = arguments.next();
    let selected = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let mut zipf = ZipfBlocks::new(blocks, Seed(1));
    let ranks: Vec<BlockId> = (0..accesses).map(|_| zipf.draw()).collect();
    let stream = dense(ranks.iter().map(|block| u64::from(block.0)));
    let keys = keys_of(&ranks, VolumeKeys::new(TenantId(0), 0));
    drop((zipf, ranks));
    println!("stream of {accesses} accesses; peak {}", peak_mib());
    let mut exact = None;
    if selected("exact-one") {
        timed("exact, one at a time", None, || {
            let mut stack = StackDistance::new();
            for &block in &stream {
                stack.access(block, false);
            }
            Curves::exact(stack.histogram()).all
        });
    }
    if selected("exact") {
        exact = Some(timed("exact", None, || {
            let mut stack = StackDistance::new();
            stack.access_all(&stream, false);
            let bytes = stack.memory_bytes() as f64 / f64::from(stack.distinct());
            println!("exact: {bytes:.1} bytes per distinct block");
            Curves::exact(stack.histogram()).all
        }));
    }
    let methods = [
        ("shards-rate-0.01", Method::ShardsRate(ShardsRateSettings::default())),
        (
            "shards-rate-0.001",
            Method::ShardsRate(ShardsRateSettings { rate: 0.001, ..Default::default() }),
        ),
        ("shards-size-8192", Method::ShardsSize(ShardsSizeSettings::default())),
    ];
    for (name, method) in methods.iter().filter(|(name, _)| selected(name)) {
        let set = || CurveSet::new(1, method, Seed(7));
        timed(name, exact.as_ref(), || recorded(set(), &stream, &keys));
        timed(&format!("{name}, keyed"), exact.as_ref(), || keyed(set(), &stream, &keys));
    }
    for policy in ["lru", "s3-fifo"] {
        if selected(&format!("mini-{policy}")) && registry::entry(policy).is_ok() {
            miniature(policy, blocks, &stream, &keys);
        }
    }
}

/// Times miniature simulations of a policy and prints them beside full ones.
fn miniature(policy: &str, blocks: u32, stream: &[BlockId], keys: &[BlockKey]) {
    for sizes in [vec![10_000, 100_000], vec![20_000, 50_000, 100_000, 200_000, 500_000]] {
        let title = format!("mini-{policy}, {} sizes", sizes.len());
        let settings = MiniSettings::default();
        let mini = MiniSim::new(policy, &[], &sizes, u64::from(blocks), &settings, Seed(7));
        let Ok(mini) = mini else { continue };
        println!("{title}: rates {:?}", mini.rates());
        let curves = PolicyCurves { policy, pairs: &[], sizes_blocks: &sizes, settings };
        let set = || CurveSet::of_policy(&curves, &[u64::from(blocks)], Seed(7));
        let Ok((by_id, by_key)) = set().and_then(|first| Ok((first, set()?))) else { continue };
        let curve = timed(&title, None, || recorded(by_id, stream, keys));
        timed(&format!("{title}, keyed"), None, || keyed(by_key, stream, keys));
        for size in sizes {
            let (low, high) = curve.interval(size);
            let ratio = |misses: f64| misses / curve.accesses() as f64;
            let truth = ratio(simulated(policy, size, blocks, stream) as f64);
            println!("  {size}: {:.4}..{:.4}, full {truth:.4}", ratio(low), ratio(high));
        }
    }
}
