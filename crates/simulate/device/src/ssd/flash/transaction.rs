//! One page-sized piece of work, and the slab that all of them live in.
//!
//! For: what a transaction is, where it stands, how long it has taken so far. Must never know:
//! who decides its turn. Units: bytes, nanoseconds. A slot is used again once its work is done, so
//! nothing is allocated per transaction; `next` links a transaction into the one list it is in (a
//! queue, the work of a unit, those that wait for another).

use super::priority::Priority;
use crate::spent::{Part, Spent};

/// Index of a transaction in the slab.
pub type Id = u32;
/// No transaction.
pub const NIL: Id = u32::MAX;

/// A physical page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Plane of the device.
    pub plane: u32,
    /// Block of the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
}

/// Who wants it, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
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

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
const PARTS: [Part; 6] =
    [Part::Queue, Part::Map, Part::Channel, Part::DieWait, Part::CleanWait, Part::Flash];

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The host's name for it.
    pub tag: u64,
    /// When the host submitted it.
    pub submitted: u64,
    /// Up to when its time is accounted for.
    pub mark: u64,
    /// When it joined its queue, with what the unit had worked for hosts and cleaned by then.
    pub worked_before: u64,
    /// Time the unit had spent on cleaning by then.
    pub cleaned_before: u64,
    /// Time by part, in the order of `PARTS`.
    pub(super) parts_ns: [u64; PARTS.len()],
    /// Where it reads.
    pub source: Place,
    /// Where it programs, or the block it erases.
    pub target: Place,
    /// Bytes read.
    pub read_bytes: u32,
    /// Bytes programmed.
    pub program_bytes: u32,
    /// Logical page: of the host, in its group; of the map, a page of the table; of a move, in its
    /// layer.
    pub page: u32,
    /// Cleaning that it is part of.
    pub job: u32,
    /// Cleaning that must not erase its target before it is programmed.
    pub holds: u32,
    /// Number of the erase that comes before its program; 0 for none.
    pub needs: u32,
    /// The next in the list it is in.
    pub next: Id,
    /// The first of those that wait for it.
    pub waiters: Id,
    /// Group of channels.
    pub group: u16,
    /// Whose it is.
    pub tenant: u16,
    /// The class of its tenant.
    pub priority: Priority,
    /// What for.
    pub purpose: Purpose,
    /// Where it stands.
    pub step: Step,
    /// Sectors touched.
    pub sectors: u64,
    /// Whether its read and program stay inside the plane.
    pub copy_back: bool,
    /// Whether the controller has a step of a model to take before it is programmed.
    pub predicts: bool,
}

impl Work {
    /// New work of some purpose, submitted now.
    pub fn new(purpose: Purpose, now: u64) -> Work {
        Work {
            tag: 0,
            submitted: now,
            mark: now,
            worked_before: 0,
            cleaned_before: 0,
            parts_ns: [0; PARTS.len()],
            source: Place::default(),
            target: Place::default(),
            read_bytes: 0,
            program_bytes: 0,
            page: 0,
            job: NIL,
            holds: NIL,
            needs: 0,
            next: NIL,
            waiters: NIL,
            group: 0,
            tenant: 0,
            priority: Priority::High,
            purpose,
            step: Step::Aside,
            sectors: 0,
            copy_back: false,
            predicts: false,
        }
    }

    /// Accounts the time from `mark` to `until` to a part.
    #[inline]
    pub fn account(&mut self, part: Part, until: u64) {
        debug_assert!(until >= self.mark);
        self.add(part, until - self.mark);
        self.mark = until;
    }

    /// Adds time to a part; the caller moves `mark`.
    #[inline]
    pub fn add(&mut self, part: Part, time_ns: u64) {
        let index = match part {
            Part::Queue => 0,
            Part::Map => 1,
            Part::Channel => 2,
            Part::DieWait => 3,
            Part::CleanWait => 4,
            _ => 5,
        };
        self.parts_ns[index] += time_ns;
    }

    /// The whole time so far by part.
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
        matches!(self.purpose, Purpose::Move | Purpose::Meta | Purpose::Erase)
    }

    /// Where it works in its present step.
    #[inline]
    pub fn place(&self) -> Place {
        if self.step == Step::Read { self.source } else { self.target }
    }
}

/// All transactions that are not done.
#[derive(Clone, Debug, Default)]
pub struct Slab {
    work: Vec<Work>,
    free: Id,
    used: u32,
}

impl Slab {
    /// An empty slab.
    pub fn new() -> Slab {
        Slab { work: Vec::new(), free: NIL, used: 0 }
    }

    /// Takes a slot.
    #[inline]
    pub fn insert(&mut self, work: Work) -> Id {
        self.used += 1;
        if self.free == NIL {
            self.work.push(work);
            return self.work.len() as Id - 1;
        }
        let id = self.free;
        self.free = self.work[id as usize].next;
        self.work[id as usize] = work;
        id
    }

    /// Gives a slot back.
    #[inline]
    pub fn remove(&mut self, id: Id) {
        self.used -= 1;
        self.work[id as usize].next = self.free;
        self.work[id as usize].step = Step::Aside;
        self.free = id;
    }

    /// Transactions in it.
    pub fn len(&self) -> u32 {
        self.used
    }
}

impl std::ops::Index<Id> for Slab {
    type Output = Work;

    #[inline(always)]
    fn index(&self, id: Id) -> &Work {
        &self.work[id as usize]
    }
}

impl std::ops::IndexMut<Id> for Slab {
    #[inline(always)]
    fn index_mut(&mut self, id: Id) -> &mut Work {
        &mut self.work[id as usize]
    }
}

/// A first-in, first-out list of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: Id,
    tail: Id,
    len: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { head: NIL, tail: NIL, len: 0 }
    }
}

impl Queue {
    /// The first.
    #[inline]
    pub fn head(&self) -> Id {
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
        self.head == NIL
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, slab: &mut Slab, id: Id) {
        slab[id].next = NIL;
        match self.tail {
            NIL => self.head = id,
            tail => slab[tail].next = id,
        }
        self.tail = id;
        self.len += 1;
    }

    /// Takes the one behind `before` (the first if `before` is none); it must exist.
    #[inline]
    pub fn take_behind(&mut self, slab: &mut Slab, before: Id) -> Id {
        let id = if before == NIL { self.head } else { slab[before].next };
        let next = slab[id].next;
        match before {
            NIL => self.head = next,
            before => slab[before].next = next,
        }
        if self.tail == id {
            self.tail = before;
        }
        self.len -= 1;
        slab[id].next = NIL;
        id
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, slab: &mut Slab) -> Option<Id> {
        if self.is_empty() { None } else { Some(self.take_behind(slab, NIL)) }
    }

    /// All of them, first to last.
    pub fn iter<'a>(&self, slab: &'a Slab) -> impl Iterator<Item = Id> + 'a {
        let some = |id: Id| (id != NIL).then_some(id);
        std::iter::successors(some(self.head), move |id| some(slab[*id].next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_gives_up_its_middle_and_slots_return() {
        let mut slab = Slab::new();
        let mut queue = Queue::default();
        let ids: Vec<Id> = (0..4).map(|_| slab.insert(Work::new(Purpose::HostRead, 5))).collect();
        ids.iter().for_each(|id| queue.push(&mut slab, *id));
        assert_eq!(queue.take_behind(&mut slab, 1), 2);
        assert_eq!(queue.take_behind(&mut slab, 1), 3);
        slab.remove(2);
        assert_eq!(slab.insert(Work::new(Purpose::Erase, 6)), 2, "the slot comes back");
        queue.push(&mut slab, 2);
        assert_eq!(queue.iter(&slab).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(queue.pop(&mut slab), Some(0));
        assert_eq!((queue.len(), slab.len()), (2, 4));
    }

    #[test]
    fn time_by_part_adds_up() {
        let mut work = Work::new(Purpose::HostRead, 100);
        work.account(Part::Map, 150);
        work.account(Part::Flash, 250);
        work.add(Part::Queue, 7);
        let spent = work.spent();
        assert_eq!((spent.of(Part::Map), spent.of(Part::Flash)), (50, 100));
        assert_eq!(spent.total_ns(), 157);
    }
}
