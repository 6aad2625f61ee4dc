//! What a replay measures is what a live cache measures: curves, steps and write reuse, to the
//! digit, whatever ids the blocks have.

use cachewright_cache::{Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_control::{RequestMeter, SignalNeeds, Signals};
use cachewright_curve::signal::SignalSet;
use cachewright_curve::{
    CurveSet, Method, MiniSettings, PolicyCurves, ShardsRateSettings, ShardsSizeSettings,
    StackDistance,
};
use cachewright_policy::Registered;
use cachewright_policy::lru::Lru;
use cachewright_system::{BlockKind, Cuts, Recorder, Recording, interval_signals};
use cachewright_trace::merge::{MergedRequests, TenantInput, WorkloadBatch};
use cachewright_trace::{OpenOptions, formats};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Bytes, Nanos, Op, Request, Seed, TenantId};

const SHIFT: u32 = 12;
const INTERVAL_NS: u64 = 2_000_000;
const TENANTS: usize = 2;

/// Requests of one to four blocks over a volume of about 200,000, with narrow and wide trims.
fn trace(seed: u64) -> Vec<u8> {
    let (mut rng, mut text) = (Seed(seed).rng(), String::new());
    for i in 0..12_000_u64 {
        let u = rng.unit();
        let offset = ((u * u * u * 2e5) as u64 * 4096) + 512 * rng.below(8);
        let length = 512 * (1 + rng.below(24));
        text += &match rng.below(100) {
            0..55 => format!("1,R,{offset},{length},{i}\n"),
            55..97 => format!("1,W,{offset},{length},{i}\n"),
            97 => format!("1,T,{offset},{},{i}\n", length * 4),
            98 => format!("1,T,{offset},{},{i}\n", 1_u64 << 26),
            _ => format!("1,F,0,0,{i}\n"),
        };
    }
    text.into_bytes()
}

fn workload() -> MergedRequests {
    let tenant = |name: &str, seed| {
        let reader = formats::open_bytes(name, &trace(seed), &OpenOptions::default()).unwrap();
        TenantInput::reader(name, reader)
    };
    MergedRequests::open(vec![tenant("a", 1), tenant("b", 2)]).unwrap()
}

/// Everything that is measured of accesses.
fn needs(curves: CurveSet) -> SignalNeeds {
    let signals = SignalSet { reuse: true, ..SignalSet::NONE };
    SignalNeeds { curves: Some(curves), steps: 3, signals }
}

/// Every way to measure curves.
fn curve_sets() -> Vec<CurveSet> {
    let methods = [
        Method::Exact,
        Method::ShardsRate(ShardsRateSettings { rate: 0.05, salts: 4 }),
        Method::ShardsSize(ShardsSizeSettings { max_blocks: 500, salts: 3 }),
    ];
    let mini = |policy, rate| {
        let settings = MiniSettings {
            rate,
            min_sampled_blocks: 0,
            min_cache_blocks: 16,
            ..Default::default()
        };
        let sizes_blocks = &[100, 1_000, 5_000];
        let curves = PolicyCurves { policy, pairs: &[], sizes_blocks, settings };
        CurveSet::of_policy(&curves, &[30_000; TENANTS], Seed(7)).unwrap()
    };
    let simulated = [("lru", 0.1), ("s3-fifo", 0.1), ("arc", 0.02), ("sieve", 1.0)];
    let sets = methods.iter().map(|method| CurveSet::new(TENANTS, method, Seed(5)));
    sets.chain(simulated.map(|(policy, rate)| mini(policy, rate))).collect()
}

/// The signals of each interval as a live cache measures them, and those of the rest.
fn live(curves: CurveSet, requests: &WorkloadBatch, intervals: usize) -> Vec<Signals> {
    let signals = needs(curves).meter(TENANTS, INTERVAL_NS).unwrap();
    let mut meter = RequestMeter::new(signals, SHIFT);
    let mut measured = Vec::new();
    for at in 0..requests.len() {
        let request = request(requests, at);
        while request.time.0 >= (measured.len() as u64 + 1) * INTERVAL_NS {
            measured.push(meter.end_interval());
        }
        meter.request(&request, request.time.0);
    }
    while measured.len() < intervals {
        measured.push(meter.end_interval());
    }
    measured
}

fn request(requests: &WorkloadBatch, at: usize) -> Request {
    Request {
        time: Nanos(requests.time_ns[at]),
        offset: Bytes(requests.offset_bytes[at]),
        length: Bytes(requests.length_bytes[at]),
        op: requests.op[at],
        tenant: TenantId(requests.tenant[at]),
    }
}

fn recorded() -> (Recording, WorkloadBatch) {
    let recorder = Recorder::new(TENANTS, BlockKind::Split { shift: SHIFT }, true, u64::MAX);
    let recording = recorder.with_bytes().record(&mut workload(), |_| true).unwrap();
    let (mut requests, mut stream) = (WorkloadBatch::default(), workload());
    while stream.read(&mut requests, 1 << 20).unwrap() > 0 {}
    (recording, requests)
}

#[test]
fn a_replay_and_a_live_cache_measure_the_same_signals() {
    let (recording, requests) = recorded();
    let cuts = Cuts::new(&recording, INTERVAL_NS, 0);
    for (replayed, lived) in curve_sets().into_iter().zip(curve_sets()) {
        let meter = needs(replayed).meter(TENANTS, INTERVAL_NS).unwrap();
        let replayed = interval_signals(&recording, &cuts, meter);
        let lived = live(lived, &requests, replayed.len());
        assert_eq!(replayed.len(), 5);
        let name = format!("{:?}", replayed[0].curves[0].all.provenance());
        for (interval, (replayed, lived)) in replayed.iter().zip(&lived).enumerate() {
            assert!(replayed.curves[1].all.accesses() > 1_000, "{name}");
            assert_eq!(replayed.curves, lived.curves, "{name}, interval {interval}");
            assert_eq!(replayed.steps, lived.steps, "{name}, interval {interval}");
            assert_eq!(replayed.reuse, lived.reuse, "{name}, interval {interval}");
        }
    }
}

#[test]
fn curves_of_a_live_cache_are_right_beyond_its_own_size() {
    const BLOCKS: u64 = 120_000;
    const READS: u64 = 1_500_000;
    let engine = Engine::new(1, &Quotas::Shared(20_000), WriteMode::WriteBack, |_, capacity| {
        Lru::new(capacity, &NoSettings {}, Seed(1))
    });
    let (mut cache, mut plan) = (Cache::new(engine, SHIFT), Plan::default());
    let method = Method::ShardsSize(ShardsSizeSettings::default());
    let curves = Some(CurveSet::new(1, &method, Seed(2)));
    let needs = SignalNeeds { curves, ..SignalNeeds::default() };
    let mut meter = RequestMeter::new(needs.meter(1, 0).unwrap(), SHIFT);
    let (mut rng, mut exact) = (Seed(3).rng(), StackDistance::new());
    for time in 0..READS {
        // A third of the reads go to a hot quarter, the rest to a volume six times the cache.
        let number = if rng.below(3) == 0 { rng.below(BLOCKS / 4) } else { rng.below(BLOCKS) };
        let (offset, length) = (Bytes(number << SHIFT), Bytes(1 << SHIFT));
        let (time, tenant) = (Nanos(time), TenantId(0));
        let request = Request { time, offset, length, op: Op::Read, tenant };
        cache.on(&request, &mut plan);
        meter.request(&request, time.0);
        exact.access(BlockId(number as u32), false);
    }
    assert!(cache.ids() < 25_000, "{} ids for {BLOCKS} blocks: they are recycled", cache.ids());
    let found = &meter.end_interval().curves[0].all;
    let truth = cachewright_curve::Curves::exact(exact.histogram()).all;
    for size in [10_000, 20_000, 40_000, 80_000] {
        let error = (found.miss_ratio(size) - truth.miss_ratio(size)).abs();
        assert!(
            error < 0.02,
            "at {size}: {} for {}",
            found.miss_ratio(size),
            truth.miss_ratio(size)
        );
    }
    let measured = cache.engine().counts(TenantId(0));
    let own = 1.0 - measured.hits() as f64 / READS as f64;
    assert!((truth.miss_ratio(20_000) - own).abs() < 1e-9, "the cache itself is an LRU");
}
