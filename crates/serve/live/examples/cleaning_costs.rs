//! What cleaning costs under each scheme: skewed overwrites of a log that is nearly full.
//!
//! For: the page benches/live.md. Must never know: time. Units: blocks. Nothing
//! is read from or written to a disk: the devices are those of a simulation, and only counts are
//! shown. Argument: segments of 1 MiB. The cache has as many blocks under each scheme: those that
//! the log can hold under all of them.

use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_ftl::CleaningSchemes;
use cachewright_live::blocks::{
    BlockOp, BlockRequest, BlockServer, CleaningSettings, DeviceLayout, ServeCounts, ServedVolume,
    ServerParts, max_blocks,
};
use cachewright_live::io::sim::{Sim, SimFile};
use cachewright_live::io::{Buffer, FileId, Io};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, OpenSet, format, open, recover};
use cachewright_policy::registry::maker;
use cachewright_types::declare::Scheme;
use cachewright_types::{Rng, Seed, TenantId};
use std::error::Error;

type Answer<T> = Result<T, Box<dyn Error>>;

const BLOCK: u64 = 4096;
const SEGMENT: u64 = 1 << 20;
const UNDER_WAY: usize = 16;
const GROUP_BLOCKS: u32 = 128;
const SPARE_SEGMENTS: usize = 4;

/// Blocks in order of heat, drawn as by a Zipf law of exponent 1, scattered over the volume.
fn any_block(rng: &mut Rng, blocks: u64) -> u64 {
    let rank = (blocks as f64).powf(rng.unit()) as u64 - 1;
    rank.min(blocks - 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) % blocks
}

/// Blocks of a log of so many segments.
fn raw_blocks(segments: u64) -> u64 {
    segments * SEGMENT / BLOCK
}

/// Most blocks of a cache on such a log.
fn max_cached(cleaning: &CleaningSettings, segments: u64) -> Answer<u64> {
    let mut sim = Sim::new(Seed(1));
    let (_, set) = formatted(&mut sim, segments)?;
    let log = cleaning.log_settings(GROUP_BLOCKS, SPARE_SEGMENTS)?;
    Ok(max_blocks(&set.set, &log, set.set.segments()))
}

/// A formatted device, and the file of a volume as large.
fn formatted(sim: &mut Sim, segments: u64) -> Answer<(FileId, OpenSet)> {
    let device = sim.add_file(SimFile::new((2 << 20) + segments * SEGMENT));
    let bytes = raw_blocks(segments) * BLOCK;
    let volume = sim.add_file(SimFile::new(bytes));
    let settings = FormatSettings {
        set: SetId(1),
        block_bytes: BLOCK as u32,
        segment_bytes: SEGMENT as u32,
        volumes: vec![Volume { id: VolumeId(1), name: "a".to_owned(), bytes }],
    };
    format(sim, &[device], &settings)?;
    Ok((volume, open(sim, &[device])?))
}

/// A server with a log of so many segments and a cache of so many blocks.
fn served(
    sim: &mut Sim,
    cleaning: CleaningSettings,
    segments: u64,
    blocks: u64,
) -> Answer<BlockServer> {
    let (volume, set) = formatted(sim, segments)?;
    let found = recover(sim, &set)?;
    let policy = maker("lru", &[])?;
    let make = |_, capacity| policy(capacity, Seed(0));
    let engine = Engine::new(1, &Quotas::Shared(blocks as u32), WriteMode::WriteBack, make);
    let parts = ServerParts {
        cache: Cache::new(engine, BLOCK.trailing_zeros()),
        open: set,
        group_blocks: GROUP_BLOCKS,
        spare_segments: SPARE_SEGMENTS,
        cleaning,
        layout: DeviceLayout::default(),
        volumes: vec![ServedVolume {
            id: VolumeId(1),
            bytes: raw_blocks(segments) * BLOCK,
            backing: volume,
        }],
    };
    Ok(BlockServer::open(sim, parts, found)?.0)
}

/// Writes each block of the cache once, then skewed; counts of the second half of the latter.
fn overwritten(cleaning: CleaningSettings, segments: u64, blocks: u64) -> Answer<ServeCounts> {
    let mut sim = Sim::new(Seed(1));
    let mut server = served(&mut sim, cleaning, segments, blocks)?;
    let mut rng = Seed(2).rng();
    let (mut under_way, mut done) = (0, Vec::new());
    let mut middle = ServeCounts::default();
    let writes = 9 * blocks;
    for write in 0..writes {
        if write == 5 * blocks {
            middle = server.counts();
        }
        let block = if write < blocks { write } else { any_block(&mut rng, blocks) };
        let request = BlockRequest {
            tag: write,
            tenant: TenantId(0),
            op: BlockOp::Write,
            offset: block * BLOCK,
            length: BLOCK,
            durable: false,
            data: Buffer::zeroed(BLOCK as usize),
        };
        server.request(&mut sim, request);
        under_way += 1;
        while under_way >= UNDER_WAY {
            server.advance(&mut sim);
            sim.wait(&mut done);
            done.drain(..).for_each(|done| server.on_done(&mut sim, done));
            let answers = server.take_answers();
            under_way -= answers.len();
            assert!(answers.iter().all(|answer| answer.result.is_ok()));
        }
    }
    let end = server.counts();
    let [written, moved] = [end.written - middle.written, end.moved - middle.moved];
    Ok(ServeCounts { written, moved, cleaned: end.cleaned - middle.cleaned, ..end })
}

const SCHEMES: [(&str, &str); 9] = [
    ("2r", "greedy"),
    ("2r", "cost-benefit"),
    ("none", "greedy"),
    ("none", "cost-benefit"),
    ("dac", "cost-benefit"),
    ("multi-log", "cost-benefit"),
    ("mida", "cost-benefit"),
    ("sepbit", "cost-benefit"),
    ("sepbit", "death-rate"),
];

fn cleaning(separation: &str, reclaim: &str) -> CleaningSettings {
    let (separation, reclaim) = (Scheme::named(separation), Scheme::named(reclaim));
    let schemes = CleaningSchemes { separation, reclaim, seed: Seed(0) };
    CleaningSettings { schemes, drops_cold: false }
}

fn main() -> Answer<()> {
    let segments = std::env::args().nth(1).map_or(Ok(256), |text| text.parse())?;
    let mut blocks = u64::MAX;
    for (separation, reclaim) in SCHEMES {
        blocks = blocks.min(max_cached(&cleaning(separation, reclaim), segments)?);
    }
    let share = 100.0 * blocks as f64 / raw_blocks(segments) as f64;
    println!("{blocks} blocks, {share:.1} % of {segments} segments\n");
    println!("| separation | reclaim | streams | write amplification |");
    println!("|---|---|---|---|");
    for (separation, reclaim) in SCHEMES {
        let streams = cleaning(separation, reclaim).schemes.streams()?.all;
        let found =
            overwritten(cleaning(separation, reclaim), segments, blocks)?.write_amplification();
        println!("| `{separation}` | `{reclaim}` | {streams} | {found:.3} |");
    }
    Ok(())
}
