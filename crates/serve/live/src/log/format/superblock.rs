//! The superblock: which set a device belongs to, how it is cut, and which volumes it caches.
//!
//! For: opening a device. Must never know: segments' content. Units: bytes. It stands twice. A
//! change never writes the newest valid copy, so that one is there whatever power does.

use super::{FORMAT_VERSION, PAGE, SetId, VolumeId, begin, open, seal};
use std::collections::BTreeSet;

const MAGIC: &[u8; 8] = b"CWsuperb";
/// The flag of a set whose server went on without its cache.
const BYPASSED: u32 = 1;
/// The flag of a set of which content that was durable is gone.
const HAS_LOST: u32 = 2;
/// The flag of a set with notes of its owner.
const HAS_NOTES: u32 = 4;
/// The flag of a volume of which nothing in the log counts.
const PASSED: u8 = 1;
/// Bytes of each of the two copies.
pub const SUPERBLOCK_BYTES: usize = 1 << 20;
/// Longest name of a volume, in bytes.
pub const MAX_NAME: usize = 255;

/// How the devices of a set are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetGeometry {
    /// Bytes of a cached block; a power of two, at least a page.
    pub block_bytes: u32,
    /// Bytes of a segment; a multiple of a page.
    pub segment_bytes: u32,
    /// Segments of this device.
    pub segments: u32,
}

/// A volume whose blocks the set holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its number in records.
    pub id: VolumeId,
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A server went on without the cache, because a device of it had failed: clean content of the log
/// may be older than that of the volumes' devices, and the set can be served no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bypassed {
    /// The error number of the operating system; 0 if there was none.
    pub error: u16,
    /// Volumes that were written to since: nothing in the log counts for them.
    pub passed: BTreeSet<VolumeId>,
}

/// A superblock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The set.
    pub set: SetId,
    /// The device in the set.
    pub device: u32,
    /// Devices of the set.
    pub devices: u32,
    /// How often it was written: of two valid copies the higher counts.
    pub edition: u64,
    /// Content that was durable is gone: volumes may hold older content, and are read-only.
    pub has_lost: bool,
    /// How the device is cut.
    pub geometry: SetGeometry,
    /// The volumes.
    pub volumes: Vec<Volume>,
    /// Whether a server has gone on without the cache.
    pub bypassed: Option<Bypassed>,
    /// What the owner of the set keeps with it; their meaning is the owner's.
    pub notes: Vec<u8>,
}

/// What is wrong with the superblock of a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuperblockError {
    /// Neither copy is a superblock.
    #[error("found no superblock, expected a device formatted by `cachewright live format`")]
    Missing,
    /// It was written by another version.
    #[error("found format version {found}, expected {FORMAT_VERSION}")]
    Version {
        /// The version.
        found: u32,
    },
    /// It has flags that this version does not know.
    #[error("found flags {found:#x}, expected none but {BYPASSED}, {HAS_LOST} and {HAS_NOTES}")]
    Flags {
        /// The flags.
        found: u32,
    },
    /// A volume has flags that this version does not know.
    #[error("found flags {found:#x} of a volume, expected none but {PASSED}")]
    VolumeFlags {
        /// The flags.
        found: u8,
    },
    /// A volume's name is too long.
    #[error("found a volume's name of {bytes} bytes, expected at most {MAX_NAME}: `{start}...`")]
    LongName {
        /// Bytes of the name.
        bytes: usize,
        /// Its first characters.
        start: String,
    },
    /// The table of volumes and the owner's notes do not fit.
    #[error("{volumes} volumes need {needed} bytes, a superblock has {}", SUPERBLOCK_BYTES - PAGE)]
    TooManyVolumes {
        /// Volumes.
        volumes: usize,
        /// Bytes.
        needed: usize,
    },
}

impl Superblock {
    /// The byte of a device at which a copy stands. Formatting writes edition 1 to copy 1 and
    /// edition 2 to copy 0; the parity of later editions means nothing.
    pub fn offset(copy: u64) -> u64 {
        (copy % 2) * SUPERBLOCK_BYTES as u64
    }

    /// Its copy. Errors: too many volumes, a name that is too long.
    pub fn encode(&self) -> Result<Vec<u8>, SuperblockError> {
        if let Some(long) = self.volumes.iter().find(|volume| volume.name.len() > MAX_NAME) {
            let (bytes, start) = (long.name.len(), long.name.chars().take(32).collect());
            return Err(SuperblockError::LongName { bytes, start });
        }
        let mut bytes = begin(MAGIC);
        let words = [
            FORMAT_VERSION,
            self.device,
            self.devices,
            self.geometry.block_bytes,
            self.geometry.segment_bytes,
            self.geometry.segments,
            self.volumes.len() as u32,
            self.flags(),
        ];
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.extend_from_slice(&self.set.0.to_le_bytes());
        bytes.extend_from_slice(&self.edition.to_le_bytes());
        let length_start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        for volume in &self.volumes {
            bytes.extend_from_slice(&volume.id.0.to_le_bytes());
            bytes.extend_from_slice(&volume.bytes.to_le_bytes());
            let passed =
                self.bypassed.as_ref().is_some_and(|known| known.passed.contains(&volume.id));
            let flags = if passed { PASSED } else { 0 };
            bytes.extend_from_slice(&[volume.name.len() as u8, flags]);
            bytes.extend_from_slice(volume.name.as_bytes());
        }
        if !self.notes.is_empty() {
            bytes.extend_from_slice(&(self.notes.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&self.notes);
        }
        let (volumes, needed) = (self.volumes.len(), bytes.len().next_multiple_of(PAGE));
        // The last page says who holds the set (`holder`).
        if needed > SUPERBLOCK_BYTES - PAGE {
            return Err(SuperblockError::TooManyVolumes { volumes, needed });
        }
        bytes[length_start..length_start + 4].copy_from_slice(&(needed as u32).to_le_bytes());
        Ok(seal(bytes))
    }

    fn flags(&self) -> u32 {
        let bypassed = self.bypassed.as_ref();
        let bypassed = bypassed.map_or(0, |known| BYPASSED | u32::from(known.error) << 16);
        let lost = if self.has_lost { HAS_LOST } else { 0 };
        let notes = if self.notes.is_empty() { 0 } else { HAS_NOTES };
        bypassed | lost | notes
    }

    /// The superblock of a copy's bytes. Errors: none is there, or one of another version.
    pub fn decode(copy: &[u8]) -> Result<Superblock, SuperblockError> {
        let missing = SuperblockError::Missing;
        let mut found = super::NumberReader(copy.get(super::CHECKSUM.end..).unwrap_or_default());
        if copy.starts_with(MAGIC)
            && let Some(found) = found.u32().filter(|found| *found != FORMAT_VERSION)
        {
            return Err(SuperblockError::Version { found });
        }
        let length = copy.get(LENGTH).and_then(|bytes| super::NumberReader(bytes).u32());
        let whole = length.and_then(|length| copy.get(..length as usize));
        let (superblock, flags, of_volumes) = whole.and_then(Superblock::take).ok_or(missing)?;
        match (flags & 0xffff & !(BYPASSED | HAS_LOST | HAS_NOTES), of_volumes & !PASSED) {
            (0, 0) => Ok(superblock),
            (0, _) => Err(SuperblockError::VolumeFlags { found: of_volumes }),
            _ => Err(SuperblockError::Flags { found: flags & 0xffff }),
        }
    }

    /// The superblock of a copy that is whole, its flags, and those of any volume.
    fn take(whole: &[u8]) -> Option<(Superblock, u32, u8)> {
        let mut fields = open(whole, MAGIC)?;
        fields.u32()?;
        let (device, devices) = (fields.u32()?, fields.u32()?);
        let (block_bytes, segment_bytes) = (fields.u32()?, fields.u32()?);
        let (segments, volumes) = (fields.u32()?, fields.u32()?);
        let flags = fields.u32()?;
        let set = SetId(u128::from(fields.u64()?) | u128::from(fields.u64()?) << 64);
        let edition = fields.u64()?;
        fields.u32()?;
        let (mut passed, mut of_volumes) = (BTreeSet::new(), 0);
        let volumes: Option<Vec<Volume>> = (0..volumes)
            .map(|_| {
                let (id, bytes) = (VolumeId(fields.u32()?), fields.u64()?);
                let [length, flags] = fields.u16()?.to_le_bytes();
                of_volumes |= flags;
                if flags & PASSED != 0 {
                    passed.insert(id);
                }
                let name = fields.bytes(usize::from(length))?;
                Some(Volume { id, name: String::from_utf8(name.to_vec()).ok()?, bytes })
            })
            .collect();
        let geometry = SetGeometry { block_bytes, segment_bytes, segments };
        let volumes = volumes?;
        let notes = match flags & HAS_NOTES {
            0 => Vec::new(),
            _ => {
                let length = fields.u32()?;
                fields.bytes(length as usize)?.to_vec()
            }
        };
        let (error, has_lost) = ((flags >> 16) as u16, flags & HAS_LOST != 0);
        let bypassed = (flags & BYPASSED != 0).then_some(Bypassed { error, passed });
        let superblock = Superblock {
            set,
            device,
            devices,
            edition,
            has_lost,
            geometry,
            volumes,
            bypassed,
            notes,
        };
        Some((superblock, flags, of_volumes))
    }
}

/// Where the length of a copy stands.
const LENGTH: std::ops::Range<usize> = {
    let start = super::CHECKSUM.end + 8 * 4 + 16 + 8;
    start..start + 4
};
