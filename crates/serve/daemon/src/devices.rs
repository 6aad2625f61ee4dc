//! The devices of a plan: opened, locked, and compared with what the plan says.
//!
//! For: a server and offline tools. Must never know: requests, clients. Units: bytes. Nothing is
//! written here.

use crate::error::LiveError;
use crate::plan::{LivePlan, SPARE_SEGMENTS};
use cachewright_live::blocks::{STREAMS, max_blocks};
use cachewright_live::io::open::{Access, open_file};
use cachewright_live::io::system::{Engine, SystemIo};
use cachewright_live::io::{FileId, Io};
use cachewright_live::log::{DeviceSet, LogSettings, OpenError, OpenSet, open};
use cachewright_stack::IoEngine;
use cachewright_types::Bytes;

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
    pub fn open(plan: &LivePlan, access: Access) -> Result<Devices, LiveError> {
        let mut devices = Devices::of_cache(plan, access)?;
        for volume in &plan.volumes {
            let file = open_file(&volume.backing, access)?;
            devices.notices.extend(file.notice().map(str::to_owned));
            devices.backings.push(devices.io.add_file(file));
        }
        Ok(devices)
    }

    /// The same for the cache's devices alone.
    pub fn of_cache(plan: &LivePlan, access: Access) -> Result<Devices, LiveError> {
        let engine = match plan.serve.engine {
            IoEngine::Auto => Engine::Auto,
            IoEngine::Uring => Engine::Uring,
            IoEngine::Threads => Engine::Threads,
        };
        let mut io = SystemIo::new(engine)?;
        let mut notices: Vec<String> = io.notice().into_iter().collect();
        let mut cache = Vec::new();
        for path in &plan.serve.devices {
            let file = open_file(path, access)?;
            notices.extend(file.notice().map(str::to_owned));
            cache.push(io.add_file(file));
        }
        Ok(Devices { io, cache, backings: Vec::new(), notices })
    }

    /// The set on the cache's devices. Errors: they are not formatted, of other sets or of another
    /// version; blocks or segments of another size; too little space for the capacity.
    pub fn set(&mut self, plan: &LivePlan) -> Result<OpenSet, LiveError> {
        let set = self.any_set(plan)?;
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

    /// Bytes of the device of a tenant's volume.
    pub fn backing_bytes(&self, tenant: usize) -> u64 {
        self.io.file_bytes(self.backings[tenant])
    }
}

/// How the log of a plan gathers and keeps entries.
pub fn log_settings(plan: &LivePlan) -> LogSettings {
    let (group_blocks, spare_segments) = (plan.group_blocks(), SPARE_SEGMENTS);
    LogSettings { streams: STREAMS, group_blocks, spare_segments }
}

/// Errors: the cache would hold more than the log on a set can.
pub fn check_space(plan: &LivePlan, set: &DeviceSet) -> Result<(), LiveError> {
    let max = max_blocks(set, &log_settings(plan));
    if u64::from(plan.capacity_blocks) <= max {
        return Ok(());
    }
    let (needed, space) = (Bytes(plan.capacity_bytes()), Bytes(max * plan.block_bytes()));
    Err(plan.refuse(format!(
        "`cache.capacity`: found `{needed}`, expected at most `{space}`, which the devices hold \
         beside what the log needs"
    )))
}

/// A refusal by the log, with the path of the device that it counts.
pub fn device_error(plan: &LivePlan, error: &OpenError) -> LiveError {
    let device = match error {
        OpenError::Io { device, .. }
        | OpenError::Superblock { device, .. }
        | OpenError::TooSmall { device, .. }
        | OpenError::OtherSet { device, .. } => Some(*device),
        OpenError::Size { .. } | OpenError::Count { .. } => None,
    };
    let path = device.and_then(|device| plan.serve.devices.get(device));
    let text = match (device, path) {
        (Some(device), Some(path)) => {
            error.to_string().replacen(&format!("device {device}"), &path.display().to_string(), 1)
        }
        _ => plan.refuse(error).to_string(),
    };
    match error {
        OpenError::Io { .. } => LiveError::Failed(text),
        _ => LiveError::Refused(text),
    }
}
