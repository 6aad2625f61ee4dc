//! The devices of a set: where its segments lie on them, how they are formatted and opened, the
//! marks in their superblocks, and which server holds them.
//!
//! A change of a superblock writes the copy that is not the newest valid one, and so one is valid
//! at any time. A mark stands when both copies on one device are durable: a copy that cannot be
//! read later does not hide it. The last start that wrote its page holds the set.

use super::format::{
    Bypassed, Footer, FooterRecord, HOLDER_OFFSET, Holder, Home, PAGE, SUPERBLOCK_BYTES,
    SetGeometry, SetId, Superblock, SuperblockError, Volume,
};
use super::recovery::UnreadablePage;
use crate::io::{Buffer, FileId, Io, IoError, IoOp, Output, batch};
use std::sync::Arc;

cachewright_types::index_ids! {
    /// A segment of the set.
    SegmentId,
}

/// A page of the set: that of a segment, counted through all segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u32);

/// A page on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePage {
    /// The device's file.
    pub file: FileId,
    /// The byte at which the page begins.
    pub offset: u64,
}

/// Where entries are appended: a stream of a pool of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WritePoint {
    /// The pool.
    pub pool: usize,
    /// The stream.
    pub stream: usize,
}

/// The devices of a set. Segments of all devices have one row of numbers, taken in turn: neighbours
/// lie on different devices.
#[derive(Clone, Debug)]
pub struct DeviceSet {
    id: SetId,
    files: Vec<FileId>,
    geometry: SetGeometry,
    /// The pool of each device.
    pools: Vec<usize>,
}

impl DeviceSet {
    /// The devices, in the order of the set, each cut by `geometry`.
    pub fn new(id: SetId, files: Vec<FileId>, geometry: SetGeometry) -> DeviceSet {
        let pools = vec![0; files.len()];
        DeviceSet { id, files, geometry, pools }
    }

    /// The same devices in pools, one of which holds each device: `pools` has its number, by
    /// device. Content of a pool is filled and cleaned together.
    pub fn in_pools(self, pools: Vec<usize>) -> DeviceSet {
        debug_assert_eq!(pools.len(), self.files.len());
        DeviceSet { pools, ..self }
    }

    /// How many pools the devices are in.
    pub fn pools(&self) -> usize {
        self.pools.iter().max().map_or(1, |last| last + 1)
    }

    /// The pool of each device.
    pub fn pool_of_devices(&self) -> &[usize] {
        &self.pools
    }

    /// The pool of a segment.
    pub fn pool(&self, segment: SegmentId) -> usize {
        self.pools[self.device(segment)]
    }

    /// Segments of a pool.
    pub fn segments_of(&self, pool: usize) -> usize {
        let devices = self.pools.iter().filter(|other| **other == pool).count();
        devices * self.geometry.segments as usize
    }

    /// The id of the set.
    pub fn id(&self) -> SetId {
        self.id
    }

    /// The files, in the order of the devices.
    pub fn files(&self) -> &[FileId] {
        &self.files
    }

    /// Segments of all devices.
    pub fn segments(&self) -> usize {
        self.files.len() * self.geometry.segments as usize
    }

    /// Pages of a segment.
    pub fn segment_pages(&self) -> u32 {
        self.geometry.segment_bytes / PAGE as u32
    }

    /// Pages of a block.
    pub fn block_pages(&self) -> u32 {
        self.geometry.block_bytes / PAGE as u32
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.geometry.block_bytes as usize
    }

    /// The first page of the footer, which ends the segment.
    pub fn footer_page(&self) -> u32 {
        self.segment_pages() - self.footer_pages()
    }

    /// Pages that are kept for a footer: one in 64, at least one.
    pub fn footer_pages(&self) -> u32 {
        (self.segment_pages() / 64).max(1)
    }

    /// Most blocks of a segment: all of them in one group.
    pub fn max_blocks(&self) -> u32 {
        self.footer_page().saturating_sub(2) / self.block_pages()
    }

    /// Most records of a segment: as many as its footer can hold, beside the numbers of as many
    /// groups as a segment has pages.
    pub fn max_records(&self) -> usize {
        Footer::max_records(self.footer_page() as usize, self.footer_pages() as usize)
    }

    /// The device of a segment.
    pub fn device(&self, segment: SegmentId) -> usize {
        segment.index() % self.files.len()
    }

    /// How a segment names itself.
    pub fn home(&self, segment: SegmentId, generation: u64) -> Home {
        let (device, own) = (self.device(segment), segment.index() / self.files.len());
        Home { set: self.id, device: device as u32, segment: own as u32, generation }
    }

    /// Where a page of a segment lies.
    pub fn page(&self, segment: SegmentId, page: u32) -> DevicePage {
        let own = (segment.index() / self.files.len()) as u64;
        let start = 2 * SUPERBLOCK_BYTES as u64 + own * u64::from(self.geometry.segment_bytes);
        let file = self.files[self.device(segment)];
        DevicePage { file, offset: start + u64::from(page) * PAGE as u64 }
    }

    /// Whether the content of a record lies wholly between the header and the footer of a segment.
    pub fn holds(&self, placed: &FooterRecord) -> bool {
        let has_data = placed.record.kind.has_data();
        let pages = if has_data { self.block_pages() } else { 0 };
        let end = placed.page.saturating_add(pages);
        end <= self.footer_page() && (placed.page > 0 || !has_data)
    }

    /// The place of a page of a segment.
    pub fn place(&self, segment: SegmentId, page: u32) -> Place {
        Place(segment.0 * self.segment_pages() + page)
    }

    /// The segment and the page of a place.
    pub fn locate(&self, place: Place) -> (SegmentId, u32) {
        let pages = self.segment_pages();
        (SegmentId(place.0 / pages), place.0 % pages)
    }
}

/// How a set is to be cut.
#[derive(Clone, Debug)]
pub struct FormatSettings {
    /// The id of the new set.
    pub set: SetId,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of a segment.
    pub segment_bytes: u32,
    /// The volumes.
    pub volumes: Vec<Volume>,
}

/// Why a set could not be formatted or opened. Devices are counted from 0, as they were given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenSetError {
    /// Input or output failed.
    #[error("device {device}: {error}")]
    Io {
        /// The device.
        device: usize,
        /// What failed.
        error: IoError,
    },
    /// A part of a device that must be read cannot be.
    #[error("device {}: byte {}: {}", .0.device, .0.offset, .0.error)]
    Unreadable(UnreadablePage),
    /// The superblock is missing, or of another version.
    #[error("device {device}: {error}")]
    Superblock {
        /// The device.
        device: usize,
        /// What is wrong.
        error: SuperblockError,
    },
    /// Blocks or segments cannot be of this size.
    #[error("found {name} = {found} bytes, expected {expected}")]
    Size {
        /// What.
        name: &'static str,
        /// Bytes.
        found: u64,
        /// In words.
        expected: String,
    },
    /// A device is too small for one segment, or smaller than when it was formatted.
    #[error("device {device}: found {found} bytes, expected at least {expected}")]
    TooSmall {
        /// The device.
        device: usize,
        /// Its bytes.
        found: u64,
        /// Bytes that are needed.
        expected: u64,
    },
    /// The log is about to run out of numbers: it was damaged, or made to do harm.
    #[error("found a {name} of {found}, expected at most {max}")]
    Count {
        /// What is counted.
        name: &'static str,
        /// The number.
        found: u64,
        /// The largest from which a log goes on.
        max: u64,
    },
    /// Devices are missing, given twice, or of different sets.
    #[error("device {device}: found device {index} of set {}, expected {expected}", .set.name())]
    OtherSet {
        /// The device.
        device: usize,
        /// Which one it says it is.
        index: u32,
        /// The set it says it belongs to.
        set: SetId,
        /// In words.
        expected: String,
    },
}

/// A set that was opened.
#[derive(Clone, Debug)]
pub struct OpenSet {
    /// The devices.
    pub set: DeviceSet,
    /// The superblock of the first device.
    pub superblock: Superblock,
    /// Pages of superblocks that cannot be read. Of each device one copy was read.
    pub unreadable: Vec<UnreadablePage>,
    /// Of each device in the order of the set: which copy of its superblock is the newest that is
    /// valid. The other one is written next.
    newest_copies: Vec<u64>,
}

/// Formats devices as a new set; what they held is void. Errors: a size that does not fit, a device
/// that fails; nothing is written before sizes are checked.
pub fn format(
    io: &mut impl Io,
    files: &[FileId],
    settings: &FormatSettings,
) -> Result<OpenSet, OpenSetError> {
    let geometry = geometry(&sizes(io, files), settings)?;
    let superblock = |device: usize, edition: u64| Superblock {
        set: settings.set,
        device: device as u32,
        devices: files.len() as u32,
        edition,
        has_lost: false,
        geometry,
        volumes: settings.volumes.clone(),
        bypassed: None,
        notes: Vec::new(),
    };
    for edition in [1, 2] {
        for (device, file) in files.iter().enumerate() {
            let copy = superblock(device, edition).encode();
            let copy = copy.map_err(|error| OpenSetError::Superblock { device, error })?;
            let piece = (*file, Superblock::offset(edition), Buffer::padded(&copy));
            batch::write(io, [piece]).map_err(|error| OpenSetError::Io { device, error })?;
        }
    }
    let set = DeviceSet::new(settings.set, files.to_vec(), geometry);
    let newest_copies = vec![0; files.len()]; // Edition 2 stands where even ones do.
    let (superblock, unreadable) = (superblock(0, 2), Vec::new());
    Ok(OpenSet { set, superblock, unreadable, newest_copies })
}

/// The set that formatting would make. Nothing is written. Errors: a size that does not fit.
pub fn cut(
    io: &impl Io,
    files: &[FileId],
    settings: &FormatSettings,
) -> Result<DeviceSet, OpenSetError> {
    let geometry = geometry(&sizes(io, files), settings)?;
    Ok(DeviceSet::new(settings.set, files.to_vec(), geometry))
}

/// The same of devices of so many bytes, which are not open: their numbers are those of the list.
pub fn cut_sizes(bytes: &[u64], settings: &FormatSettings) -> Result<DeviceSet, OpenSetError> {
    let geometry = geometry(bytes, settings)?;
    let files = (0..).take(bytes.len()).map(FileId).collect();
    Ok(DeviceSet::new(settings.set, files, geometry))
}

fn sizes(io: &impl Io, files: &[FileId]) -> Vec<u64> {
    files.iter().map(|file| io.file_bytes(*file)).collect()
}

fn geometry(bytes: &[u64], settings: &FormatSettings) -> Result<SetGeometry, OpenSetError> {
    let FormatSettings { block_bytes, segment_bytes, .. } = *settings;
    check_sizes(block_bytes, segment_bytes)?;
    let mut segments = u32::MAX;
    for (device, found) in bytes.iter().copied().enumerate() {
        let expected = 2 * SUPERBLOCK_BYTES as u64 + u64::from(segment_bytes);
        if found < expected {
            return Err(OpenSetError::TooSmall { device, found, expected });
        }
        let whole = (found - 2 * SUPERBLOCK_BYTES as u64) / u64::from(segment_bytes);
        segments = segments.min(u32::try_from(whole).unwrap_or(u32::MAX));
    }
    let pages = u64::from(segment_bytes) / PAGE as u64 * bytes.len() as u64;
    let max_segments = u64::from(u32::MAX) / pages.max(1);
    Ok(SetGeometry { block_bytes, segment_bytes, segments: segments.min(max_segments as u32) })
}

/// Errors: blocks or segments of a size that the log cannot have.
fn check_sizes(block_bytes: u32, segment_bytes: u32) -> Result<(), OpenSetError> {
    if !block_bytes.is_power_of_two() || (block_bytes as usize) < PAGE {
        let expected = format!("a power of two of at least {PAGE}");
        return Err(OpenSetError::Size { name: "block", found: block_bytes.into(), expected });
    }
    let min_bytes = (16 * PAGE as u32).max(block_bytes.saturating_mul(8));
    if segment_bytes < min_bytes || !segment_bytes.is_multiple_of(PAGE as u32) {
        let expected = format!("a multiple of {PAGE} of at least {min_bytes}");
        return Err(OpenSetError::Size { name: "segment", found: segment_bytes.into(), expected });
    }
    Ok(())
}

/// Errors: more pages than places have numbers.
fn check_pages(geometry: &SetGeometry, devices: usize) -> Result<(), OpenSetError> {
    let pages = u64::from(geometry.segment_bytes / PAGE as u32) * u64::from(geometry.segments);
    let found = pages.saturating_mul(devices as u64);
    if found <= u64::from(u32::MAX) {
        return Ok(());
    }
    let (found, max) = (found.saturating_mul(PAGE as u64), u64::from(u32::MAX) * PAGE as u64);
    Err(OpenSetError::Size { name: "set", found, expected: format!("at most {max}") })
}

/// Opens a set; the devices may be given in any order. Errors: a device that fails, is missing, is
/// of another set or of another version.
pub fn open(io: &mut impl Io, files: &[FileId]) -> Result<OpenSet, OpenSetError> {
    let mut found: Vec<(FileId, Superblock)> = Vec::new();
    let (mut newest_copies, mut unreadable) = (Vec::new(), Vec::new());
    for (device, file) in files.iter().enumerate() {
        let FoundSuperblock { superblock, copy, unreadable: pages } =
            superblock_of(io, device, *file)?;
        let (first, seen) = (found.first(), &found);
        let agrees = |first: &(FileId, Superblock)| {
            first.1.set == superblock.set
                && superblock.devices as usize == files.len()
                && seen.iter().all(|(_, other)| other.device != superblock.device)
        };
        if !first.map_or(superblock.devices as usize == files.len(), agrees) {
            let expected = match first {
                Some((_, first)) => format!(
                    "each of the {} devices of set {} once",
                    first.devices,
                    first.set.name()
                ),
                None => format!("all {} devices of the set", superblock.devices),
            };
            let (index, set) = (superblock.device, superblock.set);
            return Err(OpenSetError::OtherSet { device, index, set, expected });
        }
        check_sizes(superblock.geometry.block_bytes, superblock.geometry.segment_bytes)?;
        let segments = u64::from(superblock.geometry.segments);
        check_pages(&superblock.geometry, files.len())?;
        let bytes = segments * u64::from(superblock.geometry.segment_bytes);
        let (found_bytes, expected) = (io.file_bytes(*file), bytes + 2 * SUPERBLOCK_BYTES as u64);
        if found_bytes < expected {
            return Err(OpenSetError::TooSmall { device, found: found_bytes, expected });
        }
        newest_copies.push((superblock.device, copy));
        let device = superblock.device as usize;
        unreadable.extend(pages.into_iter().map(|page| UnreadablePage { device, ..page }));
        found.push((*file, superblock));
    }
    newest_copies.sort_unstable();
    let newest_copies = newest_copies.into_iter().map(|(_, copy)| copy).collect();
    found.sort_by_key(|(_, superblock)| superblock.device);
    let files = found.iter().map(|(file, _)| *file).collect();
    // The newest edition of any device: a change writes the devices one after another.
    let newest = found.into_iter().map(|(_, superblock)| superblock);
    let newest = newest.max_by_key(|superblock| superblock.edition);
    let Some(superblock) = newest else {
        let expected = "at least one device".to_owned();
        return Err(OpenSetError::Size { name: "devices", found: 0, expected });
    };
    let set = DeviceSet::new(superblock.set, files, superblock.geometry);
    Ok(OpenSet { set, superblock, unreadable, newest_copies })
}

/// The superblock of a device.
struct FoundSuperblock {
    superblock: Superblock,
    /// Which copy it is.
    copy: u64,
    /// Pages of either copy that cannot be read.
    unreadable: Vec<UnreadablePage>,
}

/// The newer of the two copies on a device. Marks that must not be overlooked stand in both
/// (`mark`). Errors: no copy is valid, or one has flags that are not known.
fn superblock_of(
    io: &mut impl Io,
    device: usize,
    file: FileId,
) -> Result<FoundSuperblock, OpenSetError> {
    let end = io.file_bytes(file);
    if end < 2 * SUPERBLOCK_BYTES as u64 {
        let expected = 2 * SUPERBLOCK_BYTES as u64;
        return Err(OpenSetError::TooSmall { device, found: end, expected });
    }
    let ranges = [0, 1].map(|copy| (file, Superblock::offset(copy), SUPERBLOCK_BYTES));
    let copies = batch::read_pages(io, &ranges).map_err(|(copy, error)| {
        OpenSetError::Unreadable(UnreadablePage { device, offset: ranges[copy].1, error })
    })?;
    let mut newest: Option<(Superblock, u64)> = None;
    let (mut wrong, mut unreadable) = (SuperblockError::Missing, Vec::new());
    for (index, copy) in (0..).zip(copies) {
        let page = |(start, error): (usize, IoError)| {
            let offset = Superblock::offset(index) + start as u64;
            UnreadablePage { device, offset, error }
        };
        unreadable.extend(copy.unreadable.into_iter().map(page));
        match Superblock::decode(&copy.data) {
            Ok(found) if newest.as_ref().is_none_or(|(other, _)| other.edition < found.edition) => {
                newest = Some((found, index));
            }
            Ok(_) | Err(SuperblockError::Missing) => {}
            // A newer version has written it: what the flags say holds, whatever the other copy is.
            Err(error @ (SuperblockError::Flags { .. } | SuperblockError::VolumeFlags { .. })) => {
                return Err(OpenSetError::Superblock { device, error });
            }
            Err(error) => wrong = error,
        }
    }
    match (newest, unreadable.first()) {
        (Some((superblock, copy)), _) => Ok(FoundSuperblock { superblock, copy, unreadable }),
        (None, Some(page)) => Err(OpenSetError::Unreadable(*page)),
        (None, None) => Err(OpenSetError::Superblock { device, error: wrong }),
    }
}

/// Writes a changed superblock to all devices: a volume was added, grown or removed. On each device
/// the copy is replaced that is not the newest valid one. Errors: too many volumes, a device that
/// fails.
pub fn rewrite(io: &mut impl Io, open: &mut OpenSet) -> Result<(), OpenSetError> {
    open.superblock.edition += 1;
    for (device, file) in open.set.files().iter().enumerate() {
        let copy = Superblock { device: device as u32, ..open.superblock.clone() }.encode();
        let copy = copy.map_err(|error| OpenSetError::Superblock { device, error })?;
        let older = 1 - open.newest_copies[device];
        let piece = (*file, Superblock::offset(older), Buffer::padded(&copy));
        batch::write(io, [piece]).map_err(|error| OpenSetError::Io { device, error })?;
        open.newest_copies[device] = older;
    }
    Ok(())
}

/// Writes both copies of the superblock on all devices, for repairs. Each device has a valid copy
/// at any time. Errors: a device fails.
pub fn rewrite_both(io: &mut impl Io, open: &mut OpenSet) -> Result<(), OpenSetError> {
    rewrite(io, open)?;
    rewrite(io, open)
}

/// Writes marks to all devices of a set, while other operations are under way. The copies on one
/// device are written one after the other, so that one is valid at any time.
#[derive(Clone, Debug)]
pub struct Marker {
    set: DeviceSet,
    superblock: Superblock,
    newest_copies: Vec<u64>,
    /// The mark under way, device by device.
    /// A mark is being written.
    is_busy: bool,
}

impl Marker {
    /// Marks of a set that is open.
    pub fn new(open: OpenSet) -> Marker {
        let OpenSet { set, superblock, newest_copies, .. } = open;
        Marker { set, superblock, newest_copies, is_busy: false }
    }

    /// The table of volumes in the superblocks.
    pub fn volumes(&self) -> &[Volume] {
        &self.superblock.volumes
    }

    /// What the owner of the set keeps with it.
    pub fn notes(&self) -> &[u8] {
        &self.superblock.notes
    }

    /// Writes another table of volumes and other notes of the owner, and waits until both are
    /// durable. Errors: a device fails; they are too large; a mark stands or is on its way.
    pub fn set_volumes(
        &mut self,
        io: &mut impl Io,
        volumes: Vec<Volume>,
        notes: Vec<u8>,
    ) -> Result<(), OpenSetError> {
        if self.is_busy || self.superblock.bypassed.is_some() {
            return Err(OpenSetError::Io { device: 0, error: IoError::IO });
        }
        let mut open = OpenSet {
            set: self.set.clone(),
            superblock: Superblock { volumes, notes, ..self.superblock.clone() },
            newest_copies: self.newest_copies.clone(),
            unreadable: Vec::new(),
        };
        let written = rewrite(io, &mut open);
        // Some devices may have the new table: the next edition must be newer than all.
        self.superblock.edition = open.superblock.edition;
        self.newest_copies = open.newest_copies;
        if written.is_ok() {
            self.superblock.volumes = open.superblock.volumes;
            self.superblock.notes = open.superblock.notes;
        }
        written
    }

    /// A mark is written from now on; returns how many devices take it.
    pub fn begin(&mut self, mark: Bypassed) -> usize {
        self.superblock.bypassed = Some(mark);
        self.superblock.edition += 1;
        self.is_busy = true;
        self.set.files().len()
    }

    /// The mark was written, or could not be.
    pub fn end(&mut self) {
        self.is_busy = false;
    }

    /// Writes the older copy on a device, with the mark; nothing if it does not fit.
    pub fn copy(&self, device: usize) -> Option<(IoOp, FileId)> {
        let copy = Superblock { device: device as u32, ..self.superblock.clone() }.encode().ok()?;
        let offset = Superblock::offset(1 - self.newest_copies[device]);
        let (file, buffer) = (self.set.files()[device], Arc::new(Buffer::padded(&copy)));
        Some((IoOp::Write { file, offset, buffer }, file))
    }

    /// That copy is durable: it is the newest one.
    pub fn note_copied(&mut self, device: usize) {
        self.newest_copies[device] = 1 - self.newest_copies[device];
    }
}

/// The holders of a set as its devices tell, those of other sets left out. A device that cannot be
/// read tells none.
pub fn holders(io: &mut impl Io, open: &OpenSet) -> Vec<Holder> {
    let pages = open.set.files().iter().map(|file| (*file, HOLDER_OFFSET, PAGE));
    let found = batch::read(io, pages).into_iter().flatten();
    let found = found.filter_map(|page| Holder::decode(&page));
    found.filter(|holder| holder.set == open.set.id()).collect()
}

/// Makes `holder` the one that holds a set, and waits until that is durable. Errors: a device
/// fails.
pub fn hold(io: &mut impl Io, open: &OpenSet, holder: &Holder) -> Result<(), OpenSetError> {
    for (device, file) in open.set.files().iter().enumerate() {
        let piece = (*file, HOLDER_OFFSET, Buffer::padded(&holder.encode()));
        batch::write(io, [piece]).map_err(|error| OpenSetError::Io { device, error })?;
    }
    Ok(())
}

/// The operation that looks who holds a device.
pub fn look(file: FileId) -> IoOp {
    IoOp::Read { file, offset: HOLDER_OFFSET, buffer: Buffer::zeroed(PAGE) }
}

/// Whether such a look found that another start than `own` holds the device. A page that cannot be
/// read says nothing.
pub fn is_taken(own: &Holder, found: &Output, error: Option<IoError>) -> bool {
    let (None, Output::Buffer(page, _)) = (error, found) else { return false };
    Holder::decode(page).is_some_and(|holder| holder.set == own.set && holder.start != own.start)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::super::format::VolumeId;
    use super::super::{FormatSettings, format, open};
    use super::*;
    use crate::io::sim::{Fate, Fault, Sim, SimFile};
    use cachewright_types::Seed;

    #[test]
    fn places_are_told_apart_and_found_again() {
        let geometry = SetGeometry { block_bytes: 4096, segment_bytes: 1 << 20, segments: 3 };
        let set = DeviceSet::new(SetId(7), vec![FileId(0), FileId(1)], geometry);
        assert_eq!((set.segments(), set.segment_pages(), set.footer_page()), (6, 256, 252));
        assert!(set.max_records() > 440 && Footer::pages(252, set.max_records()) == 4);
        for (groups, pages) in [(252, 4), (15, 1), (1008, 16), (4032, 64), (600, 1)] {
            let most = Footer::max_records(groups, pages);
            assert!(most == 0 || Footer::pages(groups, most) == pages, "{groups} {pages}");
            assert!(Footer::pages(groups, most + 1) > pages, "{groups} {pages}");
        }
        let place = set.place(SegmentId(3), 5);
        assert_eq!(set.locate(place), (SegmentId(3), 5));
        let offset = (2 << 20) + (1 << 20) + 5 * 4096;
        assert_eq!(set.page(SegmentId(3), 5), DevicePage { file: FileId(1), offset });
        let home = set.home(SegmentId(3), 9);
        assert_eq!((home.device, home.segment, home.generation), (1, 1, 9));
    }

    fn set(sim: &mut Sim) -> Vec<FileId> {
        let bytes = (2 << 20) + (8 << 16);
        let files: Vec<FileId> = (0..2).map(|_| sim.add_file(SimFile::new(bytes))).collect();
        let volume = |id| Volume { id: VolumeId(id), name: format!("v{id}"), bytes: 8192 };
        let (set, volumes) = (SetId(3), vec![volume(1), volume(2)]);
        let settings = FormatSettings { set, block_bytes: 4096, segment_bytes: 64 << 10, volumes };
        format(sim, &files, &settings).unwrap();
        files
    }

    fn mark() -> Bypassed {
        Bypassed { error: 5, passed: [VolumeId(2)].into() }
    }

    /// Writes a mark; returns whether it stands.
    fn write(sim: &mut Sim, marker: &mut Marker) -> bool {
        let mut stands = false;
        for device in 0..marker.begin(mark()) {
            stands |= (0..2).all(|_| {
                let (copy, file) = marker.copy(device).unwrap();
                let is_copied = [copy, IoOp::Sync { file }]
                    .into_iter()
                    .all(|op| batch::run(sim, vec![op]).remove(0).is_ok());
                if is_copied {
                    marker.note_copied(device);
                }
                is_copied
            });
        }
        marker.end();
        stands
    }

    #[test]
    fn a_mark_that_stands_is_found_without_any_one_copy() {
        let mut sim = Sim::new(Seed(1));
        let files = set(&mut sim);
        let mut marker = Marker::new(open(&mut sim, &files).unwrap());
        sim.set_faults(Box::new(|_, op| {
            let failing = op.file_range().is_some_and(|(file, ..)| file == FileId(0));
            failing.then_some(Fault::Error(IoError::IO))
        }));
        assert!(write(&mut sim, &mut marker), "the other device takes it");
        let mut left = sim.crash(Seed(2), std::iter::repeat(Fate::Lost));
        assert_eq!(open(&mut left, &files).unwrap().superblock.bypassed, Some(mark()));
        for copy in [0, 1] {
            let mut left = sim.crash(Seed(3), std::iter::repeat(Fate::Lost));
            left.set_faults(Box::new(move |_, op| {
                let here = (FileId(1), Superblock::offset(copy));
                let failing = op.file_range().is_some_and(|(file, at, _)| (file, at) == here);
                failing.then_some(Fault::Error(IoError::IO))
            }));
            let found = open(&mut left, &files).unwrap();
            assert_eq!(found.superblock.bypassed, Some(mark()));
            let page = found.unreadable.iter().map(|page| (page.device, page.offset));
            assert_eq!(page.collect::<Vec<_>>(), [(1, Superblock::offset(copy))]);
        }
    }

    #[test]
    fn a_mark_that_no_device_takes_does_not_stand() {
        for failing in 0..8 {
            let mut sim = Sim::new(Seed(failing));
            let files = set(&mut sim);
            let mut marker = Marker::new(open(&mut sim, &files).unwrap());
            let mut begun = [0; 2];
            // Each device takes so many operations of the mark.
            sim.set_faults(Box::new(move |_, op| {
                let (file, ..) = op.file_range()?;
                begun[file.index()] += 1;
                (begun[file.index()] > failing).then_some(Fault::Error(IoError::IO))
            }));
            assert_eq!(write(&mut sim, &mut marker), failing >= 4, "{failing}");
            let mut left = sim.crash(Seed(2), std::iter::repeat(Fate::Lost));
            open(&mut left, &files).unwrap();
        }
    }
}
