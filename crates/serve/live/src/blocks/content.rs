//! Content of blocks: in the log, in memory on its way there, and no longer wanted.
//!
//! For: what is appended to the log, and where it lies afterwards. Must never know: requests,
//! backing devices, policies. Units: bytes, blocks, numbers of groups.

use super::cleaning::Cleaner;
use super::copies::{ContentOrigin, Copies, CopyId, StoredBlock};
use super::hot::HotBlocks;
use super::streams::Streams;
use crate::io::executor::Executor;
use crate::io::{Buffer, IoError};
use crate::log::format::{LogRecordKind, Version, VolumeId, data_checksum};
use crate::log::{self, Log, LogEntry, LogError, Place};
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Content that is not cached and stays in the log: dirty content that could not be written back,
/// and at a start any that is not dropped yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranded {
    /// Where it lies.
    pub place: Place,
    /// Told apart from older content of the block by it.
    pub version: Version,
    /// The log says that the backing device has older content.
    pub dirty: bool,
    /// The decision by which it left; 0 for one before the start.
    pub left: u64,
    /// The checksum of the content; nothing if it must not be read.
    pub checksum: Option<u32>,
    /// The group that brought the content into the log; 0 for one before the start.
    pub group: u64,
}

/// Such content, by block.
pub type StrandedBlocks = BTreeMap<(VolumeId, u64), Stranded>;

/// A block of a volume, for the log.
#[derive(Clone, Copy, Debug)]
pub struct LogBlock {
    /// The tenant whose block it is.
    pub tenant: TenantId,
    /// The volume.
    pub volume: VolumeId,
    /// The block's number.
    pub number: u64,
}

/// The log, and what is known of the content in it.
pub struct LogContent {
    /// The log.
    pub log: Log,
    /// Which of its segments is cleaned.
    pub cleaner: Cleaner,
    /// Which stream of it takes a block.
    pub streams: Streams,
    /// The copies of cached blocks, whose content it has.
    pub copies: Copies,
    /// The content of some of them that are read often.
    pub hot: HotBlocks,
    /// Copies whose changes since they were clean were zeroes that may be holes, with the
    /// version of the last one. A start forgets them: then zeroes are written back as data.
    zeroed: HashMap<CopyId, Version, FixedState>,
    /// Content that was fetched for blocks which had left the cache by then: requests that came
    /// before still read it.
    pub fetched: HashMap<CopyId, Buffer, FixedState>,
    /// Blocks whose leaving is not durable.
    pub fresh_gone: FreshGone,
    /// Dirty content that is not cached and could not be written back. It stays in the log.
    pub stranded: StrandedBlocks,
    /// Content that left the cache and must stay in the log for some time, and whose it is.
    pub leaving: HashMap<Place, TenantId, FixedState>,
    /// The log takes nothing any more.
    pub failed: Option<IoError>,
    /// Begins the log's operations.
    tasks: Executor,
}

/// A run of blocks that left together, and the group that says so.
#[derive(Clone, Debug)]
struct LeftBlocks {
    tenant: TenantId,
    blocks: Range<u64>,
    group: u64,
}

/// Blocks that left since the log was last durable. What is written round the cache waits until no
/// recovery can find older content of its blocks.
#[derive(Clone, Debug, Default)]
pub struct FreshGone {
    runs: Vec<LeftBlocks>,
}

impl FreshGone {
    fn note(&mut self, tenant: TenantId, blocks: Range<u64>, group: u64) {
        self.runs.push(LeftBlocks { tenant, blocks, group });
    }

    /// All groups up to `durable` are durable.
    pub fn settle(&mut self, durable: u64) {
        self.runs.retain(|run| run.group > durable);
    }

    /// The last group that says that a block of a range has left, if it is not durable; else 0.
    pub fn last_group(&self, tenant: TenantId, blocks: &Range<u64>) -> u64 {
        let meets = |run: &&LeftBlocks| {
            run.tenant == tenant && run.blocks.start < blocks.end && blocks.start < run.blocks.end
        };
        self.runs.iter().filter(meets).map(|run| run.group).max().unwrap_or_default()
    }

    /// Runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }
}

impl LogContent {
    /// The content of a log, in streams.
    pub fn new(log: Log, streams: Streams, tasks: Executor) -> LogContent {
        LogContent {
            log,
            cleaner: Cleaner::default(),
            streams,
            copies: Copies::default(),
            hot: HotBlocks::default(),
            zeroed: HashMap::default(),
            fetched: HashMap::default(),
            fresh_gone: FreshGone::default(),
            stranded: BTreeMap::new(),
            leaving: HashMap::default(),
            failed: None,
            tasks,
        }
    }

    /// Appends the content of a block's copy; older content of it is dead, stranded content as
    /// well. Room was seen to before the decision. Returns its group. Errors: the log has failed.
    pub fn store(
        &mut self,
        copy: CopyId,
        block: LogBlock,
        version: Version,
        data: &[u8],
        dirty: bool,
    ) -> Result<u64, IoError> {
        let entry = LogEntry::Content(log::Content { data, dirty, damaged: false, checksum: None });
        let LogBlock { tenant, volume, number } = block;
        let (old, stored) = (self.copies.stored(copy), self.copies.count_stored());
        let point = self.streams.of_written(&mut self.log, tenant, copy, old, stored);
        let block = (volume, number);
        let appended = self.log.append(&mut self.tasks, point, true, block, version, entry);
        let appended = appended.map_err(|error| self.fail(error))?;
        let stored = StoredBlock {
            place: appended.place,
            checksum: appended.checksum,
            dirty,
            version,
            recorded: version,
            group: appended.group,
            was_read: false,
        };
        self.hot.overwrite(copy, version, data);
        if let Some(older) = self.copies.put(copy, stored) {
            self.log.note_dead(older.place);
        }
        if self.stranded.get(&block).is_some_and(|found| found.version < version)
            && let Some(found) = self.stranded.remove(&block)
        {
            self.log.note_dead(found.place);
        }
        Ok(appended.group)
    }

    /// A part of a copy is about to be overwritten with zeroes that may be holes.
    pub fn note_zeroed(&mut self, copy: CopyId, version: Version) {
        let Some(before) = self.copies.stored(copy) else { return };
        if !before.dirty || self.zeroed.get(&copy) == Some(&before.version) {
            self.zeroed.insert(copy, version);
        }
    }

    /// Whether content that is written back may be a hole of the backing device: it is zero, and
    /// clients have asked for it by nothing but zeroes that may be holes.
    pub fn is_hole(&self, copy: CopyId, data: &[u8], origin: ContentOrigin) -> bool {
        self.zeroed.get(&copy) == Some(&origin.version) && data.iter().all(|byte| *byte == 0)
    }

    /// Blocks have left the cache: the log is told.
    pub fn note_gone(
        &mut self,
        tenant: TenantId,
        volume: VolumeId,
        blocks: Range<u64>,
        version: Version,
    ) {
        let kind = |blocks| LogRecordKind::Gone { blocks };
        for (run, group) in self.note_ranges(tenant, volume, blocks, version, kind) {
            self.fresh_gone.note(tenant, run, group);
        }
    }

    /// The log is told something of a range of blocks, in as many records as that takes. Returns
    /// the runs, and their groups.
    pub fn note_ranges(
        &mut self,
        tenant: TenantId,
        volume: VolumeId,
        blocks: Range<u64>,
        version: Version,
        kind: impl Fn(u32) -> LogRecordKind,
    ) -> Vec<(Range<u64>, u64)> {
        let (mut noted, mut rest) = (Vec::new(), blocks);
        while !rest.is_empty() {
            let count = (rest.end - rest.start).min(u64::from(u32::MAX));
            let run = rest.start..rest.start + count;
            rest.start += count;
            let (entry, block) = (LogEntry::Note(kind(count as u32)), (volume, run.start));
            let point = self.streams.of_notes(tenant);
            match self.log.append(&mut self.tasks, point, true, block, version, entry) {
                Ok(appended) => noted.push((run, appended.group)),
                Err(error) => {
                    self.fail(error);
                }
            }
        }
        noted
    }

    /// The backing device has the content of a copy: the log is told.
    pub fn note_clean(&mut self, copy: CopyId, block: LogBlock) {
        let Some(stored) = self.copies.stored(copy) else { return };
        let entry = LogEntry::Note(LogRecordKind::Cleaned { blocks: 1 });
        let LogBlock { tenant, volume, number } = block;
        let (version, point) = (stored.recorded, self.streams.of_notes(tenant));
        let block = (volume, number);
        match self.log.append(&mut self.tasks, point, true, block, version, entry) {
            Ok(_) => self.copies.set_clean(copy),
            Err(error) => {
                self.fail(error);
            }
        }
    }

    /// The content of a copy is no longer its own.
    pub fn take_stored(&mut self, copy: CopyId) -> Option<StoredBlock> {
        self.zeroed.remove(&copy);
        self.hot.forget(copy);
        let stored = self.copies.take_stored(copy)?;
        self.streams.note_left(&self.log, copy, &stored);
        Some(stored)
    }

    /// Content that has left must stay in the log for some time.
    pub fn keep(&mut self, tenant: TenantId, place: Place) {
        self.leaving.insert(place, tenant);
    }

    /// Content that was kept is not needed any more.
    pub fn release(&mut self, place: Place) {
        if self.leaving.remove(&place).is_some() {
            self.log.note_dead(place);
        }
    }

    /// Content that was kept is stranded.
    pub fn strand_kept(&mut self, block: (VolumeId, u64), kept: Stranded) {
        if self.leaving.remove(&kept.place).is_some() {
            self.strand(block, kept);
        }
    }

    /// Dirty content of a block that is not cached stays in the log; of two the newer one.
    pub fn strand(&mut self, block: (VolumeId, u64), found: Stranded) {
        let older = match self.stranded.get(&block) {
            Some(known) if known.version > found.version => Some(found),
            _ => self.stranded.insert(block, found),
        };
        if let Some(older) = older {
            self.log.note_dead(older.place);
        }
    }

    /// The content of a copy, if it is in memory: it is hot, or on its way to the log's device.
    /// The latter is checked: the cleaner copies content as it finds it.
    pub fn in_memory(
        &mut self,
        copy: CopyId,
        block: LogBlock,
        stored: &StoredBlock,
    ) -> Option<Buffer> {
        if let Some(data) = self.hot.content(copy, stored.version) {
            let mut buffer = self.log.spare_block();
            buffer.copy_from_slice(data);
            return Some(buffer);
        }
        let data = self.log.content(stored.place)?;
        LogContent::is_whole(block, data, stored.checksum).then(|| Buffer::copy_of(data))
    }

    /// A request reads the content of a copy.
    pub fn note_read(&mut self, copy: CopyId) {
        self.copies.note_read(copy);
        self.hot.note_read(copy);
    }

    /// A request has read the content of a copy from the log: it is kept in memory, too, unless
    /// there is newer content by now.
    pub fn keep_hot(&mut self, copy: CopyId, read: &StoredBlock, data: &[u8]) {
        if self.copies.stored(copy).is_some_and(|stored| stored.version == read.version) {
            self.hot.keep(copy, read.version, data);
        }
    }

    /// Whether content is that of a block.
    pub fn is_whole(block: LogBlock, data: &[u8], checksum: u32) -> bool {
        data_checksum(block.volume, block.number, data) == checksum
    }

    /// The log takes nothing any more: its device has failed, or it is full beyond its reserve.
    fn fail(&mut self, error: LogError) -> IoError {
        let error = match error {
            LogError::Full => IoError::NO_SPACE,
            LogError::Failed(error) => error,
        };
        *self.failed.get_or_insert(error)
    }
}
