//! Clock: FIFO that gives a block hit since the hand last passed one more round.
//!
//! For: LRU's approximation without moving anything on a hit. Must never know: recency beyond one
//! bit. Source: Corbató, "A Paging Experiment with the Multics System", MIT Project MAC, 1968.
//! Unit: blocks. New blocks come in with the bit clear. The hand's circle is kept as a queue: a
//! block that the hand spares goes from the tail to the head with its bit cleared. Memory: 1 byte
//! per id, 4 to 8 per resident block.

use crate::entry::{Entry, Registered};
use crate::hit_queues::HitQueues;
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// Second chance, one bit per block.
#[derive(Clone, Debug)]
pub struct Clock {
    queue: HitQueues<1>,
    capacity: u32,
}

impl Registered for Clock {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "clock",
        doc: "first in, first out, but a block hit since its last round gets another",
        source: "Corbató, A Paging Experiment with the Multics System, MIT Project MAC, 1968",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Clock { queue: HitQueues::default(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Clock {}

impl Policy for Clock {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.queue.tracks(access.block) {
            self.queue.mark(access.block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let full = self.queue.len(0) == self.capacity;
        let evicted = if full { self.queue.pop_unhit(0) } else { None };
        self.queue.push(0, access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.queue.tracks(block)
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block)
    }

    fn len(&self) -> u32 {
        self.queue.len(0)
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.queue.len(0) > capacity_blocks {
            evicted.extend(self.queue.pop_unhit(0));
        }
    }

    fn remove(&mut self, block: BlockId) -> bool {
        self.queue.remove(block).is_some()
    }

    fn reserve_ids(&mut self, count: usize) {
        self.queue.reserve_ids(count);
        self.queue.reserve(0, count.min(self.capacity as usize));
    }

    fn renumber(&mut self, ids: &Renumbering) -> bool {
        self.queue.renumber(ids);
        true
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) {
        self.queue.touch(block);
    }

    #[inline(always)]
    fn leaves_after(&self, later: u32) -> Option<BlockId> {
        self.queue.peek(0, later)
    }

    fn audit(&self) -> Result<(), String> {
        self.queue.audit(1, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity 3. Queue tail to head after 1, 2, 3 and a hit on 1: 1* 2 3. Block 4: the hand
    /// spares 1 (bit cleared, to the head) and takes 2: 3 1 4. Block 5 takes 3: 1 4 5. Block 6
    /// takes 1, whose bit is used up: 4 5 6.
    #[test]
    fn a_hit_saves_a_block_for_one_round() {
        let mut clock = Clock::new(3, &NoSettings::default(), Seed(0));
        clock.reserve_ids(7);
        let mut step = |id| clock.access(Access::read(BlockId(id)));
        for id in [1, 2, 3] {
            assert_eq!(step(id), Verdict::Admit { evicted: None });
        }
        assert_eq!(step(1), Verdict::Hit);
        assert_eq!(step(4), Verdict::Admit { evicted: Some(BlockId(2)) });
        assert_eq!(step(5), Verdict::Admit { evicted: Some(BlockId(3)) });
        assert_eq!(step(6), Verdict::Admit { evicted: Some(BlockId(1)) });
    }
}
