//! The devices of a plan: opened, locked, and compared with what the plan says.
//!
//! For: a server and offline tools. Must never know: requests, clients. Units: bytes. Nothing is
//! written here.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::{max_blocks, needed_segments};
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::{FileId, Io, IoError, IoOp, batch};
use cachewright_live::log::format::Bypassed;
use cachewright_live::log::{DeviceSet, LogSettings, OpenSet, OpenSetError, UnreadablePage, open};
use cachewright_stack::IoEngine;
use cachewright_types::Bytes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most blocks of a group of the log, and most bytes of them.
const GROUP_BLOCKS: u32 = 128;
const GROUP_BYTES: u32 = 1 << 20;
/// Segments that only cleaning and notes may begin, where blocks are moved to one stream.
pub const SPARE_SEGMENTS: usize = 4;

/// The devices of a plan, open.
pub struct Devices {
    /// What carries operations out.
    pub io: SystemIo,
    /// The cache's devices, as the stack lists them.
    pub cache: Vec<FileId>,
    /// The volumes' devices, in the order of tenants.
    pub backings: Vec<FileId>,
    /// Sentences for operators.
    pub notices: Vec<String>,
}

impl Devices {
    /// Opens and locks the cache's devices, and those of the volumes. Errors: one is not there, in
    /// use, or no file or block device; io_uring is demanded and refused.
    pub fn open(plan: &LivePlan, access: FileAccess) -> Result<Devices, LiveError> {
        let mut devices = Devices::of_cache(plan, access)?;
        for volume in &plan.volumes {
            let file = open_file(&volume.backing, access)?;
            devices.notices.extend(file.notices().iter().cloned());
            devices.backings.push(devices.io.add_file(file));
        }
        Ok(devices)
    }

    /// The same for the cache's devices alone.
    pub fn of_cache(plan: &LivePlan, access: FileAccess) -> Result<Devices, LiveError> {
        let engine = match plan.serve.engine {
            IoEngine::Auto => EngineChoice::Auto,
            IoEngine::Uring => EngineChoice::Uring,
            IoEngine::Threads => EngineChoice::Threads,
        };
        let mut io = SystemIo::new(engine)?;
        let mut notices: Vec<String> = io.notice().into_iter().collect();
        let mut cache = Vec::new();
        for path in &plan.serve.devices {
            let file = open_file(path, access)?;
            notices.extend(file.notices().iter().cloned());
            cache.push(io.add_file(file));
        }
        Ok(Devices { io, cache, backings: Vec::new(), notices })
    }

    /// The set on the cache's devices. Errors: they are not formatted, of other sets or of another
    /// version; a server has gone on without them; blocks or segments of another size; too little
    /// space for the capacity.
    pub fn set(&mut self, plan: &LivePlan) -> Result<OpenSet, LiveError> {
        let set = self.any_set(plan)?;
        if let Some(bypassed) = &set.superblock.bypassed {
            return Err(refuse_bypassed(plan, bypassed));
        }
        let geometry = set.superblock.geometry;
        let found = [
            ("cache.block", plan.block_bytes(), geometry.block_bytes),
            ("serve.segment", plan.serve.segment.0, geometry.segment_bytes),
        ];
        for (key, found, formatted) in found {
            if found != u64::from(formatted) {
                let (found, formatted) = (Bytes(found), Bytes(formatted.into()));
                return Err(plan.refuse(format!(
                    "`{key}`: found `{found}`, expected `{formatted}`, with which the devices \
                     were formatted"
                )));
            }
        }
        check_space(plan, &set.set)?;
        Ok(set)
    }

    /// The same, whatever the sizes of its blocks and segments.
    pub fn any_set(&mut self, plan: &LivePlan) -> Result<OpenSet, LiveError> {
        open(&mut self.io, &self.cache).map_err(|error| device_error(plan, &error))
    }

    /// The paths of the cache's devices, in the order of the set.
    pub fn paths(&self, plan: &LivePlan, set: &DeviceSet) -> Vec<PathBuf> {
        let given: BTreeMap<FileId, &PathBuf> =
            self.cache.iter().copied().zip(&plan.serve.devices).collect();
        let path = |file| given.get(file).map(|path| (*path).clone()).unwrap_or_default();
        set.files().iter().map(path).collect()
    }

    /// Makes durable what the volumes' devices hold: a server that was killed may have left writes
    /// to them that were never synced. Errors: one cannot be synced.
    pub fn sync_backings(&mut self, plan: &LivePlan) -> Result<(), LiveError> {
        let syncs = self.backings.iter().map(|file| IoOp::Sync { file: *file }).collect();
        for (volume, result) in plan.volumes.iter().zip(batch::run(&mut self.io, syncs)) {
            result.map_err(|error| unsynced(&volume.backing, error))?;
        }
        Ok(())
    }

    /// Bytes of the device of a tenant's volume.
    pub fn backing_bytes(&self, tenant: usize) -> u64 {
        self.io.file_bytes(self.backings[tenant])
    }
}

/// Why nothing begins on a backing device that cannot be synced.
pub fn unsynced(backing: &Path, error: IoError) -> LiveError {
    LiveError::Failed(format!(
        "{}: what was written to it before cannot be made durable: {error}",
        backing.display()
    ))
}

/// Why nothing is written to a device of which little can be read; `paths` are in the order of the
/// set.
pub fn refuse_failing(paths: &[PathBuf], page: UnreadablePage) -> LiveError {
    let path = paths.get(page.device).map(|path| path.display().to_string());
    LiveError::Failed(format!(
        "{}: more than half of its segments cannot be read whole, the first at byte {}: {}; \
         nothing was written; `cachewright live check` shows what can be read, and `cachewright \
         live writeback` brings it back",
        path.unwrap_or_default(),
        page.offset,
        page.error
    ))
}

/// Why a set is not served whose server went on without it.
fn refuse_bypassed(plan: &LivePlan, bypassed: &Bypassed) -> LiveError {
    let why = match bypassed.error {
        0 => String::new(),
        error => format!(" ({})", IoError(error.into())),
    };
    plan.refuse(format!(
        "found a cache whose server went on without it when a device failed{why}, so that the \
         volumes may be newer; expected `cachewright live check` to see what only the devices \
         have, `cachewright live writeback` for volumes whose own devices had failed, and then \
         `cachewright live format --discard-dirty`"
    ))
}

/// Most blocks of a group of the log on a set.
pub fn group_blocks(set: &DeviceSet) -> u32 {
    (GROUP_BYTES / set.block_bytes() as u32).clamp(1, GROUP_BLOCKS)
}

/// How the log on a set gathers and keeps entries.
pub fn log_settings(plan: &LivePlan, set: &DeviceSet) -> Result<LogSettings, LiveError> {
    let settings = plan.cleaning().log_settings(group_blocks(set), SPARE_SEGMENTS);
    settings.map_err(|error| plan.refuse(format!("`flash`: {error}")))
}

/// Errors: the log on a set has too few segments for its streams; the cache would hold more than
/// the log can.
pub fn check_space(plan: &LivePlan, set: &DeviceSet) -> Result<(), LiveError> {
    let settings = log_settings(plan, set)?;
    let (found, needed) = (set.segments(), needed_segments(&settings) + 1);
    if found < needed {
        let (name, streams) = (plan.cleaning().schemes.separation.name, settings.streams);
        let segment = plan.serve.segment;
        return Err(plan.refuse(format!(
            "`flash.separation`: found `{name}`, whose {streams} streams need {needed} segments of \
             {segment}, expected one that needs at most {found}, which the devices have; a smaller \
             `serve.segment` makes more"
        )));
    }
    let max = max_blocks(set, &settings, set.segments());
    if u64::from(plan.capacity_blocks) <= max {
        return Ok(());
    }
    let needed = Bytes(plan.capacity_bytes());
    let space = rounded_down(Bytes(max * plan.block_bytes()));
    Err(plan.refuse(format!(
        "`cache.capacity`: found `{needed}`, expected at most `{space}`, which the devices hold \
         beside what the log needs"
    )))
}

/// The largest size of at most so many bytes that a text of four digits names: a cache of the size
/// that is said is not refused.
fn rounded_down(bytes: Bytes) -> Bytes {
    let Some(shift) = [40, 30, 20, 10].into_iter().find(|shift| bytes.0 >> shift > 0) else {
        return bytes;
    };
    let whole_digits = (bytes.0 >> shift).to_string().len() as u32;
    let scale = 10_u128.pow(4_u32.saturating_sub(whole_digits));
    let number = (u128::from(bytes.0) * scale) >> shift;
    Bytes(((number << shift) / scale) as u64)
}

/// A refusal by the log before a set is open: devices are counted as the stack lists them.
pub fn device_error(plan: &LivePlan, error: &OpenSetError) -> LiveError {
    set_error(plan, &plan.serve.devices, error)
}

/// A refusal by the log of an open set, with the path of the device that it counts.
pub fn set_error(plan: &LivePlan, paths: &[PathBuf], error: &OpenSetError) -> LiveError {
    let device = match error {
        OpenSetError::Io { device, .. }
        | OpenSetError::Superblock { device, .. }
        | OpenSetError::TooSmall { device, .. }
        | OpenSetError::OtherSet { device, .. } => Some(*device),
        OpenSetError::Unreadable(page) => Some(page.device),
        OpenSetError::Size { .. } | OpenSetError::Count { .. } => None,
    };
    let text = match device.and_then(|device| Some((device, paths.get(device)?))) {
        Some((device, path)) => {
            error.to_string().replacen(&format!("device {device}"), &path.display().to_string(), 1)
        }
        None => plan.refuse(error).to_string(),
    };
    match error {
        OpenSetError::Io { .. } | OpenSetError::Unreadable(_) => LiveError::Failed(text),
        _ => LiveError::Refused(text),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use crate::offline;

    const STACK: &str = r#"
        [cache]
        capacity = "1MiB"
        [serve]
        devices = ["one.img", "two.img"]
        segment = "256KiB"
        [[tenant]]
        name = "a"
        backing = "a.img"
    "#;

    #[test]
    fn the_largest_cache_that_is_said_is_one_that_fits() {
        let numbers = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) / 3 * 5]);
        for bytes in numbers.chain([198_156_288, 1_073_700_000, 1 << 40]).map(Bytes) {
            let said = rounded_down(bytes).to_string();
            let read = cachewright_types::parse_bytes(&said).unwrap();
            assert!(read <= bytes, "{said} of {bytes:?}");
            assert!(bytes.0 - read.0 <= bytes.0 / 1000, "{said} of {bytes:?}");
        }
        assert_eq!(rounded_down(Bytes(198_156_288)).to_string(), "188.9MiB");
    }

    /// Devices that were listed in another order than formatted were taken for each other.
    #[test]
    fn an_error_names_the_device_that_the_set_counts() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["one.img", "two.img", "a.img"] {
            std::fs::File::create(folder.path().join(name)).unwrap().set_len(8 << 20).unwrap();
        }
        let plan = |devices: &str| {
            let settings = [("serve.devices".to_owned(), devices.to_owned())];
            LivePlan::read(STACK, &folder.path().join("stack.toml"), &settings).unwrap()
        };
        offline::format(&plan("[\"one.img\", \"two.img\"]"), offline::Overwrite::default())
            .unwrap();
        let plan = plan("[\"two.img\", \"one.img\"]");
        let mut devices = Devices::of_cache(&plan, FileAccess::Read).unwrap();
        let open = devices.any_set(&plan).unwrap();
        let paths = devices.paths(&plan, &open.set);
        let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["one.img", "two.img"]);
        let sentence = |device| {
            let error = OpenSetError::Io { device, error: IoError::IO };
            set_error(&plan, &paths, &error).to_string()
        };
        assert!(sentence(0).contains("one.img: "), "{}", sentence(0));
        assert!(sentence(1).contains("two.img: "), "{}", sentence(1));
        let error = OpenSetError::Io { device: 0, error: IoError::IO };
        assert!(device_error(&plan, &error).to_string().contains("two.img: "), "as listed");
    }
}
