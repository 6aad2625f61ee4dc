//! A server from what recovery found.
//!
//! For: the checks before a warm start. Must never know: how recovery reads a log, how blocks come
//! back (`put_back`). Units: bytes, blocks.

use super::capacity::{max_blocks, needed_segments};
use super::content::LogContent;
use super::decisions::Decisions;
use super::layout::DeviceLayout;
use super::server::BlockServer;
use super::streams::{CleaningSettings, Streams};
use super::volumes::{ServedVolume, Volumes};
use crate::io::executor::Executor;
use crate::io::{Io, IoError, IoOp, batch};
use crate::log::format::VolumeId;
use crate::log::{DeviceSet, Log, LogSettings, OpenSet, RecoveredBlock, RecoveredLog};
use crate::record::DecisionClock;
use cachewright_cache::{Cache, Engine};
use cachewright_policy::Policy;
use std::collections::BTreeMap;

/// Segments that cleaning needs: one for copies, one for records, and the next of either.
const MIN_SPARE: usize = 3;

/// What a server is made of.
pub struct ServerParts {
    /// The cache, empty, of blocks as large as those of the set.
    pub cache: Cache<Box<dyn Policy>>,
    /// The devices of the log, as they were opened.
    pub open: OpenSet,
    /// Most blocks of a group of the log.
    pub group_blocks: u32,
    /// Segments that only cleaning and notes may begin, where blocks are moved to one stream; at
    /// least 3. Each further stream for moved blocks adds one.
    pub spare_segments: usize,
    /// How the log is cleaned.
    pub cleaning: CleaningSettings,
    /// The devices of each tenant.
    pub layout: DeviceLayout,
    /// The volumes, by tenant.
    pub volumes: Vec<ServedVolume>,
    /// What the eight highest bits of tokens are: of the log's, and of the server's own.
    pub namespaces: [u8; 2],
}

/// Why a server cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// The cache would hold more than the log can.
    #[error("found a cache of {quota} blocks, expected at most {max} on these devices")]
    TooSmall {
        /// Blocks that the cache may hold.
        quota: u64,
        /// Blocks that the log can hold.
        max: u64,
    },
    /// The log has too few segments for its streams.
    #[error("found {found} segments, expected at least {needed} for {streams} streams")]
    Segments {
        /// Segments of all devices.
        found: u64,
        /// Segments that are needed for one that holds the cache.
        needed: u64,
        /// Streams of the separation.
        streams: u64,
    },
    /// The log cannot follow a scheme.
    #[error("{0}")]
    Schemes(String),
    /// A server cannot be made of these parts.
    #[error("found {name} = {found}, expected {expected}")]
    Parts {
        /// What.
        name: &'static str,
        /// How many, or which.
        found: u64,
        /// In words.
        expected: &'static str,
    },
    /// The log has content of a volume that no backing device has, and the volume is not served.
    #[error("volume {volume} is not served, and {bytes} bytes of it are in the cache only")]
    DirtyUnserved {
        /// Its number.
        volume: u32,
        /// Bytes.
        bytes: u64,
    },
    /// A volume is empty, or its backing device is smaller.
    #[error("volume {volume}: found {found} bytes on its backing device, expected {expected}")]
    Backing {
        /// Its number.
        volume: u32,
        /// Bytes of the device.
        found: u64,
        /// Bytes of the volume; at least 1.
        expected: u64,
    },
    /// A volume has grown, and its last block, which was only a part of one, is damaged.
    #[error(
        "volume {volume} has grown, and the last block of the {bytes} bytes that it had is in the \
         cache only and damaged, expected the old size until it is repaired"
    )]
    Grown {
        /// Its number.
        volume: u32,
        /// Bytes that it had.
        bytes: u64,
    },
    /// A backing device cannot make durable what was written to it before this start.
    #[error("tenant {tenant}: its backing device cannot be synced: {error}")]
    Unsynced {
        /// The tenant.
        tenant: usize,
        /// Why.
        error: IoError,
    },
    /// A server has gone on without this cache: its content may be older than that of the volumes.
    #[error("a server has gone on without this cache, expected one that is formatted anew")]
    Bypassed,
    /// Input or output failed.
    #[error("{0}")]
    Io(IoError),
}

/// What was put back into the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Blocks whose backing device has their content.
    pub clean: u64,
    /// Blocks whose backing device has older content.
    pub dirty: u64,
    /// Dirty blocks that were written back, because the cache keeps none.
    pub written_back: u64,
    /// Blocks that are not kept: their volume is not served any more, or the policy refused them.
    pub dropped: u64,
    /// Dirty blocks whose content is damaged, or may be too old: reads of them fail.
    pub damaged: u64,
}

impl BlockServer {
    /// A server that goes on with what recovery found, which may be nothing. Errors: too small a
    /// log, dirty blocks of volumes that are not served, parts of which no server can be made, a
    /// device that fails.
    pub fn open(
        io: &mut impl Io,
        parts: ServerParts,
        found: RecoveredLog,
    ) -> Result<(BlockServer, Restored), RestoreError> {
        check_parts(&parts)?;
        let ServerParts { cache, open, group_blocks, spare_segments, cleaning, layout, .. } = parts;
        let (volumes, namespaces) = (parts.volumes, parts.namespaces);
        let set = layout.applied(open.set.clone(), volumes.len())?;
        let refused = |error: cachewright_ftl::FtlError| RestoreError::Schemes(error.to_string());
        let settings = cleaning.log_settings(group_blocks, spare_segments).map_err(refused)?;
        for pool in 0..set.pools() {
            check_pool(&set, &settings, &layout, cache.engine(), volumes.len(), pool)?;
        }
        let streams = Streams::new(&cleaning, layout, &set, &settings).map_err(refused)?;
        let block_bytes = set.block_bytes() as u64;
        check_volumes(io, &volumes)?;
        let served = Volumes::new(volumes);
        check_served(&served, &found.blocks, block_bytes)?;
        sync_backings(io, &served)?;
        let shift = block_bytes.trailing_zeros();
        let RecoveredLog { segments, last_group, last_decision, blocks, .. } = found;
        let log = Log::new(set, settings, segments, last_group, namespaces[0]);
        let clock = DecisionClock::new(io.now_ns());
        let decisions = Decisions::new(cache, shift, last_decision, clock);
        let tasks = Executor::default();
        let content = LogContent::new(log, streams, tasks.clone());
        let mut server = BlockServer::new(decisions, content, served, shift, namespaces[1], tasks);
        let restored = server.put_back(io, blocks, &open.superblock.volumes)?;
        server.state().bypass.arm(open);
        Ok((server, restored))
    }
}

/// Errors: a pool of devices has too few segments for its streams, or its tenants may hold more
/// than it.
fn check_pool(
    set: &DeviceSet,
    settings: &LogSettings,
    layout: &DeviceLayout,
    engine: &Engine<Box<dyn Policy>>,
    tenants: usize,
    pool: usize,
) -> Result<(), RestoreError> {
    let quota = layout.quota(engine, tenants, pool);
    let (segments, needed) = (set.segments_of(pool), needed_segments(settings) + 1);
    if segments < needed && (quota > 0 || set.pools() == 1) {
        let [found, needed, streams] =
            [segments, needed, settings.streams].map(|count| count as u64);
        return Err(RestoreError::Segments { found, needed, streams });
    }
    let max = max_blocks(set, settings, segments);
    if quota > max { Err(RestoreError::TooSmall { quota, max }) } else { Ok(()) }
}

/// Errors: too few spare segments, one namespace for two, more volumes than tenants have numbers.
fn check_parts(parts: &ServerParts) -> Result<(), RestoreError> {
    let ServerParts { open, spare_segments, volumes, namespaces, .. } = parts;
    if open.superblock.bypassed.is_some() {
        return Err(RestoreError::Bypassed);
    }
    let wrong = |name, found, expected| Err(RestoreError::Parts { name, found, expected });
    if *spare_segments < MIN_SPARE {
        return wrong("spare_segments", *spare_segments as u64, "at least 3");
    }
    if namespaces[0] == namespaces[1] {
        return wrong("namespaces", namespaces[1].into(), "one that differs from the log's");
    }
    // The last number is that of no tenant.
    if volumes.len() > usize::from(u16::MAX) {
        return wrong("volumes", volumes.len() as u64, "at most 65535");
    }
    Ok(())
}

/// Errors: a volume that is empty, or larger than its backing device.
fn check_volumes(io: &impl Io, volumes: &[ServedVolume]) -> Result<(), RestoreError> {
    for volume in volumes {
        let found = io.file_bytes(volume.backing);
        let expected = volume.bytes.max(1);
        if found < expected || expected != volume.bytes {
            return Err(RestoreError::Backing { volume: volume.id.0, found, expected });
        }
    }
    Ok(())
}

/// Makes durable what the backing devices hold. A server that ended without its end in order may
/// have answered writes to them that were never synced; this one takes what it finds there for
/// durable: it fills blocks as clean, and answers a flush without a sync of what it has not
/// written.
/// Errors: a sync fails.
fn sync_backings(io: &mut impl Io, served: &Volumes) -> Result<(), RestoreError> {
    let sync = |volume: &ServedVolume| IoOp::Sync { file: volume.backing };
    let syncs = served.list().iter().map(sync).collect();
    for (tenant, result) in batch::run(io, syncs).into_iter().enumerate() {
        result.map_err(|error| RestoreError::Unsynced { tenant, error })?;
    }
    Ok(())
}

/// Errors: dirty blocks of a volume that is not served, or behind its end.
fn check_served(
    served: &Volumes,
    blocks: &[RecoveredBlock],
    block_bytes: u64,
) -> Result<(), RestoreError> {
    let mut unserved: BTreeMap<VolumeId, u64> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.dirty) {
        let volume = served.tenant(block.volume).and_then(|tenant| served.get(tenant));
        let inside = volume.is_some_and(|volume| block.number < volume.blocks(block_bytes));
        if !inside {
            *unserved.entry(block.volume).or_default() += block_bytes;
        }
    }
    match unserved.first_key_value() {
        Some((volume, bytes)) => {
            Err(RestoreError::DirtyUnserved { volume: volume.0, bytes: *bytes })
        }
        None => Ok(()),
    }
}
