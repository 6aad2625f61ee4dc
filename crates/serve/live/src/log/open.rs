//! Formatting a set of devices, and opening it again.
//!
//! For: superblocks of all devices of a set that agree. Must never know: segments' content. Units:
//! bytes.

use super::format::{
    PAGE, SUPERBLOCK_BYTES, SetGeometry, SetId, Superblock, SuperblockError, Volume,
};
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
    #[error("device {device}: found device {index} of set {set:032x}, expected {expected}")]
    OtherSet {
        /// The device.
        device: usize,
        /// Which one it says it is.
        index: u32,
        /// The set it says it belongs to.
        set: u128,
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
    /// Devices in the order of the set of which one copy of the superblock could not be read, and
    /// why. The other one was taken.
    pub unreadable_copies: Vec<(usize, IoError)>,
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
    let geometry = geometry(io, files, settings)?;
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
    let (superblock, unreadable_copies) = (superblock(0, 2), Vec::new());
    Ok(OpenSet { set, superblock, unreadable_copies, newest_copies })
}

/// The set that formatting would make. Nothing is written. Errors: a size that does not fit.
pub fn cut(
    io: &impl Io,
    files: &[FileId],
    settings: &FormatSettings,
) -> Result<DeviceSet, OpenSetError> {
    let geometry = geometry(io, files, settings)?;
    Ok(DeviceSet::new(settings.set, files.to_vec(), geometry))
}

fn geometry(
    io: &impl Io,
    files: &[FileId],
    settings: &FormatSettings,
) -> Result<SetGeometry, OpenSetError> {
    let FormatSettings { block_bytes, segment_bytes, .. } = *settings;
    check_sizes(block_bytes, segment_bytes)?;
    let mut segments = u32::MAX;
    for (device, file) in files.iter().enumerate() {
        let found = io.file_bytes(*file);
        let expected = 2 * SUPERBLOCK_BYTES as u64 + u64::from(segment_bytes);
        if found < expected {
            return Err(OpenSetError::TooSmall { device, found, expected });
        }
        let whole = (found - 2 * SUPERBLOCK_BYTES as u64) / u64::from(segment_bytes);
        segments = segments.min(u32::try_from(whole).unwrap_or(u32::MAX));
    }
    let pages = u64::from(segment_bytes) / PAGE as u64 * files.len() as u64;
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
    let (mut newest_copies, mut unreadable_copies) = (Vec::new(), Vec::new());
    for (device, file) in files.iter().enumerate() {
        let (superblock, copy, unreadable) = superblock_of(io, (device, *file))?;
        let (first, seen) = (found.first(), &found);
        let agrees = |first: &(FileId, Superblock)| {
            first.1.set == superblock.set
                && superblock.devices as usize == files.len()
                && seen.iter().all(|(_, other)| other.device != superblock.device)
        };
        if !first.map_or(superblock.devices as usize == files.len(), agrees) {
            let expected = match first {
                Some((_, first)) => format!(
                    "each of the {} devices of set {:032x} once",
                    first.devices, first.set.0
                ),
                None => format!("all {} devices of the set", superblock.devices),
            };
            let (index, set) = (superblock.device, superblock.set.0);
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
        unreadable_copies.extend(unreadable.map(|error| (superblock.device as usize, error)));
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
    Ok(OpenSet { set, superblock, unreadable_copies, newest_copies })
}

/// The newer of the two copies on a device, which one it is, and why the other could not be read.
/// Marks that must not be overlooked stand in both (`mark`). Errors: no copy is
/// valid, or one has flags that are not known.
fn superblock_of(
    io: &mut impl Io,
    (device, file): (usize, FileId),
) -> Result<(Superblock, u64, Option<IoError>), OpenSetError> {
    let end = io.file_bytes(file);
    if end < 2 * SUPERBLOCK_BYTES as u64 {
        let expected = 2 * SUPERBLOCK_BYTES as u64;
        return Err(OpenSetError::TooSmall { device, found: end, expected });
    }
    let ranges = [0, 1].map(|copy| (file, Superblock::offset(copy), SUPERBLOCK_BYTES));
    let mut newest: Option<(Superblock, u64)> = None;
    let (mut wrong, mut unreadable) = (SuperblockError::Missing, None);
    for (index, copy) in (0..).zip(batch::read(io, ranges)) {
        let copy = match copy {
            Ok(copy) => copy,
            Err(error) => {
                unreadable = Some(error);
                continue;
            }
        };
        match Superblock::decode(&copy) {
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
    match (newest, unreadable) {
        (Some((superblock, copy)), unreadable) => Ok((superblock, copy, unreadable)),
        (None, Some(error)) => Err(OpenSetError::Io { device, error }),
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
