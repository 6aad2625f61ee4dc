//! The backing device of each tenant: what changes its blocks, and evicted blocks that it does not
//! have yet.
//!
//! Reads, writes and trims of a block follow the order in which they were requested. Only the last
//! write to a block is known: each waits for the one before it. A trim waits for the writes and
//! trims under way in its range, and what comes later in its range waits for the trim.

use crate::plan_to_steps::DirtyResident;
use crate::step_graph::{DeviceId, ResidentId, StepGraph, StepRef};
use cachewright_types::{TenantId, block_numbers};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::ops::Range;

/// A block of a backing device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BackingBlock {
    number: u64,
    device: DeviceId,
}

/// A trim under way.
#[derive(Clone, Debug)]
struct OpenTrim {
    device: DeviceId,
    blocks: Range<u64>,
    step: StepRef,
}

/// Backing devices by tenant, and the writes and trims under way to them.
#[derive(Clone, Debug)]
pub struct Backings {
    by_tenant: Vec<DeviceId>,
    /// The last write under way to each block.
    writing: HashMap<BackingBlock, StepRef, FixedState>,
    /// Trims under way, in the order in which they were requested.
    trims: Vec<OpenTrim>,
    block_shift: u32,
}

impl Backings {
    /// The numbers of the tenants' devices, with blocks of `1 << block_shift` bytes.
    pub fn new(by_tenant: &[usize], block_shift: u32) -> Backings {
        let by_tenant = by_tenant.iter().map(|device| DeviceId::new(*device)).collect();
        Backings { by_tenant, writing: HashMap::default(), trims: Vec::new(), block_shift }
    }

    /// Tenants.
    pub fn tenants(&self) -> usize {
        self.by_tenant.len()
    }

    /// A tenant's device.
    #[inline]
    pub fn device_of(&self, tenant: TenantId) -> DeviceId {
        self.by_tenant[tenant.index()]
    }

    /// The writes and trims under way in a range of blocks of a device. Costs the smaller of the
    /// range's blocks and the blocks being written.
    fn each_change(&self, device: DeviceId, blocks: Range<u64>, mut each: impl FnMut(StepRef)) {
        if !self.writing.is_empty() {
            if blocks.end.saturating_sub(blocks.start) <= self.writing.len() as u64 {
                let writes = blocks.clone().filter_map(|number| {
                    self.writing.get(&BackingBlock { number, device }).copied()
                });
                writes.for_each(&mut each);
            } else {
                let within =
                    |block: &BackingBlock| block.device == device && blocks.contains(&block.number);
                let writes = self.writing.iter().filter(|(block, _)| within(block));
                writes.for_each(|(_, step)| each(*step));
            }
        }
        for trim in &self.trims {
            let overlap = trim.blocks.start < blocks.end && blocks.start < trim.blocks.end;
            if overlap && trim.device == device {
                each(trim.step);
            }
        }
    }

    /// Lets a write or a trim wait for what is under way to some blocks of a device.
    pub fn wait_for_changes<A, N: Copy + Default>(
        &self,
        graph: &mut StepGraph<A, N>,
        step: StepRef,
        device: DeviceId,
        blocks: Range<u64>,
    ) {
        self.each_change(device, blocks, |change| graph.wait(step, change));
    }

    /// Lets a read wait for what is under way to some blocks of a device; it fails if that fails.
    pub fn need_changes<A, N: Copy + Default>(
        &self,
        graph: &mut StepGraph<A, N>,
        step: StepRef,
        device: DeviceId,
        blocks: Range<u64>,
    ) {
        self.each_change(device, blocks, |change| graph.need(step, change));
    }

    /// Whether something else than a write is under way to a block, as its last change or a trim.
    pub fn is_changing(&self, device: DeviceId, number: u64, write: StepRef) -> bool {
        let last = self.writing.get(&BackingBlock { number, device });
        let trims = || self.trims.iter().filter(|trim| trim.device == device);
        last.is_some_and(|step| *step != write) || trims().any(|trim| trim.blocks.contains(&number))
    }

    /// A step writes some blocks of a device.
    pub fn note_writes(&mut self, step: StepRef, device: DeviceId, blocks: Range<u64>) {
        for number in blocks {
            self.writing.insert(BackingBlock { number, device }, step);
        }
    }

    /// A step trims bytes of a device.
    pub fn note_trim(&mut self, step: StepRef, device: DeviceId, offset: u64, length: u64) {
        let blocks = block_numbers(offset, length, self.block_shift);
        self.trims.push(OpenTrim { device, blocks, step });
    }

    /// A write of bytes of a device is done: forgets it unless another one waits for it.
    pub fn end_write<A, N: Copy + Default>(
        &mut self,
        graph: &StepGraph<A, N>,
        device: DeviceId,
        offset: u64,
        length: u64,
    ) {
        for number in block_numbers(offset, length, self.block_shift) {
            let block = BackingBlock { number, device };
            if self.writing.get(&block).is_some_and(|step| graph.is_done(*step)) {
                self.writing.remove(&block);
            }
        }
    }

    /// A trim is done: forgets it.
    pub fn end_trims<A, N: Copy + Default>(&mut self, graph: &StepGraph<A, N>) {
        self.trims.retain(|trim| !graph.is_done(trim.step));
    }

    /// Blocks to which a write is under way, and trims under way.
    pub fn changes(&self) -> usize {
        self.writing.len() + self.trims.len()
    }
}

/// A block that has left the cache and is not on its backing device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionWriteBack {
    /// Its resident, whose slot still holds it.
    pub resident: ResidentId,
    /// The step that writes it back.
    pub write: StepRef,
    /// Its write-back has failed.
    pub failed: bool,
    /// The plan that evicted it.
    plan: u64,
}

/// All blocks whose write-back is under way, or has failed: later reads, writes and trims of them
/// must know. Of the stays of one block only the last is known: what was written back before is
/// older.
///
/// An entry ends when its block is on the backing device: written back, or written whole or trimmed
/// by a later plan. An entry whose write-back has failed stays until the block is given up.
#[derive(Clone, Debug, Default)]
pub struct EvictionWriteBacks {
    blocks: HashMap<(DeviceId, u64), EvictionWriteBack, FixedState>,
}

impl EvictionWriteBacks {
    /// A block is being written back by a step; an earlier stay of it is known no more.
    pub fn begin(&mut self, block: &DirtyResident, write: StepRef, plan: u64) {
        let entry = EvictionWriteBack { resident: block.resident, write, failed: false, plan };
        self.blocks.insert((block.device, block.number), entry);
    }

    /// The last stay of a block, if it is not on its device.
    #[inline]
    pub fn find(&self, device: DeviceId, number: u64) -> Option<&EvictionWriteBack> {
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

    /// Whether no evicted block is on its way.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_graph::Outcome;

    type Graph = StepGraph<(), ()>;

    fn add(graph: &mut Graph) -> StepRef {
        graph.add((), None)
    }

    #[test]
    fn a_read_waits_for_the_last_write_to_its_block_on_its_device() {
        let mut graph = Graph::default();
        let [first, second, read, other] = [(); 4].map(|()| add(&mut graph));
        let mut backings = Backings::new(&[1, 2], 12);
        let devices = [TenantId(0), TenantId(1)].map(|tenant| backings.device_of(tenant));
        assert_eq!((devices, backings.tenants()), ([DeviceId(1), DeviceId(2)], 2));
        backings.note_writes(first, devices[0], 4..6);
        backings.wait_for_changes(&mut graph, second, devices[0], 5..6);
        backings.note_writes(second, devices[0], 5..6);
        backings.need_changes(&mut graph, read, devices[0], 5..9);
        backings.need_changes(&mut graph, other, devices[1], 5..9);
        [first, second, read, other].into_iter().for_each(|step| graph.release(step));
        assert_eq!([graph.next_ready(), graph.next_ready()], [Some(first.id()), Some(other.id())]);
        graph.finish(first.id(), Outcome::Done);
        backings.end_write(&graph, devices[0], 4 << 12, 2 << 12);
        assert_eq!((graph.next_ready(), backings.changes()), (Some(second.id()), 1));
        graph.finish(second.id(), Outcome::Done);
        backings.end_write(&graph, devices[0], 5 << 12, 1 << 12);
        assert_eq!((graph.next_ready(), backings.changes()), (Some(read.id()), 0));
    }

    #[test]
    fn a_trim_of_a_whole_volume_waits_for_the_writes_in_it_and_is_waited_for() {
        let mut graph = Graph::default();
        let [write, trim, later, beyond] = [(); 4].map(|()| add(&mut graph));
        let mut backings = Backings::new(&[1], 12);
        let device = backings.device_of(TenantId(0));
        backings.note_writes(write, device, 1 << 40..(1 << 40) + 1);
        backings.wait_for_changes(&mut graph, trim, device, 0..1 << 50);
        backings.note_trim(trim, device, 0, 1 << 62);
        backings.need_changes(&mut graph, later, device, 7..8);
        backings.need_changes(&mut graph, beyond, device, 1 << 50..(1 << 50) + 1);
        [write, trim, later, beyond].into_iter().for_each(|step| graph.release(step));
        assert_eq!([graph.next_ready(), graph.next_ready()], [Some(write.id()), Some(beyond.id())]);
        graph.finish(write.id(), Outcome::Done);
        backings.end_write(&graph, device, 1 << 52, 1 << 12);
        assert_eq!((graph.next_ready(), backings.changes()), (Some(trim.id()), 1));
        graph.finish(trim.id(), Outcome::Done);
        backings.end_trims(&graph);
        assert_eq!((graph.next_ready(), backings.changes()), (Some(later.id()), 0));
    }

    #[test]
    fn neighbours_of_a_trim_wait_for_nothing() {
        let mut graph = Graph::default();
        let [trim, before, within, behind] = [(); 4].map(|()| add(&mut graph));
        let mut backings = Backings::new(&[1], 12);
        let device = backings.device_of(TenantId(0));
        backings.note_trim(trim, device, 6 << 12, 2 << 12);
        backings.need_changes(&mut graph, before, device, 4..6);
        backings.need_changes(&mut graph, within, device, 5..7);
        backings.need_changes(&mut graph, behind, device, 8..9);
        [before, within, behind].into_iter().for_each(|step| graph.release(step));
        let ready = [graph.next_ready(), graph.next_ready(), graph.next_ready()];
        assert_eq!(ready, [Some(before.id()), Some(behind.id()), None]);
    }

    fn block(number: u64, resident: usize) -> DirtyResident {
        let (device, resident) = (DeviceId::new(1), ResidentId::new(resident));
        DirtyResident { device, number, resident, tenant: TenantId(number as u16 % 2) }
    }

    #[test]
    fn a_block_leaves_until_its_last_stay_is_on_the_device() {
        let (mut evicted, device) = (EvictionWriteBacks::default(), DeviceId::new(1));
        evicted.begin(&block(4, 0), StepRef::DONE, 1);
        evicted.begin(&block(5, 1), StepRef::DONE, 1);
        evicted.begin(&block(4, 2), StepRef::DONE, 3);
        evicted.fail(device, 4, ResidentId::new(0));
        assert!(
            evicted.find(device, 4).is_some_and(|block| !block.failed),
            "a later stay is newer"
        );
        evicted.end(device, 4..6, 1);
        assert_eq!((evicted.len(), evicted.find(device, 5)), (1, None));
        let last = ResidentId::new(2);
        assert!(!evicted.is_last(device, 4, last), "still under way");
        evicted.fail(device, 4, last);
        assert!(evicted.is_last(device, 4, last));
        evicted.take(device, 4, last);
        assert!(evicted.is_empty());
    }

    #[test]
    fn a_wide_trim_ends_what_left_before_it_on_its_device() {
        let mut evicted = EvictionWriteBacks::default();
        (0..10).for_each(|number| evicted.begin(&block(number, 0), StepRef::DONE, number));
        evicted.end(DeviceId::new(2), 0..1 << 40, 99);
        assert_eq!(evicted.len(), 10);
        evicted.end(DeviceId::new(1), 3..1 << 40, 7);
        let kept: Vec<bool> =
            (0..10).map(|number| evicted.find(DeviceId::new(1), number).is_some()).collect();
        let expected: Vec<bool> = (0..10).map(|number| !(3..=7).contains(&number)).collect();
        assert_eq!(kept, expected);
    }
}
