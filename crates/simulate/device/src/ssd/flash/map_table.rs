//! The mapping table, as far as translation must wait for it.
//!
//! For: entries in memory, and reads of pages of the table that transactions wait for. Must never
//! know: where pages lie, time. Units: entries, pages of the table.

use super::address_space::AddressSpace;
use super::ids::WorkId;
use super::map_cache::{MapMemory, TablePage};
use super::params::{FlashParams, InitialFill, MapCache};
use cachewright_types::Seed;
use hashbrown::HashMap;

/// The table of a drive: all of it in memory, or in flash with the entries last used in memory.
#[derive(Clone, Debug)]
pub struct MapTable {
    /// Entries in memory; none where all of them are.
    memory: Option<MapMemory>,
    /// Pages of the table that are being read, and by which transaction.
    fetching: HashMap<TablePage, WorkId, foldhash::fast::FixedState>,
    /// Bytes that cross the channel for an entry.
    read_bytes: u32,
}

impl MapTable {
    /// The table as the parameters say; in a device that begins filled, its memory holds pages
    /// drawn at random.
    pub fn new(params: &FlashParams, space: &AddressSpace, seed: Seed) -> MapTable {
        let fetching = HashMap::default();
        let MapCache::Cached { bytes, entry_bytes, tenants, read_bytes, .. } = params.map else {
            return MapTable { memory: None, fetching, read_bytes: 0 };
        };
        let entries = (bytes / u64::from(entry_bytes)) as u32;
        let mut memory = MapMemory::new(entries, tenants);
        let occupancy = match params.fill {
            InitialFill::Empty => 0.0,
            InitialFill::Analytic { occupancy } | InitialFill::Replay { occupancy, .. } => {
                occupancy
            }
        };
        let mut rng = seed.derive("flash/map").rng();
        let groups = space.groups();
        for (share, group) in (0..tenants).flat_map(|share| (0..groups).map(move |g| (share, g))) {
            let pages = (occupancy * f64::from(space.pages(group))) as u32;
            let wanted = (memory.capacity() / u32::from(groups)).min(pages / 2);
            let mut held = 0;
            while held < wanted {
                let page = rng.below(u64::from(pages)) as u32;
                let global = space.global(group, page);
                if !memory.touch(share, global) {
                    memory.insert(share, global, (group, space.table_page(page)));
                    held += 1;
                }
            }
        }
        MapTable { memory: Some(memory), fetching, read_bytes }
    }

    /// Whether the entry of a page, by its number over all groups, is in memory; nothing where all
    /// entries are.
    #[inline]
    pub fn lookup(&mut self, tenant: u16, page: u32) -> Option<bool> {
        let memory = self.memory.as_mut()?;
        let share = memory.share(tenant);
        Some(memory.touch(share, page))
    }

    /// Starts to load what [`MapTable::lookup`] of a page will read first.
    #[inline]
    pub fn prefetch(&self, tenant: u16, page: u32) {
        if let Some(memory) = &self.memory {
            memory.prefetch(memory.share(tenant), page);
        }
    }

    /// Starts to load what an eviction for each of some tenants will read.
    #[inline]
    pub fn prefetch_evictions(&self, tenants: impl Iterator<Item = u16>) {
        if let Some(memory) = &self.memory {
            memory.prefetch_evictions(tenants.map(|tenant| memory.share(tenant)));
        }
    }

    /// The transaction that reads a page of the table, if one does.
    pub fn reader(&self, table: TablePage) -> Option<WorkId> {
        self.fetching.get(&table).copied()
    }

    /// Bytes that cross the channel for an entry.
    pub fn read_bytes(&self) -> u32 {
        self.read_bytes
    }

    /// A transaction begins to read a page of the table.
    pub fn begin_read(&mut self, table: TablePage, reader: WorkId) {
        let other = self.fetching.insert(table, reader);
        assert!(other.is_none(), "a page of the table is read once for all that wait");
    }

    /// A page of the table has been read.
    pub fn end_read(&mut self, table: TablePage) {
        self.fetching.remove(&table);
    }

    /// Takes an entry into memory, unless it is there. The page of the table that must now be
    /// written, if a changed entry had to leave.
    pub fn insert(&mut self, tenant: u16, page: u32, table: TablePage) -> Option<TablePage> {
        let memory = self.memory.as_mut()?;
        let share = memory.share(tenant);
        if memory.touch(share, page) { None } else { memory.insert(share, page, table) }
    }

    /// The entry of a page has changed.
    #[inline]
    pub fn change(&mut self, tenant: u16, page: u32) {
        if let Some(memory) = &mut self.memory {
            let share = memory.share(tenant);
            memory.change(share, page);
        }
    }

    /// Pages of the table that are being read.
    pub fn fetches(&self) -> usize {
        self.fetching.len()
    }

    /// The memory holds what it promises.
    pub fn audit(&self) -> Result<(), String> {
        self.memory.as_ref().map_or(Ok(()), MapMemory::audit)
    }
}
