//! A start at which a volume has grown whose last block was only a part of one.
//!
//! For: what lies behind the old end, which the backing device says. Must never know: why a volume
//! has grown. Units: bytes, blocks. In the cache that block has zeroes behind the old end: it is
//! dropped, and what only the cache had of it goes to the backing device up to the old end.

use super::restore::{RestoreError, Restored};
use super::server::State;
use crate::io::Io;
use crate::log::format::Volume;
use crate::log::{BackingFile, RecoveredBlock};

impl State {
    /// Drops the last blocks of volumes that have grown since the table of volumes was `known`;
    /// dirty ones are written back before. Nothing may be under way, and the table must not say the
    /// new sizes before the log is durable. Errors: a device's; such a block cannot be written
    /// back.
    pub(super) fn drop_grown(
        &mut self,
        io: &mut impl Io,
        blocks: &mut Vec<RecoveredBlock>,
        known: &[Volume],
        restored: &mut Restored,
    ) -> Result<(), RestoreError> {
        let block_bytes = 1 << self.block_shift;
        let has_grown = |known: &&Volume| {
            let tenant = self.volumes.tenant(known.id);
            let is_longer = tenant.is_some_and(|tenant| self.volumes.bytes(tenant) > known.bytes);
            is_longer && !known.bytes.is_multiple_of(block_bytes)
        };
        let grown: Vec<&Volume> = known.iter().filter(has_grown).collect();
        let before = |block: &RecoveredBlock| {
            let last = |known: &&&Volume| {
                (known.id, known.bytes / block_bytes) == (block.volume, block.number)
            };
            grown.iter().find(last).map(|known| known.bytes)
        };
        let dropped: Vec<_> = blocks.extract_if(.., |block| before(block).is_some()).collect();
        let dirty: Vec<_> = dropped.iter().filter(|block| block.dirty).copied().collect();
        restored.written_back += dirty.len() as u64;
        let backing = |id| {
            let bytes = grown.iter().find(|known| known.id == id)?.bytes;
            let file = self.volumes.backing(self.volumes.tenant(id)?).file();
            Some(BackingFile { file, bytes })
        };
        let written = crate::log::write_back(io, self.content.log.set(), dirty, backing);
        if let Some(block) = written.map_err(RestoreError::Io)?.damaged.first() {
            let bytes = before(block).unwrap_or_default();
            return Err(RestoreError::Grown { volume: block.volume.0, bytes });
        }
        let version = self.last_version();
        for RecoveredBlock { volume, number, place, .. } in dropped {
            self.content.log.note_dead(place);
            restored.dropped += 1;
            let tenant = self.tenant_of(volume);
            self.content.note_gone(tenant, volume, number..number + 1, version);
        }
        Ok(())
    }
}
