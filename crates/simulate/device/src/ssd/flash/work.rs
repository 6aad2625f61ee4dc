//! One page-sized transaction inside flash, and the table that holds all of them.
//!
//! For: what a transaction is, where it stands, how long it has taken so far. Must never know: how
//! turns are chosen. Units: bytes, nanoseconds. A slot of the table is used again once its
//! transaction is done, so nothing is allocated per transaction. `next` links a transaction into
//! the one list it is in: a queue, the batch of a unit, or those that wait for another.

use super::ids::{EraseSerial, JobId, PhysicalPage, WorkId};
use super::priority::Priority;
use crate::spent::{Spent, SpentPart};

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

/// Parts of the time that flash knows of.
const PARTS: [SpentPart; 6] = [
    SpentPart::Queue,
    SpentPart::Map,
    SpentPart::Channel,
    SpentPart::DieWait,
    SpentPart::CleanWait,
    SpentPart::Flash,
];

/// One transaction inside flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashWork {
    /// The host's tag.
    pub tag: u64,
    /// When the host submitted it.
    pub submitted: u64,
    /// Up to when its time is accounted for.
    pub mark: u64,
    /// Time its unit had worked for hosts when it joined its queue.
    pub worked_before: u64,
    /// Time its unit had cleaned by then.
    pub cleaned_before: u64,
    /// Time by part, in the order of `PARTS`.
    pub(super) parts_ns: [u64; PARTS.len()],
    /// Where it reads.
    pub source: PhysicalPage,
    /// Where it programs, or the block it erases.
    pub target: PhysicalPage,
    /// Bytes read.
    pub read_bytes: u32,
    /// Bytes programmed.
    pub program_bytes: u32,
    /// Logical page: of the host, in its group; of the map, a page of the table; of a move, in its
    /// layer.
    pub page: u32,
    /// Cleaning that it is part of.
    pub job: JobId,
    /// Cleaning that must not erase its target before it is programmed.
    pub delays: JobId,
    /// The erase that comes before its program.
    pub erase_first: EraseSerial,
    /// The next in the list it is in.
    pub next: WorkId,
    /// The first of those that wait for it.
    pub waiters: WorkId,
    /// Group of channels.
    pub group: u16,
    /// Tenant that asks.
    pub tenant: u16,
    /// The class of its tenant.
    pub priority: Priority,
    /// What it is for.
    pub purpose: WorkPurpose,
    /// Where it stands.
    pub step: WorkStep,
    /// Sectors touched.
    pub sectors: u64,
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
            tag: 0,
            submitted: now,
            mark: now,
            worked_before: 0,
            cleaned_before: 0,
            parts_ns: [0; PARTS.len()],
            source: PhysicalPage::default(),
            target: PhysicalPage::default(),
            read_bytes: 0,
            program_bytes: 0,
            page: 0,
            job: JobId::NONE,
            delays: JobId::NONE,
            erase_first: EraseSerial::NONE,
            next: WorkId::NONE,
            waiters: WorkId::NONE,
            group: 0,
            tenant: 0,
            priority: Priority::High,
            purpose,
            step: WorkStep::Aside,
            sectors: 0,
            copy_back: false,
            predicts: false,
        }
    }

    /// Accounts the time from `mark` to `until` to a part.
    #[inline]
    pub fn account(&mut self, part: SpentPart, until: u64) {
        debug_assert!(until >= self.mark);
        self.add(part, until - self.mark);
        self.mark = until;
    }

    /// Adds time to a part; the caller moves `mark`.
    #[inline]
    pub fn add(&mut self, part: SpentPart, time_ns: u64) {
        let index = match part {
            SpentPart::Queue => 0,
            SpentPart::Map => 1,
            SpentPart::Channel => 2,
            SpentPart::DieWait => 3,
            SpentPart::CleanWait => 4,
            _ => 5,
        };
        self.parts_ns[index] += time_ns;
    }

    /// The whole time so far by part.
    #[inline]
    pub fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        for (part, time_ns) in PARTS.iter().zip(self.parts_ns) {
            spent.add(*part, time_ns);
        }
        spent
    }

    /// Whether it is part of cleaning.
    #[inline]
    pub fn cleans(&self) -> bool {
        matches!(self.purpose, WorkPurpose::Move | WorkPurpose::Meta | WorkPurpose::Erase)
    }

    /// Where it works in its present step.
    #[inline]
    pub fn place(&self) -> PhysicalPage {
        if self.step == WorkStep::Read { self.source } else { self.target }
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
    /// Takes a slot.
    #[inline]
    pub fn insert(&mut self, work: FlashWork) -> WorkId {
        self.used += 1;
        if self.free == WorkId::NONE {
            self.slots.push(work);
            return WorkId(self.slots.len() as u32 - 1);
        }
        let id = self.free;
        self.free = self[id].next;
        self[id] = work;
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
    fn a_queue_gives_up_its_middle_and_slots_return() {
        let mut table = TransactionTable::default();
        let mut queue = WorkQueue::default();
        let add =
            |table: &mut TransactionTable| table.insert(FlashWork::new(WorkPurpose::HostRead, 5));
        let ids: Vec<WorkId> = (0..4).map(|_| add(&mut table)).collect();
        ids.iter().for_each(|id| queue.push(&mut table, *id));
        assert_eq!(queue.take_behind(&mut table, WorkId(1)), WorkId(2));
        assert_eq!(queue.take_behind(&mut table, WorkId(1)), WorkId(3));
        table.remove(WorkId(2));
        let again = table.insert(FlashWork::new(WorkPurpose::Erase, 6));
        assert_eq!(again, WorkId(2), "the slot comes back");
        queue.push(&mut table, again);
        let listed: Vec<u32> = queue.iter(&table).map(|id| id.0).collect();
        assert_eq!(listed, [0, 1, 2]);
        assert_eq!(queue.pop(&mut table), Some(WorkId(0)));
        assert_eq!((queue.len(), table.len()), (2, 4));
    }

    #[test]
    fn time_by_part_adds_up() {
        let mut work = FlashWork::new(WorkPurpose::HostRead, 100);
        work.account(SpentPart::Map, 150);
        work.account(SpentPart::Flash, 250);
        work.add(SpentPart::Queue, 7);
        let spent = work.spent();
        assert_eq!((spent.part_ns(SpentPart::Map), spent.part_ns(SpentPart::Flash)), (50, 100));
        assert_eq!(spent.total_ns(), 157);
    }
}
