//! Whether the backing devices and the cache are those of before.
//!
//! Two places remember. The superblocks of the cache say by what each backing device is known, and,
//! while no server runs, what it was left with. A file outside the cache says with which set of
//! devices each volume was last served. The order, by which neither errs on the wrong side:
//!
//! - a start compares before it writes anything; then the file says that the set may have dirty
//!   content, blocks that do not count are gone durably, and what devices were left with is taken
//!   out of the superblocks; only then does the server write to a backing device;
//! - an end in order looks at the devices after the last sync, and then at nothing that changes
//!   them; a server that is killed leaves no such note, and only the name of a device and the
//!   sample of clean blocks are compared then.
//!
//! A device of another name is another one: it is refused unless the operator accepts it and none
//! of its blocks is dirty. A device that was written to loses its clean blocks; while some are
//! dirty it is refused, unless the operator accepts it. A volume of which the cache holds nothing
//! may have any device.
//!
//! Why a sampled clean block with other content proves a write of others, whatever stopped the
//! server: content reaches a backing device only when the log has it durably as dirty (write-back
//! and write-through), and a write round the cache waits until no recovery finds older content of
//! its blocks. A block counts as clean only after a sync of the device that has it. So what
//! recovery finds clean is what the device holds, with one exception: a trim or zeroes may be
//! carried out while the log has not been told durably. The device then has zeroes there, or the
//! old content, sector by sector. A set that has lost durable groups, or that was bypassed, proves
//! nothing: its records may be too old. A device that gave up writes when a sync failed, and was
//! served again, has older content than was read of it: it counts as written to, which drops the
//! clean blocks that it does not have.
//!
//! The number of the device that a file lies on, and the sequence number of a block device
//! (`diskseq`), are not compared: both may change at a boot, while the device is the same.

use crate::devices::{Devices, name_of, set_error};
use crate::error::LiveError;
use crate::offline::NoteLog;
use crate::plan::LivePlan;
use cachewright_live::blocks::{BlockServer, ServedVolume};
use cachewright_live::io::batch::Aside;
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::{DeviceFacts, FileFacts, FileTime};
use cachewright_live::io::system::SystemIo;
use cachewright_live::io::{ALIGNMENT, FileId, Io, IoError, batch};
use cachewright_live::log::format::{LogRecordKind, SetId, Volume, VolumeId, data_checksum};
use cachewright_live::log::{
    BlockRun, FoundLog, OpenSet, RecoveredBlock, contents, read_log, rewrite, rewrite_both,
};
use cachewright_types::{Bytes, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What the operator accepts of a start, or of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Tenants whose backing devices are other ones than before, or were written to.
    pub changed: Vec<String>,
    /// Content may be given up that nothing else has: that of another set of cache devices, and for
    /// `live writeback` the dirty blocks of the tenants whose devices have changed.
    pub discard_dirty: bool,
}

/// What wants to begin on the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A server.
    Serve,
    /// A tool that writes dirty blocks back.
    WriteBack,
}

/// What is to be told a volume's backing device by.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing proves that it has changed.
    Unchanged,
    /// It was written to, and why that is known.
    Written(String),
    /// It is smaller than it was, and in which way.
    Smaller(String),
    /// It is another device, and why that is known.
    Other(String),
}

/// Blocks of a volume that the log holds.
#[derive(Clone, Copy, Debug, Default)]
struct HeldBlocks {
    clean: u64,
    dirty: u64,
    /// The number behind the last one.
    end: u64,
}

/// What becomes of blocks of a volume because its device has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedBlocks {
    /// The volume.
    pub volume: VolumeId,
    /// Bytes that its backing device has, as it was.
    pub clean_bytes: u64,
    /// Bytes that nothing else has.
    pub dirty_bytes: u64,
}

/// What was found on devices that may be begun on, and what is to be done before.
pub struct Examined {
    notes: SetNotes,
    sets: ServedSets,
    /// What the file outside the cache is to say.
    serving: Vec<ServedVolumeSet>,
    runs: Vec<BlockRun>,
    dropped: Vec<DroppedBlocks>,
    lines: Vec<String>,
    purpose: Purpose,
}

/// What is remembered while a server runs.
pub struct Identities {
    notes: SetNotes,
    sets: ServedSets,
    set: SetId,
}

/// Compares the devices of a plan with what the set and the file outside it remember; the set has
/// `found`, and the volumes are served as `served`. Nothing is written. Errors: a device is another
/// one, or was written to while the cache has dirty blocks of it; the set is not that with which
/// the volumes were served last; a device cannot be read.
pub fn examine(
    plan: &LivePlan,
    devices: &mut Devices,
    open: &OpenSet,
    served: &[ServedVolume],
    found: &FoundLog,
    purpose: Purpose,
) -> Result<Examined, LiveError> {
    check_accepted(plan)?;
    let mut notes = SetNotes::decode(plan, &open.superblock.notes)?;
    let sets = ServedSets::read(plan);
    let held = held_blocks(&found.blocks);
    let is_blank = notes.is_fresh() && found.blocks.is_empty();
    let mut lines = check_set(plan, &sets, &notes, open.set.id(), is_blank)?;
    let verdicts = verdicts(plan, devices, open, served, found, &notes, &sets)?;
    let bytes = open.set.block_bytes() as u64;
    let (mut runs, mut dropped) = (Vec::new(), Vec::new());
    for ((tenant, volume), (device, verdict)) in served.iter().enumerate().zip(verdicts) {
        let held = held.get(&volume.id).copied().unwrap_or_default();
        let owner = notes.owner(&device).map(|id| name_of(&open.superblock.volumes, id));
        let discards = allow(plan, tenant, &verdict, owner, held.dirty * bytes, purpose)?;
        if let Verdict::Written(why) | Verdict::Smaller(why) | Verdict::Other(why) = &verdict {
            let dirty = if discards { 0 } else { held.dirty };
            runs.extend(runs_to_drop(&found.blocks, volume.id, held.end, dirty > 0));
            let dirty_bytes = (held.dirty - dirty) * bytes;
            let clean_bytes = held.clean * bytes;
            dropped.push(DroppedBlocks { volume: volume.id, clean_bytes, dirty_bytes });
            lines.push(changed_line(plan, tenant, why, clean_bytes, dirty * bytes));
        }
        notes.put(volume.id, device, None);
    }
    // What is held of a volume that no tenant has stays known until it is gone.
    let unserved = open.superblock.volumes.iter().map(|volume| volume.id);
    unserved.filter(|id| !held.contains_key(id)).for_each(|id| {
        if served.iter().all(|volume| volume.id != id) {
            notes.forget(id);
        }
    });
    notes.begin();
    let mut serving = Vec::new();
    // A tool makes no content that only the cache has.
    if purpose == Purpose::Serve {
        for (volume, planned) in served.iter().zip(&plan.volumes) {
            let is_held = held.get(&volume.id).is_some_and(|held| held.dirty > 0);
            serving.push(served_with(&planned.name, open.set.id(), plan.keeps_dirty() || is_held));
        }
    }
    Ok(Examined { notes, sets, serving, runs, dropped, lines, purpose })
}

/// Why the device of the only volume of a plan, which is served as `served`, is not as the set and
/// the file outside it remember it; nothing if no difference proves that. Nothing is written.
/// Errors: what the set remembers, or the device, cannot be read.
pub fn changed_device(
    plan: &LivePlan,
    devices: &mut Devices,
    open: &OpenSet,
    served: ServedVolume,
    found: &FoundLog,
) -> Result<Option<String>, LiveError> {
    let notes = SetNotes::decode(plan, &open.superblock.notes)?;
    let sets = ServedSets::read(plan);
    let verdicts = verdicts(plan, devices, open, &[served], found, &notes, &sets)?;
    Ok(verdicts.into_iter().find_map(|(_, verdict)| match verdict {
        Verdict::Unchanged => None,
        Verdict::Written(why) => Some(format!("written to while no server ran: {why}")),
        Verdict::Smaller(why) => Some(format!("smaller than it was: {why}")),
        Verdict::Other(why) => Some(format!("another device: {why}")),
    }))
}

/// Errors: an operator accepts a tenant that the stack does not have.
fn check_accepted(plan: &LivePlan) -> Result<(), LiveError> {
    let is_known = |name: &String| plan.volumes.iter().any(|volume| volume.name == *name);
    match plan.accepted.changed.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let known: Vec<String> =
                plan.volumes.iter().map(|volume| format!("`{}`", volume.name)).collect();
            Err(plan.refuse(format!(
                "found `--accept-changed {name}`, expected the name of a tenant: {}",
                known.join(", ")
            )))
        }
        None => Ok(()),
    }
}

/// Blocks of each volume that the log holds.
fn held_blocks(blocks: &[RecoveredBlock]) -> BTreeMap<VolumeId, HeldBlocks> {
    let mut held: BTreeMap<VolumeId, HeldBlocks> = BTreeMap::new();
    for block in blocks {
        let held = held.entry(block.volume).or_default();
        *if block.dirty { &mut held.dirty } else { &mut held.clean } += 1;
        held.end = held.end.max(block.number + 1);
    }
    held
}

/// What operators are told of the file outside the cache. Errors: a volume was last served with
/// another set, which may have dirty content of it; the file cannot be read, and the set is blank.
fn check_set(
    plan: &LivePlan,
    sets: &ServedSets,
    notes: &SetNotes,
    set: SetId,
    is_blank: bool,
) -> Result<Vec<String>, LiveError> {
    let (path, accepted) = (sets.path().display(), plan.accepted.discard_dirty);
    if let Some(why) = sets.unreadable() {
        if is_blank && !accepted && !notes.discards_all() {
            return Err(LiveError::Refused(format!(
                "{path}: {why}; the cache is an empty one, so that it is not known whether another \
                 one has content of the volumes that nothing else has: expected the file of the \
                 last server, or `--discard-dirty`"
            )));
        }
        return Ok(vec![format!("{path}: {why}; it is written anew")]);
    }
    if sets.is_missing() && !notes.is_fresh() {
        return Ok(vec![format!(
            "{path}: found no such file: whether the volumes were served with another cache since \
             is not known; it is written anew"
        )]);
    }
    let set = set.name();
    let elsewhere =
        sets.left_elsewhere(&set, plan.volumes.iter().map(|planned| planned.name.as_str()));
    let open: Vec<&ServedVolumeSet> =
        elsewhere.into_iter().filter(|volume| !notes.succeeds(&volume.set)).collect();
    let Some(first) = open.first() else { return Ok(Vec::new()) };
    let names: Vec<String> = open.iter().map(|volume| format!("`{}`", volume.name)).collect();
    let (names, other) = (names.join(", "), &first.set);
    if accepted {
        return Ok(vec![format!(
            "{names}: what only the set {other} of cache devices has is given up"
        )]);
    }
    Err(plan.refuse(format!(
        "`serve.devices`: found the set {set}, expected the set {other}, with which {names} were \
         last served and which may have content that nothing else has (says {path}); bring its \
         devices back, or go on without that content by `--discard-dirty`"
    )))
}

/// What is known of the backing device of each volume that is served, and its name.
fn verdicts(
    plan: &LivePlan,
    devices: &mut Devices,
    open: &OpenSet,
    served: &[ServedVolume],
    found: &FoundLog,
    notes: &SetNotes,
    sets: &ServedSets,
) -> Result<Vec<(DeviceName, Verdict)>, LiveError> {
    let held = held_blocks(&found.blocks);
    let mut verdicts = Vec::new();
    let mut doubtful = BTreeMap::new();
    let set = open.set.id().name();
    for (planned, volume) in plan.volumes.iter().zip(served) {
        let failed = |error: &dyn std::fmt::Display| unknown(&planned.backing, error);
        let facts = devices.io.file_facts(volume.backing).map_err(|error| failed(&error))?;
        let device = DeviceName::known_by(&facts);
        let mut verdict = Verdict::Unchanged;
        if held.contains_key(&volume.id) {
            let known = notes.volume(volume.id);
            let since = sets.last_set(&planned.name).filter(|known| known.set != set);
            let table = open.superblock.volumes.iter();
            let before = table.filter(|known| known.id == volume.id).map(|known| known.bytes);
            if let Some(before) = before.max().filter(|before| *before > volume.bytes) {
                let (now, before) = (Bytes(volume.bytes).exact(), Bytes(before).exact());
                verdict = Verdict::Smaller(format!("it has {now}, and had {before}"));
            } else if let Some(why) = known.and_then(|known| device.differs_from(&known.device)) {
                verdict = Verdict::Other(why);
            } else if let Some(since) = since {
                verdict = Verdict::Written(format!("it was served with the set {}", since.set));
            } else if let Some(left) = known.and_then(|known| known.left.as_ref()) {
                let written = left.written(&mut devices.io, volume.backing, &facts);
                if let Some(why) = written.map_err(|error| failed(&error))? {
                    verdict = Verdict::Written(why);
                }
            }
            if verdict == Verdict::Unchanged {
                doubtful.insert(volume.id, volume.backing);
            }
        }
        verdicts.push((device, verdict));
    }
    let is_lost = open.superblock.has_lost || found.has_lost();
    if !is_lost && open.superblock.bypassed.is_none() {
        let outcomes = look(&mut devices.io, open, &found.blocks, &doubtful);
        for (volume, (_, verdict)) in served.iter().zip(&mut verdicts) {
            let outcome = outcomes.get(&volume.id).copied().unwrap_or_default();
            if outcome.foreign > 0 {
                *verdict = Verdict::Written(format!(
                    "{} of {} clean blocks that were compared have other content",
                    outcome.foreign, outcome.looked_at
                ));
            }
        }
    }
    Ok(verdicts)
}

/// Whether the dirty blocks of a volume are discarded, whose device is known as that of `owner`.
/// Errors: its device has changed, and that is not accepted, or its dirty blocks stand in the way.
fn allow(
    plan: &LivePlan,
    tenant: usize,
    verdict: &Verdict,
    owner: Option<String>,
    dirty_bytes: u64,
    purpose: Purpose,
) -> Result<bool, LiveError> {
    let planned = &plan.volumes[tenant];
    let (name, path) = (&planned.name, planned.backing.display());
    let is_accepted = plan.accepted.changed.contains(name);
    let discards = purpose == Purpose::WriteBack && is_accepted && plan.accepted.discard_dirty;
    let (key, dirty) = (format!("`tenant[{}].backing`", tenant + 1), Bytes(dirty_bytes));
    let tool = format!("`cachewright live writeback --accept-changed {name}`");
    match verdict {
        Verdict::Unchanged => Ok(false),
        // A size that is not accepted was refused before. Dirty blocks may lie behind the end.
        Verdict::Smaller(_) if dirty_bytes == 0 || discards => Ok(discards),
        Verdict::Smaller(why) => Err(plan.refuse(format!(
            "{key}: found `{path}` smaller than it was ({why}), and {dirty} of `{name}` that only \
             the cache has, expected a device as large as before, or {tool} with \
             `--discard-dirty`, which drops them"
        ))),
        Verdict::Other(why) => {
            if is_accepted && (dirty_bytes == 0 || purpose == Purpose::WriteBack) {
                return Ok(discards);
            }
            let owner = owner.map(|owner| format!("; it is that of `{owner}`")).unwrap_or_default();
            let remedy = match dirty_bytes {
                0 => format!("`--accept-changed {name}`, which drops what is cached of it"),
                _ => format!(
                    "{tool}, which writes the {dirty} that only the cache has over this one, and \
                     with `--discard-dirty` drops them"
                ),
            };
            Err(plan.refuse(format!(
                "{key}: found `{path}`, which is not the device whose blocks the cache holds as \
                 `{name}` ({why}{owner}), expected that device, or {remedy}"
            )))
        }
        Verdict::Written(why) => {
            if dirty_bytes == 0 || is_accepted {
                return Ok(discards);
            }
            Err(plan.refuse(format!(
                "{key}: found `{path}` written to while no server ran ({why}), and {dirty} of \
                 `{name}` that only the cache has, expected the device as it was left, or \
                 `--accept-changed {name}`, by which these {dirty} go over what it has now; {tool} \
                 with `--discard-dirty` drops them instead"
            )))
        }
    }
}

/// What operators are told of a device that has changed and is accepted.
fn changed_line(
    plan: &LivePlan,
    tenant: usize,
    why: &str,
    clean_bytes: u64,
    dirty_bytes: u64,
) -> String {
    let (export, path) = (&plan.volumes[tenant].export, plan.volumes[tenant].backing.display());
    let clean = Bytes(clean_bytes);
    let kept = match dirty_bytes {
        0 => String::new(),
        dirty => format!("; {} dirty go over what it has now, as accepted", Bytes(dirty)),
    };
    format!(
        "export `{export}`: {path} was changed while no server ran ({why}): {clean} clean dropped \
         from the cache{kept}"
    )
}

/// The runs of a volume that are to be gone: all blocks in front of `end`, or those between dirty
/// ones.
fn runs_to_drop(
    blocks: &[RecoveredBlock],
    id: VolumeId,
    end: u64,
    keeps_dirty: bool,
) -> Vec<BlockRun> {
    let own = blocks.iter().filter(|block| block.volume == id);
    let mut kept: Vec<u64> =
        own.filter(|block| block.dirty && keeps_dirty).map(|block| block.number).collect();
    kept.sort_unstable();
    let (mut runs, mut start) = (Vec::new(), 0);
    for stop in kept.into_iter().chain([end]) {
        while start < stop {
            let part = (stop - start).min(u64::from(u32::MAX));
            runs.push((id, start..start + part));
            start += part;
        }
        start = stop + 1;
    }
    runs
}

impl Examined {
    /// What becomes of blocks of volumes whose devices have changed.
    pub fn dropped(&self) -> &[DroppedBlocks] {
        &self.dropped
    }

    /// Remembers that the volumes are served with the set, drops what does not count any more, and
    /// notes on the cache's devices that backing devices change from now on, beside this table of
    /// volumes. Returns what the log holds then. Errors: a device fails, or the file outside the
    /// cache cannot be written.
    pub fn begin(
        mut self,
        plan: &LivePlan,
        io: &mut SystemIo,
        open: &mut OpenSet,
        table: &[Volume],
        mut found: FoundLog,
        paths: &[PathBuf],
    ) -> Result<(Identities, FoundLog, Vec<String>), LiveError> {
        let failed = |error| set_error(plan, paths, &error);
        let must_remember = self.serving.iter().any(|volume| volume.dirty);
        if !self.serving.is_empty()
            && let Err(error) = self.sets.note(std::mem::take(&mut self.serving))
        {
            // Nothing is lost with a cache that has no dirty block.
            if must_remember {
                return Err(error);
            }
            self.lines.push(error.to_string());
        }
        if !self.runs.is_empty() {
            let settled = found.settle(io).map_err(failed)?;
            let gone = |blocks| LogRecordKind::Gone { blocks };
            NoteLog::new(&open.set, &settled).note(io, &self.runs, gone)?;
            found = read_log(io, open).map_err(failed)?;
        }
        let notes = self.notes.encode();
        if notes != open.superblock.notes || table != open.superblock.volumes {
            open.superblock.notes = notes;
            open.superblock.volumes = table.to_vec();
            // In both copies: one that is read later in place of the other must not say what
            // devices were left with before.
            let noted = rewrite_both(io, open).map_err(failed);
            // Devices that can be read only still give up what they hold. The next start finds that
            // the backing devices were written to, and is refused.
            if self.purpose == Purpose::Serve {
                noted?;
            }
        }
        let identities = Identities { notes: self.notes, sets: self.sets, set: open.set.id() };
        Ok((identities, found, self.lines))
    }
}

impl Identities {
    /// Some tenants of a plan come, whose volumes these are; nothing of them is in the cache. The
    /// file outside the cache says from now on that the set may have dirty content of them. Returns
    /// the notes for the cache's devices. Errors: another set may have dirty content of one; a
    /// device cannot be looked at; the file cannot be written.
    pub fn join(
        &mut self,
        plan: &LivePlan,
        io: &SystemIo,
        tenants: &[usize],
        volumes: &[ServedVolume],
    ) -> Result<Vec<u8>, LiveError> {
        let name = |tenant: &usize| plan.volumes[*tenant].name.as_str();
        let set = self.set.name();
        if let Some(left) = self.sets.left_elsewhere(&set, tenants.iter().map(name)).first() {
            return Err(plan.refuse(format!(
                "found the volume `{}`, which was last served with the set {} of cache devices \
                 that may have content of it that nothing else has (says {}), expected one \
                 without; a start with `--discard-dirty` goes on without that content",
                left.name,
                left.set,
                self.sets.path().display()
            )));
        }
        for (tenant, volume) in tenants.iter().zip(volumes) {
            let backing = &plan.volumes[*tenant].backing;
            let facts = io.file_facts(volume.backing).map_err(|error| unknown(backing, &error))?;
            self.notes.put(volume.id, DeviceName::known_by(&facts), None);
        }
        let dirty = plan.keeps_dirty();
        let served = tenants.iter().map(|tenant| served_with(name(tenant), self.set, dirty));
        let noted = self.sets.note(served.collect());
        if dirty {
            noted?;
        }
        Ok(self.notes.encode())
    }

    /// A volume has gone, and its backing device has all of it: it may have any other device when
    /// it comes again. Errors: the file outside the cache cannot be written.
    pub fn leave(&mut self, name: &str, id: VolumeId) -> Result<(), LiveError> {
        self.notes.forget(id);
        self.sets.forget(name)
    }

    /// Notes what the devices of some tenants are left with by a server that has written all it is
    /// to write, and which of them have all content. Returns what operators are told.
    pub fn end(
        mut self,
        plan: &LivePlan,
        io: &mut Delayed<SystemIo>,
        blocks: &mut BlockServer,
        tenants: &[usize],
        volumes: &[ServedVolume],
    ) -> Vec<String> {
        // Nothing in a log that has failed counts for volumes that were served past it.
        if blocks.log_failure().is_some() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        for tenant in tenants.iter().copied() {
            let (volume, backing) = (&volumes[tenant], &plan.volumes[tenant].backing);
            let facts = io.inner().file_facts(volume.backing);
            let facts = facts.map_err(|error| unknown(backing, &error));
            let noted = facts.and_then(|facts| {
                note_left(&mut self.notes, &mut Aside::new(io), volume, &facts, backing)
            });
            lines.extend(noted.err().map(|error| error.to_string()));
        }
        let table = blocks.table();
        let (written, _) = blocks.set_table(io, table, self.notes.encode());
        if let Err(error) = written {
            lines.push(format!("cache: what the devices were left with is not noted: {error}"));
        }
        let served = tenants.iter().map(|tenant| {
            let dirty = !blocks.is_written_back(TenantId(*tenant as u16));
            served_with(&plan.volumes[*tenant].name, self.set, dirty)
        });
        lines.extend(self.sets.note(served.collect()).err().map(|error| error.to_string()));
        lines
    }

    /// The same for a tool without clients, which has written back all dirty blocks of the volumes
    /// but `damaged` ones. Errors: a device fails, or the file outside the cache cannot be written.
    pub fn end_tool(
        mut self,
        plan: &LivePlan,
        io: &mut SystemIo,
        open: &mut OpenSet,
        volumes: &[ServedVolume],
        damaged: &[VolumeId],
        paths: &[PathBuf],
    ) -> Result<(), LiveError> {
        for (volume, planned) in volumes.iter().zip(&plan.volumes) {
            let facts = io.file_facts(volume.backing);
            let facts = facts.map_err(|error| unknown(&planned.backing, &error))?;
            note_left(&mut self.notes, io, volume, &facts, &planned.backing)?;
        }
        open.superblock.notes = self.notes.encode();
        rewrite(io, open).map_err(|error| set_error(plan, paths, &error))?;
        let set = self.set.name();
        let mut served = Vec::new();
        for (volume, planned) in volumes.iter().zip(&plan.volumes) {
            // A file that knows another set, or nothing, has nothing to be told by this one.
            if self.sets.last_set(&planned.name).is_some_and(|known| known.set == set) {
                served.push(served_with(&planned.name, self.set, damaged.contains(&volume.id)));
            }
        }
        if served.is_empty() { Ok(()) } else { self.sets.note(served) }
    }
}

/// Notes what the device of a volume is left with. Errors: it cannot be read.
fn note_left(
    notes: &mut SetNotes,
    io: &mut impl Io,
    volume: &ServedVolume,
    facts: &DeviceFacts,
    backing: &Path,
) -> Result<(), LiveError> {
    let left = LeftDevice::look(io, volume.backing, facts);
    let left = left.map_err(|error| unknown(backing, &error))?;
    notes.put(volume.id, DeviceName::known_by(facts), Some(left));
    Ok(())
}

/// A set in whose place another one is made.
#[derive(Clone, Debug)]
pub struct ReplacedSet {
    /// The owner's notes in its superblock.
    pub notes: Vec<u8>,
    /// Its id.
    pub set: SetId,
}

/// The notes of a set that is made anew by a plan, in place of another one if there is one: it may
/// go on without what that had. Errors: a volume was last served with another
/// set, which may have dirty content of it, and that is not to be discarded.
pub fn new_set_notes(
    plan: &LivePlan,
    before: Option<ReplacedSet>,
    discards: bool,
) -> Result<Vec<u8>, LiveError> {
    let before = before.map(|before| {
        // Notes that cannot be read say of no set that it may be gone on without.
        let notes = SetNotes::decode(plan, &before.notes).unwrap_or_default();
        (notes, before.set.name())
    });
    let notes = SetNotes::succeeding(before, discards);
    let sets = ServedSets::read(plan);
    let path = sets.path().display();
    let remedy = format!(
        "`cachewright live format --discard-dirty {}`, which gives that content up",
        plan.origin().display()
    );
    if let Some(why) = sets.unreadable().filter(|_| !notes.discards_all()) {
        return Err(LiveError::Refused(format!(
            "{path}: {why}, so that it is not known whether a cache has content of the volumes \
             that nothing else has: expected the file of the last server, or {remedy}"
        )));
    }
    let names = plan.volumes.iter().map(|volume| volume.name.as_str());
    // No set is named so: all that may have dirty content count.
    let left = sets.left_elsewhere("", names);
    match left.into_iter().find(|volume| !notes.succeeds(&volume.set)) {
        None => Ok(notes.encode()),
        Some(ServedVolumeSet { name, set, .. }) => Err(plan.refuse(format!(
            "`serve.devices`: found devices without the set {set}, with which `{name}` was last \
             served and which may have content that nothing else has (says {path}), expected its \
             devices, or {remedy}"
        ))),
    }
}

fn served_with(name: &str, set: SetId, dirty: bool) -> ServedVolumeSet {
    ServedVolumeSet { name: name.to_owned(), set: set.name(), dirty }
}

/// Why nothing is known of a device.
fn unknown(backing: &Path, error: &dyn std::fmt::Display) -> LiveError {
    LiveError::Failed(format!("{}: what it is known by cannot be read: {error}", backing.display()))
}

/// Where the system lists block devices by their numbers.
const BLOCK_DEVICES: &str = "/sys/dev/block";
/// Bytes at either end of a device that file systems and partition tables change.
const END_BYTES: u64 = 1 << 20;

/// What is known of a device that stays as long as it is the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceName {
    /// The number of a file in its file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    /// When a file was made: seconds since 1970, and nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<(i64, u32)>,
    /// What the system says of a block device: serial numbers, names for the whole world, numbers
    /// of partitions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    block: BTreeMap<String, String>,
}

impl DeviceName {
    /// That of an open file or block device.
    fn known_by(facts: &DeviceFacts) -> DeviceName {
        match *facts {
            DeviceFacts::File(FileFacts { inode, born, .. }) => {
                DeviceName { inode, born: born.map(pair), block: BTreeMap::new() }
            }
            DeviceFacts::Block { major, minor } => {
                let listed = Path::new(BLOCK_DEVICES).join(format!("{major}:{minor}"));
                DeviceName { block: block_names(&listed), ..DeviceName::default() }
            }
        }
    }

    /// Why it is another device than that of `before`, as far as what is known of both proves it.
    fn differs_from(&self, before: &DeviceName) -> Option<String> {
        if !self.block.is_empty() && before.inode.is_some() {
            return Some("it is a block device, and was a file".to_owned());
        }
        if self.inode.is_some() && !before.block.is_empty() {
            return Some("it is a file, and was a block device".to_owned());
        }
        if let (Some(now), Some(then)) = (self.inode, before.inode)
            && now != then
        {
            return Some(format!("its inode is {now}, and was {then}"));
        }
        if let (Some(now), Some(then)) = (self.born, before.born)
            && now != then
        {
            return Some("its inode was given to a file that was made later".to_owned());
        }
        let differs = |(key, now): (&String, &String)| {
            let then = before.block.get(key).filter(|then| *then != now)?;
            Some(format!("its {key} is `{now}`, and was `{then}`"))
        };
        self.block.iter().find_map(differs)
    }

    /// Whether it is surely the device of `other`.
    pub fn is(&self, other: &DeviceName) -> bool {
        let known = self.inode.is_some() || !self.block.is_empty();
        known && self == other
    }
}

/// What a device was left with by a server that ended in order: nothing writes to it from then on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeftDevice {
    bytes: u64,
    /// When a file's content and its attributes last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified: Option<(i64, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<(i64, u32)>,
    /// Checksums (CRC-32C) of its first and its last bytes.
    first: u32,
    last: u32,
}

impl LeftDevice {
    /// What a device holds now. Errors: it cannot be read.
    pub fn look(
        io: &mut impl Io,
        file: FileId,
        facts: &DeviceFacts,
    ) -> Result<LeftDevice, IoError> {
        let bytes = io.file_bytes(file);
        let [first, last] = ends(io, file, bytes)?;
        let (modified, changed) = match facts {
            DeviceFacts::File(facts) => (facts.modified.map(pair), facts.changed.map(pair)),
            DeviceFacts::Block { .. } => (None, None),
        };
        Ok(LeftDevice { bytes, modified, changed, first, last })
    }

    /// Why the device was written to since it was left. Errors: it cannot be read.
    pub fn written(
        &self,
        io: &mut impl Io,
        file: FileId,
        facts: &DeviceFacts,
    ) -> Result<Option<String>, IoError> {
        let bytes = io.file_bytes(file);
        let has_grown = bytes > self.bytes;
        if let DeviceFacts::File(facts) = facts
            && !has_grown
        {
            // To grow a file changes its times, and nothing tells that from a write: its ends and
            // the sample must do.
            let later = |now: Option<FileTime>, then: Option<(i64, u32)>| {
                now.map(pair).zip(then).is_some_and(|(now, then)| now != then)
            };
            if later(facts.modified, self.modified) {
                return Ok(Some("its time of modification has changed".to_owned()));
            }
            if later(facts.changed, self.changed) {
                return Ok(Some("its time of change has changed".to_owned()));
            }
        }
        // The end that counts is that of before, also where the device has grown.
        let [first, last] = ends(io, file, self.bytes.min(bytes))?;
        Ok(if first != self.first {
            Some("its first MiB has other content".to_owned())
        } else if last != self.last {
            Some("its last MiB has other content".to_owned())
        } else {
            None
        })
    }
}

/// The bytes at the ends of a device of so many bytes, as far as whole pages can be read.
fn end_ranges(bytes: u64) -> [std::ops::Range<u64>; 2] {
    let end = bytes / ALIGNMENT as u64 * ALIGNMENT as u64;
    [0..end.min(END_BYTES), end.saturating_sub(END_BYTES)..end]
}

/// The checksums of the ends of a device. Errors: they cannot be read.
fn ends(io: &mut impl Io, file: FileId, bytes: u64) -> Result<[u32; 2], IoError> {
    let ranges = end_ranges(bytes);
    let read = ranges.map(|range| (file, range.start, (range.end - range.start) as usize));
    let mut sums = [0; 2];
    for (sum, found) in sums.iter_mut().zip(batch::read(io, read)) {
        *sum = crc32c::crc32c(&found?);
    }
    Ok(sums)
}

fn pair(time: FileTime) -> (i64, u32) {
    (time.s, time.ns)
}

/// What is known of the block device that the system lists in a folder. What cannot be read is not
/// known.
fn block_names(listed: &Path) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut note = |key: &str, path: &str| {
        let text = fs::read(listed.join(path)).ok();
        let text = text.map(|text| String::from_utf8_lossy(&text).trim().to_owned());
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            names.entry(key.to_owned()).or_insert(text);
        }
    };
    // A partition is known by its number, its own id, and the disk that it is a part of.
    let is_partition = listed.join("partition").exists();
    let disk = if is_partition { "../" } else { "" };
    if is_partition {
        note("partition", "partition");
        note("first sector", "start");
    }
    note("WWID", &format!("{disk}wwid"));
    note("WWID", &format!("{disk}device/wwid"));
    note("serial number", &format!("{disk}serial"));
    note("serial number", &format!("{disk}device/serial"));
    note("device-mapper UUID", &format!("{disk}dm/uuid"));
    note("RAID UUID", &format!("{disk}md/uuid"));
    note("file behind the loop", &format!("{disk}loop/backing_file"));
    let event = fs::read_to_string(listed.join("uevent")).unwrap_or_default();
    let id = event.lines().find_map(|line| line.strip_prefix("PARTUUID="));
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        names.insert("partition UUID".to_owned(), id.to_owned());
    }
    names
}

/// Blocks of a volume that are looked at beside those at the ends of its device: at most so many,
/// at least so many, and in between as many as have so many bytes.
const MAX_BLOCKS: u64 = 64;
const MIN_BLOCKS: u64 = 8;
const SAMPLE_BYTES: u64 = 8 << 20;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 << 20;
/// Bytes that a device writes whole or not at all.
const SECTOR: usize = 512;

/// What a look at some clean blocks of a volume has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleOutcome {
    /// Blocks that were looked at.
    pub looked_at: u64,
    /// Blocks of which the backing device has content that no server of the cache wrote.
    pub foreign: u64,
}

/// Looks at some clean blocks of each volume, whose backing devices these are: all at the ends of
/// its device, which file systems change, and some between them, other ones at each start. Blocks
/// that cannot be read prove nothing.
pub fn look(
    io: &mut impl Io,
    open: &OpenSet,
    blocks: &[RecoveredBlock],
    backings: &BTreeMap<VolumeId, FileId>,
) -> BTreeMap<VolumeId, SampleOutcome> {
    let block_bytes = open.set.block_bytes();
    let bytes = backings.iter().map(|(id, file)| (*id, io.file_bytes(*file))).collect();
    let chosen = sample(blocks, block_bytes as u64, &bytes, open.superblock.edition);
    let mut outcomes: BTreeMap<VolumeId, SampleOutcome> = BTreeMap::new();
    for some in chosen.chunks((CHUNK_BYTES / block_bytes).max(1)) {
        let range = |block: &RecoveredBlock| {
            (backings[&block.volume], block.number * block_bytes as u64, block_bytes)
        };
        let read = batch::read(io, some.iter().map(range));
        for (block, found) in some.iter().zip(read) {
            let Ok(found) = found else { continue };
            let differs = data_checksum(block.volume, block.number, &found) != block.checksum;
            let is_foreign = differs && is_foreign(io, open, block, &found);
            let outcome = outcomes.entry(block.volume).or_default();
            outcome.looked_at += 1;
            outcome.foreign += u64::from(is_foreign);
        }
    }
    outcomes
}

/// Whether content of a block cannot be what a trim or zeroes of it have left.
fn is_foreign(io: &mut impl Io, open: &OpenSet, block: &RecoveredBlock, found: &[u8]) -> bool {
    let Some(Some(cached)) = contents(io, &open.set, &[*block]).pop() else {
        return false;
    };
    let explained =
        |(found, cached): (&[u8], &[u8])| found == cached || found.iter().all(|byte| *byte == 0);
    !found.chunks(SECTOR).zip(cached.chunks(SECTOR)).all(explained)
}

/// The clean blocks to be looked at of volumes whose devices have so many bytes. Volumes take
/// turns, so that their devices read side by side.
fn sample(
    blocks: &[RecoveredBlock],
    block_bytes: u64,
    bytes: &BTreeMap<VolumeId, u64>,
    edition: u64,
) -> Vec<RecoveredBlock> {
    let mut between: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let clean = || blocks.iter().filter(|block| !block.dirty);
    for block in clean() {
        if place_of(block, block_bytes, bytes) == Some(BlockPlace::Between) {
            *between.entry(block.volume).or_default() += 1;
        }
    }
    let wanted = (SAMPLE_BYTES / block_bytes).clamp(MIN_BLOCKS, MAX_BLOCKS);
    let mut seen: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let mut ranks: BTreeMap<VolumeId, u64> = BTreeMap::new();
    let mut chosen: Vec<(u64, RecoveredBlock)> = Vec::new();
    for block in clean() {
        match place_of(block, block_bytes, bytes) {
            None => continue,
            Some(BlockPlace::AtEnd) => {}
            Some(BlockPlace::Between) => {
                let step = between[&block.volume].div_ceil(wanted).max(1);
                let seen = seen.entry(block.volume).or_default();
                *seen += 1;
                if (*seen - 1) % step != edition % step {
                    continue;
                }
            }
        }
        let rank = ranks.entry(block.volume).or_default();
        chosen.push((*rank, *block));
        *rank += 1;
    }
    chosen.sort_unstable_by_key(|(rank, block)| (*rank, block.volume));
    chosen.into_iter().map(|(_, block)| block).collect()
}

/// Where on its device a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockPlace {
    AtEnd,
    Between,
}

/// Where a block lies; nothing if it does not lie whole on a device that is known.
fn place_of(
    block: &RecoveredBlock,
    block_bytes: u64,
    bytes: &BTreeMap<VolumeId, u64>,
) -> Option<BlockPlace> {
    let device_bytes = *bytes.get(&block.volume)?;
    let start = block.number.checked_mul(block_bytes)?;
    let end = start.checked_add(block_bytes).filter(|end| *end <= device_bytes)?;
    let meets = |range: &std::ops::Range<u64>| start < range.end && range.start < end;
    let meets_end = end_ranges(device_bytes).iter().any(meets);
    Some(if meets_end { BlockPlace::AtEnd } else { BlockPlace::Between })
}

/// Sets of before that are remembered.
const MAX_REPLACED: usize = 16;

/// Of one volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct VolumeNote {
    /// Its number.
    id: u32,
    /// Its backing device.
    pub device: DeviceName,
    /// What the device was left with; nothing while a server runs, and after one that had no end in
    /// order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftDevice>,
}

/// Of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SetNotes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<VolumeNote>,
    /// Sets that stood on these devices before and had no dirty content, or whose dirty content was
    /// discarded; the newest first. None from the first start on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<String>,
    /// The set was made to go on without whatever other sets have. False from the first start on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    discards: bool,
}

impl SetNotes {
    /// The notes of a superblock. Errors: they are of another version.
    pub fn decode(plan: &LivePlan, bytes: &[u8]) -> Result<SetNotes, LiveError> {
        if bytes.is_empty() {
            return Ok(SetNotes::default());
        }
        serde_json::from_slice(bytes).map_err(|error| {
            plan.refuse(format!(
                "found notes about backing devices in the cache that cannot be read ({error}), \
                 expected those of this version"
            ))
        })
    }

    /// The bytes of a superblock.
    pub fn encode(&self) -> Vec<u8> {
        if *self == SetNotes::default() {
            return Vec::new();
        }
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Those of a set that takes the place of one with these notes and this name, or of none.
    fn succeeding(before: Option<(SetNotes, String)>, discards: bool) -> SetNotes {
        let (known, name) = before.unzip();
        let known = known.unwrap_or_default();
        let mut replaced: Vec<String> = name.into_iter().chain(known.replaced).collect();
        replaced.truncate(MAX_REPLACED);
        SetNotes { volumes: Vec::new(), replaced, discards: discards || known.discards }
    }

    /// Whether the set may go on without what another one has.
    fn succeeds(&self, set: &str) -> bool {
        self.discards || self.replaced.iter().any(|known| known == set)
    }

    /// Whether the set may go on without what any other one has.
    fn discards_all(&self) -> bool {
        self.discards
    }

    /// Whether no server has served the set.
    fn is_fresh(&self) -> bool {
        self.volumes.is_empty()
    }

    /// What is noted of a volume.
    pub fn volume(&self, id: VolumeId) -> Option<&VolumeNote> {
        self.volumes.iter().find(|note| note.id == id.0)
    }

    /// The volume whose backing device this surely is.
    pub fn owner(&self, device: &DeviceName) -> Option<VolumeId> {
        let found = self.volumes.iter().find(|note| device.is(&note.device));
        found.map(|note| VolumeId(note.id))
    }

    /// Notes the backing device of a volume.
    pub fn put(&mut self, id: VolumeId, device: DeviceName, left: Option<LeftDevice>) {
        self.forget(id);
        self.volumes.push(VolumeNote { id: id.0, device, left });
        self.volumes.sort_unstable_by_key(|note| note.id);
    }

    /// Forgets a volume of which the set holds nothing.
    fn forget(&mut self, id: VolumeId) {
        self.volumes.retain(|note| note.id != id.0);
    }

    /// A server serves the set: backing devices change from now on, and what stood before is known
    /// to its server.
    pub fn begin(&mut self) {
        self.volumes.iter_mut().for_each(|note| note.left = None);
        (self.replaced, self.discards) = (Vec::new(), false);
    }
}

/// The version of the file.
const VERSION: u32 = 2;
/// How the file's name ends.
const SUFFIX: &str = "cachewright-state";
/// Where a service manager wants files that stay (source: systemd.exec, `StateDirectory=`).
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Document {
    version: u32,
    volumes: Vec<ServedVolumeSet>,
}

/// The set with which a volume was last served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ServedVolumeSet {
    /// The volume.
    pub name: String,
    /// The set.
    pub set: String,
    /// The set may have content of the volume that nothing else has.
    pub dirty: bool,
}

/// The file, and what it says.
#[derive(Clone, Debug)]
struct ServedSets {
    path: PathBuf,
    volumes: Vec<ServedVolumeSet>,
    /// Why the file cannot be read.
    unreadable: Option<String>,
    /// There is no file.
    missing: bool,
}

impl ServedSets {
    /// What the file of a stack says; nothing if there is none.
    pub fn read(plan: &LivePlan) -> ServedSets {
        ServedSets::open(path(plan.serve.state.as_deref(), plan.origin()))
    }

    fn open(path: PathBuf) -> ServedSets {
        let (mut volumes, mut unreadable, mut missing) = (Vec::new(), None, false);
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice::<Document>(&text) {
                Ok(found) if found.version == VERSION => volumes = found.volumes,
                Ok(found) => {
                    let found = found.version;
                    unreadable = Some(format!("found version {found}, expected {VERSION}"));
                }
                Err(error) => unreadable = Some(format!("found no state of a server: {error}")),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => missing = true,
            Err(error) => unreadable = Some(format!("found {error}, expected a file to read")),
        }
        ServedSets { path, volumes, unreadable, missing }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is no file.
    fn is_missing(&self) -> bool {
        self.missing
    }

    /// Why the file cannot be read, if it is there and cannot.
    pub fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// The set with which a volume was last served.
    fn last_set(&self, name: &str) -> Option<&ServedVolumeSet> {
        self.volumes.iter().find(|volume| volume.name == name)
    }

    /// Some of the volumes, which another set than this one may have dirty content of.
    fn left_elsewhere<'a>(
        &'a self,
        set: &'a str,
        names: impl Iterator<Item = &'a str>,
    ) -> Vec<&'a ServedVolumeSet> {
        let known = names.filter_map(|name| self.last_set(name));
        known.filter(|volume| volume.dirty && volume.set != set).collect()
    }

    /// Volumes are served with a set from now on. Errors: the file cannot be written; then it is as
    /// it was.
    pub fn note(&mut self, served: Vec<ServedVolumeSet>) -> Result<(), LiveError> {
        let mut volumes = self.volumes.clone();
        volumes.retain(|known| served.iter().all(|volume| volume.name != known.name));
        volumes.extend(served);
        self.write(volumes)
    }

    /// A volume is served no more, and its backing device has all of it. Errors: as of
    /// [`ServedSets::note`].
    fn forget(&mut self, name: &str) -> Result<(), LiveError> {
        let mut volumes = self.volumes.clone();
        volumes.retain(|known| known.name != name);
        self.write(volumes)
    }

    fn write(&mut self, volumes: Vec<ServedVolumeSet>) -> Result<(), LiveError> {
        if self.volumes == volumes && self.unreadable.is_none() && !self.missing {
            return Ok(());
        }
        let document = Document { version: VERSION, volumes };
        let failed = |error: io::Error| {
            LiveError::Refused(format!(
                "{}: what the volumes are served with cannot be remembered there: {error}; \
                 expected a folder that the server can write to, or another `serve.state`",
                self.path.display()
            ))
        };
        let text = serde_json::to_string_pretty(&document).map_err(io::Error::from);
        let written = text.and_then(|text| replace(&self.path, &text));
        written.map_err(failed)?;
        (self.volumes, self.unreadable, self.missing) = (document.volumes, None, false);
        Ok(())
    }
}

/// The path of the file of a stack: the one that it names, or one in the service manager's folder,
/// or one beside it.
fn path(named: Option<&Path>, stack: &Path) -> PathBuf {
    if let Some(named) = named {
        return named.to_owned();
    }
    let folders = std::env::var_os(STATE_DIRECTORY).unwrap_or_default();
    unnamed(std::env::split_paths(&folders).next().filter(|path| path.is_absolute()), stack)
}

/// The same for a stack that names none.
fn unnamed(folder: Option<PathBuf>, stack: &Path) -> PathBuf {
    let stem = stack.file_stem().map(OsString::from).unwrap_or_else(|| OsString::from("stack"));
    let mut name = OsString::new();
    if folder.is_none() {
        name.push(".");
    }
    name.push(stem);
    name.push(".");
    name.push(SUFFIX);
    match folder {
        Some(folder) => folder.join(name),
        None => stack.with_file_name(name),
    }
}

/// Writes a file whole: after a loss of power it has the new text or the old one.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut hidden = path.as_os_str().to_owned();
    hidden.push(".new");
    let mut file = File::create(&hidden)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&hidden, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::io::Buffer;
    use cachewright_live::io::sim::{Sim, SimFile};
    use cachewright_live::log::Place;
    use cachewright_live::log::format::Version;
    use cachewright_types::Seed;

    fn listed(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("sda/sda1");
        for (name, text) in files {
            let path = own.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(&own).unwrap();
        block_names(&own)
    }

    fn block(files: &[(&str, &str)]) -> DeviceName {
        DeviceName { block: listed(files), ..DeviceName::default() }
    }

    #[test]
    fn a_partition_is_known_by_its_disk_too() {
        let own =
            [("partition", "1\n"), ("uevent", "MAJOR=8\nPARTUUID=4f-01\n"), ("start", "2048")];
        let on_disk = |serial| [&own[..], &[("../device/serial", serial)]].concat();
        let first = block(&on_disk("S1\n"));
        assert_eq!(first.block["partition UUID"], "4f-01");
        assert_eq!(first.block["serial number"], "S1");
        let other = block(&on_disk("S2"));
        let why = other.differs_from(&first).unwrap();
        assert_eq!(why, "its serial number is `S2`, and was `S1`");
        assert!(first.is(&first.clone()) && !first.is(&other));
        assert_eq!(block(&own).differs_from(&first), None, "less is known, and nothing differs");
        assert_eq!(block(&[]), DeviceName::default());
        assert!(!block(&[]).is(&block(&[])), "nothing is known of either");
    }

    #[test]
    fn a_write_at_either_end_or_a_time_tells_that_a_device_was_written_to() {
        let mut sim = Sim::new(Seed(1));
        let file = sim.add_file(SimFile::new(8 << 20));
        let time = |s| Some(FileTime { s, ns: 5 });
        let facts = |s| {
            let (modified, changed) = (time(s), time(s));
            DeviceFacts::File(FileFacts { inode: Some(3), born: None, modified, changed })
        };
        let left = LeftDevice::look(&mut sim, file, &facts(7)).unwrap();
        assert_eq!(left.written(&mut sim, file, &facts(7)), Ok(None));
        let text = serde_json::to_string(&left).unwrap();
        assert_eq!(serde_json::from_str::<LeftDevice>(&text).unwrap(), left);
        let why = |found: Result<Option<String>, IoError>| found.unwrap().unwrap();
        assert!(why(left.written(&mut sim, file, &facts(8))).contains("modification"));
        let unknown = DeviceFacts::File(FileFacts::default());
        assert_eq!(left.written(&mut sim, file, &unknown), Ok(None), "times are not known");
        for (offset, expected) in [(4 << 20, None), (0, Some("first MiB")), (7 << 20, Some("last"))]
        {
            let mut page = Buffer::zeroed(4096);
            page[17] = 1;
            batch::write(&mut sim, [(file, offset, page)]).unwrap();
            let found = left.written(&mut sim, file, &facts(7)).unwrap();
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(expected.is_none_or(|part| found.unwrap().contains(part)));
            batch::write(&mut sim, [(file, offset, Buffer::zeroed(4096))]).unwrap();
        }
    }

    #[test]
    fn the_ends_of_a_device_are_whole_pages() {
        let mib = 1 << 20;
        assert_eq!(end_ranges(8 * mib), [0..mib, 7 * mib..8 * mib]);
        assert_eq!(end_ranges(8 * mib + 512), [0..mib, 7 * mib..8 * mib]);
        assert_eq!(end_ranges(8192), [0..8192, 0..8192]);
        assert_eq!(end_ranges(512), [0..0, 0..0]);
    }

    fn clean_block(volume: u32, number: u64) -> RecoveredBlock {
        let (volume, version, place) = (VolumeId(volume), Version(0), Place(0));
        RecoveredBlock { volume, number, version, place, checksum: 0, dirty: false, damaged: false }
    }

    #[test]
    fn all_blocks_at_the_ends_are_looked_at_and_others_in_turn() {
        let known = |bytes| BTreeMap::from([(VolumeId(1), bytes)]);
        let mut all: Vec<RecoveredBlock> = (0..4096).map(|number| clean_block(1, number)).collect();
        let bytes = known(4096 * 4096);
        let numbers = |edition: u64| -> Vec<u64> {
            sample(&all, 4096, &bytes, edition).iter().map(|block| block.number).collect()
        };
        let found = numbers(0);
        assert_eq!(found.len(), 256 + 256 + 64);
        assert!((0..256).chain(3840..4096).all(|number| found.contains(&number)));
        let mut seen: Vec<u64> = (0..56).flat_map(numbers).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 4096, "each block comes to its turn");
        assert_eq!(sample(&all, 4096, &known(4096 * 10), 0).len(), 10, "none behind the end");
        assert_eq!(sample(&all, 4096, &BTreeMap::new(), 0), [], "its device is not known");
        all.iter_mut().for_each(|block| block.dirty = true);
        assert_eq!(sample(&all, 4096, &bytes, 0), []);
    }

    #[test]
    fn volumes_take_turns() {
        let all = [clean_block(1, 0), clean_block(1, 1), clean_block(2, 5), clean_block(2, 6)];
        let bytes = [1, 2].map(|id| (VolumeId(id), 8 << 20)).into();
        let turns: Vec<u32> =
            sample(&all, 4096, &bytes, 7).iter().map(|block| block.volume.0).collect();
        assert_eq!(turns, [1, 2, 1, 2]);
    }

    #[test]
    fn a_set_succeeds_those_that_stood_on_its_devices_until_it_is_served() {
        let first = SetNotes::succeeding(None, false);
        assert!(!first.succeeds("1") && first.encode().is_empty());
        let second = SetNotes::succeeding(Some((first, "1".to_owned())), false);
        let mut third = SetNotes::succeeding(Some((second, "2".to_owned())), false);
        assert!(third.succeeds("1") && third.succeeds("2") && !third.succeeds("3"));
        third.begin();
        assert!(!third.succeeds("1"));
        let mut any = SetNotes::succeeding(Some((third, "3".to_owned())), true);
        assert!(any.succeeds("9"));
        any.begin();
        assert!(!any.succeeds("9") && any.is_fresh());
    }

    fn volume(name: &str, set: &str, dirty: bool) -> ServedVolumeSet {
        ServedVolumeSet { name: name.to_owned(), set: set.to_owned(), dirty }
    }

    #[test]
    fn the_file_lies_beside_the_stack_or_in_the_folder_of_the_service_manager() {
        let stack = Path::new("/etc/cachewright/main.toml");
        let beside = Path::new("/etc/cachewright/.main.cachewright-state");
        assert_eq!(unnamed(None, stack), beside);
        let folder = Some(PathBuf::from("/var/lib/cachewright"));
        assert_eq!(
            unnamed(folder, stack),
            Path::new("/var/lib/cachewright/main.cachewright-state")
        );
        assert_eq!(unnamed(None, Path::new("stack")), Path::new(".stack.cachewright-state"));
        assert_eq!(path(Some(Path::new("/a/b")), stack), Path::new("/a/b"));
    }

    #[test]
    fn what_was_noted_is_found_again_by_volume() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut sets = ServedSets::open(path.clone());
        assert!(sets.unreadable().is_none() && sets.last_set("a").is_none());
        sets.note(vec![volume("a", "1", true), volume("b", "1", false)]).unwrap();
        sets.note(vec![volume("b", "2", true)]).unwrap();
        let found = ServedSets::open(path.clone());
        assert_eq!(
            found.left_elsewhere("2", ["a", "b", "c"].into_iter()),
            [&volume("a", "1", true)]
        );
        sets.forget("a").unwrap();
        assert_eq!(ServedSets::open(path.clone()).volumes, [volume("b", "2", true)]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left there");
        for (text, expected) in [("{", "no state"), ("{\"version\":9,\"volumes\":[]}", "version 9")]
        {
            fs::write(&path, text).unwrap();
            let mut damaged = ServedSets::open(path.clone());
            assert!(damaged.unreadable().unwrap().contains(expected));
            damaged.note(Vec::new()).unwrap();
            assert!(ServedSets::open(path.clone()).unreadable().is_none(), "it is written anew");
        }
        let mut nowhere = ServedSets::open(folder.path().join("missing/state"));
        let error = nowhere.note(vec![volume("a", "1", true)]).unwrap_err();
        assert!(error.to_string().contains("`serve.state`"), "{error}");
        assert!(nowhere.last_set("a").is_none(), "it is as it was");
    }
}
