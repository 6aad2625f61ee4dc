//! Write-backs: dirty blocks from the cache device to their backing devices.
//!
//! For: blocks that are evicted, or cleaned while they stay. Must never know: why they are. Units:
//! blocks, bytes. Of the blocks evicted by one plan neighbours are written by one command, and read
//! by one where they also lie side by side on the cache device: blocks that were written together
//! mostly leave together.

use crate::ids::{DeviceId, ResidentId, SlotId};
use crate::placement::Placement;
use crate::state::StepState;
use crate::step::{Action, Step};
use crate::step_graph::StepRef;
use cachewright_types::{Op, TenantId};

/// A dirty block to be written back.
#[derive(Clone, Copy, Debug)]
pub struct DirtyResident {
    /// Its backing device.
    pub device: DeviceId,
    /// Its number there.
    pub number: u64,
    /// The resident.
    pub resident: ResidentId,
    /// The tenant whose block it is.
    pub tenant: TenantId,
}

/// Write-backs to be begun, and those under way of blocks that stay.
#[derive(Clone, Debug)]
pub struct WriteBacks {
    /// Dirty blocks evicted by the plan at hand.
    evicted: Vec<DirtyResident>,
    /// Reads that a write waits for; kept for its memory.
    reads: Vec<StepRef>,
    cleaning: u32,
    block_shift: u32,
}

impl WriteBacks {
    /// None of blocks of `1 << block_shift` bytes.
    pub fn new(block_shift: u32) -> WriteBacks {
        WriteBacks { evicted: Vec::new(), reads: Vec::new(), cleaning: 0, block_shift }
    }

    /// Write-backs under way of blocks that stay.
    pub fn cleaning(&self) -> u32 {
        self.cleaning
    }

    /// A write-back of a block that stays is done.
    pub fn end_clean(&mut self) {
        self.cleaning -= 1;
    }

    /// Notes a dirty block that the plan at hand evicts.
    pub fn note_evicted(&mut self, block: DirtyResident) {
        self.evicted.push(block);
    }

    /// Begins to write back a block that stays.
    pub fn clean<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        block: DirtyResident,
        decision: u64,
    ) {
        self.cleaning += 1;
        self.write_run(state, (&[block], true), decision);
    }

    /// Begins to write back the blocks noted since the last call.
    pub fn begin_evicted<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        decision: u64,
    ) {
        if self.evicted.is_empty() {
            return;
        }
        let mut evicted = std::mem::take(&mut self.evicted);
        evicted.sort_by_key(|block| (block.device, block.number));
        let neighbours = |a: &DirtyResident, b: &DirtyResident| {
            (a.device, a.number + 1, a.tenant) == (b.device, b.number, b.tenant)
        };
        for run in evicted.chunk_by(neighbours) {
            self.write_run(state, (run, false), decision);
        }
        evicted.clear();
        self.evicted = evicted;
    }

    /// Writes neighbours back, once all of them are read from the cache device.
    fn write_run<P: Placement, N: Copy + Default>(
        &mut self,
        state: &mut StepState<P, N>,
        (run, cleaning): (&[DirtyResident], bool),
        decision: u64,
    ) {
        let DirtyResident { device, number, tenant, .. } = run[0];
        let shift = self.block_shift;
        let (offset, length) = (number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Write, offset, length };
        run.iter().for_each(|block| state.residents.note_number(block.resident, block.number));
        let pins = run.iter().map(|block| block.resident).collect();
        let write = Step::new(action, tenant).pinning(pins).of_decision(decision);
        let write = state.add(Step { cleaning, ..write }, None);
        let mut rest = run;
        while !rest.is_empty() {
            let (together, others) = rest.split_at(beside_each_other(&state.placement, rest));
            let read = self.read_run(state, together, decision);
            self.reads.push(read);
            rest = others;
        }
        for read in &self.reads {
            state.graph.need(write, *read);
        }
        let numbers = number..number + run.len() as u64;
        state.backings.wait_for_changes(&mut state.graph, write, device, numbers.clone());
        state.backings.note_writes(write, device, numbers);
        if !cleaning {
            run.iter().for_each(|block| state.leaving.begin(block, write, decision));
        }
        for step in self.reads.drain(..).chain([write]) {
            state.graph.release(step);
        }
    }

    /// Reads blocks that lie side by side on the cache device.
    fn read_run<P: Placement, N: Copy + Default>(
        &self,
        state: &mut StepState<P, N>,
        run: &[DirtyResident],
        decision: u64,
    ) -> StepRef {
        let DirtyResident { resident, tenant, .. } = run[0];
        let length = (run.len() as u64) << self.block_shift;
        let action = Action::Cache { op: Op::Read, resident, skip: 0, length };
        let pins = run.iter().map(|block| block.resident).collect();
        let read = Step::new(action, tenant).pinning(pins).of_decision(decision);
        let read = state.add(read, None);
        for block in run {
            let known = *state.residents.steps(block.resident);
            for before in [known.slot_granted, known.fill, known.writer] {
                state.graph.need(read, before);
            }
            if state.residents.is_lost(block.resident) {
                state.graph.fail(read);
            }
        }
        read
    }
}

/// How many blocks from the first on lie side by side on the cache device. Blocks that change
/// places may lie in another slot when they are read.
fn beside_each_other<P: Placement>(placement: &P, run: &[DirtyResident]) -> usize {
    let slot = |block: &DirtyResident| {
        let moves = placement.is_moving(block.resident);
        placement.slot(block.resident).filter(|_| !moves)
    };
    let beside = |pair: &&[DirtyResident]| {
        let next = slot(&pair[0]).map(|slot| SlotId(slot.0 + 1));
        next.is_some() && slot(&pair[1]) == next
    };
    1 + run.windows(2).take_while(beside).count()
}
