//! Simulated requests per second of real time, of the flash alone and of the whole drive.
//!
//! For: `cargo run --release -p cachewright-device --example ssd_speed -- [REQUESTS [ROW]]`, ROW
//! being a part of a row's name. Must never know: what a device decides. Units: requests per second
//! of processor time in the loop, events per request, simulated microseconds, MiB of memory at
//! most so far. Each row is a closed loop of random requests at a queue depth; filling the device
//! comes before it and is timed apart.

use cachewright_device::ssd::flash::{
    Backend, DoneTransaction, FlashError, FlashParams, FlashStats, InitialFill, MapCache, PageOp,
    Transaction,
};
use cachewright_device::ssd::{Ssd, SsdParams};
use cachewright_device::{Command, Completion, Device};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Op, Rng, Seed, SettingError, TenantId};
use std::time::Instant;

/// One row.
struct Case {
    name: &'static str,
    params: FlashParams,
    write_share: f64,
    sectors: u64,
    depth: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let requests: u64 = std::env::args().nth(1).map_or(Ok(2_000_000), |word| word.parse())?;
    println!(
        "{:44} {:>9} {:>10} {:>9} {:>11} {:>9}",
        "closed loop, uniform random", "fill ms", "kreq/s", "events", "mean us", "peak MiB"
    );
    let part = std::env::args().nth(2).unwrap_or_default();
    for case in cases().iter().filter(|case| case.name.contains(&part)) {
        flash(case, requests)?;
    }
    let small = [("channels", "4"), ("chips", "2"), ("dies", "1"), ("blocks", "512")];
    // The same channels and dies, and a quarter or an eighth of the blocks: what does size cost?
    let drives = [
        ("drive, 512 GB, 4K read QD16", &[][..]),
        ("drive, 128 GB on as many dies, 4K read QD16", &[("blocks", "512")][..]),
        ("drive, 64 GB on as many dies, 4K read QD16", &[("blocks", "256")][..]),
        ("drive, 16 GiB, 4K read QD16", &small[..]),
    ];
    for (name, pairs) in drives.iter().filter(|(name, _)| name.contains(&part)) {
        drive(name, pairs, requests)?;
    }
    Ok(())
}

fn cases() -> Vec<Case> {
    let fill = InitialFill::Analytic { occupancy: 0.7 };
    let large = FlashParams { fill, ..FlashParams::mqsim() };
    let small = FlashParams { fill, ..FlashParams::small() };
    let full =
        FlashParams { fill: InitialFill::Analytic { occupancy: 0.8 }, ..FlashParams::small() };
    let (entry_bytes, stored_bytes) = (8, 8);
    let (bytes, tenants, read_bytes) = (2 << 20, 1, 512);
    let map = MapCache::Cached { bytes, entry_bytes, stored_bytes, tenants, read_bytes };
    let mapped = FlashParams { map, ..large.clone() };
    let case = |name, params: &FlashParams, write_share, sectors, depth| Case {
        name,
        params: params.clone(),
        write_share,
        sectors,
        depth,
    };
    vec![
        case("flash, 512 GB, 4K read QD16", &large, 0.0, 0xFF, 16),
        case("flash, 512 GB, 4K read QD256", &large, 0.0, 0xFF, 256),
        case("flash, 512 GB, 4K read QD16, 2 MiB map", &mapped, 0.0, 0xFF, 16),
        case("flash, 512 GB, 8K write QD16", &large, 1.0, 0xFFFF, 16),
        case("flash, 16 GiB, 4K read QD16", &small, 0.0, 0xFF, 16),
        case("flash, 16 GiB, 8K write QD16, cleaning", &full, 1.0, 0xFFFF, 16),
        case("flash, 16 GiB, 8K half writes QD16, cleaning", &full, 0.5, 0xFFFF, 16),
    ]
}

fn flash(case: &Case, requests: u64) -> Result<(), FlashError> {
    let origin = Instant::now();
    let start = processor_s(origin);
    let mut backend = Backend::new(&case.params, Seed(1))?;
    let filled = processor_s(origin) - start;
    let mut rng = Seed(2).rng();
    let InitialFill::Analytic { occupancy } = case.params.fill else { return Ok(()) };
    let pages = (f64::from(backend.logical_pages(0)) * occupancy) as u64;
    let next = |rng: &mut Rng, tag: u64| Transaction {
        tag,
        tenant: TenantId(0),
        group: 0,
        op: if rng.unit() < case.write_share { PageOp::Write } else { PageOp::Read },
        page: rng.below(pages) as u32,
        sectors: case.sectors,
    };
    let start = processor_s(origin);
    let mut done: Vec<DoneTransaction> = Vec::new();
    for tag in 0..u64::from(case.depth) {
        backend.submit(Nanos(0), &[next(&mut rng, tag)]);
    }
    let (mut completed, mut waited, mut now) = (0_u64, 0_u64, Nanos(0));
    while completed < requests {
        let Some(due) = backend.next_due() else { break };
        backend.advance(due, &mut done);
        for item in done.drain(..) {
            completed += 1;
            waited += item.spent.total_ns();
            now = item.finished;
            backend.submit(item.finished, &[next(&mut rng, completed)]);
        }
    }
    let stats: FlashStats = backend.stats(now);
    let events = stats.counters.events as f64 / completed as f64;
    let speed = completed as f64 / (processor_s(origin) - start);
    row(case.name, filled, speed, events, waited as f64 / completed as f64);
    Ok(())
}

/// A closed loop of reads of the whole drive, host interface and link included.
fn drive(name: &str, pairs: &[(&str, &str)], requests: u64) -> Result<(), SettingError> {
    let mut params = SsdParams::default();
    let base = [("mapping", "ideal"), ("fill", "analytic"), ("occupancy", "0.7")];
    for (key, text) in base.iter().chain(pairs) {
        params.set(key, &cachewright_types::Value::read(text))?;
    }
    let origin = Instant::now();
    let start = processor_s(origin);
    let mut ssd = Ssd::new(&params, &[], Seed(1))?;
    let filled = processor_s(origin) - start;
    let mut rng = Seed(2).rng();
    let slots = (ssd.capacity().0 as f64 * 0.7) as u64 / 4096;
    let mut next = |tag: u64| {
        let (offset, length) = (Bytes(rng.below(slots) * 4096), Bytes(4096));
        Command { tag, op: Op::Read, offset, length, tenant: TenantId(0) }
    };
    let start = processor_s(origin);
    let mut done: Vec<Completion> = Vec::new();
    (0..16).for_each(|tag| ssd.submit(Nanos(0), next(tag)));
    let (mut completed, mut waited, mut now) = (0_u64, 0_u64, Nanos(0));
    while completed < requests {
        let Some(due) = ssd.next_due() else { break };
        ssd.advance(due, &mut done);
        for item in done.drain(..) {
            completed += 1;
            waited += item.spent.total_ns();
            now = item.finished;
            ssd.submit(now, next(completed));
        }
    }
    let events = ssd.inside().stats(now).counters.events as f64 / completed as f64;
    let speed = completed as f64 / (processor_s(origin) - start);
    row(name, filled, speed, events, waited as f64 / completed as f64);
    Ok(())
}

fn row(name: &str, filled_s: f64, speed: f64, events: f64, mean_ns: f64) {
    println!(
        "{name:44} {:9.1} {:10.0} {events:9.2} {:11.1} {:9.0}",
        filled_s * 1e3,
        speed / 1e3,
        mean_ns / 1e3,
        peak_mib()
    );
}

/// Time the process has worked on a processor, in seconds by the hundredth; wall time where the
/// system does not say.
fn processor_s(origin: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    match ticks[..] {
        [user, system] => (user + system) / 100.0,
        _ => origin.elapsed().as_secs_f64(),
    }
}

/// The most memory the process has held, as the system counts it; 0 where it does not say.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
