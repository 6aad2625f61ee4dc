//! Blocks that recovery found come back into the cache.
//!
//! For: a warm start. Must never know: how recovery reads a log. Units: bytes, blocks. Blocks come
//! back oldest first. Where the write mode knows no dirty blocks, dirty ones are written back
//! first. What the cache does not keep is written back and dropped in pieces, with cleaning between
//! them, so that no number of such blocks fills the log. All other content is known by then.

use super::content::Stranded;
use super::copies::StoredBlock;
use super::restore::{RestoreError, Restored};
use super::server::{BlockServer, State};
use crate::io::Io;
use crate::log::format::{LogRecordKind, Version, Volume, VolumeId};
use crate::log::{BackingFile, BlockRun, Place, RecoveredBlock, WrittenBack, write_back};
use cachewright_cache::{Move, WriteMode};
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks that are dropped before the log is cleaned.
const PIECE_BLOCKS: usize = 2048;
/// For so many blocks at once, what the cache reads is loaded ahead.
const TOUCHED: usize = 64;
/// A record goes over so many blocks that the log does not have, between blocks that it is about.
const MAX_GAP: u64 = 64;

/// Blocks, by volume and number.
pub(super) type BlockSet = HashSet<(VolumeId, u64), FixedState>;

/// Content that was found and is not cached.
fn stranded(place: Place, version: Version, dirty: bool, checksum: Option<u32>) -> Stranded {
    Stranded { place, version, dirty, left: 0, checksum, group: 0 }
}

impl BlockServer {
    /// Puts blocks back; the devices know the volumes `known`, which may have grown since. While
    /// the log is appended to, its operations are under way: blocks are written back before, or
    /// when all of them are done. Errors: a device's.
    pub(super) fn put_back(
        &mut self,
        io: &mut impl Io,
        mut blocks: Vec<RecoveredBlock>,
        known: &[Volume],
    ) -> Result<Restored, RestoreError> {
        let mut restored = Restored::default();
        let mut state = self.state();
        state.now_ns = io.now_ns();
        state.drop_grown(io, &mut blocks, known, &mut restored)?;
        let keeps_dirty = state.decisions.cache.engine().mode() == WriteMode::WriteBack;
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
            let found = stranded(*place, *version, *dirty, Some(*checksum));
            self.content.strand((*volume, *number), found);
        }
        dropped
    }

    /// Loads what the cache reads for coming blocks, so that the waits for memory overlap.
    fn touch(&self, coming: &[RecoveredBlock]) {
        for block in coming {
            if let Some(tenant) = self.volumes.tenant(block.volume) {
                self.decisions.cache.prefetch_address(tenant, block.number);
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
    pub(super) fn write_back_found(
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
}
