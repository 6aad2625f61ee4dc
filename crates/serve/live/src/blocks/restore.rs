//! A server from what recovery found.
//!
//! For: a warm start. Must never know: how recovery reads a log. Units: bytes, blocks. Blocks come
//! back oldest first. Where the write mode knows no dirty blocks, dirty ones are written back
//! first.

use super::content::{Content, LogBlock, STREAMS, Stranded};
use super::decisions::Decisions;
use super::server::BlockServer;
use super::space::max_blocks;
use super::stored_blocks::StoredBlock;
use super::volumes::{ServedVolume, Volumes};
use crate::io::{Buffer, FileId, Io, IoError, batch};
use crate::log::format::{Version, VolumeId, data_checksum};
use crate::log::{DeviceSet, Log, LogSettings, Recovered, RecoveredBlock};
use crate::record::DecisionClock;
use cachewright_cache::{Cache, WriteMode};
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks that are written back at once.
const BLOCKS_AT_ONCE: usize = 256;

/// What a server is made of.
pub struct Parts {
    /// The cache, empty, of blocks as large as those of the set.
    pub cache: Cache<Box<dyn Policy>>,
    /// The devices of the log.
    pub set: DeviceSet,
    /// Most blocks of a group of the log.
    pub group_blocks: u32,
    /// Segments that only cleaning and notes may begin; at least 3.
    pub spare_segments: usize,
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
    /// The log has content of a volume that no backing device has, and the volume is not served.
    #[error("volume {volume} is not served, and {bytes} bytes of it are in the cache only")]
    DirtyUnserved {
        /// Its number.
        volume: u32,
        /// Bytes.
        bytes: u64,
    },
    /// A volume is no whole number of blocks, or its backing device is smaller.
    #[error("volume {volume}: found {found} bytes on its backing device, expected {expected}")]
    Backing {
        /// Its number.
        volume: u32,
        /// Bytes of the device.
        found: u64,
        /// Bytes of the volume, which whole blocks make.
        expected: u64,
    },
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
}

impl BlockServer {
    /// A server that goes on with what recovery found, which may be nothing. Errors: too small a
    /// log, dirty blocks of volumes that are not served, a device that fails.
    pub fn open(
        io: &mut impl Io,
        parts: Parts,
        found: Recovered,
    ) -> Result<(BlockServer, Restored), RestoreError> {
        let Parts { cache, set, group_blocks, spare_segments, volumes, namespaces } = parts;
        let engine = cache.engine();
        let quota = (0..engine.pools()).map(|pool| u64::from(engine.policy(pool).capacity())).sum();
        let settings = LogSettings { streams: STREAMS, group_blocks, spare_segments };
        let max = max_blocks(&set, &settings);
        if quota > max {
            return Err(RestoreError::TooSmall { quota, max });
        }
        let block_bytes = set.block_bytes() as u64;
        check_volumes(io, &volumes, block_bytes)?;
        let served = Volumes::new(volumes);
        check_served(&served, &found.blocks, block_bytes)?;
        let shift = block_bytes.trailing_zeros();
        let Recovered { segments, last_group, last_decision, blocks, .. } = found;
        let log = Log::new(set, settings, (segments, last_group), namespaces[0]);
        let tenants = served.tenants().count();
        let clock = DecisionClock::new(io.now_ns());
        let decisions = Decisions::new(cache, tenants, shift, (last_decision, clock));
        let values = (decisions, Content::new(log), served);
        let mut server = BlockServer::new(values, shift, namespaces[1]);
        let restored = server.put_back(io, blocks)?;
        Ok((server, restored))
    }

    /// Puts blocks back. While the log is appended to, its operations are under way: blocks are
    /// written back before, or when all of them are done.
    fn put_back(
        &mut self,
        io: &mut impl Io,
        mut blocks: Vec<RecoveredBlock>,
    ) -> Result<Restored, RestoreError> {
        let mut restored = Restored::default();
        let keeps_dirty = self.decisions.cache.engine().mode() == WriteMode::WriteBack;
        if !keeps_dirty {
            let dirty = blocks.iter().filter(|block| block.dirty).copied();
            let damaged = self.write_back_found(io, dirty.collect())?;
            blocks.retain(|block| !damaged.contains(&(block.volume, block.number)));
        }
        self.drop_unserved(io, &mut blocks, &mut restored);
        let mut refused = Vec::new();
        for block in blocks {
            let Some(tenant) = self.volumes.tenant(block.volume) else { continue };
            let dirty = block.dirty && keeps_dirty;
            let (resident, departures) = self.decisions.adopt((tenant, block.number), dirty);
            self.depart(io, departures, None);
            self.take_ends(io);
            let Some(resident) = resident else {
                // Until it is dropped, its content must stay.
                let RecoveredBlock { place, version, .. } = block;
                self.content.strand((block.volume, block.number), Stranded { place, version });
                refused.push(block);
                continue;
            };
            self.content.stored_blocks.put(resident, StoredBlock::found(&block, dirty));
            if block.dirty && !keeps_dirty {
                let named = LogBlock { volume: block.volume, number: block.number };
                self.content.note_clean(io, resident, named);
                restored.written_back += 1;
            }
            restored.dirty += u64::from(dirty);
            restored.clean += u64::from(!dirty);
        }
        self.drop_refused(io, refused, keeps_dirty, &mut restored)?;
        self.settle(io);
        match self.content.failed {
            Some(error) => Err(RestoreError::Io(error)),
            None => Ok(restored),
        }
    }

    /// Waits until nothing is under way.
    fn drain(&mut self, io: &mut impl Io) {
        let mut done = Vec::new();
        loop {
            self.advance(io);
            io.wait(&mut done);
            if done.is_empty() {
                return;
            }
            done.drain(..).for_each(|done| self.on_done(io, done));
        }
    }

    /// Blocks of volumes that are not served, or behind their ends, are not kept: one record per
    /// volume says so.
    fn drop_unserved(
        &mut self,
        io: &mut impl Io,
        blocks: &mut Vec<RecoveredBlock>,
        restored: &mut Restored,
    ) {
        let mut gone: BTreeMap<VolumeId, Range<u64>> = BTreeMap::new();
        blocks.retain(|block| {
            let served = self.volumes.tenant(block.volume);
            let served = served.and_then(|tenant| self.volumes.get(tenant));
            let served =
                served.is_some_and(|volume| (block.number + 1) << self.block_shift <= volume.bytes);
            if !served {
                let range = gone.entry(block.volume).or_insert(block.number..block.number);
                range.start = range.start.min(block.number);
                range.end = range.end.max(block.number + 1);
                self.content.log.note_dead(block.place);
                restored.dropped += 1;
            }
            served
        });
        let version = Version::last(self.decisions.in_log(0));
        for (volume, range) in gone {
            // A tenant that no request names: nothing waits for the leaving of such blocks.
            let tenant = self.volumes.tenant(volume).unwrap_or(TenantId(u16::MAX));
            self.content.note_gone(io, (tenant, volume), range, version);
        }
    }

    /// Blocks that the policy refused are not kept; dirty ones are written back before.
    fn drop_refused(
        &mut self,
        io: &mut impl Io,
        refused: Vec<RecoveredBlock>,
        keeps_dirty: bool,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        if refused.is_empty() {
            return Ok(());
        }
        self.drain(io);
        let mut place = |block: &RecoveredBlock| {
            let found = self.content.stranded.remove(&(block.volume, block.number))?;
            Some(RecoveredBlock { place: found.place, version: found.version, ..*block })
        };
        let refused: Vec<RecoveredBlock> = refused.iter().filter_map(&mut place).collect();
        let dirty = refused.iter().filter(|block| block.dirty && keeps_dirty).copied();
        let damaged = self.write_back_found(io, dirty.collect())?;
        for RecoveredBlock { volume, number, version, place, .. } in refused {
            let Some(tenant) = self.volumes.tenant(volume) else { continue };
            if damaged.contains(&(volume, number)) {
                continue;
            }
            self.content.note_gone(io, (tenant, volume), number..number + 1, version);
            self.content.log.note_dead(place);
            restored.dropped += 1;
        }
        Ok(())
    }

    /// Writes dirty blocks back and makes that durable; returns those whose content is damaged:
    /// it stays where it is, and reads of these blocks fail. Nothing may be under way. Errors: a
    /// device's.
    fn write_back_found(
        &mut self,
        io: &mut impl Io,
        mut blocks: Vec<RecoveredBlock>,
    ) -> Result<HashSet<(VolumeId, u64), FixedState>, RestoreError> {
        blocks.sort_unstable_by_key(|block| (block.volume, block.number));
        let mut damaged = HashSet::default();
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            let set = self.content.log.set();
            let place = |block: &RecoveredBlock| {
                let (segment, page) = set.locate(block.place);
                let start = set.page(segment, page);
                (start.file, start.offset, set.block_bytes())
            };
            let found = batch::read(io, some.iter().map(place));
            let mut pieces: Vec<(FileId, u64, Buffer)> = Vec::new();
            for (block, data) in some.iter().zip(found) {
                let RecoveredBlock { volume, number, version, place, checksum, .. } = *block;
                let Some(tenant) = self.volumes.tenant(volume) else { continue };
                match data.ok().filter(|data| data_checksum(volume, number, data) == checksum) {
                    Some(data) => {
                        let file = self.volumes.backing(tenant).file();
                        pieces.push((file, number << self.block_shift, data));
                    }
                    None => {
                        self.content.strand((volume, number), Stranded { place, version });
                        self.counts.stranded += 1;
                        damaged.insert((volume, number));
                    }
                }
            }
            batch::write(io, pieces).map_err(RestoreError::Io)?;
        }
        Ok(damaged)
    }
}

/// Errors: a volume that is no whole number of blocks, or larger than its backing device.
fn check_volumes(
    io: &impl Io,
    volumes: &[ServedVolume],
    block_bytes: u64,
) -> Result<(), RestoreError> {
    for volume in volumes {
        let found = io.file_bytes(volume.backing);
        let expected = volume.bytes.next_multiple_of(block_bytes);
        if found < expected || expected != volume.bytes {
            return Err(RestoreError::Backing { volume: volume.id.0, found, expected });
        }
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
        let inside = volume.is_some_and(|volume| (block.number + 1) * block_bytes <= volume.bytes);
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
