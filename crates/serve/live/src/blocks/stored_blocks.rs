//! Where the content of each resident lies in the log.
//!
//! For: reads, merges and the cleaner. Must never know: volumes, devices. Units: pages, numbers of
//! groups.

use crate::log::format::Version;
use crate::log::{Appended, Place, RecoveredBlock};
use cachewright_steps::ResidentId;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Which content of a block it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentOrigin {
    /// The group that brought it into the log; 0 for content from the backing device.
    pub group: u64,
    /// Its version in the log.
    pub version: Version,
}

/// Where a resident's content lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBlock {
    /// The place of its content.
    pub place: Place,
    /// The checksum of its content.
    pub checksum: u32,
    /// The log says that the backing device has older content.
    pub dirty: bool,
    /// The version of its content: the cleaner copies content and keeps it.
    pub version: Version,
    /// The version of the newest record of it.
    pub recorded: Version,
    /// The group that brought the content into the log.
    pub group: u64,
    /// A request has read it since it was stored or moved.
    pub was_read: bool,
}

impl StoredBlock {
    /// Which content it is.
    pub fn origin(&self) -> ContentOrigin {
        ContentOrigin { group: self.group, version: self.version }
    }

    /// One that recovery found; `dirty` if the server keeps it so.
    pub fn found(block: &RecoveredBlock, dirty: bool) -> StoredBlock {
        let RecoveredBlock { place, checksum, version, .. } = *block;
        let (recorded, group, was_read) = (version, 0, false);
        StoredBlock { place, checksum, dirty, version, recorded, group, was_read }
    }
}

/// The places of all residents.
#[derive(Clone, Debug, Default)]
pub struct StoredBlocks {
    all: Vec<Option<StoredBlock>>,
    /// Copies that the cleaner has made, and that are not durable, by their places: the group of
    /// each, and where its content was copied from.
    copied: HashMap<Place, (u64, Place), FixedState>,
    /// Residents with content.
    stored: u64,
}

impl StoredBlocks {
    /// Reserves memory for so many residents.
    pub fn reserve(&mut self, residents: usize) {
        self.all.reserve(residents);
    }

    /// Where a resident's content lies; nothing before it is appended.
    pub fn get(&self, id: ResidentId) -> Option<StoredBlock> {
        self.all.get(id.index()).copied().flatten()
    }

    /// A resident's content was appended, or found; returns where older content lies.
    pub fn put(&mut self, id: ResidentId, to: StoredBlock) -> Option<StoredBlock> {
        if self.all.len() <= id.index() {
            self.all.resize(id.index() + 1, None);
        }
        let older = self.all[id.index()].replace(to);
        self.stored += u64::from(older.is_none());
        older
    }

    /// Residents whose content lies in the log.
    pub fn stored(&self) -> u64 {
        self.stored
    }

    /// A request reads a resident's content.
    pub fn note_read(&mut self, id: ResidentId) {
        if let Some(Some(stored)) = self.all.get_mut(id.index()) {
            stored.was_read = true;
        }
    }

    /// All of them, by resident.
    pub fn iter(&self) -> impl Iterator<Item = (ResidentId, StoredBlock)> + '_ {
        let all = self.all.iter().enumerate();
        all.filter_map(|(index, stored)| Some((ResidentId::new(index), (*stored)?)))
    }

    /// The cleaner has copied content, which is there twice until the copy is durable.
    pub fn note_copy(&mut self, from: Place, to: &Appended) {
        self.copied.insert(to.place, (to.group, from));
    }

    /// All groups up to `durable` are durable.
    pub fn settle(&mut self, durable: u64) {
        self.copied.retain(|_, (group, _)| *group > durable);
    }

    /// Where content stands besides, while its copy is not durable.
    pub fn copied_from(&self, place: Place) -> Option<Place> {
        self.copied.get(&place).map(|(_, from)| *from)
    }

    /// The cleaner has copied a resident's content, with a record of version `recorded`.
    pub fn moved(&mut self, id: ResidentId, to: &Appended, recorded: Version) {
        if let Some(Some(stored)) = self.all.get_mut(id.index()) {
            (stored.place, stored.recorded) = (to.place, recorded);
            stored.was_read = false;
        }
    }

    /// The backing device has a resident's content.
    pub fn set_clean(&mut self, id: ResidentId) {
        if let Some(Some(stored)) = self.all.get_mut(id.index()) {
            stored.dirty = false;
        }
    }

    /// A resident has ended; returns where its content lies.
    pub fn take(&mut self, id: ResidentId) -> Option<StoredBlock> {
        let taken = self.all.get_mut(id.index())?.take();
        self.stored -= u64::from(taken.is_some());
        taken
    }
}
