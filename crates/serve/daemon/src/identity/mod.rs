//! Whether the backing devices and the cache are those of before.
//!
//! For: starts, reloads, ends and write-backs, which begin only on devices that fit the blocks that
//! the cache holds. Must never know: how blocks are served. Units: bytes, blocks.
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
//!   sample of clean blocks are compared then (`sample` says why that accuses none wrongly).
//!
//! A device of another name is another one: it is refused unless the operator accepts it and none
//! of its blocks is dirty. A device that was written to loses its clean blocks; while some are
//! dirty it is refused, unless the operator accepts it. A volume of which the cache holds nothing
//! may have any device.

mod device;
mod notes;
mod sample;
mod served_sets;

use crate::devices::{Devices, set_error};
use crate::error::LiveError;
use crate::offline::NoteLog;
use crate::plan::LivePlan;
use crate::volumes::name_of;
use cachewright_live::blocks::{BlockServer, ServedVolume};
use cachewright_live::io::Io;
use cachewright_live::io::aside::Aside;
use cachewright_live::io::delayed::Delayed;
use cachewright_live::io::open::DeviceFacts;
use cachewright_live::io::system::SystemIo;
use cachewright_live::log::format::{LogRecordKind, SetId, Volume, VolumeId};
use cachewright_live::log::{
    BlockRun, FoundLog, OpenSet, RecoveredBlock, read_log, rewrite, rewrite_both,
};
use cachewright_types::{Bytes, TenantId};
use device::{DeviceName, LeftDevice};
use notes::SetNotes;
use served_sets::{ServedSets, ServedVolumeSet};
use std::collections::BTreeMap;
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
        let outcomes = sample::look(&mut devices.io, open, &found.blocks, &doubtful);
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
