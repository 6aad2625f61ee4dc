//! Cleaning: what the translation layer decided becomes reads, programs and erases.
//!
//! For: moves of valid pages, erases once all of them are done, wear levelling, and where cleaning
//! is urgent. Must never know: how victims are chosen. Units: pages, blocks. A page counts as moved
//! in the mapping at once and is read at its old place until it is programmed at the new one, so no
//! request ever waits for cleaning that it does not share a die with, and none is lost.

use super::Backend;
use super::admit::Source;
use super::transaction::{Id, Place, Purpose, Step, Work};
use super::unit::Condemned;
use crate::layer::Told;
use cachewright_ftl::Address;

/// One block on its way to be erased.
#[derive(Clone, Copy, Debug)]
struct Job {
    group: u16,
    layer: u32,
    block: u32,
    serial: u32,
    /// Programs that come before the erase: of pages moved, and of pages still on their way to the
    /// block.
    programs_left: u32,
    erases_left: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    jobs: Vec<Job>,
    free: Vec<u32>,
    /// Numbers given to erases so far.
    serials: u32,
}

impl Jobs {
    fn open(&mut self, group: u16, layer: u32) -> u32 {
        self.serials += 1;
        let serial = self.serials;
        let job = Job { group, layer, block: 0, serial, programs_left: 0, erases_left: 0 };
        match self.free.pop() {
            Some(index) => {
                self.jobs[index as usize] = job;
                index
            }
            None => {
                self.jobs.push(job);
                self.jobs.len() as u32 - 1
            }
        }
    }

    /// The layer of a job.
    pub fn layer(&self, job: u32) -> u32 {
        self.jobs[job as usize].layer
    }

    /// Blocks under way.
    pub fn len(&self) -> usize {
        self.jobs.len() - self.free.len()
    }
}

impl Backend {
    /// Makes work of what a layer has told; whether a block is to be erased.
    #[inline]
    pub(super) fn absorb(&mut self, group: u16, layer: u32) -> bool {
        if self.params.schedule.gc_preemptible {
            self.note_urgency(group, layer);
        }
        !self.steps.told.is_empty() && self.clean(group, layer)
    }

    /// Work whose target is known: its page is on its way, after the erase of its block if one is
    /// still to come.
    #[inline]
    pub(super) fn aim(&mut self, id: Id) {
        let target = self.work[id].target;
        let key = self.key(target);
        self.writing.insert(key, id);
        let unit = &self.units[self.sites[target.plane as usize].unit as usize];
        if !unit.condemned.is_empty() {
            let mut latest = unit.condemned.iter().rev();
            let same = |item: &&Condemned| item.plane == target.plane && item.block == target.block;
            self.work[id].needs = latest.find(same).map_or(0, |item| item.serial);
        }
    }

    fn clean(&mut self, group: u16, layer: u32) -> bool {
        self.alone = false;
        let mut told = std::mem::take(&mut self.steps.told);
        let (mut job, mut erased) = (None, false);
        for step in &told {
            match *step {
                Told::Move { page, from, to } => {
                    let index = *job.get_or_insert_with(|| self.jobs.open(group, layer));
                    self.jobs.jobs[index as usize].programs_left += 1;
                    self.relocate((group, layer), index, page, (from, to));
                }
                Told::Erase { block } => {
                    let index = job.take().unwrap_or_else(|| self.jobs.open(group, layer));
                    self.jobs.jobs[index as usize].block = block;
                    self.condemn(index);
                    erased = true;
                }
                Told::Meta { to } => {
                    let target = self.space.place(group, layer, to);
                    let program_bytes = self.params.shape.page_bytes;
                    let new = Work::new(Purpose::Meta, self.now);
                    let id = self.work.insert(Work { target, program_bytes, group, ..new });
                    self.aim(id);
                    self.queue_program(id);
                }
                Told::MetaRead { .. } => {}
            }
        }
        told.clear();
        self.steps.told = told;
        self.note_urgency(group, layer);
        erased
    }

    fn relocate(
        &mut self,
        (group, layer): (u16, u32),
        job: u32,
        page: u32,
        (from, to): (Address, Address),
    ) {
        let source = self.space.place(group, layer, from);
        let target = self.space.place(group, layer, to);
        let bytes = self.params.shape.page_bytes;
        let (read_bytes, program_bytes) = (bytes, bytes);
        let found = self.find(source);
        let copy_back = self.params.schedule.copy_back
            && source.plane == target.plane
            && found == Source::Flash(source);
        let new = Work { page, ..Work::new(Purpose::Move, self.now) };
        let work = Work { source, target, read_bytes, program_bytes, group, job, copy_back, ..new };
        let id = self.work.insert(work);
        self.aim(id);
        self.read_from(id, found);
    }

    /// A block is to be erased once nothing in it is needed.
    fn condemn(&mut self, job: u32) {
        let Job { group, layer, block, serial, programs_left, .. } = self.jobs.jobs[job as usize];
        for plane in self.space.planes_of(group, layer) {
            let unit = self.sites[*plane as usize].unit;
            let plane = *plane;
            self.units[unit as usize].condemned.push(Condemned { plane, block, serial });
            self.erasing[plane as usize] += 1;
        }
        let late = self.hold(job, group, layer, block);
        self.jobs.jobs[job as usize].programs_left += late;
        if programs_left + late == 0 {
            self.erase(job);
        }
    }

    /// Makes a job wait for programs that are still to be done in its block; how many.
    fn hold(&mut self, job: u32, group: u16, layer: u32, block: u32) -> u32 {
        let mut late = 0;
        for index in 0..self.space.planes_of(group, layer).len() {
            let plane = self.space.planes_of(group, layer)[index];
            for page in 0..self.params.shape.pages_per_block {
                if self.writing.is_empty() {
                    return late;
                }
                let key = self.key(Place { plane, block, page });
                if let Some(id) = self.writing.get(&key).copied() {
                    self.work[id].holds = job;
                    late += 1;
                }
            }
        }
        late
    }

    fn erase(&mut self, job: u32) {
        let Job { group, layer, block, .. } = self.jobs.jobs[job as usize];
        let planes = self.space.planes_of(group, layer).len();
        self.jobs.jobs[job as usize].erases_left = planes as u32;
        for index in 0..planes {
            let plane = self.space.planes_of(group, layer)[index];
            let target = Place { plane, block, page: 0 };
            let new = Work::new(Purpose::Erase, self.now);
            let id = self.work.insert(Work { target, group, job, ..new });
            self.work[id].step = Step::Erase;
            self.enqueue(id);
        }
    }

    /// A page that a job waited for has been programmed.
    pub(super) fn release(&mut self, job: u32) {
        let left = &mut self.jobs.jobs[job as usize].programs_left;
        *left -= 1;
        if *left == 0 {
            self.erase(job);
        }
    }

    /// A block of one plane has been erased.
    pub(super) fn erased(&mut self, id: Id) {
        let Work { job, target, .. } = self.work[id];
        self.note_erased(target);
        self.work.remove(id);
        self.counters.erases += 1;
        let unit = self.sites[target.plane as usize].unit;
        let Job { group, layer, serial, .. } = self.jobs.jobs[job as usize];
        let unit = &mut self.units[unit as usize];
        unit.condemned.retain(|item| item.serial != serial || item.plane != target.plane);
        self.erasing[target.plane as usize] -= 1;
        let left = &mut self.jobs.jobs[job as usize].erases_left;
        *left -= 1;
        if *left == 0 {
            self.jobs.free.push(job);
        }
        self.note_urgency(group, layer);
    }

    /// Static wear levelling: empties the least erased block when the most erased is far ahead.
    pub(super) fn level(&mut self, group: u16, layer: u32) {
        let Some(spread) = self.params.collect.static_wear_spread else { return };
        let blocks = self.space.layer(group, layer).blocks();
        let most = blocks.iter().map(|block| block.erases).max().unwrap_or(0);
        let Some(least) = blocks.sealed().min_by_key(|block| (block.erases, block.id)) else {
            return;
        };
        if most - least.erases > spread
            && self.space.layer_mut(group, layer).clean(least.id, &mut self.steps)
        {
            self.counters.wear_moves += 1;
            self.absorb(group, layer);
        }
    }

    /// Notes in which planes of a layer erased blocks run out.
    pub(super) fn note_urgency(&mut self, group: u16, layer: u32) {
        if !self.params.schedule.gc_preemptible {
            return;
        }
        let collect = &self.params.collect;
        let blocks = f64::from(self.params.shape.blocks_per_plane);
        let least = ((collect.hard_threshold * blocks) as u32).max(1);
        let free = self.space.layer(group, layer).free_blocks();
        for plane in self.space.planes_of(group, layer) {
            let erased = free.saturating_sub(self.erasing[*plane as usize]);
            let unit = &mut self.units[self.sites[*plane as usize].unit as usize];
            let bit = 1_u64 << (*plane % 64);
            unit.urgent_planes =
                if erased < least { unit.urgent_planes | bit } else { unit.urgent_planes & !bit };
        }
    }

    /// Notes it for all layers.
    pub(super) fn note_urgency_everywhere(&mut self) {
        let layers: Vec<(u16, u32)> =
            self.space.layers().map(|(group, layer, _)| (group, layer)).collect();
        layers.into_iter().for_each(|(group, layer)| self.note_urgency(group, layer));
    }
}
