//! Page-sized transactions inside flash: what each is, where it stands, and how long it has taken.
//!
//! A slot of the table is used again once its transaction is done, so nothing is allocated per
//! transaction. `next` links a transaction into the one list it is in: a queue, the batch of a
//! unit, or those that wait for another. Invariant: the parts of a transaction's time add up to the
//! time from its submission to the last moment accounted for. Units: pages, sectors (a bit each),
//! bytes, nanoseconds.

use super::backend::Calendar;
use super::geometry::{EraseSerial, JobId, PhysicalPage, WorkId};
use super::params::Priority;
use super::stats::Counters;
use crate::device::{Spent, SpentPart};
use cachewright_types::{Nanos, TenantId};

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

/// One transaction inside flash.
#[derive(Clone, Copy, Debug)]
pub struct FlashWork {
    /// How long it has taken so far.
    pub time: WorkTime,
    /// The host's tag.
    pub tag: u64,
    /// Sectors that the host touches.
    pub sectors: u64,
    /// Tenant that wants it.
    pub tenant: u16,
    /// The class of its tenant.
    pub priority: Priority,
    /// Where it reads.
    pub source: PhysicalPage,
    /// Where it programs, or the block it erases.
    pub target: PhysicalPage,
    /// Bytes read.
    pub read_bytes: u32,
    /// Bytes programmed.
    pub program_bytes: u32,
    /// Cleaning that it is part of.
    pub job: JobId,
    /// Cleaning that must not erase its target before it is programmed.
    pub delayed_job: JobId,
    /// The erase that comes before its program.
    pub erase_before: EraseSerial,
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
            tag: 0,
            sectors: 0,
            tenant: 0,
            priority: Priority::default(),
            source: PhysicalPage::default(),
            target: PhysicalPage::default(),
            read_bytes: 0,
            program_bytes: 0,
            job: JobId::NONE,
            delayed_job: JobId::NONE,
            erase_before: EraseSerial::NONE,
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

/// Parts of the time that flash knows of.
const PARTS: [SpentPart; 6] = [
    SpentPart::Queue,
    SpentPart::Map,
    SpentPart::Channel,
    SpentPart::DieWait,
    SpentPart::CleanWait,
    SpentPart::Flash,
];

/// The time of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct WorkTime {
    submitted: u64,
    /// Up to when its time is accounted for.
    mark: u64,
    /// Time its unit had worked for hosts when it joined its queue.
    worked_before: u64,
    /// Time its unit had cleaned by then.
    cleaned_before: u64,
    /// Time by part, in the order of `PARTS`.
    parts_ns: [u64; PARTS.len()],
}

impl WorkTime {
    /// Of a transaction submitted now.
    #[inline]
    pub fn new(now: u64) -> WorkTime {
        WorkTime {
            submitted: now,
            mark: now,
            worked_before: 0,
            cleaned_before: 0,
            parts_ns: [0; PARTS.len()],
        }
    }

    /// Accounts the time up to `until` to a part.
    #[inline]
    pub fn account(&mut self, part: SpentPart, until: u64) {
        debug_assert!(until >= self.mark);
        self.add(part, until - self.mark);
        self.mark = until;
    }

    /// It joins the queue of a unit that has worked for hosts and cleaned for so long.
    #[inline]
    pub fn join_queue(&mut self, worked: u64, cleaned: u64) {
        self.worked_before = worked;
        self.cleaned_before = cleaned;
    }

    /// It leaves the queue; how long it waited. What its unit did meanwhile is waited for as such,
    /// the rest is a wait for the channel.
    #[inline(always)]
    pub fn leave_queue(&mut self, now: u64, worked: u64, cleaned: u64) -> u64 {
        let worked = worked - self.worked_before;
        let cleaned = cleaned - self.cleaned_before;
        let waited = now - self.mark;
        self.add(SpentPart::DieWait, worked);
        self.add(SpentPart::CleanWait, cleaned);
        self.add(SpentPart::Channel, waited - worked - cleaned);
        self.mark = now;
        waited
    }

    /// A command begins that takes so long on the channel and then in the die; it ends at `end`.
    #[inline]
    pub fn begin(&mut self, channel_ns: u64, flash_ns: u64, end: u64) {
        self.add(SpentPart::Channel, channel_ns);
        self.add(SpentPart::Flash, flash_ns);
        self.mark = end;
    }

    #[inline]
    fn add(&mut self, part: SpentPart, time_ns: u64) {
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
        debug_assert_eq!(spent.total_ns(), self.mark - self.submitted);
        spent
    }
}

/// Transactions under way, the calendar and the counters.
#[derive(Clone, Debug, Default)]
pub struct FlashOperations {
    /// Transactions that are not done.
    pub work: TransactionTable,
    /// The time, and events to come.
    pub calendar: Calendar,
    /// Operations counted.
    pub counters: Counters,
}

/// What the host asks of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp {
    /// Its data.
    Read,
    /// To hold new data.
    Write,
    /// To be forgotten.
    Trim,
}

/// One page-sized piece of a host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Returned with the completion.
    pub tag: u64,
    /// Tenant that asks.
    pub tenant: TenantId,
    /// Group of channels; 0 unless channels are exposed in groups.
    pub group: u16,
    /// What is asked.
    pub op: PageOp,
    /// Page of the group.
    pub page: u32,
    /// Sectors of the page that are touched, a bit each.
    pub sectors: u64,
}

/// A transaction that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoneTransaction {
    /// Its tag.
    pub tag: u64,
    /// When it was done.
    pub finished: Nanos,
    /// Where the time since it was submitted went.
    pub spent: Spent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_transaction_leave_no_gaps() {
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

    #[test]
    fn time_by_part_adds_up() {
        let mut time = WorkTime::new(100);
        time.account(SpentPart::Map, 150);
        time.join_queue(1_000, 500);
        // Of 60 ns, the unit worked for hosts for 30 and cleaned for 20.
        assert_eq!(time.leave_queue(210, 1_030, 520), 60);
        time.begin(5, 100, 315);
        time.account(SpentPart::Queue, 322);
        let spent = time.spent();
        let parts = PARTS.map(|part| spent.part_ns(part));
        assert_eq!(parts, [7, 50, 10 + 5, 30, 20, 100]);
        assert_eq!(spent.total_ns(), 222);
    }
}
