//! What tenants with the same rights may take of the slots, what they hold, and who waits.
//!
//! For: counting slots against quotas and shares of pools. Must never know: which slots are free,
//! why a share is what it is. Units: blocks (a slot holds one). A slot held counts by its channel
//! always, and by a share while a pool of the class has that channel.

use super::ids::{ChannelId, PoolId, ResidentId};
use cachewright_partition::layout::PoolShare;
use cachewright_policy::Region;
use std::collections::VecDeque;

/// No limit.
pub const UNLIMITED: u32 = u32::MAX;

/// Slots held, and those of them whose blocks leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotsHeld {
    /// All of them.
    pub used: u32,
    /// Those that will be given back.
    pub leaving: u32,
}

/// A share of a pool, as it is used.
#[derive(Clone, Copy, Debug)]
pub struct SlotShare {
    /// The pool.
    pub pool: PoolId,
    /// Slots that may be held at most.
    pub max_slots: u32,
    /// Slots held.
    pub held: SlotsHeld,
}

/// A resident that waits for a slot.
#[derive(Clone, Copy, Debug)]
pub struct WaitingResident {
    /// Its order among all that ever waited.
    pub arrival: u64,
    /// The resident.
    pub resident: ResidentId,
    /// Where its policy wants it.
    pub preferred: Region,
}

/// Tenants with the same rights.
#[derive(Clone, Debug)]
pub struct SlotClass {
    shares: Vec<SlotShare>,
    /// Slots taken, and how many may be.
    used: u32,
    max_slots: u32,
    by_channel: Vec<SlotsHeld>,
    /// Residents that wait for a slot, in order.
    waiting: VecDeque<WaitingResident>,
}

impl SlotsHeld {
    /// Slots whose blocks stay.
    pub fn staying(&self) -> u32 {
        self.used - self.leaving
    }

    fn add(&mut self, other: &SlotsHeld) {
        self.used += other.used;
        self.leaving += other.leaving;
    }
}

impl SlotShare {
    /// Whether one more slot of the pool may be held.
    pub fn may_take(&self) -> bool {
        self.held.used < self.max_slots
    }
}

impl SlotClass {
    /// A class that holds nothing, without a limit and without shares.
    pub fn new(channels: usize) -> SlotClass {
        let by_channel = vec![SlotsHeld::default(); channels];
        let (shares, waiting) = (Vec::new(), VecDeque::new());
        SlotClass { shares, used: 0, max_slots: UNLIMITED, by_channel, waiting }
    }

    /// Replaces the shares; slots held count to the new shares by the pools of their channels.
    pub fn set_shares(
        &mut self,
        shares: &[PoolShare],
        pool_of: impl Fn(ChannelId) -> Option<PoolId>,
    ) {
        self.shares.clear();
        for share in shares {
            let (pool, max_slots) = (PoolId::new(share.pool), share.blocks);
            match self.shares.iter_mut().find(|known| known.pool == pool) {
                Some(known) => known.max_slots = known.max_slots.saturating_add(max_slots),
                None => self.shares.push(SlotShare { pool, max_slots, held: SlotsHeld::default() }),
            }
        }
        for (channel, held) in self.by_channel.iter().enumerate() {
            let pool = pool_of(ChannelId::new(channel));
            if let Some(share) = self.shares.iter_mut().find(|share| Some(share.pool) == pool) {
                share.held.add(held);
            }
        }
    }

    /// Bounds the slots taken.
    pub fn set_max_slots(&mut self, max_slots: u32) {
        self.max_slots = max_slots;
    }

    /// The shares, in the order in which they are tried.
    pub fn shares(&self) -> &[SlotShare] {
        &self.shares
    }

    /// Slots held by channel.
    pub fn by_channel(&self) -> &[SlotsHeld] {
        &self.by_channel
    }

    /// Whether the limit leaves a slot.
    pub fn may_take(&self) -> bool {
        self.used < self.max_slots
    }

    /// A slot of a channel is taken.
    pub fn take(&mut self, channel: ChannelId, pool: Option<PoolId>) {
        self.used += 1;
        self.count(channel, pool, |held| held.used += 1);
    }

    /// A slot of a channel is given back.
    pub fn give_back(&mut self, channel: ChannelId, pool: Option<PoolId>) {
        self.used -= 1;
        self.count(channel, pool, |held| held.used -= 1);
    }

    /// Changes what is held of a channel, and of the share of its pool.
    pub fn count(
        &mut self,
        channel: ChannelId,
        pool: Option<PoolId>,
        change: impl Fn(&mut SlotsHeld),
    ) {
        change(&mut self.by_channel[channel.index()]);
        if let Some(share) = self.shares.iter_mut().find(|share| Some(share.pool) == pool) {
            change(&mut share.held);
        }
    }

    /// A resident waits for a slot.
    pub fn wait(&mut self, waiting: WaitingResident) {
        self.waiting.push_back(waiting);
    }

    /// The resident that waits longest has got a slot.
    pub fn end_wait(&mut self) {
        self.waiting.pop_front();
    }

    /// The resident that waits longest.
    pub fn first_waiting(&self) -> Option<&WaitingResident> {
        self.waiting.front()
    }

    /// Checks that slots held add up. Errors: the rule broken, in words.
    pub fn audit(&self) -> Result<(), String> {
        let held: u32 = self.by_channel.iter().map(|held| held.used).sum();
        if held != self.used || self.by_channel.iter().any(|held| held.leaving > held.used) {
            return Err(format!("{held} slots held by channel, {} taken", self.used));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_held_follow_their_channel_to_another_pool() {
        let share = |pool, blocks| PoolShare { pool, blocks };
        let mut class = SlotClass::new(2);
        class.set_shares(&[share(0, 2)], |channel| Some(PoolId(channel.0)));
        class.take(ChannelId(0), Some(PoolId(0)));
        class.take(ChannelId(1), Some(PoolId(1)));
        class.count(ChannelId(1), Some(PoolId(1)), |held| held.leaving += 1);
        assert_eq!(class.shares()[0].held, SlotsHeld { used: 1, leaving: 0 });
        // Both channels are one pool now, named twice: 1 and 2 slots of it.
        class.set_shares(&[share(0, 1), share(0, 2)], |_| Some(PoolId(0)));
        let shares = class.shares();
        assert_eq!((shares.len(), shares[0].max_slots), (1, 3));
        assert_eq!((shares[0].held.used, shares[0].held.staying()), (2, 1));
        class.set_max_slots(2);
        assert!(!class.may_take() && shares_left(&class));
        class.give_back(ChannelId(0), Some(PoolId(0)));
        assert!(class.may_take());
        assert_eq!(class.audit(), Ok(()));
    }

    fn shares_left(class: &SlotClass) -> bool {
        class.shares()[0].may_take()
    }
}
