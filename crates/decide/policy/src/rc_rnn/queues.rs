//! Three LRU queues by how long blocks are to stay.
//!
//! For: residents of `rc-rnn`: the next to leave, and drops to a lower queue. Source: Ebrahimi et
//! al., RC-RNN, section 4.2. Unit: blocks, accesses; O(1) per operation but for drops, which are
//! O(1) amortised.
//!
//! The rule of drops: a block of `mean` or `late` that entered its queue five times the cache size
//! in accesses ago drops to the head of the queue below, unless it is among the fifth of its queue
//! (rounded down) that was used last; it is looked at again as long after. Blocks wait in one list
//! in order of entry, so that only those whose time has come are looked at: each at most once per
//! five cache sizes, a fifth of one per access on average. The fifth used last is a list of its
//! own: every hit, entry and exit moves at most two blocks across the border.

use super::features::StayClass;
use crate::links::Links;
use cachewright_snapshot::SnapshotValue;
use cachewright_types::BlockId;

/// Accesses from entry to drop, per block of the cache.
const STAY: u32 = 5;
/// The part of a queue that does not drop is one of so many.
const TOP: u32 = 5;

/// Lists of `links`; a block tagged [`OUT`] is in none.
const SOON: u8 = 0;
/// All of `mean` but its top.
const MEAN: u8 = 1;
/// All of `late` but its top.
const LATE: u8 = 2;
/// From the list of a queue to that of its top.
const TO_TOP: u8 = 2;
/// Not resident.
const OUT: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, SnapshotValue)]
struct StayTag {
    list: u8,
    /// The model by which it was queued, of those used so far.
    model: u16,
}

impl Default for StayTag {
    fn default() -> Self {
        StayTag { list: OUT, model: 0 }
    }
}

/// The residents.
#[derive(Clone, Debug, SnapshotValue)]
pub struct ResidencyQueues {
    links: Links<StayTag, 5>,
    /// Blocks of `mean` and `late` in order of entry, tagged with when that was.
    entries: Links<u32, 1>,
    /// Accesses so far, modulo 2^32.
    now: u32,
    stay: u32,
}

impl ResidencyQueues {
    /// Empty queues of a cache of `capacity_blocks`.
    pub fn new(capacity_blocks: u32) -> ResidencyQueues {
        let mut queues =
            ResidencyQueues { links: Links::new(), entries: Links::new(), now: 0, stay: 0 };
        queues.resize(capacity_blocks);
        queues
    }

    /// Goes with a cache of another size; nothing leaves.
    pub fn resize(&mut self, capacity_blocks: u32) {
        // Half of what the clock tells apart is forever.
        self.stay = capacity_blocks.saturating_mul(STAY).min(u32::MAX / 2);
    }

    /// Makes room for ids `0..count`.
    pub fn reserve_ids(&mut self, count: usize) {
        self.links.reserve_ids(count);
        self.entries.reserve_ids(count);
    }

    /// Whether the block is resident.
    #[inline(always)]
    pub fn contains(&self, block: BlockId) -> bool {
        self.links.tag(block).list != OUT
    }

    /// Residents.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        (0..5).map(|list| self.links.len(list)).sum()
    }

    /// The model by which a resident was queued.
    #[inline(always)]
    pub fn model(&self, block: BlockId) -> u16 {
        self.links.tag(block).model
    }

    /// Loads a block's state.
    #[inline(always)]
    pub fn touch(&self, block: BlockId) {
        self.links.touch(block);
    }

    /// An access goes by: those whose time has come drop.
    #[inline(always)]
    pub fn pass(&mut self) {
        self.now = self.now.wrapping_add(1);
        while let Some(oldest) = self.entries.tail(0) {
            if self.now.wrapping_sub(self.entries.tag(oldest)) <= self.stay {
                break;
            }
            self.fall(oldest);
        }
    }

    /// A hit: to the head of its queue.
    #[inline(always)]
    pub fn hit(&mut self, block: BlockId) {
        let tag = self.links.tag(block);
        self.links.unlink(tag.list.into(), block);
        self.head(queue_of(tag.list), block, tag.model);
    }

    /// Lets a block in that is not resident, by the word of a model.
    pub fn enter(&mut self, block: BlockId, duration: StayClass, model: u16) {
        let queue = match duration {
            StayClass::Soon => SOON,
            StayClass::Mean => MEAN,
            StayClass::Late => LATE,
        };
        self.place(queue, block, model);
    }

    /// Takes a resident out.
    pub fn leave(&mut self, block: BlockId) {
        let list = self.links.tag(block).list;
        self.links.unlink(list.into(), block);
        *self.links.tag_mut(block) = StayTag::default();
        if self.entries.linked(block) {
            self.entries.unlink(0, block);
        }
        self.balance(queue_of(list));
    }

    /// Who leaves next: the tail of `soon`, else of `mean`, else of `late`.
    pub fn victim(&self) -> Option<BlockId> {
        // A top is at most a fifth, so that a queue that holds anything has a tail outside it.
        [SOON, MEAN, LATE].into_iter().find_map(|queue| self.links.tail(queue.into()))
    }

    /// A block's time in its queue has come.
    fn fall(&mut self, block: BlockId) {
        let StayTag { list, model } = self.links.tag(block);
        self.entries.unlink(0, block);
        if list == MEAN || list == LATE {
            self.links.unlink(list.into(), block);
            self.balance(list);
            self.place(list - 1, block, model);
        } else {
            self.enter_now(block);
        }
    }

    fn place(&mut self, queue: u8, block: BlockId, model: u16) {
        self.head(queue, block, model);
        if queue != SOON {
            self.enter_now(block);
        }
    }

    fn enter_now(&mut self, block: BlockId) {
        self.entries.push_head(0, block);
        *self.entries.tag_mut(block) = self.now;
    }

    /// Puts a block that is in no list at the head of a queue.
    #[inline(always)]
    fn head(&mut self, queue: u8, block: BlockId, model: u16) {
        let list = if queue == SOON { SOON } else { queue + TO_TOP };
        self.links.push_head(list.into(), block);
        *self.links.tag_mut(block) = StayTag { list, model };
        self.balance(queue);
    }

    /// Makes the top of a queue as long as it should be.
    #[inline(always)]
    fn balance(&mut self, queue: u8) {
        if queue == SOON {
            return;
        }
        let (rest, top) = (usize::from(queue), usize::from(queue + TO_TOP));
        let wanted = (self.links.len(rest) + self.links.len(top)) / TOP;
        while self.links.len(top) > wanted {
            let Some(block) = self.links.pop_tail(top) else { return };
            self.links.push_head(rest, block);
            self.links.tag_mut(block).list = rest as u8;
        }
        while self.links.len(top) < wanted {
            let Some(block) = self.links.head(rest) else { return };
            self.links.unlink(rest, block);
            self.links.push_tail(top, block);
            self.links.tag_mut(block).list = top as u8;
        }
    }

    /// The blocks of `soon`, `mean` and `late` from newest to oldest; for tests.
    #[cfg(test)]
    pub fn blocks(&self) -> [Vec<u32>; 3] {
        [SOON, MEAN, LATE].map(|queue| {
            let top = if queue == SOON { None } else { Some(usize::from(queue + TO_TOP)) };
            let lists = top.into_iter().chain([usize::from(queue)]);
            lists.flat_map(|list| self.links.iter(list)).map(|block| block.0).collect()
        })
    }

    /// Checks links, tags, tops and the blocks that wait to drop.
    pub fn audit(&self) -> Result<(), String> {
        self.links.audit()?;
        self.entries.audit()?;
        for list in 0..5_u8 {
            for block in self.links.iter(list.into()) {
                if self.links.tag(block).list != list {
                    return Err(format!("block {} of list {list} is tagged otherwise", block.0));
                }
                if self.entries.linked(block) == (list == SOON) {
                    return Err(format!("block {} of list {list}: wrong about drops", block.0));
                }
            }
        }
        for queue in [MEAN, LATE] {
            let (rest, top) = (self.links.len(queue.into()), self.links.len((queue + 2).into()));
            if top != (rest + top) / TOP {
                return Err(format!("queue {queue}: a top of {top} beside {rest}"));
            }
        }
        let waiting = self.held() - self.links.len(SOON.into());
        if self.entries.len(0) == waiting {
            return Ok(());
        }
        Err(format!("{} blocks wait to drop, {waiting} expected", self.entries.len(0)))
    }
}

/// The queue of a list.
fn queue_of(list: u8) -> u8 {
    if list > LATE { list - TO_TOP } else { list }
}
