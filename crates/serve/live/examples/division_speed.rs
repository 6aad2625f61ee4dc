//! How long a division keeps a server from everything else.
//!
//! `cargo run --release -p cachewright-live --example division_speed -- BLOCKS POLICY`: ten volumes
//! behind a cache of so many blocks, in the I/O simulation, filled by reads and then by writes.
//! First `hull` divides by measured curves. Then quotas move by themselves, by a known number of
//! blocks. Units: milliseconds of this machine in the call that divides, with all steps begun.

use cachewright_cache::{Cache, Engine, WriteMode};
use cachewright_control::{CachePolicy, Control, SignalNeeds, interval_curves};
use cachewright_live::blocks::{
    BlockOp, BlockRequest, BlockServer, CleaningSettings, DeviceLayout, Division, ServedVolume,
    ServerParts,
};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{Buffer, Io, IoOp, Token};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, format, open, recover};
use cachewright_partition::{
    CacheDivision, CurveKind, Need, Partitioner, TenantConstants, TenantView, share,
};
use cachewright_policy::registry::boxed;
use cachewright_types::{Seed, TenantId};
use std::error::Error;
use std::time::Instant;

const VOLUMES: usize = 10;
const BLOCK: u64 = 4096;
/// Blocks of a request.
const WIDTH: u64 = 16;
/// Longer than anything else takes.
const INTERVAL_NS: u64 = 1 << 50;

/// Each division takes so many blocks from the first half of the tenants for the second, or gives
/// them back.
struct Pendulum(u32, bool);

cachewright_snapshot::refused!(Pendulum: "a partitioner of this test");

impl Partitioner for Pendulum {
    fn divide(&mut self, tenants: &[TenantView], total_blocks: u32) -> CacheDivision {
        let mut quotas = share::equal(total_blocks, tenants.len());
        let (half, each) = (tenants.len() / 2, self.0 / (tenants.len() as u32 / 2));
        self.1 = !self.1;
        for place in 0..half {
            if self.1 {
                quotas[place] -= each;
                quotas[place + half] += each;
            }
        }
        CacheDivision::PerTenant(quotas)
    }

    fn floor_blocks(&self, _tenants: usize, _total_blocks: u32) -> u32 {
        1
    }
}

struct World {
    sim: Sim,
    server: BlockServer,
    volume_blocks: u64,
}

impl World {
    fn open(
        blocks: u32,
        policy: &str,
        control: Control,
        needs: SignalNeeds,
    ) -> Result<World, Box<dyn Error>> {
        let mut sim = Sim::new(Seed(1));
        let volume_blocks = u64::from(blocks) / VOLUMES as u64 * 2;
        let device =
            sim.add_file(SimFile::new((2 << 20) + u64::from(blocks) * BLOCK * 2 + (1 << 28)));
        let files = (0..VOLUMES).map(|_| sim.add_file(SimFile::new(volume_blocks * BLOCK)));
        let files: Vec<_> = files.collect();
        let volume = |id: usize| Volume {
            id: VolumeId(id as u32 + 1),
            name: id.to_string(),
            bytes: volume_blocks * BLOCK,
        };
        let settings = FormatSettings {
            set: SetId(1),
            block_bytes: BLOCK as u32,
            segment_bytes: 16 << 20,
            volumes: (0..VOLUMES).map(volume).collect(),
        };
        format(&mut sim, &[device], &settings)?;
        let set = open(&mut sim, &[device])?;
        let found = recover(&mut sim, &set)?;
        boxed(policy, &[], 1, Seed(1))?;
        let make = |_, capacity| match boxed(policy, &[], capacity, Seed(1)) {
            Ok(policy) => policy,
            Err(error) => unreachable!("it was made before: {error}"),
        };
        let mut control = control;
        let engine = Engine::new(VOLUMES, &control.first(), WriteMode::WriteBack, make);
        let volumes = files.iter().enumerate().map(|(index, file)| ServedVolume {
            id: VolumeId(index as u32 + 1),
            bytes: volume_blocks * BLOCK,
            backing: *file,
        });
        let parts = ServerParts {
            cache: Cache::new(engine, 12),
            open: set,
            group_blocks: 128,
            spare_segments: 4,
            cleaning: CleaningSettings::default(),
            layout: DeviceLayout::default(),
            volumes: volumes.collect(),
        };
        let (mut server, _) = BlockServer::open(&mut sim, parts, found)?;
        server.divide_by(Division::new(control, needs, INTERVAL_NS, 12));
        Ok(World { sim, server, volume_blocks })
    }

    fn drain(&mut self) {
        let mut done = Vec::new();
        loop {
            self.server.advance(&mut self.sim);
            self.server.take_answers();
            self.sim.wait(&mut done);
            if done.is_empty() {
                return;
            }
            for done in done.drain(..) {
                self.server.on_done(&mut self.sim, done);
            }
        }
    }

    /// Reads or writes all volumes, each as far as twice its equal share.
    fn fill(&mut self, op: BlockOp) {
        for first in (0..self.volume_blocks / WIDTH * WIDTH).step_by(WIDTH as usize) {
            for tenant in 0..VOLUMES as u16 {
                let length = WIDTH * BLOCK;
                let written = if op == BlockOp::Write { length as usize } else { 0 };
                let (offset, data) = (first * BLOCK, Buffer::zeroed(written));
                let tenant = TenantId(tenant);
                let request =
                    BlockRequest { tag: 0, tenant, op, offset, length, durable: false, data };
                self.server.request(&mut self.sim, request);
            }
            self.drain();
        }
    }

    /// Milliseconds of the call that divides, and the blocks that left in it.
    fn divide(&mut self) -> (f64, u64) {
        let before = self.held();
        self.sim.submit(Token(9 << 56), IoOp::Timer { at_ns: INTERVAL_NS + INTERVAL_NS / 2 });
        let mut done = Vec::new();
        self.sim.wait(&mut done);
        let start = Instant::now();
        self.server.advance(&mut self.sim);
        let passed = start.elapsed().as_secs_f64() * 1e3;
        let left = before - self.held();
        self.drain();
        (passed, left)
    }

    fn held(&self) -> u64 {
        let cache = self.server.cache();
        let engine = cache.engine();
        (0..VOLUMES).map(|tenant| u64::from(engine.occupancy(TenantId(tenant as u16)))).sum()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [blocks, policy] = &arguments[..] else { return Err("expected BLOCKS POLICY".into()) };
    let blocks: u32 = blocks.parse()?;
    let tenants = || vec![TenantConstants::default(); VOLUMES];
    let named = CachePolicy { name: policy, pairs: &[], capacity_blocks: blocks, seed: Seed(1) };
    let curves = interval_curves(&[Need::Curve], CurveKind::default(), named, VOLUMES)?;
    let hull = cachewright_partition::boxed("hull", &[], VOLUMES, Seed(1))?;
    let needs = SignalNeeds { curves, ..SignalNeeds::default() };
    let mut world = World::open(blocks, policy, Control::new(hull, tenants(), blocks), needs)?;
    world.fill(BlockOp::Read);
    let (passed, left) = world.divide();
    println!("{blocks} blocks, {policy}, hull: {passed:.2} ms, {left} blocks left");
    for (op, part) in
        [(BlockOp::Read, 100), (BlockOp::Read, 10), (BlockOp::Write, 100), (BlockOp::Write, 10)]
    {
        let pendulum = Box::new(Pendulum(blocks / part, true));
        let control = Control::new(pendulum, tenants(), blocks);
        let mut world = World::open(blocks, policy, control, SignalNeeds::default())?;
        world.fill(op);
        let (passed, left) = world.divide();
        println!("{op:?}, 1/{part} moves: {passed:.2} ms, {left} blocks left");
    }
    Ok(())
}
