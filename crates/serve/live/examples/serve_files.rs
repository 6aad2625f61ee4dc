//! Serves files as exports behind a cache in another file: to try clients of the protocol.
//!
//! `cargo run --release -p cachewright-live --example serve_files -- SOCKET CACHE MIB FILE...`:
//! `CACHE` is formatted unless it is a cache device already; the cache holds `MIB` MiB of blocks of
//! 4 KiB, with `lru` and write-back; each `FILE` is the export of its name. It serves until it is
//! killed.

use cachewright_cache::{Cache, Engine, Quotas, WriteMode};
use cachewright_live::blocks::{
    BlockServer, CleaningSettings, DeviceLayout, ServedVolume, ServerParts,
};
use cachewright_live::exports::{ConnectionLimits, NbdFrontEnd, NbdSettings};
use cachewright_live::front::{self, BlockService, ServedExport};
use cachewright_live::io::open::{FileAccess, open_file, unix_listener};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{FileId, Io};
use cachewright_live::log::format::{SetId, SuperblockError, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, OpenSet, OpenSetError, format, open, recover};
use cachewright_nbd::Limits;
use cachewright_types::Seed;
use std::error::Error;
use std::path::Path;

const BLOCK_BYTES: u32 = 4096;
const BLOCK_SHIFT: u32 = 12;

/// A volume of the command line.
struct Served {
    name: String,
    file: FileId,
    bytes: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, cache, mib, files @ ..] = &arguments[..] else {
        return Err("expected SOCKET CACHE MIB FILE...".into());
    };
    let mut io = SystemIo::new(EngineChoice::Auto)?;
    io.notice().iter().for_each(|notice| eprintln!("{notice}"));
    let device = open_file(Path::new(cache), FileAccess::Write)?;
    device.notices().iter().for_each(|notice| eprintln!("{notice}"));
    let device = io.add_file(device);
    let volumes: Vec<Served> =
        files.iter().map(|path| volume(&mut io, path)).collect::<Result<_, _>>()?;
    let set = opened(&mut io, device, &volumes)?;
    let found = recover(&mut io, &set)?;
    eprintln!("{} blocks found, {} groups void", found.blocks.len(), found.void_groups);
    let capacity = u32::try_from(mib.parse::<u64>()? << 20 >> BLOCK_SHIFT)?;
    let policy = |pool: usize, capacity: u32| {
        let seed = Seed(0).derive(&format!("pool/{pool}"));
        cachewright_policy::registry::boxed("lru", &[], capacity, seed)
    };
    policy(0, capacity)?;
    let make = |pool, capacity| match policy(pool, capacity) {
        Ok(policy) => policy,
        Err(error) => unreachable!("it was made before: {error}"),
    };
    let quotas = Quotas::Shared(capacity);
    let engine = Engine::new(volumes.len(), &quotas, WriteMode::WriteBack, make);
    let parts = ServerParts {
        cache: Cache::new(engine, BLOCK_SHIFT),
        open: set,
        group_blocks: 128,
        spare_segments: 4,
        cleaning: CleaningSettings::default(),
        layout: DeviceLayout::default(),
        volumes: volumes.iter().zip(1..).map(|(volume, id)| served(volume, id)).collect(),
    };
    let (blocks, restored) = BlockServer::open(&mut io, parts, found)?;
    eprintln!("{restored:?}");
    let export = |volume: &Served| ServedExport {
        read_only: false,
        name: volume.name.clone(),
        bytes: volume.bytes,
        clients: Vec::new(),
        max_connections: None,
        fast_zero: false,
    };
    let exports = volumes.iter().map(export).collect();
    let (limits, connection) = (Limits::default(), ConnectionLimits::default());
    let settings = NbdSettings {
        limits,
        connection,
        extended_headers: false,
        max_connections: 64,
        client_memory: 512 << 20,
    };
    let mut nbd = NbdFrontEnd::new(exports, blocks.block_bytes(), settings);
    let mut service = BlockService::new(blocks, volumes.len());
    let listener = io.add_listener(unix_listener(Path::new(socket))?);
    nbd.listen(listener);
    eprintln!("serving at {socket} by {}", io.name());
    let mut done = Vec::new();
    loop {
        front::advance(&mut io, &mut service, &mut [&mut nbd]);
        io.wait(&mut done);
        for done in done.drain(..) {
            front::on_done(&mut io, &mut service, &mut [&mut nbd], done);
        }
    }
}

fn volume(io: &mut SystemIo, path: &str) -> Result<Served, Box<dyn Error>> {
    let name = Path::new(path).file_name().ok_or("expected the path of a file")?;
    let name = name.to_string_lossy().into_owned();
    let file = io.add_file(open_file(Path::new(path), FileAccess::Write)?);
    let bytes = io.file_bytes(file) / u64::from(BLOCK_BYTES) * u64::from(BLOCK_BYTES);
    Ok(Served { name, file, bytes })
}

fn served(volume: &Served, id: u32) -> ServedVolume {
    ServedVolume { id: VolumeId(id), bytes: volume.bytes, backing: volume.file }
}

/// The set of the cache device, formatted if it is none.
fn opened(io: &mut SystemIo, device: FileId, volumes: &[Served]) -> Result<OpenSet, OpenSetError> {
    let missing = OpenSetError::Superblock { device: 0, error: SuperblockError::Missing };
    match open(io, &[device]) {
        Err(error) if error == missing => {}
        other => return other,
    }
    let volume = |(volume, id): (&Served, u32)| Volume {
        id: VolumeId(id),
        name: volume.name.clone(),
        bytes: volume.bytes,
    };
    let settings = FormatSettings {
        set: SetId(u128::from(io.now_ns())),
        block_bytes: BLOCK_BYTES,
        segment_bytes: 16 << 20,
        volumes: volumes.iter().zip(1..).map(volume).collect(),
    };
    format(io, &[device], &settings)
}
