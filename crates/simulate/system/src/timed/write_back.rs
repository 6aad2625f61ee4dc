//! Write-backs: dirty blocks from the cache device to their backing devices.
//!
//! For: blocks that leave the cache or are cleaned while they stay. Must never know: why they do.
//! Units: blocks, bytes. Of the blocks that leave with one plan neighbours are written by one
//! command, and read by one where they also lie side by side in the cache: what was written
//! together mostly leaves together.

use super::emit::work;
use super::graph::StepRef;
use super::machine::{Action, Machine, Work};
use super::residences::NONE;
use cachewright_types::{Op, TenantId};

/// A dirty block that leaves the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// Its backing device.
    pub device: usize,
    /// Its number there.
    pub number: u64,
    /// Its residence.
    pub residence: u32,
    /// Whose it is.
    pub tenant: TenantId,
}

impl Machine {
    /// Begins to write back a block that stays.
    pub fn clean(&mut self, residence: u32, tenant: TenantId, number: u64) {
        self.begin_clean(residence, tenant, number);
        self.run();
    }

    /// The same in the middle of a plan.
    pub(super) fn begin_clean(&mut self, residence: u32, tenant: TenantId, number: u64) {
        self.cleaning += 1;
        let device = self.backing_of[tenant.index()];
        self.write_run(&[Outgoing { device, number, residence, tenant }], true);
    }

    /// Begins to write back the blocks that have left with the plan so far.
    pub(super) fn write_back(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let mut leaving = std::mem::take(&mut self.outgoing);
        leaving.sort_by_key(|block| (block.device, block.number));
        let neighbours = |a: &Outgoing, b: &Outgoing| {
            (a.device, a.number + 1, a.tenant) == (b.device, b.number, b.tenant)
        };
        for run in leaving.chunk_by(neighbours) {
            self.write_run(run, false);
        }
        leaving.clear();
        self.outgoing = leaving;
    }

    /// Writes neighbours back, once all of them are read from the cache device.
    fn write_run(&mut self, run: &[Outgoing], stays: bool) {
        let Outgoing { device, number, tenant, .. } = run[0];
        let shift = self.block_shift;
        let (offset, length) = (number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Write, offset, length };
        let pins = run.iter().map(|block| block.residence).collect();
        let write = Work { pins, cleaning: stays, ..work(action, tenant, false) };
        let write = self.step(write, None);
        // Those that change places may lie elsewhere when they are read.
        let slot = |block: &Outgoing| {
            let found = self.residences.get(block.residence);
            (found.slot != NONE && found.moving == NONE).then_some(found.slot)
        };
        let beside =
            |a: &Outgoing, b: &Outgoing| slot(a).is_some_and(|slot_a| slot(b) == Some(slot_a + 1));
        let together: Vec<&[Outgoing]> = run.chunk_by(beside).collect();
        let reads: Vec<StepRef> = together.iter().map(|run| self.read_slots(run)).collect();
        for read in &reads {
            self.graph.wait(write, *read);
        }
        let numbers = number..number + run.len() as u64;
        self.wait_for_writes(write, device, numbers.clone());
        self.note_writes(write, device, numbers);
        for step in reads.into_iter().chain([write]) {
            self.release(step);
        }
    }

    /// Reads blocks that lie side by side on the cache device.
    fn read_slots(&mut self, run: &[Outgoing]) -> StepRef {
        let Outgoing { residence, tenant, .. } = run[0];
        let length = (run.len() as u64) << self.block_shift;
        let action = Action::Cache { op: Op::Read, residence, skip: 0, length };
        let pins = run.iter().map(|block| block.residence).collect();
        let read = self.step(Work { pins, ..work(action, tenant, false) }, None);
        for block in run {
            let found = *self.residences.get(block.residence);
            for before in [found.room, found.fill, found.writer] {
                self.graph.wait(read, before);
            }
        }
        read
    }
}
