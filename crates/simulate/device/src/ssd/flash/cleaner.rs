//! Cleaning and wear levelling: what the translation layer decided becomes reads, programs and
//! erases.
//!
//! The mapping counts a page as moved at once. Its old place is read until the new one is
//! programmed, and a block is erased once all its moves are done. A request therefore waits for
//! cleaning only on a shared die, and no page is lost. Units: pages, blocks.

use super::address_space::AddressSpace;
use super::executor::{DataSource, Executor};
use super::geometry::{EraseSerial, JobId, LayerId, WorkId};
use super::params::FlashParams;
use super::work::{FlashWork, WorkPurpose};
use cachewright_ftl::Address;
use cachewright_ftl::layer::LayerStep;

/// Blocks that are cleaned, and the rules of cleaning.
#[derive(Clone, Debug)]
pub struct FlashCleaner {
    jobs: EraseJobs,
    /// Blocks that will be erased, by plane.
    erasing: Vec<u32>,
    page_bytes: u32,
    /// Pages that stay in their plane do not cross the channel.
    copy_back: bool,
    /// Cleaning waits for the host where more blocks than this are erased; none: it never waits.
    hard_blocks: Option<u32>,
    /// Erases that the most erased block may be ahead of the least erased; none: no levelling.
    wear_spread: Option<u32>,
}

impl FlashCleaner {
    /// Nothing is cleaned.
    pub fn new(params: &FlashParams) -> FlashCleaner {
        let (shape, collect) = (&params.shape, &params.collect);
        let blocks = f64::from(shape.blocks_per_plane);
        let hard_blocks = ((collect.hard_threshold * blocks) as u32).max(1);
        FlashCleaner {
            jobs: EraseJobs::default(),
            erasing: vec![0; shape.planes() as usize],
            page_bytes: shape.page_bytes,
            copy_back: params.schedule.copy_back,
            hard_blocks: params.schedule.gc_preemptible.then_some(hard_blocks),
            wear_spread: collect.static_wear_spread,
        }
    }

    /// Makes work of what a layer has decided; whether a block is to be erased.
    #[inline]
    pub fn carry_out(
        &mut self,
        space: &mut AddressSpace,
        layer: LayerId,
        executor: &mut Executor,
    ) -> bool {
        if self.hard_blocks.is_some() {
            self.note_urgency(space, layer, executor);
        }
        !space.steps().ordered.is_empty() && self.clean(space, layer, executor)
    }

    fn clean(&mut self, space: &mut AddressSpace, layer: LayerId, executor: &mut Executor) -> bool {
        executor.set_alone(false);
        let mut ordered = std::mem::take(&mut space.steps_mut().ordered);
        let (mut job, mut erases) = (None, false);
        for step in &ordered {
            match *step {
                LayerStep::Move { page, from, to } => {
                    let id = *job.get_or_insert_with(|| self.jobs.open(layer));
                    self.jobs.await_programs(id, 1);
                    self.relocate(space, id, page, from, to, executor);
                }
                LayerStep::Erase { block } => {
                    let id = job.take().unwrap_or_else(|| self.jobs.open(layer));
                    self.jobs.name_block(id, block);
                    self.condemn(space, id, executor);
                    erases = true;
                }
                LayerStep::Meta { to } => {
                    let id = executor.add(WorkPurpose::Meta, |work| {
                        work.group = layer.group;
                        work.target = space.place(layer, to);
                        work.program_bytes = self.page_bytes;
                    });
                    executor.aim(id);
                    executor.program(id);
                }
                LayerStep::MetaRead { .. } => {}
            }
        }
        ordered.clear();
        space.steps_mut().ordered = ordered;
        self.note_urgency(space, layer, executor);
        erases
    }

    fn relocate(
        &mut self,
        space: &AddressSpace,
        job: JobId,
        page: u32,
        from: Address,
        to: Address,
        executor: &mut Executor,
    ) {
        let layer = self.jobs.get(job).layer;
        let (source, target) = (space.place(layer, from), space.place(layer, to));
        let data = executor.find(source);
        let in_plane = source.plane == target.plane && data == DataSource::Flash(source);
        let id = executor.add(WorkPurpose::Move, |work| {
            (work.group, work.page) = (layer.group, page);
            work.source = source;
            work.target = target;
            work.read_bytes = self.page_bytes;
            work.program_bytes = self.page_bytes;
            work.job = job;
            work.copy_back = self.copy_back && in_plane;
        });
        executor.aim(id);
        if executor.read(id, data) {
            executor.program(id);
        }
    }

    /// A block is to be erased once nothing in it is needed.
    fn condemn(&mut self, space: &AddressSpace, id: JobId, executor: &mut Executor) {
        let EraseJob { layer, block, serial, .. } = *self.jobs.get(id);
        let mut late = 0;
        for plane in space.planes_of(layer) {
            let (_, scheduler) = executor.parts();
            scheduler.unit_of(*plane).queues.condemn(*plane, block, serial);
            self.erasing[plane.index()] += 1;
        }
        for plane in space.planes_of(layer) {
            late += executor.delay(id, *plane, block);
        }
        if self.jobs.await_programs(id, late) == 0 {
            self.erase(space, id, executor);
        }
    }

    fn erase(&mut self, space: &AddressSpace, job: JobId, executor: &mut Executor) {
        let EraseJob { layer, block, .. } = *self.jobs.get(job);
        let planes = space.planes_of(layer);
        self.jobs.await_erases(job, planes.len() as u32);
        for plane in planes {
            executor.erase(|work| {
                work.group = layer.group;
                work.job = job;
                work.target.plane = *plane;
                work.target.block = block;
            });
        }
    }

    /// A page that a job waits for has been programmed.
    pub fn program_done(&mut self, space: &AddressSpace, job: JobId, executor: &mut Executor) {
        if self.jobs.program_done(job) {
            self.erase(space, job, executor);
        }
    }

    /// A block of one plane has been erased.
    pub fn erased(&mut self, space: &AddressSpace, id: WorkId, executor: &mut Executor) {
        let FlashWork { job, target, .. } = *executor.work(id);
        executor.remove(id);
        executor.counters().erases += 1;
        let EraseJob { layer, serial, .. } = *self.jobs.get(job);
        let (_, scheduler) = executor.parts();
        scheduler.unit_of(target.plane).queues.absolve(target.plane, serial);
        self.erasing[target.plane.index()] -= 1;
        self.jobs.erase_done(job);
        self.note_urgency(space, layer, executor);
    }

    /// Static wear levelling: empties the least erased block when the most erased is far ahead.
    pub fn level(&mut self, space: &mut AddressSpace, layer: LayerId, executor: &mut Executor) {
        let Some(spread) = self.wear_spread else { return };
        let blocks = space.layer(layer).blocks();
        let max = blocks.iter().map(|block| block.erases).max().unwrap_or(0);
        let Some(min) = blocks.sealed().min_by_key(|block| (block.erases, block.id)) else {
            return;
        };
        let (ahead, block) = (max - min.erases, min.id);
        if ahead > spread && space.clean(layer, block) {
            executor.counters().wear_moves += 1;
            self.carry_out(space, layer, executor);
        }
    }

    /// Notes in which planes of a layer erased blocks run out.
    fn note_urgency(&self, space: &AddressSpace, layer: LayerId, executor: &mut Executor) {
        let Some(hard_blocks) = self.hard_blocks else { return };
        let free = space.layer(layer).free_blocks();
        for plane in space.planes_of(layer) {
            let erased = free.saturating_sub(self.erasing[plane.index()]);
            let (_, scheduler) = executor.parts();
            scheduler.unit_of(*plane).set_urgent(*plane, erased < hard_blocks);
        }
    }

    /// Notes it for all layers.
    pub fn note_urgency_everywhere(&self, space: &AddressSpace, executor: &mut Executor) {
        space.layers().for_each(|(layer, _)| self.note_urgency(space, layer, executor));
    }

    /// The layer of a job.
    pub fn layer_of(&self, job: JobId) -> LayerId {
        self.jobs.get(job).layer
    }

    /// What must hold once nothing is to come.
    pub fn audit_rest(&self) -> Result<(), String> {
        let (jobs, erases) = (self.jobs.len(), self.erasing.iter().sum::<u32>());
        if jobs > 0 || erases > 0 {
            let words = "blocks to clean and to erase are left and nothing is to come";
            return Err(format!("{jobs} and {erases} {words}"));
        }
        Ok(())
    }
}

/// One block on its way to be erased.
#[derive(Clone, Copy, Debug)]
struct EraseJob {
    /// Its layer.
    pub layer: LayerId,
    /// Its block, once the layer has named it.
    pub block: u32,
    /// The number of its erase.
    pub serial: EraseSerial,
    /// Programs that come before the erase: of pages moved, and of pages still on their way to the
    /// block.
    programs_left: u32,
    erases_left: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
struct EraseJobs {
    jobs: Vec<EraseJob>,
    free: Vec<JobId>,
    /// Numbers given to erases so far.
    serials: u32,
}

impl EraseJobs {
    /// A new job.
    pub fn open(&mut self, layer: LayerId) -> JobId {
        self.serials += 1;
        let serial = EraseSerial(self.serials);
        let job = EraseJob { layer, block: 0, serial, programs_left: 0, erases_left: 0 };
        match self.free.pop() {
            Some(id) => {
                self.jobs[id.index()] = job;
                id
            }
            None => {
                self.jobs.push(job);
                JobId(self.jobs.len() as u32 - 1)
            }
        }
    }

    /// A job.
    pub fn get(&self, id: JobId) -> &EraseJob {
        &self.jobs[id.index()]
    }

    /// The block of a job is known.
    fn name_block(&mut self, id: JobId, block: u32) {
        self.jobs[id.index()].block = block;
    }

    /// More programs come before the erase; how many do now.
    fn await_programs(&mut self, id: JobId, programs: u32) -> u32 {
        let left = &mut self.jobs[id.index()].programs_left;
        *left += programs;
        *left
    }

    /// A program is done; whether it was the last.
    pub fn program_done(&mut self, id: JobId) -> bool {
        let left = &mut self.jobs[id.index()].programs_left;
        assert!(*left > 0, "a job waits for each of its programs once");
        *left -= 1;
        *left == 0
    }

    /// The block is erased in so many planes.
    fn await_erases(&mut self, id: JobId, planes: u32) {
        self.jobs[id.index()].erases_left = planes;
    }

    /// The block is erased in one plane more; the job is closed with the last.
    fn erase_done(&mut self, id: JobId) {
        let left = &mut self.jobs[id.index()].erases_left;
        assert!(*left > 0, "a block is erased once in each plane");
        *left -= 1;
        if *left == 0 {
            self.free.push(id);
        }
    }

    /// Blocks under way.
    pub fn len(&self) -> usize {
        self.jobs.len() - self.free.len()
    }
}
