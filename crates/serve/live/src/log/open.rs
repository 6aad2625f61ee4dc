//! Formatting a set of devices, and opening it again.
//!
//! For: superblocks of all devices of a set that agree. Must never know: segments' content. Units:
//! bytes.

use super::format::{
    PAGE, SUPERBLOCK_BYTES, SetGeometry, SetId, Superblock, SuperblockError, Volume,
};
use super::recovery::UnreadablePage;
use super::set::DeviceSet;
use crate::io::{Buffer, FileId, Io, IoError, batch};

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
    pub(super) newest_copies: Vec<u64>,
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
