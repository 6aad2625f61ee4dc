//! Cleaning: what is live in a segment goes elsewhere, then the segment is free.
//!
//! For: room in the log. Must never know: how a victim is chosen, policies. Units: blocks. One
//! segment is cleaned at a time. Its content is copied as it was found, damaged dirty content as
//! such; the copy has the version of the last decision, so that it is newer than all that the
//! segment holds of the block. A record that takes content away goes along while another segment
//! holds content that is not newer. The segment is emptied when all of this is durable. Blocks that
//! the owner forgets are looked at again afterwards: the record of their leaving comes before.

use super::devices::{Place, SegmentId, WritePoint};
use super::format::{FooterRecord, LogRecordKind, Version, VolumeId, data_checksum};
use super::writer::Log;
use super::writer::SegmentUse;
use super::writer::{Appended, LogError};
use super::writer::{Content, LogEntry};
use crate::io::{Buffer, IoError, Submit};
use std::ops::Range;

/// Blocks that are read at once for each stream, and copied into one group where it takes so many.
const COPIED_TOGETHER: u32 = 16;
/// Most blocks that are read at once.
const MAX_BATCH: u32 = 128;

/// Blocks of so many pages that are read at once, where there are so many streams.
pub fn cleaning_batch(streams: usize, block_pages: u32) -> u32 {
    let batch = (streams as u32).saturating_mul(COPIED_TOGETHER) / block_pages.max(1);
    batch.clamp(COPIED_TOGETHER, MAX_BATCH)
}

/// How the content at a place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentStanding {
    /// Nothing needs it, and the record that says so is appended.
    Dead,
    /// It is the newest of its block, and the backing device has it.
    Clean,
    /// It is the newest of its block, and the backing device has older content.
    Dirty,
    /// Newer content is on its way to the log: look again later.
    Changing,
}

/// Why clean content is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleaningLoss {
    /// It is damaged, or could not be read.
    Damaged,
    /// It is not worth a copy.
    Cold,
}

/// Who knows which content is the newest.
pub trait Owner {
    /// How the content of a block at a place stands.
    fn standing(&self, volume: VolumeId, number: u64, place: Place) -> ContentStanding;
    /// The block's content, which lay at `from`, lies elsewhere from now on.
    fn moved(&mut self, volume: VolumeId, number: u64, from: Place, to: &Appended);
    /// The stream of a block's content, which lies at a place and is about to be moved.
    fn stream(&mut self, log: &Log, volume: VolumeId, number: u64, from: Place) -> usize;
    /// Whether the content of a block that stands clean is to be forgotten instead of moved.
    fn is_cold(&self, volume: VolumeId, number: u64, place: Place) -> bool;
    /// The content of a block that stands clean is damaged or could not be read, or is cold: it is
    /// forgotten, before the cleaner goes on.
    fn forget(&mut self, volume: VolumeId, number: u64, loss: CleaningLoss);
    /// Whether older content of one of the blocks can still be appended: a step of a block that
    /// has left is under way.
    fn may_return(&self, volume: VolumeId, blocks: Range<u64>) -> bool;
    /// The number of the last decision.
    fn last_decision(&self) -> u64;
}

/// Why a segment is not cleaned, or not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleaningError {
    /// The log takes nothing more, and no segment is on its way to be free: it is tried again.
    Log(LogError),
    /// Its records, or dirty content in it, could not be read: the segment stays as it is.
    Unreadable,
}

impl From<LogError> for CleaningError {
    fn from(error: LogError) -> CleaningError {
        CleaningError::Log(error)
    }
}

/// What is done with the segment at hand.
#[derive(Debug)]
enum CleaningPhase {
    Idle,
    /// Its records are being read.
    Records,
    /// Its content is being moved. What was read is appended together, so that groups are full.
    Moving {
        records: Vec<FooterRecord>,
        next: usize,
        reads: usize,
        found: Vec<(FooterRecord, Buffer, Result<(), IoError>)>,
        /// Pages of dirty content that looked damaged once: they are read again before that is
        /// believed.
        suspects: Vec<u32>,
        /// Blocks that the owner is to forget: they are looked at again when it has.
        forgotten: Vec<FooterRecord>,
    },
    /// What was moved is on its way to be durable.
    Settling,
}

/// Cleans segments, one at a time.
#[derive(Debug)]
pub struct Cleaner {
    /// The stream of records without content: that of the last content. All goes to the pool of
    /// the segment.
    stream: usize,
    /// Blocks that are read at once.
    batch: u32,
    caller: u64,
    victim: SegmentId,
    phase: CleaningPhase,
    /// Blocks that were moved so far.
    moved: u64,
}

impl Cleaner {
    /// A cleaner that reads so many blocks at once. Its first records without content go to
    /// `stream`. Events of the log for it carry callers from `caller` on: twice as many as a
    /// segment has records.
    pub fn new(stream: usize, batch: u32, caller: u64) -> Cleaner {
        let (victim, phase) = (SegmentId::NONE, CleaningPhase::Idle);
        Cleaner { stream, batch, caller, victim, phase, moved: 0 }
    }

    /// Whether a segment is being cleaned.
    pub fn is_busy(&self) -> bool {
        !matches!(self.phase, CleaningPhase::Idle)
    }

    /// Blocks that were moved so far.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// The segment that is being cleaned, or was cleaned last.
    pub fn victim(&self) -> SegmentId {
        self.victim
    }

    /// Begins to clean a sealed segment.
    pub fn begin(&mut self, log: &mut Log, io: &mut impl Submit, victim: SegmentId) {
        self.victim = victim;
        self.phase = CleaningPhase::Records;
        log.read_records(io, victim, self.caller);
    }

    /// The records of the segment were read. Errors: see [`CleaningError`].
    pub fn records(
        &mut self,
        log: &mut Log,
        owner: &mut impl Owner,
        io: &mut impl Submit,
        records: Result<Vec<FooterRecord>, IoError>,
    ) -> Result<(), CleaningError> {
        let Ok(records) = records else {
            self.phase = CleaningPhase::Idle;
            return Err(CleaningError::Unreadable);
        };
        let (found, suspects, forgotten) = (Vec::new(), Vec::new(), Vec::new());
        self.phase =
            CleaningPhase::Moving { records, next: 0, reads: 0, found, suspects, forgotten };
        self.go_on(log, owner, io)
    }

    /// Goes on after a round of syncs, after a change has ended, or when the owner has forgotten
    /// blocks. Errors: see [`CleaningError`].
    pub fn go_on(
        &mut self,
        log: &mut Log,
        owner: &mut impl Owner,
        io: &mut impl Submit,
    ) -> Result<(), CleaningError> {
        if let CleaningPhase::Moving { records, forgotten, .. } = &mut self.phase {
            records.append(forgotten);
        }
        let result = self.move_on(log, owner, io);
        Ok(while_segments_are_freed(log, result)?)
    }

    /// Reads more of the segment's content, copies records that are needed, and ends when all is
    /// moved.
    fn move_on(
        &mut self,
        log: &mut Log,
        owner: &mut impl Owner,
        io: &mut impl Submit,
    ) -> Result<(), LogError> {
        let CleaningPhase::Moving { records, next, reads, found, forgotten, .. } = &mut self.phase
        else {
            return Ok(());
        };
        while let Some(FooterRecord { record, page }) = records.get(*next).copied() {
            if *reads + found.len() + forgotten.len() >= self.batch as usize {
                return Ok(());
            }
            let block = (record.volume, record.number);
            if record.kind.has_data() {
                let place = log.set().place(self.victim, page);
                match owner.standing(record.volume, record.number, place) {
                    ContentStanding::Dead => {}
                    ContentStanding::Changing => return Ok(()),
                    ContentStanding::Clean
                        if owner.is_cold(record.volume, record.number, place) =>
                    {
                        owner.forget(record.volume, record.number, CleaningLoss::Cold);
                        forgotten.push(FooterRecord { record, page });
                    }
                    ContentStanding::Clean | ContentStanding::Dirty => {
                        log.read(io, place, self.caller + *next as u64);
                        *reads += 1;
                    }
                }
            } else if owner.may_return(record.volume, record.blocks())
                || log.holds_older(record.version, self.victim)
            {
                let entry = LogEntry::Note(record.kind);
                let point = WritePoint { pool: log.set().pool(self.victim), stream: self.stream };
                log.append(io, point, true, block, record.version, entry)?;
            }
            *next += 1;
        }
        if *reads == 0 && forgotten.is_empty() {
            self.phase = CleaningPhase::Settling;
            log.sync(io, self.caller);
        }
        Ok(())
    }

    /// A block was read. Errors: as for [`Cleaner::go_on`]; the block is read again later.
    pub fn read(
        &mut self,
        log: &mut Log,
        owner: &mut impl Owner,
        io: &mut impl Submit,
        caller: u64,
        data: Buffer,
        result: Result<(), IoError>,
    ) -> Result<(), CleaningError> {
        let CleaningPhase::Moving { records, reads, found, .. } = &mut self.phase else {
            return Ok(());
        };
        *reads -= 1;
        let placed = records.get((caller - self.caller) as usize).copied();
        found.extend(placed.map(|placed| (placed, data, result)));
        if *reads > 0 {
            return Ok(());
        }
        if self.is_unreadable(log, owner) {
            self.phase = CleaningPhase::Idle;
            return Err(CleaningError::Unreadable);
        }
        let result = self.append_found(log, owner, io);
        while_segments_are_freed(log, result)?;
        let result = self.move_on(log, owner, io);
        Ok(while_segments_are_freed(log, result)?)
    }

    /// Whether dirty content could not be read: it may be read another time, so that its segment
    /// is not emptied.
    fn is_unreadable(&self, log: &Log, owner: &impl Owner) -> bool {
        let CleaningPhase::Moving { found, .. } = &self.phase else { return false };
        found.iter().any(|(placed, _, result)| {
            let place = log.set().place(self.victim, placed.page);
            let record = &placed.record;
            result.is_err()
                && owner.standing(record.volume, record.number, place) == ContentStanding::Dirty
        })
    }

    /// Appends what was read, if it is still wanted. What does not fit is read again later, and so
    /// is dirty content that looks damaged for the first time.
    fn append_found(
        &mut self,
        log: &mut Log,
        owner: &mut impl Owner,
        io: &mut impl Submit,
    ) -> Result<(), LogError> {
        let CleaningPhase::Moving { records, next, found, suspects, forgotten, .. } =
            &mut self.phase
        else {
            return Ok(());
        };
        found.sort_unstable_by_key(|(placed, ..)| placed.page);
        let mut failed = Ok(());
        // What is read again takes the place of one that was read, so that there are no more.
        let mut again = |placed: FooterRecord| {
            *next -= 1;
            records[*next] = placed;
        };
        for (placed, data, result) in found.drain(..) {
            let record = placed.record;
            let block = (record.volume, record.number);
            let place = log.set().place(self.victim, placed.page);
            let standing = owner.standing(record.volume, record.number, place);
            let dirty = standing == ContentStanding::Dirty;
            let sum = data_checksum(record.volume, record.number, &data);
            let damaged = result.is_err()
                || record.kind.checksum() != Some(sum)
                || matches!(record.kind, LogRecordKind::Damaged { .. });
            match standing {
                ContentStanding::Dead => continue,
                ContentStanding::Changing => {
                    again(placed);
                    continue;
                }
                ContentStanding::Clean if damaged => {
                    // A step may still read it: the segment waits until it is dead.
                    owner.forget(record.volume, record.number, CleaningLoss::Damaged);
                    forgotten.push(placed);
                    continue;
                }
                ContentStanding::Dirty if damaged && !suspects.contains(&placed.page) => {
                    suspects.push(placed.page);
                    again(placed);
                    continue;
                }
                ContentStanding::Clean | ContentStanding::Dirty => {}
            }
            let checksum = record.kind.checksum();
            let entry = LogEntry::Content(Content { data: &data, dirty, damaged, checksum });
            let version = Version::last(owner.last_decision());
            self.stream = owner.stream(log, record.volume, record.number, place);
            let point = WritePoint { pool: log.set().pool(self.victim), stream: self.stream };
            match log.append(io, point, true, block, version, entry) {
                Ok(appended) => {
                    owner.moved(record.volume, record.number, place, &appended);
                    log.note_dead(place);
                    self.moved += 1;
                    log.give_back(data);
                }
                Err(error) => {
                    again(placed);
                    failed = Err(error);
                }
            }
        }
        failed
    }

    /// What was moved is durable: the segment is emptied. Errors: it could not be made durable.
    pub fn settled(
        &mut self,
        log: &mut Log,
        io: &mut impl Submit,
        result: Result<(), LogError>,
    ) -> Result<(), LogError> {
        self.phase = CleaningPhase::Idle;
        result?;
        log.empty(io, self.victim);
        Ok(())
    }
}

/// A full log is no error while a segment is on its way to be free.
fn while_segments_are_freed(log: &Log, result: Result<(), LogError>) -> Result<(), LogError> {
    let freeing = || log.segments().any(|(_, found)| found.usage == SegmentUse::Emptied);
    match result {
        Err(LogError::Full) if freeing() => Ok(()),
        other => other,
    }
}
