//! From a transaction of the host to work with an address.
//!
//! For: entries of the map, translation, pages written in part, and what goes on when data arrives
//! in the controller. Must never know: turns, channels. Units: pages, sectors, nanoseconds.

use super::address_space::AddressSpace;
use super::cleaner::FlashCleaner;
use super::error::FlashError;
use super::executor::{DataSource, Executor};
use super::ids::{LayerId, LogicalPage, PhysicalPage, WorkId};
use super::map_cache::TablePage;
use super::map_table::MapTable;
use super::params::{FlashParams, Unwritten};
use super::priority::Priority;
use super::request::{PageOp, Transaction};
use super::work::{FlashWork, HostPart, WorkPurpose};
use crate::spent::SpentPart;
use cachewright_ftl::FtlError;
use cachewright_ftl::layer::LayerStep;
use cachewright_types::Seed;

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
            (work.group, work.page) = (group, page);
            work.host = HostPart { tag, sectors, tenant, priority };
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
        self.map.change(work.host.tenant, self.space.global(work.group, work.page));
    }

    /// An entry of the map is not in memory: its page of the table is read, once for all that wait.
    fn miss(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        executor.counters().map.misses += 1;
        let FlashWork { group, page, .. } = *executor.work(id);
        let table: TablePage = (group, self.space.table_page(page));
        if let Some(reader) = self.map.reader(table) {
            return executor.wait_for(reader, id);
        }
        let place = self.space.locate(self.space.map_page(group, table.1));
        let reader = executor.add(WorkPurpose::MapRead, |work| {
            (work.group, work.page) = table;
            work.transfer.source = place.unwrap_or_default();
            work.transfer.read_bytes = self.map.read_bytes();
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
        self.map.end_read((group, page));
        let mut waiting = executor.take_waiters(reader);
        executor.remove(reader);
        while waiting != WorkId::NONE {
            let (id, now) = (waiting, executor.now());
            let work = executor.work_mut(id);
            waiting = work.next;
            let table = (group, self.space.table_page(work.page));
            let global = self.space.global(group, work.page);
            let evicted = self.map.insert(work.host.tenant, global, table);
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
        (group, page): TablePage,
        cleaner: &mut FlashCleaner,
        executor: &mut Executor,
    ) {
        executor.counters().map.evictions += 1;
        let local = self.space.map_page(group, page);
        let before = self.space.locate(local).map(|place| executor.find(place));
        let written = self.space.write(local, 0);
        let Some(target) = self.note_fault(written) else { return };
        let id = executor.add(WorkPurpose::MapWrite, |work| {
            (work.group, work.page) = (group, page);
            work.transfer.target = target;
            (work.transfer.read_bytes, work.transfer.program_bytes) =
                (self.page_bytes, self.page_bytes);
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
        let FlashWork { group, page, host, .. } = *executor.work(id);
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
        let bytes = (host.sectors & held).count_ones() * self.sector_bytes;
        if bytes == 0 {
            executor.counters().reads.unwritten += 1;
            return executor.finish(id);
        }
        executor.work_mut(id).transfer.read_bytes = bytes;
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
        let written = self.space.write(page, executor.work(id).host.tenant);
        let place = self.note_fault(written)?;
        executor.predict(self.space.steps_mut().predicted.take(), None);
        self.note_change(executor.work(id));
        if cleaner.carry_out(&mut self.space, page.layer, executor) {
            cleaner.level(&mut self.space, page.layer, executor);
        }
        Some(place)
    }

    fn translate_write(&mut self, id: WorkId, cleaner: &mut FlashCleaner, executor: &mut Executor) {
        let FlashWork { group, page, host, .. } = *executor.work(id);
        let local = self.space.host_page(group, page);
        let global = self.space.global(group, page);
        let before = self.space.locate(local).map(|place| executor.find(place));
        let written = self.space.write(local, host.tenant);
        let Some(target) = self.note_fault(written) else { return executor.finish(id) };
        let held = if before.is_some() { self.space.sectors().get(global) } else { 0 };
        let kept = held & !host.sectors;
        self.space.sectors_mut().set(global, held | host.sectors);
        let work = executor.work_mut(id);
        work.transfer.target = target;
        work.transfer.program_bytes = (held | host.sectors).count_ones() * self.sector_bytes;
        work.transfer.read_bytes = kept.count_ones() * self.sector_bytes;
        let mut source = if kept == 0 { None } else { before };
        if source.is_none()
            && let Some(place) = self.meta_page(local.layer)
        {
            work.transfer.read_bytes = self.page_bytes;
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
