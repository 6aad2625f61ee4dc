//! The devices of a plan: opened, locked, and compared with what the plan says.
//!
//! Two hosts can see one disk past the locks of each. A start therefore claims the devices in their
//! superblocks; a server looks once a second whether the claim still stands, and ends without
//! another write if it does not: what it would write could destroy what the other one has written
//! since. Tools that write claim the devices as a start does.
//!
//! A volume is known by the name of its tenant, and has the same number after every start. One that
//! the devices do not know yet is added; one whose backing device has grown is as large as that
//! from then on; one that no tenant has any more keeps its number.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::{ServedVolume, max_blocks, needed_segments};
use cachewright_live::io::open::{FileAccess, open_file};
use cachewright_live::io::system::{EngineChoice, SystemIo};
use cachewright_live::io::token::Submitter;
use cachewright_live::io::{Done, FileId, Io, IoError, IoOp, Token, batch};
use cachewright_live::log::format::{Bypassed, Holder, Superblock, Volume, VolumeId};
use cachewright_live::log::{
    DeviceSet, LogSettings, OpenSet, OpenSetError, RecoveredBlock, UnreadablePage, hold, holders,
    is_taken, look, open,
};
use cachewright_stack::IoEngine;
use cachewright_types::Bytes;
use rustix::rand::{GetRandomFlags, getrandom};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
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
    fn backing_bytes(&self, tenant: usize) -> u64 {
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

/// A tenant and the file of its volume.
#[derive(Clone, Copy, Debug)]
pub struct KnownVolume {
    /// The tenant's place in the plan.
    pub tenant: usize,
    /// Its backing device.
    pub file: FileId,
}

/// The sizes of all volumes, in the order of tenants: those of their backing devices. Errors: one
/// is empty.
pub fn sizes(plan: &LivePlan, devices: &Devices) -> Result<Vec<u64>, LiveError> {
    let size = |tenant: usize| checked_size(plan, tenant, devices.backing_bytes(tenant));
    (0..plan.volumes.len()).map(size).collect()
}

/// Errors: a device of so many bytes is empty.
pub fn checked_size(plan: &LivePlan, tenant: usize, found: u64) -> Result<u64, LiveError> {
    if found > 0 {
        return Ok(found);
    }
    let key = format!("tenant[{}].backing", tenant + 1);
    let path = plan.volumes[tenant].backing.display();
    Err(plan.refuse(format!("`{key}`: found no bytes in `{path}`, expected at least 1")))
}

/// The volumes to be served, and the table of volumes of the set with those that are new or have
/// grown. Errors: a volume is smaller than before.
pub fn matched(
    plan: &LivePlan,
    devices: &Devices,
    superblock: &Superblock,
) -> Result<(Vec<ServedVolume>, Vec<Volume>), LiveError> {
    let known = |tenant: usize| {
        let file = devices.backings[tenant];
        (KnownVolume { tenant, file }, devices.backing_bytes(tenant))
    };
    let sizes: Vec<(KnownVolume, u64)> = (0..plan.volumes.len()).map(known).collect();
    matched_sizes(plan, &sizes, &superblock.volumes)
}

/// The same for some tenants, with the bytes of their devices, beside a table. Errors: a size is
/// nothing, or smaller than before, which is not accepted.
pub fn matched_sizes(
    plan: &LivePlan,
    sizes: &[(KnownVolume, u64)],
    table: &[Volume],
) -> Result<(Vec<ServedVolume>, Vec<Volume>), LiveError> {
    let mut table = table.to_vec();
    let mut served = Vec::new();
    for (KnownVolume { tenant, file }, bytes) in sizes {
        let bytes = checked_size(plan, *tenant, *bytes)?;
        let planned = &plan.volumes[*tenant];
        let is_accepted = plan.accepted.changed.contains(&planned.name);
        let id = match table.iter_mut().find(|known| known.name == planned.name) {
            Some(known) if known.bytes > bytes && !is_accepted => {
                let (found, expected) = (Bytes(bytes).exact(), Bytes(known.bytes).exact());
                return Err(plan.refuse(format!(
                    "`tenant[{}].backing`: found `{found}` in `{}`, expected at least \
                     `{expected}`, the size of the volume `{name}` in the cache, or \
                     `--accept-changed {name}`",
                    tenant + 1,
                    planned.backing.display(),
                    name = planned.name
                )));
            }
            Some(known) => {
                known.bytes = bytes;
                known.id
            }
            None => {
                let last = table.iter().map(|known| known.id.0).max().unwrap_or_default();
                let id = VolumeId(last.saturating_add(1));
                table.push(Volume { id, name: planned.name.clone(), bytes });
                id
            }
        };
        served.push(ServedVolume { id, bytes, backing: *file });
    }
    Ok((served, table))
}

/// Dirty bytes of each volume that has some, by its number.
pub fn dirty_bytes(blocks: &[RecoveredBlock], block_bytes: u64) -> BTreeMap<VolumeId, u64> {
    let mut dirty: BTreeMap<VolumeId, u64> = BTreeMap::new();
    for block in blocks.iter().filter(|block| block.dirty) {
        *dirty.entry(block.volume).or_default() += block_bytes;
    }
    dirty
}

/// The names of all volumes, by their numbers.
pub fn names(table: &[Volume]) -> BTreeMap<VolumeId, &str> {
    table.iter().map(|volume| (volume.id, volume.name.as_str())).collect()
}

/// What a volume is called that the table does not have.
pub fn unnamed(id: VolumeId) -> String {
    format!("number {}", id.0)
}

/// The name of a volume, or its number where the table does not have it.
pub fn name_of(table: &[Volume], id: VolumeId) -> String {
    let known = table.iter().find(|volume| volume.id == id);
    known.map_or_else(|| unnamed(id), |volume| volume.name.clone())
}

/// Errors: a volume that is not served has content in the cache that its backing device lacks.
pub fn check_served(
    plan: &LivePlan,
    served: &[ServedVolume],
    table: &[Volume],
    blocks: &[RecoveredBlock],
    block_bytes: u64,
) -> Result<(), LiveError> {
    let is_served = |id: VolumeId| served.iter().any(|volume| volume.id == id);
    let dirty = dirty_bytes(blocks, block_bytes);
    match dirty.iter().find(|(id, _)| !is_served(**id)) {
        Some((id, bytes)) => {
            let (name, bytes) = (name_of(table, *id), Bytes(*bytes));
            Err(plan.refuse(format!(
                "found {bytes} of the volume `{name}` that only the cache has, expected a \
                 `[[tenant]]` of this name with its `backing`"
            )))
        }
        None => Ok(()),
    }
}

/// The token of looks.
const LOOK: Token = Submitter::Driver.token(2, 0);
/// From one look to the next.
const LOOK_NS: u64 = 1_000_000_000;
/// Where hosts have their number, in hexadecimal digits and dashes. Services may see the last only.
const HOST_FILES: [&str; 2] = ["/proc/sys/kernel/random/boot_id", "/etc/machine-id"];

const TAKEN: &str = "cache: another server has taken the devices over, on another host or by \
                     another name; this one has ended without writing, as at a loss of power";

/// The hold of a server.
pub struct DeviceClaim {
    own: Holder,
    files: Vec<FileId>,
    /// It stands on the devices.
    is_taken: bool,
    next_look_ns: u64,
    looks_under_way: usize,
    /// Another server has it.
    is_lost: bool,
}

impl DeviceClaim {
    /// The hold of a start on a set. If a server that was not this host's may still have the set,
    /// it is taken from that one, which has two looks to notice it. Errors: a device fails, or the
    /// system has no randomness.
    pub fn begin(
        plan: &LivePlan,
        io: &mut impl Io,
        set: &OpenSet,
    ) -> Result<DeviceClaim, LiveError> {
        let own = holder(plan, set, random_id()?);
        let mut claim = DeviceClaim {
            own,
            files: set.set.files().to_vec(),
            is_taken: false,
            next_look_ns: 0,
            looks_under_way: 0,
            is_lost: false,
        };
        if is_held_beyond(io, set, &own) {
            claim.take(plan, io, set)?;
            let at_ns = io.now_ns() + 2 * LOOK_NS;
            batch::run(io, vec![IoOp::Timer { at_ns }]);
        }
        Ok(claim)
    }

    /// Says on the devices that this start holds them, unless that stands there. Errors: a device
    /// fails.
    pub fn take(
        &mut self,
        plan: &LivePlan,
        io: &mut impl Io,
        set: &OpenSet,
    ) -> Result<(), LiveError> {
        if !self.is_taken {
            hold(io, set, &self.own)
                .map_err(|error| set_error(plan, &plan.serve.devices, &error))?;
            self.is_taken = true;
        }
        Ok(())
    }

    /// Looks who holds the devices, if it is time. To be called some times a second. Errors:
    /// another server has taken them.
    pub fn tick(&mut self, io: &mut impl Io) -> Result<(), LiveError> {
        if io.now_ns() >= self.next_look_ns {
            self.begin_look(io);
        }
        self.check()
    }

    /// Looks who holds the devices, unless such a look is under way.
    pub fn begin_look(&mut self, io: &mut impl Io) {
        if self.looks_under_way == 0 {
            self.next_look_ns = io.now_ns() + LOOK_NS;
            self.looks_under_way = self.files.len();
            self.files.iter().for_each(|file| io.submit(LOOK, look(*file)));
        }
    }

    /// Whether a look is under way.
    pub fn is_looking(&self) -> bool {
        self.looks_under_way > 0
    }

    /// Errors: the last look found that another server has taken the devices.
    pub fn check(&self) -> Result<(), LiveError> {
        match self.is_lost {
            true => Err(LiveError::TakenOver(TAKEN.to_owned())),
            false => Ok(()),
        }
    }

    /// Whether an operation is a look.
    pub fn owns(&self, token: Token) -> bool {
        token == LOOK
    }

    /// A look is done.
    pub fn on_done(&mut self, done: &Done) {
        self.looks_under_way = self.looks_under_way.saturating_sub(1);
        self.is_lost |= is_taken(&self.own, &done.output, done.error);
    }
}

/// Whether a server that was not this host's, or that knew the devices by another name, had the set
/// last: no lock tells whether it has ended.
pub fn is_held_elsewhere(plan: &LivePlan, io: &mut impl Io, set: &OpenSet) -> bool {
    is_held_beyond(io, set, &holder(plan, set, 0))
}

fn is_held_beyond(io: &mut impl Io, set: &OpenSet, own: &Holder) -> bool {
    !holders(io, set).iter().all(|before| own.has_lock_of(before))
}

/// A start on a set that has the locks of its devices.
fn holder(plan: &LivePlan, set: &OpenSet, start: u128) -> Holder {
    let first = plan.serve.devices.first().and_then(|path| std::fs::metadata(path).ok());
    Holder {
        set: set.set.id(),
        start,
        // Without a known place no lock is taken for the same.
        host: first.as_ref().map_or(0, |_| host()),
        file_system: first.as_ref().map_or(0, MetadataExt::dev),
        file: first.as_ref().map_or(0, MetadataExt::ino),
    }
}

/// A number of this host, or of its boot; 0 where none is told.
fn host() -> u128 {
    let number = |path: &str| {
        let text = std::fs::read_to_string(Path::new(path)).ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    };
    HOST_FILES.into_iter().find_map(number).unwrap_or_default()
}

/// A number that no other set or start has. Errors: the system has no randomness.
pub fn random_id() -> Result<u128, LiveError> {
    let mut bytes = [0_u8; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    let whole = filled.is_ok_and(|count| count == bytes.len());
    whole.then(|| u128::from_le_bytes(bytes)).ok_or_else(|| {
        LiveError::Failed("found no randomness in the system, expected some for an id".to_owned())
    })
}

#[cfg(test)]
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
