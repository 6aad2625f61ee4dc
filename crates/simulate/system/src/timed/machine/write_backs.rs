//! Write-backs: dirty blocks from the cache device to their backing devices.
//!
//! For: blocks that are evicted, or cleaned while they stay. Must never know: why they are. Units:
//! blocks, bytes. Of the blocks evicted by one plan neighbours are written by one command, and read
//! by one where they also lie side by side on the cache device: blocks that were written together
//! mostly leave together.

use super::backings::Backings;
use super::ids::{DeviceId, ResidentId, SlotId};
use super::resident_table::ResidentTable;
use super::step::{Action, Step, Steps};
use super::step_graph::StepRef;
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
    cleaning: u32,
    block_shift: u32,
}

impl WriteBacks {
    /// None of blocks of `1 << block_shift` bytes.
    pub fn new(block_shift: u32) -> WriteBacks {
        WriteBacks { evicted: Vec::new(), cleaning: 0, block_shift }
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
    pub fn clean(
        &mut self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        backings: &mut Backings,
        block: DirtyResident,
    ) {
        self.cleaning += 1;
        self.write_run(steps, residents, backings, (&[block], true));
    }

    /// Begins to write back the blocks noted since the last call.
    pub fn begin_evicted(
        &mut self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        backings: &mut Backings,
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
            self.write_run(steps, residents, backings, (run, false));
        }
        evicted.clear();
        self.evicted = evicted;
    }

    /// Writes neighbours back, once all of them are read from the cache device.
    fn write_run(
        &self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        backings: &mut Backings,
        (run, cleaning): (&[DirtyResident], bool),
    ) {
        let DirtyResident { device, number, tenant, .. } = run[0];
        let shift = self.block_shift;
        let (offset, length) = (number << shift, (run.len() as u64) << shift);
        let action = Action::Device { device, op: Op::Write, offset, length };
        let pins = run.iter().map(|block| block.resident).collect();
        let write = Step { cleaning, ..Step::new(action, tenant).pinning(pins) };
        let write = write.add(steps, residents, None);
        // Blocks that change places may lie in another slot when they are read.
        let slot = |residents: &ResidentTable, block: &DirtyResident| {
            let place = residents.places().get(block.resident);
            place.slot().filter(|_| place.change().is_none())
        };
        let beside = |a: &DirtyResident, b: &DirtyResident| {
            let next = slot(residents, a).map(|slot| SlotId(slot.0 + 1));
            next.is_some() && slot(residents, b) == next
        };
        let together: Vec<&[DirtyResident]> = run.chunk_by(beside).collect();
        let reads: Vec<StepRef> =
            together.iter().map(|run| self.read_run(steps, residents, run)).collect();
        for read in &reads {
            steps.wait(write, *read);
        }
        let numbers = number..number + run.len() as u64;
        backings.wait_for_writes(steps, write, device, numbers.clone());
        backings.note_writes(write, device, numbers);
        for step in reads.into_iter().chain([write]) {
            steps.release(step);
        }
    }

    /// Reads blocks that lie side by side on the cache device.
    fn read_run(
        &self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        run: &[DirtyResident],
    ) -> StepRef {
        let DirtyResident { resident, tenant, .. } = run[0];
        let length = (run.len() as u64) << self.block_shift;
        let action = Action::Cache { op: Op::Read, resident, skip: 0, length };
        let pins = run.iter().map(|block| block.resident).collect();
        let read = Step::new(action, tenant).pinning(pins).add(steps, residents, None);
        for block in run {
            let known = residents.steps(block.resident);
            for before in [known.slot_granted, known.fill, known.writer] {
                steps.wait(read, before);
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::Slots;
    use super::*;
    use cachewright_cache::Cached;
    use cachewright_policy::Region;
    use cachewright_types::BlockId;

    /// The commands that may begin now, which then end: what they do, where, how many blocks.
    fn carry_out(steps: &mut Steps) -> Vec<(Op, u64, u64)> {
        let ready: Vec<_> = std::iter::from_fn(|| steps.next_ready()).collect();
        let commands = ready.into_iter().map(|step| match steps.finish(step).unwrap().action {
            Step { action: Action::Cache { op, resident, length, .. }, .. } => {
                (op, u64::from(resident.0), length >> 12)
            }
            Step { action: Action::Device { op, offset, length, .. }, .. } => {
                (op, offset >> 12, length >> 12)
            }
            other => panic!("{other:?}"),
        });
        commands.collect()
    }

    #[test]
    fn neighbours_are_written_by_one_command_and_read_by_one_where_they_lie_side_by_side() {
        let (mut steps, mut residents) = (Steps::default(), ResidentTable::new(Slots::plain(8)));
        let (mut backings, mut write_backs) = (Backings::new(&[1], 12), WriteBacks::new(12));
        // Blocks 5, 6, 9 and 7 lie in slots 0 to 3 as residents 0 to 3.
        for number in [5, 6, 9, 7] {
            let (id, region) = (BlockId(number), Region::Any);
            let number = u64::from(number);
            let cached = Cached { pool: 0, id, tenant: TenantId(0), number, region };
            let resident = residents.admit(&cached);
            let (device, tenant) = (backings.of(TenantId(0)), TenantId(0));
            write_backs.note_evicted(DirtyResident { device, number, resident, tenant });
        }
        write_backs.begin_evicted(&mut steps, &mut residents, &mut backings);
        let read = |resident, blocks| (Op::Read, resident, blocks);
        assert_eq!(carry_out(&mut steps), [read(0, 2), read(3, 1), read(2, 1)]);
        assert_eq!(carry_out(&mut steps), [(Op::Write, 5, 3), (Op::Write, 9, 1)]);
        assert_eq!((backings.writes(), residents.pins(ResidentId(0))), (4, 2));
        let block = DirtyResident {
            device: DeviceId(1),
            number: 9,
            resident: ResidentId(2),
            tenant: TenantId(0),
        };
        write_backs.clean(&mut steps, &mut residents, &mut backings, block);
        assert_eq!(write_backs.cleaning(), 1);
        assert_eq!(carry_out(&mut steps), [read(2, 1)]);
        write_backs.end_clean();
        assert_eq!(write_backs.cleaning(), 0);
    }
}
