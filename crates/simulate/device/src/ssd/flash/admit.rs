//! From a transaction of the host to work with an address.
//!
//! For: entries of the map, translation, pages written in part, reads of pages that are on their
//! way, completion. Must never know: turns, channels. Units: pages, sectors, nanoseconds. A page
//! whose data is in the controller is read there; one that is still to be moved is read where it
//! lies; one that waits for the rest of itself is waited for.

use super::map_cache::{MapMemory, TablePage};
use super::params::{Fill, MapCache, Unwritten};
use super::transaction::{Id, NIL, Place, Purpose, Step, Work};
use super::{Backend, Done, Kind, Priority, Transaction};
use crate::layer::Told;
use crate::spent::Part;
use cachewright_types::{Nanos, Seed};

/// Where data that is wanted is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// On flash.
    Flash(Place),
    /// In the controller.
    Controller,
    /// Will be in the controller when this work goes on.
    After(Id),
}

impl Backend {
    /// The class of a tenant.
    #[inline]
    fn priority(&self, tenant: u16) -> Priority {
        let classes = &self.params.priorities;
        let last = classes.last().copied().unwrap_or_default();
        classes.get(usize::from(tenant)).copied().unwrap_or(last)
    }

    /// The number of a physical page.
    #[inline]
    pub(super) fn key(&self, place: Place) -> u32 {
        let shape = &self.params.shape;
        (place.plane * shape.blocks_per_plane + place.block) * shape.pages_per_block + place.page
    }

    /// Takes one transaction of the host.
    #[inline]
    pub(super) fn accept(&mut self, transaction: &Transaction) {
        let Transaction { tag, tenant, group, kind, page, sectors } = *transaction;
        let purpose = if kind == Kind::Write { Purpose::HostWrite } else { Purpose::HostRead };
        let sectors = sectors & self.space.whole();
        let tenant = tenant.0;
        let new = Work::new(purpose, self.now);
        let priority = self.priority(tenant);
        let id = self.work.insert(Work { tag, tenant, group, page, sectors, priority, ..new });
        if page >= self.space.pages(group) || sectors == 0 {
            return self.finish(id);
        }
        if kind == Kind::Trim {
            return self.trim(id);
        }
        if let Some(map) = &mut self.map {
            let global = self.space.global(group, page);
            let share = map.share(tenant);
            if !map.touch(share, global) {
                return self.miss(id);
            }
            self.counters.map_hits += 1;
        }
        self.translate(id);
    }

    fn trim(&mut self, id: Id) {
        let Work { group, page, .. } = self.work[id];
        let local = self.space.of_page(group, page);
        if let Err(error) = self.space.layer_mut(group, local.layer).trim(local.page) {
            self.fault.get_or_insert(error);
        }
        let global = self.space.global(group, page);
        self.space.set_sectors(global, self.space.whole());
        self.counters.trims += 1;
        self.changed(id);
        self.finish(id);
    }

    /// An entry of the map is not in memory: its page of the table is read, once for all that wait.
    fn miss(&mut self, id: Id) {
        self.counters.map_misses += 1;
        let Work { group, page, .. } = self.work[id];
        let table: TablePage = (group, self.space.map_page(page));
        if let Some(reader) = self.fetching.get(&table).copied() {
            return self.wait_for(reader, id);
        }
        let MapCache::Cached { read_bytes, .. } = self.params.map else { return };
        let place = self.space.locate(self.space.of_map(group, table.1));
        let new = Work::new(Purpose::MapRead, self.now);
        let (page, source) = (table.1, place.unwrap_or_default());
        let reader = self.work.insert(Work { group, page, source, read_bytes, ..new });
        self.fetching.insert(table, reader);
        self.wait_for(reader, id);
        match place {
            Some(_) => self.read(reader),
            None => self.arrived(reader),
        }
    }

    /// A page of the table has been read: those that waited for it go on.
    fn arrived(&mut self, reader: Id) {
        let Work { group, page, .. } = self.work[reader];
        self.fetching.remove(&(group, page));
        let mut waiting = self.waiters(reader);
        self.work.remove(reader);
        while waiting != NIL {
            let id = waiting;
            waiting = self.work[id].next;
            let (page, tenant) = (self.work[id].page, self.work[id].tenant);
            let global = self.space.global(group, page);
            let table = (group, self.space.map_page(page));
            let evicted = self.map.as_mut().and_then(|map| {
                let share = map.share(tenant);
                if map.touch(share, global) { None } else { map.insert(share, global, table) }
            });
            self.work[id].account(Part::Map, self.now);
            if let Some(table) = evicted {
                self.write_table(table);
            }
            self.translate(id);
        }
    }

    /// Writes a page of the mapping table anew.
    fn write_table(&mut self, (group, page): TablePage) {
        self.counters.map_evictions += 1;
        let local = self.space.of_map(group, page);
        let before = self.space.locate(local).map(|place| self.find(place));
        let target = match self.space.write(local, 0, &mut self.steps) {
            Ok(target) => target,
            Err(error) => {
                self.fault.get_or_insert(error);
                return;
            }
        };
        let bytes = self.params.shape.page_bytes;
        let new = Work::new(Purpose::MapWrite, self.now);
        let (read_bytes, program_bytes) = (bytes, bytes);
        let write = Work { group, page, target, read_bytes, program_bytes, ..new };
        let id = self.work.insert(write);
        self.note_prediction(None);
        let erased = self.absorb(group, local.layer);
        self.aim(id);
        if erased {
            self.level(group, local.layer);
        }
        match before {
            Some(source) => self.read_from(id, source),
            None => self.queue_program(id),
        }
    }

    /// The entry of a page has changed.
    fn changed(&mut self, id: Id) {
        let Work { group, page, tenant, .. } = self.work[id];
        if let Some(map) = &mut self.map {
            let share = map.share(tenant);
            map.change(share, self.space.global(group, page));
        }
    }

    /// Finds where a page of the host lies, or will lie.
    #[inline]
    fn translate(&mut self, id: Id) {
        match self.work[id].purpose {
            Purpose::HostRead => self.translate_read(id),
            _ => self.translate_write(id),
        }
    }

    #[inline]
    fn translate_read(&mut self, id: Id) {
        let Work { group, page, sectors, tenant, .. } = self.work[id];
        let local = self.space.of_page(group, page);
        let (source, held) = match self.space.locate(local) {
            Some(place) => (place, self.space.sectors(self.space.global(group, page))),
            None => {
                self.counters.unwritten_reads += 1;
                if self.params.unwritten == Unwritten::Zero {
                    return self.finish(id);
                }
                match self.space.write(local, tenant, &mut self.steps) {
                    Ok(place) => {
                        self.note_prediction(None);
                        self.changed(id);
                        if self.absorb(group, local.layer) {
                            self.level(group, local.layer);
                        }
                        (place, self.space.whole())
                    }
                    Err(error) => {
                        self.fault.get_or_insert(error);
                        return self.finish(id);
                    }
                }
            }
        };
        let bytes = (sectors & held).count_ones() * self.params.shape.sector_bytes;
        if bytes == 0 {
            self.counters.unwritten_reads += 1;
            return self.finish(id);
        }
        let work = &mut self.work[id];
        (work.source, work.read_bytes) = (source, bytes);
        self.read(id);
    }

    fn translate_write(&mut self, id: Id) {
        let Work { group, page, sectors, tenant, .. } = self.work[id];
        let local = self.space.of_page(group, page);
        let global = self.space.global(group, page);
        let before = self.space.locate(local).map(|place| self.find(place));
        let target = match self.space.write(local, tenant, &mut self.steps) {
            Ok(target) => target,
            Err(error) => {
                self.fault.get_or_insert(error);
                return self.finish(id);
            }
        };
        let held = if before.is_some() { self.space.sectors(global) } else { 0 };
        let kept = held & !sectors;
        self.space.set_sectors(global, held | sectors);
        let sector_bytes = self.params.shape.sector_bytes;
        let work = &mut self.work[id];
        work.target = target;
        work.program_bytes = (held | sectors).count_ones() * sector_bytes;
        work.read_bytes = kept.count_ones() * sector_bytes;
        let mut source = if kept == 0 { None } else { before };
        if source.is_none()
            && let Some(place) = self.meta_page(group, local.layer)
        {
            self.work[id].read_bytes = self.params.shape.page_bytes;
            source = Some(Source::Flash(place));
        }
        self.note_prediction(Some(id));
        self.changed(id);
        let erased = self.absorb(group, local.layer);
        self.aim(id);
        if erased {
            self.level(group, local.layer);
        }
        match source {
            Some(source) => self.read_from(id, source),
            None => self.queue_program(id),
        }
    }

    /// The page of metadata that the separation wants to read before a page is programmed: the last
    /// of the block it names.
    fn meta_page(&self, group: u16, layer: u32) -> Option<Place> {
        let told = self.steps.told.iter();
        let of = told.rev().find_map(|told| match told {
            Told::MetaRead { of } => Some(*of),
            _ => None,
        })?;
        let place = self.space.place(group, layer, of);
        Some(Place { page: self.params.shape.pages_per_block - 1, ..place })
    }

    /// Where the data that belongs at a place is now. To be asked before the layer changes again: a
    /// block may be given to its next life while pages of this one are still on their way.
    #[inline]
    pub(super) fn find(&self, place: Place) -> Source {
        let Some(writer) = self.writing.get(&self.key(place)).copied() else {
            return Source::Flash(place);
        };
        let other = &self.work[writer];
        let unmoved = other.step == Step::Read || other.copy_back;
        match (other.purpose, other.step) {
            (Purpose::Move, _) if unmoved => Source::Flash(other.source),
            (_, Step::Program | Step::Deciding) => Source::Controller,
            _ => Source::After(writer),
        }
    }

    /// Reads the source of some work.
    #[inline]
    pub(super) fn read(&mut self, id: Id) {
        let source = self.find(self.work[id].source);
        self.read_from(id, source);
    }

    /// Reads for some work where its data was found.
    #[inline]
    pub(super) fn read_from(&mut self, id: Id, source: Source) {
        match source {
            Source::Flash(place) => self.work[id].source = place,
            Source::Controller => {
                self.counters.buffered_reads += 1;
                return self.read_done(id);
            }
            Source::After(writer) => return self.wait_for(writer, id),
        }
        if self.alone && !self.work[id].copy_back && self.begin_at_once(id) {
            return;
        }
        self.work[id].step = Step::Read;
        self.enqueue(id);
    }

    /// The data of a read is in the controller.
    #[inline]
    pub(super) fn read_done(&mut self, id: Id) {
        match self.work[id].purpose {
            Purpose::HostRead => self.finish(id),
            Purpose::MapRead => self.arrived(id),
            _ => self.queue_program(id),
        }
    }

    /// The data of a program is in the controller: it is queued, once it is decided where such
    /// pages belong, and those that waited for it can have it.
    pub(super) fn queue_program(&mut self, id: Id) {
        if self.work[id].predicts {
            self.decide(id);
        } else {
            self.work[id].step = Step::Program;
            self.enqueue(id);
        }
        let mut waiting = self.waiters(id);
        while waiting != NIL {
            let next = self.work[waiting].next;
            self.work[waiting].account(Part::Queue, self.now);
            self.read_from(waiting, Source::Controller);
            waiting = next;
        }
    }

    /// Puts `id` aside until `other` goes on.
    fn wait_for(&mut self, other: Id, id: Id) {
        self.work[id].step = Step::Aside;
        self.work[id].next = self.work[other].waiters;
        self.work[other].waiters = id;
    }

    /// Takes those that wait for some work, the first to come first.
    fn waiters(&mut self, id: Id) -> Id {
        let mut rest = std::mem::replace(&mut self.work[id].waiters, NIL);
        let mut ordered = NIL;
        while rest != NIL {
            let next = self.work[rest].next;
            self.work[rest].next = ordered;
            ordered = rest;
            rest = next;
        }
        ordered
    }

    /// Completes a transaction of the host.
    #[inline]
    pub(super) fn finish(&mut self, id: Id) {
        let now = self.now;
        let work = &mut self.work[id];
        work.account(Part::Queue, now);
        let done = Done { tag: work.tag, finished: Nanos(now), spent: work.spent() };
        debug_assert_eq!(done.spent.total_ns(), now - work.submitted);
        self.outstanding -= 1;
        self.done.push(done);
        self.work.remove(id);
    }

    /// Makes the memory for the map; in a device that begins filled it holds pages drawn at random.
    pub(super) fn warm_map(&mut self, seed: Seed) {
        let MapCache::Cached { bytes, entry_bytes, tenants, .. } = self.params.map else { return };
        let entries = (bytes / u64::from(entry_bytes)) as u32;
        let mut map = MapMemory::new(entries, tenants);
        let occupancy = match self.params.fill {
            Fill::Empty => 0.0,
            Fill::Analytic { occupancy } | Fill::Replay { occupancy, .. } => occupancy,
        };
        let mut rng = seed.derive("flash/map").rng();
        let groups = self.space.groups();
        for (share, group) in (0..tenants).flat_map(|share| (0..groups).map(move |g| (share, g))) {
            let pages = (occupancy * f64::from(self.space.pages(group))) as u32;
            let wanted = (map.capacity() / u32::from(groups)).min(pages / 2);
            let mut held = 0;
            while held < wanted {
                let page = rng.below(u64::from(pages)) as u32;
                let global = self.space.global(group, page);
                if !map.touch(share, global) {
                    map.insert(share, global, (group, self.space.map_page(page)));
                    held += 1;
                }
            }
        }
        self.map = Some(map);
    }
}
