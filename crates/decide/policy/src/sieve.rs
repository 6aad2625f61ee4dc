//! SIEVE: a hand walks from old to new, clears marks, and takes the first block without one; spared
//! blocks keep their place.
//!
//! For: lazy promotion with quick demotion. Source: Zhang et al., "SIEVE is Simpler than LRU",
//! NSDI'24, Algorithm 1. Unit: blocks.
//!
//! The queue is held as two queues cut at the hand: `ahead` (from the hand to the newest block) and
//! `behind` (from the oldest block to the hand). A step of the hand pops `ahead`; a spared block is
//! pushed to `behind`; when the hand passes the newest block the two change roles, which puts it
//! back at the oldest. So a block spared in its place costs two neighbouring writes. Memory: 1 byte
//! per id, 8 to 16 per resident block.

use crate::hit_queues::HitQueues;
use crate::registry::{Entry, Registered};
use crate::stored::{BlockStore, StoredPolicy, stored_in};
use crate::{Access, PolicyHooks, Verdict};
use cachewright_snapshot::SnapshotValue;
use cachewright_types::declare::NoSettings;
use cachewright_types::{BlockId, Seed};

/// SIEVE.
#[derive(Clone, Debug, SnapshotValue)]
pub struct Sieve {
    queues: HitQueues<2, 2>,
    /// The queue that is now ahead of the hand.
    ahead: usize,
    capacity: u32,
}

impl Sieve {
    /// Puts the hand back at the oldest block once it has passed the newest.
    #[inline(always)]
    fn wrap(&mut self) {
        if self.queues.len(self.ahead) == 0 {
            self.ahead = 1 - self.ahead;
        }
    }
}

impl Registered for Sieve {
    type Settings = NoSettings;
    const ENTRY: Entry = Entry {
        name: "sieve",
        doc: "a hand clears marks in place and evicts the first block without one",
        source: "Zhang et al., SIEVE is Simpler than LRU, NSDI'24, Algorithm 1",
        needs: &[],
    };

    fn new(capacity_blocks: u32, _: &NoSettings, _: Seed) -> Self {
        Sieve { queues: HitQueues::default(), ahead: 0, capacity: capacity_blocks }
    }
}

impl PolicyHooks for Sieve {}

impl StoredPolicy for Sieve {
    stored_in!(queues: HitQueues<2, 2>);

    #[inline(always)]
    fn decide(&mut self, access: Access) -> Verdict {
        if self.queues.tracks(access.block) {
            self.queues.mark(access.block);
            return Verdict::Hit;
        }
        if self.capacity == 0 {
            return Verdict::Bypass;
        }
        let evicted = if self.queues.resident() == self.capacity { self.evict() } else { None };
        self.queues.push(self.ahead, access.block);
        Verdict::Admit { evicted }
    }

    /// Advances the hand until a block has left.
    #[inline(always)]
    fn evict(&mut self) -> Option<BlockId> {
        loop {
            let (block, spared) = self.queues.advance(self.ahead, 1 - self.ahead)?;
            self.wrap();
            if !spared {
                return Some(block);
            }
        }
    }

    fn on_removal(&mut self) {
        self.wrap();
    }

    #[inline(always)]
    fn next_victim(&self, later: u32) -> Option<BlockId> {
        self.queues.peek(self.ahead, later)
    }

    fn audit_limits(&self) -> Result<(), String> {
        if self.queues.len(self.ahead) == 0 && self.queues.resident() > 0 {
            return Err("the hand stands past the newest block".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    /// Capacity 3, order old to new, `*` marked, `^` the hand. After 1, 2, 3 and hits on 1 and 2:
    /// ^1* 2* 3. Block 4: 1 and 2 are spared in place, 3 leaves; it was the newest, so the hand
    /// goes back to the oldest: ^1 2 4. Block 5 takes 1: ^2 4 5. After a hit on 2 block 6 spares
    /// it and takes 4: 2 ^5 6. Block 7 takes 5: 2 ^6 7.
    #[test]
    fn spared_blocks_keep_their_place() {
        let mut sieve = Sieve::new(3, &NoSettings::default(), Seed(0));
        sieve.reserve_ids(8);
        let mut step = |id| sieve.access(Access::read(BlockId(id)));
        for id in [1, 2, 3] {
            assert_eq!(step(id), Verdict::Admit { evicted: None });
        }
        assert_eq!((step(1), step(2)), (Verdict::Hit, Verdict::Hit));
        assert_eq!(step(4), Verdict::Admit { evicted: Some(BlockId(3)) });
        assert_eq!(step(5), Verdict::Admit { evicted: Some(BlockId(1)) });
        assert_eq!(step(2), Verdict::Hit);
        assert_eq!(step(6), Verdict::Admit { evicted: Some(BlockId(4)) });
        assert_eq!(step(7), Verdict::Admit { evicted: Some(BlockId(5)) });
    }
}
