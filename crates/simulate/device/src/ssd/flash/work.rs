//! One page-sized transaction inside flash, and the table that holds all of them.
//!
//! For: what a transaction is and where it stands. Must never know: how turns are chosen. Units:
//! bytes. A slot of the table is used again once its transaction is done, so nothing is allocated
//! per transaction. `next` links a transaction into the one list it is in: a queue, the batch of a
//! unit, or those that wait for another.

use super::ids::{EraseSerial, JobId, PhysicalPage, WorkId};
use super::priority::Priority;
use super::work_time::WorkTime;

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkPurpose {
    /// A read of the host.
    HostRead,
    /// A write of the host, with the read of what it leaves of a page.
    HostWrite,
    /// An entry of the mapping table.
    MapRead,
    /// A page of the mapping table, read, changed and written.
    MapWrite,
    /// A valid page out of a victim.
    Move,
    /// A page of the separation's own.
    Meta,
    /// A block.
    Erase,
}

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStep {
    /// Waits for an entry of the map or for another transaction, or is done.
    Aside,
    /// Queued for a read, or being read.
    Read,
    /// Its data is in the controller, which has yet to decide where pages like it belong.
    Deciding,
    /// Queued for a program, or being programmed.
    Program,
    /// Queued for an erase, or being erased.
    Erase,
}

/// What of a transaction the host knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPart {
    /// Its tag.
    pub tag: u64,
    /// Sectors touched.
    pub sectors: u64,
    /// Tenant that wants it.
    pub tenant: u16,
    /// The class of its tenant.
    pub priority: Priority,
}

/// From where to where a transaction brings how much.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageTransfer {
    /// Where it reads.
    pub source: PhysicalPage,
    /// Where it programs, or the block it erases.
    pub target: PhysicalPage,
    /// Bytes read.
    pub read_bytes: u32,
    /// Bytes programmed.
    pub program_bytes: u32,
}

/// How a transaction stands to erases.
#[derive(Clone, Copy, Debug)]
pub struct EraseOrder {
    /// Cleaning that it is part of.
    pub job: JobId,
    /// Cleaning that must not erase its target before it is programmed.
    pub delays: JobId,
    /// The erase that comes before its program.
    pub first: EraseSerial,
}

impl EraseOrder {
    /// A part of a cleaning, if of any.
    #[inline]
    pub fn of_job(job: JobId) -> EraseOrder {
        EraseOrder { job, delays: JobId::NONE, first: EraseSerial::NONE }
    }
}

/// One transaction inside flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashWork {
    /// How long it has taken so far.
    pub time: WorkTime,
    /// What of it the host knows.
    pub host: HostPart,
    /// What it reads and programs.
    pub transfer: PageTransfer,
    /// How it stands to erases.
    pub erases: EraseOrder,
    /// Logical page: of the host, in its group; of the map, a page of the table; of a move, in its
    /// layer.
    pub page: u32,
    /// The next in the list it is in.
    pub next: WorkId,
    /// The first of those that wait for it.
    pub waiters: WorkId,
    /// Group of channels.
    pub group: u16,
    /// What it is for.
    pub purpose: WorkPurpose,
    /// Where it stands.
    pub step: WorkStep,
    /// Whether its read and program stay inside the plane.
    pub copy_back: bool,
    /// Whether the controller has a step of a model to take before it is programmed.
    pub predicts: bool,
}

impl FlashWork {
    /// A new transaction, submitted now.
    #[inline]
    pub fn new(purpose: WorkPurpose, now: u64) -> FlashWork {
        FlashWork {
            time: WorkTime::new(now),
            host: HostPart::default(),
            transfer: PageTransfer::default(),
            erases: EraseOrder::of_job(JobId::NONE),
            page: 0,
            next: WorkId::NONE,
            waiters: WorkId::NONE,
            group: 0,
            purpose,
            step: WorkStep::Aside,
            copy_back: false,
            predicts: false,
        }
    }

    /// Whether it is part of cleaning.
    #[inline]
    pub fn cleans(&self) -> bool {
        matches!(self.purpose, WorkPurpose::Move | WorkPurpose::Meta | WorkPurpose::Erase)
    }

    /// Where it works in its present step.
    #[inline]
    pub fn place(&self) -> PhysicalPage {
        if self.step == WorkStep::Read { self.transfer.source } else { self.transfer.target }
    }
}

/// All transactions that are not done.
#[derive(Clone, Debug)]
pub struct TransactionTable {
    slots: Vec<FlashWork>,
    free: WorkId,
    used: u32,
}

impl Default for TransactionTable {
    fn default() -> TransactionTable {
        TransactionTable { slots: Vec::new(), free: WorkId::NONE, used: 0 }
    }
}

impl TransactionTable {
    /// Takes a slot for a new transaction, which is made where it stays.
    #[inline]
    pub fn insert(&mut self, purpose: WorkPurpose, now: u64) -> WorkId {
        self.used += 1;
        if self.free == WorkId::NONE {
            self.slots.push(FlashWork::new(purpose, now));
            return WorkId(self.slots.len() as u32 - 1);
        }
        let id = self.free;
        self.free = self[id].next;
        self[id] = FlashWork::new(purpose, now);
        id
    }

    /// Gives a slot back.
    #[inline]
    pub fn remove(&mut self, id: WorkId) {
        self.used -= 1;
        let free = self.free;
        let work = &mut self[id];
        work.next = free;
        work.step = WorkStep::Aside;
        self.free = id;
    }

    /// Transactions in it.
    pub fn len(&self) -> u32 {
        self.used
    }
}

impl std::ops::Index<WorkId> for TransactionTable {
    type Output = FlashWork;

    #[inline(always)]
    fn index(&self, id: WorkId) -> &FlashWork {
        &self.slots[id.index()]
    }
}

impl std::ops::IndexMut<WorkId> for TransactionTable {
    #[inline(always)]
    fn index_mut(&mut self, id: WorkId) -> &mut FlashWork {
        &mut self.slots[id.index()]
    }
}

/// A first-in, first-out list of transactions.
#[derive(Clone, Copy, Debug)]
pub struct WorkQueue {
    head: WorkId,
    tail: WorkId,
    len: u32,
}

impl Default for WorkQueue {
    fn default() -> WorkQueue {
        WorkQueue { head: WorkId::NONE, tail: WorkId::NONE, len: 0 }
    }
}

impl WorkQueue {
    /// The first.
    #[inline]
    pub fn head(&self) -> WorkId {
        self.head
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == WorkId::NONE
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, table: &mut TransactionTable, id: WorkId) {
        table[id].next = WorkId::NONE;
        match self.tail {
            WorkId::NONE => self.head = id,
            tail => table[tail].next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Takes the one behind `before` (the first if `before` is none); it must exist.
    #[inline]
    pub fn take_behind(&mut self, table: &mut TransactionTable, before: WorkId) -> WorkId {
        let id = if before == WorkId::NONE { self.head } else { table[before].next };
        let next = table[id].next;
        match before {
            WorkId::NONE => self.head = next,
            before => table[before].next = next,
        }
        if self.tail == id {
            self.tail = before;
        }
        self.len -= 1;
        table[id].next = WorkId::NONE;
        id
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, table: &mut TransactionTable) -> Option<WorkId> {
        if self.is_empty() { None } else { Some(self.take_behind(table, WorkId::NONE)) }
    }

    /// All of them, first to last.
    pub fn iter<'a>(&self, table: &'a TransactionTable) -> impl Iterator<Item = WorkId> + 'a {
        let some = |id: WorkId| (id != WorkId::NONE).then_some(id);
        std::iter::successors(some(self.head), move |id| some(table[*id].next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_transaction_leave_no_gaps() {
        let one = EraseOrder::of_job(JobId(3));
        assert_eq!((one.job, one.delays, one.first), (JobId(3), JobId::NONE, EraseSerial::NONE));
        // 161 bytes, in words of 8: the table is read for every event.
        assert_eq!(size_of::<FlashWork>(), 168);
    }

    #[test]
    fn a_queue_gives_up_its_middle_and_slots_return() {
        let mut table = TransactionTable::default();
        let mut queue = WorkQueue::default();
        let add = |table: &mut TransactionTable| table.insert(WorkPurpose::HostRead, 5);
        let ids: Vec<WorkId> = (0..4).map(|_| add(&mut table)).collect();
        ids.iter().for_each(|id| queue.push(&mut table, *id));
        assert_eq!(queue.take_behind(&mut table, WorkId(1)), WorkId(2));
        assert_eq!(queue.take_behind(&mut table, WorkId(1)), WorkId(3));
        table.remove(WorkId(2));
        let again = table.insert(WorkPurpose::Erase, 6);
        assert_eq!(again, WorkId(2), "the slot comes back");
        queue.push(&mut table, again);
        let listed: Vec<u32> = queue.iter(&table).map(|id| id.0).collect();
        assert_eq!(listed, [0, 1, 2]);
        assert_eq!(queue.pop(&mut table), Some(WorkId(0)));
        assert_eq!((queue.len(), table.len()), (2, 4));
    }
}
