//! A server of blocks under requests of several clients, recorded while it serves.
//!
//! For: what was served against what a replay of its recording gives. Must never know: replays.
//! Units: bytes, blocks.

use cachewright_cache::{Shrink, WriteMode};
use cachewright_daemon::LivePlan;
use cachewright_live::blocks::{BlockOp, BlockRequest, BlockServer, ServedVolume, ServerParts};
use cachewright_live::io::{Buffer, FileId, Io};
use cachewright_live::log::format::{SetId, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, format, open, recover};
use cachewright_live::record::{RecordFile, RecordedRequests};
use cachewright_trace::DivisionsHead;
use cachewright_types::measure::Counts;
use cachewright_types::{Rng, Seed, TenantId};
use std::path::{Path, PathBuf};

pub const TENANTS: u16 = 3;
pub const BLOCK: u64 = 4096;
/// Blocks of each volume.
pub const VOLUME_BLOCKS: u64 = 120;
/// Bytes of a volume: its last block is only a part of one.
pub const VOLUME_BYTES: u64 = VOLUME_BLOCKS * BLOCK - 1536;
/// Blocks of the cache.
pub const CAPACITY: u32 = 64;
pub const DEVICE_BYTES: u64 = (2 << 20) + 40 * (64 << 10);
/// Connections of each tenant, and requests that each has under way.
const CONNECTIONS: usize = 2;
const DEPTH: usize = 4;

/// What stands beside the schemes of a case.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// When tenants give up blocks beyond smaller quotas.
    pub shrink: Shrink,
    /// What all tenants did before.
    pub history: Option<PathBuf>,
    /// It is replayed on devices, too.
    pub devices: bool,
    /// Further devices of the cache: it is served by the layout `dedicated`, and replayed without.
    pub others: Vec<FileId>,
    /// Bytes of a sequential stream from which on its requests go past the cache; 0 for none.
    pub cutoff_bytes: u64,
    /// The tenants that are served, in the order of the stack; empty for all, as they are numbered.
    pub tenants: Vec<u16>,
}

/// What is served.
#[derive(Clone, Debug)]
pub struct Case {
    pub policy: &'static str,
    pub mode: WriteMode,
    /// A name, or a table with settings.
    pub partition: &'static str,
    pub facts: Facts,
    /// Time between two divisions.
    pub interval_ns: u64,
    pub requests: u64,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Served {
    pub counts: Vec<Counts>,
    pub recorded: RecordedRequests,
    /// Blocks whose content was damaged: the cache forgot them.
    pub lost: u64,
    /// The quota of each tenant in the end.
    pub quotas: Vec<u32>,
    /// Whether divisions were recorded.
    pub is_divided: bool,
}

/// Names of the volumes, by tenant.
pub fn names() -> Vec<String> {
    (0..TENANTS).map(|tenant| format!("volume-{tenant}")).collect()
}

/// Formats a device and opens a server of a plan on it, with one file per volume.
pub fn open_server(
    io: &mut impl Io,
    plan: &LivePlan,
    devices: &[FileId],
    volumes: &[FileId],
) -> BlockServer {
    let listed = names().into_iter().enumerate();
    let volume =
        |(index, name)| Volume { id: VolumeId(index as u32 + 1), name, bytes: VOLUME_BYTES };
    let settings = FormatSettings {
        set: SetId(9),
        block_bytes: BLOCK as u32,
        segment_bytes: 64 << 10,
        volumes: listed.map(volume).collect(),
    };
    format(io, devices, &settings).unwrap();
    let set = open(io, devices).unwrap();
    let found = recover(io, &set).unwrap();
    let served = |(index, file): (usize, &FileId)| ServedVolume {
        id: VolumeId(index as u32 + 1),
        bytes: VOLUME_BYTES,
        backing: *file,
    };
    let ahead = plan.ahead().unwrap();
    let laid_out = plan.layout(&set.set, devices, &ahead).unwrap();
    let parts = ServerParts {
        cache: plan.cache(&ahead, &laid_out.limits).unwrap(),
        open: set,
        group_blocks: 4,
        spare_segments: 3,
        cleaning: plan.cleaning(),
        layout: laid_out.devices.clone(),
        volumes: volumes.iter().enumerate().map(served).collect(),
    };
    let mut server = BlockServer::open(io, parts, found).unwrap().0;
    server.cut_off(plan.cutoff());
    let division = plan.division(&ahead, &laid_out.limits).unwrap();
    division.into_iter().for_each(|division| server.divide_by(division));
    server
}

/// Some request of a tenant: narrow and wide, whole blocks and parts of them.
fn any_request(rng: &mut Rng, tag: u64, tenant: TenantId) -> BlockRequest {
    let u = rng.unit();
    let first = match rng.below(16) {
        0 => VOLUME_BLOCKS - 1,
        _ => (u * u * VOLUME_BLOCKS as f64) as u64,
    };
    let (op, blocks) = match rng.below(40) {
        0..18 => (BlockOp::Read, 1 + rng.below(3)),
        18..34 => (BlockOp::Write, 1 + rng.below(3)),
        34 => (BlockOp::Trim, 1 + rng.below(40)),
        35 | 36 => (BlockOp::Zero, 1 + rng.below(4)),
        _ => (BlockOp::Flush, 0),
    };
    let blocks = blocks.min(VOLUME_BLOCKS - first);
    let (mut offset, mut length) = (first * BLOCK, blocks * BLOCK);
    if op != BlockOp::Flush && rng.below(3) == 0 {
        let cut = 512 * rng.below(8);
        (offset, length) = (offset + cut, length - cut - 512 * rng.below((BLOCK - cut) / 512));
    }
    if op != BlockOp::Flush {
        offset = offset.min(VOLUME_BYTES - 512);
        length = length.min(VOLUME_BYTES - offset);
    }
    let written = if op == BlockOp::Write { length as usize } else { 0 };
    let (data, durable) = (Buffer::zeroed(written), rng.below(10) == 0);
    BlockRequest { tag, tenant, op, offset, length, durable, data }
}

/// Several connections of each tenant, each with requests under way.
pub struct Clients {
    rng: Rng,
    under_way: Vec<usize>,
    /// Tenants that send nothing any more.
    gone: Vec<TenantId>,
    sent: u64,
    answered: u64,
    may_fail: bool,
}

impl Clients {
    /// Those of a case, before their first request.
    pub fn new(case: &Case, may_fail: bool) -> Clients {
        let rng = Seed(case.seed).derive("requests").rng();
        let under_way = vec![0; usize::from(TENANTS) * CONNECTIONS];
        Clients { rng, under_way, gone: Vec::new(), sent: 0, answered: 0, may_fail }
    }

    /// A tenant sends nothing from now on.
    pub fn leave(&mut self, tenant: TenantId) {
        self.gone.push(tenant);
    }

    /// Sends so many requests more, and waits until all are answered.
    pub fn send(&mut self, io: &mut impl Io, server: &mut BlockServer, case: &Case, more: u64) {
        let (until, mut rounds) = (self.sent + more, 0_u64);
        while self.answered < until || !server.is_idle() {
            rounds += 1;
            assert!(rounds < 1000 * more, "{case:?}: no end, {:?}", server.counts());
            for _ in 0..self.rng.below(4) {
                let connection = self.rng.below(self.under_way.len() as u64) as usize;
                let tenant = TenantId((connection / CONNECTIONS) as u16);
                let is_there = !self.gone.contains(&tenant);
                if is_there && self.under_way[connection] < DEPTH && self.sent < until {
                    let request = any_request(&mut self.rng, connection as u64, tenant);
                    self.under_way[connection] += 1;
                    self.sent += 1;
                    server.request(io, request);
                }
            }
            server.advance(io);
            for answer in server.take_answers() {
                assert!(self.may_fail || answer.result.is_ok(), "{case:?}: {:?}", answer.result);
                self.under_way[answer.tag as usize] -= 1;
                self.answered += 1;
            }
            let mut done = Vec::new();
            io.wait(&mut done);
            done.into_iter().for_each(|done| server.on_done(io, done));
        }
    }
}

/// Counters of each tenant.
pub fn counts(server: &BlockServer) -> Vec<Counts> {
    let cache = server.cache();
    (0..TENANTS).map(|tenant| *cache.engine().counts(TenantId(tenant))).collect()
}

/// The quota of each tenant.
pub fn quotas(server: &BlockServer) -> Vec<u32> {
    let cache = server.cache();
    (0..TENANTS).map(|tenant| cache.engine().quota(TenantId(tenant))).collect()
}

/// Serves requests of several connections of each tenant, and records into `path`.
pub fn serve(
    io: &mut impl Io,
    mut server: BlockServer,
    case: &Case,
    path: &Path,
    divisions: Option<DivisionsHead>,
    may_fail: bool,
) -> Served {
    let file = RecordFile::create(path, names(), divisions.as_ref()).unwrap();
    server.record(file.sink());
    Clients::new(case, may_fail).send(io, &mut server, case, case.requests);
    let recorded = server.end_recording(io).unwrap();
    let (counts, quotas) = (counts(&server), quotas(&server));
    server.cache().engine().audit().unwrap();
    let lost = server.counts().damaged_clean;
    assert_eq!(file.finish().unwrap().requests, recorded.requests);
    Served { counts, recorded, lost, quotas, is_divided: divisions.is_some() }
}
