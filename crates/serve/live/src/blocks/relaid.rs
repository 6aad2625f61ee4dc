//! A start under another layout than before: content lies on devices that are not its tenant's.
//!
//! For: pools of devices that hold nothing of other tenants. Must never know: how a layout decides.
//! Units: blocks. The cache begins empty then, as a pool may have no free segment for what would
//! have to move. Dirty blocks are written back before. Damaged dirty blocks stay where they are.

use super::put_back::BlockSet;
use super::restore::{RestoreError, Restored};
use super::server::State;
use crate::io::Io;
use crate::log::format::VolumeId;
use crate::log::{BlockRun, RecoveredBlock};
use std::collections::BTreeMap;

impl State {
    /// Drops all blocks if one lies on devices that are not its tenant's; dirty ones are written
    /// back before. Nothing may be under way. Errors: a device's.
    pub(super) fn drop_laid_elsewhere(
        &mut self,
        io: &mut impl Io,
        blocks: &mut Vec<RecoveredBlock>,
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        if !blocks.iter().any(|block| self.lies_elsewhere(block)) {
            return Ok(());
        }
        let dirty = blocks.iter().filter(|block| block.dirty).copied().collect();
        let (_, damaged) = self.write_back_found(io, dirty)?;
        restored.damaged += damaged.len() as u64;
        let written_back = blocks.iter().filter(|block| block.dirty).count() - damaged.len();
        restored.written_back += written_back as u64;
        let mut runs: BTreeMap<VolumeId, Vec<u64>> = BTreeMap::new();
        for block in blocks.drain(..).filter(|block| !is_named(&damaged, block)) {
            self.content.log.note_dead(block.place);
            restored.dropped += 1;
            runs.entry(block.volume).or_default().push(block.number);
        }
        let version = self.last_version();
        for (volume, numbers) in runs {
            for (volume, run) in self.between_stranded(volume, numbers) {
                let tenant = self.tenant_of(volume);
                self.content.note_gone(tenant, volume, run, version);
            }
        }
        Ok(())
    }

    fn lies_elsewhere(&self, block: &RecoveredBlock) -> bool {
        let Some(tenant) = self.volumes.tenant(block.volume) else { return false };
        let set = self.content.log.set();
        set.pool(set.locate(block.place).0) != self.content.streams.pool(tenant)
    }

    /// Runs that have all of these blocks and none whose content stays in the log.
    fn between_stranded(&self, volume: VolumeId, mut numbers: Vec<u64>) -> Vec<BlockRun> {
        numbers.sort_unstable();
        let mut runs: Vec<BlockRun> = Vec::new();
        for number in numbers {
            let stays = |from| {
                let mut between = self.content.stranded.range((volume, from)..(volume, number));
                between.next().is_some()
            };
            match runs.last_mut() {
                Some((_, run)) if !stays(run.end) => run.end = number + 1,
                _ => runs.push((volume, number..number + 1)),
            }
        }
        runs
    }
}

fn is_named(names: &BlockSet, block: &RecoveredBlock) -> bool {
    names.contains(&(block.volume, block.number))
}
