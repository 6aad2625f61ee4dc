//! FIFO, and Clock, which gives a block hit since its last round one more.
//!
//! For: the simplest queue, and LRU's approximation without moving anything on a hit. Sources:
//! Belady, IBM Systems Journal 5(2), 1966 (`fifo`); Corbató, "A Paging Experiment with the Multics
//! System", MIT Project MAC, 1968 (`clock`). Unit: blocks. The hand's circle of `clock` is kept as
//! a queue: a block that the hand spares goes from the tail to the head with its bit cleared; new
//! blocks come in with the bit clear. A hit reads or writes one byte; only a miss touches the
//! queue. Memory: 1 byte per id, 4 to 8 per resident block.

use crate::hit_queues::HitQueues;
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// First in, first out.
pub type Fifo = FifoQueue<false>;
/// Second chance, one bit per block.
pub type Clock = FifoQueue<true>;

/// The queue; with `SECOND_CHANCE` a hit saves a block for one round.
#[derive(Clone, Debug, SnapshotValue)]
pub struct FifoQueue<const SECOND_CHANCE: bool> {
    queue: HitQueues<1, 1>,
    capacity: u32,
}

impl<const SECOND_CHANCE: bool> Registered for FifoQueue<SECOND_CHANCE> {
    type Settings = NoSettings;
    const ENTRY: Entry = if SECOND_CHANCE {
        Entry {
            name: "clock",
            doc: "first in, first out, but a block that was hit gets another round",
            source: "Corbató, A Paging Experiment with the Multics System, MIT Project MAC, 1968",
            needs: &[],
        }
    } else {
        Entry {
            name: "fifo",
            doc: "the block that came first leaves first",
            source: "Belady, IBM Systems Journal 5(2), 1966",
            needs: &[],
        }
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        FifoQueue { queue: HitQueues::default(), capacity: capacity_blocks }
    }
}

impl<const SECOND_CHANCE: bool> PolicyHooks for FifoQueue<SECOND_CHANCE> {}

impl<const SECOND_CHANCE: bool> StoredPolicy for FifoQueue<SECOND_CHANCE> {
    stored_in!(queue: HitQueues<1, 1>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        if self.queue.tracks(access.block) {
            if SECOND_CHANCE {
                self.queue.mark(access.block);
            }
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.queue.len(0) == self.capacity { self.evict() } else { None };
        self.queue.push(0, access.block);
        Verdict::Admit { evicted }
    }

    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        if SECOND_CHANCE {
            self.queue.pop_unhit(0)
        } else {
            self.queue.pop(0).map(|(block, _)| block)
        }
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.queue.peek(0, later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

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
