//! Entries of the mapping table that are in memory.
//!
//! For: hit, miss and eviction, least recently used first, in one memory or one per tenant. Must
//! never know: flash, time. Units: entries. A changed entry that must leave takes all changed
//! entries of its page of the table with it, which one program then makes durable. Source: DFTL
//! (ASPLOS'09), batched as in its section 3.3.

use super::page_map::PageMap;

const NIL: u32 = u32::MAX;

/// A page of the mapping table: group of channels, page.
pub type TablePage = (u16, u32);

/// What an entry is of, and when it changed last: 0 for never.
#[derive(Clone, Copy, Debug)]
struct MapEntry {
    changed_at: u64,
    page: u32,
    share: u32,
    table: TablePage,
}

/// The neighbours of an entry in the order of use: apart from the entries, so that those of many
/// entries lie in few lines of a processor's cache.
#[derive(Clone, Copy, Debug)]
struct UseLink {
    newer: u32,
    older: u32,
}

#[derive(Clone, Debug)]
struct MapShare {
    newest: u32,
    oldest: u32,
    /// The slot of each page's entry.
    slots: PageMap<u32>,
}

/// The memory for entries.
#[derive(Clone, Debug)]
pub struct MapMemory {
    entries: Vec<MapEntry>,
    links: Vec<UseLink>,
    free: Vec<u32>,
    shares: Vec<MapShare>,
    /// Entries of each share.
    capacity: u32,
    /// When each page of the table was written last, by group; 0 for never. An entry is changed
    /// if it changed later, so that those of a page that is written need not be visited.
    written_at: Vec<Vec<u64>>,
    /// Pages of the table written so far, and one more.
    clock: u64,
}

impl MapMemory {
    /// Room for so many entries in all, split equally among `shares`.
    pub fn new(entries: u32, shares: u32) -> MapMemory {
        let shares = shares.max(1);
        let share = MapShare { newest: NIL, oldest: NIL, slots: PageMap::default() };
        MapMemory {
            entries: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            shares: vec![share; shares as usize],
            capacity: (entries / shares).max(1),
            written_at: Vec::new(),
            clock: 1,
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

    /// Whether the entry of a page is there; it is then the newest.
    #[inline]
    pub fn touch(&mut self, share: u32, page: u32) -> bool {
        let known = &self.shares[share as usize];
        let Some(slot) = known.slots.get(page) else { return false };
        if known.newest != slot {
            self.unlink(share, slot);
            self.link(share, slot);
        }
        true
    }

    /// Adds an entry that is not there. The page of the table that must now be written, if a
    /// changed entry had to leave.
    pub fn insert(&mut self, share: u32, page: u32, table: TablePage) -> Option<TablePage> {
        let mut written = None;
        if self.shares[share as usize].slots.len() == self.capacity as usize {
            written = self.evict(share);
        }
        let entry = MapEntry { changed_at: 0, page, share, table };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                self.links.push(UseLink { newer: NIL, older: NIL });
                self.entries.len() as u32 - 1
            }
        };
        self.shares[share as usize].slots.insert(page, slot);
        self.link(share, slot);
        written
    }

    fn evict(&mut self, share: u32) -> Option<TablePage> {
        let slot = self.shares[share as usize].oldest;
        let MapEntry { changed_at, page, table, .. } = self.entries[slot as usize];
        self.unlink(share, slot);
        self.shares[share as usize].slots.remove(page);
        self.free.push(slot);
        let clock = self.clock;
        let written_at = self.written_at(table);
        let changed = changed_at > *written_at;
        if changed {
            // All changed entries of the page are written.
            *written_at = clock;
            self.clock = clock + 1;
        }
        changed.then_some(table)
    }

    /// When a page of the table was written last.
    fn written_at(&mut self, (group, page): TablePage) -> &mut u64 {
        let (group, page) = (usize::from(group), page as usize);
        if group >= self.written_at.len() {
            self.written_at.resize_with(group + 1, Vec::new);
        }
        let times = &mut self.written_at[group];
        if page >= times.len() {
            times.resize(page + 1, 0);
        }
        &mut times[page]
    }

    /// Notes that an entry that is there has changed.
    pub fn change(&mut self, share: u32, page: u32) {
        if let Some(slot) = self.shares[share as usize].slots.get(page) {
            self.entries[slot as usize].changed_at = self.clock;
        }
    }

    /// Starts to load what the look-up of a page will read first.
    #[inline]
    pub fn prefetch(&self, share: u32, page: u32) {
        self.shares[share as usize].slots.prefetch(page);
    }

    /// Starts to load what an eviction from each of some shares will read, all from one share
    /// mostly: it gives up the oldest, then the next.
    #[inline]
    pub fn prefetch_evictions(&self, shares: impl Iterator<Item = u32>) {
        let mut last = NIL;
        for share in shares {
            last = match self.links.get(last as usize) {
                Some(link) => link.newer,
                None => self.shares[share as usize].oldest,
            };
            if let Some(entry) = self.entries.get(last as usize) {
                self.prefetch(entry.share, entry.page);
            }
        }
    }

    fn link(&mut self, share: u32, slot: u32) {
        let share = &mut self.shares[share as usize];
        let older = std::mem::replace(&mut share.newest, slot);
        self.links[slot as usize] = UseLink { newer: NIL, older };
        match older {
            NIL => share.oldest = slot,
            older => self.links[older as usize].newer = slot,
        }
    }

    fn unlink(&mut self, share: u32, slot: u32) {
        let share = &mut self.shares[share as usize];
        let UseLink { newer, older } = self.links[slot as usize];
        match newer {
            NIL => share.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NIL => share.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
    }

    /// Checks sizes and links, slowly.
    pub fn audit(&self) -> Result<(), String> {
        let mut listed = 0;
        for (index, share) in self.shares.iter().enumerate() {
            let present = |slot: u32| Some(slot).filter(|slot| *slot != NIL);
            let older = |slot: &u32| present(self.links[*slot as usize].older);
            let mut count = 0;
            for slot in std::iter::successors(present(share.newest), older) {
                count += 1;
                let entry = &self.entries[slot as usize];
                let found = share.slots.get(entry.page);
                if entry.share != index as u32 || found != Some(slot) {
                    return Err(format!("map entry of page {} is not indexed", entry.page));
                }
            }
            let len = share.slots.len();
            if count != len || len > self.capacity as usize {
                let max = self.capacity;
                return Err(format!("map share {index}: {count} entries, {len} of {max} counted"));
            }
            listed += len;
        }
        let used = self.entries.len() - self.free.len();
        if listed == used { Ok(()) } else { Err("map entries are lost".to_owned()) }
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
