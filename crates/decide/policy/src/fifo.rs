//! FIFO: the block that came first leaves first; hits change nothing.
//!
//! For: the simplest queue. Must never know: recency. Source: Belady, IBM Systems Journal 5(2),
//! 1966. Unit: blocks. A hit reads one byte; only a miss touches the queue. Memory: 1 byte per id,
//! 4 to 8 per resident block.

use crate::entry::{Entry, Registered};
use crate::queue::Queue;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// First in, first out.
#[derive(Clone, Debug)]
pub struct Fifo {
    queue: Queue,
    resident: Vec<bool>,
    capacity: u32,
}

impl Fifo {
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        let victim = self.queue.pop()?;
        self.resident[victim.index()] = false;
        Some(victim)
    }
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
        Fifo { queue: Queue::default(), resident: Vec::new(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Fifo {}

impl Policy for Fifo {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        if self.resident[access.block.index()] {
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.queue.len() == self.capacity { self.evict() } else { None };
        self.resident[access.block.index()] = true;
        self.queue.push(access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.resident[block.index()]
    }

    fn tracks(&self, block: BlockId) -> bool {
        self.contains(block)
    }

    fn len(&self) -> u32 {
        self.queue.len()
    }

    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn resize(&mut self, capacity_blocks: u32, evicted: &mut Vec<BlockId>) {
        self.capacity = capacity_blocks;
        while self.queue.len() > capacity_blocks {
            evicted.extend(self.evict());
        }
    }

    fn remove(&mut self, block: BlockId) -> bool {
        let resident = std::mem::take(&mut self.resident[block.index()]);
        if resident {
            self.queue.remove(block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        self.resident.resize(count.max(self.resident.len()), false);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) -> u32 {
        u32::from(self.resident[block.index()])
    }

    fn audit(&self) -> Result<(), String> {
        let queued = self.queue.blocks();
        if queued.len() as u32 > self.capacity {
            return Err(format!("{} blocks in a cache of {}", queued.len(), self.capacity));
        }
        if let Some(block) = queued.iter().find(|block| !self.contains(**block)) {
            return Err(format!("block {} is queued but not resident", block.0));
        }
        let resident = self.resident.iter().filter(|resident| **resident).count();
        if resident != queued.len() {
            return Err(format!("{resident} blocks resident, {} queued", queued.len()));
        }
        self.queue.audit()
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
