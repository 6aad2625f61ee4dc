//! The queues of one unit.
//!
//! For: work by class, and which of a queue may begin. Must never know: time, channels. Skipped
//! while they must be: programs to a block that is still to be erased, erases of a block that is
//! still to be read. Where tenants have classes, the class is chosen first (see `priority`).

use super::class::{CLASSES, QueueClass};
use super::ids::{EraseSerial, PhysicalPage, PlaneId, WorkId};
use super::priority::{Priority, Turns};
use super::work::{TransactionTable, WorkQueue, WorkStep};

/// A block that will be erased; what belongs to its next life is not programmed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CondemnedBlock {
    plane: PlaneId,
    block: u32,
    serial: EraseSerial,
}

/// Work that waits for one unit, and the erases that come before some of it.
#[derive(Clone, Debug, Default)]
pub struct UnitQueues {
    queues: [WorkQueue; CLASSES],
    /// Work in all of them.
    queued: u32,
    /// Whose turn it is among classes of tenants: reads, writes.
    turns: [Turns; 2],
    condemned: Vec<CondemnedBlock>,
}

impl UnitQueues {
    /// Adds work at the end of a queue.
    #[inline]
    pub fn push(&mut self, table: &mut TransactionTable, class: QueueClass, id: WorkId) {
        self.queues[class as usize].push(table, id);
        self.queued += 1;
    }

    /// Takes the work behind `before` out of a queue (the first if `before` is none).
    #[inline(always)]
    pub fn take(
        &mut self,
        table: &mut TransactionTable,
        class: QueueClass,
        before: WorkId,
    ) -> WorkId {
        self.queued -= 1;
        self.queues[class as usize].take_behind(table, before)
    }

    /// A queue.
    #[inline]
    pub fn queue(&self, class: QueueClass) -> &WorkQueue {
        &self.queues[class as usize]
    }

    /// Work in all queues.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// The work before the next in a queue that may begin; nothing if none may. With `ranked`, it
    /// is the first of the class of tenants whose turn it is.
    #[inline]
    pub fn next_able(
        &mut self,
        table: &TransactionTable,
        class: QueueClass,
        ranked: bool,
    ) -> Option<WorkId> {
        let kind = match class {
            QueueClass::HostRead => 0,
            QueueClass::HostWrite => 1,
            _ => return self.first_able(table, class, None),
        };
        if !ranked {
            return self.first_able(table, class, None);
        }
        let mut waits = [false; 4];
        for id in self.queue(class).iter(table).filter(|id| self.may_begin(table, *id)) {
            waits[table[id].host.priority as usize] = true;
        }
        let chosen = self.turns[kind].next(waits)?;
        self.first_able(table, class, Some(chosen))
    }

    /// The work before the first in a queue, of a class of tenants if one is named, that may begin.
    #[inline]
    fn first_able(
        &self,
        table: &TransactionTable,
        class: QueueClass,
        only: Option<Priority>,
    ) -> Option<WorkId> {
        let (mut before, mut id) = (WorkId::NONE, self.queue(class).head());
        while id != WorkId::NONE {
            let listed = only.is_none_or(|only| table[id].host.priority == only);
            if listed && self.may_begin(table, id) {
                return Some(before);
            }
            (before, id) = (id, table[id].next);
        }
        None
    }

    /// Whether queued work may begin.
    #[inline]
    pub fn may_begin(&self, table: &TransactionTable, id: WorkId) -> bool {
        let work = &table[id];
        match work.step {
            WorkStep::Erase => {
                let (plane, block) = (work.transfer.target.plane, work.transfer.target.block);
                let reads = self.queues[..=QueueClass::CleanRead as usize].iter();
                !reads.flat_map(|queue| queue.iter(table)).any(|other| {
                    let source = table[other].transfer.source;
                    source.plane == plane && source.block == block
                })
            }
            WorkStep::Read if !work.copy_back => true,
            _ if work.erases.first == EraseSerial::NONE => true,
            _ => {
                let (plane, serial) = (work.transfer.target.plane, work.erases.first);
                self.condemned.iter().all(|item| item.serial != serial || item.plane != plane)
            }
        }
    }

    /// A block will be erased.
    pub fn condemn(&mut self, plane: PlaneId, block: u32, serial: EraseSerial) {
        self.condemned.push(CondemnedBlock { plane, block, serial });
    }

    /// A block has been erased.
    pub fn absolve(&mut self, plane: PlaneId, serial: EraseSerial) {
        let before = self.condemned.len();
        self.condemned.retain(|item| item.serial != serial || item.plane != plane);
        assert!(self.condemned.len() + 1 == before, "a block is erased once for each erase");
    }

    /// The erase that comes before a program of a page.
    #[inline]
    pub fn erase_before(&self, page: PhysicalPage) -> EraseSerial {
        let mut latest = self.condemned.iter().rev();
        let same = |item: &&CondemnedBlock| item.plane == page.plane && item.block == page.block;
        latest.find(same).map_or(EraseSerial::NONE, |item| item.serial)
    }

    /// Whether no block is to be erased.
    #[inline]
    pub fn spares_all(&self) -> bool {
        self.condemned.is_empty()
    }

    /// Each transaction stands in the queue of its class, and all are counted. Adds them to the
    /// load of their planes.
    pub fn audit(
        &self,
        table: &TransactionTable,
        load: &mut [[u32; CLASSES]],
    ) -> Result<(), String> {
        let mut queued = 0;
        for class in QueueClass::ALL {
            for id in self.queue(class).iter(table) {
                let work = &table[id];
                queued += 1;
                load[work.place().plane.index()][class as usize] += 1;
                if work.step == WorkStep::Aside || QueueClass::of_work(work) != class {
                    return Err(format!("work {} is in the wrong queue", id.0));
                }
            }
        }
        if queued == self.queued {
            return Ok(());
        }
        Err(format!("{queued} queued, {} counted", self.queued))
    }
}
