//! Writing back: the volumes' devices get all that only the cache has.
//!
//! For: a cache that is to be taken away, or formatted anew. Must never know: policies. Units:
//! bytes, blocks. Content goes out in the order of volumes and blocks. When all of it is durable,
//! one record per run of blocks tells the log: it may have little space. A tool that is cut short
//! can be run again.

use super::notes::NoteLog;
use crate::devices::{Devices, set_error};
use crate::error::LiveError;
use crate::holding::Holding;
use crate::identity::{Purpose, examine};
use crate::plan::LivePlan;
use crate::volumes::{check_served, matched, name_of};
use cachewright_live::blocks::ServedVolume;
use cachewright_live::io::open::FileAccess;
use cachewright_live::log::format::{LogRecordKind, Volume, VolumeId};
use cachewright_live::log::{BackingFile, RecoveredBlock, WrittenBack, read_log, write_back};
use cachewright_result::live::{ChangedVolume, LiveChangeAnswer};
use cachewright_result::written::Written;
use std::collections::BTreeMap;

/// Why nothing is written back.
const LOST: &str = "found a cache that has lost content which was durable, so that backing devices \
                    could get older content; expected `cachewright live repair` before";

/// Writes all dirty blocks of a plan's devices back. Errors: content is gone that was durable, a
/// volume with dirty blocks has no
/// tenant, or has another size; a device fails.
pub fn writeback(plan: &LivePlan) -> Result<LiveChangeAnswer, LiveError> {
    let mut devices = Devices::open(plan, FileAccess::Write)?;
    let mut open = devices.any_set(plan)?;
    let (served, table) = matched(plan, &devices, &open.superblock)?;
    let paths = devices.paths(plan, &open.set);
    let failed = |error| set_error(plan, &paths, &error);
    // Devices that take no write give up what they hold, and no other server writes to them either.
    Holding::begin(plan, &mut devices.io, &open).ok();
    let found = read_log(&mut devices.io, &open).map_err(failed)?;
    if open.superblock.has_lost || found.has_lost() {
        return Err(LiveError::Refused(LOST.to_owned()));
    }
    let bytes = open.set.block_bytes() as u64;
    check_served(plan, (&served, &table), (&found.blocks, bytes))?;
    let examined = examine(plan, &mut devices, &open, &served, &found, Purpose::WriteBack)?;
    // Where nothing is dirty, a device may still have writes that no server has synced.
    devices.sync_backings(plan)?;
    let dropped = examined.dropped().to_vec();
    // A smaller device is accepted from now on; one that has grown is served so by the next start,
    // which gives up its last block before.
    let mut sizes = open.superblock.volumes.clone();
    for volume in &mut sizes {
        let now = table.iter().find(|now| now.id == volume.id);
        volume.bytes = now.map_or(volume.bytes, |now| now.bytes.min(volume.bytes));
    }
    let (identities, found, _) =
        examined.begin(plan, &mut devices.io, &mut open, &sizes, found, &paths)?;
    // Volumes that were written to past the cache have newer content.
    let passed = open.superblock.bypassed.as_ref().map(|bypassed| &bypassed.passed);
    let counts = |block: &&RecoveredBlock| {
        block.dirty && !passed.is_some_and(|passed| passed.contains(&block.volume))
    };
    let dirty: Vec<RecoveredBlock> = found.blocks.iter().filter(counts).copied().collect();
    let mut changes = VolumeChanges::default();
    for gone in dropped.iter().filter(|gone| gone.clean_bytes + gone.dirty_bytes > 0) {
        changes.volume(gone.volume).dropped_bytes += gone.clean_bytes + gone.dirty_bytes;
    }
    for block in &dirty {
        changes.volume(block.volume).written_back_bytes += bytes;
    }
    let known = &open.superblock.volumes;
    let written = write_back(&mut devices.io, &open.set, dirty, |id| backing(&served, known, id));
    let WrittenBack { runs, damaged } =
        written.map_err(|error| LiveError::Failed(format!("backing devices: {error}")))?;
    for block in &damaged {
        let change = changes.volume(block.volume);
        change.written_back_bytes -= bytes;
        change.damaged_bytes += bytes;
    }
    // Only now the cache's devices are written: those that can be read only have given what they
    // hold.
    let found = found.settle(&mut devices.io).map_err(|error| {
        let error = failed(error);
        LiveError::Failed(format!(
            "all that can be read is on the backing devices, which the cache's devices could not \
             be told: {error}; expected `cachewright live format --discard-dirty` before they are \
             served again"
        ))
    })?;
    if !runs.is_empty() {
        let notes = NoteLog::new(&open.set, &found);
        notes.note(&mut devices.io, &runs, |blocks| LogRecordKind::Cleaned { blocks })?;
    }
    // Nothing in a log that was bypassed counts for volumes that were served past it.
    if open.superblock.bypassed.is_none() {
        let damaged: Vec<VolumeId> = damaged.iter().map(|block| block.volume).collect();
        identities.end_tool(plan, &mut devices.io, &mut open, &served, &damaged, &paths)?;
    }
    let name = |id| name_of(&table, id);
    Ok(changes.answer(open.set.id().name(), name, 0, false))
}

/// Where a volume lies. One that has grown since the cache was used ends where it did then: behind
/// that the cache has nothing of it.
fn backing(served: &[ServedVolume], known: &[Volume], id: VolumeId) -> Option<BackingFile> {
    let ServedVolume { backing, bytes, .. } = *served.iter().find(|volume| volume.id == id)?;
    let before = known.iter().find(|volume| volume.id == id);
    Some(BackingFile { file: backing, bytes: before.map_or(bytes, |before| before.bytes) })
}

/// What becomes of volumes, by number.
#[derive(Default)]
pub struct VolumeChanges(BTreeMap<VolumeId, ChangedVolume>);

impl VolumeChanges {
    /// What becomes of a volume.
    pub fn volume(&mut self, id: VolumeId) -> &mut ChangedVolume {
        self.0.entry(id).or_insert(ChangedVolume {
            name: String::new(),
            written_back_bytes: 0,
            dropped_bytes: 0,
            damaged_bytes: 0,
        })
    }

    /// The answer of a tool on a set, with the names of volumes.
    pub fn answer(
        self,
        set: String,
        name: impl Fn(VolumeId) -> String,
        rewritten: u64,
        accepted_loss: bool,
    ) -> LiveChangeAnswer {
        let named = |(id, change)| ChangedVolume { name: name(id), ..change };
        let volumes: Vec<ChangedVolume> = self.0.into_iter().map(named).collect();
        let sound = volumes.iter().all(|volume| volume.damaged_bytes == 0);
        let written = Written::here();
        LiveChangeAnswer { written, set, sound, volumes, rewritten, accepted_loss }
    }
}
