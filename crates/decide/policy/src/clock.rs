//! Clock: FIFO that gives a block hit since the hand last passed one more round.
//!
//! For: LRU's approximation without moving anything on a hit. Must never know: recency beyond one
//! bit. Source: Corbató, "A Paging Experiment with the Multics System", MIT Project MAC, 1968.
//! Unit: blocks. New blocks come in with the bit clear. The hand's circle is kept as a queue: a
//! block that the hand spares goes from the tail to the head with its bit cleared. Memory: 1 byte
//! per id, 4 to 8 per resident block.

use crate::entry::{Entry, Registered};
use crate::queue::Queue;
use crate::{Access, Policy, PolicyHooks, Verdict};
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// The block is in the cache.
const RESIDENT: u8 = 1;
/// The block is in the cache and was hit since the hand last passed.
const VISITED: u8 = 3;

/// Second chance, one bit per block.
#[derive(Clone, Debug)]
pub struct Clock {
    queue: Queue,
    state: Vec<u8>,
    capacity: u32,
}

impl Clock {
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        loop {
            let block = self.queue.pop()?;
            let state = &mut self.state[block.index()];
            if *state != VISITED {
                *state = 0;
                return Some(block);
            }
            *state = RESIDENT;
            self.queue.push(block);
        }
    }
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
        Clock { queue: Queue::default(), state: Vec::new(), capacity: capacity_blocks }
    }
}

impl PolicyHooks for Clock {}

impl Policy for Clock {
    #[inline(always)]
    fn access(&mut self, access: Access) -> Verdict {
        let state = &mut self.state[access.block.index()];
        if *state != 0 {
            *state = VISITED;
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        *state = RESIDENT;
        let evicted = if self.queue.len() == self.capacity { self.evict() } else { None };
        self.queue.push(access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn contains(&self, block: BlockId) -> bool {
        self.state[block.index()] != 0
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
        let resident = std::mem::take(&mut self.state[block.index()]) != 0;
        if resident {
            self.queue.remove(block);
        }
        resident
    }

    fn reserve_ids(&mut self, count: usize) {
        self.state.resize(count.max(self.state.len()), 0);
    }

    #[inline(always)]
    fn touch(&self, block: BlockId) -> u32 {
        u32::from(self.state[block.index()])
    }

    fn audit(&self) -> Result<(), String> {
        let queued = self.queue.blocks();
        if queued.len() as u32 > self.capacity {
            return Err(format!("{} blocks in a cache of {}", queued.len(), self.capacity));
        }
        if let Some(block) = queued.iter().find(|block| !self.contains(**block)) {
            return Err(format!("block {} is queued but not resident", block.0));
        }
        let resident = self.state.iter().filter(|state| **state != 0).count();
        if resident != queued.len() {
            return Err(format!("{resident} blocks resident, {} queued", queued.len()));
        }
        self.queue.audit()
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
