//! Blocks whose write-back is under way, or has failed.
//!
//! For: later reads, writes and trims of a block that the cache has evicted and the backing device
//! has not. Must never know: how a block is read. Units: blocks of backing devices. Of the stays of
//! one block only the last is known: what was written back before is older.
//!
//! An entry ends when its block is on the backing device: written back, or written whole or trimmed
//! by a later plan. An entry whose write-back has failed stays until the block is given up.

use crate::ids::{DeviceId, ResidentId};
use crate::step_graph::StepRef;
use crate::write_backs::DirtyResident;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// A block that has left the cache and is not on its backing device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeavingBlock {
    /// Its resident, whose slot still holds it.
    pub resident: ResidentId,
    /// The step that writes it back.
    pub write: StepRef,
    /// Its write-back has failed.
    pub failed: bool,
    /// The plan that evicted it.
    plan: u64,
}

/// All such blocks.
#[derive(Clone, Debug, Default)]
pub struct Leaving {
    blocks: HashMap<(DeviceId, u64), LeavingBlock, FixedState>,
}

impl Leaving {
    /// A block is being written back by a step; an earlier stay of it is known no more.
    pub fn begin(&mut self, block: &DirtyResident, write: StepRef, plan: u64) {
        let entry = LeavingBlock { resident: block.resident, write, failed: false, plan };
        self.blocks.insert((block.device, block.number), entry);
    }

    /// The last stay of a block, if it is not on its device.
    #[inline]
    pub fn find(&self, device: DeviceId, number: u64) -> Option<&LeavingBlock> {
        if self.blocks.is_empty() { None } else { self.blocks.get(&(device, number)) }
    }

    /// Blocks of a device are written whole, or trimmed, by a plan: those that left before, or by
    /// it, are there or void.
    pub fn end(&mut self, device: DeviceId, numbers: Range<u64>, plan: u64) {
        if self.blocks.is_empty() {
            return;
        }
        if numbers.end.saturating_sub(numbers.start) > self.blocks.len() as u64 {
            self.blocks.retain(|(on, number), block| {
                *on != device || block.plan > plan || !numbers.contains(number)
            });
            return;
        }
        for number in numbers {
            if self.find(device, number).is_some_and(|block| block.plan <= plan) {
                self.blocks.remove(&(device, number));
            }
        }
    }

    /// The write-back of a resident has failed.
    pub fn fail(&mut self, device: DeviceId, number: u64, resident: ResidentId) {
        let known = self.blocks.get_mut(&(device, number));
        if let Some(block) = known.filter(|block| block.resident == resident) {
            block.failed = true;
        }
    }

    /// Whether the write-back of a resident has failed and its stay is the last of its block.
    pub fn is_last(&self, device: DeviceId, number: u64, resident: ResidentId) -> bool {
        let known = self.find(device, number);
        known.is_some_and(|block| block.failed && block.resident == resident)
    }

    /// Takes out such a resident.
    pub fn take(&mut self, device: DeviceId, number: u64, resident: ResidentId) {
        if self.is_last(device, number, resident) {
            self.blocks.remove(&(device, number));
        }
    }

    /// Blocks of all tenants.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether no block is leaving.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    fn block(number: u64, resident: usize) -> DirtyResident {
        let (device, resident) = (DeviceId::new(1), ResidentId::new(resident));
        DirtyResident { device, number, resident, tenant: TenantId(number as u16 % 2) }
    }

    #[test]
    fn a_block_leaves_until_its_last_stay_is_on_the_device() {
        let (mut leaving, device) = (Leaving::default(), DeviceId::new(1));
        leaving.begin(&block(4, 0), StepRef::DONE, 1);
        leaving.begin(&block(5, 1), StepRef::DONE, 1);
        leaving.begin(&block(4, 2), StepRef::DONE, 3);
        leaving.fail(device, 4, ResidentId::new(0));
        assert!(
            leaving.find(device, 4).is_some_and(|block| !block.failed),
            "a later stay is newer"
        );
        leaving.end(device, 4..6, 1);
        assert_eq!((leaving.len(), leaving.find(device, 5)), (1, None));
        let last = ResidentId::new(2);
        assert!(!leaving.is_last(device, 4, last), "still under way");
        leaving.fail(device, 4, last);
        assert!(leaving.is_last(device, 4, last));
        leaving.take(device, 4, last);
        assert!(leaving.is_empty());
    }

    #[test]
    fn a_wide_trim_ends_what_left_before_it_on_its_device() {
        let mut leaving = Leaving::default();
        (0..10).for_each(|number| leaving.begin(&block(number, 0), StepRef::DONE, number));
        leaving.end(DeviceId::new(2), 0..1 << 40, 99);
        assert_eq!(leaving.len(), 10);
        leaving.end(DeviceId::new(1), 3..1 << 40, 7);
        let kept: Vec<bool> =
            (0..10).map(|number| leaving.find(DeviceId::new(1), number).is_some()).collect();
        let expected: Vec<bool> = (0..10).map(|number| !(3..=7).contains(&number)).collect();
        assert_eq!(kept, expected);
    }
}
