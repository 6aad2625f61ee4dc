//! What a live cache costs: memory per resident block, decisions per second, the slowest decision.
//!
//! For: `cargo run --release -p cachewright-cache --example live_cost [blocks] [memory] [slowest]
//! [turns] [policy ...]`, the tables of `benches/memory.md`. Must never know: traces. One tenant;
//! reads of one block, a third of them writes, over a volume of 8 TiB: half go to a hot set of 1.5
//! times the cache, half to blocks drawn at random from 20 times the cache. Decisions go from a
//! request to its plan, through the index. Memory is what the allocator was asked for; `memory`
//! measures it alone. `slowest` times each of ten million decisions, `slowest=N` of N, from an
//! empty cache on; a decision counts with the least of three equal runs, because the machine's
//! interrupts are in each of them. `turns` lets eight tenants hold 93 % of the blocks one after the
//! other.

use cachewright_cache::{Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_policy::{Entry, Need, PolicyVisitor, Registered, entries, visit};
use cachewright_types::{Bytes, Nanos, Op, RegistryError, Request, Rng, Seed, TenantId};
use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of the volume.
const VOLUME: u64 = 8 << 40;
const BLOCK_SHIFT: u32 = 12;
/// Decisions of which the slowest is reported, where the command names no number.
const DECISIONS: usize = 10_000_000;
/// Tenants that hold most of the cache in turn.
const TENANTS: usize = 8;

fn bytes_in_use() -> i64 {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

/// Nanoseconds of processor time that this thread has used.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The requests of the workload, one after the other.
struct Requests {
    rng: Rng,
    blocks: u64,
}

impl Requests {
    fn new(blocks: u32) -> Requests {
        Requests { rng: Seed(2).rng(), blocks: u64::from(blocks) }
    }

    fn next(&mut self) -> Request {
        let span = if self.rng.below(2) == 0 { self.blocks * 3 / 2 } else { self.blocks * 20 };
        // Spread over the volume by an odd factor.
        let number =
            self.rng.below(span).wrapping_mul(0x9E37_79B9_7F4A_7C15) % (VOLUME >> BLOCK_SHIFT);
        let op = if self.rng.below(3) == 0 { Op::Write } else { Op::Read };
        let (offset, length) = (Bytes(number << BLOCK_SHIFT), Bytes(1 << BLOCK_SHIFT));
        Request { time: Nanos(0), offset, length, op, tenant: TenantId(0) }
    }
}

/// An empty cache whose memory is reserved.
fn cache<P: Registered>(settings: &P::Settings, tenants: usize, quotas: &Quotas) -> Cache<P> {
    let make = |_, capacity| P::new(capacity, settings, Seed(1));
    let mut cache =
        Cache::new(Engine::new(tenants, quotas, WriteMode::WriteBack, make), BLOCK_SHIFT);
    cache.reserve();
    cache
}

/// Memory, and speed too.
struct Cost {
    blocks: u32,
    speed: bool,
}

impl PolicyVisitor for Cost {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let before = bytes_in_use();
        let mut cache = cache::<P>(&settings, 1, &Quotas::Shared(self.blocks));
        let mut plan = Plan::default();
        let mut requests = Requests::new(self.blocks);
        let mut peak = 0;
        // Until the cache is full, and what it remembers too; then twice as much again.
        for _ in 0..u64::from(self.blocks) * 5 {
            cache.on(&requests.next(), &mut plan);
            cache.background_ops(0, &mut plan);
            peak = peak.max(bytes_in_use() - before);
        }
        let held = f64::from(cache.engine().policy(0).len());
        let live = (bytes_in_use() - before) as f64;
        let memory = |cache: &Cache<P>| {
            let (peak, ids) = (peak as f64 / held, cache.ids() as f64 / held);
            format!("{:18} {:6.1} {peak:6.1} {ids:6.2}", P::ENTRY.name, live / held)
        };
        if !self.speed {
            println!("{}", memory(&cache));
            return;
        }
        let stream: Vec<Request> = (0..2_000_000).map(|_| requests.next()).collect();
        let start = cpu_ns();
        for request in &stream {
            cache.on(request, &mut plan);
            cache.background_ops(0, &mut plan);
        }
        let rate = stream.len() as f64 * 1e3 / (cpu_ns() - start) as f64;
        let hit_ratio = cache.engine().counts(TenantId(0)).hit_ratio();
        println!("{} {rate:7.2} {hit_ratio:6.3}", memory(&cache));
    }
}

/// The slowest decisions.
struct Slowest {
    blocks: u32,
    decisions: usize,
}

impl PolicyVisitor for Slowest {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let mut times = vec![u32::MAX; self.decisions];
        for _ in 0..3 {
            let mut cache = cache::<P>(&settings, 1, &Quotas::Shared(self.blocks));
            let mut plan = Plan::default();
            let mut requests = Requests::new(self.blocks);
            for time in &mut times {
                let request = requests.next();
                let start = cpu_ns();
                cache.on(&request, &mut plan);
                cache.background_ops(0, &mut plan);
                *time = (*time).min(u32::try_from(cpu_ns() - start).unwrap_or(u32::MAX));
            }
        }
        let slow = times.iter().filter(|time| **time > 1_000_000).count();
        let worst = times.iter().enumerate().max_by_key(|(_, time)| **time);
        let (index, ns) = worst.map_or((0, 0), |(index, time)| (index, *time));
        println!(
            "{:18} {:9.1} us, decision {index}; {slow} above 1 ms",
            P::ENTRY.name,
            f64::from(ns) / 1e3
        );
    }
}

/// Tenants that hold most of the cache in turn.
struct Turns {
    blocks: u32,
}

impl PolicyVisitor for Turns {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let quotas = |holder: usize| {
            let blocks = |tenant| self.blocks / 100 * if tenant == holder { 93 } else { 1 };
            Quotas::PerTenant((0..TENANTS).map(blocks).collect())
        };
        let [kept, compact] = [false, true].map(|compact| {
            let before = bytes_in_use();
            let mut cache = cache::<P>(&settings, TENANTS, &quotas(0));
            let first = bytes_in_use() - before;
            let (mut ids, mut bytes, mut slowest_ns) = (0, 0, 0);
            let mut plan = Plan::default();
            let mut requests = Requests::new(self.blocks);
            for turn in 0..TENANTS {
                for _ in 0..u64::from(self.blocks) * 3 {
                    let tenant = TenantId(turn as u16);
                    cache.on(&Request { tenant, ..requests.next() }, &mut plan);
                    cache.background_ops(turn, &mut plan);
                }
                (ids, bytes) = (cache.ids().max(ids), bytes.max(bytes_in_use() - before));
                cache.set_quotas(&quotas((turn + 1) % TENANTS), &mut plan);
                plan = Plan::default();
                let start = cpu_ns();
                if compact {
                    cache.compact(&mut |_, _, _| {});
                    cache.reserve();
                }
                slowest_ns = slowest_ns.max(cpu_ns() - start);
            }
            (ids as f64 / f64::from(self.blocks), bytes as f64 / first as f64, slowest_ns)
        });
        println!(
            "{:18} kept {:5.2} {:5.2}, compact {:5.2} {:5.2}, {:6.1} ms",
            P::ENTRY.name,
            kept.0,
            kept.1,
            compact.0,
            compact.1,
            compact.2 as f64 / 1e6
        );
    }
}

/// A word of the command without its number of decisions, and that number.
fn mode_of(word: &str) -> (&str, usize) {
    let (mode, number) = word.split_once('=').unwrap_or((word, ""));
    (mode, number.parse().unwrap_or(DECISIONS))
}

fn main() {
    let mut args = std::env::args().skip(1);
    let blocks = args.next().map_or(100_000, |text| match text.parse() {
        Ok(blocks) => blocks,
        Err(_) => {
            eprintln!("found `{text}`, expected a number of blocks");
            std::process::exit(2);
        }
    });
    let (modes, names): (Vec<String>, Vec<String>) =
        args.partition(|word| ["memory", "slowest", "turns"].contains(&mode_of(word).0));
    let has = |need: &Need| *need == Need::Requests;
    let chosen = |name: &str| names.is_empty() || names.iter().any(|other| other == name);
    let policies = || {
        let blind = |entry: &&'static Entry| entry.needs.iter().all(has);
        entries().into_iter().filter(blind).filter(|entry| chosen(entry.name))
    };
    let report = |result: Result<(), RegistryError>| {
        result.unwrap_or_else(|error| eprintln!("{error}"));
    };
    if modes.is_empty() || modes.iter().any(|mode| mode == "memory") {
        let speed = modes.is_empty();
        let timed = if speed { "; M/s; M/s ahead; hits" } else { "" };
        println!("{blocks} blocks; B live, B peak, ids per resident block{timed}");
        policies().for_each(|entry| report(visit(entry.name, &[], Cost { blocks, speed })));
    }
    for (_, decisions) in modes.iter().map(|mode| mode_of(mode)).filter(|mode| mode.0 == "slowest")
    {
        println!("{blocks} blocks; the slowest of {decisions} decisions");
        policies().for_each(|entry| report(visit(entry.name, &[], Slowest { blocks, decisions })));
    }
    if modes.iter().any(|mode| mode == "turns") {
        println!("{blocks} blocks; most ids per block, most bytes, of those at first; compaction");
        policies().for_each(|entry| report(visit(entry.name, &[], Turns { blocks })));
    }
}
