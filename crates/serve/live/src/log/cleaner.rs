//! Cleaning: what is live in a segment goes elsewhere, then the segment is free.
//!
//! One segment is cleaned at a time, by one procedure ([`clean`]). Its content is copied as it was
//! found, damaged dirty content as such; the copy has the version of the last decision, so that it
//! is newer than all that the segment holds of the block. A record that takes content away goes
//! along while another segment holds content that is not newer. The segment is emptied when all of
//! this is durable. Blocks that the owner forgets are looked at again afterwards: the record of
//! their leaving comes before. Units: blocks.

use super::devices::{Place, SegmentId, WritePoint};
use super::format::{FooterRecord, LogRecordKind, Version, VolumeId, data_checksum};
use super::writer::{Appended, Content, Log, LogEntry, LogError, SegmentUse};
use crate::io::executor::{Executor, Op, OpId};
use crate::io::{Buffer, IoError, Output};
use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
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
    /// Whether older content of one of the blocks can still be appended: a procedure uses the copy
    /// of one that has left.
    fn may_return(&self, volume: VolumeId, blocks: Range<u64>) -> bool;
    /// The number of the last decision.
    fn last_decision(&self) -> u64;
}

/// A log that is cleaned, with its owner.
pub trait CleaningSite {
    /// Works on the log. What it begins goes to the executor.
    fn with<R>(&self, work: impl FnOnce(&mut Log, &mut Executor, &mut dyn Owner) -> R) -> R;

    /// Waits until cleaning may go on; false if it is to end where it is.
    fn goes_on(&self) -> impl Future<Output = bool>;

    /// Waits until something may have changed that cleaning waits for: content on its way to the
    /// log, or room in it. `room`: it is room, and no segment is on its way to be free. False if
    /// cleaning is to end where it is.
    fn waits(&self, room: bool) -> impl Future<Output = bool>;
}

/// Why a segment was not cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleaningError {
    /// The log takes nothing more.
    Log(LogError),
    /// Its records, or dirty content in it, could not be read: the segment stays as it is.
    Unreadable,
    /// Cleaning was to end.
    Ended,
}

/// A block of the segment that was read.
type FoundBlock = (FooterRecord, Result<Buffer, IoError>);

/// Blocks of the segment that are being read.
type BegunReads = Vec<(FooterRecord, Op)>;

/// What holds the next records up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    /// Newer content of a block is on its way to the log.
    Changing,
    /// The log is full; whether a segment is on its way to be free.
    Full { is_freed: bool },
}

/// A segment that is being cleaned.
struct Victim {
    id: SegmentId,
    /// Records that were not looked at, or are looked at again.
    records: VecDeque<FooterRecord>,
    /// The stream of records without content: that of the last content. All goes to the pool of the
    /// segment.
    stream: usize,
    /// Blocks that are read at once.
    batch: usize,
    /// Pages of dirty content that looked damaged once: they are read again before that is
    /// believed.
    suspects: BTreeSet<u32>,
}

/// Cleans a sealed segment. Errors: see [`CleaningError`].
pub async fn clean(site: &impl CleaningSite, id: SegmentId) -> Result<(), CleaningError> {
    let footer = site.with(|log, tasks, _| {
        tasks.call(|tasks, caller| log.read_footer(tasks, id, u64::from(caller.0)))
    });
    let records = match footer.await {
        Ok(Output::Buffer(bytes, _)) => site.with(|log, _, _| log.records(id, &bytes)),
        _ => None,
    };
    let records = records.ok_or(CleaningError::Unreadable)?;
    let mut victim = site.with(|log, _, _| Victim::new(log, id, records));
    while !victim.records.is_empty() {
        if !site.goes_on().await {
            return Err(CleaningError::Ended);
        }
        let begun = site.with(|log, tasks, owner| victim.begin_batch(log, tasks, owner));
        let (reads, mut obstacle) = begun?;
        let mut found: Vec<FoundBlock> = Vec::with_capacity(reads.len());
        for (record, read) in reads {
            let data = match read.await {
                Ok(Output::Buffer(data, _)) => Ok(data),
                Ok(_) => Err(IoError::IO),
                Err(error) => Err(error),
            };
            found.push((record, data));
        }
        if site.with(|log, _, owner| victim.is_unreadable(log, owner, &found)) {
            return Err(CleaningError::Unreadable);
        }
        let appended = site.with(|log, tasks, owner| victim.append(log, tasks, owner, found))?;
        obstacle = appended.or(obstacle);
        let waits = match obstacle {
            Some(Obstacle::Full { is_freed }) => Some(!is_freed),
            Some(Obstacle::Changing) => Some(false),
            None => None,
        };
        if let Some(room) = waits
            && !site.waits(room).await
        {
            return Err(CleaningError::Ended);
        }
    }
    let synced =
        site.with(|log, tasks, _| tasks.call(|tasks, caller| log.sync(tasks, u64::from(caller.0))));
    // Without that a record may be missing that takes content away: no segment is emptied.
    synced.await.map_err(|error| CleaningError::Log(LogError::Failed(error)))?;
    site.with(|log, tasks, _| log.empty(tasks, id));
    Ok(())
}

impl Victim {
    fn new(log: &Log, id: SegmentId, records: Vec<FooterRecord>) -> Victim {
        let settings = log.settings();
        Victim {
            id,
            records: records.into(),
            stream: settings.streams - 1,
            batch: cleaning_batch(settings.moved_streams, log.set().block_pages()) as usize,
            suspects: BTreeSet::new(),
        }
    }

    /// Begins to read content that is live, and copies records that are needed, until there are
    /// enough or something holds them up. Errors: the log has failed.
    fn begin_batch(
        &mut self,
        log: &mut Log,
        tasks: &mut Executor,
        owner: &mut dyn Owner,
    ) -> Result<(BegunReads, Option<Obstacle>), CleaningError> {
        let (mut reads, mut forgotten, mut obstacle) = (Vec::new(), Vec::new(), None);
        while reads.len() + forgotten.len() < self.batch
            && let Some(placed) = self.records.pop_front()
        {
            let FooterRecord { record, page } = placed;
            let block = (record.volume, record.number);
            if record.kind.has_data() {
                let place = log.set().place(self.id, page);
                match owner.standing(record.volume, record.number, place) {
                    ContentStanding::Dead => {}
                    ContentStanding::Changing => {
                        self.records.push_front(placed);
                        obstacle = Some(Obstacle::Changing);
                        break;
                    }
                    ContentStanding::Clean
                        if owner.is_cold(record.volume, record.number, place) =>
                    {
                        owner.forget(record.volume, record.number, CleaningLoss::Cold);
                        forgotten.push(placed);
                    }
                    ContentStanding::Clean | ContentStanding::Dirty => {
                        let begin = |tasks: &mut Executor, caller: OpId| {
                            log.read(tasks, place, u64::from(caller.0));
                        };
                        reads.push((placed, tasks.call(begin)));
                    }
                }
            } else if owner.may_return(record.volume, record.blocks())
                || log.holds_older(record.version, self.id)
            {
                let entry = LogEntry::Note(record.kind);
                let point = WritePoint { pool: log.set().pool(self.id), stream: self.stream };
                if let Err(error) = log.append(tasks, point, true, block, record.version, entry) {
                    self.records.push_front(placed);
                    obstacle = Some(obstacle_of(log, error)?);
                    break;
                }
            }
        }
        self.records.extend(forgotten);
        Ok((reads, obstacle))
    }

    /// Whether dirty content could not be read: it may be read another time, so that its segment
    /// is not emptied.
    fn is_unreadable(&self, log: &Log, owner: &dyn Owner, found: &[FoundBlock]) -> bool {
        found.iter().any(|(placed, result)| {
            let place = log.set().place(self.id, placed.page);
            let record = &placed.record;
            result.is_err()
                && owner.standing(record.volume, record.number, place) == ContentStanding::Dirty
        })
    }

    /// Appends what was read, if it is still wanted. What does not fit is read again later, and so
    /// is dirty content that looks damaged for the first time. Errors: the log has failed.
    fn append(
        &mut self,
        log: &mut Log,
        tasks: &mut Executor,
        owner: &mut dyn Owner,
        mut found: Vec<FoundBlock>,
    ) -> Result<Option<Obstacle>, CleaningError> {
        found.sort_unstable_by_key(|(placed, _)| placed.page);
        let mut obstacle = None;
        for (placed, result) in found {
            let record = placed.record;
            let block = (record.volume, record.number);
            let place = log.set().place(self.id, placed.page);
            let standing = owner.standing(record.volume, record.number, place);
            let sum = |data: &Buffer| data_checksum(record.volume, record.number, data);
            let is_damaged = matches!(record.kind, LogRecordKind::Damaged { .. })
                || result.as_ref().map_or(true, |data| record.kind.checksum() != Some(sum(data)));
            match standing {
                ContentStanding::Dead => continue,
                ContentStanding::Changing => {
                    self.records.push_front(placed);
                    obstacle = obstacle.or(Some(Obstacle::Changing));
                    continue;
                }
                ContentStanding::Clean if is_damaged => {
                    // A procedure may still read it: the segment waits until it is dead.
                    owner.forget(record.volume, record.number, CleaningLoss::Damaged);
                    self.records.push_back(placed);
                    continue;
                }
                ContentStanding::Dirty if is_damaged && self.suspects.insert(placed.page) => {
                    self.records.push_front(placed);
                    continue;
                }
                ContentStanding::Clean | ContentStanding::Dirty => {}
            }
            let Ok(data) = result else { continue };
            let dirty = standing == ContentStanding::Dirty;
            let (damaged, checksum) = (is_damaged, record.kind.checksum());
            let entry = LogEntry::Content(Content { data: &data, dirty, damaged, checksum });
            let version = Version::last(owner.last_decision());
            self.stream = owner.stream(log, record.volume, record.number, place);
            let point = WritePoint { pool: log.set().pool(self.id), stream: self.stream };
            match log.append(tasks, point, true, block, version, entry) {
                Ok(appended) => {
                    owner.moved(record.volume, record.number, place, &appended);
                    log.note_dead(place);
                    log.give_back(data);
                }
                Err(error) => {
                    self.records.push_front(placed);
                    obstacle = Some(obstacle_of(log, error)?);
                }
            }
        }
        Ok(obstacle)
    }
}

/// A full log is an obstacle. Errors: it has failed.
fn obstacle_of(log: &Log, error: LogError) -> Result<Obstacle, CleaningError> {
    match error {
        LogError::Full => {
            let mut segments = log.segments();
            let is_freed = segments.any(|(_, found)| found.usage == SegmentUse::Emptied);
            Ok(Obstacle::Full { is_freed })
        }
        error => Err(CleaningError::Log(error)),
    }
}
