//! The reference rows of a drive with a data cache: what is run, and what MQSim says of it.
//!
//! Units: microseconds. A measure is the name of a value that [`run`] knows how to take.

use crate::drives::{Flow, Times, run as run_flows, small, value};
use cachewright_cache::{Engine, Quotas, WriteMode};
use cachewright_device::Device;
use cachewright_device::ssd::host::Port;
use cachewright_policy::Registered;
use cachewright_policy::lru::Lru;
use cachewright_system::ssd::{CachedParts, CachedSsd, DataCacheParams, cached};
use cachewright_types::declare::NoSettings;
use cachewright_types::{Nanos, Seed};

/// Bytes that can be addressed on the drive of the rows: 16 GiB less 7 %.
pub const SPACE: u64 = 15_977_152_512;
/// The data cache that MQSim ships.
const SHIPPED: &[(&str, &str)] = &[];
/// Memory of 25.6 GB/s.
const FAST: &[(&str, &str)] = &[("dram_rate", "1600"), ("dram_burst", "8B")];
/// State and cleaning of the rows with cleaning.
const FULL: &[(&str, &str)] =
    &[("fill", "analytic"), ("occupancy", "0.8"), ("reclaim", "greedy"), ("unwritten", "zero")];

/// A measure, its reference value and the difference allowed.
pub type Expected = (&'static str, f64, f64);

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: &'static str,
    pub drive: Vec<(&'static str, &'static str)>,
    pub cache_mib: u64,
    pub axes: Vec<(&'static str, &'static str)>,
    /// One cache for all flows, or an equal part each.
    pub shared: bool,
    pub flows: Vec<Flow>,
    pub expected: Vec<Expected>,
}

/// What a row gave.
pub struct Found {
    pub values: Vec<f64>,
    pub about: String,
    pub requests: u64,
}

fn row(id: &'static str, drive: &[(&'static str, &'static str)], flow: Flow) -> Row {
    Row {
        id,
        drive: drive.to_vec(),
        cache_mib: 256,
        axes: Vec::new(),
        shared: true,
        flows: vec![flow],
        expected: Vec::new(),
    }
}

/// The flow of the rows G: half reads of 8 KiB, nine of ten to a tenth of a twentieth.
fn g_flow() -> Flow {
    let bytes = SPACE / 20 / 8192 * 8192;
    Flow { hot: 0.1, ..Flow::uniform(8192, 0.5, 4, 200_000, bytes) }
}

fn g_rows(
    id: &'static str,
    drive: &[(&'static str, &'static str)],
    axes: &[(&'static str, &'static str)],
    means: &[(u64, f64)],
) -> Vec<Row> {
    let make = |(mib, mean): &(u64, f64)| Row {
        cache_mib: *mib,
        axes: axes.to_vec(),
        expected: vec![("mean", *mean, 0.05)],
        ..row(id, drive, g_flow())
    };
    means.iter().map(make).collect()
}

/// Every row.
pub fn rows() -> Vec<Row> {
    let write = Flow::uniform(4096, 0.0, 1, 100_000, SPACE);
    let b3 = vec![
        ("mean", 105.874, 0.05),
        ("p50", 21.822, 0.001),
        ("p95", 567.397, 0.05),
        ("p99", 631.717, 0.05),
        ("max", 697.183, 0.05),
    ];
    let i1 = vec![("mean", 105.825, 0.05), ("p50", 12.649, 0.05), ("min", 1.494, 0.001)];
    let span = SPACE * 8 / 10 / 8192 * 8192;
    let b6 = vec![("iops", 1_179.7, 0.05), ("mean", 13_563.047, 0.05), ("waf", 2.56, 0.05)];
    let b7 = vec![
        ("read mean", 11_683.646, 0.05),
        ("write mean", 4_926.152, 0.05),
        ("iops", 1_924.0, 0.05),
    ];
    let mut rows = vec![
        Row { expected: b3, ..row("B3", SHIPPED, write) },
        Row { expected: i1, ..row("I1", FAST, write) },
        Row { expected: b6, ..row("B6", FULL, Flow::uniform(4096, 0.0, 16, 1_000_000, span)) },
        Row { expected: b7, ..row("B7", FULL, Flow::uniform(8192, 0.5, 16, 400_000, span)) },
    ];
    let fill = &[("read_fill", "true")];
    let back = &[("read_fill", "true"), ("write_back", "on-eviction")];
    let g1 = [(1, 279.0), (4, 268.0), (16, 231.0), (64, 205.0), (256, 205.0)];
    rows.extend(g_rows("G1", SHIPPED, &[], &g1));
    rows.extend(g_rows("G2", SHIPPED, fill, &[(4, 278.0), (16, 262.0), (64, 196.0), (256, 196.0)]));
    rows.extend(g_rows("G3", FAST, fill, &[(16, 254.0), (64, 174.0), (256, 174.0)]));
    rows.extend(g_rows("G4", SHIPPED, back, &[(16, 263.0), (64, 182.0), (256, 149.0)]));
    rows.extend(g_rows("G5", FAST, back, &[(16, 238.0), (64, 108.0), (256, 15.8)]));
    rows.extend(h_rows());
    rows
}

/// Two tenants: one hot and cold over little, one streaming writes of 8 KiB; in halves of the
/// addresses. Each has open blocks of its own, as in MQSim, so that consecutive pages of the stream
/// are programmed two planes at once; and the window in which a page is hot does not end, as it
/// hardly does in MQSim for a tenant beside a busier one: at its end only the pages of the tenant
/// whose write comes next are forgotten. Rows with a letter undo first the one, then the other.
fn h_rows() -> Vec<Row> {
    let half = SPACE / 2 / 8192 * 8192;
    let span = half / 50 / 8192 * 8192;
    let hot = Flow { hot: 0.1, ..Flow::uniform(8192, 0.5, 2, 100_000, span) };
    let region = (half, half);
    let stream =
        Flow { tenant: 1, region, streaming: true, ..Flow::uniform(8192, 0.0, 4, 100_000, half) };
    let make = |id, shared, separation, window, values: [f64; 4], limits: [f64; 4]| {
        let names = ["mean", "read mean", "write mean", "other mean"];
        let expected = (0..4).map(|at| (names[at], values[at], limits[at])).collect();
        Row {
            cache_mib: 64,
            axes: vec![("read_fill", "true"), ("hot_window", window)],
            shared,
            flows: vec![hot, stream],
            expected,
            ..row(id, &[("separation", separation)], hot)
        }
    };
    let (shared, equal) = ([201.0, 162.0, 241.0, 335.0], [165.0, 200.0, 130.0, 346.0]);
    // MQSim also writes a page that a tenant's write drives out as that tenant's own page.
    let (near, free) = ([0.05, 0.05, 0.07, 0.05], [f64::INFINITY; 4]);
    let (own, any, never, second) = ("by-tenant", "2r", "1000s", "1s");
    vec![
        make("H", true, own, never, shared, near),
        make("H'", false, own, never, equal, [0.05; 4]),
        make("Hw", true, own, second, shared, free),
        make("Hw'", false, own, second, equal, free),
        make("Hb", true, any, second, shared, free),
        make("Hb'", false, any, second, equal, free),
    ]
}

/// The drive of a row.
pub fn drive(row: &Row) -> CachedSsd<Lru> {
    let mut pairs = vec![("unwritten", "allocate")];
    pairs.extend(row.drive.iter().copied());
    let params = small(&pairs);
    let pages = (row.cache_mib << 20) / params.page.0;
    let tenants = row.flows.len();
    let quotas = if row.shared {
        Quotas::Shared(pages as u32)
    } else {
        Quotas::PerTenant(vec![(pages / tenants as u64) as u32; tenants])
    };
    let make = |_: usize, capacity: u32| Lru::new(capacity, &NoSettings::default(), Seed(0));
    let engine = Engine::new(tenants, &quotas, WriteMode::WriteBack, make);
    let pairs: Vec<(String, cachewright_types::Value)> =
        row.axes.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect();
    let axes = DataCacheParams::checked(&pairs).unwrap();
    let ports = vec![Port { queue_depth: 65_535, weight: 1 }; tenants];
    cached(CachedParts { params: &params, ports: &ports, engine, axes, seed: Seed(1) }).unwrap()
}

/// Runs a row and takes its measures.
pub fn run(row: &Row) -> Found {
    let mut drive = drive(row);
    assert_eq!(drive.capacity().0, SPACE, "the space of the rows");
    let times = run_flows(&mut drive, &row.flows, 7);
    assert_eq!(drive.audit(), Ok(()), "row {}", row.id);
    let end = Nanos(times.iter().map(|times| times.end).max().unwrap_or(0));
    let report = drive.report(end);
    let stats = report.flash().unwrap();
    let first = &times[0];
    let us = |value: u64| value as f64 / 1e3;
    let written = stats.counters.programs.host.max(1) as f64;
    let take = |name: &str| match name {
        "mean" => Times::mean(&first.all) / 1e3,
        "read mean" => Times::mean(&first.reads) / 1e3,
        "write mean" => Times::mean(&first.writes) / 1e3,
        "other mean" => Times::mean(&times[1].all) / 1e3,
        "p50" => us(Times::quantile(&first.all, 0.5)),
        "p95" => us(Times::quantile(&first.all, 0.95)),
        "p99" => us(Times::quantile(&first.all, 0.99)),
        "min" => us(Times::quantile(&first.all, 0.0)),
        "max" => us(Times::quantile(&first.all, 1.0)),
        "iops" => first.all.len() as f64 / (first.end as f64 / 1e9),
        "waf" => (written + stats.counters.programs.moves as f64) / written,
        other => panic!("no measure `{other}`"),
    };
    let values = row.expected.iter().map(|(name, ..)| take(name)).collect();
    let cache = drive.inside().stats();
    let counts = drive.inside().engine().counts(cachewright_types::TenantId(0));
    let about = format!(
        "{} MiB: hits {:.3}, {} destaged, {} held, {} programs, {} moved; read {:.1} us, write \
         {:.1} us",
        row.cache_mib,
        counts.hit_ratio(),
        cache.destaged_pages,
        cache.held_writes,
        stats.counters.programs.host,
        stats.moved_pages,
        Times::mean(&first.reads) / 1e3,
        Times::mean(&first.writes) / 1e3,
    );
    Found { values, about, requests: times.iter().map(|times| times.all.len() as u64).sum() }
}
