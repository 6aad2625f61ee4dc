//! Writing back: the volumes' devices get all that only the cache has.
//!
//! For: a cache that is to be taken away, or formatted anew. Must never know: policies. Units:
//! bytes, blocks. Content goes out oldest first, in pieces, each made durable before the next; then
//! the log is told. A tool that is cut short can be run again.

use super::format::set_name;
use super::notes::NoteLog;
use super::tally::{chunk_blocks, contents};
use crate::devices::{Devices, device_error};
use crate::error::LiveError;
use crate::plan::LivePlan;
use crate::volumes::{check_served, matched, name_of};
use cachewright_live::blocks::ServedVolume;
use cachewright_live::io::open::Access;
use cachewright_live::io::{Buffer, FileId, batch};
use cachewright_live::log::format::{Kind, VolumeId};
use cachewright_live::log::{RecoveredBlock, read_log};
use cachewright_result::live::{ChangedVolume, LiveChangeAnswer};
use cachewright_result::written::Written;
use std::collections::BTreeMap;

/// Writes all dirty blocks of a plan's devices back. Errors: a volume with dirty blocks has no
/// tenant, or has another size; a device fails.
pub fn writeback(plan: &LivePlan) -> Result<LiveChangeAnswer, LiveError> {
    let mut devices = Devices::open(plan, Access::Write)?;
    let open = devices.any_set(plan)?;
    let (served, table) = matched(plan, &devices, &open.superblock)?;
    let failed = |error| device_error(plan, &error);
    let found = read_log(&mut devices.io, &open).map_err(failed)?;
    check_served(plan, (&served, &table), &found.blocks)?;
    let found = found.settle(&mut devices.io).map_err(failed)?;
    let mut log = NoteLog::new(plan, &open.set, &found);
    let dirty: Vec<RecoveredBlock> =
        found.blocks.iter().filter(|block| block.dirty).copied().collect();
    let mut changes = Changes::default();
    let bytes = open.set.block_bytes() as u64;
    for some in dirty.chunks(chunk_blocks(&open.set)) {
        let data = contents(&mut devices.io, &open.set, some);
        let (mut pieces, mut clean) = (Vec::new(), Vec::new());
        for (block, data) in some.iter().zip(data) {
            let Some((data, file)) = data.zip(backing(&served, block.volume)) else {
                changes.volume(block.volume).damaged_bytes += bytes;
                continue;
            };
            changes.volume(block.volume).written_back_bytes += bytes;
            pieces.push((file, block.number.saturating_mul(bytes), data));
            clean.push(*block);
        }
        let pieces: Vec<(FileId, u64, Buffer)> = pieces;
        batch::write(&mut devices.io, pieces)
            .map_err(|error| LiveError::Failed(format!("backing devices: {error}")))?;
        log.note(&mut devices.io, &clean, Kind::Cleaned { blocks: 1 })?;
    }
    log.close(&mut devices.io)?;
    let name = |id| name_of(&table, id);
    Ok(changes.answer(set_name(open.set.id()), name, 0))
}

fn backing(served: &[ServedVolume], id: VolumeId) -> Option<FileId> {
    served.iter().find(|volume| volume.id == id).map(|volume| volume.backing)
}

/// What becomes of volumes, by number.
#[derive(Default)]
pub struct Changes(BTreeMap<VolumeId, ChangedVolume>);

impl Changes {
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
    ) -> LiveChangeAnswer {
        let named = |(id, change)| ChangedVolume { name: name(id), ..change };
        let volumes: Vec<ChangedVolume> = self.0.into_iter().map(named).collect();
        let sound = volumes.iter().all(|volume| volume.damaged_bytes == 0);
        LiveChangeAnswer { written: Written::here(), set, sound, volumes, rewritten }
    }
}
