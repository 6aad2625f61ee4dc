//! A start on what recovery found: the checks before it, and blocks that come back into the cache.
//!
//! Blocks come back oldest first. Where the write mode knows no dirty blocks, dirty ones are
//! written back first. What the cache does not keep is written back and dropped in pieces, with
//! cleaning between them, so that no number of such blocks fills the log.
//!
//! - A volume may have grown whose last block was only a part of one. In the cache that block has
//!   zeroes behind the old end, where the backing device may have other bytes: it is dropped, and
//!   what only the cache had of it goes to the backing device up to the old end.
//! - Under another layout than before, content lies on devices that are not its tenant's. The cache
//!   begins empty then, as a pool of devices may have no free segment for what would have to move.
//!   Damaged dirty blocks stay where they are.
//!
//! Units: bytes, blocks.

use super::capacity::{max_blocks, needed_segments};
use super::content::{LogContent, Stranded};
use super::copies::StoredBlock;
use super::decisions::Decisions;
use super::layout::DeviceLayout;
use super::server::{BlockServer, State};
use super::streams::{CleaningSettings, Streams};
use super::volumes::{ServedVolume, Volumes};
use crate::io::executor::Executor;
use crate::io::{Io, IoError, IoOp, batch};
use crate::log::format::{LogRecordKind, Version, Volume, VolumeId};
use crate::log::{
    BackingFile, BlockRun, DeviceSet, Log, LogSettings, OpenSet, Place, RecoveredBlock,
    RecoveredLog, WrittenBack, write_back,
};
use crate::record::DecisionClock;
use cachewright_cache::{Cache, Engine, Move, WriteMode};
use cachewright_policy::Policy;
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Segments that cleaning needs: one for copies, one for records, and the next of either.
const MIN_SPARE: usize = 3;

/// Blocks that are dropped before the log is cleaned.
const PIECE_BLOCKS: usize = 2048;
/// For so many blocks at once, what the cache reads is loaded ahead.
const TOUCHED: usize = 64;
/// A record goes over so many blocks that the log does not have, between blocks that it is about.
const MAX_GAP: u64 = 64;

/// Blocks, by volume and number.
type BlockSet = HashSet<(VolumeId, u64), FixedState>;

/// Content that was found and is not cached.
fn stranded(place: Place, version: Version, dirty: bool, checksum: Option<u32>) -> Stranded {
    Stranded { place, version, dirty, left: 0, checksum, group: 0 }
}

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
        let volumes = parts.volumes;
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
        let log = Log::new(set, settings, segments, last_group);
        let clock = DecisionClock::new(io.now_ns());
        let decisions = Decisions::new(cache, shift, last_decision, clock);
        let tasks = Executor::default();
        let content = LogContent::new(log, streams, tasks.clone());
        let mut server = BlockServer::new(decisions, content, served, shift, tasks);
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

/// Errors: too few spare segments, more volumes than tenants have numbers.
fn check_parts(parts: &ServerParts) -> Result<(), RestoreError> {
    let ServerParts { open, spare_segments, volumes, .. } = parts;
    if open.superblock.bypassed.is_some() {
        return Err(RestoreError::Bypassed);
    }
    let wrong = |name, found, expected| Err(RestoreError::Parts { name, found, expected });
    if *spare_segments < MIN_SPARE {
        return wrong("spare_segments", *spare_segments as u64, "at least 3");
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

impl BlockServer {
    /// Puts blocks back; the devices know the volumes `known`, which may have grown since. While
    /// the log is appended to, its operations are under way: blocks are written back before, or
    /// when all of them are done. Errors: a device's.
    fn put_back(
        &mut self,
        io: &mut impl Io,
        mut blocks: Vec<RecoveredBlock>,
        known: &[Volume],
    ) -> Result<Restored, RestoreError> {
        let mut restored = Restored::default();
        let mut state = self.state();
        state.now_ns = io.now_ns();
        state.drop_grown(io, &mut blocks, known, &mut restored)?;
        let keeps_dirty = state.decisions.decider.cache.engine().mode() == WriteMode::WriteBack;
        if keeps_dirty {
            for RecoveredBlock { volume, number, place, version, .. } in
                blocks.extract_if(.., |block| block.damaged)
            {
                let found = stranded(place, version, true, None);
                state.content.strand((volume, number), found);
                restored.damaged += 1;
            }
            state.counts.stranded += restored.damaged;
        } else {
            // With those that are known to be damaged: runs of what is clean end there.
            let dirty = blocks.iter().filter(|block| block.dirty).copied().collect();
            let (runs, damaged) = state.write_back_found(io, dirty)?;
            blocks.retain(|block| !damaged.contains(&(block.volume, block.number)));
            restored.damaged = damaged.len() as u64;
            for block in &mut blocks {
                restored.written_back += u64::from(std::mem::take(&mut block.dirty));
            }
            let version = state.last_version();
            for (volume, run) in runs {
                let tenant = state.tenant_of(volume);
                let kind = |blocks| LogRecordKind::Cleaned { blocks };
                state.content.note_ranges(tenant, volume, run, version, kind);
            }
        }
        state.drop_laid_elsewhere(io, &mut blocks, &mut restored)?;
        state.drop_unserved(&mut blocks, &mut restored);
        let has_strange = restored.dropped > 0;
        let dropped = state.adopt_found(blocks, &mut restored);
        drop(state);
        self.drop_found(io, dropped, &mut restored)?;
        if has_strange {
            // Others may write to the device of a volume that is not served, and the table of
            // volumes is to say that one has grown: such content must not be found again.
            self.state().sync_log_unasked();
            self.drain(io);
        }
        self.settle();
        self.submit(io);
        match self.look().content.failed {
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

    /// Drops blocks that the cache does not keep; dirty ones are written back before, and damaged
    /// ones stay. Errors: a device's.
    fn drop_found(
        &mut self,
        io: &mut impl Io,
        mut dropped: Vec<RecoveredBlock>,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        dropped.sort_unstable_by_key(|block| (block.volume, block.number));
        for piece in dropped.chunks(PIECE_BLOCKS) {
            self.drain(io);
            let mut state = self.state();
            // The cleaner may have moved content; clean content that it found damaged is gone.
            let now = |block: &RecoveredBlock| {
                let found = state.content.stranded.get(&(block.volume, block.number));
                let place = found.map_or(block.place, |found| found.place);
                RecoveredBlock { place, ..*block }
            };
            let dirty = piece.iter().filter(|block| block.dirty).map(now).collect();
            let (_, damaged) = state.write_back_found(io, dirty)?;
            let named = piece.iter().map(|block| (block.volume, block.number));
            let gone: Vec<_> = named.filter(|block| !damaged.contains(block)).collect();
            restored.dropped += gone.len() as u64;
            for block in &gone {
                if let Some(found) = state.content.stranded.remove(block) {
                    state.content.log.note_dead(found.place);
                }
            }
            let version = state.last_version();
            for (volume, run) in state.runs_of(gone) {
                let Some(tenant) = state.volumes.tenant(volume) else { continue };
                state.content.note_gone(tenant, volume, run, version);
            }
        }
        Ok(())
    }
}

impl State {
    /// Blocks that were found go into the cache; returns those that it does not keep. Until they
    /// are dropped, their content must stay.
    fn adopt_found(
        &mut self,
        blocks: Vec<RecoveredBlock>,
        restored: &mut Restored,
    ) -> Vec<RecoveredBlock> {
        let mut dropped = Vec::new();
        for (place, block) in blocks.iter().copied().enumerate() {
            if place % TOUCHED == 0 {
                self.touch(&blocks[place..blocks.len().min(place + TOUCHED)]);
            }
            let Some(tenant) = self.volumes.tenant(block.volume) else { continue };
            let dirty = block.dirty;
            let (cached, plan) = self.decisions.adopt(tenant, block.number, dirty);
            for step in &plan.moves {
                let (Move::Drop(left) | Move::Discard { cached: left, .. }) = step else {
                    continue;
                };
                let decision = self.decisions.made();
                let Some(copy) = self.content.copies.evict(left, decision) else { continue };
                let stored = self.content.take_stored(copy);
                // Nothing uses it.
                self.content.copies.end_unused(copy);
                let Some(stored) = stored else { continue };
                *if stored.dirty { &mut restored.dirty } else { &mut restored.clean } -= 1;
                dropped.push(RecoveredBlock {
                    volume: self.volumes.id(left.tenant),
                    number: left.number,
                    version: stored.recorded,
                    place: stored.place,
                    checksum: stored.checksum,
                    dirty: stored.dirty,
                    damaged: false,
                });
            }
            self.decisions.give_back(plan);
            // One that the cache holds already was found twice: the first is the newer one.
            let fresh = cached.filter(|cached| self.content.copies.find(cached).is_none());
            match fresh {
                Some(cached) => {
                    let copy = self.content.copies.admit(&cached, 0);
                    self.content.copies.put(copy, StoredBlock::found(&block, dirty));
                    *if dirty { &mut restored.dirty } else { &mut restored.clean } += 1;
                }
                None => dropped.push(block),
            }
        }
        for RecoveredBlock { volume, number, version, place, dirty, checksum, .. } in &dropped {
            if let Some(tenant) = self.volumes.tenant(*volume) {
                self.decisions.decider.cache.note_dropped_at_restart(tenant, *number);
            }
            let found = stranded(*place, *version, *dirty, Some(*checksum));
            self.content.strand((*volume, *number), found);
        }
        dropped
    }

    /// Loads what the cache reads for coming blocks, so that the waits for memory overlap.
    fn touch(&self, coming: &[RecoveredBlock]) {
        for block in coming {
            if let Some(tenant) = self.volumes.tenant(block.volume) {
                self.decisions.decider.cache.prefetch_address(tenant, block.number);
            }
        }
    }

    /// Blocks of volumes that are not served, or behind their ends, are not kept: one record per
    /// volume says so.
    fn drop_unserved(&mut self, blocks: &mut Vec<RecoveredBlock>, restored: &mut Restored) {
        let mut gone: BTreeMap<VolumeId, Range<u64>> = BTreeMap::new();
        blocks.retain(|block| {
            let served = self.volumes.tenant(block.volume);
            let served = served.and_then(|tenant| self.volumes.get(tenant));
            let block_bytes = 1 << self.block_shift;
            let served = served.is_some_and(|volume| block.number < volume.blocks(block_bytes));
            if !served {
                let range = gone.entry(block.volume).or_insert(block.number..block.number);
                range.start = range.start.min(block.number);
                range.end = range.end.max(block.number + 1);
                self.content.log.note_dead(block.place);
                restored.dropped += 1;
            }
            served
        });
        let version = self.last_version();
        for (volume, range) in gone {
            let tenant = self.tenant_of(volume);
            self.content.note_gone(tenant, volume, range, version);
        }
    }

    /// The tenant of a volume. That of one that is not served is named by no request: nothing waits
    /// for the leaving of such blocks.
    pub(super) fn tenant_of(&self, volume: VolumeId) -> TenantId {
        self.volumes.tenant(volume).unwrap_or(TenantId(u16::MAX))
    }

    /// Blocks in order, as runs with blocks between them of which the log has nothing.
    fn runs_of(&self, blocks: Vec<(VolumeId, u64)>) -> Vec<BlockRun> {
        let is_known = |volume: VolumeId, number: u64| {
            let tenant = self.volumes.tenant(volume);
            let cached = tenant.and_then(|tenant| self.cached(tenant, number));
            cached.is_some() || self.content.stranded.contains_key(&(volume, number))
        };
        let mut runs: Vec<BlockRun> = Vec::new();
        for (volume, number) in blocks {
            match runs.last_mut() {
                Some((other, run))
                    if *other == volume
                        && number - run.end <= MAX_GAP
                        && !(run.end..number).any(|between| is_known(volume, between)) =>
                {
                    run.end = number + 1;
                }
                _ => runs.push((volume, number..number + 1)),
            }
        }
        runs
    }

    /// The version of the last decision: all content that was found is as old.
    pub(super) fn last_version(&self) -> Version {
        Version::last(self.decisions.in_log(self.decisions.made()))
    }

    /// Writes dirty blocks back and makes that durable; returns the runs in which all are, and the
    /// blocks whose content is damaged: it stays where it is, and reads of these blocks fail.
    /// Nothing may be under way. Errors: a device's.
    fn write_back_found(
        &mut self,
        io: &mut impl Io,
        blocks: Vec<RecoveredBlock>,
    ) -> Result<(Vec<BlockRun>, BlockSet), RestoreError> {
        let volumes = &self.volumes;
        let backing = |id| {
            let tenant = volumes.tenant(id)?;
            let (file, bytes) = (volumes.backing(tenant).file(), volumes.bytes(tenant));
            Some(BackingFile { file, bytes })
        };
        let written = write_back(io, self.content.log.set(), blocks, backing);
        let WrittenBack { runs, damaged } = written.map_err(RestoreError::Io)?;
        let mut names = BlockSet::default();
        for RecoveredBlock { volume, number, version, place, checksum, damaged, .. } in damaged {
            let found = stranded(place, version, true, (!damaged).then_some(checksum));
            self.content.stranded.entry((volume, number)).or_insert(found);
            self.counts.stranded += 1;
            names.insert((volume, number));
        }
        Ok((runs, names))
    }

    /// Drops the last blocks of volumes that have grown since the table of volumes was `known`;
    /// dirty ones are written back before. Nothing may be under way, and the table must not say the
    /// new sizes before the log is durable. Errors: a device's; such a block cannot be written
    /// back.
    fn drop_grown(
        &mut self,
        io: &mut impl Io,
        blocks: &mut Vec<RecoveredBlock>,
        known: &[Volume],
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        let block_bytes = 1 << self.block_shift;
        let has_grown = |known: &&Volume| {
            let tenant = self.volumes.tenant(known.id);
            let is_longer = tenant.is_some_and(|tenant| self.volumes.bytes(tenant) > known.bytes);
            is_longer && !known.bytes.is_multiple_of(block_bytes)
        };
        let grown: Vec<&Volume> = known.iter().filter(has_grown).collect();
        let before = |block: &RecoveredBlock| {
            let last = |known: &&&Volume| {
                (known.id, known.bytes / block_bytes) == (block.volume, block.number)
            };
            grown.iter().find(last).map(|known| known.bytes)
        };
        let dropped: Vec<_> = blocks.extract_if(.., |block| before(block).is_some()).collect();
        let dirty: Vec<_> = dropped.iter().filter(|block| block.dirty).copied().collect();
        restored.written_back += dirty.len() as u64;
        let backing = |id| {
            let bytes = grown.iter().find(|known| known.id == id)?.bytes;
            let file = self.volumes.backing(self.volumes.tenant(id)?).file();
            Some(BackingFile { file, bytes })
        };
        let written = write_back(io, self.content.log.set(), dirty, backing);
        if let Some(block) = written.map_err(RestoreError::Io)?.damaged.first() {
            let bytes = before(block).unwrap_or_default();
            return Err(RestoreError::Grown { volume: block.volume.0, bytes });
        }
        let version = self.last_version();
        for RecoveredBlock { volume, number, place, .. } in dropped {
            self.content.log.note_dead(place);
            restored.dropped += 1;
            let tenant = self.tenant_of(volume);
            self.content.note_gone(tenant, volume, number..number + 1, version);
        }
        Ok(())
    }

    /// Drops all blocks if one lies on devices that are not its tenant's; dirty ones are written
    /// back before. Nothing may be under way. Errors: a device's.
    fn drop_laid_elsewhere(
        &mut self,
        io: &mut impl Io,
        blocks: &mut Vec<RecoveredBlock>,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        if !blocks.iter().any(|block| self.lies_elsewhere(block)) {
            return Ok(());
        }
        let dirty = blocks.iter().filter(|block| block.dirty).copied().collect();
        let (_, damaged) = self.write_back_found(io, dirty)?;
        restored.damaged += damaged.len() as u64;
        let written_back = blocks.iter().filter(|block| block.dirty).count() - damaged.len();
        restored.written_back += written_back as u64;
        let mut runs: BTreeMap<VolumeId, Vec<u64>> = BTreeMap::new();
        for block in blocks.drain(..).filter(|block| !is_named(&damaged, block)) {
            self.content.log.note_dead(block.place);
            restored.dropped += 1;
            runs.entry(block.volume).or_default().push(block.number);
        }
        let version = self.last_version();
        for (volume, numbers) in runs {
            for (volume, run) in self.between_stranded(volume, numbers) {
                let tenant = self.tenant_of(volume);
                self.content.note_gone(tenant, volume, run, version);
            }
        }
        Ok(())
    }

    fn lies_elsewhere(&self, block: &RecoveredBlock) -> bool {
        let Some(tenant) = self.volumes.tenant(block.volume) else { return false };
        let set = self.content.log.set();
        set.pool(set.locate(block.place).0) != self.content.streams.pool(tenant)
    }

    /// Runs that have all of these blocks and none whose content stays in the log.
    fn between_stranded(&self, volume: VolumeId, mut numbers: Vec<u64>) -> Vec<BlockRun> {
        numbers.sort_unstable();
        let mut runs: Vec<BlockRun> = Vec::new();
        for number in numbers {
            let stays = |from| {
                let mut between = self.content.stranded.range((volume, from)..(volume, number));
                between.next().is_some()
            };
            match runs.last_mut() {
                Some((_, run)) if !stays(run.end) => run.end = number + 1,
                _ => runs.push((volume, number..number + 1)),
            }
        }
        runs
    }
}

fn is_named(names: &BlockSet, block: &RecoveredBlock) -> bool {
    names.contains(&(block.volume, block.number))
}
