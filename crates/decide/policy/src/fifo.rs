//! FIFO: the block that came first leaves first; hits change nothing.
//!
//! For: the simplest queue. Must never know: recency. Source: Belady, IBM Systems Journal 5(2),
//! 1966. Unit: blocks. A hit reads one byte; only a miss touches the queue. Memory: 1 byte per id,
//! 4 to 8 per resident block.

use crate::entry::{Entry, Registered};
use crate::hit_queues::HitQueues;
use crate::renumber::Renumbering;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo {
    queue: HitQueues<1>,
    capacity: u32,
}

impl Registered for Fifo {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "fifo",
        doc: "the block that came first leaves first",
        source: "Belady, IBM Systems Journal 5(2), 1966",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Fifo { queue: HitQueues::default(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Fifo {}

impl Policy for Fifo {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.queue.tracks(access.block) {
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let full = self.queue.len(0) == self.capacity;
        let evicted = if full { self.queue.pop(0).map(|(block, _)| block) } else { None };
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
            evicted.extend(self.queue.pop(0).map(|(block, _)| block));
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

    /// Capacity 2. 1 and 2 come in; the hit on 1 changes nothing, so 3 drives out 1 and 1 drives
    /// out 2.
    #[test]
    fn a_hit_does_not_save_the_oldest() {
        let mut fifo = Fifo::new(2, &NoSettings::default(), Seed(0));
        fifo.reserve_ids(4);
        let mut step = |id| fifo.access(Access::read(BlockId(id)));
        assert_eq!(step(1), Verdict::Admit { evicted: None });
        assert_eq!(step(2), Verdict::Admit { evicted: None });
        assert_eq!(step(1), Verdict::Hit);
        assert_eq!(step(3), Verdict::Admit { evicted: Some(BlockId(1)) });
        assert_eq!(step(1), Verdict::Admit { evicted: Some(BlockId(2)) });
    }
}
