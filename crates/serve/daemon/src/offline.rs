//! Tools for devices that no server has open: `cachewright live`.
//!
//! Tools that read open devices for reading only. A format throws away no content that only the
//! devices have, unless told so. A check reads superblocks, headers, footers, groups and the
//! content of all blocks. A repair writes again what is whole elsewhere and drops damaged clean
//! blocks, which the backing device has; damaged dirty blocks are kept, and reads of them fail,
//! until they are overwritten or their loss is accepted. A write-back sends dirty content out in
//! the order of volumes and blocks; when all of it is durable, one record per run of blocks tells
//! the log, which may have little space. A tool that is cut short can be run again.

use crate::devices::{
    DeviceClaim, Devices, SPARE_SEGMENTS, check_served, check_space, device_error, dirty_bytes,
    group_blocks, is_held_elsewhere, log_settings, matched, name_of, names, random_id, set_error,
    sizes, unnamed,
};
use crate::error::LiveError;
use crate::identity::{Purpose, ReplacedSet, changed_device, examine, new_set_notes};
use crate::plan::LivePlan;
use cachewright_live::blocks::{ServedVolume, max_blocks};
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::{ALIGNMENT, Buffer, FileId, Io, IoError, IoOp, Output, Token, batch};
use cachewright_live::log::format::{
    LogRecordKind, SUPERBLOCK_BYTES, SetId, Superblock, SuperblockError, Version, Volume, VolumeId,
};
use cachewright_live::log::{
    BackingFile, BlockRun, DeviceSet, FormatSettings, FoundLog, Log, LogEntry, LogError, LogEvent,
    LogSettings, OpenSet, OpenSetError, RecoveredBlock, RecoveredLog, SegmentId, SegmentUse,
    UnreadablePage, WritePoint, WrittenBack, chunk_blocks, contents, cut, open, read_log,
    rewrite_both, write_back,
};
use cachewright_result::document::Written;
use cachewright_result::live::{
    CachedBlock, CachedVolume, CalibratedDevice, ChangedVolume, LiveCalibrateAnswer,
    LiveChangeAnswer, LiveChangedBacking, LiveCheckAnswer, LiveDevice, LiveDumpAnswer,
    LiveFormatAnswer, LiveUnreadablePage, LiveVolume, ReadTimes,
};
use cachewright_types::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a format may overwrite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overwrite {
    /// Content of caches that no backing device has, or that cannot be read.
    pub dirty: bool,
    /// Anything that is no cache: file systems, partition tables, bytes of unknown meaning.
    pub foreign: bool,
}

/// Formats the devices of a plan. Errors: they hold what must not be overwritten; they are too
/// small. Nothing is written then.
pub fn format(plan: &LivePlan, overwrite: Overwrite) -> Result<LiveFormatAnswer, LiveError> {
    let mut devices = Devices::open(plan, FileAccess::Write)?;
    let sizes = sizes(plan, &devices)?;
    let volume = |((index, bytes), planned): ((u32, &u64), &crate::StackVolume)| Volume {
        id: VolumeId(index),
        name: planned.name.clone(),
        bytes: *bytes,
    };
    let settings = FormatSettings {
        set: SetId(random_id()?),
        block_bytes: plan.block_bytes() as u32,
        segment_bytes: plan.serve.segment.0 as u32,
        volumes: (1..).zip(&sizes).zip(&plan.volumes).map(volume).collect(),
    };
    let refuse = |error: OpenSetError| device_error(plan, &error);
    let set = cut(&devices.io, &devices.cache, &settings).map_err(refuse)?;
    check_space(plan, &set)?;
    plan.layout(&set, &devices.cache, &[])?;
    let (discarded_bytes, before) = dirty_on(plan, &mut devices, overwrite)?;
    let notes = new_set_notes(plan, before, overwrite.dirty)?;
    let cache = devices.cache.clone();
    if let Ok(open) = open(&mut devices.io, &cache) {
        DeviceClaim::begin(plan, &mut devices.io, &open)?;
    }
    let made = cachewright_live::log::format(&mut devices.io, &cache, &settings);
    let mut made = made.map_err(refuse)?;
    if !notes.is_empty() {
        made.superblock.notes = notes;
        rewrite_both(&mut devices.io, &mut made).map_err(refuse)?;
    }
    let set = made.set;
    let volume = |volume: &Volume| LiveVolume { name: volume.name.clone(), bytes: volume.bytes };
    Ok(LiveFormatAnswer {
        written: Written::here(),
        set: set.id().name(),
        devices: plan.serve.devices.iter().map(|path| path.display().to_string()).collect(),
        segments: set.segments() as u64,
        segment_bytes: plan.serve.segment.0,
        block_bytes: plan.block_bytes(),
        max_cache_bytes: max_blocks(&set, &log_settings(plan, &set)?, set.segments())
            * plan.block_bytes(),
        discarded_bytes,
        volumes: settings.volumes.iter().map(volume).collect(),
    })
}

/// Errors: a device that is no cache holds something, and it is not to be overwritten.
fn refuse_foreign(
    path: &Path,
    io: &mut impl Io,
    file: FileId,
    overwrite: bool,
) -> Result<(), LiveError> {
    if overwrite {
        return Ok(());
    }
    let path = path.display();
    let found =
        foreign_content(io, file).map_err(|error| LiveError::Failed(format!("{path}: {error}")))?;
    found.map_or(Ok(()), |found| {
        Err(LiveError::Refused(format!(
            "{path}: found {found}, expected zeroes in the first and the last MiB, or `--force` to \
             overwrite it"
        )))
    })
}

/// Dirty bytes on the devices, which are to be thrown away, and the owner's notes and the id of the
/// set that is there. Errors: there are some, or there may be, or content of others is there, and
/// that is not wanted.
fn dirty_on(
    plan: &LivePlan,
    devices: &mut Devices,
    overwrite: Overwrite,
) -> Result<(u64, Option<ReplacedSet>), LiveError> {
    let (io, cache) = (&mut devices.io, &devices.cache);
    let whole = open(io, cache).and_then(|set| read_log(io, &set).map(|found| (set, found)));
    let remedy = "expected `cachewright live writeback` first, or `--discard-dirty`";
    if let Ok((set, found)) = whole {
        let dirty = dirty_bytes(&found.blocks, set.set.block_bytes() as u64);
        let total = dirty.values().sum();
        if overwrite.dirty || total == 0 {
            let before = ReplacedSet { notes: set.superblock.notes, set: set.set.id() };
            return Ok((total, Some(before)));
        }
        let share = |(id, bytes): (&VolumeId, &u64)| {
            format!("{} of `{}`", Bytes(*bytes), name_of(&set.superblock.volumes, *id))
        };
        let shares: Vec<String> = dirty.iter().map(share).collect();
        let shares = shares.join(", ");
        return Err(plan.refuse(format!("found {shares} that only the devices have, {remedy}")));
    }
    for (path, file) in plan.serve.devices.iter().zip(cache) {
        let missing = OpenSetError::Superblock { device: 0, error: SuperblockError::Missing };
        let error = match open(io, &[*file]) {
            Err(error) if error == missing => {
                refuse_foreign(path, io, *file, overwrite.foreign)?;
                continue;
            }
            Err(OpenSetError::TooSmall { .. }) => continue,
            Err(error) => error.to_string(),
            Ok(set) => format!("found set {}", set.set.id().name()),
        };
        if !overwrite.dirty {
            let (path, error) = (path.display(), error.replacen("device 0: ", "", 1));
            return Err(LiveError::Refused(format!(
                "{path}: {error}; it may hold content that no other device has, expected \
                 `--discard-dirty`"
            )));
        }
    }
    Ok((0, None))
}

/// Checks the devices of a plan. Errors: they hold no set, or cannot be read.
pub fn check(plan: &LivePlan) -> Result<LiveCheckAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Read)?;
    let open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    let found =
        read_log(&mut devices.io, &open).map_err(|error| set_error(plan, &paths, &error))?;
    let held_elsewhere = is_held_elsewhere(plan, &mut devices.io, &open);
    let changed_backings = changed_backings(plan, &mut devices, &open, &found);
    let set = &open.set;
    let damaged = damaged(&mut devices.io, set, &found.blocks);
    let mut unreadable = found.unreadable.clone();
    unreadable.extend(unreadable_content(&mut devices.io, set, &damaged));
    let volumes = volumes(&open.superblock, set, &found.blocks, Some(&damaged));
    let mut checked = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        checked.push(checked_device(&mut devices.io, set, index, path, &found));
    }
    let superblocks_whole = checked.iter().all(|device| device.superblocks == 2);
    let structures = found.damaged_footers + found.damaged_headers;
    let read_only = open.superblock.has_lost || found.has_lost();
    let readable = unreadable.is_empty();
    let whole = damaged.is_empty() && superblocks_whole && structures == 0 && readable;
    let page = |page: &UnreadablePage| LiveUnreadablePage {
        path: paths[page.device].display().to_string(),
        offset: page.offset,
        error: page.error.to_string(),
    };
    Ok(LiveCheckAnswer {
        written: Written::here(),
        set: set.id().name(),
        sound: whole && !read_only,
        bypassed: open.superblock.bypassed.is_some(),
        devices: checked,
        volumes,
        void_groups: found.void_groups,
        torn_footers: found.torn_footers,
        damaged_footers: found.damaged_footers,
        damaged_headers: found.damaged_headers,
        lost_groups: found.lost_groups,
        hides_groups: found.hides_groups,
        unreadable_pages: unreadable.iter().map(page).collect(),
        read_only,
        held_elsewhere,
        changed_backings,
    })
}

/// The volumes in the cache whose backing devices are not those that it knows, or cannot be looked
/// at.
fn changed_backings(
    plan: &LivePlan,
    devices: &mut Devices,
    open: &OpenSet,
    found: &FoundLog,
) -> Vec<LiveChangedBacking> {
    let mut changed = Vec::new();
    for planned in &plan.volumes {
        let known = open.superblock.volumes.iter().find(|volume| volume.name == planned.name);
        let Some(known) = known else { continue };
        let compared = open_file(&planned.backing, FileAccess::Read).map_err(LiveError::from);
        let compared = compared.and_then(|file| {
            let backing = devices.io.add_file(file);
            let bytes = devices.io.file_bytes(backing);
            let served = ServedVolume { id: known.id, bytes, backing };
            changed_device(&plan.of_one(planned), devices, open, served, found)
        });
        let why = compared.unwrap_or_else(|error| Some(error.to_string()));
        changed.extend(why.map(|why| LiveChangedBacking {
            name: planned.name.clone(),
            path: planned.backing.display().to_string(),
            why,
        }));
    }
    changed
}

fn checked_device(
    io: &mut impl Io,
    set: &DeviceSet,
    index: usize,
    path: &Path,
    found: &FoundLog,
) -> LiveDevice {
    let own = (0..set.segments()).map(SegmentId::new).filter(|id| set.device(*id) == index);
    let mut counts = [0_u64; 3];
    for id in own {
        counts[match found.segments[id.index()].usage {
            SegmentUse::Free | SegmentUse::Emptied => 0,
            SegmentUse::Sealed => 1,
            SegmentUse::Begun | SegmentUse::Full => 2,
        }] += 1;
    }
    let [free_segments, sealed_segments, open_segments] = counts;
    let file = set.files()[index];
    LiveDevice {
        path: path.display().to_string(),
        bytes: io.file_bytes(file),
        superblocks: valid_superblocks(io, file),
        free_segments,
        sealed_segments,
        open_segments,
    }
}

/// Copies of a device's superblock that are valid.
pub fn valid_superblocks(io: &mut impl Io, file: FileId) -> u64 {
    let ranges = [0, 1].map(|copy| (file, Superblock::offset(copy), SUPERBLOCK_BYTES));
    let copies = batch::read_pages(io, &ranges).unwrap_or_default();
    copies.iter().filter(|copy| Superblock::decode(&copy.data).is_ok()).count() as u64
}

/// The blocks whose content is damaged, in the order of their places. All content is read.
pub fn damaged(
    io: &mut impl Io,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
) -> Vec<RecoveredBlock> {
    let mut by_place = blocks.to_vec();
    by_place.sort_unstable_by_key(|block| block.place);
    let mut damaged = Vec::new();
    for some in by_place.chunks(chunk_blocks(set)) {
        let found = contents(io, set, some);
        let pairs = some.iter().zip(found);
        damaged.extend(pairs.filter(|(_, data)| data.is_none()).map(|(block, _)| *block));
    }
    damaged
}

/// The pages of damaged blocks that are damaged because they cannot be read.
pub fn unreadable_content(
    io: &mut impl Io,
    set: &DeviceSet,
    damaged: &[RecoveredBlock],
) -> Vec<UnreadablePage> {
    let mut pages = Vec::new();
    for some in damaged.chunks(chunk_blocks(set)) {
        let place = |block: &RecoveredBlock| {
            let (segment, page) = set.locate(block.place);
            let start = set.page(segment, page);
            (start.file, start.offset, set.block_bytes())
        };
        let ranges: Vec<_> = some.iter().map(place).collect();
        let Ok(found) = batch::read_pages(io, &ranges) else { continue };
        for ((block, (_, offset, _)), read) in some.iter().zip(&ranges).zip(found) {
            let device = set.device(set.locate(block.place).0);
            let page = |(start, error): (usize, IoError)| UnreadablePage {
                device,
                offset: offset + start as u64,
                error,
            };
            pages.extend(read.unreadable.into_iter().map(page));
        }
    }
    pages
}

/// Totals of all volumes; `damaged` are the blocks whose content is damaged, if content was read.
pub fn volumes(
    superblock: &Superblock,
    set: &DeviceSet,
    blocks: &[RecoveredBlock],
    damaged: Option<&[RecoveredBlock]>,
) -> Vec<CachedVolume> {
    let (table, bypassed) = (&superblock.volumes, superblock.bypassed.as_ref());
    let fresh = |id: VolumeId| CachedVolume {
        name: name_of(table, id),
        bytes: table.iter().find(|volume| volume.id == id).map(|volume| volume.bytes),
        out_of_date: bypassed.is_some_and(|bypassed| bypassed.passed.contains(&id)),
        clean_bytes: 0,
        dirty_bytes: 0,
        damaged_clean_bytes: damaged.map(|_| 0),
        damaged_dirty_bytes: damaged.map(|_| 0),
    };
    let mut all: BTreeMap<VolumeId, CachedVolume> =
        table.iter().map(|volume| (volume.id, fresh(volume.id))).collect();
    let bytes = set.block_bytes() as u64;
    for block in blocks {
        let totals = all.entry(block.volume).or_insert_with(|| fresh(block.volume));
        *if block.dirty { &mut totals.dirty_bytes } else { &mut totals.clean_bytes } += bytes;
    }
    for block in damaged.unwrap_or_default() {
        let totals = all.entry(block.volume).or_insert_with(|| fresh(block.volume));
        let sum = match block.dirty {
            true => &mut totals.damaged_dirty_bytes,
            false => &mut totals.damaged_clean_bytes,
        };
        *sum = sum.map(|sum| sum + bytes);
    }
    all.into_values().collect()
}

/// Lists what the devices of a plan hold; each block only if `blocks`. Errors: they hold no set, or
/// cannot be read.
pub fn dump(plan: &LivePlan, blocks: bool) -> Result<LiveDumpAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Read)?;
    let open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    let found =
        read_log(&mut devices.io, &open).map_err(|error| set_error(plan, &paths, &error))?;
    let volumes = volumes(&open.superblock, &open.set, &found.blocks, None);
    let names = names(&open.superblock.volumes);
    let listed = |block: &RecoveredBlock| cached_block(&open.set, &names, &paths, block);
    let listed = blocks.then(|| found.blocks.iter().map(listed).collect());
    Ok(LiveDumpAnswer {
        written: Written::here(),
        set: open.set.id().name(),
        bypassed: open.superblock.bypassed.is_some(),
        volumes,
        block_bytes: open.set.block_bytes() as u64,
        blocks: listed,
    })
}

fn cached_block(
    set: &DeviceSet,
    names: &BTreeMap<VolumeId, &str>,
    paths: &[PathBuf],
    block: &RecoveredBlock,
) -> CachedBlock {
    let (segment, page) = set.locate(block.place);
    let name = names.get(&block.volume);
    CachedBlock {
        volume: name.map_or_else(|| unnamed(block.volume), |name| (*name).to_owned()),
        offset: block.number.saturating_mul(set.block_bytes() as u64),
        dirty: block.dirty,
        decision: block.version.decision(),
        device: paths[set.device(segment)].display().to_string(),
        device_offset: set.page(segment, page).offset,
    }
}

/// Bytes at either end of a device that are looked at.
const EDGE_BYTES: u64 = 1 << 20;

/// A name, the byte from the start at which a signature stands, and the signature.
type Signature = (&'static str, usize, &'static [u8]);

const SIGNATURES: &[Signature] = &[
    ("an XFS file system", 0, b"XFSB"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("a qcow2 image", 0, b"QFI\xfb"),
    ("a squashfs file system", 0, b"hsqs"),
    ("a dm-writecache", 0, &[0x21, 0x93, 0x48, 0x23]),
    ("an MD RAID member", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("an MD RAID member", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("an LVM physical volume", 0, b"LABELONE"),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("an LVM physical volume", 1024, b"LABELONE"),
    ("an LVM physical volume", 1536, b"LABELONE"),
    ("a GUID partition table", 512, b"EFI PART"),
    ("a GUID partition table", 4096, b"EFI PART"),
    ("metadata of dm-cache", 32, &[0x03, 0x20, 0x14, 0x06]),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("an ISO 9660 file system", 32769, b"CD001"),
    ("a btrfs file system", 65600, b"_BHRfS_M"),
    ("an NTFS file system", 3, b"NTFS    "),
    // Behind all others: boot sectors of file systems end like this as well.
    ("a partition table or a boot sector", 510, &[0x55, 0xaa]),
];

/// What a device holds, in words; nothing where its first and last MiB are zeroes. Errors: it
/// cannot be read.
pub fn foreign_content(io: &mut impl Io, file: FileId) -> Result<Option<String>, IoError> {
    let bytes = io.file_bytes(file) / ALIGNMENT as u64 * ALIGNMENT as u64;
    let length = bytes.min(EDGE_BYTES);
    let edges = [0, bytes - length].map(|offset| (file, offset, length as usize));
    let mut found = batch::read(io, edges).into_iter();
    let first = found.next().unwrap_or(Err(IoError::IO))?;
    let last = found.next().unwrap_or(Err(IoError::IO))?;
    let is_there = |(_, offset, magic): &&Signature| {
        first.get(*offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    if let Some((name, ..)) = SIGNATURES.iter().find(is_there) {
        return Ok(Some((*name).to_owned()));
    }
    let in_use = |edge: &[u8]| edge.iter().any(|byte| *byte != 0);
    let unknown = match (in_use(&first), in_use(&last)) {
        (false, false) => None,
        (true, _) => Some("content in its first MiB"),
        (false, true) => Some("content in its last MiB"),
    };
    Ok(unknown.map(str::to_owned))
}

/// A log to which only records without content are appended.
pub struct NoteLog {
    log: Log,
    /// That of all records: nothing in the log is newer.
    version: Version,
}

impl NoteLog {
    /// Goes on with what recovery found; its segments are copied.
    pub fn new(set: &DeviceSet, found: &RecoveredLog) -> NoteLog {
        let (group_blocks, spare_segments) = (group_blocks(set), SPARE_SEGMENTS);
        let (streams, user_streams, moved_streams) = (1, 1, 1);
        let settings =
            LogSettings { streams, user_streams, moved_streams, group_blocks, spare_segments };
        let log = Log::new(set.clone(), settings, found.segments.clone(), found.last_group);
        NoteLog { log, version: Version::last(found.last_decision) }
    }

    /// Notes that the content of all blocks of each run is clean, or gone, by one record per run,
    /// and makes that durable. Errors: no segment is free, a device fails.
    pub fn note(
        mut self,
        io: &mut impl Io,
        runs: &[BlockRun],
        kind: impl Fn(u32) -> LogRecordKind,
    ) -> Result<(), LiveError> {
        for (volume, run) in runs {
            let entry = LogEntry::Note(kind((run.end - run.start) as u32));
            let block = (*volume, run.start);
            self.log
                .append(io, WritePoint::default(), true, block, self.version, entry)
                .map_err(failed)?;
        }
        self.sync(io)?;
        self.close(io)
    }

    /// Ends the segments that were begun. Errors: a device fails.
    fn close(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.close(io);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        devices_work(&events)?;
        while self.log.is_closing() {
            self.turn(io, &mut events)?;
        }
        Ok(())
    }

    /// Makes all that was noted durable. Errors: a device fails.
    fn sync(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        self.log.sync(io, 0);
        let mut events = Vec::new();
        self.log.advance(io, &mut events);
        devices_work(&events)?;
        while !events.iter().any(|event| matches!(event, LogEvent::Synced(..))) {
            self.turn(io, &mut events)?;
        }
        Ok(())
    }

    /// Waits for operations, and begins what is due then. Errors: a device fails.
    fn turn(&mut self, io: &mut impl Io, events: &mut Vec<LogEvent>) -> Result<(), LiveError> {
        let mut done = Vec::new();
        io.wait(&mut done);
        done.into_iter().for_each(|done| self.log.on_done(io, done, events));
        self.log.advance(io, events);
        devices_work(events)
    }
}

/// The runs of blocks that lie one behind the other on their volumes.
pub fn runs(mut blocks: Vec<RecoveredBlock>) -> Vec<BlockRun> {
    blocks.sort_unstable_by_key(|block| (block.volume, block.number));
    let adjacent =
        |a: &RecoveredBlock, b: &RecoveredBlock| (a.volume, a.number + 1) == (b.volume, b.number);
    let run = |run: &[RecoveredBlock]| {
        let first = run[0];
        (first.volume, first.number..first.number + run.len() as u64)
    };
    blocks.chunk_by(adjacent).map(run).collect()
}

/// Errors: a device has failed.
fn devices_work(events: &[LogEvent]) -> Result<(), LiveError> {
    let error = |event: &LogEvent| match event {
        LogEvent::Failed(error) => Some(LogError::Failed(*error)),
        LogEvent::Synced(_, Err(error)) => Some(*error),
        _ => None,
    };
    events.iter().find_map(error).map_or(Ok(()), |error| Err(failed(error)))
}

fn failed(error: LogError) -> LiveError {
    LiveError::Failed(format!("what was done could not be recorded: {error}"))
}

/// Repairs the devices of a plan; damaged dirty blocks are dropped only if `discard_dirty`. Errors:
/// they hold no set, or a device fails.
pub fn repair(plan: &LivePlan, discard_dirty: bool) -> Result<LiveChangeAnswer, LiveError> {
    let mut devices = Devices::of_cache(plan, FileAccess::Write)?;
    let mut open = devices.any_set(plan)?;
    let paths = devices.paths(plan, &open.set);
    DeviceClaim::begin(plan, &mut devices.io, &open)?;
    let failed = |error| set_error(plan, &paths, &error);
    let found = read_log(&mut devices.io, &open).map_err(failed)?;
    let files = open.set.files().to_vec();
    let valid: u64 = files.iter().map(|file| valid_superblocks(&mut devices.io, *file)).sum();
    let missing = 2 * files.len() as u64 - valid;
    if missing > 0 {
        rewrite_both(&mut devices.io, &mut open).map_err(failed)?;
    }
    let footers = found.damaged_footers + found.torn_footers;
    let rewritten = missing + footers + found.damaged_headers;
    let accepted_loss = open.superblock.has_lost || found.has_lost();
    let damaged = damaged(&mut devices.io, &open.set, &found.blocks);
    let found = found.settle(&mut devices.io).map_err(failed)?;
    if open.superblock.has_lost {
        open.superblock.has_lost = false;
        rewrite_both(&mut devices.io, &mut open).map_err(failed)?;
    }
    let mut changes = VolumeChanges::default();
    let bytes = open.set.block_bytes() as u64;
    let mut dropped = Vec::new();
    for block in damaged {
        if block.dirty && !discard_dirty {
            changes.volume(block.volume).damaged_bytes += bytes;
        } else {
            changes.volume(block.volume).dropped_bytes += bytes;
            dropped.push(block);
        }
    }
    if !dropped.is_empty() {
        let notes = NoteLog::new(&open.set, &found);
        notes.note(&mut devices.io, &runs(dropped), |blocks| LogRecordKind::Gone { blocks })?;
    }
    let name = |id| name_of(&open.superblock.volumes, id);
    Ok(changes.answer(open.set.id().name(), name, rewritten, accepted_loss))
}

/// Why nothing is written back.
const LOST: &str = "found a cache that has lost content which was durable, so that backing devices \
                    could get older content; expected `cachewright live repair` before";

/// Writes all dirty blocks of a plan's devices back. Errors: content is gone that was durable, a
/// volume with dirty blocks has no
/// tenant, or has another size; a device fails.
pub fn writeback(plan: &LivePlan) -> Result<LiveChangeAnswer, LiveError> {
    let mut devices = Devices::open(plan, FileAccess::Write)?;
    let mut open = devices.any_set(plan)?;
    let (served, table) = matched(plan, &devices, &open.superblock)?;
    let paths = devices.paths(plan, &open.set);
    let failed = |error| set_error(plan, &paths, &error);
    // Devices that take no write give up what they hold, and no other server writes to them either.
    DeviceClaim::begin(plan, &mut devices.io, &open).ok();
    let found = read_log(&mut devices.io, &open).map_err(failed)?;
    if open.superblock.has_lost || found.has_lost() {
        return Err(LiveError::Refused(LOST.to_owned()));
    }
    let bytes = open.set.block_bytes() as u64;
    check_served(plan, &served, &table, &found.blocks, bytes)?;
    let examined = examine(plan, &mut devices, &open, &served, &found, Purpose::WriteBack)?;
    // Where nothing is dirty, a device may still have writes that no server has synced.
    devices.sync_backings(plan)?;
    let dropped = examined.dropped().to_vec();
    // A smaller device is accepted from now on; one that has grown is served so by the next start,
    // which gives up its last block before.
    let mut sizes = open.superblock.volumes.clone();
    for volume in &mut sizes {
        let now = table.iter().find(|now| now.id == volume.id);
        volume.bytes = now.map_or(volume.bytes, |now| now.bytes.min(volume.bytes));
    }
    let (identities, found, _) =
        examined.begin(plan, &mut devices.io, &mut open, &sizes, found, &paths)?;
    // Volumes that were written to past the cache have newer content.
    let passed = open.superblock.bypassed.as_ref().map(|bypassed| &bypassed.passed);
    let counts = |block: &&RecoveredBlock| {
        block.dirty && !passed.is_some_and(|passed| passed.contains(&block.volume))
    };
    let dirty: Vec<RecoveredBlock> = found.blocks.iter().filter(counts).copied().collect();
    let mut changes = VolumeChanges::default();
    for gone in dropped.iter().filter(|gone| gone.clean_bytes + gone.dirty_bytes > 0) {
        changes.volume(gone.volume).dropped_bytes += gone.clean_bytes + gone.dirty_bytes;
    }
    for block in &dirty {
        changes.volume(block.volume).written_back_bytes += bytes;
    }
    let known = &open.superblock.volumes;
    let written = write_back(&mut devices.io, &open.set, dirty, |id| backing(&served, known, id));
    let WrittenBack { runs, damaged } =
        written.map_err(|error| LiveError::Failed(format!("backing devices: {error}")))?;
    for block in &damaged {
        let change = changes.volume(block.volume);
        change.written_back_bytes -= bytes;
        change.damaged_bytes += bytes;
    }
    // Only now the cache's devices are written: those that can be read only have given what they
    // hold.
    let found = found.settle(&mut devices.io).map_err(|error| {
        let error = failed(error);
        LiveError::Failed(format!(
            "all that can be read is on the backing devices, which the cache's devices could not \
             be told: {error}; expected `cachewright live format --discard-dirty` before they are \
             served again"
        ))
    })?;
    if !runs.is_empty() {
        let notes = NoteLog::new(&open.set, &found);
        notes.note(&mut devices.io, &runs, |blocks| LogRecordKind::Cleaned { blocks })?;
    }
    // Nothing in a log that was bypassed counts for volumes that were served past it.
    if open.superblock.bypassed.is_none() {
        let damaged: Vec<VolumeId> = damaged.iter().map(|block| block.volume).collect();
        identities.end_tool(plan, &mut devices.io, &mut open, &served, &damaged, &paths)?;
    }
    let name = |id| name_of(&table, id);
    Ok(changes.answer(open.set.id().name(), name, 0, false))
}

/// Where a volume lies. One that has grown since the cache was used ends where it did then: behind
/// that the cache has nothing of it.
fn backing(served: &[ServedVolume], known: &[Volume], id: VolumeId) -> Option<BackingFile> {
    let ServedVolume { backing, bytes, .. } = *served.iter().find(|volume| volume.id == id)?;
    let before = known.iter().find(|volume| volume.id == id);
    Some(BackingFile { file: backing, bytes: before.map_or(bytes, |before| before.bytes) })
}

/// What becomes of volumes, by number.
#[derive(Default)]
pub struct VolumeChanges(BTreeMap<VolumeId, ChangedVolume>);

impl VolumeChanges {
    /// What becomes of a volume.
    pub fn volume(&mut self, id: VolumeId) -> &mut ChangedVolume {
        self.0.entry(id).or_insert(ChangedVolume {
            name: String::new(),
            written_back_bytes: 0,
            dropped_bytes: 0,
            damaged_bytes: 0,
        })
    }

    /// The answer of a tool on a set, with the names of volumes.
    pub fn answer(
        self,
        set: String,
        name: impl Fn(VolumeId) -> String,
        rewritten: u64,
        accepted_loss: bool,
    ) -> LiveChangeAnswer {
        let named = |(id, change)| ChangedVolume { name: name(id), ..change };
        let volumes: Vec<ChangedVolume> = self.0.into_iter().map(named).collect();
        let sound = volumes.iter().all(|volume| volume.damaged_bytes == 0);
        let written = Written::here();
        LiveChangeAnswer { written, set, sound, volumes, rewritten, accepted_loss }
    }
}

const NS_PER_US: f64 = 1e3;

/// How devices are read.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// Reads of each device at each depth; at least 1.
    pub reads: usize,
    /// Reads under way at one time, beside one at a time; at least 1.
    pub depth: usize,
}

/// A device to be read.
struct CalibrationTarget<'a> {
    path: &'a Path,
    /// The tenant whose volume it is; `None`: it is one of the cache's.
    tenant: Option<&'a str>,
    file: FileId,
}

/// Times with which any goal in latency is one: those of the stack are not known yet.
const ANY_TIMES: [(&str, &str); 2] =
    [("replay.hit_time", "1ns"), ("replay.miss_time", "31536000s")];

/// Reads random blocks of the cache's devices and of all backing devices of a stack file's text;
/// `origin` is its path; `overrides` are `key=value` pairs set over it. Errors: the stack; a device
/// is not there, in use, smaller than a block, or cannot be read.
pub fn calibrate(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
    how: Calibration,
) -> Result<LiveCalibrateAnswer, LiveError> {
    let times = ANY_TIMES.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let overrides: Vec<_> = overrides.iter().cloned().chain(times).collect();
    let plan = &LivePlan::read(text, origin, &overrides)?;
    let Devices { io, cache, backings, notices } = Devices::open(plan, FileAccess::Read)?;
    let of_cache = plan.serve.devices.iter().zip(&cache);
    let of_cache =
        of_cache.map(|(path, file)| CalibrationTarget { path, tenant: None, file: *file });
    let of_tenants = plan.volumes.iter().zip(&backings).map(|(volume, file)| CalibrationTarget {
        path: &volume.backing,
        tenant: Some(&volume.name),
        file: *file,
    });
    let targets: Vec<CalibrationTarget<'_>> = of_cache.chain(of_tenants).collect();
    let delay_ns = plan.serve.backing_delay.0;
    let slow = backings.iter().filter(|_| delay_ns > 0).map(|file| (*file, delay_ns));
    let mut io = Delayed::new(io, slow.collect());
    let mut devices = Vec::new();
    for target in &targets {
        devices.push(device(&mut io, plan, how, target)?);
    }
    let (hit, miss) = (mean(&devices, true), mean(&devices, false));
    let is_usable = hit < miss;
    Ok(LiveCalibrateAnswer {
        written: Written::here(),
        block_bytes: plan.block_bytes(),
        reads: how.reads as u64,
        devices,
        hit_time: hit.to_string(),
        miss_time: miss.to_string(),
        is_usable,
        notices,
    })
}

fn device(
    io: &mut impl Io,
    plan: &LivePlan,
    how: Calibration,
    target: &CalibrationTarget<'_>,
) -> Result<CalibratedDevice, LiveError> {
    let path = target.path.display().to_string();
    let block = plan.block_bytes();
    let blocks = io.file_bytes(target.file) / block;
    if blocks == 0 {
        return Err(LiveError::Refused(format!(
            "{path}: found less than a block, expected at least {block} bytes"
        )));
    }
    let mut rng = plan.seed().derive("calibrate").derive(&path).rng();
    let depths = [Some(1), Some(how.depth).filter(|depth| *depth > 1)];
    let mut times = Vec::new();
    for depth in depths.into_iter().flatten() {
        let offsets: Vec<u64> = (0..how.reads).map(|_| rng.below(blocks) * block).collect();
        let taken = read_times(io, target.file, &offsets, block as usize, depth);
        let taken = taken.map_err(|error| LiveError::Failed(format!("{path}: {error}")))?;
        times.push(summary(taken, depth));
    }
    Ok(CalibratedDevice { path, tenant: target.tenant.map(str::to_owned), times })
}

/// The time of each read, sorted, with so many reads under way. Errors: the first read that fails.
fn read_times(
    io: &mut impl Io,
    file: FileId,
    offsets: &[u64],
    block_bytes: usize,
    depth: usize,
) -> Result<Vec<u64>, IoError> {
    let mut spare: Vec<Buffer> =
        (0..depth.min(offsets.len())).map(|_| Buffer::zeroed(block_bytes)).collect();
    let mut begun_ns = vec![0; offsets.len()];
    let mut times = Vec::with_capacity(offsets.len());
    let (mut next, mut under_way) = (0, 0);
    let (mut done, mut failed) = (Vec::new(), None);
    loop {
        while let Some(offset) = offsets.get(next).filter(|_| failed.is_none()) {
            let Some(buffer) = spare.pop() else { break };
            begun_ns[next] = io.now_ns();
            io.submit(Token(next as u64), IoOp::Read { file, offset: *offset, buffer });
            (next, under_way) = (next + 1, under_way + 1);
        }
        if under_way == 0 {
            break;
        }
        io.wait(&mut done);
        let now_ns = io.now_ns();
        for done in done.drain(..) {
            under_way -= 1;
            failed = failed.or(done.error);
            times.push(now_ns - begun_ns[done.token.0 as usize]);
            if let Output::Buffer(buffer, _) = done.output {
                spare.push(buffer);
            }
        }
    }
    times.sort_unstable();
    failed.map_or(Ok(times), Err)
}

/// `times` are sorted and not empty; a percentile is the smallest time that so many do not exceed.
fn summary(times: Vec<u64>, depth: usize) -> ReadTimes {
    let rank = |percent: usize| (times.len() * percent).div_ceil(100).max(1) - 1;
    let us = |percent: usize| times.get(rank(percent)).map_or(0.0, |ns| *ns as f64 / NS_PER_US);
    let sum: u64 = times.iter().sum();
    ReadTimes {
        depth: depth as u64,
        mean_us: sum as f64 / times.len() as f64 / NS_PER_US,
        p50_us: us(50),
        p99_us: us(99),
    }
}

/// The mean time of single reads of all devices of the cache, or of all others. A mean, as goals
/// are about mean times (Patrick et al., section III-A).
fn mean(devices: &[CalibratedDevice], is_of_cache: bool) -> Nanos {
    let own = devices.iter().filter(|device| device.tenant.is_none() == is_of_cache);
    let own: Vec<f64> =
        own.filter_map(|device| device.times.first()).map(|times| times.mean_us).collect();
    Nanos((own.iter().sum::<f64>() / own.len().max(1) as f64 * NS_PER_US).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::io::Done;
    use cachewright_live::io::sim::{Fault, Sim, SimFile};
    use cachewright_live::log::{format, recover};
    use cachewright_types::Seed;

    /// A record is noted while one operation fails: the first, the second and so on.
    fn noted(failing: u64) -> Result<(), LiveError> {
        let mut sim = Sim::new(Seed(failing));
        let files = [sim.add_file(SimFile::new((2 << 20) + (8 << 16)))];
        let (set, volumes) = (SetId(3), Vec::new());
        let settings = FormatSettings { set, block_bytes: 4096, segment_bytes: 64 << 10, volumes };
        let open = format(&mut sim, &files, &settings).unwrap();
        let found = recover(&mut sim, &open).unwrap();
        let mut begun = 0;
        sim.set_faults(Box::new(move |_, _| {
            begun += 1;
            (begun == failing).then_some(Fault::Error(IoError::IO))
        }));
        let runs = [(VolumeId(1), 3..9)];
        NoteLog::new(&open.set, &found)
            .note(&mut sim, &runs, |blocks| LogRecordKind::Gone { blocks })
    }

    #[test]
    fn each_operation_that_fails_is_an_error() {
        let failed = (1..100).take_while(|failing| noted(*failing).is_err()).count();
        assert!((3..20).contains(&failed), "a group, its sync and a footer: {failed}");
    }

    /// Reads take 1 us, 2 us and so on; at most so many are under way. Byte 4096 × 7 is bad.
    #[derive(Default)]
    struct Device {
        now_ns: u64,
        under_way: Vec<(Token, IoOp)>,
        most: usize,
        reads: u64,
    }

    impl Io for Device {
        fn submit(&mut self, token: Token, op: IoOp) {
            self.under_way.push((token, op));
            self.most = self.most.max(self.under_way.len());
        }

        fn wait(&mut self, done: &mut Vec<Done>) {
            let (token, op) = self.under_way.remove(0);
            let is_bad = matches!(op, IoOp::Read { offset, .. } if offset == 7 * 4096);
            self.reads += 1;
            self.now_ns += self.reads * 1000;
            let error = is_bad.then_some(IoError::IO);
            done.push(Done { token, output: op.give_back(), error });
        }

        fn now_ns(&self) -> u64 {
            self.now_ns
        }

        fn file_bytes(&self, _file: FileId) -> u64 {
            1 << 20
        }
    }

    #[test]
    fn times_of_single_reads_are_those_of_the_device() {
        let mut io = Device::default();
        let times = read_times(&mut io, FileId::new(0), &[0; 200], 4096, 1).unwrap();
        assert_eq!(times, (1..=200).map(|us| us * 1000).collect::<Vec<u64>>());
        assert_eq!(io.most, 1);
        let found = summary(times, 1);
        assert_eq!((found.mean_us, found.p50_us, found.p99_us), (100.5, 100.0, 198.0));
        assert_eq!(summary(vec![5000], 1).p99_us, 5.0);
    }

    #[test]
    fn a_read_among_others_also_waits_for_them() {
        let mut io = Device::default();
        let times = read_times(&mut io, FileId::new(0), &[0; 10], 4096, 4).unwrap();
        assert_eq!((io.most, times.len()), (4, 10));
        assert_eq!(times[0], 1000, "the first waits for none");
        assert_eq!(times[9], (7 + 8 + 9 + 10) * 1000, "the last waits for three");
    }

    #[test]
    fn a_read_that_fails_ends_the_measurement() {
        let mut io = Device::default();
        let offsets = [0, 7 * 4096, 0, 0, 0, 0];
        let found = read_times(&mut io, FileId::new(0), &offsets, 4096, 2);
        assert_eq!((found, io.reads), (Err(IoError::IO), 3));
    }
}
