//! From a transaction of the host to work with an address, over a mapping table partly in memory.
//!
//! Entries in memory leave least recently used first, in one memory or one per tenant. A changed
//! entry that must leave takes all changed entries of its page of the table with it, which one
//! program then makes durable. Source: DFTL (ASPLOS'09), batched as in its section 3.3. Units:
//! entries, pages of the table, pages, sectors, nanoseconds.

use super::address_space::AddressSpace;
use super::cleaner::FlashCleaner;
use super::executor::{DataSource, Executor};
use super::geometry::{LayerId, LogicalPage, PhysicalPage, WorkId};
use super::page_map::PageMap;
use super::params::{FlashError, FlashParams, InitialFill, MapCache, Priority, Unwritten};
use super::work::{FlashWork, PageOp, Transaction, WorkPurpose};
use crate::device::SpentPart;
use cachewright_ftl::FtlError;
use cachewright_ftl::layer::LayerStep;
use cachewright_types::Seed;
use hashbrown::HashMap;

/// Logical pages, the map, and how pages are read and written.
pub struct Translator {
    space: AddressSpace,
    map: MapTable,
    /// The class of each tenant, the last one of all beyond.
    priorities: Vec<Priority>,
    unwritten: Unwritten,
    page_bytes: u32,
    sector_bytes: u32,
    pages_per_block: u32,
    fault: Option<FtlError>,
}

impl Translator {
    /// Pages and map as the parameters say. Errors: unknown schemes; a translation layer without
    /// free blocks.
    pub fn new(params: &FlashParams, seed: Seed) -> Result<Translator, FlashError> {
        let space = AddressSpace::new(params, seed)?;
        Ok(Translator {
            map: MapTable::new(params, &space, seed),
            space,
            priorities: params.priorities.clone(),
            unwritten: params.unwritten,
            page_bytes: params.shape.page_bytes,
            sector_bytes: params.shape.sector_bytes,
            pages_per_block: params.shape.pages_per_block,
            fault: None,
        })
    }

    /// The logical pages, to look at.
    pub fn space(&self) -> &AddressSpace {
        &self.space
    }

    /// Why a write could not be done, if one ever could not.
    pub fn fault(&self) -> Option<&FtlError> {
        self.fault.as_ref()
    }

    /// The mapping table, to look at.
    pub fn map(&self) -> &MapTable {
        &self.map
    }

    /// Starts to load what a transaction of a page will read.
    pub fn prefetch(&self, tenant: u16, group: u16, page: u32) {
        if page < self.space.pages(group) {
            let global = self.space.global(group, page);
            self.space.prefetch(self.space.host_page(group, page));
            self.space.sectors().prefetch(global);
            self.map.prefetch(tenant, global);
        }
    }

    /// The class of a tenant.
    #[inline]
    fn priority(&self, tenant: u16) -> Priority {
        let last = self.priorities.last().copied().unwrap_or_default();
        self.priorities.get(usize::from(tenant)).copied().unwrap_or(last)
    }

    /// Announces the writes of one host request.
    #[inline]
    pub fn announce(&mut self, batch: &[Transaction]) {
        if let Some(first) = batch.first()
            && first.op == PageOp::Write
            && first.group < self.space.groups()
        {
            let (tenant, pages) = (first.tenant.0, batch.len() as u32);
            self.space.announce(first.group, tenant, first.page, pages);
        }
    }

    /// Takes one transaction of the host.
    #[inline]
    pub fn accept(
        &mut self,
        wanted: &Transaction,
        cleaner: &mut FlashCleaner,
        executor: &mut Executor,
    ) {
        let Transaction { tag, tenant, group, op, page, sectors } = *wanted;
        let purpose =
            if op == PageOp::Write { WorkPurpose::HostWrite } else { WorkPurpose::HostRead };
        let sectors = sectors & self.space.sectors().whole();
        let tenant = tenant.0;
        let priority = self.priority(tenant);
        let id = executor.add_host(purpose, |work| {
            work.group = group;
            work.page = page;
            work.tag = tag;
            work.sectors = sectors;
            work.tenant = tenant;
            work.priority = priority;
        });
        if page >= self.space.pages(group) || sectors == 0 {
            return executor.finish(id);
        }
        if op == PageOp::Trim {
            return self.trim(id, executor);
        }
        match self.map.lookup(tenant, self.space.global(group, page)) {
            Some(false) => return self.miss(id, cleaner, executor),
            Some(true) => executor.counters().map.hits += 1,
            None => {}
        }
        self.translate(id, cleaner, executor);
    }

    fn trim(&mut self, id: WorkId, executor: &mut Executor) {
        let FlashWork { group, page, .. } = *executor.work(id);
        let trimmed = self.space.trim(self.space.host_page(group, page));
        self.note_fault(trimmed);
        let global = self.space.global(group, page);
        let whole = self.space.sectors().whole();
        self.space.sectors_mut().set(global, whole);
        executor.counters().trims += 1;
        self.note_change(executor.work(id));
        executor.finish(id);
    }

    /// Keeps the first error.
    fn note_fault<T>(&mut self, result: Result<T, FtlError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault.get_or_insert(error);
                None
            }
        }
    }

    /// The entry of a page has changed.
    fn note_change(&mut self, work: &FlashWork) {
        self.map.change(work.tenant, self.space.global(work.group, work.page));
    }

    /// An entry of the map is not in memory: its page of the table is read, once for all that wait.
    fn miss(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        executor.counters().map.misses += 1;
        let FlashWork { group, page, .. } = *executor.work(id);
        let table = TablePage { group, page: self.space.table_page(page) };
        if let Some(reader) = self.map.reader(table) {
            return executor.wait_for(reader, id);
        }
        let place = self.space.locate(self.space.map_page(group, table.page));
        let reader = executor.add(WorkPurpose::MapRead, |work| {
            (work.group, work.page) = (table.group, table.page);
            work.source = place.unwrap_or_default();
            work.read_bytes = self.map.read_bytes();
        });
        self.map.begin_read(table, reader);
        executor.wait_for(reader, id);
        let here = place.is_none_or(|place| {
            let source = executor.find(place);
            executor.read(reader, source)
        });
        if here {
            self.table_read(reader, cleaner, executor);
        }
    }

    /// A page of the table has been read: those that waited for it go on.
    fn table_read(&mut self, reader: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        let FlashWork { group, page, .. } = *executor.work(reader);
        self.map.end_read(TablePage { group, page });
        let mut waiting = executor.take_waiters(reader);
        executor.remove(reader);
        while waiting != WorkId::NONE {
            let (id, now) = (waiting, executor.now());
            let work = executor.work_mut(id);
            waiting = work.next;
            let table = TablePage { group, page: self.space.table_page(work.page) };
            let global = self.space.global(group, work.page);
            let evicted = self.map.insert(work.tenant, global, table);
            work.time.account(SpentPart::Map, now);
            if let Some(table) = evicted {
                self.write_table(table, cleaner, executor);
            }
            self.translate(id, cleaner, executor);
        }
    }

    /// Writes a page of the mapping table anew.
    fn write_table(
        &mut self,
        table: TablePage,
        cleaner: &mut FlashCleaner,
        executor: &mut Executor,
    ) {
        let TablePage { group, page } = table;
        executor.counters().map.evictions += 1;
        let local = self.space.map_page(group, page);
        let before = self.space.locate(local).map(|place| executor.find(place));
        let written = self.space.write(local, 0);
        let Some(target) = self.note_fault(written) else { return };
        let id = executor.add(WorkPurpose::MapWrite, |work| {
            (work.group, work.page) = (group, page);
            work.target = target;
            (work.read_bytes, work.program_bytes) = (self.page_bytes, self.page_bytes);
        });
        executor.predict(self.space.steps_mut().predicted.take(), None);
        self.program_from(id, local.layer, before, cleaner, executor);
    }

    /// Finds where a page of the host lies, or will lie.
    #[inline]
    fn translate(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        match executor.work(id).purpose {
            WorkPurpose::HostRead => self.translate_read(id, cleaner, executor),
            _ => self.translate_write(id, cleaner, executor),
        }
    }

    #[inline]
    fn translate_read(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        let FlashWork { group, page, sectors, .. } = *executor.work(id);
        let local = self.space.host_page(group, page);
        let held = match self.space.locate(local) {
            Some(place) => Some((place, self.space.sectors().get(self.space.global(group, page)))),
            None => {
                executor.counters().reads.unwritten += 1;
                let place = self.allocate(id, local, cleaner, executor);
                place.map(|place| (place, self.space.sectors().whole()))
            }
        };
        let Some((source, held)) = held else { return executor.finish(id) };
        let bytes = (sectors & held).count_ones() * self.sector_bytes;
        if bytes == 0 {
            executor.counters().reads.unwritten += 1;
            return executor.finish(id);
        }
        executor.work_mut(id).read_bytes = bytes;
        let source = executor.find(source);
        if executor.read(id, source) {
            executor.finish(id);
        }
    }

    /// Gives a page that is read and was never written a place, where the device does so.
    fn allocate(
        &mut self,
        id: WorkId,
        page: LogicalPage,
        cleaner: &mut FlashCleaner,
        executor: &mut Executor,
    ) -> Option<PhysicalPage> {
        if self.unwritten == Unwritten::Zero {
            return None;
        }
        let written = self.space.write(page, executor.work(id).tenant);
        let place = self.note_fault(written)?;
        executor.predict(self.space.steps_mut().predicted.take(), None);
        self.note_change(executor.work(id));
        if cleaner.carry_out(&mut self.space, page.layer, executor) {
            cleaner.level(&mut self.space, page.layer, executor);
        }
        Some(place)
    }

    fn translate_write(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        let FlashWork { group, page, sectors, tenant, .. } = *executor.work(id);
        let local = self.space.host_page(group, page);
        let global = self.space.global(group, page);
        let before = self.space.locate(local).map(|place| executor.find(place));
        let written = self.space.write(local, tenant);
        let Some(target) = self.note_fault(written) else { return executor.finish(id) };
        let held = if before.is_some() { self.space.sectors().get(global) } else { 0 };
        let kept = held & !sectors;
        self.space.sectors_mut().set(global, held | sectors);
        let work = executor.work_mut(id);
        work.target = target;
        work.program_bytes = (held | sectors).count_ones() * self.sector_bytes;
        work.read_bytes = kept.count_ones() * self.sector_bytes;
        let mut source = if kept == 0 { None } else { before };
        if source.is_none()
            && let Some(place) = self.meta_page(local.layer)
        {
            work.read_bytes = self.page_bytes;
            source = Some(DataSource::Flash(place));
        }
        executor.predict(self.space.steps_mut().predicted.take(), Some(id));
        self.note_change(executor.work(id));
        self.program_from(id, local.layer, source, cleaner, executor);
    }

    /// The page of metadata that the separation wants to read before a page is programmed: the last
    /// of the block it names.
    fn meta_page(&self, layer: LayerId) -> Option<PhysicalPage> {
        let steps = self.space.steps().ordered.iter();
        let owner = steps.rev().find_map(|step| match step {
            LayerStep::MetaRead { owner } => Some(*owner),
            _ => None,
        })?;
        let place = self.space.place(layer, owner);
        Some(PhysicalPage { page: self.pages_per_block - 1, ..place })
    }

    /// A page whose target is known is programmed, after the read that it needs; what its layer
    /// decided besides is carried out first.
    fn program_from(
        &mut self,
        id: WorkId,
        layer: LayerId,
        source: Option<DataSource>,
        cleaner: &mut FlashCleaner,
        executor: &mut Executor,
    ) {
        let erases = cleaner.carry_out(&mut self.space, layer, executor);
        executor.aim(id);
        if erases {
            cleaner.level(&mut self.space, layer, executor);
        }
        if source.is_none_or(|source| executor.read(id, source)) {
            self.program(id, cleaner, executor);
        }
    }

    /// The data of a read is in the controller.
    #[inline]
    pub fn read_done(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        match executor.work(id).purpose {
            WorkPurpose::HostRead => executor.finish(id),
            WorkPurpose::MapRead => self.table_read(id, cleaner, executor),
            _ => self.program(id, cleaner, executor),
        }
    }

    /// The data of a program is in the controller: it is queued, and those that waited for the data
    /// have it.
    fn program(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        executor.program(id);
        let mut waiting = executor.take_waiters(id);
        while waiting != WorkId::NONE {
            let (reader, now) = (waiting, executor.now());
            let work = executor.work_mut(reader);
            waiting = work.next;
            work.time.account(SpentPart::Queue, now);
            if executor.read(reader, DataSource::Controller) {
                self.read_done(reader, cleaner, executor);
            }
        }
    }

    /// Layers and map hold what they promise.
    pub fn audit(&self) -> Result<(), String> {
        self.space.audit()?;
        self.map.audit()
    }

    /// What must hold once nothing is to come.
    pub fn audit_rest(&self) -> Result<(), String> {
        match self.map.fetches() {
            0 => Ok(()),
            count => {
                Err(format!("{count} pages of the map to read are left and nothing is to come"))
            }
        }
    }
}

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
                    let table = TablePage { group, page: space.table_page(page) };
                    memory.insert(share, global, table);
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
    fn end_read(&mut self, table: TablePage) {
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

const NIL: u32 = u32::MAX;

/// A page of the mapping table of one group of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TablePage {
    group: u16,
    page: u32,
}

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
struct MapMemory {
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
    fn written_at(&mut self, table: TablePage) -> &mut u64 {
        let (group, page) = (usize::from(table.group), table.page as usize);
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

    fn of_group_0(page: u32) -> TablePage {
        TablePage { group: 0, page }
    }

    #[test]
    fn changed_entries_of_one_page_leave_together() {
        let mut memory = MapMemory::new(3, 1);
        for page in [10, 11, 20] {
            assert_eq!(memory.insert(0, page, of_group_0(page / 10)), None);
        }
        memory.change(0, 10);
        memory.change(0, 11);
        assert!(memory.touch(0, 11), "10 is the oldest now");
        assert_eq!(memory.insert(0, 30, of_group_0(3)), Some(of_group_0(1)), "with 11's change");
        assert!(!memory.touch(0, 10));
        assert_eq!(memory.insert(0, 40, of_group_0(4)), None, "20 was never changed");
        assert_eq!(memory.insert(0, 50, of_group_0(5)), None, "11 is clean now");
        assert!(memory.audit().is_ok());
    }

    #[test]
    fn shares_do_not_take_from_each_other() {
        let mut memory = MapMemory::new(4, 2);
        memory.insert(0, 1, of_group_0(0));
        for page in 0..10 {
            memory.insert(1, page, of_group_0(0));
        }
        assert!(memory.touch(0, 1));
        assert!(memory.touch(1, 9) && memory.touch(1, 8) && !memory.touch(1, 7));
        assert_eq!((memory.share(0), memory.share(3)), (0, 1));
        assert!(memory.audit().is_ok());
    }
}
