//! What a start of a server would refuse, as far as that is known without one.
//!
//! For: `cachewright check`. Must never know: requests, clients. Units: bytes. Nothing is written,
//! locked for writing or listened at: a server of the same stack may run. Devices that are not
//! there yet, or that this user may not read, are left to the start.

use crate::devices::checked_size;
use crate::devices::{Devices, check_space, device_error};
use crate::error::LiveError;
use crate::memory;
use crate::plan::LivePlan;
use crate::plan::LiveStack;
use crate::plan::tls_config;
use crate::server;
use crate::status::monitor_address;
use cachewright_live::io::FileId;
use cachewright_live::io::open::FileAccess;
use cachewright_live::log::format::{SetId, SuperblockError};
use cachewright_live::log::{FormatSettings, OpenSetError, cut_sizes, open};
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Checks a stack that names devices of a cache; any other is right. Errors: what
/// [`LivePlan::read`] and [`crate::Server::start`] refuse of it.
pub fn check_start(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
) -> Result<(), LiveError> {
    let stack = LiveStack::parse(text, origin, overrides);
    let stack = stack.map_err(|message| LiveError::stack(origin, message))?;
    if stack.serve.is_none_or(|serve| serve.devices.is_empty()) {
        return Ok(());
    }
    let plan = LivePlan::read(text, origin, overrides)?;
    server::check(&plan, None)?;
    tls_config(&plan)?;
    monitor_address(&plan)?;
    plan.goals()?;
    plan.kept_curves()?;
    memory::check(&plan)?;
    check_files(&plan)?;
    match is_formatted(&plan)? {
        true => Ok(()),
        false => check_sizes(&plan),
    }
}

/// A file or block device that is there.
struct PresentFile<'a> {
    path: &'a Path,
    found: Metadata,
}

impl PresentFile<'_> {
    /// Nothing where there is none, or none that can be looked at.
    fn find(path: &Path) -> Option<PresentFile<'_>> {
        std::fs::metadata(path).ok().map(|found| PresentFile { path, found })
    }

    fn is_same(&self, other: &PresentFile<'_>) -> bool {
        let is_device = |file: &PresentFile<'_>| file.found.file_type().is_block_device();
        match is_device(self) && is_device(other) {
            true => self.found.rdev() == other.found.rdev(),
            false => (self.found.dev(), self.found.ino()) == (other.found.dev(), other.found.ino()),
        }
    }

    fn bytes(&self) -> Option<u64> {
        if self.found.is_file() {
            return Some(self.found.len());
        }
        File::open(self.path).and_then(|mut file| file.seek(SeekFrom::End(0))).ok()
    }

    /// Errors: it is neither a file nor a block device.
    fn check_kind(&self, plan: &LivePlan) -> Result<(), LiveError> {
        let kind = self.found.file_type();
        if kind.is_file() || kind.is_block_device() {
            return Ok(());
        }
        let path = self.path.display();
        Err(plan.refuse(format!("found `{path}`, expected a file or block device")))
    }
}

/// Errors: one is no file or block device, or listed twice; a volume is no whole number of blocks.
fn check_files(plan: &LivePlan) -> Result<(), LiveError> {
    let backings = plan.volumes.iter().map(|volume| volume.backing.as_path());
    let cache = plan.serve.devices.iter().map(|path| path.as_path());
    let mut seen: Vec<PresentFile<'_>> = Vec::new();
    for present in cache.chain(backings).filter_map(PresentFile::find) {
        present.check_kind(plan)?;
        if let Some(other) = seen.iter().find(|other| other.is_same(&present)) {
            let (path, other) = (present.path.display(), other.path.display());
            return Err(plan.refuse(format!(
                "found `{path}` and `{other}`, which are the same, expected each device and volume \
                 once"
            )));
        }
        seen.push(present);
    }
    for (tenant, volume) in plan.volumes.iter().enumerate() {
        if let Some(bytes) = PresentFile::find(&volume.backing).and_then(|file| file.bytes()) {
            checked_size(plan, tenant, bytes)?;
        }
    }
    Ok(())
}

/// Checks the cache's devices as a format would cut them. Errors: they are too small.
fn check_sizes(plan: &LivePlan) -> Result<(), LiveError> {
    let sizes = |path: &PathBuf| PresentFile::find(path)?.bytes();
    let sizes: Option<Vec<u64>> = plan.serve.devices.iter().map(sizes).collect();
    let Some(sizes) = sizes else { return Ok(()) };
    let settings = FormatSettings {
        set: SetId(0),
        block_bytes: plan.block_bytes() as u32,
        segment_bytes: plan.serve.segment.0 as u32,
        volumes: Vec::new(),
    };
    let set = cut_sizes(&sizes, &settings).map_err(|error| device_error(plan, &error))?;
    check_space(plan, &set)?;
    let listed: Vec<FileId> = (0..sizes.len()).map(FileId::new).collect();
    plan.layout(&set, &listed, &[]).map(|_| ())
}

/// Whether the cache's devices are formatted, as far as they can be read: a server that runs has
/// them for itself. Errors: they were formatted otherwise than the stack wants them.
fn is_formatted(plan: &LivePlan) -> Result<bool, LiveError> {
    let Ok(mut devices) = Devices::of_cache(plan, FileAccess::Read) else { return Ok(false) };
    let missing = OpenSetError::Superblock { device: 0, error: SuperblockError::Missing };
    let cache = devices.cache.clone();
    let mut is_blank =
        |file: &FileId| open(&mut devices.io, &[*file]).is_err_and(|error| error == missing);
    if cache.iter().all(&mut is_blank) {
        return Ok(false);
    }
    let set = devices.set(plan)?;
    plan.layout(&set.set, &devices.cache, &[])?;
    Ok(true)
}
