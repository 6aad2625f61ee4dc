//! Entries of the mapping table that are in memory.
//!
//! For: hit, miss and eviction, least recently used first, in one memory or one per tenant. Must
//! never know: flash, time. Units: entries. A changed entry that must leave takes all changed
//! entries of its page of the table with it, which one program then makes durable. Source: DFTL
//! (ASPLOS'09), batched as in its section 3.3.

use hashbrown::HashMap;

const NIL: u32 = u32::MAX;

type Map<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// A page of the mapping table: group of channels, page.
pub type TablePage = (u16, u32);

#[derive(Clone, Copy, Debug)]
struct MapEntry {
    page: u32,
    share: u32,
    newer: u32,
    older: u32,
    table: TablePage,
    /// Links of the changed entries of one page of the table.
    changed_before: u32,
    changed_behind: u32,
    changed: bool,
}

#[derive(Clone, Copy, Debug)]
struct MapShare {
    newest: u32,
    oldest: u32,
    len: u32,
}

/// The memory for entries.
#[derive(Clone, Debug)]
pub struct MapMemory {
    slots: Vec<MapEntry>,
    free: Vec<u32>,
    index: Map<u64>,
    shares: Vec<MapShare>,
    /// Entries of each share.
    capacity: u32,
    /// The first changed entry of each page of the table.
    changed: Map<TablePage>,
}

impl MapMemory {
    /// Room for so many entries in all, split equally among `shares`.
    pub fn new(entries: u32, shares: u32) -> MapMemory {
        let shares = shares.max(1);
        let share = MapShare { newest: NIL, oldest: NIL, len: 0 };
        MapMemory {
            slots: Vec::new(),
            free: Vec::new(),
            index: Map::default(),
            shares: vec![share; shares as usize],
            capacity: (entries / shares).max(1),
            changed: Map::default(),
        }
    }

    /// The share of a tenant.
    #[inline]
    pub fn share(&self, tenant: u16) -> u32 {
        u32::from(tenant) % self.shares.len() as u32
    }

    /// Entries of one share at most.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    fn key(share: u32, page: u32) -> u64 {
        u64::from(share) << 32 | u64::from(page)
    }

    /// Whether the entry of a page is there; it is then the newest.
    #[inline]
    pub fn touch(&mut self, share: u32, page: u32) -> bool {
        let Some(slot) = self.index.get(&MapMemory::key(share, page)).copied() else {
            return false;
        };
        if self.shares[share as usize].newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
        true
    }

    /// Adds an entry that is not there. The page of the table that must now be written, if a
    /// changed entry had to leave.
    pub fn insert(&mut self, share: u32, page: u32, table: TablePage) -> Option<TablePage> {
        let mut written = None;
        if self.shares[share as usize].len == self.capacity {
            written = self.evict(share);
        }
        let (newer, older) = (NIL, NIL);
        let (changed_before, changed_behind, changed) = (NIL, NIL, false);
        let entry =
            MapEntry { page, share, newer, older, table, changed_before, changed_behind, changed };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                self.slots.len() as u32 - 1
            }
        };
        self.index.insert(MapMemory::key(share, page), slot);
        self.link(slot);
        self.shares[share as usize].len += 1;
        written
    }

    fn evict(&mut self, share: u32) -> Option<TablePage> {
        let slot = self.shares[share as usize].oldest;
        let MapEntry { page, table, changed, .. } = self.slots[slot as usize];
        if changed {
            self.written(table);
        }
        self.unlink(slot);
        self.shares[share as usize].len -= 1;
        self.index.remove(&MapMemory::key(share, page));
        self.free.push(slot);
        changed.then_some(table)
    }

    /// Notes that an entry that is there has changed.
    pub fn change(&mut self, share: u32, page: u32) {
        let Some(slot) = self.index.get(&MapMemory::key(share, page)).copied() else { return };
        let entry = self.slots[slot as usize];
        if entry.changed {
            return;
        }
        let behind = self.changed.insert(entry.table, slot).unwrap_or(NIL);
        if behind != NIL {
            self.slots[behind as usize].changed_before = slot;
        }
        let entry = &mut self.slots[slot as usize];
        (entry.changed, entry.changed_before, entry.changed_behind) = (true, NIL, behind);
    }

    /// All changed entries of a page of the table are written.
    fn written(&mut self, table: TablePage) {
        let mut slot = self.changed.remove(&table).unwrap_or(NIL);
        while slot != NIL {
            let entry = &mut self.slots[slot as usize];
            entry.changed = false;
            slot = entry.changed_behind;
        }
    }

    fn link(&mut self, slot: u32) {
        let share = self.slots[slot as usize].share as usize;
        let newest = self.shares[share].newest;
        let entry = &mut self.slots[slot as usize];
        (entry.newer, entry.older) = (NIL, newest);
        match newest {
            NIL => self.shares[share].oldest = slot,
            newest => self.slots[newest as usize].newer = slot,
        }
        self.shares[share].newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let MapEntry { share, newer, older, .. } = self.slots[slot as usize];
        match newer {
            NIL => self.shares[share as usize].newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NIL => self.shares[share as usize].oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
    }

    /// Checks sizes and links, slowly.
    pub fn audit(&self) -> Result<(), String> {
        for (index, share) in self.shares.iter().enumerate() {
            let older = |slot: u32| Some(self.slots[slot as usize].older).filter(|s| *s != NIL);
            let first = Some(share.newest).filter(|slot| *slot != NIL);
            let mut count = 0;
            for slot in std::iter::successors(first, |slot| older(*slot)) {
                count += 1;
                let entry = &self.slots[slot as usize];
                let found = self.index.get(&MapMemory::key(entry.share, entry.page));
                if entry.share != index as u32 || found != Some(&slot) {
                    return Err(format!("map entry of page {} is not indexed", entry.page));
                }
            }
            if count != share.len || share.len > self.capacity {
                let (len, max) = (share.len, self.capacity);
                return Err(format!("map share {index}: {count} entries, {len} of {max} counted"));
            }
        }
        let listed = self.slots.len() - self.free.len();
        if self.index.len() == listed { Ok(()) } else { Err("map entries are lost".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_entries_of_one_page_leave_together() {
        let mut memory = MapMemory::new(3, 1);
        for page in [10, 11, 20] {
            assert_eq!(memory.insert(0, page, (0, page / 10)), None);
        }
        memory.change(0, 10);
        memory.change(0, 11);
        assert!(memory.touch(0, 11), "10 is the oldest now");
        assert_eq!(memory.insert(0, 30, (0, 3)), Some((0, 1)), "10 leaves with 11's change");
        assert!(!memory.touch(0, 10));
        assert_eq!(memory.insert(0, 40, (0, 4)), None, "20 was never changed");
        assert_eq!(memory.insert(0, 50, (0, 5)), None, "11 is clean now");
        assert!(memory.audit().is_ok());
    }

    #[test]
    fn shares_do_not_take_from_each_other() {
        let mut memory = MapMemory::new(4, 2);
        memory.insert(0, 1, (0, 0));
        for page in 0..10 {
            memory.insert(1, page, (0, 0));
        }
        assert!(memory.touch(0, 1));
        assert!(memory.touch(1, 9) && memory.touch(1, 8) && !memory.touch(1, 7));
        assert_eq!((memory.share(0), memory.share(3)), (0, 1));
        assert!(memory.audit().is_ok());
    }
}
