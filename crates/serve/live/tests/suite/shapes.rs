//! Every shape of a log that a stack may have: each request is answered, with what it asked for,
//! within a bounded number of operations, and an end is one.

use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_live::blocks::{
    BackgroundSettings, BlockOp, BlockRequest, BlockServer, CleaningSettings, DeviceLayout,
    ServedVolume, ServerParts, max_blocks, needed_segments,
};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{Buffer, FileId, Io};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, format, recover};
use cachewright_types::{Rng, Seed, TenantId};
use std::collections::BTreeMap;

use crate::blocks_crashes::crashes;
use crate::cleaning::any_cleaning;

/// Blocks of each of two volumes.
const BLOCKS: u64 = 400;

/// A log with a cache as large as it can hold.
#[derive(Debug)]
struct Shape {
    block_shift: u32,
    segment_bytes: u32,
    segments: u64,
    devices: usize,
    policy: &'static str,
    mode: WriteMode,
    cleaning: CleaningSettings,
    is_bounded: bool,
}

impl Shape {
    fn any(rng: &mut Rng) -> Shape {
        let block_shift = 12 + rng.below(5) as u32;
        let block = 1_u32 << block_shift;
        let min = (64 << 10).max(8 * block);
        let more = [0, 0, 4096, block, 3 * block, 8 * block, 56 * block][rng.below(7) as usize];
        let cleaning = any_cleaning(rng);
        let settings = cleaning.log_settings(1, 4).unwrap();
        let devices = 1 + rng.below(2) as usize;
        let segments = needed_segments(&settings) as u64 + 1 + rng.below(30);
        let policies = ["lru", "fifo", "s3-fifo", "arc", "larc"];
        let modes = [WriteMode::WriteBack, WriteMode::WriteBack, WriteMode::WriteThrough];
        Shape {
            block_shift,
            segment_bytes: min + more,
            segments: segments.div_ceil(devices as u64),
            devices,
            policy: policies[rng.below(5) as usize],
            mode: modes[rng.below(3) as usize],
            cleaning,
            is_bounded: rng.below(4) == 0,
        }
    }

    fn group_blocks(&self) -> u32 {
        ((1 << 20) >> self.block_shift).clamp(1, 128)
    }

    /// A simulation, and a server of this shape on it.
    fn serve(&self, seed: Seed) -> (Sim, BlockServer) {
        let mut sim = Sim::new(seed);
        let bytes = (2 << 20) + self.segments * u64::from(self.segment_bytes);
        let cache: Vec<FileId> =
            (0..self.devices).map(|_| sim.add_file(SimFile::new(bytes))).collect();
        let volume_bytes = BLOCKS << self.block_shift;
        let mut volumes = Vec::new();
        for id in [1, 2] {
            let backing = sim.add_file(SimFile::new(volume_bytes));
            volumes.push(ServedVolume { id: VolumeId(id), bytes: volume_bytes, backing });
        }
        let named = |volume: &ServedVolume| {
            let (id, bytes) = (volume.id, volume.bytes);
            Volume { id, name: format!("volume-{}", id.0), bytes }
        };
        let settings = FormatSettings {
            set: SetId(5),
            block_bytes: 1 << self.block_shift,
            segment_bytes: self.segment_bytes,
            volumes: volumes.iter().map(named).collect(),
        };
        let open = format(&mut sim, &cache, &settings).unwrap();
        let found = recover(&mut sim, &open).unwrap();
        let log = self.cleaning.log_settings(self.group_blocks(), 4).unwrap();
        let capacity = max_blocks(&open.set, &log, open.set.segments()) as u32;
        assert!(capacity > 0, "{self:?}");
        let make = |_, blocks: u32| {
            cachewright_policy::registry::boxed(self.policy, &[], blocks, Seed(1)).unwrap()
        };
        let engine = Engine::new(2, &Quotas::Shared(capacity), self.mode, make);
        let parts = ServerParts {
            cache: Cache::new(engine, self.block_shift),
            open,
            group_blocks: self.group_blocks(),
            spare_segments: 4,
            cleaning: self.cleaning.clone(),
            layout: DeviceLayout::default(),
            volumes,
        };
        let (mut server, _) = BlockServer::open(&mut sim, parts, found).unwrap();
        if self.is_bounded {
            let settings = BackgroundSettings {
                dirty_high: 0.5,
                dirty_low: 0.3,
                bytes_per_s: Some(1 << 20),
                latency_ns: None,
            };
            server.set_background(settings);
        }
        (sim, server)
    }
}

/// Requests, and what volumes hold: a byte for each page.
struct Client {
    pages: BTreeMap<(u16, u64), u8>,
    tags: u64,
}

impl Client {
    /// A request for some pages, carried out to its end within so many operations; its data.
    fn ask(
        &mut self,
        server: &mut BlockServer,
        sim: &mut Sim,
        op: BlockOp,
        tenant: u16,
        pages: std::ops::Range<u64>,
        bound: u64,
        text: &str,
    ) {
        self.tags += 1;
        let length = (pages.end - pages.start) * 4096;
        let value = (self.tags % 251) as u8 + 1;
        let data = match op {
            BlockOp::Write => Buffer::copy_of(&vec![value; length as usize]),
            _ => Buffer::default(),
        };
        let request = BlockRequest {
            tag: self.tags,
            tenant: TenantId(tenant),
            op,
            offset: pages.start * 4096,
            length,
            durable: self.tags.is_multiple_of(5),
            data,
        };
        server.request(sim, request);
        let mut operations = 0;
        let answer = loop {
            server.advance(sim);
            if let Some(answer) = server.take_answers().pop() {
                break answer;
            }
            let mut done = Vec::new();
            sim.wait(&mut done);
            assert!(!done.is_empty(), "{text}: nothing is under way, and there is no answer");
            operations += done.len() as u64;
            assert!(operations < bound, "{text}: no answer within {bound} operations");
            done.into_iter().for_each(|done| server.on_done(sim, done));
        };
        assert_eq!((answer.tag, answer.result), (self.tags, Ok(())), "{text}");
        for (at, page) in pages.enumerate() {
            match op {
                BlockOp::Read => {
                    let found = &answer.data[at * 4096..(at + 1) * 4096];
                    let expected = self.pages.get(&(tenant, page)).copied().unwrap_or_default();
                    assert!(found.iter().all(|byte| *byte == expected), "{text}: page {page}");
                }
                BlockOp::Write => {
                    self.pages.insert((tenant, page), value);
                }
                BlockOp::Zero | BlockOp::Provision => {
                    self.pages.insert((tenant, page), 0);
                }
                BlockOp::Flush | BlockOp::Trim => {}
            }
        }
    }
}

#[test]
fn each_request_is_answered_within_a_bounded_number_of_operations_in_every_shape() {
    for seed in 0..crashes(1280) / 32 {
        let mut rng = Seed(seed).derive("shapes").rng();
        let shape = Shape::any(&mut rng);
        let (mut sim, mut server) = shape.serve(Seed(seed));
        let mut client = Client { pages: BTreeMap::new(), tags: 0 };
        let pages = BLOCKS << (shape.block_shift - 12);
        let block = 1 << (shape.block_shift - 12);
        let log_pages =
            shape.segments * shape.devices as u64 * u64::from(shape.segment_bytes) / 4096;
        for number in 0..60 {
            let text = format!("seed {seed}, request {number}: {shape:?}");
            let tenant = rng.below(2) as u16;
            // Scattered blocks, or long runs: beyond all that the log can hold.
            let length = match rng.below(3) {
                0 => 1 + rng.below(block),
                1 => 1 + rng.below(20 * block),
                _ => pages - rng.below(pages / 2),
            };
            let start = rng.below(pages - length + 1);
            let ops = [BlockOp::Read, BlockOp::Write, BlockOp::Write, BlockOp::Zero];
            let op = ops[rng.below(4) as usize];
            // Each block may be filled, written, driven out and moved, and the log cleaned round
            // and round for each piece.
            let bound = 2000 + 40 * length + 400 * log_pages;
            client.ask(&mut server, &mut sim, op, tenant, start..start + length, bound, &text);
        }
        server.close(&mut sim);
        let mut done = Vec::new();
        for _ in 0..100_000 {
            server.advance(&mut sim);
            if !server.is_closing() {
                break;
            }
            sim.wait(&mut done);
            done.drain(..).for_each(|done| server.on_done(&mut sim, done));
        }
        assert!(!server.is_closing(), "seed {seed}: the log has its end: {shape:?}");
        assert_eq!(server.counts().without_space, 0, "seed {seed}: {shape:?}");
    }
}
