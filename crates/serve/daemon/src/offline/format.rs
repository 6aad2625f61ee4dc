//! Formatting: the devices of a stack become a new, empty set.
//!
//! For: a first start. Must never know: how a set is laid out. Units: bytes. Content that only the
//! devices have is never thrown away unsaid.

use super::foreign::foreign_content;
use crate::devices::{Devices, check_space, device_error, log_settings};
use crate::error::LiveError;
use crate::holding::Holding;
use crate::identity::{ReplacedSet, new_set_notes};
use crate::ids::random_id;
use crate::plan::LivePlan;
use crate::volumes::{dirty_bytes, name_of, sizes};
use cachewright_live::blocks::max_blocks;
use cachewright_live::io::open::FileAccess;
use cachewright_live::io::{FileId, Io};
use cachewright_live::log::format::{SetId, SuperblockError, Volume, VolumeId};
use cachewright_live::log::{FormatSettings, OpenSetError, cut, open, read_log, rewrite_both};
use cachewright_result::live::{LiveFormatAnswer, LiveVolume};
use cachewright_result::written::Written;
use cachewright_types::Bytes;
use std::path::Path;

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
        Holding::begin(plan, &mut devices.io, &open)?;
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
    (path, io, file): (&Path, &mut impl Io, FileId),
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
                refuse_foreign((path, io, *file), overwrite.foreign)?;
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
