//! What a live cache costs: memory per resident block, decisions per second, the slowest decision.
//!
//! For: `cargo run --release -p cachewright-cache --example live_cost [blocks] [policy ...]`, the
//! tables of `benches/memory.md`. Must never know: traces. One tenant; reads of one block, a third
//! of them writes, over a volume of 8 TiB: half go to a hot set of 1.5 times the cache, half to
//! blocks drawn at random from 20 times the cache. Decisions go from a request to its plan, through
//! the index. Memory is what the allocator was asked for.

use cachewright_cache::{Cache, Engine, Plan, Quotas, WriteMode};
use cachewright_policy::{Need, PolicyVisitor, Registered, entries, visit};
use cachewright_types::{Bytes, Nanos, Op, Request, Rng, Seed, TenantId};
use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of the volume.
const VOLUME: u64 = 8 << 40;
const BLOCK_SHIFT: u32 = 12;

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

struct Cost {
    blocks: u32,
}

impl PolicyVisitor for Cost {
    type Output = ();
    fn visit<P: Registered>(self, settings: P::Settings) {
        let before = bytes_in_use();
        let make = |_, capacity| P::new(capacity, &settings, Seed(1));
        let quotas = Quotas::Shared(self.blocks);
        let mut cache =
            Cache::new(Engine::new(1, &quotas, WriteMode::WriteBack, make), BLOCK_SHIFT);
        cache.reserve();
        let mut plan = Plan::default();
        let mut requests = Requests { rng: Seed(2).rng(), blocks: u64::from(self.blocks) };
        // Until the cache is full, and what it remembers too; then twice as much again.
        let (mut peak, mut slowest_ns) = (0, 0_i64);
        for _ in 0..u64::from(self.blocks) * 5 {
            let request = requests.next();
            let start = cpu_ns();
            cache.on(&request, &mut plan);
            cache.background_ops(0, &mut plan);
            slowest_ns = slowest_ns.max(cpu_ns() - start);
            peak = peak.max(bytes_in_use() - before);
        }
        let held = f64::from(cache.engine().policy(0).len());
        let live = (bytes_in_use() - before) as f64;
        let stream: Vec<Request> = (0..2_000_000).map(|_| requests.next()).collect();
        let [plain, ahead] = [false, true].map(|ahead| {
            let mut touched = 0;
            let start = cpu_ns();
            for (at, request) in stream.iter().enumerate() {
                if ahead {
                    touched ^= cache.look_ahead(&stream, at);
                }
                cache.on(request, &mut plan);
                cache.background_ops(0, &mut plan);
            }
            std::hint::black_box(touched);
            stream.len() as f64 * 1e3 / (cpu_ns() - start) as f64
        });
        println!(
            "{:18} {:6.1} {:6.1} {:6.2} {:7.2} {:7.2} {:9.1} {:6.3}",
            P::ENTRY.name,
            live / held,
            peak as f64 / held,
            cache.ids() as f64 / held,
            plain,
            ahead,
            slowest_ns as f64 / 1e3,
            cache.engine().counts(TenantId(0)).hit_ratio(),
        );
    }
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
    let names: Vec<String> = args.collect();
    println!(
        "{blocks} blocks; B live and peak and ids, per resident block; M/s; slowest in us; hits"
    );
    let has = |need: &Need| *need == Need::Requests;
    for entry in entries().into_iter().filter(|entry| entry.needs.iter().all(has)) {
        let chosen = names.is_empty() || names.iter().any(|name| name == entry.name);
        if chosen && let Err(error) = visit(entry.name, &[], Cost { blocks }) {
            eprintln!("{}: {error}", entry.name);
        }
    }
}
