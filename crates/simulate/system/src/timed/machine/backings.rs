//! The backing device of each tenant, and the writes under way to blocks of backing devices.
//!
//! For: reads and writes of a block in the order in which they were asked for. Must never know: the
//! cache, why a block is written. Units: blocks, bytes. Only the last write to a block is known:
//! each waits for the one before it.

use super::ids::DeviceId;
use super::step::Steps;
use super::step_graph::StepRef;
use cachewright_types::{TenantId, block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// Bits of a device's number in the name of a block.
const DEVICE_BITS: u32 = 12;

/// Backing devices by tenant, and the writes under way to them.
#[derive(Clone, Debug)]
pub struct Backings {
    of_tenant: Vec<DeviceId>,
    /// The last write under way to each block.
    writing: HashMap<u64, StepRef, FixedState>,
    block_shift: u32,
}

impl Backings {
    /// The numbers of the tenants' devices, with blocks of `1 << block_shift` bytes.
    pub fn new(of_tenant: &[usize], block_shift: u32) -> Backings {
        let known = of_tenant.iter().all(|device| *device < 1 << DEVICE_BITS);
        assert!(known, "a block's name has {DEVICE_BITS} bits for its device");
        let of_tenant = of_tenant.iter().map(|device| DeviceId::new(*device)).collect();
        Backings { of_tenant, writing: HashMap::default(), block_shift }
    }

    /// Tenants.
    pub fn tenants(&self) -> usize {
        self.of_tenant.len()
    }

    /// A tenant's device.
    #[inline]
    pub fn of(&self, tenant: TenantId) -> DeviceId {
        self.of_tenant[tenant.index()]
    }

    fn key(device: DeviceId, number: u64) -> u64 {
        number << DEVICE_BITS | u64::from(device.0)
    }

    /// Lets a step wait for the writes under way to some blocks of a device.
    pub fn wait_for_writes(
        &self,
        steps: &mut Steps,
        step: StepRef,
        device: DeviceId,
        blocks: Range<u64>,
    ) {
        if self.writing.is_empty() {
            return;
        }
        for number in blocks {
            if let Some(write) = self.writing.get(&Backings::key(device, number)) {
                steps.wait(step, *write);
            }
        }
    }

    /// A step writes some blocks of a device.
    pub fn note_writes(&mut self, step: StepRef, device: DeviceId, blocks: Range<u64>) {
        for number in blocks {
            self.writing.insert(Backings::key(device, number), step);
        }
    }

    /// A write of bytes of a device is done: forgets it unless another one waits for it.
    pub fn end_write(&mut self, steps: &Steps, device: DeviceId, offset: u64, length: u64) {
        for number in block_numbers(offset, length, self.block_shift) {
            let key = Backings::key(device, number);
            if self.writing.get(&key).is_some_and(|step| steps.is_done(*step)) {
                self.writing.remove(&key);
            }
        }
    }

    /// Blocks to which a write is under way.
    pub fn writes(&self) -> usize {
        self.writing.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::{Action, Step};
    use super::*;

    #[test]
    fn a_read_waits_for_the_last_write_to_its_block_on_its_device() {
        let mut steps = Steps::default();
        let mut add = || steps.add(Step::new(Action::Pass, TenantId(0)), None);
        let [first, second, read, other] = [add(), add(), add(), add()];
        let mut backings = Backings::new(&[1, 2], 12);
        let devices = [TenantId(0), TenantId(1)].map(|tenant| backings.of(tenant));
        assert_eq!((devices, backings.tenants()), ([DeviceId(1), DeviceId(2)], 2));
        backings.note_writes(first, devices[0], 4..6);
        backings.wait_for_writes(&mut steps, second, devices[0], 5..6);
        backings.note_writes(second, devices[0], 5..6);
        backings.wait_for_writes(&mut steps, read, devices[0], 5..9);
        backings.wait_for_writes(&mut steps, other, devices[1], 5..9);
        [first, second, read, other].into_iter().for_each(|step| steps.release(step));
        assert_eq!([steps.next_ready(), steps.next_ready()], [Some(first.id()), Some(other.id())]);
        steps.finish(first.id());
        backings.end_write(&steps, devices[0], 4 << 12, 2 << 12);
        assert_eq!((steps.next_ready(), backings.writes()), (Some(second.id()), 1));
        steps.finish(second.id());
        backings.end_write(&steps, devices[0], 5 << 12, 1 << 12);
        assert_eq!((steps.next_ready(), backings.writes()), (Some(read.id()), 0));
    }
}
