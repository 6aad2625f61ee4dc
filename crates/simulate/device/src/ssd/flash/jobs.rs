//! Blocks on their way to be erased.
//!
//! For: what each still waits for. Must never know: queues, how victims are chosen. Units: blocks,
//! programs, erases.

use super::ids::{EraseSerial, JobId, LayerId};

/// One block on its way to be erased.
#[derive(Clone, Copy, Debug)]
pub struct EraseJob {
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
pub struct EraseJobs {
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
    pub fn name_block(&mut self, id: JobId, block: u32) {
        self.jobs[id.index()].block = block;
    }

    /// More programs come before the erase; how many do now.
    pub fn await_programs(&mut self, id: JobId, programs: u32) -> u32 {
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
    pub fn await_erases(&mut self, id: JobId, planes: u32) {
        self.jobs[id.index()].erases_left = planes;
    }

    /// The block is erased in one plane more; the job is closed with the last.
    pub fn erase_done(&mut self, id: JobId) {
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
