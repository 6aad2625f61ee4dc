//! What the log's cleaner is told of blocks.
//!
//! For: the standing of content that lies in a segment which is cleaned. Must never know: how
//! segments are chosen. Units: blocks, decisions.

use super::content::StrandedBlocks;
use super::decisions::Decisions;
use super::stored_blocks::{StoredBlock, StoredBlocks};
use super::streams::Streams;
use super::volumes::Volumes;
use crate::log::format::{Version, VolumeId};
use crate::log::{Appended, CleaningLoss, ContentStanding, Log, Owner, Place};
use cachewright_types::TenantId;
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use std::ops::Range;

/// A block whose clean content is not moved, and why.
pub struct ForgottenBlock {
    pub tenant: TenantId,
    pub number: u64,
    pub loss: CleaningLoss,
}

/// What the cleaner asks about.
pub struct ContentOwner<'a> {
    pub decisions: &'a Decisions,
    pub volumes: &'a Volumes,
    pub streams: &'a mut Streams,
    pub stored_blocks: &'a mut StoredBlocks,
    pub stranded: &'a mut StrandedBlocks,
    pub leaving: &'a HashSet<Place, FixedState>,
    pub forgotten: Vec<ForgottenBlock>,
}

impl Owner for ContentOwner<'_> {
    fn standing(&self, volume: VolumeId, number: u64, place: Place) -> ContentStanding {
        let Some(tenant) = self.volumes.tenant(volume) else { return ContentStanding::Dead };
        let here = |id| self.stored_blocks.get(id).filter(|stored| stored.place == place);
        if let Some(resident) = self.decisions.resident(tenant, number)
            && let Some(stored) = here(resident)
        {
            return match stored.dirty {
                _ if self.decisions.is_changing(resident) => ContentStanding::Changing,
                true => ContentStanding::Dirty,
                false => ContentStanding::Clean,
            };
        }
        let placement = &self.decisions.steps.state().placement;
        let mut departing = placement.departing(tenant, number..number + 1);
        if let Some(found) = self.stranded.get(&(volume, number))
            && found.place == place
        {
            // A copy would be newer than what is on its way to the log.
            let newer = self.decisions.resident(tenant, number).is_some();
            return match found.dirty {
                _ if newer || departing.next().is_some() => ContentStanding::Changing,
                true => ContentStanding::Dirty,
                false => ContentStanding::Clean,
            };
        }
        let still_read = departing.any(|resident| here(resident).is_some());
        if still_read || self.leaving.contains(&place) {
            ContentStanding::Changing
        } else {
            ContentStanding::Dead
        }
    }

    fn moved(&mut self, volume: VolumeId, number: u64, from: Place, to: &Appended) {
        let Some(tenant) = self.volumes.tenant(volume) else { return };
        let version = Version::last(self.last_decision());
        self.stored_blocks.note_copy(from, to);
        if let Some(resident) = self.decisions.resident(tenant, number)
            && self.stored_blocks.get(resident).is_some_and(|stored| stored.place == from)
        {
            self.stored_blocks.moved(resident, to, version);
        } else if let Some(found) = self.stranded.get_mut(&(volume, number)) {
            (found.place, found.version) = (to.place, version);
        }
    }

    fn may_return(&self, volume: VolumeId, blocks: Range<u64>) -> bool {
        let Some(tenant) = self.volumes.tenant(volume) else { return false };
        let placement = &self.decisions.steps.state().placement;
        placement.departing(tenant, blocks).next().is_some()
    }

    fn stream(&mut self, log: &Log, volume: VolumeId, number: u64, from: Place) -> usize {
        let tenant = self.volumes.tenant(volume);
        let resident = tenant.and_then(|tenant| self.decisions.resident(tenant, number));
        let lies_there =
            |id: &_| self.stored_blocks.get(*id).is_some_and(|stored| stored.place == from);
        self.streams.of_moved(log, resident.filter(lies_there), from)
    }

    /// A block that was not read since it was stored or moved has won nothing by its stay: it is
    /// fetched again if it is wanted. Content that only the log has is never cold.
    fn is_cold(&self, volume: VolumeId, number: u64, place: Place) -> bool {
        let Some(tenant) = self.volumes.tenant(volume) else { return false };
        let resident = self.decisions.resident(tenant, number);
        let stored = resident.and_then(|resident| self.stored_blocks.get(resident));
        let unread =
            |stored: StoredBlock| stored.place == place && !stored.dirty && !stored.was_read;
        self.streams.drops_cold
            && stored.is_some_and(unread)
            && !self.decisions.is_dirty(tenant, number)
    }

    fn forget(&mut self, volume: VolumeId, number: u64, loss: CleaningLoss) {
        let tenant = self.volumes.tenant(volume);
        self.forgotten.extend(tenant.map(|tenant| ForgottenBlock { tenant, number, loss }));
    }

    fn last_decision(&self) -> u64 {
        self.decisions.in_log(self.decisions.made())
    }
}
